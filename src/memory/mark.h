/*
 * mark.h: marks of blocks for NVIDIA's compute-sanitizer, which a pool would blind.
 *
 * The sanitizer knows what the driver allocated. A pool takes a segment from the driver and cuts blocks
 * out of it, so a kernel that runs past the end of a block hits another one, and nothing is reported.
 * With these marks the tool knows the blocks:
 *
 *     segment   |..............................|   gni_mark_segment_add: nothing in it may be used
 *     blocks    |###....|######...|............|   gni_mark_block_add: but these bytes may
 *                ^^^ as asked for: the rest of the rounded block is out of bounds
 *
 * The tool is found by NVTX_INJECTION64_PATH, which it sets for the program that it runs:
 *
 *     compute-sanitizer --tool memcheck --leak-check full PROGRAM
 *
 * (with --nvtx yes for CUDA 11.3 to 11.8; since 12.0 that is the default). A block that is still marked at
 * the end is a leak. What the tool refuses it prints as a warning, and counts as an error.
 *
 * Invariants:
 *   1. Segments do not overlap, and a block lies in one segment. Nothing is said of blocks in a segment
 *      that is not marked: there are none, or the tool refused it.
 *   2. A segment is one plain allocation of the driver (cuMemAlloc), whole. Mapped memory (cuMemMap) is
 *      refused by the tool (2025.3), so where marks are on, a manager takes plain segments.
 *   3. A segment is added after the driver gave it, and removed before the driver gets it back.
 *   4. No failure is reported: marks help to find mistakes and must not make any. Without host memory
 *      for a segment's entry the segment is not marked, so that the tool sees less but nothing wrong.
 *
 * The tool looks at kernels: copies and fills that run past a block are not reported.
 *
 * Threads: any. The lock here is lower than those of the managers; adding a segment goes to the device
 * (the tool wants its context to be current), the rest takes no other lock.
 */
#ifndef GNI_MEMORY_MARK_H
#define GNI_MEMORY_MARK_H

#include "device/device.h"

/*
 * Whether a tool wants marks. The functions below ask by themselves; callers ask where it saves them
 * work. One load once that is known.
 */
bool gni_mark_is_on(void);

/*
 * A piece of memory from the driver, of which only marked blocks may be used from now on. Only memory of
 * a CUDA device is marked.
 */
void gni_mark_segment_add(gn_device *device, void *base, size_t nbytes);

/* Its end; blocks that are marked in it are forgotten with it. */
void gni_mark_segment_remove(void *base);

/* A block was handed out. `nbytes` as it was asked for, not rounded; 0 is marked as 1. */
void gni_mark_block_add(void *address, size_t nbytes);

/* A block was taken back. */
void gni_mark_block_remove(void *address);

#endif
