/*
 * slow_path.c: an allocation that the fast path (memory_api.c) could not satisfy.
 *
 * The steps are tried in this order, each once, and the first that finds a block ends the search. Only step 1 runs
 * without the pool's lock; the lock is then taken once for all the others.
 *
 *   The thread and its stream
 *    1  a block of the thread's own regions (claim.h), or a batch that another thread freed (depot.h); CPU only
 *    2  the thread's own regions, if step 1 needed the lock for that; if the fast path did not know the thread's cache,
 *       its lists first
 *    3  a free block of the stream's heap
 *   Idle memory of others
 *    4  blocks whose work on other streams has finished since: the stream's heap again if there were any
 *    5  the clean heap; blocks of other streams whose work is known to be done, joined with the stream's own where they
 *       are neighbours; for blocks of 1 to 8 MiB, idle memory of larger ones
 *    6  a region that a thread has claimed, with a free block that fits; what the threads' caches hold of this range, if
 *       it is enough to matter; for large blocks beyond the bound of step 7, all that they hold above 1 MiB
 *   The driver
 *    7  more memory from the driver. If that would pass the bound (bound.c), idle memory is recycled first: what is
 *       wholly free goes back to the driver; for large blocks, work that uses it is waited for, the oldest first
 *    8  if the driver has no more: all idle memory that no work uses goes back, and the driver is asked again
 *   Waiting
 *    9  a block of another stream whose work is not done, for which this stream waits on the device
 *   10  the threads' caches are emptied, the device is waited for, everything idle goes back, the driver is asked again
 *   11  pieces that are partly free are divided, and half-empty pages folded, where nobody can know their addresses;
 *       then, for blocks of 1 to 8 MiB, idle memory of larger ones once more, however little is left
 *   12  the user's handler, without the lock; if it says so, from step 2 on again
 *
 * Invariants:
 *   SP1  a request is noted in the thread's slots (CA6) and in the history of requests (bound.c) at most once, however
 *        often it is tried;
 *   SP2  step 3 and later ones need descriptors, which are reserved before: no step fails half way for lack of host
 *        memory.
 */
#include "memory/cache.h"

#include "memory/bound.h"
#include "memory/history.h"
#include "memory/mark.h"
#include "memory/tile.h"

enum {
    DESCRIPTORS = 4, /* that a search needs at most */
    UNPOLLED_MOST =
        64, /* requests between two looks at pending blocks: a look costs more than a request */
    IDLE_MOST = 256, /* if more than 1 / this of a range is idle, it grows in small pieces */
    POLLS_MOST = 4,  /* looks at events, since an idle device completes them at once */
    POLL_NS = 4000,  /* between two of them */
    FLUSHED_LEAST = 2 << 20, /* bytes: so that the caches need not be emptied again soon */
    CACHED_LEAST = 4 << 20,  /* bytes of small blocks that a thread's cache may keep in any case */
    RECLAIMS_MOST = 16,      /* claimed regions that are taken from threads before memory grows */
    HANDLER_CALLS_MOST = 3,  /* for one request */
};

/* ---- steps 1 to 3: the thread and its stream ------------------------------------------------ */

gn_memory_block *gni_pool_alloc_unlocked(struct gni_cache *cache, size_t nbytes, unsigned flags,
                                         bool *is_claim_empty)
{
    enum gni_range range = gni_size_range(nbytes);
    if (range == GNI_RANGE_LARGE)
        return NULL;
    return range == GNI_RANGE_MEDIUM ? gni_claim_alloc(cache, nbytes, flags, is_claim_empty)
                                     : gni_depot_alloc(cache, nbytes, flags);
}

/* No slot of the thread's cache, which may be NULL, has a block for a medium or large request: SP1. */
static void request_note(struct gni_pool *pool, struct gni_cache *cache, struct gni_need *need)
{
    if (need->is_noted)
        return;
    need->is_noted = true;
    if (cache != NULL)
        gni_slot_note(cache, need->nbytes);
    if (need->range == GNI_RANGE_LARGE)
        gni_bound_note(pool, need->requested);
}

