/*
 * functions_nn_activations.c: genesis.nn.functional: activations that are no operations of their own, and those in place.
 *
 * Those made of several steps are computed in float32 for halves, and rounded once.
 */
#include "ops/functions_nn.h"

#include <math.h>

/* ---- operations in place ----------------------------------------------------------------------- */

/* The first parameter takes over what an operation gives; the arguments are its operands. */
static gn_status write_operation(gn_op op, int arity, const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_operand operands[3];
    for (int i = 0; i < arity; i++)
        operands[i] = a[i].operand;
    s.status = gn_elementwise_into(op, operands, a[0].operand.tensor);
    return gni_scope_give(&s, a[0].operand.tensor, results);
}

#define IN_PLACE(name, OP, arity)                                               \
    static gn_status name##_in_place(const gn_argument *a, gn_results *results) \
    {                                                                           \
        return write_operation(GN_OP_##OP, arity, a, results);                  \
    }

IN_PLACE(relu, RELU, 1)
IN_PLACE(selu, SELU, 1)
IN_PLACE(elu, ELU, 2)
IN_PLACE(celu, CELU, 2)
IN_PLACE(leaky_relu, LEAKY_RELU, 2)
IN_PLACE(hardtanh, CLAMP, 3)

/* ---- thresholds -------------------------------------------------------------------------------- */

static gn_tensor *by_threshold(struct gni_scope *s, const gn_argument *a)
{
    gn_tensor *x = a[0].operand.tensor;
    gn_tensor *is_low = gni_binary(s, GN_OP_LESS_EQUAL, gni_of(x), a[1].operand);
    gn_tensor *made = gni_where(s, is_low, a[2].operand, gni_of(x));
    if (gni_scope_is_ok(s) && made->dtype != x->dtype)
        gni_scope_fail(s, GN_ERROR_TYPE, "the value %s cannot be stored in genesis.%s",
                       gni_number_text(a[2].operand.scalar).text, gni_dtypes[x->dtype].name);
    return made;
}

static gn_status threshold_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *made = by_threshold(&s, a);
    return gni_give_in_place(&s, made, a[0].operand.tensor, gni_is_set(&a[3]), results);
}

static gn_status threshold_in_place(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *made = by_threshold(&s, a);
    return gni_give_in_place(&s, made, a[0].operand.tensor, true, results);
}

/* Elements between -lambd and lambd are 0; others are moved by lambd towards 0, or stay. NaN stays. */
static gn_status shrink(const gn_argument *a, bool is_moved, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    double lambd = gni_scalar_double(a[1].operand.scalar);
    gni_floating_require(&s, "input", x);
    if (is_moved && !(lambd >= 0))
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "lambd is not negative: %s",
                       gni_number_text(a[1].operand.scalar).text);
    gn_tensor *is_high = gni_binary(&s, GN_OP_GREATER_EQUAL, gni_of(x), gni_floating(-lambd));
    gn_tensor *is_low = gni_binary(&s, GN_OP_LESS_EQUAL, gni_of(x), gni_floating(lambd));
    gn_tensor *is_small = gni_binary(&s, GN_OP_LOGICAL_AND, gni_of(is_high), gni_of(is_low));
    gn_tensor *made = x;
    if (is_moved) {
        gn_tensor *is_above = gni_binary(&s, GN_OP_GREATER, gni_of(x), gni_integer(0));
        gn_tensor *shift = gni_where(&s, is_above, gni_floating(lambd), gni_floating(-lambd));
        shift = gni_scope_is_ok(&s) ? gni_cast(&s, shift, x->dtype) : NULL;
        made = gni_binary(&s, GN_OP_SUBTRACT, gni_of(x), gni_of(shift));
    }
    return gni_scope_give(&s, gni_where(&s, is_small, gni_integer(0), gni_of(made)), results);
}

static gn_status softshrink_call(const gn_argument *a, gn_results *results)
{
    return shrink(a, true, results);
}

static gn_status hardshrink_call(const gn_argument *a, gn_results *results)
{
    return shrink(a, false, results);
}

