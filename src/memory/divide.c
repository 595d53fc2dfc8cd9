/*
 * divide.c: pieces of several pages that are partly free become single pages, of which the free ones go back.
 *
 *     before:   addresses   | A A A . . . . . . . . B |      six pages, one piece, which goes back as a whole only
 *     copy:     scratch     | A A | A . | . B |              the used pages, on pieces of their own, seen at other
 *                                                            addresses for as long as it takes
 *     after:    addresses   | A A | A . | hole | . B |       unchanged, and the piece went back
 *
 * A page is unused if it lies in one free block: that part of the block becomes a hole. The others are used, and what
 * is free on them stays free; if it is much they can now be folded (compact.c).
 *
 * Room: until the piece goes back there are two of each used page. A piece for which there is no room, within the
 * limit or on the device, is left as it is.
 *
 * Safety is that of compact.c: between the copy and the new mappings nobody may write the bytes.
 *
 * Failure: up to the exchange of the mappings nothing was changed. If the driver does not map the new pages the old
 * piece is mapped again; if it refuses that, too, its blocks are lost. Scratch addresses, and the pages that are seen
 * there, stay where the driver does not take them back or the copies could not be waited for; it is tried again before
 * the next division, and at the pool's end.
 */
#include "memory/pool.h"

#include "base/host.h"

enum {
    WORTH_SHIFT = 3, /* 1 / (1 << this) of a piece must be free */
};

/* A piece, and the pages that shall be in its place. */
struct division {
    struct gni_mapping *whole;
    gn_memory_block *first;     /* that reaches into it */
    gn_memory_block *living;    /* one that lives on it, or NULL */
    size_t used_count;          /* pages that are used */
    size_t free_bytes;          /* in free blocks, on whatever pages */
    size_t made_count;          /* pages that there are already */
    struct gni_mapping **pages; /* used_count, in the order of their addresses */
};

static char *whole_end(const struct gni_mapping *mapping)
{
    return mapping->start + mapping->physical->nbytes;
}

static char *page_up(char *address)
{
    return (char *)gni_align_up((uintptr_t)address, GNI_PAGE);
}

/* The part of a block that lies on the piece. */
static char *part_start(const struct division *division, const gn_memory_block *block)
{
    return block->start > division->whole->start ? block->start : division->whole->start;
}

static char *part_end(const struct division *division, char *end)
{
    return end < whole_end(division->whole) ? end : whole_end(division->whole);
}

static bool reaches_into(const struct division *division, const gn_memory_block *block)
{
    return block != NULL && block->start < whole_end(division->whole);
}

/* ---- looking for pieces --------------------------------------------------------------------- */

/* Counts what is used and free on a piece; false if somebody may be at work on it. */
static bool division_look(struct division *division, bool is_automatic)
{
    division->used_count = division->whole->physical->nbytes / GNI_PAGE;
    for (gn_memory_block *block = division->first; reaches_into(division, block);
         block = block->after) {
        enum gni_block_state state = gni_block_state(block);
        if (state == GNI_BLOCK_LIVE &&
            !(is_automatic && gni_block_has(block, GNI_BLOCK_EXPORTED))) {
            division->living = block;
            continue;
        }
        if (state != GNI_BLOCK_FREE)
            return false;
        char *start = part_start(division, block), *end = part_end(division, gni_block_end(block));
        division->free_bytes += (size_t)(end - start);
        if (page_up(start) < gni_page_start(end))
            division->used_count -= (size_t)(gni_page_start(end) - page_up(start)) / GNI_PAGE;
    }
    return true;
}

static bool is_worth_dividing(const struct division *division)
{
    size_t least = division->whole->physical->nbytes >> WORTH_SHIFT;
    return division->living != NULL && division->free_bytes >= least &&
           division->free_bytes >= GNI_PAGE;
}

