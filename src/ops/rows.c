/*
 * rows.c: what works along one dimension: sorting, selecting, cumulating; and the different elements.
 *
 * The dimension is brought to the end, and the rows made contiguous, by a view and a copy where there must be one;
 * the results are seen the other way round.
 */
#include "ops/backend.h"
#include "ops/move.h"
#include "ops/recorder.h"

#include "ops/cpu/extreme.h"
#include "ops/cpu/scan.h"
#include "ops/cpu/sort.h"

#include <string.h>

/* Exchanges a dimension with the last one. Twice is nothing. */
static gn_status dimension_exchange(gn_tensor *tensor, int dimension, gn_tensor **view)
{
    int order[GN_DIMENSIONS_MAX];
    for (int i = 0; i < tensor->ndim; i++)
        order[i] = i;
    if (tensor->ndim > 0) {
        order[dimension] = tensor->ndim - 1;
        order[tensor->ndim - 1] = dimension;
    }
    return gn_tensor_permute(tensor, order, view);
}

/* Rows of a dimension, contiguous. A tensor without dimensions is a row of one. */
static gn_status rows_make(gn_tensor *tensor, int dimension, gn_tensor **rows)
{
    gn_tensor *view;
    GN_TRY(dimension_exchange(tensor, dimension, &view));
    gn_status status = gni_tensor_compact(view, rows);
    if (status == GN_OK)
        status = gni_tensor_flush(*rows);
    gn_tensor_release(view);
    return status;
}

static size_t columns_of(const gn_tensor *rows)
{
    return rows->ndim > 0 ? (size_t)rows->sizes[rows->ndim - 1] : 1;
}

static size_t rows_of(const gn_tensor *rows)
{
    return rows->ndim > 0 ? (size_t)gni_shape_count(rows->ndim - 1, rows->sizes) : 1;
}

/* Room for results with `columns` in each row. */
static gn_status room_make(const gn_tensor *rows, gn_dtype dtype, int64_t columns, gn_tensor **room)
{
    int64_t sizes[GN_DIMENSIONS_MAX];
    memcpy(sizes, rows->sizes, sizeof sizes);
    if (rows->ndim > 0)
        sizes[rows->ndim - 1] = columns;
    return gn_tensor_create(dtype, rows->ndim, sizes, rows->device, room);
}

/* Rooms for values and indices, as far as they are wanted. */
static gn_status rooms_make(const gn_tensor *rows, int64_t columns, bool has_values,
                            bool has_indices, gn_tensor *rooms[2])
{
    if (has_values)
        GN_TRY(room_make(rows, rows->dtype, columns, &rooms[0]));
    if (has_indices)
        GN_TRY(room_make(rows, GN_INT64, columns, &rooms[1]));
    return GN_OK;
}

/* Results are seen with the dimension where it was; all or nothing. */
static gn_status rooms_show(gn_tensor *rooms[2], int dimension, gn_tensor **results[2])
{
    gn_tensor *shown[2] = {NULL};
    gn_status status = GN_OK;
    for (int i = 0; i < 2 && status == GN_OK; i++)
        if (rooms[i] != NULL)
            status = dimension_exchange(rooms[i], dimension, &shown[i]);
    for (int i = 0; i < 2; i++) {
        if (status == GN_OK && rooms[i] != NULL)
            *results[i] = shown[i];
        else
            gn_tensor_release(shown[i]);
    }
    return status;
}

static void *data_or_null(const gn_tensor *tensor)
{
    return tensor != NULL ? gni_tensor_data(tensor) : NULL;
}

struct selection {
    int64_t kept; /* of each row */
    bool is_topk, is_largest;
};

static gn_status select_rows(gn_tensor *tensor, int dimension, struct selection selection,
                             gn_tensor **values, gn_tensor **indices)
{
    gn_tensor *rows, *rooms[2] = {NULL}, **results[2] = {values, indices};
    GN_TRY(rows_make(tensor, dimension, &rows));
    gn_status status = rooms_make(rows, selection.kept, values != NULL, indices != NULL, rooms);
    if (status == GN_OK && rows->count > 0 && selection.kept > 0)
        status =
            selection.is_topk
                ? gni_topk(gni_tensor_data(rows), rows->dtype, rows_of(rows), columns_of(rows),
                           (size_t)selection.kept, selection.is_largest, true,
                           data_or_null(rooms[0]), data_or_null(rooms[1]))
                : gni_sort(gni_tensor_data(rows), rows->dtype, rows_of(rows), columns_of(rows),
                           selection.is_largest, data_or_null(rooms[0]), data_or_null(rooms[1]));
    if (status == GN_OK)
        status = rooms_show(rooms, dimension, results);
    gn_tensor_release(rooms[0]);
    gn_tensor_release(rooms[1]);
    gn_tensor_release(rows);
    return status;
}

