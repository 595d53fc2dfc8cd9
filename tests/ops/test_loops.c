/*
 * test_loops.c: the innermost loops of the CPU.
 *
 * Every operation and type is compared with the scalar references of loops_reference.h, over special values and
 * random ones of all magnitudes. Every instruction set that the processor has must give the bits of the basic
 * one; NaN is NaN whatever its payload.
 *
 * With an argument the largest errors are printed.
 */
#include "check.h"
#include "loops_reference.h"

#include "ops/cpu/loops.h"

enum {
    ELEMENTS = 6000,
    DENSE = 200000,
    GUARD = 64, /* bytes behind a result that must stay */
};

static const char *const sets[] = {"basic", "avx2", "avx512"};

static bool is_verbose;
static uint64_t seed = 1;

static const struct {
    const char *name;
    int arity;
    enum gni_domain domain;
} ops[] = {
#define OP_INFO(NAME, name, arity, domain, ...) {#name, arity, GNI_DOMAIN_##domain},
    GNI_OP_LIST(OP_INFO)
#undef OP_INFO
};

static bool domain_has(enum gni_domain domain, gn_dtype dtype)
{
    bool is_floating = gni_dtype_kind(dtype) == GNI_KIND_FLOATING;
    if (gni_dtype_is_half(dtype))
        return domain == GNI_DOMAIN_SELECT;
    switch (domain) {
    case GNI_DOMAIN_NUMBER:
        return dtype != GN_BOOL;
    case GNI_DOMAIN_FLOAT:
        return is_floating;
    case GNI_DOMAIN_INTEGER:
        return !is_floating;
    default:
        return true;
    }
}

static gn_dtype result_type(enum gni_domain domain, gn_dtype dtype)
{
    return domain == GNI_DOMAIN_TEST || domain == GNI_DOMAIN_LOGIC ? GN_BOOL : dtype;
}

static gn_dtype operand_type(enum gni_domain domain, gn_dtype dtype, int operand)
{
    return domain == GNI_DOMAIN_SELECT && operand == 0 ? GN_BOOL : dtype;
}

/* Of a sum of float32, of which up to 8 numbers are added as float32: relative to the absolute values. */
#define SUM_BOUND 5e-7L

/* ---- arguments ------------------------------------------------------------------------------- */

static const double special_floats[] = {
    0.0,
    -0.0,
    1,
    -1,
    2,
    -2,
    3,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    INFINITY,
    -INFINITY,
    NAN,
    1e-30,
    -1e-30,
    1e30,
    FLT_MIN,
    FLT_MAX,
    -FLT_MAX,
    0x1p-149,
    -0x1p-149,
    16777216,
    16777217,
    -8388609.5,
    88.7,
    -103.9,
    1e5,
    3.14159265358979,
    1.5707963267948966,
};
static const double special_doubles[] = {DBL_MIN,    DBL_MAX, -DBL_MAX, 0x1p-1074,
                                         -0x1p-1074, 709.78,  -745.13,  1e22};
static const int64_t special_integers[] = {
    0,
    1,
    -1,
    2,
    -2,
    3,
    -3,
    7,
    8,
    15,
    16,
    31,
    32,
    63,
    64,
    100,
    INT8_MIN,
    INT8_MAX,
    INT16_MIN,
    INT16_MAX,
    INT32_MIN,
    INT32_MAX,
    INT64_MIN,
    INT64_MAX,
    46341,
    INT32_MIN + 1,
    INT64_MIN + 1,
};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static double uniform(void)
{
    return (double)(check_random(&seed) >> 11) * 0x1p-52 - 1;
}

static double random_float(gn_dtype dtype)
{
    uint64_t bits = check_random(&seed);
    float narrow;
    double wide;
    switch (check_random(&seed) % 6) {
    case 0:
        memcpy(&narrow, &bits, sizeof narrow);
        memcpy(&wide, &bits, sizeof wide);
        return dtype == GN_FLOAT64 ? wide : (double)narrow;
    case 1:
        return uniform() * 20;
    case 2:
        return uniform();
    case 3:
        return floor(uniform() * 30);
    case 4:
        return 1 + ldexp(uniform(), -(int)(bits % 30));
    default:
        return ldexp(uniform(), (int)(bits % 140) - 70);
    }
}

static gn_scalar special(gn_dtype dtype, size_t i)
{
    if (gni_dtype_kind(dtype) != GNI_KIND_FLOATING)
        return (gn_scalar){.kind = GN_INT64,
                           .integer = special_integers[i % COUNT_OF(special_integers)]};
    size_t floats = COUNT_OF(special_floats);
    size_t count = floats + (dtype == GN_FLOAT64 ? COUNT_OF(special_doubles) : 0);
    i %= count;
    return (gn_scalar){.kind = GN_FLOAT64,
                       .floating = i < floats ? special_floats[i] : special_doubles[i - floats]};
}

