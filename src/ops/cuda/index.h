/*
 * index.h: plans of keys (tensor/index_plan.h) and places of masks on a GPU, submitted to the current stream.
 * src/ops/backend.h says what they do.
 *
 * Index tensors are on the GPU, and so nobody on the host knows whether their numbers are in range when the call
 * returns. Kernels look at each number: one that is out of range makes nothing outside be read or written, and is
 * reported in a word of the device (gn_device.fault) that lies in the host's memory. Whoever has waited for the GPU
 * looks there: gni_cuda_index_check().
 */
#ifndef GNI_OPS_CUDA_INDEX_H
#define GNI_OPS_CUDA_INDEX_H

#include "ops/backend.h"
#include "tensor/index_plan.h"

gn_status gni_cuda_index_get(const struct gni_index_plan *plan, gn_tensor *source,
                             gn_tensor *result) GN_NODISCARD;
gn_status gni_cuda_index_set(const struct gni_index_plan *plan, gn_tensor *target,
                             const gn_tensor *value, const int64_t *strides, uint64_t number,
                             bool is_accumulated) GN_NODISCARD;
gn_status gni_cuda_mask_places(gn_tensor *mask, const int64_t *strides,
                               gn_tensor **places) GN_NODISCARD;
gn_status gni_cuda_mask_get(gn_tensor *source, gn_tensor *mask, gn_tensor **result) GN_NODISCARD;
gn_status gni_cuda_mask_set(gn_tensor *target, gn_tensor *mask, gn_tensor *values) GN_NODISCARD;
gn_status gni_cuda_index_check(gn_device *device) GN_NODISCARD;

#endif
