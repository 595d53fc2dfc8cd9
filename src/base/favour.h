/*
 * favour.h: a lock that costs a thread next to nothing while no other thread comes.
 *
 *     shared --one thread took it often, and no other meanwhile--> that thread is the favourite
 *        ^                                                                  |
 *        +-------------------------- another thread comes ------------------+
 *
 * The favourite goes in and out by plain stores: an exchange would have to wait for everything that the thread has
 * stored before, cache misses included, at both ends of each piece of short work. Everybody else takes the lock of
 * lock.h, and puts an end to the favour:
 *
 *     the favourite                         another thread, with the lock
 *     busy = 1                              favourite = NULL
 *     (the compiler keeps the order)        barrier on all threads (barrier.h)
 *     favourite is still me? else busy = 0, wait until busy is 0
 *       and take the lock
 *     ... is_short = true ...
 *     is_short = false, busy = 0 (release)
 *
 * An end costs microseconds, which is why a favour must be earned: two threads that take turns share the lock. Where
 * the system has no such barrier there is no favourite.
 *
 * Invariants:
 *   1. who is in has the lock, or is_short is true and it is the favourite;
 *   2. `favourite` is set by a thread that has the lock, to itself, and ended by one that has the lock;
 *   3. everything but `favourite`, `busy` and `owner` is read and written by who is in.
 *
 * Not recursive, and nobody can wait with it: bias.h is for those who want to. A holder may fork (a driver can do that
 * by itself): the fork's handlers pass over it then (fork.h).
 */
#ifndef GNI_BASE_FAVOUR_H
#define GNI_BASE_FAVOUR_H

#include "base/lock.h"

enum {
    GNI_FAVOUR_STREAK =
        1024, /* turns of one thread: they cost about as much as the end of a favour */
};

struct gni_favour {
    struct gni_lock lock;
    _Atomic(const void *) favourite; /* a thread, or NULL */
    _Atomic(unsigned) busy;          /* the favourite is in, or about to look whether it may be */
    bool is_short;                   /* who is in came as the favourite */
    bool is_passed_over;             /* by the owner's own fork() */
    bool is_plain;                   /* the system has no barrier */
    unsigned streak;                 /* turns that `last` took since another thread did */
    const void *last;                /* who took the lock last */
    _Atomic(const void *) owner;     /* who has the lock, or NULL */
};

/* With the lock: the thread becomes the favourite; or another one is it no more, and not in. */
void gni_favour_begin(struct gni_favour *favour);
void gni_favour_end(struct gni_favour *favour);

static inline bool gni_favour_enter(struct gni_favour *favour, const void *self)
{
    if (atomic_load_explicit(&favour->favourite, memory_order_relaxed) != self)
        return false;
    /* Acquired: a thread that has ended may have been the favourite, and this one have its name now. */
    (void)atomic_load_explicit(&favour->busy, memory_order_acquire);
    atomic_store_explicit(&favour->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&favour->favourite, memory_order_acquire) == self,
                         1)) {
        favour->is_short = true;
        return true;
    }
    atomic_store_explicit(&favour->busy, 0, memory_order_release);
    return false;
}

static inline void gni_favour_take(struct gni_favour *favour)
{
    const void *self = gni_thread_self();
    if (gni_favour_enter(favour, self))
        return;
    gni_lock_take(&favour->lock);
    atomic_store_explicit(&favour->owner, self, memory_order_relaxed);
    if (atomic_load_explicit(&favour->favourite, memory_order_relaxed) != NULL)
        gni_favour_end(favour);
    favour->streak = favour->last == self ? favour->streak + 1 : 0;
    favour->last = self;
    if (favour->streak >= GNI_FAVOUR_STREAK)
        gni_favour_begin(favour);
}

static inline void gni_favour_give(struct gni_favour *favour)
{
    if (favour->is_short) {
        favour->is_short = false;
        atomic_store_explicit(&favour->busy, 0, memory_order_release);
    } else {
        atomic_store_explicit(&favour->owner, NULL, memory_order_relaxed);
        gni_lock_give(&favour->lock);
    }
}

/* For fork handlers: passes over a lock that the thread is in already. */
void gni_favour_fork_take(struct gni_favour *favour);
void gni_favour_fork_give(struct gni_favour *favour);

#endif
