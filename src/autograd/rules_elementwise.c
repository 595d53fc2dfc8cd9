/*
 * rules_elementwise.c: the gradients of elementwise operations.
 *
 * Each operation has a row: which operands its rule reads, and the rule. Formulas are PyTorch's,
 * and so is what they give where there is no derivative. Results are not saved: rules compute them
 * again from the operands, in the same kernel.
 *
 * Arithmetic uses operands in which halves are float32. Comparisons use the operands as they were
 * given, so that two that the operation found equal are equal here.
 *
 * A rule may use only operations that have a rule, or whose results are bool: with GN_CREATE_GRAPH
 * it is differentiated itself.
 *
 * Threads: as in ops/expression.h.
 */
#include "autograd/autograd.h"

#include <math.h>

/* What a rule works with. */
struct terms {
    struct gni_scope *scope;
    gn_op op;
    gn_tensor *g;            /* the gradient of the result */
    gn_operand in[3];        /* for arithmetic: halves are float32, but in products and quotients */
    const gn_operand *given; /* for comparisons */
};

/* The gradient of operand i; NULL: it is 0. */
typedef gn_tensor *(*rule_call)(const struct terms *t, int i);

struct rule {
    unsigned saves; /* bits: the operands that the rule reads */
    rule_call call; /* NULL: there is no rule */
};

/* ---- words for formulas ---------------------------------------------------------------------- */

static gn_tensor *product(struct gni_scope *s, gn_tensor *a, gn_tensor *b)
{
    return gni_binary(s, GN_OP_MULTIPLY, gni_of(a), gni_of(b));
}

static gn_tensor *quotient(struct gni_scope *s, gn_tensor *a, gn_tensor *b)
{
    return gni_binary(s, GN_OP_DIVIDE, gni_of(a), gni_of(b));
}

static gn_tensor *sum(struct gni_scope *s, gn_tensor *a, gn_tensor *b)
{
    return gni_binary(s, GN_OP_ADD, gni_of(a), gni_of(b));
}

static gn_tensor *scaled(struct gni_scope *s, gn_tensor *a, double factor)
{
    return gni_binary(s, GN_OP_MULTIPLY, gni_of(a), gni_floating(factor));
}

static gn_tensor *shifted(struct gni_scope *s, gn_tensor *a, double distance)
{
    return gni_binary(s, GN_OP_ADD, gni_of(a), gni_floating(distance));
}

static gn_tensor *one_minus(struct gni_scope *s, gn_tensor *a)
{
    return gni_binary(s, GN_OP_SUBTRACT, gni_floating(1), gni_of(a));
}

static gn_tensor *negative(struct gni_scope *s, gn_tensor *a)
{
    return gni_unary(s, GN_OP_NEGATIVE, a);
}

static gn_tensor *square(struct gni_scope *s, gn_tensor *a)
{
    return gni_unary(s, GN_OP_SQUARE, a);
}

/* exp(-a a) */
static gn_tensor *bell(struct gni_scope *s, gn_tensor *a)
{
    return gni_unary(s, GN_OP_EXP, negative(s, square(s, a)));
}

/* The value where the condition is false, else 0. */
static gn_tensor *zero_where(struct gni_scope *s, gn_tensor *condition, gn_tensor *value)
{
    return gni_where(s, condition, gni_floating(0), gni_of(value));
}

static gn_tensor *zero_unless(struct gni_scope *s, gn_tensor *condition, gn_tensor *value)
{
    return gni_where(s, condition, gni_of(value), gni_floating(0));
}

static gn_tensor *both(struct gni_scope *s, gn_tensor *a, gn_tensor *b)
{
    return gni_binary(s, GN_OP_LOGICAL_AND, gni_of(a), gni_of(b));
}

static gn_tensor *either(struct gni_scope *s, gn_tensor *a, gn_tensor *b)
{
    return gni_binary(s, GN_OP_LOGICAL_OR, gni_of(a), gni_of(b));
}

static bool is_number(gn_operand operand)
{
    return operand.tensor == NULL;
}

/* Operand i as a floating tensor. Integers by themselves would wrap, or become the default type. */
static gn_tensor *floating_tensor(const struct terms *t, int i)
{
    static const int64_t no_sizes[1];
    gn_tensor *tensor = t->in[i].tensor;
    if (!gni_scope_is_ok(t->scope))
        return NULL;
    if (tensor == NULL)
        return gni_full(t->scope, t->in[i].scalar, t->g->dtype, 0, no_sizes, t->g->device);
    if (!gni_dtype_is_floating(tensor->dtype))
        return gni_cast(t->scope, tensor, t->g->dtype);
    return tensor;
}

/* Compares two operands as they were given. */
static gn_tensor *compared_pair(const struct terms *t, gn_op op, int i, int k)
{
    gn_operand first = t->given[i];
    if (is_number(first) && is_number(t->given[k]))
        first = gni_of(floating_tensor(t, i));
    return gni_binary(t->scope, op, first, t->given[k]);
}

