/*
 * pool.c: the pool's slow path: what a thread does that its cache cannot do for it.
 *
 * Everything here takes the pool's lock. entrance.c has the fast path, out_of_memory.c what happens when
 * the driver must be asked, order.c the rules between streams.
 */
#include "memory/cache.h"

#include "base/checked.h"
#include "base/host.h"
#include "base/log.h"
#include "base/option.h"
#include "memory/mark.h"

#include <stdlib.h>
#include <string.h>

/* ---- counting ------------------------------------------------------------------------------- */

struct totals {
    int64_t live_bytes;
    uint64_t alloc_count, free_count, alloc_bytes, free_bytes, slow_count;
};

/* Frees before allocations, all of them, so that no block is seen freed that was not seen allocated: it
 * may be one thread's allocation and another one's free. */
static struct totals totals_read(struct gni_pool *pool)
{
    struct totals sum = {0};
    struct gni_cache *first = atomic_load_explicit(&pool->caches, memory_order_acquire);
    for (struct gni_cache *cache = first; cache != NULL; cache = cache->next) {
        sum.free_count += atomic_load_explicit(&cache->free_count, memory_order_acquire);
        sum.free_bytes += atomic_load_explicit(&cache->free_bytes, memory_order_acquire);
    }
    /* Again from the start: a cache that was made meanwhile may have the allocation. */
    first = atomic_load_explicit(&pool->caches, memory_order_acquire);
    for (struct gni_cache *cache = first; cache != NULL; cache = cache->next) {
        sum.live_bytes += atomic_load_explicit(&cache->live_bytes, memory_order_relaxed);
        sum.slow_count += atomic_load_explicit(&cache->slow_count, memory_order_relaxed);
        sum.alloc_count += atomic_load_explicit(&cache->alloc_count, memory_order_relaxed);
        sum.alloc_bytes += atomic_load_explicit(&cache->alloc_bytes, memory_order_relaxed);
    }
    return sum;
}

uint64_t gni_pool_live_bytes(struct gni_pool *pool)
{
    int64_t live = totals_read(pool).live_bytes;
    return live > 0 ? (uint64_t)live : 0;
}

static void peak_raise(_Atomic(uint64_t) *peak, uint64_t value)
{
    uint64_t before = atomic_load_explicit(peak, memory_order_relaxed);
    while (value > before && !atomic_compare_exchange_weak_explicit(
                                 peak, &before, value, memory_order_relaxed, memory_order_relaxed))
        ;
}

static void peaks_raise(struct gni_pool *pool, const struct totals *sum)
{
    if (sum->live_bytes > 0)
        peak_raise(&pool->live_peak, (uint64_t)sum->live_bytes);
    if (sum->alloc_count > sum->free_count)
        peak_raise(&pool->live_count_peak, sum->alloc_count - sum->free_count);
    if (sum->alloc_bytes > sum->free_bytes)
        peak_raise(&pool->requested_peak, sum->alloc_bytes - sum->free_bytes);
}

struct gni_peaks gni_pool_peaks_raise(struct gni_pool *pool)
{
    struct totals sum = totals_read(pool);
    peaks_raise(pool, &sum);
    return (struct gni_peaks){.live_bytes = (int64_t)atomic_load(&pool->live_peak) - sum.live_bytes,
                              .live_count = (int64_t)(atomic_load(&pool->live_count_peak) -
                                                      (sum.alloc_count - sum.free_count)),
                              .requested_bytes = (int64_t)(atomic_load(&pool->requested_peak) -
                                                           (sum.alloc_bytes - sum.free_bytes))};
}

static size_t heaps_largest(const struct gni_space *space)
{
    size_t largest = 0;
    gni_list_each (link, &space->heaps) {
        const struct gni_heap *heap = gni_container_of(link, struct gni_heap, link);
        for (int range = 0; range < GNI_RANGE_COUNT; range++) {
            const gn_memory_block *block = gni_fit_largest(&heap->fit[range]);
            if (block != NULL && block->nbytes > largest)
                largest = block->nbytes;
        }
    }
    return largest;
}

void gni_pool_statistics(struct gni_pool *pool, gn_memory_statistics *statistics)
{
    gni_pool_lock(pool);
    struct totals sum = totals_read(pool);
    peaks_raise(pool, &sum); /* of the same reading: nothing is above its peak */
    gn_memory_statistics now = pool->counts;
    now.live_bytes = sum.live_bytes > 0 ? (uint64_t)sum.live_bytes : 0;
    now.live_count = sum.alloc_count - sum.free_count;
    now.requested_bytes = sum.alloc_bytes - sum.free_bytes;
    now.live_bytes_peak = atomic_load(&pool->live_peak);
    now.live_count_peak = atomic_load(&pool->live_count_peak);
    now.requested_bytes_peak = atomic_load(&pool->requested_peak);
    now.reserved_bytes = pool->reserved_bytes;
    now.reserved_bytes_peak = pool->reserved_peak;
    now.pending_bytes = pool->pending_bytes;
    uint64_t used = now.live_bytes + now.pending_bytes;
    now.cached_bytes = now.reserved_bytes > used ? now.reserved_bytes - used : 0;
    now.alloc_count = sum.alloc_count;
    now.free_count = sum.free_count;
    now.alloc_bytes_total = sum.alloc_bytes;
    now.free_bytes_total = sum.free_bytes;
    now.stream_hit_count = sum.alloc_count - sum.slow_count;
    now.limit_bytes = pool->limit;
    now.largest_free_bytes = heaps_largest(&pool->main);
    gni_pool_unlock(pool);
    *statistics = now;
}

void gni_pool_reset_peaks(struct gni_pool *pool)
{
    gni_pool_lock(pool);
    atomic_store(&pool->live_peak, 0);
    atomic_store(&pool->live_count_peak, 0);
    atomic_store(&pool->requested_peak, 0);
    pool->reserved_peak = pool->reserved_bytes;
    gni_caches_watch(pool);
    (void)gni_pool_peaks_raise(pool);
    gni_pool_unlock(pool);
}

