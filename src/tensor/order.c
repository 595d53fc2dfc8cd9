/*
 * order.c: a GPU's storage in the order of streams.
 *
 * Work of one stream is ordered by itself; that is nearly always so, and costs a comparison. A storage knows the
 * stream that wrote to it last, and the other streams that have read it since:
 *
 *   O1  a stream in `readers` has waited for the writer's last write; each is there once;
 *   O2  a read by another stream waits for the writer, and joins the readers;
 *   O3  a write waits for the writer and for all readers; the stream is the writer then, and there are no readers;
 *   O4  every stream but the block's own that came here is known to the memory manager, so that the block is not
 *       given to anybody before their work is done;
 *   O5  with too many readers the one that comes waits for the first of them, and stands for it, too;
 *   O6  memory of others goes back in the order of the stream that it came with, the one that its owner knows of.
 *
 * Streams are told apart by their ids: CUDA's per-thread default stream is another one in each thread, and cannot
 * be waited for by other threads: there the whole device is waited for.
 */
#include "tensor/tensor.h"

#include "base/fork.h"
#include "base/host.h"
#include "base/thread.h"
#include "memory/manager.h"

enum {
    READERS_MOST = 4,
};

struct user {
    gn_stream *stream; /* retained */
    uint64_t id;
};

struct gni_storage_order {
    struct user first; /* whose it was at the start */
    struct user writer;
    _Atomic(int) reader_count;
    struct user readers[READERS_MOST];
};

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
    return device->type == GN_DEVICE_CPU ? GN_OK : gn_stream_get_current(device, stream);
}

gn_status gni_storage_order_init(struct gni_storage *storage, gn_stream *stream)
{
    uint64_t id;
    if (stream == NULL)
        return GN_OK;
    GN_TRY(gn_stream_get_id(stream, &id));
    struct gni_storage_order *order = gni_host_alloc(sizeof *order);
    if (order == NULL)
        return gni_error_host_memory(sizeof *order);
    order->first = (struct user){gn_stream_retain(stream), id};
    order->writer = (struct user){gn_stream_retain(stream), id};
    storage->order = order;
    gni_once_run(&order_once, order_register);
    return GN_OK;
}

gn_status gni_storage_order_begin(struct gni_storage *storage, gn_stream *stream)
{
    struct gni_storage_order *order = storage->order;
    uint64_t id;
    GN_TRY(gn_stream_get_id(stream, &id));
    if (order->first.id == id)
        return GN_OK;
    gn_stream_release(order->first.stream);
    gn_stream_release(order->writer.stream);
    order->first = (struct user){gn_stream_retain(stream), id};
    order->writer = (struct user){gn_stream_retain(stream), id};
    return GN_OK;
}

static void readers_clear(struct gni_storage_order *order)
{
    for (int i = 0; i < order->reader_count; i++)
        gn_stream_release(order->readers[i].stream);
    order->reader_count = 0;
}

void gni_storage_order_deinit(struct gni_storage *storage)
{
    if (storage->order == NULL)
        return;
    readers_clear(storage->order);
    gn_stream_release(storage->order->writer.stream);
    gn_stream_release(storage->order->first.stream);
    gni_host_free(storage->order);
}

/* A stream waits, on the device, for what was submitted to another. */
static gn_status stream_join(gn_stream *stream, const struct user *other)
{
    gn_event *event;
    if (other->stream->kind == GNI_STREAM_PER_THREAD)
        return gn_device_synchronize(other->stream->device);
    GN_TRY(gn_event_create(stream->device, 0, &event));
    gn_status status = gn_event_record(event, other->stream);
    if (status == GN_OK)
        status = gn_stream_wait_event(stream, event);
    gn_event_destroy(event);
    return status;
}

/* O4 */
static gn_status stream_announce(struct gni_storage *storage, gn_stream *stream)
{
    gn_memory_manager *manager;
    if (storage->block == NULL)
        return GN_OK;
    GN_TRY(gn_memory_manager_get(storage->device, &manager));
    return gn_memory_record_stream(manager, storage->data, stream);
}

static gn_status order_read(struct gni_storage *storage, gn_stream *stream, uint64_t id)
{
    struct gni_storage_order *order = storage->order;
    for (int i = 0; i < order->reader_count; i++)
        if (order->readers[i].id == id)
            return GN_OK;
    GN_TRY(stream_announce(storage, stream));
    GN_TRY(stream_join(stream, &order->writer));
    int at = order->reader_count;
    if (at == READERS_MOST) { /* O5 */
        GN_TRY(stream_join(stream, &order->readers[0]));
        gn_stream_release(order->readers[0].stream);
        at = 0;
    } else {
        order->reader_count++;
    }
    order->readers[at] = (struct user){gn_stream_retain(stream), id};
    return GN_OK;
}

static gn_status order_write(struct gni_storage *storage, gn_stream *stream, uint64_t id)
{
    struct gni_storage_order *order = storage->order;
    for (int i = 0; i < order->reader_count; i++)
        if (order->readers[i].id != id)
            GN_TRY(stream_join(stream, &order->readers[i]));
    if (order->writer.id != id) {
        GN_TRY(stream_announce(storage, stream));
        GN_TRY(stream_join(stream, &order->writer));
        gn_stream_release(order->writer.stream);
        order->writer = (struct user){gn_stream_retain(stream), id};
    }
    readers_clear(order);
    return GN_OK;
}

gn_status gni_storage_order(struct gni_storage *storage, gn_stream *stream, bool is_write)
{
    struct gni_storage_order *order = storage->order;
    uint64_t id;
    if (order == NULL)
        return GN_OK;
    GN_TRY(gn_stream_get_id(stream, &id));
    if (order->writer.id == id && (!is_write || order->reader_count == 0))
        return GN_OK;
    gni_mutex_lock(&mutex);
    gn_status status =
        is_write ? order_write(storage, stream, id) : order_read(storage, stream, id);
    gni_mutex_unlock(&mutex);
    return status;
}

gn_status gni_storage_order_return(struct gni_storage *storage)
{
    struct gni_storage_order *order = storage->order;
    if (order == NULL)
        return GN_OK;
    bool is_done = order->writer.id == order->first.id;
    for (int i = 0; i < order->reader_count; i++)
        is_done &= order->readers[i].id == order->first.id;
    if (is_done)
        return GN_OK;
    if (order->first.stream->kind == GNI_STREAM_PER_THREAD) /* perhaps another thread's */
        return gn_device_synchronize(storage->device);
    if (order->writer.id != order->first.id)
        GN_TRY(stream_join(order->first.stream, &order->writer));
    for (int i = 0; i < order->reader_count; i++)
        if (order->readers[i].id != order->first.id)
            GN_TRY(stream_join(order->first.stream, &order->readers[i]));
    return GN_OK;
}

gn_status gni_storage_synchronize(struct gni_storage *storage)
{
    if (storage->order == NULL)
        return GN_OK;
    const struct user *writer = &storage->order->writer;
    return writer->stream->kind == GNI_STREAM_PER_THREAD ? gn_device_synchronize(storage->device)
                                                         : gn_stream_synchronize(writer->stream);
}
