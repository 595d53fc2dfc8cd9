/*
 * fold.c: reductions on the CPU: rows of a value are folded one after the other, or columns side by side, with the
 * steps before them in the same pass over a tile.
 *
 * Sums and products are accumulated in double or int64. Of float32 columns the elements of GNI_FOLD_ROWS rows are
 * added in pairs in float32 first, the same whether they are computed or lie in memory.
 *
 * How the elements are cut into parts depends on the shape alone, so that the result does not depend on the number
 * of threads.
 */
#include "base/host.h"
#include "base/parallel.h"
#include "ops/cpu/plan.h"
#include "ops/cpu/rows.h"
#include "ops/cpu/product.h"
#include "ops/cpu/run.h"
#include "ops/cpu/softmax.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* The accumulator of nothing. */
static uint64_t accumulator_start(enum gni_reduction reduction, gn_dtype dtype)
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
    const struct gni_plan *plan;
    short value;
    gni_fold fold;
    gni_fold combine; /* of two accumulators */
    size_t size;      /* of an element as it is held */
    int64_t columns;  /* elements of a row */
    int64_t parts;    /* of a row */
    int64_t part_columns;
    uint64_t start;
    uint64_t *partial; /* [rows][parts] */
    bool has_end;      /* any, all: what is not `start` any more stays as it is */
    bool is_alone;     /* one row, so that all parts can end when one has */
    _Atomic(bool) is_ended;
};

/* Whether no element can change what an item comes to. */
static bool is_ended(const struct reduce *reduce, int64_t item)
{
    return reduce->has_end && reduce->partial[item] != reduce->start;
}

/* Items are the parts of all rows; whole rows where a row has one part. */
static void part_reduce(void *context, size_t begin, size_t end)
{
    struct reduce *reduce = context;
    _Alignas(64) char tiles[GNI_SCRATCH_BYTES];
    struct gni_run run;
    gni_run_begin(&run, reduce->plan, tiles);
    int64_t first_row = (int64_t)begin / reduce->parts, part = (int64_t)begin % reduce->parts;
    int64_t at = first_row * reduce->columns + part * reduce->part_columns;
    int64_t item = (int64_t)begin, item_end = at;
    int64_t stop_row = ((int64_t)end - 1) / reduce->parts;
    int64_t stop_part = ((int64_t)end - 1) % reduce->parts;
    int64_t stop = stop_row * reduce->columns + (stop_part + 1) * reduce->part_columns;
    if (stop > (stop_row + 1) * reduce->columns)
        stop = (stop_row + 1) * reduce->columns;
    item--;
    while (at < stop && !atomic_load_explicit(&reduce->is_ended, memory_order_relaxed)) {
        size_t tile_count = reduce->plan->tile;
        size_t count = stop - at < (int64_t)tile_count ? (size_t)(stop - at) : tile_count;
        gni_run_tile(&run, at, count);
        const char *tile = run.values[reduce->value];
        for (size_t done = 0; done < count;) {
            if (at + (int64_t)done == item_end) { /* the next item */
                item++;
                int64_t row = item / reduce->parts;
                item_end =
                    row * reduce->columns + (item % reduce->parts + 1) * reduce->part_columns;
                if (item_end > (row + 1) * reduce->columns)
                    item_end = (row + 1) * reduce->columns;
            }
            size_t left = (size_t)(item_end - at) - done;
            size_t folded = count - done < left ? count - done : left;
            if (!is_ended(reduce, item))
                reduce->fold(&reduce->partial[item], tile + done * reduce->size, folded);
            done += folded;
        }
        at += (int64_t)count;
        if (is_ended(reduce, item)) {
            at = at < item_end ? item_end : at;
            if (reduce->is_alone)
                atomic_store_explicit(&reduce->is_ended, true, memory_order_relaxed);
        }
    }
}

/* Whether the first tile of a single row says what any or all is: then *result is that. Its tiles leave the stack before
 * part_reduce() has its own. */
