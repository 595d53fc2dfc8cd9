/*
 * elements.cu: the types of elements, and every elementwise operation on one element.
 *
 * Goes in front of each generated kernel (generate.c). Header-free: what NVRTC knows by itself is all there is.
 * Compiled without contraction, so that + - * / give the bits of the CPU. Integers are computed as unsigned ones of
 * at least 32 bits, which wrap. What each operation means is said in genesis/ops.h; names are op_ and its name there.
 *
 * GN_NO_PTX is defined by compilers that have no inline PTX: halves are then converted bit by bit.
 */
typedef unsigned char uint8;
typedef unsigned short uint16;
typedef unsigned uint32;
typedef unsigned long long uint64;
typedef signed char int8;
typedef short int16;
typedef int int32;
typedef long long int64;
typedef float float32;
typedef double float64;

#define INSIDE __device__ __forceinline__
#define ELEMENT static INSIDE
/* A function that is too large to be put into a kernel once for each element that a thread has. */
#define CALLED static __device__ __noinline__

/*
 * The first thing in each kernel, and of each thread: waits until all that is before it on its stream is complete.
 * Kernels are launched while the one before them ends (gni_launch.waits), so before this nothing may be read or written
 * but arguments and shared memory.
 */
ELEMENT void kernel_begin()
{
#ifdef GN_NO_PTX
    cudaGridDependencySynchronize();
#elif __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* ---- halves: kept as bits, computed as float ---- */

struct float16 {
    unsigned short bits;
    static const bool is_float16 = true;
};
struct bfloat16 {
    unsigned short bits;
    static const bool is_float16 = false;
};

#ifdef GN_NO_PTX
ELEMENT float number(float16 x)
{
    unsigned sign = (x.bits & 0x8000u) << 16, rest = x.bits & 0x7fffu;
    if (rest >= 0x7c00)
        return __uint_as_float(sign | 0x7f800000 | (rest > 0x7c00 ? 0x400000 : 0) | (rest & 0x3ff) << 13);
    if (rest >= 0x400)
        return __uint_as_float(sign | ((rest << 13) + 0x38000000));
    return __uint_as_float(sign | __float_as_uint((float)rest * 0x1p-24f));
}
ELEMENT float16 half_of(float value)
{
    unsigned bits = __float_as_uint(value), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    unsigned short half;
    if (size > 0x7f800000)
        half = (unsigned short)(0x7e00 | (size >> 13 & 0x3ff));
    else if (size >= 0x477ff000)
        half = 0x7c00;
    else if (size >= 0x38800000)
        half = (unsigned short)((size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13);
    else
        half = (unsigned short)(__float_as_uint(__uint_as_float(size) + 0.5f) - 0x3f000000);
    return float16{(unsigned short)(sign | half)};
}
#else
ELEMENT float number(float16 x)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
    return value;
}
ELEMENT float16 half_of(float value)
{
    float16 half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(value));
    return half;
}
#endif
ELEMENT float number(bfloat16 x)
{
    return __uint_as_float((unsigned)x.bits << 16);
}
#if defined(GN_NO_PTX) || __CUDA_ARCH__ < 800
ELEMENT bfloat16 bfloat_of(float value)
{
    unsigned bits = __float_as_uint(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return bfloat16{(unsigned short)(bits >> 16 | 0x40)};
    return bfloat16{(unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
#else
ELEMENT bfloat16 bfloat_of(float value)
{
    bfloat16 bfloat;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bfloat.bits) : "f"(value));
    return bfloat;
}
#endif

/* ---- conversions ---- */

template <class T> ELEMENT T number(T x) { return x; }

template <class To> struct make {
    template <class T> ELEMENT To from(T x) { return (To)x; }
};
/* Small integers are made by way of int, and uint32 by way of int64, so that a floating value out of range wraps as an
 * integer would. */
template <class To, class By> struct make_by {
    template <class T> ELEMENT To from(T x) { return (To)(By)x; }
};
template <> struct make<uint8> : make_by<uint8, int> {};
template <> struct make<int8> : make_by<int8, int> {};
template <> struct make<uint16> : make_by<uint16, int> {};
template <> struct make<int16> : make_by<int16, int> {};
template <> struct make<uint32> : make_by<uint32, int64> {};
/* From 2^63 on int64 ends; integers keep their bits. */
template <> struct make<uint64> {
    template <class T> ELEMENT uint64 from(T x)
    {
        if constexpr ((T)1.5 != (T)1) /* of a floating type */
            return x >= (T)9223372036854775808.0 ? (uint64)(int64)(x - (T)9223372036854775808.0) ^ 1ull << 63
                                                 : (uint64)(int64)x;
        else
            return (uint64)x;
    }
};
template <> struct make<bool> {
    template <class T> ELEMENT bool from(T x) { return x != 0; }
};
/* A float32 beside a number, which a half is rounded from: "round to odd", as gni_float_to_odd() of dtype.h. */
template <class T> ELEMENT float to_odd(T x) { return (float)x; }
template <> INSIDE float to_odd(double x)
{
    float nearest = (float)x;
    double magnitude = fabs(x), made = fabs((double)nearest);
    unsigned bits = __float_as_uint(nearest);
    return made == magnitude || x != x ? nearest : __uint_as_float((bits - (made > magnitude)) | 1);
}
template <> INSIDE float to_odd(int x) { return to_odd((double)x); }
template <> INSIDE float to_odd(uint32 x) { return to_odd((double)x); }
ELEMENT float wide_to_odd(unsigned long long x)
{
    unsigned long long rounded = x >> 11 << 11 | (unsigned long long)((x & 0x7ff) != 0) << 11;
    return to_odd((double)(x >> 53 ? rounded : x));
}
template <> INSIDE float to_odd(uint64 x) { return wide_to_odd(x); }
template <> INSIDE float to_odd(int64 x)
{
    return x < 0 ? -wide_to_odd(0 - (unsigned long long)x) : wide_to_odd((unsigned long long)x);
}
template <> struct make<float16> {
    template <class T> ELEMENT float16 from(T x) { return half_of(to_odd(x)); }
};
template <> struct make<bfloat16> {
    template <class T> ELEMENT bfloat16 from(T x) { return bfloat_of(to_odd(x)); }
};
template <class To, class From> ELEMENT To convert(From x)
{
    return make<To>::from(number(x));
}
ELEMENT float round_float16(float x) { return number(half_of(x)); }
ELEMENT float round_bfloat16(float x) { return number(bfloat_of(x)); }

/* ---- memory: a bool is a byte, of which any value but 0 is true ---- */

template <class T> struct memory {
    typedef T type;
};
template <> struct memory<bool> {
    typedef uint8 type;
};
template <class T> ELEMENT T loaded(typename memory<T>::type x) { return (T)x; }
template <> INSIDE bool loaded<bool>(uint8 x) { return x != 0; }
template <> INSIDE float16 loaded<float16>(float16 x) { return x; }
template <> INSIDE bfloat16 loaded<bfloat16>(bfloat16 x) { return x; }

template <class T, int N> struct __align__(sizeof(T) * N < 16 ? sizeof(T) * N : 16) pack {
    T item[N];
};

/* Moves the first BY elements of an array behind the others. A loop that computes with those in front, and rotates, goes
 * through an array that is in registers. */
template <int BY, class T, int N> ELEMENT void rotate(T (&x)[N])
{
    T first[BY];
#pragma unroll
    for (int k = 0; k < BY; k++)
        first[k] = x[k];
#pragma unroll
    for (int k = 0; k < N - BY; k++)
        x[k] = x[k + BY];
#pragma unroll
    for (int k = 0; k < BY; k++)
        x[N - BY + k] = first[k];
}

/* ---- integers ---- */

template <class T> struct wide {
    typedef unsigned type;
};
template <> struct wide<int64> {
    typedef unsigned long long type;
};
template <> struct wide<uint64> {
    typedef uint64 type;
};
template <class T> struct is_floating {
    static const bool value = false;
};
template <> struct is_floating<float> {
    static const bool value = true;
};
template <> struct is_floating<double> {
    static const bool value = true;
};

template <class T> ELEMENT T op_add(T x, T y)
{
    if constexpr (is_floating<T>::value)
        return x + y;
    else
        return (T)((typename wide<T>::type)x + (typename wide<T>::type)y);
}
template <class T> ELEMENT T op_subtract(T x, T y)
{
    if constexpr (is_floating<T>::value)
        return x - y;
    else
        return (T)((typename wide<T>::type)x - (typename wide<T>::type)y);
}
template <class T> ELEMENT T op_multiply(T x, T y)
{
    if constexpr (is_floating<T>::value)
        return x * y;
    else
        return (T)((typename wide<T>::type)x * (typename wide<T>::type)y);
}
template <class T> ELEMENT T op_divide(T x, T y) { return x / y; }

ELEMENT float absolute(float x) { return fabsf(x); }
ELEMENT double absolute(double x) { return fabs(x); }

/* As Python does it: what fmod leaves has the divisor's sign, and the quotient is that of the difference. */
template <class T> CALLED T floating_remainder(T x, T y)
{
    T rest = fmod(x, y);
    if (rest != 0 && (rest < 0) != (y < 0))
        rest += y;
    return rest == 0 ? copysign((T)0, y) : rest;
}
template <class T> CALLED T floating_floor_divide(T x, T y)
{
    if (y == 0)
        return x / y;
    T rest = fmod(x, y), quotient = (x - rest) / y;
    if (rest != 0 && (rest < 0) != (y < 0))
        quotient -= 1;
    if (quotient == 0)
        return copysign((T)0, x / y);
    T down = floor(quotient);
    return quotient - down > (T)0.5 ? down + 1 : down;
}
template <class T> ELEMENT T op_floor_divide(T x, T y)
{
    if constexpr (is_floating<T>::value) {
        return floating_floor_divide(x, y);
    } else {
        if (y == 0)
            return 0;
        if ((T)-1 < (T)0 && y == (T)-1)
            return (T)(0 - (typename wide<T>::type)x);
        T quotient = (T)(x / y), rest = (T)(x % y);
        return (T)(quotient - (rest != 0 && (rest < 0) != (y < 0)));
    }
}
template <class T> ELEMENT T op_remainder(T x, T y)
{
    if constexpr (is_floating<T>::value) {
        return floating_remainder(x, y);
    } else {
        if (y == 0 || ((T)-1 < (T)0 && y == (T)-1))
            return 0;
        T rest = (T)(x % y);
        return (T)(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
    }
}
template <class T> CALLED T floating_fmod(T x, T y) { return fmod(x, y); }
template <class T> ELEMENT T op_fmod(T x, T y)
{
    if constexpr (is_floating<T>::value)
        return floating_fmod(x, y);
    else
        return y == 0 || ((T)-1 < (T)0 && y == (T)-1) ? (T)0 : (T)(x % y);
}
template <class T> ELEMENT T op_power(T x, T y)
{
    if constexpr (is_floating<T>::value) {
        return pow(x, y);
    } else {
        typedef typename wide<T>::type W;
        if ((T)-1 < (T)0 && y < 0)
            return (T)(x == 1 ? 1 : x == (T)-1 ? ((y & 1) != 0 ? -1 : 1) : 0);
        W result = 1, base = (W)x;
        for (W rest = (W)y; rest != 0; rest >>= 1) {
            if (rest & 1)
                result *= base;
            base *= base;
        }
        return (T)result;
    }
}

/* NaN wins, and 0 is larger than -0. */
#if defined(GN_NO_PTX) || __CUDA_ARCH__ < 800
ELEMENT float both(float a, float b) { return __uint_as_float(__float_as_uint(a) & __float_as_uint(b)); }
ELEMENT float either(float a, float b) { return __uint_as_float(__float_as_uint(a) | __float_as_uint(b)); }
ELEMENT float maximum_of(float x, float y) { return x == y ? both(x, y) : x > y || x != x ? x : y; }
ELEMENT float minimum_of(float x, float y) { return x == y ? either(x, y) : x < y || x != x ? x : y; }
#else
ELEMENT float maximum_of(float x, float y)
{
    float value;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(value) : "f"(x), "f"(y));
    return value;
}
ELEMENT float minimum_of(float x, float y)
{
    float value;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(value) : "f"(x), "f"(y));
    return value;
}
#endif
ELEMENT double both(double a, double b)
{
    return __longlong_as_double(__double_as_longlong(a) & __double_as_longlong(b));
}
ELEMENT double either(double a, double b)
{
    return __longlong_as_double(__double_as_longlong(a) | __double_as_longlong(b));
}
ELEMENT double maximum_of(double x, double y) { return x == y ? both(x, y) : x > y || x != x ? x : y; }
ELEMENT double minimum_of(double x, double y) { return x == y ? either(x, y) : x < y || x != x ? x : y; }
template <class T> ELEMENT T op_maximum(T x, T y)
{
    if constexpr (is_floating<T>::value)
        return maximum_of(x, y);
    else
        return x > y ? x : y;
}
template <class T> ELEMENT T op_minimum(T x, T y)
{
    if constexpr (is_floating<T>::value)
        return minimum_of(x, y);
    else
        return x < y ? x : y;
}

template <class T> ELEMENT T op_clamp(T x, T least, T most) { return op_minimum(op_maximum(x, least), most); }

template <class T> ELEMENT bool op_equal(T x, T y) { return x == y; }
template <class T> ELEMENT bool op_not_equal(T x, T y) { return x != y; }
template <class T> ELEMENT bool op_less(T x, T y) { return x < y; }
template <class T> ELEMENT bool op_less_equal(T x, T y) { return x <= y; }
template <class T> ELEMENT bool op_greater(T x, T y) { return x > y; }
template <class T> ELEMENT bool op_greater_equal(T x, T y) { return x >= y; }
template <class T> ELEMENT bool op_logical_and(T x, T y) { return x != 0 && y != 0; }
template <class T> ELEMENT bool op_logical_or(T x, T y) { return x != 0 || y != 0; }
template <class T> ELEMENT bool op_logical_xor(T x, T y) { return (x != 0) != (y != 0); }
template <class T> ELEMENT bool op_logical_not(T x) { return x == 0; }

template <class T> ELEMENT T op_bitwise_and(T x, T y) { return (T)(x & y); }
template <class T> ELEMENT T op_bitwise_or(T x, T y) { return (T)(x | y); }
template <class T> ELEMENT T op_bitwise_xor(T x, T y) { return (T)(x ^ y); }
template <class T> ELEMENT T op_bitwise_not(T x) { return (T)~x; }
template <> INSIDE bool op_bitwise_not<bool>(bool x) { return !x; }
template <class T> ELEMENT T op_shift_left(T x, T y)
{
    typedef typename wide<T>::type W;
    return (T)((W)y < 8 * sizeof(T) ? (W)x << ((W)y & (8 * sizeof(T) - 1)) : 0);
}
template <class T> ELEMENT T op_shift_right(T x, T y)
{
    typedef typename wide<T>::type W;
    const W bits = 8 * sizeof(T), far = bits - 1;
    if ((T)-1 > (T)0)
        return (T)((W)y < bits ? x >> ((W)y & far) : 0);
    return (T)(x >> ((W)y < bits ? (W)y : far));
}
/* A number of one bit: a shift by true pushes it out. */
template <> INSIDE bool op_shift_left<bool>(bool x, bool y) { return x && !y; }
template <> INSIDE bool op_shift_right<bool>(bool x, bool y) { return x && !y; }

template <class T> ELEMENT typename wide<T>::type size_of(T x)
{
    return x < (T)0 ? 0 - (typename wide<T>::type)x : (typename wide<T>::type)x;
}
template <class W> ELEMENT W common_divisor(W a, W b)
{
    while (b != 0) {
        W rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}
template <class T> ELEMENT T op_gcd(T x, T y) { return (T)common_divisor(size_of(x), size_of(y)); }
template <class T> ELEMENT T op_lcm(T x, T y)
{
    return (T)(x == 0 ? 0 : size_of(x) / common_divisor(size_of(x), size_of(y)) * size_of(y));
}

template <class T> ELEMENT T op_negative(T x)
{
    if constexpr (is_floating<T>::value)
        return -x;
    else
        return (T)(0 - (typename wide<T>::type)x);
}
template <class T> ELEMENT T op_absolute(T x)
{
    if constexpr (is_floating<T>::value)
        return absolute(x);
    else
        return (T)(x < 0 ? 0 - (typename wide<T>::type)x : (typename wide<T>::type)x);
}
template <class T> ELEMENT T op_sign(T x)
{
    if constexpr (is_floating<T>::value)
        return x != x ? x : (T)((x > 0) - (x < 0));
    else
        return (T)((x > 0) - (x < 0));
}
template <class T> ELEMENT T op_heaviside(T x, T value) { return x == 0 ? value : (T)(x > 0); }
template <class T> ELEMENT T op_square(T x) { return op_multiply(x, x); }
template <class T> ELEMENT T op_relu(T x) { return x > 0 || x != x ? x : (T)0; }

/* ---- functions ---- */

template <class T> ELEMENT T op_reciprocal(T x) { return 1 / x; }
template <class T> ELEMENT T op_floor(T x) { if constexpr (sizeof(T) == 4) return floorf(x); else return floor(x); }
template <class T> ELEMENT T op_ceil(T x) { if constexpr (sizeof(T) == 4) return ceilf(x); else return ceil(x); }
template <class T> ELEMENT T op_round(T x) { if constexpr (sizeof(T) == 4) return rintf(x); else return rint(x); }
template <class T> ELEMENT T op_trunc(T x) { if constexpr (sizeof(T) == 4) return truncf(x); else return trunc(x); }
template <class T> ELEMENT T op_sqrt(T x) { if constexpr (sizeof(T) == 4) return sqrtf(x); else return sqrt(x); }
template <class T> ELEMENT T op_rsqrt(T x) { if constexpr (sizeof(T) == 4) return 1 / sqrtf(x); else return 1 / sqrt(x); }
template <class T> ELEMENT T op_exp(T x) { if constexpr (sizeof(T) == 4) return expf(x); else return exp(x); }
/* A result that is rounded to a half at once needs less: this is within 2^-17 of it. Where infinite, NaN or subnormal, the same. */
#ifdef GN_NO_PTX
template <class T> ELEMENT T op_exp_half(T x) { return op_exp<T>(x); }
#else
template <class T> ELEMENT T op_exp_half(T x)
{
    float power;
    asm("ex2.approx.f32 %0, %1;" : "=f"(power) : "f"(x * 1.4426950408889634f));
    return power;
}
#endif
template <class T> ELEMENT T op_exp2(T x) { if constexpr (sizeof(T) == 4) return exp2f(x); else return exp2(x); }
template <class T> ELEMENT T op_expm1(T x) { if constexpr (sizeof(T) == 4) return expm1f(x); else return expm1(x); }
template <class T> ELEMENT T op_log(T x) { if constexpr (sizeof(T) == 4) return logf(x); else return log(x); }
template <class T> ELEMENT T op_log1p(T x) { if constexpr (sizeof(T) == 4) return log1pf(x); else return log1p(x); }
template <class T> ELEMENT T op_log2(T x) { if constexpr (sizeof(T) == 4) return log2f(x); else return log2(x); }
template <class T> ELEMENT T op_log10(T x) { if constexpr (sizeof(T) == 4) return log10f(x); else return log10(x); }
/* Far from 0 these need many times the code, which is called: the compiler knows that the condition is that of sinf(). */
CALLED float sin_far(float x) { return sinf(x); }
CALLED float cos_far(float x) { return cosf(x); }
CALLED float tan_far(float x) { return tanf(x); }
ELEMENT float sin_of(float x) { return fabsf(x) >= 105615.0f ? sin_far(x) : sinf(x); }
ELEMENT float cos_of(float x) { return fabsf(x) >= 105615.0f ? cos_far(x) : cosf(x); }
ELEMENT float tan_of(float x) { return fabsf(x) >= 105615.0f ? tan_far(x) : tanf(x); }
template <class T> ELEMENT T op_sin(T x) { if constexpr (sizeof(T) == 4) return sin_of(x); else return sin(x); }
template <class T> ELEMENT T op_cos(T x) { if constexpr (sizeof(T) == 4) return cos_of(x); else return cos(x); }
template <class T> ELEMENT T op_tan(T x) { if constexpr (sizeof(T) == 4) return tan_of(x); else return tan(x); }
template <class T> ELEMENT T op_asin(T x) { if constexpr (sizeof(T) == 4) return asinf(x); else return asin(x); }
template <class T> ELEMENT T op_acos(T x) { if constexpr (sizeof(T) == 4) return acosf(x); else return acos(x); }
template <class T> ELEMENT T op_atan(T x) { if constexpr (sizeof(T) == 4) return atanf(x); else return atan(x); }
template <class T> ELEMENT T op_sinh(T x) { if constexpr (sizeof(T) == 4) return sinhf(x); else return sinh(x); }
template <class T> ELEMENT T op_cosh(T x) { if constexpr (sizeof(T) == 4) return coshf(x); else return cosh(x); }
template <class T> ELEMENT T op_tanh(T x) { if constexpr (sizeof(T) == 4) return tanhf(x); else return tanh(x); }
template <class T> ELEMENT T op_asinh(T x) { if constexpr (sizeof(T) == 4) return asinhf(x); else return asinh(x); }
template <class T> ELEMENT T op_acosh(T x) { if constexpr (sizeof(T) == 4) return acoshf(x); else return acosh(x); }
template <class T> ELEMENT T op_atanh(T x) { if constexpr (sizeof(T) == 4) return atanhf(x); else return atanh(x); }
template <class T> ELEMENT T op_erf(T x) { if constexpr (sizeof(T) == 4) return erff(x); else return erf(x); }
template <class T> ELEMENT T op_erfc(T x) { if constexpr (sizeof(T) == 4) return erfcf(x); else return erfc(x); }
template <class T> ELEMENT T op_erfinv(T x) { if constexpr (sizeof(T) == 4) return erfinvf(x); else return erfinv(x); }
CALLED float lgamma_of(float x) { return lgammaf(x); }
CALLED double lgamma_of(double x) { return lgamma(x); }
template <class T> ELEMENT T op_lgamma(T x) { return lgamma_of(x); }
template <class T> ELEMENT T op_sinc(T x) { if constexpr (sizeof(T) == 4) return x == 0 ? 1 : sinpif(x) / (3.14159265f * x); else return x == 0 ? 1 : sinpi(x) / (3.14159265358979323846 * x); }

/* As the CPU does it, float32 in double: the sum of 1 / x up to 8, the series from there, and reflection below 0. */
CALLED double digamma_of(double x)
{
    double sum = 0;
    if (x == 0)
        return copysign(__longlong_as_double(0x7ff0000000000000), -x);
    if (x < 0) {
        double r = x - rint(x);
        if (r == 0)
            return __longlong_as_double(0x7ff8000000000000);
        sum = 3.14159265358979323846 * cospi(r) / sinpi(r);
        x = 1 - x;
    }
    for (; x < 8; x += 1)
        sum += 1 / x;
    double w = 1 / (x * x);
    double rest = w * (0x1.5555555555555p-4 + w * (-0x1.1111111110d4fp-7 + w * (0x1.0410410195bbfp-8 + w * (-0x1.11110c0ff8839p-8 + w * (0x1.f077209c326cp-8 + w * (-0x1.58e68c895ad5bp-6 + w * (0x1.47c69710dec6fp-4 + w * -0x1.329c9079bcef2p-2)))))));
    return log(x) - (sum + (0.5 / x + rest));
}
template <class T> ELEMENT T op_digamma(T x) { if constexpr (sizeof(T) == 4) return (float)digamma_of(x); else return digamma_of(x); }

/*
 * The n-th derivative of digamma, n from 1 to 32: (-1)^(n + 1) n! times the sum of (x + i)^-(n + 1), which is taken up to
 * i = 9 and continued by the series of Euler and Maclaurin. For negative x the sum is cut at 0: what is below is a
 * difference of two sums of positive numbers. Poles are infinite. As the CPU does it.
 */
CALLED double polygamma_above_0(double n, double a)
{
    const double terms[] = {0x1.5555555555555p-4, -0x1.6c16c16c16c17p-10, 0x1.1566abc011567p-15, -0x1.bbd779334ef0bp-21, 0x1.66a8f2bf70ebep-26, -0x1.22805d644267fp-31, 0x1.d6db2c4e09162p-37, -0x1.7da4e1f79955cp-42};
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
        sum += pow(a + i, -s);
    double y = a + 10, power = pow(y, -s), term = power * s / y;
    double rest = power * (y / n + 0.5);
    for (int i = 0; i < 8; i++) {
        rest += terms[i] * term;
        term *= (s + 2 * i + 1) * (s + 2 * i + 2) / (y * y);
    }
    return factor * (sum + rest);
}

CALLED double polygamma_of(double n, double x)
{
    n = floor(n);
    bool is_even = fmod(n, 2) == 0;
    double whole = floor(x), result;
    if (!(n >= 1 && n <= 32) || x != x || x == -__longlong_as_double(0x7ff0000000000000))
        return __longlong_as_double(0x7ff8000000000000);
    if (x <= 0 && x == whole)
        return is_even ? -__longlong_as_double(0x7ff0000000000000) : __longlong_as_double(0x7ff0000000000000);
    if (x > 0) {
        result = polygamma_above_0(n, x);
        return is_even ? -result : result;
    }
    double below = polygamma_above_0(n, whole + 1 - x) - polygamma_above_0(n, 1 - x);
    double above = polygamma_above_0(n, x - whole);
    return is_even ? below - above : below + above;
}
template <class T> ELEMENT T op_polygamma(T x, T y) { return (T)polygamma_of(x, y); }

/* |x - y| as a sum of two; 0 for equal infinities. */
template <class T> ELEMENT T way_of(T x, T y, T *low)
{
    T most = x > y ? x : y, least = x > y ? y : x, way = most - least, part = way - most;
    *low = way < 1000 ? (most - (way - part)) - (least + part) : (T)0;
    return x == y ? (T)0 : way;
}
template <class T> ELEMENT T op_logaddexp(T x, T y)
{
    T low, e = op_exp(-way_of(x, y, &low));
    return op_maximum(x, y) + op_log1p(fma(e, -low, e));
}
template <class T> ELEMENT T op_logaddexp2(T x, T y)
{
    T low, e = op_exp2(-way_of(x, y, &low));
    return op_maximum(x, y) + op_log1p(fma(e, -low * (T)0.69314718055994530942, e)) * (T)1.44269504088896340736;
}
template <class T> ELEMENT T op_xlogy(T x, T y) { return x == 0 && y == y ? (T)0 : x * op_log(y); }
/* Near 1/2 by the difference of z / (1 - z) from 1. */
template <class T> ELEMENT T op_logit(T x, T eps)
{
    T z = eps >= 0 ? x < eps ? eps : x > 1 - eps ? 1 - eps : x : x;
    if (absolute(z - (T)0.5) < (T)0.25)
        return op_log1p((2 * z - 1) / (1 - z));
    return op_log(z / (1 - z));
}

template <class T> ELEMENT T op_atan2(T y, T x);
template <> INSIDE float op_atan2(float y, float x) { return atan2f(y, x); }
template <> INSIDE double op_atan2(double y, double x) { return atan2(y, x); }

template <class T> ELEMENT T op_nextafter(T x, T y);
template <> INSIDE float op_nextafter(float x, float y) { return nextafterf(x, y); }
template <> INSIDE double op_nextafter(double x, double y) { return nextafter(x, y); }

/* x is brought nearer to 1 first, so that 2 to the power of the rest of y neither overflows nor loses a place. */
template <class T> CALLED T op_ldexp(T x, T y)
{
    double limited = y < -2200 ? -2200 : y > 2200 ? 2200 : (double)y, n = rint(limited);
    bool is_large = absolute(x) > 1;
    double nearer = ldexp((double)x, is_large ? -1 : 60) * exp2(limited - n);
    return (T)ldexp(nearer, (int)n + (is_large ? 1 : -60));
}

/* As the CPU does it, which gives its bits: float32 in double. */
template <class T> ELEMENT T op_hypot(T x, T y);
template <> INSIDE float op_hypot(float x, float y)
{
    if (fabsf(x) > 3.4028234663852886e38f || fabsf(y) > 3.4028234663852886e38f)
        return __uint_as_float(0x7f800000);
    return (float)sqrt((double)x * (double)x + (double)y * (double)y);
}
template <> INSIDE double op_hypot(double x, double y) { return hypot(x, y); }
ELEMENT double lerp_finite(double x, double y, double weight)
{
    double way = y - x;
    return fabs(weight) < 0.5 ? x + weight * way : y - way * (1 - weight);
}
template <class T> ELEMENT T op_lerp(T x, T y, T weight);
template <> INSIDE float op_lerp(float x, float y, float weight)
{
    return (float)lerp_finite(x, y, weight);
}
template <> INSIDE double op_lerp(double x, double y, double weight)
{
    const double most = 1.7976931348623157e308;
    double near = lerp_finite(x, y, weight), far = x * (1 - weight) + y * weight;
    return fabs(near) <= most || !(fabs(far) <= most) ? near : far;
}

template <class T> ELEMENT T op_sigmoid(T x)
{
    T e = op_exp(-absolute(x));
    return (x < 0 ? e : (T)1) / (1 + e);
}
template <class T> ELEMENT T op_relu6(T x) { return op_clamp(x, (T)0, (T)6); }
template <class T> ELEMENT T op_hardswish(T x) { return x * (op_relu6(x + 3) / 6); }
template <class T> ELEMENT T op_leaky_relu(T x, T slope) { return x > 0 ? x : x * slope; }
template <class T> ELEMENT T op_elu(T x, T alpha) { return x > 0 ? x : alpha * op_expm1(x); }
CALLED double celu_of(double x, double alpha)
{
    double z = x / alpha;
    return fabs(z) < 0x1p-60 ? x : alpha * expm1(z);
}
template <class T> ELEMENT T op_celu(T x, T alpha) { return x > 0 ? x : (T)celu_of(x, alpha); }
template <class T> ELEMENT T op_selu(T x)
{
    return x > 0 ? (T)0x1.0cfabd6a91132p+0 * x : (T)0x1.c212cc640f031p+0 * op_expm1(x);
}
template <class T> ELEMENT T op_mish(T x)
{
    T e = op_exp(x > 40 ? (T)40 : x), n = e * (e + 2);
    return x * (n / (n + 2));
}
template <class T> ELEMENT T op_log_sigmoid(T x) { return (x < 0 ? x : (T)0) - op_log1p(op_exp(-absolute(x))); }
/* The product of beta and x is a sum of two, as on the CPU. */
template <class T> ELEMENT T op_softplus(T x, T beta, T threshold)
{
    T product = x * beta, low = absolute(product) < 1000 ? fma(x, beta, -product) : (T)0;
    if (product > threshold || product > 100)
        return x;
    T e = op_exp(-absolute(product));
    T sum = op_log1p(fma(e, product < 0 ? low : -low, e));
    return (product > 0 ? product + (sum + low) : sum) / beta;
}
template <class T> ELEMENT T op_silu(T x) { return x * op_sigmoid(x); }
template <class T> ELEMENT T op_gelu(T x)
{
    return (T)0.5 * x * (1 + op_erf(x * (T)0.70710678118654752440));
}
template <class T> ELEMENT T op_gelu_tanh(T x)
{
    return x * op_sigmoid(x * (T)1.59576912160573071176 * (1 + (T)0.044715 * (x * x)));
}

template <class T> ELEMENT bool op_isnan(T x) { return x != x; }
template <class T> ELEMENT bool op_isinf(T x)
{
    if constexpr (is_floating<T>::value)
        return absolute(x) > (sizeof(T) == 4 ? (T)3.4028234663852886e38 : (T)1.7976931348623157e308);
    else
        return false;
}
template <class T> ELEMENT bool op_isfinite(T x)
{
    if constexpr (is_floating<T>::value)
        return absolute(x) <= (sizeof(T) == 4 ? (T)3.4028234663852886e38 : (T)1.7976931348623157e308);
    else
        return true;
}
template <class T> ELEMENT T op_where(bool condition, T x, T y) { return condition ? x : y; }
