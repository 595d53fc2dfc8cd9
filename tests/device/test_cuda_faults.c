/*
 * test_cuda_faults.c: what happens when the CUDA driver, or the host's memory, says no.
 *
 * A scenario is a life of some objects. For each driver function the nth call of it fails, for n
 * from 1 until the scenario no longer gets that far. After each failure: the error names the
 * function and the driver's result, nothing has leaked, the calling thread's contexts are as they
 * were, and the same scenario succeeds. Memory comes from the policy direct, where each block is one
 * call of the driver.
 *
 * Results after which a device is lost are tried in children, as the loss is for ever.
 */
#include "cuda_suite.h"
#include "child.h"

#include "base/host.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static const char *const functions[] = {
#define FUNCTION(name, symbol, version, need, arguments, lost) #name,
    GNI_CUDA_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

static gn_memory_manager *manager;

static void devices_close(void)
{
    CHECK_OK(gn_shutdown(NULL));
}

/* ---- how a scenario goes on ----------------------------------------------------------------- */

static struct {
    gn_status status; /* of the first call that failed */
    char detail[1024];
    int faults;     /* how often the fault struck, as it may be cleared on the way */
    bool is_silent; /* it struck where there is nobody to tell: in a void function */
} outcome;

static void outcome_note(gn_status status)
{
    if (status == GN_OK || outcome.status != GN_OK)
        return;
    outcome.status = status;
    (void)snprintf(outcome.detail, sizeof outcome.detail, "%s", gn_error_detail());
}

static void faults_clear(void)
{
    outcome.faults += fake.fault_count();
    fake.fail(NULL, 0, 0, 0);
}

/* The next call, unless one has failed. */
#define STEP(call)                   \
    do {                             \
        if (outcome.status == GN_OK) \
            outcome_note(call);      \
    } while (0)

/* Undoes what was made. A failure is noted, and the second try must succeed. */
#define UNDO(is_made, call)            \
    do {                               \
        if (is_made) {                 \
            gn_status undone = (call); \
            outcome_note(undone);      \
            if (undone != GN_OK) {     \
                faults_clear();        \
                CHECK_OK(call);        \
            }                          \
        }                              \
    } while (0)

#define UNDO_SILENTLY(call)                    \
    do {                                       \
        int undo_faults = fake.fault_count();  \
        call;                                  \
        if (fake.fault_count() != undo_faults) \
            outcome.is_silent = true;          \
    } while (0)

/* ---- scenarios ------------------------------------------------------------------------------ */

static void scenario_open(void)
{
    gn_device *device = NULL;
    STEP(gn_device_get(GN_DEVICE_CUDA, 0, &device));
    CHECK((device == first) == (outcome.status == GN_OK));
    faults_clear();                                   /* they are for the library, not for us */
    CHECK(is_active(0) == (outcome.status == GN_OK)); /* a failed start gives the context back */
}

static void scenario_memory(void)
{
    void *block = NULL, *empty = NULL, *plain = NULL, *ordered = NULL;
    gn_stream *stream = first->default_stream;
    size_t free_bytes, total_bytes;
    STEP(gn_device_get_memory_info(first, &free_bytes, &total_bytes));
    STEP(gn_device_synchronize(first));
    STEP(gn_memory_alloc(manager, 1000, NULL, &block));
    STEP(gn_memory_alloc(manager, 0, NULL, &empty));
    STEP(ops->memory_alloc(first, 1000, &plain));
    STEP(ops->memory_alloc_async(stream, 1000, &ordered));
    UNDO(ordered != NULL, ops->memory_free_async(stream, ordered));
    UNDO(plain != NULL, ops->memory_free(first, plain, 1000));
    UNDO(empty != NULL, gn_memory_free_sized(manager, empty, 0));
    UNDO(block != NULL, gn_memory_free(manager, block));
}

static void scenario_host(void)
{
    static char own[128];
    void *pinned = NULL;
    bool is_registered = false;
    STEP(gn_host_alloc(first, 1000, &pinned));
    STEP(gn_host_register(first, own, sizeof own));
    is_registered = outcome.status == GN_OK;
    UNDO(is_registered, gn_host_unregister(first, own));
    UNDO(pinned != NULL, gn_host_free(first, pinned));
}

