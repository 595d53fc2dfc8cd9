/*
 * cpu_row_program.c: row programs (program.h) on the CPU: rows in cache, on several threads.
 *
 *     up to half a tile       a tile has several whole rows, at most PACKED_MOST: a group
 *     longer rows             one at a time, tile by tile in each phase (row_phases.h)
 *
 * Full values are in registers: tiles of memory on the thread's stack, or where they lie. Row values are arrays of an element
 * for each row of the group. A full step reads one from a *standing* register, which has it for each column; so it does with
 * inputs that are the same in all rows, where a tile has several rows. What several phases read is kept for all columns, if it
 * costs much or a row is no longer than a tile, and if there is room.
 *
 * Steps that follow each other are chains (chains.h): a value that only the next step reads is stored nowhere. Where rows come
 * from memory and not from a cache, each phase asks for a part of the next rows.
 *
 * Reductions add by tiles, which begin with the row; rows of up to GNI_SHORT_COLUMNS elements one by one.
 */
#include "ops/cpu/cpu_ops.h"

#include "base/host.h"
#include "base/parallel.h"
#include "ops/cpu/chains.h"
#include "ops/cpu/column_sums.h"
#include "ops/cpu/plan.h"
#include "ops/row_phases.h"

#include <stdatomic.h>
#include <string.h>

enum {
    TILE = GNI_TILE_MOST,
    APART =
        192, /* bytes between tiles, so that equal columns have different places in a page: loads would wait for stores */
    TILE_BYTES = TILE * GNI_ELEMENT_BYTES + APART,
    REGISTERS_MOST = 48,
    PACKED_MOST = 64, /* rows in a tile */
    KEPT_BYTES = 128 << 10,
    LISTED_MOST = 4096, /* values in the lists of all phases */
    MANY_ROWS = 16,     /* that keep all threads busy, however long they are */
    CHAIN_MOST = 16,    /* steps in a chain */
    LINE_BYTES = 64,    /* of a cache */
    AHEAD_LEAST =
        32
        << 20, /* bytes of a program that are hardly in a cache: asking for them ahead takes time where they are */
    AHEAD_MOST = 128 << 10, /* bytes of a group, which must stay in the second-level cache */
};

/* A step in a chain (chains.h). */
struct link {
    bool has_next;  /* the next step of the list takes its value from vector registers */
    bool is_stored; /* something else reads it, too */
    enum gni_chain_code code;
    int other; /* operand beside the chain's value; -1: none */
};

_Static_assert(PACKED_MOST <= TILE, "a row step is one loop");

/* Some numbers of row_plan.listed. */
struct list {
    short first, count;
};

/* What a phase does with each tile, but for `row_values`, which come before. */
struct phase {
    struct list row_values; /* values that are one for each row */
    struct list loads;      /* full inputs */
    struct list found;      /* kept values of earlier phases */
    struct list steps;      /* full values that are computed */
    struct list reductions; /* numbers of reductions */
    struct list stores;     /* numbers of outputs that are stored behind the steps */
    struct list sums;       /* numbers of sums of columns that the phase adds to */
    size_t piece;           /* the first piece of the next rows that it asks for */
};

struct reduction {
    short value, in;
    struct gni_reducers reducers;
    uint64_t start;    /* an accumulator of nothing */
    size_t size, wide; /* of an element, and of an accumulator */
    bool is_mean;
    gni_product_reducer
        products; /* `in` is a product that nothing else needs: it is not stored; else NULL */
    gni_loop narrow,
        widen; /* an accumulator as the result's type, and that as it is held; NULL: it is so already */
};

struct row_plan {
    const struct gni_program *program;
    struct gni_row_phases phases;
    struct gni_layout layout;
    int kept_ndim; /* dimensions of the layout that are not of rows */
    int64_t rows;
    size_t columns, group;                   /* of a row; rows at a time */
    bool is_direct[GNI_PROGRAM_INPUTS_MOST]; /* full, and read where it lies */
    bool is_same[GNI_PROGRAM_INPUTS_MOST];   /* full, and loaded once for all rows */
    bool is_ahead[GNI_PROGRAM_INPUTS_MOST];  /* direct, and other memory in other rows */
    size_t
        pieces; /* in which memory of the next rows is asked for while these are computed; 0: it is not */
    gni_loop loops[GNI_PROGRAM_STEPS_MOST];
    gni_row_loop
        row_loops[GNI_PROGRAM_STEPS_MOST];  /* of full steps with a row operand; NULL: none */
    bool is_inside[GNI_PROGRAM_STEPS_MOST]; /* in the phase of its value a reduction computes it */
    gni_loop stores[GNI_PROGRAM_NODES_MOST];
    short targets
        [GNI_PROGRAM_VALUES_MOST]; /* the output that is written by the step itself; -1: none */
    short standing[GNI_PROGRAM_VALUES_MOST]; /* a register for all phases; -1: none */
    short kept[GNI_PROGRAM_VALUES_MOST];     /* the number of a kept value; -1: it is not kept */
    short places[GNI_ROW_PHASES_MOST]
                [GNI_PROGRAM_VALUES_MOST]; /* registers of full values; -1: none */
    int register_count;
    int reduction_count;
    struct reduction reductions[GNI_PROGRAM_NODES_MOST];
    struct phase phase[GNI_ROW_PHASES_MOST];
    int listed_count;
    short listed[LISTED_MOST];
    struct link links[LISTED_MOST];        /* of those that are steps */
    struct gni_column_sums *sums;          /* NULL: none */
    short summed[GNI_PROGRAM_VALUES_MOST]; /* number of a sum of columns of the value; -1: none */
    _Atomic(bool) has_failed;              /* there was no memory for a chunk of them */
};

