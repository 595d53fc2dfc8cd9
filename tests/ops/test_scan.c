/*
 * test_scan.c: cumulative operations against one plain loop along the dimension.
 */
#include "check.h"

#include "base/host.h"
#include "base/parallel.h"
#include "ops/cpu/cpu_scan.h"

#include <math.h>

/* One element in and out, as the widest number of its kind. */
static double wide_of(gn_dtype dtype, const void *in, size_t i)
{
    switch (dtype) {
    case GN_FLOAT16:
        return (double)gni_float16_to(((const uint16_t *)in)[i]);
    case GN_BFLOAT16:
        return (double)gni_bfloat16_to(((const uint16_t *)in)[i]);
    case GN_FLOAT32:
        return (double)((const float *)in)[i];
    default:
        return ((const double *)in)[i];
    }
}

static __int128 integer_of(gn_dtype dtype, const void *in, size_t i)
{
    switch (dtype) {
#define ROW(NAME, name, type, SIGNED) \
    case GN_##NAME:                   \
        return ((const type *)in)[i];
        GNI_INTEGER_LIST(ROW)
#undef ROW
    default:
        return ((const uint8_t *)in)[i];
    }
}

static __int128 integer_step(enum gni_scan op, __int128 a, __int128 b)
{
    switch (op) {
    case GNI_SCAN_SUM:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case GNI_SCAN_PRODUCT:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case GNI_SCAN_MAXIMUM:
        return a > b ? a : b;
    default:
        return a < b ? a : b;
    }
}

static double wide_step(enum gni_scan op, double a, double b)
{
    if (op == GNI_SCAN_SUM)
        return a + b;
    if (op == GNI_SCAN_PRODUCT)
        return a * b;
    if (isnan(a) || isnan(b))
        return (double)NAN;
    return op == GNI_SCAN_MAXIMUM ? fmax(a, b) : fmin(a, b);
}

/* What an integer becomes in its type. */
static __int128 integer_cut(gn_dtype dtype, __int128 value)
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

/* How far a sum in a type may be from the sum in double, relative to the largest sum of magnitudes. */
static double tolerance(gn_dtype dtype)
{
    switch (dtype) {
    case GN_FLOAT16:
        return 1.0 / 1024;
    case GN_BFLOAT16:
        return 1.0 / 128;
    case GN_FLOAT32:
        return 1.0 / (1 << 23);
    default:
        return 1e-11;
    }
}

static bool is_near(double actual, double expected, double scale, gn_dtype dtype)
{
    if (isnan(actual) || isnan(expected))
        return isnan(actual) && isnan(expected);
    if (isinf(actual) || isinf(expected)) /* a half overflows where the reference does not */
        return actual == expected || (isinf(actual) && fabs(expected) > 60000.0);
    return fabs(actual - expected) <= tolerance(dtype) * (fabs(scale) + 1e-30);
}

static void check_line(enum gni_scan op, const void *in, gn_dtype dtype, size_t first,
                       size_t length, size_t stride, const void *out, gn_dtype out_dtype,
                       bool *is_right)
{
    __int128 integer = 0;
    double wide = 0, scale = 0;
    for (size_t l = 0; l < length; l++) {
        size_t at = first + l * stride;
        if (gni_dtype_kind(out_dtype) != GNI_KIND_FLOATING) {
            __int128 value = integer_of(dtype, in, at);
            integer = l == 0 ? value : integer_step(op, integer, value);
            *is_right &= integer_of(out_dtype, out, at) == integer_cut(out_dtype, integer);
            continue;
        }
        double value = gni_dtype_kind(dtype) == GNI_KIND_FLOATING
                           ? wide_of(dtype, in, at)
                           : (double)integer_of(dtype, in, at);
        wide = l == 0 ? value : wide_step(op, wide, value);
        scale = op == GNI_SCAN_SUM ? scale + fabs(value) : wide;
        *is_right &= is_near(wide_of(out_dtype, out, at), wide, scale, out_dtype);
    }
}

static void check_scan(enum gni_scan op, const void *in, gn_dtype dtype, size_t outer,
                       size_t length, size_t inner, void *out, gn_dtype out_dtype)
{
    bool is_right = true;
    CHECK_OK(gni_scan(op, in, dtype, outer, length, inner, out, out_dtype, NULL));
    for (size_t o = 0; o < outer; o++)
        for (size_t i = 0; i < inner; i++)
            check_line(op, in, dtype, o * length * inner + i, length, inner, out, out_dtype,
                       &is_right);
    CHECK(is_right);
}