static gn_scalar random_scalar(gn_dtype dtype)
{
    if (gni_dtype_kind(dtype) == GNI_KIND_FLOATING)
        return (gn_scalar){.kind = GN_FLOAT64, .floating = random_float(dtype)};
    int64_t value = (int64_t)check_random(&seed);
    uint64_t way = check_random(&seed) % 3;
    if (way)
        value = way == 1 ? (int64_t)((uint64_t)value % 80) - 5 : value >> (value & 63);
    return (gn_scalar){.kind = GN_INT64, .integer = value};
}

/* First every special value with every other, then random ones. */
static void fill(gn_dtype dtype, void *elements, size_t count, int operand)
{
    for (size_t i = 0; i < count; i++) {
        size_t specials = 41;
        gn_scalar value = i < specials * specials
                              ? special(dtype, operand % 2 ? i / specials : i % specials)
                              : random_scalar(dtype);
        gni_scalar_store(value, dtype, (char *)elements + i * gni_dtype_size(dtype));
    }
}

/* ---- one operation --------------------------------------------------------------------------- */

static double element(gn_dtype dtype, const void *elements, size_t i)
{
    gn_scalar value = gni_scalar_load(dtype, (const char *)elements + i * gni_dtype_size(dtype));
    return gni_scalar_floating(value);
}

static __int128 element_integer(gn_dtype dtype, const void *elements, size_t i)
{
    return integer_of(dtype, (const char *)elements + i * gni_dtype_size(dtype));
}

static void compare(enum gni_op op, gn_dtype dtype, const void *const *in, const void *out,
                    size_t count)
{
    gn_dtype result = result_type(ops[op].domain, dtype);
    double bound = bound_of(op, dtype), worst = 0, worst_at = 0;
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        const void *second = ops[op].arity > 1 ? in[1] : in[0];
        const void *third = ops[op].arity > 2 ? in[2] : in[0];
        if (gni_dtype_kind(dtype) == GNI_KIND_FLOATING) {
            double a = element(dtype, in[0], i), b = element(dtype, second, i);
            double c = element(dtype, third, i);
            long double expected = float_reference(op, dtype, a, b, c);
            double actual = element(result, out, i), error;
            if (result == GN_BOOL)
                error = actual == (double)expected ? 0 : INFINITY;
            else
                error = error_of(dtype, actual, expected, scale_of(op, dtype, a, b, c));
            if (!(error <= bound) && ++wrong <= 3)
                fprintf(stderr, "    %s(%a, %a) is %a, not %La: %g ulp\n", ops[op].name, a, b,
                        actual, expected, error);
            if (error > worst)
                worst = error, worst_at = a;
        } else {
            __int128 a = element_integer(dtype, in[0], i), b = element_integer(dtype, second, i);
            __int128 c = element_integer(dtype, third, i);
            __int128 expected = integer_reference(op, dtype, a, b, c);
            __int128 actual = element_integer(result, out, i);
            if (actual != expected && ++wrong <= 3)
                fprintf(
                    stderr, "    %s(%" PRIx64 ", %" PRIx64 ") is %" PRIx64 ", not %" PRIx64 "\n",
                    ops[op].name, (uint64_t)a, (uint64_t)b, (uint64_t)actual, (uint64_t)expected);
        }
    }
    if (wrong)
        fprintf(stderr, "    %s of %s with %s: %zu of %zu wrong\n", ops[op].name,
                gn_dtype_name(dtype), gni_loops_name(), wrong, count);
    CHECK(wrong == 0);
    if (is_verbose && worst > 0.5)
        printf("     %-12s %s: %.3f ulp at %a\n", ops[op].name, gn_dtype_name(dtype), worst,
               worst_at);
}

static void compare_where(gn_dtype dtype, const void *const *in, const void *out, size_t count)
{
    size_t size = gni_dtype_size(dtype);
    for (size_t i = 0; i < count; i++) {
        const char *chosen = in[((const uint8_t *)in[0])[i] ? 1 : 2];
        CHECK(memcmp((const char *)out + i * size, chosen + i * size, size) == 0);
    }
}

/* Equal bits, or two NaNs. */
static bool is_same(gn_dtype dtype, const void *a, const void *b, size_t count)
{
    size_t size = gni_dtype_size(dtype);
    if (memcmp(a, b, count * size) == 0)
        return true;
    for (size_t i = 0; i < count; i++) {
        if (memcmp((const char *)a + i * size, (const char *)b + i * size, size) != 0 &&
            !(isnan(element(dtype, a, i)) && isnan(element(dtype, b, i))))
            return false;
    }
    return true;
}

static void *buffer(size_t bytes)
{
    void *result = NULL;
    if (posix_memalign(&result, 64, bytes + GUARD))
        abort();
    memset(result, 0xa5, bytes + GUARD);
    return result;
}

