/*
 * cache.h: the blocks that one thread keeps for one stream: the fast path.
 *
 * A cache has a bin for each class of small sizes, and a few slots for larger sizes that come again and
 * again: a slot belongs to one size, and keeps blocks of it once that size was asked for twice. Both
 * are stacks: what was freed last is handed out first. Beside them the thread may have regions of its own, from
 * which it cuts what no slot has: claim.h.
 *
 * Only the owning thread uses a cache, without a lock. Another thread that wants what is in it takes it
 * away for a moment:
 *
 *     owner                                another thread, with the pool's lock
 *     live is marked busy                  is_revoked = 1
 *     (order: see below)                   barrier on all threads
 *     is_revoked? then not                 wait until live is not busy
 *     ... pop or push ...                  ... empty the cache ...
 *     live = the new sum (release)         is_revoked = 0 (release)
 *
 * The word that says so is one that changes with each pop and push anyway, so that the mark costs no store of its
 * own: the sum of the live bytes, which is even.
 *
 * Each side writes its own word and then reads the other's; one of the two must see the other. That needs
 * a full barrier on both sides, or, as here, none for the owner and membarrier(2) for the other, which
 * makes every running thread pass one. Where the system has no membarrier the owner exchanges its word
 * instead. An owner that finds its cache revoked takes the pool's lock.
 *
 * Invariants:
 *   CA1  the lists and counts of a cache change between enter and leave, or under the pool's lock by its
 *       owner, or while it is revoked;
 *   CA2  the counters are written by the owner only, or under the pool's lock when there is none; everyone
 *       may read them. Caches are never freed: when a thread ends, its caches wait for other threads and
 *       their counters go on;
 *   CA3  every block in it is CACHED, of the cache's heap, and not SLOW;
 *   CA4  places is how many more blocks it may hold, by `stream_cache_blocks` and the limits. It shares a word with the
 *       number of living blocks that the cache counts, since a pop or push by its owner changes both alike: counting
 *       costs nothing then. Elsewhere either changes by itself. What was freed is what was allocated and is not
 *       alive;
 *   CA5  a peak is what was live at once, of all threads. Each cache may rise to a level of its own without
 *       looking at the others; the levels together are not above the peak. Who rises above its level raises
 *       the peak, if it is one, and shares out anew what is missing to it. So no peak is missed, but for what
 *       other threads do during a sharing;
 *   CA6  a slot keeps its blocks as long as all larger requests of the thread are met by slots. Each that is
 *       not empties the slots that got no block since the one before: blocks that wait for a size which
 *       does not come again would keep their neighbours apart, and memory in pieces;
 *   CA7  a pool with debug options or a sanitizer's marks has no caches, nor has a private space: a block that a cache
 *       hands out needs nothing but to be counted.
 */
#ifndef GNI_MEMORY_CACHE_H
#define GNI_MEMORY_CACHE_H

#include "base/host.h"
#include "memory/claim.h"
#include "memory/history.h"
#include "memory/pool.h"

#include <stddef.h>

enum {
    GNI_CACHE_SLOTS_SHIFT = 6,
    GNI_CACHE_SLOTS = 1 << GNI_CACHE_SLOTS_SHIFT,
    GNI_CACHE_LARGER = 3,       /* classes above its own that may meet a request */
    GNI_CACHE_LARGER_FROM = 40, /* from 64 KiB on */
    GNI_CACHE_SLOT_MOST = 256,  /* blocks in a slot */
    GNI_BIN_MOST = 256,         /* blocks in a bin */
    GNI_CACHE_SCORE = 2,        /* requests of a slot's size before it keeps blocks */
    GNI_CACHE_SCORE_MOST = 16,  /* what a size can save up against others */
};

struct gni_bin {
    gn_memory_block *first;
    unsigned count;
    unsigned limit;
    uint64_t hit_count;  /* allocations that it met */
    uint64_t miss_count; /* that it did not */
};

struct gni_slot {
    size_t nbytes; /* 0: nobody's */
    gn_memory_block *first;
    unsigned count;
    unsigned score;
};

/* The first line says whether it is the right one and the thread's, the second changes with each block; beside them an
 * allocation and a free touch one line of the bins or slots, and the block's. */
