/*
 * cuda_graph.c: capture of a stream, and graphs.
 *
 * A capture is relaxed: it minds no calls but those that would wait for its own work, and any thread may end it. What
 * the driver refuses meanwhile spoils the capture, and the end of it says so; the stream is usable after that. A wait
 * for the whole device is a wait for the captured stream, in every mode and from every thread: the captures are
 * counted, so that cuda_device.c can refuse it without a call. A capture counts from before the call that begins it
 * until after the one that ends it: meanwhile cuda_queue.c takes no launch, and nobody waits for the device.
 */
#include "device/cuda/cuda_queue.h"

static gn_status capture_begin(struct gni_cuda_device *device, const gn_stream *stream)
{
    GNI_CUDA_SUBMIT(device, cuStreamBeginCapture, stream->handle, CU_STREAM_CAPTURE_MODE_RELAXED);
    return GN_OK;
}

gn_status gni_cuda_graph_begin(gn_stream *stream)
{
    struct gni_cuda_device *device = gni_cuda_device_of_stream(stream);
    atomic_fetch_add(&device->capture_count, 1);
    gn_status status = capture_begin(device, stream);
    if (status != GN_OK)
        atomic_fetch_sub(&device->capture_count, 1);
    return status;
}

static gn_status capture_end(struct gni_cuda_device *device, const gn_stream *stream,
                             CUgraph *template)
{
    GNI_CUDA_TRY(device, cuStreamEndCapture, stream->handle, template);
    return GN_OK;
}

static gn_status template_destroy(struct gni_cuda_device *device, CUgraph template)
{
    GNI_CUDA_TRY(device, cuGraphDestroy, template);
    return GN_OK;
}

/* What was captured is only a pattern; this makes what can be launched. */
static gn_status template_instantiate(struct gni_cuda_device *device, CUgraph template,
                                      CUgraphExec *exec)
{
    GNI_CUDA_TRY_RELAXED(device, cuGraphInstantiateWithFlags, exec, template, 0);
    return GN_OK;
}

gn_status gni_cuda_graph_end(gn_stream *stream, struct gni_graph *graph)
{
    struct gni_cuda_device *device = gni_cuda_device_of_stream(stream);
    CUgraph template = NULL;
    CUgraphExec exec;
    gn_status status = capture_end(device, stream, &template);
    atomic_fetch_sub(&device->capture_count, 1); /* it is over, also when the end fails */
    GN_TRY(status);
    status = template_instantiate(device, template, &exec);
    if (status == GN_OK)
        *graph = (struct gni_graph){stream->device, exec};
    (void)template_destroy(device, template);
    return status;
}

gn_status gni_cuda_graph_launch(const struct gni_graph *graph, gn_stream *stream)
{
    GNI_CUDA_SUBMIT(gni_cuda_device_of(graph->device), cuGraphLaunch, graph->handle,
                    stream->handle);
    return GN_OK;
}

static gn_status exec_destroy(const struct gni_graph *graph)
{
    GNI_CUDA_TRY_RELAXED(gni_cuda_device_of(graph->device), cuGraphExecDestroy, graph->handle);
    return GN_OK;
}

void gni_cuda_graph_close(struct gni_graph *graph)
{
    if (graph->handle != NULL && !gni_cuda_driver_is_gone())
        (void)exec_destroy(graph); /* its failure is the device's, and is reported there */
    graph->handle = NULL;
}
