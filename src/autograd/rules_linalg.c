/*
 * rules_linalg.c: the gradients of factorizations of matrices: src/ops/linalg.h.
 *
 * They are written in the operations of the forward pass, so that they can be differentiated again. g is the gradient of a
 * result, ^T a transposed matrix. Formulas: Giles, "Collected matrix derivative results" (2008); Seeger et al., "Auto-
 * differentiating linear algebra" (2017); Golub and Pereyra (1973) for the pseudoinverse.
 */
#include "autograd/autograd.h"

#include "ops/linalg.h"

static gn_tensor *product(struct gni_scope *s, gn_tensor *a, gn_tensor *b)
{
    return gni_scope_is_ok(s) && a != NULL && b != NULL ? gni_matmul(s, a, b) : NULL;
}

static gn_tensor *sum(struct gni_scope *s, gn_tensor *a, gn_tensor *b)
{
    if (a == NULL || b == NULL)
        return a != NULL ? a : b;
    return gni_binary(s, GN_OP_ADD, gni_of(a), gni_of(b));
}

static gn_tensor *difference(struct gni_scope *s, gn_tensor *a, gn_tensor *b)
{
    return gni_binary(s, GN_OP_SUBTRACT, gni_of(a), gni_of(b));
}

static gn_tensor *times(struct gni_scope *s, gn_tensor *a, gn_tensor *b)
{
    return gni_binary(s, GN_OP_MULTIPLY, gni_of(a), gni_of(b));
}

static gn_tensor *negative(struct gni_scope *s, gn_tensor *a)
{
    return gni_unary(s, GN_OP_NEGATIVE, a);
}

static gn_tensor *half(struct gni_scope *s, gn_tensor *a)
{
    return gni_binary(s, GN_OP_MULTIPLY, gni_of(a), gni_floating(0.5));
}

/* x of x a = b, with a triangular a. */
static gn_tensor *solve_right(struct gni_scope *s, gn_tensor *a, gn_tensor *b, bool is_upper,
                              bool is_unit)
{
    return gni_turned(
        s, gni_solve_triangular(s, gni_turned(s, a), gni_turned(s, b), !is_upper, is_unit));
}

/* A vector for each matrix on its diagonal. */
static gn_tensor *on_diagonal(struct gni_scope *s, gn_tensor *values)
{
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *one =
        gni_identity(s, values->sizes[values->ndim - 1], values->dtype, values->device);
    return times(s, gni_as_columns(s, values), one);
}

/* A number for each matrix, as a matrix of one element. */
static gn_tensor *as_matrix(struct gni_scope *s, gn_tensor *numbers)
{
    return gni_as_columns(s, gni_as_columns(s, numbers));
}

/* ---- triangular factors ------------------------------------------------------------------------------------- */

/* With P the lower triangle of L^T g, its diagonal halved: L^-T (P + P^T) / 2 L^-1. */
static void cholesky_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    struct gni_scope *s = frame->scope;
    const struct gni_linalg_details *details = frame->node->details;
    gn_tensor *l = frame->results[0], *g = frame->given[0];
    if (details->is_upper) {
        l = gni_turned(s, l);
        g = gni_turned(s, g);
    }
    gn_tensor *all = product(s, gni_turned(s, l), g);
    gn_tensor *low = gni_triangle(s, all, false, 0), *strict = gni_triangle(s, all, false, -1);
    gn_tensor *both = half(s, sum(s, low, gni_turned(s, strict)));
    gn_tensor *left = gni_solve_triangular(s, gni_turned(s, l), both, true, false);
    gradients[0] = solve_right(s, l, left, false, false);
}

static gn_tensor *part(struct gni_scope *s, gn_tensor *x, int dim, int64_t begin, int64_t count)
{
    return gni_scope_is_ok(s) ? gni_narrow(s, x, x->ndim + dim, begin, count) : NULL;
}

