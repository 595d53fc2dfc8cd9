/*
 * own_factors.c: our own factorizations for where there is no LAPACK: Cholesky, LU with pivots, Householder's QR, and what is
 * solved with them. All elements are doubles.
 */
#include "ops/cpu/cpu_solvers.h"

#include <math.h>
#include <string.h>

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- triangles ----------------------------------------------------------------------------------------- */

struct triangle {
    const double *a;
    int64_t n, down, right; /* elements to the next one below, and to the right */
    bool is_upper, is_unit;
};

/* x of a x = b, in place; strides say how b lies. */
static void triangle_solve(const struct triangle *triangle, double *b, int64_t count, int64_t down,
                           int64_t right)
{
    const double *a = triangle->a;
    for (int64_t step = 0; step < triangle->n; step++) {
        int64_t i = triangle->is_upper ? triangle->n - 1 - step : step;
        int64_t begin = triangle->is_upper ? i + 1 : 0, end = triangle->is_upper ? triangle->n : i;
        for (int64_t j = 0; j < count; j++) {
            double sum = b[i * down + j * right];
            for (int64_t k = begin; k < end; k++)
                sum -= a[i * triangle->down + k * triangle->right] * b[k * down + j * right];
            if (!triangle->is_unit)
                sum /= a[i * (triangle->down + triangle->right)];
            b[i * down + j * right] = sum;
        }
    }
}

static void run_triangular(const struct gni_solver_task *task, struct gni_solver_matrix *matrix)
{
    int64_t n = task->rows, right = task->right;
    bool is_turned =
        task->is_right != task->is_transposed; /* the equation's rows are a's columns */
    double *b = (double *)(void *)matrix->operands[1];
    const struct triangle triangle = {
        .a = (const double *)(const void *)matrix->operands[0],
        .n = n,
        .down = is_turned ? 1 : n,
        .right = is_turned ? n : 1,
        .is_upper = task->is_upper != task->is_right,
        .is_unit = task->is_unit,
    };
    if (task->is_right)
        triangle_solve(&triangle, b, right, 1, n);
    else
        triangle_solve(&triangle, b, right, right, 1);
}

/* ---- Cholesky -------------------------------------------------------------------------------------------- */

static void run_cholesky(const struct gni_solver_task *task, struct gni_solver_matrix *matrix)
{
    int64_t n = task->rows, down = task->is_upper ? 1 : n, right = task->is_upper ? n : 1;
    double *a = (double *)(void *)matrix->operands[0];
    for (int64_t j = 0; j < n && matrix->info == 0; j++) {
        for (int64_t i = j; i < n; i++) {
            double sum = a[i * down + j * right];
            for (int64_t k = 0; k < j; k++)
                sum -= a[i * down + k * right] * a[j * down + k * right];
            if (i == j && !(sum > 0)) {
                matrix->info = (int32_t)(j + 1);
                break;
            }
            a[i * down + j * right] = i == j ? sqrt(sum) : sum / a[j * (down + right)];
        }
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++)
            a[i * down + j * right] = 0;
}

/* ---- LU ---------------------------------------------------------------------------------------------------- */

static void rows_exchange(double *a, int64_t rows, int64_t columns, int64_t first, int64_t second)
{
    for (int64_t j = 0; j < columns && first != second; j++) {
        double kept = a[j * rows + first];
        a[j * rows + first] = a[j * rows + second];
        a[j * rows + second] = kept;
    }
}

/* By columns, in place; pivots count from 1. The first element of the diagonal that is 0, or 0. */
static int32_t lu_make(double *a, int64_t rows, int64_t columns, int32_t *pivots)
{
    int32_t info = 0;
    for (int64_t k = 0; k < least(rows, columns); k++) {
        double *column = a + k * rows;
        int64_t pivot = k;
        for (int64_t i = k + 1; i < rows; i++)
            if (fabs(column[i]) > fabs(column[pivot]))
                pivot = i;
        pivots[k] = (int32_t)(pivot + 1);
        if (column[pivot] == 0) {
            info = info == 0 ? (int32_t)(k + 1) : info;
            continue;
        }
        rows_exchange(a, rows, columns, k, pivot);
        for (int64_t i = k + 1; i < rows; i++)
            column[i] /= column[k];
        for (int64_t j = k + 1; j < columns; j++) {
            double factor = a[j * rows + k];
            for (int64_t i = k + 1; i < rows; i++)
                a[j * rows + i] -= column[i] * factor;
        }
    }
    return info;
}

