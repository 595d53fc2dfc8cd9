/*
 * rows.c: what works along one dimension: sorting, selecting, cumulating; and the different elements.
 *
 * The dimension is brought to the end, and the rows made contiguous, by a view and a copy where there must be one;
 * the results are seen the other way round.
 */
#include "tensor/tape.h"
#include "ops/backend.h"
#include "base/text.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/cpu_sort.h"
#include "ops/recorder.h"

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
    if (status == GN_OK) {
        status = gni_tensor_flush(*rows);
        if (status != GN_OK)
            gn_tensor_release(*rows);
    }
    gn_tensor_release(view);
    return status;
}

/* A tensor without dimensions is a row of one. */
static struct gni_along along_of(const gn_tensor *tensor, int dimension)
{
    if (tensor->ndim == 0)
        return (struct gni_along){1, 1, 1};
    return (struct gni_along){
        .outer = gni_shape_count(dimension, tensor->sizes),
        .length = tensor->sizes[dimension],
        .inner = gni_shape_count(tensor->ndim - dimension - 1, tensor->sizes + dimension + 1),
    };
}

static int last_of(const gn_tensor *tensor)
{
    return tensor->ndim > 0 ? tensor->ndim - 1 : 0;
}

/* Room for results of another size in a dimension. */
static gn_status room_make(const gn_tensor *rows, gn_dtype dtype, int dimension, int64_t size,
                           gn_tensor **room)
{
    int64_t sizes[GN_DIMENSIONS_MAX];
    memcpy(sizes, rows->sizes, sizeof sizes);
    if (rows->ndim > 0)
        sizes[dimension] = size;
    return gn_tensor_create(dtype, rows->ndim, sizes, rows->device, room);
}

