/*
 * test_sim.c: planted bugs that the simulated GPU must find by name, and the same programs without
 * them, in which it must find nothing; faults that tests can order; replays.
 *
 * Each program runs in a process of its own, which is this one again with the program's name, since
 * some lose the device. It runs under every schedule: what is found must not depend on luck.
 */
#include "check.h"

#include "control.h"
#include "device/cuda/driver.h"
#include "device/cuda/library.h"

#include <sys/wait.h>
#include <unistd.h>

static const struct gni_cuda_functions *cuda;
static struct sim_control control;
static CUmodule module;

#define OK(call) CHECK_U64(call, CUDA_SUCCESS)

/* ---- the start ------------------------------------------------------------------------------ */

static const char kernels[] =
    "extern \"C\" {\n"
    "__global__ void add(int *p, int count, int value)\n"
    "{\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < count) p[i] += value;\n"
    "}\n"
    "__global__ void reverse(int *p)\n"
    "{\n"
    "    __shared__ int values[64];\n"
    "    values[threadIdx.x] = p[threadIdx.x];\n"
    "    p[threadIdx.x] = values[63 - threadIdx.x];\n"
    "}\n"
    "__global__ void reverse_well(int *p)\n"
    "{\n"
    "    __shared__ int values[64];\n"
    "    values[threadIdx.x] = p[threadIdx.x];\n"
    "    __syncthreads();\n"
    "    p[threadIdx.x] = values[63 - threadIdx.x];\n"
    "}\n"
    "__global__ void shuffle(int *p, int lanes)\n"
    "{\n"
    "    int lane = threadIdx.x;\n"
    "    if (lane >= lanes) return;\n"
    "    p[lane] = __shfl_xor_sync(lanes == 32 ? 0xffffffffu : 0xffffu, p[lane], 16);\n"
    "}\n"
    "}\n";

static CUfunction function_get(const char *name)
{
    CUfunction function = NULL;
    OK(cuda->cuModuleGetFunction(&function, module, name));
    return function;
}

static void kernels_load(void)
{
    const struct gni_nvrtc *nvrtc;
    const char *options[] = {"--gpu-architecture=sm_90"};
    nvrtcProgram program;
    size_t nbytes = 0;
    CHECK_OK(gni_nvrtc_open(&nvrtc));
    CHECK(nvrtc->functions.nvrtcCreateProgram(&program, kernels, "planted.cu", 0, NULL, NULL) == 0);
    CHECK(nvrtc->functions.nvrtcCompileProgram(program, 1, options) == 0);
    CHECK(nvrtc->functions.nvrtcGetCUBINSize(program, &nbytes) == 0);
    char *image = malloc(nbytes);
    CHECK(nvrtc->functions.nvrtcGetCUBIN(program, image) == 0);
    CHECK(nvrtc->functions.nvrtcDestroyProgram(&program) == 0);
    OK(cuda->cuModuleLoadData(&module, image));
    free(image);
}

static void start(void)
{
    const struct gni_cuda_driver *driver;
    CUcontext context;
    CHECK_OK(gni_cuda_driver_open(&driver));
    CHECK(sim_control_load(driver->path, &control));
    cuda = &driver->functions;
    OK(cuda->cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuda->cuCtxPushCurrent(context));
    kernels_load();
}

static CUstream stream_make(void)
{
    CUstream stream = NULL;
    OK(cuda->cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));
    return stream;
}

