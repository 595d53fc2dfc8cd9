/*
 * test_cuda.c: GPUs as devices, on the stand-in of tests/fake with two devices of 64 MiB.
 *
 * Every slot is used, its data are verified, and the calling thread's contexts must be afterwards
 * what they were before. What the options change runs in children with each policy, before this process
 * starts the driver itself; it then has the policy direct, where each block is one call of the driver.
 * Failures that the driver reports are in test_cuda_faults.c.
 */
#include "check.h"
#include "child.h"

#include "base/host.h"
#include "device/cuda/cuda.h"
#include "device/device.h"
#include "fake/fake_cuda.h"
#include "genesis/genesis.h"

#include <stdatomic.h>
#include <pthread.h>

#define FAKE GENESIS_FAKE_DIRECTORY "/libgenesis_fake.so"
#define MIB ((size_t)1 << 20)
#define TOTAL (64 * MIB)
#define PAGE (2 * MIB) /* the stand-in's granularity */

static struct fake_control fake;
static const struct gni_cuda_functions *raw; /* the driver as another library would use it */
static gn_device *first, *second;
static const struct gni_device_ops *ops;

static void devices_open(void)
{
    const struct gni_cuda_driver *driver;
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 0, &first));
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 1, &second));
    CHECK_OK(gni_cuda_driver_open(&driver));
    raw = &driver->functions;
    ops = first->ops;
    fake = fake_control_load(FAKE);
}

static size_t free_bytes_of(gn_device *device)
{
    size_t free_bytes = 0, total_bytes = 0;
    CHECK_OK(gn_device_get_memory_info(device, &free_bytes, &total_bytes));
    CHECK_U64(total_bytes, TOTAL);
    return free_bytes;
}

static void bytes_to(void *device_address, const void *host, size_t nbytes)
{
    CHECK_OK(gn_copy(device_address, host, nbytes, first->default_stream));
}

static void bytes_from(void *host, const void *device_address, size_t nbytes)
{
    CHECK_OK(gn_copy(host, device_address, nbytes, first->default_stream));
}

static void *at(void *pointer, size_t offset)
{
    return (char *)pointer + offset;
}

/* ---- the device ----------------------------------------------------------------------------- */

static void test_properties(void)
{
    gn_device_properties properties;
    CHECK_OK(gn_device_get_properties(first, &properties));
    CHECK_TEXT(properties.name, "Fake 0");
    CHECK_TEXT(properties.uuid, "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");
    CHECK_TEXT(properties.pci_bus_id, "0000:01:00.0");
    CHECK_U64(properties.total_memory, TOTAL);
    CHECK(properties.major == 9 && properties.minor == 0);
    CHECK(properties.multi_processor_count == 132 && properties.warp_size == 32);
    CHECK(properties.max_threads_per_block == 1024);
    CHECK(properties.max_threads_per_multi_processor == 2048);
    CHECK(properties.registers_per_multi_processor == 65536);
    CHECK_U64(properties.shared_memory_per_block, 48 * 1024);
    CHECK_U64(properties.shared_memory_per_block_optin, 227 * 1024);
    CHECK_U64(properties.shared_memory_per_multi_processor, 228 * 1024);
    CHECK_U64(properties.l2_cache_size, 50 * MIB);
    CHECK(properties.clock_rate_khz == 1980000 && properties.memory_clock_rate_khz == 2619000);
    CHECK(properties.memory_bus_width_bits == 5120 && !properties.is_integrated);
    CHECK(properties.has_virtual_memory && properties.has_stream_ordered_memory);
    CHECK_OK(gn_device_get_properties(second, &properties));
    CHECK_TEXT(properties.name, "Fake 1");
    CHECK_TEXT(properties.uuid, "GPU-e0e1e2e3-e4e5-e6e7-e8e9-eaebecedeeef");
    CHECK_TEXT(gni_device_label(second).text, "cuda:1");
    CHECK_OK(gn_device_synchronize(first));
}

static void test_device_is_the_same(void)
{
    gn_device *again;
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 0, &again));
    CHECK(again == first && first != second);
    CHECK(gn_device_get_index(second) == 1 && gn_device_get_type(second) == GN_DEVICE_CUDA);
    CHECK(fake.is_active(0));
}

/* ---- memory --------------------------------------------------------------------------------- */

static void test_memory(void)
{
    void *memory, *other;
    size_t before = free_bytes_of(first), before_second = free_bytes_of(second);
    CHECK_OK(ops->memory_alloc(first, 3 * MIB, &memory));
    CHECK_U64(free_bytes_of(first), before - 3 * MIB);
    CHECK_OK(ops->memory_alloc(second, MIB, &other));
    CHECK_U64(free_bytes_of(second), before_second - MIB);
    CHECK_STATUS(ops->memory_alloc(first, TOTAL, &memory), GN_ERROR_OUT_OF_MEMORY);
    CHECK_STATUS(ops->memory_free(first, other, MIB), GN_ERROR_INVALID_VALUE); /* not its own */
    CHECK_DETAIL("cuMemFree");
    CHECK_OK(ops->memory_free(first, memory, 3 * MIB));
    CHECK_STATUS(ops->memory_free(first, memory, 3 * MIB), GN_ERROR_INVALID_VALUE);
    CHECK_OK(ops->memory_free(second, other, MIB));
    CHECK_U64(free_bytes_of(first), before);
    CHECK_U64(free_bytes_of(second), before_second);
}

