/*
 * linalg_spectra.c: the factorizations of linalg.h by orthogonal matrices: QR, singular values, eigenvalues; and the pseudoinverse
 * and least squares, which are made of singular values.
 *
 * Numbers that are not finite are refused before LAPACK sees them: its iterations may not end.
 */
#include "ops/linalg.h"

#include "base/error.h"

#include <float.h>
#include <math.h>

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* One matrix for all of a batch: the identity, for a factor of matrices without elements. */
static gn_tensor *identities(struct gni_scope *s, const gn_tensor *like, int64_t n)
{
    gn_tensor *made = gni_batch_new(s, like, like->dtype, 2, n, n);
    if (gni_scope_is_ok(s))
        gni_assign(s, made, gni_of(gni_identity(s, n, like->dtype, made->device)));
    return made;
}

static gn_tensor *zeros(struct gni_scope *s, const gn_tensor *like, int extra, int64_t rows,
                        int64_t columns)
{
    gn_tensor *made = gni_batch_new(s, like, like->dtype, extra, rows, columns);
    if (gni_scope_is_ok(s))
        gni_assign(s, made, gni_integer(0));
    return made;
}

static struct gni_solver_task task_of(struct gni_scope *s, enum gni_solver solver,
                                      const gn_tensor *x, gn_tensor *copy, gn_tensor **info)
{
    *info = gni_batch_new(s, x, GN_INT32, 0, 0, 0);
    struct gni_solver_task task = {
        .solver = solver,
        .dtype = x->dtype,
        .batch = x->count > 0 ? gni_batch_count(x) : 0,
        .rows = x->sizes[x->ndim - 2],
        .columns = x->sizes[x->ndim - 1],
        .operands = {gni_host_data(s, copy)},
        .info = (int32_t *)(void *)gni_host_data(s, *info),
    };
    return task;
}

static void leave(struct gni_scope *s, bool is_taped, enum gni_rule rule, const char *name,
                  gn_tensor *x, int count, gn_tensor **results,
                  const struct gni_linalg_details *details)
{
    gni_linalg_leave(s, is_taped,
                     &(struct gni_tape_step){.rule = rule,
                                             .name = name,
                                             .input_count = 1,
                                             .inputs = &(gn_operand){.tensor = x},
                                             .result_count = count,
                                             .results = results,
                                             .details = details,
                                             .detail_bytes = sizeof *details});
}

/* ---- QR --------------------------------------------------------------------------------------------------- */

gn_tensor *gni_qr(struct gni_scope *s, gn_tensor *a, enum gni_qr_mode mode, gn_tensor **r)
{
    const struct gni_linalg_details details = {.mode = (int)mode};
    gni_matrix_check(s, a, false);
    if (!gni_scope_is_ok(s))
        return NULL;
    int64_t m = a->sizes[a->ndim - 2], n = a->sizes[a->ndim - 1];
    int64_t inner = mode == GNI_QR_COMPLETE ? m : least(m, n);
    bool is_taped = gni_linalg_enter(s, 1, &(gn_operand){.tensor = a});
    gn_tensor *copy = gni_host_take(s, a, true), *q = NULL, *info;
    if (mode == GNI_QR_R)
        q = gni_empty(s, a->dtype, 1, (const int64_t[]){0}, a->device);
    else
        q = a->count > 0 ? gni_batch_new(s, a, a->dtype, 2, inner, m) : identities(s, a, inner);
    *r = a->count > 0 ? gni_batch_new(s, a, a->dtype, 2, inner, n) : zeros(s, a, 2, inner, n);
    struct gni_solver_task task = task_of(s, GNI_SOLVER_QR, a, copy, &info);
    task.inner = inner;
    task.operands[1] = mode == GNI_QR_R ? NULL : gni_host_data(s, q);
    task.operands[2] = gni_host_data(s, *r);
    gni_solver_run(s, &task, a);
    q = gni_host_give(s, q, a);
    if (mode != GNI_QR_R && a->count > 0)
        q = gni_turned(s, q);
    else if (mode != GNI_QR_R && inner != m && gni_scope_is_ok(s))
        q = gni_host_give(s, zeros(s, a, 2, m, inner), a); /* no columns */
    *r = gni_host_give(s, *r, a);
    gn_tensor *results[] = {q, *r};
    leave(s, is_taped, GNI_RULE_QR, "qr", a, 2, results, &details);
    return q;
}

/* ---- singular values and eigenvalues ------------------------------------------------------------------------ */

/* The number of the first matrix that has a number that is not finite, or -1. */
static int64_t infinite_find(const gn_tensor *x, int64_t batch)
{
    int64_t each = batch > 0 ? x->count / batch : 0;
    const void *data = gni_tensor_data(x);
    for (int64_t i = 0; i < batch; i++) {
        bool is_finite = true;
        if (x->dtype == GN_FLOAT64)
            for (int64_t k = 0; k < each; k++)
                is_finite &= isfinite(((const double *)data)[i * each + k]) != 0;
        else
            for (int64_t k = 0; k < each; k++)
                is_finite &= isfinite(((const float *)data)[i * each + k]) != 0;
        if (!is_finite)
            return i;
    }
    return -1;
}

