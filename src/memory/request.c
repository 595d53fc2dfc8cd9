/*
 * request.c: allocations that another thread prepares.
 *
 * One worker serves all managers, oldest request first. It starts with the first request and ends when
 * the process does; a forked child starts its own.
 *
 * Invariants, under worker.mutex:
 *   RQ1  a request is waiting (in the queue), running (with the worker, which may serve another one in a handler that
 *       it has called for the first) or done;
 *   RQ2  it is freed by the worker if it was released before it was done, else by the release;
 *   RQ3  its stream is retained until it has its answer, which is before it is done: whoever saw it done
 *       finds that the worker holds nothing of theirs any more.
 */
#include "memory/manager.h"

#include "base/fork.h"
#include "base/host.h"
#include "base/list.h"
#include "base/log.h"
#include "base/thread.h"
#include "device/device.h"
#include "memory/history.h"

#include <stdio.h>

struct gn_memory_request {
    struct gni_list link; /* in the queue, or in `running` */
    gn_memory_manager *manager;
    size_t nbytes;
    gn_stream *stream; /* RQ3; NULL: the answer is there */
    bool is_running, is_done, is_released, is_taken;
    uint32_t site;           /* of whoever asked */
    uint64_t shutdown_count; /* when it was started: a shutdown frees what it got */
    gn_status status;
    void *pointer;
    char detail[4096]; /* of the error */
};

static struct {
    struct gni_mutex mutex;
    pthread_cond_t arrived; /* a request came */
    pthread_cond_t changed; /* a request is done */
    struct gni_list queue;
    struct gni_list running; /* with the worker, the innermost first */
    bool is_started;
} worker = {
    .mutex = GNI_MUTEX_INIT,
    .arrived = PTHREAD_COND_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER,
    .queue = {&worker.queue, &worker.queue},
    .running = {&worker.running, &worker.running},
};

static struct gni_once worker_once = GNI_ONCE_INIT;

/* Is the calling thread the worker? */
static _Thread_local bool is_worker;

static void request_free(gn_memory_request *request)
{
    if (request->status == GN_OK && request->is_done && !request->is_taken &&
        request->shutdown_count == gni_shutdown_count() &&
        gn_memory_free(request->manager, request->pointer) != GN_OK)
        gni_log(GNI_LOG_WARNING, "a block that nobody took was not freed: %s", gn_error_detail());
    gni_host_free(request);
}

/* With the mutex: a request that waits is the worker's. */
static void request_take(gn_memory_request *request)
{
    gni_list_remove(&request->link);
    gni_list_push_front(&worker.running, &request->link);
    request->is_running = true;
}

static void request_run(gn_memory_request *request)
{
    void *pointer = NULL;
    uint32_t site = gn_history_set_site(request->site);
    gn_status status =
        gn_memory_alloc(request->manager, request->nbytes, request->stream, &pointer);
    (void)gn_history_set_site(site);
    char detail[sizeof request->detail];
    (void)snprintf(detail, sizeof detail, "%s", status != GN_OK ? gn_error_detail() : "");
    gn_stream *stream = request->stream; /* let go when a forked child would not use it any more */
    gni_mutex_lock(&worker.mutex);
    request->stream = NULL;
    request->pointer = pointer;
    request->status = status;
    (void)snprintf(request->detail, sizeof request->detail, "%s", detail);
    gni_mutex_unlock(&worker.mutex);
    gn_stream_release(stream);
    gni_mutex_lock(&worker.mutex);
    request->is_done = true;
    request->is_running = false;
    gni_list_remove(&request->link);
    bool is_released = request->is_released;
    (void)pthread_cond_broadcast(&worker.changed);
    gni_mutex_unlock(&worker.mutex);
    if (is_released)
        request_free(request);
}

static void *worker_run(void *unused)
{
    (void)unused;
    is_worker = true;
    for (;;) {
        gni_mutex_lock(&worker.mutex);
        while (gni_list_is_empty(&worker.queue))
            (void)pthread_cond_wait(&worker.arrived, &worker.mutex.native);
        gn_memory_request *request = gni_container_of(worker.queue.next, gn_memory_request, link);
        request_take(request);
        gni_mutex_unlock(&worker.mutex);
        request_run(request);
    }
    return NULL;
}

/* In a child the worker is not there any more: what waits, and what it was at, is served by a new one,
 * unless it had its answer. Who waited in the parent does not wait here. */
