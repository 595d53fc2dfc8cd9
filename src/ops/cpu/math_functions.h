/*
 * math_functions.h: mathematical functions of one element, for the loops of the CPU.
 *
 * They are straight lines: no branches, tables or calls, so that a loop over them becomes vector code, and
 * nothing but IEEE additions, multiplications, divisions, fused multiplications and additions, and operations on
 * bits, so that every instruction set gives the same bits (the files that include this are compiled without
 * contraction; a set without fused operations computes them of others). Selections by `?:` compute both sides.
 *
 * Common means:
 *   rounding    x + 1.5 * 2^52 has the nearest integer in its low bits, as bits and, after subtracting again,
 *               as a number (1.5 * 2^23 for float32)
 *   reduction   n * C is subtracted with C in two to four parts, of which n times the first ones is exact
 *   polynomials minimax fits (Remez) of the remainder after the first terms; halves of them are computed side by side
 *               (Estrin's form), because a processor waits longer for a chain of operations than for their number
 * Many functions of float32 are computed in double: that is exact enough to need no care, and a subnormal
 * float32 is a normal double.
 *
 * "ulp" in comments is the largest error measured, in units of the last place of the result: for float32 over
 * every 29th number, for float64 by tests/ops/test_loops.c over random arguments of all magnitudes.
 */
#ifndef GNI_OPS_CPU_FUNCTIONS_H
#define GNI_OPS_CPU_FUNCTIONS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* A call in a loop keeps it from becoming vector code, and compilers find some of these too long to inline. */
#define ELEMENT static inline __attribute__((always_inline))

ELEMENT uint32_t f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

ELEMENT float f32_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

ELEMENT uint64_t f64_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

ELEMENT double f64_from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#define F32_ROUNDER 0x1.8p23f
#define F64_ROUNDER 0x1.8p52
#define LN2 0x1.62e42fefa39efp-1
#define LN2_HIGH 0x1.62e42fefa2p-1 /* 40 bits */
#define LN2_LOW 0x1.9ef35793c7673p-41
#define LOG2_E 0x1.71547652b82fep+0
#define LOG10_E 0x1.bcb7b1526e50ep-2
#define SQRT_HALF_BITS 0x3fe6a09e667f3bcdull
#define SQRT_HALF_BITS_F32 0x3f3504f3u

/* 2^n, where n is a two's complement in the range of normal numbers. */
ELEMENT float f32_power_of_2(uint32_t n)
{
    return f32_from_bits((n + 127) << 23);
}

ELEMENT double f64_power_of_2(uint64_t n)
{
    return f64_from_bits((n + 1023) << 52);
}

/* The sign of `sign` on the magnitude of `value`. */
ELEMENT float f32_copy_sign(float value, float sign)
{
    return f32_from_bits((f32_bits(value) & 0x7fffffff) | (f32_bits(sign) & 0x80000000));
}

ELEMENT double f64_copy_sign(double value, double sign)
{
    return f64_from_bits((f64_bits(value) & INT64_MAX) | (f64_bits(sign) & ~(uint64_t)INT64_MAX));
}

/* ---- fused multiplication and addition -------------------------------------------------------- */

#if defined(__FMA__) || defined(__aarch64__)

/* a b + c, rounded once. */
ELEMENT float f32_fma(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}

ELEMENT double f64_fma(double a, double b, double c)
{
    return __builtin_fma(a, b, c);
}

/* The product of two numbers, and what it lacks, which is exact. Neither number is larger than 2^900. */
ELEMENT double f64_product(double a, double b, double *low)
{
    double product = a * b;
    *low = __builtin_fma(a, b, -product);
    return product;
}

#else

/* a + b, and what it lacks. */
ELEMENT double f64_sum(double a, double b, double *low)
{
    double sum = a + b, part = sum - a;
    *low = (a - (sum - part)) + (b - part);
    return sum;
}

/* a + b rounded to odd: where something is lost, the last bit is set, so that a later rounding of fewer bits is right. */
ELEMENT double f64_sum_to_odd(double a, double b)
{
    double low, sum = f64_sum(a, b, &low);
    uint64_t bits = f64_bits(sum);
    bool is_lost = ((low > 0) | (low < 0)) & ((bits & 1) == 0);
    uint64_t next = (low > 0) == (sum > 0) ? bits + 1 : bits - 1;
    return f64_from_bits(is_lost ? next : bits);
}

/* The product of two float32 is exact in double. */
ELEMENT float f32_fma(float a, float b, float c)
{
    return (float)f64_sum_to_odd((double)a * (double)b, c);
}

/* By halves of 26 bits, whose products are exact. */
ELEMENT double f64_product(double a, double b, double *low)
{
    double product = a * b;
    double a_turned = a * 0x1.0000002p27, b_turned = b * 0x1.0000002p27;
    double a_high = a_turned - (a_turned - a), a_low = a - a_high;
    double b_high = b_turned - (b_turned - b), b_low = b - b_high;
    *low = (((a_high * b_high - product) + a_high * b_low) + a_low * b_high) + a_low * b_low;
    return product;
}

/* For numbers up to 2^900 whose product is no smaller than 2^-900, or lost beside c. */
ELEMENT double f64_fma(double a, double b, double c)
{
    double low, product = f64_product(a, b, &low);
    double second_low, second = f64_sum(c, low, &second_low);
    double first_low, first = f64_sum(product, second, &first_low);
    return first + f64_sum_to_odd(second_low, first_low);
}

#endif

/* Polynomials of z from the constant term on; z2 is its square, z4 the square of that. */
ELEMENT float f32_polynomial_4(float z, float z2, float a, float b, float c, float d)
{
    return f32_fma(f32_fma(d, z, c), z2, f32_fma(b, z, a));
}

ELEMENT double f64_polynomial_4(double z, double z2, double a, double b, double c, double d)
{
    return f64_fma(f64_fma(d, z, c), z2, f64_fma(b, z, a));
}

ELEMENT float f32_polynomial_8(float z, float z2, float z4, float a, float b, float c, float d,
                               float e, float f, float g, float h)
{
    return f32_fma(f32_polynomial_4(z, z2, e, f, g, h), z4, f32_polynomial_4(z, z2, a, b, c, d));
}

ELEMENT double f64_polynomial_8(double z, double z2, double z4, double a, double b, double c,
                                double d, double e, double f, double g, double h)
{
    return f64_fma(f64_polynomial_4(z, z2, e, f, g, h), z4, f64_polynomial_4(z, z2, a, b, c, d));
}

/* ---- largest and smallest -------------------------------------------------------------------- */

/* NaN wins, and 0 is larger than -0: equal values that are not zeros have equal bits. */
ELEMENT float f32_maximum(float a, float b)
{
    float larger = ((a > b) | (a != a)) ? a : b;
    return a == b ? f32_from_bits(f32_bits(a) & f32_bits(b)) : larger;
}

ELEMENT float f32_minimum(float a, float b)
{
    float smaller = ((a < b) | (a != a)) ? a : b;
    return a == b ? f32_from_bits(f32_bits(a) | f32_bits(b)) : smaller;
}

ELEMENT double f64_maximum(double a, double b)
{
    double larger = ((a > b) | (a != a)) ? a : b;
    return a == b ? f64_from_bits(f64_bits(a) & f64_bits(b)) : larger;
}

ELEMENT double f64_minimum(double a, double b)
{
    double smaller = ((a < b) | (a != a)) ? a : b;
    return a == b ? f64_from_bits(f64_bits(a) | f64_bits(b)) : smaller;
}

/* ---- exponentials ---------------------------------------------------------------------------- */

/* e^r - 1 for |r| <= ln(2)/2, as r + what is returned. */
ELEMENT float f32_expm1_tail(float r)
{
    float z = r * r;
    float p = f32_fma(0x1.6d755ep-10f, z, f32_fma(0x1.120b88p-7f, r, 0x1.5554b8p-5f));
    return z * f32_fma(p, z, f32_fma(0x1.5554dcp-3f, r, 0x1p-1f));
}

/* The rest of x after n ln(2); *k is n as a two's complement. */
ELEMENT float f32_exp_reduce(float x, int32_t *k)
{
    float rounded = f32_fma(x, (float)LOG2_E, F32_ROUNDER), n = rounded - F32_ROUNDER;
    *k = (int32_t)(f32_bits(rounded) - f32_bits(F32_ROUNDER));
    return f32_fma(n, -0x1.7f7d1cp-20f, f32_fma(n, -0x1.62e4p-1f, x));
}

/* 2^shift e^x = 2^(n + shift) e^r; the power of 2 in two factors, for results that are subnormal or nearly infinite. */
ELEMENT float f32_exp_shifted(float x, int32_t shift)
{
    int32_t k;
    float r = f32_exp_reduce(x, &k), y = 1.0f + (r + f32_expm1_tail(r));
    int32_t half = (k + shift) >> 1;
    return y * f32_power_of_2((uint32_t)half) * f32_power_of_2((uint32_t)(k + shift - half));
}

/* 1.1 ulp. */
ELEMENT float f32_exp(float x)
{
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    return f32_exp_shifted(x, 0);
}

/* The rest of x after n ln(2); *k is n as a two's complement. */
ELEMENT double f64_exp_reduce(double x, double *n, uint64_t *k)
{
    double rounded = f64_fma(x, LOG2_E, F64_ROUNDER);
    *n = rounded - F64_ROUNDER;
    *k = f64_bits(rounded) - f64_bits(F64_ROUNDER);
    return f64_fma(*n, -LN2_LOW, f64_fma(*n, -LN2_HIGH, x));
}

/* e^r - 1 for |r| <= ln(2)/2: relative error 4e-10. */
ELEMENT double f64_expm1_short(double r)
{
    double z = r * r;
    double p = f64_fma(f64_fma(0x1.a17e1e48042cap-13, r, 0x1.6d433f8a1d4fdp-10), z * z,
                       f64_polynomial_4(r, z, 0x1.0000000b95489p-1, 0x1.5555557434eb2p-3,
                                        0x1.5554e8f099c04p-5, 0x1.1110ab62c3881p-7));
    return f64_fma(z, p, r);
}

/* e^r - 1 - r to the precision of double. */
ELEMENT double f64_expm1_tail(double r)
{
    double z = r * r, z2 = z * z;
    double p = f64_polynomial_8(r, z, z2, 0.5, 0x1.5555555555558p-3, 0x1.5555555553d5cp-5,
                                0x1.111111110f7fdp-7, 0x1.6c16c1788e937p-10, 0x1.a01a01b00f205p-13,
                                0x1.a019b902cdf61p-16, 0x1.71ddf6ab977fbp-19);
    p = f64_fma(f64_fma(0x1.af633a92c2458p-26, r, 0x1.2891917e25e54p-22), z2 * z2, p);
    return z * p;
}