/* Any count, at addresses that are aligned for one element only, and in place of each operand. */
static void check_shapes(gni_loop loop, const void *const *in, const gn_dtype *types, int arity,
                         const void *expected, gn_dtype result)
{
    static const size_t counts[] = {0, 1, 3, 31, 33, 1000};
    size_t size = gni_dtype_size(result);
    for (size_t c = 0; c < COUNT_OF(counts); c++) {
        size_t count = counts[c], start = c * 7;
        for (int place = -1; place < arity; place++) { /* -1: apart */
            if (place >= 0 && gni_dtype_size(types[place]) != size)
                continue;
            void *copies[4];
            const void *operands[3];
            for (int k = 0; k <= arity; k++) {
                gn_dtype type = k == arity ? result : types[k];
                size_t step = gni_dtype_size(type);
                copies[k] = buffer((count + 1) * step);
                char *first = (char *)copies[k] + step;
                if (k < arity) {
                    memcpy(first, (const char *)in[k] + start * step, count * step);
                    operands[k] = first;
                }
            }
            char *out = (char *)copies[place >= 0 ? place : arity] + size;
            loop(out, operands, count);
            CHECK(is_same(result, out, (const char *)expected + start * size, count));
            for (size_t i = 0; i < GUARD; i++)
                CHECK((unsigned char)out[count * size + i] == 0xa5);
            for (int k = 0; k <= arity; k++)
                free(copies[k]);
        }
    }
}

/* Runs a loop of each set over the same operands; the first result stays in `out`. */
static void run_sets(gni_loop (*find)(int, int), int first, int second, const void *const *in,
                     void *out, gn_dtype result, size_t count)
{
    void *other = buffer(count * gni_dtype_size(result));
    for (size_t s = 0; s < COUNT_OF(sets); s++) {
        if (!gni_loops_use(sets[s]))
            continue;
        CHECK_TEXT(gni_loops_name(), sets[s]);
        gni_loop loop = find(first, second);
        loop(s ? other : out, in, count);
        if (s && !is_same(result, out, other, count)) {
            check_fail(__FILE__, __LINE__, "the sets agree");
            fprintf(stderr, "    %s differs for %d, %d\n", sets[s], first, second);
        }
    }
    free(other);
}

static gni_loop find_op(int op, int dtype)
{
    return gni_loop_find((enum gni_op)op, (gn_dtype)dtype);
}

static void check_op(enum gni_op op, gn_dtype dtype, size_t count)
{
    gn_dtype types[3], result = result_type(ops[op].domain, dtype);
    void *operands[3];
    const void *in[3];
    for (int k = 0; k < ops[op].arity; k++) {
        types[k] = operand_type(ops[op].domain, dtype, k);
        in[k] = operands[k] = buffer(count * gni_dtype_size(types[k]));
        fill(types[k], operands[k], count, k);
    }
    void *out = buffer(count * gni_dtype_size(result));
    run_sets(find_op, (int)op, (int)dtype, in, out, result, count);
    if (op == GNI_OP_WHERE)
        compare_where(dtype, in, out, count);
    else
        compare(op, dtype, in, out, count);
    for (size_t s = 0; s < COUNT_OF(sets); s++) {
        if (gni_loops_use(sets[s]))
            check_shapes(gni_loop_find(op, dtype), in, types, ops[op].arity, out, result);
    }
    for (int k = 0; k < ops[op].arity; k++)
        free(operands[k]);
    free(out);
}

static void test_every_operation(void)
{
    for (int op = 0; op < GNI_OP_COUNT; op++) {
        for (int dtype = 0; dtype < GN_DTYPE_COUNT; dtype++) {
            bool has = gni_loop_find((enum gni_op)op, (gn_dtype)dtype) != NULL;
            CHECK(has == domain_has(ops[op].domain, (gn_dtype)dtype));
            bool is_dense = ops[op].domain == GNI_DOMAIN_FLOAT || op == GNI_OP_POWER;
            is_dense = is_dense && (dtype == GN_FLOAT32 || dtype == GN_FLOAT64);
            if (has)
                check_op((enum gni_op)op, (gn_dtype)dtype, is_dense ? DENSE : ELEMENTS);
        }
    }
    gni_loops_use(NULL);
}

/* A neighbour that needs the slow way must not change a result. */
static void test_neighbours(void)
{
    static const enum gni_op circular[] = {GNI_OP_SIN, GNI_OP_COS, GNI_OP_TAN};
    for (size_t k = 0; k < COUNT_OF(circular); k++) {
        float in[1500], out[1500], again[1500];
        const void *operands[] = {in};
        for (size_t i = 0; i < 1500; i++)
            in[i] = (float)(uniform() * 1e5);
        gni_loop loop = gni_loop_find(circular[k], GN_FLOAT32);
        loop(out, operands, 1500);
        in[700] = 1e20f;
        loop(again, operands, 1500);
        CHECK(memcmp(out, again, 700 * sizeof *out) == 0);
        CHECK(memcmp(out + 701, again + 701, 799 * sizeof *out) == 0);
    }
}

