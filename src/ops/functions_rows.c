/*
 * functions_rows.c: functions along one dimension: order, extremes, cumulative sums, softmax.
 */
#include "ops/functions.h"
#include "tensor/tape.h"

#include <math.h>

/* The simplest of these are called often: they do without a scope. */

/* A dimension, counted from the beginning. */
static gn_status dim_get(const gn_tensor *x, int64_t given, int *dim)
{
    int64_t span = x->ndim > 0 ? x->ndim : 1;
    if (given < -span || given >= span) {
        struct gni_scope s = {0};
        (void)gni_dim(&s, x, given);
        return s.status;
    }
    *dim = (int)(given < 0 ? given + span : given);
    return GN_OK;
}

/* ---- order ------------------------------------------------------------------------------------- */

static gn_status sort_call(const gn_argument *a, gn_results *results)
{
    gn_tensor *values = NULL, *indices = NULL, *x = a[0].operand.tensor;
    int dim = 0;
    GN_TRY(dim_get(x, a[1].operand.scalar.integer, &dim));
    GN_TRY(gn_sort(x, dim, gni_is_set(&a[2]), &values, &indices));
    return gni_give_two(values, indices, results);
}

static gn_status argsort_call(const gn_argument *a, gn_results *results)
{
    gn_tensor *indices = NULL, *x = a[0].operand.tensor;
    int dim = 0;
    GN_TRY(dim_get(x, a[1].operand.scalar.integer, &dim));
    GN_TRY(gn_sort(x, dim, gni_is_set(&a[2]), NULL, &indices));
    return gni_give_one(indices, results);
}

static gn_status msort_call(const gn_argument *a, gn_results *results)
{
    gn_tensor *values = NULL;
    GN_TRY(gn_sort(a[0].operand.tensor, 0, false, &values, NULL));
    return gni_give_one(values, results);
}

static gn_status topk_call(const gn_argument *a, gn_results *results)
{
    gn_tensor *values = NULL, *indices = NULL, *x = a[0].operand.tensor;
    int dim = 0;
    GN_TRY(dim_get(x, a[2].operand.scalar.integer, &dim));
    GN_TRY(gn_topk(x, a[1].operand.scalar.integer, dim, gni_is_set(&a[3]), &values, &indices));
    return gni_give_two(values, indices, results);
}

static gn_status kthvalue_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *values = NULL, *indices = NULL, *x = a[0].operand.tensor;
    int64_t k = a[1].operand.scalar.integer;
    int dim = gni_dim(&s, x, a[2].operand.scalar.integer);
    int64_t size = x->ndim > 0 ? x->sizes[dim] : 1;
    if (gni_scope_is_ok(&s) && (k < 1 || k > size))
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "k is from 1 to %lld, not %lld, for shape %s",
                       (long long)size, (long long)k, gni_shape_text(x->ndim, x->sizes).text);
    if (gni_scope_is_ok(&s))
        s.status = gn_topk(x, k, dim, false, &values, &indices);
    values = gni_scope_keep(&s, s.status, values);
    indices = gni_scope_keep(&s, s.status, indices);
    if (x->ndim > 0) {
        bool is_kept = gni_is_set(&a[3]);
        values =
            is_kept ? gni_narrow(&s, values, dim, k - 1, 1) : gni_select(&s, values, dim, k - 1);
        indices =
            is_kept ? gni_narrow(&s, indices, dim, k - 1, 1) : gni_select(&s, indices, dim, k - 1);
    }
    return gni_scope_give_pair(&s, values, indices, results);
}

/* ---- extremes ---------------------------------------------------------------------------------- */

/* The one dimension that is given; `several` is what is said of more. */
static gn_status dim_of(const gn_tensor *x, const gn_argument *dim, const char *several, int *at)
{
    if (dim->count != 1)
        return gni_error(GN_ERROR_INVALID_VALUE, "dim is one integer, not %s%s",
                         gni_shape_text(dim->count, dim->integers).text, several);
    return dim_get(x, dim->integers[0], at);
}

