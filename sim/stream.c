/*
 * stream.c: streams and events.
 *
 * A handle is the object's address; 0 and 1 mean the legacy default stream of the current context, 2
 * the calling thread's own. A stream that is destroyed with work in it goes when the work has run.
 */
#include "sim.h"

#include <stdio.h>

static _Thread_local struct CUstream_st *thread_streams[SIM_DEVICES_MAX];

static bool event_exists(const struct CUevent_st *event)
{
    gni_list_each (link, &sim.events) {
        if (gni_container_of(link, struct CUevent_st, link) == event)
            return true;
    }
    return false;
}

#define EVENT_CHECK(event) SIM_REQUIRE(event_exists(event), CUDA_ERROR_INVALID_HANDLE)

/* ---- streams -------------------------------------------------------------------------------- */

struct CUstream_st *sim_stream_make(CUdevice device, unsigned flags, int priority)
{
    struct CUstream_st *stream = gni_host_alloc(sizeof *stream);
    if (stream == NULL)
        return NULL;
    uint64_t tick;
    stream->actor = sim_actor_take(&tick);
    if (stream->actor == 0) {
        sim_finding("too many streams: the simulator has room for %u that exist, or that were "
                    "destroyed before the "
                    "host waited for their work",
                    SIM_STREAMS_MAX);
        gni_host_free(stream);
        return NULL;
    }
    stream->device = device;
    stream->flags = flags;
    stream->priority = priority;
    stream->id = ++sim.last_id;
    stream->is_blocking = !(flags & CU_STREAM_NON_BLOCKING);
    sim_clock_set(&stream->clock, stream->actor, tick);
    gni_list_init(&stream->ops);
    gni_list_push_back(&sim.streams, &stream->link);
    return stream;
}

static struct CUstream_st *thread_stream_get(CUdevice device)
{
    if (thread_streams[device] == NULL)
        thread_streams[device] = sim_stream_make(device, CU_STREAM_DEFAULT, 0);
    if (thread_streams[device] != NULL)
        thread_streams[device]->is_implicit = true;
    return thread_streams[device];
}

struct CUstream_st *sim_stream_get(struct CUctx_st *context, CUstream handle)
{
    if ((uintptr_t)handle <= 1)
        return context->legacy;
    if (handle == CU_STREAM_PER_THREAD)
        return thread_stream_get(context->device);
    gni_list_each (link, &sim.streams) {
        struct CUstream_st *stream = gni_container_of(link, struct CUstream_st, link);
        if (stream == handle && !stream->is_destroyed)
            return stream;
    }
    return NULL;
}

#define STREAM_GET(stream, handle)                                     \
    struct CUstream_st *stream = sim_stream_get(call.context, handle); \
    SIM_REQUIRE(stream != NULL, CUDA_ERROR_INVALID_HANDLE)

static void stream_free(struct CUstream_st *stream)
{
    struct CUctx_st *context = &sim.contexts[stream->device];
    sim_clock_join(&context->ended, &stream->clock);
    if (stream->is_blocking)
        sim_clock_join(&context->ended_blocking, &stream->clock);
    gni_list_remove(&stream->link);
    sim_actor_give(stream->actor, sim_clock_get(&stream->clock, stream->actor));
    sim_clock_deinit(&stream->clock);
    sim_nodes_deinit(&stream->nodes);
    gni_host_free(stream);
}

static void stream_destroy(struct CUstream_st *stream)
{
    if (stream->capture != NULL)
        sim_capture_abandon(stream);
    stream->is_destroyed = sim.has_destroyed = true;
}

CUresult cuStreamCreateWithPriority(CUstream *handle, unsigned int flags, int priority)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    SIM_REQUIRE(handle != NULL && flags <= CU_STREAM_NON_BLOCKING, CUDA_ERROR_INVALID_VALUE);
    int taken = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    *handle = sim_stream_make(call.context->device, flags, taken);
    return *handle != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamDestroy(CUstream handle)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    SIM_REQUIRE((uintptr_t)handle > 2, CUDA_ERROR_INVALID_HANDLE);
    STREAM_GET(stream, handle);
    if (sim.is_strict && !gni_list_is_empty(&stream->ops))
        sim_finding("H5: stream %llu is destroyed while %s is pending",
                    (unsigned long long)stream->id,
                    sim_op_label(gni_container_of(stream->ops.next, struct sim_op, link)).text);
    stream_destroy(stream);
    return CUDA_SUCCESS;
}

