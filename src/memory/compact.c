/*
 * compact.c: folding half-empty pages; those of pieces of several pages once these are divided (divide.c).
 *
 *     before:   addresses   | A . A . | . B . B |        two pages, two pieces of memory
 *     copy:                   A B A B   . B . B          into the bytes that are free in the first piece
 *     after:    addresses   | A . A . | . B . B |        unchanged,
 *                               \          /
 *     memory                   | A B A B |               one piece, seen at both; the other went back
 *
 * fold.c plans which pages go together. Here the plan is carried out: all copies, one wait, then page by
 * page the new mapping.
 *
 * The free bytes of a folded page are used through another address, so they are blocked: nothing is
 * allocated there. When a living block on it is freed, its bytes are blocked, too. gni_pool_unfold(), when
 * nothing runs, takes apart what is not needed any more.
 *
 * Safety: between the copy and the new mapping nobody may write the bytes. The device is paused: no thread submits
 * work of this library, and what was submitted is waited for. Others' work on addresses that they know is beyond
 * that: an explicit compact() demands of its caller that there is none, and by itself the pool folds only pages whose
 * blocks are all known by handle (tensors whose address nobody asked for among them).
 *
 * Descriptors: a folded page may cut a free block, and later a freed one, at both its ends. Two for each
 * folded page stand by (reserve_blocks), so that freeing never fails.
 */
#include "memory/cache.h"

#include "base/host.h"
#include "base/option.h"
#include "memory/fold.h"
#include "memory/tile.h"

#include <string.h>

enum {
    PAGE_GRAINS = GNI_PAGE / GNI_GRAIN,
    PAGE_WORDS = PAGE_GRAINS / 64,
};

/* A page that may be folded, and the grains that living blocks use in it. */
struct candidate {
    struct gni_mapping *mapping;
    gn_memory_block *first; /* the first block that reaches into it */
};

struct folding {
    struct gni_pool *pool;
    bool is_automatic;
    bool is_private; /* the pages that are looked at now belong to a graph: only counted */
    size_t count, capacity;
    struct candidate *pages;
    uint64_t *masks; /* PAGE_WORDS for each page */
    uint32_t *targets;
};

static bool page_is_folded(const char *address)
{
    const struct gni_page *page = gni_page_find(address);
    return page != NULL && page->mapping != NULL && gni_physical_is_folded(page->mapping->physical);
}

/* ---- looking for pages ---------------------------------------------------------------------- */

char *gni_block_used_end(const gn_memory_block *block)
{
    if (block->pool->debug & GNI_DEBUG_GUARD)
        return gni_block_end(block); /* with the zone behind it */
    size_t nbytes = (size_t)((char *)block->address - block->start) + block->requested;
    nbytes = gni_align_up(nbytes, GNI_GRAIN);
    return block->start + (nbytes > 0 ? nbytes : GNI_GRAIN);
}

/* The grains of one page that are in use; false if the page must be left alone. */
static bool page_mask(const struct folding *folding, const gn_memory_block *first,
                      const struct gni_mapping *mapping, uint64_t *mask)
{
    char *start = mapping->start, *end = start + GNI_PAGE;
    for (const gn_memory_block *block = first; block != NULL && block->start < end;
         block = block->after) {
        enum gni_block_state state = gni_block_state(block);
        if (state == GNI_BLOCK_FREE)
            continue;
        if (state != GNI_BLOCK_LIVE ||
            (folding->is_automatic && gni_block_has(block, GNI_BLOCK_EXPORTED)))
            return false;
        char *used = gni_block_used_end(block);
        char *from = block->start > start ? block->start : start;
        char *to = used < end ? used : end;
        if (from >= to)
            continue; /* only what was rounded up reaches into the page */
        gni_bitmap_set_range(mask, (size_t)(from - start) / GNI_GRAIN,
                             (size_t)(to - from) / GNI_GRAIN);
    }
    return true;
}

static gn_status folding_grow(struct folding *folding)
{
    size_t capacity = folding->capacity > 0 ? 2 * folding->capacity : 64;
    struct candidate *pages = gni_host_realloc(folding->pages, capacity * sizeof *pages);
    if (pages == NULL)
        return gni_error_host_memory(capacity * sizeof *pages);
    folding->pages = pages;
    uint64_t *masks = gni_host_realloc(folding->masks, capacity * PAGE_WORDS * sizeof *masks);
    if (masks == NULL)
        return gni_error_host_memory(capacity * PAGE_WORDS * sizeof *masks);
    folding->masks = masks;
    folding->capacity = capacity;
    return GN_OK;
}

