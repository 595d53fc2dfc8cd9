/*
 * warp.c: what lanes of a warp do together.
 *
 * A lane that comes to an operation waits for the others that its mask names; the last one to come,
 * or to end, finishes it for all: each result is made from what all brought, and all are ready.
 * Lanes meet by mask and kind, wherever in the source they stand, as the hardware has it.
 */
#include "engine_inside.h"
#include "race.h"

static const char *const warp_words[GN_SIM_WARP_KINDS] = {
    [GN_SIM_SYNCWARP] = "__syncwarp",
    [GN_SIM_SHUFFLE] = "shuffle",
    [GN_SIM_VOTE] = "vote",
    [GN_SIM_MATCH_ANY] = "match",
    [GN_SIM_MATCH_ALL] = "match",
    [GN_SIM_REDUCE_ADD] = "warp reduction",
    [GN_SIM_REDUCE_MIN_SIGNED] = "warp reduction",
    [GN_SIM_REDUCE_MAX_SIGNED] = "warp reduction",
    [GN_SIM_REDUCE_MIN] = "warp reduction",
    [GN_SIM_REDUCE_MAX] = "warp reduction",
    [GN_SIM_REDUCE_AND] = "warp reduction",
    [GN_SIM_REDUCE_OR] = "warp reduction",
    [GN_SIM_REDUCE_XOR] = "warp reduction",
};

const char *sim_warp_word(int kind)
{
    return warp_words[kind];
}

static unsigned long long reduce(int kind, unsigned long long a, unsigned long long b)
{
    switch (kind) {
    case GN_SIM_REDUCE_ADD:
        return a + b;
    case GN_SIM_REDUCE_MIN_SIGNED:
        return (long long)a < (long long)b ? a : b;
    case GN_SIM_REDUCE_MAX_SIGNED:
        return (long long)a > (long long)b ? a : b;
    case GN_SIM_REDUCE_MIN:
        return a < b ? a : b;
    case GN_SIM_REDUCE_MAX:
        return a > b ? a : b;
    case GN_SIM_REDUCE_AND:
        return a & b;
    case GN_SIM_REDUCE_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

/* The lanes among `lanes` that brought this value; for a vote, any value but zero. */
static uint32_t lanes_with(const struct gpu_thread *first, uint32_t lanes, bool any,
                           unsigned long long value)
{
    uint32_t same = 0;
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        if (any ? first[lane].value != 0 : first[lane].value == value)
            same |= 1u << lane;
    }
    return same;
}

/* What a shuffle gives to a lane. False: the lane that it reads is not there. */
static bool shuffle_finish(struct gpu_thread *first, unsigned lane, uint32_t lanes)
{
    struct gpu_thread *self = &first[lane];
    uint32_t source = 1u << self->source;
    if ((lanes & source) != 0) {
        self->result = first[self->source].value;
        return true;
    }
    bool is_named = (self->mask & source) != 0;
    sim_fault_set(is_named ? SIM_FAULT_ABSENT_LANE : SIM_FAULT_BAD_MASK, CUDA_ERROR_LAUNCH_FAILED,
                  sim_place_of(self), sim_nowhere,
                  is_named
                      ? "shuffle with an absent lane: lane %u reads lane %u, which has ended or "
                        "never was (mask 0x%08x)"
                      : "shuffle outside its mask: lane %u reads lane %u (mask 0x%08x)",
                  lane, self->source, self->mask);
    return false;
}

static bool warp_results(struct gpu_thread *first, uint32_t lanes, int kind)
{
    unsigned lead = (unsigned)__builtin_ctz(lanes);
    unsigned long long all = first[lead].value;
    if (kind == GN_SIM_VOTE)
        all = lanes_with(first, lanes, true, 0);
    else if (kind == GN_SIM_MATCH_ALL)
        all = lanes_with(first, lanes, false, all) == lanes ? lanes : 0;
    else if (kind >= GN_SIM_REDUCE_ADD)
        for (uint32_t rest = lanes & (lanes - 1); rest != 0; rest &= rest - 1)
            all = reduce(kind, all, first[__builtin_ctz(rest)].value);
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        if (kind == GN_SIM_MATCH_ANY)
            first[lane].result = lanes_with(first, lanes, false, first[lane].value);
        else if (kind != GN_SIM_SHUFFLE)
            first[lane].result = all;
        else if (!shuffle_finish(first, lane, lanes))
            return false;
    }
    return true;
}

void sim_warp_finish(unsigned number, uint32_t mask, int kind)
{
    struct warp *warp = &sim_run.warps[number];
    struct gpu_thread *first = &sim_run.threads[number * SIM_WARP_LANES];
    uint32_t lanes = mask & ~warp->ended;
    if ((warp->waiting & lanes) != lanes || lanes == 0)
        return;
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
        const struct gpu_thread *thread = &first[__builtin_ctz(rest)];
        if (thread->kind != kind || thread->mask != mask)
            return;
    }
    if (!warp_results(first, lanes, kind))
        return;
    warp->waiting &= ~lanes;
    if (sim_run.has_checks)
        sim_race_warp(number * SIM_WARP_LANES, lanes);
    bool is_descending = sim_run.launch->lane_order == SIM_ORDER_DESCENDING;
    for (uint32_t rest = lanes; rest != 0;) {
        unsigned lane = (unsigned)(is_descending ? 31 - __builtin_clz(rest) : __builtin_ctz(rest));
        sim_ready_push(&first[lane]);
        rest &= ~(1u << lane);
    }
}

void sim_warp_leave(unsigned number, unsigned lane)
{
    struct warp *warp = &sim_run.warps[number];
    struct gpu_thread *first = &sim_run.threads[number * SIM_WARP_LANES];
    warp->ended |= 1u << lane;
    for (uint32_t rest = warp->waiting; rest != 0; rest &= rest - 1) {
        unsigned other = (unsigned)__builtin_ctz(rest);
        if ((warp->waiting & 1u << other) != 0 && (first[other].mask & 1u << lane) != 0)
            sim_warp_finish(number, first[other].mask, first[other].kind);
    }
}

void sim_warp_deadlock(void)
{
    for (unsigned i = 0; i < sim_run.thread_count; i++) {
        const struct gpu_thread *thread = &sim_run.threads[i];
        if (thread->state != THREAD_IN_WARP)
            continue;
        unsigned base = i - i % SIM_WARP_LANES;
        for (uint32_t rest = thread->mask & ~sim_run.warps[base / SIM_WARP_LANES].ended; rest != 0;
             rest &= rest - 1) {
            unsigned lane = (unsigned)__builtin_ctz(rest);
            const struct gpu_thread *absent = &sim_run.threads[base + lane];
            if (absent->state == THREAD_IN_WARP && absent->kind == thread->kind &&
                absent->mask == thread->mask)
                continue;
            sim_fault_set(
                SIM_FAULT_ABSENT_LANE, CUDA_ERROR_LAUNCH_FAILED, sim_place_of(thread),
                sim_place_of(absent),
                "%s with an absent lane: lane %u waits with mask 0x%08x for lane %u, which "
                "waits in another operation (%s)",
                sim_warp_word(thread->kind), i % SIM_WARP_LANES, thread->mask, lane,
                absent->state == THREAD_AT_BARRIER ? "a barrier" : sim_warp_word(absent->kind));
            return;
        }
    }
}
