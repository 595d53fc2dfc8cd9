/*
 * functions_linalg_products.c: genesis.linalg: powers and exponentials of matrices, chains of products, and what is made of
 * views of them.
 */
#include "ops/functions.h"
#include "ops/linalg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- powers ------------------------------------------------------------------------------------------------------- */

static gn_tensor *identity_like(struct gni_scope *s, gn_tensor *x)
{
    gn_tensor *one =
        gni_scope_is_ok(s) ? gni_identity(s, x->sizes[x->ndim - 1], x->dtype, x->device) : NULL;
    return gni_scope_is_ok(s) ? gni_clone(s, gni_expand(s, one, x->ndim, x->sizes)) : NULL;
}

static void square_check(struct gni_scope *s, const gn_tensor *x)
{
    if (x->ndim < 2 || x->sizes[x->ndim - 1] != x->sizes[x->ndim - 2])
        gni_scope_fail(s, GN_ERROR_SHAPE, "square matrices are needed, not shape %s",
                       gni_shape_text(x->ndim, x->sizes).text);
}

/* By squares: the bits of n say which of them are factors. */
static gn_tensor *powered(struct gni_scope *s, gn_tensor *x, uint64_t n)
{
    gn_tensor *made = NULL;
    for (; n > 0 && gni_scope_is_ok(s); n >>= 1) {
        if ((n & 1) != 0)
            made = made == NULL ? x : gni_matmul(s, made, x);
        if (n > 1 && gni_scope_is_ok(s))
            x = gni_matmul(s, x, x);
    }
    return made;
}

static gn_status matrix_power_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *made = NULL;
    int64_t n = a[1].operand.scalar.integer;
    square_check(&s, x);
    if (gni_scope_is_ok(&s) && n < 0)
        x = gni_inverse(&s, x, "linalg.inv", NULL);
    if (gni_scope_is_ok(&s) && n == 0)
        made = identity_like(&s, x);
    else if (gni_scope_is_ok(&s) && (n == 1 || n == -1))
        made = n == 1 ? gni_clone(&s, x) : x;
    else if (gni_scope_is_ok(&s))
        made = powered(&s, x, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
    return gni_scope_give(&s, made, results);
}

/* ---- exponentials -------------------------------------------------------------------------------------------------- */

enum {
    DEGREE = 13,       /* of Pade's approximation (Higham, 2005) */
    SQUARES_MOST = 64, /* a matrix for which more are needed has infinite powers */
};

static gn_tensor *scaled(struct gni_scope *s, gn_tensor *x, double factor)
{
    return gni_binary(s, GN_OP_MULTIPLY, gni_of(x), gni_floating(factor));
}

static gn_tensor *added(struct gni_scope *s, gn_tensor *x, gn_tensor *y)
{
    return gni_binary(s, GN_OP_ADD, gni_of(x), gni_of(y));
}

/* c0 p0 + c1 p1 + c2 p2 + c3 p3 */
static gn_tensor *mixed(struct gni_scope *s, gn_tensor *const p[4], double c0, double c1, double c2,
                        double c3)
{
    const double factors[] = {c0, c1, c2, c3};
    gn_tensor *made = NULL;
    for (int i = 0; i < 4; i++)
        if (factors[i] != 0) {
            gn_tensor *one = scaled(s, p[i], factors[i]);
            made = made == NULL ? one : added(s, made, one);
        }
    return made;
}

/* Of matrices whose norm is at most 5.4. */
static gn_tensor *pade(struct gni_scope *s, gn_tensor *x)
{
    static const double b[DEGREE + 1] = {64764752532480000.,
                                         32382376266240000.,
                                         7771770303897600.,
                                         1187353796428800.,
                                         129060195264000.,
                                         10559470521600.,
                                         670442572800.,
                                         33522128640.,
                                         1323241920.,
                                         40840800.,
                                         960960.,
                                         16380.,
                                         182.,
                                         1.};
    const double unit = b[0]; /* so that no term of float32 overflows */
    gn_tensor *p[4] = {identity_like(s, x), NULL, NULL, NULL};
    for (int i = 1; i < 4 && gni_scope_is_ok(s); i++)
        p[i] = i == 1 ? gni_matmul(s, x, x) : gni_matmul(s, p[i - 1], p[1]);
    gn_tensor *high = mixed(s, p, 0, b[9] / unit, b[11] / unit, b[13] / unit);
    gn_tensor *odd = gni_scope_is_ok(s) ? gni_matmul(s, p[3], high) : NULL;
    odd = added(s, odd, mixed(s, p, b[1] / unit, b[3] / unit, b[5] / unit, b[7] / unit));
    odd = gni_scope_is_ok(s) ? gni_matmul(s, x, odd) : NULL;
    high = mixed(s, p, 0, b[8] / unit, b[10] / unit, b[12] / unit);
    gn_tensor *even = gni_scope_is_ok(s) ? gni_matmul(s, p[3], high) : NULL;
    even = added(s, even, mixed(s, p, 1, b[2] / unit, b[4] / unit, b[6] / unit));
    gn_tensor *below = gni_binary(s, GN_OP_SUBTRACT, gni_of(even), gni_of(odd));
    return gni_solve(s, below, added(s, even, odd), NULL, NULL);
}

