/*
 * shape.h: shapes and strides: sizes that are checked, and what can be seen as what without a copy.
 *
 * Strides are in elements. A dimension of 1 may have any stride, and so may every dimension of a tensor
 * without elements: neither is ever walked along.
 *
 * Invariants:
 *   SH1 0 <= ndim <= GN_DIMENSIONS_MAX, every size >= 0;
 *   SH2 the product of the sizes that are not 0, times the size of an element, fits GNI_SIZE_MAX_BYTES;
 *   SH3 so does every stride, times the dimension's size if that is not 0, times the size of an element.
 *
 * Threads: pure functions.
 */
#ifndef GNI_TENSOR_SHAPE_H
#define GNI_TENSOR_SHAPE_H

#include "tensor/dtype.h"

struct gni_shape {
    int ndim;
    int64_t sizes[GN_DIMENSIONS_MAX];
};

/* A shape as text, for messages: "(2, 3)". */
struct gni_shape_text {
    char text[256];
};

struct gni_shape_text gni_shape_text(int ndim, const int64_t *sizes);

/* Checks sizes, and counts the elements. */
gn_status gni_shape_check(int ndim, const int64_t *sizes, size_t element_bytes,
                          int64_t *count) GN_NODISCARD;

static inline int64_t gni_shape_count(int ndim, const int64_t *sizes)
{
    int64_t count = 1;
    for (int i = 0; i < ndim; i++)
        count *= sizes[i];
    return count;
}

static inline bool gni_shape_is_equal(int ndim, const int64_t *sizes, int other_ndim,
                                      const int64_t *other_sizes)
{
    bool is_equal = ndim == other_ndim;
    for (int i = 0; is_equal && i < ndim; i++)
        is_equal = sizes[i] == other_sizes[i];
    return is_equal;
}

/* Row-major strides. */
void gni_strides_contiguous(int ndim, const int64_t *sizes, int64_t *strides);

/* The shape that two broadcast to; false if they do not. `result` may be one of them. */
bool gni_shape_broadcast(const struct gni_shape *a, const struct gni_shape *b,
                         struct gni_shape *result);

/* A dimension, counted from the end if negative. `ndim` 0 counts as 1. */
gn_status gni_dimension_wrap(int64_t dimension, int ndim, int *result) GN_NODISCARD;

/* Fills in a -1. `count` is how many elements there are. */
gn_status gni_shape_infer(int ndim, const int64_t *asked, int64_t count, size_t element_bytes,
                          int64_t *sizes) GN_NODISCARD;

/*
 * Strides that others gave (NULL: row-major ones), of memory at `data`, with which every element has an address. Those
 * of dimensions that nobody walks along become what they are in a contiguous tensor: others may leave anything there.
 */
gn_status gni_strides_adopt(int ndim, const int64_t *sizes, const int64_t *given,
                            size_t element_bytes, const void *data, int64_t *strides) GN_NODISCARD;

/* Whether the strides keep SH3. */
bool gni_strides_are_possible(int ndim, const int64_t *sizes, const int64_t *strides,
                              size_t element_bytes);

/* Strides with which the same elements have another shape of as many elements; false if there are none. */
bool gni_strides_view(int ndim, const int64_t *sizes, const int64_t *strides, int new_ndim,
                      const int64_t *new_sizes, int64_t *new_strides);

/* The lowest and the highest element that is reached, relative to the first. No elements: both 0. */
void gni_strides_extent(int ndim, const int64_t *sizes, const int64_t *strides, int64_t *lowest,
                        int64_t *highest);

/* Whether two indices may reach one element: dimensions repeated by a stride of 0, or overlapping windows. */
bool gni_strides_overlap(int ndim, const int64_t *sizes, const int64_t *strides);

#endif