/* Adds a page if it is partly used and may be folded. */
static gn_status page_consider(struct folding *folding, struct gni_mapping *mapping,
                               gn_memory_block *first, gn_memory_compaction *report)
{
    if (folding->count == folding->capacity)
        GN_TRY(folding_grow(folding));
    uint64_t *mask = &folding->masks[folding->count * PAGE_WORDS];
    memset(mask, 0, PAGE_WORDS * sizeof *mask);
    bool is_allowed = page_mask(folding, first, mapping, mask);
    size_t used = gni_bitmap_count(mask, PAGE_GRAINS);
    if (!is_allowed || folding->is_private) {
        report->skipped_bytes += (PAGE_GRAINS - used) * (size_t)GNI_GRAIN;
        return GN_OK;
    }
    if (used == 0 || used == PAGE_GRAINS)
        return GN_OK;
    folding->pages[folding->count++] = (struct candidate){mapping, first};
    return GN_OK;
}

static gn_status region_consider(struct folding *folding, struct gni_region *region,
                                 gn_memory_compaction *report)
{
    const char *seen = NULL; /* pages up to here were considered */
    for (gn_memory_block *block = region->first; block != NULL; block = block->after) {
        enum gni_block_state state = gni_block_state(block);
        if (state == GNI_BLOCK_HOLE || state == GNI_BLOCK_BLOCKED)
            continue;
        for (char *at = gni_page_start(block->start); at < gni_block_end(block); at += GNI_PAGE) {
            struct gni_mapping *mapping = gni_page_find(at)->mapping;
            if (at < seen || mapping == NULL || mapping->physical->nbytes != GNI_PAGE)
                continue;
            seen = at + GNI_PAGE;
            if (!gni_physical_is_folded(mapping->physical))
                GN_TRY(page_consider(folding, mapping, block, report));
        }
    }
    return GN_OK;
}

/* ---- carrying it out ------------------------------------------------------------------------ */

/* Copies the used bytes of one page into another one, in runs. */
static gn_status page_copy(const struct folding *folding, size_t from, size_t to, gn_stream *stream,
                           gn_memory_compaction *report)
{
    const uint64_t *mask = &folding->masks[from * PAGE_WORDS];
    const char *source = folding->pages[from].mapping->start;
    char *target = folding->pages[to].mapping->start;
    for (size_t grain = 0; (grain = gni_bitmap_find_set(mask, PAGE_GRAINS, grain)) < PAGE_GRAINS;) {
        size_t end = gni_bitmap_find_clear(mask, PAGE_GRAINS, grain);
        size_t nbytes = (end - grain) * GNI_GRAIN;
        GN_TRY(gn_copy(target + grain * GNI_GRAIN, source + grain * GNI_GRAIN, nbytes, stream));
        report->moved_bytes += nbytes;
        grain = end;
    }
    return GN_OK;
}

/* The page is seen through another piece from now on. If that fails, it is as it was. */
static gn_status page_remap(struct gni_pool *pool, struct gni_mapping *mapping,
                            struct gni_physical *physical)
{
    gn_device *device = pool->device;
    gni_assert(gni_pool_is_locked(pool));
    GN_TRY(device->ops->virtual_unmap(device, mapping->start, GNI_PAGE));
    gn_status status = device->ops->virtual_map(device, mapping->start, GNI_PAGE, physical->handle);
    if (status == GN_OK) {
        status = device->ops->virtual_grant(device, mapping->start, GNI_PAGE);
        if (status == GN_OK)
            return GN_OK;
        (void)device->ops->virtual_unmap(device, mapping->start, GNI_PAGE);
    }
    return gni_mapping_restore(mapping, status);
}

static void mapping_join(struct gni_pool *pool, struct gni_mapping *mapping,
                         struct gni_physical *physical)
{
    struct gni_physical *before = mapping->physical;
    gni_list_remove(&mapping->link);
    gni_list_push_back(&physical->mappings, &mapping->link);
    mapping->physical = physical;
    gni_physical_let_go(pool, before);
}

/* Free bytes of a page are blocked, and what lives on it is freed by the slow path. */
static void page_block(struct gni_mapping *mapping, gn_memory_block *first)
{
    char *start = mapping->start, *end = start + GNI_PAGE;
    for (gn_memory_block *block = first, *after; block != NULL && block->start < end;
         block = after) {
        if (gni_block_state(block) != GNI_BLOCK_FREE) {
            if (gni_block_end(block) > start)
                gni_block_add_flags(block, GNI_BLOCK_SLOW);
            after = block->after;
            continue;
        }
        char *from = block->start > start ? block->start : start;
        char *to = gni_block_end(block) < end ? gni_block_end(block) : end;
        block = gni_block_cut(block, from, to);
        gni_block_set_heap(block, NULL);
        gni_block_set_state(block, GNI_BLOCK_BLOCKED);
        after = block->after;
    }
}

