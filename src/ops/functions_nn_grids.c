/*
 * functions_nn_grids.c: genesis.nn.functional: images at places that a grid says, and grids of affine maps.
 *
 * Coordinates of a grid go from -1 to 1, the last dimension of the image first. An element of the result is a sum of a few
 * elements of the image ("taps"). They are sums of rows that have the channels of an element (row_sums.h); where a device
 * has no such sums, or there are few channels, each tap is taken by its place in a row for each channel.
 */
#include "ops/backend.h"
#include "ops/functions.h"
#include "ops/pooling.h"
#include "ops/row_sums.h"

#include <string.h>

enum {
    AXES_MOST = 3,
    TAPS_MOST = 4, /* along an axis */
    ROW_LEAST = 8, /* channels: fewer are no rows that it pays to add */
    TAPS_ALL = 16, /* of all axes: cubic ones are two, and others have 2 taps */
};

enum padding {
    ZEROS,
    BORDER,
    REFLECTION,
};

/* What is asked for. */
struct sampling {
    gn_tensor *image, *grid;
    int count; /* of axes */
    bool is_nearest, is_cubic, has_corners;
    enum padding padding;
};

/* The taps of one axis: for each the numbers of elements, and weights. */
struct taps {
    int count;
    gn_tensor *numbers[TAPS_MOST];
    gn_tensor *are_in[TAPS_MOST]; /* NULL: all are elements of the image */
    gn_tensor *weights[TAPS_MOST];
};

static gn_tensor *of_number(struct gni_scope *s, gn_op op, gn_tensor *x, double by)
{
    return gni_binary(s, op, gni_of(x), gni_floating(by));
}

static gn_tensor *clamped(struct gni_scope *s, gn_tensor *x, double low, double high)
{
    return gni_elementwise(s, GN_OP_CLAMP, 3,
                           (const gn_operand[]){gni_of(x), gni_floating(low), gni_floating(high)});
}

static gn_tensor *one_of(struct gni_scope *s, gn_op op, gn_tensor *x)
{
    return gni_scope_is_ok(s) ? gni_unary(s, op, x) : NULL;
}

/* Coordinates beyond an interval, thrown back at its ends as often as it takes. */
static gn_tensor *reflected(struct gni_scope *s, gn_tensor *x, double low, double high)
{
    if (low == high)
        return of_number(s, GN_OP_MULTIPLY, x, 0);
    double span = high - low;
    gn_tensor *away = one_of(s, GN_OP_ABSOLUTE, of_number(s, GN_OP_SUBTRACT, x, low));
    gn_tensor *rest = of_number(s, GN_OP_FMOD, away, span);
    gn_tensor *flips = one_of(s, GN_OP_FLOOR, of_number(s, GN_OP_DIVIDE, away, span));
    gn_tensor *is_odd = of_number(s, GN_OP_NOT_EQUAL, of_number(s, GN_OP_FMOD, flips, 2), 0);
    gn_tensor *turned = gni_binary(s, GN_OP_SUBTRACT, gni_floating(span), gni_of(rest));
    gn_tensor *made =
        gni_scope_is_ok(s) ? gni_where(s, is_odd, gni_of(turned), gni_of(rest)) : NULL;
    return of_number(s, GN_OP_ADD, made, low);
}

/* Coordinates in the image, as the padding says; with ZEROS they stay where they are. */
static gn_tensor *placed(struct gni_scope *s, const struct sampling *sampling, gn_tensor *x,
                         int64_t size)
{
    double last = (double)(size - 1);
    if (sampling->padding == ZEROS)
        return x;
    if (sampling->padding == REFLECTION)
        x = sampling->has_corners ? reflected(s, x, 0, last) : reflected(s, x, -0.5, last + 0.5);
    return clamped(s, x, 0, last);
}

/* A tap at whole coordinates. */
static void tap_set(struct gni_scope *s, const struct sampling *sampling, gn_tensor *whole,
                    int64_t size, gn_tensor *weights, struct taps *taps)
{
    int i = taps->count++;
    double last = (double)(size - 1);
    taps->weights[i] = weights;
    taps->are_in[i] = NULL;
    if (sampling->padding == ZEROS)
        taps->are_in[i] =
            gni_binary(s, GN_OP_LOGICAL_AND, gni_of(of_number(s, GN_OP_GREATER_EQUAL, whole, 0)),
                       gni_of(of_number(s, GN_OP_LESS_EQUAL, whole, last)));
    gn_tensor *inside = clamped(s, whole, 0, last);
    taps->numbers[i] = gni_scope_is_ok(s) ? gni_cast(s, inside, GN_INT64) : NULL;
}

