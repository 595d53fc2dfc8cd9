/*
 * test_dtype.c: the types of elements: names and sizes, promotion, halves, scalars.
 */
#include "check.h"

#include "genesis/genesis.h"
#include "tensor/dtype.h"

#include <math.h>

static void test_names_and_sizes(void)
{
    static const char *const names[] = {"bool",   "uint8",   "int8",     "int16",   "int32",
                                        "int64",  "float16", "bfloat16", "float32", "float64",
                                        "uint16", "uint32",  "uint64"};
    static const size_t sizes[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 2, 4, 8};
    for (int i = 0; i < GN_DTYPE_COUNT; i++) {
        CHECK_TEXT(gn_dtype_name((gn_dtype)i), names[i]);
        CHECK_U64(gn_dtype_size((gn_dtype)i), sizes[i]);
        CHECK(gn_dtype_is_floating((gn_dtype)i) == (strstr(names[i], "float") != NULL));
        CHECK(gn_dtype_is_unsigned((gn_dtype)i) == (names[i][0] == 'u'));
        CHECK(strstr(gn_dtype_advice(""), names[i]) != NULL);
    }
    CHECK(!gn_dtype_is_floating(GN_DTYPE_COUNT) && !gn_dtype_is_unsigned(GN_DTYPE_COUNT));
    CHECK(gn_dtype_name(GN_DTYPE_COUNT) == NULL);
    CHECK(gn_dtype_name((gn_dtype)-1) == NULL);
    CHECK_U64(gn_dtype_size(GN_DTYPE_COUNT), 0);
    CHECK_U64(gn_dtype_size((gn_dtype)-1), 0);
}

/* What torch.promote_types gives, in the order of the enum; for uint16 to uint64, which it does not promote with other
 * integers, what numpy.promote_types gives, but nothing (N) for uint64 and a signed type. */
static void test_promotion(void)
{
    enum {
        B,
        U,
        C,
        S,
        I,
        L,
        H,
        G,
        F,
        D,
        V,
        W,
        X,
        N
    };
    static const char matrix[GN_DTYPE_COUNT][GN_DTYPE_COUNT] = {
        {B, U, C, S, I, L, H, G, F, D, V, W, X}, /* bool */
        {U, U, S, S, I, L, H, G, F, D, V, W, X}, /* uint8 */
        {C, S, C, S, I, L, H, G, F, D, I, L, N}, /* int8 */
        {S, S, S, S, I, L, H, G, F, D, I, L, N}, /* int16 */
        {I, I, I, I, I, L, H, G, F, D, I, L, N}, /* int32 */
        {L, L, L, L, L, L, H, G, F, D, L, L, N}, /* int64 */
        {H, H, H, H, H, H, H, F, F, D, H, H, H}, /* float16 */
        {G, G, G, G, G, G, F, G, F, D, G, G, G}, /* bfloat16 */
        {F, F, F, F, F, F, F, F, F, D, F, F, F}, /* float32 */
        {D, D, D, D, D, D, D, D, D, D, D, D, D}, /* float64 */
        {V, V, I, I, I, L, H, G, F, D, V, W, X}, /* uint16 */
        {W, W, L, L, L, L, H, G, F, D, W, W, X}, /* uint32 */
        {X, X, N, N, N, N, H, G, F, D, X, X, X}, /* uint64 */
    };
    for (int a = 0; a < GN_DTYPE_COUNT; a++) {
        for (int b = 0; b < GN_DTYPE_COUNT; b++)
            CHECK_U64(gni_dtype_promote((gn_dtype)a, (gn_dtype)b), matrix[a][b]);
    }
}

/* ---- halves ---------------------------------------------------------------------------------- */

struct format {
    int exponent_bits;
    int fraction_bits;
    uint16_t (*from)(float);
    float (*to)(uint16_t);
};

static const struct format formats[] = {
    {5, 10, gni_float16_from, gni_float16_to},
    {8, 7, gni_bfloat16_from, gni_bfloat16_to},
};

