/*
 * reduce.c: reductions over any dimensions, with the pending elementwise operations before them in the same pass.
 *
 * The dimensions that go are seen as the last ones, whatever their place: rows of them are reduced. Among themselves they
 * come in the order of their strides, so that memory is walked forwards.
 */
#include "tensor/tape.h"
#include "ops/backend.h"
#include "base/text.h"
#include "ops/recorder.h"

#include <stdlib.h>

const char *gni_reduction_name(gn_reduction reduction)
{
    static const char *const names[] = {
#define NAME(NAME, name) #name,
        GN_REDUCTION_LIST(NAME)
#undef NAME
    };
    return names[reduction];
}

/* The type of the result. */
static gn_status result_type(gn_reduction reduction, gn_dtype dtype, gn_dtype *result)
{
    enum gni_kind kind = gni_dtypes[dtype].kind;
    switch (reduction) {
    case GN_REDUCE_SUM:
    case GN_REDUCE_PRODUCT:
        *result = gni_dtype_of_sum(dtype);
        return GN_OK;
    case GN_REDUCE_MEAN:
        *result = dtype;
        if (kind != GNI_KIND_FLOATING)
            return gni_error(GN_ERROR_TYPE,
                             "mean of %s is not defined: convert to a floating type first",
                             gni_dtypes[dtype].name);
        return GN_OK;
    case GN_REDUCE_ANY:
    case GN_REDUCE_ALL:
        *result = GN_BOOL;
        return GN_OK;
    case GN_REDUCE_MAXIMUM:
    case GN_REDUCE_MINIMUM:
    case GN_REDUCTION_COUNT:
        break;
    }
    *result = dtype;
    return GN_OK;
}

enum {
    COLUMNS_LEAST = 16, /* that are worth being reduced side by side */
};

struct layout {
    int order[GN_DIMENSIONS_MAX]; /* kept dimensions, then those that go; or the other way round */
    bool is_by_columns;
    struct gni_shape result;
    int64_t rows, columns;
};

