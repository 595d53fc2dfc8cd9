/*
 * depot.c: batches of small blocks that threads pass to each other: depot.h.
 */
#include "memory/cache.h"

#include "memory/tile.h"

/* The older half of a bin goes to the depot; false if there is no place. */
static bool batch_put(struct gni_cache *cache, unsigned class)
{
    _Atomic(gn_memory_block *) *place = cache->heap->depot.places[class], *end;
    gni_assert(cache->bins[class].count >= 2);
    for (end = place + GNI_DEPOT_PLACES; place < end; place++)
        if (atomic_load_explicit(place, memory_order_relaxed) == NULL)
            break;
    if (place == end)
        return false;
    struct gni_bin *bin = &cache->bins[class];
    unsigned keep = bin->count - bin->count / 2;
    gn_memory_block **at = &bin->first, *none = NULL;
    for (unsigned i = 0; i < keep; i++)
        at = &(*at)->next;
    gn_memory_block *first = *at;
    first->batch_count = bin->count - keep;
    if (!atomic_compare_exchange_strong_explicit(place, &none, first, memory_order_release,
                                                 memory_order_relaxed))
        return false; /* somebody else's is there now: the next free tries again */
    *at = NULL;
    gni_cache_places_add(cache, (int)(bin->count - keep));
    bin->count = keep;
    return true;
}

/* A batch of the depot fills an empty bin; false if there is none. */
static bool batch_take(struct gni_cache *cache, unsigned class)
{
    struct gni_bin *bin = &cache->bins[class];
    if (bin->first != NULL || gni_cache_places(cache) < bin->limit)
        return false;
    for (int i = 0; i < GNI_DEPOT_PLACES; i++) {
        _Atomic(gn_memory_block *) *place = &cache->heap->depot.places[class][i];
        gn_memory_block *first = NULL;
        if (atomic_load_explicit(place, memory_order_relaxed) != NULL)
            first = atomic_exchange_explicit(place, NULL, memory_order_acquire);
        if (first != NULL) {
            bin->first = first;
            bin->count = first->batch_count;
            gni_cache_places_add(cache, -(int)bin->count);
            return true;
        }
    }
    return false;
}

gn_memory_block *gni_depot_alloc(struct gni_cache *cache, size_t nbytes, unsigned flags)
{
    unsigned class = gni_size_bin(nbytes);
    bool is_above = false;
    int64_t live;
    gni_assert(cache->thread == gni_thread_self());
    if (!gni_cache_enter(cache, atomic_load_explicit(&gni_slow_reasons, memory_order_relaxed),
                         &live))
        return NULL;
    gn_memory_block *block = NULL;
    if (cache->heap != NULL && batch_take(cache, class)) {
        block = gni_bin_pop(&cache->bins[class]);
        is_above = gni_block_hand_out(cache, block, nbytes, flags, GNI_STOCK_PLACE, &live);
    }
    gni_cache_leave(cache, live);
    if (is_above)
        gni_caches_share(cache->pool);
    return block;
}

bool gni_depot_free(struct gni_cache *cache, gn_memory_block *block, const void *pointer,
                    uint64_t time_ns)
{
    unsigned class = block->bin;
    bool is_freed = false;
    int64_t live;
    gni_assert(cache->thread == gni_thread_self());
    if (!gni_cache_enter(cache, atomic_load_explicit(&gni_slow_reasons, memory_order_relaxed),
                         &live))
        return false;
    if (class < GNI_SIZE_BINS && gni_cache_can_free(cache, block, pointer)) {
        struct gni_bin *bin = &cache->bins[class];
        is_freed = cache->slot_limit > 0 && bin->count >= bin->limit && batch_put(cache, class);
        if (is_freed) {
            gni_bin_push(bin, block);
            gni_block_take_back(cache, block, GNI_STOCK_PLACE, time_ns, &live);
        }
    }
    gni_cache_leave(cache, live);
    return is_freed;
}

size_t gni_depot_count(const struct gni_heap *heap, unsigned class)
{
    size_t count = 0;
    gni_assert(class < GNI_SIZE_BINS);
    for (int i = 0; i < GNI_DEPOT_PLACES; i++) {
        const gn_memory_block *first = atomic_load(&heap->depot.places[class][i]);
        count += first != NULL ? first->batch_count : 0;
    }
    return count;
}

size_t gni_depot_flush(struct gni_heap *heap, unsigned class)
{
    size_t count = 0;
    gni_assert(gni_pool_is_locked(heap->space->pool));
    for (int i = 0; i < GNI_DEPOT_PLACES; i++) {
        gn_memory_block *block = atomic_exchange(&heap->depot.places[class][i], NULL);
        for (gn_memory_block *next; block != NULL; block = next, count++) {
            next = block->next;
            block->next = NULL;
            gni_block_settle(block);
        }
    }
    return count;
}
