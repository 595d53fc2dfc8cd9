/*
 * cpu_run.c: a program on the CPU, tile by tile in the first-level cache, on several threads.
 */
#include "ops/cpu/cpu_ops.h"

#include "base/parallel.h"
#include "ops/cpu/plan.h"

#include <string.h>

gni_loop gni_step_loop(const struct gni_step *step)
{
    switch (step->kind) {
    case GNI_STEP_OP:
        return gni_loop_find(step->op, step->from);
    case GNI_STEP_CONVERT:
        return gni_loop_convert(step->from, step->held);
    case GNI_STEP_ROUND:
        return gni_loop_round(step->half);
    case GNI_STEP_REDUCE: /* of row programs */
        break;
    }
    return NULL;
}

/* Whether an input is read where an output is written. */
static bool is_at_output(const struct gni_plan *plan, int input, int output)
{
    return plan->is_direct[input] &&
           plan->program->inputs[input].data == plan->program->outputs[output].data;
}

/* Whether steps behind one, or stores, read what an output is written over. */
static bool is_read_behind(const struct gni_plan *plan, int step, int output)
{
    const struct gni_program *program = plan->program;
    for (int input = 0; input < program->input_count; input++) {
        if (!is_at_output(plan, input, output))
            continue;
        for (int s = step + 1; s < program->step_count; s++)
            for (int i = 0; i < 3; i++)
                if (program->steps[s].in[i] == input)
                    return true;
        for (int i = 0; i < program->output_count; i++)
            if (plan->source[i] == input)
                return true;
    }
    return false;
}

/* Where a step writes: an output of its type, once. */
static short step_target(const struct gni_plan *plan, int step)
{
    const struct gni_program *program = plan->program;
    short value = (short)(program->input_count + step);
    for (short i = 0; i < program->output_count; i++)
        if (program->outputs[i].value == value && !program->outputs[i].is_strided &&
            program->outputs[i].dtype == program->steps[step].held)
            return is_read_behind(plan, step, i) ? -1 : i;
    return -1;
}

/* An input that one output is, and another is written over, is read before both. */
static void inputs_part(struct gni_plan *plan)
{
    const struct gni_program *program = plan->program;
    for (int i = 0; i < program->output_count; i++)
        for (int k = 0; k < program->output_count; k++) {
            short input = plan->source[i];
            if (i != k && input < program->input_count && is_at_output(plan, input, k))
                plan->is_direct[input] = false;
        }
}

/* Registers by the order of last use. */
static void registers_assign(struct gni_plan *plan, short kept)
{
    const struct gni_program *program = plan->program;
    int count = program->input_count + program->step_count;
    short last[GNI_PROGRAM_VALUES_MOST], free_list[GNI_PROGRAM_VALUES_MOST];
    int free_count = 0;
    for (int v = 0; v < count; v++) {
        plan->place[v] = -1;
        last[v] = -1;
    }
    for (short s = 0; s < program->step_count; s++)
        for (int i = 0; i < 3 && program->steps[s].in[i] >= 0; i++)
            last[program->steps[s].in[i]] = s;
    for (int i = 0; i < program->output_count; i++)
        last[plan->source[i]] = (short)program->step_count;
    if (kept >= 0)
        last[kept] = (short)program->step_count;
    plan->register_count = 0;
    for (int i = 0; i < program->input_count; i++) /* filled before the first step, or for good */
        if (!plan->is_direct[i])
            plan->place[i] = (short)plan->register_count++;
    for (int s = 0; s < program->step_count; s++) {
        int value = program->input_count + s;
        if (plan->target[s] < 0 && plan->loops[s] != NULL)
            plan->place[value] =
                free_count > 0 ? free_list[--free_count] : (short)plan->register_count++;
        for (int i = 0; i < 3 && program->steps[s].in[i] >= 0; i++) {
            int operand = program->steps[s].in[i];
            if (operand >= program->input_count && last[operand] == s &&
                plan->place[operand] >= 0) {
                free_list[free_count++] = plan->place[operand];
                last[operand] = -1;
            }
        }
    }
}

/* A half that is stored needs no rounding before: the store rounds the value from which it was made. */
static short source_find(const struct gni_program *program, const struct gni_output *output)
{
    int step = output->value - program->input_count;
    bool is_rounded = step >= 0 && program->steps[step].kind == GNI_STEP_ROUND &&
                      program->steps[step].half == output->dtype;
    return is_rounded ? program->steps[step].in[0] : output->value;
}

