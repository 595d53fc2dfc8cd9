/*
 * row_sums.h: rows of a matrix become rows of another one: sums of them, or the largest of their elements.
 *
 *     sums       result[to[i]] += factors[i] * source[from[i]]     for all i, in ascending order
 *     largest    chosen[to[i]][j] = from[i] where source[from[i]][j] is the largest so far
 *
 * Embedding bags are such rows. The gradient of sums is sums with `from` and `to` exchanged.
 *
 * Invariants:
 *   RS1 `from` and `to` are int64 in one dimension, as many of both, and name rows that there are. A pair with a number below
 *       0 is left out;
 *   RS2 sums are made in the type that the source is computed in, which is that of the result.
 */
#ifndef GNI_OPS_ROW_SUMS_H
#define GNI_OPS_ROW_SUMS_H

#include "ops/expression.h"

/* For a device that has the slots row_sums and row_maxima (struct gni_backend). A matrix of `rows` rows, on the tape. Factors are floating, one for each pair; NULL: all are 1. */
gn_status gni_row_sums(gn_tensor *source, gn_tensor *factors, gn_tensor *from, gn_tensor *to,
                       int64_t rows, gn_tensor **result) GN_NODISCARD;

/* A matrix of int64 for `to` in ascending order: which row has the largest element, the first of equal ones; NaN is the largest.
 * -1 where there is none. */
gn_status gni_row_maxima(gn_tensor *source, gn_tensor *from, gn_tensor *to, int64_t rows,
                         gn_tensor **chosen) GN_NODISCARD;

#endif
