/*
 * storage_order.c: a GPU's storage in the order of streams.
 *
 * Work of one stream is ordered by itself; that is nearly always so, and costs a comparison. A storage knows the
 * stream that wrote to it last, and the other streams that have read it since:
 *
 *   SO1  a stream in `readers` has waited for the writer's last write; each is there once;
 *   SO2  a read by another stream waits for the writer, and joins the readers;
 *   SO3  a write waits for the writer and for all readers; the stream is the writer then, and there are no readers;
 *   SO4  every stream but the block's own that came here is known to the memory manager, so that the block is not
 *       given to anybody before their work is done;
 *   SO5  with too many readers the one that comes waits for the first of them, and stands for it, too;
 *   SO6  memory of others goes back in the order of the stream that it came with, the one that its owner knows of;
 *   SO7  a stream that is captured into a graph waits for nobody: the replay does. graph_capture.c
 *
 * Streams are told apart by their ids: CUDA's per-thread default stream is another one in each thread, and cannot
 * be waited for by other threads: there the whole device is waited for.
 */
#include "tensor/tensor.h"

#include "base/fork.h"
#include "base/thread.h"
#include "memory/manager.h"
#include "tensor/graph_capture.h"

/* Guards readers; two threads may read a storage at once. */
static struct gni_mutex mutex = GNI_MUTEX_INIT;
static const struct gni_fork_handlers order_fork = {.mutex = &mutex};
static struct gni_once order_once = GNI_ONCE_INIT;

static void order_register(void)
{
    gni_fork_register(GNI_FORK_STORAGE, &order_fork);
}

gn_status gni_stream_of(gn_device *device, gn_stream **stream)
{
    *stream = NULL;
    return device->ops->is_immediate ? GN_OK : gn_stream_get_current(device, stream);
}

gn_status gni_storage_order_init(struct gni_storage *storage, gn_stream *stream)
{
    uint64_t id;
    if (stream == NULL)
        return GN_OK;
    GN_TRY(gn_stream_get_id(stream, &id));
    storage->first = (struct gni_user){gn_stream_retain(stream), id};
    storage->writer = (struct gni_user){gn_stream_retain(stream), id};
    gni_once_run(&order_once, order_register);
    struct gni_capture *capture =
        atomic_load_explicit(&stream->upper.capture, memory_order_relaxed);
    if (capture != NULL && storage->block != NULL)
        gni_capture_adopt(capture, storage);
    return GN_OK;
}

gn_status gni_storage_order_begin(struct gni_storage *storage, gn_stream *stream)
{
    uint64_t id;
    GN_TRY(gn_stream_get_id(stream, &id));
    if (storage->first.id == id)
        return GN_OK;
    gn_stream_release(storage->first.stream);
    gn_stream_release(storage->writer.stream);
    storage->first = (struct gni_user){gn_stream_retain(stream), id};
    storage->writer = (struct gni_user){gn_stream_retain(stream), id};
    return GN_OK;
}

static void readers_clear(struct gni_storage *storage)
{
    if (storage->stream_reader_count == 0)
        return;
    for (int i = 0; i < storage->stream_reader_count; i++)
        gn_stream_release(storage->readers[i].stream);
    storage->stream_reader_count = 0;
}

void gni_storage_order_deinit(struct gni_storage *storage)
{
    if (storage->first.stream == NULL)
        return;
    if (atomic_load(&storage->capture) != NULL)
        gni_capture_forget(storage);
    readers_clear(storage);
    gn_stream_release(storage->writer.stream);
    gn_stream_release(storage->first.stream);
}

gn_status gni_stream_join(gn_stream *stream, const struct gni_user *other)
{
    gn_event *event;
    if (atomic_load_explicit(&other->stream->upper.capture, memory_order_relaxed) != NULL)
        return GN_OK; /* it was waited for when the capture began, and nothing has run since */
    if (other->stream->kind == GNI_STREAM_PER_THREAD)
        return gn_device_synchronize(other->stream->device);
    GN_TRY(gn_event_create(stream->device, 0, &event));
    gn_status status = gn_event_record(event, other->stream);
    if (status == GN_OK)
        status = gn_stream_wait_event(stream, event);
    gn_event_destroy(event);
    return status;
}