/* The taps of axis `a`, of which the grid has the coordinates. */
static void taps_make(struct gni_scope *s, const struct sampling *sampling, int a,
                      struct taps *taps)
{
    int64_t size = sampling->image->sizes[sampling->image->ndim - 1 - a];
    gn_tensor *x =
        gni_scope_is_ok(s) ? gni_select(s, sampling->grid, sampling->grid->ndim - 1, a) : NULL;
    taps->count = 0;
    x = of_number(s, GN_OP_ADD, x, 1);
    if (sampling->has_corners)
        x = of_number(s, GN_OP_MULTIPLY, x, (double)(size - 1) / 2);
    else
        x = of_number(
            s, GN_OP_DIVIDE,
            of_number(s, GN_OP_SUBTRACT, of_number(s, GN_OP_MULTIPLY, x, (double)size), 1), 2);
    if (!sampling->is_cubic)
        x = placed(s, sampling, x, size);
    if (sampling->is_nearest) {
        gn_tensor *ones = gni_one_of(s, x); /* the grid has a gradient, which is 0 */
        tap_set(s, sampling, one_of(s, GN_OP_ROUND, x), size, ones, taps);
        return;
    }
    gn_tensor *floors = one_of(s, GN_OP_FLOOR, x), *weights[TAPS_MOST];
    gn_tensor *t = gni_binary(s, GN_OP_SUBTRACT, gni_of(x), gni_of(floors));
    if (!sampling->is_cubic) {
        gn_tensor *rest = gni_binary(s, GN_OP_SUBTRACT, gni_floating(1), gni_of(t));
        tap_set(s, sampling, floors, size, rest, taps);
        tap_set(s, sampling, of_number(s, GN_OP_ADD, floors, 1), size, t, taps);
        return;
    }
    gni_cubic_weights(s, t, weights);
    for (int i = 0; i < TAPS_MOST; i++) {
        gn_tensor *whole = of_number(s, GN_OP_ADD, floors, i - 1);
        tap_set(s, sampling, placed(s, sampling, whole, size), size, weights[i], taps);
    }
}

/* What two tensors are together; NULL: there is none. */
static gn_tensor *joined(struct gni_scope *s, gn_op op, gn_tensor *a, gn_tensor *b)
{
    return a == NULL ? b : b == NULL ? a : gni_binary(s, op, gni_of(a), gni_of(b));
}

/* One tap of each axis: which elements, whether there are such (NULL: always), and the weights, for all images and places. */
struct tap {
    gn_tensor *number, *are_in, *weight;
};

/* Tap number `index` of all that the axes make together. */
static struct tap tap_of(struct gni_scope *s, const struct sampling *sampling,
                         const struct taps *axes, int index)
{
    struct tap tap = {NULL, NULL, NULL};
    int which[AXES_MOST], rest = index;
    for (int a = 0; a < sampling->count; a++) {
        which[a] = rest % axes[a].count;
        rest /= axes[a].count;
    }
    for (int a = sampling->count - 1; a >= 0 && gni_scope_is_ok(s); a--) {
        const struct taps *taps = &axes[a];
        int64_t size = sampling->image->sizes[sampling->image->ndim - 1 - a];
        if (tap.number != NULL)
            tap.number = gni_binary(s, GN_OP_MULTIPLY, gni_of(tap.number), gni_integer(size));
        tap.number = joined(s, GN_OP_ADD, tap.number, taps->numbers[which[a]]);
        tap.are_in = joined(s, GN_OP_LOGICAL_AND, tap.are_in, taps->are_in[which[a]]);
        tap.weight = joined(s, GN_OP_MULTIPLY, tap.weight, taps->weights[which[a]]);
    }
    return tap;
}

/* Elements of all channels at the places, weighted. `rows`: images x channels x elements. */
static gn_tensor *part_of(struct gni_scope *s, struct tap tap, gn_tensor *rows, int64_t places)
{
    gn_tensor *number = tap.number, *are_in = tap.are_in, *weight = tap.weight, *taken = NULL;
    if (!gni_scope_is_ok(s))
        return NULL;
    const int64_t images = rows->sizes[0], sizes[] = {images, rows->sizes[1], places};
    number = gni_reshape(s, number, 3, (int64_t[]){images, 1, places});
    number = gni_scope_is_ok(s) ? gni_expand(s, number, 3, sizes) : NULL;
    gn_status status = gni_scope_is_ok(s) ? gn_gather(rows, 2, number, &taken) : s->status;
    taken = gni_scope_keep(s, status, taken);
    if (are_in != NULL && gni_scope_is_ok(s)) {
        are_in = gni_reshape(s, are_in, 3, (int64_t[]){images, 1, places});
        taken = gni_scope_is_ok(s) ? gni_where(s, are_in, gni_of(taken), gni_integer(0)) : NULL;
    }
    if (!gni_scope_is_ok(s))
        return NULL;
    weight = gni_reshape(s, weight, 3, (int64_t[]){images, 1, places});
    return gni_binary(s, GN_OP_MULTIPLY, gni_of(taken), gni_of(weight));
}