/* How often each matrix is halved, as floating numbers; the most of them. */
static gn_tensor *halvings(struct gni_scope *s, gn_tensor *x, int *most)
{
    bool is_taped = gni_linalg_enter(s, 1, &(gn_operand){.tensor = x});
    gn_tensor *sums =
        gni_scope_is_ok(s) ? gni_vector_norm(s, x, 1, UINT32_C(1) << (x->ndim - 2), true) : NULL;
    gn_tensor *norm = gni_scope_is_ok(s) ? gni_reduce(s, GN_REDUCE_MAXIMUM, sums,
                                                      UINT32_C(1) << (x->ndim - 1), true)
                                         : NULL;
    gn_tensor *parts =
        gni_unary(s, GN_OP_LOG2, gni_binary(s, GN_OP_DIVIDE, gni_of(norm), gni_floating(5.37)));
    gn_tensor *counts = gni_unary(s, GN_OP_CEIL, parts);
    counts = gni_binary(s, GN_OP_MAXIMUM, gni_of(counts), gni_integer(0));
    gn_tensor *is_less = gni_binary(s, GN_OP_LESS_EQUAL, gni_of(counts), gni_integer(SQUARES_MOST));
    counts = gni_where(s, is_less, gni_of(counts), gni_integer(0)); /* also for NaN */
    if (gni_scope_is_ok(s))
        *most =
            (int)gni_scalar_double(gni_item(s, gni_reduce(s, GN_REDUCE_MAXIMUM, counts, 0, false)));
    gni_tape_is_paused &= !is_taped;
    return counts;
}

/* exp(x) = exp(x / 2^k)^(2^k), where each matrix has its own k. Squaring doubles an error each time: so matrices of float32 are
 * computed in float64. */
static gn_status matrix_exp_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *made = NULL;
    const gn_dtype dtype = x->dtype;
    int most = 0;
    gni_matrix_check(&s, x, true);
    if (!gni_scope_is_ok(&s) || x->count == 0)
        return gni_scope_give(&s, gni_scope_is_ok(&s) ? gni_clone(&s, x) : NULL, results);
    if (dtype == GN_FLOAT32)
        x = gni_cast(&s, x, GN_FLOAT64);
    gn_tensor *counts = halvings(&s, x, &most);
    gn_tensor *scale = gni_unary(&s, GN_OP_EXP2, gni_unary(&s, GN_OP_NEGATIVE, counts));
    made = pade(&s, gni_binary(&s, GN_OP_MULTIPLY, gni_of(x), gni_of(scale)));
    for (int i = 0; i < most && gni_scope_is_ok(&s); i++) {
        gn_tensor *square = gni_matmul(&s, made, made);
        gn_tensor *is_next = gni_binary(&s, GN_OP_GREATER, gni_of(counts), gni_integer(i));
        made = gni_where(&s, is_next, gni_of(square), gni_of(made));
    }
    return gni_scope_give(&s, gni_scope_is_ok(&s) ? gni_cast(&s, made, dtype) : NULL, results);
}

/* ---- chains ----------------------------------------------------------------------------------------------------------- */

enum {
    CHAIN_MOST = 64,
};

/* sizes[i] x sizes[i + 1] is matrix i: where each part of the chain is best cut. */
static void chain_plan(int count, const int64_t *sizes, int cut[CHAIN_MOST][CHAIN_MOST])
{
    double cost[CHAIN_MOST][CHAIN_MOST];
    for (int i = 0; i < count; i++)
        cost[i][i] = 0;
    for (int length = 2; length <= count; length++)
        for (int i = 0; i + length <= count; i++) {
            int j = i + length - 1;
            cost[i][j] = INFINITY;
            for (int k = i; k < j; k++) {
                double one = cost[i][k] + cost[k + 1][j] +
                             (double)sizes[i] * (double)sizes[k + 1] * (double)sizes[j + 1];
                if (one < cost[i][j]) {
                    cost[i][j] = one;
                    cut[i][j] = k;
                }
            }
        }
}

