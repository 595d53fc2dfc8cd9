/*
 * test_random.c: random numbers: published answers, each element by its index alone, and statistics with fixed
 * seeds, whose bounds a good generator passes at nearly every seed.
 *
 *     test_random [time]    also says how long fills take
 */
#include "base/host.h"
#include "base/parallel.h"
#include "base/thread.h"
#include "check.h"
#include "ops/cpu/cpu_random.h"
#include "tensor/dtype.h"

#include <math.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

enum {
    MANY = 200003, /* several parts, and a block that is cut */
};

static const int thread_counts[] = {1, 2, 3, 8};
static const struct gni_philox stream = {0x123456789ABCDEF0u, 42};
static double buffer[MANY], other[MANY]; /* room for MANY of any type */

/* ---- the generator ----------------------------------------------------------------------------- */

static void words_check(struct gni_philox philox, uint64_t block, const uint32_t expected[4])
{
    uint32_t words[4];
    gni_philox_block(philox, block, words);
    for (int i = 0; i < 4; i++)
        CHECK_U64(words[i], expected[i]);
}

/* From the authors' own file of answers. */
static void test_known_answers(void)
{
    words_check((struct gni_philox){0, 0}, 0,
                (uint32_t[]){0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8});
    words_check((struct gni_philox){UINT64_MAX, UINT64_MAX}, UINT64_MAX,
                (uint32_t[]){0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD});
    words_check((struct gni_philox){0x299F31D0A4093822u, 0x0370734413198A2Eu}, 0x85A308D3243F6A88u,
                (uint32_t[]){0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1});
}

/* Against arithmetic with 128 bits, and with 192 in two steps. */
static void test_products(void)
{
    __extension__ typedef unsigned __int128 wide;
    uint64_t random = 3;
    for (int i = 0; i < 20000; i++) {
        uint64_t low = check_random(&random), high = check_random(&random);
        uint64_t range = check_random(&random) >> (i % 64);
        if (i % 5 == 0)
            high = UINT64_MAX;
        if (i % 7 == 0)
            low = UINT64_MAX;
        range += range == 0;
        CHECK_U64(gni_philox_high(high, range), (uint64_t)((wide)high * range >> 64));
        wide sum = (wide)high * range + (uint64_t)((wide)low * range >> 64);
        CHECK_U64(gni_philox_wide(low, high, range), (uint64_t)(sum >> 64));
        if (range <= (uint64_t)1 << 32)
            CHECK_U64(gni_philox_narrow(high, range), (uint64_t)((wide)high * range >> 64));
    }
    CHECK_U64(gni_philox_narrow(UINT64_MAX, (uint64_t)1 << 32), UINT32_MAX);
    CHECK_U64(gni_philox_wide(UINT64_MAX, UINT64_MAX, UINT64_MAX), UINT64_MAX - 1);
}

/* ---- every kind of fill ------------------------------------------------------------------------ */

struct kind {
    const char *name;
    gn_dtype dtype;
    size_t size;
    int64_t low, high; /* 0, 0: uniform; 0, -1: normal */
};

static const struct kind kinds[] = {
    {"uniform float32", GN_FLOAT32, 4, 0, 0},
    {"uniform float64", GN_FLOAT64, 8, 0, 0},
    {"normal float32", GN_FLOAT32, 4, 0, -1},
    {"normal float64", GN_FLOAT64, 8, 0, -1},
    {"bool", GN_BOOL, 1, 0, 2},
    {"uint8", GN_UINT8, 1, 0, 256},
    {"int8", GN_INT8, 1, -128, 128},
    {"int16", GN_INT16, 2, -32768, 32768},
    {"int32", GN_INT32, 4, INT32_MIN, (int64_t)INT32_MAX + 1},
    {"int64 narrow", GN_INT64, 8, -7, 1000},
    {"int64 wide", GN_INT64, 8, INT64_MIN, INT64_MAX},
    {"uint16", GN_UINT16, 2, 0, 65536},
    {"uint32", GN_UINT32, 4, 0, (int64_t)UINT32_MAX + 1},
    {"uint64 narrow", GN_UINT64, 8, 5, 1000},
};

