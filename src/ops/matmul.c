/*
 * matmul.c: matrix products as the public interface has them: shapes, types and memory are checked here.
 *
 * A vector is a matrix of one row (on the left) or one column (on the right), whose dimension is left out of the
 * result. All dimensions but the last two are a batch, which broadcasts. What is pending in the operands is computed
 * first.
 */
#include "tensor/tape.h"
#include "ops/recorder.h"

#include "ops/backend.h"
#include "ops/expression.h"

#include <string.h>

/* ---- what goes together ---------------------------------------------------------------------- */

static gn_status shapes_refuse(const gn_tensor *a, const gn_tensor *b, const char *why)
{
    return gni_error(GN_ERROR_SHAPE, "matmul: shapes %s and %s: %s",
                     gni_shape_text(a->ndim, a->sizes).text, gni_shape_text(b->ndim, b->sizes).text,
                     why);
}

static gn_status operands_check(const gn_tensor *a, const gn_tensor *b)
{
    if (a->device != b->device)
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "matmul: one tensor is on %s and one on %s: move one with to()",
                         gni_device_label(a->device).text, gni_device_label(b->device).text);
    if (a->ndim == 0 || b->ndim == 0)
        return shapes_refuse(a, b, "both need at least 1 dimension: multiply numbers with *");
    if (a->dtype != b->dtype)
        return gni_error(GN_ERROR_TYPE,
                         "matmul: one operand is %s of shape %s and one %s of %s: convert one",
                         gni_dtypes[a->dtype].name, gni_shape_text(a->ndim, a->sizes).text,
                         gni_dtypes[b->dtype].name, gni_shape_text(b->ndim, b->sizes).text);
    if (a->sizes[a->ndim - 1] != b->sizes[b->ndim > 1 ? b->ndim - 2 : 0])
        return shapes_refuse(
            a, b,
            b->ndim > 1 ? "the last size of the first must be the last but one of the second"
                        : "the last sizes must be equal");
    return GN_OK;
}

static struct gni_shape batch_of(const gn_tensor *tensor)
{
    struct gni_shape batch = {.ndim = tensor->ndim > 2 ? tensor->ndim - 2 : 0};
    memcpy(batch.sizes, tensor->sizes, sizeof *batch.sizes * (size_t)batch.ndim);
    return batch;
}

/* The shape of the result, and of its batch. */
static gn_status shape_make(const gn_tensor *a, const gn_tensor *b, struct gni_shape *batch,
                            struct gni_shape *shape)
{
    struct gni_shape a_batch = batch_of(a), b_batch = batch_of(b);
    int64_t count;
    if (!gni_shape_broadcast(&a_batch, &b_batch, batch))
        return shapes_refuse(a, b, "the sizes before the last two cannot be broadcast together");
    *shape = *batch;
    if (a->ndim > 1)
        shape->sizes[shape->ndim++] = a->sizes[a->ndim - 2];
    if (b->ndim > 1)
        shape->sizes[shape->ndim++] = b->sizes[b->ndim - 1];
    return gni_shape_check(shape->ndim, shape->sizes, gni_dtype_size(a->dtype), &count);
}

/* ---- the product ----------------------------------------------------------------------------- */

/* The steps of a tensor through a batch, which has as many dimensions or more. */
static void steps_make(const gn_tensor *tensor, const struct gni_shape *batch, int own_ndim,
                       int64_t *steps)
{
    for (int d = 0; d < batch->ndim; d++) {
        int own = d - (batch->ndim - own_ndim);
        steps[d] = own < 0 || tensor->sizes[own] == 1 ? 0 : tensor->strides[own];
    }
}

static struct gni_matrix matrix_of(const gn_tensor *tensor)
{
    return (struct gni_matrix){gni_tensor_data(tensor), tensor->strides[tensor->ndim - 2],
                               tensor->strides[tensor->ndim - 1]};
}

/* A batch of matrices times one matrix is one tall matrix times that, if they lie one below the other. */
static void batch_join(struct gni_product *product)
{
    while (product->batch_ndim > 0) {
        int d = product->batch_ndim - 1;
        if (product->batch_sizes[d] != 1 &&
            (product->b_steps[d] != 0 ||
             product->a_steps[d] != product->rows * product->a.row_stride ||
             product->c_steps[d] != product->rows * product->c.row_stride))
            return;
        product->rows *= product->batch_sizes[d];
        product->batch_count /= product->batch_sizes[d];
        product->batch_ndim--;
    }
}

