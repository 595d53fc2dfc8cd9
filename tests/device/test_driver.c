/*
 * test_driver.c: finding and loading the CUDA driver: missing, broken and old ones, and threads that open it at
 * once.
 */
#include "driver_suite.h"

#include <pthread.h>

#define FAKE_MIDDLE GENESIS_FAKE_DIRECTORY "/libgenesis_fake_middle.so"
#define FAKE_OLD GENESIS_FAKE_DIRECTORY "/libgenesis_fake_old.so"
#define FAKE_ANCIENT GENESIS_FAKE_DIRECTORY "/libgenesis_fake_ancient.so"

/* ---- refusals ------------------------------------------------------------------------------- */

static void refused_by_path(const char *path)
{
    environment("GENESIS_CUDA_DRIVER", path);
    expect_refused(path);
}

/* A machine may have a driver; then its absence cannot be tested. */
static bool has_real_driver(void)
{
    return dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != NULL;
}

static void refused_default(const char *unused)
{
    (void)unused;
    unsetenv("GENESIS_CUDA_DRIVER");
    if (!has_real_driver())
        expect_refused("libcuda.so.1");
}

static void refused_no_driver(const char *path)
{
    environment("GENESIS_CUDA_DRIVER", path);
    expect_refused("is not a CUDA driver");
    CHECK_DETAIL(path);
}

static void refused_file(const char *content)
{
    char path[] = "/tmp/genesis_test_XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0 && write(file, content, strlen(content)) == (ssize_t)strlen(content));
    refused_by_path(path);
    CHECK(close(file) == 0 && unlink(path) == 0);
}

static void test_no_library(void)
{
    case_run(refused_default, NULL);
    case_run(refused_by_path, "libno_such_driver.so.1");
    case_run(refused_by_path, "/no/such/driver.so");
    case_run(refused_by_path, "/"); /* a directory */
    case_run(refused_file, "this is not a library\n");
    case_run(refused_file, "");
    case_run(refused_no_driver, "libm.so.6");
}

static void relative_path(const char *path)
{
    gn_option_description option = {.name = ""};
    environment("GENESIS_CUDA_DRIVER", path);
    for (int i = 0; gn_option_describe(i, &option); i++)
        if (strcmp(option.name, "GENESIS_CUDA_DRIVER") == 0)
            break;
    CHECK_TEXT(option.value, "libcuda.so.1");
    if (!has_real_driver())
        expect_refused("libcuda.so.1");
}

static void forking_driver(const char *path)
{
    gn_device *device;
    gn_memory_manager *manager;
    environment("GENESIS_CUDA_DRIVER", path);
    environment("FAKE_CUDA_FORKS", "1");
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 0, &device));
    CHECK_OK(gn_memory_manager_get(device, &manager));
}

/* A driver may fork to start a helper while it is being opened. */
static void test_driver_that_forks(void)
{
    case_run(forking_driver, FAKE);
}

static void foreign_ids(const char *path)
{
    gn_device *device;
    gn_stream *own, *one, *two;
    uint64_t ids[3];
    environment("GENESIS_CUDA_DRIVER", path);
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 0, &device));
    CHECK_OK(gn_stream_create(device, 0, 0, &own));
    CHECK_OK(gn_stream_from_handle(device, gn_stream_get_handle(own), &one));
    CHECK_OK(gn_stream_from_handle(device, gn_stream_get_handle(own), &two));
    CHECK_OK(gn_stream_get_id(one, &ids[0]));
    CHECK_OK(gn_stream_get_id(two, &ids[1]));
    CHECK_U64(ids[0], ids[1]);
    gn_stream_release(one);
    gn_stream_release(two);
    CHECK_OK(gn_stream_from_handle(device, gn_stream_get_handle(own), &one));
    CHECK_OK(gn_stream_get_id(one, &ids[2]));
    CHECK(ids[2] != ids[0]); /* the handle may mean another stream by now */
    gn_stream_release(one);
    gn_stream_release(own);
}

/* Without ids from the driver, the living wrappers of one stream agree on one. */
static void test_foreign_ids(void)
{
    case_run(foreign_ids, FAKE_OLD);
}

/* A path that depends on the working directory could load a stranger's code. */
static void test_relative_paths(void)
{
    static const char *const paths[] = {"./x.so", "../x", "..", "a/b.so", "x y.so"};
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        case_run(relative_path, paths[i]);
        CHECK(child_count(&result, "warning") == 1);
        CHECK(child_count(&result, "GENESIS_CUDA_DRIVER") == 1);
    }
}

static void refused_too_old(const char *path)
{
    environment("GENESIS_CUDA_DRIVER", path);
    expect_refused("too old");
    CHECK_DETAIL("10.2");
    CHECK_DETAIL("11.4");
}

