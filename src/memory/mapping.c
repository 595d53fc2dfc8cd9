/*
 * mapping.c: pieces of memory from the driver, and the addresses at which they are seen.
 *
 * A piece is what the driver creates and takes back; a mapping is one place where it is seen. It has one, or several
 * where pages are folded (compact.c), and goes back with the last. What the driver refuses to take back is an orphan,
 * which counts as reserved until a later try succeeds.
 *
 * Everything here is with the pool's lock. What can fail comes first: on failure the books are as before.
 */
#include "memory/pool.h"

#include "base/host.h"
#include "memory/history.h"

/* Large blocks are divided into at most so many pieces, of at least this much: large ones, which cost the driver
 * less, as long as there is plenty; small ones, which can go back one by one, where memory is in pieces already. */
enum {
    PIECES_MOST = 8,
    PIECE_LEAST_OF_PLENTY = 96 << 20,
    PIECE_LEAST = 48 << 20,
    PIECE_LEAST_TIGHT = GNI_PAGE,
    PLENTY_SHIFT = 2, /* 1 / (1 << this) of what may be reserved: below, there is plenty */
    PIECE_SHIFT = 5,  /* and so much of it is enough for a piece */
};

enum {
    THIN_PAGE_MOST = 256 << 10,
};

/* ---- driver calls and what they cost -------------------------------------------------------- */

uint64_t gni_driver_begin(const struct gni_pool *pool)
{
    return pool->config.has_detailed_statistics ? gni_time_ns() : 0;
}

void gni_driver_end(struct gni_pool *pool, uint64_t begin)
{
    if (begin != 0)
        pool->counts.driver_time_ns += gni_driver_begin(pool) - begin;
}

void gni_reserved_add(struct gni_pool *pool, const void *address, size_t nbytes)
{
    gni_assert(gni_pool_is_locked(pool));
    gni_assert(nbytes > 0);
    if (gni_history_is_on())
        gni_history_segment(pool->manager, address, nbytes, true, gni_time_ns());
    pool->reserved_bytes += nbytes;
    gni_watch_note(pool->manager, (int64_t)nbytes);
    if (pool->reserved_bytes > pool->reserved_peak)
        pool->reserved_peak = pool->reserved_bytes;
    gn_memory_statistics *counts = &pool->counts;
    counts->driver_alloc_count++;
    counts->driver_bytes_total += nbytes;
    uint64_t count = counts->driver_alloc_count - counts->driver_free_count;
    if (count > counts->driver_count_peak)
        counts->driver_count_peak = count;
}

void gni_reserved_remove(struct gni_pool *pool, const void *address, size_t nbytes)
{
    gni_assert(gni_pool_is_locked(pool));
    gni_assert(pool->reserved_bytes >= nbytes);
    gni_assert(pool->reserved_bytes >= nbytes);
    if (gni_history_is_on())
        gni_history_segment(pool->manager, address, nbytes, false, gni_time_ns());
    pool->reserved_bytes -= nbytes;
    gni_watch_note(pool->manager, -(int64_t)nbytes);
    pool->counts.driver_free_count++;
}

/* ---- mappings ------------------------------------------------------------------------------- */

gn_status gni_orphans_release(struct gni_pool *pool)
{
    gn_status first = GN_OK;
    gni_assert(gni_pool_is_locked(pool));
    gni_list_each (link, &pool->orphans) {
        struct gni_physical *physical = gni_container_of(link, struct gni_physical, link);
        gn_status status = pool->device->ops->physical_release(pool->device, physical->handle);
        if (status != GN_OK) {
            first = first == GN_OK ? status : first;
            continue;
        }
        gni_list_remove(&physical->link);
        gni_reserved_remove(pool, physical->home, physical->nbytes);
        gni_host_free(physical);
    }
    return first;
}

/* A piece that is mapped nowhere goes back; if the driver refuses, it is tried again later. */
void gni_physical_let_go(struct gni_pool *pool, struct gni_physical *physical)
{
    gni_assert(gni_list_is_empty(&physical->mappings));
    gni_list_push_back(&pool->orphans, &physical->link);
    (void)gni_orphans_release(pool);
}

static void pages_set_mapping(const struct gni_mapping *mapping, struct gni_mapping *behind)
{
    char *end = mapping->start + mapping->physical->nbytes;
    for (char *at = mapping->start; at < end; at += GNI_PAGE)
        gni_page_find(at)->mapping = behind;
}

