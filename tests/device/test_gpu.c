/*
 * test_gpu.c: the device table and the memory manager on a real GPU.
 *
 * With the argument "quick" the long loops are short, for runs under compute-sanitizer. Exits with
 * 77 where there is no GPU.
 */
#include "books.h"
#include "check.h"

#include "base/host.h"
#include "device/cuda/cuda.h"
#include "device/cuda/library.h"
#include "genesis/genesis.h"

#include <pthread.h>

static gn_device *device;
static gn_memory_manager *manager;
static gn_stream *stream;
static bool is_quick;

static const char kernels_text[] =
    "extern \"C\" __global__ void add_one(int *numbers, unsigned count)\n"
    "{\n"
    "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < count)\n"
    "        numbers[i] += 1;\n"
    "}\n";

/* Compiles CUDA C for the device. The caller frees the image; NULL where there is no NVRTC. */
static char *image_compile(const char *text)
{
    const struct gni_nvrtc *nvrtc;
    if (gni_nvrtc_open(&nvrtc) != GN_OK) {
        printf("no kernels: %s\n", gn_error_detail());
        return NULL;
    }
    gn_device_properties properties;
    CHECK_OK(gn_device_get_properties(device, &properties));
    char architecture[32];
    snprintf(architecture, sizeof architecture, "-arch=sm_%d%d", properties.major,
             properties.minor);
    const char *options[] = {architecture};
    const struct gni_nvrtc_functions *functions = &nvrtc->functions;
    nvrtcProgram program;
    size_t nbytes = 0;
    CHECK(functions->nvrtcCreateProgram(&program, text, "test_gpu.cu", 0, NULL, NULL) ==
          NVRTC_SUCCESS);
    CHECK(functions->nvrtcCompileProgram(program, 1, options) == NVRTC_SUCCESS);
    CHECK(functions->nvrtcGetCUBINSize(program, &nbytes) == NVRTC_SUCCESS && nbytes > 0);
    char *image = malloc(nbytes);
    CHECK(functions->nvrtcGetCUBIN(program, image) == NVRTC_SUCCESS);
    CHECK(functions->nvrtcDestroyProgram(&program) == NVRTC_SUCCESS);
    return image;
}

static void test_properties(void)
{
    gn_device_properties properties;
    CHECK_OK(gn_device_get_properties(device, &properties));
    CHECK(properties.name[0] != '\0');
    CHECK(properties.total_memory > 0 && properties.major >= 5 && properties.warp_size == 32);
    CHECK(strncmp(properties.uuid, "GPU-", 4) == 0 && strlen(properties.uuid) == 40);
    CHECK(properties.multi_processor_count > 0 && properties.l2_cache_size > 0);
    size_t free_bytes, total_bytes;
    CHECK_OK(gn_device_get_memory_info(device, &free_bytes, &total_bytes));
    CHECK(free_bytes > 0 && free_bytes <= total_bytes);
}

static void *alloc(size_t nbytes)
{
    void *pointer = NULL;
    CHECK_OK(gn_memory_alloc(manager, nbytes, stream, &pointer));
    return pointer;
}

static void test_copies_and_fills(void)
{
    static const size_t counts[] = {1, 31, 33, 1000003};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (size_t element = 1; element <= 4; element *= 2) {
            size_t nbytes = counts[i] * element;
            unsigned char *host = malloc(nbytes);
            void *first = alloc(nbytes), *second = alloc(nbytes);
            uint32_t value = 0xA1B2C3D4;
            CHECK_OK(gn_fill(first, value, element, counts[i], stream));
            CHECK_OK(gn_copy(second, first, nbytes, stream));
            CHECK_OK(gn_copy(host, second, nbytes, stream));
            CHECK_OK(gn_stream_synchronize(stream));
            size_t wrong = 0;
            for (size_t at = 0; at < nbytes; at++)
                wrong += host[at] != ((unsigned char *)&value)[at % element];
            CHECK_U64(wrong, 0);
            CHECK_OK(gn_memory_free_sized(manager, first, nbytes));
            CHECK_OK(gn_memory_free_sized(manager, second, nbytes));
            free(host);
        }
    }
}

