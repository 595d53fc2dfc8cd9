/*
 * test_cuda.c: GPUs as devices, on the stand-in of tests/fake: properties, memory, kernels, contexts, arguments.
 *
 * Every slot is used, its data are verified, and the calling thread's contexts must be afterwards
 * what they were before. The process has the policy direct, where each block is one call of the driver.
 * Streams are in test_cuda_streams.c, the memory manager in test_cuda_manager.c, and failures that the driver
 * reports in test_cuda_faults.c.
 */
#include "cuda_suite.h"

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

int main(void)
{
    CHECK(setenv("GENESIS_CUDA_DRIVER", FAKE, 1) == 0);
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
    RUN(test_modules);
    RUN(test_contexts_are_restored);
    RUN(test_arguments);
    return check_result();
}
