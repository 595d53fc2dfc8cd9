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

/* Says which number of a plan, whose index tensors are in the host's memory, is out of range. */
gn_status gni_index_refuse(const struct gni_index_plan *plan) GN_NODISCARD;

#endif
