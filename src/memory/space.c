/*
 * space.c: regions and the blocks that tile them: splitting, merging, growing and giving back.
 *
 * Growing, by range:
 *   tiny     a few pages at a time, each a piece of its own
 *   small    the same, in regions of its own
 *   medium   the pages that the request needs beyond the free memory beside the hole. Those that it covers are
 *            one piece, which goes back when it does; the last, which it shares, is a piece of its own. Where free
 *            memory does not fit what is asked for, all are, so that any page between living blocks can go back. As
 *            long as it does, and there is plenty, two blocks share a piece (growth_step)
 *   large    few pieces, since the cost of a piece is the same whatever its size; smaller ones where free
 *            memory does not fit what is asked for. A first page that is hardly used is a piece of its own
 *
 * With the policy `pool` a region is one allocation, and goes back when all of it is free.
 *
 * Failure: what can fail comes first (descriptors, host memory, the driver), then the books change.
 */
#include "memory/tile.h"

#include "base/host.h"
#include "memory/history.h"
#include "memory/mark.h"

void gni_space_init(struct gni_space *space, struct gni_pool *pool, bool is_private)
{
    *space = (struct gni_space){.pool = pool, .is_private = is_private};
    gni_list_init(&space->link);
    gni_list_init(&space->regions);
    gni_list_init(&space->heaps);
    gni_map_init(&space->heaps_by_key);
}

void gni_space_deinit(struct gni_space *space)
{
    gni_list_each (link, &space->heaps)
        gni_heap_destroy(gni_container_of(link, struct gni_heap, link));
    gni_map_deinit(&space->heaps_by_key);
    space->clean = NULL;
}

/* ---- tiles ---------------------------------------------------------------------------------- */

void gni_block_absorb(gn_memory_block *block, gn_memory_block *other)
{
    gni_assert(gni_block_end(block) == other->start && block->region == other->region);
    gni_assert(block->after == other && other->before == block);
    gni_assert(block->after == other && gni_block_end(block) == other->start);
    block->nbytes += other->nbytes;
    gni_tile_remove(&block->pool->blocks, other);
}

gn_memory_block *gni_block_split(gn_memory_block *block, char *start)
{
    gni_assert(start > block->start && start < gni_block_end(block));
    gni_assert(((uintptr_t)start & (GNI_GRAIN - 1)) == 0);
    gni_assert(block->start < start && start < gni_block_end(block));
    size_t nbytes = (size_t)(gni_block_end(block) - start);
    gn_memory_block *rest =
        gni_tile_add(&block->pool->blocks, block->region, block, block->after, start, nbytes);
    block->nbytes -= nbytes;
    gni_block_set_heap(rest, block->heap);
    rest->sequence = block->sequence;
    return rest;
}

gn_memory_block *gni_block_cut(gn_memory_block *block, char *start, char *end)
{
    struct gni_space *space = block->region->space;
    enum gni_block_state state = gni_block_state(block);
    struct gni_fit *fit = state == GNI_BLOCK_HOLE   ? &space->holes[block->range]
                          : state == GNI_BLOCK_FREE ? gni_fit_of(block)
                                                    : NULL;
    gni_assert(start >= block->start && end <= gni_block_end(block) && start < end);
    if (fit != NULL)
        gni_fit_remove(fit, block);
    if (end < gni_block_end(block)) {
        gn_memory_block *rest = gni_block_split(block, end);
        gni_block_set_state(rest, state);
        if (fit != NULL)
            gni_fit_insert(fit, rest);
    }
    if (block->start < start) {
        gn_memory_block *middle = gni_block_split(block, start);
        gni_block_set_state(middle, state);
        if (fit != NULL)
            gni_fit_insert(fit, block);
        return middle;
    }
    return block;
}

gn_memory_block *gni_block_carve(gn_memory_block *block, const struct gni_need *need)
{
    return gni_tile_carve(block, need->heap, need->range, need->nbytes, need->offset);
}

