/*
 * run.c: copies and fills: their submission, and what each op does when it runs.
 *
 * An address is device memory, page-locked host memory, or pageable host memory, which the driver does
 * not know. A copy from pageable memory takes its bytes at once, one into it is waited for; everything
 * else is looked at when the op runs, and memory that is gone by then loses the context, as on a GPU.
 */
#include "sim.h"

/* ---- doing ---------------------------------------------------------------------------------- */

enum place {
    PLACE_DEVICE,
    PLACE_LOCKED, /* host memory that the driver knows */
    PLACE_PAGEABLE,
    PLACE_WRONG,
};

static enum place place_of(uintptr_t address, size_t nbytes)
{
    const struct sim_range *range = sim_range_find(address);
    if (range == NULL)
        return sim_is_device_space(address) ? PLACE_WRONG : PLACE_PAGEABLE;
    if (range->kind == SIM_RANGE_PLAIN || range->kind == SIM_RANGE_MAPPED)
        return sim_device_contains(address, nbytes) ? PLACE_DEVICE : PLACE_WRONG;
    return nbytes <= range->address + range->nbytes - address ? PLACE_LOCKED : PLACE_WRONG;
}

/* The last frees in stream order, for reports. */
static struct grave {
    uintptr_t begin, end;
    struct sim_label label;
} graves[64];

static void grave_dig(const struct sim_op *op)
{
    static unsigned next;
    graves[next++ % 64] =
        (struct grave){op->destination, op->destination + op->nbytes, sim_op_label(op)};
}

static const struct grave *grave_find(uintptr_t address)
{
    for (int i = 0; i < 64; i++)
        if (address >= graves[i].begin && address < graves[i].end)
            return &graves[i];
    return NULL;
}

/* Memory that an op uses was there when it was submitted, and is not there now. */
static void op_fail(const struct sim_op *op, uintptr_t address)
{
    const struct grave *grave = grave_find(address);
    sim_finding("use after free: %s uses 0x%zx, which %s%s", sim_op_label(op).text, (size_t)address,
                grave != NULL ? grave->label.text : "is not memory any more",
                grave != NULL ? " gave back before" : "");
    sim_context_lose(&sim.contexts[op->stream->device], CUDA_ERROR_ILLEGAL_ADDRESS);
}

static bool op_access(const struct sim_op *op, uintptr_t address, size_t nbytes,
                      enum sim_access access)
{
    enum place place = place_of(address, nbytes);
    if (place == PLACE_WRONG) {
        op_fail(op, address);
        return false;
    }
    if (place != PLACE_PAGEABLE)
        sim_history_access(op, address, nbytes, access);
    return true;
}

static void copy_run(const struct sim_op *op)
{
    if (!op_access(op, op->destination, op->nbytes, SIM_WRITE) ||
        (op->staged == NULL && !op_access(op, op->source, op->nbytes, SIM_READ)))
        return;
    const void *from = op->staged != NULL ? op->staged : (const void *)op->source;
    sim_memory_open((uintptr_t)from, op->nbytes);
    sim_memory_open(op->destination, op->nbytes);
    memmove((void *)op->destination, from, op->nbytes);
    sim_memory_close(op->destination, op->nbytes);
    sim_memory_close((uintptr_t)from, op->nbytes);
}

static void fill_run(const struct sim_op *op)
{
    if (!op_access(op, op->destination, op->nbytes, SIM_WRITE))
        return;
    unsigned char *at = (unsigned char *)op->destination;
    sim_memory_open(op->destination, op->nbytes);
    if (op->element == 1)
        memset(at, (int)op->value, op->nbytes);
    for (size_t i = 0; op->element > 1 && i < op->nbytes; i += op->element)
        memcpy(at + i, &op->value, op->element);
    sim_memory_close(op->destination, op->nbytes);
}

/* The block is there since the call; what is modelled is that uses must be ordered after it. */
static void alloc_run(const struct sim_op *op)
{
    sim_history_access(op, op->destination, op->nbytes, SIM_WRITE);
}

