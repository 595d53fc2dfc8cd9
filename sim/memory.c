/*
 * memory.c: device memory of bounded size with real addresses, and page-locked host memory.
 *
 * Each device has one arena, a stretch of address space of the device's size that is fixed when it is
 * first needed. cuMemAlloc() takes the lowest gap that fits, so that fragmentation is what it would be.
 * Its pages are closed to the host (PROT_NONE) except while an op that uses them runs.
 *
 * The ranges are one array sorted by address; no two overlap.
 */
#include "sim.h"

#include <stdlib.h>
#include <sys/mman.h>

static struct {
    uintptr_t base; /* 0: not made yet */
    size_t nbytes;
} arenas[SIM_DEVICES_MAX];

static struct sim_range *ranges;
static size_t range_count, range_capacity;

/* ---- ranges --------------------------------------------------------------------------------- */

/* The first range whose end is behind the address. */
static size_t range_place(uintptr_t address)
{
    size_t low = 0, high = range_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges[middle].address + ranges[middle].nbytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct sim_range *sim_range_find(uintptr_t address)
{
    size_t place = range_place(address);
    return place < range_count && ranges[place].address <= address ? &ranges[place] : NULL;
}

bool sim_range_add(const struct sim_range *range)
{
    if (range_count == range_capacity) {
        size_t capacity = range_capacity == 0 ? 64 : range_capacity * 2;
        struct sim_range *grown = gni_host_realloc(ranges, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        ranges = grown;
        range_capacity = capacity;
    }
    size_t place = range_place(range->address);
    memmove(&ranges[place + 1], &ranges[place], (range_count - place) * sizeof *ranges);
    ranges[place] = *range;
    range_count++;
    return true;
}

void sim_range_remove(uintptr_t address)
{
    size_t place = range_place(address);
    range_count--;
    memmove(&ranges[place], &ranges[place + 1], (range_count - place) * sizeof *ranges);
}

size_t sim_range_count(enum sim_range_kind first, enum sim_range_kind last)
{
    size_t count = 0;
    for (size_t i = 0; i < range_count; i++)
        count += ranges[i].kind >= first && ranges[i].kind <= last;
    return count;
}

static bool range_is_device(const struct sim_range *range)
{
    return range->kind == SIM_RANGE_PLAIN ||
           (range->kind == SIM_RANGE_MAPPED && range->access != 0);
}

bool sim_device_contains(uintptr_t address, size_t nbytes)
{
    /* Neighbouring mappings are one stretch; blocks of cuMemAlloc() are not. */
    struct sim_range *range = sim_range_find(address);
    while (range != NULL && range_is_device(range)) {
        size_t left = range->address + range->nbytes - address;
        if (nbytes <= left)
            return true;
        if (range->kind != SIM_RANGE_MAPPED)
            return false;
        address += left;
        nbytes -= left;
        range = sim_range_find(address);
    }
    return false;
}

uintptr_t sim_memory_place(uintptr_t address, size_t *left)
{
    enum {
        SIZE_BITS = 36
    }; /* of one piece of physical memory */
    const struct sim_range *range = sim_range_find(address);
    *left = SIZE_MAX;
    if (range == NULL || range->kind != SIM_RANGE_MAPPED)
        return address;
    size_t offset = address - range->address;
    *left = range->nbytes - offset;
    return (uintptr_t)1 << 62 | (uintptr_t)range->physical->handle << SIZE_BITS | offset;
}

bool sim_is_device_space(uintptr_t address)
{
    for (int i = 0; i < sim.device_count; i++)
        if (arenas[i].base != 0 && address - arenas[i].base < arenas[i].nbytes)
            return true;
    return sim_is_reserved_space(address);
}

/* ---- opening and closing -------------------------------------------------------------------- */

/* The pages of a stretch. Costs grow with the pages that were ever touched: never the whole arena. */
static void pages_protect(uintptr_t address, size_t nbytes, bool is_open)
{
    enum {
        PAGE = 4096
    };
    uintptr_t begin = address & ~(uintptr_t)(PAGE - 1);
    uintptr_t end = (address + nbytes + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    (void)mprotect((void *)begin, end - begin, is_open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void sim_memory_open(uintptr_t address, size_t nbytes)
{
    if (sim_is_device_space(address))
        pages_protect(address, nbytes, true);
}

void sim_memory_close(uintptr_t address, size_t nbytes)
{
    if (sim_is_device_space(address))
        pages_protect(address, nbytes, false);
}

/* What lives in the arenas as one stretch each, and every mapping with access. */
static void everything_protect(bool is_open)
{
    for (size_t i = 0, last; i < range_count; i = last + 1) {
        last = i;
        if (!range_is_device(&ranges[i]))
            continue;
        while (ranges[i].kind == SIM_RANGE_PLAIN && last + 1 < range_count &&
               ranges[last + 1].kind == SIM_RANGE_PLAIN &&
               ranges[last + 1].device == ranges[i].device)
            last++;
        pages_protect(ranges[i].address,
                      ranges[last].address + ranges[last].nbytes - ranges[i].address, is_open);
    }
}

void sim_memory_open_all(void)
{
    everything_protect(true);
}

void sim_memory_close_all(void)
{
    everything_protect(false);
}

/* Large blocks are marked at both ends only: a test must not wait for gigabytes. */
static void poison(uintptr_t address, size_t nbytes, int byte)
{
    enum {
        WHOLE = 4 << 20,
        END = 64 << 10
    };
    sim_memory_open(address, nbytes);
    if (nbytes <= WHOLE) {
        memset((void *)address, byte, nbytes);
    } else {
        memset((void *)address, byte, END);
        memset((void *)(address + nbytes - END), byte, END);
    }
    sim_memory_close(address, nbytes);
}

/* ---- plain memory --------------------------------------------------------------------------- */

static bool arena_make(CUdevice device)
{
    if (arenas[device].base != 0)
        return true;
    void *made =
        mmap(NULL, sim.memory_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED)
        return false;
    arenas[device].base = (uintptr_t)made;
    arenas[device].nbytes = sim.memory_bytes;
    return true;
}

size_t sim_memory_limit(CUdevice device)
{
    return arenas[device].base != 0 ? arenas[device].nbytes : SIZE_MAX;
}

/* The lowest gap of an arena; 0 if none is large enough. */
static uintptr_t gap_find(CUdevice device, size_t nbytes)
{
    uintptr_t at = arenas[device].base, end = at + arenas[device].nbytes;
    for (size_t i = range_place(at); i < range_count && ranges[i].address < end; i++) {
        if (ranges[i].address - at >= nbytes)
            return at;
        at = ranges[i].address + ranges[i].nbytes;
        at = (at + SIM_ALIGNMENT - 1) & ~(uintptr_t)(SIM_ALIGNMENT - 1);
    }
    return at < end && end - at >= nbytes ? at : 0;
}

static CUresult plain_alloc(CUdevice device, size_t nbytes, bool is_ordered, CUdeviceptr *pointer)
{
    size_t rounded;
    SIM_REQUIRE(nbytes > 0, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE(gni_size_align_up(nbytes, SIM_ALIGNMENT, &rounded), CUDA_ERROR_OUT_OF_MEMORY);
    SIM_REQUIRE(rounded <= sim.memory_bytes - sim.used_bytes[device] && arena_make(device),
                CUDA_ERROR_OUT_OF_MEMORY);
    uintptr_t address = gap_find(device, rounded);
    struct sim_range range = {.address = address,
                              .nbytes = nbytes,
                              .kind = SIM_RANGE_PLAIN,
                              .device = device,
                              .was_ordered = is_ordered};
    SIM_REQUIRE(address != 0 && sim_range_add(&range), CUDA_ERROR_OUT_OF_MEMORY);
    sim.used_bytes[device] += rounded;
    poison(address, nbytes, SIM_POISON_ALLOC);
    *pointer = address;
    return CUDA_SUCCESS;
}

void sim_memory_release(uintptr_t address)
{
    struct sim_range range = *sim_range_find(address);
    poison(range.address, range.nbytes, SIM_POISON_FREE);
    sim.used_bytes[range.device] -=
        (range.nbytes + SIM_ALIGNMENT - 1) & ~(size_t)(SIM_ALIGNMENT - 1);
    sim_range_remove(address);
}

static void host_release(uintptr_t address)
{
    bool is_ours = sim_range_find(address)->kind == SIM_RANGE_HOST;
    sim_range_remove(address);
    if (is_ours)
        free((void *)address);
}

void sim_memory_end(CUdevice device)
{
    for (size_t i = range_count; i-- > 0;) {
        struct sim_range range = ranges[i];
        if (range.device != device || range.kind == SIM_RANGE_MAPPED)
            continue;
        sim_history_retire(range.address, range.nbytes, "cuDevicePrimaryCtxRelease");
        if (range.kind == SIM_RANGE_PLAIN)
            sim_memory_release(range.address);
        else
            host_release(range.address);
    }
}

CUresult cuMemGetInfo(size_t *free, size_t *total)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    if (free != NULL)
        *free = sim.memory_bytes - sim.used_bytes[call.context->device];
    if (total != NULL)
        *total = sim.memory_bytes;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *pointer, size_t nbytes)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    SIM_REQUIRE(pointer != NULL, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE(sim_capture_allows_unsafe(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return plain_alloc(call.context->device, nbytes, false, pointer);
}

/* Waits for the work of its own context, and of no other: a peer's writer may still be queued. */
CUresult cuMemFree(CUdeviceptr pointer)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    SIM_REQUIRE(pointer != 0, CUDA_SUCCESS);
    SIM_REQUIRE(sim_capture_allows_unsafe(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    struct sim_range *range = sim_range_find(pointer);
    SIM_REQUIRE(range != NULL && range->address == pointer && range->kind == SIM_RANGE_PLAIN &&
                    !range->is_dying,
                CUDA_ERROR_INVALID_VALUE);
    size_t nbytes = range->nbytes;
    sim_complete_context(range->device);
    sim_history_retire(pointer, nbytes, "cuMemFree");
    sim_memory_release(pointer);
    return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t nbytes, CUstream handle)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    struct CUstream_st *stream = sim_stream_get(call.context, handle);
    SIM_REQUIRE(stream != NULL, CUDA_ERROR_INVALID_HANDLE);
    SIM_REQUIRE(pointer != NULL, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE(stream->capture == NULL, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CUresult result = plain_alloc(stream->device, nbytes, true, pointer);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) { /* frees that are only queued may make room */
        sim_complete_context(stream->device);
        result = plain_alloc(stream->device, nbytes, true, pointer);
    }
    SIM_REQUIRE(result == CUDA_SUCCESS, result);
    struct sim_op op = {.kind = SIM_OP_ALLOC, .destination = *pointer, .nbytes = nbytes};
    result = sim_submit(stream, &op);
    if (result != CUDA_SUCCESS)
        sim_memory_release(*pointer);
    return result;
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream handle)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    struct CUstream_st *stream = sim_stream_get(call.context, handle);
    SIM_REQUIRE(stream != NULL, CUDA_ERROR_INVALID_HANDLE);
    SIM_REQUIRE(pointer != 0, CUDA_SUCCESS);
    SIM_REQUIRE(stream->capture == NULL, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    struct sim_range *range = sim_range_find(pointer);
    SIM_REQUIRE(range != NULL && range->address == pointer && range->kind == SIM_RANGE_PLAIN &&
                    !range->is_dying,
                CUDA_ERROR_INVALID_VALUE);
    struct sim_op op = {.kind = SIM_OP_FREE, .destination = pointer, .nbytes = range->nbytes};
    CUresult result = sim_submit(stream, &op);
    if (result == CUDA_SUCCESS && (range = sim_range_find(pointer)) != NULL)
        range->is_dying = true;
    return result;
}

/* ---- page-locked memory --------------------------------------------------------------------- */

CUresult cuMemHostAlloc(void **pointer, size_t nbytes, unsigned int flags)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    SIM_REQUIRE(pointer != NULL && nbytes > 0 && flags <= 7, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE(sim_capture_allows_unsafe(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    void *made = NULL;
    SIM_REQUIRE(gni_size_is_possible(nbytes) && posix_memalign(&made, 4096, nbytes) == 0,
                CUDA_ERROR_OUT_OF_MEMORY);
    memset(made, SIM_POISON_ALLOC, nbytes);
    struct sim_range range = {.address = (uintptr_t)made,
                              .nbytes = nbytes,
                              .kind = SIM_RANGE_HOST,
                              .device = call.context->device};
    if (!sim_range_add(&range)) {
        free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *pointer = made;
    return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *pointer)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    SIM_REQUIRE(sim_capture_allows_unsafe(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    struct sim_range *range = sim_range_find((uintptr_t)pointer);
    SIM_REQUIRE(range != NULL && range->address == (uintptr_t)pointer &&
                    range->kind == SIM_RANGE_HOST,
                CUDA_ERROR_INVALID_VALUE);
    size_t nbytes = range->nbytes;
    sim_complete_context(range->device);
    sim_history_retire((uintptr_t)pointer, nbytes, "cuMemFreeHost");
    host_release((uintptr_t)pointer);
    return CUDA_SUCCESS;
}

CUresult cuMemHostRegister(void *pointer, size_t nbytes, unsigned int flags)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    uintptr_t address = (uintptr_t)pointer;
    SIM_REQUIRE(pointer != NULL && nbytes > 0 && flags <= 15 && nbytes <= UINTPTR_MAX - address,
                CUDA_ERROR_INVALID_VALUE);
    size_t place = range_place(address);
    SIM_REQUIRE(place == range_count || ranges[place].address >= address + nbytes,
                CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    struct sim_range range = {.address = address,
                              .nbytes = nbytes,
                              .kind = SIM_RANGE_REGISTERED,
                              .device = call.context->device};
    return sim_range_add(&range) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemHostUnregister(void *pointer)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    struct sim_range *range = sim_range_find((uintptr_t)pointer);
    SIM_REQUIRE(range != NULL && range->address == (uintptr_t)pointer &&
                    range->kind == SIM_RANGE_REGISTERED,
                CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    sim_history_retire((uintptr_t)pointer, range->nbytes, "cuMemHostUnregister");
    host_release((uintptr_t)pointer);
    return CUDA_SUCCESS;
}
