/*
 * functions_elements.c: elementwise functions that are made of operations.
 */
#include "ops/functions.h"
#include "tensor/tape.h"

#include <math.h>

/* ---- bounds ------------------------------------------------------------------------------------ */

/* One bound. On the tape a number is a clamp with an infinite other one: the gradient at the bound is 0, not half of it. */
static gn_tensor *bound_one(struct gni_scope *s, gn_operand x, gn_operand bound, bool is_least)
{
    const double infinity = is_least ? (double)INFINITY : -(double)INFINITY;
    if (bound.tensor == NULL && gni_is_taped(x.tensor))
        return gni_elementwise(s, GN_OP_CLAMP, 3,
                               (const gn_operand[]){x, is_least ? bound : gni_floating(infinity),
                                                    is_least ? gni_floating(infinity) : bound});
    return gni_binary(s, is_least ? GN_OP_MAXIMUM : GN_OP_MINIMUM, x, bound);
}

static gn_status clamp_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *made = NULL;
    if (!a[1].is_given && !a[2].is_given)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "min or max must be given");
    else if (!a[2].is_given)
        made = bound_one(&s, a[0].operand, a[1].operand, true);
    else if (!a[1].is_given)
        made = bound_one(&s, a[0].operand, a[2].operand, false);
    else
        made = gni_elementwise(&s, GN_OP_CLAMP, 3,
                               (const gn_operand[]){a[0].operand, a[1].operand, a[2].operand});
    return gni_scope_give(&s, made, results);
}

static gn_status clamp_min_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    return gni_scope_give(&s, bound_one(&s, a[0].operand, a[1].operand, true), results);
}

static gn_status clamp_max_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    return gni_scope_give(&s, bound_one(&s, a[0].operand, a[1].operand, false), results);
}

/* ---- sums with a factor ------------------------------------------------------------------------ */

static bool is_one(gn_scalar number)
{
    return gni_scalar_double(number) == 1;
}

/* input + value * (first op second), rounded once. */
static gn_status add_product(const gn_argument *a, gn_op op, gn_results *results)
{
    struct gni_scope s = {0};
    gn_operand in[] = {a[0].operand, a[1].operand, a[2].operand};
    gn_dtype dtype = gni_join(&s, 3, in, false);
    if (op == GN_OP_DIVIDE && !is_one(a[3].operand.scalar))
        in[1] = gni_of(gni_binary(&s, GN_OP_MULTIPLY, in[1], a[3].operand));
    gn_tensor *product = gni_binary(&s, op, in[1], in[2]);
    if (op == GN_OP_MULTIPLY && !is_one(a[3].operand.scalar))
        product = gni_binary(&s, GN_OP_MULTIPLY, gni_of(product), a[3].operand);
    gn_tensor *made = gni_binary(&s, GN_OP_ADD, in[0], gni_of(product));
    if (gni_dtype_is_half(dtype))
        made = gni_cast(&s, made, dtype);
    return gni_scope_give(&s, made, results);
}

static gn_status addcmul_call(const gn_argument *a, gn_results *results)
{
    return add_product(a, GN_OP_MULTIPLY, results);
}

static gn_status addcdiv_call(const gn_argument *a, gn_results *results)
{
    return add_product(a, GN_OP_DIVIDE, results);
}

/* ---- powers and logarithms --------------------------------------------------------------------- */

static gn_operand as_double(struct gni_scope *s, gn_operand operand)
{
    if (operand.tensor != NULL)
        return gni_of(gni_cast(s, operand.tensor, GN_FLOAT64));
    return gni_floating(gni_scalar_double(operand.scalar));
}

static gn_status float_power_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_operand base = as_double(&s, a[0].operand), exponent = as_double(&s, a[1].operand);
    return gni_scope_give(&s, gni_binary(&s, GN_OP_POWER, base, exponent), results);
}

static gn_status polygamma_of(gn_tensor *x, int64_t n, gn_results *results)
{
    struct gni_scope s = {0};
    if (n < 0 || n > 32)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "n is from 0 to 32, not %lld", (long long)n);
    gn_tensor *made = n == 0 ? gni_unary(&s, GN_OP_DIGAMMA, x)
                             : gni_binary(&s, GN_OP_POLYGAMMA, gni_integer(n), gni_of(x));
    return gni_scope_give(&s, made, results);
}

