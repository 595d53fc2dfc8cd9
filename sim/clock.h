/*
 * clock.h: vector clocks, and the history of who touched which memory.
 *
 *   actor    the host (0), or a stream
 *   tick     an actor's own count: each op of a stream is one tick
 *   clock    for each actor, the last tick that happened before
 *
 * An access a happened before an op b exactly if b's clock has a's tick for a's actor. Clocks are fixed
 * when an op is submitted, so that what is found does not depend on when it runs.
 *
 * The history keeps accesses by address, past frees: memory that is handed from one stream to another
 * by a cache is never freed at all as far as the driver sees. It forgets what every op to come must be
 * ordered after.
 *
 * Rules (the names are used in reports):
 *   H1  two accesses to one byte, one of them a write, must be ordered;
 *   H2  so must accesses before and after the memory was handed to another stream: the same rule, since
 *       the history outlives the hand-over;
 *   H3  memory that goes back to the driver must not be touched any more by work the host has not
 *       waited for;
 *   H4  page-locked host memory obeys H1 and H3 as device memory does, as far as the device touches it;
 *   H5  a stream or event is not destroyed while work of it is pending. CUDA allows it, so it is reported
 *       only on demand (SIM_GPU_STRICT=on).
 */
#ifndef GNI_SIM_CLOCK_H
#define GNI_SIM_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_op;

struct sim_clock {
    uint64_t *ticks; /* by actor; owned */
    unsigned count;
};

void sim_clock_deinit(struct sim_clock *clock);
void sim_clock_copy(struct sim_clock *to, const struct sim_clock *from);
void sim_clock_join(struct sim_clock *to, const struct sim_clock *from); /* the later of each */
uint64_t sim_clock_get(const struct sim_clock *clock, unsigned actor);
void sim_clock_set(struct sim_clock *clock, unsigned actor, uint64_t tick);

/* A place in clocks for a new stream and its ticks so far, and its return. 0: there is none left. */
unsigned sim_actor_take(uint64_t *tick);
void sim_actor_give(unsigned actor, uint64_t tick);

enum sim_access {
    SIM_READ,
    SIM_ATOMIC, /* does not race with other atomics, and is a write for all others */
    SIM_WRITE,
};

/* An op touched memory: checks it against the history (H1, H2) and adds it. */
void sim_history_access(const struct sim_op *op, uintptr_t address, size_t nbytes,
                        enum sim_access access);

/* Memory was freed in stream order: its next owner starts with no history. */
void sim_history_forget(uintptr_t address, size_t nbytes);

/*
 * Memory goes back to the driver: every access in the history must have happened before the host (H3).
 * Says what goes on ("cuMemUnmap") in its report.
 */
void sim_history_retire(uintptr_t address, size_t nbytes, const char *what);

/* Nothing is pending: forgets what the host has seen. */
void sim_history_settle(void);

/* How many accesses are kept. */
size_t sim_history_count(void);

#endif
