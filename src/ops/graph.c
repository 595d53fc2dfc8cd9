/*
 * graph.c: graphs of captured operations.
 *
 *     gn_graph ----> gni_graph      the driver's, ready to run
 *              ----> gni_capture    the storage that it uses: src/tensor/graph_capture.c
 *              ----> gn_graph_pool  the memory that it was captured with; shared by graphs
 *
 *   1. EMPTY -> begin -> CAPTURING -> end -> READY; reset, and an end that fails, lead back to EMPTY.
 *   2. While CAPTURING, the stream allocates from the pool, notes what it uses, and is captured by the driver: begun
 *      in this order, and ended in the reverse one.
 *   3. A pool is let go after the driver's graph is destroyed, and that after its replays are done.
 *   4. Graphs with one pool use the same memory for different things: their replays wait for each other.
 *
 * A graph is used by one thread at a time, which its mutex sees to. In a forked child a mutex may be held for ever, and
 * there is nothing that it could guard: it is not waited for.
 */
#include "genesis/graph.h"

#include "base/host.h"
#include "base/thread.h"
#include "genesis/ops.h"
#include "memory/manager.h"
#include "ops/recorder.h"
#include "tensor/graph_capture.h"
#include "tensor/tensor.h"

struct gn_graph_pool {
    atomic_int references;
    gn_device *device;
    gn_memory_pool *memory;
    uint64_t shutdown_count; /* when it was made: gn_shutdown() takes the memory away */
    struct gni_mutex mutex;  /* guards what follows */
    struct gni_user last;    /* the stream that replayed last; or none */
};

enum state {
    EMPTY,
    CAPTURING,
    READY,
};

struct gn_graph {
    gn_device *device;
    struct gni_mutex mutex;
    enum state state;
    gn_stream *stream;           /* CAPTURING: retained */
    gn_graph_pool *pool;         /* not EMPTY: retained */
    struct gni_capture *capture; /* not EMPTY */
    struct gni_graph work;       /* READY */
    uint64_t shutdown_count;     /* when its capture began */
};

static gn_status mutex_take(gn_device *device, struct gni_mutex *mutex)
{
    gn_status status = device->ops->check(device);
    if (status == GN_ERROR_FORKED)
        return status;
    gni_mutex_lock(mutex);
    return GN_OK;
}

static void mutex_end(gn_device *device, struct gni_mutex *mutex)
{
    if (device->ops->check(device) != GN_ERROR_FORKED)
        gni_mutex_deinit(mutex);
}

/* ---- pools ------------------------------------------------------------------------------------ */

/* The policy may change at any time: without one that keeps memory, what a graph uses would go back to the driver. */
static gn_status policy_check(const gn_memory_manager *manager)
{
    if (!atomic_load(&manager->is_direct))
        return GN_OK;
    return gni_error(GN_ERROR_UNSUPPORTED,
                     "graphs need memory that is kept, and the policy of %s is direct",
                     gni_device_label(gn_memory_manager_get_device(manager)).text);
}

gn_status gn_graph_pool_create(gn_device *device, gn_graph_pool **pool)
{
    GN_CHECK_ARGUMENT(device != NULL && pool != NULL, "device and pool must not be NULL");
    if (device->ops->graph_begin == NULL)
        return gni_error(GN_ERROR_UNSUPPORTED, "%s has no graphs", gni_device_label(device).text);
    gn_memory_manager *manager;
    GN_TRY(gn_memory_manager_get(device, &manager));
    GN_TRY(policy_check(manager));
    gn_graph_pool *made = gni_host_alloc(sizeof *made);
    if (made == NULL)
        return gni_error_host_memory(sizeof *made);
    gn_status status = gn_memory_pool_create(manager, &made->memory);
    if (status != GN_OK) {
        gni_host_free(made);
        return status;
    }
    atomic_init(&made->references, 1);
    made->device = device;
    made->shutdown_count = gni_shutdown_count();
    gni_mutex_init(&made->mutex);
    *pool = made;
    return GN_OK;
}

gn_graph_pool *gn_graph_pool_retain(gn_graph_pool *pool)
{
    atomic_fetch_add_explicit(&pool->references, 1, memory_order_relaxed);
    return pool;
}

void gn_graph_pool_release(gn_graph_pool *pool)
{
    if (pool == NULL || atomic_fetch_sub_explicit(&pool->references, 1, memory_order_acq_rel) != 1)
        return;
    if (pool->shutdown_count == gni_shutdown_count())
        gn_memory_pool_abandon(pool->memory);
    gn_stream_release(pool->last.stream);
    mutex_end(pool->device, &pool->mutex);
    gni_host_free(pool);
}

