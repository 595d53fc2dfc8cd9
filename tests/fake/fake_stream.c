/*
 * fake_stream.c: the stand-in's streams, events and kernels. Work is done when it is submitted.
 */
#include "fake_inside.h"

#include <time.h>

static _Thread_local unsigned long long thread_stream_id; /* of the per-thread default stream */

/* ---- streams and events --------------------------------------------------------------------- */

CUdevice stream_device(CUstream stream)
{
    if ((uintptr_t)stream <= 2)
        return context_current()->device;
    struct object *object = object_find(OBJECT_STREAM, stream);
    return object != NULL ? object->device : -1;
}

static unsigned long long stream_id(CUstream stream)
{
    if ((uintptr_t)stream <= 1)
        return context_current()->default_stream_id;
    if (stream != CU_STREAM_PER_THREAD)
        return object_find(OBJECT_STREAM, stream)->id;
    if (thread_stream_id == 0)
        thread_stream_id = ++last_id;
    return thread_stream_id;
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE(flags <= CU_STREAM_NON_BLOCKING, CUDA_ERROR_INVALID_VALUE);
    struct object *made = object_add(OBJECT_STREAM, context_current()->device);
    made->flags = flags;
    made->priority = priority;
    made->id = ++last_id;
    *stream = (CUstream)made;
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE_OBJECT(OBJECT_STREAM, stream);
    object_remove(OBJECT_STREAM, (struct object *)stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE_STREAM(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE_STREAM(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE_STREAM(stream);
    REQUIRE_OBJECT(OBJECT_EVENT, event);
    REQUIRE(flags == 0, CUDA_ERROR_INVALID_VALUE);
    return CUDA_SUCCESS;
}

/* What real drivers do, and no documentation says: asking ends the capture. */
static CUresult capture_disturb(CUstream stream)
{
    struct object *object = object_find(OBJECT_STREAM, stream);
    if (object == NULL || object->capture == CU_STREAM_CAPTURE_STATUS_NONE)
        return CUDA_SUCCESS;
    object->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE_STREAM(stream);
    REQUIRE(capture_disturb(stream) == CUDA_SUCCESS, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    *id = stream_id(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE_STREAM(stream);
    struct object *object = object_find(OBJECT_STREAM, stream);
    *status = object != NULL ? object->capture : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE_STREAM(stream);
    struct object *object = object_find(OBJECT_STREAM, stream);
    *priority = object != NULL ? object->priority : 0;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE_STREAM(stream);
    *context = &contexts[stream_device(stream)];
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE(flags <= 3, CUDA_ERROR_INVALID_VALUE);
    struct object *made = object_add(OBJECT_EVENT, context_current()->device);
    made->flags = flags;
    *event = (CUevent)made;
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE_OBJECT(OBJECT_EVENT, event);
    object_remove(OBJECT_EVENT, (struct object *)event);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    DRIVER_CALL(NEED_CONTEXT);
    struct object *object = object_find(OBJECT_EVENT, event);
    REQUIRE(object != NULL && object->device == stream_device(stream), CUDA_ERROR_INVALID_HANDLE);
    object->is_recorded = true;
    object->time_ms = now_ms();
    return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE_OBJECT(OBJECT_EVENT, event);
    return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent event)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE_OBJECT(OBJECT_EVENT, event);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *elapsed_ms, CUevent start, CUevent end)
{
    DRIVER_CALL(NEED_CONTEXT);
    struct object *first = object_find(OBJECT_EVENT, start);
    struct object *last = object_find(OBJECT_EVENT, end);
    REQUIRE(first != NULL && first->is_recorded && !(first->flags & CU_EVENT_DISABLE_TIMING),
            CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(last != NULL && last->is_recorded && !(last->flags & CU_EVENT_DISABLE_TIMING),
            CUDA_ERROR_INVALID_HANDLE);
    *elapsed_ms = (float)(last->time_ms - first->time_ms);
    return CUDA_SUCCESS;
}

/* ---- kernels: "fake:NAME" is an image with the one kernel NAME ------------------------------ */

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE(image != NULL && strncmp(image, "fake:", 5) == 0, CUDA_ERROR_INVALID_IMAGE);
    struct object *made = object_add(OBJECT_MODULE, context_current()->device);
    (void)snprintf(made->kernel, sizeof made->kernel, "%s", (const char *)image + 5);
    made->shared_bytes_max = SHARED_BYTES;
    *module = (CUmodule)made;
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE_OBJECT(OBJECT_MODULE, module);
    object_remove(OBJECT_MODULE, (struct object *)module);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    DRIVER_CALL(NEED_CONTEXT);
    struct object *object = object_find(OBJECT_MODULE, module);
    REQUIRE(object != NULL, CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(strcmp(object->kernel, name) == 0, CUDA_ERROR_NOT_FOUND);
    *function = (CUfunction)object; /* a module has one kernel, so its handle serves for both */
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE_OBJECT(OBJECT_MODULE, function);
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = THREADS_PER_BLOCK_MAX;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = 24;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = 512;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = 16;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    DRIVER_CALL(NEED_CONTEXT);
    struct object *module = object_find(OBJECT_MODULE, function);
    REQUIRE(module != NULL, CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value >= 0 &&
                value <= SHARED_BYTES_OPTIN,
            CUDA_ERROR_INVALID_VALUE);
    module->shared_bytes_max = value;
    return CUDA_SUCCESS;
}

/* Of the one kernel that there is: an address and a number. */
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *nbytes)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE_OBJECT(OBJECT_MODULE, function);
    REQUIRE(offset != NULL && nbytes != NULL && index < 2, CUDA_ERROR_INVALID_VALUE);
    *offset = index * sizeof(CUdeviceptr);
    *nbytes = index == 0 ? sizeof(CUdeviceptr) : sizeof(int);
    return CUDA_SUCCESS;
}

/* Adds one to n ints; a bad address is found out later, as on a device. */
static void kernel_add_one(CUcontext context, CUdeviceptr target, int n)
{
    if (!is_in_arena(target) || !span_is_valid(target, (size_t)n * sizeof(int))) {
        context->lost = CUDA_ERROR_ILLEGAL_ADDRESS;
        return;
    }
    for (int i = 0; i < n; i++) {
        size_t run;
        int value;
        unsigned char *at = bytes_at(target + (size_t)i * sizeof value, sizeof value, &run);
        memcpy(&value, at, sizeof value);
        value++;
        memcpy(at, &value, sizeof value);
    }
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                        void **parameters, void **extra)
{
    DRIVER_CALL(NEED_CONTEXT);
    struct object *module = object_find(OBJECT_MODULE, function);
    REQUIRE_STREAM(stream);
    REQUIRE(module != NULL && module->device == context_current()->device &&
                module->device == stream_device(stream),
            CUDA_ERROR_INVALID_HANDLE);
    unsigned long long threads = (unsigned long long)block_x * block_y * block_z;
    REQUIRE(grid_x > 0 && grid_y > 0 && grid_z > 0 && threads > 0 &&
                threads <= THREADS_PER_BLOCK_MAX && extra == NULL,
            CUDA_ERROR_INVALID_VALUE);
    REQUIRE(shared_bytes <= (unsigned)module->shared_bytes_max, CUDA_ERROR_INVALID_VALUE);
    if (strcmp(module->kernel, "add_one") == 0)
        kernel_add_one(context_current(), *(CUdeviceptr *)parameters[0], *(int *)parameters[1]);
    else if (strcmp(module->kernel, "crash") == 0)
        context_current()->lost = CUDA_ERROR_ILLEGAL_ADDRESS;
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters,
                          void **extra)
{
    return cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ,
                          config->blockDimX, config->blockDimY, config->blockDimZ,
                          config->sharedMemBytes, config->hStream, parameters, extra);
}

/* ---- graphs, which this driver does not have ------------------------------------------------- */

#define NOT_SUPPORTED(name, arguments)   \
    CUresult name arguments              \
    {                                    \
        DRIVER_CALL(NEED_INIT);          \
        return CUDA_ERROR_NOT_SUPPORTED; \
    }

#define UNUSED __attribute__((unused))

NOT_SUPPORTED(cuStreamBeginCapture, (CUstream stream UNUSED, CUstreamCaptureMode mode UNUSED))
NOT_SUPPORTED(cuStreamEndCapture, (CUstream stream UNUSED, CUgraph *graph UNUSED))
NOT_SUPPORTED(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode UNUSED))
NOT_SUPPORTED(cuGraphCreate, (CUgraph * graph UNUSED, unsigned int flags UNUSED))
NOT_SUPPORTED(cuGraphAddKernelNode, (CUgraphNode * node UNUSED, CUgraph graph UNUSED,
                                     const CUgraphNode *dependencies UNUSED, size_t count UNUSED,
                                     const CUDA_KERNEL_NODE_PARAMS_v2 *parameters UNUSED))
NOT_SUPPORTED(cuGraphAddDependencies,
              (CUgraph graph UNUSED, const CUgraphNode *from UNUSED, const CUgraphNode *to UNUSED,
               const CUgraphEdgeData *edges UNUSED, size_t count UNUSED))
NOT_SUPPORTED(cuGraphExecKernelNodeSetParams, (CUgraphExec exec UNUSED, CUgraphNode node UNUSED,
                                               const CUDA_KERNEL_NODE_PARAMS_v2 *parameters UNUSED))
NOT_SUPPORTED(cuGraphInstantiateWithFlags,
              (CUgraphExec * exec UNUSED, CUgraph graph UNUSED, unsigned long long flags UNUSED))
NOT_SUPPORTED(cuGraphLaunch, (CUgraphExec exec UNUSED, CUstream stream UNUSED))
NOT_SUPPORTED(cuGraphDestroy, (CUgraph graph UNUSED))
NOT_SUPPORTED(cuGraphExecDestroy, (CUgraphExec exec UNUSED))