ELEMENT double f64_expm1_full(double r)
{
    return r + f64_expm1_tail(r);
}

/* As in float32. */
ELEMENT double f64_exp_shifted(double x, int64_t shift)
{
    double n;
    uint64_t k;
    double y = 1.0 + f64_expm1_full(f64_exp_reduce(x, &n, &k));
    uint64_t half = f64_bits(n * 0.5 + F64_ROUNDER) - f64_bits(F64_ROUNDER);
    return y * f64_power_of_2(half) * f64_power_of_2(k + (uint64_t)shift - half);
}

/* 1.1 ulp. */
ELEMENT double f64_exp(double x)
{
    x = x < -746.0 ? -746.0 : x;
    x = x > 710.0 ? 710.0 : x;
    return f64_exp_shifted(x, 0);
}

/* 2^x = 2^n e^(r log(2)), where r is exact; log(2) is a sum of two. 0.9 ulp, in float64 1.1 ulp. */
ELEMENT float f32_exp2(float x)
{
    x = x < -151.0f ? -151.0f : x;
    x = x > 129.0f ? 129.0f : x;
    float rounded = x + F32_ROUNDER, r = x - (rounded - F32_ROUNDER), g = r * 0x1.62e43p-1f;
    float low = f32_fma(r, -0x1.05c61p-29f, f32_fma(r, 0x1.62e43p-1f, -g));
    float y = 1.0f + (g + (f32_expm1_tail(g) + low));
    int32_t k = (int32_t)(f32_bits(rounded) - f32_bits(F32_ROUNDER)), half = k >> 1;
    return y * f32_power_of_2((uint32_t)half) * f32_power_of_2((uint32_t)(k - half));
}

/* The same for |r| <= 1/2. */
ELEMENT double f64_exp2_rest(double r)
{
    double low, g = f64_product(r, LN2, &low);
    low = f64_fma(r, 0x1.abc9e3b39803fp-56, low);
    return 1.0 + (g + (f64_expm1_tail(g) + low));
}

ELEMENT double f64_exp2(double x)
{
    x = x < -1076.0 ? -1076.0 : x;
    x = x > 1025.0 ? 1025.0 : x;
    double rounded = x + F64_ROUNDER, n = rounded - F64_ROUNDER;
    uint64_t k = f64_bits(rounded) - f64_bits(F64_ROUNDER);
    uint64_t half = f64_bits(n * 0.5 + F64_ROUNDER) - f64_bits(F64_ROUNDER);
    return f64_exp2_rest(x - n) * f64_power_of_2(half) * f64_power_of_2(k - half);
}

/* x 2^y, which is rounded once where y is an integer: 0.5 ulp, else 1.7 ulp. What is infinite or 0 stays. */
ELEMENT float f32_ldexp(float x, float y)
{
    double limited = y < -300.0f ? -300.0 : (double)y;
    limited = limited > 300.0 ? 300.0 : limited;
    double rounded = limited + F64_ROUNDER, r = limited - (rounded - F64_ROUNDER);
    double scale = f64_power_of_2(f64_bits(rounded) - f64_bits(F64_ROUNDER));
    return (float)((double)x * f64_exp2_rest(r) * scale);
}

/* 2^n for an integer up to 1022. */
ELEMENT double f64_power_of_integer(double n)
{
    return f64_power_of_2(f64_bits(n + F64_ROUNDER) - f64_bits(F64_ROUNDER));
}

/* x is brought nearer to 1 before it is multiplied; then in three steps, the largest last: a step before it that makes a
 * subnormal number is followed by one that makes it 0. */
ELEMENT double f64_ldexp(double x, double y)
{
    double limited = y < -2200.0 ? -2200.0 : y;
    limited = limited > 2200.0 ? 2200.0 : limited;
    double n = (limited + F64_ROUNDER) - F64_ROUNDER, r = limited - n;
    bool is_large = fabs(x) > 1.0;
    x = x * (is_large ? 0.5 : 0x1p60);
    n = n + (is_large ? 1.0 : -60.0);
    double last = n < -1000.0 ? -1000.0 : n;
    last = last > 1000.0 ? 1000.0 : last;
    double second = n - last < -1000.0 ? -1000.0 : n - last;
    second = second > 1000.0 ? 1000.0 : second;
    x = x * f64_exp2_rest(r) * f64_power_of_integer(n - last - second);
    return x * f64_power_of_integer(second) * f64_power_of_integer(last);
}

/* (e^x - 1) / 2 = 2^(n - 1) (e^r - 1) + (2^(n - 1) - 1/2), in quarters, because 2^n may be 2^129. For x from -40 to
 * the last one whose hyperbolic sine is finite. */
ELEMENT float f32_expm1_half(float x)
{
    int32_t k;
    float r = f32_exp_reduce(x, &k), e = r + f32_expm1_tail(r);
    float quarter = f32_power_of_2((uint32_t)(k - 2));
    return 2.0f * f32_fma(quarter, e, quarter - 0.25f);
}

ELEMENT double f64_expm1_half(double x)
{
    double n;
    uint64_t k;
    double e = f64_expm1_full(f64_exp_reduce(x, &n, &k));
    double quarter = f64_power_of_2(k - 2);
    return 2.0 * (quarter * e + (quarter - 0.25));
}

/* 1.8 ulp, in float64 2.1 ulp. */
ELEMENT float f32_expm1(float x)
{
    float limited = x < -40.0f ? -40.0f : x;
    limited = limited > 89.0f ? 89.0f : limited;
    float result = 2.0f * f32_expm1_half(limited);
    return fabsf(x) < 0x1p-25f ? x : result; /* -0, and what has no quarter */
}

ELEMENT double f64_expm1(double x)
{
    double limited = x < -40.0 ? -40.0 : x;
    limited = limited > 710.0 ? 710.0 : limited;
    double result = 2.0 * f64_expm1_half(limited);
    return fabs(x) < 0x1p-54 ? x : result;
}

/* ---- what is made of exponentials ------------------------------------------------------------ */

/* 1 / (1 + e^-x), written so that nothing overflows: the small results are right, too. 2.4 ulp, in
 * float64 as well. */
ELEMENT float f32_sigmoid(float x)
{
    float e = f32_exp(-fabsf(x));
    return (x < 0 ? e : 1.0f) / (1.0f + e);
}

ELEMENT double f64_sigmoid(double x)
{
    double e = f64_exp(-fabs(x));
    return (x < 0 ? e : 1.0) / (1.0 + e);
}

/* x sigmoid(x); NaN for -infinity, as the formula says. 3.3 ulp, or |x| times that of the smallest subnormal
 * number, which sigmoid(x) may be near. */
ELEMENT float f32_silu(float x)
{
    return x * f32_sigmoid(x);
}

ELEMENT double f64_silu(double x)
{
    return x * f64_sigmoid(x);
}

/* A polynomial up to 0.625, 1 - 2 / (e^2|x| + 1) beyond. 1.4 ulp. */
ELEMENT float f32_tanh(float x)
{
    float a = fabsf(x), z = x * x, z2 = z * z;
    float p = f32_fma(
        -0x1.902f8cp-8f, z2 * z2,
        f32_polynomial_4(z, z2, -0x1.555552p-2f, 0x1.110e36p-3f, -0x1.b92a2cp-5f, 0x1.58273ep-6f));
    float small = f32_fma(x * z, p, x);
    int32_t k;
    float r = f32_exp_reduce(2.0f * (a > 10.0f ? 10.0f : a), &k); /* from 9.1 on it is 1 */
    float e = (1.0f + (r + f32_expm1_tail(r))) * f32_power_of_2((uint32_t)k);
    float large = 1.0f - 2.0f / (e + 1.0f);
    return f32_copy_sign(a < 0.625f ? small : large, x);
}

/* t / (t + 2) for t = e^2|x| - 1. 2.6 ulp. */
ELEMENT double f64_tanh(double x)
{
    double a = fabs(x);
    a = a > 20.0 ? 20.0 : a;
    double t = f64_expm1(2.0 * a);
    return f64_copy_sign(t / (t + 2.0), x);
}

/* u + u / (2u + 1) for u = (e^|x| - 1) / 2, and E + 1/4E for E = e^|x| / 2: neither u nor E overflows before the result.
 * 2.2 and 1.5 ulp, in float64 2.2 and 1.6 ulp. */
ELEMENT float f32_sinh(float x)
{
    float a = fabsf(x), u = f32_expm1_half(a > 89.5f ? 89.5f : a);
    float sum = u < 0x1p30f ? u + u / (2.0f * u + 1.0f) : u, result = f32_copy_sign(sum, x);
    return a < 0x1p-13f ? x : result;
}

ELEMENT double f64_sinh(double x)
{
    double a = fabs(x), u = f64_expm1_half(a > 710.5 ? 710.5 : a);
    double sum = u < 0x1p60 ? u + u / (2.0 * u + 1.0) : u, result = f64_copy_sign(sum, x);
    return a < 0x1p-27 ? x : result;
}

ELEMENT float f32_cosh(float x)
{
    float a = fabsf(x), e = f32_exp_shifted(a > 90.0f ? 90.0f : a, -1);
    return e + 0.25f / e;
}

ELEMENT double f64_cosh(double x)
{
    double a = fabs(x), e = f64_exp_shifted(a > 711.0 ? 711.0 : a, -1);
    return e + 0.25 / e;
}

/* x + x P(x^2) up to 1, 1 - e^-G(|x|) beyond, where G is a fit of -log(erfc) on 1 to 4. 1.5 ulp. */
ELEMENT float f32_erf(float x)
{
    float a = fabsf(x), z = x * x;
    float z2 = z * z;
    float p = f32_fma(
        f32_fma(0x1.4ae4c6p-14f, z2, f32_fma(-0x1.a485f8p-11f, z, 0x1.5419fap-8f)), z2 * z2,
        f32_polynomial_4(z, z2, 0x1.06eba8p-3f, -0x1.81273ep-2f, 0x1.ce2d2p-4f, -0x1.b7fbb6p-6f));
    float small = f32_fma(x, p, x);
    float c = a > 4.0f ? 4.0f : a, c2 = c * c, c4 = c2 * c2;
    float g = f32_polynomial_8(c, c2, c4, -0x1.312a6ep-12f, 0x1.214f86p+0f, 0x1.439744p-1f,
                               0x1.c230b8p-4f, -0x1.af59aap-6f, 0x1.35d57ap-8f, -0x1.356fc8p-11f,
                               0x1.7bfcfep-15f);
    g = f32_fma(-0x1.ad72d4p-20f, c4 * c4, g);
    float large = 1.0f - f32_exp(-g);
    return a < 1.0f ? small : f32_copy_sign(large, x);
}

