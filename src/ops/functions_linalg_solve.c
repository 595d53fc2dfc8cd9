/*
 * functions_linalg_solve.c: genesis.linalg: equations, inverses, determinants and least squares.
 */
#include "ops/functions.h"
#include "ops/linalg.h"

#include <string.h>

/* ---- shapes ------------------------------------------------------------------------------------------------ */

/* Both sides in the batch that they broadcast to. */
static void batches_join(struct gni_scope *s, gn_tensor **a, gn_tensor **b)
{
    struct gni_shape shapes[2], batch;
    gn_tensor **both[] = {a, b};
    if (!gni_scope_is_ok(s))
        return;
    for (int k = 0; k < 2; k++) {
        shapes[k].ndim = (*both[k])->ndim - 2;
        memcpy(shapes[k].sizes, (*both[k])->sizes, sizeof shapes[k].sizes);
    }
    if (!gni_shape_broadcast(&shapes[0], &shapes[1], &batch)) {
        gni_scope_fail(s, GN_ERROR_SHAPE, "the batches of shapes %s and %s do not go together",
                       gni_shape_text((*a)->ndim, (*a)->sizes).text,
                       gni_shape_text((*b)->ndim, (*b)->sizes).text);
        return;
    }
    for (int k = 0; k < 2 && gni_scope_is_ok(s); k++) {
        gn_tensor *one = *both[k];
        if (gni_shape_is_equal(shapes[k].ndim, shapes[k].sizes, batch.ndim, batch.sizes))
            continue;
        int64_t sizes[GN_DIMENSIONS_MAX];
        memcpy(sizes, batch.sizes, sizeof sizes);
        sizes[batch.ndim] = one->sizes[one->ndim - 2];
        sizes[batch.ndim + 1] = one->sizes[one->ndim - 1];
        *both[k] = gni_expand(s, one, batch.ndim + 2, sizes);
    }
}

/* Whether b is a vector for each matrix: it has their shape without the last dimension. */
static bool is_vector(const gn_tensor *a, const gn_tensor *b, int side)
{
    return b->ndim == 1 || (b->ndim == a->ndim - 1 &&
                            gni_shape_is_equal(b->ndim - 1, b->sizes, a->ndim - 2, a->sizes) &&
                            b->sizes[b->ndim - 1] == a->sizes[a->ndim + side]);
}

/* ---- square equations ---------------------------------------------------------------------------------------- */

/* x of a x = b, or of x a = b. */
static gn_tensor *solved(struct gni_scope *s, gn_tensor *a, gn_tensor *b, bool is_left,
                         const char *checked, gn_tensor **info)
{
    gni_matrix_check(s, a, true);
    if (!gni_scope_is_ok(s))
        return NULL;
    bool is_column = is_vector(a, b, -1);
    if (!is_left && is_column)
        gni_scope_fail(s, GN_ERROR_SHAPE, "vectors are columns: left=False needs matrices");
    if (is_column)
        b = gni_as_columns(s, b);
    gni_matrix_check(s, b, false);
    if (!is_left) {
        a = gni_turned(s, a);
        b = gni_turned(s, b);
    }
    batches_join(s, &a, &b);
    gn_tensor *made = gni_solve(s, a, b, checked, info);
    if (!is_left)
        made = gni_turned(s, made);
    return is_column && gni_scope_is_ok(s) ? gni_squeeze(s, made, made->ndim - 1) : made;
}

static gn_status solve_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *made = solved(&s, a[0].operand.tensor, a[1].operand.tensor, gni_is_set(&a[2]),
                             "linalg.solve", NULL);
    return gni_scope_give(&s, made, results);
}

static gn_status solve_ex_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *info = NULL, *x = a[0].operand.tensor;
    gn_tensor *made = solved(&s, x, a[1].operand.tensor, gni_is_set(&a[2]),
                             gni_is_set(&a[3]) ? "linalg.solve_ex" : NULL, &info);
    if (gni_scope_is_ok(&s))
        info = gni_host_give(&s, info, x);
    return gni_scope_give_pair(&s, made, info, results);
}

