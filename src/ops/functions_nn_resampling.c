/*
 * functions_nn_resampling.c: genesis.nn.functional: images in other sizes, and their channels in other orders.
 *
 * A size is changed one dimension after the other: each new place is a sum of a few old ones ("taps"), whose numbers and
 * weights are computed on the device, in the type that elements are computed in. With `antialias` a new place of a smaller
 * image is a mean of many old ones: that is a product with a matrix of weights.
 */
#include "ops/convolution.h"
#include "ops/functions.h"
#include "ops/pooling.h"

#include <math.h>
#include <string.h>

enum {
    DIMENSIONS = GNI_CONV_DIMENSIONS,
};

static gn_tensor *of_integer(struct gni_scope *s, gn_op op, gn_tensor *x, int64_t by)
{
    return gni_binary(s, op, gni_of(x), gni_integer(by));
}

static gn_tensor *of_number(struct gni_scope *s, gn_op op, gn_tensor *x, double by)
{
    return gni_binary(s, op, gni_of(x), gni_floating(by));
}

/* number - x */
static gn_tensor *from_number(struct gni_scope *s, double number, gn_tensor *x)
{
    return gni_binary(s, GN_OP_SUBTRACT, gni_floating(number), gni_of(x));
}

static gn_tensor *times(struct gni_scope *s, gn_tensor *a, gn_tensor *b)
{
    return gni_binary(s, GN_OP_MULTIPLY, gni_of(a), gni_of(b));
}

static gn_tensor *plus(struct gni_scope *s, gn_tensor *a, gn_tensor *b)
{
    return gni_binary(s, GN_OP_ADD, gni_of(a), gni_of(b));
}

static gn_tensor *clamped(struct gni_scope *s, gn_tensor *x, gn_operand low, gn_operand high)
{
    return gni_elementwise(s, GN_OP_CLAMP, 3, (const gn_operand[]){gni_of(x), low, high});
}

/* ---- modes --------------------------------------------------------------------------------------- */

enum way {
    NEAREST,
    NEAREST_EXACT,
    LINEAR,
    CUBIC,
    AREA,
};

static const struct mode {
    const char *name;
    enum way way;
    int count; /* of dimensions; 0: any */
} modes[] = {
    {"nearest", NEAREST, 0},  {"nearest-exact", NEAREST_EXACT, 0},
    {"linear", LINEAR, 1},    {"bilinear", LINEAR, 2},
    {"trilinear", LINEAR, 3}, {"bicubic", CUBIC, 2},
    {"area", AREA, 0},
};

/* One dimension in another size. */
struct change {
    enum way way;
    int64_t from, to;
    double scale;     /* elements from one new place to the next */
    bool has_corners; /* the first and the last ones stay where they are */
};

/* New places in the old numbering, as floating numbers. */
static gn_tensor *sources(struct gni_scope *s, const struct change *change, gn_dtype dtype,
                          gn_device *device)
{
    gn_tensor *places = gni_arange(s, change->to, device);
    places = gni_scope_is_ok(s) ? gni_cast(s, places, dtype) : NULL;
    if (change->way == NEAREST || change->has_corners)
        return of_number(s, GN_OP_MULTIPLY, places, change->scale);
    places = of_number(s, GN_OP_ADD, places, 0.5);
    places = of_number(s, GN_OP_MULTIPLY, places, change->scale);
    return change->way == NEAREST_EXACT ? places : of_number(s, GN_OP_SUBTRACT, places, 0.5);
}

/* The number of each place, moved by `shift`, as far as there are elements. */
static gn_tensor *numbers_of(struct gni_scope *s, gn_tensor *floors, int64_t shift, int64_t count)
{
    gn_tensor *numbers = gni_scope_is_ok(s) ? gni_cast(s, floors, GN_INT64) : NULL;
    if (shift != 0)
        numbers = of_integer(s, GN_OP_ADD, numbers, shift);
    return clamped(s, numbers, gni_integer(0), gni_integer(count - 1));
}

/* What one tap gives: elements of x along a dimension, weighted. */
static gn_tensor *tap(struct gni_scope *s, gn_tensor *x, int dim, gn_tensor *numbers,
                      gn_tensor *weights)
{
    int64_t sizes[GN_DIMENSIONS_MAX];
    gn_tensor *taken = gni_index_select(s, x, dim, numbers);
    if (weights == NULL || !gni_scope_is_ok(s))
        return taken;
    for (int i = 0; i < x->ndim; i++)
        sizes[i] = i == dim ? weights->count : 1;
    return times(s, taken, gni_reshape_values(s, weights, x->ndim, sizes));
}