/* A block without exceptions takes a shorter way: it is as exact, and one exception beside them changes no result. */
static void test_plain_blocks(void)
{
    enum {
        COUNT = 1500,
        EXCEPTION = 700,
    };
    static const enum gni_op some[] = {GNI_OP_LOG, GNI_OP_LOG2, GNI_OP_LOG10, GNI_OP_ATAN2,
                                       GNI_OP_POWER};
    static const gn_dtype types[] = {GN_FLOAT32, GN_FLOAT64};
    for (size_t k = 0; k < COUNT_OF(some) * COUNT_OF(types); k++) {
        enum gni_op op = some[k / COUNT_OF(types)];
        gn_dtype dtype = types[k % COUNT_OF(types)];
        size_t size = gni_dtype_size(dtype);
        char *first = buffer(COUNT * size), *second = buffer(COUNT * size);
        char *out = buffer(COUNT * size), *again = buffer(COUNT * size);
        const void *in[] = {first, second};
        for (size_t i = 0; i < COUNT; i++) {
            double x = ldexp(1 + fabs(uniform()), (int)(i % 120) - 50), y = 3 * uniform();
            gni_scalar_store((gn_scalar){.kind = GN_FLOAT64, .floating = x}, dtype,
                             first + i * size);
            gni_scalar_store((gn_scalar){.kind = GN_FLOAT64, .floating = y}, dtype,
                             second + i * size);
        }
        run_sets(find_op, (int)op, (int)dtype, in, out, dtype, COUNT);
        compare(op, dtype, in, out, COUNT);
        gni_scalar_store((gn_scalar){.kind = GN_FLOAT64, .floating = -INFINITY}, dtype,
                         first + EXCEPTION * size);
        run_sets(find_op, (int)op, (int)dtype, in, again, dtype, COUNT);
        compare(op, dtype, in, again, COUNT);
        CHECK(memcmp(out, again, EXCEPTION * size) == 0);
        size_t behind = (EXCEPTION + 1) * size;
        CHECK(memcmp(out + behind, again + behind, COUNT * size - behind) == 0);
        free(first);
        free(second);
        free(out);
        free(again);
    }
    gni_loops_use(NULL);
}

/* ---- conversions ----------------------------------------------------------------------------- */

static gni_loop find_convert(int from, int to)
{
    return gni_loop_convert((gn_dtype)from, (gn_dtype)to);
}

static gni_loop find_round(int half, int unused)
{
    (void)unused;
    return gni_loop_round((gn_dtype)half);
}

/* Floating values that an integer type does not hold give anything: they are left out. */
static void make_fit(gn_dtype from, gn_dtype to, void *elements, size_t count)
{
    if (gni_dtype_kind(from) != GNI_KIND_FLOATING || gni_dtype_kind(to) != GNI_KIND_INTEGER)
        return;
    double limit = gni_dtype_size(to) == 8 || to == GN_UINT32 ? 0x1p63 : 0x1p31;
    double most = to == GN_UINT64 ? 0x1p64 : limit;
    for (size_t i = 0; i < count; i++) {
        if (!(element(from, elements, i) > -limit && element(from, elements, i) < most))
            memset((char *)elements + i * gni_dtype_size(from), 0, gni_dtype_size(from));
    }
}

static void check_convert(gn_dtype from, gn_dtype to)
{
    size_t count = gni_dtype_is_half(from) ? 65536 : ELEMENTS;
    void *in = buffer(count * 8), *out = buffer(count * 8);
    const void *operands[] = {in};
    fill(from, in, count, 0);
    if (gni_dtype_is_half(from)) {
        for (size_t i = 0; i < count; i++)
            ((uint16_t *)in)[i] = (uint16_t)i;
    }
    make_fit(from, to, in, count);
    run_sets(find_convert, (int)from, (int)to, operands, out, to, count);
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        char expected[8];
        const char *source = (const char *)in + i * gni_dtype_size(from);
        gni_scalar_store(gni_scalar_load(from, source), to, expected);
        wrong += !is_same(to, (const char *)out + i * gni_dtype_size(to), expected, 1);
    }
    if (wrong)
        fprintf(stderr, "    %s to %s: %zu\n", gn_dtype_name(from), gn_dtype_name(to), wrong);
    CHECK(wrong == 0);
    if (from == to)
        CHECK(memcmp(in, out, count * gni_dtype_size(to)) == 0);
    for (size_t s = 0; s < COUNT_OF(sets); s++) {
        if (gni_loops_use(sets[s]))
            check_shapes(gni_loop_convert(from, to), operands, &from, 1, out, to);
    }
    free(in);
    free(out);
}

