/*
 * cpu_index.h: plans of keys (tensor/index_plan.h), carried out in the CPU's memory.
 *
 * Reading is cut into parts along any dimension. Writing is cut along dimensions in which different places are
 * different elements (IP2 of tensor/index_plan.h), or by the bytes of a mask, so that each element is written by one
 * thread, in row-major order of the places: the result does not depend on the number of threads.
 *
 * Places that are out of range are never read or written: reading fails, and writing is preceded by a check; if
 * somebody changes an index tensor between the two, its number is passed by, or means element 0 of its dimension.
 *
 * Threads: any, at once; each call may use several.
 */
#ifndef GNI_OPS_CPU_CPU_INDEX_H
#define GNI_OPS_CPU_CPU_INDEX_H

#include "tensor/index_plan.h"

/* Whether all places are in range. */
bool gni_index_plan_is_in_range(const struct gni_index_plan *plan);

/* The elements of `source` into `out`, row-major; false, with anything in `out`, if a place is out of range. A plan
 * with a mask must be compacted, or streamed. */
bool gni_index_plan_gather(const struct gni_index_plan *plan, const void *source, gn_dtype dtype,
                           void *out);

/* The same, of the offsets that the plan means. */
bool gni_index_plan_offsets(const struct gni_index_plan *plan, int64_t *out);

/*
 * Values into the elements of `target`, or onto them. `strides` (in elements) are those of the values for the
 * result's dimensions; in the block of the index tensors they must be those of one dimension. After a check.
 */
void gni_index_plan_scatter(const struct gni_index_plan *plan, void *target, gn_dtype dtype,
                            const void *values, const int64_t *strides, bool is_accumulated);

#endif