/* Numbers around 0, around 1 for products, now and then NaN or infinite. */
static void fill(gn_dtype dtype, enum gni_scan op, size_t n, bool has_special, uint64_t *seed,
                 void *out)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t random = check_random(seed);
        double wide = (double)(random >> 40) / (double)(1 << 24) - 0.5;
        if (op == GNI_SCAN_PRODUCT)
            wide = random & 1 ? 1.0 + wide / 64 : 1.0 / (1.0 + wide / 64);
        if (has_special && random % 4096 == 0)
            wide = (double)NAN;
        if (has_special && random % 4096 == 1)
            wide = (double)INFINITY;
        switch (dtype) {
        case GN_FLOAT16:
            ((uint16_t *)out)[i] = gni_float16_from((float)wide);
            break;
        case GN_BFLOAT16:
            ((uint16_t *)out)[i] = gni_bfloat16_from((float)wide);
            break;
        case GN_FLOAT32:
            ((float *)out)[i] = (float)wide;
            break;
        case GN_FLOAT64:
            ((double *)out)[i] = wide;
            break;
        case GN_BOOL:
            ((uint8_t *)out)[i] = random & 1;
            break;
        default:
            memcpy((unsigned char *)out + i * gni_dtype_size(dtype), &random,
                   gni_dtype_size(dtype));
        }
    }
}

static const gn_dtype outs[GN_DTYPE_COUNT][3] = {
    [GN_BOOL] = {GN_INT64, GN_BOOL, GN_FLOAT32},
    [GN_UINT8] = {GN_INT64, GN_UINT8, GN_FLOAT32},
    [GN_INT8] = {GN_INT64, GN_INT8, GN_FLOAT64},
    [GN_INT16] = {GN_INT64, GN_INT16, GN_INT32},
    [GN_INT32] = {GN_INT64, GN_INT32, GN_INT8},
    [GN_INT64] = {GN_INT64, GN_INT32, GN_INT16},
    [GN_UINT16] = {GN_INT64, GN_UINT16, GN_FLOAT32},
    [GN_UINT32] = {GN_INT64, GN_UINT32, GN_INT8},
    [GN_UINT64] = {GN_UINT64, GN_UINT32, GN_FLOAT64},
    [GN_FLOAT16] = {GN_FLOAT16, GN_FLOAT32, GN_FLOAT64},
    [GN_BFLOAT16] = {GN_BFLOAT16, GN_FLOAT32, GN_FLOAT64},
    [GN_FLOAT32] = {GN_FLOAT32, GN_FLOAT64, GN_FLOAT32},
    [GN_FLOAT64] = {GN_FLOAT64, GN_FLOAT32, GN_FLOAT64},
};

static void test_scan_all(void)
{
    static const size_t shapes[][3] = {{1, 0, 1},   {0, 3, 2},   {1, 1, 1},      {1, 2, 1},
                                       {3, 31, 1},  {2, 33, 3},  {1, 1000, 1},   {2, 513, 65},
                                       {40, 7, 64}, {5, 1, 130}, {1, 100003, 1}, {3, 40000, 1}};
    uint64_t seed = 1;
    void *in = malloc(120000 * 8), *out = malloc(120000 * 8);
    for (int dtype = 0; dtype < GN_DTYPE_COUNT; dtype++)
        for (int op = 0; op < 4; op++)
            for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
                for (int o = 0; o < 3; o++) {
                    const size_t *shape = shapes[s];
                    bool has_special = op >= GNI_SCAN_MAXIMUM;
                    /* Long products of rounded numbers drift further than their tolerance. */
                    if (op == GNI_SCAN_PRODUCT && shape[1] > 600 &&
                        gni_dtype_kind((gn_dtype)dtype) == GNI_KIND_FLOATING)
                        continue;
                    fill((gn_dtype)dtype, (enum gni_scan)op, shape[0] * shape[1] * shape[2],
                         has_special, &seed, in);
                    check_scan((enum gni_scan)op, in, (gn_dtype)dtype, shape[0], shape[1], shape[2],
                               out, outs[dtype][o]);
                }
    free(in);
    free(out);
}

/* The same bits from any number of threads, and in place. */
static void test_scan_threads(void)
{
    uint64_t seed = 2;
    size_t n = 300001;
    double *in = malloc(n * 8), *first = malloc(n * 8), *out = malloc(n * 8);
    int threads = gni_parallel_get_threads();
    fill(GN_FLOAT64, GNI_SCAN_SUM, n, false, &seed, in);
    for (int count = 1; count <= 4; count++) {
        CHECK_OK(gni_parallel_set_threads(count));
        CHECK_OK(gni_scan(GNI_SCAN_SUM, in, GN_FLOAT64, 1, n, 1, count == 1 ? first : out,
                          GN_FLOAT64, NULL));
        CHECK(count == 1 || memcmp(first, out, n * 8) == 0);
    }
    memcpy(out, in, n * 8);
    CHECK_OK(gni_scan(GNI_SCAN_SUM, out, GN_FLOAT64, 1, n, 1, out, GN_FLOAT64, NULL));
    CHECK(memcmp(first, out, n * 8) == 0);
    CHECK_OK(gni_parallel_set_threads(threads));
    free(in);
    free(first);
    free(out);
}

