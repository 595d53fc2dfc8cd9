/*
 * recorder.h: operations that wait: elementwise ones, and few others.
 *
 * An operation becomes a node (node.h). Somebody who needs bytes has the nodes that these depend on cut out and
 * computed in one program: by the calling thread on the CPU, in the order of a stream on a GPU.
 *
 * Threads: everything here takes the recorder's lock itself. Nothing is computed, allocated or submitted with the
 * lock held: two threads compute at the same time, and one that needs what the other computes waits for that.
 */
#ifndef GNI_OPS_RECORDER_H
#define GNI_OPS_RECORDER_H

#include "ops/program.h"
#include "ops/promote.h"

struct gni_node;

/* Nodes that are being computed, and their program. */
struct gni_work {
    struct gni_program program;
    gn_stream *stream; /* borrowed; NULL on the CPU */
    short value;       /* of the program that the last node is */
    int node_count;
    struct gni_node *nodes[GNI_PROGRAM_NODES_MOST]; /* operands first */
};

/* Records an operation with its types, or runs it at once where it must not wait. `shape` has `count` elements. An
 * identity (gni_typing) and a conversion have one operand. */
gn_status gni_record(const struct gni_typing *typing, int arity, const gn_operand *operands,
                     const struct gni_shape *shape, int64_t count, gn_device *device,
                     gn_tensor **result) GN_NODISCARD;

/* An operation that is no elementwise one, and may wait as well, since its result is often not wanted at all: where the
 * elements of sorted rows were. */
struct gni_deferred {
    gn_status (*run)(const struct gni_deferred *deferred, const void *from, void *to);
    gn_dtype dtype; /* of what is read */
    int64_t rows, columns;
    bool is_descending;
};

/* Records one: of a contiguous operand in memory, with a result of its shape, but that a dimension is exchanged with the
 * last one. On the CPU. */
gn_status gni_record_deferred(const struct gni_deferred *deferred, gn_tensor *operand,
                              int dimension, gn_dtype dtype, gn_tensor **result) GN_NODISCARD;

/* Runs an operation whose result goes into memory that is there: `out`, of the operation's shape. */
gn_status gni_record_into(const struct gni_typing *typing, int arity, const gn_operand *operands,
                          gn_tensor *out) GN_NODISCARD;

/* Whether a result of this shape and type can be written into a tensor; `what` begins the message: elementwise.c. */
gn_status gni_out_check(const char *what, const gn_tensor *out, const struct gni_shape *shape,
                        gn_dtype dtype) GN_NODISCARD;

/*
 * A program that ends in the value of a tensor (pending, with what it needs; or memory), seen with other strides:
 * `order` says which dimension of the tensor each dimension of the program is. For reductions. The nodes stay
 * pending, and are nobody else's until the end.
 */
gn_status gni_work_begin(struct gni_work *work, gn_tensor *tensor, const int *order) GN_NODISCARD;
void gni_work_end(struct gni_work *work);

/* What the tensor layer asks for: tensor/tensor.h, struct gni_evaluator. */
gn_status gni_recorder_flush(gn_tensor *tensor) GN_NODISCARD;
gn_status gni_recorder_flush_readers(struct gni_storage *storage) GN_NODISCARD;
void gni_recorder_abandon(gn_tensor *tensor);

/* A contiguous copy, or the tensor itself (with a reference) if it is that: elementwise.c. */
gn_status gni_tensor_compact(gn_tensor *tensor, gn_tensor **result) GN_NODISCARD;

/* Lets an interpreter's lock go, without the recorder's, around what takes long (gn_set_wait_hooks()), and takes it
 * again. */
void *gni_wait_begin(void);
void gni_wait_end(void *state);

/*
 * After the end of a work that ended like this: whether it is to be tried again, because its kernel was refused and what
 * it took along is now computed by itself. The status changes if that has failed.
 *
 *     do {
 *         status = gni_work_begin(&work, tensor, order);
 *         ...
 *     } while (gni_work_split(&work, tensor, &status));
 */
bool gni_work_split(const struct gni_work *work, gn_tensor *tensor, gn_status *status);

#endif