void gni_mapping_enter(struct gni_mapping *mapping)
{
    gni_assert(mapping->physical->nbytes % GNI_PAGE == 0);
    gni_assert(((uintptr_t)mapping->start & (GNI_PAGE - 1)) == 0);
    gni_list_push_back(&mapping->physical->mappings, &mapping->link);
    mapping->region->space->mapped_bytes[mapping->region->range] += mapping->physical->nbytes;
    pages_set_mapping(mapping, mapping);
}

void gni_mapping_leave(struct gni_mapping *mapping)
{
    pages_set_mapping(mapping, NULL);
    mapping->region->space->mapped_bytes[mapping->region->range] -= mapping->physical->nbytes;
    gni_list_remove(&mapping->link);
}

gn_status gni_mapping_restore(const struct gni_mapping *mapping, gn_status why)
{
    gn_device *device = mapping->region->space->pool->device;
    const struct gni_physical *physical = mapping->physical;
    gn_status status =
        device->ops->virtual_map(device, mapping->start, physical->nbytes, physical->handle);
    if (status == GN_OK)
        status = device->ops->virtual_grant(device, mapping->start, physical->nbytes);
    if (status != GN_OK)
        return gni_error(GN_ERROR_DEVICE_LOST,
                         "%s: the driver refused to map %p again: the blocks on it are lost",
                         gni_device_label(device).text, (void *)mapping->start);
    return why;
}

void gni_physical_move_home(struct gni_pool *pool, struct gni_physical *physical)
{
    const void *before = physical->home;
    physical->home = gni_container_of(physical->mappings.next, struct gni_mapping, link)->start;
    if (gni_history_is_on()) {
        gni_history_segment(pool->manager, before, physical->nbytes, false, gni_time_ns());
        gni_history_segment(pool->manager, physical->home, physical->nbytes, true, gni_time_ns());
    }
}

gn_status gni_mapping_close(struct gni_mapping *mapping)
{
    struct gni_pool *pool = mapping->region->space->pool;
    struct gni_physical *physical = mapping->physical;
    bool was_folded = gni_physical_is_folded(physical);
    uint64_t begin = gni_driver_begin(pool);
    gni_assert(gni_pool_is_locked(mapping->region->space->pool));
    GN_TRY(pool->device->ops->virtual_unmap(pool->device, mapping->start, physical->nbytes));
    gni_mapping_leave(mapping);
    if (was_folded) /* and where one is left, that is folded with none */
        pool->reserve_blocks -= GNI_BLOCKS_BY_PAGE * (gni_physical_is_folded(physical) ? 1U : 2U);
    if (gni_list_is_empty(&physical->mappings))
        gni_physical_let_go(pool, physical);
    else if (physical->home == mapping->start)
        gni_physical_move_home(pool, physical);
    gni_host_free(mapping);
    gni_driver_end(pool, begin);
    return GN_OK;
}

/* Host records of one piece and its mapping. */
static gn_status mapping_create(struct gni_region *region, char *start, size_t nbytes,
                                struct gni_mapping **out)
{
    struct gni_mapping *mapping = gni_host_alloc(sizeof *mapping);
    struct gni_physical *physical = gni_host_alloc(sizeof *physical);
    if (mapping == NULL || physical == NULL) {
        gni_host_free(mapping);
        gni_host_free(physical);
        return gni_error_host_memory(sizeof *mapping);
    }
    gni_list_init(&physical->link);
    gni_list_init(&physical->mappings);
    physical->nbytes = nbytes;
    physical->home = start;
    *mapping = (struct gni_mapping){.start = start, .physical = physical, .region = region};
    *out = mapping;
    return GN_OK;
}

gn_status gni_piece_create(struct gni_region *region, char *start, size_t nbytes,
                           struct gni_mapping **out)
{
    struct gni_pool *pool = region->space->pool;
    struct gni_mapping *mapping = NULL;
    GN_TRY(mapping_create(region, start, nbytes, &mapping));
    gn_status status =
        pool->device->ops->physical_create(pool->device, nbytes, &mapping->physical->handle);
    if (status != GN_OK) {
        gni_host_free(mapping->physical);
        gni_host_free(mapping);
        return status;
    }
    gni_reserved_add(pool, start, nbytes);
    *out = mapping;
    return GN_OK;
}

