/*
 * philox.h: random numbers by counting: Philox4x32-10, and the numbers that are made of its words.
 *
 * Philox (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011) turns a counter of
 * 128 bits and a key of 64 bits into four words of 32 bits. Here the key is the seed, and the counter is
 *
 *     word   0, 1               2, 3
 *            block (low, high)  offset (low, high)
 *
 * where the offset is the operation's own number, and the block follows from the element's index alone:
 *
 *     element                       of a block   from its words
 *     uniform float32               4            word e
 *     uniform float64               2            words 2e (low), 2e+1
 *     normal  float32               4            words 0, 1 for the first two, 2, 3 for the others
 *     normal  float64               2            words 0, 1 and 2, 3 for both
 *     integer, range up to 2^32     2            words 2e (low), 2e+1
 *     integer, wider range          1            all
 *
 * The halves are made of float32: normal numbers rounded, uniform ones cut to 11 (float16) or 8 (bfloat16) digits
 * after the point, since rounding would make some of them 1.
 *
 * So a number depends on seed, offset and index only, in whatever order and on whatever device it is computed.
 * All arithmetic is exact or correctly rounded, with no function of a library but the square root: the bits are
 * the same everywhere, as long as no multiplication is contracted with an addition.
 */
#ifndef GNI_OPS_PHILOX_H
#define GNI_OPS_PHILOX_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define GNI_PHILOX_FACTOR0 0xD2511F53u
#define GNI_PHILOX_FACTOR1 0xCD9E8D57u
#define GNI_PHILOX_KEY0 0x9E3779B9u /* what is added to the key after each round */
#define GNI_PHILOX_KEY1 0xBB67AE85u

/* All 64 bits of a product of words. A GPU's compiler wants to be told that its factors have no more than 32. */
#ifndef GNI_PHILOX_PRODUCT
#define GNI_PHILOX_PRODUCT(a, b) ((uint64_t)(a) * (b))
#endif

struct gni_philox {
    uint64_t seed, offset;
};

static inline void gni_philox_block(struct gni_philox philox, uint64_t block, uint32_t words[4])
{
    uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32);
    uint32_t c2 = (uint32_t)philox.offset, c3 = (uint32_t)(philox.offset >> 32);
    uint32_t k0 = (uint32_t)philox.seed, k1 = (uint32_t)(philox.seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t a = GNI_PHILOX_PRODUCT(c0, GNI_PHILOX_FACTOR0);
        uint64_t b = GNI_PHILOX_PRODUCT(c2, GNI_PHILOX_FACTOR1);
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += GNI_PHILOX_KEY0;
        k1 += GNI_PHILOX_KEY1;
    }
    words[0] = c0;
    words[1] = c1;
    words[2] = c2;
    words[3] = c3;
}

/* ---- uniform numbers, from 0 to before 1 ------------------------------------------------------ */

