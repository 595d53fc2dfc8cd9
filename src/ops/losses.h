/*
 * losses.h: what the losses of genesis.nn.functional share: how a loss is reduced, and the loss of class indices.
 */
#ifndef GNI_OPS_LOSSES_H
#define GNI_OPS_LOSSES_H

#include "ops/functions.h"

enum gni_loss_reduction {
    GNI_LOSS_NONE,
    GNI_LOSS_MEAN,
    GNI_LOSS_SUM,
};

/* What `reduction` asks for; `average` and `reduce`, the older way to say it, may be NULL and win where one is given. */
enum gni_loss_reduction gni_loss_reduction(struct gni_scope *scope, const gn_argument *reduction,
                                           const gn_argument *average, const gn_argument *reduce);

/* The loss of each element, reduced, as a type. */
gn_tensor *gni_loss_reduce(struct gni_scope *scope, gn_tensor *x, enum gni_loss_reduction reduction,
                           gn_dtype dtype);

/* The same with the sum divided by another sum instead of a count: a weighted mean. */
gn_tensor *gni_loss_reduce_by(struct gni_scope *scope, gn_tensor *x, gn_tensor *weights,
                              enum gni_loss_reduction reduction, gn_dtype dtype);

/* The larger of x and a number. */
static inline gn_tensor *gni_at_least_number(struct gni_scope *scope, gn_tensor *x, double number)
{
    return gni_binary(scope, GN_OP_MAXIMUM, gni_of(x), gni_floating(number));
}

/*
 * The cross entropy of each row of the last dimension with a class: `rows` has that dimension as 1.
 *
 *     (1 - smoothing) w[t] (lse - x[t]) + smoothing / C * sum over c of w[c] (lse - x[c])
 *
 * lse is the logarithm of the sum of exp(x). `target` has the shape of x without the last dimension, and its numbers are
 * checked: GN_ERROR_INDEX. `weight`, one number for each class, may be NULL, which is 1. Halves are computed in float32, which
 * the result has.
 */
gn_tensor *gni_class_loss(struct gni_scope *scope, gn_tensor *x, gn_tensor *target,
                          gn_tensor *weight, double smoothing);

/* -(target log(x) + (1 - target) log(1 - x)), logarithms at least -100, as PyTorch has them. */
gn_tensor *gni_binary_loss(struct gni_scope *scope, gn_tensor *x, gn_tensor *target);

#endif
