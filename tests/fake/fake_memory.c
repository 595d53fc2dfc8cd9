/*
 * fake_memory.c: the stand-in's memory: addresses, allocations, copies, host and virtual memory.
 */
#include "fake_inside.h"

#include <sys/mman.h>

static const size_t granularity = 2 * MIB;
static const size_t arena_bytes = (size_t)16 << 30;
static uint64_t arena_start;
static size_t used_bytes[DEVICES_MAX];

static unsigned char *bytes_make(size_t nbytes)
{
    unsigned char *bytes = aligned_alloc(4096, (nbytes + 4095) / 4096 * 4096);
    if (bytes == NULL)
        abort();
    memset(bytes, GARBAGE, nbytes); /* F3 */
    return bytes;
}

static bool has_room(CUdevice device, size_t nbytes)
{
    return nbytes <= knobs.memory - used_bytes[device];
}

/* ---- addresses ------------------------------------------------------------------------------ */

bool is_in_arena(uint64_t address)
{
    return arena_start != 0 && address - arena_start < arena_bytes;
}

void arena_open(void)
{
    void *made = mmap(NULL, arena_bytes + granularity, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED)
        abort();
    arena_start = ((uint64_t)(uintptr_t)made + granularity - 1) / granularity * granularity;
}

/* Takes the first gap that is large enough, so that a freed address comes back soon. */
static struct object *range_make(CUdevice device, size_t nbytes, size_t alignment)
{
    struct object **link = &objects[OBJECT_RANGE];
    uint64_t start = arena_start;
    if (nbytes > arena_bytes)
        return NULL;
    while (*link != NULL && (*link)->address - start < nbytes) {
        start = ((*link)->address + (*link)->nbytes + alignment - 1) / alignment * alignment;
        link = &(*link)->next;
        if (*link != NULL && (*link)->address < start)
            start = (*link)->address; /* no gap at all */
    }
    if (start + nbytes > arena_start + arena_bytes)
        return NULL;
    struct object *made = object_make(device);
    made->next = *link;
    made->address = start;
    made->nbytes = nbytes;
    *link = made;
    return made;
}

static CUresult memory_make(CUdeviceptr *pointer, size_t nbytes)
{
    CUdevice device = context_current()->device;
    REQUIRE(nbytes > 0 && pointer != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(has_room(device, nbytes), CUDA_ERROR_OUT_OF_MEMORY);
    struct object *range = range_make(device, nbytes, 512);
    REQUIRE(range != NULL, CUDA_ERROR_OUT_OF_MEMORY);
    range->bytes = bytes_make(nbytes);
    used_bytes[device] += nbytes;
    *pointer = range->address;
    return CUDA_SUCCESS;
}

void memory_drop(struct object *range)
{
    used_bytes[range->device] -= range->nbytes;
    free(range->bytes);
    object_remove(OBJECT_RANGE, range);
}

static CUresult memory_release(CUdeviceptr pointer)
{
    struct object *range = object_at(OBJECT_RANGE, pointer);
    REQUIRE(range != NULL && range->address == pointer && range->bytes != NULL,
            CUDA_ERROR_INVALID_VALUE);
    REQUIRE(range->device == context_current()->device, CUDA_ERROR_INVALID_VALUE);
    memory_drop(range);
    return CUDA_SUCCESS;
}

unsigned char *bytes_at(uint64_t address, size_t nbytes, size_t *run)
{
    struct object *range = object_at(OBJECT_RANGE, address);
    *run = nbytes;
    if (!is_in_arena(address))
        return (unsigned char *)(uintptr_t)address; /* the host's own */
    if (range == NULL)
        return NULL;
    struct object *piece = range->bytes != NULL ? range : object_at(OBJECT_MAPPING, address);
    if (piece == NULL || (range->bytes == NULL && !piece->has_access))
        return NULL;
    size_t offset = address - piece->address;
    if (*run > piece->nbytes - offset)
        *run = piece->nbytes - offset;
    return piece->bytes + offset;
}

bool span_is_valid(uint64_t address, size_t nbytes)
{
    for (size_t done = 0, run; done < nbytes; done += run)
        if (bytes_at(address + done, nbytes - done, &run) == NULL)
            return false;
    return address + nbytes >= address;
}

static void span_copy(uint64_t target, uint64_t source, size_t nbytes)
{
    for (size_t done = 0, run; done < nbytes; done += run) {
        size_t target_run;
        unsigned char *to = bytes_at(target + done, nbytes - done, &target_run);
        unsigned char *from = bytes_at(source + done, target_run, &run);
        memmove(to, from, run);
    }
}

/* ---- memory --------------------------------------------------------------------------------- */

CUresult cuMemGetInfo(size_t *free_bytes, size_t *total)
{
    driver_fork(); /* before the lock: a real driver holds none meanwhile */
    DRIVER_CALL(NEED_CONTEXT);
    *free_bytes = knobs.memory - used_bytes[context_current()->device];
    *total = knobs.memory;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *pointer, size_t nbytes)
{
    DRIVER_CALL(NEED_CONTEXT);
    return memory_make(pointer, nbytes);
}

CUresult cuMemFree(CUdeviceptr pointer)
{
    DRIVER_CALL(NEED_CONTEXT);
    return memory_release(pointer);
}

CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t nbytes, CUstream stream)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE_STREAM(stream);
    return memory_make(pointer, nbytes);
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE_STREAM(stream);
    return memory_release(pointer);
}