static void scenario_streams(void)
{
    gn_stream *stream = NULL, *foreign = NULL, *per_thread = NULL;
    gn_event *start = NULL, *end = NULL;
    bool is_capturing;
    uint64_t id;
    float milliseconds;
    STEP(gn_stream_create(first, GN_STREAM_NON_BLOCKING, -1, &stream));
    STEP(gn_stream_from_handle(first, gn_stream_get_handle(stream), &foreign));
    STEP(gn_stream_from_handle(first, (void *)2, &per_thread));
    STEP(gn_stream_get_id(per_thread, &id));
    STEP(gn_event_create(first, GN_EVENT_TIMING, &start));
    STEP(gn_event_create(first, GN_EVENT_TIMING, &end));
    STEP(gn_event_record(start, stream));
    STEP(gn_stream_wait_event(foreign, start));
    STEP(gn_event_record(end, foreign));
    STEP(gn_stream_query(stream));
    STEP(gn_stream_is_capturing(stream, &is_capturing));
    STEP(gn_stream_synchronize(stream));
    STEP(gn_event_query(end));
    STEP(gn_event_synchronize(end));
    STEP(gn_event_elapsed(start, end, &milliseconds));
    UNDO_SILENTLY(gn_event_destroy(end));
    UNDO_SILENTLY(gn_event_destroy(start));
    UNDO_SILENTLY(gn_stream_release(per_thread));
    UNDO_SILENTLY(gn_stream_release(foreign));
    UNDO_SILENTLY(gn_stream_release(stream));
}

static void scenario_copy(void)
{
    char bytes[64] = "";
    void *block = NULL;
    gn_stream *stream = first->default_stream;
    STEP(gn_memory_alloc(manager, 64, NULL, &block));
    STEP(gn_copy(block, bytes, 64, stream));
    STEP(gn_fill(block, 1, 1, 64, stream));
    STEP(gn_fill(block, 2, 2, 16, stream));
    STEP(gn_fill(block, 3, 4, 4, stream));
    STEP(gn_copy(bytes, block, 64, stream));
    if (outcome.status == GN_OK)
        CHECK(bytes[0] == 3 && bytes[16] == 2 && bytes[32] == 1 && bytes[63] == 1);
    UNDO(block != NULL, gn_memory_free(manager, block));
}

static void scenario_virtual(void)
{
    size_t granularity;
    void *address = NULL;
    uint64_t handle = 0;
    bool is_mapped = false;
    STEP(ops->virtual_granularity(first, &granularity));
    STEP(ops->virtual_reserve(first, 2 * PAGE, &address));
    STEP(ops->physical_create(first, PAGE, &handle));
    STEP(ops->virtual_map(first, address, PAGE, handle));
    is_mapped = outcome.status == GN_OK;
    STEP(ops->virtual_grant(first, address, PAGE));
    STEP(gn_fill(address, 0, 4, 100, first->default_stream));
    UNDO(is_mapped, ops->virtual_unmap(first, address, PAGE));
    UNDO(handle != 0, ops->physical_release(first, handle));
    UNDO(address != NULL, ops->virtual_release(first, address, 2 * PAGE));
}

static void scenario_module(void)
{
    struct gni_module module = {.device = NULL};
    struct gni_function function;
    struct gni_function_properties properties;
    struct gni_launch launch = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    STEP(ops->module_load(first, "fake:nothing", &module));
    STEP(ops->function_find(&module, "nothing", &function));
    STEP(ops->function_properties(&function, &properties));
    STEP(ops->function_allow_shared(&function, 1000));
    STEP(ops->function_launch(&function, first->default_stream, &launch));
    UNDO(module.device != NULL, ops->module_unload(&module));
}

static const struct scenario {
    const char *name;
    void (*before)(void); /* what the fault must not meet */
    void (*run)(void);
    void (*after)(void);
} scenarios[] = {
    {"open", devices_close, scenario_open, devices_open},
    {"memory", NULL, scenario_memory, NULL},
    {"host", NULL, scenario_host, NULL},
    {"streams", NULL, scenario_streams, NULL},
    {"copy", NULL, scenario_copy, NULL},
    {"virtual", NULL, scenario_virtual, NULL},
    {"module", NULL, scenario_module, NULL},
};

/* ---- faults of the driver ------------------------------------------------------------------- */

struct fault {
    const char *function;
    int nth;
    CUresult code;
    bool is_persistent;
};

struct living {
    size_t allocations, objects, depth, host;
};

static struct living living_count(void)
{
    return (struct living){.allocations = (size_t)fake.live_allocations(),
                           .objects = (size_t)fake.live_objects(),
                           .depth = (size_t)fake.context_depth(),
                           .host = gni_host_live_count()};
}

