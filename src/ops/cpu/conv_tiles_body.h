/*
 * conv_tiles_body.h: the text of the tiles of convolutions, compiled once for each instruction set. The file that includes
 * it defines
 *
 *     GNI_TILES_SET, GNI_TILES_NAME   what it exports, and as which name
 *     GNI_TILES_BYTES                 of a vector register
 *     GNI_TILES_ROWS                  rows of a tile: 4 or 8
 *     GNI_DOT_ROWS, GNI_DOT_COLUMNS   of sums over places
 *
 * Sums are arrays of vectors that never leave the registers: each number of rows and columns is a function of its own,
 * in which all loops over them are unrolled.
 */
#include "ops/cpu/conv_tiles.h"

#include <string.h>

#define UNROLL _Pragma("GCC unroll 16")
#define INLINE static inline __attribute__((always_inline))

#define CASES_4(call) call(1) call(2) call(3) call(4)
#if GNI_TILES_ROWS == 8
#define CASES(call) CASES_4(call) call(5) call(6) call(7) call(8)
#else
#define CASES(call) CASES_4(call)
#endif

#define DEFINE(kind, type)                                                                         \
    typedef type kind##_vector __attribute__((vector_size(GNI_TILES_BYTES)));                      \
    typedef type kind##_part __attribute__((vector_size(16)));                                     \
    typedef type kind##_loose                                                                      \
        __attribute__((vector_size(GNI_TILES_BYTES), aligned(sizeof(type))));                      \
                                                                                                   \
    enum {                                                                                         \
        kind##_LANES = GNI_TILES_BYTES / sizeof(type),                                             \
    };                                                                                             \
                                                                                                   \
    INLINE void kind##_rows(const struct gni_conv_run *run, int rows, int vectors)                 \
    {                                                                                              \
        kind##_vector total[GNI_TILES_ROWS][GNI_CONV_VECTORS_MOST];                                \
        const type *weights = run->weights, *start = run->start, *x = run->x;                      \
        UNROLL for (int i = 0; i < rows; i++)                                                      \
        {                                                                                          \
            const kind##_loose *from =                                                             \
                (const kind##_loose *)(const void *)((type *)run->sums + (size_t)i * run->stride); \
            UNROLL for (int j = 0; j < vectors; j++) total[i][j] =                                 \
                start != NULL ? (kind##_vector){0} + start[i] : from[j];                           \
        }                                                                                          \
        for (size_t c = 0; c < run->channels; c++, x += run->plane)                                \
            for (size_t t = 0; t < run->taps; t++, weights += rows) {                              \
                const kind##_loose *from =                                                         \
                    (const kind##_loose *)(const void *)(x + run->offsets[t]);                     \
                kind##_vector part[GNI_CONV_VECTORS_MOST];                                         \
                UNROLL for (int j = 0; j < vectors; j++) part[j] = from[j];                        \
                UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)     \
                    total[i][j] += part[j] * weights[i];                                           \
            }                                                                                      \
        UNROLL for (int i = 0; i < rows; i++)                                                      \
        {                                                                                          \
            kind##_loose *to =                                                                     \
                (kind##_loose *)(void *)((type *)run->sums + (size_t)i * run->stride);             \
            UNROLL for (int j = 0; j < vectors; j++) to[j] = total[i][j];                          \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void kind##_multiply(const struct gni_conv_run *run, size_t rows, size_t vectors)       \
    {                                                                                              \
        switch (vectors * 16 + rows) {                                                             \
            CASES(kind##_CASE_1)                                                                   \
            CASES(kind##_CASE_2)                                                                   \
            CASES(kind##_CASE_3)                                                                   \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* Parts of 16 bytes are added first: a processor takes them out of a register as they are. */ \
    INLINE type kind##_sum(kind##_vector vector)                                                   \
    {                                                                                              \
        kind##_part parts[GNI_TILES_BYTES / 16];                                                   \
        type lanes[16 / sizeof(type)];                                                             \
        memcpy(parts, &vector, sizeof vector);                                                     \
        UNROLL for (int width = GNI_TILES_BYTES / 32; width > 0; width /= 2)                       \
            UNROLL for (int j = 0; j < width; j++) parts[j] += parts[j + width];                   \
        memcpy(lanes, parts, sizeof lanes);                                                        \
        UNROLL for (int width = (int)(8 / sizeof(type)); width > 0; width /= 2)                    \
            UNROLL for (int j = 0; j < width; j++) lanes[j] += lanes[j + width];                   \
        return lanes[0];                                                                           \
    }                                                                                              \
                                                                                                   \
    INLINE void kind##_dots(int rows, int columns, size_t vectors, const void *left, size_t step,  \
                            const void *const *right, void *sums, size_t stride)                   \
    {                                                                                              \
        kind##_vector total[GNI_DOT_ROWS][GNI_DOT_COLUMNS] = {{{0}}};                              \
        for (size_t k = 0; k < vectors * kind##_LANES; k += kind##_LANES) {                        \
            kind##_vector one[GNI_DOT_ROWS];                                                       \
            UNROLL for (int i = 0; i < rows; i++) one[i] =                                         \
                *(const kind##_loose *)(const void *)((const type *)left + (size_t)i * step + k);  \
            UNROLL for (int j = 0; j < columns; j++)                                               \
            {                                                                                      \
                kind##_vector other =                                                              \
                    *(const kind##_loose *)(const void *)((const type *)right[j] + k);             \
                UNROLL for (int i = 0; i < rows; i++) total[i][j] += one[i] * other;               \
            }                                                                                      \
        }                                                                                          \
        UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < columns; j++)(            \
            (type *)sums)[(size_t)i * stride + (size_t)j] += kind##_sum(total[i][j]);              \
    }                                                                                              \
                                                                                                   \
    static void kind##_dot(size_t rows, size_t columns, size_t vectors, const void *left,          \
                           size_t step, const void *const *right, void *sums, size_t stride)       \
    {                                                                                              \
        switch (rows * 16 + columns) {                                                             \
            DOTS(kind##_DOT_CASE)                                                                  \
        }                                                                                          \
    }

#define ROWS_CASE(kind, rows, vectors)   \
    case (vectors)*16 + (rows):          \
        kind##_rows(run, rows, vectors); \
        break;
#define float32_CASE_1(rows) ROWS_CASE(float32, rows, 1)
#define float32_CASE_2(rows) ROWS_CASE(float32, rows, 2)
#define float32_CASE_3(rows) ROWS_CASE(float32, rows, 3)
#define float64_CASE_1(rows) ROWS_CASE(float64, rows, 1)
#define float64_CASE_2(rows) ROWS_CASE(float64, rows, 2)
#define float64_CASE_3(rows) ROWS_CASE(float64, rows, 3)

#define DOTS_OF(call, rows) call(rows, 1) call(rows, 2) call(rows, 3)
#if GNI_DOT_COLUMNS == 6
#define DOTS_WIDE(call, rows) DOTS_OF(call, rows) call(rows, 4) call(rows, 5) call(rows, 6)
#define DOTS(call) DOTS_WIDE(call, 1) DOTS_WIDE(call, 2) DOTS_WIDE(call, 3) DOTS_WIDE(call, 4)
#else
#define DOTS(call) DOTS_OF(call, 1) DOTS_OF(call, 2) DOTS_OF(call, 3)
#endif
#define DOT_CASE(kind, rows, columns)                                         \
    case (rows)*16 + (columns):                                               \
        kind##_dots(rows, columns, vectors, left, step, right, sums, stride); \
        break;
#define float32_DOT_CASE(rows, columns) DOT_CASE(float32, rows, columns)
#define float64_DOT_CASE(rows, columns) DOT_CASE(float64, rows, columns)

DEFINE(float32, float)
DEFINE(float64, double)

#define TILE(kind)                                                                   \
    {                                                                                \
        .rows = GNI_TILES_ROWS, .lanes = kind##_LANES, .multiply = kind##_multiply,  \
        .dot_rows = GNI_DOT_ROWS, .dot_columns = GNI_DOT_COLUMNS, .dot = kind##_dot, \
    }

const struct gni_conv_tiles GNI_TILES_SET = {
    .name = GNI_TILES_NAME,
    .float32 = TILE(float32),
    .float64 = TILE(float64),
};
