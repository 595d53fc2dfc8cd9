/*
 * watch.c: tells the user when a manager's memory crosses a threshold, and when a request failed.
 *
 * What is reserved changes under the engine's lock; there it is only noted that somebody must be told. The
 * thread that did it tells, once it holds no lock.
 *
 * Invariant: `is_above` says on which side of the threshold the last noted value was; a crossing upwards
 * sets `is_due` once.
 */
#include "memory/manager.h"

#include <stdio.h>

void gni_watch_note(gn_memory_manager *manager, uint64_t reserved)
{
    struct gni_watch *watch = &manager->watch;
    uint64_t threshold = atomic_load_explicit(&watch->threshold, memory_order_relaxed);
    bool is_above = reserved > threshold;
    if (atomic_exchange_explicit(&watch->is_above, is_above, memory_order_relaxed) != is_above)
        atomic_store(&watch->is_due, is_above);
}

void gni_watch_tell(gn_memory_manager *manager, bool is_out_of_memory)
{
    struct gni_watch *watch = &manager->watch;
    bool is_due = atomic_exchange(&watch->is_due, false);
    if (!is_due && !is_out_of_memory)
        return;
    gni_lock_take(&watch->lock);
    gn_memory_callback callback = watch->callback;
    void *context = watch->context;
    gni_lock_give(&watch->lock);
    if (callback == NULL)
        return;
    char detail[2048]; /* of the failure, which the callback may have more of */
    (void)snprintf(detail, sizeof detail, "%s", gn_error_detail());
    callback(manager, is_out_of_memory, context);
    if (is_out_of_memory)
        (void)gni_error(GN_ERROR_OUT_OF_MEMORY, "%s", detail);
}

gn_status gn_memory_set_callback(gn_memory_manager *manager, double threshold,
                                 gn_memory_callback callback, void *context)
{
    GN_CHECK_ARGUMENT(manager != NULL, "manager is NULL");
    GN_CHECK_ARGUMENT(threshold >= 0 && threshold <= 1, "the threshold is a fraction, 0 to 1");
    struct gni_watch *watch = &manager->watch;
    gn_memory_statistics now;
    GN_TRY(gn_memory_get_statistics(manager, &now));
    uint64_t most = now.limit_bytes;
    size_t free_bytes = 0, total_bytes = 0;
    if (gn_device_get_memory_info(manager->device, &free_bytes, &total_bytes) == GN_OK &&
        total_bytes < most)
        most = total_bytes;
    gni_lock_take(&watch->lock);
    watch->callback = callback;
    watch->context = context;
    gni_lock_give(&watch->lock);
    atomic_store(&watch->is_above, false);
    atomic_store(&watch->is_due, false);
    atomic_store(&watch->threshold,
                 callback != NULL ? (uint64_t)(threshold * (double)most) : UINT64_MAX);
    gni_watch_note(manager, now.reserved_bytes);
    gni_watch_tell(manager, false); /* it is above already */
    return GN_OK;
}
