/*
 * test_profile.c: how long kernels took, on the simulator or a real GPU: what is measured, in which order, and that
 * measuring changes nothing for the launches. Exits with 77 where there is no device or no NVRTC.
 */
#include "child.h"

#include "base/host.h"
#include "control.h"
#include "device/cuda/cuda.h"
#include "device/cuda/library.h"
#include "genesis/genesis.h"
#include "jit/kernel.h"

#include <pthread.h>

static gn_device *device;
static gn_stream *stream;
static struct sim_control control; /* all NULL on a real GPU */
static bool is_simulated;
static struct gni_kernel *kernel;

static const struct gni_kernel_source source = {
    .name = "nothing", .text = "extern \"C\" __global__ void nothing(int unused) {}"};

static gn_status launch_on(gn_stream *where, unsigned blocks, unsigned threads)
{
    int unused = 0;
    void *arguments[] = {&unused};
    struct gni_launch launch = {
        .grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .arguments = arguments};
    return gni_kernel_launch(kernel, where, &launch);
}

/* Takes all runs that can be known; how many. */
static size_t runs_take(gn_kernel_run *runs, size_t capacity)
{
    size_t count = 0;
    CHECK_OK(gn_profile_wait());
    CHECK_OK(gn_profile_take(runs, capacity, &count));
    return count;
}

static void test_off_by_default(void)
{
    gn_kernel_run run;
    CHECK(!gn_profile_is_on());
    CHECK_OK(launch_on(stream, 1, 32));
    CHECK_U64(runs_take(&run, 1), 0);
    size_t count;
    CHECK_STATUS(gn_profile_take(NULL, 1, &count), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_profile_take(&run, 1, NULL), GN_ERROR_INVALID_VALUE);
}

static void test_runs(void)
{
    enum {
        COUNT = 20
    };
    gn_kernel_run runs[COUNT + 1];
    uint64_t id, lost = gn_profile_get_lost_count();
    CHECK_OK(gn_stream_get_id(stream, &id));
    CHECK_OK(gn_profile_enable(true));
    for (unsigned i = 1; i <= COUNT; i++)
        CHECK_OK(launch_on(stream, i, 32));
    CHECK_OK(gn_profile_enable(false));
    CHECK_OK(launch_on(stream, 1, 32));
    CHECK_U64(runs_take(runs, COUNT + 1), COUNT);
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK(strcmp(runs[i].name, "nothing") == 0);
        CHECK_U64(runs[i].grid[0], i + 1);
        CHECK_U64(runs[i].block[0], 32);
        CHECK_U64(runs[i].device, 0);
        CHECK_U64(runs[i].stream_id, id);
        CHECK(runs[i].duration_ms >= 0 && runs[i].duration_ms < 60e3);
        CHECK(runs[i].start_ns >= runs[i].submitted_ns);
        CHECK(i == 0 || runs[i].start_ns >= runs[i - 1].start_ns);
        CHECK(i == 0 || runs[i].submitted_ns >= runs[i - 1].submitted_ns);
    }
    CHECK_U64(gn_profile_get_lost_count(), lost);
}

/* Times stay exact when the reference they are relative to is moved on. */
static void test_runs_far_apart(void)
{
    gn_kernel_run runs[5];
    CHECK_OK(gn_profile_enable(true));
    for (int i = 0; i < 4; i++) {
        CHECK_OK(launch_on(stream, 1, 32));
        CHECK_OK(gn_stream_synchronize(stream));
        if (i == 1)
            (void)usleep(150 * 1000);
    }
    CHECK_OK(gn_profile_enable(false));
    CHECK_U64(runs_take(runs, 5), 4);
    for (int i = 0; i < 4; i++) {
        CHECK(runs[i].start_ns >= runs[i].submitted_ns);
        CHECK(runs[i].start_ns - runs[i].submitted_ns < 100u * 1000 * 1000);
    }
}

static int hook_count;

static void hook(void)
{
    hook_count++;
}