gn_memory_block *gni_space_take(struct gni_heap *heap, const struct gni_need *need)
{
    bool is_first = heap->space->pool->config.strategy == GN_MEMORY_FIRST_FIT;
    gn_memory_block *block = is_first ? gni_fit_lowest(&heap->fit[need->range], need->nbytes)
                                      : gni_fit_best(&heap->fit[need->range], need->nbytes);
    gni_assert(gni_pool_is_locked(heap->space->pool));
    return block != NULL ? gni_block_carve(block, need) : NULL;
}

void gni_block_make_hole(gn_memory_block *block)
{
    struct gni_fit *holes = &block->region->space->holes[block->range];
    gni_assert(gni_pool_is_locked(block->region->space->pool));
    gni_assert(block->address == NULL && block->uses == NULL);
    gni_block_set_heap(block, NULL);
    block->sequence = 0;
    gn_memory_block *after = block->after, *before = block->before;
    if (after != NULL && gni_block_state(after) == GNI_BLOCK_HOLE) {
        gni_fit_remove(holes, after);
        gni_block_absorb(block, after);
    }
    if (before != NULL && gni_block_state(before) == GNI_BLOCK_HOLE) {
        gni_fit_remove(holes, before);
        gni_block_absorb(before, block);
        block = before;
    }
    gni_block_set_state(block, GNI_BLOCK_HOLE);
    gni_fit_insert(holes, block);
}

/* ---- regions -------------------------------------------------------------------------------- */

/* A region over addresses that were obtained, tiled by one hole. Needs a descriptor. */
static gn_status region_create(struct gni_space *space, enum gni_range range, char *start,
                               size_t nbytes, struct gni_region **out)
{
    struct gni_pool *pool = space->pool;
    struct gni_region *region = gni_host_alloc(sizeof *region);
    if (region == NULL)
        return gni_error_host_memory(sizeof *region);
    *region = (struct gni_region){.space = space,
                                  .range = range,
                                  .id = ++pool->last_region,
                                  .start = start,
                                  .nbytes = nbytes,
                                  .obtained = start,
                                  .obtained_bytes = nbytes};
    gn_memory_block *block = gni_tile_add(&pool->blocks, region, NULL, NULL, start, nbytes);
    gni_block_set_state(block, GNI_BLOCK_HOLE);
    gni_fit_insert(&space->holes[range], block);
    gni_list_push_back(&space->regions, &region->link);
    *out = region;
    return GN_OK;
}

/* A region that is one hole goes away; its addresses went back before. */
static void region_destroy(struct gni_region *region)
{
    struct gni_space *space = region->space;
    gn_memory_block *block = region->first;
    gni_assert(region->claim == NULL);
    gni_assert(block->after == NULL && gni_block_state(block) == GNI_BLOCK_HOLE);
    gni_fit_remove(&space->holes[region->range], block);
    gni_blocks_give(&space->pool->blocks, block);
    gni_list_remove(&region->link);
    gni_host_free(region);
}

/* A range of addresses of the driver's, large enough for all of the device. */
static gn_status region_reserve(struct gni_space *space, enum gni_range range, size_t least)
{
    struct gni_pool *pool = space->pool;
    size_t nbytes = gni_align_up(pool->total_bytes, GNI_PAGE);
    if (nbytes < least)
        nbytes = least;
    void *address;
    GN_TRY(pool->device->ops->virtual_reserve(pool->device, nbytes, &address));
    /* A driver that reserves in smaller steps than our page: an inner part will do. */
    if ((uintptr_t)address % GNI_PAGE != 0) {
        (void)pool->device->ops->virtual_release(pool->device, address, nbytes);
        return gni_error(GN_ERROR_UNSUPPORTED, "the driver reserved %p, not on a page of 2 MiB",
                         address);
    }
    struct gni_region *region;
    gn_status status = region_create(space, range, address, nbytes, &region);
    if (status != GN_OK)
        (void)pool->device->ops->virtual_release(pool->device, address, nbytes);
    return status;
}