/* Compares operand i, as it was given, with a number. */
static gn_tensor *compared(const struct terms *t, gn_op op, int i, double number)
{
    gn_operand operand = t->given[i];
    if (is_number(operand))
        operand = gni_of(floating_tensor(t, i));
    return gni_binary(t->scope, op, operand, gni_floating(number));
}

/* The gradient times operand i, and over it. */
static gn_tensor *g_times(const struct terms *t, int i)
{
    return gni_binary(t->scope, GN_OP_MULTIPLY, gni_of(t->g), t->in[i]);
}

static gn_tensor *g_over(const struct terms *t, int i)
{
    return gni_binary(t->scope, GN_OP_DIVIDE, gni_of(t->g), t->in[i]);
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

/* Of operations whose results are steps. */
static gn_tensor *zero_rule(const struct terms *t, int i)
{
    (void)i;
    const gn_scalar zero = {.kind = GN_INT64};
    return gni_full(t->scope, zero, t->g->dtype, t->g->ndim, t->g->sizes, t->g->device);
}

static gn_tensor *add_rule(const struct terms *t, int i)
{
    (void)i;
    return t->g;
}

static gn_tensor *subtract_rule(const struct terms *t, int i)
{
    return i == 0 ? t->g : negative(t->scope, t->g);
}

static gn_tensor *negative_rule(const struct terms *t, int i)
{
    (void)i;
    return negative(t->scope, t->g);
}

static gn_tensor *multiply_rule(const struct terms *t, int i)
{
    return g_times(t, 1 - i);
}

static gn_tensor *divide_rule(const struct terms *t, int i)
{
    struct gni_scope *s = t->scope;
    if (i == 0)
        return g_over(t, 1);
    /* The first quotient is what the other operand gets. */
    gn_tensor *slope = gni_binary(s, GN_OP_MULTIPLY, gni_of(g_over(t, 1)), t->in[0]);
    return negative(s, gni_binary(s, GN_OP_DIVIDE, gni_of(slope), t->in[1]));
}

/* Of remainder and fmod: x - y n, where n is the quotient, rounded. */
static gn_tensor *remainder_rule(const struct terms *t, int i)
{
    struct gni_scope *s = t->scope;
    if (i == 0)
        return t->g;
    gn_tensor *whole =
        t->op == GN_OP_FMOD
            ? gni_unary(s, GN_OP_TRUNC, gni_binary(s, GN_OP_DIVIDE, t->in[0], t->in[1]))
            : gni_binary(s, GN_OP_FLOOR_DIVIDE, t->in[0], t->in[1]);
    return product(s, negative(s, t->g), whole);
}

/* The first moves with its neighbour, unless it is where it was to go. */
static gn_tensor *nextafter_rule(const struct terms *t, int i)
{
    if (i == 1)
        return zero_rule(t, i);
    return zero_where(t->scope, compared_pair(t, GN_OP_EQUAL, 0, 1), t->g);
}

static gn_tensor *power_rule_of_base(const struct terms *t)
{
    struct gni_scope *s = t->scope;
    if (is_number(t->in[1])) {
        double exponent = gni_scalar_floating(t->in[1].scalar);
        if (exponent == 0)
            return zero_rule(t, 0);
        if (exponent == 1)
            return t->g;
        gn_tensor *lower = gni_binary(s, GN_OP_POWER, t->in[0], gni_floating(exponent - 1));
        return product(s, t->g, scaled(s, lower, exponent));
    }
    gn_tensor *exponent = floating_tensor(t, 1);
    gn_tensor *lower = gni_binary(s, GN_OP_POWER, t->in[0], gni_of(shifted(s, exponent, -1)));
    gn_tensor *made = product(s, t->g, product(s, exponent, lower));
    return zero_where(s, compared(t, GN_OP_EQUAL, 1, 0), made);
}

/* Where the base is 0 its logarithm is infinite, but 0 stays 0 unless the exponent is negative. */
static gn_tensor *power_rule_of_exponent(const struct terms *t)
{
    struct gni_scope *s = t->scope;
    gn_tensor *power = gni_binary(s, GN_OP_POWER, t->in[0], t->in[1]);
    if (is_number(t->in[0])) {
        double base = gni_scalar_floating(t->in[0].scalar);
        gn_tensor *slope = scaled(s, power, log(base));
        if (base == 0)
            slope = zero_where(s, compared(t, GN_OP_GREATER_EQUAL, 1, 0), slope);
        return product(s, t->g, slope);
    }
    gn_tensor *slope = product(s, power, gni_unary(s, GN_OP_LOG, floating_tensor(t, 0)));
    gn_tensor *is_flat =
        both(s, compared(t, GN_OP_EQUAL, 0, 0), compared(t, GN_OP_GREATER_EQUAL, 1, 0));
    return product(s, t->g, zero_where(s, is_flat, slope));
}

static gn_tensor *power_rule(const struct terms *t, int i)
{
    return i == 0 ? power_rule_of_base(t) : power_rule_of_exponent(t);
}

/* Of maximum and minimum: equal operands share the gradient. */
static gn_tensor *extreme_rule(const struct terms *t, int i)
{
    struct gni_scope *s = t->scope;
    gn_op beaten = (t->op == GN_OP_MAXIMUM) == (i == 0) ? GN_OP_LESS : GN_OP_GREATER;
    gn_tensor *is_equal = compared_pair(t, GN_OP_EQUAL, 0, 1);
    gn_tensor *made = gni_where(s, is_equal, gni_of(scaled(s, t->g, 0.5)), gni_of(t->g));
    return zero_where(s, compared_pair(t, beaten, 0, 1), made);
}

/* Between numbers, of which an infinite one is no bound. At the bounds it is 0. */
static gn_tensor *clamp_rule_of_numbers(const struct terms *t)
{
    struct gni_scope *s = t->scope;
    gn_tensor *made = t->g;
    for (int i = 1; i <= 2; i++) {
        double bound = gni_scalar_floating(t->given[i].scalar);
        gn_op inside = i == 1 ? GN_OP_GREATER : GN_OP_LESS;
        if (bound != (i == 1 ? -(double)INFINITY : (double)INFINITY))
            made = zero_unless(s, compared_pair(t, inside, 0, i), made);
    }
    return made;
}

/* A value and a bound that are equal share the gradient, unless the other bound is as large. Bounds in the wrong order
 * give it to the upper one. */
static gn_tensor *clamp_rule(const struct terms *t, int i)
{
    struct gni_scope *s = t->scope;
    bool has_numbers = is_number(t->given[1]) && is_number(t->given[2]);
    if (has_numbers)
        return clamp_rule_of_numbers(t);
    gn_tensor *is_crossed = compared_pair(t, GN_OP_GREATER, 1, 2);
    gn_tensor *has_room = compared_pair(t, GN_OP_LESS, 1, 2);
    gn_tensor *is_below = compared_pair(t, GN_OP_LESS, 0, 1);
    gn_tensor *is_above = compared_pair(t, GN_OP_GREATER, 0, 2);
    gn_tensor *is_equal =
        either(s, compared_pair(t, GN_OP_EQUAL, 0, 1), compared_pair(t, GN_OP_EQUAL, 0, 2));
    gn_tensor *half = scaled(s, t->g, 0.5);
    gn_tensor *shared = gni_where(s, both(s, is_equal, has_room), gni_of(half), gni_of(t->g));
    if (i == 0)
        return zero_where(s, either(s, is_crossed, either(s, is_below, is_above)), shared);
    if (i == 1) {
        gn_tensor *is_least =
            either(s, is_below, both(s, has_room, compared_pair(t, GN_OP_EQUAL, 0, 1)));
        return zero_where(s, is_crossed, zero_unless(s, is_least, shared));
    }
    gn_tensor *is_most =
        either(s, is_above, both(s, has_room, compared_pair(t, GN_OP_EQUAL, 0, 2)));
    return gni_where(s, is_crossed, gni_of(t->g), gni_of(zero_unless(s, is_most, shared)));
}

static gn_tensor *lerp_rule(const struct terms *t, int i)
{
    struct gni_scope *s = t->scope;
    if (i == 1)
        return g_times(t, 2);
    if (i == 0 && is_number(t->in[2]))
        return scaled(s, t->g, 1 - gni_scalar_floating(t->in[2].scalar));
    if (i == 0)
        return product(s, t->g, one_minus(s, floating_tensor(t, 2)));
    gn_operand start = gni_of(floating_tensor(t, 0)), end = gni_of(floating_tensor(t, 1));
    return product(s, t->g, gni_binary(s, GN_OP_SUBTRACT, end, start));
}

static gn_tensor *where_rule(const struct terms *t, int i)
{
    gn_operand zero = gni_floating(0), g = gni_of(t->g);
    if (i == 0)
        return NULL; /* a condition */
    gn_operand operands[] = {t->given[0], i == 1 ? g : zero, i == 1 ? zero : g};
    return gni_elementwise(t->scope, GN_OP_WHERE, 3, operands);
}

/* ---- operations of two operands -------------------------------------------------------------- */

static gn_tensor *ldexp_rule(const struct terms *t, int i)
{
    struct gni_scope *s = t->scope;
    if (i == 0)
        return gni_binary(s, GN_OP_LDEXP, gni_of(t->g), t->in[1]);
    gn_tensor *result = gni_binary(s, GN_OP_LDEXP, t->in[0], t->in[1]);
    return product(s, t->g, scaled(s, result, M_LN2));
}

/* exp(x) / (exp(x) + exp(y)) is the sigmoid of x - y. */
static gn_tensor *logaddexp_rule(const struct terms *t, int i)
{
    struct gni_scope *s = t->scope;
    gn_tensor *lead = gni_binary(s, GN_OP_SUBTRACT, t->in[i], t->in[1 - i]);
    if (t->op == GN_OP_LOGADDEXP2)
        lead = scaled(s, lead, M_LN2);
    return product(s, t->g, gni_unary(s, GN_OP_SIGMOID, lead));
}

static gn_tensor *xlogy_rule(const struct terms *t, int i)
{
    struct gni_scope *s = t->scope;
    if (i == 1)
        return gni_binary(s, GN_OP_DIVIDE, gni_of(g_times(t, 0)), t->in[1]);
    gn_tensor *made = gni_binary(s, GN_OP_XLOGY, gni_of(t->g), t->in[1]);
    if (is_number(t->in[1]) && !(gni_scalar_floating(t->in[1].scalar) <= 0))
        return made;
    gn_tensor *is_flat = compared(t, GN_OP_EQUAL, 0, 0);
    if (!is_number(t->in[1]))
        is_flat = both(s, is_flat, compared(t, GN_OP_LESS_EQUAL, 1, 0));
    return zero_where(s, is_flat, made);
}

/* The gradient over z (1 - z). */
static gn_tensor *logit_slope(const struct terms *t, gn_tensor *z)
{
    return quotient(t->scope, t->g, product(t->scope, z, one_minus(t->scope, z)));
}

/* Of eps, where it is the bound that x is beyond. */
static gn_tensor *logit_rule_of_eps(const struct terms *t)
{
    struct gni_scope *s = t->scope;
    gn_tensor *eps = t->in[1].tensor, *slope = logit_slope(t, eps);
    gn_tensor *is_above = gni_binary(s, GN_OP_GREATER, t->in[0], gni_of(one_minus(s, eps)));
    gn_tensor *made = zero_unless(s, is_above, negative(s, slope));
    made = gni_where(s, compared_pair(t, GN_OP_LESS, 0, 1), gni_of(slope), gni_of(made));
    return zero_unless(s, compared(t, GN_OP_GREATER_EQUAL, 1, 0), made);
}

/* Without bounds x is one of [0, 1]; beyond it there is no logarithm. */
static gn_tensor *logit_rule(const struct terms *t, int i)
{
    struct gni_scope *s = t->scope;
    if (i == 1)
        return logit_rule_of_eps(t);
    gn_tensor *slope = logit_slope(t, t->in[0].tensor), *unbounded = NULL;
    bool has_number = is_number(t->in[1]);
    double number = has_number ? gni_scalar_floating(t->in[1].scalar) : NAN;
    if (!(number >= 0)) {
        gn_tensor *is_outside =
            either(s, compared(t, GN_OP_LESS, 0, 0), compared(t, GN_OP_GREATER, 0, 1));
        unbounded = gni_where(s, is_outside, gni_floating(NAN), gni_of(slope));
        if (has_number)
            return unbounded;
    }
    gn_operand most = gni_floating(1 - number);
    if (!has_number)
        most = gni_of(one_minus(s, floating_tensor(t, 1)));
    gn_tensor *is_outside = either(s, gni_binary(s, GN_OP_LESS, t->in[0], t->in[1]),
                                   gni_binary(s, GN_OP_GREATER, t->in[0], most));
    gn_tensor *bounded = zero_where(s, is_outside, slope);
    if (has_number)
        return bounded;
    return gni_where(s, compared(t, GN_OP_GREATER_EQUAL, 1, 0), gni_of(bounded), gni_of(unbounded));
}

/* y / (x x + y y) and -x / (x x + y y), by the hypotenuse, whose square could overflow. 0 at the
 * origin. */
static gn_tensor *atan2_rule(const struct terms *t, int i)
{
    struct gni_scope *s = t->scope;
    gn_tensor *hypot = gni_binary(s, GN_OP_HYPOT, t->in[0], t->in[1]);
    gn_tensor *ratio = gni_binary(s, GN_OP_DIVIDE, t->in[1 - i], gni_of(hypot));
    ratio = quotient(s, ratio, hypot);
    gn_tensor *is_origin = gni_binary(s, GN_OP_EQUAL, gni_of(hypot), gni_floating(0));
    return product(s, i == 0 ? t->g : negative(s, t->g), zero_where(s, is_origin, ratio));
}

static gn_tensor *hypot_rule(const struct terms *t, int i)
{
    struct gni_scope *s = t->scope;
    gn_tensor *hypot = gni_binary(s, GN_OP_HYPOT, t->in[0], t->in[1]);
    return product(s, t->g, gni_binary(s, GN_OP_DIVIDE, t->in[i], gni_of(hypot)));
}

/* ---- functions of one number ----------------------------------------------------------------- */

static gn_tensor *exponential_slope(struct gni_scope *s, gn_op op, gn_tensor *x)
{
    switch (op) {
    case GN_OP_ABSOLUTE:
        return gni_unary(s, GN_OP_SIGN, x);
    case GN_OP_SQUARE:
        return scaled(s, x, 2);
    case GN_OP_RECIPROCAL:
        return negative(s, square(s, gni_unary(s, GN_OP_RECIPROCAL, x)));
    case GN_OP_RSQRT: {
        gn_tensor *root = gni_unary(s, GN_OP_RSQRT, x);
        return scaled(s, product(s, square(s, root), root), -0.5);
    }
    case GN_OP_EXP2:
        return scaled(s, gni_unary(s, GN_OP_EXP2, x), M_LN2);
    default: /* exp, expm1 */
        return gni_unary(s, GN_OP_EXP, x);
    }
}

/* 1 over the slope: the gradient is divided by it. */
static gn_tensor *slope_divisor(struct gni_scope *s, gn_op op, gn_tensor *x)
{
    switch (op) {
    case GN_OP_SQRT:
        return scaled(s, gni_unary(s, GN_OP_SQRT, x), 2);
    case GN_OP_LOG1P:
        return shifted(s, x, 1);
    case GN_OP_LOG2:
        return scaled(s, x, M_LN2);
    case GN_OP_LOG10:
        return scaled(s, x, M_LN10);
    case GN_OP_ATAN:
        return shifted(s, square(s, x), 1);
    case GN_OP_ATANH:
        return one_minus(s, square(s, x));
    default: /* log */
        return x;
    }
}

static gn_tensor *trigonometric_slope(struct gni_scope *s, gn_op op, gn_tensor *x)
{
    switch (op) {
    case GN_OP_SIN:
        return gni_unary(s, GN_OP_COS, x);
    case GN_OP_COS:
        return negative(s, gni_unary(s, GN_OP_SIN, x));
    case GN_OP_TAN:
        return shifted(s, square(s, gni_unary(s, GN_OP_TAN, x)), 1);
    case GN_OP_ASIN:
        return gni_unary(s, GN_OP_RSQRT, one_minus(s, square(s, x)));
    case GN_OP_ACOS:
        return negative(s, gni_unary(s, GN_OP_RSQRT, one_minus(s, square(s, x))));
    case GN_OP_SINH:
        return gni_unary(s, GN_OP_COSH, x);
    case GN_OP_COSH:
        return gni_unary(s, GN_OP_SINH, x);
    case GN_OP_ASINH:
        return gni_unary(s, GN_OP_RSQRT, shifted(s, square(s, x), 1));
    case GN_OP_ACOSH:
        return gni_unary(s, GN_OP_RSQRT, shifted(s, square(s, x), -1));
    default: /* tanh */
        return one_minus(s, square(s, gni_unary(s, GN_OP_TANH, x)));
    }
}

static gn_tensor *special_slope(struct gni_scope *s, gn_op op, gn_tensor *x)
{
    switch (op) {
    case GN_OP_ERF:
        return scaled(s, bell(s, x), M_2_SQRTPI);
    case GN_OP_ERFC:
        return scaled(s, bell(s, x), -M_2_SQRTPI);
    case GN_OP_ERFINV: {
        gn_tensor *result = gni_unary(s, GN_OP_ERFINV, x);
        return scaled(s, gni_unary(s, GN_OP_EXP, square(s, result)), 1 / M_2_SQRTPI);
    }
    case GN_OP_SINC: {
        gn_tensor *cosine = gni_unary(s, GN_OP_COS, scaled(s, x, M_PI));
        gn_tensor *sinc = gni_unary(s, GN_OP_SINC, x);
        gn_tensor *rest = gni_binary(s, GN_OP_SUBTRACT, gni_of(cosine), gni_of(sinc));
        gn_tensor *is_top = gni_binary(s, GN_OP_EQUAL, gni_of(x), gni_floating(0));
        return zero_where(s, is_top, quotient(s, rest, x));
    }
    default: /* lgamma */
        return gni_unary(s, GN_OP_DIGAMMA, x);
    }
}

/* Of the last operand; how often it was differentiated is a number. */
static gn_tensor *polygamma_rule(const struct terms *t, int i)
{
    struct gni_scope *s = t->scope;
    gn_operand often = gni_integer(1);
    if (i == 0 && t->op == GN_OP_POLYGAMMA)
        return zero_rule(t, i);
    if (t->op == GN_OP_POLYGAMMA && is_number(t->in[0]))
        often = gni_floating(gni_scalar_floating(t->in[0].scalar) + 1);
    else if (t->op == GN_OP_POLYGAMMA)
        often = gni_of(shifted(s, t->in[0].tensor, 1));
    return product(s, t->g, gni_binary(s, GN_OP_POLYGAMMA, often, t->in[i]));
}

static gn_tensor *exponential_rule(const struct terms *t, int i)
{
    return product(t->scope, t->g, exponential_slope(t->scope, t->op, t->in[i].tensor));
}

static gn_tensor *divided_rule(const struct terms *t, int i)
{
    return quotient(t->scope, t->g, slope_divisor(t->scope, t->op, t->in[i].tensor));
}

static gn_tensor *trigonometric_rule(const struct terms *t, int i)
{
    return product(t->scope, t->g, trigonometric_slope(t->scope, t->op, t->in[i].tensor));
}

static gn_tensor *special_rule(const struct terms *t, int i)
{
    return product(t->scope, t->g, special_slope(t->scope, t->op, t->in[i].tensor));
}

/* ---- activations ----------------------------------------------------------------------------- */

/* NaN has the slope of positive numbers. */
static gn_tensor *relu_rule(const struct terms *t, int i)
{
    struct gni_scope *s = t->scope;
    gn_tensor *is_flat = compared(t, GN_OP_LESS_EQUAL, i, 0);
    if (t->op == GN_OP_RELU6)
        is_flat = either(s, is_flat, compared(t, GN_OP_GREATER_EQUAL, i, 6));
    return zero_where(s, is_flat, t->g);
}

static gn_tensor *leaky_relu_rule(const struct terms *t, int i)
{
    struct gni_scope *s = t->scope;
    gn_tensor *is_positive = compared(t, GN_OP_GREATER, 0, 0);
    if (i == 1)
        return zero_where(s, is_positive, g_times(t, 0));
    return gni_where(s, is_positive, gni_of(t->g), gni_of(g_times(t, 1)));
}

static gn_tensor *elu_rule(const struct terms *t, int i)
{
    struct gni_scope *s = t->scope;
    gn_tensor *is_below = compared(t, GN_OP_LESS_EQUAL, 0, 0), *x = floating_tensor(t, 0);
    if (i == 1)
        return zero_unless(s, is_below, product(s, t->g, gni_unary(s, GN_OP_EXPM1, x)));
    gn_tensor *below = product(s, g_times(t, 1), gni_unary(s, GN_OP_EXP, x));
    return gni_where(s, is_below, gni_of(below), gni_of(t->g));
}

/* alpha (exp(z) - 1) for z = x / alpha has the slopes exp(z) and exp(z) - 1 - z exp(z). */
static gn_tensor *celu_rule(const struct terms *t, int i)
{
    struct gni_scope *s = t->scope;
    gn_tensor *is_below = compared(t, GN_OP_LESS_EQUAL, 0, 0);
    gn_tensor *z = gni_binary(s, GN_OP_DIVIDE, t->in[0], t->in[1]);
    gn_tensor *power = gni_unary(s, GN_OP_EXP, z);
    if (i == 0)
        return gni_where(s, is_below, gni_of(product(s, t->g, power)), gni_of(t->g));
    gn_operand grown = gni_of(gni_unary(s, GN_OP_EXPM1, z));
    gn_tensor *slope = gni_binary(s, GN_OP_SUBTRACT, grown, gni_of(product(s, z, power)));
    return zero_unless(s, is_below, product(s, t->g, slope));
}

static gn_tensor *selu_rule(const struct terms *t, int i)
{
    const double scale = 0x1.0cfabd6a91132p+0, scale_times_alpha = 0x1.c212cc640f031p+0;
    struct gni_scope *s = t->scope;
    gn_tensor *power = gni_unary(s, GN_OP_EXP, t->in[i].tensor);
    gn_operand below = gni_of(product(s, scaled(s, t->g, scale_times_alpha), power));
    return gni_where(s, compared(t, GN_OP_LESS_EQUAL, i, 0), below, gni_of(scaled(s, t->g, scale)));
}

/* (x + 3) x / 6 between -3 and 3. */
static gn_tensor *hardswish_rule(const struct terms *t, int i)
{
    struct gni_scope *s = t->scope;
    gn_tensor *slope = shifted(s, scaled(s, t->in[i].tensor, 1.0 / 3), 0.5);
    gn_operand middle = gni_of(product(s, t->g, slope));
    gn_tensor *made = gni_where(s, compared(t, GN_OP_LESS, i, 3), middle, gni_of(t->g));
    return zero_where(s, compared(t, GN_OP_LESS_EQUAL, i, -3), made);
}

/* The slope is the sigmoid of beta x, up to the threshold, which itself has none. */
static gn_tensor *softplus_rule(const struct terms *t, int i)
{
    struct gni_scope *s = t->scope;
    if (i == 2)
        return NULL;
    gn_tensor *z = gni_binary(s, GN_OP_MULTIPLY, t->in[0], t->in[1]);
    gn_tensor *is_beyond = gni_binary(s, GN_OP_GREATER, gni_of(z), t->in[2]);
    gn_tensor *sigmoid = gni_unary(s, GN_OP_SIGMOID, z);
    if (i == 0)
        return gni_where(s, is_beyond, gni_of(t->g), gni_of(product(s, t->g, sigmoid)));
    gn_tensor *result = gni_elementwise(s, GN_OP_SOFTPLUS, 3, t->in);
    gn_operand grown = gni_of(gni_binary(s, GN_OP_MULTIPLY, gni_of(sigmoid), t->in[0]));
    gn_tensor *slope = gni_binary(s, GN_OP_SUBTRACT, grown, gni_of(result));
    slope = gni_binary(s, GN_OP_DIVIDE, gni_of(slope), t->in[1]);
    return zero_where(s, is_beyond, product(s, t->g, slope));
}

/* The normal distribution up to x, and x times its density. */
static gn_tensor *gelu_slope(struct gni_scope *s, gn_tensor *x)
{
    gn_tensor *z = scaled(s, x, M_SQRT1_2);
    gn_tensor *part = scaled(s, shifted(s, gni_unary(s, GN_OP_ERF, z), 1), 0.5);
    gn_tensor *density = scaled(s, bell(s, z), 0.5 * M_2_SQRTPI * M_SQRT1_2);
    return sum(s, part, product(s, x, density));
}

/* Of x sigmoid(z), where the slope of z is given. */
static gn_tensor *gated_slope(struct gni_scope *s, gn_tensor *x, gn_tensor *z, gn_tensor *z_slope)
{
    gn_tensor *gate = gni_unary(s, GN_OP_SIGMOID, z);
    gn_tensor *change = product(s, x, one_minus(s, gate));
    if (z_slope != NULL)
        change = product(s, change, z_slope);
    return product(s, gate, shifted(s, change, 1));
}

static gn_tensor *gelu_tanh_slope(struct gni_scope *s, gn_tensor *x)
{
    const double factor = 2 * M_2_SQRTPI * M_SQRT1_2, cubic = 0.044715;
    gn_tensor *x2 = square(s, x);
    gn_tensor *z = product(s, x, shifted(s, scaled(s, x2, factor * cubic), factor));
    return gated_slope(s, x, z, shifted(s, scaled(s, x2, 3 * factor * cubic), factor));
}

/* Of x tanh(softplus(x)). */
static gn_tensor *mish_slope(struct gni_scope *s, gn_tensor *x)
{
    const gn_operand operands[] = {gni_of(x), gni_floating(1), gni_floating(20)};
    gn_tensor *gate = gni_unary(s, GN_OP_TANH, gni_elementwise(s, GN_OP_SOFTPLUS, 3, operands));
    gn_tensor *change = product(s, gni_unary(s, GN_OP_SIGMOID, x), one_minus(s, square(s, gate)));
    return sum(s, gate, product(s, x, change));
}

static gn_tensor *activation_slope(struct gni_scope *s, gn_op op, gn_tensor *x)
{
    switch (op) {
    case GN_OP_SIGMOID: {
        gn_tensor *result = gni_unary(s, GN_OP_SIGMOID, x);
        return product(s, result, one_minus(s, result));
    }
    case GN_OP_LOG_SIGMOID:
        return gni_unary(s, GN_OP_SIGMOID, negative(s, x));
    case GN_OP_SILU:
        return gated_slope(s, x, x, NULL);
    case GN_OP_GELU_TANH:
        return gelu_tanh_slope(s, x);
    case GN_OP_MISH:
        return mish_slope(s, x);
    default: /* gelu */
        return gelu_slope(s, x);
    }
}

static gn_tensor *activation_rule(const struct terms *t, int i)
{
    return product(t->scope, t->g, activation_slope(t->scope, t->op, t->in[i].tensor));
}

/* ---- the table ------------------------------------------------------------------------------- */

enum {
    FIRST = 1,
    TWO = 3,
    THREE = 7,
};

/* Operations without a row have no rule. Comparisons, logic, bits and heaviside
 * have none in PyTorch either. */
static const struct rule rules[GN_OP_COUNT] = {
    [GN_OP_ADD] = {0, add_rule},
    [GN_OP_SUBTRACT] = {0, subtract_rule},
    [GN_OP_MULTIPLY] = {TWO, multiply_rule},
    [GN_OP_DIVIDE] = {TWO, divide_rule},
    [GN_OP_REMAINDER] = {TWO, remainder_rule},
    [GN_OP_FMOD] = {TWO, remainder_rule},
    [GN_OP_FLOOR_DIVIDE] = {0, zero_rule},
    [GN_OP_POWER] = {TWO, power_rule},
    [GN_OP_MAXIMUM] = {TWO, extreme_rule},
    [GN_OP_MINIMUM] = {TWO, extreme_rule},
    [GN_OP_NEGATIVE] = {0, negative_rule},
    [GN_OP_SIGN] = {0, zero_rule},
    [GN_OP_FLOOR] = {0, zero_rule},
    [GN_OP_CEIL] = {0, zero_rule},
    [GN_OP_ROUND] = {0, zero_rule},
    [GN_OP_TRUNC] = {0, zero_rule},
    [GN_OP_ABSOLUTE] = {FIRST, exponential_rule},
    [GN_OP_SQUARE] = {FIRST, exponential_rule},
    [GN_OP_RECIPROCAL] = {FIRST, exponential_rule},
    [GN_OP_RSQRT] = {FIRST, exponential_rule},
    [GN_OP_EXP] = {FIRST, exponential_rule},
    [GN_OP_EXP2] = {FIRST, exponential_rule},
    [GN_OP_EXPM1] = {FIRST, exponential_rule},
    [GN_OP_LDEXP] = {TWO, ldexp_rule},
    [GN_OP_SQRT] = {FIRST, divided_rule},
    [GN_OP_LOG] = {FIRST, divided_rule},
    [GN_OP_LOG1P] = {FIRST, divided_rule},
    [GN_OP_LOG2] = {FIRST, divided_rule},
    [GN_OP_LOG10] = {FIRST, divided_rule},
    [GN_OP_ATAN] = {FIRST, divided_rule},
    [GN_OP_ATANH] = {FIRST, divided_rule},
    [GN_OP_LOGADDEXP] = {TWO, logaddexp_rule},
    [GN_OP_LOGADDEXP2] = {TWO, logaddexp_rule},
    [GN_OP_XLOGY] = {TWO, xlogy_rule},
    [GN_OP_LOGIT] = {TWO, logit_rule},
    [GN_OP_SIN] = {FIRST, trigonometric_rule},
    [GN_OP_COS] = {FIRST, trigonometric_rule},
    [GN_OP_TAN] = {FIRST, trigonometric_rule},
    [GN_OP_ASIN] = {FIRST, trigonometric_rule},
    [GN_OP_ACOS] = {FIRST, trigonometric_rule},
    [GN_OP_SINH] = {FIRST, trigonometric_rule},
    [GN_OP_COSH] = {FIRST, trigonometric_rule},
    [GN_OP_TANH] = {FIRST, trigonometric_rule},
    [GN_OP_ASINH] = {FIRST, trigonometric_rule},
    [GN_OP_ACOSH] = {FIRST, trigonometric_rule},
    [GN_OP_ATAN2] = {TWO, atan2_rule},
    [GN_OP_HYPOT] = {TWO, hypot_rule},
    [GN_OP_ERF] = {FIRST, special_rule},
    [GN_OP_ERFC] = {FIRST, special_rule},
    [GN_OP_ERFINV] = {FIRST, special_rule},
    [GN_OP_LGAMMA] = {FIRST, special_rule},
    [GN_OP_DIGAMMA] = {FIRST, polygamma_rule},
    [GN_OP_POLYGAMMA] = {TWO, polygamma_rule},
    [GN_OP_NEXTAFTER] = {TWO, nextafter_rule},
    [GN_OP_SINC] = {FIRST, special_rule},
    [GN_OP_SIGMOID] = {FIRST, activation_rule},
    [GN_OP_RELU] = {FIRST, relu_rule},
    [GN_OP_RELU6] = {FIRST, relu_rule},
    [GN_OP_LEAKY_RELU] = {TWO, leaky_relu_rule},
    [GN_OP_ELU] = {TWO, elu_rule},
    [GN_OP_CELU] = {TWO, celu_rule},
    [GN_OP_SELU] = {FIRST, selu_rule},
    [GN_OP_GELU] = {FIRST, activation_rule},
    [GN_OP_GELU_TANH] = {FIRST, activation_rule},
    [GN_OP_SILU] = {FIRST, activation_rule},
    [GN_OP_HARDSWISH] = {FIRST, hardswish_rule},
    [GN_OP_MISH] = {FIRST, activation_rule},
    [GN_OP_SOFTPLUS] = {THREE, softplus_rule},
    [GN_OP_LOG_SIGMOID] = {FIRST, activation_rule},
    [GN_OP_CLAMP] = {THREE, clamp_rule},
    [GN_OP_LERP] = {THREE, lerp_rule},
    [GN_OP_WHERE] = {FIRST, where_rule},
};

unsigned gni_elementwise_saves(gn_op op)
{
    return rules[op].call != NULL ? rules[op].saves : GNI_NO_RULE;
}

void gni_elementwise_gradients(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    const struct gni_elementwise_details *details = frame->node->details;
    const struct rule *rule = &rules[details->op];
    struct terms t = {frame->scope, details->op, frame->given[0], .given = frame->inputs};
    /* Of products and quotients, every step has the gradient as an operand, or comes from it. */
    bool is_wide = details->op != GN_OP_MULTIPLY && details->op != GN_OP_DIVIDE;
    if (rule->saves != 0) /* else nothing is computed but a sign */
        t.g = gni_wide(t.scope, t.g);
    for (int i = 0; i < 3 && rule->saves >> i != 0; i++) {
        t.in[i] = frame->inputs[i];
        if (t.in[i].tensor != NULL && is_wide)
            t.in[i].tensor = gni_wide(t.scope, t.in[i].tensor);
    }
    for (int i = 0; i < 3; i++)
        if ((frame->needed >> i & 1) != 0)
            gradients[i] = rule->call(&t, i);
}
