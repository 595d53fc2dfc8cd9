/*
 * functions_nn_losses.c: genesis.nn.functional: losses of elements: each is computed from an input and a target at its place.
 *
 * Halves are computed in float32, and the result is rounded once.
 */
#include "ops/losses.h"

#include "tensor/tape.h"

#include <math.h>
#include <string.h>

/* ---- the arguments of a loss of two tensors ------------------------------------------------------ */

struct pair {
    gn_operand x, target;
    gn_dtype dtype; /* of the result */
    enum gni_loss_reduction reduction;
};

/* `average` is the number of size_average among the arguments; -1: there is none. */
static struct pair pair_take(struct gni_scope *s, const gn_argument *a, int reduction, int average,
                             int reduce)
{
    struct pair pair;
    gn_operand in[] = {a[0].operand, a[1].operand};
    pair.reduction = gni_loss_reduction(s, &a[reduction], average >= 0 ? &a[average] : NULL,
                                        reduce >= 0 ? &a[reduce] : NULL);
    pair.dtype = gni_join(s, 2, in, true);
    pair.x = in[0];
    pair.target = in[1];
    return pair;
}

/* Input and target have one shape. */
static void same_check(struct gni_scope *s, const gn_argument *a)
{
    const gn_tensor *x = a[0].operand.tensor, *target = a[1].operand.tensor;
    if (!gni_shape_is_equal(x->ndim, x->sizes, target->ndim, target->sizes))
        gni_scope_fail(s, GN_ERROR_SHAPE, "input has shape %s, and target %s: they are the same",
                       gni_shape_text(x->ndim, x->sizes).text,
                       gni_shape_text(target->ndim, target->sizes).text);
}

/* A weight of the input's shape as the type that is computed in; NULL: none is given. */
static gn_tensor *weight_take(struct gni_scope *s, const gn_argument *a, const gn_argument *weight)
{
    if (!weight->is_given)
        return NULL;
    const gn_tensor *x = a[0].operand.tensor, *given = weight->operand.tensor;
    if (!gni_shape_is_equal(x->ndim, x->sizes, given->ndim, given->sizes))
        gni_scope_fail(s, GN_ERROR_SHAPE, "weight has shape %s, and input %s: they are the same",
                       gni_shape_text(given->ndim, given->sizes).text,
                       gni_shape_text(x->ndim, x->sizes).text);
    return gni_wide(s, weight->operand.tensor);
}

static gn_tensor *times(struct gni_scope *s, gn_tensor *x, gn_operand by)
{
    return gni_binary(s, GN_OP_MULTIPLY, gni_of(x), by);
}

static gn_tensor *apart_of(struct gni_scope *s, const struct pair *pair)
{
    return gni_binary(s, GN_OP_SUBTRACT, pair->x, pair->target);
}

/* ---- distances --------------------------------------------------------------------------------- */

/* A weighted mean is divided by the sum of the weights. */
static gn_status distance_give(struct gni_scope *s, const gn_argument *a, gn_op op,
                               gn_results *results)
{
    struct pair pair = pair_take(s, a, 4, 2, 3);
    gn_tensor *weight = weight_take(s, a, &a[5]);
    gn_tensor *each = gni_unary(s, op, apart_of(s, &pair));
    gn_tensor *made = weight == NULL ? gni_loss_reduce(s, each, pair.reduction, pair.dtype)
                                     : gni_loss_reduce_by(s, times(s, each, gni_of(weight)), weight,
                                                          pair.reduction, pair.dtype);
    return gni_scope_give(s, made, results);
}

static gn_status mse_loss_call(const gn_argument *a, gn_results *results)
{
    return distance_give(&(struct gni_scope){0}, a, GN_OP_SQUARE, results);
}

static gn_status l1_loss_call(const gn_argument *a, gn_results *results)
{
    return distance_give(&(struct gni_scope){0}, a, GN_OP_ABSOLUTE, results);
}