/* The operands' bytes and those of `c` are there, and there are elements. */
static void product_make(const gn_tensor *a, const gn_tensor *b, const gn_tensor *c,
                         const struct gni_shape *batch, struct gni_product *product)
{
    *product = (struct gni_product){
        .dtype = a->dtype,
        .rows = a->ndim > 1 ? a->sizes[a->ndim - 2] : 1,
        .columns = b->ndim > 1 ? b->sizes[b->ndim - 1] : 1,
        .inner = a->sizes[a->ndim - 1],
        .a = a->ndim > 1 ? matrix_of(a) : (struct gni_matrix){gni_tensor_data(a), 0, a->strides[0]},
        .b = b->ndim > 1 ? matrix_of(b) : (struct gni_matrix){gni_tensor_data(b), b->strides[0], 0},
        .c = {.data = gni_tensor_data(c)},
        .batch_ndim = batch->ndim,
        .batch_count = gni_shape_count(batch->ndim, batch->sizes),
    };
    int last = c->ndim - 1;
    if (b->ndim > 1)
        product->c.column_stride = c->strides[last--];
    if (a->ndim > 1)
        product->c.row_stride = c->strides[last];
    memcpy(product->batch_sizes, batch->sizes, sizeof product->batch_sizes);
    steps_make(a, batch, a->ndim > 2 ? a->ndim - 2 : 0, product->a_steps);
    steps_make(b, batch, b->ndim > 2 ? b->ndim - 2 : 0, product->b_steps);
    for (int d = 0; d < batch->ndim; d++)
        product->c_steps[d] = c->strides[d];
    batch_join(product);
}

/* Submits a product to the current stream, in whose order its memory is from then on. */
static gn_status product_submit(gn_tensor *a, gn_tensor *b, gn_tensor *c,
                                const struct gni_product *product)
{
    gn_stream *stream;
    GN_TRY(gni_stream_of(a->device, &stream));
    GN_TRY(gni_storage_order(gni_tensor_storage(a), stream, false));
    GN_TRY(gni_storage_order(gni_tensor_storage(b), stream, false));
    GN_TRY(gni_storage_order(gni_tensor_storage(c), stream, true));
    return gni_backend_get(a->device)->product(product, a->device, stream);
}

static gn_status operand_take(gn_tensor *tensor, bool is_copied, gn_tensor **operand)
{
    if (is_copied)
        return gni_tensor_compact(tensor, operand);
    gn_tensor_retain(tensor);
    *operand = tensor;
    return GN_OK;
}

static gn_status product_copy(gn_tensor *a, gn_tensor *b, gn_tensor *c,
                              const struct gni_shape *batch, unsigned copies)
{
    struct gni_product product;
    gn_tensor *left, *right;
    GN_TRY(operand_take(a, copies & GNI_COPY_A, &left));
    gn_status status = operand_take(b, copies & GNI_COPY_B, &right);
    if (status == GN_OK) {
        product_make(left, right, c, batch, &product);
        status = product_submit(left, right, c, &product);
        gn_tensor_release(right);
    }
    gn_tensor_release(left);
    return status;
}

/* Whether `c` would have to be copied afterwards is not asked. */
static gn_status product_run(gn_tensor *a, gn_tensor *b, gn_tensor *c,
                             const struct gni_shape *batch)
{
    struct gni_product product;
    product_make(a, b, c, batch, &product);
    unsigned copies = gni_backend_get(a->device)->product_copies(&product, a->device);
    return copies & (GNI_COPY_A | GNI_COPY_B) ? product_copy(a, b, c, batch, copies)
                                              : product_submit(a, b, c, &product);
}

/* Whether an output is better made elsewhere, and copied. */
static bool out_is_copied(gn_tensor *a, gn_tensor *b, gn_tensor *out, const struct gni_shape *batch)
{
    struct gni_product product;
    product_make(a, b, out, batch, &product);
    return gni_backend_get(a->device)->product_copies(&product, a->device) & GNI_COPY_C;
}

/* ---- products with a sum ---------------------------------------------------------------------- */

/* A tensor that is added to a product of this shape, as a matrix: all dimensions but the last are its rows. False if it
 * is none. */
static bool addend_make(const gn_tensor *tensor, const struct gni_shape *shape,
                        struct gni_matrix *addend)
{
    int shift = shape->ndim - tensor->ndim;
    int64_t rows = 1;
    *addend = (struct gni_matrix){.data = gni_tensor_data(tensor)};
    for (int d = shape->ndim - 1; d >= 0; d--) {
        int64_t stride =
            d < shift || tensor->sizes[d - shift] == 1 ? 0 : tensor->strides[d - shift];
        if (d == shape->ndim - 1) {
            addend->column_stride = stride;
            continue;
        }
        if (shape->sizes[d] == 1)
            continue;
        if (rows == 1)
            addend->row_stride = stride;
        else if (stride != rows * addend->row_stride)
            return false;
        rows *= shape->sizes[d];
    }
    return addend->row_stride >= 0 && addend->column_stride >= 0;
}

