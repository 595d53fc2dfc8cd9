/*
 * test_cuda_streams.c: streams and events of GPUs, on the stand-in of tests/fake: their lives, those of other
 * libraries, captured ones, threads.
 */
#include "cuda_suite.h"

#include "base/host.h"

#include <pthread.h>

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
    gn_device far = {.ops = ops,
                     .type = GN_DEVICE_CUDA,
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

int main(void)
{
    CHECK(setenv("GENESIS_CUDA_DRIVER", FAKE, 1) == 0);
    CHECK(setenv("GENESIS_CUDA_ALLOCATOR", "direct", 1) == 0);
    devices_open();
    RUN(test_stream_priorities);
    RUN(test_stream_life);
    RUN(test_foreign_streams);
    RUN(test_captured_streams);
    RUN(test_streams_of_threads);
    RUN(test_streams_of_many_devices);
    RUN(test_events);
    return check_result();
}
