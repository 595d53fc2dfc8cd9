/*
 * arrange.c: copies of elements in another order, or repeated.
 *
 * They are copies of views: negative strides turn a dimension, and a stride of 0 repeats it.
 */
#include "tensor/tape.h"
#include "base/text.h"
#include "ops/backend.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/recorder.h"
#include "tensor/tensor.h"

static gn_status flip(gn_tensor *tensor, uint32_t dimensions, gn_tensor **result)
{
    GN_CHECK_ARGUMENT(tensor != NULL && result != NULL, "tensor and result must not be NULL");
    int64_t strides[GN_DIMENSIONS_MAX], offset = 0;
    gn_tensor *view;
    GN_TRY(gni_tensor_flush(tensor));
    for (int i = 0; i < tensor->ndim; i++) {
        bool is_turned = (dimensions >> i & 1) != 0 && tensor->sizes[i] > 1;
        strides[i] = is_turned ? -tensor->strides[i] : tensor->strides[i];
        offset += is_turned && tensor->count > 0 ? (tensor->sizes[i] - 1) * tensor->strides[i] : 0;
    }
    GN_TRY(gni_tensor_alias_as(tensor, offset, tensor->ndim, tensor->sizes, strides, &view));
    gn_status status = gn_cast(view, tensor->dtype, result);
    gn_tensor_release(view);
    return status;
}

gn_status gn_flip(gn_tensor *tensor, uint32_t dimensions, gn_tensor **result)
{
    bool is_taped = gni_tape_enter(tensor);
    gn_status status = flip(tensor, dimensions, result);
    if (!is_taped)
        return status;
    return gni_tape_leave_one(status, GNI_RULE_FLIP, "flip", tensor, result, &dimensions,
                              sizeof dimensions);
}

/* A contiguous tensor, each element `count` times along a dimension, into a shape that is checked. */
static gn_status repeat(gn_tensor *tensor, int at, int64_t count, const int64_t *sizes,
                        gn_tensor **result)
{
    int64_t inner = gni_shape_count(tensor->ndim - at - 1, tensor->sizes + at + 1);
    int64_t length = tensor->sizes[at], outer = gni_shape_count(at, tensor->sizes);
    /* One more dimension, in which the elements are repeated; the rest of them joined. */
    const int64_t wide[] = {outer, length, count, inner};
    const int64_t from[] = {length * inner, inner, 0, 1};
    const int64_t to[] = {length * count * inner, count * inner, inner, 1};
    int64_t total = outer * length * count * inner;
    gn_tensor *view, *copy;
    if (total > 0 && total <= gni_backend_get(tensor->device)->copy_most) {
        GN_TRY(gn_tensor_create(tensor->dtype, tensor->ndim, sizes, tensor->device, result));
        gni_copy_strided(gni_tensor_data(*result), to, gni_tensor_data(tensor), from, 4, wide,
                         gni_dtype_size(tensor->dtype));
        return GN_OK;
    }
    GN_TRY(gni_tensor_alias_as(tensor, 0, 4, wide, from, &view));
    gn_status status = gn_cast(view, tensor->dtype, &copy);
    gn_tensor_release(view);
    GN_TRY(status);
    status = gn_tensor_view(copy, tensor->ndim, sizes, result);
    gn_tensor_release(copy);
    return status;
}

static gn_status repeat_interleave(gn_tensor *tensor, int dimension, int64_t count,
                                   gn_tensor **result)
{
    GN_CHECK_ARGUMENT(tensor != NULL && result != NULL, "tensor and result must not be NULL");
    int64_t sizes[GN_DIMENSIONS_MAX], total;
    gn_tensor *whole;
    int at;
    if (tensor->ndim == 0)
        return gni_error(GN_ERROR_SHAPE, "repeat_interleave: the tensor has no dimensions");
    GN_TRY(gni_dimension_wrap(dimension, tensor->ndim, &at));
    if (count < 0)
        return gni_error(GN_ERROR_INVALID_VALUE, "repeat_interleave: counts are not negative");
    for (int i = 0; i < tensor->ndim; i++)
        sizes[i] = tensor->sizes[i];
    if (__builtin_mul_overflow(sizes[at], count, &sizes[at]))
        return gni_error(GN_ERROR_SHAPE,
                         "repeat_interleave: %lld times %lld element%s is more than a tensor can "
                         "have",
                         (long long)count, (long long)tensor->sizes[at],
                         gni_plural((uint64_t)tensor->sizes[at]));
    GN_TRY(gni_shape_check(tensor->ndim, sizes, gni_dtype_size(tensor->dtype), &total));
    GN_TRY(gni_tensor_compact(tensor, &whole));
    gn_status status = gni_tensor_flush(whole);
    if (status == GN_OK)
        status = repeat(whole, at, count, sizes, result);
    gn_tensor_release(whole);
    return status;
}

gn_status gn_repeat_interleave(gn_tensor *tensor, int dimension, int64_t count, gn_tensor **result)
{
    bool is_taped = gni_tape_enter(tensor);
    gn_status status = repeat_interleave(tensor, dimension, count, result);
    if (!is_taped)
        return status;
    const struct gni_repeat_details details = {
        .dimension = dimension < 0 ? dimension + tensor->ndim : dimension, .count = count};
    return gni_tape_leave_one(status, GNI_RULE_REPEAT, "repeat_interleave", tensor, result,
                              &details, sizeof details);
}