/* Whether a product and a sum with a tensor may be one call: of matrices of one type, whose shape the tensor takes. */
static bool suits_sum(const gn_tensor *a, const gn_tensor *b, const gn_tensor *tensor,
                      const struct gni_shape *shape)
{
    struct gni_shape own = {.ndim = tensor->ndim}, both;
    memcpy(own.sizes, tensor->sizes, sizeof own.sizes);
    return gni_backend_get(a->device)->product_add != NULL && tensor->device == a->device &&
           tensor->dtype == a->dtype && a->ndim > 1 && b->ndim > 1 &&
           gni_shape_count(shape->ndim, shape->sizes) > 0 &&
           gni_shape_broadcast(&own, shape, &both) &&
           gni_shape_is_equal(both.ndim, both.sizes, shape->ndim, shape->sizes);
}

/* Submits both as one call, where that can be. */
static gn_status sum_submit(gn_tensor *a, gn_tensor *b, gn_tensor *tensor,
                            const struct gni_shape *batch, gn_tensor *made, bool *is_done)
{
    const struct gni_backend *backend = gni_backend_get(a->device);
    struct gni_shape shape = {.ndim = made->ndim};
    struct gni_product product;
    struct gni_matrix addend;
    gn_stream *stream;
    memcpy(shape.sizes, made->sizes, sizeof shape.sizes);
    product_make(a, b, made, batch, &product);
    if (product.batch_ndim > 0 || backend->product_copies(&product, a->device) != 0 ||
        !addend_make(tensor, &shape, &addend))
        return GN_OK;
    GN_TRY(gni_stream_of(a->device, &stream));
    GN_TRY(gni_storage_order(gni_tensor_storage(a), stream, false));
    GN_TRY(gni_storage_order(gni_tensor_storage(b), stream, false));
    GN_TRY(gni_storage_order(gni_tensor_storage(tensor), stream, false));
    GN_TRY(gni_storage_order(gni_tensor_storage(made), stream, true));
    return backend->product_add(&product, &addend, a->device, stream, is_done);
}

/* `result` stays as it is where that cannot be. */
static gn_status sum_run(gn_tensor *a, gn_tensor *b, gn_tensor *tensor,
                         const struct gni_shape *batch, const struct gni_shape *shape,
                         gn_tensor **result)
{
    gn_tensor *made;
    bool is_done = false;
    gn_tensor *all[] = {a, b, tensor};
    for (int i = 0; i < 3; i++)
        GN_TRY(gni_tensor_flush(all[i]));
    GN_TRY(gn_tensor_create(a->dtype, shape->ndim, shape->sizes, a->device, &made));
    gn_status status = sum_submit(a, b, tensor, batch, made, &is_done);
    if (status == GN_OK && is_done)
        *result = made;
    else
        gn_tensor_release(made);
    return status;
}

/* ---- the public side ------------------------------------------------------------------------- */

static gn_status matmul(gn_tensor *a, gn_tensor *b, gn_tensor **result)
{
    GN_CHECK_ARGUMENT(a != NULL && b != NULL && result != NULL, "a, b and result must not be NULL");
    struct gni_shape batch, shape;
    gn_tensor *made;
    GN_TRY(operands_check(a, b));
    GN_TRY(shape_make(a, b, &batch, &shape));
    GN_TRY(gni_tensor_flush(a));
    GN_TRY(gni_tensor_flush(b));
    GN_TRY(gn_tensor_create(a->dtype, shape.ndim, shape.sizes, a->device, &made));
    gn_status status = made->count > 0 ? product_run(a, b, made, &batch) : GN_OK;
    if (status != GN_OK) {
        gn_tensor_release(made);
        return status;
    }
    *result = made;
    return GN_OK;
}

gn_status gn_matmul(gn_tensor *a, gn_tensor *b, gn_tensor **result)
{
    const gn_operand both[] = {{.tensor = a}, {.tensor = b}};
    bool is_taped = gni_tape_enter_any(2, both);
    gn_status status = matmul(a, b, result);
    if (!is_taped)
        return status;
    return gni_tape_leave(status, &(struct gni_tape_step){.rule = GNI_RULE_MATMUL,
                                                          .name = "matmul",
                                                          .input_count = 2,
                                                          .inputs = both,
                                                          .result_count = 1,
                                                          .results = result});
}

/* Whether halves are multiplied as float32, as on the CPU: then the sum is rounded once, as PyTorch does. */
static bool is_widened(const gn_tensor *a, const gn_tensor *b, const gn_tensor *addend)
{
    return gni_dtype_is_half(a->dtype) && a->dtype == b->dtype && a->dtype == addend->dtype &&
           !gni_backend_get(a->device)->has_half_products;
}

