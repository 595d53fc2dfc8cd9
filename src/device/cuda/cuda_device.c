/*
 * cuda_device.c: opening GPUs, entering their contexts, and what a driver's results mean.
 *
 * The primary context is retained, never created: it is the one that the CUDA runtime, and so every
 * other library in the process, uses.
 *
 * Threads: cuda_mutex guards opening and closing. It is never held while a slot runs.
 */
#include "device/cuda/cuda_queue.h"

#include "base/fork.h"
#include "base/log.h"
#include "base/option.h"
#include "base/thread.h"

#include <stdio.h>
#include <string.h>

enum {
    EARLY_DRIVER = 12030, /* captures know early launches since then */
};

static struct gni_cuda_device cuda_devices[GNI_DEVICE_MAX];
static struct gni_mutex cuda_mutex = GNI_MUTEX_INIT;
static struct gni_once cuda_once = GNI_ONCE_INIT;

static const struct gni_device_ops cuda_ops;

/* ---- results -------------------------------------------------------------------------------- */

/* After these the context is of no use: NVIDIA asks for the process to be ended. */
static bool result_is_sticky(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
        return true;
    default:
        return false;
    }
}

static gn_status result_status(CUresult result)
{
    if (result_is_sticky(result))
        return GN_ERROR_DEVICE_LOST;
    if (result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
        result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
        return GN_ERROR_CAPTURE;
    switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
        return GN_ERROR_OUT_OF_MEMORY;
    case CUDA_ERROR_INVALID_VALUE:
        return GN_ERROR_INVALID_VALUE;
    case CUDA_ERROR_NOT_SUPPORTED:
        return GN_ERROR_UNSUPPORTED;
    case CUDA_ERROR_DEINITIALIZED:
        return GN_ERROR_SHUTDOWN;
    default:
        return GN_ERROR_DRIVER;
    }
}

static gn_status lost_error(const struct gni_cuda_device *device, CUresult result)
{
    return gni_error(GN_ERROR_DEVICE_LOST,
                     "%s is lost: an earlier kernel or copy failed with %s; save what you can and "
                     "restart the process",
                     gni_device_label(&device->base).text,
                     gni_cuda_error_text(device->driver, result).text);
}

/* The first sticky result is kept and printed once: nobody may miss it. CD3. */
static void device_lose(struct gni_cuda_device *device, const char *function, CUresult result)
{
    int none = 0;
    if (atomic_compare_exchange_strong(&device->lost, &none, (int)result))
        gni_log(GNI_LOG_ERROR, "%s is lost: %s reported %s", gni_device_label(&device->base).text,
                function, gni_cuda_error_text(device->driver, result).text);
}

/* ---- contexts ------------------------------------------------------------------------------- */

static gn_status cuda_check(gn_device *base)
{
    struct gni_cuda_device *device = gni_cuda_device_of(base);
    GN_TRY(gni_cuda_driver_check());
    int lost = atomic_load_explicit(&device->lost, memory_order_relaxed);
    if (lost != 0)
        return lost_error(device, (CUresult)lost);
    return GN_OK;
}

/* A thread's mode is exchanged, so that two exchanges leave it as it was. */
void gni_cuda_relax(struct gni_cuda_scope *scope)
{
    const struct gni_cuda_functions *functions = &scope->device->driver->functions;
    scope->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    scope->is_relaxed = functions->cuThreadExchangeStreamCaptureMode != NULL &&
                        functions->cuThreadExchangeStreamCaptureMode(&scope->mode) == CUDA_SUCCESS;
}