/* A device opens without these; it then knows less about itself, or captures mind its calls. */
static bool is_tolerated(const char *function)
{
    return strcmp(function, "cuDeviceGetUuid") == 0 ||
           strcmp(function, "cuDeviceGetPCIBusId") == 0 ||
           strcmp(function, "cuThreadExchangeStreamCaptureMode") == 0;
}

/* Popping is how the contexts are restored: test_pop_fails(). */
static bool is_tried(const char *function)
{
    return strcmp(function, "cuCtxPopCurrent") != 0;
}

static void outcome_check_error(const struct fault *fault)
{
    CHECK(outcome.status != GN_OK);
    CHECK(strstr(outcome.detail, fault->function) != NULL);
    CHECK(strstr(outcome.detail, fault->code == CUDA_ERROR_UNKNOWN ? "CUDA_ERROR_UNKNOWN"
                                                                   : "CUDA_ERROR_OUT_OF_MEMORY"));
}

/* What must hold after the fault struck. Objects that a void function could not destroy are left
 * to the driver: nobody can be told, and the context's end takes them. */
static void outcome_check(const struct fault *fault, struct living before)
{
    struct living after = living_count();
    CUcontext current = NULL;
    CHECK(raw->cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == NULL);
    CHECK_U64(after.depth, before.depth);
    CHECK_U64(after.host, before.host);
    if (!outcome.is_silent && !is_tolerated(fault->function))
        outcome_check_error(fault);
    if (!outcome.is_silent && !fault->is_persistent) {
        CHECK_U64(after.allocations, before.allocations);
        CHECK_U64(after.objects, before.objects);
    }
}

/* Runs a scenario, with a fault or (NULL) without; false if the fault did not strike. */
static bool scenario_run(const struct scenario *scenario, const struct fault *fault)
{
    if (scenario->before != NULL)
        scenario->before();
    struct living before = living_count();
    outcome.status = GN_OK;
    outcome.faults = 0;
    outcome.is_silent = false;
    if (fault != NULL)
        fake.fail(fault->function, fault->nth, (int)fault->code, fault->is_persistent);
    scenario->run();
    faults_clear();
    if (outcome.faults > 0) {
        outcome_check(fault, before);
    } else {
        CHECK(outcome.status == GN_OK);
        if (outcome.status != GN_OK)
            fprintf(stderr, "    %s\n", outcome.detail);
    }
    if (scenario->after != NULL)
        scenario->after();
    return outcome.faults > 0;
}

static void context_renew(void)
{
    devices_close();
    CHECK_U64(fake.live_allocations() + fake.live_objects(), 0);
    devices_open();
}

static int faults_try(const struct scenario *scenario, struct fault fault)
{
    int failures = check_failures;
    for (fault.nth = 1; scenario_run(scenario, &fault); fault.nth++) {
        if (outcome.is_silent || fault.is_persistent)
            context_renew(); /* the driver may hold what could not be destroyed */
        (void)scenario_run(scenario, NULL);
        if (check_failures != failures) {
            fprintf(stderr, "    scenario %s, call %d of %s: %s\n", scenario->name, fault.nth,
                    fault.function, outcome.detail);
            break;
        }
    }
    return fault.nth - 1;
}

static void test_driver_faults(void)
{
    static const CUresult codes[] = {CUDA_ERROR_UNKNOWN, CUDA_ERROR_OUT_OF_MEMORY};
    int points = 0;
    for (size_t s = 0; s < COUNT_OF(scenarios); s++) {
        (void)scenario_run(&scenarios[s], NULL); /* what is made once is made now */
        for (size_t f = 0; f < COUNT_OF(functions); f++)
            for (size_t i = 0; i < 4 && is_tried(functions[f]); i++)
                points += faults_try(&scenarios[s], (struct fault){.function = functions[f],
                                                                   .code = codes[i % 2],
                                                                   .is_persistent = i / 2 == 1});
    }
    printf("     %d faults\n", points);
    CHECK(points > 500); /* it may only grow */
}