size_t gni_pool_classes(struct gni_pool *pool, gn_memory_class *classes, size_t capacity)
{
    gni_pool_lock(pool);
    gni_caches_revoke(pool, NULL);
    for (size_t bin = 0; bin < GNI_SIZE_BINS && bin < capacity; bin++) {
        classes[bin] = (gn_memory_class){.nbytes = gni_class_bytes((unsigned)bin)};
        for (struct gni_cache *cache = atomic_load(&pool->caches); cache != NULL;
             cache = cache->next) {
            classes[bin].alloc_count += cache->bins[bin].alloc_count;
            classes[bin].hit_count += cache->bins[bin].hit_count;
            classes[bin].cached_count += cache->bins[bin].count;
        }
    }
    gni_caches_restore(pool);
    gni_pool_unlock(pool);
    return GNI_SIZE_BINS;
}

/* ---- allocating ----------------------------------------------------------------------------- */

static void need_init(const struct gni_pool *pool, size_t nbytes, gn_stream *stream,
                      struct gni_need *need)
{
    size_t around = pool->debug & GNI_DEBUG_GUARD ? GNI_GUARD : 0;
    size_t whole = nbytes + 2 * around;
    *need = (struct gni_need){.requested = nbytes,
                              .nbytes = gni_size_round(whole),
                              .offset = around,
                              .range = gni_size_range(whole),
                              .stream = stream};
}

/* How many blocks of a small class are fetched for the thread's cache at once. */
static unsigned refill_count(size_t nbytes)
{
    return nbytes <= (16 << 10) ? 8 : nbytes <= (128 << 10) ? 4 : 1;
}

/* Fetches more blocks of the same class for the cache, from what its own heap has. */
static void cache_refill(struct gni_cache *cache, const struct gni_need *need)
{
    struct gni_pool *pool = cache->pool;
    for (unsigned i = 1; i < refill_count(need->nbytes); i++) {
        struct gni_bin *bin = &cache->bins[gni_class_up(need->nbytes >> GNI_GRAIN_SHIFT)];
        if (cache->room == 0 || bin->count >= bin->limit ||
            gni_blocks_reserve(&pool->blocks, pool->reserve_blocks + 1) != GN_OK)
            return;
        gn_memory_block *block = gni_space_take(need->heap, need);
        if (block == NULL)
            return;
        gni_cache_put(cache, block);
    }
}

/* A size that is asked for again and again earns a slot. */
static void slot_note(struct gni_cache *cache, size_t nbytes)
{
    struct gni_slot *slot = gni_cache_slot(cache, nbytes);
    if (slot->nbytes == nbytes) {
        if (slot->score < GNI_CACHE_SCORE_MOST)
            slot->score++;
        return;
    }
    if (slot->score > 0 && slot->nbytes != 0) {
        slot->score--;
        return;
    }
    while (slot->first != NULL) {
        gn_memory_block *block = slot->first;
        slot->first = block->next;
        slot->count--;
        cache->room++;
        block->next = NULL;
        gni_heap_stamp(cache->heap, block);
        gni_block_merge(block);
    }
    slot->nbytes = nbytes;
    slot->score = 1;
}

/* Takes from the thread's own cache, under the lock: it may be here for other reasons than a miss. */
static gn_memory_block *cache_take(struct gni_cache *cache, const struct gni_need *need)
{
    gn_memory_block **first, *block;
    unsigned *count;
    if (need->range <= GNI_RANGE_SMALL) {
        struct gni_bin *bin = &cache->bins[gni_class_up(need->nbytes >> GNI_GRAIN_SHIFT)];
        first = &bin->first;
        count = &bin->count;
        bin->alloc_count++;
    } else {
        slot_note(cache, need->nbytes);
        struct gni_slot *slot = gni_cache_slot(cache, need->nbytes);
        if (slot->nbytes != need->nbytes)
            return NULL;
        first = &slot->first;
        count = &slot->count;
    }
    block = *first;
    if (block == NULL)
        return NULL;
    *first = block->next;
    (*count)--;
    cache->room++;
    block->next = NULL;
    return block;
}

/* The block becomes the caller's. */
static void block_hand_out(struct gni_pool *pool, gn_memory_block *block, struct gni_need *need,
                           struct gni_cache *cache, bool is_exported)
{
    struct gni_cache *counter = cache != NULL ? cache : gni_cache_spare(pool);
    unsigned flags = is_exported ? GNI_BLOCK_EXPORTED : 0;
    if (need->heap->space->is_private || pool->debug != 0 || pool->is_marked)
        flags |= GNI_BLOCK_SLOW;
    if (pool->debug != 0)
        flags |= GNI_BLOCK_EXPORTED; /* fills of it are under way without the lock */
    if (need->heap->space->is_private)
        need->heap->space->live_count++;
    atomic_store_explicit(&block->flags, (unsigned char)flags, memory_order_relaxed);
    gni_block_set_state(block, GNI_BLOCK_LIVE);
    gni_cache_count_alloc(counter, block, need->requested);
    gni_count_add(&counter->slow_count, 1);
    if (need->is_grown)
        pool->counts.miss_count++;
    else
        pool->counts.global_hit_count++;
    if (pool->is_marked)
        gni_mark_block_add(block->address, need->requested);
}

/* With the lock: the heap that the need's stream allocates from, and the thread's cache for it. */
static gn_status need_find_heap(struct gni_pool *pool, struct gni_need *need,
                                struct gni_cache **cache)
{
    struct gni_space *space;
    GN_TRY(gni_space_of_stream(pool, need->stream, &space));
    if (space->clean == NULL)
        GN_TRY(gni_heap_create(space, 0, NULL, &space->clean));
    GN_TRY(gni_heap_get(space, need->stream, &need->heap));
    *cache = gni_cache_get(pool, need->heap);
    return GN_OK;
}

/* With the lock: finds memory for the need, from the cache down to the driver. *cache is the thread's
 * cache for the stream if that is known, or NULL. */
