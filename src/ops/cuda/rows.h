/*
 * rows.h: what works along rows on a GPU, and random numbers. src/ops/backend.h says what they do.
 *
 * Every result follows from its input alone, bit for bit: how the work is spread depends on shapes only, and nothing
 * on the order in which threads come.
 */
#ifndef GNI_OPS_CUDA_ROWS_H
#define GNI_OPS_CUDA_ROWS_H

#include "ops/backend.h"

gn_status gni_cuda_random(const struct gni_random *random, gn_tensor *out,
                          gn_stream *stream) GN_NODISCARD;
gn_status gni_cuda_extreme(gn_tensor *tensor, const struct gni_along *along, bool is_maximum,
                           gn_tensor *values, gn_tensor *indices, gn_stream *stream) GN_NODISCARD;
gn_status gni_cuda_cumulate(gn_tensor *tensor, const struct gni_along *along, bool is_product,
                            gn_tensor *result, gn_stream *stream) GN_NODISCARD;
gn_status gni_cuda_cumulate_extreme(gn_tensor *tensor, const struct gni_along *along,
                                    bool is_maximum, gn_tensor *values, gn_tensor *indices,
                                    gn_stream *stream) GN_NODISCARD;
gn_status gni_cuda_select(gn_tensor *rows, const struct gni_selection *selection, gn_tensor *values,
                          gn_tensor *indices, gn_stream *stream) GN_NODISCARD;
gn_status gni_cuda_unique(gn_tensor *tensor, gn_tensor *values, gn_tensor *inverse,
                          gn_tensor *counts, int64_t *found, gn_stream *stream) GN_NODISCARD;

/* Random permutations, searching and counting. */
gn_status gni_cuda_permutation(struct gni_philox philox, gn_tensor *out,
                               gn_stream *stream) GN_NODISCARD;
gn_status gni_cuda_search(gn_tensor *sequence, gn_tensor *values, bool is_right, gn_tensor *result,
                          gn_stream *stream) GN_NODISCARD;
gn_status gni_cuda_range(gn_tensor *numbers, int64_t *least, int64_t *most,
                         gn_stream *stream) GN_NODISCARD;
gn_status gni_cuda_count(gn_tensor *numbers, gn_tensor *counts, gn_stream *stream) GN_NODISCARD;

#endif
