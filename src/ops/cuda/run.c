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
#include "jit/tune.h"
#include "ops/cuda/fixed.h"
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
    LOADED_MOST = 64,      /* elements that a thread has registers for, with a block beside its own:
                              of bytes each takes one */
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
                                .argument_bytes = (size_t)words * sizeof *arguments,
                                .waits = true};
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

/* How a fold is spread over the GPU, with so many blocks if there are few results. */
static void fold_spread(struct gni_form *form, bool is_by_columns, int64_t enough,
                        struct gni_fold_arguments *fold, int64_t *blocks)
{
    bool is_short = !is_by_columns && fold->folded <= SHORT_MOST;
    form->fold = is_by_columns ? GNI_FOLD_COLUMNS : is_short ? GNI_FOLD_SHORT : GNI_FOLD_ROWS;
    int lanes = 32; /* for a short row: fold.cu has the same */
    while (is_short && lanes > 1 && fold->folded <= (int64_t)lanes / 2 * form->pack)
        lanes /= 2;
    *blocks = is_by_columns ? gni_divided_up(fold->kept, 32 * form->pack)
              : is_short    ? gni_divided_up(fold->kept, GNI_CUDA_BLOCK / lanes)
                            : fold->kept;
    fold->parts = 1;
    fold->chunk = fold->folded;
    if (is_short || *blocks >= GNI_LAST_COUNTERS)
        return;
    int64_t least = is_by_columns ? CHUNK_ROWS_LEAST : CHUNK_LEAST;
    int64_t parts = enough / *blocks, most = fold->folded / least;
    parts = parts < most ? parts : most;
    if (parts > 1) {
        int64_t unit = is_by_columns ? 1 : form->pack;
        fold->chunk = gni_divided_up(gni_divided_up(fold->folded, parts), unit) * unit;
        fold->parts = gni_divided_up(fold->folded, fold->chunk);
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

/* A fold, and how it is tuned: more loads in flight give the same bits, other parts only where joining is exact. */
struct fold_work {
    struct gni_form form;
    bool is_by_columns;
    struct gni_fold_arguments arguments;
    gn_stream *stream;
};

enum fold_value {
    FOLD_TOGETHER,
    FOLD_BLOCKS,
};

static const struct gni_tune_family fold_family = {
    .name = "fold",
    .extents = {"kept", "folded", "pack", "by_columns", "reduction"},
    .plain = 1 << 2 | 1 << 3 | 1 << 4,
    .values = {"together", "blocks"},
};

static gn_status fold_run(void *context, const struct gni_choice *choice)
{
    struct fold_work *work = context;
    struct gni_fold_arguments fold = work->arguments;
    int64_t blocks;
    work->form.steps = choice->values[FOLD_TOGETHER];
    fold_spread(&work->form, work->is_by_columns, choice->values[FOLD_BLOCKS], &fold, &blocks);
    if (blocks > GRID_MOST)
        return gni_error(GN_ERROR_OVERFLOW, "%lld results are more than a kernel can have",
                         (long long)fold.kept);
    int slot = fold.parts > 1 ? gni_last_slot(work->stream) : 0;
    if (slot < 0) { /* slower, and the same numbers in another order */
        fold.parts = 1;
        fold.chunk = fold.folded;
    }
    fold.slot = slot < 0 ? 0 : slot;
    return fold_launch(&work->form, &fold, blocks, work->stream);
}

/* Whether joining gives the same bits in every order. */
static bool fold_is_exact(const struct gni_form *form)
{
    gn_dtype accumulator =
        gni_fold_accumulator(form->reduction, gni_program_held(form->program, form->value));
    return (form->reduction != GN_REDUCE_SUM && form->reduction != GN_REDUCE_MEAN &&
            form->reduction != GN_REDUCE_PRODUCT) ||
           gni_dtype_kind(accumulator) != GNI_KIND_FLOATING;
}

static int fold_list(void *context, struct gni_choice *choices)
{
    static const int together[] = {2, 8, 4};
    static const int blocks[] = {ENOUGH_BLOCKS, ENOUGH_BLOCKS / 2, ENOUGH_BLOCKS / 4,
                                 2 * ENOUGH_BLOCKS};
    const struct fold_work *work = context;
    struct gni_fold_arguments fold = work->arguments;
    struct gni_form form = work->form;
    int64_t grid;
    int count = 0;
    bool has_packs = form.pack > 1 || work->is_by_columns;
    fold_spread(&form, work->is_by_columns, ENOUGH_BLOCKS, &fold, &grid);
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++)
        for (size_t i = 0; i < sizeof together / sizeof *together; i++) {
            bool is_usual = together[i] == GNI_FOLD_TOGETHER;
            if ((k > 0 && fold.parts == 1) || (k == 0 && is_usual) || (!is_usual && !has_packs) ||
                together[i] * form.pack > LOADED_MOST)
                continue;
            choices[count++] = (struct gni_choice){
                .values = {[FOLD_TOGETHER] = together[i], [FOLD_BLOCKS] = blocks[k]},
                .is_reordering = k > 0 && !fold_is_exact(&form)};
        }
    return count;
}

gn_status gni_cuda_fold(struct gni_program *program, short value, const struct gni_folding *folding,
                        gn_tensor *result, gn_stream *stream)
{
    struct fold_work work; /* large, and all of it is set below */
    struct gni_tune tune = {
        .family = &fold_family,
        .stream = stream,
        .type = gni_dtypes[gni_program_held(program, value)].name,
        .standard =
            {.values = {[FOLD_TOGETHER] = GNI_FOLD_TOGETHER, [FOLD_BLOCKS] = ENOUGH_BLOCKS}},
        .context = &work,
        .run = fold_run,
        .list = fold_list};
    if (folding->kept == 0)
        return GN_OK;
    GN_TRY(gni_storage_order(gni_tensor_storage(result), stream, true));
    work.is_by_columns = folding->is_by_columns;
    work.stream = stream;
    work.arguments = (struct gni_fold_arguments){.kept = folding->kept,
                                                 .folded = folding->folded,
                                                 .divisor = (double)folding->folded,
                                                 .result = gni_tensor_data(result)};
    gni_form_make(&work.form, program);
    work.form.is_wide |= folding->kept >= INT32_MAX / 2; /* of nothing, perhaps */
    work.form.reduction = folding->reduction;
    work.form.value = value;
    work.form.result = result->dtype;
    gni_form_pack(&work.form, folding->is_by_columns ? folding->kept
                              : folding->kept > 1    ? folding->folded
                                                     : 0); /* a single row begins where it begins */
    tune.nbytes = (uint64_t)program->count * gni_dtype_size(gni_program_held(program, value));
    tune.extents[0] = gni_tune_log(folding->kept);
    tune.extents[1] = gni_tune_log(folding->folded);
    tune.extents[2] = work.form.pack;
    tune.extents[3] = folding->is_by_columns;
    tune.extents[4] = (int)folding->reduction;
    return gni_tune_run(&tune);
}

const struct gni_backend gni_cuda_backend = {
    .run = gni_cuda_run,
    .fold = gni_cuda_fold,
    .softmax = gni_cuda_softmax,
    .random = gni_cuda_random,
    .has_random_halves = true,
    .extreme = gni_cuda_extreme,
    .cumulate = gni_cuda_cumulate,
    .cumulate_extreme = gni_cuda_cumulate_extreme,
    .select = gni_cuda_select,
    .unique = gni_cuda_unique,
    .product = gni_cuda_product,
    .product_add = gni_cuda_product_add,
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