/* Solves with the factors of a square matrix; b by columns. */
static void lu_solve(const double *lu, const int32_t *pivots, int64_t n, bool is_transposed,
                     double *b, int64_t right)
{
    struct triangle lower = {.a = lu, .n = n, .is_unit = true}, upper = lower;
    lower.down = upper.down = is_transposed ? n : 1;
    lower.right = upper.right = is_transposed ? 1 : n;
    upper.is_unit = false;
    lower.is_upper = is_transposed;
    upper.is_upper = !is_transposed;
    for (int64_t k = 0; k < n && !is_transposed; k++)
        rows_exchange(b, n, right, k, pivots[k] - 1);
    triangle_solve(is_transposed ? &upper : &lower, b, right, 1, n);
    triangle_solve(is_transposed ? &lower : &upper, b, right, 1, n);
    for (int64_t k = n - 1; k >= 0 && is_transposed; k--)
        rows_exchange(b, n, right, k, pivots[k] - 1);
}

static void run_solve(const struct gni_solver_task *task, struct gni_solver_matrix *matrix,
                      double *workspace)
{
    double *a = (double *)(void *)matrix->operands[0], *b = (double *)(void *)matrix->operands[1];
    int32_t *pivots = (int32_t *)(void *)workspace;
    matrix->info = lu_make(a, task->rows, task->rows, pivots);
    lu_solve(a, pivots, task->rows, task->is_transposed, b, task->right);
}

static void run_inverse(const struct gni_solver_task *task, struct gni_solver_matrix *matrix,
                        double *workspace)
{
    int64_t n = task->rows;
    double *a = (double *)(void *)matrix->operands[0], *lu = workspace + n;
    int32_t *pivots = (int32_t *)(void *)workspace;
    memcpy(lu, a, (size_t)(n * n) * sizeof *a);
    matrix->info = lu_make(lu, n, n, pivots);
    if (matrix->info != 0)
        return;
    memset(a, 0, (size_t)(n * n) * sizeof *a);
    for (int64_t i = 0; i < n; i++)
        a[i * (n + 1)] = 1;
    lu_solve(lu, pivots, n, false, a, n);
}

static void run_determinant(const struct gni_solver_task *task, struct gni_solver_matrix *matrix,
                            double *workspace)
{
    double *a = (double *)(void *)matrix->operands[0], product = 1, sign = 1, logarithm = 0;
    int32_t *pivots = (int32_t *)(void *)workspace;
    matrix->info = lu_make(a, task->rows, task->rows, pivots);
    for (int64_t i = 0; i < task->rows; i++) {
        double one = a[i * (task->rows + 1)], turn = pivots[i] != i + 1 ? -1 : 1;
        product *= turn * one;
        sign *= turn * (isnan(one) ? NAN : one > 0 ? 1 : one < 0 ? -1 : 0);
        logarithm += log(fabs(one));
    }
    *(double *)(void *)matrix->operands[1] = product;
    *(double *)(void *)matrix->operands[2] = sign;
    *(double *)(void *)matrix->operands[3] = logarithm;
}

/* ---- QR ------------------------------------------------------------------------------------------------------ */

/* Columns become a - tau v (v . a); v[0] counts as 1. */
static void reflect(const double *v, double tau, int64_t rows, double *columns, int64_t count,
                    int64_t stride)
{
    for (int64_t j = 0; j < count; j++) {
        double *column = columns + j * stride, sum = column[0];
        for (int64_t i = 1; i < rows; i++)
            sum += v[i] * column[i];
        sum *= tau;
        column[0] -= sum;
        for (int64_t i = 1; i < rows; i++)
            column[i] -= sum * v[i];
    }
}

/* Of a column, scaled by its largest element: squares neither overflow nor vanish. */
static double norm_of(const double *x, int64_t count)
{
    double largest = 0, sum = 0;
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(x[i]) <= largest))
            largest = fabs(x[i]);
    if (largest == 0 || !isfinite(largest))
        return largest;
    for (int64_t i = 0; i < count; i++)
        sum += (x[i] / largest) * (x[i] / largest);
    return largest * sqrt(sum);
}

static void run_qr(const struct gni_solver_task *task, struct gni_solver_matrix *matrix,
                   double *tau)
{
    int64_t m = task->rows, n = task->columns, k = least(m, n);
    double *a = (double *)(void *)matrix->operands[0], *q = (double *)(void *)matrix->operands[1];
    double *r = (double *)(void *)matrix->operands[2];
    for (int64_t i = 0; i < k; i++) {
        double *column = a + i * m + i, first = column[0], norm = norm_of(column + 1, m - i - 1);
        tau[i] = 0;
        if (norm == 0) /* it is 0 below the diagonal */
            continue;
        double made = -copysign(hypot(first, norm), first);
        tau[i] = (made - first) / made;
        for (int64_t j = 1; j < m - i; j++)
            column[j] /= first - made;
        reflect(column, tau[i], m - i, column + m, n - i - 1, m);
        column[0] = made;
    }
    for (int64_t i = 0; i < task->inner; i++)
        for (int64_t j = 0; j < n; j++)
            r[i * n + j] = j < i ? 0 : a[j * m + i];
    for (int64_t j = 0; q != NULL && j < task->inner; j++)
        for (int64_t i = 0; i < m; i++)
            q[j * m + i] = i == j;
    for (int64_t i = k - 1; q != NULL && i >= 0; i--)
        reflect(a + i * m + i, tau[i], m - i, q + i * m + i, task->inner - i, m);
}

