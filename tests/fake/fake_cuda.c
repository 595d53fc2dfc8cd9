/*
 * fake_cuda.c: a small stand-in for libcuda.so.1 that works at once and on host memory.
 *
 * It exports every function of GNI_CUDA_FUNCTIONS and keeps the driver's rules as far as a caller
 * can break them: handles must be alive, calls need a current context, memory must be mapped and
 * accessible, sizes must be multiples of the granularity. What it does not know it refuses.
 *
 *   arena       addresses without any access rights: a device address is one of these, so that a
 *               host that touches device memory crashes, as it does with a GPU
 *   range       a piece of the arena: an allocation with bytes behind it, or a reservation
 *   physical    bytes without an address; a mapping puts them at one or several addresses
 *   context     each device has one, the primary; a thread has a stack of them
 *
 * Rules:
 *   F1  one mutex guards everything but the thread-local stack of contexts;
 *   F2  every function starts with DRIVER_CALL, which counts, injects faults, and ends the process
 *       if the call must not be: in a child of the process that called cuInit(), or after the exit
 *       handler that cuInit() registered;
 *   F3  fresh memory is filled with garbage, since nobody may rely on zeros.
 *
 * This file has the frame, devices and contexts; memory is in fake_memory.c, streams, events and
 * kernels in fake_stream.c.
 *
 * Variants for older drivers are built from the same files: FAKE_CUDA_OLD has no cuGetProcAddress()
 * and lacks newer functions; FAKE_CUDA_MIDDLE has only the first cuGetProcAddress().
 */
#include "fake_inside.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef FAKE_CUDA_DEFAULT_VERSION
#define FAKE_CUDA_DEFAULT_VERSION 13000
#endif

enum {
    STACK_MAX = 16,
    PRIORITY_LEAST = 0,
    PRIORITY_GREATEST = -5,
};

struct fake_knobs knobs;
struct object *objects[OBJECT_KIND_COUNT];
struct CUctx_st contexts[DEVICES_MAX];
unsigned long long last_id;

static pthread_mutex_t fake_mutex = PTHREAD_MUTEX_INITIALIZER;
static pid_t init_process; /* that called cuInit(); 0: none did */
static bool is_exited;

static _Thread_local CUcontext stack[STACK_MAX];
static _Thread_local int stack_depth;

