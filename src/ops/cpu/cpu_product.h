/*
 * cpu_product.h: matrix products on the CPU.
 *
 * Whatever the layout of a product (ops/product.h), it is cut into blocks of c, which threads compute one by one:
 *
 *     rows or columns are 1      product_vector.c: every element is read once, so memory is what counts
 *     large, float32 or float64  OpenBLAS, where there is one (cpu_blas.h)
 *     otherwise                  tiles.c: our own kernel
 *
 * Floating numbers: an element differs from the exact sum by at most inner * epsilon / 2 times the sum of the
 * absolute values of its products, to first order; halves are summed in float32, and rounded once at the end.
 * Integers wrap around. For bool a sum is `or`, and a product `and`.
 *
 * The memory of c overlaps neither a nor b. Threads: any, at once.
 */
#ifndef GNI_OPS_CPU_PRODUCT_H
#define GNI_OPS_CPU_PRODUCT_H

#include "ops/product.h"

/* Computes c. Fails only where there is no memory to work in, and then before anything is written. */
gn_status gni_cpu_product(const struct gni_product *product, gn_device *device,
                          gn_stream *stream) GN_NODISCARD;

/* The operands that OpenBLAS would have to have copied, where it is the faster one. */
unsigned gni_cpu_product_copies(const struct gni_product *product, gn_device *device);

/* How many tasks of so much work each (in products) make a part that is worth a thread. */
size_t gni_product_grain(int64_t work);

/* rows == 1 or columns == 1: product_vector.c. */
gn_status gni_product_vector(const struct gni_product *product, gn_device *device) GN_NODISCARD;

#endif
