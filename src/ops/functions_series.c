/*
 * functions_series.c: functions of sequences of samples: differences, integrals, histograms, covariances.
 */
#include "ops/functions.h"

#include <math.h>

/* ---- differences and integrals ----------------------------------------------------------------- */

/* The elements of a dimension but the first (`begin` of 1) or but the last (0). */
static gn_tensor *all_but_one(struct gni_scope *s, gn_tensor *x, int dim, int64_t begin)
{
    int64_t size = gni_scope_is_ok(s) ? x->sizes[dim] : 1;
    return gni_narrow(s, x, dim, size > 0 ? begin : 0, size > 0 ? size - 1 : 0);
}

/* Each element less the one before; of bool whether they differ. */
static gn_tensor *difference(struct gni_scope *s, gn_tensor *x, int dim)
{
    gn_op op = gni_scope_is_ok(s) && x->dtype == GN_BOOL ? GN_OP_BITWISE_XOR : GN_OP_SUBTRACT;
    return gni_binary(s, op, gni_of(all_but_one(s, x, dim, 1)), gni_of(all_but_one(s, x, dim, 0)));
}

static gn_status diff_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *parts[3];
    int64_t n = a[1].operand.scalar.integer;
    int count = 0, dim = gni_dim(&s, x, a[2].operand.scalar.integer);
    if (x->ndim == 0)
        gni_scope_fail(&s, GN_ERROR_SHAPE,
                       "the tensor has no dimension along which elements differ");
    if (n < 0)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "it is done 0 times or more, not %lld times",
                       (long long)n);
    const gn_argument *order[] = {&a[3], &a[0], &a[4]};
    for (int i = 0; i < 3; i++)
        if (order[i]->is_given)
            parts[count++] = order[i]->operand.tensor;
    gn_tensor *made = n > 0 && count > 1 ? gni_cat(&s, count, parts, dim) : x;
    if (gni_scope_is_ok(&s) && made->count == 0) { /* as many steps as the caller says, at once */
        int64_t left = made->sizes[dim] > n ? made->sizes[dim] - n : 0;
        made = gni_clone(&s, gni_narrow(&s, made, dim, 0, left));
        return gni_scope_give(&s, made, results);
    }
    for (int64_t i = 0; gni_scope_is_ok(&s) && i < n && made->sizes[dim] > 0; i++)
        made = difference(&s, made, dim);
    return gni_scope_give(&s, made, results);
}

/*
 * The areas between neighbours: the mean of two values times their distance, which `x` has (it broadcasts, or is along
 * the dimension) or `dx` is. `dim` is where they are.
 */
static gn_tensor *areas(struct gni_scope *s, const gn_argument *a, int *dim)
{
    gn_tensor *y = a[0].operand.tensor, *x = a[1].operand.tensor;
    gn_operand width = a[2].operand;
    *dim = gni_dim(s, y, a[3].operand.scalar.integer);
    if (y->ndim == 0)
        gni_scope_fail(s, GN_ERROR_SHAPE, "the tensor has no dimension to integrate along");
    if (x != NULL && x->ndim == 1 && gni_scope_is_ok(s)) {
        int64_t sizes[GN_DIMENSIONS_MAX];
        for (int i = 0; i < y->ndim; i++)
            sizes[i] = i == *dim ? x->sizes[0] : 1;
        x = gni_view(s, x, y->ndim, sizes);
    }
    if (x != NULL && gni_scope_is_ok(s) && (x->ndim != y->ndim || x->sizes[*dim] != y->sizes[*dim]))
        gni_scope_fail(s, GN_ERROR_SHAPE, "x of shape %s does not fit y of shape %s",
                       gni_shape_text(x->ndim, x->sizes).text,
                       gni_shape_text(y->ndim, y->sizes).text);
    if (x != NULL)
        width = gni_of(difference(s, x, *dim));
    gn_tensor *sum = gni_binary(s, GN_OP_ADD, gni_of(all_but_one(s, y, *dim, 1)),
                                gni_of(all_but_one(s, y, *dim, 0)));
    gn_tensor *mean = gni_binary(s, GN_OP_DIVIDE, gni_of(sum), gni_integer(2));
    return gni_binary(s, GN_OP_MULTIPLY, gni_of(mean), width);
}

static gn_status trapezoid_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    int dim;
    gn_tensor *made = areas(&s, a, &dim);
    return gni_scope_give(&s, gni_reduce(&s, GN_REDUCE_SUM, made, UINT32_C(1) << dim, false),
                          results);
}

