/*
 * genesis/graph.h: graphs: operations that are captured once and run many times.
 *
 * What a thread submits to a stream between begin and end does not run; it becomes the graph. A replay submits all of
 * it at once, with the same addresses: new inputs are copied into the tensors that the graph has read, and results are
 * found in the tensors that it has made.
 *
 *   memory   What is allocated for the stream meanwhile comes from a pool of the graph's own, which nobody else gets
 *            before the graph is reset or destroyed. Tensors from outside that it reads or writes live as long.
 *   order    A replay waits, on the device, for work on other streams that uses those tensors, and they for it; one
 *            graph waits for another with the same pool.
 *   content  Tensors made during a capture have none before the first replay, and never if the capture fails.
 *   random   The numbers of a random operation are chosen when it is captured: each replay repeats them.
 *
 * Only CUDA devices have graphs: GN_ERROR_UNSUPPORTED elsewhere, and where the memory manager's policy is "direct".
 * What cannot be captured fails with GN_ERROR_CAPTURE: everything that needs values on the host, and copies from or to
 * it. That alone does not end or spoil the capture; gn_graph_reset() gives it up.
 */
#ifndef GENESIS_GRAPH_H
#define GENESIS_GRAPH_H

#include "genesis/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gn_graph gn_graph;
typedef struct gn_graph_pool gn_graph_pool;

/* Memory for graphs, which several may share if they are replayed in the order of their captures. */
GN_API gn_status gn_graph_pool_create(gn_device *device, gn_graph_pool **pool) GN_NODISCARD;
GN_API gn_graph_pool *gn_graph_pool_retain(gn_graph_pool *pool);

/* One owner fewer; graphs are owners, too. Memory in which tensors still live goes back after them. NULL is allowed. */
GN_API void gn_graph_pool_release(gn_graph_pool *pool);

/* An empty graph. */
GN_API gn_status gn_graph_create(gn_device *device, gn_graph **graph) GN_NODISCARD;

/* Resets the graph, and ends it. NULL is allowed. */
GN_API void gn_graph_destroy(gn_graph *graph);

GN_API gn_device *gn_graph_get_device(const gn_graph *graph);

/*
 * Begins the capture of a stream that is not the default one into an empty graph. All that is pending is submitted, and
 * the device waited for. A NULL pool is one of the graph's own.
 */
GN_API gn_status gn_graph_begin(gn_graph *graph, gn_stream *stream,
                                gn_graph_pool *pool) GN_NODISCARD;

/* Ends it, after all that is pending is submitted. If it fails the graph is empty, and the stream can be used. */
GN_API gn_status gn_graph_end(gn_graph *graph) GN_NODISCARD;

/* Submits what was captured. */
GN_API gn_status gn_graph_replay(gn_graph *graph, gn_stream *stream) GN_NODISCARD;

/* Makes the graph empty. Gives up a capture that is under way; waits for replays. */
GN_API gn_status gn_graph_reset(gn_graph *graph) GN_NODISCARD;

/* Borrows the pool of the graph, which has one from the begin of its capture until it is reset; else NULL. */
GN_API gn_graph_pool *gn_graph_get_pool(const gn_graph *graph);

#ifdef __cplusplus
}
#endif

#endif
