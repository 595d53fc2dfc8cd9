#include "ops/cpu/run.h"

#include "base/host.h"
#include "base/parallel.h"

#include <math.h>
#include <string.h>

enum {
    TILE_MOST = 1024,          /* elements */
    ELEMENT_BYTES = 8,         /* of the widest type */
    SCRATCH_BYTES = 256 << 10, /* on the stack of a thread: many registers have shorter tiles */
    PART = 16 * TILE_MOST,     /* elements that a thread takes at a time */
};

_Static_assert((GNI_PROGRAM_VALUES_MOST + 1) * 8 * ELEMENT_BYTES <= SCRATCH_BYTES,
               "a tile has at least 8 elements");

/* ---- before running: what is known of each value ---------------------------------------------- */

struct plan {
    const struct gni_program *program;
    int ndim; /* after neighbouring dimensions are joined */
    int64_t sizes[GN_DIMENSIONS_MAX];
    int64_t strides[GNI_PROGRAM_INPUTS_MOST][GN_DIMENSIONS_MAX];
    int64_t output_strides[GNI_PROGRAM_NODES_MOST][GN_DIMENSIONS_MAX];
    bool is_direct[GNI_PROGRAM_INPUTS_MOST]; /* contiguous: read where it is */
    short place[GNI_PROGRAM_VALUES_MOST];    /* the register of a value; -1: none */
    short target[GNI_PROGRAM_STEPS_MOST];    /* the output that a step writes by itself; -1: none */
    gni_loop loops[GNI_PROGRAM_STEPS_MOST];
    gni_loop stores[GNI_PROGRAM_NODES_MOST]; /* conversion for an output; NULL: none */
    int register_count;
    size_t tile; /* elements */
};

/* Joins dimensions along which all inputs and outputs go on as if they were one. */
static void dimensions_join(struct plan *plan)
{
    const struct gni_program *program = plan->program;
    int64_t contiguous[GN_DIMENSIONS_MAX];
    gni_strides_contiguous(program->ndim, program->sizes, contiguous);
    plan->ndim = 0;
    for (int d = 0; d < program->ndim; d++) {
        if (program->sizes[d] == 1)
            continue;
        int last = plan->ndim - 1;
        bool is_joined = last >= 0;
        for (int i = 0; i < program->input_count && is_joined; i++)
            is_joined = program->inputs[i].data == NULL ||
                        plan->strides[i][last] == program->inputs[i].strides[d] * program->sizes[d];
        for (int i = 0; i < program->output_count && is_joined; i++)
            is_joined =
                !program->outputs[i].is_strided ||
                plan->output_strides[i][last] == program->outputs[i].strides[d] * program->sizes[d];
        int at = is_joined ? last : plan->ndim++;
        plan->sizes[at] = is_joined ? plan->sizes[at] * program->sizes[d] : program->sizes[d];
        for (int i = 0; i < program->input_count; i++)
            plan->strides[i][at] = program->inputs[i].strides[d];
        for (int i = 0; i < program->output_count; i++)
            plan->output_strides[i][at] =
                program->outputs[i].is_strided ? program->outputs[i].strides[d] : contiguous[d];
    }
    for (int i = 0; i < program->input_count; i++)
        plan->is_direct[i] = program->inputs[i].data != NULL &&
                             (plan->ndim == 0 || (plan->ndim == 1 && plan->strides[i][0] == 1));
}

static gni_loop step_loop(const struct gni_step *step)
{
    switch (step->kind) {
    case GNI_STEP_OP:
        return gni_loop_find(step->op, step->from);
    case GNI_STEP_CONVERT:
        return gni_loop_convert(step->from, step->held);
    case GNI_STEP_ROUND:
        return gni_loop_round(step->half);
    }
    return NULL;
}

/* Where a step writes: an output of its type, once. */
static short step_target(const struct plan *plan, int step)
{
    const struct gni_program *program = plan->program;
    short value = (short)(program->input_count + step);
    for (short i = 0; i < program->output_count; i++)
        if (program->outputs[i].value == value && !program->outputs[i].is_strided &&
            program->outputs[i].dtype == program->steps[step].held)
            return i;
    return -1;
}