static gn_status need_meet(struct gni_pool *pool, struct gni_need *need, struct gni_cache **cache,
                           gn_memory_block **block)
{
    gni_pool_pending_poll(pool); /* first: heaps of foreign streams may go with it */
    if (*cache != NULL && (*cache)->heap != NULL)
        need->heap = (*cache)->heap;
    else
        GN_TRY(need_find_heap(pool, need, cache));
    gn_memory_block *found = *cache != NULL ? cache_take(*cache, need) : NULL;
    if (found == NULL) {
        GN_TRY(gni_pool_meet(pool, need, &found));
        if (*cache != NULL && need->range <= GNI_RANGE_SMALL)
            cache_refill(*cache, need);
    }
    *block = found;
    return GN_OK;
}

/* The stream can be found without the lock from now on. */
static void stream_remember(struct gni_cache *cache, gn_stream *asked, gn_stream *stream)
{
    uint64_t key = cache->heap->key;
    if (atomic_load_explicit(&stream->is_shared, memory_order_relaxed) ||
        stream->kind == GNI_STREAM_FOREIGN || stream->kind == GNI_STREAM_PER_THREAD)
        return;
    atomic_store_explicit(&stream->memory_key, key, memory_order_relaxed);
    gni_cache_remember(cache, asked, key);
}

/* One try, with the lock. */
static gn_status alloc_once(struct gni_pool *pool, struct gni_need *need, gn_stream *asked,
                            bool is_exported, gn_memory_block **block)
{
    struct gni_cache *known = gni_cache_known(pool->manager, asked), *cache = known;
    gn_memory_block *found;
    gni_pool_lock(pool);
    gn_status status = need_meet(pool, need, &cache, &found);
    if (status == GN_OK) {
        block_hand_out(pool, found, need, cache, is_exported);
        if (cache != NULL && cache != known)
            stream_remember(cache, asked, need->stream);
        *block = found;
    }
    gni_pool_unlock(pool);
    return status;
}

gn_memory_block *gni_pool_alloc_quick(struct gni_cache *cache, size_t nbytes, unsigned flags)
{
    struct gni_pool *pool = cache->pool;
    struct gni_need need = {.nbytes = gni_size_round(nbytes), .range = gni_size_range(nbytes)};
    gn_memory_block *block = NULL;
    gni_pool_lock(pool);
    need.heap = cache->heap; /* NULL: taken away since the caller looked */
    if (need.heap != NULL && pool->pending_count == 0 &&
        pool->blocks.count > pool->reserve_blocks) {
        if (need.range > GNI_RANGE_SMALL)
            slot_note(cache, need.nbytes);
        block = gni_space_take(need.heap, &need);
    }
    if (block != NULL) {
        atomic_store_explicit(&block->flags, (unsigned char)flags, memory_order_relaxed);
        gni_block_set_state(block, GNI_BLOCK_LIVE);
        gni_cache_count_alloc(cache, block, nbytes);
        gni_count_add(&cache->slow_count, 1);
        pool->counts.global_hit_count++;
        if (need.range <= GNI_RANGE_SMALL) {
            cache->bins[block->bin].alloc_count++;
            cache_refill(cache, &need);
        }
    }
    gni_pool_unlock(pool);
    return block;
}

enum {
    HANDLER_CALLS_MOST = 3,
};

bool gni_pool_handle(struct gni_pool *pool, size_t nbytes, int *calls)
{
    if ((*calls)++ >= HANDLER_CALLS_MOST)
        return false;
    gni_pool_lock(pool);
    gn_memory_handler handler = pool->handler;
    void *context = pool->handler_context;
    gni_pool_unlock(pool);
    return handler != NULL && handler(pool->manager, nbytes, context);
}

gn_status gni_pool_alloc(struct gni_pool *pool, size_t nbytes, gn_stream *asked, bool is_exported,
                         gn_memory_block **block)
{
    gn_stream *stream = asked;
    GN_TRY(gni_manager_stream(pool->manager, &stream));
    GN_TRY(pool->device->ops->check(pool->device));
    struct gni_need need;
    need_init(pool, nbytes, stream, &need);
    gn_status status = alloc_once(pool, &need, asked, is_exported, block);
    int calls = 0;
    while (status == GN_ERROR_OUT_OF_MEMORY && gni_pool_handle(pool, nbytes, &calls))
        status = alloc_once(pool, &need, asked, is_exported, block);
    if (status == GN_ERROR_OUT_OF_MEMORY)
        return gni_pool_out_of_memory(pool, nbytes);
    if (status == GN_OK && (pool->debug != 0)) {
        status = gni_debug_alloc(pool, *block, stream);
        if (status != GN_OK)
            (void)gni_pool_free(*block, NULL);
    }
    return status;
}

/* ---- freeing -------------------------------------------------------------------------------- */

/* Whether the caches keep blocks at the moment: not when much lies idle, or more than is allowed. */
static bool is_caching(struct gni_pool *pool)
{
    const gn_memory_config *config = &pool->config;
    if (config->coalescing_threshold >= 1)
        return true;
    uint64_t live = gni_pool_live_bytes(pool), reserved = pool->reserved_bytes;
    return (double)(reserved > live ? reserved - live : 0) <=
           config->coalescing_threshold * (double)reserved;
}

/* Whether a free has to look at the limits. */
static bool config_is_limited(const gn_memory_config *config)
{
    return config->cache_bytes != SIZE_MAX || config->global_cache_blocks != SIZE_MAX ||
           config->cleanup_threshold < 1 || config->coalescing_threshold < 1;
}

/* How many bytes are idle beyond what the limits allow; with the lock. */
static uint64_t limits_over(struct gni_pool *pool)
{
    const gn_memory_config *config = &pool->config;
    if (!pool->is_limited && pool->reserved_bytes <= pool->limit)
        return 0;
    uint64_t live = gni_pool_live_bytes(pool) + pool->pending_bytes;
    uint64_t idle = pool->reserved_bytes > live ? pool->reserved_bytes - live : 0;
    uint64_t over = idle > config->cache_bytes ? idle - config->cache_bytes : 0;
    if (pool->reserved_bytes > pool->limit && over < pool->reserved_bytes - pool->limit)
        over = pool->reserved_bytes - pool->limit; /* it was lowered */
    if ((double)pool->reserved_bytes > config->cleanup_threshold * (double)pool->total_bytes)
        over = idle;
    size_t count = 0;
    gni_list_each (link, &pool->main.heaps)
        for (int range = 0; range < GNI_RANGE_COUNT; range++)
            count += gni_container_of(link, struct gni_heap, link)->fit[range].count;
    if (count > config->global_cache_blocks)
        over = idle;
    return over;
}