static CUevent event_make(void)
{
    CUevent event = NULL;
    OK(cuda->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    return event;
}

static CUdeviceptr block_make(size_t nbytes)
{
    CUdeviceptr block = 0;
    OK(cuda->cuMemAlloc(&block, nbytes));
    OK(cuda->cuMemsetD8Async(block, 0, nbytes, NULL));
    OK(cuda->cuStreamSynchronize(NULL));
    return block;
}

static void add(CUdeviceptr block, int count, CUstream stream)
{
    int value = 1;
    void *arguments[] = {&block, &count, &value};
    OK(cuda->cuLaunchKernel(function_get("add"), ((unsigned)count + 63) / 64, 1, 1, 64, 1, 1, 0,
                            stream, arguments, NULL));
}

static void order(CUstream before, CUstream after)
{
    CUevent event = event_make();
    OK(cuda->cuEventRecord(event, before));
    OK(cuda->cuStreamWaitEvent(after, event, 0));
    OK(cuda->cuEventDestroy(event));
}

static CUresult synchronize(void)
{
    return cuda->cuCtxSynchronize();
}

/* ---- planted bugs --------------------------------------------------------------------------- */

/* A cache hands a block from one stream to another and forgets the event. */
static void reuse_without_wait(bool is_planted)
{
    CUstream one = stream_make(), two = stream_make();
    CUdeviceptr block = block_make(4096);
    add(block, 1024, one);
    if (!is_planted)
        order(one, two);
    OK(cuda->cuMemsetD32Async(block, 7, 1024, two));
    OK(synchronize());
}

/* The same with a reader: it must be waited for as well. */
static void reuse_while_read(bool is_planted)
{
    CUstream one = stream_make(), two = stream_make();
    CUdeviceptr block = block_make(4096), copy = block_make(4096);
    OK(cuda->cuMemcpyAsync(copy, block, 4096, one));
    if (!is_planted)
        order(one, two);
    add(block, 1024, two);
    OK(synchronize());
}

static void free_while_read(bool is_planted)
{
    CUstream one = stream_make(), two = stream_make();
    CUdeviceptr block = 0, copy = block_make(4096);
    OK(cuda->cuMemAllocAsync(&block, 4096, one));
    OK(cuda->cuMemsetD8Async(block, 1, 4096, one));
    order(one, two);
    OK(cuda->cuMemcpyAsync(copy, block, 4096, two));
    if (!is_planted)
        order(two, one);
    OK(cuda->cuMemFreeAsync(block, one));
    (void)synchronize();
}

/* Virtual memory of the first device. */
enum {
    PAGE = 2 << 20
};
static const CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                             .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAccessDesc read_write = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                           CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

/* The free waits for its own device only. */
static void free_under_peer_copy(bool is_planted)
{
    CUcontext other, popped;
    CUdeviceptr here = block_make(1 << 20), there = 0;
    OK(cuda->cuDevicePrimaryCtxRetain(&other, 1));
    OK(cuda->cuCtxPushCurrent(other));
    CUstream stream = stream_make();
    OK(cuda->cuMemAlloc(&there, 1 << 20));
    OK(cuda->cuMemcpyAsync(there, here, 1 << 20, stream));
    if (!is_planted)
        OK(cuda->cuStreamSynchronize(stream));
    OK(cuda->cuCtxPopCurrent(&popped));
    OK(cuda->cuMemFree(here));
}

static void launch_reverse(bool is_planted)
{
    CUdeviceptr block = block_make(256);
    void *arguments[] = {&block};
    OK(cuda->cuLaunchKernel(function_get(is_planted ? "reverse" : "reverse_well"), 1, 1, 1, 64, 1,
                            1, 0, NULL, arguments, NULL));
    (void)synchronize();
}

static void store_out_of_bounds(bool is_planted)
{
    add(block_make(4000), is_planted ? 1001 : 1000, NULL);
    CHECK_U64(synchronize(), is_planted ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS);
}

static void shuffle_absent_lane(bool is_planted)
{
    CUdeviceptr block = block_make(128);
    int lanes = is_planted ? 16 : 32;
    void *arguments[] = {&block, &lanes};
    OK(cuda->cuLaunchKernel(function_get("shuffle"), 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL));
    (void)synchronize();
}

static void unmap_under_work(bool is_planted)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr base;
    CUstream stream = stream_make();
    OK(cuda->cuMemAddressReserve(&base, PAGE, 0, 0, 0));
    OK(cuda->cuMemCreate(&handle, PAGE, &property, 0));
    OK(cuda->cuMemMap(base, PAGE, 0, handle, 0));
    OK(cuda->cuMemSetAccess(base, PAGE, &read_write, 1));
    add(base, 1000, stream);
    if (!is_planted)
        OK(cuda->cuStreamSynchronize(stream));
    OK(cuda->cuMemUnmap(base, PAGE));
    OK(cuda->cuMemRelease(handle));
    OK(cuda->cuMemAddressFree(base, PAGE));
}