static gn_tensor *chain_multiply(struct gni_scope *s, gn_tensor *const *matrices,
                                 int cut[CHAIN_MOST][CHAIN_MOST], int from, int to)
{
    if (from == to || !gni_scope_is_ok(s))
        return matrices[from];
    gn_tensor *left = chain_multiply(s, matrices, cut, from, cut[from][to]);
    gn_tensor *right = chain_multiply(s, matrices, cut, cut[from][to] + 1, to);
    return gni_scope_is_ok(s) ? gni_matmul(s, left, right) : NULL;
}

static gn_status multi_dot_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    int count = a[0].count, cut[CHAIN_MOST][CHAIN_MOST];
    int64_t sizes[CHAIN_MOST + 1];
    gn_tensor *matrices[CHAIN_MOST], *made = NULL;
    if (count < 2 || count > CHAIN_MOST) {
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "expected at least 2 tensors and at most %d, not %d", CHAIN_MOST, count);
        return gni_scope_give(&s, NULL, results);
    }
    bool is_row = a[0].tensors[0]->ndim == 1, is_column = a[0].tensors[count - 1]->ndim == 1;
    for (int i = 0; i < count && gni_scope_is_ok(&s); i++) {
        gn_tensor *one = a[0].tensors[i];
        if (one->ndim == 1 && (i == 0 || i == count - 1))
            one = gni_unsqueeze(&s, one, i == 0 ? 0 : 1);
        if (!gni_scope_is_ok(&s))
            break;
        if (one->ndim != 2 || (i > 0 && sizes[i] != one->sizes[0]))
            gni_scope_fail(&s, GN_ERROR_SHAPE,
                           "tensor %d of shape %s does not fit: matrices, of which the first and "
                           "the last may be vectors, and inner sizes that are equal",
                           i, gni_shape_text(one->ndim, one->sizes).text);
        else
            sizes[i] = one->sizes[0], sizes[i + 1] = one->sizes[1];
        matrices[i] = one;
    }
    if (gni_scope_is_ok(&s)) {
        chain_plan(count, sizes, cut);
        made = chain_multiply(&s, matrices, cut, 0, count - 1);
    }
    if (is_column && gni_scope_is_ok(&s))
        made = gni_squeeze(&s, made, 1);
    if (is_row && gni_scope_is_ok(&s))
        made = gni_squeeze(&s, made, 0);
    return gni_scope_give(&s, made, results);
}

/* ---- vectors ------------------------------------------------------------------------------------------------------------- */

/* The sum of products along a dimension; rounded once. */
static gn_status vecdot_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_operand in[] = {a[0].operand, a[1].operand};
    gn_dtype dtype = gni_join(&s, 2, in, false);
    gn_tensor *product = gni_binary(&s, GN_OP_MULTIPLY, in[0], in[1]), *made = NULL;
    if (gni_scope_is_ok(&s) && product->ndim == 0)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "a vector has at least one dimension");
    int dim = gni_scope_is_ok(&s) ? gni_dim(&s, product, a[2].operand.scalar.integer) : 0;
    if (gni_scope_is_ok(&s))
        made = gni_reduce(&s, GN_REDUCE_SUM, product, UINT32_C(1) << dim, false);
    return gni_scope_give(&s, gni_scope_is_ok(&s) ? gni_cast(&s, made, dtype) : NULL, results);
}

/* Powers of each element as the last dimension: `count` of them, ascending or descending. */
static gn_tensor *powers_of(struct gni_scope *s, gn_tensor *x, int64_t count, bool is_ascending)
{
    gn_tensor *numbers = gni_arange(s, count, x->device);
    if (!is_ascending)
        numbers = gni_binary(s, GN_OP_SUBTRACT, gni_integer(count - 1), gni_of(numbers));
    gn_tensor *columns = gni_as_columns(s, x);
    gn_tensor *made = gni_binary(s, GN_OP_POWER, gni_of(columns), gni_of(numbers));
    return gni_scope_is_ok(s) ? gni_cast(s, made, x->dtype) : NULL;
}