/* The same, with G on 1 to 6. 1.4 ulp. */
ELEMENT double f64_erf(double x)
{
    double a = fabs(x), z = x * x, z2 = z * z, z4 = z2 * z2;
    double p = f64_fma(f64_polynomial_4(z, z2, 0x1.b97fd5d5cea58p-20, -0x1.5c072df7c0e9ep-23,
                                        0x1.d71b21cf3dcd1p-27, -0x1.abae353b8c9f6p-31),
                       z4 * z4,
                       f64_polynomial_8(z, z2, z4, 0x1.06eba8214db68p-3, -0x1.812746b0379bdp-2,
                                        0x1.ce2f21a040d21p-4, -0x1.b82ce311fab6fp-6,
                                        0x1.565bccf92eaadp-8, -0x1.c02db03e3cd72p-11,
                                        0x1.f9a2bab00ed8ep-14, -0x1.f4ca4dbca9a02p-17));
    double small = x + x * p; /* x p may be subnormal */
    double c = a > 6.0 ? 6.0 : a, c2 = c * c, c4 = c2 * c2, c8 = c4 * c4;
    double g =
        f64_polynomial_8(c, c2, c4, -0x1.d009a2408a0e2p-27, 0x1.acdda8b9bc6edp-30,
                         -0x1.3ec8fe2964ca4p-33, 0x1.73e7ca394068fp-37, -0x1.47d2cbdf29035p-41,
                         0x1.9a660409f5356p-46, -0x1.4502ad4806f5ep-51, 0x1.e96d222b8e57bp-58);
    g = f64_fma(g, c8,
                f64_polynomial_8(c, c2, c4, -0x1.5675eeb088cf5p-14, 0x1.3e01d38710d93p-13,
                                 -0x1.6f93379454949p-14, 0x1.23d5e71ea3443p-15,
                                 -0x1.68ad557da144fp-17, 0x1.69da989157d9bp-19,
                                 -0x1.2b6fdb704dec4p-21, 0x1.9a5b847c5eb3bp-24));
    g = f64_fma(g, c8,
                f64_polynomial_8(c, c2, c4, -0x1.20efbb0a580fep-25, 0x1.20dd7c9e31ec0p+0,
                                 0x1.45f2a870df705p-1, 0x1.a5003510b0043p-4, -0x1.39df9db82831ep-6,
                                 -0x1.3e454e033dae7p-13, 0x1.a573cf417a148p-10,
                                 -0x1.f91477e7ec0bcp-12));
    double large = 1.0 - f64_exp(-g);
    return f64_copy_sign(a < 1.0 ? small : large, x);
}

/* x/2 (1 + erf(x / sqrt(2))): what cancels for negative x is small beside x/2. 1.7 ulp of x/2 or the result. */
ELEMENT float f32_gelu(float x)
{
    return 0.5f * x * (1.0f + f32_erf(x * 0x1.6a09e6p-1f));
}

ELEMENT double f64_gelu(double x)
{
    return 0.5 * x * (1.0 + f64_erf(x * 0x1.6a09e667f3bcdp-1));
}

/* x/2 (1 + tanh(u)) = x sigmoid(2u) for u = sqrt(2/pi) (x + 0.044715 x^3). 2.7 ulp of x/2 or the result. */
ELEMENT float f32_gelu_tanh(float x)
{
    float twice_u = x * 0x1.988454p+0f * (1.0f + 0.044715f * (x * x));
    return x * f32_sigmoid(twice_u);
}

ELEMENT double f64_gelu_tanh(double x)
{
    double twice_u = x * 0x1.9884533d43651p+0 * (1.0 + 0.044715 * (x * x));
    return x * f64_sigmoid(twice_u);
}

/* ---- logarithms ------------------------------------------------------------------------------ */

/* x = 2^k (1 + f) for a positive normal x, with 1 + f from sqrt(1/2) to sqrt(2). k comes as a number: an
 * integer below 2^52 is the low bits of 2^52 + it. */
ELEMENT double f64_log_reduce(double x, double *k)
{
    uint64_t bits = f64_bits(x);
    uint64_t biased = (bits + (0x3ff0000000000000ull - SQRT_HALF_BITS)) >> 52; /* k + 1023 */
    *k = f64_from_bits(biased | 0x4330000000000000ull) - (0x1p52 + 1023.0);
    return f64_from_bits(bits - (biased << 52) + 0x3ff0000000000000ull) - 1.0;
}

/* log(1 + f) = 2s + s R(s^2) for s = f / (2 + f): relative error 3e-11. */
ELEMENT double f64_log_short(double f)
{
    double s = f / (2.0 + f), z = s * s;
    double p = f64_polynomial_4(z, z * z, 0x1.5555554b892cp-1, 0x1.9999ec3463581p-2,
                                0x1.245bf1be2e6fap-2, 0x1.ddde508318e2cp-3);
    return f64_fma(s * z, p, 2.0 * s);
}

/* k ln(2) + log(1 + f) to the precision of double: 2s is f - f^2/2 + s f^2/2, whose first term is exact. */
ELEMENT double f64_log_full(double f, double k)
{
    double s = f / (2.0 + f), z = s * s, z2 = z * z, half_square = 0.5 * f * f;
    double p = f64_fma(
        f64_fma(0x1.2b662bd638363p-3, z2, f64_fma(0x1.39fd33f7c7c28p-3, z, 0x1.7462be2caad05p-3)),
        z2 * z2,
        f64_polynomial_4(z, z2, 0x1.5555555555558p-1, 0x1.99999999951bfp-2, 0x1.2492492e0f03p-2,
                         0x1.c71c62c21809fp-3));
    double low = f64_fma(s, f64_fma(z, p, half_square), k * LN2_LOW);
    return f64_fma(k, LN2_HIGH, f - (half_square - low));
}

/* What a logarithm of x is where the formula does not hold: 0, negative numbers, infinity, NaN. */
ELEMENT double f64_log_special(double x, double result)
{
    result = x == 0 ? -INFINITY : result;
    result = x < 0 ? NAN : result;
    return x < INFINITY ? result : x; /* infinity or NaN */
}

/* As f64_log_reduce(). Of a subnormal x the bits are those of x times 2^23, and `bias` is 23 more than 127. */
ELEMENT float f32_log_reduce_bits(uint32_t bits, uint32_t bias, float *k)
{
    uint32_t biased = (bits + (0x3f800000 - SQRT_HALF_BITS_F32)) >> 23;
    *k = (float)(int32_t)(biased - bias);
    return f32_from_bits(bits - (biased << 23) + 0x3f800000) - 1.0f;
}

/* Of a positive normal x. */
ELEMENT float f32_log_reduce_normal(float x, float *k)
{
    return f32_log_reduce_bits(f32_bits(x), 127, k);
}

/* Of any positive x. */
ELEMENT float f32_log_reduce(float x, float *k)
{
    bool is_subnormal = x < 0x1p-126f;
    return f32_log_reduce_bits(f32_bits(is_subnormal ? x * 0x1p23f : x),
                               is_subnormal ? 127 + 23 : 127, k);
}

/* log(1 + f) = f - what is returned: f^2/2 - f^3 P(f). */
ELEMENT float f32_log_rest(float f)
{
    float z = f * f, z2 = z * z;
    float p =
        f32_polynomial_8(f, z, z2, 0x1.555554p-2f, -0x1.fffffcp-3f, 0x1.999d5ap-3f, -0x1.555b4ap-3f,
                         0x1.23d21ap-3f, -0x1.fcf4c6p-4f, 0x1.dea282p-4f, -0x1.d635bcp-4f);
    p = f32_fma(0x1.1d8ea6p-4f, z2 * z2, p);
    return z * f32_fma(-f, p, 0.5f);
}

ELEMENT float f32_log_special(float x, float result)
{
    result = x == 0 ? -INFINITY : result;
    result = x < 0 ? NAN : result;
    return x < INFINITY ? result : x; /* infinity or NaN */
}

/* k log(2) + log(1 + f): k times the first part of a constant is exact. 0.8 ulp. */
ELEMENT float f32_log_of(float f, float k)
{
    float low = f32_fma(k, 0x1.7f7d1cp-20f, -f32_log_rest(f));
    return f32_fma(k, 0x1.62e4p-1f, f + low);
}

/* log(1 + f) times a constant, which is a sum of two. */
ELEMENT float f32_log_scaled(float f, float first, float second)
{
    return f32_fma(f, first, f32_fma(f, second, -(f32_log_rest(f) * first)));
}

/* 1.0 ulp. */
ELEMENT float f32_log2_of(float f, float k)
{
    return k + f32_log_scaled(f, 0x1.715476p+0f, 0x1.4ae0c0p-26f);
}

/* 1.0 ulp. */
ELEMENT float f32_log10_of(float f, float k)
{
    float low = f32_fma(k, 0x1.3509f8p-18f, f32_log_scaled(f, 0x1.bcb7b2p-2f, -0x1.5b235ep-27f));
    return f32_fma(k, 0x1.344p-2f, low);
}

/* Normal positive finite numbers need no exceptions. */
ELEMENT bool f32_log_is_plain(float x)
{
    return f32_bits(x) - 0x00800000u < 0x7f000000u;
}

