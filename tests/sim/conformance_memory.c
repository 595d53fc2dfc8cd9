/*
 * conformance_memory.c: programs about device memory, page-locked memory, copies and fills.
 */
#include "conformance.h"

#include <stdlib.h>
#include <string.h>

static void memory_alloc(const struct gni_cuda_functions *cuda)
{
    CUdeviceptr one = 0, two = 0;
    NEED(cuMemAlloc, (&one, 1000));
    NEED(cuMemAlloc, (&two, 1));
    EXPECT(one != 0 && two != 0 && one % 256 == 0 && two % 256 == 0);
    EXPECT(one + 1000 <= two || two + 1 <= one);
    CU(cuMemFree, (one), CUDA_SUCCESS);
    CU(cuMemFree, (two), CUDA_SUCCESS);
    CU(cuMemFree, (0), CUDA_SUCCESS);
}

static void memory_alloc_errors(const struct gni_cuda_functions *cuda)
{
    CUdeviceptr pointer = 0;
    size_t total = 0;
    NEED(cuDeviceTotalMem, (&total, 0));
    CU(cuMemAlloc, (&pointer, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemAlloc, (NULL, 100), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemAlloc, (&pointer, total * 2), CUDA_ERROR_OUT_OF_MEMORY);
    CU(cuMemAlloc, (&pointer, SIZE_MAX / 2), CUDA_ERROR_OUT_OF_MEMORY);
    CU(cuMemAlloc, (&pointer, 100), CUDA_SUCCESS); /* and life goes on */
    CU(cuMemFree, (pointer), CUDA_SUCCESS);
}

static void memory_free_errors(const struct gni_cuda_functions *cuda)
{
    CUdeviceptr pointer = 0;
    int local = 0;
    NEED(cuMemAlloc, (&pointer, 4 * MIB));
    CU(cuMemFree, (pointer + 512), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemFree, (pointer), CUDA_SUCCESS);
    CU(cuMemFree, (pointer), CUDA_ERROR_INVALID_VALUE); /* twice */
    CU(cuMemFree, ((CUdeviceptr)(uintptr_t)&local), CUDA_ERROR_INVALID_VALUE);
}

static void memory_info(const struct gni_cuda_functions *cuda)
{
    size_t before = 0, during = 0, after = 0, total = 0, whole = 0;
    CUdeviceptr pointer;
    NEED(cuDeviceTotalMem, (&whole, 0));
    NEED(cuMemGetInfo, (&before, &total));
    EXPECT(before <= total && total <= whole);
    NEED(cuMemAlloc, (&pointer, 64 * MIB));
    NEED(cuMemGetInfo, (&during, &total));
    EXPECT(during + 64 * MIB <= before);
    NEED(cuMemFree, (pointer));
    NEED(cuMemGetInfo, (&after, &total));
    EXPECT(after >= during + 64 * MIB);
}

static void copy_directions(const struct gni_cuda_functions *cuda)
{
    enum {
        COUNT = 100003
    };
    unsigned char *out = malloc(COUNT), *back = calloc(1, COUNT);
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUdeviceptr one = 0, two = 0;
    for (int i = 0; i < COUNT; i++)
        out[i] = (unsigned char)(i * 7);
    NEED(cuMemAlloc, (&one, COUNT));
    NEED(cuMemAlloc, (&two, COUNT));
    CU(cuMemcpyAsync, (one, (CUdeviceptr)(uintptr_t)out, COUNT, stream), CUDA_SUCCESS);
    CU(cuMemcpyAsync, (two, one, COUNT, stream), CUDA_SUCCESS);
    CU(cuMemcpyAsync, ((CUdeviceptr)(uintptr_t)back, two, COUNT, stream), CUDA_SUCCESS);
    CU(cuStreamSynchronize, (stream), CUDA_SUCCESS);
    EXPECT(memcmp(out, back, COUNT) == 0);
    memset(back, 0, COUNT);
    CU(cuMemcpyAsync, ((CUdeviceptr)(uintptr_t)back, (CUdeviceptr)(uintptr_t)out, COUNT, stream),
       CUDA_SUCCESS); /* host to host */
    CU(cuStreamSynchronize, (stream), CUDA_SUCCESS);
    EXPECT(memcmp(out, back, COUNT) == 0);
    CU(cuMemcpyAsync, (two, one, 0, stream), CUDA_SUCCESS);
    CU(cuMemcpyAsync, (0, one, 4, stream), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemcpyAsync, (two, 0, 4, stream), CUDA_ERROR_INVALID_VALUE);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
    CU(cuMemFree, (one), CUDA_SUCCESS);
    CU(cuMemFree, (two), CUDA_SUCCESS);
    free(out);
    free(back);
}

/* A pageable source may be changed as soon as the call has returned. */
static void copy_pageable_is_staged(const struct gni_cuda_functions *cuda)
{
    enum {
        COUNT = 300000
    };
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = ints_make(cuda, COUNT, 0);
    int *source = malloc(COUNT * sizeof *source);
    for (int i = 0; i < COUNT; i++)
        source[i] = i;
    CU(cuMemcpyAsync, (block, (CUdeviceptr)(uintptr_t)source, COUNT * sizeof *source, stream),
       CUDA_SUCCESS);
    memset(source, 0xFF, COUNT * sizeof *source);
    EXPECT(int_read(cuda, block + 4, stream) == 1);
    EXPECT(int_read(cuda, block + 4 * (COUNT - 1), stream) == COUNT - 1);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
    CU(cuMemFree, (block), CUDA_SUCCESS);
    free(source);
}

/* A copy into pageable memory is finished when the call returns. */
static void copy_to_pageable_is_synchronous(const struct gni_cuda_functions *cuda)
{
    enum {
        COUNT = 1 << 20
    };
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = ints_make(cuda, COUNT, 3);
    int *target = calloc(COUNT, sizeof *target);
    add_launch(cuda, block, COUNT, 4, stream);
    CU(cuMemcpyAsync, ((CUdeviceptr)(uintptr_t)target, block, COUNT * sizeof *target, stream),
       CUDA_SUCCESS);
    EXPECT(target[0] == 7 && target[COUNT - 1] == 7);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
    CU(cuMemFree, (block), CUDA_SUCCESS);
    free(target);
}

/* A page-locked source is read when the copy runs, not when it is submitted. */
static void copy_locked_is_not_staged(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = ints_make(cuda, 1, 0);
    int *source = NULL;
    NEED(cuMemHostAlloc, ((void **)&source, sizeof *source, 0));
    *source = 1;
    hold_begin(cuda, stream);
    CU(cuMemcpyAsync, (block, (CUdeviceptr)(uintptr_t)source, sizeof *source, stream),
       CUDA_SUCCESS);
    CU(cuStreamQuery, (stream), HELD);
    *(volatile int *)source = 2;
    hold_end();
    int seen = int_read(cuda, block, stream);
    EXPECT(seen == 2 || (conformance.is_simulated && seen == 1));
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
    CU(cuMemFreeHost, (source), CUDA_SUCCESS);
    CU(cuMemFree, (block), CUDA_SUCCESS);
}

static void copy_between_devices(const struct gni_cuda_functions *cuda)
{
    CUcontext other, popped;
    CUdeviceptr here = ints_make(cuda, 1000, 5), there = 0;
    NEED(cuDevicePrimaryCtxRetain, (&other, 1));
    NEED(cuCtxPushCurrent, (other));
    NEED(cuMemAlloc, (&there, 4000));
    CU(cuMemcpyAsync, (there, here, 4000, NULL), CUDA_SUCCESS);
    EXPECT(int_read(cuda, there + 3996, NULL) == 5);
    CU(cuMemFree, (there), CUDA_SUCCESS);
    CU(cuCtxPopCurrent, (&popped), CUDA_SUCCESS);
    CU(cuDevicePrimaryCtxRelease, (1), CUDA_SUCCESS);
    CU(cuMemFree, (here), CUDA_SUCCESS);
}

static void fill_elements(const struct gni_cuda_functions *cuda)
{
    CUdeviceptr block = 0;
    unsigned char host[64] = {0}, want[64];
    NEED(cuMemAlloc, (&block, sizeof host));
    CU(cuMemsetD8Async, (block, 0x11, 64, NULL), CUDA_SUCCESS);
    CU(cuMemsetD16Async, (block + 2, 0x3322, 5, NULL), CUDA_SUCCESS);
    CU(cuMemsetD32Async, (block + 16, 0x77665544, 7, NULL), CUDA_SUCCESS);
    CU(cuMemcpyAsync, ((CUdeviceptr)(uintptr_t)host, block, sizeof host, NULL), CUDA_SUCCESS);
    memset(want, 0x11, sizeof want);
    for (int i = 0; i < 5; i++)
        memcpy(want + 2 + 2 * i, "\x22\x33", 2);
    for (int i = 0; i < 7; i++)
        memcpy(want + 16 + 4 * i, "\x44\x55\x66\x77", 4);
    EXPECT(memcmp(host, want, sizeof want) == 0);
    CU(cuMemsetD8Async, (block, 0, 0, NULL), CUDA_SUCCESS);
    CU(cuMemsetD16Async, (block + 1, 0, 1, NULL), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemsetD32Async, (block + 2, 0, 1, NULL), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemsetD8Async, (0, 0, 1, NULL), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemFree, (block), CUDA_SUCCESS);
}

static void host_alloc(const struct gni_cuda_functions *cuda)
{
    int *host = NULL, local = 0;
    NEED(cuMemHostAlloc, ((void **)&host, 100 * sizeof *host, CU_MEMHOSTALLOC_PORTABLE));
    EXPECT(host != NULL);
    for (int i = 0; i < 100; i++)
        host[i] = i;
    CUdeviceptr block = ints_make(cuda, 100, 0);
    CU(cuMemcpyAsync, (block, (CUdeviceptr)(uintptr_t)host, 400, NULL), CUDA_SUCCESS);
    EXPECT(int_read(cuda, block + 396, NULL) == 99);
    add_launch(cuda, (CUdeviceptr)(uintptr_t)host, 100, 1, NULL); /* kernels reach it too */
    CU(cuStreamSynchronize, (NULL), CUDA_SUCCESS);
    EXPECT(host[0] == 1 && host[99] == 100);
    CU(cuMemFreeHost, (host), CUDA_SUCCESS);
    CU(cuMemFreeHost, (&local), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemHostAlloc, (NULL, 100, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemHostAlloc, ((void **)&host, 100, 0xFF00), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemFree, (block), CUDA_SUCCESS);
}

static void host_register(const struct gni_cuda_functions *cuda)
{
    enum {
        BYTES = 64 << 10
    };
    int *host = aligned_alloc(4096, BYTES);
    memset(host, 0, BYTES);
    CUdeviceptr block = ints_make(cuda, 1, 8);
    NEED(cuMemHostRegister, (host, BYTES, 0));
    CU(cuMemHostRegister, (host, BYTES, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    CU(cuMemcpyAsync, ((CUdeviceptr)(uintptr_t)(host + 5), block, 4, NULL), CUDA_SUCCESS);
    CU(cuStreamSynchronize, (NULL), CUDA_SUCCESS);
    EXPECT(host[5] == 8);
    CU(cuMemHostUnregister, (host), CUDA_SUCCESS);
    CU(cuMemHostUnregister, (host), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
       CUDA_ERROR_INVALID_VALUE);
    CU(cuMemHostRegister, (NULL, BYTES, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemHostRegister, (host, 0, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemFree, (block), CUDA_SUCCESS);
    free(host);
}

static void ordered_memory(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUdeviceptr pointer = 0;
    NEED(cuMemAllocAsync, (&pointer, 4000, stream));
    CU(cuMemsetD32Async, (pointer, 6, 1000, stream), CUDA_SUCCESS);
    EXPECT(int_read(cuda, pointer + 3996, stream) == 6);
    CU(cuMemFreeAsync, (pointer, stream), CUDA_SUCCESS);
    CU(cuStreamSynchronize, (stream), CUDA_SUCCESS);
    NEED(cuMemAllocAsync, (&pointer, 4000, stream));
    CU(cuMemFree, (pointer), CUDA_SUCCESS); /* the other free takes it as well */
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
}

static void ordered_memory_errors(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUdeviceptr pointer = 0;
    size_t total = 0;
    int local = 0;
    NEED(cuDeviceTotalMem, (&total, 0));
    CU(cuMemAllocAsync, (NULL, 100, stream), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemAllocAsync, (&pointer, total * 2, stream), CUDA_ERROR_OUT_OF_MEMORY);
    CU(cuMemFreeAsync, ((CUdeviceptr)(uintptr_t)&local, stream), CUDA_ERROR_INVALID_VALUE);
    NEED(cuMemAllocAsync, (&pointer, 100, stream));
    CU(cuMemFreeAsync, (pointer, stream), CUDA_SUCCESS);
    CU(cuMemFreeAsync, (pointer, stream), CUDA_ERROR_INVALID_VALUE);
    CU(cuStreamSynchronize, (stream), CUDA_SUCCESS);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
}

/* The free waits for everything in its context, so that what was queued before it is finished. */
static void memory_free_waits(const struct gni_cuda_functions *cuda)
{
    enum {
        COUNT = 4 << 20
    };
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = ints_make(cuda, COUNT, 0), unused = ints_make(cuda, 1, 0);
    volatile int *result = NULL;
    NEED(cuMemHostAlloc, ((void **)&result, sizeof *result, 0));
    *result = 0;
    for (int i = 1; i <= 20; i++)
        CU(cuMemsetD32Async, (block, (unsigned)i, COUNT, stream), CUDA_SUCCESS);
    CU(cuMemcpyAsync, ((CUdeviceptr)(uintptr_t)result, block + 4 * (COUNT - 1), 4, stream),
       CUDA_SUCCESS);
    CU(cuMemFree, (unused), CUDA_SUCCESS);
    EXPECT(*result == 20);
    CU(cuStreamQuery, (stream), CUDA_SUCCESS);
    CU(cuMemFree, (block), CUDA_SUCCESS);
    CU(cuMemFreeHost, ((void *)(uintptr_t)result), CUDA_SUCCESS);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
}

const struct conformance_program conformance_memory[] = {
    PROGRAM(memory_alloc, 0),
    PROGRAM(memory_alloc_errors, 0),
    PROGRAM(memory_free_errors, 0),
    PROGRAM(memory_info, 0),
    PROGRAM(copy_directions, 0),
    PROGRAM(copy_pageable_is_staged, 0),
    PROGRAM(copy_to_pageable_is_synchronous, 0),
    PROGRAM(copy_locked_is_not_staged, 0),
    PROGRAM(copy_between_devices, TWO_DEVICES),
    PROGRAM(fill_elements, 0),
    PROGRAM(host_alloc, 0),
    PROGRAM(host_register, 0),
    PROGRAM(ordered_memory, 0),
    PROGRAM(ordered_memory_errors, 0),
    PROGRAM(memory_free_waits, 0),
    {NULL, NULL, 0},
};
