/*
 * bias.c: the end of a bias. The protocol and the invariants stand in bias.h.
 */
#include "base/bias.h"

#include "base/barrier.h"

#include <sched.h>

/* With the mutex, by another thread than the owner, or by the owner when it is not in. */
static void bias_end(struct gni_bias *bias)
{
    atomic_store_explicit(&bias->owner, NULL, memory_order_release);
    gni_barrier_all();
    while (atomic_load_explicit(&bias->busy, memory_order_acquire) != 0)
        (void)sched_yield(); /* once in a process: it needs no finesse */
    bias->phase = GNI_BIAS_SHARED;
}

void gni_bias_lock(struct gni_bias *bias)
{
    gni_mutex_lock(&bias->mutex);
    switch (bias->phase) {
    case GNI_BIAS_FRESH:
        bias->phase = gni_barrier_register() ? GNI_BIAS_BIASED : GNI_BIAS_SHARED;
        if (bias->phase == GNI_BIAS_BIASED)
            atomic_store_explicit(&bias->owner, gni_thread_self(), memory_order_relaxed);
        return;
    case GNI_BIAS_BIASED:
        bias_end(bias);
        return;
    case GNI_BIAS_SHARED:
        return;
    }
}

void gni_bias_fork_prepare(struct gni_bias *bias)
{
    if (bias->phase == GNI_BIAS_BIASED &&
        atomic_load_explicit(&bias->owner, memory_order_relaxed) != gni_thread_self())
        bias_end(bias);
}
