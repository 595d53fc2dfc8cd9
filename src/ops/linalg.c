/*
 * linalg.c: what is common to the factorizations of linalg.h, and those by which equations are solved.
 *
 * An operation takes copies of its operands to the host, where a solver overwrites them with the results (cpu_solvers.h), and
 * brings these back. gni_solver_run() is the one place to ask a GPU's own library first.
 */
#include "ops/linalg.h"

#include "base/error.h"
#include "ops/move.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

/* ---- checks ------------------------------------------------------------------------------------------------ */

void gni_matrix_check(struct gni_scope *s, const gn_tensor *x, bool is_square)
{
    if (!gni_scope_is_ok(s))
        return;
    if (x->dtype != GN_FLOAT32 && x->dtype != GN_FLOAT64)
        gni_scope_fail(s, GN_ERROR_TYPE,
                       "linalg is not defined for %s: convert to float32 or float64 first",
                       gni_dtypes[x->dtype].name);
    else if (x->ndim < 2)
        gni_scope_fail(s, GN_ERROR_SHAPE, "a matrix has at least 2 dimensions, not shape %s",
                       gni_shape_text(x->ndim, x->sizes).text);
    else if (is_square && x->sizes[x->ndim - 1] != x->sizes[x->ndim - 2])
        gni_scope_fail(s, GN_ERROR_SHAPE,
                       "A must be batches of square matrices, but they are %lld by %lld matrices",
                       (long long)x->sizes[x->ndim - 2], (long long)x->sizes[x->ndim - 1]);
}

int64_t gni_info_find(const gn_tensor *info, int32_t *why)
{
    const int32_t *numbers = (const int32_t *)(const void *)gni_tensor_data(info);
    for (int64_t i = 0; i < info->count; i++)
        if (numbers[i] != 0) {
            *why = numbers[i];
            return i;
        }
    return -1;
}

struct gni_element_text gni_element_text(const gn_tensor *info, int64_t index)
{
    struct gni_element_text made = {""};
    if (info->ndim > 0)
        (void)snprintf(made.text, sizeof made.text, "(Batch element %lld): ", (long long)index);
    return made;
}

/* `sentence` has a place for the number that says why. */
static void info_check(struct gni_scope *s, const char *checked, const gn_tensor *info,
                       const char *before, const char *behind)
{
    int32_t why = 0;
    if (!gni_scope_is_ok(s) || checked == NULL)
        return;
    int64_t found = gni_info_find(info, &why);
    if (found < 0)
        return;
    char number[16] = "";
    if (behind != NULL)
        (void)snprintf(number, sizeof number, "%d", why);
    gni_scope_fail(s, GN_ERROR_LINALG, "%s: %s%s%s%s", checked, gni_element_text(info, found).text,
                   before, number, behind != NULL ? behind : "");
}

/* ---- memory -------------------------------------------------------------------------------------------------- */

int64_t gni_batch_count(const gn_tensor *x)
{
    return gni_shape_count(x->ndim - 2, x->sizes);
}

gn_tensor *gni_batch_new(struct gni_scope *s, const gn_tensor *x, gn_dtype dtype, int extra,
                         int64_t rows, int64_t columns)
{
    int64_t sizes[GN_DIMENSIONS_MAX];
    gn_tensor *made = NULL;
    gn_device *host;
    if (!gni_scope_is_ok(s))
        return NULL;
    for (int i = 0; i < x->ndim - 2; i++)
        sizes[i] = x->sizes[i];
    sizes[x->ndim - 2] = rows;
    sizes[x->ndim - 1] = columns;
    gn_status status = gni_device_get_host(&host);
    if (status == GN_OK)
        status = gn_tensor_create(dtype, x->ndim - 2 + extra, sizes, host, &made);
    return gni_scope_keep(s, status, made);
}

gn_tensor *gni_host_take(struct gni_scope *s, gn_tensor *x, bool is_turned)
{
    gn_tensor *near = NULL;
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_status status = gni_host_copy(x, &near);
    near = gni_scope_keep(s, status, near);
    if (near != NULL && is_turned)
        near = gni_turned(s, near);
    gn_tensor *made = gni_scope_is_ok(s) ? gni_clone(s, near) : NULL;
    if (gni_scope_is_ok(s))
        s->status = gni_tensor_flush(made);
    if (!gni_scope_is_ok(s))
        return NULL;
    gni_storage_note_write(gni_tensor_storage(made)); /* the solver will: it is no copy any more */
    return made;
}

