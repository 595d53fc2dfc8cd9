/*
 * functions_nn_convolutions.c: genesis.nn.functional: convolutions, and what they are made of.
 *
 * A function checks its arguments and fills in a struct gni_convolution; the operations are in convolution.c.
 */
#include "ops/convolution.h"
#include "ops/functions.h"

#include <string.h>

enum {
    DIMENSIONS = GNI_CONV_DIMENSIONS,
};

/* One dimension of all that has three. */
static struct gni_convolution convolution_of(enum gni_convolution_kind kind)
{
    return (struct gni_convolution){.kind = kind,
                                    .image = {1, 1, 1},
                                    .kernel = {1, 1, 1},
                                    .result = {1, 1, 1},
                                    .stride = {1, 1, 1},
                                    .dilation = {1, 1, 1}};
}

/* ---- checks ------------------------------------------------------------------------------------ */

static void types_check(struct gni_scope *s, const char *function, const gn_tensor *input,
                        const gn_tensor *weight, const gn_tensor *bias)
{
    const gn_tensor *others[] = {weight, bias};
    static const char *const names[] = {"weight", "bias"};
    if (!gni_dtype_is_floating(input->dtype))
        gni_scope_fail(s, GN_ERROR_TYPE, "%s: the input is %s: convert it to a floating type",
                       function, gni_dtypes[input->dtype].name);
    for (int i = 0; i < 2; i++) {
        if (others[i] == NULL)
            continue;
        if (others[i]->dtype != input->dtype)
            gni_scope_fail(s, GN_ERROR_TYPE,
                           "%s: input type (%s) and %s type (%s) should be the same", function,
                           gni_dtypes[input->dtype].name, names[i],
                           gni_dtypes[others[i]->dtype].name);
        if (others[i]->device != input->device)
            gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                           "%s: the input is on %s and the %s on %s: move one with to()", function,
                           gni_device_label(input->device).text, names[i],
                           gni_device_label(others[i]->device).text);
    }
}

/* Dimensions of the input and of the weight, and the channels of both. */
static void shapes_check(struct gni_scope *s, const char *function, int count,
                         const gn_tensor *input, const gn_tensor *weight, int64_t groups,
                         bool is_transposed)
{
    if (input->ndim != count + 1 && input->ndim != count + 2)
        gni_scope_fail(
            s, GN_ERROR_SHAPE,
            "%s: expected %dD (unbatched) or %dD (batched) input, but got input of size %s",
            function, count + 1, count + 2, gni_shape_text(input->ndim, input->sizes).text);
    if (weight->ndim != count + 2)
        gni_scope_fail(s, GN_ERROR_SHAPE, "%s: the weight has shape %s: it needs %d dimensions",
                       function, gni_shape_text(weight->ndim, weight->sizes).text, count + 2);
    if (groups < 1)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "%s: groups is %lld: it must be from 1 on",
                       function, (long long)groups);
    if (!gni_scope_is_ok(s))
        return;
    int64_t channels = input->sizes[input->ndim - count - 1];
    int64_t expected = is_transposed ? weight->sizes[0] : weight->sizes[1] * groups;
    if (weight->sizes[0] % groups != 0)
        gni_scope_fail(
            s, GN_ERROR_SHAPE,
            "%s: given groups=%lld, expected weight to be divisible by %lld at dimension "
            "0, but got weight of size %s",
            function, (long long)groups, (long long)groups,
            gni_shape_text(weight->ndim, weight->sizes).text);
    if (channels != expected)
        gni_scope_fail(s, GN_ERROR_SHAPE,
                       "%s: given groups=%lld, weight of size %s, expected input %s to have %lld "
                       "channels, but got %lld channels instead",
                       function, (long long)groups,
                       gni_shape_text(weight->ndim, weight->sizes).text,
                       gni_shape_text(input->ndim, input->sizes).text, (long long)expected,
                       (long long)channels);
    for (int i = 2; i < count + 2; i++)
        if (weight->sizes[i] == 0)
            gni_scope_fail(s, GN_ERROR_SHAPE,
                           "%s: a kernel has elements, but the weight's size is %s", function,
                           gni_shape_text(weight->ndim, weight->sizes).text);
}