/* The taps one after the other: (images, channels, places). */
static gn_tensor *sample_by_taps(struct gni_scope *s, const struct sampling *sampling,
                                 const struct taps *axes, int count, int64_t elements,
                                 int64_t places)
{
    gn_tensor *sum = NULL, *image = sampling->image, *rows = gni_wide(s, image);
    if (gni_scope_is_ok(s))
        rows = gni_reshape(s, rows, 3, (int64_t[]){image->sizes[0], image->sizes[1], elements});
    for (int i = 0; i < count && gni_scope_is_ok(s); i++)
        sum = joined(s, GN_OP_ADD, sum, part_of(s, tap_of(s, sampling, axes, i), rows, places));
    return sum;
}

/* All taps of all places, side by side, for sums of rows: an element's row has its channels. */
struct pairs {
    gn_tensor *from, *to, *factors;
};

/* The row of each element, as (images, places, 1): -1 where there is none. A coordinate that is NaN has any number, which
 * must not be behind the last row. */
static gn_tensor *rows_of(struct gni_scope *s, const struct tap *tap, gn_tensor *begins,
                          const int64_t *sizes, int64_t rows)
{
    gn_tensor *number = gni_scope_is_ok(s) ? gni_reshape(s, tap->number, 2, sizes) : NULL;
    number = gni_binary(s, GN_OP_ADD, gni_of(number), gni_of(begins));
    number = gni_binary(s, GN_OP_MINIMUM, gni_of(number), gni_integer(rows - 1));
    if (tap->are_in != NULL && gni_scope_is_ok(s)) {
        gn_tensor *are_in = gni_reshape(s, tap->are_in, 2, sizes);
        number = gni_where(s, are_in, gni_of(number), gni_integer(-1));
    }
    return gni_unsqueeze(s, number, 2);
}

/* Tensors of `count` columns, side by side, as one dimension. */
static gn_tensor *columns_join(struct gni_scope *s, int count, gn_tensor **columns)
{
    gn_tensor *made = gni_scope_is_ok(s) ? gni_cat(s, count, columns, 2) : NULL;
    return gni_scope_is_ok(s) ? gni_reshape(s, made, 1, &made->count) : NULL;
}

static struct pairs pairs_make(struct gni_scope *s, const struct sampling *sampling,
                               const struct taps *axes, int count, int64_t elements, int64_t places)
{
    gn_tensor *numbers[TAPS_ALL], *weights[TAPS_ALL];
    gn_device *device = sampling->image->device;
    int64_t images = sampling->image->sizes[0], all = images * places;
    gn_tensor *begins =
        gni_binary(s, GN_OP_MULTIPLY, gni_of(gni_arange(s, images, device)), gni_integer(elements));
    begins = gni_unsqueeze(s, begins, 1);
    for (int i = 0; i < count; i++) {
        struct tap tap = tap_of(s, sampling, axes, i);
        numbers[i] = rows_of(s, &tap, begins, (const int64_t[]){images, places}, images * elements);
        weights[i] = gni_scope_is_ok(s)
                         ? gni_reshape(s, tap.weight, 3, (int64_t[]){images, places, 1})
                         : NULL;
    }
    gn_tensor *to = gni_unsqueeze(s, gni_arange(s, all, device), 1);
    to = gni_scope_is_ok(s) ? gni_expand(s, to, 2, (int64_t[]){all, count}) : NULL;
    to = gni_scope_is_ok(s) ? gni_reshape(s, to, 1, (int64_t[]){all * count}) : NULL;
    return (struct pairs){columns_join(s, count, numbers), to, columns_join(s, count, weights)};
}

