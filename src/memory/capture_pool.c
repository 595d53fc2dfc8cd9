/*
 * capture_pool.c: memory of captured graphs.
 *
 * A captured graph runs again and again with the addresses that were used while it was captured. So what
 * is allocated during a capture comes from a space of its own: blocks that are freed there are used again
 * by the same stream, in the order that the graph keeps, and by nobody else; nothing of it goes back to
 * the driver, and nothing is folded, before the space ends.
 */
#include "memory/cache.h"

#include "base/host.h"
#include "base/text.h"

struct gn_memory_pool {
    struct gni_space space; /* in pool->private_spaces */
    size_t begun_count;     /* streams that allocate from it now */
    bool is_abandoned;      /* its owner is gone: it ends with its last block, or a little later */
};

/* A stream that allocates from a private space. */
struct begun {
    struct gni_list link; /* in pool->begun */
    gn_memory_pool *graph;
    gn_stream *stream; /* retained */
    void *handle;
    const void *thread; /* that began it */
};

static struct begun *begun_find(struct gni_pool *pool, const gn_stream *stream)
{
    gni_assert(gni_pool_is_locked(pool));
    gni_list_each (link, &pool->begun) {
        struct begun *begun = gni_container_of(link, struct begun, link);
        bool is_thread_own = stream->kind == GNI_STREAM_PER_THREAD; /* one object, many streams */
        if ((begun->stream == stream ||
             (stream->handle != NULL && begun->handle == stream->handle)) &&
            (!is_thread_own || begun->thread == gni_thread_self()))
            return begun;
    }
    return NULL;
}

bool gni_pool_is_capturing(struct gni_pool *pool)
{
    gni_list_each (link, &pool->begun) {
        gn_stream *stream = gni_container_of(link, struct begun, link)->stream;
        bool is_capturing = false;
        if (stream->device->ops->stream_is_capturing(stream, &is_capturing) != GN_OK ||
            is_capturing)
            return true;
    }
    return false;
}

static gn_status space_create(struct gni_pool *pool, gn_memory_pool **out)
{
    gn_memory_pool *graph = gni_host_alloc(sizeof *graph);
    if (graph == NULL)
        return gni_error_host_memory(sizeof *graph);
    gni_space_init(&graph->space, pool, true);
    gni_list_push_back(&pool->private_spaces, &graph->space.link);
    *out = graph;
    return GN_OK;
}

gn_status gni_space_of_stream(struct gni_pool *pool, gn_stream *stream, struct gni_space **space)
{
    gni_assert(gni_pool_is_locked(pool));
    if (!gni_list_is_empty(&pool->begun)) {
        struct begun *begun = begun_find(pool, stream);
        if (begun != NULL) {
            *space = &begun->graph->space;
            return GN_OK;
        }
    }
    bool is_capturing = false;
    if (stream->kind == GNI_STREAM_FOREIGN || stream->kind == GNI_STREAM_PER_THREAD ||
        atomic_load_explicit(&stream->is_shared, memory_order_relaxed))
        GN_TRY(stream->device->ops->stream_is_capturing(stream, &is_capturing));
    if (!is_capturing) {
        *space = &pool->main;
        return GN_OK;
    }
    if (pool->capture == NULL) {
        gn_memory_pool *graph = NULL;
        GN_TRY(space_create(pool, &graph));
        pool->capture = &graph->space;
    }
    *space = pool->capture;
    return GN_OK;
}

static gn_memory_pool *graph_of(struct gni_space *space)
{
    return gni_container_of(space, gn_memory_pool, space);
}

/* Takes a space out and gives its memory back; it stays if the driver refuses. */
static gn_status space_destroy(struct gni_space *space)
{
    gni_assert(space->is_private);
    GN_TRY(gni_space_clear(space));
    if (space->pool->capture == space)
        space->pool->capture = NULL;
    gni_space_deinit(space);
    gni_list_remove(&space->link);
    gni_host_free(graph_of(space));
    return GN_OK;
}

void gni_pool_sweep_captures(struct gni_pool *pool)
{
    bool is_waited_for = false;
    gni_assert(gni_pool_is_locked(pool));
    gni_list_each (link, &pool->private_spaces) {
        gn_memory_pool *graph = graph_of(gni_container_of(link, struct gni_space, link));
        if (!graph->is_abandoned || graph->begun_count > 0 || graph->space.live_count > 0)
            continue;
        if (!is_waited_for &&
            gni_pool_synchronize(pool) != GN_OK) /* see gn_memory_pool_destroy() */
            return;
        is_waited_for = true;
        if (space_destroy(&graph->space) != GN_OK)
            return;
    }
}

