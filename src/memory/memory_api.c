/*
 * memory_api.c: allocate and free, as fast as they can be.
 *
 * The path of nearly every call: the thread's last cache is the right one, and has a block of the class,
 * or a place for it. No lock, no driver call, no hash, no search. Everything else is for slow_path.c and pool.c.
 */
#include "memory/cache.h"

#include "base/checked.h"

#define LIKELY(condition) __builtin_expect(!!(condition), 1)

/* The fast path is one function without calls, the slow one a jump to another. */
#define INLINE static inline __attribute__((always_inline))
#define OUTLINE static __attribute__((noinline))

_Atomic(unsigned) gni_slow_reasons;

INLINE unsigned reasons_now(void)
{
    return atomic_load_explicit(&gni_slow_reasons, memory_order_relaxed);
}

INLINE gn_memory_block *cache_pop(struct gni_cache *cache, size_t nbytes)
{
    gn_memory_block *block;
    if (LIKELY(nbytes <= GNI_SIZE_SMALL_MOST)) {
        unsigned class = gni_size_bin(nbytes);
        struct gni_bin *bin = &cache->bins[class];
        block = bin->first;
        if (block == NULL) {
            bin = gni_cache_larger(cache, class);
            if (bin == NULL)
                return NULL;
            block = bin->first;
        }
        (void)gni_bin_pop(bin);
    } else {
        size_t rounded = gni_size_round(nbytes);
        struct gni_slot *slot = gni_cache_slot(cache, rounded);
        block = slot->first;
        if (block == NULL || slot->nbytes != rounded)
            return NULL;
        slot->first = block->next;
        slot->count--;
    }
    return block;
}

/* A block of the thread's last cache, if that is the one that is meant; then it is in *known, too. *is_above:
 * a counter is above its level. */
INLINE gn_memory_block *fast_alloc(gn_memory_manager *manager, size_t nbytes, gn_stream *stream,
                                   unsigned flags, unsigned reasons, struct gni_cache **known,
                                   bool *is_above)
{
    struct gni_cache *cache =
        LIKELY(gni_size_is_possible(nbytes)) ? gni_cache_known(manager, stream) : NULL;
    int64_t live;
    *known = cache;
    if (!LIKELY(cache != NULL && gni_cache_enter(cache, reasons, &live)))
        return NULL;
    gn_memory_block *block = cache_pop(cache, nbytes);
    if (LIKELY(block != NULL))
        *is_above = gni_block_hand_out(cache, block, nbytes, flags, GNI_STOCK_PLACE, &live);
    gni_cache_leave(cache, live);
    return block;
}

INLINE bool cache_push(struct gni_cache *cache, gn_memory_block *block)
{
    if (gni_cache_places(cache) == 0)
        return false;
    if (block->bin != GNI_BLOCK_NO_BIN) {
        struct gni_bin *bin = &cache->bins[block->bin];
        if (bin->count >= bin->limit)
            return false;
        gni_bin_push(bin, block);
    } else {
        struct gni_slot *slot = gni_cache_slot(cache, block->nbytes);
        if (slot->nbytes != block->nbytes || slot->score < GNI_CACHE_SCORE ||
            slot->count >= cache->slot_limit)
            return false;
        gni_slot_push(cache, slot, block);
    }
    return true;
}

/* False: not freed, and nothing changed. The block is live, or its caller is wrong; it may be of another pool than the
 * cache: then its heap is another, too. `slow`: GNI_BLOCK_SLOW_BY_... With a time the free is recorded. */
INLINE bool fast_free(gn_memory_block *block, unsigned slow, unsigned reasons, uint64_t time_ns)
{
    struct gni_cache *cache = gni_thread.cache;
    int64_t live;
    if (!LIKELY(cache != NULL && gni_cache_enter(cache, reasons, &live)))
        return false;
    bool is_freed =
        LIKELY(gni_cache_can_take_back(cache, block, slow)) && LIKELY(cache_push(cache, block));
    if (is_freed)
        gni_block_take_back(cache, block, GNI_STOCK_PLACE, time_ns, &live);
    gni_cache_leave(cache, live);
    return is_freed;
}

/* ---- allocating ----------------------------------------------------------------------------- */

/* A block is the caller's: recorded where that is asked for. */
static gn_status noted_alloc(gn_memory_manager *manager, gn_memory_block *block)
{
    if (gni_history_is_on())
        gni_history_alloc(manager, block);
    return GN_OK;
}

