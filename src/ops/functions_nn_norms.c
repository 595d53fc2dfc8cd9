/*
 * functions_nn_norms.c: genesis.nn.functional: norms over layers, batches, instances and groups.
 *
 * A norm over the last dimensions is one row program: the mean, the variance and what is made of them read a row once.
 * Of other dimensions both are reductions of their own. Halves are computed in float32, and rounded once.
 */
#include "ops/functions_nn.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

/* ---- rows -------------------------------------------------------------------------------------- */

/* The bits of the last dimensions. */
static uint32_t last_dims(const gn_tensor *x, int count)
{
    return ((UINT32_C(1) << count) - 1) << (x->ndim - count);
}

/* x * weight + bias; both may be NULL. x is no half, and halves are converted in the same program. */
static gn_tensor *scaled(struct gni_scope *s, gn_tensor *x, gn_tensor *weight, gn_tensor *bias)
{
    if (weight != NULL)
        x = gni_binary(s, GN_OP_MULTIPLY, gni_of(x), gni_of(weight));
    if (bias != NULL)
        x = gni_binary(s, GN_OP_ADD, gni_of(x), gni_of(bias));
    return x;
}

/* 1 over the root of the variance, which is not below 0. */
static gn_tensor *scale_of(struct gni_scope *s, gn_tensor *variance, double eps)
{
    return gni_unary(s, GN_OP_RSQRT, gni_binary(s, GN_OP_ADD, gni_of(variance), gni_floating(eps)));
}

static gn_tensor *mean_of_squares(struct gni_scope *s, gn_tensor *x, uint32_t dims)
{
    return gni_reduce(s, GN_REDUCE_MEAN, gni_unary(s, GN_OP_SQUARE, x), dims, true);
}

/* Elements, less their mean if they are centered, over their deviation; and 1 over that. New references. */
static gn_status standardize(gn_tensor *x, const struct gni_standardize_details *how, double eps,
                             gn_tensor **both)
{
    struct gni_scope s = {0};
    gn_tensor *apart = x;
    if (how->is_centered) {
        gn_tensor *mean = gni_reduce(&s, GN_REDUCE_MEAN, x, how->dimensions, true);
        apart = gni_binary(&s, GN_OP_SUBTRACT, gni_of(x), gni_of(mean));
    }
    gn_tensor *scale = scale_of(&s, mean_of_squares(&s, apart, how->dimensions), eps);
    gn_tensor *made = gni_binary(&s, GN_OP_MULTIPLY, gni_of(apart), gni_of(scale));
    gn_results results = {0};
    gn_status status = gni_scope_give_pair(&s, made, scale, &results);
    both[0] = results.few[0];
    both[1] = results.few[1];
    return status;
}

/* The same as one operation with a gradient of its own: rules_numbers.c. */
static gn_tensor *rows_standardize(struct gni_scope *scope, gn_tensor *x, uint32_t dims,
                                   bool is_centered, double eps)
{
    const struct gni_standardize_details how = {.dimensions = dims, .is_centered = is_centered};
    gn_tensor *both[2] = {NULL};
    if (!gni_scope_is_ok(scope))
        return NULL;
    bool is_taped = gni_tape_enter(x);
    gn_status status = standardize(x, &how, eps, both);
    if (is_taped)
        status = gni_tape_leave(
            status, &(struct gni_tape_step){.rule = GNI_RULE_STANDARDIZE,
                                            .name = is_centered ? "layer_norm" : "rms_norm",
                                            .input_count = 1,
                                            .inputs = &(gn_operand){.tensor = x},
                                            .result_count = 2,
                                            .results = both,
                                            .details = &how,
                                            .detail_bytes = sizeof how});
    gn_tensor *made = gni_scope_keep(scope, status, both[0]);
    if (status == GN_OK)
        gn_tensor_release(both[1]);
    return made;
}

/* ---- layers ------------------------------------------------------------------------------------ */

/* Fails unless the input ends with a shape, which the parameters have. */
static void shape_check(struct gni_scope *s, const gn_tensor *x, const gn_argument *shape,
                        const gn_tensor *weight, const gn_tensor *bias)
{
    const gn_tensor *parameters[] = {weight, bias};
    int skipped = x->ndim - shape->count;
    gni_floating_require(s, "input", x);
    if (shape->count == 0)
        gni_scope_fail(s, GN_ERROR_SHAPE, "normalized_shape has at least one dimension");
    else if (skipped < 0 ||
             !gni_shape_is_equal(shape->count, shape->integers, shape->count, x->sizes + skipped))
        gni_scope_fail(s, GN_ERROR_SHAPE,
                       "normalized_shape is %s, and input of shape %s ends otherwise",
                       gni_shape_text(shape->count, shape->integers).text,
                       gni_shape_text(x->ndim, x->sizes).text);
    for (int i = 0; i < 2; i++)
        if (parameters[i] != NULL && !gni_shape_is_equal(shape->count, shape->integers,
                                                         parameters[i]->ndim, parameters[i]->sizes))
            gni_scope_fail(s, GN_ERROR_SHAPE, "%s has shape %s, not normalized_shape, %s",
                           i == 0 ? "weight" : "bias",
                           gni_shape_text(parameters[i]->ndim, parameters[i]->sizes).text,
                           gni_shape_text(shape->count, shape->integers).text);
}