static void bias_check(struct gni_scope *s, const char *function, const gn_tensor *bias,
                       int64_t channels)
{
    if (bias != NULL && (bias->ndim != 1 || bias->sizes[0] != channels))
        gni_scope_fail(s, GN_ERROR_SHAPE,
                       "%s: expected bias to be 1-dimensional with %lld elements, but got bias of "
                       "size %s instead",
                       function, (long long)channels, gni_shape_text(bias->ndim, bias->sizes).text);
}

/* ---- convolutions ------------------------------------------------------------------------------ */

/* Padding as numbers or a word; what the results are then. */
static void result_sizes(struct gni_scope *s, const char *function, const gn_argument *padding,
                         int count, struct gni_convolution *c)
{
    bool is_same = false;
    if (padding->is_given && padding->count < 0) {
        is_same = strcmp(padding->text, "same") == 0;
        if (!is_same && strcmp(padding->text, "valid") != 0)
            gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                           "%s: padding is '%s': as a word it is 'same' or 'valid'", function,
                           padding->text);
    } else {
        gni_window_sizes(s, function, "padding", padding, count, 0, c->padding);
    }
    for (int d = DIMENSIONS - count; d < DIMENSIONS && gni_scope_is_ok(s); d++) {
        int64_t more = c->dilation[d] * (c->kernel[d] - 1);
        if (is_same && c->stride[d] != 1)
            gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                           "%s: padding='same' is not supported for strided convolutions",
                           function);
        if (is_same)
            c->padding[d] = more / 2;
        c->result[d] = is_same ? c->image[d]
                               : gni_window_count(c->image[d], c->kernel[d], c->stride[d],
                                                  c->padding[d], c->dilation[d], false);
        if (c->result[d] <= 0 && !(is_same && c->image[d] == 0))
            gni_scope_fail(
                s, GN_ERROR_SHAPE,
                "%s: padded input size per channel: %lld. Kernel size: %lld. Kernel size "
                "can't be greater than actual input size",
                function, (long long)(c->image[d] + 2 * c->padding[d]), (long long)(more + 1));
    }
}

/* input, weight, bias, stride, padding, dilation, groups */
static gn_status convolve(const char *function, int count, const gn_argument *a,
                          gn_results *results)
{
    struct gni_scope s = {0};
    struct gni_convolution c = convolution_of(GNI_CONV_RESULT);
    gn_tensor *input = a[0].operand.tensor, *weight = a[1].operand.tensor;
    gn_tensor *bias = a[2].is_given ? a[2].operand.tensor : NULL;
    bool has_images = input->ndim == count + 2;
    c.groups = a[6].operand.scalar.integer;
    types_check(&s, function, input, weight, bias);
    shapes_check(&s, function, count, input, weight, c.groups, false);
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    bias_check(&s, function, bias, weight->sizes[0]);
    c.images = has_images ? input->sizes[0] : 1;
    c.channels = weight->sizes[1] * c.groups;
    c.results = weight->sizes[0];
    for (int i = 0; i < count; i++) {
        c.image[DIMENSIONS - count + i] = input->sizes[input->ndim - count + i];
        c.kernel[DIMENSIONS - count + i] = weight->sizes[2 + i];
    }
    gni_window_sizes(&s, function, "stride", &a[3], count, 1, c.stride);
    gni_window_sizes(&s, function, "dilation", &a[5], count, 1, c.dilation);
    result_sizes(&s, function, &a[4], count, &c);
    gn_tensor *x = gni_image_widen(&s, input, count), *w = gni_image_widen(&s, weight, count);
    gn_tensor *made = gni_scope_convolve(&s, &c, x, w, bias);
    return gni_scope_give(&s, gni_image_narrow(&s, made, count, has_images), results);
}

static gn_status conv1d_call(const gn_argument *a, gn_results *results)
{
    return convolve("conv1d", 1, a, results);
}

static gn_status conv2d_call(const gn_argument *a, gn_results *results)
{
    return convolve("conv2d", 2, a, results);
}

static gn_status conv3d_call(const gn_argument *a, gn_results *results)
{
    return convolve("conv3d", 3, a, results);
}