/* Of all elements one; along a dimension a pair; with another tensor the larger or smaller of two. */
static gn_status extreme_call(const gn_argument *a, bool is_maximum, gn_results *results)
{
    gn_tensor *x = a[0].operand.tensor, *values = NULL, *indices = NULL;
    const char *several = is_maximum ? "; amax() takes several" : "; amin() takes several";
    bool is_kept = gni_is_set(&a[2]);
    int dim = 0;
    if (a[1].operand.tensor != NULL) {
        const gn_operand both[] = {a[0].operand, a[1].operand};
        GN_TRY(gn_elementwise(is_maximum ? GN_OP_MAXIMUM : GN_OP_MINIMUM, both, &values));
        return gni_give_one(values, results);
    }
    if (!a[1].is_given) {
        gn_reduction reduction = is_maximum ? GN_REDUCE_MAXIMUM : GN_REDUCE_MINIMUM;
        GN_TRY(gn_reduce(reduction, x, 0, is_kept, &values));
        return gni_give_one(values, results);
    }
    GN_TRY(dim_of(x, &a[1], several, &dim));
    GN_TRY(gn_extreme(x, dim, is_maximum, &values, &indices));
    if (!is_kept || x->ndim == 0)
        return gni_give_two(values, indices, results);
    struct gni_scope s = {0};
    values = gni_unsqueeze(&s, gni_scope_keep(&s, GN_OK, values), dim);
    indices = gni_unsqueeze(&s, gni_scope_keep(&s, GN_OK, indices), dim);
    return gni_scope_give_pair(&s, values, indices, results);
}

static gn_status max_call(const gn_argument *a, gn_results *results)
{
    return extreme_call(a, true, results);
}

static gn_status min_call(const gn_argument *a, gn_results *results)
{
    return extreme_call(a, false, results);
}

/* Where it is: of all elements, in row-major order, or along a dimension. */
static gn_status extreme_place_call(const gn_argument *a, bool is_maximum, gn_results *results)
{
    static const int64_t whole = -1;
    gn_tensor *x = a[0].operand.tensor, *place = NULL;
    int64_t ones[GN_DIMENSIONS_MAX];
    bool is_kept = gni_is_set(&a[2]) && x->ndim > 0;
    int dim = 0;
    if (a[1].is_given)
        GN_TRY(dim_of(x, &a[1], "", &dim));
    if (!is_kept && (a[1].is_given || x->ndim == 1)) {
        GN_TRY(gn_extreme(x, dim, is_maximum, NULL, &place));
        return gni_give_one(place, results);
    }
    struct gni_scope s = {0};
    gn_tensor *flat = a[1].is_given ? x : gni_reshape(&s, x, 1, &whole);
    if (gni_scope_is_ok(&s))
        s.status = gn_extreme(flat, dim, is_maximum, NULL, &place);
    place = gni_scope_keep(&s, s.status, place);
    for (int i = 0; i < x->ndim; i++)
        ones[i] = 1;
    if (is_kept)
        place = a[1].is_given ? gni_unsqueeze(&s, place, dim) : gni_view(&s, place, x->ndim, ones);
    return gni_scope_give(&s, place, results);
}

static gn_status argmax_call(const gn_argument *a, gn_results *results)
{
    return extreme_place_call(a, true, results);
}

static gn_status argmin_call(const gn_argument *a, gn_results *results)
{
    return extreme_place_call(a, false, results);
}

static gn_status aminmax_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    uint32_t dims = gni_dims(&s, x, &a[1]);
    gn_tensor *least = gni_reduce(&s, GN_REDUCE_MINIMUM, x, dims, gni_is_set(&a[2]));
    gn_tensor *most = gni_reduce(&s, GN_REDUCE_MAXIMUM, x, dims, gni_is_set(&a[2]));
    return gni_scope_give_pair(&s, least, most, results);
}

/* ---- cumulative -------------------------------------------------------------------------------- */

static gn_status cumulate_call(const gn_argument *a, bool is_product, gn_results *results)
{
    gn_tensor *x = a[0].operand.tensor, *made = NULL;
    int dim = 0;
    GN_TRY(dim_get(x, a[1].operand.scalar.integer, &dim));
    if (!a[2].is_given) {
        GN_TRY(gn_cumulate(x, dim, is_product, &made));
        return gni_give_one(made, results);
    }
    struct gni_scope s = {0};
    x = gni_cast(&s, x, a[2].dtype);
    if (gni_scope_is_ok(&s))
        s.status = gn_cumulate(x, dim, is_product, &made);
    made = gni_scope_keep(&s, s.status, made);
    return gni_scope_give(&s, gni_cast(&s, made, a[2].dtype), results);
}

static gn_status cumsum_call(const gn_argument *a, gn_results *results)
{
    return cumulate_call(a, false, results);
}

static gn_status cumprod_call(const gn_argument *a, gn_results *results)
{
    return cumulate_call(a, true, results);
}

