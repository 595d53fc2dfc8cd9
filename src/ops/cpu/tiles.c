/*
 * tiles.c: which instruction set's tiles are used, and blocks of a matrix product made of them: see tiles.h.
 */
#include "ops/cpu/tiles.h"

#include "ops/cpu/loops.h"

#include <string.h>

/* ---- choice ---------------------------------------------------------------------------------- */

static const struct gni_tiles_set *set_get(void)
{
#ifdef GNI_LOOPS_X86
    const char *name = gni_loops_name();
    if (strcmp(name, gni_tiles_avx512.name) == 0)
        return &gni_tiles_avx512;
    if (strcmp(name, gni_tiles_avx2.name) == 0 && __builtin_cpu_supports("fma"))
        return &gni_tiles_avx2;
#endif
    return &gni_tiles_basic;
}

const struct gni_tile *gni_tile_find(gn_dtype dtype, gn_dtype *computing)
{
    static const struct {
        enum gni_tile_kind kind;
        gn_dtype computing;
    } kinds[GN_DTYPE_COUNT] = {
        [GN_BOOL] = {GNI_TILE_LOGIC, GN_INT16},
#define COMPUTED_INT8 {GNI_TILE_INT16, GN_INT16}
#define COMPUTED_INT16           \
    {                            \
        GNI_TILE_INT16, GN_INT16 \
    }
#define COMPUTED_INT32           \
    {                            \
        GNI_TILE_INT32, GN_INT32 \
    }
#define COMPUTED_INT64           \
    {                            \
        GNI_TILE_INT64, GN_INT64 \
    }
#define ROW(NAME, name, type, SIGNED) [GN_##NAME] = COMPUTED_##SIGNED,
        GNI_INTEGER_LIST(ROW)
#undef ROW
            [GN_FLOAT16] = {GNI_TILE_FLOAT32, GN_FLOAT32},
        [GN_BFLOAT16] = {GNI_TILE_FLOAT32, GN_FLOAT32},
        [GN_FLOAT32] = {GNI_TILE_FLOAT32, GN_FLOAT32},
        [GN_FLOAT64] = {GNI_TILE_FLOAT64, GN_FLOAT64},
    };
    *computing = kinds[dtype].computing;
    return &set_get()->tiles[kinds[dtype].kind];
}

/* ---- runs ------------------------------------------------------------------------------------ */

enum {
    RUN_PIECE = 128, /* elements that are gathered before they are converted */
};

/* Copies elements of `size` bytes that lie `from_step` and `to_step` bytes apart. */
static void elements_move(const char *from, int64_t from_step, char *to, int64_t to_step,
                          size_t size, size_t count)
{
#define MOVE(bytes)                                                          \
    case bytes:                                                              \
        for (size_t i = 0; i < count; i++, from += from_step, to += to_step) \
            memcpy(to, from, bytes);                                         \
        break
    switch (size) {
        MOVE(1);
        MOVE(2);
        MOVE(4);
        MOVE(8);
    default:
        gni_assert(false);
    }
#undef MOVE
}

const void *gni_run_load(const char *from, int64_t stride, size_t count, gn_dtype dtype,
                         gn_dtype computing, void *room)
{
    int64_t size = (int64_t)gni_dtype_size(dtype), wide = (int64_t)gni_dtype_size(computing);
    if (stride == 1 && dtype == computing)
        return from;
    if (dtype == computing) {
        elements_move(from, stride * size, room, size, (size_t)size, count);
        return room;
    }
    gni_loop convert = gni_loop_convert(dtype, computing);
    if (stride == 1) {
        convert(room, (const void *const[]){from}, count);
        return room;
    }
    for (size_t done = 0; done < count; done += RUN_PIECE) {
        uint64_t piece[RUN_PIECE];
        size_t length = count - done < RUN_PIECE ? count - done : RUN_PIECE;
        elements_move(from + (int64_t)done * stride * size, stride * size, (char *)piece, size,
                      (size_t)size, length);
        convert((char *)room + (int64_t)done * wide, (const void *const[]){piece}, length);
    }
    return room;
}

