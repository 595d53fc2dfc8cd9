/*
 * ordered.h: several values for one element of a tensor on a GPU: the last one stays, and sums are added up in an order
 * that follows from the indices alone. So the same call gives the same bits, whichever thread comes first.
 *
 *     place     of a plan (tensor/index_plan.h): a value, and the element that it is for
 *     entry     places that differ only in dimensions that no index tensor depends on, and that are dimensions of the
 *               target: its columns. Two places are for one element if their columns are the same, and their entries
 *               have the same key
 *     key       of an entry: where its first column is in the target, as a small number
 */
#ifndef GNI_OPS_CUDA_ORDERED_H
#define GNI_OPS_CUDA_ORDERED_H

#include "ops/cuda/index_arguments.h"

/* Whether the order makes a difference: that of integers' sums, of equal values and of masks' places does not. */
bool gni_ordered_is_needed(const struct gni_index_plan *plan,
                           const struct gni_index_values *values);

/* Writes or adds. The plan has elements; all memory is in the order of the stream. */
gn_status gni_ordered_put(const struct gni_index_plan *plan, const struct gni_index_values *values,
                          gn_stream *stream) GN_NODISCARD;

#endif
