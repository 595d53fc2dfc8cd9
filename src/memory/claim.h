/*
 * claim.h: regions that one thread has to itself: medium blocks without the pool's lock.
 *
 * Two threads that allocate blocks which no slot keeps (cache.h) would meet at the pool's lock, and pass the
 * index and the neighbours' descriptors to and fro between their processors. So a thread that had to go to the
 * heap for a medium block claims the region that it got it from, where nobody has that yet: from then on it cuts
 * and joins the region's blocks between gni_cache_enter and leave, as it uses the rest of its cache.
 *
 *     thread 1's cache                                thread 2's cache
 *       claim: index, descriptors                       claim: index, descriptors
 *         |        ^                                      |
 *         |        | returned: blocks of these regions    |
 *         |        | that others free                     |
 *       region   region                                 region      region (nobody's: the heap's)
 *
 * Who frees a block of another thread's region puts it on a list of that claim, by one exchange. The owner
 * takes the whole list in when it finds nothing that fits, before it goes to the heap.
 *
 * What lies idle in a claim is everybody's: a request that no heap can meet takes a region with a fitting block
 * away from its claim before the system is asked for more (slow_path.c), a wholly free region goes back to
 * the heap when more than GNI_CLAIM_IDLE_MOST bytes are idle, and what empties the caches dissolves the claims.
 *
 * What it gains: without claims, blocks of 1 KiB..8 MiB, 32 of them live in each of two threads, take 4.2 times as long
 * (bench_alloc_cpu: 1.04 times mimalloc's speed instead of 4.30), and with one thread 13 % longer.
 *
 * Only the CPU's pool has claims: where a region is an allocation, and needs nothing of a driver.
 *
 * Invariants:
 *   CL1  every tile of a claimed region names the heap of the claim's cache;
 *   CL2  its free tiles are in the claim's index, and nothing else is;
 *   CL3  index, descriptors, tiles and list of regions of a claim change as CA1 of cache.h says of the cache;
 *   CL4  the claim of a region and its pages changes under the pool's lock: from NULL by the claim's owner, to NULL
 *       when all caches of the heap are revoked, or when the region is one free block: no thread has one to
 *       return then;
 *   CL5  a block on `returned` is CACHED, and of a region of this claim;
 *   CL6  unused descriptors of a claim name the heap, which counts them: none is counted without the lock.
 */
#ifndef GNI_MEMORY_CLAIM_H
#define GNI_MEMORY_CLAIM_H

#include "base/host.h"
#include "memory/pool.h"

struct gni_cache;

enum {
    GNI_CLAIM_IDLE_MOST =
        64 << 20, /* bytes, beyond which wholly free regions go back to the heap */
};

struct gni_claim {
    struct gni_list regions;
    struct gni_blocks blocks; /* CL6 */
    struct gni_fit fit;       /* CL2 */
    struct gni_freed freed;
    /* by other threads, linked by `next`: on a line of its own */
    _Alignas(GNI_HOST_LINE) _Atomic(gn_memory_block *) returned;
};

/* The claim that has a block's region; NULL if there is none. For who has the pool's lock, or a cache of the block's
 * heap between enter and leave. Asked of the page: its record is there even if the block is not what the caller
 * believes (BL5), and claims are never freed. */
static inline struct gni_claim *gni_claim_of(const gn_memory_block *block)
{
    const struct gni_page *page = block->pool->has_claims ? gni_page_find(block->address) : NULL;
    return page != NULL ? atomic_load_explicit(&page->claim, memory_order_acquire) : NULL;
}

/* A block of a claimed region that nobody uses goes back to the claim. */
static inline void gni_claim_return(struct gni_claim *claim, gn_memory_block *block)
{
    gni_assert(block->uses == NULL);
    gn_memory_block *first = atomic_load_explicit(&claim->returned, memory_order_relaxed);
    gni_block_set_state(block, GNI_BLOCK_CACHED);
    do
        block->next = first;
    while (!atomic_compare_exchange_weak_explicit(&claim->returned, &first, block,
                                                  memory_order_release, memory_order_relaxed));
}

/* A medium block of the thread's own regions, handed out. NULL if none fits: then *is_empty is true; or if the lock is
 * needed to find or to cut it. */
gn_memory_block *gni_claim_alloc(struct gni_cache *cache, size_t nbytes, unsigned flags,
                                 bool *is_empty);

/* Frees a block of a claimed region, by the thread's cache. False: not freed, and nothing changed. */
bool gni_claim_free(struct gni_cache *cache, gn_memory_block *block, const void *pointer,
                    uint64_t time_ns);

/* ---- with the pool's lock ---- */

/* By its owner: a block of so many bytes, CACHED; NULL if there is none. */
gn_memory_block *gni_claim_take(struct gni_cache *cache, size_t nbytes);

/* By its owner: the region that a block is of becomes the thread's own, if that can be. */
void gni_claim_region(struct gni_cache *cache, struct gni_region *region);

/* The caches of its heap are revoked: all regions go back to the heap. How many blocks had been returned. */
size_t gni_claim_dissolve(struct gni_cache *cache);

/* A region with a medium block that fits goes back to its heap; false if there is none. */
bool gni_claims_reclaim(struct gni_pool *pool, const struct gni_need *need);

/* All wholly free regions go back to their heaps. */
void gni_claims_shed(struct gni_pool *pool);

/* The largest block of all claims. */
size_t gni_claims_largest(struct gni_pool *pool);

/* Whether a thread has regions to itself, or any has. */
bool gni_claim_has_regions(const struct gni_cache *cache);
bool gni_claims_exist(const struct gni_pool *pool);

#endif
