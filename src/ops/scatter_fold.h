/*
 * scatter_fold.h: products, largest and smallest elements of rows and of the values that go there.
 *
 * For a device with the slot `fold` (struct gni_backend). The gradient of largest and smallest elements goes to all that are
 * equal to the result, in equal parts.
 */
#ifndef GNI_OPS_SCATTER_FOLD_H
#define GNI_OPS_SCATTER_FOLD_H

#include "ops/expression.h"

/* Whether gni_scatter_fold() computes this: on the tape there are no products. */
bool gni_can_scatter_fold(gn_op op, const gn_tensor *rows, const gn_tensor *values);

/* A copy of `rows` in which the first dimension's slices are folded with the values of their places, int64, each of which
 * is a slice. Without has_self the slices that are named are made of values alone. */
gn_status gni_scatter_fold(gn_op op, gn_tensor *rows, gn_tensor *values, gn_tensor *places,
                           bool has_self, gn_tensor **result) GN_NODISCARD;

#endif