/* A manager is made once, so this is tried before there is one. */
static void test_manager_faults(void)
{
    static const char *const tried[] = {"cuMemGetInfo", "cuCtxPushCurrent", "cuCtxGetCurrent"};
    size_t host = gni_host_live_count();
    gn_memory_manager *made = NULL;
    for (size_t i = 0; i < COUNT_OF(tried); i++) {
        fake.fail(tried[i], 1, CUDA_ERROR_UNKNOWN, 0);
        CHECK_STATUS(gn_memory_manager_get(first, &made), GN_ERROR_DRIVER);
        CHECK(strstr(gn_error_detail(), tried[i]) != NULL);
        fake.fail(NULL, 0, 0, 0);
    }
    gni_host_fail_after(1);
    CHECK_STATUS(gn_memory_manager_get(first, &made), GN_ERROR_OUT_OF_HOST_MEMORY);
    gni_host_fail_after(-1);
    CHECK(made == NULL && gni_host_live_count() == host);
    CHECK_OK(gn_memory_manager_get(first, &manager));
}

/* The call's own result counts. The thread's contexts are then the driver's fault, not ours. */
static void test_pop_fails(void)
{
    CUcontext context;
    fake.fail("cuCtxPopCurrent", 1, CUDA_ERROR_UNKNOWN, 0);
    CHECK_OK(gn_device_synchronize(first));
    fake.fail(NULL, 0, 0, 0);
    CHECK_U64(fake.context_depth(), 1);
    CHECK_OK(gn_device_synchronize(first));
    CHECK_OK(gn_device_synchronize(second));
    CHECK_U64(fake.context_depth(), 1);
    CHECK(raw->cuCtxPopCurrent(&context) == CUDA_SUCCESS);
}

/* A block that the driver does not take back is still a block. */
static void test_free_fails(void)
{
    void *block;
    size_t nbytes = 0;
    gn_memory_statistics before, after;
    CHECK_OK(gn_memory_alloc(manager, 300, NULL, &block));
    CHECK_OK(gn_memory_get_statistics(manager, &before));
    fake.fail("cuMemFree", 1, CUDA_ERROR_UNKNOWN, 0);
    CHECK_STATUS(gn_memory_free(manager, block), GN_ERROR_DRIVER);
    CHECK_OK(gn_memory_get_size(manager, block, &nbytes));
    CHECK_U64(nbytes, 300);
    CHECK_OK(gn_memory_get_statistics(manager, &after));
    CHECK(memcmp(&before, &after, sizeof before) == 0);
    CHECK_OK(gn_memory_free(manager, block));
    CHECK_STATUS(gn_memory_free(manager, block), GN_ERROR_DOUBLE_FREE);
}

