/*
 * cuda_stream.c: streams and events of a GPU.
 *
 * A stream is told apart by its id, not by its handle, which the driver hands out again once the
 * stream is destroyed. The per-thread default stream is another stream in each thread, so its id is
 * asked for at each use.
 *
 * Hazard: on a stream that is being captured, cuStreamGetId, cuStreamGetFlags and cuStreamGetDevice
 * fail and end the capture, in every capture mode (seen with driver 580; their documentation does
 * not say so). cuStreamIsCapturing, cuStreamGetCtx and cuStreamGetPriority do no harm. So a foreign
 * stream that is met during its capture has no id until the capture is over.
 */
#include "device/cuda/cuda_queue.h"

#include "base/fork.h"
#include "base/host.h"
#include "base/list.h"
#include "base/thread.h"

static struct gni_cuda_device *device_of_event(const gn_event *event)
{
    return gni_cuda_device_of(event->device);
}

/* ---- ids where the driver has none (CUDA 11.x) ---- */

/* The living wrappers of foreign streams: those of one handle share an id. */
struct foreign_id {
    struct gni_list link;
    gn_device *device;
    void *handle;
    uint64_t id;
    int wrapper_count;
};

static struct gni_list foreign_ids = {&foreign_ids, &foreign_ids};
static struct gni_mutex foreign_mutex = GNI_MUTEX_INIT;
static struct gni_once foreign_once = GNI_ONCE_INIT;

static const struct gni_fork_handlers foreign_fork = {.mutex = &foreign_mutex};

static void foreign_start(void)
{
    gni_fork_register(GNI_FORK_CUDA_STREAM, &foreign_fork);
}

static struct foreign_id *foreign_id_find(const gn_stream *stream)
{
    gni_list_each (link, &foreign_ids) {
        struct foreign_id *known = gni_container_of(link, struct foreign_id, link);
        if (known->device == stream->device && known->handle == stream->handle)
            return known;
    }
    return NULL;
}

static gn_status foreign_id_take(const gn_stream *stream, uint64_t *id)
{
    gni_once_run(&foreign_once, foreign_start);
    gni_mutex_lock(&foreign_mutex);
    struct foreign_id *known = foreign_id_find(stream);
    if (known == NULL && (known = gni_host_alloc(sizeof *known)) != NULL) {
        known->device = stream->device;
        known->handle = stream->handle;
        known->id = gni_stream_next_id();
        gni_list_push_back(&foreign_ids, &known->link);
    }
    if (known != NULL) {
        known->wrapper_count++;
        *id = known->id;
    }
    gni_mutex_unlock(&foreign_mutex);
    return known != NULL ? GN_OK : gni_error_host_memory(sizeof *known);
}

static void foreign_id_give(const gn_stream *stream)
{
    gni_mutex_lock(&foreign_mutex);
    struct foreign_id *known = foreign_id_find(stream);
    if (known != NULL && --known->wrapper_count == 0) {
        gni_list_remove(&known->link);
        gni_host_free(known);
    }
    gni_mutex_unlock(&foreign_mutex);
}

static gn_status own_id_make(const gn_stream *stream, uint64_t *id)
{
    static _Thread_local uint64_t
        thread_ids; /* the first of its per-thread streams: one a device */
    if (stream->kind == GNI_STREAM_FOREIGN)
        return foreign_id_take(stream, id);
    if (stream->kind != GNI_STREAM_PER_THREAD) {
        *id = gni_stream_next_id();
        return GN_OK;
    }
    if (thread_ids == 0)
        thread_ids = gni_stream_next_ids(GNI_DEVICE_MAX);
    *id = thread_ids + (unsigned)stream->device->index;
    return GN_OK;
}

/* ---- streams -------------------------------------------------------------------------------- */

/* The driver's own id, which never comes twice; one of ours where the driver has none. */
static gn_status stream_id_read(gn_stream *stream, uint64_t *id)
{
    struct gni_cuda_device *device = gni_cuda_device_of_stream(stream);
    if (device->driver->functions.cuStreamGetId == NULL)
        return own_id_make(stream, id);
    bool is_capturing = false; /* see Hazard */
    GN_TRY(gni_cuda_stream_is_capturing(stream, &is_capturing));
    if (is_capturing)
        return gni_error(
            GN_ERROR_CAPTURE,
            "the stream %p is being captured, and the driver does not tell its id then",
            stream->handle);
    unsigned long long number;
    GNI_CUDA_TRY(device, cuStreamGetId, stream->handle, &number);
    *id = number;
    return GN_OK;
}

static gn_status stream_create(gn_stream *stream)
{
    struct gni_cuda_device *device = gni_cuda_device_of_stream(stream);
    int priority = stream->priority;
    if (priority > device->priority_least)
        priority = device->priority_least;
    if (priority < device->priority_greatest)
        priority = device->priority_greatest;
    unsigned flags =
        stream->flags & GN_STREAM_NON_BLOCKING ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
    CUstream handle;
    GNI_CUDA_TRY(device, cuStreamCreateWithPriority, &handle, flags, priority);
    stream->handle = handle;
    stream->priority = priority;
    return GN_OK;
}