/* True if a later step, an output or the caller reads the value of a step. */
static bool step_is_read(const struct gni_plan *plan, int step, short kept)
{
    const struct gni_program *program = plan->program;
    short value = (short)(program->input_count + step);
    bool is_read = value == kept;
    for (int s = step + 1; s < program->step_count; s++)
        for (int i = 0; i < 3; i++)
            is_read |= program->steps[s].in[i] == value;
    for (int i = 0; i < program->output_count; i++)
        is_read |= plan->source[i] == value;
    return is_read;
}

/* Whether an input's elements lie one behind the other, in the order in which they are computed. */
static bool input_is_direct(const struct gni_plan *plan, int input)
{
    int64_t count = 1;
    bool is_direct = plan->program->inputs[input].storage != NULL;
    for (int d = plan->layout.ndim - 1; is_direct && d >= 0; d--) {
        is_direct = plan->layout.strides[input][d] == count;
        count *= plan->layout.sizes[d];
    }
    return is_direct;
}

/* Whether an input in memory is one element for all, as a tensor without dimensions is. */
static bool input_is_single(const struct gni_plan *plan, int input)
{
    bool is_single = plan->program->inputs[input].storage != NULL && plan->layout.ndim > 0;
    for (int d = 0; is_single && d < plan->layout.ndim; d++)
        is_single = plan->layout.strides[input][d] == 0;
    return is_single;
}

/* Inputs whose elements are neighbours in long runs: the parts of a matrix, a row for all rows. An output with strides may be
 * over them. */
static void near_find(struct gni_plan *plan)
{
    enum {
        RUN_LEAST = 256, /* elements: shorter tiles take longer than copies into whole ones */
    };
    const struct gni_program *program = plan->program;
    int last = plan->layout.ndim - 1;
    bool may_be = last > 0 && plan->layout.sizes[last] >= RUN_LEAST;
    for (int i = 0; i < program->output_count; i++)
        may_be &= !program->outputs[i].is_strided;
    plan->has_near = false;
    for (int i = 0; i < program->input_count; i++) {
        plan->is_near[i] = may_be && program->inputs[i].storage != NULL && !plan->is_direct[i] &&
                           plan->layout.strides[i][last] == 1;
        plan->has_near |= plan->is_near[i];
    }
}

void gni_plan_make(struct gni_plan *plan, const struct gni_program *program, short kept)
{
    plan->program = program;
    gni_program_join(program, &plan->layout);
    for (int i = 0; i < program->input_count; i++)
        plan->is_direct[i] = input_is_direct(plan, i);
    for (int i = 0; i < program->input_count; i++)
        plan->is_single[i] = input_is_single(plan, i);
    near_find(plan);
    for (int i = 0; i < program->output_count; i++) {
        plan->source[i] = source_find(program, &program->outputs[i]);
        gn_dtype held = gni_program_held(program, plan->source[i]);
        plan->stores[i] = gni_loop_convert(held, program->outputs[i].dtype);
    }
    inputs_part(plan);
    for (int s = 0; s < program->step_count; s++) {
        bool is_round = program->steps[s].kind == GNI_STEP_ROUND;
        bool is_needed = !is_round || step_is_read(plan, s, kept);
        plan->loops[s] = is_needed ? gni_step_loop(&program->steps[s]) : NULL;
        plan->target[s] = step_target(plan, s);
        gni_assert(plan->loops[s] != NULL || !is_needed);
    }
    registers_assign(plan, kept);
    size_t tile =
        GNI_SCRATCH_BYTES / GNI_ELEMENT_BYTES / (size_t)(plan->register_count + 1) & ~(size_t)7;
    plan->tile = tile < GNI_TILE_MOST ? tile : GNI_TILE_MOST;
}

/* ---- strided memory --------------------------------------------------------------------------- */

/* Where a run of elements begins: the index in each dimension, and the offset in elements. */
static int64_t cursor_set(const struct gni_plan *plan, const int64_t *strides, int64_t position,
                          int64_t *index)
{
    int64_t offset = 0;
    for (int d = plan->layout.ndim - 1; d >= 0; d--) {
        index[d] = position % plan->layout.sizes[d];
        position /= plan->layout.sizes[d];
        offset += index[d] * strides[d];
    }
    return offset;
}

/* `done` elements of a dimension were walked, and all of the later ones. */
static int64_t cursor_advance(const struct gni_plan *plan, const int64_t *strides, int d,
                              int64_t done, int64_t *index)
{
    int64_t offset = done * strides[d];
    index[d] += done;
    while (d > 0 && index[d] == plan->layout.sizes[d]) {
        offset -= index[d] * strides[d];
        index[d] = 0;
        d--;
        index[d]++;
        offset += strides[d];
    }
    return offset;
}