static gn_status cumulative_trapezoid_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    int dim;
    gn_tensor *parts = areas(&s, a, &dim), *made = NULL;
    if (gni_scope_is_ok(&s))
        s.status = gn_cumulate(parts, dim, false, &made);
    return gni_scope_give(&s, gni_scope_keep(&s, s.status, made), results);
}

/* ---- histograms -------------------------------------------------------------------------------- */

/* The borders of `bins` bins of equal width over a range, or over the elements. */
static gn_tensor *edges_make(struct gni_scope *s, gn_tensor *x, int64_t bins,
                             const gn_argument *range)
{
    gn_tensor *given = range->operand.tensor;
    double ends[2] = {0, 1};
    if (bins < 1)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "bins is at least 1, not %lld", (long long)bins);
    if (range->is_given && (given == NULL || given->ndim != 1 || given->count != 2))
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "range is a pair of numbers");
    for (int i = 0; i < 2 && gni_scope_is_ok(s) && (range->is_given || x->count > 0); i++) {
        gn_reduction reduction = i == 0 ? GN_REDUCE_MINIMUM : GN_REDUCE_MAXIMUM;
        gn_tensor *end =
            range->is_given ? gni_select(s, given, 0, i) : gni_reduce(s, reduction, x, 0, false);
        ends[i] = gni_scalar_double(gni_item(s, end));
    }
    if (gni_scope_is_ok(s) && (!isfinite(ends[0]) || !isfinite(ends[1]) || ends[0] > ends[1]))
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "the range from %g to %g is not finite or empty",
                       ends[0], ends[1]);
    if (ends[0] == ends[1]) {
        ends[0] -= 0.5;
        ends[1] += 0.5;
    }
    gn_tensor *made = gni_spaced(s, ends, bins + 1, x->device);
    return gni_cast(s, made, x->dtype);
}

/* For each element the number of its bin; `bins` for those outside. The last bin has its right border. */
static gn_tensor *bins_find(struct gni_scope *s, gn_tensor *x, gn_tensor *edges, int64_t bins)
{
    gn_tensor *place = NULL;
    if (gni_scope_is_ok(s))
        s->status = gn_searchsorted(edges, x, true, &place);
    place = gni_scope_keep(s, s->status, place);
    place = gni_binary(s, GN_OP_SUBTRACT, gni_of(place), gni_integer(1));
    gn_tensor *is_last =
        gni_binary(s, GN_OP_EQUAL, gni_of(x), gni_of(gni_select(s, edges, 0, bins)));
    place = gni_where(s, is_last, gni_integer(bins - 1), gni_of(place));
    gn_tensor *is_outside = gni_binary(s, GN_OP_LESS, gni_of(place), gni_integer(0));
    return gni_where(s, is_outside, gni_integer(bins), gni_of(place));
}

static gn_status histogram_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *edges = a[1].operand.tensor, *counts = NULL;
    gn_tensor *weight = a[3].operand.tensor;
    if (!gni_dtype_is_floating(x->dtype))
        gni_scope_fail(&s, GN_ERROR_TYPE, "elements are floating numbers, not genesis.%s",
                       gni_dtypes[x->dtype].name);
    if (edges != NULL && (edges->ndim != 1 || edges->count < 2))
        gni_scope_fail(&s, GN_ERROR_SHAPE, "bins are at least 2 borders in one dimension");
    if (weight != NULL && weight->count != x->count)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "there is a weight for each element");
    edges = edges != NULL ? gni_cast(&s, edges, x->dtype)
                          : edges_make(&s, x, a[1].operand.scalar.integer, &a[2]);
    if (!gni_scope_is_ok(&s))
        return gni_scope_give(&s, NULL, results);
    const int64_t whole = -1, bins = edges->count - 1;
    gn_tensor *flat = gni_reshape(&s, x, 1, &whole);
    gn_tensor *places = bins_find(&s, flat, edges, bins);
    gn_tensor *weights =
        weight != NULL ? gni_cast(&s, gni_reshape(&s, weight, 1, &whole), GN_FLOAT64) : NULL;
    if (gni_scope_is_ok(&s))
        s.status = gn_bincount(places, weights, bins + 1, &counts);
    counts = gni_narrow(&s, gni_scope_keep(&s, s.status, counts), 0, 0, bins);
    counts = gni_cast(&s, counts, GN_FLOAT64);
    if (gni_is_set(&a[4])) {
        gn_tensor *width = difference(&s, gni_cast(&s, edges, GN_FLOAT64), 0);
        gn_tensor *total = gni_reduce(&s, GN_REDUCE_SUM, counts, 0, false);
        counts = gni_binary(&s, GN_OP_DIVIDE, gni_of(counts), gni_of(total));
        counts = gni_binary(&s, GN_OP_DIVIDE, gni_of(counts), gni_of(width));
    }
    return gni_scope_give_pair(&s, gni_cast(&s, counts, x->dtype), edges, results);
}

