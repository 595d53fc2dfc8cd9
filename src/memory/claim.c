/*
 * claim.c: regions that one thread has to itself: claim.h.
 */
#include "memory/cache.h"

#include "memory/tile.h"

enum {
    STOCK_LEAST = 4, /* descriptors, below which more are fetched */
    STOCK = 32,      /* that are fetched at once */
    STOCK_MOST = 256,
};

/* ---- the owner's work: between enter and leave, or with the lock ------------------------------ */

static gn_memory_block *claim_join(struct gni_claim *claim, gn_memory_block *block)
{
    return gni_tile_join(&claim->fit, &claim->blocks, &claim->freed, block);
}

/* Takes in what others have freed; how many blocks. */
static size_t claim_gather(struct gni_claim *claim)
{
    if (atomic_load_explicit(&claim->returned, memory_order_relaxed) == NULL)
        return 0;
    gn_memory_block *block = atomic_exchange_explicit(&claim->returned, NULL, memory_order_acquire);
    size_t count = 0;
    for (gn_memory_block *next; block != NULL; block = next, count++) {
        next = block->next;
        (void)claim_join(claim, block);
    }
    return count;
}

/* Whether so much is idle that a region should go back. */
static bool claim_is_rich(const struct gni_claim *claim)
{
    return claim->fit.nbytes > GNI_CLAIM_IDLE_MOST;
}

/* The best free block, or NULL. *is_richer: others' frees were taken in, and so much is idle that regions should go
 * back. */
static gn_memory_block *claim_find(struct gni_claim *claim, size_t nbytes, bool *is_richer)
{
    gn_memory_block *block = gni_fit_best(&claim->fit, nbytes);
    *is_richer = false;
    if (block == NULL && claim_gather(claim) > 0) {
        block = gni_fit_best(&claim->fit, nbytes);
        *is_richer = claim_is_rich(claim);
    }
    return block;
}

/* Whether the claim has a descriptor for what a cut leaves. */
static bool claim_can_cut(const struct gni_claim *claim, const gn_memory_block *block,
                          size_t nbytes)
{
    return block->nbytes == nbytes || claim->blocks.count > 0;
}

static gn_memory_block *claim_cut(struct gni_claim *claim, gn_memory_block *block, size_t nbytes)
{
    gni_assert(block->nbytes >= nbytes && claim_can_cut(claim, block, nbytes));
    return gni_tile_cut(&claim->fit, &claim->blocks, block, block->heap, GNI_RANGE_MEDIUM, nbytes,
                        0);
}

/* Empties a slot; false if some of its blocks are not of a claim, and need the lock. */
static bool slot_empty(struct gni_cache *cache, struct gni_slot *slot)
{
    gn_memory_block *block;
    while ((block = slot->first) != NULL) {
        struct gni_claim *claim = gni_claim_of(block);
        if (claim == NULL)
            return false;
        slot->first = block->next;
        slot->count--;
        gni_cache_places_add(cache, 1);
        if (claim == cache->claim)
            (void)claim_join(claim, block);
        else
            gni_claim_return(claim, block);
    }
    return true;
}

/* Does what a request of this size asks of the slots (CA6), as far as that needs no lock; false if it is not all. */
static bool slots_prepare(struct gni_cache *cache, size_t nbytes)
{
    for (uint64_t stale = gni_slots_stale(cache); stale != 0; stale &= stale - 1)
        if (!slot_empty(cache, &cache->slots[__builtin_ctzll(stale)]))
            return false;
    struct gni_slot *slot = gni_cache_slot(cache, nbytes);
    return slot->nbytes == nbytes || slot->score > 0 || slot_empty(cache, slot);
}

/* Takes the lock: wholly free regions go back to the heap, as long as much is idle. */
static void claim_relieve(struct gni_cache *cache);

static bool cache_enter(struct gni_cache *cache, int64_t *live)
{
    return gni_cache_enter(cache, atomic_load_explicit(&gni_slow_reasons, memory_order_relaxed),
                           live);
}