static gn_tensor *joined(struct gni_scope *s, gn_tensor *first, gn_tensor *second, int dim)
{
    if (!gni_scope_is_ok(s))
        return NULL;
    return gni_cat(s, 2, (gn_tensor *[]){first, second}, first->ndim + dim);
}

/* The rows of x go to where the pivots have taken them from. */
static gn_tensor *rows_restored(const struct gni_rule_frame *frame, gn_tensor *x)
{
    struct gni_scope *s = frame->scope;
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *order = gni_lu_order(s, frame->results[1], x->sizes[x->ndim - 2], true);
    return gni_rows_taken(s, x, order);
}

/* a = P L U. Of the square part: P L^-T (tril(L^T gL, -1) + triu(gU U^T)) U^-T; what is beside it, or below, follows it. */
static void lu_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    struct gni_scope *s = frame->scope;
    gn_tensor *lu = frame->results[0], *g = frame->given[0];
    if (g == NULL)
        return;
    int64_t m = lu->sizes[lu->ndim - 2], n = lu->sizes[lu->ndim - 1], k = m < n ? m : n;
    gn_tensor *square = part(s, part(s, lu, -2, 0, k), -1, 0, k);
    gn_tensor *g_square = part(s, part(s, g, -2, 0, k), -1, 0, k);
    gn_tensor *l =
        sum(s, gni_triangle(s, square, false, -1), gni_identity(s, k, lu->dtype, lu->device));
    gn_tensor *u = gni_triangle(s, square, true, 0);
    gn_tensor *low = product(s, gni_turned(s, l), gni_triangle(s, g_square, false, -1));
    gn_tensor *high = product(s, gni_triangle(s, g_square, true, 0), gni_turned(s, u));
    gn_tensor *beside = NULL, *below = NULL;
    if (n > k) {
        beside = part(s, g, -1, k, n - k);
        low = difference(s, low, product(s, beside, gni_turned(s, part(s, lu, -1, k, n - k))));
    }
    if (m > k) {
        below = part(s, g, -2, k, m - k);
        high = difference(s, high, product(s, gni_turned(s, part(s, lu, -2, k, m - k)), below));
    }
    gn_tensor *made = sum(s, gni_triangle(s, low, false, -1), gni_triangle(s, high, true, 0));
    if (below == NULL) {
        made = solve_right(s, gni_turned(s, u), made, false, false);
        if (beside != NULL)
            made = joined(s, made, beside, -1);
        made = gni_solve_triangular(s, gni_turned(s, l), made, true, true);
    } else {
        made = joined(s, gni_solve_triangular(s, gni_turned(s, l), made, true, true), below, -2);
        made = solve_right(s, gni_turned(s, u), made, false, false);
    }
    gradients[0] = rows_restored(frame, made);
}

/* ---- equations ------------------------------------------------------------------------------------------------ */

/* a x = b: gb = a^-T g, ga = -gb x^T */
static void solve_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    struct gni_scope *s = frame->scope;
    gn_tensor *back =
        gni_solve(s, gni_turned(s, frame->inputs[0].tensor), frame->given[0], "linalg.solve", NULL);
    gradients[1] = back;
    if ((frame->needed & 1) != 0)
        gradients[0] = negative(s, product(s, back, gni_turned(s, frame->results[0])));
}

static void triangular_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    struct gni_scope *s = frame->scope;
    const struct gni_linalg_details *details = frame->node->details;
    gn_tensor *back = gni_solve_triangular(s, gni_turned(s, frame->inputs[0].tensor),
                                           frame->given[0], !details->is_upper, details->is_unit);
    gradients[1] = back;
    if ((frame->needed & 1) == 0)
        return;
    gn_tensor *all = negative(s, product(s, back, gni_turned(s, frame->results[0])));
    int64_t beside = details->is_unit ? details->is_upper ? 1 : -1 : 0;
    gradients[0] = gni_triangle(s, all, details->is_upper, beside);
}

