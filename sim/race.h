/*
 * race.h: finds two threads of a block that use the same shared memory with nothing between them.
 *
 * Two accesses to a byte by two threads conflict when one of them writes and not both are atomic.
 * They are ordered by a barrier of the block, or, within a warp, by any operation that the two
 * lanes did together (__syncwarp, a shuffle, a vote). What is known of order:
 *
 *   interval    the number of barriers so far, over all blocks of a launch; accesses of different
 *               intervals are ordered
 *   clock       each thread counts its warp operations; for each lane of its warp it knows the
 *               count up to which that lane's accesses come before its own (a vector clock)
 *
 * Each byte remembers its last write and its last reads by two threads, if possible of two warps.
 * So a race with a third reader can stay unseen in one run, and nothing that is reported is
 * ordered.
 *
 * Threads: one launch at a time (engine.h, E1).
 */
#ifndef GNI_SIM_RACE_H
#define GNI_SIM_RACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One access, as a later one remembers it. */
struct sim_race_access {
    uint32_t interval; /* 0: none */
    uint32_t clock;    /* of the thread, at that time */
    uint16_t thread;
    uint8_t flags; /* of gn_sim_access_flags */
    const void *site;
};

/* Begins a launch whose block has this much shared memory. False: no memory for it. */
bool sim_race_begin(size_t nbytes);

/* A barrier, or another block. */
void sim_race_barrier(void);

/* These lanes of a warp met; the numbers are of threads in the block. */
void sim_race_warp(unsigned first_thread, uint32_t lanes);

/*
 * An access by a thread, at an offset into the shared memory. True: it races with the one that is
 * stored at `other`.
 */
bool sim_race_access(size_t offset, size_t nbytes, unsigned thread, unsigned flags,
                     const void *site, struct sim_race_access *other);

#endif
