/*
 * backend.h: how a kind of device computes: one table, as src/device/device.h is for what a device is.
 *
 * Everything in src/ops goes through the table, and asks for no kind of device: src/ops/cpu/cpu_backend.c and
 * src/ops/cuda/cuda_backend.c fill it in. Work is submitted to the stream, in whose order the memory of inputs and outputs
 * is valid. On a device that is_immediate (device/device.h) the stream is NULL, and the work is done when the call returns.
 * All slots are set but those marked (optional).
 */
#ifndef GNI_OPS_BACKEND_H
#define GNI_OPS_BACKEND_H

#include "ops/philox.h"
#include "ops/product.h"
#include "ops/program.h"
#include "tensor/index_plan.h"
#include "tensor/tape.h"

/* How a value is reduced. Where is_by_columns, the program's first dimensions go, and `kept` results lie side by
 * side; else the last ones go, and there are `kept` rows. */
struct gni_reduction_task {
    gn_reduction reduction;
    bool is_by_columns;
    int64_t kept;    /* results */
    int64_t reduced; /* elements for each; may be 0 */
};

enum gni_random_kind {
    GNI_RANDOM_UNIFORM,
    GNI_RANDOM_NORMAL,
    GNI_RANDOM_INTEGERS,
};

/* Which random numbers: philox.h says what each element is. */
struct gni_random {
    enum gni_random_kind kind;
    struct gni_philox philox;
    int64_t low, high; /* of integers: from `low` to before `high` */
};

/* A contiguous array, seen from one of its dimensions. */
struct gni_along {
    int64_t outer, length, inner; /* elements before, of it, and behind */
};

/* What is wanted of contiguous rows in their order, in which elements that are equal stay as they were. */
struct gni_selection {
    int64_t rows, columns;
    int64_t kept;       /* the first ones of each row; at least 1 */
    bool is_descending; /* largest first */
    bool is_sort;       /* all of them: kept is columns */
};

struct gni_list_program;
struct gni_pool;

struct gni_backend {
    /* Computes all outputs of a program; its count may be 0, but not that of a row program. */
    gn_status (*run)(struct gni_program *program, gn_stream *stream);

    /* Whether row programs of so many rows and columns are computed well: else rows are reduced by `reduce`. */
    bool (*rows_fit)(int64_t rows, int64_t columns);

    /* Whether sums of so many columns over so many rows are computed well by row programs. */
    bool (*columns_fit)(int64_t rows, int64_t columns);

    /* Reduces a value of a program into `result`, contiguous, of task->kept elements. Deterministic. */
    gn_status (*reduce)(struct gni_program *program, short value,
                        const struct gni_reduction_task *task, gn_tensor *result,
                        gn_stream *stream);

    /* (optional) Softmax, or its logarithm, of a floating value along the last dimensions of a program: `rows` of
     * them. `result` is contiguous, in the program's order. NULL: it is made of other operations. */
    gn_status (*softmax)(struct gni_program *program, short value, int64_t rows, bool is_log,
                         gn_tensor *result, gn_stream *stream);
    size_t softmax_row_bytes; /* of the longest row that it takes, as it is computed; 0: any */
    int64_t
        softmax_columns_least; /* shorter rows are a row program, which is as fast, and fuses with what follows */

    /* Queries that causal attention takes at a time, so that it leaves out keys that none of them sees; 0: all at once. */
    int64_t attention_rows;

    /* (optional) Runs a list program on a group of entries: ops/list_program.h. NULL: they are run one by one. */
    gn_status (*run_list)(const struct gni_list_program *list, gn_stream *stream);

    /* Fills `out`, contiguous: floating, but integers a type that has them all. */
    gn_status (*random)(const struct gni_random *random, gn_tensor *out, gn_stream *stream);
    bool has_random_halves; /* else halves are made of float32 */

    /* Where the largest or smallest element along a dimension is: the first of equal ones, and NaN before all. No size
     * is 0. `values` may be NULL; results are contiguous. */
    gn_status (*extreme)(gn_tensor *tensor, const struct gni_along *along, bool is_maximum,
                         gn_tensor *values, gn_tensor *indices, gn_stream *stream);

