/*
 * recorder.h: elementwise operations that wait.
 *
 *     node      an operation whose result nobody has needed yet. Its operands are other nodes of the same shape,
 *               memory with strides for that shape, and numbers
 *     owner     the tensor whose value a node is; none when that has gone: the value may still be an operand
 *
 * Invariants, under the lock:
 *   R1  all nodes are in one list, in the order in which they were made: operands come before;
 *   R2  references of a node: its owner, and each operand of a node that is it;
 *   R3  a node that was computed has a storage, and no operands; it leaves when nobody refers to it;
 *   R4  reader_count of a storage: the operands of nodes that are its memory, or a computed node with it;
 *   R5  no operand's storage is escaped when the call that recorded it has returned;
 *   R6  a node has at most GNI_PROGRAM_NODES_MOST below it, itself counted, with repetition.
 *
 * Storage is let go after the lock: its deleter may be somebody else's code, with locks of its own.
 *
 * Threads: everything here takes the lock itself, unless it says otherwise.
 */
#ifndef GNI_OPS_RECORDER_H
#define GNI_OPS_RECORDER_H

#include "ops/program.h"
#include "ops/promote.h"

/* Records an operation with its types, or runs it at once where it must not wait. An identity (gni_typing) and a
 * conversion have one operand. */
gn_status gni_record(const struct gni_typing *typing, int arity, const gn_operand *operands,
                     const struct gni_shape *shape, gn_device *device,
                     gn_tensor **result) GN_NODISCARD;

/* Runs an operation whose result goes into memory that is there: `out`, of the operation's shape. */
gn_status gni_record_into(const struct gni_typing *typing, int arity, const gn_operand *operands,
                          gn_tensor *out) GN_NODISCARD;

/* Whether a result of this shape and type can be written into a tensor; `what` begins the message: elementwise.c. */
gn_status gni_out_check(const char *what, const gn_tensor *out, const struct gni_shape *shape,
                        gn_dtype dtype) GN_NODISCARD;

/*
 * A program that ends in the value of a tensor (pending, with what it needs; or memory), seen with other strides:
 * `order` says which dimension of the tensor each dimension of the program is. For reductions. *value is the value.
 * To be called, used and ended by one thread: the lock is held from begin to end.
 */
gn_status gni_program_begin(gn_tensor *tensor, const int *order, struct gni_program **program,
                            short *value) GN_NODISCARD;
void gni_program_end(void);

#endif