/* The free is a write: everything else must be ordered with it. What comes after is the next owner's,
 * and the driver itself orders a block's owners. */
static void free_run(const struct sim_op *op)
{
    sim_history_access(op, op->destination, op->nbytes, SIM_WRITE);
    sim_history_forget(op->destination, op->nbytes);
    grave_dig(op);
    sim_memory_release(op->destination);
}

void sim_op_run(struct sim_op *op)
{
    if (sim.contexts[op->stream->device].lost != CUDA_SUCCESS)
        return; /* nothing runs in a lost context any more */
    switch (op->kind) {
    case SIM_OP_KERNEL:
        sim_kernel_run(op);
        break;
    case SIM_OP_COPY:
        copy_run(op);
        break;
    case SIM_OP_FILL:
        fill_run(op);
        break;
    case SIM_OP_ALLOC:
        alloc_run(op);
        break;
    case SIM_OP_FREE:
        free_run(op);
        break;
    case SIM_OP_GRAPH:
        sim_graph_run(op);
        break;
    case SIM_OP_RECORD:
    case SIM_OP_WAIT:
        break;
    }
}

/* ---- submitting ----------------------------------------------------------------------------- */

CUresult cuMemcpyAsync(CUdeviceptr destination, CUdeviceptr source, size_t nbytes, CUstream handle)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    struct CUstream_st *stream = sim_stream_get(call.context, handle);
    SIM_REQUIRE(stream != NULL, CUDA_ERROR_INVALID_HANDLE);
    SIM_REQUIRE(nbytes > 0, CUDA_SUCCESS);
    SIM_REQUIRE(destination != 0 && source != 0, CUDA_ERROR_INVALID_VALUE);
    enum place to = place_of(destination, nbytes), from = place_of(source, nbytes);
    SIM_REQUIRE(to != PLACE_WRONG && from != PLACE_WRONG, CUDA_ERROR_INVALID_VALUE);
    struct sim_op op = {
        .kind = SIM_OP_COPY, .destination = destination, .source = source, .nbytes = nbytes};
    if (from == PLACE_PAGEABLE && stream->capture == NULL) {
        op.staged = gni_host_alloc(nbytes);
        SIM_REQUIRE(op.staged != NULL, CUDA_ERROR_OUT_OF_MEMORY);
        memcpy(op.staged, (const void *)source, nbytes);
    }
    CUresult result = sim_submit(stream, &op);
    if (result == CUDA_SUCCESS && to == PLACE_PAGEABLE && stream->capture == NULL) {
        sim_complete(stream, sim.last_number);
        sim_clock_join(&sim.host, &stream->clock);
        result = call.context->lost;
    }
    return result;
}

static CUresult fill_submit(struct CUctx_st *context, CUdeviceptr destination, unsigned value,
                            unsigned element, size_t count, CUstream handle)
{
    struct CUstream_st *stream = sim_stream_get(context, handle);
    SIM_REQUIRE(stream != NULL, CUDA_ERROR_INVALID_HANDLE);
    SIM_REQUIRE(count > 0, CUDA_SUCCESS);
    size_t nbytes;
    SIM_REQUIRE(gni_size_multiply(count, element, &nbytes) && destination % element == 0,
                CUDA_ERROR_INVALID_VALUE);
    enum place place = place_of(destination, nbytes);
    SIM_REQUIRE(place == PLACE_DEVICE || place == PLACE_LOCKED, CUDA_ERROR_INVALID_VALUE);
    struct sim_op op = {.kind = SIM_OP_FILL,
                        .destination = destination,
                        .nbytes = nbytes,
                        .value = value,
                        .element = element};
    return sim_submit(stream, &op);
}

CUresult cuMemsetD8Async(CUdeviceptr destination, unsigned char value, size_t count,
                         CUstream stream)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    return fill_submit(call.context, destination, value, 1, count, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr destination, unsigned short value, size_t count,
                          CUstream stream)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    return fill_submit(call.context, destination, value, 2, count, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr destination, unsigned int value, size_t count,
                          CUstream stream)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    return fill_submit(call.context, destination, value, 4, count, stream);
}
