/*
 * watch.c: tells the user when a manager's memory crosses a threshold, and when a request failed.
 *
 * What is reserved changes under the locks of the manager's two engines; there it is only summed up, and noted
 * that somebody must be told. The thread that did it tells, once it holds no lock.
 *
 * Invariant: `is_above` says on which side of the threshold the sum was last; a crossing upwards sets
 * `is_due` once, and only telling takes that back.
 */
#include "memory/pool.h"

#include "genesis/history.h"

#include <stdio.h>

enum {
    DETAIL_BYTES = 4096,
};

/* A callback that allocates is not called for what it does itself. */
static _Thread_local bool is_telling;

static void sides_look(struct gni_watch *watch, uint64_t reserved)
{
    bool is_above = reserved > atomic_load_explicit(&watch->threshold, memory_order_relaxed);
    if (atomic_exchange_explicit(&watch->is_above, is_above, memory_order_relaxed) != is_above &&
        is_above)
        atomic_store(&watch->is_due, true);
}

void gni_watch_note(gn_memory_manager *manager, int64_t change)
{
    struct gni_watch *watch = &manager->watch;
    uint64_t before = atomic_fetch_add(&watch->reserved, (uint64_t)change);
    sides_look(watch, before + (uint64_t)change);
}

static void callback_call(gn_memory_manager *manager, bool is_out_of_memory)
{
    struct gni_watch *watch = &manager->watch;
    gni_lock_take(&watch->lock);
    gn_memory_callback callback = watch->callback;
    void *context = watch->context;
    gni_lock_give(&watch->lock);
    if (callback == NULL)
        return;
    uint32_t site = gn_history_set_site(0); /* what it allocates is its own */
    is_telling = true;
    callback(manager, is_out_of_memory, context);
    is_telling = false;
    (void)gn_history_set_site(site);
}

void gni_watch_tell(gn_memory_manager *manager, gn_status status)
{
    if (is_telling)
        return;
    char detail[DETAIL_BYTES]; /* of the failure: the callback may have failures of its own */
    if (status != GN_OK)
        (void)snprintf(detail, sizeof detail, "%s", gn_error_detail());
    if (atomic_exchange(&manager->watch.is_due, false))
        callback_call(manager, false);
    if (status == GN_ERROR_OUT_OF_MEMORY)
        callback_call(manager, true);
    if (status != GN_OK)
        (void)gni_error(status, "%s", detail);
}

/* What the fraction is of: what the manager may take, and what there is. */
static uint64_t reserved_most(gn_memory_manager *manager)
{
    size_t free_bytes = 0, total_bytes = 0;
    gn_device *holder = manager->pool->holder;
    uint64_t most = gni_pool_limit(manager->pool);
    if (gn_device_get_memory_info(holder, &free_bytes, &total_bytes) == GN_OK && total_bytes < most)
        most = total_bytes;
    return most;
}

void gni_watch_refresh(gn_memory_manager *manager)
{
    struct gni_watch *watch = &manager->watch;
    gni_lock_take(&watch->lock);
    double fraction = watch->fraction;
    bool is_watched = watch->callback != NULL;
    gni_lock_give(&watch->lock);
    uint64_t threshold = UINT64_MAX, most = is_watched ? reserved_most(manager) : UINT64_MAX;
    if (most != UINT64_MAX)
        threshold = (uint64_t)(fraction * (double)most);
    atomic_store(&watch->threshold, threshold);
    sides_look(watch, atomic_load(&watch->reserved));
}

gn_status gn_memory_set_callback(gn_memory_manager *manager, double threshold,
                                 gn_memory_callback callback, void *context)
{
    GN_CHECK_ARGUMENT(manager != NULL, "manager is NULL");
    GN_CHECK_ARGUMENT(threshold >= 0 && threshold <= 1, "the threshold is a fraction, 0 to 1");
    struct gni_watch *watch = &manager->watch;
    gni_lock_take(&watch->lock);
    watch->callback = callback;
    watch->context = context;
    watch->fraction = threshold;
    gni_lock_give(&watch->lock);
    atomic_store(&watch->is_above, false);
    atomic_store(&watch->is_due, false);
    gni_watch_refresh(manager);
    gni_watch_tell(manager, GN_OK); /* it may be above already */
    return GN_OK;
}