/* A wait makes runs known, and says so. */
static void test_the_hook(void)
{
    gn_kernel_run runs[8];
    size_t count;
    gn_event *event;
    CHECK_OK(gn_event_create(device, 0, &event));
    gn_profile_set_hook(hook);
    CHECK_OK(gn_profile_enable(true));
    for (int way = 0; way < 3; way++) {
        for (int i = 0; i < 3; i++)
            CHECK_OK(launch_on(stream, 1, 32));
        CHECK_OK(gn_event_record(event, stream));
        hook_count = 0; /* a launch looks at those before it; the last one waits */
        CHECK_OK(way == 0   ? gn_device_synchronize(device)
                 : way == 1 ? gn_stream_synchronize(stream)
                            : gn_event_synchronize(event));
        CHECK_U64(hook_count, 1);
        CHECK_OK(gn_profile_take(runs, 2, &count));
        CHECK_U64(count, 2);
        CHECK_OK(gn_profile_take(runs, 2, &count));
        CHECK_U64(count, 1);
    }
    CHECK_OK(gn_profile_enable(false));
    gn_profile_set_hook(NULL);
    gn_event_destroy(event);
}

static void test_failed_launches(void)
{
    gn_kernel_run run;
    uint64_t lost = gn_profile_get_lost_count();
    CHECK_OK(gn_profile_enable(true));
    CHECK(launch_on(stream, 1, 1 << 20) != GN_OK);
    CHECK_OK(gn_profile_enable(false));
    CHECK_U64(runs_take(&run, 1), 0);
    CHECK_U64(gn_profile_get_lost_count(), lost);
}

/* Without memory a launch is not measured, and works. */
static void test_host_memory_faults(void)
{
    gn_kernel_run run;
    long least = 0;
    for (long nth = 1;; nth++) {
        uint64_t lost = gn_profile_get_lost_count();
        CHECK_OK(gn_profile_enable(true));
        gn_stream *side;
        CHECK_OK(gn_stream_create(device, 0, 0, &side));
        gni_host_fail_after(nth);
        gn_status status = launch_on(side, 1, 32);
        gni_host_fail_after(-1);
        CHECK_OK(status);
        CHECK_OK(gn_profile_enable(false));
        size_t count = runs_take(&run, 1);
        gn_stream_release(side);
        CHECK_U64(count + gn_profile_get_lost_count() - lost, 1);
        if (count == 1)
            break;
        CHECK(nth < 20);
        least = nth;
    }
    CHECK(least >= 3); /* the run, its stopwatch, its events */
}

/* Where an event fails a launch works and is not measured; the ones after it are. */
static void test_driver_faults(void)
{
    static const char *const functions[] = {
        "cuEventCreate",      "cuEventRecord",       "cuEventElapsedTime",    "cuEventQuery",
        "cuEventSynchronize", "cuStreamIsCapturing", "cuStreamGetCaptureInfo"};
    if (!is_simulated)
        return;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        for (int nth = 1; nth <= 4; nth++) {
            gn_kernel_run runs[8];
            size_t count = 0;
            uint64_t lost = gn_profile_get_lost_count();
            gn_stream *side;
            CHECK_OK(gn_stream_create(device, 0, 0, &side));
            CHECK_OK(gn_profile_enable(true));
            control.fail(functions[i], nth, CUDA_ERROR_UNKNOWN, 0);
            for (unsigned k = 1; k <= 3; k++)
                CHECK_OK(launch_on(side, k, 32));
            gn_status waited = gn_profile_wait();
            gn_status taken = gn_profile_take(runs, 8, &count);
            bool is_struck = control.fault_count() > 0;
            control.fail(NULL, 0, 0, 0);
            CHECK_OK(taken);
            if (!is_struck)
                CHECK_OK(waited);
            size_t more = 0;
            CHECK_OK(gn_profile_wait());
            CHECK_OK(gn_profile_take(runs + count, 8 - count, &more));
            count += more;
            CHECK(count <= 3 && count + (size_t)(gn_profile_get_lost_count() - lost) <= 3);
            CHECK(is_struck || count == 3);
            for (size_t k = 0; k < count; k++)
                CHECK(strcmp(runs[k].name, "nothing") == 0 && runs[k].duration_ms >= 0);
            CHECK_OK(launch_on(side, 7, 32));
            CHECK_U64(runs_take(runs, 8), 1);
            CHECK_U64(runs[0].grid[0], 7);
            CHECK_OK(gn_profile_enable(false));
            gn_stream_release(side);
        }
}