/* Into the tensor itself, whatever its type is. */
static gn_status cumulate_in_place(const gn_argument *a, bool is_product, gn_results *results)
{
    struct gni_scope s = {0};
    gn_results made = {0};
    gn_argument own[] = {a[0], a[1], a[2]};
    if (is_product && gni_is_taped(a[0].operand.tensor)) /* the rule reads what it was */
        own[0].operand.tensor = gni_clone(&s, a[0].operand.tensor);
    if (gni_scope_is_ok(&s))
        s.status = cumulate_call(own, is_product, &made);
    gni_assign(&s, a[0].operand.tensor, gni_of(made.few[0]));
    gn_results_clear(&made);
    return gni_scope_give(&s, a[0].operand.tensor, results);
}

static gn_status cumsum_in_place(const gn_argument *a, gn_results *results)
{
    return cumulate_in_place(a, false, results);
}

static gn_status cumprod_in_place(const gn_argument *a, gn_results *results)
{
    return cumulate_in_place(a, true, results);
}

static gn_status cumulate_extreme_call(const gn_argument *a, bool is_maximum, gn_results *results)
{
    gn_tensor *x = a[0].operand.tensor, *values = NULL, *indices = NULL;
    int dim = 0;
    GN_TRY(dim_get(x, a[1].operand.scalar.integer, &dim));
    GN_TRY(gn_cumulate_extreme(x, dim, is_maximum, &values, &indices));
    return gni_give_two(values, indices, results);
}

static gn_status cummax_call(const gn_argument *a, gn_results *results)
{
    return cumulate_extreme_call(a, true, results);
}

static gn_status cummin_call(const gn_argument *a, gn_results *results)
{
    return cumulate_extreme_call(a, false, results);
}

/* Each element with the one `distance` before it, as the logarithm of the sum of their exp(). */
static gn_status logarithms_add(gn_tensor *x, int dim, int64_t distance, gn_tensor **result)
{
    struct gni_scope s = {0};
    int64_t rest = (x->ndim > 0 ? x->sizes[dim] : 1) - distance;
    gn_tensor *first = gni_narrow(&s, x, dim, 0, distance);
    gn_tensor *early = gni_narrow(&s, x, dim, 0, rest);
    gn_tensor *late = gni_narrow(&s, x, dim, distance, rest);
    gn_tensor *sum = gni_binary(&s, GN_OP_LOGADDEXP, gni_of(early), gni_of(late));
    return gni_scope_end(&s, gni_cat(&s, 2, (gn_tensor *const[]){first, sum}, dim), result);
}

/*
 * By doubling: after the step of distance d every element holds the logarithm of the sum of up to 2d elements that end
 * there. A cumulative sum of exp() would lose what is far below the largest of its row.
 */
static gn_status logcumsumexp_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *made = NULL, *next = NULL;
    int dim = gni_dim(&s, x, a[1].operand.scalar.integer);
    gn_dtype dtype = gni_dtype_is_floating(x->dtype) ? x->dtype : gn_get_default_dtype();
    gn_status status =
        gni_scope_end(&s, gni_wide(&s, gni_clone(&s, gni_cast(&s, x, dtype))), &made);
    int64_t size = x->ndim > 0 ? x->sizes[dim] : 1;
    for (int64_t d = 1; status == GN_OK && d < size && x->count > 0; d *= 2) {
        status = logarithms_add(made, dim, d, &next);
        if (status == GN_OK) {
            gn_tensor_release(made);
            made = next;
        }
    }
    s = (struct gni_scope){.status = status};
    if (made != NULL)
        made = gni_scope_keep(&s, GN_OK, made);
    return gni_scope_give(&s, gni_cast(&s, made, dtype), results);
}

/* ---- softmax ----------------------------------------------------------------------------------- */

static gn_status softmax_as(const gn_argument *a, bool is_log, gn_results *results)
{
    gn_tensor *x = a[0].operand.tensor, *cast = NULL, *made = NULL;
    int dim = 0;
    GN_TRY(dim_get(x, a[1].operand.scalar.integer, &dim));
    if (a[2].is_given)
        GN_TRY(gn_cast(x, a[2].dtype, &cast));
    gn_status status = gn_softmax(cast != NULL ? cast : x, dim, is_log, &made);
    gn_tensor_release(cast);
    return status == GN_OK ? gni_give_one(made, results) : status;
}

static gn_status softmax_call(const gn_argument *a, gn_results *results)
{
    return softmax_as(a, false, results);
}

static gn_status log_softmax_call(const gn_argument *a, gn_results *results)
{
    return softmax_as(a, true, results);
}