/* The same with a triangular matrix. */
static gn_tensor *solved_triangular(struct gni_scope *s, gn_tensor *a, gn_tensor *b, bool is_upper,
                                    bool is_left, bool is_unit)
{
    gni_matrix_check(s, a, true);
    gni_matrix_check(s, b, false);
    if (!is_left) {
        a = gni_turned(s, a);
        b = gni_turned(s, b);
    }
    batches_join(s, &a, &b);
    gn_tensor *made = gni_solve_triangular(s, a, b, is_upper == is_left, is_unit);
    return is_left ? made : gni_turned(s, made);
}

static gn_status solve_triangular_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *made = solved_triangular(&s, a[0].operand.tensor, a[1].operand.tensor,
                                        gni_is_set(&a[2]), gni_is_set(&a[3]), gni_is_set(&a[4]));
    return gni_scope_give(&s, made, results);
}

/* Of l l^T x = b, or with is_upper of l^T l x = b. */
static gn_tensor *solved_cholesky(struct gni_scope *s, gn_tensor *b, gn_tensor *l, bool is_upper)
{
    gni_matrix_check(s, l, true);
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *lower = is_upper ? gni_turned(s, l) : l;
    gn_tensor *made = solved_triangular(s, lower, b, false, true, false);
    return gni_scope_is_ok(s) ? solved_triangular(s, gni_turned(s, lower), made, true, true, false)
                              : NULL;
}

static gn_status cholesky_solve_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *made =
        solved_cholesky(&s, a[0].operand.tensor, a[1].operand.tensor, gni_is_set(&a[2]));
    return gni_scope_give(&s, made, results);
}

static gn_status cholesky_inverse_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *l = a[0].operand.tensor, *made = NULL;
    gni_matrix_check(&s, l, true);
    if (gni_scope_is_ok(&s)) {
        gn_tensor *one = gni_identity(&s, l->sizes[l->ndim - 1], l->dtype, l->device);
        made = solved_cholesky(&s, one, l, gni_is_set(&a[1]));
    }
    return gni_scope_give(&s, made, results);
}

void gni_pivots_check(struct gni_scope *s, const gn_tensor *lu, const gn_tensor *pivots)
{
    if (!gni_scope_is_ok(s))
        return;
    int64_t m = lu->sizes[lu->ndim - 2], n = lu->sizes[lu->ndim - 1];
    if (pivots->dtype != GN_INT32)
        gni_scope_fail(s, GN_ERROR_TYPE, "pivots are int32, not %s",
                       gni_dtypes[pivots->dtype].name);
    if (pivots->ndim != lu->ndim - 1 ||
        !gni_shape_is_equal(pivots->ndim - 1, pivots->sizes, lu->ndim - 2, lu->sizes) ||
        pivots->sizes[pivots->ndim - 1] != (m < n ? m : n))
        gni_scope_fail(s, GN_ERROR_SHAPE, "pivots of shape %s do not fit factors of %s",
                       gni_shape_text(pivots->ndim, pivots->sizes).text,
                       gni_shape_text(lu->ndim, lu->sizes).text);
    if (pivots->device != lu->device)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "the factors and the pivots are on two devices");
}

/* The pivots for each matrix of a batch that the factors were expanded to. */
static gn_tensor *order_for(struct gni_scope *s, gn_tensor *order, const gn_tensor *b)
{
    int64_t sizes[GN_DIMENSIONS_MAX];
    if (!gni_scope_is_ok(s))
        return NULL;
    memcpy(sizes, b->sizes, sizeof sizes);
    sizes[b->ndim - 2] = order->sizes[order->ndim - 1];
    return gni_expand(s, order, b->ndim - 1, sizes);
}

/* P L U x = b: x = U^-1 L^-1 P^T b; the transposed matrix: x = P L^-T U^-T b. */
static gn_tensor *solved_lu(struct gni_scope *s, gn_tensor *lu, gn_tensor *pivots, gn_tensor *b,
                            bool is_transposed)
{
    gni_matrix_check(s, lu, true);
    gni_matrix_check(s, b, false);
    gni_pivots_check(s, lu, pivots);
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *order = gni_lu_order(s, pivots, lu->sizes[lu->ndim - 1], is_transposed);
    batches_join(s, &lu, &b);
    if (gni_scope_is_ok(s) && lu->sizes[lu->ndim - 1] != b->sizes[b->ndim - 2])
        gni_scope_fail(s, GN_ERROR_SHAPE, "factors of shape %s do not fit the other side, %s",
                       gni_shape_text(lu->ndim, lu->sizes).text,
                       gni_shape_text(b->ndim, b->sizes).text);
    order = order_for(s, order, b);
    if (!is_transposed) {
        gn_tensor *made = gni_solve_triangular(s, lu, gni_rows_taken(s, b, order), false, true);
        return gni_solve_triangular(s, lu, made, true, false);
    }
    gn_tensor *turned = gni_turned(s, lu);
    gn_tensor *made = gni_solve_triangular(s, turned, b, false, false);
    return gni_rows_taken(s, gni_solve_triangular(s, turned, made, true, true), order);
}