static gn_status hardsigmoid_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    gni_floating_require(&s, "input", x);
    gn_tensor *moved = gni_binary(&s, GN_OP_ADD, gni_of(gni_wide(&s, x)), gni_integer(3));
    gn_tensor *made =
        gni_binary(&s, GN_OP_DIVIDE, gni_of(gni_unary(&s, GN_OP_RELU6, moved)), gni_integer(6));
    made = gni_scope_is_ok(&s) ? gni_cast(&s, made, x->dtype) : NULL;
    return gni_give_in_place(&s, made, x, gni_is_set(&a[1]), results);
}

/* ---- smooth functions -------------------------------------------------------------------------- */

static gn_status softsign_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_operand in[] = {a[0].operand};
    gn_dtype dtype = gni_join(&s, 1, in, true);
    gn_tensor *size = gni_unary(&s, GN_OP_ABSOLUTE, in[0].tensor);
    size = gni_binary(&s, GN_OP_ADD, gni_of(size), gni_integer(1));
    gn_tensor *made = gni_binary(&s, GN_OP_DIVIDE, in[0], gni_of(size));
    return gni_scope_give(&s, gni_scope_is_ok(&s) ? gni_cast(&s, made, dtype) : NULL, results);
}

static gn_status tanhshrink_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_operand in[] = {a[0].operand};
    gn_dtype dtype = gni_join(&s, 1, in, true);
    gn_tensor *made =
        gni_binary(&s, GN_OP_SUBTRACT, in[0], gni_of(gni_unary(&s, GN_OP_TANH, in[0].tensor)));
    return gni_scope_give(&s, gni_scope_is_ok(&s) ? gni_cast(&s, made, dtype) : NULL, results);
}

/* Both halves of a dimension. They are one step on the tape: the gradient is made of theirs at once. */
static void halves_take(struct gni_scope *s, gn_tensor *x, int dim, gn_tensor *halves[2])
{
    const gn_operand input = {.tensor = x};
    const struct gni_parts_details details = {.dimension = dim};
    if (!gni_scope_is_ok(s))
        return;
    bool is_taped = gni_tape_enter(x);
    int64_t size = x->sizes[dim] / 2;
    for (int i = 0; i < 2; i++)
        halves[i] = gni_narrow(s, x, dim, i * size, size);
    gni_tape_is_paused &= !is_taped;
    if (is_taped && gni_scope_is_ok(s))
        s->status = gni_tape.record(&(struct gni_tape_step){.rule = GNI_RULE_PARTS,
                                                            .name = "glu",
                                                            .input_count = 1,
                                                            .inputs = &input,
                                                            .result_count = 2,
                                                            .results = halves,
                                                            .details = &details,
                                                            .detail_bytes = sizeof details});
}

static gn_status glu_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *halves[2] = {NULL, NULL};
    gni_floating_require(&s, "input", x);
    if (x->ndim == 0)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "input has at least one dimension, which is halved");
    int dim = gni_dim(&s, x, a[1].operand.scalar.integer);
    if (gni_scope_is_ok(&s) && x->sizes[dim] % 2 != 0)
        gni_scope_fail(&s, GN_ERROR_SHAPE,
                       "dimension %d of shape %s is halved, and has an odd number of elements", dim,
                       gni_shape_text(x->ndim, x->sizes).text);
    halves_take(&s, x, dim, halves);
    if (!gni_scope_is_ok(&s))
        return gni_scope_close(&s);
    gn_tensor *gate = gni_unary(&s, GN_OP_SIGMOID, gni_wide(&s, halves[1]));
    gn_tensor *made = gni_binary(&s, GN_OP_MULTIPLY, gni_of(gni_wide(&s, halves[0])), gni_of(gate));
    return gni_scope_give(&s, gni_scope_is_ok(&s) ? gni_cast(&s, made, x->dtype) : NULL, results);
}

/* ---- slopes ------------------------------------------------------------------------------------ */

/* x where it is above 0, and x times a slope elsewhere. */
static gn_tensor *by_slope(struct gni_scope *s, gn_tensor *x, gn_tensor *slope)
{
    gn_tensor *is_above = gni_binary(s, GN_OP_GREATER, gni_of(x), gni_integer(0));
    gn_tensor *below = gni_binary(s, GN_OP_MULTIPLY, gni_of(x), gni_of(slope));
    return gni_where(s, is_above, gni_of(x), gni_of(below));
}

