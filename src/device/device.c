/*
 * device.c: the devices of the process, what is current in a thread, and the checked entrances to
 * the tables of operations.
 *
 * Every public function here checks its arguments, so that the slots behind it need not: pointers
 * are not NULL, sizes are possible, a stream and an event belong to one device.
 */
#include "device/device.h"

#include "base/checked.h"
#include "base/fork.h"
#include "base/hash.h"
#include "base/host.h"
#include "base/parallel.h"
#include "base/thread.h"
#include "device/cpu/cpu.h"
#include "device/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    NEAR_STREAMS = 9,                                /* of the CPU and the first GPUs */
    FAR_STREAMS = 1 + GNI_DEVICE_MAX - NEAR_STREAMS, /* of the others */
};

/* What the calling thread uses. The streams are retained; device_thread_end() lets them go. Those of GPUs that few
 * machines have are found by a pointer: the library's thread-local memory must be small (see gni_thread). */
static _Thread_local int current_device[GNI_DEVICE_TYPES];
static _Thread_local gn_stream *near_streams[NEAR_STREAMS];
static _Thread_local gn_stream **far_streams; /* owned; NULL: all of them are the default streams */

_Thread_local struct gni_thread gni_thread;

static void stream_ignore(gn_stream *stream)
{
    (void)stream;
}

static const struct gni_stream_hooks no_stream_hooks = {stream_ignore, stream_ignore,
                                                        stream_ignore};
static _Atomic(const struct gni_stream_hooks *) stream_hooks = &no_stream_hooks;
static _Atomic(struct gni_close_hook *) close_hooks;
static _Atomic(void (*)(void)) wait_hook;

static pthread_key_t thread_key;
static struct gni_once thread_key_once = GNI_ONCE_INIT;

/* ---- checks --------------------------------------------------------------------------------- */

static gn_status bytes_check(const char *function, size_t nbytes)
{
    if (!gni_size_is_possible(nbytes))
        return gni_error(GN_ERROR_OVERFLOW, "%s: %zu bytes do not fit the address space", function,
                         nbytes);
    return GN_OK;
}

static gn_status same_device_check(const char *function, const gn_device *a, const gn_device *b)
{
    if (a != b)
        return gni_error(GN_ERROR_INVALID_VALUE, "%s: the objects belong to two devices, %s and %s",
                         function, gni_device_label(a).text, gni_device_label(b).text);
    return GN_OK;
}

struct gni_device_label gni_device_label(const gn_device *device)
{
    struct gni_device_label label;
    if (device->ops->is_numbered)
        (void)snprintf(label.text, sizeof label.text, "%s:%d", device->ops->name, device->index);
    else
        (void)snprintf(label.text, sizeof label.text, "%s", device->ops->name);
    return label;
}

/* ---- devices -------------------------------------------------------------------------------- */

gn_status gn_device_count(gn_device_type type, int *count)
{
    GN_CHECK_ARGUMENT(count != NULL, "count is NULL");
    switch (type) {
    case GN_DEVICE_CPU:
        *count = 1;
        return GN_OK;
    case GN_DEVICE_CUDA:
        return gni_cuda_device_count(count);
    }
    return gni_error(GN_ERROR_INVALID_DEVICE, "there is no device type %d", (int)type);
}

static gn_status device_index_check(gn_device_type type, int index)
{
    int count;
    GN_TRY(gn_device_count(type, &count));
    if (index < 0 || index >= count)
        return gni_error(GN_ERROR_INVALID_DEVICE, "there is no device %s:%d; the indices go to %d",
                         type == GN_DEVICE_CPU ? "cpu" : "cuda", index, count - 1);
    return GN_OK;
}

gn_status gn_device_get(gn_device_type type, int index, gn_device **device)
{
    GN_CHECK_ARGUMENT(device != NULL, "device is NULL");
    GN_TRY(device_index_check(type, index));
    if (type == GN_DEVICE_CPU)
        return gni_cpu_device_open(device);
    return gni_cuda_device_open(index, device);
}

gn_status gni_device_get_host(gn_device **host)
{
    return gni_cpu_device_open(host);
}

bool gn_device_is_started(gn_device_type type)
{
    return type == GN_DEVICE_CPU || (type == GN_DEVICE_CUDA && gni_cuda_is_started());
}

