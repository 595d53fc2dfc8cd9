/*
 * test_adapter.c: the entry points for other libraries' hooks, without any of those libraries.
 *
 *     test_adapter          on the GPU that CUDA's driver has, which may be the simulated one
 */
#include "child.h"

#include "genesis/genesis.h"

#include "device/device.h"

#include <pthread.h>
#include <string.h>

enum {
    MIB = 1 << 20,
};

static gn_device *device;
static gn_memory_manager *manager;

static gn_memory_statistics statistics_now(void)
{
    gn_memory_statistics now = {0};
    CHECK_OK(gn_memory_get_statistics(manager, &now));
    return now;
}

/* A manager that was there keeps its policy. What becomes of one that was not: test_adapters.py. */
static void test_starting(void)
{
    const char *policy = gn_memory_manager_get_policy(manager);
    gn_adapter_init_shareable(0);
    gn_adapter_init_shareable(-1);
    gn_adapter_init_shareable(63);
    gn_memory_manager *found;
    CHECK_OK(gn_memory_manager_get(device, &found));
    CHECK(found == manager);
    CHECK_TEXT(gn_memory_manager_get_policy(manager), policy);
}

/* ---- failures ------------------------------------------------------------------------------- */

static int failure_count;
static bool was_out_of_memory;
static char failure_text[256];

static void failure_note(bool is_out_of_memory, const char *message)
{
    failure_count++;
    was_out_of_memory = is_out_of_memory;
    (void)snprintf(failure_text, sizeof failure_text, "%s", message);
}

static void test_failures(void)
{
    gn_adapter_set_failure(failure_note);
    CHECK(gn_adapter_alloc((size_t)1 << 46, 0, NULL) == NULL);
    CHECK(failure_count == 1 && was_out_of_memory && strstr(failure_text, "64.00 TiB") != NULL);
    CHECK(gn_adapter_alloc(100, 63, NULL) == NULL);
    CHECK(gn_adapter_alloc(100, -1, NULL) == NULL);
    CHECK(failure_count == 3 && !was_out_of_memory);
    CHECK(gn_adapter_alloc_pinned((size_t)1 << 46, 0) == NULL);
    CHECK(failure_count == 4 && was_out_of_memory);
    gn_adapter_set_failure(NULL);
    CHECK(gn_adapter_alloc((size_t)1 << 46, 0, NULL) == NULL);
    CHECK(failure_count == 4);
    CHECK(gn_adapter_torch_failure(NULL) == NULL);
    CHECK(gn_adapter_torch_failure("/no/such/libc10_cuda.so") == NULL);
    CHECK(gn_adapter_torch_failure("libc.so.6") == NULL); /* loaded, and not PyTorch's */
}

/* ---- blocks --------------------------------------------------------------------------------- */

static void test_sizes(void)
{
    static const size_t sizes[] = {0, 1, 511, 4096, 1 << 20, 3 << 20, 40 << 20};
    uint64_t before = statistics_now().live_count;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *block = gn_adapter_alloc(sizes[i], 0, NULL),
             *other = gn_adapter_alloc(sizes[i], 0, NULL);
        CHECK(block != NULL && other != NULL && block != other);
        CHECK_U64((uintptr_t)block % 512, 0);
        size_t nbytes = 1;
        CHECK(gn_adapter_base(block, &nbytes) == block);
        CHECK_U64(nbytes, sizes[i]);
        if (sizes[i] > 1) {
            CHECK(gn_adapter_base((char *)block + sizes[i] - 1, &nbytes) == block);
            CHECK_U64(nbytes, sizes[i]);
        }
        gn_adapter_free(block, sizes[i], 0, NULL);
        CHECK(gn_adapter_base(block, NULL) == NULL);
        gn_adapter_free(other, sizes[i] + 7, 0, NULL); /* told, and freed */
    }
    gn_adapter_free(NULL, 0, 0, NULL);
    gn_adapter_free(&before, 8, 0, NULL); /* told, and nothing else */
    CHECK(gn_adapter_base(&before, NULL) == NULL);
    CHECK_U64(statistics_now().live_count, before);
}

/* Streams come as handles. Their blocks are theirs: another stream's request gets other memory, until the
 * work before it is done. */