static gn_memory_block *list_pop(struct gni_cache *cache, gn_memory_block **first, unsigned *count)
{
    gn_memory_block *block = *first;
    gni_assert(*first == NULL || gni_block_state(*first) == GNI_BLOCK_CACHED);
    if (block == NULL)
        return NULL;
    *first = block->next;
    (*count)--;
    gni_cache_places_add(cache, 1);
    block->next = NULL;
    return block;
}

/* The thread's own regions, if step 1 has not searched them. */
static inline gn_memory_block *claim_take(struct gni_cache *cache, const struct gni_need *need)
{
    return need->range == GNI_RANGE_MEDIUM && cache->pool->has_claims && !need->is_claim_empty
               ? gni_claim_take(cache, need->nbytes)
               : NULL;
}

/* Step 2, for a cache that the fast path did not know. */
static gn_memory_block *cache_take(struct gni_cache *cache, struct gni_need *need)
{
    if (need->range <= GNI_RANGE_SMALL) {
        struct gni_bin *bin = &cache->bins[gni_class_up(need->nbytes >> GNI_GRAIN_SHIFT)];
        bin->miss_count++;
        return list_pop(cache, &bin->first, &bin->count);
    }
    struct gni_slot *slot = gni_cache_slot(cache, need->nbytes);
    gn_memory_block *block =
        slot->nbytes == need->nbytes ? list_pop(cache, &slot->first, &slot->count) : NULL;
    if (block != NULL)
        return block;
    request_note(cache->pool, cache, need);
    return claim_take(cache, need);
}

/* How many blocks of a small class are fetched for the thread's cache at once. */
static unsigned refill_count(size_t nbytes)
{
    return nbytes <= (16 << 10) ? 8 : nbytes <= (128 << 10) ? 4 : 1;
}

/* Fetches more blocks of the same class for the cache, from what its own heap has. */
static __attribute__((noinline)) void cache_refill(struct gni_cache *cache,
                                                   const struct gni_need *need)
{
    struct gni_pool *pool = cache->pool;
    gni_assert(gni_pool_is_locked(cache->pool));
    gni_assert(need->range <= GNI_RANGE_SMALL);
    for (unsigned i = 1; i < refill_count(need->nbytes); i++) {
        struct gni_bin *bin = &cache->bins[gni_class_up(need->nbytes >> GNI_GRAIN_SHIFT)];
        if (gni_cache_places(cache) == 0 || bin->count >= bin->limit ||
            gni_blocks_reserve(&pool->blocks, pool->reserve_blocks + 1) != GN_OK)
            return;
        gn_memory_block *block = gni_space_take(need->heap, need);
        if (block == NULL)
            return;
        gni_cache_put(cache, block);
    }
}

/* ---- steps 4 to 6: idle memory of others ---------------------------------------------------- */

/* A medium block in idle memory of large blocks, or NULL. Only where the pieces around it can still go back one by one:
 * with the policy `pool` it would keep a whole segment. */
static gn_memory_block *large_take(const struct gni_space *space, const struct gni_need *need)
{
    if (need->range != GNI_RANGE_MEDIUM || space->is_private ||
        space->pool->backing != GNI_BACKING_VIRTUAL)
        return NULL;
    gn_memory_block *block = gni_fit_best(&need->heap->fit[GNI_RANGE_LARGE], need->nbytes);
    if (block == NULL)
        block = gni_fit_best(&space->clean->fit[GNI_RANGE_LARGE], need->nbytes);
    if (block == NULL)
        return NULL;
    return gni_tile_carve(block, need->heap, GNI_RANGE_LARGE, need->nbytes, need->offset);
}

/* Whether large_take() is tried before memory grows: it needs no driver call, and less is reserved. Only while a quarter
 * of what may be reserved is left: a piece with a block whose address is known cannot be divided when memory runs out.
 * And not if the configuration limits what may be idle: the piece cannot go back before the block's work is done. */