    /* Cumulative sums or products: src/ops/cpu/cpu_scan.h says of what. No size is 0. */
    gn_status (*cumulate)(gn_tensor *tensor, const struct gni_along *along, bool is_product,
                          gn_tensor *result, gn_stream *stream);

    /* Cumulative maxima or minima, and where they were, the last of equal ones. No size is 0. */
    gn_status (*cumulate_extreme)(gn_tensor *tensor, const struct gni_along *along, bool is_maximum,
                                  gn_tensor *values, gn_tensor *indices, gn_stream *stream);

    /* The first elements of sorted rows, and where they were: src/ops/cpu/cpu_sort.h says in which order. No size is 0;
     * either result may be NULL. */
    gn_status (*select)(gn_tensor *rows, const struct gni_selection *selection, gn_tensor *values,
                        gn_tensor *indices, gn_stream *stream);

    /* The different elements of a contiguous tensor, which has some: gni_unique() in src/ops/cpu/cpu_sort.h. */
    gn_status (*unique)(gn_tensor *tensor, gn_tensor *values, gn_tensor *inverse, gn_tensor *counts,
                        int64_t *found, gn_stream *stream);

    /* Computes a product, which has elements: their memory is in the order of the stream. */
    gn_status (*product)(const struct gni_product *product, gn_device *device, gn_stream *stream);

    /* (optional) The same for a product without a batch, to which a matrix of the same size is added, with strides
     * from 0 on: rounded once. Where it cannot, `is_done` is false, and nothing was done. */
    gn_status (*product_add)(const struct gni_product *product, const struct gni_matrix *addend,
                             gn_device *device, gn_stream *stream, bool *is_done);

    /* Which matrices of a product it pays to copy first, so that each is contiguous: GNI_COPY_*. */
    unsigned (*product_copies)(const struct gni_product *product, gn_device *device);

    /* (optional) A convolution of floating tensors of 5 dimensions, of kind RESULT, IMAGE or WEIGHT: tensor/tape.h says
     * what is given and made; `bias` may be NULL. Weights are contiguous, in the type that is computed in, and
     * so is a result of kind WEIGHT; `result` is contiguous, and has elements. NULL: it is made of products. */
    gn_status (*convolve)(const struct gni_convolution *convolution, gn_tensor *first,
                          gn_tensor *second, gn_tensor *bias, gn_tensor *result);

    /* (optional) The largest elements of windows of a contiguous matrix of float32 or float64: src/ops/max_pool.h.
     * `values` and `indices`, which may be NULL, are contiguous, and have elements. NULL: made of other operations. */
    gn_status (*pool_maximum)(const struct gni_pool *pool, gn_tensor *image, gn_tensor *values,
                              gn_tensor *indices);

    /* (optional, both or none) Sums of rows that are named, and their largest elements: src/ops/row_sums.h. Tensors are
     * contiguous and computed; factors, which may be NULL, have the result's type. Results have elements. */
    void (*row_sums)(gn_tensor *source, gn_tensor *factors, gn_tensor *from, gn_tensor *to,
                     gn_tensor *result);
    void (*row_maxima)(gn_tensor *source, gn_tensor *from, gn_tensor *to, gn_tensor *chosen);

    /* (optional) Rows of the first dimension become products, largest or smallest elements (by `op`: MULTIPLY, MAXIMUM or
     * MINIMUM; NaN wins) of themselves, if has_self, and of all values with their place. Tensors are contiguous, computed,
     * and have elements; the type is no half. NULL: values are sorted by their places. */
    void (*fold)(gn_op op, gn_tensor *rows, gn_tensor *places, gn_tensor *values, bool has_self);

    bool has_half_products; /* products of halves are several times faster than those of float32 */

    /* ---- keys; work is submitted to the current stream ---- */

    /* A plan whose index tensors are computed, read from a tensor into a new one: contiguous, in the plan's shape. A plan
     * has a mask only where memory is the host's (tensor/index_plan.h). GN_ERROR_INDEX if a number is out of range, at
     * once or from index_check(). */
    gn_status (*index_get)(const struct gni_index_plan *plan, gn_tensor *source, gn_tensor *result);

    /* The same, written, or added: elements of `value`, of the target's type, with `strides` for the plan's
     * dimensions; NULL: the bytes of `number`. Where a place is written twice the last value stays, and sums have one
     * order: the same call gives the same bits. What can fail before an element is written is done before. */
    gn_status (*index_set)(const struct gni_index_plan *plan, gn_tensor *target,
                           const gn_tensor *value, const int64_t *strides, uint64_t number,
                           bool is_accumulated);