static void refused_version(const char *version)
{
    environment("GENESIS_CUDA_DRIVER", FAKE);
    environment("FAKE_CUDA_VERSION", version);
    expect_refused("too old");
}

static void test_too_old(void)
{
    case_run(refused_too_old, FAKE_ANCIENT);
    case_run(refused_version, "11030");
    case_run(refused_version, "0");
    case_run(refused_version, "-5");
}

static void refused_init(const char *code)
{
    environment("GENESIS_CUDA_DRIVER", FAKE);
    environment("FAKE_CUDA_INIT_RESULT", code);
    switch (atoi(code)) {
    case CUDA_ERROR_NO_DEVICE:
        expect_refused("CUDA_ERROR_NO_DEVICE");
        break;
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        expect_refused("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
        break;
    case CUDA_ERROR_STUB_LIBRARY:
        expect_refused("CUDA_ERROR_STUB_LIBRARY");
        break;
    default:
        expect_refused(code); /* a code without a name is given as a number */
    }
    CHECK_U64(fake_control_load(FAKE).call_count("cuInit"), 1); /* not tried again and again */
}

static void test_init_fails(void)
{
    case_run(refused_init, "100");
    case_run(refused_init, "803");
    case_run(refused_init, "34");
    case_run(refused_init, "12345");
}

/* ---- functions that are not there ----------------------------------------------------------- */

static const struct {
    const char *name;
    const char *lost;
    enum gni_cuda_need need;
} functions[] = {
#define FUNCTION(name, symbol, version, need, arguments, lost) {#name, lost, need},
    GNI_CUDA_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

static void missing_required(const char *name)
{
    environment("GENESIS_CUDA_DRIVER", FAKE);
    environment("FAKE_CUDA_MISSING", name);
    expect_refused(name);
    CHECK_DETAIL("lacks");
}

/* A list that is longer than any buffer is cut; the first names are there. */
static void missing_everything(const char *unused)
{
    (void)unused;
    char list[4096] = "";
    for (size_t i = 0; i < COUNT_OF(functions); i++)
        (void)snprintf(list + strlen(list), sizeof list - strlen(list), "%s,", functions[i].name);
    environment("GENESIS_CUDA_DRIVER", FAKE);
    environment("FAKE_CUDA_MISSING", list);
    expect_refused("cuInit");
    CHECK_DETAIL("cuGetErrorName");
}

/* The slot behind an optional function, called directly. */
static gn_status slot_call(const char *name)
{
    const struct gni_device_ops *ops = all.device->ops;
    gn_stream *stream = all.device->default_stream;
    void *address = NULL;
    size_t granularity = 0;
    uint64_t handle = 0;
    if (strcmp(name, "cuMemAllocAsync") == 0)
        return ops->memory_alloc_async(stream, 512, &address);
    if (strcmp(name, "cuMemFreeAsync") == 0)
        return ops->memory_free_async(stream, NULL);
    if (strcmp(name, "cuMemGetAllocationGranularity") == 0)
        return ops->virtual_granularity(all.device, &granularity);
    if (strcmp(name, "cuMemAddressReserve") == 0)
        return ops->virtual_reserve(all.device, 1 << 21, &address);
    if (strcmp(name, "cuMemAddressFree") == 0)
        return ops->virtual_release(all.device, NULL, 1 << 21);
    if (strcmp(name, "cuMemCreate") == 0)
        return ops->physical_create(all.device, 1 << 21, &handle);
    if (strcmp(name, "cuMemRelease") == 0)
        return ops->physical_release(all.device, 0);
    if (strcmp(name, "cuMemMap") == 0)
        return ops->virtual_map(all.device, NULL, 1 << 21, 0);
    if (strcmp(name, "cuMemUnmap") == 0)
        return ops->virtual_unmap(all.device, NULL, 1 << 21);
    if (strcmp(name, "cuMemSetAccess") == 0)
        return ops->virtual_grant(all.device, NULL, 1 << 21);
    return GN_OK;
}

static bool is_virtual(const char *name)
{
    return strstr("cuMemGetAllocationGranularity cuMemAddressReserve cuMemAddressFree cuMemCreate "
                  "cuMemRelease cuMemMap cuMemUnmap cuMemSetAccess",
                  name) != NULL;
}

static bool is_ordered(const char *name)
{
    return strcmp(name, "cuMemAllocAsync") == 0 || strcmp(name, "cuMemFreeAsync") == 0;
}

static void properties_without(const char *name)
{
    gn_device_properties properties;
    CHECK_OK(gn_device_get_properties(all.device, &properties));
    CHECK((properties.uuid[0] == '\0') == (strcmp(name, "cuDeviceGetUuid") == 0));
    CHECK((properties.pci_bus_id[0] == '\0') == (strcmp(name, "cuDeviceGetPCIBusId") == 0));
    CHECK(properties.has_virtual_memory == !is_virtual(name));
    CHECK(properties.has_stream_ordered_memory == !is_ordered(name));
    CHECK(properties.major == 9);
}

/* Ids are told apart even where the driver has none, and a stream keeps its own. */
static void ids_are_unique(void)
{
    gn_stream *streams[4], *per_thread;
    uint64_t ids[6], again;
    CHECK_OK(gn_stream_get_id(all.device->default_stream, &ids[4]));
    CHECK_OK(gn_stream_from_handle(all.device, (void *)2, &per_thread));
    CHECK_OK(gn_stream_get_id(per_thread, &ids[5]));
    for (int i = 0; i < 4; i++) {
        CHECK_OK(gn_stream_create(all.device, 0, 0, &streams[i]));
        CHECK_OK(gn_stream_get_id(streams[i], &ids[i]));
        CHECK_OK(gn_stream_get_id(streams[i], &again));
        CHECK_U64(again, ids[i]);
        gn_stream_release(streams[i]); /* the next one may get the same handle */
    }
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < i; j++)
            CHECK(ids[i] != ids[j] && ids[i] != 0);
    gn_stream_release(per_thread);
}

static void missing_optional(const char *name)
{
    environment("GENESIS_CUDA_DRIVER", FAKE);
    environment("GENESIS_LOG", "info");
    environment("FAKE_CUDA_MISSING", name);
    all_open();
    all_use();
    properties_without(name);
    ids_are_unique();
    gn_status expected = is_virtual(name) || is_ordered(name) ? GN_ERROR_UNSUPPORTED : GN_OK;
    CHECK_STATUS(slot_call(name), expected);
    if (expected != GN_OK)
        CHECK(strstr(gn_error_detail(), gni_cuda_function_lost(name)) != NULL ||
              strstr(gn_error_detail(), "stream order") != NULL ||
              strstr(gn_error_detail(), "virtual memory") != NULL);
    gn_stream *foreign;
    CHECK_OK(gn_stream_from_handle(all.device, gn_stream_get_handle(all.stream), &foreign));
    gn_stream_release(foreign);
    all_close();
}

static void test_missing_functions(void)
{
    for (size_t i = 0; i < COUNT_OF(functions); i++) {
        if (functions[i].need == REQUIRED) {
            case_run(missing_required, functions[i].name);
            continue;
        }
        case_run(missing_optional, functions[i].name);
        CHECK(functions[i].lost[0] != '\0');
        CHECK(child_count(&result, functions[i].name) == 1);
        CHECK(child_count(&result, functions[i].lost) == 1);
    }
    case_run(missing_everything, NULL);
    CHECK_TEXT(gni_cuda_function_lost("no such function"), "");
}

/* ---- drivers of all ages -------------------------------------------------------------------- */

static void works(const char *driver)
{
    environment("GENESIS_CUDA_DRIVER", driver);
    all_open();
    ids_are_unique();
    all_close();
    all_work();
}

static void works_old(const char *driver)
{
    gn_library_description description;
    gn_device_properties properties;
    works(driver);
    CHECK(gn_library_describe(0, &description) && description.is_found);
    CHECK_TEXT(description.path, driver);
    bool is_middle = strcmp(driver, FAKE_MIDDLE) == 0;
    CHECK_U64(description.version, is_middle ? 11080 : 11040);
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 0, &all.device));
    CHECK_OK(gn_device_get_properties(all.device, &properties));
    CHECK(properties.has_virtual_memory == is_middle);
    CHECK_STATUS(slot_call("cuMemCreate"), is_middle ? GN_OK : GN_ERROR_UNSUPPORTED);
}