static bool is_large_shared(const struct gni_pool *pool)
{
    return !pool->is_limited && pool->reserved_bytes <= gni_pool_allowed(pool) / 4 * 3;
}

/* Step 5. */
static gn_memory_block *others_take(struct gni_space *space, struct gni_need *need)
{
    gn_memory_block *block = need->heap != space->clean ? gni_space_take(space->clean, need) : NULL;
    gni_assert(space->clean != NULL);
    if (block == NULL && !space->is_private &&
        gni_space_retire(space, need->heap, 1U << need->range))
        block = gni_space_take(space->clean, need);
    if (block == NULL && !space->is_private && need->heap != space->clean &&
        gni_heap_adopt(need->heap, need->range, false))
        block = gni_space_take(need->heap, need);
    if (block == NULL && is_large_shared(space->pool))
        block = large_take(space, need);
    return block;
}

/* Steps 3 and 5, after something went to the heaps. */
static gn_memory_block *idle_take(struct gni_space *space, struct gni_need *need)
{
    gn_memory_block *block = gni_space_take(need->heap, need);
    return block != NULL ? block : others_take(space, need);
}

/* Bytes of small blocks that the caches keep in any case. Each thread that uses host memory keeps so much: threads that
 * empty each other's caches in turn cost more than that. */
static size_t cached_least(const struct gni_pool *pool)
{
    size_t count = 0;
    if (!pool->has_claims)
        return CACHED_LEAST;
    for (const struct gni_cache *cache = atomic_load(&pool->caches); cache != NULL;
         cache = cache->next)
        count += cache->heap != NULL;
    return count > 1 ? count * CACHED_LEAST : CACHED_LEAST;
}

/* True if the threads' caches hold so much of the need's range that emptying them pays. Small blocks are what the caches
 * are for, and to refill them costs more than a page. */
static bool is_worth_flushing(struct gni_space *space, const struct gni_need *need)
{
    size_t cached = gni_caches_bytes(space->pool, need->range);
    if (need->range > GNI_RANGE_SMALL)
        return cached >= need->nbytes;
    return cached > cached_least(space->pool) && cached > space->mapped_bytes[need->range] / 3;
}

/* Whether a thread's region should be taken from it. Threads that take regions from each other again and again have too
 * few, and get more, up to twice what was live. */
static bool is_reclaim_due(struct gni_space *space, const struct gni_need *need)
{
    struct gni_pool *pool = space->pool;
    if (space->is_private || need->range != GNI_RANGE_MEDIUM || !gni_claims_exist(pool))
        return false;
    return pool->reclaim_count < RECLAIMS_MOST || !gni_bound_allows_double(space, need);
}

/* Where a large block would pass the bound, what threads keep idle for themselves goes to the heaps. What one thread
 * frees in each iteration another may need: autograd has a thread of its own. */
static gn_memory_block *large_gather(struct gni_space *space, struct gni_need *need)
{
    struct gni_pool *pool = space->pool;
    gni_claims_shed(pool);
    for (enum gni_range range = GNI_RANGE_MEDIUM; range <= GNI_RANGE_LARGE; range++)
        if (pool->backing == GNI_BACKING_VIRTUAL && gni_caches_bytes(pool, range) >= FLUSHED_LEAST)
            gni_caches_flush_range(pool, range, SIZE_MAX);
    return idle_take(space, need);
}

/* Step 6. */
static gn_memory_block *caches_take(struct gni_space *space, struct gni_need *need)
{
    gn_memory_block *block = NULL;
    gni_assert(gni_pool_is_locked(space->pool));
    if (is_reclaim_due(space, need) && gni_claims_reclaim(space->pool, need)) {
        space->pool->reclaim_count++;
        block = idle_take(space, need);
    }
    if (block != NULL)
        return block;
    if (need->range == GNI_RANGE_LARGE && !gni_bound_allows(space, need))
        return large_gather(space, need);
    if (!is_worth_flushing(space, need))
        return NULL;
    gni_caches_flush_range(space->pool, need->range, FLUSHED_LEAST);
    return idle_take(space, need);
}

/* ---- steps 7 and 8: the driver -------------------------------------------------------------- */

