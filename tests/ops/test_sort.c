/*
 * test_sort.c: sorting, the largest, the different and places in a sorted row, against the plainest
 * references: the C library's sort by comparing numbers and positions, and counting.
 */
#include "check.h"

#include "base/host.h"
#include "base/parallel.h"
#include "ops/cpu/cpu_sort.h"
#include "ops/cpu/vector_sort.h"

#include <string.h>
#include <math.h>

static const size_t sizes[] = {0, 1, 2, 31, 33, 64, 65, 193, 1000, 4097, 100003};

enum {
    SIZES = sizeof sizes / sizeof sizes[0],
};

static int size_count = SIZES;

/* How a row is filled. */
enum fill {
    FILL_RANDOM, /* bits of any kind, with special values */
    FILL_FEW,    /* a few different ones */
    FILL_EQUAL,
    FILL_ASCENDING,
    FILL_DESCENDING,
    FILLS,
};

/* ---- elements as numbers ---------------------------------------------------------------------- */

/* An element as a number of its own kind; for floating types `wide` is exact. */
struct number {
    bool is_nan;
    __int128 integer;
    double wide;
};

static double half_value(uint16_t bits, int mantissa_bits)
{
    int exponent = (bits & 0x7fff) >> mantissa_bits;
    int bias = mantissa_bits == 10 ? 15 : 127, top = mantissa_bits == 10 ? 31 : 255;
    int mantissa = bits & ((1 << mantissa_bits) - 1);
    double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
    if (exponent == top)
        return mantissa != 0 ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

static struct number number_of(gn_dtype dtype, const void *element)
{
    union {
#define ROW(NAME, name, type, SIGNED) type name;
        GNI_INTEGER_LIST(ROW)
#undef ROW
        float f32;
        double f64;
    } bits = {.int64 = 0};
    struct number number = {.is_nan = false};
    memcpy(&bits, element, gni_dtype_size(dtype));
    switch (dtype) {
#define ROW(NAME, name, type, SIGNED) \
    case GN_##NAME:                   \
        number.integer = bits.name;   \
        break;
        GNI_INTEGER_LIST(ROW)
#undef ROW
    case GN_BOOL:
        number.integer = bits.uint8;
        break;
    case GN_FLOAT16:
        number.wide = half_value(bits.uint16, 10);
        break;
    case GN_BFLOAT16:
        number.wide = half_value(bits.uint16, 7);
        break;
    case GN_FLOAT32:
        number.wide = (double)bits.f32;
        break;
    default:
        number.wide = bits.f64;
    }
    number.is_nan = isnan(number.wide);
    return number;
}

/* -1, 0 or 1: NaN is the largest and equal to itself. */
static int number_compare(struct number a, struct number b)
{
    if (a.is_nan || b.is_nan)
        return (int)a.is_nan - (int)b.is_nan;
    if (a.integer != b.integer)
        return a.integer < b.integer ? -1 : 1;
    return (a.wide > b.wide) - (a.wide < b.wide);
}

static int element_compare(gn_dtype dtype, const unsigned char *row, int64_t a, int64_t b)
{
    size_t size = gni_dtype_size(dtype);
    return number_compare(number_of(dtype, row + (size_t)a * size),
                          number_of(dtype, row + (size_t)b * size));
}

/* ---- rows ------------------------------------------------------------------------------------- */

static struct {
    gn_dtype dtype;
    const unsigned char *row;
    bool is_descending;
} reference;

static int reference_compare(const void *a, const void *b)
{
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    int order = element_compare(reference.dtype, reference.row, i, j);
    if (order != 0)
        return reference.is_descending ? -order : order;
    return (i > j) - (i < j); /* which makes it stable */
}

/* The order of a row's elements, by the C library. */
static void reference_sort(gn_dtype dtype, const unsigned char *row, size_t n, bool is_descending,
                           int64_t *order)
{
    for (size_t i = 0; i < n; i++)
        order[i] = (int64_t)i;
    reference.dtype = dtype;
    reference.row = row;
    reference.is_descending = is_descending;
    if (n > 0)
        qsort(order, n, sizeof *order, reference_compare);
}

static void fill_special(gn_dtype dtype, uint64_t random, unsigned char *element)
{
    static const uint64_t bits[][8] = {
        [GN_FLOAT16] = {0x8000, 0, 0x7e00, 0xfe01, 0x7c00, 0xfc00, 1, 0x8001},
        [GN_BFLOAT16] = {0x8000, 0, 0x7fc0, 0xffc1, 0x7f80, 0xff80, 1, 0x8001},
        [GN_FLOAT32] = {0x80000000, 0, 0x7fc00000, 0xffc00001, 0x7f800000, 0xff800000, 1,
                        0x80000001},
        [GN_FLOAT64] = {0x8000000000000000, 0, 0x7ff8000000000000, 0xfff8000000000001,
                        0x7ff0000000000000, 0xfff0000000000000, 1, 0x8000000000000001},
    };
    if (gni_dtype_kind(dtype) == GNI_KIND_FLOATING)
        memcpy(element, &bits[dtype][random % 8], gni_dtype_size(dtype));
}

static void fill_row(gn_dtype dtype, enum fill fill, size_t n, uint64_t *seed, unsigned char *row)
{
    size_t size = gni_dtype_size(dtype);
    for (size_t i = 0; i < n; i++) {
        uint64_t random = check_random(seed);
        if (fill == FILL_FEW)
            random = (random % 5) * 0x0101010101010101u;
        if (fill == FILL_EQUAL)
            random = 0x4142434445464748u;
        if (dtype == GN_BOOL)
            random &= 1;
        memcpy(row + i * size, &random, size);
        if (fill == FILL_RANDOM && check_random(seed) % 8 == 0)
            fill_special(dtype, check_random(seed), row + i * size);
    }
    if (fill != FILL_ASCENDING && fill != FILL_DESCENDING)
        return;
    int64_t *order = malloc(n * sizeof *order + 1);
    unsigned char *copy = malloc(n * size + 1);
    if (order == NULL || copy == NULL)
        abort();
    memcpy(copy, row, n * size);
    reference_sort(dtype, copy, n, fill == FILL_DESCENDING, order);
    for (size_t i = 0; i < n; i++)
        memcpy(row + i * size, copy + (size_t)order[i] * size, size);
    free(order);
    free(copy);
}

/* All that a case works with, for up to `n` elements. */
struct fixture {
    unsigned char *in;
    unsigned char *values;
    int64_t *indices;
    int64_t *order;
    int64_t *more;
};

static struct fixture fixture_create(size_t n)
{
    struct fixture f = {malloc(8 * n + 8), malloc(8 * n + 8), malloc(8 * n + 8), malloc(8 * n + 8),
                        malloc(8 * n + 8)};
    if (f.in == NULL || f.values == NULL || f.indices == NULL || f.order == NULL || f.more == NULL)
        abort();
    return f;
}

static void fixture_destroy(struct fixture *f)
{
    free(f->in);
    free(f->values);
    free(f->indices);
    free(f->order);
    free(f->more);
}

/* Whether `values` are the elements of `row` in this order, bit for bit. */
static bool values_match(gn_dtype dtype, const unsigned char *row, const int64_t *order, size_t n,
                         const unsigned char *values)
{
    size_t size = gni_dtype_size(dtype);
    for (size_t i = 0; i < n; i++)
        if (memcmp(values + i * size, row + (size_t)order[i] * size, size) != 0)
            return false;
    return true;
}

static bool indices_match(const int64_t *indices, const int64_t *order, size_t n)
{
    return n == 0 || memcmp(indices, order, n * sizeof *order) == 0;
}

/* ---- sort ------------------------------------------------------------------------------------- */

static void check_sort(struct fixture *f, gn_dtype dtype, size_t rows, size_t n, bool is_descending)
{
    size_t size = gni_dtype_size(dtype);
    for (size_t row = 0; row < rows; row++)
        reference_sort(dtype, f->in + row * n * size, n, is_descending, f->order + row * n);
    for (int outputs = 1; outputs < 4; outputs++) {
        memset(f->values, 0xaa, rows * n * size);
        memset(f->indices, 0xaa, rows * n * sizeof(int64_t));
        CHECK_OK(gni_sort(f->in, dtype, rows, n, is_descending, outputs & 1 ? f->values : NULL,
                          outputs & 2 ? f->indices : NULL));
        bool is_right = true;
        for (size_t row = 0; row < rows; row++) {
            size_t at = row * n;
            if (outputs & 1)
                is_right &=
                    values_match(dtype, f->in + at * size, f->order + at, n, f->values + at * size);
            if (outputs & 2)
                is_right &= indices_match(f->indices + at, f->order + at, n);
        }
        CHECK(is_right);
    }
}

static void test_sort_all(void)
{
    uint64_t seed = 1;
    struct fixture f = fixture_create(100003);
    for (int dtype = 0; dtype < GN_DTYPE_COUNT; dtype++)
        for (int s = 0; s < size_count; s++)
            for (int fill = 0; fill < FILLS; fill++) {
                fill_row((gn_dtype)dtype, (enum fill)fill, sizes[s], &seed, f.in);
                check_sort(&f, (gn_dtype)dtype, 1, sizes[s], fill % 2 == 1);
                if (sizes[s] < 5000)
                    check_sort(&f, (gn_dtype)dtype, 1, sizes[s], fill % 2 == 0);
            }
    fixture_destroy(&f);
}

static void test_sort_rows(void)
{
    uint64_t seed = 2;
    struct fixture f = fixture_create(60000);
    for (int dtype = 0; dtype < GN_DTYPE_COUNT; dtype++)
        for (size_t columns = 1; columns <= 400; columns += 19) {
            size_t rows = 20 + check_random(&seed) % 80;
            fill_row((gn_dtype)dtype, (enum fill)(columns % 2), rows * columns, &seed, f.in);
            check_sort(&f, (gn_dtype)dtype, rows, columns, columns % 3 == 0);
        }
    fixture_destroy(&f);
}

/* Every element of the types of up to 16 bits, in one row. */
static void test_sort_exhaustive(void)
{
    struct fixture f = fixture_create(65536);
    static const gn_dtype dtypes[] = {GN_UINT8, GN_INT8,    GN_UINT16,
                                      GN_INT16, GN_FLOAT16, GN_BFLOAT16};
    for (int d = 0; d < 6; d++) {
        size_t size = gni_dtype_size(dtypes[d]), n = (size_t)1 << (8 * size);
        for (size_t i = 0; i < n; i++) {
            size_t bits = (i * 40503) % n;
            memcpy(f.in + i * size, &bits, size);
        }
        check_sort(&f, dtypes[d], 1, n, false);
        check_sort(&f, dtypes[d], 1, n, true);
    }
    fixture_destroy(&f);
}

/* Every length up to where the method changes, and a long row with each number of threads. */
static void test_sort_lengths(void)
{
    uint64_t seed = 3;
    struct fixture f = fixture_create(300001);
    for (size_t n = 0; n < 600; n++)
        for (int d = 0; d < 4; d++) {
            gn_dtype dtype = (gn_dtype[]){GN_FLOAT32, GN_INT64, GN_INT8, GN_UINT64}[d];
            fill_row(dtype, FILL_RANDOM, n, &seed, f.in);
            check_sort(&f, dtype, 1, n, n % 2 == 0);
        }
    int threads = gni_parallel_get_threads();
    for (int count = 1; count <= 5; count++) {
        CHECK_OK(gni_parallel_set_threads(count));
        fill_row(GN_FLOAT32, FILL_RANDOM, 300001, &seed, f.in);
        check_sort(&f, GN_FLOAT32, 1, 300001, count % 2 == 0);
        fill_row(GN_FLOAT64, FILL_RANDOM, 200000, &seed, f.in);
        check_sort(&f, GN_FLOAT64, 2, 100000, count % 2 == 1);
    }
    CHECK_OK(gni_parallel_set_threads(threads));
    fixture_destroy(&f);
}

/* The same without vector instructions, and with ranges that are merged after one split; less of it. */
static void test_sort_ways(void)
{
    bool is_quick = size_count < SIZES;
    size_count = SIZES - 1;
    for (int way = 0; way < 2; way++) {
        gni_vector_sort_tune(way == 1, way == 1 ? 1 : -1);
        if (!is_quick) {
            test_sort_all();
            test_sort_rows();
        }
        test_sort_lengths();
    }
    gni_vector_sort_tune(true, -1);
    size_count = is_quick ? SIZES - 1 : SIZES;
}

/* ---- topk ------------------------------------------------------------------------------------- */

static void check_topk(struct fixture *f, gn_dtype dtype, size_t rows, size_t n, size_t k,
                       bool is_largest)
{
    size_t size = gni_dtype_size(dtype);
    for (size_t row = 0; row < rows; row++)
        reference_sort(dtype, f->in + row * n * size, n, is_largest, f->order + row * n);
    CHECK_OK(gni_topk(f->in, dtype, rows, n, k, is_largest, true, f->values, f->indices));
    bool is_right = true;
    for (size_t row = 0; row < rows; row++) {
        is_right &= values_match(dtype, f->in + row * n * size, f->order + row * n, k,
                                 f->values + row * k * size);
        is_right &= indices_match(f->indices + row * k, f->order + row * n, k);
    }
    CHECK(is_right);
    memset(f->more, 0xaa, rows * k * sizeof(int64_t));
    CHECK_OK(gni_topk(f->in, dtype, rows, n, k, is_largest, false, NULL, f->more));
    CHECK_OK(gni_topk(f->in, dtype, rows, n, k, is_largest, true, f->values, NULL));
    CHECK(indices_match(f->indices, f->more, rows * k)); /* any order will do, but this is it */
}

static void test_topk(void)
{
    uint64_t seed = 4;
    struct fixture f = fixture_create(100003);
    for (int dtype = 0; dtype < GN_DTYPE_COUNT; dtype++)
        for (int s = 0; s < size_count; s++)
            for (int fill = 0; fill < FILLS; fill++) {
                size_t n = sizes[s];
                if (n > 5000 && (fill + dtype) % 3 != 0)
                    continue;
                fill_row((gn_dtype)dtype, (enum fill)fill, n, &seed, f.in);
                size_t ks[] = {0, 1, 2, 10, n / 9, n / 2, n};
                for (size_t i = 0; i < 7; i++)
                    if (ks[i] <= n && (n < 5000 || i == 3 || i == 4))
                        check_topk(&f, (gn_dtype)dtype, 1, n, ks[i], (i + (size_t)fill) % 2 == 0);
            }
    fill_row(GN_FLOAT32, FILL_RANDOM, 100000, &seed, f.in);
    check_topk(&f, GN_FLOAT32, 100, 1000, 7, true);
    check_topk(&f, GN_FLOAT32, 10, 10000, 1200, false);
    fixture_destroy(&f);
}

/* ---- unique ----------------------------------------------------------------------------------- */

static void check_unique(struct fixture *f, gn_dtype dtype, size_t n)
{
    size_t size = gni_dtype_size(dtype), groups = 0, found = 12345;
    int64_t *counts = f->indices, *inverse = f->more;
    reference_sort(dtype, f->in, n, false, f->order);
    CHECK_OK(gni_unique(f->in, dtype, n, f->values, inverse, counts, &found));
    bool is_right = true;
    int64_t in_group = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t here = f->order[i];
        struct number number = number_of(dtype, f->in + (size_t)here * size);
        if (i == 0 || number.is_nan || element_compare(dtype, f->in, f->order[i - 1], here) != 0) {
            is_right &= i == 0 || counts[groups - 1] == in_group;
            is_right &= memcmp(f->values + groups * size, f->in + (size_t)here * size, size) == 0;
            in_group = 0;
            groups++;
        }
        in_group++;
        is_right &= inverse[here] == (int64_t)groups - 1;
    }
    CHECK(is_right && (n == 0 || counts[groups - 1] == in_group));
    CHECK_U64(found, groups);
    unsigned char *values = (unsigned char *)f->order;
    CHECK_OK(gni_unique(f->in, dtype, n, values, NULL, NULL, &found));
    CHECK_U64(found, groups);
    CHECK(memcmp(values, f->values, groups * size) == 0);
}