static gn_status polygamma_call(const gn_argument *a, gn_results *results)
{
    return polygamma_of(a[1].operand.tensor, a[0].operand.scalar.integer, results);
}

static gn_status polygamma_method(const gn_argument *a, gn_results *results)
{
    return polygamma_of(a[0].operand.tensor, a[1].operand.scalar.integer, results);
}

static gn_status frac_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *whole = gni_unary(&s, GN_OP_TRUNC, a[0].operand.tensor);
    return gni_scope_give(&s, gni_binary(&s, GN_OP_SUBTRACT, a[0].operand, gni_of(whole)), results);
}

static gn_status deg2rad_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_operand factor = gni_floating(M_PI / 180);
    return gni_scope_give(&s, gni_binary(&s, GN_OP_MULTIPLY, a[0].operand, factor), results);
}

static gn_status rad2deg_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_operand factor = gni_floating(180 / M_PI);
    return gni_scope_give(&s, gni_binary(&s, GN_OP_MULTIPLY, a[0].operand, factor), results);
}

/* ---- NaN, infinities and signs ----------------------------------------------------------------- */

static gn_tensor *is_nan(struct gni_scope *s, gn_operand operand)
{
    return gni_binary(s, GN_OP_NOT_EQUAL, operand, operand);
}

/* The larger or smaller of two; the other one where one is NaN. */
static gn_status extreme_beside_nan(const gn_argument *a, gn_op op, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *made = gni_binary(&s, op, a[0].operand, a[1].operand);
    gn_operand other = a[1].operand;
    made = gni_where(&s, is_nan(&s, a[0].operand), other, gni_of(made));
    if (other.tensor != NULL)
        made = gni_where(&s, is_nan(&s, other), a[0].operand, gni_of(made));
    else if (isnan(gni_scalar_double(other.scalar)))
        made = a[0].operand.tensor;
    return gni_scope_give(&s, made, results);
}

static gn_status fmax_call(const gn_argument *a, gn_results *results)
{
    return extreme_beside_nan(a, GN_OP_MAXIMUM, results);
}

static gn_status fmin_call(const gn_argument *a, gn_results *results)
{
    return extreme_beside_nan(a, GN_OP_MINIMUM, results);
}

/* Whether the sign is set: of the bits as an integer, which have no gradient. */
static gn_tensor *signbit_of(struct gni_scope *s, gn_tensor *x)
{
    if (gni_scope_is_ok(s) && gni_dtype_is_floating(x->dtype)) {
        gn_dtype bits = gni_dtype_size(x->dtype) == 2   ? GN_INT16
                        : gni_dtype_size(x->dtype) == 4 ? GN_INT32
                                                        : GN_INT64;
        gn_tensor *view = NULL;
        bool is_taped = gni_tape_enter(x); /* integers have no gradient */
        gn_status status = gn_tensor_view_as_dtype(x, bits, &view);
        gni_tape_is_paused &= !is_taped;
        x = gni_scope_keep(s, status, view);
    }
    return gni_binary(s, GN_OP_LESS, gni_of(x), gni_integer(0));
}

static gn_status signbit_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    return gni_scope_give(&s, signbit_of(&s, a[0].operand.tensor), results);
}

static gn_status copysign_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *input = a[0].operand.tensor, *other = a[1].operand.tensor;
    gn_dtype dtype = input->dtype;
    if (other != NULL)
        s.status = gn_result_type(2, (const gn_operand[]){a[0].operand, a[1].operand}, &dtype);
    if (!gni_dtype_is_floating(dtype))
        dtype = gn_get_default_dtype();
    gn_tensor *size = gni_unary(&s, GN_OP_ABSOLUTE, gni_cast(&s, input, dtype));
    if (gni_is_taped(other)) /* it has a gradient, which is 0 */
        size = gni_binary(&s, GN_OP_MULTIPLY, gni_of(size), gni_of(gni_one_of(&s, other)));
    gn_tensor *minus = gni_unary(&s, GN_OP_NEGATIVE, size), *made;
    if (other != NULL)
        made = gni_where(&s, signbit_of(&s, other), gni_of(minus), gni_of(size));
    else
        made = signbit(gni_scalar_double(a[1].operand.scalar)) ? minus : size;
    return gni_scope_give(&s, made, results);
}