static bool has_marks(const struct gni_space *space)
{
    gni_list_each (link, &space->heaps)
        if (!gni_list_is_empty(&gni_container_of(link, struct gni_heap, link)->marks))
            return true;
    return false;
}

/* Records events after everything that was freed, and takes in which are complete. An idle device completes a fresh
 * event within microseconds, so it is looked at a few times; a busy one is not waited for. */
static void streams_poll(struct gni_space *space)
{
    gni_list_each (link, &space->heaps)
        gni_heap_close(gni_container_of(link, struct gni_heap, link));
    gni_space_poll(space);
    for (int looks = 1; looks < POLLS_MOST && has_marks(space); looks++) {
        uint64_t begin = gni_time_ns();
        while (gni_time_ns() - begin < POLL_NS)
            ;
        gni_space_poll(space);
    }
}

/* Gives back idle memory that no work uses, until the need can grow within `allowed` reserved bytes. What goes back may
 * be what the need would have grown beside. If something went back, memory is in pieces. With `is_waiting`, work that
 * uses idle memory is waited for, the oldest first, so that the host stays ahead of the device. */
static void idle_release(struct gni_space *space, struct gni_need *need, uint64_t allowed,
                         bool is_waiting)
{
    uint64_t before = space->pool->counts.driver_free_count;
    bool is_going_on = true;
    gni_assert(gni_pool_is_locked(space->pool));
    streams_poll(space);
    while (is_going_on) {
        uint64_t wanted = space->pool->reserved_bytes + gni_space_growth(space, need);
        is_going_on =
            wanted > allowed && (gni_space_release(space, (size_t)(wanted - allowed)) > 0 ||
                                 (is_waiting && gni_space_wait(space)));
    }
    need->is_tight |= space->pool->counts.driver_free_count != before;
}

/* Step 7, before growing. */
static void recycle(struct gni_space *space, struct gni_need *need)
{
    struct gni_pool *pool = space->pool;
    uint64_t before = pool->counts.driver_free_count;
    idle_release(space, need, gni_bound_reserved(pool, need), need->range == GNI_RANGE_LARGE);
    gni_bound_widen(space, need, (size_t)(pool->counts.driver_free_count - before));
}

/* True if idle memory does not fit what is asked for, and will have to be recycled. What blocks leave of their last
 * pages does not count. */
static bool is_in_pieces(const struct gni_space *space, enum gni_range range)
{
    size_t idle = 0, most = space->mapped_bytes[range] / IDLE_MOST;
    gni_list_each (link, &space->heaps) {
        const struct gni_fit *fit = &gni_container_of(link, struct gni_heap, link)->fit[range];
        for (const gn_memory_block *block =
                 gni_fit_from(fit, gni_class_down(GNI_PAGE >> GNI_GRAIN_SHIFT));
             block != NULL && idle <= most; block = gni_fit_next(fit, block))
            idle += block->nbytes;
    }
    return idle > most;
}

static gn_status grow(struct gni_space *space, struct gni_need *need, gn_memory_block **block)
{
    need->is_tight |= space->pool->is_tight || is_in_pieces(space, need->range);
    GN_TRY(gni_space_grow(space, need));
    need->is_grown = true;
    if (need->range == GNI_RANGE_MEDIUM)
        space->pool->reclaim_count = 0;
    *block = gni_space_take(need->heap, need);
    gni_assert(*block != NULL);
    return GN_OK;
}

/* Step 8. */
static gn_status regrow(struct gni_space *space, struct gni_need *need, gn_memory_block **block)
{
    uint64_t before = space->pool->reserved_bytes;
    if (space->is_private)
        return GN_ERROR_OUT_OF_MEMORY;
    space->pool->is_tight = true;
    idle_release(space, need, 0, false);
    return space->pool->reserved_bytes < before ? grow(space, need, block) : GN_ERROR_OUT_OF_MEMORY;
}

/* ---- steps 9 to 11: waiting ----------------------------------------------------------------- */

