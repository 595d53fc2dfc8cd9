/*
 * test_background.c: kernels that are made while the program goes on, on the simulated GPU: in which order, who waits for
 * whom, what goes wrong, and how it ends. Exits with 77 where there is no simulator.
 * tests/python/test_background_kernels.py has what needs processes of their own.
 */
#include "child.h"
#include "system_faults.h"

#include "base/builder.h"
#include "base/host.h"
#include "base/option.h"
#include "base/thread.h"
#include "control.h"
#include "device/cuda/cuda.h"
#include "genesis/genesis.h"
#include "jit/background.h"
#include "jit/kernel.h"
#include "jit/tiers.h"

#include <errno.h>
#include <sched.h>

enum {
    NAME_BYTES = 32,
    MANY = 600, /* more than the queue takes */
};

static gn_device *device;
static gn_memory_manager *manager;
static gn_stream *stream;
static struct sim_control control;

/* ---- kernels by their number ---------------------------------------------------------------- */

/* The kernel's name, which is its signature, too. */
struct name {
    char text[NAME_BYTES];
};

static struct name name_of(int number)
{
    struct name name;
    (void)snprintf(name.text, sizeof name.text, "background_%d", number);
    return name;
}

/* Writes its number where it is told. */
static struct gni_builder text_of(int number)
{
    struct gni_builder text = {.text = NULL};
    gni_builder_print(&text,
                      "/* comments go */ struct unused { int x; };\n"
                      "extern \"C\" __global__ void %s(int *x)\n{\n    *x = %d;\n}\n",
                      name_of(number).text, number);
    return text;
}

static void ask(int number, uint64_t cost, unsigned flags)
{
    struct name name = name_of(number);
    struct gni_builder text = text_of(number);
    gni_kernel_request(device, name.text, &text, name.text, strlen(name.text), cost, flags);
    CHECK(text.text == NULL);
}

static bool is_asked(int number, uint64_t cost)
{
    struct name name = name_of(number);
    return gni_kernel_is_requested(device, name.text, strlen(name.text), cost);
}

static struct gni_kernel *find(int number)
{
    struct name name = name_of(number);
    return gni_kernel_find(device, name.text, strlen(name.text));
}

static gn_status build(int number, struct gni_kernel **kernel)
{
    struct name name = name_of(number);
    struct gni_builder text = text_of(number);
    return gni_kernel_build(device, name.text, &text, name.text, strlen(name.text), kernel);
}

/* Compilations of this kernel wait; 0: none does any more. */
static void hold(int number)
{
    char text[NAME_BYTES + 1];
    (void)snprintf(text, sizeof text, "%s(", name_of(number).text);
    control.hold(number > 0 ? text : NULL);
}

/* Asks for a kernel, and comes back when it is being compiled, and waits there. */
static void hold_running(int number)
{
    hold(number);
    ask(number, 1, 0);
    while (control.held_count() == 0)
        (void)sched_yield();
}

static void kernel_check(int number)
{
    struct gni_kernel *kernel = find(number);
    int value = 0;
    void *x;
    CHECK(kernel != NULL);
    if (kernel == NULL)
        return;
    CHECK_OK(gn_memory_alloc(manager, sizeof value, stream, &x));
    void *arguments[] = {&x};
    struct gni_launch launch = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .arguments = arguments};
    CHECK_OK(gni_kernel_launch(kernel, stream, &launch));
    CHECK_OK(gn_copy(&value, x, sizeof value, stream));
    CHECK_OK(gn_stream_synchronize(stream));
    CHECK_U64(value, number);
    CHECK_OK(gn_memory_free(manager, x));
}

/* As in a new process, with an empty cache. */
static void begin(void)
{
    size_t leaked = 99;
    CHECK_OK(gn_kernel_cache_clear(NULL));
    CHECK_OK(gn_shutdown(&leaked));
    CHECK_U64(leaked, 0);
    CHECK_OK(gn_stream_get_default(device, &stream));
    CHECK_OK(gn_memory_manager_get(device, &manager));
}

/* ---- one thread asks ------------------------------------------------------------------------ */

