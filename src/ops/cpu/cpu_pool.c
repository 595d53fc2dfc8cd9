/*
 * cpu_pool.c: the largest elements of windows on the CPU: ops/max_pool.h.
 *
 * A stretch of a row of results is computed at a time: each element of the windows is compared for all of them, side by
 * side, so that compilers make vector code of it.
 */
#include "base/parallel.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/cpu_product.h"
#include "ops/max_pool.h"

#include <math.h>

enum {
    DEPTH,
    HEIGHT,
    WIDTH,
    STRETCH = 128, /* results at a time */
};

struct job {
    const struct gni_pool *pool;
    bool is_double;
    const char *image;
    char *values;
    int64_t *indices;         /* NULL: not wanted */
    int64_t elements, places; /* of a row */
};

/* One element of the windows of results from `low` to before `high`, `stride` apart in the image. */
#define DEFINE(name, type)                                                                        \
    static inline __attribute__((always_inline)) void name##_compare(                             \
        const type *from, int64_t stride, int32_t place, int64_t low, int64_t high, type *best,   \
        int32_t *index)                                                                           \
    {                                                                                             \
        for (int64_t i = low; i < high; i++) {                                                    \
            type value = from[i * stride], before = best[i];                                      \
            bool is_more = (value > before) | (value != value);                                   \
            best[i] = is_more ? value : before;                                                   \
            index[i] = is_more ? place + (int32_t)(i * stride) : index[i];                        \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    static inline __attribute__((always_inline)) void name##_values(                              \
        const type *from, int64_t stride, int64_t low, int64_t high, type *best)                  \
    {                                                                                             \
        for (int64_t i = low; i < high; i++) {                                                    \
            type value = from[i * stride], before = best[i];                                      \
            best[i] = ((value > before) | (value != value)) ? value : before;                     \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    /* Compares a row of the image, which begins at `line`, with a stretch of results. */         \
    static void name##_line(const struct job *job, const type *row, int64_t line, int64_t first,  \
                            int64_t count, type *best, int32_t *index)                            \
    {                                                                                             \
        const struct gni_pool *pool = job->pool;                                                  \
        int64_t stride = pool->stride[WIDTH], size = pool->image[WIDTH];                          \
        for (int64_t k = 0; k < pool->kernel[WIDTH]; k++) {                                       \
            int64_t at = first * stride - pool->padding[WIDTH] + k * pool->dilation[WIDTH];       \
            int64_t low = at < 0 ? (-at + stride - 1) / stride : 0;                               \
            int64_t high = at < size ? (size - 1 - at) / stride + 1 : 0;                          \
            high = high < count ? high : count;                                                   \
            const type *from = row + line + at;                                                   \
            int32_t place = (int32_t)(line + at);                                                 \
            if (job->indices == NULL && stride == 1)                                              \
                name##_values(from, 1, low, high, best);                                          \
            else if (job->indices == NULL && stride == 2)                                         \
                name##_values(from, 2, low, high, best);                                          \
            else if (job->indices == NULL)                                                        \
                name##_values(from, stride, low, high, best);                                     \
            else if (stride == 1)                                                                 \
                name##_compare(from, 1, place, low, high, best, index);                           \
            else if (stride == 2)                                                                 \
                name##_compare(from, 2, place, low, high, best, index);                           \
            else                                                                                  \
                name##_compare(from, stride, place, low, high, best, index);                      \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    static void name##_stretch(const struct job *job, const type *row, int64_t depth,             \
                               int64_t height, int64_t first, int64_t count, type *values,        \
                               int64_t *indices)                                                  \
    {                                                                                             \
        const struct gni_pool *pool = job->pool;                                                  \
        struct gni_pool_window d = gni_pool_window(pool, DEPTH, depth);                           \
        struct gni_pool_window h = gni_pool_window(pool, HEIGHT, height);                         \
        int64_t begin = (d.start * pool->image[HEIGHT] + h.start) * pool->image[WIDTH];           \
        type best[STRETCH];                                                                       \
        int32_t index[STRETCH];                                                                   \
        for (int64_t i = 0; i < count; i++)                                                       \
            best[i] = (type)-INFINITY;                                                            \
        for (int64_t i = 0; i < count && indices != NULL; i++)                                    \
            index[i] = (int32_t)(begin + gni_pool_window(pool, WIDTH, first + i).start);          \
        for (int64_t i = d.start; i < d.end; i += d.step)                                         \
            for (int64_t j = h.start; j < h.end; j += h.step)                                     \
                name##_line(job, row, (i * pool->image[HEIGHT] + j) * pool->image[WIDTH], first,  \
                            count, best, index);                                                  \
        memcpy(values, best, (size_t)count * sizeof *best);                                       \
        for (int64_t i = 0; i < count && indices != NULL; i++)                                    \
            indices[i] = index[i];                                                                \
    }                                                                                             \
                                                                                                  \
    /* One window by itself. */                                                                   \
    static void name##_window(const struct job *job, const type *row, int64_t depth,              \
                              int64_t height, int64_t width, type *value, int64_t *index)         \
    {                                                                                             \
        const struct gni_pool *pool = job->pool;                                                  \
        struct gni_pool_window d = gni_pool_window(pool, DEPTH, depth);                           \
        struct gni_pool_window h = gni_pool_window(pool, HEIGHT, height);                         \
        struct gni_pool_window w = gni_pool_window(pool, WIDTH, width);                           \
        type best = (type)-INFINITY;                                                              \
        int64_t found = (d.start * pool->image[HEIGHT] + h.start) * pool->image[WIDTH] + w.start; \
        for (int64_t i = d.start; i < d.end; i++)                                                 \
            for (int64_t j = h.start; j < h.end; j++)                                             \
                for (int64_t k = w.start; k < w.end; k++) {                                       \
                    int64_t at = (i * pool->image[HEIGHT] + j) * pool->image[WIDTH] + k;          \
                    if (row[at] > best || row[at] != row[at]) {                                   \
                        best = row[at];                                                           \
                        found = at;                                                               \
                    }                                                                             \
                }                                                                                 \
        *value = best;                                                                            \
        if (index != NULL)                                                                        \
            *index = found;                                                                       \
    }                                                                                             \
                                                                                                  \
    static void name##_row(const struct job *job, int64_t number)                                 \
    {                                                                                             \
        const struct gni_pool *pool = job->pool;                                                  \
        const type *row = (const type *)(const void *)job->image + number * job->elements;        \
        int64_t wide = pool->result[WIDTH];                                                       \
        for (int64_t line = 0; line < pool->result[DEPTH] * pool->result[HEIGHT]; line++) {       \
            int64_t depth = line / pool->result[HEIGHT], height = line % pool->result[HEIGHT];    \
            int64_t place = number * job->places + line * wide;                                   \
            type *values = (type *)(void *)job->values + place;                                   \
            int64_t *indices = job->indices != NULL ? job->indices + place : NULL;                \
            for (int64_t i = 0; pool->is_adaptive && i < wide; i++)                               \
                name##_window(job, row, depth, height, i, values + i,                             \
                              indices != NULL ? indices + i : NULL);                              \
            for (int64_t i = 0; !pool->is_adaptive && i < wide; i += STRETCH)                     \
                name##_stretch(job, row, depth, height, i,                                        \
                               wide - i < STRETCH ? wide - i : STRETCH, values + i,               \
                               indices != NULL ? indices + i : NULL);                             \
        }                                                                                         \
    }

DEFINE(float32, float)
DEFINE(float64, double)

static void rows_part(void *context, size_t begin, size_t end)
{
    const struct job *job = context;
    for (size_t i = begin; i < end; i++)
        (job->is_double ? float64_row : float32_row)(job, (int64_t)i);
}

gn_status gni_cpu_pool_maximum(const struct gni_pool *pool, gn_tensor *image, gn_tensor *values,
                               gn_tensor *indices)
{
    struct job job = {
        .pool = pool,
        .is_double = image->dtype == GN_FLOAT64,
        .image = gni_tensor_data(image),
        .values = gni_tensor_data(values),
        .indices = indices != NULL ? (int64_t *)(void *)gni_tensor_data(indices) : NULL,
        .elements = image->count / pool->rows,
        .places = values->count / pool->rows,
    };
    int64_t work = (job.places * 4 + job.elements) * 4;
    gni_parallel_for((size_t)pool->rows, gni_product_grain(work), rows_part, &job);
    return GN_OK;
}
