/*
 * out_of_memory.c: how far the pool goes to meet a request, and what it says when it cannot.
 *
 * In this order, and no further than needed:
 *   1  a free block of the stream's own heap, then of the clean heap
 *   2  blocks of other streams whose work is known to be done, joined with the stream's own where they touch; for
 *      blocks of 1 to 8 MiB, idle memory of larger ones
 *   3  a region that a thread has to itself, with a free block that fits; what the threads' caches hold of this
 *      range, where that is enough to matter; for large blocks beyond the bound of 4, all that they hold above 1 MiB
 *   4  more memory from the driver; but if that would be more than a bound above what was ever live, idle
 *      memory is recycled first: as much as is wholly free goes back; for large blocks, work that uses it is waited
 *      for, the oldest first
 *   5  the same, where the driver has no more: all idle memory that no work uses goes back, so that what comes
 *      instead can lie together
 *   6  a block of another stream whose work is not done, for which this stream waits on the device
 *   7  the threads' caches are emptied, the device is waited for, everything idle goes back
 *   8  pieces that are partly free are divided, and half-empty pages folded, where nobody can know their addresses;
 *      then, for blocks of 1 to 8 MiB, idle memory of larger ones once more, however little is left
 *   9  the user's handler (pool.c), and from the start
 *
 * The bound is a part of the most that was live; that peak is forgotten when the statistics' peaks are reset and memory
 * is trimmed after that. For blocks up to 8 MiB it is 1/16. For larger ones with the policy `virtual` it is 1/44 of what
 * was asked for, or 1/14 where more than half of what may be reserved is live: memory in many pieces fits less well when
 * it runs out. With the policy `pool` it is 1/8 of what was live. The
 * blocks of a training loop, placed by best fit and joined when they are freed, need less than that; recycling
 * them would cost driver calls, and cut the memory into pieces that fit less well. A program that recycles on and
 * on is given a wider bound, 1/16, 1/8 and so on up to twice what was live or to the limit, until memory is trimmed. A
 * large request that makes more live than ever before has no wider bound: there are few of those, and what is reserved
 * at the peak is what a program is measured by. For large blocks it matters whether the program repeats itself:
 *   W1  where memory was recycled in an earlier turn after the same five large requests, it would be in each turn to
 *       come: few pieces are enough for the next of the four steps. A turn ends when what is live has fallen far
 *       below its peak and comes near it again: layers of a model repeat the same requests within one. What a
 *       program pays until its turns need no driver is so many pieces, however long it runs, as long as twice what was
 *       live is enough for it;
 *   W2  requests that come in ever new orders gain less from a wider bound: it holds for a few thousand pieces, which
 *       take less than a second, once. For blocks of 64 MiB and more, whose use takes long, nothing is widened.
 */
#include "memory/cache.h"

#include "base/text.h"
#include "memory/history.h"
#include "memory/tile.h"

#include <stdio.h>
#include <sys/resource.h>

enum {
    BOUND_LEAST = 14 << 20,
    BOUND_ASKED = 44,      /* 1 / this of what was asked for is the least bound for large blocks */
    BOUND_SCARCE = 14,     /* the same where more than half of what may be reserved is live */
    LARGE_UNIT = 64 << 20, /* bytes whose use takes longer than to move them to other addresses */
    LARGE_RECYCLED_FIRST = 6144, /* units, before the bound is widened */
    LARGE_RECYCLED_MOST = 256,   /* and again */
    LARGE_RECYCLED_AGAIN = 64,   /* each time, where the program repeats itself: W1 */
    LARGE_USED = 64 << 20,       /* bytes of a block whose use takes long: W2 */
    IDLE_MOST = 256,             /* 1 / this of a range idle: it comes in small pieces */
    LOOKS_MOST = 4,              /* at events that an idle device completes at once */
    LOOK_NS = 4000,
    FLUSHED_LEAST = 2 << 20, /* so that it need not be done again soon */
    CACHED_LEAST = 4 << 20,  /* of small blocks, which the threads keep in any case */
    YIELDS_MOST = 16,        /* regions that threads take from each other before memory grows */
};

/* A medium block in idle memory of large blocks, or NULL. Only where the pieces around it can still go back, one by
 * one: with the policy `pool` it would keep a whole segment. */
