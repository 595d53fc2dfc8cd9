/*
 * cpu_softmax.c: softmax of rows on the CPU, with the steps before it: a row is worked on while it is in cache, so that
 * memory is read once and written once.
 *
 *     columns up to a tile    as many rows at a time as a tile holds
 *     longer rows             one at a time, in pieces of a tile
 *
 * What a row's values become on the way is kept where they go in the end, or, where the result's type is not the one
 * that is computed in, on the stack: hence the bound GNI_SOFTMAX_ROW_BYTES.
 *
 * Used for less than 16384 elements, where one call beats a row program (0.4x of its time at 8 x 50, 0.8x at 64 x 100), and for
 * rows of more than 8192 elements, which a row program reads a third time (0.75x at 256 x 50257). Between these the row program
 * of softmax.c takes 0.25x to 1x of the time of this one, and fuses with what follows.
 *
 * A row is one thread's, whatever their number, so results do not depend on it.
 */
#include "ops/cpu/cpu_ops.h"

#include "base/parallel.h"
#include "ops/cpu/plan.h"

#include <math.h>
#include <string.h>

struct softmax {
    const struct gni_plan *plan;
    const char *direct; /* where the values lie in memory already; NULL: they are computed */
    short value;
    bool is_log;
    gn_dtype computing;
    size_t size;           /* of an element as it is computed */
    size_t columns, group; /* of a row; rows that are worked on together */
    size_t out_size;
    char *out;
    gni_reducer maximum, sum;
    gni_loop subtract, exp, log, divide;
    gni_loop store; /* NULL: the result is of the type that is computed in */
    uint64_t least; /* the maximum of nothing */
};

/* What a thread works in. */
struct room {
    struct gni_run run;
    _Alignas(64) char tiles[GNI_SCRATCH_BYTES];
    _Alignas(64) char kept[GNI_SOFTMAX_ROW_BYTES];
    _Alignas(64) char number[GNI_TILE_MOST * GNI_ELEMENT_BYTES]; /* one, again and again */
    _Alignas(64) char powers[GNI_TILE_MOST * GNI_ELEMENT_BYTES];
    uint64_t maxima[GNI_TILE_MOST], sums[GNI_TILE_MOST]; /* of the rows of a group */
};

static void number_repeat(void *to, const void *number, size_t size, size_t count)
{
    uint32_t narrow, *narrows = to;
    uint64_t wide, *wides = to;
    if (size == sizeof narrow) {
        memcpy(&narrow, number, sizeof narrow);
        for (size_t i = 0; i < count; i++)
            narrows[i] = narrow;
    } else {
        memcpy(&wide, number, sizeof wide);
        for (size_t i = 0; i < count; i++)
            wides[i] = wide;
    }
}

/* A loop over rows of `length` elements that lie side by side, each with a number of its own. */
static void rows_with_numbers(const struct softmax *softmax, struct room *room, gni_loop loop,
                              const char *from, const uint64_t *numbers, size_t rows, size_t length,
                              char *to)
{
    size_t step = length * softmax->size;
    for (size_t i = 0; i < rows; i++) {
        const void *in[] = {from + i * step, room->number};
        number_repeat(room->number, &numbers[i], softmax->size, length);
        loop(to + i * step, in, length);
    }
}

/* The values of some rows, where they lie or in `kept`. */
static const char *values_get(const struct softmax *softmax, struct room *room, size_t at,
                              size_t count, char *kept)
{
    if (softmax->direct != NULL)
        return softmax->direct + at * softmax->size;
    for (size_t done = 0; done < count; done += softmax->plan->tile) {
        size_t rest = count - done;
        size_t some = rest < softmax->plan->tile ? rest : softmax->plan->tile;
        gni_run_tile(&room->run, (int64_t)(at + done), some);
        memcpy(kept + done * softmax->size, room->run.values[softmax->value], some * softmax->size);
    }
    return kept;
}

/* Powers of what is left of the maximum, or for the logarithm that itself, go to `to`, and sums of powers are added. */
static void powers_make(const struct softmax *softmax, struct room *room, const char *from,
                        size_t rows, size_t length, char *to)
{
    char *powers = softmax->is_log ? room->powers : to;
    const void *shifted = to;
    rows_with_numbers(softmax, room, softmax->subtract, from, room->maxima, rows, length, to);
    softmax->exp(powers, &shifted, rows * length);
    for (size_t i = 0; i < rows; i++)
        softmax->sum(&room->sums[i], powers + i * length * softmax->size, length);
}