static void test_conversions(void)
{
    for (int from = 0; from < GN_DTYPE_COUNT; from++) {
        for (int to = 0; to < GN_DTYPE_COUNT; to++)
            check_convert((gn_dtype)from, (gn_dtype)to);
    }
}

static void test_round(void)
{
    for (gn_dtype half = GN_FLOAT16; half <= GN_BFLOAT16; half++) {
        float *in = buffer(DENSE * sizeof *in), *out = buffer(DENSE * sizeof *out);
        const void *operands[] = {in};
        fill(GN_FLOAT32, in, DENSE, 0);
        run_sets(find_round, (int)half, 0, operands, out, GN_FLOAT32, DENSE);
        for (size_t i = 0; i < DENSE; i++) {
            float expected = half == GN_FLOAT16 ? gni_float16_to(gni_float16_from(in[i]))
                                                : gni_bfloat16_to(gni_bfloat16_from(in[i]));
            CHECK(is_same(GN_FLOAT32, &expected, &out[i], 1));
        }
        gn_dtype type = GN_FLOAT32;
        check_shapes(gni_loop_round(half), operands, &type, 1, out, GN_FLOAT32);
        free(in);
        free(out);
    }
}

/* Bytes that are neither 0 nor 1 are true. */
static void test_odd_bools(void)
{
    const uint8_t in[] = {0, 1, 2, 255}, other[] = {2, 2, 2, 2};
    const void *operands[] = {in, other};
    for (size_t s = 0; s < COUNT_OF(sets); s++) {
        if (!gni_loops_use(sets[s]))
            continue;
        uint8_t out[4];
        gni_loop_find(GNI_OP_EQUAL, GN_BOOL)(out, operands, 4);
        CHECK(!out[0] && out[1] == 1 && out[2] == 1 && out[3] == 1);
        gni_loop_find(GNI_OP_BITWISE_NOT, GN_BOOL)(out, operands, 4);
        CHECK(out[0] == 1 && !out[1] && !out[2] && !out[3]);
        int64_t sum = 5;
        gni_reducers_find(GNI_REDUCTION_SUM, GN_BOOL).one(&sum, in, 4);
        CHECK_U64(sum, 8);
        gni_loop_convert(GN_BOOL, GN_BOOL)(out, operands, 4);
        CHECK(!out[0] && out[1] == 1 && out[2] == 1 && out[3] == 1);
    }
    gni_loops_use(NULL);
}

/* ---- folds ----------------------------------------------------------------------------------- */

static gn_dtype accumulator_type(enum gni_reduction reduction, gn_dtype dtype)
{
    if (reduction == GNI_REDUCTION_MAXIMUM || reduction == GNI_REDUCTION_MINIMUM)
        return dtype;
    if (reduction == GNI_REDUCTION_ANY || reduction == GNI_REDUCTION_ALL)
        return GN_BOOL;
    return gni_dtype_kind(dtype) == GNI_KIND_FLOATING ? GN_FLOAT64 : GN_INT64;
}

static __int128 fold_integer_reference(enum gni_reduction reduction, __int128 a, __int128 x)
{
    switch (reduction) {
    case GNI_REDUCTION_SUM:
        return (int64_t)((uint64_t)a + (uint64_t)x);
    case GNI_REDUCTION_PRODUCT:
        return (int64_t)((uint64_t)a * (uint64_t)x);
    case GNI_REDUCTION_MAXIMUM:
        return x > a ? x : a;
    case GNI_REDUCTION_MINIMUM:
        return x < a ? x : a;
    case GNI_REDUCTION_ANY:
        return a || x;
    default:
        return a && x;
    }
}

static long double fold_float_reference(enum gni_reduction reduction, long double a, long double x)
{
    switch (reduction) {
    case GNI_REDUCTION_SUM:
        return a + x;
    case GNI_REDUCTION_PRODUCT:
        return a * x;
    case GNI_REDUCTION_MAXIMUM:
        return maximum_reference(a, x);
    case GNI_REDUCTION_MINIMUM:
        return -maximum_reference(-a, -x);
    case GNI_REDUCTION_ANY:
        return a != 0 || x != 0;
    default:
        return a != 0 && x != 0;
    }
}

