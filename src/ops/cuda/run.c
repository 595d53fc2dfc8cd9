/*
 * run.c: programs and folds on a GPU: the form of the program, its kernel, and a launch.
 *
 * Elementwise kernels are bound by memory: a thread loads 16 bytes once, and there are many threads. On an H200 that
 * is a little faster than a copy by the driver, and than several loads a thread. Folds of few results are cut into
 * parts, as many as fill a GPU.
 */
#include "ops/cuda/generate.h"

#include "base/host.h"
#include "jit/kernel.h"
#include "ops/cuda/last.h"
#include "ops/cuda/rows.h"
#include "ops/cuda/product.h"
#include "ops/cuda/index.h"
#include "ops/cuda/run.h"
#include "ops/recorder.h"

#include <string.h>

enum {
    ENOUGH_BLOCKS = 1056, /* that fill a GPU: 8 for each of 132 multiprocessors */
    GRID_MOST = 1 << 30,
    SHORT_MOST = 1024,     /* elements of a row that a warp folds */
    CHUNK_LEAST = 4096,    /* elements of a part of a row */
    CHUNK_ROWS_LEAST = 64, /* rows of a part of columns */
};

static gn_status kernel_get(gn_device *device, const struct gni_form *form,
                            struct gni_kernel **kernel)
{
    unsigned char signature[GNI_CUDA_SIGNATURE_MOST];
    char name[160];
    size_t size = gni_form_sign(form, signature);
    *kernel = gni_kernel_find(device, signature, size);
    if (*kernel != NULL)
        return GN_OK;
    struct gni_builder text = {.text = NULL};
    gni_form_name(form, name, sizeof name);
    gni_form_text(form, name, &text);
    void *state = gni_wait_begin();
    gn_status status = gni_kernel_build(device, name, &text, signature, size, kernel);
    gni_wait_end(state);
    return status;
}

gn_status gni_form_launch(const struct gni_form *form, const struct gni_fold_arguments *fold,
                          unsigned grid_x, unsigned grid_y, gn_stream *stream)
{
    uint64_t arguments[GNI_CUDA_ARGUMENTS_MOST];
    struct gni_kernel *kernel;
    GN_TRY(kernel_get(stream->device, form, &kernel));
    int words = gni_form_arguments(form, fold, arguments);
    void *addresses[] = {arguments};
    struct gni_launch launch = {.grid = {grid_x, grid_y, 1},
                                .block = {(unsigned)form->threads, 1, 1},
                                .arguments = addresses,
                                .argument_bytes = (size_t)words * sizeof *arguments};
    return gni_kernel_launch(kernel, stream, &launch);
}

/* ---- elementwise ------------------------------------------------------------------------------ */

gn_status gni_cuda_run(struct gni_program *program, gn_stream *stream)
{
    struct gni_form form;
    if (program->count == 0)
        return GN_OK;
    gni_form_make(&form, program);
    gni_form_pack(&form, 0);
    uint64_t block = (uint64_t)GNI_CUDA_BLOCK * (uint64_t)form.pack; /* a power of two */
    uint64_t blocks = form.is_strided ? (uint64_t)gni_form_tile(&form) : 0;
    if (blocks == 0)
        blocks = ((uint64_t)program->count + block - 1) >> __builtin_ctzll(block);
    if (blocks > GRID_MOST)
        return gni_error(GN_ERROR_OVERFLOW, "%lld elements are more than a kernel can have",
                         (long long)program->count);
    return gni_form_launch(&form, NULL, (unsigned)blocks, 1, stream);
}

/* ---- folds ------------------------------------------------------------------------------------ */

