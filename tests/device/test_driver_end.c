/*
 * test_driver_end.c: losing the CUDA driver: in the child of a fork(), and at exit.
 */
#include "driver_suite.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- fork ----------------------------------------------------------------------------------- */

#define FORKED(call) CHECK_STATUS(call, GN_ERROR_FORKED)

static void forked_devices_and_streams(void)
{
    int count;
    size_t free_bytes, total_bytes;
    bool is_capturing;
    gn_device *device;
    gn_stream *stream;
    gn_device_properties properties;
    FORKED(gn_device_count(GN_DEVICE_CUDA, &count));
    FORKED(gn_device_get(GN_DEVICE_CUDA, 0, &device));
    FORKED(gn_device_get(GN_DEVICE_CUDA, 1, &device));
    FORKED(gn_device_set_current(GN_DEVICE_CUDA, 0));
    CHECK_OK(gn_device_get_properties(all.device, &properties)); /* known without the driver */
    FORKED(gn_device_get_memory_info(all.device, &free_bytes, &total_bytes));
    FORKED(gn_device_synchronize(all.device));
    FORKED(gn_stream_create(all.device, 0, 0, &stream));
    FORKED(gn_stream_from_handle(all.device, (void *)2, &stream));
    FORKED(gn_stream_from_handle(all.device, gn_stream_get_handle(all.stream), &stream));
    FORKED(gn_stream_query(all.stream));
    FORKED(gn_stream_synchronize(all.stream));
    FORKED(gn_stream_wait_event(all.stream, all.start));
    FORKED(gn_stream_is_capturing(all.stream, &is_capturing));
}

static void forked_events_and_bytes(void)
{
    float milliseconds;
    void *pointer;
    gn_event *event;
    gn_memory_manager *manager;
    FORKED(gn_event_create(all.device, 0, &event));
    FORKED(gn_event_record(all.start, all.stream));
    FORKED(gn_event_query(all.start));
    FORKED(gn_event_synchronize(all.start));
    FORKED(gn_event_elapsed(all.start, all.end, &milliseconds));
    FORKED(gn_copy(all.memory, all.registered, 16, all.stream));
    FORKED(gn_copy(all.memory, all.registered, 0, all.stream));
    FORKED(gn_fill(all.memory, 1, 4, 4, all.stream));
    FORKED(gn_fill(all.memory, 1, 4, 0, all.stream));
    FORKED(gn_host_alloc(all.device, 64, &pointer));
    FORKED(gn_host_register(all.device, all.registered, 64));
    FORKED(gn_memory_alloc(all.manager, 64, NULL, &pointer));
    FORKED(gn_memory_alloc(all.manager, 0, NULL, &pointer));
    FORKED(gn_memory_manager_get(all.second, &manager)); /* it has none yet */
}

static void forked_slots(void)
{
    const struct gni_device_ops *ops = all.device->ops;
    gn_device *device = all.device;
    void *pointer;
    size_t bytes;
    uint64_t handle;
    struct gni_module module;
    struct gni_function function;
    struct gni_function_properties properties;
    struct gni_launch launch = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    FORKED(ops->check(device));
    FORKED(ops->memory_alloc(device, 64, &pointer));
    FORKED(ops->memory_alloc_async(all.stream, 64, &pointer));
    FORKED(ops->virtual_granularity(device, &bytes));
    FORKED(ops->virtual_reserve(device, 1 << 21, &pointer));
    FORKED(ops->physical_create(device, 1 << 21, &handle));
    FORKED(ops->virtual_map(device, all.address, 1 << 21, all.handle));
    FORKED(ops->virtual_grant(device, all.address, 1 << 21));
    FORKED(ops->module_load(device, "fake:add_one", &module));
    FORKED(ops->function_find(&all.module, "add_one", &function));
    FORKED(ops->function_properties(&all.function, &properties));
    FORKED(ops->function_allow_shared(&all.function, 100));
    FORKED(ops->function_launch(&all.function, all.stream, &launch));
}

