/*
 * move.h: elements of a tensor, wherever it is, on the host.
 */
#ifndef GNI_OPS_MOVE_H
#define GNI_OPS_MOVE_H

#include "genesis/ops.h"
#include "tensor/tensor.h"

/* Copies bytes of a tensor, which is computed, from an element on, to the host. */
gn_status gni_tensor_read(gn_tensor *tensor, int64_t element, size_t nbytes,
                          void *bytes) GN_NODISCARD;

#endif
