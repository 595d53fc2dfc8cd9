/*
 * cuda_ops.h: the functions of the GPU's table (cuda_backend.c): src/ops/backend.h says what each does.
 *
 * All work is submitted to a stream. Every result follows from its input alone, bit for bit: how the work is spread depends
 * on shapes only, and nothing on the order in which threads come.
 */
#ifndef GNI_OPS_CUDA_CUDA_OPS_H
#define GNI_OPS_CUDA_CUDA_OPS_H

#include "ops/cuda/generate.h"
#include "tensor/graph_capture.h"

/* ---- programs: cuda_run.c, cuda_row_program.c, cuda_softmax.c, warm.c ---- */

gn_status gni_cuda_run(struct gni_program *program, gn_stream *stream) GN_NODISCARD;
gn_status gni_cuda_run_rows(struct gni_program *program, gn_stream *stream) GN_NODISCARD;

/* Runs a list program: cuda_list.c. */
gn_status gni_cuda_run_list(const struct gni_list_program *list, gn_stream *stream) GN_NODISCARD;
bool gni_cuda_rows_fit(int64_t rows, int64_t columns);
bool gni_cuda_columns_fit(int64_t rows, int64_t columns);
gn_status gni_cuda_reduce(struct gni_program *program, short value,
                          const struct gni_reduction_task *task, gn_tensor *result,
                          gn_stream *stream) GN_NODISCARD;
gn_status gni_cuda_softmax(struct gni_program *program, short value, int64_t rows, bool is_log,
                           gn_tensor *result, gn_stream *stream) GN_NODISCARD;
gn_status gni_cuda_warm_up(gn_device *device, bool is_waiting) GN_NODISCARD;

/* Launches the kernel of a specialization, made if need be. `reduce` is NULL for none. */
gn_status gni_specialization_launch(const struct gni_specialization *specialization,
                                    const struct gni_reduce_arguments *reduce, unsigned grid_x,
                                    unsigned grid_y, gn_stream *stream) GN_NODISCARD;

/* Whether it is to be interpreted now, since its kernel is not there yet. On failure false. */
bool gni_specialization_is_interpreted(const struct gni_specialization *specialization,
                                       gn_stream *stream, gn_status *status);

/* Whether its kernel need not be waited for: it is there, or programs have one tier. Else it is requested. */
bool gni_specialization_is_ready(const struct gni_specialization *specialization,
                                 gn_stream *stream);

/* ---- rows, and new values ---- */

gn_status gni_cuda_random(const struct gni_random *random, gn_tensor *out,
                          gn_stream *stream) GN_NODISCARD;
gn_status gni_cuda_extreme(gn_tensor *tensor, const struct gni_along *along, bool is_maximum,
                           gn_tensor *values, gn_tensor *indices, gn_stream *stream) GN_NODISCARD;
gn_status gni_cuda_cumulate(gn_tensor *tensor, const struct gni_along *along, bool is_product,
                            gn_tensor *result, gn_stream *stream) GN_NODISCARD;
gn_status gni_cuda_cumulate_extreme(gn_tensor *tensor, const struct gni_along *along,
                                    bool is_maximum, gn_tensor *values, gn_tensor *indices,
                                    gn_stream *stream) GN_NODISCARD;
gn_status gni_cuda_select(gn_tensor *rows, const struct gni_selection *selection, gn_tensor *values,
                          gn_tensor *indices, gn_stream *stream) GN_NODISCARD;
gn_status gni_cuda_unique(gn_tensor *tensor, gn_tensor *values, gn_tensor *inverse,
                          gn_tensor *counts, int64_t *found, gn_stream *stream) GN_NODISCARD;

gn_status gni_cuda_permutation(struct gni_philox philox, gn_tensor *out,
                               gn_stream *stream) GN_NODISCARD;
gn_status gni_cuda_search(gn_tensor *sequence, gn_tensor *values, bool is_right, gn_tensor *result,
                          gn_stream *stream) GN_NODISCARD;
gn_status gni_cuda_range(gn_tensor *numbers, int64_t *least, int64_t *most,
                         gn_stream *stream) GN_NODISCARD;
gn_status gni_cuda_count(gn_tensor *numbers, gn_tensor *counts, gn_stream *stream) GN_NODISCARD;

/*
 * ---- keys and masks: cuda_index.c, cuda_mask.c ----
 *
 * Index tensors are on the GPU, and so nobody on the host knows whether their numbers are in range when the call
 * returns. Kernels look at each number: one that is out of range makes nothing outside be read or written, and is
 * reported in a word of the device (gni_device_upper.fault) that lies in the host's memory. Whoever has waited for the GPU
 * looks there: gni_cuda_index_check().
 */
gn_status gni_cuda_index_get(const struct gni_index_plan *plan, gn_tensor *source,
                             gn_tensor *result) GN_NODISCARD;
gn_status gni_cuda_index_set(const struct gni_index_plan *plan, gn_tensor *target,
                             const gn_tensor *value, const int64_t *strides, uint64_t number,
                             bool is_accumulated) GN_NODISCARD;
gn_status gni_cuda_mask_places(gn_tensor *mask, const int64_t *strides,
                               gn_tensor **places) GN_NODISCARD;
gn_status gni_cuda_mask_get(gn_tensor *source, gn_tensor *mask, gn_tensor **result) GN_NODISCARD;
gn_status gni_cuda_mask_set(gn_tensor *target, gn_tensor *mask, gn_tensor *values) GN_NODISCARD;
gn_status gni_cuda_index_check(gn_device *device) GN_NODISCARD;

/*
 * ---- matrix products: cuda_product.c ----
 *
 *     float16, bfloat16, float32, float64   cuBLASLt, where it is there and can (cuda_blas.h)
 *     otherwise                             matmul.cu: our own kernel
 */
gn_status gni_cuda_product(const struct gni_product *product, gn_device *device,
                           gn_stream *stream) GN_NODISCARD;

/* By cuBLASLt, or not at all. */
gn_status gni_cuda_product_add(const struct gni_product *product, const struct gni_matrix *addend,
                               gn_device *device, gn_stream *stream, bool *is_done) GN_NODISCARD;

/* What cuBLASLt would have to have copied. */
unsigned gni_cuda_product_copies(const struct gni_product *product, gn_device *device);

/*
 * ---- reading back ----
 *
 * A few words that a kernel writes for the host: into page-locked memory.
 *
 *     struct gni_storage *words;
 *     GN_TRY(gni_readback_create(stream, nbytes, &words));
 *     a kernel of the stream writes to words->data
 *     status = gni_readback_wait(stream);             then words->data can be read
 *     gni_storage_release(words);
 */
/* Fails while the stream is captured: no kernel runs then. */
static inline gn_status gni_readback_create(gn_stream *stream, size_t nbytes,
                                            struct gni_storage **words)
{
    gn_memory_manager *manager;
    gn_device *host;
    GN_TRY(gni_capture_refuse(stream, "a value cannot be read on the host"));
    GN_TRY(gn_memory_manager_get_pinned(stream->device, &manager));
    GN_TRY(gni_device_get_host(&host));
    return gni_storage_create_from(manager, host, nbytes, NULL, words);
}

static inline gn_status gni_readback_wait(gn_stream *stream)
{
    GN_TRY(gn_stream_synchronize(stream));
    return gni_cuda_index_check(stream->device);
}

#endif
