/*
 * softmax.h: softmax along the last dimension, on the CPU.
 */
#ifndef GNI_OPS_CPU_SOFTMAX_H
#define GNI_OPS_CPU_SOFTMAX_H

#include "ops/backend.h"

enum {
    GNI_SOFTMAX_ROW_BYTES = 256 << 10, /* of the longest row, as it is computed */
};

/* See struct gni_backend. Cannot fail. */
gn_status gni_cpu_softmax(struct gni_program *program, short value, int64_t rows, bool is_log,
                          gn_tensor *result, gn_stream *stream) GN_NODISCARD;

#endif
