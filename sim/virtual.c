/*
 * virtual.c: addresses and physical memory apart.
 *
 * Physical memory is a file in memory, a mapping is mmap() of it at the reserved address, closed to the
 * host like all device memory; one file mapped twice is the same bytes at two addresses. Nothing here
 * waits for work: unmapping under a queued kernel is found by the history (H3), or by the kernel's own
 * access to what is no longer there.
 */
#include "sim.h"

#include <sys/mman.h>
#include <unistd.h>

struct reservation {
    struct gni_list link;
    uintptr_t address;
    size_t nbytes;
};

static struct gni_list reservations = {&reservations, &reservations};
static uint64_t last_handle = 0x1000;

static bool is_granular(unsigned long long number)
{
    return number % SIM_GRANULARITY == 0;
}

static struct sim_physical *physical_find(CUmemGenericAllocationHandle handle)
{
    gni_list_each (link, &sim.physicals) {
        struct sim_physical *physical = gni_container_of(link, struct sim_physical, link);
        if (physical->handle == handle)
            return physical;
    }
    return NULL;
}

static void physical_drop(struct sim_physical *physical)
{
    if (--physical->reference_count > 0)
        return;
    sim.used_bytes[physical->device] -= physical->nbytes;
    (void)close(physical->file);
    gni_list_remove(&physical->link);
    gni_host_free(physical);
}

/* The reservation that holds a whole stretch; NULL if none does. */
static struct reservation *reservation_find(uintptr_t address, size_t nbytes)
{
    gni_list_each (link, &reservations) {
        struct reservation *one = gni_container_of(link, struct reservation, link);
        if (address >= one->address && nbytes <= one->nbytes &&
            address - one->address <= one->nbytes - nbytes)
            return one;
    }
    return NULL;
}