static gn_status isposinf_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_operand infinity = gni_floating(INFINITY);
    return gni_scope_give(&s, gni_binary(&s, GN_OP_EQUAL, a[0].operand, infinity), results);
}

static gn_status isneginf_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_operand infinity = gni_floating(-INFINITY);
    return gni_scope_give(&s, gni_binary(&s, GN_OP_EQUAL, a[0].operand, infinity), results);
}

/* The largest finite number of a floating type. */
static double largest_of(gn_dtype dtype)
{
    return dtype == GN_FLOAT16    ? 65504.0
           : dtype == GN_BFLOAT16 ? 0x1.fep127
           : dtype == GN_FLOAT32  ? (double)__FLT_MAX__
                                  : __DBL_MAX__;
}

static gn_status nan_to_num_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *input = a[0].operand.tensor;
    if (!gni_dtype_is_floating(input->dtype))
        return gni_scope_give(&s, gni_clone(&s, input), results);
    double most = largest_of(input->dtype);
    double high = a[2].is_given ? gni_scalar_double(a[2].operand.scalar) : most;
    double low = a[3].is_given ? gni_scalar_double(a[3].operand.scalar) : -most;
    double none = a[1].is_given ? gni_scalar_double(a[1].operand.scalar) : 0;
    gn_tensor *made = gni_where(&s, is_nan(&s, a[0].operand), gni_floating(none), a[0].operand);
    gn_tensor *is_high = gni_binary(&s, GN_OP_EQUAL, a[0].operand, gni_floating(INFINITY));
    gn_tensor *is_low = gni_binary(&s, GN_OP_EQUAL, a[0].operand, gni_floating(-INFINITY));
    made = gni_where(&s, is_high, gni_floating(high), gni_of(made));
    made = gni_where(&s, is_low, gni_floating(low), gni_of(made));
    return gni_scope_give(&s, made, results);
}

/* ---- the table --------------------------------------------------------------------------------- */

enum {
    OF_ELEMENTS = GN_FORM_METHOD | GN_FORM_IN_PLACE | GN_FORM_OUT,
    TESTS = GN_FORM_METHOD | GN_FORM_OUT,
};