/*
 * Fresh memory holds zeros, if so configured; visible to every stream. A graph's stream may be captured: its fill would
 * run with every replay, over what another graph of the same pool keeps there.
 */
static gn_status fresh_fill(const struct gni_space *space, char *start, size_t nbytes,
                            gn_stream *stream)
{
    if (!space->pool->is_zeroed)
        return GN_OK;
    if (space->is_private)
        GN_TRY(gn_stream_get_default(space->pool->device, &stream));
    GN_TRY(gn_fill(start, 0, 1, nbytes, stream));
    return gn_stream_synchronize(stream);
}

/* ---- memory of the policy `pool` ------------------------------------------------------------ */

static gn_status plain_obtain(struct gni_pool *pool, size_t nbytes, void **address)
{
    gn_device *device = pool->device;
    uint64_t begin = gni_driver_begin(pool);
    gn_status status;
    if (pool->backing == GNI_BACKING_DEVICE) {
        status = device->ops->memory_alloc(device, nbytes, address);
    } else {
        gn_device *cpu = pool->holder;
        status = cpu->ops->memory_alloc(cpu, nbytes, address);
        if (status == GN_OK) {
            status = device->ops->host_register(device, *address, nbytes);
            if (status != GN_OK)
                (void)cpu->ops->memory_free(cpu, *address, nbytes);
        }
    }
    gni_driver_end(pool, begin);
    return status;
}

static gn_status plain_return(struct gni_pool *pool, void *address, size_t nbytes)
{
    gn_device *device = pool->device;
    uint64_t begin = gni_driver_begin(pool);
    gn_status status;
    if (pool->backing == GNI_BACKING_DEVICE) {
        status = device->ops->memory_free(device, address, nbytes);
    } else {
        gn_device *cpu = pool->holder;
        status = device->ops->host_unregister(device, address);
        if (status == GN_OK)
            (void)cpu->ops->memory_free(cpu, address, nbytes);
    }
    gni_driver_end(pool, begin);
    return status;
}

/* Memory that begins on a page: what is asked for, or a page more where the system does not align. */
static gn_status plain_obtain_aligned(struct gni_pool *pool, size_t nbytes, void **address,
                                      size_t *obtained)
{
    GN_TRY(plain_obtain(pool, nbytes, address));
    *obtained = nbytes;
    if ((uintptr_t)*address % GNI_PAGE == 0)
        return GN_OK;
    GN_TRY(plain_return(pool, *address, nbytes));
    *obtained = nbytes + GNI_PAGE;
    return plain_obtain(pool, *obtained, address);
}

static gn_status plain_grow(struct gni_space *space, const struct gni_need *need, size_t nbytes)
{
    struct gni_pool *pool = space->pool;
    enum gni_range range = need->range;
    void *address;
    size_t obtained;
    GN_TRY(plain_obtain_aligned(pool, nbytes, &address, &obtained));
    char *start = (char *)gni_align_up((uintptr_t)address, GNI_PAGE);
    struct gni_region *region = NULL;
    gn_status status = fresh_fill(space, start, nbytes, need->stream);
    if (status == GN_OK)
        status = region_create(space, range, start, nbytes, &region);
    if (status == GN_OK) {
        status = gni_address_open(region, start, nbytes, gni_range_shift(range));
        if (status != GN_OK)
            region_destroy(region);
    }
    if (status != GN_OK) {
        (void)plain_return(pool, address, obtained);
        return status;
    }
    region->obtained = address;
    region->obtained_bytes = obtained;
    gni_reserved_add(pool, address, obtained);
    space->mapped_bytes[range] += nbytes;
    atomic_fetch_add(&pool->device->object_count, 1);
    gni_mark_segment_add(pool->device, address, obtained);
    return GN_OK;
}