gn_status gni_cuda_enter(struct gni_cuda_device *device, enum gni_cuda_way way,
                         struct gni_cuda_scope *scope)
{
    if (way == GNI_CUDA_SUBMITTING)
        GN_TRY(gni_cuda_queue_report(device));
    GN_TRY(cuda_check(&device->base));
    struct gni_cuda_queue *queue = atomic_load_explicit(&device->queue, memory_order_acquire);
    if (queue != NULL)
        gni_cuda_queue_wait(queue);
    atomic_store_explicit(&device->launch_run, 0, memory_order_relaxed);
    CUcontext context = atomic_load_explicit(&device->context, memory_order_acquire);
    if (context == NULL) { /* gn_shutdown() gave it back; whoever uses the device takes it again */
        gn_device *same;
        GN_TRY(gni_cuda_device_open(device->base.index, &same));
        context = atomic_load_explicit(&device->context, memory_order_acquire);
    }
    const struct gni_cuda_functions *functions = &device->driver->functions;
    CUcontext current = NULL;
    const char *function = "cuCtxGetCurrent";
    CUresult result = functions->cuCtxGetCurrent(&current);
    *scope = (struct gni_cuda_scope){.device = device,
                                     .is_pushed = result == CUDA_SUCCESS && current != context};
    if (scope->is_pushed) {
        function = "cuCtxPushCurrent";
        result = functions->cuCtxPushCurrent(context);
    }
    if (result != CUDA_SUCCESS) {
        scope->is_pushed = false;
        return gni_cuda_leave(scope, function, result);
    }
    if (way == GNI_CUDA_RELAXED)
        gni_cuda_relax(scope);
    if (way == GNI_CUDA_SUBMITTING)
        gni_cuda_gate_enter(&device->gate);
    scope->is_inside = way == GNI_CUDA_SUBMITTING;
    return GN_OK;
}

gn_status gni_cuda_enter_for(struct gni_cuda_device *device, enum gni_cuda_way way,
                             const char *function, bool is_there, struct gni_cuda_scope *scope)
{
    if (!is_there)
        return gni_error(GN_ERROR_UNSUPPORTED, "the CUDA driver has no %s, which is needed for %s",
                         function, gni_cuda_function_lost(function));
    return gni_cuda_enter(device, way, scope);
}

gn_status gni_cuda_leave(struct gni_cuda_scope *scope, const char *function, CUresult result)
{
    struct gni_cuda_device *device = scope->device;
    if (scope->is_inside)
        gni_cuda_gate_leave(&device->gate);
    if (scope->is_relaxed)
        (void)device->driver->functions.cuThreadExchangeStreamCaptureMode(&scope->mode);
    if (scope->is_pushed) {
        CUcontext popped;
        (void)device->driver->functions.cuCtxPopCurrent(&popped);
    }
    if (result == CUDA_SUCCESS)
        return GN_OK;
    if (result == CUDA_ERROR_NOT_READY)
        return GN_ERROR_NOT_READY; /* an answer, not a failure: it has no detail */
    if (result_is_sticky(result))
        device_lose(device, function, result);
    return gni_error(result_status(result), "%s: %s failed: %s",
                     gni_device_label(&device->base).text, function,
                     gni_cuda_error_text(device->driver, result).text);
}

/* ---- opening -------------------------------------------------------------------------------- */

gn_status gni_cuda_device_count(int *count)
{
    const struct gni_cuda_driver *driver;
    GN_TRY(gni_cuda_driver_open(&driver));
    int found = 0;
    CUresult result = driver->functions.cuDeviceGetCount(&found);
    if (result != CUDA_SUCCESS)
        return gni_error(GN_ERROR_UNAVAILABLE,
                         "the CUDA driver cannot count its devices: cuDeviceGetCount failed: %s",
                         gni_cuda_error_text(driver, result).text);
    if (found <= 0)
        return gni_error(GN_ERROR_UNAVAILABLE, "the CUDA driver %s finds no GPU", driver->path);
    *count = found < GNI_DEVICE_MAX ? found : GNI_DEVICE_MAX;
    return GN_OK;
}