static gn_status linalg_lu_solve_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    bool is_left = gni_is_set(&a[3]), is_adjoint = gni_is_set(&a[4]);
    gn_tensor *b = a[2].operand.tensor;
    gni_matrix_check(&s, b, false);
    if (!is_left)
        b = gni_turned(&s, b);
    gn_tensor *made =
        solved_lu(&s, a[0].operand.tensor, a[1].operand.tensor, b, is_adjoint == is_left);
    return gni_scope_give(&s, is_left ? made : gni_turned(&s, made), results);
}

static gn_status lu_solve_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *made =
        solved_lu(&s, a[1].operand.tensor, a[2].operand.tensor, a[0].operand.tensor, false);
    return gni_scope_give(&s, made, results);
}

/* ---- inverses ---------------------------------------------------------------------------------------------------- */

static gn_status inv_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    return gni_scope_give(&s, gni_inverse(&s, a[0].operand.tensor, "linalg.inv", NULL), results);
}

static gn_status inv_ex_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *info = NULL, *x = a[0].operand.tensor;
    gn_tensor *made = gni_inverse(&s, x, gni_is_set(&a[1]) ? "linalg.inv_ex" : NULL, &info);
    if (gni_scope_is_ok(&s))
        info = gni_host_give(&s, info, x);
    return gni_scope_give_pair(&s, made, info, results);
}

/* A tolerance that was given, or the number that stands for it. */
static gn_operand tolerance_of(const gn_argument *given, gn_operand other)
{
    return given->is_given ? given->operand : other;
}

static bool is_positive(const gn_argument *given)
{
    return given->is_given &&
           (given->operand.tensor != NULL || gni_scalar_double(given->operand.scalar) > 0);
}

static gn_status pinv_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *made = NULL;
    gni_matrix_check(&s, x, false);
    if (gni_scope_is_ok(&s)) {
        gn_operand usual = is_positive(&a[3]) ? gni_integer(0) : gni_rank_tolerance(x);
        gn_operand rtol = tolerance_of(&a[4], tolerance_of(&a[1], usual));
        made = gni_pinv(&s, x, tolerance_of(&a[3], gni_integer(0)), rtol, gni_is_set(&a[2]));
    }
    return gni_scope_give(&s, made, results);
}

static gn_status pinverse_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *made = gni_pinv(&s, a[0].operand.tensor, gni_integer(0), a[1].operand, false);
    return gni_scope_give(&s, made, results);
}

static gn_status matrix_rank_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *values = NULL, *rank = NULL;
    gni_matrix_check(&s, x, gni_is_set(&a[2]));
    if (!gni_scope_is_ok(&s))
        return gni_scope_give(&s, NULL, results);
    bool is_taped = gni_linalg_enter(&s, 1, &a[0].operand); /* whole numbers have no gradient */
    if (gni_is_set(&a[2]))
        gni_eigh(&s, x, false, "linalg.matrix_rank", &values, NULL);
    else
        gni_svd(&s, x, false, "linalg.matrix_rank", NULL, &values, NULL);
    bool has_limit = a[1].is_given || is_positive(&a[3]);
    gn_operand rtol = tolerance_of(&a[4], has_limit ? gni_integer(0) : gni_rank_tolerance(x));
    gn_operand atol = tolerance_of(&a[3], tolerance_of(&a[1], gni_integer(0)));
    (void)gni_values_inverted(&s, values, atol, rtol, &rank);
    gni_tape_is_paused &= !is_taped;
    return gni_scope_give(&s, rank, results);
}

/* ---- determinants --------------------------------------------------------------------------------------------------- */

static gn_status det_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    return gni_scope_give(&s, gni_determinant(&s, a[0].operand.tensor), results);
}