static gn_memory_block *large_take(const struct gni_space *space, const struct gni_need *need)
{
    if (need->range != GNI_RANGE_MEDIUM || space->is_private ||
        space->pool->backing != GNI_BACKING_VIRTUAL)
        return NULL;
    gn_memory_block *block = gni_fit_best(&need->heap->fit[GNI_RANGE_LARGE], need->nbytes);
    if (block == NULL)
        block = gni_fit_best(&space->clean->fit[GNI_RANGE_LARGE], need->nbytes);
    if (block == NULL)
        return NULL;
    return gni_tile_carve(block, need->heap, GNI_RANGE_LARGE, need->nbytes, need->offset);
}

/* Whether large_take() is tried before memory grows: it costs no driver call, and less is reserved. Only while a quarter
 * of what may be reserved is left: a piece with a block whose address is known cannot be divided when memory runs out.
 * And not where the configuration limits what may be idle: the piece cannot go back before the block's work is done. */
static bool is_large_shared(const struct gni_pool *pool)
{
    return !pool->is_limited && pool->reserved_bytes <= gni_pool_allowed(pool) / 4 * 3;
}

/* Steps 1 and 2. */
static gn_memory_block *idle_take(struct gni_space *space, struct gni_need *need)
{
    gn_memory_block *block = gni_space_take(need->heap, need);
    if (block == NULL && need->heap != space->clean)
        block = gni_space_take(space->clean, need);
    if (block == NULL && !space->is_private &&
        gni_space_retire(space, need->heap, 1U << need->range))
        block = gni_space_take(space->clean, need);
    if (block == NULL && !space->is_private && need->heap != space->clean &&
        gni_heap_adopt(need->heap, need->range, false))
        block = gni_space_take(need->heap, need);
    if (block == NULL && is_large_shared(space->pool))
        block = large_take(space, need);
    return block;
}

static uint64_t larger(uint64_t one, uint64_t two)
{
    return one > two ? one : two;
}

static uint64_t smaller(uint64_t one, uint64_t two)
{
    return one < two ? one : two;
}

/* The peak for the bounds. A reset of the statistics' peaks alone does not lower it: a program that resets them in each
 * step needs as much in the next. */
static uint64_t live_most(const struct gni_pool *pool)
{
    return larger(pool->live_past, atomic_load_explicit(&pool->live_peak, memory_order_relaxed));
}

static uint64_t requested_most(const struct gni_pool *pool)
{
    return larger(pool->requested_past,
                  atomic_load_explicit(&pool->requested_peak, memory_order_relaxed));
}

/* Counts the turns of a program: what is live falls to less than 3/4 of its peak, and rises to 7/8 again. */
static void turn_note(struct gni_pool *pool)
{
    uint64_t live = gni_pool_live_bytes(pool), most = live_most(pool);
    if (live < most - most / 4)
        pool->is_turning = true;
    if (!pool->is_turning || live < most - most / 8)
        return;
    pool->is_turning = false;
    pool->turn++;
}

void gni_pool_trail_add(struct gni_pool *pool, size_t requested)
{
    pool->trail = pool->trail << GNI_TRAIL_SHIFT | gni_hash_bits(requested, GNI_TRAIL_SHIFT);
    turn_note(pool);
}

/* What may be reserved before idle memory is recycled: the most that was ever live, and a bound, which is not widened
 * beyond the limit: there all idle memory would have to go back. */
static uint64_t reserved_allowed(struct gni_pool *pool, const struct gni_need *need)
{
    struct gni_totals now = gni_pool_totals(pool);
    uint64_t live = (uint64_t)now.live_bytes + pool->pending_bytes + need->nbytes;
    bool is_peak = live > live_most(pool);
    live = larger(live, larger(live_most(pool), pool->warm_bytes));
    uint64_t allowed = live + (live >> gni_pool_bound_shift(pool, need->range));
    uint64_t wide = live + (live >> pool->bound_shift[need->range]);
    if (need->range == GNI_RANGE_LARGE) {
        uint64_t asked = now.alloc_bytes - now.free_bytes + need->requested;
        asked = larger(asked, requested_most(pool));
        bool is_scarce = live > gni_pool_allowed(pool) / 2;
        allowed = larger(allowed, asked + asked / (is_scarce ? BOUND_SCARCE : BOUND_ASKED));
        wide = is_peak ? 0 : wide;
    }
    return larger(allowed + BOUND_LEAST, smaller(wide + BOUND_LEAST, pool->limit));
}