const gn_function gni_functions_elements[] = {
    {"clamp", "clip", "input: Tensor, min: operand = None, max: operand = None", OF_ELEMENTS,
     clamp_call, "The elements, or a bound where they are beyond it; NaN stays.",
     ">>> genesis.clamp(genesis.tensor([-1, 5, 20]), 0, 10)\ntensor([ 0,  5, 10])"},
    {"clamp_min", NULL, "input: Tensor, min: operand", OF_ELEMENTS, clamp_min_call,
     "The elements, or a bound where they are below it; NaN stays.",
     ">>> genesis.clamp_min(genesis.tensor([-1, 5]), 0)\ntensor([0, 5])"},
    {"clamp_max", NULL, "input: Tensor, max: operand", OF_ELEMENTS, clamp_max_call,
     "The elements, or a bound where they are above it; NaN stays.",
     ">>> genesis.clamp_max(genesis.tensor([-1, 5]), 0)\ntensor([-1,  0])"},
    {"addcmul", NULL, "input: Tensor, tensor1: operand, tensor2: operand, *, value: number = 1",
     OF_ELEMENTS, addcmul_call, "``input + value * tensor1 * tensor2``.",
     ">>> genesis.addcmul(genesis.ones(2), genesis.tensor([2.0, 3.0]), genesis.tensor(5.0))\n"
     "tensor([11., 16.])"},
    {"addcdiv", NULL, "input: Tensor, tensor1: operand, tensor2: operand, *, value: number = 1",
     OF_ELEMENTS, addcdiv_call, "``input + value * tensor1 / tensor2``.",
     ">>> genesis.addcdiv(genesis.ones(2), genesis.tensor([2.0, 3.0]), genesis.tensor(2.0))\n"
     "tensor([2.0000, 2.5000])"},
    {"float_power", NULL, "input: operand, exponent: operand", OF_ELEMENTS, float_power_call,
     "The first to the power of the second, in float64 whatever they are.",
     ">>> genesis.float_power(genesis.tensor([2, 4]), -0.5)\n"
     "tensor([0.7071, 0.5000], dtype=genesis.float64)"},
    {"polygamma", NULL, "n: int, input: Tensor", GN_FORM_OUT, polygamma_call,
     "The n-th derivative of digamma, for n from 0 to 32.",
     ">>> genesis.polygamma(1, genesis.tensor([1.0, 2.0]))\ntensor([1.6449, 0.6449])"},
    {"polygamma", NULL, "input: Tensor, n: int",
     GN_FORM_METHOD | GN_FORM_IN_PLACE | GN_FORM_NO_FUNCTION, polygamma_method,
     "The n-th derivative of digamma, for n from 0 to 32.",
     ">>> genesis.tensor([1.0, 2.0]).polygamma(1)\ntensor([1.6449, 0.6449])"},
    {"frac", NULL, "input: Tensor", OF_ELEMENTS, frac_call,
     "The fraction: the element less its whole part, with the same sign.",
     ">>> genesis.frac(genesis.tensor([1.5, -2.25]))\ntensor([ 0.5000, -0.2500])"},
    {"deg2rad", NULL, "input: Tensor", OF_ELEMENTS, deg2rad_call, "Degrees as radians.",
     ">>> genesis.deg2rad(genesis.tensor([180.0]))\ntensor([3.1416])"},
    {"rad2deg", NULL, "input: Tensor", OF_ELEMENTS, rad2deg_call, "Radians as degrees.",
     ">>> genesis.rad2deg(genesis.tensor([0.5]))\ntensor([28.6479])"},
    {"fmax", NULL, "input: Tensor, other: operand", OF_ELEMENTS, fmax_call,
     "The larger of two; the other one where one is NaN.",
     ">>> genesis.fmax(genesis.tensor([1.0, float(\"nan\")]), genesis.tensor([3.0, 2.0]))\n"
     "tensor([3., 2.])"},
    {"fmin", NULL, "input: Tensor, other: operand", OF_ELEMENTS, fmin_call,
     "The smaller of two; the other one where one is NaN.",
     ">>> genesis.fmin(genesis.tensor([1.0, float(\"nan\")]), genesis.tensor([3.0, 2.0]))\n"
     "tensor([1., 2.])"},
    {"signbit", NULL, "input: Tensor", TESTS, signbit_call,
     "Whether the sign is minus, also of a zero or NaN.",
     ">>> genesis.signbit(genesis.tensor([1.0, -0.0, -2.0]))\ntensor([False,  True,  True])"},
    {"copysign", NULL, "input: Tensor, other: operand", OF_ELEMENTS, copysign_call,
     "The first without its sign, with that of the second.",
     ">>> genesis.copysign(genesis.tensor([1.0, -2.0]), genesis.tensor([-0.0, 3.0]))\n"
     "tensor([-1.,  2.])"},
    {"isposinf", NULL, "input: Tensor", TESTS, isposinf_call, "Whether it is infinity.",
     ">>> genesis.isposinf(genesis.tensor([float(\"inf\"), float(\"-inf\")]))\n"
     "tensor([ True, False])"},
    {"isneginf", NULL, "input: Tensor", TESTS, isneginf_call, "Whether it is minus infinity.",
     ">>> genesis.isneginf(genesis.tensor([float(\"inf\"), float(\"-inf\")]))\n"
     "tensor([False,  True])"},
    {"nan_to_num", NULL,
     "input: Tensor, nan: number = 0.0, posinf: number = None, neginf: number = None", OF_ELEMENTS,
     nan_to_num_call,
     "Numbers in place of NaN and infinities: by default the largest and smallest of the type.",
     ">>> genesis.nan_to_num(genesis.tensor([1.0, float(\"nan\"), float(\"inf\")]), posinf=9)\n"
     "tensor([1., 0., 9.])"},
    {0},
};