/* The sizes without some dimensions; how many they are. */
static int sizes_without(const gn_tensor *x, uint32_t dims, int64_t *sizes)
{
    int ndim = 0;
    for (int i = 0; i < x->ndim && dims != 0; i++)
        if ((dims >> i & 1) == 0)
            sizes[ndim++] = x->sizes[i];
    return ndim;
}

static gn_status logsumexp_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    bool is_kept = gni_is_set(&a[2]);
    uint32_t dims = gni_dims(&s, x, &a[1]);
    int64_t sizes[GN_DIMENSIONS_MAX];
    gn_dtype dtype = gni_dtype_is_floating(x->dtype) ? x->dtype : gn_get_default_dtype();
    gn_tensor *wide = gni_wide(&s, gni_cast(&s, x, dtype));
    if (gni_dims_count(x, dims) == 0) { /* of nothing: -inf */
        gn_tensor *none = gni_reduce(&s, GN_REDUCE_SUM, wide, dims, is_kept);
        return gni_scope_give(&s, gni_cast(&s, gni_unary(&s, GN_OP_LOG, none), dtype), results);
    }
    /* exp() of the elements less the largest does not overflow; an infinite one is left alone. */
    gn_tensor *largest = gni_reduce(&s, GN_REDUCE_MAXIMUM, wide, dims, true);
    gn_tensor *is_finite = gni_unary(&s, GN_OP_ISFINITE, largest);
    largest = gni_where(&s, is_finite, gni_of(largest), gni_integer(0));
    gn_tensor *shifted = gni_binary(&s, GN_OP_SUBTRACT, gni_of(wide), gni_of(largest));
    gn_tensor *sum =
        gni_reduce(&s, GN_REDUCE_SUM, gni_unary(&s, GN_OP_EXP, shifted), dims, is_kept);
    if (!is_kept)
        largest = gni_reshape(&s, largest, sizes_without(x, dims, sizes), sizes);
    gn_tensor *made =
        gni_binary(&s, GN_OP_ADD, gni_of(gni_unary(&s, GN_OP_LOG, sum)), gni_of(largest));
    return gni_scope_give(&s, gni_cast(&s, made, dtype), results);
}

/* ---- the table --------------------------------------------------------------------------------- */

enum {
    ROWS = GN_FORM_METHOD | GN_FORM_OUT,
    METHOD_ALONE = GN_FORM_METHOD | GN_FORM_NO_FUNCTION,
};

