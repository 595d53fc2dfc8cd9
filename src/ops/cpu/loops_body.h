/*
 * loops_body.h: the text of all loops. It is compiled once for each instruction set, by loops_basic.c,
 * loops_avx2.c and loops_avx512.c, which define
 *
 *   GNI_LOOPS_SET    the name of the set's table
 *   GNI_LOOPS_NAME   its name for people
 *
 * Loops are plain C that the compiler turns into vector code. What makes that possible:
 *   1. PARALLEL says that no iteration reads what another one writes: `out` is an operand itself or apart
 *      from it (loops.h), which the compiler cannot know.
 *   2. Conditions are `&` and `?:` on values that are computed anyway, never branches.
 *   3. Integers are computed as unsigned ones of at least 32 bits, which wrap, and cut at the store.
 *
 * What must not depend on the instruction set: the order of floating-point additions. A reduction keeps LANES
 * partial results, element i in number i modulo LANES, and joins them as a tree.
 *
 * A bool in memory is a byte; any value but 0 is read as true.
 */
#include "ops/cpu/math_functions.h"
#include "ops/cpu/loops_set.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

#if defined(__clang__)
#define PARALLEL _Pragma("clang loop vectorize(assume_safety)")
#else
#define PARALLEL _Pragma("GCC ivdep")
#endif

/* ---- shapes of loops ------------------------------------------------------------------------- */

#define UNARY(NAME, T, RESULT, EXPRESSION)                           \
    static void NAME(void *out, const void *const *in, size_t count) \
    {                                                                \
        const T *first = in[0];                                      \
        RESULT *result = out;                                        \
        PARALLEL                                                     \
        for (size_t i = 0; i < count; i++) {                         \
            T x = first[i];                                          \
            result[i] = (RESULT)(EXPRESSION);                        \
        }                                                            \
    }

#define BINARY(NAME, T, RESULT, EXPRESSION)                          \
    static void NAME(void *out, const void *const *in, size_t count) \
    {                                                                \
        const T *first = in[0], *second = in[1];                     \
        RESULT *result = out;                                        \
        PARALLEL                                                     \
        for (size_t i = 0; i < count; i++) {                         \
            T x = first[i], y = second[i];                           \
            result[i] = (RESULT)(EXPRESSION);                        \
        }                                                            \
    }

#define WHERE(NAME, T)                                               \
    static void NAME(void *out, const void *const *in, size_t count) \
    {                                                                \
        const uint8_t *condition = in[0];                            \
        const T *first = in[1], *second = in[2];                     \
        T *result = out;                                             \
        PARALLEL                                                     \
        for (size_t i = 0; i < count; i++) {                         \
            T x = first[i], y = second[i];                           \
            result[i] = condition[i] != 0 ? x : y;                   \
        }                                                            \
    }

#define TERNARY(NAME, T, EXPRESSION)                                 \
    static void NAME(void *out, const void *const *in, size_t count) \
    {                                                                \
        const T *first = in[0], *second = in[1], *third = in[2];     \
        T *result = out;                                             \
        PARALLEL                                                     \
        for (size_t i = 0; i < count; i++) {                         \
            T x = first[i], y = second[i], z = third[i];             \
            result[i] = (T)(EXPRESSION);                             \
        }                                                            \
    }

/* One truth for all elements. */
#define FILL(NAME, TRUTH)                                            \
    static void NAME(void *out, const void *const *in, size_t count) \
    {                                                                \
        (void)in;                                                    \
        if (count)                                                   \
            memset(out, TRUTH, count);                               \
    }

/* The same where some arguments need a slow function: what a block of them has is known before the loop.
 * The choice is made for each element, so that neighbours do not change a result. */
enum {
    GUARD_BLOCK = 512,
};

#define UNARY_GUARDED(NAME, T, IS_FAST, FAST, SLOW)                                    \
    static void NAME(void *out, const void *const *in, size_t count)                   \
    {                                                                                  \
        for (size_t start = 0; start < count; start += GUARD_BLOCK) {                  \
            const T *first = (const T *)in[0] + start;                                 \
            T *result = (T *)out + start;                                              \
            size_t length = count - start < GUARD_BLOCK ? count - start : GUARD_BLOCK; \
            int slow = 0;                                                              \
            for (size_t i = 0; i < length; i++)                                        \
                slow |= !IS_FAST(first[i]);                                            \
            if (slow) {                                                                \
                for (size_t i = 0; i < length; i++)                                    \
                    result[i] = IS_FAST(first[i]) ? FAST(first[i]) : SLOW(first[i]);   \
                continue;                                                              \
            }                                                                          \
            PARALLEL                                                                   \
            for (size_t i = 0; i < length; i++)                                        \
                result[i] = FAST(first[i]);                                            \
        }                                                                              \
    }

#define BINARY_GUARDED(NAME, T, IS_FAST, FAST, SLOW)                                   \
    static void NAME(void *out, const void *const *in, size_t count)                   \
    {                                                                                  \
        for (size_t start = 0; start < count; start += GUARD_BLOCK) {                  \
            const T *first = (const T *)in[0] + start;                                 \
            const T *second = (const T *)in[1] + start;                                \
            T *result = (T *)out + start;                                              \
            size_t length = count - start < GUARD_BLOCK ? count - start : GUARD_BLOCK; \
            int slow = 0;                                                              \
            for (size_t i = 0; i < length; i++)                                        \
                slow |= !IS_FAST(first[i], second[i]);                                 \
            if (slow) {                                                                \
                for (size_t i = 0; i < length; i++) {                                  \
                    T x = first[i], y = second[i];                                     \
                    result[i] = IS_FAST(x, y) ? FAST(x, y) : SLOW(x, y);               \
                }                                                                      \
                continue;                                                              \
            }                                                                          \
            PARALLEL                                                                   \
            for (size_t i = 0; i < length; i++)                                        \
                result[i] = FAST(first[i], second[i]);                                 \
        }                                                                              \
    }

/* The same where PLAIN and WHOLE give the same bits for what IS_PLAIN, and WHOLE holds for the rest, too: a block in which
 * all is plain takes the shorter way. */
#define UNARY_EITHER(NAME, T, IS_PLAIN, PLAIN, WHOLE)                                  \
    static void NAME(void *out, const void *const *in, size_t count)                   \
    {                                                                                  \
        for (size_t start = 0; start < count; start += GUARD_BLOCK) {                  \
            const T *first = (const T *)in[0] + start;                                 \
            T *result = (T *)out + start;                                              \
            size_t length = count - start < GUARD_BLOCK ? count - start : GUARD_BLOCK; \
            int others = 0;                                                            \
            for (size_t i = 0; i < length; i++)                                        \
                others |= !IS_PLAIN(first[i]);                                         \
            if (others) {                                                              \
                PARALLEL                                                               \
                for (size_t i = 0; i < length; i++)                                    \
                    result[i] = WHOLE(first[i]);                                       \
                continue;                                                              \
            }                                                                          \
            PARALLEL                                                                   \
            for (size_t i = 0; i < length; i++)                                        \
                result[i] = PLAIN(first[i]);                                           \
        }                                                                              \
    }

#define BINARY_EITHER(NAME, T, IS_PLAIN, PLAIN, WHOLE)                                 \
    static void NAME(void *out, const void *const *in, size_t count)                   \
    {                                                                                  \
        for (size_t start = 0; start < count; start += GUARD_BLOCK) {                  \
            const T *first = (const T *)in[0] + start;                                 \
            const T *second = (const T *)in[1] + start;                                \
            T *result = (T *)out + start;                                              \
            size_t length = count - start < GUARD_BLOCK ? count - start : GUARD_BLOCK; \
            int others = 0;                                                            \
            for (size_t i = 0; i < length; i++)                                        \
                others |= !IS_PLAIN(first[i], second[i]);                              \
            if (others) {                                                              \
                PARALLEL                                                               \
                for (size_t i = 0; i < length; i++)                                    \
                    result[i] = WHOLE(first[i], second[i]);                            \
                continue;                                                              \
            }                                                                          \
            PARALLEL                                                                   \
            for (size_t i = 0; i < length; i++)                                        \
                result[i] = PLAIN(first[i], second[i]);                                \
        }                                                                              \
    }

/* ---- every type ------------------------------------------------------------------------------ */

