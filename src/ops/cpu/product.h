/*
 * product.h: matrix products on the CPU.
 *
 * A product is c = a b for each index of a batch. Whatever its layout it is cut into blocks of c, which threads
 * compute one by one:
 *
 *     rows or columns are 1      product_vector.c: every element is read once, so memory is what counts
 *     large, float32 or float64  OpenBLAS, where there is one (blas.h)
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

#include "device/device.h"
#include "tensor/dtype.h"

/* Elements of a matrix; strides in elements, of any sign. */
struct gni_matrix {
    char *data;
    int64_t row_stride;    /* from a row to the next */
    int64_t column_stride; /* from a column to the next */
};

struct gni_product {
    gn_dtype dtype;
    int64_t rows, columns, inner; /* c is rows x columns, a rows x inner, b inner x columns */
    struct gni_matrix a, b, c;    /* at the first index of the batch */
    int batch_ndim;
    int64_t batch_count;
    int64_t batch_sizes[GN_DIMENSIONS_MAX];
    int64_t a_steps[GN_DIMENSIONS_MAX]; /* from one index of the batch to the next, in elements */
    int64_t b_steps[GN_DIMENSIONS_MAX];
    int64_t c_steps[GN_DIMENSIONS_MAX];
};

/* Computes c. Fails only where there is no memory to work in, and then before anything is written. */
gn_status gni_cpu_product(const struct gni_product *product, gn_device *device) GN_NODISCARD;

/* Whether there is an OpenBLAS, and it would be faster: then a matrix that does not fit it is worth a copy. */
bool gni_product_suits_blas(const struct gni_product *product);

/* Whether OpenBLAS can read a matrix of this size as it is: one of the strides is 1, the other long enough. */
bool gni_matrix_fits_blas(const struct gni_matrix *matrix, int64_t rows, int64_t columns);

/* Where the matrices of one index of the batch begin. */
void gni_product_seek(const struct gni_product *product, int64_t index, struct gni_matrix *a,
                      struct gni_matrix *b, struct gni_matrix *c);

/* How many tasks of so much work each (in products) make a part that is worth a thread. */
size_t gni_product_grain(int64_t work);

/* rows == 1 or columns == 1: product_vector.c. */
gn_status gni_product_vector(const struct gni_product *product, gn_device *device) GN_NODISCARD;

#endif