static const struct {
    const char *name;
    int version;
    void *function;
} functions[] = {
#define FUNCTION(name, symbol, version, need, arguments, lost) {#name, version, (void *)name},
    GNI_CUDA_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

static long call_counts[COUNT_OF(functions)];

static struct {
    const char *function; /* one of the table's names; NULL: any */
    long countdown;       /* calls until it strikes, counting that one; 0: never */
    CUresult result;
    bool is_persistent;
    int count;
} fault;

static long long knob_read(const char *name, long long standard)
{
    const char *text = getenv(name);
    return text != NULL ? atoll(text) : standard;
}

__attribute__((constructor)) static void fake_start(void)
{
    knobs.devices = (int)knob_read("FAKE_CUDA_DEVICES", 2);
    knobs.memory = (size_t)knob_read("FAKE_CUDA_MEMORY", (long long)(64 * MIB));
    knobs.version = (int)knob_read("FAKE_CUDA_VERSION", FAKE_CUDA_DEFAULT_VERSION);
    knobs.init_result = (int)knob_read("FAKE_CUDA_INIT_RESULT", CUDA_SUCCESS);
    knobs.delay_us = (unsigned)knob_read("FAKE_CUDA_DELAY_US", 0);
    knobs.missing = getenv("FAKE_CUDA_MISSING");
    knobs.is_forking = knob_read("FAKE_CUDA_FORKS", 0) != 0;
    for (int i = 0; i < DEVICES_MAX; i++)
        contexts[i].device = i;
}

__attribute__((destructor)) static void fake_end(void)
{
    is_exited = true;
}

/* ---- the frame around every call: F2 -------------------------------------------------------- */

__attribute__((noreturn)) static void die(const char *function, const char *reason, int code)
{
    fprintf(stderr, "fake driver: %s was called %s\n", function, reason);
    _exit(code);
}

static void call_check_process(const char *function)
{
    pid_t process = __atomic_load_n(&init_process, __ATOMIC_ACQUIRE);
    if (process != 0 && process != getpid())
        die(function, "in a child of the process that started the driver", FAKE_EXIT_FORKED);
    if (__atomic_load_n(&is_exited, __ATOMIC_ACQUIRE))
        die(function, "after the driver's exit handler", FAKE_EXIT_LATE);
}

static bool is_lookup(const char *function)
{
    return strncmp(function, "cuGetError", 10) == 0;
}

static CUresult fault_take(const char *function)
{
    bool is_meant =
        fault.function != NULL ? strcmp(fault.function, function) == 0 : !is_lookup(function);
    if (fault.countdown == 0 || !is_meant)
        return CUDA_SUCCESS;
    if (fault.countdown > 1) {
        fault.countdown--;
        return CUDA_SUCCESS;
    }
    fault.countdown = fault.is_persistent ? 1 : 0;
    fault.count++;
    return fault.result;
}

static CUresult context_check(void)
{
    if (stack_depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUcontext context = stack[stack_depth - 1];
    if (context->retain_count == 0)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return context->lost;
}

struct call call_begin(const char *function, int *place, enum call_need need)
{
    call_check_process(function);
    if (knobs.delay_us > 0)
        usleep(knobs.delay_us);
    pthread_mutex_lock(&fake_mutex);
    for (size_t i = 0; *place < 0; i++)
        if (strcmp(functions[i].name, function) == 0)
            *place = (int)i;
    call_counts[*place]++;
    struct call call = {.result = fault_take(function)};
    if (call.result == CUDA_SUCCESS && need != NEED_NOTHING && init_process == 0)
        call.result = CUDA_ERROR_NOT_INITIALIZED;
    if (call.result == CUDA_SUCCESS && need == NEED_CONTEXT)
        call.result = context_check();
    return call;
}

void call_end(struct call *call)
{
    (void)call;
    pthread_mutex_unlock(&fake_mutex);
}

/* ---- objects -------------------------------------------------------------------------------- */

CUcontext context_current(void)
{
    return stack[stack_depth - 1];
}

struct object *object_make(CUdevice device)
{
    struct object *made = calloc(1, sizeof *made);
    if (made == NULL)
        abort();
    made->device = device;
    return made;
}

struct object *object_add(enum object_kind kind, CUdevice device)
{
    struct object *made = object_make(device);
    made->next = objects[kind];
    objects[kind] = made;
    return made;
}

struct object *object_find(enum object_kind kind, const void *handle)
{
    struct object *object = objects[kind];
    while (object != NULL && (void *)object != handle)
        object = object->next;
    return object;
}

struct object *object_at(enum object_kind kind, uint64_t address)
{
    struct object *object = objects[kind];
    while (object != NULL && address - object->address >= object->nbytes)
        object = object->next;
    return object;
}

void object_remove(enum object_kind kind, struct object *object)
{
    struct object **link = &objects[kind];
    while (*link != object)
        link = &(*link)->next;
    *link = object->next;
    free(object);
}

/* ---- the driver ----------------------------------------------------------------------------- */

/* As a driver does that starts a helper program: the child ends at once. */
void driver_fork(void)
{
    pid_t child = knobs.is_forking ? fork() : -1;
    if (child == 0)
        _exit(0);
    if (child > 0)
        (void)waitpid(child, NULL, 0);
}

CUresult cuInit(unsigned int flags)
{
    driver_fork(); /* before the lock: a real driver holds none meanwhile */
    DRIVER_CALL(NEED_NOTHING);
    REQUIRE(flags == 0, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(knobs.init_result == CUDA_SUCCESS, (CUresult)knobs.init_result);
    if (init_process == 0) {
        arena_open();
        atexit(fake_end); /* the real driver registers a handler here, too */
        __atomic_store_n(&init_process, getpid(), __ATOMIC_RELEASE);
    }
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    DRIVER_CALL(NEED_NOTHING);
    *version = knobs.version;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    DRIVER_CALL(NEED_NOTHING);
#define NAME(error)     \
    case error:         \
        *name = #error; \
        return CUDA_SUCCESS
    switch (error) {
        NAME(CUDA_SUCCESS);
        NAME(CUDA_ERROR_INVALID_VALUE);
        NAME(CUDA_ERROR_OUT_OF_MEMORY);
        NAME(CUDA_ERROR_NOT_INITIALIZED);
        NAME(CUDA_ERROR_DEINITIALIZED);
        NAME(CUDA_ERROR_STUB_LIBRARY);
        NAME(CUDA_ERROR_NO_DEVICE);
        NAME(CUDA_ERROR_INVALID_DEVICE);
        NAME(CUDA_ERROR_INVALID_IMAGE);
        NAME(CUDA_ERROR_INVALID_CONTEXT);
        NAME(CUDA_ERROR_ECC_UNCORRECTABLE);
        NAME(CUDA_ERROR_NVLINK_UNCORRECTABLE);
        NAME(CUDA_ERROR_CONTAINED);
        NAME(CUDA_ERROR_INVALID_HANDLE);
        NAME(CUDA_ERROR_NOT_FOUND);
        NAME(CUDA_ERROR_ILLEGAL_ADDRESS);
        NAME(CUDA_ERROR_LAUNCH_TIMEOUT);
        NAME(CUDA_ERROR_CONTEXT_IS_DESTROYED);
        NAME(CUDA_ERROR_ASSERT);
        NAME(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
        NAME(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
        NAME(CUDA_ERROR_HARDWARE_STACK_ERROR);
        NAME(CUDA_ERROR_ILLEGAL_INSTRUCTION);
        NAME(CUDA_ERROR_MISALIGNED_ADDRESS);
        NAME(CUDA_ERROR_INVALID_ADDRESS_SPACE);
        NAME(CUDA_ERROR_INVALID_PC);
        NAME(CUDA_ERROR_LAUNCH_FAILED);
        NAME(CUDA_ERROR_TENSOR_MEMORY_LEAK);
        NAME(CUDA_ERROR_NOT_SUPPORTED);
        NAME(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
        NAME(CUDA_ERROR_MPS_CLIENT_TERMINATED);
        NAME(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        NAME(CUDA_ERROR_EXTERNAL_DEVICE);
        NAME(CUDA_ERROR_UNKNOWN);
    default:
        return CUDA_ERROR_INVALID_VALUE; /* and the name stays as it was, as in the driver */
    }
#undef NAME
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    DRIVER_CALL(NEED_NOTHING);
    *text = error == CUDA_SUCCESS ? "no error" : "a text of the stand-in";
    return CUDA_SUCCESS;
}

/* ---- devices -------------------------------------------------------------------------------- */

CUresult cuDeviceGetCount(int *count)
{
    DRIVER_CALL(NEED_INIT);
    *count = knobs.devices;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    DRIVER_CALL(NEED_INIT);
    REQUIRE_DEVICE(ordinal);
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int capacity, CUdevice device)
{
    DRIVER_CALL(NEED_INIT);
    REQUIRE_DEVICE(device);
    (void)snprintf(name, (size_t)capacity, "Fake %d", device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *nbytes, CUdevice device)
{
    DRIVER_CALL(NEED_INIT);
    REQUIRE_DEVICE(device);
    *nbytes = knobs.memory;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    static const struct {
        CUdevice_attribute attribute;
        int value;
    } values[] = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, THREADS_PER_BLOCK_MAX},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, SHARED_BYTES},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, SHARED_BYTES_OPTIN},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 228 * 1024},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 50 << 20},
        {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
        {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2619000},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
        {CU_DEVICE_ATTRIBUTE_INTEGRATED, 0},
        {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    };
    DRIVER_CALL(NEED_INIT);
    REQUIRE_DEVICE(device);
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        if (values[i].attribute == attribute) {
            *value = values[i].value;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    DRIVER_CALL(NEED_INIT);
    REQUIRE_DEVICE(device);
    for (int i = 0; i < 16; i++)
        uuid->bytes[i] = (char)(0xF0 - 16 * device + i);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *bus_id, int capacity, CUdevice device)
{
    DRIVER_CALL(NEED_INIT);
    REQUIRE_DEVICE(device);
    (void)snprintf(bus_id, (size_t)capacity, "0000:%02x:00.0", (unsigned)device + 1);
    return CUDA_SUCCESS;
}

/* All reach each other, and none itself. */
CUresult cuDeviceCanAccessPeer(int *can_access, CUdevice device, CUdevice peer)
{
    DRIVER_CALL(NEED_INIT);
    REQUIRE_DEVICE(device);
    REQUIRE_DEVICE(peer);
    *can_access = device != peer;
    return CUDA_SUCCESS;
}

/* ---- contexts ------------------------------------------------------------------------------- */

/* Everything that lives in a context goes with it; virtual memory does not live in one. */
static void context_destroy(CUcontext context)
{
    for (int kind = OBJECT_STREAM; kind <= OBJECT_RANGE; kind++) {
        for (struct object *object = objects[kind], *next; object != NULL; object = next) {
            next = object->next;
            if (object->device != context->device)
                continue;
            if (kind != OBJECT_RANGE)
                object_remove((enum object_kind)kind, object);
            else if (object->bytes != NULL)
                memory_drop(object);
        }
    }
    context->lost = CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    driver_fork(); /* before the lock: a real driver holds none meanwhile */
    DRIVER_CALL(NEED_INIT);
    REQUIRE_DEVICE(device);
    if (contexts[device].retain_count++ == 0)
        contexts[device].default_stream_id = ++last_id;
    *context = &contexts[device];
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    DRIVER_CALL(NEED_INIT);
    REQUIRE_DEVICE(device);
    REQUIRE(contexts[device].retain_count > 0, CUDA_ERROR_INVALID_CONTEXT);
    if (--contexts[device].retain_count == 0)
        context_destroy(&contexts[device]);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    DRIVER_CALL(NEED_INIT);
    *context = stack_depth > 0 ? context_current() : NULL;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    DRIVER_CALL(NEED_INIT);
    REQUIRE(context >= contexts && context < contexts + DEVICES_MAX, CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(context->retain_count > 0, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    if (stack_depth == STACK_MAX) /* nobody needs that many: somebody forgets to pop */
        abort();
    stack[stack_depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
    DRIVER_CALL(NEED_INIT);
    REQUIRE(stack_depth > 0, CUDA_ERROR_INVALID_CONTEXT);
    *context = stack[--stack_depth];
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    DRIVER_CALL(NEED_CONTEXT);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    DRIVER_CALL(NEED_CONTEXT);
    *least = PRIORITY_LEAST;
    *greatest = PRIORITY_GREATEST;
    return CUDA_SUCCESS;
}

/* ---- how functions are asked for ------------------------------------------------------------ */

#ifndef FAKE_CUDA_OLD
static bool list_has(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return false;
}

static CUresult function_find(const char *symbol, void **function, int version, cuuint64_t flags)
{
    call_check_process("cuGetProcAddress");
    if (flags != CU_GET_PROC_ADDRESS_LEGACY_STREAM || version > knobs.version)
        return CUDA_ERROR_INVALID_VALUE;
    *function = NULL;
    for (size_t i = 0; i < COUNT_OF(functions); i++)
        if (strcmp(functions[i].name, symbol) == 0 && version >= functions[i].version &&
            !list_has(knobs.missing, symbol))
            *function = functions[i].function;
    return *function != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuGetProcAddress(const char *symbol, void **function, int cuda_version,
                                 cuuint64_t flags);
CUresult cuGetProcAddress(const char *symbol, void **function, int cuda_version, cuuint64_t flags)
{
    return function_find(symbol, function, cuda_version, flags);
}
#endif

#if !defined(FAKE_CUDA_OLD) && !defined(FAKE_CUDA_MIDDLE)
EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **function, int cuda_version,
                                    cuuint64_t flags, CUdriverProcAddressQueryResult *status);
CUresult cuGetProcAddress_v2(const char *symbol, void **function, int cuda_version,
                             cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
    (void)function_find(symbol, function, cuda_version, flags);
    *status =
        *function != NULL ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS; /* the reason is in the status */
}
#endif

/* ---- control: fake_cuda.h ------------------------------------------------------------------- */

#define CONTROL(result, name, arguments) EXPORT result fake_##name arguments;
FAKE_CONTROLS(CONTROL)
#undef CONTROL

static const char *function_name_find(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(functions); i++)
        if (strcmp(functions[i].name, name) == 0)
            return functions[i].name;
    fprintf(stderr, "fake driver: there is no function %s\n", name);
    abort();
}

void fake_fail(const char *function, int nth, int result, int is_persistent)
{
    pthread_mutex_lock(&fake_mutex);
    fault.function = function != NULL ? function_name_find(function) : NULL;
    fault.countdown = nth;
    fault.result = (CUresult)result;
    fault.is_persistent = is_persistent != 0;
    fault.count = 0;
    pthread_mutex_unlock(&fake_mutex);
}

int fake_fault_count(void)
{
    pthread_mutex_lock(&fake_mutex);
    int count = fault.count;
    pthread_mutex_unlock(&fake_mutex);
    return count;
}

long fake_call_count(const char *function)
{
    long count = 0;
    pthread_mutex_lock(&fake_mutex);
    for (size_t i = 0; i < COUNT_OF(functions); i++)
        if (function != NULL ? strcmp(functions[i].name, function) == 0
                             : !is_lookup(functions[i].name))
            count += call_counts[i];
    pthread_mutex_unlock(&fake_mutex);
    return count;
}

static int objects_count(enum object_kind first, enum object_kind last)
{
    int count = 0;
    pthread_mutex_lock(&fake_mutex);
    for (int kind = (int)first; kind <= (int)last; kind++)
        for (struct object *object = objects[kind]; object != NULL; object = object->next)
            count++;
    pthread_mutex_unlock(&fake_mutex);
    return count;
}

int fake_live_allocations(void)
{
    return objects_count(OBJECT_RANGE, OBJECT_HOST);
}

int fake_live_objects(void)
{
    return objects_count(OBJECT_STREAM, OBJECT_MODULE);
}

int fake_is_active(int device)
{
    pthread_mutex_lock(&fake_mutex);
    int is_active = contexts[device].retain_count > 0;
    pthread_mutex_unlock(&fake_mutex);
    return is_active;
}

int fake_stream_flags(void *stream)
{
    pthread_mutex_lock(&fake_mutex);
    struct object *object = object_find(OBJECT_STREAM, stream);
    int flags = object != NULL ? (int)object->flags : 0;
    pthread_mutex_unlock(&fake_mutex);
    return flags;
}

int fake_context_depth(void)
{
    return stack_depth;
}

int fake_capture(void *stream, int status)
{
    pthread_mutex_lock(&fake_mutex);
    struct object *object = object_find(OBJECT_STREAM, stream);
    if (object != NULL && status >= 0)
        object->capture = (CUstreamCaptureStatus)status;
    int now = object != NULL ? (int)object->capture : -1;
    pthread_mutex_unlock(&fake_mutex);
    return now;
}
