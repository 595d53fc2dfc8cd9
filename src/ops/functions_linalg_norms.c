/*
 * functions_linalg_norms.c: genesis.linalg: norms of vectors and matrices, and the condition.
 */
#include "ops/functions.h"
#include "ops/linalg.h"

#include <math.h>
#include <string.h>

/* ---- which norm ---------------------------------------------------------------------------------------------- */

enum kind {
    NUMBER, /* `p` */
    FROBENIUS,
    NUCLEAR,
};

struct order {
    enum kind kind;
    double p;
};

static struct order order_of(struct gni_scope *s, const gn_argument *given, double usual)
{
    struct order order = {NUMBER, usual};
    if (given->is_given && given->text == NULL)
        order.p = gni_scalar_double(given->operand.scalar);
    else if (given->text != NULL && strcmp(given->text, "fro") == 0)
        order.kind = FROBENIUS;
    else if (given->text != NULL && strcmp(given->text, "nuc") == 0)
        order.kind = NUCLEAR;
    else if (given->text != NULL)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "order %s is not supported: a number, 'fro' or 'nuc'", given->text);
    return order;
}

/* As the type that the norm is computed in: that of `dtype`, halves as float32. */
static gn_tensor *widened(struct gni_scope *s, gn_tensor *x, const gn_argument *dtype)
{
    if (gni_scope_is_ok(s) && !dtype->is_given && gni_dtypes[x->dtype].kind != GNI_KIND_FLOATING)
        gni_scope_fail(s, GN_ERROR_TYPE,
                       "linalg is not defined for %s: convert to a floating type first",
                       gni_dtypes[x->dtype].name);
    if (gni_scope_is_ok(s) && dtype->is_given && gni_dtypes[dtype->dtype].kind != GNI_KIND_FLOATING)
        gni_scope_fail(s, GN_ERROR_TYPE, "dtype must be a floating type, not %s",
                       gni_dtypes[dtype->dtype].name);
    if (!gni_scope_is_ok(s))
        return NULL;
    return gni_wide(s, dtype->is_given ? gni_cast(s, x, dtype->dtype) : x);
}

static gn_dtype dtype_of(const gn_tensor *x, const gn_argument *dtype)
{
    return dtype->is_given ? dtype->dtype : x->dtype;
}

/* ---- vectors --------------------------------------------------------------------------------------------------- */

/* Of no elements only sums are there. */
static void elements_check(struct gni_scope *s, const gn_tensor *x, double p, uint32_t dims)
{
    if (gni_scope_is_ok(s) && (isinf(p) || p < 0) && x->count == 0 && gni_dims_count(x, dims) == 0)
        gni_scope_fail(
            s, GN_ERROR_INVALID_VALUE,
            "cannot compute the norm of order %g on the dimension because this dimension "
            "is empty and the operation does not have an identity",
            p);
}

static gn_tensor *vector_norm(struct gni_scope *s, gn_tensor *x, double p, uint32_t dims,
                              bool is_kept)
{
    elements_check(s, x, p, dims);
    return gni_scope_is_ok(s) ? gni_vector_norm(s, x, p, dims, is_kept) : NULL;
}

static gn_status vector_norm_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    uint32_t dims = gni_dims(&s, x, &a[2]);
    gn_tensor *wide = widened(&s, x, &a[4]);
    gn_tensor *made =
        vector_norm(&s, wide, gni_scalar_double(a[1].operand.scalar), dims, gni_is_set(&a[3]));
    return gni_scope_give(&s, gni_scope_is_ok(&s) ? gni_cast(&s, made, dtype_of(x, &a[4])) : NULL,
                          results);
}

/* ---- matrices ---------------------------------------------------------------------------------------------------- */

