/*
 * functions_nn_pooling.c: genesis.nn.functional: pooling.
 *
 * Sums of windows are convolutions with weights of 1 (convolution.h); the largest elements are max_pool.h. A function sees its
 * input as images of one channel: a row for each channel of each image.
 */
#include "ops/convolution.h"
#include "ops/functions.h"
#include "ops/max_pool.h"
#include "ops/pooling.h"

#include <string.h>

enum {
    DIMENSIONS = GNI_CONV_DIMENSIONS,
};

/* An input, and what is made of it. */
struct images {
    const char *function;
    int count; /* of dimensions behind the channels */
    gn_tensor *input;
    int64_t rows;
    int64_t image[DIMENSIONS], result[DIMENSIONS];
};

static struct images images_of(struct gni_scope *s, const char *function, int count,
                               gn_tensor *input)
{
    struct images images = {function, count, input, 1, {1, 1, 1}, {1, 1, 1}};
    if (input->ndim != count + 1 && input->ndim != count + 2) {
        gni_scope_fail(s, GN_ERROR_SHAPE, "%s: expected %dD or %dD input, but got input of size %s",
                       function, count + 1, count + 2,
                       gni_shape_text(input->ndim, input->sizes).text);
        return images;
    }
    for (int i = 0; i < input->ndim - count; i++)
        images.rows *= input->sizes[i];
    for (int i = 0; i < count; i++) {
        images.image[DIMENSIONS - count + i] = input->sizes[input->ndim - count + i];
        if (input->sizes[input->ndim - count + i] == 0)
            gni_scope_fail(s, GN_ERROR_SHAPE, "%s: images have no elements: the input's size is %s",
                           function, gni_shape_text(input->ndim, input->sizes).text);
    }
    return images;
}

static int64_t elements_of(const int64_t *sizes)
{
    return sizes[0] * sizes[1] * sizes[2];
}

/* Rows of results in the shape of the input. */
static gn_tensor *shaped(struct gni_scope *s, const struct images *images, gn_tensor *made)
{
    int64_t sizes[GN_DIMENSIONS_MAX];
    int ndim = images->input->ndim;
    if (!gni_scope_is_ok(s))
        return NULL;
    memcpy(sizes, images->input->sizes, (size_t)ndim * sizeof *sizes);
    for (int i = 0; i < images->count; i++)
        sizes[ndim - images->count + i] = images->result[DIMENSIONS - images->count + i];
    return gni_reshape_values(s, made, ndim, sizes);
}