static void test_results(void)
{
    static const struct {
        int code;
        gn_status status;
        const char *word;
    } results[] = {
        {CUDA_ERROR_INVALID_VALUE, GN_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
        {CUDA_ERROR_OUT_OF_MEMORY, GN_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
        {CUDA_ERROR_NOT_SUPPORTED, GN_ERROR_UNSUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
        {CUDA_ERROR_DEINITIALIZED, GN_ERROR_SHUTDOWN, "CUDA_ERROR_DEINITIALIZED"},
        {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, GN_ERROR_CAPTURE, "STREAM_CAPTURE_IMPLICIT"},
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, GN_ERROR_CAPTURE, "900"},
        {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, GN_ERROR_CAPTURE, "908"},
        {CUDA_ERROR_INVALID_CONTEXT, GN_ERROR_DRIVER, "CUDA_ERROR_INVALID_CONTEXT"},
        {CUDA_ERROR_UNKNOWN, GN_ERROR_DRIVER, "a text of the stand-in"},
        {12345, GN_ERROR_DRIVER, "CUDA error 12345"}, /* newer than anything we know */
    };
    for (size_t i = 0; i < COUNT_OF(results); i++) {
        fake.fail("cuCtxSynchronize", 1, results[i].code, 0);
        CHECK_STATUS(gn_device_synchronize(first), results[i].status);
        CHECK(strstr(gn_error_detail(), results[i].word) != NULL);
        CHECK_DETAIL("cuda:0: cuCtxSynchronize failed");
        CHECK_OK(gn_device_synchronize(first));
    }
}

/* ---- faults of the host --------------------------------------------------------------------- */

static void test_host_faults(void)
{
    int failures = 0;
    for (size_t s = 0; s < COUNT_OF(scenarios); s++) {
        const struct scenario *scenario = &scenarios[s];
        for (long nth = 1; nth <= 12; nth++) { /* some failures only make a message worse */
            if (scenario->before != NULL)
                scenario->before();
            struct living before = living_count();
            outcome.status = GN_OK;
            gni_host_fail_after(nth);
            scenario->run();
            gni_host_fail_after(-1);
            struct living after = living_count();
            CHECK(outcome.status == GN_OK || outcome.status == GN_ERROR_OUT_OF_HOST_MEMORY);
            CHECK(memcmp(&before, &after, sizeof before) == 0);
            failures += outcome.status != GN_OK;
            if (scenario->after != NULL)
                scenario->after();
            (void)scenario_run(scenario, NULL);
        }
    }
    CHECK(failures >= 5 + 3); /* of five stream objects, and of three blocks */
}

/* ---- lost devices, each in a process of its own --------------------------------------------- */

static struct {
    gn_stream *stream;
    gn_event *start, *end;
    void *block, *pinned, *address;
    char registered[64];
    uint64_t handle;
    struct gni_module module;
    struct gni_function function;
} lost;

static void lost_prepare(void)
{
    check_failures = 0;
    devices_open();
    CHECK_OK(gn_memory_manager_get(first, &manager));
    CHECK_OK(gn_stream_create(first, 0, 0, &lost.stream));
    CHECK_OK(gn_event_create(first, GN_EVENT_TIMING, &lost.start));
    CHECK_OK(gn_event_create(first, GN_EVENT_TIMING, &lost.end));
    CHECK_OK(gn_memory_alloc(manager, 100, NULL, &lost.block));
    CHECK_OK(gn_host_alloc(first, 100, &lost.pinned));
    CHECK_OK(gn_host_register(first, lost.registered, sizeof lost.registered));
    CHECK_OK(ops->virtual_reserve(first, PAGE, &lost.address));
    CHECK_OK(ops->physical_create(first, PAGE, &lost.handle));
    CHECK_OK(ops->module_load(first, "fake:crash", &lost.module));
    CHECK_OK(ops->function_find(&lost.module, "crash", &lost.function));
}

#define LOST(call) CHECK_STATUS(call, GN_ERROR_DEVICE_LOST)

static void lost_public(void)
{
    gn_stream *stream;
    gn_event *event;
    size_t bytes, more;
    bool is_capturing;
    float milliseconds;
    void *pointer;
    LOST(gn_device_get_memory_info(first, &bytes, &more));
    LOST(gn_device_synchronize(first));
    LOST(gn_stream_create(first, 0, 0, &stream));
    LOST(gn_stream_from_handle(first, (void *)2, &stream));
    LOST(gn_stream_query(lost.stream));
    LOST(gn_stream_synchronize(lost.stream));
    LOST(gn_stream_wait_event(lost.stream, lost.start));
    LOST(gn_stream_is_capturing(lost.stream, &is_capturing));
    LOST(gn_event_create(first, 0, &event));
    LOST(gn_event_record(lost.start, lost.stream));
    LOST(gn_event_query(lost.start));
    LOST(gn_event_synchronize(lost.start));
    LOST(gn_event_elapsed(lost.start, lost.end, &milliseconds));
    LOST(gn_copy(lost.block, lost.pinned, 100, lost.stream));
    LOST(gn_copy(lost.block, lost.pinned, 0, lost.stream));
    LOST(gn_fill(lost.block, 0, 4, 1, lost.stream));
    LOST(gn_fill(lost.block, 0, 4, 0, lost.stream));
    LOST(gn_host_alloc(first, 100, &pointer));
    LOST(gn_host_free(first, lost.pinned));
    LOST(gn_host_register(first, &pointer, sizeof pointer));
    LOST(gn_host_unregister(first, lost.registered));
    LOST(gn_memory_alloc(manager, 100, NULL, &pointer));
    LOST(gn_memory_free(manager, lost.block));
}

static void lost_slots(void)
{
    struct gni_module module;
    struct gni_function function;
    struct gni_function_properties properties;
    struct gni_launch launch = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    void *pointer;
    size_t bytes;
    uint64_t handle;
    LOST(ops->check(first));
    LOST(ops->memory_alloc_async(lost.stream, 1, &pointer));
    LOST(ops->memory_free_async(lost.stream, lost.block));
    LOST(ops->virtual_granularity(first, &bytes));
    LOST(ops->virtual_reserve(first, PAGE, &pointer));
    LOST(ops->physical_create(first, PAGE, &handle));
    LOST(ops->virtual_map(first, lost.address, PAGE, lost.handle));
    LOST(ops->virtual_grant(first, lost.address, PAGE));
    LOST(ops->virtual_unmap(first, lost.address, PAGE));
    LOST(ops->physical_release(first, lost.handle));
    LOST(ops->virtual_release(first, lost.address, PAGE));
    LOST(ops->module_load(first, "fake:nothing", &module));
    LOST(ops->function_find(&lost.module, "crash", &function));
    LOST(ops->function_properties(&lost.function, &properties));
    LOST(ops->function_allow_shared(&lost.function, 1));
    LOST(ops->function_launch(&lost.function, lost.stream, &launch));
    LOST(ops->module_unload(&lost.module));
    gn_event_destroy(lost.start);
    gn_event_destroy(lost.end);
    gn_stream_release(lost.stream);
}

static void second_works(void)
{
    gn_memory_manager *other;
    gn_stream *stream;
    void *block;
    int from = 5, to = 0;
    CHECK_OK(gn_memory_manager_get(second, &other));
    CHECK_OK(gn_stream_create(second, 0, 0, &stream));
    CHECK_OK(gn_memory_alloc(other, sizeof from, stream, &block));
    CHECK_OK(gn_copy(block, &from, sizeof from, stream));
    CHECK_OK(gn_copy(&to, block, sizeof to, stream));
    CHECK_OK(gn_device_synchronize(second));
    CHECK(to == 5);
    CHECK_OK(gn_memory_free(other, block));
    gn_stream_release(stream);
}

/* The device is lost by now: it says so at every call, and the driver hears nothing of it. */
static void lost_check(const char *name)
{
    gn_device *again = NULL;
    gn_device_properties properties;
    size_t leaked = 0;
    long calls = fake.call_count(NULL);
    LOST(gn_device_synchronize(first));
    CHECK_DETAIL("cuda:0 is lost");
    CHECK(name == NULL || strstr(gn_error_detail(), name) != NULL);
    lost_public();
    lost_slots();
    CHECK_OK(gn_device_get_properties(first, &properties));
    CHECK_U64(fake.call_count(NULL), calls);
    CHECK_U64(fake.context_depth(), 0);
    second_works();
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 0, &again)); /* it is there, but lost */
    CHECK(again == first);
    LOST(gn_shutdown(&leaked));
    CHECK(leaked == 0 && is_active(0) && !is_active(1)); /* untouched by a failure */
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 1, &second));
    second_works();
    exit(check_failures == 0 ? 0 : 1);
}

