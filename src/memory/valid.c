/*
 * valid.c: walks everything that a pool knows, and says whether the invariants hold.
 *
 * For asserts of debug builds, and for tests: it looks at every block, every entry of the address index and
 * every page, and costs accordingly. What it finds first is printed with the condition that does not hold.
 *
 * Beyond PO1 to PO4 of pool.h, BL1 and BL2 of block.h, CA3 and CA4 of cache.h, CL1 to CL6 of claim.h and DE1
 * of depot.h:
 *   VA1  the living bytes of the pages that share one piece of memory do not overlap;
 *   VA2  a living block on a folded page is SLOW: its free looks for the fold. Nothing is free or cached
 *       there;
 *   VA3  reserve_blocks is 2 for each folded page, and the stock of descriptors has one for each border of a
 *       folded page that lies inside a block, so that freeing never fails;
 *   VA4  what the counters say of live and pending bytes is what the tiles say.
 *
 * Threads: takes the pool's lock, and the caches from their threads. Allocates nothing.
 */
#include "memory/cache.h"

#include "base/log.h"

#include <string.h>

enum {
    PAGE_GRAINS = GNI_PAGE / GNI_GRAIN,
};

/* What the tiles add up to. */
struct walk {
    struct gni_pool *pool;
    uint64_t reserved_bytes;
    uint64_t live_bytes;
    uint64_t pending_bytes;
    uint64_t
        used_bytes; /* of both, without what was rounded up: that may lie under others' bytes */
    size_t pending_count;
    size_t cached_count;
    size_t folded_pages;
    size_t folded_borders; /* inside living blocks */
    /* of one space */
    size_t free_count[GNI_RANGE_COUNT];
    size_t hole_count[GNI_RANGE_COUNT];
    size_t mapped_bytes[GNI_RANGE_COUNT];
    size_t live_count;
};

static bool walk_fail(const char *condition, int line)
{
    gni_log(GNI_LOG_ERROR, "a pool is not valid: valid.c:%d: %s", line, condition);
    return false;
}

