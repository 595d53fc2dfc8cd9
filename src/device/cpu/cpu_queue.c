/*
 * cpu_queue.c: streams and events of the CPU, with the rules of the GPU's.
 *
 *   queue    the work of one stream: a list of items, oldest first. The oldest may be running.
 *   item     a copy, a fill, a wait for a record, or a mark that completes a record
 *   record   what one gn_event_record() made: complete or not, and when
 *
 * Each queue has a thread of its own, started with its first item. An item that could start at once
 * on the default stream runs in the thread that submits it: the default stream of an idle machine
 * needs no other thread. So does a mark on any stream: an event that is recorded in an idle stream is
 * complete when the call returns.
 *
 * Invariants, all under engine.mutex:
 *   CQ1  every item has a number from one sequence, so queues are sorted by it;
 *   CQ2  an item leaves its queue only when it is complete, so the oldest number in a queue says how
 *       far the stream is;
 *   CQ3  an item of the default stream starts when no blocking stream has an older one, and an item of
 *       a blocking stream when the default stream has no older one;
 *   CQ4  at most one item of a queue runs, its first, and then `is_running` is set;
 *   CQ5  while `pause_count` is not 0 no item starts: fork() waits until none runs, so that the child
 *       sees each item either complete or not begun, and can run it itself.
 *
 * A child has none of the threads: whoever needs a queue there starts its thread again.
 */
#include "device/cpu/cpu.h"

#include "base/fork.h"
#include "base/host.h"
#include "base/list.h"
#include "base/thread.h"

#include <string.h>

struct cpu_record {
    int references; /* the event's and those of the items */
    bool is_complete;
    uint64_t time_ns; /* when it completed */
};

struct cpu_event {
    struct cpu_record *record; /* of the last gn_event_record(); NULL before the first */
};

enum cpu_item_kind {
    CPU_ITEM_COPY,
    CPU_ITEM_FILL,
    CPU_ITEM_WAIT,
    CPU_ITEM_MARK,
};

struct cpu_item {
    struct gni_list link;
    uint64_t number; /* CQ1 */
    enum cpu_item_kind kind;
    bool is_borrowed; /* lives on the stack of the thread that runs it */
    void *destination;
    const void *source;
    size_t nbytes; /* fill: the element size */
    size_t count;
    uint32_t value;
    struct cpu_record *record; /* wait and mark */
};

struct cpu_queue {
    struct gni_list link;   /* in engine.queues */
    struct gni_list items;  /* oldest first */
    pthread_cond_t arrived; /* an item came, or the stream was closed */
    bool is_default;
    bool is_blocking; /* ordered with the default stream, but not the default stream itself */
    bool is_running;  /* CQ4 */
    bool has_thread;
    bool is_closed; /* no stream any more: free it when it is empty */
};

static struct {
    struct gni_mutex mutex;
    pthread_cond_t changed; /* an item completed, or a pause ended */
    struct gni_list queues;
    uint64_t last_number;
    int pause_count; /* CQ5 */
} engine = {
    .mutex = GNI_MUTEX_INIT,
    .changed = PTHREAD_COND_INITIALIZER,
    .queues = {&engine.queues, &engine.queues},
};

static struct gni_once engine_once = GNI_ONCE_INIT;

/* Of the default stream, which lives for ever: opening the device needs no memory. */
static struct cpu_queue default_queue;

static gn_status queue_thread_ensure(struct cpu_queue *queue);

/* ---- items ---------------------------------------------------------------------------------- */

static void record_release(struct cpu_record *record)
{
    if (record != NULL && --record->references == 0)
        gni_host_free(record);
}

static void fill_run(const struct cpu_item *item)
{
    if (item->nbytes == 1) {
        (void)memset(item->destination, (int)(item->value & 0xff), item->count);
    } else if (item->nbytes == 2) {
        uint16_t *at = item->destination;
        for (size_t i = 0; i < item->count; i++)
            at[i] = (uint16_t)item->value;
    } else {
        uint32_t *at = item->destination;
        for (size_t i = 0; i < item->count; i++)
            at[i] = item->value;
    }
}