void gni_cubic_weights(struct gni_scope *s, gn_tensor *t, gn_tensor *weights[4])
{
    const double a = -0.75;
    gn_tensor *distances[] = {of_number(s, GN_OP_ADD, t, 1), t, from_number(s, 1, t),
                              from_number(s, 2, t)};
    for (int i = 0; i < 4; i++) {
        gn_tensor *x = distances[i], *made;
        bool is_near = i == 1 || i == 2;
        if (is_near) { /* ((a + 2) x - (a + 3)) x x + 1 */
            made = of_number(s, GN_OP_MULTIPLY, x, a + 2);
            made = of_number(s, GN_OP_SUBTRACT, made, a + 3);
            made = times(s, times(s, made, x), x);
            made = of_number(s, GN_OP_ADD, made, 1);
        } else { /* ((a x - 5 a) x + 8 a) x - 4 a */
            made = of_number(s, GN_OP_MULTIPLY, x, a);
            made = times(s, of_number(s, GN_OP_SUBTRACT, made, 5 * a), x);
            made = times(s, of_number(s, GN_OP_ADD, made, 8 * a), x);
            made = of_number(s, GN_OP_SUBTRACT, made, 4 * a);
        }
        weights[i] = made;
    }
}

/* A dimension of x in another size. */
static gn_tensor *resized(struct gni_scope *s, gn_tensor *x, int dim, const struct change *change)
{
    gn_dtype dtype = x->dtype == GN_FLOAT64 ? GN_FLOAT64 : GN_FLOAT32;
    gn_tensor *at = sources(s, change, dtype, x->device), *weights[4], *sum = NULL;
    if (change->way == LINEAR && !change->has_corners)
        at = of_number(s, GN_OP_MAXIMUM, at, 0);
    gn_tensor *floors = gni_scope_is_ok(s) ? gni_unary(s, GN_OP_FLOOR, at) : NULL;
    if (change->way == NEAREST || change->way == NEAREST_EXACT)
        return tap(s, x, dim, numbers_of(s, floors, 0, change->from), NULL);
    if (change->way == LINEAR)
        floors = of_number(s, GN_OP_MINIMUM, floors, (double)(change->from - 1));
    gn_tensor *t = gni_binary(s, GN_OP_SUBTRACT, gni_of(at), gni_of(floors));
    t = clamped(s, t, gni_floating(0), gni_floating(1));
    if (change->way == LINEAR) {
        gn_tensor *first =
            tap(s, x, dim, numbers_of(s, floors, 0, change->from), from_number(s, 1, t));
        return plus(s, first, tap(s, x, dim, numbers_of(s, floors, 1, change->from), t));
    }
    gni_cubic_weights(s, t, weights);
    for (int i = 0; i < 4 && gni_scope_is_ok(s); i++) {
        gn_tensor *part = tap(s, x, dim, numbers_of(s, floors, i - 1, change->from), weights[i]);
        sum = sum == NULL ? part : plus(s, sum, part);
    }
    return sum;
}

/* 1 - |t|, or the cubic with a = -1/2; 0 from 1 or 2 on. */
static gn_tensor *filter_of(struct gni_scope *s, gn_tensor *t, bool is_cubic)
{
    gn_tensor *far = gni_scope_is_ok(s) ? gni_unary(s, GN_OP_ABSOLUTE, t) : NULL;
    if (!is_cubic)
        return of_number(s, GN_OP_MAXIMUM, from_number(s, 1, far), 0);
    gn_tensor *near = of_number(s, GN_OP_SUBTRACT, of_number(s, GN_OP_MULTIPLY, far, 1.5), 2.5);
    near =
        of_number(s, GN_OP_ADD, times(s, times(s, near, far), far), 1); /* (1.5 t - 2.5) t t + 1 */
    gn_tensor *made = of_number(s, GN_OP_ADD, of_number(s, GN_OP_MULTIPLY, far, -0.5), 2.5);
    made = times(s, of_number(s, GN_OP_SUBTRACT, times(s, made, far), 4), far);
    made = of_number(s, GN_OP_ADD, made, 2); /* ((-t / 2 + 2.5) t - 4) t + 2 */
    gn_tensor *is_out = of_number(s, GN_OP_GREATER_EQUAL, far, 2);
    made = gni_where(s, is_out, gni_floating(0), gni_of(made));
    return gni_where(s, of_number(s, GN_OP_LESS, far, 1), gni_of(near), gni_of(made));
}

