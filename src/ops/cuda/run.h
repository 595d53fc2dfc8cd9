/*
 * run.h: programs and folds on a GPU, submitted to a stream. src/ops/backend.h says what they do.
 */
#ifndef GNI_OPS_CUDA_RUN_H
#define GNI_OPS_CUDA_RUN_H

#include "ops/cuda/generate.h"

gn_status gni_cuda_run(struct gni_program *program, gn_stream *stream) GN_NODISCARD;
gn_status gni_cuda_fold(struct gni_program *program, short value, const struct gni_folding *folding,
                        gn_tensor *result, gn_stream *stream) GN_NODISCARD;
gn_status gni_cuda_softmax(struct gni_program *program, short value, int64_t rows, bool is_log,
                           gn_tensor *result, gn_stream *stream) GN_NODISCARD;
gn_status gni_cuda_warm_up(gn_device *device) GN_NODISCARD;

/* ---- for the files beside it ---- */

/* Launches the kernel of a form, made if need be. `fold` is NULL for none. */
gn_status gni_form_launch(const struct gni_form *form, const struct gni_fold_arguments *fold,
                          unsigned grid_x, unsigned grid_y, gn_stream *stream) GN_NODISCARD;

#endif