/* Gives memory back until the limits hold, as far as that needs no waiting; with the lock. */
static void limits_keep(struct gni_pool *pool)
{
    uint64_t over = limits_over(pool);
    if (over == 0)
        return;
    (void)gni_caches_flush(pool, NULL);
    gni_list_each (link, &pool->main.heaps)
        gni_heap_close(gni_container_of(link, struct gni_heap, link));
    gni_space_poll(&pool->main);
    (void)gni_space_release(&pool->main, (size_t)over);
}

static void block_count_free(struct gni_pool *pool, gn_memory_block *block, struct gni_cache *cache)
{
    gni_cache_count_free(cache != NULL ? cache : gni_cache_spare(pool), block);
    if (pool->is_marked)
        gni_mark_block_remove(block->address);
    if (block->heap->space->is_private)
        block->heap->space->live_count--;
}

/* With the lock: a block that needs more than a place in the thread's cache. */
static struct gni_hold *block_free_slowly(struct gni_pool *pool, gn_memory_block *block)
{
    struct gni_cache *cache = gni_cache_get(pool, block->heap);
    struct gni_hold *holds = NULL;
    block_count_free(pool, block, cache);
    if (block->uses != NULL) {
        gni_heap_stamp(block->heap, block);
        holds = gni_block_wait(block);
    } else if (cache != NULL && !gni_block_has(block, GNI_BLOCK_SLOW) && is_caching(pool)) {
        gni_cache_put(cache, block);
        if (gni_thread.cache == NULL)
            gni_thread.cache = cache;
    } else {
        if (cache != NULL)
            (void)gni_cache_flush(cache); /* too much lies idle: nothing stays apart */
        gni_heap_stamp(block->heap, block);
        gni_block_release(block);
    }
    return holds;
}

gn_status gni_pool_free(gn_memory_block *block, const void *pointer)
{
    struct gni_pool *pool = block->pool;
    struct gni_cache *cache = gni_thread.cache;
    struct gni_hold *holds = NULL;
    if (pool->debug != 0)
        GN_TRY(gni_debug_free(pool, block));
    gni_pool_lock(pool);
    void *address = block->address;
    if (gni_block_state(block) != GNI_BLOCK_LIVE || (pointer != NULL && pointer != address)) {
        pool->counts.refused_count++; /* the descriptor may be another block's by now: B5 */
        gni_pool_unlock(pool);
        return gni_error(GN_ERROR_DOUBLE_FREE, "%s: %p was freed already; nothing was changed",
                         gni_device_label(pool->device).text, pointer != NULL ? pointer : address);
    }
    if (!pool->is_limited && cache != NULL && cache->heap == block->heap &&
        !gni_block_has(block, GNI_BLOCK_SLOW)) {
        gni_cache_count_free(cache, block);
        gni_cache_put(cache, block);
    } else {
        holds = block_free_slowly(pool, block);
        limits_keep(pool);
    }
    gni_pool_unlock(pool);
    gni_holds_let_go(holds);
    return GN_OK;
}

gn_status gni_pool_record_stream(gn_memory_block *block, gn_stream *stream)
{
    struct gni_pool *pool = block->pool;
    GN_CHECK_ARGUMENT(stream->device == pool->device, "the stream belongs to another device");
    gni_pool_lock(pool);
    gn_status status = gni_block_state(block) == GNI_BLOCK_LIVE
                           ? gni_block_use(block, stream)
                           : gni_error(GN_ERROR_INVALID_POINTER, "%p is not alive", block->address);
    gni_pool_unlock(pool);
    return status;
}

/* The block that an address lies in, whatever its state; with the lock. For error messages only. */
static const gn_memory_block *block_around(const struct gni_pool *pool, const char *pointer)
{
    const struct gni_page *page = gni_page_find(pointer);
    const struct gni_region *region = page != NULL ? page->region : NULL;
    if (region == NULL || region->space->pool != pool)
        return NULL;
    for (const gn_memory_block *block = region->first; block != NULL; block = block->after)
        if (pointer >= block->start && pointer < gni_block_end(block))
            return block;
    return NULL;
}

/* With the lock: was there a block at this address, whose free is remembered? */
static bool was_freed_at(const struct gni_pool *pool, const gn_memory_block *block,
                         const void *pointer)
{
    uintptr_t number = (uintptr_t)pointer;
    if (number == 0)
        return false; /* what an empty place of the history holds */
    return pool->freed[gni_hash_u64(number) & (GNI_POOL_FREED - 1)] == number ||
           (block != NULL && block->address == pointer);
}

bool gni_pool_knows(struct gni_pool *pool, const void *pointer)
{
    gni_pool_lock(pool);
    const gn_memory_block *block = block_around(pool, pointer);
    bool is_known = block != NULL || was_freed_at(pool, NULL, pointer);
    gni_pool_unlock(pool);
    return is_known;
}

gn_status gni_pool_refuse(struct gni_pool *pool, const void *pointer, bool is_free)
{
    struct gni_device_label label = gni_device_label(pool->device);
    gni_pool_lock(pool);
    pool->counts.refused_count += is_free;
    const gn_memory_block *block = block_around(pool, pointer);
    bool is_live = block != NULL && gni_block_state(block) == GNI_BLOCK_LIVE;
    bool was_freed = !is_live && was_freed_at(pool, block, pointer);
    char *address = is_live ? block->address : NULL;
    size_t nbytes = is_live ? block->requested : 0;
    gni_pool_unlock(pool);
    if (is_live)
        return gni_error(GN_ERROR_INVALID_POINTER,
                         "%s: %p is %td bytes into the block of %zu bytes at %p; free the address "
                         "that the allocation returned",
                         label.text, pointer, (const char *)pointer - address, nbytes,
                         (void *)address);
    if (was_freed)
        return gni_error(GN_ERROR_DOUBLE_FREE, "%s: %p was freed already; nothing was changed",
                         label.text, pointer);
    return gni_error(GN_ERROR_INVALID_POINTER,
                     "%s: %p was not allocated by this memory manager; nothing was changed",
                     label.text, pointer);
}