static void finite_check(struct gni_scope *s, const char *name, const gn_tensor *copy,
                         const struct gni_solver_task *task, const gn_tensor *info)
{
    int64_t found = gni_scope_is_ok(s) ? infinite_find(copy, task->batch) : -1;
    if (found >= 0)
        gni_scope_fail(s, GN_ERROR_LINALG,
                       "%s: %sThe algorithm failed to converge because the input matrix contained "
                       "non-finite values.",
                       name, gni_element_text(info, found).text);
}

static void iteration_check(struct gni_scope *s, const char *name, const gn_tensor *info,
                            const char *values)
{
    int32_t why = 0;
    if (!gni_scope_is_ok(s))
        return;
    int64_t found = gni_info_find(info, &why);
    if (found >= 0)
        gni_scope_fail(s, GN_ERROR_LINALG,
                       "%s: %sThe algorithm failed to converge because the input matrix is "
                       "ill-conditioned or has too many repeated %s (error code: %d).",
                       name, gni_element_text(info, found).text, values, why);
}

/* The results are made even where only the values are asked for, if their gradient will need them. */
void gni_svd(struct gni_scope *s, gn_tensor *a, bool is_full, const char *name, gn_tensor **u,
             gn_tensor **values, gn_tensor **vh)
{
    const struct gni_linalg_details details = {0};
    gni_matrix_check(s, a, false);
    if (!gni_scope_is_ok(s))
        return;
    int64_t m = a->sizes[a->ndim - 2], n = a->sizes[a->ndim - 1], k = least(m, n);
    bool is_taped = gni_linalg_enter(s, 1, &(gn_operand){.tensor = a});
    bool has_vectors = u != NULL || is_taped, is_whole = is_full && u != NULL;
    gn_tensor *made[3] = {NULL, gni_batch_new(s, a, a->dtype, 1, k, 0), NULL}, *info;
    int64_t left = is_whole ? m : k, right = is_whole ? n : k;
    bool is_empty = a->count == 0;
    if (has_vectors) {
        made[0] =
            is_empty && is_whole ? identities(s, a, m) : gni_batch_new(s, a, a->dtype, 2, m, left);
        made[2] =
            is_empty && is_whole ? identities(s, a, n) : gni_batch_new(s, a, a->dtype, 2, right, n);
    }
    gn_tensor *copy = gni_host_take(s, a, false);
    struct gni_solver_task task = task_of(s, GNI_SOLVER_SVD, a, copy, &info);
    task.is_full = is_whole;
    task.operands[1] = gni_host_data(s, made[1]);
    task.operands[2] = gni_host_data(s, made[0]);
    task.operands[3] = gni_host_data(s, made[2]);
    finite_check(s, name, copy, &task, info);
    gni_solver_run(s, &task, a);
    if (!is_empty)
        iteration_check(s, name, info, "singular values");
    for (int i = 0; i < 3 && gni_scope_is_ok(s); i++)
        if (made[i] != NULL)
            made[i] = gni_host_give(s, made[i], a);
    if (has_vectors)
        leave(s, is_taped, GNI_RULE_SVD, "svd", a, 3, made, &details);
    if (u != NULL) {
        *u = made[0];
        *vh = made[2];
    }
    *values = made[1];
}

void gni_eigh(struct gni_scope *s, gn_tensor *a, bool is_upper, const char *name,
              gn_tensor **values, gn_tensor **vectors)
{
    const struct gni_linalg_details details = {.is_upper = is_upper};
    gni_matrix_check(s, a, true);
    if (!gni_scope_is_ok(s))
        return;
    bool is_taped = gni_linalg_enter(s, 1, &(gn_operand){.tensor = a});
    gn_tensor *copy = gni_host_take(s, a, false), *info;
    gn_tensor *made[2] = {gni_batch_new(s, a, a->dtype, 1, a->sizes[a->ndim - 1], 0), NULL};
    struct gni_solver_task task = task_of(s, GNI_SOLVER_EIGH, a, copy, &info);
    task.is_upper = is_upper;
    task.has_vectors = vectors != NULL || is_taped;
    task.operands[1] = gni_host_data(s, made[0]);
    finite_check(s, name, copy, &task, info);
    gni_solver_run(s, &task, a);
    if (a->count > 0)
        iteration_check(s, name, info, "eigenvalues");
    made[0] = gni_host_give(s, made[0], a);
    if (task.has_vectors) {
        made[1] = gni_turned(s, gni_host_give(s, copy, a));
        leave(s, is_taped, GNI_RULE_EIGH, "eigh", a, 2, made, &details);
    }
    *values = made[0];
    if (vectors != NULL)
        *vectors = made[1];
}

/* ---- what is made of them ------------------------------------------------------------------------------------ */