const gn_function gni_functions_rows[] = {
    {"sort", NULL,
     "input: Tensor, dim: dim = -1, descending: bool = False, stable: bool = True"
     " -> values, indices",
     ROWS, sort_call,
     "The sorted elements and where they were, as a pair (values, indices).\n\n"
     "The order is always stable; NaN is the largest.",
     ">>> genesis.sort(genesis.tensor([3, 1, 2])).indices\ntensor([1, 2, 0])"},
    {"argsort", NULL, "input: Tensor, dim: dim = -1, descending: bool = False, stable: bool = True",
     ROWS, argsort_call, "Where the sorted elements are.",
     ">>> genesis.argsort(genesis.tensor([3, 1, 2]))\ntensor([1, 2, 0])"},
    {"msort", NULL, "input: Tensor", ROWS, msort_call, "The elements sorted along dimension 0.",
     ">>> genesis.msort(genesis.tensor([3, 1, 2]))\ntensor([1, 2, 3])"},
    {"topk", NULL,
     "input: Tensor, k: int, dim: dim = -1, largest: bool = True, sorted: bool = True"
     " -> values, indices",
     ROWS, topk_call, "The k largest or smallest elements, in order, as a pair (values, indices).",
     ">>> genesis.topk(genesis.tensor([3, 1, 2]), 2).values\ntensor([3, 2])"},
    {"kthvalue", NULL,
     "input: Tensor, k: int, dim: dim = -1, keepdim: bool = False -> values, indices", ROWS,
     kthvalue_call,
     "The k-th smallest element of a dimension, from 1 on, and where it is; NaN is the largest.",
     ">>> genesis.kthvalue(genesis.tensor([5, 1, 3]), 2).values\ntensor(3)"},
    {"max", NULL,
     "input: Tensor, dim: dims|Tensor = None, keepdim: bool = False -> values, indices", ROWS,
     max_call,
     "The largest element; along a dimension a pair (values, indices); of two tensors the "
     "larger.\n\n"
     "NaN counts as the largest.",
     ">>> genesis.max(genesis.tensor([[1, 5], [7, 2]]), 1).indices\ntensor([1, 0])"},
    {"min", NULL,
     "input: Tensor, dim: dims|Tensor = None, keepdim: bool = False -> values, indices", ROWS,
     min_call,
     "The smallest element; along a dimension a pair (values, indices); of two tensors the "
     "smaller.\n\nNaN counts as the smallest.",
     ">>> genesis.min(genesis.tensor([[1, 5], [7, 2]]), 1).values\ntensor([1, 2])"},
    {"argmax", NULL, "input: Tensor, dim: dims = None, keepdim: bool = False", ROWS, argmax_call,
     "Where the first of the largest elements is.",
     ">>> genesis.argmax(genesis.tensor([3, 9, 2]))\ntensor(1)"},
    {"argmin", NULL, "input: Tensor, dim: dims = None, keepdim: bool = False", ROWS, argmin_call,
     "Where the first of the smallest elements is.",
     ">>> genesis.argmin(genesis.tensor([3, 9, 2]))\ntensor(2)"},
    {"aminmax", NULL, "input: Tensor, *, dim: dims = None, keepdim: bool = False -> min, max", ROWS,
     aminmax_call, "The smallest and the largest element, as a pair (min, max).",
     ">>> genesis.aminmax(genesis.tensor([3, 1, 2])).max\ntensor(3)"},
    {"cumsum", NULL, "input: Tensor, dim: dim, dtype: dtype = None", ROWS, cumsum_call,
     "The sum of the elements up to each, along a dimension; of integers and bool as int64.",
     ">>> genesis.cumsum(genesis.tensor([1, 2, 3]), 0)\ntensor([1, 3, 6])"},
    {"cumprod", NULL, "input: Tensor, dim: dim, dtype: dtype = None", ROWS, cumprod_call,
     "The product of the elements up to each, along a dimension; of integers and bool as int64.",
     ">>> genesis.cumprod(genesis.tensor([1, 2, 3]), 0)\ntensor([1, 2, 6])"},
    {"cumsum_", NULL, "input: Tensor, dim: dim, dtype: dtype = None", METHOD_ALONE, cumsum_in_place,
     "In place: the sum of the elements up to each, along a dimension.",
     ">>> genesis.tensor([1, 2, 3]).cumsum_(0)\ntensor([1, 3, 6])"},
    {"cumprod_", NULL, "input: Tensor, dim: dim, dtype: dtype = None", METHOD_ALONE,
     cumprod_in_place, "In place: the product of the elements up to each, along a dimension.",
     ">>> genesis.tensor([1, 2, 3]).cumprod_(0)\ntensor([1, 2, 6])"},
    {"cummax", NULL, "input: Tensor, dim: dim -> values, indices", ROWS, cummax_call,
     "The largest of the elements up to each, and where the last of them is; NaN wins.",
     ">>> values, indices = genesis.cummax(genesis.tensor([1, 3, 2, 3]), 0)\n"
     ">>> values, indices\n(tensor([1, 3, 3, 3]), tensor([0, 1, 1, 3]))"},
    {"cummin", NULL, "input: Tensor, dim: dim -> values, indices", ROWS, cummin_call,
     "The smallest of the elements up to each, and where the last of them is; NaN wins.",
     ">>> genesis.cummin(genesis.tensor([3, 1, 2]), 0).values\ntensor([3, 1, 1])"},
    {"logcumsumexp", NULL, "input: Tensor, dim: dim", ROWS, logcumsumexp_call,
     "The logarithm of the sum of exp() of the elements up to each, along a dimension.",
     ">>> genesis.logcumsumexp(genesis.tensor([0.0, 0.0, 0.0]), 0)\n"
     "tensor([0.0000, 0.6931, 1.0986])"},
    {"softmax", NULL, "input: Tensor, dim: dim, dtype: dtype = None", ROWS, softmax_call,
     "exp(x) over the sum of it along a dimension.",
     ">>> genesis.softmax(genesis.tensor([0.0, 0.0]), 0)\ntensor([0.5000, 0.5000])"},
    {"log_softmax", NULL, "input: Tensor, dim: dim, dtype: dtype = None", ROWS, log_softmax_call,
     "The logarithm of softmax, computed without softmax: it does not underflow.",
     ">>> genesis.log_softmax(genesis.tensor([0.0, 0.0]), 0)\ntensor([-0.6931, -0.6931])"},
    {"logsumexp", NULL, "input: Tensor, dim: dims, keepdim: bool = False", ROWS, logsumexp_call,
     "The logarithm of the sum of exp(x).",
     ">>> genesis.logsumexp(genesis.tensor([0.0, 0.0]), 0)\ntensor(0.6931)"},
    {0},
};