/* What a transposed convolution gives: as large as the smallest image that a convolution makes its input of, and more. */
static void image_sizes(struct gni_scope *s, const char *function, const gn_argument *more,
                        int count, struct gni_convolution *c)
{
    int64_t added[DIMENSIONS] = {0};
    gni_window_sizes(s, function, "output_padding", more, count, 0, added);
    for (int d = DIMENSIONS - count; d < DIMENSIONS && gni_scope_is_ok(s); d++) {
        if (added[d] >= c->stride[d] && added[d] >= c->dilation[d])
            gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                           "%s: output padding must be smaller than either stride or dilation, but "
                           "it is %lld, of stride %lld and dilation %lld",
                           function, (long long)added[d], (long long)c->stride[d],
                           (long long)c->dilation[d]);
        c->image[d] = (c->result[d] - 1) * c->stride[d] - 2 * c->padding[d] +
                      c->dilation[d] * (c->kernel[d] - 1) + added[d] + 1;
        if (c->image[d] < 0 || c->result[d] == 0)
            gni_scope_fail(s, GN_ERROR_SHAPE,
                           "%s: given input size per channel: %lld. Calculated output size per "
                           "channel: %lld. Output size is too small",
                           function, (long long)c->result[d], (long long)c->image[d]);
    }
}

/* input, weight, bias, stride, padding, output_padding, groups, dilation */
static gn_status transpose(const char *function, int count, const gn_argument *a,
                           gn_results *results)
{
    struct gni_scope s = {0};
    struct gni_convolution c = convolution_of(GNI_CONV_IMAGE);
    gn_tensor *input = a[0].operand.tensor, *weight = a[1].operand.tensor;
    gn_tensor *bias = a[2].is_given ? a[2].operand.tensor : NULL;
    bool has_images = input->ndim == count + 2;
    c.groups = a[6].operand.scalar.integer;
    types_check(&s, function, input, weight, bias);
    shapes_check(&s, function, count, input, weight, c.groups, true);
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    bias_check(&s, function, bias, weight->sizes[1] * c.groups);
    c.images = has_images ? input->sizes[0] : 1;
    c.channels = weight->sizes[1] * c.groups;
    c.results = weight->sizes[0];
    for (int i = 0; i < count; i++) {
        c.result[DIMENSIONS - count + i] = input->sizes[input->ndim - count + i];
        c.kernel[DIMENSIONS - count + i] = weight->sizes[2 + i];
    }
    gni_window_sizes(&s, function, "stride", &a[3], count, 1, c.stride);
    gni_window_sizes(&s, function, "padding", &a[4], count, 0, c.padding);
    gni_window_sizes(&s, function, "dilation", &a[7], count, 1, c.dilation);
    image_sizes(&s, function, &a[5], count, &c);
    gn_tensor *x = gni_image_widen(&s, input, count), *w = gni_image_widen(&s, weight, count);
    gn_tensor *made = gni_scope_convolve(&s, &c, x, w, bias);
    return gni_scope_give(&s, gni_image_narrow(&s, made, count, has_images), results);
}

static gn_status conv_transpose1d_call(const gn_argument *a, gn_results *results)
{
    return transpose("conv_transpose1d", 1, a, results);
}

static gn_status conv_transpose2d_call(const gn_argument *a, gn_results *results)
{
    return transpose("conv_transpose2d", 2, a, results);
}

static gn_status conv_transpose3d_call(const gn_argument *a, gn_results *results)
{
    return transpose("conv_transpose3d", 3, a, results);
}

/* ---- columns ----------------------------------------------------------------------------------- */