/* After a request that neither the thread nor its stream could satisfy. */
OUTLINE gn_status far_alloc_end(gn_memory_manager *manager, size_t nbytes, gn_status status)
{
    if (status == GN_ERROR_OUT_OF_MEMORY && gni_history_is_on())
        gni_history_out_of_memory(manager, nbytes);
    gni_watch_after(manager, status);
    return status;
}

/* The thread's cache is not known. */
OUTLINE gn_status unknown_alloc(gn_memory_manager *manager, size_t nbytes, gn_stream *stream,
                                unsigned flags, gn_memory_block **block)
{
    GN_CHECK_ARGUMENT(manager != NULL, "manager must not be NULL");
    if (!gni_size_is_possible(nbytes))
        return gni_error(GN_ERROR_OVERFLOW, "%zu bytes cannot be allocated on any device", nbytes);
    if (!atomic_load_explicit(&manager->is_direct, memory_order_relaxed))
        return gni_pool_alloc(manager->pool, NULL, false, nbytes, stream, flags, block);
    GN_TRY(gni_manager_stream(manager, &stream));
    gn_status status;
    int calls = 0;
    do
        status = gni_direct_alloc(manager->direct, nbytes, stream, flags, block);
    while (status == GN_ERROR_OUT_OF_MEMORY && gni_pool_handle(manager->pool, nbytes, &calls));
    return status;
}

/* The cache had nothing, or is not known. */
INLINE gn_status next_alloc(gn_memory_manager *manager, struct gni_cache *known, size_t nbytes,
                            gn_stream *stream, unsigned flags, gn_memory_block **block)
{
    bool is_claim_empty = false;
    gn_memory_block *found = NULL;
    gn_status status = GN_OK;
    if (manager == NULL)
        known = NULL; /* a cache that is nobody's has no manager, either */
    if (known != NULL && known->pool->has_claims)
        found = gni_pool_alloc_unlocked(known, nbytes, flags, &is_claim_empty);
    if (found == NULL)
        status = known != NULL ? gni_pool_alloc(known->pool, known, is_claim_empty, nbytes, stream,
                                                flags, &found)
                               : unknown_alloc(manager, nbytes, stream, flags, &found);
    if (!LIKELY(status == GN_OK) || (manager != NULL && gni_watch_is_due(manager)))
        GN_TRY(manager != NULL ? far_alloc_end(manager, nbytes, status) : status);
    *block = found;
    return noted_alloc(manager, found);
}

OUTLINE gn_status next_alloc_pointer(gn_memory_manager *manager, size_t nbytes, gn_stream *stream,
                                     void **pointer, struct gni_cache *known)
{
    GN_CHECK_ARGUMENT(pointer != NULL, "pointer must not be NULL");
    gn_memory_block *block;
    GN_TRY(next_alloc(manager, known, nbytes, stream, GNI_BLOCK_EXPORTED, &block));
    *pointer = block->address;
    return GN_OK;
}

OUTLINE gn_status next_alloc_block(gn_memory_manager *manager, size_t nbytes, gn_stream *stream,
                                   unsigned flags, gn_memory_block **out, struct gni_cache *known)
{
    GN_CHECK_ARGUMENT(out != NULL, "block must not be NULL");
    gn_memory_block *block;
    GN_TRY(next_alloc(manager, known, nbytes, stream, flags, &block));
    *out = block;
    return GN_OK;
}

/* The end of an allocation that the cache met: nearly always nothing is left to do. */
OUTLINE gn_status finish_alloc(gn_memory_block *block, bool is_above)
{
    struct gni_pool *pool = block->pool;
    if (is_above)
        gni_caches_share(pool);
    return noted_alloc(pool->manager, block);
}

INLINE gn_status alloc_pointer(gn_memory_manager *manager, size_t nbytes, gn_stream *stream,
                               void **pointer, unsigned reasons)
{
    struct gni_cache *known = NULL;
    bool is_above = false;
    gn_memory_block *block =
        pointer != NULL
            ? fast_alloc(manager, nbytes, stream, GNI_BLOCK_EXPORTED, reasons, &known, &is_above)
            : NULL;
    if (!LIKELY(block != NULL))
        return next_alloc_pointer(manager, nbytes, stream, pointer, known);
    *pointer = block->address;
    return LIKELY(!is_above && reasons == 0) ? GN_OK : finish_alloc(block, is_above);
}