gn_status gn_sort(gn_tensor *tensor, int dimension, bool is_descending, gn_tensor **values,
                  gn_tensor **indices)
{
    GN_CHECK_ARGUMENT(tensor != NULL, "tensor must not be NULL");
    int at;
    GN_TRY(gni_dimension_wrap(dimension, tensor->ndim, &at));
    if (!gni_device_is_host(tensor->device)) {
        gn_tensor *host, *made[2] = {NULL}, **const results[2] = {values, indices};
        GN_TRY(gni_host_copy(tensor, &host));
        gn_status status = gn_sort(host, dimension, is_descending, values != NULL ? &made[0] : NULL,
                                   indices != NULL ? &made[1] : NULL);
        gn_tensor_release(host);
        return gni_results_move(status, tensor->device, 2, made, results);
    }
    struct selection all = {.kept = tensor->ndim > 0 ? tensor->sizes[at] : 1,
                            .is_largest = is_descending};
    return select_rows(tensor, at, all, values, indices);
}

gn_status gn_topk(gn_tensor *tensor, int64_t k, int dimension, bool is_largest, gn_tensor **values,
                  gn_tensor **indices)
{
    GN_CHECK_ARGUMENT(tensor != NULL, "tensor must not be NULL");
    int at;
    GN_TRY(gni_dimension_wrap(dimension, tensor->ndim, &at));
    int64_t size = tensor->ndim > 0 ? tensor->sizes[at] : 1;
    if (k < 0 || k > size)
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "topk: there are 0 to %lld elements to take, not %lld", (long long)size,
                         (long long)k);
    if (!gni_device_is_host(tensor->device)) {
        gn_tensor *host, *made[2] = {NULL}, **const results[2] = {values, indices};
        GN_TRY(gni_host_copy(tensor, &host));
        gn_status status = gn_topk(host, k, dimension, is_largest, values != NULL ? &made[0] : NULL,
                                   indices != NULL ? &made[1] : NULL);
        gn_tensor_release(host);
        return gni_results_move(status, tensor->device, 2, made, results);
    }
    struct selection some = {.kept = k, .is_topk = true, .is_largest = is_largest};
    return select_rows(tensor, at, some, values, indices);
}

/* Takes the elements at indices out of rows. */
static void elements_take(const gn_tensor *rows, const int64_t *indices, char *values)
{
    size_t size = gni_dtype_size(rows->dtype), columns = columns_of(rows);
    const char *data = gni_tensor_data(rows);
    for (size_t row = 0; row < rows_of(rows); row++)
        memcpy(values + row * size, data + (row * columns + (size_t)indices[row]) * size, size);
}

gn_status gn_extreme(gn_tensor *tensor, int dimension, bool is_maximum, gn_tensor **values,
                     gn_tensor **indices)
{
    GN_CHECK_ARGUMENT(tensor != NULL, "tensor must not be NULL");
    int at;
    gn_tensor *rows, *rooms[2] = {NULL}, *shown[2] = {NULL}, **results[2] = {&shown[0], &shown[1]};
    GN_TRY(gni_dimension_wrap(dimension, tensor->ndim, &at));
    if (tensor->ndim > 0 && tensor->sizes[at] == 0)
        return gni_error(GN_ERROR_SHAPE,
                         "there is no largest or smallest of no elements (shape %s)",
                         gni_shape_text(tensor->ndim, tensor->sizes).text);
    if (!gni_device_is_host(tensor->device)) {
        gn_tensor *host, *made[2] = {NULL}, **const outs[2] = {values, indices};
        GN_TRY(gni_host_copy(tensor, &host));
        gn_status done = gn_extreme(host, dimension, is_maximum, values != NULL ? &made[0] : NULL,
                                    indices != NULL ? &made[1] : NULL);
        gn_tensor_release(host);
        return gni_results_move(done, tensor->device, 2, made, outs);
    }
    GN_TRY(rows_make(tensor, at, &rows));
    gn_status status = rooms_make(rows, 1, values != NULL, true, rooms);
    if (status == GN_OK && rows->count > 0) {
        int64_t *found = (int64_t *)(void *)gni_tensor_data(rooms[1]);
        gni_extreme_find(gni_tensor_data(rows), rows->dtype, rows_of(rows), columns_of(rows),
                         is_maximum, found);
        if (values != NULL)
            elements_take(rows, found, gni_tensor_data(rooms[0]));
    }
    if (status == GN_OK)
        status = rooms_show(rooms, at, results);
    if (status == GN_OK && values != NULL)
        status = gn_tensor_squeeze(shown[0], at, values);
    if (status == GN_OK && indices != NULL) {
        status = gn_tensor_squeeze(shown[1], at, indices);
        if (status != GN_OK && values != NULL)
            gn_tensor_release(*values);
    }
    gn_tensor *rest[] = {rows, rooms[0], rooms[1], shown[0], shown[1]};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        gn_tensor_release(rest[i]);
    return status;
}

