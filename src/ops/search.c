/*
 * search.c: elements of all of a tensor by number or mask, and the other way round: where elements are.
 */
#include "tensor/tape.h"
#include "genesis/index.h"
#include "ops/recorder.h"

#include "ops/backend.h"

#include <string.h>

gn_status gn_take(gn_tensor *tensor, gn_tensor *index, gn_tensor **result)
{
    GN_CHECK_ARGUMENT(tensor != NULL && index != NULL && result != NULL,
                      "tensor, index and result must not be NULL");
    gn_tensor *flat;
    if (gni_dtype_kind(index->dtype) != GNI_KIND_INTEGER)
        return gni_error(GN_ERROR_TYPE, "take: an index is of integers, not of %s",
                         gni_dtypes[index->dtype].name);
    GN_TRY(gn_tensor_reshape(tensor, 1, &tensor->count, &flat));
    gn_status status =
        gn_index_get(flat, 1, &(gn_key){.kind = GN_KEY_TENSOR, .tensor = index}, result);
    gn_tensor_release(flat);
    return status;
}

gn_status gn_masked_select(gn_tensor *tensor, gn_tensor *mask, gn_tensor **result)
{
    GN_CHECK_ARGUMENT(tensor != NULL && mask != NULL && result != NULL,
                      "tensor, mask and result must not be NULL");
    struct gni_shape a = {.ndim = tensor->ndim}, b = {.ndim = mask->ndim}, both;
    gn_tensor *wide = NULL, *wide_mask = NULL;
    if (mask->dtype != GN_BOOL)
        return gni_error(GN_ERROR_TYPE, "masked_select: a mask is of bool, not of %s",
                         gni_dtypes[mask->dtype].name);
    memcpy(a.sizes, tensor->sizes, sizeof a.sizes);
    memcpy(b.sizes, mask->sizes, sizeof b.sizes);
    if (!gni_shape_broadcast(&a, &b, &both))
        return gni_error(
            GN_ERROR_SHAPE, "masked_select: shapes %s and %s cannot be broadcast together",
            gni_shape_text(a.ndim, a.sizes).text, gni_shape_text(b.ndim, b.sizes).text);
    gn_status status = gn_tensor_expand(tensor, both.ndim, both.sizes, &wide);
    if (status == GN_OK)
        status = gn_tensor_expand(mask, both.ndim, both.sizes, &wide_mask);
    if (status == GN_OK)
        status =
            gn_index_get(wide, 1, &(gn_key){.kind = GN_KEY_TENSOR, .tensor = wide_mask}, result);
    gn_tensor_release(wide_mask);
    gn_tensor_release(wide);
    return status;
}

/* Contiguous, in memory, of a type. */
static gn_status whole_take(gn_tensor *tensor, gn_dtype dtype, gn_tensor **whole)
{
    gn_tensor *cast;
    if (tensor->dtype == dtype) {
        GN_TRY(gni_tensor_flush(tensor));
        return gni_tensor_compact(tensor, whole);
    }
    GN_TRY(gn_cast(tensor, dtype, &cast));
    gn_status status = gni_tensor_flush(cast);
    if (status == GN_OK)
        *whole = cast;
    else
        gn_tensor_release(cast);
    return status;
}

/* ---- where elements are not 0 ------------------------------------------------------------------ */

gn_status gn_nonzero(gn_tensor *tensor, gn_tensor **result)
{
    GN_CHECK_ARGUMENT(tensor != NULL && result != NULL, "tensor and result must not be NULL");
    gn_tensor *truth;
    GN_TRY(whole_take(tensor, GN_BOOL, &truth));
    gn_status status = gni_backend_get(tensor->device)->mask_places(truth, NULL, result);
    gn_tensor_release(truth);
    return status;
}

/* ---- sorted sequences -------------------------------------------------------------------------- */

static gn_status search_check(const gn_tensor *sequence, const gn_tensor *values)
{
    bool fits = sequence->ndim == 1 || (sequence->ndim > 1 && sequence->ndim == values->ndim);
    for (int i = 0; fits && sequence->ndim > 1 && i + 1 < values->ndim; i++)
        fits = sequence->sizes[i] == values->sizes[i];
    if (fits)
        return GN_OK;
    return gni_error(GN_ERROR_SHAPE,
                     "searchsorted: a sequence of shape %s does not fit values of %s: it has one "
                     "dimension, or differs in the last one only",
                     gni_shape_text(sequence->ndim, sequence->sizes).text,
                     gni_shape_text(values->ndim, values->sizes).text);
}

/* Both contiguous, of one type. */
static gn_status values_search(gn_tensor *sequence, gn_tensor *values, bool is_right,
                               gn_tensor *result)
{
    gn_stream *stream;
    if (values->count == 0)
        return GN_OK;
    GN_TRY(gni_stream_of(values->device, &stream));
    return gni_backend_get(values->device)->search(sequence, values, is_right, result, stream);
}

