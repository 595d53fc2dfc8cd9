/*
 * index.h: what the files that carry out keys share.
 */
#ifndef GNI_OPS_INDEX_H
#define GNI_OPS_INDEX_H

#include "tensor/index_plan.h"

static inline struct gni_index_source gni_index_source_of(const gn_tensor *tensor)
{
    return (struct gni_index_source){tensor->device, tensor->dtype, tensor->ndim, tensor->sizes,
                                     tensor->strides};
}

/* Says which number of a plan, whose index tensors are on the host, is out of range. */
gn_status gni_index_refuse(const struct gni_index_plan *plan) GN_NODISCARD;

/* Index tensors of the CPU go where a GPU's tensor is: `copies` (NULLs before) are the caller's to release. */
gn_status gni_index_keys_move(const gn_tensor *tensor, int count, gn_key *keys,
                              gn_tensor **copies) GN_NODISCARD;

/* Their numbers are looked at by the host, where the mistake is: what kernels find out is said later. */
gn_status gni_index_moved_check(const struct gni_index_plan *plan, int count, const gn_key *given,
                                gn_tensor *const *copies) GN_NODISCARD;

/* Whether a key is one mask over the first dimensions of a tensor on a GPU. */
bool gni_index_is_mask(const gn_tensor *tensor, int count, const gn_key *keys);

/* The elements of a tensor, which such a mask over all dimensions has; and what they take over: contiguous values of
 * their type, apart from the tensor. */
gn_status gni_index_mask_get(gn_tensor *tensor, gn_tensor *mask, gn_tensor **result) GN_NODISCARD;
gn_status gni_index_mask_set(gn_tensor *tensor, gn_tensor *mask, gn_tensor *values) GN_NODISCARD;

/* target = where(mask, value, target), of one value, for which nobody waits for the number of them. */
gn_status gni_index_masked_fill(gn_tensor *target, gn_tensor *mask, gn_operand value) GN_NODISCARD;

#endif