/* Rooms for values and indices, as far as they are wanted. */
static gn_status rooms_make(const gn_tensor *rows, int dimension, int64_t size, bool has_values,
                            bool has_indices, gn_tensor *rooms[2])
{
    if (has_values)
        GN_TRY(room_make(rows, rows->dtype, dimension, size, &rooms[0]));
    if (has_indices)
        GN_TRY(room_make(rows, GN_INT64, dimension, size, &rooms[1]));
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

static gn_status select_rows(gn_tensor *tensor, int dimension, struct gni_selection selection,
                             gn_tensor **values, gn_tensor **indices)
{
    gn_tensor *rows, *rooms[2] = {NULL}, **results[2] = {values, indices};
    gn_stream *stream;
    GN_TRY(gni_stream_of(tensor->device, &stream));
    GN_TRY(rows_make(tensor, dimension, &rows));
    struct gni_along along = along_of(rows, last_of(rows));
    selection.rows = along.outer;
    selection.columns = along.length;
    gn_status status =
        rooms_make(rows, last_of(rows), selection.kept, values != NULL, indices != NULL, rooms);
    if (status == GN_OK && rows->count > 0 && selection.kept > 0)
        status =
            gni_backend_get(rows->device)->select(rows, &selection, rooms[0], rooms[1], stream);
    if (status == GN_OK)
        status = rooms_show(rooms, dimension, results);
    gn_tensor_release(rooms[0]);
    gn_tensor_release(rooms[1]);
    gn_tensor_release(rows);
    return status;
}

enum {
    DEFERRED_LEAST = 1 << 8, /* elements whose sorting takes longer than to record it */
};

static gn_status positions_run(const struct gni_deferred *deferred, const void *from, void *to)
{
    return gni_sort(from, deferred->dtype, (size_t)deferred->rows, (size_t)deferred->columns,
                    deferred->is_descending, NULL, to);
}

/* Whether others can reach, and change, the elements. */
static bool is_escaped(const gn_tensor *tensor)
{
    const struct gni_storage *storage = gni_tensor_storage(tensor);
    return storage != NULL && atomic_load_explicit(&storage->is_escaped, memory_order_relaxed);
}

/* Values alone take half of the time on the CPU, and those who ask for both often want no more: where the elements
 * were waits until somebody reads it. */
static gn_status sort_by_halves(gn_tensor *tensor, int dimension, bool is_descending,
                                gn_tensor **values, gn_tensor **indices)
{
    gn_tensor *rows, *room, *shown;
    struct gni_deferred deferred = {.run = positions_run,
                                    .dtype = tensor->dtype,
                                    .columns = tensor->sizes[dimension],
                                    .is_descending = is_descending};
    deferred.rows = tensor->count / deferred.columns;
    GN_TRY(rows_make(tensor, dimension, &rows));
    if (is_escaped(rows)) {
        gn_tensor *own;
        gn_status copied = gn_cast(rows, rows->dtype, &own);
        gn_tensor_release(rows);
        GN_TRY(copied);
        rows = own;
    }
    gn_status status = gn_tensor_create(rows->dtype, rows->ndim, rows->sizes, rows->device, &room);
    if (status == GN_OK) {
        status = gni_sort(gni_tensor_data(rows), deferred.dtype, (size_t)deferred.rows,
                          (size_t)deferred.columns, is_descending, gni_tensor_data(room), NULL);
        if (status == GN_OK && dimension != tensor->ndim - 1) {
            status = dimension_exchange(room, dimension, &shown);
            gn_tensor_release(room);
            room = status == GN_OK ? shown : NULL;
        }
        if (status == GN_OK)
            status = gni_record_deferred(&deferred, rows, dimension, GN_INT64, indices);
        if (status == GN_OK)
            *values = room;
        else
            gn_tensor_release(room);
    }
    gn_tensor_release(rows);
    return status;
}

/* Whether that can wait. What others may change is copied, as long as that takes no time. */
static bool sort_can_wait(const gn_tensor *tensor)
{
    const struct gni_backend *backend = gni_backend_get(tensor->device);
    return backend->has_cheap_sort_values && tensor->count >= DEFERRED_LEAST && gn_get_fusion() &&
           (tensor->count <= backend->copy_most || !is_escaped(tensor));
}

static gn_status sort(gn_tensor *tensor, int dimension, bool is_descending, gn_tensor **values,
                      gn_tensor **indices)
{
    GN_CHECK_ARGUMENT(tensor != NULL, "tensor must not be NULL");
    int at;
    GN_TRY(gni_dimension_wrap(dimension, tensor->ndim, &at));
    struct gni_selection all = {.kept = tensor->ndim > 0 ? tensor->sizes[at] : 1,
                                .is_descending = is_descending,
                                .is_sort = true};
    if (values != NULL && indices != NULL && sort_can_wait(tensor))
        return sort_by_halves(tensor, at, is_descending, values, indices);
    return select_rows(tensor, at, all, values, indices);
}

/* The end of an operation on the tape whose values are elements by their indices. */
static gn_status values_tape(gn_status status, enum gni_places kind, const char *name,
                             gn_tensor *tensor, int dimension, gn_tensor **values,
                             gn_tensor **indices, gn_tensor *made)
{
    if (status != GN_OK || values == NULL) {
        gni_tape_is_paused = false;
    } else {
        status = gni_tape_leave_places(status, kind, name, tensor, dimension, made, values);
    }
    if (status == GN_OK && indices != NULL)
        *indices = made;
    else
        gn_tensor_release(made);
    return status;
}

gn_status gn_sort(gn_tensor *tensor, int dimension, bool is_descending, gn_tensor **values,
                  gn_tensor **indices)
{
    if (!gni_tape_enter(tensor))
        return sort(tensor, dimension, is_descending, values, indices);
    gn_tensor *made = NULL;
    gn_status status = sort(tensor, dimension, is_descending, values, &made);
    return values_tape(status, GNI_PLACES_GATHER, "sort", tensor, dimension, values, indices, made);
}

static gn_status topk(gn_tensor *tensor, int64_t k, int dimension, bool is_largest,
                      gn_tensor **values, gn_tensor **indices)
{
    GN_CHECK_ARGUMENT(tensor != NULL, "tensor must not be NULL");
    int at;
    GN_TRY(gni_dimension_wrap(dimension, tensor->ndim, &at));
    int64_t size = tensor->ndim > 0 ? tensor->sizes[at] : 1;
    if (k < 0 || k > size)
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "topk: k is %lld, and dimension %d has %lld element%s", (long long)k, at,
                         (long long)size, gni_plural((uint64_t)size));
    if (tensor->ndim ==
        0) /* has no dimension that could become 0: it is taken in any case, as in PyTorch */
        k = 1;
    struct gni_selection some = {.kept = k, .is_descending = is_largest};
    return select_rows(tensor, at, some, values, indices);
}

gn_status gn_topk(gn_tensor *tensor, int64_t k, int dimension, bool is_largest, gn_tensor **values,
                  gn_tensor **indices)
{
    if (!gni_tape_enter(tensor))
        return topk(tensor, k, dimension, is_largest, values, indices);
    gn_tensor *made = NULL;
    gn_status status = topk(tensor, k, dimension, is_largest, values, &made);
    return values_tape(status, GNI_PLACES_GATHER, "topk", tensor, dimension, values, indices, made);
}

