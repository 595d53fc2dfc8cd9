/*
 * create.c: tensors of one number, of numbers at equal distances, and of others one behind the other.
 *
 * A device that has no loop for the first two makes them of operations that it has.
 */
#include "tensor/tape.h"
#include "base/checked.h"
#include "base/host.h"
#include "base/parallel.h"
#include "ops/backend.h"
#include "ops/promote.h"
#include "ops/op.h"
#include "tensor/tensor.h"

#include <string.h>

/* ---- one number ------------------------------------------------------------------------------- */

gn_status gn_full(gn_scalar value, gn_dtype dtype, int ndim, const int64_t *sizes,
                  gn_device *device, gn_tensor **result)
{
    gn_tensor *made;
    GN_CHECK_ARGUMENT(result != NULL, "result must not be NULL");
    GN_TRY(gn_tensor_create(dtype, ndim, sizes, device, &made));
    const struct gni_backend *backend = gni_backend_get(device);
    gn_status status = gni_number_check(value, dtype);
    if (status == GN_OK)
        status = backend->fill != NULL ? backend->fill(value, made)
                                       : gn_assign(made, (gn_operand){.scalar = value});
    if (status == GN_OK)
        *result = made;
    else
        gn_tensor_release(made);
    return status;
}

/* ---- numbers at equal distances --------------------------------------------------------------- */

/* Releases the operand, and puts the result in its place. */
static gn_status range_step(gn_status status, gn_op op, gn_scalar number, gn_tensor **tensor)
{
    gn_tensor *before = *tensor;
    if (status != GN_OK)
        return status;
    status = gn_elementwise(op, (gn_operand[]){{.tensor = before}, {.scalar = number}}, tensor);
    if (status == GN_OK)
        gn_tensor_release(before);
    return status;
}

static gn_status range_cast(gn_status status, gn_dtype dtype, gn_tensor **tensor)
{
    gn_tensor *before = *tensor;
    if (status != GN_OK)
        return status;
    status = gn_cast(before, dtype, tensor);
    if (status == GN_OK)
        gn_tensor_release(before);
    return status;
}

/* By operations: ones are added up. */
static gn_status range_compose(gn_scalar start, gn_scalar step, int64_t count, gn_dtype dtype,
                               gn_device *device, gn_tensor **result)
{
    gn_scalar one = {.kind = GN_INT64, .integer = 1};
    gn_tensor *ones, *made = NULL;
    GN_TRY(gn_full(one, GN_INT64, 1, &count, device, &ones));
    gn_status status = gn_cumulate(ones, 0, false, &made);
    gn_tensor_release(ones);
    status = range_step(status, GN_OP_SUBTRACT, one, &made);
    status = range_cast(status, gni_range_computing(start, dtype), &made);
    status = range_step(status, GN_OP_MULTIPLY, step, &made);
    status = range_step(status, GN_OP_ADD, start, &made);
    status = range_cast(status, dtype, &made);
    if (status == GN_OK)
        *result = made;
    else
        gn_tensor_release(made);
    return status;
}

gn_status gn_range(gn_scalar start, gn_scalar step, int64_t count, gn_dtype dtype,
                   gn_device *device, gn_tensor **result)
{
    gn_tensor *made;
    GN_CHECK_ARGUMENT(result != NULL && count >= 0 && device != NULL,
                      "result and device must not be NULL, count not negative");
    if ((start.kind == GN_FLOAT64) != (step.kind == GN_FLOAT64))
        return gni_error(GN_ERROR_INVALID_VALUE, "start and step must be of one kind");
    const struct gni_backend *backend = gni_backend_get(device);
    if (backend->sequence == NULL)
        return range_compose(start, step, count, dtype, device, result);
    GN_TRY(gn_tensor_create(dtype, 1, &count, device, &made));
    gn_status status = backend->sequence(start, step, made);
    if (status == GN_OK)
        *result = made;
    else
        gn_tensor_release(made);
    return status;
}

/* ---- one behind the other --------------------------------------------------------------------- */

/* Tensors of shape (0,) count as nothing. */
static bool is_nothing(const gn_tensor *tensor)
{
    return tensor->ndim == 1 && tensor->sizes[0] == 0;
}

/* The size of the dimension in which they follow each other; the first that counts, and whether all others fit it. */
static gn_status cat_check(int count, gn_tensor *const *tensors, int dimension,
                           const gn_tensor **first, int64_t *total)
{
    *first = NULL;
    *total = 0;
    for (int i = 0; i < count; i++) {
        const gn_tensor *one = tensors[i];
        if (one->ndim == 0)
            return gni_error(GN_ERROR_SHAPE,
                             "cat: tensors without dimensions cannot be put together: use stack()");
        if (is_nothing(one))
            continue;
        if (*first == NULL) {
            *first = one;
            if (dimension < -one->ndim || dimension >= one->ndim)
                return gni_error(GN_ERROR_INDEX, "cat: dimension %d is out of range for shape %s",
                                 dimension, gni_shape_text(one->ndim, one->sizes).text);
        }
        int at = dimension < 0 ? dimension + (*first)->ndim : dimension;
        bool is_fitting = one->ndim == (*first)->ndim;
        for (int d = 0; is_fitting && d < one->ndim; d++)
            is_fitting = d == at || one->sizes[d] == (*first)->sizes[d];
        if (!is_fitting)
            return gni_error(GN_ERROR_SHAPE,
                             "cat: shapes %s and %s differ in more than dimension %d",
                             gni_shape_text((*first)->ndim, (*first)->sizes).text,
                             gni_shape_text(one->ndim, one->sizes).text, dimension);
        if (one->device != (*first)->device)
            return gni_error(GN_ERROR_INVALID_VALUE,
                             "cat: one tensor is on %s and one on %s: move one with to()",
                             gni_device_label((*first)->device).text,
                             gni_device_label(one->device).text);
        if (__builtin_add_overflow(*total, one->sizes[at], total))
            return gni_error(GN_ERROR_SHAPE, "cat: the result has too many elements");
    }
    return GN_OK;
}