/* One piece of physical memory behind two addresses is one piece of memory. */
static void alias_race(bool is_planted)
{
    CUstream one = stream_make(), two = stream_make();
    CUdeviceptr base = 0;
    CUmemGenericAllocationHandle handle;
    OK(cuda->cuMemAddressReserve(&base, 2 * PAGE, 0, 0, 0));
    OK(cuda->cuMemCreate(&handle, PAGE, &property, 0));
    OK(cuda->cuMemMap(base, PAGE, 0, handle, 0));
    OK(cuda->cuMemMap(base + PAGE, PAGE, 0, handle, 0));
    OK(cuda->cuMemSetAccess(base, 2 * PAGE, &read_write, 1));
    add(base, 1000, one);
    if (!is_planted)
        order(one, two);
    add(base + PAGE, 1000, two);
    OK(synchronize());
    OK(cuda->cuMemUnmap(base, 2 * PAGE));
    OK(cuda->cuMemRelease(handle));
    OK(cuda->cuMemAddressFree(base, 2 * PAGE));
}

/* Page-locked memory is memory too. */
static void locked_memory_race(bool is_planted)
{
    CUstream one = stream_make(), two = stream_make();
    CUdeviceptr block = block_make(64);
    void *host = NULL;
    OK(cuda->cuMemHostAlloc(&host, 64, 0));
    OK(cuda->cuMemcpyAsync((CUdeviceptr)(uintptr_t)host, block, 64, one));
    if (!is_planted)
        order(one, two);
    OK(cuda->cuMemcpyAsync((CUdeviceptr)(uintptr_t)host, block, 64, two));
    OK(synchronize());
}

/* An event that nobody destroys is seen in the count of what is alive. */
static void leaked_event(bool is_planted)
{
    int before = control.live_objects();
    CUevent event = event_make();
    if (!is_planted)
        OK(cuda->cuEventDestroy(event));
    CHECK_U64(control.live_objects() - before, is_planted ? 1 : 0);
}

/* A lost device says so, to everybody and for ever. */
static void lost_device(bool is_planted)
{
    CUdeviceptr block = block_make(64), other = 0;
    control.fail("cuMemAlloc", 1, CUDA_ERROR_ECC_UNCORRECTABLE, 0);
    if (!is_planted)
        control.fail(NULL, 0, 0, 0);
    int expected = is_planted ? CUDA_ERROR_ECC_UNCORRECTABLE : CUDA_SUCCESS;
    CHECK_U64(cuda->cuMemAlloc(&other, 64), expected);
    CHECK_U64(cuda->cuMemsetD8Async(block, 0, 64, NULL), expected);
    CHECK_U64(synchronize(), expected);
    CHECK_U64(cuda->cuMemFree(block), expected);
}

static const struct planted {
    const char *name;
    void (*program)(bool is_planted);
    const char *words[2]; /* that the finding has; NULL: it shows in another way */
} all_planted[] = {
    {"reuse_without_wait", reuse_without_wait, {"H1 race", "kernel add"}},
    {"reuse_while_read", reuse_while_read, {"H1 race", "a copy on stream"}},
    {"free_while_read", free_while_read, {"a free", "a copy"}},
    {"free_under_peer_copy", free_under_peer_copy, {"H3", "a copy"}},
    {"missing_barrier", launch_reverse, {"race", "planted.cu:11"}},
    {"store_out_of_bounds", store_out_of_bounds, {"out of bounds", "planted.cu:5"}},
    {"shuffle_absent_lane", shuffle_absent_lane, {"lane", "planted.cu:24"}},
    {"unmap_under_work", unmap_under_work, {"H3", "cuMemUnmap"}},
    {"alias_race", alias_race, {"H1 race", "kernel add"}},
    {"locked_memory_race", locked_memory_race, {"H1 race", "a copy"}},
    {"leaked_event", leaked_event, {NULL, NULL}},
    {"lost_device", lost_device, {NULL, NULL}},
};

enum {
    PLANTED_COUNT = sizeof all_planted / sizeof *all_planted
};

static int planted_main(const struct planted *planted, bool is_planted)
{
    start();
    planted->program(is_planted);
    if (is_planted && planted->words[0] != NULL) {
        CHECK(control.finding_count() >= 1);
        for (int i = 0; i < 2; i++) {
            CHECK(strstr(control.finding_text(0), planted->words[i]) != NULL);
            if (strstr(control.finding_text(0), planted->words[i]) == NULL)
                fprintf(stderr, "    \"%s\"\n    does not mention \"%s\"\n",
                        control.finding_text(0), planted->words[i]);
        }
    } else {
        CHECK_U64(control.finding_count(), 0);
    }
    return check_failures > 0;
}

/* ---- faults --------------------------------------------------------------------------------- */