INLINE gn_status alloc_block(gn_memory_manager *manager, size_t nbytes, gn_stream *stream,
                             unsigned flags, gn_memory_block **out, unsigned reasons)
{
    struct gni_cache *known = NULL;
    bool is_above = false;
    gn_memory_block *block =
        out != NULL ? fast_alloc(manager, nbytes, stream, flags, reasons, &known, &is_above) : NULL;
    if (!LIKELY(block != NULL))
        return next_alloc_block(manager, nbytes, stream, flags, out, known);
    *out = block;
    return LIKELY(!is_above && reasons == 0) ? GN_OK : finish_alloc(block, is_above);
}

/* With a reason to leave the fast path, and the first time. */
OUTLINE gn_status checked_alloc_pointer(gn_memory_manager *manager, size_t nbytes,
                                        gn_stream *stream, void **pointer, unsigned reasons)
{
    if (manager != NULL)
        gni_pool_show(manager->pool);
    return alloc_pointer(manager, nbytes, stream, pointer, reasons);
}

OUTLINE gn_status checked_alloc_block(gn_memory_manager *manager, size_t nbytes, gn_stream *stream,
                                      unsigned flags, gn_memory_block **out, unsigned reasons)
{
    return alloc_block(manager, nbytes, stream, flags, out, reasons);
}

gn_status gn_memory_alloc(gn_memory_manager *manager, size_t nbytes, gn_stream *stream,
                          void **pointer)
{
    unsigned reasons = reasons_now();
    if (LIKELY(reasons == 0 && manager != NULL && gni_pool_is_shown(manager->pool)))
        return alloc_pointer(manager, nbytes, stream, pointer, 0);
    return checked_alloc_pointer(manager, nbytes, stream, pointer, reasons);
}

/* A block that only its handle frees. */
INLINE gn_status alloc_owned(gn_memory_manager *manager, size_t nbytes, gn_stream *stream,
                             unsigned flags, gn_memory_block **out)
{
    unsigned reasons = reasons_now();
    if (LIKELY(reasons == 0))
        return alloc_block(manager, nbytes, stream, flags, out, 0);
    return checked_alloc_block(manager, nbytes, stream, flags, out, reasons);
}

gn_status gn_memory_block_alloc(gn_memory_manager *manager, size_t nbytes, gn_stream *stream,
                                gn_memory_block **out)
{
    return alloc_owned(manager, nbytes, stream, GNI_BLOCK_OWNED, out);
}

gn_status gni_memory_alloc_tensor(gn_memory_manager *manager, size_t nbytes, gn_stream *stream,
                                  gn_memory_block **out)
{
    return alloc_owned(manager, nbytes, stream, GNI_BLOCK_OWNED | GNI_BLOCK_TENSOR, out);
}

/* ---- freeing -------------------------------------------------------------------------------- */

/* The living block of a manager at an address; NULL if it is not one of the pool's. */
INLINE gn_memory_block *block_find(const gn_memory_manager *manager, const void *pointer)
{
    gn_memory_block *block = gni_address_find(pointer);
    return LIKELY(block != NULL && block->pool == manager->pool) ? block : NULL;
}

/* Not a block of the pool. Is it the other engine's, living or not? What lives there now is newer than
 * anything that the pool remembers of an address. */
static bool is_direct(gn_memory_manager *manager, const void *pointer)
{
    size_t nbytes;
    return manager->direct != NULL &&
           (gni_direct_size(manager->direct, pointer, &nbytes) == GN_OK ||
            !gni_pool_knows(manager->pool, pointer));
}

OUTLINE gn_status other_free(gn_memory_manager *manager, void *pointer, const size_t *nbytes)
{
    if (is_direct(manager, pointer))
        return gni_direct_free(manager->direct, pointer, nbytes);
    return gni_pool_refuse(manager->pool, pointer, true);
}

OUTLINE gn_status wrong_size(struct gni_pool *pool, const gn_memory_block *block, size_t nbytes)
{
    gni_pool_lock(pool);
    pool->counts.refused_count++;
    gni_pool_unlock(pool);
    return gni_error(GN_ERROR_WRONG_SIZE,
                     "%s: the block at %p has %zu bytes, not %zu; nothing was changed",
                     gni_device_label(pool->device).text, block->address, block->requested, nbytes);
}

