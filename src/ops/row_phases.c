/*
 * row_phases.c: see row_phases.h
 */
#include "ops/row_phases.h"

#include "base/error.h"

#include <string.h>

static void phases_find(struct gni_row_phases *phases)
{
    const struct gni_program *program = phases->program;
    phases->count = 1;
    for (int i = 0; i < program->input_count; i++)
        phases->phase[i] = 0;
    for (int s = 0; s < program->step_count; s++) {
        const struct gni_step *step = &program->steps[s];
        short phase = 0;
        for (int i = 0; i < 3 && step->in[i] >= 0; i++)
            if (phases->phase[step->in[i]] > phase)
                phase = phases->phase[step->in[i]];
        if (step->kind == GNI_STEP_REDUCE)
            phase++;
        phases->phase[program->input_count + s] = phase;
        if (phase >= phases->count)
            phases->count = phase + 1;
    }
    gni_assert(phases->count <= GNI_ROW_PHASES_MOST);
}

/* A phase needs a value: if that is full, and neither loaded nor kept, its operands too. */
static void value_need(struct gni_row_phases *phases, int phase, int value)
{
    const struct gni_program *program = phases->program;
    if (program->is_row[value] || gni_row_is_needed(phases, phase, value))
        return;
    gni_row_add(&phases->needed[phase], value);
    if (value < program->input_count ||
        (gni_row_has(&phases->kept, value) && phases->phase[value] < phase))
        return;
    const struct gni_step *step = &program->steps[value - program->input_count];
    for (int i = 0; i < 3 && step->in[i] >= 0; i++)
        value_need(phases, phase, step->in[i]);
}

static void needs_find(struct gni_row_phases *phases)
{
    const struct gni_program *program = phases->program;
    memset(phases->needed, 0, sizeof *phases->needed * (size_t)phases->count);
    for (int s = 0; s < program->step_count; s++)
        if (program->steps[s].kind == GNI_STEP_REDUCE)
            value_need(phases, phases->phase[program->steps[s].in[0]], program->steps[s].in[0]);
    for (int i = 0; i < program->output_count; i++)
        if (!program->outputs[i].is_row)
            value_need(phases, phases->phase[program->outputs[i].value], program->outputs[i].value);
    for (int v = program->input_count; v < program->input_count + program->step_count; v++)
        if (gni_row_has(&phases->kept, v))
            value_need(phases, phases->phase[v], v);
}

/* Whether computing a value once more costs little. */
static bool is_light(const struct gni_step *step)
{
    if (step->kind != GNI_STEP_OP)
        return true;
    switch (step->op) {
    case GNI_OP_ADD:
    case GNI_OP_SUBTRACT:
    case GNI_OP_MULTIPLY:
    case GNI_OP_MAXIMUM:
    case GNI_OP_MINIMUM:
    case GNI_OP_NEGATIVE:
    case GNI_OP_ABSOLUTE:
    case GNI_OP_SQUARE:
    case GNI_OP_RELU:
    case GNI_OP_WHERE:
    case GNI_OP_EQUAL:
    case GNI_OP_NOT_EQUAL:
    case GNI_OP_LESS:
    case GNI_OP_LESS_EQUAL:
    case GNI_OP_GREATER:
    case GNI_OP_GREATER_EQUAL:
    case GNI_OP_LOGICAL_AND:
    case GNI_OP_LOGICAL_OR:
    case GNI_OP_ISNAN:
        return true;
    default:
        return false;
    }
}

/* The same of a value: rounding costs what it rounds, and is kept in its place. */
static bool is_light_value(const struct gni_program *program, int value)
{
    if (value < program->input_count)
        return true;
    const struct gni_step *step = &program->steps[value - program->input_count];
    return step->kind == GNI_STEP_ROUND ? is_light_value(program, step->in[0]) : is_light(step);
}

/* Keeps what is computed in several phases; with `is_heavy` only what costs much. */
static void kept_find(struct gni_row_phases *phases, bool is_heavy)
{
    const struct gni_program *program = phases->program;
    for (int s = 0; s < program->step_count; s++) {
        int value = program->input_count + s, count = 0;
        for (int p = 0; p < phases->count; p++)
            count += gni_row_is_needed(phases, p, value);
        if (count < 2 || gni_program_rounding(program, value) != NULL ||
            (is_heavy && is_light_value(program, value)))
            continue;
        gni_row_add(&phases->kept, value);
        needs_find(phases);
    }
}

void gni_row_phases_make(struct gni_row_phases *phases, const struct gni_program *program,
                         enum gni_row_keeping keeping)
{
    phases->program = program;
    memset(&phases->kept, 0, sizeof phases->kept);
    phases_find(phases);
    needs_find(phases);
    if (keeping != GNI_ROW_KEEP_NONE)
        kept_find(phases, keeping == GNI_ROW_KEEP_HEAVY);
}

bool gni_row_has_loop(const struct gni_row_phases *phases, int phase)
{
    const struct gni_program *program = phases->program;
    for (int i = 0; i < GNI_ROW_VALUE_WORDS; i++)
        if (phases->needed[phase].bits[i] != 0)
            return true;
    for (int v = program->input_count; v < program->input_count + program->step_count; v++)
        if (gni_row_is_reduced_in(phases, phase, v))
            return true;
    for (int i = 0; i < program->output_count; i++)
        if (gni_row_is_stored_in(phases, phase, i) || gni_row_is_summed_in(phases, phase, i))
            return true;
    return false;
}
