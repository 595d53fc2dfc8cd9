/*
 * conformance_driver.c: programs about the driver itself, devices and contexts.
 */
#include "conformance.h"

#include <string.h>

enum {
    NO_DEVICE = 999
}; /* an ordinal that no machine has */

static void driver_start(const struct gni_cuda_functions *cuda)
{
    int version = 0;
    CU(cuInit, (0), CUDA_SUCCESS);
    CU(cuInit, (0), CUDA_SUCCESS); /* again */
    CU(cuInit, (1), CUDA_ERROR_INVALID_VALUE);
    CU(cuDriverGetVersion, (&version), CUDA_SUCCESS);
    EXPECT(version >= 11000);
    CU(cuDriverGetVersion, (NULL), CUDA_ERROR_INVALID_VALUE);
}

/* The version is known before the start, and nothing else. */
static void driver_not_started(const struct gni_cuda_functions *cuda)
{
    int number;
    CUdevice device;
    CUcontext context;
    CU(cuDriverGetVersion, (&number), CUDA_SUCCESS);
    CU(cuDeviceGetCount, (&number), CUDA_ERROR_NOT_INITIALIZED);
    CU(cuDeviceGet, (&device, 0), CUDA_ERROR_NOT_INITIALIZED);
    CU(cuCtxGetCurrent, (&context), CUDA_ERROR_NOT_INITIALIZED);
    CU(cuDevicePrimaryCtxRetain, (&context, 0), CUDA_ERROR_NOT_INITIALIZED);
    CU(cuInit, (0), CUDA_SUCCESS);
    CU(cuDeviceGetCount, (&number), CUDA_SUCCESS);
}

