/*
 * engine_inside.h: a launch while it runs, for the engine's own files.
 *
 *   engine.c   threads and blocks: who runs, who waits, what a kernel calls
 *   warp.c     what lanes of a warp do together
 *   report.c   what went wrong, first in a few words, at the end in sentences
 */
#ifndef GNI_SIM_ENGINE_INSIDE_H
#define GNI_SIM_ENGINE_INSIDE_H

#include "engine.h"
#include "fiber.h"
#include "module.h"

enum {
    WARP_COUNT = SIM_BLOCK_MAX_THREADS / SIM_WARP_LANES,
};

enum thread_state {
    THREAD_UNBEGUN,
    THREAD_READY,
    THREAD_RUNNING,
    THREAD_AT_BARRIER,
    THREAD_IN_WARP,
    THREAD_ENDED,
};

struct gpu_thread {
    struct sim_fiber *fiber;
    enum thread_state state;
    int kind; /* what it waits in: gn_sim_barrier_kind or gn_sim_warp_kind */
    uint32_t mask;
    uint32_t source;          /* the lane that a shuffle reads */
    unsigned long long value; /* what it brings */
    unsigned long long result;
    const char *file; /* where it waits */
    int line;
};

struct warp {
    uint32_t waiting, ended; /* lanes */
};

/* A place in the kernel, as little as is known when something goes wrong. */
struct raw_place {
    const char *file;
    int line;
    const void *site; /* used if file is NULL */
    unsigned thread;
    bool is_write;
    bool is_elsewhere; /* in another block: the one of this number, in the order that they run */
    uint64_t block_number;
};

struct run {
    const struct sim_launch *launch;
    const struct gn_sim_entry *entry;
    void *arguments[SIM_PARAMETERS_MAX_BYTES];
    bool has_checks;

    /* Memory. */
    uintptr_t stacks, stacks_end, image, image_end;
    char *shared, *dynamic;
    size_t shared_nbytes, dynamic_nbytes;

    /* The grid. */
    uint64_t block_count, block_number; /* in the order that they run */
    uint64_t block_first, block_step;   /* block = (first + number * step) % count */
    unsigned block_index[3];

    /* The block. */
    unsigned thread_count, live_count, barrier_count;
    struct gpu_thread threads[SIM_BLOCK_MAX_THREADS];
    struct gn_sim_index indices[SIM_BLOCK_MAX_THREADS];
    struct warp warps[WARP_COUNT];
    uint16_t order[SIM_BLOCK_MAX_THREADS];
    unsigned begun;
    uint16_t ready[SIM_BLOCK_MAX_THREADS]; /* a ring */
    unsigned ready_first, ready_count;
    struct gpu_thread *current;
    struct sim_fiber *free_fibers[SIM_FIBER_COUNT];
    unsigned free_count;

    uint64_t random;
    unsigned spin; /* accesses of the current thread since it was switched to */
    uint64_t accesses[SIM_BLOCK_MAX_THREADS];
    bool has_waited[SIM_BLOCK_MAX_THREADS]; /* by cudaGridDependencySynchronize() */

    /* What went wrong. */
    enum sim_fault fault;
    CUresult result;
    struct raw_place place, other;
    unsigned fault_block[3];
    uintptr_t address;
    size_t nbytes;
    char text[256];
};

/* The one launch that goes on (E1). */
extern struct run sim_run;

static inline unsigned sim_thread_number(const struct gpu_thread *thread)
{
    return (unsigned)(thread - sim_run.threads);
}

/* Where a thread waits. */
static inline struct raw_place sim_place_of(const struct gpu_thread *thread)
{
    return (struct raw_place){
        .file = thread->file, .line = thread->line, .thread = sim_thread_number(thread)};
}

/* No place in a kernel. */
static const struct raw_place sim_nowhere;

/* The first fault counts. The caller has to get off the fiber: run_leave() or run_pick(). */
void sim_fault_set(enum sim_fault fault, CUresult result, struct raw_place place,
                   struct raw_place other, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Symbols are looked up here, so it is called on the caller's own stack. */
void sim_report_fill(struct sim_report *report);

/* The index of a block by its number, in the order that they run. */
void sim_block_locate(uint64_t number, unsigned *index);

/* Puts a thread among those that can go on. */
void sim_ready_push(struct gpu_thread *thread);

/* Lets the lanes of one operation go, if all that it names and that have not ended are there. */
void sim_warp_finish(unsigned number, uint32_t mask, int kind);

/* A thread has ended: operations that waited for it alone can go on. */
void sim_warp_leave(unsigned number, unsigned lane);

/* Somebody waits in a warp for a lane that waits elsewhere (R3): says who. */
void sim_warp_deadlock(void);

/* What an operation is called in a message. */
const char *sim_warp_word(int kind);

#endif