/* slope * (size - edge / 2) from `edge` on, and a parabola before. */
static gn_tensor *rounded_distance(struct gni_scope *s, gn_tensor *apart, double edge, double slope)
{
    gn_tensor *size = gni_unary(s, GN_OP_ABSOLUTE, apart);
    gn_tensor *is_near = gni_binary(s, GN_OP_LESS, gni_of(size), gni_floating(edge));
    gn_tensor *near = times(s, gni_unary(s, GN_OP_SQUARE, apart), gni_floating(0.5 * slope / edge));
    gn_tensor *far = gni_binary(s, GN_OP_SUBTRACT, gni_of(size), gni_floating(0.5 * edge));
    return gni_where(s, is_near, gni_of(near), gni_of(times(s, far, gni_floating(slope))));
}

static gn_status smooth_l1_loss_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    struct pair pair = pair_take(&s, a, 4, 2, 3);
    double beta = gni_scalar_double(a[5].operand.scalar);
    if (!(beta >= 0))
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "beta is not negative: %g", beta);
    gn_tensor *apart = apart_of(&s, &pair);
    gn_tensor *each =
        beta == 0 ? gni_unary(&s, GN_OP_ABSOLUTE, apart) : rounded_distance(&s, apart, beta, 1);
    return gni_scope_give(&s, gni_loss_reduce(&s, each, pair.reduction, pair.dtype), results);
}

static gn_status huber_loss_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    struct pair pair = pair_take(&s, a, 2, -1, -1);
    double delta = gni_scalar_double(a[3].operand.scalar);
    if (!(delta > 0))
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "delta is positive, not %g", delta);
    gn_tensor *weight = weight_take(&s, a, &a[4]);
    gn_tensor *each = rounded_distance(&s, apart_of(&s, &pair), delta, delta);
    if (weight != NULL)
        each = times(&s, each, gni_of(weight));
    return gni_scope_give(&s, gni_loss_reduce(&s, each, pair.reduction, pair.dtype), results);
}

/* ---- two classes ------------------------------------------------------------------------------- */

/* The elements times a weight that broadcasts, reduced. */
static gn_status weighted_give(struct gni_scope *s, gn_tensor *each, const gn_argument *weight,
                               const struct pair *pair, gn_results *results)
{
    if (weight->is_given)
        each = times(s, each, gni_of(gni_wide(s, weight->operand.tensor)));
    return gni_scope_give(s, gni_loss_reduce(s, each, pair->reduction, pair->dtype), results);
}

static gn_status binary_cross_entropy_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    same_check(&s, a);
    struct pair pair = pair_take(&s, a, 5, 3, 4);
    gn_tensor *each = gni_binary_loss(&s, pair.x.tensor, pair.target.tensor);
    return weighted_give(&s, each, &a[2], &pair, results);
}

/* (1 - t) x - (1 + (p - 1) t) log(sigmoid(x)), where p weighs the targets that are 1. */
static gn_status binary_cross_entropy_with_logits_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    same_check(&s, a);
    struct pair pair = pair_take(&s, a, 5, 3, 4);
    gn_tensor *logs = gni_unary(&s, GN_OP_LOG_SIGMOID, pair.x.tensor);
    if (a[6].is_given) {
        gn_tensor *more = gni_binary(&s, GN_OP_SUBTRACT, gni_of(gni_wide(&s, a[6].operand.tensor)),
                                     gni_integer(1));
        more = gni_binary(&s, GN_OP_ADD, gni_of(times(&s, more, pair.target)), gni_integer(1));
        logs = times(&s, logs, gni_of(more));
    }
    gn_tensor *rest = gni_binary(&s, GN_OP_SUBTRACT, gni_integer(1), pair.target);
    gn_tensor *each = gni_binary(&s, GN_OP_SUBTRACT, gni_of(times(&s, rest, pair.x)), gni_of(logs));
    return weighted_give(&s, each, &a[2], &pair, results);
}