static gn_status wide_sum(gn_tensor *a, gn_tensor *b, gn_tensor *addend, gn_tensor **result)
{
    struct gni_scope s = {0};
    gn_tensor *product = gni_matmul(&s, gni_wide(&s, a), gni_wide(&s, b));
    gn_tensor *sum = gni_binary(&s, GN_OP_ADD, gni_of(gni_wide(&s, addend)), gni_of(product));
    return gni_scope_end(&s, gni_cast(&s, sum, a->dtype), result);
}

gn_status gn_matmul_add(gn_tensor *a, gn_tensor *b, gn_tensor *addend, gn_tensor **result)
{
    GN_CHECK_ARGUMENT(a != NULL && b != NULL && addend != NULL && result != NULL,
                      "a, b, addend and result must not be NULL");
    struct gni_shape batch, shape;
    gn_tensor *made = NULL;
    GN_TRY(operands_check(a, b));
    GN_TRY(shape_make(a, b, &batch, &shape));
    bool is_taped = gni_is_taped(a) || gni_is_taped(b) || gni_is_taped(addend);
    if (!is_taped && suits_sum(a, b, addend, &shape)) /* on the tape are a product and a sum */
        GN_TRY(sum_run(a, b, addend, &batch, &shape, &made));
    if (made == NULL && is_widened(a, b, addend))
        GN_TRY(wide_sum(a, b, addend, &made));
    if (made == NULL) {
        gn_tensor *product;
        GN_TRY(gn_matmul(a, b, &product));
        gn_status status = gn_elementwise(
            GN_OP_ADD, (gn_operand[]){{.tensor = addend}, {.tensor = product}}, &made);
        gn_tensor_release(product);
        GN_TRY(status);
    }
    *result = made;
    return GN_OK;
}

/* Whether two tensors reach one byte, whichever storage they call it. */
static bool is_overlapping(const gn_tensor *a, const gn_tensor *b)
{
    const gn_tensor *tensors[] = {a, b};
    const char *begin[2], *end[2];
    if (a->count == 0 || b->count == 0)
        return false;
    for (int i = 0; i < 2; i++) {
        int64_t low, high, size = (int64_t)gni_dtype_size(tensors[i]->dtype);
        gni_strides_extent(tensors[i]->ndim, tensors[i]->sizes, tensors[i]->strides, &low, &high);
        begin[i] = gni_tensor_data(tensors[i]) + low * size;
        end[i] = gni_tensor_data(tensors[i]) + (high + 1) * size;
    }
    return begin[0] < end[1] && begin[1] < end[0];
}

static gn_status out_check(const gn_tensor *a, const struct gni_shape *shape, const gn_tensor *out)
{
    if (out->device != a->device)
        return gni_error(GN_ERROR_INVALID_VALUE, "matmul: the output is on another device");
    if (!gni_shape_is_equal(out->ndim, out->sizes, shape->ndim, shape->sizes))
        return gni_error(GN_ERROR_SHAPE, "matmul: the result has shape %s, the output %s",
                         gni_shape_text(shape->ndim, shape->sizes).text,
                         gni_shape_text(out->ndim, out->sizes).text);
    if (out->dtype != a->dtype)
        return gni_error(GN_ERROR_TYPE, "matmul: the result is %s, the output %s",
                         gni_dtypes[a->dtype].name, gni_dtypes[out->dtype].name);
    return gni_out_check("matmul", out, shape, out->dtype);
}

gn_status gn_matmul_into(gn_tensor *a, gn_tensor *b, gn_tensor *out)
{
    GN_CHECK_ARGUMENT(a != NULL && b != NULL && out != NULL, "a, b and out must not be NULL");
    GN_TRY(gni_tape_refuse_write("matmul", out, gni_is_taped(a) ? a : b));
    struct gni_shape batch, shape;
    GN_TRY(operands_check(a, b));
    GN_TRY(shape_make(a, b, &batch, &shape));
    GN_TRY(out_check(a, &shape, out));
    gn_tensor *all[] = {a, b, out};
    for (int i = 0; i < 3; i++)
        GN_TRY(gni_tensor_flush(all[i]));
    if (out->count == 0)
        return GN_OK;
    if (is_overlapping(a, out) || is_overlapping(b, out) || out_is_copied(a, b, out, &batch)) {
        gn_tensor *made;
        GN_TRY(gn_matmul(a, b, &made));
        gn_status status = gn_assign(out, (gn_operand){.tensor = made});
        gn_tensor_release(made);
        return status;
    }
    GN_TRY(gni_recorder_flush_readers(gni_tensor_storage(out)));
    GN_TRY(product_run(a, b, out, &batch));
    gni_storage_note_write(gni_tensor_storage(out));
    return GN_OK;
}
