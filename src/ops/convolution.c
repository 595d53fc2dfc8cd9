/*
 * convolution.c: convolutions as operations, and how they are made of others: see convolution.h.
 *
 * By products: the windows of an image are a view with a dimension for each of the kernel's, and a convolution is the
 * product of the weights with a copy of it. A transposed convolution is one of the result's elements, put into a tensor of
 * 0 as far apart as the stride says, with the weights turned around.
 */
#include "ops/convolution.h"

#include "ops/backend.h"
#include "ops/recorder.h"
#include "tensor/tape.h"

#include <string.h>

enum {
    DIMENSIONS = GNI_CONV_DIMENSIONS,
    NDIM = DIMENSIONS + 2,
    PADDED_BYTES = 64, /* of an element: so much more fits the address space than an image needs */
};

int64_t gni_window_count(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                         int64_t dilation, bool is_ceil)
{
    int64_t left = size + 2 * padding - dilation * (kernel - 1) - 1;
    if (left < 0)
        return is_ceil && left + stride > 0 ? 1 : 0;
    int64_t count = (left + (is_ceil ? stride - 1 : 0)) / stride + 1;
    return is_ceil && (count - 1) * stride >= size + padding ? count - 1 : count;
}

void gni_window_sizes(struct gni_scope *scope, const char *function, const char *name,
                      const gn_argument *argument, int count, int64_t least,
                      int64_t values[GNI_CONV_DIMENSIONS])
{
    if (!argument->is_given || !gni_scope_is_ok(scope))
        return;
    bool is_one = argument->integers == NULL || argument->is_single || argument->count == 1;
    if (!is_one && argument->count != count) {
        gni_scope_fail(
            scope, GN_ERROR_INVALID_VALUE,
            "%s: %s has %d numbers: it is one integer, or one for each of %d dimension%s", function,
            name, argument->count, count, count == 1 ? "" : "s");
        return;
    }
    for (int i = 0; i < count; i++) {
        int64_t value = argument->integers == NULL ? argument->operand.scalar.integer
                                                   : argument->integers[is_one ? 0 : i];
        if (value < least || value > INT32_MAX)
            gni_scope_fail(scope, GN_ERROR_INVALID_VALUE,
                           "%s: %s is %lld: it must be from %lld to %d", function, name,
                           (long long)value, (long long)least, INT32_MAX);
        values[GNI_CONV_DIMENSIONS - count + i] = value;
    }
}

gn_tensor *gni_image_widen(struct gni_scope *scope, gn_tensor *image, int count)
{
    if (gni_scope_is_ok(scope) && image->ndim == count + 1)
        image = gni_unsqueeze(scope, image, 0);
    for (int i = count; i < DIMENSIONS && gni_scope_is_ok(scope); i++)
        image = gni_unsqueeze(scope, image, 2);
    return image;
}

gn_tensor *gni_image_narrow(struct gni_scope *scope, gn_tensor *made, int count, bool has_images)
{
    int64_t sizes[NDIM];
    int ndim = 0;
    if (!gni_scope_is_ok(scope))
        return NULL;
    for (int i = has_images ? 0 : 1; i < NDIM; i++)
        if (i < 2 || i >= NDIM - count)
            sizes[ndim++] = made->sizes[i];
    return gni_reshape_values(scope, made, ndim, sizes);
}

static int64_t product_of(const int64_t *sizes)
{
    int64_t product = 1;
    for (int d = 0; d < DIMENSIONS; d++)
        product *= sizes[d];
    return product;
}

/* Two sizes, and those of some dimensions. */
static void shape_set(int64_t *shape, int64_t first, int64_t second, const int64_t *sizes)
{
    shape[0] = first;
    shape[1] = second;
    memcpy(shape + 2, sizes, DIMENSIONS * sizeof *sizes);
}

/* ---- windows ----------------------------------------------------------------------------------- */

static gn_tensor *zeros(struct gni_scope *s, gn_dtype dtype, int ndim, const int64_t *sizes,
                        gn_device *device)
{
    return gni_full(s, (gn_scalar){.kind = GN_INT64}, dtype, ndim, sizes, device);
}