static int64_t divided_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* How a fold is spread over the GPU: by its shape alone. */
static void fold_spread(struct gni_form *form, const struct gni_folding *folding,
                        struct gni_fold_arguments *fold, int64_t *blocks)
{
    bool is_by_columns = folding->is_by_columns;
    bool is_short = !is_by_columns && fold->folded <= SHORT_MOST;
    gni_form_pack(form, is_by_columns ? fold->kept : fold->kept > 1 ? fold->folded : 0);
    form->fold = is_by_columns ? GNI_FOLD_COLUMNS : is_short ? GNI_FOLD_SHORT : GNI_FOLD_ROWS;
    *blocks = is_by_columns ? divided_up(fold->kept, 32 * form->pack)
              : is_short    ? divided_up(fold->kept, 8)
                            : fold->kept;
    fold->parts = 1;
    fold->chunk = fold->folded;
    if (is_short || *blocks >= GNI_LAST_COUNTERS)
        return;
    int64_t least = is_by_columns ? CHUNK_ROWS_LEAST : CHUNK_LEAST;
    int64_t parts = ENOUGH_BLOCKS / *blocks, most = fold->folded / least;
    parts = parts < most ? parts : most;
    if (parts > 1) {
        int64_t unit = is_by_columns ? 1 : form->pack;
        fold->chunk = divided_up(divided_up(fold->folded, parts), unit) * unit;
        fold->parts = divided_up(fold->folded, fold->chunk);
    }
}

static gn_status fold_launch(const struct gni_form *form, struct gni_fold_arguments *fold,
                             int64_t blocks, gn_stream *stream)
{
    gn_dtype accumulator =
        gni_fold_accumulator(form->reduction, gni_program_held(form->program, form->value));
    struct gni_storage *storage = NULL;
    if (fold->parts > 1) {
        size_t nbytes = (size_t)(fold->parts * fold->kept) * gni_dtype_size(accumulator);
        GN_TRY(gni_storage_create(stream->device, nbytes, stream, &storage));
        fold->partial = storage->data;
    }
    gn_status status = gni_form_launch(form, fold, (unsigned)blocks, (unsigned)fold->parts, stream);
    gni_storage_release(storage);
    return status;
}

gn_status gni_cuda_fold(struct gni_program *program, short value, const struct gni_folding *folding,
                        gn_tensor *result, gn_stream *stream)
{
    struct gni_form form;
    struct gni_fold_arguments fold = {.kept = folding->kept,
                                      .folded = folding->folded,
                                      .divisor = (double)folding->folded,
                                      .result = gni_tensor_data(result)};
    int64_t blocks;
    if (folding->kept == 0)
        return GN_OK;
    GN_TRY(gni_storage_order(gni_tensor_storage(result), stream, true));
    gni_form_make(&form, program);
    form.is_wide |= folding->kept >= INT32_MAX / 2; /* of nothing, perhaps */
    form.reduction = folding->reduction;
    form.value = value;
    form.result = result->dtype;
    fold_spread(&form, folding, &fold, &blocks);
    if (blocks > GRID_MOST)
        return gni_error(GN_ERROR_OVERFLOW, "%lld results are more than a kernel can have",
                         (long long)folding->kept);
    int slot = fold.parts > 1 ? gni_last_slot(stream) : 0;
    if (slot < 0) { /* slower, and the same numbers in another order */
        fold.parts = 1;
        fold.chunk = fold.folded;
    }
    fold.slot = slot < 0 ? 0 : slot;
    return fold_launch(&form, &fold, blocks, stream);
}

const struct gni_backend gni_cuda_backend = {
    .run = gni_cuda_run,
    .fold = gni_cuda_fold,
    .softmax = gni_cuda_softmax,
    .random = gni_cuda_random,
    .has_random_halves = true,
    .extreme = gni_cuda_extreme,
    .extreme_has_inner = true,
    .cumulate = gni_cuda_cumulate,
    .select = gni_cuda_select,
    .unique = gni_cuda_unique,
    .product = gni_cuda_product,
    .product_copies = gni_cuda_product_copies,
    .search = gni_cuda_search,
    .range = gni_cuda_range,
    .count = gni_cuda_count,
    .permutation = gni_cuda_permutation,
    .index_get = gni_cuda_index_get,
    .index_set = gni_cuda_index_set,
    .mask_places = gni_cuda_mask_places,
    .mask_get = gni_cuda_mask_get,
    .mask_set = gni_cuda_mask_set,
    .index_check = gni_cuda_index_check,
    .warm_up = gni_cuda_warm_up,
};