/* The first piece of several pages that reaches into a block, and begins at `from` or behind it. */
static struct gni_mapping *piece_find(const gn_memory_block *block, char *from)
{
    if (gni_block_state(block) == GNI_BLOCK_HOLE || gni_block_state(block) == GNI_BLOCK_BLOCKED)
        return NULL;
    char *at = gni_page_start(block->start);
    for (at = at > from ? at : from; at < gni_block_end(block);) {
        struct gni_mapping *mapping = gni_page_find(at)->mapping;
        if (mapping->physical->nbytes > GNI_PAGE)
            return mapping;
        at += GNI_PAGE;
    }
    return NULL;
}

/* ---- scratch addresses ---------------------------------------------------------------------- */

gn_status gni_scratch_close(struct gni_pool *pool)
{
    gn_device *device = pool->device;
    struct gni_list *link;
    if (pool->scratch_mapped > 0)
        GN_TRY(device->ops->virtual_unmap(device, pool->scratch, pool->scratch_mapped));
    pool->scratch_mapped = 0;
    while ((link = gni_list_pop_front(&pool->scratch_pieces)) != NULL)
        gni_physical_let_go(pool, gni_container_of(link, struct gni_physical, link));
    if (pool->scratch != NULL)
        GN_TRY(device->ops->virtual_release(device, pool->scratch, pool->scratch_bytes));
    pool->scratch = NULL;
    return GN_OK;
}

static gn_status scratch_open(struct gni_pool *pool, size_t nbytes)
{
    void *address;
    gni_assert(nbytes > 0 && nbytes % GNI_PAGE == 0);
    GN_TRY(gni_scratch_close(pool));
    GN_TRY(pool->device->ops->virtual_reserve(pool->device, nbytes, &address));
    pool->scratch = address;
    pool->scratch_bytes = nbytes;
    return GN_OK;
}

/* ---- dividing ------------------------------------------------------------------------------- */

/* A new piece for a used page, seen at the next scratch address. */
static gn_status page_make(struct division *division, char *start)
{
    struct gni_region *region = division->whole->region;
    struct gni_pool *pool = region->space->pool;
    gn_device *device = pool->device;
    char *seen = pool->scratch + pool->scratch_mapped;
    struct gni_mapping *made;
    gni_assert(division->made_count < division->used_count);
    gni_assert(((uintptr_t)start & (GNI_PAGE - 1)) == 0);
    GN_TRY(gni_piece_create(region, seen, GNI_PAGE, &made));
    gn_status status = device->ops->virtual_map(device, seen, GNI_PAGE, made->physical->handle);
    if (status != GN_OK) {
        gni_piece_destroy(made);
        return status;
    }
    gni_list_push_back(&pool->scratch_pieces, &made->physical->link);
    pool->scratch_mapped += GNI_PAGE;
    made->start = start;
    division->pages[division->made_count++] = made;
    return GN_OK;
}

/* The next used page at or behind an address; `block` goes along. The end of the piece if there is none. */
static char *used_find(const struct division *division, gn_memory_block **block, char *at)
{
    char *end = whole_end(division->whole);
    while (at < end) {
        while (gni_block_end(*block) <= at)
            *block = (*block)->after;
        char *free_end = gni_page_start(part_end(division, gni_block_end(*block)));
        if (gni_block_state(*block) != GNI_BLOCK_FREE || free_end <= at)
            return at;
        at = free_end;
    }
    return end;
}

static gn_status pages_make(struct division *division)
{
    const struct gni_mapping *whole = division->whole;
    struct gni_pool *pool = whole->region->space->pool;
    gn_memory_block *block = division->first;
    for (char *at = used_find(division, &block, whole->start); at < whole_end(whole);
         at = used_find(division, &block, at + GNI_PAGE))
        GN_TRY(page_make(division, at));
    gni_assert(division->made_count == division->used_count);
    return pool->device->ops->virtual_grant(pool->device, pool->scratch, pool->scratch_mapped);
}

/* Copies a part of the piece to where its pages are seen; used pages only. */
static gn_status part_copy(const struct division *division, const char *start, const char *end,
                           gn_stream *stream)
{
    char *scratch = division->whole->region->space->pool->scratch;
    for (size_t i = 0; i < division->used_count; i++) {
        const char *page = division->pages[i]->start;
        const char *from = start > page ? start : page;
        const char *to = end < page + GNI_PAGE ? end : page + GNI_PAGE;
        if (from < to)
            GN_TRY(
                gn_copy(scratch + i * GNI_PAGE + (from - page), from, (size_t)(to - from), stream));
    }
    return GN_OK;
}

