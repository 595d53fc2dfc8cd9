/*
 * mask.h: the true elements of a mask, in row-major order, a window at a time.
 *
 * A mask is bytes, one after the other, over something that has strides: each true byte stands for an offset. Which
 * are true is found eight bytes at a time, without a branch on any of them.
 *
 * Invariants:
 *   MK1 the bytes are cut into parts of GNI_MASK_PART; `before` has how many are true before each part, so that parts
 *        can be worked on in any order;
 *   MK2 dimensions that lie one in another are joined: a contiguous array has one.
 *
 * Threads: gni_mask_next() from any, at once.
 */
#ifndef GNI_TENSOR_MASK_H
#define GNI_TENSOR_MASK_H

#include "tensor/shape.h"

enum {
    GNI_MASK_PART = 1 << 15,
    GNI_MASK_WINDOW = 1024, /* a part is a whole number of windows */
};

struct gni_mask {
    const uint8_t *bytes; /* borrowed */
    int64_t length;       /* bytes */
    int64_t count;        /* true ones */
    int64_t *before;      /* for each part; NULL if there is one at most */
    int ndim;
    int64_t sizes[GN_DIMENSIONS_MAX];
    int64_t strides[GN_DIMENSIONS_MAX]; /* of what is masked */
};

/* Counts. Fails with GN_ERROR_OUT_OF_HOST_MEMORY only. */
gn_status gni_mask_init(struct gni_mask *mask, const void *bytes, int ndim, const int64_t *sizes,
                        const int64_t *strides) GN_NODISCARD;
void gni_mask_deinit(struct gni_mask *mask);

static inline int64_t gni_mask_parts(const struct gni_mask *mask)
{
    return (mask->length + GNI_MASK_PART - 1) / GNI_MASK_PART;
}

/* How many are true before a part, which may be the one behind the last. */
static inline int64_t gni_mask_before(const struct gni_mask *mask, int64_t part)
{
    if (part >= gni_mask_parts(mask))
        return mask->count;
    return mask->before != NULL ? mask->before[part] : 0;
}

/* Of the bookkeeping. */
static inline size_t gni_mask_bytes(const struct gni_mask *mask)
{
    return mask->before != NULL ? (size_t)gni_mask_parts(mask) * sizeof *mask->before : 0;
}

/*
 * The offsets of the true elements from byte *at on, of at most GNI_MASK_WINDOW bytes and none from `end` on; *at
 * moves behind them. How many there are. `offsets` has room for GNI_MASK_WINDOW.
 */
size_t gni_mask_next(const struct gni_mask *mask, int64_t *at, int64_t end, int64_t *offsets);

/* All offsets, in order: room for `count`. */
void gni_mask_offsets(const struct gni_mask *mask, int64_t *offsets);

#endif
