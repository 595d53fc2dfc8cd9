/*
 * loops_reference.h: what the loops of the CPU must give, one element at a time.
 *
 * Integers are computed in 128 bits and wrapped; floating point with the C library's long double, with a bound
 * for the error in units of the last place.
 */
#ifndef GNI_TESTS_LOOPS_REFERENCE_H
#define GNI_TESTS_LOOPS_REFERENCE_H

#include "ops/op.h"
#include "tensor/dtype.h"

#include <float.h>
#include <math.h>

/* ---- integers -------------------------------------------------------------------------------- */

static inline __int128 integer_wrap(gn_dtype dtype, __int128 value)
{
    switch (dtype) {
#define ROW(NAME, name, type, SIGNED) \
    case GN_##NAME:                   \
        return (type)value;
        GNI_INTEGER_LIST(ROW)
#undef ROW
    default:
        return value != 0;
    }
}

/* An element, of an integer type or bool, as it is. */
static inline __int128 integer_of(gn_dtype dtype, const void *element)
{
    gn_scalar value = gni_scalar_load(dtype, element);
    return value.kind == GN_UINT64 ? (__int128)(uint64_t)value.integer : (__int128)value.integer;
}

static inline __int128 integer_power(gn_dtype dtype, __int128 a, __int128 b)
{
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    uint64_t result = 1;
    for (int bit = 63; bit >= 0; bit--) /* squarings, from the top */
        result = result * result * ((b >> bit & 1) ? (uint64_t)a : 1);
    return integer_wrap(dtype, (int64_t)result);
}

static inline __int128 magnitude(__int128 x)
{
    return x < 0 ? -x : x;
}

static inline __int128 common_divisor(__int128 a, __int128 b)
{
    return b == 0 ? magnitude(a) : common_divisor(b, a % b);
}

static inline __int128 integer_reference(enum gni_op op, gn_dtype dtype, __int128 a, __int128 b,
                                         __int128 c)
{
    int bits = dtype == GN_BOOL ? 1 : (int)gni_dtype_size(dtype) * 8;
    bool is_inside = b >= 0 && b < bits;
    __int128 x = a, y = b, quotient = y ? x / y : 0;
    if (y && x % y && (x < 0) != (y < 0))
        quotient--;
    switch (op) {
    case GNI_OP_ADD:
        return integer_wrap(dtype, x + y);
    case GNI_OP_SUBTRACT:
        return integer_wrap(dtype, x - y);
    case GNI_OP_MULTIPLY:
        return integer_wrap(dtype, (__int128)((unsigned __int128)x * (unsigned __int128)y));
    case GNI_OP_FLOOR_DIVIDE:
        return integer_wrap(dtype, quotient);
    case GNI_OP_REMAINDER:
        return integer_wrap(dtype, y ? x - quotient * y : 0);
    case GNI_OP_FMOD:
        return integer_wrap(dtype, y ? x % y : 0);
    case GNI_OP_CLAMP:
        return (a > b ? a : b) < c ? (a > b ? a : b) : c;
    case GNI_OP_POWER:
        return integer_power(dtype, a, b);
    case GNI_OP_MAXIMUM:
        return a > b ? a : b;
    case GNI_OP_MINIMUM:
        return a < b ? a : b;
    case GNI_OP_EQUAL:
        return a == b;
    case GNI_OP_NOT_EQUAL:
        return a != b;
    case GNI_OP_LESS:
        return a < b;
    case GNI_OP_LESS_EQUAL:
        return a <= b;
    case GNI_OP_GREATER:
        return a > b;
    case GNI_OP_GREATER_EQUAL:
        return a >= b;
    case GNI_OP_LOGICAL_AND:
        return a && b;
    case GNI_OP_LOGICAL_OR:
        return a || b;
    case GNI_OP_LOGICAL_XOR:
        return !a != !b;
    case GNI_OP_LOGICAL_NOT:
        return !a;
    case GNI_OP_BITWISE_AND:
        return a & b;
    case GNI_OP_BITWISE_OR:
        return a | b;
    case GNI_OP_BITWISE_XOR:
        return a ^ b;
    case GNI_OP_BITWISE_NOT:
        return dtype == GN_BOOL ? !a : integer_wrap(dtype, ~x);
    case GNI_OP_SHIFT_LEFT:
        return is_inside ? integer_wrap(dtype, (__int128)((unsigned __int128)x << b)) : 0;
    case GNI_OP_SHIFT_RIGHT:
        return is_inside ? a >> b : a < 0 ? -1 : 0;
    case GNI_OP_GCD:
        return integer_wrap(dtype, common_divisor(x, y));
    case GNI_OP_LCM:
        return x == 0 ? 0
                      : integer_wrap(dtype, (__int128)((unsigned __int128)(magnitude(x) /
                                                                           common_divisor(x, y)) *
                                                       (unsigned __int128)magnitude(y)));
    case GNI_OP_NEGATIVE:
        return integer_wrap(dtype, -x);
    case GNI_OP_ABSOLUTE:
        return integer_wrap(dtype, x < 0 ? -x : x);
    case GNI_OP_HEAVISIDE:
        return a == 0 ? b : a > 0;
    case GNI_OP_SIGN:
        return (a > 0) - (a < 0);
    case GNI_OP_SQUARE:
        return integer_wrap(dtype, (__int128)((unsigned __int128)x * (unsigned __int128)x));
    case GNI_OP_RELU:
        return a < 0 ? 0 : a;
    case GNI_OP_RELU6:
        return a < 0 ? 0 : a > 6 ? 6 : a;
    case GNI_OP_ISFINITE:
        return 1;
    default: /* isnan, isinf */
        return 0;
    }
}

