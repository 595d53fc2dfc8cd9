/*
 * pool.c: frees that the thread's cache cannot do by itself, pointers that are refused, and many allocations at once.
 *
 * Nearly everything here takes the pool's lock. memory_api.c has the fast paths, slow_path.c the allocations that leave
 * them, claim.c and depot.c what a thread of the CPU does before it comes to the lock, stream_order.c the rules between
 * streams, pool_life.c settings and giving back, and pool_view.c what can be seen.
 */
#include "memory/cache.h"

#include "base/checked.h"
#include "base/host.h"
#include "memory/history.h"
#include "memory/mark.h"
#include "memory/tile.h"

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
    gni_cache_count_free(cache != NULL ? cache : pool->spare, block);
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
    gni_assert(gni_pool_is_locked(pool));
    gni_assert(gni_block_state(block) == GNI_BLOCK_LIVE);
    block_count_free(pool, block, cache);
    if (block->uses != NULL) {
        gni_heap_stamp(block->heap, block);
        holds = gni_block_wait(block);
        gni_caches_share(
            pool); /* what is live is further below the peak of what is active than it may rise: CA5 */
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

gn_status gni_pool_take_back(gn_memory_block *block, const void *pointer, uint64_t time_ns)
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
        pool->counts.refused_count++; /* the descriptor may be another block's by now: BL5 */
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
    return gni_pool_take_back(block, pointer, time_ns);
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
    gni_assert(gni_pool_is_locked(pool));
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
    gni_assert(gni_pool_is_locked(pool));
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
        gni_need_init(pool, sizes[i], NULL, &need);
        if (!gni_size_add(*total, need.nbytes, total) || !gni_size_is_possible(*total))
            return gni_error(GN_ERROR_OVERFLOW, "the batch of %zu blocks has too many bytes",
                             count);
    }
    return GN_OK;
}

/* With the lock: all blocks of a batch, or none. They are found first, and handed out when all are there. */
static gn_status batch_satisfy(struct gni_pool *pool, size_t count, const size_t *sizes,
                               gn_stream *stream, gn_memory_block **blocks)
{
    struct gni_cache *cache = NULL; /* the same for all */
    gni_assert(gni_pool_is_locked(pool));
    struct gni_need need = {0};
    for (size_t done = 0; done < count; done++) {
        gni_need_init(pool, sizes[done], stream, &need);
        gn_status status = gni_need_satisfy(pool, &need, &cache, &blocks[done]);
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
        gni_need_hand_out(pool, blocks[i], &need, cache, GNI_BLOCK_EXPORTED);
    }
    return GN_OK;
}

static gn_status batch_once(struct gni_pool *pool, size_t count, const size_t *sizes,
                            gn_stream *stream, gn_memory_block **blocks)
{
    gni_pool_lock(pool);
    gn_status status = batch_satisfy(pool, count, sizes, stream, blocks);
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
        (void)gni_pool_take_back(blocks[i], NULL, 0);
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
    gni_assert(gni_pool_is_locked(pool));
    if (space->clean == NULL)
        GN_TRY(gni_heap_create(space, 0, NULL, &space->clean));
    for (size_t i = 0; i < count; i++) {
        struct gni_need need;
        gn_memory_block *block;
        gni_need_init(pool, nbytes, stream, &need);
        need.heap = space->clean;
        GN_TRY(gni_need_climb(pool, &need, &block));
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