/* Gives a region of the policy `pool` back that is one free block, or one hole after a clear. */
static gn_status plain_release(struct gni_region *region)
{
    struct gni_space *space = region->space;
    struct gni_pool *pool = space->pool;
    gn_memory_block *block = region->first;
    gni_assert(block->after == NULL);
    gni_mark_segment_remove(region->obtained);
    gn_status status = plain_return(pool, region->obtained, region->obtained_bytes);
    if (status != GN_OK) {
        gni_mark_segment_add(pool->device, region->obtained, region->obtained_bytes);
        return status;
    }
    gni_address_close(region->start, region->nbytes);
    gni_reserved_remove(pool, region->obtained, region->obtained_bytes);
    space->mapped_bytes[region->range] -= region->nbytes;
    atomic_fetch_sub(&pool->device->object_count, 1);
    if (gni_block_state(block) == GNI_BLOCK_FREE) {
        gni_fit_remove(gni_fit_of(block), block);
        gni_block_make_hole(block);
    }
    region_destroy(region);
    return GN_OK;
}

/* ---- growing -------------------------------------------------------------------------------- */

/* How much to take for small blocks: little at first, then a part of what there is. */
static size_t small_step(const struct gni_space *space, enum gni_range range)
{
    size_t step = gni_align_up(space->mapped_bytes[range] / 16, GNI_PAGE);
    size_t most = gni_align_up(space->pool->config.segment_bytes, GNI_PAGE);
    return step < GNI_PAGE ? GNI_PAGE : step < most ? step : most;
}

/* What a region of the policy `pool` should have: a segment, but less while little is in use. */
static size_t plain_step(const struct gni_space *space, const struct gni_need *need)
{
    size_t least = gni_align_up(need->nbytes, GNI_PAGE);
    if (need->range == GNI_RANGE_LARGE)
        return least;
    size_t most = gni_align_up(space->pool->config.segment_bytes, GNI_PAGE);
    size_t step = gni_align_up(space->mapped_bytes[need->range] / 4, GNI_PAGE);
    if (need->range == GNI_RANGE_MEDIUM && step < 2 * GNI_SIZE_MEDIUM_MOST)
        step = 2 * GNI_SIZE_MEDIUM_MOST;
    step = step < most ? step : most;
    return step > least ? step : least;
}

static gn_status limit_check(struct gni_pool *pool, size_t nbytes)
{
    if (pool->backing == GNI_BACKING_VIRTUAL &&
        nbytes > pool->total_bytes) /* nor are there addresses */
        return gni_error(GN_ERROR_OUT_OF_MEMORY, "the device has %llu bytes",
                         (unsigned long long)pool->total_bytes);
    if (nbytes > pool->limit || pool->reserved_bytes > pool->limit - nbytes)
        return gni_error(GN_ERROR_OUT_OF_MEMORY, "the limit of %llu bytes allows no more",
                         (unsigned long long)pool->limit);
    return GN_OK;
}

/* Where to grow: the hole, and how many of its bytes get memory. */
struct growth {
    gn_memory_block *hole;
    size_t nbytes;
};

/* What a hole costs: with free memory before it, or around it, less than the need. 0: it will not do. */
static size_t hole_cost(const gn_memory_block *hole, const struct gni_need *need)
{
    size_t before = gni_tile_is_free_of(hole->before, need->heap) ? hole->before->nbytes : 0;
    size_t after = gni_tile_is_free_of(hole->after, need->heap) ? hole->after->nbytes : 0;
    if (before >= need->nbytes)
        before = 0; /* cannot be: it would have been taken */
    size_t cost = gni_align_up(need->nbytes - before, GNI_PAGE);
    if (cost <= hole->nbytes)
        return cost;
    return before + hole->nbytes + after >= need->nbytes ? hole->nbytes : 0;
}

/* The cheapest place; the lowest among equals. Small blocks take a few pages at the lowest address. */
static struct growth growth_find(const struct gni_space *space, const struct gni_need *need)
{
    struct growth best = {0};
    if (need->range <= GNI_RANGE_SMALL) {
        best.nbytes = small_step(space, need->range);
        best.hole = gni_fit_lowest(&space->holes[need->range], best.nbytes);
        return best;
    }
    gni_fit_each (hole, &space->holes[need->range]) {
        size_t cost = hole_cost(hole, need);
        if (cost != 0 && (best.hole == NULL || cost < best.nbytes ||
                          (cost == best.nbytes && hole->start < best.hole->start)))
            best = (struct growth){hole, cost};
    }
    if (best.hole == NULL)
        best.nbytes = gni_align_up(need->nbytes, GNI_PAGE);
    return best;
}