/* ---- many at once --------------------------------------------------------------------------- */

static gn_status batch_total(const struct gni_pool *pool, size_t count, const size_t *sizes,
                             size_t *total)
{
    *total = 0;
    for (size_t i = 0; i < count; i++) {
        struct gni_need need;
        if (!gni_size_is_possible(sizes[i]))
            return gni_error(GN_ERROR_OVERFLOW, "%zu bytes cannot be allocated on any device",
                             sizes[i]);
        need_init(pool, sizes[i], NULL, &need);
        if (!gni_size_add(*total, need.nbytes, total) || !gni_size_is_possible(*total))
            return gni_error(GN_ERROR_OVERFLOW, "the batch of %zu blocks has too many bytes",
                             count);
    }
    return GN_OK;
}

/* With the lock: all blocks of a batch, or none. They are found first, and handed out when all are there. */
static gn_status batch_meet(struct gni_pool *pool, size_t count, const size_t *sizes,
                            gn_stream *stream, gn_memory_block **blocks)
{
    struct gni_cache *cache = NULL; /* the same for all */
    struct gni_need need = {0};
    for (size_t done = 0; done < count; done++) {
        need_init(pool, sizes[done], stream, &need);
        gn_status status = need_meet(pool, &need, &cache, &blocks[done]);
        if (status == GN_OK) {
            blocks[done]->requested = sizes[done];
            continue;
        }
        while (done-- > 0) {
            gni_heap_stamp(blocks[done]->heap, blocks[done]);
            gni_block_release(blocks[done]);
        }
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        need.requested = sizes[i];
        block_hand_out(pool, blocks[i], &need, cache, true);
    }
    return GN_OK;
}

static gn_status batch_once(struct gni_pool *pool, size_t count, const size_t *sizes,
                            gn_stream *stream, gn_memory_block **blocks)
{
    gni_pool_lock(pool);
    gn_status status = batch_meet(pool, count, sizes, stream, blocks);
    gni_pool_unlock(pool);
    return status;
}

/* What the options want the blocks of a batch to hold; if that fails, none is allocated. */
static gn_status batch_debug(struct gni_pool *pool, size_t count, gn_stream *stream,
                             gn_memory_block **blocks)
{
    gn_status status = GN_OK;
    for (size_t i = 0; status == GN_OK && i < count; i++)
        status = gni_debug_alloc(pool, blocks[i], stream);
    for (size_t i = 0; status != GN_OK && i < count; i++)
        (void)gni_pool_free(blocks[i], NULL);
    return status;
}

gn_status gni_pool_alloc_batch(struct gni_pool *pool, size_t count, const size_t *sizes,
                               gn_stream *stream, void **pointers)
{
    size_t total;
    GN_TRY(pool->device->ops->check(pool->device));
    GN_TRY(batch_total(pool, count, sizes, &total));
    gn_memory_block **blocks = gni_host_alloc(count * sizeof *blocks);
    if (blocks == NULL)
        return gni_error_host_memory(count * sizeof *blocks);
    gn_status status = batch_once(pool, count, sizes, stream, blocks);
    int calls = 0;
    while (status == GN_ERROR_OUT_OF_MEMORY && gni_pool_handle(pool, total, &calls))
        status = batch_once(pool, count, sizes, stream, blocks);
    if (status == GN_ERROR_OUT_OF_MEMORY)
        status = gni_pool_out_of_memory(pool, total);
    if (status == GN_OK && pool->debug != 0)
        status = batch_debug(pool, count, stream, blocks);
    for (size_t i = 0; i < count && status == GN_OK; i++)
        pointers[i] = blocks[i]->address;
    gni_host_free(blocks);
    return status;
}

/* Takes the blocks of one size from the clean heap, on top of those that were taken before. */
static gn_status warm_up_take(struct gni_pool *pool, size_t nbytes, size_t count, gn_stream *stream,
                              gn_memory_block **taken)
{
    struct gni_space *space = &pool->main;
    if (space->clean == NULL)
        GN_TRY(gni_heap_create(space, 0, NULL, &space->clean));
    for (size_t i = 0; i < count; i++) {
        struct gni_need need;
        gn_memory_block *block;
        need_init(pool, nbytes, stream, &need);
        need.heap = space->clean;
        GN_TRY(gni_pool_meet(pool, &need, &block));
        block->next = *taken;
        *taken = block;
    }
    return GN_OK;
}

gn_status gni_pool_warm_up(struct gni_pool *pool, size_t count, const size_t *sizes,
                           const size_t *counts)
{
    gn_stream *stream;
    GN_TRY(pool->device->ops->check(pool->device));
    GN_TRY(gn_stream_get_default(pool->device, &stream));
    gn_memory_block *taken = NULL;
    gn_status status = GN_OK;
    size_t wanted = 0; /* the caller has checked that it is possible */
    for (size_t i = 0; i < count; i++)
        wanted += gni_size_round(sizes[i]) * counts[i];
    if (wanted > pool->total_bytes)
        return gni_pool_out_of_memory(pool, wanted);
    gni_pool_lock(pool);
    if (wanted > pool->warm_bytes)
        pool->warm_bytes = wanted;
    for (size_t i = 0; i < count && status == GN_OK; i++)
        status = warm_up_take(pool, sizes[i], counts[i], stream, &taken);
    while (taken != NULL) { /* all of them at once are there: any thread and stream finds them */
        gn_memory_block *block = taken;
        taken = block->next;
        block->next = NULL;
        block->sequence = 0;
        gni_block_merge(block);
    }
    gni_pool_unlock(pool);
    return status == GN_ERROR_OUT_OF_MEMORY ? gni_pool_out_of_memory(pool, wanted) : status;
}