/* What a thread works in. */
struct room {
    _Alignas(64) char tiles[REGISTERS_MOST * TILE_BYTES];
    _Alignas(64) char kept[KEPT_BYTES];
    _Alignas(64) char rows[GNI_PROGRAM_VALUES_MOST][PACKED_MOST * GNI_ELEMENT_BYTES];
    const void
        *values[GNI_PROGRAM_VALUES_MOST]; /* full values of the current tile, and standing ones */
    struct gni_column_chunk chunk;
};

static bool is_input(const struct row_plan *plan, int value)
{
    return value < plan->program->input_count;
}

static const struct gni_step *step_of(const struct row_plan *plan, int value)
{
    return &plan->program->steps[value - plan->program->input_count];
}

static int value_count(const struct row_plan *plan)
{
    return plan->program->input_count + plan->program->step_count;
}

static size_t size_of(const struct row_plan *plan, int value)
{
    return gni_dtypes[gni_program_held(plan->program, (short)value)].size;
}

/* ---- the plan: inputs and outputs ------------------------------------------------------------------ */

/* Whether the elements of a row are neighbours; and whether the rows are, too. */
static bool is_dense(const struct row_plan *plan, int input, bool with_rows)
{
    int64_t expected = 1;
    for (int d = plan->layout.ndim - 1; d >= (with_rows ? 0 : plan->kept_ndim); d--) {
        if (plan->layout.strides[input][d] != expected)
            return false;
        expected *= plan->layout.sizes[d];
    }
    return true;
}

/* Whether an input in memory is the same in all rows. */
static bool is_same_in_rows(const struct row_plan *plan, int input)
{
    for (int d = 0; d < plan->kept_ndim; d++)
        if (plan->layout.strides[input][d] != 0)
            return false;
    return true;
}

static void inputs_plan(struct row_plan *plan)
{
    const struct gni_program *program = plan->program;
    for (int i = 0; i < program->input_count; i++) {
        bool is_full = program->inputs[i].storage != NULL && !program->is_row[i];
        plan->is_direct[i] = is_full && is_dense(plan, i, plan->group > 1);
        plan->is_same[i] =
            is_full && !plan->is_direct[i] && plan->columns <= TILE && is_same_in_rows(plan, i);
    }
}

static void outputs_plan(struct row_plan *plan)
{
    const struct gni_program *program = plan->program;
    for (int v = 0; v < value_count(plan); v++)
        plan->targets[v] = -1;
    for (int i = 0; i < program->output_count; i++) {
        const struct gni_output *output = &program->outputs[i];
        gn_dtype held = gni_program_held(program, output->value);
        plan->stores[i] = gni_loop_convert(held, output->dtype);
        if (!output->is_row && !output->is_column && !is_input(plan, output->value) &&
            !program->is_row[output->value] && held == output->dtype &&
            !gni_row_has(&plan->phases.kept, output->value) && plan->targets[output->value] < 0)
            plan->targets[output->value] = (short)i;
    }
}

/* Values of which there are sums of columns. */
static void sums_plan(struct row_plan *plan)
{
    for (int v = 0; v < value_count(plan); v++)
        plan->summed[v] = -1;
    for (int n = 0; plan->sums != NULL && n < plan->sums->count; n++)
        plan->summed[plan->program->outputs[plan->sums->outputs[n]].value] = (short)n;
}

/* The loops of steps; those with an operand that is one for each row. */
static void loops_plan(struct row_plan *plan)
{
    const struct gni_program *program = plan->program;
    for (int s = 0; s < program->step_count; s++) {
        const struct gni_step *step = &program->steps[s];
        plan->loops[s] = step->kind == GNI_STEP_REDUCE ? NULL : gni_step_loop(step);
        plan->row_loops[s] = NULL;
        if (step->kind != GNI_STEP_OP || program->is_row[program->input_count + s] ||
            step->in[1] < 0 || step->in[2] >= 0)
            continue;
        bool is_first = program->is_row[step->in[0]], is_second = program->is_row[step->in[1]];
        if (is_first != is_second)
            plan->row_loops[s] = gni_row_loop_find(step->op, step->from, is_second);
    }
}

/* Whether a full step that has no loop for it, a reduction or a full output reads a row value. */
static bool is_spread(const struct row_plan *plan, int value)
{
    const struct gni_program *program = plan->program;
    for (int s = 0; s < program->step_count; s++) {
        const struct gni_step *step = &program->steps[s];
        bool is_full = step->kind == GNI_STEP_REDUCE || !program->is_row[program->input_count + s];
        is_full &= plan->row_loops[s] == NULL;
        for (int i = 0; i < 3 && is_full; i++)
            if (step->in[i] == value)
                return true;
    }
    for (int i = 0; i < program->output_count; i++)
        if (program->outputs[i].value == value && !program->outputs[i].is_row)
            return true;
    return false;
}

static void reductions_plan(struct row_plan *plan)
{
    const struct gni_program *program = plan->program;
    plan->reduction_count = 0;
    for (int s = 0; s < program->step_count; s++) {
        const struct gni_step *step = &program->steps[s];
        if (step->kind != GNI_STEP_REDUCE)
            continue;
        struct reduction *one = &plan->reductions[plan->reduction_count++];
        gn_dtype wide = gni_accumulator_type(step->reduction, step->from);
        *one = (struct reduction){
            .value = (short)(program->input_count + s),
            .in = step->in[0],
            .reducers = gni_reducers_find(gni_reduction_of(step->reduction), step->from),
            .start = gni_accumulator_start(step->reduction, step->from),
            .size = gni_dtypes[step->from].size,
            .wide = gni_dtypes[wide].size,
            .is_mean = step->reduction == GN_REDUCE_MEAN,
            .narrow = wide != step->half ? gni_loop_convert(wide, step->half) : NULL,
            .widen = step->half != step->held ? gni_loop_convert(step->half, step->held) : NULL};
    }
}

