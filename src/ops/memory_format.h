/*
 * memory_format.h: the parameter memory_format= of functions of the table.
 */
#ifndef GNI_OPS_MEMORY_FORMAT_H
#define GNI_OPS_MEMORY_FORMAT_H

#include "ops/expression.h"

/* Whether the elements fill their memory without gaps, each in a place of its own. */
bool gni_is_dense(const gn_tensor *tensor);

/* The order of a tensor without its gaps: the dimensions by their place in memory, the outermost first, and the strides. */
void gni_order_preserve(const gn_tensor *like, int *order, int64_t *strides);

/* A tensor of the shape of another, whose elements are not set, in the format that an argument names, or in the other's
 * order where it names none. */
gn_tensor *gni_empty_format(struct gni_scope *scope, gn_dtype dtype, const gn_tensor *like,
                            gn_device *device, const gn_argument *argument);

/* gn_tensor_to_format() with the format that an argument names, or another one where it names none. */
gn_tensor *gni_to_format(struct gni_scope *scope, gn_tensor *x, const gn_argument *argument,
                         gn_memory_format standard, bool is_copied);

#endif