size_t gni_space_growth(const struct gni_space *space, const struct gni_need *need)
{
    if (space->pool->backing == GNI_BACKING_VIRTUAL)
        return growth_find(space, need).nbytes;
    return plain_step(space, need);
}

/* How much of a hole gets memory: as much as is needed. But two medium blocks share a piece, a page of which costs the
 * driver as much as all of it, as long as what there is lies together and half of what may be reserved is left. When
 * memory gets scarce such pieces are divided (divide.c); those with a block whose address is known only by compact(),
 * which is why no more blocks share one. Where the configuration says how much may be idle none do. */
static size_t growth_step(const struct gni_space *space, const struct gni_need *need,
                          const struct growth *growth)
{
    const struct gni_pool *pool = space->pool;
    size_t two = gni_align_up(2 * need->nbytes, GNI_PAGE);
    size_t most =
        gni_align_up(space->mapped_bytes[need->range] / 4, GNI_PAGE); /* little at first */
    size_t step = two < most ? two : most;
    bool is_worth = need->range == GNI_RANGE_MEDIUM && !need->is_tight && !pool->is_limited &&
                    step > growth->nbytes && growth->hole != NULL && growth->hole->nbytes >= step &&
                    pool->reserved_bytes + step <= gni_pool_allowed(pool) / 2;
    return is_worth ? step : growth->nbytes;
}

/* Where the driver did not undo a mapping, nothing can be mapped again: those addresses are lost to us
 * until the region goes. */
static void addresses_set_apart(gn_memory_block *hole, size_t nbytes)
{
    for (size_t at = 0; at < nbytes; at += GNI_PAGE) {
        struct gni_page *page = gni_page_find(hole->start + at);
        if (page == NULL || page->region != hole->region || page->mapping == NULL)
            continue;
        gn_memory_block *lost = gni_block_cut(hole, hole->start, hole->start + nbytes);
        gni_block_set_state(lost, GNI_BLOCK_BLOCKED);
        return;
    }
}

static gn_status virtual_grow(struct gni_space *space, const struct gni_need *need, size_t most)
{
    struct gni_pool *pool = space->pool;
    struct growth growth = growth_find(space, need);
    size_t step = growth_step(space, need, &growth);
    size_t nbytes = step < most ? step : most;
    GN_TRY(limit_check(pool, nbytes));
    if (growth.hole == NULL) {
        GN_TRY(region_reserve(space, need->range, nbytes));
        growth.hole = gni_fit_lowest(&space->holes[need->range], nbytes);
    }
    gn_memory_block *hole = growth.hole;
    size_t before = gni_tile_is_free_of(hole->before, need->heap) ? hole->before->nbytes : 0;
    size_t covered = nbytes > growth.nbytes  ? nbytes /* one piece */
                     : before < need->nbytes ? need->nbytes - before
                                             : 0;
    gn_status status = gni_mappings_open(hole->region, hole->start, nbytes, covered, need);
    if (status == GN_OK) {
        status = fresh_fill(space, hole->start, nbytes, need->stream);
        if (status != GN_OK)
            gni_mappings_close(hole->start, hole->start + nbytes);
    }
    if (status != GN_OK) {
        addresses_set_apart(hole, nbytes);
        return status;
    }
    gn_memory_block *block = gni_block_cut(hole, hole->start, hole->start + nbytes);
    gni_block_set_heap(block, need->heap);
    (void)gni_tile_merge(block);
    return GN_OK;
}

