/*
 * index_kernels.h: the innermost loops of indexing: elements at places, and what belongs to them at equal distances.
 *
 *     source   element at place 0, at place 1, ..      anywhere: an offset for each, or an index tensor
 *     other    o o o o o ..                            `step` bytes from one to the next
 *
 * The places come as offsets in bytes; or, where there is one index tensor of int64 and nothing else to be added, as
 * that itself, so that the loop waits for both memories at once. Numbers out of range are then passed by, and the
 * loop says so.
 */
#ifndef GNI_OPS_CPU_INDEX_KERNELS_H
#define GNI_OPS_CPU_INDEX_KERNELS_H

#include "tensor/dtype.h"

struct gni_index_tile {
    char *source, *other;
    size_t count;                     /* places */
    const int64_t *offsets;           /* bytes; or NULL: */
    const int64_t *numbers;           /* of elements, */
    int64_t size, wrap, stride;       /* with what an index has (tensor/index_plan.h), in bytes */
    int64_t step;                     /* of the other, from place to place */
    size_t inner;                     /* elements for each place; 1 with `numbers` */
    int64_t inner_stride, inner_step; /* from one to the next */
    size_t width;                     /* bytes of an element, or of several that lie together */
};

/* False if a number was out of range. */
typedef bool (*gni_index_kernel)(const struct gni_index_tile *tile);

/* Copies elements of a width out of the source, into it, or adds those of a type to it. */
gni_index_kernel gni_index_kernel_get(size_t width);
gni_index_kernel gni_index_kernel_set(size_t width);
gni_index_kernel gni_index_kernel_add(gn_dtype dtype);

/* Stores the offsets themselves, as int64; `source` is a number that is added, not an address. */
gni_index_kernel gni_index_kernel_offsets(void);

#endif