/* The two dimensions at the end, the others in their order. */
static gn_tensor *moved(struct gni_scope *s, gn_tensor *x, const int dims[2])
{
    int order[GN_DIMENSIONS_MAX], count = 0;
    if (!gni_scope_is_ok(s))
        return NULL;
    for (int i = 0; i < x->ndim; i++)
        if (i != dims[0] && i != dims[1])
            order[count++] = i;
    order[count++] = dims[0];
    order[count] = dims[1];
    return gni_permute(s, x, order);
}

static gn_tensor *with_dims(struct gni_scope *s, gn_tensor *made, const int dims[2])
{
    if (!gni_scope_is_ok(s))
        return NULL;
    int first = dims[0] < dims[1] ? dims[0] : dims[1], second = dims[0] + dims[1] - first;
    return gni_unsqueeze(s, gni_unsqueeze(s, made, first), second);
}

/* By singular values: their sum, the largest (p > 0) or the smallest. */
static gn_tensor *spectral(struct gni_scope *s, gn_tensor *x, const int dims[2], bool is_sum,
                           double p)
{
    gn_tensor *values = NULL;
    gni_svd(s, moved(s, x, dims), false, "linalg.matrix_norm", NULL, &values, NULL);
    if (!gni_scope_is_ok(s))
        return NULL;
    uint32_t last = UINT32_C(1) << (values->ndim - 1);
    bool is_zero = values->sizes[values->ndim - 1] == 0; /* there are none */
    gn_reduction which = is_sum || is_zero ? GN_REDUCE_SUM
                         : p > 0           ? GN_REDUCE_MAXIMUM
                                           : GN_REDUCE_MINIMUM;
    return gni_reduce(s, which, values, last, false);
}

/* The largest or the smallest sum of absolute values, of columns (p is 1 or -1) or of rows (infinite). */
static gn_tensor *summed(struct gni_scope *s, gn_tensor *x, const int dims[2], double p)
{
    int along = isinf(p) ? dims[1] : dims[0], across = isinf(p) ? dims[0] : dims[1];
    gn_tensor *sizes = gni_unary(s, GN_OP_ABSOLUTE, x);
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *sums = gni_reduce(s, GN_REDUCE_SUM, sizes, UINT32_C(1) << along, true);
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_reduction which = p < 0                     ? GN_REDUCE_MINIMUM
                         : sums->sizes[across] > 0 ? GN_REDUCE_MAXIMUM
                                                   : GN_REDUCE_SUM; /* of none: 0 */
    gn_tensor *made = gni_reduce(s, which, sums, UINT32_C(1) << across, true);
    if (!gni_scope_is_ok(s))
        return NULL;
    int first = dims[0] < dims[1] ? dims[0] : dims[1], second = dims[0] + dims[1] - first;
    return gni_squeeze(s, gni_squeeze(s, made, second), first);
}

static gn_tensor *matrix_norm(struct gni_scope *s, gn_tensor *x, struct order order,
                              const int dims[2], bool is_kept)
{
    double p = order.p, size = fabs(p);
    gn_tensor *made = NULL;
    if (!gni_scope_is_ok(s))
        return NULL;
    bool has_none = x->sizes[dims[isinf(p) ? 0 : 1]] == 0; /* sums, of which one is the smallest */
    if (order.kind == FROBENIUS)
        return gni_vector_norm(s, x, 2, UINT32_C(1) << dims[0] | UINT32_C(1) << dims[1], is_kept);
    if (order.kind == NUMBER && size != 1 && size != 2 && !isinf(p))
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "order %g is not supported: 1, 2, inf, or the negative ones", p);
    if (order.kind == NUMBER && size != 2 && p < 0 && has_none)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "a matrix of shape %s without elements has no norm of order %g",
                       gni_shape_text(x->ndim, x->sizes).text, p);
    if (gni_scope_is_ok(s) && (order.kind == NUCLEAR || size == 2))
        made = spectral(s, x, dims, order.kind == NUCLEAR, p);
    else if (gni_scope_is_ok(s))
        made = summed(s, x, dims, p);
    return is_kept ? with_dims(s, made, dims) : made;
}