/* Runs that are not over are not taken, and those behind them are; one wait for all tells the first failure. */
static void test_runs_that_last(void)
{
    gn_kernel_run runs[8];
    gn_stream *side, *other;
    size_t count = 99;
    if (!is_simulated)
        return;
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &side));
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &other));
    CHECK_OK(gn_profile_enable(true));
    control.schedule(1, 0); /* nothing runs before somebody waits for it */
    CHECK_OK(launch_on(side, 1, 32));
    CHECK_OK(launch_on(other, 2, 32));
    CHECK_OK(gn_stream_synchronize(other));
    CHECK_OK(gn_profile_take(runs, 8, &count));
    CHECK(count <= 2 && (count == 0 || runs[count - 1].grid[0] == 2));
    size_t more = runs_take(runs, 8);
    CHECK_U64(count + more, 2);
    uint64_t lost = gn_profile_get_lost_count();
    for (unsigned i = 0; i < 3; i++)
        CHECK_OK(launch_on(side, 1, 32));
    control.fail("cuEventSynchronize", 1, CUDA_ERROR_UNKNOWN, 1);
    CHECK_STATUS(gn_profile_wait(), GN_ERROR_DRIVER);
    CHECK(control.fault_count() >= 3);
    control.fail(NULL, 0, 0, 0);
    CHECK_U64(gn_profile_get_lost_count(), lost + 3);
    control.schedule(0, 0);
    CHECK_OK(gn_device_synchronize(device));
    CHECK_U64(runs_take(runs, 8), 0);
    CHECK_OK(gn_profile_enable(false));
    gn_stream_release(side);
    gn_stream_release(other);
}

/* The oldest are kept. On the simulator, whose time is that of its work, they are far apart as well. */
static void test_too_many_runs(void)
{
    enum {
        KEPT = 1 << 16,
        MORE = 10
    };
#ifdef __SANITIZE_THREAD__
    return; /* half a minute, and one thread */
#endif
    if (!is_simulated)
        return;
    uint64_t lost = gn_profile_get_lost_count();
    CHECK_OK(gn_profile_enable(true));
    for (int i = 0; i < KEPT + MORE; i++)
        CHECK_OK(launch_on(stream, 1, 1));
    CHECK_OK(gn_profile_enable(false));
    CHECK_OK(gn_profile_wait());
    CHECK_U64(gn_profile_get_lost_count() - lost, MORE);
    gn_kernel_run runs[64];
    size_t count, sum = 0, wrong = 0;
    uint64_t before = 0;
    do {
        CHECK_OK(gn_profile_take(runs, 64, &count));
        for (size_t i = 0; i < count; i++) {
            wrong += runs[i].start_ns < before || runs[i].start_ns < runs[i].submitted_ns;
            before = runs[i].start_ns;
        }
        sum += count;
    } while (count == 64);
    CHECK_U64(sum, KEPT);
    CHECK_U64(wrong, 0);
}

static void *thread_launches(void *context)
{
    (void)context;
    gn_stream *side;
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &side));
    for (int i = 0; i < 50; i++) {
        CHECK_OK(launch_on(side, 1, 32));
        if (i % 7 == 0)
            CHECK_OK(gn_stream_synchronize(side));
        if (i % 11 == 0)
            CHECK_OK(gn_profile_wait());
    }
    gn_stream_release(side);
    return NULL;
}