/* A task that uses every kind of object and gives everything back, whatever fails. */
static CUresult task(void)
{
    CUstream stream = NULL;
    CUevent event = NULL;
    CUdeviceptr block = 0, ordered = 0;
    void *host = NULL;
    CUresult result = cuda->cuStreamCreateWithPriority(&stream, 0, 0);
    if (result == CUDA_SUCCESS)
        result = cuda->cuEventCreate(&event, 0);
    if (result == CUDA_SUCCESS)
        result = cuda->cuMemAlloc(&block, 1000);
    if (result == CUDA_SUCCESS)
        result = cuda->cuMemAllocAsync(&ordered, 1000, stream);
    if (result == CUDA_SUCCESS)
        result = cuda->cuMemHostAlloc(&host, 1000, 0);
    if (result == CUDA_SUCCESS)
        result = cuda->cuMemsetD8Async(block, 1, 1000, stream);
    if (result == CUDA_SUCCESS)
        result = cuda->cuMemcpyAsync((CUdeviceptr)(uintptr_t)host, block, 1000, stream);
    if (result == CUDA_SUCCESS)
        result = cuda->cuEventRecord(event, stream);
    if (result == CUDA_SUCCESS)
        result = cuda->cuEventSynchronize(event);
    control.fail(NULL, 0, 0, 0); /* the clean-up is not what is tested */
    if (ordered != 0)
        OK(cuda->cuMemFreeAsync(ordered, stream));
    if (stream != NULL)
        OK(cuda->cuStreamSynchronize(stream));
    if (host != NULL)
        OK(cuda->cuMemFreeHost(host));
    OK(cuda->cuMemFree(block));
    if (event != NULL)
        OK(cuda->cuEventDestroy(event));
    if (stream != NULL)
        OK(cuda->cuStreamDestroy(stream));
    return result;
}

/* Raises n until the task succeeds; returns how many calls could fail. */
static int each_call_fails(const char *function, CUresult (*body)(void))
{
    int objects = control.live_objects(), allocations = control.live_allocations();
    for (int nth = 1;; nth++) {
        control.fail(function, nth, CUDA_ERROR_UNKNOWN, 0);
        CUresult result = body();
        control.fail(NULL, 0, 0, 0);
        CHECK_U64(control.live_objects(), objects);
        CHECK_U64(control.live_allocations(), allocations);
        OK(body()); /* and now it works */
        if (result == CUDA_SUCCESS)
            return nth - 1;
        CHECK_U64(result, CUDA_ERROR_UNKNOWN);
    }
}

static void test_each_call_fails(void)
{
    static const char *const names[] = {
#define NAME(name, ...) #name,
        GNI_CUDA_FUNCTIONS(NAME)
#undef NAME
    };
    for (int kind = 0; kind < 3; kind++) {
        control.schedule(kind, 1);
        CHECK_U64(each_call_fails(NULL, task), 9);
    }
    int sum = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        sum += each_call_fails(names[i], task);
    CHECK_U64(sum, 9);
    CHECK_U64(control.finding_count(), 0);
}

static void test_persistent_fault(void)
{
    size_t free_bytes, total;
    control.fail("cuMemGetInfo", 2, CUDA_ERROR_NOT_PERMITTED, 1);
    OK(cuda->cuMemGetInfo(&free_bytes, &total));
    for (int i = 0; i < 3; i++)
        CHECK_U64(cuda->cuMemGetInfo(&free_bytes, &total), CUDA_ERROR_NOT_PERMITTED);
    CHECK_U64(control.fault_count(), 3);
    control.fail(NULL, 0, 0, 0);
    OK(cuda->cuMemGetInfo(&free_bytes, &total));
    CHECK(control.call_count("cuMemGetInfo") >= 5);
}

/* ---- replays -------------------------------------------------------------------------------- */

static uint64_t order_of_seed(uint64_t seed)
{
    CUstream streams[3];
    CUdeviceptr block = block_make(3 * 4096);
    control.schedule(2, seed);
    for (int i = 0; i < 3; i++)
        streams[i] = stream_make();
    for (unsigned i = 0; i < 60; i++)
        OK(cuda->cuMemsetD32Async(block + i % 3 * 4096, i, 100, streams[i % 3]));
    OK(synchronize());
    uint64_t hash = control.order_hash();
    for (int i = 0; i < 3; i++)
        OK(cuda->cuStreamDestroy(streams[i]));
    OK(cuda->cuMemFree(block));
    return hash;
}