gn_memory_block *gni_claim_alloc(struct gni_cache *cache, size_t nbytes, unsigned flags,
                                 bool *is_empty)
{
    struct gni_claim *claim = cache->claim;
    size_t rounded = gni_size_round(nbytes);
    bool is_above = false, is_richer = false;
    int64_t live;
    gni_assert(cache->thread == gni_thread_self());
    *is_empty = claim == NULL;
    if (claim == NULL || !cache_enter(cache, &live))
        return NULL;
    bool is_prepared = slots_prepare(cache, rounded);
    gn_memory_block *block = is_prepared ? claim_find(claim, rounded, &is_richer) : NULL;
    *is_empty = is_prepared && block == NULL;
    if (block != NULL && !claim_can_cut(claim, block, rounded))
        block = NULL;
    if (block != NULL) {
        gni_slot_note(cache, rounded);
        block = claim_cut(claim, block, rounded);
        is_above = gni_block_hand_out(cache, block, nbytes, flags, 0, &live);
    }
    gni_cache_leave(cache, live);
    if (is_above)
        gni_caches_share(cache->pool);
    if (is_richer)
        claim_relieve(cache);
    return block;
}

/* A living block of another thread's region becomes the caller's to return, unless somebody was faster. */
static bool block_take(gn_memory_block *block)
{
    unsigned char live = GNI_BLOCK_LIVE;
    return atomic_compare_exchange_strong_explicit(&block->state, &live, GNI_BLOCK_CACHED,
                                                   memory_order_relaxed, memory_order_relaxed);
}

bool gni_claim_free(struct gni_cache *cache, gn_memory_block *block, const void *pointer,
                    uint64_t time_ns)
{
    bool is_freed = false, is_rich = false;
    int64_t live;
    gni_assert(cache->thread == gni_thread_self());
    if (!cache_enter(cache, &live))
        return false;
    if (gni_cache_can_free(cache, block, pointer)) {
        struct gni_claim *claim = gni_claim_of(block);
        bool is_own = claim == cache->claim;
        is_freed = claim != NULL && (is_own || block_take(block));
        if (is_freed)
            gni_block_take_back(cache, block, 0, time_ns, &live);
        if (is_freed && is_own) {
            block = claim_join(claim, block);
            is_rich = claim_is_rich(claim) && block->before == NULL && block->after == NULL;
        } else if (is_freed) {
            gni_claim_return(claim, block);
        }
    }
    gni_cache_leave(cache, live);
    if (is_rich)
        claim_relieve(cache);
    return is_freed;
}

/* ---- with the lock -------------------------------------------------------------------------- */

/* Descriptors go from one stock to another. */
static void stock_move(struct gni_blocks *from, struct gni_blocks *to)
{
    gn_memory_block *block = gni_blocks_take(from);
    gni_block_set_heap(block, to->heap);
    gni_blocks_give(to, block);
}

/* Fetches descriptors where few are left, as far as there are; and gives back what merging has brought. */
static void stock_level(struct gni_pool *pool, struct gni_claim *claim)
{
    if (claim->blocks.count < STOCK_LEAST &&
        gni_blocks_reserve(&pool->blocks, pool->reserve_blocks + STOCK + 1) == GN_OK)
        while (claim->blocks.count < STOCK)
            stock_move(&pool->blocks, &claim->blocks);
    if (claim->blocks.count > STOCK_MOST)
        while (claim->blocks.count > STOCK)
            stock_move(&claim->blocks, &pool->blocks);
}

gn_memory_block *gni_claim_take(struct gni_cache *cache, size_t nbytes)
{
    struct gni_claim *claim = cache->claim;
    gni_assert(gni_pool_is_locked(cache->pool));
    if (!gni_claim_has_regions(cache))
        return NULL;
    bool is_richer; /* the next time will do */
    stock_level(cache->pool, claim);
    gn_memory_block *block = claim_find(claim, nbytes, &is_richer);
    if (block == NULL || !claim_can_cut(claim, block, nbytes))
        return NULL;
    return claim_cut(claim, block, nbytes);
}

