/*
 * recorder.h: lazy evaluation: elementwise operations, and few others, wait until somebody needs their values.
 *
 * An operation becomes a node (node.h). When bytes are needed, the nodes that they depend on become one program, which is
 * computed by the calling thread, or in the order of a stream.
 *
 * Threads: all functions here take the recorder's lock themselves. Nothing is computed, allocated or submitted under the
 * lock: several threads compute at the same time, and a thread that needs what another computes waits for it.
 */
#ifndef GNI_OPS_RECORDER_H
#define GNI_OPS_RECORDER_H

#include "ops/program.h"
#include "ops/promote.h"

struct gni_node;
struct gni_capture;

/* Nodes that a thread computes, and their program. */
struct gni_work {
    struct gni_program program;
    gn_stream *stream; /* borrowed; NULL on the CPU */
    short value;       /* of the program: that of the root */
    struct gni_node *root;
    int node_count;
    struct gni_node *nodes[GNI_PROGRAM_NODES_MOST]; /* operands first */
};

/* Records an operation with its types, or runs it at once where it must not wait. `shape` has `count` elements. An
 * identity (gni_typing) and a conversion have one operand. */
gn_status gni_record(const struct gni_typing *typing, int arity, const gn_operand *operands,
                     const struct gni_shape *shape, int64_t count, gn_device *device,
                     gn_tensor **result) GN_NODISCARD;

/* An operation that is not elementwise and waits all the same, since its result is often not wanted: the indices of sorted
 * rows. */
struct gni_deferred {
    gn_status (*run)(const struct gni_deferred *deferred, const void *from, void *to);
    gn_dtype dtype; /* of what is read */
    int64_t rows, columns;
    bool is_descending;
};

/* Records one. The operand is contiguous, in the host's memory. The result has its shape, with `dimension` and the last one
 * exchanged. */
gn_status gni_record_deferred(const struct gni_deferred *deferred, gn_tensor *operand,
                              int dimension, gn_dtype dtype, gn_tensor **result) GN_NODISCARD;

/* A reduction of rows: of the last `row_ndim` dimensions of a tensor, which have at least 2 elements. It may wait, and be an
 * operand of elementwise operations that broadcast it back to its rows. Its result, of a type, has those dimensions as 1, or
 * without `has_dimensions` not at all. */
gn_status gni_record_reduction(gn_reduction reduction, gn_tensor *operand, int row_ndim,
                               bool has_dimensions, gn_dtype dtype,
                               gn_tensor **result) GN_NODISCARD;

/* A sum of columns: over all but the last `row_ndim` dimensions of a tensor that is contiguous. It may wait, and becomes a
 * part of a program that reads the same. */
gn_status gni_record_columns(gn_tensor *operand, int row_ndim, bool has_dimensions, gn_dtype dtype,
                             gn_tensor **result) GN_NODISCARD;

/* A sum that is converted to a type: a sum of columns, which may wait, gets it at once. reduce.c */
gn_status gni_sum_as(gn_tensor *tensor, uint32_t dimensions, bool has_dimensions, gn_dtype dtype,
                     gn_tensor **result) GN_NODISCARD;

/* Whether a tensor's value is one for each row, and waits. */
bool gni_is_pending_row(const gn_tensor *tensor);

/* The same for a sum of columns: where several values are asked for, those come last, since they join the others. */
bool gni_is_pending_column(const gn_tensor *tensor);

/* A tensor with the values of another one, broadcast to a shape that it can be broadcast to. It may be a view, so nobody may
 * write to it. elementwise.c */
gn_status gni_tensor_broadcast(gn_tensor *tensor, int ndim, const int64_t *sizes,
                               gn_tensor **result) GN_NODISCARD;

/* Runs an operation and writes its result into `out`, which has the operation's shape. */
gn_status gni_record_into(const struct gni_typing *typing, int arity, const gn_operand *operands,
                          gn_tensor *out) GN_NODISCARD;

/* An error unless a result of this shape and type can be written into a tensor. `what` begins the message. elementwise.c */
gn_status gni_out_check(const char *what, const gn_tensor *out, const struct gni_shape *shape,
                        gn_dtype dtype) GN_NODISCARD;

/*
 * Makes the program of a tensor's value, for a reduction: of its pending nodes, or of its memory. Dimension i of the program
 * is dimension order[i] of the tensor. The nodes stay pending; no other thread computes them before gni_work_end().
 */
gn_status gni_work_begin(struct gni_work *work, gn_tensor *tensor, const int *order) GN_NODISCARD;
void gni_work_end(struct gni_work *work);

/* What the tensor layer asks for: tensor/tensor.h, struct gni_evaluator. */
gn_status gni_recorder_flush(gn_tensor *tensor) GN_NODISCARD;
gn_status gni_recorder_flush_readers(struct gni_storage *storage) GN_NODISCARD;
void gni_recorder_abandon(gn_tensor *tensor);

/* Stores the values of resting nodes (node.h): of a device before a capture begins, of the captured stream before it ends,
 * and before a replay those that read what it writes. */
gn_status gni_resting_flush_device(const gn_device *device) GN_NODISCARD;
gn_status gni_resting_flush_stream(const gn_stream *stream) GN_NODISCARD;
gn_status gni_resting_flush_capture(struct gni_capture *capture) GN_NODISCARD;

/* A contiguous copy, or the tensor itself, with a reference, if it is contiguous: elementwise.c. */
gn_status gni_tensor_compact(gn_tensor *tensor, gn_tensor **result) GN_NODISCARD;

/* Releases an interpreter's lock around long work, and takes it again (gn_set_wait_hooks()). Without the recorder's lock. */
void *gni_wait_begin(void);
void gni_wait_end(void *state);

/*
 * After a work that failed with *status: true if it is to be tried again, because the kernel was refused and the nodes are
 * now computed by themselves. *status changes if computing them has failed.
 *
 *     do {
 *         status = gni_work_begin(&work, tensor, order);
 *         ...
 *     } while (status != GN_OK && gni_work_split(&work, tensor, &status));
 */
bool gni_work_split(const struct gni_work *work, gn_tensor *tensor, gn_status *status);

#endif
