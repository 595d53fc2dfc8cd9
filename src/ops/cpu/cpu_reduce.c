/*
 * cpu_reduce.c: reductions on the CPU: rows of a value are reduced one after the other, or columns side by side, with the
 * steps before them in the same pass over a tile.
 *
 * Sums and products are accumulated in double or int64. Of float32 columns the elements of GNI_REDUCE_ROWS rows are
 * added in pairs in float32 first, the same whether they are computed or lie in memory.
 *
 * How the elements are cut into parts depends on the shape alone, so that the result does not depend on the number
 * of threads. A part that has whole results stores them itself, with loops over elements; where rows or columns are cut,
 * accumulators of all parts are kept in memory and combined afterwards.
 */
#include "base/host.h"
#include "base/parallel.h"
#include "ops/cpu/column_sums.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/plan.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* The accumulator of nothing. */
static uint64_t accumulator_start(enum gni_reduction reduction, gn_dtype dtype)
{
    gn_dtype held = gni_dtypes[dtype].compute;
    bool is_floating = gni_dtypes[held].kind == GNI_KIND_FLOATING;
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
        } else if (!gni_dtypes[held].is_signed) {
            start.integer = reduction == GNI_REDUCTION_MAXIMUM ? 0 : held == GN_BOOL ? 1 : -1;
        } else {
            unsigned bits = (unsigned)gni_dtypes[held].size * 8;
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

/* What two accumulators are reduced as. */
static gn_dtype accumulator_type(enum gni_reduction reduction, gn_dtype held)
{
    if (reduction == GNI_REDUCTION_ANY || reduction == GNI_REDUCTION_ALL)
        return GN_BOOL;
    if (reduction == GNI_REDUCTION_MAXIMUM || reduction == GNI_REDUCTION_MINIMUM)
        return held;
    return gni_dtypes[held].kind == GNI_KIND_FLOATING ? GN_FLOAT64 : gni_dtype_of_sum(held);
}

enum gni_reduction gni_reduction_of(gn_reduction reduction)
{
    static const enum gni_reduction reductions[GN_REDUCTION_COUNT] = {
        [GN_REDUCE_SUM] = GNI_REDUCTION_SUM,         [GN_REDUCE_PRODUCT] = GNI_REDUCTION_PRODUCT,
        [GN_REDUCE_MAXIMUM] = GNI_REDUCTION_MAXIMUM, [GN_REDUCE_MINIMUM] = GNI_REDUCTION_MINIMUM,
        [GN_REDUCE_ANY] = GNI_REDUCTION_ANY,         [GN_REDUCE_ALL] = GNI_REDUCTION_ALL,
        [GN_REDUCE_MEAN] = GNI_REDUCTION_SUM,
    };
    return reductions[reduction];
}

gn_dtype gni_accumulator_type(gn_reduction reduction, gn_dtype held)
{
    return accumulator_type(gni_reduction_of(reduction), held);
}

uint64_t gni_accumulator_start(gn_reduction reduction, gn_dtype held)
{
    return accumulator_start(gni_reduction_of(reduction), held);
}

/* ---- what is reduced --------------------------------------------------------------------------- */

/* A value of the program, and how it is reduced. */
struct value {
    short number;
    enum gni_reduction reduction;
    gn_dtype held;
    bool is_squared; /* by the reduction */
    struct gni_reducers reducers;
    struct gni_reducers combine; /* of accumulators */
};

/*
 * Squares that are summed at once: where a value is the square of a float64, which may be a float32 before, its last steps
 * are the reduction's, which gives the same bits. *value becomes what is squared; false: the value is no such square.
 */
static bool squares_take(struct gni_program *program, short *value)
{
    int last = program->step_count - 1;
    const struct gni_step *square = &program->steps[last < 0 ? 0 : last];
    if (last < 0 || *value != program->input_count + last || square->kind != GNI_STEP_OP ||
        square->op != GNI_OP_SQUARE || square->from != GN_FLOAT64)
        return false;
    *value = square->in[0];
    program->step_count--;
    const struct gni_step *before = &program->steps[last < 1 ? 0 : last - 1];
    if (last >= 1 && *value == program->input_count + last - 1 &&
        before->kind == GNI_STEP_CONVERT && before->from == GN_FLOAT32) {
        *value = before->in[0];
        program->step_count--;
    }
    return true;
}

static struct value value_take(struct gni_program *program, short number,
                               enum gni_reduction reduction)
{
    bool is_squared = reduction == GNI_REDUCTION_SUM && squares_take(program, &number);
    gn_dtype held = gni_dtypes[gni_program_held(program, number)].compute;
    gn_dtype wide = is_squared ? GN_FLOAT64 : accumulator_type(reduction, held);
    return (struct value){.number = gni_program_convert(program, number, held),
                          .reduction = reduction,
                          .held = held,
                          .is_squared = is_squared,
                          .reducers = is_squared ? gni_reducers_find_squares(held)
                                                 : gni_reducers_find(reduction, held),
                          .combine = gni_reducers_find(reduction, wide)};
}

/* ---- accumulators ----------------------------------------------------------------------------- */

enum {
    BLOCK_RESULTS = 512, /* accumulators that a part holds at a time, but for columns */
    DIVISORS = 256,      /* sums that become means at a time */
};

/* How accumulators, which lie one behind the other in their type, begin and end. */
struct accumulators {
    uint64_t start;
    size_t size;      /* of an accumulator */
    gni_loop convert; /* to the result's type */
    bool is_result;   /* an accumulator is a result, as it is */
    char *results;
    size_t result_size;
    double divisor; /* of a mean; 0: none */
};

static void accumulators_start(const struct accumulators *accumulators, void *sums, size_t count)
{
    size_t size = accumulators->size, nbytes = count * size;
    memcpy(sums, &accumulators->start, size);
    for (size_t done = size; done < nbytes; done *= 2)
        memcpy((char *)sums + done, sums, done < nbytes - done ? done : nbytes - done);
}

/* Sums become means. */
static void sums_divide(double divisor, double *sums, size_t count)
{
    double divisors[DIVISORS];
    gni_loop divide = gni_loop_find(GNI_OP_DIVIDE, GN_FLOAT64);
    for (size_t i = 0; i < DIVISORS && i < count; i++)
        divisors[i] = divisor;
    for (size_t done = 0; done < count; done += DIVISORS) {
        const void *in[] = {sums + done, divisors};
        divide(sums + done, in, count - done < DIVISORS ? count - done : DIVISORS);
    }
}

/* Accumulators become the results from number `first` on. */
static void accumulators_end(const struct accumulators *accumulators, void *sums, int64_t first,
                             size_t count)
{
    if (accumulators->divisor != 0)
        sums_divide(accumulators->divisor, sums, count);
    const void *in[] = {sums};
    accumulators->convert(accumulators->results + (size_t)first * accumulators->result_size, in,
                          count);
}

/* ---- rows ------------------------------------------------------------------------------------- */

enum {
    PART_COLUMNS = GNI_REDUCE_PART_COLUMNS, /* elements of a part */
};

struct reduce {
    const struct gni_plan *plan;
    const struct accumulators *accumulators;
    short value;
    struct gni_reducers reducers;
    size_t size;     /* of an element as it is held */
    int64_t columns; /* elements of a row */
    int64_t parts;   /* of a row */
    char *partial;   /* accumulators [rows][parts]; NULL: rows have one part */
    bool has_end;    /* one element can decide: what has left `start` stays */
    bool is_alone;   /* one row, so that all parts can end when one has */
    _Atomic(bool) is_ended;
};

/* Whether no element can change a truth any more. */
static bool is_ended(const struct reduce *reduce, const void *sum)
{
    return reduce->has_end && *(const uint8_t *)sum != (uint8_t)reduce->accumulators->start;
}

/* A row, or a part of it, tile by tile. */
static void stretch_reduce(struct reduce *reduce, struct gni_run *run, int64_t at, int64_t stop,
                           void *sum)
{
    int64_t tile = (int64_t)reduce->plan->tile;
    for (; at < stop && !atomic_load_explicit(&reduce->is_ended, memory_order_relaxed);
         at += tile) {
        size_t count = (size_t)(stop - at < tile ? stop - at : tile);
        gni_run_tile(run, at, count);
        reduce->reducers.one(sum, run->values[reduce->value], count);
        if (is_ended(reduce, sum)) {
            if (reduce->is_alone)
                atomic_store_explicit(&reduce->is_ended, true, memory_order_relaxed);
            return;
        }
    }
}

/* Whole rows, as many at a time as a tile has. */
static void rows_reduce(const struct reduce *reduce, struct gni_run *run, int64_t row,
                        int64_t row_end, char *sums)
{
    int64_t tile_rows = (int64_t)reduce->plan->tile / reduce->columns;
    size_t columns = (size_t)reduce->columns, size = reduce->accumulators->size;
    while (row < row_end) {
        size_t rows = (size_t)(row_end - row < tile_rows ? row_end - row : tile_rows);
        gni_run_tile(run, row * reduce->columns, rows * columns);
        const char *tile = run->values[reduce->value];
        if (columns <= GNI_SHORT_COLUMNS)
            reduce->reducers.short_rows(sums, tile, rows, columns);
        else
            for (size_t i = 0; i < rows; i++)
                reduce->reducers.one(sums + i * size, tile + i * columns * reduce->size, columns);
        row += (int64_t)rows;
        sums += rows * size;
    }
}

/* Items are rows. */
static void part_rows(void *context, size_t begin, size_t end)
{
    struct reduce *reduce = context;
    _Alignas(64) char tiles[GNI_SCRATCH_BYTES];
    _Alignas(64) char sums[BLOCK_RESULTS * GNI_ELEMENT_BYTES];
    struct gni_run run;
    gni_run_begin(&run, reduce->plan, tiles);
    int64_t columns = reduce->columns;
    for (size_t first = begin; first < end; first += BLOCK_RESULTS) {
        size_t count = end - first < BLOCK_RESULTS ? end - first : BLOCK_RESULTS;
        accumulators_start(reduce->accumulators, sums, count);
        if (columns <= (int64_t)reduce->plan->tile)
            rows_reduce(reduce, &run, (int64_t)first, (int64_t)(first + count), sums);
        else
            for (size_t i = 0; i < count; i++)
                stretch_reduce(reduce, &run, (int64_t)(first + i) * columns,
                               (int64_t)(first + i + 1) * columns,
                               sums + i * reduce->accumulators->size);
        accumulators_end(reduce->accumulators, sums, (int64_t)first, count);
    }
}

/* Items are the parts of all rows. */
static void part_stretches(void *context, size_t begin, size_t end)
{
    struct reduce *reduce = context;
    _Alignas(64) char tiles[GNI_SCRATCH_BYTES];
    struct gni_run run;
    gni_run_begin(&run, reduce->plan, tiles);
    for (size_t item = begin; item < end; item++) {
        int64_t row = (int64_t)item / reduce->parts, part = (int64_t)item % reduce->parts;
        int64_t row_end = (row + 1) * reduce->columns;
        int64_t at = row * reduce->columns + part * PART_COLUMNS, stop = at + PART_COLUMNS;
        stretch_reduce(reduce, &run, at, stop < row_end ? stop : row_end,
                       reduce->partial + item * reduce->accumulators->size);
    }
}

/* Whether the first tile of a single row says what any or all is: then *sum is that. Its tiles leave the stack before a
 * part has its own. */
static __attribute__((noinline)) bool first_tile_reduce(const struct reduce *reduce, uint64_t *sum)
{
    _Alignas(64) char tiles[GNI_SCRATCH_BYTES];
    struct gni_run run;
    size_t count = reduce->plan->tile;
    if (!reduce->has_end || !reduce->is_alone || reduce->columns <= (int64_t)count)
        return false;
    gni_run_begin(&run, reduce->plan, tiles);
    gni_run_tile(&run, 0, count);
    *sum = reduce->accumulators->start;
    reduce->reducers.one(sum, run.values[reduce->value], count);
    return is_ended(reduce, sum);
}

/* Parts of rows, and then what they come to. */
static gn_status stretches_reduce(struct reduce *reduce, gni_reducer combine, int64_t rows)
{
    enum {
        PARTIALS_FEW = 64
    };
    uint64_t few[PARTIALS_FEW];
    size_t size = reduce->accumulators->size, items = (size_t)(rows * reduce->parts);
    bool is_few = items <= PARTIALS_FEW;
    reduce->partial = is_few ? (char *)few : gni_host_alloc(items * size);
    if (reduce->partial == NULL)
        return gni_error_host_memory(items * size);
    accumulators_start(reduce->accumulators, reduce->partial, items); /* an end leaves some out */
    gni_parallel_for(items, 1, part_stretches, reduce);
    for (int64_t row = 0; row < rows; row++) {
        uint64_t sum = reduce->accumulators->start;
        for (int64_t part = 0; part < reduce->parts; part++)
            combine(&sum, reduce->partial + (size_t)(row * reduce->parts + part) * size, 1);
        accumulators_end(reduce->accumulators, &sum, row, 1);
    }
    if (!is_few)
        gni_host_free(reduce->partial);
    return GN_OK;
}

/* Whether one element can decide: of any and all, and of the extremes of bools, which are the same. */
static bool value_has_end(const struct value *value)
{
    bool is_sum =
        value->reduction == GNI_REDUCTION_SUM || value->reduction == GNI_REDUCTION_PRODUCT;
    bool is_truth = value->reduction == GNI_REDUCTION_ANY || value->reduction == GNI_REDUCTION_ALL;
    return is_truth || (value->held == GN_BOOL && !is_sum);
}

static gn_status all_rows_reduce(const struct gni_plan *plan, const struct value *value,
                                 int64_t rows, const struct accumulators *accumulators)
{
    struct reduce reduce = {.plan = plan,
                            .accumulators = accumulators,
                            .value = value->number,
                            .reducers = value->reducers,
                            .size = gni_dtypes[value->held].size,
                            .columns = plan->program->count / rows,
                            .has_end = value_has_end(value),
                            .is_alone = rows == 1};
    uint64_t sum;
    if (first_tile_reduce(&reduce, &sum)) {
        accumulators_end(accumulators, &sum, 0, 1);
        return GN_OK;
    }
    reduce.parts = (reduce.columns + PART_COLUMNS - 1) / PART_COLUMNS;
    if (reduce.parts > 1)
        return stretches_reduce(&reduce, value->combine.one, rows);
    gni_parallel_for((size_t)rows, (size_t)(PART_COLUMNS / reduce.columns), part_rows, &reduce);
    return GN_OK;
}

/* ---- columns ---------------------------------------------------------------------------------- */

enum {
    COLUMNS_PART = 2048, /* columns of a part: memory is read in long stretches */
};

struct reduce_columns {
    const struct gni_plan *plan;
    const struct accumulators *accumulators;
    const struct gni_input *memory; /* where the values lie already; NULL: they are computed */
    int64_t run;                    /* columns that lie one behind the other in memory */
    short value;                    /* as it is computed */
    gni_row_reducer row_reducer;    /* of several tiles into the accumulators; NULL: one by one */
    gni_reducer reduce;             /* of a tile into the accumulators */
    gni_reducer combine;            /* of accumulators */
    size_t size;                    /* of an element */
    int64_t rows, columns, chunk_rows, chunks, column_parts;
    char *partial; /* accumulators [chunks][columns]; NULL: there is one chunk */
};

/* What a thread works in. */
struct columns_room {
    struct gni_run run;
    _Alignas(64) char tiles[GNI_SCRATCH_BYTES];
    _Alignas(64) float rows[GNI_REDUCE_ROWS][GNI_TILE_MOST];
    _Alignas(64) float nothing[GNI_TILE_MOST]; /* what changes no sum */
    _Alignas(64) char sums[COLUMNS_PART * GNI_ELEMENT_BYTES];
};

/* The element of a place in memory. */
static const void *memory_at(const struct reduce_columns *reduce, int64_t position)
{
    const struct gni_layout *layout = &reduce->plan->layout;
    int64_t offset = 0;
    for (int d = layout->ndim - 1; d >= 0; d--) {
        offset += position % layout->sizes[d] * layout->strides[reduce->value][d];
        position /= layout->sizes[d];
    }
    return reduce->memory->data + offset * (int64_t)reduce->size;
}

static const void *tile_get(const struct reduce_columns *reduce, struct columns_room *room,
                            int64_t position, size_t count)
{
    if (reduce->memory != NULL)
        return memory_at(reduce, position);
    gni_run_tile(&room->run, position, count);
    return room->run.values[reduce->value];
}

/* A tile of each of several rows goes into the accumulators. */
static void tiles_reduce(const struct reduce_columns *reduce, struct columns_room *room,
                         int64_t position, int64_t rows, size_t count, char *sums)
{
    const float *all[GNI_REDUCE_ROWS];
    for (int64_t i = 0; i < GNI_REDUCE_ROWS; i++) {
        all[i] = i < rows ? tile_get(reduce, room, position + i * reduce->columns, count)
                          : room->nothing;
        if (i < rows && reduce->memory == NULL)
            all[i] = memcpy(room->rows[i], all[i], count * sizeof(float));
    }
    reduce->row_reducer((double *)(void *)sums, all, count);
}

static void chunk_reduce(const struct reduce_columns *reduce, struct columns_room *room,
                         int64_t row, int64_t row_end, int64_t column, int64_t column_end,
                         char *sums)
{
    int64_t step = reduce->row_reducer != NULL ? GNI_REDUCE_ROWS : 1,
            tile = (int64_t)reduce->plan->tile;
    for (; row < row_end; row += step) {
        size_t count;
        for (int64_t at = column; at < column_end; at += (int64_t)count) {
            int64_t end = column_end - at < tile ? column_end : at + tile;
            int64_t run_end = at - at % reduce->run + reduce->run;
            count = (size_t)((end < run_end ? end : run_end) - at);
            char *to = sums + (size_t)(at - column) * reduce->accumulators->size;
            int64_t position = row * reduce->columns + at;
            if (reduce->row_reducer != NULL)
                tiles_reduce(reduce, room, position, row_end - row, count, to);
            else
                reduce->reduce(to, tile_get(reduce, room, position, count), count);
        }
    }
}

/* The columns of a part. */
static int64_t columns_of(const struct reduce_columns *reduce, int64_t part, int64_t *column)
{
    *column = part * COLUMNS_PART;
    return reduce->columns - *column < COLUMNS_PART ? reduce->columns - *column : COLUMNS_PART;
}

static char *partial_of(const struct reduce_columns *reduce, int64_t chunk, int64_t column)
{
    return reduce->partial +
           (size_t)(chunk * reduce->columns + column) * reduce->accumulators->size;
}

/* Where a part of a chunk of rows has its accumulators: in memory, in the result itself, or on the stack. */
static char *sums_place(const struct reduce_columns *reduce, struct columns_room *room,
                        int64_t chunk, int64_t column)
{
    if (reduce->partial != NULL)
        return partial_of(reduce, chunk, column);
    return reduce->accumulators->is_result
               ? reduce->accumulators->results + (size_t)column * reduce->accumulators->size
               : room->sums;
}

/* Items are the column parts of all chunks of rows. */
static void part_reduce_columns(void *context, size_t begin, size_t end)
{
    const struct reduce_columns *reduce = context;
    struct columns_room room;
    gni_run_begin(&room.run, reduce->plan, room.tiles);
    for (int64_t i = 0; i < GNI_TILE_MOST && i < reduce->columns && reduce->row_reducer != NULL;
         i++)
        room.nothing[i] = -0.0f;
    for (size_t item = begin; item < end; item++) {
        int64_t chunk = (int64_t)item / reduce->column_parts, column;
        int64_t count = columns_of(reduce, (int64_t)item % reduce->column_parts, &column);
        int64_t row = chunk * reduce->chunk_rows;
        int64_t row_end =
            row + reduce->chunk_rows < reduce->rows ? row + reduce->chunk_rows : reduce->rows;
        char *sums = sums_place(reduce, &room, chunk, column);
        accumulators_start(reduce->accumulators, sums, (size_t)count);
        chunk_reduce(reduce, &room, row, row_end, column, column + count, sums);
        if (sums == room.sums)
            accumulators_end(reduce->accumulators, sums, column, (size_t)count);
    }
}

/* Items are column parts: all chunks go into the first one. */
static void part_combine_columns(void *context, size_t begin, size_t end)
{
    const struct reduce_columns *reduce = context;
    for (size_t item = begin; item < end; item++) {
        int64_t column, count = columns_of(reduce, (int64_t)item, &column);
        char *sums = partial_of(reduce, 0, column);
        for (int64_t chunk = 1; chunk < reduce->chunks; chunk++)
            reduce->combine(sums, partial_of(reduce, chunk, column), (size_t)count);
        accumulators_end(reduce->accumulators, sums, column, (size_t)count);
    }
}

/* How many columns of a value lie one behind the other in memory; 0: few, or it is computed. */
static int64_t columns_in_a_run(const struct gni_plan *plan, short value, int64_t columns)
{
    enum {
        RUN_LEAST = 64
    };
    const struct gni_layout *layout = &plan->layout;
    int last = layout->ndim - 1;
    if (value >= plan->program->input_count || plan->program->inputs[value].data == NULL)
        return 0;
    if (plan->is_direct[value])
        return columns;
    bool is_run = last >= 0 && layout->strides[value][last] == 1 &&
                  layout->sizes[last] >= RUN_LEAST && columns % layout->sizes[last] == 0;
    return is_run ? layout->sizes[last] : 0;
}

static gn_status all_columns_reduce(const struct gni_plan *plan, const struct value *value,
                                    int64_t columns, const struct accumulators *accumulators)
{
    const struct gni_program *program = plan->program;
    int64_t run = columns_in_a_run(plan, value->number, columns);
    bool is_by_pairs =
        value->reduction == GNI_REDUCTION_SUM && value->held == GN_FLOAT32 && !value->is_squared;
    struct reduce_columns reduce = {
        .plan = plan,
        .accumulators = accumulators,
        .memory = run > 0 ? &program->inputs[value->number] : NULL,
        .run = run > 0 ? run : columns,
        .value = value->number,
        .row_reducer = is_by_pairs ? gni_row_reducer_find() : NULL,
        .reduce = value->reducers.columns,
        .combine = value->combine.columns,
        .size = gni_dtypes[value->held].size,
        .rows = program->count / columns,
        .columns = columns,
        .column_parts = (columns + COLUMNS_PART - 1) / COLUMNS_PART,
    };
    int64_t width = columns < COLUMNS_PART ? columns : COLUMNS_PART;
    reduce.chunk_rows = gni_column_chunk_rows(columns); /* many rows are cut into chunks */
    reduce.chunks = (reduce.rows + reduce.chunk_rows - 1) / reduce.chunk_rows;
    size_t parts = (size_t)reduce.column_parts;
    size_t nbytes = (size_t)(reduce.chunks * columns) * accumulators->size;
    if (reduce.chunks > 1) {
        reduce.partial = gni_host_alloc(nbytes);
        if (reduce.partial == NULL)
            return gni_error_host_memory(nbytes);
    }
    int64_t part_rows = reduce.rows < reduce.chunk_rows ? reduce.rows : reduce.chunk_rows;
    size_t grain = (size_t)(PART_COLUMNS / (part_rows * width));
    gni_parallel_for((size_t)reduce.chunks * parts, grain > 0 ? grain : 1, part_reduce_columns,
                     &reduce);
    if (reduce.chunks > 1) {
        gni_parallel_for(parts, 1, part_combine_columns, &reduce);
        gni_host_free(reduce.partial);
    }
    return GN_OK;
}

/* ---- the whole -------------------------------------------------------------------------------- */

/* The results of no elements: BLOCK_RESULTS of them at a time. */
static void results_fill(const struct accumulators *accumulators, int64_t count)
{
    _Alignas(64) char sums[BLOCK_RESULTS * GNI_ELEMENT_BYTES];
    for (int64_t done = 0; done < count; done += BLOCK_RESULTS) {
        size_t some = (size_t)(count - done < BLOCK_RESULTS ? count - done : BLOCK_RESULTS);
        accumulators_start(accumulators, sums, some);
        accumulators_end(accumulators, sums, done, some);
    }
}

/* Into memory of a type, contiguous. */
static gn_status reduce_to(struct gni_program *program, short value,
                           const struct gni_reduction_task *task, char *results, gn_dtype dtype)
{
    enum gni_reduction reduction = gni_reduction_of(task->reduction);
    gn_dtype held = gni_dtypes[gni_program_held(program, value)].compute;
    gn_dtype wide = accumulator_type(reduction, held);
    bool is_mean = task->reduction == GN_REDUCE_MEAN;
    struct accumulators accumulators = {
        .start = accumulator_start(reduction, held),
        .size = gni_dtypes[wide].size,
        .convert = gni_loop_convert(wide, dtype),
        .is_result = wide == dtype && !is_mean,
        .results = results,
        .result_size = gni_dtypes[dtype].size,
        .divisor = is_mean ? (double)task->reduced : 0,
    };
    if (program->count > 0) {
        struct gni_plan plan;
        struct value taken = value_take(program, value, reduction);
        gni_plan_make(&plan, program, taken.number);
        return task->is_by_columns ? all_columns_reduce(&plan, &taken, task->kept, &accumulators)
                                   : all_rows_reduce(&plan, &taken, task->kept, &accumulators);
    }
    if (is_mean) /* of nothing */
        gni_scalar_store((gn_scalar){.kind = GN_FLOAT64, .floating = (double)NAN}, GN_FLOAT64,
                         &accumulators.start);
    results_fill(&accumulators, task->kept);
    return GN_OK;
}

gn_status gni_cpu_reduce(struct gni_program *program, short value,
                         const struct gni_reduction_task *task, gn_tensor *result,
                         gn_stream *stream)
{
    (void)stream;
    return reduce_to(program, value, task, gni_tensor_data(result), result->dtype);
}

gn_status gni_cpu_sum_columns(struct gni_program *program)
{
    gni_assert(program->output_count == 1 && program->outputs[0].is_column);
    const struct gni_output output = program->outputs[0];
    const struct gni_reduction_task task = {.reduction = GN_REDUCE_SUM,
                                            .is_by_columns = true,
                                            .kept = program->columns,
                                            .reduced = program->count / program->columns};
    program->output_count = 0; /* no step writes it */
    return reduce_to(program, output.value, &task, output.data, output.dtype);
}
