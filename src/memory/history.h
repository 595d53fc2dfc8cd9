/*
 * history.h: recording what happens to memory: for the memory manager itself.
 *
 * Invariants:
 *   HI1  an event of a block is recorded after its allocation and before its memory can be anyone else's: by
 *       time, the events of an address alternate;
 *   HI2  a site is known for ever, and the code objects of its frames are kept;
 *   HI3  block->site has the number of the allocation that it belongs to, and is forgotten with the block's
 *       address: a block that was handed out again while nothing was recorded has no site.
 *
 * Lock order: the locks here come last; a user's interpreter is asked for frames outside of all locks.
 */
#ifndef GNI_MEMORY_HISTORY_H
#define GNI_MEMORY_HISTORY_H

#include "genesis/history.h"
#include "memory/manager.h"

static inline bool gni_history_is_on(void)
{
    unsigned reasons = atomic_load_explicit(&gni_slow_reasons, memory_order_relaxed);
    return __builtin_expect((reasons & GNI_REASON_HISTORY) != 0, 0);
}

/* A block was handed out to the calling thread. Call it outside of all locks. */
void gni_history_alloc(const gn_memory_manager *manager, gn_memory_block *block);

/* A free: its event has the time at which it began, by HI1, and is written when the block is known to be the
 * caller's and cannot be anyone else's yet: in the thread's cache, or under the engine's lock. */
void gni_history_free(const gn_memory_manager *manager, const gn_memory_block *block,
                      uint64_t time_ns);

/* A pending block is free. With the pool's lock. */
void gni_history_free_completed(const gn_memory_manager *manager, const gn_memory_block *block);

/* Memory came from the driver, or goes back: then the time is that before it did. */
void gni_history_segment(const gn_memory_manager *manager, const void *address, size_t nbytes,
                         bool is_mapped, uint64_t time_ns);

/* A request failed for good; outside of all locks. */
void gni_history_out_of_memory(const gn_memory_manager *manager, size_t nbytes);

/* Where a living block was allocated, or 0; and how long ago, UINT64_MAX where that is not known. */
uint32_t gni_history_site(const gn_memory_block *block, uint64_t *age_ns);

/* ---- holders.c ------------------------------------------------------------------------------ */

/* The sites that hold most, as a sentence; empty where nothing lives, and how to know where nothing is
 * traced. Outside of all locks. */
void gni_manager_holders(gn_memory_manager *manager, char *buffer, size_t size);

/* Logs what lives, by site; how many blocks that is. */
size_t gni_manager_report_leaks(gn_memory_manager *manager);

/* ---- site.c --------------------------------------------------------------------------------- */

/* How many frames of each kind a stack has from now on. */
void gni_site_set_depth(unsigned python_frames, unsigned c_frames);

/* The calling thread's stack as a site; 0 where none is known. */
uint32_t gni_site_capture(void);

/* Whether an address of code lies in this library. */
bool gni_history_is_own(const void *code);

void gni_site_fork_prepare(void);
void gni_site_fork_done(void);

#endif