static void test_streams(void)
{
    gn_stream *one, *two;
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &one));
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &two));
    void *handles[] = {NULL, (void *)1, (void *)2, one->handle, two->handle};
    for (size_t i = 0; i < sizeof handles / sizeof *handles; i++) {
        void *block = gn_adapter_alloc(MIB, 0, handles[i]);
        CHECK(block != NULL);
        gn_adapter_record_stream(block, handles[(i + 1) % 5]);
        gn_adapter_free(block, MIB, 0, handles[i]);
    }
    void *block = gn_adapter_alloc(5000, 0, one->handle);
    gn_adapter_record_stream(block, one->handle); /* its own: nothing */
    gn_adapter_record_stream(block, two->handle);
    gn_adapter_free(block, 5000, 0, one->handle);
    CHECK(statistics_now().pending_bytes > 0 || gn_stream_query(two) == GN_OK);
    gn_adapter_record_stream(block, two->handle); /* it lives no more: told, and nothing else */
    CHECK_OK(gn_device_synchronize(device));
    gn_adapter_reset();
    CHECK_U64(statistics_now().pending_bytes, 0);
    gn_stream_release(one);
    gn_stream_release(two);
}

static void test_pinned(void)
{
    char *block = gn_adapter_alloc_pinned(10000, 0);
    CHECK(block != NULL);
    memset(block, 5, 10000);
    gn_adapter_free_pinned(block, 0);
    gn_adapter_free_pinned(NULL, 0);
    gn_adapter_free_pinned(block, 0); /* told, and nothing else */
}

static void test_settings(void)
{
    gn_memory_config config = {0};
    gn_adapter_set_fraction(0.5, 0);
    CHECK_OK(gn_memory_get_config(manager, &config));
    CHECK(config.memory_fraction == 0.5);
    gn_adapter_set_fraction(7, 0);
    CHECK_OK(gn_memory_get_config(manager, &config));
    CHECK(config.memory_fraction == 0.5);
    gn_adapter_set_fraction(1, 0);
    gn_adapter_free(gn_adapter_alloc(64 * MIB, 0, NULL), 64 * MIB, 0, NULL);
    CHECK(statistics_now().reserved_bytes >= 64 * MIB);
    gn_adapter_reset();
    CHECK_U64(statistics_now().reserved_bytes, 0);
}

enum {
    THREADS = 4,
    TURNS = 300,
};

static void *thread_run(void *handle)
{
    void *blocks[8] = {0};
    for (int i = 0; i < TURNS; i++) {
        void **block = &blocks[i % 8];
        if (*block != NULL)
            gn_adapter_free(*block, 3000, 0, handle);
        *block = gn_adapter_alloc(3000, 0, handle);
        CHECK(*block != NULL);
    }
    for (int i = 0; i < 8; i++)
        gn_adapter_free(blocks[i], 3000, 0, handle);
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];
    gn_stream *streams[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK_OK(gn_stream_create(device, 0, 0, &streams[i]));
        CHECK(pthread_create(&threads[i], NULL, thread_run, streams[i]->handle) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK_OK(gn_device_synchronize(device));
        gn_stream_release(streams[i]);
    }
    CHECK_U64(statistics_now().live_count, 0);
}

#ifndef CHILD_IS_ALONE
static const struct gni_device_ops *own_ops;
static int fork_count;

static void fork_body(void *handle)
{
    CHECK(gn_adapter_alloc(1000, 0, handle) == NULL);
}

static gn_status forking_open(gn_stream *stream)
{
    static struct child_result result;
    fork_count++;
    child_run(fork_body, stream->handle, &result);
    CHECK(child_is_ok(&result) && strstr(result.text, "forked") != NULL);
    return own_ops->stream_open(stream);
}

/* A child does not wait for a thread that was looking for a stream. */
static void test_fork(void)
{
    gn_stream *stream;
    own_ops = device->ops;
    struct gni_device_ops ops = *own_ops;
    ops.stream_open = forking_open;
    CHECK_OK(gn_stream_create(device, 0, 0, &stream));
    device->ops = &ops;
    void *pointer = gn_adapter_alloc(1000, 0, stream->handle);
    device->ops = own_ops;
    CHECK(pointer != NULL && fork_count == 1);
    gn_adapter_free(pointer, 1000, 0, stream->handle);
    gn_stream_release(stream);
}
#endif

int main(void)
{
    if (gn_device_get(GN_DEVICE_CUDA, 0, &device) != GN_OK) {
        printf("skipped: %s\n", gn_error_detail());
        return CHECK_SKIPPED;
    }
    CHECK_OK(gn_memory_manager_get(device, &manager));
    gn_adapter_init(1);
#ifndef CHILD_IS_ALONE
    RUN(test_fork); /* before any handle is known */
#endif
    RUN(test_starting);
    RUN(test_failures);
    RUN(test_sizes);
    RUN(test_streams);
    RUN(test_pinned);
    RUN(test_settings);
    RUN(test_threads);
    size_t leaked = 1;
    CHECK_OK(gn_shutdown(&leaked));
    return check_result();
}