/* Reads one attribute; `failure` keeps the first result that is a real failure. */
static int attribute_get(const struct gni_cuda_device *device, CUdevice_attribute attribute,
                         CUresult *failure)
{
    int value = 0;
    CUresult result =
        device->driver->functions.cuDeviceGetAttribute(&value, attribute, device->handle);
    if (result == CUDA_SUCCESS)
        return value;
    if (result != CUDA_ERROR_INVALID_VALUE && *failure == CUDA_SUCCESS)
        *failure = result; /* INVALID_VALUE: an older driver does not know the attribute */
    return 0;
}

static void uuid_print(const CUuuid *uuid, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "GPU-");
    for (int i = 0; i < 16 && used + 3 < size; i++) {
        bool has_dash = i == 4 || i == 6 || i == 8 || i == 10;
        used += (size_t)snprintf(text + used, size - used, "%s%02x", has_dash ? "-" : "",
                                 (unsigned)(unsigned char)uuid->bytes[i]);
    }
}

/* A device that does not start; a sticky result loses it as any other call would. */
static gn_status start_error(struct gni_cuda_device *device, const char *function, CUresult result)
{
    if (result_is_sticky(result))
        device_lose(device, function, result);
    return gni_error(result_status(result), "%s could not be started: %s failed: %s",
                     gni_device_label(&device->base).text, function,
                     gni_cuda_error_text(device->driver, result).text);
}