/* y = a^-1: -y^T g y^T */
static void inverse_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    struct gni_scope *s = frame->scope;
    gn_tensor *y = gni_turned(s, frame->results[0]);
    gradients[0] = negative(s, product(s, y, product(s, frame->given[0], y)));
}

/* ---- determinants --------------------------------------------------------------------------------------------- */

/* The product of the other elements along the last dimension. */
static gn_tensor *others(struct gni_scope *s, gn_tensor *values)
{
    if (!gni_scope_is_ok(s))
        return NULL;
    int last = values->ndim - 1;
    gn_tensor *one = gni_identity(s, values->sizes[last], GN_BOOL, values->device);
    gn_tensor *rows = gni_where(s, one, gni_integer(1), gni_of(gni_as_rows(s, values)));
    return gni_scope_is_ok(s)
               ? gni_reduce(s, GN_REDUCE_PRODUCT, rows, UINT32_C(1) << (last + 1), false)
               : NULL;
}

/* The cofactors, also of a singular matrix: det(U) det(V) U diag(products of the other values) V^T */
static gn_tensor *cofactors(struct gni_scope *s, gn_tensor *a)
{
    gn_tensor *u = NULL, *values = NULL, *vh = NULL;
    gni_svd(s, a, false, "linalg.det", &u, &values, &vh);
    gn_tensor *sign = times(s, gni_determinant(s, u), gni_determinant(s, vh));
    gn_tensor *scaled = times(s, u, gni_as_rows(s, others(s, values)));
    return times(s, product(s, scaled, vh), as_matrix(s, sign));
}

static bool is_singular(struct gni_scope *s, gn_tensor *det)
{
    gn_tensor *is_zero = gni_binary(s, GN_OP_EQUAL, gni_of(det), gni_integer(0));
    if (!gni_scope_is_ok(s))
        return false;
    return gni_item(s, gni_reduce(s, GN_REDUCE_ANY, is_zero, 0, false)).integer != 0;
}

/* g det a^-T, and g times the cofactors where a matrix is singular */
static void determinant_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    struct gni_scope *s = frame->scope;
    gn_tensor *a = frame->inputs[0].tensor, *det = frame->results[0], *g = frame->given[0];
    if (a->count > 0 && is_singular(s, det)) {
        gradients[0] = times(s, as_matrix(s, g), cofactors(s, a));
        return;
    }
    gn_tensor *inverse = gni_turned(s, gni_inverse(s, a, "linalg.det", NULL));
    gradients[0] = times(s, as_matrix(s, times(s, g, det)), inverse);
}

/* g a^-T; the sign does not change */
static void log_determinant_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    struct gni_scope *s = frame->scope;
    gn_tensor *inverse = gni_inverse(s, frame->inputs[0].tensor, "linalg.slogdet", NULL);
    gradients[0] = times(s, as_matrix(s, frame->given[0]), gni_turned(s, inverse));
}

/* ---- orthogonal factors ------------------------------------------------------------------------------------------ */

/* a = Q R with at least as many rows as columns: with M = gR R^T - Q^T gQ, (gQ + Q S) R^-T, where S is the upper triangle of M
 * and its transposed one. */
static gn_tensor *qr_tall(struct gni_scope *s, gn_tensor *q, gn_tensor *r, gn_tensor *g_q,
                          gn_tensor *g_r)
{
    gn_tensor *m = g_r != NULL ? product(s, g_r, gni_turned(s, r)) : NULL;
    if (g_q != NULL)
        m = sum(s, m, negative(s, product(s, gni_turned(s, q), g_q)));
    gn_tensor *both =
        sum(s, gni_triangle(s, m, true, 0), gni_turned(s, gni_triangle(s, m, true, 1)));
    gn_tensor *made = sum(s, product(s, q, both), g_q);
    return solve_right(s, gni_turned(s, r), made, false, false);
}