/* ---- giving back ---------------------------------------------------------------------------- */

void gni_pool_collect(struct gni_pool *pool)
{
    gni_pool_lock(pool);
    gni_pool_pending_poll(pool);
    gni_list_each (link, &pool->main.heaps)
        gni_heap_close(gni_container_of(link, struct gni_heap, link));
    (void)gni_space_retire(&pool->main, NULL);
    gni_pool_unlock(pool);
}

size_t gni_pool_coalesce(struct gni_pool *pool)
{
    gni_pool_lock(pool);
    size_t before = 0, after = 0;
    size_t flushed = gni_caches_flush(pool, NULL);
    gni_list_each (link, &pool->main.heaps)
        for (int range = 0; range < GNI_RANGE_COUNT; range++)
            before += gni_container_of(link, struct gni_heap, link)->fit[range].count;
    (void)gni_space_retire(&pool->main, NULL);
    gni_list_each (link, &pool->main.heaps)
        for (int range = 0; range < GNI_RANGE_COUNT; range++)
            after += gni_container_of(link, struct gni_heap, link)->fit[range].count;
    gni_pool_unlock(pool);
    return flushed + (before > after ? before - after : 0);
}

/* With the lock: everything idle is in the clean heap, in one piece where it touches. */
static gn_status pool_settle(struct gni_pool *pool)
{
    (void)gni_caches_flush(pool, NULL);
    GN_TRY(gni_pool_synchronize(pool));
    gni_pool_unfold(pool);
    (void)gni_space_retire(&pool->main, NULL);
    return GN_OK;
}

static uint64_t idle_bytes(struct gni_pool *pool)
{
    uint64_t used = gni_pool_live_bytes(pool) + pool->pending_bytes;
    return pool->reserved_bytes > used ? pool->reserved_bytes - used : 0;
}

gn_status gni_pool_trim(struct gni_pool *pool, size_t keep_bytes, size_t *released)
{
    gni_pool_lock(pool);
    size_t given = 0;
    gn_status status = GN_OK;
    pool->warm_bytes = 0;
    if (idle_bytes(pool) + pool->pending_bytes > keep_bytes) { /* which is idle after the wait */
        status = pool_settle(pool);
        uint64_t idle = idle_bytes(pool);
        if (status == GN_OK && idle > keep_bytes)
            given = gni_space_release(&pool->main, (size_t)(idle - keep_bytes));
    }
    gni_pool_unlock(pool);
    gni_assert(gni_pool_is_valid(pool));
    *released = given;
    return status;
}

gn_status gni_pool_compact(struct gni_pool *pool, gn_memory_compaction *report)
{
    gn_memory_compaction made = {.can_fold = pool->backing == GNI_BACKING_VIRTUAL};
    gni_pool_lock(pool);
    uint64_t before = pool->reserved_bytes;
    gn_status status = pool_settle(pool);
    if (status == GN_OK) {
        (void)gni_space_release(&pool->main, SIZE_MAX);
        if (made.can_fold)
            status = gni_pool_fold(pool, false, &made);
    }
    made.released_bytes = before > pool->reserved_bytes ? before - pool->reserved_bytes : 0;
    gni_pool_unlock(pool);
    gni_assert(gni_pool_is_valid(pool));
    if (status == GN_OK)
        *report = made;
    return status;
}

void gni_pool_stream_end(struct gni_pool *pool, gn_stream *stream)
{
    uint64_t key;
    if (stream->device->ops->stream_id(stream, &key) != GN_OK)
        return;
    gni_pool_lock(pool);
    struct gni_heap *heap = gni_map_find(&pool->main.heaps_by_key, key);
    if (heap != NULL) {
        gni_caches_forget(pool, heap);
        gni_heap_bury(heap);
    }
    gni_list_each (link, &pool->private_spaces) {
        struct gni_space *space = gni_container_of(link, struct gni_space, link);
        heap = gni_map_find(&space->heaps_by_key, key);
        if (heap != NULL)
            gni_heap_bury(heap);
    }
    gni_pool_unlock(pool);
}

/* From now on each allocation asks whether the stream is being captured: the fast path must not be taken,
 * also where a thread has come to its cache by its current stream. */
void gni_pool_stream_share(struct gni_pool *pool, gn_stream *stream)
{
    uint64_t key;
    if (stream->device->ops->stream_id(stream, &key) != GN_OK)
        return;
    gni_pool_lock(pool);
    atomic_store(&stream->memory_key, 0);
    struct gni_heap *heap = gni_map_find(&pool->main.heaps_by_key, key);
    if (heap != NULL)
        gni_caches_forget(pool, heap);
    gni_pool_unlock(pool);
}

/* ---- configuration -------------------------------------------------------------------------- */

void gni_pool_get_config(struct gni_pool *pool, gn_memory_config *config)
{
    gni_pool_lock(pool);
    *config = pool->config;
    gni_pool_unlock(pool);
}

void gni_pool_configure(struct gni_pool *pool, const gn_memory_config *config)
{
    gni_pool_lock(pool);
    pool->config = *config;
    pool->is_limited = config_is_limited(config);
    pool->limit = config->memory_fraction < 1
                      ? (uint64_t)(config->memory_fraction * (double)pool->total_bytes)
                      : UINT64_MAX;
    gni_caches_resize(pool);
    if (config->strategy == GN_MEMORY_DIRECT) /* no thread finds a pool's block by itself */
        gni_list_each (link, &pool->main.heaps)
            gni_caches_forget(pool, gni_container_of(link, struct gni_heap, link));
    if (limits_over(pool) > 0 &&
        pool_settle(pool) == GN_OK) /* at once, even if that means waiting */
        (void)gni_space_release(&pool->main, (size_t)limits_over(pool));
    gni_pool_unlock(pool);
}