/* Step 11, unless even what nobody asked for would not be enough. Memory is made free for all of the need: what it would
 * have grown beside may be what goes back. */
static gn_status squeeze(struct gni_space *space, struct gni_need *need, gn_memory_block **block)
{
    struct gni_pool *pool = space->pool;
    struct gni_totals now = gni_pool_totals(pool);
    uint64_t before = pool->reserved_bytes, growth = gni_align_up(need->nbytes, GNI_PAGE);
    uint64_t asked = now.alloc_bytes - now.free_bytes + need->requested;
    gn_memory_compaction report = {0};
    if (asked > gni_pool_allowed(pool))
        return GN_ERROR_OUT_OF_MEMORY; /* the last attempt has said why */
    gn_status status = gni_pool_squeeze(pool, true, before > growth ? before - growth : 0, &report);
    bool is_short = status == GN_ERROR_OUT_OF_MEMORY || status == GN_ERROR_OUT_OF_HOST_MEMORY;
    if (is_short || status == GN_ERROR_CAPTURE ||
        (status == GN_OK && pool->reserved_bytes == before))
        return GN_ERROR_OUT_OF_MEMORY;
    GN_TRY(status);
    return grow(space, need, block);
}

/* Waits for the device, unless a graph is captured: then *is_idle is false. A failed launch is reported here, maybe for
 * lack of memory. That is not this request's failure, whose message would take its place. */
static gn_status idle_wait(struct gni_pool *pool, bool *is_idle)
{
    gn_status status = gni_pool_synchronize(pool);
    *is_idle = status == GN_OK;
    if (status == GN_ERROR_CAPTURE)
        return GN_OK;
    return status == GN_ERROR_OUT_OF_MEMORY ? GN_ERROR_DRIVER : status;
}

/* Steps 10 and 11. */
static gn_status recover(struct gni_space *space, struct gni_need *need, gn_memory_block **block)
{
    struct gni_pool *pool = space->pool;
    gni_assert(gni_pool_is_locked(space->pool));
    pool->counts.retry_count++;
    (void)gni_caches_flush(pool, NULL);
    bool is_idle = false;
    if (space != pool->capture)
        GN_TRY(idle_wait(pool, &is_idle));
    if (is_idle)
        gni_pool_unfold(pool);
    else
        gni_pool_drain(pool);
    (void)gni_space_retire(&pool->main, space == &pool->main ? need->heap : NULL, GNI_RANGES_ALL);
    *block = idle_take(space, need);
    if (*block != NULL)
        return GN_OK;
    /* What is free must be one block: pieces of two heaps hold up their segment, and blocked bytes of two heaps would
     * never join. */
    (void)gni_space_retire(&pool->main, NULL, GNI_RANGES_ALL);
    (void)gni_space_release(&pool->main, SIZE_MAX);
    if (space == &pool->main &&
        need->heap != space->clean) /* new memory joins what cannot go back */
        (void)gni_heap_adopt(need->heap, need->range, true);
    gn_status status = grow(space, need, block);
    if (status == GN_ERROR_OUT_OF_MEMORY && pool->backing == GNI_BACKING_VIRTUAL && is_idle)
        status = squeeze(space, need, block);
    if (status == GN_ERROR_OUT_OF_MEMORY && (*block = large_take(space, need)) != NULL)
        status = GN_OK;
    return status;
}

/* ---- the ladder ----------------------------------------------------------------------------- */

/* Steps 6 to 11. */
static gn_status others_climb(struct gni_space *space, struct gni_need *need,
                              gn_memory_block **block)
{
    *block = caches_take(space, need);
    if (*block != NULL)
        return GN_OK;
    if (!gni_bound_allows(space, need))
        recycle(space, need);
    gn_status status = grow(space, need, block);
    if (status == GN_ERROR_OUT_OF_MEMORY)
        status = regrow(space, need, block);
    if (status == GN_ERROR_OUT_OF_MEMORY && (*block = gni_space_steal(space, need)) != NULL)
        status = GN_OK;
    if (status == GN_ERROR_OUT_OF_MEMORY)
        status = recover(space, need, block);
    return status;
}