/* The part of an item that needs no lock. */
static void item_run(const struct cpu_item *item)
{
    switch (item->kind) {
    case CPU_ITEM_COPY:
        (void)memmove(item->destination, item->source, item->nbytes);
        break;
    case CPU_ITEM_FILL:
        fill_run(item);
        break;
    case CPU_ITEM_WAIT:
    case CPU_ITEM_MARK:
        break;
    }
}

static struct cpu_item *queue_first(const struct cpu_queue *queue)
{
    return gni_list_is_empty(&queue->items)
               ? NULL
               : gni_container_of(queue->items.next, struct cpu_item, link);
}

/* Is everything in the queue up to this number complete? By CQ1 and CQ2 its first item tells. */
static bool queue_is_past(const struct cpu_queue *queue, uint64_t number)
{
    const struct cpu_item *first = queue_first(queue);
    return first == NULL || first->number > number;
}

/* Are all the streams past this number with which a stream of this sort is ordered? CQ3. */
static bool joined_are_past(bool is_default, bool is_blocking, uint64_t number)
{
    gni_list_each (link, &engine.queues) {
        const struct cpu_queue *other = gni_container_of(link, struct cpu_queue, link);
        bool is_joined = (is_default && other->is_blocking) || (is_blocking && other->is_default);
        if (is_joined && !queue_is_past(other, number))
            return false;
    }
    return true;
}

static bool item_can_start(const struct cpu_queue *queue, const struct cpu_item *item)
{
    gni_assert(queue_first(queue) == item && !queue->is_running);
    if (engine.pause_count != 0)
        return false;
    if (item->kind == CPU_ITEM_WAIT && !item->record->is_complete)
        return false;
    return joined_are_past(queue->is_default, queue->is_blocking, item->number - 1);
}

/* Runs the first item, which can start. Called with the lock, which it lets go meanwhile. */
static void queue_step(struct cpu_queue *queue, struct cpu_item *item)
{
    queue->is_running = true;
    gni_mutex_unlock(&engine.mutex);
    item_run(item);
    gni_mutex_lock(&engine.mutex);
    queue->is_running = false;
    if (item->kind == CPU_ITEM_MARK) {
        item->record->is_complete = true;
        item->record->time_ns = gni_time_ns();
    }
    record_release(item->record);
    gni_list_remove(&item->link);
    if (!item->is_borrowed)
        gni_host_free(item);
    (void)pthread_cond_broadcast(&engine.changed);
}

/* ---- queues --------------------------------------------------------------------------------- */

static void queue_free(struct cpu_queue *queue)
{
    gni_assert(gni_list_is_empty(&queue->items) && !queue->is_running);
    gni_list_remove(&queue->link);
    (void)pthread_cond_destroy(&queue->arrived);
    gni_host_free(queue);
}

/* The thread of one queue: runs what comes until the stream is closed and the queue is empty. */
static void *queue_serve(void *argument)
{
    struct cpu_queue *queue = argument;
    gni_mutex_lock(&engine.mutex);
    for (;;) {
        struct cpu_item *item = queue_first(queue);
        if (item == NULL) {
            if (queue->is_closed)
                break;
            (void)pthread_cond_wait(&queue->arrived, &engine.mutex.native);
        } else if (queue->is_running || !item_can_start(queue, item)) {
            (void)pthread_cond_wait(&engine.changed, &engine.mutex.native);
        } else {
            queue_step(queue, item);
        }
    }
    queue_free(queue);
    gni_mutex_unlock(&engine.mutex);
    return NULL;
}