static void test_same_seed_same_order(void)
{
    int different = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        CHECK_U64(order_of_seed(seed), order_of_seed(seed));
        different += order_of_seed(seed) != order_of_seed(seed + 1);
    }
    CHECK(different >= 19);
}

/* Lazy runs nothing that nobody asked for, eager everything. */
static void test_schedules(void)
{
    CUstream one = stream_make(), two = stream_make();
    CUdeviceptr block = block_make(64);
    for (int kind = 0; kind < 2; kind++) {
        control.schedule(kind, 0);
        OK(cuda->cuMemsetD8Async(block, 1, 1, one));
        OK(cuda->cuMemsetD8Async(block + 32, 1, 1, two));
        CHECK_U64(control.pending(), kind == 0 ? 0 : 2);
        OK(cuda->cuStreamSynchronize(one));
        CHECK_U64(control.pending(), kind == 0 ? 0 : 1);
        OK(cuda->cuStreamSynchronize(two));
    }
    control.schedule(0, 0);
    OK(cuda->cuStreamDestroy(one));
    OK(cuda->cuStreamDestroy(two));
    OK(cuda->cuMemFree(block));
}

static CUgraphNode node_add(CUgraph graph, const char *name, unsigned threads, void **arguments)
{
    CUgraphNode node = NULL;
    CUDA_KERNEL_NODE_PARAMS_v2 parameters = {.func = function_get(name),
                                             .gridDimX = 1,
                                             .gridDimY = 1,
                                             .gridDimZ = 1,
                                             .blockDimX = threads,
                                             .blockDimY = 1,
                                             .blockDimZ = 1,
                                             .kernelParams = arguments};
    OK(cuda->cuGraphAddKernelNode(&node, graph, NULL, 0, &parameters));
    return node;
}

/* Kernels of a graph that do not wait for each other are not in their order by luck, unless the schedule is eager. */
static void test_graphs(void)
{
    for (int kind = 0; kind < 3; kind++)
        for (int is_ordered = 0; is_ordered < 2; is_ordered++) {
            CUstream stream = stream_make();
            CUdeviceptr block = block_make(64 * sizeof(int));
            CUgraph graph = NULL;
            CUgraphExec exec = NULL;
            int count = 1, value = 5, found[64] = {0};
            control.schedule(kind, 1);
            OK(cuda->cuGraphCreate(&graph, 0));
            CUgraphNode add = node_add(graph, "add", 1, (void *[]){&block, &count, &value});
            CUgraphNode turn = node_add(graph, "reverse_well", 64, (void *[]){&block});
            if (is_ordered)
                OK(cuda->cuGraphAddDependencies(graph, &add, &turn, NULL, 1));
            OK(cuda->cuGraphInstantiateWithFlags(&exec, graph, 0));
            OK(cuda->cuGraphLaunch(exec, stream));
            OK(cuda->cuStreamSynchronize(stream));
            OK(cuda->cuMemcpyAsync((CUdeviceptr)(uintptr_t)found, block, sizeof found, stream));
            OK(cuda->cuStreamSynchronize(stream));
            CHECK_U64(found[is_ordered || kind == 0 ? 63 : 0], 5);
            OK(cuda->cuGraphExecDestroy(exec));
            OK(cuda->cuGraphDestroy(graph));
            OK(cuda->cuStreamDestroy(stream));
            OK(cuda->cuMemFree(block));
        }
    control.schedule(0, 0);
}

static void test_memory_is_bounded(void)
{
    size_t free_bytes, total;
    CUdeviceptr block;
    CHECK(control.memory(8 << 20));
    OK(cuda->cuMemGetInfo(&free_bytes, &total));
    CHECK_U64(total, 8 << 20);
    CHECK_U64(cuda->cuMemAlloc(&block, 9 << 20), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuda->cuMemAlloc(&block, 7 << 20));
    CHECK(!control.memory(6 << 20)); /* more is in use */
    OK(cuda->cuMemFree(block));
    CHECK(control.memory((size_t)1 << 30));
}