void gni_pool_set_handler(struct gni_pool *pool, gn_memory_handler handler, void *context)
{
    gni_pool_lock(pool);
    pool->handler = handler;
    pool->handler_context = context;
    gni_pool_unlock(pool);
}

/* ---- looking -------------------------------------------------------------------------------- */

static gn_memory_state state_public(enum gni_block_state state)
{
    switch (state) {
    case GNI_BLOCK_LIVE:
        return GN_MEMORY_LIVE;
    case GNI_BLOCK_PENDING:
        return GN_MEMORY_PENDING;
    case GNI_BLOCK_CACHED:
        return GN_MEMORY_STREAM_CACHED;
    default:
        return GN_MEMORY_GLOBAL_CACHED;
    }
}

/* Stretches of mapped memory between holes are what the caller sees as segments. */
static size_t region_list(const struct gni_region *region, gn_memory_info *infos, size_t capacity,
                          size_t count)
{
    const gn_memory_block *first = NULL, *last = NULL;
    for (const gn_memory_block *block = region->first; block != NULL; block = block->after) {
        enum gni_block_state state = gni_block_state(block);
        if (state == GNI_BLOCK_HOLE) {
            first = NULL;
            continue;
        }
        if (first == NULL) {
            first = last = block;
            while (last->after != NULL && gni_block_state(last->after) != GNI_BLOCK_HOLE)
                last = last->after;
        }
        if (count < capacity) {
            bool is_used = state == GNI_BLOCK_LIVE || state == GNI_BLOCK_PENDING;
            infos[count] =
                (gn_memory_info){.segment_id = (uint64_t)(uintptr_t)first->start >> GNI_GRAIN_SHIFT,
                                 .segment_address = first->start,
                                 .segment_bytes = (size_t)(gni_block_end(last) - first->start),
                                 .address = is_used ? block->address : block->start,
                                 .nbytes = block->nbytes,
                                 .requested = is_used ? block->requested : 0,
                                 .state = state_public(state),
                                 .stream_id = block->heap != NULL ? block->heap->key : 0,
                                 .number = is_used ? block->number : 0};
        }
        count++;
    }
    return count;
}

static size_t space_list(struct gni_space *space, gn_memory_info *infos, size_t capacity,
                         size_t count)
{
    gni_list_each (link, &space->regions)
        count =
            region_list(gni_container_of(link, struct gni_region, link), infos, capacity, count);
    return count;
}

size_t gni_pool_list(struct gni_pool *pool, gn_memory_info *infos, size_t capacity)
{
    gni_pool_lock(pool);
    gni_caches_revoke(pool, NULL);
    size_t count = space_list(&pool->main, infos, capacity, 0);
    gni_list_each (link, &pool->private_spaces)
        count = space_list(gni_container_of(link, struct gni_space, link), infos, capacity, count);
    gni_caches_restore(pool);
    gni_pool_unlock(pool);
    return count;
}

static size_t space_report_leaks(struct gni_space *space, size_t most, size_t count)
{
    struct gni_device_label label = gni_device_label(space->pool->device);
    gni_list_each (link, &space->regions) {
        struct gni_region *region = gni_container_of(link, struct gni_region, link);
        for (gn_memory_block *block = region->first; block != NULL; block = block->after) {
            if (gni_block_state(block) != GNI_BLOCK_LIVE || count++ >= most)
                continue;
            gni_log(GNI_LOG_WARNING, "leak: %s: %zu bytes at %p (allocation %llu)", label.text,
                    block->requested, block->address, (unsigned long long)block->number);
        }
    }
    return count;
}

size_t gni_pool_report_leaks(struct gni_pool *pool, size_t most)
{
    gni_pool_lock(pool);
    size_t count = space_report_leaks(&pool->main, most, 0);
    gni_list_each (link, &pool->private_spaces)
        count = space_report_leaks(gni_container_of(link, struct gni_space, link), most, count);
    gni_pool_unlock(pool);
    if (most > 0 && count > most)
        gni_log(GNI_LOG_WARNING, "leak: %s: and %zu more blocks",
                gni_device_label(pool->device).text, count - most);
    return count;
}

/* ---- beginning and end ---------------------------------------------------------------------- */

/* The counters of what was live are set to nothing: it is gone. */
static void counters_settle(struct gni_pool *pool)
{
    struct totals sum = totals_read(pool);
    struct gni_cache *spare = gni_cache_spare(pool);
    gni_count_add(&spare->free_count, sum.alloc_count - sum.free_count);
    gni_count_add(&spare->free_bytes, sum.alloc_bytes - sum.free_bytes);
    gni_count_add(&spare->live_bytes, -sum.live_bytes);
}

gn_status gni_pool_clear(struct gni_pool *pool)
{
    gni_pool_lock(pool);
    (void)gni_caches_flush(pool, NULL);
    gn_status first = pool->reserved_bytes > 0 ? gni_pool_synchronize(pool) : GN_OK;
    if (first == GN_ERROR_FORKED || first == GN_ERROR_SHUTDOWN)
        first = GN_OK;    /* there is nothing to wait for, and giving back does nothing */
    if (first != GN_OK) { /* work may still use it */
        gni_pool_unlock(pool);
        return first;
    }
    struct gni_hold *holds = gni_pool_drop_uses(pool);
    gni_pool_clear_captures(pool, &first);
    gn_status status = gni_space_clear(&pool->main);
    if (first == GN_OK)
        first = status;
    counters_settle(pool); /* no block is left, whatever the driver has taken back */
    if (gni_list_is_empty(&pool->main.regions)) {
        gni_list_each (link, &pool->main.heaps)
            gni_caches_forget(pool, gni_container_of(link, struct gni_heap, link));
        gni_space_deinit(&pool->main);
        if (gni_list_is_empty(&pool->private_spaces))
            gni_blocks_deinit(&pool->blocks);
        pool->reserve_blocks = 0;
    }
    struct gni_list *link;
    while ((link = gni_list_pop_front(&pool->events)) != NULL) {
        struct gni_mark *mark = gni_container_of(link, struct gni_mark, link);
        gn_event_destroy(mark->event);
        gni_host_free(mark);
    }
    gni_pool_unlock(pool);
    gni_holds_let_go(holds);
    gni_assert(gni_pool_is_valid(pool));
    return first;
}