/* Two dimensions that differ. */
static void dims_take(struct gni_scope *s, const gn_tensor *x, const int64_t *given, int dims[2])
{
    for (int i = 0; i < 2 && gni_scope_is_ok(s); i++)
        dims[i] = gni_dim(s, x, given[i]);
    if (gni_scope_is_ok(s) && dims[0] == dims[1])
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "dims must be different. Got (%lld, %lld)",
                       (long long)given[0], (long long)given[1]);
}

static gn_tensor *matrix_norm_of(struct gni_scope *s, gn_tensor *x, struct order order,
                                 const int64_t *given, bool is_kept, const gn_argument *dtype)
{
    int dims[2] = {0, 1};
    if (gni_scope_is_ok(s) && x->ndim < 2)
        gni_scope_fail(s, GN_ERROR_SHAPE, "a matrix has at least 2 dimensions, not shape %s",
                       gni_shape_text(x->ndim, x->sizes).text);
    dims_take(s, x, given, dims);
    gn_tensor *made = matrix_norm(s, widened(s, x, dtype), order, dims, is_kept);
    return gni_scope_is_ok(s) ? gni_cast(s, made, dtype_of(x, dtype)) : NULL;
}

static gn_status matrix_norm_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    if (a[2].count != 2)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "dim must be a tuple of two dimensions");
    struct order order = order_of(&s, &a[1], 2);
    gn_tensor *made =
        matrix_norm_of(&s, a[0].operand.tensor, order, a[2].integers, gni_is_set(&a[3]), &a[4]);
    return gni_scope_give(&s, made, results);
}

/* ---- either ---------------------------------------------------------------------------------------------------------- */

/* With an order, and two dimensions, of matrices; else of vectors. */
static gn_status norm_call(const gn_argument *a, gn_results *results)
{
    static const int64_t both[] = {0, 1};
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *made = NULL;
    bool has_order = a[1].is_given, has_dims = a[2].is_given;
    struct order order = order_of(&s, &a[1], 2);
    if (has_dims && a[2].count > 2)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "If dim is specified, it must be of length 1 or 2. Got %s",
                       gni_shape_text(a[2].count, a[2].integers).text);
    if (!has_dims && has_order && x->ndim != 1 && x->ndim != 2)
        gni_scope_fail(&s, GN_ERROR_SHAPE,
                       "If dim is not specified but ord is, the input must be 1D or 2D. Got %dD",
                       x->ndim);
    if (has_order && (has_dims ? a[2].count == 2 : x->ndim == 2)) {
        made =
            matrix_norm_of(&s, x, order, has_dims ? a[2].integers : both, gni_is_set(&a[3]), &a[4]);
        return gni_scope_give(&s, made, results);
    }
    if (order.kind != NUMBER)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "order %s is of matrices: dim needs two dimensions", a[1].text);
    uint32_t dims = gni_dims(&s, x, &a[2]);
    made = vector_norm(&s, widened(&s, x, &a[4]), order.p, dims, gni_is_set(&a[3]));
    return gni_scope_give(&s, gni_scope_is_ok(&s) ? gni_cast(&s, made, dtype_of(x, &a[4])) : NULL,
                          results);
}

/* The norm times that of the inverse, infinite where a matrix is singular. */
static gn_tensor *cond_by_inverse(struct gni_scope *s, gn_tensor *x, struct order order)
{
    gn_tensor *info = NULL;
    gni_matrix_check(s, x, true);
    if (!gni_scope_is_ok(s))
        return NULL;
    const int dims[] = {x->ndim - 2, x->ndim - 1};
    gn_tensor *inverse = gni_inverse(s, x, NULL, &info);
    gn_tensor *made = gni_binary(s, GN_OP_MULTIPLY, gni_of(matrix_norm(s, x, order, dims, false)),
                                 gni_of(matrix_norm(s, inverse, order, dims, false)));
    info = gni_scope_is_ok(s) ? gni_host_give(s, info, x) : NULL;
    gn_tensor *is_singular = gni_binary(s, GN_OP_NOT_EQUAL, gni_of(info), gni_integer(0));
    made = gni_where(s, is_singular, gni_floating(INFINITY), gni_of(made));
    return gni_scope_is_ok(s) ? gni_cast(s, made, x->dtype) : NULL;
}