static void test_page_locked_memory(void)
{
    enum {
        COUNT = 100001
    };
    void *pinned;
    CHECK_OK(gn_host_alloc(device, COUNT, &pinned));
    unsigned char *plain = malloc(COUNT);
    memset(plain, 7, COUNT);
    CHECK_OK(gn_host_register(device, plain, COUNT));
    void *block = alloc(COUNT);
    CHECK_OK(gn_copy(block, plain, COUNT, stream));
    CHECK_OK(gn_copy(pinned, block, COUNT, stream));
    CHECK_OK(gn_stream_synchronize(stream));
    CHECK(memcmp(pinned, plain, COUNT) == 0);
    CHECK_OK(gn_host_unregister(device, plain));
    CHECK_OK(gn_host_free(device, pinned));
    CHECK_OK(gn_memory_free(manager, block));
    free(plain);
}

static void test_streams_and_events(void)
{
    gn_stream *low, *high, *blocking, *wrapped;
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 1000, &low));
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, -1000, &high));
    CHECK_OK(gn_stream_create(device, 0, 0, &blocking));
    CHECK(gn_stream_get_priority(high) < gn_stream_get_priority(low));
    uint64_t low_id, high_id, wrapped_id;
    CHECK_OK(gn_stream_get_id(low, &low_id));
    CHECK_OK(gn_stream_get_id(high, &high_id));
    CHECK(low_id != high_id);
    CHECK_OK(gn_stream_from_handle(device, gn_stream_get_handle(low), &wrapped));
    CHECK_OK(gn_stream_get_id(wrapped, &wrapped_id));
    CHECK_U64(wrapped_id, low_id);
    gn_stream_release(wrapped);
    CHECK_OK(gn_stream_from_handle(device, (void *)2, &wrapped)); /* the per-thread stream */
    CHECK_OK(gn_stream_synchronize(wrapped));
    gn_stream_release(wrapped);

    gn_event *start, *end;
    CHECK_OK(gn_event_create(device, GN_EVENT_TIMING, &start));
    CHECK_OK(gn_event_create(device, GN_EVENT_TIMING | GN_EVENT_BLOCKING_SYNC, &end));
    CHECK_OK(gn_event_query(start)); /* never recorded: complete */
    void *block = alloc(64u << 20);
    CHECK_OK(gn_event_record(start, low));
    CHECK_OK(gn_fill(block, 1, 1, 64u << 20, low));
    CHECK_OK(gn_event_record(end, low));
    CHECK_OK(gn_stream_wait_event(high, end));
    CHECK_OK(gn_fill(block, 2, 1, 64u << 20, high));
    CHECK_OK(gn_event_synchronize(end));
    CHECK_OK(gn_event_query(end));
    float milliseconds = -1;
    CHECK_OK(gn_event_elapsed(start, end, &milliseconds));
    CHECK(milliseconds > 0);
    CHECK_OK(gn_stream_synchronize(high));
    CHECK_OK(gn_stream_query(high));
    bool is_capturing = true;
    CHECK_OK(gn_stream_is_capturing(high, &is_capturing));
    CHECK(!is_capturing);
    CHECK_OK(gn_memory_free(manager, block));
    gn_event_destroy(start);
    gn_event_destroy(end);
    gn_stream_release(low);
    gn_stream_release(high);
    gn_stream_release(blocking);
}