/* What the caches keep of small blocks in any case. Of the host's memory each thread keeps as much: threads that
 * empty each other's caches in turn cost more than that. */
static size_t cached_least(const struct gni_pool *pool)
{
    size_t count = 0;
    if (!pool->has_claims)
        return CACHED_LEAST;
    for (const struct gni_cache *cache = atomic_load(&pool->caches); cache != NULL;
         cache = cache->next)
        count += cache->heap != NULL;
    return count > 1 ? count * CACHED_LEAST : CACHED_LEAST;
}

/* Whether the threads' caches hold so much of the need's range that it is better used than kept: small
 * blocks are what the caches are for, and their refill costs more than a page. */
static bool is_worth_flushing(struct gni_space *space, const struct gni_need *need)
{
    size_t cached = gni_caches_bytes(space->pool, need->range);
    if (need->range > GNI_RANGE_SMALL)
        return cached >= need->nbytes;
    return cached > cached_least(space->pool) && cached > space->mapped_bytes[need->range] / 3;
}

static bool is_within_bound(struct gni_space *space, const struct gni_need *need)
{
    return space->is_private || space->pool->reserved_bytes + gni_space_growth(space, need) <=
                                    reserved_allowed(space->pool, need);
}

/* Whether memory was recycled after the same requests in an earlier turn; it is remembered that it was. */
static bool is_recycled_again(struct gni_pool *pool)
{
    struct gni_trail *place = &pool->recycled_trails[gni_hash_bits(pool->trail, GNI_TRAILS_SHIFT)];
    bool is_known = place->requests == pool->trail,
         is_again = is_known && place->turn != pool->turn;
    if (!is_known || is_again)
        *place = (struct gni_trail){.requests = pool->trail, .turn = pool->turn};
    return is_again;
}

/* What the pieces that went back for a large block weigh against the `most` of the next step: W1, W2. */
static size_t large_weight(struct gni_pool *pool, const struct gni_need *need, size_t pieces,
                           size_t most)
{
    if (pieces != 0 && is_recycled_again(pool))
        return pieces * (most / LARGE_RECYCLED_AGAIN);
    return need->nbytes < LARGE_USED ? pieces : 0;
}

/* Recycling that goes on and on earns a wider bound: 1/16 of what is live, then 1/8 and so on. */
static void bound_widen(struct gni_space *space, const struct gni_need *need, size_t pieces)
{
    struct gni_pool *pool = space->pool;
    unsigned *shift = &pool->bound_shift[need->range];
    size_t most = space->mapped_bytes[need->range] / GNI_PAGE / 8 + 8;
    if (need->range == GNI_RANGE_LARGE) {
        most = *shift > 3 ? LARGE_RECYCLED_FIRST : LARGE_RECYCLED_MOST;
        pieces = large_weight(pool, need, pieces, most);
    }
    pool->recycled_pieces[need->range] += pieces;
    if (pool->recycled_pieces[need->range] < most || *shift == 0)
        return;
    *shift = *shift > 4 ? 4 : *shift - 1;
    pool->recycled_pieces[need->range] = 0;
}

/* Whether a thread's region should be taken from it: threads that take them from each other on and on have too few,
 * and get more, up to twice what was live. */
static bool is_yield_due(struct gni_space *space, const struct gni_need *need)
{
    struct gni_pool *pool = space->pool;
    if (space->is_private || need->range != GNI_RANGE_MEDIUM || !gni_claims_exist(pool))
        return false;
    uint64_t live = larger(live_most(pool), gni_pool_live_bytes(pool) + need->nbytes);
    uint64_t grown = pool->reserved_bytes + gni_space_growth(space, need);
    return pool->yield_count < YIELDS_MOST || grown > pool->limit || grown > 2 * live + BOUND_LEAST;
}

/* Where a large block would pass the bound, what threads keep idle for themselves goes to the heaps. What one thread
 * frees in each turn another may need: autograd has a thread of its own. */