static gn_status soft_margin_loss_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    struct pair pair = pair_take(&s, a, 4, 2, 3);
    gn_tensor *product = gni_binary(&s, GN_OP_MULTIPLY, pair.x, pair.target);
    gn_tensor *each = gni_unary(&s, GN_OP_NEGATIVE, gni_unary(&s, GN_OP_LOG_SIGMOID, product));
    return gni_scope_give(&s, gni_loss_reduce(&s, each, pair.reduction, pair.dtype), results);
}

/* ---- distributions ----------------------------------------------------------------------------- */

/* The sum over the first size of the input. */
static gn_tensor *batch_mean(struct gni_scope *s, gn_tensor *each, const gn_tensor *x,
                             gn_dtype dtype)
{
    gn_tensor *sum = gni_reduce(s, GN_REDUCE_SUM, each, 0, false);
    if (x->ndim > 0)
        sum = gni_binary(s, GN_OP_DIVIDE, gni_of(sum), gni_floating((double)x->sizes[0]));
    return gni_cast(s, sum, dtype);
}

static gn_status kl_div_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_argument reduction = a[4];
    bool is_batch = reduction.is_given && strcmp(reduction.text, "batchmean") == 0;
    if (is_batch)
        reduction.text = "sum";
    const gn_argument all[] = {a[0], a[1], a[2], a[3], reduction};
    struct pair pair = pair_take(&s, all, 4, 2, 3);
    gn_tensor *each;
    if (gni_is_set(&a[5])) {
        gn_tensor *apart = gni_binary(&s, GN_OP_SUBTRACT, pair.target, pair.x);
        each = times(&s, gni_unary(&s, GN_OP_EXP, pair.target.tensor), gni_of(apart));
    } else {
        gn_tensor *own = gni_binary(&s, GN_OP_XLOGY, pair.target, pair.target);
        gn_tensor *other = gni_binary(&s, GN_OP_MULTIPLY, pair.target, pair.x);
        each = gni_binary(&s, GN_OP_SUBTRACT, gni_of(own), gni_of(other));
    }
    gn_tensor *made = is_batch && pair.reduction == GNI_LOSS_SUM
                          ? batch_mean(&s, each, a[0].operand.tensor, pair.dtype)
                          : gni_loss_reduce(&s, each, pair.reduction, pair.dtype);
    return gni_scope_give(&s, made, results);
}

/* x - t log(x), or of its logarithm exp(x) - t x; and Stirling's approximation of log(t!). */
static gn_status poisson_nll_loss_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    struct pair pair = pair_take(&s, a, 7, 4, 6);
    double pi = 3.14159265358979323846;
    gn_tensor *made, *t = pair.target.tensor, *logs = pair.x.tensor;
    if (gni_is_set(&a[2])) {
        made = gni_unary(&s, GN_OP_EXP, logs);
    } else {
        made = logs;
        logs = gni_unary(&s, GN_OP_LOG, gni_binary(&s, GN_OP_ADD, pair.x, a[5].operand));
    }
    made = gni_binary(&s, GN_OP_SUBTRACT, gni_of(made), gni_of(times(&s, logs, pair.target)));
    if (gni_is_set(&a[3])) {
        gn_tensor *is_large = gni_binary(&s, GN_OP_GREATER, pair.target, gni_integer(1));
        gn_tensor *log = gni_unary(&s, GN_OP_LOG, t);
        gn_tensor *more =
            gni_binary(&s, GN_OP_SUBTRACT, gni_of(times(&s, log, pair.target)), pair.target);
        log = gni_unary(&s, GN_OP_LOG, times(&s, t, gni_floating(2 * pi)));
        more = gni_binary(&s, GN_OP_ADD, gni_of(more), gni_of(times(&s, log, gni_floating(0.5))));
        more = gni_where(&s, is_large, gni_of(more), gni_integer(0));
        made = gni_binary(&s, GN_OP_ADD, gni_of(made), gni_of(more));
    }
    return gni_scope_give(&s, gni_loss_reduce(&s, made, pair.reduction, pair.dtype), results);
}