static gn_status slogdet_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *sign = NULL;
    gn_tensor *made = gni_log_determinant(&s, a[0].operand.tensor, &sign);
    return gni_scope_give_pair(&s, sign, made, results);
}

/* NaN where the determinant is negative. */
static gn_status logdet_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *sign = NULL;
    gn_tensor *made = gni_log_determinant(&s, a[0].operand.tensor, &sign);
    gn_tensor *is_negative = gni_binary(&s, GN_OP_LESS, gni_of(sign), gni_integer(0));
    made = gni_where(&s, is_negative, gni_floating(__builtin_nan("")), gni_of(made));
    return gni_scope_give(&s, made, results);
}

/* ---- least squares ---------------------------------------------------------------------------------------------------- */

static gn_tensor *nothing(struct gni_scope *s, gn_dtype dtype, gn_device *device)
{
    return gni_empty(s, dtype, 1, (const int64_t[]){0}, device);
}

/* The squared lengths of a x - b, where there are more rows than unknowns, and all matrices have full rank. */
static gn_tensor *residuals(struct gni_scope *s, gn_tensor *a, gn_tensor *x, gn_tensor *b,
                            gn_tensor *rank)
{
    if (!gni_scope_is_ok(s))
        return NULL;
    int64_t m = a->sizes[a->ndim - 2], n = a->sizes[a->ndim - 1];
    if (m > n && rank->count > 0) {
        gn_tensor *is_less = gni_binary(s, GN_OP_LESS, gni_of(rank), gni_integer(n));
        if (!gni_scope_is_ok(s) ||
            gni_item(s, gni_reduce(s, GN_REDUCE_ANY, is_less, 0, false)).integer != 0)
            m = n;
    }
    if (!gni_scope_is_ok(s))
        return NULL;
    if (m <= n)
        return nothing(s, a->dtype, a->device);
    gn_tensor *apart = gni_binary(s, GN_OP_SUBTRACT, gni_of(gni_matmul(s, a, x)), gni_of(b));
    gn_tensor *squares = gni_unary(s, GN_OP_SQUARE, apart);
    return gni_scope_is_ok(s)
               ? gni_reduce(s, GN_REDUCE_SUM, squares, UINT32_C(1) << (squares->ndim - 2), false)
               : NULL;
}

static bool is_word(const char *word, const char *const *words, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

/* One algorithm, by singular values; `driver` says what is given beside the solution. */
static gn_status lstsq_call(const gn_argument *a, gn_results *results)
{
    static const char *const drivers[] = {"gelsy", "gels", "gelsd", "gelss"};
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *b = a[1].operand.tensor, *all[4] = {NULL};
    const char *driver = a[3].is_given ? a[3].text : "gelsy";
    if (!is_word(driver, drivers, 4))
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "parameter `driver` should be one of (gels, gelsy, gelsd, gelss), not '%s'",
                       driver);
    gni_matrix_check(&s, x, false);
    if (!gni_scope_is_ok(&s))
        return gni_scope_give(&s, NULL, results);
    bool is_column = is_vector(x, b, -2);
    if (is_column)
        b = gni_as_columns(&s, b);
    gni_matrix_check(&s, b, false);
    batches_join(&s, &x, &b);
    if (gni_scope_is_ok(&s) && x->sizes[x->ndim - 2] != b->sizes[b->ndim - 2])
        gni_scope_fail(
            &s, GN_ERROR_SHAPE, "input.size(-2) should match other.size(-2): shapes %s and %s",
            gni_shape_text(x->ndim, x->sizes).text, gni_shape_text(b->ndim, b->sizes).text);
    if (!gni_scope_is_ok(&s))
        return gni_scope_give(&s, NULL, results);
    all[0] =
        gni_least_squares(&s, x, b, tolerance_of(&a[2], gni_rank_tolerance(x)), &all[2], &all[3]);
    bool has_residuals = strcmp(driver, "gelsy") != 0;
    all[1] = has_residuals ? residuals(&s, x, all[0], b, all[2]) : nothing(&s, x->dtype, x->device);
    if (strcmp(driver, "gels") == 0)
        all[2] = nothing(&s, GN_INT64, x->device);
    if (strcmp(driver, "gelsd") != 0 && strcmp(driver, "gelss") != 0)
        all[3] = nothing(&s, x->dtype, x->device);
    if (is_column && gni_scope_is_ok(&s))
        all[0] = gni_squeeze(&s, all[0], all[0]->ndim - 1);
    return gni_scope_give_list(&s, 4, all, results);
}

