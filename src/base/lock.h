/*
 * lock.h: a lock of one word, for short work that must not cost a call.
 *
 *     0 free, 1 held, 2 held and somebody sleeps
 *
 * Taking a free lock is one compare-and-exchange; a thread that finds it held looks a few times more, and
 * then sleeps in the kernel until the holder wakes it. For everything else there is gni_mutex (thread.h),
 * on which a condition can be waited for; where one thread comes far more often than others, biased_lock.h. Not recursive. All zeros is a free lock.
 *
 * Invariants:
 *   LK1  `owner` is the thread that holds the lock, or NULL. Only a thread's comparison with itself means something to
 *        others: it is written by the holder, without order;
 *   LK2  a holder may fork (a driver can do that by itself): the fork's handlers pass over the lock then (fork.h).
 */
#ifndef GNI_BASE_LOCK_H
#define GNI_BASE_LOCK_H

#include "base/thread.h"

struct gni_lock {
    _Atomic(unsigned) state;
    bool is_passed_over;         /* by the owner's own fork(): LK2 */
    _Atomic(const void *) owner; /* LK1 */
};

/* The part of gni_lock_take() that may sleep. */
void gni_lock_wait(struct gni_lock *lock);
void gni_lock_wake(struct gni_lock *lock);

/* Whether the calling thread holds the lock; for asserts and fork handlers. */
static inline bool gni_lock_is_held(const struct gni_lock *lock)
{
    return atomic_load_explicit(&lock->owner, memory_order_relaxed) == gni_thread_self();
}

static inline void gni_lock_take(struct gni_lock *lock)
{
    unsigned is_free = 0;
    gni_assert(!gni_lock_is_held(lock));
    if (!atomic_compare_exchange_strong_explicit(&lock->state, &is_free, 1, memory_order_acquire,
                                                 memory_order_relaxed))
        gni_lock_wait(lock);
    atomic_store_explicit(&lock->owner, gni_thread_self(), memory_order_relaxed);
}

static inline void gni_lock_give(struct gni_lock *lock)
{
    gni_assert(gni_lock_is_held(lock));
    atomic_store_explicit(&lock->owner, NULL, memory_order_relaxed);
    if (atomic_exchange_explicit(&lock->state, 0, memory_order_release) == 2)
        gni_lock_wake(lock);
}

/* For fork handlers: passes over a lock that the thread holds already. */
static inline void gni_lock_fork_take(struct gni_lock *lock)
{
    if (gni_lock_is_held(lock))
        lock->is_passed_over = true;
    else
        gni_lock_take(lock);
}

static inline void gni_lock_fork_give(struct gni_lock *lock)
{
    if (lock->is_passed_over)
        lock->is_passed_over = false;
    else
        gni_lock_give(lock);
}

#endif