/* kernel_size, stride, padding, dilation (NULL: 1), ceil_mode: what windows there are. */
static void windows_take(struct gni_scope *s, struct images *images, const gn_argument *kernel,
                         const gn_argument *stride, const gn_argument *padding,
                         const gn_argument *dilation, bool is_ceil, struct gni_pool *pool)
{
    const char *function = images->function;
    int count = images->count;
    *pool = (struct gni_pool){
        .rows = images->rows, .kernel = {1, 1, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
    gni_window_sizes(s, function, "kernel_size", kernel, count, 1, pool->kernel);
    memcpy(pool->stride, pool->kernel, sizeof pool->stride);
    if (stride->count > 0 || stride->integers == NULL) /* (): that of the kernel */
        gni_window_sizes(s, function, "stride", stride, count, 1, pool->stride);
    if (padding != NULL)
        gni_window_sizes(s, function, "padding", padding, count, 0, pool->padding);
    if (dilation != NULL)
        gni_window_sizes(s, function, "dilation", dilation, count, 1, pool->dilation);
    memcpy(pool->image, images->image, sizeof pool->image);
    for (int d = 0; d < DIMENSIONS && gni_scope_is_ok(s); d++) {
        int64_t window = pool->dilation[d] * (pool->kernel[d] - 1) + 1;
        if (pool->padding[d] > window / 2)
            gni_scope_fail(
                s, GN_ERROR_INVALID_VALUE,
                "%s: pad should be at most half of effective kernel size, but it is %lld "
                "of %lld",
                function, (long long)pool->padding[d], (long long)window);
        int64_t places = gni_window_count(pool->image[d], pool->kernel[d], pool->stride[d],
                                          pool->padding[d], pool->dilation[d], is_ceil);
        pool->result[d] = images->result[d] = places;
        if (places <= 0) {
            gni_scope_fail(s, GN_ERROR_SHAPE,
                           "%s: given input size %lld. Calculated output size: 0. Output size is "
                           "too small: a window has %lld elements",
                           function, (long long)pool->image[d], (long long)window);
            return;
        }
        struct gni_pool_window first = gni_pool_window(pool, d, 0);
        if (dilation != NULL && first.start >= first.end)
            gni_scope_fail(s, GN_ERROR_SHAPE, "%s: a window has no elements but padding", function);
    }
}

/* ---- the largest elements ------------------------------------------------------------------------ */

/* Ends the call. */
static gn_status maximum_give(struct gni_scope *s, const struct images *images,
                              const struct gni_pool *pool, bool has_indices, gn_results *results)
{
    gn_tensor *values = NULL, *indices = NULL, *matrix = NULL;
    if (gni_scope_is_ok(s) && images->input->dtype == GN_BOOL)
        gni_scope_fail(s, GN_ERROR_TYPE, "%s is not defined for bool", images->function);
    if (gni_scope_is_ok(s))
        matrix =
            gni_reshape(s, images->input, 2, (int64_t[]){images->rows, elements_of(images->image)});
    if (matrix != NULL) {
        s->status = gni_pool_maximum(pool, matrix, &values, has_indices ? &indices : NULL);
        values = gni_scope_keep(s, s->status, values);
        indices = has_indices ? gni_scope_keep(s, s->status, indices) : NULL;
    }
    values = shaped(s, images, values);
    if (!has_indices)
        return gni_scope_give(s, values, results);
    results->is_tuple = true;
    return gni_scope_give_pair(s, values, shaped(s, images, indices), results);
}

/* input, kernel_size, stride, padding, dilation, ceil_mode, return_indices */
static gn_status max_pool(const char *function, int count, const gn_argument *a,
                          gn_results *results)
{
    struct gni_scope s = {0};
    struct gni_pool pool;
    struct images images = images_of(&s, function, count, a[0].operand.tensor);
    windows_take(&s, &images, &a[1], &a[2], &a[3], &a[4], gni_is_set(&a[5]), &pool);
    return maximum_give(&s, &images, &pool, gni_is_set(&a[6]), results);
}

/* What an adaptive function gives: `output_size` in each dimension; None is the size of the image. */
static void parts_take(struct gni_scope *s, struct images *images, const gn_argument *sizes)
{
    gn_argument known = *sizes;
    int64_t numbers[DIMENSIONS];
    if (sizes->count == images->count && sizes->integers != NULL) {
        const int64_t *image = images->image + DIMENSIONS - images->count;
        for (int i = 0; i < images->count; i++)
            numbers[i] = sizes->integers[i] == GN_SIZE_NONE ? image[i] : sizes->integers[i];
        known.integers = numbers;
    }
    gni_window_sizes(s, images->function, "output_size", &known, images->count, 1, images->result);
}

static gn_status adaptive_max_pool(const char *function, int count, const gn_argument *a,
                                   gn_results *results)
{
    struct gni_scope s = {0};
    struct images images = images_of(&s, function, count, a[0].operand.tensor);
    parts_take(&s, &images, &a[1]);
    struct gni_pool pool = {.rows = images.rows, .is_adaptive = true};
    memcpy(pool.image, images.image, sizeof pool.image);
    memcpy(pool.result, images.result, sizeof pool.result);
    return maximum_give(&s, &images, &pool, gni_is_set(&a[2]), results);
}

/* ---- means --------------------------------------------------------------------------------------- */

/* How many elements windows along one dimension have, as a tensor that broadcasts with rows of results. */
static gn_tensor *counts_along(struct gni_scope *s, const struct gni_pool *pool, int d,
                               bool has_padding, gn_dtype dtype, gn_device *device)
{
    int64_t sizes[] = {1, 1, 1, 1, 1}, padding = has_padding ? pool->padding[d] : 0;
    sizes[2 + d] = pool->result[d];
    gn_tensor *places = gni_arange(s, pool->result[d], device);
    gn_tensor *start = gni_binary(s, GN_OP_MULTIPLY, gni_of(places), gni_integer(pool->stride[d]));
    start = gni_binary(s, GN_OP_SUBTRACT, gni_of(start), gni_integer(pool->padding[d]));
    gn_tensor *end = gni_binary(s, GN_OP_ADD, gni_of(start), gni_integer(pool->kernel[d]));
    end = gni_binary(s, GN_OP_MINIMUM, gni_of(end), gni_integer(pool->image[d] + padding));
    start = gni_binary(s, GN_OP_MAXIMUM, gni_of(start), gni_integer(-padding));
    gn_tensor *counts = gni_binary(s, GN_OP_SUBTRACT, gni_of(end), gni_of(start));
    counts = gni_scope_is_ok(s) ? gni_cast(s, counts, dtype) : NULL;
    return gni_scope_is_ok(s) ? gni_reshape_values(s, counts, 5, sizes) : NULL;
}

/* Whether all windows along a dimension have as many elements. */
static bool is_even(const struct gni_pool *pool, int d, bool has_padding)
{
    bool is_in = (pool->result[d] - 1) * pool->stride[d] + pool->kernel[d] <=
                 pool->image[d] + 2 * pool->padding[d];
    return is_in && (has_padding || pool->padding[d] == 0);
}

/* The sums of windows, (rows, 1, depth, height, width), of a floating tensor. */
static gn_tensor *sums_of(struct gni_scope *s, const struct gni_pool *pool, gn_tensor *input)
{
    struct gni_convolution c = {.kind = GNI_CONV_RESULT,
                                .images = pool->rows,
                                .channels = 1,
                                .results = 1,
                                .groups = 1,
                                .dilation = {1, 1, 1}};
    memcpy(c.image, pool->image, sizeof c.image);
    memcpy(c.kernel, pool->kernel, sizeof c.kernel);
    memcpy(c.result, pool->result, sizeof c.result);
    memcpy(c.stride, pool->stride, sizeof c.stride);
    memcpy(c.padding, pool->padding, sizeof c.padding);
    if (!gni_scope_is_ok(s))
        return NULL;
    gn_scalar one = {.kind = GN_INT64, .integer = 1};
    gn_tensor *ones =
        gni_full(s, one, input->dtype, 5, (int64_t[]){1, 1, c.kernel[0], c.kernel[1], c.kernel[2]},
                 input->device);
    gn_tensor *wide =
        gni_reshape(s, input, 5, (int64_t[]){c.images, 1, c.image[0], c.image[1], c.image[2]});
    return gni_scope_convolve(s, &c, wide, ones, NULL);
}

/* Means; `divisor`: 0, or what sums are divided by. */
static gn_tensor *means_of(struct gni_scope *s, const struct gni_pool *pool, gn_tensor *input,
                           bool has_padding, int64_t divisor)
{
    gn_tensor *wide = gni_scope_is_ok(s) ? gni_wide(s, input) : NULL;
    gn_tensor *made = gni_scope_is_ok(s) ? sums_of(s, pool, wide) : NULL;
    int64_t even = divisor != 0 ? divisor : 1;
    gn_tensor *counts = NULL;
    for (int d = 0; d < DIMENSIONS && divisor == 0 && gni_scope_is_ok(s); d++) {
        if (is_even(pool, d, has_padding)) {
            even *= pool->kernel[d];
            continue;
        }
        gn_tensor *along = counts_along(s, pool, d, has_padding, made->dtype, made->device);
        counts =
            counts == NULL ? along : gni_binary(s, GN_OP_MULTIPLY, gni_of(counts), gni_of(along));
    }
    if (counts != NULL)
        counts = gni_binary(s, GN_OP_MULTIPLY, gni_of(counts), gni_integer(even));
    made = gni_binary(s, GN_OP_DIVIDE, gni_of(made),
                      counts != NULL ? gni_of(counts) : gni_integer(even));
    return gni_scope_is_ok(s) ? gni_cast(s, made, input->dtype) : NULL;
}

static void floating_check(struct gni_scope *s, const struct images *images)
{
    if (gni_scope_is_ok(s) && !gni_dtype_is_floating(images->input->dtype))
        gni_scope_fail(s, GN_ERROR_TYPE, "%s: the input is %s: convert it to a floating type",
                       images->function, gni_dtypes[images->input->dtype].name);
}

/* input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override */
static gn_status avg_pool(const char *function, int count, const gn_argument *a,
                          gn_results *results)
{
    struct gni_scope s = {0};
    struct gni_pool pool;
    struct images images = images_of(&s, function, count, a[0].operand.tensor);
    int64_t divisor = count > 1 && a[6].is_given ? a[6].operand.scalar.integer : 0;
    if (count > 1 && a[6].is_given && divisor == 0)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "%s: divisor must be not zero", function);
    floating_check(&s, &images);
    windows_take(&s, &images, &a[1], &a[2], &a[3], NULL, gni_is_set(&a[4]), &pool);
    gn_tensor *made = means_of(&s, &pool, images.input, gni_is_set(&a[5]), divisor);
    return gni_scope_give(&s, shaped(&s, &images, made), results);
}

/* ---- means of parts -------------------------------------------------------------------------------- */

/* A dimension as parts of nearly one size, which may overlap: the mean of each. */
static gn_tensor *parts_mean(struct gni_scope *s, gn_tensor *x, int dim, int64_t parts)
{
    int64_t size = x->sizes[dim], longest = (size + parts - 1) / parts + (size % parts != 0);
    int64_t sizes[GN_DIMENSIONS_MAX];
    gn_tensor *places = gni_arange(s, parts, x->device), *taps = gni_arange(s, longest, x->device);
    places = gni_scope_is_ok(s) ? gni_unsqueeze(s, places, 1) : NULL;
    gn_tensor *scaled = gni_binary(s, GN_OP_MULTIPLY, gni_of(places), gni_integer(size));
    gn_tensor *start = gni_binary(s, GN_OP_FLOOR_DIVIDE, gni_of(scaled), gni_integer(parts));
    gn_tensor *end = gni_binary(s, GN_OP_ADD, gni_of(scaled), gni_integer(size + parts - 1));
    end = gni_binary(s, GN_OP_FLOOR_DIVIDE, gni_of(end), gni_integer(parts));
    gn_tensor *all = gni_binary(s, GN_OP_ADD, gni_of(start), gni_of(taps));
    gn_tensor *is_in = gni_binary(s, GN_OP_LESS, gni_of(all), gni_of(end));
    all = gni_scope_is_ok(s) ? gni_where(s, is_in, gni_of(all), gni_of(start)) : NULL;
    all = gni_scope_is_ok(s) ? gni_reshape(s, all, 1, &all->count) : NULL;
    gn_tensor *taken = gni_index_select(s, x, dim, all);
    if (!gni_scope_is_ok(s))
        return NULL;
    for (int i = 0; i <= x->ndim; i++)
        sizes[i] = i < dim        ? x->sizes[i]
                   : i == dim     ? parts
                   : i == dim + 1 ? longest
                                  : x->sizes[i - 1];
    taken = gni_reshape(s, taken, x->ndim + 1, sizes);
    for (int i = 0; i <= x->ndim; i++)
        sizes[i] = i == dim ? parts : i == dim + 1 ? longest : 1;
    is_in = gni_reshape(s, is_in, x->ndim + 1, sizes);
    gn_tensor *own = gni_scope_is_ok(s) ? gni_where(s, is_in, gni_of(taken), gni_integer(0)) : NULL;
    gn_tensor *sum = gni_scope_is_ok(s)
                         ? gni_reduce(s, GN_REDUCE_SUM, own, UINT32_C(1) << (dim + 1), false)
                         : NULL;
    gn_tensor *counts = gni_binary(s, GN_OP_SUBTRACT, gni_of(end), gni_of(start));
    for (int i = 0; i < x->ndim; i++)
        sizes[i] = i == dim ? parts : 1;
    counts = gni_scope_is_ok(s) ? gni_reshape(s, counts, x->ndim, sizes) : NULL;
    return gni_binary(s, GN_OP_DIVIDE, gni_of(sum), gni_of(counts));
}

gn_tensor *gni_adaptive_mean(struct gni_scope *s, gn_tensor *input, int count,
                             const int64_t *result)
{
    bool is_one = true, is_even_all = true;
    struct gni_pool pool = {.rows = 1, .image = {1, 1, 1}};
    uint32_t dims = 0;
    int first = input->ndim - count;
    for (int i = 0; i < first; i++)
        pool.rows *= input->sizes[i];
    for (int d = 0; d < DIMENSIONS; d++) {
        int dim = first + d - (DIMENSIONS - count);
        pool.image[d] = dim >= first ? input->sizes[dim] : 1;
        pool.result[d] = result[d];
        pool.kernel[d] = pool.stride[d] = pool.image[d] / result[d];
        is_one &= result[d] == 1;
        is_even_all &= pool.image[d] % result[d] == 0;
        if (dim >= first)
            dims |= UINT32_C(1) << dim;
    }
    if (is_one)
        return gni_reduce(s, GN_REDUCE_MEAN, input, dims, true);
    if (is_even_all)
        return means_of(s, &pool, input, true, 0);
    gn_tensor *made = gni_wide(s, input);
    for (int d = DIMENSIONS - count; d < DIMENSIONS && gni_scope_is_ok(s); d++)
        made = parts_mean(s, made, first + d - (DIMENSIONS - count), result[d]);
    return gni_scope_is_ok(s) ? gni_cast(s, made, input->dtype) : NULL;
}

static gn_status adaptive_avg_pool(const char *function, int count, const gn_argument *a,
                                   gn_results *results)
{
    struct gni_scope s = {0};
    struct images images = images_of(&s, function, count, a[0].operand.tensor);
    parts_take(&s, &images, &a[1]);
    floating_check(&s, &images);
    gn_tensor *made =
        gni_scope_is_ok(&s) ? gni_adaptive_mean(&s, images.input, count, images.result) : NULL;
    return gni_scope_give(&s, shaped(&s, &images, made), results);
}

/* ---- norms, and the way back --------------------------------------------------------------------------- */

/* input, norm_type, kernel_size, stride, ceil_mode: sum(x ** p) ** (1 / p) */
static gn_status lp_pool(const char *function, int count, const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    struct gni_pool pool;
    struct images images = images_of(&s, function, count, a[0].operand.tensor);
    gn_operand power = gni_floating(gni_scalar_double(a[1].operand.scalar));
    if (power.scalar.floating == 0)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "%s: norm_type must not be 0", function);
    floating_check(&s, &images);
    windows_take(&s, &images, &a[2], &a[3], NULL, NULL, gni_is_set(&a[4]), &pool);
    gn_tensor *wide = gni_scope_is_ok(&s) ? gni_wide(&s, images.input) : NULL;
    gn_tensor *powers = gni_binary(&s, GN_OP_POWER, gni_of(wide), power);
    gn_tensor *means = gni_scope_is_ok(&s) ? means_of(&s, &pool, powers, true, 0) : NULL;
    gn_tensor *sums =
        gni_binary(&s, GN_OP_MULTIPLY, gni_of(means), gni_integer(elements_of(pool.kernel)));
    gn_tensor *sign = gni_scope_is_ok(&s) ? gni_unary(&s, GN_OP_SIGN, sums) : NULL;
    sums = gni_scope_is_ok(&s) ? gni_unary(&s, GN_OP_ABSOLUTE, sums) : NULL;
    sums =
        gni_scope_is_ok(&s) ? gni_unary(&s, GN_OP_RELU, sums) : NULL; /* its gradient at 0 is 0 */
    sums = gni_binary(&s, GN_OP_MULTIPLY, gni_of(sign), gni_of(sums));
    gn_tensor *made =
        gni_binary(&s, GN_OP_POWER, gni_of(sums), gni_floating(1 / power.scalar.floating));
    made = gni_scope_is_ok(&s) ? gni_cast(&s, made, images.input->dtype) : NULL;
    return gni_scope_give(&s, shaped(&s, &images, made), results);
}