/* One element by its number is what a sort has there, bit for bit. */
static void test_kth(void)
{
    uint64_t seed = 9;
    struct fixture f = fixture_create(100003);
    for (int dtype = 0; dtype < GN_DTYPE_COUNT; dtype++)
        for (int s = 0; s < size_count; s++)
            for (int fill = 0; fill < FILLS; fill++) {
                size_t n = sizes[s], size = gni_dtype_size((gn_dtype)dtype), wrong = 0;
                if (n == 0 || (n > 5000 && fill > FILL_EQUAL))
                    continue;
                fill_row((gn_dtype)dtype, (enum fill)fill, n, &seed, f.in);
                CHECK_OK(gni_sort(f.in, (gn_dtype)dtype, 1, n, false, f.values, NULL));
                size_t places[] = {0, n / 3, (n - 1) / 2, n - 1};
                for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
                    uint64_t found = 0;
                    CHECK_OK(gni_kth(f.in, (gn_dtype)dtype, n, places[i], &found));
                    wrong += memcmp(&found, f.values + places[i] * size, size) != 0;
                }
                CHECK_U64(wrong, 0);
            }
    fixture_destroy(&f);
}

static void test_unique(void)
{
    uint64_t seed = 5;
    struct fixture f = fixture_create(100003);
    for (int dtype = 0; dtype < GN_DTYPE_COUNT; dtype++)
        for (int s = 0; s < size_count; s++)
            for (int fill = 0; fill < FILLS; fill++) {
                if (sizes[s] > 5000 && fill > FILL_FEW)
                    continue;
                fill_row((gn_dtype)dtype, (enum fill)fill, sizes[s], &seed, f.in);
                check_unique(&f, (gn_dtype)dtype, sizes[s]);
            }
    fixture_destroy(&f);
}