static void check_fold(enum gni_reduction reduction, gn_dtype dtype, const void *in, size_t count)
{
    gn_dtype type = accumulator_type(reduction, dtype);
    bool is_floating = gni_dtype_kind(dtype) == GNI_KIND_FLOATING;
    char total[8], basic[8] = {0};
    gn_scalar start = {.kind = GN_INT64, .integer = check_random(&seed) % 2 != 0};
    gni_scalar_store(start, type, total);
    __int128 integer = element_integer(type, total, 0);
    long double floating = element(type, total, 0), largest = 1;
    for (size_t i = 0; i < count; i++) {
        if (is_floating)
            floating = fold_float_reference(reduction, floating, element(dtype, in, i));
        else
            integer = fold_integer_reference(reduction, integer, element_integer(dtype, in, i));
        largest += is_floating ? fabsl(element(dtype, in, i)) : 0;
    }
    for (size_t s = 0; s < COUNT_OF(sets); s++) {
        if (!gni_loops_use(sets[s]))
            continue;
        gni_scalar_store(start, type, total);
        gni_reducers_find(reduction, dtype).one(total, in, count);
        if (s == 0)
            memcpy(basic, total, sizeof total);
        CHECK(is_same(type, basic, total, 1));
        double actual = element(type, total, 0);
        if (!is_floating)
            CHECK(element_integer(type, total, 0) == integer);
        else if (reduction == GNI_REDUCTION_SUM)
            CHECK(isnan(floating) ? isnan(actual)
                                  : actual == (double)floating ||
                                        fabsl(actual - floating) <=
                                            (dtype == GN_FLOAT32 ? SUM_BOUND : 1e-14L) * largest);
        else if (reduction == GNI_REDUCTION_PRODUCT)
            CHECK(isnan(floating) ? isnan(actual)
                                  : actual == (double)floating ||
                                        fabsl(actual - floating) <= 1e-11L * fabsl(floating));
        else
            CHECK(error_of(dtype, actual, floating, 0) == 0);
    }
}

/* Near 1, so that products stay finite. */
static void fill_fold(gn_dtype dtype, void *elements, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        gn_scalar value = random_scalar(dtype);
        if (value.kind == GN_FLOAT64)
            value.floating = (uniform() < 0 ? -1 : 1) * exp2(uniform() / 8);
        gni_scalar_store(value, dtype, (char *)elements + i * gni_dtype_size(dtype));
    }
}

static void test_folds(void)
{
    static const size_t counts[] = {0, 1, 3, 31, 33, 1000, 5000, 9001};
    char *in = buffer(9002 * 8);
    for (int reduction = 0; reduction < GNI_REDUCTION_COUNT; reduction++) {
        for (int dtype = 0; dtype < GN_DTYPE_COUNT; dtype++) {
            bool has =
                gni_reducers_find((enum gni_reduction)reduction, (gn_dtype)dtype).one != NULL;
            CHECK(has == !gni_dtype_is_half((gn_dtype)dtype));
            for (size_t c = 0; has && c < COUNT_OF(counts); c++) {
                size_t size = gni_dtype_size((gn_dtype)dtype);
                fill_fold((gn_dtype)dtype, in, 9002);
                check_fold((enum gni_reduction)reduction, (gn_dtype)dtype, in + size, counts[c]);
                memset(in, c % 2 ? 0xff : 0, 9002 * 8); /* all true or false; NaN */
                check_fold((enum gni_reduction)reduction, (gn_dtype)dtype, in + size, counts[c]);
                fill((gn_dtype)dtype, in, 40, 0);
                if (reduction >= GNI_REDUCTION_MAXIMUM)
                    check_fold((enum gni_reduction)reduction, (gn_dtype)dtype, in + size, 12);
            }
        }
    }
    free(in);
    gni_loops_use(NULL);
}

/* The forms for short rows and for columns take one element after the other into each accumulator. */
static void check_forms(enum gni_reduction reduction, gn_dtype dtype, const char *in)
{
    enum {
        MOST = 40
    };
    struct gni_reducers folds = gni_reducers_find(reduction, dtype);
    size_t size = gni_dtype_size(dtype);
    bool is_kept = reduction >= GNI_REDUCTION_MAXIMUM;
    bool is_truth = reduction == GNI_REDUCTION_ANY || reduction == GNI_REDUCTION_ALL;
    size_t wide = is_truth ? 1 : is_kept ? size : 8;
    for (size_t rows = 1; rows <= MOST; rows += 13)
        for (size_t columns = 1; columns <= MOST; columns += columns < 5 ? 1 : 9) {
            char expected[MOST * 8], by_rows[MOST * 8], by_columns[MOST * 8];
            for (size_t i = 0; i < rows; i++) /* any values of the type that are no NaN */
                for (size_t k = 0; k < wide; k++)
                    expected[i * wide + k] = is_truth ? reduction == GNI_REDUCTION_ALL : 0;
            memcpy(by_rows, expected, sizeof expected);
            memcpy(by_columns, expected, sizeof expected);
            for (size_t i = 0; i < rows; i++)
                for (size_t j = 0; j < columns; j++)
                    folds.one(expected + i * wide, in + (i * columns + j) * size, 1);
            folds.short_rows(by_rows, in, rows, columns);
            CHECK(memcmp(expected, by_rows, rows * wide) == 0);
            char *column = buffer(rows * size);
            for (size_t j = 0; j < columns; j++) {
                for (size_t i = 0; i < rows; i++)
                    memcpy(column + i * size, in + (i * columns + j) * size, size);
                folds.columns(by_columns, column, rows);
            }
            free(column);
            CHECK(memcmp(expected, by_columns, rows * wide) == 0);
        }
}