static gn_status queue_thread_ensure(struct cpu_queue *queue)
{
    if (queue->has_thread)
        return GN_OK;
    pthread_t thread;
    int failed = gni_thread_start(&thread, queue_serve, queue);
    if (failed)
        return gni_error(GN_ERROR_OUT_OF_HOST_MEMORY, "cpu: no thread for a stream: %s",
                         strerror(failed));
    (void)pthread_detach(thread);
    queue->has_thread = true;
    return GN_OK;
}

/* In a forked child queues may hold work and have no thread. */
static gn_status queue_threads_ensure(void)
{
    gni_list_each (link, &engine.queues) {
        struct cpu_queue *queue = gni_container_of(link, struct cpu_queue, link);
        if (!gni_list_is_empty(&queue->items) && !queue->is_running)
            GN_TRY(queue_thread_ensure(queue));
    }
    return GN_OK;
}

/* Could an item that is submitted now start now, in this thread? A wait never could. */
static bool queue_is_inline(const struct cpu_queue *queue, const struct cpu_item *item)
{
    bool can_be = item->kind == CPU_ITEM_MARK || (queue->is_default && item->kind != CPU_ITEM_WAIT);
    return can_be && engine.pause_count == 0 && gni_list_is_empty(&queue->items) &&
           joined_are_past(queue->is_default, queue->is_blocking, engine.last_number);
}

/* Submits a copy of an item. The lock is held. */
static gn_status queue_submit(struct cpu_queue *queue, const struct cpu_item *model)
{
    struct cpu_item local = *model;
    if (queue_is_inline(queue, model)) {
        local.is_borrowed = true;
        local.number = ++engine.last_number;
        gni_list_push_back(&queue->items, &local.link);
        queue_step(queue, &local);
        return GN_OK;
    }
    struct cpu_item *item = gni_host_alloc(sizeof *item);
    if (item == NULL)
        return gni_error_host_memory(sizeof *item);
    gn_status status = queue_thread_ensure(queue);
    if (status != GN_OK) {
        gni_host_free(item);
        return status;
    }
    *item = local;
    item->number = ++engine.last_number;
    gni_list_push_back(&queue->items, &item->link);
    (void)pthread_cond_signal(&queue->arrived);
    return GN_OK;
}

static gn_status queue_submit_locking(gn_stream *stream, const struct cpu_item *model)
{
    gni_mutex_lock(&engine.mutex);
    gn_status status = queue_submit(stream->handle, model);
    gni_mutex_unlock(&engine.mutex);
    return status;
}

/* Is all work up to this number complete that a wait for the stream waits for? */
static bool stream_is_past(const struct cpu_queue *queue, uint64_t number)
{
    return queue_is_past(queue, number) && joined_are_past(queue->is_default, false, number);
}

/* ---- fork ----------------------------------------------------------------------------------- */

static bool engine_is_running(void)
{
    gni_list_each (link, &engine.queues) {
        if (gni_container_of(link, struct cpu_queue, link)->is_running)
            return true;
    }
    return false;
}

static void engine_fork_prepare(void)
{
    engine.pause_count++; /* two threads may fork at once */
    while (engine_is_running())
        (void)pthread_cond_wait(&engine.changed, &engine.mutex.native);
}

/* A child has none of the threads, neither those of queues nor those that wait. */
static void engine_forget_threads(void)
{
    engine.pause_count = 0;
    (void)pthread_cond_init(&engine.changed, NULL);
    gni_list_each (link, &engine.queues) {
        struct cpu_queue *queue = gni_container_of(link, struct cpu_queue, link);
        queue->has_thread = false;
        (void)pthread_cond_init(&queue->arrived, NULL);
    }
}

static void engine_fork_done(bool is_child)
{
    if (is_child) {
        engine_forget_threads();
    } else {
        engine.pause_count--;
        (void)pthread_cond_broadcast(&engine.changed);
    }
}

static const struct gni_fork_handlers engine_fork = {
    .mutex = &engine.mutex, .prepare = engine_fork_prepare, .done = engine_fork_done};