static void test_a_kernel_appears(void)
{
    begin();
    CHECK(!is_asked(1, 1) && find(1) == NULL);
    ask(1, 1, 0);
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    CHECK(!is_asked(1, 1));
    kernel_check(1);
    ask(1, 1, 0); /* it is there */
    CHECK(!is_asked(1, 1));
    CHECK(gni_background_thread_count() > 0);
}

/* One thread: the costliest first, and what is asked for again becomes costlier. */
static void test_the_order(void)
{
    gn_kernel_description kernels[8];
    size_t count = 0;
    begin();
    hold_running(1);
    CHECK_STATUS(gn_kernel_wait(1), GN_ERROR_NOT_READY);
    ask(2, 5, 0);
    ask(3, 7, 0);
    ask(4, 5, 0);
    ask(5, 1, 0);
    CHECK(is_asked(1, 1)); /* it runs */
    CHECK(is_asked(5, 3) && is_asked(5, 4));
    CHECK(find(1) == NULL);
    hold(0);
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    CHECK_OK(gn_kernel_list(kernels, 8, &count));
    static const int order[] = {1, 5, 3, 2, 4};
    CHECK_U64(count, 5);
    for (size_t i = 0; i < 5 && i < count; i++) {
        CHECK_TEXT(kernels[i].name, name_of(order[i]).text);
        CHECK(kernels[i].tier == 1 && kernels[i].origin == GN_KERNEL_FROM_COMPILER);
        CHECK(kernels[i].compile_ms > 0 && kernels[i].launch_count == 0);
    }
}

/* Who needs a queued kernel now makes it, and does not wait for those before it. */
static void test_queued_kernels_are_made_at_once(void)
{
    struct gni_kernel *kernel = NULL;
    begin();
    hold_running(1);
    ask(2, 1, 0);
    CHECK(is_asked(2, 1));
    CHECK_OK(build(2, &kernel));
    CHECK(kernel != NULL && kernel == find(2) && !is_asked(2, 1));
    CHECK(is_asked(1, 1) && find(1) == NULL);
    hold(0);
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    kernel_check(1);
    kernel_check(2);
}

static void *build_run(void *kernel)
{
    CHECK_OK(build(1, kernel));
    return NULL;
}