static inline uint64_t gni_philox_join(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

static inline float gni_philox_uniform32(uint32_t word)
{
    return (float)(int32_t)(word >> 8) * 0x1p-24f;
}

/* (double)(int64_t)number, by steps that processors have for vectors: two exact halves, and one
 * rounding. */
static inline double gni_philox_double(uint64_t number)
{
    double high = (double)(int32_t)(uint32_t)(number >> 32);
    double low = (double)(int32_t)((uint32_t)number ^ 0x80000000u) + 0x1p31;
    return high * 0x1p32 + low;
}

static inline double gni_philox_uniform64(uint64_t number)
{
    return gni_philox_double(number >> 11) * 0x1p-53;
}

/* ---- integers, from 0 to before the range ------------------------------------------------------ */

/* The upper half of number * range, for a range up to 2^32: some results are more likely than others by no
 * more than range / 2^64. */
static inline uint64_t gni_philox_narrow(uint64_t number, uint64_t range)
{
    uint64_t low = (number & 0xFFFFFFFFu) * range, high = (number >> 32) * range;
    return (high + (low >> 32)) >> 32;
}

static inline uint64_t gni_philox_high(uint64_t a, uint64_t b)
{
    uint64_t a0 = a & 0xFFFFFFFFu, a1 = a >> 32, b0 = b & 0xFFFFFFFFu, b1 = b >> 32;
    uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
    return a1 * b1 + (middle >> 32) + ((a0 * b1 + (middle & 0xFFFFFFFFu)) >> 32);
}

/* The same with a number of 128 bits: by no more than range / 2^128. */
static inline uint64_t gni_philox_wide(uint64_t low, uint64_t high, uint64_t range)
{
    uint64_t product = high * range, carry = gni_philox_high(low, range);
    return gni_philox_high(high, range) + (product + carry < product);
}

/* ---- normal numbers, by Box and Muller ---------------------------------------------------------- */

/*
 * Two independent uniform numbers give a radius, sqrt(-2 log u), and an angle. The logarithm is that of a power
 * of two and of m from sqrt(1/2) to sqrt(2): with s = (m - 1) / (m + 1) it is 2 (s + s^3/3 + s^5/5 + ..). The
 * angle is a whole number of quarter turns and a rest of an eighth at most, for which sine and cosine are short
 * series. Errors stay within a few units in the last place.
 */
static inline void gni_philox_normal32(uint32_t first, uint32_t second, float *a, float *b)
{
    float u = ((float)(int32_t)(first >> 1) + 0.5f) * 0x1p-31f; /* above 0, up to 1 */
    int32_t bits;
    memcpy(&bits, &u, sizeof bits);
    int32_t exponent = (bits - 0x3F3504F3) >> 23; /* 0x3F3504F3: sqrt(1/2) */
    bits -= exponent * (1 << 23);
    float m;
    memcpy(&m, &bits, sizeof m);
    float s = (m - 1.0f) / (m + 1.0f), t = s * s;
    float series = 1.0f / 9.0f;
    series = series * t + 1.0f / 7.0f;
    series = series * t + 1.0f / 5.0f;
    series = series * t + 1.0f / 3.0f;
    float logarithm = (float)exponent * 0x1.62e430p-1f + (s + s * (t * series)) * 2.0f;
    float radius = sqrtf(logarithm * -2.0f);

    uint32_t quarter = second >> 30;
    float x = (float)(int32_t)(second << 2) * (0x1.921fb6p+0f * 0x1p-32f), y = x * x;
    float sine = 1.0f / 362880.0f;
    sine = sine * y - 1.0f / 5040.0f;
    sine = sine * y + 1.0f / 120.0f;
    sine = sine * y - 1.0f / 6.0f;
    sine = x + x * (y * sine);
    float cosine = -1.0f / 3628800.0f;
    cosine = cosine * y + 1.0f / 40320.0f;
    cosine = cosine * y - 1.0f / 720.0f;
    cosine = cosine * y + 1.0f / 24.0f;
    cosine = cosine * y - 0.5f;
    cosine = 1.0f + y * cosine;

    float p = (quarter & 1) != 0 ? sine : cosine, q = (quarter & 1) != 0 ? cosine : sine;
    *a = radius * (((quarter + 1) & 2) != 0 ? -p : p);
    *b = radius * ((quarter & 2) != 0 ? -q : q);
}

static inline void gni_philox_normal64(uint64_t first, uint64_t second, double *a, double *b)
{
    double u = (gni_philox_double(first >> 11) + 0.5) * 0x1p-53;
    uint64_t bits;
    memcpy(&bits, &u, sizeof bits);
    uint64_t exponent = (bits - 0x3FE6A09E667F3BCDu + ((uint64_t)64 << 52)) >> 52; /* plus 64 */
    bits -= (exponent - 64) << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    double s = (m - 1.0) / (m + 1.0), t = s * s, series = 1.0 / 21;
    for (int n = 19; n >= 3; n -= 2)
        series = series * t + 1.0 / n;
    double logarithm = ((double)(int32_t)(uint32_t)exponent - 64.0) * 0x1.62e42fefa39efp-1 +
                       (s + s * (t * series)) * 2.0;
    double radius = sqrt(logarithm * -2.0);

    uint64_t quarter = second >> 62;
    double x = gni_philox_double(second << 2) * (0x1.921fb54442d18p+0 * 0x1p-64), y = x * x;
    double sine = 1.0 / 355687428096000.0;
    sine = sine * y - 1.0 / 1307674368000.0;
    sine = sine * y + 1.0 / 6227020800.0;
    sine = sine * y - 1.0 / 39916800.0;
    sine = sine * y + 1.0 / 362880.0;
    sine = sine * y - 1.0 / 5040.0;
    sine = sine * y + 1.0 / 120.0;
    sine = sine * y - 1.0 / 6.0;
    sine = x + x * (y * sine);
    double cosine = 1.0 / 20922789888000.0;
    cosine = cosine * y - 1.0 / 87178291200.0;
    cosine = cosine * y + 1.0 / 479001600.0;
    cosine = cosine * y - 1.0 / 3628800.0;
    cosine = cosine * y + 1.0 / 40320.0;
    cosine = cosine * y - 1.0 / 720.0;
    cosine = cosine * y + 1.0 / 24.0;
    cosine = cosine * y - 0.5;
    cosine = 1.0 + y * cosine;

    /* By quarter turns: which of the two, and its sign; without a branch. */
    uint64_t sine_bits, cosine_bits, is_odd = 0 - (quarter & 1);
    memcpy(&sine_bits, &sine, sizeof sine_bits);
    memcpy(&cosine_bits, &cosine, sizeof cosine_bits);
    uint64_t other = (sine_bits ^ cosine_bits) & is_odd;
    uint64_t p_bits = cosine_bits ^ other ^ ((quarter + 1) >> 1 << 63);
    uint64_t q_bits = sine_bits ^ other ^ (quarter >> 1 << 63);
    double p, q;
    memcpy(&p, &p_bits, sizeof p);
    memcpy(&q, &q_bits, sizeof q);
    *a = radius * p;
    *b = radius * q;
}

#endif