/* What all windows of an image read, in each dimension. */
static int64_t read_size(const struct gni_convolution *c, int d)
{
    return c->result[d] > 0
               ? (c->result[d] - 1) * c->stride[d] + (c->kernel[d] - 1) * c->dilation[d] + 1
               : 0;
}

/* The image with its padding, and without what no window reads: a contiguous tensor. */
static gn_tensor *padded(struct gni_scope *s, const struct gni_convolution *c, gn_tensor *image)
{
    int64_t sizes[NDIM] = {c->images, c->channels};
    for (int d = 0; d < DIMENSIONS; d++)
        sizes[2 + d] = read_size(c, d);
    gn_tensor *room = zeros(s, image->dtype, NDIM, sizes, image->device), *to = room;
    for (int d = 0; d < DIMENSIONS && gni_scope_is_ok(s); d++) {
        int64_t count = c->image[d];
        if (count > sizes[2 + d] - c->padding[d])
            count = sizes[2 + d] - c->padding[d];
        count = count > 0 ? count : 0;
        to = gni_narrow(s, to, 2 + d, count > 0 ? c->padding[d] : 0, count);
        image = gni_scope_is_ok(s) ? gni_narrow(s, image, 2 + d, 0, count) : NULL;
    }
    if (gni_scope_is_ok(s) && image->count > 0)
        gni_assign(s, to, gni_of(image));
    return room;
}

/* A view: images, channels, the kernel's dimensions, the result's. */
static gn_tensor *windows_of(struct gni_scope *s, const struct gni_convolution *c, gn_tensor *room)
{
    int64_t sizes[2 + 2 * DIMENSIONS], strides[2 + 2 * DIMENSIONS];
    if (!gni_scope_is_ok(s))
        return NULL;
    s->status = gni_tensor_flush(room);
    if (!gni_scope_is_ok(s))
        return NULL;
    memcpy(sizes, room->sizes, 2 * sizeof *sizes);
    memcpy(strides, room->strides, 2 * sizeof *strides);
    for (int d = 0; d < DIMENSIONS; d++) {
        sizes[2 + d] = c->kernel[d];
        strides[2 + d] = c->dilation[d] * room->strides[2 + d];
        sizes[2 + DIMENSIONS + d] = c->result[d];
        strides[2 + DIMENSIONS + d] = c->stride[d] * room->strides[2 + d];
    }
    return gni_strided(s, room, 2 + 2 * DIMENSIONS, sizes, strides, room->offset);
}

/* The windows' elements for one tap: images, channels, the result's dimensions. */
static gn_tensor *tap_of(struct gni_scope *s, const struct gni_convolution *c, gn_tensor *windows,
                         int64_t tap)
{
    int64_t at[DIMENSIONS];
    for (int d = DIMENSIONS - 1; d >= 0; d--) {
        at[d] = tap % c->kernel[d];
        tap /= c->kernel[d];
    }
    for (int d = 0; d < DIMENSIONS && gni_scope_is_ok(s); d++)
        windows = gni_select(s, windows, 2, at[d]);
    return windows;
}

/* All columns: images, groups, channels of a group times taps, places. */
static gn_tensor *columns_of(struct gni_scope *s, const struct gni_convolution *c, gn_tensor *image)
{
    gn_tensor *windows = windows_of(s, c, padded(s, c, image));
    return gni_scope_is_ok(s)
               ? gni_reshape(s, windows, 4,
                             (int64_t[]){c->images, c->groups,
                                         c->channels / c->groups * product_of(c->kernel),
                                         product_of(c->result)})
               : NULL;
}

/* ---- by products --------------------------------------------------------------------------------- */