/* The same by sums of rows: all taps of a place are added at once. */
static gn_tensor *sample_by_rows(struct gni_scope *s, const struct sampling *sampling,
                                 const struct taps *axes, int count, int64_t elements,
                                 int64_t places)
{
    gn_tensor *rows = sampling->image, *made = NULL;
    int64_t images = rows->sizes[0], channels = rows->sizes[1];
    struct pairs pairs = pairs_make(s, sampling, axes, count, elements, places);
    if (gni_scope_is_ok(s))
        rows = gni_reshape(s, rows, 3, (int64_t[]){images, channels, elements});
    rows = gni_transpose(s, rows, 1, 2);
    if (gni_scope_is_ok(s))
        rows = gni_reshape(s, rows, 2, (int64_t[]){images * elements, channels});
    if (gni_scope_is_ok(s))
        s->status = gni_row_sums(rows, pairs.factors, pairs.from, pairs.to, images * places, &made);
    made = gni_scope_keep(s, s->status, made);
    if (gni_scope_is_ok(s))
        made = gni_reshape(s, made, 3, (int64_t[]){images, places, channels});
    return gni_transpose(s, made, 1, 2);
}

static void sampling_take(struct gni_scope *s, const gn_argument *a, struct sampling *made)
{
    static const char *const modes[] = {"bilinear", "nearest", "bicubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    gn_tensor *image = a[0].operand.tensor, *grid = a[1].operand.tensor;
    int mode = 0, padding = 0;
    while (mode < 3 && strcmp(a[2].text, modes[mode]) != 0)
        mode++;
    while (padding < 3 && strcmp(a[3].text, paddings[padding]) != 0)
        padding++;
    *made = (struct sampling){image,
                              grid,
                              image->ndim - 2,
                              mode == 1,
                              mode == 2,
                              gni_is_set(&a[4]),
                              (enum padding)padding};
    bool is_fit = (image->ndim == 4 || image->ndim == 5) && grid->ndim == image->ndim &&
                  grid->sizes[grid->ndim - 1] == made->count && grid->sizes[0] == image->sizes[0];
    if (mode == 3)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "grid_sample: mode '%s' is none of bilinear, nearest and bicubic",
                       a[2].text);
    if (padding == 3)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "grid_sample: padding_mode '%s' is none of zeros, border and reflection",
                       a[3].text);
    if (!is_fit)
        gni_scope_fail(
            s, GN_ERROR_SHAPE,
            "grid_sample: expected an input of 4 or 5 dimensions and a grid with as many, "
            "the same images, and a coordinate for each, but got %s and %s",
            gni_shape_text(image->ndim, image->sizes).text,
            gni_shape_text(grid->ndim, grid->sizes).text);
    else if (made->is_cubic && made->count != 2)
        gni_scope_fail(s, GN_ERROR_SHAPE, "grid_sample: mode 'bicubic' takes 4D input only");
    if (!gni_dtype_is_floating(image->dtype) || image->dtype != grid->dtype)
        gni_scope_fail(s, GN_ERROR_TYPE,
                       "grid_sample: the input is %s and the grid %s: both must have one floating "
                       "type",
                       gni_dtypes[image->dtype].name, gni_dtypes[grid->dtype].name);
    for (int i = 2; i < image->ndim; i++)
        if (image->sizes[i] == 0)
            gni_scope_fail(s, GN_ERROR_SHAPE, "grid_sample: images have no elements: %s",
                           gni_shape_text(image->ndim, image->sizes).text);
}

/* input, grid, mode, padding_mode, align_corners */
static gn_status grid_sample_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    struct sampling sampling;
    struct taps axes[AXES_MOST];
    int64_t elements = 1, places = 1, sizes[GN_DIMENSIONS_MAX];
    int count = 1;
    gn_tensor *sum = NULL, *image = a[0].operand.tensor;
    sampling_take(&s, a, &sampling);
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    sampling.grid = gni_wide(&s, sampling.grid);
    sizes[0] = image->sizes[0];
    sizes[1] = image->sizes[1];
    for (int i = 0; i < sampling.count; i++) {
        taps_make(&s, &sampling, i, &axes[i]);
        elements *= image->sizes[2 + i];
        sizes[2 + i] = a[1].operand.tensor->sizes[1 + i];
        places *= sizes[2 + i];
        count *= axes[i].count;
    }
    bool is_by_rows = gni_backend_get(image->device)->row_sums != NULL && count > 1 &&
                      image->sizes[1] >= ROW_LEAST && image->count > 0 && places > 0 &&
                      sampling.grid->device == image->device;
    if (gni_scope_is_ok(&s))
        sum = (is_by_rows ? sample_by_rows : sample_by_taps)(&s, &sampling, axes, count, elements,
                                                             places);
    sum = gni_scope_is_ok(&s) ? gni_reshape(&s, sum, image->ndim, sizes) : NULL;
    return gni_scope_give(&s, gni_scope_is_ok(&s) ? gni_cast(&s, sum, image->dtype) : NULL,
                          results);
}

/* ---- affine maps --------------------------------------------------------------------------------- */