/* Whether an output reads its value behind the steps of a phase. */
static bool is_read_last(const struct row_plan *plan, int phase, int output)
{
    return gni_row_is_stored_in(&plan->phases, phase, output) ||
           gni_row_is_summed_in(&plan->phases, phase, output);
}

/* Whether anything but a reduction needs a full value in a phase. */
static bool is_needed_else(const struct row_plan *plan, int phase, int value, int reduction)
{
    const struct gni_program *program = plan->program;
    for (int s = 0; s < program->step_count; s++)
        for (int i = 0; i < 3; i++) {
            int reader = program->input_count + s;
            if (program->steps[s].in[i] == value && reader != reduction &&
                (gni_row_is_needed(&plan->phases, phase, reader) ||
                 gni_row_is_reduced_in(&plan->phases, phase, reader)))
                return true;
        }
    for (int i = 0; i < program->output_count; i++)
        if (program->outputs[i].value == value && is_read_last(plan, phase, i))
            return true;
    return false;
}

/* Sums of products that nothing else needs are computed by one loop. */
static void products_plan(struct row_plan *plan)
{
    const struct gni_program *program = plan->program;
    memset(plan->is_inside, 0, sizeof *plan->is_inside * (size_t)program->step_count);
    for (int r = 0; r < plan->reduction_count && plan->columns > GNI_SHORT_COLUMNS; r++) {
        struct reduction *one = &plan->reductions[r];
        const struct gni_step *sum = step_of(plan, one->value);
        if (is_input(plan, one->in) || sum->from != GN_FLOAT32 ||
            (sum->reduction != GN_REDUCE_SUM && sum->reduction != GN_REDUCE_MEAN))
            continue;
        const struct gni_step *step = step_of(plan, one->in);
        bool is_product = step->kind == GNI_STEP_OP && step->half == GN_FLOAT32 &&
                          ((step->op == GNI_OP_MULTIPLY && !program->is_row[step->in[0]] &&
                            !program->is_row[step->in[1]]) ||
                           step->op == GNI_OP_SQUARE);
        if (!is_product || plan->kept[one->in] >= 0 ||
            is_needed_else(plan, plan->phases.phase[one->in], one->in, one->value))
            continue;
        one->products = gni_product_reducer_find();
        plan->is_inside[one->in - program->input_count] = true;
    }
}

/* Whether a reduction computes a value itself in a phase. */
static bool is_inside(const struct row_plan *plan, int phase, int value)
{
    return plan->is_inside[value - plan->program->input_count] &&
           plan->phases.phase[value] == phase;
}

/* ---- the plan: registers --------------------------------------------------------------------------- */

/* The last step of a phase that reads a full value; the end for those that are reduced, stored or kept. */
static int last_use(const struct row_plan *plan, int phase, int value)
{
    const struct gni_program *program = plan->program;
    int last = -1;
    for (int s = 0; s < program->step_count; s++)
        for (int i = 0; i < 3; i++) {
            if (program->steps[s].in[i] != value)
                continue;
            if (is_inside(plan, phase, program->input_count + s))
                return program->step_count;
            if (gni_row_is_needed(&plan->phases, phase, program->input_count + s))
                last = s;
            if (gni_row_is_reduced_in(&plan->phases, phase, program->input_count + s))
                return program->step_count;
        }
    for (int i = 0; i < program->output_count; i++)
        if (program->outputs[i].value == value && is_read_last(plan, phase, i))
            return program->step_count;
    return last;
}

/* Registers of the values of a phase, from number `first` on; how many there are then. */
static int places_plan(struct row_plan *plan, int phase, int first)
{
    const struct gni_program *program = plan->program;
    short idle[GNI_PROGRAM_VALUES_MOST], *places = plan->places[phase];
    int idle_count = 0, count = first;
    for (int v = 0; v < value_count(plan); v++)
        places[v] = -1;
    for (int v = 0; v < program->input_count; v++)
        if (gni_row_is_needed(&plan->phases, phase, v) && !plan->is_direct[v] && !plan->is_same[v])
            places[v] = (short)count++;
    for (int s = 0; s < program->step_count; s++) {
        int value = program->input_count + s;
        if (!gni_row_is_needed(&plan->phases, phase, value) || plan->kept[value] >= 0 ||
            is_inside(plan, phase, value))
            continue;
        bool is_target = plan->targets[value] >= 0 && plan->phases.phase[value] == phase;
        if (!is_target)
            places[value] = idle_count > 0 ? idle[--idle_count] : (short)count++;
        for (int i = 0; i < 3 && program->steps[s].in[i] >= 0; i++) {
            int operand = program->steps[s].in[i];
            bool is_again = (i > 0 && operand == program->steps[s].in[0]) ||
                            (i > 1 && operand == program->steps[s].in[1]);
            if (!is_input(plan, operand) && places[operand] >= 0 && !is_again &&
                last_use(plan, phase, operand) == s)
                idle[idle_count++] = places[operand];
        }
    }
    return count;
}

static void registers_plan(struct row_plan *plan)
{
    int standing = 0;
    for (int v = 0; v < value_count(plan); v++) {
        bool stands = (plan->program->is_row[v] && is_spread(plan, v)) ||
                      (is_input(plan, v) && plan->is_same[v]);
        plan->standing[v] = stands ? (short)standing++ : (short)-1;
    }
    plan->register_count = standing;
    for (int p = 0; p < plan->phases.count; p++) {
        int count = places_plan(plan, p, standing);
        plan->register_count = count > plan->register_count ? count : plan->register_count;
    }
}

/* Bytes from a kept value to the next. */
static size_t kept_stride(const struct row_plan *plan)
{
    size_t count = plan->columns <= TILE ? plan->group * plan->columns : plan->columns;
    return ((count * GNI_ELEMENT_BYTES + 63) & ~(size_t)63) + APART;
}