/* Images of one channel for each group: a sum over the taps, images x groups x results x places. */
static gn_tensor *result_by_taps(struct gni_scope *s, const struct gni_convolution *c,
                                 gn_tensor *image, gn_tensor *weight)
{
    int64_t taps = product_of(c->kernel), shape[NDIM];
    gn_dtype dtype = image->dtype;
    gn_tensor *windows = windows_of(s, c, padded(s, c, gni_wide(s, image)));
    weight = gni_wide(s, weight);
    if (gni_scope_is_ok(s))
        weight = gni_reshape(s, weight, 3, (int64_t[]){c->groups, c->results / c->groups, taps});
    gn_tensor *sum = NULL;
    for (int64_t t = 0; t < taps && gni_scope_is_ok(s); t++) {
        gn_tensor *by = gni_select(s, weight, 2, t);
        gn_tensor *x = tap_of(s, c, windows, t);
        x = gni_scope_is_ok(s) ? gni_unsqueeze(s, x, 2) : NULL;
        if (gni_scope_is_ok(s))
            by = gni_reshape(s, by, 6, (int64_t[]){1, c->groups, c->results / c->groups, 1, 1, 1});
        gn_tensor *part = gni_binary(s, GN_OP_MULTIPLY, gni_of(x), gni_of(by));
        sum = sum == NULL ? part : gni_binary(s, GN_OP_ADD, gni_of(sum), gni_of(part));
    }
    shape_set(shape, c->images, c->results, c->result);
    sum = gni_scope_is_ok(s) ? gni_reshape(s, sum, NDIM, shape) : NULL;
    return gni_scope_is_ok(s) ? gni_cast(s, sum, dtype) : NULL;
}

static gn_tensor *result_by_products(struct gni_scope *s, const struct gni_convolution *c,
                                     gn_tensor *image, gn_tensor *weight)
{
    int64_t shape[NDIM], inner = c->channels / c->groups * product_of(c->kernel);
    if (c->channels == c->groups)
        return result_by_taps(s, c, image, weight);
    gn_tensor *columns = columns_of(s, c, image);
    if (gni_scope_is_ok(s))
        weight = gni_reshape(s, weight, 3, (int64_t[]){c->groups, c->results / c->groups, inner});
    gn_tensor *made = gni_scope_is_ok(s) ? gni_matmul(s, weight, columns) : NULL;
    shape_set(shape, c->images, c->results, c->result);
    return gni_scope_is_ok(s) ? gni_reshape(s, made, NDIM, shape) : NULL;
}

/* The result's elements as far apart as the stride says, so that windows of size kernel read them for each element of the
 * image. */
static gn_tensor *spread(struct gni_scope *s, const struct gni_convolution *c, gn_tensor *result)
{
    int64_t sizes[NDIM] = {c->images, c->results};
    for (int d = 0; d < DIMENSIONS; d++)
        sizes[2 + d] = c->image[d] + (c->kernel[d] - 1) * c->dilation[d];
    gn_tensor *room = zeros(s, result->dtype, NDIM, sizes, result->device), *to = room;
    for (int d = 0; d < DIMENSIONS && gni_scope_is_ok(s); d++) {
        int64_t start = (c->kernel[d] - 1) * c->dilation[d] - c->padding[d], skipped = 0;
        if (start < 0)
            skipped = (-start - 1) / c->stride[d] + 1;
        start += skipped * c->stride[d];
        int64_t count = start < sizes[2 + d] ? (sizes[2 + d] - 1 - start) / c->stride[d] + 1 : 0;
        int64_t there = c->result[d] - skipped;
        count = count < there ? count : there;
        if (count <= 0)
            return room;
        gn_tensor *made = NULL;
        s->status = gn_tensor_slice(to, 2 + d, start, c->stride[d], count, &made);
        to = gni_scope_keep(s, s->status, made);
        result = gni_scope_is_ok(s) ? gni_narrow(s, result, 2 + d, skipped, count) : NULL;
    }
    if (gni_scope_is_ok(s))
        gni_assign(s, to, gni_of(result));
    return room;
}

/* The weights with their channels exchanged in each group, and turned around. */
static gn_tensor *weight_turned(struct gni_scope *s, const struct gni_convolution *c,
                                gn_tensor *weight)
{
    int64_t channels = c->channels / c->groups, results = c->results / c->groups;
    const int64_t *k = c->kernel;
    gn_tensor *turned = NULL;
    weight = gni_reshape(s, weight, 6, (int64_t[]){c->groups, results, channels, k[0], k[1], k[2]});
    weight = gni_scope_is_ok(s) ? gni_transpose(s, weight, 1, 2) : NULL;
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_status status = gn_flip(weight, 7U << 3, &turned);
    turned = gni_scope_keep(s, status, turned);
    return turned != NULL
               ? gni_reshape(s, turned, NDIM, (int64_t[]){c->channels, results, k[0], k[1], k[2]})
               : NULL;
}

