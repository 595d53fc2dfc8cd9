/*
 * graph_capture.c: storage while a graph is captured, and when it is replayed.
 *
 * A replay reads and writes memory as an operation does, but nobody names its operands then. So they are noted when
 * the graph is captured:
 *
 *     uses   storage from outside that was read or written    retained: the addresses are in the graph
 *     made   storage from the graph's own pool                not retained: its tensors may go, and what they leave
 *                                                             is used again within the graph
 *
 *   GC1  a captured stream waits for nobody: an event from outside would spoil the capture. A replay waits instead,
 *       for all uses and all that was made and still lives, as stream_order.c says: it is a reader of what it only reads,
 *       and a writer of all else;
 *   GC2  what was made belongs to the captured stream until the capture ends: others would be drawn into it;
 *   GC3  `capture` of a storage or a stream changes under the mutex only; is_capturing is true between its making and
 *       the end of the capture.
 */
#include "tensor/graph_capture.h"

#include "base/fork.h"
#include "base/hash.h"
#include "base/host.h"
#include "base/thread.h"
#include "tensor/tensor.h"

struct use {
    struct gni_storage *storage; /* retained */
    bool is_write;
};

struct gni_capture {
    struct gni_map uses; /* by the storage's address: struct use, owned */
    struct gni_list made;
};

static struct gni_mutex mutex = GNI_MUTEX_INIT;
static const struct gni_fork_handlers capture_fork = {.mutex = &mutex};
static struct gni_once capture_once = GNI_ONCE_INIT;

static void capture_register(void)
{
    gni_fork_register(GNI_FORK_CAPTURE, &capture_fork);
}

gn_status gni_capture_open(gn_stream *stream, struct gni_capture **capture)
{
    struct gni_capture *made = gni_host_alloc(sizeof *made);
    if (made == NULL)
        return gni_error_host_memory(sizeof *made);
    gni_once_run(&capture_once, capture_register);
    gni_map_init(&made->uses);
    gni_list_init(&made->made);
    struct gni_capture *none = NULL;
    gni_mutex_lock(&mutex);
    bool is_first = atomic_compare_exchange_strong(&stream->upper.capture, &none, made);
    gni_mutex_unlock(&mutex);
    if (!is_first) {
        gni_host_free(made);
        return gni_error(GN_ERROR_CAPTURE, "the stream is being captured into another graph");
    }
    *capture = made;
    return GN_OK;
}

void gni_capture_close(struct gni_capture *capture, gn_stream *stream)
{
    gni_mutex_lock(&mutex);
    atomic_store(&stream->upper.capture, NULL);
    gni_list_each (link, &capture->made)
        atomic_store(&gni_container_of(link, struct gni_storage, capture_link)->is_capturing,
                     false);
    gni_mutex_unlock(&mutex);
}

void gni_capture_destroy(struct gni_capture *capture)
{
    if (capture == NULL)
        return;
    gni_mutex_lock(&mutex);
    gni_list_each (link, &capture->made) {
        gni_list_remove(link);
        atomic_store(&gni_container_of(link, struct gni_storage, capture_link)->capture, NULL);
    }
    gni_mutex_unlock(&mutex);
    gni_map_each (entry, &capture->uses) {
        struct use *use = entry->value;
        gni_storage_release(use->storage);
        gni_host_free(use);
    }
    gni_map_deinit(&capture->uses);
    gni_host_free(capture);
}

/* ---- noting ----------------------------------------------------------------------------------- */

void gni_capture_adopt(struct gni_capture *capture, struct gni_storage *storage)
{
    gni_mutex_lock(&mutex);
    atomic_store(&storage->capture, capture);
    atomic_store(&storage->is_capturing, true);
    gni_list_push_back(&capture->made, &storage->capture_link);
    gni_mutex_unlock(&mutex);
}

void gni_capture_forget(struct gni_storage *storage)
{
    gni_mutex_lock(&mutex);
    if (atomic_load(&storage->capture) != NULL)
        gni_list_remove(&storage->capture_link);
    gni_mutex_unlock(&mutex);
}

/* With the mutex. */
static gn_status use_note(struct gni_capture *capture, struct gni_storage *storage, bool is_write)
{
    struct use *use = gni_map_find(&capture->uses, (uintptr_t)storage);
    if (use == NULL) {
        use = gni_host_alloc(sizeof *use);
        if (use == NULL)
            return gni_error_host_memory(sizeof *use);
        *use = (struct use){.storage = storage};
        gn_status status = gni_map_insert(&capture->uses, (uintptr_t)storage, use);
        if (status != GN_OK) {
            gni_host_free(use);
            return status;
        }
        gni_storage_retain(storage);
    }
    use->is_write |= is_write;
    return GN_OK;
}

gn_status gni_capture_note(struct gni_capture *capture, struct gni_storage *storage, bool is_write)
{
    gni_mutex_lock(&mutex);
    gn_status status = GN_OK;
    if (atomic_load(&storage->capture) != capture)
        status = atomic_load(&storage->is_capturing) ? gni_capture_refuse_other()
                                                     : use_note(capture, storage, is_write);
    gni_mutex_unlock(&mutex);
    return status;
}

/* ---- replaying -------------------------------------------------------------------------------- */

bool gni_capture_writes(struct gni_capture *capture, const struct gni_storage *storage)
{
    gni_mutex_lock(&mutex);
    const struct use *use = gni_map_find(&capture->uses, (uintptr_t)storage);
    bool is_written = atomic_load(&storage->capture) == capture || (use != NULL && use->is_write);
    gni_mutex_unlock(&mutex);
    return is_written;
}

gn_status gni_capture_order(struct gni_capture *capture, gn_stream *stream)
{
    gni_mutex_lock(&mutex);
    /* Looked at again: another thread may just have begun, and with the mutex nothing can be noted. */
    gn_status status = gni_capture_refuse(stream, "a graph cannot be replayed");
    gni_map_each (entry, &capture->uses) {
        struct use *use = entry->value;
        if (status == GN_OK)
            status = gni_storage_order(use->storage, stream, use->is_write);
        if (status == GN_OK && use->is_write)
            atomic_fetch_add(&use->storage->version, 1);
    }
    gni_list_each (link, &capture->made) {
        struct gni_storage *storage = gni_container_of(link, struct gni_storage, capture_link);
        if (status == GN_OK)
            status = gni_storage_order(storage, stream, true);
        if (status == GN_OK)
            atomic_fetch_add(&storage->version, 1);
    }
    gni_mutex_unlock(&mutex);
    return status;
}

/* ---- refusing --------------------------------------------------------------------------------- */

gn_status gni_capture_refuse(const gn_stream *stream, const char *what)
{
    if (stream == NULL ||
        atomic_load_explicit(&stream->upper.capture, memory_order_relaxed) == NULL)
        return GN_OK;
    return gni_error(GN_ERROR_CAPTURE,
                     "%s while a graph is captured: what is captured does not run before the graph "
                     "is replayed",
                     what);
}

gn_status gni_capture_refuse_other(void)
{
    return gni_error(GN_ERROR_CAPTURE, "a tensor that is made by a graph is used outside of its "
                                       "capture, on another stream, before that has ended");
}