/* The weights of old elements in new ones, (to, from), as a type: each row has the sum 1. */
static gn_tensor *smooth_weights(struct gni_scope *s, const struct change *change, gn_dtype dtype,
                                 gn_device *device)
{
    gn_tensor *rows = gni_scope_is_ok(s) ? gni_arange(s, change->to, device) : NULL;
    rows = gni_scope_is_ok(s) ? gni_cast(s, rows, GN_FLOAT64) : NULL;
    rows = of_number(s, GN_OP_MULTIPLY, of_number(s, GN_OP_ADD, rows, 0.5), change->scale);
    rows = gni_scope_is_ok(s) ? gni_unsqueeze(s, rows, 1) : NULL;
    gn_tensor *columns = gni_scope_is_ok(s) ? gni_arange(s, change->from, device) : NULL;
    columns = gni_scope_is_ok(s) ? gni_cast(s, columns, GN_FLOAT64) : NULL;
    gn_tensor *apart =
        gni_binary(s, GN_OP_SUBTRACT, gni_of(of_number(s, GN_OP_ADD, columns, 0.5)), gni_of(rows));
    if (change->scale > 1)
        apart = of_number(s, GN_OP_DIVIDE, apart, change->scale);
    gn_tensor *weights = filter_of(s, apart, change->way == CUBIC);
    gn_tensor *sums = gni_scope_is_ok(s) ? gni_reduce(s, GN_REDUCE_SUM, weights, 2, true) : NULL;
    weights = gni_binary(s, GN_OP_DIVIDE, gni_of(weights), gni_of(sums));
    return gni_scope_is_ok(s) ? gni_cast(s, weights, dtype) : NULL;
}

/* A dimension of (images, channels, height, width) in another size, without aliases. */
static gn_tensor *smoothed(struct gni_scope *s, gn_tensor *x, int dim, const struct change *change)
{
    gn_tensor *weights = smooth_weights(s, change, x->dtype, x->device);
    if (!gni_scope_is_ok(s))
        return NULL;
    return dim == 3 ? gni_matmul(s, x, gni_transpose(s, weights, 0, 1)) : gni_matmul(s, weights, x);
}

/* ---- interpolate ------------------------------------------------------------------------------------- */

struct interpolation {
    const struct mode *mode;
    int count;
    int64_t from[DIMENSIONS], to[DIMENSIONS];
    double factors[DIMENSIONS]; /* 0: not given */
};

static const struct mode *mode_find(struct gni_scope *s, const char *name, int count)
{
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(name, modes[i].name) != 0)
            continue;
        if (modes[i].count == 0 || modes[i].count == count)
            return &modes[i];
        gni_scope_fail(s, GN_ERROR_SHAPE,
                       "interpolate: mode '%s' takes a %dD input, and this is %dD", name,
                       modes[i].count + 2, count + 2);
        return NULL;
    }
    gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                   "interpolate: mode '%s' is none of nearest, nearest-exact, linear, bilinear, "
                   "bicubic, trilinear and area",
                   name);
    return NULL;
}

/* A factor, or one for each dimension. */
static void factors_take(struct gni_scope *s, const gn_argument *argument,
                         struct interpolation *made)
{
    gn_tensor *list = argument->operand.tensor;
    if (list != NULL && list->ndim > 1) {
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "interpolate: scale_factor is numbers");
        return;
    }
    if (list != NULL && list->ndim == 1 && list->count != made->count) {
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "interpolate: scale_factor has %lld numbers, and the input %d dimensions "
                       "behind the channels",
                       (long long)list->count, made->count);
        return;
    }
    for (int64_t i = 0; i < made->count && gni_scope_is_ok(s); i++) {
        gn_scalar factor = argument->operand.scalar;
        if (list != NULL)
            s->status = gn_tensor_get_item(list, list->ndim == 1 ? &i : NULL, &factor);
        double value = gni_scope_is_ok(s) ? gni_scalar_double(factor) : 1;
        if (!(value > 0) || value > INT32_MAX)
            gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                           "interpolate: scale_factor is %g: it must be more than 0", value);
        int d = DIMENSIONS - made->count + (int)i;
        made->factors[d] = value;
        made->to[d] = gni_scope_is_ok(s) ? (int64_t)floor((double)made->from[d] * value) : 1;
    }
}