gn_tensor *gni_host_give(struct gni_scope *s, gn_tensor *made, const gn_tensor *like)
{
    gn_tensor *moved = NULL;
    if (!gni_scope_is_ok(s) || made->device == like->device)
        return made;
    gn_status status = gn_tensor_to(made, like->device, &moved);
    return gni_scope_keep(s, status, moved);
}

char *gni_host_data(const struct gni_scope *s, const gn_tensor *x)
{
    return gni_scope_is_ok(s) && x != NULL ? gni_tensor_data(x) : NULL;
}

/* A GPU's own library (cuSOLVER) is to be asked here first, where `like` is on a GPU; there is none yet. */
void gni_solver_run(struct gni_scope *s, struct gni_solver_task *task, const gn_tensor *like)
{
    gn_device *host;
    (void)like;
    if (!gni_scope_is_ok(s) || task->batch == 0)
        return;
    s->status = gni_device_get_host(&host);
    if (gni_scope_is_ok(s))
        s->status = gni_cpu_solver_run(task, host);
}

/* Numbers that say how it went, all 0. */
static gn_tensor *info_new(struct gni_scope *s, const gn_tensor *x)
{
    gn_tensor *info = gni_batch_new(s, x, GN_INT32, 0, 0, 0);
    if (gni_scope_is_ok(s))
        memset(gni_tensor_data(info), 0, (size_t)info->count * sizeof(int32_t));
    return info;
}

/* ---- the tape -------------------------------------------------------------------------------------------------- */

bool gni_linalg_enter(const struct gni_scope *s, int count, const gn_operand *operands)
{
    return gni_scope_is_ok(s) && gni_tape_enter_any(count, operands);
}

void gni_linalg_leave(struct gni_scope *s, bool is_taped, const struct gni_tape_step *step)
{
    if (!is_taped)
        return;
    gni_tape_is_paused = false;
    if (gni_scope_is_ok(s))
        s->status = gni_tape.record(step);
}

static void leave_one(struct gni_scope *s, bool is_taped, enum gni_rule rule, const char *name,
                      int count, const gn_operand *inputs, gn_tensor **result,
                      const struct gni_linalg_details *details)
{
    gni_linalg_leave(s, is_taped,
                     &(struct gni_tape_step){.rule = rule,
                                             .name = name,
                                             .input_count = count,
                                             .inputs = inputs,
                                             .result_count = 1,
                                             .results = result,
                                             .details = details,
                                             .detail_bytes = sizeof *details});
}

/* ---- tasks of square matrices ------------------------------------------------------------------------------------ */

/* Of matrices that have elements. */
static struct gni_solver_task task_of(const struct gni_scope *s, enum gni_solver solver,
                                      const gn_tensor *x, gn_tensor *copy, gn_tensor *info)
{
    struct gni_solver_task task = {
        .solver = solver,
        .dtype = x->dtype,
        .batch = x->count > 0 ? gni_batch_count(x) : 0,
        .rows = x->sizes[x->ndim - 2],
        .columns = x->sizes[x->ndim - 1],
        .operands = {gni_host_data(s, copy)},
        .info = (int32_t *)(void *)gni_host_data(s, info),
    };
    return task;
}

gn_tensor *gni_cholesky(struct gni_scope *s, gn_tensor *a, bool is_upper, const char *checked,
                        gn_tensor **info)
{
    const struct gni_linalg_details details = {.is_upper = is_upper};
    gni_matrix_check(s, a, true);
    if (!gni_scope_is_ok(s))
        return NULL;
    bool is_taped = gni_linalg_enter(s, 1, &(gn_operand){.tensor = a});
    gn_tensor *made = gni_host_take(s, a, false), *why = info_new(s, a);
    struct gni_solver_task task = task_of(s, GNI_SOLVER_CHOLESKY, a, made, why);
    task.is_upper = is_upper;
    gni_solver_run(s, &task, a);
    info_check(s, checked, why,
               "The factorization could not be completed because the input is not "
               "positive-definite (the leading minor of order ",
               " is not positive-definite).");
    made = gni_host_give(s, made, a);
    leave_one(s, is_taped, GNI_RULE_CHOLESKY, "cholesky", 1, &(gn_operand){.tensor = a}, &made,
              &details);
    if (info != NULL)
        *info = why;
    return made;
}