static void test_copies(void)
{
    void *a, *b, *far;
    unsigned char from[5000], to[5000];
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (unsigned char)(i * 7 + 1);
    CHECK_OK(ops->memory_alloc(first, 5000, &a));
    CHECK_OK(ops->memory_alloc(first, 6000, &b));
    CHECK_OK(ops->memory_alloc(second, 6000, &far));
    bytes_to(a, from, 5000);
    CHECK_OK(gn_copy(at(b, 1), a, 5000, first->default_stream));
    CHECK_OK(gn_copy(far, at(b, 1), 5000, second->default_stream)); /* between devices */
    bytes_from(to, far, 5000);
    CHECK(memcmp(to, from, 5000) == 0);
    CHECK_OK(gn_copy(to, from, 5000, first->default_stream)); /* on the host */
    CHECK_STATUS(gn_copy(to, at(a, 1), 5000, first->default_stream), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("cuMemcpyAsync");
    CHECK_OK(ops->memory_free(first, a, 5000));
    CHECK_STATUS(gn_copy(to, a, 1, first->default_stream), GN_ERROR_INVALID_VALUE);
    CHECK_OK(gn_copy(NULL, NULL, 0, first->default_stream));
    CHECK_OK(ops->memory_free(first, b, 6000));
    CHECK_OK(ops->memory_free(second, far, 6000));
}

/* Fills part of a block and compares all of it with a model. */
static void fill_check(void *memory, uint32_t value, size_t size, size_t offset, size_t count)
{
    unsigned char expected[256], got[256];
    memset(expected, 0x11, sizeof expected);
    for (size_t i = 0; i < count; i++)
        memcpy(expected + offset + i * size, &value, size); /* the low bytes come first */
    bytes_to(memory, memset(got, 0x11, sizeof got), sizeof got);
    CHECK_OK(gn_fill(at(memory, offset), value, size, count, first->default_stream));
    bytes_from(got, memory, sizeof got);
    CHECK(memcmp(got, expected, sizeof got) == 0);
}

static void test_fills(void)
{
    static const size_t counts[] = {0, 1, 3, 7, 31, 33};
    void *memory;
    CHECK_OK(ops->memory_alloc(first, 256, &memory));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (size_t size = 1; size <= 4; size *= 2) {
            fill_check(memory, 0xAABBCCDD, size, 0, counts[i]);
            fill_check(memory, 0x01020304, size, 5 * size, counts[i]);
        }
    }
    CHECK_STATUS(gn_fill(memory, 0, 4, 65, first->default_stream), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("cuMemsetD32Async");
    CHECK_OK(ops->memory_free(first, memory, 256));
}

static void test_stream_ordered(void)
{
    gn_stream *stream;
    void *memory;
    int from = 42, to = 0;
    size_t before = free_bytes_of(second);
    CHECK_OK(gn_stream_create(second, GN_STREAM_NON_BLOCKING, 0, &stream));
    CHECK_OK(ops->memory_alloc_async(stream, sizeof from, &memory));
    CHECK_OK(gn_copy(memory, &from, sizeof from, stream));
    CHECK_OK(gn_copy(&to, memory, sizeof to, stream));
    CHECK(to == 42);
    CHECK_OK(ops->memory_free_async(stream, memory));
    CHECK_STATUS(ops->memory_free_async(stream, memory), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(ops->memory_alloc_async(stream, TOTAL + 1, &memory), GN_ERROR_OUT_OF_MEMORY);
    CHECK_U64(free_bytes_of(second), before);
    gn_stream_release(stream);
}

/* ---- virtual memory ------------------------------------------------------------------------- */

static void test_virtual_memory(void)
{
    size_t granularity = 0, before = free_bytes_of(first);
    void *address;
    uint64_t handle;
    char from[] = "seen at two addresses", to[sizeof from] = "";
    CHECK_OK(ops->virtual_granularity(first, &granularity));
    CHECK_U64(granularity, PAGE);
    CHECK_OK(ops->virtual_reserve(first, 4 * PAGE, &address));
    CHECK_U64(free_bytes_of(first), before); /* addresses are not memory */
    CHECK_OK(ops->physical_create(first, PAGE, &handle));
    CHECK_U64(free_bytes_of(first), before - PAGE);
    CHECK_OK(ops->virtual_map(first, address, PAGE, handle));
    CHECK_OK(ops->virtual_map(first, at(address, 2 * PAGE), PAGE, handle));
    CHECK_STATUS(gn_copy(address, from, sizeof from, first->default_stream),
                 GN_ERROR_INVALID_VALUE); /* nobody granted access */
    CHECK_OK(ops->virtual_grant(first, address, PAGE));
    CHECK_OK(ops->virtual_grant(first, at(address, 2 * PAGE), PAGE));
    bytes_to(at(address, 100), from, sizeof from);
    bytes_from(to, at(address, 2 * PAGE + 100), sizeof to);
    CHECK_TEXT(to, from);
    CHECK_OK(ops->physical_release(first, handle)); /* the mappings keep it */
    CHECK_OK(ops->virtual_unmap(first, address, PAGE));
    CHECK_U64(free_bytes_of(first), before - PAGE);
    bytes_from(to, at(address, 2 * PAGE + 100), sizeof to);
    CHECK_TEXT(to, from);
    CHECK_OK(ops->virtual_unmap(first, at(address, 2 * PAGE), PAGE));
    CHECK_U64(free_bytes_of(first), before);
    CHECK_OK(ops->virtual_release(first, address, 4 * PAGE));
}

static void test_virtual_memory_refusals(void)
{
    void *address, *none;
    uint64_t handle, other;
    CHECK_STATUS(ops->virtual_reserve(first, PAGE + 1, &none), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(ops->virtual_reserve(first, (size_t)1 << 50, &none), GN_ERROR_OUT_OF_MEMORY);
    CHECK_STATUS(ops->physical_create(first, PAGE / 2, &handle), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(ops->physical_create(first, TOTAL + PAGE, &handle), GN_ERROR_OUT_OF_MEMORY);
    CHECK_DETAIL("cuMemCreate");
    CHECK_OK(ops->virtual_reserve(first, 2 * PAGE, &address));
    CHECK_OK(ops->physical_create(first, PAGE, &handle));
    CHECK_OK(ops->physical_create(first, PAGE, &other));
    CHECK_STATUS(ops->virtual_map(first, at(address, 2 * PAGE), PAGE, handle),
                 GN_ERROR_INVALID_VALUE);
    CHECK_OK(ops->virtual_map(first, address, PAGE, handle));
    CHECK_STATUS(ops->virtual_map(first, address, PAGE, other), GN_ERROR_INVALID_VALUE);
    CHECK_OK(ops->virtual_map(first, at(address, PAGE), PAGE, other));
    CHECK_STATUS(ops->virtual_unmap(first, address, PAGE / 2), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(ops->virtual_grant(first, address, 3 * PAGE), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(ops->virtual_release(first, address, 2 * PAGE), GN_ERROR_INVALID_VALUE);
    CHECK_OK(ops->virtual_grant(first, address, 2 * PAGE));
    CHECK_OK(gn_fill(at(address, PAGE - 8), 7, 4, 4, first->default_stream)); /* across the two */
    CHECK_OK(ops->virtual_unmap(first, address, 2 * PAGE));
    CHECK_STATUS(gn_fill(address, 7, 4, 1, first->default_stream), GN_ERROR_INVALID_VALUE);
    CHECK_OK(ops->virtual_release(first, address, 2 * PAGE));
    CHECK_OK(ops->physical_release(first, handle));
    CHECK_OK(ops->physical_release(first, other));
    CHECK_STATUS(ops->physical_release(first, other), GN_ERROR_INVALID_VALUE);
    CHECK_U64(fake.live_allocations(), 0);
}

/* ---- the host's memory ---------------------------------------------------------------------- */

static void test_host_memory(void)
{
    static char own[4096];
    void *pinned, *empty;
    CHECK_OK(gn_host_alloc(first, 1000, &pinned));
    CHECK_OK(gn_host_alloc(first, 0, &empty)); /* an address of its own, too */
    CHECK(empty != NULL && empty != pinned);
    memset(pinned, 1, 1000);
    CHECK_OK(gn_fill(pinned, 9, 1, 1000, first->default_stream));
    CHECK(((char *)pinned)[999] == 9);
    CHECK_OK(gn_host_free(first, pinned));
    CHECK_OK(gn_host_free(first, empty));
    CHECK_OK(gn_host_free(first, NULL));
    CHECK_STATUS(gn_host_free(first, own), GN_ERROR_INVALID_POINTER);
    CHECK_OK(gn_host_register(first, own, sizeof own));
    CHECK_STATUS(gn_host_free(first, own), GN_ERROR_INVALID_POINTER); /* it is not allocated */
    CHECK_STATUS(gn_host_unregister(second, own), GN_ERROR_INVALID_POINTER); /* nor the second's */
    CHECK_STATUS(gn_host_register(second, own + 1, 1), GN_ERROR_DRIVER);
    CHECK_DETAIL("CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED");
    CHECK_OK(gn_host_unregister(first, own));
    CHECK_STATUS(gn_host_unregister(first, own), GN_ERROR_INVALID_POINTER);
    CHECK_DETAIL("gn_host_register");
    CHECK_STATUS(gn_host_register(first, own, 0), GN_ERROR_INVALID_VALUE);
    CHECK_U64(fake.live_allocations(), 0);
}

/* ---- streams -------------------------------------------------------------------------------- */

static void test_stream_priorities(void)
{
    static const int asked[] = {0, -3, -5, -6, INT32_MIN, 1, INT32_MAX};
    static const int taken[] = {0, -3, -5, -5, -5, 0, 0};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        gn_stream *stream;
        int priority = 7;
        CHECK_OK(gn_stream_create(first, i % 2 ? GN_STREAM_NON_BLOCKING : 0, asked[i], &stream));
        CHECK(gn_stream_get_priority(stream) == taken[i]);
        CHECK(gn_stream_get_device(stream) == first);
        CUcontext context;
        CHECK(raw->cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
        CHECK(raw->cuCtxPushCurrent(context) == CUDA_SUCCESS);
        CHECK(raw->cuStreamGetPriority(gn_stream_get_handle(stream), &priority) == CUDA_SUCCESS);
        CHECK(raw->cuCtxPopCurrent(&context) == CUDA_SUCCESS);
        CHECK(raw->cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
        CHECK(fake.stream_flags(gn_stream_get_handle(stream)) ==
              (i % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
        CHECK(priority == taken[i]);
        gn_stream_release(stream);
    }
}

static void test_stream_life(void)
{
    gn_stream *stream;
    uint64_t id = 0, other_id = 0, default_id = 0;
    bool is_capturing = true;
    int objects = fake.live_objects();
    CHECK_OK(gn_stream_create(first, 0, 0, &stream));
    CHECK_OK(gn_stream_get_id(stream, &id));
    CHECK_OK(gn_stream_get_id(first->default_stream, &default_id));
    CHECK_OK(gn_stream_get_id(second->default_stream, &other_id));
    CHECK(id != default_id && id != other_id && default_id != other_id);
    CHECK(gn_stream_get_handle(stream) != NULL);
    CHECK(gn_stream_get_handle(first->default_stream) == NULL);
    CHECK_OK(gn_stream_query(stream));
    CHECK_OK(gn_stream_synchronize(stream));
    CHECK_OK(gn_stream_is_capturing(stream, &is_capturing));
    CHECK(!is_capturing);
    fake.capture(gn_stream_get_handle(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CHECK_OK(gn_stream_is_capturing(stream, &is_capturing));
    CHECK(is_capturing);
    CHECK(gn_stream_retain(stream) == stream);
    gn_stream_release(stream);
    CHECK_OK(gn_stream_query(stream)); /* one owner is left */
    gn_stream_release(stream);
    gn_stream_release(NULL);
    CHECK_U64(fake.live_objects(), objects);
}

static void test_foreign_streams(void)
{
    gn_stream *stream, *per_thread;
    CUstream handle;
    CUcontext context;
    uint64_t id = 0, default_id = 0, per_thread_id = 0;
    unsigned long long driver_id = 0;
    for (uintptr_t number = 0; number <= 1; number++) { /* both mean the default stream */
        CHECK_OK(gn_stream_from_handle(first, (void *)number, &stream));
        CHECK(stream == first->default_stream);
        gn_stream_release(stream);
    }
    CHECK_OK(gn_stream_from_handle(first, (void *)2, &per_thread));
    CHECK_OK(gn_stream_get_id(per_thread, &per_thread_id));
    CHECK_OK(gn_stream_get_id(first->default_stream, &default_id));
    CHECK(per_thread_id != default_id && gn_stream_get_handle(per_thread) == (void *)2);
    CHECK_OK(gn_stream_synchronize(per_thread));

    CHECK(raw->cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    CHECK(raw->cuCtxPushCurrent(context) == CUDA_SUCCESS);
    CHECK(raw->cuStreamCreateWithPriority(&handle, CU_STREAM_NON_BLOCKING, -2) == CUDA_SUCCESS);
    CHECK(raw->cuStreamGetId(handle, &driver_id) == CUDA_SUCCESS);
    CHECK_OK(gn_stream_from_handle(first, handle, &stream));
    CHECK(gn_stream_get_handle(stream) == (void *)handle && gn_stream_get_priority(stream) == -2);
    CHECK_OK(gn_stream_get_id(stream, &id));
    CHECK_U64(id, driver_id);
    CHECK_OK(gn_stream_synchronize(stream));
    gn_stream_release(stream);
    CHECK(raw->cuStreamQuery(handle) == CUDA_SUCCESS); /* it is not ours to destroy */
    CHECK_STATUS(gn_stream_from_handle(second, handle, &stream), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("cuda:1");
    CHECK(raw->cuStreamDestroy(handle) == CUDA_SUCCESS);
    CHECK_STATUS(gn_stream_from_handle(first, handle, &stream), GN_ERROR_DRIVER);
    CHECK_DETAIL("CUDA_ERROR_INVALID_HANDLE");
    CHECK(raw->cuCtxPopCurrent(&context) == CUDA_SUCCESS);
    CHECK(raw->cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
    gn_stream_release(per_thread);
}

/* Nothing that we ask on our own account ends somebody's capture. */
static void test_captured_streams(void)
{
    gn_stream *stream, *foreign;
    uint64_t id = 7, own_id = 0;
    bool is_capturing = false;
    CHECK_OK(gn_stream_create(first, 0, 0, &stream));
    CHECK_OK(gn_stream_get_id(stream, &own_id));
    void *handle = gn_stream_get_handle(stream);
    fake.capture(handle, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CHECK_OK(gn_stream_from_handle(first, handle, &foreign));
    CHECK_STATUS(gn_stream_get_id(foreign, &id), GN_ERROR_CAPTURE);
    CHECK_U64(id, 7);
    CHECK_OK(gn_stream_get_id(stream, &id)); /* known before */
    CHECK_U64(id, own_id);
    CHECK_U64(fake.capture(handle, -1), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    fake.capture(handle, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    CHECK_OK(gn_stream_is_capturing(foreign, &is_capturing));
    CHECK(is_capturing);
    fake.capture(handle, CU_STREAM_CAPTURE_STATUS_NONE);
    CHECK_OK(gn_stream_get_id(foreign, &id));
    CHECK_U64(id, own_id);
    gn_stream_release(foreign);
    gn_stream_release(stream);
}

/* The per-thread stream is another one in each thread, and a thread's current stream its own. */
static void *stream_thread(void *context)
{
    gn_stream *stream, *current;
    CHECK_OK(gn_stream_get_id(context, &(uint64_t){0}));
    CHECK_OK(gn_stream_get_current(first, &current));
    CHECK(current == first->default_stream);
    CHECK_OK(gn_stream_create(first, 0, 0, &stream));
    CHECK_OK(gn_stream_set_current(stream));
    gn_stream_release(stream); /* the thread owns it until it ends */
    CHECK_OK(gn_stream_get_current(first, &current));
    CHECK(current == stream);
    CHECK_OK(gn_stream_get_current(second, &current));
    CHECK(current == second->default_stream);
    return NULL;
}

/* A thread keeps the streams of GPUs that few machines have apart, and lets them go as well. */
static void *far_thread(void *context)
{
    gn_stream *stream = context, *current;
    CHECK_OK(gn_stream_get_current(stream->device, &current));
    CHECK(current == stream->device->default_stream);
    gni_host_fail_after(1);
    CHECK_STATUS(gn_stream_set_current(stream), GN_ERROR_OUT_OF_HOST_MEMORY);
    gni_host_fail_after(-1);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(gn_stream_set_current(stream));
        CHECK_U64(atomic_load(&stream->references), 2);
    }
    CHECK_OK(gn_stream_get_current(stream->device, &current));
    CHECK(current == stream);
    CHECK_OK(gn_stream_get_current(first, &current));
    CHECK(current == first->default_stream);
    return NULL;
}

static void test_streams_of_many_devices(void)
{
    size_t live = gni_host_live_count();
    gn_device far = {.type = GN_DEVICE_CUDA,
                     .index = GNI_DEVICE_MAX - 1, /* as if there were so many */
                     .default_stream = first->default_stream};
    gn_stream stream;
    gni_stream_init(&stream, &far, GNI_STREAM_OWNED);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, far_thread, &stream) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_U64(atomic_load(&stream.references), 1);
    CHECK_U64(gni_host_live_count(), live);
}

static void *id_thread(void *context)
{
    uint64_t *id = calloc(1, sizeof *id);
    CHECK_OK(gn_stream_get_id(context, id));
    return id;
}

static void test_streams_of_threads(void)
{
    pthread_t thread;
    gn_stream *per_thread, *current;
    uint64_t here = 0;
    void *there = NULL;
    CHECK_OK(gn_stream_from_handle(first, (void *)2, &per_thread));
    int objects = fake.live_objects();
    CHECK(pthread_create(&thread, NULL, stream_thread, per_thread) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_U64(fake.live_objects(), objects);
    CHECK(pthread_create(&thread, NULL, id_thread, per_thread) == 0);
    CHECK(pthread_join(thread, &there) == 0);
    CHECK_OK(gn_stream_get_id(per_thread, &here));
    CHECK(here != *(uint64_t *)there);
    free(there);
    CHECK_OK(gn_stream_set_current(per_thread));
    CHECK_OK(gn_stream_get_current(first, &current));
    CHECK(current == per_thread);
    CHECK_OK(gn_stream_set_current(first->default_stream));
    gn_stream_release(per_thread);
}

/* ---- events --------------------------------------------------------------------------------- */

static void test_events(void)
{
    gn_event *start, *end, *plain, *far;
    gn_stream *stream;
    float milliseconds = -1;
    CHECK_OK(gn_stream_create(first, 0, 0, &stream));
    CHECK_OK(gn_event_create(first, GN_EVENT_TIMING, &start));
    CHECK_OK(gn_event_create(first, GN_EVENT_TIMING | GN_EVENT_BLOCKING_SYNC, &end));
    CHECK_OK(gn_event_create(first, 0, &plain));
    CHECK_OK(gn_event_create(second, 0, &far));
    CHECK(gn_event_get_device(far) == second && gn_event_get_handle(far) != NULL);
    CHECK_OK(gn_event_query(start)); /* never recorded: complete */
    CHECK_STATUS(gn_event_elapsed(start, end, &milliseconds), GN_ERROR_DRIVER);
    CHECK_DETAIL("cuEventElapsedTime");
    CHECK_OK(gn_event_record(start, stream));
    CHECK_OK(gn_event_record(end, first->default_stream));
    CHECK_OK(gn_event_synchronize(end));
    CHECK_OK(gn_event_elapsed(start, end, &milliseconds));
    CHECK(milliseconds >= 0 && milliseconds < 1e4f);
    CHECK_STATUS(gn_event_elapsed(start, plain, &milliseconds), GN_ERROR_INVALID_VALUE);
    CHECK_OK(gn_event_record(far, second->default_stream));
    CHECK_OK(gn_stream_wait_event(stream, plain));
    CHECK_OK(gn_stream_wait_event(stream, far)); /* a GPU may wait for another */
    CHECK_STATUS(gn_event_record(far, stream), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("cuda:1 and cuda:0");
    fake.fail("cuEventQuery", 1, CUDA_ERROR_NOT_READY, 0);
    CHECK_STATUS(gn_event_query(end), GN_ERROR_NOT_READY);
    fake.fail("cuStreamQuery", 1, CUDA_ERROR_NOT_READY, 0);
    CHECK_STATUS(gn_stream_query(stream), GN_ERROR_NOT_READY);
    CHECK_DETAIL("cuda:1 and cuda:0"); /* not ready is an answer: the detail stays */
    CHECK_OK(gn_stream_query(stream));
    gn_event_destroy(start);
    gn_event_destroy(end);
    gn_event_destroy(plain);
    gn_event_destroy(far);
    gn_event_destroy(NULL);
    gn_stream_release(stream);
    CHECK_U64(fake.live_objects(), 0);
}

/* ---- kernels -------------------------------------------------------------------------------- */

static void test_modules(void)
{
    struct gni_module module;
    struct gni_function function, none;
    struct gni_function_properties properties;
    void *memory;
    int numbers[100] = {0}, n = 99;
    CHECK_STATUS(ops->module_load(first, "no image", &module), GN_ERROR_DRIVER);
    CHECK_DETAIL("CUDA_ERROR_INVALID_IMAGE");
    CHECK_OK(ops->module_load(first, "fake:add_one", &module));
    CHECK_STATUS(ops->function_find(&module, "add_two", &none), GN_ERROR_DRIVER);
    CHECK_DETAIL("CUDA_ERROR_NOT_FOUND");
    CHECK_OK(ops->function_find(&module, "add_one", &function));
    CHECK_OK(ops->function_properties(&function, &properties));
    CHECK(properties.max_threads_per_block == 1024 && properties.register_count == 24);
    CHECK(properties.static_shared_bytes == 512 && properties.local_bytes == 16);

    CHECK_OK(ops->memory_alloc(first, sizeof numbers, &memory));
    bytes_to(memory, numbers, sizeof numbers);
    struct gni_launch launch = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
    launch.arguments = (void *[]){&memory, &n};
    launch.shared_bytes = 48 * 1024 + 1;
    gn_stream *stream = first->default_stream;
    CHECK_STATUS(ops->function_launch(&function, stream, &launch), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("cuLaunchKernel");
    CHECK_OK(ops->function_allow_shared(&function, launch.shared_bytes));
    CHECK_OK(ops->function_launch(&function, stream, &launch));
    launch.shared_bytes = (size_t)1 << 33;
    CHECK_STATUS(ops->function_launch(&function, stream, &launch), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(ops->function_allow_shared(&function, (size_t)1 << 33), GN_ERROR_INVALID_VALUE);
    launch.shared_bytes = 0;
    CHECK_OK(ops->function_launch(&function, stream, &launch));
    bytes_from(numbers, memory, sizeof numbers);
    CHECK(numbers[0] == 2 && numbers[98] == 2 && numbers[99] == 0);
    CHECK_OK(ops->memory_free(first, memory, sizeof numbers));
    CHECK_OK(ops->module_unload(&module));
    CHECK_U64(fake.live_objects(), 0);
}

/* ---- contexts ------------------------------------------------------------------------------- */

/* A call leaves the calling thread's contexts as they were. */
#define ENTRY(call)                                                 \
    do {                                                            \
        CUcontext entry_before = NULL, entry_after = NULL;          \
        int entry_depth = fake.context_depth();                     \
        CHECK(raw->cuCtxGetCurrent(&entry_before) == CUDA_SUCCESS); \
        CHECK_OK(call);                                             \
        CHECK(raw->cuCtxGetCurrent(&entry_after) == CUDA_SUCCESS);  \
        CHECK(entry_before == entry_after);                         \
        CHECK_U64(fake.context_depth(), entry_depth);               \
    } while (0)

static void entries_bytes(void)
{
    static char own[64];
    char host[64];
    void *memory, *pinned;
    gn_memory_manager *manager;
    gn_stream *stream = first->default_stream;
    size_t free_bytes, total_bytes;
    ENTRY(gn_device_get_memory_info(first, &free_bytes, &total_bytes));
    ENTRY(gn_device_synchronize(first));
    ENTRY(gn_memory_manager_get(first, &manager));
    ENTRY(gn_memory_alloc(manager, 64, NULL, &memory));
    ENTRY(gn_copy(memory, host, 64, stream));
    ENTRY(gn_fill(memory, 1, 1, 64, stream));
    ENTRY(gn_fill(memory, 1, 2, 32, stream));
    ENTRY(gn_fill(memory, 1, 4, 16, stream));
    ENTRY(gn_memory_free(manager, memory));
    ENTRY(ops->memory_alloc_async(stream, 64, &memory));
    ENTRY(ops->memory_free_async(stream, memory));
    ENTRY(gn_host_alloc(first, 64, &pinned));
    ENTRY(gn_host_free(first, pinned));
    ENTRY(gn_host_register(first, own, 64));
    ENTRY(gn_host_unregister(first, own));
}

static void entries_virtual(void)
{
    size_t granularity;
    void *address;
    uint64_t handle;
    ENTRY(ops->virtual_granularity(first, &granularity));
    ENTRY(ops->virtual_reserve(first, PAGE, &address));
    ENTRY(ops->physical_create(first, PAGE, &handle));
    ENTRY(ops->virtual_map(first, address, PAGE, handle));
    ENTRY(ops->virtual_grant(first, address, PAGE));
    ENTRY(ops->virtual_unmap(first, address, PAGE));
    ENTRY(ops->physical_release(first, handle));
    ENTRY(ops->virtual_release(first, address, PAGE));
}

static gn_status entry_release(gn_stream *stream)
{
    gn_stream_release(stream);
    return GN_OK;
}

static gn_status entry_destroy(gn_event *event)
{
    gn_event_destroy(event);
    return GN_OK;
}

static void entries_streams(void)
{
    gn_stream *stream, *foreign;
    gn_event *start, *end;
    bool is_capturing;
    uint64_t id;
    float milliseconds;
    ENTRY(gn_stream_create(first, 0, 0, &stream));
    ENTRY(gn_stream_from_handle(first, gn_stream_get_handle(stream), &foreign));
    ENTRY(entry_release(foreign));
    ENTRY(gn_stream_from_handle(first, (void *)2, &foreign));
    ENTRY(gn_stream_get_id(foreign, &id));
    ENTRY(entry_release(foreign));
    ENTRY(gn_event_create(first, GN_EVENT_TIMING, &start));
    ENTRY(gn_event_create(first, GN_EVENT_TIMING, &end));
    ENTRY(gn_event_record(start, stream));
    ENTRY(gn_event_record(end, first->default_stream));
    ENTRY(gn_event_query(start));
    ENTRY(gn_event_synchronize(start));
    ENTRY(gn_event_elapsed(start, end, &milliseconds));
    ENTRY(gn_stream_wait_event(stream, start));
    ENTRY(gn_stream_query(stream));
    ENTRY(gn_stream_synchronize(stream));
    ENTRY(gn_stream_is_capturing(stream, &is_capturing));
    ENTRY(entry_destroy(start));
    ENTRY(entry_destroy(end));
    ENTRY(entry_release(stream));
}

static void entries_kernels(void)
{
    struct gni_module module;
    struct gni_function function;
    struct gni_function_properties properties;
    struct gni_launch launch = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    ENTRY(ops->module_load(first, "fake:nothing", &module));
    ENTRY(ops->function_find(&module, "nothing", &function));
    ENTRY(ops->function_properties(&function, &properties));
    ENTRY(ops->function_allow_shared(&function, 100));
    ENTRY(ops->function_launch(&function, first->default_stream, &launch));
    ENTRY(ops->module_unload(&module));
}

/* The same with nothing current, with another device's context and with the device's own. */
static void test_contexts_are_restored(void)
{
    CHECK_U64(fake.context_depth(), 0);
    for (int device = -1; device <= 1; device++) {
        CUcontext context;
        if (device >= 0) {
            CHECK(raw->cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS);
            CHECK(raw->cuCtxPushCurrent(context) == CUDA_SUCCESS);
        }
        entries_bytes();
        entries_virtual();
        entries_streams();
        entries_kernels();
        if (device >= 0) {
            CHECK(raw->cuCtxPopCurrent(&context) == CUDA_SUCCESS);
            CHECK(raw->cuDevicePrimaryCtxRelease(device) == CUDA_SUCCESS);
        }
    }
    CHECK_U64(fake.live_objects() + fake.live_allocations(), 0);
}

/* ---- arguments ------------------------------------------------------------------------------ */

#define INVALID(call) CHECK_STATUS(call, GN_ERROR_INVALID_VALUE)
#define OVERFLOW_(call) CHECK_STATUS(call, GN_ERROR_OVERFLOW)

static void arguments_null(gn_stream *stream, gn_event *event)
{
    gn_stream *made;
    gn_event *made_event;
    void *pointer;
    size_t bytes;
    uint64_t id;
    bool is_capturing;
    float milliseconds;
    gn_device_properties properties;
    INVALID(gn_device_count(GN_DEVICE_CUDA, NULL));
    INVALID(gn_device_get(GN_DEVICE_CUDA, 0, NULL));
    INVALID(gn_device_get_properties(NULL, &properties));
    INVALID(gn_device_get_properties(first, NULL));
    INVALID(gn_device_get_memory_info(first, NULL, &bytes));
    INVALID(gn_device_get_memory_info(NULL, &bytes, &bytes));
    INVALID(gn_device_synchronize(NULL));
    INVALID(gn_stream_create(NULL, 0, 0, &made));
    INVALID(gn_stream_create(first, 0, 0, NULL));
    INVALID(gn_stream_create(first, 8, 0, &made));
    INVALID(gn_stream_from_handle(NULL, NULL, &made));
    INVALID(gn_stream_from_handle(first, NULL, NULL));
    INVALID(gn_stream_get_default(first, NULL));
    INVALID(gn_stream_get_current(NULL, &made));
    INVALID(gn_stream_set_current(NULL));
    INVALID(gn_stream_get_id(NULL, &id));
    INVALID(gn_stream_query(NULL));
    INVALID(gn_stream_synchronize(NULL));
    INVALID(gn_stream_wait_event(stream, NULL));
    INVALID(gn_stream_wait_event(NULL, event));
    INVALID(gn_stream_is_capturing(stream, NULL));
    INVALID(gn_stream_is_capturing(NULL, &is_capturing));
    INVALID(gn_event_create(NULL, 0, &made_event));
    INVALID(gn_event_create(first, 16, &made_event));
    INVALID(gn_event_create(first, 0, NULL));
    INVALID(gn_event_record(NULL, stream));
    INVALID(gn_event_record(event, NULL));
    INVALID(gn_event_query(NULL));
    INVALID(gn_event_synchronize(NULL));
    INVALID(gn_event_elapsed(event, NULL, &milliseconds));
    INVALID(gn_event_elapsed(event, event, NULL));
    INVALID(gn_host_alloc(NULL, 1, &pointer));
    INVALID(gn_host_alloc(first, 1, NULL));
    INVALID(gn_host_free(NULL, NULL));
    INVALID(gn_host_register(first, NULL, 1));
    INVALID(gn_host_unregister(first, NULL));
}

static void arguments_sizes(gn_stream *stream, gn_memory_manager *manager)
{
    char bytes[16] = "";
    void *pointer;
    INVALID(gn_copy(bytes, bytes + 8, 1, NULL));
    INVALID(gn_copy(NULL, bytes, 1, stream));
    INVALID(gn_copy(bytes, NULL, 1, stream));
    INVALID(gn_fill(bytes, 0, 3, 1, stream));
    INVALID(gn_fill(bytes, 0, 8, 1, stream));
    INVALID(gn_fill(NULL, 0, 1, 1, stream));
    INVALID(gn_fill((void *)0x1001, 0, 2, 1, stream));
    INVALID(gn_fill((void *)0x1002, 0, 4, 1, stream));
    INVALID(gn_fill(bytes, 0, 1, 1, NULL));
    OVERFLOW_(gn_copy(bytes, bytes, SIZE_MAX, stream));
    OVERFLOW_(gn_fill(bytes, 0, 4, SIZE_MAX / 4 + 1, stream));
    OVERFLOW_(gn_fill(bytes, 0, 1, SIZE_MAX, stream));
    OVERFLOW_(gn_host_alloc(first, SIZE_MAX, &pointer));
    OVERFLOW_(gn_host_register(first, bytes, SIZE_MAX));
    OVERFLOW_(gn_memory_alloc(manager, SIZE_MAX, NULL, &pointer));
    OVERFLOW_(gn_memory_alloc(manager, (size_t)PTRDIFF_MAX + 1, NULL, &pointer));
    INVALID(gn_memory_alloc(manager, 1, second->default_stream, &pointer));
    INVALID(gn_memory_alloc(NULL, 1, NULL, &pointer));
    INVALID(gn_memory_alloc(manager, 1, NULL, NULL));
    CHECK_STATUS(gn_memory_free(manager, NULL), GN_ERROR_INVALID_POINTER);
    INVALID(gn_memory_free(NULL, bytes));
}

/* Bad arguments are refused before the driver hears of them. */
static void test_arguments(void)
{
    gn_stream *stream, *cpu_stream;
    gn_event *event, *far;
    gn_device *cpu;
    gn_memory_manager *manager;
    float milliseconds;
    void *pointer;
    CHECK_OK(gn_stream_create(first, 0, 0, &stream));
    CHECK_OK(gn_event_create(first, GN_EVENT_TIMING, &event));
    CHECK_OK(gn_event_create(second, GN_EVENT_TIMING, &far));
    CHECK_OK(gn_memory_manager_get(first, &manager));
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &cpu));
    CHECK_OK(gn_stream_get_default(cpu, &cpu_stream));
    long calls = fake.call_count(NULL);
    arguments_null(stream, event);
    arguments_sizes(stream, manager);
    INVALID(gn_event_record(event, second->default_stream));
    INVALID(gn_event_record(event, cpu_stream));
    INVALID(gn_event_elapsed(event, far, &milliseconds));
    INVALID(gn_stream_wait_event(cpu_stream, event));
    CHECK_DETAIL("cpu and cuda:0");
    CHECK_U64(fake.call_count(NULL), calls);
    CHECK_STATUS(gn_memory_alloc(manager, PTRDIFF_MAX, NULL, &pointer), GN_ERROR_OUT_OF_MEMORY);
    CHECK_STATUS(gn_host_alloc(first, PTRDIFF_MAX, &pointer), GN_ERROR_OUT_OF_MEMORY);
    gn_event_destroy(event);
    gn_event_destroy(far);
    gn_stream_release(stream);
}

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
    CHECK_DETAIL("48.00 MiB are live in 1 blocks");
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

static bool is_active(int device)
{
    return fake.is_active(device) != 0;
}

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
    RUN(test_properties);
    RUN(test_device_is_the_same);
    RUN(test_memory);
    RUN(test_copies);
    RUN(test_fills);
    RUN(test_stream_ordered);
    RUN(test_virtual_memory);
    RUN(test_virtual_memory_refusals);
    RUN(test_host_memory);
    RUN(test_stream_priorities);
    RUN(test_stream_life);
    RUN(test_foreign_streams);
    RUN(test_captured_streams);
    RUN(test_streams_of_threads);
    RUN(test_streams_of_many_devices);
    RUN(test_events);
    RUN(test_modules);
    RUN(test_contexts_are_restored);
    RUN(test_arguments);
    RUN(test_out_of_memory);
    RUN(test_shutdown);
    RUN(test_default_stream_owner);
    RUN(test_shutdown_with_a_failure);
    RUN(test_foreign_stream_after_shutdown);
    RUN(test_reopening_is_not_seen);
    return check_result();
}