gn_status gn_device_can_access(gn_device *device, gn_device *peer, bool *can_access)
{
    GN_CHECK_ARGUMENT(device != NULL && peer != NULL && can_access != NULL,
                      "device, peer and can_access must not be NULL");
    *can_access = false;
    if (device == peer || device->ops != peer->ops || device->ops->can_access == NULL)
        return GN_OK;
    return device->ops->can_access(device, peer, can_access);
}

gn_device_type gn_device_get_type(const gn_device *device)
{
    return device->type;
}

int gn_device_get_index(const gn_device *device)
{
    return device->index;
}

int gn_device_get_current(gn_device_type type)
{
    return (unsigned)type < GNI_DEVICE_TYPES ? current_device[type] : 0;
}

gn_status gn_device_set_current(gn_device_type type, int index)
{
    GN_TRY(device_index_check(type, index));
    current_device[type] = index;
    return GN_OK;
}

gn_status gn_device_get_properties(gn_device *device, gn_device_properties *properties)
{
    GN_CHECK_ARGUMENT(device != NULL && properties != NULL,
                      "device and properties must not be NULL");
    return device->ops->properties(device, properties);
}

gn_status gn_device_get_memory_info(gn_device *device, size_t *free_bytes, size_t *total_bytes)
{
    GN_CHECK_ARGUMENT(device != NULL && free_bytes != NULL && total_bytes != NULL,
                      "device and results must not be NULL");
    return device->ops->memory_info(device, free_bytes, total_bytes);
}

void gni_devices_set_wait_hook(void (*hook)(void))
{
    atomic_store_explicit(&wait_hook, hook, memory_order_release);
}

/* After a wait that ended like this. */
static gn_status waited(gn_status status)
{
    void (*hook)(void) = atomic_load_explicit(&wait_hook, memory_order_acquire);
    if (status == GN_OK && hook != NULL)
        hook();
    return status;
}

gn_status gn_device_synchronize(gn_device *device)
{
    GN_CHECK_ARGUMENT(device != NULL, "device is NULL");
    return waited(device->ops->synchronize(device));
}

void gni_devices_add_close_hook(struct gni_close_hook *hook)
{
    hook->next = atomic_load(&close_hooks);
    while (!atomic_compare_exchange_weak(&close_hooks, &hook->next, hook))
        ;
}

int gni_devices_close(void)
{
    for (struct gni_close_hook *hook = atomic_load(&close_hooks); hook != NULL; hook = hook->next)
        hook->run();
    return gni_cuda_devices_close() + gni_cpu_device_close();
}

/* ---- streams -------------------------------------------------------------------------------- */

uint64_t gni_stream_next_ids(unsigned count)
{
    /* The top bit keeps our numbers apart from the driver's own. */
    static atomic_uint_fast64_t next = 1;
    return (1ull << 63) | atomic_fetch_add_explicit(&next, count, memory_order_relaxed);
}

uint64_t gni_stream_next_id(void)
{
    return gni_stream_next_ids(1);
}

void gni_stream_init(gn_stream *stream, gn_device *device, enum gni_stream_kind kind)
{
    *stream = (gn_stream){.device = device, .kind = kind};
    atomic_init(&stream->references, 1);
}

/* Allocates a stream of a kind and opens it on its device. */
static gn_status stream_make(const gn_stream *model, gn_stream **out)
{
    gn_device *device = model->device;
    gn_stream *stream = gni_host_alloc(sizeof *stream);
    if (stream == NULL)
        return gni_error_host_memory(sizeof *stream);
    gni_stream_init(stream, device, model->kind);
    stream->flags = model->flags;
    stream->priority = model->priority;
    stream->handle = model->handle;
    gn_status status = device->ops->stream_open(stream);
    if (status != GN_OK) {
        gni_host_free(stream);
        return status;
    }
    atomic_fetch_add(&device->object_count, 1);
    *out = stream;
    return GN_OK;
}

gn_status gn_stream_create(gn_device *device, unsigned flags, int priority, gn_stream **stream)
{
    GN_CHECK_ARGUMENT(device != NULL && stream != NULL, "device and stream must not be NULL");
    GN_CHECK_ARGUMENT((flags & ~(unsigned)GN_STREAM_NON_BLOCKING) == 0, "unknown flags");
    gn_stream model = {
        .device = device, .kind = GNI_STREAM_OWNED, .flags = flags, .priority = priority};
    return stream_make(&model, stream);
}