/* A kernel that runs is waited for: it is compiled once. */
static void test_running_kernels_are_waited_for(void)
{
    struct gni_kernel *kernel = NULL;
    pthread_t thread;
    begin();
    hold_running(1);
    CHECK(pthread_create(&thread, NULL, build_run, &kernel) == 0);
    for (int i = 0; i < 100; i++)
        (void)sched_yield();
    CHECK_U64(control.held_count(), 1);
    hold(0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    CHECK(kernel != NULL && kernel == find(1));
    CHECK_U64(gni_kernel_count(), 1);
}

/* For the next process: this one goes on as it began. */
static void test_only_on_disk(void)
{
    struct gni_kernel *kernel = NULL;
    begin();
    ask(1, 1, GNI_REQUEST_DISK_ONLY);
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    CHECK(find(1) == NULL && is_asked(1, 1));
    CHECK_U64(gni_kernel_count(), 0);
    ask(1, 1, GNI_REQUEST_DISK_ONLY); /* once is enough */
    CHECK_OK(gn_kernel_wait(0));
    CHECK_OK(build(1, &kernel));
    CHECK(kernel != NULL && kernel->origin == GN_KERNEL_FROM_DISK && kernel->compile_ms == 0);
    kernel_check(1);
    begin();
    ask(2, 1, GNI_REQUEST_DISK_ONLY);
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    ask(2, 1, 0); /* now it is to be used */
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    kernel_check(2);
    hold(3);
    ask(3, 1, GNI_REQUEST_DISK_ONLY);
    while (control.held_count() == 0)
        (void)sched_yield();
    ask(4, 1, GNI_REQUEST_DISK_ONLY);
    ask(4, 1, 0); /* while it is queued */
    hold(0);
    CHECK_OK(build(3, &kernel)); /* waits for it, and reads it */
    CHECK(kernel->origin == GN_KERNEL_FROM_DISK);
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    kernel_check(4);
}

static void test_sources(void)
{
    const char *const options[] = {"--std=c++14", NULL};
    gn_kernel *kernel = NULL;
    static const char text[] = "template <class T> __global__ void fill(T *x) { *x = 3; }";
    gn_device *cpu;
    gn_kernel_description described;
    size_t count;
    begin();
    CHECK_OK(gn_kernel_request(device, text, "fill<float>", options));
    CHECK_OK(gn_kernel_request(device, text, "fill<float>", options));
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    CHECK_U64(gni_kernel_count(), 1);
    CHECK_OK(gn_kernel_create(device, text, "fill<float>", options, &kernel));
    CHECK_U64(gni_kernel_count(), 1);
    gn_kernel_destroy(kernel);
    CHECK_OK(gn_kernel_request(device, "no such text", "fill<int>", NULL)); /* is printed */
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    CHECK_STATUS(gn_kernel_create(device, "no such text", "fill<int>", NULL, &kernel),
                 GN_ERROR_COMPILATION);
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &cpu));
    CHECK_STATUS(gn_kernel_request(cpu, text, "fill<int>", NULL), GN_ERROR_UNSUPPORTED);
    CHECK_STATUS(gn_kernel_request(device, text, "", NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_kernel_request(NULL, text, "fill<int>", NULL), GN_ERROR_INVALID_VALUE);
    const char *many[100] = {NULL};
    for (int i = 0; i < 99; i++)
        many[i] = "--std=c++14";
    CHECK_OK(gn_kernel_request(device, text, "fill<int>", many)); /* gn_kernel_create() says it */
    CHECK_STATUS(gn_kernel_list(NULL, 1, &count), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_kernel_list(&described, 1, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_OK(gn_kernel_list(NULL, 0, &count));
    CHECK_U64(count, 1);
}

/* ---- what is listed ------------------------------------------------------------------------- */

static void test_the_list(void)
{
    struct gni_kernel *kernel = NULL;
    gn_kernel_description kernels[2];
    size_t count = 0;
    begin();
    CHECK_OK(build(1, &kernel));
    kernel_check(1);
    kernel_check(1);
    CHECK_OK(gn_profile_enable(true));
    kernel_check(1);
    CHECK_OK(gn_profile_wait());
    CHECK_OK(gn_profile_enable(false));
    gni_kernel_clear();
    CHECK_OK(gn_kernel_list(kernels, 2, &count));
    CHECK_U64(count, 0);
    CHECK_OK(build(2, &kernel));
    struct gni_kernel_source general = {
        .name = "general", .text = "extern \"C\" __global__ void general() {}", .is_general = true};
    CHECK_OK(gni_kernel_get(device, &general, &kernel));
    CHECK_OK(build(1, &kernel));
    CHECK_OK(gn_profile_enable(true));
    kernel_check(1);
    CHECK_OK(gn_profile_wait());
    CHECK_OK(gn_profile_enable(false));
    kernel_check(1);
    CHECK_OK(gn_kernel_list(kernels, 2, &count));
    CHECK_U64(count, 3);
    CHECK_TEXT(kernels[0].name, "background_2");
    CHECK(kernels[0].tier == 1 && kernels[0].launch_count == 0 && kernels[0].measured_count == 0);
    CHECK(kernels[1].tier == 0);
    gn_kernel_description all[3];
    CHECK_OK(gn_kernel_list(all, 3, &count));
    CHECK(all[2].origin == GN_KERNEL_FROM_DISK && all[2].compile_ms == 0);
    CHECK(all[2].launch_count == 2 && all[2].measured_count == 1 && all[2].gpu_ms >= 0);
}

/* ---- failures ------------------------------------------------------------------------------- */

static void refused_body(void *context)
{
    struct gni_kernel *kernel = NULL;
    (void)context;
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 0, &device));
    begin();
    control.refuse("background_1(");
    ask(1, 1, 0);
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    for (int i = 0; i < 3; i++) /* what a program does */
        if (find(1) == NULL && !is_asked(1, 1))
            ask(1, 1, 0);
    ask(1, 1, 0);
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    CHECK_STATUS(build(1, &kernel), GN_ERROR_COMPILATION);
    control.refuse(NULL);
    CHECK(is_asked(1, 1));
    gni_kernel_clear();
    CHECK(!is_asked(1, 1));
    ask(1, 1, 0);
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    kernel_check(1);
    control.fail("cuModuleLoadData", 1, CUDA_ERROR_OUT_OF_MEMORY, 1);
    ask(2, 1, 0);
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    CHECK(find(2) == NULL && is_asked(2, 1));
    control.fail(NULL, 0, 0, 0);
    CHECK_OK(build(2, &kernel)); /* that was no word about the text */
    kernel_check(2);
    control.fail("cuModuleLoadData", 1, CUDA_ERROR_OUT_OF_MEMORY, 1);
    ask(3, 1, 0);
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    control.fail(NULL, 0, 0, 0);
    int asks = 0;
    while (is_asked(3, 1) && asks < 1000)
        asks++;
    CHECK_U64(asks, 63);
    ask(3, 1, 0); /* memory may be there again */
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    kernel_check(3);
}