struct sticky {
    CUresult code;
    const char *name; /* NULL: the stand-in has none */
};

static void sticky_body(void *context)
{
    const struct sticky *sticky = context;
    lost_prepare();
    fake.fail("cuCtxSynchronize", 1, (int)sticky->code, 0);
    LOST(gn_device_synchronize(first));
    CHECK_DETAIL("cuCtxSynchronize");
    lost_check(sticky->name);
}

/* A kernel fails after its launch has succeeded; another call hears of it. */
static void crash_body(void *unused)
{
    (void)unused;
    struct gni_launch launch = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    lost_prepare();
    CHECK_OK(ops->function_launch(&lost.function, lost.stream, &launch));
    LOST(gn_stream_synchronize(lost.stream));
    CHECK_DETAIL("CUDA_ERROR_ILLEGAL_ADDRESS");
    lost_check("CUDA_ERROR_ILLEGAL_ADDRESS");
}

/* A device that is lost while it starts gives its context back, and stays lost. */
static void open_body(void *unused)
{
    (void)unused;
    gn_device *device = NULL;
    check_failures = 0;
    devices_open();
    devices_close();
    fake.fail("cuCtxGetStreamPriorityRange", 1, CUDA_ERROR_LAUNCH_FAILED, 0);
    LOST(gn_device_get(GN_DEVICE_CUDA, 0, &device));
    CHECK(!is_active(0));
    LOST(gn_device_get(GN_DEVICE_CUDA, 0, &device));
    CHECK(device == NULL && !is_active(0) && fake.context_depth() == 0);
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 1, &second));
    second_works();
    exit(check_failures == 0 ? 0 : 1);
}

