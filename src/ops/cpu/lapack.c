/*
 * lapack.c: the routines of LAPACK that solvers need, in the OpenBLAS that cpu_blas.c has found.
 *
 * Fortran passes all arguments by address, and the lengths of texts behind them. So one prototype serves for float and double,
 * and, since an integer is read from an address, for integers of 32 and 64 bits: an integer of 64 bits begins with its low half
 * on the machines that we support. Fortran's matrices lie by columns; one that lies by rows is its transposed one there.
 *
 * Threads: the addresses are set once, and never change.
 */
#include "ops/cpu/cpu_solvers.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/thread.h"
#include "ops/cpu/cpu_blas.h"
#include "tensor/tensor.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "integers begin with their low half");

union integer {
    int64_t wide;
    int32_t narrow;
};

typedef const union integer *const number;

typedef void potrf_call(const char *, number, void *, number, union integer *, size_t);
typedef void getrf_call(number, number, void *, number, void *, union integer *);
typedef void getrs_call(const char *, number, number, const void *, number, const void *, void *,
                        number, union integer *, size_t);
typedef void geqrf_call(number, number, void *, number, void *, void *, number, union integer *);
typedef void orgqr_call(number, number, number, void *, number, const void *, void *, number,
                        union integer *);
typedef void gesdd_call(const char *, number, number, void *, number, void *, void *, number,
                        void *, number, void *, number, void *, union integer *, size_t);
typedef void syevd_call(const char *, const char *, number, void *, number, void *, void *, number,
                        void *, number, union integer *, size_t, size_t);
typedef void trsm_call(const char *, const char *, const char *, const char *, number, number,
                       const void *, const void *, number, void *, number, size_t, size_t, size_t,
                       size_t);

#define ROUTINES(X) X(potrf) X(getrf) X(getrs) X(geqrf) X(orgqr) X(gesdd) X(syevd) X(trsm)

/* Of one type of elements. */
struct routines {
#define FIELD(name)        \
    union {                \
        void *symbol;      \
        name##_call *call; \
    } name;
    ROUTINES(FIELD)
#undef FIELD
};

static struct {
    struct gni_once once;
    bool is_there, is_wide;
    struct routines singles, doubles;
} lapack = {.once = GNI_ONCE_INIT};

