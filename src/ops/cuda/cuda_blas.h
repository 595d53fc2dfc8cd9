/*
 * cuda_blas.h: cuBLASLt, for matrix products of floating numbers.
 *
 * It is looked for when the first such product is computed on a GPU, and there is one handle for each GPU. How a
 * product is computed (descriptors, and the algorithm that the library recommends) is a plan, which is kept by all
 * that it depends on: shapes, strides, types, alignment.
 *
 * Threads: any, at once.
 */
#ifndef GNI_OPS_CUDA_BLAS_H
#define GNI_OPS_CUDA_BLAS_H

#include "ops/product.h"

/* Whether cuBLASLt is there for products such as this, whatever its layout. */
bool gni_cublas_suits(const struct gni_product *product, gn_device *device);

/* The matrices of a product that it could not read or write as they are: GNI_COPY_*. */
unsigned gni_cublas_copies(const struct gni_product *product);

/* Submits a product that suits, with its batch joined, or, if a matrix is added to it (NULL: none is), without one;
 * `is_done` is false where the library cannot do it: then nothing useful was written. */
gn_status gni_cublas_multiply(const struct gni_product *product, const struct gni_matrix *addend,
                              gn_stream *stream, bool *is_done) GN_NODISCARD;

/* For tests: how many plans are kept. */
size_t gni_cublas_plan_count(void);

#endif