static gn_status pages_copy(const struct division *division, gn_memory_compaction *report)
{
    const struct gni_pool *pool = division->whole->region->space->pool;
    gn_stream *stream;
    GN_TRY(gn_stream_get_default(pool->device, &stream));
    if (pool->is_zeroed) /* what is free on them comes from the driver, too */
        GN_TRY(gn_fill(pool->scratch, 0, 1, pool->scratch_mapped, stream));
    for (gn_memory_block *block = division->first; reaches_into(division, block);
         block = block->after) {
        if (gni_block_state(block) != GNI_BLOCK_LIVE)
            continue;
        char *start = part_start(division, block);
        char *end = part_end(division, gni_block_used_end(block));
        if (start >= end)
            continue; /* only what was rounded up reaches into the piece */
        GN_TRY(part_copy(division, start, end, stream));
        report->moved_bytes += (size_t)(end - start);
    }
    return gn_stream_synchronize(stream);
}

/* Grants access to the pages at their own addresses, a run of neighbours at a time. */
static gn_status pages_grant(const struct division *division)
{
    gn_device *device = division->whole->region->space->pool->device;
    for (size_t i = 0, next; i < division->used_count; i = next) {
        char *start = division->pages[i]->start, *end = start + GNI_PAGE;
        for (next = i + 1; next < division->used_count && division->pages[next]->start == end;
             next++)
            end += GNI_PAGE;
        GN_TRY(device->ops->virtual_grant(device, start, (size_t)(end - start)));
    }
    return GN_OK;
}

/* The addresses show the pages instead of the piece. If that fails they are as they were. */
static gn_status division_exchange(const struct division *division)
{
    const struct gni_mapping *whole = division->whole;
    gn_device *device = whole->region->space->pool->device;
    size_t nbytes = whole->physical->nbytes, mapped = 0;
    GN_TRY(device->ops->virtual_unmap(device, whole->start, nbytes));
    gn_status status = GN_OK;
    while (status == GN_OK && mapped < division->used_count) {
        const struct gni_mapping *page = division->pages[mapped];
        status = device->ops->virtual_map(device, page->start, GNI_PAGE, page->physical->handle);
        mapped += status == GN_OK;
    }
    if (status == GN_OK)
        status = pages_grant(division);
    if (status == GN_OK)
        return GN_OK;
    while (mapped-- > 0)
        (void)device->ops->virtual_unmap(device, division->pages[mapped]->start, GNI_PAGE);
    return gni_mapping_restore(whole, status);
}

/* What is free on the unused pages of [start, end) becomes holes. From the end: a hole joins one before it, and takes
 * in one behind it. Needs two descriptors for each. */
static void unused_make_holes(gn_memory_block *living, char *start, char *end)
{
    gn_memory_block *block = living, *before;
    while (block->after != NULL && block->after->start < end)
        block = block->after;
    for (; block != NULL && gni_block_end(block) > start; block = before) {
        char *from = page_up(block->start > start ? block->start : start);
        char *to = gni_page_start(gni_block_end(block) < end ? gni_block_end(block) : end);
        before = block->before;
        if (gni_block_state(block) == GNI_BLOCK_FREE && from < to)
            gni_block_make_hole(gni_block_cut(block, from, to));
    }
}

/* The books after the exchange. */
static void division_enter(struct division *division)
{
    struct gni_mapping *whole = division->whole;
    struct gni_pool *pool = whole->region->space->pool;
    char *start = whole->start, *end = whole_end(whole);
    gni_assert(division->made_count == division->used_count);
    gni_mapping_leave(whole);
    gni_piece_destroy(whole);
    for (size_t i = 0; i < division->used_count; i++) {
        struct gni_mapping *page = division->pages[i];
        gni_list_remove(&page->physical->link);
        gni_mapping_enter(page);
        gni_physical_move_home(pool, page->physical);
    }
    unused_make_holes(division->living, start, end);
}