static gn_status layer_norm_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *weight = a[2].operand.tensor, *bias = a[3].operand.tensor;
    shape_check(&s, x, &a[1], weight, bias);
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    double eps = gni_scalar_double(a[4].operand.scalar);
    gn_tensor *made = rows_standardize(&s, gni_wide(&s, x), last_dims(x, a[1].count), true, eps);
    made = scaled(&s, made, weight, bias);
    return gni_scope_give(&s, gni_cast(&s, made, x->dtype), results);
}

static gn_status rms_norm_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *weight = a[2].operand.tensor;
    shape_check(&s, x, &a[1], weight, NULL);
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    double eps = a[3].is_given            ? gni_scalar_double(a[3].operand.scalar)
                 : x->dtype == GN_FLOAT64 ? DBL_EPSILON
                                          : (double)FLT_EPSILON;
    gn_tensor *made = rows_standardize(&s, gni_wide(&s, x), last_dims(x, a[1].count), false, eps);
    made = scaled(&s, made, weight, NULL);
    return gni_scope_give(&s, gni_cast(&s, made, x->dtype), results);
}

/* ---- channels ---------------------------------------------------------------------------------- */

/* What a norm with running statistics is given. */
struct batch {
    gn_tensor *x, *running[2], *weight, *bias; /* all but x may be NULL */
    double momentum, eps;
};

/* (input, running_mean, running_var, weight, bias, whether the input's statistics are used, momentum, eps) */
static struct batch batch_take(struct gni_scope *s, const gn_argument *a)
{
    static const char *const names[] = {"running_mean", "running_var", "weight", "bias"};
    struct batch made = {.x = a[0].operand.tensor,
                         .running = {a[1].operand.tensor, a[2].operand.tensor},
                         .weight = a[3].operand.tensor,
                         .bias = a[4].operand.tensor,
                         .momentum = gni_scalar_double(a[6].operand.scalar),
                         .eps = gni_scalar_double(a[7].operand.scalar)};
    const gn_tensor *x = made.x;
    gni_floating_require(s, "input", x);
    if (x->ndim < 2)
        gni_scope_fail(s, GN_ERROR_SHAPE, "input has shape %s: at least a batch and channels",
                       gni_shape_text(x->ndim, x->sizes).text);
    for (int i = 0; i < 4 && gni_scope_is_ok(s); i++) {
        const gn_tensor *one = a[1 + i].operand.tensor;
        if (one != NULL && (one->ndim != 1 || one->sizes[0] != x->sizes[1]))
            gni_scope_fail(s, GN_ERROR_SHAPE,
                           "%s has shape %s: it has %lld elements, a channel each", names[i],
                           gni_shape_text(one->ndim, one->sizes).text, (long long)x->sizes[1]);
    }
    if (!gni_is_set(&a[5]) && (made.running[0] == NULL || made.running[1] == NULL))
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "running_mean and running_var are given where the input's own statistics "
                       "are not used");
    if (!(made.eps >= 0))
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "eps is not negative: %g", made.eps);
    return made;
}

/* An element for each channel as (1, channels, 1 ...); NULL stays. */
static gn_tensor *spread(struct gni_scope *s, gn_tensor *one, const gn_tensor *x)
{
    int64_t sizes[GN_DIMENSIONS_MAX];
    for (int i = 0; i < x->ndim; i++)
        sizes[i] = i == 1 ? x->sizes[1] : 1;
    return one != NULL ? gni_reshape_values(s, one, x->ndim, sizes) : NULL;
}