/* ---- the table ------------------------------------------------------------------------------------------------------- */

#define SOLVERS (GN_FORM_OUT | GN_FORM_BLAS)
#define METHODS (GN_FORM_METHOD | GN_FORM_OUT | GN_FORM_BLAS)

const gn_function gni_functions_linalg_solve[] = {
    {"linalg.solve", NULL, "A: Tensor, B: Tensor, *, left: bool = True", SOLVERS, solve_call,
     "X of A @ X = B, or of X @ A = B where `left` is false.\n\n"
     "B has one right-hand side or several. A singular matrix raises ``LinAlgError``.",
     ">>> A = genesis.tensor([[2.0, 0.0], [0.0, 4.0]])\n"
     ">>> genesis.linalg.solve(A, genesis.tensor([2.0, 2.0]))\ntensor([1.0000, 0.5000])"},
    {"linalg.solve_ex", NULL,
     "A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False -> result, info",
     SOLVERS, solve_ex_call, "The solution, and for each matrix 0, or a number if it is singular.",
     ">>> genesis.linalg.solve_ex(genesis.eye(2), genesis.ones(2)).result\ntensor([1., 1.])"},
    {"linalg.solve_triangular", NULL,
     "A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False",
     SOLVERS, solve_triangular_call,
     "X of A @ X = B with a triangular A, whose other triangle is not read.\n\n"
     "With `unitriangular` its diagonal counts as 1; where `left` is false X of X @ A = B.",
     ">>> A = genesis.tensor([[2.0, 0.0], [1.0, 1.0]])\n"
     ">>> genesis.linalg.solve_triangular(A, genesis.tensor([[2.0], [3.0]]), upper=False)\n"
     "tensor([[1.],\n        [2.]])"},
    {"cholesky_solve", NULL, "input: Tensor, L: Tensor, upper: bool = False", METHODS,
     cholesky_solve_call, "X of A @ X = input, by the Cholesky factor of A.",
     ">>> genesis.cholesky_solve(genesis.tensor([[8.0]]), genesis.tensor([[2.0]]))\n"
     "tensor([[2.]])"},
    {"cholesky_inverse", NULL, "L: Tensor, upper: bool = False", METHODS, cholesky_inverse_call,
     "The inverse of a matrix, by its Cholesky factor.",
     ">>> genesis.cholesky_inverse(genesis.tensor([[2.0]]))\ntensor([[0.2500]])"},
    {"linalg.lu_solve", NULL,
     "LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False", SOLVERS,
     linalg_lu_solve_call,
     "X of A @ X = B, by what ``linalg.lu_factor`` has given for A.\n\n"
     "With `adjoint` of the transposed matrix; where `left` is false X of X @ A = B.",
     ">>> LU, pivots = genesis.linalg.lu_factor(genesis.tensor([[0.0, 1.0], [2.0, 0.0]]))\n"
     ">>> genesis.linalg.lu_solve(LU, pivots, genesis.tensor([[1.0], [4.0]]))\n"
     "tensor([[2.],\n        [1.]])"},
    {"lu_solve", NULL, "b: Tensor, LU_data: Tensor, LU_pivots: Tensor", METHODS, lu_solve_call,
     "The same as ``linalg.lu_solve``, with the right-hand sides first.",
     ">>> LU, pivots = genesis.linalg.lu_factor(genesis.eye(2))\n"
     ">>> genesis.lu_solve(genesis.ones(2, 1), LU, pivots).tolist()\n[[1.0], [1.0]]"},
    {"linalg.inv", NULL, "A: Tensor", SOLVERS, inv_call,
     "The inverse of a matrix; a singular one raises ``LinAlgError``.\n\n"
     "To solve equations use ``linalg.solve``, which is faster and more exact.",
     ">>> genesis.linalg.inv(genesis.tensor([[2.0, 0.0], [0.0, 4.0]]))\n"
     "tensor([[0.5000, 0.0000],\n        [0.0000, 0.2500]])"},
    {"inverse", NULL, "input: Tensor", METHODS, inv_call, "The same as ``linalg.inv``.",
     ">>> genesis.inverse(genesis.eye(2))\ntensor([[1., 0.],\n        [0., 1.]])"},
    {"linalg.inv_ex", NULL, "A: Tensor, *, check_errors: bool = False -> inverse, info", SOLVERS,
     inv_ex_call,
     "The inverse, and for each matrix 0, or the first element of the diagonal of U that is 0.",
     ">>> genesis.linalg.inv_ex(genesis.zeros(2, 2)).info\ntensor(1, dtype=genesis.int32)"},
    {"linalg.pinv", NULL,
     "input: Tensor, rcond: operand = None, hermitian: bool = False, *, atol: operand = None, "
     "rtol: operand = None",
     SOLVERS, pinv_call,
     "The pseudoinverse of Moore and Penrose.\n\n"
     "Singular values up to `atol`, or `rtol` times the largest (by default the precision of the "
     "type\ntimes the larger size), count as 0. With `hermitian` the matrix is symmetric, and its "
     "lower\ntriangle is read. `rcond` is an older name of `rtol`.",
     ">>> genesis.linalg.pinv(genesis.tensor([[2.0], [0.0]]))\ntensor([[0.5000, 0.0000]])"},
    {"pinverse", NULL, "input: Tensor, rcond: number = 1e-15", METHODS, pinverse_call,
     "The pseudoinverse: ``linalg.pinv``, with a relative tolerance of 1e-15.",
     ">>> genesis.pinverse(genesis.tensor([[2.0], [0.0]]))\ntensor([[0.5000, 0.0000]])"},
    {"linalg.matrix_rank", NULL,
     "input: Tensor, tol: operand = None, hermitian: bool = False, *, atol: operand = None, "
     "rtol: operand = None",
     SOLVERS, matrix_rank_call,
     "How many singular values are above both tolerances, `atol`, and `rtol` times the largest.\n\n"
     "`tol` is an older name of `atol`.",
     ">>> genesis.linalg.matrix_rank(genesis.ones(3, 3))\ntensor(1)"},
    {"linalg.det", NULL, "A: Tensor", SOLVERS, det_call, "The determinant.",
     ">>> genesis.linalg.det(genesis.tensor([[1.0, 2.0], [0.0, 4.0]]))\ntensor(4.)"},
    {"det", NULL, "input: Tensor", METHODS & ~(unsigned)GN_FORM_OUT, det_call,
     "The same as ``linalg.det``.",
     ">>> genesis.det(genesis.tensor([[1.0, 2.0], [0.0, 4.0]]))\ntensor(4.)"},
    {"linalg.slogdet", NULL, "A: Tensor -> sign, logabsdet", SOLVERS, slogdet_call,
     "The sign of the determinant, and the logarithm of its absolute value.",
     ">>> genesis.linalg.slogdet(genesis.eye(2)).sign\ntensor(1.)"},
    {"slogdet", NULL, "input: Tensor -> sign, logabsdet", METHODS, slogdet_call,
     "The same as ``linalg.slogdet``.", ">>> genesis.slogdet(genesis.eye(2)).sign\ntensor(1.)"},
    {"logdet", NULL, "input: Tensor", METHODS & ~(unsigned)GN_FORM_OUT, logdet_call,
     "The logarithm of the determinant: -inf where that is 0, NaN where it is negative.",
     ">>> genesis.logdet(genesis.eye(2))\ntensor(0.)"},
    {"linalg.lstsq", NULL,
     "input: Tensor, b: Tensor, rcond: operand = None, *, driver: text = None"
     " -> solution, residuals, rank, singular_values",
     GN_FORM_BLAS, lstsq_call,
     "X for which A @ X is nearest to B; where there are several, the smallest.\n\n"
     "It is computed by singular values, of which those up to `rcond` times the largest count as "
     "0.\n`driver` only says what else is given, as in PyTorch: with ``\"gelsy\"``, the default, "
     "the rank,\nwith ``\"gels\"`` the residuals, with ``\"gelsd\"`` and ``\"gelss\"`` both, and "
     "the singular values.",
     ">>> A = genesis.tensor([[1.0], [1.0]])\n"
     ">>> genesis.linalg.lstsq(A, genesis.tensor([[1.0], [2.0]])).solution\n"
     "tensor([[1.5000]])"},
    {0},
};
