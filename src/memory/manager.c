/*
 * manager.c: the managers of the process, and the checked entrances to their policies.
 *
 * Threads: managers_mutex guards the making of managers; a finished one is published by a release
 * store and never goes away.
 */
#include "memory/manager.h"

#include "base/checked.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    LEAKS_PRINTED = 20, /* of each manager */
};

static _Atomic(gn_memory_manager *) managers[2][GNI_DEVICE_MAX];
static struct gni_mutex managers_mutex = GNI_MUTEX_INIT;
static struct gni_once managers_once = GNI_ONCE_INIT;

/* Calls `visit` for every manager that was made. */
static void managers_each(void (*visit)(gn_memory_manager *manager, void *context), void *context)
{
    for (int type = 0; type < 2; type++) {
        for (int index = 0; index < GNI_DEVICE_MAX; index++) {
            gn_memory_manager *manager =
                atomic_load_explicit(&managers[type][index], memory_order_acquire);
            if (manager != NULL)
                visit(manager, context);
        }
    }
}

/* ---- leaks and shutdown --------------------------------------------------------------------- */

static void manager_count_leaks(gn_memory_manager *manager, void *context)
{
#ifdef GNI_DEBUG
    size_t most = LEAKS_PRINTED;
#else
    size_t most = 0;
#endif
    *(size_t *)context += manager->policy->report_leaks(manager, most);
}

static void manager_clear(gn_memory_manager *manager, void *context)
{
    gn_status *first = context;
    gn_status status = manager->policy->clear(manager);
    if (*first == GN_OK)
        *first = status;
}

gn_status gn_shutdown(size_t *leaked)
{
    size_t count = 0;
    gn_status status = GN_OK;
    managers_each(manager_count_leaks, &count);
    managers_each(manager_clear, &status);
    int objects = gni_devices_close();
#ifdef GNI_DEBUG
    if (objects > 0)
        gni_log(GNI_LOG_WARNING, "leak: %d streams, events and modules were not destroyed",
                objects);
#endif
    if (status == GN_OK && leaked != NULL)
        *leaked = count + (size_t)objects;
    return status;
}

#ifdef GNI_DEBUG
/* Only reports: at exit the driver is not called any more, and the system takes everything back. */
static void managers_at_exit(void)
{
    size_t count = 0;
    managers_each(manager_count_leaks, &count);
}
#endif

/* ---- making --------------------------------------------------------------------------------- */

static void manager_fork_prepare(gn_memory_manager *manager, void *unused)
{
    (void)unused;
    manager->policy->fork_prepare(manager);
}

static void manager_fork_done(gn_memory_manager *manager, void *is_child)
{
    manager->policy->fork_done(manager, *(bool *)is_child);
}

/* Lock order: managers_mutex, then those of the managers. */
static void managers_fork_prepare(void)
{
    managers_each(manager_fork_prepare, NULL);
}

static void managers_fork_done(bool is_child)
{
    managers_each(manager_fork_done, &is_child);
}

static const struct gni_fork_handlers managers_fork = {
    .mutex = &managers_mutex, .prepare = managers_fork_prepare, .done = managers_fork_done};

static void managers_start(void)
{
    gni_fork_register(GNI_FORK_MEMORY, &managers_fork);
#ifdef GNI_DEBUG
    (void)atexit(managers_at_exit);
#endif
}

gn_status gn_memory_manager_get(gn_device *device, gn_memory_manager **manager)
{
    GN_CHECK_ARGUMENT(device != NULL && manager != NULL, "device and manager must not be NULL");
    _Atomic(gn_memory_manager *) *slot = &managers[device->type][device->index];
    gn_memory_manager *made = atomic_load_explicit(slot, memory_order_acquire);
    if (made == NULL) {
        gni_once_run(&managers_once, managers_start);
        gni_mutex_lock(&managers_mutex);
        gn_status status = GN_OK;
        made = atomic_load(slot);
        if (made == NULL)
            status = gni_memory_policy_direct.create(device, &made);
        if (status == GN_OK)
            atomic_store_explicit(slot, made, memory_order_release);
        gni_mutex_unlock(&managers_mutex);
        GN_TRY(status);
    }
    *manager = made;
    return GN_OK;
}

gn_device *gn_memory_manager_get_device(const gn_memory_manager *manager)
{
    return manager->device;
}

const char *gn_memory_manager_get_policy(const gn_memory_manager *manager)
{
    return manager->policy->name;
}

/* ---- entrances ------------------------------------------------------------------------------ */

gn_status gn_memory_alloc(gn_memory_manager *manager, size_t nbytes, gn_stream *stream,
                          void **pointer)
{
    GN_CHECK_ARGUMENT(manager != NULL && pointer != NULL, "manager and pointer must not be NULL");
    if (!gni_size_is_possible(nbytes))
        return gni_error(GN_ERROR_OVERFLOW, "%zu bytes cannot be allocated on any device", nbytes);
    if (stream == NULL)
        GN_TRY(gn_stream_get_current(manager->device, &stream));
    GN_CHECK_ARGUMENT(stream->device == manager->device,
                      "the stream and the manager belong to two devices");
    return manager->policy->alloc(manager, nbytes, stream, pointer);
}

gn_status gn_memory_free(gn_memory_manager *manager, void *pointer)
{
    GN_CHECK_ARGUMENT(manager != NULL, "manager is NULL");
    return manager->policy->free(manager, pointer, NULL);
}

gn_status gn_memory_free_sized(gn_memory_manager *manager, void *pointer, size_t nbytes)
{
    GN_CHECK_ARGUMENT(manager != NULL, "manager is NULL");
    return manager->policy->free(manager, pointer, &nbytes);
}

gn_status gn_memory_get_size(gn_memory_manager *manager, const void *pointer, size_t *nbytes)
{
    GN_CHECK_ARGUMENT(manager != NULL && nbytes != NULL, "manager and nbytes must not be NULL");
    return manager->policy->size(manager, pointer, nbytes);
}

gn_status gn_memory_get_statistics(gn_memory_manager *manager, gn_memory_statistics *statistics)
{
    GN_CHECK_ARGUMENT(manager != NULL && statistics != NULL,
                      "manager and statistics must not be NULL");
    return manager->policy->statistics(manager, statistics);
}

gn_status gn_memory_reset_peaks(gn_memory_manager *manager)
{
    GN_CHECK_ARGUMENT(manager != NULL, "manager is NULL");
    manager->policy->reset_peaks(manager);
    return GN_OK;
}