static void engine_start(void)
{
    gni_fork_register(GNI_FORK_CPU_QUEUE, &engine_fork);
}

/* ---- the slots ------------------------------------------------------------------------------ */

gn_status gni_cpu_stream_open(gn_stream *stream)
{
    gni_once_run(&engine_once, engine_start);
    bool is_default = stream->kind == GNI_STREAM_DEFAULT;
    struct cpu_queue *queue = is_default ? &default_queue : gni_host_alloc(sizeof *queue);
    if (queue == NULL)
        return gni_error_host_memory(sizeof *queue);
    *queue = (struct cpu_queue){
        .is_default = is_default,
        .is_blocking = !is_default && !(stream->flags & GN_STREAM_NON_BLOCKING),
    };
    gni_list_init(&queue->items);
    (void)pthread_cond_init(&queue->arrived, NULL);
    stream->handle = queue;
    stream->id = gni_stream_next_id();
    stream->priority = 0;
    gni_mutex_lock(&engine.mutex);
    gni_list_push_back(&engine.queues, &queue->link);
    gni_mutex_unlock(&engine.mutex);
    return GN_OK;
}

void gni_cpu_stream_close(gn_stream *stream)
{
    struct cpu_queue *queue = stream->handle;
    gni_mutex_lock(&engine.mutex);
    queue->is_closed = true;
    if (!gni_list_is_empty(&queue->items))
        (void)queue_thread_ensure(queue);
    if (queue->has_thread)
        (void)pthread_cond_signal(&queue->arrived); /* the thread frees it */
    else if (gni_list_is_empty(&queue->items))
        queue_free(queue);
    gni_mutex_unlock(&engine.mutex);
}

gn_status gni_cpu_stream_id(gn_stream *stream, uint64_t *id)
{
    *id = stream->id;
    return GN_OK;
}

gn_status gni_cpu_stream_query(gn_stream *stream)
{
    gni_mutex_lock(&engine.mutex);
    gn_status status = queue_threads_ensure();
    if (status == GN_OK && !stream_is_past(stream->handle, engine.last_number))
        status = GN_ERROR_NOT_READY; /* an answer, not a failure: it has no detail */
    gni_mutex_unlock(&engine.mutex);
    return status;
}

gn_status gni_cpu_stream_synchronize(gn_stream *stream)
{
    gni_mutex_lock(&engine.mutex);
    gn_status status = queue_threads_ensure();
    uint64_t number = engine.last_number;
    while (status == GN_OK && !stream_is_past(stream->handle, number))
        (void)pthread_cond_wait(&engine.changed, &engine.mutex.native);
    gni_mutex_unlock(&engine.mutex);
    return status;
}

gn_status gni_cpu_synchronize(gn_device *device)
{
    (void)device;
    gni_mutex_lock(&engine.mutex);
    gn_status status = queue_threads_ensure();
    uint64_t number = engine.last_number;
    for (bool is_past = false; status == GN_OK && !is_past;) {
        is_past = true;
        gni_list_each (link, &engine.queues) {
            if (!queue_is_past(gni_container_of(link, struct cpu_queue, link), number))
                is_past = false;
        }
        if (!is_past)
            (void)pthread_cond_wait(&engine.changed, &engine.mutex.native);
    }
    gni_mutex_unlock(&engine.mutex);
    return status;
}

gn_status gni_cpu_stream_wait_event(gn_stream *stream, gn_event *event)
{
    struct cpu_event *own = event->handle;
    gn_status status = GN_OK;
    gni_mutex_lock(&engine.mutex);
    struct cpu_record *record = own->record;
    if (record != NULL && !record->is_complete) {
        record->references++;
        struct cpu_item item = {.kind = CPU_ITEM_WAIT, .record = record};
        status = queue_submit(stream->handle, &item);
        if (status != GN_OK)
            record_release(record);
    }
    gni_mutex_unlock(&engine.mutex);
    return status;
}