/* ---- covariances ------------------------------------------------------------------------------- */

/* Weights of observations, as float64; `weights` so far, or NULL, are multiplied with them. */
static gn_tensor *weights_take(struct gni_scope *s, const gn_argument *given, int64_t count,
                               gn_tensor *weights)
{
    gn_tensor *own = given->operand.tensor;
    if (own == NULL)
        return weights;
    if (own->ndim != 1 || own->count != count)
        gni_scope_fail(s, GN_ERROR_SHAPE,
                       "weights of shape %s: there is one for each of %lld columns",
                       gni_shape_text(own->ndim, own->sizes).text, (long long)count);
    own = gni_cast(s, own, GN_FLOAT64);
    return weights == NULL ? own : gni_binary(s, GN_OP_MULTIPLY, gni_of(weights), gni_of(own));
}

static gn_tensor *total_of(struct gni_scope *s, gn_tensor *x)
{
    return gni_reduce(s, GN_REDUCE_SUM, x, 0, false);
}

/* The covariance of rows, in float64: of their products with weights, over what is left of the weights. */
static gn_tensor *covariance(struct gni_scope *s, gn_tensor *x, int64_t correction,
                             const gn_argument *frequencies, const gn_argument *importances)
{
    static const gn_argument none;
    frequencies = frequencies != NULL ? frequencies : &none;
    importances = importances != NULL ? importances : &none;
    if (x->ndim > 2) {
        gni_scope_fail(s, GN_ERROR_SHAPE, "the tensor has at most 2 dimensions, not %d", x->ndim);
        return NULL;
    }
    int64_t count = x->ndim > 0 ? x->sizes[x->ndim - 1] : 1;
    gn_tensor *rows = gni_cast(
        s, gni_view(s, x, 2, (const int64_t[]){x->ndim == 2 ? x->sizes[0] : 1, count}), GN_FLOAT64);
    gn_tensor *weights = weights_take(s, frequencies, count, NULL);
    weights = weights_take(s, importances, count, weights);
    gn_operand sum = gni_floating((double)count);
    gn_operand left = gni_floating((double)(count - correction));
    gn_tensor *weighted = rows;
    if (weights != NULL) {
        sum = left = gni_of(total_of(s, weights));
        weighted = gni_binary(s, GN_OP_MULTIPLY, gni_of(rows), gni_of(weights));
        gn_operand lost = gni_integer(correction);
        if (importances->operand.tensor != NULL && correction != 0) {
            gn_tensor *squares =
                gni_binary(s, GN_OP_MULTIPLY, gni_of(weights),
                           gni_of(gni_cast(s, importances->operand.tensor, GN_FLOAT64)));
            lost = gni_of(gni_binary(s, GN_OP_DIVIDE, gni_of(total_of(s, squares)), sum));
            lost = gni_of(gni_binary(s, GN_OP_MULTIPLY, lost, gni_integer(correction)));
        }
        left = gni_of(gni_binary(s, GN_OP_SUBTRACT, sum, lost));
        left = gni_of(gni_binary(s, GN_OP_MAXIMUM, left, gni_integer(0)));
    } else if (left.scalar.floating < 0) {
        left = gni_floating(0);
    }
    gn_tensor *mean = gni_reduce(s, GN_REDUCE_SUM, weighted, 2, true);
    mean = gni_binary(s, GN_OP_DIVIDE, gni_of(mean), sum);
    gn_tensor *apart = gni_binary(s, GN_OP_SUBTRACT, gni_of(rows), gni_of(mean));
    gn_tensor *heavy =
        weights == NULL ? apart : gni_binary(s, GN_OP_MULTIPLY, gni_of(apart), gni_of(weights));
    gn_tensor *products = gni_matmul(s, heavy, gni_transpose(s, apart, 0, 1));
    return gni_binary(s, GN_OP_DIVIDE, gni_of(products), left);
}

