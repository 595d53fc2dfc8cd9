/*
 * graph.c: stream capture, and graphs that are made by it and launched.
 *
 * While a stream is captured its ops become nodes of a graph instead of being queued. A stream joins a
 * capture by waiting for an event that was recorded in it, and must be joined back before the end. A
 * node depends on earlier nodes only, so the order of nodes is an order in which they can run.
 *
 * What spoils a capture was read off a real driver (580): see tests/sim/conformance_capture.c.
 */
#include "sim.h"

static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* ---- sets of nodes -------------------------------------------------------------------------- */

void sim_nodes_deinit(struct sim_nodes *nodes)
{
    gni_host_free(nodes->places);
    *nodes = (struct sim_nodes){.places = NULL};
}

static bool nodes_add(struct sim_nodes *nodes, size_t place)
{
    for (size_t i = 0; i < nodes->count; i++)
        if (nodes->places[i] == place)
            return true;
    size_t *grown = gni_host_realloc(nodes->places, (nodes->count + 1) * sizeof *grown);
    if (grown == NULL)
        return false;
    nodes->places = grown;
    grown[nodes->count++] = place;
    return true;
}

static bool nodes_join(struct sim_nodes *to, const struct sim_nodes *from)
{
    for (size_t i = 0; i < from->count; i++)
        if (!nodes_add(to, from->places[i]))
            return false;
    return true;
}

/* ---- spoiling ------------------------------------------------------------------------------- */

static void capture_spoil(const struct CUgraph_st *graph)
{
    gni_list_each (link, &sim.streams) {
        struct CUstream_st *stream = gni_container_of(link, struct CUstream_st, link);
        if (stream->capture == graph)
            stream->is_invalidated = true;
    }
}