/* Registers by the order of last use. */
static void registers_assign(struct plan *plan, short kept)
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
        last[program->outputs[i].value] = (short)program->step_count;
    if (kept >= 0)
        last[kept] = (short)program->step_count;
    plan->register_count = 0;
    for (int i = 0; i < program->input_count; i++) /* filled before the first step, or for good */
        if (!plan->is_direct[i])
            plan->place[i] = (short)plan->register_count++;
    for (int s = 0; s < program->step_count; s++) {
        int value = program->input_count + s;
        if (plan->target[s] < 0)
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

static void plan_make(struct plan *plan, const struct gni_program *program, short kept)
{
    plan->program = program;
    dimensions_join(plan);
    for (int s = 0; s < program->step_count; s++) {
        plan->loops[s] = step_loop(&program->steps[s]);
        plan->target[s] = step_target(plan, s);
        gni_assert(plan->loops[s] != NULL);
    }
    for (int i = 0; i < program->output_count; i++) {
        gn_dtype held = gni_program_held(program, program->outputs[i].value);
        plan->stores[i] = gni_loop_convert(held, program->outputs[i].dtype);
    }
    registers_assign(plan, kept);
    size_t tile = SCRATCH_BYTES / ELEMENT_BYTES / (size_t)(plan->register_count + 1) & ~(size_t)7;
    plan->tile = tile < TILE_MOST ? tile : TILE_MOST;
}

/* ---- strided memory --------------------------------------------------------------------------- */

/* Where a run of elements begins: the index in each dimension, and the offset in elements. */
static int64_t cursor_set(const struct plan *plan, const int64_t *strides, int64_t position,
                          int64_t *index)
{
    int64_t offset = 0;
    for (int d = plan->ndim - 1; d >= 0; d--) {
        index[d] = position % plan->sizes[d];
        position /= plan->sizes[d];
        offset += index[d] * strides[d];
    }
    return offset;
}

/* `done` elements of the last dimension were walked. */
static int64_t cursor_advance(const struct plan *plan, const int64_t *strides, int64_t done,
                              int64_t *index)
{
    int d = plan->ndim - 1;
    int64_t offset = done * strides[d];
    index[d] += done;
    while (d > 0 && index[d] == plan->sizes[d]) {
        offset -= index[d] * strides[d];
        index[d] = 0;
        d--;
        index[d]++;
        offset += strides[d];
    }
    return offset;
}

#define COPY_STRIDED(type)                                                       \
    do {                                                                         \
        const type *from_typed = (const type *)(const void *)from;               \
        type *to_typed = (type *)(void *)to;                                     \
        for (size_t i = 0; i < count; i++)                                       \
            to_typed[(int64_t)i * to_step] = from_typed[(int64_t)i * from_step]; \
    } while (0)

static void copy_run(char *to, int64_t to_step, const char *from, int64_t from_step, size_t size,
                     size_t count)
{
    if (to_step == 1 && from_step == 1) {
        memmove(to, from, size * count);
        return;
    }
    switch (size) {
    case 1:
        COPY_STRIDED(uint8_t);
        break;
    case 2:
        COPY_STRIDED(uint16_t);
        break;
    case 4:
        COPY_STRIDED(uint32_t);
        break;
    default:
        COPY_STRIDED(uint64_t);
        break;
    }
}

/* Copies elements between memory with strides and a tile. */
static void tile_move(const struct plan *plan, const int64_t *strides, char *memory, char *tile,
                      size_t size, int64_t position, size_t count, bool is_load)
{
    int64_t index[GN_DIMENSIONS_MAX];
    int64_t offset = cursor_set(plan, strides, position, index);
    int last = plan->ndim - 1;
    for (size_t done = 0; done < count;) {
        size_t run = (size_t)(plan->sizes[last] - index[last]);
        if (run > count - done)
            run = count - done;
        char *at = memory + offset * (int64_t)size, *in_tile = tile + done * size;
        if (is_load)
            copy_run(in_tile, 1, at, strides[last], size, run);
        else
            copy_run(at, strides[last], in_tile, 1, size, run);
        offset += cursor_advance(plan, strides, (int64_t)run, index);
        done += run;
    }
}

/* ---- running ---------------------------------------------------------------------------------- */

static void number_fill(char *tile, uint64_t number, size_t size, size_t count)
{
    for (size_t i = 0; i < count; i++)
        memcpy(tile + i * size, &number, size);
}

struct run {
    const struct plan *plan;
    char *tiles; /* register_count of them */
    void *values[GNI_PROGRAM_VALUES_MOST];
};

static char *tile_of(const struct run *run, short place)
{
    return run->tiles + (size_t)place * run->plan->tile * ELEMENT_BYTES;
}

static void run_begin(struct run *run, const struct plan *plan, char *tiles)
{
    const struct gni_program *program = plan->program;
    run->plan = plan;
    run->tiles = tiles;
    for (int i = 0; i < program->input_count; i++) {
        if (plan->place[i] < 0)
            continue;
        run->values[i] = tile_of(run, plan->place[i]);
        if (program->inputs[i].data == NULL)
            number_fill(run->values[i], program->inputs[i].number,
                        gni_dtype_size(program->inputs[i].held), plan->tile);
    }
}

/* Computes `count` elements from `position` on. */
static void run_tile(struct run *run, int64_t position, size_t count)
{
    const struct plan *plan = run->plan;
    const struct gni_program *program = plan->program;
    for (int i = 0; i < program->input_count; i++) {
        const struct gni_input *input = &program->inputs[i];
        size_t size = gni_dtype_size(input->held);
        if (plan->is_direct[i])
            run->values[i] = (char *)(uintptr_t)input->data + position * (int64_t)size;
        else if (input->data != NULL)
            tile_move(plan, plan->strides[i], (char *)(uintptr_t)input->data, run->values[i], size,
                      position, count, true);
    }
    for (int s = 0; s < program->step_count; s++) {
        const struct gni_step *step = &program->steps[s];
        int value = program->input_count + s;
        short target = plan->target[s];
        const void *in[3] = {NULL};
        for (int i = 0; i < 3 && step->in[i] >= 0; i++)
            in[i] = run->values[step->in[i]];
        run->values[value] = target >= 0 ? (void *)(program->outputs[target].data +
                                                    position * (int64_t)gni_dtype_size(step->held))
                                         : tile_of(run, plan->place[value]);
        plan->loops[s](run->values[value], in, count);
    }
}

/* Values that no step has put where they belong. */
static void outputs_store(struct run *run, char *scratch, int64_t position, size_t count)
{
    const struct plan *plan = run->plan;
    const struct gni_program *program = plan->program;
    for (int i = 0; i < program->output_count; i++) {
        const struct gni_output *output = &program->outputs[i];
        int step = output->value - program->input_count;
        if (step >= 0 && plan->target[step] == i)
            continue;
        size_t size = gni_dtype_size(output->dtype);
        const void *in = run->values[output->value];
        char *to = output->is_strided ? scratch : output->data + position * (int64_t)size;
        plan->stores[i](to, &in, count);
        if (output->is_strided && plan->ndim > 0)
            tile_move(plan, plan->output_strides[i], output->data, scratch, size, position, count,
                      false);
        else if (output->is_strided)
            memcpy(output->data, scratch, size);
    }
}

static void part_run(void *context, size_t begin, size_t end)
{
    const struct plan *plan = context;
    _Alignas(64) char tiles[SCRATCH_BYTES];
    struct run run;
    run_begin(&run, plan, tiles);
    for (size_t at = begin; at < end; at += plan->tile) {
        size_t count = end - at < plan->tile ? end - at : plan->tile;
        run_tile(&run, (int64_t)at, count);
        outputs_store(&run, tile_of(&run, (short)plan->register_count), (int64_t)at, count);
    }
}

void gni_cpu_run(struct gni_program *program)
{
    struct plan plan;
    if (program->count == 0)
        return;
    plan_make(&plan, program, -1);
    gni_parallel_for((size_t)program->count, PART, part_run, &plan);
}

/* ---- reductions ------------------------------------------------------------------------------- */

uint64_t gni_cpu_reduce_start(enum gni_reduction reduction, gn_dtype dtype)
{
    gn_dtype held = gni_dtypes[dtype].compute;
    bool is_floating = gni_dtype_kind(held) == GNI_KIND_FLOATING;
    uint64_t started = 0;
    gn_scalar start = {.kind = GN_INT64};
    switch (reduction) {
    case GNI_REDUCTION_SUM:
    case GNI_REDUCTION_PRODUCT:
        start.integer = reduction == GNI_REDUCTION_PRODUCT;
        gni_scalar_store(start, is_floating ? GN_FLOAT64 : GN_INT64, &started);
        break;
    case GNI_REDUCTION_MAXIMUM:
    case GNI_REDUCTION_MINIMUM:
        if (is_floating) {
            start.kind = GN_FLOAT64;
            start.floating = reduction == GNI_REDUCTION_MAXIMUM ? -INFINITY : INFINITY;
        } else if (held == GN_BOOL || held == GN_UINT8) {
            start.integer = reduction == GNI_REDUCTION_MAXIMUM ? 0 : held == GN_BOOL ? 1 : 255;
        } else {
            unsigned bits = (unsigned)gni_dtype_size(held) * 8;
            int64_t least = (int64_t)(UINT64_C(1) << 63) >> (64 - bits);
            start.integer = reduction == GNI_REDUCTION_MAXIMUM ? least : ~least;
        }
        gni_scalar_store(start, held, &started);
        break;
    case GNI_REDUCTION_ALL:
        started = 1;
        break;
    case GNI_REDUCTION_ANY:
    case GNI_REDUCTION_COUNT:
        break;
    }
    return started;
}

struct reduce {
    const struct plan *plan;
    short value;
    gni_fold fold;
    gni_fold combine; /* of two accumulators */
    size_t size;      /* of an element as it is held */
    int64_t columns;  /* elements of a row */
    int64_t parts;    /* of a row */
    int64_t part_columns;
    uint64_t start;
    uint64_t *partial; /* [rows][parts] */
};

/* Items are the parts of all rows; whole rows where a row has one part. */
static void part_reduce(void *context, size_t begin, size_t end)
{
    const struct reduce *reduce = context;
    _Alignas(64) char tiles[SCRATCH_BYTES];
    struct run run;
    run_begin(&run, reduce->plan, tiles);
    int64_t first_row = (int64_t)begin / reduce->parts, part = (int64_t)begin % reduce->parts;
    int64_t at = first_row * reduce->columns + part * reduce->part_columns;
    int64_t item = (int64_t)begin, item_end = at;
    int64_t stop_row = ((int64_t)end - 1) / reduce->parts;
    int64_t stop_part = ((int64_t)end - 1) % reduce->parts;
    int64_t stop = stop_row * reduce->columns + (stop_part + 1) * reduce->part_columns;
    if (stop > (stop_row + 1) * reduce->columns)
        stop = (stop_row + 1) * reduce->columns;
    item--;
    while (at < stop) {
        size_t tile_count = reduce->plan->tile;
        size_t count = stop - at < (int64_t)tile_count ? (size_t)(stop - at) : tile_count;
        run_tile(&run, at, count);
        const char *tile = run.values[reduce->value];
        for (size_t done = 0; done < count;) {
            if (at + (int64_t)done == item_end) { /* the next item */
                item++;
                reduce->partial[item] = reduce->start;
                int64_t row = item / reduce->parts;
                item_end =
                    row * reduce->columns + (item % reduce->parts + 1) * reduce->part_columns;
                if (item_end > (row + 1) * reduce->columns)
                    item_end = (row + 1) * reduce->columns;
            }
            size_t left = (size_t)(item_end - at) - done;
            size_t folded = count - done < left ? count - done : left;
            reduce->fold(&reduce->partial[item], tile + done * reduce->size, folded);
            done += folded;
        }
        at += (int64_t)count;
    }
}

/* What two accumulators are folded as. */
static gn_dtype accumulator_type(enum gni_reduction reduction, gn_dtype held)
{
    if (reduction == GNI_REDUCTION_ANY || reduction == GNI_REDUCTION_ALL)
        return GN_BOOL;
    if (reduction == GNI_REDUCTION_MAXIMUM || reduction == GNI_REDUCTION_MINIMUM)
        return held;
    return gni_dtype_kind(held) == GNI_KIND_FLOATING ? GN_FLOAT64 : GN_INT64;
}

gn_status gni_cpu_reduce(struct gni_program *program, short value, enum gni_reduction reduction,
                         int64_t rows, uint64_t *results)
{
    enum {
        PART_COLUMNS = 4 * PART
    };
    struct plan plan;
    if (rows == 0 || program->count == 0)
        return GN_OK;
    value =
        gni_program_convert(program, value, gni_dtypes[gni_program_held(program, value)].compute);
    gn_dtype held = gni_program_held(program, value);
    plan_make(&plan, program, value);
    struct reduce reduce = {.plan = &plan,
                            .value = value,
                            .fold = gni_fold_find(reduction, held),
                            .combine = gni_fold_find(reduction, accumulator_type(reduction, held)),
                            .size = gni_dtype_size(held),
                            .columns = program->count / rows,
                            .start = gni_cpu_reduce_start(reduction, held)};
    reduce.part_columns = reduce.columns < PART_COLUMNS ? reduce.columns : PART_COLUMNS;
    reduce.parts = (reduce.columns + reduce.part_columns - 1) / reduce.part_columns;
    size_t items = (size_t)(rows * reduce.parts);
    reduce.partial = reduce.parts > 1 ? gni_host_alloc(items * sizeof *reduce.partial) : results;
    if (reduce.partial == NULL)
        return gni_error_host_memory(items * sizeof *reduce.partial);
    size_t grain = (size_t)(PART_COLUMNS / reduce.part_columns);
    gni_parallel_for(items, grain > 0 ? grain : 1, part_reduce, &reduce);
    if (reduce.parts > 1) {
        for (int64_t row = 0; row < rows; row++)
            for (int64_t part = 0; part < reduce.parts; part++)
                reduce.combine(&results[row], &reduce.partial[row * reduce.parts + part], 1);
        gni_host_free(reduce.partial);
    }
    return GN_OK;
}

struct reduce_columns {
    const struct plan *plan;
    short value;
    gni_loop fold; /* of a tile into the accumulators */
    size_t size;   /* of an accumulator */
    int64_t rows, columns;
    uint64_t *results;
};

static void part_reduce_columns(void *context, size_t begin, size_t end)
{
    const struct reduce_columns *reduce = context;
    _Alignas(64) char tiles[SCRATCH_BYTES];
    _Alignas(64) char sums[TILE_MOST * ELEMENT_BYTES];
    struct run run;
    run_begin(&run, reduce->plan, tiles);
    for (size_t at = begin; at < end; at += reduce->plan->tile) {
        size_t count = end - at < reduce->plan->tile ? end - at : reduce->plan->tile;
        for (size_t i = 0; i < count; i++)
            memcpy(sums + i * reduce->size, &reduce->results[at + i], reduce->size);
        for (int64_t row = 0; row < reduce->rows; row++) {
            run_tile(&run, row * reduce->columns + (int64_t)at, count);
            const void *in[] = {sums, run.values[reduce->value]};
            reduce->fold(sums, in, count);
        }
        for (size_t i = 0; i < count; i++)
            memcpy(&reduce->results[at + i], sums + i * reduce->size, reduce->size);
    }
}

void gni_cpu_reduce_columns(struct gni_program *program, short value, enum gni_reduction reduction,
                            int64_t columns, uint64_t *results)
{
    static const enum gni_op ops[GNI_REDUCTION_COUNT] = {
        [GNI_REDUCTION_SUM] = GNI_OP_ADD,         [GNI_REDUCTION_PRODUCT] = GNI_OP_MULTIPLY,
        [GNI_REDUCTION_MAXIMUM] = GNI_OP_MAXIMUM, [GNI_REDUCTION_MINIMUM] = GNI_OP_MINIMUM,
        [GNI_REDUCTION_ANY] = GNI_OP_LOGICAL_OR,  [GNI_REDUCTION_ALL] = GNI_OP_LOGICAL_AND,
    };
    struct plan plan;
    if (columns == 0 || program->count == 0)
        return;
    gn_dtype computing = gni_dtypes[gni_program_held(program, value)].compute;
    gn_dtype wide = accumulator_type(reduction, computing);
    value = gni_program_convert(program, gni_program_convert(program, value, computing), wide);
    plan_make(&plan, program, value);
    struct reduce_columns reduce = {.plan = &plan,
                                    .value = value,
                                    .fold = gni_loop_find(ops[reduction], wide),
                                    .size = gni_dtype_size(wide),
                                    .rows = program->count / columns,
                                    .columns = columns,
                                    .results = results};
    gni_parallel_for((size_t)columns, plan.tile, part_reduce_columns, &reduce);
}
