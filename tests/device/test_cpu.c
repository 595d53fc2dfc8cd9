/*
 * test_cpu.c: the CPU device: properties, bytes, misuse, host memory, and its failures.
 */
#include "cpu_suite.h"

#include "base/host.h"

/* ---- the device ----------------------------------------------------------------------------- */

static void test_device(void)
{
    int count = 0;
    gn_device *again = NULL;
    CHECK_OK(gn_device_count(GN_DEVICE_CPU, &count));
    CHECK(count == 1);
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &again));
    CHECK(again == device);
    CHECK(gn_device_get_type(device) == GN_DEVICE_CPU && gn_device_get_index(device) == 0);
    CHECK(gn_device_get_current(GN_DEVICE_CPU) == 0);
    CHECK_OK(gn_device_set_current(GN_DEVICE_CPU, 0));
    CHECK_STATUS(gn_device_set_current(GN_DEVICE_CPU, 1), GN_ERROR_INVALID_DEVICE);
    CHECK_TEXT(gni_device_label(device).text, "cpu");
}

static void test_properties(void)
{
    gn_device_properties properties;
    memset(&properties, 0xff, sizeof properties);
    CHECK_OK(gn_device_get_properties(device, &properties));
    CHECK(properties.name[0] != '\0' && memchr(properties.name, '\0', sizeof properties.name));
    CHECK(strchr(properties.name, '\n') == NULL);
    CHECK_TEXT(properties.uuid, "");
    CHECK_TEXT(properties.pci_bus_id, "");
    CHECK_U64(properties.total_memory,
              (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
    CHECK(properties.major == 0 && properties.minor == 0);
    CHECK(properties.multi_processor_count >= 1);
    CHECK(properties.warp_size == 1 && properties.max_threads_per_block >= 1);
    CHECK(properties.is_integrated);
    CHECK(!properties.has_virtual_memory && !properties.has_stream_ordered_memory);
}

static void test_memory_info(void)
{
    size_t free_bytes = 0, total_bytes = 0;
    CHECK_OK(gn_device_get_memory_info(device, &free_bytes, &total_bytes));
    CHECK(free_bytes > 0 && free_bytes <= total_bytes);
}

/* ---- bytes ---------------------------------------------------------------------------------- */

static const size_t byte_counts[] = {1, 2, 3, 7, 64, 255, 4095, 4096, 4097, 100001};
#define BYTE_COUNT_COUNT (sizeof byte_counts / sizeof *byte_counts)
#define BYTES_MAX (128 * KIB)

static unsigned char bytes_a[BYTES_MAX], bytes_b[BYTES_MAX], bytes_model[BYTES_MAX];

static void bytes_randomize(unsigned char *bytes, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)check_random(&seed);
}

static void copies_check(gn_stream *stream)
{
    for (size_t i = 0; i < BYTE_COUNT_COUNT; i++) {
        size_t count = byte_counts[i];
        bytes_randomize(bytes_a, BYTES_MAX, i);
        memset(bytes_b, 0xee, BYTES_MAX);
        CHECK_OK(gn_copy(bytes_b + 1, bytes_a + i, count, stream));
        CHECK_OK(gn_stream_synchronize(stream));
        CHECK(memcmp(bytes_b + 1, bytes_a + i, count) == 0);
        CHECK(bytes_b[0] == 0xee && bytes_b[count + 1] == 0xee);
    }
}

static void overlapping_copies_check(gn_stream *stream)
{
    for (size_t shift = 1; shift < 5000; shift = shift * 3 + 1) {
        size_t count = BYTES_MAX - shift;
        bytes_randomize(bytes_a, BYTES_MAX, shift);
        memcpy(bytes_model, bytes_a, BYTES_MAX);
        memmove(bytes_model + shift, bytes_model, count);
        CHECK_OK(gn_copy(bytes_a + shift, bytes_a, count, stream));
        CHECK_OK(gn_stream_synchronize(stream));
        CHECK(memcmp(bytes_a, bytes_model, BYTES_MAX) == 0);
        memmove(bytes_model, bytes_model + shift, count);
        CHECK_OK(gn_copy(bytes_a, bytes_a + shift, count, stream));
        CHECK_OK(gn_stream_synchronize(stream));
        CHECK(memcmp(bytes_a, bytes_model, BYTES_MAX) == 0);
    }
    CHECK_OK(gn_copy(bytes_a, bytes_a, BYTES_MAX, stream)); /* onto itself */
    CHECK_OK(gn_stream_synchronize(stream));
    CHECK(memcmp(bytes_a, bytes_model, BYTES_MAX) == 0);
}

static void fills_check(gn_stream *stream)
{
    const uint32_t value = 0x89abcdefu;
    for (size_t element_size = 1; element_size <= 4; element_size *= 2) {
        for (size_t i = 0; i < BYTE_COUNT_COUNT; i++) {
            size_t count = byte_counts[i] / element_size + 1, nbytes = count * element_size;
            memset(bytes_b, 0xee, BYTES_MAX);
            CHECK_OK(gn_fill(bytes_b + 4, value, element_size, count, stream));
            CHECK_OK(gn_stream_synchronize(stream));
            bool is_filled = true;
            for (size_t at = 0; at < nbytes; at += element_size)
                is_filled = is_filled && memcmp(bytes_b + 4 + at, &value, element_size) == 0;
            CHECK(is_filled && bytes_are(bytes_b, 0xee, 4));
            CHECK(bytes_are(bytes_b + 4 + nbytes, 0xee, BYTES_MAX - 4 - nbytes));
        }
    }
}

static void test_bytes(void)
{
    gn_stream *streams[] = {default_stream, stream_make(0), stream_make(GN_STREAM_NON_BLOCKING)};
    for (int i = 0; i < 3; i++) {
        copies_check(streams[i]);
        overlapping_copies_check(streams[i]);
        fills_check(streams[i]);
    }
    gn_stream_release(streams[1]);
    gn_stream_release(streams[2]);
}

static void test_no_bytes(void)
{
    CHECK_OK(gn_copy(NULL, NULL, 0, default_stream));
    CHECK_OK(gn_fill(NULL, 1, 4, 0, default_stream));
    CHECK_OK(gn_fill(bytes_a + 1, 1, 4, 0, default_stream)); /* no element lies there */
    CHECK_OK(gn_stream_query(default_stream));
}

/* ---- misuse --------------------------------------------------------------------------------- */

/* A device of another kind, which is never called: the checks come first. */
static void test_two_devices(void)
{
    static const struct gni_device_ops other_ops = {.name = "cuda", .is_numbered = true};
    gn_device other = {.ops = &other_ops, .type = GN_DEVICE_CUDA, .index = 3};
    gn_event other_event = {.device = &other, .flags = GN_EVENT_TIMING};
    gn_stream other_stream;
    gni_stream_init(&other_stream, &other, GNI_STREAM_OWNED);
    gn_stream *stream = stream_make(0);
    gn_event *event = event_make(GN_EVENT_TIMING);
    float milliseconds = 0;
    CHECK_STATUS(gn_event_record(&other_event, stream), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("cuda:3");
    CHECK_STATUS(gn_event_record(event, &other_stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_wait_event(stream, &other_event), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_wait_event(&other_stream, event), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_event_elapsed(event, &other_event, &milliseconds), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("two devices");
    gn_memory_manager *manager = NULL;
    void *pointer = NULL;
    CHECK_OK(gn_memory_manager_get(device, &manager));
    CHECK_STATUS(gn_memory_alloc(manager, 1, &other_stream, &pointer), GN_ERROR_INVALID_VALUE);
    CHECK(pointer == NULL);
    gn_event_destroy(event);
    gn_stream_release(stream);
}

static void test_bad_device_arguments(void)
{
    int count = 4711;
    gn_device *got = NULL;
    size_t nbytes = 0;
    gn_device_properties properties;
    CHECK_STATUS(gn_device_count(GN_DEVICE_CPU, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_device_count((gn_device_type)7, &count), GN_ERROR_INVALID_DEVICE);
    CHECK_STATUS(gn_device_count((gn_device_type)-1, &count), GN_ERROR_INVALID_DEVICE);
    CHECK(count == 4711);
    CHECK_STATUS(gn_device_get(GN_DEVICE_CPU, 0, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_device_get(GN_DEVICE_CPU, 1, &got), GN_ERROR_INVALID_DEVICE);
    CHECK_DETAIL("cpu:1");
    CHECK_STATUS(gn_device_get(GN_DEVICE_CPU, -1, &got), GN_ERROR_INVALID_DEVICE);
    CHECK_STATUS(gn_device_get(GN_DEVICE_CPU, INT32_MAX, &got), GN_ERROR_INVALID_DEVICE);
    CHECK_STATUS(gn_device_get(GN_DEVICE_CPU, INT32_MIN, &got), GN_ERROR_INVALID_DEVICE);
    CHECK_STATUS(gn_device_get((gn_device_type)2, 0, &got), GN_ERROR_INVALID_DEVICE);
    CHECK(got == NULL);
    CHECK(gn_device_get_current((gn_device_type)99) == 0);
    CHECK(gn_device_get_current((gn_device_type)-1) == 0);
    CHECK_STATUS(gn_device_set_current((gn_device_type)99, 0), GN_ERROR_INVALID_DEVICE);
    CHECK_STATUS(gn_device_set_current(GN_DEVICE_CPU, -1), GN_ERROR_INVALID_DEVICE);
    CHECK_STATUS(gn_device_get_properties(NULL, &properties), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_device_get_properties(device, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_device_get_memory_info(NULL, &nbytes, &nbytes), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_device_get_memory_info(device, NULL, &nbytes), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_device_get_memory_info(device, &nbytes, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_device_synchronize(NULL), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("gn_device_synchronize");
}

static void test_bad_stream_arguments(void)
{
    gn_stream *stream = NULL;
    gn_event *event = event_make(0);
    uint64_t id = 0;
    bool is_capturing;
    CHECK_STATUS(gn_stream_create(NULL, 0, 0, &stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_create(device, 0, 0, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_create(device, 2, 0, &stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_create(device, UINT32_MAX, 0, &stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_from_handle(NULL, NULL, &stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_from_handle(device, NULL, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_get_default(NULL, &stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_get_default(device, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_get_current(NULL, &stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_get_current(device, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_set_current(NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_get_id(NULL, &id), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_get_id(default_stream, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_query(NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_synchronize(NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_wait_event(NULL, event), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_wait_event(default_stream, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_is_capturing(NULL, &is_capturing), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_is_capturing(default_stream, NULL), GN_ERROR_INVALID_VALUE);
    CHECK(stream == NULL);
    gn_stream_release(NULL);
    gn_event_destroy(event);
}

static void test_bad_event_arguments(void)
{
    gn_event *event = NULL;
    gn_event *good = event_make(GN_EVENT_TIMING);
    float milliseconds = 0;
    CHECK_STATUS(gn_event_create(NULL, 0, &event), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_event_create(device, 0, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_event_create(device, 4, &event), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_event_create(device, UINT32_MAX, &event), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_event_record(NULL, default_stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_event_record(good, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_event_query(NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_event_synchronize(NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_event_elapsed(NULL, good, &milliseconds), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_event_elapsed(good, NULL, &milliseconds), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_event_elapsed(good, good, NULL), GN_ERROR_INVALID_VALUE);
    CHECK(event == NULL);
    gn_event_destroy(NULL);
    gn_event_destroy(good);
}

static void test_bad_byte_arguments(void)
{
    char bytes[16] = "untouched";
    gn_stream *stream = default_stream;
    CHECK_STATUS(gn_copy(bytes, bytes, 1, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_copy(NULL, bytes, 1, stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_copy(bytes, NULL, 1, stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_copy(bytes, bytes, SIZE_MAX, stream), GN_ERROR_OVERFLOW);
    CHECK_STATUS(gn_copy(bytes, bytes, (size_t)PTRDIFF_MAX + 1, stream), GN_ERROR_OVERFLOW);
    CHECK_STATUS(gn_fill(bytes, 0, 1, 1, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_fill(NULL, 0, 1, 1, stream), GN_ERROR_INVALID_VALUE);
    const size_t element_sizes[] = {0, 3, 5, 8, SIZE_MAX};
    for (int i = 0; i < 5; i++)
        CHECK_STATUS(gn_fill(bytes, 0, element_sizes[i], 1, stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_fill(bytes, 0, 4, SIZE_MAX / 4 + 1, stream), GN_ERROR_OVERFLOW);
    CHECK_STATUS(gn_fill(bytes, 0, 2, SIZE_MAX / 2, stream), GN_ERROR_OVERFLOW);
    CHECK_STATUS(gn_fill(bytes, 0, 1, SIZE_MAX, stream), GN_ERROR_OVERFLOW);
    uintptr_t aligned = ((uintptr_t)bytes + 3) & ~(uintptr_t)3;
    CHECK_STATUS(gn_fill((void *)(aligned + 1), 0, 2, 1, stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_fill((void *)(aligned + 2), 0, 4, 1, stream), GN_ERROR_INVALID_VALUE);
    CHECK_OK(gn_stream_synchronize(stream));
    CHECK_TEXT(bytes, "untouched");
}

static void test_bad_library_arguments(void)
{
    static char long_path[5000];
    memset(long_path, 'a', sizeof long_path - 1);
    long_path[0] = '/';
    gn_library_description description;
    CHECK(!gn_library_describe(-1, &description));
    CHECK(!gn_library_describe(INT32_MAX, &description));
    CHECK(!gn_library_describe(0, NULL));
    CHECK_STATUS(gn_library_add_directory(NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_library_add_directory(""), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_library_add_directory("relative"), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_library_add_directory(long_path), GN_ERROR_INVALID_VALUE);
}

/* ---- host memory ---------------------------------------------------------------------------- */

static void test_host_memory(void)
{
    const size_t sizes[] = {0, 1, 4095, 4096, 4097, 10 * MIB};
    char stack[16];
    void *pointers[6] = {NULL}, *none = NULL;
    for (int i = 0; i < 6; i++) {
        CHECK_OK(gn_host_alloc(device, sizes[i], &pointers[i]));
        memset(pointers[i], i, sizes[i]);
        for (int j = 0; j < i; j++)
            CHECK(pointers[i] != pointers[j]);
    }
    for (int i = 0; i < 6; i++) {
        CHECK(bytes_are(pointers[i], i, sizes[i]));
        CHECK_OK(gn_host_free(device, pointers[i]));
    }
    CHECK_STATUS(gn_host_free(device, pointers[0]), GN_ERROR_INVALID_POINTER);
    CHECK_STATUS(gn_host_free(device, stack), GN_ERROR_INVALID_POINTER);
    CHECK_OK(gn_host_free(device, NULL));
    CHECK_STATUS(gn_host_free(NULL, stack), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_host_alloc(NULL, 1, &none), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_host_alloc(device, 1, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_host_alloc(device, SIZE_MAX, &none), GN_ERROR_OVERFLOW);
    CHECK_STATUS(gn_host_alloc(device, PTRDIFF_MAX, &none), GN_ERROR_OUT_OF_MEMORY);
    CHECK_STATUS(gn_host_alloc(device, (size_t)1 << 47, &none), GN_ERROR_OUT_OF_MEMORY);
    CHECK(none == NULL);
    CHECK_OK(gn_host_register(device, stack, sizeof stack));
    CHECK_OK(gn_host_unregister(device, stack));
    CHECK_STATUS(gn_host_register(NULL, stack, 1), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_host_register(device, NULL, 1), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_host_register(device, stack, 0), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_host_register(device, stack, SIZE_MAX), GN_ERROR_OVERFLOW);
    CHECK_STATUS(gn_host_unregister(NULL, stack), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_host_unregister(device, NULL), GN_ERROR_INVALID_VALUE);
}

/* ---- failing host memory -------------------------------------------------------------------- */

/* Everything that allocates, once; whatever was made is gone again, however far it came. */
static gn_status fault_task(void)
{
    static char bytes[64];
    gn_stream *stream = NULL;
    gn_event *event = NULL;
    void *pinned = NULL;
    gn_status status = gn_stream_create(device, 0, 0, &stream);
    if (status == GN_OK)
        status = gn_event_create(device, 0, &event);
    if (status == GN_OK)
        status = gn_fill(bytes, 1, 1, sizeof bytes, stream);
    if (status == GN_OK)
        status = gn_copy(bytes, bytes + 1, 8, stream);
    if (status == GN_OK)
        status = gn_event_record(event, stream);
    if (status == GN_OK)
        status = gn_stream_wait_event(stream, event);
    if (status == GN_OK)
        status = gn_event_record(event, default_stream);
    if (status == GN_OK)
        status = gn_host_alloc(device, 100, &pinned);
    if (status == GN_OK)
        status = gn_host_free(device, pinned);
    gn_event_destroy(event);
    gn_stream_release(stream);
    return status;
}

static void test_host_memory_fails(void)
{
    int objects = atomic_load(&device->object_count);
    gn_status status = GN_ERROR_OUT_OF_HOST_MEMORY;
    for (long nth = 1; status != GN_OK; nth++) {
        gni_host_fail_after(nth);
        status = fault_task();
        gni_host_fail_after(-1);
        CHECK(status == GN_OK || status == GN_ERROR_OUT_OF_HOST_MEMORY);
        CHECK(atomic_load(&device->object_count) == objects);
        if (status != GN_OK)
            CHECK_DETAIL("no host memory");
        CHECK(nth < 100);
        CHECK_OK(gn_device_synchronize(device));
        CHECK(live_count_settles());
    }
}

/* With the default stream held, waits are really queued, and marks of its own as well. */
static void test_host_memory_fails_when_held(void)
{
    gn_stream *stream = stream_make(GN_STREAM_NON_BLOCKING);
    gn_event *moved = event_make(0);
    char byte = 0;
    gate_hold();
    gn_event *event = gate_event();
    gni_host_fail_after(1);
    CHECK_STATUS(gn_stream_wait_event(stream, event), GN_ERROR_OUT_OF_HOST_MEMORY);
    gni_host_fail_after(1);
    CHECK_STATUS(gn_copy(&byte, gate.target, 1, default_stream), GN_ERROR_OUT_OF_HOST_MEMORY);
    for (long nth = 1; nth <= 2; nth++) { /* the record, and its item */
        gni_host_fail_after(nth);
        CHECK_STATUS(gn_event_record(event, default_stream), GN_ERROR_OUT_OF_HOST_MEMORY);
        gni_host_fail_after(nth);
        CHECK_STATUS(gn_event_record(moved, default_stream), GN_ERROR_OUT_OF_HOST_MEMORY);
    }
    gni_host_fail_after(-1);
    CHECK_STATUS(gn_event_query(event), GN_ERROR_NOT_READY); /* still the first record */
    CHECK_OK(gn_event_query(moved));                         /* still none */
    CHECK_OK(gn_stream_query(stream));                       /* nothing was queued */
    gate_open();
    CHECK_OK(gn_event_synchronize(event));
    CHECK_OK(gn_device_synchronize(device));
    CHECK(byte == 0);
    gn_event_destroy(event);
    gn_event_destroy(moved);
    gn_stream_release(stream);
}

static void open_check(void *unused)
{
    (void)unused;
    gn_device *opened = NULL;
    gni_host_fail_after(1);
    gn_status status = gn_device_get(GN_DEVICE_CPU, 0, &opened);
    gni_host_fail_after(-1);
    CHECK(status == GN_OK || status == GN_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &opened)); /* no failure is for ever */
}

/* Runs before the device is opened here. */
static void test_host_memory_fails_at_the_start(void)
{
    static struct child_result result;
    child_run(open_check, NULL, &result);
    CHECK(child_is_ok(&result));
}

int main(void)
{
    gate_init();
    RUN(test_host_memory_fails_at_the_start);
    device_start();
    RUN(test_device);
    RUN(test_properties);
    RUN(test_memory_info);
    RUN(test_bytes);
    RUN(test_no_bytes);
    RUN(test_two_devices);
    RUN(test_bad_device_arguments);
    RUN(test_bad_stream_arguments);
    RUN(test_bad_event_arguments);
    RUN(test_bad_byte_arguments);
    RUN(test_bad_library_arguments);
    RUN(test_host_memory);
    RUN(test_host_memory_fails);
    RUN(test_host_memory_fails_when_held);
    CHECK(live_count_settles());
    return check_result();
}