#define SCATTER_RUN(type)                                          \
    do {                                                           \
        const type *from_typed = (const type *)(const void *)from; \
        type *to_typed = (type *)(void *)to;                       \
        for (size_t i = 0; i < count; i++)                         \
            to_typed[(int64_t)i * step] = from_typed[i];           \
    } while (0)

/* The opposite of a gather. */
static void scatter_run(char *to, int64_t step, const char *from, size_t size, size_t count)
{
    if (step == 1) {
        memcpy(to, from, size * count);
        return;
    }
    switch (size) {
    case 1:
        SCATTER_RUN(uint8_t);
        break;
    case 2:
        SCATTER_RUN(uint16_t);
        break;
    case 4:
        SCATTER_RUN(uint32_t);
        break;
    default:
        SCATTER_RUN(uint64_t);
        break;
    }
}

#define COPY_ROWS(type)                                                                \
    do {                                                                               \
        const type *from_typed = (const type *)(const void *)from;                     \
        type *to_typed = (type *)(void *)to;                                           \
        for (int64_t i = 0; i < rows; i++, to_typed += to_row, from_typed += from_row) \
            for (int64_t k = 0; k < columns; k++)                                      \
                to_typed[k * to_step] = from_typed[k * from_step];                     \
    } while (0)

/* Rows that are too short for a call each. */
static void copy_rows(char *to, int64_t to_row, int64_t to_step, const char *from, int64_t from_row,
                      int64_t from_step, size_t size, int64_t rows, int64_t columns)
{
    switch (size) {
    case 1:
        COPY_ROWS(uint8_t);
        break;
    case 2:
        COPY_ROWS(uint16_t);
        break;
    case 4:
        COPY_ROWS(uint32_t);
        break;
    default:
        COPY_ROWS(uint64_t);
        break;
    }
}

/* Moves whole rows between memory and a tile, if rows are short, and the next one is whole; how many elements. */
static size_t rows_move(const struct gni_plan *plan, const int64_t *strides, char *memory,
                        char *tile, size_t size, size_t count, bool is_load, const int64_t *index)
{
    enum {
        SHORT_MOST = 32
    };
    int last = plan->layout.ndim - 1;
    int64_t columns = plan->layout.sizes[last];
    if (last < 1 || columns > SHORT_MOST || index[last] != 0)
        return 0;
    int64_t rows = (int64_t)count / columns, left = plan->layout.sizes[last - 1] - index[last - 1];
    rows = rows < left ? rows : left;
    if (is_load)
        copy_rows(tile, columns, 1, memory, strides[last - 1], strides[last], size, rows, columns);
    else
        copy_rows(memory, strides[last - 1], strides[last], tile, columns, 1, size, rows, columns);
    return (size_t)(rows * columns);
}

/* Copies elements between memory with strides and a tile. */
static void tile_move(const struct gni_plan *plan, const int64_t *strides, char *memory, char *tile,
                      size_t size, int64_t position, size_t count, bool is_load)
{
    int64_t index[GN_DIMENSIONS_MAX];
    int64_t offset = cursor_set(plan, strides, position, index);
    int last = plan->layout.ndim - 1;
    gni_gather gather = gni_gather_find(size);
    for (size_t done = 0; done < count;) {
        size_t whole = rows_move(plan, strides, memory + offset * (int64_t)size, tile + done * size,
                                 size, count - done, is_load, index);
        if (whole > 0) {
            offset += cursor_advance(plan, strides, last - 1,
                                     (int64_t)whole / plan->layout.sizes[last], index);
            done += whole;
            continue;
        }
        size_t run = (size_t)(plan->layout.sizes[last] - index[last]);
        if (run > count - done)
            run = count - done;
        char *at = memory + offset * (int64_t)size, *in_tile = tile + done * size;
        if (is_load)
            gather(in_tile, at, strides[last], run);
        else
            scatter_run(at, strides[last], in_tile, size, run);
        offset += cursor_advance(plan, strides, last, (int64_t)run, index);
        done += run;
    }
}

/* Where elements of an input that is near lie, if they are in one run; else NULL. */
static char *near_at(const struct gni_plan *plan, int input, int64_t position, size_t count)
{
    int64_t index[GN_DIMENSIONS_MAX], run = plan->layout.sizes[plan->layout.ndim - 1];
    if (!plan->is_near[input] || position % run + (int64_t)count > run)
        return NULL;
    const struct gni_input *one = &plan->program->inputs[input];
    int64_t offset = cursor_set(plan, plan->layout.strides[input], position, index);
    return (char *)(uintptr_t)one->data + offset * (int64_t)gni_dtypes[one->held].size;
}

/* ---- running ---------------------------------------------------------------------------------- */

/* What is there is copied behind itself, twice as much each time: one element after the other would take longer than
 * the rest of a small operation. */
