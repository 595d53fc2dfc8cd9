/*
 * test_conformance.c: runs the programs of conformance.h on the driver that GENESIS_CUDA_DRIVER names,
 * and counts which functions they use.
 *
 *     test_conformance             all of them
 *     test_conformance PROGRAM     this one, in this process
 *
 * A program that may lose the context runs in a process of its own, which is this program again with
 * its name, started before this process has touched the driver. Every function of the two tables must
 * succeed in one program and fail in one. Exits with 77 where there is no driver.
 */
#include "conformance.h"

#include "check.h"

#include "control.h"
#include "device/cuda/driver.h"
#include "device/cuda/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct conformance conformance;

static const struct conformance_program *const lists[] = {
    conformance_driver, conformance_memory,  conformance_virtual, conformance_stream,
    conformance_kernel, conformance_capture, conformance_nvrtc,
};

static const char *const call_names[] = {
#define NAME(name, ...) #name,
#define NAME_NVRTC(result, name, ...) #name,
    GNI_CUDA_FUNCTIONS(NAME) GNI_NVRTC_FUNCTIONS(NAME_NVRTC)
#undef NAME
#undef NAME_NVRTC
};

static struct {
    int successes, failures;
} calls[CALL_COUNT];

static bool is_failed; /* the program that is running */

/* ---- expectations --------------------------------------------------------------------------- */

bool conformance_check(struct conformance_place place, bool is_true)
{
    if (!is_true) {
        fprintf(stderr, "%s:%d: failed: %s\n", place.file, place.line, place.text);
        __atomic_store_n(&is_failed, true, __ATOMIC_RELAXED);
    }
    return is_true;
}

bool conformance_expect(struct conformance_place place, int result, const int *allowed)
{
    __atomic_fetch_add(result == 0 ? &calls[place.call].successes : &calls[place.call].failures, 1,
                       __ATOMIC_RELAXED);
    for (const int *one = allowed; *one >= 0; one++)
        if (result == *one)
            return true;
    fprintf(stderr, "%s:%d: failed: %s gave %d, and not", place.file, place.line, place.text,
            result);
    for (const int *one = allowed; *one >= 0; one++)
        fprintf(stderr, " %d", *one);
    fprintf(stderr, "\n");
    __atomic_store_n(&is_failed, true, __ATOMIC_RELAXED);
    return false;
}

/* ---- helpers for programs ------------------------------------------------------------------- */

static int *hold_flag; /* page-locked; 1 ends the hold */

void hold_begin(const struct gni_cuda_functions *cuda, CUstream stream)
{
    if (conformance.is_simulated)
        return;
    __atomic_store_n(hold_flag, 0, __ATOMIC_SEQ_CST);
    void *arguments[] = {&hold_flag};
    CU(cuLaunchKernel, (conformance.hold, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL),
       CUDA_SUCCESS);
}

void hold_end(void)
{
    if (!conformance.is_simulated)
        __atomic_store_n(hold_flag, 1, __ATOMIC_SEQ_CST);
}

CUstream stream_make(const struct gni_cuda_functions *cuda, unsigned flags)
{
    CUstream stream = NULL;
    CU(cuStreamCreateWithPriority, (&stream, flags, 0), CUDA_SUCCESS);
    return stream;
}

