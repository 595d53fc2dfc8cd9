/*
 * favour.c: the beginning and the end of a favour, and forks. The protocol and the invariants stand in favour.h.
 */
#include "base/favour.h"

#include "base/barrier.h"

/* The calling thread's seat; NULL if all are others'. */
static struct gni_favour_seat *seat_take(struct gni_favour *favour)
{
    const void *self = gni_thread_self();
    for (int i = 0; i < GNI_FAVOUR_SEATS; i++) {
        struct gni_favour_seat *seat = &favour->seats[i];
        const void *thread = atomic_load_explicit(&seat->thread, memory_order_relaxed);
        if (thread == NULL)
            atomic_store_explicit(&seat->thread, self, memory_order_relaxed);
        if (thread == NULL || thread == self)
            return seat;
    }
    return NULL;
}

void gni_favour_begin(struct gni_favour *favour)
{
    favour->streak = 0;
    favour->is_plain = favour->is_plain || !gni_barrier_register();
    if (!favour->is_plain)
        atomic_store_explicit(&favour->favourite, seat_take(favour), memory_order_release);
}

void gni_favour_end(struct gni_favour *favour)
{
    struct gni_favour_seat *seat =
        atomic_exchange_explicit(&favour->favourite, NULL, memory_order_acq_rel);
    gni_barrier_all();
    for (int looks = 0; atomic_load_explicit(&seat->busy, memory_order_acquire) != 0; looks++)
        gni_thread_wait(looks); /* long if it calls the driver */
}

/* Whether the calling thread is in. Its favour may be ending while it is. */
static bool is_inside(struct gni_favour *favour)
{
    const void *self = gni_thread_self();
    for (int i = 0; i < GNI_FAVOUR_SEATS; i++) {
        struct gni_favour_seat *seat = &favour->seats[i];
        if (atomic_load_explicit(&seat->thread, memory_order_relaxed) == self &&
            atomic_load_explicit(&seat->busy, memory_order_relaxed) != 0)
            return true;
    }
    return atomic_load_explicit(&favour->owner, memory_order_relaxed) == self;
}

void gni_favour_fork_take(struct gni_favour *favour)
{
    if (is_inside(favour))
        favour->is_passed_over = true;
    else
        gni_favour_take(favour);
}

void gni_favour_fork_give(struct gni_favour *favour, bool is_child)
{
    /* Threads that were about to look whether they may be in are not in the child. */
    for (int i = 0; is_child && i < GNI_FAVOUR_SEATS; i++)
        if (&favour->seats[i] != favour->inside)
            atomic_store_explicit(&favour->seats[i].busy, 0, memory_order_relaxed);
    if (!favour->is_passed_over) {
        gni_favour_give(favour);
        return;
    }
    favour->is_passed_over = false;
    /* The thread that was about to end this favour had the lock, and is not in the child. */
    if (is_child && favour->inside != NULL) {
        favour->lock = (struct gni_lock){0};
        atomic_store_explicit(&favour->owner, NULL, memory_order_relaxed);
    }
}
