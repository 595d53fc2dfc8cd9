/*
 * conformance_stream.c: programs about streams and events.
 */
#include "conformance.h"

static void stream_create(const struct gni_cuda_functions *cuda)
{
    CUstream one = NULL, two = NULL;
    NEED(cuStreamCreateWithPriority, (&one, CU_STREAM_NON_BLOCKING, 0));
    NEED(cuStreamCreateWithPriority, (&two, CU_STREAM_DEFAULT, 0));
    EXPECT(one != two && (uintptr_t)one > 2 && (uintptr_t)two > 2);
    CU(cuStreamQuery, (one), CUDA_SUCCESS);
    CU(cuStreamSynchronize, (two), CUDA_SUCCESS);
    CU(cuStreamDestroy, (one), CUDA_SUCCESS);
    CU(cuStreamDestroy, (two), CUDA_SUCCESS);
    CU(cuStreamCreateWithPriority, (&one, 0x100, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuStreamCreateWithPriority, (NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuStreamDestroy, (NULL), BAD_HANDLE);
}

static void stream_priorities(const struct gni_cuda_functions *cuda)
{
    int least = 99, greatest = 99, got = 99;
    CUstream high = NULL, low = NULL;
    NEED(cuCtxGetStreamPriorityRange, (&least, &greatest));
    EXPECT(greatest <= least);
    CU(cuCtxGetStreamPriorityRange, (NULL, NULL), CUDA_SUCCESS); /* each is optional */
    NEED(cuStreamCreateWithPriority, (&high, CU_STREAM_NON_BLOCKING, greatest - 1000));
    NEED(cuStreamCreateWithPriority, (&low, CU_STREAM_NON_BLOCKING, least + 1000));
    CU(cuStreamGetPriority, (high, &got), CUDA_SUCCESS);
    EXPECT(got == greatest);
    CU(cuStreamGetPriority, (low, &got), CUDA_SUCCESS);
    EXPECT(got == least);
    CU(cuStreamGetPriority, (low, NULL), CUDA_ERROR_INVALID_VALUE);
    CU(cuStreamDestroy, (high), CUDA_SUCCESS);
    CU(cuStreamDestroy, (low), CUDA_SUCCESS);
}

static unsigned long long per_thread_id;

static void per_thread_id_get(const struct gni_cuda_functions *cuda)
{
    CU(cuStreamGetId, (CU_STREAM_PER_THREAD, &per_thread_id), CUDA_SUCCESS);
}

static void stream_identity(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, 0);
    unsigned long long one = 0, two = 0, legacy = 0, null = 0, own = 0;
    CUcontext context = NULL;
    CU(cuStreamGetId, (stream, &one), CUDA_SUCCESS);
    CU(cuStreamGetId, (stream, &two), CUDA_SUCCESS);
    CU(cuStreamGetId, (CU_STREAM_LEGACY, &legacy), CUDA_SUCCESS);
    CU(cuStreamGetId, (NULL, &null), CUDA_SUCCESS);
    CU(cuStreamGetId, (CU_STREAM_PER_THREAD, &own), CUDA_SUCCESS);
    EXPECT(one == two && one != legacy && legacy == null && own != legacy && own != one);
    CU(cuStreamGetId, (stream, NULL), CUDA_ERROR_INVALID_VALUE);
    CU(cuStreamGetCtx, (stream, &context), CUDA_SUCCESS);
    EXPECT(context == conformance.context);
    CU(cuStreamGetCtx, (stream, NULL), CUDA_ERROR_INVALID_VALUE);
    thread_run(cuda, per_thread_id_get);
    EXPECT(per_thread_id != own && per_thread_id != legacy);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
}

/* An id is never given twice, even if the handle is. */
static void stream_ids_are_not_reused(const struct gni_cuda_functions *cuda)
{
    unsigned long long last = 0, id = 0;
    for (int i = 0; i < 20; i++) {
        CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
        CU(cuStreamGetId, (stream, &id), CUDA_SUCCESS);
        EXPECT(id != last);
        last = id;
        CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
    }
}

/* Work of a destroyed stream is done all the same. */
static void stream_destroy_with_work(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = ints_make(cuda, 100, 1);
    hold_begin(cuda, stream);
    add_launch(cuda, block, 100, 2, stream);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
    hold_end();
    CU(cuCtxSynchronize, (), CUDA_SUCCESS);
    EXPECT(int_read(cuda, block + 396, NULL) == 3);
    CU(cuMemFree, (block), CUDA_SUCCESS);
}

/* ---- events --------------------------------------------------------------------------------- */

static void event_unrecorded(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUevent event = event_make(cuda);
    CU(cuEventQuery, (event), CUDA_SUCCESS);
    CU(cuEventSynchronize, (event), CUDA_SUCCESS);
    CU(cuStreamWaitEvent, (stream, event, 0), CUDA_SUCCESS);
    CU(cuStreamSynchronize, (stream), CUDA_SUCCESS);
    CU(cuEventDestroy, (event), CUDA_SUCCESS);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
}

static void event_errors(const struct gni_cuda_functions *cuda)
{
    CUevent event = event_make(cuda), other;
    CU(cuEventCreate, (&other, 0x100), CUDA_ERROR_INVALID_VALUE);
    CU(cuEventCreate, (NULL, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuEventRecord, (NULL, NULL), BAD_HANDLE);
    CU(cuEventQuery, (NULL), BAD_HANDLE);
    CU(cuEventSynchronize, (NULL), BAD_HANDLE);
    CU(cuEventDestroy, (NULL), BAD_HANDLE);
    CU(cuStreamWaitEvent, (NULL, NULL, 0), BAD_HANDLE);
    CU(cuStreamWaitEvent, (NULL, event, 0x100), CUDA_ERROR_INVALID_VALUE);
    CU(cuEventDestroy, (event), CUDA_SUCCESS);
}

/* What is queued after the record does not concern the event. */
static void event_is_a_snapshot(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUevent event = event_make(cuda);
    CUdeviceptr block = ints_make(cuda, 1, 1);
    add_launch(cuda, block, 1, 1, stream);
    CU(cuEventRecord, (event, stream), CUDA_SUCCESS);
    hold_begin(cuda, stream);
    add_launch(cuda, block, 1, 1, stream);
    CU(cuEventSynchronize, (event), CUDA_SUCCESS);
    CU(cuEventQuery, (event), CUDA_SUCCESS);
    CU(cuStreamQuery, (stream), HELD);
    hold_end();
    CU(cuStreamSynchronize, (stream), CUDA_SUCCESS);
    EXPECT(int_read(cuda, block, stream) == 3);
    CU(cuEventDestroy, (event), CUDA_SUCCESS);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
    CU(cuMemFree, (block), CUDA_SUCCESS);
}

/* A second record replaces the first, also for questions. */
static void event_record_again(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUevent event = event_make(cuda);
    CU(cuEventRecord, (event, stream), CUDA_SUCCESS);
    CU(cuEventSynchronize, (event), CUDA_SUCCESS);
    hold_begin(cuda, stream);
    CU(cuEventRecord, (event, stream), CUDA_SUCCESS);
    CU(cuEventQuery, (event), HELD);
    hold_end();
    CU(cuEventSynchronize, (event), CUDA_SUCCESS);
    CU(cuEventQuery, (event), CUDA_SUCCESS);
    CU(cuEventDestroy, (event), CUDA_SUCCESS);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
}

/* A wait means the record that was the last when it was called: a later one does not delay it. */
static void event_wait_takes_the_last_record(const struct gni_cuda_functions *cuda)
{
    CUstream one = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUstream two = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUevent event = event_make(cuda);
    CU(cuEventRecord, (event, one), CUDA_SUCCESS);
    CU(cuStreamWaitEvent, (two, event, 0), CUDA_SUCCESS);
    hold_begin(cuda, one);
    CU(cuEventRecord, (event, one), CUDA_SUCCESS);
    CU(cuStreamSynchronize, (two), CUDA_SUCCESS); /* would not return if it waited for the second */
    hold_end();
    CU(cuStreamSynchronize, (one), CUDA_SUCCESS);
    CU(cuEventDestroy, (event), CUDA_SUCCESS);
    CU(cuStreamDestroy, (one), CUDA_SUCCESS);
    CU(cuStreamDestroy, (two), CUDA_SUCCESS);
}

static void event_orders_streams(const struct gni_cuda_functions *cuda)
{
    CUstream one = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUstream two = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUevent event = event_make(cuda);
    CUdeviceptr block = ints_make(cuda, 1000, 1);
    hold_begin(cuda, one);
    add_launch(cuda, block, 1000, 10, one);
    CU(cuEventRecord, (event, one), CUDA_SUCCESS);
    CU(cuStreamWaitEvent, (two, event, 0), CUDA_SUCCESS);
    CU(cuEventDestroy, (event), CUDA_SUCCESS); /* the wait stands */
    add_launch(cuda, block, 1000, 100, two);
    CU(cuStreamQuery, (two), HELD);
    hold_end();
    EXPECT(int_read(cuda, block + 3996, two) == 111);
    CU(cuStreamDestroy, (one), CUDA_SUCCESS);
    CU(cuStreamDestroy, (two), CUDA_SUCCESS);
    CU(cuMemFree, (block), CUDA_SUCCESS);
}

static void event_elapsed(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUevent start = NULL, end = NULL, plain = NULL;
    float time_ms = -1;
    NEED(cuEventCreate, (&start, CU_EVENT_DEFAULT));
    NEED(cuEventCreate, (&end, CU_EVENT_BLOCKING_SYNC));
    NEED(cuEventCreate, (&plain, CU_EVENT_DISABLE_TIMING));
    CU(cuEventElapsedTime, (&time_ms, start, end), CUDA_ERROR_INVALID_HANDLE); /* not recorded */
    CU(cuEventRecord, (start, stream), CUDA_SUCCESS);
    CU(cuEventRecord, (plain, stream), CUDA_SUCCESS);
    hold_begin(cuda, stream);
    CU(cuEventRecord, (end, stream), CUDA_SUCCESS);
    CU(cuEventElapsedTime, (&time_ms, start, end), HELD);
    hold_end();
    CU(cuEventSynchronize, (end), CUDA_SUCCESS);
    CU(cuEventElapsedTime, (&time_ms, start, end), CUDA_SUCCESS);
    EXPECT(time_ms >= 0);
    CU(cuEventElapsedTime, (&time_ms, start, plain), CUDA_ERROR_INVALID_HANDLE);
    CU(cuEventElapsedTime, (NULL, start, end), CUDA_ERROR_INVALID_HANDLE);
    CU(cuEventDestroy, (start), CUDA_SUCCESS);
    CU(cuEventDestroy, (end), CUDA_SUCCESS);
    CU(cuEventDestroy, (plain), CUDA_SUCCESS);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
}

/* ---- the default streams -------------------------------------------------------------------- */

/* The legacy stream waits for blocking streams, and not for the others. */
static void legacy_waits_for_blocking(const struct gni_cuda_functions *cuda)
{
    CUstream blocking = stream_make(cuda, CU_STREAM_DEFAULT);
    CUstream free_stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = ints_make(cuda, 1, 1), other = ints_make(cuda, 1, 1);
    hold_begin(cuda, blocking);
    add_launch(cuda, block, 1, 10, blocking);
    add_launch(cuda, block, 1, 100, NULL);
    CU(cuStreamQuery, (NULL), HELD);
    add_launch(cuda, other, 1, 5, free_stream);
    CU(cuStreamSynchronize, (free_stream), CUDA_SUCCESS); /* nothing is in its way */
    hold_end();
    CU(cuStreamSynchronize, (CU_STREAM_LEGACY), CUDA_SUCCESS);
    EXPECT(int_read(cuda, block, NULL) == 111 && int_read(cuda, other, free_stream) == 6);
    CU(cuStreamDestroy, (blocking), CUDA_SUCCESS);
    CU(cuStreamDestroy, (free_stream), CUDA_SUCCESS);
    CU(cuMemFree, (block), CUDA_SUCCESS);
    CU(cuMemFree, (other), CUDA_SUCCESS);
}

/* ... and blocking streams wait for the legacy stream. */
static void blocking_waits_for_legacy(const struct gni_cuda_functions *cuda)
{
    CUstream blocking = stream_make(cuda, CU_STREAM_DEFAULT);
    CUstream free_stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = ints_make(cuda, 1, 1), other = ints_make(cuda, 1, 1);
    hold_begin(cuda, NULL);
    add_launch(cuda, block, 1, 10, NULL);
    add_launch(cuda, block, 1, 100, blocking);
    CU(cuStreamQuery, (blocking), HELD);
    add_launch(cuda, other, 1, 5, free_stream);
    CU(cuStreamSynchronize, (free_stream), CUDA_SUCCESS);
    hold_end();
    EXPECT(int_read(cuda, block, blocking) == 111);
    CU(cuStreamDestroy, (blocking), CUDA_SUCCESS);
    CU(cuStreamDestroy, (free_stream), CUDA_SUCCESS);
    CU(cuMemFree, (block), CUDA_SUCCESS);
    CU(cuMemFree, (other), CUDA_SUCCESS);
}

/* The thread's own default stream is an ordinary blocking stream. */
static void per_thread_stream(const struct gni_cuda_functions *cuda)
{
    CUstream blocking = stream_make(cuda, CU_STREAM_DEFAULT);
    CUdeviceptr block = ints_make(cuda, 1, 1), other = ints_make(cuda, 1, 1);
    hold_begin(cuda, CU_STREAM_PER_THREAD);
    add_launch(cuda, block, 1, 10, CU_STREAM_PER_THREAD);
    add_launch(cuda, other, 1, 5, blocking);
    CU(cuStreamSynchronize, (blocking), CUDA_SUCCESS); /* not joined with it */
    add_launch(cuda, block, 1, 100, NULL);
    CU(cuStreamQuery, (NULL), HELD);
    hold_end();
    EXPECT(int_read(cuda, block, NULL) == 111 && int_read(cuda, other, NULL) == 6);
    CU(cuStreamDestroy, (blocking), CUDA_SUCCESS);
    CU(cuMemFree, (block), CUDA_SUCCESS);
    CU(cuMemFree, (other), CUDA_SUCCESS);
}

/* Synchronizing the context waits for every stream. */
static void context_synchronize(const struct gni_cuda_functions *cuda)
{
    CUstream streams[4];
    CUdeviceptr blocks[4];
    for (int i = 0; i < 4; i++) {
        streams[i] = stream_make(cuda, i % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT);
        blocks[i] = ints_make(cuda, 1000, i);
        add_launch(cuda, blocks[i], 1000, 10, streams[i]);
    }
    CU(cuCtxSynchronize, (), CUDA_SUCCESS);
    for (int i = 0; i < 4; i++) {
        CU(cuStreamQuery, (streams[i]), CUDA_SUCCESS);
        EXPECT(int_read(cuda, blocks[i] + 3996, NULL) == i + 10);
        CU(cuStreamDestroy, (streams[i]), CUDA_SUCCESS);
        CU(cuMemFree, (blocks[i]), CUDA_SUCCESS);
    }
}

const struct conformance_program conformance_stream[] = {
    PROGRAM(stream_create, 0),
    PROGRAM(stream_priorities, 0),
    PROGRAM(stream_identity, 0),
    PROGRAM(stream_ids_are_not_reused, 0),
    PROGRAM(stream_destroy_with_work, 0),
    PROGRAM(event_unrecorded, 0),
    PROGRAM(event_errors, 0),
    PROGRAM(event_is_a_snapshot, 0),
    PROGRAM(event_record_again, 0),
    PROGRAM(event_wait_takes_the_last_record, 0),
    PROGRAM(event_orders_streams, 0),
    PROGRAM(event_elapsed, 0),
    PROGRAM(legacy_waits_for_blocking, 0),
    PROGRAM(blocking_waits_for_legacy, 0),
    PROGRAM(per_thread_stream, 0),
    PROGRAM(context_synchronize, 0),
    {NULL, NULL, 0},
};
