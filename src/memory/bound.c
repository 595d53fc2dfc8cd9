/*
 * bound.c: how much a pool may reserve before idle memory is recycled.
 *
 * When a request needs more memory from the driver, the pool may grow to a bound: the most that was ever live, and a part
 * of it on top. Beyond that idle memory goes back to the driver first (slow_path.c, step 7). The peak is forgotten when
 * the statistics' peaks are reset and memory is trimmed after that.
 *
 *   blocks up to 8 MiB            1/16 of what was live
 *   larger, policy `virtual`      1/44 of what was asked for; 1/14 if more than half of what may be reserved is live,
 *                                 since memory in many pieces fits less well when it runs out
 *   larger, policy `pool`         1/8 of what was live
 *
 * The blocks of a training loop, placed by best fit and joined when they are freed, need less than that. To recycle them
 * would cost driver calls, and cut the memory into pieces that fit less well.
 *
 * A program that recycles again and again gets a wider bound, 1/16, 1/8 and so on up to twice what was live or to the
 * limit, until memory is trimmed. A large request that makes more live than ever before gets no wider bound: there are
 * few of those, and a program is measured by what is reserved at its peak. For large blocks:
 *   BD1  if memory was recycled in an earlier iteration after the same five large requests, it would be in each iteration
 *        to come, so few pieces are enough for the next step. An iteration ends when what is live has fallen far below
 *        its peak and comes near it again: layers of a model repeat the same requests within one. Where threads' caches
 *        meet nearly all requests that is not seen: then an iteration has surely ended when several times the peak was
 *        allocated. (Without that the forward and backward pass of one transformer block on an H200 recycled two blocks
 *        of 256 MiB in each step for ever, and waited for the device for that.)
 *        Without it, blocks of up to 1 GiB at random (bench_alloc_gpu, random up to 1 GiB) need 54,911 driver calls in each
 *        turn of 10,000 allocations, and none with it; 1.45 times what is live is reserved then, instead of 1.09;
 *   BD2  requests that come in ever new orders gain less from a wider bound: it takes a few thousand pieces, once. Blocks
 *        of 64 MiB and more do not count: their use takes longer than to recycle them.
 */
#include "memory/bound.h"

#include <string.h>

enum {
    BOUND_LEAST = 14 << 20,
    BOUND_ASKED = 44,  /* 1 / this of what was asked for is the least bound for large blocks */
    BOUND_SCARCE = 14, /* the same if more than half of what may be reserved is live */
    LARGE_RECYCLED_FIRST = 6144, /* pieces, before the bound of large blocks is widened first */
    LARGE_RECYCLED_MOST = 256,   /* pieces, before it is widened again */
    LARGE_RECYCLED_AGAIN = 64,   /* pieces each time, if the program repeats itself: BD1 */
    LARGE_USED = 64 << 20,       /* bytes of a block whose use takes long: BD2 */
    LARGE_TURN = 4, /* times the peak that is allocated until it is surely another iteration: BD1 */
};

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

/* Counts iterations of a program: what is live falls below 3/4 of its peak, and rises to 7/8 again. */
static void iteration_note(struct gni_pool *pool)
{
    uint64_t live = gni_pool_live_bytes(pool), most = live_most(pool);
    if (live < most - most / 4)
        pool->is_between_iterations = true;
    if (!pool->is_between_iterations || live < most - most / 8)
        return;
    pool->is_between_iterations = false;
    pool->iteration++;
}

void gni_bound_note(struct gni_pool *pool, size_t requested)
{
    gni_assert(gni_pool_is_locked(pool));
    pool->recent_requests =
        pool->recent_requests << GNI_REQUEST_SHIFT | gni_hash_bits(requested, GNI_REQUEST_SHIFT);
    iteration_note(pool);
}

uint64_t gni_bound_reserved(struct gni_pool *pool, const struct gni_need *need)
{
    struct gni_totals now = gni_pool_totals(pool);
    uint64_t live = (uint64_t)now.live_bytes + pool->pending_bytes + need->nbytes;
    bool is_peak = live > live_most(pool);
    gni_assert(gni_pool_is_locked(pool));
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
    /* Not widened beyond the limit: there all idle memory would have to go back. */
    return larger(allowed + BOUND_LEAST, smaller(wide + BOUND_LEAST, pool->limit));
}

bool gni_bound_allows(struct gni_space *space, const struct gni_need *need)
{
    return space->is_private || space->pool->reserved_bytes + gni_space_growth(space, need) <=
                                    gni_bound_reserved(space->pool, need);
}

bool gni_bound_allows_double(struct gni_space *space, const struct gni_need *need)
{
    struct gni_pool *pool = space->pool;
    uint64_t live = larger(live_most(pool), gni_pool_live_bytes(pool) + need->nbytes);
    uint64_t grown = pool->reserved_bytes + gni_space_growth(space, need);
    gni_assert(!space->is_private);
    return grown <= pool->limit && grown <= 2 * live + BOUND_LEAST;
}

/* Whether memory was recycled after the same requests in an earlier iteration. It is remembered that it was. */
static bool is_recycled_again(struct gni_pool *pool)
{
    struct gni_recycling *place =
        &pool->recyclings[gni_hash_bits(pool->recent_requests, GNI_RECYCLINGS_SHIFT)];
    uint64_t alloc_bytes = (uint64_t)gni_pool_totals(pool).alloc_bytes;
    bool is_known = place->requests == pool->recent_requests;
    bool is_again = is_known && (place->iteration != pool->iteration ||
                                 alloc_bytes - place->alloc_bytes > LARGE_TURN * live_most(pool));
    if (!is_known || is_again)
        *place = (struct gni_recycling){.requests = pool->recent_requests,
                                        .alloc_bytes = alloc_bytes,
                                        .iteration = pool->iteration};
    return is_again;
}

/* What the pieces that went back for a large block weigh against the `most` of the next step: BD1, BD2. */
static size_t large_weight(struct gni_pool *pool, const struct gni_need *need, size_t pieces,
                           size_t most)
{
    if (pieces != 0 && is_recycled_again(pool))
        return pieces * (most / LARGE_RECYCLED_AGAIN);
    return need->nbytes < LARGE_USED ? pieces : 0;
}

void gni_bound_widen(struct gni_space *space, const struct gni_need *need, size_t pieces)
{
    struct gni_pool *pool = space->pool;
    unsigned *shift = &pool->bound_shift[need->range];
    size_t most = space->mapped_bytes[need->range] / GNI_PAGE / 8 + 8;
    gni_assert(gni_pool_is_locked(space->pool));
    gni_assert(need->range < GNI_RANGE_COUNT);
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

void gni_bound_reset(struct gni_pool *pool)
{
    for (int range = 0; range < GNI_RANGE_COUNT; range++) {
        pool->bound_shift[range] = gni_pool_bound_shift(pool, (enum gni_range)range);
        pool->recycled_pieces[range] = 0;
    }
    memset(pool->recyclings, 0, sizeof pool->recyclings);
}