/* input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias */
static void interpolation_take(struct gni_scope *s, const gn_argument *a,
                               struct interpolation *made)
{
    gn_tensor *input = a[0].operand.tensor;
    *made = (struct interpolation){.from = {1, 1, 1}, .to = {1, 1, 1}};
    if (input->ndim < 3 || input->ndim > 5) {
        gni_scope_fail(s, GN_ERROR_SHAPE,
                       "interpolate: expected 3D, 4D or 5D input, but got input of size %s",
                       gni_shape_text(input->ndim, input->sizes).text);
        return;
    }
    made->count = input->ndim - 2;
    for (int i = 0; i < made->count; i++)
        made->from[DIMENSIONS - made->count + i] = input->sizes[2 + i];
    made->mode = mode_find(s, a[3].text, made->count);
    if (a[1].is_given == a[2].is_given)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "interpolate: only one of size or scale_factor should be defined");
    if (a[4].is_given && made->mode != NULL && made->mode->way != LINEAR &&
        made->mode->way != CUBIC)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "interpolate: align_corners option can only be set with the interpolating "
                       "modes: linear, bilinear, bicubic and trilinear");
    if (a[5].is_given && gni_is_set(&a[5]) && a[1].is_given)
        gni_scope_fail(
            s, GN_ERROR_INVALID_VALUE,
            "interpolate: recompute_scale_factor is not meaningful with an explicit size");
    if (gni_is_set(&a[6]) &&
        (made->count != 2 ||
         (made->mode != NULL && made->mode->way != LINEAR && made->mode->way != CUBIC)))
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "interpolate: antialias is of the modes bilinear and bicubic, and of 4D "
                       "input");
    bool is_byte = input->dtype == GN_UINT8 && made->mode != NULL && made->mode->way != AREA;
    if (!gni_dtype_is_floating(input->dtype) && !is_byte)
        gni_scope_fail(s, GN_ERROR_TYPE,
                       "interpolate: the input is %s: convert it to a floating type",
                       gni_dtypes[input->dtype].name);
    if (a[1].is_given)
        gni_window_sizes(s, "interpolate", "size", &a[1], made->count, 1, made->to);
    else if (gni_scope_is_ok(s))
        factors_take(s, &a[2], made);
    for (int d = 0; d < DIMENSIONS && gni_scope_is_ok(s); d++)
        if (made->to[d] < 1 || made->from[d] < 1)
            gni_scope_fail(s, GN_ERROR_SHAPE,
                           "interpolate: input and output sizes should be greater than 0, but got "
                           "%lld and %lld",
                           (long long)made->from[d], (long long)made->to[d]);
    if (gni_is_set(&a[5]))
        memset(made->factors, 0, sizeof made->factors);
}

static gn_status interpolate_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    struct interpolation plan;
    gn_tensor *input = a[0].operand.tensor;
    bool has_corners = gni_is_set(&a[4]);
    interpolation_take(&s, a, &plan);
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    if (plan.mode->way == AREA) {
        int64_t sizes[GN_DIMENSIONS_MAX] = {input->sizes[0], input->sizes[1]};
        memcpy(sizes + 2, plan.to + DIMENSIONS - plan.count, (size_t)plan.count * sizeof *sizes);
        gn_tensor *means = gni_adaptive_mean(&s, input, plan.count, plan.to);
        means = gni_scope_is_ok(&s) ? gni_reshape_values(&s, means, input->ndim, sizes) : NULL;
        return gni_scope_give(&s, means, results);
    }
    bool is_copy = plan.mode->way == NEAREST || plan.mode->way == NEAREST_EXACT;
    gn_tensor *made = is_copy ? input : gni_wide(&s, input);
    if (!is_copy && input->dtype == GN_UINT8)
        made = gni_cast(&s, input, GN_FLOAT32);
    for (int i = plan.count - 1; i >= 0 && gni_scope_is_ok(&s); i--) {
        int d = DIMENSIONS - plan.count + i;
        struct change change = {plan.mode->way, plan.from[d], plan.to[d], 0, has_corners};
        if (has_corners)
            change.scale = change.to > 1 ? (double)(change.from - 1) / (double)(change.to - 1) : 0;
        else
            change.scale =
                plan.factors[d] > 0 ? 1 / plan.factors[d] : (double)change.from / (double)change.to;
        if (change.from != change.to || (!has_corners && change.scale != 1))
            made = gni_is_set(&a[6]) ? smoothed(&s, made, 2 + i, &change)
                                     : resized(&s, made, 2 + i, &change);
    }
    if (!is_copy && input->dtype == GN_UINT8)
        made = clamped(&s, gni_unary(&s, GN_OP_FLOOR, of_number(&s, GN_OP_ADD, made, 0.5)),
                       gni_integer(0), gni_integer(255));
    made = gni_scope_is_ok(&s) ? gni_cast(&s, made, input->dtype) : NULL;
    if (made == input && gni_scope_is_ok(&s))
        made = gni_clone(&s, input);
    return gni_scope_give(&s, made, results);
}