/* ---- kernels that are wanted only if they are known ------------------------------------------ */

static gn_status build_known(int number, struct gni_kernel **kernel)
{
    struct name name = name_of(number);
    struct gni_builder text = text_of(number);
    return gni_kernel_build_known(device, name.text, &text, name.text, strlen(name.text), kernel);
}

static void *known_run(void *context)
{
    atomic_bool *is_over = context;
    struct gni_kernel *kernel;
    gn_status status = GN_OK;
    while (!atomic_load(is_over) && (status == GN_OK || status == GN_ERROR_UNAVAILABLE))
        status = build_known(1, &kernel);
    return status == GN_OK || status == GN_ERROR_UNAVAILABLE ? NULL : context;
}

/* Who needs a kernel gets it, while another thread looks in vain for one that has been compiled. */
static void test_known_kernels(void)
{
    static atomic_bool is_over;
    struct gni_kernel *kernel;
    pthread_t thread;
    void *failed;
    begin();
    CHECK_STATUS(build_known(1, &kernel), GN_ERROR_UNAVAILABLE);
    CHECK(find(1) == NULL);
    CHECK(pthread_create(&thread, NULL, known_run, &is_over) == 0);
    for (int i = 0; i < 50; i++) {
        CHECK_OK(gn_kernel_cache_clear(NULL));
        CHECK_OK(build(1, &kernel));
    }
    atomic_store(&is_over, true);
    CHECK(pthread_join(thread, &failed) == 0 && failed == NULL);
    kernel_check(1);
}

/* Each is printed once, with its reason. */
static void test_failures(void)
{
    static struct child_result child;
    child_run(refused_body, NULL, &child);
    child_is_ok(&child);
    CHECK_U64(child_count(&child, "warning"), 3);
    CHECK_U64(child_count(&child, "kernel background_1 was not made in the background"), 1);
    CHECK_U64(child_count(&child, "a test wants no such text"), 1);
    CHECK_U64(child_count(&child, "kernel background_2 was not made in the background"), 1);
}

/* Each request for host memory fails in turn: the program goes on, and nothing is lost. */
static void test_no_host_memory(void)
{
    bool is_made = false;
    begin();
    ask(2, 1, 0);
    CHECK_OK(gn_kernel_wait(UINT64_MAX)); /* what is made once */
    for (long nth = 1; nth < 200 && !is_made; nth++) {
        gni_kernel_clear();
        size_t live = gni_host_live_count();
        struct gni_builder text = text_of(1);
        struct name name = name_of(1);
        gni_host_fail_after(nth);
        gni_kernel_request(device, name.text, &text, name.text, strlen(name.text), 1, 0);
        CHECK_OK(gn_kernel_wait(UINT64_MAX));
        gni_host_fail_after(-1);
        is_made = find(1) != NULL;
        gni_kernel_clear();
        if (!is_made)
            CHECK_U64(gni_host_live_count(), live);
    }
    CHECK(is_made);
    struct gni_builder failed = {.has_failed = true};
    gni_kernel_request(device, "none", &failed, "none", 4, 1, 0);
    CHECK(!gni_kernel_is_requested(device, "none", 4, 1));
}

/* Without a thread the program goes on, and is not asked to make the text again. */
static void test_no_thread(void)
{
    begin();
    system_fail("pthread_create", 1, EAGAIN, true);
    ask(1, 1, 0);
    CHECK(system_fault_count() > 0);
    system_fail(NULL, 0, 0, false);
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    CHECK(is_asked(1, 1) && find(1) == NULL);
    gni_kernel_clear();
    ask(1, 1, 0);
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    kernel_check(1);
}

