/*
 * functions_linalg_factors.c: genesis.linalg: factorizations: Cholesky, LU, QR, singular values, eigenvalues.
 */
#include "ops/functions.h"
#include "ops/linalg.h"

#include <string.h>

/* Numbers of the host that say how it went, on the device. */
static gn_tensor *info_give(struct gni_scope *s, gn_tensor *info, const gn_tensor *like)
{
    return info != NULL ? gni_host_give(s, info, like) : NULL;
}

/* ---- Cholesky ------------------------------------------------------------------------------------------- */

static gn_status cholesky_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *made =
        gni_cholesky(&s, a[0].operand.tensor, gni_is_set(&a[1]), "linalg.cholesky", NULL);
    return gni_scope_give(&s, made, results);
}

static gn_status cholesky_ex_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *info = NULL, *x = a[0].operand.tensor;
    const char *checked = gni_is_set(&a[2]) ? "linalg.cholesky_ex" : NULL;
    gn_tensor *made = gni_cholesky(&s, x, gni_is_set(&a[1]), checked, &info);
    return gni_scope_give_pair(&s, made, info_give(&s, info, x), results);
}

/* ---- LU ---------------------------------------------------------------------------------------------------- */

static void pivoting_check(struct gni_scope *s, const gn_argument *pivot)
{
    if (!gni_is_set(pivot))
        gni_scope_fail(s, GN_ERROR_UNSUPPORTED,
                       "linalg.lu_factor: LU without pivoting is not implemented");
}

static gn_status lu_factor_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *pivots = NULL, *info = NULL;
    int32_t why = 0;
    pivoting_check(&s, &a[1]);
    gn_tensor *made = gni_lu(&s, a[0].operand.tensor, &pivots, &info);
    int64_t found = gni_scope_is_ok(&s) ? gni_info_find(info, &why) : -1;
    if (found >= 0)
        gni_scope_fail(&s, GN_ERROR_LINALG,
                       "linalg.lu_factor: %sU[%d,%d] is zero and using it on lu_solve would result "
                       "in a division by zero. If you still want to perform the factorization, "
                       "consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)",
                       gni_element_text(info, found).text, why, why);
    return gni_scope_give_pair(&s, made, pivots, results);
}

static gn_status lu_factor_ex_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *pivots = NULL, *info = NULL, *x = a[0].operand.tensor;
    int32_t why = 0;
    pivoting_check(&s, &a[1]);
    gn_tensor *made = gni_lu(&s, x, &pivots, &info);
    int64_t found = gni_scope_is_ok(&s) && gni_is_set(&a[2]) ? gni_info_find(info, &why) : -1;
    if (found >= 0)
        gni_scope_fail(&s, GN_ERROR_LINALG, "linalg.lu_factor_ex: %sU[%d,%d] is zero",
                       gni_element_text(info, found).text, why, why);
    gn_tensor *all[] = {made, pivots, info_give(&s, info, x)};
    return gni_scope_give_list(&s, 3, all, results);
}

/* The two triangles of both factors in one. */
static void triangles_take(struct gni_scope *s, gn_tensor *lu, gn_tensor **lower, gn_tensor **upper)
{
    if (!gni_scope_is_ok(s))
        return;
    int64_t m = lu->sizes[lu->ndim - 2], n = lu->sizes[lu->ndim - 1], k = m < n ? m : n;
    gn_tensor *left = gni_narrow(s, lu, lu->ndim - 1, 0, k);
    gn_tensor *high = gni_narrow(s, lu, lu->ndim - 2, 0, k);
    gn_tensor *strict = gni_triangle(s, left, false, -1);
    if (!gni_scope_is_ok(s))
        return;
    gn_tensor *rows = gni_arange(s, m, lu->device), *columns = gni_arange(s, k, lu->device);
    gn_tensor *is_diagonal =
        gni_binary(s, GN_OP_EQUAL, gni_of(gni_as_columns(s, rows)), gni_of(columns));
    *lower = gni_where(s, is_diagonal, gni_integer(1), gni_of(strict));
    *upper = gni_triangle(s, high, true, 0);
}

