#include "ops/cpu/extreme.h"

#include "base/parallel.h"

enum {
    PART = 1 << 15, /* elements that a thread takes at a time */
};

struct extreme {
    const char *in;
    gn_dtype dtype;
    size_t columns;
    bool is_maximum;
    int64_t *indices;
};

/* NaN is what is not equal to itself; integers never are. */
#define FIND(name, type, load)                                                     \
    static size_t find_##name(const void *memory, size_t count, bool is_maximum)   \
    {                                                                              \
        const type *row = memory;                                                  \
        size_t found = 0;                                                          \
        for (size_t i = 1; i < count && load(row[found]) == load(row[found]); i++) \
            if ((is_maximum ? load(row[i]) > load(row[found])                      \
                            : load(row[i]) < load(row[found])) ||                  \
                load(row[i]) != load(row[i]))                                      \
                found = i;                                                         \
        return found;                                                              \
    }

FIND(uint8, uint8_t, )
FIND(int8, int8_t, )
FIND(int16, int16_t, )
FIND(int32, int32_t, )
FIND(int64, int64_t, )
FIND(float16, uint16_t, gni_float16_to)
FIND(bfloat16, uint16_t, gni_bfloat16_to)
FIND(float32, float, )
FIND(float64, double, )

typedef size_t (*find)(const void *row, size_t count, bool is_maximum);

static const find finds[GN_DTYPE_COUNT] = {
    [GN_BOOL] = find_uint8,      [GN_UINT8] = find_uint8,       [GN_INT8] = find_int8,
    [GN_INT16] = find_int16,     [GN_INT32] = find_int32,       [GN_INT64] = find_int64,
    [GN_FLOAT16] = find_float16, [GN_BFLOAT16] = find_bfloat16, [GN_FLOAT32] = find_float32,
    [GN_FLOAT64] = find_float64,
};

static void part_find(void *context, size_t begin, size_t end)
{
    const struct extreme *extreme = context;
    size_t stride = extreme->columns * gni_dtype_size(extreme->dtype);
    for (size_t row = begin; row < end; row++)
        extreme->indices[row] = (int64_t)finds[extreme->dtype](
            extreme->in + row * stride, extreme->columns, extreme->is_maximum);
}

void gni_extreme_find(const void *in, gn_dtype dtype, size_t rows, size_t columns, bool is_maximum,
                      int64_t *indices)
{
    struct extreme extreme = {in, dtype, columns, is_maximum, indices};
    size_t grain = PART / columns;
    gni_parallel_for(rows, grain > 0 ? grain : 1, part_find, &extreme);
}