static void fill(const struct kind *kind, struct gni_philox philox, void *out, size_t count)
{
    if (kind->low < kind->high)
        gni_random_integers(philox, kind->dtype, kind->low, kind->high, out, count);
    else if (kind->high == 0)
        gni_random_uniform(philox, kind->dtype, out, count);
    else
        gni_random_normal(philox, kind->dtype, out, count);
}

/* Neither the number of threads nor how many others there are changes an element; nothing is written behind
 * the last. */
static void test_by_index_alone(void)
{
    static const size_t counts[] = {0, 1, 2, 3, 4, 5, 255, 1023, 1024, 1025, 16384, 16387, MANY};
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        const struct kind *kind = &kinds[k];
        CHECK_OK(gni_parallel_set_threads(1));
        fill(kind, stream, buffer, MANY);
        for (size_t t = 0; t < COUNT_OF(thread_counts); t++) {
            CHECK_OK(gni_parallel_set_threads(thread_counts[t]));
            for (size_t c = 0; c < COUNT_OF(counts); c++) {
                size_t nbytes = counts[c] * kind->size;
                memset(other, 0xA5, sizeof other);
                fill(kind, stream, other, counts[c]);
                CHECK(memcmp(other, buffer, nbytes) == 0);
                if (nbytes < sizeof other)
                    CHECK(((unsigned char *)other)[nbytes] == 0xA5);
            }
        }
    }
}

/* The same bits with every compiler, instruction set and release: programs rely on their seeds. */
static void test_same_for_ever(void)
{
    static const uint64_t expected[] = {
        0xA9F450A002706974u, 0xC024689AB28344D9u, 0x4EC4B2C785B667E8u, 0x914B7C4CB58178B4u,
        0x4A1140ABF7674EDFu, 0xE76919C9A1ADE1FAu, 0x043B8ADC7B738B7Au, 0xFD45810092FF0931u,
        0xB40733885AF8D707u, 0xDFBBF4BA4746EB27u, 0xA706204657A6B163u, 0x9790987F70B151B1u,
        0xFA23F404ECFA3E87u, 0x9044EC8FDEC256D8u};
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        fill(&kinds[k], stream, buffer, MANY);
        const unsigned char *bytes = (const unsigned char *)buffer;
        uint64_t hash = 0;
        for (size_t i = 0; i < MANY * kinds[k].size; i++)
            hash = (hash ^ bytes[i]) * 0x100000001B3u;
        CHECK_U64(hash, expected[k]);
    }
}

/* Another seed or offset gives other numbers. */
static void test_streams_differ(void)
{
    static const struct gni_philox others[] = {
        {1, 0}, {0, 1}, {(uint64_t)1 << 32, 0}, {0, (uint64_t)1 << 32}, {1, 1}};
    struct gni_philox zero = {0, 0};
    gni_random_uniform(zero, GN_FLOAT64, buffer, MANY);
    for (size_t s = 0; s < COUNT_OF(others); s++) {
        gni_random_uniform(others[s], GN_FLOAT64, other, MANY);
        double product = 0;
        int same = 0;
        for (size_t i = 0; i < MANY; i++) {
            same += buffer[i] == other[i];
            product += (buffer[i] - 0.5) * (other[i] - 0.5);
        }
        CHECK(same == 0);
        CHECK(fabs(product / MANY * 12) < 4 / sqrt(MANY));
    }
}