static void test_all_ages(void)
{
    case_run(works, FAKE);
    case_run(works, "fake"); /* a word: the library beside this program */
    case_run(works_old, FAKE_MIDDLE);
    case_run(works_old, FAKE_OLD);
}

static void counts(const char *devices)
{
    int count = 0, expected = atoi(devices) < GNI_DEVICE_MAX ? atoi(devices) : GNI_DEVICE_MAX;
    gn_device *device = NULL;
    environment("GENESIS_CUDA_DRIVER", FAKE);
    environment("FAKE_CUDA_DEVICES", devices);
    CHECK_OK(gn_device_count(GN_DEVICE_CUDA, &count));
    CHECK_U64(count, expected);
    CHECK_U64(fake_control_load(FAKE).call_count("cuDevicePrimaryCtxRetain"), 0);
    CHECK_STATUS(gn_device_get(GN_DEVICE_CUDA, count, &device), GN_ERROR_INVALID_DEVICE);
    CHECK_STATUS(gn_device_get(GN_DEVICE_CUDA, -1, &device), GN_ERROR_INVALID_DEVICE);
    CHECK_STATUS(gn_device_set_current(GN_DEVICE_CUDA, count), GN_ERROR_INVALID_DEVICE);
    CHECK(device == NULL);
    CHECK_OK(gn_device_set_current(GN_DEVICE_CUDA, count - 1));
    CHECK_U64(gn_device_get_current(GN_DEVICE_CUDA), count - 1);
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, count - 1, &device));
    CHECK_U64(gn_device_get_index(device), count - 1);
    CHECK(gn_device_get_type(device) == GN_DEVICE_CUDA);
}