struct gni_cache {
    /* bytes, a counter; with GNI_LIVE_BUSY the owner is at work */
    _Alignas(GNI_HOST_LINE) _Atomic(int64_t) live;
    _Atomic(unsigned) is_revoked;
    unsigned slot_limit; /* blocks in a slot: GNI_CACHE_SLOT_MOST, or 0 where limits must be kept */
    _Atomic(gn_memory_manager *) manager; /* NULL: nobody's */
    gn_stream *asked; /* the stream argument that last led here: a stream, or NULL */
    uint64_t key;     /* the memory_key of that stream; or the epoch of the thread's current one */
    struct gni_heap *heap; /* NULL: the stream is gone */
    struct gni_pool *pool;
    struct gni_claim *claim; /* made when it is first needed, and never freed */

    _Alignas(
        GNI_HOST_LINE) _Atomic(uint64_t) stock; /* CA4: places, and above them the living blocks */
    _Atomic(uint64_t) alloc_count, alloc_bytes, free_bytes; /* counters, CA2, as `live` is one */
    /* levels, CA5: everyone may write them */
    _Atomic(int64_t)
        checked_stock; /* of the living blocks in `stock`, as the largest word with so many */
    _Atomic(int64_t) checked_requested; /* of alloc_bytes - free_bytes */
    _Atomic(int64_t) checked;           /* of live */
    uint64_t
        slots_used; /* bit i: slots[i] got a block since the heap was last asked for a larger one, CA6 */

    struct gni_bin bins[GNI_SIZE_BINS];
    struct gni_slot slots[GNI_CACHE_SLOTS];
    uint64_t slots_kept;          /* bit i: it may have blocks from before */
    _Atomic(uint64_t) slow_count; /* a counter, CA2 */
    struct gni_cache *next;       /* in the pool */
    struct gni_cache *next_of_thread;
    const void *thread; /* the owner; NULL: free to be taken over. Under the pool's lock */
};

_Static_assert(offsetof(struct gni_cache, stock) == GNI_HOST_LINE &&
                   offsetof(struct gni_cache, bins) == 2 * GNI_HOST_LINE,
               "two lines");
_Static_assert(GNI_HOST_LINE % sizeof(struct gni_bin) == 0, "a bin is in one line");

enum {
    GNI_LIVE_BUSY = 1, /* in `live` */
};

/* In `stock`. Bins and slots have no place for as many blocks as 16 bits can count. */
enum {
    GNI_STOCK_PLACE = 1,
    GNI_STOCK_PLACES_MOST = UINT16_MAX,
    GNI_STOCK_LIVE = 1 << 16,
};

_Static_assert(GNI_SIZE_BINS *GNI_BIN_MOST + GNI_CACHE_SLOTS * GNI_CACHE_SLOT_MOST <=
                   GNI_STOCK_PLACES_MOST,
               "places for all");

static inline unsigned gni_cache_places(const struct gni_cache *cache)
{
    return (uint16_t)atomic_load_explicit(&cache->stock, memory_order_relaxed);
}

/* The living blocks that a cache counts: below zero where it frees what others allocate. */
static inline int64_t gni_cache_live_count(const struct gni_cache *cache)
{
    return (int64_t)atomic_load_explicit(&cache->stock, memory_order_acquire) >> 16;
}

/* By the owner, or with the lock; the new word. */
static inline uint64_t gni_cache_stock_add(struct gni_cache *cache, uint64_t change)
{
    uint64_t stock = atomic_load_explicit(&cache->stock, memory_order_relaxed) + change;
    atomic_store_explicit(&cache->stock, stock, memory_order_relaxed);
    return stock;
}

/* A block leaves the cache, or comes, and is not counted. */
static inline void gni_cache_places_add(struct gni_cache *cache, int change)
{
    (void)gni_cache_stock_add(cache, (uint64_t)change * GNI_STOCK_PLACE);
}

/* The live bytes by a cache's counter. */
static inline int64_t gni_cache_live(const struct gni_cache *cache)
{
    return atomic_load_explicit(&cache->live, memory_order_relaxed) & ~(int64_t)GNI_LIVE_BUSY;
}