/* The words of an element, as philox.h says. */
static void test_layout(void)
{
    const float *floats = (const float *)buffer;
    const int64_t *integers = (const int64_t *)buffer;
    uint32_t words[4];
    gni_random_uniform(stream, GN_FLOAT32, buffer, MANY);
    for (size_t i = 0; i < MANY; i++) {
        gni_philox_block(stream, i / 4, words);
        CHECK(floats[i] == (float)(words[i % 4] >> 8) / 16777216.0f);
    }
    gni_random_uniform(stream, GN_FLOAT64, buffer, MANY);
    for (size_t i = 0; i < MANY; i++) {
        gni_philox_block(stream, i / 2, words);
        uint64_t number = gni_philox_join(words[i % 2 * 2], words[i % 2 * 2 + 1]);
        CHECK(buffer[i] == (double)(number >> 11) / 9007199254740992.0);
    }
    gni_random_integers(stream, GN_INT64, 10, 20, buffer, MANY);
    for (size_t i = 0; i < MANY; i++) {
        gni_philox_block(stream, i / 2, words);
        uint64_t number = gni_philox_join(words[i % 2 * 2], words[i % 2 * 2 + 1]);
        CHECK(integers[i] == 10 + (int64_t)gni_philox_narrow(number, 10));
    }
    gni_random_integers(stream, GN_INT64, -5, (int64_t)1 << 40, buffer, MANY);
    for (size_t i = 0; i < MANY; i++) {
        gni_philox_block(stream, i, words);
        CHECK(integers[i] == -5 + (int64_t)gni_philox_wide(gni_philox_join(words[0], words[1]),
                                                           gni_philox_join(words[2], words[3]),
                                                           ((uint64_t)1 << 40) + 5));
    }
}

/* ---- normal numbers ---------------------------------------------------------------------------- */

static void normal32_check(uint32_t first, uint32_t second)
{
    float a, b;
    gni_philox_normal32(first, second, &a, &b);
    double u = ((float)(first >> 1) + 0.5f) * 0x1p-31f;
    double radius = sqrt(-2 * log(u)), angle = (double)(int32_t)(second << 2) * 0x1p-32;
    angle = (angle + (second >> 30)) * 1.5707963267948966;
    double bound = 4 * 0x1p-24 * radius + 1e-30;
    CHECK(fabs(a - radius * cos(angle)) <= bound && fabs(b - radius * sin(angle)) <= bound);
}

static void normal64_check(uint64_t first, uint64_t second)
{
    double a, b;
    gni_philox_normal64(first, second, &a, &b);
    long double u = ((double)(first >> 11) + 0.5) * 0x1p-53;
    long double radius = sqrtl(-2 * logl(u));
    long double angle = (long double)(int64_t)(second << 2) * 0x1p-64L;
    angle = (angle + (long double)(second >> 62)) * 1.57079632679489661923132169163975144L;
    long double bound = 4 * 0x1p-53L * radius + 1e-300L;
    CHECK(fabsl(a - radius * cosl(angle)) <= bound && fabsl(b - radius * sinl(angle)) <= bound);
}

/* Against the library's functions, also at the borders. */
static void test_normal_arithmetic(void)
{
    static const uint64_t borders[] = {0,
                                       1,
                                       UINT64_MAX,
                                       UINT64_MAX - 1,
                                       (uint64_t)1 << 63,
                                       ((uint64_t)1 << 63) - 1,
                                       (uint64_t)1 << 61,
                                       ((uint64_t)1 << 61) - 1,
                                       0xB504F333F9DE6484u,
                                       0xB504F334F9DE6484u};
    for (size_t i = 0; i < COUNT_OF(borders); i++) {
        for (size_t j = 0; j < COUNT_OF(borders); j++) {
            normal32_check((uint32_t)(borders[i] >> 32), (uint32_t)(borders[j] >> 32));
            normal32_check((uint32_t)borders[i], (uint32_t)borders[j]);
            normal64_check(borders[i], borders[j]);
        }
    }
    uint64_t random = 11;
    for (int i = 0; i < 200000; i++) {
        uint64_t first = check_random(&random), second = check_random(&random);
        first >>= i % 8 == 0 ? i / 8 % 64 : 0; /* the tails */
        normal64_check(first, second);
        normal32_check((uint32_t)(first >> 32), (uint32_t)(second >> 32));
    }
}

/* ---- statistics -------------------------------------------------------------------------------- */