/* float64 as what cov() and corrcoef() give: a floating type, without the dimensions of a single row. */
static gn_tensor *matrix_as(struct gni_scope *s, gn_tensor *made, gn_dtype dtype)
{
    if (gni_scope_is_ok(s) && made->count == 1)
        made = gni_squeeze(s, gni_squeeze(s, made, 1), 0);
    return gni_cast(s, made, gni_dtype_is_floating(dtype) ? dtype : gn_get_default_dtype());
}

static gn_status cov_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    gn_tensor *made = covariance(&s, x, a[1].operand.scalar.integer, &a[2], &a[3]);
    gn_dtype dtype = x->dtype;
    if (a[3].operand.tensor != NULL && gni_scope_is_ok(&s))
        s.status = gn_result_type(2, (gn_operand[]){a[0].operand, a[3].operand}, &dtype);
    return gni_scope_give(&s, matrix_as(&s, made, dtype), results);
}

static gn_status corrcoef_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *made = covariance(&s, x, 1, NULL, NULL);
    int64_t count = gni_scope_is_ok(&s) ? made->sizes[0] : 0, step = count + 1;
    gn_tensor *own = gni_strided(&s, made, 1, &count, &step, 0);
    gn_tensor *root = gni_unary(&s, GN_OP_SQRT, own);
    made = gni_binary(&s, GN_OP_DIVIDE, gni_of(made), gni_of(gni_unsqueeze(&s, root, 1)));
    made = gni_binary(&s, GN_OP_DIVIDE, gni_of(made), gni_of(root));
    const gn_operand bounds[] = {gni_of(made), gni_integer(-1), gni_integer(1)};
    made = gni_elementwise(&s, GN_OP_CLAMP, 3, bounds);
    return gni_scope_give(&s, matrix_as(&s, made, x->dtype), results);
}

/* ---- the table --------------------------------------------------------------------------------- */

#define TRAPEZOID "y: Tensor, x: Tensor = None, *, dx: number = 1, dim: dim = -1"

const gn_function gni_functions_series[] = {
    {"diff", NULL,
     "input: Tensor, n: int = 1, dim: dim = -1, prepend: Tensor = None, append: Tensor = None",
     GN_FORM_METHOD | GN_FORM_OUT, diff_call,
     "How much each element is more than the one before, `n` times.\n\n"
     "`prepend` and `append` are put before and behind the elements first.",
     ">>> genesis.diff(genesis.tensor([1, 4, 9]))\ntensor([3, 5])"},
    {"trapezoid", "trapz", TRAPEZOID, 0, trapezoid_call,
     "The integral along a dimension, by straight lines between the samples `y`.\n\n"
     "They lie at `x`, or at distances of `dx`.",
     ">>> genesis.trapezoid(genesis.tensor([1.0, 5.0, 10.0]))\ntensor(10.5000)"},
    {"cumulative_trapezoid", NULL, TRAPEZOID, 0, cumulative_trapezoid_call,
     "The integrals from the first sample to each of the others: see trapezoid().",
     ">>> genesis.cumulative_trapezoid(genesis.tensor([1.0, 5.0, 10.0]))\n"
     "tensor([ 3.0000, 10.5000])"},
    {"histogram", NULL,
     "input: Tensor, bins: int|Tensor, *, range: doubles = None, weight: Tensor = None, "
     "density: bool = False -> hist, bin_edges",
     GN_FORM_METHOD | GN_FORM_OUT, histogram_call,
     "How many elements lie in each bin, and the borders of the bins.\n\n"
     "`bins` is their number, or their borders as a tensor. They have one width over `range`, or "
     "over\n"
     "the elements. With `weight` these are summed up; `density` makes the area 1.",
     ">>> genesis.histogram(genesis.tensor([1.0, 2.0, 1.0]), 2).hist\ntensor([2., 1.])"},
    {"cov", NULL,
     "input: Tensor, *, correction: int = 1, fweights: Tensor = None, aweights: Tensor = None",
     GN_FORM_METHOD | GN_FORM_BLAS, cov_call,
     "The covariance of the rows: a matrix with each pair of rows.\n\n"
     "`correction` is taken from the number of columns; `fweights` says how often each column "
     "counts,\n"
     "`aweights` how important it is.",
     ">>> genesis.cov(genesis.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))\n"
     "tensor([[ 1., -1.],\n        [-1.,  1.]])"},
    {"corrcoef", NULL, "input: Tensor", GN_FORM_METHOD | GN_FORM_BLAS, corrcoef_call,
     "The correlation of the rows: their covariance over the product of their standard deviations.",
     ">>> genesis.corrcoef(genesis.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))\n"
     "tensor([[ 1., -1.],\n        [-1.,  1.]])"},
    {0},
};
