/*
 * global.h: finds two blocks of a launch that use the same global memory with nothing between them.
 *
 * Blocks run one after the other here, and in any order or at the same time on a GPU. So what one
 * block writes and another one uses must be ordered as the memory model of PTX asks for it:
 *
 *     the write; a fence; a strong write to some address  ...  in one block
 *     a strong read of that address; a fence; the access ...  in the other, later
 *
 * Strong are volatile accesses and atomic operations, which read and write. They and the fence beside them are of one
 * thread. The write comes before the fence if it
 * is of the same thread, or a barrier of the block is between them; so does the second fence before the access.
 * What is known of that:
 *
 *   moment     the number of fences and barriers so far in the block
 *   release    a strong write after a fence: which accesses of its block come before it
 *   acquire    a strong read after releases on its address, and the fence after it
 *
 * Each word of 4 bytes remembers its last write and its last reads by two blocks;
 * words that are far apart share a place. So a race can stay unseen, and nothing that is reported is
 * ordered. Strong accesses do not race with each other. Memory is not looked at within one block.
 *
 * Threads: one launch at a time (engine.h, E1).
 */
#ifndef GNI_SIM_GLOBAL_H
#define GNI_SIM_GLOBAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One access, as a later one remembers it. */
struct sim_global_access {
    uintptr_t word;  /* address / 4 */
    uint32_t serial; /* of the block, over all launches; 0: none */
    uint32_t moment; /* of its block */
    uint16_t thread;
    uint8_t flags; /* of gn_sim_access_flags */
    uint8_t bytes; /* of the word, a bit for each */
    const void *site;
};

/* Begins a launch of blocks of so many threads. */
void sim_global_begin(unsigned thread_count);

void sim_global_block(void); /* the next block begins */
void sim_global_barrier(void);
void sim_global_fence(unsigned thread);

/*
 * True: a race with an earlier access, which is stored in `other`, of the block whose number, in the order
 * that blocks run in, is stored in `block`.
 */
bool sim_global_access(uintptr_t address, size_t nbytes, unsigned thread, unsigned flags,
                       const void *site, struct sim_global_access *other, uint64_t *block);

#endif
