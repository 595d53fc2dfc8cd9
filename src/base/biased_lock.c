/*
 * biased_lock.c: the beginning and the end of a bias, and forks. The protocol and the invariants stand in biased_lock.h.
 */
#include "base/biased_lock.h"

#include "base/barrier.h"

/* The calling thread's flag; NULL if all are others'. */
static struct gni_bias_flag *flag_take(struct gni_biased_lock *lock)
{
    const void *self = gni_thread_self();
    for (int i = 0; i < GNI_BIAS_THREADS; i++) {
        struct gni_bias_flag *flag = &lock->flags[i];
        const void *thread = atomic_load_explicit(&flag->thread, memory_order_relaxed);
        if (thread == NULL)
            atomic_store_explicit(&flag->thread, self, memory_order_relaxed);
        if (thread == NULL || thread == self)
            return flag;
    }
    return NULL;
}

void gni_biased_lock_bias(struct gni_biased_lock *lock)
{
    gni_assert(gni_lock_is_held(&lock->shared)); /* BI2 */
    lock->streak = 0;
    lock->is_plain = lock->is_plain || !gni_barrier_register();
    if (!lock->is_plain)
        atomic_store_explicit(&lock->biased, flag_take(lock), memory_order_release);
}

void gni_biased_lock_revoke(struct gni_biased_lock *lock)
{
    gni_assert(gni_lock_is_held(&lock->shared)); /* BI2 */
    struct gni_bias_flag *flag =
        atomic_exchange_explicit(&lock->biased, NULL, memory_order_acq_rel);
    gni_barrier_all();
    for (int looks = 0; atomic_load_explicit(&flag->busy, memory_order_acquire) != 0; looks++)
        gni_thread_wait(looks); /* long if it calls the driver */
    gni_assert(lock->inside == NULL);
}

bool gni_biased_lock_is_held(const struct gni_biased_lock *lock)
{
    const void *self = gni_thread_self();
    for (int i = 0; i < GNI_BIAS_THREADS; i++) {
        const struct gni_bias_flag *flag = &lock->flags[i];
        if (atomic_load_explicit(&flag->thread, memory_order_relaxed) == self &&
            atomic_load_explicit(&flag->busy, memory_order_relaxed) != 0)
            return true;
    }
    return gni_lock_is_held(&lock->shared);
}

void gni_biased_lock_fork_take(struct gni_biased_lock *lock)
{
    if (gni_biased_lock_is_held(lock))
        lock->is_passed_over = true;
    else
        gni_biased_lock_take(lock);
}

void gni_biased_lock_fork_give(struct gni_biased_lock *lock, bool is_child)
{
    /* Threads that were about to look whether they may be in are not in the child. */
    for (int i = 0; is_child && i < GNI_BIAS_THREADS; i++)
        if (&lock->flags[i] != lock->inside)
            atomic_store_explicit(&lock->flags[i].busy, 0, memory_order_relaxed);
    if (!lock->is_passed_over) {
        gni_biased_lock_give(lock);
        return;
    }
    lock->is_passed_over = false;
    /* The thread that was about to revoke this bias had the lock, and is not in the child. */
    if (is_child && lock->inside != NULL)
        lock->shared = (struct gni_lock){0};
}