void gni_pool_fork_prepare(struct gni_pool *pool)
{
    gni_lock_fork_take(&pool->lock);
    if (!pool->lock.is_passed_over) /* else this very thread is at work in it */
        gni_caches_revoke(pool, NULL);
}

/* The other threads are not in this process; and what belongs to a GPU is not to be had here. */
static void caches_fork(struct gni_pool *pool)
{
    for (struct gni_cache *cache = atomic_load(&pool->caches); cache != NULL; cache = cache->next) {
        bool is_mine = cache->thread == gni_thread_self();
        atomic_store(&cache->busy, 0);
        if (cache == pool->spare || (is_mine && pool->device->type != GN_DEVICE_CUDA))
            continue;
        if (cache->heap != NULL)
            (void)gni_cache_flush(cache);
        cache->heap = NULL;
        atomic_store(&cache->manager, NULL);
        if (!is_mine) {
            cache->thread = NULL;
            cache->next_of_thread = NULL;
        }
    }
}

void gni_pool_fork_done(struct gni_pool *pool, bool is_child)
{
    if (!pool->lock.is_passed_over) {
        if (is_child)
            caches_fork(pool);
        gni_caches_restore(pool);
    }
    gni_lock_fork_give(&pool->lock);
}

static void config_from_options(struct gni_pool *pool)
{
    pool->config = (gn_memory_config){.strategy = GN_MEMORY_BEST_FIT,
                                      .segment_bytes = (size_t)32 << 20,
                                      .cache_bytes = SIZE_MAX,
                                      .stream_cache_blocks = 4096,
                                      .global_cache_blocks = SIZE_MAX,
                                      .memory_fraction = 1,
                                      .cleanup_threshold = 1,
                                      .coalescing_threshold = 1};
    pool->debug =
        gni_option_set(GNI_OPTION_DEBUG) & (GNI_DEBUG_POISON | GNI_DEBUG_GUARD | GNI_DEBUG_SYNC);
    if (pool->device->type != GN_DEVICE_CUDA)
        return;
    pool->config.segment_bytes = (size_t)gni_option_size(GNI_OPTION_CUDA_SEGMENT_SIZE);
    if (gni_option_is_count(GNI_OPTION_CUDA_CACHE_SIZE))
        pool->config.global_cache_blocks = (size_t)gni_option_size(GNI_OPTION_CUDA_CACHE_SIZE);
    else
        pool->config.cache_bytes = (size_t)gni_option_size(GNI_OPTION_CUDA_CACHE_SIZE);
    if (pool->config.cache_bytes >= (size_t)1 << 40)
        pool->config.cache_bytes = SIZE_MAX; /* the most that can be said */
    pool->config.has_detailed_statistics = gni_option_flag(GNI_OPTION_CUDA_STATS_ENABLED);
    if (pool->holder == pool->device) /* not of the host's memory */
        pool->config.memory_fraction = gni_option_fraction(GNI_OPTION_CUDA_MEMORY_FRACTION);
    pool->is_zeroed = gni_option_flag(GNI_OPTION_CUDA_ZERO);
}

gn_status gni_pool_create(gn_memory_manager *manager, bool is_virtual, struct gni_pool **out)
{
    gn_device *device = manager->device, *holder = device;
    size_t free_bytes, total_bytes, granularity = GNI_PAGE;
    if (manager->is_pinned)
        GN_TRY(gn_device_get(GN_DEVICE_CPU, 0, &holder));
    GN_TRY(holder->ops->memory_info(holder, &free_bytes, &total_bytes));
    if (is_virtual) {
        if (device->ops->virtual_granularity == NULL || manager->is_pinned)
            return gni_error(GN_ERROR_UNSUPPORTED, "%s has no virtual memory management",
                             gni_device_label(device).text);
        GN_TRY(device->ops->virtual_granularity(device, &granularity));
        if (granularity > GNI_PAGE || GNI_PAGE % granularity != 0)
            return gni_error(GN_ERROR_UNSUPPORTED, "%s maps pages of %zu bytes",
                             gni_device_label(device).text, granularity);
    }
    struct gni_pool *pool = gni_host_alloc(sizeof *pool);
    if (pool == NULL)
        return gni_error_host_memory(sizeof *pool);
    pool->manager = manager;
    pool->device = device;
    pool->holder = holder;
    pool->backing = is_virtual           ? GNI_BACKING_VIRTUAL
                    : manager->is_pinned ? GNI_BACKING_PINNED
                                         : GNI_BACKING_DEVICE;
    pool->total_bytes = total_bytes;
    for (int range = 0; range < GNI_RANGE_COUNT; range++)
        pool->bound_shift[range] = range == GNI_RANGE_LARGE ? 6 : 4;
    gni_space_init(&pool->main, pool, false);
    gni_list_init(&pool->private_spaces);
    gni_list_init(&pool->begun);
    gni_list_init(&pool->events);
    gni_list_init(&pool->orphans);
    config_from_options(pool);
    pool->is_limited = config_is_limited(&pool->config);
    pool->is_marked = device->type == GN_DEVICE_CUDA && gni_mark_is_on();
    pool->limit = pool->config.memory_fraction < 1
                      ? (uint64_t)(pool->config.memory_fraction * (double)total_bytes)
                      : UINT64_MAX;
    gn_status status = gni_cache_spare_create(pool);
    if (status != GN_OK) {
        gni_host_free(pool);
        return status;
    }
    *out = pool;
    return GN_OK;
}

void gni_pool_destroy(struct gni_pool *pool)
{
    if (pool == NULL)
        return;
    gni_host_free(pool->spare);
    gni_host_free(pool);
}

const char *gni_pool_policy(const struct gni_pool *pool)
{
    return pool->backing == GNI_BACKING_VIRTUAL ? "virtual" : "pool";
}

uint64_t gni_pool_limit(const struct gni_pool *pool)
{
    return pool->limit;
}
