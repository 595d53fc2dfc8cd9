/*
 * driver.c: the simulated driver's start, devices and contexts, and the frame around every call.
 *
 * The frame refuses what a real driver cannot do at all: calls in a forked child and after exit() end
 * the process loudly, so that a test sees them.
 */
#include "sim.h"

#include "control.h"
#include "setting.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct sim sim = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct CUctx_st *stack[SIM_STACK_MAX];
static _Thread_local int stack_depth;

static unsigned delay_us;
static const char *missing = "";

/* ---- start ---------------------------------------------------------------------------------- */

static enum sim_schedule schedule_read(void)
{
    static const enum sim_schedule schedules[] = {SIM_EAGER, SIM_LAZY, SIM_RANDOM};
    int choice = sim_setting_choice("SIM_GPU_SCHEDULE");
    return choice < 0 ? SIM_EAGER : schedules[choice];
}

__attribute__((constructor)) static void sim_start(void)
{
    sim_settings_check();
    sim.device_count = (int)sim_setting_number("SIM_GPU_DEVICES", 1);
    sim.memory_bytes = (size_t)sim_setting_number("SIM_GPU_MEMORY", 1ull << 30);
    sim.version = (int)sim_setting_number("SIM_GPU_VERSION", 13000);
    sim.schedule = schedule_read();
    sim.seed = sim_setting_number("SIM_GPU_SEED", 1);
    sim.random = sim.seed;
    sim.is_strict = sim_setting_choice("SIM_GPU_STRICT") == 1;
    const char *blocking = getenv("CUDA_LAUNCH_BLOCKING");
    sim.is_blocking_launch = blocking != NULL && strtoull(blocking, NULL, 0) != 0;
    delay_us = (unsigned)sim_setting_number("SIM_GPU_DELAY_US", 0);
    if (sim_setting_text("SIM_GPU_MISSING") != NULL)
        missing = sim_setting_text("SIM_GPU_MISSING");
    gni_list_init(&sim.streams);
    gni_list_init(&sim.events);
    gni_list_init(&sim.modules);
    gni_list_init(&sim.graphs);
    gni_list_init(&sim.execs);
    gni_list_init(&sim.physicals);
    for (int i = 0; i < SIM_DEVICES_MAX; i++)
        sim.contexts[i].device = i;
}

__attribute__((destructor)) static void sim_end(void)
{
    __atomic_store_n(&sim.is_exited, true, __ATOMIC_RELEASE);
}

/* ---- the frame ------------------------------------------------------------------------------ */

__attribute__((noreturn)) static void die(const char *function, const char *reason, int code)
{
    fprintf(stderr, "simulated GPU: %s was called %s\n", function, reason);
    _exit(code);
}

void sim_die_without_memory(void)
{
    fprintf(stderr, "simulated GPU: the host has no memory left for the simulator's records\n");
    abort();
}

static void process_check(const char *function)
{
    pid_t process = __atomic_load_n(&sim.process, __ATOMIC_ACQUIRE);
    if (process != 0 && process != getpid())
        die(function, "in a child of the process that started the driver", SIM_EXIT_FORKED);
    if (__atomic_load_n(&sim.is_exited, __ATOMIC_ACQUIRE))
        die(function, "after the driver's exit handler", SIM_EXIT_LATE);
}

static CUresult need_check(struct sim_call *call, enum sim_need need)
{
    if (need == SIM_NEED_NOTHING)
        return CUDA_SUCCESS;
    if (!sim.is_initialized)
        return CUDA_ERROR_NOT_INITIALIZED;
    call->context = stack_depth > 0 ? stack[stack_depth - 1] : NULL;
    if (need == SIM_NEED_INIT)
        return CUDA_SUCCESS;
    if (call->context == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (call->context->retain_count == 0)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return call->context->lost;
}

struct sim_call sim_call_begin(const char *function, enum sim_need need)
{
    struct sim_call call = {.result = CUDA_SUCCESS};
    process_check(function);
    if (delay_us > 0)
        (void)nanosleep(&(struct timespec){.tv_nsec = (long)delay_us * 1000}, NULL);
    pthread_mutex_lock(&sim.mutex);
    call.result = need_check(&call, need);
    CUresult fault = sim_fault_take(function);
    if (fault != CUDA_SUCCESS)
        call.result = fault;
    if (call.result == CUDA_SUCCESS && need == SIM_NEED_CONTEXT)
        sim_nudge();
    if (call.result == CUDA_SUCCESS && need == SIM_NEED_CONTEXT)
        call.result = call.context->lost; /* what ran just now may have lost it */
    return call;
}

void sim_call_end(struct sim_call *call)
{
    (void)call;
    sim_streams_sweep();
    pthread_mutex_unlock(&sim.mutex);
}

void sim_context_lose(struct CUctx_st *context, CUresult result)
{
    if (context->lost == CUDA_SUCCESS)
        context->lost = result;
}

/* ---- finding functions ---------------------------------------------------------------------- */

static const struct {
    const char *name;
    const char *symbol;
    int version;
    void *function;
} functions[] = {
#define FUNCTION(name, symbol, version, need, arguments, lost) \
    {#name, symbol, version, (void *)name},
    GNI_CUDA_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

static bool is_missing(const char *name)
{
    size_t length = strlen(name);
    for (const char *at = missing; *at != '\0';) {
        size_t word = strcspn(at, ",");
        if (word == length && strncmp(at, name, length) == 0)
            return true;
        at += word + (at[word] == ',');
    }
    return false;
}

SIM_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version,
                                        cuuint64_t flags, CUdriverProcAddressQueryResult *status);
SIM_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version,
                                        cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
    (void)flags;
    *function = NULL;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (strcmp(functions[i].name, symbol) != 0 || is_missing(symbol))
            continue;
        if (functions[i].version > version || functions[i].version > sim.version) {
            if (status != NULL)
                *status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
            return CUDA_ERROR_NOT_FOUND;
        }
        *function = functions[i].function;
        if (status != NULL)
            *status = CU_GET_PROC_ADDRESS_SUCCESS;
        return CUDA_SUCCESS;
    }
    if (!is_missing(symbol))
        fprintf(stderr, "simulated GPU: %s is not simulated\n", symbol);
    if (status != NULL)
        *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_ERROR_NOT_FOUND;
}