gn_status gni_space_grow(struct gni_space *space, const struct gni_need *need)
{
    struct gni_pool *pool = space->pool;
    gni_assert(gni_pool_is_locked(space->pool));
    gni_assert(need->nbytes > 0 && need->nbytes % GNI_GRAIN == 0);
    GN_TRY(gni_blocks_reserve(&pool->blocks, pool->reserve_blocks + 4));
    if (pool->backing == GNI_BACKING_VIRTUAL) {
        gn_status status = virtual_grow(space, need, SIZE_MAX);
        if (status == GN_ERROR_OUT_OF_MEMORY && need->range < GNI_RANGE_LARGE) {
            /* Not a step, but what is needed may be left. */
            size_t least =
                need->range <= GNI_RANGE_SMALL ? GNI_PAGE : gni_space_growth(space, need);
            GN_TRY(gni_blocks_reserve(&pool->blocks, pool->reserve_blocks + 4));
            status = virtual_grow(space, need, least);
        }
        GN_TRY(status);
    } else {
        size_t nbytes = plain_step(space, need);
        if (limit_check(pool, nbytes) != GN_OK)
            nbytes = gni_align_up(need->nbytes, GNI_PAGE);
        GN_TRY(limit_check(pool, nbytes));
        GN_TRY(plain_grow(space, need, nbytes));
        struct gni_region *region = gni_container_of(space->regions.prev, struct gni_region, link);
        gn_memory_block *block = region->first;
        gni_fit_remove(&space->holes[need->range], block);
        gni_block_set_heap(block, need->heap);
        (void)gni_tile_merge(block);
    }
    return GN_OK;
}

/* ---- giving back ---------------------------------------------------------------------------- */

/* The highest mapping that lies wholly in a block. */
static struct gni_mapping *mapping_inside(const gn_memory_block *block)
{
    char *end = (char *)((uintptr_t)gni_block_end(block) & ~(uintptr_t)(GNI_PAGE - 1));
    while (end - GNI_PAGE >= block->start) {
        struct gni_mapping *mapping = gni_page_find(end - GNI_PAGE)->mapping;
        if (mapping->start >= block->start &&
            mapping->start + mapping->physical->nbytes <= gni_block_end(block))
            return mapping;
        end = mapping->start;
    }
    return NULL;
}

static bool can_release(const struct gni_pool *pool, const gn_memory_block *block)
{
    if (block->sequence > block->heap->complete)
        return false;
    if (pool->backing == GNI_BACKING_VIRTUAL)
        return mapping_inside(block) != NULL;
    return block->before == NULL && block->after == NULL;
}

/* The block at the highest address that has something to give: low addresses stay dense. */
static gn_memory_block *releasable_find(const struct gni_space *space, int range)
{
    gn_memory_block *highest = NULL;
    gni_list_each (link, &space->heaps) {
        const struct gni_fit *fit = &gni_container_of(link, struct gni_heap, link)->fit[range];
        for (size_t class = gni_class_down(GNI_PAGE / GNI_GRAIN);
             (class = gni_bitmap_find_set(fit->bitmap, GNI_SIZE_CLASSES, class)) < GNI_SIZE_CLASSES;
             class ++)
            for (gn_memory_block *block = fit->lists[class]; block != NULL; block = block->next)
                if ((highest == NULL || block->start > highest->start) &&
                    can_release(space->pool, block))
                    highest = block;
    }
    return highest;
}

/* Gives back one piece of a block; the bytes, or 0 if the driver refused. */
static size_t block_release(struct gni_pool *pool, gn_memory_block *block)
{
    uint64_t before = pool->reserved_bytes;
    gni_assert(gni_block_state(block) == GNI_BLOCK_FREE && block->region->claim == NULL);
    if (pool->backing != GNI_BACKING_VIRTUAL)
        return plain_release(block->region) == GN_OK ? (size_t)(before - pool->reserved_bytes) : 0;
    if (gni_blocks_reserve(&pool->blocks, pool->reserve_blocks + 2) != GN_OK)
        return 0;
    struct gni_mapping *mapping = mapping_inside(block);
    char *start = mapping->start, *end = start + mapping->physical->nbytes;
    if (gni_mapping_close(mapping) != GN_OK)
        return 0;
    gni_block_make_hole(gni_block_cut(block, start, end));
    return (size_t)(end - start);
}

