/*
 * reduce.c: reductions over any dimensions, with the pending elementwise operations before them in the same pass.
 *
 * The dimensions that go are seen as the last ones, whatever their place: rows of them are folded.
 */
#include "ops/recorder.h"

#include "base/host.h"
#include "ops/cpu/run.h"

#include <math.h>
#include <string.h>

static enum gni_reduction fold_of(gn_reduction reduction)
{
    static const enum gni_reduction folds[GN_REDUCTION_COUNT] = {
        [GN_REDUCE_SUM] = GNI_REDUCTION_SUM,         [GN_REDUCE_PRODUCT] = GNI_REDUCTION_PRODUCT,
        [GN_REDUCE_MAXIMUM] = GNI_REDUCTION_MAXIMUM, [GN_REDUCE_MINIMUM] = GNI_REDUCTION_MINIMUM,
        [GN_REDUCE_ANY] = GNI_REDUCTION_ANY,         [GN_REDUCE_ALL] = GNI_REDUCTION_ALL,
        [GN_REDUCE_MEAN] = GNI_REDUCTION_SUM,
    };
    return folds[reduction];
}

static const char *reduction_name(gn_reduction reduction)
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
    enum gni_kind kind = gni_dtype_kind(dtype);
    switch (reduction) {
    case GN_REDUCE_SUM:
    case GN_REDUCE_PRODUCT:
        *result = kind == GNI_KIND_FLOATING ? dtype : GN_INT64;
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
    COLUMNS_LEAST = 64, /* that are worth being folded side by side */
};

struct layout {
    int order[GN_DIMENSIONS_MAX]; /* kept dimensions, then those that go; or the other way round */
    bool is_by_columns;
    struct gni_shape result;
    int64_t rows, columns;
};

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
    /* Where what is kept lies close together, and what goes far apart, columns are folded. */
    bool has_last = tensor->ndim > 0 && (dimensions >> (tensor->ndim - 1) & 1) == 0;
    layout->is_by_columns = has_last && tensor->strides[tensor->ndim - 1] == 1 &&
                            tensor->sizes[tensor->ndim - 1] >= COLUMNS_LEAST && layout->columns > 1;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < tensor->ndim; i++)
            if ((dimensions >> i & 1) == (unsigned)(layout->is_by_columns ? 1 - pass : pass))
                layout->order[used++] = i;
}

/* Accumulators become elements. */
static void results_store(gn_reduction reduction, gn_dtype held, gn_tensor *result,
                          const uint64_t *accumulators, int64_t columns)
{
    char *data = gni_tensor_data(result);
    size_t size = gni_dtype_size(result->dtype);
    bool is_wide = reduction <= GN_REDUCE_PRODUCT || reduction == GN_REDUCE_MEAN;
    gn_dtype kind =
        is_wide ? (gni_dtype_kind(held) == GNI_KIND_FLOATING ? GN_FLOAT64 : GN_INT64) : held;
    if (reduction == GN_REDUCE_ANY || reduction == GN_REDUCE_ALL)
        kind = GN_BOOL;
    for (int64_t i = 0; i < result->count; i++) {
        gn_scalar value = gni_scalar_load(kind, &accumulators[i]);
        if (reduction == GN_REDUCE_MEAN)
            value.floating = columns > 0 ? value.floating / (double)columns : NAN;
        gni_scalar_store(value, result->dtype, data + (size_t)i * size);
    }
}

static gn_status fold_rows(gn_reduction reduction, gn_tensor *tensor, const struct layout *layout,
                           uint64_t *accumulators)
{
    struct gni_program *program;
    short value;
    uint64_t start = gni_cpu_reduce_start(fold_of(reduction), tensor->dtype);
    for (int64_t i = 0; i < layout->rows; i++)
        accumulators[i] = start;
    GN_TRY(gni_program_begin(tensor, layout->order, &program, &value));
    gn_status status = GN_OK;
    if (layout->is_by_columns)
        gni_cpu_reduce_columns(program, value, fold_of(reduction), layout->rows, accumulators);
    else
        status = gni_cpu_reduce(program, value, fold_of(reduction), layout->rows, accumulators);
    gni_program_end();
    return status;
}

gn_status gn_reduce(gn_reduction reduction, gn_tensor *tensor, uint32_t dimensions,
                    bool has_dimensions, gn_tensor **out)
{
    GN_CHECK_ARGUMENT((unsigned)reduction < GN_REDUCTION_COUNT && tensor != NULL && out != NULL,
                      "reduction must be one, tensor and result not NULL");
    uint32_t all = tensor->ndim > 0 ? (UINT32_C(1) << tensor->ndim) - 1 : 0;
    struct layout layout;
    gn_dtype dtype;
    GN_TRY(result_type(reduction, tensor->dtype, &dtype));
    if ((dimensions & ~all) != 0)
        return gni_error(GN_ERROR_INDEX, "%s: a tensor of %d dimensions has no such dimension",
                         reduction_name(reduction), tensor->ndim);
    layout_make(tensor, dimensions != 0 ? dimensions : all, has_dimensions, &layout);
    if (layout.columns == 0 && (reduction == GN_REDUCE_MAXIMUM || reduction == GN_REDUCE_MINIMUM))
        return gni_error(GN_ERROR_SHAPE, "%s of no elements is not defined (shape %s)",
                         reduction_name(reduction),
                         gni_shape_text(tensor->ndim, tensor->sizes).text);
    gn_tensor *result;
    GN_TRY(
        gn_tensor_create(dtype, layout.result.ndim, layout.result.sizes, tensor->device, &result));
    uint64_t *accumulators = gni_host_alloc((size_t)layout.rows * sizeof *accumulators);
    gn_status status = accumulators != NULL
                           ? fold_rows(reduction, tensor, &layout, accumulators)
                           : gni_error_host_memory((size_t)layout.rows * sizeof *accumulators);
    if (status == GN_OK)
        results_store(reduction, gni_dtypes[tensor->dtype].compute, result, accumulators,
                      layout.columns);
    gni_host_free(accumulators);
    if (status != GN_OK) {
        gn_tensor_release(result);
        return status;
    }
    *out = result;
    return GN_OK;
}
