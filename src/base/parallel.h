/*
 * parallel.h: a loop over many elements, on several threads.
 *
 * A small pool of our own: libgomp hangs in a forked child, and gives the thread sanitizer false reports.
 *
 * Invariants:
 *   1. The caller works, too, and returns when every part is done; what the parts wrote is visible to it.
 *   2. Workers start at the first loop that is long enough, and never at import. A forked child has none, and
 *      starts its own.
 *   3. A loop inside a loop runs in its thread alone. Two callers at once: one has the workers, the other runs
 *      alone; nobody waits for somebody else's work.
 *   4. Which thread runs which part is not determined; how the range is cut into parts depends on the count and
 *      the grain alone, so that results which depend on the parts do not depend on the number of threads.
 *   5. A loop of one part is a plain call, and what it calls may use the workers. A part does not fork().
 */
#ifndef GNI_BASE_PARALLEL_H
#define GNI_BASE_PARALLEL_H

#include "genesis/base.h"

/* Part of a loop: the elements from `begin` to before `end`. */
typedef void (*gni_part)(void *context, size_t begin, size_t end);

/* Runs parts of `grain` elements each (the last may have fewer) until `count` are done. */
void gni_parallel_for(size_t count, size_t grain, gni_part part, void *context);

/* How many threads a loop uses at most, the caller among them; at first the processors that this process may
 * use, at most 256. */
int gni_parallel_get_threads(void);

/* At least 1; more than 256 count as 256. Takes effect with the next loop. */
gn_status gni_parallel_set_threads(int count) GN_NODISCARD;

#endif