/* A program whose kernels never end keeps those that cost most. */
static void test_the_queue_is_bounded(void)
{
    int count = 0;
    begin();
    hold_running(1);
    ask(2, 2, 0);
    for (int i = 3; i < MANY; i++)
        ask(i, 1, 0);
    for (int i = 3; i < MANY; i++)
        count += is_asked(i, 1);
    CHECK(is_asked(2, 1) && is_asked(MANY - 1, 1) && !is_asked(3, 1));
    CHECK_U64(count, 511);
    gni_kernel_clear();
    CHECK(!is_asked(2, 1) && !is_asked(MANY - 1, 1));
    hold(0);
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
}

/* ---- others meanwhile ----------------------------------------------------------------------- */

/* A capture does not mind what is loaded meanwhile. */
static void test_during_a_capture(void)
{
    const struct gni_cuda_driver *driver;
    struct gni_cuda_scope scope;
    gn_stream *side;
    CUgraph graph = NULL;
    begin();
    hold_running(1);
    CHECK_OK(gni_cuda_driver_open(&driver));
    const struct gni_cuda_functions *cuda = &driver->functions;
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &side));
    CUstream handle = gn_stream_get_handle(side);
    CHECK_OK(gni_cuda_enter(gni_cuda_device_of(device), GNI_CUDA_PLAIN, &scope));
    CHECK(cuda->cuStreamBeginCapture(handle, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    hold(0);
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    CHECK(cuda->cuStreamEndCapture(handle, &graph) == CUDA_SUCCESS && graph != NULL);
    (void)cuda->cuGraphDestroy(graph);
    CHECK_OK(gni_cuda_leave(&scope, "", CUDA_SUCCESS));
    gn_stream_release(side);
    kernel_check(1);
}

static void *program_run(void *seed)
{
    uint64_t state = (uint64_t)(uintptr_t)seed;
    for (int i = 0; i < 300; i++) {
        int number = 1 + (int)(check_random(&state) % 6);
        struct gni_kernel *kernel = find(number);
        uint64_t what = check_random(&state) % 64;
        if (what == 0)
            gni_kernel_clear();
        else if (what < 4)
            CHECK_OK(build(number, &kernel));
        else if (what == 4)
            (void)gni_background_wait(1);
        else if (kernel == NULL && !is_asked(number, what))
            ask(number, what, what % 8 == 0 ? GNI_REQUEST_DISK_ONLY : 0);
    }
    return NULL;
}

static void test_many_threads(void)
{
    pthread_t threads[4];
    begin();
    for (size_t i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, program_run, (void *)(i + 1)) == 0);
    for (size_t i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    gni_kernel_clear();
    for (int number = 1; number <= 6; number++)
        ask(number, 1, 0);
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    for (int number = 1; number <= 6; number++)
        kernel_check(number);
}

/* ---- ends ----------------------------------------------------------------------------------- */

static void test_threads_end(void)
{
    begin();
    gni_background_set_idle_ms(1);
    for (int number = 1; number < 4; number++) {
        ask(number, 1, 0);
        CHECK_OK(gn_kernel_wait(UINT64_MAX));
        while (gni_background_thread_count() > 0)
            (void)sched_yield();
        kernel_check(number);
    }
    gni_background_set_idle_ms(0);
}

static void *release_run(void *unused)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    hold(0);
    return unused;
}

/* It waits for what runs, drops what is queued, and the next request starts anew. */
static void test_stop(void)
{
    pthread_t thread;
    begin();
    gn_kernel_stop();
    hold_running(1);
    for (int number = 2; number < 6; number++)
        ask(number, 1, 0);
    CHECK(pthread_create(&thread, NULL, release_run, NULL) == 0);
    gn_kernel_stop();
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_U64(gni_background_thread_count(), 0);
    kernel_check(1);
    for (int number = 2; number < 6; number++)
        CHECK(!is_asked(number, 1));
    ask(2, 1, 0);
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    kernel_check(2);
}