/* input, size, scale_factor, mode, align_corners */
static gn_status upsample_call(const gn_argument *a, gn_results *results)
{
    gn_argument all[7] = {{0}};
    memcpy(all, a, 5 * sizeof *a);
    return interpolate_call(all, results);
}

/* ---- channels ---------------------------------------------------------------------------------------- */

/* input, upscale_factor */
static gn_status pixel_shuffle_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    int64_t by = a[1].operand.scalar.integer, sizes[GN_DIMENSIONS_MAX];
    int order[GN_DIMENSIONS_MAX], n = x->ndim - 3;
    if (n < 0 || n + 5 > GN_DIMENSIONS_MAX)
        gni_scope_fail(&s, GN_ERROR_SHAPE,
                       "pixel_shuffle: expected input with at least 3 dimensions, but it has %d",
                       x->ndim);
    else if (by < 1 || by > INT16_MAX)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "pixel_shuffle: upscale_factor is %lld: it must be from 1 on",
                       (long long)by);
    else if (x->sizes[n] % (by * by) != 0)
        gni_scope_fail(&s, GN_ERROR_SHAPE,
                       "pixel_shuffle: the %lld channels are no multiple of upscale_factor squared",
                       (long long)x->sizes[n]);
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    const int64_t parts[] = {x->sizes[n] / (by * by), by, by, x->sizes[n + 1], x->sizes[n + 2]};
    const int places[] = {0, 3, 1, 4, 2};
    for (int i = 0; i < n; i++) {
        sizes[i] = x->sizes[i];
        order[i] = i;
    }
    for (int i = 0; i < 5; i++) {
        sizes[n + i] = parts[i];
        order[n + i] = n + places[i];
    }
    gn_tensor *made = gni_permute(&s, gni_reshape(&s, x, n + 5, sizes), order);
    sizes[n + 1] = x->sizes[n + 1] * by;
    sizes[n + 2] = x->sizes[n + 2] * by;
    return gni_scope_give(&s, gni_reshape(&s, made, n + 3, sizes), results);
}

/* input, downscale_factor */
static gn_status pixel_unshuffle_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    int64_t by = a[1].operand.scalar.integer, sizes[GN_DIMENSIONS_MAX];
    int order[GN_DIMENSIONS_MAX], n = x->ndim - 3;
    if (n < 0 || n + 5 > GN_DIMENSIONS_MAX)
        gni_scope_fail(&s, GN_ERROR_SHAPE,
                       "pixel_unshuffle: expected input with at least 3 dimensions, but it has %d",
                       x->ndim);
    else if (by < 1 || by > INT16_MAX)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "pixel_unshuffle: downscale_factor is %lld: it must be from 1 on",
                       (long long)by);
    else if (x->sizes[n + 1] % by != 0 || x->sizes[n + 2] % by != 0)
        gni_scope_fail(&s, GN_ERROR_SHAPE,
                       "pixel_unshuffle: height and width, %lld and %lld, are no multiples of "
                       "downscale_factor",
                       (long long)x->sizes[n + 1], (long long)x->sizes[n + 2]);
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    const int64_t parts[] = {x->sizes[n], x->sizes[n + 1] / by, by, x->sizes[n + 2] / by, by};
    const int places[] = {0, 2, 4, 1, 3};
    for (int i = 0; i < n; i++) {
        sizes[i] = x->sizes[i];
        order[i] = i;
    }
    for (int i = 0; i < 5; i++) {
        sizes[n + i] = parts[i];
        order[n + i] = n + places[i];
    }
    gn_tensor *made = gni_permute(&s, gni_reshape(&s, x, n + 5, sizes), order);
    sizes[n] = x->sizes[n] * by * by;
    sizes[n + 1] = x->sizes[n + 1] / by;
    sizes[n + 2] = x->sizes[n + 2] / by;
    return gni_scope_give(&s, gni_reshape(&s, made, n + 3, sizes), results);
}

