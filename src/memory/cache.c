/*
 * cache.c: making, emptying and handing on the threads' caches.
 */
#include "memory/cache.h"
#include "memory/tile.h"

#include "base/barrier.h"
#include "base/host.h"

enum {
    BIN_BYTES = 1 << 20, /* of one class that a thread keeps */
    BIN_LEAST = 4,
};

static bool has_barrier; /* membarrier(2) */

/* The calling thread's caches. */
static _Thread_local struct gni_cache *thread_caches;

static pthread_key_t thread_key;
static struct gni_once thread_once = GNI_ONCE_INIT;

/* ---- the end of a thread -------------------------------------------------------------------- */

/* Its blocks go to their heaps, and its caches to whoever comes next. */
static void thread_end(void *unused)
{
    (void)unused;
    gni_thread.cache = NULL;
    for (struct gni_cache *cache = thread_caches, *next; cache != NULL; cache = next) {
        next = cache->next_of_thread;
        gni_pool_lock(cache->pool);
        if (cache->heap != NULL) {
            if (gni_claim_has_regions(cache)) /* others may be about to return a block to it */
                gni_caches_revoke(cache->pool, cache->heap);
            (void)gni_cache_empty(cache);
            gni_caches_restore(cache->pool);
        }
        atomic_store(&cache->manager, NULL);
        cache->heap = NULL;
        cache->thread = NULL;
        cache->next_of_thread = NULL;
        gni_pool_unlock(cache->pool);
    }
    thread_caches = NULL;
}

static void thread_start(void)
{
    int failed = pthread_key_create(&thread_key, thread_end);
    gni_assert(!failed);
    (void)failed;
    has_barrier = gni_barrier_register();
    if (!has_barrier)
        (void)atomic_fetch_or(&gni_slow_reasons, GNI_REASON_EXCHANGE);
}

/* ---- peaks ---------------------------------------------------------------------------------- */

/* A cache may rise by so much above where it is. */
static void level_set(struct gni_cache *cache, const struct gni_peaks *share)
{
    int64_t live = gni_cache_live(cache);
    uint64_t asked = atomic_load_explicit(&cache->alloc_bytes, memory_order_relaxed) -
                     atomic_load_explicit(&cache->free_bytes, memory_order_relaxed);
    atomic_store_explicit(&cache->checked, live + share->live_bytes, memory_order_relaxed);
    int64_t count = gni_cache_live_count(cache) + share->live_count;
    atomic_store_explicit(&cache->checked_stock, count * GNI_STOCK_LIVE + GNI_STOCK_PLACES_MOST,
                          memory_order_relaxed);
    atomic_store_explicit(&cache->checked_requested, (int64_t)asked + share->requested_bytes,
                          memory_order_relaxed);
}

static bool is_at_work(const struct gni_pool *pool, const struct gni_cache *cache)
{
    return cache != pool->spare &&
           atomic_load_explicit(&cache->manager, memory_order_relaxed) != NULL;
}

void gni_caches_share(struct gni_pool *pool)
{
    static const struct gni_peaks nothing;
    struct gni_peaks share = gni_pool_peaks_raise(pool);
    struct gni_cache *first = atomic_load_explicit(&pool->caches, memory_order_acquire);
    int64_t count = 0;
    for (const struct gni_cache *cache = first; cache != NULL; cache = cache->next)
        count += is_at_work(pool, cache);
    count = count > 0 ? count : 1;
    share.live_bytes /= count;
    share.requested_bytes /= count;
    share.live_count /= count;
    for (struct gni_cache *cache = first; cache != NULL; cache = cache->next)
        level_set(cache, is_at_work(pool, cache) ? &share : &nothing);
}

/* ---- making --------------------------------------------------------------------------------- */

struct gni_cache *gni_cache_find(const struct gni_heap *heap)
{
    for (struct gni_cache *cache = thread_caches; cache != NULL; cache = cache->next_of_thread)
        if (cache->heap == heap)
            return cache;
    return NULL;
}

static unsigned bin_limit(unsigned bin)
{
    size_t count = BIN_BYTES / gni_class_bytes(bin);
    return count < BIN_LEAST ? BIN_LEAST : count > GNI_BIN_MOST ? GNI_BIN_MOST : (unsigned)count;
}

enum {
    WATCHED_MOST = 32,            /* blocks between two looks at how much lies idle */
    CACHE_BYTES_LEAST = 64 << 20, /* below, the threads' own caches have no room */
};

static unsigned places_most(const struct gni_pool *pool)
{
    size_t most = pool->config.stream_cache_blocks;
    if (pool->config.cache_bytes < CACHE_BYTES_LEAST || pool->config.coalescing_threshold <= 0)
        return 0;
    if (pool->config.coalescing_threshold < 1 && most > WATCHED_MOST)
        most = WATCHED_MOST;
    return most < GNI_STOCK_PLACES_MOST ? (unsigned)most : GNI_STOCK_PLACES_MOST;
}

