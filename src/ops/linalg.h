/*
 * linalg.h: factorizations of matrices, and what is solved with them, as operations: they go on the tape, and their rules
 * for gradients are in src/autograd/rules_linalg.c. genesis.linalg (functions_linalg*.c) is made of them.
 *
 * Matrices are the last two dimensions, and those before them a batch. Elements are float32 or float64; halves are refused.
 * Results belong to the scope. `checked` names the function for the sentence of GN_ERROR_LINALG where a matrix is singular
 * or not positive-definite; NULL: nobody checks, and `info` says it: int32 on the host, 0 or why, with the shape of the batch.
 *
 * All of it is computed on the host: operands on a GPU are copied there in the order of their streams, and results back.
 */
#ifndef GNI_OPS_LINALG_H
#define GNI_OPS_LINALG_H

#include "ops/cpu/cpu_solvers.h"
#include "ops/expression.h"
#include "tensor/tape.h"

enum gni_qr_mode {
    GNI_QR_REDUCED,
    GNI_QR_COMPLETE,
    GNI_QR_R, /* R alone */
};

/* The factor L of a = L L^T, or R of a = R^T R; the other triangle of a is not read. */
gn_tensor *gni_cholesky(struct gni_scope *s, gn_tensor *a, bool is_upper, const char *checked,
                        gn_tensor **info);

/* Both factors of P L U in one matrix, and the pivots: int32 from 1 on, on the device. */
gn_tensor *gni_lu(struct gni_scope *s, gn_tensor *a, gn_tensor **pivots, gn_tensor **info);

/* x of a x = b; both have the same batch. */
gn_tensor *gni_solve(struct gni_scope *s, gn_tensor *a, gn_tensor *b, const char *checked,
                     gn_tensor **info);

/* The same for a triangular matrix: the other triangle, and with is_unit the diagonal, are not read. */
gn_tensor *gni_solve_triangular(struct gni_scope *s, gn_tensor *a, gn_tensor *b, bool is_upper,
                                bool is_unit);

gn_tensor *gni_inverse(struct gni_scope *s, gn_tensor *a, const char *checked, gn_tensor **info);

gn_tensor *gni_determinant(struct gni_scope *s, gn_tensor *a);

/* The logarithm of its absolute value, and its sign. */
gn_tensor *gni_log_determinant(struct gni_scope *s, gn_tensor *a, gn_tensor **sign);

/* Q, and R; Q has no elements in the mode GNI_QR_R. */
gn_tensor *gni_qr(struct gni_scope *s, gn_tensor *a, enum gni_qr_mode mode, gn_tensor **r);

/* U, the singular values, and Vh; `name` for GN_ERROR_LINALG. The values alone where u and vh are NULL. */
void gni_svd(struct gni_scope *s, gn_tensor *a, bool is_full, const char *name, gn_tensor **u,
             gn_tensor **values, gn_tensor **vh);

/* The eigenvalues of a symmetric matrix, ascending, and its eigenvectors; the values alone where vectors is NULL. */
void gni_eigh(struct gni_scope *s, gn_tensor *a, bool is_upper, const char *name,
              gn_tensor **values, gn_tensor **vectors);

/* The pseudoinverse; tolerances are tensors of the batch's shape, or numbers. */
gn_tensor *gni_pinv(struct gni_scope *s, gn_tensor *a, gn_operand atol, gn_operand rtol,
                    bool is_symmetric);

/* x that makes a x - b smallest, and of those the smallest; and the rank and the singular values of a. */
gn_tensor *gni_least_squares(struct gni_scope *s, gn_tensor *a, gn_tensor *b, gn_operand rtol,
                             gn_tensor **rank, gn_tensor **values);

/* ---- what is needed for that --------------------------------------------------------------------------- */

/* The last two dimensions exchanged. */
gn_tensor *gni_turned(struct gni_scope *s, gn_tensor *x);

/* x with a dimension of 1 behind the last one, and before it. */
gn_tensor *gni_as_columns(struct gni_scope *s, gn_tensor *x);
gn_tensor *gni_as_rows(struct gni_scope *s, gn_tensor *x);

/* 1 on the diagonal of n x n, 0 elsewhere. */
gn_tensor *gni_identity(struct gni_scope *s, int64_t n, gn_dtype dtype, gn_device *device);

/* The elements on the diagonal `offset` and below it (is_upper: and above), 0 elsewhere. */
gn_tensor *gni_triangle(struct gni_scope *s, gn_tensor *x, bool is_upper, int64_t offset);

/* Fails unless x is a floating tensor, but no halves, of matrices, which are square if asked for. */
void gni_matrix_check(struct gni_scope *s, const gn_tensor *x, bool is_square);

/* The rows that pivots have brought to each place: int64, `rows` of them, where the pivots are; is_back: where each row
 * has gone. */
gn_tensor *gni_lu_order(struct gni_scope *s, gn_tensor *pivots, int64_t rows, bool is_back);

/* The rows of matrices in an order: of a batch each has its own. */
gn_tensor *gni_rows_taken(struct gni_scope *s, gn_tensor *x, gn_tensor *order);

/* What counts as 0 beside the largest singular value, if nobody says: the precision of the type, times the larger size. */
gn_operand gni_rank_tolerance(const gn_tensor *a);

/* Fails unless pivots are those of factors of this shape. */
void gni_pivots_check(struct gni_scope *s, const gn_tensor *lu, const gn_tensor *pivots);

/* 1 / value for the values that are above both tolerances, `rtol` times the largest of the matrix and `atol`; else 0. And how
 * many are above: `rank` may be NULL. */
gn_tensor *gni_values_inverted(struct gni_scope *s, gn_tensor *values, gn_operand atol,
                               gn_operand rtol, gn_tensor **rank);

/* ---- for the files that compute: linalg.c, linalg_spectra.c ------------------------------------------------ */

/* How many matrices there are. */
int64_t gni_batch_count(const gn_tensor *x);

/* A new tensor on the host in the shape of a batch, with up to two more dimensions. */
gn_tensor *gni_batch_new(struct gni_scope *s, const gn_tensor *x, gn_dtype dtype, int extra,
                         int64_t rows, int64_t columns);

/* A copy on the host that may be written to, contiguous; is_turned: of the transposed matrices. */
gn_tensor *gni_host_take(struct gni_scope *s, gn_tensor *x, bool is_turned);

/* A result of the host on the device of `like`. */
gn_tensor *gni_host_give(struct gni_scope *s, gn_tensor *made, const gn_tensor *like);

/* Computes; `like` says on which device the operands were. */
void gni_solver_run(struct gni_scope *s, struct gni_solver_task *task, const gn_tensor *like);

/* The address of the first element; NULL for no tensor. */
char *gni_host_data(const struct gni_scope *s, const gn_tensor *x);

/* The first matrix that failed, or -1, and why. */
int64_t gni_info_find(const gn_tensor *info, int32_t *why);

/* "(Batch element 3): ", or "" where there is no batch. */
struct gni_element_text {
    char text[40];
};
struct gni_element_text gni_element_text(const gn_tensor *info, int64_t index);

/* A step on the tape. */
bool gni_linalg_enter(const struct gni_scope *s, int count, const gn_operand *operands);
void gni_linalg_leave(struct gni_scope *s, bool is_taped, const struct gni_tape_step *step);

#endif
