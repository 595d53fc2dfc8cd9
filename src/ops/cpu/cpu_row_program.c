/*
 * cpu_row_program.c: row programs (program.h) on the CPU: rows in cache, on several threads.
 *
 *     up to half a tile       as many rows at a time as a tile has, at most GROUP_MOST
 *     longer rows             one at a time, tile by tile in each phase (row_phases.h)
 *
 * Full values are in registers: tiles of memory on the thread's stack, or where they lie. Row values are arrays of an element
 * for each row of the group; a full step reads one from a register that has it for each column, its *spread*. What several
 * phases read and costs much is kept for all columns, if there is room.
 *
 * Reductions add as gni_cpu_reduce() does: rows of up to GNI_SHORT_COLUMNS elements one by one, others by tiles, which begin
 * with the row. A program that ends in its only reduction and stores nothing else is done by that.
 */
#include "ops/cpu/cpu_ops.h"

#include "base/parallel.h"
#include "ops/cpu/plan.h"
#include "ops/row_phases.h"

#include <string.h>

enum {
    TILE = GNI_TILE_MOST,
    TILE_BYTES = TILE * GNI_ELEMENT_BYTES,
    REGISTERS_MOST = 48,
    GROUP_MOST = 64,
    KEPT_BYTES = 128 << 10,
};

_Static_assert(GROUP_MOST <= TILE, "a row step is one loop");

struct row_plan {
    const struct gni_program *program;
    struct gni_row_phases phases;
    struct gni_layout layout;
    int kept_ndim; /* dimensions of the layout that are not of rows */
    int64_t rows;
    size_t columns, group;                   /* of a row; rows at a time */
    bool is_direct[GNI_PROGRAM_INPUTS_MOST]; /* full, and read where it lies */
    gni_loop loops[GNI_PROGRAM_STEPS_MOST];
    gni_loop stores[GNI_PROGRAM_NODES_MOST];
    short targets
        [GNI_PROGRAM_VALUES_MOST]; /* the output that is written by the step itself; -1: none */
    short spreads
        [GNI_PROGRAM_VALUES_MOST];       /* the register of a row value for each column; -1: none */
    short kept[GNI_PROGRAM_VALUES_MOST]; /* the number of a kept value; -1: it is none */
    short places[GNI_ROW_PHASES_MOST]
                [GNI_PROGRAM_VALUES_MOST]; /* registers of full values; -1: none */
    int register_count, kept_count;
};

/* What a thread works in. */
struct room {
    _Alignas(64) char tiles[REGISTERS_MOST * TILE_BYTES];
    _Alignas(64) char kept[KEPT_BYTES];
    _Alignas(64) char rows[GNI_PROGRAM_VALUES_MOST][GROUP_MOST * GNI_ELEMENT_BYTES];
    const void *values[GNI_PROGRAM_VALUES_MOST]; /* full values of the current tile, and spreads */
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

static void outputs_plan(struct row_plan *plan)
{
    const struct gni_program *program = plan->program;
    for (int v = 0; v < value_count(plan); v++)
        plan->targets[v] = -1;
    for (int i = 0; i < program->output_count; i++) {
        const struct gni_output *output = &program->outputs[i];
        gn_dtype held = gni_program_held(program, output->value);
        plan->stores[i] = gni_loop_convert(held, output->dtype);
        if (!output->is_row && !is_input(plan, output->value) && !program->is_row[output->value] &&
            held == output->dtype && !gni_row_has(&plan->phases.kept, output->value) &&
            plan->targets[output->value] < 0)
            plan->targets[output->value] = (short)i;
    }
}

/* Whether a full step, a reduction or a full output reads a row value. */
static bool is_spread(const struct row_plan *plan, int value)
{
    const struct gni_program *program = plan->program;
    for (int s = 0; s < program->step_count; s++) {
        const struct gni_step *step = &program->steps[s];
        bool is_full = step->kind == GNI_STEP_REDUCE || !program->is_row[program->input_count + s];
        for (int i = 0; i < 3 && is_full; i++)
            if (step->in[i] == value)
                return true;
    }
    for (int i = 0; i < program->output_count; i++)
        if (program->outputs[i].value == value && !program->outputs[i].is_row)
            return true;
    return false;
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
            if (gni_row_is_needed(&plan->phases, phase, program->input_count + s))
                last = s;
            if (gni_row_is_reduced_in(&plan->phases, phase, program->input_count + s))
                return program->step_count;
        }
    for (int i = 0; i < program->output_count; i++)
        if (program->outputs[i].value == value && gni_row_is_stored_in(&plan->phases, phase, i))
            return program->step_count;
    return last;
}