/* A variance of the input's shape, of that without the last dimension, or with one dimension as 1; or a number. */
static gn_tensor *variance_take(struct gni_scope *s, const gn_argument *var, const gn_tensor *x,
                                gn_dtype dtype)
{
    gn_tensor *given = var->operand.tensor;
    if (given == NULL)
        return gni_full(s, var->operand.scalar, dtype, 0, NULL, x->device);
    int different = 0;
    for (int i = 0; given->ndim == x->ndim && i < x->ndim; i++)
        different += given->sizes[i] != x->sizes[i];
    bool is_short = given->ndim == x->ndim - 1 &&
                    gni_shape_is_equal(x->ndim - 1, x->sizes, given->ndim, given->sizes);
    bool is_one = given->ndim == x->ndim && different == 1;
    for (int i = 0; is_one && i < x->ndim; i++)
        is_one = given->sizes[i] == x->sizes[i] || given->sizes[i] == 1;
    if (!is_short && !is_one && (given->ndim != x->ndim || different > 0))
        gni_scope_fail(s, GN_ERROR_SHAPE,
                       "var has shape %s, and input %s: var is the same, has 1 for one dimension, "
                       "or lacks the last one",
                       gni_shape_text(given->ndim, given->sizes).text,
                       gni_shape_text(x->ndim, x->sizes).text);
    gn_tensor *made = gni_scope_is_ok(s) ? gni_cast(s, given, dtype) : NULL;
    return is_short && gni_scope_is_ok(s) ? gni_unsqueeze(s, made, made->ndim) : made;
}

/* At least eps. A variance that was less gets a gradient all the same, as in PyTorch. */
static gn_tensor *variance_clamp(struct gni_scope *s, gn_tensor *var, double eps)
{
    if (!gni_scope_is_ok(s))
        return NULL;
    bool is_taped = gni_tape_enter(var);
    gn_tensor *is_negative = gni_binary(s, GN_OP_LESS, gni_of(var), gni_integer(0));
    gn_tensor *any = gni_reduce(s, GN_REDUCE_ANY, is_negative, 0, false);
    if (gni_item(s, any).integer != 0)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "var has a negative element");
    gn_tensor *lack = gni_binary(s, GN_OP_SUBTRACT, gni_floating(eps), gni_of(var));
    lack = gni_at_least_number(s, lack, 0);
    gni_tape_is_paused &= !is_taped;
    return gni_binary(s, GN_OP_ADD, gni_of(var), gni_of(lack));
}

static gn_status gaussian_nll_loss_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    struct pair pair = pair_take(&s, a, 5, -1, -1);
    double pi = 3.14159265358979323846, eps = gni_scalar_double(a[4].operand.scalar);
    gn_tensor *var = gni_scope_is_ok(&s)
                         ? variance_take(&s, &a[2], a[0].operand.tensor, pair.x.tensor->dtype)
                         : NULL;
    var = variance_clamp(&s, var, eps);
    gn_tensor *each = gni_binary(
        &s, GN_OP_DIVIDE, gni_of(gni_unary(&s, GN_OP_SQUARE, apart_of(&s, &pair))), gni_of(var));
    each = gni_binary(&s, GN_OP_ADD, gni_of(gni_unary(&s, GN_OP_LOG, var)), gni_of(each));
    if (gni_is_set(&a[3]))
        each = gni_binary(&s, GN_OP_ADD, gni_of(each), gni_floating(log(2 * pi)));
    each = times(&s, each, gni_floating(0.5));
    return gni_scope_give(&s, gni_loss_reduce(&s, each, pair.reduction, pair.dtype), results);
}

#define TWO "input: Tensor, target: Tensor, "
#define LEGACY "size_average: bool = None, reduce: bool = None, "
#define REDUCED "reduction: text = 'mean'"