static gn_status prelu_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *weight = a[1].operand.tensor;
    int64_t channels = x->ndim > 1 ? x->sizes[1] : 1, sizes[GN_DIMENSIONS_MAX];
    gni_floating_require(&s, "input", x);
    if (weight->dtype != x->dtype)
        gni_scope_fail(&s, GN_ERROR_TYPE, "input is genesis.%s, and weight genesis.%s",
                       gni_dtypes[x->dtype].name, gni_dtypes[weight->dtype].name);
    if (weight->ndim > 1 || (weight->count != 1 && weight->count != channels))
        gni_scope_fail(&s, GN_ERROR_SHAPE,
                       "weight has shape %s: it has one element, or %lld, a channel each",
                       gni_shape_text(weight->ndim, weight->sizes).text, (long long)channels);
    for (int i = 0; i < x->ndim; i++)
        sizes[i] = i == 1 && weight->count != 1 ? channels : 1;
    gn_tensor *slope = gni_reshape_values(&s, weight, x->ndim, sizes);
    return gni_scope_give(&s, by_slope(&s, x, slope), results);
}

/* With slopes that are drawn in training; else by the mean of both ends. */
static gn_status by_random_slope(const gn_argument *a, bool is_in_place, gn_generator *generator,
                                 gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *made = NULL;
    double lower = gni_scalar_double(a[1].operand.scalar);
    double upper = gni_scalar_double(a[2].operand.scalar);
    gni_floating_require(&s, "input", x);
    if (!(lower <= upper))
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "lower is at most upper: %g and %g", lower,
                       upper);
    if (!gni_is_set(&a[3])) {
        const gn_operand operands[] = {gni_of(x), gni_floating((lower + upper) / 2)};
        if (!is_in_place)
            made = gni_elementwise(&s, GN_OP_LEAKY_RELU, 2, operands);
        else if (gni_scope_is_ok(&s))
            s.status = gn_elementwise_into(GN_OP_LEAKY_RELU, operands, made = x);
        return gni_scope_give(&s, made, results);
    }
    gn_tensor *drawn = gni_empty(&s, GN_FLOAT32, x->ndim, x->sizes, x->device);
    if (gni_scope_is_ok(&s))
        s.status = gn_random_uniform(drawn, generator);
    gn_tensor *slope = gni_binary(&s, GN_OP_MULTIPLY, gni_of(drawn), gni_floating(upper - lower));
    slope = gni_binary(&s, GN_OP_ADD, gni_of(slope), gni_floating(lower));
    slope = gni_scope_is_ok(&s) ? gni_cast(&s, slope, x->dtype) : NULL;
    return gni_give_in_place(&s, by_slope(&s, x, slope), x, is_in_place, results);
}

static gn_status rrelu_call(const gn_argument *a, gn_results *results)
{
    return by_random_slope(a, gni_is_set(&a[4]), a[5].generator, results);
}

static gn_status rrelu_in_place(const gn_argument *a, gn_results *results)
{
    return by_random_slope(a, true, a[4].generator, results);
}

/* ---- samples ----------------------------------------------------------------------------------- */

static gn_tensor *softmax_of(struct gni_scope *s, gn_tensor *x, int dim)
{
    gn_tensor *made = NULL;
    if (gni_scope_is_ok(s))
        s->status = gn_softmax(x, dim, false, &made);
    return gni_scope_keep(s, s->status, made);
}

/* 1 where each row has its largest element, and 0 elsewhere; with the gradient of the elements. */
static gn_tensor *hardened(struct gni_scope *s, gn_tensor *soft, int dim)
{
    gn_tensor *largest = NULL, *fixed = gni_detached(s, soft);
    if (!gni_scope_is_ok(s) || soft->count == 0)
        return soft;
    if (soft->ndim == 0)
        return gni_one_of(s, soft);
    int64_t sizes[GN_DIMENSIONS_MAX];
    for (int i = 0; i < soft->ndim; i++)
        sizes[i] = i == dim ? soft->sizes[i] : 1;
    gn_tensor *places =
        gni_view(s, gni_arange(s, soft->sizes[dim], soft->device), soft->ndim, sizes);
    if (gni_scope_is_ok(s))
        s->status = gn_extreme(fixed, dim, true, NULL, &largest);
    largest = gni_unsqueeze(s, gni_scope_keep(s, s->status, largest), dim);
    gn_tensor *is_largest = gni_binary(s, GN_OP_EQUAL, gni_of(places), gni_of(largest));
    gn_tensor *hard = gni_scope_is_ok(s) ? gni_cast(s, is_largest, soft->dtype) : NULL;
    hard = gni_binary(s, GN_OP_SUBTRACT, gni_of(hard), gni_of(fixed));
    return gni_binary(s, GN_OP_ADD, gni_of(hard), gni_of(soft));
}