void sim_streams_sweep(void)
{
    if (!sim.has_destroyed)
        return;
    sim.has_destroyed = false;
    gni_list_each (link, &sim.streams) {
        struct CUstream_st *stream = gni_container_of(link, struct CUstream_st, link);
        if (!stream->is_destroyed)
            continue;
        if (gni_list_is_empty(&stream->ops))
            stream_free(stream);
        else
            sim.has_destroyed = true;
    }
}

CUresult cuStreamQuery(CUstream handle)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    STREAM_GET(stream, handle);
    if (stream->capture != NULL)
        return sim_capture_refuse(stream);
    CUresult legacy = sim_capture_check_legacy(stream);
    SIM_REQUIRE(legacy == CUDA_SUCCESS, legacy);
    if (!sim_is_past_joined(stream, sim.last_number)) {
        sim_query_nudge();
        return call.context->lost != CUDA_SUCCESS ? call.context->lost : CUDA_ERROR_NOT_READY;
    }
    sim_complete_joined(stream, sim.last_number); /* runs nothing; the host has seen it now */
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream handle)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    STREAM_GET(stream, handle);
    if (stream->capture != NULL)
        return sim_capture_refuse(stream);
    CUresult legacy = sim_capture_check_legacy(stream);
    SIM_REQUIRE(legacy == CUDA_SUCCESS, legacy);
    sim_complete_joined(stream, sim.last_number);
    return call.context->lost;
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    STREAM_GET(stream, handle);
    SIM_REQUIRE(flags <= 1, CUDA_ERROR_INVALID_VALUE);
    EVENT_CHECK(event);
    if (stream->capture != NULL || event->capture != NULL)
        return sim_capture_wait(stream, event);
    SIM_REQUIRE(!event->was_captured, CUDA_ERROR_CAPTURED_EVENT);
    if (event->record == NULL)
        return CUDA_SUCCESS; /* never recorded: nothing to wait for */
    struct sim_op op = {.kind = SIM_OP_WAIT, .record = sim_record_retain(event->record)};
    return sim_submit(stream, &op);
}

CUresult cuStreamGetId(CUstream handle, unsigned long long *id)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    STREAM_GET(stream, handle);
    SIM_REQUIRE(id != NULL, CUDA_ERROR_INVALID_VALUE);
    if (stream->capture != NULL)
        return sim_capture_refuse(stream);
    *id = stream->id;
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    STREAM_GET(stream, handle);
    SIM_REQUIRE(status != NULL, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE(sim_capture_find_implicit(stream) == NULL, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    *status = stream->capture == NULL  ? CU_STREAM_CAPTURE_STATUS_NONE
              : stream->is_invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                       : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    STREAM_GET(stream, handle);
    SIM_REQUIRE(priority != NULL, CUDA_ERROR_INVALID_VALUE);
    *priority = stream->priority;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *context)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    STREAM_GET(stream, handle);
    SIM_REQUIRE(context != NULL, CUDA_ERROR_INVALID_VALUE);
    *context = &sim.contexts[stream->device];
    return CUDA_SUCCESS;
}

/* ---- events --------------------------------------------------------------------------------- */

struct sim_record *sim_record_retain(struct sim_record *record)
{
    record->references++;
    return record;
}

void sim_record_release(struct sim_record *record)
{
    if (record == NULL || --record->references > 0)
        return;
    sim_clock_deinit(&record->clock);
    gni_host_free(record);
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    SIM_REQUIRE(event != NULL && flags <= 3, CUDA_ERROR_INVALID_VALUE);
    struct CUevent_st *made = gni_host_alloc(sizeof *made);
    SIM_REQUIRE(made != NULL, CUDA_ERROR_OUT_OF_MEMORY);
    made->device = call.context->device;
    made->flags = flags;
    gni_list_push_back(&sim.events, &made->link);
    *event = made;
    return CUDA_SUCCESS;
}