static gn_tensor *image_by_products(struct gni_scope *s, const struct gni_convolution *c,
                                    gn_tensor *result, gn_tensor *weight)
{
    struct gni_convolution turned = *c;
    turned.channels = c->results;
    turned.results = c->channels;
    for (int d = 0; d < DIMENSIONS; d++) {
        turned.image[d] = c->image[d] + (c->kernel[d] - 1) * c->dilation[d];
        turned.result[d] = c->image[d];
        turned.stride[d] = 1;
        turned.padding[d] = 0;
    }
    gn_tensor *room = spread(s, c, result);
    weight = gni_scope_is_ok(s) ? weight_turned(s, c, weight) : NULL;
    return gni_scope_is_ok(s) ? result_by_products(s, &turned, room, weight) : NULL;
}

/* Of one channel for each group: for each tap the sum over images and places. */
static gn_tensor *weight_by_taps(struct gni_scope *s, const struct gni_convolution *c,
                                 gn_tensor *image, gn_tensor *result)
{
    int64_t taps = product_of(c->kernel), results = c->results / c->groups;
    const int64_t *o = c->result;
    gn_tensor *windows = windows_of(s, c, padded(s, c, gni_wide(s, image)));
    gn_tensor **parts = gni_scope_is_ok(s) ? gni_scope_list(s, taps) : NULL;
    result = gni_scope_is_ok(s) ? gni_wide(s, result) : NULL;
    if (gni_scope_is_ok(s))
        result =
            gni_reshape(s, result, 6, (int64_t[]){c->images, c->groups, results, o[0], o[1], o[2]});
    for (int64_t t = 0; t < taps && gni_scope_is_ok(s); t++) {
        gn_tensor *x = tap_of(s, c, windows, t);
        x = gni_scope_is_ok(s) ? gni_unsqueeze(s, x, 2) : NULL;
        gn_tensor *part = gni_binary(s, GN_OP_MULTIPLY, gni_of(x), gni_of(result));
        part = gni_scope_is_ok(s) ? gni_reduce(s, GN_REDUCE_SUM, part, 1U | 7U << 3, false) : NULL;
        parts[t] = gni_scope_is_ok(s) ? gni_unsqueeze(s, part, 2) : NULL;
    }
    return gni_scope_is_ok(s) ? gni_cat(s, (int)taps, parts, 2) : NULL;
}

static gn_tensor *weight_by_products(struct gni_scope *s, const struct gni_convolution *c,
                                     gn_tensor *image, gn_tensor *result)
{
    int64_t shape[NDIM], results = c->results / c->groups, places = product_of(c->result);
    int64_t inner = c->channels / c->groups * product_of(c->kernel);
    gn_dtype dtype = image->dtype;
    shape_set(shape, c->results, c->channels / c->groups, c->kernel);
    gn_tensor *made;
    if (c->channels == c->groups) {
        made = weight_by_taps(s, c, image, result);
    } else {
        gn_tensor *columns = columns_of(s, c, image);
        columns = gni_scope_is_ok(s) ? gni_permute(s, columns, (int[]){1, 0, 3, 2}) : NULL;
        if (gni_scope_is_ok(s))
            columns = gni_reshape(s, columns, 3, (int64_t[]){c->groups, c->images * places, inner});
        if (gni_scope_is_ok(s))
            result = gni_reshape(s, result, 4, (int64_t[]){c->images, c->groups, results, places});
        result = gni_scope_is_ok(s) ? gni_permute(s, result, (int[]){1, 2, 0, 3}) : NULL;
        if (gni_scope_is_ok(s))
            result = gni_reshape(s, result, 3, (int64_t[]){c->groups, results, c->images * places});
        made = gni_scope_is_ok(s) ? gni_matmul(s, result, columns) : NULL;
    }
    made = gni_scope_is_ok(s) ? gni_reshape(s, made, NDIM, shape) : NULL;
    return gni_scope_is_ok(s) ? gni_cast(s, made, dtype) : NULL;
}

/* ---- columns ------------------------------------------------------------------------------------- */