/* More streams than there is room for are an error and a finding, and room comes back with them. */
static void test_streams_are_bounded(void)
{
    enum {
        MOST = 8191 -
               64, /* the tests before have some places, which are seen by the host only later */
        TRIED = 10000,
    };
    static CUstream streams[TRIED];
    for (int round = 0; round < 2; round++) {
        int count = 0;
        CUresult result = CUDA_SUCCESS;
        while (count < TRIED && result == CUDA_SUCCESS) {
            result = cuda->cuStreamCreateWithPriority(&streams[count], CU_STREAM_NON_BLOCKING, 0);
            count += result == CUDA_SUCCESS;
        }
        CHECK_U64(result, CUDA_ERROR_OUT_OF_MEMORY);
        CHECK(count >= MOST && count < TRIED);
        CHECK_U64(control.finding_count(), 1);
        CHECK(strstr(control.finding_text(0), "too many streams") != NULL);
        control.reset_findings();
        OK(cuda->cuStreamQuery(streams[count - 1]));
        while (count > 0)
            OK(cuda->cuStreamDestroy(streams[--count]));
        OK(cuda->cuCtxSynchronize());
    }
}

/* ---- other drivers, each in a child --------------------------------------------------------- */

static int refused_main(void)
{
    const struct gni_cuda_driver *driver;
    CHECK_STATUS(gni_cuda_driver_open(&driver), GN_ERROR_UNAVAILABLE);
    printf("%s\n", gn_error_detail());
    return check_failures > 0;
}

static int old_main(void)
{
    const struct gni_cuda_driver *driver;
    CHECK_OK(gni_cuda_driver_open(&driver));
    CHECK(driver->version == 11040 && driver->functions.cuStreamGetId == NULL);
    CHECK(driver->functions.cuMemCreate != NULL);
    return check_failures > 0;
}

static int without_pools_main(void)
{
    const struct gni_cuda_driver *driver;
    CHECK_OK(gni_cuda_driver_open(&driver));
    CHECK(driver->functions.cuMemAllocAsync == NULL && driver->functions.cuMemCreate != NULL);
    return check_failures > 0;
}

/* H5, on demand: what is destroyed with work pending. */
static int strict_main(void)
{
    start();
    control.schedule(1, 1);
    CUstream stream = stream_make();
    CUevent event = event_make();
    CUdeviceptr block = block_make(64);
    OK(synchronize());
    CHECK_U64(control.finding_count(), 0);
    OK(cuda->cuMemsetD8Async(block, 1, 64, stream));
    OK(cuda->cuEventRecord(event, stream));
    OK(cuda->cuEventDestroy(event));
    OK(cuda->cuStreamDestroy(stream));
    CHECK_U64(control.finding_count(), 2);
    CHECK(strstr(control.finding_text(0), "H5: an event") != NULL);
    CHECK(strstr(control.finding_text(1), "H5: stream") != NULL);
    OK(synchronize());
    return check_failures > 0;
}

/* Compiles and loads a kernel; the first failure of either library. */
static int kernel_task(const struct gni_nvrtc_functions *functions)
{
    nvrtcProgram program;
    size_t nbytes = 0;
    CUmodule loaded = NULL;
    const char *text = "extern \"C\" __global__ void nothing(void) {}";
    int result = (int)functions->nvrtcCreateProgram(&program, text, "n.cu", 0, NULL, NULL);
    if (result != 0)
        return result;
    char *image = NULL;
    result = (int)functions->nvrtcCompileProgram(program, 0, NULL);
    if (result == 0)
        result = (int)functions->nvrtcGetCUBINSize(program, &nbytes);
    if (result == 0) {
        image = calloc(1, nbytes + 1);
        result = (int)functions->nvrtcGetCUBIN(program, image);
    }
    if (result == 0)
        result = (int)cuda->cuModuleLoadData(&loaded, image);
    if (result == 0)
        result = (int)cuda->cuModuleUnload(loaded);
    free(image);
    CHECK(functions->nvrtcDestroyProgram(&program) == NVRTC_SUCCESS);
    return result;
}

/* NVRTC and the loading of modules fail as ordered, leak nothing, and work again. */
static int nvrtc_faults_main(void)
{
    static const char *const functions[] = {"nvrtcCreateProgram", "nvrtcCompileProgram",
                                            "nvrtcGetCUBINSize", "nvrtcGetCUBIN",
                                            "cuModuleLoadData"};
    const struct gni_nvrtc *nvrtc;
    start();
    CHECK_OK(gni_nvrtc_open(&nvrtc));
    int before = control.live_objects();
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        control.fail(functions[i], 1, 6, 0);
        CHECK_U64(kernel_task(&nvrtc->functions), 6);
        CHECK_U64(control.fault_count(), 1);
        CHECK_U64(control.live_objects(), before);
        CHECK_U64(kernel_task(&nvrtc->functions), 0);
    }
    return check_failures > 0;
}