/* Numbers the kept values; false if there is no room for them. */
static bool kept_plan(struct row_plan *plan, enum gni_row_keeping keeping)
{
    gni_row_phases_make(&plan->phases, plan->program, keeping);
    int count = 0;
    for (int v = 0; v < value_count(plan); v++)
        plan->kept[v] = gni_row_has(&plan->phases.kept, v) ? (short)count++ : (short)-1;
    return (size_t)count * kept_stride(plan) <= KEPT_BYTES;
}

/* ---- the plan: lists --------------------------------------------------------------------------------- */

static struct list list_begin(const struct row_plan *plan)
{
    return (struct list){.first =
                             (short)(plan->listed_count < LISTED_MOST ? plan->listed_count : 0)};
}

/* With more than LISTED_MOST the plan cannot be used. */
static void list_add(struct row_plan *plan, struct list *list, int number)
{
    if (plan->listed_count++ < LISTED_MOST)
        plan->listed[list->first + list->count++] = (short)number;
}

/* How a step takes a value in a chain; false if it cannot. */
static bool link_find(const struct row_plan *plan, int value, int taken, struct link *link)
{
    const struct gni_step *step = step_of(plan, value);
    bool is_first = step->in[0] == taken, is_second = step->in[1] == taken;
    if (step->kind != GNI_STEP_OP || step->in[2] >= 0 || !(is_first || is_second) ||
        gni_chain_find(step->from) == NULL || step->from != step->held)
        return false;
    int place = is_first && is_second ? GNI_CHAIN_BOTH : is_second;
    link->other = place == GNI_CHAIN_BOTH ? -1 : step->in[1 - place];
    bool is_row = link->other >= 0 && plan->program->is_row[link->other];
    return gni_chain_code_find(step->op, place, is_row, &link->code);
}

/* The operand that a chain begins with: a full one. */
static int chain_first(const struct row_plan *plan, int value)
{
    const struct gni_step *step = step_of(plan, value);
    return plan->program->is_row[step->in[0]] ? step->in[1] : step->in[0];
}

/* Whether chains are faster than loops: blocks at the ends of rows are nearly full. */
static bool is_chain_length(size_t columns)
{
    size_t blocks = (columns + GNI_CHAIN_BLOCK - 1) / GNI_CHAIN_BLOCK;
    return blocks * GNI_CHAIN_BLOCK - columns <= columns / 8;
}

/* Whether a later phase reads a value that is kept. */
static bool is_found_later(const struct row_plan *plan, int phase, int value)
{
    for (int p = phase + 1; p < plan->phases.count && plan->kept[value] >= 0; p++)
        if (gni_row_is_needed(&plan->phases, p, value))
            return true;
    return false;
}

/* Steps of a phase that follow each other become chains. */
static void links_plan(struct row_plan *plan, int phase)
{
    const struct list steps = plan->phase[phase].steps;
    int length = 1; /* of the chain, up to a step */
    for (int n = steps.first, end = n + steps.count; n < end; n++) {
        int value = plan->listed[n];
        struct link *link = &plan->links[n], next;
        bool is_linked = length > 1 || link_find(plan, value, chain_first(plan, value), link);
        link->has_next = is_linked && n + 1 < end && length < CHAIN_MOST &&
                         is_chain_length(plan->columns) &&
                         link_find(plan, plan->listed[n + 1], value, &next) &&
                         step_of(plan, plan->listed[n + 1])->from == step_of(plan, value)->held;
        length = link->has_next ? length + 1 : 1;
        link->is_stored = !link->has_next || is_found_later(plan, phase, value) ||
                          is_needed_else(plan, phase, value, plan->listed[n + 1]);
        if (link->has_next)
            plan->links[n + 1] = next;
    }
}

static void phase_plan(struct row_plan *plan, int number)
{
    const struct gni_program *program = plan->program;
    const struct gni_row_phases *phases = &plan->phases;
    struct phase *phase = &plan->phase[number];
    phase->row_values = list_begin(plan);
    for (int v = program->input_count; v < value_count(plan); v++)
        if (program->is_row[v] && phases->phase[v] == number &&
            step_of(plan, v)->kind != GNI_STEP_REDUCE)
            list_add(plan, &phase->row_values, v);
    phase->loads = list_begin(plan);
    for (int v = 0; v < program->input_count; v++)
        if (gni_row_is_needed(phases, number, v) && !plan->is_same[v])
            list_add(plan, &phase->loads, v);
    phase->found = list_begin(plan);
    for (int v = program->input_count; v < value_count(plan); v++)
        if (gni_row_is_needed(phases, number, v) && plan->kept[v] >= 0 && phases->phase[v] < number)
            list_add(plan, &phase->found, v);
    phase->steps = list_begin(plan);
    for (int v = program->input_count; v < value_count(plan); v++)
        if (gni_row_is_needed(phases, number, v) && !is_inside(plan, number, v) &&
            (plan->kept[v] < 0 || phases->phase[v] == number))
            list_add(plan, &phase->steps, v);
    links_plan(plan, number);
    phase->reductions = list_begin(plan);
    for (int r = 0; r < plan->reduction_count; r++)
        if (gni_row_is_reduced_in(phases, number, plan->reductions[r].value))
            list_add(plan, &phase->reductions, r);
    phase->stores = list_begin(plan);
    for (int i = 0; i < program->output_count; i++)
        if (gni_row_is_stored_in(phases, number, i) &&
            plan->targets[program->outputs[i].value] != i)
            list_add(plan, &phase->stores, i);
    phase->sums = list_begin(plan);
    for (int n = 0; plan->sums != NULL && n < plan->sums->count; n++)
        if (gni_row_is_summed_in(phases, number, plan->sums->outputs[n]))
            list_add(plan, &phase->sums, n);
}

