/*
 * interpret.h: tier 0: programs that run without being compiled.
 *
 *     interpret.cu, interpret.c     an elementwise program becomes instructions, which a kernel reads
 *     interpret_reduce.c            a reduction: its value is interpreted into memory, and reduced by a kernel for its type
 *     interpret_softmax.c           the same for softmax
 *     interpret_list.c              a list program: its entries, one by one
 *     interpret_rows.c              a row program: the same, one reduction after the other
 *
 * The kernels of tier 0 do not depend on the program, so they can be compiled when the library is built.
 *
 * Invariants:
 *   IT1  a program gives the same bits as its compiled kernel: operations are the functions of elements.cu, and what is
 *        reduced is joined in the same order (RK1 of row_kernel.h; reduce.cu);
 *   IT2  an instruction that loads stands before all that store, as an output may lie on an input.
 *
 * Threads: any.
 */
#ifndef GNI_OPS_CUDA_INTERPRET_H
#define GNI_OPS_CUDA_INTERPRET_H

#include "ops/cuda/generate.h"
#include "ops/cuda/row_kernel.h"

/* A program as instructions, ready to run. */
struct gni_interpretation {
    int kind; /* of the kernel */
    unsigned blocks;
    size_t shared_bytes;
    uint64_t arguments[512];
};

/*
 * Writes the instructions of an elementwise program, whose count is not 0. False where it is too large: it has too many
 * instructions, or values that live at the same time. `skip` is a number on the device; where it is not 0, nothing is computed.
 * NULL: there is none.
 */
bool gni_interpret_prepare(const struct gni_program *program, const gn_tensor *skip,
                           gn_device *device, struct gni_interpretation *interpretation);

/* Launches it. The outputs of the program must still be there. */
gn_status gni_interpret_submit(struct gni_interpretation *interpretation,
                               gn_stream *stream) GN_NODISCARD;

/*
 * The following run what they can: `is_done` is false where it is too large for the interpreter or for memory beside, and
 * then no output was changed.
 */
gn_status gni_interpret(const struct gni_program *program, gn_stream *stream,
                        bool *is_done) GN_NODISCARD;

/* A reduction of a specialization, spread over blocks as its compiled kernel would be. */
gn_status gni_interpret_reduce(const struct gni_specialization *specialization,
                               const struct gni_reduce_arguments *reduce, int64_t blocks,
                               gn_stream *stream, bool *is_done) GN_NODISCARD;

/* The same for a softmax. */
gn_status gni_interpret_softmax(const struct gni_specialization *specialization,
                                const struct gni_reduce_arguments *reduce, unsigned blocks,
                                gn_stream *stream, bool *is_done) GN_NODISCARD;

/* A row program. `partial`: where the sums of parts go, as in gni_row_kernel_arguments(). */
gn_status gni_interpret_rows(const struct gni_row_kernel *kernel, void *partial, gn_stream *stream,
                             bool *is_done) GN_NODISCARD;

/* Some entries of a list program. Blocks have `stretch` elements; `partial` gets what each of them has reduced. */
gn_status gni_interpret_list(const struct gni_list_program *list, int begin, int count,
                             int64_t stretch, double *partial, gn_stream *stream,
                             bool *is_done) GN_NODISCARD;

/* Computes a value of an elementwise program into new memory, as another type, in the program's order. NULL in `values`:
 * it is too large for the interpreter, or for memory beside. */
gn_status gni_interpret_value(const struct gni_program *program, short value, gn_dtype dtype,
                              gn_stream *stream, struct gni_storage **values) GN_NODISCARD;

/* The value of a specialization as another type, in the program's order: where it lies in memory, or in `storage`, which is new
 * and the caller's. NULL in `values`: as above. */
gn_status gni_interpret_values(const struct gni_specialization *specialization, gn_dtype dtype,
                               gn_stream *stream, struct gni_storage **storage,
                               const void **values) GN_NODISCARD;

/* Whether the archive has the interpreter for a device. */
bool gni_interpret_is_ready(gn_device *device);

/* Memory for values that a reduction reads. NULL: there is not enough, or it would be so much that a compiled kernel, which needs
 * none, is worth waiting for. */
struct gni_storage *gni_interpret_memory(int64_t count, gn_dtype dtype, gn_stream *stream);

#endif