gn_status gn_stream_from_handle(gn_device *device, void *handle, gn_stream **stream)
{
    GN_CHECK_ARGUMENT(device != NULL && stream != NULL, "device and stream must not be NULL");
    uintptr_t number = (uintptr_t)handle;
    if (number <= 1) { /* CUDA's two names of its legacy default stream */
        *stream = gn_stream_retain(device->default_stream);
        return GN_OK;
    }
    if (!device->ops->has_handles)
        return gni_error(GN_ERROR_UNSUPPORTED, "streams of the CPU have no handles");
    gn_stream model = {.device = device,
                       .kind = number == 2 ? GNI_STREAM_PER_THREAD : GNI_STREAM_FOREIGN,
                       .handle = handle};
    return stream_make(&model, stream);
}

/* Others may submit work to the stream, or capture it, from now on. */
static void stream_share(gn_stream *stream)
{
    if (atomic_exchange(&stream->is_shared, true))
        return;
    const struct gni_stream_hooks *hooks =
        atomic_load_explicit(&stream_hooks, memory_order_acquire);
    atomic_store(&stream->upper.memory_key, 0);
    gni_device_submit(stream->device);
    hooks->on_share(stream);
}

/* Default streams are their devices' for ever: nobody counts who else refers to them, which would be the most contended
 * counter of the process. */
gn_stream *gn_stream_retain(gn_stream *stream)
{
    if (stream->kind == GNI_STREAM_DEFAULT)
        return stream;
    int before = atomic_fetch_add_explicit(&stream->references, 1, memory_order_relaxed);
    gni_assert(before >= 1);
    (void)before;
    return stream;
}

static void stream_let_go(gn_stream *stream)
{
    int before = atomic_fetch_sub_explicit(&stream->references, 1, memory_order_acq_rel);
    gni_assert(before >= 1);
    if (before != 1)
        return;
    gn_device *device = stream->device;
    if (stream->kind == GNI_STREAM_OWNED)
        atomic_load_explicit(&stream_hooks, memory_order_acquire)->on_end(stream);
    device->ops->stream_close(stream);
    gni_host_free(stream);
    atomic_fetch_sub(&device->object_count, 1);
}

/* The caller's own reference makes sure that the stream is still there when its watchers have let go. */
static void stream_leave(gn_stream *stream)
{
    int watchers = atomic_load(&stream->watchers);
    if (watchers == 0 || stream->kind != GNI_STREAM_OWNED ||
        atomic_load(&stream->references) != watchers + 1)
        return;
    atomic_load_explicit(&stream_hooks, memory_order_acquire)->on_unused(stream);
}

void gn_stream_release(gn_stream *stream)
{
    if (stream == NULL || stream->kind == GNI_STREAM_DEFAULT)
        return;
    stream_leave(stream);
    stream_let_go(stream);
}

void gni_stream_watch(gn_stream *stream)
{
    (void)gn_stream_retain(stream);
    if (stream->kind != GNI_STREAM_DEFAULT)
        atomic_fetch_add(&stream->watchers, 1);
}

/* In this order: no owner that is about to go may take another owner for a watcher. */
void gni_stream_unwatch(gn_stream *stream)
{
    if (stream->kind == GNI_STREAM_DEFAULT)
        return;
    atomic_fetch_sub(&stream->watchers, 1);
    stream_let_go(stream);
}

gn_status gn_stream_get_default(gn_device *device, gn_stream **stream)
{
    GN_CHECK_ARGUMENT(device != NULL && stream != NULL, "device and stream must not be NULL");
    *stream = device->default_stream;
    return GN_OK;
}

/* Where the thread's stream of a device stands; NULL if it never had another than the default one. */
static gn_stream **current_stream_find(const gn_device *device)
{
    int place = device->ops->is_numbered ? 1 + device->index : 0;
    if (place < NEAR_STREAMS)
        return &near_streams[place];
    return far_streams != NULL ? &far_streams[place - NEAR_STREAMS] : NULL;
}

gn_status gn_stream_get_current(gn_device *device, gn_stream **stream)
{
    GN_CHECK_ARGUMENT(device != NULL && stream != NULL, "device and stream must not be NULL");
    gn_stream **current = current_stream_find(device);
    *stream = current != NULL && *current != NULL ? *current : device->default_stream;
    return GN_OK;
}

void gni_stream_set_hooks(const struct gni_stream_hooks *hooks)
{
    atomic_store_explicit(&stream_hooks, hooks, memory_order_release);
}

static void streams_let_go(gn_stream **streams, int count)
{
    for (int i = 0; i < count; i++) {
        gn_stream *stream = streams[i];
        streams[i] = NULL;
        gn_stream_release(stream);
    }
}

