/*
 * run.h: programs on the CPU: tile by tile, each step a loop over a tile that stays in cache.
 *
 * Threads: any; the work is spread over the pool's (base/parallel.h). The stream is NULL: the work is done when the
 * call returns.
 */
#ifndef GNI_OPS_CPU_RUN_H
#define GNI_OPS_CPU_RUN_H

#include "ops/backend.h"
#include "ops/cpu/loops.h"

gn_status gni_cpu_run(struct gni_program *program, gn_stream *stream) GN_NODISCARD;

/* GN_ERROR_OUT_OF_HOST_MEMORY if there is no room for partial results. */
gn_status gni_cpu_fold(struct gni_program *program, short value, const struct gni_folding *folding,
                       gn_tensor *result, gn_stream *stream) GN_NODISCARD;

#endif
