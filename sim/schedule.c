/*
 * schedule.c: queues of ops, and which op runs when (S1 to S5 in sim.h).
 *
 * Whatever waits for an op first runs what the op itself waits for. Dependencies point to lower numbers
 * only, so this ends. Lazy runs nothing else: work that nobody waits for stays behind for as long as it
 * can, which turns a missing dependency into wrong bytes.
 */
#include "sim.h"

uint64_t sim_random(void)
{
    uint64_t z = (sim.random += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* ---- queues --------------------------------------------------------------------------------- */

static struct sim_op *stream_first(const struct CUstream_st *stream)
{
    return gni_list_is_empty(&stream->ops)
               ? NULL
               : gni_container_of(stream->ops.next, struct sim_op, link);
}

bool sim_is_past(const struct CUstream_st *stream, uint64_t number)
{
    const struct sim_op *first = stream_first(stream);
    return first == NULL || first->number > number;
}

/* Must work of one stream wait for older work of the other? S3. */
static bool is_joined(const struct CUstream_st *one, const struct CUstream_st *other)
{
    return one != other && one->device == other->device &&
           ((one->is_legacy && other->is_blocking) || (one->is_blocking && other->is_legacy));
}

bool sim_is_past_joined(const struct CUstream_st *stream, uint64_t number)
{
    if (!sim_is_past(stream, number))
        return false;
    gni_list_each (link, &sim.streams) {
        const struct CUstream_st *other = gni_container_of(link, struct CUstream_st, link);
        if (stream->is_legacy && is_joined(stream, other) && !sim_is_past(other, number))
            return false;
    }
    return true;
}

void sim_op_deinit(struct sim_op *op)
{
    sim_clock_deinit(&op->clock);
    gni_host_free(op->parameters);
    gni_host_free(op->staged);
    sim_record_release(op->record);
    sim_nodes_deinit(&op->after);
}

static bool overlaps(uintptr_t a, size_t a_bytes, uintptr_t b, size_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

/* Does an op use a stretch of memory, as far as can be told before it runs? */
static bool op_touches(const struct sim_op *op, uintptr_t address, size_t nbytes)
{
    switch (op->kind) {
    case SIM_OP_COPY:
        if (op->staged == NULL && overlaps(op->source, op->nbytes, address, nbytes))
            return true;
        return overlaps(op->destination, op->nbytes, address, nbytes);
    case SIM_OP_FILL:
        return overlaps(op->destination, op->nbytes, address, nbytes);
    case SIM_OP_KERNEL:
        return sim_kernel_is_given(op, address, nbytes);
    case SIM_OP_GRAPH:
        for (size_t i = 0; i < op->graph->count; i++)
            if (op_touches(op->graph->nodes[i], address, nbytes))
                return true;
        return false;
    default:
        return false;
    }
}

const struct sim_op *sim_pending_find(uintptr_t address, size_t nbytes)
{
    gni_list_each (link, &sim.streams) {
        const struct CUstream_st *stream = gni_container_of(link, struct CUstream_st, link);
        gni_list_each (item, &stream->ops) {
            const struct sim_op *op = gni_container_of(item, struct sim_op, link);
            if (op_touches(op, address, nbytes))
                return op;
        }
    }
    return NULL;
}

int sim_pending_count(void)
{
    int count = 0;
    gni_list_each (link, &sim.streams) {
        const struct CUstream_st *stream = gni_container_of(link, struct CUstream_st, link);
        gni_list_each (item, &stream->ops)
            count++;
    }
    return count;
}

/* ---- running -------------------------------------------------------------------------------- */

static bool op_is_ready(const struct sim_op *op)
{
    if (op->kind == SIM_OP_WAIT && !op->record->is_complete)
        return false;
    gni_list_each (link, &sim.streams) {
        const struct CUstream_st *other = gni_container_of(link, struct CUstream_st, link);
        if (is_joined(op->stream, other) && !sim_is_past(other, op->number - 1))
            return false;
    }
    return true;
}

/* Runs the first op of its queue, which is ready. */
static void op_step(struct sim_op *op)
{
    sim.time_ms += 0.001;
    sim.order_hash = (sim.order_hash ^ (op->number - sim.order_base)) * 0x100000001b3u;
    sim_op_run(op);
    if (op->kind == SIM_OP_RECORD) {
        op->record->is_complete = true;
        op->record->time_ms = sim.time_ms;
    }
    if (op->kind == SIM_OP_GRAPH)
        sim_graph_release(op->graph);
    gni_list_remove(&op->link);
    sim_op_deinit(op);
    gni_host_free(op);
}

/* Runs what an op waits for. */
static void op_prepare(const struct sim_op *op)
{
    if (op->kind == SIM_OP_WAIT)
        sim_complete_record(op->record);
    gni_list_each (link, &sim.streams) {
        struct CUstream_st *other = gni_container_of(link, struct CUstream_st, link);
        if (is_joined(op->stream, other))
            sim_complete(other, op->number - 1);
    }
}

void sim_complete(struct CUstream_st *stream, uint64_t number)
{
    for (;;) {
        struct sim_op *first = stream_first(stream);
        if (first == NULL || first->number > number)
            return;
        op_prepare(first);
        op_step(first);
    }
}

void sim_complete_record(struct sim_record *record)
{
    if (!record->is_complete)
        sim_complete(record->stream, record->number);
}

void sim_complete_joined(struct CUstream_st *stream, uint64_t number)
{
    sim_complete(stream, number);
    gni_list_each (link, &sim.streams) {
        struct CUstream_st *other = gni_container_of(link, struct CUstream_st, link);
        if (stream->is_legacy && is_joined(stream, other)) {
            sim_complete(other, number);
            sim_clock_join(&sim.host, &other->clock);
        }
    }
    if (stream->is_legacy)
        sim_clock_join(&sim.host, &sim.contexts[stream->device].ended_blocking);
    sim_clock_join(&sim.host, &stream->clock);
}

void sim_complete_context(CUdevice device)
{
    gni_list_each (link, &sim.streams) {
        struct CUstream_st *stream = gni_container_of(link, struct CUstream_st, link);
        if (stream->device == device) {
            sim_complete(stream, sim.last_number);
            sim_clock_join(&sim.host, &stream->clock);
        }
    }
    sim_clock_join(&sim.host, &sim.contexts[device].ended);
    if (sim_pending_count() == 0)
        sim_history_settle();
}

/* The nth ready op of all streams, or NULL; counts them. */
static struct sim_op *ready_find(uint64_t nth, uint64_t *count)
{
    struct sim_op *found = NULL;
    *count = 0;
    gni_list_each (link, &sim.streams) {
        const struct CUstream_st *stream = gni_container_of(link, struct CUstream_st, link);
        struct sim_op *first = stream_first(stream);
        if (first != NULL && op_is_ready(first) && (*count)++ == nth)
            found = first;
    }
    return found;
}

void sim_nudge(void)
{
    if (sim.schedule != SIM_RANDOM)
        return;
    for (uint64_t steps = sim_random() % 4; steps > 0; steps--) {
        uint64_t count;
        (void)ready_find(UINT64_MAX, &count);
        if (count == 0)
            return;
        op_step(ready_find(sim_random() % count, &count));
    }
}

/* A program that polls must see progress: the oldest op of all runs for each question. */
void sim_query_nudge(void)
{
    uint64_t lowest = UINT64_MAX;
    struct sim_op *op = NULL;
    gni_list_each (link, &sim.streams) {
        struct sim_op *first = stream_first(gni_container_of(link, struct CUstream_st, link));
        if (first != NULL && first->number < lowest) {
            lowest = first->number;
            op = first;
        }
    }
    if (op != NULL)
        op_step(op); /* the oldest op of all is always ready */
}

/* ---- submission ----------------------------------------------------------------------------- */

/* What the op will have seen: the host, the streams that are joined, and what it waits for. */
static void clock_advance(struct CUstream_st *stream, const struct sim_op *op)
{
    sim_clock_join(&stream->clock, &sim.host);
    gni_list_each (link, &sim.streams) {
        struct CUstream_st *other = gni_container_of(link, struct CUstream_st, link);
        if (is_joined(stream, other))
            sim_clock_join(&stream->clock, &other->clock);
    }
    if (stream->is_legacy)
        sim_clock_join(&stream->clock, &sim.contexts[stream->device].ended_blocking);
    if (op->kind == SIM_OP_WAIT)
        sim_clock_join(&stream->clock, &op->record->clock);
    sim_clock_set(&stream->clock, stream->actor, sim_clock_get(&stream->clock, stream->actor) + 1);
}

CUresult sim_submit(struct CUstream_st *stream, struct sim_op *model)
{
    CUresult legacy = sim_capture_check_legacy(stream);
    if (legacy == CUDA_SUCCESS && stream->capture != NULL)
        return sim_capture_add(stream, model);
    struct sim_op *op = legacy == CUDA_SUCCESS ? gni_host_alloc(sizeof *op) : NULL;
    if (op == NULL) {
        sim_op_deinit(model);
        return legacy != CUDA_SUCCESS ? legacy : CUDA_ERROR_OUT_OF_MEMORY;
    }
    *op = *model;
    op->stream = stream;
    op->number = ++sim.last_number;
    clock_advance(stream, op);
    sim_clock_copy(&op->clock, &stream->clock);
    if (op->kind == SIM_OP_RECORD) {
        op->record->number = op->number;
        sim_clock_copy(&op->record->clock, &stream->clock);
    }
    gni_list_push_back(&stream->ops, &op->link);
    uint64_t number = op->number;
    bool is_work = op->kind == SIM_OP_KERNEL || op->kind == SIM_OP_GRAPH;
    if (sim.schedule == SIM_EAGER || (sim.is_blocking_launch && is_work))
        sim_complete(stream, number);
    if (sim.is_blocking_launch && is_work)
        sim_clock_join(&sim.host, &stream->clock);
    return CUDA_SUCCESS;
}
