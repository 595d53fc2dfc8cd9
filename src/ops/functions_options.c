/*
 * functions_options.c: elementwise operations with options, such as add(x, y, alpha=2).
 *
 * A call without an option never comes here: it is the operation itself.
 */
#include "ops/functions.h"
#include "tensor/tape.h"

#include <math.h>
#include <string.h>

/* The product of two numbers. */
static gn_scalar numbers_multiply(gn_scalar a, gn_scalar b)
{
    if (a.kind == GN_FLOAT64 || b.kind == GN_FLOAT64)
        return (gn_scalar){.kind = GN_FLOAT64,
                           .floating = gni_scalar_double(a) * gni_scalar_double(b)};
    return (gn_scalar){.kind = GN_INT64,
                       .integer = (int64_t)((uint64_t)a.integer * (uint64_t)b.integer)};
}

/* input op alpha * other, rounded once. */
static gn_status sum_with_factor(const gn_argument *a, gn_op op, gn_results *results)
{
    struct gni_scope s = {0};
    gn_operand in[] = {a[0].operand, a[1].operand}, alpha = a[2].operand;
    gn_dtype dtype = gni_join(&s, 2, in, false);
    if (alpha.scalar.kind == GN_FLOAT64 && !gni_dtype_is_floating(dtype))
        gni_scope_fail(&s, GN_ERROR_TYPE, "alpha=%g has fractions, and the operands have not",
                       alpha.scalar.floating);
    if (in[1].tensor == NULL)
        in[1].scalar = numbers_multiply(in[1].scalar, alpha.scalar);
    else
        in[1] = gni_of(gni_binary(&s, GN_OP_MULTIPLY, in[1], alpha));
    return gni_scope_give(&s, gni_cast(&s, gni_binary(&s, op, in[0], in[1]), dtype), results);
}

static gn_status add_call(const gn_argument *a, gn_results *results)
{
    return sum_with_factor(a, GN_OP_ADD, results);
}

static gn_status sub_call(const gn_argument *a, gn_results *results)
{
    return sum_with_factor(a, GN_OP_SUBTRACT, results);
}

/* Of floating numbers. The gradients are 0, also where the quotient is infinite. */
static gn_tensor *quotient_truncated(struct gni_scope *s, const gn_operand *in)
{
    bool is_taped = gni_tape_enter_any(2, in);
    gn_tensor *made = gni_unary(s, GN_OP_TRUNC, gni_binary(s, GN_OP_DIVIDE, in[0], in[1]));
    gni_tape_is_paused &= !is_taped;
    for (int i = 0; i < 2; i++)
        if (gni_is_taped(in[i].tensor))
            made = gni_binary(s, GN_OP_MULTIPLY, gni_of(made), gni_of(gni_one_of(s, in[i].tensor)));
    return made;
}

/* The quotient, rounded towards 0. */
static gn_tensor *divide_truncated(struct gni_scope *s, gn_operand *in)
{
    gn_dtype dtype = gni_join(s, 2, in, false);
    if (gni_dtype_is_floating(dtype))
        return gni_cast(s, quotient_truncated(s, in), dtype);
    gn_tensor *down = gni_binary(s, GN_OP_FLOOR_DIVIDE, in[0], in[1]);
    /* One more where rounding down went away from 0: it is negative, and something is left. */
    gn_tensor *whole = gni_binary(s, GN_OP_MULTIPLY, gni_of(down), in[1]);
    gn_tensor *has_rest = gni_binary(s, GN_OP_NOT_EQUAL, gni_of(whole), in[0]);
    gn_tensor *is_negative = gni_binary(s, GN_OP_LESS, gni_of(down), gni_integer(0));
    gn_tensor *is_low = gni_binary(s, GN_OP_BITWISE_AND, gni_of(is_negative), gni_of(has_rest));
    gn_tensor *one = gni_scope_is_ok(s) ? gni_cast(s, is_low, down->dtype) : NULL;
    return gni_binary(s, GN_OP_ADD, gni_of(down), gni_of(one));
}

static gn_status div_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_operand in[] = {a[0].operand, a[1].operand};
    const char *mode = a[2].text;
    gn_tensor *made = NULL;
    if (mode == NULL)
        made = gni_binary(&s, GN_OP_DIVIDE, in[0], in[1]);
    else if (strcmp(mode, "floor") == 0)
        made = gni_binary(&s, GN_OP_FLOOR_DIVIDE, in[0], in[1]);
    else if (strcmp(mode, "trunc") == 0)
        made = divide_truncated(&s, in);
    else
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE,
                       "rounding_mode is None, 'floor' or 'trunc', not '%s'", mode);
    return gni_scope_give(&s, made, results);
}

/* Floating numbers to so many decimals, computed in float64; what is too large to have any stays. */
static gn_tensor *decimals_round(struct gni_scope *s, gn_tensor *x, int64_t decimals)
{
    int64_t count = decimals < 0 ? -decimals : decimals;
    gn_operand scale = gni_floating(pow(10, count < 308 ? (double)count : 308));
    gn_tensor *wide = gni_cast(s, x, GN_FLOAT64);
    gn_tensor *scaled =
        gni_binary(s, decimals < 0 ? GN_OP_DIVIDE : GN_OP_MULTIPLY, gni_of(wide), scale);
    gn_tensor *whole = gni_unary(s, GN_OP_ROUND, scaled);
    if (decimals < 0)
        return gni_binary(s, GN_OP_MULTIPLY, gni_of(whole), scale);
    gn_tensor *made = gni_binary(s, GN_OP_DIVIDE, gni_of(whole), scale);
    return gni_where(s, gni_unary(s, GN_OP_ISFINITE, scaled), gni_of(made), gni_of(wide));
}