void gni_pool_clear_captures(struct gni_pool *pool, gn_status *first)
{
    gni_assert(gni_pool_is_locked(pool));
    gni_list_each (link, &pool->begun) {
        struct begun *begun = gni_container_of(link, struct begun, link);
        begun->graph->begun_count--;
        gni_list_remove(&begun->link);
        gni_host_free(begun); /* its stream stays: who shuts down with a begun stream leaks it */
    }
    gni_list_each (link, &pool->private_spaces) {
        gn_status status = space_destroy(gni_container_of(link, struct gni_space, link));
        if (*first == GN_OK)
            *first = status;
    }
}

/* ---- the public functions ------------------------------------------------------------------- */

gn_status gn_memory_pool_create(gn_memory_manager *manager, gn_memory_pool **pool)
{
    GN_CHECK_ARGUMENT(manager != NULL && pool != NULL, "manager and pool must not be NULL");
    if (atomic_load(&manager->is_direct))
        return gni_error(GN_ERROR_UNSUPPORTED, "the policy direct has no pools");
    gni_pool_lock(manager->pool);
    gni_pool_sweep_captures(manager->pool);
    gn_status status = space_create(manager->pool, pool);
    gni_pool_unlock(manager->pool);
    return status;
}

gn_status gn_memory_pool_begin(gn_memory_pool *graph, gn_stream *stream)
{
    GN_CHECK_ARGUMENT(graph != NULL && stream != NULL, "pool and stream must not be NULL");
    struct gni_pool *pool = graph->space.pool;
    GN_TRY(gni_stream_check(stream, pool->device));
    struct begun *begun = gni_host_alloc(sizeof *begun);
    if (begun == NULL)
        return gni_error_host_memory(sizeof *begun);
    gni_pool_lock(pool);
    bool is_twice = begun_find(pool, stream) != NULL;
    if (!is_twice) {
        *begun = (struct begun){.graph = graph,
                                .stream = stream,
                                .handle = stream->handle,
                                .thread = gni_thread_self()};
        gni_list_push_back(&pool->begun, &begun->link);
        graph->begun_count++;
        /* The fast path must not be taken: not for this object, nor for a thread's current stream. */
        atomic_store(&stream->is_shared, true); /* for good: who captures it knows its handle */
        atomic_store(&stream->upper.memory_key, 0);
        uint64_t key;
        struct gni_heap *heap = stream->device->ops->stream_id(stream, &key) == GN_OK
                                    ? gni_map_find(&pool->main.heaps_by_key, key)
                                    : NULL;
        if (heap != NULL)
            gni_caches_forget(pool, heap);
        (void)gn_stream_retain(stream);
    }
    gni_pool_unlock(pool);
    if (is_twice) {
        gni_host_free(begun);
        return gni_error(GN_ERROR_INVALID_VALUE, "the stream allocates from a pool already");
    }
    return GN_OK;
}

gn_status gn_memory_pool_end(gn_memory_pool *graph, gn_stream *stream)
{
    GN_CHECK_ARGUMENT(graph != NULL && stream != NULL, "pool and stream must not be NULL");
    struct gni_pool *pool = graph->space.pool;
    gni_pool_lock(pool);
    struct begun *begun = begun_find(pool, stream);
    bool is_ours = begun != NULL && begun->graph == graph;
    gn_stream *held = NULL;
    if (is_ours) {
        held = begun->stream;
        gni_list_remove(&begun->link);
        graph->begun_count--;
        gni_host_free(begun);
    }
    gni_pool_unlock(pool);
    gn_stream_release(held);
    if (!is_ours)
        return gni_error(GN_ERROR_INVALID_VALUE, "the stream does not allocate from this pool");
    return GN_OK;
}

gn_status gn_memory_pool_destroy(gn_memory_pool *graph)
{
    GN_CHECK_ARGUMENT(graph != NULL, "pool is NULL");
    struct gni_pool *pool = graph->space.pool;
    gni_pool_lock(pool);
    gn_status status = GN_OK;
    if (graph->begun_count > 0 || graph->space.live_count > 0)
        status = gni_error(GN_ERROR_INVALID_VALUE,
                           "the pool has %zu living block%s, and %zu stream%s allocate%s from it",
                           graph->space.live_count, gni_plural(graph->space.live_count),
                           graph->begun_count, gni_plural(graph->begun_count),
                           graph->begun_count == 1 ? "s" : "");
    if (status == GN_OK)
        status = gni_pool_synchronize(pool); /* the graph may still be running */
    if (status == GN_OK)
        status = space_destroy(&graph->space);
    gni_pool_unlock(pool);
    return status;
}

void gn_memory_pool_abandon(gn_memory_pool *graph)
{
    if (graph == NULL)
        return;
    struct gni_pool *pool = graph->space.pool;
    gni_pool_lock(pool);
    graph->is_abandoned = true;
    gni_pool_sweep_captures(pool);
    gni_pool_unlock(pool);
}