static gn_tensor *unfolded(struct gni_scope *s, const struct gni_convolution *c, gn_tensor *image)
{
    gn_tensor *windows = windows_of(s, c, padded(s, c, image));
    return gni_scope_is_ok(s)
               ? gni_reshape(s, windows, 3,
                             (int64_t[]){c->images, c->channels * product_of(c->kernel),
                                         product_of(c->result)})
               : NULL;
}

/* What each tap has read goes back to where it was, one tap after the other. */
static gn_tensor *folded(struct gni_scope *s, const struct gni_convolution *c, gn_tensor *columns)
{
    int64_t sizes[NDIM] = {c->images, c->channels}, taps = product_of(c->kernel);
    gn_dtype dtype = columns->dtype;
    for (int d = 0; d < DIMENSIONS; d++) {
        int64_t read = read_size(c, d), whole = c->padding[d] + c->image[d];
        sizes[2 + d] = read > whole ? read : whole;
    }
    gn_tensor *from = gni_wide(s, columns);
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_tensor *room = zeros(s, from->dtype, NDIM, sizes, from->device);
    gn_tensor *windows = windows_of(s, c, room);
    const int64_t *k = c->kernel, *o = c->result;
    if (gni_scope_is_ok(s))
        from = gni_reshape(s, from, 8,
                           (int64_t[]){c->images, c->channels, k[0], k[1], k[2], o[0], o[1], o[2]});
    for (int64_t t = 0; t < taps && gni_scope_is_ok(s); t++) {
        gn_tensor *to = tap_of(s, c, windows, t), *part = tap_of(s, c, from, t);
        if (gni_scope_is_ok(s))
            gni_assign(s, to, gni_of(gni_binary(s, GN_OP_ADD, gni_of(to), gni_of(part))));
    }
    for (int d = 0; d < DIMENSIONS && gni_scope_is_ok(s); d++)
        room = gni_narrow(s, room, 2 + d, c->padding[d], c->image[d]);
    if (!gni_scope_is_ok(s))
        return NULL;
    return from->dtype == dtype ? gni_clone(s, room) : gni_cast(s, room, dtype);
}

/* ---- the operation ------------------------------------------------------------------------------- */

/* The shape of what is made. */
static int shape_make(const struct gni_convolution *c, int64_t *shape)
{
    switch (c->kind) {
    case GNI_CONV_RESULT:
        shape_set(shape, c->images, c->results, c->result);
        return NDIM;
    case GNI_CONV_WEIGHT:
        shape_set(shape, c->results, c->channels / c->groups, c->kernel);
        return NDIM;
    case GNI_CONV_UNFOLD:
        shape[0] = c->images;
        shape[1] = c->channels * product_of(c->kernel);
        shape[2] = product_of(c->result);
        return 3;
    case GNI_CONV_IMAGE:
    case GNI_CONV_FOLD:
        break;
    }
    shape_set(shape, c->images, c->channels, c->image);
    return NDIM;
}

static gn_tensor *with_bias(struct gni_scope *s, gn_tensor *made, gn_tensor *bias)
{
    if (bias == NULL || !gni_scope_is_ok(s))
        return made;
    bias = gni_reshape(s, bias, 4, (int64_t[]){bias->count, 1, 1, 1});
    return gni_binary(s, GN_OP_ADD, gni_of(made), gni_of(bias));
}

/* By the backend's own loops: weights in the type that is computed in, and contiguous. */
static gn_tensor *by_backend(struct gni_scope *s, const struct gni_convolution *c, gn_tensor *first,
                             gn_tensor *second, gn_tensor *bias, const struct gni_shape *shape)
{
    gn_dtype computing = gni_dtypes[first->dtype].compute, dtype = first->dtype;
    gn_tensor *operands[] = {first, second, bias}, *whole = NULL;
    if (c->kind != GNI_CONV_WEIGHT) {
        second = gni_cast(s, second, computing);
        s->status = gni_scope_is_ok(s) ? gni_tensor_compact(second, &whole) : s->status;
        operands[1] = gni_scope_keep(s, s->status, whole);
    }
    for (int i = 0; i < 3 && gni_scope_is_ok(s); i++)
        if (operands[i] != NULL)
            s->status = gni_tensor_flush(operands[i]);
    gn_tensor *made = gni_empty(s, c->kind == GNI_CONV_WEIGHT ? computing : dtype, shape->ndim,
                                shape->sizes, first->device);
    if (gni_scope_is_ok(s))
        s->status = gni_backend_get(first->device)
                        ->convolve(c, operands[0], operands[1], operands[2], made);
    return gni_scope_is_ok(s) ? gni_cast(s, made, dtype) : NULL;
}

