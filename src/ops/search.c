/*
 * search.c: elements of all of a tensor by number or mask, and the other way round: where elements are.
 */
#include "genesis/index.h"
#include "ops/recorder.h"

#include "base/parallel.h"
#include "ops/backend.h"
#include "ops/cpu/loops.h"
#include "ops/cpu/sort.h"
#include "tensor/mask.h"

#include <string.h>

enum {
    GRAIN = 1 << 12,       /* places in a part */
    COUNT_GRAIN = 1 << 17, /* numbers that a part counts */
    BINS_FEW = 4096,       /* into how many bins */
};

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

struct unravel {
    const int64_t *numbers; /* ascending */
    int64_t *out;
    int ndim;
    const int64_t *sizes;
};

/* Numbers become coordinates; from one to the next mostly the last one changes. */
static void unravel_run(void *context, size_t begin, size_t end)
{
    const struct unravel *task = context;
    int last = task->ndim - 1;
    int64_t at[GN_DIMENSIONS_MAX], row_begin = 0, row_end = 0;
    for (size_t i = begin; i < end; i++) {
        int64_t number = task->numbers[i];
        if (number >= row_end) {
            int64_t rest = number / task->sizes[last];
            row_begin = rest * task->sizes[last];
            row_end = row_begin + task->sizes[last];
            for (int d = last - 1; d >= 0; d--) {
                at[d] = rest % task->sizes[d];
                rest /= task->sizes[d];
            }
        }
        at[last] = number - row_begin;
        memcpy(task->out + i * (size_t)task->ndim, at, sizeof *at * (size_t)task->ndim);
    }
}

/* The numbers of true bytes, and their coordinates. */
static gn_status mask_places(const gn_tensor *mask, gn_tensor **result)
{
    struct gni_mask places;
    int64_t strides[GN_DIMENSIONS_MAX];
    gn_tensor *numbers = NULL, *made = NULL;
    gni_strides_contiguous(mask->ndim, mask->sizes, strides);
    GN_TRY(gni_mask_init(&places, gni_tensor_data(mask), mask->ndim, mask->sizes, strides));
    int64_t shape[] = {places.count, mask->ndim};
    gn_status status = gn_tensor_create(GN_INT64, 1, shape, mask->device, &numbers);
    if (status == GN_OK && mask->ndim == 1)
        status = gn_tensor_view(numbers, 2, shape, &made);
    else if (status == GN_OK)
        status = gn_tensor_create(GN_INT64, 2, shape, mask->device, &made);
    if (status == GN_OK) {
        gni_mask_offsets(&places, (int64_t *)(void *)gni_tensor_data(numbers));
        if (mask->ndim > 1) {
            struct unravel task = {(const int64_t *)(const void *)gni_tensor_data(numbers),
                                   (int64_t *)(void *)gni_tensor_data(made), mask->ndim,
                                   mask->sizes};
            gni_parallel_for((size_t)places.count, GRAIN, unravel_run, &task);
        }
        *result = made;
    }
    gn_tensor_release(numbers);
    gni_mask_deinit(&places);
    return status;
}