/* Minus the logarithm of times to the next of events, in the type that is computed in. */
static gn_tensor *gumbel_noise(struct gni_scope *s, const gn_tensor *x, gn_generator *generator)
{
    gn_dtype dtype = gni_dtypes[x->dtype].compute;
    gn_tensor *drawn = gni_empty(s, dtype, x->ndim, x->sizes, x->device);
    if (gni_scope_is_ok(s))
        s->status = gn_random_uniform(drawn, generator);
    /* Numbers are multiples of 2 to the power of -24, or -53; 0 would be infinite. */
    gn_operand least = gni_floating(dtype == GN_FLOAT64 ? 0x1p-54 : 0x1p-25);
    drawn = gni_binary(s, GN_OP_MAXIMUM, gni_of(drawn), least);
    gn_tensor *times = gni_unary(s, GN_OP_NEGATIVE, gni_unary(s, GN_OP_LOG, drawn));
    return gni_unary(s, GN_OP_NEGATIVE, gni_unary(s, GN_OP_LOG, times));
}

static gn_status gumbel_softmax_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    gni_floating_require(&s, "logits", x);
    int dim = gni_dim(&s, x, a[4].operand.scalar.integer);
    gn_tensor *noise = gni_scope_is_ok(&s) ? gumbel_noise(&s, x, a[5].generator) : NULL;
    gn_tensor *made = gni_binary(&s, GN_OP_ADD, gni_of(gni_wide(&s, x)), gni_of(noise));
    made = gni_binary(&s, GN_OP_DIVIDE, gni_of(made), a[1].operand);
    made = softmax_of(&s, gni_scope_is_ok(&s) ? gni_cast(&s, made, x->dtype) : NULL, dim);
    return gni_scope_give(&s, gni_is_set(&a[2]) ? hardened(&s, made, dim) : made, results);
}

/* ---- the table --------------------------------------------------------------------------------- */

