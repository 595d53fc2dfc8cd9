/*
 * fold.h: the planner of meshing: which physical pages can share one page.
 *
 * Two pages whose used granules do not overlap can become one that is mapped at both addresses: the
 * bytes of one are copied into the holes of the other, and its physical memory goes back to the
 * driver. More than two may share. Here is only the plan; who copies and maps is elsewhere.
 *
 *     page 0   ##..##..  <- 1, 2        target[0] = 0
 *     page 1   ..#.....                 target[1] = 0
 *     page 2   ......##                 target[2] = 0
 *     page 3   ###.####                 target[3] = 3, stays as it is
 *     page 4   ........                 target[4] = 4, empty: nothing to fold, give it back as it is
 *
 * Invariants of a plan:
 *   1. target[target[i]] == target[i]: no chains.
 *   2. The used sets of all pages with one target are pairwise disjoint.
 *   3. A page without a used granule has itself as target, and no other page has it.
 *   4. The target is the page of its group with the most used granules, so that the least is copied.
 *
 * Threads: a pure function; the caller guards the masks.
 */
#ifndef GNI_MEMORY_FOLD_H
#define GNI_MEMORY_FOLD_H

#include "base/error.h"

/*
 * Plans the folding of `count` pages. Page i uses the granules whose bits are set in the `words` words
 * at masks + i * words (bitmap.h). Fills in targets[0 .. count - 1], and `folded` with the number of
 * pages whose target is another one. The same input gives the same plan everywhere.
 *
 * Takes 1 to 10 ms for 512 pages of 4096 granules, and 0.2 to 1 s for 65536.
 * GN_ERROR_OUT_OF_HOST_MEMORY and GN_ERROR_OVERFLOW; then nothing was changed.
 */
gn_status gni_fold_plan(size_t count, size_t words, const uint64_t *masks, uint32_t *targets,
                        size_t *folded) GN_NODISCARD;

#endif