size_t gni_space_release(struct gni_space *space, size_t most)
{
    struct gni_pool *pool = space->pool;
    size_t released = 0;
    gni_assert(gni_pool_is_locked(space->pool));
    (void)gni_orphans_release(pool);
    if (space->is_private)
        return 0;
    for (int range = GNI_RANGE_COUNT - 1; range >= 0; range--) {
        gn_memory_block *block;
        while (released < most && (block = releasable_find(space, range)) != NULL) {
            size_t nbytes = block_release(pool, block);
            if (nbytes == 0)
                return released;
            released += nbytes;
        }
    }
    return released;
}

/* ---- the end -------------------------------------------------------------------------------- */

/* A block leaves its index, and is nothing any more. */
static void block_drop(gn_memory_block *block)
{
    switch (gni_block_state(block)) {
    case GNI_BLOCK_FREE:
        gni_fit_remove(gni_fit_of(block), block);
        break;
    case GNI_BLOCK_HOLE:
        gni_fit_remove(&block->region->space->holes[block->range], block);
        break;
    case GNI_BLOCK_LIVE:
        if (gni_history_is_on())
            gni_history_free(block->region->space->pool->manager, block, gni_time_ns());
        gni_tile_forget(&block->pool->freed, block);
        break;
    case GNI_BLOCK_CACHED:
    case GNI_BLOCK_PENDING:
        gni_tile_forget(&block->pool->freed, block);
        break;
    case GNI_BLOCK_BLOCKED:
    case GNI_BLOCK_UNUSED:
        break;
    }
    gni_block_set_heap(block, NULL);
}

/* Makes one hole of a region, whatever its blocks were. */
static void region_flatten(struct gni_region *region)
{
    struct gni_pool *pool = region->space->pool;
    gn_memory_block *first = region->first;
    for (gn_memory_block *block = first, *after; block != NULL; block = after) {
        after = block->after;
        block_drop(block);
        if (block != first)
            gni_blocks_give(&pool->blocks, block);
    }
    first->after = NULL;
    first->nbytes = region->nbytes;
    gni_block_set_address(first, NULL);
    gni_block_set_state(first, GNI_BLOCK_HOLE);
    gni_fit_insert(&region->space->holes[region->range], first);
}

static gn_status region_close(struct gni_region *region)
{
    struct gni_pool *pool = region->space->pool;
    gni_assert(gni_pool_is_locked(region->space->pool));
    region_flatten(region);
    if (pool->backing != GNI_BACKING_VIRTUAL)
        return plain_release(region);
    gn_status first = GN_OK;
    char *end = region->start + region->nbytes;
    for (char *at = region->start; at < end; at += GNI_PAGE) {
        struct gni_page *page = gni_page_find(at);
        if (page == NULL || page->region != region || page->mapping == NULL)
            continue;
        gn_status status = gni_mapping_close(page->mapping);
        if (first == GN_OK)
            first = status;
    }
    if (first != GN_OK) {
        addresses_set_apart(region->first, region->nbytes); /* all of it: it is one hole */
        return first;
    }
    GN_TRY(pool->device->ops->virtual_release(pool->device, region->start, region->nbytes));
    for (char *at = region->start; at < end; at += GNI_PAGE) {
        struct gni_page *page = gni_page_find(at);
        if (page != NULL && page->region == region)
            page->region = NULL;
    }
    region_destroy(region);
    return GN_OK;
}

gn_status gni_space_clear(struct gni_space *space)
{
    gn_status first = GN_OK;
    gni_assert(gni_pool_is_locked(space->pool));
    gni_list_each (link, &space->regions) {
        gn_status status = region_close(gni_container_of(link, struct gni_region, link));
        if (first == GN_OK)
            first = status;
    }
    space->live_count = 0;
    gn_status status = gni_orphans_release(space->pool);
    return first != GN_OK ? first : status;
}