/* The first block that reaches into a page; its descriptor may have changed since the search. */
static gn_memory_block *page_first_block(const struct candidate *page)
{
    gn_memory_block *block = page->first;
    while (gni_block_end(block) <= page->mapping->start)
        block = block->after;
    while (block->before != NULL && gni_block_end(block->before) > page->mapping->start)
        block = block->before;
    return block;
}

static gn_status folding_copy(struct folding *folding, gn_memory_compaction *report)
{
    gn_stream *stream;
    GN_TRY(gn_stream_get_default(folding->pool->device, &stream));
    for (size_t i = 0; i < folding->count; i++)
        if (folding->targets[i] != i)
            GN_TRY(page_copy(folding, i, folding->targets[i], stream, report));
    return gn_stream_synchronize(stream);
}

static gn_status folding_remap(struct folding *folding, gn_memory_compaction *report)
{
    struct gni_pool *pool = folding->pool;
    for (size_t i = 0; i < folding->count; i++) {
        size_t target = folding->targets[i];
        if (target == i)
            continue;
        struct gni_mapping *mapping = folding->pages[i].mapping;
        struct gni_mapping *goal = folding->pages[target].mapping;
        GN_TRY(page_remap(pool, mapping, goal->physical));
        bool is_first = !gni_physical_is_folded(goal->physical);
        mapping_join(pool, mapping, goal->physical);
        page_block(mapping, page_first_block(&folding->pages[i]));
        pool->reserve_blocks += GNI_BLOCKS_BY_PAGE;
        if (is_first) {
            page_block(goal, page_first_block(&folding->pages[target]));
            pool->reserve_blocks += GNI_BLOCKS_BY_PAGE;
        }
        report->folded_pages++;
    }
    return GN_OK;
}

static gn_status space_consider(struct folding *folding, struct gni_space *space,
                                gn_memory_compaction *report)
{
    folding->is_private = space->is_private;
    gni_list_each (link, &space->regions) {
        struct gni_region *region = gni_container_of(link, struct gni_region, link);
        GN_TRY(region_consider(folding, region, report));
    }
    return GN_OK;
}

static gn_status folding_run(struct folding *folding, gn_memory_compaction *report)
{
    struct gni_pool *pool = folding->pool;
    GN_TRY(space_consider(folding, &pool->main, report));
    gni_list_each (link, &pool->private_spaces)
        GN_TRY(space_consider(folding, gni_container_of(link, struct gni_space, link), report));
    if (folding->count < 2)
        return GN_OK;
    folding->targets = gni_host_alloc(folding->count * sizeof *folding->targets);
    if (folding->targets == NULL)
        return gni_error_host_memory(folding->count * sizeof *folding->targets);
    size_t folded;
    GN_TRY(gni_fold_plan(folding->count, PAGE_WORDS, folding->masks, folding->targets, &folded));
    if (folded == 0)
        return GN_OK;
    GN_TRY(gni_blocks_reserve(&pool->blocks,
                              pool->reserve_blocks + 8 * folding->count * GNI_BLOCKS_BY_PAGE));
    GN_TRY(folding_copy(folding, report));
    return folding_remap(folding, report);
}

gn_status gni_pool_squeeze(struct gni_pool *pool, bool is_automatic, uint64_t goal,
                           gn_memory_compaction *report)
{
    gni_assert(gni_pool_is_locked(pool));
    gni_assert(pool->backing == GNI_BACKING_VIRTUAL);
    struct folding folding = {.pool = pool, .is_automatic = is_automatic};
    gn_device *device = pool->device;
    device->ops->pause(device);
    gn_status status = gni_pool_synchronize(pool); /* for what came since the caller waited */
    if (status == GN_OK) {
        /* No thread frees a block without seeing that its page is folded. */
        gni_caches_revoke(pool, NULL);
        status = gni_pool_divide(pool, is_automatic, goal, report);
        if (status == GN_OK && pool->reserved_bytes > goal)
            status = folding_run(&folding, report);
        gni_caches_restore(pool);
    }
    device->ops->resume(device);
    gni_host_free(folding.pages);
    gni_host_free(folding.masks);
    gni_host_free(folding.targets);
    return status;
}