/* With fewer rows: of the square part, with M = Q^T gQ - gR R^T, Q tril(M - M^T, -1) R1^-T; and Q gR for all of it. */
static gn_tensor *qr_wide(struct gni_scope *s, gn_tensor *q, gn_tensor *r, gn_tensor *g_q,
                          gn_tensor *g_r)
{
    if (!gni_scope_is_ok(s))
        return NULL;
    int64_t high = r->sizes[r->ndim - 2], wide = r->sizes[r->ndim - 1];
    gn_tensor *m = g_q != NULL ? product(s, gni_turned(s, q), g_q) : NULL;
    if (g_r != NULL)
        m = sum(s, m, negative(s, product(s, g_r, gni_turned(s, r))));
    gn_tensor *skew = gni_triangle(s, difference(s, m, gni_turned(s, m)), false, -1);
    gn_tensor *first = part(s, r, -1, 0, high);
    gn_tensor *made = solve_right(s, gni_turned(s, first), product(s, q, skew), false, false);
    if (gni_scope_is_ok(s) && wide > high) {
        int64_t sizes[GN_DIMENSIONS_MAX];
        for (int i = 0; i < made->ndim; i++)
            sizes[i] = made->sizes[i];
        sizes[made->ndim - 1] = wide - high;
        made = joined(s, made,
                      gni_full(s, (gn_scalar){.kind = GN_INT64}, made->dtype, made->ndim, sizes,
                               made->device),
                      -1);
    }
    return g_r != NULL ? sum(s, made, product(s, q, g_r)) : made;
}

static void qr_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    struct gni_scope *s = frame->scope;
    const struct gni_linalg_details *details = frame->node->details;
    gn_tensor *q = frame->results[0], *r = frame->results[1];
    int64_t rows = frame->likes[0]->sizes[frame->likes[0]->ndim - 2];
    int64_t columns = frame->likes[0]->sizes[frame->likes[0]->ndim - 1];
    if (details->mode == GNI_QR_R)
        gni_scope_fail(s, GN_ERROR_UNSUPPORTED,
                       "The derivative of linalg.qr depends on Q, which is not computed when "
                       "mode='r': use mode='reduced'");
    if (details->mode == GNI_QR_COMPLETE && rows > columns)
        gni_scope_fail(s, GN_ERROR_UNSUPPORTED,
                       "The QR decomposition is not differentiable when mode='complete' and "
                       "nrows > ncols");
    if (gni_scope_is_ok(s))
        gradients[0] =
            (rows >= columns ? qr_tall : qr_wide)(s, q, r, frame->given[0], frame->given[1]);
}

/* The differences of the elements of a row, one less the other, and 1 on the diagonal. */
static gn_tensor *gaps(struct gni_scope *s, gn_tensor *values)
{
    gn_tensor *apart = difference(s, gni_as_rows(s, values), gni_as_columns(s, values));
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *own = gni_identity(s, values->sizes[values->ndim - 1], GN_BOOL, values->device);
    return gni_where(s, own, gni_integer(1), gni_of(apart));
}

static gn_tensor *skew_over(struct gni_scope *s, gn_tensor *x, gn_tensor *gaps_of_squares)
{
    gn_tensor *skew = difference(s, x, gni_turned(s, x));
    return gni_binary(s, GN_OP_DIVIDE, gni_of(skew), gni_of(gaps_of_squares));
}

/* Columns of U, or rows of Vh, that singular values belong to. */
static gn_tensor *first_of(struct gni_scope *s, gn_tensor *x, int dim, int64_t count)
{
    return x != NULL && gni_scope_is_ok(s) && x->sizes[x->ndim + dim] > count
               ? part(s, x, dim, 0, count)
               : x;
}