/* ---- search ----------------------------------------------------------------------------------- */

static void check_search(gn_dtype dtype, const unsigned char *sorted, size_t count,
                         const unsigned char *values, size_t n, int64_t *positions)
{
    size_t size = gni_dtype_size(dtype);
    for (int is_right = 0; is_right < 2; is_right++) {
        gni_search_sorted(sorted, dtype, count, values, n, is_right != 0, positions);
        bool is_correct = true;
        for (size_t i = 0; i < n; i++) {
            struct number value = number_of(dtype, values + i * size);
            size_t before = 0;
            for (size_t j = 0; j < count; j++)
                before += number_compare(number_of(dtype, sorted + j * size), value) < is_right;
            is_correct &= positions[i] == (int64_t)before;
        }
        CHECK(is_correct);
    }
}

static void test_search(void)
{
    uint64_t seed = 6;
    struct fixture f = fixture_create(5000);
    for (int dtype = 0; dtype < GN_DTYPE_COUNT; dtype++)
        for (size_t count = 0; count < 300; count += 1 + count / 8) {
            fill_row((gn_dtype)dtype, (enum fill)(count % 2), count, &seed, f.in);
            CHECK_OK(gni_sort(f.in, (gn_dtype)dtype, 1, count, false, f.values, NULL));
            fill_row((gn_dtype)dtype, (enum fill)(count % 2), 200, &seed, f.in);
            check_search((gn_dtype)dtype, f.values, count, f.in, 200, f.indices);
        }
    fill_row(GN_FLOAT32, FILL_FEW, 5000, &seed, f.in);
    CHECK_OK(gni_sort(f.in, GN_FLOAT32, 1, 40, false, f.values, NULL));
    check_search(GN_FLOAT32, f.values, 40, f.in, 5000, f.indices);
    fixture_destroy(&f);
}