void gni_piece_destroy(struct gni_mapping *mapping)
{
    gni_assert(gni_list_is_empty(&mapping->physical->mappings));
    gni_physical_let_go(mapping->region->space->pool, mapping->physical);
    gni_host_free(mapping);
}

/* One piece of new memory at an address, not accessible yet. */
static gn_status mapping_open(struct gni_region *region, char *start, size_t nbytes)
{
    gn_device *device = region->space->pool->device;
    struct gni_mapping *mapping = NULL;
    GN_TRY(gni_piece_create(region, start, nbytes, &mapping));
    gn_status status = device->ops->virtual_map(device, start, nbytes, mapping->physical->handle);
    if (status == GN_OK)
        gni_mapping_enter(mapping);
    else
        gni_piece_destroy(mapping);
    return status;
}

/* Undoes mappings as far as the driver allows. */
void gni_mappings_close(char *start, char *end)
{
    for (char *at = start; at < end;) {
        struct gni_mapping *mapping = gni_page_find(at)->mapping;
        at += mapping->physical->nbytes;
        (void)gni_mapping_close(mapping);
    }
}

/* How much of a stretch is one piece. Pages that blocks share go back one by one. A large block has few
 * pieces, since each costs the same; but more than one, so that a part of it can go back, too. */
static size_t piece_bytes(const struct gni_region *region, size_t nbytes,
                          const struct gni_need *need)
{
    const struct gni_pool *pool = region->space->pool;
    if (region->range != GNI_RANGE_LARGE)
        return GNI_PAGE;
    uint64_t allowed = gni_pool_allowed(pool);
    size_t least = need->is_tight                                            ? PIECE_LEAST_TIGHT
                   : pool->reserved_bytes + nbytes < allowed >> PLENTY_SHIFT ? PIECE_LEAST_OF_PLENTY
                                                                             : PIECE_LEAST;
    if (least > allowed >> PIECE_SHIFT && !need->is_tight)
        least = gni_align_up((size_t)(allowed >> PIECE_SHIFT), GNI_PAGE);
    size_t piece = gni_align_up(nbytes / PIECES_MOST, GNI_PAGE);
    return piece > least ? piece : least;
}

/* The first piece of a stretch, if there is a rule for it: the pages that a medium block covers, of which it needs
 * `covered` bytes; and the first page of a large one that hardly uses it: it can then be folded with another page. */
static size_t first_piece_bytes(const struct gni_need *need, size_t covered)
{
    size_t thin = need->nbytes % GNI_PAGE;
    if (need->range == GNI_RANGE_LARGE)
        return thin != 0 && thin <= THIN_PAGE_MOST ? GNI_PAGE : 0;
    return need->range == GNI_RANGE_MEDIUM && !need->is_tight ? covered & ~(GNI_PAGE - (size_t)1)
                                                              : 0;
}

/* Memory for addresses of a virtual region, all of it or none, in pieces that suit the need, which has its block end
 * `covered` bytes behind the start. */
gn_status gni_mappings_open(struct gni_region *region, char *start, size_t nbytes, size_t covered,
                            const struct gni_need *need)
{
    size_t most = piece_bytes(region, nbytes, need);
    size_t first = first_piece_bytes(need, covered);
    struct gni_pool *pool = region->space->pool;
    gni_assert(nbytes % GNI_PAGE == 0);
    gni_assert(region->space->pool->backing == GNI_BACKING_VIRTUAL);
    GN_TRY(gni_address_open(region, start, nbytes, gni_range_shift(region->range)));
    uint64_t begin = gni_driver_begin(pool);
    gn_status status = GN_OK;
    char *at = start;
    while (status == GN_OK && at < start + nbytes) {
        size_t rest = (size_t)(start + nbytes - at);
        size_t piece = rest < most + most / 2 && most > GNI_PAGE ? rest : most;
        if (at == start && first != 0)
            piece = first < nbytes ? first : nbytes;
        status = mapping_open(region, at, piece);
        if (status == GN_OK)
            at += piece;
    }
    if (status == GN_OK)
        status = pool->device->ops->virtual_grant(pool->device, start, nbytes);
    if (status != GN_OK)
        gni_mappings_close(start, at);
    gni_driver_end(pool, begin);
    return status;
}