static gn_tensor *vandermonde(struct gni_scope *s, gn_tensor *x, const gn_argument *n,
                              bool is_ascending)
{
    if (x->ndim == 0 && gni_scope_is_ok(s))
        x = gni_unsqueeze(s, x, 0);
    if (!gni_scope_is_ok(s))
        return NULL;
    int64_t count = n->is_given ? n->operand.scalar.integer : x->sizes[x->ndim - 1];
    if (count < 0)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "N must be non-negative, not %lld",
                       (long long)count);
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_dtype dtype = x->dtype == GN_BOOL || (gni_dtypes[x->dtype].kind != GNI_KIND_FLOATING &&
                                             x->dtype != GN_UINT64)
                         ? GN_INT64
                         : x->dtype;
    return powers_of(s, gni_cast(s, x, dtype), count, is_ascending);
}

static gn_status linalg_vander_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    if (a[1].is_given && a[1].operand.scalar.integer < 2)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "N must be greater than 1, not %lld",
                       (long long)a[1].operand.scalar.integer);
    return gni_scope_give(&s, vandermonde(&s, a[0].operand.tensor, &a[1], true), results);
}

static gn_status vander_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    if (a[0].operand.tensor->ndim != 1)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "x must be a one-dimensional tensor, not of shape %s",
                       gni_shape_text(a[0].operand.tensor->ndim, a[0].operand.tensor->sizes).text);
    return gni_scope_give(&s, vandermonde(&s, a[0].operand.tensor, &a[1], gni_is_set(&a[2])),
                          results);
}

/* ---- equations of tensors ---------------------------------------------------------------------------------------------- */

static int64_t product_of(const int64_t *sizes, int from, int to)
{
    int64_t count = 1;
    for (int i = from; i < to; i++)
        count *= sizes[i];
    return count;
}

static gn_status tensorinv_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *made = NULL;
    int64_t ind = a[1].operand.scalar.integer, sizes[GN_DIMENSIONS_MAX];
    if (ind <= 0 || ind > x->ndim)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "Expected a strictly positive integer for ind, up to %d, not %lld", x->ndim,
                       (long long)ind);
    if (gni_scope_is_ok(&s)) {
        int front = (int)ind, back = x->ndim - front;
        int64_t rows = product_of(x->sizes, 0, front),
                columns = product_of(x->sizes, front, x->ndim);
        if (rows != columns)
            gni_scope_fail(&s, GN_ERROR_SHAPE,
                           "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
                           "prod(self.shape[:ind]), but got %lld != %lld",
                           (long long)columns, (long long)rows);
        for (int i = 0; i < x->ndim; i++)
            sizes[i] = x->sizes[i < back ? front + i : i - back];
        gn_tensor *matrix =
            gni_scope_is_ok(&s) ? gni_reshape(&s, x, 2, (int64_t[]){rows, columns}) : NULL;
        gn_tensor *inverse =
            gni_scope_is_ok(&s) ? gni_inverse(&s, matrix, "linalg.inv", NULL) : NULL;
        made = gni_scope_is_ok(&s) ? gni_reshape(&s, inverse, x->ndim, sizes) : NULL;
    }
    return gni_scope_give(&s, made, results);
}

/* The dimensions that are named, in that order, behind the others. */
static gn_tensor *moved_behind(struct gni_scope *s, gn_tensor *x, const gn_argument *dims)
{
    uint32_t named = gni_dims(s, x, dims);
    int order[GN_DIMENSIONS_MAX], count = 0;
    if (!gni_scope_is_ok(s) || named == 0)
        return x;
    for (int i = 0; i < x->ndim; i++)
        if ((named >> i & 1) == 0)
            order[count++] = i;
    for (int i = 0; i < dims->count; i++)
        order[count++] = gni_dim(s, x, dims->integers[i]);
    return gni_permute(s, x, order);
}

static gn_status tensorsolve_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *b = a[1].operand.tensor, *made = NULL;
    x = moved_behind(&s, x, &a[2]);
    if (gni_scope_is_ok(&s)) {
        int behind = x->ndim - b->ndim; /* of the solution */
        int64_t count = behind >= 0 ? product_of(x->sizes, b->ndim, x->ndim) : -1;
        if (count != b->count)
            gni_scope_fail(&s, GN_ERROR_SHAPE,
                           "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) "
                           "== prod(self.shape[:other.ndim]), but got shapes %s and %s",
                           gni_shape_text(x->ndim, x->sizes).text,
                           gni_shape_text(b->ndim, b->sizes).text);
        gn_tensor *matrix =
            gni_scope_is_ok(&s) ? gni_reshape(&s, x, 2, (int64_t[]){b->count, count}) : NULL;
        gn_tensor *right =
            gni_scope_is_ok(&s) ? gni_reshape(&s, b, 2, (int64_t[]){b->count, 1}) : NULL;
        gn_tensor *found =
            gni_scope_is_ok(&s) ? gni_solve(&s, matrix, right, "linalg.solve", NULL) : NULL;
        made = gni_scope_is_ok(&s) ? gni_reshape(&s, found, behind, x->sizes + b->ndim) : NULL;
    }
    return gni_scope_give(&s, made, results);
}

