/*
 * cpu_search.c: where elements are, and how often: in the CPU's memory.
 */
#include "ops/cpu/cpu_ops.h"

#include "base/parallel.h"
#include "ops/cpu/cpu_sort.h"
#include "ops/cpu/loops.h"
#include "tensor/mask.h"

#include <string.h>

enum {
    GRAIN = 1 << 12,       /* places in a part */
    COUNT_GRAIN = 1 << 17, /* numbers that a part counts */
    BINS_FEW = 4096,       /* into how many bins */
};

/* ---- masks ------------------------------------------------------------------------------------- */

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
static gn_status mask_coordinates(const gn_tensor *mask, gn_tensor **result)
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

/* As offsets by strides. */
static gn_status mask_offsets(const gn_tensor *mask, const int64_t *strides, gn_tensor **result)
{
    struct gni_mask places;
    gn_tensor *made;
    GN_TRY(gni_mask_init(&places, gni_tensor_data(mask), mask->ndim, mask->sizes, strides));
    gn_status status = gn_tensor_create(GN_INT64, 1, &places.count, mask->device, &made);
    if (status == GN_OK) {
        gni_mask_offsets(&places, (int64_t *)(void *)gni_tensor_data(made));
        *result = made;
    }
    gni_mask_deinit(&places);
    return status;
}

gn_status gni_cpu_mask_places(gn_tensor *mask, const int64_t *strides, gn_tensor **places)
{
    return strides != NULL ? mask_offsets(mask, strides, places) : mask_coordinates(mask, places);
}

/* ---- sorted sequences -------------------------------------------------------------------------- */

/* One sequence for all values, or one for each row of them. */
gn_status gni_cpu_search(gn_tensor *sequence, gn_tensor *values, bool is_right, gn_tensor *result,
                         gn_stream *stream)
{
    (void)stream;
    int64_t *out = (int64_t *)(void *)gni_tensor_data(result);
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
    return GN_OK;
}

/* ---- counting ---------------------------------------------------------------------------------- */

gn_status gni_cpu_range(gn_tensor *numbers, int64_t *least, int64_t *most, gn_stream *stream)
{
    (void)stream;
    const int64_t *data = (const int64_t *)(const void *)gni_tensor_data(numbers);
    *least = *most = data[0];
    gni_reducers_find(GNI_REDUCTION_MINIMUM, GN_INT64).one(least, data, (size_t)numbers->count);
    gni_reducers_find(GNI_REDUCTION_MAXIMUM, GN_INT64).one(most, data, (size_t)numbers->count);
    return GN_OK;
}

gn_status gni_cpu_count(gn_tensor *numbers, gn_tensor *counts, gn_stream *stream)
{
    (void)stream;
    const int64_t *data = (const int64_t *)(const void *)gni_tensor_data(numbers);
    int64_t *out = (int64_t *)(void *)gni_tensor_data(counts);
    for (int64_t i = 0; i < numbers->count; i++)
        if (data[i] >= 0 && data[i] < counts->count) /* whatever others write meanwhile */
            out[data[i]]++;
    return GN_OK;
}

/* Numbers that are counted as long as they are small; the last bin is for all others. */
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

gn_status gni_cpu_count_small(gn_tensor *numbers, int64_t minimum, gn_tensor **made)
{
    enum {
        LOOKED_AT = 16 /* before all are: one large number decides */
    };
    if (minimum > BINS_FEW || numbers->count < BINS_FEW)
        return GN_OK;
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
