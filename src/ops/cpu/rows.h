/*
 * rows.h: what works along rows on the CPU, and random numbers, of tensors. src/ops/backend.h says what they do.
 */
#ifndef GNI_OPS_CPU_ROWS_H
#define GNI_OPS_CPU_ROWS_H

#include "ops/backend.h"

gn_status gni_cpu_random(const struct gni_random *random, gn_tensor *out,
                         gn_stream *stream) GN_NODISCARD;
gn_status gni_cpu_extreme(gn_tensor *tensor, const struct gni_along *along, bool is_maximum,
                          gn_tensor *values, gn_tensor *indices, gn_stream *stream) GN_NODISCARD;
gn_status gni_cpu_cumulate(gn_tensor *tensor, const struct gni_along *along, bool is_product,
                           gn_tensor *result, gn_stream *stream) GN_NODISCARD;
gn_status gni_cpu_cumulate_extreme(gn_tensor *tensor, const struct gni_along *along,
                                   bool is_maximum, gn_tensor *values, gn_tensor *indices,
                                   gn_stream *stream) GN_NODISCARD;
gn_status gni_cpu_select(gn_tensor *rows, const struct gni_selection *selection, gn_tensor *values,
                         gn_tensor *indices, gn_stream *stream) GN_NODISCARD;
gn_status gni_cpu_unique(gn_tensor *tensor, gn_tensor *values, gn_tensor *inverse,
                         gn_tensor *counts, int64_t *found, gn_stream *stream) GN_NODISCARD;

#endif