gn_tensor *gni_lu(struct gni_scope *s, gn_tensor *a, gn_tensor **pivots, gn_tensor **info)
{
    const struct gni_linalg_details details = {0};
    gni_matrix_check(s, a, false);
    if (!gni_scope_is_ok(s))
        return NULL;
    int64_t m = a->sizes[a->ndim - 2], n = a->sizes[a->ndim - 1];
    bool is_taped = gni_linalg_enter(s, 1, &(gn_operand){.tensor = a});
    gn_tensor *made = gni_host_take(s, a, true), *why = info_new(s, a);
    gn_tensor *places = gni_batch_new(s, a, GN_INT32, 1, m < n ? m : n, 0);
    struct gni_solver_task task = task_of(s, GNI_SOLVER_LU, a, made, why);
    task.pivots = (int32_t *)(void *)gni_host_data(s, places);
    gni_solver_run(s, &task, a);
    made = gni_turned(s, gni_host_give(s, made, a));
    *pivots = gni_host_give(s, places, a);
    gn_tensor *results[] = {made, *pivots};
    gni_linalg_leave(s, is_taped,
                     &(struct gni_tape_step){.rule = GNI_RULE_LU,
                                             .name = "lu_factor",
                                             .input_count = 1,
                                             .inputs = &(gn_operand){.tensor = a},
                                             .result_count = 2,
                                             .results = results,
                                             .details = &details,
                                             .detail_bytes = sizeof details});
    *info = why;
    return made;
}

gn_tensor *gni_inverse(struct gni_scope *s, gn_tensor *a, const char *checked, gn_tensor **info)
{
    const struct gni_linalg_details details = {0};
    gni_matrix_check(s, a, true);
    if (!gni_scope_is_ok(s))
        return NULL;
    bool is_taped = gni_linalg_enter(s, 1, &(gn_operand){.tensor = a});
    gn_tensor *made = gni_host_take(s, a, false), *why = info_new(s, a);
    struct gni_solver_task task = task_of(s, GNI_SOLVER_INVERSE, a, made, why);
    gni_solver_run(s, &task, a);
    info_check(s, checked, why, "The diagonal element ",
               " is zero, the inversion could not be completed because the input matrix is "
               "singular.");
    made = gni_host_give(s, made, a);
    leave_one(s, is_taped, GNI_RULE_INVERSE, "inv", 1, &(gn_operand){.tensor = a}, &made, &details);
    if (info != NULL)
        *info = why;
    return made;
}

/* ---- equations ------------------------------------------------------------------------------------------------------ */

/* Fails unless b has the type, the device and the batch of a, and as many rows. */
static void sides_check(struct gni_scope *s, const gn_tensor *a, const gn_tensor *b)
{
    gni_matrix_check(s, a, true);
    gni_matrix_check(s, b, false);
    if (!gni_scope_is_ok(s))
        return;
    if (a->dtype != b->dtype)
        gni_scope_fail(s, GN_ERROR_TYPE, "one side is %s and the other %s: convert one",
                       gni_dtypes[a->dtype].name, gni_dtypes[b->dtype].name);
    if (a->device != b->device)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "one tensor is on %s and one on %s: move one with to()",
                       gni_device_label(a->device).text, gni_device_label(b->device).text);
    if (a->sizes[a->ndim - 1] != b->sizes[b->ndim - 2] ||
        !gni_shape_is_equal(a->ndim - 2, a->sizes, b->ndim - 2, b->sizes))
        gni_scope_fail(s, GN_ERROR_SHAPE, "matrices of shape %s do not fit the other side, %s",
                       gni_shape_text(a->ndim, a->sizes).text,
                       gni_shape_text(b->ndim, b->sizes).text);
}

gn_tensor *gni_solve(struct gni_scope *s, gn_tensor *a, gn_tensor *b, const char *checked,
                     gn_tensor **info)
{
    const struct gni_linalg_details details = {0};
    const gn_operand inputs[] = {{.tensor = a}, {.tensor = b}};
    if (gni_scope_is_ok(s))
        sides_check(s, a, b);
    if (!gni_scope_is_ok(s))
        return NULL;
    bool is_taped = gni_linalg_enter(s, 2, inputs);
    gn_tensor *copy = gni_host_take(s, a, false), *made = gni_host_take(s, b, true);
    gn_tensor *why = info_new(s, a);
    struct gni_solver_task task = task_of(s, GNI_SOLVER_SOLVE, a, copy, why);
    task.operands[1] = gni_host_data(s, made);
    task.right = b->sizes[b->ndim - 1];
    task.is_transposed = true; /* the copy lies by rows */
    if (b->count == 0)
        task.batch = 0;
    gni_solver_run(s, &task, a);
    info_check(s, checked, why, "The solver failed because the input matrix is singular.", NULL);
    made = gni_turned(s, gni_host_give(s, made, a));
    leave_one(s, is_taped, GNI_RULE_SOLVE, "solve", 2, inputs, &made, &details);
    if (info != NULL)
        *info = why;
    return made;
}