/* Of an empty cache. */
static void places_renew(struct gni_cache *cache)
{
    gni_cache_places_add(cache, (int)places_most(cache->pool) - (int)gni_cache_places(cache));
}

static struct gni_cache *cache_create(struct gni_pool *pool)
{
    /* One that a thread left, or whose stream is gone. */
    for (struct gni_cache *cache = atomic_load(&pool->caches); cache != NULL; cache = cache->next)
        if (cache->thread == NULL && cache != pool->spare)
            return cache;
    struct gni_cache *cache = gni_host_alloc_lines(sizeof *cache);
    if (cache == NULL)
        return NULL;
    cache->pool = pool;
    for (unsigned bin = 0; bin < GNI_SIZE_BINS; bin++)
        cache->bins[bin].limit = bin_limit(bin);
    cache->next = atomic_load(&pool->caches);
    atomic_store_explicit(&pool->caches, cache, memory_order_release);
    return cache;
}

gn_status gni_cache_spare_create(struct gni_pool *pool)
{
    gni_once_run(&thread_once, thread_start);
    pool->spare = cache_create(pool);
    return pool->spare != NULL ? GN_OK : gni_error_host_memory(sizeof *pool->spare);
}

/* A cache of the thread whose stream is gone, or a new one. */
static struct gni_cache *cache_adopt(struct gni_pool *pool)
{
    for (struct gni_cache *cache = thread_caches; cache != NULL; cache = cache->next_of_thread)
        if (cache->heap == NULL && cache->pool == pool)
            return cache;
    if (pthread_setspecific(thread_key, &thread_key) != 0) /* any value but NULL */
        return NULL;
    struct gni_cache *cache = cache_create(pool);
    if (cache == NULL)
        return NULL;
    cache->thread = gni_thread_self();
    cache->next_of_thread = thread_caches;
    thread_caches = cache;
    return cache;
}

struct gni_cache *gni_cache_get(struct gni_pool *pool, struct gni_heap *heap)
{
    gni_assert(gni_pool_is_locked(pool));
    if (heap->is_foreign || heap->is_dead || heap->space->is_private || heap->key == 0 ||
        pool->debug != 0 || pool->is_marked || pool->config.stream_cache_blocks == 0 ||
        pool->config.strategy == GN_MEMORY_DIRECT)
        return NULL;
    struct gni_cache *cache = gni_cache_find(heap);
    if (cache != NULL)
        return cache;
    cache = cache_adopt(pool);
    if (cache == NULL)
        return NULL;
    cache->heap = heap;
    atomic_store(&cache->manager, pool->manager);
    places_renew(cache);
    cache->slot_limit = pool->is_limited ? 0 : GNI_CACHE_SLOT_MOST;
    cache->asked = NULL;
    cache->key = UINT64_MAX; /* nobody came here by his current stream yet */
    gni_caches_share(pool);
    return cache;
}

void gni_cache_remember(struct gni_cache *cache, gn_stream *asked, uint64_t key)
{
    gni_assert(cache->thread == gni_thread_self() && cache->heap != NULL);
    cache->asked = asked;
    cache->key = asked != NULL ? key : gni_thread.stream_epoch;
    gni_thread.cache = cache;
}

/* ---- emptying ------------------------------------------------------------------------------- */

static void block_flush(struct gni_cache *cache, gn_memory_block *block)
{
    gni_assert(gni_block_state(block) == GNI_BLOCK_CACHED && block->heap == cache->heap);
    block->next = NULL;
    gni_block_settle(block);
    gni_cache_places_add(cache, 1);
}

/* Empties a list; how many blocks it had. */
static size_t list_flush(struct gni_cache *cache, gn_memory_block **first, unsigned *count)
{
    size_t flushed = *count;
    while (*first != NULL) {
        gn_memory_block *block = *first;
        *first = block->next;
        block_flush(cache, block);
    }
    *count = 0;
    return flushed;
}

static size_t bins_flush(struct gni_cache *cache)
{
    size_t count = 0;
    for (int i = 0; i < GNI_SIZE_BINS; i++)
        count += list_flush(cache, &cache->bins[i].first, &cache->bins[i].count);
    return count;
}

void gni_cache_slot_flush(struct gni_cache *cache, struct gni_slot *slot)
{
    (void)list_flush(cache, &slot->first, &slot->count);
}

void gni_slot_change(struct gni_cache *cache, struct gni_slot *slot, size_t nbytes)
{
    gni_assert(nbytes > GNI_SIZE_SMALL_MOST);
    gni_cache_slot_flush(cache, slot);
    slot->nbytes = nbytes;
    slot->score = 1;
}