static const struct other {
    const char *name, *variable, *value;
    int (*main)(void);
} others[] = {
    {"too_old", "SIM_GPU_VERSION", "10020", refused_main},
    {"old", "SIM_GPU_VERSION", "11040", old_main},
    {"incomplete", "SIM_GPU_MISSING", "cuMemAlloc", refused_main},
    {"without_pools", "SIM_GPU_MISSING", "cuMemAllocAsync,cuMemFreeAsync", without_pools_main},
    {"no_device", "SIM_GPU_DEVICES", "0", refused_main},
    {"strict", "SIM_GPU_STRICT", "on", strict_main},
    {"nvrtc_faults", "SIM_GPU_SEED", "1", nvrtc_faults_main},
};

enum {
    OTHER_COUNT = sizeof others / sizeof *others
};

/* ---- children ------------------------------------------------------------------------------- */

static int child_main(char **argv)
{
    bool is_planted = strcmp(argv[2], "planted") == 0;
    for (int i = 0; i < PLANTED_COUNT; i++)
        if (strcmp(argv[1], all_planted[i].name) == 0)
            return planted_main(&all_planted[i], is_planted);
    for (int i = 0; i < OTHER_COUNT; i++)
        if (strcmp(argv[1], others[i].name) == 0)
            return others[i].main();
    return 2;
}

static void child_run(const char *name, const char *how)
{
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        (void)execl("/proc/self/exe", "test_sim", name, how, (char *)NULL);
        _exit(127);
    }
    bool is_well = child > 0 && waitpid(child, &status, 0) == child && status == 0;
    CHECK(is_well);
    if (!is_well)
        fprintf(stderr, "    %s, %s, schedule %s, seed %s: status %d\n", name, how,
                getenv("SIM_GPU_SCHEDULE"), getenv("SIM_GPU_SEED"), status);
}

static const char *const schedules[][2] = {
    {"eager", "1"}, {"lazy", "1"}, {"random", "1"}, {"random", "2"}, {"random", "3"}};

static void test_planted_bugs(void)
{
    for (size_t s = 0; s < sizeof schedules / sizeof *schedules; s++) {
        (void)setenv("SIM_GPU_SCHEDULE", schedules[s][0], 1);
        (void)setenv("SIM_GPU_SEED", schedules[s][1], 1);
        for (int i = 0; i < PLANTED_COUNT; i++) {
            child_run(all_planted[i].name, "planted");
            child_run(all_planted[i].name, "fixed");
        }
    }
    (void)setenv("SIM_GPU_SCHEDULE", "eager", 1);
}

static void test_other_drivers(void)
{
    for (int i = 0; i < OTHER_COUNT; i++) {
        const char *before = getenv(others[i].variable);
        char kept[64];
        (void)snprintf(kept, sizeof kept, "%s", before != NULL ? before : "");
        (void)setenv(others[i].variable, others[i].value, 1);
        child_run(others[i].name, "-");
        if (before != NULL)
            (void)setenv(others[i].variable, kept, 1);
        else
            (void)unsetenv(others[i].variable);
    }
    (void)setenv("SIM_GPU_DELAY_US", "100", 1); /* a slow driver is slow, and nothing else */
    child_run("reuse_without_wait", "planted");
    (void)unsetenv("SIM_GPU_DELAY_US");
}

int main(int argc, char **argv)
{
    (void)setenv("SIM_GPU_DEVICES",
                 getenv("SIM_GPU_DEVICES") != NULL ? getenv("SIM_GPU_DEVICES") : "2", 1);
    if (getenv("SIM_GPU_FINDINGS") == NULL)
        (void)setenv("SIM_GPU_FINDINGS", "silent", 1);
    if (argc > 2)
        return child_main(argv);
    RUN(test_planted_bugs);
    RUN(test_other_drivers);
    start();
    RUN(test_each_call_fails);
    RUN(test_persistent_fault);
    RUN(test_same_seed_same_order);
    RUN(test_schedules);
    RUN(test_graphs);
    RUN(test_memory_is_bounded);
    RUN(test_streams_are_bounded);
    CHECK_U64(control.finding_count(), 0);
    return check_result();
}
