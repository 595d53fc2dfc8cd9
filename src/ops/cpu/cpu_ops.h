/*
 * cpu_ops.h: the functions of the CPU's table (cpu_backend.c): src/ops/backend.h says what each does.
 *
 * The stream is NULL: the work is done when the call returns. Threads: any, at once; the work is spread over the pool's
 * (base/parallel.h), and the result does not depend on how many there are.
 */
#ifndef GNI_OPS_CPU_CPU_OPS_H
#define GNI_OPS_CPU_CPU_OPS_H

#include "ops/backend.h"

enum {
    GNI_SOFTMAX_ROW_BYTES = 256 << 10, /* of the longest row, as it is computed */
};

/* ---- programs: cpu_run.c, cpu_row_program.c, cpu_reduce.c, cpu_softmax.c ---- */

gn_status gni_cpu_run(struct gni_program *program, gn_stream *stream) GN_NODISCARD;

/* GN_ERROR_OUT_OF_HOST_MEMORY if there is no room for partial results. */
gn_status gni_cpu_reduce(struct gni_program *program, short value,
                         const struct gni_reduction_task *task, gn_tensor *result,
                         gn_stream *stream) GN_NODISCARD;

/* A sum of columns that is all that a row program without reductions of rows computes, and is not narrowed. */
gn_status gni_cpu_sum_columns(struct gni_program *program) GN_NODISCARD;

/* Row programs: cpu_row_program.c. GN_ERROR_COMPILATION if one has too many values. */
bool gni_cpu_rows_fit(int64_t rows, int64_t columns);
bool gni_cpu_columns_fit(int64_t rows, int64_t columns);
gn_status gni_cpu_run_rows(struct gni_program *program) GN_NODISCARD;

/* Cannot fail. */
gn_status gni_cpu_softmax(struct gni_program *program, short value, int64_t rows, bool is_log,
                          gn_tensor *result, gn_stream *stream) GN_NODISCARD;

/* ---- rows, and new values: cpu_rows.c ---- */

gn_status gni_cpu_random(const struct gni_random *random, gn_tensor *out,
                         gn_stream *stream) GN_NODISCARD;
gn_status gni_cpu_permutation(struct gni_philox philox, gn_tensor *out,
                              gn_stream *stream) GN_NODISCARD;
gn_status gni_cpu_extreme(gn_tensor *tensor, const struct gni_along *along, bool is_maximum,
                          gn_tensor *values, gn_tensor *indices, gn_stream *stream) GN_NODISCARD;
gn_status gni_cpu_cumulate(gn_tensor *tensor, const struct gni_along *along, bool is_product,
                           gn_tensor *result, gn_stream *stream) GN_NODISCARD;
gn_status gni_cpu_cumulate_extreme(gn_tensor *tensor, const struct gni_along *along,
                                   bool is_maximum, gn_tensor *values, gn_tensor *indices,
                                   gn_stream *stream) GN_NODISCARD;
gn_status gni_cpu_select(gn_tensor *rows, const struct gni_selection *selection, gn_tensor *values,
                         gn_tensor *indices, gn_stream *stream) GN_NODISCARD;
gn_status gni_cpu_unique(gn_tensor *tensor, gn_tensor *values, gn_tensor *inverse,
                         gn_tensor *counts, int64_t *found, gn_stream *stream) GN_NODISCARD;
gn_status gni_cpu_kth(gn_tensor *tensor, int64_t k, gn_tensor *result) GN_NODISCARD;

/* Where the largest or smallest element along a dimension is, in memory: cpu_extreme.c. `in` is contiguous, and no size
 * is 0; an index for each of outer * inner: the first of several equal ones. A NaN wins over everything, the first of
 * them. */
void gni_extreme_find(const void *in, gn_dtype dtype, const struct gni_along *along,
                      bool is_maximum, int64_t *indices);

/* ---- copy.c ---- */

enum {
    GNI_COPY_MOST =
        4096, /* elements that one thread copies in less time than a program takes to begin */
};

/* Copies elements of `size` bytes at once. Strides are in elements; those of `from` may be 0. The two do not overlap. */
void gni_copy_strided(char *to, const int64_t *to_strides, const char *from,
                      const int64_t *from_strides, int ndim, const int64_t *sizes, size_t size);

/* ---- cpu_create.c ---- */

gn_status gni_cpu_fill_number(gn_scalar number, gn_tensor *out) GN_NODISCARD;
gn_status gni_cpu_sequence(gn_scalar start, gn_scalar step, gn_tensor *out) GN_NODISCARD;

/* ---- keys and masks: cpu_index.c ---- */

gn_status gni_cpu_index_get(const struct gni_index_plan *plan, gn_tensor *source,
                            gn_tensor *result) GN_NODISCARD;
gn_status gni_cpu_index_set(const struct gni_index_plan *plan, gn_tensor *target,
                            const gn_tensor *value, const int64_t *strides, uint64_t number,
                            bool is_accumulated) GN_NODISCARD;
gn_status gni_cpu_mask_get(gn_tensor *source, gn_tensor *mask, gn_tensor **result) GN_NODISCARD;
gn_status gni_cpu_mask_set(gn_tensor *target, gn_tensor *mask, gn_tensor *values) GN_NODISCARD;
gn_status gni_cpu_index_check(gn_device *device) GN_NODISCARD;

/* ---- searching and counting: cpu_search.c ---- */

gn_status gni_cpu_mask_places(gn_tensor *mask, const int64_t *strides,
                              gn_tensor **places) GN_NODISCARD;
gn_status gni_cpu_search(gn_tensor *sequence, gn_tensor *values, bool is_right, gn_tensor *result,
                         gn_stream *stream) GN_NODISCARD;
gn_status gni_cpu_range(gn_tensor *numbers, int64_t *least, int64_t *most,
                        gn_stream *stream) GN_NODISCARD;
gn_status gni_cpu_count(gn_tensor *numbers, gn_tensor *counts, gn_stream *stream) GN_NODISCARD;
gn_status gni_cpu_count_small(gn_tensor *numbers, int64_t minimum, gn_tensor **made) GN_NODISCARD;

/* Cannot fail. cpu_fold.c, cpu_row_sums.c */
void gni_cpu_fold(gn_op op, gn_tensor *rows, gn_tensor *places, gn_tensor *values, bool has_self);
void gni_cpu_row_sums(gn_tensor *source, gn_tensor *factors, gn_tensor *from, gn_tensor *to,
                      gn_tensor *result);
void gni_cpu_row_maxima(gn_tensor *source, gn_tensor *from, gn_tensor *to, gn_tensor *chosen);

/* struct gni_backend: pool_maximum. cpu_pool.c */
struct gni_pool;
gn_status gni_cpu_pool_maximum(const struct gni_pool *pool, gn_tensor *image, gn_tensor *values,
                               gn_tensor *indices) GN_NODISCARD;

#endif