/* Whether a phase goes through the columns at all. */
static bool has_columns(const struct phase *phase)
{
    return phase->steps.count > 0 || phase->reductions.count > 0 || phase->stores.count > 0 ||
           phase->sums.count > 0;
}

static bool is_full_output(const struct gni_output *output)
{
    return !output->is_row && !output->is_column;
}

/* Each phase asks for a part of the next rows' memory, tile by tile: all at once, they would wait for each other. The processor
 * does not see them coming, since a row is in memory of its own. */
static void ahead_plan(struct row_plan *plan)
{
    const struct gni_program *program = plan->program;
    size_t nbytes = 0; /* of a row */
    for (int i = 0; i < program->input_count; i++) {
        plan->is_ahead[i] = plan->is_direct[i] && !is_same_in_rows(plan, i);
        nbytes += plan->is_ahead[i] ? plan->columns * size_of(plan, i) : 0;
    }
    for (int i = 0; i < program->output_count; i++)
        if (is_full_output(&program->outputs[i]))
            nbytes += plan->columns * gni_dtypes[program->outputs[i].dtype].size;
    plan->pieces = 0;
    if (nbytes * plan->group > AHEAD_MOST || nbytes * (size_t)plan->rows < AHEAD_LEAST)
        return;
    for (int p = 0; p < plan->phases.count; p++) {
        plan->phase[p].piece = plan->pieces;
        plan->pieces += has_columns(&plan->phase[p]) ? (plan->columns + TILE - 1) / TILE : 0;
    }
}

static void row_plan_make(struct row_plan *plan, const struct gni_program *program,
                          struct gni_column_sums *sums)
{
    plan->program = program;
    plan->sums = sums;
    atomic_init(&plan->has_failed, false);
    plan->kept_ndim = gni_program_join_rows(program, &plan->layout);
    plan->kept_ndim = plan->layout.ndim - plan->kept_ndim;
    plan->columns = (size_t)program->columns;
    plan->rows = program->count / program->columns;
    plan->group = TILE / plan->columns;
    plan->group = plan->group < 1 ? 1 : plan->group > PACKED_MOST ? PACKED_MOST : plan->group;
    if ((plan->columns > TILE || !kept_plan(plan, GNI_ROW_KEEP_ALL)) &&
        !kept_plan(plan, GNI_ROW_KEEP_HEAVY))
        (void)kept_plan(plan, GNI_ROW_KEEP_NONE);
    loops_plan(plan);
    inputs_plan(plan);
    outputs_plan(plan);
    sums_plan(plan);
    reductions_plan(plan);
    products_plan(plan);
    registers_plan(plan);
    plan->listed_count = 0;
    for (int p = 0; p < plan->phases.count; p++)
        phase_plan(plan, p);
    ahead_plan(plan);
}

/* ---- running: memory --------------------------------------------------------------------------------- */

static char *tile_of(struct room *room, short place)
{
    return room->tiles + (size_t)place * TILE_BYTES;
}

static char *kept_of(const struct row_plan *plan, struct room *room, int value)
{
    return room->kept + (size_t)plan->kept[value] * kept_stride(plan);
}

/* Where an input has a row. */
static const char *row_of(const struct row_plan *plan, int input, int64_t row)
{
    const int64_t *strides = plan->layout.strides[input];
    int64_t offset = 0;
    for (int d = plan->kept_ndim - 1; d > 0; d--) {
        offset += row % plan->layout.sizes[d] * strides[d];
        row /= plan->layout.sizes[d];
    }
    if (plan->kept_ndim > 0)
        offset += row * strides[0];
    return plan->program->inputs[input].data + offset * (int64_t)size_of(plan, input);
}

/* `count` elements of a row from a column on, whose strides are any. */
static void columns_gather(const struct row_plan *plan, int input, const char *from, size_t column,
                           size_t count, char *to)
{
    const struct gni_layout *layout = &plan->layout;
    size_t size = size_of(plan, input);
    gni_gather gather = gni_gather_find(size);
    int last = layout->ndim - 1;
    while (count > 0) {
        size_t length = (size_t)layout->sizes[last];
        size_t rest = column, run = length - column % length;
        int64_t offset = 0;
        for (int d = last; d >= plan->kept_ndim; d--) {
            offset += (int64_t)(rest % (size_t)layout->sizes[d]) * layout->strides[input][d];
            rest /= (size_t)layout->sizes[d];
        }
        run = run < count ? run : count;
        gather(to, from + offset * (int64_t)size, layout->strides[input][last], run);
        to += run * size;
        column += run;
        count -= run;
    }
}

/* A tile: `count` elements from a column of a row on, or all of several rows. */
struct tile {
    int64_t row;
    size_t rows, column, count; /* count: of each row */
};

static void rows_gather(const struct row_plan *plan, int input, const struct tile *tile, char *to)
{
    size_t nbytes = tile->count * size_of(plan, input);
    for (size_t i = 0; i < tile->rows; i++)
        columns_gather(plan, input, row_of(plan, input, tile->row + (int64_t)i), tile->column,
                       tile->count, to + i * nbytes);
}

/* A row value for each column: of each row of the group, or of as many as a tile has. */
static void value_spread(const struct row_plan *plan, struct room *room, int value, size_t rows)
{
    if (plan->standing[value] < 0)
        return;
    size_t size = size_of(plan, value), length = plan->columns < TILE ? plan->columns : TILE;
    gni_gather gather = gni_gather_find(size);
    char *to = tile_of(room, plan->standing[value]);
    for (size_t i = 0; i < rows; i++)
        gather(to + i * length * size, room->rows[value] + i * size, 0, length);
    room->values[value] = to;
}

/* ---- running: memory of the next rows ------------------------------------------------------------------ */