/* What gives something back succeeds by doing nothing: the parent still uses it. */
static void forked_frees(void)
{
    const struct gni_device_ops *ops = all.device->ops;
    gn_memory_statistics statistics;
    gn_library_description description;
    CHECK_OK(ops->memory_free_async(all.stream, all.memory));
    CHECK_OK(ops->virtual_unmap(all.device, all.address, 1 << 21));
    CHECK_OK(ops->physical_release(all.device, all.handle));
    CHECK_OK(ops->virtual_release(all.device, all.address, 1 << 21));
    all_close();
    CHECK_OK(gn_memory_get_statistics(all.manager, &statistics));
    CHECK_U64(statistics.live_count, 0);
    CHECK_OK(gn_shutdown(NULL));
    CHECK(gn_library_describe(0, &description) && !description.is_found);
    CHECK(strstr(description.reason, "fork") != NULL);
}

static void cpu_works(void)
{
    gn_device *device;
    gn_stream *stream;
    char from[] = "bytes", to[sizeof from] = "";
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &device));
    CHECK_OK(gn_stream_create(device, 0, 0, &stream));
    CHECK_OK(gn_copy(to, from, sizeof from, stream));
    CHECK_OK(gn_stream_synchronize(stream));
    CHECK_TEXT(to, from);
    gn_stream_release(stream);
}

/* Runs in a child of the case's own process; its checks count there. */
static void fork_and_wait(void (*body)(void))
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        check_failures = 0;
        body();
        exit(check_failures == 0 ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void forked_child(void)
{
    forked_devices_and_streams();
    forked_events_and_bytes();
    forked_slots();
    cpu_works();
    forked_frees();
}

static void forked_exit_child(void)
{
    /* Everything is alive, and the child ends at once. */
}

static void forks_after_open(const char *driver)
{
    environment("GENESIS_CUDA_DRIVER", driver);
    all_open();
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 1, &all.second));
    const struct gni_device_ops *ops = all.device->ops;
    CHECK_OK(ops->virtual_reserve(all.device, 1 << 21, &all.address));
    CHECK_OK(ops->physical_create(all.device, 1 << 21, &all.handle));
    CHECK_OK(ops->virtual_map(all.device, all.address, 1 << 21, all.handle));
    fork_and_wait(forked_child);
    fork_and_wait(forked_exit_child);
    all_use(); /* the parent lost nothing */
    all_close();
    CHECK_OK(ops->virtual_unmap(all.device, all.address, 1 << 21));
    CHECK_OK(ops->physical_release(all.device, all.handle));
    CHECK_OK(ops->virtual_release(all.device, all.address, 1 << 21));
}

static void forks_before_open(const char *driver)
{
    environment("GENESIS_CUDA_DRIVER", driver);
    cpu_works();
    fork_and_wait(all_work);
    fork_and_wait(all_work);
    all_work();
}

static atomic_bool is_busy_over;

static void *busy_run(void *unused)
{
    (void)unused;
    while (!atomic_load(&is_busy_over)) {
        void *pointer;
        CHECK_OK(gn_memory_alloc(all.manager, 512, NULL, &pointer));
        CHECK_OK(gn_stream_query(all.stream));
        CHECK_OK(gn_memory_free(all.manager, pointer));
    }
    return NULL;
}

/* No lock that another thread held at the fork is held for ever in the child. */
static void forked_while_busy(void)
{
    void *pointer;
    gn_memory_statistics statistics;
    FORKED(gn_memory_alloc(all.manager, 64, NULL, &pointer));
    FORKED(gn_stream_query(all.stream));
    CHECK_OK(gn_memory_free(all.manager, all.memory));
    CHECK_OK(gn_shutdown(NULL));
    CHECK_OK(gn_memory_get_statistics(all.manager, &statistics));
    CHECK_U64(statistics.live_count, 0);
    CHECK_U64(statistics.live_bytes, 0);
    check_exit(
        check_failures == 0 ? 0 : 1); /* a leak checker would look for the threads that are gone */
}

static void forks_while_busy(const char *driver)
{
    pthread_t threads[3];
    environment("GENESIS_CUDA_DRIVER", driver);
    all_open();
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        CHECK(pthread_create(&threads[i], NULL, busy_run, NULL) == 0);
    for (int i = 0; i < 20; i++)
        fork_and_wait(forked_while_busy);
    atomic_store(&is_busy_over, true);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    all_use();
    all_close();
}