static void driver_error_texts(const struct gni_cuda_functions *cuda)
{
    const char *name = NULL, *text = NULL;
    CU(cuGetErrorName, (CUDA_ERROR_OUT_OF_MEMORY, &name), CUDA_SUCCESS);
    EXPECT(name != NULL && strcmp(name, "CUDA_ERROR_OUT_OF_MEMORY") == 0);
    CU(cuGetErrorString, (CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS);
    EXPECT(text != NULL && strcmp(text, "out of memory") == 0);
    CU(cuGetErrorName, ((CUresult)123456, &name), CUDA_ERROR_INVALID_VALUE);
    EXPECT(name == NULL);
    CU(cuGetErrorString, ((CUresult)123456, &text), CUDA_ERROR_INVALID_VALUE);
    EXPECT(text == NULL);
}

static void device_list(const struct gni_cuda_functions *cuda)
{
    int count = 0;
    CUdevice device = -1;
    NEED(cuDeviceGetCount, (&count));
    EXPECT(count >= 1);
    CU(cuDeviceGetCount, (NULL), CUDA_ERROR_INVALID_VALUE);
    CU(cuDeviceGet, (&device, 0), CUDA_SUCCESS);
    CU(cuDeviceGet, (&device, count), CUDA_ERROR_INVALID_DEVICE);
    CU(cuDeviceGet, (&device, -1), CUDA_ERROR_INVALID_DEVICE);
}

static void device_facts(const struct gni_cuda_functions *cuda)
{
    char name[100] = "", bus[20] = "";
    size_t nbytes = 0;
    CUuuid uuid = {{0}}, none = {{0}};
    CU(cuDeviceGetName, (name, sizeof name, 0), CUDA_SUCCESS);
    EXPECT(name[0] != '\0');
    CU(cuDeviceGetName, (name, sizeof name, NO_DEVICE), CUDA_ERROR_INVALID_DEVICE);
    CU(cuDeviceTotalMem, (&nbytes, 0), CUDA_SUCCESS);
    EXPECT(nbytes >= 16 * MIB);
    CU(cuDeviceTotalMem, (&nbytes, NO_DEVICE), CUDA_ERROR_INVALID_DEVICE);
    CU(cuDeviceTotalMem, (NULL, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuDeviceGetUuid, (&uuid, 0), CUDA_SUCCESS);
    EXPECT(memcmp(&uuid, &none, sizeof uuid) != 0);
    CU(cuDeviceGetUuid, (&uuid, NO_DEVICE), CUDA_ERROR_INVALID_DEVICE);
    CU(cuDeviceGetPCIBusId, (bus, sizeof bus, 0), CUDA_SUCCESS);
    EXPECT(strlen(bus) >= 12 && bus[4] == ':');
    int can_access = -1;
    CU(cuDeviceCanAccessPeer, (&can_access, 0, 0), CUDA_SUCCESS);
    EXPECT(can_access == 0); /* itself is no peer */
    CU(cuDeviceCanAccessPeer, (&can_access, 0, NO_DEVICE), CUDA_ERROR_INVALID_DEVICE);
    CU(cuDeviceGetPCIBusId, (bus, sizeof bus, NO_DEVICE), CUDA_ERROR_INVALID_DEVICE);
}

static void device_attributes(const struct gni_cuda_functions *cuda)
{
    int warp = 0, threads = 0, shared = 0, optin = 0, virtual_memory = 0;
    CU(cuDeviceGetAttribute, (&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), CUDA_SUCCESS);
    CU(cuDeviceGetAttribute, (&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0),
       CUDA_SUCCESS);
    CU(cuDeviceGetAttribute, (&shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 0),
       CUDA_SUCCESS);
    CU(cuDeviceGetAttribute, (&optin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0),
       CUDA_SUCCESS);
    CU(cuDeviceGetAttribute,
       (&virtual_memory, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0), CUDA_SUCCESS);
    EXPECT(warp == 32 && threads == 1024 && shared == 48 * 1024 && optin >= shared);
    EXPECT(virtual_memory == 1);
    CU(cuDeviceGetAttribute, (&warp, (CUdevice_attribute)100000, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuDeviceGetAttribute, (NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuDeviceGetAttribute, (&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, NO_DEVICE),
       CUDA_ERROR_INVALID_DEVICE);
}

static void context_primary(const struct gni_cuda_functions *cuda)
{
    CUcontext again = NULL;
    NEED(cuDevicePrimaryCtxRetain, (&again, 0));
    EXPECT(again == conformance.context);
    CU(cuDevicePrimaryCtxRelease, (0), CUDA_SUCCESS);
    CU(cuDevicePrimaryCtxRetain, (&again, NO_DEVICE), CUDA_ERROR_INVALID_DEVICE);
    CU(cuDevicePrimaryCtxRelease, (NO_DEVICE), CUDA_ERROR_INVALID_DEVICE);
    CU(cuCtxSynchronize, (), CUDA_SUCCESS); /* one reference is left */
}

/* With the last reference everything goes that was made in the context. Nobody else may use the GPU
 * meanwhile: free memory counts all processes. */
static void context_end(const struct gni_cuda_functions *cuda)
{
    size_t during = 0, after = 0, total;
    CUdeviceptr left = ints_make(cuda, 16 * MIB, 1);
    EXPECT(left != 0);
    NEED(cuMemGetInfo, (&during, &total));
    CU(cuDevicePrimaryCtxRelease, (0), CUDA_SUCCESS);
    CUdeviceptr pointer;
    CU(cuMemAlloc, (&pointer, 100), CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_INVALID_CONTEXT);
    CUcontext popped, again;
    CU(cuCtxPopCurrent, (&popped), CUDA_SUCCESS);
    CU(cuDevicePrimaryCtxRelease, (0), CUDA_ERROR_INVALID_CONTEXT);
    NEED(cuDevicePrimaryCtxRetain, (&again, 0));
    NEED(cuCtxPushCurrent, (again));
    NEED(cuMemGetInfo, (&after, &total));
    EXPECT(after >= during + 60 * MIB);
}

static void context_stack(const struct gni_cuda_functions *cuda)
{
    CUcontext current = NULL, popped = NULL;
    CU(cuCtxGetCurrent, (&current), CUDA_SUCCESS);
    EXPECT(current == conformance.context);
    CU(cuCtxGetCurrent, (NULL), CUDA_ERROR_INVALID_VALUE);
    NEED(cuCtxPushCurrent, (current));
    CU(cuCtxPopCurrent, (&popped), CUDA_SUCCESS);
    EXPECT(popped == current);
    CU(cuCtxPushCurrent, (NULL), CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_INVALID_VALUE);
    CU(cuCtxPopCurrent, (NULL), CUDA_SUCCESS);
    CU(cuCtxGetCurrent, (&current), CUDA_SUCCESS);
    EXPECT(current == NULL);
    CU(cuCtxPopCurrent, (&popped), CUDA_ERROR_INVALID_CONTEXT);
    NEED(cuCtxPushCurrent, (conformance.context));
}

/* A thread without a context can do next to nothing. */
static void context_none(const struct gni_cuda_functions *cuda)
{
    CUcontext popped;
    size_t nbytes;
    int number;
    unsigned long long id;
    CUdeviceptr pointer, block = ints_make(cuda, 1, 0);
    void *host;
    CUstream stream;
    CUevent event, made = event_make(cuda);
    CUmodule module;
    NEED(cuCtxPopCurrent, (&popped));
    CU(cuMemGetInfo, (&nbytes, &nbytes), CUDA_ERROR_INVALID_CONTEXT);
    CU(cuMemAlloc, (&pointer, 100), CUDA_ERROR_INVALID_CONTEXT);
    CU(cuMemHostAlloc, (&host, 100, 0), CUDA_ERROR_INVALID_CONTEXT);
    CU(cuMemAllocAsync, (&pointer, 100, NULL), CUDA_ERROR_INVALID_CONTEXT);
    CU(cuMemsetD8Async, (block, 0, 1, NULL), CUDA_ERROR_INVALID_CONTEXT);
    CU(cuCtxSynchronize, (), CUDA_ERROR_INVALID_CONTEXT);
    CU(cuCtxGetStreamPriorityRange, (&number, &number), CUDA_ERROR_INVALID_CONTEXT);
    CU(cuStreamCreateWithPriority, (&stream, 0, 0), CUDA_ERROR_INVALID_CONTEXT);
    CU(cuStreamQuery, (NULL), CUDA_ERROR_INVALID_CONTEXT);
    CU(cuStreamSynchronize, (NULL), CUDA_ERROR_INVALID_CONTEXT);
    CU(cuStreamGetId, (NULL, &id), CUDA_ERROR_INVALID_CONTEXT);
    CU(cuStreamGetPriority, (NULL, &number), CUDA_ERROR_INVALID_CONTEXT);
    CU(cuStreamWaitEvent, (NULL, made, 0), CUDA_ERROR_INVALID_CONTEXT);
    CU(cuEventCreate, (&event, 0), CUDA_ERROR_INVALID_CONTEXT);
    CU(cuModuleLoadData, (&module, "this is no image"), CUDA_ERROR_INVALID_CONTEXT);
    NEED(cuCtxPushCurrent, (conformance.context));
    CU(cuEventDestroy, (made), CUDA_SUCCESS);
    CU(cuMemFree, (block), CUDA_SUCCESS);
}

const struct conformance_program conformance_driver[] = {
    PROGRAM(driver_start, 0),
    PROGRAM(driver_not_started, UNSTARTED),
    PROGRAM(driver_error_texts, 0),
    PROGRAM(device_list, 0),
    PROGRAM(device_facts, 0),
    PROGRAM(device_attributes, 0),
    PROGRAM(context_primary, 0),
    PROGRAM(context_end, IN_CHILD),
    PROGRAM(context_stack, 0),
    PROGRAM(context_none, 0),
    {NULL, NULL, 0},
};
