/*
 * adapter.c: allocate and free for hooks of other libraries.
 *
 * Devices and managers are looked up once. Streams come as handles; for each a wrapper is kept for ever: the
 * engine asks the driver who a stream of another library is each time, so that a handle which was given to
 * another stream meanwhile is not mistaken for it.
 */
#include "genesis/adapter.h"

#include "base/hash.h"
#include "base/lock.h"
#include "base/log.h"
#include "device/device.h"
#include "memory/manager.h"

static _Atomic(gn_memory_manager *) managers[GNI_DEVICE_MAX];
static _Atomic(gn_adapter_failure) on_failure;

/* Wrappers of streams by handle, for each device. */
static struct {
    struct gni_lock lock;
    struct gni_map maps[GNI_DEVICE_MAX];
} streams;

void gn_adapter_set_failure(gn_adapter_failure failure)
{
    atomic_store(&on_failure, failure);
}

/* A manager that is not there yet gets the policy; NULL: the usual one. */
static gn_status manager_find_as(int device, const char *policy, gn_memory_manager **manager)
{
    if (device < 0 || device >= GNI_DEVICE_MAX)
        return gni_error(GN_ERROR_INVALID_DEVICE, "there is no CUDA device %d", device);
    *manager = atomic_load_explicit(&managers[device], memory_order_acquire);
    if (*manager != NULL)
        return GN_OK;
    gn_device *found;
    GN_TRY(gn_device_get(GN_DEVICE_CUDA, device, &found));
    GN_TRY(gni_manager_get_as(found, policy, manager));
    atomic_store_explicit(&managers[device], *manager, memory_order_release);
    return GN_OK;
}

static gn_status manager_find(int device, gn_memory_manager **manager)
{
    return manager_find_as(device, NULL, manager);
}

/* With the lock. */
static gn_status stream_wrap(gn_device *device, void *handle, gn_stream **stream)
{
    struct gni_map *map = &streams.maps[device->index];
    *stream = gni_map_find(map, (uintptr_t)handle);
    if (*stream != NULL)
        return GN_OK;
    GN_TRY(gni_map_reserve(map, gni_map_count(map) + 1));
    GN_TRY(gn_stream_from_handle(device, handle, stream));
    return gni_map_insert(map, (uintptr_t)handle, *stream);
}

static gn_status stream_find(gn_device *device, void *handle, gn_stream **stream)
{
    if ((uintptr_t)handle <= 1) /* CUDA's two names of its default stream */
        return gn_stream_get_default(device, stream);
    GN_TRY(device->ops->check(device)); /* in a forked child the lock may be held for ever */
    gni_lock_take(&streams.lock);
    gn_status status = stream_wrap(device, handle, stream);
    gni_lock_give(&streams.lock);
    return status;
}

static void failure_tell(gn_status status)
{
    gn_adapter_failure failure = atomic_load(&on_failure);
    if (failure != NULL)
        failure(status == GN_ERROR_OUT_OF_MEMORY, gn_error_detail());
    else
        gni_log(GNI_LOG_WARNING, "an allocation failed: %s", gn_error_detail());
}

void gn_adapter_init(int device_count)
{
    for (int device = 0; device < device_count; device++) {
        gn_memory_manager *manager;
        if (manager_find(device, &manager) != GN_OK)
            gni_log(GNI_LOG_WARNING, "%s", gn_error_detail());
    }
}

void gn_adapter_init_shareable(int device)
{
    gn_memory_manager *manager;
    if (manager_find_as(device, "pool", &manager) != GN_OK)
        gni_log(GNI_LOG_WARNING, "%s", gn_error_detail());
}

void *gn_adapter_alloc(size_t nbytes, int device, void *handle)
{
    gn_memory_manager *manager;
    gn_stream *stream;
    void *pointer = NULL;
    gn_status status = manager_find(device, &manager);
    if (status == GN_OK)
        status = stream_find(manager->device, handle, &stream);
    if (status == GN_OK)
        status = gn_memory_alloc(manager, nbytes, stream, &pointer);
    if (status != GN_OK) {
        failure_tell(status);
        return NULL;
    }
    return pointer;
}

void gn_adapter_free(void *pointer, size_t nbytes, int device, void *handle)
{
    (void)handle; /* the block knows its stream */
    if (pointer == NULL)
        return;
    gn_memory_manager *manager;
    gn_status status = manager_find(device, &manager);
    if (status == GN_OK)
        status = gn_memory_free_sized(manager, pointer, nbytes);
    if (status == GN_ERROR_WRONG_SIZE) {
        gni_log(GNI_LOG_WARNING, "%s", gn_error_detail());
        status = gn_memory_free(manager, pointer);
    }
    if (status != GN_OK)
        gni_log(GNI_LOG_WARNING, "a free failed: %s", gn_error_detail());
}