#define HOLDS(condition)                            \
    do {                                            \
        if (!(condition))                           \
            return walk_fail(#condition, __LINE__); \
    } while (0)

static bool is_indexed(enum gni_block_state state)
{
    return state == GNI_BLOCK_LIVE || state == GNI_BLOCK_CACHED || state == GNI_BLOCK_PENDING;
}

static bool is_used(enum gni_block_state state)
{
    return state == GNI_BLOCK_LIVE || state == GNI_BLOCK_PENDING;
}

/* The memory behind an address of a region, or NULL. */
static struct gni_mapping *mapping_at(const struct gni_region *region, const char *address)
{
    const struct gni_page *page = gni_page_find(address);
    return page != NULL && page->region == region ? page->mapping : NULL;
}

/* ---- indexes of free blocks ----------------------------------------------------------------- */

/* A block of an index is a tile: its neighbours know it. */
static bool block_is_tile(const gn_memory_block *block)
{
    return (block->before != NULL ? block->before->after : block->region->first) == block &&
           (block->after == NULL || block->after->before == block);
}

/* The lists, the bitmap and the sums agree; what is in it has this state, heap and range, and is of regions of this
 * claim, or of nobody's. */
static bool fit_is_valid(const struct gni_fit *fit, const struct gni_space *space,
                         const struct gni_heap *heap, int range, const struct gni_claim *claim)
{
    size_t count = 0, nbytes = 0;
    enum gni_block_state state = heap != NULL ? GNI_BLOCK_FREE : GNI_BLOCK_HOLE;
    for (unsigned class = 0; class < GNI_SIZE_CLASSES; class ++) {
        HOLDS(gni_bitmap_test(fit->bitmap, class) == (fit->lists[class] != NULL));
        const gn_memory_block *prev = NULL;
        for (const gn_memory_block *block = fit->lists[class]; block != NULL;
             prev = block, block = block->next) {
            HOLDS(block->prev == prev);
            HOLDS(gni_class_down(block->nbytes >> GNI_GRAIN_SHIFT) == class);
            HOLDS(gni_block_state(block) == state);
            HOLDS(block->heap == heap && block->range == range);
            HOLDS(block->region->space == space && block_is_tile(block));
            HOLDS(block->region->claim == claim); /* PO2 and CL2 */
            count++;
            nbytes += block->nbytes;
        }
    }
    HOLDS(fit->count == count && fit->nbytes == nbytes);
    return true;
}

/* ---- tiles ---------------------------------------------------------------------------------- */

/* BL1: what touches is merged. Blocked bytes are joined within their page only. */
static bool is_merged(const gn_memory_block *block, const gn_memory_block *after)
{
    enum gni_block_state state = gni_block_state(block);
    if (state != gni_block_state(after))
        return true;
    if (state == GNI_BLOCK_FREE)
        return block->heap != after->heap;
    if (state == GNI_BLOCK_BLOCKED)
        return (uintptr_t)after->start % GNI_PAGE == 0;
    return state != GNI_BLOCK_HOLE;
}

static bool block_is_valid(const struct walk *walk, const struct gni_region *region,
                           gn_memory_block *block)
{
    enum gni_block_state state = gni_block_state(block);
    bool has_heap = is_indexed(state) || state == GNI_BLOCK_FREE;
    HOLDS(state != GNI_BLOCK_UNUSED && state <= GNI_BLOCK_HOLE);
    HOLDS(block->region == region && block->pool == walk->pool && block->range == region->range);
    HOLDS(block->nbytes > 0 && block->nbytes % GNI_GRAIN == 0);
    HOLDS(has_heap == (block->heap != NULL));
    HOLDS(!has_heap || block->heap->space == region->space);
    if (is_indexed(state)) { /* BL2 */
        HOLDS((char *)block->address >= block->start &&
              (char *)block->address < gni_block_end(block));
        HOLDS(gni_address_find(block->address) == block);
        HOLDS((block->bin != GNI_BLOCK_NO_BIN) == (region->range <= GNI_RANGE_SMALL));
        HOLDS(block->bin == GNI_BLOCK_NO_BIN || gni_class_bytes(block->bin) == block->nbytes);
        HOLDS(state == GNI_BLOCK_CACHED || block->requested <= block->nbytes);
        HOLDS(state != GNI_BLOCK_PENDING || block->wait_count > 0);
    }
    HOLDS(state == GNI_BLOCK_LIVE || state == GNI_BLOCK_PENDING || block->uses == NULL);
    HOLDS(state != GNI_BLOCK_FREE || block->sequence <= block->heap->open);
    return true;
}

static void block_count(struct walk *walk, const gn_memory_block *block)
{
    if (is_used(gni_block_state(block)))
        walk->used_bytes += (uint64_t)(gni_block_used_end(block) - block->start);
    switch (gni_block_state(block)) {
    case GNI_BLOCK_LIVE:
        walk->live_count++;
        walk->live_bytes += block->nbytes;
        break;
    case GNI_BLOCK_PENDING:
        walk->pending_count++;
        walk->pending_bytes += block->nbytes;
        break;
    case GNI_BLOCK_CACHED:
        walk->cached_count++;
        break;
    case GNI_BLOCK_FREE:
        walk->free_count[block->range]++;
        break;
    case GNI_BLOCK_HOLE:
        walk->hole_count[block->range]++;
        break;
    case GNI_BLOCK_BLOCKED:
    case GNI_BLOCK_UNUSED:
        break;
    }
}

/* PO1. */
static bool tiles_are_valid(struct walk *walk, const struct gni_region *region)
{
    char *at = region->start;
    const gn_memory_block *before = NULL;
    for (gn_memory_block *block = region->first; block != NULL; block = block->after) {
        HOLDS(block->before == before && block->start == at);
        if (!block_is_valid(walk, region, block))
            return false;
        HOLDS(before == NULL || is_merged(before, block));
        block_count(walk, block);
        at = gni_block_end(block);
        before = block;
    }
    HOLDS(at == region->start + region->nbytes);
    return true;
}

/* BL2, the other way round: the index has no entry that is not a block's. */
static bool entries_are_valid(const struct gni_region *region)
{
    size_t entries = 0, blocks = 0;
    for (char *at = region->start; at < region->start + region->nbytes; at += GNI_PAGE) {
        const struct gni_page *page = gni_page_find(at);
        if (page == NULL || page->region != region)
            continue;
        HOLDS(atomic_load(&page->claim) == region->claim);
        gni_table table = atomic_load(&page->table);
        HOLDS(table != 0);
        size_t count = (size_t)1 << (GNI_PAGE_SHIFT - gni_table_shift(table));
        for (size_t i = 0; i < count; i++)
            entries +=
                atomic_load_explicit(gni_table_entries(table) + i, memory_order_relaxed) != NULL;
    }
    for (const gn_memory_block *block = region->first; block != NULL; block = block->after)
        blocks += is_indexed(gni_block_state(block));
    HOLDS(entries == blocks);
    return true;
}

/* ---- memory behind addresses ---------------------------------------------------------------- */

static bool mapping_is_valid(const struct gni_mapping *mapping, const struct gni_region *region,
                             const char *at)
{
    const struct gni_physical *physical = mapping->physical;
    HOLDS(mapping->region == region);
    HOLDS(at >= mapping->start && at < mapping->start + physical->nbytes);
    HOLDS(physical->nbytes > 0 && physical->nbytes % GNI_PAGE == 0);
    bool is_linked = false;
    gni_list_each (link, &physical->mappings)
        is_linked |= link == &mapping->link;
    HOLDS(is_linked);
    HOLDS(!gni_physical_is_folded(physical) || physical->nbytes == GNI_PAGE);
    return true;
}

/* Every page of a region: its record, and the piece behind it, which is counted once. */
static bool mappings_are_valid(struct walk *walk, const struct gni_region *region)
{
    for (char *at = region->start; at < region->start + region->nbytes; at += GNI_PAGE) {
        const struct gni_mapping *mapping = mapping_at(region, at);
        if (mapping == NULL)
            continue;
        if (!mapping_is_valid(mapping, region, at))
            return false;
        if (at != mapping->start)
            continue;
        walk->mapped_bytes[region->range] += mapping->physical->nbytes;
        if (mapping->physical->mappings.next == &mapping->link)
            walk->reserved_bytes += mapping->physical->nbytes;
        walk->folded_pages += gni_physical_is_folded(mapping->physical);
    }
    return true;
}

/* Does the state of a block fit the memory behind one of its pages? PO2, VA2. */
static bool page_fits(const gn_memory_block *block, const struct gni_mapping *mapping)
{
    enum gni_block_state state = gni_block_state(block);
    bool is_folded = mapping != NULL && gni_physical_is_folded(mapping->physical);
    bool is_whole =
        (uintptr_t)block->start % GNI_PAGE == 0 && (uintptr_t)gni_block_end(block) % GNI_PAGE == 0;
    switch (state) {
    case GNI_BLOCK_HOLE:
        HOLDS(mapping == NULL && is_whole);
        return true;
    case GNI_BLOCK_BLOCKED: /* part of a folded page, or addresses that the driver did not let go */
        HOLDS(is_folded || is_whole);
        return true;
    case GNI_BLOCK_FREE:
    case GNI_BLOCK_CACHED:
        HOLDS(mapping != NULL && !is_folded);
        return true;
    default:
        HOLDS(mapping != NULL);
        HOLDS(!is_folded || gni_block_has(block, GNI_BLOCK_SLOW));
        return true;
    }
}

static bool pages_are_valid(struct walk *walk, const struct gni_region *region)
{
    for (const gn_memory_block *block = region->first; block != NULL; block = block->after) {
        bool was_folded = false;
        char *first = gni_page_start(block->start);
        for (char *at = first; at < gni_block_end(block); at += GNI_PAGE) {
            const struct gni_mapping *mapping = mapping_at(region, at);
            if (!page_fits(block, mapping))
                return false;
            bool is_folded = mapping != NULL && gni_physical_is_folded(mapping->physical);
            if (at != first && is_used(gni_block_state(block)))
                walk->folded_borders += is_folded || was_folded;
            was_folded = is_folded;
        }
    }
    return true;
}

/* VA1: adds the used grains of a page to those of the pages it shares its piece with. */
static bool page_is_disjoint(const struct gni_mapping *mapping, uint64_t *mask)
{
    const gn_memory_block *block = mapping->region->first;
    char *end = mapping->start + GNI_PAGE;
    while (gni_block_end(block) <= mapping->start)
        block = block->after;
    for (; block != NULL && block->start < end; block = block->after) {
        if (!is_used(gni_block_state(block)))
            continue;
        char *from = block->start > mapping->start ? block->start : mapping->start;
        char *used = gni_block_used_end(block);
        char *to = used < end ? used : end;
        if (from >= to)
            continue;
        size_t first = (size_t)(from - mapping->start) / GNI_GRAIN;
        size_t last = first + (size_t)(to - from) / GNI_GRAIN;
        HOLDS(gni_bitmap_find_set(mask, last, first) >= last);
        gni_bitmap_set_range(mask, first, last - first);
    }
    return true;
}

static bool folds_are_valid(const struct gni_region *region)
{
    for (char *at = region->start; at < region->start + region->nbytes; at += GNI_PAGE) {
        const struct gni_mapping *mapping = mapping_at(region, at);
        if (mapping == NULL || !gni_physical_is_folded(mapping->physical) ||
            mapping->physical->mappings.next != &mapping->link)
            continue;
        uint64_t mask[PAGE_GRAINS / 64] = {0};
        gni_list_each (link, &mapping->physical->mappings)
            if (!page_is_disjoint(gni_container_of(link, struct gni_mapping, link), mask))
                return false;
    }
    return true;
}

/* A region of the policy `pool` is one piece; after a clear that was refused it is one hole. */
static bool plain_is_valid(struct walk *walk, const struct gni_region *region)
{
    HOLDS((char *)region->obtained <= region->start &&
          (char *)region->obtained + region->obtained_bytes >= region->start + region->nbytes);
    for (const gn_memory_block *block = region->first; block != NULL; block = block->after) {
        HOLDS(gni_block_state(block) != GNI_BLOCK_BLOCKED);
        HOLDS(gni_block_state(block) != GNI_BLOCK_HOLE || block->nbytes == region->nbytes);
    }
    walk->reserved_bytes += region->obtained_bytes;
    walk->mapped_bytes[region->range] += region->nbytes;
    return true;
}

static bool region_is_valid(struct walk *walk, const struct gni_region *region)
{
    if (!tiles_are_valid(walk, region) || !entries_are_valid(region))
        return false;
    if (walk->pool->backing != GNI_BACKING_VIRTUAL)
        return plain_is_valid(walk, region);
    return mappings_are_valid(walk, region) && pages_are_valid(walk, region) &&
           folds_are_valid(region);
}

/* ---- heaps and spaces ----------------------------------------------------------------------- */

static size_t heap_blocks(const struct gni_heap *heap)
{
    size_t count = 0;
    gni_list_each (link, &heap->space->regions) {
        struct gni_region *region = gni_container_of(link, struct gni_region, link);
        for (const gn_memory_block *block = region->first; block != NULL; block = block->after)
            count += block->heap == heap;
    }
    return count;
}

/* Descriptors that stand by in the claims of the heap's caches: CL6. */
static size_t heap_stocks(const struct gni_heap *heap)
{
    size_t count = 0;
    for (const struct gni_cache *cache = atomic_load(&heap->space->pool->caches); cache != NULL;
         cache = cache->next)
        if (cache->heap == heap && cache->claim != NULL)
            count += cache->claim->blocks.count;
    return count;
}

static bool heap_is_valid(const struct gni_heap *heap)
{
    const struct gni_space *space = heap->space;
    HOLDS((heap->key == 0) == (heap == space->clean));
    HOLDS(heap->key == 0 || heap->is_dead || gni_map_find(&space->heaps_by_key, heap->key) == heap);
    HOLDS(heap->block_count == heap_blocks(heap) + heap_stocks(heap));
    HOLDS(heap->open > heap->complete);
    uint64_t last = heap->complete;
    gni_list_each (link, &heap->marks) {
        const struct gni_mark *mark = gni_container_of(link, struct gni_mark, link);
        HOLDS(mark->sequence > last && mark->sequence < heap->open);
        last = mark->sequence;
    }
    gni_list_each (link, &heap->held) {
        const struct gni_use *use = gni_container_of(link, struct gni_use, link);
        HOLDS(use->heap == heap && use->hold != NULL);
        HOLDS(gni_block_state(use->block) == GNI_BLOCK_LIVE);
    }
    gni_list_each (link, &heap->uses) {
        const struct gni_use *use = gni_container_of(link, struct gni_use, link);
        HOLDS(use->heap == heap && use->hold == NULL);
        HOLDS(gni_block_state(use->block) == GNI_BLOCK_PENDING);
    }
    for (int range = 0; range < GNI_RANGE_COUNT; range++)
        if (!fit_is_valid(&heap->fit[range], space, heap, range, NULL))
            return false;
    return true;
}

static bool space_is_valid(struct walk *walk, struct gni_space *space)
{
    size_t free_count[GNI_RANGE_COUNT] = {0};
    memset(walk->free_count, 0, sizeof walk->free_count);
    memset(walk->hole_count, 0, sizeof walk->hole_count);
    memset(walk->mapped_bytes, 0, sizeof walk->mapped_bytes);
    walk->live_count = 0;
    HOLDS(gni_map_is_valid(&space->heaps_by_key));
    gni_list_each (link, &space->regions) {
        const struct gni_region *region = gni_container_of(link, struct gni_region, link);
        HOLDS(region->space == space);
        if (!region_is_valid(walk, region))
            return false;
    }
    gni_list_each (link, &space->heaps) {
        const struct gni_heap *heap = gni_container_of(link, struct gni_heap, link);
        HOLDS(heap->space == space);
        if (!heap_is_valid(heap))
            return false;
        for (int range = 0; range < GNI_RANGE_COUNT; range++)
            free_count[range] += heap->fit[range].count;
    }
    for (const struct gni_cache *cache = atomic_load(&space->pool->caches); cache != NULL;
         cache = cache->next)
        if (cache->claim != NULL && space == &space->pool->main)
            free_count[GNI_RANGE_MEDIUM] += cache->claim->fit.count;
    for (int range = 0; range < GNI_RANGE_COUNT; range++) {
        if (!fit_is_valid(&space->holes[range], space, NULL, range, NULL))
            return false;
        HOLDS(walk->free_count[range] == free_count[range]);
        HOLDS(walk->hole_count[range] == space->holes[range].count);
        HOLDS(walk->mapped_bytes[range] == space->mapped_bytes[range]);
    }
    HOLDS(!space->is_private || space->live_count == walk->live_count);
    return true;
}

/* ---- caches --------------------------------------------------------------------------------- */

static bool cache_list_is_valid(const struct gni_cache *cache, const gn_memory_block *first,
                                unsigned count, size_t nbytes)
{
    unsigned found = 0;
    for (const gn_memory_block *block = first; block != NULL; block = block->next, found++) {
        HOLDS(gni_block_state(block) == GNI_BLOCK_CACHED && block->heap == cache->heap); /* CA3 */
        HOLDS(!gni_block_has(block, GNI_BLOCK_SLOW) && block->nbytes == nbytes);
    }
    HOLDS(found == count);
    return true;
}

static bool stock_is_valid(const struct gni_blocks *blocks)
{
    size_t count = 0;
    for (const gn_memory_block *block = blocks->unused; block != NULL; block = block->next) {
        HOLDS(gni_block_state(block) == GNI_BLOCK_UNUSED && block->heap == blocks->heap);
        count++;
    }
    HOLDS(count == blocks->count);
    return true;
}

/* CL1, CL2, CL5 and CL6; `count` grows by the blocks that were returned. */
static bool claim_is_valid(const struct gni_cache *cache, size_t *count)
{
    const struct gni_claim *claim = cache->claim;
    bool is_empty = gni_list_is_empty(&claim->regions);
    HOLDS(claim->blocks.count == 0 || claim->blocks.heap == cache->heap);
    HOLDS(!is_empty || (claim->fit.count == 0 && atomic_load(&claim->returned) == NULL));
    gni_list_each (link, &claim->regions) {
        const struct gni_region *region = gni_container_of(link, struct gni_region, claim_link);
        HOLDS(region->claim == claim && region->range == GNI_RANGE_MEDIUM);
        for (const gn_memory_block *block = region->first; block != NULL; block = block->after)
            HOLDS(block->heap == cache->heap);
    }
    for (const gn_memory_block *block = atomic_load(&claim->returned); block != NULL;
         block = block->next, (*count)++)
        HOLDS(gni_block_state(block) == GNI_BLOCK_CACHED && block->region->claim == claim);
    return stock_is_valid(&claim->blocks) &&
           fit_is_valid(&claim->fit, &cache->pool->main, cache->heap, GNI_RANGE_MEDIUM, claim);
}

/* CA3 and CA4; `count` grows by the blocks in the cache. */
static bool cache_is_valid(const struct gni_cache *cache, size_t *count)
{
    size_t found = 0;
    for (unsigned i = 0; i < GNI_SIZE_BINS; i++) {
        const struct gni_bin *bin = &cache->bins[i];
        if (!cache_list_is_valid(cache, bin->first, bin->count, gni_class_bytes(i)))
            return false;
        HOLDS(bin->count <= bin->limit);
        found += bin->count;
    }
    for (unsigned i = 0; i < GNI_CACHE_SLOTS; i++) {
        const struct gni_slot *slot = &cache->slots[i];
        if (!cache_list_is_valid(cache, slot->first, slot->count, slot->nbytes))
            return false;
        found += slot->count;
    }
    HOLDS(cache->heap != NULL || found == 0);
    size_t most = cache->pool->config.stream_cache_blocks;
    if (cache->heap != NULL && most < GNI_STOCK_PLACES_MOST) {
        HOLDS(gni_cache_places(cache) + found <= most);
        HOLDS(gni_cache_places(cache) + found == most || cache->pool->is_limited);
    }
    *count += found;
    return cache->claim == NULL || claim_is_valid(cache, count);
}

/* DE1; `count` grows by the blocks of the batches. */
static bool depot_is_valid(const struct gni_heap *heap, size_t *count)
{
    for (unsigned class = 0; class < GNI_SIZE_BINS; class ++) {
        for (int i = 0; i < GNI_DEPOT_PLACES; i++) {
            const gn_memory_block *first = atomic_load(&heap->depot.places[class][i]);
            size_t found = 0;
            for (const gn_memory_block *block = first; block != NULL; block = block->next, found++)
                HOLDS(gni_block_state(block) == GNI_BLOCK_CACHED && block->heap == heap &&
                      block->bin == class);
            HOLDS(first == NULL || first->batch_count == found);
            *count += found;
        }
    }
    return true;
}

static bool caches_are_valid(const struct walk *walk)
{
    size_t count = 0;
    gni_list_each (link, &walk->pool->main.heaps)
        if (!depot_is_valid(gni_container_of(link, struct gni_heap, link), &count))
            return false;
    for (const struct gni_cache *cache = atomic_load(&walk->pool->caches); cache != NULL;
         cache = cache->next)
        if (!cache_is_valid(cache, &count))
            return false;
    HOLDS(count == walk->cached_count);
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static bool pool_is_valid(struct gni_pool *pool)
{
    struct walk walk = {.pool = pool};
    if (!space_is_valid(&walk, &pool->main))
        return false;
    gni_list_each (link, &pool->private_spaces)
        if (!space_is_valid(&walk, gni_container_of(link, struct gni_space, link)))
            return false;
    gni_list_each (link, &pool->orphans)
        walk.reserved_bytes += gni_container_of(link, struct gni_physical, link)->nbytes;
    gni_list_each (link, &pool->scratch_pieces)
        walk.reserved_bytes += gni_container_of(link, struct gni_physical, link)->nbytes;
    if (!caches_are_valid(&walk) || !stock_is_valid(&pool->blocks))
        return false;
    HOLDS(pool->reserved_bytes == walk.reserved_bytes);  /* PO3 */
    HOLDS(walk.live_bytes == gni_pool_live_bytes(pool)); /* VA4 */
    HOLDS(walk.pending_bytes == pool->pending_bytes && walk.pending_count == pool->pending_count);
    HOLDS(walk.used_bytes <= walk.reserved_bytes);                         /* PO4 */
    HOLDS(pool->reserve_blocks == GNI_BLOCKS_BY_PAGE * walk.folded_pages); /* VA3 */
    HOLDS(pool->blocks.count >= walk.folded_borders);
    return true;
}

bool gni_pool_is_valid(struct gni_pool *pool)
{
    gni_pool_lock(pool);
    gni_caches_revoke(pool, NULL);
    bool is_valid = pool_is_valid(pool);
    gni_caches_restore(pool);
    gni_pool_unlock(pool);
    return is_valid;
}