bool sim_is_reserved_space(uintptr_t address)
{
    return reservation_find(address, 1) != NULL;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *property,
                                       CUmemAllocationGranularity_flags option)
{
    SIM_CALL(SIM_NEED_INIT);
    /* The real driver does not look at the type of memory here. */
    SIM_REQUIRE(granularity != NULL && property != NULL && (unsigned)option <= 1,
                CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE(property->location.id >= 0 && property->location.id < sim.device_count,
                CUDA_ERROR_INVALID_DEVICE);
    *granularity = SIM_GRANULARITY;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *pointer, size_t nbytes, size_t alignment,
                             CUdeviceptr wish, unsigned long long flags)
{
    SIM_CALL(SIM_NEED_INIT);
    (void)wish;
    SIM_REQUIRE(pointer != NULL && nbytes > 0 && is_granular(nbytes) && flags == 0 &&
                    (alignment & (alignment - 1)) == 0,
                CUDA_ERROR_INVALID_VALUE);
    size_t align = alignment > SIM_GRANULARITY ? alignment : SIM_GRANULARITY, taken;
    SIM_REQUIRE(gni_size_add(nbytes, align, &taken) && gni_size_is_possible(taken),
                CUDA_ERROR_OUT_OF_MEMORY);
    struct reservation *made = gni_host_alloc(sizeof *made);
    SIM_REQUIRE(made != NULL, CUDA_ERROR_OUT_OF_MEMORY);
    char *space = mmap(NULL, taken, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) {
        gni_host_free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    uintptr_t address = ((uintptr_t)space + align - 1) & ~(uintptr_t)(align - 1);
    size_t before = address - (uintptr_t)space;
    if (before > 0)
        (void)munmap(space, before);
    if (taken - before > nbytes)
        (void)munmap((void *)(address + nbytes), taken - before - nbytes);
    made->address = address;
    made->nbytes = nbytes;
    gni_list_push_back(&reservations, &made->link);
    *pointer = address;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr pointer, size_t nbytes)
{
    SIM_CALL(SIM_NEED_INIT);
    struct reservation *one = reservation_find(pointer, 1);
    SIM_REQUIRE(one != NULL && one->address == pointer && one->nbytes == nbytes,
                CUDA_ERROR_INVALID_VALUE);
    for (uintptr_t at = pointer; at < pointer + nbytes; at += SIM_GRANULARITY)
        SIM_REQUIRE(sim_range_find(at) == NULL, CUDA_ERROR_INVALID_VALUE); /* still mapped */
    (void)munmap((void *)pointer, nbytes);
    gni_list_remove(&one->link);
    gni_host_free(one);
    return CUDA_SUCCESS;
}

/* New memory holds anything. It is marked at both ends only, as plain memory is where it is large. */
static bool physical_poison(const struct sim_physical *physical, size_t nbytes)
{
    unsigned char mark[4096];
    memset(mark, SIM_POISON_ALLOC, sizeof mark);
    return pwrite(physical->file, mark, sizeof mark, 0) == sizeof mark &&
           pwrite(physical->file, mark, sizeof mark, (off_t)(nbytes - sizeof mark)) == sizeof mark;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t nbytes,
                     const CUmemAllocationProp *property, unsigned long long flags)
{
    SIM_CALL(SIM_NEED_INIT);
    SIM_REQUIRE(handle != NULL && property != NULL && nbytes > 0 && is_granular(nbytes) &&
                    flags == 0 && property->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
                    property->location.type == CU_MEM_LOCATION_TYPE_DEVICE,
                CUDA_ERROR_INVALID_VALUE);
    CUdevice device = property->location.id;
    SIM_REQUIRE(device >= 0 && device < sim.device_count, CUDA_ERROR_INVALID_DEVICE);
    SIM_REQUIRE(nbytes <= sim.memory_bytes - sim.used_bytes[device], CUDA_ERROR_OUT_OF_MEMORY);
    struct sim_physical *made = gni_host_alloc(sizeof *made);
    SIM_REQUIRE(made != NULL, CUDA_ERROR_OUT_OF_MEMORY);
    made->file = memfd_create("genesis-sim", MFD_CLOEXEC);
    if (made->file < 0 || ftruncate(made->file, (off_t)nbytes) != 0 ||
        !physical_poison(made, nbytes)) {
        if (made->file >= 0)
            (void)close(made->file);
        gni_host_free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->handle = last_handle++;
    made->nbytes = nbytes;
    made->device = device;
    made->reference_count = 1;
    sim.used_bytes[device] += nbytes;
    gni_list_push_back(&sim.physicals, &made->link);
    *handle = made->handle;
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    SIM_CALL(SIM_NEED_INIT);
    struct sim_physical *physical = physical_find(handle);
    SIM_REQUIRE(physical != NULL && !physical->is_released, CUDA_ERROR_INVALID_VALUE);
    physical->is_released = true;
    physical_drop(physical);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr pointer, size_t nbytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    SIM_CALL(SIM_NEED_INIT);
    struct sim_physical *physical = physical_find(handle);
    SIM_REQUIRE(physical != NULL && !physical->is_released && flags == 0 && is_granular(pointer),
                CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE(offset == 0 && nbytes == physical->nbytes, CUDA_ERROR_NOT_SUPPORTED); /* a part */
    SIM_REQUIRE(reservation_find(pointer, nbytes) != NULL, CUDA_ERROR_INVALID_VALUE);
    for (uintptr_t at = pointer; at < pointer + nbytes; at += SIM_GRANULARITY)
        SIM_REQUIRE(sim_range_find(at) == NULL, CUDA_ERROR_INVALID_VALUE); /* mapped already */
    void *mapped =
        mmap((void *)pointer, nbytes, PROT_NONE, MAP_SHARED | MAP_FIXED, physical->file, 0);
    SIM_REQUIRE(mapped != MAP_FAILED, CUDA_ERROR_OUT_OF_MEMORY);
    struct sim_range range = {.address = pointer,
                              .nbytes = nbytes,
                              .kind = SIM_RANGE_MAPPED,
                              .device = physical->device,
                              .physical = physical};
    SIM_REQUIRE(sim_range_add(&range), CUDA_ERROR_OUT_OF_MEMORY);
    physical->reference_count++;
    return CUDA_SUCCESS;
}

/* Calls a function for each mapping of a stretch that whole mappings cover; false if they do not. Gaps
 * of reserved pages are passed over if they may be. */
static bool mappings_each(uintptr_t address, size_t nbytes, bool can_skip,
                          void (*visit)(struct sim_range *, const CUmemAccessDesc *),
                          const CUmemAccessDesc *access)
{
    for (int is_visit = 0; is_visit <= (visit != NULL); is_visit++) {
        for (uintptr_t at = address; at < address + nbytes;) {
            struct sim_range *range = sim_range_find(at);
            if (range == NULL && can_skip && reservation_find(at, SIM_GRANULARITY) != NULL) {
                at += SIM_GRANULARITY;
                continue;
            }
            if (range == NULL || range->kind != SIM_RANGE_MAPPED || range->address != at ||
                range->nbytes > address + nbytes - at)
                return false;
            at += range->nbytes;
            if (is_visit)
                visit(range, access);
        }
    }
    return true;
}

static void mapping_grant(struct sim_range *range, const CUmemAccessDesc *access)
{
    unsigned bit = 1u << access->location.id;
    range->access &= ~bit;
    if (access->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
        range->access |= bit;
}

CUresult cuMemSetAccess(CUdeviceptr pointer, size_t nbytes, const CUmemAccessDesc *access,
                        size_t count)
{
    SIM_CALL(SIM_NEED_INIT);
    SIM_REQUIRE(access != NULL && count > 0 && nbytes > 0 && is_granular(pointer) &&
                    is_granular(nbytes) && access->location.type == CU_MEM_LOCATION_TYPE_DEVICE,
                CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < count; i++)
        SIM_REQUIRE(access[i].location.id >= 0 && access[i].location.id < sim.device_count,
                    CUDA_ERROR_INVALID_DEVICE);
    for (size_t i = 0; i < count; i++)
        SIM_REQUIRE(mappings_each(pointer, nbytes, false, mapping_grant, &access[i]),
                    CUDA_ERROR_INVALID_VALUE);
    return CUDA_SUCCESS;
}

static void mapping_remove(struct sim_range *range, const CUmemAccessDesc *access)
{
    (void)access;
    struct sim_range gone = *range;
    sim_history_retire(gone.address, gone.nbytes, "cuMemUnmap");
    (void)mmap((void *)gone.address, gone.nbytes, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    sim_range_remove(gone.address);
    physical_drop(gone.physical);
}

/* Takes what is mapped there, as whole mappings; reserved pages without a mapping are passed over. */
CUresult cuMemUnmap(CUdeviceptr pointer, size_t nbytes)
{
    SIM_CALL(SIM_NEED_INIT);
    SIM_REQUIRE(nbytes > 0 && mappings_each(pointer, nbytes, true, NULL, NULL),
                CUDA_ERROR_INVALID_VALUE);
    (void)mappings_each(pointer, nbytes, true, mapping_remove, NULL);
    return CUDA_SUCCESS;
}