gn_status gni_need_climb(struct gni_pool *pool, struct gni_need *need, gn_memory_block **block)
{
    struct gni_space *space = need->heap->space;
    gni_assert(gni_pool_is_locked(pool));
    gni_assert(need->heap != NULL);
    if (need->nbytes > pool->total_bytes && pool->device->ops->is_bounded)
        return gni_error(GN_ERROR_OUT_OF_MEMORY, "%zu bytes are more than there are",
                         need->nbytes); /* nothing is given up for it */
    GN_TRY(gni_blocks_reserve(&pool->blocks, pool->reserve_blocks + DESCRIPTORS)); /* SP2 */
    gn_memory_block *found = need->is_heap_empty ? NULL : gni_space_take(need->heap, need);
    gn_status status = GN_OK;
    /* Heaps without blocks may go while others are looked through: not this one. */
    need->heap->block_count++;
    if (found == NULL)
        found = others_take(space, need);
    if (found == NULL)
        status = others_climb(space, need, &found);
    need->heap->block_count--;
    GN_TRY(status);
    gni_assert(gni_block_state(found) == GNI_BLOCK_CACHED && found->nbytes >= need->nbytes);
    *block = found;
    return GN_OK;
}

/* True if pending blocks must be looked at before the heap. */
static bool is_poll_due(struct gni_pool *pool)
{
    return pool->pending_count != 0 && pool->unpolled_count++ >= UNPOLLED_MOST;
}

/* The heap that the need's stream allocates from, and the thread's cache for it. */
static gn_status heap_find(struct gni_pool *pool, struct gni_need *need, struct gni_cache **cache)
{
    struct gni_space *space;
    GN_TRY(gni_space_of_stream(pool, need->stream, &space));
    if (space->clean == NULL)
        GN_TRY(gni_heap_create(space, 0, NULL, &space->clean));
    GN_TRY(gni_heap_get(space, need->stream, &need->heap));
    *cache = gni_cache_get(pool, need->heap);
    return GN_OK;
}

/* Steps 4 to 11. If there is no cache yet, steps 2 and 3 come after 4, which may end heaps of foreign streams. The
 * result is NULL if the thread's cache met the need; then *cached is the block. */
static __attribute__((noinline)) gn_status shared_take(struct gni_pool *pool, struct gni_need *need,
                                                       struct gni_cache **cache,
                                                       gn_memory_block **cached,
                                                       gn_memory_block **found)
{
    uint64_t pending = pool->pending_count;
    gni_assert(gni_pool_is_locked(pool));
    GN_TRY(gni_manager_stream(pool->manager, &need->stream));
    GN_TRY(pool->device->ops->check(pool->device));
    gni_pool_pending_poll(pool);
    need->is_heap_empty &= pool->pending_count == pending;
    if (*cache == NULL || (*cache)->heap == NULL) {
        GN_TRY(heap_find(pool, need, cache));
        if (*cache != NULL)
            *cached = cache_take(*cache, need);
        else if (need->range > GNI_RANGE_SMALL)
            request_note(pool, NULL, need);
    }
    return *cached == NULL ? gni_need_climb(pool, need, found) : GN_OK;
}

/* Steps 2 and 3, for a cache whose lists the fast path has looked at. The result is NULL if the thread's own regions had
 * the block; then that is *claimed. */
static inline gn_memory_block *near_take(struct gni_cache *cache, struct gni_need *need,
                                         gn_memory_block **claimed)
{
    struct gni_pool *pool = cache->pool;
    struct gni_fit *fit = &cache->heap->fit[need->range];
    gni_assert(gni_pool_is_locked(pool) && cache->thread == gni_thread_self());
    need->heap = cache->heap;
    if (need->range <= GNI_RANGE_SMALL)
        cache->bins[gni_class_up(need->nbytes >> GNI_GRAIN_SHIFT)].miss_count++;
    else
        request_note(pool, cache, need);
    *claimed = claim_take(cache, need);
    if (*claimed != NULL || pool->blocks.count <= pool->reserve_blocks || is_poll_due(pool) ||
        pool->config.strategy == GN_MEMORY_FIRST_FIT)
        return NULL;
    gn_memory_block *block = gni_fit_best(fit, need->nbytes);
    need->is_heap_empty = block == NULL;
    return block != NULL ? gni_tile_carve(block, cache->heap, need->range, need->nbytes, 0) : NULL;
}