void gn_adapter_record_stream(void *pointer, void *handle)
{
    for (int device = 0; device < GNI_DEVICE_MAX; device++) {
        gn_memory_manager *manager = atomic_load(&managers[device]);
        gn_stream *stream;
        size_t nbytes;
        if (manager == NULL || gn_memory_get_size(manager, pointer, &nbytes) != GN_OK)
            continue;
        gn_status status = stream_find(manager->device, handle, &stream);
        if (status == GN_OK)
            status = gn_memory_record_stream(manager, pointer, stream);
        if (status != GN_OK)
            gni_log(GNI_LOG_WARNING, "a use on a stream was not recorded: %s", gn_error_detail());
        return;
    }
    gni_log(GNI_LOG_WARNING, "a use of %p was not recorded: it is no living block", pointer);
}

/* ---- page-locked memory --------------------------------------------------------------------- */

static gn_status pinned_find(int device, gn_memory_manager **manager)
{
    GN_TRY(manager_find(device, manager));
    return gn_memory_manager_get_pinned((*manager)->device, manager);
}

void *gn_adapter_alloc_pinned(size_t nbytes, int device)
{
    gn_memory_manager *manager;
    gn_stream *stream;
    void *pointer = NULL;
    gn_status status = pinned_find(device, &manager);
    if (status == GN_OK)
        status = gn_stream_get_default(manager->device, &stream);
    if (status == GN_OK)
        status = gn_memory_alloc(manager, nbytes, stream, &pointer);
    if (status != GN_OK)
        failure_tell(status);
    return status == GN_OK ? pointer : NULL;
}

void gn_adapter_free_pinned(void *pointer, int device)
{
    gn_memory_manager *manager;
    gn_status status = pinned_find(device, &manager);
    if (status == GN_OK && pointer != NULL)
        status = gn_memory_free(manager, pointer);
    if (status != GN_OK)
        gni_log(GNI_LOG_WARNING, "a free failed: %s", gn_error_detail());
}

/* ---- the rest ------------------------------------------------------------------------------- */

void gn_adapter_reset(void)
{
    for (int device = 0; device < GNI_DEVICE_MAX; device++) {
        gn_memory_manager *manager = atomic_load(&managers[device]);
        if (manager != NULL && gn_memory_trim(manager, 0, NULL) != GN_OK)
            gni_log(GNI_LOG_WARNING, "idle memory was not given back: %s", gn_error_detail());
    }
}

void gn_adapter_set_fraction(double fraction, int device)
{
    gn_memory_manager *manager;
    gn_memory_config config;
    gn_status status = manager_find(device, &manager);
    if (status == GN_OK)
        status = gn_memory_get_config(manager, &config);
    if (status == GN_OK) {
        config.memory_fraction = fraction;
        status = gn_memory_configure(manager, &config);
    }
    if (status != GN_OK)
        gni_log(GNI_LOG_WARNING, "the memory fraction was not set: %s", gn_error_detail());
}

struct around {
    const char *pointer;
    char *start;
    size_t nbytes;
};

static bool around_look(const gn_memory_info *info, void *context)
{
    struct around *around = context;
    char *start = info->address;
    bool is_inside = info->state == GN_MEMORY_LIVE && around->pointer >= start &&
                     around->pointer < start + (info->requested > 0 ? info->requested : 1);
    if (is_inside) {
        around->start = start;
        around->nbytes = info->requested;
    }
    return !is_inside;
}

void *gn_adapter_base(void *pointer, size_t *nbytes)
{
    struct around around = {.pointer = pointer};
    for (int device = 0; device < GNI_DEVICE_MAX && around.start == NULL; device++) {
        gn_memory_manager *manager = atomic_load(&managers[device]);
        if (manager == NULL)
            continue;
        if (gn_memory_get_size(manager, pointer, &around.nbytes) == GN_OK)
            around.start = pointer; /* the usual case */
        else if (gn_memory_visit(manager, around_look, &around) != GN_OK)
            gni_log(GNI_LOG_WARNING, "%s", gn_error_detail());
    }
    if (around.start != NULL && nbytes != NULL)
        *nbytes = around.nbytes;
    return around.start;
}
