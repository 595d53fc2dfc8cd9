/*
 * index_plan.h: a key, taken apart: one plan for reading and for writing, for every device.
 *
 *     keys        x[2, :, rows, cols, None]         integers, slices, index tensors, masks, new axes, an ellipsis
 *     plan        offset + sizes and strides        what slices, integers and new axes come to
 *                 indices                           what each index tensor adds to the offset
 *
 * The element of the tensor that belongs to a place (p0, p1, ..) of the result is, in elements from the tensor's
 * first one,
 *
 *     offset + sum over d of p[d] * strides[d]
 *            + sum over k of at(k) * indices[k].stride      at(k) = tensor_k[sum over d of p[d] * indices[k].strides[d]]
 *
 * where a negative at(k) is counted from `wrap`. So a GPU needs nothing but this struct and the addresses.
 *
 * Invariants:
 *   IP1 the dimensions from block_begin to before block_end are those of the index tensors, broadcast together; their
 *        `strides` are 0 in a plan of a key, and each other dimension has an index stride of 0 for every k;
 *   IP2 two places that differ in a dimension whose stride is not 0 mean different elements of the tensor, if the
 *        tensor itself has no two at one address;
 *   IP3 a mask is an index of one dimension: before gni_index_plan_compact() it is bytes and their count, afterwards
 *        offsets in elements, with a stride of 1, that need no check;
 *   IP4 `mask` is set if there is one mask and no other index tensor: then it may be streamed, without offsets;
 *   IP5 on a GPU a mask becomes offsets when the plan is made, as its count, a size of the plan, is found on the way.
 *        Where the dimensions of a mask are one, the offsets are the numbers of its bytes, with that dimension's stride.
 *
 * A mask that is streamed needs no memory to speak of, but is cut into parts by its bytes; offsets are 8 bytes for
 * each true element, and cut evenly. So a mask is streamed where it is dense, and where each true byte is one
 * element; the threshold is where the offsets have half as many bytes as the mask.
 *
 * Threads: a plan belongs to one call.
 */
#ifndef GNI_TENSOR_INDEX_PLAN_H
#define GNI_TENSOR_INDEX_PLAN_H

#include "genesis/index.h"
#include "tensor/mask.h"
#include "tensor/tensor.h"

enum {
    GNI_MASK_DENSE = 16, /* a mask is dense if one byte in so many is true */
};

struct gni_index {
    gn_tensor *tensor; /* borrowed; of integers, or a mask */
    gn_tensor *made; /* owned: a contiguous copy of a mask, or its offsets; NULL if there is none */
    bool is_mask;    /* not compacted yet */
    bool is_trusted; /* a mask, or its offsets, which may be negative: nothing is checked */
    int64_t mask_count; /* true elements of a mask */
    int dimension;      /* the first that it is for */
    int64_t size;       /* of that dimension */
    int64_t wrap;       /* what is added to negative ones: the size, or 0 where there may be none */
    int64_t stride;
    int64_t
        strides[GN_DIMENSIONS_MAX]; /* for the dimensions of the result, in elements of `tensor` */
};

struct gni_index_plan {
    bool is_basic; /* no index tensors: a view */
    int ndim;
    int64_t sizes[GN_DIMENSIONS_MAX];
    int64_t strides[GN_DIMENSIONS_MAX];
    int64_t count;
    int64_t offset;
    int block_begin, block_end;
    int index_count;
    struct gni_mask mask; /* IP4 */
    bool has_mask;        /* `mask` is set */
    int64_t source_strides[GN_DIMENSIONS_MAX];
    struct gni_index indices[GN_DIMENSIONS_MAX];
};

/* What is indexed: a tensor's layout, or another one for the same shape. */
struct gni_index_source {
    gn_device *device; /* on which index tensors must be */
    gn_dtype dtype;
    int ndim;
    const int64_t *sizes, *strides;
};

/*
 * Takes a key apart. Everything but the values of index tensors is checked; masks are counted, for which pending
 * ones are computed. The tensors of the key must outlive the plan.
 */
gn_status gni_index_plan_init(struct gni_index_plan *plan, const struct gni_index_source *source,
                              int count, const gn_key *keys) GN_NODISCARD;
void gni_index_plan_deinit(struct gni_index_plan *plan);

/* Whether the mask had better be streamed. */
bool gni_index_plan_is_streamed(const struct gni_index_plan *plan);

/* Bytes that are needed while the plan is carried out. */
size_t gni_index_plan_temp_bytes(const struct gni_index_plan *plan);

/* Masks become offsets, and pending index tensors are computed. */
gn_status gni_index_plan_compact(struct gni_index_plan *plan) GN_NODISCARD;

static inline struct gni_index_source gni_index_source_of(const gn_tensor *tensor)
{
    return (struct gni_index_source){tensor->device, tensor->dtype, tensor->ndim, tensor->sizes,
                                     tensor->strides};
}

/* GN_ERROR_INDEX if a number of an index tensor, which is in the host's memory, is out of range; says which. */
gn_status gni_index_check_numbers(const struct gni_index *index) GN_NODISCARD;

/* The error for a plan in which a number was out of range. If somebody has changed it since, it says no number. */
gn_status gni_index_refuse(const struct gni_index_plan *plan) GN_NODISCARD;

#endif