/* ---- spectra --------------------------------------------------------------------------------------------------- */

static void run_eigh(const struct gni_solver_task *task, struct gni_solver_matrix *matrix,
                     double *scratch)
{
    int64_t n = task->rows;
    double *a = (double *)(void *)matrix->operands[0];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            if (task->is_upper)
                a[i * n + j] = a[j * n + i];
            else
                a[j * n + i] = a[i * n + j];
    matrix->info = gni_own_eigh(n, a, (double *)(void *)matrix->operands[1], scratch);
    for (int64_t i = 0; i < n; i++) /* by columns */
        for (int64_t j = 0; j < i; j++) {
            double kept = a[i * n + j];
            a[i * n + j] = a[j * n + i];
            a[j * n + i] = kept;
        }
}

/* The larger size is that of columns as long: a wide matrix is transposed, and U and V change places. */
static void run_svd(const struct gni_solver_task *task, struct gni_solver_matrix *matrix,
                    double *workspace)
{
    bool is_wide = task->columns > task->rows;
    int64_t m = is_wide ? task->columns : task->rows, n = is_wide ? task->rows : task->columns;
    int64_t full = task->is_full ? m : n;
    double *a = (double *)(void *)matrix->operands[0], *u = workspace, *v = workspace + m * full;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            u[j * m + i] = is_wide ? a[j * m + i] : a[i * n + j];
    matrix->info = gni_own_jacobi(m, n, u, v, (double *)(void *)matrix->operands[1]);
    if (matrix->operands[2] == NULL)
        return;
    const double *values = (const double *)(const void *)matrix->operands[1];
    int64_t found = 0;
    while (found < n && values[found] > 0)
        found++;
    for (int64_t j = 0; j < found; j++)
        for (int64_t i = 0; i < m; i++)
            u[j * m + i] /= values[j];
    gni_own_complete(u, m, found, full);
    double *left = (double *)(void *)matrix->operands[is_wide ? 3 : 2];
    double *right = (double *)(void *)matrix->operands[is_wide ? 2 : 3];
    for (int64_t i = 0; i < m;
         i++) /* a tall one's U by rows is u; a wide one's Vh is u by columns */
        for (int64_t j = 0; j < full; j++)
            left[is_wide ? j * m + i : i * full + j] = u[j * m + i];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            right[is_wide ? i * n + j : j * n + i] = v[j * n + i];
}

/* ---- any --------------------------------------------------------------------------------------------------------- */

int64_t gni_own_workspace(const struct gni_solver_task *task)
{
    int64_t m = task->rows, n = task->columns, high = m > n ? m : n, low = least(m, n);
    switch (task->solver) {
    case GNI_SOLVER_CHOLESKY:
    case GNI_SOLVER_LU:
    case GNI_SOLVER_TRIANGULAR:
        return 0;
    case GNI_SOLVER_SOLVE:
    case GNI_SOLVER_DETERMINANT:
    case GNI_SOLVER_EIGH:
        return n;
    case GNI_SOLVER_INVERSE:
        return n + n * n;
    case GNI_SOLVER_QR:
        return low;
    case GNI_SOLVER_SVD:
        return high * (task->is_full ? high : low) + low * low;
    }
    return 0;
}

void gni_own_run(const struct gni_solver_task *task, struct gni_solver_matrix *matrix,
                 double *workspace)
{
    matrix->info = 0;
    switch (task->solver) {
    case GNI_SOLVER_CHOLESKY:
        run_cholesky(task, matrix);
        break;
    case GNI_SOLVER_LU:
        matrix->info = lu_make((double *)(void *)matrix->operands[0], task->rows, task->columns,
                               matrix->pivots);
        break;
    case GNI_SOLVER_SOLVE:
        run_solve(task, matrix, workspace);
        break;
    case GNI_SOLVER_INVERSE:
        run_inverse(task, matrix, workspace);
        break;
    case GNI_SOLVER_DETERMINANT:
        run_determinant(task, matrix, workspace);
        break;
    case GNI_SOLVER_TRIANGULAR:
        run_triangular(task, matrix);
        break;
    case GNI_SOLVER_QR:
        run_qr(task, matrix, workspace);
        break;
    case GNI_SOLVER_SVD:
        run_svd(task, matrix, workspace);
        break;
    case GNI_SOLVER_EIGH:
        run_eigh(task, matrix, workspace);
        break;
    }
}
