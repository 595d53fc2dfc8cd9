/*
 * scenarios.h: what the allocator benchmarks ask for, as data, so that every peer in every language
 * meets the same requests.
 *
 * A scenario is a list of steps on numbered slots. One step: if the slot holds a block, free it; then,
 * unless nbytes is 0, allocate nbytes into the slot. After the last step every slot is emptied. A ring
 * of `hold` live blocks, where the oldest is freed before the next is allocated, is the slots
 * 0, 1, .. hold - 1 in turn.
 *
 * Invariants:
 *   1. A scenario depends on nothing but its definition here: no clock, no seed from outside.
 *   2. slot < slot_count in every step; alloc_count counts the steps with nbytes != 0.
 *   3. Running the steps again from the start gives the same requests (everything was freed).
 *
 * The functions are exported, for Python's ctypes. Threads: build once, then read from anywhere.
 */
#ifndef BENCH_ALLOC_SCENARIOS_H
#define BENCH_ALLOC_SCENARIOS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BENCH_API __attribute__((visibility("default")))

struct bench_step {
    uint64_t slot;
    uint64_t nbytes; /* 0: only free */
};

/* Which target of the table a scenario is held to. */
enum bench_group {
    BENCH_GROUP_ONE_SIZE,
    BENCH_GROUP_VARIABLE,
    BENCH_GROUP_TRANSFORMER,
    BENCH_GROUP_PRESSURE,
    BENCH_GROUP_OTHER,
};

struct bench_scenario {
    const char *name;         /* a word for command lines: "variable_32" */
    const char *title;        /* for tables */
    struct bench_step *steps; /* owned by the scenarios, for ever */
    size_t step_count;
    size_t slot_count;
    size_t alloc_count;      /* pairs of allocation and free */
    size_t first_step_count; /* steps of the first turn of a training loop; 0 where there is none */
    uint64_t budget_bytes;   /* the memory limit to run under; 0: none */
    uint64_t peak_bytes;     /* the most that is live at once */
    int group;               /* enum bench_group */
};

/* The scenario with this index, built at its first use; NULL past the last one. */
BENCH_API const struct bench_scenario *bench_scenario_get(size_t index);

/* The scenario with this name, or NULL. */
BENCH_API const struct bench_scenario *bench_scenario_find(const char *name);

#ifdef __cplusplus
}
#endif

#endif