static size_t slots_flush(struct gni_cache *cache)
{
    size_t count = 0;
    for (int i = 0; i < GNI_CACHE_SLOTS; i++)
        count += list_flush(cache, &cache->slots[i].first, &cache->slots[i].count);
    return count;
}

size_t gni_cache_flush(struct gni_cache *cache)
{
    gni_assert(gni_pool_is_locked(cache->pool));
    return bins_flush(cache) + slots_flush(cache);
}

size_t gni_cache_empty(struct gni_cache *cache)
{
    size_t count = gni_cache_flush(cache); /* some of it into the claim */
    return count + gni_claim_dissolve(cache);
}

/* The batches of one heap, or of all; how many blocks. */
static size_t depots_flush(struct gni_pool *pool, const struct gni_heap *heap)
{
    size_t count = 0;
    if (!pool->has_claims)
        return 0;
    gni_list_each (link, &pool->main.heaps) {
        struct gni_heap *one = gni_container_of(link, struct gni_heap, link);
        for (unsigned class = 0; (heap == NULL || one == heap) && class < GNI_SIZE_BINS; class ++)
            count += gni_depot_flush(one, class);
    }
    return count;
}

static bool cache_matters(const struct gni_cache *cache, const struct gni_heap *heap)
{
    return cache->heap != NULL && (heap == NULL || cache->heap == heap);
}

void gni_caches_revoke(struct gni_pool *pool, const struct gni_heap *heap)
{
    bool is_any = false;
    gni_assert(gni_pool_is_locked(pool));
    for (struct gni_cache *cache = atomic_load(&pool->caches); cache != NULL; cache = cache->next) {
        if (cache_matters(cache, heap) && cache->thread != gni_thread_self()) {
            atomic_store(&cache->is_revoked, 1);
            is_any = true;
        }
    }
    if (!is_any)
        return;
    if (has_barrier)
        gni_barrier_all();
    for (struct gni_cache *cache = atomic_load(&pool->caches); cache != NULL; cache = cache->next)
        for (int looks = 0; atomic_load_explicit(&cache->is_revoked, memory_order_relaxed) != 0 &&
                            (atomic_load(&cache->live) & GNI_LIVE_BUSY) != 0;
             looks++)
            gni_thread_wait(looks);
}

void gni_caches_restore(struct gni_pool *pool)
{
    gni_assert(gni_pool_is_locked(pool));
    for (struct gni_cache *cache = atomic_load(&pool->caches); cache != NULL; cache = cache->next)
        if (atomic_load_explicit(&cache->is_revoked, memory_order_relaxed) != 0)
            atomic_store_explicit(&cache->is_revoked, 0, memory_order_release);
}

size_t gni_caches_flush(struct gni_pool *pool, const struct gni_heap *heap)
{
    size_t count = 0;
    gni_assert(gni_pool_is_locked(pool));
    gni_caches_revoke(pool, heap);
    for (struct gni_cache *cache = atomic_load(&pool->caches); cache != NULL; cache = cache->next)
        if (cache_matters(cache, heap))
            count += gni_cache_empty(cache);
    count += depots_flush(pool, heap);
    gni_caches_restore(pool);
    return count;
}

/* The bytes of the batches of one range. With `is_flushed` they go to their heaps. */
static size_t depots_bytes(struct gni_pool *pool, enum gni_range range, bool is_flushed)
{
    size_t nbytes = 0;
    if (!pool->has_claims)
        return 0;
    gni_list_each (link, &pool->main.heaps) {
        struct gni_heap *heap = gni_container_of(link, struct gni_heap, link);
        for (unsigned class = 0; class < GNI_SIZE_BINS; class ++)
            if (gni_size_range(gni_class_bytes(class)) == range)
                nbytes += gni_class_bytes(class) * (is_flushed ? gni_depot_flush(heap, class)
                                                               : gni_depot_count(heap, class));
    }
    return nbytes;
}

/* The largest blocks first: few of them give much room, and the small ones are asked for most. */
static size_t range_flush(struct gni_cache *cache, enum gni_range range, size_t least)
{
    size_t nbytes = 0;
    if (range > GNI_RANGE_SMALL) {
        (void)slots_flush(cache);
        (void)gni_claim_dissolve(cache);
        return 0;
    }
    for (int i = GNI_SIZE_BINS - 1; i >= 0 && nbytes < least; i--) {
        size_t class_bytes = gni_class_bytes((unsigned)i);
        if (gni_size_range(class_bytes) != range)
            continue;
        nbytes += class_bytes * list_flush(cache, &cache->bins[i].first, &cache->bins[i].count);
    }
    return nbytes;
}

