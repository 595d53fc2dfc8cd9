/*
 * lock.h: a lock of one word, for short work that must not cost a call.
 *
 *     0 free, 1 held, 2 held and somebody sleeps
 *
 * Taking a free lock is one compare-and-exchange; a thread that finds it held looks a few times more, and
 * then sleeps in the kernel until the holder wakes it. For everything else there is gni_mutex (thread.h),
 * which can be waited with; where one thread comes far more often than others, favour.h.
 */
#ifndef GNI_BASE_LOCK_H
#define GNI_BASE_LOCK_H

#include "base/thread.h"

struct gni_lock {
    _Atomic(unsigned) state;
};

/* The part of gni_lock_take() that may sleep. */
void gni_lock_wait(struct gni_lock *lock);
void gni_lock_wake(struct gni_lock *lock);

static inline void gni_lock_take(struct gni_lock *lock)
{
    unsigned is_free = 0;
    if (!atomic_compare_exchange_strong_explicit(&lock->state, &is_free, 1, memory_order_acquire,
                                                 memory_order_relaxed))
        gni_lock_wait(lock);
}

static inline void gni_lock_give(struct gni_lock *lock)
{
    if (atomic_exchange_explicit(&lock->state, 0, memory_order_release) == 2)
        gni_lock_wake(lock);
}

#endif