void gni_run_store(const void *run, size_t count, gn_dtype computing, gn_dtype dtype, char *to,
                   int64_t stride)
{
    int64_t size = (int64_t)gni_dtype_size(dtype), wide = (int64_t)gni_dtype_size(computing);
    gni_loop convert = gni_loop_convert(computing, dtype);
    if (stride == 1) {
        convert(to, &run, count);
        return;
    }
    for (size_t done = 0; done < count; done += RUN_PIECE) {
        uint64_t piece[RUN_PIECE];
        size_t length = count - done < RUN_PIECE ? count - done : RUN_PIECE;
        convert(piece, (const void *const[]){(const char *)run + (int64_t)done * wide}, length);
        elements_move((const char *)piece, size, to + (int64_t)done * stride * size, stride * size,
                      (size_t)size, length);
    }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static size_t round_up(size_t value, size_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Where the parts of a workspace begin, in bytes. */
struct places {
    size_t row_panels, column_panels, sums, strip, end;
};

static struct places places_of(const struct gni_tile *tile, size_t size, size_t rows,
                               size_t columns, size_t inner)
{
    size_t deep = smaller(inner, GNI_BLOCK_INNER);
    size_t high = round_up(rows, tile->rows), wide = round_up(columns, tile->columns);
    struct places places = {0};
    places.column_panels = round_up(high * deep * size, GNI_TILE_ALIGNMENT);
    places.sums = places.column_panels + round_up(wide * deep * size, GNI_TILE_ALIGNMENT);
    places.strip = places.sums + round_up(high * wide * size, GNI_TILE_ALIGNMENT);
    size_t most = tile->rows > tile->columns ? tile->rows : tile->columns;
    places.end = places.strip + most * deep * size;
    return places;
}

size_t gni_block_workspace(gn_dtype dtype, size_t rows, size_t columns, size_t inner)
{
    gn_dtype computing;
    const struct gni_tile *tile = gni_tile_find(dtype, &computing);
    return places_of(tile, gni_dtype_size(computing), rows, columns, inner).end;
}

struct strip {
    const void *data; /* in the computing type */
    int64_t across, along;
};

/* Rows of a, or columns of b, as they are, or converted into `room`. */
static struct strip strip_load(const char *from, struct strip steps, size_t count, size_t inner,
                               gn_dtype dtype, gn_dtype computing, char *room)
{
    if (dtype == computing)
        return (struct strip){from, steps.across, steps.along};
    int64_t size = (int64_t)gni_dtype_size(dtype);
    size_t wide = gni_dtype_size(computing);
    if (steps.across == 1 && steps.along != 1) {
        for (size_t k = 0; k < inner; k++)
            (void)gni_run_load(from + (int64_t)k * steps.along * size, 1, count, dtype, computing,
                               room + k * count * wide);
        return (struct strip){room, 1, (int64_t)count};
    }
    for (size_t i = 0; i < count; i++)
        (void)gni_run_load(from + (int64_t)i * steps.across * size, steps.along, inner, dtype,
                           computing, room + i * inner * wide);
    return (struct strip){room, (int64_t)inner, 1};
}

struct packing {
    const struct gni_tile *tile;
    gn_dtype dtype, computing;
    size_t deep; /* inner indices this time */
    char *room;  /* for a strip */
};

/* Packs `count` rows of a, or columns of b, as panels one behind the other. */
static void panels_pack(const struct packing *packing, const char *from, struct strip steps,
                        size_t count, bool is_rows, char *panels)
{
    size_t width = is_rows ? packing->tile->rows : packing->tile->columns;
    size_t step = width * packing->deep * gni_dtype_size(packing->computing);
    int64_t size = (int64_t)gni_dtype_size(packing->dtype);
    for (size_t at = 0; at < count; at += width, panels += step) {
        size_t some = smaller(width, count - at);
        struct strip strip =
            strip_load(from + (int64_t)at * steps.across * size, steps, some, packing->deep,
                       packing->dtype, packing->computing, packing->room);
        (is_rows ? packing->tile->pack_rows : packing->tile->pack_columns)(
            strip.data, strip.across, strip.along, some, packing->deep, panels);
    }
}

/* All tiles of a block, from its panels. */
static void tiles_multiply(const struct gni_tile *tile, size_t size, const struct gni_block *block,
                           size_t deep, const char *rows, const char *columns, char *sums,
                           bool is_first)
{
    size_t stride = round_up(block->columns, tile->columns);
    for (size_t j = 0; j < block->columns; j += tile->columns)
        for (size_t i = 0; i < block->rows; i += tile->rows)
            tile->multiply(deep, rows + i * deep * size, columns + j * deep * size,
                           sums + (i * stride + j) * size, stride, is_first);
}

void gni_block_multiply(const struct gni_block *block, gn_dtype dtype, char *workspace)
{
    gn_dtype computing;
    const struct gni_tile *tile = gni_tile_find(dtype, &computing);
    size_t size = gni_dtype_size(computing);
    int64_t element = (int64_t)gni_dtype_size(dtype);
    struct places places = places_of(tile, size, block->rows, block->columns, block->inner);
    char *sums = workspace + places.sums;
    struct packing packing = {tile, dtype, computing, 0, workspace + places.strip};
    struct strip a_steps = {NULL, block->a.row_stride, block->a.column_stride};
    struct strip b_steps = {NULL, block->b.column_stride, block->b.row_stride};
    if (block->inner == 0)
        memset(sums, 0, places.strip - places.sums);
    for (size_t k = 0; k < block->inner; k += GNI_BLOCK_INNER) {
        packing.deep = smaller(GNI_BLOCK_INNER, block->inner - k);
        panels_pack(&packing, block->a.data + (int64_t)k * a_steps.along * element, a_steps,
                    block->rows, true, workspace + places.row_panels);
        panels_pack(&packing, block->b.data + (int64_t)k * b_steps.along * element, b_steps,
                    block->columns, false, workspace + places.column_panels);
        tiles_multiply(tile, size, block, packing.deep, workspace + places.row_panels,
                       workspace + places.column_panels, sums, k == 0);
    }
    size_t stride = round_up(block->columns, tile->columns);
    for (size_t i = 0; i < block->rows; i++)
        gni_run_store(sums + i * stride * size, block->columns, computing, dtype,
                      block->c.data + (int64_t)i * block->c.row_stride * element,
                      block->c.column_stride);
}