static void test_fold_forms(void)
{
    char *in = buffer(1600 * 8);
    for (size_t s = 0; s < COUNT_OF(sets); s++) {
        if (!gni_loops_use(sets[s]))
            continue;
        for (int reduction = 0; reduction <= GNI_REDUCTION_ALL; reduction++)
            for (int dtype = 0; dtype < GN_DTYPE_COUNT; dtype++) {
                if (gni_dtype_is_half((gn_dtype)dtype))
                    continue;
                fill_fold((gn_dtype)dtype, in, 1600);
                check_forms((enum gni_reduction)reduction, (gn_dtype)dtype, in);
            }
    }
    free(in);
    gni_loops_use(NULL);
}

/* Elements at every distance become neighbours, and nothing behind them is written. */
static void test_gathers(void)
{
    enum {
        LONGEST = 131,
        STEP_MOST = 9,
        WIDEST = 8,
    };
    static const int64_t steps[] = {0, 1, 2, 3, STEP_MOST, -1, -2, -5};
    size_t most = (size_t)LONGEST * STEP_MOST * WIDEST;
    unsigned char *memory = buffer(2 * most), *out = buffer(LONGEST * WIDEST + GUARD);
    for (size_t i = 0; i < 2 * most; i++)
        memory[i] = (unsigned char)(i * 37 + i / 251);
    for (size_t s = 0; s < COUNT_OF(sets); s++) {
        if (!gni_loops_use(sets[s]))
            continue;
        for (size_t size = 1; size <= WIDEST; size *= 2)
            for (size_t k = 0; k < COUNT_OF(steps); k++)
                for (size_t count = 0; count <= LONGEST; count += count < 20 ? 1 : 37) {
                    memset(out, 0xa5, LONGEST * WIDEST + GUARD);
                    gni_gather_find(size)(out, memory + most, steps[k], count);
                    for (size_t i = 0; i < count; i++)
                        CHECK(memcmp(out + i * size,
                                     memory + (int64_t)most + (int64_t)(i * size) * steps[k],
                                     size) == 0);
                    for (size_t i = 0; i < GUARD; i++)
                        CHECK(out[count * size + i] == 0xa5);
                }
    }
    free(memory);
    free(out);
    gni_loops_use(NULL);
}

/* The sum of squares has the bits of the fold of the squares in double. */
static void test_fold_squares(void)
{
    enum {
        LONGEST = 9000, /* runs are halved */
    };
    float *narrow = buffer(LONGEST * sizeof *narrow);
    double *wide = buffer(LONGEST * sizeof *wide), *squares = buffer(LONGEST * sizeof *squares);
    for (size_t i = 0; i < LONGEST; i++) {
        narrow[i] = (float)ldexp(uniform(), (int)(i % 80) - 40);
        wide[i] = narrow[i];
    }
    for (size_t s = 0; s < COUNT_OF(sets); s++) {
        if (!gni_loops_use(sets[s]))
            continue;
        for (size_t count = 0; count <= LONGEST; count += count < 70 ? 1 : 893) {
            double expected = 0.25, of_narrow = 0.25, of_wide = 0.25;
            for (size_t i = 0; i < count; i++)
                squares[i] = wide[i] * wide[i];
            gni_reducers_find(GNI_REDUCTION_SUM, GN_FLOAT64).one(&expected, squares, count);
            gni_reducers_find_squares(GN_FLOAT32).one(&of_narrow, narrow, count);
            gni_reducers_find_squares(GN_FLOAT64).one(&of_wide, wide, count);
            CHECK(expected == of_narrow && expected == of_wide);
        }
    }
    free(narrow);
    free(wide);
    free(squares);
    gni_loops_use(NULL);
}

static void test_fold_signed_zeros_and_nan(void)
{
    float zeros[40];
    for (size_t i = 0; i < 40; i++)
        zeros[i] = i % 3 ? 0.0f : -0.0f;
    float largest = -0.0f, smallest = 0.0f;
    gni_reducers_find(GNI_REDUCTION_MAXIMUM, GN_FLOAT32).one(&largest, zeros, 40);
    gni_reducers_find(GNI_REDUCTION_MINIMUM, GN_FLOAT32).one(&smallest, zeros, 40);
    CHECK(!signbit(largest) && signbit(smallest));
    zeros[38] = NAN;
    gni_reducers_find(GNI_REDUCTION_MAXIMUM, GN_FLOAT32).one(&largest, zeros, 40);
    CHECK(isnan(largest));
    double sum = -0.0, none = -0.0;
    gni_reducers_find(GNI_REDUCTION_SUM, GN_FLOAT64).one(&none, &sum, 1);
    CHECK(signbit(none));
}

