/*
 * tiles_body.h: the text of the tiles, compiled once for each instruction set. The file that includes it defines
 *
 *     GNI_TILES_SET, GNI_TILES_NAME   what it exports, and as which name
 *     GNI_TILES_BYTES                 of a vector register
 *     GNI_TILES_ROWS                  of a tile, so that its sums, one row of b and an element of a fill the registers
 *
 * A tile is two registers wide. Its sums are an array of vectors that never leaves the registers: all loops over it
 * have constant bounds and are unrolled.
 */
#include "ops/cpu/tiles.h"

#include <string.h>

enum {
    ROWS = GNI_TILES_ROWS,
    DOT_SUMS = 4, /* so that additions overlap */
};

/*
 * kind: a name. type: of the elements, unsigned for integers, which then wrap around. MIX(s, x, y) is s + x * y, of
 * vectors or of vectors and an element; MIX_ONE the same of elements, JOIN(s, t) is s + t.
 */
#define DEFINE(kind, type, MIX, MIX_ONE, JOIN)                                                     \
    typedef type kind##_vector __attribute__((vector_size(GNI_TILES_BYTES)));                      \
    typedef type kind##_loose                                                                      \
        __attribute__((vector_size(GNI_TILES_BYTES), aligned(sizeof(type))));                      \
                                                                                                   \
    enum {                                                                                         \
        kind##_LANES = GNI_TILES_BYTES / sizeof(type),                                             \
        kind##_COLUMNS = 2 * kind##_LANES,                                                         \
    };                                                                                             \
                                                                                                   \
    static void kind##_multiply(size_t inner, const void *a, const void *b, void *sums,            \
                                size_t stride, bool is_first)                                      \
    {                                                                                              \
        const type *left = a;                                                                      \
        const kind##_vector *right = b;                                                            \
        kind##_vector total[ROWS][2] = {{{0}}};                                                    \
        for (size_t k = 0; k < inner; k++, left += ROWS, right += 2) {                             \
            kind##_vector first = right[0], second = right[1];                                     \
            UNROLL for (int i = 0; i < ROWS; i++)                                                  \
            {                                                                                      \
                total[i][0] = MIX(total[i][0], first, left[i]);                                    \
                total[i][1] = MIX(total[i][1], second, left[i]);                                   \
            }                                                                                      \
        }                                                                                          \
        UNROLL for (int i = 0; i < ROWS; i++)                                                      \
        {                                                                                          \
            kind##_vector *to = (kind##_vector *)(void *)((type *)sums + (size_t)i * stride);      \
            to[0] = is_first ? total[i][0] : JOIN(to[0], total[i][0]);                             \
            to[1] = is_first ? total[i][1] : JOIN(to[1], total[i][1]);                             \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static inline void kind##_pack(const void *from, int64_t across, int64_t along, size_t count,  \
                                   size_t inner, void *panel, size_t width)                        \
    {                                                                                              \
        const type *in = from;                                                                     \
        type *out = panel;                                                                         \
        if (count < width)                                                                         \
            memset(panel, 0, width *inner * sizeof(type));                                         \
        if (across == 1 && count == width) {                                                       \
            for (size_t k = 0; k < inner; k++)                                                     \
                memcpy(out + k * width, in + (int64_t)k * along, width * sizeof(type));            \
        } else if (across == 1) {                                                                  \
            for (size_t k = 0; k < inner; k++)                                                     \
                memcpy(out + k * width, in + (int64_t)k * along, count * sizeof(type));            \
        } else {                                                                                   \
            for (size_t i = 0; i < count; i++)                                                     \
                for (size_t k = 0; k < inner; k++)                                                 \
                    out[k * width + i] = in[(int64_t)i * across + (int64_t)k * along];             \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void kind##_pack_rows(const void *from, int64_t across, int64_t along, size_t count,    \
                                 size_t inner, void *panel)                                        \
    {                                                                                              \
        kind##_pack(from, across, along, count, inner, panel, ROWS);                               \
    }                                                                                              \
                                                                                                   \
    static void kind##_pack_columns(const void *from, int64_t across, int64_t along, size_t count, \
                                    size_t inner, void *panel)                                     \
    {                                                                                              \
        kind##_pack(from, across, along, count, inner, panel, kind##_COLUMNS);                     \
    }                                                                                              \
                                                                                                   \
    static void kind##_dot(const void *x, const void *y, size_t count, void *sum)                  \
    {                                                                                              \
        const type *left = x, *right = y;                                                          \
        kind##_vector total[DOT_SUMS] = {{0}};                                                     \
        size_t i = 0;                                                                              \
        for (; i + DOT_SUMS * kind##_LANES <= count; i += DOT_SUMS * kind##_LANES) {               \
            const kind##_loose *l = (const kind##_loose *)(const void *)(left + i);                \
            const kind##_loose *r = (const kind##_loose *)(const void *)(right + i);               \
            UNROLL for (int j = 0; j < DOT_SUMS; j++) total[j] = MIX(total[j], l[j], r[j]);        \
        }                                                                                          \
        kind##_vector both = JOIN(JOIN(total[0], total[1]), JOIN(total[2], total[3]));             \
        type all = 0, lanes[kind##_LANES];                                                         \
        memcpy(lanes, &both, sizeof both);                                                         \
        for (; i < count; i++)                                                                     \
            all = MIX_ONE(all, left[i], right[i]);                                                 \
        for (int width = kind##_LANES / 2; width > 0; width /= 2)                                  \
            for (int j = 0; j < width; j++)                                                        \
                lanes[j] = (type)JOIN(lanes[j], lanes[j + width]);                                 \
        all = (type)JOIN(all, lanes[0]);                                                           \
        *(type *)sum = (type)JOIN(*(type *)sum, all);                                              \
    }                                                                                              \
                                                                                                   \
    static void kind##_accumulate(const void *x, const void *factor, size_t count, void *sums)     \
    {                                                                                              \
        const type *in = x;                                                                        \
        type *out = sums, by = *(const type *)factor;                                              \
        size_t i = 0;                                                                              \
        for (; i + kind##_LANES <= count; i += kind##_LANES) {                                     \
            const kind##_loose *l = (const kind##_loose *)(const void *)(in + i);                  \
            kind##_loose *to = (kind##_loose *)(void *)(out + i);                                  \
            *to = MIX(*to, *l, by);                                                                \
        }                                                                                          \
        for (; i < count; i++)                                                                     \
            out[i] = MIX_ONE(out[i], in[i], by);                                                   \
    }

#define UNROLL _Pragma("GCC unroll 16")

#define ADD(s, t) ((s) + (t))
#define OR(s, t) ((s) | (t))
#define MULTIPLY_ADD(s, x, y) ((s) + (x) * (y))
#define AND_OR(s, x, y) ((s) | ((x) & (y)))
#define AND_OR_ONE(s, x, y) ((uint16_t)((s) | ((x) & (y))))
/* Unsigned short becomes int in arithmetic, which must not overflow. */
#define MULTIPLY_ADD_16(s, x, y) ((uint16_t)((s) + (uint32_t)(x) * (y)))

DEFINE(logic, uint16_t, AND_OR, AND_OR_ONE, OR)
DEFINE(int16, uint16_t, MULTIPLY_ADD, MULTIPLY_ADD_16, ADD)
DEFINE(int32, uint32_t, MULTIPLY_ADD, MULTIPLY_ADD, ADD)
DEFINE(int64, uint64_t, MULTIPLY_ADD, MULTIPLY_ADD, ADD)
DEFINE(float32, float, MULTIPLY_ADD, MULTIPLY_ADD, ADD)
DEFINE(float64, double, MULTIPLY_ADD, MULTIPLY_ADD, ADD)

#define TILE(kind)                                                                             \
    {                                                                                          \
        .rows = ROWS, .columns = kind##_COLUMNS, .multiply = kind##_multiply,                  \
        .pack_rows = kind##_pack_rows, .pack_columns = kind##_pack_columns, .dot = kind##_dot, \
        .accumulate = kind##_accumulate,                                                       \
    }

const struct gni_tiles_set GNI_TILES_SET = {
    .name = GNI_TILES_NAME,
    .tiles = {[GNI_TILE_LOGIC] = TILE(logic),
              [GNI_TILE_INT16] = TILE(int16),
              [GNI_TILE_INT32] = TILE(int32),
              [GNI_TILE_INT64] = TILE(int64),
              [GNI_TILE_FLOAT32] = TILE(float32),
              [GNI_TILE_FLOAT64] = TILE(float64)},
};