static void number_fill(char *tile, uint64_t number, size_t size, size_t count)
{
    size_t total = size * count;
    memcpy(tile, &number, size);
    for (size_t done = size; done < total; done *= 2)
        memcpy(tile + done, tile, done < total - done ? done : total - done);
}

static char *tile_of(const struct gni_run *run, short place)
{
    return run->tiles + (size_t)place * run->plan->tile * GNI_ELEMENT_BYTES;
}

void gni_run_begin(struct gni_run *run, const struct gni_plan *plan, char *tiles)
{
    const struct gni_program *program = plan->program;
    run->plan = plan;
    run->tiles = tiles;
    for (int i = 0; i < program->input_count; i++) {
        if (plan->place[i] < 0)
            continue;
        run->values[i] = tile_of(run, plan->place[i]);
        size_t size = gni_dtypes[program->inputs[i].held].size;
        uint64_t number = program->inputs[i].number;
        if (plan->is_single[i])
            memcpy(&number, program->inputs[i].data, size);
        if (plan->is_single[i] || program->inputs[i].data == NULL)
            number_fill(run->values[i], number, size, plan->tile);
    }
}

void gni_run_tile(struct gni_run *run, int64_t position, size_t count)
{
    const struct gni_plan *plan = run->plan;
    const struct gni_program *program = plan->program;
    for (int i = 0; i < program->input_count; i++) {
        const struct gni_input *input = &program->inputs[i];
        size_t size = gni_dtypes[input->held].size;
        if (plan->is_direct[i])
            run->values[i] = (char *)(uintptr_t)input->data + position * (int64_t)size;
        else if (input->data != NULL && !plan->is_single[i] &&
                 (run->values[i] = near_at(plan, i, position, count)) == NULL) {
            run->values[i] = tile_of(run, plan->place[i]);
            tile_move(plan, plan->layout.strides[i], (char *)(uintptr_t)input->data, run->values[i],
                      size, position, count, true);
        }
    }
    for (int s = 0; s < program->step_count; s++) {
        if (plan->loops[s] == NULL)
            continue;
        const struct gni_step *step = &program->steps[s];
        int value = program->input_count + s;
        short target = plan->target[s];
        const void *in[3] = {NULL};
        for (int i = 0; i < 3 && step->in[i] >= 0; i++)
            in[i] = run->values[step->in[i]];
        run->values[value] = target >= 0 ? (void *)(program->outputs[target].data +
                                                    position * (int64_t)gni_dtypes[step->held].size)
                                         : tile_of(run, plan->place[value]);
        plan->loops[s](run->values[value], in, count);
    }
}

/* Values that no step has put where they belong. */
static void outputs_store(struct gni_run *run, char *scratch, int64_t position, size_t count)
{
    const struct gni_plan *plan = run->plan;
    const struct gni_program *program = plan->program;
    for (int i = 0; i < program->output_count; i++) {
        const struct gni_output *output = &program->outputs[i];
        int step = output->value - program->input_count;
        if (step >= 0 && plan->target[step] == i)
            continue;
        size_t size = gni_dtypes[output->dtype].size;
        const void *in = run->values[plan->source[i]];
        char *to = output->is_strided ? scratch : output->data + position * (int64_t)size;
        plan->stores[i](to, &in, count);
        if (output->is_strided && plan->layout.ndim > 0)
            tile_move(plan, plan->layout.output_strides[i], output->data, scratch, size, position,
                      count, false);
        else if (output->is_strided)
            memcpy(output->data, scratch, size);
    }
}

static void part_run(void *context, size_t begin, size_t end)
{
    const struct gni_plan *plan = context;
    _Alignas(64) char tiles[GNI_SCRATCH_BYTES];
    struct gni_run run;
    gni_run_begin(&run, plan, tiles);
    size_t length = plan->has_near ? (size_t)plan->layout.sizes[plan->layout.ndim - 1] : SIZE_MAX;
    size_t count;
    for (size_t at = begin; at < end; at += count) {
        size_t left = length - at % length; /* of a run */
        count = end - at < plan->tile ? end - at : plan->tile;
        count = count < left ? count : left;
        gni_run_tile(&run, (int64_t)at, count);
        outputs_store(&run, tile_of(&run, (short)plan->register_count), (int64_t)at, count);
    }
}

gn_status gni_cpu_run(struct gni_program *program, gn_stream *stream)
{
    struct gni_plan plan;
    (void)stream;
    if (program->row_ndim > 0)
        return gni_cpu_run_rows(program);
    if (program->count == 0)
        return GN_OK;
    gni_plan_make(&plan, program, -1);
    gni_parallel_for((size_t)program->count, GNI_PART, part_run, &plan);
    return GN_OK;
}