/* ---- memory that runs out --------------------------------------------------------------------- */

static gn_status task(int which, struct fixture *f, size_t *found)
{
    switch (which) {
    case 0:
        return gni_sort(f->in, GN_FLOAT32, 1, 2000, false, f->values, f->indices);
    case 1:
        return gni_sort(f->in, GN_FLOAT64, 10, 200, true, f->values, NULL);
    case 2:
        return gni_topk(f->in, GN_FLOAT32, 1, 2000, 5, true, true, f->values, f->indices);
    case 3:
        return gni_topk(f->in, GN_FLOAT32, 2, 1000, 500, true, true, f->values, f->indices);
    case 4:
        return gni_kth(f->in, GN_FLOAT32, 2000, 700, f->values);
    default:
        return gni_unique(f->in, GN_FLOAT32, 2000, f->values, f->indices, f->more, found);
    }
}

static void test_memory_runs_out(void)
{
    uint64_t seed = 7;
    struct fixture f = fixture_create(2000);
    fill_row(GN_FLOAT64, FILL_RANDOM, 2000, &seed, f.in);
    for (int which = 0; which < 6; which++) {
        size_t found = 4711, live = gni_host_live_count();
        memset(f.values, 0xaa, 16000);
        memset(f.indices, 0xaa, 16000);
        for (long nth = 1;; nth++) {
            gni_host_fail_after(nth);
            gn_status status = task(which, &f, &found);
            gni_host_fail_after(-1);
            CHECK_U64(gni_host_live_count(), live);
            if (status == GN_OK) {
                CHECK(nth > 1);
                break;
            }
            CHECK_U64(status, GN_ERROR_OUT_OF_HOST_MEMORY);
            CHECK(f.values[0] == 0xaa && f.values[7999] == 0xaa && found == 4711);
            CHECK_U64(f.indices[0], 0xaaaaaaaaaaaaaaaau);
        }
    }
    size_t found = 4711;
    CHECK_STATUS(gni_sort(f.in, GN_INT64, 1, SIZE_MAX / 4, false, f.values, f.indices),
                 GN_ERROR_OVERFLOW);
    CHECK_STATUS(gni_unique(f.in, GN_INT64, SIZE_MAX / 4, f.values, f.indices, NULL, &found),
                 GN_ERROR_OVERFLOW);
    fixture_destroy(&f);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "quick") == 0)
        size_count--; /* for builds that are slow */
    RUN(test_sort_all);
    RUN(test_sort_rows);
    RUN(test_sort_exhaustive);
    RUN(test_sort_lengths);
    RUN(test_sort_ways);
    RUN(test_topk);
    RUN(test_kth);
    RUN(test_unique);
    RUN(test_search);
    RUN(test_memory_runs_out);
    return check_result();
}