static void worker_fork_done(bool is_child)
{
    if (!is_child)
        return;
    worker.is_started = false;
    (void)pthread_cond_init(&worker.arrived, NULL);
    (void)pthread_cond_init(&worker.changed, NULL);
    struct gni_list *link;
    while ((link = gni_list_pop_front(&worker.running)) != NULL) {
        gn_memory_request *request = gni_container_of(link, gn_memory_request, link);
        request->is_running = false;
        request->is_done = request->stream == NULL;
        if (!request->is_done)
            gni_list_push_front(&worker.queue, link);
    }
}

static const struct gni_fork_handlers worker_fork = {.mutex = &worker.mutex,
                                                     .done = worker_fork_done};

static void worker_register(void)
{
    gni_fork_register(GNI_FORK_REQUEST, &worker_fork);
}

/* With the mutex. In a forked child it has to be started again, by whoever asks for a request. */
static gn_status worker_ensure(void)
{
    if (worker.is_started)
        return GN_OK;
    pthread_t thread;
    int failed = gni_thread_start(&thread, worker_run, NULL);
    if (failed)
        return gni_error(GN_ERROR_OUT_OF_HOST_MEMORY, "the system starts no more threads");
    (void)pthread_detach(thread);
    worker.is_started = true;
    return GN_OK;
}

gn_status gn_memory_request_start(gn_memory_manager *manager, size_t nbytes, gn_stream *stream,
                                  gn_memory_request **out)
{
    GN_CHECK_ARGUMENT(manager != NULL && out != NULL, "manager and request must not be NULL");
    GN_TRY(gni_manager_stream(manager, &stream));
    gn_memory_request *request = gni_host_alloc(sizeof *request);
    if (request == NULL)
        return gni_error_host_memory(sizeof *request);
    gni_once_run(&worker_once, worker_register);
    gni_list_init(&request->link);
    request->manager = manager;
    request->nbytes = nbytes;
    request->stream = gn_stream_retain(stream);
    request->shutdown_count = gni_shutdown_count();
    request->site = gni_history_is_on() ? gn_history_capture() : 0;
    if (stream->kind == GNI_STREAM_PER_THREAD) { /* for the worker it would be another stream */
        request_run(request);
        *out = request;
        return GN_OK;
    }
    gni_mutex_lock(&worker.mutex);
    gn_status status = worker_ensure();
    if (status == GN_OK) {
        gni_list_push_back(&worker.queue, &request->link);
        (void)pthread_cond_signal(&worker.arrived);
    }
    gni_mutex_unlock(&worker.mutex);
    if (status != GN_OK) {
        gn_stream_release(request->stream);
        gni_host_free(request);
        return status;
    }
    *out = request;
    return GN_OK;
}

/* In the worker, with the mutex, which is given up meanwhile: an out-of-memory handler waits, and nobody else will
 * serve the request. */
static gn_status request_serve(gn_memory_request *request)
{
    if (request->is_running)
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "a request cannot be waited for by a handler that it has called");
    request_take(request);
    gni_mutex_unlock(&worker.mutex);
    request_run(request);
    gni_mutex_lock(&worker.mutex);
    return GN_OK;
}

/* In the worker, a handler may ask until the request is done: then it is served here, or it never would be. */
gn_status gn_memory_request_query(gn_memory_request *request)
{
    GN_CHECK_ARGUMENT(request != NULL, "request is NULL");
    gn_status status = GN_OK;
    gni_mutex_lock(&worker.mutex);
    if (!request->is_done && is_worker && !request->is_running)
        status = request_serve(request);
    bool is_done = request->is_done;
    if (!is_done)
        status = worker_ensure();
    gni_mutex_unlock(&worker.mutex);
    return status == GN_OK && !is_done ? GN_ERROR_NOT_READY : status;
}

gn_status gn_memory_request_wait(gn_memory_request *request, void **pointer)
{
    GN_CHECK_ARGUMENT(request != NULL && pointer != NULL, "request and pointer must not be NULL");
    gni_mutex_lock(&worker.mutex);
    while (!request->is_done) {
        gn_status status = is_worker ? request_serve(request) : worker_ensure();
        if (status != GN_OK) {
            gni_mutex_unlock(&worker.mutex);
            return status;
        }
        if (!is_worker)
            (void)pthread_cond_wait(&worker.changed, &worker.mutex.native);
    }
    gn_status status = request->status;
    if (status == GN_OK) {
        request->is_taken = true;
        *pointer = request->pointer;
    }
    gni_mutex_unlock(&worker.mutex);
    return status == GN_OK ? GN_OK : gni_error(status, "%s", request->detail);
}

void gn_memory_request_release(gn_memory_request *request)
{
    if (request == NULL)
        return;
    gni_mutex_lock(&worker.mutex);
    request->is_released = true;
    bool is_done = request->is_done;
    gni_mutex_unlock(&worker.mutex);
    if (is_done)
        request_free(request);
}