/* A driver that was refused before the fork is still refused, for the same reason. */
static void forked_refused(void)
{
    expect_refused("CUDA_ERROR_NO_DEVICE");
}

static void forks_refused(const char *driver)
{
    environment("GENESIS_CUDA_DRIVER", driver);
    environment("FAKE_CUDA_INIT_RESULT", "100");
    expect_refused("CUDA_ERROR_NO_DEVICE");
    fork_and_wait(forked_refused);
}

static void test_fork(void)
{
    case_run(forks_after_open, FAKE);
    case_run(forks_before_open, FAKE);
    case_run(forks_while_busy, FAKE);
    case_run(forks_refused, FAKE);
}

/* ---- exit ----------------------------------------------------------------------------------- */

static void exits_with_everything_alive(const char *driver)
{
    environment("GENESIS_CUDA_DRIVER", driver);
    all_open();
    CHECK_OK(gn_stream_set_current(all.stream));
}

/* Runs after Genesis' own exit handler, since it was registered before. */
static void late_handler(void)
{
    int count;
    void *pointer;
    CHECK_STATUS(gn_memory_alloc(all.manager, 64, NULL, &pointer), GN_ERROR_SHUTDOWN);
    CHECK_STATUS(gn_device_count(GN_DEVICE_CUDA, &count), GN_ERROR_SHUTDOWN);
    CHECK_STATUS(gn_stream_synchronize(all.stream), GN_ERROR_SHUTDOWN);
    CHECK_STATUS(gn_copy(all.memory, all.raw, 0, all.stream), GN_ERROR_SHUTDOWN);
    all_close();
    CHECK_OK(gn_shutdown(NULL));
    if (check_failures > 0)
        _exit(1); /* too late for the case's own result */
}

static void exits_with_late_handler(const char *driver)
{
    environment("GENESIS_CUDA_DRIVER", driver);
    CHECK(atexit(late_handler) == 0);
    all_open();
}

/* Runs before it: the driver is still there, and the memory is really given back. */
static void early_handler(void)
{
    struct fake_control fake = fake_control_load(FAKE);
    all_use();
    all_close();
    CHECK_OK(gn_shutdown(NULL));
    CHECK_U64(fake.live_allocations(), 0);
    CHECK_U64(fake.live_objects(), 0);
    if (check_failures > 0)
        _exit(1);
}

static void exits_with_early_handler(const char *driver)
{
    environment("GENESIS_CUDA_DRIVER", driver);
    all_open();
    CHECK(atexit(early_handler) == 0);
}

static void test_exit(void)
{
    case_run(exits_with_everything_alive, FAKE);
    case_run(exits_with_late_handler, FAKE);
    case_run(exits_with_early_handler, FAKE);
}

/* The stand-in does end a process that calls it too late: else the tests above prove nothing. */
static const struct gni_cuda_driver *raw_driver;

static void raw_call(void)
{
    int version;
    (void)raw_driver->functions.cuDriverGetVersion(&version);
}

static void calls_in_child(const char *driver)
{
    environment("GENESIS_CUDA_DRIVER", driver);
    CHECK_OK(gni_cuda_driver_open(&raw_driver));
    pid_t child = fork();
    int status = 0;
    if (child == 0) {
        raw_call();
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    CHECK_U64(WEXITSTATUS(status), FAKE_EXIT_FORKED);
}

static void calls_at_exit(const char *driver)
{
    environment("GENESIS_CUDA_DRIVER", driver);
    CHECK(atexit(raw_call) == 0);
    CHECK_OK(gni_cuda_driver_open(&raw_driver));
}

static void test_stand_in_is_strict(void)
{
    struct driver_case late = {calls_at_exit, FAKE};
    case_run(calls_in_child, FAKE);
    child_run(case_body, &late, &result);
    CHECK_U64(result.exit_code, FAKE_EXIT_LATE);
}

int main(void)
{
    RUN(test_fork);
    RUN(test_exit);
    RUN(test_stand_in_is_strict);
    return check_result();
}
