/*
 * cpu_extreme.c: the largest or smallest element along a dimension on the CPU, and where it is.
 */
#include "ops/cpu/cpu_ops.h"

#include "base/parallel.h"
#include "ops/cpu/loops.h"

#include <string.h>

/*
 * Three ways. 0 and -0 are equal, and so are all NaN, which are best.
 *
 *     a long row   is reduced block by block, which is vector code (loops.h). The block with the best value is then
 *                  searched for the first element that is equal to it
 *     a short row  is walked along, element by element
 *     columns      many of them, side by side, are walked along row by row, with the best of each so far
 */
enum {
    PART = 1 << 15,  /* elements that a thread takes at a time */
    PARTS_MOST = 64, /* of one row */
    BLOCK = 1024,    /* elements */
    STRIDE = 128,    /* elements of a block that are compared before somebody looks */
    SHORT_MOST = 64, /* elements of a short row */
    COLUMNS_LEAST =
        8, /* side by side, that are walked along together: fewer are rows with strides */
    COLUMNS_MOST = 256,  /* of them at a time */
    ROWS_MOST = 1 << 30, /* that are walked along with one count of 32 bits */
};

struct extreme {
    const char *in;
    gn_dtype dtype, computing; /* halves are compared as float32 */
    size_t size, computing_size;
    size_t columns; /* elements of a row */
    size_t inner;   /* elements from one of a row to the next, and so many rows side by side */
    bool is_maximum;
    gni_reducer reduce;
    gni_loop convert; /* NULL: the elements are compared as they are */
    int64_t *indices;
};

#define IS_NAN_INTEGER(x) ((void)(x), 0)
#define IS_NAN_FLOATING(x) ((x) != (x))

#define COMPARE(name, type, IS_NAN)                                                    \
    /* Whether a value is better than the best so far, which is no NaN. */             \
    static bool is_better_##name(const void *value, const void *best, bool is_maximum) \
    {                                                                                  \
        type x = *(const type *)value, y = *(const type *)best;                        \
        return (is_maximum ? x > y : x < y) || IS_NAN(x);                              \
    }                                                                                  \
    static bool is_nan_##name(const void *value)                                       \
    {                                                                                  \
        type x = *(const type *)value;                                                 \
        return IS_NAN(x);                                                              \
    }

/* The first element of a row that none is better than. A comparison with NaN is false. */
#define SHORT_FIND(name, type, IS_NAN, is_not_better)         \
    static size_t name(const void *elements, size_t count)    \
    {                                                         \
        const type *row = elements;                           \
        type best = row[0];                                   \
        size_t at = 0;                                        \
        for (size_t i = 1; i < count && !IS_NAN(best); i++) { \
            while (i < count && row[i] is_not_better best)    \
                i++;                                          \
            if (i < count) {                                  \
                best = row[i];                                \
                at = i;                                       \
            }                                                 \
        }                                                     \
        return at;                                            \
    }

/* One more row: where its element is better than the best of its column, that and its number take over. */
#define COLUMNS_COMPARE(name, type, place_type, IS_NAN, is_not_better)                        \
    static void name(const void *elements, void *best_elements, void *places, int32_t number, \
                     size_t count)                                                            \
    {                                                                                         \
        const type *restrict row = elements;                                                  \
        type *restrict best = best_elements;                                                  \
        place_type *restrict at = places;                                                     \
        for (size_t i = 0; i < count; i++) {                                                  \
            type x = row[i], y = best[i];                                                     \
            bool is_taken = !(x is_not_better y) & !IS_NAN(y);                                \
            best[i] = is_taken ? x : y;                                                       \
            at[i] = is_taken ? number : at[i];                                                \
        }                                                                                     \
    }

