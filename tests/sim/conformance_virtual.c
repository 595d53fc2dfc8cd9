/*
 * conformance_virtual.c: programs about addresses and physical memory apart.
 */
#include "conformance.h"

static const CUmemAllocationProp property = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
};

static const CUmemAccessDesc access = {
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};

/* What most programs start with: one physical piece at the first of two reserved places. */
struct setup {
    size_t page;
    CUdeviceptr base;
    CUmemGenericAllocationHandle handle;
};

static struct setup setup_make(const struct gni_cuda_functions *cuda)
{
    struct setup setup = {0};
    CU(cuMemGetAllocationGranularity, (&setup.page, &property, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
       CUDA_SUCCESS);
    CU(cuMemAddressReserve, (&setup.base, 2 * setup.page, 0, 0, 0), CUDA_SUCCESS);
    CU(cuMemCreate, (&setup.handle, setup.page, &property, 0), CUDA_SUCCESS);
    CU(cuMemMap, (setup.base, setup.page, 0, setup.handle, 0), CUDA_SUCCESS);
    return setup;
}

static void setup_end(const struct gni_cuda_functions *cuda, const struct setup *setup)
{
    CU(cuMemUnmap, (setup->base, setup->page), CUDA_SUCCESS);
    CU(cuMemRelease, (setup->handle), CUDA_SUCCESS);
    CU(cuMemAddressFree, (setup->base, 2 * setup->page), CUDA_SUCCESS);
}

static void virtual_granularity(const struct gni_cuda_functions *cuda)
{
    size_t least = 0, wise = 0;
    CUmemAllocationProp bad = property;
    NEED(cuMemGetAllocationGranularity, (&least, &property, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    NEED(cuMemGetAllocationGranularity, (&wise, &property, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    EXPECT(least >= 4096 && (least & (least - 1)) == 0 && wise % least == 0);
    CU(cuMemGetAllocationGranularity, (&least, NULL, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
       CUDA_ERROR_INVALID_VALUE);
    bad.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    CU(cuMemGetAllocationGranularity, (&least, &bad, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
       CUDA_SUCCESS); /* the type does not matter here */
}

static void virtual_reserve(const struct gni_cuda_functions *cuda)
{
    size_t page = 0;
    CUdeviceptr base = 0, aligned = 0;
    NEED(cuMemGetAllocationGranularity, (&page, &property, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    NEED(cuMemAddressReserve, (&base, 8 * page, 0, 0, 0));
    EXPECT(base % page == 0);
    NEED(cuMemAddressReserve, (&aligned, page, 16 * page, 0, 0));
    EXPECT(aligned % (16 * page) == 0);
    CU(cuMemAddressReserve, (&aligned, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemAddressReserve, (&aligned, page + 1, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemAddressReserve, (NULL, page, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemAddressFree, (base, page), CUDA_ERROR_INVALID_VALUE); /* not all of it */
    CU(cuMemAddressFree, (base, 8 * page), CUDA_SUCCESS);
    CU(cuMemAddressFree, (aligned, page), CUDA_SUCCESS);
}

static void virtual_create_errors(const struct gni_cuda_functions *cuda)
{
    size_t page = 0, total = 0;
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp bad = property;
    NEED(cuMemGetAllocationGranularity, (&page, &property, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    NEED(cuDeviceTotalMem, (&total, 0));
    CU(cuMemCreate, (&handle, 0, &property, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemCreate, (&handle, page + 1, &property, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemCreate, (NULL, page, &property, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemCreate, (&handle, total / page * page * 2, &property, 0), CUDA_ERROR_OUT_OF_MEMORY);
    bad.location.id = 999;
    CU(cuMemCreate, (&handle, page, &bad, 0), CUDA_ERROR_INVALID_DEVICE, CUDA_ERROR_INVALID_VALUE);
    CU(cuMemRelease, (0), BAD_HANDLE);
}

static void virtual_map(const struct gni_cuda_functions *cuda)
{
    struct setup setup = setup_make(cuda);
    CU(cuMemSetAccess, (setup.base, setup.page, &access, 1), CUDA_SUCCESS);
    CU(cuMemsetD32Async, (setup.base, 9, setup.page / 4, NULL), CUDA_SUCCESS);
    add_launch(cuda, setup.base, 100, 1, NULL);
    EXPECT(int_read(cuda, setup.base + 396, NULL) == 10);
    EXPECT(int_read(cuda, setup.base + setup.page - 4, NULL) == 9);
    setup_end(cuda, &setup);
}

static void virtual_map_errors(const struct gni_cuda_functions *cuda)
{
    struct setup setup = setup_make(cuda);
    CUdeviceptr second = setup.base + setup.page;
    CU(cuMemMap, (setup.base, setup.page, 0, setup.handle, 0),
       CUDA_ERROR_INVALID_VALUE); /* twice */
    CU(cuMemMap, (second, setup.page, setup.page, setup.handle, 0), CUDA_ERROR_NOT_SUPPORTED);
    CU(cuMemMap, (second + 4096, setup.page, 0, setup.handle, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemMap, (second, 2 * setup.page, 0, setup.handle, 0), CUDA_ERROR_NOT_SUPPORTED);
    CU(cuMemSetAccess, (second, setup.page, &access, 1), CUDA_ERROR_INVALID_VALUE); /* unmapped */
    CU(cuMemSetAccess, (setup.base, setup.page, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemUnmap, (second, setup.page), CUDA_SUCCESS); /* reserved, and nothing there */
    setup_end(cuda, &setup);
}

/* Mappings go whole, or not at all; several go at once. */
static void virtual_unmap_whole(const struct gni_cuda_functions *cuda)
{
    struct setup setup = setup_make(cuda);
    CUmemGenericAllocationHandle large;
    CUdeviceptr range;
    NEED(cuMemCreate, (&large, 2 * setup.page, &property, 0));
    NEED(cuMemAddressReserve, (&range, 3 * setup.page, 0, 0, 0));
    NEED(cuMemMap, (range, 2 * setup.page, 0, large, 0));
    CU(cuMemUnmap, (range, setup.page), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemUnmap, (range + setup.page, setup.page), CUDA_ERROR_INVALID_VALUE);
    NEED(cuMemMap, (range + 2 * setup.page, setup.page, 0, setup.handle, 0));
    CU(cuMemSetAccess, (range, 3 * setup.page, &access, 1), CUDA_SUCCESS);
    add_launch(cuda, range, (int)(3 * setup.page / 4), 0, NULL); /* one stretch for a kernel */
    CU(cuStreamSynchronize, (NULL), CUDA_SUCCESS);
    CU(cuMemUnmap, (range, 3 * setup.page), CUDA_SUCCESS);
    CU(cuMemRelease, (large), CUDA_SUCCESS);
    CU(cuMemAddressFree, (range, 3 * setup.page), CUDA_SUCCESS);
    setup_end(cuda, &setup);
}

/* What is mapped cannot be used before access was granted. */
static void virtual_no_access(const struct gni_cuda_functions *cuda)
{
    struct setup setup = setup_make(cuda);
    int value = 0;
    CU(cuMemcpyAsync, ((CUdeviceptr)(uintptr_t)&value, setup.base, 4, NULL),
       CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void virtual_two_addresses(const struct gni_cuda_functions *cuda)
{
    struct setup setup = setup_make(cuda);
    CUdeviceptr second = setup.base + setup.page;
    NEED(cuMemMap, (second, setup.page, 0, setup.handle, 0));
    CU(cuMemSetAccess, (setup.base, 2 * setup.page, &access, 1), CUDA_SUCCESS);
    CU(cuMemsetD32Async, (setup.base + 8, 77, 1, NULL), CUDA_SUCCESS);
    CU(cuStreamSynchronize, (NULL), CUDA_SUCCESS);
    EXPECT(int_read(cuda, second + 8, NULL) == 77);
    CU(cuMemUnmap, (second, setup.page), CUDA_SUCCESS);
    EXPECT(int_read(cuda, setup.base + 8, NULL) == 77);
    setup_end(cuda, &setup);
}

/* The memory lives until it is neither held nor mapped. */
static void virtual_release_first(const struct gni_cuda_functions *cuda)
{
    struct setup setup = setup_make(cuda);
    size_t mapped = 0, after = 0, total;
    CU(cuMemRelease, (setup.handle), CUDA_SUCCESS);
    CU(cuMemSetAccess, (setup.base, setup.page, &access, 1), CUDA_SUCCESS);
    CU(cuMemsetD32Async, (setup.base, 5, 1, NULL), CUDA_SUCCESS);
    EXPECT(int_read(cuda, setup.base, NULL) == 5);
    NEED(cuMemGetInfo, (&mapped, &total));
    CU(cuMemUnmap, (setup.base, setup.page), CUDA_SUCCESS);
    NEED(cuMemGetInfo, (&after, &total));
    EXPECT(after >= mapped + setup.page);
    CU(cuMemAddressFree, (setup.base, 2 * setup.page), CUDA_SUCCESS);
}

/* Unmapped and mapped again: the bytes are the handle's, not the address's. */
static void virtual_remap(const struct gni_cuda_functions *cuda)
{
    struct setup setup = setup_make(cuda);
    CU(cuMemSetAccess, (setup.base, setup.page, &access, 1), CUDA_SUCCESS);
    CU(cuMemsetD32Async, (setup.base, 12, 1, NULL), CUDA_SUCCESS);
    CU(cuStreamSynchronize, (NULL), CUDA_SUCCESS);
    CU(cuMemUnmap, (setup.base, setup.page), CUDA_SUCCESS);
    CU(cuMemMap, (setup.base + setup.page, setup.page, 0, setup.handle, 0), CUDA_SUCCESS);
    CU(cuMemSetAccess, (setup.base + setup.page, setup.page, &access, 1), CUDA_SUCCESS);
    EXPECT(int_read(cuda, setup.base + setup.page, NULL) == 12);
    CU(cuMemUnmap, (setup.base + setup.page, setup.page), CUDA_SUCCESS);
    CU(cuMemMap, (setup.base, setup.page, 0, setup.handle, 0), CUDA_SUCCESS);
    setup_end(cuda, &setup);
}

const struct conformance_program conformance_virtual[] = {
    PROGRAM(virtual_granularity, 0),
    PROGRAM(virtual_reserve, 0),
    PROGRAM(virtual_create_errors, 0),
    PROGRAM(virtual_map, 0),
    PROGRAM(virtual_map_errors, 0),
    PROGRAM(virtual_unmap_whole, 0),
    PROGRAM(virtual_no_access, IN_CHILD),
    PROGRAM(virtual_two_addresses, 0),
    PROGRAM(virtual_release_first, 0),
    PROGRAM(virtual_remap, 0),
    {NULL, NULL, 0},
};
