#include "ops/product.h"

void gni_product_seek(const struct gni_product *product, int64_t index, struct gni_matrix *a,
                      struct gni_matrix *b, struct gni_matrix *c)
{
    int64_t size = (int64_t)gni_dtype_size(product->dtype);
    *a = product->a;
    *b = product->b;
    *c = product->c;
    for (int d = product->batch_ndim - 1; d >= 0; d--) {
        int64_t at = index % product->batch_sizes[d];
        index /= product->batch_sizes[d];
        a->data += at * product->a_steps[d] * size;
        b->data += at * product->b_steps[d] * size;
        c->data += at * product->c_steps[d] * size;
    }
}

static struct gni_matrix transposed(struct gni_matrix matrix)
{
    return (struct gni_matrix){matrix.data, matrix.column_stride, matrix.row_stride};
}

void gni_product_turn(const struct gni_product *product, struct gni_product *turned)
{
    *turned = *product;
    turned->rows = product->columns;
    turned->columns = product->rows;
    turned->a = transposed(product->b);
    turned->b = transposed(product->a);
    turned->c = transposed(product->c);
    for (int d = 0; d < product->batch_ndim; d++) {
        turned->a_steps[d] = product->b_steps[d];
        turned->b_steps[d] = product->a_steps[d];
    }
}

void gni_product_join(struct gni_product *product)
{
    int64_t *sizes = product->batch_sizes;
    int64_t *steps[] = {product->a_steps, product->b_steps, product->c_steps};
    int kept = 0;
    for (int d = 0; d < product->batch_ndim; d++) {
        if (sizes[d] == 1)
            continue;
        bool is_joined = kept > 0;
        for (int i = 0; i < 3 && is_joined; i++)
            is_joined = steps[i][kept - 1] == steps[i][d] * sizes[d];
        int at = is_joined ? kept - 1 : kept++;
        sizes[at] = is_joined ? sizes[at] * sizes[d] : sizes[d];
        for (int i = 0; i < 3; i++)
            steps[i][at] = steps[i][d];
    }
    product->batch_ndim = kept;
}
