/*
 * tiles.h: our own matrix product: blocks that fit a cache, cut into tiles that fit the registers.
 *
 *     block   GNI_BLOCK_ROWS x GNI_BLOCK_COLUMNS elements of c, summed in the computing type in a workspace,
 *             GNI_BLOCK_INNER products of each at a time, and stored at the end, so that halves are rounded once
 *     panel   what a row of tiles needs of a, or a column of them of b, packed: for each of the inner indices
 *             the elements side by side, with zeros where the block ends
 *     tile    as many sums as the registers hold
 *
 * The innermost loops exist for the basic instruction set, for AVX2 with FMA and for AVX-512, as those of loops.h
 * do, and follow the choice made there. They may contract, so that floating results differ in the last bits.
 *
 * Threads: any, at once.
 */
#ifndef GNI_OPS_CPU_TILES_H
#define GNI_OPS_CPU_TILES_H

#include "ops/cpu/cpu_product.h"

enum {
    GNI_BLOCK_ROWS = 144,    /* a multiple of every tile's rows */
    GNI_BLOCK_COLUMNS = 192, /* and of every tile's columns */
    GNI_BLOCK_INNER = 256,
    GNI_TILE_ALIGNMENT = 64,
};

/* The innermost loops of one computing type. Addresses are aligned to GNI_TILE_ALIGNMENT where they are packed or
 * sums, to an element otherwise. */
struct gni_tile {
    size_t rows, columns;

    /* sums[rows][columns] (+)= a b, of a panel of each; `stride` elements from a row of sums to the next. */
    void (*multiply)(size_t inner, const void *a, const void *b, void *sums, size_t stride,
                     bool is_first);

    /* Packs `count` rows of a, or columns of b: `across` elements from one to the next, `along` from an inner index
     * to the next. */
    void (*pack_rows)(const void *from, int64_t across, int64_t along, size_t count, size_t inner,
                      void *panel);
    void (*pack_columns)(const void *from, int64_t across, int64_t along, size_t count,
                         size_t inner, void *panel);

    /* *sum += the sum of x[i] * y[i]; and sums[i] += *factor * x[i]. */
    void (*dot)(const void *x, const void *y, size_t count, void *sum);
    void (*accumulate)(const void *x, const void *factor, size_t count, void *sums);
};

enum gni_tile_kind {
    GNI_TILE_LOGIC, /* bool, as int16: or, and */
    GNI_TILE_INT16, /* and what is narrower: the low bits of a product depend on the low bits alone */
    GNI_TILE_INT32,
    GNI_TILE_INT64,
    GNI_TILE_FLOAT32,
    GNI_TILE_FLOAT64,
    GNI_TILE_KINDS
};

struct gni_tiles_set {
    const char *name; /* as gni_loops_name() */
    struct gni_tile tiles[GNI_TILE_KINDS];
};

extern const struct gni_tiles_set gni_tiles_basic;
extern const struct gni_tiles_set gni_tiles_avx2;   /* on x86 only */
extern const struct gni_tiles_set gni_tiles_avx512; /* on x86 only */

/* The loops for elements of a type, and the type that they compute in. */
const struct gni_tile *gni_tile_find(gn_dtype dtype, gn_dtype *computing);

/* ---- runs of elements in the computing type ---------------------------------------------------- */

/*
 * `count` elements, `stride` apart, as consecutive ones of the computing type: where they are, if they are that;
 * otherwise in `room`, which has space for as many and is aligned for any element.
 */
const void *gni_run_load(const char *from, int64_t stride, size_t count, gn_dtype dtype,
                         gn_dtype computing, void *room);

/* Stores consecutive elements of the computing type `stride` apart. */
void gni_run_store(const void *run, size_t count, gn_dtype computing, gn_dtype dtype, char *to,
                   int64_t stride);

/* ---- blocks ------------------------------------------------------------------------------------ */

struct gni_block {
    size_t rows, columns; /* of tiles at most GNI_BLOCK_ROWS x GNI_BLOCK_COLUMNS */
    size_t inner;
    struct gni_matrix a, b, c;
};

/* Bytes that a block of this size needs to work in, aligned to GNI_TILE_ALIGNMENT. */
size_t gni_block_workspace(gn_dtype dtype, size_t rows, size_t columns, size_t inner);

void gni_block_multiply(const struct gni_block *block, gn_dtype dtype, char *workspace);

#endif