gn_status gn_nonzero(gn_tensor *tensor, gn_tensor **result)
{
    GN_CHECK_ARGUMENT(tensor != NULL && result != NULL, "tensor and result must not be NULL");
    gn_tensor *truth;
    GN_TRY(whole_take(tensor, GN_BOOL, &truth));
    gn_status status = gni_device_is_host(tensor->device)
                           ? mask_places(truth, result)
                           : gni_backend_get(tensor->device)->mask_places(truth, NULL, result);
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

/* One sequence for all values, or one for each row of them. */
static void rows_search(const gn_tensor *sequence, const gn_tensor *values, bool is_right,
                        int64_t *out)
{
    size_t length = (size_t)sequence->sizes[sequence->ndim - 1];
    size_t size = gni_dtype_size(sequence->dtype), rows = 1, each = (size_t)values->count;
    if (sequence->ndim > 1) {
        rows = (size_t)gni_shape_count(values->ndim - 1, values->sizes);
        each = (size_t)values->sizes[values->ndim - 1];
    }
    for (size_t row = 0; row < rows; row++)
        gni_search_sorted(gni_tensor_data(sequence) + row * length * size, sequence->dtype, length,
                          gni_tensor_data(values) + row * each * size, each, is_right,
                          out + row * each);
}

/* Both contiguous, of one type. */
static gn_status values_search(gn_tensor *sequence, gn_tensor *values, bool is_right,
                               gn_tensor *result)
{
    gn_stream *stream;
    if (values->count == 0)
        return GN_OK;
    if (gni_device_is_host(values->device)) {
        rows_search(sequence, values, is_right, (int64_t *)(void *)gni_tensor_data(result));
        return GN_OK;
    }
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

/* Numbers on the host that are counted as long as they are small; the last bin is for all others. */
struct counting {
    const int64_t *data;
    _Atomic(int64_t) counts[BINS_FEW + 1];
};

/* A part counts by itself, and then adds that to the others'. */
static void count_part(void *context, size_t begin, size_t end)
{
    struct counting *counting = context;
    uint32_t own[BINS_FEW + 1] = {0};
    for (size_t i = begin; i < end; i++) {
        uint64_t number = (uint64_t)counting->data[i];
        own[number < BINS_FEW ? number : BINS_FEW]++;
    }
    for (size_t i = 0; i <= BINS_FEW; i++)
        if (own[i] != 0)
            atomic_fetch_add_explicit(&counting->counts[i], own[i], memory_order_relaxed);
}

/* In one look at the numbers, if all are small, which is seen then; otherwise nothing is made. */
static gn_status small_count(const gn_tensor *numbers, int64_t minimum, gn_tensor **made)
{
    enum {
        LOOKED_AT = 16 /* before all are: one large number decides */
    };
    struct counting counting = {.data = (const int64_t *)(void *)gni_tensor_data(numbers)};
    for (int i = 0; i < LOOKED_AT; i++)
        if ((uint64_t)counting.data[i] >= BINS_FEW)
            return GN_OK;
    gni_parallel_for((size_t)numbers->count, COUNT_GRAIN, count_part, &counting);
    if (counting.counts[BINS_FEW] != 0)
        return GN_OK;
    int64_t length = BINS_FEW;
    while (length > minimum && counting.counts[length - 1] == 0)
        length--;
    GN_TRY(gn_tensor_create(GN_INT64, 1, &length, numbers->device, made));
    int64_t *out = (int64_t *)(void *)gni_tensor_data(*made);
    for (int64_t i = 0; i < length; i++)
        out[i] = counting.counts[i];
    return GN_OK;
}

/* From where to where numbers go, of which there are some. */
static gn_status numbers_range(gn_tensor *numbers, int64_t *least, int64_t *most)
{
    const int64_t *data = (const int64_t *)(const void *)gni_tensor_data(numbers);
    gn_stream *stream;
    if (!gni_device_is_host(numbers->device)) {
        GN_TRY(gni_stream_of(numbers->device, &stream));
        return gni_backend_get(numbers->device)->range(numbers, least, most, stream);
    }
    *least = *most = data[0];
    gni_folds_find(GNI_REDUCTION_MINIMUM, GN_INT64).one(least, data, (size_t)numbers->count);
    gni_folds_find(GNI_REDUCTION_MAXIMUM, GN_INT64).one(most, data, (size_t)numbers->count);
    return GN_OK;
}

/* How long the result is. */
static gn_status bincount_length(gn_tensor *numbers, int64_t minimum, int64_t *length)
{
    int64_t least = 0, most = -1;
    if (numbers->count > 0)
        GN_TRY(numbers_range(numbers, &least, &most));
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
    const int64_t *data = (const int64_t *)(const void *)gni_tensor_data(numbers);
    int64_t *out = (int64_t *)(void *)gni_tensor_data(counts);
    if (!gni_device_is_host(numbers->device)) {
        GN_TRY(gni_stream_of(numbers->device, &stream));
        return gni_backend_get(numbers->device)->count(numbers, counts, stream);
    }
    for (int64_t i = 0; i < numbers->count; i++)
        if (data[i] >= 0 && data[i] < counts->count) /* whatever others write meanwhile */
            out[data[i]]++;
    return GN_OK;
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
    if (weights != NULL && weights->device != tensor->device)
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "bincount: the numbers and the weights are on two devices");
    gn_tensor *numbers, *made = NULL;
    GN_TRY(whole_take(tensor, GN_INT64, &numbers));
    gn_status status = GN_OK;
    if (weights == NULL && gni_device_is_host(tensor->device) && minimum <= BINS_FEW &&
        numbers->count >= BINS_FEW)
        status = small_count(numbers, minimum, &made);
    if (status == GN_OK && made == NULL)
        status = numbers_sum(numbers, weights, minimum, &made);
    gn_tensor_release(numbers);
    if (status == GN_OK)
        *result = made;
    return status;
}