/* What gU and gVh give: in the bases U and V, and outside of them. */
static gn_tensor *svd_gradient_of(struct gni_scope *s, gn_tensor *const *usv, gn_tensor *const *g)
{
    gn_tensor *u = usv[0], *values = usv[1], *vh = usv[2], *inside = NULL;
    int64_t m = u->sizes[u->ndim - 2], k = values->sizes[values->ndim - 1];
    int64_t n = vh->sizes[vh->ndim - 1];
    gn_tensor *apart = gaps(s, times(s, values, values));
    if (g[0] != NULL)
        inside = times(s, skew_over(s, product(s, gni_turned(s, u), g[0]), apart),
                       gni_as_rows(s, values));
    if (g[2] != NULL)
        inside = sum(s, inside,
                     times(s, gni_as_columns(s, values),
                           skew_over(s, product(s, vh, gni_turned(s, g[2])), apart)));
    if (g[1] != NULL)
        inside = sum(s, inside, on_diagonal(s, g[1]));
    if (m > k && g[0] != NULL) {
        gn_tensor *scaled =
            gni_binary(s, GN_OP_DIVIDE, gni_of(g[0]), gni_of(gni_as_rows(s, values)));
        gn_tensor *own = product(s, u, product(s, gni_turned(s, u), scaled));
        inside = sum(s, product(s, u, inside), difference(s, scaled, own));
        return product(s, inside, vh);
    }
    if (n > k && g[2] != NULL) {
        gn_tensor *scaled =
            gni_binary(s, GN_OP_DIVIDE, gni_of(g[2]), gni_of(gni_as_columns(s, values)));
        gn_tensor *own = product(s, product(s, scaled, gni_turned(s, vh)), vh);
        inside = sum(s, product(s, inside, vh), difference(s, scaled, own));
        return product(s, u, inside);
    }
    return product(s, u, product(s, inside, vh));
}

static void svd_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    struct gni_scope *s = frame->scope;
    gn_tensor *values = frame->results[1];
    int64_t k = values->sizes[values->ndim - 1];
    gn_tensor *usv[] = {first_of(s, frame->results[0], -1, k), values,
                        first_of(s, frame->results[2], -2, k)};
    gn_tensor *g[] = {first_of(s, frame->given[0], -1, k), frame->given[1],
                      first_of(s, frame->given[2], -2, k)};
    if (!gni_scope_is_ok(s))
        return;
    if (g[0] == NULL && g[2] == NULL)
        gradients[0] = product(s, times(s, usv[0], gni_as_rows(s, g[1])), usv[2]);
    else
        gradients[0] = svd_gradient_of(s, usv, g);
}

/* The symmetric part of V (diag(gL) + V^T gV / gaps) V^T: the matrix is symmetric, and so is its gradient. */
static void eigh_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    struct gni_scope *s = frame->scope;
    gn_tensor *values = frame->results[0], *v = frame->results[1];
    gn_tensor *g_values = frame->given[0], *g_v = frame->given[1];
    if (g_v == NULL) {
        gradients[0] = product(s, times(s, v, gni_as_rows(s, g_values)), gni_turned(s, v));
        return;
    }
    gn_tensor *inside = product(s, gni_turned(s, v), g_v);
    inside = gni_binary(s, GN_OP_DIVIDE, gni_of(inside), gni_of(gaps(s, values)));
    gn_tensor *own = gni_scope_is_ok(s)
                         ? gni_identity(s, values->sizes[values->ndim - 1], GN_BOOL, values->device)
                         : NULL;
    gn_operand diagonal = g_values != NULL ? gni_of(gni_as_columns(s, g_values)) : gni_integer(0);
    inside = gni_where(s, own, diagonal, gni_of(inside));
    gn_tensor *made = product(s, v, product(s, inside, gni_turned(s, v)));
    made = sum(s, made, gni_turned(s, made));
    gradients[0] = gni_binary(s, GN_OP_MULTIPLY, gni_of(made), gni_floating(0.5));
}

/* ---- least squares --------------------------------------------------------------------------------------------------- */

