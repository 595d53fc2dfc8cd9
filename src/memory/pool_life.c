/*
 * pool_life.c: a pool from its making to its end: settings and limits, giving memory back, streams that end,
 * forks.
 */
#include "memory/cache.h"

#include "base/host.h"
#include "base/option.h"
#include "memory/bound.h"
#include "memory/mark.h"

#include <string.h>

/* ---- limits --------------------------------------------------------------------------------- */

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
    gni_assert(gni_pool_is_locked(pool));
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
void gni_pool_limits_keep(struct gni_pool *pool)
{
    uint64_t over = limits_over(pool);
    gni_assert(gni_pool_is_locked(pool));
    if (over == 0)
        return;
    (void)gni_caches_flush(pool, NULL);
    gni_list_each (link, &pool->main.heaps)
        gni_heap_close(gni_container_of(link, struct gni_heap, link));
    gni_space_poll(&pool->main);
    (void)gni_space_release(&pool->main, (size_t)over);
}

/* ---- giving back ---------------------------------------------------------------------------- */

void gni_pool_collect(struct gni_pool *pool)
{
    gni_pool_lock(pool);
    gni_pool_pending_poll(pool);
    gni_list_each (link, &pool->main.heaps)
        gni_heap_close(gni_container_of(link, struct gni_heap, link));
    (void)gni_space_retire(&pool->main, NULL, GNI_RANGES_ALL);
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
    (void)gni_space_retire(&pool->main, NULL, GNI_RANGES_ALL);
    gni_list_each (link, &pool->main.heaps)
        for (int range = 0; range < GNI_RANGE_COUNT; range++)
            after += gni_container_of(link, struct gni_heap, link)->fit[range].count;
    gni_pool_unlock(pool);
    return flushed + (before > after ? before - after : 0);
}

/* With the lock: everything idle is in the clean heap, in one piece where it touches. */
static gn_status pool_settle(struct gni_pool *pool)
{
    gni_assert(gni_pool_is_locked(pool));
    (void)gni_caches_flush(pool, NULL);
    GN_TRY(gni_pool_synchronize(pool));
    gni_pool_unfold(pool);
    (void)gni_space_retire(&pool->main, NULL, GNI_RANGES_ALL);
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
    pool->warm_bytes = pool->live_past = pool->requested_past = 0;
    gni_bound_reset(pool);
    uint64_t before = pool->reserved_bytes;
    gni_pool_sweep_captures(pool);
    given = (size_t)(before - pool->reserved_bytes);
    if (idle_bytes(pool) + pool->pending_bytes > keep_bytes) { /* which is idle after the wait */
        status = pool_settle(pool);
        uint64_t idle = idle_bytes(pool);
        if (status == GN_OK && idle > keep_bytes)
            given += gni_space_release(&pool->main, (size_t)(idle - keep_bytes));
    }
    if (pool->reserved_bytes == 0)
        pool->is_tight = false;
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
            status = gni_pool_squeeze(pool, false, 0, &made);
    }
    made.released_bytes = before > pool->reserved_bytes ? before - pool->reserved_bytes : 0;
    gni_pool_unlock(pool);
    gni_assert(gni_pool_is_valid(pool));
    if (status == GN_OK)
        *report = made;
    return status;
}

void gni_pool_stream_leave(struct gni_pool *pool, gn_stream *stream)
{
    uint64_t key;
    if (stream->device->ops->stream_id(stream, &key) != GN_OK)
        return;
    gni_pool_lock(pool);
    struct gni_heap *heap = gni_map_find(&pool->main.heaps_by_key, key);
    struct gni_hold *holds = heap != NULL ? gni_heap_leave(heap) : NULL;
    gni_pool_unlock(pool);
    gni_holds_let_go(holds);
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
        gni_space_tidy(&pool->main);
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
    atomic_store(&stream->upper.memory_key, 0);
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

/* ---- beginning and end ---------------------------------------------------------------------- */

/* The counters of what was live are set to nothing: it is gone. */
static void counters_settle(struct gni_pool *pool)
{
    struct gni_totals sum = gni_pool_totals(pool);
    struct gni_cache *spare = pool->spare;
    (void)gni_cache_stock_add(spare, -(uint64_t)sum.live_count * GNI_STOCK_LIVE);
    gni_count_add(&spare->free_bytes, sum.alloc_bytes - sum.free_bytes);
    gni_count_add(&spare->live, -sum.live_bytes);
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
    status = gni_scratch_close(pool);
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
    gni_biased_lock_fork_take(&pool->lock);
    if (!pool->lock.is_passed_over) /* else this very thread is at work in it */
        gni_caches_revoke(pool, NULL);
}

/* The other threads are not in this process; and what belongs to a GPU is not to be had here. */
static void caches_fork(struct gni_pool *pool)
{
    for (struct gni_cache *cache = atomic_load(&pool->caches); cache != NULL; cache = cache->next) {
        bool is_mine = cache->thread == gni_thread_self();
        atomic_store(&cache->live, gni_cache_live(cache)); /* not busy */
        if (cache == pool->spare || (is_mine && !pool->device->ops->is_lost_in_fork))
            continue;
        if (cache->heap != NULL)
            (void)gni_cache_empty(cache);
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
    gni_assert(gni_pool_is_locked(pool));
    if (!pool->lock.is_passed_over) {
        if (is_child)
            caches_fork(pool);
        gni_caches_restore(pool);
    }
    gni_biased_lock_fork_give(&pool->lock, is_child);
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
    if (!pool->device->ops->has_options)
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
        GN_TRY(gni_device_get_host(&holder));
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
    gni_bound_reset(pool);
    gni_space_init(&pool->main, pool, false);
    gni_list_init(&pool->private_spaces);
    gni_list_init(&pool->begun);
    gni_list_init(&pool->events);
    gni_list_init(&pool->orphans);
    gni_list_init(&pool->scratch_pieces);
    config_from_options(pool);
    pool->is_limited = config_is_limited(&pool->config);
    pool->has_claims = device->ops->has_claims && pool->backing == GNI_BACKING_DEVICE;
    pool->is_marked = device->type == GN_DEVICE_CUDA && gni_mark_is_on(); /* of CUDA's sanitizer */
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