/* A tolerance for each matrix, as a tensor that broadcasts against its values. */
static gn_operand tolerance_of(struct gni_scope *s, gn_operand tolerance)
{
    return tolerance.tensor != NULL && gni_scope_is_ok(s)
               ? gni_of(gni_as_columns(s, tolerance.tensor))
               : tolerance;
}

gn_tensor *gni_values_inverted(struct gni_scope *s, gn_tensor *values, gn_operand atol,
                               gn_operand rtol, gn_tensor **rank)
{
    if (!gni_scope_is_ok(s))
        return NULL;
    int last = values->ndim - 1;
    gn_tensor *sizes = gni_unary(s, GN_OP_ABSOLUTE, values);
    if (values->sizes[last] == 0 || !gni_scope_is_ok(s)) {
        if (rank != NULL)
            *rank = gni_sum(s, values, UINT32_C(1) << last, false, GN_INT64);
        return values;
    }
    gn_tensor *largest = gni_reduce(s, GN_REDUCE_MAXIMUM, sizes, UINT32_C(1) << last, true);
    gn_tensor *limit = gni_binary(s, GN_OP_MULTIPLY, gni_of(largest), tolerance_of(s, rtol));
    limit = gni_binary(s, GN_OP_MAXIMUM, gni_of(limit), tolerance_of(s, atol));
    gn_tensor *counts = gni_binary(s, GN_OP_GREATER, gni_of(sizes), gni_of(limit));
    if (rank != NULL && gni_scope_is_ok(s))
        *rank = gni_sum(s, counts, UINT32_C(1) << last, false, GN_INT64);
    gn_tensor *inverted = gni_binary(s, GN_OP_DIVIDE, gni_integer(1), gni_of(values));
    return gni_where(s, counts, gni_of(inverted), gni_integer(0));
}

static gn_tensor *pinv_of(struct gni_scope *s, gn_tensor *a, gn_operand atol, gn_operand rtol,
                          bool is_symmetric)
{
    gn_tensor *u = NULL, *values = NULL, *vh = NULL;
    if (is_symmetric) {
        gni_eigh(s, a, false, "linalg.pinv", &values, &u);
        vh = gni_turned(s, u);
    } else {
        gni_svd(s, a, false, "linalg.pinv", &u, &values, &vh);
    }
    gn_tensor *inverted = gni_values_inverted(s, values, atol, rtol, NULL);
    gn_tensor *left = gni_turned(s, vh), *right = gni_turned(s, u);
    if (!gni_scope_is_ok(s))
        return NULL;
    left = gni_binary(s, GN_OP_MULTIPLY, gni_of(left), gni_of(gni_as_rows(s, inverted)));
    return gni_scope_is_ok(s) ? gni_matmul(s, left, right) : NULL;
}

gn_tensor *gni_pinv(struct gni_scope *s, gn_tensor *a, gn_operand atol, gn_operand rtol,
                    bool is_symmetric)
{
    const struct gni_linalg_details details = {0};
    gni_matrix_check(s, a, is_symmetric);
    if (!gni_scope_is_ok(s))
        return NULL;
    bool is_taped = gni_linalg_enter(s, 1, &(gn_operand){.tensor = a});
    gn_tensor *made = pinv_of(s, a, atol, rtol, is_symmetric);
    leave(s, is_taped, GNI_RULE_PINV, "pinv", a, 1, &made, &details);
    return made;
}

gn_tensor *gni_least_squares(struct gni_scope *s, gn_tensor *a, gn_tensor *b, gn_operand rtol,
                             gn_tensor **rank, gn_tensor **values)
{
    const struct gni_linalg_details details = {0};
    const gn_operand inputs[] = {{.tensor = a}, {.tensor = b}};
    gn_tensor *u = NULL, *found = NULL, *vh = NULL;
    gni_matrix_check(s, a, false);
    gni_matrix_check(s, b, false);
    if (!gni_scope_is_ok(s))
        return NULL;
    bool is_taped = gni_linalg_enter(s, 2, inputs);
    gni_svd(s, a, false, "linalg.lstsq", &u, &found, &vh);
    gn_tensor *inverted = gni_values_inverted(s, found, gni_integer(0), rtol, rank);
    gn_tensor *parts = gni_scope_is_ok(s) ? gni_matmul(s, gni_turned(s, u), b) : NULL;
    parts = gni_binary(s, GN_OP_MULTIPLY, gni_of(parts), gni_of(gni_as_columns(s, inverted)));
    gn_tensor *made = gni_scope_is_ok(s) ? gni_matmul(s, gni_turned(s, vh), parts) : NULL;
    gni_linalg_leave(s, is_taped,
                     &(struct gni_tape_step){.rule = GNI_RULE_LEAST_SQUARES,
                                             .name = "lstsq",
                                             .input_count = 2,
                                             .inputs = inputs,
                                             .result_count = 1,
                                             .results = &made,
                                             .details = &details,
                                             .detail_bytes = sizeof details});
    *values = found;
    return made;
}