static gn_tensor *by_products(struct gni_scope *s, const struct gni_convolution *c,
                              gn_tensor *first, gn_tensor *second, gn_tensor *bias)
{
    switch (c->kind) {
    case GNI_CONV_RESULT:
        return with_bias(s, result_by_products(s, c, first, second), bias);
    case GNI_CONV_IMAGE:
        return with_bias(s, image_by_products(s, c, first, second), bias);
    case GNI_CONV_WEIGHT:
        return weight_by_products(s, c, first, second);
    case GNI_CONV_UNFOLD:
        return unfolded(s, c, first);
    case GNI_CONV_FOLD:
        break;
    }
    return folded(s, c, first);
}

static gn_tensor *convolve(struct gni_scope *s, const struct gni_convolution *c, gn_tensor *first,
                           gn_tensor *second, gn_tensor *bias)
{
    struct gni_shape shape = {0};
    int64_t count;
    shape.ndim = shape_make(c, shape.sizes);
    bool is_columns = c->kind == GNI_CONV_UNFOLD || c->kind == GNI_CONV_FOLD;
    int64_t padded_sizes[DIMENSIONS];
    for (int d = 0; d < DIMENSIONS; d++)
        padded_sizes[d] = c->image[d] + 2 * c->padding[d] + read_size(c, d);
    s->status = gni_shape_check(DIMENSIONS, padded_sizes, PADDED_BYTES, &count);
    if (!gni_scope_is_ok(s))
        return NULL;
    s->status = gni_shape_check(shape.ndim, shape.sizes, gni_dtype_size(first->dtype), &count);
    if (!gni_scope_is_ok(s))
        return NULL;
    if (count == 0 || first->count == 0 || (!is_columns && second->count == 0))
        return with_bias(s, zeros(s, first->dtype, shape.ndim, shape.sizes, first->device), bias);
    if (!is_columns && gni_backend_get(first->device)->convolve != NULL)
        return by_backend(s, c, first, second, bias, &shape);
    return by_products(s, c, first, second, bias);
}

static const char *name_of(enum gni_convolution_kind kind)
{
    static const char *const names[] = {
        [GNI_CONV_RESULT] = "convolution",
        [GNI_CONV_IMAGE] = "convolution_transposed",
        [GNI_CONV_WEIGHT] = "convolution_weight",
        [GNI_CONV_UNFOLD] = "unfold",
        [GNI_CONV_FOLD] = "fold",
    };
    return names[kind];
}

static gn_status convolve_taped(const struct gni_convolution *convolution, gn_tensor *first,
                                gn_tensor *second, gn_tensor *bias, gn_tensor **result)
{
    const gn_operand all[] = {{.tensor = first}, {.tensor = second}, {.tensor = bias}};
    int count = bias != NULL ? 3 : second != NULL ? 2 : 1;
    struct gni_scope s = {0};
    bool is_taped = gni_tape_enter_any(count, all);
    gn_tensor *made = convolve(&s, convolution, first, second, bias);
    gn_status status = gni_scope_end(&s, made, result);
    if (!is_taped)
        return status;
    return gni_tape_leave(status, &(struct gni_tape_step){.rule = GNI_RULE_CONVOLUTION,
                                                          .name = name_of(convolution->kind),
                                                          .input_count = count,
                                                          .inputs = all,
                                                          .result_count = 1,
                                                          .results = result,
                                                          .details = convolution,
                                                          .detail_bytes = sizeof *convolution});
}

gn_tensor *gni_scope_convolve(struct gni_scope *scope, const struct gni_convolution *convolution,
                              gn_tensor *first, gn_tensor *second, gn_tensor *bias)
{
    gn_tensor *made = NULL;
    if (!gni_scope_is_ok(scope))
        return NULL;
    gn_status status = convolve_taped(convolution, first, second, bias, &made);
    return gni_scope_keep(scope, status, made);
}