/* SO4 */
static gn_status stream_announce(struct gni_storage *storage, gn_stream *stream)
{
    return storage->block != NULL ? gn_memory_record_stream(storage->manager, storage->data, stream)
                                  : GN_OK;
}

static gn_status order_read(struct gni_storage *storage, gn_stream *stream, uint64_t id)
{
    for (int i = 0; i < storage->stream_reader_count; i++)
        if (storage->readers[i].id == id)
            return GN_OK;
    GN_TRY(stream_announce(storage, stream));
    GN_TRY(gni_stream_join(stream, &storage->writer));
    int at = storage->stream_reader_count;
    if (at == GNI_STORAGE_READERS_MOST) { /* SO5 */
        GN_TRY(gni_stream_join(stream, &storage->readers[0]));
        gn_stream_release(storage->readers[0].stream);
        at = 0;
    } else {
        storage->stream_reader_count++;
    }
    storage->readers[at] = (struct gni_user){gn_stream_retain(stream), id};
    return GN_OK;
}

static gn_status order_write(struct gni_storage *storage, gn_stream *stream, uint64_t id)
{
    for (int i = 0; i < storage->stream_reader_count; i++)
        if (storage->readers[i].id != id)
            GN_TRY(gni_stream_join(stream, &storage->readers[i]));
    if (storage->writer.id != id) {
        GN_TRY(stream_announce(storage, stream));
        GN_TRY(gni_stream_join(stream, &storage->writer));
        gn_stream_release(storage->writer.stream);
        storage->writer = (struct gni_user){gn_stream_retain(stream), id};
    }
    readers_clear(storage);
    return GN_OK;
}

gn_status gni_storage_order(struct gni_storage *storage, gn_stream *stream, bool is_write)
{
    uint64_t id;
    if (storage->writer.stream == NULL)
        return GN_OK;
    struct gni_capture *capture =
        atomic_load_explicit(&stream->upper.capture, memory_order_relaxed);
    if (capture != NULL)
        return gni_capture_note(capture, storage, is_write);
    if (atomic_load_explicit(&storage->is_capturing, memory_order_relaxed))
        return gni_capture_refuse_other();
    bool is_alone = !is_write || storage->stream_reader_count == 0;
    if (storage->writer.stream == stream && stream->kind != GNI_STREAM_PER_THREAD && is_alone)
        return GN_OK; /* nearly always, and without asking for an id */
    GN_TRY(gn_stream_get_id(stream, &id));
    if (storage->writer.id == id && is_alone)
        return GN_OK;
    gni_mutex_lock(&mutex);
    gn_status status =
        is_write ? order_write(storage, stream, id) : order_read(storage, stream, id);
    gni_mutex_unlock(&mutex);
    return status;
}

gn_status gni_storage_order_return(struct gni_storage *storage)
{
    if (storage->writer.stream == NULL)
        return GN_OK;
    bool is_done = storage->writer.id == storage->first.id;
    for (int i = 0; i < storage->stream_reader_count; i++)
        is_done &= storage->readers[i].id == storage->first.id;
    if (is_done)
        return GN_OK;
    if (storage->first.stream->kind == GNI_STREAM_PER_THREAD) /* perhaps another thread's */
        return gn_device_synchronize(storage->device);
    if (storage->writer.id != storage->first.id)
        GN_TRY(gni_stream_join(storage->first.stream, &storage->writer));
    for (int i = 0; i < storage->stream_reader_count; i++)
        if (storage->readers[i].id != storage->first.id)
            GN_TRY(gni_stream_join(storage->first.stream, &storage->readers[i]));
    return GN_OK;
}

gn_status gni_storage_synchronize(struct gni_storage *storage)
{
    if (storage->writer.stream == NULL)
        return GN_OK;
    const struct gni_user *writer = &storage->writer;
    return writer->stream->kind == GNI_STREAM_PER_THREAD ? gn_device_synchronize(storage->device)
                                                         : gn_stream_synchronize(writer->stream);
}