/* Chi-square over bins of equal probability, as standard deviations away from what is expected. */
static double chi_square(const size_t *bins, size_t bin_count, size_t count)
{
    double expected = (double)count / (double)bin_count, sum = 0;
    for (size_t i = 0; i < bin_count; i++)
        sum += ((double)bins[i] - expected) * ((double)bins[i] - expected) / expected;
    double freedom = (double)(bin_count - 1);
    return (sum - freedom) / sqrt(2 * freedom);
}

static void numbers_take(gn_dtype dtype)
{
    static float floats[MANY];
    if (dtype != GN_FLOAT32)
        return;
    memcpy(floats, buffer, sizeof floats);
    for (size_t i = 0; i < MANY; i++)
        buffer[i] = (double)floats[i];
}

static void moments_check(double mean, double variance, double fourth)
{
    double sum = 0, squares = 0, cubes = 0, neighbours = 0;
    for (size_t i = 0; i < MANY; i++) {
        double d = buffer[i] - mean;
        sum += d;
        squares += d * d;
        cubes += d * d * d;
        neighbours += i > 0 ? d * (buffer[i - 1] - mean) : 0;
    }
    double root = sqrt(MANY);
    CHECK(fabs(sum / MANY) < 4 * sqrt(variance) / root);
    CHECK(fabs(squares / MANY - variance) < 4 * sqrt(fourth - variance * variance) / root);
    CHECK(fabs(cubes / MANY) < 4 * 4 * pow(variance, 1.5) / root); /* sqrt(15) for normal ones */
    CHECK(fabs(neighbours / MANY) < 4 * variance / root);
}

static void test_uniform_statistics(void)
{
    static const gn_dtype dtypes[] = {GN_FLOAT32, GN_FLOAT64};
    for (size_t d = 0; d < COUNT_OF(dtypes); d++) {
        for (uint64_t seed = 0; seed < 3; seed++) {
            gni_random_uniform((struct gni_philox){seed, 5}, dtypes[d], buffer, MANY);
            numbers_take(dtypes[d]);
            size_t bins[1000] = {0}, pairs[900] = {0};
            for (size_t i = 0; i < MANY; i++) {
                CHECK(buffer[i] >= 0 && buffer[i] < 1);
                bins[(size_t)(buffer[i] * 1000)]++;
                if (i % 2 == 1)
                    pairs[(size_t)(buffer[i - 1] * 30) * 30 + (size_t)(buffer[i] * 30)]++;
            }
            CHECK(fabs(chi_square(bins, 1000, MANY)) < 4);
            CHECK(fabs(chi_square(pairs, 900, MANY / 2)) < 4);
            moments_check(0.5, 1.0 / 12, 1.0 / 80);
        }
    }
}

static void test_normal_statistics(void)
{
    static const gn_dtype dtypes[] = {GN_FLOAT32, GN_FLOAT64};
    for (size_t d = 0; d < COUNT_OF(dtypes); d++) {
        for (uint64_t seed = 0; seed < 3; seed++) {
            gni_random_normal((struct gni_philox){seed, 6}, dtypes[d], buffer, MANY);
            numbers_take(dtypes[d]);
            moments_check(0, 1, 3);
            size_t bins[500] = {0}, beyond = 0;
            for (size_t i = 0; i < MANY; i++) {
                double part = 0.5 * erfc(-buffer[i] * 0.70710678118654752); /* uniform again */
                bins[(size_t)(part * 499.999999)]++;
                beyond += fabs(buffer[i]) > 3;
            }
            CHECK(fabs(chi_square(bins, 500, MANY)) < 4);
            double expected = MANY * 0.0026997960632601866;
            CHECK(fabs((double)beyond - expected) < 4 * sqrt(expected));
        }
    }
}

static int64_t integer_at(gn_dtype dtype, size_t i)
{
    return gni_scalar_load(dtype, (const char *)buffer + i * gni_dtype_size(dtype)).integer;
}

