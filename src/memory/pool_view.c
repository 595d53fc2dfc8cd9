/*
 * pool_view.c: what can be seen of a pool: statistics, classes, blocks and leaks.
 */
#include "memory/cache.h"

#include "base/log.h"
#include "base/text.h"
#include "memory/history.h"

/* ---- counting ------------------------------------------------------------------------------- */

enum {
    LOOKS_MOST = 4, /* at a cache whose owner is at work */
};

/* What a cache has counted, of one moment if that can be had. */
static void cache_count(const struct gni_cache *cache, struct gni_totals *sum)
{
    int64_t live = gni_cache_live_count(cache), before;
    uint64_t count;
    int looks = 0;
    do {
        before = live;
        count = atomic_load_explicit(&cache->alloc_count, memory_order_acquire);
        live = gni_cache_live_count(cache);
    } while (live != before && ++looks < LOOKS_MOST);
    sum->live_count += live;
    sum->alloc_count += count;
}

/* Bytes freed before bytes allocated, all of them, so that none is seen freed that was not seen allocated: it
 * may be one thread's allocation and another one's free. */
struct gni_totals gni_pool_totals(struct gni_pool *pool)
{
    struct gni_totals sum = {0};
    struct gni_cache *first = atomic_load_explicit(&pool->caches, memory_order_acquire);
    for (struct gni_cache *cache = first; cache != NULL; cache = cache->next) {
        sum.free_bytes += atomic_load_explicit(&cache->free_bytes, memory_order_acquire);
    }
    /* Again from the start: a cache that was made meanwhile may have the allocation. */
    first = atomic_load_explicit(&pool->caches, memory_order_acquire);
    for (struct gni_cache *cache = first; cache != NULL; cache = cache->next) {
        cache_count(cache, &sum);
        sum.live_bytes += gni_cache_live(cache);
        sum.slow_count += atomic_load_explicit(&cache->slow_count, memory_order_relaxed);
        sum.alloc_bytes += atomic_load_explicit(&cache->alloc_bytes, memory_order_relaxed);
    }
    /* Of different moments: no fewer than none, no more than were made. */
    if (sum.live_count < 0)
        sum.live_count = 0;
    if ((uint64_t)sum.live_count > sum.alloc_count)
        sum.live_count = (int64_t)sum.alloc_count;
    return sum;
}

uint64_t gni_pool_live_bytes(struct gni_pool *pool)
{
    int64_t live = gni_pool_totals(pool).live_bytes;
    return live > 0 ? (uint64_t)live : 0;
}

static void peak_raise(_Atomic(uint64_t) *peak, uint64_t value)
{
    uint64_t before = atomic_load_explicit(peak, memory_order_relaxed);
    while (value > before && !atomic_compare_exchange_weak_explicit(
                                 peak, &before, value, memory_order_relaxed, memory_order_relaxed))
        ;
}

static void peaks_raise(struct gni_pool *pool, const struct gni_totals *sum)
{
    if (sum->live_bytes > 0)
        peak_raise(&pool->live_peak, (uint64_t)sum->live_bytes);
    peak_raise(&pool->live_count_peak, (uint64_t)sum->live_count);
    if (sum->alloc_bytes > sum->free_bytes)
        peak_raise(&pool->requested_peak, sum->alloc_bytes - sum->free_bytes);
    int64_t active = sum->live_bytes + (int64_t)atomic_load(&pool->pending_bytes);
    if (active > 0)
        peak_raise(&pool->active_peak, (uint64_t)active);
    peak_raise(&pool->active_count_peak,
               (uint64_t)sum->live_count + atomic_load(&pool->pending_count));
}

static int64_t smaller(int64_t one, int64_t two)
{
    return one < two ? one : two;
}