/* The sizes that max_unpool gives: those that are asked for, or the smallest that the windows need. */
static void unpooled_sizes(struct gni_scope *s, struct images *images, const gn_argument *a)
{
    int64_t kernel[DIMENSIONS] = {1, 1, 1}, stride[DIMENSIONS], padding[DIMENSIONS] = {0};
    gni_window_sizes(s, images->function, "kernel_size", &a[2], images->count, 1, kernel);
    memcpy(stride, kernel, sizeof stride);
    if (a[3].count > 0)
        gni_window_sizes(s, images->function, "stride", &a[3], images->count, 1, stride);
    gni_window_sizes(s, images->function, "padding", &a[4], images->count, 0, padding);
    for (int d = 0; d < DIMENSIONS && gni_scope_is_ok(s); d++)
        images->result[d] = (images->image[d] - 1) * stride[d] - 2 * padding[d] + kernel[d];
    int extra = a[5].count - images->count;
    if (!a[5].is_given || !gni_scope_is_ok(s))
        return;
    if (extra < 0 || extra > 2) {
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "%s: output_size has %d numbers: it needs %d",
                       images->function, a[5].count, images->count);
        return;
    }
    for (int i = 0; i < images->count; i++) {
        int d = DIMENSIONS - images->count + i;
        int64_t asked = a[5].integers[extra + i], standard = images->result[d];
        if (asked <= standard - stride[d] || asked >= standard + stride[d])
            gni_scope_fail(
                s, GN_ERROR_INVALID_VALUE,
                "%s: output_size is %lld in a dimension where it must be between %lld and "
                "%lld",
                images->function, (long long)asked, (long long)(standard - stride[d]),
                (long long)(standard + stride[d]));
        images->result[d] = asked;
    }
}