/* Integers that end in so many zeros, the nearest; of two the one with an even digit there. */
static gn_tensor *zeros_round(struct gni_scope *s, gn_tensor *x, int64_t zeros)
{
    bool is_unsigned = gni_scope_is_ok(s) && x->dtype == GN_UINT64;
    gn_dtype wide = is_unsigned ? GN_UINT64 : GN_INT64;
    uint64_t scale = 1;
    if (zeros > (is_unsigned ? 19 : 18)) /* more than the type has digits */
        return gni_full(s, (gn_scalar){.kind = GN_INT64}, x->dtype, x->ndim, x->sizes, x->device);
    for (int64_t i = 0; i < zeros; i++)
        scale *= 10;
    gn_operand unit = {.scalar = gni_scalar_of_unsigned(scale)};
    gn_tensor *value = gni_cast(s, x, wide);
    gn_tensor *down = gni_binary(s, GN_OP_FLOOR_DIVIDE, gni_of(value), unit);
    gn_tensor *low = gni_binary(s, GN_OP_MULTIPLY, gni_of(down), unit);
    gn_tensor *rest = gni_binary(s, GN_OP_SUBTRACT, gni_of(value), gni_of(low));
    gn_tensor *left = gni_binary(s, GN_OP_SUBTRACT, unit, gni_of(rest));
    gn_tensor *is_odd = gni_binary(
        s, GN_OP_EQUAL, gni_of(gni_binary(s, GN_OP_REMAINDER, gni_of(down), gni_integer(2))),
        gni_integer(1));
    gn_tensor *is_half = gni_binary(s, GN_OP_EQUAL, gni_of(rest), gni_of(left));
    gn_tensor *is_up = gni_binary(s, GN_OP_GREATER, gni_of(rest), gni_of(left));
    is_half = gni_binary(s, GN_OP_BITWISE_AND, gni_of(is_half), gni_of(is_odd));
    is_up = gni_binary(s, GN_OP_BITWISE_OR, gni_of(is_up), gni_of(is_half));
    gn_tensor *near = gni_binary(s, GN_OP_ADD, gni_of(down), gni_of(gni_cast(s, is_up, wide)));
    return gni_binary(s, GN_OP_MULTIPLY, gni_of(near), unit);
}

static gn_status round_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor, *made;
    int64_t decimals = a[1].operand.scalar.integer;
    if (decimals == 0)
        made = gni_unary(&s, GN_OP_ROUND, x);
    else if (gni_dtype_is_floating(x->dtype))
        made = decimals_round(&s, x, decimals);
    else
        made = decimals < 0 ? zeros_round(&s, x, -decimals) : gni_clone(&s, x);
    return gni_scope_give(&s, gni_cast(&s, made, x->dtype), results);
}

static gn_status gelu_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    bool is_tanh = strcmp(a[1].text, "tanh") == 0;
    if (!is_tanh && strcmp(a[1].text, "none") != 0)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "approximate is 'none' or 'tanh', not '%s'",
                       a[1].text);
    gn_op op = is_tanh ? GN_OP_GELU_TANH : GN_OP_GELU;
    return gni_scope_give(&s, gni_unary(&s, op, a[0].operand.tensor), results);
}

/* ---- the table --------------------------------------------------------------------------------- */

enum {
    OPTIONS = GN_FORM_OPTIONS | GN_FORM_OUT,
};

const gn_function gni_functions_options[] = {
    {"add", NULL, "input: operand, other: operand, *, alpha: number = 1", OPTIONS, add_call,
     "``input + alpha * other``.",
     ">>> genesis.add(genesis.tensor([1, 2]), 3, alpha=2)\ntensor([7, 8])"},
    {"sub", "subtract", "input: operand, other: operand, *, alpha: number = 1", OPTIONS, sub_call,
     "``input - alpha * other``.",
     ">>> genesis.sub(genesis.tensor([1, 2]), 3, alpha=2)\ntensor([-5, -4])"},
    {"div", "divide true_divide", "input: operand, other: operand, *, rounding_mode: text = None",
     OPTIONS, div_call,
     "The quotient, as a floating number, or rounded: ``\"floor\"`` or ``\"trunc\"``.",
     ">>> genesis.div(genesis.tensor([7, -7]), 2, rounding_mode=\"trunc\")\ntensor([ 3, -3])"},
    {"round", NULL, "input: Tensor, *, decimals: int = 0", OPTIONS, round_call,
     "The nearest number with so many decimals; less than 0: before the point.",
     ">>> genesis.round(genesis.tensor([1.25, 3.377]), decimals=1)\ntensor([1.2000, 3.4000])"},
    {"gelu", NULL, "input: Tensor, *, approximate: text = 'none'", OPTIONS, gelu_call,
     "x times the normal distribution up to x; with ``\"tanh\"`` about that.",
     ">>> genesis.gelu(genesis.tensor([1.0]), approximate=\"tanh\")\ntensor([0.8412])"},
    {0},
};