/* Runs when a thread ends that has ever set a stream. */
static void device_thread_end(void *unused)
{
    (void)unused;
    gni_thread.stream_epoch++;
    streams_let_go(near_streams, NEAR_STREAMS);
    if (far_streams != NULL)
        streams_let_go(far_streams, FAR_STREAMS);
    gni_host_free(far_streams);
    far_streams = NULL;
}

static void thread_key_create(void)
{
    int failed = pthread_key_create(&thread_key, device_thread_end);
    gni_assert(!failed);
    (void)failed;
}

gn_status gn_stream_set_current(gn_stream *stream)
{
    GN_CHECK_ARGUMENT(stream != NULL, "stream is NULL");
    gni_once_run(&thread_key_once, thread_key_create);
    if (pthread_setspecific(thread_key, &thread_key) != 0) /* any value but NULL */
        return gni_error_host_memory(sizeof(void *));
    gn_stream **slot = current_stream_find(stream->device);
    if (slot == NULL) {
        far_streams = gni_host_alloc(FAR_STREAMS * sizeof *far_streams);
        if (far_streams == NULL)
            return gni_error_host_memory(FAR_STREAMS * sizeof *far_streams);
        slot = current_stream_find(stream->device);
    }
    gn_stream *before = *slot;
    gni_thread.stream_epoch++;
    *slot = stream->kind == GNI_STREAM_DEFAULT ? NULL : gn_stream_retain(stream);
    gn_stream_release(before);
    return GN_OK;
}

gn_device *gn_stream_get_device(const gn_stream *stream)
{
    return stream->device;
}

void *gn_stream_get_handle(gn_stream *stream)
{
    if (!stream->device->ops->has_handles)
        return NULL;
    if (stream->kind == GNI_STREAM_OWNED)
        stream_share(stream);
    else
        gni_device_submit(stream->device);
    return stream->handle;
}

int gn_stream_get_priority(const gn_stream *stream)
{
    return stream->priority;
}

gn_status gn_stream_get_id(gn_stream *stream, uint64_t *id)
{
    GN_CHECK_ARGUMENT(stream != NULL && id != NULL, "stream and id must not be NULL");
    return stream->device->ops->stream_id(stream, id);
}

/* The driver would refuse as well, and spoil the capture. */
static gn_status not_captured_check(const gn_stream *stream)
{
    if (atomic_load_explicit(&stream->upper.capture, memory_order_relaxed) != NULL)
        return gni_error(GN_ERROR_CAPTURE, "a stream cannot be waited for while it is captured");
    return GN_OK;
}

gn_status gn_stream_query(gn_stream *stream)
{
    GN_CHECK_ARGUMENT(stream != NULL, "stream is NULL");
    GN_TRY(not_captured_check(stream));
    return stream->device->ops->stream_query(stream);
}

gn_status gn_stream_synchronize(gn_stream *stream)
{
    GN_CHECK_ARGUMENT(stream != NULL, "stream is NULL");
    GN_TRY(not_captured_check(stream));
    return waited(stream->device->ops->stream_synchronize(stream));
}

gn_status gn_stream_wait_event(gn_stream *stream, gn_event *event)
{
    GN_CHECK_ARGUMENT(stream != NULL && event != NULL, "stream and event must not be NULL");
    if (stream->device->ops != event->device->ops) /* GPUs may wait for each other's events */
        return same_device_check(__func__, stream->device, event->device);
    GN_TRY(stream->device->ops->stream_wait_event(stream, event));
    /* The event may be of a stream that is being captured: then this one is, too, from now on. */
    bool is_capturing = false;
    if (stream->kind == GNI_STREAM_OWNED && !atomic_load(&stream->is_shared) &&
        stream->device->ops->stream_is_capturing(stream, &is_capturing) == GN_OK && is_capturing)
        stream_share(stream);
    return GN_OK;
}

gn_status gn_stream_is_capturing(gn_stream *stream, bool *is_capturing)
{
    GN_CHECK_ARGUMENT(stream != NULL && is_capturing != NULL, "stream and result must not be NULL");
    return stream->device->ops->stream_is_capturing(stream, is_capturing);
}

/* ---- events --------------------------------------------------------------------------------- */