/* Sums of products are those of a reducer that gets the products, to the bit; row loops are loops whose one operand is one
 * number for each row. Numbers that are too large for float32 on the way are no infinity. */
static void test_loops_of_rows(void)
{
    enum {
        COUNT = 5000,
    };
    static float x[COUNT], y[COUNT], products[COUNT];
    static const size_t counts[] = {0,   1,   31,  32,   33,   63,   255,  256,
                                    257, 288, 289, 1023, 4096, 4097, COUNT};
    for (size_t i = 0; i < COUNT; i++) {
        x[i] = (float)(uniform() - 0.5);
        y[i] = (float)(uniform() - 0.5);
        products[i] = x[i] * y[i];
    }
    for (size_t s = 0; s < COUNT_OF(sets); s++) {
        if (!gni_loops_use(sets[s]))
            continue;
        gni_reducer sum = gni_reducers_find(GNI_REDUCTION_SUM, GN_FLOAT32).one;
        for (size_t c = 0; c < COUNT_OF(counts); c++) {
            double one = 0.5, other = 0.5;
            sum(&one, products, counts[c]);
            gni_product_reducer_find()(&other, x, y, counts[c]);
            CHECK(one == other);
        }
        float large[64], ones[64];
        for (size_t i = 0; i < 64; i++) {
            large[i] = i % 2 == 0 ? 3e38f : -3e38f; /* lanes of one sign */
            ones[i] = 1;
        }
        double exact = 0, found = 0, same = 0;
        for (size_t i = 0; i < 64; i++)
            exact += (double)large[i];
        sum(&found, large, 64);
        gni_product_reducer_find()(&same, large, ones, 64);
        CHECK(found == exact && same == exact);
        for (int op = GNI_OP_ADD; op <= GNI_OP_DIVIDE; op++)
            for (int place = 0; place < 2; place++) {
                gni_row_loop loop = gni_row_loop_find((enum gni_op)op, GN_FLOAT32, place);
                float spread[3 * 37], expected[3 * 37], made[3 * 37];
                if (loop == NULL)
                    continue;
                for (size_t i = 0; i < 3 * 37; i++)
                    spread[i] = y[i / 37];
                const void *in[] = {place == 0 ? spread : x, place == 0 ? x : spread};
                gni_loop_find((enum gni_op)op, GN_FLOAT32)(expected, in, 3 * 37);
                loop(made, x, y, 3, 37);
                CHECK(memcmp(made, expected, sizeof made) == 0);
            }
        CHECK(gni_row_loop_find(GNI_OP_MULTIPLY, GN_FLOAT32, 1) != NULL);
        CHECK(gni_row_loop_find(GNI_OP_MULTIPLY, GN_INT32, 1) == NULL);
        CHECK(gni_row_loop_find(GNI_OP_MAXIMUM, GN_FLOAT32, 1) == NULL);
    }
    (void)gni_loops_use(NULL);
}

static void test_long_sum(void)
{
    size_t count = 10000000, run = 1024;
    float *in = buffer(count * sizeof *in);
    long double expected = 0, absolute = 0;
    for (size_t i = 0; i < count; i++) {
        in[i] = (float)(uniform() + (i % 2 ? 0.25 : 0.5));
        expected += in[i];
        absolute += fabsl(in[i]);
    }
    double sum = 0, whole = 0;
    gni_reducer fold = gni_reducers_find(GNI_REDUCTION_SUM, GN_FLOAT32).one;
    for (size_t i = 0; i < count; i += run)
        fold(&sum, in + i, count - i < run ? count - i : run);
    fold(&whole, in, count);
    CHECK(fabsl(sum - expected) <= 1e-9L * absolute); /* rounding up and down */
    CHECK(fabsl(whole - expected) <= 1e-9L * absolute);
    free(in);
}

int main(int argc, char **argv)
{
    (void)argv;
    is_verbose = argc > 1;
    CHECK(!gni_loops_use("none such"));
    CHECK(gni_loops_use("basic"));
    CHECK(gni_loops_use(NULL));
    printf("     loops: %s\n", gni_loops_name());
    RUN(test_every_operation);
    RUN(test_neighbours);
    RUN(test_plain_blocks);
    RUN(test_conversions);
    RUN(test_round);
    RUN(test_odd_bools);
    RUN(test_gathers);
    RUN(test_folds);
    RUN(test_fold_forms);
    RUN(test_fold_squares);
    RUN(test_fold_signed_zeros_and_nan);
    RUN(test_long_sum);
    RUN(test_loops_of_rows);
    return check_result();
}