static gn_memory_block *large_gather(struct gni_space *space, struct gni_need *need)
{
    struct gni_pool *pool = space->pool;
    gni_claims_shed(pool);
    for (enum gni_range range = GNI_RANGE_MEDIUM; range <= GNI_RANGE_LARGE; range++)
        if (pool->backing == GNI_BACKING_VIRTUAL && gni_caches_bytes(pool, range) >= FLUSHED_LEAST)
            gni_caches_flush_range(pool, range, SIZE_MAX);
    return idle_take(space, need);
}

/* Step 3. */
static gn_memory_block *caches_take(struct gni_space *space, struct gni_need *need)
{
    gn_memory_block *block = NULL;
    if (is_yield_due(space, need) && gni_claims_yield(space->pool, need)) {
        space->pool->yield_count++;
        block = idle_take(space, need);
    }
    if (block != NULL)
        return block;
    if (need->range == GNI_RANGE_LARGE && !is_within_bound(space, need))
        return large_gather(space, need);
    if (!is_worth_flushing(space, need))
        return NULL;
    gni_caches_flush_range(space->pool, need->range, FLUSHED_LEAST);
    return idle_take(space, need);
}

static bool has_marks(const struct gni_space *space)
{
    gni_list_each (link, &space->heaps)
        if (!gni_list_is_empty(&gni_container_of(link, struct gni_heap, link)->marks))
            return true;
    return false;
}

/* Takes in what the streams have done. A device that is idle completes a fresh event within microseconds:
 * a busy one is not waited for. */
static void look_at_streams(struct gni_space *space)
{
    gni_list_each (link, &space->heaps)
        gni_heap_close(gni_container_of(link, struct gni_heap, link));
    gni_space_poll(space);
    for (int looks = 1; looks < LOOKS_MOST && has_marks(space); looks++) {
        uint64_t begin = gni_time_ns();
        while (gni_time_ns() - begin < LOOK_NS)
            ;
        gni_space_poll(space);
    }
}

/* Gives idle memory back that no work uses, so much that the need's growth stays within `allowed` bytes. What
 * goes back may have been what the need would have grown beside. Where something did, memory is in pieces. Work that
 * uses it can be waited for, the oldest first, so that the host stays ahead of the device. */
static void make_room(struct gni_space *space, struct gni_need *need, uint64_t allowed,
                      bool is_waiting)
{
    uint64_t before = space->pool->counts.driver_free_count;
    bool is_going_on = true;
    look_at_streams(space);
    while (is_going_on) {
        uint64_t wanted = space->pool->reserved_bytes + gni_space_growth(space, need);
        is_going_on =
            wanted > allowed && (gni_space_release(space, (size_t)(wanted - allowed)) > 0 ||
                                 (is_waiting && gni_space_wait(space)));
    }
    need->is_tight |= space->pool->counts.driver_free_count != before;
}

/* Step 4, before growing. */
static void recycle(struct gni_space *space, struct gni_need *need)
{
    struct gni_pool *pool = space->pool;
    uint64_t before = pool->counts.driver_free_count;
    make_room(space, need, reserved_allowed(pool, need), need->range == GNI_RANGE_LARGE);
    bound_widen(space, need, (size_t)(pool->counts.driver_free_count - before));
}

/* Whether memory lies idle that does not fit what is asked for: it will have to be recycled. What blocks leave
 * of their last pages will not. */
static bool is_in_pieces(const struct gni_space *space, enum gni_range range)
{
    size_t idle = 0, most = space->mapped_bytes[range] / IDLE_MOST;
    gni_list_each (link, &space->heaps) {
        const struct gni_fit *fit = &gni_container_of(link, struct gni_heap, link)->fit[range];
        for (const gn_memory_block *block =
                 gni_fit_from(fit, gni_class_down(GNI_PAGE >> GNI_GRAIN_SHIFT));
             block != NULL && idle <= most; block = gni_fit_next(fit, block))
            idle += block->nbytes;
    }
    return idle > most;
}

static gn_status grow(struct gni_space *space, struct gni_need *need, gn_memory_block **block)
{
    need->is_tight |= space->pool->is_tight || is_in_pieces(space, need->range);
    GN_TRY(gni_space_grow(space, need));
    need->is_grown = true;
    if (need->range == GNI_RANGE_MEDIUM)
        space->pool->yield_count = 0;
    *block = gni_space_take(need->heap, need);
    gni_assert(*block != NULL);
    return GN_OK;
}

/* Step 8, unless even what nobody asked for would not be enough. Room is made for all of the need: what it would have
 * grown beside may be what goes back. */
