/*
 * max_pool.h: the largest elements of windows, and where they are.
 *
 * Images come as rows of a matrix, one for each channel of each image. An index is the place of an element in its row.
 * NaN counts as the largest; of equal elements it is the first.
 */
#ifndef GNI_OPS_MAX_POOL_H
#define GNI_OPS_MAX_POOL_H

#include "ops/expression.h"
#include "tensor/tape.h"

struct gni_pool {
    int64_t rows;
    int64_t image[GNI_CONV_DIMENSIONS], result[GNI_CONV_DIMENSIONS]; /* depth, height, width */
    bool is_adaptive; /* windows divide the image into parts; the rest is not used */
    int64_t kernel[GNI_CONV_DIMENSIONS], stride[GNI_CONV_DIMENSIONS];
    int64_t padding[GNI_CONV_DIMENSIONS], dilation[GNI_CONV_DIMENSIONS];
};

/* Elements of a window in a dimension: from `start` to before `end`, `step` apart. There is at least one. */
struct gni_pool_window {
    int64_t start, end, step;
};

static inline struct gni_pool_window gni_pool_window(const struct gni_pool *pool, int d,
                                                     int64_t place)
{
    int64_t size = pool->image[d], parts = pool->result[d], step = pool->dilation[d];
    if (pool->is_adaptive)
        return (struct gni_pool_window){place * size / parts, ((place + 1) * size - 1) / parts + 1,
                                        1};
    int64_t start = place * pool->stride[d] - pool->padding[d];
    int64_t end = start + (pool->kernel[d] - 1) * step + 1;
    if (start < 0)
        start += (-start + step - 1) / step * step;
    return (struct gni_pool_window){start, end < size ? end : size, step};
}

/* Of a matrix: values of its type, on the tape, and indices, int64, which may be NULL. */
gn_status gni_pool_maximum(const struct gni_pool *pool, gn_tensor *image, gn_tensor **values,
                           gn_tensor **indices) GN_NODISCARD;

#endif
