/*
 * run.h: programs on the CPU: tile by tile, each step a loop over a tile that stays in cache.
 *
 * Threads: any; the work is spread over the pool's (base/parallel.h).
 */
#ifndef GNI_OPS_CPU_RUN_H
#define GNI_OPS_CPU_RUN_H

#include "ops/cpu/loops.h"
#include "ops/program.h"

/* Computes all outputs. */
void gni_cpu_run(struct gni_program *program);

/*
 * Folds a value over the last dimensions of the program: `rows` results, each of program->count / rows elements.
 * `results` has, for each row, an accumulator as gni_fold wants it, of 8 bytes, which the caller has started.
 * GN_ERROR_OUT_OF_HOST_MEMORY if there is no room for partial results.
 */
gn_status gni_cpu_reduce(struct gni_program *program, short value, enum gni_reduction reduction,
                         int64_t rows, uint64_t *results) GN_NODISCARD;

/*
 * Folds a value over the first dimensions of the program instead: program->count / columns elements for each of
 * `columns` results, all columns of a tile at once.
 */
void gni_cpu_reduce_columns(struct gni_program *program, short value, enum gni_reduction reduction,
                            int64_t columns, uint64_t *results);

/* The accumulator of nothing. */
uint64_t gni_cpu_reduce_start(enum gni_reduction reduction, gn_dtype dtype);

#endif
