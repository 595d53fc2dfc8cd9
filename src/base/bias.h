/*
 * bias.h: a mutex that costs next to nothing as long as one thread alone takes it.
 *
 *     fresh --first lock--> biased to that thread --another thread's lock--> shared, for ever
 *
 * While it is biased, its thread goes in and out by two stores. Another thread that comes ends that, with the mutex:
 *
 *     the thread it is biased to            another one, with the mutex
 *     busy = 1                              owner = NULL
 *     (the compiler keeps the order)        barrier on all threads (barrier.h)
 *     owner is still me? else busy = 0,     wait until busy is 0
 *       and take the mutex
 *     ... is_biased = true ...
 *     is_biased = false, busy = 0 (release)
 *
 * Invariants:
 *   1. who is in has the mutex, or is_biased is true and it is the owner;
 *   2. owner is not NULL in the biased phase only; while a thread is in with is_biased, no other one has ever been in;
 *   3. is_biased is written by the owner alone, between its two stores to `busy`: everybody who is in may read it.
 *
 * Where the system has no such barrier it is a mutex from the start. Not recursive. At a fork its mutex is taken as
 * every other (fork.h), and gni_bias_fork_prepare() is called then.
 */
#ifndef GNI_BASE_BIAS_H
#define GNI_BASE_BIAS_H

#include "base/thread.h"

enum gni_bias_phase {
    GNI_BIAS_FRESH,
    GNI_BIAS_BIASED,
    GNI_BIAS_SHARED,
};

struct gni_bias {
    struct gni_mutex mutex;
    enum gni_bias_phase phase;   /* under the mutex */
    _Atomic(const void *) owner; /* the thread that it is biased to: invariant 2 */
    _Atomic(unsigned) busy;      /* that thread is in, or about to look whether it may be */
    bool is_biased;              /* invariant 3 */
};

#define GNI_BIAS_INIT            \
    {                            \
        .mutex = GNI_MUTEX_INIT, \
    }

/* The short way in, for the owner; false: gni_bias_lock() is the other one. */
static inline bool gni_bias_enter(struct gni_bias *bias)
{
    const void *self = gni_thread_self();
    if (atomic_load_explicit(&bias->owner, memory_order_relaxed) != self)
        return false;
    atomic_store_explicit(&bias->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&bias->owner, memory_order_acquire) != self) {
        atomic_store_explicit(&bias->busy, 0, memory_order_release);
        return false;
    }
    bias->is_biased = true;
    return true;
}

/* The long way in. */
void gni_bias_lock(struct gni_bias *bias);

static inline void gni_bias_unlock(struct gni_bias *bias)
{
    if (bias->is_biased) {
        bias->is_biased = false;
        atomic_store_explicit(&bias->busy, 0, memory_order_release);
    } else {
        gni_mutex_unlock(&bias->mutex);
    }
}

/* With the mutex, before a fork: nobody but the calling thread is in. */
void gni_bias_fork_prepare(struct gni_bias *bias);

#endif