struct gni_peaks gni_pool_peaks_raise(struct gni_pool *pool)
{
    struct gni_totals sum = gni_pool_totals(pool);
    peaks_raise(pool, &sum);
    int64_t pending = (int64_t)atomic_load(&pool->pending_bytes);
    int64_t pending_count = (int64_t)atomic_load(&pool->pending_count);
    return (struct gni_peaks){
        .live_bytes = smaller((int64_t)atomic_load(&pool->live_peak),
                              (int64_t)atomic_load(&pool->active_peak) - pending) -
                      sum.live_bytes,
        .live_count = smaller((int64_t)atomic_load(&pool->live_count_peak),
                              (int64_t)atomic_load(&pool->active_count_peak) - pending_count) -
                      sum.live_count,
        .requested_bytes =
            (int64_t)(atomic_load(&pool->requested_peak) - (sum.alloc_bytes - sum.free_bytes))};
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
    struct gni_totals sum = gni_pool_totals(pool);
    peaks_raise(pool, &sum); /* of the same reading: nothing is above its peak */
    gn_memory_statistics now = pool->counts;
    now.live_bytes = sum.live_bytes > 0 ? (uint64_t)sum.live_bytes : 0;
    now.live_count = (uint64_t)sum.live_count;
    now.requested_bytes = sum.alloc_bytes - sum.free_bytes;
    now.live_bytes_peak = atomic_load(&pool->live_peak);
    now.live_count_peak = atomic_load(&pool->live_count_peak);
    now.requested_bytes_peak = atomic_load(&pool->requested_peak);
    now.reserved_bytes = pool->reserved_bytes;
    now.reserved_bytes_peak = pool->reserved_peak;
    now.pending_bytes = pool->pending_bytes;
    now.pending_count = pool->pending_count;
    now.active_bytes_peak = atomic_load(&pool->active_peak);
    now.active_count_peak = atomic_load(&pool->active_count_peak);
    uint64_t used = now.live_bytes + now.pending_bytes;
    now.cached_bytes = now.reserved_bytes > used ? now.reserved_bytes - used : 0;
    now.alloc_count = sum.alloc_count;
    now.free_count = sum.alloc_count - now.live_count;
    now.alloc_bytes_total = sum.alloc_bytes;
    now.free_bytes_total = sum.free_bytes;
    now.stream_hit_count = sum.alloc_count - sum.slow_count;
    now.limit_bytes = pool->limit;
    size_t heaps = heaps_largest(&pool->main), claims = gni_claims_largest(pool);
    now.largest_free_bytes = heaps > claims ? heaps : claims;
    gni_pool_unlock(pool);
    *statistics = now;
}

void gni_pool_reset_peaks(struct gni_pool *pool)
{
    gni_pool_lock(pool);
    uint64_t live = atomic_exchange(&pool->live_peak, 0);
    uint64_t requested = atomic_exchange(&pool->requested_peak, 0);
    pool->live_past = live > pool->live_past ? live : pool->live_past;
    pool->requested_past = requested > pool->requested_past ? requested : pool->requested_past;
    atomic_store(&pool->live_count_peak, 0);
    atomic_store(&pool->active_peak, 0);
    atomic_store(&pool->active_count_peak, 0);
    pool->reserved_peak = pool->reserved_bytes;
    pool->counts.driver_count_peak =
        pool->counts.driver_alloc_count - pool->counts.driver_free_count;
    gni_caches_share(pool);
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
            classes[bin].alloc_count += cache->bins[bin].hit_count + cache->bins[bin].miss_count;
            classes[bin].hit_count += cache->bins[bin].hit_count;
            classes[bin].cached_count += cache->bins[bin].count;
        }
        gni_list_each (link, &pool->main.heaps)
            classes[bin].cached_count +=
                gni_depot_count(gni_container_of(link, struct gni_heap, link), (unsigned)bin);
    }
    gni_caches_restore(pool);
    gni_pool_unlock(pool);
    return GNI_SIZE_BINS;
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
    gni_assert(gni_pool_is_locked(region->space->pool));
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
            uint64_t age = UINT64_MAX;
            uint32_t site = is_used ? gni_history_site(block, &age) : 0;
            infos[count] =
                (gn_memory_info){.segment_id = (uint64_t)(uintptr_t)first->start >> GNI_GRAIN_SHIFT,
                                 .segment_address = first->start,
                                 .segment_bytes = (size_t)(gni_block_end(last) - first->start),
                                 .address = is_used ? block->address : block->start,
                                 .nbytes = block->nbytes,
                                 .requested = is_used ? block->requested : 0,
                                 .state = state_public(state),
                                 .stream_id = block->heap != NULL ? block->heap->key : 0,
                                 .number = is_used ? block->number : 0,
                                 .site = site,
                                 .age_ns = age};
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
    gni_assert(gni_pool_is_locked(space->pool));
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
    gni_caches_revoke(pool, NULL);
    size_t count = space_report_leaks(&pool->main, most, 0);
    gni_list_each (link, &pool->private_spaces)
        count = space_report_leaks(gni_container_of(link, struct gni_space, link), most, count);
    gni_caches_restore(pool);
    gni_pool_unlock(pool);
    if (most > 0 && count > most)
        gni_log(GNI_LOG_WARNING, "leak: %s: and %zu more block%s",
                gni_device_label(pool->device).text, count - most, gni_plural(count - most));
    return count;
}
