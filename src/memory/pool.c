/*
 * pool.c: the pool's slow path: what a thread does that its cache cannot do for it.
 *
 * Nearly everything here takes the pool's lock. entrance.c has the fast path, claim.c and depot.c what a thread of the
 * CPU does before it comes to the lock, out_of_memory.c what happens when the driver must be asked, order.c the rules
 * between streams, pool_life.c settings and giving back, and pool_view.c what can be seen.
 */
#include "memory/cache.h"

#include "base/checked.h"
#include "base/host.h"
#include "base/log.h"
#include "base/option.h"
#include "memory/history.h"
#include "memory/mark.h"
#include "memory/tile.h"

#include <string.h>

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
        if (gni_cache_room(cache) == 0 || bin->count >= bin->limit ||
            gni_blocks_reserve(&pool->blocks, pool->reserve_blocks + 1) != GN_OK)
            return;
        gn_memory_block *block = gni_space_take(need->heap, need);
        if (block == NULL)
            return;
        gni_cache_put(cache, block);
    }
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
        bin->miss_count++;
    } else {
        gni_slot_note(cache, need->nbytes);
        struct gni_slot *slot = gni_cache_slot(cache, need->nbytes);
        if (slot->nbytes != need->nbytes || slot->first == NULL)
            return need->range == GNI_RANGE_MEDIUM ? gni_claim_take(cache, need->nbytes) : NULL;
        first = &slot->first;
        count = &slot->count;
    }
    block = *first;
    if (block == NULL)
        return NULL;
    *first = block->next;
    (*count)--;
    gni_cache_room_add(cache, 1);
    block->next = NULL;
    return block;
}

/* The block becomes the caller's. */
static void block_hand_out(struct gni_pool *pool, gn_memory_block *block, struct gni_need *need,
                           struct gni_cache *cache, unsigned flags)
{
    struct gni_cache *counter = cache != NULL ? cache : gni_cache_spare(pool);
    if (need->heap->space->is_private || pool->debug != 0 || pool->is_marked)
        flags |= GNI_BLOCK_SLOW;
    if (pool->debug != 0)
        flags |= GNI_BLOCK_EXPORTED; /* fills of it are under way without the lock */
    if (need->heap->space->is_private)
        need->heap->space->live_count++;
    gni_cache_hand_out(counter, block, need->requested, flags);
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
        if (need->range == GNI_RANGE_LARGE)
            gni_pool_trail_add(pool, need->requested);
        GN_TRY(gni_pool_meet(pool, need, &found));
        if (*cache != NULL && need->range <= GNI_RANGE_SMALL)
            cache_refill(*cache, need);
        else if (*cache != NULL)
            gni_claim_region(*cache, found->region);
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
    atomic_store_explicit(&stream->upper.memory_key, key, memory_order_relaxed);
    gni_cache_remember(cache, asked, key);
}

/* One try, with the lock. */
static gn_status alloc_once(struct gni_pool *pool, struct gni_need *need, gn_stream *asked,
                            unsigned flags, gn_memory_block **block)
{
    struct gni_cache *known = gni_cache_known(pool->manager, asked), *cache = known;
    gn_memory_block *found;
    gni_pool_lock(pool);
    gn_status status = need_meet(pool, need, &cache, &found);
    if (status == GN_OK) {
        block_hand_out(pool, found, need, cache, flags);
        if (cache != NULL && cache != known)
            stream_remember(cache, asked, need->stream);
        *block = found;
    }
    gni_pool_unlock(pool);
    return status;
}

/* The block was taken for a small class: more of it for the thread. */
static __attribute__((noinline)) void quick_refill(struct gni_cache *cache, unsigned class)
{
    size_t nbytes = gni_class_bytes(class);
    struct gni_need need = {.nbytes = nbytes, .range = gni_size_range(nbytes), .heap = cache->heap};
    cache->bins[class].miss_count++;
    cache_refill(cache, &need);
}

