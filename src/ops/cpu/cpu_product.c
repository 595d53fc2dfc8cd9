/*
 * cpu_product.c: a matrix product is cut into blocks of c, of which each thread computes one after the other.
 *
 * Each thread that is at work has a slot of memory. All slots are one piece, asked for before the work begins, so
 * that nothing can fail after that.
 */
#include "ops/cpu/cpu_product.h"

#include "base/checked.h"
#include "base/parallel.h"
#include "base/thread.h"
#include "ops/cpu/cpu_blas.h"
#include "tensor/tensor.h"

#include <limits.h>
#include <stdalign.h>

enum {
    PART_WORK = 1 << 18,   /* products that are worth a thread: about ten microseconds */
    TASK_WORK = 1 << 10,   /* products for which there is time while a task begins and ends */
    BLAS_WORK = 1 << 13,   /* products from which on OpenBLAS is faster than tiles */
    BLAS_EDGE_LEAST = 128, /* of its blocks */
    BLAS_TURNS = 2,        /* of each thread */
    SHARED_WORK = 1 << 29, /* products that are worth OpenBLAS's own threads */
    NARROW = 16,           /* columns */
    SMALL_BYTES = 16384,   /* a workspace that is taken from the stack */
    SLOTS_MOST = 256,
};

size_t gni_product_grain(int64_t work)
{
    return work >= PART_WORK ? 1 : (size_t)(PART_WORK / (work + TASK_WORK)) + 1;
}

/* The work of a product of this size; as much as can be told if there is more. */
static int64_t work_of(int64_t rows, int64_t columns, int64_t inner)
{
    int64_t work;
    if (__builtin_mul_overflow(rows, columns, &work) ||
        __builtin_mul_overflow(work, inner > 0 ? inner : 1, &work))
        return INT64_MAX;
    return work;
}

/* ---- the blocks of a product ------------------------------------------------------------------ */

struct blocks {
    const struct gni_product *product;
    int64_t high, wide;  /* of a block */
    int64_t down, along; /* blocks in each matrix */
    char *slots;         /* workspaces, where the stack is not large enough */
    size_t slot_bytes;
    int slot_count;
    atomic_bool is_taken[SLOTS_MOST];
};

static int64_t ceil_divide(int64_t value, int64_t by)
{
    return (value - 1) / by + 1;
}

static void blocks_cut(struct blocks *blocks, int64_t high, int64_t wide)
{
    const struct gni_product *product = blocks->product;
    blocks->high = product->rows < high ? product->rows : high;
    blocks->wide = product->columns < wide ? product->columns : wide;
    blocks->down = ceil_divide(product->rows, blocks->high);
    blocks->along = ceil_divide(product->columns, blocks->wide);
}

static int64_t block_count(const struct blocks *blocks)
{
    return blocks->product->batch_count * blocks->down * blocks->along;
}

static struct gni_block block_at(const struct blocks *blocks, int64_t index)
{
    const struct gni_product *product = blocks->product;
    int64_t size = (int64_t)gni_dtype_size(product->dtype);
    int64_t column = index % blocks->along * blocks->wide;
    int64_t row = index / blocks->along % blocks->down * blocks->high;
    int64_t rows = product->rows - row, columns = product->columns - column;
    struct gni_block block = {
        .rows = (size_t)(rows < blocks->high ? rows : blocks->high),
        .columns = (size_t)(columns < blocks->wide ? columns : blocks->wide),
        .inner = (size_t)product->inner,
    };
    gni_product_seek(product, index / blocks->along / blocks->down, &block.a, &block.b, &block.c);
    block.a.data += row * block.a.row_stride * size;
    block.b.data += column * block.b.column_stride * size;
    block.c.data += (row * block.c.row_stride + column * block.c.column_stride) * size;
    return block;
}

/* There are as many slots as threads; if somebody has raised their number meanwhile, the last ones wait. */
static int slot_take(struct blocks *blocks)
{
    for (int i = 0;; i = (i + 1) % blocks->slot_count) {
        if (!atomic_load_explicit(&blocks->is_taken[i], memory_order_relaxed) &&
            !atomic_exchange_explicit(&blocks->is_taken[i], true, memory_order_acquire))
            return i;
        gni_thread_pause();
    }
}

static void part_run_blas(void *context, size_t begin, size_t end)
{
    const struct blocks *blocks = context;
    for (size_t i = begin; i < end; i++) {
        struct gni_block block = block_at(blocks, (int64_t)i);
        gni_blas_multiply(&block, blocks->product->dtype);
    }
}

static void part_run_small(void *context, size_t begin, size_t end)
{
    const struct blocks *blocks = context;
    alignas(GNI_TILE_ALIGNMENT) char workspace[SMALL_BYTES];
    for (size_t i = begin; i < end; i++) {
        struct gni_block block = block_at(blocks, (int64_t)i);
        gni_block_multiply(&block, blocks->product->dtype, workspace);
    }
}

static void part_run_tiles(void *context, size_t begin, size_t end)
{
    struct blocks *blocks = context;
    int slot = slot_take(blocks);
    for (size_t i = begin; i < end; i++) {
        struct gni_block block = block_at(blocks, (int64_t)i);
        gni_block_multiply(&block, blocks->product->dtype,
                           blocks->slots + (size_t)slot * blocks->slot_bytes);
    }
    atomic_store_explicit(&blocks->is_taken[slot], false, memory_order_release);
}

static void blocks_run(struct blocks *blocks, gni_part part)
{
    int64_t work = work_of(blocks->high, blocks->wide, blocks->product->inner);
    gni_parallel_for((size_t)block_count(blocks), gni_product_grain(work), part, blocks);
}

/* ---- by tiles --------------------------------------------------------------------------------- */