static void test_kernel(void)
{
    enum {
        COUNT = 1000
    };
    const struct gni_device_ops *ops = device->ops;
    struct gni_module module;
    struct gni_function add_one;
    struct gni_function_properties properties;
    char *image = image_compile(kernels_text);
    if (image == NULL)
        return;
    CHECK_OK(ops->module_load(device, image, &module));
    free(image);
    CHECK_OK(ops->function_find(&module, "add_one", &add_one));
    CHECK_STATUS(ops->function_find(&module, "no_such_kernel", &add_one), GN_ERROR_DRIVER);
    CHECK_DETAIL("CUDA_ERROR_NOT_FOUND");
    CHECK_OK(ops->function_properties(&add_one, &properties));
    CHECK(properties.max_threads_per_block >= 128 && properties.register_count > 0);
    CHECK_OK(ops->function_allow_shared(&add_one, 1024));

    void *block = alloc(COUNT * sizeof(int));
    CHECK_OK(gn_fill(block, 41, sizeof(int), COUNT, stream));
    unsigned count = COUNT - 1;
    void *arguments[] = {&block, &count};
    struct gni_launch launch = {
        .grid = {(COUNT + 127) / 128, 1, 1}, .block = {128, 1, 1}, .arguments = arguments};
    CHECK_OK(ops->function_launch(&add_one, stream, &launch));
    int host[COUNT];
    CHECK_OK(gn_copy(host, block, sizeof host, stream));
    CHECK_OK(gn_stream_synchronize(stream));
    CHECK(host[0] == 42 && host[COUNT - 2] == 42 && host[COUNT - 1] == 41);
    launch.block[0] = 100000; /* no GPU has that many threads in a block */
    CHECK_STATUS(ops->function_launch(&add_one, stream, &launch), GN_ERROR_INVALID_VALUE);
    CHECK_OK(gn_memory_free(manager, block));
    CHECK_OK(ops->module_unload(&module));
    CHECK(ops->module_load(device, "this is no image", &module) != GN_OK);
}

static void test_stream_ordered_memory(void)
{
    gn_device_properties properties;
    CHECK_OK(gn_device_get_properties(device, &properties));
    void *pointer;
    if (!properties.has_stream_ordered_memory) {
        CHECK_STATUS(device->ops->memory_alloc_async(stream, 1, &pointer), GN_ERROR_UNSUPPORTED);
        return;
    }
    CHECK_OK(device->ops->memory_alloc_async(stream, 1u << 20, &pointer));
    CHECK_OK(gn_fill(pointer, 9, 1, 1u << 20, stream));
    CHECK_OK(device->ops->memory_free_async(stream, pointer));
    CHECK_OK(gn_stream_synchronize(stream));
}

/* One physical handle behind two addresses: what is written at one is read at the other. */
static void test_virtual_memory(void)
{
    const struct gni_device_ops *ops = device->ops;
    size_t page;
    gn_status status = ops->virtual_granularity(device, &page);
    if (status == GN_ERROR_UNSUPPORTED)
        return;
    CHECK_OK(status);
    void *range;
    uint64_t handle;
    CHECK_OK(ops->virtual_reserve(device, 2 * page, &range));
    char *second = (char *)range + page;
    CHECK_OK(ops->physical_create(device, page, &handle));
    CHECK_OK(ops->virtual_map(device, range, page, handle));
    CHECK_OK(ops->virtual_map(device, second, page, handle));
    CHECK_OK(ops->virtual_grant(device, range, 2 * page));
    CHECK_OK(gn_fill(range, 0x5A, 1, page, stream));
    unsigned char last = 0;
    CHECK_OK(gn_copy(&last, second + page - 1, 1, stream));
    CHECK_OK(gn_stream_synchronize(stream));
    CHECK_U64(last, 0x5A);
    CHECK_OK(ops->virtual_unmap(device, range, page));
    CHECK_OK(ops->virtual_unmap(device, second, page));
    CHECK_OK(ops->physical_release(device, handle));
    CHECK_OK(ops->virtual_release(device, range, 2 * page));
}

/* After everything idle was given back. */
static size_t device_free_bytes(void)
{
    size_t free_bytes, total_bytes;
    CHECK_OK(gni_manager_clear(manager));
    CHECK_OK(gn_device_get_memory_info(device, &free_bytes, &total_bytes));
    return free_bytes;
}

