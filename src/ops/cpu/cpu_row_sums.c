/*
 * cpu_row_sums.c: sums of rows that are named, and their largest elements, on the CPU: src/ops/row_sums.h.
 *
 *     to      0 0 0 2 2 1 ...     a run: pairs side by side that go to one row
 *     from    7 3 9 3 1 0 ...
 *
 * A run is added up BLOCK columns at a time, which stay in registers or in the first cache. Each thread has some rows of
 * the result, and looks for the pairs that go there, so that the order of a sum does not depend on threads.
 */
#include "ops/cpu/cpu_ops.h"

#include "base/parallel.h"
#include "ops/cpu/loops.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum {
    BLOCK = 64,          /* columns at a time */
    AHEAD = 8,           /* pairs whose rows are asked for early */
    PART_LEAST = 1 << 15 /* elements that are worth another thread */
};

struct job {
    const char *source;
    const void *factors; /* NULL: 1 */
    const int64_t *from, *to;
    size_t count;
    int64_t width;
    char *result;
    int64_t *chosen; /* NULL: sums */
    size_t size;     /* of an element of the source */
    gni_loop widen;  /* from halves; NULL: they are computed as they are */
    bool is_double, is_ascending;
};

/* A run, of so many pairs, in some columns. */
struct run {
    size_t begin, end;
    int64_t column, columns;
};

/* The part of a pair's row, as it is computed; `room` is for BLOCK elements that are converted. */
INLINE const void *row_get(const struct job *job, size_t pair, int64_t column, int64_t columns,
                           float *room)
{
    const char *row = job->source + (size_t)(job->from[pair] * job->width + column) * job->size;
    if (job->widen == NULL)
        return row;
    job->widen(room, &(const void *){row}, (size_t)columns);
    return room;
}

INLINE void row_ask(const struct job *job, size_t pair, const struct run *run)
{
    if (pair < run->end && job->from[pair] >= 0)
        __builtin_prefetch(job->source +
                           (size_t)(job->from[pair] * job->width + run->column) * job->size);
}

/* One more row; where the number of columns is known when this is compiled, without a loop for the rest. */
#define SUMS(name, type)                                                                          \
    INLINE void name##_row_add(type *restrict sums, const type *restrict row, const type *factor, \
                               int64_t columns)                                                   \
    {                                                                                             \
        if (factor == NULL)                                                                       \
            for (int64_t j = 0; j < columns; j++)                                                 \
                sums[j] += row[j];                                                                \
        else                                                                                      \
            for (int64_t j = 0; j < columns; j++)                                                 \
                sums[j] += *factor * row[j];                                                      \
    }                                                                                             \
                                                                                                  \
    INLINE void name##_run_sum(const struct job *job, const struct run *run, int64_t columns)     \
    {                                                                                             \
        type sums[BLOCK],                                                                         \
            *out = (type *)(void *)job->result + job->to[run->begin] * job->width + run->column;  \
        float room[BLOCK];                                                                        \
        const type *factors = job->factors;                                                       \
        memcpy(sums, out, sizeof *sums *(size_t)columns);                                         \
        for (size_t i = run->begin; i < run->end; i++) {                                          \
            row_ask(job, i + AHEAD, run);                                                         \
            if (job->from[i] >= 0)                                                                \
                name##_row_add(sums, row_get(job, i, run->column, columns, room),                 \
                               factors != NULL ? factors + i : NULL, columns);                    \
        }                                                                                         \
        memcpy(out, sums, sizeof *sums *(size_t)columns);                                         \
    }

