/*
 * product.h: a matrix product, whatever computes it: c = a b for each index of a batch.
 *
 * What the numbers are is said in genesis/ops.h (gn_matmul). The memory of c overlaps neither a nor b.
 */
#ifndef GNI_OPS_PRODUCT_H
#define GNI_OPS_PRODUCT_H

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

/* Matrices of a product: a set. */
enum {
    GNI_COPY_A = 1,
    GNI_COPY_B = 2,
    GNI_COPY_C = 4,
};

/* Where the matrices of one index of the batch begin. */
void gni_product_seek(const struct gni_product *product, int64_t index, struct gni_matrix *a,
                      struct gni_matrix *b, struct gni_matrix *c);

/* The same as the product of the transposed matrices: b' a' = c'. */
void gni_product_turn(const struct gni_product *product, struct gni_product *turned);

/* Joins dimensions of the batch through which all three matrices go with one step, and leaves those of size 1 out. */
void gni_product_join(struct gni_product *product);

#endif