static gn_status squeeze(struct gni_space *space, struct gni_need *need, gn_memory_block **block)
{
    struct gni_pool *pool = space->pool;
    struct gni_totals now = gni_pool_totals(pool);
    uint64_t before = pool->reserved_bytes, growth = gni_align_up(need->nbytes, GNI_PAGE);
    uint64_t asked = now.alloc_bytes - now.free_bytes + need->requested;
    gn_memory_compaction report = {0};
    if (asked > gni_pool_allowed(pool))
        return GN_ERROR_OUT_OF_MEMORY; /* as the last try has told */
    gn_status status = gni_pool_squeeze(pool, true, before > growth ? before - growth : 0, &report);
    bool is_short = status == GN_ERROR_OUT_OF_MEMORY || status == GN_ERROR_OUT_OF_HOST_MEMORY;
    if (is_short || status == GN_ERROR_CAPTURE ||
        (status == GN_OK && pool->reserved_bytes == before))
        return GN_ERROR_OUT_OF_MEMORY;
    GN_TRY(status);
    return grow(space, need, block);
}

/* Waits for the device, unless a graph is captured: false then. A launch that fails is reported here, maybe for lack of
 * memory; that is not this request's failure, whose message would take its place. */
static gn_status idle_wait(struct gni_pool *pool, bool *is_idle)
{
    gn_status status = gni_pool_synchronize(pool);
    *is_idle = status == GN_OK;
    if (status == GN_ERROR_CAPTURE)
        return GN_OK;
    return status == GN_ERROR_OUT_OF_MEMORY ? GN_ERROR_DRIVER : status;
}

/* Steps 7 and 8. */
static gn_status recover(struct gni_space *space, struct gni_need *need, gn_memory_block **block)
{
    struct gni_pool *pool = space->pool;
    pool->counts.retry_count++;
    (void)gni_caches_flush(pool, NULL);
    bool is_idle = false;
    if (space != pool->capture)
        GN_TRY(idle_wait(pool, &is_idle));
    if (is_idle)
        gni_pool_unfold(pool);
    else
        gni_pool_drain(pool);
    (void)gni_space_retire(&pool->main, space == &pool->main ? need->heap : NULL, GNI_RANGES_ALL);
    *block = idle_take(space, need);
    if (*block != NULL)
        return GN_OK;
    /* What is free must be one block: pieces of two heaps hold up their segment, and blocked bytes of two
     * heaps would never join. */
    (void)gni_space_retire(&pool->main, NULL, GNI_RANGES_ALL);
    (void)gni_space_release(&pool->main, SIZE_MAX);
    if (space == &pool->main &&
        need->heap != space->clean) /* new memory joins what cannot go back */
        (void)gni_heap_adopt(need->heap, need->range, true);
    gn_status status = grow(space, need, block);
    if (status == GN_ERROR_OUT_OF_MEMORY && pool->backing == GNI_BACKING_VIRTUAL && is_idle)
        status = squeeze(space, need, block);
    if (status == GN_ERROR_OUT_OF_MEMORY && (*block = large_take(space, need)) != NULL)
        status = GN_OK;
    return status;
}

/* Steps 1 to 8. */
static gn_status meet(struct gni_space *space, struct gni_need *need, gn_memory_block **block)
{
    gn_memory_block *found = idle_take(space, need);
    if (found == NULL)
        found = caches_take(space, need);
    gn_status status = GN_OK;
    if (found == NULL) {
        if (!is_within_bound(space, need))
            recycle(space, need);
        status = grow(space, need, &found);
        if (status == GN_ERROR_OUT_OF_MEMORY && !space->is_private) {
            uint64_t reserved = space->pool->reserved_bytes;
            space->pool->is_tight = true;
            make_room(space, need, 0, false);
            if (space->pool->reserved_bytes < reserved)
                status = grow(space, need, &found);
        }
        if (status == GN_ERROR_OUT_OF_MEMORY && (found = gni_space_steal(space, need)) != NULL)
            status = GN_OK;
        if (status == GN_ERROR_OUT_OF_MEMORY)
            status = recover(space, need, &found);
    }
    GN_TRY(status);
    *block = found;
    return GN_OK;
}

