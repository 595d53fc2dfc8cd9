/*
 * conv_tiles.h: the innermost loops of convolutions: sums that fill the registers.
 *
 * conv_layout.h says how an image lies in memory: what a tap of the kernel reads is a shifted run of the same numbers.
 *
 *     multiply   a few channels of the result (rows), a few registers of neighbouring places
 *     dot        a few channels (rows) times a few taps (columns): sums over places, for the gradient of the weights
 *
 * Like those of tiles.h they exist for the basic instruction set, for AVX2 with FMA and for AVX-512, and may contract.
 *
 * Threads: any, at once.
 */
#ifndef GNI_OPS_CPU_CONV_TILES_H
#define GNI_OPS_CPU_CONV_TILES_H

#include "tensor/dtype.h"

enum {
    GNI_CONV_LANES_MOST = 16,  /* of a register */
    GNI_CONV_VECTORS_MOST = 3, /* registers of places in a tile */
    GNI_CONV_ROWS_MOST = 8,
    GNI_CONV_DOT_MOST = 6, /* columns */
};

/* What a tile multiplies. Elements of the computing type; numbers count elements. */
struct gni_conv_run {
    size_t channels, taps;
    const int64_t *offsets; /* of each tap */
    const void *x;          /* at the first place of the first channel */
    size_t plane;           /* from a channel to the next */
    const void *weights;    /* [channel][tap][row] */
    const void *start;      /* [row]: what the sums begin with; NULL: what they are */
    void *sums;             /* [row][place] */
    size_t stride;          /* from a row of sums to the next */
};

struct gni_conv_tile {
    size_t rows, lanes;

    /* The sums of 1 to `rows` rows at `vectors` times `lanes` places. */
    void (*multiply)(const struct gni_conv_run *run, size_t rows, size_t vectors);

    size_t dot_rows, dot_columns;

    /* sums[i * stride + j] += the sum over `vectors` times `lanes` places of left[i] and right[j], of 1 to dot_rows rows
     * and dot_columns columns. `left` has `step` elements from a row to the next. */
    void (*dot)(size_t rows, size_t columns, size_t vectors, const void *left, size_t step,
                const void *const *right, void *sums, size_t stride);
};

struct gni_conv_tiles {
    const char *name; /* as gni_loops_name() */
    struct gni_conv_tile float32, float64;
};

extern const struct gni_conv_tiles gni_conv_tiles_basic;
extern const struct gni_conv_tiles gni_conv_tiles_avx2;   /* on x86 only */
extern const struct gni_conv_tiles gni_conv_tiles_avx512; /* on x86 only */

/* The loops for the type that elements of a floating type are computed in. */
const struct gni_conv_tile *gni_conv_tile_find(gn_dtype computing);

#endif