/* Where a piece of some bytes begins, or the next one. */
static size_t piece_at(const struct row_plan *plan, size_t nbytes, size_t piece)
{
    return nbytes * piece / plan->pieces & ~(size_t)(LINE_BYTES - 1);
}

/* Asks for a piece of the memory of some rows: what they read, and what they write. */
static void rows_ask(const struct row_plan *plan, int64_t row, size_t rows, size_t piece)
{
    const struct gni_program *program = plan->program;
    for (int i = 0; i < program->input_count; i++) {
        if (!plan->is_ahead[i])
            continue;
        size_t nbytes = rows * plan->columns * size_of(plan, i);
        size_t end = piece_at(plan, nbytes, piece + 1);
        const char *from = row_of(plan, i, row);
        for (size_t k = piece_at(plan, nbytes, piece); k < end; k += LINE_BYTES)
            __builtin_prefetch(from + k, 0, 2);
    }
    for (int i = 0; i < program->output_count; i++) {
        const struct gni_output *output = &program->outputs[i];
        if (!is_full_output(output))
            continue;
        size_t row_bytes = plan->columns * gni_dtypes[output->dtype].size;
        size_t end = piece_at(plan, rows * row_bytes, piece + 1);
        char *to = output->data + (size_t)row * row_bytes;
        for (size_t k = piece_at(plan, rows * row_bytes, piece); k < end; k += LINE_BYTES)
            __builtin_prefetch(to + k, 1, 2);
    }
}

/* ---- running: rows ------------------------------------------------------------------------------------- */

/* Inputs that are one for each row, of the rows of a group. */
static void row_inputs_load(const struct row_plan *plan, struct room *room, int64_t row,
                            size_t rows)
{
    const struct gni_program *program = plan->program;
    for (int i = 0; i < program->input_count; i++) {
        if (!program->is_row[i] || program->inputs[i].storage == NULL)
            continue;
        size_t size = size_of(plan, i);
        if (plan->kept_ndim == 1)
            gni_gather_find(size)(room->rows[i], row_of(plan, i, row), plan->layout.strides[i][0],
                                  rows);
        else
            for (size_t k = 0; k < rows; k++)
                memcpy(room->rows[i] + k * size, row_of(plan, i, row + (int64_t)k), size);
        value_spread(plan, room, i, rows);
    }
}

/* What does not change from row to row. */
static void same_load(const struct row_plan *plan, struct room *room)
{
    const struct gni_program *program = plan->program;
    const struct tile tile = {.rows = plan->group, .count = plan->columns};
    for (int i = 0; i < program->input_count; i++) {
        size_t size = size_of(plan, i);
        if (program->inputs[i].storage == NULL) {
            gni_gather_find(size)(room->rows[i], &program->inputs[i].number, 0, plan->group);
            value_spread(plan, room, i, plan->group);
        } else if (plan->is_same[i]) {
            char *to = tile_of(room, plan->standing[i]);
            room->values[i] = to;
            struct tile one = tile;
            one.rows = 1;
            rows_gather(plan, i, &one, to);
            for (size_t k = 1; k < plan->group; k++)
                memcpy(to + k * plan->columns * size, to, plan->columns * size);
        }
    }
}

/* Accumulators become the result of a reduction, for each row. */
static void reduction_end(const struct row_plan *plan, struct room *room,
                          const struct reduction *one, size_t rows)
{
    _Alignas(64) char result[PACKED_MOST * GNI_ELEMENT_BYTES];
    void *sums = room->rows[one->value];
    const void *in[] = {sums};
    if (one->is_mean)
        for (size_t i = 0; i < rows; i++)
            ((double *)sums)[i] /= (double)plan->columns;
    if (one->narrow != NULL) {
        one->narrow(result, in, rows);
        in[0] = result;
    }
    if (one->widen != NULL)
        one->widen(sums, in, rows);
    else if (one->narrow != NULL)
        memcpy(sums, result, rows * size_of(plan, one->value));
    value_spread(plan, room, one->value, rows);
}

static void row_values_run(const struct row_plan *plan, struct room *room, struct list list,
                           size_t rows)
{
    for (int n = 0; n < list.count; n++) {
        int v = plan->listed[list.first + n];
        const struct gni_step *step = step_of(plan, v);
        const void *in[3] = {NULL};
        for (int i = 0; i < 3 && step->in[i] >= 0; i++)
            in[i] = room->rows[step->in[i]];
        plan->loops[v - plan->program->input_count](room->rows[v], in, rows);
        value_spread(plan, room, v, rows);
    }
}

/* ---- running: columns ---------------------------------------------------------------------------------- */

static char *output_at(const struct row_plan *plan, int output, const struct tile *tile)
{
    const struct gni_output *one = &plan->program->outputs[output];
    return one->data +
           ((size_t)tile->row * plan->columns + tile->column) * gni_dtypes[one->dtype].size;
}

static void inputs_load(const struct row_plan *plan, struct room *room, int phase,
                        const struct tile *tile)
{
    struct list list = plan->phase[phase].loads;
    for (int n = 0; n < list.count; n++) {
        int v = plan->listed[list.first + n];
        if (plan->is_direct[v]) {
            room->values[v] = row_of(plan, v, tile->row) + tile->column * size_of(plan, v);
            continue;
        }
        char *to = tile_of(room, plan->places[phase][v]);
        rows_gather(plan, v, tile, to);
        room->values[v] = to;
    }
    list = plan->phase[phase].found;
    for (int n = 0; n < list.count; n++) {
        int v = plan->listed[list.first + n];
        room->values[v] = kept_of(plan, room, v) + tile->column * size_of(plan, v);
    }
}