static __attribute__((noinline)) bool first_tile_reduce(const struct reduce *reduce,
                                                        uint64_t *result)
{
    _Alignas(64) char tiles[GNI_SCRATCH_BYTES];
    struct gni_run run;
    size_t count = reduce->plan->tile;
    if (!reduce->has_end || !reduce->is_alone || reduce->columns <= (int64_t)count)
        return false;
    gni_run_begin(&run, reduce->plan, tiles);
    gni_run_tile(&run, 0, count);
    uint64_t found = reduce->start;
    reduce->fold(&found, run.values[reduce->value], count);
    if (found == reduce->start)
        return false;
    *result = found;
    return true;
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

/*
 * Squares that are summed at once: where a value is the square of a float64, which may be a float32 before, its last steps
 * are the fold's, which gives the same bits. *value becomes what is squared; NULL: the value is no such square.
 */
static gni_fold squares_take(struct gni_program *program, short *value)
{
    int last = program->step_count - 1;
    const struct gni_step *square = &program->steps[last < 0 ? 0 : last];
    if (last < 0 || *value != program->input_count + last || square->kind != GNI_STEP_OP ||
        square->op != GNI_OP_SQUARE || square->from != GN_FLOAT64)
        return NULL;
    *value = square->in[0];
    program->step_count--;
    const struct gni_step *before = &program->steps[last < 1 ? 0 : last - 1];
    if (last >= 1 && *value == program->input_count + last - 1 &&
        before->kind == GNI_STEP_CONVERT && before->from == GN_FLOAT32) {
        *value = before->in[0];
        program->step_count--;
    }
    return gni_fold_squares_find(gni_program_held(program, *value));
}

static gn_status rows_fold(struct gni_program *program, short value, enum gni_reduction reduction,
                           int64_t rows, uint64_t *results)
{
    enum {
        PART_COLUMNS = 4 * GNI_PART
    };
    struct gni_plan plan;
    gni_fold squares = reduction == GNI_REDUCTION_SUM ? squares_take(program, &value) : NULL;
    value =
        gni_program_convert(program, value, gni_dtypes[gni_program_held(program, value)].compute);
    gn_dtype held = gni_program_held(program, value);
    gni_plan_make(&plan, program, value);
    struct reduce reduce = {.plan = &plan,
                            .value = value,
                            .fold = squares != NULL ? squares : gni_fold_find(reduction, held),
                            .combine = gni_fold_find(reduction, accumulator_type(reduction, held)),
                            .size = gni_dtype_size(held),
                            .columns = program->count / rows,
                            .start = accumulator_start(reduction, held),
                            .has_end =
                                reduction == GNI_REDUCTION_ANY || reduction == GNI_REDUCTION_ALL,
                            .is_alone = rows == 1};
    if (first_tile_reduce(&reduce, results))
        return GN_OK;
    reduce.part_columns = reduce.columns < PART_COLUMNS ? reduce.columns : PART_COLUMNS;
    reduce.parts = (reduce.columns + reduce.part_columns - 1) / reduce.part_columns;
    size_t items = (size_t)(rows * reduce.parts);
    reduce.partial = reduce.parts > 1 ? gni_host_alloc(items * sizeof *reduce.partial) : results;
    if (reduce.partial == NULL)
        return gni_error_host_memory(items * sizeof *reduce.partial);
    for (size_t i = 0; i < items; i++) /* an end leaves the rest out */
        reduce.partial[i] = reduce.start;
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

/* ---- columns ---------------------------------------------------------------------------------- */

enum {
    COLUMNS_PART = 4096,        /* columns of a part: memory is read in long stretches */
    COLUMNS_ELEMENTS = 1 << 19, /* elements of a part, at least: many rows are cut into chunks */
};

struct fold_columns {
    const struct gni_plan *plan;
    const char *direct;      /* where the values lie in memory already; NULL: they are computed */
    short value;             /* as it is computed */
    gni_fold_rows fold_rows; /* of several tiles into the accumulators; NULL: one by one */
    gni_loop widen;          /* of a tile to the accumulator's type; NULL: it has it */
    gni_loop fold;           /* into the accumulators */
    size_t size, wide_size;  /* of an element, and of an accumulator */
    int64_t rows, columns, chunk_rows, column_parts;
    uint64_t start;
    char *partial; /* [chunks][columns] accumulators */
};

/* What a thread works in. */
struct columns_room {
    struct gni_run run;
    _Alignas(64) char tiles[GNI_SCRATCH_BYTES];
    _Alignas(64) float rows[GNI_FOLD_ROWS][GNI_TILE_MOST];
    _Alignas(64) float nothing[GNI_TILE_MOST]; /* what changes no sum */
    _Alignas(64) char wide[GNI_TILE_MOST * GNI_ELEMENT_BYTES];
};

static const void *tile_get(const struct fold_columns *fold, struct columns_room *room,
                            int64_t position, size_t count)
{
    if (fold->direct != NULL)
        return fold->direct + position * (int64_t)fold->size;
    gni_run_tile(&room->run, position, count);
    return room->run.values[fold->value];
}

/* A tile of values goes into the accumulators. */
static void tile_fold(const struct fold_columns *fold, struct columns_room *room, int64_t position,
                      size_t count, char *sums)
{
    const void *values = tile_get(fold, room, position, count), *in[] = {sums, values};
    if (fold->widen != NULL) {
        fold->widen(room->wide, &values, count);
        in[1] = room->wide;
    }
    fold->fold(sums, in, count);
}

/* The same for a tile of each of several rows. */
static void tiles_fold(const struct fold_columns *fold, struct columns_room *room, int64_t position,
                       int64_t rows, size_t count, char *sums)
{
    const float *all[GNI_FOLD_ROWS];
    for (int64_t i = 0; i < GNI_FOLD_ROWS; i++) {
        all[i] =
            i < rows ? tile_get(fold, room, position + i * fold->columns, count) : room->nothing;
        if (i < rows && fold->direct == NULL)
            all[i] = memcpy(room->rows[i], all[i], count * sizeof(float));
    }
    fold->fold_rows((double *)(void *)sums, all, count);
}

static void chunk_fold(const struct fold_columns *fold, struct columns_room *room, int64_t row,
                       int64_t row_end, int64_t column, int64_t column_end, char *sums)
{
    int64_t step = fold->fold_rows != NULL ? GNI_FOLD_ROWS : 1, tile = (int64_t)fold->plan->tile;
    for (; row < row_end; row += step) {
        for (int64_t at = column; at < column_end; at += tile) {
            size_t count = (size_t)(column_end - at < tile ? column_end - at : tile);
            char *to = sums + (size_t)(at - column) * fold->wide_size;
            int64_t position = row * fold->columns + at;
            if (fold->fold_rows != NULL)
                tiles_fold(fold, room, position, row_end - row, count, to);
            else
                tile_fold(fold, room, position, count, to);
        }
    }
}

static void accumulators_start(const struct fold_columns *fold, size_t count, char *sums)
{
    size_t nbytes = count * fold->wide_size;
    memcpy(sums, &fold->start, fold->wide_size);
    for (size_t done = fold->wide_size; done < nbytes; done *= 2)
        memcpy(sums + done, sums, done < nbytes - done ? done : nbytes - done);
}

/* Items are the column parts of all chunks of rows. */
static void part_fold_columns(void *context, size_t begin, size_t end)
{
    const struct fold_columns *fold = context;
    struct columns_room room;
    gni_run_begin(&room.run, fold->plan, room.tiles);
    for (int64_t i = 0; i < GNI_TILE_MOST && i < fold->columns; i++)
        room.nothing[i] = -0.0f;
    for (size_t item = begin; item < end; item++) {
        int64_t chunk = (int64_t)item / fold->column_parts;
        int64_t column = (int64_t)item % fold->column_parts * COLUMNS_PART;
        int64_t column_end =
            column + COLUMNS_PART < fold->columns ? column + COLUMNS_PART : fold->columns;
        int64_t row = chunk * fold->chunk_rows;
        int64_t row_end = row + fold->chunk_rows < fold->rows ? row + fold->chunk_rows : fold->rows;
        char *sums = fold->partial + (size_t)(chunk * fold->columns + column) * fold->wide_size;
        accumulators_start(fold, (size_t)(column_end - column), sums);
        chunk_fold(fold, &room, row, row_end, column, column_end, sums);
    }
}

static gn_status columns_fold(struct gni_program *program, short value,
                              enum gni_reduction reduction, int64_t columns, uint64_t *results)
{
    static const enum gni_op ops[GNI_REDUCTION_COUNT] = {
        [GNI_REDUCTION_SUM] = GNI_OP_ADD,         [GNI_REDUCTION_PRODUCT] = GNI_OP_MULTIPLY,
        [GNI_REDUCTION_MAXIMUM] = GNI_OP_MAXIMUM, [GNI_REDUCTION_MINIMUM] = GNI_OP_MINIMUM,
        [GNI_REDUCTION_ANY] = GNI_OP_LOGICAL_OR,  [GNI_REDUCTION_ALL] = GNI_OP_LOGICAL_AND,
    };
    struct gni_plan plan;
    gn_dtype computing = gni_dtypes[gni_program_held(program, value)].compute;
    gn_dtype wide = accumulator_type(reduction, computing);
    value = gni_program_convert(program, value, computing);
    gni_plan_make(&plan, program, value);
    bool is_direct = value < program->input_count && plan.is_direct[value];
    bool has_short = reduction == GNI_REDUCTION_SUM && computing == GN_FLOAT32;
    struct fold_columns fold = {
        .plan = &plan,
        .direct = is_direct ? program->inputs[value].data : NULL,
        .value = value,
        .fold_rows = has_short ? gni_fold_rows_find() : NULL,
        .widen = computing != wide ? gni_loop_convert(computing, wide) : NULL,
        .fold = gni_loop_find(ops[reduction], wide),
        .size = gni_dtype_size(computing),
        .wide_size = gni_dtype_size(wide),
        .rows = program->count / columns,
        .columns = columns,
        .column_parts = (columns + COLUMNS_PART - 1) / COLUMNS_PART,
        .start = accumulator_start(reduction, computing),
    };
    int64_t width = columns < COLUMNS_PART ? columns : COLUMNS_PART;
    fold.chunk_rows = (COLUMNS_ELEMENTS + width - 1) / width;
    int64_t chunks = (fold.rows + fold.chunk_rows - 1) / fold.chunk_rows;
    size_t nbytes = (size_t)(chunks * columns) * fold.wide_size;
    fold.partial = gni_host_alloc(nbytes);
    if (fold.partial == NULL)
        return gni_error_host_memory(nbytes);
    gni_parallel_for((size_t)(chunks * fold.column_parts), 1, part_fold_columns, &fold);
    for (int64_t chunk = 1; chunk < chunks; chunk++) {
        const void *in[] = {fold.partial,
                            fold.partial + (size_t)(chunk * columns) * fold.wide_size};
        fold.fold(fold.partial, in, (size_t)columns);
    }
    for (int64_t i = 0; i < columns; i++)
        memcpy(&results[i], fold.partial + (size_t)i * fold.wide_size, fold.wide_size);
    gni_host_free(fold.partial);
    return GN_OK;
}

/* ---- the whole -------------------------------------------------------------------------------- */

static enum gni_reduction reduction_of(gn_reduction reduction)
{
    static const enum gni_reduction folds[GN_REDUCTION_COUNT] = {
        [GN_REDUCE_SUM] = GNI_REDUCTION_SUM,         [GN_REDUCE_PRODUCT] = GNI_REDUCTION_PRODUCT,
        [GN_REDUCE_MAXIMUM] = GNI_REDUCTION_MAXIMUM, [GN_REDUCE_MINIMUM] = GNI_REDUCTION_MINIMUM,
        [GN_REDUCE_ANY] = GNI_REDUCTION_ANY,         [GN_REDUCE_ALL] = GNI_REDUCTION_ALL,
        [GN_REDUCE_MEAN] = GNI_REDUCTION_SUM,
    };
    return folds[reduction];
}

/* Accumulators become elements. */
static void results_store(const struct gni_folding *folding, gn_dtype kind, gn_tensor *result,
                          const uint64_t *accumulators)
{
    char *data = gni_tensor_data(result);
    size_t size = gni_dtype_size(result->dtype);
    for (int64_t i = 0; i < folding->kept; i++) {
        gn_scalar value = gni_scalar_load(kind, &accumulators[i]);
        if (folding->reduction == GN_REDUCE_MEAN)
            value.floating =
                folding->folded > 0 ? value.floating / (double)folding->folded : (double)NAN;
        gni_scalar_store(value, result->dtype, data + (size_t)i * size);
    }
}

gn_status gni_cpu_fold(struct gni_program *program, short value, const struct gni_folding *folding,
                       gn_tensor *result, gn_stream *stream)
{
    enum gni_reduction reduction = reduction_of(folding->reduction);
    gn_dtype computing = gni_dtypes[gni_program_held(program, value)].compute;
    size_t nbytes = (size_t)folding->kept * sizeof(uint64_t);
    uint64_t single, *accumulators = folding->kept == 1 ? &single : gni_host_alloc(nbytes);
    (void)stream;
    if (accumulators == NULL)
        return gni_error_host_memory(nbytes);
    uint64_t start = accumulator_start(reduction, computing);
    for (int64_t i = 0; i < folding->kept; i++)
        accumulators[i] = start;
    gn_status status = GN_OK;
    if (program->count > 0)
        status = folding->is_by_columns
                     ? columns_fold(program, value, reduction, folding->kept, accumulators)
                     : rows_fold(program, value, reduction, folding->kept, accumulators);
    if (status == GN_OK)
        results_store(folding, accumulator_type(reduction, computing), result, accumulators);
    if (accumulators != &single)
        gni_host_free(accumulators);
    return status;
}

const struct gni_backend gni_cpu_backend = {
    .run = gni_cpu_run,
    .fold = gni_cpu_fold,
    .softmax = gni_cpu_softmax,
    .softmax_row_bytes = GNI_SOFTMAX_ROW_BYTES,
    .random = gni_cpu_random,
    .extreme = gni_cpu_extreme,
    .cumulate = gni_cpu_cumulate,
    .cumulate_extreme = gni_cpu_cumulate_extreme,
    .select = gni_cpu_select,
    .unique = gni_cpu_unique,
    .product = gni_cpu_product,
    .product_copies = gni_cpu_product_copies,
};