/* The same before the devices are closed. */
static void test_shutdown(void)
{
    pthread_t thread;
    size_t leaked = 99;
    begin();
    hold_running(1);
    for (int number = 2; number < 6; number++)
        ask(number, 1, number % 2 == 0 ? GNI_REQUEST_DISK_ONLY : 0);
    CHECK(pthread_create(&thread, NULL, release_run, NULL) == 0);
    CHECK_OK(gn_shutdown(&leaked));
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_U64(leaked, 0);
    CHECK_U64(control.live_objects(), 0);
    CHECK_U64(gni_background_thread_count(), 0);
    CHECK(!is_asked(1, 1) && !is_asked(2, 1));
    CHECK_OK(gn_kernel_wait(0));
    CHECK_OK(gn_stream_get_default(device, &stream));
    CHECK_OK(gn_memory_manager_get(device, &manager));
    ask(2, 1, 0);
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    kernel_check(2);
}

static void fork_body(void *context)
{
    (void)context;
    CHECK(!is_asked(1, 1) && !is_asked(2, 1));
    CHECK_U64(gni_background_thread_count(), 0);
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    ask(2, 1, 0); /* without a driver: nothing happens */
    CHECK(!is_asked(2, 1));
    gni_kernel_clear();
    if (check_failures == 0)
        exit(0); /* with its handlers */
}

static void test_fork(void)
{
    static struct child_result child;
    begin();
    hold_running(1);
    ask(2, 1, 0);
#ifndef CHILD_IS_ALONE
    child_run(fork_body, NULL, &child);
    child_is_ok(&child);
#else
    (void)child, (void)fork_body;
#endif
    CHECK(is_asked(1, 1) && is_asked(2, 1));
    hold(0);
    CHECK_OK(gn_kernel_wait(UINT64_MAX));
    kernel_check(1);
    kernel_check(2);
}

static void *ask_run(void *unused)
{
    for (int number = 1; number < 30; number++)
        ask(number, 1, 0);
    return unused;
}

/* The process ends while kernels are compiled, and asked for. */
static void exit_body(void *context)
{
    pthread_t thread;
    (void)context;
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 0, &device));
    CHECK_OK(gn_kernel_cache_clear(NULL));
    ask(30, 1, 0);
    CHECK(pthread_create(&thread, NULL, ask_run, NULL) == 0 && pthread_detach(thread) == 0);
    exit(check_failures);
}

static void test_exit(void)
{
    static struct child_result child;
    for (int i = 0; i < 3; i++) {
        child_run(exit_body, NULL, &child);
        child_is_ok(&child);
    }
}

static void test_tiers(void)
{
    CHECK_U64(gni_tiers_mode(), GNI_TIERS_AUTO);
    gni_tiers_set_mode(GNI_TIERS_ON);
    CHECK_U64(gni_tiers_mode(), GNI_TIERS_ON);
    gni_tiers_set_mode(-1);
    CHECK_U64(gni_tiers_mode(), GNI_TIERS_AUTO);
}

int main(void)
{
    const char *driver = getenv("GENESIS_CUDA_DRIVER");
    (void)setenv("GENESIS_KERNEL_CACHE_DIR", "/tmp/genesis-test-background", 0);
    (void)setenv("GENESIS_COMPILE_THREADS", "1", 0);
    (void)unsetenv("GENESIS_TIERS");
    if (driver == NULL || dlopen(driver, RTLD_NOW) == NULL || !sim_control_load(driver, &control)) {
        printf("skipped: there is no simulated GPU\n");
        return CHECK_SKIPPED;
    }
    RUN(test_failures); /* the first two in processes of their own, while this one has no device */
    RUN(test_exit);
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 0, &device));
    RUN(test_tiers);
    RUN(test_a_kernel_appears);
    if (gni_option_number(GNI_OPTION_COMPILE_THREADS) == 1) { /* one holds up all others */
        RUN(test_the_order);
        RUN(test_queued_kernels_are_made_at_once);
        RUN(test_only_on_disk);
        RUN(test_the_queue_is_bounded);
        RUN(test_fork);
    }
    RUN(test_running_kernels_are_waited_for);
    RUN(test_sources);
    RUN(test_the_list);
    RUN(test_known_kernels);
    RUN(test_no_host_memory);
    RUN(test_no_thread);
    RUN(test_during_a_capture);
    RUN(test_many_threads);
    RUN(test_threads_end);
    RUN(test_stop);
    RUN(test_shutdown);
    return check_result();
}