/* Adds the dimensions that go, the largest stride first. */
static int order_add_reduced(const gn_tensor *tensor, uint32_t dimensions, int *order, int used)
{
    int first = used;
    for (int i = 0; i < tensor->ndim; i++) {
        if ((dimensions >> i & 1) == 0)
            continue;
        int at = used++;
        for (; at > first && llabs(tensor->strides[order[at - 1]]) < llabs(tensor->strides[i]);
             at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    return used;
}

static void layout_make(const gn_tensor *tensor, uint32_t dimensions, bool has_dimensions,
                        struct layout *layout)
{
    int used = 0;
    *layout = (struct layout){.rows = 1, .columns = 1};
    for (int i = 0; i < tensor->ndim; i++) {
        bool is_kept = (dimensions >> i & 1) == 0;
        if (is_kept)
            layout->rows *= tensor->sizes[i];
        else
            layout->columns *= tensor->sizes[i];
        if (is_kept || has_dimensions)
            layout->result.sizes[layout->result.ndim++] = is_kept ? tensor->sizes[i] : 1;
    }
    /* Where what is kept lies close together, and what goes far apart, columns are reduced. */
    int last = tensor->ndim - 1;
    while (last >= 0 && ((dimensions >> last & 1) != 0 || tensor->sizes[last] == 1))
        last--;
    layout->is_by_columns = last >= 0 && tensor->strides[last] == 1 &&
                            tensor->sizes[last] >= COLUMNS_LEAST && layout->columns > 1;
    for (int pass = 0; pass < 2; pass++)
        if (pass == (layout->is_by_columns ? 0 : 1))
            used = order_add_reduced(tensor, dimensions, layout->order, used);
        else
            for (int i = 0; i < tensor->ndim; i++)
                if ((dimensions >> i & 1) == 0)
                    layout->order[used++] = i;
}

/* How many of the last dimensions are reduced, if no others are; else 0. */
static int rows_find(const gn_tensor *tensor, uint32_t dimensions)
{
    int row_ndim = 0;
    while (row_ndim < tensor->ndim && (dimensions >> (tensor->ndim - 1 - row_ndim) & 1) != 0)
        row_ndim++;
    uint32_t others = tensor->ndim > row_ndim ? (UINT32_C(1) << (tensor->ndim - row_ndim)) - 1 : 0;
    return (dimensions & others) == 0 ? row_ndim : 0;
}

/* Whether the elements of each row lie one behind the other. */
static bool has_dense_rows(const gn_tensor *tensor, int row_ndim)
{
    int64_t count = 1;
    for (int i = tensor->ndim - 1; i >= tensor->ndim - row_ndim; i--) {
        if (tensor->sizes[i] != 1 && tensor->strides[i] != count)
            return false;
        count *= tensor->sizes[i];
    }
    return true;
}

/* Whether a reduction is one of rows that may wait, and be part of a program with others. This depends on the shape, the type
 * and where the elements lie, so that equal reductions add in one order. */
static bool can_wait(const gn_tensor *tensor, const struct layout *layout, int row_ndim)
{
    const struct gni_backend *backend = gni_backend_get(tensor->device);
    return row_ndim > 0 && layout->columns > 1 && layout->rows > 0 && !layout->is_by_columns &&
           tensor->count > backend->small_most && has_dense_rows(tensor, row_ndim) &&
           backend->rows_fit(layout->rows, layout->columns);
}

/* How many of the last dimensions stay, if a sum over all others may wait for a program that reads the same; else 0. It
 * depends on what can_wait() depends on. */
static int columns_find(gn_reduction reduction, const gn_tensor *tensor, uint32_t dimensions,
                        const struct layout *layout)
{
    int kept_ndim = 0;
    while (kept_ndim < tensor->ndim && (dimensions >> (tensor->ndim - 1 - kept_ndim) & 1) == 0)
        kept_ndim++;
    uint32_t others = (UINT32_C(1) << (tensor->ndim - kept_ndim)) - 1;
    bool is_fit = reduction == GN_REDUCE_SUM && gni_dtypes[tensor->dtype].compute == GN_FLOAT32 &&
                  kept_ndim > 0 && dimensions == others && tensor->is_contiguous &&
                  gni_backend_get(tensor->device)->columns_fit(layout->columns, layout->rows);
    return is_fit ? kept_ndim : 0;
}

static gn_status reduce(gn_reduction reduction, gn_tensor *tensor, uint32_t dimensions,
                        bool has_dimensions, gn_tensor **out)
{
    GN_CHECK_ARGUMENT((unsigned)reduction < GN_REDUCTION_COUNT && tensor != NULL && out != NULL,
                      "reduction must be one, tensor and result not NULL");
    uint32_t all = tensor->ndim > 0 ? (UINT32_C(1) << tensor->ndim) - 1 : 0;
    struct layout layout;
    gn_dtype dtype;
    GN_TRY(result_type(reduction, tensor->dtype, &dtype));
    if ((dimensions & ~all) != 0)
        return gni_error(GN_ERROR_INDEX, "%s: a tensor of %d dimension%s has no such dimension",
                         gni_reduction_name(reduction), tensor->ndim,
                         gni_plural((uint64_t)tensor->ndim));
    layout_make(tensor, dimensions != 0 ? dimensions : all, has_dimensions, &layout);
    if (layout.columns == 0 && (reduction == GN_REDUCE_MAXIMUM || reduction == GN_REDUCE_MINIMUM))
        return gni_error(GN_ERROR_SHAPE, "%s: of no elements it is not defined (shape %s)",
                         gni_reduction_name(reduction),
                         gni_shape_text(tensor->ndim, tensor->sizes).text);
    int row_ndim = rows_find(tensor, dimensions != 0 ? dimensions : all);
    if (can_wait(tensor, &layout, row_ndim))
        return gni_record_reduction(reduction, tensor, row_ndim, has_dimensions, dtype, out);
    int kept_ndim = columns_find(reduction, tensor, dimensions != 0 ? dimensions : all, &layout);
    if (kept_ndim > 0)
        return gni_record_columns(tensor, kept_ndim, has_dimensions, dtype, out);
    gn_tensor *result;
    struct gni_work work;
    struct gni_reduction_task task = {.reduction = reduction,
                                      .is_by_columns = layout.is_by_columns,
                                      .kept = layout.rows,
                                      .reduced = layout.columns};
    GN_TRY(
        gn_tensor_create(dtype, layout.result.ndim, layout.result.sizes, tensor->device, &result));
    gn_status status;
    do {
        status = gni_work_begin(&work, tensor, layout.order);
        if (status == GN_OK) {
            status = gni_backend_get(tensor->device)
                         ->reduce(&work.program, work.value, &task, result, work.stream);
            gni_work_end(&work);
        }
    } while (status != GN_OK && gni_work_split(&work, tensor, &status));
    if (status != GN_OK) {
        gn_tensor_release(result);
        return status;
    }
    *out = result;
    return GN_OK;
}

gn_status gn_reduce(gn_reduction reduction, gn_tensor *tensor, uint32_t dimensions,
                    bool has_dimensions, gn_tensor **out)
{
    bool is_taped = gni_tape_enter(tensor);
    gn_status status = reduce(reduction, tensor, dimensions, has_dimensions, out);
    if (!is_taped)
        return status;
    const struct gni_reduce_details details = {reduction, dimensions};
    return gni_tape_leave_one(status, GNI_RULE_REDUCE, gni_reduction_name(reduction), tensor, out,
                              &details, sizeof details);
}

gn_status gni_sum_as(gn_tensor *tensor, uint32_t dimensions, bool has_dimensions, gn_dtype dtype,
                     gn_tensor **result)
{
    struct layout layout;
    gn_tensor *sum;
    if (dimensions != 0 && !gni_is_taped(tensor) && tensor->dtype == GN_FLOAT32 &&
        gni_dtype_is_half(dtype)) {
        layout_make(tensor, dimensions, has_dimensions, &layout);
        int kept_ndim = columns_find(GN_REDUCE_SUM, tensor, dimensions, &layout);
        if (kept_ndim > 0)
            return gni_record_columns(tensor, kept_ndim, has_dimensions, dtype, result);
    }
    GN_TRY(gn_reduce(GN_REDUCE_SUM, tensor, dimensions, has_dimensions, &sum));
    if (sum->dtype == dtype) {
        *result = sum;
        return GN_OK;
    }
    gn_status status = gn_cast(sum, dtype, result);
    gn_tensor_release(sum);
    return status;
}