#define EQUALITY(S, T)                    \
    BINARY(equal_##S, T, uint8_t, x == y) \
    BINARY(not_equal_##S, T, uint8_t, x != y)

#define ORDER(S, T)                            \
    BINARY(less_##S, T, uint8_t, x < y)        \
    BINARY(less_equal_##S, T, uint8_t, x <= y) \
    BINARY(greater_##S, T, uint8_t, x > y)     \
    BINARY(greater_equal_##S, T, uint8_t, x >= y)

#define LOGIC(S, T)                                           \
    BINARY(logical_and_##S, T, uint8_t, (x != 0) & (y != 0))  \
    BINARY(logical_or_##S, T, uint8_t, (x != 0) | (y != 0))   \
    BINARY(logical_xor_##S, T, uint8_t, (x != 0) != (y != 0)) \
    UNARY(logical_not_##S, T, uint8_t, x == 0)

/* ---- bool ------------------------------------------------------------------------------------ */

FILL(isnan_boolean, 0)
FILL(isinf_boolean, 0)
FILL(isfinite_boolean, 1)
LOGIC(boolean, uint8_t)
BINARY(not_equal_boolean, uint8_t, uint8_t, (x != 0) != (y != 0))
BINARY(equal_boolean, uint8_t, uint8_t, (x != 0) == (y != 0))
BINARY(less_boolean, uint8_t, uint8_t, (x == 0) & (y != 0))
BINARY(less_equal_boolean, uint8_t, uint8_t, (x == 0) | (y != 0))
BINARY(greater_boolean, uint8_t, uint8_t, (x != 0) & (y == 0))
BINARY(greater_equal_boolean, uint8_t, uint8_t, (x != 0) | (y == 0))
WHERE(where_boolean, uint8_t)
TERNARY(clamp_boolean, uint8_t, ((x != 0) | (y != 0)) & (z != 0))

/* A number of one bit: a shift by true pushes it out. */
#define shift_left_boolean greater_boolean
#define shift_right_boolean greater_boolean
#define bitwise_and_boolean logical_and_boolean
#define bitwise_or_boolean logical_or_boolean
#define bitwise_xor_boolean logical_xor_boolean
#define bitwise_not_boolean logical_not_boolean
#define maximum_boolean logical_or_boolean
#define minimum_boolean logical_and_boolean
#define heaviside_boolean logical_or_boolean
#define gcd_boolean logical_or_boolean
#define lcm_boolean logical_and_boolean

/* ---- integers -------------------------------------------------------------------------------- */

#define NEGATIVE_SIGNED(x) ((x) < 0)
#define NEGATIVE_UNSIGNED(x) ((void)(x), 0)
#define SIZE(SIGN, WIDE, x) (NEGATIVE_##SIGN(x) ? (WIDE)0 - (WIDE)(x) : (WIDE)(x)) /* |x| */

/* Division that rounds down; by 0 it gives 0, and the smallest number by -1 wraps. */
#define INTEGER_DIVISION(S, T, WIDE, IS_NEGATIVE, MINUS_1)                                   \
    static inline T floor_divide_one_##S(T x, T y)                                           \
    {                                                                                        \
        if (y == 0)                                                                          \
            return 0;                                                                        \
        if (MINUS_1(y))                                                                      \
            return (T)((WIDE)0 - (WIDE)x);                                                   \
        T quotient = (T)(x / y), rest = (T)(x % y);                                          \
        return (T)(quotient - ((rest != 0) & (IS_NEGATIVE(rest) != IS_NEGATIVE(y))));        \
    }                                                                                        \
    static inline T remainder_one_##S(T x, T y)                                              \
    {                                                                                        \
        if (y == 0 || MINUS_1(y))                                                            \
            return 0;                                                                        \
        T rest = (T)(x % y);                                                                 \
        return (T)(((rest != 0) & (IS_NEGATIVE(rest) != IS_NEGATIVE(y))) ? rest + y : rest); \
    }                                                                                        \
    static inline T fmod_one_##S(T x, T y)                                                   \
    {                                                                                        \
        return (T)(y == 0 || MINUS_1(y) ? 0 : x % y);                                        \
    }                                                                                        \
    /* By differences, which are even, of odd numbers. */                                    \
    static inline WIDE gcd_one_##S(WIDE a, WIDE b)                                           \
    {                                                                                        \
        if (a == 0 || b == 0)                                                                \
            return a | b;                                                                    \
        int shift = __builtin_ctzll(a | b);                                                  \
        a >>= __builtin_ctzll(a);                                                            \
        while (b != 0) {                                                                     \
            b >>= __builtin_ctzll(b);                                                        \
            WIDE least = a < b ? a : b;                                                      \
            b = a < b ? b - a : a - b;                                                       \
            a = least;                                                                       \
        }                                                                                    \
        return a << shift;                                                                   \
    }                                                                                        \
    static inline WIDE lcm_one_##S(WIDE a, WIDE b)                                           \
    {                                                                                        \
        return a == 0 ? 0 : a / gcd_one_##S(a, b) * b;                                       \
    }                                                                                        \
    /* By squaring; 1 / x^-y is 0 but for 1 and -1. */                                       \
    static inline T power_one_##S(T x, T y)                                                  \
    {                                                                                        \
        if (IS_NEGATIVE(y)) {                                                                \
            if (x == 1)                                                                      \
                return 1;                                                                    \
            if (!MINUS_1(x))                                                                 \
                return 0;                                                                    \
            return (T)((y & 1) != 0 ? x : 1);                                                \
        }                                                                                    \
        WIDE result = 1, base = (WIDE)x;                                                     \
        for (WIDE rest = (WIDE)y; rest; rest >>= 1) {                                        \
            if (rest & 1)                                                                    \
                result *= base;                                                              \
            base *= base;                                                                    \
        }                                                                                    \
        return (T)result;                                                                    \
    }

/*
 * Division by one number, as by an operand that is a number: x times its inverse is the quotient, or 1 less or more, which
 * the remainder shows. Where it holds is said by CAN_INVERT of the divisor, and of the elements for int64.
 */
static bool is_one_number(const void *in, size_t size, size_t count)
{
    return count > 1 && memcmp(in, (const char *)in + size, (count - 1) * size) == 0;
}

#define INVERTED(S, T, WIDE, SIGNED, REAL, AS_REAL, AS_INTEGER)                               \
    static inline __attribute__((always_inline)) void inverted_##S(                           \
        T *result, const T *first, T divisor, size_t count, bool is_remainder)                \
    {                                                                                         \
        const REAL inverse = 1 / (REAL)divisor;                                               \
        const SIGNED by = (SIGNED)divisor, sign = by < 0 ? -1 : 0, size = (by ^ sign) - sign; \
        PARALLEL                                                                              \
        for (size_t i = 0; i < count; i++) {                                                  \
            SIGNED x = (SIGNED)first[i], quotient = AS_INTEGER(AS_REAL(x) * inverse);         \
            SIGNED rest = (SIGNED)((WIDE)x - (WIDE)quotient * (WIDE)by);                      \
            SIGNED turned = (rest ^ sign) - sign; /* as if the divisor were positive */       \
            SIGNED below = turned < 0, above = turned >= size;                                \
            result[i] =                                                                       \
                (T)(is_remainder ? rest + (below - above) * by : quotient - below + above);   \
        }                                                                                     \
    }                                                                                         \
    static void floor_divide_by_##S(T *result, const T *first, T divisor, size_t count)       \
    {                                                                                         \
        inverted_##S(result, first, divisor, count, false);                                   \
    }                                                                                         \
    static void remainder_by_##S(T *result, const T *first, T divisor, size_t count)          \
    {                                                                                         \
        inverted_##S(result, first, divisor, count, true);                                    \
    }

#define AS_FLOAT(x) ((float)(x))
#define AS_DOUBLE(x) ((double)(x))
#define FLOOR_FLOAT(x) ((int32_t)floorf(x))
#define FLOOR_DOUBLE(x) ((int32_t)floor(x))
/* Below 2^51, without an instruction that only AVX-512 has; the quotient is rounded to the nearest. */
#define AS_DOUBLE_WIDE(x) (f64_from_bits(f64_bits(F64_ROUNDER) + (uint64_t)(x)) - F64_ROUNDER)
#define NEAREST_WIDE(x) ((int64_t)(f64_bits((x) + F64_ROUNDER) - f64_bits(F64_ROUNDER)))

INVERTED(int8, int8_t, uint32_t, int32_t, float, AS_FLOAT, FLOOR_FLOAT)
INVERTED(int16, int16_t, uint32_t, int32_t, float, AS_FLOAT, FLOOR_FLOAT)
INVERTED(int32, int32_t, uint32_t, int32_t, double, AS_DOUBLE, FLOOR_DOUBLE)
INVERTED(int64, int64_t, uint64_t, int64_t, double, AS_DOUBLE_WIDE, NEAREST_WIDE)
INVERTED(uint16, uint16_t, uint32_t, int32_t, float, AS_FLOAT, FLOOR_FLOAT)
INVERTED(uint32, uint32_t, uint64_t, int64_t, double, AS_DOUBLE_WIDE, NEAREST_WIDE)
INVERTED(uint64, uint64_t, uint64_t, int64_t, double, AS_DOUBLE_WIDE, NEAREST_WIDE)

/*
 * Bytes, in 16 bits: 2^(s + 1) / d lies between 1 and 2 for s = floor(log2(d)), so x / d is (x + x m / 256) / 2^(s + 1) with
 * m / 256 = 2^(s + 1) / d - 1, rounded up. The sum is halved before it is made, so that it needs no ninth bit.
 */
static inline __attribute__((always_inline)) void inverted_uint8(uint8_t *result,
                                                                 const uint8_t *first,
                                                                 uint8_t divisor, size_t count,
                                                                 bool is_remainder)
{
    int shift = 0;
    while (divisor >> shift > 1)
        shift++;
    const uint16_t m = (uint16_t)(256 * ((2 << shift) - divisor) / divisor + 1);
    PARALLEL
    for (size_t i = 0; i < count; i++) {
        uint16_t x = first[i], part = (uint16_t)((uint16_t)(x * m) >> 8);
        uint16_t quotient = (uint16_t)((uint16_t)(((uint16_t)(x - part) >> 1) + part) >> shift);
        result[i] = (uint8_t)(is_remainder ? x - quotient * divisor : quotient);
    }
}

static void floor_divide_by_uint8(uint8_t *result, const uint8_t *first, uint8_t divisor,
                                  size_t count)
{
    inverted_uint8(result, first, divisor, count, false);
}

static void remainder_by_uint8(uint8_t *result, const uint8_t *first, uint8_t divisor, size_t count)
{
    inverted_uint8(result, first, divisor, count, true);
}

#define INVERT_MOST (1 << 30) /* of a divisor: twice of it fits */

static bool can_invert(int64_t divisor)
{
    return divisor > 1 ? divisor < INVERT_MOST : divisor < -1 && divisor > -INVERT_MOST;
}

#define can_invert_int8(first, divisor, count) can_invert(divisor)
#define can_invert_int16(first, divisor, count) can_invert(divisor)
#define can_invert_int32(first, divisor, count) can_invert(divisor)
#define can_invert_uint8(first, divisor, count) can_invert(divisor)
#define can_invert_uint16(first, divisor, count) can_invert(divisor)
#define can_invert_uint32(first, divisor, count) can_invert(divisor)

/* Elements are exact as double, and quotients nearly. */
static bool can_invert_int64(const int64_t *first, int64_t divisor, size_t count)
{
    uint64_t large = 0;
    if (!can_invert(divisor))
        return false;
    for (size_t i = 0; i < count; i++)
        large |= (uint64_t)(first[i] ^ first[i] >> 63);
    return large < UINT64_C(1) << 50;
}

static bool can_invert_uint64(const uint64_t *first, uint64_t divisor, size_t count)
{
    uint64_t large = 0;
    if (divisor >= INVERT_MOST || !can_invert((int64_t)divisor))
        return false;
    for (size_t i = 0; i < count; i++)
        large |= first[i];
    return large < UINT64_C(1) << 50;
}

#define DIVISION(NAME, S, T)                                               \
    static void NAME##_##S(void *out, const void *const *in, size_t count) \
    {                                                                      \
        const T *first = in[0], *second = in[1];                           \
        T *result = out;                                                   \
        if (is_one_number(second, sizeof *second, count) &&                \
            can_invert_##S(first, second[0], count)) {                     \
            NAME##_by_##S(result, first, second[0], count);                \
            return;                                                        \
        }                                                                  \
        for (size_t i = 0; i < count; i++) {                               \
            T x = first[i], y = second[i];                                 \
            result[i] = NAME##_one_##S(x, y);                              \
        }                                                                  \
    }

#define IS_MINUS_1_SIGNED(x) ((x) == -1)
#define IS_MINUS_1_UNSIGNED(x) ((void)(x), 0)

/* What depends on the bits alone: for both integers of a width. */
#define BITS_LOOPS(S, U, T, WIDE, BITS)                                                  \
    EQUALITY(S, T)                                                                       \
    LOGIC(S, T)                                                                          \
    WHERE(where_##S, T)                                                                  \
    BINARY(add_##S, T, T, (WIDE)x + (WIDE)y)                                             \
    BINARY(subtract_##S, T, T, (WIDE)x - (WIDE)y)                                        \
    BINARY(multiply_##S, T, T, (WIDE)x *(WIDE)y)                                         \
    BINARY(bitwise_and_##S, T, T, x &y)                                                  \
    BINARY(bitwise_or_##S, T, T, x | y)                                                  \
    BINARY(bitwise_xor_##S, T, T, x ^ y)                                                 \
    UNARY(bitwise_not_##S, T, T, ~x)                                                     \
    BINARY(shift_left_##S, T, T, (WIDE)y < BITS ? (WIDE)x << ((WIDE)y & (BITS - 1)) : 0) \
    UNARY(negative_##S, T, T, (WIDE)0 - (WIDE)x)                                         \
    UNARY(square_##S, T, T, (WIDE)x *(WIDE)x)                                            \
    SAME_BITS(U, S)

/* A loop by another name. */
#define SAME(name, other) \
    static void name(void *, const void *const *, size_t) __attribute__((alias(#other)));

/* The loops of BITS_LOOPS() for the unsigned integers of the width. */
#define SAME_BITS(U, S)                    \
    SAME(equal_##U, equal_##S)             \
    SAME(not_equal_##U, not_equal_##S)     \
    SAME(logical_and_##U, logical_and_##S) \
    SAME(logical_or_##U, logical_or_##S)   \
    SAME(logical_xor_##U, logical_xor_##S) \
    SAME(logical_not_##U, logical_not_##S) \
    SAME(where_##U, where_##S)             \
    SAME(add_##U, add_##S)                 \
    SAME(subtract_##U, subtract_##S)       \
    SAME(multiply_##U, multiply_##S)       \
    SAME(bitwise_and_##U, bitwise_and_##S) \
    SAME(bitwise_or_##U, bitwise_or_##S)   \
    SAME(bitwise_xor_##U, bitwise_xor_##S) \
    SAME(bitwise_not_##U, bitwise_not_##S) \
    SAME(shift_left_##U, shift_left_##S)   \
    SAME(negative_##U, negative_##S)       \
    SAME(square_##U, square_##S)

BITS_LOOPS(int8, uint8, int8_t, uint32_t, 8)
BITS_LOOPS(int16, uint16, int16_t, uint32_t, 16)
BITS_LOOPS(int32, uint32, int32_t, uint32_t, 32)
BITS_LOOPS(int64, uint64, int64_t, uint64_t, 64)

/* FAR: a shift that leaves the sign only, after the promotion to int. */
#define SHIFT_RIGHT_SIGNED(x, y, BITS, FAR) ((x) >> ((y) < BITS ? (y) : FAR))
#define SHIFT_RIGHT_UNSIGNED(x, y, BITS, FAR) ((y) < BITS ? (x) >> ((y) & (BITS - 1)) : 0)

/* What depends on the sign. */
#define INTEGER_LOOPS(S, T, WIDE, BITS, FAR, SIGN)                               \
    INTEGER_DIVISION(S, T, WIDE, NEGATIVE_##SIGN, IS_MINUS_1_##SIGN)             \
    ORDER(S, T)                                                                  \
    DIVISION(floor_divide, S, T)                                                 \
    DIVISION(remainder, S, T)                                                    \
    BINARY(fmod_##S, T, T, fmod_one_##S(x, y))                                   \
    BINARY(power_##S, T, T, power_one_##S(x, y))                                 \
    BINARY(maximum_##S, T, T, x > y ? x : y)                                     \
    BINARY(minimum_##S, T, T, x < y ? x : y)                                     \
    TERNARY(clamp_##S, T, (x > y ? x : y) < z ? (x > y ? x : y) : z)             \
    BINARY(shift_right_##S, T, T, SHIFT_RIGHT_##SIGN(x, (WIDE)y, BITS, FAR))     \
    BINARY(gcd_##S, T, T, gcd_one_##S(SIZE(SIGN, WIDE, x), SIZE(SIGN, WIDE, y))) \
    BINARY(lcm_##S, T, T, lcm_one_##S(SIZE(SIGN, WIDE, x), SIZE(SIGN, WIDE, y))) \
    UNARY(absolute_##S, T, T, SIZE(SIGN, WIDE, x))                               \
    UNARY(sign_##S, T, T, (x > 0) - NEGATIVE_##SIGN(x))                          \
    BINARY(heaviside_##S, T, T, x == 0 ? y : x > 0)                              \
    UNARY(relu_##S, T, T, NEGATIVE_##SIGN(x) ? 0 : x)                            \
    UNARY(relu6_##S, T, T, NEGATIVE_##SIGN(x) ? 0 : x > 6 ? 6 : x)               \
    SAME(isnan_##S, isnan_boolean)                                               \
    SAME(isinf_##S, isinf_boolean)                                               \
    SAME(isfinite_##S, isfinite_boolean)

INTEGER_LOOPS(uint8, uint8_t, uint32_t, 8, 8, UNSIGNED)
INTEGER_LOOPS(int8, int8_t, uint32_t, 8, 8, SIGNED)
INTEGER_LOOPS(uint16, uint16_t, uint32_t, 16, 16, UNSIGNED)
INTEGER_LOOPS(int16, int16_t, uint32_t, 16, 16, SIGNED)
INTEGER_LOOPS(uint32, uint32_t, uint32_t, 32, 31, UNSIGNED)
INTEGER_LOOPS(int32, int32_t, uint32_t, 32, 31, SIGNED)
INTEGER_LOOPS(uint64, uint64_t, uint64_t, 64, 63, UNSIGNED)
INTEGER_LOOPS(int64, int64_t, uint64_t, 64, 63, SIGNED)

/* ---- floating point -------------------------------------------------------------------------- */

#define FLOAT_LOOPS(S, T, F, FABS, FLOOR, CEIL, RINT, TRUNC, SQRT) \
    EQUALITY(S, T)                                                 \
    ORDER(S, T)                                                    \
    LOGIC(S, T)                                                    \
    WHERE(where_##S, T)                                            \
    BINARY(add_##S, T, T, x + y)                                   \
    BINARY(subtract_##S, T, T, x - y)                              \
    BINARY(multiply_##S, T, T, x *y)                               \
    BINARY(divide_##S, T, T, x / y)                                \
    BINARY(maximum_##S, T, T, F##_maximum(x, y))                   \
    BINARY(minimum_##S, T, T, F##_minimum(x, y))                   \
    TERNARY(clamp_##S, T, F##_minimum(F##_maximum(x, y), z))       \
    TERNARY(lerp_##S, T, F##_lerp(x, y, z))                        \
    UNARY(negative_##S, T, T, -x)                                  \
    UNARY(absolute_##S, T, T, FABS(x))                             \
    UNARY(sign_##S, T, T, x != x ? x : (T)((x > 0) - (x < 0)))     \
    BINARY(heaviside_##S, T, T, x == 0 ? y : (T)(x > 0))           \
    UNARY(square_##S, T, T, x *x)                                  \
    UNARY(reciprocal_##S, T, T, 1 / x)                             \
    UNARY(floor_##S, T, T, FLOOR(x))                               \
    UNARY(ceil_##S, T, T, CEIL(x))                                 \
    UNARY(round_##S, T, T, RINT(x))                                \
    UNARY(trunc_##S, T, T, TRUNC(x))                               \
    UNARY(sqrt_##S, T, T, SQRT(x))                                 \
    UNARY(rsqrt_##S, T, T, 1 / SQRT(x))                            \
    UNARY(exp_##S, T, T, F##_exp(x))                               \
    UNARY(exp2_##S, T, T, F##_exp2(x))                             \
    UNARY(expm1_##S, T, T, F##_expm1(x))                           \
    BINARY(ldexp_##S, T, T, F##_ldexp(x, y))                       \
    BINARY(nextafter_##S, T, T, F##_nextafter(x, y))               \
    UNARY(log1p_##S, T, T, F##_log1p(x))                           \
    BINARY(logaddexp_##S, T, T, F##_logaddexp(x, y))               \
    BINARY(logaddexp2_##S, T, T, F##_logaddexp2(x, y))             \
    BINARY(xlogy_##S, T, T, F##_xlogy(x, y))                       \
    BINARY(logit_##S, T, T, F##_logit(x, y))                       \
    UNARY(sinh_##S, T, T, F##_sinh(x))                             \
    UNARY(cosh_##S, T, T, F##_cosh(x))                             \
    UNARY(tanh_##S, T, T, F##_tanh(x))                             \
    UNARY(sigmoid_##S, T, T, F##_sigmoid(x))                       \
    UNARY(erfinv_##S, T, T, F##_erfinv(x))                         \
    UNARY(lgamma_##S, T, T, F##_lgamma(x))                         \
    UNARY(digamma_##S, T, T, F##_digamma(x))                       \
    BINARY(polygamma_##S, T, T, F##_polygamma(x, y))               \
    UNARY(sinc_##S, T, T, F##_sinc(x))                             \
    UNARY(relu_##S, T, T, ((x > 0) | (x != x)) ? x : 0)            \
    UNARY(relu6_##S, T, T, F##_relu6(x))                           \
    BINARY(leaky_relu_##S, T, T, x > 0 ? x : x * y)                \
    BINARY(elu_##S, T, T, F##_elu(x, y))                           \
    BINARY(celu_##S, T, T, F##_celu(x, y))                         \
    UNARY(selu_##S, T, T, F##_selu(x))                             \
    UNARY(gelu_##S, T, T, F##_gelu(x))                             \
    UNARY(gelu_tanh_##S, T, T, F##_gelu_tanh(x))                   \
    UNARY(silu_##S, T, T, F##_silu(x))                             \
    UNARY(hardswish_##S, T, T, F##_hardswish(x))                   \
    UNARY(mish_##S, T, T, F##_mish(x))                             \
    TERNARY(softplus_##S, T, F##_softplus(x, y, z))                \
    UNARY(log_sigmoid_##S, T, T, F##_log_sigmoid(x))               \
    UNARY(isnan_##S, T, uint8_t, x != x)                           \
    UNARY(isinf_##S, T, uint8_t, FABS(x) == INFINITY)              \
    UNARY(isfinite_##S, T, uint8_t, FABS(x) < INFINITY)

FLOAT_LOOPS(float32, float, f32, fabsf, floorf, ceilf, rintf, truncf, sqrtf)
FLOAT_LOOPS(float64, double, f64, fabs, floor, ceil, rint, trunc, sqrt)

UNARY_EITHER(log_float32, float, f32_log_is_plain, f32_log_plain, f32_log)
UNARY_EITHER(log2_float32, float, f32_log_is_plain, f32_log2_plain, f32_log2)
UNARY_EITHER(log10_float32, float, f32_log_is_plain, f32_log10_plain, f32_log10)
UNARY(erf_float32, float, float, f32_erf(x))
UNARY(erfc_float32, float, float, f32_erfc(x))
UNARY(asin_float32, float, float, f32_asin(x))
UNARY(acos_float32, float, float, f32_acos(x))
UNARY(atan_float32, float, float, f32_atan(x))
UNARY(asinh_float32, float, float, f32_asinh(x))
UNARY(acosh_float32, float, float, f32_acosh(x))
UNARY(atanh_float32, float, float, f32_atanh(x))
BINARY_EITHER(atan2_float32, float, f32_atan2_is_plain, f32_atan2_plain, f32_atan2)
BINARY_EITHER(power_float32, float, f32_power_is_plain, f32_power_plain, f32_power)
BINARY_GUARDED(floor_divide_float32, float, f32_is_divided_fast, f32_floor_divide,
               f32_floor_divide_slow)
BINARY_GUARDED(remainder_float32, float, f32_is_divided_fast, f32_remainder, f32_remainder_slow)
BINARY_GUARDED(fmod_float32, float, f32_is_divided_fast, f32_fmod, fmodf)
BINARY(hypot_float32, float, float, f32_hypot(x, y))

UNARY(log_float64, double, double, f64_log(x))
UNARY(log2_float64, double, double, f64_log2(x))
UNARY(log10_float64, double, double, f64_log10(x))
UNARY(erf_float64, double, double, f64_erf(x))
UNARY(atan_float64, double, double, f64_atan(x))
BINARY_EITHER(atan2_float64, double, f64_atan2_is_plain, f64_atan2_plain, f64_atan2)
BINARY_EITHER(power_float64, double, f64_power_is_plain, f64_power_plain, f64_power)
BINARY_GUARDED(floor_divide_float64, double, f64_is_divided_fast, f64_floor_divide,
               f64_floor_divide_slow)
BINARY_GUARDED(remainder_float64, double, f64_is_divided_fast, f64_remainder, f64_remainder_slow)
BINARY_GUARDED(fmod_float64, double, f64_is_divided_fast, f64_fmod, fmod)

/* The C library's: exact, but a call for each element. */
UNARY(asin_float64, double, double, asin(x))
UNARY(acos_float64, double, double, acos(x))
UNARY(asinh_float64, double, double, asinh(x))
UNARY(acosh_float64, double, double, acosh(x))
UNARY(atanh_float64, double, double, atanh(x))
UNARY(erfc_float64, double, double, erfc(x))
BINARY(hypot_float64, double, double, hypot(x, y))

#define IS_CIRCULAR_FAST_FLOAT(x) (fabsf(x) <= (float)CIRCULAR_MAX)
#define IS_CIRCULAR_FAST(x) (fabs(x) <= CIRCULAR_MAX)
#define IS_TAN_FAST_FLOAT(x) (fabsf(x) <= TAN_MAX)
#define SIN_SLOW(x) ((float)sin((double)(x)))
#define COS_SLOW(x) ((float)cos((double)(x)))
#define TAN_SLOW(x) ((float)tan((double)(x)))

UNARY_GUARDED(sin_float32, float, IS_CIRCULAR_FAST_FLOAT, f32_sin, SIN_SLOW)
UNARY_GUARDED(cos_float32, float, IS_CIRCULAR_FAST_FLOAT, f32_cos, COS_SLOW)
UNARY_GUARDED(tan_float32, float, IS_TAN_FAST_FLOAT, f32_tan, TAN_SLOW)
UNARY_GUARDED(sin_float64, double, IS_CIRCULAR_FAST, f64_sin, sin)
UNARY_GUARDED(cos_float64, double, IS_CIRCULAR_FAST, f64_cos, cos)
UNARY_GUARDED(tan_float64, double, IS_CIRCULAR_FAST, f64_tan, tan)

WHERE(where_float16, uint16_t)
#define where_bfloat16 where_float16

/* ---- conversions ----------------------------------------------------------------------------- */

/* How an element of each type is kept, read as a number, and made from one. Small integers are made by way of
 * int32, and uint32 by way of int64, so that a floating value out of range wraps as an integer would; halves of what
 * float32 does not hold by way of a float32 that was rounded to odd, so that they are rounded once. */
#define C_boolean uint8_t
#define C_uint8 uint8_t
#define C_uint16 uint16_t
#define C_uint32 uint32_t
#define C_uint64 uint64_t
#define C_int8 int8_t
#define C_int16 int16_t
#define C_int32 int32_t
#define C_int64 int64_t
#define C_float16 uint16_t
#define C_bfloat16 uint16_t
#define C_float32 float
#define C_float64 double

#define READ_boolean(x) (uint8_t)((x) != 0)
#define READ_uint8(x) (x)
#define READ_uint16(x) (x)
#define READ_uint32(x) (x)
#define READ_uint64(x) (x)
#define READ_int8(x) (x)
#define READ_int16(x) (x)
#define READ_int32(x) (x)
#define READ_int64(x) (x)
#define READ_float16(x) f16_to(x)
#define READ_bfloat16(x) bf16_to(x)
#define READ_float32(x) (x)
#define READ_float64(x) (x)

#define MAKE_boolean(v) ((v) != 0)
#define MAKE_uint8(v) (int32_t)(v)
#define MAKE_uint16(v) (int32_t)(v)
#define MAKE_uint32(v) (int64_t)(v)
#define MAKE_uint64(v) unsigned_of((double)(v))
#define MAKE_int8(v) (int32_t)(v)
#define MAKE_int16(v) (int32_t)(v)
#define MAKE_int32(v) (int32_t)(v)
#define MAKE_int64(v) (int64_t)(v)
#define MAKE_float16(v) f16_from(TO_ODD(v))
#define MAKE_bfloat16(v) bf16_from(TO_ODD(v))
#define MAKE_float32(v) (float)(v)
#define MAKE_float64(v) (double)(v)

#define TO_ODD(v)                                                   \
    _Generic((v), double                                            \
             : gni_float_to_odd((double)(v)), int32_t               \
             : gni_float_to_odd((double)(v)), uint32_t              \
             : gni_float_to_odd((double)(v)), int64_t               \
             : gni_float_of_integer_to_odd((int64_t)(v)), uint64_t  \
             : gni_float_of_unsigned_to_odd((uint64_t)(v)), default \
             : (float)(v))

/* Of a floating value: from 2^63 on int64 ends. The same on every instruction set, whatever does not fit. */
static inline uint64_t unsigned_of(double value)
{
    const double half = 0x1p63;
    bool is_large = value >= half;
    uint64_t bits = (uint64_t)(int64_t)(is_large ? value - half : value);
    return bits ^ (is_large ? UINT64_C(1) << 63 : 0);
}

#define CONVERT(FROM, TO) UNARY(FROM##_to_##TO, C_##FROM, C_##TO, MAKE_##TO(READ_##FROM(x)))

/* Integers of one width are made from integers alike, so of them there are conversions to the signed ones only; and what
 * is no wider is made alike from both integers of a width (gni_loop_convert()). */
#define CONVERT_TO_SIGNED(FROM) \
    CONVERT(FROM, boolean)      \
    CONVERT(FROM, int8)         \
    CONVERT(FROM, int16)        \
    CONVERT(FROM, int32)        \
    CONVERT(FROM, int64)

#define CONVERT_TO_FLOATS(FROM) \
    CONVERT(FROM, float16)      \
    CONVERT(FROM, bfloat16)     \
    CONVERT(FROM, float32)      \
    CONVERT(FROM, float64)

/* From a floating type: by way of what holds its numbers. */
#define CONVERT_TO_INTEGERS(FROM) \
    CONVERT_TO_SIGNED(FROM)       \
    CONVERT(FROM, uint8)          \
    CONVERT(FROM, uint16)         \
    CONVERT(FROM, uint32)         \
    CONVERT(FROM, uint64)

#define CONVERT_SIGNED(FROM) \
    CONVERT_TO_SIGNED(FROM)  \
    CONVERT_TO_FLOATS(FROM)

CONVERT_SIGNED(boolean)
CONVERT_SIGNED(int8)
CONVERT_SIGNED(int16)
CONVERT_SIGNED(int32)
CONVERT_SIGNED(int64)
CONVERT(uint8, int16)
CONVERT(uint8, int32)
CONVERT(uint8, int64)
CONVERT_TO_FLOATS(uint8)
CONVERT(uint16, int32)
CONVERT(uint16, int64)
CONVERT_TO_FLOATS(uint16)
CONVERT(uint32, int64)
CONVERT_TO_FLOATS(uint32)
CONVERT_TO_FLOATS(uint64)
CONVERT_TO_INTEGERS(float64)
CONVERT_TO_FLOATS(float64)

/* Halves to themselves are copies, which keep every bit. */
UNARY(float16_to_float16, uint16_t, uint16_t, x)
#define bfloat16_to_bfloat16 float16_to_float16
CONVERT_TO_INTEGERS(float16)
CONVERT(float16, bfloat16)
CONVERT(float16, float64)
CONVERT_TO_INTEGERS(bfloat16)
CONVERT(bfloat16, float16)
CONVERT(bfloat16, float32)
CONVERT(bfloat16, float64)
CONVERT_TO_INTEGERS(float32)
CONVERT(float32, bfloat16)
CONVERT(float32, float32)
CONVERT(float32, float64)

#ifdef __F16C__

/* The instructions round and treat NaN as the functions in functions.h do. */
static void float32_to_float16(void *out, const void *const *in, size_t count)
{
    const float *first = in[0];
    uint16_t *result = out;
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(result + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(first + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < count; i++)
        result[i] = f16_from(first[i]);
}

static void float16_to_float32(void *out, const void *const *in, size_t count)
{
    const uint16_t *first = in[0];
    float *result = out;
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(result + i, _mm256_cvtph_ps(_mm_loadu_si128(
                                         (const __m128i *)(const void *)(first + i))));
    for (; i < count; i++)
        result[i] = f16_to(first[i]);
}

static void round_float16(void *out, const void *const *in, size_t count)
{
    const float *first = in[0];
    float *result = out;
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(first + i), _MM_FROUND_TO_NEAREST_INT);
        _mm256_storeu_ps(result + i, _mm256_cvtph_ps(half));
    }
    for (; i < count; i++)
        result[i] = f16_to(f16_from(first[i]));
}

#else

CONVERT(float32, float16)
CONVERT(float16, float32)
UNARY(round_float16, float, float, f16_to(f16_from(x)))

#endif

UNARY(round_bfloat16, float, float, bf16_to(bf16_from(x)))

/* ---- gathers --------------------------------------------------------------------------------- */

/* With a distance that the compiler knows: vectors are loaded, and their elements picked. */
#define GATHER_BY(STEP)                         \
    PARALLEL                                    \
    for (size_t i = 0; i < count; i++)          \
        result[i] = first[(int64_t)i * (STEP)]; \
    break

/* Several elements at a time, which wait for each other less than one after the other would. */
#define GATHER(T)                                                                          \
    static void gather_##T(void *to, const void *from, int64_t step, size_t count)         \
    {                                                                                      \
        const T *first = from;                                                             \
        T *result = to;                                                                    \
        size_t done = 0;                                                                   \
        switch (step) {                                                                    \
        case 0:                                                                            \
            GATHER_BY(0);                                                                  \
        case 1:                                                                            \
            memcpy(result, first, count * sizeof *first);                                  \
            break;                                                                         \
        case 2:                                                                            \
            GATHER_BY(2);                                                                  \
        case -1:                                                                           \
            GATHER_BY(-1);                                                                 \
        default:                                                                           \
            for (; done + 4 <= count; done += 4, first += 4 * step, result += 4) {         \
                T a = first[0], b = first[step], c = first[2 * step], d = first[3 * step]; \
                result[0] = a;                                                             \
                result[1] = b;                                                             \
                result[2] = c;                                                             \
                result[3] = d;                                                             \
            }                                                                              \
            for (; done < count; done++, first += step)                                    \
                *result++ = *first;                                                        \
        }                                                                                  \
    }

GATHER(uint8_t)
GATHER(uint16_t)
GATHER(uint32_t)
GATHER(uint64_t)

/* ---- reductions ----------------------------------------------------------------------------------- */

/*
 * Every reduction has two other forms: for short rows, and for columns. Each short row is taken in its order; SEVERAL are
 * computed side by side, so that one row need not wait for the one before. WIDE is AS_LOOP where the steps choose: the
 * compiler makes vectors of a loop over the rows, and branches of the same steps one after the other.
 */
#define AS_STEPS
#define AS_LOOP _Pragma("GCC unroll 1") PARALLEL
#define REDUCE_FORMS(NAME, S, T, ACCUMULATOR, LOAD, STEP, SEVERAL, WIDE)              \
    static void short_##NAME##_##S(void *accumulators, const void *in, size_t rows,   \
                                   size_t columns)                                    \
    {                                                                                 \
        const T *next = in;                                                           \
        ACCUMULATOR *totals = accumulators;                                           \
        size_t row = 0;                                                               \
        for (; row + (SEVERAL) <= rows; row += (SEVERAL)) {                           \
            ACCUMULATOR sums[SEVERAL];                                                \
            memcpy(sums, totals + row, sizeof sums);                                  \
            for (size_t i = 0; i < columns; i++) {                                    \
                WIDE for (size_t k = 0; k < (SEVERAL); k++)                           \
                {                                                                     \
                    const T *first = next + k * columns;                              \
                    ACCUMULATOR a = sums[k];                                          \
                    LOAD;                                                             \
                    sums[k] = (ACCUMULATOR)(STEP);                                    \
                }                                                                     \
            }                                                                         \
            memcpy(totals + row, sums, sizeof sums);                                  \
            next += (SEVERAL)*columns;                                                \
        }                                                                             \
        for (; row < rows; row++, next += columns) {                                  \
            const T *first = next;                                                    \
            ACCUMULATOR a = totals[row];                                              \
            for (size_t i = 0; i < columns; i++) {                                    \
                LOAD;                                                                 \
                a = (ACCUMULATOR)(STEP);                                              \
            }                                                                         \
            totals[row] = a;                                                          \
        }                                                                             \
    }                                                                                 \
    static void column_##NAME##_##S(void *accumulators, const void *in, size_t count) \
    {                                                                                 \
        const T *first = in;                                                          \
        ACCUMULATOR *totals = accumulators;                                           \
        PARALLEL                                                                      \
        for (size_t i = 0; i < count; i++) {                                          \
            ACCUMULATOR a = totals[i];                                                \
            LOAD;                                                                     \
            totals[i] = (ACCUMULATOR)(STEP);                                          \
        }                                                                             \
    }

/* The order of integers does not matter. */
#define REDUCE_INTEGER(NAME, S, T, ACCUMULATOR, START, STEP, JOIN, SEVERAL)          \
    static void reduce_##NAME##_##S(void *accumulator, const void *in, size_t count) \
    {                                                                                \
        const T *first = in;                                                         \
        ACCUMULATOR *total = accumulator, a = START;                                 \
        for (size_t i = 0; i < count; i++) {                                         \
            T x = first[i];                                                          \
            a = (ACCUMULATOR)(STEP);                                                 \
        }                                                                            \
        ACCUMULATOR x = *total;                                                      \
        *total = (ACCUMULATOR)(JOIN);                                                \
    }                                                                                \
    REDUCE_FORMS(NAME, S, T, ACCUMULATOR, T x = first[i], STEP, SEVERAL, AS_STEPS)

/* any and all: what the elements come to is kept in a type of their size, so that a vector has as many. */
#define REDUCE_TRUTH(S, T, KEPT, ANY_START, ANY, ALL_START, ALL)                \
    static void reduce_any_##S(void *accumulator, const void *in, size_t count) \
    {                                                                           \
        const T *first = in;                                                    \
        KEPT a = ANY_START;                                                     \
        for (size_t i = 0; i < count; i++) {                                    \
            T x = first[i];                                                     \
            a = (KEPT)(ANY);                                                    \
        }                                                                       \
        *(uint8_t *)accumulator |= a != 0;                                      \
    }                                                                           \
    static void reduce_all_##S(void *accumulator, const void *in, size_t count) \
    {                                                                           \
        const T *first = in;                                                    \
        KEPT a = ALL_START;                                                     \
        for (size_t i = 0; i < count; i++) {                                    \
            T x = first[i];                                                     \
            a = (KEPT)(ALL);                                                    \
        }                                                                       \
        *(uint8_t *)accumulator &= a != 0;                                      \
    }                                                                           \
    REDUCE_FORMS(any, S, T, uint8_t, T x = first[i], a | (x != 0), 8, AS_STEPS) \
    REDUCE_FORMS(all, S, T, uint8_t, T x = first[i], a & (x != 0), 8, AS_STEPS)

/* Sums and products wrap as uint64; int64 and uint64 may alias. */
#define REDUCE_SUMS(S, T)                                                      \
    REDUCE_INTEGER(sum, S, T, uint64_t, 0, a + (uint64_t)(int64_t)x, a + x, 8) \
    REDUCE_INTEGER(product, S, T, uint64_t, 1, a *(uint64_t)(int64_t)x, a *x, 8)

#define REDUCE_ORDER(S, T, LEAST, LARGEST)                                   \
    REDUCE_INTEGER(maximum, S, T, T, LEAST, x > a ? x : a, x > a ? x : a, 1) \
    REDUCE_INTEGER(minimum, S, T, T, LARGEST, x < a ? x : a, x < a ? x : a, 1)

#define REDUCE_INTEGERS(S, T, LEAST, LARGEST) \
    REDUCE_SUMS(S, T)                         \
    REDUCE_ORDER(S, T, LEAST, LARGEST)        \
    REDUCE_TRUTH(S, T, T, 0, a | x, (T)~0, a & (T) - (x != 0))

REDUCE_INTEGERS(int8, int8_t, INT8_MIN, INT8_MAX)
REDUCE_INTEGERS(int16, int16_t, INT16_MIN, INT16_MAX)
REDUCE_INTEGERS(int32, int32_t, INT32_MIN, INT32_MAX)
REDUCE_INTEGERS(int64, int64_t, INT64_MIN, INT64_MAX)
REDUCE_SUMS(uint8, uint8_t)
REDUCE_SUMS(uint16, uint16_t)
REDUCE_SUMS(uint32, uint32_t)
REDUCE_ORDER(uint8, uint8_t, 0, UINT8_MAX)
REDUCE_ORDER(uint16, uint16_t, 0, UINT16_MAX)
REDUCE_ORDER(uint32, uint32_t, 0, UINT32_MAX)
REDUCE_ORDER(uint64, uint64_t, 0, UINT64_MAX)

/* Bytes are counted in bytes as long as these have room. */
static void reduce_sum_boolean(void *accumulator, const void *in, size_t count)
{
    enum {
        WIDTH = 128,
        TURNS = 255,
    };
    const uint8_t *first = in;
    uint64_t *total = accumulator;
    size_t i = 0;
    while (count - i >= WIDTH) {
        uint8_t counts[WIDTH] = {0};
        for (int turn = 0; turn < TURNS && count - i >= WIDTH; turn++, i += WIDTH)
            for (size_t j = 0; j < WIDTH; j++)
                counts[j] = (uint8_t)(counts[j] + (first[i + j] != 0));
        uint32_t sum = 0;
        for (size_t j = 0; j < WIDTH; j++)
            sum += counts[j];
        *total += sum;
    }
    for (; i < count; i++)
        *total += first[i] != 0;
}

REDUCE_FORMS(sum, boolean, uint8_t, uint64_t, uint8_t x = first[i], a + (x != 0), 8, AS_STEPS)
REDUCE_INTEGER(product, boolean, uint8_t, uint64_t, 1, a &(x != 0), a *x, 8)
REDUCE_TRUTH(float32, float, uint32_t, 0, a | (x != 0), 1, a &(x != 0))
REDUCE_TRUTH(float64, double, uint64_t, 0, a | (x != 0), 1, a &(x != 0))

enum {
    LANES = 32,
    RUN_MAX = 4096, /* elements; longer runs are halved, so that errors grow with the logarithm */
};

#define REDUCE_RUN(NAME, S, T, ACCUMULATOR, START, LOAD, STEP)                  \
    static ACCUMULATOR reduce_##NAME##_##S##_run(const T *in, size_t count)     \
    {                                                                           \
        if (count > RUN_MAX) {                                                  \
            size_t half = count / (2 * LANES) * LANES;                          \
            ACCUMULATOR a = reduce_##NAME##_##S##_run(in, half);                \
            ACCUMULATOR x = reduce_##NAME##_##S##_run(in + half, count - half); \
            return STEP;                                                        \
        }                                                                       \
        ACCUMULATOR lanes[LANES];                                               \
        for (size_t j = 0; j < LANES; j++)                                      \
            lanes[j] = START;                                                   \
        size_t i = 0;                                                           \
        for (; i + LANES <= count; i += LANES) {                                \
            for (size_t j = 0; j < LANES; j++) {                                \
                ACCUMULATOR a = lanes[j], x = LOAD((ACCUMULATOR)in[i + j]);     \
                lanes[j] = STEP;                                                \
            }                                                                   \
        }                                                                       \
        for (size_t j = 0; i + j < count; j++) {                                \
            ACCUMULATOR a = lanes[j], x = LOAD((ACCUMULATOR)in[i + j]);         \
            lanes[j] = STEP;                                                    \
        }                                                                       \
        for (size_t width = LANES / 2; width; width /= 2) {                     \
            for (size_t j = 0; j < width; j++) {                                \
                ACCUMULATOR a = lanes[j], x = lanes[j + width];                 \
                lanes[j] = STEP;                                                \
            }                                                                   \
        }                                                                       \
        return lanes[0];                                                        \
    }

#define REDUCE_WHOLE(NAME, S, T, ACCUMULATOR, LOAD, STEP)                                       \
    static void reduce_##NAME##_##S(void *accumulator, const void *in, size_t count)            \
    {                                                                                           \
        ACCUMULATOR *total = accumulator, a = *total, x = reduce_##NAME##_##S##_run(in, count); \
        *total = STEP;                                                                          \
    }                                                                                           \
    REDUCE_FORMS(NAME, S, T, ACCUMULATOR, ACCUMULATOR x = LOAD((ACCUMULATOR)first[i]), STEP, 8, \
                 AS_STEPS)

#define REDUCE_FLOAT(NAME, S, T, ACCUMULATOR, START, LOAD, STEP) \
    REDUCE_RUN(NAME, S, T, ACCUMULATOR, START, LOAD, STEP)       \
    REDUCE_WHOLE(NAME, S, T, ACCUMULATOR, LOAD, STEP)

#define AS_IT_IS(x) (x)
#define SQUARED(x) ((x) * (x))

/* -0 is what changes no number. */
REDUCE_RUN(sum_exact, float32, float, double, -0.0, AS_IT_IS, a + x)

/* A quarter of the lanes. */
typedef float quarter32 __attribute__((vector_size(LANES / 4 * sizeof(float))));
typedef double quarter64 __attribute__((vector_size(LANES / 4 * sizeof(double))));

/* The same anywhere in memory. */
typedef float quarter32_at
    __attribute__((vector_size(LANES / 4 * sizeof(float)), aligned(4), may_alias));

/* Up to BLOCK numbers of a lane are added as float32, and what they come to as float64: much faster than adding all as
 * float64. Where that becomes too large for float32 on the way, all is added again. AT(k): the numbers of a quarter from
 * element k on; ONE(k): a number. */
#define SUM_RUN(NAME, PARAMETERS, REST, AGAIN, AT, ONE)                                         \
    static double NAME(PARAMETERS, size_t count)                                                \
    {                                                                                           \
        enum {                                                                                  \
            BLOCK = 8,                                                                          \
            Q = LANES / 4,                                                                      \
        };                                                                                      \
        if (count > RUN_MAX) {                                                                  \
            size_t half = count / (2 * LANES) * LANES;                                          \
            return NAME(REST(0), half) + NAME(REST(half), count - half);                        \
        }                                                                                       \
        quarter64 a = -(quarter64){0}, b = a, c = a, d = a;                                     \
        size_t i = 0;                                                                           \
        while (count - i >= LANES) {                                                            \
            size_t rest = (count - i) / LANES, end = i + (rest < BLOCK ? rest : BLOCK) * LANES; \
            quarter32 e = AT(i), f = AT(i + Q), g = AT(i + 2 * Q), h = AT(i + 3 * Q);           \
            for (i += LANES; i < end; i += LANES) {                                             \
                e += AT(i);                                                                     \
                f += AT(i + Q);                                                                 \
                g += AT(i + 2 * Q);                                                             \
                h += AT(i + 3 * Q);                                                             \
            }                                                                                   \
            a += __builtin_convertvector(e, quarter64);                                         \
            b += __builtin_convertvector(f, quarter64);                                         \
            c += __builtin_convertvector(g, quarter64);                                         \
            d += __builtin_convertvector(h, quarter64);                                         \
        }                                                                                       \
        double lanes[Q];                                                                        \
        a = (a + c) + (b + d);                                                                  \
        memcpy(lanes, &a, sizeof lanes);                                                        \
        for (size_t j = 0; i < count; i++, j++)                                                 \
            lanes[j % Q] += (double)ONE(i);                                                     \
        for (size_t width = Q / 2; width; width /= 2)                                           \
            for (size_t j = 0; j < width; j++)                                                  \
                lanes[j] += lanes[j + width];                                                   \
        return isfinite(lanes[0]) ? lanes[0] : AGAIN;                                           \
    }

#define QUARTER_AT(from) (*(const quarter32_at *)(from))
#define ONE_FROM(k) in + (k)
#define ONE_QUARTER(k) QUARTER_AT(in + (k))
#define ONE_NUMBER(k) in[k]
SUM_RUN(reduce_sum_float32_run, const float *in, ONE_FROM, reduce_sum_exact_float32_run(in, count),
        ONE_QUARTER, ONE_NUMBER)

/* In the order of reduce_sum_exact_float32_run(). */
static double products_exact(const float *x, const float *y, size_t count)
{
    float products[RUN_MAX];
    for (size_t i = 0; i < count; i++)
        products[i] = x[i] * y[i];
    return reduce_sum_exact_float32_run(products, count);
}

#define TWO_PARAMETERS const float *x, const float *y
#define TWO_FROM(k) x + (k), y + (k)
#define TWO_QUARTER(k) (QUARTER_AT(x + (k)) * QUARTER_AT(y + (k)))
#define TWO_NUMBER(k) (x[k] * y[k])
SUM_RUN(reduce_products_run, TWO_PARAMETERS, TWO_FROM, products_exact(x, y, count), TWO_QUARTER,
        TWO_NUMBER)

static void reduce_products(double *accumulator, const float *x, const float *y, size_t count)
{
    *accumulator += reduce_products_run(x, y, count);
}

REDUCE_WHOLE(sum, float32, float, double, AS_IT_IS, a + x)
REDUCE_FLOAT(sum, float64, double, double, -0.0, AS_IT_IS, a + x)
REDUCE_FLOAT(squares, float32, float, double, -0.0, SQUARED, a + x)
REDUCE_FLOAT(squares, float64, double, double, -0.0, SQUARED, a + x)
REDUCE_FLOAT(product, float32, float, double, 1.0, AS_IT_IS, a *x)
REDUCE_FLOAT(product, float64, double, double, 1.0, AS_IT_IS, a *x)
/*
 * The bits of floating numbers as signed integers in the same order: -0 is before 0, NaN with a sign before -infinity,
 * NaN without one behind infinity. The way back is the same.
 */
#define ORDER_OF(bits, KEY, MOST) ((KEY)(bits) ^ (((KEY)(bits) >> (sizeof(KEY) * 8 - 1)) & (MOST)))

#define REDUCE_EXTREMES(S, T, F, KEY, UNSIGNED, MOST)                                   \
    static void reduce_extremes_##S(const T *in, size_t count, T *smallest, T *largest) \
    {                                                                                   \
        KEY least = ORDER_OF(F##_bits(INFINITY), KEY, MOST);                            \
        KEY most = ORDER_OF(F##_bits(-INFINITY), KEY, MOST);                            \
        for (size_t i = 0; i < count; i++) {                                            \
            KEY key = ORDER_OF(F##_bits(in[i]), KEY, MOST);                             \
            least = key < least ? key : least;                                          \
            most = key > most ? key : most;                                             \
        }                                                                               \
        *smallest = F##_from_bits((UNSIGNED)ORDER_OF(least, KEY, MOST));                \
        *largest = F##_from_bits((UNSIGNED)ORDER_OF(most, KEY, MOST));                  \
    }                                                                                   \
    /* A NaN is the smallest or the largest of these. */                                \
    static void reduce_maximum_##S(void *accumulator, const void *in, size_t count)     \
    {                                                                                   \
        T smallest, largest, *total = accumulator;                                      \
        reduce_extremes_##S(in, count, &smallest, &largest);                            \
        *total = F##_maximum(*total, smallest != smallest ? smallest : largest);        \
    }                                                                                   \
    static void reduce_minimum_##S(void *accumulator, const void *in, size_t count)     \
    {                                                                                   \
        T smallest, largest, *total = accumulator;                                      \
        reduce_extremes_##S(in, count, &smallest, &largest);                            \
        *total = F##_minimum(*total, largest != largest ? largest : smallest);          \
    }                                                                                   \
    REDUCE_FORMS(maximum, S, T, T, T x = first[i], F##_maximum(a, x), 8, AS_LOOP)       \
    REDUCE_FORMS(minimum, S, T, T, T x = first[i], F##_minimum(a, x), 8, AS_LOOP)

REDUCE_EXTREMES(float32, float, f32, int32_t, uint32_t, INT32_MAX)
REDUCE_EXTREMES(float64, double, f64, int64_t, uint64_t, INT64_MAX)

static void reduce_rows_float32(double *sums, const float *const *rows, size_t count)
{
    const float *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
    const float *e = rows[4], *f = rows[5], *g = rows[6], *h = rows[7];
    PARALLEL
    for (size_t i = 0; i < count; i++)
        sums[i] += (double)(((a[i] + b[i]) + (c[i] + d[i])) + ((e[i] + f[i]) + (g[i] + h[i])));
}

/* ---- one operand is one for each row ----------------------------------------------------------- */

#define ROW_LOOP(NAME, T, OPERANDS, EXPRESSION)                                                 \
    static void NAME(void *out, const void *full, const void *row, size_t rows, size_t columns) \
    {                                                                                           \
        const T *first = full, *numbers = row;                                                  \
        T *result = out;                                                                        \
        for (size_t r = 0; r < rows; r++, first += columns, result += columns) {                \
            const T number = numbers[r];                                                        \
            PARALLEL                                                                            \
            for (size_t i = 0; i < columns; i++) {                                              \
                T OPERANDS;                                                                     \
                result[i] = EXPRESSION;                                                         \
            }                                                                                   \
        }                                                                                       \
    }
#define ROW_IS_FIRST x = number, y = first[i]
#define ROW_IS_SECOND x = first[i], y = number
#define ROW_LOOPS_OF(S, T, name, EXPRESSION)                \
    ROW_LOOP(row_##name##_##S, T, ROW_IS_FIRST, EXPRESSION) \
    ROW_LOOP(name##_row_##S, T, ROW_IS_SECOND, EXPRESSION)
#define ROW_LOOPS(S, T)                 \
    ROW_LOOPS_OF(S, T, add, x + y)      \
    ROW_LOOPS_OF(S, T, subtract, x - y) \
    ROW_LOOPS_OF(S, T, multiply, x *y)  \
    ROW_LOOPS_OF(S, T, divide, x / y)
ROW_LOOPS(float32, float)
ROW_LOOPS(float64, double)

#include "ops/cpu/chains_body.h"

/* ---- the table ------------------------------------------------------------------------------- */

#define INTEGERS(name)                                                                 \
    [GN_UINT8] = name##_uint8, [GN_INT8] = name##_int8, [GN_UINT16] = name##_uint16,   \
    [GN_INT16] = name##_int16, [GN_UINT32] = name##_uint32, [GN_INT32] = name##_int32, \
    [GN_UINT64] = name##_uint64, [GN_INT64] = name##_int64
#define FLOATS(name) [GN_FLOAT32] = name##_float32, [GN_FLOAT64] = name##_float64
#define NUMBERS(name) INTEGERS(name), FLOATS(name)
#define ALL(name) [GN_BOOL] = name##_boolean, NUMBERS(name)
#define HALVES(name) [GN_FLOAT16] = name##_float16, [GN_BFLOAT16] = name##_bfloat16

/* Conversions: those that gni_loop_convert() asks for. */
#define TO_SIGNED(name)                                                                      \
    [GN_BOOL] = name##_to_boolean, [GN_INT8] = name##_to_int8, [GN_INT16] = name##_to_int16, \
    [GN_INT32] = name##_to_int32, [GN_INT64] = name##_to_int64
#define TO_FLOATS(name) FLOATS(name##_to), HALVES(name##_to)
#define FROM_SIGNED(name)                \
    {                                    \
        TO_SIGNED(name), TO_FLOATS(name) \
    }
#define FROM_FLOATS(name)                                                   \
    {                                                                       \
        [GN_BOOL] = name##_to_boolean, INTEGERS(name##_to), TO_FLOATS(name) \
    }

#define REDUCERS(name)                                                             \
    {                                                                              \
        .one = reduce_##name, .short_rows = short_##name, .columns = column_##name \
    }
#define REDUCERS_OF_FLOATS(name) \
    [GN_FLOAT32] = REDUCERS(name##_float32), [GN_FLOAT64] = REDUCERS(name##_float64)
#define REDUCERS_OF_SIGNED(name)                                            \
    [GN_INT8] = REDUCERS(name##_int8), [GN_INT16] = REDUCERS(name##_int16), \
    [GN_INT32] = REDUCERS(name##_int32), [GN_INT64] = REDUCERS(name##_int64)
#define REDUCERS_OF_UNSIGNED(name)                                              \
    [GN_UINT8] = REDUCERS(name##_uint8), [GN_UINT16] = REDUCERS(name##_uint16), \
    [GN_UINT32] = REDUCERS(name##_uint32)
#define SUM_REDUCERS(name)                                          \
    [GN_BOOL] = REDUCERS(name##_boolean), REDUCERS_OF_SIGNED(name), \
    REDUCERS_OF_UNSIGNED(name), [GN_UINT64] = REDUCERS(name##_int64), REDUCERS_OF_FLOATS(name)
#define ORDER_REDUCERS(name, OF_BOOL)                        \
    [GN_BOOL] = REDUCERS(OF_BOOL), REDUCERS_OF_SIGNED(name), \
    REDUCERS_OF_UNSIGNED(name), [GN_UINT64] = REDUCERS(name##_uint64), REDUCERS_OF_FLOATS(name)
#define TRUTH_REDUCERS(name)                                                    \
    [GN_BOOL] = REDUCERS(name##_int8), REDUCERS_OF_SIGNED(name),                \
    [GN_UINT8] = REDUCERS(name##_int8), [GN_UINT16] = REDUCERS(name##_int16),   \
    [GN_UINT32] = REDUCERS(name##_int32), [GN_UINT64] = REDUCERS(name##_int64), \
    REDUCERS_OF_FLOATS(name)

/* The loops of a row of GN_OP_LIST by its domain: name_ and a type for each type of the domain. A row whose loop is
 * missing does not compile. */
#define LOOPS_NUMBER NUMBERS
#define LOOPS_ANY ALL
#define LOOPS_FLOAT FLOATS
#define LOOPS_TEST ALL
#define LOOPS_INTEGER(name) [GN_BOOL] = name##_boolean, INTEGERS(name)
#define LOOPS_LOGIC ALL
#define LOOPS_SELECT(name) ALL(name), HALVES(name)

const struct gni_loops_set GNI_LOOPS_SET = {
    .name = GNI_LOOPS_NAME,
    .ops =
        {
#define ROW(NAME, name, arity, domain, ...) [GNI_OP_##NAME] = {LOOPS_##domain(name)},
            GNI_OP_LIST(ROW)
#undef ROW
        },
    .converts =
        {
            [GN_BOOL] = FROM_SIGNED(boolean),
            [GN_INT8] = FROM_SIGNED(int8),
            [GN_INT16] = FROM_SIGNED(int16),
            [GN_INT32] = FROM_SIGNED(int32),
            [GN_INT64] = FROM_SIGNED(int64),
            [GN_UINT8] = {[GN_INT16] = uint8_to_int16,
                          [GN_INT32] = uint8_to_int32,
                          [GN_INT64] = uint8_to_int64,
                          TO_FLOATS(uint8)},
            [GN_UINT16] =
                {[GN_INT32] = uint16_to_int32, [GN_INT64] = uint16_to_int64, TO_FLOATS(uint16)},
            [GN_UINT32] = {[GN_INT64] = uint32_to_int64, TO_FLOATS(uint32)},
            [GN_UINT64] = {TO_FLOATS(uint64)},
            [GN_FLOAT16] = FROM_FLOATS(float16),
            [GN_BFLOAT16] = FROM_FLOATS(bfloat16),
            [GN_FLOAT32] = FROM_FLOATS(float32),
            [GN_FLOAT64] = FROM_FLOATS(float64),
        },
    .rounds = {HALVES(round)},
    .gathers = {gather_uint8_t, gather_uint16_t, gather_uint32_t, gather_uint64_t},
    .reducers =
        {
            [GNI_REDUCTION_SUM] = {SUM_REDUCERS(sum)},
            [GNI_REDUCTION_PRODUCT] = {SUM_REDUCERS(product)},
            [GNI_REDUCTION_MAXIMUM] = {ORDER_REDUCERS(maximum, any_int8)},
            [GNI_REDUCTION_MINIMUM] = {ORDER_REDUCERS(minimum, all_int8)},
            [GNI_REDUCTION_ANY] = {TRUTH_REDUCERS(any)},
            [GNI_REDUCTION_ALL] = {TRUTH_REDUCERS(all)},
        },
    .squares = {[GN_FLOAT32] = REDUCERS(squares_float32), [GN_FLOAT64] = REDUCERS(squares_float64)},
    .row_reducer = reduce_rows_float32,
    .product_reducer = reduce_products,
    .chains = {FLOATS(chain)},
    .row_loops =
        {
#define ROW_LOOPS_ROW(NAME, name)                                        \
    [GNI_ROW_LOOP_##NAME] = {{row_##name##_float32, name##_row_float32}, \
                             {row_##name##_float64, name##_row_float64}}
            ROW_LOOPS_ROW(ADD, add),
            ROW_LOOPS_ROW(SUBTRACT, subtract),
            ROW_LOOPS_ROW(MULTIPLY, multiply),
            ROW_LOOPS_ROW(DIVIDE, divide),
#undef ROW_LOOPS_ROW
        },
};