/* ---- floating point -------------------------------------------------------------------------- */

static inline long double remainder_reference(long double a, long double b)
{
    long double rest = fmodl(a, b);
    if (rest == 0)
        return copysignl(0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

static inline long double floor_divide_reference(long double a, long double b)
{
    if (b == 0)
        return a / b;
    long double rest = fmodl(a, b), quotient = rintl((a - rest) / b);
    if (rest != 0 && (rest < 0) != (b < 0))
        quotient -= 1;
    return quotient == 0 ? copysignl(0, a / b) : quotient;
}

static inline long double maximum_reference(long double a, long double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    return a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}

static inline long double lerp_reference(long double a, long double b, long double weight)
{
    return fabsl(weight) < 0.5L ? a + weight * (b - a) : b - (b - a) * (1 - weight);
}

/* Halley's method from an approximation of 3 digits. */
static inline long double erfinv_reference(long double a)
{
    long double x = fabsl(a), w = -logl((1 - x) * (1 + x)), q = w / 2 - 4.33L;
    long double y = x == 0 ? 0 : sqrtl(sqrtl(q * q + w / 0.147L) + q);
    if (!(x < 1))
        return x == 1 ? copysignl(INFINITY, a) : NAN;
    for (int i = 0; i < 6; i++) {
        long double beyond = x > 0.5L ? (1 - x) - erfcl(y) : erfl(y) - x;
        long double t = beyond * 0.88622692545275801364908374167057259L * expl(y * y);
        y -= t / (1 + y * t);
    }
    return copysignl(x < 1e-300L ? x * 0.88622692545275801364908374167057259L : y, a);
}

/* Bernoulli's numbers: the series from 30 on, the recurrence below. */
static inline long double digamma_reference(long double a)
{
    const long double pi = 3.14159265358979323846264338327950288L;
    long double sum = 0;
    if (a == 0)
        return copysignl(INFINITY, -a);
    if (a < 0) {
        long double r = a - rintl(a);
        return r == 0 ? NAN : digamma_reference(1 - a) - pi / tanl(pi * r);
    }
    for (; a < 30; a += 1)
        sum += 1 / a;
    long double w = 1 / (a * a);
    long double series =
        w * (1 / 12.0L -
             w * (1 / 120.0L -
                  w * (1 / 252.0L -
                       w * (1 / 240.0L - w * (1 / 132.0L - w * (691 / 32760.0L - w / 12))))));
    return logl(a) - 1 / (2 * a) - series - sum;
}

/* The sum of (a + i)^-s times n!, for s = n + 1: the first terms, and the series from 40 + 8 n on. */
static inline long double polygamma_above_0(int n, long double a)
{
    static const long double numbers[] = {1 / 6.0L, -1 / 30.0L, 1 / 42.0L, -1 / 30.0L, 5 / 66.0L};
    long double s = n + 1, factor = tgammal(s), sum = 0, product = s, ways = 2;
    if (a > 1e6L) { /* all of the series but its first two terms is lost */
        for (sum = 1 / a; n > 1; n--)
            sum *= (n - 1) / a;
        return sum * (1 + (s - 1) / (2 * a) + (s - 1) * s / (12 * a * a));
    }
    for (; a < 40 + 8 * n; a += 1)
        sum += powl(a, -s);
    sum += powl(a, 1 - s) / (s - 1) + powl(a, -s) / 2;
    for (int i = 0; i < 5; i++) { /* Bernoulli's numbers over (2 i + 2)! */
        sum += numbers[i] / ways * product * powl(a, -s - 1 - 2 * i);
        product *= (s + 2 * i + 1) * (s + 2 * i + 2);
        ways *= (2 * i + 3) * (2 * i + 4);
    }
    return factor * sum;
}

static inline long double polygamma_reference(long double n, long double x)
{
    long double below, above;
    n = floorl(n);
    bool is_even = fmodl(n, 2) == 0;
    if (!(n >= 1 && n <= 32) || isnan(x) || x == -INFINITY)
        return NAN;
    if (x <= 0 && x == floorl(x))
        return is_even ? -INFINITY : INFINITY;
    if (x > 0)
        return is_even ? -polygamma_above_0((int)n, x) : polygamma_above_0((int)n, x);
    below = polygamma_above_0((int)n, ceill(x) - x) - polygamma_above_0((int)n, 1 - x);
    above = polygamma_above_0((int)n, x - floorl(x));
    return is_even ? below - above : below + above;
}

/* The threshold is compared with the product as the type has it. */
static inline long double softplus_reference(gn_dtype dtype, long double x, long double beta,
                                             long double threshold)
{
    long double product = x * beta;
    if ((dtype == GN_FLOAT32 ? (float)product : (double)product) > threshold || product > 100)
        return x;
    return (fmaxl(product, 0) + log1pl(expl(-fabsl(product)))) / beta;
}

/* The upper bound is a number of the type. */
static inline long double logit_reference(gn_dtype dtype, long double x, long double eps)
{
    long double most =
        dtype == GN_FLOAT32 ? (long double)(1 - (float)eps) : (long double)(1 - (double)eps);
    long double z = eps >= 0 ? x < eps ? eps : x > most ? most : x : x;
    return fabsl(z - 0.5L) < 0.25L ? log1pl((2 * z - 1) / (1 - z)) : logl(z / (1 - z));
}

static inline long double sinc_reference(long double a)
{
    const long double pi = 3.14159265358979323846264338327950288L;
    long double n = rintl(a), s = sinl(pi * (a - n));
    return a == 0 ? 1 : (fmodl(n, 2) != 0 ? -s : s) / (pi * a);
}

/* In long double: float32 results are right for certain, float64 ones to a small part of the last place. */
static inline long double float_reference(enum gni_op op, gn_dtype dtype, long double a,
                                          long double b, long double c)
{
    switch (op) {
    case GNI_OP_ADD:
        return a + b;
    case GNI_OP_SUBTRACT:
        return a - b;
    case GNI_OP_MULTIPLY:
        return a * b;
    case GNI_OP_DIVIDE:
        return a / b;
    case GNI_OP_FLOOR_DIVIDE:
        return floor_divide_reference(a, b);
    case GNI_OP_REMAINDER:
        return remainder_reference(a, b);
    case GNI_OP_FMOD:
        return fmodl(a, b);
    case GNI_OP_HYPOT:
        return hypotl(a, b);
    case GNI_OP_CLAMP:
        return -maximum_reference(-maximum_reference(a, b), -c);
    case GNI_OP_LERP:
        return lerp_reference(a, b, c);
    case GNI_OP_POWER:
        return powl(a, b);
    case GNI_OP_MAXIMUM:
        return maximum_reference(a, b);
    case GNI_OP_MINIMUM:
        return -maximum_reference(-a, -b);
    case GNI_OP_EQUAL:
        return a == b;
    case GNI_OP_NOT_EQUAL:
        return a != b;
    case GNI_OP_LESS:
        return a < b;
    case GNI_OP_LESS_EQUAL:
        return a <= b;
    case GNI_OP_GREATER:
        return a > b;
    case GNI_OP_GREATER_EQUAL:
        return a >= b;
    case GNI_OP_LOGICAL_AND:
        return a != 0 && b != 0;
    case GNI_OP_LOGICAL_OR:
        return a != 0 || b != 0;
    case GNI_OP_LOGICAL_XOR:
        return (a != 0) != (b != 0);
    case GNI_OP_LOGICAL_NOT:
        return a == 0;
    case GNI_OP_NEGATIVE:
        return -a;
    case GNI_OP_ABSOLUTE:
        return fabsl(a);
    case GNI_OP_SIGN:
        return isnan(a) ? a : (a > 0) - (a < 0);
    case GNI_OP_SQUARE:
        return a * a;
    case GNI_OP_RECIPROCAL:
        return 1 / a;
    case GNI_OP_FLOOR:
        return floorl(a);
    case GNI_OP_CEIL:
        return ceill(a);
    case GNI_OP_ROUND:
        return rintl(a);
    case GNI_OP_TRUNC:
        return truncl(a);
    case GNI_OP_SQRT:
        return sqrtl(a);
    case GNI_OP_RSQRT:
        return 1 / sqrtl(a);
    case GNI_OP_EXP:
        return expl(a);
    case GNI_OP_EXP2:
        return exp2l(a);
    case GNI_OP_EXPM1:
        return expm1l(a);
    case GNI_OP_LDEXP: /* 0 and infinity stay */
        return isnan(b) || (a != 0 && isfinite(a)) ? a * exp2l(b) : a;
    case GNI_OP_NEXTAFTER:
        return dtype == GN_FLOAT32 ? nextafterf((float)a, (float)b)
                                   : nextafter((double)a, (double)b);
    case GNI_OP_LOG:
        return logl(a);
    case GNI_OP_LOG1P:
        return log1pl(a);
    case GNI_OP_LOG2:
        return log2l(a);
    case GNI_OP_LOG10:
        return log10l(a);
    case GNI_OP_SIN:
        return sinl(a);
    case GNI_OP_COS:
        return cosl(a);
    case GNI_OP_TAN:
        return tanl(a);
    case GNI_OP_ASIN:
        return asinl(a);
    case GNI_OP_ACOS:
        return acosl(a);
    case GNI_OP_ATAN:
        return atanl(a);
    case GNI_OP_ASINH:
        return asinhl(a);
    case GNI_OP_ACOSH:
        return acoshl(a);
    case GNI_OP_ATANH:
        return atanhl(a);
    case GNI_OP_ATAN2:
        return atan2l(a, b);
    case GNI_OP_SINH:
        return sinhl(a);
    case GNI_OP_COSH:
        return coshl(a);
    case GNI_OP_TANH:
        return tanhl(a);
    case GNI_OP_ERF:
        return erfl(a);
    case GNI_OP_SIGMOID:
        return 1 / (1 + expl(-a));
    case GNI_OP_RELU:
        return isnan(a) ? a : a > 0 ? a : 0;
    case GNI_OP_GELU:
        return a / 2 * erfcl(-a * 0.70710678118654752440L);
    case GNI_OP_GELU_TANH:
        return a / 2 * (1 + tanhl(0.79788456080286535588L * (a + 0.044715L * a * a * a)));
    case GNI_OP_SILU:
        return a * (1 / (1 + expl(-a)));
    case GNI_OP_ERFC:
        return erfcl(a);
    case GNI_OP_ERFINV:
        return erfinv_reference(a);
    case GNI_OP_LGAMMA:
        return lgammal(a);
    case GNI_OP_DIGAMMA:
        return digamma_reference(a);
    case GNI_OP_POLYGAMMA:
        return polygamma_reference(a, b);
    case GNI_OP_SINC:
        return sinc_reference(a);
    case GNI_OP_RELU6:
        return isnan(a) ? a : a > 0 ? fminl(a, 6) : 0;
    case GNI_OP_LEAKY_RELU:
        return a > 0 ? a : a * b;
    case GNI_OP_ELU:
        return a > 0 ? a : b * expm1l(a);
    case GNI_OP_CELU:
        return a > 0                                          ? a
               : fabsl(a / b) < 0x1p-60L                      ? a
               : dtype == GN_FLOAT64 && a / b > logl(DBL_MAX) ? b * INFINITY /* exp() is */
                                                              : b * expm1l(a / b);
    case GNI_OP_SELU:
        return 1.0507009873554804934193349852946L *
               (a > 0 ? a : 1.6732632423543772848170429916717L * expm1l(a));
    case GNI_OP_HARDSWISH:
        return isnan(a) ? a : a * (fminl(fmaxl(a + 3, 0), 6) / 6);
    case GNI_OP_MISH:
        return a * tanhl(log1pl(expl(a)));
    case GNI_OP_SOFTPLUS:
        return softplus_reference(dtype, a, b, c);
    case GNI_OP_LOG_SIGMOID:
        return (a < 0 ? a : 0) - log1pl(expl(-fabsl(a)));
    case GNI_OP_LOGADDEXP:
        return maximum_reference(a, b) + log1pl(expl(a == b ? 0 : -fabsl(a - b)));
    case GNI_OP_LOGADDEXP2:
        return maximum_reference(a, b) +
               log1pl(exp2l(a == b ? 0 : -fabsl(a - b))) * 1.44269504088896340735992468100189L;
    case GNI_OP_XLOGY:
        return a == 0 && !isnan(b) ? 0 : a * logl(b);
    case GNI_OP_LOGIT:
        return logit_reference(dtype, a, b);
    case GNI_OP_HEAVISIDE:
        return a == 0 ? b : a > 0;
    case GNI_OP_ISNAN:
        return isnan(a);
    case GNI_OP_ISINF:
        return isinf(a) != 0;
    case GNI_OP_ISFINITE:
        return isfinite(a);
    default:
        return 0;
    }
}

/* The largest error allowed, in units of the last place; 0.5 and a little is right rounding. */
static inline double bound_of(enum gni_op op, gn_dtype dtype)
{
    switch (op) {
    case GNI_OP_RSQRT:
    case GNI_OP_EXP:
    case GNI_OP_EXP2:
    case GNI_OP_EXPM1:
    case GNI_OP_LDEXP:
    case GNI_OP_LOG:
    case GNI_OP_LOG1P:
    case GNI_OP_LOG2:
    case GNI_OP_LOG10:
    case GNI_OP_SIN:
    case GNI_OP_COS:
    case GNI_OP_TAN:
    case GNI_OP_ASIN:
    case GNI_OP_ACOS:
    case GNI_OP_ATAN:
    case GNI_OP_ASINH:
    case GNI_OP_ACOSH:
    case GNI_OP_ATANH:
    case GNI_OP_ATAN2:
    case GNI_OP_SINH:
    case GNI_OP_COSH:
    case GNI_OP_TANH:
    case GNI_OP_ERF:
    case GNI_OP_ERFC:
    case GNI_OP_ERFINV:
    case GNI_OP_ELU:
    case GNI_OP_CELU:
    case GNI_OP_SELU:
    case GNI_OP_HARDSWISH:
    case GNI_OP_LOG_SIGMOID:
    case GNI_OP_XLOGY:
    case GNI_OP_LOGIT:
    case GNI_OP_SIGMOID:
        return 3;
    case GNI_OP_GELU:
    case GNI_OP_GELU_TANH:
    case GNI_OP_LOGADDEXP:
    case GNI_OP_SILU:
    case GNI_OP_SINC:
    case GNI_OP_SOFTPLUS:
        return 4;
    case GNI_OP_LOGADDEXP2:
    case GNI_OP_MISH:
        return 5;
    case GNI_OP_DIGAMMA:
        return dtype == GN_FLOAT32 ? 3 : 5;
    case GNI_OP_LGAMMA:
        return dtype == GN_FLOAT32 ? 3 : 5;
    case GNI_OP_POLYGAMMA: /* of the larger part: see scale_of() */
        return dtype == GN_FLOAT32 ? 1 : 40;
    case GNI_OP_POWER:
        return 1;
    case GNI_OP_HYPOT:
        return dtype == GN_FLOAT32 ? 0.51 : 1;
    case GNI_OP_LERP: /* of the largest term: see scale_of() */
        return dtype == GN_FLOAT32 ? 0.51 : 3.5;
    case GNI_OP_REMAINDER: /* the sum of two numbers, after an exact remainder */
        return dtype == GN_FLOAT32 ? 0.5001 : 0.51;
    case GNI_OP_FLOOR_DIVIDE:
        return dtype == GN_FLOAT32 ? 0.51 : 2;
    default:
        return dtype == GN_FLOAT32 ? 0.5 : 0.501; /* long double has 11 bits more than double */
    }
}

static inline double last_place(gn_dtype dtype, long double value)
{
    int digits = dtype == GN_FLOAT32 ? FLT_MANT_DIG : DBL_MANT_DIG;
    int least = dtype == GN_FLOAT32 ? FLT_MIN_EXP : DBL_MIN_EXP;
    int exponent;
    frexpl(value, &exponent);
    return ldexp(1, (exponent < least || value == 0 ? least : exponent) - digits);
}

/* The error of a result; infinite where it is altogether wrong. `scale`: what errors may be relative to. */
static inline double error_of(gn_dtype dtype, double actual, long double expected,
                              long double scale)
{
    if (isnan(expected) || isnan(actual))
        return isnan(expected) && isnan(actual) ? 0 : INFINITY;
    if (expected == 0 && actual == 0)
        return !signbit(expected) == !signbit(actual) ? 0 : INFINITY;
    if (isinf(expected))
        return expected == (long double)actual ? 0 : INFINITY;
    double unit = last_place(dtype, fabsl(expected) > fabsl(scale) ? expected : scale);
    long double largest = dtype == GN_FLOAT32 ? FLT_MAX : DBL_MAX;
    if (isinf(actual) &&
        !signbit(actual) == !signbit(expected)) /* infinity is the next after the largest */
        return fabsl(expected) > largest
                   ? 0
                   : (double)((largest - fabsl(expected)) / (long double)unit) + 1;
    if (fabsl(expected) > largest && fabsl(expected) < largest + (long double)unit / 2)
        expected = copysignl(largest, expected);
    return (double)(fabsl(actual - expected) / (long double)unit);
}

/* What errors may be relative to: the largest term of a sum, x times a factor that may be subnormal. */
static inline long double scale_of(enum gni_op op, gn_dtype dtype, double x, double y, double z)
{
    if (op == GNI_OP_LERP)
        return fmaxl(fmaxl(fabsl(x), fabsl(y)), fabsl(z * ((long double)y - x)));
    if ((op == GNI_OP_LOGADDEXP || op == GNI_OP_LOGADDEXP2) && isfinite(x) && isfinite(y))
        return maximum_reference(x, y);
    if (op == GNI_OP_DIGAMMA && dtype == GN_FLOAT64)
        return 2 + logl(1 + fabsl(x));
    if (op == GNI_OP_POLYGAMMA && y < 0 && y != floor(y) && x >= 1 && x < 33)
        return polygamma_above_0((int)x, y - floor(y));
    if (op == GNI_OP_GELU || op == GNI_OP_GELU_TANH)
        return x / 2;
    if (op == GNI_OP_CELU && y < 0 && x <= 0) /* what x / y loses */
        return (1 + x / y) * float_reference(op, dtype, x, y, z);
    if (op == GNI_OP_SOFTPLUS) /* what x y loses, before exp() */
        return fmaxl((dtype == GN_FLOAT32 ? (long double)FLT_MIN : (long double)DBL_MIN) / fabsl(y),
                     (1 + fabsl((long double)x * y)) * fabsl(float_reference(op, dtype, x, y, z)));
    if (op == GNI_OP_SILU || op == GNI_OP_MISH)
        return x * (dtype == GN_FLOAT32 ? (long double)FLT_MIN : (long double)DBL_MIN);
    return 0;
}

#endif