enum {
    UNPOLLED_MOST =
        64, /* requests between two looks at what is pending: a look costs more than they do */
};

/* With the lock: a block of the thread's own regions or of its heap; NULL if there is none. */
static inline gn_memory_block *quick_find(struct gni_cache *cache, enum gni_range range,
                                          size_t nbytes)
{
    struct gni_heap *heap = cache->heap;
    bool is_claiming = range == GNI_RANGE_MEDIUM && cache->pool->has_claims;
    gn_memory_block *block = NULL;
    if (range > GNI_RANGE_SMALL)
        gni_slot_note(cache, nbytes);
    if (is_claiming && (block = gni_claim_take(cache, nbytes)) != NULL)
        return block;
    block = gni_fit_best(&heap->fit[range], nbytes);
    if (block == NULL)
        return NULL;
    block = gni_tile_carve(block, heap, range, nbytes, 0);
    if (is_claiming)
        gni_claim_region(cache, block->region);
    return block;
}

/* Without the lock: from the thread's own regions, or a batch of the depot; NULL if there is none. */
static inline gn_memory_block *quick_take(struct gni_cache *cache, enum gni_range range,
                                          size_t nbytes, unsigned flags)
{
    if (!cache->pool->has_claims || range == GNI_RANGE_LARGE)
        return NULL;
    return range == GNI_RANGE_MEDIUM ? gni_claim_alloc(cache, nbytes, flags)
                                     : gni_depot_alloc(cache, nbytes, flags);
}

gn_memory_block *gni_pool_alloc_quick(struct gni_cache *cache, size_t nbytes, unsigned flags)
{
    struct gni_pool *pool = cache->pool;
    size_t rounded = gni_size_round(nbytes);
    enum gni_range range = gni_size_range(nbytes);
    gn_memory_block *block = quick_take(cache, range, nbytes, flags);
    if (block != NULL)
        return block;
    gni_pool_lock(pool);
    struct gni_heap *heap = cache->heap; /* NULL: taken away since the caller looked */
    bool is_poll_due = pool->pending_count != 0 && pool->unpolled_count++ >= UNPOLLED_MOST;
    if (heap != NULL && !is_poll_due && pool->blocks.count > pool->reserve_blocks &&
        pool->config.strategy == GN_MEMORY_BEST_FIT) {
        block = quick_find(cache, range, rounded);
        if (block != NULL) {
            gni_cache_hand_out(cache, block, nbytes, flags);
            gni_count_add(&cache->slow_count, 1);
            pool->counts.global_hit_count++;
            if (range <= GNI_RANGE_SMALL)
                quick_refill(cache, block->bin);
            else if (range == GNI_RANGE_LARGE)
                gni_pool_trail_add(pool, nbytes);
        }
    }
    gni_pool_unlock(pool);
    return block;
}

enum {
    HANDLER_CALLS_MOST = 3,
};

/* The pools whose handlers this thread is in, the innermost first. */
struct handling {
    const struct gni_pool *pool;
    const struct handling *outer;
};

static _Thread_local const struct handling *handling_now;

/* True inside a pool's handler. A handler that allocates is not called for what it asks for itself: that request
 * fails, and the depth of calls has an end. The handler of another pool may be called. */
static bool is_handling(const struct gni_pool *pool)
{
    const struct handling *one = handling_now;
    while (one != NULL && one->pool != pool)
        one = one->outer;
    return one != NULL;
}