static gn_status extreme(gn_tensor *tensor, int dimension, bool is_maximum, gn_tensor **values,
                         gn_tensor **indices)
{
    GN_CHECK_ARGUMENT(tensor != NULL, "tensor must not be NULL");
    int at, ndim = tensor->ndim > 0 ? tensor->ndim - 1 : 0;
    int64_t sizes[GN_DIMENSIONS_MAX];
    gn_stream *stream;
    gn_tensor *whole, *made[2] = {NULL};
    GN_TRY(gni_dimension_wrap(dimension, tensor->ndim, &at));
    if (tensor->ndim > 0 && tensor->sizes[at] == 0)
        return gni_error(GN_ERROR_SHAPE,
                         "there is no largest or smallest of no elements (shape %s)",
                         gni_shape_text(tensor->ndim, tensor->sizes).text);
    for (int i = 0; i < ndim; i++)
        sizes[i] = tensor->sizes[i < at ? i : i + 1];
    GN_TRY(gni_stream_of(tensor->device, &stream));
    GN_TRY(gni_tensor_compact(tensor, &whole));
    gn_status status = gni_tensor_flush(whole);
    if (status == GN_OK && values != NULL)
        status = gn_tensor_create(whole->dtype, ndim, sizes, whole->device, &made[0]);
    if (status == GN_OK)
        status = gn_tensor_create(GN_INT64, ndim, sizes, whole->device, &made[1]);
    if (status == GN_OK && whole->count > 0) {
        struct gni_along along = along_of(whole, at);
        status = gni_backend_get(whole->device)
                     ->extreme(whole, &along, is_maximum, made[0], made[1], stream);
    }
    gn_tensor_release(whole);
    if (status == GN_OK && values != NULL)
        *values = made[0];
    else
        gn_tensor_release(made[0]);
    if (status == GN_OK && indices != NULL)
        *indices = made[1];
    else
        gn_tensor_release(made[1]);
    return status;
}

gn_status gn_extreme(gn_tensor *tensor, int dimension, bool is_maximum, gn_tensor **values,
                     gn_tensor **indices)
{
    if (!gni_tape_enter(tensor))
        return extreme(tensor, dimension, is_maximum, values, indices);
    gn_tensor *made = NULL;
    gn_status status = extreme(tensor, dimension, is_maximum, values, &made);
    return values_tape(status, GNI_PLACES_REDUCED, "max", tensor, dimension, values, indices, made);
}

/* Where a device has no selection: by sorting. */
static gn_status kth_by_sort(gn_tensor *tensor, int64_t k, gn_tensor **result)
{
    gn_tensor *flat, *sorted = NULL;
    GN_TRY(gn_tensor_reshape(tensor, 1, &(const int64_t){-1}, &flat));
    gn_status status = gn_sort(flat, 0, false, &sorted, NULL);
    if (status == GN_OK)
        status = gn_tensor_select(sorted, 0, k, result);
    gn_tensor_release(flat);
    gn_tensor_release(sorted);
    return status;
}

static gn_status kth(gn_tensor *tensor, int64_t k, gn_tensor **result)
{
    GN_CHECK_ARGUMENT(tensor != NULL && result != NULL, "tensor and result must not be NULL");
    gn_tensor *whole, *made = NULL;
    const struct gni_backend *backend = gni_backend_get(tensor->device);
    if (k < 0 || k >= tensor->count)
        return gni_error(GN_ERROR_INDEX, "kth: there is no element number %lld of %lld",
                         (long long)k, (long long)tensor->count);
    if (backend->kth == NULL)
        return kth_by_sort(tensor, k, result);
    GN_TRY(gni_tensor_compact(tensor, &whole));
    gn_status status = gni_tensor_flush(whole);
    if (status == GN_OK)
        status = gn_tensor_create(whole->dtype, 0, NULL, whole->device, &made);
    if (status == GN_OK)
        status = backend->kth(whole, k, made);
    gn_tensor_release(whole);
    if (status == GN_OK)
        *result = made;
    else
        gn_tensor_release(made);
    return status;
}

gn_status gn_kth(gn_tensor *tensor, int64_t k, gn_tensor **result)
{
    bool is_taped = gni_tape_enter(tensor);
    gn_status status = kth(tensor, k, result);
    if (!is_taped)
        return status;
    return gni_tape_leave_one(status, GNI_RULE_KTH, "median", tensor, result, NULL, 0);
}