/* Where an element is better than the best of its column, the number of its pair takes over. */
#define MAXIMA(name, type, place)                                                                 \
    INLINE void name##_row_compare(type *restrict best, place *restrict which,                    \
                                   const type *restrict row, place number, int64_t columns)       \
    {                                                                                             \
        for (int64_t j = 0; j < columns; j++) {                                                   \
            type x = row[j], y = best[j];                                                         \
            bool is_more = (which[j] < 0) | (x > y) | ((x != x) & (y == y));                      \
            best[j] = is_more ? x : y;                                                            \
            which[j] = is_more ? number : which[j];                                               \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    INLINE void name##_run_maximum(const struct job *job, const struct run *run, int64_t columns) \
    {                                                                                             \
        type best[BLOCK] = {0};                                                                   \
        place which[BLOCK];                                                                       \
        float room[BLOCK];                                                                        \
        int64_t *out = job->chosen + job->to[run->begin] * job->width + run->column;              \
        memset(which, -1, sizeof which);                                                          \
        for (size_t i = run->begin; i < run->end; i++) {                                          \
            row_ask(job, i + AHEAD, run);                                                         \
            if (job->from[i] >= 0)                                                                \
                name##_row_compare(best, which, row_get(job, i, run->column, columns, room),      \
                                   (place)(i - run->begin), columns);                             \
        }                                                                                         \
        for (int64_t j = 0; j < columns; j++)                                                     \
            out[j] = which[j] < 0 ? -1 : job->from[run->begin + (size_t)which[j]];                \
    }

#define DEFINE(name, type, place)                                          \
    SUMS(name, type)                                                       \
    MAXIMA(name, type, place)                                              \
    INLINE void name##_block(const struct job *job, const struct run *run) \
    {                                                                      \
        if (job->chosen != NULL && run->columns == BLOCK)                  \
            name##_run_maximum(job, run, BLOCK);                           \
        else if (job->chosen != NULL)                                      \
            name##_run_maximum(job, run, run->columns);                    \
        else if (run->columns == BLOCK)                                    \
            name##_run_sum(job, run, BLOCK);                               \
        else                                                               \
            name##_run_sum(job, run, run->columns);                        \
    }

/* Places are as wide as elements, so that a vector has as many of both. */
DEFINE(float, float, int32_t)
DEFINE(double, double, int64_t)

INLINE void run_compute(const struct job *job, size_t begin, size_t end)
{
    struct run run = {.begin = begin, .end = end};
    for (; run.column < job->width; run.column += BLOCK) {
        int64_t left = job->width - run.column;
        run.columns = left < BLOCK ? left : BLOCK;
        if (job->is_double)
            double_block(job, &run);
        else
            float_block(job, &run);
    }
}

/* The first pair that goes to a row or one behind, where they ascend. */
static size_t pair_find(const struct job *job, int64_t row)
{
    size_t low = 0, high = job->is_ascending ? job->count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (job->to[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* All runs that go to rows from `first` to before `last`. */
INLINE void runs_compute(const struct job *job, int64_t first, int64_t last)
{
    size_t i = pair_find(job, first);
    while (i < job->count) {
        int64_t row = job->to[i];
        size_t begin = i++;
        while (i < job->count && job->to[i] == row)
            i++;
        if (row >= last && job->is_ascending)
            return;
        if (row >= first && row < last)
            run_compute(job, begin, i);
    }
}

/* ---- for processors ----------------------------------------------------------------------------- */

static void runs_basic(const struct job *job, int64_t first, int64_t last)
{
    runs_compute(job, first, last);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void runs_avx2(const struct job *job, int64_t first,
                                                      int64_t last)
{
    runs_compute(job, first, last);
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}
#else
#define runs_avx2 runs_basic

static bool has_avx2(void)
{
    return false;
}
#endif

static void part(void *context, size_t begin, size_t end)
{
    const struct job *job = context;
    size_t each = (size_t)job->width * (job->is_double ? sizeof(double) : sizeof(float));
    if (job->chosen != NULL)
        memset(job->chosen + begin * (size_t)job->width, -1,
               (end - begin) * (size_t)job->width * sizeof *job->chosen);
    else
        memset(job->result + begin * each, 0, (end - begin) * each);
    (has_avx2() ? runs_avx2 : runs_basic)(job, (int64_t)begin, (int64_t)end);
}

static bool is_ascending(const int64_t *numbers, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (numbers[i] < numbers[i - 1])
            return false;
    return true;
}

/* Rows of the result are divided; each thread goes through all pairs that do not ascend. */
static void job_run(struct job *job, const gn_tensor *source, const gn_tensor *to, int64_t rows)
{
    job->source = gni_tensor_data(source);
    job->to = (const int64_t *)(const void *)gni_tensor_data(to);
    job->count = (size_t)to->count;
    job->width = source->sizes[1];
    job->size = gni_dtype_size(source->dtype);
    job->is_double = source->dtype == GN_FLOAT64;
    if (gni_dtype_is_half(source->dtype))
        job->widen = gni_loop_convert(source->dtype, GN_FLOAT32);
    job->is_ascending = is_ascending(job->to, job->count);
    size_t parts = job->is_ascending ? 64 : (size_t)gni_parallel_get_threads();
    size_t most = 1 + (job->count + (size_t)rows) * (size_t)job->width / PART_LEAST;
    parts = parts < most ? parts : most;
    gni_parallel_for((size_t)rows, ((size_t)rows + parts - 1) / parts, part, job);
}

void gni_cpu_row_sums(gn_tensor *source, gn_tensor *factors, gn_tensor *from, gn_tensor *to,
                      gn_tensor *result)
{
    struct job job = {.factors = factors != NULL ? gni_tensor_data(factors) : NULL,
                      .from = (const int64_t *)(const void *)gni_tensor_data(from),
                      .result = gni_tensor_data(result)};
    job_run(&job, source, to, result->sizes[0]);
}

void gni_cpu_row_maxima(gn_tensor *source, gn_tensor *from, gn_tensor *to, gn_tensor *chosen)
{
    struct job job = {.from = (const int64_t *)(const void *)gni_tensor_data(from),
                      .chosen = (int64_t *)(void *)gni_tensor_data(chosen)};
    job_run(&job, source, to, chosen->sizes[0]);
}