/* A running statistic takes over a part of a new one, which has the same elements in another shape. */
static void running_update(struct gni_scope *s, gn_tensor *running, gn_tensor *latest,
                           double momentum)
{
    latest = gni_scope_is_ok(s) ? gni_reshape_values(s, latest, 1, running->sizes) : NULL;
    gn_tensor *kept =
        gni_binary(s, GN_OP_MULTIPLY, gni_of(gni_wide(s, running)), gni_floating(1 - momentum));
    gn_tensor *taken = gni_binary(s, GN_OP_MULTIPLY, gni_of(latest), gni_floating(momentum));
    if (gni_scope_is_ok(s) && running->dtype == GN_FLOAT32)
        taken = gni_cast(s, taken, GN_FLOAT32);
    if (gni_scope_is_ok(s))
        s->status =
            gn_elementwise_into(GN_OP_ADD, (gn_operand[]){gni_of(kept), gni_of(taken)}, running);
}

/* Both running statistics: the variance is that of the channels' population. */
static void statistics_update(struct gni_scope *s, const struct batch *b, gn_tensor *mean,
                              gn_tensor *variance, int64_t count)
{
    bool was_paused = gni_tape_is_paused;
    if (b->running[0] == NULL && b->running[1] == NULL)
        return;
    gni_tape_is_paused = true;
    double correction = (double)count / (double)(count - 1);
    bool is_instance = mean != NULL && mean->sizes[0] != 1;
    gn_tensor *latest[] = {
        mean, gni_binary(s, GN_OP_MULTIPLY, gni_of(variance), gni_floating(correction))};
    for (int i = 0; i < 2; i++) {
        if (b->running[i] == NULL)
            continue;
        if (is_instance)
            latest[i] = gni_reduce(s, GN_REDUCE_MEAN, latest[i], 1, true);
        running_update(s, b->running[i], latest[i], b->momentum);
    }
    gni_tape_is_paused = was_paused;
}

/* (x - mean) / deviation * weight + bias, with what each channel has. */
static gn_tensor *channels_normalize(struct gni_scope *s, const struct batch *b, gn_tensor *apart,
                                     gn_tensor *scale)
{
    gn_tensor *weight = spread(s, b->weight, b->x);
    if (weight != NULL)
        scale = gni_binary(s, GN_OP_MULTIPLY, gni_of(scale), gni_of(weight));
    gn_tensor *made = gni_binary(s, GN_OP_MULTIPLY, gni_of(apart), gni_of(scale));
    made = scaled(s, made, NULL, spread(s, b->bias, b->x));
    return gni_scope_is_ok(s) ? gni_cast(s, made, b->x->dtype) : NULL;
}

/* With the input's own statistics over some dimensions. What the result is made of is released before the running
 * statistics are written: what somebody holds would be stored. */
static gn_tensor *by_own(struct gni_scope *outer, const struct batch *b, uint32_t dims)
{
    struct gni_scope s = {0};
    gn_tensor *wide = gni_wide(&s, b->x), *made = NULL;
    gn_tensor *mean = gni_reduce(&s, GN_REDUCE_MEAN, wide, dims, true);
    gn_tensor *apart = gni_binary(&s, GN_OP_SUBTRACT, gni_of(wide), gni_of(mean));
    gn_tensor *variance = mean_of_squares(&s, apart, dims);
    gn_tensor *result = channels_normalize(&s, b, apart, scale_of(&s, variance, b->eps));
    gn_tensor *kept[] = {mean, variance};
    for (int i = 0; i < 2; i++) {
        if (gni_scope_is_ok(&s))
            gn_tensor_retain(kept[i]);
        kept[i] = gni_scope_keep(outer, s.status, kept[i]);
    }
    gn_status status = gni_scope_end(&s, result, &made);
    made = gni_scope_keep(outer, status, made);
    if (gni_scope_is_ok(outer) && b->x->count > 0)
        statistics_update(outer, b, kept[0], kept[1], gni_dims_count(b->x, dims));
    return made;
}

/* With running statistics. */
static gn_tensor *by_running(struct gni_scope *s, const struct batch *b)
{
    gn_tensor *mean = spread(s, gni_wide(s, b->running[0]), b->x);
    gn_tensor *variance = spread(s, gni_wide(s, b->running[1]), b->x);
    gn_tensor *apart = gni_binary(s, GN_OP_SUBTRACT, gni_of(gni_wide(s, b->x)), gni_of(mean));
    return channels_normalize(s, b, apart, scale_of(s, variance, b->eps));
}

static gn_status batch_norm_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    struct batch b = batch_take(&s, a);
    bool is_own = gni_is_set(&a[5]);
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    uint32_t dims = ((UINT32_C(1) << b.x->ndim) - 1) & ~UINT32_C(2);
    if (is_own && b.eps == 0)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "eps is above 0 in training");
    if (is_own && gni_dims_count(b.x, dims) == 1)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "input of shape %s has one value in each channel: training needs more",
                       gni_shape_text(b.x->ndim, b.x->sizes).text);
    return gni_scope_give(&s, is_own ? by_own(&s, &b, dims) : by_running(&s, &b), results);
}