/* A block came from the stream's heap or from further: the thread gets more of its class, or its region. */
static inline void cache_grow(struct gni_cache *cache, const struct gni_need *need,
                              gn_memory_block *found)
{
    if (need->range <= GNI_RANGE_SMALL)
        cache_refill(cache, need);
    else if (cache->pool->has_claims)
        gni_claim_region(cache, found->region);
}

/* Steps 4 to 11, after 2 and 3 if there is a cache. */
static gn_status far_take(struct gni_pool *pool, struct gni_need *need, struct gni_cache **cache,
                          gn_memory_block **block)
{
    gn_memory_block *cached = NULL, *found = NULL;
    GN_TRY(shared_take(pool, need, cache, &cached, &found));
    if (found != NULL && *cache != NULL)
        cache_grow(*cache, need, found);
    *block = cached != NULL ? cached : found;
    return GN_OK;
}

/* Steps 2 and 3, of a cache whose heap is there. NULL: the search goes on. */
static inline gn_memory_block *near_alloc(struct gni_cache *cache, struct gni_need *need)
{
    gn_memory_block *claimed, *found = near_take(cache, need, &claimed);
    if (found != NULL)
        cache_grow(cache, need, found);
    return claimed != NULL ? claimed : found;
}

gn_status gni_need_satisfy(struct gni_pool *pool, struct gni_need *need, struct gni_cache **cache,
                           gn_memory_block **block)
{
    gn_memory_block *found = NULL;
    if (*cache != NULL && (*cache)->heap != NULL) {
        need->heap = (*cache)->heap;
        found = cache_take(*cache, need);
    }
    if (found == NULL)
        return far_take(pool, need, cache, block);
    *block = found;
    return GN_OK;
}

void gni_need_hand_out(struct gni_pool *pool, gn_memory_block *block, const struct gni_need *need,
                       struct gni_cache *cache, unsigned flags)
{
    struct gni_cache *counter = cache != NULL ? cache : pool->spare;
    struct gni_space *space = need->heap->space;
    gni_assert(gni_block_state(block) == GNI_BLOCK_CACHED);
    gni_assert(block->heap == need->heap);
    if (space->is_private || pool->debug != 0 || pool->is_marked)
        flags |= GNI_BLOCK_SLOW;
    if (pool->debug != 0)
        flags |= GNI_BLOCK_EXPORTED; /* fills of it are under way without the lock */
    if (space->is_private)
        space->live_count++;
    gni_cache_hand_out(counter, block, need->requested, flags);
    gni_count_add(&counter->slow_count, 1);
    if (need->is_grown)
        pool->counts.miss_count++;
    else
        pool->counts.global_hit_count++;
    if (pool->is_marked)
        gni_mark_block_add(block->address, need->requested);
}

/* The stream can be found without the lock from now on. */
static __attribute__((noinline)) void stream_remember(struct gni_cache *cache, gn_stream *asked,
                                                      gn_stream *stream)
{
    uint64_t key = cache->heap->key;
    gni_assert(cache->heap->key != 0);
    if (atomic_load_explicit(&stream->is_shared, memory_order_relaxed) ||
        stream->kind == GNI_STREAM_FOREIGN || stream->kind == GNI_STREAM_PER_THREAD)
        return;
    atomic_store_explicit(&stream->upper.memory_key, key, memory_order_relaxed);
    gni_cache_remember(cache, asked, key);
}

/* ---- step 12: the user's handler ------------------------------------------------------------ */

/* The pools whose handlers this thread is in, the innermost first. */
struct handling {
    const struct gni_pool *pool;
    const struct handling *outer;
};

static _Thread_local const struct handling *handling_now;