static gn_status run_tiles(const struct gni_product *product, gn_device *device)
{
    struct blocks blocks = {.product = product};
    blocks_cut(&blocks, GNI_BLOCK_ROWS, GNI_BLOCK_COLUMNS);
    size_t nbytes = gni_block_workspace(product->dtype, (size_t)blocks.high, (size_t)blocks.wide,
                                        (size_t)product->inner);
    if (nbytes <= SMALL_BYTES) {
        blocks_run(&blocks, part_run_small);
        return GN_OK;
    }
    struct gni_storage *storage;
    int threads = gni_parallel_get_threads();
    int64_t count = block_count(&blocks);
    blocks.slot_count = count < threads ? (int)count : threads;
    if (!gni_size_align_up(nbytes, GNI_TILE_ALIGNMENT, &blocks.slot_bytes))
        return gni_error_host_memory(nbytes);
    GN_TRY(
        gni_storage_create(device, (size_t)blocks.slot_count * blocks.slot_bytes, NULL, &storage));
    blocks.slots = storage->data;
    blocks_run(&blocks, part_run_tiles);
    gni_storage_release(storage);
    return GN_OK;
}

/* ---- by OpenBLAS ------------------------------------------------------------------------------ */

/* Whether OpenBLAS can read a matrix of this size as it is: one of the strides is 1, the other long enough. */
static bool matrix_fits_blas(const struct gni_matrix *matrix, int64_t rows, int64_t columns)
{
    int64_t down = matrix->row_stride, right = matrix->column_stride;
    bool is_by_rows = (columns == 1 || right == 1) && (rows == 1 || down >= columns);
    bool is_by_columns = (rows == 1 || down == 1) && (columns == 1 || right >= rows);
    return (is_by_rows && (rows == 1 || down <= INT_MAX)) ||
           (is_by_columns && (columns == 1 || right <= INT_MAX));
}

/* Whether OpenBLAS would be faster if it could be used: then a matrix that does not fit it is worth a copy. */
static bool suits_blas(const struct gni_product *product)
{
    return (product->dtype == GN_FLOAT32 || product->dtype == GN_FLOAT64) && product->rows > 1 &&
           product->columns > 1 && product->inner > 0 && product->inner <= INT_MAX &&
           work_of(product->rows * product->columns, product->inner, product->batch_count) >=
               BLAS_WORK &&
           gni_blas_is_there();
}

unsigned gni_cpu_product_copies(const struct gni_product *product, gn_device *device)
{
    (void)device;
    if (!suits_blas(product))
        return 0;
    return (matrix_fits_blas(&product->a, product->rows, product->inner) ? 0 : GNI_COPY_A) |
           (matrix_fits_blas(&product->b, product->inner, product->columns) ? 0 : GNI_COPY_B);
}

static bool all_fit_blas(const struct gni_product *product)
{
    return matrix_fits_blas(&product->a, product->rows, product->inner) &&
           matrix_fits_blas(&product->b, product->inner, product->columns) &&
           matrix_fits_blas(&product->c, product->rows, product->columns) &&
           (product->c.column_stride == 1 || product->columns == 1);
}

/* Whether OpenBLAS's own threads compute each matrix of the batch, one after the other. */
static bool is_for_shared(const struct gni_product *product)
{
    return gni_blas_is_shared() && gni_parallel_get_threads() > 1 &&
           work_of(product->rows, product->columns, product->inner) >= SHARED_WORK;
}

static void run_shared(const struct gni_product *product)
{
    struct blocks blocks = {.product = product};
    blocks_cut(&blocks, product->rows < INT_MAX ? product->rows : INT_MAX, product->columns);
    gni_blas_begin(gni_parallel_get_threads());
    part_run_blas(&blocks, 0, (size_t)block_count(&blocks));
    gni_blas_end();
}

/* Blocks are halves of halves: as large as they can be, so that packing them does not count, but several for each
 * thread, since threads are not equally fast. */
static void run_blas(const struct gni_product *product)
{
    struct blocks blocks = {.product = product};
    int threads = gni_parallel_get_threads();
    int64_t wanted = threads > 1 ? (int64_t)threads * BLAS_TURNS : 1;
    int64_t high = product->rows < INT_MAX ? product->rows : INT_MAX, wide = product->columns;
    blocks_cut(&blocks, high, wide);
    while (block_count(&blocks) < wanted && (high > BLAS_EDGE_LEAST || wide > BLAS_EDGE_LEAST)) {
        if (high >= wide)
            high = ceil_divide(high, 2);
        else
            wide = ceil_divide(wide, 2);
        blocks_cut(&blocks, high, wide);
    }
    gni_blas_begin(1);
    blocks_run(&blocks, part_run_blas);
    gni_blas_end();
}

/* ---- any -------------------------------------------------------------------------------------- */

/* A vector belongs on the right. c is best written by rows, and tiles are wider than they are high. */
static bool is_better_turned(const struct gni_product *product)
{
    if (product->rows == 1 || product->columns == 1)
        return product->columns != 1;
    if (suits_blas(product))
        return product->c.column_stride != 1 && product->c.row_stride == 1;
    return product->columns < NARROW && product->columns < product->rows;
}

gn_status gni_cpu_product(const struct gni_product *product, gn_device *device, gn_stream *stream)
{
    struct gni_product other;
    (void)stream;
    if (is_better_turned(product)) {
        gni_product_turn(product, &other);
        product = &other;
    }
    if (product->columns == 1)
        return gni_product_vector(product, device);
    if (!suits_blas(product) || !all_fit_blas(product))
        return run_tiles(product, device);
    (is_for_shared(product) ? run_shared : run_blas)(product);
    return GN_OK;
}
