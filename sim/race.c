/*
 * race.c: see race.h.
 */
#include "race.h"
#include "bridge.h"
#include "engine.h"

#include <stdlib.h>
#include <string.h>

struct cell {
    struct sim_race_access write;
    struct sim_race_access reads[2]; /* the last one, and one of another thread or warp */
};

static struct cell *cells; /* one for each byte; kept for the next launch */
static size_t cell_count;
static uint32_t interval;
static uint32_t clocks[SIM_BLOCK_MAX_THREADS][SIM_WARP_LANES];

/* Intervals go on from launch to launch, so that old cells need no clearing until they run out. */
void sim_race_barrier(void)
{
    if (++interval > 0)
        return;
    if (cell_count > 0)
        memset(cells, 0, cell_count * sizeof *cells);
    interval = 1;
}

bool sim_race_begin(size_t nbytes)
{
    if (nbytes > cell_count) {
        struct cell *more = realloc(cells, nbytes * sizeof *cells);
        if (more == NULL)
            return false;
        memset(more + cell_count, 0, (nbytes - cell_count) * sizeof *more);
        cells = more;
        cell_count = nbytes;
    }
    memset(clocks, 0, sizeof clocks);
    for (unsigned i = 0; i < SIM_BLOCK_MAX_THREADS; i++)
        clocks[i][i % SIM_WARP_LANES] = 1;
    sim_race_barrier();
    return true;
}

void sim_race_warp(unsigned first_thread, uint32_t lanes)
{
    uint32_t known[SIM_WARP_LANES] = {0};
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
        const uint32_t *clock = clocks[first_thread + (unsigned)__builtin_ctz(rest)];
        for (int i = 0; i < SIM_WARP_LANES; i++)
            known[i] = clock[i] > known[i] ? clock[i] : known[i];
    }
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        memcpy(clocks[first_thread + lane], known, sizeof known);
        clocks[first_thread + lane][lane]++;
    }
}

/* Whether an earlier access comes before what `thread` does now. */
static bool is_ordered(const struct sim_race_access *earlier, unsigned thread)
{
    if (earlier->interval != interval || earlier->thread == thread)
        return true;
    if (earlier->thread / SIM_WARP_LANES != thread / SIM_WARP_LANES)
        return false;
    return earlier->clock <= clocks[thread][earlier->thread % SIM_WARP_LANES];
}

static bool is_race(const struct sim_race_access *earlier, unsigned thread, unsigned flags)
{
    return !is_ordered(earlier, thread) && !(earlier->flags & flags & GN_SIM_ATOMIC);
}

static const struct sim_race_access *cell_race(const struct cell *cell, unsigned thread,
                                               unsigned flags)
{
    if (is_race(&cell->write, thread, flags))
        return &cell->write;
    for (int i = 0; i < 2 && (flags & GN_SIM_WRITE) != 0; i++)
        if (is_race(&cell->reads[i], thread, flags))
            return &cell->reads[i];
    return NULL;
}

static void cell_read(struct cell *cell, const struct sim_race_access *now)
{
    struct sim_race_access *last = &cell->reads[0], *kept = &cell->reads[1];
    bool is_other = last->interval == now->interval && last->thread != now->thread;
    bool has_other_warp = kept->interval == now->interval &&
                          kept->thread / SIM_WARP_LANES != now->thread / SIM_WARP_LANES;
    if (is_other &&
        (!has_other_warp || last->thread / SIM_WARP_LANES != now->thread / SIM_WARP_LANES))
        *kept = *last;
    *last = *now;
}

bool sim_race_access(size_t offset, size_t nbytes, unsigned thread, unsigned flags,
                     const void *site, struct sim_race_access *other)
{
    struct sim_race_access now = {
        .interval = interval,
        .clock = clocks[thread][thread % SIM_WARP_LANES],
        .thread = (uint16_t)thread,
        .flags = (uint8_t)flags,
        .site = site,
    };
    for (size_t i = offset; i < offset + nbytes; i++) {
        const struct sim_race_access *earlier = cell_race(&cells[i], thread, flags);
        if (earlier != NULL) {
            *other = *earlier;
            return true;
        }
        if ((flags & GN_SIM_WRITE) != 0)
            cells[i].write = now;
        else
            cell_read(&cells[i], &now);
    }
    return false;
}