    /* Where a contiguous mask, which is computed, is true, in row-major order, as int64: offsets by `strides`, or,
     * if that is NULL, rows of coordinates. Waits for the device: the number of them is the result's shape. */
    gn_status (*mask_places)(gn_tensor *mask, const int64_t *strides, gn_tensor **places);

    /* The elements of a tensor where a computed mask, of its shape, is true; and such elements, which take over those of
     * `values`, contiguous and of their type: GN_ERROR_SHAPE if these are not as many. Wait for the device, too. */
    gn_status (*mask_get)(gn_tensor *source, gn_tensor *mask, gn_tensor **result);
    gn_status (*mask_set)(gn_tensor *target, gn_tensor *mask, gn_tensor *values);

    /* Fails with GN_ERROR_INDEX, once, if a number of an index tensor was out of range in work that is done. */
    gn_status (*index_check)(gn_device *device);

    /* ---- searching and counting; tensors are contiguous, and have elements ---- */

    /* Where values belong in sequences of their type: gn_searchsorted(), int64. */
    gn_status (*search)(gn_tensor *sequence, gn_tensor *values, bool is_right, gn_tensor *result,
                        gn_stream *stream);

    /* The smallest and the largest of int64 numbers, for which the call waits; and how often each occurs: added to
     * `counts`, int64, of which there is one for each. */
    gn_status (*range)(gn_tensor *numbers, int64_t *least, int64_t *most, gn_stream *stream);
    gn_status (*count)(gn_tensor *numbers, gn_tensor *counts, gn_stream *stream);

    /* (optional) Counts in one look at the numbers, without their range, if they are small enough for that: a new tensor
     * of at least `minimum` counts, up to the last that is not 0. `made` is untouched where they are not. */
    gn_status (*count_small)(gn_tensor *numbers, int64_t minimum, gn_tensor **made);

    /* (optional) The element that is number `k` in ascending order, into `result`. NULL: the tensor must be sorted. */
    gn_status (*kth)(gn_tensor *tensor, int64_t k, gn_tensor *result);

    /* ---- new values ---- */

    /* The random permutation of `out`, int64, which has elements: philox.h says which one. */
    gn_status (*permutation)(struct gni_philox philox, gn_tensor *out, gn_stream *stream);

    /* (optional) Fills `out`, contiguous, with one number, or with numbers at equal distances: start + i * step, computed
     * in double or int64, as both are. NULL: made of other operations. */
    gn_status (*fill)(gn_scalar number, gn_tensor *out);
    gn_status (*sequence)(gn_scalar start, gn_scalar step, gn_tensor *out);

    /* (optional) Makes what common operations will need, or has it made in the background. */
    gn_status (*warm_up)(gn_device *device, bool is_waiting);

    /* ---- what pays ---- */

    /* Elements that the host computes, or copies, in less time than it takes to record or submit it: then it does so at
     * once, with src/ops/cpu. -1 where the host cannot access the memory (gni_device_host_can_access()). */
    int64_t small_most;
    int64_t copy_most;

    /* Sorted values alone cost much less than with the indices: these may then be computed later, by gni_sort(). */
    bool has_cheap_sort_values;

    /* Multiplications up to which a batch of sums is faster by elementwise operations than as a product of matrices. */
    int64_t batch_sums_most;
};

/* The type in which numbers at equal distances are computed. */
static inline gn_dtype gni_range_computing(gn_scalar start, gn_dtype dtype)
{
    return start.kind == GN_FLOAT64                        ? GN_FLOAT64
           : start.kind == GN_UINT64 || dtype == GN_UINT64 ? GN_UINT64
                                                           : GN_INT64;
}

extern const struct gni_backend gni_cpu_backend, gni_cuda_backend;

/* By gn_device_type: explain.c. */
extern _Atomic(const struct gni_backend *) gni_backends[GNI_DEVICE_TYPES];

/* The table of a device. */
static inline const struct gni_backend *gni_backend_get(const gn_device *device)
{
    return atomic_load_explicit(&gni_backends[device->type], memory_order_relaxed);
}

#endif
