/*
 * product.h: matrix products on a GPU, submitted to a stream. src/ops/backend.h says what they do.
 *
 *     float16, bfloat16, float32, float64   cuBLASLt, where it is there and can (blas.h)
 *     otherwise                             matmul.cu: our own kernel
 */
#ifndef GNI_OPS_CUDA_PRODUCT_H
#define GNI_OPS_CUDA_PRODUCT_H

#include "ops/product.h"

gn_status gni_cuda_product(const struct gni_product *product, gn_device *device,
                           gn_stream *stream) GN_NODISCARD;

/* By cuBLASLt, or not at all. */
gn_status gni_cuda_product_add(const struct gni_product *product, const struct gni_matrix *addend,
                               gn_device *device, gn_stream *stream, bool *is_done) GN_NODISCARD;

/* What cuBLASLt would have to have copied. */
unsigned gni_cuda_product_copies(const struct gni_product *product, gn_device *device);

#endif
