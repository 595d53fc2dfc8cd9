/*
 * conformance_kernel.c: programs about modules, functions and launches.
 */
#include "conformance.h"

static void module_errors(const struct gni_cuda_functions *cuda)
{
    CUmodule module;
    CUfunction function;
    CU(cuModuleLoadData, (&module, "this is no image"), CUDA_ERROR_INVALID_IMAGE,
       CUDA_ERROR_INVALID_PTX, CUDA_ERROR_INVALID_SOURCE);
    CU(cuModuleLoadData, (&module, NULL), CUDA_ERROR_INVALID_VALUE);
    CU(cuModuleUnload, (NULL), BAD_HANDLE);
    CU(cuModuleGetFunction, (&function, conformance.module, "no_such_kernel"),
       CUDA_ERROR_NOT_FOUND);
    CU(cuModuleGetFunction, (&function, conformance.module, NULL), CUDA_ERROR_INVALID_VALUE);
    CU(cuModuleGetFunction, (&function, NULL, "add"), BAD_HANDLE);
}

static void function_attributes(const struct gni_cuda_functions *cuda)
{
    int threads = 0, bounded = 0, shared = -1, registers = 0, local = -1, value;
    CU(cuFuncGetAttribute, (&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, conformance.add),
       CUDA_SUCCESS);
    CU(cuFuncGetAttribute, (&bounded, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, conformance.bounded),
       CUDA_SUCCESS);
    CU(cuFuncGetAttribute, (&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, conformance.add),
       CUDA_SUCCESS);
    CU(cuFuncGetAttribute, (&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, conformance.add), CUDA_SUCCESS);
    CU(cuFuncGetAttribute, (&local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, conformance.add),
       CUDA_SUCCESS);
    EXPECT(threads == 1024 && bounded == 64 && shared >= 0 && registers > 0 && local >= 0);
    CU(cuFuncGetAttribute, (&value, (CUfunction_attribute)9999, conformance.add),
       CUDA_ERROR_INVALID_VALUE);
    CU(cuFuncGetAttribute, (NULL, CU_FUNC_ATTRIBUTE_NUM_REGS, conformance.add),
       CUDA_ERROR_INVALID_VALUE);
}

/* add(int *block, int count, int value) */
static void function_parameters(const struct gni_cuda_functions *cuda)
{
    static const size_t offsets[] = {0, 8, 12}, sizes[] = {8, 4, 4};
    for (size_t i = 0; i < 3; i++) {
        size_t offset = 99, nbytes = 99;
        CU(cuFuncGetParamInfo, (conformance.add, i, &offset, &nbytes), CUDA_SUCCESS);
        EXPECT(offset == offsets[i] && nbytes == sizes[i]);
    }
    size_t offset, nbytes;
    CU(cuFuncGetParamInfo, (conformance.add, 3, &offset, &nbytes), CUDA_ERROR_INVALID_VALUE);
}

/* Arguments are the launch's own as soon as it has been submitted. */
static void launch_copies_arguments(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = ints_make(cuda, 10, 1);
    CUdeviceptr pointer = block;
    int count = 10, value = 5;
    void *arguments[] = {&pointer, &count, &value};
    hold_begin(cuda, stream);
    CU(cuLaunchKernel, (conformance.add, 1, 1, 1, 64, 1, 1, 0, stream, arguments, NULL),
       CUDA_SUCCESS);
    pointer = 0;
    count = -1;
    value = 1000;
    arguments[0] = arguments[1] = arguments[2] = NULL;
    hold_end();
    EXPECT(int_read(cuda, block + 36, stream) == 6);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
    CU(cuMemFree, (block), CUDA_SUCCESS);
}

/* Without attributes it is the same launch. */
static void launch_by_configuration(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = ints_make(cuda, 10, 1);
    int count = 10, value = 5;
    void *arguments[] = {&block, &count, &value};
    CUlaunchConfig config = {1, 1, 1, 64, 1, 1, 0, stream, NULL, 0};
    CU(cuLaunchKernelEx, (&config, conformance.add, arguments, NULL), CUDA_SUCCESS);
    EXPECT(int_read(cuda, block + 36, stream) == 6);
    config.blockDimX = 1025;
    CU(cuLaunchKernelEx, (&config, conformance.add, arguments, NULL), CUDA_ERROR_INVALID_VALUE);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
    CU(cuMemFree, (block), CUDA_SUCCESS);
}

