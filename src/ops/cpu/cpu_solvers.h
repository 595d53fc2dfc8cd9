/*
 * cpu_solvers.h: factorizations of matrices in the CPU's memory, and what is solved with them.
 *
 * Each solver has two implementations: LAPACK's, where an OpenBLAS was found (lapack.c), and ours (own_factors.c,
 * own_spectra.c), which computes in double precision and is made for being right, and for small matrices.
 *
 * Matrices lie one behind the other. "By rows" and "by columns" say how the elements of one follow each other: the next
 * element is the one to the right, or the one below.
 *
 * Threads: any. Many small matrices are shared out to our own threads, a large one is computed by those of OpenBLAS.
 */
#ifndef GNI_OPS_CPU_SOLVERS_H
#define GNI_OPS_CPU_SOLVERS_H

#include "device/device.h"
#include "genesis/tensor.h"

enum {
    GNI_SOLVER_OPERANDS = 4,
};

/* What is computed of operand 0, a matrix of rows x columns. A square one has `rows`. */
enum gni_solver {
    /* By rows, in place: the factor, whose other triangle is 0. is_upper: of the upper triangle. info: the order of the
     * leading minor that is not positive. */
    GNI_SOLVER_CHOLESKY,
    /* By columns, in place: both factors, and `pivots`. info: the element of the diagonal of U that is 0. */
    GNI_SOLVER_LU,
    /* By columns, lost; 1: right-hand sides by columns, `right` of them, which become the solution. is_transposed: of the
     * transposed matrix. info as for LU. */
    GNI_SOLVER_SOLVE,
    /* By rows or by columns, in place. info as for LU. */
    GNI_SOLVER_INVERSE,
    /* By rows or by columns, lost; 1: the determinant, 2: its sign, 3: the logarithm of its absolute value. */
    GNI_SOLVER_DETERMINANT,
    /* By rows (is_transposed: by columns), read; 1: right-hand sides by rows, which become the solution of a x = b, or,
     * with is_right, of x a = b. `right`: the other size of these. */
    GNI_SOLVER_TRIANGULAR,
    /* By columns, lost; 1: Q by columns, with `inner` columns, or NULL; 2: R by rows, with `inner` rows. */
    GNI_SOLVER_QR,
    /* By rows, lost; 1: the singular values; 2: U and 3: Vh by rows, or NULL. is_full: both are square. */
    GNI_SOLVER_SVD,
    /* By rows, lost; 1: the eigenvalues; with has_vectors the eigenvectors are left in 0, by columns. is_upper: of the
     * upper triangle. */
    GNI_SOLVER_EIGH,
};

struct gni_solver_task {
    enum gni_solver solver;
    gn_dtype dtype;                        /* float32 or float64 */
    int64_t batch;                         /* matrices; none has a size of 0 */
    int64_t rows, columns, right, inner;   /* inner: of QR, the columns of Q */
    bool is_upper, is_transposed, is_unit; /* is_unit: the diagonal counts as 1 */
    bool is_right, is_full, has_vectors;
    char *operands[GNI_SOLVER_OPERANDS];
    int32_t *pivots; /* of LU: min(rows, columns) for each matrix, from 1 on */
    int32_t *info;   /* for each matrix: 0, or why it failed */
};

/* Computes all of them. */
gn_status gni_cpu_solver_run(const struct gni_solver_task *task, gn_device *device) GN_NODISCARD;

/* ---- one matrix ------------------------------------------------------------------------------------- */

/* The operands of one matrix. */
struct gni_solver_matrix {
    char *operands[GNI_SOLVER_OPERANDS];
    int32_t *pivots;
    int32_t info;
};

/* ---- lapack.c --------------------------------------------------------------------------------------- */

/* The memory that a routine needs beside its operands. */
struct gni_lapack_plan {
    int64_t integers, reals, work; /* its elements: `work` is the routine's own, `reals` is ours */
    size_t nbytes;
};

/* Whether there is an OpenBLAS that has LAPACK. */
bool gni_lapack_is_there(void);

/* GN_ERROR_INVALID_VALUE: a size that its integers cannot hold. */
gn_status gni_lapack_prepare(const struct gni_solver_task *task,
                             struct gni_lapack_plan *plan) GN_NODISCARD;
void gni_lapack_run(const struct gni_solver_task *task, const struct gni_lapack_plan *plan,
                    struct gni_solver_matrix *matrix, char *workspace);

/* ---- own_factors.c, own_spectra.c: all elements are doubles ------------------------------------------ */

/* Doubles of a workspace. */
int64_t gni_own_workspace(const struct gni_solver_task *task);
void gni_own_run(const struct gni_solver_task *task, struct gni_solver_matrix *matrix,
                 double *workspace);

/* Column `from` and those behind it, up to `to`, of a matrix by columns become unit vectors that are orthogonal to all before
 * them. */
void gni_own_complete(double *q, int64_t rows, int64_t from, int64_t to);

/* 0, or which eigenvalue was not found. `v` by rows, symmetric, becomes the eigenvectors by columns of the matrix: v[i * n + j] is
 * element i of vector j. `scratch` has n elements. */
int32_t gni_own_eigh(int64_t n, double *v, double *values, double *scratch);

/* a by columns, rows >= columns, becomes U times the singular values; `v` by columns. 0, or 1 if it did not converge. */
int32_t gni_own_jacobi(int64_t rows, int64_t columns, double *a, double *v, double *values);

#endif