gn_status gn_cumulate(gn_tensor *tensor, int dimension, bool is_product, gn_tensor **result)
{
    GN_CHECK_ARGUMENT(tensor != NULL && result != NULL, "tensor and result must not be NULL");
    int at;
    gn_tensor *whole, *made;
    GN_TRY(gni_dimension_wrap(dimension, tensor->ndim, &at));
    if (!gni_device_is_host(tensor->device)) {
        gn_tensor *host, *cumulated = NULL, **const results[1] = {result};
        GN_TRY(gni_host_copy(tensor, &host));
        gn_status done = gn_cumulate(host, dimension, is_product, &cumulated);
        gn_tensor_release(host);
        return gni_results_move(done, tensor->device, 1, &cumulated, results);
    }
    GN_TRY(gni_tensor_compact(tensor, &whole));
    gn_dtype dtype = gni_dtype_kind(tensor->dtype) == GNI_KIND_FLOATING ? tensor->dtype : GN_INT64;
    gn_status status = gni_tensor_flush(whole);
    if (status == GN_OK)
        status = gn_tensor_create(dtype, tensor->ndim, tensor->sizes, tensor->device, &made);
    if (status == GN_OK) {
        int ndim = whole->ndim;
        size_t outer = ndim > 0 ? (size_t)gni_shape_count(at, whole->sizes) : 1;
        size_t inner = ndim > 0 ? (size_t)gni_shape_count(ndim - at - 1, whole->sizes + at + 1) : 1;
        if (whole->count > 0)
            status = gni_scan(is_product ? GNI_SCAN_PRODUCT : GNI_SCAN_SUM, gni_tensor_data(whole),
                              whole->dtype, outer, ndim > 0 ? (size_t)whole->sizes[at] : 1, inner,
                              gni_tensor_data(made), dtype, NULL);
        if (status == GN_OK)
            *result = made;
        else
            gn_tensor_release(made);
    }
    gn_tensor_release(whole);
    return status;
}

gn_status gn_unique(gn_tensor *tensor, gn_tensor **values, gn_tensor **inverse, gn_tensor **counts)
{
    GN_CHECK_ARGUMENT(tensor != NULL && values != NULL, "tensor and values must not be NULL");
    gn_tensor *whole, *rooms[3] = {NULL}, *shown[2] = {NULL};
    size_t found = 0;
    if (!gni_device_is_host(tensor->device)) {
        gn_tensor *host, *made[3] = {NULL}, **const results[3] = {values, inverse, counts};
        GN_TRY(gni_host_copy(tensor, &host));
        gn_status done = gn_unique(host, &made[0], inverse != NULL ? &made[1] : NULL,
                                   counts != NULL ? &made[2] : NULL);
        gn_tensor_release(host);
        return gni_results_move(done, tensor->device, 3, made, results);
    }
    GN_TRY(gni_tensor_compact(tensor, &whole));
    gn_status status = gni_tensor_flush(whole);
    if (status == GN_OK)
        status = gn_tensor_create(tensor->dtype, 1, &whole->count, tensor->device, &rooms[0]);
    if (status == GN_OK && counts != NULL)
        status = gn_tensor_create(GN_INT64, 1, &whole->count, tensor->device, &rooms[1]);
    if (status == GN_OK && inverse != NULL)
        status = gn_tensor_create(GN_INT64, whole->ndim, whole->sizes, tensor->device, &rooms[2]);
    if (status == GN_OK && whole->count > 0)
        status = gni_unique(gni_tensor_data(whole), whole->dtype, (size_t)whole->count,
                            gni_tensor_data(rooms[0]), data_or_null(rooms[2]),
                            data_or_null(rooms[1]), &found);
    for (int i = 0; i < 2 && status == GN_OK; i++)
        if (rooms[i] != NULL)
            status = gn_tensor_slice(rooms[i], 0, 0, 1, (int64_t)found, &shown[i]);
    if (status == GN_OK) {
        *values = shown[0];
        if (counts != NULL)
            *counts = shown[1];
        if (inverse != NULL)
            *inverse = rooms[2];
        rooms[2] = shown[0] = shown[1] = NULL;
    }
    gn_tensor *rest[] = {whole, rooms[0], rooms[1], rooms[2], shown[0], shown[1]};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        gn_tensor_release(rest[i]);
    return status;
}