/* The definition of IEEE's formats. */
static double half_value(const struct format *format, unsigned magnitude)
{
    int bias = (1 << (format->exponent_bits - 1)) - 1;
    int exponent = (int)(magnitude >> format->fraction_bits);
    int fraction = (int)(magnitude & ((1u << format->fraction_bits) - 1));
    if (exponent == 0)
        return ldexp(fraction, 1 - bias - format->fraction_bits);
    return ldexp(fraction + (1 << format->fraction_bits), exponent - bias - format->fraction_bits);
}

static void test_halves_every_pattern(void)
{
    for (size_t f = 0; f < 2; f++) {
        const struct format *format = &formats[f];
        unsigned infinite = ((1u << format->exponent_bits) - 1) << format->fraction_bits;
        for (unsigned bits = 0; bits < 0x10000; bits++) {
            unsigned magnitude = bits & 0x7fff;
            float value = format->to((uint16_t)bits);
            CHECK((signbit(value) != 0) == (bits >> 15));
            if (magnitude > infinite) {
                uint16_t back = format->from(value);
                CHECK(isnan(value) && isnan(format->to(back)) &&
                      (back & 0x8000) == (bits & 0x8000));
                continue;
            }
            if (magnitude == infinite)
                CHECK(isinf(value));
            else
                CHECK(fabs((double)value) == half_value(format, magnitude));
            CHECK_U64(format->from(value), bits);
        }
    }
}

/* Between two neighbours: the middle goes to the even one, all else to the nearer one. */
static void test_halves_ties(void)
{
    for (size_t f = 0; f < 2; f++) {
        const struct format *format = &formats[f];
        unsigned infinite = ((1u << format->exponent_bits) - 1) << format->fraction_bits;
        for (unsigned low = 0; low < infinite; low++) {
            double a = half_value(format, low), b = half_value(format, low + 1);
            float middle = (float)((a + b) / 2); /* exact, but beyond the largest bfloat16 */
            if (!isfinite(middle))
                continue;
            CHECK_U64(format->from(middle), low + (low & 1));
            CHECK_U64(format->from(-middle), 0x8000 | (low + (low & 1)));
            CHECK_U64(format->from(nextafterf(middle, 0)), low);
            CHECK_U64(format->from(nextafterf(middle, INFINITY)), low + 1);
        }
        CHECK_U64(format->from(0x1.fffffep127f), infinite);
        CHECK_U64(format->from(INFINITY), infinite);
        CHECK_U64(format->from(-INFINITY), 0x8000 | infinite);
        CHECK_U64(format->from(0x1p-149f), 0);
        CHECK_U64(format->from(-0.0f), 0x8000);
        CHECK(isnan(format->to(format->from(NAN))));
    }
}

/* ---- scalars --------------------------------------------------------------------------------- */

static gn_scalar integer(int64_t value)
{
    return (gn_scalar){.kind = GN_INT64, .integer = value};
}

static gn_scalar floating(double value)
{
    return (gn_scalar){.kind = GN_FLOAT64, .floating = value};
}

static gn_scalar stored(gn_scalar value, gn_dtype dtype)
{
    unsigned char element[9];
    memset(element, 0xa5, sizeof element);
    gni_scalar_store(value, dtype, element + 1); /* at an odd address */
    gn_scalar back = gni_scalar_load(dtype, element + 1);
    for (size_t i = gn_dtype_size(dtype) + 1; i < sizeof element; i++)
        CHECK_U64(element[i], 0xa5);
    return back;
}