SIM_EXPORT CUresult cuGetProcAddress(const char *symbol, void **function, int version,
                                     cuuint64_t flags);
SIM_EXPORT CUresult cuGetProcAddress(const char *symbol, void **function, int version,
                                     cuuint64_t flags)
{
    return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}

/* ---- errors --------------------------------------------------------------------------------- */

/* Names, and the texts of those that a user of the simulator is likely to see. */
static const struct {
    CUresult result;
    const char *name, *text;
} results[] = {
#define RESULT(name, text) \
    {                      \
        name, #name, text  \
    }
    RESULT(CUDA_SUCCESS, "no error"),
    RESULT(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    RESULT(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    RESULT(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    RESULT(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    RESULT(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    RESULT(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    RESULT(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    RESULT(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    RESULT(CUDA_ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered"),
    RESULT(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    RESULT(CUDA_ERROR_INVALID_SOURCE, "device kernel image is invalid"),
    RESULT(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
    RESULT(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, "shared object initialization failed"),
    RESULT(CUDA_ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS"),
    RESULT(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    RESULT(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    RESULT(CUDA_ERROR_NOT_READY, "device not ready"),
    RESULT(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    RESULT(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    RESULT(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    RESULT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part or all of the memory is registered"),
    RESULT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "the memory is not registered"),
    RESULT(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    RESULT(CUDA_ERROR_ASSERT, "device-side assert triggered"),
    RESULT(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    RESULT(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    RESULT(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    RESULT(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    RESULT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
           "operation not permitted when stream is capturing"),
    RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
           "operation failed due to a previous error during capture"),
    RESULT(CUDA_ERROR_STREAM_CAPTURE_MERGE, "operation would result in a merge of captures"),
    RESULT(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not ended in the stream it began in"),
    RESULT(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
    RESULT(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
           "dependency created on uncaptured work in another stream"),
    RESULT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
           "operation would make the legacy stream depend on a capturing blocking stream"),
    RESULT(CUDA_ERROR_CAPTURED_EVENT,
           "operation not permitted on an event last recorded in a capturing stream"),
    RESULT(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "capture was begun by another thread"),
    RESULT(CUDA_ERROR_UNKNOWN, "unknown error"),
#undef RESULT
};

CUresult cuGetErrorName(CUresult error, const char **name)
{
    process_check(__func__);
    SIM_REQUIRE(name != NULL, CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        if (results[i].result == error) {
            *name = results[i].name;
            return CUDA_SUCCESS;
        }
    }
    *name = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    process_check(__func__);
    SIM_REQUIRE(text != NULL, CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        if (results[i].result == error) {
            *text = results[i].text;
            return CUDA_SUCCESS;
        }
    }
    *text = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

/* ---- the driver and its devices ------------------------------------------------------------- */

CUresult cuInit(unsigned int flags)
{
    SIM_CALL(SIM_NEED_NOTHING);
    SIM_REQUIRE(flags == 0, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE(sim.device_count > 0, CUDA_ERROR_NO_DEVICE);
    sim.is_initialized = true;
    __atomic_store_n(&sim.process, getpid(), __ATOMIC_RELEASE);
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    SIM_CALL(SIM_NEED_NOTHING);
    SIM_REQUIRE(version != NULL, CUDA_ERROR_INVALID_VALUE);
    *version = sim.version;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    SIM_CALL(SIM_NEED_INIT);
    SIM_REQUIRE(count != NULL, CUDA_ERROR_INVALID_VALUE);
    *count = sim.device_count;
    return CUDA_SUCCESS;
}

#define SIM_REQUIRE_DEVICE(device) \
    SIM_REQUIRE((device) >= 0 && (device) < sim.device_count, CUDA_ERROR_INVALID_DEVICE)

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    SIM_CALL(SIM_NEED_INIT);
    SIM_REQUIRE(device != NULL, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE_DEVICE(ordinal);
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    SIM_CALL(SIM_NEED_INIT);
    SIM_REQUIRE(name != NULL && length > 0, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE_DEVICE(device);
    (void)snprintf(name, (size_t)length, "Genesis simulated GPU");
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *nbytes, CUdevice device)
{
    SIM_CALL(SIM_NEED_INIT);
    SIM_REQUIRE(nbytes != NULL, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE_DEVICE(device);
    *nbytes = sim.memory_bytes;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    SIM_CALL(SIM_NEED_INIT);
    SIM_REQUIRE(uuid != NULL, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE_DEVICE(device);
    memset(uuid, 0, sizeof *uuid);
    memcpy(uuid->bytes, "simulated", 9);
    uuid->bytes[15] = (char)device;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device)
{
    SIM_CALL(SIM_NEED_INIT);
    SIM_REQUIRE(text != NULL && length > 12, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE_DEVICE(device);
    (void)snprintf(text, (size_t)length, "0000:%02x:00.0", (unsigned)device + 1);
    return CUDA_SUCCESS;
}

/* The simulated devices do not reach each other's memory. */
CUresult cuDeviceCanAccessPeer(int *can_access, CUdevice device, CUdevice peer)
{
    SIM_CALL(SIM_NEED_INIT);
    SIM_REQUIRE(can_access != NULL, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE_DEVICE(device);
    SIM_REQUIRE_DEVICE(peer);
    *can_access = 0;
    return CUDA_SUCCESS;
}

static int attribute_value(CUdevice_attribute attribute, CUdevice device)
{
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        return 9;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        return 0;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
        return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
        return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
        return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
        return INT32_MAX;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
        return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
        return 48 * 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        return 227 * 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
        return 228 * 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
        return 65536;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        return 2048;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        return 2;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        return 1 << 20;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        return device + 1;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
        return 1;
    default:
        return 0;
    }
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    SIM_CALL(SIM_NEED_INIT);
    SIM_REQUIRE(value != NULL && attribute > 0 && attribute < 200, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE_DEVICE(device);
    *value = attribute_value(attribute, device);
    return CUDA_SUCCESS;
}

/* ---- contexts ------------------------------------------------------------------------------- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    SIM_CALL(SIM_NEED_INIT);
    SIM_REQUIRE(context != NULL, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE_DEVICE(device);
    struct CUctx_st *own = &sim.contexts[device];
    if (own->legacy == NULL) {
        own->legacy = sim_stream_make(device, CU_STREAM_DEFAULT, 0);
        SIM_REQUIRE(own->legacy != NULL, CUDA_ERROR_OUT_OF_MEMORY);
        own->legacy->is_legacy = own->legacy->is_implicit = true;
        own->legacy->is_blocking = false;
    }
    own->retain_count++;
    *context = own;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    SIM_CALL(SIM_NEED_INIT);
    SIM_REQUIRE_DEVICE(device);
    struct CUctx_st *own = &sim.contexts[device];
    SIM_REQUIRE(own->retain_count > 0, CUDA_ERROR_INVALID_CONTEXT);
    if (own->retain_count == 1) { /* everything that was made in it goes */
        sim_complete_context(device);
        sim_modules_end(device);
        sim_streams_end(device);
        sim_memory_end(device);
    }
    own->retain_count--;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    SIM_CALL(SIM_NEED_INIT);
    SIM_REQUIRE(context != NULL, CUDA_ERROR_INVALID_VALUE);
    *context = call.context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    SIM_CALL(SIM_NEED_INIT);
    SIM_REQUIRE(context >= sim.contexts && context < sim.contexts + sim.device_count,
                CUDA_ERROR_INVALID_CONTEXT);
    SIM_REQUIRE(stack_depth < SIM_STACK_MAX, CUDA_ERROR_INVALID_VALUE);
    stack[stack_depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
    SIM_CALL(SIM_NEED_INIT);
    SIM_REQUIRE(stack_depth > 0, CUDA_ERROR_INVALID_CONTEXT);
    stack_depth--;
    if (context != NULL)
        *context = stack[stack_depth];
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    CUresult refusal = sim_capture_check_context(call.context->device);
    SIM_REQUIRE(refusal == CUDA_SUCCESS, refusal);
    sim_complete_context(call.context->device);
    return call.context->lost;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    if (least != NULL)
        *least = 0;
    if (greatest != NULL)
        *greatest = -5;
    return CUDA_SUCCESS;
}

SIM_EXPORT int sim_control_context_depth(void);
SIM_EXPORT int sim_control_context_depth(void)
{
    return stack_depth;
}