/* Row order[i] of P has its 1 in column i. */
static gn_tensor *permutations(struct gni_scope *s, gn_tensor *order, gn_dtype dtype)
{
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *numbers = gni_arange(s, order->sizes[order->ndim - 1], order->device);
    gn_tensor *is_one = gni_binary(s, GN_OP_EQUAL, gni_of(gni_as_rows(s, order)),
                                   gni_of(gni_as_columns(s, numbers)));
    return gni_scope_is_ok(s) ? gni_cast(s, is_one, dtype) : NULL;
}

static gn_status unpacked_give(struct gni_scope *s, gn_tensor *lu, gn_tensor *pivots,
                               gn_results *results)
{
    gn_tensor *all[3] = {NULL};
    triangles_take(s, lu, &all[1], &all[2]);
    if (gni_scope_is_ok(s)) {
        gn_tensor *order = gni_lu_order(s, pivots, lu->sizes[lu->ndim - 2], false);
        all[0] = permutations(s, order, lu->dtype);
    }
    return gni_scope_give_list(s, 3, all, results);
}

static gn_status lu_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *pivots = NULL, *info = NULL;
    pivoting_check(&s, &a[1]);
    gn_tensor *lu = gni_lu(&s, a[0].operand.tensor, &pivots, &info);
    return unpacked_give(&s, lu, pivots, results);
}

static gn_status lu_unpack_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *lu = a[0].operand.tensor, *pivots = a[1].operand.tensor;
    gni_matrix_check(&s, lu, false);
    gni_pivots_check(&s, lu, pivots);
    return unpacked_give(&s, lu, pivots, results);
}

/* ---- QR ------------------------------------------------------------------------------------------------------ */

static gn_status qr_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    const char *mode = a[1].text;
    gn_tensor *r = NULL;
    enum gni_qr_mode which = strcmp(mode, "r") == 0          ? GNI_QR_R
                             : strcmp(mode, "complete") == 0 ? GNI_QR_COMPLETE
                                                             : GNI_QR_REDUCED;
    if (which == GNI_QR_REDUCED && strcmp(mode, "reduced") != 0)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "received unrecognized mode '%s' but expected one of 'reduced' (default), "
                       "'r', or 'complete'",
                       mode);
    gn_tensor *q = gni_qr(&s, a[0].operand.tensor, which, &r);
    return gni_scope_give_pair(&s, q, r, results);
}

static gn_status qr_some_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *r = NULL;
    gn_tensor *q =
        gni_qr(&s, a[0].operand.tensor, gni_is_set(&a[1]) ? GNI_QR_REDUCED : GNI_QR_COMPLETE, &r);
    return gni_scope_give_pair(&s, q, r, results);
}

/* ---- singular values ------------------------------------------------------------------------------------------- */

static gn_status svd_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *all[3] = {NULL};
    gni_svd(&s, a[0].operand.tensor, gni_is_set(&a[1]), "linalg.svd", &all[0], &all[1], &all[2]);
    return gni_scope_give_list(&s, 3, all, results);
}

static gn_status svdvals_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *values = NULL;
    gni_svd(&s, a[0].operand.tensor, false, "linalg.svdvals", NULL, &values, NULL);
    return gni_scope_give(&s, values, results);
}

/* Without vectors they are zeros, as in PyTorch. */
static gn_status svd_some_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *all[3] = {NULL}, *x = a[0].operand.tensor;
    bool is_some = gni_is_set(&a[1]);
    if (gni_is_set(&a[2])) {
        gni_svd(&s, x, !is_some, "linalg.svd", &all[0], &all[1], &all[2]);
        all[2] = gni_turned(&s, all[2]);
        return gni_scope_give_list(&s, 3, all, results);
    }
    gni_svd(&s, x, false, "linalg.svd", NULL, &all[1], NULL);
    for (int i = 0; i < 3 && gni_scope_is_ok(&s); i += 2) {
        int64_t sizes[GN_DIMENSIONS_MAX];
        memcpy(sizes, x->sizes, sizeof sizes);
        sizes[x->ndim - 2] = sizes[x->ndim - 1] = x->sizes[x->ndim - (i == 0 ? 2 : 1)];
        all[i] = gni_full(&s, (gn_scalar){.kind = GN_INT64}, x->dtype, x->ndim, sizes, x->device);
    }
    return gni_scope_give_list(&s, 3, all, results);
}