/* kernel_size, dilation, padding, stride; the windows of an image of two dimensions. */
static void windows_take(struct gni_scope *s, const char *function, const gn_argument *a,
                         struct gni_convolution *c)
{
    gni_window_sizes(s, function, "kernel_size", &a[0], 2, 1, c->kernel);
    gni_window_sizes(s, function, "dilation", &a[1], 2, 1, c->dilation);
    gni_window_sizes(s, function, "padding", &a[2], 2, 0, c->padding);
    gni_window_sizes(s, function, "stride", &a[3], 2, 1, c->stride);
    for (int d = 1; d < DIMENSIONS && gni_scope_is_ok(s); d++) {
        c->result[d] = gni_window_count(c->image[d], c->kernel[d], c->stride[d], c->padding[d],
                                        c->dilation[d], false);
        if (c->result[d] <= 0)
            gni_scope_fail(s, GN_ERROR_SHAPE,
                           "%s: a window of %lld does not fit a padded dimension of %lld", function,
                           (long long)(c->dilation[d] * (c->kernel[d] - 1) + 1),
                           (long long)(c->image[d] + 2 * c->padding[d]));
    }
}

static gn_status unfold_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    struct gni_convolution c = convolution_of(GNI_CONV_UNFOLD);
    gn_tensor *input = a[0].operand.tensor;
    if (input->ndim != 3 && input->ndim != 4)
        gni_scope_fail(&s, GN_ERROR_SHAPE,
                       "unfold: expected 3D or 4D input, but got input of size %s",
                       gni_shape_text(input->ndim, input->sizes).text);
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    c.images = input->ndim == 4 ? input->sizes[0] : 1;
    c.channels = input->sizes[input->ndim - 3];
    c.image[1] = input->sizes[input->ndim - 2];
    c.image[2] = input->sizes[input->ndim - 1];
    windows_take(&s, "unfold", a + 1, &c);
    gn_tensor *made = gni_scope_convolve(&s, &c, gni_image_widen(&s, input, 2), NULL, NULL);
    if (input->ndim == 3 && gni_scope_is_ok(&s))
        made = gni_squeeze(&s, made, 0);
    return gni_scope_give(&s, made, results);
}

static gn_status fold_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    struct gni_convolution c = convolution_of(GNI_CONV_FOLD);
    gn_tensor *input = a[0].operand.tensor;
    if (input->ndim != 2 && input->ndim != 3)
        gni_scope_fail(&s, GN_ERROR_SHAPE,
                       "fold: expected 2D or 3D input, but got input of size %s",
                       gni_shape_text(input->ndim, input->sizes).text);
    gni_window_sizes(&s, "fold", "output_size", &a[1], 2, 1, c.image);
    windows_take(&s, "fold", a + 2, &c);
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    int64_t rows = input->sizes[input->ndim - 2], taps = c.kernel[1] * c.kernel[2];
    int64_t places = c.result[1] * c.result[2];
    if (rows % taps != 0)
        gni_scope_fail(&s, GN_ERROR_SHAPE,
                       "fold: %lld rows are no multiple of the %lld elements of a window",
                       (long long)rows, (long long)taps);
    if (input->sizes[input->ndim - 1] != places)
        gni_scope_fail(&s, GN_ERROR_SHAPE,
                       "fold: the input has %lld columns, and there are %lld windows",
                       (long long)input->sizes[input->ndim - 1], (long long)places);
    c.images = input->ndim == 3 ? input->sizes[0] : 1;
    c.channels = rows / taps;
    gn_tensor *columns = input;
    if (input->ndim == 2 && gni_scope_is_ok(&s))
        columns = gni_unsqueeze(&s, input, 0);
    gn_tensor *made = gni_scope_convolve(&s, &c, columns, NULL, NULL);
    return gni_scope_give(&s, gni_image_narrow(&s, made, 2, input->ndim == 3), results);
}

/* ---- the table --------------------------------------------------------------------------------- */

#define CONVOLUTION                                                           \
    "input: Tensor, weight: Tensor, bias: Tensor = None, stride: sizes = 1, " \
    "padding: sizes|text = 0, dilation: sizes = 1, groups: int = 1"
#define TRANSPOSED                                                            \
    "input: Tensor, weight: Tensor, bias: Tensor = None, stride: sizes = 1, " \
    "padding: sizes = 0, output_padding: sizes = 0, groups: int = 1, dilation: sizes = 1"
#define WINDOWS "kernel_size: sizes, dilation: sizes = 1, padding: sizes = 0, stride: sizes = 1"