CUresult sim_capture_refuse(struct CUstream_st *stream)
{
    capture_spoil(stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* By the mode of the capture and that of the thread that calls. */
static bool capture_forbids(const struct CUstream_st *stream)
{
    if (stream->capture == NULL || !stream->is_origin ||
        stream->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
        thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    bool is_own = pthread_equal(stream->capture_thread, pthread_self());
    return is_own || (stream->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                      thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
}

bool sim_capture_allows_unsafe(void)
{
    bool is_allowed = true;
    gni_list_each (link, &sim.streams) {
        struct CUstream_st *stream = gni_container_of(link, struct CUstream_st, link);
        if (capture_forbids(stream)) {
            capture_spoil(stream->capture);
            is_allowed = false;
        }
    }
    return is_allowed;
}

CUresult sim_capture_check_context(CUdevice device)
{
    CUresult result = CUDA_SUCCESS;
    gni_list_each (link, &sim.streams) {
        struct CUstream_st *stream = gni_container_of(link, struct CUstream_st, link);
        if (stream->capture != NULL && stream->device == device)
            result = sim_capture_refuse(stream);
    }
    return result;
}

struct CUstream_st *sim_capture_find_implicit(const struct CUstream_st *stream)
{
    gni_list_each (link, &sim.streams) {
        struct CUstream_st *other = gni_container_of(link, struct CUstream_st, link);
        if (stream->is_legacy && other->capture != NULL && other->is_blocking &&
            other->device == stream->device &&
            other->capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED)
            return other;
    }
    return NULL;
}

CUresult sim_capture_check_legacy(const struct CUstream_st *stream)
{
    struct CUstream_st *other = sim_capture_find_implicit(stream);
    if (other == NULL)
        return CUDA_SUCCESS;
    capture_spoil(other->capture);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

/* ---- capturing ------------------------------------------------------------------------------ */

static struct CUgraph_st *graph_make(void)
{
    struct CUgraph_st *graph = gni_host_alloc(sizeof *graph);
    if (graph != NULL) {
        graph->references = 1;
        gni_list_push_back(&sim.graphs, &graph->link);
    }
    return graph;
}

static void node_free(struct sim_op *node)
{
    sim_op_deinit(node);
    gni_host_free(node);
}

static void graph_free(struct CUgraph_st *graph)
{
    for (size_t i = 0; i < graph->count; i++)
        node_free(graph->nodes[i]);
    gni_host_free(graph->nodes);
    gni_list_remove(&graph->link);
    gni_host_free(graph);
}

static bool graph_add(struct CUgraph_st *graph, struct sim_op *node)
{
    if (graph->count == graph->capacity) {
        size_t capacity = graph->capacity == 0 ? 16 : graph->capacity * 2;
        struct sim_op **grown = gni_host_realloc(graph->nodes, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        graph->nodes = grown;
        graph->capacity = capacity;
    }
    graph->nodes[graph->count++] = node;
    return true;
}

CUresult sim_capture_add(struct CUstream_st *stream, const struct sim_op *model)
{
    struct CUgraph_st *graph = stream->capture;
    struct sim_op *node = stream->is_invalidated ? NULL : gni_host_alloc(sizeof *node);
    struct sim_op copy = *model;
    if (node == NULL) {
        sim_op_deinit(&copy);
        return stream->is_invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                      : CUDA_ERROR_OUT_OF_MEMORY;
    }
    *node = copy;
    node->after = stream->nodes; /* handed over */
    stream->nodes = (struct sim_nodes){.places = NULL};
    if (!graph_add(graph, node) || !nodes_add(&stream->nodes, graph->count - 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}

CUresult sim_capture_record(struct CUstream_st *stream, struct CUevent_st *event)
{
    if (stream->is_invalidated)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    sim_record_release(event->record);
    event->record = NULL;
    event->was_captured = false;
    sim_nodes_deinit(&event->nodes);
    event->capture = stream->capture;
    return nodes_join(&event->nodes, &stream->nodes) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_capture_wait(struct CUstream_st *stream, struct CUevent_st *event)
{
    struct CUgraph_st *graph = event->capture;
    if (stream->capture != NULL && stream->is_invalidated)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (graph == NULL || !graph->is_captured) {
        capture_spoil(stream->capture); /* the graph cannot wait for work outside of it */
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (stream->capture != NULL && stream->capture != graph) {
        capture_spoil(stream->capture);
        capture_spoil(graph);
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (stream->is_legacy)
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    stream->capture = graph;
    return nodes_join(&stream->nodes, &event->nodes) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    struct CUstream_st *stream = sim_stream_get(call.context, handle);
    SIM_REQUIRE(stream != NULL, CUDA_ERROR_INVALID_HANDLE);
    SIM_REQUIRE((unsigned)mode <= CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE(!stream->is_legacy, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    SIM_REQUIRE(stream->capture == NULL, CUDA_ERROR_ILLEGAL_STATE);
    stream->capture = graph_make();
    SIM_REQUIRE(stream->capture != NULL, CUDA_ERROR_OUT_OF_MEMORY);
    stream->capture->is_captured = true;
    stream->is_origin = true;
    stream->is_invalidated = false;
    stream->capture_mode = mode;
    stream->capture_thread = pthread_self();
    return CUDA_SUCCESS;
}

/* Marks every node that one of the set depends on. */
static void nodes_mark(const struct CUgraph_st *graph, const struct sim_nodes *nodes, bool *marks)
{
    for (size_t i = 0; i < nodes->count; i++) {
        size_t place = nodes->places[i];
        if (!marks[place]) {
            marks[place] = true;
            nodes_mark(graph, &graph->nodes[place]->after, marks);
        }
    }
}

/* Does everything that was captured come before the origin's end? */
static bool capture_is_joined(const struct CUgraph_st *graph, const struct CUstream_st *origin)
{
    bool *marks = gni_host_alloc(graph->count + 1);
    if (marks == NULL)
        return false;
    nodes_mark(graph, &origin->nodes, marks);
    bool is_joined = true;
    for (size_t i = 0; i < graph->count; i++)
        is_joined = is_joined && marks[i];
    gni_host_free(marks);
    return is_joined;
}

/* Everything that was part of the capture is ordinary again. */
static void capture_end(struct CUgraph_st *graph)
{
    graph->is_captured = false;
    gni_list_each (link, &sim.streams) {
        struct CUstream_st *stream = gni_container_of(link, struct CUstream_st, link);
        if (stream->capture == graph) {
            stream->capture = NULL;
            stream->is_origin = stream->is_invalidated = false;
            sim_nodes_deinit(&stream->nodes);
        }
    }
    gni_list_each (link, &sim.events) {
        struct CUevent_st *event = gni_container_of(link, struct CUevent_st, link);
        if (event->capture == graph) {
            event->capture = NULL;
            event->was_captured = true;
            sim_nodes_deinit(&event->nodes);
        }
    }
}

void sim_capture_abandon(struct CUstream_st *stream)
{
    struct CUgraph_st *graph = stream->capture;
    if (stream->is_origin) {
        capture_end(graph);
        graph_free(graph);
    } else {
        capture_spoil(graph);
        stream->capture = NULL;
    }
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    struct CUstream_st *stream = sim_stream_get(call.context, handle);
    SIM_REQUIRE(stream != NULL, CUDA_ERROR_INVALID_HANDLE);
    SIM_REQUIRE(graph != NULL, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE(stream->capture != NULL, CUDA_ERROR_ILLEGAL_STATE);
    SIM_REQUIRE(stream->is_origin, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    struct CUgraph_st *made = stream->capture;
    bool is_own = stream->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
                  pthread_equal(stream->capture_thread, pthread_self());
    /* An end in the wrong thread is an end all the same. */
    CUresult result = !is_own                           ? CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD
                      : stream->is_invalidated          ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                      : capture_is_joined(made, stream) ? CUDA_SUCCESS
                                                        : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    capture_end(made);
    *graph = result == CUDA_SUCCESS ? made : NULL;
    if (result != CUDA_SUCCESS)
        graph_free(made);
    return result;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    SIM_CALL(SIM_NEED_INIT);
    SIM_REQUIRE(mode != NULL, CUDA_ERROR_INVALID_VALUE); /* any number is taken, as on a GPU */
    CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

/* ---- graphs --------------------------------------------------------------------------------- */

static bool graph_exists(const struct CUgraph_st *graph)
{
    gni_list_each (link, &sim.graphs) {
        if (gni_container_of(link, struct CUgraph_st, link) == graph)
            return !graph->is_captured;
    }
    return false;
}

static bool exec_exists(const struct CUgraphExec_st *exec)
{
    gni_list_each (link, &sim.execs) {
        if (gni_container_of(link, struct CUgraphExec_st, link) == exec)
            return true;
    }
    return false;
}

/* NULL is a copy of NULL. */
static bool bytes_copy(const void *bytes, size_t nbytes, void **copy)
{
    *copy = bytes != NULL ? gni_host_alloc(nbytes) : NULL;
    if (*copy != NULL)
        memcpy(*copy, bytes, nbytes);
    return *copy != NULL || bytes == NULL;
}

static struct sim_op *node_copy(const struct sim_op *from)
{
    struct sim_op *node = gni_host_alloc(sizeof *node);
    if (node == NULL)
        return NULL;
    *node = *from;
    node->after = (struct sim_nodes){.places = NULL};
    size_t nbytes = from->parameters != NULL ? sim_function_parameters_bytes(from->function) : 0;
    bool is_made = bytes_copy(from->parameters, nbytes, &node->parameters);
    is_made = bytes_copy(from->staged, from->nbytes, &node->staged) && is_made;
    if (is_made && nodes_join(&node->after, &from->after))
        return node;
    node_free(node);
    return NULL;
}

/* A graph of its own for an executable one: the original may be destroyed, or run unchanged. */
static struct CUgraph_st *graph_copy(const struct CUgraph_st *from)
{
    struct CUgraph_st *to = graph_make();
    for (size_t i = 0; to != NULL && i < from->count; i++) {
        struct sim_op *node = node_copy(from->nodes[i]);
        if (node != NULL && graph_add(to, node))
            continue;
        if (node != NULL)
            node_free(node);
        graph_free(to);
        return NULL;
    }
    return to;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    SIM_REQUIRE(exec != NULL && flags == 0, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE(graph_exists(graph), CUDA_ERROR_INVALID_VALUE);
    struct CUgraphExec_st *made = gni_host_alloc(sizeof *made);
    SIM_REQUIRE(made != NULL, CUDA_ERROR_OUT_OF_MEMORY);
    made->origin = graph;
    made->graph = graph_copy(graph);
    if (made->graph == NULL) {
        gni_host_free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    gni_list_push_back(&sim.execs, &made->link);
    *exec = made;
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    struct CUstream_st *stream = sim_stream_get(call.context, handle);
    SIM_REQUIRE(stream != NULL, CUDA_ERROR_INVALID_HANDLE);
    SIM_REQUIRE(exec_exists(exec), CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE(stream->capture == NULL, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    struct sim_op op = {.kind = SIM_OP_GRAPH, .graph = exec->graph};
    exec->graph->references++; /* before it may run */
    CUresult result = sim_submit(stream, &op);
    if (result != CUDA_SUCCESS)
        exec->graph->references--;
    return result;
}

static bool node_is_ready(const struct CUgraph_st *graph, size_t place, const bool *ran)
{
    const struct sim_nodes *after = &graph->nodes[place]->after;
    bool is_ready = !ran[place];
    for (size_t i = 0; is_ready && i < after->count; i++)
        is_ready = ran[after->places[i]];
    return is_ready;
}

/* Its nodes run each with the clock of the launch, in their order; unless the schedule is eager, the last one that may
 * runs first, so that one that was to wait for another and does not is seen. */
void sim_graph_run(const struct sim_op *launch)
{
    const struct CUgraph_st *graph = launch->graph;
    bool *ran = sim.schedule != SIM_EAGER ? gni_host_alloc(graph->count + 1) : NULL;
    for (size_t i = 0; i < graph->count; i++) {
        size_t place = i;
        if (ran != NULL) {
            place = graph->count - 1;
            while (!node_is_ready(graph, place, ran))
                place--; /* to the first that has not run, at most: it waits for earlier ones only */
            ran[place] = true;
        }
        struct sim_op node = *graph->nodes[place];
        node.stream = launch->stream;
        node.number = launch->number;
        node.clock = launch->clock;
        sim_op_run(&node);
    }
    gni_host_free(ran);
}

void sim_graph_release(struct CUgraph_st *graph)
{
    if (--graph->references == 0)
        graph_free(graph);
}

CUresult cuGraphDestroy(CUgraph graph)
{
    SIM_CALL(SIM_NEED_INIT);
    SIM_REQUIRE(graph_exists(graph), CUDA_ERROR_INVALID_VALUE);
    graph_free(graph);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    SIM_CALL(SIM_NEED_INIT);
    SIM_REQUIRE(exec_exists(exec), CUDA_ERROR_INVALID_VALUE);
    sim_graph_release(exec->graph);
    gni_list_remove(&exec->link);
    gni_host_free(exec);
    return CUDA_SUCCESS;
}

/* ---- graphs that are made by hand: kernels ---------------------------------------------------- */

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
    SIM_CALL(SIM_NEED_INIT);
    SIM_REQUIRE(graph != NULL && flags == 0, CUDA_ERROR_INVALID_VALUE);
    *graph = graph_make();
    return *graph != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The place of a node, or the number of nodes. */
static size_t node_find(const struct CUgraph_st *graph, CUgraphNode node)
{
    size_t place = 0;
    while (place < graph->count && graph->nodes[place] != (struct sim_op *)(void *)node)
        place++;
    return place;
}

static CUresult node_init(struct sim_op *op, const CUDA_KERNEL_NODE_PARAMS_v2 *parameters)
{
    SIM_REQUIRE(parameters != NULL, CUDA_ERROR_INVALID_VALUE);
    CUlaunchConfig config = {.gridDimX = parameters->gridDimX,
                             .gridDimY = parameters->gridDimY,
                             .gridDimZ = parameters->gridDimZ,
                             .blockDimX = parameters->blockDimX,
                             .blockDimY = parameters->blockDimY,
                             .blockDimZ = parameters->blockDimZ,
                             .sharedMemBytes = parameters->sharedMemBytes};
    return sim_kernel_op_init(op, parameters->func, &config, parameters->kernelParams,
                              parameters->extra);
}

CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                              size_t count, const CUDA_KERNEL_NODE_PARAMS_v2 *parameters)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    SIM_REQUIRE(node != NULL && graph_exists(graph), CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE(count == 0 || dependencies != NULL, CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < count; i++)
        SIM_REQUIRE(node_find(graph, dependencies[i]) < graph->count, CUDA_ERROR_INVALID_VALUE);
    struct sim_op model;
    CUresult result = node_init(&model, parameters);
    SIM_REQUIRE(result == CUDA_SUCCESS, result);
    struct sim_op *made = gni_host_alloc(sizeof *made);
    bool is_made = made != NULL;
    for (size_t i = 0; is_made && i < count; i++)
        is_made = nodes_add(&model.after, node_find(graph, dependencies[i]));
    if (is_made) {
        *made = model;
        is_made = graph_add(graph, made);
    }
    if (!is_made) {
        sim_op_deinit(&model);
        gni_host_free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *node = (CUgraphNode)(void *)made;
    return CUDA_SUCCESS;
}

/* A node waits for earlier ones only: see above. */
CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                const CUgraphEdgeData *edges, size_t count)
{
    SIM_CALL(SIM_NEED_INIT);
    SIM_REQUIRE(graph_exists(graph), CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE(count == 0 || (from != NULL && to != NULL), CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < count; i++) {
        size_t first = node_find(graph, from[i]), second = node_find(graph, to[i]);
        SIM_REQUIRE(second < graph->count && first < graph->count, CUDA_ERROR_INVALID_VALUE);
        SIM_REQUIRE(first < second, CUDA_ERROR_NOT_SUPPORTED);
        struct sim_op *node = graph->nodes[second];
        bool is_early = edges != NULL && edges[i].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
        bool is_known = edges == NULL || (edges[i].to_port == 0 && edges[i].from_port == is_early &&
                                          edges[i].type == (unsigned char)is_early);
        SIM_REQUIRE(is_known, CUDA_ERROR_INVALID_VALUE);
        SIM_REQUIRE(nodes_add(&node->after, first), CUDA_ERROR_OUT_OF_MEMORY);
        node->is_early = node->is_early || is_early;
    }
    return CUDA_SUCCESS;
}

/* Launches that have not run keep what they were launched with. */
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v2 *parameters)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    SIM_REQUIRE(exec_exists(exec) && graph_exists(exec->origin), CUDA_ERROR_INVALID_VALUE);
    size_t place = node_find(exec->origin, node);
    SIM_REQUIRE(place < exec->graph->count && exec->graph->nodes[place]->kind == SIM_OP_KERNEL,
                CUDA_ERROR_INVALID_VALUE);
    struct sim_op model;
    CUresult result = node_init(&model, parameters);
    SIM_REQUIRE(result == CUDA_SUCCESS, result);
    if (exec->graph->references > 1) {
        struct CUgraph_st *changed = graph_copy(exec->graph);
        if (changed == NULL) {
            sim_op_deinit(&model);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        sim_graph_release(exec->graph);
        exec->graph = changed;
    }
    struct sim_op *old = exec->graph->nodes[place];
    model.is_early = old->is_early;
    model.after = old->after; /* handed over */
    old->after = (struct sim_nodes){.places = NULL};
    sim_op_deinit(old);
    *old = model;
    return CUDA_SUCCESS;
}