void gni_caches_flush_range(struct gni_pool *pool, enum gni_range range, size_t least)
{
    gni_assert(gni_pool_is_locked(pool));
    gni_assert(range < GNI_RANGE_COUNT);
    gni_caches_revoke(pool, NULL);
    size_t nbytes = depots_bytes(pool, range, true);
    for (struct gni_cache *cache = atomic_load(&pool->caches); cache != NULL && nbytes < least;
         cache = cache->next)
        if (cache->heap != NULL)
            nbytes += range_flush(cache, range, least - nbytes);
    gni_caches_restore(pool);
}

static size_t cache_bytes(const struct gni_cache *cache, enum gni_range range)
{
    size_t nbytes = 0;
    if (range <= GNI_RANGE_SMALL) {
        for (unsigned i = 0; i < GNI_SIZE_BINS; i++)
            if (gni_size_range(gni_class_bytes(i)) == range)
                nbytes += cache->bins[i].count * gni_class_bytes(i);
    } else {
        for (int i = 0; i < GNI_CACHE_SLOTS; i++)
            if (gni_size_range(cache->slots[i].nbytes) == range)
                nbytes += cache->slots[i].count * cache->slots[i].nbytes;
    }
    return nbytes;
}

size_t gni_caches_bytes(struct gni_pool *pool, enum gni_range range)
{
    gni_assert(gni_pool_is_locked(pool));
    gni_caches_revoke(pool, NULL);
    size_t nbytes = depots_bytes(pool, range, false);
    for (struct gni_cache *cache = atomic_load(&pool->caches); cache != NULL; cache = cache->next)
        if (cache->heap != NULL)
            nbytes += cache_bytes(cache, range);
    gni_caches_restore(pool);
    return nbytes;
}

void gni_caches_forget(struct gni_pool *pool, const struct gni_heap *heap)
{
    gni_assert(gni_pool_is_locked(pool));
    gni_caches_revoke(pool, heap);
    for (struct gni_cache *cache = atomic_load(&pool->caches); cache != NULL; cache = cache->next) {
        if (cache->heap != heap)
            continue;
        (void)gni_cache_empty(cache);
        cache->heap = NULL;
        atomic_store(&cache->manager,
                     NULL); /* its thread finds no match, and takes it for another stream later */
    }
    (void)depots_flush(pool, heap);
    gni_caches_restore(pool);
}

void gni_caches_resize(struct gni_pool *pool)
{
    gni_assert(gni_pool_is_locked(pool));
    gni_caches_revoke(pool, NULL);
    for (struct gni_cache *cache = atomic_load(&pool->caches); cache != NULL; cache = cache->next) {
        if (cache->heap == NULL)
            continue;
        (void)gni_cache_empty(cache);
        places_renew(cache);
        cache->slot_limit = pool->is_limited ? 0 : GNI_CACHE_SLOT_MOST;
    }
    (void)depots_flush(pool, NULL);
    gni_caches_restore(pool);
}

/* ---- one block ------------------------------------------------------------------------------ */

/* Half of a full bin goes to the heap, the blocks that were freed longest ago. */
static void list_halve(struct gni_cache *cache, gn_memory_block **first, unsigned *count)
{
    unsigned keep = *count / 2;
    gn_memory_block **at = first;
    for (unsigned i = 0; i < keep; i++)
        at = &(*at)->next;
    gn_memory_block *rest = *at;
    *at = NULL;
    *count = keep;
    while (rest != NULL) {
        gn_memory_block *next = rest->next;
        block_flush(cache, rest);
        rest = next;
    }
}

void gni_cache_put(struct gni_cache *cache, gn_memory_block *block)
{
    gni_assert(gni_pool_is_locked(cache->pool));
    gni_assert(block->heap == cache->heap && block->uses == NULL);
    gni_block_set_state(block, GNI_BLOCK_CACHED);
    if (gni_cache_places(cache) == 0)
        (void)gni_cache_flush(cache);
    if (gni_cache_places(cache) == 0) { /* no room at all */
        gni_block_settle(block);
        return;
    }
    if (block->bin != GNI_BLOCK_NO_BIN) {
        struct gni_bin *bin = &cache->bins[block->bin];
        if (bin->count >= bin->limit)
            list_halve(cache, &bin->first, &bin->count);
        gni_bin_push(bin, block);
        gni_cache_places_add(cache, -1);
        return;
    }
    struct gni_slot *slot = gni_cache_slot(cache, block->nbytes);
    if (gni_cache_wants(cache, block)) {
        if (slot->count >= cache->slot_limit)
            list_halve(cache, &slot->first, &slot->count);
        gni_slot_push(cache, slot, block);
        gni_cache_places_add(cache, -1);
        return;
    }
    gni_block_settle(block);
}
