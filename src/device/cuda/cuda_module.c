/*
 * cuda_module.c: code on a GPU: modules, the kernels in them, and launches.
 *
 * A kernel may be needed for the first time while a stream is being captured. So all that makes one ready is
 * relaxed about captures: loading, and asking about it, which is when the driver really loads it.
 */
#include "device/cuda/cuda_queue.h"

#include <string.h>

gn_status gni_cuda_module_load(gn_device *device, const void *image, struct gni_module *module)
{
    CUmodule handle;
    GNI_CUDA_TRY_RELAXED(gni_cuda_device_of(device), cuModuleLoadData, &handle, image);
    *module = (struct gni_module){.device = device, .handle = handle};
    atomic_fetch_add(&device->object_count, 1);
    return GN_OK;
}

static gn_status module_unload(const struct gni_module *module)
{
    gni_cuda_queue_forget(gni_cuda_device_of(module->device), NULL);
    GNI_CUDA_TRY(gni_cuda_device_of(module->device), cuModuleUnload, module->handle);
    return GN_OK;
}

gn_status gni_cuda_module_unload(struct gni_module *module)
{
    gn_device *device = module->device;
    gn_status status = gni_cuda_driver_is_gone() ? GN_OK : module_unload(module);
    if (status != GN_OK && status != GN_ERROR_DEVICE_LOST)
        return status;
    atomic_fetch_sub(&device->object_count, 1); /* a lost device has taken it along */
    *module = (struct gni_module){.device = NULL};
    return status;
}

gn_status gni_cuda_function_find(const struct gni_module *module, const char *name,
                                 struct gni_function *function)
{
    CUfunction handle;
    GNI_CUDA_TRY_RELAXED(gni_cuda_device_of(module->device), cuModuleGetFunction, &handle,
                         module->handle, name);
    *function = (struct gni_function){.device = module->device, .handle = handle};
    return GN_OK;
}

gn_status gni_cuda_function_properties(const struct gni_function *function,
                                       struct gni_function_properties *properties)
{
    static const CUfunction_attribute attributes[] = {
        CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
        CU_FUNC_ATTRIBUTE_NUM_REGS,
        CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
        CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
    };
    int values[4];
    for (int i = 0; i < 4; i++)
        GNI_CUDA_TRY_RELAXED(gni_cuda_device_of(function->device), cuFuncGetAttribute, &values[i],
                             attributes[i], function->handle);
    *properties = (struct gni_function_properties){.max_threads_per_block = values[0],
                                                   .register_count = values[1],
                                                   .static_shared_bytes = (size_t)values[2],
                                                   .local_bytes = (size_t)values[3]};
    return GN_OK;
}

gn_status gni_cuda_function_allow_shared(const struct gni_function *function, size_t nbytes)
{
    if (nbytes > INT32_MAX)
        return gni_error(GN_ERROR_INVALID_VALUE, "%zu bytes of shared memory are too many", nbytes);
    GNI_CUDA_TRY(gni_cuda_device_of(function->device), cuFuncSetAttribute, function->handle,
                 CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)nbytes);
    return GN_OK;
}

gn_status gni_cuda_function_parameter(const struct gni_function *function, size_t index,
                                      size_t *nbytes)
{
    size_t offset, size;
    GNI_CUDA_TRY_RELAXED(gni_cuda_device_of(function->device), cuFuncGetParamInfo, function->handle,
                         index, &offset, &size);
    *nbytes = size;
    return GN_OK;
}

struct gni_cuda_launch gni_cuda_launch_of(const struct gni_function *function,
                                          const gn_stream *stream, const struct gni_launch *launch)
{
    struct gni_cuda_launch made = {
        .function = function->handle,
        .stream = stream->handle,
        .shared_bytes = (unsigned)launch->shared_bytes,
        .is_early = launch->waits && gni_cuda_device_of(function->device)->launches_early};
    memcpy(made.grid, launch->grid, sizeof made.grid);
    memcpy(made.block, launch->block, sizeof made.block);
    return made;
}

CUresult gni_cuda_launch_submit(const struct gni_cuda_driver *driver,
                                const struct gni_cuda_launch *launch, void **arguments,
                                const char **name)
{
    const unsigned *grid = launch->grid, *block = launch->block;
    *name = launch->is_early ? "cuLaunchKernelEx" : "cuLaunchKernel";
    if (!launch->is_early)
        return driver->functions.cuLaunchKernel(launch->function, grid[0], grid[1], grid[2],
                                                block[0], block[1], block[2], launch->shared_bytes,
                                                launch->stream, arguments, NULL);
    CUlaunchAttribute early = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                               .value = {.programmaticStreamSerializationAllowed = 1}};
    CUlaunchConfig config = {.gridDimX = grid[0],
                             .gridDimY = grid[1],
                             .gridDimZ = grid[2],
                             .blockDimX = block[0],
                             .blockDimY = block[1],
                             .blockDimZ = block[2],
                             .sharedMemBytes = launch->shared_bytes,
                             .hStream = launch->stream,
                             .attrs = &early,
                             .numAttrs = 1};
    return driver->functions.cuLaunchKernelEx(&config, launch->function, arguments, NULL);
}

gn_status gni_cuda_function_launch(const struct gni_function *function, gn_stream *stream,
                                   const struct gni_launch *launch)
{
    gni_assert(function->device == stream->device);
    if (launch->shared_bytes > UINT32_MAX)
        return gni_error(GN_ERROR_INVALID_VALUE, "%zu bytes of shared memory are too many",
                         launch->shared_bytes);
    struct gni_cuda_device *device = gni_cuda_device_of(function->device);
    if (gni_cuda_queue_push(device, function, stream, launch))
        return GN_OK;
    int run = atomic_load_explicit(&device->launch_run, memory_order_relaxed);
    struct gni_cuda_launch made = gni_cuda_launch_of(function, stream, launch);
    struct gni_cuda_scope scope;
    const char *name;
    GN_TRY(gni_cuda_enter(device, GNI_CUDA_SUBMITTING, &scope));
    CUresult result = gni_cuda_launch_submit(device->driver, &made, launch->arguments, &name);
    GN_TRY(gni_cuda_leave(&scope, name, result));
    if (run < INT16_MAX)
        atomic_store_explicit(&device->launch_run, run + 1, memory_order_relaxed);
    return GN_OK;
}