/* The free blocks of a region go from one index to another. */
static void region_move(struct gni_region *region, struct gni_fit *from, struct gni_fit *to)
{
    for (gn_memory_block *block = region->first; block != NULL; block = block->after) {
        if (gni_block_state(block) != GNI_BLOCK_FREE)
            continue;
        gni_fit_remove(from, block);
        gni_fit_insert(to, block);
    }
}

static void region_set_claim(struct gni_region *region, struct gni_claim *claim)
{
    region->claim = claim;
    for (size_t at = 0; at < region->nbytes; at += GNI_PAGE)
        atomic_store_explicit(&gni_page_find(region->start + at)->claim, claim,
                              memory_order_release);
}

/* CL4; nothing of the region is on the way back. */
static void region_unclaim(struct gni_cache *cache, struct gni_region *region)
{
    gni_assert(gni_pool_is_locked(cache->pool));
    gni_assert(region->claim == cache->claim);
    region_move(region, &cache->claim->fit, &cache->heap->fit[region->range]);
    for (gn_memory_block *block = region->first; block != NULL; block = block->after)
        if (gni_block_state(block) == GNI_BLOCK_FREE)
            gni_heap_stamp(cache->heap, block);
    gni_list_remove(&region->claim_link);
    region_set_claim(region, NULL);
}

/* Wholly free regions go back to the heap, as long as more than so many bytes are idle. */
static void claim_shed(struct gni_cache *cache, size_t keep)
{
    struct gni_claim *claim = cache->claim;
    gni_assert(gni_pool_is_locked(cache->pool));
    gni_fit_each (block, &claim->fit)
        if (block->before == NULL && block->after == NULL && claim->fit.nbytes > keep)
            region_unclaim(cache, block->region);
}

static void claim_relieve(struct gni_cache *cache)
{
    struct gni_pool *pool = cache->pool;
    gni_pool_lock(pool);
    claim_shed(cache, GNI_CLAIM_IDLE_MOST);
    if (gni_claim_has_regions(cache))
        stock_level(pool, cache->claim);
    gni_pool_unlock(pool);
}

static struct gni_claim *claim_create(struct gni_cache *cache)
{
    struct gni_claim *claim = gni_host_alloc_lines(sizeof *claim);
    if (claim != NULL)
        gni_list_init(&claim->regions);
    cache->claim = claim;
    return claim;
}

/* CL1: whether all blocks of a region are the heap's, or are free and anybody's. */
static bool region_is_of(const struct gni_region *region, const struct gni_heap *heap)
{
    for (const gn_memory_block *block = region->first; block != NULL; block = block->after)
        if (block->heap != heap &&
            (block->heap != heap->space->clean || gni_block_state(block) != GNI_BLOCK_FREE))
            return false;
    return true;
}

/* What is free and anybody's becomes the heap's. */
static void region_adopt(struct gni_region *region, struct gni_heap *heap)
{
    for (gn_memory_block *block = region->first; block != NULL; block = block->after) {
        if (block->heap == heap)
            continue;
        gni_fit_remove(&block->heap->fit[block->range], block);
        gni_block_set_heap(block, heap);
        block = gni_tile_merge(block);
    }
}

void gni_claim_region(struct gni_cache *cache, struct gni_region *region)
{
    struct gni_pool *pool = cache->pool;
    struct gni_claim *claim = cache->claim;
    gni_assert(gni_pool_is_locked(cache->pool));
    gni_assert(cache->thread == gni_thread_self());
    if (!pool->has_claims || pool->is_limited || pool->config.stream_cache_blocks == 0 ||
        pool->config.strategy != GN_MEMORY_BEST_FIT || region->range != GNI_RANGE_MEDIUM ||
        region->claim != NULL || !region_is_of(region, cache->heap))
        return;
    if (claim == NULL && (claim = claim_create(cache)) == NULL)
        return;
    gni_assert(claim->blocks.count == 0 || claim->blocks.heap == cache->heap);
    claim->blocks.heap = cache->heap;
    stock_level(pool, claim);
    region_adopt(region, cache->heap);
    region_move(region, &cache->heap->fit[region->range], &claim->fit);
    gni_list_push_back(&claim->regions, &region->claim_link);
    region_set_claim(region, claim);
}