/* Whether the transposed matrices lie by rows. */
static bool is_by_columns(const gn_tensor *x)
{
    int64_t count = x->count > 0 ? x->sizes[x->ndim - 1] * x->sizes[x->ndim - 2] : 0;
    if (x->device->ops->is_host_memory == false || count == 0 || gni_tensor_storage(x) == NULL ||
        x->strides[x->ndim - 2] != 1 || x->strides[x->ndim - 1] != x->sizes[x->ndim - 2])
        return false;
    for (int i = x->ndim - 3; i >= 0; i--) {
        if (x->sizes[i] != 1 && x->strides[i] != count)
            return false;
        count *= x->sizes[i];
    }
    return true;
}

/* Right-hand sides are solved as they lie, by rows or by columns; the matrix is only read. */
gn_tensor *gni_solve_triangular(struct gni_scope *s, gn_tensor *a, gn_tensor *b, bool is_upper,
                                bool is_unit)
{
    const struct gni_linalg_details details = {.is_upper = is_upper, .is_unit = is_unit};
    const gn_operand inputs[] = {{.tensor = a}, {.tensor = b}};
    if (gni_scope_is_ok(s))
        sides_check(s, a, b);
    if (!gni_scope_is_ok(s))
        return NULL;
    bool is_taped = gni_linalg_enter(s, 2, inputs);
    s->status = gni_tensor_flush(a);
    bool is_turned = is_by_columns(a), is_side = is_by_columns(b);
    gn_tensor *matrix = is_turned ? a : gni_host_take(s, a, false);
    gn_tensor *made = gni_host_take(s, b, is_side), *why = info_new(s, a);
    struct gni_solver_task task = task_of(s, GNI_SOLVER_TRIANGULAR, a, matrix, why);
    task.operands[1] = gni_host_data(s, made);
    task.right = b->sizes[b->ndim - 1];
    task.is_right = is_side; /* x^T a^T = b^T */
    task.is_transposed = is_turned != is_side;
    task.is_upper = is_upper != is_side;
    task.is_unit = is_unit;
    if (b->count == 0)
        task.batch = 0;
    gni_solver_run(s, &task, a);
    made = gni_host_give(s, made, a);
    if (is_side)
        made = gni_turned(s, made);
    leave_one(s, is_taped, GNI_RULE_TRIANGULAR, "solve_triangular", 2, inputs, &made, &details);
    return made;
}

/* ---- determinants -------------------------------------------------------------------------------------------------- */

/* What the solver gives: the determinant, its sign, and the logarithm. Of no elements they are 1, 1 and 0. */
static void determinants_make(struct gni_scope *s, gn_tensor *a, gn_tensor *made[3])
{
    gn_tensor *copy = gni_host_take(s, a, false), *why = info_new(s, a);
    for (int i = 0; i < 3; i++)
        made[i] = gni_batch_new(s, a, a->dtype, 0, 0, 0);
    struct gni_solver_task task = task_of(s, GNI_SOLVER_DETERMINANT, a, copy, why);
    for (int i = 0; i < 3; i++)
        task.operands[1 + i] = gni_host_data(s, made[i]);
    gni_solver_run(s, &task, a);
    for (int i = 0; i < 3; i++) {
        if (a->count == 0)
            gni_assign(s, made[i], gni_integer(i < 2));
        made[i] = gni_host_give(s, made[i], a);
    }
}

gn_tensor *gni_determinant(struct gni_scope *s, gn_tensor *a)
{
    const struct gni_linalg_details details = {0};
    gn_tensor *made[3] = {NULL};
    gni_matrix_check(s, a, true);
    if (!gni_scope_is_ok(s))
        return NULL;
    bool is_taped = gni_linalg_enter(s, 1, &(gn_operand){.tensor = a});
    determinants_make(s, a, made);
    leave_one(s, is_taped, GNI_RULE_DETERMINANT, "det", 1, &(gn_operand){.tensor = a}, &made[0],
              &details);
    return made[0];
}

gn_tensor *gni_log_determinant(struct gni_scope *s, gn_tensor *a, gn_tensor **sign)
{
    const struct gni_linalg_details details = {0};
    gn_tensor *made[3] = {NULL};
    gni_matrix_check(s, a, true);
    if (!gni_scope_is_ok(s))
        return NULL;
    bool is_taped = gni_linalg_enter(s, 1, &(gn_operand){.tensor = a});
    determinants_make(s, a, made);
    leave_one(s, is_taped, GNI_RULE_LOG_DETERMINANT, "slogdet", 1, &(gn_operand){.tensor = a},
              &made[2], &details);
    *sign = made[1];
    return made[2];
}