/* y = pinv(a): -y^T g y^T + (1 - a y) g^T y y^T + y^T y g^T (1 - y a), in the order with the smaller products. */
static gn_tensor *pinv_gradient_of(struct gni_scope *s, gn_tensor *a, gn_tensor *y, gn_tensor *g)
{
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *y_t = gni_turned(s, y), *g_t = gni_turned(s, g);
    if (a->sizes[a->ndim - 2] <= a->sizes[a->ndim - 1]) {
        gn_tensor *k = product(s, g_t, y), *k_y = product(s, k, y_t);
        gn_tensor *made = difference(s, k_y, gni_turned(s, product(s, y, k)));
        made = difference(s, made, product(s, product(s, a, y), k_y));
        gn_tensor *rest = difference(s, g_t, product(s, k, a));
        return sum(s, made, product(s, product(s, y_t, y), rest));
    }
    gn_tensor *k = product(s, y, g_t), *y_k = product(s, y_t, k);
    gn_tensor *made = difference(s, y_k, gni_turned(s, product(s, k, y)));
    made = difference(s, made, product(s, product(s, y_k, y), a));
    gn_tensor *rest = product(s, difference(s, g_t, product(s, a, k)), y);
    return sum(s, made, product(s, rest, y_t));
}

static void pinv_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    gradients[0] =
        pinv_gradient_of(frame->scope, frame->inputs[0].tensor, frame->results[0], frame->given[0]);
}

/* x = pinv(a) b */
static void least_squares_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    struct gni_scope *s = frame->scope;
    gn_tensor *a = frame->inputs[0].tensor, *g = frame->given[0];
    gn_tensor *y = gni_pinv(s, a, gni_integer(0), gni_rank_tolerance(a), false);
    gradients[1] = product(s, gni_turned(s, y), g);
    if ((frame->needed & 1) != 0)
        gradients[0] =
            pinv_gradient_of(s, a, y, product(s, g, gni_turned(s, frame->inputs[1].tensor)));
}

/* ---- the table --------------------------------------------------------------------------------------------------------- */

struct gni_rule_row gni_linalg_rule_row(enum gni_rule rule)
{
    switch (rule) {
    case GNI_RULE_CHOLESKY:
        return (struct gni_rule_row){.call = cholesky_gradient, .saves_result = 1};
    case GNI_RULE_LU:
        return (struct gni_rule_row){.call = lu_gradient, .saves_result = 3};
    case GNI_RULE_SOLVE:
        return (struct gni_rule_row){.call = solve_gradient, .saves = 1, .saves_result = 1};
    case GNI_RULE_TRIANGULAR:
        return (struct gni_rule_row){.call = triangular_gradient, .saves = 1, .saves_result = 1};
    case GNI_RULE_INVERSE:
        return (struct gni_rule_row){.call = inverse_gradient, .saves_result = 1};
    case GNI_RULE_DETERMINANT:
        return (struct gni_rule_row){.call = determinant_gradient, .saves = 1, .saves_result = 1};
    case GNI_RULE_LOG_DETERMINANT:
        return (struct gni_rule_row){.call = log_determinant_gradient, .saves = 1};
    case GNI_RULE_QR:
        return (struct gni_rule_row){.call = qr_gradient, .saves_result = 3};
    case GNI_RULE_SVD:
        return (struct gni_rule_row){.call = svd_gradient, .saves_result = 7};
    case GNI_RULE_EIGH:
        return (struct gni_rule_row){.call = eigh_gradient, .saves_result = 3};
    case GNI_RULE_PINV:
        return (struct gni_rule_row){.call = pinv_gradient, .saves = 1, .saves_result = 1};
    case GNI_RULE_LEAST_SQUARES:
        return (struct gni_rule_row){.call = least_squares_gradient, .saves = 3};
    default:
        return (struct gni_rule_row){0};
    }
}
