/*
 * cpu_scan.c: elements become the accumulating type a block at a time, are scanned there, and go back.
 *
 * Rows (inner is 1) are scanned along themselves: many rows are divided among threads; of few long ones, the
 * totals of all blocks come first, then each block starts from the totals before it. A thread that has a row
 * to itself does both at once, with the same additions. Elsewhere, a strip of neighbouring columns is scanned
 * together.
 */
#include "ops/cpu/cpu_scan.h"

#include "base/checked.h"
#include "base/host.h"
#include "base/parallel.h"

#include <math.h>
#include <string.h>

enum {
    CHUNK = 512,          /* elements that are converted at a time */
    STRIP = 64,           /* columns that are scanned together */
    SCAN_GRAIN = 1 << 14, /* elements that are worth waking a thread for */
};

/* A total of any accumulating type; an array of them has room for an array of each. */
union accumulator {
    int64_t integer;
    uint64_t natural; /* of uint64 */
    float single;
    double wide;
};

/* What differs between the accumulating types. Pointers are to arrays of that type. */
struct scan_loops {
    void (*load)(gn_dtype dtype, const void *in, size_t n, void *values);
    void (*store)(gn_dtype dtype, const void *values, size_t n, void *out);
    /* Scans n values in place, from *running; *total takes them all as well. One of the two may be NULL: then there are
     * totals alone, or results alone. Starts where they stand. */
    void (*line)(enum gni_scan op, void *values, size_t n, void *running, void *total);
    /* The largest or smallest values up to each, in place, from *running, which was at *place: places[i] is where. The
     * first value is number `at`. */
    void (*place)(enum gni_scan op, void *values, size_t n, void *running, int64_t *place,
                  int64_t *places, int64_t at);
    /* accumulators[i] = values[i] = op(accumulators[i], values[i]); places[i] = at if it is values[i]. */
    void (*strip)(enum gni_scan op, void *values, size_t n, void *accumulators, int64_t *places,
                  int64_t at);
    void (*identity)(enum gni_scan op, size_t n, void *accumulators);
};

struct scan {
    enum gni_scan op;
    const struct scan_loops *loops;
    const unsigned char *in;
    gn_dtype dtype;
    size_t size; /* of an element of `in` */
    unsigned char *out;
    gn_dtype out_dtype;
    size_t out_size;
    int64_t *indices;
    size_t length;
    size_t inner;
    size_t strips;            /* of one outer index */
    size_t block;             /* elements of a block */
    size_t blocks;            /* of one row */
    union accumulator *carry; /* for each block: its total, then what comes before it */
};

/* ---- elements to accumulators and back ------------------------------------------------------- */

#define LOAD_EACH(element, result, expression)               \
    for (size_t i = 0; i < n; i++) {                         \
        element bits;                                        \
        memcpy(&bits, bytes + i * sizeof bits, sizeof bits); \
        ((result *)values)[i] = (result)(expression);        \
    }                                                        \
    break

