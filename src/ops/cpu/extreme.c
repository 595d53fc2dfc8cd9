#include "ops/cpu/extreme.h"

#include "base/parallel.h"
#include "ops/cpu/loops.h"

#include <string.h>

/*
 * A row is folded block by block, which is vector code (loops.h). The block with the best value is then searched for
 * the first element that is equal to it: 0 and -0 are equal, and so are all NaN, which are best.
 */
enum {
    PART = 1 << 15,  /* elements that a thread takes at a time */
    PARTS_MOST = 64, /* of one row */
    BLOCK = 1024,    /* elements */
    STRIDE = 128,    /* elements of a block that are compared before somebody looks */
};

struct extreme {
    const char *in;
    gn_dtype dtype, computing; /* halves are compared as float32 */
    size_t size, computing_size;
    size_t columns;
    bool is_maximum;
    gni_fold fold;
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

COMPARE(uint8, uint8_t, IS_NAN_INTEGER)
COMPARE(int8, int8_t, IS_NAN_INTEGER)
COMPARE(int16, int16_t, IS_NAN_INTEGER)
COMPARE(int32, int32_t, IS_NAN_INTEGER)
COMPARE(int64, int64_t, IS_NAN_INTEGER)
COMPARE(float32, float, IS_NAN_FLOATING)
COMPARE(float64, double, IS_NAN_FLOATING)

static const struct {
    bool (*is_better)(const void *value, const void *best, bool is_maximum);
    bool (*is_nan)(const void *value);
} compares[GN_DTYPE_COUNT] = {
#define ENTRY(name)                     \
    {                                   \
        is_better_##name, is_nan_##name \
    }
    [GN_UINT8] = ENTRY(uint8),     [GN_INT8] = ENTRY(int8),   [GN_INT16] = ENTRY(int16),
    [GN_INT32] = ENTRY(int32),     [GN_INT64] = ENTRY(int64), [GN_FLOAT32] = ENTRY(float32),
    [GN_FLOAT64] = ENTRY(float64),
#undef ENTRY
};

/* A block as it is compared; `room` is for those that are converted. */
static const void *block_get(const struct extreme *extreme, size_t at, size_t count, float *room)
{
    const void *block = extreme->in + at * extreme->size;
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

/* Where the best element of a run is, which begins at an element of the memory, not of a row. */
static size_t run_find(const struct extreme *extreme, size_t begin, size_t end)
{
    float room[BLOCK];
    gn_dtype computing = extreme->computing;
    uint64_t best = 0;
    size_t best_block = begin;
    for (size_t at = begin; at < end; at += BLOCK) {
        size_t count = end - at < BLOCK ? end - at : BLOCK;
        const void *block = block_get(extreme, at, count, room);
        uint64_t value = 0;
        memcpy(&value, block, extreme->computing_size);
        extreme->fold(&value, block, count);
        if (at != begin && !compares[computing].is_better(&value, &best, extreme->is_maximum))
            continue;
        best = value;
        best_block = at;
        if (compares[computing].is_nan(&value))
            break;
    }
    size_t count = end - best_block < BLOCK ? end - best_block : BLOCK;
    const void *block = block_get(extreme, best_block, count, room);
    return best_block + block_find(extreme, block, count, &best);
}

static void part_find(void *context, size_t begin, size_t end)
{
    const struct extreme *extreme = context;
    for (size_t row = begin; row < end; row++) {
        size_t first = row * extreme->columns;
        extreme->indices[row] =
            (int64_t)(run_find(extreme, first, first + extreme->columns) - first);
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
        size_t first = i * row->part, columns = row->extreme->columns;
        size_t last = columns - first < row->part ? columns : first + row->part;
        row->found[i] = run_find(row->extreme, first, last);
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
        float room[2];
        uint64_t values[2] = {0};
        for (int k = 0; k < 2; k++)
            memcpy(&values[k], block_get(extreme, row.found[k == 0 ? i : best], 1, &room[k]),
                   extreme->computing_size);
        if (compares[extreme->computing].is_nan(&values[1]))
            break;
        if (compares[extreme->computing].is_better(&values[0], &values[1], extreme->is_maximum))
            best = i;
    }
    return row.found[best];
}

void gni_extreme_find(const void *in, gn_dtype dtype, size_t rows, size_t columns, bool is_maximum,
                      int64_t *indices)
{
    gn_dtype computing = dtype == GN_BOOL ? GN_UINT8 : gni_dtypes[dtype].compute;
    struct extreme extreme = {
        .in = in,
        .dtype = dtype,
        .computing = computing,
        .size = gni_dtype_size(dtype),
        .computing_size = gni_dtype_size(computing),
        .columns = columns,
        .is_maximum = is_maximum,
        .fold =
            gni_fold_find(is_maximum ? GNI_REDUCTION_MAXIMUM : GNI_REDUCTION_MINIMUM, computing),
        .convert = gni_dtype_is_half(dtype) ? gni_loop_convert(dtype, computing) : NULL,
        .indices = indices,
    };
    if (rows == 1 && columns > PART) {
        indices[0] = (int64_t)row_find(&extreme);
        return;
    }
    size_t grain = PART / columns;
    gni_parallel_for(rows, grain > 0 ? grain : 1, part_find, &extreme);
}