/* input, indices, kernel_size, stride, padding, output_size */
static gn_status max_unpool(const char *function, int count, const gn_argument *a,
                            gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *index = a[1].operand.tensor;
    struct images images = images_of(&s, function, count, a[0].operand.tensor);
    if (gni_scope_is_ok(&s) &&
        (index->dtype != GN_INT64 ||
         !gni_shape_is_equal(index->ndim, index->sizes, images.input->ndim, images.input->sizes)))
        gni_scope_fail(
            &s, GN_ERROR_SHAPE,
            "%s: indices are %s of shape %s: they must be int64 in the shape of the input, %s",
            function, gni_dtypes[index->dtype].name, gni_shape_text(index->ndim, index->sizes).text,
            gni_shape_text(images.input->ndim, images.input->sizes).text);
    unpooled_sizes(&s, &images, a);
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    int64_t from[] = {images.rows, elements_of(images.image)};
    int64_t to[] = {images.rows, elements_of(images.result)};
    gn_tensor *values = gni_reshape(&s, images.input, 2, from);
    index = gni_reshape(&s, index, 2, from);
    gn_tensor *made = gni_full(&s, (gn_scalar){.kind = GN_INT64}, images.input->dtype, 2, to,
                               images.input->device);
    if (gni_scope_is_ok(&s))
        s.status = gn_scatter(made, 1, index, gni_of(values), false);
    return gni_scope_give(&s, shaped(&s, &images, made), results);
}