size_t gni_claim_dissolve(struct gni_cache *cache)
{
    struct gni_claim *claim = cache->claim;
    gni_assert(gni_pool_is_locked(cache->pool));
    if (claim == NULL)
        return 0;
    size_t count = claim_gather(claim);
    gni_list_each (link, &claim->regions)
        region_unclaim(cache, gni_container_of(link, struct gni_region, claim_link));
    while (claim->blocks.count > 0)
        stock_move(&claim->blocks, &cache->pool->blocks);
    claim->blocks.heap = NULL;
    return count;
}

/* ---- all claims ----------------------------------------------------------------------------- */

bool gni_claim_has_regions(const struct gni_cache *cache)
{
    return cache->claim != NULL && !gni_list_is_empty(&cache->claim->regions);
}

bool gni_claims_exist(const struct gni_pool *pool)
{
    for (const struct gni_cache *cache = atomic_load(&pool->caches); cache != NULL;
         cache = cache->next)
        if (gni_claim_has_regions(cache))
            return true;
    return false;
}

/* The claim with most to spare among those that have a block that fits; of caches of the need's heap, or of others. */
static struct gni_cache *claims_richest(struct gni_pool *pool, const struct gni_need *need,
                                        bool is_own)
{
    struct gni_cache *richest = NULL;
    for (struct gni_cache *cache = atomic_load(&pool->caches); cache != NULL; cache = cache->next) {
        if (!gni_claim_has_regions(cache) || (cache->heap == need->heap) != is_own)
            continue;
        (void)claim_gather(cache->claim);
        const gn_memory_block *block = gni_fit_largest(&cache->claim->fit);
        if (block != NULL && block->nbytes >= need->nbytes &&
            (richest == NULL || cache->claim->fit.nbytes > richest->claim->fit.nbytes))
            richest = cache;
    }
    return richest;
}

bool gni_claims_reclaim(struct gni_pool *pool, const struct gni_need *need)
{
    gni_assert(gni_pool_is_locked(pool));
    gni_caches_revoke(pool, NULL);
    struct gni_cache *cache = claims_richest(pool, need, true);
    if (cache == NULL) /* what another stream has freed must be waited for */
        cache = claims_richest(pool, need, false);
    if (cache != NULL) {
        region_unclaim(cache, gni_fit_largest(&cache->claim->fit)->region);
        if (cache->heap != need->heap)
            gni_heap_close(cache->heap);
    }
    gni_caches_restore(pool);
    return cache != NULL;
}

void gni_claims_shed(struct gni_pool *pool)
{
    gni_assert(gni_pool_is_locked(pool));
    if (!gni_claims_exist(pool))
        return;
    gni_caches_revoke(pool, NULL);
    for (struct gni_cache *cache = atomic_load(&pool->caches); cache != NULL; cache = cache->next) {
        if (!gni_claim_has_regions(cache))
            continue;
        (void)claim_gather(cache->claim);
        claim_shed(cache, 0);
    }
    gni_caches_restore(pool);
}

size_t gni_claims_largest(struct gni_pool *pool)
{
    size_t largest = 0;
    gni_assert(gni_pool_is_locked(pool));
    if (!gni_claims_exist(pool))
        return 0;
    gni_caches_revoke(pool, NULL);
    for (struct gni_cache *cache = atomic_load(&pool->caches); cache != NULL; cache = cache->next) {
        if (!gni_claim_has_regions(cache))
            continue;
        (void)claim_gather(cache->claim);
        const gn_memory_block *block = gni_fit_largest(&cache->claim->fit);
        if (block != NULL && block->nbytes > largest)
            largest = block->nbytes;
    }
    gni_caches_restore(pool);
    return largest;
}