/* Sums, which are of double, become what every element is divided by, or what is taken off it. */
static void sums_finish(const struct softmax *softmax, struct room *room, size_t rows)
{
    for (size_t i = 0; i < rows; i++) {
        const void *sum = &room->sums[i];
        gni_scalar_store(gni_scalar_load(GN_FLOAT64, sum), softmax->computing, &room->sums[i]);
        if (softmax->is_log)
            softmax->log(&room->sums[i], &sum, 1);
    }
}

static void group_run(const struct softmax *softmax, struct room *room, size_t row, size_t rows)
{
    size_t columns = softmax->columns, size = softmax->size, at = row * columns;
    size_t length = columns < softmax->plan->tile ? columns : softmax->plan->tile;
    char *out = softmax->out + at * softmax->out_size;
    char *kept = softmax->store == NULL ? out : room->kept;
    const char *values = values_get(softmax, room, at, rows * columns, kept);
    double nothing = 0;
    for (size_t i = 0; i < rows; i++) {
        room->maxima[i] = softmax->least;
        softmax->maximum(&room->maxima[i], values + i * columns * size, columns);
        memcpy(&room->sums[i], &nothing, sizeof nothing);
    }
    for (size_t done = 0; done < columns; done += length) {
        size_t some = columns - done < length ? columns - done : length;
        powers_make(softmax, room, values + done * size, rows, some, kept + done * size);
    }
    sums_finish(softmax, room, rows);
    for (size_t done = 0; done < columns; done += length) {
        size_t some = columns - done < length ? columns - done : length;
        rows_with_numbers(softmax, room, softmax->is_log ? softmax->subtract : softmax->divide,
                          kept + done * size, room->sums, rows, some, kept + done * size);
    }
    const void *made = kept;
    if (softmax->store != NULL)
        softmax->store(out, &made, rows * columns);
}

static void part_run(void *context, size_t begin, size_t end)
{
    const struct softmax *softmax = context;
    struct room room;
    gni_run_begin(&room.run, softmax->plan, room.tiles);
    for (size_t row = begin; row < end; row += softmax->group)
        group_run(softmax, &room, row, end - row < softmax->group ? end - row : softmax->group);
}

gn_status gni_cpu_softmax(struct gni_program *program, short value, int64_t rows, bool is_log,
                          gn_tensor *result, gn_stream *stream)
{
    (void)stream;
    if (program->count == 0)
        return GN_OK;
    struct gni_plan plan;
    gn_dtype computing = gni_dtypes[gni_program_held(program, value)].compute;
    value = gni_program_convert(program, value, computing);
    gni_plan_make(&plan, program, value);
    bool is_direct = value < program->input_count && plan.is_direct[value];
    struct softmax softmax = {
        .plan = &plan,
        .direct = is_direct ? program->inputs[value].data : NULL,
        .value = value,
        .is_log = is_log,
        .computing = computing,
        .size = gni_dtype_size(computing),
        .columns = (size_t)(program->count / rows),
        .out_size = gni_dtype_size(result->dtype),
        .out = gni_tensor_data(result),
        .maximum = gni_reducers_find(GNI_REDUCTION_MAXIMUM, computing).one,
        .sum = gni_reducers_find(GNI_REDUCTION_SUM, computing).one,
        .subtract = gni_loop_find(GNI_OP_SUBTRACT, computing),
        .exp = gni_loop_find(GNI_OP_EXP, computing),
        .log = gni_loop_find(GNI_OP_LOG, computing),
        .divide = gni_loop_find(GNI_OP_DIVIDE, computing),
        .store = computing == result->dtype ? NULL : gni_loop_convert(computing, result->dtype),
    };
    gni_assert(softmax.columns * softmax.size <= GNI_SOFTMAX_ROW_BYTES);
    gn_scalar least = {.kind = GN_FLOAT64, .floating = -(double)INFINITY};
    gni_scalar_store(least, computing, &softmax.least);
    softmax.group = softmax.columns < plan.tile ? plan.tile / softmax.columns : 1;
    gni_parallel_for((size_t)rows, GNI_PART / softmax.columns + 1, part_run, &softmax);
    return GN_OK;
}
