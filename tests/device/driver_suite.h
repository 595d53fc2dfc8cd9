/*
 * driver_suite.h: what the tests of the CUDA driver's states share, on the stand-ins of tests/fake. Each program
 * includes it once.
 *
 * The driver's state is one for the process, so every case runs in a child, which sets its
 * environment, makes its checks and ends with exit(): so each case also proves that no driver
 * function is called at exit (the stand-in would end the process with another code).
 */
#ifndef GNI_TESTS_DRIVER_SUITE_H
#define GNI_TESTS_DRIVER_SUITE_H

#include "check.h"
#include "child.h"

#include "device/cuda/driver.h"
#include "device/device.h"
#include "fake/fake_cuda.h"
#include "genesis/genesis.h"

#define FAKE GENESIS_FAKE_DIRECTORY "/libgenesis_fake.so"
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* ---- cases ---------------------------------------------------------------------------------- */

struct driver_case {
    void (*body)(const char *argument);
    const char *argument;
};

static struct child_result result; /* of the last case */

static inline void case_body(void *context)
{
    const struct driver_case *driver_case = context;
    check_failures = 0; /* those of the parent are not ours */
    driver_case->body(driver_case->argument);
    fflush(stdout);
    exit(check_failures == 0 ? 0 : 1);
}

static inline void case_run(void (*body)(const char *argument), const char *argument)
{
    struct driver_case driver_case = {body, argument};
    child_run(case_body, &driver_case, &result);
    if (!child_is_ok(&result))
        fprintf(stderr, "    with exit code %d in the case \"%s\"\n", result.exit_code,
                argument != NULL ? argument : "");
}

static inline void environment(const char *name, const char *value)
{
    CHECK(setenv(name, value, 1) == 0);
}

/* Every way to the driver gives the same reason, which has this word in it. */
static inline void expect_refused(const char *word)
{
    int count = 77;
    gn_device *device = NULL;
    gn_library_description description;
    CHECK_STATUS(gn_device_count(GN_DEVICE_CUDA, &count), GN_ERROR_UNAVAILABLE);
    CHECK(count == 77);
    if (strstr(gn_error_detail(), word) == NULL) {
        check_fail(__FILE__, __LINE__, word);
        fprintf(stderr, "    is not in \"%s\"\n", gn_error_detail());
    }
    char first[1024];
    (void)snprintf(first, sizeof first, "%s", gn_error_detail());
    CHECK_STATUS(gn_device_get(GN_DEVICE_CUDA, 0, &device), GN_ERROR_UNAVAILABLE);
    CHECK_TEXT(gn_error_detail(), first);
    CHECK_STATUS(gn_device_set_current(GN_DEVICE_CUDA, 0), GN_ERROR_UNAVAILABLE);
    CHECK_TEXT(gn_error_detail(), first);
    CHECK(device == NULL && gn_device_get_current(GN_DEVICE_CUDA) == 0);
    CHECK(gn_library_describe(0, &description));
    CHECK(!description.is_found && strncmp(description.reason, first, 400) == 0);
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &device)); /* the CPU is always there */
    CHECK_OK(gn_shutdown(NULL));
}

/* ---- using a device ------------------------------------------------------------------------- */

/* One of everything, alive. Static, so that what is left at exit is no leak. */
static struct {
    gn_device *device, *second;
    gn_memory_manager *manager;
    gn_stream *stream;
    gn_event *start, *end;
    void *memory, *raw, *host, *address;
    uint64_t handle;
    struct gni_module module;
    struct gni_function function;
    int registered[1024];
} all;

static inline void all_open(void)
{
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 0, &all.device));
    CHECK_OK(gn_memory_manager_get(all.device, &all.manager));
    CHECK_OK(gn_stream_create(all.device, 0, 0, &all.stream));
    CHECK_OK(gn_event_create(all.device, GN_EVENT_TIMING, &all.start));
    CHECK_OK(gn_event_create(all.device, GN_EVENT_TIMING, &all.end));
    CHECK_OK(gn_memory_alloc(all.manager, 4096, all.stream, &all.memory));
    CHECK_OK(gn_host_alloc(all.device, 4096, &all.host));
    CHECK_OK(gn_host_register(all.device, all.registered, sizeof all.registered));
    const struct gni_device_ops *ops = all.device->ops;
    CHECK_OK(ops->memory_alloc(all.device, 4096, &all.raw));
    CHECK_OK(ops->module_load(all.device, "fake:add_one", &all.module));
    CHECK_OK(ops->function_find(&all.module, "add_one", &all.function));
}

/* Data goes to the device, through a kernel, and back. */
static inline void all_use(void)
{
    int n = 1024;
    int *numbers = all.host;
    struct gni_launch launch = {
        .grid = {1, 1, 1}, .block = {64, 1, 1}, .arguments = (void *[]){&all.memory, &n}};
    for (int i = 0; i < n; i++)
        numbers[i] = 3 * i;
    CHECK_OK(gn_event_record(all.start, all.stream));
    CHECK_OK(gn_copy(all.memory, numbers, 4096, all.stream));
    CHECK_OK(all.device->ops->function_launch(&all.function, all.stream, &launch));
    CHECK_OK(gn_copy(all.registered, all.memory, 4096, all.stream));
    CHECK_OK(gn_event_record(all.end, all.stream));
    CHECK_OK(gn_stream_synchronize(all.stream));
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += all.registered[i] != 3 * i + 1;
    CHECK_U64(wrong, 0);
}

static inline void all_close(void)
{
    const struct gni_device_ops *ops = all.device->ops;
    CHECK_OK(gn_memory_free(all.manager, all.memory));
    CHECK_OK(ops->memory_free(all.device, all.raw, 4096));
    CHECK_OK(gn_host_free(all.device, all.host));
    CHECK_OK(gn_host_unregister(all.device, all.registered));
    CHECK_OK(ops->module_unload(&all.module));
    gn_event_destroy(all.start);
    gn_event_destroy(all.end);
    gn_stream_release(all.stream);
}

static inline void all_work(void)
{
    size_t leaked = 1;
    all_open();
    all_use();
    all_close();
    CHECK_OK(gn_shutdown(&leaked));
    CHECK_U64(leaked, 0);
}

#endif