static void counts_none(const char *unused)
{
    (void)unused;
    environment("GENESIS_CUDA_DRIVER", FAKE);
    environment("FAKE_CUDA_DEVICES", "0");
    int count = 77;
    gn_device *device = NULL;
    gn_library_description description;
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(gn_device_count(GN_DEVICE_CUDA, &count), GN_ERROR_UNAVAILABLE);
        CHECK_DETAIL("no GPU");
        CHECK_STATUS(gn_device_get(GN_DEVICE_CUDA, 0, &device), GN_ERROR_UNAVAILABLE);
        CHECK_DETAIL("no GPU");
    }
    CHECK(count == 77 && device == NULL);
    CHECK(gn_library_describe(0, &description) && description.is_found); /* the driver is there */
}

static void test_device_counts(void)
{
    case_run(counts_none, NULL);
    case_run(counts, "1");
    case_run(counts, "3");
    case_run(counts, "70");
}

/* ---- threads -------------------------------------------------------------------------------- */

enum {
    OPENER_COUNT = 8,
};

#define CONTEXT_RETAIN "cuDevicePrimaryCtxRetain"

static pthread_barrier_t openers_barrier;
static bool openers_are_late;
static struct fake_control openers_fake;
static uint64_t opener_ids[OPENER_COUNT];
static int opener_priorities[OPENER_COUNT];

static void *opener_run(void *context)
{
    size_t index = (size_t)(uintptr_t)context;
    gn_device *device;
    gn_stream *stream;
    pthread_barrier_wait(&openers_barrier);
    while (openers_are_late && index > 0 && openers_fake.call_count(CONTEXT_RETAIN) == 0)
        usleep(50); /* the first one is in the middle of opening when the others come */
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 0, &device));
    CHECK_OK(gn_stream_get_default(device, &stream));
    CHECK_OK(gn_stream_get_id(stream, &opener_ids[index]));
    CHECK_OK(gn_stream_create(device, 0, -100, &stream));
    opener_priorities[index] = gn_stream_get_priority(stream);
    gn_stream_release(stream);
    return NULL;
}

static void openers_start(void)
{
    pthread_t threads[OPENER_COUNT];
    pthread_barrier_init(&openers_barrier, NULL, OPENER_COUNT);
    for (size_t i = 0; i < OPENER_COUNT; i++)
        CHECK(pthread_create(&threads[i], NULL, opener_run, (void *)(uintptr_t)i) == 0);
    for (size_t i = 0; i < OPENER_COUNT; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (size_t i = 0; i < OPENER_COUNT; i++) {
        CHECK(opener_ids[i] != 0 && opener_ids[i] == opener_ids[0]);
        CHECK(opener_priorities[i] == -5); /* the device's range was known */
    }
    openers_fake = fake_control_load(FAKE);
    CHECK_U64(openers_fake.call_count("cuInit"), 1);
    CHECK_U64(openers_fake.call_count(CONTEXT_RETAIN), 1);
}

static void opens_at_once(const char *delay)
{
    environment("GENESIS_CUDA_DRIVER", FAKE);
    environment("FAKE_CUDA_DELAY_US", delay);
    openers_start();
}

/* A device is complete when gn_device_get() returns it, also to the threads that came second. */
static void opens_while_opening(const char *delay)
{
    int count;
    environment("GENESIS_CUDA_DRIVER", FAKE);
    environment("FAKE_CUDA_DELAY_US", delay);
    CHECK_OK(gn_device_count(GN_DEVICE_CUDA, &count));
    openers_fake = fake_control_load(FAKE);
    openers_are_late = true;
    openers_start();
}

static void test_threads_open_at_once(void)
{
    case_run(opens_at_once, "0");
    case_run(opens_at_once, "200");
    case_run(opens_while_opening, "2000");
}

int main(void)
{
    RUN(test_no_library);
    RUN(test_relative_paths);
    RUN(test_driver_that_forks);
    RUN(test_foreign_ids);
    RUN(test_too_old);
    RUN(test_init_fails);
    RUN(test_missing_functions);
    RUN(test_all_ages);
    RUN(test_device_counts);
    RUN(test_threads_open_at_once);
    return check_result();
}