/* Where a phase computes a full value. */
static void *step_to(const struct row_plan *plan, struct room *room, int phase, int v,
                     const struct tile *tile)
{
    if (plan->kept[v] >= 0)
        return kept_of(plan, room, v) + tile->column * size_of(plan, v);
    if (plan->places[phase][v] >= 0) {
        if (plan->summed[v] >= 0 && tile->rows == 1 && plan->phases.phase[v] == phase)
            return gni_column_chunk_place(&room->chunk, plan->summed[v], tile->row, tile->column);
        return tile_of(room, plan->places[phase][v]);
    }
    return output_at(plan, plan->targets[v], tile);
}

static void step_run(const struct row_plan *plan, struct room *room, int phase, int v,
                     const struct tile *tile)
{
    int s = v - plan->program->input_count;
    const struct gni_step *step = step_of(plan, v);
    void *to = step_to(plan, room, phase, v, tile);
    room->values[v] = to;
    if (plan->row_loops[s] != NULL) {
        int row = plan->program->is_row[step->in[1]];
        plan->row_loops[s](to, room->values[step->in[1 - row]], room->rows[step->in[row]],
                           tile->rows, tile->count);
        return;
    }
    const void *in[3] = {NULL};
    for (int i = 0; i < 3 && step->in[i] >= 0; i++)
        in[i] = room->values[step->in[i]];
    plan->loops[s](to, in, tile->rows * tile->count);
}

/* Runs a chain that begins with number n of what is listed; the number of its last step. */
static int chain_run(const struct row_plan *plan, struct room *room, int phase, int n,
                     const struct tile *tile)
{
    struct gni_chain_step steps[2 * CHAIN_MOST + 2]; /* each may be stored */
    int count = 0, first = chain_first(plan, plan->listed[n]);
    steps[count++] =
        (struct gni_chain_step){GNI_CHAIN_LOAD, (void *)(uintptr_t)room->values[first]};
    for (;; n++) {
        const struct link *link = &plan->links[n];
        int v = plan->listed[n], other = link->other;
        void *data = other < 0                      ? NULL
                     : plan->program->is_row[other] ? room->rows[other]
                                                    : (void *)(uintptr_t)room->values[other];
        steps[count++] = (struct gni_chain_step){link->code, data};
        if (link->is_stored) {
            void *to = step_to(plan, room, phase, v, tile);
            room->values[v] = to;
            steps[count++] = (struct gni_chain_step){GNI_CHAIN_STORE, to};
        }
        if (!link->has_next)
            break;
    }
    steps[count] = (struct gni_chain_step){GNI_CHAIN_END, NULL};
    gni_chain_find(step_of(plan, plan->listed[n])->held)(steps, tile->rows, tile->count);
    return n;
}

static void steps_run(const struct row_plan *plan, struct room *room, int phase,
                      const struct tile *tile)
{
    const struct list list = plan->phase[phase].steps;
    for (int n = list.first; n < list.first + list.count; n++)
        if (plan->links[n].has_next)
            n = chain_run(plan, room, phase, n, tile);
        else
            step_run(plan, room, phase, plan->listed[n], tile);
}

static void reductions_begin(const struct row_plan *plan, struct room *room, struct list list,
                             size_t rows)
{
    for (int n = 0; n < list.count; n++) {
        const struct reduction *one = &plan->reductions[plan->listed[list.first + n]];
        gni_gather_find(one->wide)(room->rows[one->value], &one->start, 0, rows);
    }
}

/* The same of products. */
static void products_add(const struct row_plan *plan, struct room *room,
                         const struct reduction *one, const struct tile *tile)
{
    const struct gni_step *step = step_of(plan, one->in);
    const float *x = room->values[step->in[0]];
    const float *y = step->in[1] >= 0 ? room->values[step->in[1]] : x;
    double *sums = (double *)room->rows[one->value];
    for (size_t i = 0; i < tile->rows; i++)
        one->products(&sums[i], x + i * tile->count, y + i * tile->count, tile->count);
}

static void reductions_add(const struct row_plan *plan, struct room *room, struct list list,
                           const struct tile *tile)
{
    for (int n = 0; n < list.count; n++) {
        const struct reduction *one = &plan->reductions[plan->listed[list.first + n]];
        const char *in = room->values[one->in];
        char *sums = room->rows[one->value];
        if (one->products != NULL)
            products_add(plan, room, one, tile);
        else if (plan->columns <= GNI_SHORT_COLUMNS)
            one->reducers.short_rows(sums, in, tile->rows, tile->count);
        else
            for (size_t i = 0; i < tile->rows; i++)
                one->reducers.one(sums + i * one->wide, in + i * tile->count * one->size,
                                  tile->count);
    }
}

static void outputs_store(const struct row_plan *plan, struct room *room, struct list list,
                          const struct tile *tile)
{
    for (int n = 0; n < list.count; n++) {
        int i = plan->listed[list.first + n];
        const void *in[] = {room->values[plan->program->outputs[i].value]};
        plan->stores[i](output_at(plan, i, tile), in, tile->rows * tile->count);
    }
}

static void sums_add(const struct row_plan *plan, struct room *room, struct list list,
                     const struct tile *tile)
{
    for (int k = 0; k < list.count; k++) {
        int n = plan->listed[list.first + k];
        int v = plan->program->outputs[plan->sums->outputs[n]].value;
        const float *elements = room->values[v];
        bool is_lasting = is_input(plan, v) && plan->is_direct[v];
        for (size_t i = 0; i < tile->rows; i++) {
            size_t place = (size_t)gni_column_chunk_group(&room->chunk, tile->row + (int64_t)i);
            bool is_whole = i >= place && i - place + GNI_REDUCE_ROWS <= tile->rows;
            gni_column_chunk_add(&room->chunk, n, tile->row + (int64_t)i, tile->column,
                                 elements + i * tile->count, tile->count, is_lasting || is_whole);
        }
    }
}