static void test_integer_statistics(void)
{
    static const gn_dtype dtypes[] = {GN_BOOL, GN_UINT8, GN_UINT16, GN_UINT32, GN_UINT64,
                                      GN_INT8, GN_INT16, GN_INT32,  GN_INT64};
    for (size_t d = 0; d < COUNT_OF(dtypes); d++) {
        bool is_unsigned = d < 5;
        int64_t low = is_unsigned ? 0 : -30, high = dtypes[d] == GN_BOOL ? 2 : 97;
        size_t bins[256] = {0};
        gni_random_integers((struct gni_philox){9, 1}, dtypes[d], low, high, buffer, MANY);
        for (size_t i = 0; i < MANY; i++) {
            int64_t number = integer_at(dtypes[d], i);
            CHECK(number >= low && number < high);
            bins[number - low]++;
        }
        double chi = chi_square(bins, (size_t)(high - low), MANY);
        CHECK(fabs(chi) < 4);
        gni_random_integers((struct gni_philox){9, 1}, dtypes[d], 1, 2, buffer, 100);
        for (size_t i = 0; i < 100; i++)
            CHECK(integer_at(dtypes[d], i) == 1);
    }
}

/* Ranges about as wide as the type: all parts of the range, the lowest bits among them. */
static void test_wide_integers(void)
{
    static const int64_t ends[][2] = {
        {INT64_MIN, INT64_MAX}, {INT64_MIN, INT64_MIN / 4 * 3 + INT64_MAX},
        {0, (int64_t)1 << 32},  {0, ((int64_t)1 << 32) + 1},
        {-5, INT64_MAX},        {INT64_MAX - 1000, INT64_MAX}};
    const int64_t *numbers = (const int64_t *)buffer;
    for (size_t e = 0; e < COUNT_OF(ends); e++) {
        int64_t low = ends[e][0], high = ends[e][1];
        double range = (double)((uint64_t)high - (uint64_t)low);
        size_t bins[100] = {0}, odd = 0;
        gni_random_integers(stream, GN_INT64, low, high, buffer, MANY);
        for (size_t i = 0; i < MANY; i++) {
            CHECK(numbers[i] >= low && numbers[i] < high);
            uint64_t above = (uint64_t)numbers[i] - (uint64_t)low;
            bins[(size_t)((double)above / range * 99.9999999)]++;
            odd += above & 1;
        }
        CHECK(fabs(chi_square(bins, 100, MANY)) < 4);
        CHECK(fabs((double)odd - MANY / 2.0) < 2 * sqrt(MANY));
    }
}

/* ---- permutations ------------------------------------------------------------------------------ */

static uint64_t key_at(struct gni_philox philox, int64_t index)
{
    uint32_t words[4];
    gni_philox_block(philox, (uint64_t)index / 2, words);
    return gni_philox_join(words[index % 2 * 2], words[index % 2 * 2 + 1]);
}

/* Every number once, and their keys ascend: that is all that is said of it. */
static void test_permutation(void)
{
    static const size_t counts[] = {0,    1,    2,    3,     100,   511,   512,  513,
                                    1023, 1024, 1025, 16384, 65536, 99999, MANY, 512 * 128 + 1};
    static unsigned char seen[MANY];
    int64_t *numbers = (int64_t *)buffer;
    for (size_t t = 0; t < COUNT_OF(thread_counts); t++) {
        CHECK_OK(gni_parallel_set_threads(thread_counts[t]));
        for (size_t c = 0; c < COUNT_OF(counts); c++) {
            size_t count = counts[c], wrong = 0;
            memset(seen, 0, sizeof seen);
            CHECK_OK(gni_random_permutation(stream, numbers, count));
            for (size_t i = 0; i < count; i++) {
                bool is_bad = numbers[i] < 0 || (size_t)numbers[i] >= count || seen[numbers[i]]++;
                wrong += is_bad ||
                         (i > 0 && key_at(stream, numbers[i - 1]) > key_at(stream, numbers[i]));
            }
            CHECK_U64(wrong, 0);
        }
    }
}