gn_status gn_searchsorted(gn_tensor *sequence, gn_tensor *values, bool is_right, gn_tensor **result)
{
    GN_CHECK_ARGUMENT(sequence != NULL && values != NULL && result != NULL,
                      "sequence, values and result must not be NULL");
    GN_TRY(search_check(sequence, values));
    if (sequence->device != values->device)
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "searchsorted: the sequence and the values are on two devices");
    gn_dtype dtype;
    GN_TRY(gn_result_type(2, (gn_operand[]){{.tensor = sequence}, {.tensor = values}}, &dtype));
    gn_tensor *whole, *wanted = NULL, *made = NULL;
    GN_TRY(whole_take(sequence, dtype, &whole));
    gn_status status = whole_take(values, dtype, &wanted);
    if (status == GN_OK)
        status = gn_tensor_create(GN_INT64, values->ndim, values->sizes, values->device, &made);
    if (status == GN_OK)
        status = values_search(whole, wanted, is_right, made);
    gn_tensor_release(wanted);
    gn_tensor_release(whole);
    if (status == GN_OK)
        *result = made;
    else
        gn_tensor_release(made);
    return status;
}

/* ---- counting ---------------------------------------------------------------------------------- */

static gn_status bincount_check(const gn_tensor *tensor, const gn_tensor *weights, int64_t minimum)
{
    if (tensor->ndim != 1 || gni_dtype_kind(tensor->dtype) == GNI_KIND_FLOATING)
        return gni_error(tensor->ndim != 1 ? GN_ERROR_SHAPE : GN_ERROR_TYPE,
                         "bincount: integers of one dimension are counted, not %s of shape %s",
                         gni_dtypes[tensor->dtype].name,
                         gni_shape_text(tensor->ndim, tensor->sizes).text);
    if (weights != NULL &&
        !gni_shape_is_equal(tensor->ndim, tensor->sizes, weights->ndim, weights->sizes))
        return gni_error(GN_ERROR_SHAPE, "bincount: weights of shape %s for numbers of %s",
                         gni_shape_text(weights->ndim, weights->sizes).text,
                         gni_shape_text(tensor->ndim, tensor->sizes).text);
    if (minimum < 0)
        return gni_error(GN_ERROR_INVALID_VALUE, "bincount: the minimum length is negative: %lld",
                         (long long)minimum);
    return GN_OK;
}

/* How long the result is. */
static gn_status bincount_length(gn_tensor *numbers, int64_t minimum, int64_t *length)
{
    int64_t least = 0, most = -1;
    gn_stream *stream;
    GN_TRY(gni_stream_of(numbers->device, &stream));
    if (numbers->count > 0)
        GN_TRY(gni_backend_get(numbers->device)->range(numbers, &least, &most, stream));
    if (least < 0)
        return gni_error(GN_ERROR_INVALID_VALUE, "bincount: there is a negative number: %lld",
                         (long long)least);
    most = most < minimum - 1 ? minimum - 1 : most;
    *length = most < INT64_MAX ? most + 1 : most;
    return GN_OK;
}

/* Adds how often each number occurs. */
static gn_status numbers_count(gn_tensor *numbers, gn_tensor *counts)
{
    gn_stream *stream;
    GN_TRY(gni_tensor_flush(counts));
    if (numbers->count == 0)
        return GN_OK;
    GN_TRY(gni_stream_of(numbers->device, &stream));
    return gni_backend_get(numbers->device)->count(numbers, counts, stream);
}

/* How often each number occurs, or the sum of its weights. */
static gn_status numbers_sum(gn_tensor *numbers, gn_tensor *weights, int64_t minimum,
                             gn_tensor **result)
{
    gn_dtype dtype = weights == NULL                ? GN_INT64
                     : weights->dtype == GN_FLOAT32 ? GN_FLOAT32
                                                    : GN_FLOAT64;
    gn_operand zero = {.scalar = {.kind = GN_INT64}};
    gn_tensor *made;
    int64_t length;
    GN_TRY(bincount_length(numbers, minimum, &length));
    GN_TRY(gn_tensor_create(dtype, 1, &length, numbers->device, &made));
    gn_status status = gn_assign(made, zero);
    if (status == GN_OK && weights != NULL)
        status = gn_index_put(made, 0, numbers, (gn_operand){.tensor = weights}, true);
    else if (status == GN_OK)
        status = numbers_count(numbers, made);
    if (status == GN_OK)
        *result = made;
    else
        gn_tensor_release(made);
    return status;
}

gn_status gn_bincount(gn_tensor *tensor, gn_tensor *weights, int64_t minimum, gn_tensor **result)
{
    GN_CHECK_ARGUMENT(tensor != NULL && result != NULL, "tensor and result must not be NULL");
    GN_TRY(bincount_check(tensor, weights, minimum));
    GN_TRY(gni_tape_refuse("bincount", weights));
    if (weights != NULL && weights->device != tensor->device)
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "bincount: the numbers and the weights are on two devices");
    gn_tensor *numbers, *made = NULL;
    GN_TRY(whole_take(tensor, GN_INT64, &numbers));
    gn_status status = GN_OK;
    const struct gni_backend *backend = gni_backend_get(tensor->device);
    if (weights == NULL && backend->count_small != NULL && numbers->count > 0)
        status = backend->count_small(numbers, minimum, &made);
    if (status == GN_OK && made == NULL)
        status = numbers_sum(numbers, weights, minimum, &made);
    gn_tensor_release(numbers);
    if (status == GN_OK)
        *result = made;
    return status;
}