/* `next`: how many rows are behind these, up to as many as these are. */
static void phase_run(const struct row_plan *plan, struct room *room, int number, int64_t row,
                      size_t rows, size_t next)
{
    const struct phase *phase = &plan->phase[number];
    row_values_run(plan, room, phase->row_values, rows);
    if (!has_columns(phase))
        return;
    reductions_begin(plan, room, phase->reductions, rows);
    for (size_t column = 0; column < plan->columns; column += TILE) {
        size_t left = plan->columns - column;
        const struct tile tile = {
            .row = row, .rows = rows, .column = column, .count = left < TILE ? left : TILE};
        if (plan->pieces > 0 && next > 0)
            rows_ask(plan, row + (int64_t)rows, next, phase->piece + column / TILE);
        inputs_load(plan, room, number, &tile);
        steps_run(plan, room, number, &tile);
        reductions_add(plan, room, phase->reductions, &tile);
        outputs_store(plan, room, phase->stores, &tile);
        sums_add(plan, room, phase->sums, &tile);
    }
    for (int n = 0; n < phase->reductions.count; n++)
        reduction_end(plan, room, &plan->reductions[plan->listed[phase->reductions.first + n]],
                      rows);
}

static void row_outputs_store(const struct row_plan *plan, struct room *room, int64_t row,
                              size_t rows)
{
    const struct gni_program *program = plan->program;
    for (int i = 0; i < program->output_count; i++) {
        const struct gni_output *output = &program->outputs[i];
        if (!output->is_row)
            continue;
        const void *in[] = {room->rows[output->value]};
        plan->stores[i](output->data + (size_t)row * gni_dtypes[output->dtype].size, in, rows);
    }
}

static void rows_run(const struct row_plan *plan, struct room *room, size_t begin, size_t end)
{
    for (size_t row = begin; row < end; row += plan->group) {
        size_t left = end - row, rows = left < plan->group ? left : plan->group;
        row_inputs_load(plan, room, (int64_t)row, rows);
        for (int p = 0; p < plan->phases.count; p++)
            phase_run(plan, room, p, (int64_t)row, rows, rows < left - rows ? rows : left - rows);
        row_outputs_store(plan, room, (int64_t)row, rows);
    }
}

/* Items are rows. */
static void part_run(void *context, size_t begin, size_t end)
{
    const struct row_plan *plan = context;
    struct room room;
    same_load(plan, &room);
    rows_run(plan, &room, begin, end);
}

/* Items are chunks of rows: column_sums.h. */
static void chunks_run(void *context, size_t begin, size_t end)
{
    struct row_plan *plan = context;
    struct room room;
    same_load(plan, &room);
    for (size_t number = begin; number < end; number++) {
        int64_t row = (int64_t)number * plan->sums->chunk_rows;
        int64_t row_end = row + plan->sums->chunk_rows;
        if (!gni_column_chunk_init(&room.chunk, plan->sums, (int64_t)number)) {
            atomic_store(&plan->has_failed, true);
            return;
        }
        rows_run(plan, &room, (size_t)row, (size_t)(row_end < plan->rows ? row_end : plan->rows));
        gni_column_chunk_deinit(&room.chunk);
    }
}

/* ---- the whole ------------------------------------------------------------------------------------------- */

bool gni_cpu_rows_fit(int64_t rows, int64_t columns)
{
    return columns <= GNI_REDUCE_PART_COLUMNS || rows >= MANY_ROWS;
}

static bool has_reductions(const struct gni_program *program)
{
    for (int s = 0; s < program->step_count; s++)
        if (program->steps[s].kind == GNI_STEP_REDUCE)
            return true;
    return false;
}

static gn_status plan_run(struct row_plan *plan)
{
    enum {
        PART = 4 * GNI_PART
    };
    if (plan->register_count > REGISTERS_MOST || plan->listed_count > LISTED_MOST)
        return gni_error(GN_ERROR_COMPILATION,
                         "a row program has %d values at a time, more than %d",
                         plan->register_count, REGISTERS_MOST);
    if (plan->sums == NULL) {
        size_t grain = PART / plan->columns;
        grain = grain < plan->group ? plan->group : grain - grain % plan->group;
        gni_parallel_for((size_t)plan->rows, grain, part_run, plan);
        return GN_OK;
    }
    gni_parallel_for((size_t)plan->sums->chunks, 1, chunks_run, plan);
    if (atomic_load(&plan->has_failed))
        return gni_error_host_memory(plan->columns * sizeof(float));
    gni_column_sums_finish(plan->sums);
    return GN_OK;
}

gn_status gni_cpu_run_rows(struct gni_program *program)
{
    struct row_plan plan; /* large, and all that is read of it is set */
    if (gni_column_sums_count(program) == 0) {
        row_plan_make(&plan, program, NULL);
        return plan_run(&plan);
    }
    if (program->output_count == 1 && !program->outputs[0].is_narrowed && !has_reductions(program))
        return gni_cpu_sum_columns(program);
    struct gni_column_sums sums;
    GN_TRY(gni_column_sums_init(&sums, program));
    row_plan_make(&plan, program, &sums);
    gn_status status = plan_run(&plan);
    gni_column_sums_deinit(&sums);
    return status;
}

/* Chunks of rows keep all threads busy, or there is little to do. */
bool gni_cpu_columns_fit(int64_t rows, int64_t columns)
{
    enum {
        ELEMENTS_FEW = 1 << 16,
        COLUMNS_LEAST = 64,
        COLUMNS_MOST = 1 << 14,
    };
    if (columns < COLUMNS_LEAST || columns > COLUMNS_MOST || rows <= GNI_REDUCE_ROWS)
        return false;
    return rows * columns <= ELEMENTS_FEW ||
           rows / gni_column_chunk_rows(columns) >= gni_parallel_get_threads();
}