const gn_function gni_functions_nn_activations[] = {
    {"nn.relu_", NULL, "input: Tensor", 0, relu_in_place, "relu() in place.",
     ">>> genesis.nn.functional.relu_(genesis.tensor([-1.0, 2.0]))\ntensor([0., 2.])"},
    {"nn.selu_", NULL, "input: Tensor", 0, selu_in_place, "selu() in place.",
     ">>> genesis.nn.functional.selu_(genesis.tensor([0.0, 1.0]))\ntensor([0.0000, 1.0507])"},
    {"nn.elu_", NULL, "input: Tensor, alpha: number = 1.0", 0, elu_in_place, "elu() in place.",
     ">>> genesis.nn.functional.elu_(genesis.tensor([0.0, 2.0]))\ntensor([0., 2.])"},
    {"nn.celu_", NULL, "input: Tensor, alpha: number = 1.0", 0, celu_in_place, "celu() in place.",
     ">>> genesis.nn.functional.celu_(genesis.tensor([0.0, 2.0]))\ntensor([0., 2.])"},
    {"nn.leaky_relu_", NULL, "input: Tensor, negative_slope: number = 0.01", 0, leaky_relu_in_place,
     "leaky_relu() in place.",
     ">>> genesis.nn.functional.leaky_relu_(genesis.tensor([-1.0, 2.0]), 0.5)\n"
     "tensor([-0.5000,  2.0000])"},
    {"nn.hardtanh_", NULL, "input: Tensor, min_val: number = -1.0, max_val: number = 1.0", 0,
     hardtanh_in_place, "hardtanh() in place.",
     ">>> genesis.nn.functional.hardtanh_(genesis.tensor([-2.0, 0.5]))\n"
     "tensor([-1.0000,  0.5000])"},
    {"nn.threshold", NULL, "input: Tensor, threshold: number, value: number, inplace: bool = False",
     0, threshold_call, "The elements that are above a threshold; the others become a value.",
     ">>> genesis.nn.functional.threshold(genesis.tensor([1.0, 3.0]), 2, 0)\ntensor([0., 3.])"},
    {"nn.threshold_", NULL, "input: Tensor, threshold: number, value: number", 0,
     threshold_in_place, "threshold() in place.",
     ">>> genesis.nn.functional.threshold_(genesis.tensor([1.0, 3.0]), 2, 0)\ntensor([0., 3.])"},
    {"nn.softshrink", NULL, "input: Tensor, lambd: number = 0.5", GN_FORM_OUT, softshrink_call,
     "The elements moved by `lambd` towards 0, and 0 where they are nearer.",
     ">>> genesis.nn.functional.softshrink(genesis.tensor([0.25, 2.0]))\n"
     "tensor([0.0000, 1.5000])"},
    {"nn.hardshrink", NULL, "input: Tensor, lambd: number = 0.5", GN_FORM_OUT, hardshrink_call,
     "The elements, and 0 where they are at most `lambd` from 0.",
     ">>> genesis.nn.functional.hardshrink(genesis.tensor([0.25, 2.0]))\ntensor([0., 2.])"},
    {"nn.hardsigmoid", NULL, "input: Tensor, inplace: bool = False", 0, hardsigmoid_call,
     "relu6(x + 3) / 6.",
     ">>> genesis.nn.functional.hardsigmoid(genesis.tensor([-4.0, 0.0, 4.0]))\n"
     "tensor([0.0000, 0.5000, 1.0000])"},
    {"nn.softsign", NULL, "input: Tensor", 0, softsign_call, "x / (1 + abs(x)).",
     ">>> genesis.nn.functional.softsign(genesis.tensor([1.0, -3.0]))\n"
     "tensor([ 0.5000, -0.7500])"},
    {"nn.tanhshrink", NULL, "input: Tensor", 0, tanhshrink_call, "x - tanh(x).",
     ">>> genesis.nn.functional.tanhshrink(genesis.tensor([0.0, 1.0]))\n"
     "tensor([0.0000, 0.2384])"},
    {"nn.glu", NULL, "input: Tensor, dim: dim = -1", GN_FORM_OUT, glu_call,
     "The first half of a dimension times the sigmoid of the second half.",
     ">>> genesis.nn.functional.glu(genesis.tensor([2.0, 0.0]))\ntensor([1.])"},
    {"nn.prelu", NULL, "input: Tensor, weight: Tensor", 0, prelu_call,
     "x, or times a weight where it is not above 0: one weight, or one for each channel.",
     ">>> genesis.nn.functional.prelu(genesis.tensor([-2.0, 2.0]), genesis.tensor([0.25]))\n"
     "tensor([-0.5000,  2.0000])"},
    {"nn.rrelu", NULL,
     "input: Tensor, lower: number = 0.125, upper: number = 0.3333333333333333, "
     "training: bool = False, inplace: bool = False, *, generator: generator = None",
     0, rrelu_call,
     "x, or times a slope where it is not above 0: random ones in training, else their mean.",
     ">>> genesis.nn.functional.rrelu(genesis.tensor([-1.0, 2.0]), 0.25, 0.75)\n"
     "tensor([-0.5000,  2.0000])"},
    {"nn.rrelu_", NULL,
     "input: Tensor, lower: number = 0.125, upper: number = 0.3333333333333333, "
     "training: bool = False, *, generator: generator = None",
     0, rrelu_in_place, "rrelu() in place.",
     ">>> genesis.nn.functional.rrelu_(genesis.tensor([-1.0, 2.0]), 0.25, 0.75)\n"
     "tensor([-0.5000,  2.0000])"},
    {"nn.gumbel_softmax", NULL,
     "logits: Tensor, tau: number = 1, hard: bool = False, eps: number = 1e-10, dim: dim = -1, *, "
     "generator: generator = None",
     0, gumbel_softmax_call,
     "Samples of categories: the softmax of logits with random numbers added to them.\n\n"
     "With ``hard=True`` they are 0 and 1, with the gradient of what they would be otherwise;\n"
     "`eps` has no effect.",
     ">>> logits = genesis.tensor([0.0, 100.0])\n"
     ">>> genesis.nn.functional.gumbel_softmax(logits, hard=True)\ntensor([0., 1.])"},
    {0},
};