/* Without room to count, nothing is written and nothing stays. */
static void test_permutation_failure(void)
{
    enum {
        SEVERAL = 5000, /* a permutation of few needs no room */
    };
    static int64_t numbers[SEVERAL];
    size_t live = gni_host_live_count(), written = 0;
    for (size_t i = 0; i < SEVERAL; i++)
        numbers[i] = -7;
    gni_host_fail_after(1);
    CHECK_STATUS(gni_random_permutation(stream, numbers, SEVERAL), GN_ERROR_OUT_OF_HOST_MEMORY);
    gni_host_fail_after(-1);
    for (size_t i = 0; i < SEVERAL; i++)
        written += numbers[i] != -7;
    CHECK_U64(written, 0);
    CHECK_OK(gni_random_permutation(stream, numbers, SEVERAL));
    CHECK(gni_host_live_count() == live);
}

static void test_permutation_statistics(void)
{
    size_t bins[120] = {0}, places[100] = {0};
    for (uint64_t i = 0; i < 24000; i++) {
        int64_t five[5];
        CHECK_OK(gni_random_permutation((struct gni_philox){77, i}, five, 5));
        size_t rank = 0;
        for (size_t a = 0; a < 5; a++) {
            size_t smaller = 0;
            for (size_t b = a + 1; b < 5; b++)
                smaller += five[b] < five[a];
            rank = rank * (5 - a) + smaller;
        }
        bins[rank]++;
    }
    CHECK(fabs(chi_square(bins, 120, 24000)) < 4);
    int64_t *numbers = (int64_t *)buffer;
    CHECK_OK(gni_random_permutation(stream, numbers, 100000));
    size_t fixed = 0, count = 0;
    for (size_t i = 0; i < 10000; i++, count++) /* where the first tenth comes from */
        places[(size_t)numbers[i] / 1000]++;
    CHECK(fabs(chi_square(places, 100, count)) < 4);
    for (size_t i = 0; i < 100000; i++)
        fixed += numbers[i] == (int64_t)i;
    CHECK(fixed < 8); /* 1 on average */
}

/* ---- time -------------------------------------------------------------------------------------- */

static void time_print(const char *name, uint64_t start, size_t count)
{
    printf("     %-16s %.2f ns for a number\n", name,
           (double)(gni_time_ns() - start) / (double)count);
}

static void test_time(void)
{
    enum {
        COUNT = 10000000
    };
    void *out = calloc(COUNT, 8);
    for (int threads = 1; threads <= 2; threads++) {
        CHECK_OK(gni_parallel_set_threads(threads));
        printf("     %d threads\n", threads);
        for (size_t k = 0; k < COUNT_OF(kinds); k++) {
            fill(&kinds[k], stream, out, COUNT);
            uint64_t start = gni_time_ns();
            fill(&kinds[k], stream, out, COUNT);
            time_print(kinds[k].name, start, COUNT);
        }
        uint64_t start = gni_time_ns();
        CHECK_OK(gni_random_permutation(stream, out, COUNT));
        time_print("permutation", start, COUNT);
        start = gni_time_ns();
        for (int i = 0; i < 1000; i++)
            CHECK_OK(gni_random_permutation(stream, out, 1000));
        time_print("permutation 1000", start, 1000000);
    }
    free(out);
}

int main(int count, char **words)
{
    RUN(test_known_answers);
    RUN(test_products);
    RUN(test_by_index_alone);
    RUN(test_same_for_ever);
    RUN(test_streams_differ);
    RUN(test_layout);
    RUN(test_normal_arithmetic);
    RUN(test_uniform_statistics);
    RUN(test_normal_statistics);
    RUN(test_integer_statistics);
    RUN(test_wide_integers);
    RUN(test_permutation);
    RUN(test_permutation_failure);
    RUN(test_permutation_statistics);
    if (count > 1 && strcmp(words[1], "time") == 0)
        RUN(test_time);
    return check_result();
}