CUevent event_make(const struct gni_cuda_functions *cuda)
{
    CUevent event = NULL;
    CU(cuEventCreate, (&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    return event;
}

CUdeviceptr ints_make(const struct gni_cuda_functions *cuda, size_t count, int value)
{
    CUdeviceptr pointer = 0;
    CU(cuMemAlloc, (&pointer, count * sizeof(int)), CUDA_SUCCESS);
    CU(cuMemsetD32Async, (pointer, (unsigned)value, count, NULL), CUDA_SUCCESS);
    CU(cuStreamSynchronize, (NULL), CUDA_SUCCESS);
    return pointer;
}

int int_read(const struct gni_cuda_functions *cuda, CUdeviceptr pointer, CUstream stream)
{
    int value = -12345;
    CU(cuMemcpyAsync, ((CUdeviceptr)(uintptr_t)&value, pointer, sizeof value, stream),
       CUDA_SUCCESS);
    CU(cuStreamSynchronize, (stream), CUDA_SUCCESS);
    return value;
}

void add_launch(const struct gni_cuda_functions *cuda, CUdeviceptr p, int count, int value,
                CUstream stream)
{
    void *arguments[] = {&p, &count, &value};
    unsigned blocks = ((unsigned)count + 63) / 64;
    CU(cuLaunchKernel, (conformance.add, blocks, 1, 1, 64, 1, 1, 0, stream, arguments, NULL),
       CUDA_SUCCESS);
}

struct thread {
    const struct gni_cuda_functions *cuda;
    conformance_function *body;
};

static void *thread_main(void *argument)
{
    struct thread *thread = argument;
    const struct gni_cuda_functions *cuda = thread->cuda;
    CU(cuCtxPushCurrent, (conformance.context), CUDA_SUCCESS);
    thread->body(cuda);
    CU(cuCtxPopCurrent, (NULL), CUDA_SUCCESS);
    return NULL;
}

void thread_run(const struct gni_cuda_functions *cuda, conformance_function *body)
{
    struct thread thread = {cuda, body};
    pthread_t made;
    if (EXPECT(pthread_create(&made, NULL, thread_main, &thread) == 0))
        (void)pthread_join(made, NULL);
}

/* ---- the start ------------------------------------------------------------------------------ */

static const char kernels[] =
    "extern \"C\" {\n"
    "__global__ void add(int *p, int count, int value)\n"
    "{\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < count) p[i] += value;\n"
    "}\n"
    "__global__ void put(int *p, long long index, int value) { p[index] = value; }\n"
    "__global__ void __launch_bounds__(64) bounded(int *p, int count, int value)\n"
    "{\n"
    "    if (threadIdx.x == 0 && count > 0) p[0] = value;\n"
    "}\n"
    "__global__ void sums(int *out, int count)\n"
    "{\n"
    "    extern __shared__ int values[];\n"
    "    for (int i = threadIdx.x; i < count; i += blockDim.x) values[i] = i;\n"
    "    __syncthreads();\n"
    "    if (threadIdx.x > 0) return;\n"
    "    int sum = 0;\n"
    "    for (int i = 0; i < count; i++) sum += values[i];\n"
    "    *out = sum;\n"
    "}\n"
    "__global__ void hold(volatile int *flag)\n" /* bounded: a mistake must not hang a machine */
    "{\n"
    "    for (long long i = 0; i < 20000000 && *flag == 0; i++) {}\n"
    "}\n"
    "__global__ void trap() { __trap(); }\n"
    "}\n";

static char *image_make(const struct gni_cuda_functions *cuda)
{
    int major = 0, minor = 0;
    char option[64];
    const char *options[] = {option};
    nvrtcProgram program = NULL;
    size_t nbytes = 0;
    CU(cuDeviceGetAttribute, (&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0),
       CUDA_SUCCESS);
    CU(cuDeviceGetAttribute, (&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0),
       CUDA_SUCCESS);
    (void)snprintf(option, sizeof option, "--gpu-architecture=sm_%d%d", major, minor);
    NVRTC(nvrtcCreateProgram, (&program, kernels, "conformance.cu", 0, NULL, NULL), NVRTC_SUCCESS);
    if (!NVRTC(nvrtcCompileProgram, (program, 1, options), NVRTC_SUCCESS))
        return NULL;
    NVRTC(nvrtcGetCUBINSize, (program, &nbytes), NVRTC_SUCCESS);
    char *image = malloc(nbytes);
    NVRTC(nvrtcGetCUBIN, (program, image), NVRTC_SUCCESS);
    NVRTC(nvrtcDestroyProgram, (&program), NVRTC_SUCCESS);
    return image;
}

static void kernels_load(const struct gni_cuda_functions *cuda)
{
    char *image = image_make(cuda);
    if (image == NULL)
        return;
    NEED(cuModuleLoadData, (&conformance.module, image));
    NEED(cuModuleGetFunction, (&conformance.add, conformance.module, "add"));
    NEED(cuModuleGetFunction, (&conformance.put, conformance.module, "put"));
    NEED(cuModuleGetFunction, (&conformance.sums, conformance.module, "sums"));
    NEED(cuModuleGetFunction, (&conformance.bounded, conformance.module, "bounded"));
    NEED(cuModuleGetFunction, (&conformance.hold, conformance.module, "hold"));
    NEED(cuModuleGetFunction, (&conformance.trap, conformance.module, "trap"));
    NEED(cuMemHostAlloc, ((void **)&hold_flag, sizeof *hold_flag, 0));
    free(image);
}

static const struct gni_cuda_functions *start(void)
{
    const struct gni_cuda_driver *driver;
    const struct gni_nvrtc *nvrtc;
    if (gni_cuda_driver_open(&driver) != GN_OK || gni_nvrtc_open(&nvrtc) != GN_OK) {
        printf("skipped: %s\n", gn_error_detail());
        exit(CHECK_SKIPPED);
    }
    const struct gni_cuda_functions *cuda = &driver->functions;
    char name[100] = "";
    conformance.nvrtc = &nvrtc->functions;
    CU(cuDeviceGetCount, (&conformance.device_count), CUDA_SUCCESS);
    CU(cuDeviceGetName, (name, sizeof name, 0), CUDA_SUCCESS);
    conformance.is_simulated = strstr(name, "simulated") != NULL;
    CU(cuDevicePrimaryCtxRetain, (&conformance.context, 0), CUDA_SUCCESS);
    CU(cuCtxPushCurrent, (conformance.context), CUDA_SUCCESS);
    kernels_load(cuda);
    CHECK(!is_failed);
    return cuda;
}

/* The table of a driver that nobody has started: by symbol, since opening it would start it. */
static const struct gni_cuda_functions *load_unstarted(void)
{
    static struct gni_cuda_functions functions;
    const char *path = getenv("GENESIS_CUDA_DRIVER");
    void *library = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "skipped: %s\n", dlerror());
        exit(CHECK_SKIPPED);
    }
#define LOAD(name, symbol, ...)                            \
    do {                                                   \
        void *address = dlsym(library, symbol);            \
        memcpy(&functions.name, &address, sizeof address); \
    } while (0);
    GNI_CUDA_FUNCTIONS(LOAD)
#undef LOAD
    return &functions;
}