/* ---- the table ----------------------------------------------------------------------------------------- */

#define CALLS(base)                                                           \
    static gn_status base##1d_call(const gn_argument *a, gn_results *results) \
    {                                                                         \
        return base(#base "1d", 1, a, results);                               \
    }                                                                         \
    static gn_status base##2d_call(const gn_argument *a, gn_results *results) \
    {                                                                         \
        return base(#base "2d", 2, a, results);                               \
    }                                                                         \
    static gn_status base##3d_call(const gn_argument *a, gn_results *results) \
    {                                                                         \
        return base(#base "3d", 3, a, results);                               \
    }

CALLS(max_pool)
CALLS(avg_pool)
CALLS(lp_pool)
CALLS(max_unpool)
CALLS(adaptive_max_pool)
CALLS(adaptive_avg_pool)

#define MAXIMUM                                                                               \
    "input: Tensor, kernel_size: sizes, stride: sizes = None, padding: sizes = 0, dilation: " \
    "sizes = "                                                                                \
    "1, ceil_mode: bool = False, return_indices: bool = False -> Tensor or tensors"
#define MEAN                                                                                   \
    "input: Tensor, kernel_size: sizes, stride: sizes = None, padding: sizes = 0, ceil_mode: " \
    "bool = "                                                                                  \
    "False, count_include_pad: bool = True"
#define MEAN_BY MEAN ", divisor_override: int = None"
#define PARTS "input: Tensor, output_size: sizes|None"
#define MAXIMUM_PARTS PARTS ", return_indices: bool = False -> Tensor or tensors"
#define NORM                                                                                  \
    "input: Tensor, norm_type: number, kernel_size: sizes, stride: sizes = None, ceil_mode: " \
    "bool = False"
#define BACK                                                                                      \
    "input: Tensor, indices: Tensor, kernel_size: sizes, stride: sizes = None, padding: sizes = " \
    "0, "                                                                                         \
    "output_size: sizes = None"

#define MAXIMUM_TEXT                                                                             \
    "The largest element of each window. Windows are `stride` apart, or side by side; a padded " \
    "dimension has windows that begin up to half a window before it. `ceil_mode` keeps a last "  \
    "window that is cut off. `return_indices` gives the places of the elements in their image, " \
    "too."
#define MEAN_TEXT                                                                    \
    "The mean of each window. `count_include_pad` counts padding as elements of 0; " \
    "`ceil_mode` keeps a last window that is cut off."
#define PARTS_TEXT(what)                                                                         \
    what " of each of `output_size` parts of nearly one size in each dimension; None keeps the " \
         "size."
#define NORM_TEXT \
    "The norm of each window: the sum of x ** norm_type, to the power of 1 / norm_type."
#define BACK_TEXT                                                                               \
    "What max_pool with return_indices gave back where it was, and 0 elsewhere. `output_size` " \
    "chooses among the sizes that give as many windows."

const gn_function gni_functions_nn_pooling[] = {
    {"nn.max_pool1d", NULL, MAXIMUM, 0, max_pool1d_call, MAXIMUM_TEXT,
     ">>> x = genesis.tensor([[[1.0, 3.0, 2.0, 4.0]]])\n"
     ">>> genesis.nn.functional.max_pool1d(x, 2).tolist()\n[[[3.0, 4.0]]]"},
    {"nn.max_pool2d", NULL, MAXIMUM, 0, max_pool2d_call, MAXIMUM_TEXT,
     ">>> x = genesis.arange(16.0).reshape(1, 1, 4, 4)\n"
     ">>> genesis.nn.functional.max_pool2d(x, 2).tolist()\n[[[[5.0, 7.0], [13.0, 15.0]]]]"},
    {"nn.max_pool3d", NULL, MAXIMUM, 0, max_pool3d_call, MAXIMUM_TEXT,
     ">>> x = genesis.arange(8.0).reshape(1, 1, 2, 2, 2)\n"
     ">>> genesis.nn.functional.max_pool3d(x, 2).tolist()\n[[[[[7.0]]]]]"},
    {"nn.avg_pool1d", NULL, MEAN, 0, avg_pool1d_call, MEAN_TEXT,
     ">>> x = genesis.tensor([[[1.0, 3.0, 2.0, 4.0]]])\n"
     ">>> genesis.nn.functional.avg_pool1d(x, 2).tolist()\n[[[2.0, 3.0]]]"},
    {"nn.avg_pool2d", NULL, MEAN_BY, 0, avg_pool2d_call,
     MEAN_TEXT " `divisor_override` is what sums are divided by.",
     ">>> x = genesis.arange(16.0).reshape(1, 1, 4, 4)\n"
     ">>> genesis.nn.functional.avg_pool2d(x, 2).tolist()\n[[[[2.5, 4.5], [10.5, 12.5]]]]"},
    {"nn.avg_pool3d", NULL, MEAN_BY, 0, avg_pool3d_call,
     MEAN_TEXT " `divisor_override` is what sums are divided by.",
     ">>> x = genesis.arange(8.0).reshape(1, 1, 2, 2, 2)\n"
     ">>> genesis.nn.functional.avg_pool3d(x, 2).tolist()\n[[[[[3.5]]]]]"},
    {"nn.adaptive_avg_pool1d", NULL, PARTS, 0, adaptive_avg_pool1d_call, PARTS_TEXT("The mean"),
     ">>> x = genesis.tensor([[[1.0, 3.0, 2.0]]])\n"
     ">>> genesis.nn.functional.adaptive_avg_pool1d(x, 2).tolist()\n[[[2.0, 2.5]]]"},
    {"nn.adaptive_avg_pool2d", NULL, PARTS, 0, adaptive_avg_pool2d_call, PARTS_TEXT("The mean"),
     ">>> x = genesis.arange(4.0).reshape(1, 1, 2, 2)\n"
     ">>> genesis.nn.functional.adaptive_avg_pool2d(x, 1).tolist()\n[[[[1.5]]]]"},
    {"nn.adaptive_avg_pool3d", NULL, PARTS, 0, adaptive_avg_pool3d_call, PARTS_TEXT("The mean"),
     ">>> x = genesis.arange(8.0).reshape(1, 1, 2, 2, 2)\n"
     ">>> genesis.nn.functional.adaptive_avg_pool3d(x, 1).tolist()\n[[[[[3.5]]]]]"},
    {"nn.adaptive_max_pool1d", NULL, MAXIMUM_PARTS, 0, adaptive_max_pool1d_call,
     PARTS_TEXT("The largest element"),
     ">>> x = genesis.tensor([[[1.0, 3.0, 2.0]]])\n"
     ">>> genesis.nn.functional.adaptive_max_pool1d(x, 2).tolist()\n[[[3.0, 3.0]]]"},
    {"nn.adaptive_max_pool2d", NULL, MAXIMUM_PARTS, 0, adaptive_max_pool2d_call,
     PARTS_TEXT("The largest element"),
     ">>> x = genesis.arange(4.0).reshape(1, 1, 2, 2)\n"
     ">>> genesis.nn.functional.adaptive_max_pool2d(x, 1).tolist()\n[[[[3.0]]]]"},
    {"nn.adaptive_max_pool3d", NULL, MAXIMUM_PARTS, 0, adaptive_max_pool3d_call,
     PARTS_TEXT("The largest element"),
     ">>> x = genesis.arange(8.0).reshape(1, 1, 2, 2, 2)\n"
     ">>> genesis.nn.functional.adaptive_max_pool3d(x, 1).tolist()\n[[[[[7.0]]]]]"},
    {"nn.lp_pool1d", NULL, NORM, 0, lp_pool1d_call, NORM_TEXT,
     ">>> x = genesis.tensor([[[3.0, 4.0]]])\n"
     ">>> genesis.nn.functional.lp_pool1d(x, 2, 2).tolist()\n[[[5.0]]]"},
    {"nn.lp_pool2d", NULL, NORM, 0, lp_pool2d_call, NORM_TEXT,
     ">>> x = genesis.tensor([[[[3.0, 4.0]]]])\n"
     ">>> genesis.nn.functional.lp_pool2d(x, 2, (1, 2)).tolist()\n[[[[5.0]]]]"},
    {"nn.lp_pool3d", NULL, NORM, 0, lp_pool3d_call, NORM_TEXT,
     ">>> x = genesis.tensor([[[[[3.0, 4.0]]]]])\n"
     ">>> genesis.nn.functional.lp_pool3d(x, 2, (1, 1, 2)).tolist()\n[[[[[5.0]]]]]"},
    {"nn.max_unpool1d", NULL, BACK, 0, max_unpool1d_call, BACK_TEXT,
     ">>> x = genesis.tensor([[[1.0, 3.0, 2.0, 4.0]]])\n"
     ">>> y, places = genesis.nn.functional.max_pool1d(x, 2, return_indices=True)\n"
     ">>> genesis.nn.functional.max_unpool1d(y, places, 2).tolist()\n[[[0.0, 3.0, 0.0, 4.0]]]"},
    {"nn.max_unpool2d", NULL, BACK, 0, max_unpool2d_call, BACK_TEXT,
     ">>> x = genesis.arange(4.0).reshape(1, 1, 2, 2)\n"
     ">>> y, places = genesis.nn.functional.max_pool2d(x, 2, return_indices=True)\n"
     ">>> genesis.nn.functional.max_unpool2d(y, places, 2).tolist()\n[[[[0.0, 0.0], [0.0, 3.0]]]]"},
    {"nn.max_unpool3d", NULL, BACK, 0, max_unpool3d_call, BACK_TEXT,
     ">>> x = genesis.arange(8.0).reshape(1, 1, 2, 2, 2)\n"
     ">>> y, places = genesis.nn.functional.max_pool3d(x, 2, return_indices=True)\n"
     ">>> genesis.nn.functional.max_unpool3d(y, places, 2).sum().item()\n7.0"},
    {0},
};