/* The coordinates of a dimension of `size` elements, as dimension `dim` of `ndim`. */
static gn_tensor *coordinates(struct gni_scope *s, int64_t size, bool has_corners, int dim,
                              int ndim, const gn_tensor *like)
{
    int64_t sizes[GN_DIMENSIONS_MAX];
    double end = size == 1 ? 0 : has_corners ? 1 : (double)(size - 1) / (double)size;
    gn_tensor *line = gni_spaced(s, (const double[]){-end, end}, size, like->device);
    for (int i = 0; i < ndim; i++)
        sizes[i] = i == dim ? size : 1;
    line = gni_scope_is_ok(s) ? gni_cast(s, line, like->dtype) : NULL;
    return gni_scope_is_ok(s) ? gni_reshape(s, line, ndim, sizes) : NULL;
}

/* theta, size, align_corners: theta @ (x, y, z, 1) for all places */
static gn_status affine_grid_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *theta = a[0].operand.tensor, *sum = NULL;
    int count = a[1].count - 2;
    bool is_fit = (count == 2 || count == 3) && theta->ndim == 3 && theta->sizes[1] == count &&
                  theta->sizes[2] == count + 1 && theta->sizes[0] == a[1].integers[0];
    if (!is_fit)
        gni_scope_fail(
            &s, GN_ERROR_SHAPE,
            "affine_grid: expected theta of shape (N, 2, 3) and a size (N, C, H, W), or (N, "
            "3, 4) and (N, C, D, H, W), but got %s and %d numbers",
            gni_shape_text(theta->ndim, theta->sizes).text, a[1].count);
    if (!gni_dtype_is_floating(theta->dtype))
        gni_scope_fail(&s, GN_ERROR_TYPE, "affine_grid: theta is %s: convert it to a floating type",
                       gni_dtypes[theta->dtype].name);
    for (int i = 0; i < a[1].count; i++)
        if (a[1].integers[i] < 1)
            gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                           "affine_grid: size has %lld: numbers must be from 1 on",
                           (long long)a[1].integers[i]);
    gn_tensor *wide = gni_scope_is_ok(&s) ? gni_wide(&s, theta) : NULL;
    for (int i = 0; i <= count && gni_scope_is_ok(&s); i++) {
        int64_t sizes[GN_DIMENSIONS_MAX] = {theta->sizes[0], 1, 1, 1, 1};
        sizes[count + 1] = count;
        gn_tensor *part = gni_reshape(&s, gni_select(&s, wide, 2, i), count + 2, sizes);
        if (i < count) {
            gn_tensor *line = coordinates(&s, a[1].integers[count + 1 - i], gni_is_set(&a[2]),
                                          count - i, count + 2, wide);
            part = gni_binary(&s, GN_OP_MULTIPLY, gni_of(part), gni_of(line));
        }
        sum = joined(&s, GN_OP_ADD, sum, part);
    }
    return gni_scope_give(&s, gni_scope_is_ok(&s) ? gni_cast(&s, sum, theta->dtype) : NULL,
                          results);
}

/* ---- the table ----------------------------------------------------------------------------------- */

const gn_function gni_functions_nn_grids[] = {
    {"nn.grid_sample", NULL,
     "input: Tensor, grid: Tensor, mode: text = 'bilinear', padding_mode: text = 'zeros', "
     "align_corners: bool = None",
     0, grid_sample_call,
     "Images at the places of a grid, (images, height, width, 2), or (images, depth, height, "
     "width, "
     "3): coordinates from -1 to 1, the width first.\n\n"
     "`mode` is 'bilinear', 'nearest' or 'bicubic'. What lies outside of the image is 0, its "
     "border, "
     "or its reflection, as `padding_mode` says. With `align_corners` -1 and 1 are the centers of "
     "the first and the last elements, else the borders of the image.",
     ">>> x = genesis.tensor([[[[1.0, 3.0]]]])\n"
     ">>> grid = genesis.tensor([[[[0.0, 0.0], [0.5, 0.0]]]])\n"
     ">>> genesis.nn.functional.grid_sample(x, grid).tolist()\n"
     "[[[[2.0, 3.0]]]]"},
    {"nn.affine_grid", NULL, "theta: Tensor, size: sizes, align_corners: bool = None", 0,
     affine_grid_call,
     "The grid for grid_sample() of affine maps, (images, 2, 3) or (images, 3, 4), for images of a "
     "size.",
     ">>> theta = genesis.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])\n"
     ">>> genesis.nn.functional.affine_grid(theta, (1, 1, 1, 2)).tolist()\n"
     "[[[[-0.5, 0.0], [0.5, 0.0]]]]"},
    {0},
};