/* The owner begins; *live is for it to count in until it leaves. */
static inline __attribute__((always_inline)) bool gni_cache_enter(struct gni_cache *cache,
                                                                  unsigned reasons, int64_t *live)
{
    unsigned is_revoked;
    gni_assert(cache->thread == gni_thread_self());
#ifdef GNI_BARE /* for bench/bench_watch.c: what the counters cost */
    *live = 0;
#else
    *live = atomic_load_explicit(&cache->live, memory_order_relaxed);
#endif
    if (!(reasons & GNI_REASON_EXCHANGE)) {
        atomic_store_explicit(&cache->live, *live | GNI_LIVE_BUSY, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
        is_revoked = atomic_load_explicit(&cache->is_revoked, memory_order_acquire);
    } else {
        (void)atomic_exchange(&cache->live, *live | GNI_LIVE_BUSY);
        is_revoked = atomic_load(&cache->is_revoked);
    }
    if (__builtin_expect(!is_revoked, 1))
        return true;
    atomic_store_explicit(&cache->live, *live, memory_order_release);
    return false;
}

static inline void gni_cache_leave(struct gni_cache *cache, int64_t live)
{
    gni_assert((live & GNI_LIVE_BUSY) == 0);
    atomic_store_explicit(&cache->live, live, memory_order_release);
}

/* The thread's last cache, if it is the one that is meant. For a NULL stream, the thread's current stream
 * must be what it was. */
static inline __attribute__((always_inline)) struct gni_cache *
gni_cache_known(const gn_memory_manager *manager, const gn_stream *stream)
{
    const struct gni_thread *thread = &gni_thread;
    struct gni_cache *cache = thread->cache;
    if (cache == NULL || atomic_load_explicit(&cache->manager, memory_order_relaxed) != manager ||
        cache->asked != stream)
        return NULL;
    uint64_t key = stream == NULL
                       ? thread->stream_epoch
                       : atomic_load_explicit(&stream->upper.memory_key, memory_order_relaxed);
    return cache->key == key ? cache : NULL;
}

static inline struct gni_slot *gni_cache_slot(struct gni_cache *cache, size_t nbytes)
{
    return &cache->slots[gni_hash_bits(nbytes >> GNI_MEDIUM_SHIFT, GNI_CACHE_SLOTS_SHIFT)];
}

/* The bin has a block. */
static inline gn_memory_block *gni_bin_pop(struct gni_bin *bin)
{
    gn_memory_block *block = bin->first;
    gni_assert(bin->first != NULL && bin->count > 0);
    bin->first = block->next;
    bin->count--;
#ifndef GNI_BARE
    bin->hit_count++;
#endif
    return block;
}

static inline void gni_bin_push(struct gni_bin *bin, gn_memory_block *block)
{
    gni_assert(bin->count < bin->limit);
    block->next = bin->first;
    bin->first = block;
    bin->count++;
}

static inline void gni_slot_push(struct gni_cache *cache, struct gni_slot *slot,
                                 gn_memory_block *block)
{
    gni_assert(slot->nbytes == block->nbytes && slot->count < GNI_CACHE_SLOT_MOST);
    block->next = slot->first;
    slot->first = block;
    slot->count++;
    cache->slots_used |= UINT64_C(1) << (slot - cache->slots);
}

/* The slots that got no block since the heap or the claim was last asked for a larger one: CA6. */
static inline uint64_t gni_slots_stale(const struct gni_cache *cache)
{
    return cache->slots_kept & ~cache->slots_used;
}

/* cache.c; with the lock, unless the slots that it empties are empty. */
void gni_cache_slot_flush(struct gni_cache *cache, struct gni_slot *slot);
void gni_slot_change(struct gni_cache *cache, struct gni_slot *slot, size_t nbytes);

/* A larger size is asked for that no slot has: CA6. A size that comes again and again earns a slot. */
static inline void gni_slot_note(struct gni_cache *cache, size_t nbytes)
{
    gni_assert(nbytes > GNI_SIZE_SMALL_MOST && nbytes == gni_size_round(nbytes));
    for (uint64_t stale = gni_slots_stale(cache); stale != 0; stale &= stale - 1)
        gni_cache_slot_flush(cache, &cache->slots[__builtin_ctzll(stale)]);
    cache->slots_kept = cache->slots_used;
    cache->slots_used = 0;
    struct gni_slot *slot = gni_cache_slot(cache, nbytes);
    if (slot->nbytes == nbytes)
        slot->score += slot->score < GNI_CACHE_SCORE_MOST;
    else if (slot->score > 0)
        slot->score--;
    else
        gni_slot_change(cache, slot, nbytes);
}

/* A bin of one of the next classes that has a block, for sizes at which a block that lies idle costs more
 * than one that is a little too large. NULL if there is none. Without it blocks of 1 KiB..8 MiB, 32 of them live, take
 * 23 % longer (bench_alloc_cpu, one thread). */
static inline struct gni_bin *gni_cache_larger(struct gni_cache *cache, unsigned class)
{
    if (class < GNI_CACHE_LARGER_FROM)
        return NULL;
    for (unsigned other = class + 1; other <= class + GNI_CACHE_LARGER && other < GNI_SIZE_BINS;
         other++)
        if (cache->bins[other].first != NULL)
            return &cache->bins[other];
    return NULL;
}

/* Adds to a counter that only the calling thread writes. Released: who sees a free sees what came before,
 * also the allocation by another thread. */
#define gni_count_add(counter, amount)                                                      \
    atomic_store_explicit((counter),                                                        \
                          atomic_load_explicit((counter), memory_order_relaxed) + (amount), \
                          memory_order_release)

/* Whether a counter is above its level: CA5. */
static inline bool gni_is_above(int64_t value, const _Atomic(int64_t) *level)
{
    return __builtin_expect(value > atomic_load_explicit(level, memory_order_relaxed), 0);
}

/* Hands out a block that is CACHED and in no list any more, and counts it: by the owner between enter and leave. `place`
 * is GNI_STOCK_PLACE for a block that was in the cache, or 0. True: a counter is above its level, and
 * gni_caches_share() must be called. */
static inline __attribute__((always_inline)) bool
gni_block_hand_out(struct gni_cache *cache, gn_memory_block *block, size_t requested,
                   unsigned flags, uint64_t place, int64_t *live)
{
    gni_assert(gni_block_state(block) == GNI_BLOCK_CACHED);
    gni_assert(requested <= block->nbytes && block->address != NULL);
    atomic_store_explicit(&block->flags, (unsigned char)flags, memory_order_relaxed);
    gni_block_set_state(block, GNI_BLOCK_LIVE);
    block->requested = requested;
#ifdef GNI_BARE
    (void)gni_cache_stock_add(cache, place);
    return false;
#endif
    uint64_t stock = gni_cache_stock_add(cache, GNI_STOCK_LIVE + place);
    uint64_t number = atomic_load_explicit(&cache->alloc_count, memory_order_relaxed) + 1;
    atomic_store_explicit(&cache->alloc_count, number, memory_order_relaxed);
    block->number = number;
    uint64_t bytes = atomic_load_explicit(&cache->alloc_bytes, memory_order_relaxed) + requested;
    atomic_store_explicit(&cache->alloc_bytes, bytes, memory_order_relaxed);
    *live += (int64_t)block->nbytes;
    if (gni_is_above((int64_t)stock, &cache->checked_stock))
        return true;
    bytes -= atomic_load_explicit(&cache->free_bytes, memory_order_relaxed);
    if (gni_is_above((int64_t)bytes, &cache->checked_requested))
        return true;
    return gni_is_above(*live, &cache->checked);
}

/* Whether the owner may take a block back between enter and leave: it lives, is of the cache's stream, and its free is
 * nothing more: it has none of the flags `slow` (GNI_BLOCK_SLOW_BY_...). */
static inline __attribute__((always_inline)) bool
gni_cache_can_take_back(const struct gni_cache *cache, const gn_memory_block *block, unsigned slow)
{
    return gni_block_state(block) == GNI_BLOCK_LIVE && block->heap == cache->heap &&
           !gni_block_has(block, slow);
}

/* The same for a free by a pointer, which must still be the block's address (BL5), or by handle, with NULL. */
static inline bool gni_cache_can_free(const struct gni_cache *cache, const gn_memory_block *block,
                                      const void *pointer)
{
    return pointer == NULL ? gni_cache_can_take_back(cache, block, GNI_BLOCK_SLOW_BY_HANDLE)
                           : gni_cache_can_take_back(cache, block, GNI_BLOCK_SLOW_BY_ADDRESS) &&
                                 pointer == block->address;
}

static inline __attribute__((always_inline)) void
gni_count_free(struct gni_cache *cache, const gn_memory_block *block, uint64_t place, int64_t *live)
{
#ifdef GNI_BARE
    (void)gni_cache_stock_add(cache, -place);
    return;
#endif
    (void)gni_cache_stock_add(cache, -(GNI_STOCK_LIVE + place));
    gni_count_add(&cache->free_bytes, block->requested);
    *live -= (int64_t)block->nbytes;
}

/* Takes such a block back: it is CACHED and counted, and for the caller to put where it belongs before it leaves. With
 * a time the free is recorded. */
static inline __attribute__((always_inline)) void
gni_block_take_back(struct gni_cache *cache, gn_memory_block *block, uint64_t place,
                    uint64_t time_ns, int64_t *live)
{
    gni_assert(gni_block_state(block) != GNI_BLOCK_FREE && block->uses == NULL);
    gni_block_set_state(block, GNI_BLOCK_CACHED);
    gni_count_free(cache, block, place, live);
    if (time_ns != 0)
        gni_history_free(cache->pool->manager, block, time_ns);
}

/* Raises the peaks, and shares out what is missing to them: CA5. */
void gni_caches_share(struct gni_pool *pool);

/* Hands out a block with the lock, by the owner. */
static inline void gni_cache_hand_out(struct gni_cache *cache, gn_memory_block *block,
                                      size_t requested, unsigned flags)
{
    int64_t live = gni_cache_live(cache);
    bool is_above = gni_block_hand_out(cache, block, requested, flags, 0, &live);
    atomic_store_explicit(&cache->live, live, memory_order_relaxed);
    if (is_above)
        gni_caches_share(cache->pool);
}

/* Counts a free with the lock, by the owner. */
static inline void gni_cache_count_free(struct gni_cache *cache, const gn_memory_block *block)
{
    int64_t live = gni_cache_live(cache);
    gni_count_free(cache, block, 0, &live);
    atomic_store_explicit(&cache->live, live, memory_order_relaxed);
}

/* ---- cache.c -------------------------------------------------------------------------------- */

/*
 * The calling thread's cache for a heap, made if there is none; with the lock. NULL where the stream must
 * not have one (foreign, dead, or the pool's settings), or the host has no memory: then pool->spare counts.
 */
struct gni_cache *gni_cache_get(struct gni_pool *pool, struct gni_heap *heap);

/* The calling thread's cache for a heap, if it has one; with the lock. */
struct gni_cache *gni_cache_find(const struct gni_heap *heap);

/* Remembers how the thread came to a cache, for the next time. */
void gni_cache_remember(struct gni_cache *cache, gn_stream *asked, uint64_t key);

/* Makes pool->spare, the counters of allocations and frees that no thread's cache counts. */
gn_status gni_cache_spare_create(struct gni_pool *pool) GN_NODISCARD;

/* With the lock: takes caches away from their threads (all; or those of one heap) until
 * gni_caches_restore. */
void gni_caches_revoke(struct gni_pool *pool, const struct gni_heap *heap);
void gni_caches_restore(struct gni_pool *pool);

/* With the lock: every block of the caches, claims and depots goes to its heap. Returns how many. */
size_t gni_caches_flush(struct gni_pool *pool, const struct gni_heap *heap);

/* With the lock: blocks of one range go to their heaps, at least so many bytes if there are. */
void gni_caches_flush_range(struct gni_pool *pool, enum gni_range range, size_t least);

/* With the lock: the bytes of one range in all caches and depots. */
size_t gni_caches_bytes(struct gni_pool *pool, enum gni_range range);

/* With the lock, by its owner or revoked: its blocks go to the heap. Returns how many. */
size_t gni_cache_flush(struct gni_cache *cache);

/* The same and its claim; with the caches of the heap revoked. */
size_t gni_cache_empty(struct gni_cache *cache);

/* Whether a block of a larger size has a slot. */
static inline bool gni_cache_wants(struct gni_cache *cache, const gn_memory_block *block)
{
    const struct gni_slot *slot = gni_cache_slot(cache, block->nbytes);
    return slot->nbytes == block->nbytes && slot->score >= GNI_CACHE_SCORE && cache->slot_limit > 0;
}

/* With the lock, by its owner: one block goes to the heap, or into the bin if there is a place. */
void gni_cache_put(struct gni_cache *cache, gn_memory_block *block);

/* With the lock: a heap goes away: no cache knows it any more. */
void gni_caches_forget(struct gni_pool *pool, const struct gni_heap *heap);

/* With the lock: the settings changed: limits of all caches. */
void gni_caches_resize(struct gni_pool *pool);

#endif
