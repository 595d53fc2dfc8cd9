/*
 * debug.c: GENESIS_DEBUG: what blocks hold that nobody should look at, and guard zones.
 *
 *     |  guard  |  what the caller asked for  |  guard and the rest of the rounded block  |
 *
 * poison   fresh blocks hold 0xD0, freed ones 0xDD, written in stream order. Memory of the host is also written by
 *          threads that know of no stream: there the stream is waited for, or a fill that another thread's work
 *          has held up would come over what they wrote
 * guard    zones before and behind each block hold 0xFD and are checked when it is freed; the check waits
 *          for the stream
 * sync     the stream is waited for at each allocation and free, so that an error of the device shows
 *          where it arises
 */
#include "memory/pool.h"

#include "base/host.h"
#include "base/option.h"

#include <string.h>

enum {
    POISON_FRESH = 0xD0,
    POISON_FREED = 0xDD,
    GUARD_BYTE = 0xFD,
};

/* The zone behind the bytes that were asked for. */
static char *guard_behind(const gn_memory_block *block, size_t *nbytes)
{
    char *start = (char *)block->address + block->requested;
    *nbytes = (size_t)(gni_block_end(block) - start);
    if (*nbytes > 2 * GNI_GUARD)
        *nbytes = 2 * GNI_GUARD;
    return start;
}

/* Waits for the fills, where that is asked for or needed. A captured fill does not run now. */
static gn_status debug_wait(const struct gni_pool *pool, gn_stream *stream)
{
    bool is_capturing;
    if ((pool->debug & GNI_DEBUG_SYNC) == 0 && !pool->holder->ops->is_host_memory)
        return GN_OK;
    GN_TRY(stream->device->ops->stream_is_capturing(stream, &is_capturing));
    return is_capturing ? GN_OK : gn_stream_synchronize(stream);
}

gn_status gni_debug_alloc(struct gni_pool *pool, gn_memory_block *block, gn_stream *stream)
{
    gni_assert(gni_block_state(block) == GNI_BLOCK_LIVE && !gni_pool_is_locked(pool));
    if (pool->debug & GNI_DEBUG_POISON && block->requested > 0)
        GN_TRY(gn_fill(block->address, pool->is_zeroed ? 0 : POISON_FRESH, 1, block->requested,
                       stream));
    if (pool->debug & GNI_DEBUG_GUARD) {
        size_t nbytes;
        char *behind = guard_behind(block, &nbytes);
        GN_TRY(gn_fill(block->start, GUARD_BYTE, 1, GNI_GUARD, stream));
        GN_TRY(gn_fill(behind, GUARD_BYTE, 1, nbytes, stream));
    }
    return debug_wait(pool, stream);
}

/* Compares a zone with what was written there; where the first wrong byte is, or -1. */
static gn_status zone_check(gn_stream *stream, const char *zone, size_t nbytes, ptrdiff_t *wrong)
{
    unsigned char bytes[2 * GNI_GUARD];
    GN_TRY(gn_copy(bytes, zone, nbytes, stream));
    GN_TRY(gn_stream_synchronize(stream));
    *wrong = -1;
    for (size_t i = 0; i < nbytes && *wrong < 0; i++)
        if (bytes[i] != GUARD_BYTE)
            *wrong = (ptrdiff_t)i;
    return GN_OK;
}

static gn_status guards_check(struct gni_pool *pool, const gn_memory_block *block,
                              gn_stream *stream)
{
    ptrdiff_t wrong;
    size_t nbytes;
    GN_TRY(zone_check(stream, block->start, GNI_GUARD, &wrong));
    ptrdiff_t place = wrong >= 0 ? wrong - GNI_GUARD : 0;
    if (wrong < 0) {
        const char *behind = guard_behind(block, &nbytes);
        GN_TRY(zone_check(stream, behind, nbytes, &wrong));
        place = wrong + (ptrdiff_t)block->requested;
    }
    if (wrong < 0)
        return GN_OK;
    return gni_error(
        GN_ERROR_CORRUPTED,
        "%s: the block of %zu bytes at %p (allocation %llu) was written out of bounds, "
        "at byte %td; it is not freed",
        gni_device_label(pool->device).text, block->requested, block->address,
        (unsigned long long)block->number, place);
}

/* Whether the calling thread can put work into the block's stream, behind what uses the block. What a graph was captured
 * with is left alone: its guards are there once it has run, and it may run again. */
static bool block_is_within_reach(struct gni_pool *pool, gn_memory_block *block, bool *has_uses)
{
    gni_pool_lock(pool);
    bool is_live = gni_block_state(block) == GNI_BLOCK_LIVE;
    bool is_reached =
        is_live && !block->heap->space->is_private && gni_heap_can_record(block->heap);
    *has_uses = is_live && block->uses != NULL;
    gni_pool_unlock(pool);
    return is_reached;
}

gn_status gni_debug_free(struct gni_pool *pool, gn_memory_block *block)
{
    bool has_uses;
    gni_assert(!gni_pool_is_locked(pool));
    if (!block_is_within_reach(pool, block, &has_uses))
        return GN_OK;
    gn_stream *stream = &block->heap->stream;
    if (pool->debug & GNI_DEBUG_GUARD)
        GN_TRY(guards_check(pool, block, stream));
    if (pool->debug & GNI_DEBUG_POISON && !has_uses && block->requested > 0)
        GN_TRY(gn_fill(block->address, POISON_FREED, 1, block->requested, stream));
    return debug_wait(pool, stream);
}
