/*
 * test_cuda_manager.c: the memory manager of GPUs, on the stand-in of tests/fake: its options, and the shutdown.
 *
 * What the options change runs in children with each policy, before this process starts the driver itself; it
 * then has the policy direct, where each block is one call of the driver.
 */
#include "cuda_suite.h"
#include "child.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- the memory manager --------------------------------------------------------------------- */

static void test_out_of_memory(void)
{
    gn_memory_manager *manager;
    gn_memory_statistics before, after;
    void *block, *pointer = &pointer;
    CHECK_OK(gn_memory_manager_get(first, &manager));
    CHECK_TEXT(gn_memory_manager_get_policy(manager), "direct");
    CHECK_OK(gn_memory_alloc(manager, 48 * MIB, NULL, &block));
    CHECK_OK(gn_memory_get_statistics(manager, &before));
    CHECK_STATUS(gn_memory_alloc(manager, 17 * MIB, NULL, &pointer), GN_ERROR_OUT_OF_MEMORY);
    CHECK(pointer == &pointer);
    CHECK_DETAIL("17.00 MiB were asked for");
    CHECK_DETAIL("48.00 MiB are live in 1 block of");
    CHECK_DETAIL("16.00 MiB free of 64.00 MiB");
    CHECK_DETAIL("cuMemAlloc");
    CHECK_DETAIL("CUDA_ERROR_OUT_OF_MEMORY");
    CHECK_OK(gn_memory_get_statistics(manager, &after));
    CHECK_U64(after.out_of_memory_count, before.out_of_memory_count + 1);
    CHECK(after.live_bytes == before.live_bytes && after.alloc_count == before.alloc_count);
    CHECK_OK(gn_memory_alloc(manager, 16 * MIB, NULL, &pointer)); /* and everything goes on */
    CHECK_U64(free_bytes_of(first), 0);
    CHECK_OK(gn_memory_free_sized(manager, pointer, 16 * MIB));
    CHECK_OK(gn_memory_free(manager, block));
    CHECK_STATUS(gn_memory_free(manager, block), GN_ERROR_DOUBLE_FREE);
    CHECK_U64(free_bytes_of(first), TOTAL);
}

/* ---- shutdown ------------------------------------------------------------------------------- */

static void test_shutdown(void)
{
    gn_memory_manager *manager;
    gn_stream *stream;
    void *pointer;
    size_t leaked = 0;
    CHECK_OK(gn_memory_manager_get(first, &manager));
    CHECK_OK(gn_memory_alloc(manager, MIB, NULL, &pointer));
    CHECK_OK(gn_memory_alloc(manager, 0, NULL, &pointer));
    CHECK_OK(gn_stream_create(second, 0, 0, &stream));
    CHECK_OK(gn_shutdown(&leaked));
    CHECK_U64(leaked, 3);
    CHECK_U64(fake.live_allocations(), 0);
    CHECK(!is_active(0) && is_active(1)); /* the stream keeps its device */
    CHECK_OK(gn_stream_synchronize(stream));
    gn_stream_release(stream);
    CHECK_OK(gn_shutdown(&leaked));
    CHECK(leaked == 0 && !is_active(0) && !is_active(1));

    /* The library works again, with the same manager and device: the first use starts it. */
    CHECK_OK(gn_memory_alloc(manager, MIB, NULL, &pointer));
    CHECK(is_active(0) && !is_active(1));
    CHECK_OK(gn_memory_free(manager, pointer));
    devices_open();
    CHECK_OK(gn_shutdown(NULL));
    CHECK_OK(gn_shutdown(NULL)); /* twice is once */
    devices_open();
}

/* An owner of the default stream keeps it over a shutdown. */
static void test_default_stream_owner(void)
{
    gn_stream *stream;
    CHECK_OK(gn_stream_from_handle(first, NULL, &stream));
    CHECK_OK(gn_shutdown(NULL));
    devices_open();
    CHECK_OK(gn_stream_synchronize(stream));
    gn_stream_release(stream);
    CHECK_OK(gn_stream_synchronize(first->default_stream));
}

/* What the driver does not take back stays in the books, and its device stays open. */
static void test_shutdown_with_a_failure(void)
{
    gn_memory_manager *manager;
    gn_memory_statistics now;
    void *blocks[3];
    size_t leaked = 12345;
    CHECK_OK(gn_memory_manager_get(first, &manager));
    for (int i = 0; i < 3; i++)
        CHECK_OK(gn_memory_alloc(manager, 1000, NULL, &blocks[i]));
    fake.fail("cuMemFree", 1, CUDA_ERROR_UNKNOWN, 0);
    CHECK_STATUS(gn_shutdown(&leaked), GN_ERROR_DRIVER);
    CHECK_U64(leaked, 12345);
    CHECK_OK(gn_memory_get_statistics(manager, &now));
    CHECK_U64(fake.live_allocations(), now.live_count);
    CHECK(is_active(0) || now.live_count == 0);
    CHECK_OK(gn_shutdown(&leaked));
    CHECK(leaked <= 1 && fake.live_allocations() == 0 && !is_active(0));
    devices_open();
}