CUresult cuMemHostAlloc(void **pointer, size_t nbytes, unsigned int flags)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE(nbytes > 0 && flags == CU_MEMHOSTALLOC_PORTABLE, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(nbytes <= arena_bytes, CUDA_ERROR_OUT_OF_MEMORY);
    struct object *block = object_add(OBJECT_HOST, context_current()->device);
    block->bytes = bytes_make(nbytes);
    block->address = (uintptr_t)block->bytes;
    block->nbytes = nbytes;
    *pointer = block->bytes;
    return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *pointer)
{
    DRIVER_CALL(NEED_CONTEXT);
    struct object *block = object_at(OBJECT_HOST, (uintptr_t)pointer);
    REQUIRE(block != NULL && block->bytes != NULL && block->bytes == pointer,
            CUDA_ERROR_INVALID_VALUE);
    free(block->bytes);
    object_remove(OBJECT_HOST, block);
    return CUDA_SUCCESS;
}

CUresult cuMemHostRegister(void *pointer, size_t nbytes, unsigned int flags)
{
    DRIVER_CALL(NEED_CONTEXT);
    uint64_t address = (uintptr_t)pointer;
    REQUIRE(pointer != NULL && nbytes > 0 && flags == CU_MEMHOSTREGISTER_PORTABLE &&
                !is_in_arena(address) && address + nbytes > address,
            CUDA_ERROR_INVALID_VALUE);
    for (struct object *block = objects[OBJECT_HOST]; block != NULL; block = block->next)
        REQUIRE(address + nbytes <= block->address || block->address + block->nbytes <= address,
                CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    struct object *block = object_add(OBJECT_HOST, context_current()->device);
    block->address = address;
    block->nbytes = nbytes;
    return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *pointer)
{
    DRIVER_CALL(NEED_CONTEXT);
    struct object *block = object_at(OBJECT_HOST, (uintptr_t)pointer);
    REQUIRE(block != NULL && block->bytes == NULL && block->address == (uintptr_t)pointer,
            CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    object_remove(OBJECT_HOST, block);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, size_t nbytes, CUstream stream)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE_STREAM(stream);
    REQUIRE(target != 0 && source != 0, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(span_is_valid(target, nbytes) && span_is_valid(source, nbytes),
            CUDA_ERROR_INVALID_VALUE);
    span_copy(target, source, nbytes);
    return CUDA_SUCCESS;
}

static CUresult memory_set(CUdeviceptr target, const void *value, size_t size, size_t count,
                           CUstream stream)
{
    REQUIRE_STREAM(stream);
    REQUIRE(is_in_arena(target) || object_at(OBJECT_HOST, target) != NULL,
            CUDA_ERROR_INVALID_VALUE);
    REQUIRE(target % size == 0 && count <= arena_bytes, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(span_is_valid(target, count * size), CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0, run; i < count; i++) /* every piece starts and ends at a multiple of size */
        memcpy(bytes_at(target + i * size, size, &run), value, size);
    return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char value, size_t count, CUstream stream)
{
    DRIVER_CALL(NEED_CONTEXT);
    return memory_set(target, &value, 1, count, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr target, unsigned short value, size_t count, CUstream stream)
{
    DRIVER_CALL(NEED_CONTEXT);
    return memory_set(target, &value, 2, count, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr target, unsigned int value, size_t count, CUstream stream)
{
    DRIVER_CALL(NEED_CONTEXT);
    return memory_set(target, &value, 4, count, stream);
}

/* ---- virtual memory ------------------------------------------------------------------------- */

static bool is_granular(uint64_t number)
{
    return number % granularity == 0;
}

static bool is_pinned_on_device(const CUmemAllocationProp *properties)
{
    return properties->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
           properties->location.id >= 0 && properties->location.id < knobs.devices;
}

static void physical_drop_if_unused(struct object *physical)
{
    if (!physical->is_released || physical->mapping_count > 0)
        return;
    used_bytes[physical->device] -= physical->nbytes;
    free(physical->bytes);
    object_remove(OBJECT_PHYSICAL, physical);
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags option)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE(is_pinned_on_device(properties) && (unsigned)option <= 1, CUDA_ERROR_INVALID_VALUE);
    *bytes = granularity;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *pointer, size_t nbytes, size_t alignment,
                             CUdeviceptr wish, unsigned long long flags)
{
    DRIVER_CALL(NEED_CONTEXT);
    (void)wish;
    REQUIRE(nbytes > 0 && is_granular(nbytes) && alignment == 0 && flags == 0,
            CUDA_ERROR_INVALID_VALUE);
    struct object *range = range_make(context_current()->device, nbytes, granularity);
    REQUIRE(range != NULL, CUDA_ERROR_OUT_OF_MEMORY);
    *pointer = range->address;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr pointer, size_t nbytes)
{
    DRIVER_CALL(NEED_CONTEXT);
    struct object *range = object_at(OBJECT_RANGE, pointer);
    REQUIRE(range != NULL && range->bytes == NULL && range->address == pointer &&
                range->nbytes == nbytes,
            CUDA_ERROR_INVALID_VALUE);
    for (struct object *mapping = objects[OBJECT_MAPPING]; mapping != NULL; mapping = mapping->next)
        REQUIRE(mapping->address - pointer >= nbytes, CUDA_ERROR_INVALID_VALUE);
    object_remove(OBJECT_RANGE, range);
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t nbytes,
                     const CUmemAllocationProp *properties, unsigned long long flags)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE(nbytes > 0 && is_granular(nbytes) && flags == 0 && is_pinned_on_device(properties),
            CUDA_ERROR_INVALID_VALUE);
    CUdevice device = properties->location.id;
    REQUIRE(has_room(device, nbytes), CUDA_ERROR_OUT_OF_MEMORY);
    struct object *physical = object_add(OBJECT_PHYSICAL, device);
    physical->nbytes = nbytes;
    physical->bytes = bytes_make(nbytes);
    used_bytes[device] += nbytes;
    *handle = (uintptr_t)physical;
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    DRIVER_CALL(NEED_CONTEXT);
    struct object *physical = object_find(OBJECT_PHYSICAL, (void *)(uintptr_t)handle);
    REQUIRE(physical != NULL && !physical->is_released, CUDA_ERROR_INVALID_VALUE);
    physical->is_released = true;
    physical_drop_if_unused(physical);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr pointer, size_t nbytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    DRIVER_CALL(NEED_CONTEXT);
    struct object *physical = object_find(OBJECT_PHYSICAL, (void *)(uintptr_t)handle);
    struct object *range = object_at(OBJECT_RANGE, pointer);
    REQUIRE(physical != NULL && !physical->is_released && offset == 0 && flags == 0 &&
                nbytes == physical->nbytes,
            CUDA_ERROR_INVALID_VALUE);
    REQUIRE(range != NULL && range->bytes == NULL && is_granular(pointer) &&
                nbytes <= range->nbytes - (pointer - range->address),
            CUDA_ERROR_INVALID_VALUE);
    for (struct object *other = objects[OBJECT_MAPPING]; other != NULL; other = other->next)
        REQUIRE(pointer + nbytes <= other->address || other->address + other->nbytes <= pointer,
                CUDA_ERROR_INVALID_VALUE);
    struct object *mapping = object_add(OBJECT_MAPPING, physical->device);
    mapping->address = pointer;
    mapping->nbytes = nbytes;
    mapping->bytes = physical->bytes;
    mapping->physical = physical;
    physical->mapping_count++;
    return CUDA_SUCCESS;
}

/* Whether a span consists of whole mappings only. */
static bool is_whole_mappings(uint64_t address, size_t nbytes)
{
    size_t done = 0;
    while (done < nbytes) {
        struct object *mapping = object_at(OBJECT_MAPPING, address + done);
        if (mapping == NULL || mapping->address != address + done)
            return false;
        done += mapping->nbytes;
    }
    return done == nbytes && nbytes > 0;
}

CUresult cuMemUnmap(CUdeviceptr pointer, size_t nbytes)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE(is_whole_mappings(pointer, nbytes), CUDA_ERROR_INVALID_VALUE);
    for (size_t done = 0; done < nbytes;) {
        struct object *mapping = object_at(OBJECT_MAPPING, pointer + done);
        struct object *physical = mapping->physical;
        done += mapping->nbytes;
        object_remove(OBJECT_MAPPING, mapping);
        physical->mapping_count--;
        physical_drop_if_unused(physical);
    }
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr pointer, size_t nbytes, const CUmemAccessDesc *descriptors,
                        size_t count)
{
    DRIVER_CALL(NEED_CONTEXT);
    REQUIRE(count == 1 && descriptors->location.type == CU_MEM_LOCATION_TYPE_DEVICE,
            CUDA_ERROR_INVALID_VALUE);
    REQUIRE_DEVICE(descriptors->location.id);
    REQUIRE(is_whole_mappings(pointer, nbytes), CUDA_ERROR_INVALID_VALUE);
    for (size_t done = 0; done < nbytes;) {
        struct object *mapping = object_at(OBJECT_MAPPING, pointer + done);
        mapping->has_access = descriptors->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        done += mapping->nbytes;
    }
    return CUDA_SUCCESS;
}
