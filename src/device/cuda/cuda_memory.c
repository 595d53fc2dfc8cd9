/*
 * cuda_memory.c: memory of a GPU: plain, stream-ordered and virtual; page-locked host memory;
 * copies and fills.
 *
 * Slots that give something back do nothing once the driver is gone: the memory went with it
 * (exit), or belongs to the parent process (fork).
 */
#include "device/cuda/cuda_queue.h"

/* A device address as the driver has it. */
static CUdeviceptr address_of(const void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

static void *pointer_of(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

/* Counts an object of the device that was made or that is gone. */
static void object_made(gn_device *device)
{
    atomic_fetch_add(&device->object_count, 1);
}

static void object_gone(gn_device *device)
{
    atomic_fetch_sub(&device->object_count, 1);
}

/* ---- plain and stream-ordered --------------------------------------------------------------- */

gn_status gni_cuda_memory_alloc(gn_device *device, size_t nbytes, void **pointer)
{
    CUdeviceptr made;
    GNI_CUDA_TRY_RELAXED(gni_cuda_device_of(device), cuMemAlloc, &made, nbytes);
    *pointer = pointer_of(made);
    return GN_OK;
}

gn_status gni_cuda_memory_free(gn_device *device, void *pointer, size_t nbytes)
{
    (void)nbytes;
    if (gni_cuda_driver_is_gone())
        return GN_OK;
    GNI_CUDA_TRY_RELAXED(gni_cuda_device_of(device), cuMemFree, address_of(pointer));
    return GN_OK;
}

gn_status gni_cuda_memory_alloc_async(gn_stream *stream, size_t nbytes, void **pointer)
{
    struct gni_cuda_device *device = gni_cuda_device_of_stream(stream);
    if (!device->properties.has_stream_ordered_memory)
        return gni_error(GN_ERROR_UNSUPPORTED, "%s does not allocate in stream order",
                         gni_device_label(&device->base).text);
    CUdeviceptr made;
    GNI_CUDA_TRY(device, cuMemAllocAsync, &made, nbytes, stream->handle);
    *pointer = pointer_of(made);
    return GN_OK;
}

gn_status gni_cuda_memory_free_async(gn_stream *stream, void *pointer)
{
    if (gni_cuda_driver_is_gone())
        return GN_OK;
    GNI_CUDA_TRY(gni_cuda_device_of_stream(stream), cuMemFreeAsync, address_of(pointer),
                 stream->handle);
    return GN_OK;
}

/* ---- virtual -------------------------------------------------------------------------------- */

static CUmemAllocationProp physical_kind(const struct gni_cuda_device *device)
{
    CUmemAllocationProp kind = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    kind.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    kind.location.id = device->handle;
    return kind;
}

gn_status gni_cuda_virtual_granularity(gn_device *base, size_t *bytes)
{
    struct gni_cuda_device *device = gni_cuda_device_of(base);
    if (!device->properties.has_virtual_memory)
        return gni_error(GN_ERROR_UNSUPPORTED, "%s has no virtual memory management",
                         gni_device_label(base).text);
    CUmemAllocationProp kind = physical_kind(device);
    size_t granularity;
    GNI_CUDA_TRY(device, cuMemGetAllocationGranularity, &granularity, &kind,
                 CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    *bytes = granularity;
    return GN_OK;
}

gn_status gni_cuda_virtual_reserve(gn_device *device, size_t nbytes, void **address)
{
    CUdeviceptr made;
    GNI_CUDA_TRY_RELAXED(gni_cuda_device_of(device), cuMemAddressReserve, &made, nbytes, 0, 0, 0);
    object_made(device);
    *address = pointer_of(made);
    return GN_OK;
}

gn_status gni_cuda_virtual_release(gn_device *device, void *address, size_t nbytes)
{
    if (!gni_cuda_driver_is_gone())
        GNI_CUDA_TRY_RELAXED(gni_cuda_device_of(device), cuMemAddressFree, address_of(address),
                             nbytes);
    object_gone(device);
    return GN_OK;
}

gn_status gni_cuda_physical_create(gn_device *base, size_t nbytes, uint64_t *handle)
{
    struct gni_cuda_device *device = gni_cuda_device_of(base);
    CUmemAllocationProp kind = physical_kind(device);
    CUmemGenericAllocationHandle made;
    GNI_CUDA_TRY_RELAXED(device, cuMemCreate, &made, nbytes, &kind, 0);
    object_made(base);
    *handle = made;
    return GN_OK;
}

gn_status gni_cuda_physical_release(gn_device *device, uint64_t handle)
{
    if (!gni_cuda_driver_is_gone())
        GNI_CUDA_TRY_RELAXED(gni_cuda_device_of(device), cuMemRelease, handle);
    object_gone(device);
    return GN_OK;
}

gn_status gni_cuda_virtual_map(gn_device *device, void *address, size_t nbytes, uint64_t handle)
{
    GNI_CUDA_TRY_RELAXED(gni_cuda_device_of(device), cuMemMap, address_of(address), nbytes, 0,
                         handle, 0);
    return GN_OK;
}

gn_status gni_cuda_virtual_unmap(gn_device *device, void *address, size_t nbytes)
{
    if (gni_cuda_driver_is_gone())
        return GN_OK;
    GNI_CUDA_TRY_RELAXED(gni_cuda_device_of(device), cuMemUnmap, address_of(address), nbytes);
    return GN_OK;
}

gn_status gni_cuda_virtual_grant(gn_device *base, void *address, size_t nbytes)
{
    struct gni_cuda_device *device = gni_cuda_device_of(base);
    CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device->handle;
    GNI_CUDA_TRY_RELAXED(device, cuMemSetAccess, address_of(address), nbytes, &access, 1);
    return GN_OK;
}

/* ---- the host's memory ---------------------------------------------------------------------- */

gn_status gni_cuda_host_alloc(gn_device *device, size_t nbytes, void **pointer)
{
    void *made;
    GNI_CUDA_TRY_RELAXED(gni_cuda_device_of(device), cuMemHostAlloc, &made, nbytes,
                         CU_MEMHOSTALLOC_PORTABLE);
    *pointer = made;
    return GN_OK;
}

gn_status gni_cuda_host_free(gn_device *device, void *pointer, size_t nbytes)
{
    (void)nbytes;
    if (!gni_cuda_driver_is_gone())
        GNI_CUDA_TRY_RELAXED(gni_cuda_device_of(device), cuMemFreeHost, pointer);
    return GN_OK;
}

gn_status gni_cuda_host_register(gn_device *device, void *pointer, size_t nbytes)
{
    GNI_CUDA_TRY_RELAXED(gni_cuda_device_of(device), cuMemHostRegister, pointer, nbytes,
                         CU_MEMHOSTREGISTER_PORTABLE);
    return GN_OK;
}

gn_status gni_cuda_host_unregister(gn_device *device, void *pointer)
{
    if (!gni_cuda_driver_is_gone())
        GNI_CUDA_TRY_RELAXED(gni_cuda_device_of(device), cuMemHostUnregister, pointer);
    return GN_OK;
}

/* ---- copies and fills ----------------------------------------------------------------------- */

gn_status gni_cuda_copy(gn_stream *stream, void *destination, const void *source, size_t nbytes)
{
    /* With unified addressing the driver sees from an address where it lies. */
    GNI_CUDA_SUBMIT(gni_cuda_device_of_stream(stream), cuMemcpyAsync, address_of(destination),
                    address_of(source), nbytes, stream->handle);
    return GN_OK;
}

gn_status gni_cuda_fill(gn_stream *stream, void *destination, uint32_t value, size_t element_size,
                        size_t count)
{
    struct gni_cuda_device *device = gni_cuda_device_of_stream(stream);
    CUdeviceptr address = address_of(destination);
    if (element_size == 1)
        GNI_CUDA_SUBMIT(device, cuMemsetD8Async, address, (unsigned char)value, count,
                        stream->handle);
    else if (element_size == 2)
        GNI_CUDA_SUBMIT(device, cuMemsetD16Async, address, (unsigned short)value, count,
                        stream->handle);
    else
        GNI_CUDA_SUBMIT(device, cuMemsetD32Async, address, value, count, stream->handle);
    return GN_OK;
}