static gn_status instance_norm_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    struct batch b = batch_take(&s, a);
    bool is_own = gni_is_set(&a[5]);
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    uint32_t dims = b.x->ndim > 2 ? last_dims(b.x, b.x->ndim - 2) : 0;
    if (is_own && (dims == 0 || gni_dims_count(b.x, dims) == 1))
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "input of shape %s has one value in each channel of an instance: its "
                       "statistics need more",
                       gni_shape_text(b.x->ndim, b.x->sizes).text);
    return gni_scope_give(&s, is_own ? by_own(&s, &b, dims) : by_running(&s, &b), results);
}

/* ---- groups of channels ------------------------------------------------------------------------ */

static void group_check(struct gni_scope *s, const gn_argument *a)
{
    const gn_tensor *x = a[0].operand.tensor;
    int64_t groups = a[1].operand.scalar.integer;
    gni_floating_require(s, "input", x);
    if (x->ndim < 2)
        gni_scope_fail(s, GN_ERROR_SHAPE, "input has shape %s: at least a batch and channels",
                       gni_shape_text(x->ndim, x->sizes).text);
    else if (groups < 1 || x->sizes[1] % groups != 0)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "%lld channels are not divided into %lld groups",
                       (long long)x->sizes[1], (long long)groups);
    else if (x->count == groups)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "input of shape %s has one value in each group: at least two are needed",
                       gni_shape_text(x->ndim, x->sizes).text);
    for (int i = 2; i < 4 && gni_scope_is_ok(s); i++) {
        const gn_tensor *one = a[i].operand.tensor;
        if (one != NULL && (one->ndim != 1 || one->sizes[0] != x->sizes[1]))
            gni_scope_fail(s, GN_ERROR_SHAPE,
                           "%s has shape %s: it has %lld elements, a channel each",
                           i == 2 ? "weight" : "bias", gni_shape_text(one->ndim, one->sizes).text,
                           (long long)x->sizes[1]);
    }
}

static gn_status group_norm_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *parameters[2] = {NULL, NULL};
    int64_t groups = a[1].operand.scalar.integer;
    group_check(&s, a);
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    int64_t inner = 1, channels = x->sizes[1] / groups;
    for (int i = 2; i < x->ndim; i++)
        inner *= x->sizes[i];
    const int64_t parts[] = {x->sizes[0], groups, channels, inner};
    const int64_t each[] = {groups, channels, 1};
    for (int i = 0; i < 2; i++)
        if (a[2 + i].is_given)
            parameters[i] = gni_reshape_values(&s, a[2 + i].operand.tensor, 3, each);
    gn_tensor *wide = gni_wide(&s, gni_reshape_values(&s, x, 4, parts));
    double eps = gni_scalar_double(a[4].operand.scalar);
    gn_tensor *made =
        gni_scope_is_ok(&s) ? rows_standardize(&s, wide, last_dims(wide, 2), true, eps) : NULL;
    made = scaled(&s, made, parameters[0], parameters[1]);
    made = gni_scope_is_ok(&s) ? gni_cast(&s, made, x->dtype) : NULL;
    return gni_scope_give(&s, gni_reshape_values(&s, made, x->ndim, x->sizes), results);
}

/* ---- neighbouring channels --------------------------------------------------------------------- */

/* The mean of squares of `size` channels around each; those beyond the ends are 0. */
static gn_tensor *squares_around(struct gni_scope *s, gn_tensor *x, int64_t size)
{
    int64_t before = size / 2, sizes[GN_DIMENSIONS_MAX];
    memcpy(sizes, x->sizes, sizeof sizes);
    gn_tensor *squares = gni_unary(s, GN_OP_SQUARE, x), *parts[3];
    sizes[1] = before;
    parts[0] = gni_full(s, (gn_scalar){.kind = GN_INT64}, x->dtype, x->ndim, sizes, x->device);
    parts[1] = squares;
    sizes[1] = size - 1 - before;
    parts[2] = gni_full(s, (gn_scalar){.kind = GN_INT64}, x->dtype, x->ndim, sizes, x->device);
    gn_tensor *padded = gni_cat(s, 3, parts, 1);
    gn_tensor *sum = gni_narrow(s, padded, 1, 0, x->sizes[1]);
    for (int64_t i = 1; i < size && gni_scope_is_ok(s); i++)
        sum =
            gni_binary(s, GN_OP_ADD, gni_of(sum), gni_of(gni_narrow(s, padded, 1, i, x->sizes[1])));
    return gni_binary(s, GN_OP_DIVIDE, gni_of(sum), gni_integer(size));
}

