/*
 * softmax.c: softmax along a dimension: by the device's own way where it has one for the last dimension, else made
 * of reductions and elementwise operations, which fuse.
 */
#include "tensor/tape.h"
#include "ops/backend.h"
#include "ops/recorder.h"

enum {
    ROWS_LEAST = 16384, /* elements that are worth a row program */
};

static gn_status binary(gn_op op, gn_tensor *a, gn_tensor *b, gn_tensor **result)
{
    return gn_elementwise(op, (gn_operand[]){{.tensor = a}, {.tensor = b}}, result);
}

static gn_status unary(gn_op op, gn_tensor *tensor, gn_tensor **result)
{
    return gn_elementwise(op, &(gn_operand){.tensor = tensor}, result);
}

/* x - max(x), from which powers do not overflow. */
static gn_status shift(gn_tensor *tensor, uint32_t dimensions, gn_tensor **shifted)
{
    gn_tensor *largest;
    GN_TRY(gn_reduce(GN_REDUCE_MAXIMUM, tensor, dimensions, true, &largest));
    gn_status status = binary(GN_OP_SUBTRACT, tensor, largest, shifted);
    gn_tensor_release(largest);
    return status;
}

static gn_status softmax_make(gn_tensor *tensor, uint32_t dimensions, bool is_log,
                              gn_tensor **result)
{
    gn_tensor *shifted, *powers = NULL, *sum = NULL, *logarithm = NULL;
    GN_TRY(shift(tensor, dimensions, &shifted));
    gn_status status = unary(GN_OP_EXP, shifted, &powers);
    if (status == GN_OK)
        status = gn_reduce(GN_REDUCE_SUM, powers, dimensions, true, &sum);
    if (status == GN_OK && is_log)
        status = unary(GN_OP_LOG, sum, &logarithm);
    if (status == GN_OK)
        status = is_log ? binary(GN_OP_SUBTRACT, shifted, logarithm, result)
                        : binary(GN_OP_DIVIDE, powers, sum, result);
    gn_tensor *rest[] = {shifted, powers, sum, logarithm};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        gn_tensor_release(rest[i]);
    return status;
}

static gn_status softmax_run(gn_tensor *tensor, bool is_log, gn_tensor **result)
{
    const struct gni_backend *backend = gni_backend_get(tensor->device);
    int order[GN_DIMENSIONS_MAX];
    struct gni_work work;
    gn_tensor *made;
    for (int i = 0; i < tensor->ndim; i++)
        order[i] = i;
    int64_t rows = gni_shape_count(tensor->ndim - 1, tensor->sizes);
    GN_TRY(gn_tensor_create(tensor->dtype, tensor->ndim, tensor->sizes, tensor->device, &made));
    gn_status status;
    do {
        status = gni_work_begin(&work, tensor, order);
        if (status == GN_OK) {
            status = backend->softmax(&work.program, work.value, rows, is_log, made, work.stream);
            gni_work_end(&work);
        }
    } while (gni_work_split(&work, tensor, &status));
    if (status != GN_OK) {
        gn_tensor_release(made);
        return status;
    }
    *result = made;
    return GN_OK;
}

/* The sum of many halves is beyond them. */
static gn_status softmax_widened(gn_tensor *tensor, uint32_t dimensions, bool is_log,
                                 gn_tensor **result)
{
    gn_tensor *wide, *made = NULL;
    GN_TRY(gn_cast(tensor, GN_FLOAT32, &wide));
    gn_status status = softmax_make(wide, dimensions, is_log, &made);
    if (status == GN_OK)
        status = gn_cast(made, tensor->dtype, result);
    gn_tensor_release(wide);
    gn_tensor_release(made);
    return status;
}

/* Whether the device has a way of its own for rows as long as the last dimension, and that is the faster one. */
static bool has_own_way(const gn_tensor *tensor, int dimension)
{
    const struct gni_backend *backend = gni_backend_get(tensor->device);
    if (backend->softmax == NULL || tensor->ndim == 0 || dimension != tensor->ndim - 1)
        return false;
    if (tensor->count >= ROWS_LEAST && tensor->is_contiguous && tensor->sizes[dimension] > 1 &&
        tensor->sizes[dimension] < backend->softmax_columns_least)
        return false;
    size_t size = gni_dtype_size(gni_dtypes[tensor->dtype].compute);
    return backend->softmax_row_bytes == 0 ||
           (size_t)tensor->sizes[dimension] <= backend->softmax_row_bytes / size;
}

static gn_status softmax(gn_tensor *tensor, int dimension, bool is_log, gn_tensor **result)
{
    GN_CHECK_ARGUMENT(tensor != NULL && result != NULL, "tensor and result must not be NULL");
    int at;
    if (gni_dtype_kind(tensor->dtype) != GNI_KIND_FLOATING)
        return gni_error(GN_ERROR_TYPE, "%s of %s is not defined: convert to a floating type first",
                         is_log ? "log_softmax" : "softmax", gni_dtypes[tensor->dtype].name);
    GN_TRY(gni_dimension_wrap(dimension, tensor->ndim, &at));
    if (has_own_way(tensor, at))
        return softmax_run(tensor, is_log, result);
    if (tensor->count == 0)
        return gn_tensor_create(tensor->dtype, tensor->ndim, tensor->sizes, tensor->device, result);
    uint32_t dimensions = tensor->ndim > 0 ? UINT32_C(1) << at : 0;
    return gni_dtype_is_half(tensor->dtype) ? softmax_widened(tensor, dimensions, is_log, result)
                                            : softmax_make(tensor, dimensions, is_log, result);
}

gn_status gn_softmax(gn_tensor *tensor, int dimension, bool is_log, gn_tensor **result)
{
    bool is_taped = gni_tape_enter(tensor);
    gn_status status = softmax(tensor, dimension, is_log, result);
    if (!is_taped)
        return status;
    const struct gni_softmax_details details = {
        .dimension = dimension < 0 ? dimension + tensor->ndim : dimension, .is_log = is_log};
    return gni_tape_leave_one(status, GNI_RULE_SOFTMAX, is_log ? "log_softmax" : "softmax", tensor,
                              result, &details, sizeof details);
}