gn_status gni_cpu_stream_is_capturing(gn_stream *stream, bool *is_capturing)
{
    (void)stream;
    *is_capturing = false;
    return GN_OK;
}

gn_status gni_cpu_event_open(gn_event *event)
{
    struct cpu_event *own = gni_host_alloc(sizeof *own);
    if (own == NULL)
        return gni_error_host_memory(sizeof *own);
    *own = (struct cpu_event){.record = NULL};
    event->handle = own;
    return GN_OK;
}

void gni_cpu_event_close(gn_event *event)
{
    struct cpu_event *own = event->handle;
    gni_mutex_lock(&engine.mutex);
    record_release(own->record);
    gni_mutex_unlock(&engine.mutex);
    gni_host_free(own);
}

gn_status gni_cpu_event_record(gn_event *event, gn_stream *stream)
{
    struct cpu_event *own = event->handle;
    struct cpu_record *record = gni_host_alloc(sizeof *record);
    if (record == NULL)
        return gni_error_host_memory(sizeof *record);
    *record = (struct cpu_record){.references = 2}; /* the event's and the item's */
    struct cpu_item item = {.kind = CPU_ITEM_MARK, .record = record};
    gni_mutex_lock(&engine.mutex);
    gn_status status = queue_submit(stream->handle, &item);
    if (status == GN_OK) {
        record_release(own->record);
        own->record = record;
    } else {
        gni_host_free(record);
    }
    gni_mutex_unlock(&engine.mutex);
    return status;
}

gn_status gni_cpu_event_query(gn_event *event)
{
    struct cpu_event *own = event->handle;
    gni_mutex_lock(&engine.mutex);
    gn_status status = queue_threads_ensure();
    if (status == GN_OK && own->record != NULL && !own->record->is_complete)
        status = GN_ERROR_NOT_READY;
    gni_mutex_unlock(&engine.mutex);
    return status;
}

gn_status gni_cpu_event_synchronize(gn_event *event)
{
    struct cpu_event *own = event->handle;
    gni_mutex_lock(&engine.mutex);
    gn_status status = queue_threads_ensure();
    struct cpu_record *record = own->record; /* what is recorded now, even if it moves meanwhile */
    if (status == GN_OK && record != NULL) {
        record->references++;
        while (!record->is_complete)
            (void)pthread_cond_wait(&engine.changed, &engine.mutex.native);
        record_release(record);
    }
    gni_mutex_unlock(&engine.mutex);
    return status;
}

gn_status gni_cpu_event_elapsed(gn_event *start, gn_event *end, float *milliseconds)
{
    gni_mutex_lock(&engine.mutex);
    const struct cpu_record *first = ((struct cpu_event *)start->handle)->record;
    const struct cpu_record *last = ((struct cpu_event *)end->handle)->record;
    gn_status status = GN_OK;
    if (first == NULL || last == NULL)
        status = gni_error(GN_ERROR_INVALID_VALUE, "an event was never recorded");
    else if (!first->is_complete || !last->is_complete)
        status = GN_ERROR_NOT_READY;
    else
        *milliseconds = (float)((double)(int64_t)(last->time_ns - first->time_ns) / 1e6);
    gni_mutex_unlock(&engine.mutex);
    return status;
}

gn_status gni_cpu_copy(gn_stream *stream, void *destination, const void *source, size_t nbytes)
{
    struct cpu_item item = {
        .kind = CPU_ITEM_COPY, .destination = destination, .source = source, .nbytes = nbytes};
    return queue_submit_locking(stream, &item);
}

gn_status gni_cpu_fill(gn_stream *stream, void *destination, uint32_t value, size_t element_size,
                       size_t count)
{
    struct cpu_item item = {.kind = CPU_ITEM_FILL,
                            .destination = destination,
                            .nbytes = element_size,
                            .count = count,
                            .value = value};
    return queue_submit_locking(stream, &item);
}