static void test_scan_indices(void)
{
    static const float in[] = {1, 3, 3, 2, NAN, 5, NAN, 7};
    static const int64_t largest[] = {0, 1, 2, 2, 4, 4, 6, 6};
    static const int64_t smallest[] = {0, 0, 0, 0, 4, 4, 6, 6};
    float out[8];
    int64_t indices[8];
    CHECK_OK(gni_scan(GNI_SCAN_MAXIMUM, in, GN_FLOAT32, 1, 8, 1, out, GN_FLOAT32, indices));
    CHECK(memcmp(indices, largest, sizeof indices) == 0);
    CHECK(out[3] == 3.0f && isnan(out[7]));
    CHECK_OK(gni_scan(GNI_SCAN_MINIMUM, in, GN_FLOAT32, 1, 8, 1, out, GN_FLOAT32, indices));
    CHECK(memcmp(indices, smallest, sizeof indices) == 0);

    /* Columns: each result is the element at its index, and none before is better. */
    enum {
        LENGTH = 50,
        INNER = 70
    };
    int8_t columns[LENGTH * INNER], best[LENGTH * INNER];
    int64_t places[LENGTH * INNER];
    uint64_t seed = 3;
    for (int i = 0; i < LENGTH * INNER; i++)
        columns[i] = (int8_t)(check_random(&seed) % 20);
    CHECK_OK(gni_scan(GNI_SCAN_MAXIMUM, columns, GN_INT8, 1, LENGTH, INNER, best, GN_INT8, places));
    bool is_right = true;
    for (int i = 0; i < INNER; i++)
        for (int l = 0, last = 0; l < LENGTH; l++) {
            if (columns[l * INNER + i] >= columns[last * INNER + i])
                last = l;
            is_right &= places[l * INNER + i] == last;
            is_right &= best[l * INNER + i] == columns[last * INNER + i];
        }
    CHECK(is_right);
}

/* 65504 and many ones: added up in float16 nothing would come of them. */
static void test_scan_precision(void)
{
    enum {
        COUNT = 3000
    };
    uint16_t halves[COUNT], sums[COUNT];
    float singles[COUNT], totals[COUNT];
    for (int i = 0; i < COUNT; i++) {
        halves[i] = gni_float16_from(1.0f);
        singles[i] = i == 0 ? 16777216.0f * 4 : 1.0f;
    }
    CHECK_OK(gni_scan(GNI_SCAN_SUM, halves, GN_FLOAT16, 1, COUNT, 1, sums, GN_FLOAT16, NULL));
    CHECK(gni_float16_to(sums[COUNT - 1]) == 3000.0f);
    CHECK_OK(gni_scan(GNI_SCAN_SUM, singles, GN_FLOAT32, 1, COUNT, 1, totals, GN_FLOAT32, NULL));
    CHECK(totals[COUNT - 1] == (float)(16777216.0 * 4 + COUNT - 1));
}

static void test_scan_failures(void)
{
    size_t n = 4 * GNI_SCAN_BLOCK, live = gni_host_live_count();
    float *in = calloc(n, sizeof *in), *out = malloc(n * sizeof *out);
    int threads = gni_parallel_get_threads();
    if (in == NULL || out == NULL)
        abort();
    CHECK_STATUS(gni_scan(GNI_SCAN_SUM, in, GN_FLOAT32, 1, n, 1, out, GN_INT64, NULL),
                 GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("float32");
    CHECK_OK(gni_parallel_set_threads(2));
    CHECK_OK(gni_scan(GNI_SCAN_SUM, in, GN_FLOAT32, 1, n, 1, out, GN_FLOAT32, NULL));
    for (long nth = 1;; nth++) {
        out[0] = 4711;
        gni_host_fail_after(nth);
        gn_status status = gni_scan(GNI_SCAN_SUM, in, GN_FLOAT32, 1, n, 1, out, GN_FLOAT32, NULL);
        gni_host_fail_after(-1);
        CHECK_U64(gni_host_live_count(), live);
        if (status == GN_OK) {
            CHECK(nth > 1 && out[0] == 0);
            break;
        }
        CHECK_U64(status, GN_ERROR_OUT_OF_HOST_MEMORY);
        CHECK(out[0] == 4711);
    }
    CHECK_OK(gni_parallel_set_threads(threads));
    free(in);
    free(out);
}

int main(void)
{
    RUN(test_scan_all);
    RUN(test_scan_threads);
    RUN(test_scan_indices);
    RUN(test_scan_precision);
    RUN(test_scan_failures);
    return check_result();
}