static void launch_limits(const struct gni_cuda_functions *cuda)
{
    CUdeviceptr block = ints_make(cuda, 1, 1);
    int count = 1, value = 1;
    void *arguments[] = {&block, &count, &value};
    CUfunction add = conformance.add;
    CU(cuLaunchKernel, (add, 1, 1, 1, 1025, 1, 1, 0, NULL, arguments, NULL),
       CUDA_ERROR_INVALID_VALUE);
    CU(cuLaunchKernel, (add, 1, 1, 1, 32, 33, 1, 0, NULL, arguments, NULL),
       CUDA_ERROR_INVALID_VALUE);
    CU(cuLaunchKernel, (add, 1, 1, 1, 1, 1, 65, 0, NULL, arguments, NULL),
       CUDA_ERROR_INVALID_VALUE);
    CU(cuLaunchKernel, (add, 0, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL), CUDA_ERROR_INVALID_VALUE);
    CU(cuLaunchKernel, (add, 1, 1, 1, 1, 0, 1, 0, NULL, arguments, NULL), CUDA_ERROR_INVALID_VALUE);
    CU(cuLaunchKernel, (add, 1, 65536, 1, 1, 1, 1, 0, NULL, arguments, NULL),
       CUDA_ERROR_INVALID_VALUE);
    CU(cuLaunchKernel, (NULL, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL), BAD_HANDLE);
    CU(cuLaunchKernel, (conformance.bounded, 1, 1, 1, 65, 1, 1, 0, NULL, arguments, NULL),
       CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    EXPECT(int_read(cuda, block, NULL) == 1); /* none of these ran */
    CU(cuLaunchKernel, (add, 1, 1, 1, 32, 4, 8, 0, NULL, arguments, NULL), CUDA_SUCCESS);
    CU(cuStreamSynchronize, (NULL), CUDA_SUCCESS);
    CU(cuMemFree, (block), CUDA_SUCCESS);
}

/* More than 48 KiB of shared memory must be asked for. */
static void shared_memory_optin(const struct gni_cuda_functions *cuda)
{
    enum {
        LARGE = 64 * 1024
    };
    CUfunction_attribute limit = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    CUfunction sums = conformance.sums;
    CUdeviceptr out = ints_make(cuda, 1, 0);
    int value = 0, count = LARGE / 4, optin = 0;
    void *arguments[] = {&out, &count};
    NEED(cuDeviceGetAttribute, (&optin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0));
    CU(cuLaunchKernel, (sums, 1, 1, 1, 128, 1, 1, LARGE, NULL, arguments, NULL),
       CUDA_ERROR_INVALID_VALUE);
    CU(cuFuncSetAttribute, (sums, limit, optin + 4096), CUDA_ERROR_INVALID_VALUE);
    CU(cuFuncSetAttribute, (sums, limit, -1), CUDA_ERROR_INVALID_VALUE);
    CU(cuFuncSetAttribute, (sums, limit, LARGE), CUDA_SUCCESS);
    CU(cuFuncGetAttribute, (&value, limit, sums), CUDA_SUCCESS);
    EXPECT(value == LARGE);
    CU(cuLaunchKernel, (sums, 1, 1, 1, 128, 1, 1, LARGE, NULL, arguments, NULL), CUDA_SUCCESS);
    EXPECT(int_read(cuda, out, NULL) == count * (count - 1) / 2);
    CU(cuFuncSetAttribute, (sums, limit, 48 * 1024), CUDA_SUCCESS);
    CU(cuMemFree, (out), CUDA_SUCCESS);
}

/* ---- programs that lose the context --------------------------------------------------------- */

/* Every later call gives the same error. */
static void expect_lost(const struct gni_cuda_functions *cuda, CUresult result)
{
    CUdeviceptr pointer;
    CUevent event;
    size_t number;
    CU(cuCtxSynchronize, (), (int)result);
    CU(cuMemAlloc, (&pointer, 100), (int)result);
    CU(cuEventCreate, (&event, 0), (int)result);
    CU(cuMemGetInfo, (&number, &number), (int)result);
    CU(cuStreamQuery, (NULL), (int)result);
}

static void lost_by_illegal_address(const struct gni_cuda_functions *cuda)
{
    CUdeviceptr block = ints_make(cuda, 1, 1);
    long long index = 1ll << 40;
    int value = 1;
    void *arguments[] = {&block, &index, &value};
    CU(cuLaunchKernel, (conformance.put, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL), CUDA_SUCCESS);
    CU(cuStreamSynchronize, (NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
    expect_lost(cuda, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void lost_by_misalignment(const struct gni_cuda_functions *cuda)
{
    CUdeviceptr block = ints_make(cuda, 2, 1), odd = block + 1;
    long long index = 0;
    int value = 1;
    void *arguments[] = {&odd, &index, &value};
    CU(cuLaunchKernel, (conformance.put, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL), CUDA_SUCCESS);
    CU(cuStreamSynchronize, (NULL), CUDA_ERROR_MISALIGNED_ADDRESS);
    expect_lost(cuda, CUDA_ERROR_MISALIGNED_ADDRESS);
}

static void lost_by_trap(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CU(cuLaunchKernel, (conformance.trap, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL), CUDA_SUCCESS);
    CU(cuStreamSynchronize, (stream), CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_ILLEGAL_INSTRUCTION);
    CUdeviceptr pointer;
    CU(cuMemAlloc, (&pointer, 100), CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_ILLEGAL_INSTRUCTION);
}

/* The error of one stream's work comes out of another's calls. */
static void lost_for_all_streams(const struct gni_cuda_functions *cuda)
{
    CUstream one = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUstream two = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = ints_make(cuda, 1, 1);
    long long index = 1ll << 40;
    int value = 1;
    void *arguments[] = {&block, &index, &value};
    CU(cuLaunchKernel, (conformance.put, 1, 1, 1, 1, 1, 1, 0, one, arguments, NULL), CUDA_SUCCESS);
    CU(cuStreamSynchronize, (one), CUDA_ERROR_ILLEGAL_ADDRESS);
    CU(cuStreamSynchronize, (two), CUDA_ERROR_ILLEGAL_ADDRESS);
    CU(cuMemsetD8Async, (block, 0, 1, two), CUDA_ERROR_ILLEGAL_ADDRESS);
    CU(cuMemFree, (block), CUDA_ERROR_ILLEGAL_ADDRESS);
}

const struct conformance_program conformance_kernel[] = {
    PROGRAM(module_errors, 0),
    PROGRAM(function_attributes, 0),
    PROGRAM(function_parameters, 0),
    PROGRAM(launch_copies_arguments, 0),
    PROGRAM(launch_by_configuration, 0),
    PROGRAM(launch_limits, 0),
    PROGRAM(shared_memory_optin, 0),
    PROGRAM(lost_by_illegal_address, IN_CHILD),
    PROGRAM(lost_by_misalignment, IN_CHILD),
    PROGRAM(lost_by_trap, IN_CHILD),
    PROGRAM(lost_for_all_streams, IN_CHILD),
    {NULL, NULL, 0},
};