/* ---- helpers ------------------------------------------------------------------------------------------------------------ */

gn_tensor *gni_turned(struct gni_scope *s, gn_tensor *x)
{
    return gni_scope_is_ok(s) ? gni_transpose(s, x, x->ndim - 2, x->ndim - 1) : NULL;
}

gn_tensor *gni_as_columns(struct gni_scope *s, gn_tensor *x)
{
    return gni_scope_is_ok(s) ? gni_unsqueeze(s, x, x->ndim) : NULL;
}

gn_tensor *gni_as_rows(struct gni_scope *s, gn_tensor *x)
{
    return gni_scope_is_ok(s) ? gni_unsqueeze(s, x, x->ndim - 1) : NULL;
}

gn_tensor *gni_identity(struct gni_scope *s, int64_t n, gn_dtype dtype, gn_device *device)
{
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *numbers = gni_arange(s, n, device);
    gn_tensor *is_it =
        gni_binary(s, GN_OP_EQUAL, gni_of(numbers), gni_of(gni_as_columns(s, numbers)));
    return gni_scope_is_ok(s) ? gni_cast(s, is_it, dtype) : NULL;
}

gn_tensor *gni_triangle(struct gni_scope *s, gn_tensor *x, bool is_upper, int64_t offset)
{
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *rows = gni_arange(s, x->sizes[x->ndim - 2], x->device);
    gn_tensor *columns = gni_arange(s, x->sizes[x->ndim - 1], x->device);
    gn_tensor *limit =
        gni_binary(s, GN_OP_ADD, gni_of(gni_as_columns(s, rows)), gni_integer(offset));
    gn_tensor *is_in = gni_binary(s, is_upper ? GN_OP_GREATER_EQUAL : GN_OP_LESS_EQUAL,
                                  gni_of(columns), gni_of(limit));
    return gni_where(s, is_in, gni_of(x), gni_integer(0));
}

/* ---- pivots -------------------------------------------------------------------------------------------------------------- */

/* False: a pivot is no row, or goes back. */
static bool order_make(const int32_t *pivots, int64_t count, int64_t *order, int64_t rows,
                       bool is_back)
{
    for (int64_t i = 0; i < rows; i++)
        order[i] = i;
    for (int64_t step = 0; step < count; step++) {
        int64_t i = is_back ? count - 1 - step : step, other = pivots[i] - 1;
        if (other < i || other >= rows)
            return false;
        int64_t kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    return true;
}

gn_tensor *gni_lu_order(struct gni_scope *s, gn_tensor *pivots, int64_t rows, bool is_back)
{
    gn_tensor *near = gni_host_take(s, pivots, false), *made = NULL;
    if (!gni_scope_is_ok(s))
        return NULL;
    int64_t sizes[GN_DIMENSIONS_MAX], count = pivots->sizes[pivots->ndim - 1];
    for (int i = 0; i < pivots->ndim - 1; i++)
        sizes[i] = pivots->sizes[i];
    sizes[pivots->ndim - 1] = rows;
    gn_status status = gn_tensor_create(GN_INT64, pivots->ndim, sizes, near->device, &made);
    if (gni_scope_keep(s, status, made) == NULL)
        return NULL;
    const int32_t *from = (const int32_t *)(const void *)gni_tensor_data(near);
    int64_t *to = (int64_t *)(void *)gni_tensor_data(made);
    for (int64_t i = 0; i < gni_shape_count(pivots->ndim - 1, pivots->sizes); i++)
        if (!order_make(from + i * count, count, to + i * rows, rows, is_back))
            gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                           "a pivot is out of range: pivot i is from i + 1 to the number of rows");
    return gni_host_give(s, made, pivots);
}

gn_tensor *gni_rows_taken(struct gni_scope *s, gn_tensor *x, gn_tensor *order)
{
    gn_tensor *made = NULL;
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *index = gni_expand(s, gni_as_columns(s, order), x->ndim, x->sizes);
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_status status = gn_gather(x, x->ndim - 2, index, &made);
    return gni_scope_keep(s, status, made);
}

gn_operand gni_rank_tolerance(const gn_tensor *a)
{
    int64_t m = a->sizes[a->ndim - 2], n = a->sizes[a->ndim - 1];
    double precision = a->dtype == GN_FLOAT64 ? DBL_EPSILON : FLT_EPSILON;
    return gni_floating(precision * (double)(m > n ? m : n));
}
