/*
 * lock.c: sleeping for a lock, by futex(2).
 */
#include "base/lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    LOOKS = 200, /* at a held lock before sleeping: about as long as short work takes */
};

void gni_lock_wait(struct gni_lock *lock)
{
    for (int i = 0; i < LOOKS; i++) {
        unsigned is_free = 0;
        if (atomic_load_explicit(&lock->state, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_weak_explicit(&lock->state, &is_free, 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return;
        gni_thread_pause();
    }
    while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0)
        (void)syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

void gni_lock_wake(struct gni_lock *lock)
{
    (void)syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