/* 100000 allocations and frees in random order end where they began. */
static void test_random(void)
{
    enum {
        SLOTS = 256
    };
    static void *slots[SLOTS];
    uint64_t seed = 20261115;
    int count = is_quick ? 2000 : 100000;
    size_t free_before = device_free_bytes(), host_before = books_count(manager);
    for (int i = 0; i < count; i++) {
        void **slot = &slots[check_random(&seed) % SLOTS];
        if (*slot != NULL) {
            CHECK_OK(gn_memory_free(manager, *slot));
            *slot = NULL;
        } else {
            /* Sizes from 0 to 4 MiB, small ones as often as large ones. */
            size_t nbytes = check_random(&seed) & ((1ull << (check_random(&seed) % 23)) - 1);
            *slot = alloc(nbytes);
        }
    }
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i] != NULL)
            CHECK_OK(gn_memory_free(manager, slots[i]));
        slots[i] = NULL;
    }
    gn_memory_statistics now;
    CHECK_OK(gn_memory_get_statistics(manager, &now));
    CHECK_U64(now.live_bytes, 0);
    CHECK_U64(now.live_count, 0);
    CHECK_U64(now.alloc_count, now.free_count);
    CHECK_U64(device_free_bytes(), free_before);
    CHECK(books_count(manager) <= host_before);
}

static void test_out_of_memory(void)
{
    size_t free_bytes, total_bytes;
    void *pointer = NULL;
    CHECK_OK(gn_device_get_memory_info(device, &free_bytes, &total_bytes));
    CHECK_STATUS(gn_memory_alloc(manager, total_bytes + 1, stream, &pointer),
                 GN_ERROR_OUT_OF_MEMORY);
    CHECK_DETAIL("were asked for");
    CHECK(pointer == NULL);
    pointer = alloc(1000); /* and life goes on */
    CHECK_OK(gn_memory_free(manager, pointer));
}

static void *thread_work(void *argument)
{
    uint64_t seed = (uintptr_t)argument;
    gn_stream *own;
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &own));
    for (int i = 0; i < (is_quick ? 20 : 300); i++) {
        size_t nbytes = 1 + check_random(&seed) % 100000;
        unsigned char value = (unsigned char)seed, read = (unsigned char)~value;
        char *pointer;
        CHECK_OK(gn_memory_alloc(manager, nbytes, own, (void **)(void *)&pointer));
        CHECK_OK(gn_fill(pointer, value, 1, nbytes, own));
        CHECK_OK(gn_copy(&read, pointer + nbytes - 1, 1, own));
        CHECK_OK(gn_stream_synchronize(own));
        CHECK_U64(read, value);
        CHECK_OK(gn_memory_free_sized(manager, pointer, nbytes));
    }
    gn_stream_release(own);
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[8];
    for (uintptr_t i = 0; i < 8; i++)
        CHECK(pthread_create(&threads[i], NULL, thread_work, (void *)(i + 1)) == 0);
    for (int i = 0; i < 8; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* No call leaves a context current in a thread that had none. */
static void test_context_is_left_alone(void)
{
    CUcontext current = (CUcontext)1;
    CHECK(gni_cuda_device_of(device)->driver->functions.cuCtxGetCurrent(&current) == CUDA_SUCCESS);
    CHECK(current == NULL);
}

static void test_shutdown(void)
{
    void *left = alloc(12345);
    CHECK(left != NULL);
    gn_stream_release(stream);
    size_t leaked = 0;
    CHECK_OK(gn_shutdown(&leaked));
    CHECK_U64(leaked, 1);
    CHECK_OK(gn_device_synchronize(device)); /* which starts the device again */
    CHECK_OK(gn_stream_get_default(device, &stream));
    void *again = alloc(1);
    CHECK_OK(gn_memory_free(manager, again));
    CHECK_OK(gn_shutdown(&leaked));
    CHECK_U64(leaked, 0);
}

int main(int argc, char **argv)
{
    is_quick = argc > 1 && strcmp(argv[1], "quick") == 0;
    if (gn_device_get(GN_DEVICE_CUDA, 0, &device) != GN_OK) {
        printf("skipped: %s\n", gn_error_detail());
        return CHECK_SKIPPED;
    }
    CHECK_OK(gn_memory_manager_get(device, &manager));
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &stream));
    RUN(test_properties);
    RUN(test_copies_and_fills);
    RUN(test_page_locked_memory);
    RUN(test_streams_and_events);
    RUN(test_kernel);
    RUN(test_stream_ordered_memory);
    RUN(test_virtual_memory);
    RUN(test_random);
    RUN(test_out_of_memory);
    RUN(test_threads);
    RUN(test_context_is_left_alone);
    RUN(test_shutdown);
    return check_result();
}