bool gni_pool_handle(struct gni_pool *pool, size_t nbytes, int *calls)
{
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

/* A free that does not look at the patterns of debug.c: a block that did not get them is freed so. */
static gn_status block_take_back(gn_memory_block *block, const void *pointer, uint64_t time_ns);

gn_status gni_pool_alloc(struct gni_pool *pool, size_t nbytes, gn_stream *asked, unsigned flags,
                         gn_memory_block **block)
{
    gn_stream *stream = asked;
    GN_TRY(gni_manager_stream(pool->manager, &stream));
    GN_TRY(pool->device->ops->check(pool->device));
    struct gni_need need;
    need_init(pool, nbytes, stream, &need);
    gn_status status = alloc_once(pool, &need, asked, flags, block);
    int calls = 0;
    while (status == GN_ERROR_OUT_OF_MEMORY && gni_pool_handle(pool, nbytes, &calls))
        status = alloc_once(pool, &need, asked, flags, block);
    if (status == GN_ERROR_OUT_OF_MEMORY)
        return gni_pool_out_of_memory(pool, nbytes);
    if (status == GN_OK && (pool->debug != 0)) {
        status = gni_debug_alloc(pool, *block, stream);
        if (status != GN_OK)
            (void)block_take_back(*block, NULL, 0);
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
        gni_caches_share(
            pool); /* what is live is further below the peak of what is active than it may rise: K5 */
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

static __attribute__((noinline)) gn_status error_freed(struct gni_pool *pool, const void *pointer)
{
    return gni_error(GN_ERROR_DOUBLE_FREE, "%s: %p was freed already; nothing was changed",
                     gni_device_label(pool->device).text, pointer);
}

static __attribute__((noinline)) gn_status error_owned(struct gni_pool *pool,
                                                       const gn_memory_block *block)
{
    const char *owner = gni_block_owner(block);
    gni_pool_lock(pool);
    pool->counts.refused_count++;
    gni_pool_unlock(pool);
    return gni_error(GN_ERROR_INVALID_POINTER, GNI_OWNED_TEXT, gni_device_label(pool->device).text,
                     block->requested, block->address, owner);
}

static gn_status block_take_back(gn_memory_block *block, const void *pointer, uint64_t time_ns)
{
    struct gni_pool *pool = block->pool;
    struct gni_cache *cache = gni_thread.cache;
    struct gni_hold *holds = NULL;
    if (pool->has_claims && cache != NULL && cache->pool == pool &&
        (block->bin == GNI_BLOCK_NO_BIN ? gni_claim_free(cache, block, pointer, time_ns)
                                        : gni_depot_free(cache, block, pointer, time_ns)))
        return GN_OK;
    gni_pool_lock(pool);
    void *address = block->address;
    if (gni_block_state(block) != GNI_BLOCK_LIVE || (pointer != NULL && pointer != address) ||
        gni_block_is_owned(block, pointer)) {
        pool->counts.refused_count++; /* the descriptor may be another block's by now: B5 */
        gni_pool_unlock(pool);
        return error_freed(pool, pointer != NULL ? pointer : address);
    }
    if (time_ns != 0)
        gni_history_free(pool->manager, block, time_ns);
    if (!pool->is_limited && cache != NULL &&
        gni_cache_can_take_back(cache, block, GNI_BLOCK_SLOW_BY_HANDLE)) {
        gni_cache_count_free(cache, block);
        if (block->bin == GNI_BLOCK_NO_BIN && !gni_cache_wants(cache, block)) {
            gni_block_settle(block);
        } else {
            gni_cache_put(cache, block);
        }
    } else {
        holds = block_free_slowly(pool, block);
        gni_pool_limits_keep(pool);
    }
    gni_pool_unlock(pool);
    if (holds != NULL)
        gni_holds_let_go(holds);
    return GN_OK;
}

gn_status gni_pool_free(gn_memory_block *block, const void *pointer, uint64_t time_ns)
{
    struct gni_pool *pool = block->pool;
    if (gni_block_is_owned(block, pointer))
        return error_owned(pool, block);
    if (pool->debug != 0)
        GN_TRY(gni_debug_free(pool, block));
    return block_take_back(block, pointer, time_ns);
}

gn_status gni_pool_record_stream(gn_memory_block *block, gn_stream *stream)
{
    struct gni_pool *pool = block->pool;
    GN_TRY(gni_stream_check(stream, pool->device));
    gni_pool_lock(pool);
    gn_status status = gni_block_state(block) == GNI_BLOCK_LIVE
                           ? gni_block_use(block, stream)
                           : gni_error(GN_ERROR_INVALID_POINTER, "%p is not alive", block->address);
    gni_pool_unlock(pool);
    return status;
}

/* With the lock, and the caches, whose claims change the blocks of their regions without it. */
static void claims_hold(struct gni_pool *pool)
{
    gni_pool_lock(pool);
    if (gni_claims_exist(pool))
        gni_caches_revoke(pool, NULL);
}

static void claims_let_go(struct gni_pool *pool)
{
    gni_caches_restore(pool);
    gni_pool_unlock(pool);
}

/* The block that an address lies in, whatever its state; with the lock and the caches. For error messages only. */
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

static bool is_among(const struct gni_freed *freed, const void *pointer)
{
    for (size_t i = 0; i < GNI_POOL_FREED && i < freed->count; i++)
        if (freed->addresses[i] == (uintptr_t)pointer)
            return true;
    return false;
}

/* With the lock, and the caches: was there a block at this address, whose free is remembered? */
static bool was_freed_at(const struct gni_pool *pool, const gn_memory_block *block,
                         const void *pointer)
{
    if (block != NULL && block->address == pointer)
        return true;
    if (is_among(&pool->freed, pointer))
        return true;
    for (const struct gni_cache *cache = atomic_load(&pool->caches); cache != NULL;
         cache = cache->next)
        if (cache->claim != NULL && is_among(&cache->claim->freed, pointer))
            return true;
    return false;
}

bool gni_pool_knows(struct gni_pool *pool, const void *pointer)
{
    claims_hold(pool);
    const gn_memory_block *block = block_around(pool, pointer);
    bool is_known = block != NULL || was_freed_at(pool, NULL, pointer);
    claims_let_go(pool);
    return is_known;
}

gn_status gni_pool_refuse(struct gni_pool *pool, const void *pointer, bool is_free)
{
    struct gni_device_label label = gni_device_label(pool->device);
    claims_hold(pool);
    pool->counts.refused_count += is_free;
    const gn_memory_block *block = block_around(pool, pointer);
    bool is_live = block != NULL && gni_block_state(block) == GNI_BLOCK_LIVE;
    const char *owner =
        is_free && is_live && gni_block_has(block, GNI_BLOCK_OWNED) ? gni_block_owner(block) : NULL;
    bool was_freed = !is_live && was_freed_at(pool, block, pointer);
    char *address = is_live ? block->address : NULL;
    size_t nbytes = is_live ? block->requested : 0;
    claims_let_go(pool);
    if (owner != NULL)
        return gni_error(GN_ERROR_INVALID_POINTER, GNI_OWNED_TEXT, label.text, nbytes,
                         (void *)address, owner);
    if (is_live)
        return gni_error(GN_ERROR_INVALID_POINTER,
                         "%s: %p is %td bytes into the block of %zu bytes at %p; free the address "
                         "that the allocation returned",
                         label.text, pointer, (const char *)pointer - address, nbytes,
                         (void *)address);
    if (was_freed)
        return error_freed(pool, pointer);
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
        block_hand_out(pool, blocks[i], &need, cache, GNI_BLOCK_EXPORTED);
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
        (void)block_take_back(blocks[i], NULL, 0);
    return status;
}

gn_status gni_pool_alloc_batch(struct gni_pool *pool, size_t count, const size_t *sizes,
                               gn_stream *stream, void **pointers)
{
    size_t total;
    gni_pool_show(pool);
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
    for (size_t i = 0; i < count && status == GN_OK; i++) {
        pointers[i] = blocks[i]->address;
        if (gni_history_is_on())
            gni_history_alloc(pool->manager, blocks[i]);
    }
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
        (void)gni_tile_merge(block);
    }
    gni_pool_unlock(pool);
    return status == GN_ERROR_OUT_OF_MEMORY ? gni_pool_out_of_memory(pool, wanted) : status;
}