const gn_function gni_functions_nn_losses[] = {
    {"nn.mse_loss", NULL, TWO LEGACY REDUCED ", weight: Tensor = None", 0, mse_loss_call,
     "The square of input - target. With weights a mean is divided by their sum.",
     ">>> genesis.nn.functional.mse_loss(genesis.ones(3), genesis.zeros(3))\ntensor(1.)"},
    {"nn.l1_loss", NULL, TWO LEGACY REDUCED ", weight: Tensor = None", 0, l1_loss_call,
     "The size of input - target. With weights a mean is divided by their sum.",
     ">>> genesis.nn.functional.l1_loss(genesis.ones(3), genesis.zeros(3))\ntensor(1.)"},
    {"nn.smooth_l1_loss", NULL, TWO LEGACY REDUCED ", beta: number = 1.0", 0, smooth_l1_loss_call,
     "|input - target| less beta / 2, and a parabola where that is below beta.",
     ">>> genesis.nn.functional.smooth_l1_loss(genesis.ones(3), genesis.zeros(3))\n"
     "tensor(0.5000)"},
    {"nn.huber_loss", NULL, TWO REDUCED ", delta: number = 1.0, weight: Tensor = None", 0,
     huber_loss_call, "Half the square of input - target, and a line where that is above delta.",
     ">>> genesis.nn.functional.huber_loss(genesis.full((3,), 2.0), genesis.zeros(3))\n"
     "tensor(1.5000)"},
    {"nn.binary_cross_entropy", NULL, TWO "weight: Tensor = None, " LEGACY REDUCED, 0,
     binary_cross_entropy_call,
     "-(target log(input) + (1 - target) log(1 - input)): input is a probability. Logarithms are "
     "at "
     "least -100. An input that is no probability gives NaN.",
     ">>> half = genesis.full((2,), 0.5)\n"
     ">>> genesis.nn.functional.binary_cross_entropy(half, genesis.ones(2))\ntensor(0.6931)"},
    {"nn.binary_cross_entropy_with_logits", NULL,
     TWO "weight: Tensor = None, " LEGACY REDUCED ", pos_weight: Tensor = None", 0,
     binary_cross_entropy_with_logits_call,
     "The same of sigmoid(input), which neither overflows nor loses digits.",
     ">>> logits = genesis.zeros(2)\n"
     ">>> genesis.nn.functional.binary_cross_entropy_with_logits(logits, genesis.ones(2))\n"
     "tensor(0.6931)"},
    {"nn.soft_margin_loss", NULL, TWO LEGACY REDUCED, 0, soft_margin_loss_call,
     "log(1 + exp(-target input)): target is 1 or -1.",
     ">>> genesis.nn.functional.soft_margin_loss(genesis.zeros(2), genesis.ones(2))\n"
     "tensor(0.6931)"},
    {"nn.kl_div", NULL, TWO LEGACY REDUCED ", log_target: bool = False", 0, kl_div_call,
     "target (log(target) - input): input has logarithms of probabilities, and with log_target the "
     "target, too.\n\nreduction may be 'batchmean', too: the sum divided by the first size.",
     ">>> logs = genesis.tensor([[0.5, 0.5]]).log()\n"
     ">>> target = genesis.tensor([[1.0, 0.0]])\n"
     ">>> genesis.nn.functional.kl_div(logs, target, reduction='batchmean')\n"
     "tensor(0.6931)"},
    {"nn.poisson_nll_loss", NULL,
     TWO "log_input: bool = True, full: bool = False, size_average: bool = None, "
         "eps: number = 1e-08, reduce: bool = None, " REDUCED,
     0, poisson_nll_loss_call,
     "exp(input) - target input; without log_input input - target log(input + eps).\n\n`full` adds "
     "Stirling's approximation of log(target!).",
     ">>> genesis.nn.functional.poisson_nll_loss(genesis.zeros(2), genesis.ones(2))\ntensor(1.)"},
    {"nn.gaussian_nll_loss", NULL,
     TWO "var: operand, full: bool = False, eps: number = 1e-06, " REDUCED, 0,
     gaussian_nll_loss_call,
     "(log(var) + (input - target)^2 / var) / 2, where var is at least eps. `full` adds "
     "log(2 pi) / 2.",
     ">>> one = genesis.ones(2)\n"
     ">>> genesis.nn.functional.gaussian_nll_loss(one, genesis.zeros(2), one)\ntensor(0.5000)"},
    {0},
};