/* Registers of the values of a phase, from number `first` on; how many there are then. */
static int phase_plan(struct row_plan *plan, int phase, int first)
{
    const struct gni_program *program = plan->program;
    short idle[GNI_PROGRAM_VALUES_MOST], *places = plan->places[phase];
    int idle_count = 0, count = first;
    for (int v = 0; v < value_count(plan); v++)
        places[v] = -1;
    for (int v = 0; v < program->input_count; v++)
        if (gni_row_is_needed(&plan->phases, phase, v) && !plan->is_direct[v])
            places[v] = (short)count++;
    for (int s = 0; s < program->step_count; s++) {
        int value = program->input_count + s;
        if (!gni_row_is_needed(&plan->phases, phase, value) || plan->kept[value] >= 0)
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
    int spread_count = 0;
    for (int v = 0; v < value_count(plan); v++)
        plan->spreads[v] =
            plan->program->is_row[v] && is_spread(plan, v) ? (short)spread_count++ : (short)-1;
    plan->register_count = spread_count;
    for (int p = 0; p < plan->phases.count; p++) {
        int count = phase_plan(plan, p, spread_count);
        plan->register_count = count > plan->register_count ? count : plan->register_count;
    }
}

/* Numbers the kept values; false if there is no room for them. */
static bool kept_plan(struct row_plan *plan)
{
    size_t count = plan->columns <= TILE ? plan->group * plan->columns : plan->columns;
    plan->kept_count = 0;
    for (int v = 0; v < value_count(plan); v++)
        plan->kept[v] = gni_row_has(&plan->phases.kept, v) ? (short)plan->kept_count++ : (short)-1;
    return (size_t)plan->kept_count * count * GNI_ELEMENT_BYTES <= KEPT_BYTES;
}

static void row_plan_make(struct row_plan *plan, const struct gni_program *program)
{
    plan->program = program;
    plan->kept_ndim = gni_program_join_rows(program, &plan->layout);
    plan->kept_ndim = plan->layout.ndim - plan->kept_ndim;
    plan->columns = (size_t)program->columns;
    plan->rows = program->count / program->columns;
    plan->group = TILE / plan->columns;
    plan->group = plan->group < 1 ? 1 : plan->group > GROUP_MOST ? GROUP_MOST : plan->group;
    gni_row_phases_make(&plan->phases, program, true);
    if (!kept_plan(plan)) {
        gni_row_phases_make(&plan->phases, program, false);
        (void)kept_plan(plan);
    }
    for (int i = 0; i < program->input_count; i++)
        plan->is_direct[i] = program->inputs[i].storage != NULL && !program->is_row[i] &&
                             is_dense(plan, i, plan->group > 1);
    for (int s = 0; s < program->step_count; s++)
        plan->loops[s] =
            program->steps[s].kind == GNI_STEP_REDUCE ? NULL : gni_step_loop(&program->steps[s]);
    outputs_plan(plan);
    registers_plan(plan);
}

/* ---- running: memory --------------------------------------------------------------------------------- */

static char *tile_of(struct room *room, short place)
{
    return room->tiles + (size_t)place * TILE_BYTES;
}

static char *kept_of(const struct row_plan *plan, struct room *room, int value)
{
    size_t count = plan->columns <= TILE ? plan->group * plan->columns : plan->columns;
    return room->kept + (size_t)plan->kept[value] * count * GNI_ELEMENT_BYTES;
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
        size_t rest = column,
               run = (size_t)layout->sizes[last] - column % (size_t)layout->sizes[last];
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

/* The elements of an input in a tile: some columns of a row, or all of several rows. */
static const void *input_load(const struct row_plan *plan, struct room *room, int phase, int input,
                              int64_t row, size_t rows, size_t column, size_t count)
{
    size_t size = size_of(plan, input);
    if (plan->is_direct[input])
        return row_of(plan, input, row) + column * size;
    char *to = tile_of(room, plan->places[phase][input]);
    for (size_t i = 0; i < rows; i++)
        columns_gather(plan, input, row_of(plan, input, row + (int64_t)i), column, count,
                       to + i * count * size);
    return to;
}

/* A row value for each column: of each row of the group, or of as many as a tile has. */
static void value_spread(const struct row_plan *plan, struct room *room, int value, size_t rows)
{
    if (plan->spreads[value] < 0)
        return;
    size_t size = size_of(plan, value), length = plan->columns < TILE ? plan->columns : TILE;
    char *to = tile_of(room, plan->spreads[value]);
    for (size_t i = 0; i < rows; i++) {
        memcpy(to, room->rows[value] + i * size, size);
        for (size_t done = size; done < length * size; done *= 2)
            memcpy(to + done, to, done < length * size - done ? done : length * size - done);
        to += length * size;
    }
    room->values[value] = tile_of(room, plan->spreads[value]);
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
        for (size_t k = 0; k < rows; k++)
            memcpy(room->rows[i] + k * size, row_of(plan, i, row + (int64_t)k), size);
        value_spread(plan, room, i, rows);
    }
}

/* Accumulators become the result of a reduction, for each row. */
static void reduction_end(const struct row_plan *plan, struct room *room, int value, size_t rows)
{
    const struct gni_step *step = step_of(plan, value);
    gn_dtype wide = gni_accumulator_type(step->reduction, step->from);
    double *sums = (double *)(void *)room->rows[value];
    if (step->reduction == GN_REDUCE_MEAN)
        for (size_t i = 0; i < rows; i++)
            sums[i] /= (double)plan->columns;
    const void *in[] = {room->rows[value]};
    _Alignas(64) char result[GROUP_MOST * GNI_ELEMENT_BYTES];
    gni_loop_convert(wide, step->half)(result, in, rows);
    in[0] = result;
    gni_loop_convert(step->half, step->held)(room->rows[value], in, rows);
}

/* Row values that a phase begins with. */
static void row_values_run(const struct row_plan *plan, struct room *room, int phase, size_t rows)
{
    const struct gni_program *program = plan->program;
    for (int v = program->input_count; v < value_count(plan); v++) {
        if (!program->is_row[v] || plan->phases.phase[v] != phase)
            continue;
        const struct gni_step *step = step_of(plan, v);
        const void *in[3] = {NULL};
        for (int i = 0; i < 3 && step->in[i] >= 0; i++)
            in[i] = room->rows[step->in[i]];
        if (step->kind == GNI_STEP_REDUCE)
            reduction_end(plan, room, v, rows);
        else
            plan->loops[v - program->input_count](room->rows[v], in, rows);
        value_spread(plan, room, v, rows);
    }
}

/* ---- running: columns ---------------------------------------------------------------------------------- */

/* A tile: `count` elements from a column of a row on, or all of several rows. */
struct tile {
    int64_t row;
    size_t rows, column, count; /* count: of each row */
};

static char *output_at(const struct row_plan *plan, int output, const struct tile *tile)
{
    const struct gni_output *one = &plan->program->outputs[output];
    return one->data +
           ((size_t)tile->row * plan->columns + tile->column) * gni_dtypes[one->dtype].size;
}

static void steps_run(const struct row_plan *plan, struct room *room, int phase,
                      const struct tile *tile)
{
    const struct gni_program *program = plan->program;
    for (int v = 0; v < value_count(plan); v++) {
        if (!gni_row_is_needed(&plan->phases, phase, v))
            continue;
        if (is_input(plan, v)) {
            room->values[v] =
                input_load(plan, room, phase, v, tile->row, tile->rows, tile->column, tile->count);
            continue;
        }
        if (plan->kept[v] >= 0)
            room->values[v] = kept_of(plan, room, v) + tile->column * size_of(plan, v);
        else if (plan->places[phase][v] >= 0)
            room->values[v] = tile_of(room, plan->places[phase][v]);
        else
            room->values[v] = output_at(plan, plan->targets[v], tile);
        if (plan->kept[v] >= 0 && plan->phases.phase[v] < phase)
            continue;
        const struct gni_step *step = step_of(plan, v);
        const void *in[3] = {NULL};
        for (int i = 0; i < 3 && step->in[i] >= 0; i++)
            in[i] = room->values[step->in[i]];
        plan->loops[v - program->input_count]((void *)(uintptr_t)room->values[v], in,
                                              tile->rows * tile->count);
    }
}

static void reductions_add(const struct row_plan *plan, struct room *room, int phase,
                           const struct tile *tile)
{
    for (int v = plan->program->input_count; v < value_count(plan); v++) {
        if (!gni_row_is_reduced_in(&plan->phases, phase, v))
            continue;
        const struct gni_step *step = step_of(plan, v);
        struct gni_reducers reducers =
            gni_reducers_find(gni_reduction_of(step->reduction), step->from);
        const char *in = room->values[step->in[0]];
        size_t size = gni_dtypes[step->from].size;
        size_t wide = gni_dtypes[gni_accumulator_type(step->reduction, step->from)].size;
        if (plan->columns <= GNI_SHORT_COLUMNS)
            reducers.short_rows(room->rows[v], in, tile->rows, tile->count);
        else
            for (size_t i = 0; i < tile->rows; i++)
                reducers.one(room->rows[v] + i * wide, in + i * tile->count * size, tile->count);
    }
}

static void outputs_store(const struct row_plan *plan, struct room *room, int phase,
                          const struct tile *tile)
{
    const struct gni_program *program = plan->program;
    for (int i = 0; i < program->output_count; i++) {
        short value = program->outputs[i].value;
        if (!gni_row_is_stored_in(&plan->phases, phase, i) || plan->targets[value] == i)
            continue;
        const void *in[] = {room->values[value]};
        plan->stores[i](output_at(plan, i, tile), in, tile->rows * tile->count);
    }
}

static void phase_run(const struct row_plan *plan, struct room *room, int phase, int64_t row,
                      size_t rows)
{
    row_values_run(plan, room, phase, rows);
    if (!gni_row_has_loop(&plan->phases, phase))
        return;
    for (int v = plan->program->input_count; v < value_count(plan); v++)
        if (gni_row_is_reduced_in(&plan->phases, phase, v))
            gni_accumulators_start(step_of(plan, v)->reduction, step_of(plan, v)->from,
                                   room->rows[v], rows);
    for (size_t column = 0; column < plan->columns; column += TILE) {
        size_t left = plan->columns - column;
        const struct tile tile = {
            .row = row, .rows = rows, .column = column, .count = left < TILE ? left : TILE};
        steps_run(plan, room, phase, &tile);
        reductions_add(plan, room, phase, &tile);
        outputs_store(plan, room, phase, &tile);
    }
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

/* Items are rows. */
static void part_run(void *context, size_t begin, size_t end)
{
    const struct row_plan *plan = context;
    const struct gni_program *program = plan->program;
    struct room room;
    for (int i = 0; i < program->input_count; i++) {
        if (program->inputs[i].storage != NULL)
            continue;
        for (size_t k = 0; k < plan->group; k++)
            memcpy(room.rows[i] + k * size_of(plan, i), &program->inputs[i].number,
                   size_of(plan, i));
        value_spread(plan, &room, i, plan->group);
    }
    for (size_t row = begin; row < end; row += plan->group) {
        size_t rows = end - row < plan->group ? end - row : plan->group;
        row_inputs_load(plan, &room, (int64_t)row, rows);
        for (int p = 0; p < plan->phases.count; p++)
            phase_run(plan, &room, p, (int64_t)row, rows);
        row_outputs_store(plan, &room, (int64_t)row, rows);
    }
}

/* ---- the whole ------------------------------------------------------------------------------------------- */

/* Whether a program is a reduction and what comes before it, and nothing else is stored. */
static bool is_plain_reduction(const struct gni_program *program)
{
    int last = program->step_count - 1;
    if (program->output_count != 1 || program->outputs[0].value != program->input_count + last ||
        program->steps[last].kind != GNI_STEP_REDUCE ||
        program->outputs[0].dtype != program->steps[last].half)
        return false;
    for (int s = 0; s < last; s++)
        if (program->steps[s].kind == GNI_STEP_REDUCE)
            return false;
    return true;
}

static gn_status plain_reduction_run(struct gni_program *program)
{
    const struct gni_step step = program->steps[--program->step_count];
    const struct gni_reduction_task task = {.reduction = step.reduction,
                                            .kept = program->count / program->columns,
                                            .reduced = program->columns};
    const struct gni_output output = program->outputs[0];
    program->output_count = 0;
    return gni_cpu_reduce_to(program, step.in[0], &task, output.dtype, output.data);
}

bool gni_cpu_rows_fit(int64_t rows, int64_t columns)
{
    (void)rows;
    return columns <= GNI_REDUCE_PART_COLUMNS;
}

gn_status gni_cpu_run_rows(struct gni_program *program)
{
    enum {
        PART = 4 * GNI_PART
    };
    struct row_plan plan; /* large, and all that is read of it is set */
    if (is_plain_reduction(program))
        return plain_reduction_run(program);
    row_plan_make(&plan, program);
    if (plan.register_count > REGISTERS_MOST)
        return gni_error(GN_ERROR_COMPILATION,
                         "a row program has %d values at a time, more than %d", plan.register_count,
                         REGISTERS_MOST);
    size_t grain = PART / plan.columns;
    grain = grain < plan.group ? plan.group : grain - grain % plan.group;
    gni_parallel_for((size_t)plan.rows, grain, part_run, &plan);
    return GN_OK;
}
