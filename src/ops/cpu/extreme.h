/*
 * extreme.h: where the largest or smallest element along a dimension is, in the CPU's memory.
 *
 * The first of several equal ones; a NaN wins over everything, the first of them.
 *
 * Threads: any, at once; the work itself runs on several (parallel.h).
 */
#ifndef GNI_OPS_CPU_EXTREME_H
#define GNI_OPS_CPU_EXTREME_H

#include "ops/backend.h"

/* `in` is contiguous, and no size is 0; an index for each of outer * inner. */
void gni_extreme_find(const void *in, gn_dtype dtype, const struct gni_along *along,
                      bool is_maximum, int64_t *indices);

#endif