static void test_threads(void)
{
    enum {
        THREADS = 4
    };
    static gn_kernel_run runs[THREADS * 50 + 1];
    pthread_t threads[THREADS];
    CHECK_OK(gn_profile_enable(true));
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, thread_launches, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK_OK(gn_profile_enable(false));
    CHECK_U64(runs_take(runs, THREADS * 50 + 1), THREADS * 50);
}

static void test_capture(void)
{
    const struct gni_cuda_driver *driver;
    gn_kernel_run run;
    gn_stream *side;
    CHECK_OK(gni_cuda_driver_open(&driver));
    const struct gni_cuda_functions *cuda = &driver->functions;
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &side));
    CUstream handle = gn_stream_get_handle(side);
    struct gni_cuda_scope scope;
    CHECK_OK(gni_cuda_enter(gni_cuda_device_of(device), GNI_CUDA_PLAIN, &scope));
    CHECK_OK(gn_profile_enable(true));
    CHECK(cuda->cuStreamBeginCapture(handle, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    CHECK_OK(launch_on(side, 1, 32));
    CUgraph graph = NULL;
    CHECK(cuda->cuStreamEndCapture(handle, &graph) == CUDA_SUCCESS && graph != NULL);
    CHECK_OK(gn_profile_enable(false));
    (void)cuda->cuGraphDestroy(graph);
    CHECK_OK(gni_cuda_leave(&scope, "", CUDA_SUCCESS));
    CHECK_U64(runs_take(&run, 1), 0);
    gn_stream_release(side);
}

static void test_shutdown(void)
{
    gn_kernel_run run;
    size_t leaked = 99, host = gni_host_live_count();
    CHECK_OK(gn_profile_enable(true));
    CHECK_OK(launch_on(stream, 1, 32)); /* pending, and never taken */
    CHECK_OK(gn_shutdown(&leaked));
    CHECK_U64(leaked, 0);
    CHECK(gni_host_live_count() <= host);
    if (is_simulated)
        CHECK_U64(control.live_objects(), 0);
    CHECK_OK(gni_kernel_get(device, &source, &kernel));
    CHECK_OK(launch_on(stream, 1, 32));
    CHECK_U64(runs_take(&run, 1), 1);
    CHECK_OK(gn_profile_enable(false));
}

static void fork_body(void *context)
{
    (void)context;
    gn_kernel_run run;
    CHECK(!gn_profile_is_on());
    CHECK_U64(runs_take(&run, 1), 0);
}

static void test_fork(void)
{
    struct child_result child;
    gn_kernel_run runs[3];
    CHECK_OK(gn_profile_enable(true));
    CHECK_OK(launch_on(stream, 1, 32));
    CHECK_OK(launch_on(stream, 1, 32));
    child_run(fork_body, NULL, &child);
    child_is_ok(&child);
    CHECK_U64(runs_take(runs, 3), 2);
    CHECK_OK(gn_profile_enable(false));
}

int main(void)
{
    const struct gni_nvrtc *nvrtc;
    if (gn_device_get(GN_DEVICE_CUDA, 0, &device) != GN_OK || gni_nvrtc_open(&nvrtc) != GN_OK) {
        printf("skipped: %s\n", gn_error_detail());
        return CHECK_SKIPPED;
    }
    gn_library_description driver;
    is_simulated = gn_library_describe(0, &driver) && sim_control_load(driver.path, &control);
    CHECK_OK(gn_stream_get_default(device, &stream));
    CHECK_OK(gni_kernel_get(device, &source, &kernel));
    if (kernel == NULL)
        return check_result();
    RUN(test_off_by_default);
    RUN(test_host_memory_faults); /* while there are no events to be used again */
    RUN(test_runs);
    RUN(test_runs_far_apart);
    RUN(test_the_hook);
    RUN(test_failed_launches);
    RUN(test_driver_faults);
    RUN(test_runs_that_last);
    RUN(test_too_many_runs);
    RUN(test_threads);
    RUN(test_capture);
    RUN(test_shutdown);
    RUN(test_fork);
    return check_result();
}
