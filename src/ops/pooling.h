/*
 * pooling.h: what pooling and resampling share.
 */
#ifndef GNI_OPS_POOLING_H
#define GNI_OPS_POOLING_H

#include "ops/expression.h"
#include "tensor/tape.h"

/* The means of parts of the last `count` dimensions: `result` of each, as the last of three. The shape of what is given is
 * the caller's to set. */
gn_tensor *gni_adaptive_mean(struct gni_scope *scope, gn_tensor *input, int count,
                             const int64_t *result);

/* The weights of four taps, of which places are `t` behind the second: the kernel of Keys, with -0.75. */
void gni_cubic_weights(struct gni_scope *scope, gn_tensor *t, gn_tensor *weights[4]);

#endif