gn_status gn_event_create(gn_device *device, unsigned flags, gn_event **event)
{
    GN_CHECK_ARGUMENT(device != NULL && event != NULL, "device and event must not be NULL");
    GN_CHECK_ARGUMENT((flags & ~(unsigned)(GN_EVENT_TIMING | GN_EVENT_BLOCKING_SYNC)) == 0,
                      "unknown flags");
    gn_event *made = gni_host_alloc(sizeof *made);
    if (made == NULL)
        return gni_error_host_memory(sizeof *made);
    *made = (gn_event){.device = device, .flags = flags};
    gn_status status = device->ops->event_open(made);
    if (status != GN_OK) {
        gni_host_free(made);
        return status;
    }
    atomic_fetch_add(&device->object_count, 1);
    *event = made;
    return GN_OK;
}

void gn_event_destroy(gn_event *event)
{
    if (event == NULL)
        return;
    gn_device *device = event->device;
    device->ops->event_close(event);
    gni_host_free(event);
    atomic_fetch_sub(&device->object_count, 1);
}

gn_device *gn_event_get_device(const gn_event *event)
{
    return event->device;
}

void *gn_event_get_handle(const gn_event *event)
{
    return event->device->ops->has_handles ? event->handle : NULL;
}

gn_status gn_event_record(gn_event *event, gn_stream *stream)
{
    GN_CHECK_ARGUMENT(event != NULL && stream != NULL, "event and stream must not be NULL");
    GN_TRY(same_device_check(__func__, event->device, stream->device));
    return event->device->ops->event_record(event, stream);
}

gn_status gn_event_query(gn_event *event)
{
    GN_CHECK_ARGUMENT(event != NULL, "event is NULL");
    return event->device->ops->event_query(event);
}

gn_status gn_event_synchronize(gn_event *event)
{
    GN_CHECK_ARGUMENT(event != NULL, "event is NULL");
    return waited(event->device->ops->event_synchronize(event));
}

gn_status gn_event_elapsed(gn_event *start, gn_event *end, float *milliseconds)
{
    GN_CHECK_ARGUMENT(start != NULL && end != NULL && milliseconds != NULL,
                      "events and result must not be NULL");
    GN_TRY(same_device_check(__func__, start->device, end->device));
    GN_CHECK_ARGUMENT((start->flags & end->flags & GN_EVENT_TIMING) != 0,
                      "both events must be created with GN_EVENT_TIMING");
    return start->device->ops->event_elapsed(start, end, milliseconds);
}

/* ---- bytes ---------------------------------------------------------------------------------- */

gn_status gn_copy(void *destination, const void *source, size_t nbytes, gn_stream *stream)
{
    GN_CHECK_ARGUMENT(stream != NULL, "stream is NULL");
    GN_TRY(bytes_check(__func__, nbytes));
    if (nbytes == 0)
        return stream->device->ops->check(stream->device);
    GN_CHECK_ARGUMENT(destination != NULL && source != NULL, "an address is NULL");
    return stream->device->ops->copy(stream, destination, source, nbytes);
}

gn_status gn_fill(void *destination, uint32_t value, size_t element_size, size_t count,
                  gn_stream *stream)
{
    GN_CHECK_ARGUMENT(stream != NULL, "stream is NULL");
    GN_CHECK_ARGUMENT(element_size == 1 || element_size == 2 || element_size == 4,
                      "the element size must be 1, 2 or 4 bytes");
    size_t nbytes;
    if (!gni_size_multiply(element_size, count, &nbytes))
        return gni_error(GN_ERROR_OVERFLOW, "gn_fill: %zu elements of %zu bytes do not fit", count,
                         element_size);
    GN_TRY(bytes_check(__func__, nbytes));
    if (nbytes == 0)
        return stream->device->ops->check(stream->device);
    GN_CHECK_ARGUMENT(destination != NULL, "the address is NULL");
    GN_CHECK_ARGUMENT((uintptr_t)destination % element_size == 0,
                      "the address is not a multiple of the element size");
    return stream->device->ops->fill(stream, destination, value, element_size, count);
}

/* ---- page-locked memory --------------------------------------------------------------------- */

/*
 * Every page-locked block and registration, by address: it must go back to the device it came from, and
 * as what it is. A driver takes it back through any device, and a device must not be closed under it.
 */
struct host_block {
    gn_device *device;
    size_t nbytes;
    bool is_registered; /* the caller's memory, by gn_host_register() */
};

static struct gni_map host_blocks; /* address -> struct host_block *, owned */
static struct gni_mutex host_mutex = GNI_MUTEX_INIT;
static struct gni_once host_once = GNI_ONCE_INIT;

static const struct gni_fork_handlers host_fork = {.mutex = &host_mutex};

static void host_start(void)
{
    gni_fork_register(GNI_FORK_DEVICE, &host_fork);
}