static gn_status division_run(struct division *division, gn_memory_compaction *report)
{
    struct gni_pool *pool = division->whole->region->space->pool;
    GN_TRY(scratch_open(pool, division->used_count * GNI_PAGE));
    gn_status status = pages_make(division);
    if (status == GN_OK) {
        GN_TRY(pages_copy(division, report)); /* if it fails copies may be under way */
        status = division_exchange(division);
    }
    if (status == GN_OK)
        division_enter(division);
    (void)gni_scratch_close(pool);
    return status;
}

static gn_status piece_divide(struct division *division, gn_memory_compaction *report)
{
    struct gni_pool *pool = division->whole->region->space->pool;
    size_t page_count = division->whole->physical->nbytes / GNI_PAGE;
    GN_TRY(gni_blocks_reserve(&pool->blocks, pool->reserve_blocks + 2 * page_count));
    division->pages = gni_host_alloc(division->used_count * sizeof(struct gni_mapping *));
    if (division->pages == NULL)
        return gni_error_host_memory(division->used_count * sizeof(struct gni_mapping *));
    uint64_t begin = gni_driver_begin(pool);
    gn_status status = division_run(division, report);
    gni_driver_end(pool, begin);
    while (status != GN_OK && division->made_count > 0)
        gni_host_free(division->pages[--division->made_count]);
    gni_host_free(division->pages);
    return status;
}

/* What the limit and the device have left. */
static uint64_t bytes_left(struct gni_pool *pool)
{
    uint64_t allowed = pool->limit > pool->reserved_bytes ? pool->limit - pool->reserved_bytes : 0;
    size_t left, total;
    gn_status status = pool->device->ops->memory_info(pool->device, &left, &total);
    return status == GN_OK && left < allowed ? left : allowed;
}

/* Divides a piece if that is worth it and there is room. *next is where to go on. */
static gn_status piece_consider(struct division *division, bool is_automatic,
                                gn_memory_compaction *report, gn_memory_block **next)
{
    const struct gni_space *space = division->whole->region->space;
    struct gni_pool *pool = space->pool;
    bool is_allowed = division_look(division, is_automatic) && !space->is_private;
    *next = division->first;
    if (!is_worth_dividing(division))
        return GN_OK;
    if (!is_allowed || division->used_count * GNI_PAGE > bytes_left(pool)) {
        report->skipped_bytes += division->free_bytes;
        return GN_OK;
    }
    *next = division->living; /* stays where it is */
    gn_status status = piece_divide(division, report);
    if (status == GN_ERROR_OUT_OF_MEMORY)
        report->skipped_bytes += division->free_bytes;
    return status == GN_ERROR_OUT_OF_MEMORY ? GN_OK : status;
}

static gn_status region_divide(struct gni_region *region, bool is_automatic, uint64_t goal,
                               gn_memory_compaction *report)
{
    const struct gni_pool *pool = region->space->pool;
    char *seen = region->start; /* pieces up to here were considered */
    for (gn_memory_block *block = region->first; block != NULL && pool->reserved_bytes > goal;) {
        struct division division = {.whole = piece_find(block, seen), .first = block};
        if (division.whole == NULL) {
            block = block->after;
            continue;
        }
        seen = whole_end(division.whole);
        GN_TRY(piece_consider(&division, is_automatic, report, &block));
    }
    return GN_OK;
}

static gn_status space_divide(struct gni_space *space, bool is_automatic, uint64_t goal,
                              gn_memory_compaction *report)
{
    gni_list_each (link, &space->regions)
        GN_TRY(region_divide(gni_container_of(link, struct gni_region, link), is_automatic, goal,
                             report));
    return GN_OK;
}

gn_status gni_pool_divide(struct gni_pool *pool, bool is_automatic, uint64_t goal,
                          gn_memory_compaction *report)
{
    gni_assert(gni_pool_is_locked(pool));
    GN_TRY(space_divide(&pool->main, is_automatic, goal, report));
    gni_list_each (link, &pool->private_spaces) /* which are only counted */
        GN_TRY(space_divide(gni_container_of(link, struct gni_space, link), is_automatic, goal,
                            report));
    return GN_OK;
}