/* ---- eigenvalues ---------------------------------------------------------------------------------------------------- */

static bool is_upper(struct gni_scope *s, const gn_argument *triangle)
{
    const char *word = triangle->text;
    bool is_known = word[0] != '\0' && word[1] == '\0' && strchr("UuLl", word[0]) != NULL;
    if (!is_known)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "Expected UPLO argument to be 'L' or 'U', but got %s", word);
    return is_known && (word[0] == 'U' || word[0] == 'u');
}

static gn_status eigh_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *values = NULL, *vectors = NULL;
    gni_eigh(&s, a[0].operand.tensor, is_upper(&s, &a[1]), "linalg.eigh", &values, &vectors);
    return gni_scope_give_pair(&s, values, vectors, results);
}

static gn_status eigvalsh_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *values = NULL;
    gni_eigh(&s, a[0].operand.tensor, is_upper(&s, &a[1]), "linalg.eigvalsh", &values, NULL);
    return gni_scope_give(&s, values, results);
}

/* ---- the table ---------------------------------------------------------------------------------------------------- */

#define FACTORS (GN_FORM_OUT | GN_FORM_BLAS)
#define OLDER (GN_FORM_METHOD | GN_FORM_OUT | GN_FORM_BLAS)

const gn_function gni_functions_linalg_factors[] = {
    {"linalg.cholesky", NULL, "input: Tensor, *, upper: bool = False", FACTORS, cholesky_call,
     "The lower triangular matrix L of L @ L.mT, for a symmetric positive-definite matrix.\n\n"
     "With `upper` its transposed matrix. Only that triangle of the matrix is read. A matrix that "
     "is not\npositive-definite raises ``LinAlgError``.",
     ">>> genesis.linalg.cholesky(genesis.tensor([[4.0, 2.0], [2.0, 5.0]]))\n"
     "tensor([[2., 0.],\n        [1., 2.]])"},
    {"cholesky", NULL, "input: Tensor, upper: bool = False", OLDER, cholesky_call,
     "The same as ``linalg.cholesky``.",
     ">>> genesis.cholesky(genesis.tensor([[4.0, 2.0], [2.0, 5.0]]))\n"
     "tensor([[2., 0.],\n        [1., 2.]])"},
    {"linalg.cholesky_ex", NULL,
     "input: Tensor, *, upper: bool = False, check_errors: bool = False -> L, info", FACTORS,
     cholesky_ex_call,
     "The Cholesky factor, and for each matrix 0, or the order of its first leading minor that is "
     "not\npositive.",
     ">>> genesis.linalg.cholesky_ex(genesis.eye(2)).info\ntensor(0, dtype=genesis.int32)"},
    {"linalg.lu_factor", NULL, "A: Tensor, *, pivot: bool = True -> LU, pivots", FACTORS,
     lu_factor_call,
     "Both factors of P @ L @ U in one matrix, and the rows that were exchanged, counted from 1.",
     ">>> genesis.linalg.lu_factor(genesis.tensor([[1.0, 2.0], [2.0, 6.0]]))[1].tolist()\n[2, 2]"},
    {"linalg.lu_factor_ex", NULL,
     "A: Tensor, *, pivot: bool = True, check_errors: bool = False -> LU, pivots, info", FACTORS,
     lu_factor_ex_call,
     "The same, and for each matrix 0, or the first element of the diagonal of U that is 0.",
     ">>> genesis.linalg.lu_factor_ex(genesis.zeros(2, 2)).info\ntensor(1, dtype=genesis.int32)"},
    {"linalg.lu", NULL, "A: Tensor, *, pivot: bool = True -> P, L, U", FACTORS, lu_call,
     "The permutation P, the lower triangular L and the upper triangular U of P @ L @ U.",
     ">>> P, L, U = genesis.linalg.lu(genesis.tensor([[1.0, 2.0], [2.0, 6.0]]))\n"
     ">>> (P @ L @ U).tolist()\n[[1.0, 2.0], [2.0, 6.0]]"},
    {"lu_unpack", NULL, "LU_data: Tensor, LU_pivots: Tensor -> P, L, U", GN_FORM_OUT,
     lu_unpack_call, "The matrices P, L and U that ``linalg.lu_factor`` has given as one.",
     ">>> LU, pivots = genesis.linalg.lu_factor(genesis.eye(2))\n"
     ">>> genesis.lu_unpack(LU, pivots).U\ntensor([[1., 0.],\n        [0., 1.]])"},
    {"linalg.qr", NULL, "A: Tensor, mode: text = 'reduced' -> Q, R", FACTORS, qr_call,
     "Q with orthonormal columns, and the upper triangular R, of Q @ R.\n\n"
     "`mode` is ``\"reduced\"``, ``\"complete\"`` for a square Q, or ``\"r\"`` for R alone: then Q "
     "has no elements.",
     ">>> Q, R = genesis.linalg.qr(genesis.tensor([[3.0, 1.0], [4.0, 2.0]]))\n"
     ">>> genesis.allclose(Q @ R, genesis.tensor([[3.0, 1.0], [4.0, 2.0]]))\nTrue"},
    {"qr", NULL, "input: Tensor, some: bool = True -> Q, R", OLDER, qr_some_call,
     "The same as ``linalg.qr``: reduced, or complete where `some` is false.",
     ">>> genesis.qr(genesis.ones(3, 2)).R.shape\n(2, 2)"},
    {"linalg.svd", NULL, "A: Tensor, full_matrices: bool = True -> U, S, Vh", FACTORS, svd_call,
     "The singular values S, descending, and the orthogonal matrices U and Vh of U @ diag(S) @ Vh."
     "\n\nWith `full_matrices` both are square. Gradients need singular values that differ, and "
     "where\n`full_matrices` adds columns these have none.",
     ">>> genesis.linalg.svd(genesis.tensor([[0.0, 2.0], [3.0, 0.0]])).S\ntensor([3., 2.])"},
    {"svd", NULL, "input: Tensor, some: bool = True, compute_uv: bool = True -> U, S, V", OLDER,
     svd_some_call, "The same as ``linalg.svd``, with V in place of its transposed matrix.",
     ">>> genesis.svd(genesis.tensor([[0.0, 2.0], [3.0, 0.0]])).S\ntensor([3., 2.])"},
    {"linalg.svdvals", NULL, "A: Tensor", FACTORS, svdvals_call, "The singular values, descending.",
     ">>> genesis.linalg.svdvals(genesis.tensor([[0.0, 2.0], [3.0, 0.0]]))\ntensor([3., 2.])"},
    {"linalg.eigh", NULL, "input: Tensor, UPLO: text = 'L' -> eigenvalues, eigenvectors", FACTORS,
     eigh_call,
     "The eigenvalues of a symmetric matrix, ascending, and its eigenvectors, as columns.\n\n"
     "Only the lower triangle is read, or the upper one with ``UPLO=\"U\"``.",
     ">>> genesis.linalg.eigh(genesis.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues\n"
     "tensor([1., 2.])"},
    {"linalg.eigvalsh", NULL, "input: Tensor, UPLO: text = 'L'", FACTORS, eigvalsh_call,
     "The eigenvalues of a symmetric matrix, ascending.",
     ">>> genesis.linalg.eigvalsh(genesis.tensor([[2.0, 0.0], [0.0, 1.0]]))\ntensor([1., 2.])"},
    {0},
};