#define F32_LOGARITHM(NAME)                         \
    ELEMENT float NAME##_plain(float x)             \
    {                                               \
        float k, f = f32_log_reduce_normal(x, &k);  \
        return NAME##_of(f, k);                     \
    }                                               \
    ELEMENT float NAME(float x)                     \
    {                                               \
        float k, f = f32_log_reduce(x, &k);         \
        return f32_log_special(x, NAME##_of(f, k)); \
    }

F32_LOGARITHM(f32_log)
F32_LOGARITHM(f32_log2)
F32_LOGARITHM(f32_log10)

/* 1 + x loses what log(1 + x) is made of for small x: (what is lost) / (1 + x) is added again. 0.9 ulp. */
ELEMENT float f32_log1p(float x)
{
    float u = 1.0f + x, k, f = f32_log_reduce(u, &k);
    float lost = (x > 1.0f ? 1.0f - (u - x) : x - (u - 1.0f)) / u;
    float low = f32_fma(k, 0x1.7f7d1cp-20f, lost) - f32_log_rest(f);
    float result = f32_fma(k, 0x1.62e4p-1f, f + low);
    float special = f32_log_special(u, result);
    return x == 0 ? x : special;
}

/* 0.8 ulp. */
ELEMENT double f64_log(double x)
{
    bool is_subnormal = x < 0x1p-1022;
    double k, f = f64_log_reduce(is_subnormal ? x * 0x1p54 : x, &k);
    k = is_subnormal ? k - 54.0 : k;
    return f64_log_special(x, f64_log_full(f, k));
}

/* k is exact, so that powers of 2 are. 1.6 ulp. */
ELEMENT double f64_log2(double x)
{
    bool is_subnormal = x < 0x1p-1022;
    double k, f = f64_log_reduce(is_subnormal ? x * 0x1p54 : x, &k);
    k = is_subnormal ? k - 54.0 : k;
    return f64_log_special(x, f64_fma(f64_log_full(f, 0.0), LOG2_E, k));
}

/* 1.8 ulp. */
ELEMENT double f64_log10(double x)
{
    bool is_subnormal = x < 0x1p-1022;
    double k, f = f64_log_reduce(is_subnormal ? x * 0x1p54 : x, &k);
    k = is_subnormal ? k - 54.0 : k;
    double low = f64_fma(f64_log_full(f, 0.0), LOG10_E, k * 0x1.9fef311f12b36p-42);
    return f64_log_special(x, f64_fma(k, 0x1.34413509f6p-2, low));
}

/* 1.5 ulp. */
ELEMENT double f64_log1p(double x)
{
    double u = 1.0 + x, k, f = f64_log_reduce(u, &k);
    double result = f64_log_full(f, k) + (x - (u - 1.0)) / u;
    double special = f64_log_special(u, result);
    return x == 0 ? x : special;
}

/* ---- powers ---------------------------------------------------------------------------------- */

/* A float32 of 2^23 or more is an integer, and adding that rounds a smaller one to one. */
ELEMENT bool f32_is_integer(float x)
{
    float magnitude = fabsf(x);
    return (magnitude >= 0x1p23f) | ((magnitude + 0x1p23f) - 0x1p23f == magnitude);
}

/* x^y of a positive finite x: 2^(y log2(x)) in double. 0.51 ulp. */
ELEMENT float f32_power_plain(float x, float y)
{
    double k, f = f64_log_reduce(x, &k);
    double p = (double)y * f64_fma(f64_log_short(f), LOG2_E, k);
    p = p < -200.0 ? -200.0 : p;
    p = p > 200.0 ? 200.0 : p;
    double rounded = p + F64_ROUNDER;
    double r = (p - (rounded - F64_ROUNDER)) * LN2;
    double scale = f64_power_of_2(f64_bits(rounded) - f64_bits(F64_ROUNDER));
    return (float)f64_fma(scale, f64_expm1_short(r), scale);
}

/* What needs no more than that. */
ELEMENT bool f32_power_is_plain(float x, float y)
{
    return (x > 0) & (x < INFINITY) & (fabsf(y) < INFINITY);
}

/* Of all numbers: with the signs and exceptions of C's pow. */
ELEMENT float f32_power(float x, float y)
{
    float magnitude = fabsf(x), result = f32_power_plain(magnitude, y);
    result = magnitude == 0 ? (y < 0 ? INFINITY : 0.0f) : result;
    result = magnitude == INFINITY ? (y < 0 ? 0.0f : INFINITY) : result;
    bool is_integer = f32_is_integer(y), is_odd = is_integer & !f32_is_integer(y * 0.5f);
    result = is_odd ? f32_copy_sign(result, x) : result;
    result = ((x < 0) & (x > -INFINITY) & !is_integer) ? NAN : result;
    result = ((x != x) | (y != y)) ? x + y : result;
    bool is_one = (y == 0) | (x == 1) | ((x == -1) & (fabsf(y) == INFINITY));
    return is_one ? 1.0f : result;
}

/*
 * k + log2(1 + f) as a sum of two, with a relative error of about 2^-65: for s = f / (2 + f) it is k + s (2 + 2/3 s^2 + s^4 T(s^2)) log2(e), in which only T is of one number.
 */
ELEMENT double f64_log2_sum(double f, double k, double *low)
{
    double a = 2.0 + f, a_low = f - (a - 2.0), inverse = 1.0 / a, s = f * inverse;
    double s_low = f64_fma(-s, a_low, f64_fma(-s, a, f)) * inverse;
    double z_low, z = f64_product(s, s, &z_low);
    z_low = f64_fma(2.0 * s, s_low, z_low);
    double z2 = z * z, z4 = z2 * z2;
    double t = f64_polynomial_8(z, z2, z4, 0x1.999999999999ap-2, 0x1.2492492492491p-2,
                                0x1.c71c71c71cfe7p-3, 0x1.745d1745124c7p-3, 0x1.3b13b1bd0eadp-3,
                                0x1.1110df7e2b9b8p-3, 0x1.e1f80a4c22cd4p-4, 0x1.ac4927065cf5ap-4);
    t = f64_fma(0x1.b8e0c07ef591ap-4, z4 * z4, t);
    double tail = z * t, third = 0x1.5555555555555p-1 + tail;
    double third_low = ((0x1.5555555555555p-1 - third) + tail) + 0x1.5555555555555p-55;
    double w_low, w = f64_product(z, third, &w_low);
    w_low += f64_fma(z, third_low, z_low * third);
    double u = 2.0 + w, u_low = ((2.0 - u) + w) + w_low;
    double l_low, l = f64_product(s, u, &l_low);
    l_low += f64_fma(s, u_low, s_low * u);
    double q_low, q = f64_product(l, LOG2_E, &q_low);
    q_low += f64_fma(l, 0x1.777d0ffda0d24p-56, l_low * LOG2_E);
    double sum = k + q;
    *low = ((k - sum) + q) + q_low;
    return sum;
}

ELEMENT bool f64_is_integer(double x)
{
    double magnitude = fabs(x);
    return (magnitude >= 0x1p52) | ((magnitude + 0x1p52) - 0x1p52 == magnitude);
}

#define POWER_MOST 0x1p66 /* of an exponent: beyond, only 1 has no infinite power */

/* x^y of x = 2^k (1 + f): 2^(y log2(x)), where the exponent is a sum of two. 0.8 ulp. */
ELEMENT double f64_power_of(double f, double k, double y)
{
    double log_low, log = f64_log2_sum(f, k, &log_low);
    double p_low, p = f64_product(y, log, &p_low);
    p_low = f64_fma(y, log_low, p_low);
    bool is_far = !(fabs(p) < 1100.0);
    p = p < -1100.0 ? -1100.0 : p;
    p = p > 1100.0 ? 1100.0 : p;
    p_low = is_far ? 0.0 : p_low;
    double rounded = p + F64_ROUNDER, n = rounded - F64_ROUNDER;
    double r = p - n, r_low, g = f64_product(r, LN2, &r_low);
    r_low += f64_fma(r, 0x1.abc9e3b39803fp-56, p_low * LN2);
    double first = 1.0 + g, tail = f64_expm1_tail(g);
    double second = f64_fma(r_low, first + tail, (1.0 - first) + g);
    double e = first + (second + tail);
    uint64_t exponent = f64_bits(rounded) - f64_bits(F64_ROUNDER);
    uint64_t half = f64_bits(n * 0.5 + F64_ROUNDER) - f64_bits(F64_ROUNDER);
    return e * f64_power_of_2(half) * f64_power_of_2(exponent - half);
}

/* Of most numbers. */
ELEMENT double f64_power_plain(double x, double y)
{
    double k, f = f64_log_reduce(x, &k);
    return f64_power_of(f, k, y);
}

ELEMENT bool f64_power_is_plain(double x, double y)
{
    return (x >= 0x1p-1022) & (x < INFINITY) & (fabs(y) <= POWER_MOST);
}

/* Of all numbers: with the signs and exceptions of C's pow. */
ELEMENT double f64_power(double x, double y)
{
    double magnitude = fabs(x);
    bool is_subnormal = magnitude < 0x1p-1022;
    double k, f = f64_log_reduce(is_subnormal ? magnitude * 0x1p54 : magnitude, &k);
    double limited = y < -POWER_MOST ? -POWER_MOST : y;
    limited = limited > POWER_MOST ? POWER_MOST : limited;
    double result = f64_power_of(f, is_subnormal ? k - 54.0 : k, limited);
    bool is_integer = f64_is_integer(y), is_odd = is_integer & !f64_is_integer(y * 0.5);
    result = magnitude == 0 ? (y < 0 ? INFINITY : 0.0) : result;
    result = magnitude == INFINITY ? (y < 0 ? 0.0 : INFINITY) : result;
    result = is_odd ? f64_copy_sign(result, x) : result;
    result = ((x < 0) & (x > -INFINITY) & !is_integer) ? NAN : result;
    result = ((x != x) | (y != y)) ? x + y : result;
    bool is_one = (y == 0) | (x == 1) | ((x == -1) & (fabs(y) == INFINITY));
    return is_one ? 1.0 : result;
}

/* ---- circular functions ---------------------------------------------------------------------- */

/* The fast functions hold up to here: below, a multiple of pi/2 is less than 2^25 times it. */
#define CIRCULAR_MAX 0x1p24

#define HALF_PI_1 0x1.921fb54p+0 /* 28 bits each */
#define HALF_PI_2 0x1.10b461p-30
#define HALF_PI_3 0x1.a62633p-58
#define HALF_PI_4 0x1.45c06e0e68948p-86
#define TWO_OVER_PI 0x1.45f306dc9c883p-1

/* sin(r) and cos(r), |r| <= pi/4: errors 3e-11. */
ELEMENT double f64_sin_short(double r, double z)
{
    double p = f64_polynomial_4(z, z * z, -0x1.555555545e557p-3, 0x1.11110def978ccp-7,
                                -0x1.a013a7e47173dp-13, 0x1.6dbe150ed6f73p-19);
    return f64_fma(r * z, p, r);
}

ELEMENT double f64_cos_short(double z)
{
    double z2 = z * z;
    double p = f64_polynomial_4(z, z2, 0x1.5555555502e24p-5, -0x1.6c16bf5517b3ap-10,
                                0x1.a015c49be0306p-16, -0x1.25245056d74e5p-22);
    return f64_fma(z2, p, f64_fma(-0.5, z, 1.0));
}

/* The rest of a float32 after n pi/2: n times the first part is exact. */
ELEMENT double f64_turn_reduce(double x, double *rounded)
{
    *rounded = f64_fma(x, TWO_OVER_PI, F64_ROUNDER);
    double n = *rounded - F64_ROUNDER;
    return f64_fma(n, -(HALF_PI_3 + HALF_PI_4), f64_fma(n, -HALF_PI_2, x - n * HALF_PI_1));
}

/* sin of an angle that is a quarter turn further for every `turn`. */
ELEMENT double f64_sin_of_f32(double x, uint64_t turn)
{
    double rounded, r = f64_turn_reduce(x, &rounded), z = r * r;
    uint64_t quadrant = f64_bits(rounded) + turn;
    double result = (quadrant & 1) != 0 ? f64_cos_short(z) : f64_sin_short(r, z);
    return f64_from_bits(f64_bits(result) ^ (quadrant & 2) << 62);
}

/* In double. 0.51 ulp for |x| <= CIRCULAR_MAX. */
ELEMENT float f32_sin(float x)
{
    float result = (float)f64_sin_of_f32(x, 0);
    return x == 0 ? x : result; /* -0 */
}

ELEMENT float f32_cos(float x)
{
    return (float)f64_sin_of_f32(x, 1);
}

/* float32 tangents hold up to here: x minus n times the first part of pi/2 is exact. */
#define TAN_MAX 0x1p16f

/* r + r^3 P(r^2) after n quarter turns, and -1 / that where n is odd. 2.2 ulp for |x| <= TAN_MAX. */
ELEMENT float f32_tan(float x)
{
    float rounded = f32_fma(x, (float)TWO_OVER_PI, F32_ROUNDER), n = rounded - F32_ROUNDER;
    float first = f32_fma(n, -0x1.921fb6p+0f, x), second = n * 0x1.777a5cp-25f, r = first + second;
    float part = r - first, lost = (first - (r - part)) + (second - part); /* first + second - r */
    float low = f32_fma(n, 0x1.ee59dap-50f, lost + f32_fma(n, 0x1.777a5cp-25f, -second));
    float z = r * r, z2 = z * z;
    float p = f32_fma(
        f32_fma(0x1.21852cp-8f, z2, f32_fma(0x1.f5622cp-18f, z, 0x1.6522ccp-7f)), z2 * z2,
        f32_polynomial_4(z, z2, 0x1.555562p-2f, 0x1.110d5ap-3f, 0x1.bae534p-5f, 0x1.5c4c98p-6f));
    float t = r + f32_fma(r * z, p, low);
    float result = (f32_bits(rounded) & 1) != 0 ? -1.0f / t : t;
    return x == 0 ? x : result; /* -0 */
}

/* Full precision: the rest after *quadrant quarter turns is r + low, and low enters with its first power. */
ELEMENT double f64_sin_and_cos(double x, double *cos, uint64_t *quadrant)
{
    double rounded = x * TWO_OVER_PI + F64_ROUNDER, n = rounded - F64_ROUNDER;
    double a = x - n * HALF_PI_1, b = n * HALF_PI_2; /* both exact */
    double w = a - b, part = a - w;
    double lost = (a - (w + part)) + (part - b); /* a - b - w, whichever is larger */
    double c = (n * HALF_PI_3 - lost) + n * HALF_PI_4;
    double r = w - c, low = (w - r) - c;

    double z = r * r, z2 = z * z, z4 = z2 * z2;
    double s = f64_fma(f64_fma(0x1.5e0b04aa9e9dbp-33, z, -0x1.ae600acd78df1p-26), z4,
                       f64_polynomial_4(z, z2, -0x1.5555555555555p-3, 0x1.1111111110bb2p-7,
                                        -0x1.a01a019e839p-13, 0x1.71de37965e0e8p-19));
    double sine = r + f64_fma(r * z, s, low);
    double t = f64_fma(f64_fma(-0x1.907d8bf27a69cp-37, z, 0x1.1eeb68cb4c486p-29), z4,
                       f64_polynomial_4(z, z2, 0x1.5555555555555p-5, -0x1.6c16c16c16967p-10,
                                        0x1.a01a019f4e9f7p-16, -0x1.27e4fa17c076bp-22));
    double half = 0.5 * z, first = 1.0 - half; /* 1 - half - first is exact, and added again */
    *cos = first + (((1.0 - first) - half) + f64_fma(z2, t, -(r * low)));
    *quadrant = f64_bits(rounded);
    return x == 0 ? x : sine; /* -0 */
}

/* 1.0 ulp for |x| <= CIRCULAR_MAX. */
ELEMENT double f64_sin_turned(double x, uint64_t turn)
{
    uint64_t quadrant;
    double cosine, sine = f64_sin_and_cos(x, &cosine, &quadrant);
    quadrant += turn;
    double result = (quadrant & 1) != 0 ? cosine : sine;
    return f64_from_bits(f64_bits(result) ^ (quadrant & 2) << 62);
}

ELEMENT double f64_sin(double x)
{
    return f64_sin_turned(x, 0);
}

ELEMENT double f64_cos(double x)
{
    return f64_sin_turned(x, 1);
}

/* 2.4 ulp. */
ELEMENT double f64_tan(double x)
{
    uint64_t quadrant;
    double cosine, sine = f64_sin_and_cos(x, &cosine, &quadrant);
    bool is_odd = (quadrant & 1) != 0;
    return (is_odd ? -cosine : sine) / (is_odd ? sine : cosine);
}

/* ---- their inverses -------------------------------------------------------------------------- */

#define PI 0x1.921fb54442d18p+1
#define TAN_OF_EIGHTH 0x1.a827999fcef32p-2 /* tan(pi/8) */

/* The angle of (x, y), neither negative, from 0 to pi/2: the smaller over the larger is turned back by pi/4 where it is
 * above tan(pi/8), and t + t^3 P(t^2) is its angle. Relative error 4e-12. (0, 0) is 0, NaN stays. */
ELEMENT double f64_angle_short(double y, double x)
{
    bool is_steep = y > x;
    double least = is_steep ? x : y, most = is_steep ? y : x;
    double t = least / (most == 0 ? 1.0 : most);
    t = ((least == INFINITY) & (most == INFINITY)) ? 1.0 : t;
    bool is_turned = t > TAN_OF_EIGHTH;
    double u = is_turned ? (t - 1.0) / (t + 1.0) : t, z = u * u;
    double z2 = z * z;
    double p = f64_fma(
        f64_fma(-0x1.4b3891ff382b2p-5, z2, f64_fma(0x1.24434e877a5ddp-4, z, -0x1.71d3c1080547p-4)),
        z2 * z2,
        f64_polynomial_4(z, z2, -0x1.5555555502188p-2, 0x1.99999825954bep-3, -0x1.2491c08b2dc95p-3,
                         0x1.c6f68737bd59p-4));
    double angle = f64_fma(u * z, p, u) + (is_turned ? PI / 4 : 0.0);
    return is_steep ? PI / 2 - angle : angle;
}

/*
 * The same in one type, with one division: t is y / x, or that turned back by pi/4 or pi/2. Where `is_behind`, the angle of
 * (-x, y): what was turned back is taken from pi, and t changes its sign, so that nothing is rounded twice. Not for sums
 * that overflow, or quotients that are NaN. f32: 2.0 ulp, f64: 1.9 ulp.
 */
ELEMENT float f32_angle(float y, float x, bool is_behind)
{
    bool is_steep = y * (float)TAN_OF_EIGHTH > x, is_turned = y > x * (float)TAN_OF_EIGHTH;
    float over = is_steep ? -x : is_turned ? y - x : y;
    float under = is_steep ? y : is_turned ? y + x : x;
    float t = over / under;
    t = is_behind ? -t : t;
    float z = t * t, z2 = z * z;
    float p = f32_fma(
        -0x1.08432cp-4f, z2 * z2,
        f32_polynomial_4(z, z2, -0x1.555554p-2f, 0x1.99973p-3f, -0x1.24202ep-3f, 0x1.b80f88p-4f));
    /* pi/4, as a sum of two, so many times */
    float turns = is_steep ? 2.0f : is_turned ? 1.0f : 0.0f;
    turns = is_behind ? 4.0f - turns : turns;
    float high = turns == 3.0f ? 0x1.2d97c8p+1f : turns * 0x1.921fb6p-1f;
    float low = turns == 3.0f ? -0x1.99bc5cp-28f : turns * -0x1.777a5cp-26f;
    return high + (t + f32_fma(t * z, p, low));
}

/* The same of any two: near the ends of the type they are scaled, so that sums do not overflow and quotients lose
 * nothing; (0, 0) has the angle 0, and two infinities that of (1, 1). */
ELEMENT float f32_angle_of_any(float y, float x, bool is_behind)
{
    float most = y > x ? y : x;
    float scale = most > 0x1p100f ? 0x1p-64f : 1.0f;
    scale = most < 0x1p-60f ? 0x1p64f : scale;
    bool is_corner = (y == x) & ((y == 0) | (y == INFINITY));
    float corner = y == 0 ? 0.0f : 1.0f;
    return f32_angle(is_corner ? corner : y * scale, is_corner ? 1.0f : x * scale, is_behind);
}

ELEMENT double f64_angle(double y, double x, bool is_behind)
{
    bool is_steep = y * TAN_OF_EIGHTH > x, is_turned = y > x * TAN_OF_EIGHTH;
    double over = is_steep ? -x : is_turned ? y - x : y;
    double under = is_steep ? y : is_turned ? y + x : x;
    double t = over / under;
    t = is_behind ? -t : t;
    double z = t * t, z2 = z * z, z4 = z2 * z2;
    double p = f64_fma(f64_polynomial_4(z, z2, -0x1.ac7a5a79b3f26p-5, 0x1.74dccfb93fffp-5,
                                        -0x1.1b311bb48c215p-5, 0x1.0acd9e91a5a35p-6),
                       z4 * z4,
                       f64_polynomial_8(z, z2, z4, -0x1.5555555555555p-2, 0x1.9999999999953p-3,
                                        -0x1.249249248d7dcp-3, 0x1.c71c71c303dbbp-4,
                                        -0x1.745d165dc9713p-4, 0x1.3b1392d519db1p-4,
                                        -0x1.110e87b4357d2p-4, 0x1.e19a0bfa3eef9p-5));
    double turns = is_steep ? 2.0 : is_turned ? 1.0 : 0.0;
    turns = is_behind ? 4.0 - turns : turns;
    double high = turns == 3.0 ? 0x1.2d97c7f3321d2p+1 : turns * (PI / 4);
    double low = turns == 3.0 ? 0x1.a79394c9e8a0ap-54 : turns * 0x1.1a62633145c07p-55;
    return high + (t + f64_fma(t * z, p, low));
}

ELEMENT double f64_angle_of_any(double y, double x, bool is_behind)
{
    double most = y > x ? y : x;
    double scale = most > 0x1p1000 ? 0x1p-600 : 1.0;
    scale = most < 0x1p-900 ? 0x1p600 : scale;
    bool is_corner = (y == x) & ((y == 0) | (y == INFINITY));
    double corner = y == 0 ? 0.0 : 1.0;
    return f64_angle(is_corner ? corner : y * scale, is_corner ? 1.0 : x * scale, is_behind);
}

/* NaN stays: every step hands it on. */
ELEMENT float f32_atan(float x)
{
    return f32_copy_sign(f32_angle(fabsf(x), 1.0f, false), x);
}

ELEMENT double f64_atan(double x)
{
    return f64_copy_sign(f64_angle(fabs(x), 1.0, false), x);
}

/* -0 is behind, too. */
ELEMENT float f32_atan2(float y, float x)
{
    bool is_behind = (f32_bits(x) & 0x80000000) != 0;
    float result = f32_copy_sign(f32_angle_of_any(fabsf(y), fabsf(x), is_behind), y);
    return ((x != x) | (y != y)) ? x + y : result;
}

/* Of what needs no scaling. */
ELEMENT float f32_atan2_plain(float y, float x)
{
    return f32_copy_sign(f32_angle(fabsf(y), fabsf(x), (f32_bits(x) & 0x80000000) != 0), y);
}

ELEMENT bool f32_atan2_is_plain(float y, float x)
{
    return (fabsf(y) <= 0x1p100f) & (fabsf(x) <= 0x1p100f) & (fabsf(x) >= 0x1p-60f);
}

ELEMENT double f64_atan2(double y, double x)
{
    bool is_behind = (f64_bits(x) & ~(uint64_t)INT64_MAX) != 0;
    double result = f64_copy_sign(f64_angle_of_any(fabs(y), fabs(x), is_behind), y);
    return ((x != x) | (y != y)) ? x + y : result;
}

ELEMENT double f64_atan2_plain(double y, double x)
{
    bool is_behind = (f64_bits(x) & ~(uint64_t)INT64_MAX) != 0;
    return f64_copy_sign(f64_angle(fabs(y), fabs(x), is_behind), y);
}

ELEMENT bool f64_atan2_is_plain(double y, double x)
{
    return (fabs(y) <= 0x1p1000) & (fabs(x) <= 0x1p1000) & (fabs(x) >= 0x1p-900);
}

/* x + x^3 P(x^2) up to 1/2; beyond, pi/2 - 2 asin(sqrt((1 - |x|) / 2)). 2.3 ulp. */
ELEMENT float f32_asin(float x)
{
    float a = fabsf(x);
    bool is_large = a > 0.5f;
    float z = is_large ? 0.5f * (1.0f - a) : a * a, s = is_large ? sqrtf(z) : a;
    float z2 = z * z;
    float p = f32_fma(
        f32_fma(0x1.13fed4p-5f, z, 0x1.18f91ep-6f), z2 * z2,
        f32_polynomial_4(z, z2, 0x1.555554p-3f, 0x1.33343p-4f, 0x1.6d5bbap-5f, 0x1.fd8da2p-6f));
    float angle = f32_fma(s * z, p, s);
    float large = 0x1.921fb6p+0f - (2.0f * angle + 0x1.777a5cp-25f);
    return f32_copy_sign(is_large ? large : angle, x);
}

ELEMENT float f32_acos(float x)
{
    double wide = x, angle = f64_angle_short(sqrt((1.0 - wide) * (1.0 + wide)), fabs(wide));
    return (float)(x < 0 ? PI - angle : angle);
}

/* log(1 + x) of a double that a float32's inverse is made of: see f32_log1p(). */
ELEMENT double f64_log1p_short(double x)
{
    double u = 1.0 + x, k, f = f64_log_reduce(u, &k);
    double result = f64_log_short(f) + k * LN2 + (x - (u - 1.0)) / u;
    return f64_log_special(u, result);
}

/* log(|x| + sqrt(x^2 + 1)), of which 1 is taken away first. */
ELEMENT float f32_asinh(float x)
{
    double a = fabsf(x), square = a * a;
    double result = f64_log1p_short(a + square / (1.0 + sqrt(square + 1.0)));
    return f32_copy_sign(a < INFINITY ? (float)result : fabsf(x), x);
}

ELEMENT float f32_acosh(float x)
{
    double above = (double)x - 1.0;
    float result = (float)f64_log1p_short(above + sqrt(above * (above + 2.0)));
    return x < 1 ? NAN : result;
}

/* log((1 + |x|) / (1 - |x|)) / 2. */
ELEMENT float f32_atanh(float x)
{
    double a = fabsf(x);
    return f32_copy_sign((float)(0.5 * f64_log1p_short(2.0 * a / (1.0 - a))), x);
}

/* ---- of several numbers ---------------------------------------------------------------------- */

/* Squares of float32 and their sum are exact enough in double, and cannot overflow. An infinite side makes an infinite
 * length, whatever the other one is. 0.51 ulp. */
ELEMENT float f32_hypot(float x, float y)
{
    double a = x, b = y;
    float length = (float)sqrt(a * a + b * b);
    return ((fabsf(x) == INFINITY) | (fabsf(y) == INFINITY)) ? INFINITY : length;
}

/* From the nearer end, so that both ends are met exactly. */
ELEMENT double f64_lerp_finite(double x, double y, double weight)
{
    double way = y - x;
    return fabs(weight) < 0.5 ? x + weight * way : y - way * (1.0 - weight);
}

/* In double the way between two float32 neither overflows nor loses the smaller end. */
ELEMENT float f32_lerp(float x, float y, float weight)
{
    return (float)f64_lerp_finite(x, y, weight);
}

/* A way that is too long for double is gone in two parts. */
ELEMENT double f64_lerp(double x, double y, double weight)
{
    double near = f64_lerp_finite(x, y, weight), far = x * (1.0 - weight) + y * weight;
    bool is_near = (fabs(near) < INFINITY) | !(fabs(far) < INFINITY);
    return is_near ? near : far;
}

/* ---- special functions ----------------------------------------------------------------------- */

#define LOG_SQRT_2_PI 0x1.d67f1c864beb5p-1 /* log(2 pi) / 2 */

/* e^(a^2) erfc(a) for 0 <= a <= 10.2, of t = (a - 3) / (a + 3): relative error 3e-9. */
ELEMENT double f64_erfcx_short(double a)
{
    double t = (a - 3.0) / (a + 3.0), t2 = t * t, t4 = t2 * t2, t8 = t4 * t4;
    double p = f64_fma(f64_fma(-0x1.21d0f1bce9e29p-12, t2,
                               f64_fma(-0x1.a133a7774f499p-11, t, 0x1.05ab4105fcee7p-9)),
                       t8,
                       f64_polynomial_8(t, t2, t4, 0x1.40c522d64e381p+0, -0x1.15c089ed75fc9p-3,
                                        -0x1.85a159aba677bp-5, 0x1.098429c361de8p-3,
                                        -0x1.e88a4104b8236p-4, 0x1.17bac93a8cf9fp-4,
                                        -0x1.85cc256e46942p-6, 0x1.5203b0f84bbf1p-9));
    return p / (1.0 + 2.0 * a);
}

/* In double, where the square of a float32 is exact. 0.6 ulp. */
ELEMENT float f32_erfc(float x)
{
    double a = fabsf(x) > 10.2f ? 10.2f : fabsf(x), n;
    uint64_t k;
    double r = f64_exp_reduce(-(a * a), &n, &k);
    double tail = f64_erfcx_short(a) * (1.0 + f64_expm1_short(r)) * f64_power_of_2(k);
    return (float)(x < 0 ? 2.0 - tail : tail);
}

/* erfinv(x) = x P(w) for w = -log(1 - x^2) up to 6, x Q(sqrt(w)) beyond: relative error 4e-8. 1 and -1 are infinite. */
ELEMENT double f64_erfinv_short(double x)
{
    double a = fabs(x), k, f = f64_log_reduce((1.0 - a) * (1.0 + a), &k);
    double w = -(f64_log_short(f) + k * LN2);
    double w2 = w * w, w4 = w2 * w2, w8 = w4 * w4;
    double central = f64_fma(
        f64_fma(-0x1.05548ffda84a2p-36, w4,
                f64_polynomial_4(w, w2, -0x1.0611fc773926p-23, 0x1.068edb23b71bcp-24,
                                 -0x1.23ca8efbcdbb5p-27, 0x1.32670a80f2d99p-31)),
        w8,
        f64_polynomial_8(w, w2, w4, 0x1.c5bf891d66121p-1, 0x1.db29f95d8c13bp-3,
                         0x1.7a73e9a3ac067p-7, -0x1.321e5d78b6f24p-9, -0x1.0b33f1d43bc26p-13,
                         0x1.82be7e5c7545bp-15, 0x1.2478e86527535p-19, -0x1.fd936e90e88c2p-21));
    double s = sqrt(w), s2 = s * s, s4 = s2 * s2, s8 = s4 * s4;
    double tail = f64_fma(
        f64_fma(-0x1.ca3c42da6dcdbp-23, s4,
                f64_polynomial_4(s, s2, -0x1.2ec503ec87652p-5, 0x1.fae0e3669655ep-9,
                                 -0x1.1aaebddfe58d6p-12, 0x1.79d66dcbd45a5p-17)),
        s8,
        f64_polynomial_8(s, s2, s4, -0x1.b8bfa60922ed3p+0, 0x1.495506b54f6cbp+3,
                         -0x1.100876ebf3bd3p+4, 0x1.060f18829e91fp+4, -0x1.3d0bad5d4e6b7p+3,
                         0x1.04d7aabb0511ap+2, -0x1.2f66b96ed68ccp+0, 0x1.fa9dc8e5d6708p-3));
    double result = x * (w < 6.0 ? central : tail);
    result = a < 1 ? result : NAN;
    return a == 1 ? x * INFINITY : result;
}

/* 0.9 ulp. */
ELEMENT float f32_erfinv(float x)
{
    return (float)f64_erfinv_short(x);
}

/* One step of Halley's method from there: the error is its third power. 1.7 ulp. */
ELEMENT double f64_erfinv(double x)
{
    double a = fabs(x), y = f64_erfinv_short(a);
    if (!(a < 1))
        return copysign(y, x);
    double beyond = a > 0.5 ? (1.0 - a) - erfc(y) : erf(y) - a;
    double t = beyond * 0x1.c5bf891b4ef6bp-1 * exp(y * y); /* sqrt(pi) / 2 */
    return copysign(y - t / (1.0 + y * t), x);
}

/* sin(pi r) for |r| <= 1/2, of which the first term, pi r, is a sum of two. 1 ulp. */
ELEMENT double f64_sin_of_turn(double r)
{
    double z = r * r, z2 = z * z, z4 = z2 * z2, z8 = z4 * z4, low, first = f64_product(r, PI, &low);
    low = fabs(r) < 0x1p-500 ? 0.0 : f64_fma(r, 0x1.1a62633145c07p-53, low);
    return first +
           f64_fma(r * z,
                   f64_fma(-0x1.7ed4cd7222586p-26, z8,
                           f64_polynomial_8(z, z2, z4, -0x1.4abbce625be53p+2, 0x1.466bc6775aae2p+1,
                                            -0x1.32d2cce62bd57p-1, 0x1.50783487ec19ap-4,
                                            -0x1.e3074fdc520eap-8, 0x1.e8f4338e03a66p-12,
                                            -0x1.6fad488852625p-16, 0x1.aabbe3815eb6p-21)),
                   low);
}

/* sin(pi x) / (pi x): integers but 0 give 0. 0.6 ulp, in float64 2.6 ulp. */
ELEMENT double f64_sinc(double x)
{
    double n = rint(x), sine = f64_sin_of_turn(x - n);
    bool is_odd = rint(0.5 * n) * 2.0 != n;
    double result = (is_odd ? -sine : sine) / (PI * x);
    return fabs(x) < 0x1p-30 ? 1.0 : result;
}

ELEMENT float f32_sinc(float x)
{
    return (float)f64_sinc(x);
}

/*
 * log|gamma(x)| in double, by Stirling's series for y >= 3; below 3 it is y = x + 3, and the logarithm of x (x + 1) (x + 2)
 * is taken away. Negative numbers by reflection: log(pi / |x sin(pi x)|) - lgamma(-x). Integers that are not positive
 * are poles. 0.6 ulp.
 */
ELEMENT float f32_lgamma(float x)
{
    double a = fabsf(x), sine = fabs(f64_sin_of_turn(a - rint(a)));
    bool is_small = a < 3.0, is_negative = x < 0;
    double y = is_small ? a + 3.0 : a, factors = is_small ? a * (a + 1.0) * (a + 2.0) : 1.0;
    double k, f = f64_log_reduce(y, &k), w = 1.0 / (y * y), w2 = w * w, w4 = w2 * w2, w8 = w4 * w4;
    double rest = f64_fma(0x1.057f45ce202b4p-6, w8,
                          f64_polynomial_8(w, w2, w4, 0x1.55555555554e5p-4, -0x1.6c16c167170c1p-9,
                                           0x1.a019ee7c17949p-11, -0x1.380c500a91454p-11,
                                           0x1.b7edfbcd484c4p-11, -0x1.e284653fc1768p-10,
                                           0x1.47a6056a6c974p-8, -0x1.89e475d35b8e4p-7));
    double series = f64_fma(y - 0.5, f64_log_full(f, k), -y) + (LOG_SQRT_2_PI + rest / y);
    double other = is_negative ? PI * factors / (a * sine) : factors;
    f = f64_log_reduce(other, &k);
    double log = f64_log_full(f, k);
    float result = (float)(is_negative ? log - series : series - log);
    result = ((x == 1) | (x == 2)) ? 0.0f : result;
    bool is_pole = (a == 0) | (is_negative & (sine == 0)) | (a == INFINITY);
    result = is_pole ? INFINITY : result;
    return x != x ? x : result;
}

/* The C library's, which does not write the global sign. 4.2 ulp. */
ELEMENT double f64_lgamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

/*
 * The derivative of lgamma, by its series for y >= 8; below 8 it is y = x + 8, and the sum of 1 / (x + i) for i < 8 is taken
 * away. Negative numbers by reflection: digamma(1 - x) - pi / tan(pi x). Poles give NaN, and 0 infinity
 * with the other sign. It has zeros: 4.1 ulp of the result or of log(y), which is at least 2; in float32 0.6 ulp.
 */
ELEMENT double f64_digamma(double x)
{
    bool is_negative = x < 0;
    double a = is_negative ? 1.0 - x : x;
    bool is_small = a < 8.0;
    double y = is_small ? a + 8.0 : a, taken = 0.0;
    for (int i = 7; i >= 0; i--)
        taken += 1.0 / (a + i);
    double k, f = f64_log_reduce(y, &k), w = 1.0 / (y * y), w2 = w * w, w4 = w2 * w2;
    double rest =
        f64_polynomial_8(w, w2, w4, 0x1.5555555555555p-4, -0x1.1111111110d4fp-7,
                         0x1.0410410195bbfp-8, -0x1.11110c0ff8839p-8, 0x1.f077209c326cp-8,
                         -0x1.58e68c895ad5bp-6, 0x1.47c69710dec6fp-4, -0x1.329c9079bcef2p-2);
    double sum = (is_small ? taken : 0.0) + f64_fma(w, rest, 0.5 / y);
    double result = f64_log_full(f, k) - sum;
    double r = x - rint(x), sine = f64_sin_of_turn(r);
    double turned = result - PI * f64_sin_of_turn(0.5 - fabs(r)) / sine;
    result = is_negative ? turned : result;
    result = (is_negative & (sine == 0)) ? NAN : result;
    result = fabs(x) < 0x1p-60 ? -1.0 / x : result;
    return x < INFINITY ? result : x;
}

ELEMENT float f32_digamma(float x)
{
    return (float)f64_digamma(x);
}

/*
 * The n-th derivative of digamma, n from 1 to 32: (-1)^(n + 1) n! times the sum of (x + i)^-(n + 1), which is taken up to
 * i = 9 and continued by the series of Euler and Maclaurin. For negative x the sum is cut at 0: what is below is a
 * difference of two sums of positive numbers. Poles are infinite. n + 8 ulp of the larger part; in float32 1 ulp.
 */
static const double polygamma_terms[] = {
    0x1.5555555555555p-4,  -0x1.6c16c16c16c17p-10, 0x1.1566abc011567p-15, -0x1.bbd779334ef0bp-21,
    0x1.66a8f2bf70ebep-26, -0x1.22805d644267fp-31, 0x1.d6db2c4e09162p-37, -0x1.7da4e1f79955cp-42,
};

ELEMENT double f64_polygamma_above_0(double n, double a)
{
    double s = n + 1, factor = 1, sum = 0;
    if (a > 1e5) { /* powers of a might underflow where the result does not */
        sum = 1 / a;
        for (double k = 1; k < n; k++)
            sum *= k / a;
        return sum * (1 + n / (2 * a) * (1 + s / (6 * a)));
    }
    for (double k = 2; k <= n; k++)
        factor *= k;
    for (int i = 9; i >= 0; i--)
        sum += f64_power(a + i, -s);
    double y = a + 10, power = f64_power(y, -s), term = power * s / y;
    double rest = power * (y / n + 0.5);
    for (int i = 0; i < 8; i++) {
        rest += polygamma_terms[i] * term;
        term *= (s + 2 * i + 1) * (s + 2 * i + 2) / (y * y);
    }
    return factor * (sum + rest);
}

ELEMENT double f64_polygamma(double n, double x)
{
    n = floor(n);
    bool is_even = fmod(n, 2) == 0;
    double whole = floor(x), result;
    if (!(n >= 1 && n <= 32) || x != x || x == -INFINITY)
        return NAN;
    if (x <= 0 && x == whole)
        return is_even ? -INFINITY : INFINITY;
    if (x > 0) {
        result = f64_polygamma_above_0(n, x);
        return is_even ? -result : result;
    }
    double below = f64_polygamma_above_0(n, whole + 1 - x) - f64_polygamma_above_0(n, 1 - x);
    double above = f64_polygamma_above_0(n, x - whole);
    return is_even ? below - above : below + above;
}

ELEMENT float f32_polygamma(float n, float x)
{
    return (float)f64_polygamma(n, x);
}

/* ---- what is made of exponentials and logarithms ---------------------------------------------- */

/*
 * softplus: log(1 + e^(beta x)) / beta, or x where beta x is above the threshold, or so large that nothing is added. The
 * product of beta and x is a sum of two. 3.3 ulp, or that of the smallest normal number over beta.
 * mish: x tanh(log(1 + e^x)) = x n / (n + 2) for n = e^x (e^x + 2). 4.0 ulp, or |x| times that of the least normal one.
 */
#define ACTIVATIONS(F, T, FABS, LIMIT)                                             \
    ELEMENT T F##_softplus(T x, T beta, T threshold)                               \
    {                                                                              \
        T product = x * beta, a = FABS(product), low = F##_fma(x, beta, -product); \
        bool is_split = (a < 1000) & (FABS(x) < LIMIT) & (FABS(beta) < LIMIT);     \
        low = is_split ? low : 0;                                                  \
        T e = F##_exp(-a);                                                         \
        e = F##_fma(e, product < 0 ? low : -low, e);                               \
        T sum = F##_log1p(e), large = product + (sum + low);                       \
        T result = (product > 0 ? large : sum) / beta;                             \
        return ((product > threshold) | (product > 100)) ? x : result;             \
    }                                                                              \
    /* -softplus(-x). 1.9 ulp. */                                                  \
    ELEMENT T F##_log_sigmoid(T x)                                                 \
    {                                                                              \
        return (x < 0 ? x : 0) - F##_log1p(F##_exp(-FABS(x)));                     \
    }                                                                              \
    ELEMENT T F##_mish(T x)                                                        \
    {                                                                              \
        T e = F##_exp(x > 40 ? 40 : x), n = e * (e + 2);                           \
        return x * (n / (n + 2));                                                  \
    }                                                                              \
    /* x between 0 and 6, without branches, so that loops are vectorized. */       \
    ELEMENT T F##_relu6(T x)                                                       \
    {                                                                              \
        T low = ((x > 0) | (x != x)) ? x : 0;                                      \
        return low > 6 ? 6 : low;                                                  \
    }                                                                              \
    /* x relu6(x + 3) / 6. 1.9 ulp. */                                             \
    ELEMENT T F##_hardswish(T x)                                                   \
    {                                                                              \
        return x * (F##_relu6(x + 3) / 6);                                         \
    }                                                                              \
    /* x, or alpha (e^x - 1) where x is not positive. 2.2 ulp. */                  \
    ELEMENT T F##_elu(T x, T alpha)                                                \
    {                                                                              \
        T below = alpha * F##_expm1(x);                                            \
        return x > 0 ? x : below;                                                  \
    }                                                                              \
    /* elu times a scale. 1.7 ulp. */                                              \
    ELEMENT T F##_selu(T x)                                                        \
    {                                                                              \
        T below = (T)0x1.c212cc640f031p+0 * F##_expm1(x);                          \
        return x > 0 ? (T)0x1.0cfabd6a91132p+0 * x : below;                        \
    }

ACTIVATIONS(f32, float, fabsf, 0x1p120f)
ACTIVATIONS(f64, double, fabs, 0x1p900)

/* x, or alpha (e^(x / alpha) - 1) where x is not positive: in float32 by double, where nothing overflows. 0.6 ulp, in
 * float64 2.3 ulp, and |x / alpha| ulp more where alpha is negative. */
ELEMENT double f64_celu(double x, double alpha)
{
    double z = x / alpha, below = fabs(z) < 0x1p-60 ? x : alpha * f64_expm1(z);
    return x > 0 ? x : below;
}

ELEMENT float f32_celu(float x, float alpha)
{
    return (float)f64_celu(x, alpha);
}

#define LOGARITHMS_OF_SUMS(F, T)                                                              \
    /* |x - y| as a sum of two; 0 for equal infinities. */                                    \
    ELEMENT T F##_way(T x, T y, T *low)                                                       \
    {                                                                                         \
        T most = x > y ? x : y, least = x > y ? y : x, way = most - least, part = way - most; \
        T lost = (most - (way - part)) - (least + part);                                      \
        *low = way < 1000 ? lost : 0;                                                         \
        return x == y ? 0 : way;                                                              \
    }                                                                                         \
    /* log(e^x + e^y): 2.8 ulp, to base 2 3.8 ulp, of the larger or the result. */            \
    ELEMENT T F##_logaddexp(T x, T y)                                                         \
    {                                                                                         \
        T low, way = F##_way(x, y, &low), e = F##_exp(-way);                                  \
        return F##_maximum(x, y) + F##_log1p(F##_fma(e, -low, e));                            \
    }                                                                                         \
    ELEMENT T F##_logaddexp2(T x, T y)                                                        \
    {                                                                                         \
        T low, way = F##_way(x, y, &low), e = F##_exp2(-way);                                 \
        return F##_maximum(x, y) + F##_log1p(F##_fma(e, -low * (T)LN2, e)) * (T)LOG2_E;       \
    }                                                                                         \
    /* x log(y), and 0 where x is 0 and y is a number. 1.7 ulp. */                            \
    ELEMENT T F##_xlogy(T x, T y)                                                             \
    {                                                                                         \
        T result = x * F##_log(y);                                                            \
        return ((x == 0) & (y == y)) ? 0 : result;                                            \
    }

LOGARITHMS_OF_SUMS(f32, float)
LOGARITHMS_OF_SUMS(f64, double)

/* log(z / (1 - z)), where z is x between eps and 1 - eps, or x if eps is below 0 or NaN. 0.6 ulp. */
ELEMENT float f32_logit(float x, float eps)
{
    float bounded = x < eps ? eps : x > 1.0f - eps ? 1.0f - eps : x;
    double z = eps >= 0 ? bounded : x, odds = z / (1.0 - z), k, f = f64_log_reduce(odds, &k);
    return (float)f64_log_special(odds, f64_log_short(f) + k * LN2);
}

/* Near 1/2 by the difference of z / (1 - z) from 1. 2.5 ulp. */
ELEMENT double f64_logit(double x, double eps)
{
    double bounded = x < eps ? eps : x > 1.0 - eps ? 1.0 - eps : x;
    double z = eps >= 0 ? bounded : x;
    double near = f64_log1p((2.0 * z - 1.0) / (1.0 - z)), far = f64_log(z / (1.0 - z));
    return fabs(z - 0.5) < 0.25 ? near : far;
}

/* ---- the rest ------------------------------------------------------------------------------- */

/* The next number on the way from x to y. */
ELEMENT float f32_nextafter(float x, float y)
{
    uint32_t bits = f32_bits(x);
    float next = f32_from_bits((x < y) == (x > 0) ? bits + 1 : bits - 1);
    next = x == 0 ? f32_copy_sign(0x1p-149f, y) : next;
    next = x == y ? y : next;
    return ((x != x) | (y != y)) ? x + y : next;
}

ELEMENT double f64_nextafter(double x, double y)
{
    uint64_t bits = f64_bits(x);
    double next = f64_from_bits((x < y) == (x > 0) ? bits + 1 : bits - 1);
    next = x == 0 ? f64_copy_sign(0x1p-1074, y) : next;
    next = x == y ? y : next;
    return ((x != x) | (y != y)) ? x + y : next;
}

/* ---- division that rounds down --------------------------------------------------------------- */

/* Where these hold, the quotient of two float32 in double is never rounded up to an integer, and its integer
 * part times y is exact. */
ELEMENT bool f32_is_divided_fast(float x, float y)
{
    double quotient = (double)x / (double)y;
    return (fabs(quotient) < 0x1p28) & (fabsf(y) < INFINITY) & (y != 0);
}

/* The remainder with x's sign becomes the one with y's; 0 has y's, as in Python. */
ELEMENT float f32_remainder_signed(float rest, float y)
{
    rest = ((rest != 0) & ((rest < 0) != (y < 0))) ? rest + y : rest;
    return rest == 0 ? f32_copy_sign(0.0f, y) : rest;
}

ELEMENT float f32_remainder(float x, float y)
{
    double quotient = trunc((double)x / (double)y);
    return f32_remainder_signed((float)((double)x - quotient * (double)y), y);
}

ELEMENT float f32_remainder_slow(float x, float y)
{
    return f32_remainder_signed(fmodf(x, y), y);
}

ELEMENT float f32_floor_divide(float x, float y)
{
    double exact = (double)x / (double)y, quotient = trunc(exact);
    double rest = (double)x - quotient * (double)y;
    quotient = ((rest != 0) & ((rest < 0) != (y < 0))) ? quotient - 1.0 : quotient;
    return quotient == 0 ? f32_copy_sign(0.0f, (float)exact) : (float)quotient;
}

/* What a division that rounds towards 0 leaves: x's sign, at 0 as well. */
ELEMENT float f32_fmod(float x, float y)
{
    double quotient = trunc((double)x / (double)y);
    return f32_copy_sign((float)((double)x - quotient * (double)y), x);
}

/* Where these hold, the quotient of two float64, rounded down, is at most 1 too large, and what it leaves is exact. */
ELEMENT bool f64_is_divided_fast(double x, double y)
{
    double size = fabs(y);
    return (fabs(x / y) < 0x1p52) & (fabs(x) < 0x1p900) & (size < 0x1p900) & (size > 0x1p-850);
}

ELEMENT double f64_fmod(double x, double y)
{
    double rest = f64_fma(-trunc(x / y), y, x);
    rest = ((rest != 0) & ((rest < 0) != (x < 0))) ? rest + f64_copy_sign(fabs(y), x) : rest;
    return f64_copy_sign(rest, x);
}

ELEMENT double f64_remainder_signed(double rest, double y)
{
    rest = ((rest != 0) & ((rest < 0) != (y < 0))) ? rest + y : rest;
    return rest == 0 ? f64_copy_sign(0.0, y) : rest;
}

ELEMENT double f64_remainder(double x, double y)
{
    return f64_remainder_signed(f64_fmod(x, y), y);
}

ELEMENT double f64_remainder_slow(double x, double y)
{
    return f64_remainder_signed(fmod(x, y), y);
}

/* Of the quotient rounded towards 0, which (x - rest) / y is nearly. */
ELEMENT double f64_floor_divide_rest(double x, double y, double rest)
{
    double quotient = (x - rest) / y;
    quotient = ((rest != 0) & ((rest < 0) != (y < 0))) ? quotient - 1.0 : quotient;
    double rounded = floor(quotient);
    rounded = quotient - rounded > 0.5 ? rounded + 1.0 : rounded;
    return quotient == 0 ? f64_copy_sign(0.0, x / y) : rounded;
}

ELEMENT double f64_floor_divide(double x, double y)
{
    return f64_floor_divide_rest(x, y, f64_fmod(x, y));
}

ELEMENT double f64_floor_divide_slow(double x, double y)
{
    return y == 0 ? x / y : f64_floor_divide_rest(x, y, fmod(x, y));
}

ELEMENT float f32_floor_divide_slow(float x, float y)
{
    return (float)f64_floor_divide_slow(x, y);
}

/* ---- halves ---------------------------------------------------------------------------------- */

/* As dtype.c, without branches. Comparisons are signed, which every vector set has. */
ELEMENT uint16_t f16_from(float value)
{
    uint32_t bits = f32_bits(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    int32_t order = (int32_t)magnitude;
    uint32_t normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
    uint32_t small = f32_bits(f32_from_bits(magnitude) + 0.5f) - 0x3f000000;
    uint32_t half = order >= 0x38800000 ? normal : small;
    half = order >= 0x477ff000 ? 0x7c00 : half;
    half = order > 0x7f800000 ? 0x7e00 | (magnitude >> 13 & 0x3ff) : half;
    return (uint16_t)(sign | half);
}

ELEMENT float f16_to(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = half & 0x7fffu;
    int32_t order = (int32_t)magnitude;
    uint32_t small = f32_bits((float)order * 0x1p-24f);
    uint32_t bits = order >= 0x400 ? (magnitude << 13) + 0x38000000 : small;
    bits = order >= 0x7c00 ? (magnitude << 13) + 0x70000000 : bits;
    bits = order > 0x7c00 ? bits | 0x400000 : bits;
    return f32_from_bits(sign | bits);
}

ELEMENT uint16_t bf16_from(float value)
{
    uint32_t bits = f32_bits(value);
    uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    bool is_nan = (int32_t)(bits & 0x7fffffff) > 0x7f800000;
    return (uint16_t)((is_nan ? bits | 0x400000 : rounded) >> 16);
}

ELEMENT float bf16_to(uint16_t half)
{
    return f32_from_bits((uint32_t)half << 16);
}

#endif