static bool routines_take(char letter, struct routines *routines)
{
    char name[16];
    bool has_all = true;
#define TAKE(routine)                                         \
    (void)snprintf(name, sizeof name, "%c" #routine, letter); \
    routines->routine.symbol = gni_blas_routine(name);        \
    has_all &= routines->routine.symbol != NULL;
    ROUTINES(TAKE)
#undef TAKE
    return has_all;
}

static void lapack_find(void)
{
    lapack.is_wide = gni_blas_is_wide();
    lapack.is_there = routines_take('s', &lapack.singles) && routines_take('d', &lapack.doubles);
}

bool gni_lapack_is_there(void)
{
    if (!gni_blas_is_there())
        return false;
    gni_once_run(&lapack.once, lapack_find);
    return lapack.is_there;
}

/* ---- memory ------------------------------------------------------------------------------------------ */

static const struct routines *routines_of(const struct gni_solver_task *task)
{
    return task->dtype == GN_FLOAT64 ? &lapack.doubles : &lapack.singles;
}

static union integer integer(int64_t value)
{
    return (union integer){.wide = value};
}

static int64_t value_of(const union integer *integer)
{
    return lapack.is_wide ? integer->wide : integer->narrow;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static union integer *integers_of(const struct gni_solver_task *task, char *workspace)
{
    (void)task;
    return (union integer *)(void *)workspace;
}

/* Integers come first, then the elements that are ours, then the routine's. */
static char *reals_of(const struct gni_lapack_plan *plan, char *workspace)
{
    return workspace + (size_t)plan->integers * sizeof(union integer);
}

static char *work_of(const struct gni_solver_task *task, const struct gni_lapack_plan *plan,
                     char *workspace)
{
    return reals_of(plan, workspace) + (size_t)plan->reals * gni_dtype_size(task->dtype);
}

static double element_at(const struct gni_solver_task *task, const void *data, int64_t i)
{
    return task->dtype == GN_FLOAT64 ? ((const double *)data)[i] : ((const float *)data)[i];
}

/* How much a routine has asked for: a number of its type, which may have been rounded down. */
static int64_t work_asked(const struct gni_solver_task *task, const void *answer)
{
    double asked = element_at(task, answer, 0);
    double exact = task->dtype == GN_FLOAT64 ? 0 : asked / (1 << 23);
    return (int64_t)ceil(asked + exact);
}

/* ---- one matrix ---------------------------------------------------------------------------------------- */

static void run_cholesky(const struct gni_solver_task *task, struct gni_solver_matrix *matrix)
{
    union integer n = integer(task->rows), info = integer(0);
    routines_of(task)->potrf.call(task->is_upper ? "L" : "U", &n, matrix->operands[0], &n, &info,
                                  1);
    matrix->info = (int32_t)value_of(&info);
    size_t size = gni_dtype_size(task->dtype);
    for (int64_t i = 0; i < task->rows && matrix->info == 0;
         i++) /* OpenBLAS takes NaN for positive */
        if (isnan(element_at(task, matrix->operands[0], i * (task->rows + 1))))
            matrix->info = (int32_t)(i + 1);
    for (int64_t i = 0; i < task->rows; i++) {
        char *row = matrix->operands[0] + (size_t)(i * task->rows) * size;
        if (task->is_upper)
            memset(row, 0, (size_t)i * size);
        else
            memset(row + (size_t)(i + 1) * size, 0, (size_t)(task->rows - i - 1) * size);
    }
}

/* Both factors, by columns; pivots stay in the workspace. */
static void factors_make(const struct gni_solver_task *task, struct gni_solver_matrix *matrix,
                         char *workspace)
{
    union integer m = integer(task->rows), n = integer(task->columns), info = integer(0);
    routines_of(task)->getrf.call(&m, &n, matrix->operands[0], &m, workspace, &info);
    matrix->info = (int32_t)value_of(&info);
}

static int64_t pivot_at(const char *workspace, int64_t i)
{
    const void *at = workspace;
    return lapack.is_wide ? ((const int64_t *)at)[i] : ((const int32_t *)at)[i];
}

static void run_lu(const struct gni_solver_task *task, struct gni_solver_matrix *matrix,
                   char *workspace)
{
    factors_make(task, matrix, workspace);
    for (int64_t i = 0; i < least(task->rows, task->columns); i++)
        matrix->pivots[i] = (int32_t)pivot_at(workspace, i);
}

static void run_solve(const struct gni_solver_task *task, struct gni_solver_matrix *matrix,
                      char *workspace)
{
    union integer n = integer(task->rows), right = integer(task->right), info = integer(0);
    factors_make(task, matrix, workspace);
    routines_of(task)->getrs.call(task->is_transposed ? "T" : "N", &n, &right, matrix->operands[0],
                                  &n, workspace, matrix->operands[1], &n, &info, 1);
}

/* The solution for the identity: faster than getri, and without zeros that are negative. */
static void run_inverse(const struct gni_solver_task *task, const struct gni_lapack_plan *plan,
                        struct gni_solver_matrix *matrix, char *workspace)
{
    union integer n = integer(task->rows), info = integer(0);
    struct gni_solver_matrix factors = {.operands = {reals_of(plan, workspace)}};
    size_t nbytes = (size_t)(task->rows * task->rows) * gni_dtype_size(task->dtype);
    memcpy(factors.operands[0], matrix->operands[0], nbytes);
    factors_make(task, &factors, workspace);
    matrix->info = factors.info;
    if (matrix->info != 0)
        return;
    memset(matrix->operands[0], 0, nbytes);
    for (int64_t i = 0; i < task->rows * task->rows; i += task->rows + 1) {
        void *at = matrix->operands[0];
        if (task->dtype == GN_FLOAT64)
            ((double *)at)[i] = 1;
        else
            ((float *)at)[i] = 1;
    }
    routines_of(task)->getrs.call("N", &n, &n, factors.operands[0], &n, workspace,
                                  matrix->operands[0], &n, &info, 1);
}

static void run_determinant(const struct gni_solver_task *task, struct gni_solver_matrix *matrix,
                            char *workspace)
{
    factors_make(task, matrix, workspace);
    double product = 1, sign = 1, logarithm = 0;
    for (int64_t i = 0; i < task->rows; i++) {
        double one = element_at(task, matrix->operands[0], i * (task->rows + 1));
        double turn = pivot_at(workspace, i) != i + 1 ? -1 : 1;
        product *= turn * one;
        sign *= turn * (isnan(one) ? NAN : one > 0 ? 1 : one < 0 ? -1 : 0);
        logarithm += log(fabs(one));
    }
    const double made[] = {product, sign, logarithm};
    for (int i = 0; i < 3; i++) {
        void *to = matrix->operands[1 + i];
        if (task->dtype == GN_FLOAT64)
            *(double *)to = made[i];
        else
            *(float *)to = (float)made[i];
    }
}

/* Right-hand sides lie by rows: for Fortran it is the other side, and the other triangle, of transposed matrices. */
static void run_triangular(const struct gni_solver_task *task, struct gni_solver_matrix *matrix)
{
    const double one = 1;
    const float single = 1;
    bool is_upper = task->is_upper == task->is_transposed;
    union integer n = integer(task->rows), right = integer(task->right);
    union integer *rows = task->is_right ? &n : &right, *columns = task->is_right ? &right : &n;
    routines_of(task)->trsm.call(task->is_right ? "L" : "R", is_upper ? "U" : "L",
                                 task->is_transposed ? "T" : "N", task->is_unit ? "U" : "N", rows,
                                 columns, task->dtype == GN_FLOAT64 ? (const void *)&one : &single,
                                 matrix->operands[0], &n, matrix->operands[1], rows, 1, 1, 1, 1);
}

/* The upper triangle of a matrix by columns, as `high` rows. */
static void triangle_take(const struct gni_solver_task *task, const char *from, char *to,
                          int64_t high)
{
    size_t size = gni_dtype_size(task->dtype);
    for (int64_t i = 0; i < high; i++)
        for (int64_t j = 0; j < task->columns; j++, to += size)
            if (j < i)
                memset(to, 0, size);
            else
                memcpy(to, from + (size_t)(j * task->rows + i) * size, size);
}

static void run_qr(const struct gni_solver_task *task, const struct gni_lapack_plan *plan,
                   struct gni_solver_matrix *matrix, char *workspace)
{
    union integer m = integer(task->rows), n = integer(task->columns), info = integer(0);
    int64_t reflectors = least(task->rows, task->columns);
    union integer k = integer(reflectors), work = integer(plan->work), wide = integer(task->inner);
    char *q = matrix->operands[1], *tau = reals_of(plan, workspace);
    routines_of(task)->geqrf.call(&m, &n, matrix->operands[0], &m, tau,
                                  work_of(task, plan, workspace), &work, &info);
    triangle_take(task, matrix->operands[0], matrix->operands[2], least(task->inner, task->rows));
    if (q == NULL)
        return;
    memcpy(q, matrix->operands[0], (size_t)(task->rows * reflectors) * gni_dtype_size(task->dtype));
    routines_of(task)->orgqr.call(&m, &wide, &k, q, &m, tau, work_of(task, plan, workspace), &work,
                                  &info);
}

/* By rows: the transposed matrix for Fortran, of which U and V change places. */
static void svd_call(const struct gni_solver_task *task, struct gni_solver_matrix *matrix,
                     void *integers, void *work, const union integer *work_size,
                     union integer *info)
{
    int64_t k = least(task->rows, task->columns);
    union integer m = integer(task->columns), n = integer(task->rows);
    union integer leading = integer(task->is_full ? task->rows : k);
    const char *job = matrix->operands[2] == NULL ? "N" : task->is_full ? "A" : "S";
    routines_of(task)->gesdd.call(job, &m, &n, matrix->operands[0], &m, matrix->operands[1],
                                  matrix->operands[3], &m, matrix->operands[2], &leading, work,
                                  work_size, integers, info, 1);
}

static void run_svd(const struct gni_solver_task *task, const struct gni_lapack_plan *plan,
                    struct gni_solver_matrix *matrix, char *workspace)
{
    union integer work = integer(plan->work), info = integer(0);
    svd_call(task, matrix, integers_of(task, workspace), work_of(task, plan, workspace), &work,
             &info);
    matrix->info = (int32_t)value_of(&info);
}

static void eigh_call(const struct gni_solver_task *task, struct gni_solver_matrix *matrix,
                      void *integers, const union integer *integer_size, void *work,
                      const union integer *work_size, union integer *info)
{
    union integer n = integer(task->rows);
    routines_of(task)->syevd.call(task->has_vectors ? "V" : "N", task->is_upper ? "L" : "U", &n,
                                  matrix->operands[0], &n, matrix->operands[1], work, work_size,
                                  integers, integer_size, info, 1, 1);
}

static void run_eigh(const struct gni_solver_task *task, const struct gni_lapack_plan *plan,
                     struct gni_solver_matrix *matrix, char *workspace)
{
    union integer work = integer(plan->work), info = integer(0), integers = integer(plan->integers);
    eigh_call(task, matrix, integers_of(task, workspace), &integers, work_of(task, plan, workspace),
              &work, &info);
    matrix->info = (int32_t)value_of(&info);
}

void gni_lapack_run(const struct gni_solver_task *task, const struct gni_lapack_plan *plan,
                    struct gni_solver_matrix *matrix, char *workspace)
{
    switch (task->solver) {
    case GNI_SOLVER_CHOLESKY:
        run_cholesky(task, matrix);
        break;
    case GNI_SOLVER_LU:
        run_lu(task, matrix, workspace);
        break;
    case GNI_SOLVER_SOLVE:
        run_solve(task, matrix, workspace);
        break;
    case GNI_SOLVER_INVERSE:
        run_inverse(task, plan, matrix, workspace);
        break;
    case GNI_SOLVER_DETERMINANT:
        run_determinant(task, matrix, workspace);
        break;
    case GNI_SOLVER_TRIANGULAR:
        run_triangular(task, matrix);
        break;
    case GNI_SOLVER_QR:
        run_qr(task, plan, matrix, workspace);
        break;
    case GNI_SOLVER_SVD:
        run_svd(task, plan, matrix, workspace);
        break;
    case GNI_SOLVER_EIGH:
        run_eigh(task, plan, matrix, workspace);
        break;
    }
}

/* ---- how much memory ------------------------------------------------------------------------------------ */

/* Asks the routine; operands are not read. */
static void work_ask(const struct gni_solver_task *task, struct gni_lapack_plan *plan)
{
    double answer[2] = {0}, other = 0;
    union integer m = integer(task->rows), n = integer(task->columns), info = integer(0);
    union integer k = integer(least(task->rows, task->columns)), ask = integer(-1);
    union integer wide = integer(task->inner), integers = integer(0);
    struct gni_solver_matrix matrix;
    memcpy(matrix.operands, task->operands, sizeof matrix.operands);
    const struct routines *routines = routines_of(task);
    switch (task->solver) {
    case GNI_SOLVER_INVERSE:
        plan->integers = task->rows;
        plan->reals = task->rows * task->rows;
        return;
    case GNI_SOLVER_QR:
        plan->reals = k.wide;
        routines->geqrf.call(&m, &n, matrix.operands[0], &m, &other, answer, &ask, &info);
        plan->work = work_asked(task, answer);
        if (matrix.operands[1] != NULL)
            routines->orgqr.call(&m, &wide, &k, matrix.operands[1], &m, &other, answer, &ask,
                                 &info);
        break;
    case GNI_SOLVER_SVD:
        plan->integers = 8 * k.wide;
        svd_call(task, &matrix, &integers, answer, &ask, &info);
        break;
    case GNI_SOLVER_EIGH:
        eigh_call(task, &matrix, &integers, &ask, answer, &ask, &info);
        plan->integers = value_of(&integers);
        break;
    default: /* pivots, at most */
        plan->integers = least(task->rows, task->columns);
        return;
    }
    plan->work = most(most(plan->work, work_asked(task, answer)), 1);
}

gn_status gni_lapack_prepare(const struct gni_solver_task *task, struct gni_lapack_plan *plan)
{
    int64_t sizes[] = {task->rows, task->columns, task->right, task->inner};
    *plan = (struct gni_lapack_plan){0};
    for (int i = 0; i < 4; i++)
        if (sizes[i] > INT_MAX)
            return gni_error(GN_ERROR_INVALID_VALUE,
                             "a matrix of %lld rows or columns is too large", (long long)sizes[i]);
    work_ask(task, plan);
    if (plan->work < 0 || (!lapack.is_wide && plan->work > INT_MAX))
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "a matrix of %lld x %lld is too large for this build of OpenBLAS",
                         (long long)task->rows, (long long)task->columns);
    size_t integers, reals;
    if (!gni_size_multiply((size_t)plan->integers, sizeof(union integer), &integers) ||
        !gni_size_multiply((size_t)(plan->reals + plan->work), gni_dtype_size(task->dtype),
                           &reals) ||
        !gni_size_add(integers, reals, &plan->nbytes))
        return gni_error_host_memory(SIZE_MAX);
    return GN_OK;
}