/* ---- freeing on folded pages ---------------------------------------------------------------- */

/* Where the next page begins whose foldedness differs from that of the page of `at`. */
static char *fold_change(char *at, const char *end)
{
    bool is_folded = page_is_folded(at);
    char *next = gni_page_start(at) + GNI_PAGE;
    while (next < end && page_is_folded(next) == is_folded && !is_folded)
        next += GNI_PAGE;
    return next; /* folded pages one by one: blocked bytes do not cross pages */
}

static gn_memory_block *blocked_join(gn_memory_block *block)
{
    gn_memory_block *before = block->before, *after = block->after;
    char *start = gni_page_start(block->start);
    if (after != NULL && gni_block_state(after) == GNI_BLOCK_BLOCKED &&
        gni_page_start(after->start) == start)
        gni_block_absorb(block, after);
    if (before != NULL && gni_block_state(before) == GNI_BLOCK_BLOCKED &&
        gni_page_start(before->start) == start) {
        gni_block_absorb(before, block);
        block = before;
    }
    return block;
}

void gni_block_release(gn_memory_block *block)
{
    struct gni_claim *claim = gni_claim_of(block);
    gni_assert(gni_pool_is_locked(block->pool));
    gni_assert(block->uses == NULL);
    if (claim != NULL) {
        gni_claim_return(claim, block);
        return;
    }
    bool is_folded = false;
    if (block->pool->backing == GNI_BACKING_VIRTUAL && gni_block_has(block, GNI_BLOCK_SLOW))
        for (char *at = gni_page_start(block->start); at < gni_block_end(block); at += GNI_PAGE)
            is_folded |= page_is_folded(at);
    if (!is_folded) {
        (void)gni_tile_merge(block);
        return;
    }
    gni_tile_forget(&block->pool->freed, block);
    while (block != NULL) {
        char *end = gni_block_end(block);
        char *change = fold_change(block->start, end);
        gn_memory_block *rest = change < end ? gni_block_split(block, change) : NULL;
        if (page_is_folded(block->start)) {
            gni_block_set_heap(block, NULL);
            gni_block_set_state(block, GNI_BLOCK_BLOCKED);
            (void)blocked_join(block);
        } else {
            gni_block_set_state(block, GNI_BLOCK_FREE);
            (void)gni_tile_merge(block);
        }
        block = rest;
    }
}

/* ---- taking apart --------------------------------------------------------------------------- */

/* The blocked bytes of a page that is folded with none any more can be used again. */
static void page_unblock(struct gni_pool *pool, gn_memory_block *first, char *start)
{
    for (gn_memory_block *block = first; block != NULL && block->start < start + GNI_PAGE;
         block = block->after) {
        if (gni_block_state(block) != GNI_BLOCK_BLOCKED)
            continue;
        gni_block_set_heap(block, pool->main.clean);
        block->sequence = 0;
        gni_block_set_state(block, GNI_BLOCK_FREE);
        block = gni_tile_merge(block);
    }
}

/* A piece with several mappings lost one: if one is left, its page is whole again. */
static void physical_unfold(struct gni_pool *pool, struct gni_physical *physical)
{
    if (gni_list_is_empty(&physical->mappings) || gni_physical_is_folded(physical))
        return;
    struct gni_mapping *last = gni_container_of(physical->mappings.next, struct gni_mapping, link);
    gn_memory_block *block = last->region->first;
    while (gni_block_end(block) <= last->start)
        block = block->after;
    page_unblock(pool, block, last->start);
}

static void region_unfold(struct gni_region *region)
{
    struct gni_pool *pool = region->space->pool;
    for (gn_memory_block *block = region->first, *after; block != NULL; block = after) {
        after = block->after;
        if (gni_block_state(block) != GNI_BLOCK_BLOCKED || block->nbytes != GNI_PAGE ||
            !page_is_folded(block->start))
            continue;
        struct gni_mapping *mapping = gni_page_find(block->start)->mapping;
        struct gni_physical *physical = mapping->physical;
        if (gni_mapping_close(mapping) != GN_OK)
            continue;
        gni_block_make_hole(block);
        physical_unfold(pool, physical);
        after = region->first; /* neighbours were joined: begin again */
    }
}

void gni_pool_unfold(struct gni_pool *pool)
{
    gni_assert(gni_pool_is_locked(pool));
    if (pool->reserve_blocks == 0)
        return;
    gni_list_each (link, &pool->main.regions)
        region_unfold(gni_container_of(link, struct gni_region, link));
}