/* input, groups */
static gn_status channel_shuffle_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    int64_t groups = a[1].operand.scalar.integer, sizes[GN_DIMENSIONS_MAX];
    if (x->ndim < 3 || x->ndim >= GN_DIMENSIONS_MAX)
        gni_scope_fail(&s, GN_ERROR_SHAPE,
                       "channel_shuffle: expected input with more than 2 dimensions, but it has %d",
                       x->ndim);
    else if (groups < 1 || x->sizes[1] % groups != 0)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "channel_shuffle: %lld channels are no multiple of %lld groups",
                       (long long)x->sizes[1], (long long)groups);
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    for (int i = 0; i <= x->ndim; i++)
        sizes[i] = i == 0   ? x->sizes[0]
                   : i == 1 ? groups
                   : i == 2 ? x->sizes[1] / groups
                            : x->sizes[i - 1];
    gn_tensor *made = gni_reshape(&s, x, x->ndim + 1, sizes);
    made = gni_scope_is_ok(&s) ? gni_transpose(&s, made, 1, 2) : NULL;
    made = gni_scope_is_ok(&s) ? gni_reshape(&s, made, x->ndim, x->sizes) : NULL;
    return gni_scope_give(&s, made, results);
}

/* ---- the table ----------------------------------------------------------------------------------------- */

const gn_function gni_functions_nn_resampling[] = {
    {"nn.interpolate", NULL,
     "input: Tensor, size: sizes = None, scale_factor: doubles = None, mode: text = 'nearest', "
     "align_corners: bool = None, recompute_scale_factor: bool = None, antialias: bool = False",
     0, interpolate_call,
     "Images in another size, which is given, or the old one times `scale_factor`.\n\n"
     "`mode` is 'nearest' or 'nearest-exact', 'linear', 'bilinear' or 'trilinear' by the number of "
     "dimensions, 'bicubic', or 'area', which takes means. `align_corners` keeps the centers of "
     "the "
     "first and the last elements where they are, instead of the borders of the image. "
     "`recompute_scale_factor` takes the scale from the sizes. With `antialias` the elements of a "
     "smaller image are means over all that they stand for ('bilinear' and 'bicubic'). Images of "
     "uint8 are rounded.",
     ">>> x = genesis.tensor([[[0.0, 1.0]]])\n"
     ">>> genesis.nn.functional.interpolate(x, 4, mode=\"linear\").tolist()\n"
     "[[[0.0, 0.25, 0.75, 1.0]]]"},
    {"nn.upsample", NULL,
     "input: Tensor, size: sizes = None, scale_factor: doubles = None, mode: text = 'nearest', "
     "align_corners: bool = None",
     0, upsample_call, "interpolate() by its old name.",
     ">>> x = genesis.tensor([[[0.0, 1.0]]])\n"
     ">>> genesis.nn.functional.upsample(x, scale_factor=2).tolist()\n"
     "[[[0.0, 0.0, 1.0, 1.0]]]"},
    {"nn.pixel_shuffle", NULL, "input: Tensor, upscale_factor: int", 0, pixel_shuffle_call,
     "Channels become pixels: (..., channels r r, height, width) becomes (..., channels, height r, "
     "width r).",
     ">>> x = genesis.arange(4.0).reshape(4, 1, 1)\n"
     ">>> genesis.nn.functional.pixel_shuffle(x, 2).tolist()\n"
     "[[[0.0, 1.0], [2.0, 3.0]]]"},
    {"nn.pixel_unshuffle", NULL, "input: Tensor, downscale_factor: int", 0, pixel_unshuffle_call,
     "Pixels become channels: the way back of pixel_shuffle().",
     ">>> x = genesis.arange(4.0).reshape(1, 2, 2)\n"
     ">>> genesis.nn.functional.pixel_unshuffle(x, 2).tolist()\n"
     "[[[0.0]], [[1.0]], [[2.0]], [[3.0]]]"},
    {"nn.channel_shuffle", NULL, "input: Tensor, groups: int", 0, channel_shuffle_call,
     "Channels in another order: the first of each group, the second of each, and so on.",
     ">>> x = genesis.arange(4.0).reshape(1, 4, 1)\n"
     ">>> genesis.nn.functional.channel_shuffle(x, 2).flatten().tolist()\n"
     "[0.0, 2.0, 1.0, 3.0]"},
    {0},
};