/* A stream of another library that keeps the context alive is taken after a shutdown as before. */
static void test_foreign_stream_after_shutdown(void)
{
    CUcontext context, popped;
    CUstream handle;
    gn_stream *stream;
    CHECK(raw->cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    CHECK(raw->cuCtxPushCurrent(context) == CUDA_SUCCESS);
    CHECK(raw->cuStreamCreateWithPriority(&handle, 0, 0) == CUDA_SUCCESS);
    CHECK(raw->cuCtxPopCurrent(&popped) == CUDA_SUCCESS);
    CHECK_OK(gn_shutdown(NULL));
    CHECK_OK(gn_stream_from_handle(first, handle, &stream));
    gn_stream_release(stream);
    devices_open();
    CHECK(raw->cuCtxPushCurrent(context) == CUDA_SUCCESS);
    CHECK(raw->cuStreamDestroy(handle) == CUDA_SUCCESS);
    CHECK(raw->cuCtxPopCurrent(&popped) == CUDA_SUCCESS);
    CHECK(raw->cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
}

static void *properties_read_often(void *argument)
{
    atomic_bool *is_over = argument;
    gn_device_properties properties;
    while (!atomic_load(is_over)) {
        CHECK_OK(gn_device_get_properties(first, &properties));
        CHECK(properties.name[0] != '\0' && properties.total_memory > 0);
    }
    return NULL;
}

/* A device that is started again is never seen half made. */
static void test_reopening_is_not_seen(void)
{
    atomic_bool is_over = false;
    pthread_t thread;
    CHECK_OK(gn_shutdown(NULL));
    CHECK(pthread_create(&thread, NULL, properties_read_often, &is_over) == 0);
    for (int i = 0; i < 50; i++) {
        CHECK_OK(gn_device_synchronize(first));
        (void)gni_devices_close();
    }
    atomic_store(&is_over, true);
    CHECK(pthread_join(thread, NULL) == 0);
    devices_open();
}

/* ---- options, each in a process of its own, with each policy --------------------------------- */

static const char *const policies[] = {"direct", "pool", "virtual"};

static bool is_direct(const gn_memory_manager *manager)
{
    return strcmp(gn_memory_manager_get_policy(manager), "direct") == 0;
}

static gn_memory_manager *option_manager(const char *policy, const char *name, const char *value)
{
    gn_memory_manager *manager = NULL;
    CHECK(setenv("GENESIS_CUDA_ALLOCATOR", policy, 1) == 0);
    CHECK(setenv(name, value, 1) == 0);
    check_failures = 0;
    devices_open();
    CHECK_OK(gn_memory_manager_get(first, &manager));
    CHECK_TEXT(gn_memory_manager_get_policy(manager), policy);
    return manager;
}

static uint64_t reserved_bytes(gn_memory_manager *manager)
{
    gn_memory_statistics now = {.reserved_bytes = UINT64_MAX};
    CHECK_OK(gn_memory_get_statistics(manager, &now));
    return now.reserved_bytes;
}

/* Calls that bring memory, whatever the policy. */
static long memory_calls(void)
{
    return fake.call_count("cuMemAlloc") + fake.call_count("cuMemCreate");
}

static void option_fraction(void *policy)
{
    void *a, *b;
    gn_memory_manager *manager = option_manager(policy, "GENESIS_CUDA_MEMORY_FRACTION", "0.25");
    CHECK_OK(gn_memory_alloc(manager, 10 * MIB, NULL, &a));
    long calls = memory_calls();
    CHECK(calls > 0);
    CHECK_STATUS(gn_memory_alloc(manager, 6 * MIB + 1, NULL, &b), GN_ERROR_OUT_OF_MEMORY);
    CHECK_DETAIL("GENESIS_CUDA_MEMORY_FRACTION");
    CHECK_U64(memory_calls(), calls);
    CHECK_OK(gn_memory_alloc(manager, 6 * MIB, NULL, &b));
    CHECK_OK(gn_memory_free(manager, a));
    CHECK_OK(gn_memory_alloc(manager, 10 * MIB, NULL, &a));
    CHECK_U64(reserved_bytes(manager), 16 * MIB);
    CHECK_OK(gn_shutdown(NULL));
    exit(check_failures == 0 ? 0 : 1);
}

/* All bytes of a fresh block, and of one whose address was used before. */
static void fresh_bytes_check(gn_memory_manager *manager, unsigned char fresh, unsigned char used)
{
    unsigned char bytes[1001];
    for (int round = 0; round < 2; round++) {
        void *pointer;
        unsigned char expected = round == 0 ? fresh : used;
        CHECK_OK(gn_memory_alloc(manager, sizeof bytes, NULL, &pointer));
        bytes_from(bytes, pointer, sizeof bytes);
        size_t wrong = 0;
        for (size_t i = 0; i < sizeof bytes; i++)
            wrong += bytes[i] != expected;
        CHECK_U64(wrong, 0);
        CHECK_OK(gn_fill(pointer, 0x77, 1, sizeof bytes, first->default_stream));
        CHECK_OK(gn_memory_free(manager, pointer));
    }
}

/* Memory that cannot be filled as promised is given back, not handed out. */
static void fill_fault_check(gn_memory_manager *manager)
{
    static const char *const functions[] = {"cuMemsetD8Async", "cuStreamSynchronize"};
    for (int i = 0; i < 2; i++) {
        void *pointer = NULL;
        CHECK_OK(gn_memory_trim(manager, 0, NULL));
        fake.fail(functions[i], 1, CUDA_ERROR_UNKNOWN, 0);
        CHECK_STATUS(gn_memory_alloc(manager, 100, NULL, &pointer), GN_ERROR_DRIVER);
        CHECK(strstr(gn_error_detail(), functions[i]) != NULL);
        CHECK(pointer == NULL && free_bytes_of(first) == TOTAL);
        CHECK_U64(reserved_bytes(manager), 0);
        fake.fail(NULL, 0, 0, 0);
    }
}

/* What a block holds that was used before: a pool hands out the same bytes again. */
static unsigned char used_byte(const gn_memory_manager *manager, unsigned char fresh)
{
    return is_direct(manager) ? fresh : 0x77;
}

static void option_zero(void *policy)
{
    gn_memory_manager *manager = option_manager(policy, "GENESIS_CUDA_ZERO", "on");
    fresh_bytes_check(manager, 0, used_byte(manager, 0));
    fill_fault_check(manager);
    fresh_bytes_check(manager, 0, used_byte(manager, 0));
    exit(check_failures == 0 ? 0 : 1);
}

static void option_poison(void *policy)
{
    fresh_bytes_check(option_manager(policy, "GENESIS_DEBUG", "poison"), 0xD0, 0xD0);
    exit(check_failures == 0 ? 0 : 1);
}

static void option_none(void *policy)
{
    gn_memory_manager *manager = option_manager(policy, "GENESIS_CUDA_ZERO", "off");
    fresh_bytes_check(manager, 0xA5, used_byte(manager, 0xA5)); /* as the driver gave it */
    exit(check_failures == 0 ? 0 : 1);
}

/* What the driver does not take back stays in the books, and its device stays open. */
static bool shutdown_fault_check(gn_memory_manager *manager, const char *function,
                                 int is_persistent)
{
    void *pointer;
    size_t leaked = 12345;
    CHECK_OK(gn_memory_alloc(manager, 1000, NULL, &pointer));
    CHECK_OK(gn_memory_alloc(manager, 9 * MIB, NULL, &pointer));
    fake.fail(function, 1, CUDA_ERROR_UNKNOWN, is_persistent);
    gn_status status = gn_shutdown(&leaked);
    bool is_struck = fake.fault_count() > 0, is_left = fake.live_allocations() > 0;
    CHECK(status == GN_OK || (is_struck && status == GN_ERROR_DRIVER));
    CHECK_U64(leaked, status == GN_OK ? 2 : 12345);
    CHECK(is_active(0) == is_left && (status != GN_OK || !is_left));
    CHECK(is_left || !is_struck || !is_persistent);
    CHECK_U64(reserved_bytes(manager), TOTAL - free_bytes_of(first));
    fake.fail(NULL, 0, 0, 0);
    CHECK_OK(gn_shutdown(NULL));
    CHECK_U64(fake.live_allocations(), 0);
    CHECK(!is_active(0));
    CHECK_U64(reserved_bytes(manager), 0);
    return is_struck;
}

static void shutdown_faults(void *policy)
{
    static const char *const functions[] = {"cuMemFree", "cuMemUnmap", "cuMemRelease",
                                            "cuMemAddressFree"};
    gn_memory_manager *manager = option_manager(policy, "GENESIS_LOG", "error");
    int faults = 0;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        for (int is_persistent = 0; is_persistent < 2; is_persistent++)
            faults += shutdown_fault_check(manager, functions[i], is_persistent);
    CHECK_U64(faults, strcmp(policy, "virtual") == 0 ? 6 : 2);
    exit(check_failures == 0 ? 0 : 1);
}

static void test_options(void)
{
    static struct child_result result;
    void (*const bodies[])(void *) = {option_fraction, option_zero, option_poison, option_none,
                                      shutdown_faults};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
            child_run(bodies[i], (void *)(uintptr_t)policies[p], &result);
            if (!child_is_ok(&result))
                fprintf(stderr, "    with the policy %s\n", policies[p]);
        }
    }
}

int main(void)
{
    CHECK(setenv("GENESIS_CUDA_DRIVER", FAKE, 1) == 0);
    RUN(test_options); /* first: its children start the driver themselves */
    CHECK(setenv("GENESIS_CUDA_ALLOCATOR", "direct", 1) == 0);
    devices_open();
    RUN(test_out_of_memory);
    RUN(test_shutdown);
    RUN(test_default_stream_owner);
    RUN(test_shutdown_with_a_failure);
    RUN(test_foreign_stream_after_shutdown);
    RUN(test_reopening_is_not_seen);
    return check_result();
}