gn_status gni_pool_meet(struct gni_pool *pool, struct gni_need *need, gn_memory_block **block)
{
    if (need->nbytes > pool->total_bytes && pool->device->ops->is_bounded)
        return gni_error(GN_ERROR_OUT_OF_MEMORY, "%zu bytes are more than there are",
                         need->nbytes); /* nothing is given up for it */
    GN_TRY(gni_blocks_reserve(&pool->blocks, pool->reserve_blocks + 4));
    /* Heaps without blocks may go while others are looked through: not this one. */
    need->heap->block_count++;
    gn_status status = meet(need->heap->space, need, block);
    need->heap->block_count--;
    return status;
}

/* ---- the message ---------------------------------------------------------------------------- */

/* The system has the bytes, and its pages need not be neighbours: some limit is why the process has none. */
static const char *advice_host(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        return "The system has that much, but this process may not take it: ulimit -v";
    if (getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        return "The system has that much, but this process may not take it: ulimit -d";
    return "The system has that much, but refused it: vm.overcommit_memory, or a container's limit";
}

/* What would have helped, from the most likely on. */
static const char *advice(struct gni_pool *pool, const gn_memory_statistics *now, size_t nbytes,
                          size_t device_free)
{
    bool is_host = pool->holder->ops->is_host_memory;
    if (nbytes > pool->total_bytes)
        return is_host ? "The system never has that much" : "The device never has that much";
    if (now->limit_bytes != UINT64_MAX && now->live_bytes + nbytes > now->limit_bytes &&
        now->live_bytes + nbytes <= pool->total_bytes)
        return pool->device->ops->has_options
                   ? "A larger memory fraction (GENESIS_CUDA_MEMORY_FRACTION, set_memory_fraction) "
                     "would allow it"
                   : "A larger memory fraction (set_memory_fraction) would allow it";
    if (now->pending_bytes >= nbytes)
        return "Blocks wait for work on other streams: free them earlier, or synchronize";
    if (is_host && now->cached_bytes < nbytes && device_free >= nbytes)
        return advice_host();
    if (now->cached_bytes + device_free >= nbytes)
        return pool->backing == GNI_BACKING_VIRTUAL
                   ? "Enough is free, but in pieces: compact() can put them together"
               : pool->device->ops->has_options
                   ? "Enough is free, but in pieces: the policy virtual "
                     "(GENESIS_CUDA_ALLOCATOR=virtual) can use them"
                   : "Enough is free, but in pieces: smaller blocks would fit";
    return "Free blocks, or use smaller ones; other processes may hold the rest";
}

gn_status gni_pool_out_of_memory(struct gni_pool *pool, size_t nbytes)
{
    gn_device *device = pool->device;
    gn_memory_statistics now;
    size_t device_free = 0, device_total = 0;
    gni_pool_lock(pool);
    pool->counts.out_of_memory_count++;
    gni_pool_unlock(pool);
    gni_pool_statistics(pool, &now);
    (void)pool->holder->ops->memory_info(pool->holder, &device_free, &device_total);
    bool is_host = pool->holder->ops->is_host_memory;
    uint64_t ours = now.reserved_bytes;
    uint64_t others = device_total > device_free + ours ? device_total - device_free - ours : 0;
    char limit[64] = "", holders[2048];
    gni_manager_holders(pool->manager, holders, sizeof holders);
    if (now.limit_bytes != UINT64_MAX)
        (void)snprintf(limit, sizeof limit, ", of %s that it may take",
                       gni_size_text(now.limit_bytes).text);
    return gni_error(
        GN_ERROR_OUT_OF_MEMORY,
        "%s: out of memory: %s were asked for. This process has %s%s: %s live in %llu block%s, %s "
        "cached (the largest piece %s), %s pending. The %s has %s free of %s; other processes "
        "%shold %s. %s.%s",
        gni_device_label(device).text, gni_size_text(nbytes).text, gni_size_text(ours).text, limit,
        gni_size_text(now.live_bytes).text, (unsigned long long)now.live_count,
        gni_plural(now.live_count), gni_size_text(now.cached_bytes).text,
        gni_size_text(now.largest_free_bytes).text, gni_size_text(now.pending_bytes).text,
        is_host ? "system" : "device", gni_size_text(device_free).text,
        gni_size_text(device_total).text, is_host ? "" : "and the driver ",
        gni_size_text(others).text, advice(pool, &now, nbytes, device_free), holders);
}