static gn_status local_response_norm_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    int64_t size = a[1].operand.scalar.integer;
    gni_floating_require(&s, "input", x);
    if (x->ndim < 3)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "input has shape %s: a batch, channels, and at least one dimension more",
                       gni_shape_text(x->ndim, x->sizes).text);
    if (size < 1)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "size is at least 1, not %lld", (long long)size);
    if (!gni_scope_is_ok(&s) || x->count == 0)
        return gni_scope_give(&s, x, results);
    gn_tensor *wide = gni_wide(&s, x);
    gn_tensor *made = gni_scope_is_ok(&s) ? squares_around(&s, wide, size) : NULL;
    made = gni_binary(&s, GN_OP_MULTIPLY, gni_of(made), a[2].operand);
    made = gni_binary(&s, GN_OP_ADD, gni_of(made), a[4].operand);
    made = gni_binary(&s, GN_OP_POWER, gni_of(made), a[3].operand);
    made = gni_binary(&s, GN_OP_DIVIDE, gni_of(wide), gni_of(made));
    return gni_scope_give(&s, gni_cast(&s, made, x->dtype), results);
}

/* ---- the table --------------------------------------------------------------------------------- */

const gn_function gni_functions_nn_norms[] = {
    {"nn.layer_norm", NULL,
     "input: Tensor, normalized_shape: sizes, weight: Tensor = None, bias: Tensor = None, "
     "eps: number = 1e-5",
     0, layer_norm_call,
     "The last dimensions, less their mean and over their deviation, times a weight, and a bias.",
     ">>> genesis.nn.functional.layer_norm(genesis.tensor([[1.0, 3.0]]), (2,), eps=0)\n"
     "tensor([[-1.,  1.]])"},
    {"nn.rms_norm", NULL,
     "input: Tensor, normalized_shape: sizes, weight: Tensor = None, eps: number = None", 0,
     rms_norm_call,
     "The last dimensions over the root of the mean of their squares, times a weight.\n\n"
     "Without `eps` it is the distance from 1 to the next number of the type that is computed in.",
     ">>> genesis.nn.functional.rms_norm(genesis.tensor([[3.0, 3.0]]), (2,))\n"
     "tensor([[1., 1.]])"},
    {"nn.batch_norm", NULL,
     "input: Tensor, running_mean: Tensor = None, running_var: Tensor = None, weight: Tensor = "
     "None, "
     "bias: Tensor = None, training: bool = False, momentum: number = 0.1, eps: number = 1e-5",
     0, batch_norm_call,
     "Each channel (dimension 1) less its mean and over its deviation, times a weight, and a "
     "bias.\n"
     "\nIn training these are of the input, and the running statistics, which may be None, are "
     "updated\nin place; else they are the running ones.",
     ">>> x = genesis.tensor([[1.0], [3.0]])\n"
     ">>> genesis.nn.functional.batch_norm(x, None, None, training=True).round(decimals=3)\n"
     "tensor([[-1.],\n        [ 1.]])"},
    {"nn.instance_norm", NULL,
     "input: Tensor, running_mean: Tensor = None, running_var: Tensor = None, "
     "weight: Tensor = None, bias: Tensor = None, use_input_stats: bool = True, "
     "momentum: number = 0.1, eps: number = 1e-5",
     0, instance_norm_call, "The same for each channel of each element of a batch.",
     ">>> x = genesis.tensor([[[1.0, 3.0]]])\n"
     ">>> genesis.nn.functional.instance_norm(x).round(decimals=3)\ntensor([[[-1.,  1.]]])"},
    {"nn.group_norm", NULL,
     "input: Tensor, num_groups: int, weight: Tensor = None, bias: Tensor = None, "
     "eps: number = 1e-5",
     0, group_norm_call,
     "Groups of channels, less their mean and over their deviation, times a weight, and a bias.",
     ">>> x = genesis.tensor([[1.0, 3.0, 5.0, 9.0]])\n"
     ">>> genesis.nn.functional.group_norm(x, 2, eps=0)\ntensor([[-1.,  1., -1.,  1.]])"},
    {"nn.local_response_norm", NULL,
     "input: Tensor, size: int, alpha: number = 1e-4, beta: number = 0.75, k: number = 1.0", 0,
     local_response_norm_call,
     "``input / (k + alpha * mean of the squares of size channels around) ** beta``.",
     ">>> x = genesis.ones(1, 3, 1)\n"
     ">>> genesis.nn.functional.local_response_norm(x, 1, alpha=1.0, beta=1.0).tolist()\n"
     "[[[0.5], [0.5], [0.5]]]"},
    {0},
};