/* With the pool's mutex: the stream is the last one to replay, after the one before. */
static gn_status pool_follow(gn_graph_pool *pool, gn_stream *stream)
{
    uint64_t id;
    GN_TRY(gn_stream_get_id(stream, &id));
    if (pool->last.stream != NULL && pool->last.id == id)
        return GN_OK;
    if (pool->last.stream != NULL)
        GN_TRY(gni_stream_join(stream, &pool->last));
    gn_stream_release(pool->last.stream);
    pool->last = (struct gni_user){gn_stream_retain(stream), id};
    return GN_OK;
}

/* ---- beginning and end ------------------------------------------------------------------------ */

gn_status gn_graph_create(gn_device *device, gn_graph **graph)
{
    GN_CHECK_ARGUMENT(device != NULL && graph != NULL, "device and graph must not be NULL");
    if (device->ops->graph_begin == NULL)
        return gni_error(GN_ERROR_UNSUPPORTED, "%s has no graphs", gni_device_label(device).text);
    gn_graph *made = gni_host_alloc(sizeof *made);
    if (made == NULL)
        return gni_error_host_memory(sizeof *made);
    made->device = device;
    gni_mutex_init(&made->mutex);
    atomic_fetch_add(&device->object_count, 1);
    *graph = made;
    return GN_OK;
}

gn_device *gn_graph_get_device(const gn_graph *graph)
{
    return graph->device;
}

gn_graph_pool *gn_graph_get_pool(const gn_graph *graph)
{
    return graph->pool;
}

/* The graph is EMPTY, whatever it was but CAPTURING. */
static void graph_clear(gn_graph *graph)
{
    graph->device->ops->graph_close(&graph->work);
    gni_capture_destroy(graph->capture);
    gn_graph_pool_release(graph->pool);
    graph->capture = NULL;
    graph->pool = NULL;
    graph->state = EMPTY;
}

/* CAPTURING no more: 2. The stream is free, and the graph's work is there if that went well. */
static gn_status capture_end(gn_graph *graph)
{
    gn_stream *stream = graph->stream;
    gn_status status = graph->device->ops->graph_end(stream, &graph->work);
    gni_capture_close(graph->capture, stream);
    if (graph->shutdown_count == gni_shutdown_count()) {
        gn_status ended = gn_memory_pool_end(graph->pool->memory, stream);
        if (status == GN_OK)
            status = ended;
    }
    graph->stream = NULL;
    graph->state = READY;
    gn_stream_release(stream);
    return status;
}

/* Waits for all replays: 3. A stream that is captured was waited for when that began. */
static gn_status pool_wait(gn_graph_pool *pool)
{
    gn_status status = GN_OK;
    GN_TRY(mutex_take(pool->device, &pool->mutex));
    gn_stream *last = pool->last.stream;
    if (last != NULL && atomic_load(&last->upper.capture) == NULL)
        status = gn_stream_synchronize(last);
    gni_mutex_unlock(&pool->mutex);
    return status;
}

static gn_status graph_reset(gn_graph *graph)
{
    gn_status status = GN_OK;
    if (graph->state == CAPTURING)
        (void)capture_end(graph); /* that a capture was spoilt is why it is given up */
    else if (graph->state == READY)
        status = pool_wait(graph->pool);
    if (graph->state != EMPTY)
        graph_clear(graph);
    return status;
}

gn_status gn_graph_reset(gn_graph *graph)
{
    GN_CHECK_ARGUMENT(graph != NULL, "graph is NULL");
    GN_TRY(mutex_take(graph->device, &graph->mutex));
    gn_status status = graph_reset(graph);
    gni_mutex_unlock(&graph->mutex);
    return status;
}

void gn_graph_destroy(gn_graph *graph)
{
    if (graph == NULL)
        return;
    (void)graph_reset(graph); /* nobody else has it; a device that is lost was reported elsewhere */
    mutex_end(graph->device, &graph->mutex);
    atomic_fetch_sub(&graph->device->object_count, 1);
    gni_host_free(graph);
}

/* ---- capturing -------------------------------------------------------------------------------- */

static gn_status stream_check(const gn_graph *graph, const gn_stream *stream)
{
    if (stream->device != graph->device)
        return gni_error(GN_ERROR_INVALID_VALUE, "the graph is for %s, and the stream for %s",
                         gni_device_label(graph->device).text,
                         gni_device_label(stream->device).text);
    if (stream->kind == GNI_STREAM_DEFAULT || stream->kind == GNI_STREAM_PER_THREAD)
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "a default stream cannot be captured: take another");
    return GN_OK;
}