/* The managers of a lost device, of each policy: what asks the driver says that it is lost. */
static void lost_manager_body(void *policy)
{
    static const size_t sizes[] = {1000, 3 * MIB}, counts[] = {1, 1};
    void *block = NULL, *pointers[2] = {NULL};
    gn_memory_block *handle = NULL;
    gn_memory_pool *pool = NULL;
    gn_memory_compaction report;
    check_failures = 0;
    CHECK(setenv("GENESIS_CUDA_ALLOCATOR", policy, 1) == 0);
    bool is_direct = strcmp(policy, "direct") == 0;
    devices_open();
    CHECK_OK(gn_memory_manager_get(first, &manager));
    CHECK_OK(gn_memory_alloc(manager, 1000, NULL, &block));
    CHECK_OK(gn_memory_free(manager, block));
    if (!is_direct) {
        CHECK_OK(gn_memory_alloc(manager, 5 * MIB, NULL, &block));
        CHECK_OK(gn_memory_pool_create(manager, &pool));
    }
    fake.fail("cuCtxSynchronize", 1, CUDA_ERROR_ILLEGAL_ADDRESS, 0);
    LOST(gn_device_synchronize(first));
    long calls = fake.call_count(NULL);
    LOST(gn_memory_alloc_batch(manager, 2, sizes, NULL, pointers));
    CHECK(pointers[0] == NULL && pointers[1] == NULL);
    if (is_direct)
        CHECK_OK(gn_memory_warm_up(manager, 2, sizes, counts)); /* there is nothing to fill */
    else
        LOST(gn_memory_warm_up(manager, 2, sizes, counts));
    LOST(gn_memory_collect(manager));
    LOST(gn_memory_coalesce(manager, NULL));
    LOST(gn_memory_trim(manager, 0, NULL));
    LOST(gn_memory_compact(manager, &report));
    LOST(gn_memory_alloc(manager, 9 * MIB, NULL, &pointers[0]));
    LOST(gn_memory_block_alloc(manager, 9 * MIB, NULL, &handle));
    if (pool != NULL)
        LOST(gn_memory_pool_destroy(pool)); /* its graph may be running */
    CHECK(pointers[0] == NULL && handle == NULL);
    CHECK_U64(fake.call_count(NULL), calls); /* the driver hears nothing of it */
    exit(check_failures == 0 ? 0 : 1);
}

static void lost_run(void (*body)(void *context), const void *context)
{
    static struct child_result result;
    child_run(body, (void *)(uintptr_t)context, &result);
    CHECK(child_is_ok(&result));
    CHECK(child_count(&result, "error: cuda:0 is lost") == 1); /* loud, and once */
}

static void test_lost_devices(void)
{
#define STICKY(code) \
    {                \
        code, #code  \
    }
    static const struct sticky sticky[] = {
        STICKY(CUDA_ERROR_ECC_UNCORRECTABLE),
        STICKY(CUDA_ERROR_NVLINK_UNCORRECTABLE),
        STICKY(CUDA_ERROR_CONTAINED),
        STICKY(CUDA_ERROR_ILLEGAL_ADDRESS),
        STICKY(CUDA_ERROR_LAUNCH_TIMEOUT),
        STICKY(CUDA_ERROR_CONTEXT_IS_DESTROYED),
        STICKY(CUDA_ERROR_ASSERT),
        STICKY(CUDA_ERROR_HARDWARE_STACK_ERROR),
        STICKY(CUDA_ERROR_ILLEGAL_INSTRUCTION),
        STICKY(CUDA_ERROR_MISALIGNED_ADDRESS),
        STICKY(CUDA_ERROR_INVALID_ADDRESS_SPACE),
        STICKY(CUDA_ERROR_INVALID_PC),
        STICKY(CUDA_ERROR_LAUNCH_FAILED),
        STICKY(CUDA_ERROR_TENSOR_MEMORY_LEAK),
        STICKY(CUDA_ERROR_MPS_CLIENT_TERMINATED),
        STICKY(CUDA_ERROR_EXTERNAL_DEVICE),
    };
#undef STICKY
    for (size_t i = 0; i < COUNT_OF(sticky); i++)
        lost_run(sticky_body, &sticky[i]);
    lost_run(crash_body, NULL);
    lost_run(open_body, NULL);
    lost_run(lost_manager_body, "direct");
    lost_run(lost_manager_body, "pool");
    lost_run(lost_manager_body, "virtual");
}

/* ---- the first start, each in a process of its own ------------------------------------------- */