static gn_status cond_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *values = NULL, *made = NULL;
    struct order order = order_of(&s, &a[1], 2);
    gni_matrix_check(&s, x, false);
    if (!gni_scope_is_ok(&s))
        return gni_scope_give(&s, NULL, results);
    if (order.kind != NUMBER || fabs(order.p) != 2)
        return gni_scope_give(&s, cond_by_inverse(&s, x, order), results);
    gni_svd(&s, x, false, "linalg.cond", NULL, &values, NULL);
    if (gni_scope_is_ok(&s) && values->sizes[values->ndim - 1] == 0)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "a matrix without elements has no condition");
    if (gni_scope_is_ok(&s)) {
        int last = values->ndim - 1;
        gn_tensor *ends[] = {gni_select(&s, values, last, 0),
                             gni_select(&s, values, last, values->sizes[last] - 1)};
        bool is_turned = order.p < 0;
        made = gni_binary(&s, GN_OP_DIVIDE, gni_of(ends[is_turned]), gni_of(ends[!is_turned]));
    }
    return gni_scope_give(&s, made, results);
}

/* ---- the table ------------------------------------------------------------------------------------------------------- */

const gn_function gni_functions_linalg_norms[] = {
    {"linalg.vector_norm", NULL,
     "x: Tensor, ord: number = 2, dim: dims = None, keepdim: bool = False, *, dtype: dtype = None",
     GN_FORM_OUT, vector_norm_call,
     "The p-th root of the sum of the p-th powers of the absolute values, of all elements or along "
     "dimensions.\n\n"
     "`ord` is p: a number, infinity (the largest), minus infinity (the smallest) or 0 (how many "
     "are not 0).",
     ">>> genesis.linalg.vector_norm(genesis.tensor([3.0, 4.0]))\ntensor(5.)"},
    {"linalg.matrix_norm", NULL,
     "A: Tensor, ord: number|text = 'fro', dim: dims = (-2, -1), keepdim: bool = False, *, "
     "dtype: dtype = None",
     GN_FORM_OUT | GN_FORM_BLAS, matrix_norm_call,
     "The norm of matrices: ``\"fro\"`` (of all elements), ``\"nuc\"`` (the sum of singular "
     "values), 2 (the\nlargest of these), 1 (the largest sum of a column), inf (of a row), or -2, "
     "-1 "
     "and -inf, the smallest.",
     ">>> genesis.linalg.matrix_norm(genesis.tensor([[1.0, 2.0], [2.0, 4.0]]))\ntensor(5.)"},
    {"linalg.norm", NULL,
     "input: Tensor, ord: number|text = None, dim: dims = None, keepdim: bool = False, *, "
     "dtype: dtype = None",
     GN_FORM_OUT | GN_FORM_BLAS, norm_call,
     "The norm of a vector, or of a matrix where `ord` is given and there are two dimensions.",
     ">>> genesis.linalg.norm(genesis.tensor([3.0, 4.0]), 1)\ntensor(7.)"},
    {"linalg.cond", NULL, "input: Tensor, p: number|text = None", GN_FORM_OUT | GN_FORM_BLAS,
     cond_call,
     "The condition of a matrix: its norm times that of its inverse; by default the largest "
     "singular value\ndivided by the smallest.",
     ">>> genesis.linalg.cond(genesis.tensor([[2.0, 0.0], [0.0, 1.0]]))\ntensor(2.)"},
    {0},
};
