/*
 * favour.c: the beginning and the end of a favour, and forks. The protocol and the invariants stand in favour.h.
 */
#include "base/favour.h"

#include "base/barrier.h"

#include <sched.h>

void gni_favour_begin(struct gni_favour *favour)
{
    favour->streak = 0;
    favour->is_plain = favour->is_plain || !gni_barrier_register();
    if (!favour->is_plain)
        atomic_store_explicit(&favour->favourite, gni_thread_self(), memory_order_relaxed);
}

void gni_favour_end(struct gni_favour *favour)
{
    atomic_store_explicit(&favour->favourite, NULL, memory_order_release);
    gni_barrier_all();
    while (atomic_load_explicit(&favour->busy, memory_order_acquire) != 0)
        (void)sched_yield(); /* until its turn is over: once in many turns */
}

void gni_favour_fork_take(struct gni_favour *favour)
{
    const void *self = gni_thread_self();
    bool is_owner = atomic_load_explicit(&favour->owner, memory_order_relaxed) == self;
    bool is_favourite = atomic_load_explicit(&favour->favourite, memory_order_relaxed) == self;
    if (is_owner ||
        (is_favourite && atomic_load_explicit(&favour->busy, memory_order_relaxed) != 0))
        favour->is_passed_over = true;
    else
        gni_favour_take(favour);
}

void gni_favour_fork_give(struct gni_favour *favour)
{
    if (favour->is_passed_over)
        favour->is_passed_over = false;
    else
        gni_favour_give(favour);
}