/* What a device is, is read once: each call of this function fails until all of them are made. */
static void start_body(void *context)
{
    const char *function = context;
    const struct gni_cuda_driver *driver;
    gn_device *device = NULL;
    int nth = 1;
    CHECK_OK(gni_cuda_driver_open(&driver));
    fake = fake_control_load(FAKE);
    for (; device == NULL && nth < 100; nth++) {
        fake.fail(function, nth, CUDA_ERROR_UNKNOWN, 0);
        gn_status status = gn_device_get(GN_DEVICE_CUDA, 0, &device);
        CHECK((status != GN_OK) == (fake.fault_count() > 0));
        CHECK(status == GN_OK || status == GN_ERROR_DRIVER || status == GN_ERROR_INVALID_DEVICE);
        CHECK((device != NULL) == (status == GN_OK) && is_active(0) == (status == GN_OK));
        if (status != GN_OK)
            CHECK(strstr(gn_error_detail(), function) != NULL);
        CHECK_U64(fake.context_depth(), 0);
    }
    fake.fail(NULL, 0, 0, 0);
    CHECK(nth > 2); /* it is called at least once */
}

/* What a device can do without: an older driver does not know an attribute, or has no name for it. */
static void without_body(void *context)
{
    const char *function = context;
    bool is_attribute = strcmp(function, "cuDeviceGetAttribute") == 0;
    const struct gni_cuda_driver *driver;
    gn_device *device = NULL;
    gn_device_properties properties;
    CHECK_OK(gni_cuda_driver_open(&driver));
    fake = fake_control_load(FAKE);
    fake.fail(function, 1, is_attribute ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_UNKNOWN, 1);
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 0, &device));
    CHECK(fake.fault_count() > 0);
    fake.fail(NULL, 0, 0, 0);
    CHECK_OK(gn_device_get_properties(device, &properties));
    CHECK((properties.major == 0) == is_attribute);
    CHECK((properties.uuid[0] == '\0') == (strcmp(function, "cuDeviceGetUuid") == 0));
    CHECK((properties.pci_bus_id[0] == '\0') == (strcmp(function, "cuDeviceGetPCIBusId") == 0));
    CHECK(!is_attribute ||
          (!properties.has_virtual_memory && !properties.has_stream_ordered_memory));
    CHECK_OK(gn_device_synchronize(device));
}

/* A device that is lost while it starts stays so, also through a shutdown. */
static void start_lost_body(void *unused)
{
    (void)unused;
    gn_device *device = NULL;
    const struct gni_cuda_driver *driver;
    CHECK_OK(gni_cuda_driver_open(&driver));
    fake = fake_control_load(FAKE);
    fake.fail("cuDeviceTotalMem", 1, CUDA_ERROR_ECC_UNCORRECTABLE, 0);
    LOST(gn_device_get(GN_DEVICE_CUDA, 0, &device));
    LOST(gn_device_get(GN_DEVICE_CUDA, 0, &device));
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 1, &second));
    fake.fail("cuCtxSynchronize", 1, CUDA_ERROR_LAUNCH_FAILED, 0);
    LOST(gn_device_synchronize(second));
    long released = fake.call_count("cuDevicePrimaryCtxRelease");
    CHECK_OK(gn_shutdown(NULL));
    CHECK_U64(fake.call_count("cuDevicePrimaryCtxRelease"), released); /* nothing is asked of it */
    LOST(gn_device_synchronize(second));
}

static void test_first_start(void)
{
    static struct child_result result;
    static char *const needed[] = {"cuDeviceGet", "cuDeviceGetName", "cuDeviceTotalMem",
                                   "cuDeviceGetAttribute"};
    static char *const spared[] = {"cuDeviceGetUuid", "cuDeviceGetPCIBusId",
                                   "cuDeviceGetAttribute"};
    for (size_t i = 0; i < COUNT_OF(needed); i++) {
        child_run(start_body, needed[i], &result);
        CHECK(child_is_ok(&result));
    }
    for (size_t i = 0; i < COUNT_OF(spared); i++) {
        child_run(without_body, spared[i], &result);
        CHECK(child_is_ok(&result));
    }
    child_run(start_lost_body, NULL, &result);
    CHECK(child_is_ok(&result));
    CHECK_U64(child_count(&result, "is lost"), 2);
}

int main(void)
{
    CHECK(setenv("GENESIS_CUDA_DRIVER", FAKE, 1) == 0);
    CHECK(setenv("GENESIS_CUDA_ALLOCATOR", "direct", 1) == 0);
    RUN(test_lost_devices); /* first: its children start the driver themselves */
    RUN(test_first_start);
    devices_open();
    RUN(test_manager_faults);
    RUN(test_driver_faults);
    RUN(test_pop_fails);
    RUN(test_free_fails);
    RUN(test_results);
    RUN(test_host_faults);
    return check_result();
}