static void test_scalars(void)
{
    static const int64_t wrapped[][2] = {
        {GN_UINT8, 0x85}, {GN_INT8, -123}, {GN_INT16, 0x7785}, {GN_UINT16, 0x7785}};
    for (size_t i = 0; i < sizeof wrapped / sizeof *wrapped; i++) {
        gn_scalar back = stored(integer(0x1234567800007785), (gn_dtype)wrapped[i][0]);
        CHECK(back.kind == GN_INT64);
        CHECK_U64(back.integer, wrapped[i][1]);
    }
    CHECK_U64(stored(integer(INT64_MIN), GN_INT64).integer, INT64_MIN);
    CHECK_U64(stored(integer((int64_t)1 << 40 | 5), GN_INT32).integer, 5);
    for (int kind = 0; kind < GN_DTYPE_COUNT; kind++) {
        if (gni_dtype_kind((gn_dtype)kind) != GNI_KIND_INTEGER)
            continue;
        CHECK_U64(stored(floating(7.9), (gn_dtype)kind).integer, 7);
        CHECK_U64(stored((gn_scalar){.kind = GN_BOOL, .integer = 1}, (gn_dtype)kind).integer, 1);
        if (gni_dtypes[kind].is_signed)
            CHECK_U64(stored(floating(-7.9), (gn_dtype)kind).integer, -7);
        stored(floating(NAN), (gn_dtype)kind);
        stored(floating(1e300), (gn_dtype)kind);
    }
    /* What int64 has not is of a kind of its own. */
    gn_scalar large = {.kind = GN_UINT64, .integer = INT64_MIN + 5}; /* 2^63 + 5 */
    CHECK(stored(large, GN_UINT64).kind == GN_UINT64);
    CHECK_U64(stored(large, GN_UINT64).integer, large.integer);
    CHECK_U64(stored(floating(0x1.8p63), GN_UINT64).integer, UINT64_C(3) << 62);
    CHECK_U64(stored(integer(-1), GN_UINT64).integer, UINT64_MAX);
    CHECK(stored(integer(INT64_MAX), GN_UINT64).kind == GN_INT64);
    CHECK_U64(stored(large, GN_UINT16).integer, 5);
    CHECK(stored(large, GN_FLOAT64).floating == 0x1p63 && stored(large, GN_BOOL).integer == 1);
    large.integer = (int64_t)((UINT64_C(1) << 63) + (UINT64_C(1) << 39) + 1); /* as below */
    CHECK(stored(large, GN_FLOAT32).floating == 0x1.000002p63);
    large.integer = (int64_t)((UINT64_C(1) << 63) + (UINT64_C(1) << 55) + 1);
    CHECK(stored(large, GN_BFLOAT16).floating == 0x1.02p63);
    CHECK(stored(large, GN_FLOAT16).floating == (double)INFINITY);
    CHECK(stored(integer(256), GN_BOOL).kind == GN_BOOL);
    CHECK_U64(stored(integer(256), GN_BOOL).integer, 1);
    CHECK_U64(stored(floating(0.25), GN_BOOL).integer, 1);
    CHECK_U64(stored(floating(NAN), GN_BOOL).integer, 1);
    CHECK_U64(stored(floating(-0.0), GN_BOOL).integer, 0);
    for (int kind = GN_FLOAT16; kind <= GN_FLOAT64; kind++) {
        CHECK(stored(floating(-1.5), (gn_dtype)kind).floating == -1.5);
        CHECK(stored(integer(-3), (gn_dtype)kind).floating == -3);
        CHECK(stored((gn_scalar){.kind = GN_BOOL, .integer = 1}, (gn_dtype)kind).floating == 1);
        CHECK(isnan(stored(floating(NAN), (gn_dtype)kind).floating));
        CHECK(stored(floating(-INFINITY), (gn_dtype)kind).floating == -INFINITY);
    }
    CHECK(stored(floating(0.1), GN_FLOAT32).floating == 0.1f);
    CHECK(stored(floating(0.1), GN_FLOAT64).floating == 0.1);
    /* Once, not twice: through double this would be the even neighbour. */
    CHECK(stored(integer(((int64_t)1 << 60) + ((int64_t)1 << 36) + 1), GN_FLOAT32).floating ==
          0x1.000002p60);
}

int main(void)
{
    RUN(test_names_and_sizes);
    RUN(test_promotion);
    RUN(test_halves_every_pattern);
    RUN(test_halves_ties);
    RUN(test_scalars);
    return check_result();
}