static gn_status cumulate(gn_tensor *tensor, int dimension, bool is_product, gn_tensor **result)
{
    GN_CHECK_ARGUMENT(tensor != NULL && result != NULL, "tensor and result must not be NULL");
    int at;
    gn_stream *stream;
    gn_tensor *whole, *made;
    GN_TRY(gni_dimension_wrap(dimension, tensor->ndim, &at));
    GN_TRY(gni_stream_of(tensor->device, &stream));
    GN_TRY(gni_tensor_compact(tensor, &whole));
    gn_dtype dtype = gni_dtype_of_sum(tensor->dtype);
    gn_status status = gni_tensor_flush(whole);
    if (status == GN_OK)
        status = gn_tensor_create(dtype, tensor->ndim, tensor->sizes, tensor->device, &made);
    if (status == GN_OK) {
        struct gni_along along = along_of(whole, at);
        if (whole->count > 0)
            status =
                gni_backend_get(whole->device)->cumulate(whole, &along, is_product, made, stream);
        if (status == GN_OK)
            *result = made;
        else
            gn_tensor_release(made);
    }
    gn_tensor_release(whole);
    return status;
}

gn_status gn_cumulate(gn_tensor *tensor, int dimension, bool is_product, gn_tensor **result)
{
    bool is_taped = gni_tape_enter(tensor);
    gn_status status = cumulate(tensor, dimension, is_product, result);
    if (!is_taped)
        return status;
    const struct gni_cumulate_details details = {
        .dimension = dimension < 0 ? dimension + tensor->ndim : dimension,
        .is_product = is_product};
    return gni_tape_leave_one(status, GNI_RULE_CUMULATE, is_product ? "cumprod" : "cumsum", tensor,
                              result, &details, sizeof details);
}

static gn_status cumulate_extreme(gn_tensor *tensor, int dimension, bool is_maximum,
                                  gn_tensor **values, gn_tensor **indices)
{
    GN_CHECK_ARGUMENT(tensor != NULL && values != NULL && indices != NULL,
                      "tensor, values and indices must not be NULL");
    int at;
    gn_stream *stream;
    gn_tensor *whole, *rooms[2] = {NULL};
    GN_TRY(gni_dimension_wrap(dimension, tensor->ndim, &at));
    GN_TRY(gni_stream_of(tensor->device, &stream));
    GN_TRY(gni_tensor_compact(tensor, &whole));
    struct gni_along along = along_of(whole, at);
    gn_status status = gni_tensor_flush(whole);
    if (status == GN_OK)
        status = rooms_make(whole, at, along.length, true, true, rooms);
    if (status == GN_OK && whole->count > 0)
        status = gni_backend_get(whole->device)
                     ->cumulate_extreme(whole, &along, is_maximum, rooms[0], rooms[1], stream);
    gn_tensor_release(whole);
    if (status != GN_OK) {
        gn_tensor_release(rooms[0]);
        gn_tensor_release(rooms[1]);
        return status;
    }
    *values = rooms[0];
    *indices = rooms[1];
    return GN_OK;
}

gn_status gn_cumulate_extreme(gn_tensor *tensor, int dimension, bool is_maximum, gn_tensor **values,
                              gn_tensor **indices)
{
    if (!gni_tape_enter(tensor))
        return cumulate_extreme(tensor, dimension, is_maximum, values, indices);
    gn_tensor *made = NULL;
    gn_status status = cumulate_extreme(tensor, dimension, is_maximum, values, &made);
    return values_tape(status, GNI_PLACES_GATHER, "cummax", tensor, dimension, values, indices,
                       made);
}

gn_status gn_unique(gn_tensor *tensor, gn_tensor **values, gn_tensor **inverse, gn_tensor **counts)
{
    GN_CHECK_ARGUMENT(tensor != NULL && values != NULL, "tensor and values must not be NULL");
    GN_TRY(gni_tape_refuse("unique", tensor));
    gn_tensor *whole, *rooms[3] = {NULL}, *shown[2] = {NULL};
    int64_t found = 0;
    gn_stream *stream;
    GN_TRY(gni_stream_of(tensor->device, &stream));
    GN_TRY(gni_tensor_compact(tensor, &whole));
    gn_status status = gni_tensor_flush(whole);
    if (status == GN_OK)
        status = gn_tensor_create(tensor->dtype, 1, &whole->count, tensor->device, &rooms[0]);
    if (status == GN_OK && counts != NULL)
        status = gn_tensor_create(GN_INT64, 1, &whole->count, tensor->device, &rooms[1]);
    if (status == GN_OK && inverse != NULL)
        status = gn_tensor_create(GN_INT64, whole->ndim, whole->sizes, tensor->device, &rooms[2]);
    if (status == GN_OK && whole->count > 0)
        status = gni_backend_get(whole->device)
                     ->unique(whole, rooms[0], rooms[2], rooms[1], &found, stream);
    for (int i = 0; i < 2 && status == GN_OK; i++)
        if (rooms[i] != NULL)
            status = gn_tensor_slice(rooms[i], 0, 0, 1, found, &shown[i]);
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
