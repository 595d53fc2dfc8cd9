/*
 * conformance_capture.c: programs about stream capture and graphs.
 *
 * The calls that spoil a capture, and those that do not, were read off driver 580.
 */
#include "conformance.h"

static const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                            CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                            CU_STREAM_CAPTURE_MODE_RELAXED};

static CUstreamCaptureStatus status_of(const struct gni_cuda_functions *cuda, CUstream stream)
{
    CUstreamCaptureStatus status = (CUstreamCaptureStatus)99;
    CU(cuStreamIsCapturing, (stream, &status), CUDA_SUCCESS);
    return status;
}

/* Ends a capture that is lost. */
static void end_lost(const struct gni_cuda_functions *cuda, CUstream stream)
{
    CUgraph graph = (CUgraph)8;
    EXPECT(status_of(cuda, stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    CU(cuStreamEndCapture, (stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT(graph == NULL);
    EXPECT(status_of(cuda, stream) == CU_STREAM_CAPTURE_STATUS_NONE);
}

/* Ends a capture that must be well, and drops the graph. */
static void end_well(const struct gni_cuda_functions *cuda, CUstream stream)
{
    CUgraph graph = NULL;
    EXPECT(status_of(cuda, stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    NEED(cuStreamEndCapture, (stream, &graph));
    CU(cuGraphDestroy, (graph), CUDA_SUCCESS);
}

/* Instantiates, drops the graph, launches so often, and drops the rest. */
static void replay(const struct gni_cuda_functions *cuda, CUgraph graph, int times, CUstream stream)
{
    CUgraphExec exec = NULL;
    NEED(cuGraphInstantiateWithFlags, (&exec, graph, 0));
    CU(cuGraphDestroy, (graph), CUDA_SUCCESS);
    for (int i = 0; i < times; i++)
        CU(cuGraphLaunch, (exec, stream), CUDA_SUCCESS);
    CU(cuStreamSynchronize, (stream), CUDA_SUCCESS);
    CU(cuGraphExecDestroy, (exec), CUDA_SUCCESS);
}

static void capture_replay(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = ints_make(cuda, 100, 1);
    CUgraph graph = NULL;
    EXPECT(status_of(cuda, stream) == CU_STREAM_CAPTURE_STATUS_NONE);
    NEED(cuStreamBeginCapture, (stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT(status_of(cuda, stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    add_launch(cuda, block, 100, 10, stream);
    NEED(cuStreamEndCapture, (stream, &graph));
    EXPECT(int_read(cuda, block, stream) == 1); /* nothing has run */
    replay(cuda, graph, 2, stream);
    EXPECT(int_read(cuda, block + 396, stream) == 21);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
    CU(cuMemFree, (block), CUDA_SUCCESS);
}

static void capture_of_nothing(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUgraph graph = NULL;
    NEED(cuStreamBeginCapture, (stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    NEED(cuStreamEndCapture, (stream, &graph));
    EXPECT(graph != NULL);
    replay(cuda, graph, 1, stream);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
}

/* Fills and copies are nodes; a page-locked source is read at each launch. */
static void capture_copies_and_fills(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUdeviceptr one = ints_make(cuda, 4, 0), two = ints_make(cuda, 4, 0);
    int *host = NULL;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    NEED(cuMemHostAlloc, ((void **)&host, 16, 0));
    NEED(cuStreamBeginCapture, (stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(cuMemsetD32Async, (one, 3, 4, stream), CUDA_SUCCESS);
    CU(cuMemcpyAsync, (one + 4, (CUdeviceptr)(uintptr_t)host, 4, stream), CUDA_SUCCESS);
    CU(cuMemcpyAsync, (two, one, 16, stream), CUDA_SUCCESS);
    NEED(cuStreamEndCapture, (stream, &graph));
    NEED(cuGraphInstantiateWithFlags, (&exec, graph, 0));
    for (int i = 0; i < 3; i++) {
        *(volatile int *)host = 100 + i;
        CU(cuGraphLaunch, (exec, stream), CUDA_SUCCESS);
        EXPECT(int_read(cuda, two + 4, stream) == 100 + i);
        EXPECT(int_read(cuda, two + 12, stream) == 3);
    }
    CU(cuGraphExecDestroy, (exec), CUDA_SUCCESS);
    CU(cuGraphDestroy, (graph), CUDA_SUCCESS);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
    CU(cuMemFreeHost, (host), CUDA_SUCCESS);
    CU(cuMemFree, (one), CUDA_SUCCESS);
    CU(cuMemFree, (two), CUDA_SUCCESS);
}

struct fork {
    CUstream origin, side;
    CUevent out, back;
};

static struct fork fork_make(const struct gni_cuda_functions *cuda)
{
    struct fork fork = {stream_make(cuda, CU_STREAM_NON_BLOCKING),
                        stream_make(cuda, CU_STREAM_NON_BLOCKING), event_make(cuda),
                        event_make(cuda)};
    CU(cuStreamBeginCapture, (fork.origin, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    CU(cuEventRecord, (fork.out, fork.origin), CUDA_SUCCESS);
    CU(cuStreamWaitEvent, (fork.side, fork.out, 0), CUDA_SUCCESS);
    return fork;
}

static void fork_end(const struct gni_cuda_functions *cuda, const struct fork *fork)
{
    CU(cuEventDestroy, (fork->out), CUDA_SUCCESS);
    CU(cuEventDestroy, (fork->back), CUDA_SUCCESS);
    CU(cuStreamDestroy, (fork->origin), CUDA_SUCCESS);
    CU(cuStreamDestroy, (fork->side), CUDA_SUCCESS);
}

static void capture_fork_and_join(const struct gni_cuda_functions *cuda)
{
    CUdeviceptr one = ints_make(cuda, 100, 1), two = ints_make(cuda, 100, 2);
    CUgraph graph = NULL;
    struct fork fork = fork_make(cuda);
    EXPECT(status_of(cuda, fork.side) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    add_launch(cuda, one, 100, 10, fork.side);
    add_launch(cuda, two, 100, 20, fork.origin);
    CU(cuEventRecord, (fork.back, fork.side), CUDA_SUCCESS);
    CU(cuStreamWaitEvent, (fork.origin, fork.back, 0), CUDA_SUCCESS);
    CU(cuMemcpyAsync, (two, one, 4, fork.origin), CUDA_SUCCESS);
    NEED(cuStreamEndCapture, (fork.origin, &graph));
    EXPECT(status_of(cuda, fork.side) == CU_STREAM_CAPTURE_STATUS_NONE);
    replay(cuda, graph, 1, fork.origin);
    EXPECT(int_read(cuda, two, fork.origin) == 11 && int_read(cuda, two + 4, fork.origin) == 22);
    fork_end(cuda, &fork);
    CU(cuMemFree, (one), CUDA_SUCCESS);
    CU(cuMemFree, (two), CUDA_SUCCESS);
}

static void capture_unjoined(const struct gni_cuda_functions *cuda)
{
    CUdeviceptr block = ints_make(cuda, 100, 1);
    CUgraph graph = (CUgraph)8;
    struct fork fork = fork_make(cuda);
    add_launch(cuda, block, 100, 10, fork.side);
    CU(cuStreamEndCapture, (fork.origin, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    EXPECT(status_of(cuda, fork.origin) == CU_STREAM_CAPTURE_STATUS_NONE);
    EXPECT(status_of(cuda, fork.side) == CU_STREAM_CAPTURE_STATUS_NONE);
    fork_end(cuda, &fork);
    CU(cuMemFree, (block), CUDA_SUCCESS);
}

/* The end belongs to the stream that the capture began in. */
static void capture_end_elsewhere(const struct gni_cuda_functions *cuda)
{
    CUgraph graph = (CUgraph)8;
    struct fork fork = fork_make(cuda);
    CU(cuStreamEndCapture, (fork.side, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    CU(cuStreamEndCapture, (fork.origin, &graph), CUDA_SUCCESS,
       CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    if (graph != NULL && graph != (CUgraph)8)
        CU(cuGraphDestroy, (graph), CUDA_SUCCESS);
    fork_end(cuda, &fork);
}

/* A captured stream cannot wait for work outside of the capture. */
static void capture_isolation(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUstream other = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUevent event = event_make(cuda);
    CU(cuEventRecord, (event, other), CUDA_SUCCESS);
    NEED(cuStreamBeginCapture, (stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(cuStreamWaitEvent, (stream, event, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    end_lost(cuda, stream);
    CU(cuEventDestroy, (event), CUDA_SUCCESS);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
    CU(cuStreamDestroy, (other), CUDA_SUCCESS);
}

/* Two captures cannot become one. */
static void capture_merge(const struct gni_cuda_functions *cuda)
{
    CUstream one = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUstream two = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUevent event = event_make(cuda);
    CUgraph graph;
    NEED(cuStreamBeginCapture, (one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    NEED(cuStreamBeginCapture, (two, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(cuEventRecord, (event, one), CUDA_SUCCESS);
    CU(cuStreamWaitEvent, (two, event, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    CU(cuStreamEndCapture, (one, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CU(cuStreamEndCapture, (two, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CU(cuEventDestroy, (event), CUDA_SUCCESS);
    CU(cuStreamDestroy, (one), CUDA_SUCCESS);
    CU(cuStreamDestroy, (two), CUDA_SUCCESS);
}

static CUstream thread_target;

static void capture_end_in_thread(const struct gni_cuda_functions *cuda)
{
    CUgraph graph;
    CU(cuStreamEndCapture, (thread_target, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
}

static void capture_end_in_thread_well(const struct gni_cuda_functions *cuda)
{
    end_well(cuda, thread_target);
}

static void capture_wrong_thread(const struct gni_cuda_functions *cuda)
{
    thread_target = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    NEED(cuStreamBeginCapture, (thread_target, CU_STREAM_CAPTURE_MODE_GLOBAL));
    thread_run(cuda, capture_end_in_thread);
    CUgraph graph = NULL;
    CU(cuStreamEndCapture, (thread_target, &graph), CUDA_ERROR_ILLEGAL_STATE); /* it is over */
    NEED(cuStreamBeginCapture, (thread_target, CU_STREAM_CAPTURE_MODE_RELAXED));
    thread_run(cuda, capture_end_in_thread_well); /* which is what relaxed is for */
    CU(cuStreamDestroy, (thread_target), CUDA_SUCCESS);
}

static void capture_errors(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CU(cuStreamBeginCapture, (NULL, CU_STREAM_CAPTURE_MODE_GLOBAL),
       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CU(cuStreamBeginCapture, (stream, (CUstreamCaptureMode)77), CUDA_ERROR_INVALID_VALUE);
    CU(cuStreamEndCapture, (stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
    CU(cuStreamIsCapturing, (stream, NULL), CUDA_ERROR_INVALID_VALUE);
    NEED(cuStreamBeginCapture, (stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(cuStreamBeginCapture, (stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
    CU(cuStreamEndCapture, (stream, &graph), CUDA_SUCCESS);
    CU(cuGraphInstantiateWithFlags, (&exec, graph, 1ull << 40), CUDA_ERROR_INVALID_VALUE);
    CU(cuGraphInstantiateWithFlags, (NULL, graph, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuGraphInstantiateWithFlags, (&exec, NULL, 0), BAD_HANDLE);
    CU(cuGraphLaunch, (NULL, stream), BAD_HANDLE);
    CU(cuGraphDestroy, (graph), CUDA_SUCCESS);
    CU(cuGraphDestroy, (NULL), BAD_HANDLE);
    CU(cuGraphExecDestroy, (NULL), BAD_HANDLE);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
}

/* An event that was recorded in a capture has no time and no end. */
static void capture_event(const struct gni_cuda_functions *cuda)
{
    struct fork fork = fork_make(cuda);
    CU(cuEventQuery, (fork.out), CUDA_ERROR_CAPTURED_EVENT);
    CUgraph graph = NULL;
    CU(cuEventRecord, (fork.back, fork.side), CUDA_SUCCESS, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CU(cuStreamWaitEvent, (fork.origin, fork.back, 0), CUDA_SUCCESS,
       CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CU(cuStreamEndCapture, (fork.origin, &graph), CUDA_SUCCESS,
       CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    if (graph != NULL)
        CU(cuGraphDestroy, (graph), CUDA_SUCCESS);
    CU(cuEventSynchronize, (fork.out), CUDA_ERROR_INVALID_VALUE); /* its capture is over */
    CU(cuEventRecord, (fork.out, fork.side), CUDA_SUCCESS);       /* an ordinary event again */
    CU(cuEventSynchronize, (fork.out), CUDA_SUCCESS);
    fork_end(cuda, &fork);
}

/* A captured stream cannot be asked or waited for, in any mode. */
static void capture_questions(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    unsigned long long id;
    for (int i = 0; i < 3; i++) {
        NEED(cuStreamBeginCapture, (stream, modes[i]));
        CU(cuStreamQuery, (stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        end_lost(cuda, stream);
        NEED(cuStreamBeginCapture, (stream, modes[i]));
        CU(cuStreamSynchronize, (stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        end_lost(cuda, stream);
        NEED(cuStreamBeginCapture, (stream, modes[i]));
        CU(cuStreamGetId, (stream, &id), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        end_lost(cuda, stream);
    }
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
}

/* What a lost capture gives until it is ended. */
static void capture_is_lost(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = ints_make(cuda, 1, 1);
    CUevent event = event_make(cuda);
    NEED(cuStreamBeginCapture, (stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CU(cuStreamQuery, (stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CU(cuMemsetD8Async, (block, 0, 1, stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CU(cuEventRecord, (event, stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    end_lost(cuda, stream);
    CU(cuEventDestroy, (event), CUDA_SUCCESS);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
    CU(cuMemFree, (block), CUDA_SUCCESS);
}

/* Calls that no capture minds. */
static void capture_harmless_calls(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING), made = NULL;
    CUcontext context;
    CUevent event = NULL;
    int least, greatest;
    size_t free_bytes, total;
    unsigned long long id;
    for (int i = 0; i < 3; i++) {
        NEED(cuStreamBeginCapture, (stream, modes[i]));
        CU(cuStreamGetCtx, (stream, &context), CUDA_SUCCESS);
        CU(cuStreamGetPriority, (stream, &least), CUDA_SUCCESS);
        CU(cuMemGetInfo, (&free_bytes, &total), CUDA_SUCCESS);
        CU(cuCtxGetStreamPriorityRange, (&least, &greatest), CUDA_SUCCESS);
        CU(cuEventCreate, (&event, 0), CUDA_SUCCESS);
        CU(cuEventDestroy, (event), CUDA_SUCCESS);
        CU(cuStreamCreateWithPriority, (&made, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
        CU(cuStreamGetId, (CU_STREAM_LEGACY, &id), CUDA_SUCCESS);
        CU(cuStreamGetId, (CU_STREAM_PER_THREAD, &id), CUDA_SUCCESS);
        end_well(cuda, stream);
        CU(cuStreamDestroy, (made), CUDA_SUCCESS);
    }
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
}

/* Calls that might wait for the captured stream: by mode. */
static void capture_unsafe_calls(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUdeviceptr pointer = 0;
    void *host = NULL;
    for (int i = 0; i < 3; i++) {
        bool is_free = modes[i] == CU_STREAM_CAPTURE_MODE_RELAXED;
        int result = is_free ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        NEED(cuStreamBeginCapture, (stream, modes[i]));
        CU(cuMemAlloc, (&pointer, 100), result);
        (is_free ? end_well : end_lost)(cuda, stream);
        NEED(cuStreamBeginCapture, (stream, modes[i]));
        CU(cuMemHostAlloc, (&host, 100, 0), result);
        (is_free ? end_well : end_lost)(cuda, stream);
    }
    CU(cuMemFree, (pointer), CUDA_SUCCESS);
    CU(cuMemFreeHost, (host), CUDA_SUCCESS);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
}

static void context_wait_is_refused(const struct gni_cuda_functions *cuda)
{
    CU(cuCtxSynchronize, (), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

/* The context has the captured stream in it: it cannot be waited for in any mode, by any thread. */
static void capture_and_context(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUgraph graph = NULL;
    for (int i = 0; i < 6; i++) {
        NEED(cuStreamBeginCapture, (stream, modes[i % 3]));
        if (i < 3)
            context_wait_is_refused(cuda);
        else
            thread_run(cuda, context_wait_is_refused);
        CU(cuStreamEndCapture, (stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
           modes[i % 3] != CU_STREAM_CAPTURE_MODE_GLOBAL ? CUDA_SUCCESS
                                                         : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        if (graph != NULL)
            CU(cuGraphDestroy, (graph), CUDA_SUCCESS);
        CU(cuCtxSynchronize, (), CUDA_SUCCESS);
    }
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
}

/* What may wait, but not for the captured stream, is allowed while that is captured relaxed. */
static void capture_relaxed_calls(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUstream other = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUevent event = event_make(cuda);
    CUdeviceptr block = ints_make(cuda, 100, 1), gone = ints_make(cuda, 100, 1);
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    void *host = NULL;
    NEED(cuMemHostAlloc, (&host, 100, 0));
    NEED(cuStreamBeginCapture, (other, CU_STREAM_CAPTURE_MODE_RELAXED));
    add_launch(cuda, block, 100, 10, other);
    NEED(cuStreamEndCapture, (other, &graph));
    NEED(cuStreamBeginCapture, (stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CU(cuGraphInstantiateWithFlags, (&exec, graph, 0), CUDA_SUCCESS);
    CU(cuGraphLaunch, (exec, other), CUDA_SUCCESS);
    CU(cuEventRecord, (event, other), CUDA_SUCCESS);
    CU(cuEventQuery, (event), CUDA_SUCCESS, CUDA_ERROR_NOT_READY);
    CU(cuEventSynchronize, (event), CUDA_SUCCESS);
    CU(cuStreamWaitEvent, (NULL, event, 0), CUDA_SUCCESS);
    CU(cuStreamQuery, (other), CUDA_SUCCESS);
    CU(cuStreamSynchronize, (other), CUDA_SUCCESS);
    EXPECT(int_read(cuda, block, NULL) == 11); /* the legacy stream, too */
    CU(cuMemFree, (gone), CUDA_SUCCESS);
    CU(cuMemFreeHost, (host), CUDA_SUCCESS);
    CU(cuGraphExecDestroy, (exec), CUDA_SUCCESS);
    CU(cuGraphDestroy, (graph), CUDA_SUCCESS);
    CU(cuEventDestroy, (event), CUDA_SUCCESS);
    CU(cuStreamDestroy, (other), CUDA_SUCCESS);
    end_well(cuda, stream);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
    CU(cuMemFree, (block), CUDA_SUCCESS);
}

/* A thread may say that it knows what it does. */
static void capture_mode_of_thread(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUdeviceptr pointer = 0;
    NEED(cuStreamBeginCapture, (stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(cuThreadExchangeStreamCaptureMode, (&mode), CUDA_SUCCESS);
    EXPECT(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
    CU(cuMemAlloc, (&pointer, 100), CUDA_SUCCESS);
    CU(cuThreadExchangeStreamCaptureMode, (&mode), CUDA_SUCCESS);
    EXPECT(mode == CU_STREAM_CAPTURE_MODE_RELAXED);
    end_well(cuda, stream);
    CU(cuMemFree, (pointer), CUDA_SUCCESS);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
}

static void alloc_in_thread(const struct gni_cuda_functions *cuda)
{
    CUdeviceptr pointer = 0;
    CU(cuMemAlloc, (&pointer, 100), CUDA_SUCCESS);
    CU(cuMemFree, (pointer), CUDA_SUCCESS);
}

static void alloc_in_thread_is_refused(const struct gni_cuda_functions *cuda)
{
    CUdeviceptr pointer = 0;
    CU(cuMemAlloc, (&pointer, 100), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

/* Another thread is in the way of a global capture, and of no other. */
static void capture_and_other_threads(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    NEED(cuStreamBeginCapture, (stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    thread_run(cuda, alloc_in_thread);
    end_well(cuda, stream);
    NEED(cuStreamBeginCapture, (stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    thread_run(cuda, alloc_in_thread_is_refused);
    end_lost(cuda, stream);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
}

/* The legacy stream would have to wait for the captured one. */
static void capture_and_legacy_stream(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_DEFAULT);
    CUdeviceptr block = ints_make(cuda, 1, 1);
    CUstreamCaptureStatus status;
    NEED(cuStreamBeginCapture, (stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(cuStreamIsCapturing, (NULL, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    EXPECT(status_of(cuda, stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CU(cuMemsetD32Async, (block, 5, 1, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    end_lost(cuda, stream);
    EXPECT(int_read(cuda, block, NULL) == 1);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
    stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    NEED(cuStreamBeginCapture, (stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(cuMemsetD32Async, (block, 6, 1, NULL), CUDA_SUCCESS); /* this one it does not wait for */
    end_well(cuda, stream);
    EXPECT(int_read(cuda, block, NULL) == 6);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
    CU(cuMemFree, (block), CUDA_SUCCESS);
}

/* The arguments of a captured kernel are those of the capture, whatever the graph outlives. */
static void graph_owns_its_arguments(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = ints_make(cuda, 1, 1);
    CUgraph graph = NULL;
    int count = 1, value = 4;
    void *arguments[] = {&block, &count, &value};
    NEED(cuStreamBeginCapture, (stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(cuLaunchKernel, (conformance.add, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL),
       CUDA_SUCCESS);
    value = 1000;
    NEED(cuStreamEndCapture, (stream, &graph));
    replay(cuda, graph, 3, stream);
    EXPECT(int_read(cuda, block, stream) == 13);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
    CU(cuMemFree, (block), CUDA_SUCCESS);
}

static CUDA_KERNEL_NODE_PARAMS_v2 node_of(CUfunction function, void **arguments)
{
    return (CUDA_KERNEL_NODE_PARAMS_v2){.func = function,
                                        .gridDimX = 1,
                                        .gridDimY = 1,
                                        .gridDimZ = 1,
                                        .blockDimX = 1,
                                        .blockDimY = 1,
                                        .blockDimZ = 1,
                                        .kernelParams = arguments};
}

/* Two kernels in a row, which are changed between launches; what is launched keeps what it had. */
static void graph_by_hand(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = ints_make(cuda, 2, 1);
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUgraphNode nodes[2] = {NULL, NULL};
    CUgraphEdgeData edge = {.type = CU_GRAPH_DEPENDENCY_TYPE_DEFAULT};
    long long place = 0;
    int count = 1, value = 5, more = 2;
    void *put[] = {&block, &place, &value}, *add[] = {&block, &count, &more};
    CUDA_KERNEL_NODE_PARAMS_v2 first = node_of(conformance.put, put);
    CUDA_KERNEL_NODE_PARAMS_v2 second = node_of(conformance.add, add);
    CU(cuGraphCreate, (&graph, 1), CUDA_ERROR_INVALID_VALUE);
    NEED(cuGraphCreate, (&graph, 0));
    CU(cuGraphAddKernelNode, (&nodes[0], NULL, NULL, 0, &first), BAD_HANDLE);
    NEED(cuGraphAddKernelNode, (&nodes[0], graph, NULL, 0, &first));
    NEED(cuGraphAddKernelNode, (&nodes[1], graph, NULL, 0, &second));
    CU(cuGraphAddDependencies, (NULL, &nodes[0], &nodes[1], &edge, 1), BAD_HANDLE);
    NEED(cuGraphAddDependencies, (graph, &nodes[0], &nodes[1], &edge, 1));
    NEED(cuGraphInstantiateWithFlags, (&exec, graph, 0));
    CU(cuGraphLaunch, (exec, stream), CUDA_SUCCESS);
    EXPECT(int_read(cuda, block, stream) == 7);
    hold_begin(cuda, stream);
    CU(cuGraphLaunch, (exec, stream), CUDA_SUCCESS); /* puts 5 and adds 2 */
    CU(cuGraphExecKernelNodeSetParams, (NULL, nodes[0], &first), BAD_HANDLE);
    more = 10; /* now the first node adds as well, and the second adds to the next one, too */
    NEED(cuGraphExecKernelNodeSetParams, (exec, nodes[0], &second));
    more = 100;
    count = 2;
    second.blockDimX = 2;
    NEED(cuGraphExecKernelNodeSetParams, (exec, nodes[1], &second));
    more = count = 0;
    CU(cuGraphLaunch, (exec, stream), CUDA_SUCCESS);
    hold_end();
    EXPECT(int_read(cuda, block, stream) == 117);
    EXPECT(int_read(cuda, block + 4, stream) == 101);
    CU(cuGraphExecDestroy, (exec), CUDA_SUCCESS);
    CU(cuGraphDestroy, (graph), CUDA_SUCCESS);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
    CU(cuMemFree, (block), CUDA_SUCCESS);
}

/* On its way when it is destroyed: it is run all the same. */
static void graph_destroyed_while_it_waits(const struct gni_cuda_functions *cuda)
{
    CUstream stream = stream_make(cuda, CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = ints_make(cuda, 1, 1);
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUgraphNode node = NULL;
    int count = 1, value = 5;
    void *add[] = {&block, &count, &value};
    CUDA_KERNEL_NODE_PARAMS_v2 parameters = node_of(conformance.add, add);
    NEED(cuGraphCreate, (&graph, 0));
    NEED(cuGraphAddKernelNode, (&node, graph, NULL, 0, &parameters));
    NEED(cuGraphInstantiateWithFlags, (&exec, graph, 0));
    hold_begin(cuda, stream);
    CU(cuGraphLaunch, (exec, stream), CUDA_SUCCESS);
    CU(cuGraphExecDestroy, (exec), CUDA_SUCCESS);
    CU(cuGraphDestroy, (graph), CUDA_SUCCESS);
    hold_end();
    EXPECT(int_read(cuda, block, stream) == 6);
    CU(cuStreamDestroy, (stream), CUDA_SUCCESS);
    CU(cuMemFree, (block), CUDA_SUCCESS);
}

const struct conformance_program conformance_capture[] = {
    PROGRAM(capture_replay, 0),
    PROGRAM(capture_of_nothing, 0),
    PROGRAM(capture_copies_and_fills, 0),
    PROGRAM(capture_fork_and_join, 0),
    PROGRAM(capture_unjoined, 0),
    PROGRAM(capture_end_elsewhere, 0),
    PROGRAM(capture_isolation, 0),
    PROGRAM(capture_merge, 0),
    PROGRAM(capture_wrong_thread, 0),
    PROGRAM(capture_errors, 0),
    PROGRAM(capture_event, 0),
    PROGRAM(capture_questions, 0),
    PROGRAM(capture_is_lost, 0),
    PROGRAM(capture_harmless_calls, 0),
    PROGRAM(capture_unsafe_calls, 0),
    PROGRAM(capture_and_context, 0),
    PROGRAM(capture_relaxed_calls, 0),
    PROGRAM(capture_mode_of_thread, 0),
    PROGRAM(capture_and_other_threads, 0),
    PROGRAM(capture_and_legacy_stream, 0),
    PROGRAM(graph_owns_its_arguments, 0),
    PROGRAM(graph_by_hand, 0),
    PROGRAM(graph_destroyed_while_it_waits, 0),
    {NULL, NULL, 0},
};