/* Notes a block that the device has just given or registered. */
static gn_status host_block_add(gn_device *device, void *pointer, size_t nbytes, bool is_registered)
{
    gni_once_run(&host_once, host_start);
    struct host_block *block = gni_host_alloc(sizeof *block);
    if (block == NULL)
        return gni_error_host_memory(sizeof *block);
    *block = (struct host_block){device, nbytes, is_registered};
    gni_mutex_lock(&host_mutex);
    gn_status status = gni_map_insert(&host_blocks, (uintptr_t)pointer, block);
    gni_mutex_unlock(&host_mutex);
    if (status != GN_OK)
        gni_host_free(block);
    else
        atomic_fetch_add(&device->object_count, 1);
    return status;
}

/* Takes a block out, so that no other thread gives it back as well. */
static gn_status host_block_take(gn_device *device, void *pointer, bool is_registered,
                                 struct host_block **taken)
{
    gni_mutex_lock(&host_mutex);
    struct host_block *block = gni_map_find(&host_blocks, (uintptr_t)pointer);
    bool is_right =
        block != NULL && block->device == device && block->is_registered == is_registered;
    if (is_right)
        (void)gni_map_take(&host_blocks, (uintptr_t)pointer, NULL);
    gni_mutex_unlock(&host_mutex);
    if (!is_right)
        return gni_error(GN_ERROR_INVALID_POINTER, "%s: %p is not from %s with this device",
                         gni_device_label(device).text, pointer,
                         is_registered ? "gn_host_register" : "gn_host_alloc");
    *taken = block;
    return GN_OK;
}

/* The device took the block back, or refused: then it stays. The map had room for it. */
static gn_status host_block_end(struct host_block *block, void *pointer, gn_status status)
{
    if (status == GN_OK) {
        atomic_fetch_sub(&block->device->object_count, 1);
        gni_host_free(block);
        return GN_OK;
    }
    gni_mutex_lock(&host_mutex);
    if (gni_map_insert(&host_blocks, (uintptr_t)pointer, block) != GN_OK)
        gni_host_free(
            block); /* only if other threads filled the map meanwhile, and memory is out */
    gni_mutex_unlock(&host_mutex);
    return status;
}

gn_status gn_host_alloc(gn_device *device, size_t nbytes, void **pointer)
{
    GN_CHECK_ARGUMENT(device != NULL && pointer != NULL, "device and pointer must not be NULL");
    GN_TRY(bytes_check(__func__, nbytes));
    size_t taken = nbytes > 0 ? nbytes : 1;
    void *made;
    GN_TRY(device->ops->host_alloc(device, taken, &made));
    gn_status status = host_block_add(device, made, taken, false);
    if (status != GN_OK) {
        (void)device->ops->host_free(device, made, taken);
        return status;
    }
    *pointer = made;
    return GN_OK;
}

gn_status gn_host_free(gn_device *device, void *pointer)
{
    GN_CHECK_ARGUMENT(device != NULL, "device is NULL");
    if (pointer == NULL)
        return GN_OK;
    struct host_block *block;
    GN_TRY(host_block_take(device, pointer, false, &block));
    return host_block_end(block, pointer, device->ops->host_free(device, pointer, block->nbytes));
}

gn_status gn_host_register(gn_device *device, void *pointer, size_t nbytes)
{
    GN_CHECK_ARGUMENT(device != NULL && pointer != NULL, "device and pointer must not be NULL");
    GN_CHECK_ARGUMENT(nbytes > 0, "there is nothing to register in 0 bytes");
    GN_TRY(bytes_check(__func__, nbytes));
    GN_TRY(device->ops->host_register(device, pointer, nbytes));
    gn_status status = host_block_add(device, pointer, nbytes, true);
    if (status != GN_OK)
        (void)device->ops->host_unregister(device, pointer);
    return status;
}

gn_status gn_host_unregister(gn_device *device, void *pointer)
{
    GN_CHECK_ARGUMENT(device != NULL && pointer != NULL, "device and pointer must not be NULL");
    struct host_block *block;
    GN_TRY(host_block_take(device, pointer, true, &block));
    return host_block_end(block, pointer, device->ops->host_unregister(device, pointer));
}

/* ---- threads -------------------------------------------------------------------------------- */

int gn_get_num_threads(void)
{
    return gni_parallel_get_threads();
}

gn_status gn_set_num_threads(int count)
{
    return gni_parallel_set_threads(count);
}