static gn_status cat_fill(gn_tensor *made, int count, gn_tensor *const *tensors, int at)
{
    int64_t begin = 0;
    for (int i = 0; i < count; i++) {
        if (is_nothing(tensors[i]) && made->ndim != 1)
            continue;
        gn_tensor *part;
        int64_t size = tensors[i]->sizes[at];
        GN_TRY(gn_tensor_slice(made, at, begin, 1, size, &part));
        gn_status status = gn_assign(part, (gn_operand){.tensor = tensors[i]});
        gn_tensor_release(part);
        GN_TRY(status);
        begin += size;
    }
    return GN_OK;
}

/* The type of all of them. */
static gn_status cat_dtype(int count, gn_tensor *const *tensors, gn_dtype *dtype)
{
    *dtype = tensors[0]->dtype;
    bool is_one = true;
    for (int i = 1; i < count; i++)
        is_one &= tensors[i]->dtype == *dtype;
    if (is_one)
        return GN_OK;
    size_t nbytes = (size_t)count * sizeof(gn_operand);
    gn_operand *operands = gni_host_alloc(nbytes);
    if (operands == NULL)
        return gni_error_host_memory(nbytes);
    for (int i = 0; i < count; i++)
        operands[i] = (gn_operand){.tensor = tensors[i]};
    gn_status status = gn_result_type(count, operands, dtype);
    gni_host_free(operands);
    return status;
}

static gn_status cat(int count, gn_tensor *const *tensors, int dimension, gn_tensor **result)
{
    GN_CHECK_ARGUMENT(tensors != NULL && result != NULL, "tensors and result must not be NULL");
    if (count < 1)
        return gni_error(GN_ERROR_INVALID_VALUE, "cat: there must be a tensor");
    const gn_tensor *first;
    int64_t total, sizes[GN_DIMENSIONS_MAX];
    gn_dtype dtype;
    gn_tensor *made;
    GN_TRY(cat_check(count, tensors, dimension, &first, &total));
    GN_TRY(cat_dtype(count, tensors, &dtype));
    if (first == NULL) { /* nothing counts: they have one dimension */
        first = tensors[0];
        if (dimension < -1 || dimension > 0)
            return gni_error(GN_ERROR_INDEX, "cat: dimension %d is out of range for shape (0,)",
                             dimension);
    }
    int at = dimension < 0 ? dimension + first->ndim : dimension;
    memcpy(sizes, first->sizes, sizeof sizes);
    sizes[at] = total;
    GN_TRY(gn_tensor_create(dtype, first->ndim, sizes, first->device, &made));
    gn_status status = cat_fill(made, count, tensors, at);
    if (status != GN_OK) {
        gn_tensor_release(made);
        return status;
    }
    *result = made;
    return GN_OK;
}

/* On the tape: the dimension, and the size of each tensor in it. */
static gn_status cat_taped(int count, gn_tensor *const *tensors, int dimension, gn_tensor **result)
{
    size_t each = sizeof(gn_operand) + sizeof(int64_t), nbytes = (size_t)count * each;
    gn_operand *inputs = gni_host_alloc(nbytes + sizeof(int64_t));
    if (inputs == NULL)
        return gni_error_host_memory(nbytes);
    int64_t *details = (int64_t *)(inputs + count);
    gni_tape_is_paused = true;
    gn_status status = cat(count, tensors, dimension, result);
    int at = dimension < 0 ? dimension + tensors[0]->ndim : dimension;
    details[0] = at;
    for (int i = 0; i < count && status == GN_OK; i++) {
        bool is_empty = tensors[i]->ndim == 1 && tensors[i]->count == 0; /* of any shape */
        inputs[i].tensor = tensors[i];
        details[1 + i] = is_empty ? 0 : tensors[i]->sizes[at];
    }
    status = gni_tape_leave(
        status, &(struct gni_tape_step){.rule = GNI_RULE_CAT,
                                        .name = "cat",
                                        .input_count = count,
                                        .inputs = inputs,
                                        .result_count = 1,
                                        .results = result,
                                        .details = details,
                                        .detail_bytes = sizeof(int64_t) * (size_t)(count + 1)});
    gni_host_free(inputs);
    return status;
}

gn_status gn_cat(int count, gn_tensor *const *tensors, int dimension, gn_tensor **result)
{
    for (int i = 0; tensors != NULL && i < count; i++)
        if (gni_is_taped(tensors[i]))
            return cat_taped(count, tensors, dimension, result);
    return cat(count, tensors, dimension, result);
}
