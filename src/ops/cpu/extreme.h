/*
 * extreme.h: where the largest or smallest element of each row is, in the CPU's memory.
 *
 * The first of several equal ones; a NaN wins over everything, the first of them.
 *
 * Threads: any, at once; the work itself runs on several (parallel.h).
 */
#ifndef GNI_OPS_CPU_EXTREME_H
#define GNI_OPS_CPU_EXTREME_H

#include "tensor/dtype.h"

/* `in` is [rows][columns], contiguous, with at least one column. */
void gni_extreme_find(const void *in, gn_dtype dtype, size_t rows, size_t columns, bool is_maximum,
                      int64_t *indices);

#endif