const gn_function gni_functions_nn_convolutions[] = {
    {"nn.conv1d", NULL, CONVOLUTION, GN_FORM_BLAS, conv1d_call,
     "The convolution of (images, channels, length), or of one image, with (results, channels / "
     "groups, taps). `padding` is a number, 'valid' (none), or 'same', which keeps the length.",
     ">>> x = genesis.tensor([[[1.0, 2.0, 3.0, 4.0]]])\n"
     ">>> genesis.nn.functional.conv1d(x, genesis.ones(1, 1, 2)).tolist()\n"
     "[[[3.0, 5.0, 7.0]]]"},
    {"nn.conv2d", NULL, CONVOLUTION, GN_FORM_BLAS, conv2d_call,
     "The convolution of (images, channels, height, width), or of one image, with (results, "
     "channels "
     "/ groups, height, width). `padding` is numbers, 'valid' (none), or 'same', which keeps the "
     "size.",
     ">>> x = genesis.ones(1, 1, 3, 3)\n"
     ">>> genesis.nn.functional.conv2d(x, genesis.ones(1, 1, 3, 3), padding=1)[0, 0].tolist()\n"
     "[[4.0, 6.0, 4.0], [6.0, 9.0, 6.0], [4.0, 6.0, 4.0]]"},
    {"nn.conv3d", NULL, CONVOLUTION, GN_FORM_BLAS, conv3d_call,
     "The convolution of (images, channels, depth, height, width), or of one image, with (results, "
     "channels / groups, depth, height, width).",
     ">>> x = genesis.ones(1, 1, 2, 2, 2)\n"
     ">>> genesis.nn.functional.conv3d(x, genesis.ones(1, 1, 2, 2, 2)).tolist()\n"
     "[[[[[8.0]]]]]"},
    {"nn.conv_transpose1d", NULL, TRANSPOSED, GN_FORM_BLAS, conv_transpose1d_call,
     "The transposed convolution of (images, channels, length), or of one image, with (channels, "
     "results / groups, taps): what the gradient of conv1d by its input computes.",
     ">>> x = genesis.tensor([[[1.0, 2.0]]])\n"
     ">>> genesis.nn.functional.conv_transpose1d(x, genesis.ones(1, 1, 2), stride=2).tolist()\n"
     "[[[1.0, 1.0, 2.0, 2.0]]]"},
    {"nn.conv_transpose2d", NULL, TRANSPOSED, GN_FORM_BLAS, conv_transpose2d_call,
     "The transposed convolution of (images, channels, height, width), or of one image, with "
     "(channels, results / groups, height, width).",
     ">>> x = genesis.ones(1, 1, 2, 2)\n"
     ">>> genesis.nn.functional.conv_transpose2d(x, genesis.ones(1, 1, 2, 2))[0, 0].tolist()\n"
     "[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]"},
    {"nn.conv_transpose3d", NULL, TRANSPOSED, GN_FORM_BLAS, conv_transpose3d_call,
     "The transposed convolution of (images, channels, depth, height, width), or of one image, "
     "with "
     "(channels, results / groups, depth, height, width).",
     ">>> x = genesis.ones(1, 1, 1, 1, 2)\n"
     ">>> genesis.nn.functional.conv_transpose3d(x, genesis.ones(1, 1, 1, 1, 2)).tolist()\n"
     "[[[[[1.0, 2.0, 1.0]]]]]"},
    {"nn.unfold", NULL, "input: Tensor, " WINDOWS, 0, unfold_call,
     "The windows of (images, channels, height, width), or of one image, as columns: (images, "
     "channels times elements of a window, windows).",
     ">>> x = genesis.tensor([[[1.0, 2.0], [3.0, 4.0]]])\n"
     ">>> genesis.nn.functional.unfold(x, (1, 2)).tolist()\n"
     "[[1.0, 3.0], [2.0, 4.0]]"},
    {"nn.fold", NULL, "input: Tensor, output_size: sizes, " WINDOWS, 0, fold_call,
     "The columns of unfold() back where they were; what overlaps is summed.",
     ">>> x = genesis.tensor([[1.0, 3.0], [2.0, 4.0]])\n"
     ">>> genesis.nn.functional.fold(x, (2, 2), (1, 2)).tolist()\n"
     "[[[1.0, 2.0], [3.0, 4.0]]]"},
    {0},
};