/* ---- running -------------------------------------------------------------------------------- */

static int child_main(const char *name)
{
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (const struct conformance_program *program = lists[i]; program->name; program++) {
            if (strcmp(program->name, name) != 0)
                continue;
            program->function(program->flags & UNSTARTED ? load_unstarted() : start());
            for (int call = 0; call < CALL_COUNT; call++)
                printf("%s %d %d\n", call_names[call], calls[call].successes, calls[call].failures);
            return is_failed;
        }
    }
    fprintf(stderr, "there is no program %s\n", name);
    return 2;
}

/* Adds what a child counted. */
static void counts_read(FILE *file)
{
    char name[64];
    int successes, failures;
    for (int call = 0; fscanf(file, "%63s %d %d", name, &successes, &failures) == 3; call++) {
        if (call < CALL_COUNT && strcmp(name, call_names[call]) == 0) {
            calls[call].successes += successes;
            calls[call].failures += failures;
        }
    }
}

static int child_run(const char *name)
{
    int ends[2], status = -1;
    if (pipe(ends) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)close(ends[0]);
        (void)execl("/proc/self/exe", "test_conformance", name, (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    FILE *file = fdopen(ends[0], "r");
    if (file != NULL) {
        counts_read(file);
        (void)fclose(file);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

static int program_count;

static void programs_run_in_children(void)
{
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (const struct conformance_program *program = lists[i]; program->name; program++) {
            if (!(program->flags & (IN_CHILD | UNSTARTED)))
                continue;
            int code = child_run(program->name);
            if (code == CHECK_SKIPPED)
                exit(CHECK_SKIPPED);
            program_count++;
            CHECK(code == 0);
            printf("%s %s (in a child)\n", code == 0 ? "ok  " : "FAIL", program->name);
        }
    }
}

/* Runs a program; on the simulator it may leave nothing behind and nothing to find. */
static void program_run(const struct conformance_program *program,
                        const struct gni_cuda_functions *cuda, const struct sim_control *control)
{
    bool is_simulated = conformance.is_simulated;
    int objects = is_simulated ? control->live_objects() : 0;
    int allocations = is_simulated ? control->live_allocations() : 0;
    int findings = is_simulated ? control->finding_count() : 0;
    is_failed = false;
    program->function(cuda);
    hold_end();
    CU(cuCtxSynchronize, (), CUDA_SUCCESS);
    if (is_simulated) {
        EXPECT(control->live_objects() == objects);
        EXPECT(control->live_allocations() == allocations);
        EXPECT(control->finding_count() == findings);
        EXPECT(control->context_depth() == 1);
    }
    program_count++;
    CHECK(!is_failed);
    printf("%s %s\n", is_failed ? "FAIL" : "ok  ", program->name);
    fflush(stdout);
}

static void programs_run(const struct gni_cuda_functions *cuda)
{
    const struct gni_cuda_driver *driver;
    struct sim_control control = {.fail = NULL};
    CHECK_OK(gni_cuda_driver_open(&driver));
    if (conformance.is_simulated)
        CHECK(sim_control_load(driver->path, &control));
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (const struct conformance_program *program = lists[i]; program->name; program++) {
            if (program->flags & (IN_CHILD | UNSTARTED))
                continue;
            if (program->flags & TWO_DEVICES && conformance.device_count < 2)
                printf("skip %s: there is one device\n", program->name);
            else
                program_run(program, cuda, &control);
        }
    }
}

/* Functions that cannot fail. */
static bool has_no_error(const char *name)
{
    return strcmp(name, "nvrtcGetErrorString") == 0 || /* it gives a text for every number */
           strcmp(name, "cuThreadExchangeStreamCaptureMode") == 0; /* it takes any number */
}

static void coverage_check(void)
{
    for (int call = 0; call < CALL_COUNT; call++) {
        bool is_covered = calls[call].successes > 0 &&
                          (calls[call].failures > 0 || has_no_error(call_names[call]));
        CHECK(is_covered);
        if (!is_covered)
            fprintf(stderr, "    %s: %d successes, %d failures\n", call_names[call],
                    calls[call].successes, calls[call].failures);
    }
    printf("%d programs, %d functions\n", program_count, (int)CALL_COUNT);
}

int main(int argc, char **argv)
{
    /* Else the first launch of a kernel may load it, and wait for the one that holds a stream. */
    (void)setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    if (argc > 1)
        return child_main(argv[1]);
    programs_run_in_children();
    programs_run(start());
    coverage_check();
    return check_result();
}