/* All of it can be read without a context. */
static gn_status properties_read(struct gni_cuda_device *device)
{
    const struct gni_cuda_functions *functions = &device->driver->functions;
    gn_device_properties *made = &device->properties;
    *made = (gn_device_properties){.total_memory = 0};
    const char *function = "cuDeviceGetName";
    CUresult failure =
        functions->cuDeviceGetName(made->name, (int)sizeof made->name, device->handle);
    size_t total = 0;
    if (failure == CUDA_SUCCESS) {
        function = "cuDeviceTotalMem";
        failure = functions->cuDeviceTotalMem(&total, device->handle);
        made->total_memory = total;
    }
    if (failure != CUDA_SUCCESS)
        return start_error(device, function, failure);
    CUuuid uuid;
    if (functions->cuDeviceGetUuid != NULL &&
        functions->cuDeviceGetUuid(&uuid, device->handle) == CUDA_SUCCESS)
        uuid_print(&uuid, made->uuid, sizeof made->uuid);
    if (functions->cuDeviceGetPCIBusId == NULL ||
        functions->cuDeviceGetPCIBusId(made->pci_bus_id, (int)sizeof made->pci_bus_id,
                                       device->handle) != CUDA_SUCCESS)
        made->pci_bus_id[0] = '\0';

#define READ(attribute) attribute_get(device, CU_DEVICE_ATTRIBUTE_##attribute, &failure)
    made->major = READ(COMPUTE_CAPABILITY_MAJOR);
    made->minor = READ(COMPUTE_CAPABILITY_MINOR);
    made->multi_processor_count = READ(MULTIPROCESSOR_COUNT);
    made->warp_size = READ(WARP_SIZE);
    made->max_threads_per_block = READ(MAX_THREADS_PER_BLOCK);
    made->max_threads_per_multi_processor = READ(MAX_THREADS_PER_MULTIPROCESSOR);
    made->registers_per_multi_processor = READ(MAX_REGISTERS_PER_MULTIPROCESSOR);
    made->shared_memory_per_block = (uint64_t)READ(MAX_SHARED_MEMORY_PER_BLOCK);
    made->shared_memory_per_block_optin = (uint64_t)READ(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    made->shared_memory_per_multi_processor = (uint64_t)READ(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    made->l2_cache_size = (uint64_t)READ(L2_CACHE_SIZE);
    made->clock_rate_khz = READ(CLOCK_RATE);
    made->memory_clock_rate_khz = READ(MEMORY_CLOCK_RATE);
    made->memory_bus_width_bits = READ(GLOBAL_MEMORY_BUS_WIDTH);
    made->is_integrated = READ(INTEGRATED) != 0;
    made->has_stream_ordered_memory = functions->cuMemAllocAsync != NULL &&
                                      functions->cuMemFreeAsync != NULL &&
                                      READ(MEMORY_POOLS_SUPPORTED) != 0;
    made->has_virtual_memory =
        functions->cuMemGetAllocationGranularity != NULL &&
        functions->cuMemAddressReserve != NULL && functions->cuMemAddressFree != NULL &&
        functions->cuMemCreate != NULL && functions->cuMemRelease != NULL &&
        functions->cuMemMap != NULL && functions->cuMemUnmap != NULL &&
        functions->cuMemSetAccess != NULL && READ(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) != 0;
#undef READ
    device->launches_early = made->major >= 9 && functions->cuLaunchKernelEx != NULL &&
                             device->driver->version >= EARLY_DRIVER &&
                             gni_option_flag(GNI_OPTION_LAUNCH_EARLY);
    device->launches_together =
        functions->cuGraphCreate != NULL && functions->cuGraphAddKernelNode != NULL &&
        functions->cuGraphAddDependencies != NULL &&
        functions->cuGraphExecKernelNodeSetParams != NULL &&
        functions->cuGraphInstantiateWithFlags != NULL && functions->cuGraphLaunch != NULL &&
        functions->cuGraphExecDestroy != NULL && functions->cuGraphDestroy != NULL &&
        functions->cuThreadExchangeStreamCaptureMode != NULL &&
        gni_option_flag(GNI_OPTION_LAUNCH_TOGETHER);
    return failure == CUDA_SUCCESS ? GN_OK : start_error(device, "cuDeviceGetAttribute", failure);
}

static const struct gni_fork_handlers cuda_fork = {.mutex = &cuda_mutex};

static void cuda_start(void)
{
    for (int index = 0; index < GNI_DEVICE_MAX; index++)
        gni_mutex_init(&cuda_devices[index].gate.mutex);
    gni_fork_register(GNI_FORK_CUDA_DEVICE, &cuda_fork);
}

/* What the device is, once for ever: CD5. Under cuda_mutex. */
static gn_status identity_read(struct gni_cuda_device *device, int index)
{
    GN_TRY(gni_cuda_driver_open(&device->driver));
    device->base.ops = &cuda_ops;
    device->base.type = GN_DEVICE_CUDA;
    device->base.index = index;
    CUresult result = device->driver->functions.cuDeviceGet(&device->handle, index);
    if (result != CUDA_SUCCESS)
        return gni_error(GN_ERROR_INVALID_DEVICE, "cuda:%d cannot be used: cuDeviceGet failed: %s",
                         index, gni_cuda_error_text(device->driver, result).text);
    GN_TRY(properties_read(device));
    gni_stream_init(&device->default_stream, &device->base, GNI_STREAM_DEFAULT);
    device->base.default_stream = &device->default_stream;
    return GN_OK;
}

/* Reads what needs the context; what can be known once is kept from the first time. */
static CUresult context_read(struct gni_cuda_device *device, const char **function)
{
    const struct gni_cuda_functions *functions = &device->driver->functions;
    int least = 0, greatest = 0;
    unsigned long long id = 0;
    *function = "cuCtxGetStreamPriorityRange";
    CUresult result = functions->cuCtxGetStreamPriorityRange(&least, &greatest);
    if (result == CUDA_SUCCESS && functions->cuStreamGetId != NULL) {
        *function = "cuStreamGetId";
        result = functions->cuStreamGetId(NULL, &id);
    }
    if (result != CUDA_SUCCESS)
        return result;
    if (!device->is_known) {
        device->priority_least = least;
        device->priority_greatest = greatest;
    }
    uint64_t known = atomic_load(&device->default_stream.id);
    if (id != 0 || known == 0)
        atomic_store(&device->default_stream.id, id != 0 ? id : gni_stream_next_id());
    return CUDA_SUCCESS;
}

/* Retains the context, and publishes it when it is known to work. Under cuda_mutex. */
static gn_status context_open(struct gni_cuda_device *device)
{
    const struct gni_cuda_functions *functions = &device->driver->functions;
    CUcontext context, popped;
    const char *function = "cuDevicePrimaryCtxRetain";
    CUresult result = functions->cuDevicePrimaryCtxRetain(&context, device->handle);
    if (result != CUDA_SUCCESS)
        return start_error(device, function, result);
    function = "cuCtxPushCurrent";
    result = functions->cuCtxPushCurrent(context);
    if (result == CUDA_SUCCESS) {
        result = context_read(device, &function);
        (void)functions->cuCtxPopCurrent(&popped);
    }
    if (result != CUDA_SUCCESS) {
        (void)functions->cuDevicePrimaryCtxRelease(device->handle);
        return start_error(device, function, result);
    }
    device->is_known = true;
    atomic_store_explicit(&device->context, context, memory_order_release);
    return GN_OK;
}

/* The first time, or again after gn_shutdown(). Under cuda_mutex. */
static gn_status device_open(struct gni_cuda_device *device, int index)
{
    if (!device->is_known)
        GN_TRY(identity_read(device, index));
    GN_TRY(cuda_check(&device->base));
    return context_open(device);
}

gn_status gni_cuda_device_open(int index, gn_device **out)
{
    gni_assert(index >= 0 && index < GNI_DEVICE_MAX);
    struct gni_cuda_device *device = &cuda_devices[index];
    if (atomic_load_explicit(&device->context, memory_order_acquire) == NULL) {
        gni_once_run(&cuda_once, cuda_start);
        gni_mutex_lock(&cuda_mutex);
        gn_status status =
            atomic_load(&device->context) != NULL ? GN_OK : device_open(device, index);
        gni_mutex_unlock(&cuda_mutex);
        GN_TRY(status);
    }
    *out = &device->base;
    return GN_OK;
}

bool gni_cuda_is_started(void)
{
    for (int index = 0; index < GNI_DEVICE_MAX; index++)
        if (atomic_load(&cuda_devices[index].context) != NULL)
            return !gni_cuda_driver_is_gone();
    return false;
}

int gni_cuda_devices_close(void)
{
    int left = 0;
    gni_mutex_lock(&cuda_mutex);
    for (int index = 0; index < GNI_DEVICE_MAX; index++) {
        struct gni_cuda_device *device = &cuda_devices[index];
        if (atomic_load(&device->context) == NULL)
            continue;
        int objects = atomic_load(&device->base.object_count);
        left += objects;
        if (objects > 0 || gni_cuda_driver_is_gone() || atomic_load(&device->lost) != 0)
            continue;
        gni_cuda_queue_forget(device, NULL);
        _Atomic(uint64_t) *fault = atomic_exchange(&device->base.upper.fault, NULL);
        if (fault != NULL)
            (void)gni_cuda_host_free(&device->base, fault, sizeof *fault);
        atomic_store(&device->context, NULL);
        (void)device->driver->functions.cuDevicePrimaryCtxRelease(device->handle);
    }
    gni_mutex_unlock(&cuda_mutex);
    return left;
}

/* ---- the slots about the device ------------------------------------------------------------- */

static gn_status cuda_properties(gn_device *base, gn_device_properties *properties)
{
    *properties = gni_cuda_device_of(base)->properties;
    return GN_OK;
}

static gn_status cuda_memory_info(gn_device *base, size_t *free_bytes, size_t *total_bytes)
{
    size_t free_now, total;
    GNI_CUDA_TRY(gni_cuda_device_of(base), cuMemGetInfo, &free_now, &total);
    *free_bytes = free_now;
    *total_bytes = total;
    return GN_OK;
}

/* A driver without the function is one that does not say: none can. */
static gn_status cuda_can_access(gn_device *base, gn_device *peer, bool *can_access)
{
    struct gni_cuda_device *device = gni_cuda_device_of(base);
    int answer = 0;
    if (device->driver->functions.cuDeviceCanAccessPeer == NULL)
        return GN_OK;
    GNI_CUDA_TRY(device, cuDeviceCanAccessPeer, &answer, device->handle,
                 gni_cuda_device_of(peer)->handle);
    *can_access = answer != 0;
    return GN_OK;
}

/*
 * The driver refuses this during a capture, and spoils the capture. So it is not asked; a capture that another thread
 * begins between the look and the call can still be spoilt, as it can by any other library's.
 */
static gn_status cuda_synchronize(gn_device *base)
{
    struct gni_cuda_device *device = gni_cuda_device_of(base);
    if (atomic_load(&device->capture_count) > 0)
        return gni_error(GN_ERROR_CAPTURE,
                         "%s cannot be waited for while a graph is captured: what is captured does "
                         "not run before the graph is replayed; wait for another stream, or an "
                         "event",
                         gni_device_label(base).text);
    GN_TRY(gni_cuda_queue_report(device));
    GNI_CUDA_TRY(device, cuCtxSynchronize);
    return GN_OK;
}

static const struct gni_device_ops cuda_ops = {
    .name = "cuda",
    .is_numbered = true,
    .is_lost_in_fork = true,
    .is_bounded = true,
    .has_pinned_memory = true,
    .has_handles = true,
    .has_options = true,
    .dlpack_type = 2, /* kDLCUDA */
    .check = cuda_check,
    .properties = cuda_properties,
    .memory_info = cuda_memory_info,
    .synchronize = cuda_synchronize,
    .can_access = cuda_can_access,
    .memory_alloc = gni_cuda_memory_alloc,
    .memory_free = gni_cuda_memory_free,
    .memory_alloc_async = gni_cuda_memory_alloc_async,
    .memory_free_async = gni_cuda_memory_free_async,
    .virtual_granularity = gni_cuda_virtual_granularity,
    .virtual_reserve = gni_cuda_virtual_reserve,
    .virtual_release = gni_cuda_virtual_release,
    .physical_create = gni_cuda_physical_create,
    .physical_release = gni_cuda_physical_release,
    .virtual_map = gni_cuda_virtual_map,
    .virtual_unmap = gni_cuda_virtual_unmap,
    .virtual_grant = gni_cuda_virtual_grant,
    .host_alloc = gni_cuda_host_alloc,
    .host_free = gni_cuda_host_free,
    .host_register = gni_cuda_host_register,
    .host_unregister = gni_cuda_host_unregister,
    .copy = gni_cuda_copy,
    .fill = gni_cuda_fill,
    .stream_open = gni_cuda_stream_open,
    .stream_close = gni_cuda_stream_close,
    .stream_id = gni_cuda_stream_id,
    .stream_query = gni_cuda_stream_query,
    .stream_synchronize = gni_cuda_stream_synchronize,
    .stream_wait_event = gni_cuda_stream_wait_event,
    .stream_is_capturing = gni_cuda_stream_is_capturing,
    .event_open = gni_cuda_event_open,
    .event_close = gni_cuda_event_close,
    .event_record = gni_cuda_event_record,
    .event_query = gni_cuda_event_query,
    .event_synchronize = gni_cuda_event_synchronize,
    .event_elapsed = gni_cuda_event_elapsed,
    .module_load = gni_cuda_module_load,
    .module_unload = gni_cuda_module_unload,
    .function_find = gni_cuda_function_find,
    .function_properties = gni_cuda_function_properties,
    .function_allow_shared = gni_cuda_function_allow_shared,
    .function_parameter = gni_cuda_function_parameter,
    .function_launch = gni_cuda_function_launch,
    .submit = gni_cuda_submit,
    .pause = gni_cuda_pause,
    .resume = gni_cuda_resume,
    .graph_begin = gni_cuda_graph_begin,
    .graph_end = gni_cuda_graph_end,
    .graph_launch = gni_cuda_graph_launch,
    .graph_close = gni_cuda_graph_close,
};
