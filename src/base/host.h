/*
 * host.h: the one funnel for host memory that the library uses for its own bookkeeping.
 *
 * Invariants:
 *   1. No other file calls malloc and its kin for bookkeeping; so every failure path can be reached
 *      by a test, and a leak shows in one counter.
 *   2. A size over GNI_SIZE_MAX_BYTES is refused here, so that no caller can forget. The
 *      multiplication that led to the size is the caller's to check (checked.h).
 *   3. A failure is NULL and nothing else: the text is the caller's, usually
 *      gni_error_host_memory(size). After a failed realloc the old block is alive and unchanged.
 *
 * Threads: every function may be called from any thread. A block belongs to whoever asked for it.
 */
#ifndef GNI_BASE_HOST_H
#define GNI_BASE_HOST_H

#include "genesis/base.h"

/*
 * A block of zeros, aligned for any basic type, or NULL. Zeros, since bookkeeping is small and
 * a forgotten field should at least be the same on every run. Size 0 gives a block of its own too,
 * so that NULL always means failure.
 */
void *gni_host_alloc(size_t size) GN_NODISCARD;

enum {
    GNI_HOST_LINE = 64, /* bytes of a cache line */
};

/* The same on cache lines of its own: for what its thread uses all the time, or one by one. */
void *gni_host_alloc_lines(size_t size) GN_NODISCARD;

/*
 * Resizes a block, or allocates when `block` is NULL. Bytes beyond the old size are not set (the
 * old size is not known here). Size 0 does not free.
 */
void *gni_host_realloc(void *block, size_t size) GN_NODISCARD;

/* Frees a block of those above; NULL is allowed. */
void gni_host_free(void *block);

enum {
    GNI_HOST_KEPT = 416,
};

/*
 * A block of GNI_HOST_KEPT bytes, without zeros, for the one struct that comes and goes with each call of a user: a
 * thread keeps the block that it freed last, which the next call of the thread gets. Such a block is freed by
 * gni_host_free_kept(), by any thread.
 */
void *gni_host_alloc_kept(void) GN_NODISCARD;
void gni_host_free_kept(void *block);

/*
 * For tests, present in every build so that failure paths are tested as shipped: the count-th
 * following allocation or reallocation (1 is the next one), of any thread, fails once; -1 turns
 * this off. The usual loop raises the count until the task succeeds:
 *
 *     for (long nth = 1;; nth++) {
 *         gni_host_fail_after(nth);
 *         gn_status status = task();
 *         gni_host_fail_after(-1);
 *         CHECK(gni_host_live_count() == live_before);
 *         if (status == GN_OK)
 *             break;
 *     }
 */
void gni_host_fail_after(long count);

/* Blocks that were allocated and not freed, up to a constant: only differences mean something. Exact only while no
 * other thread is in this file. */
size_t gni_host_live_count(void);

#endif