/* True inside a pool's handler. A handler that allocates is not called for its own request: that request fails, and the
 * recursion ends. The handler of another pool may be called. */
static bool is_handling(const struct gni_pool *pool)
{
    const struct handling *one = handling_now;
    while (one != NULL && one->pool != pool)
        one = one->outer;
    return one != NULL;
}

bool gni_pool_handle(struct gni_pool *pool, size_t nbytes, int *calls)
{
    gni_assert(!gni_pool_is_locked(pool));
    if ((*calls)++ >= HANDLER_CALLS_MOST || is_handling(pool))
        return false;
    gni_pool_lock(pool);
    gn_memory_handler handler = pool->handler;
    void *context = pool->handler_context;
    gni_pool_unlock(pool);
    if (handler == NULL)
        return false;
    uint32_t site = gn_history_set_site(0); /* what it allocates is its own */
    struct handling own = {.pool = pool, .outer = handling_now};
    handling_now = &own;
    bool is_retry = handler(pool->manager, nbytes, context);
    handling_now = own.outer;
    (void)gn_history_set_site(site);
    return is_retry;
}

/* ---- all steps ------------------------------------------------------------------------------ */

/* Steps 4 to 11. With the lock, which is given back. */
static gn_status far_once(struct gni_pool *pool, struct gni_need *need, struct gni_cache *known,
                          gn_stream *asked, unsigned flags, gn_memory_block **block)
{
    struct gni_cache *cache = known;
    gn_memory_block *found = NULL;
    gn_status status = far_take(pool, need, &cache, &found);
    if (status == GN_OK) {
        gni_need_hand_out(pool, found, need, cache, flags);
        if (cache != NULL && cache != known)
            stream_remember(cache, asked, need->stream);
        *block = found;
    }
    gni_pool_unlock(pool);
    return status;
}

/* Steps 4 to 12, and what must happen when the driver was asked or has refused. With the lock, which is given back. */
static __attribute__((noinline)) gn_status far_alloc(struct gni_pool *pool, struct gni_need *need,
                                                     struct gni_cache *known, unsigned flags,
                                                     gn_memory_block **block)
{
    gn_stream *asked = need->stream;
    gn_memory_block *found = NULL;
    gn_status status = far_once(pool, need, known, asked, flags, &found);
    for (int calls = 0;
         status == GN_ERROR_OUT_OF_MEMORY && gni_pool_handle(pool, need->requested, &calls);) {
        need->is_claim_empty = need->is_heap_empty = false;
        gni_pool_lock(pool);
        status = far_once(pool, need, NULL, asked, flags, &found);
    }
    if (status == GN_ERROR_OUT_OF_MEMORY)
        status = gni_pool_out_of_memory(pool, need->requested);
    if (status == GN_OK && pool->debug != 0) {
        status = gni_debug_alloc(pool, found, need->stream);
        if (status != GN_OK)
            (void)gni_pool_take_back(found, NULL, 0);
    }
    if (status == GN_OK)
        *block = found;
    return status;
}

/* Flattened: most requests that come here end with step 3, and calls would cost as much as its work. */
__attribute__((flatten)) gn_status gni_pool_alloc(struct gni_pool *pool, struct gni_cache *known,
                                                  bool is_claim_empty, size_t nbytes,
                                                  gn_stream *asked, unsigned flags,
                                                  gn_memory_block **block)
{
    struct gni_need need;
    gn_memory_block *found = NULL;
    gni_need_init(pool, nbytes, asked, &need);
    need.is_claim_empty = is_claim_empty;
    gni_pool_lock(pool);
    if (known != NULL && known->heap != NULL)
        found = near_alloc(known, &need);
    if (found == NULL)
        return far_alloc(pool, &need, known, flags, block);
    gni_cache_hand_out(known, found, nbytes, flags); /* CA7: nothing else is to be done */
    gni_count_add(&known->slow_count, 1);
    pool->counts.global_hit_count++;
    gni_pool_unlock(pool);
    *block = found;
    return GN_OK;
}