/* Refuses a foreign stream of another context, and reads its priority. */
static gn_status stream_adopt(gn_stream *stream)
{
    struct gni_cuda_device *device = gni_cuda_device_of_stream(stream);
    CUcontext context = NULL;
    if (device->driver->functions.cuStreamGetCtx != NULL && stream->kind == GNI_STREAM_FOREIGN)
        GNI_CUDA_TRY(device, cuStreamGetCtx, stream->handle, &context);
    /* Compared after the call, which may have started the device again. */
    if (context != NULL && context != atomic_load(&device->context))
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "the stream %p does not belong to the primary context of %s",
                         stream->handle, gni_device_label(&device->base).text);
    GNI_CUDA_TRY(device, cuStreamGetPriority, stream->handle, &stream->priority);
    return GN_OK;
}

gn_status gni_cuda_stream_open(gn_stream *stream)
{
    uint64_t id = 0;
    gn_status status = GN_OK;
    switch (stream->kind) {
    case GNI_STREAM_OWNED:
        GN_TRY(stream_create(stream));
        status = stream_id_read(stream, &id);
        break;
    case GNI_STREAM_FOREIGN:
        GN_TRY(stream_adopt(stream));
        status = stream_id_read(stream, &id);
        if (status == GN_ERROR_CAPTURE)
            status = GN_OK; /* its id is read when it is asked for */
        break;
    case GNI_STREAM_PER_THREAD:
        GN_TRY(stream_adopt(stream));
        break;
    case GNI_STREAM_DEFAULT:
        gni_assert(false); /* the device opens its own */
        break;
    }
    if (status != GN_OK)
        gni_cuda_stream_close(stream);
    atomic_store(&stream->id, id);
    return status;
}

static gn_status stream_destroy(gn_stream *stream)
{
    struct gni_cuda_device *device = gni_cuda_device_of_stream(stream);
    CUstream handle = stream->handle;
    gni_cuda_queue_forget(device, &handle);
    GNI_CUDA_TRY(device, cuStreamDestroy, handle);
    return GN_OK;
}

void gni_cuda_stream_close(gn_stream *stream)
{
    if (stream->kind == GNI_STREAM_OWNED && !gni_cuda_driver_is_gone())
        (void)stream_destroy(stream); /* its failure is the device's, and is reported there */
    if (stream->kind == GNI_STREAM_FOREIGN &&
        gni_cuda_device_of_stream(stream)->driver->functions.cuStreamGetId == NULL)
        foreign_id_give(stream);
}

gn_status gni_cuda_stream_id(gn_stream *stream, uint64_t *id)
{
    uint64_t known = atomic_load(&stream->id);
    if (known == 0 || stream->kind == GNI_STREAM_PER_THREAD) {
        GN_TRY(stream_id_read(stream, &known));
        atomic_store(&stream->id, known);
    }
    *id = known;
    return GN_OK;
}

gn_status gni_cuda_stream_query(gn_stream *stream)
{
    GNI_CUDA_TRY(gni_cuda_device_of_stream(stream), cuStreamQuery, stream->handle);
    return GN_OK;
}

gn_status gni_cuda_stream_synchronize(gn_stream *stream)
{
    GN_TRY(gni_cuda_queue_report(gni_cuda_device_of_stream(stream)));
    GNI_CUDA_TRY(gni_cuda_device_of_stream(stream), cuStreamSynchronize, stream->handle);
    return GN_OK;
}

gn_status gni_cuda_stream_wait_event(gn_stream *stream, gn_event *event)
{
    GNI_CUDA_TRY(gni_cuda_device_of_stream(stream), cuStreamWaitEvent, stream->handle,
                 event->handle, 0);
    return GN_OK;
}

gn_status gni_cuda_stream_is_capturing(gn_stream *stream, bool *is_capturing)
{
    CUstreamCaptureStatus status;
    GNI_CUDA_TRY(gni_cuda_device_of_stream(stream), cuStreamIsCapturing, stream->handle, &status);
    *is_capturing = status != CU_STREAM_CAPTURE_STATUS_NONE;
    return GN_OK;
}

/* ---- events --------------------------------------------------------------------------------- */

gn_status gni_cuda_event_open(gn_event *event)
{
    unsigned flags = CU_EVENT_DEFAULT;
    if (!(event->flags & GN_EVENT_TIMING))
        flags |= CU_EVENT_DISABLE_TIMING;
    if (event->flags & GN_EVENT_BLOCKING_SYNC)
        flags |= CU_EVENT_BLOCKING_SYNC;
    CUevent handle;
    GNI_CUDA_TRY(device_of_event(event), cuEventCreate, &handle, flags);
    event->handle = handle;
    return GN_OK;
}

static gn_status event_destroy(gn_event *event)
{
    GNI_CUDA_TRY(device_of_event(event), cuEventDestroy, event->handle);
    return GN_OK;
}

void gni_cuda_event_close(gn_event *event)
{
    if (!gni_cuda_driver_is_gone())
        (void)event_destroy(event);
}

gn_status gni_cuda_event_record(gn_event *event, gn_stream *stream)
{
    GNI_CUDA_TRY(device_of_event(event), cuEventRecord, event->handle, stream->handle);
    return GN_OK;
}

gn_status gni_cuda_event_query(gn_event *event)
{
    GNI_CUDA_TRY_RELAXED(device_of_event(event), cuEventQuery, event->handle);
    return GN_OK;
}

gn_status gni_cuda_event_synchronize(gn_event *event)
{
    GNI_CUDA_TRY_RELAXED(device_of_event(event), cuEventSynchronize, event->handle);
    return GN_OK;
}

gn_status gni_cuda_event_elapsed(gn_event *start, gn_event *end, float *milliseconds)
{
    float made;
    GNI_CUDA_TRY(device_of_event(start), cuEventElapsedTime, &made, start->handle, end->handle);
    *milliseconds = made;
    return GN_OK;
}