#define DEFINE(name, type, place_type, IS_NAN)                            \
    COMPARE(name, type, IS_NAN)                                           \
    SHORT_FIND(short_maximum_##name, type, IS_NAN, <=)                    \
    SHORT_FIND(short_minimum_##name, type, IS_NAN, >=)                    \
    COLUMNS_COMPARE(columns_maximum_##name, type, place_type, IS_NAN, <=) \
    COLUMNS_COMPARE(columns_minimum_##name, type, place_type, IS_NAN, >=)

/* Places have 32 bits, and 64 beside elements of 64, so that a vector has as many of both. */
#define PLACE_INT8 int32_t
#define PLACE_INT16 int32_t
#define PLACE_INT32 int32_t
#define PLACE_INT64 int64_t
#define ROW(NAME, name, type, SIGNED) DEFINE(name, type, PLACE_##SIGNED, IS_NAN_INTEGER)
GNI_INTEGER_LIST(ROW)
#undef ROW
DEFINE(float32, float, int32_t, IS_NAN_FLOATING)
DEFINE(float64, double, int64_t, IS_NAN_FLOATING)

static const struct {
    bool (*is_better)(const void *value, const void *best, bool is_maximum);
    bool (*is_nan)(const void *value);
    size_t (*short_find[2])(const void *row, size_t count); /* of the smallest, of the largest */
    void (*columns_compare[2])(const void *row, void *best, void *places, int32_t number,
                               size_t count);
} compares[GN_DTYPE_COUNT] = {
#define ENTRY(name)                                                                    \
    {                                                                                  \
        is_better_##name, is_nan_##name, {short_minimum_##name, short_maximum_##name}, \
        {                                                                              \
            columns_minimum_##name, columns_maximum_##name                             \
        }                                                                              \
    }
#define ROW(NAME, name, type, SIGNED) [GN_##NAME] = ENTRY(name),
    GNI_INTEGER_LIST(ROW)
#undef ROW
        [GN_FLOAT32] = ENTRY(float32),
    [GN_FLOAT64] = ENTRY(float64),
#undef ENTRY
};

/* Elements of a row from a place in memory on, as they are compared; `room` is for BLOCK of them that are brought
 * together or converted. */
static const void *block_get(const struct extreme *extreme, size_t at, size_t count, uint64_t *room)
{
    const void *block = extreme->in + at * extreme->size;
    uint16_t halves[BLOCK];
    if (extreme->inner > 1) {
        char *joined = extreme->convert != NULL ? (char *)halves : (char *)room;
        gni_copy_strided(joined, (int64_t[]){1}, block, (int64_t[]){(int64_t)extreme->inner}, 1,
                         (int64_t[]){(int64_t)count}, extreme->size);
        block = joined;
    }
    if (extreme->convert == NULL)
        return block;
    extreme->convert(room, &block, count);
    return room;
}

/* Where a value is first in a block; it is there. */
static size_t block_find(const struct extreme *extreme, const char *block, size_t count,
                         const void *value)
{
    uint64_t same[STRIDE];
    uint8_t is_found[STRIDE];
    size_t size = extreme->computing_size;
    bool is_nan = compares[extreme->computing].is_nan(value);
    gni_loop loop = gni_loop_find(is_nan ? GNI_OP_ISNAN : GNI_OP_EQUAL, extreme->computing);
    size_t nbytes = size * (count < STRIDE ? count : STRIDE);
    memcpy(same, value, size);
    for (size_t done = size; done < nbytes; done *= 2) /* twice as much each time */
        memcpy((char *)same + done, same, done < nbytes - done ? done : nbytes - done);
    for (size_t at = 0; at < count; at += STRIDE) {
        size_t length = count - at < STRIDE ? count - at : STRIDE;
        loop(is_found, (const void *[]){block + at * size, same}, length);
        const uint8_t *first = memchr(is_found, 1, length);
        if (first != NULL)
            return at + (size_t)(first - is_found);
    }
    return 0;
}

/* Which element of a run is the best: `count` of them, from one in memory on. */
static size_t run_find(const struct extreme *extreme, size_t first, size_t count)
{
    uint64_t room[BLOCK];
    gn_dtype computing = extreme->computing;
    uint64_t best = 0;
    size_t best_block = 0;
    if (count <= SHORT_MOST)
        return compares[computing].short_find[extreme->is_maximum](
            block_get(extreme, first, count, room), count);
    for (size_t at = 0; at < count; at += BLOCK) {
        size_t length = count - at < BLOCK ? count - at : BLOCK;
        const void *block = block_get(extreme, first + at * extreme->inner, length, room);
        uint64_t value = 0;
        memcpy(&value, block, extreme->computing_size);
        extreme->reduce(&value, block, length);
        if (at != 0 && !compares[computing].is_better(&value, &best, extreme->is_maximum))
            continue;
        best = value;
        best_block = at;
        if (compares[computing].is_nan(&value))
            break;
    }
    size_t length = count - best_block < BLOCK ? count - best_block : BLOCK;
    const void *block = block_get(extreme, first + best_block * extreme->inner, length, room);
    return best_block + block_find(extreme, block, length, &best);
}

/* Where a row begins: there are `inner` of them side by side. */
static size_t row_begin(const struct extreme *extreme, size_t row)
{
    return row / extreme->inner * extreme->inner * extreme->columns + row % extreme->inner;
}

static void part_find(void *context, size_t begin, size_t end)
{
    const struct extreme *extreme = context;
    for (size_t row = begin; row < end; row++)
        extreme->indices[row] =
            (int64_t)run_find(extreme, row_begin(extreme, row), extreme->columns);
}

/* ---- columns ---------------------------------------------------------------------------------- */

/* `count` rows side by side, from row number `first` on: here the elements of each follow below each other. */
static void columns_find(const struct extreme *extreme, size_t first, size_t count)
{
    uint64_t best[COLUMNS_MOST], places[COLUMNS_MOST];
    float room[COLUMNS_MOST];
    const char *top = extreme->in + row_begin(extreme, first) * extreme->size;
    bool is_wide = extreme->computing_size == sizeof(int64_t);
    for (size_t base = 0; base < extreme->columns; base += ROWS_MOST) {
        size_t rows = extreme->columns - base < ROWS_MOST ? extreme->columns - base : ROWS_MOST;
        memset(places, 0xff, sizeof places); /* -1: none of these rows */
        for (size_t row = 0; row < rows; row++) {
            const void *line = top + (base + row) * extreme->inner * extreme->size;
            if (extreme->convert != NULL) {
                extreme->convert(room, &line, count);
                line = room;
            }
            if (base + row == 0) {
                memcpy(best, line, count * extreme->computing_size);
                memset(places, 0, sizeof places);
                continue;
            }
            compares[extreme->computing].columns_compare[extreme->is_maximum](line, best, places,
                                                                              (int32_t)row, count);
        }
        for (size_t i = 0; i < count; i++) {
            int64_t place = is_wide ? ((const int64_t *)(const void *)places)[i]
                                    : ((const int32_t *)(const void *)places)[i];
            if (place >= 0)
                extreme->indices[first + i] = (int64_t)base + place;
        }
    }
}

/* Blocks of columns, `inner` in blocks of COLUMNS_MOST for each of the outer indices. */
static void part_columns_find(void *context, size_t begin, size_t end)
{
    const struct extreme *extreme = context;
    size_t blocks = (extreme->inner + COLUMNS_MOST - 1) / COLUMNS_MOST;
    for (size_t i = begin; i < end; i++) {
        size_t at = i % blocks * COLUMNS_MOST;
        size_t count = extreme->inner - at < COLUMNS_MOST ? extreme->inner - at : COLUMNS_MOST;
        columns_find(extreme, i / blocks * extreme->inner + at, count);
    }
}

/* ---- one long row ----------------------------------------------------------------------------- */

struct extreme_row {
    const struct extreme *extreme;
    size_t part; /* elements */
    size_t found[PARTS_MOST];
};

static void row_part_find(void *context, size_t begin, size_t end)
{
    struct extreme_row *row = context;
    for (size_t i = begin; i < end; i++) {
        size_t first = i * row->part, left = row->extreme->columns - first;
        row->found[i] = first + run_find(row->extreme, first, left < row->part ? left : row->part);
    }
}

static size_t row_find(const struct extreme *extreme)
{
    struct extreme_row row = {.extreme = extreme, .part = PART};
    if (extreme->columns > PARTS_MOST * (size_t)PART)
        row.part = (extreme->columns + PARTS_MOST - 1) / PARTS_MOST;
    size_t parts = (extreme->columns + row.part - 1) / row.part, best = 0;
    gni_parallel_for(parts, 1, row_part_find, &row);
    for (size_t i = 1; i < parts; i++) {
        uint64_t values[2] = {0}, room[1];
        for (int k = 0; k < 2; k++)
            memcpy(&values[k], block_get(extreme, row.found[k == 0 ? i : best], 1, room),
                   extreme->computing_size);
        if (compares[extreme->computing].is_nan(&values[1]))
            break;
        if (compares[extreme->computing].is_better(&values[0], &values[1], extreme->is_maximum))
            best = i;
    }
    return row.found[best];
}

void gni_extreme_find(const void *in, gn_dtype dtype, const struct gni_along *along,
                      bool is_maximum, int64_t *indices)
{
    gn_dtype computing = dtype == GN_BOOL ? GN_UINT8 : gni_dtypes[dtype].compute;
    size_t columns = (size_t)along->length, inner = (size_t)along->inner;
    size_t rows = (size_t)along->outer * inner;
    struct extreme extreme = {
        .in = in,
        .dtype = dtype,
        .computing = computing,
        .size = gni_dtype_size(dtype),
        .computing_size = gni_dtype_size(computing),
        .columns = columns,
        .inner = inner,
        .is_maximum = is_maximum,
        .reduce =
            gni_reducers_find(is_maximum ? GNI_REDUCTION_MAXIMUM : GNI_REDUCTION_MINIMUM, computing)
                .one,
        .convert = gni_dtype_is_half(dtype) ? gni_loop_convert(dtype, computing) : NULL,
        .indices = indices,
    };
    if (rows == 1 && columns > PART) {
        indices[0] = (int64_t)row_find(&extreme);
        return;
    }
    size_t grain = PART / columns;
    if (inner >= COLUMNS_LEAST) {
        size_t blocks = (inner + COLUMNS_MOST - 1) / COLUMNS_MOST;
        grain /= inner < COLUMNS_MOST ? inner : COLUMNS_MOST;
        gni_parallel_for((size_t)along->outer * blocks, grain > 0 ? grain : 1, part_columns_find,
                         &extreme);
        return;
    }
    gni_parallel_for(rows, grain > 0 ? grain : 1, part_find, &extreme);
}