#define LOADS(name, result)                                                         \
    static void name##_load(gn_dtype dtype, const void *in, size_t n, void *values) \
    {                                                                               \
        const unsigned char *bytes = in;                                            \
        switch (dtype) {                                                            \
            GNI_INTEGER_LIST(CASE_##name)                                           \
        case GN_BOOL:                                                               \
            LOAD_EACH(uint8_t, result, bits);                                       \
        case GN_FLOAT16:                                                            \
            LOAD_EACH(uint16_t, result, gni_float16_to(bits));                      \
        case GN_BFLOAT16:                                                           \
            LOAD_EACH(uint16_t, result, gni_bfloat16_to(bits));                     \
        case GN_FLOAT32:                                                            \
            LOAD_EACH(float, result, bits);                                         \
        case GN_FLOAT64:                                                            \
            LOAD_EACH(double, result, bits);                                        \
        default:                                                                    \
            break;                                                                  \
        }                                                                           \
    }

#define CASE_integer(NAME, name, type, SIGNED) CASE(NAME, type, int64_t)
#define CASE_natural(NAME, name, type, SIGNED) CASE(NAME, type, uint64_t)
#define CASE_single(NAME, name, type, SIGNED) CASE(NAME, type, float)
#define CASE_wide(NAME, name, type, SIGNED) CASE(NAME, type, double)
#define CASE(NAME, type, result) \
    case GN_##NAME:              \
        LOAD_EACH(type, result, bits);

LOADS(integer, int64_t)
LOADS(natural, uint64_t)
LOADS(single, float)
LOADS(wide, double)

#define STORE_EACH(from, element, expression)                \
    for (size_t i = 0; i < n; i++) {                         \
        from value = ((const from *)values)[i];              \
        element bits = (element)(expression);                \
        memcpy(bytes + i * sizeof bits, &bits, sizeof bits); \
    }                                                        \
    break

static void integer_store(gn_dtype dtype, const void *values, size_t n, void *out)
{
    unsigned char *bytes = out;
    switch (dtype) {
    case GN_BOOL:
        STORE_EACH(int64_t, uint8_t, value != 0);
    case GN_UINT8:
    case GN_INT8:
        STORE_EACH(int64_t, uint8_t, value);
    case GN_UINT16:
    case GN_INT16:
        STORE_EACH(int64_t, uint16_t, value);
    case GN_UINT32:
    case GN_INT32:
        STORE_EACH(int64_t, uint32_t, value);
    default:
        memcpy(out, values, n * sizeof(int64_t));
    }
}

#define natural_store integer_store /* the same bits */

#define STORES(name, from)                                                                  \
    static void name##_store(gn_dtype dtype, const void *values, size_t n, void *out)       \
    {                                                                                       \
        unsigned char *bytes = out;                                                         \
        switch (dtype) {                                                                    \
        case GN_FLOAT16:                                                                    \
            STORE_EACH(from, uint16_t, gni_float16_from(gni_float_to_odd((double)value)));  \
        case GN_BFLOAT16:                                                                   \
            STORE_EACH(from, uint16_t, gni_bfloat16_from(gni_float_to_odd((double)value))); \
        case GN_FLOAT32:                                                                    \
            STORE_EACH(from, float, value);                                                 \
        case GN_FLOAT64:                                                                    \
            STORE_EACH(from, double, value);                                                \
        default:                                                                            \
            break;                                                                          \
        }                                                                                   \
    }

STORES(single, float)
STORES(wide, double)

/* ---- the loops over accumulators -------------------------------------------------------------- */

#define ADD_INTEGER(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define MULTIPLY_INTEGER(a, b) ((int64_t)((uint64_t)(a) * (uint64_t)(b)))
#define ADD_PLAIN(a, b) ((a) + (b))
#define MULTIPLY_PLAIN(a, b) ((a) * (b))
#define NEVER(value) false
#define LARGER(a, b, IS_NAN) ((b) > (a) || IS_NAN(b) ? (b) : (a))
#define SMALLER(a, b, IS_NAN) ((b) < (a) || IS_NAN(b) ? (b) : (a))

#define LINE_EACH(type, OPERATION)                   \
    if (running == NULL)                             \
        for (size_t i = 0; i < n; i++)               \
            all = OPERATION(all, line[i]);           \
    else if (total == NULL)                          \
        for (size_t i = 0; i < n; i++)               \
            line[i] = sum = OPERATION(sum, line[i]); \
    else                                             \
        for (size_t i = 0; i < n; i++) {             \
            type value = line[i];                    \
            sum = OPERATION(sum, value);             \
            all = OPERATION(all, value);             \
            line[i] = sum;                           \
        }                                            \
    break

#define STRIP_EACH(OPERATION)                            \
    for (size_t i = 0; i < n; i++)                       \
        line[i] = sums[i] = OPERATION(sums[i], line[i]); \
    break

/* A later equal value moves the place; so does a later NaN, and nothing else once there is one. */
#define PLACE_EACH(type, LESS, IS_NAN)                                      \
    for (size_t i = 0; i < n; i++) {                                        \
        type value = line[i], sum = sums[i];                                \
        if (at == 0 || IS_NAN(value) || !(value LESS sum || IS_NAN(sum))) { \
            sums[i] = value;                                                \
            places[i] = at;                                                 \
        }                                                                   \
        line[i] = sums[i];                                                  \
    }

/* The same along a line. New extremes are rare, and their branch is foreseen. */
#define PLACE_LINE(type, LESS, IS_NAN)                           \
    for (size_t i = 0; i < n; i++) {                             \
        type value = line[i];                                    \
        if (IS_NAN(value) || !(value LESS sum || IS_NAN(sum))) { \
            sum = value;                                         \
            last = at + (int64_t)i;                              \
        }                                                        \
        line[i] = sum;                                           \
        places[i] = last;                                        \
    }

#define LOOPS(name, type, ADD, MULTIPLY, MAXIMUM, MINIMUM, IS_NAN, LOWEST, HIGHEST)               \
    static void name##_line(enum gni_scan op, void *values, size_t n, void *running, void *total) \
    {                                                                                             \
        type *line = values;                                                                      \
        type sum = running != NULL ? *(type *)running : 0;                                        \
        type all = total != NULL ? *(type *)total : 0;                                            \
        switch (op) {                                                                             \
        case GNI_SCAN_SUM:                                                                        \
            LINE_EACH(type, ADD);                                                                 \
        case GNI_SCAN_PRODUCT:                                                                    \
            LINE_EACH(type, MULTIPLY);                                                            \
        case GNI_SCAN_MAXIMUM:                                                                    \
            LINE_EACH(type, MAXIMUM);                                                             \
        case GNI_SCAN_MINIMUM:                                                                    \
            LINE_EACH(type, MINIMUM);                                                             \
        }                                                                                         \
        if (running != NULL)                                                                      \
            *(type *)running = sum;                                                               \
        if (total != NULL)                                                                        \
            *(type *)total = all;                                                                 \
    }                                                                                             \
                                                                                                  \
    static void name##_place(enum gni_scan op, void *values, size_t n, void *running,             \
                             int64_t *place, int64_t *places, int64_t at)                         \
    {                                                                                             \
        type *line = values, sum = at == 0 ? line[0] : *(type *)running;                          \
        int64_t last = *place;                                                                    \
        if (op == GNI_SCAN_MAXIMUM) {                                                             \
            PLACE_LINE(type, <, IS_NAN)                                                           \
        } else {                                                                                  \
            PLACE_LINE(type, >, IS_NAN)                                                           \
        }                                                                                         \
        *(type *)running = sum;                                                                   \
        *place = last;                                                                            \
    }                                                                                             \
                                                                                                  \
    static void name##_strip(enum gni_scan op, void *values, size_t n, void *accumulators,        \
                             int64_t *places, int64_t at)                                         \
    {                                                                                             \
        type *line = values, *sums = accumulators;                                                \
        if (places != NULL && op == GNI_SCAN_MAXIMUM) {                                           \
            PLACE_EACH(type, <, IS_NAN)                                                           \
            return;                                                                               \
        }                                                                                         \
        if (places != NULL && op == GNI_SCAN_MINIMUM) {                                           \
            PLACE_EACH(type, >, IS_NAN)                                                           \
            return;                                                                               \
        }                                                                                         \
        switch (op) {                                                                             \
        case GNI_SCAN_SUM:                                                                        \
            STRIP_EACH(ADD);                                                                      \
        case GNI_SCAN_PRODUCT:                                                                    \
            STRIP_EACH(MULTIPLY);                                                                 \
        case GNI_SCAN_MAXIMUM:                                                                    \
            STRIP_EACH(MAXIMUM);                                                                  \
        case GNI_SCAN_MINIMUM:                                                                    \
            STRIP_EACH(MINIMUM);                                                                  \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    static void name##_identity(enum gni_scan op, size_t n, void *accumulators)                   \
    {                                                                                             \
        const type of[] = {0, 1, LOWEST, HIGHEST};                                                \
        for (size_t i = 0; i < n; i++)                                                            \
            ((type *)accumulators)[i] = of[op];                                                   \
    }                                                                                             \
                                                                                                  \
    static const struct scan_loops name##_loops = {name##_load,  name##_store, name##_line,       \
                                                   name##_place, name##_strip, name##_identity};

#define LARGER_INTEGER(a, b) LARGER(a, b, NEVER)
#define SMALLER_INTEGER(a, b) SMALLER(a, b, NEVER)
#define LARGER_FLOATING(a, b) LARGER(a, b, isnan)
#define SMALLER_FLOATING(a, b) SMALLER(a, b, isnan)

LOOPS(integer, int64_t, ADD_INTEGER, MULTIPLY_INTEGER, LARGER_INTEGER, SMALLER_INTEGER, NEVER,
      INT64_MIN, INT64_MAX)
LOOPS(natural, uint64_t, ADD_PLAIN, MULTIPLY_PLAIN, LARGER_INTEGER, SMALLER_INTEGER, NEVER, 0,
      UINT64_MAX)
LOOPS(single, float, ADD_PLAIN, MULTIPLY_PLAIN, LARGER_FLOATING, SMALLER_FLOATING, isnan, -INFINITY,
      INFINITY)
LOOPS(wide, double, ADD_PLAIN, MULTIPLY_PLAIN, LARGER_FLOATING, SMALLER_FLOATING, isnan, -INFINITY,
      INFINITY)

static const struct scan_loops *loops_find(gn_dtype dtype, gn_dtype out_dtype)
{
    if (gni_dtype_kind(out_dtype) != GNI_KIND_FLOATING)
        return dtype == GN_UINT64 ? &natural_loops : &integer_loops;
    return gni_dtype_is_half(dtype) && gni_dtype_is_half(out_dtype) ? &single_loops : &wide_loops;
}

/* ---- rows and strips ------------------------------------------------------------------------- */

/* Elements `begin` to before `end` of the array, from *running; NULL: the total only. */
static void scan_run(const struct scan *scan, size_t begin, size_t end, void *running, void *total)
{
    union accumulator values[CHUNK];
    for (size_t at = begin; at < end; at += CHUNK) {
        size_t n = end - at < CHUNK ? end - at : CHUNK;
        scan->loops->load(scan->dtype, scan->in + at * scan->size, n, values);
        scan->loops->line(scan->op, values, n, running, total);
        if (running != NULL)
            scan->loops->store(scan->out_dtype, values, n, scan->out + at * scan->out_size);
    }
}

/* Whole rows, each with all of its blocks. */
static void scan_rows_part(void *context, size_t begin, size_t end)
{
    const struct scan *scan = context;
    for (size_t row = begin; row < end; row++) {
        union accumulator carry, running, total;
        scan->loops->identity(scan->op, 1, &carry);
        for (size_t at = 0; at < scan->length; at += scan->block) {
            size_t n = scan->length - at < scan->block ? scan->length - at : scan->block;
            size_t first = row * scan->length + at;
            running = carry;
            scan->loops->identity(scan->op, 1, &total);
            scan_run(scan, first, first + n, &running, &total);
            scan->loops->strip(scan->op, &total, 1, &carry, NULL, 0);
        }
    }
}

/* The elements of a block, counted over all rows. */
static void scan_block(const struct scan *scan, size_t block, size_t *first, size_t *end)
{
    size_t row = block / scan->blocks, at = block % scan->blocks * scan->block;
    size_t n = scan->length - at < scan->block ? scan->length - at : scan->block;
    *first = row * scan->length + at;
    *end = *first + n;
}

static void scan_totals_part(void *context, size_t begin, size_t end)
{
    const struct scan *scan = context;
    for (size_t block = begin; block < end; block++) {
        size_t first, last;
        scan_block(scan, block, &first, &last);
        scan->loops->identity(scan->op, 1, &scan->carry[block]);
        scan_run(scan, first, last, NULL, &scan->carry[block]);
    }
}

static void scan_blocks_part(void *context, size_t begin, size_t end)
{
    const struct scan *scan = context;
    for (size_t block = begin; block < end; block++) {
        size_t first, last;
        union accumulator running = scan->carry[block];
        scan_block(scan, block, &first, &last);
        scan_run(scan, first, last, &running, NULL);
    }
}

/* Whole rows of extremes with their places. */
static void scan_places_part(void *context, size_t begin, size_t end)
{
    const struct scan *scan = context;
    union accumulator values[CHUNK], running;
    for (size_t row = begin; row < end; row++) {
        int64_t place = 0;
        for (size_t at = 0; at < scan->length; at += CHUNK) {
            size_t n = scan->length - at < CHUNK ? scan->length - at : CHUNK;
            size_t here = row * scan->length + at;
            scan->loops->load(scan->dtype, scan->in + here * scan->size, n, values);
            scan->loops->place(scan->op, values, n, &running, &place, scan->indices + here,
                               (int64_t)at);
            scan->loops->store(scan->out_dtype, values, n, scan->out + here * scan->out_size);
        }
    }
}

/* Strips of neighbouring columns, counted over all outer indices. */
static void scan_strips_part(void *context, size_t begin, size_t end)
{
    const struct scan *scan = context;
    union accumulator values[STRIP], accumulators[STRIP];
    int64_t places[STRIP];
    for (size_t strip = begin; strip < end; strip++) {
        size_t column = strip % scan->strips * STRIP;
        size_t first = strip / scan->strips * scan->length * scan->inner + column;
        size_t n = scan->inner - column < STRIP ? scan->inner - column : STRIP;
        scan->loops->identity(scan->op, n, accumulators);
        for (size_t at = 0; at < scan->length; at++) {
            size_t here = first + at * scan->inner;
            scan->loops->load(scan->dtype, scan->in + here * scan->size, n, values);
            scan->loops->strip(scan->op, values, n, accumulators,
                               scan->indices == NULL ? NULL : places, (int64_t)at);
            scan->loops->store(scan->out_dtype, values, n, scan->out + here * scan->out_size);
            if (scan->indices != NULL)
                memcpy(scan->indices + here, places, n * sizeof *places);
        }
    }
}

/* Few long rows: totals, sums of totals, results. */
static gn_status scan_blocks(struct scan *scan, size_t rows)
{
    size_t blocks, nbytes;
    if (!gni_size_multiply(rows, scan->blocks, &blocks) ||
        !gni_size_multiply(blocks, sizeof *scan->carry, &nbytes))
        return gni_error(GN_ERROR_OVERFLOW, "%zu rows do not fit the address space", rows);
    scan->carry = gni_host_alloc(nbytes);
    if (scan->carry == NULL)
        return gni_error_host_memory(nbytes);
    gni_parallel_for(blocks, 1, scan_totals_part, scan);
    for (size_t row = 0; row < rows; row++) {
        union accumulator before;
        scan->loops->identity(scan->op, 1, &before);
        for (size_t i = 0; i < scan->blocks; i++) {
            union accumulator *carry = &scan->carry[row * scan->blocks + i], total = *carry;
            *carry = before;
            scan->loops->strip(scan->op, &total, 1, &before, NULL, 0);
        }
    }
    gni_parallel_for(blocks, 1, scan_blocks_part, scan);
    gni_host_free(scan->carry);
    return GN_OK;
}

gn_status gni_scan(enum gni_scan op, const void *in, gn_dtype dtype, size_t outer, size_t length,
                   size_t inner, void *out, gn_dtype out_dtype, int64_t *indices)
{
    if (gni_dtype_kind(dtype) == GNI_KIND_FLOATING &&
        gni_dtype_kind(out_dtype) != GNI_KIND_FLOATING)
        return gni_error(GN_ERROR_INVALID_VALUE, "%s cannot be scanned into %s",
                         gni_dtypes[dtype].name, gni_dtypes[out_dtype].name);
    gni_assert(indices == NULL || op == GNI_SCAN_MAXIMUM || op == GNI_SCAN_MINIMUM);
    if (outer == 0 || length == 0 || inner == 0)
        return GN_OK;
    /* A block's product may be infinite where one before it is 0: the row's is 0, theirs is not. */
    bool is_one = op == GNI_SCAN_PRODUCT && gni_dtype_kind(out_dtype) == GNI_KIND_FLOATING;
    size_t block = is_one ? length : GNI_SCAN_BLOCK;
    struct scan scan = {.op = op,
                        .loops = loops_find(dtype, out_dtype),
                        .in = in,
                        .dtype = dtype,
                        .size = gni_dtype_size(dtype),
                        .out = out,
                        .out_dtype = out_dtype,
                        .out_size = gni_dtype_size(out_dtype),
                        .indices = indices,
                        .length = length,
                        .inner = inner,
                        .strips = (inner - 1) / STRIP + 1,
                        .block = block,
                        .blocks = (length - 1) / block + 1};
    if (inner == 1 && indices != NULL) {
        gni_parallel_for(outer, SCAN_GRAIN / length + 1, scan_places_part, &scan);
        return GN_OK;
    }
    if (inner > 1) {
        size_t width = inner < STRIP ? inner : STRIP;
        size_t grain = length >= SCAN_GRAIN ? 1 : SCAN_GRAIN / (length * width) + 1;
        gni_parallel_for(outer * scan.strips, grain, scan_strips_part, &scan);
        return GN_OK;
    }
    size_t threads = (size_t)gni_parallel_get_threads();
    if (outer < threads && scan.blocks > 2)
        return scan_blocks(&scan, outer);
    gni_parallel_for(outer, SCAN_GRAIN / length + 1, scan_rows_part, &scan);
    return GN_OK;
}
