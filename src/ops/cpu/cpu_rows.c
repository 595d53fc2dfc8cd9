/*
 * cpu_rows.c: from tensors to the memory that the functions of this folder work on.
 */
#include "ops/cpu/cpu_ops.h"

#include "ops/cpu/cpu_random.h"
#include "ops/cpu/cpu_scan.h"
#include "ops/cpu/cpu_sort.h"

#include <string.h>

gn_status gni_cpu_random(const struct gni_random *random, gn_tensor *out, gn_stream *stream)
{
    (void)stream;
    void *data = gni_tensor_data(out);
    size_t count = (size_t)out->count;
    switch (random->kind) {
    case GNI_RANDOM_UNIFORM:
        gni_random_uniform(random->philox, out->dtype, data, count);
        break;
    case GNI_RANDOM_NORMAL:
        gni_random_normal(random->philox, out->dtype, data, count);
        break;
    case GNI_RANDOM_INTEGERS:
        gni_random_integers(random->philox, out->dtype, random->low, random->high, data, count);
        break;
    }
    return GN_OK;
}

static void *data_or_null(const gn_tensor *tensor)
{
    return tensor != NULL ? gni_tensor_data(tensor) : NULL;
}

gn_status gni_cpu_extreme(gn_tensor *tensor, const struct gni_along *along, bool is_maximum,
                          gn_tensor *values, gn_tensor *indices, gn_stream *stream)
{
    (void)stream;
    const char *data = gni_tensor_data(tensor);
    int64_t *found = (int64_t *)(void *)gni_tensor_data(indices);
    gni_extreme_find(data, tensor->dtype, along, is_maximum, found);
    if (values == NULL)
        return GN_OK;
    size_t size = gni_dtype_size(tensor->dtype), inner = (size_t)along->inner;
    char *taken = gni_tensor_data(values);
    for (size_t row = 0; row < (size_t)along->outer * inner; row++) {
        size_t at = (row / inner * (size_t)along->length + (size_t)found[row]) * inner;
        memcpy(taken + row * size, data + (at + row % inner) * size, size);
    }
    return GN_OK;
}

gn_status gni_cpu_cumulate(gn_tensor *tensor, const struct gni_along *along, bool is_product,
                           gn_tensor *result, gn_stream *stream)
{
    (void)stream;
    return gni_scan(is_product ? GNI_SCAN_PRODUCT : GNI_SCAN_SUM, gni_tensor_data(tensor),
                    tensor->dtype, (size_t)along->outer, (size_t)along->length,
                    (size_t)along->inner, gni_tensor_data(result), result->dtype, NULL);
}

gn_status gni_cpu_cumulate_extreme(gn_tensor *tensor, const struct gni_along *along,
                                   bool is_maximum, gn_tensor *values, gn_tensor *indices,
                                   gn_stream *stream)
{
    (void)stream;
    return gni_scan(is_maximum ? GNI_SCAN_MAXIMUM : GNI_SCAN_MINIMUM, gni_tensor_data(tensor),
                    tensor->dtype, (size_t)along->outer, (size_t)along->length,
                    (size_t)along->inner, gni_tensor_data(values), values->dtype,
                    (int64_t *)(void *)gni_tensor_data(indices));
}

gn_status gni_cpu_select(gn_tensor *rows, const struct gni_selection *selection, gn_tensor *values,
                         gn_tensor *indices, gn_stream *stream)
{
    (void)stream;
    size_t count = (size_t)selection->rows, columns = (size_t)selection->columns;
    if (selection->is_sort)
        return gni_sort(gni_tensor_data(rows), rows->dtype, count, columns,
                        selection->is_descending, data_or_null(values), data_or_null(indices));
    return gni_topk(gni_tensor_data(rows), rows->dtype, count, columns, (size_t)selection->kept,
                    selection->is_descending, true, data_or_null(values), data_or_null(indices));
}

gn_status gni_cpu_unique(gn_tensor *tensor, gn_tensor *values, gn_tensor *inverse,
                         gn_tensor *counts, int64_t *found, gn_stream *stream)
{
    (void)stream;
    size_t count;
    GN_TRY(gni_unique(gni_tensor_data(tensor), tensor->dtype, (size_t)tensor->count,
                      gni_tensor_data(values), data_or_null(inverse), data_or_null(counts),
                      &count));
    *found = (int64_t)count;
    return GN_OK;
}

gn_status gni_cpu_kth(gn_tensor *tensor, int64_t k, gn_tensor *result)
{
    return gni_kth(gni_tensor_data(tensor), tensor->dtype, (size_t)tensor->count, (size_t)k,
                   gni_tensor_data(result));
}

gn_status gni_cpu_permutation(struct gni_philox philox, gn_tensor *out, gn_stream *stream)
{
    (void)stream;
    return gni_random_permutation(philox, (int64_t *)(void *)gni_tensor_data(out),
                                  (size_t)out->count);
}