/* The steps of 2; all or nothing. */
static gn_status capture_begin(gn_graph *graph, gn_stream *stream, gn_graph_pool *pool)
{
    struct gni_capture *capture;
    GN_TRY(gni_capture_open(stream, &capture));
    gn_status status = gn_memory_pool_begin(pool->memory, stream);
    if (status == GN_OK) {
        status = graph->device->ops->graph_begin(stream);
        gn_status undone = status != GN_OK ? gn_memory_pool_end(pool->memory, stream) : GN_OK;
        gni_assert(undone == GN_OK); /* it was begun */
        (void)undone;
    }
    if (status != GN_OK) {
        gni_capture_close(capture, stream);
        gni_capture_destroy(capture);
        return status;
    }
    graph->capture = capture;
    graph->shutdown_count = gni_shutdown_count();
    graph->stream = gn_stream_retain(stream);
    graph->state = CAPTURING;
    return GN_OK;
}

static gn_status graph_begin(gn_graph *graph, gn_stream *stream, gn_graph_pool *pool)
{
    uint64_t id; /* which the driver does not tell during a capture */
    if (graph->state != EMPTY)
        return gni_error(GN_ERROR_INVALID_VALUE, graph->state == CAPTURING
                                                     ? "the graph is being captured already"
                                                     : "the graph was captured; reset it first");
    GN_TRY(stream_check(graph, stream));
    GN_TRY(gni_capture_refuse(stream, "the stream cannot be captured again"));
    gn_memory_manager *manager;
    GN_TRY(gn_memory_manager_get(graph->device, &manager));
    GN_TRY(policy_check(manager));
    GN_TRY(gn_stream_get_id(stream, &id));
    GN_TRY(gn_flush());
    GN_TRY(gni_resting_flush_device(graph->device));
    GN_TRY(gn_device_synchronize(graph->device));
    if (pool != NULL)
        graph->pool = gn_graph_pool_retain(pool);
    else
        GN_TRY(gn_graph_pool_create(graph->device, &graph->pool));
    gn_status status = capture_begin(graph, stream, graph->pool);
    if (status != GN_OK)
        graph_clear(graph);
    return status;
}

gn_status gn_graph_begin(gn_graph *graph, gn_stream *stream, gn_graph_pool *pool)
{
    GN_CHECK_ARGUMENT(graph != NULL && stream != NULL, "graph and stream must not be NULL");
    GN_CHECK_ARGUMENT(pool == NULL || pool->device == graph->device,
                      "the pool belongs to another device");
    GN_TRY(mutex_take(graph->device, &graph->mutex));
    gn_status status = graph_begin(graph, stream, pool);
    gni_mutex_unlock(&graph->mutex);
    return status;
}

static gn_status graph_end(gn_graph *graph)
{
    if (graph->state != CAPTURING)
        return gni_error(GN_ERROR_INVALID_VALUE, "the graph is not being captured");
    gn_status status = gn_flush();
    if (status == GN_OK)
        status = gni_resting_flush_stream(graph->stream);
    gn_status ended = capture_end(graph);
    if (status == GN_OK)
        status = ended;
    if (status != GN_OK)
        graph_clear(graph);
    return status;
}

gn_status gn_graph_end(gn_graph *graph)
{
    GN_CHECK_ARGUMENT(graph != NULL, "graph is NULL");
    GN_TRY(mutex_take(graph->device, &graph->mutex));
    gn_status status = graph_end(graph);
    gni_mutex_unlock(&graph->mutex);
    return status;
}

/* ---- replaying -------------------------------------------------------------------------------- */

static gn_status graph_replay(gn_graph *graph, gn_stream *stream)
{
    if (graph->state != READY)
        return gni_error(GN_ERROR_INVALID_VALUE, graph->state == CAPTURING
                                                     ? "the graph is still being captured"
                                                     : "the graph is empty: capture it first");
    if (stream->device != graph->device)
        return gni_error(GN_ERROR_INVALID_VALUE, "the graph is for %s, and the stream for %s",
                         gni_device_label(graph->device).text,
                         gni_device_label(stream->device).text);
    GN_TRY(gni_capture_refuse(stream, "a graph cannot be replayed"));
    GN_TRY(gn_flush()); /* what waits may read what the graph writes */
    GN_TRY(gni_resting_flush_capture(graph->capture));
    gni_mutex_lock(&graph->pool->mutex);
    gn_status status = pool_follow(graph->pool, stream);
    if (status == GN_OK)
        status = gni_capture_order(graph->capture, stream);
    if (status == GN_OK)
        status = graph->device->ops->graph_launch(&graph->work, stream);
    gni_mutex_unlock(&graph->pool->mutex);
    return status;
}

gn_status gn_graph_replay(gn_graph *graph, gn_stream *stream)
{
    GN_CHECK_ARGUMENT(graph != NULL && stream != NULL, "graph and stream must not be NULL");
    GN_TRY(mutex_take(graph->device, &graph->mutex));
    gn_status status = graph_replay(graph, stream);
    gni_mutex_unlock(&graph->mutex);
    return status;
}