/* Frees a block of the pool, by its address or, with NULL, by its handle; recorded where that is asked for. */
OUTLINE gn_status checked_free(gn_memory_block *block, void *pointer, unsigned slow,
                               unsigned reasons)
{
    uint64_t now = reasons & GNI_REASON_HISTORY ? gni_time_ns() : 0;
    return fast_free(block, slow, reasons, now) ? GN_OK : gni_pool_free(block, pointer, now);
}

INLINE gn_status pool_free(gn_memory_block *block, void *pointer, unsigned slow)
{
    unsigned reasons = reasons_now();
    if (!LIKELY(reasons == 0))
        return checked_free(block, pointer, slow, reasons);
    return LIKELY(fast_free(block, slow, 0, 0)) ? GN_OK : gni_pool_free(block, pointer, 0);
}

gn_status gn_memory_free(gn_memory_manager *manager, void *pointer)
{
    GN_CHECK_ARGUMENT(manager != NULL, "manager is NULL");
    gn_memory_block *block = block_find(manager, pointer);
    if (!LIKELY(block != NULL))
        return other_free(manager, pointer, NULL);
    return pool_free(block, pointer, GNI_BLOCK_SLOW_BY_ADDRESS);
}

gn_status gn_memory_free_sized(gn_memory_manager *manager, void *pointer, size_t nbytes)
{
    GN_CHECK_ARGUMENT(manager != NULL, "manager is NULL");
    gn_memory_block *block = block_find(manager, pointer);
    if (!LIKELY(block != NULL))
        return other_free(manager, pointer, &nbytes);
    if (gni_block_state(block) == GNI_BLOCK_LIVE && block->requested != nbytes)
        return wrong_size(block->pool, block, nbytes);
    return pool_free(block, pointer, GNI_BLOCK_SLOW_BY_ADDRESS);
}

gn_status gn_memory_block_free(gn_memory_block *block)
{
    GN_CHECK_ARGUMENT(block != NULL, "block is NULL");
    if (block->pool == NULL) {
        if (gni_block_state(block) == GNI_BLOCK_UNUSED) /* BL4: of a pool, and merged since */
            return gni_error(GN_ERROR_DOUBLE_FREE, "the block was freed already");
        return gni_direct_free_block(block);
    }
    return pool_free(block, NULL, GNI_BLOCK_SLOW_BY_HANDLE);
}

/* ---- about blocks --------------------------------------------------------------------------- */

void *gn_memory_block_get_address(gn_memory_block *block)
{
    if (block->pool != NULL)
        gni_pool_show(block->pool);
    return gni_block_pin(block);
}

void *gni_block_pin(gn_memory_block *block)
{
    if (block->pool != NULL && block->pool->backing == GNI_BACKING_VIRTUAL &&
        !gni_block_has(block, GNI_BLOCK_EXPORTED)) {
        gni_pool_lock(block->pool); /* its page is not being folded */
        gni_block_add_flags(block, GNI_BLOCK_EXPORTED);
        gni_pool_unlock(block->pool);
    }
    return block->address;
}

void *gn_memory_block_peek_address(const gn_memory_block *block)
{
    return block->address;
}

size_t gn_memory_block_get_size(const gn_memory_block *block)
{
    return block->requested;
}

gn_status gn_memory_get_size(gn_memory_manager *manager, const void *pointer, size_t *nbytes)
{
    GN_CHECK_ARGUMENT(manager != NULL && nbytes != NULL, "manager and nbytes must not be NULL");
    gn_memory_block *block = block_find(manager, pointer);
    if (block != NULL && gni_block_state(block) == GNI_BLOCK_LIVE) {
        *nbytes = block->requested;
        return GN_OK;
    }
    if (is_direct(manager, pointer))
        return gni_direct_size(manager->direct, pointer, nbytes);
    return gni_pool_refuse(manager->pool, pointer, false);
}

gn_status gn_memory_record_stream(gn_memory_manager *manager, void *pointer, gn_stream *stream)
{
    GN_CHECK_ARGUMENT(manager != NULL && stream != NULL, "manager and stream must not be NULL");
    gn_memory_block *block = block_find(manager, pointer);
    if (block != NULL)
        return gni_pool_record_stream(block, stream);
    size_t nbytes; /* a free of the direct policy waits for the device */
    return gn_memory_get_size(manager, pointer, &nbytes);
}
