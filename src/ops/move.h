/*
 * move.h: operations that a device leaves to the host: their operands are copied there, and their results back.
 */
#ifndef GNI_OPS_MOVE_H
#define GNI_OPS_MOVE_H

#include "genesis/ops.h"
#include "tensor/tensor.h"

enum {
    GNI_RESULTS_MOST = 4,
};

/* Copies bytes of a tensor, which is computed, from an element on, to the host. */
gn_status gni_tensor_read(gn_tensor *tensor, int64_t element, size_t nbytes,
                          void *bytes) GN_NODISCARD;

/* The tensor on the host: itself, with a reference, if it is there. */
gn_status gni_host_copy(gn_tensor *tensor, gn_tensor **copy) GN_NODISCARD;

/* Results that were made on the host (NULL: none) go to a device, all or nothing; those on the host end. `status` is
 * that of making them, and is handed on. */
gn_status gni_results_move(gn_status status, gn_device *device, int count, gn_tensor **made,
                           gn_tensor **const *results) GN_NODISCARD;

#endif
