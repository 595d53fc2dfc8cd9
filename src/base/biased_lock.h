/*
 * biased_lock.h: a lock that costs a thread next to nothing while no other thread comes: a biased lock.
 *
 *     shared --one thread took it often, and no other meanwhile--> biased to that thread
 *        ^                                                                  |
 *        +-------------------------- another thread comes ------------------+
 *
 * The thread that it is biased to goes in and out by plain stores. An exchange would have to wait for everything that the
 * thread has stored before, cache misses included, at both ends of each piece of short work. Every other thread takes the
 * lock of lock.h, and revokes the bias:
 *
 *     the biased thread, with its flag       another thread, with the lock
 *     flag->busy = 1                         biased = NULL
 *     (the compiler keeps the order)         barrier on all threads (barrier.h)
 *     biased is still my flag? else          wait until flag->busy is 0
 *       flag->busy = 0, and take the lock
 *     ... inside = flag ...
 *     inside = NULL, flag->busy = 0 (release)
 *
 * To revoke a bias costs microseconds, so it must be earned: two threads that take turns share the lock. Where the system
 * has no such barrier the lock is never biased.
 *
 * What it gains: the memory manager's time for an allocation and its free that go to the heap, on a GPU's pool with a
 * driver that does nothing, is 2 to 4 % less (1 KiB..8 MiB, 32 live: 3.3 %; variable-length training: 4.0 %). Small
 * operations on tensors gain nothing, so the recorder has a plain lock.
 *
 * Invariants:
 *   BI1  the thread that is in has the lock, or `inside` is its flag, which was `biased` when it came;
 *   BI2  `biased` is set by a thread that has the lock, to its own flag, and cleared by one that has the lock;
 *   BI3  a flag belongs to one thread for ever, and only that thread writes `busy`: it may have been on its way in when
 *        the bias was revoked, and find that out when the lock is long biased to another thread;
 *   BI4  everything else is read and written by the thread that is in.
 *
 * Not recursive. A holder may fork (a driver can do that by itself): the fork's handlers pass over the lock then (fork.h).
 */
#ifndef GNI_BASE_BIASED_LOCK_H
#define GNI_BASE_BIASED_LOCK_H

#include "base/error.h"
#include "base/lock.h"

enum {
    GNI_BIAS_STREAK = 1024, /* turns of one thread, which cost as much as to revoke a bias */
    GNI_BIAS_THREADS = 8,   /* threads that it can be biased to; the others share the lock */
    GNI_BIAS_APART = 64,    /* bytes: a cache line */
};

struct gni_bias_flag {
    _Atomic(const void *) thread; /* whose it is; NULL: nobody's yet */
    _Atomic(unsigned) busy;       /* it is in, or about to look whether it may be */
};

/* Threads that wait look at the lock all the time, and all threads at `biased`: what is written at each turn lies on
 * cache lines of its own. */
struct gni_biased_lock {
    char apart_before[GNI_BIAS_APART];
    struct gni_lock shared;
    char apart_behind[GNI_BIAS_APART];
    _Atomic(struct gni_bias_flag *) biased; /* one of the flags, or NULL */
    bool is_plain;                          /* the system has no barrier */
    struct gni_bias_flag flags[GNI_BIAS_THREADS];
    char apart_inside[GNI_BIAS_APART];
    struct gni_bias_flag *inside; /* of the thread that is in; NULL: it has the lock */
    bool is_passed_over;          /* by the holder's own fork() */
    unsigned streak;              /* turns that `last` took since another thread did */
    const void *last;             /* who took the lock last */
};

/* With the lock: biases it to the calling thread; or revokes the bias of another one, which is not in afterwards. */
void gni_biased_lock_bias(struct gni_biased_lock *lock);
void gni_biased_lock_revoke(struct gni_biased_lock *lock);

/* Whether the calling thread is in, also while its bias is revoked; for asserts and fork handlers. */
bool gni_biased_lock_is_held(const struct gni_biased_lock *lock);

/* The flag of a thread that the lock is biased to, or NULL. */
static inline struct gni_bias_flag *gni_biased_lock_flag(struct gni_biased_lock *lock,
                                                         const void *thread)
{
    struct gni_bias_flag *flag = atomic_load_explicit(&lock->biased, memory_order_acquire);
    bool is_its =
        flag != NULL && atomic_load_explicit(&flag->thread, memory_order_relaxed) == thread;
    return is_its ? flag : NULL;
}

static inline bool gni_biased_lock_enter(struct gni_biased_lock *lock, const void *self)
{
    struct gni_bias_flag *flag = gni_biased_lock_flag(lock, self);
    if (flag == NULL)
        return false;
    /* Acquired: a thread that has ended may have had this one's address, and its flag. */
    (void)atomic_load_explicit(&flag->busy, memory_order_acquire);
    atomic_store_explicit(&flag->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&lock->biased, memory_order_acquire) == flag, 1)) {
        lock->inside = flag;
        return true;
    }
    atomic_store_explicit(&flag->busy, 0, memory_order_release);
    return false;
}

static inline void gni_biased_lock_take(struct gni_biased_lock *lock)
{
    const void *self = gni_thread_self();
    if (gni_biased_lock_enter(lock, self))
        return;
    gni_lock_take(&lock->shared);
    if (atomic_load_explicit(&lock->biased, memory_order_relaxed) != NULL)
        gni_biased_lock_revoke(lock);
    lock->streak = lock->last == self ? lock->streak + 1 : 0;
    lock->last = self;
    if (lock->streak >= GNI_BIAS_STREAK)
        gni_biased_lock_bias(lock);
}

static inline void gni_biased_lock_give(struct gni_biased_lock *lock)
{
    struct gni_bias_flag *flag = lock->inside;
    if (flag != NULL) {
        gni_assert(gni_thread_self() == atomic_load(&flag->thread)); /* BI1 */
        lock->inside = NULL;
        atomic_store_explicit(&flag->busy, 0, memory_order_release);
    } else {
        gni_lock_give(&lock->shared);
    }
}

/* For fork handlers: passes over a lock that the thread is in already. */
void gni_biased_lock_fork_take(struct gni_biased_lock *lock);
void gni_biased_lock_fork_give(struct gni_biased_lock *lock, bool is_child);

#endif