static void event_free(struct CUevent_st *event)
{
    sim_record_release(event->record);
    sim_nodes_deinit(&event->nodes);
    gni_list_remove(&event->link);
    gni_host_free(event);
}

CUresult cuEventDestroy(CUevent event)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    EVENT_CHECK(event);
    if (sim.is_strict && event->record != NULL && !event->record->is_complete)
        sim_finding("H5: an event is destroyed while its record (op %llu) is pending",
                    (unsigned long long)event->record->number);
    event_free(event);
    return CUDA_SUCCESS;
}

void sim_streams_end(CUdevice device)
{
    gni_list_each (link, &sim.streams) {
        struct CUstream_st *stream = gni_container_of(link, struct CUstream_st, link);
        if (stream->device == device && !stream->is_implicit)
            stream_destroy(stream);
    }
    gni_list_each (link, &sim.events) {
        struct CUevent_st *event = gni_container_of(link, struct CUevent_st, link);
        if (event->device == device)
            event_free(event);
    }
}

CUresult cuEventRecord(CUevent event, CUstream handle)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    EVENT_CHECK(event);
    STREAM_GET(stream, handle);
    SIM_REQUIRE(stream->device == event->device, CUDA_ERROR_INVALID_HANDLE);
    if (stream->capture != NULL)
        return sim_capture_record(stream, event);
    struct sim_record *record = gni_host_alloc(sizeof *record);
    SIM_REQUIRE(record != NULL, CUDA_ERROR_OUT_OF_MEMORY);
    record->references = 2; /* the event's and the op's */
    record->stream = stream;
    struct sim_op op = {.kind = SIM_OP_RECORD, .record = record};
    CUresult result = sim_submit(stream, &op);
    if (result != CUDA_SUCCESS) {
        sim_record_release(record);
        return result;
    }
    sim_record_release(event->record);
    event->record = record;
    event->capture = NULL;
    event->was_captured = false;
    sim_nodes_deinit(&event->nodes);
    return CUDA_SUCCESS;
}

/* May the host ask about an event, or wait for it? */
static CUresult event_check_host(const struct CUevent_st *event)
{
    EVENT_CHECK(event);
    SIM_REQUIRE(event->capture == NULL, CUDA_ERROR_CAPTURED_EVENT);
    SIM_REQUIRE(!event->was_captured, CUDA_ERROR_INVALID_VALUE); /* it marks nothing any more */
    SIM_REQUIRE(sim_capture_allows_unsafe(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    CUresult refusal = event_check_host(event);
    SIM_REQUIRE(refusal == CUDA_SUCCESS, refusal);
    struct sim_record *record = event->record;
    if (record != NULL && !record->is_complete) {
        sim_query_nudge();
        return call.context->lost != CUDA_SUCCESS ? call.context->lost : CUDA_ERROR_NOT_READY;
    }
    if (record != NULL)
        sim_clock_join(&sim.host, &record->clock);
    return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent event)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    CUresult refusal = event_check_host(event);
    SIM_REQUIRE(refusal == CUDA_SUCCESS, refusal);
    if (event->record != NULL) {
        sim_complete_record(event->record);
        sim_clock_join(&sim.host, &event->record->clock);
    }
    return call.context->lost;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    EVENT_CHECK(start);
    EVENT_CHECK(end);
    SIM_REQUIRE(milliseconds != NULL, CUDA_ERROR_INVALID_HANDLE); /* so the real driver */
    SIM_REQUIRE(start->record != NULL && end->record != NULL &&
                    !((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING),
                CUDA_ERROR_INVALID_HANDLE);
    SIM_REQUIRE(start->record->is_complete && end->record->is_complete, CUDA_ERROR_NOT_READY);
    *milliseconds = (float)(end->record->time_ms - start->record->time_ms);
    return CUDA_SUCCESS;
}