/* ---- the table ------------------------------------------------------------------------------------------------------------- */

const gn_function gni_functions_linalg_products[] = {
    {"linalg.matrix_power", NULL, "A: Tensor, n: int", GN_FORM_OUT | GN_FORM_BLAS,
     matrix_power_call,
     "The product of n times a square matrix; of its inverse where n is negative, and the identity "
     "where it is 0.",
     ">>> genesis.linalg.matrix_power(genesis.tensor([[1, 1], [0, 1]]), 5).tolist()\n"
     "[[1, 5], [0, 1]]"},
    {"matrix_power", NULL, "input: Tensor, n: int", GN_FORM_METHOD | GN_FORM_OUT | GN_FORM_BLAS,
     matrix_power_call, "The same as ``linalg.matrix_power``.",
     ">>> genesis.matrix_power(genesis.tensor([[1, 1], [0, 1]]), 5).tolist()\n[[1, 5], [0, 1]]"},
    {"linalg.matrix_exp", NULL, "input: Tensor", GN_FORM_BLAS, matrix_exp_call,
     "The exponential of a square matrix: the sum of A^k / k!.",
     ">>> genesis.linalg.matrix_exp(genesis.zeros(2, 2))\ntensor([[1., 0.],\n        [0., 1.]])"},
    {"matrix_exp", NULL, "input: Tensor", GN_FORM_METHOD | GN_FORM_BLAS, matrix_exp_call,
     "The same as ``linalg.matrix_exp``.",
     ">>> genesis.matrix_exp(genesis.zeros(2, 2))\ntensor([[1., 0.],\n        [0., 1.]])"},
    {"linalg.multi_dot", NULL, "tensors: tensors", GN_FORM_OUT | GN_FORM_BLAS, multi_dot_call,
     "The product of several matrices, in the order that needs the fewest multiplications.\n\n"
     "The first one may be a vector, which is a row, and the last one, which is a column.",
     ">>> genesis.linalg.multi_dot([genesis.ones(2, 3), genesis.ones(3, 1), genesis.ones(1)])\n"
     "tensor([3., 3.])"},
    {"linalg.vecdot", NULL, "x: Tensor, y: Tensor, *, dim: dim = -1", GN_FORM_OUT, vecdot_call,
     "The sum of products along a dimension of both, which broadcast together.",
     ">>> genesis.linalg.vecdot(genesis.tensor([1.0, 2.0]), genesis.tensor([3.0, 4.0]))\n"
     "tensor(11.)"},
    {"linalg.vander", NULL, "x: Tensor, *, N: int = None", 0, linalg_vander_call,
     "The powers of each element from 0 on, as the last dimension: Vandermonde's matrix.",
     ">>> genesis.linalg.vander(genesis.tensor([2, 3]), N=3).tolist()\n[[1, 2, 4], [1, 3, 9]]"},
    {"vander", NULL, "x: Tensor, N: int = None, increasing: bool = False", 0, vander_call,
     "The powers of each element of a vector down to 0, or up from 0 with `increasing`.",
     ">>> genesis.vander(genesis.tensor([2, 3]), 3).tolist()\n[[4, 2, 1], [9, 3, 1]]"},
    {"linalg.tensorinv", NULL, "input: Tensor, ind: int = 2", GN_FORM_OUT | GN_FORM_BLAS,
     tensorinv_call,
     "The inverse of a tensor as a linear map: its first `ind` dimensions are the rows of a "
     "matrix.",
     ">>> genesis.linalg.tensorinv(genesis.eye(4).reshape(2, 2, 4)).shape\n"
     "(4, 2, 2)"},
    {"linalg.tensorsolve", NULL, "input: Tensor, other: Tensor, dims: dims = None",
     GN_FORM_OUT | GN_FORM_BLAS, tensorsolve_call,
     "X for which the sum of products of `input` and X over all dimensions of X is `other`.\n\n"
     "`dims` of `input` are moved to the end first.",
     ">>> A = genesis.eye(4).reshape(2, 2, 4)\n"
     ">>> genesis.linalg.tensorsolve(A, genesis.ones(2, 2))\ntensor([1., 1., 1., 1.])"},
    {0},
};
