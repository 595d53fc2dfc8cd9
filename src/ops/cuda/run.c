/*
 * run.c: programs and folds on a GPU: the form of the program, its kernel, and a launch.
 *
 * Elementwise kernels are bound by memory: 16 bytes a load, and several loads on their way where there is enough work
 * to fill the GPU without. Folds of few results are cut into parts, whose accumulators a second fold joins.
 */
#include "ops/cuda/generate.h"

#include "base/host.h"
#include "jit/kernel.h"
#include "ops/cuda/product.h"
#include "ops/cuda/run.h"

#include <string.h>

enum {
    PACK_BYTES = 16,
    UNROLL = 4,
    ENOUGH_BLOCKS = 1056, /* that fill a GPU: 8 for each of 132 multiprocessors */
    GRID_MOST = 1 << 30,
    SHORT_MOST = 1024,     /* elements of a row that a warp folds */
    CHUNK_LEAST = 2048,    /* elements of a part of a row */
    CHUNK_ROWS_LEAST = 64, /* rows of a part of columns */
    PARTS_MOST = 1024,
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
    struct gni_kernel_source source = {
        .name = name, .text = text.text, .signature = signature, .signature_size = size};
    gn_status status = text.has_failed ? gni_error_host_memory(text.length)
                                       : gni_kernel_get(device, &source, kernel);
    gni_builder_deinit(&text);
    return status;
}

static gn_status form_launch(const struct gni_form *form, const struct gni_fold_arguments *fold,
                             unsigned grid_x, unsigned grid_y, gn_stream *stream)
{
    uint64_t arguments[GNI_CUDA_ARGUMENTS_MOST];
    struct gni_kernel *kernel;
    GN_TRY(kernel_get(stream->device, form, &kernel));
    gni_form_arguments(form, fold, arguments);
    void *addresses[] = {arguments};
    struct gni_launch launch = {
        .grid = {grid_x, grid_y, 1}, .block = {GNI_CUDA_BLOCK, 1, 1}, .arguments = addresses};
    return gni_kernel_launch(kernel, stream, &launch);
}

/* ---- elementwise ------------------------------------------------------------------------------ */

/* The most elements that every contiguous operand can be read or written with at once. */
static int pack_of(const struct gni_form *form)
{
    const struct gni_program *program = form->program;
    size_t largest = 1;
    uintptr_t addresses = 0;
    for (int i = 0; i < program->input_count; i++) {
        if (form->inputs[i] == GNI_ACCESS_STRIDED)
            return 1;
        if (form->inputs[i] != GNI_ACCESS_CONTIGUOUS)
            continue;
        size_t size = gni_dtype_size(program->inputs[i].held);
        largest = size > largest ? size : largest;
        addresses |= (uintptr_t)program->inputs[i].data;
    }
    for (int i = 0; i < program->output_count; i++) {
        if (form->outputs[i] == GNI_ACCESS_STRIDED)
            return 1;
        size_t size = gni_dtype_size(program->outputs[i].dtype);
        largest = size > largest ? size : largest;
        addresses |= (uintptr_t)program->outputs[i].data;
    }
    /* Smaller elements are packed less tightly than the largest: all have the alignment of 16 bytes. */
    return addresses % PACK_BYTES == 0 ? (int)(PACK_BYTES / largest) : 1;
}

gn_status gni_cuda_run(struct gni_program *program, gn_stream *stream)
{
    struct gni_form form;
    if (program->count == 0)
        return GN_OK;
    gni_form_make(&form, program);
    form.pack = pack_of(&form);
    int64_t block = (int64_t)GNI_CUDA_BLOCK * form.pack;
    int64_t blocks = (program->count + block - 1) / block;
    if (blocks >= (int64_t)ENOUGH_BLOCKS * UNROLL) {
        form.unroll = program->input_count <= 4 ? UNROLL : 1;
        blocks = (blocks + form.unroll - 1) / form.unroll;
    }
    if (blocks > GRID_MOST)
        return gni_error(GN_ERROR_OVERFLOW, "%lld elements are more than a kernel can have",
                         (long long)program->count);
    return form_launch(&form, NULL, (unsigned)blocks, 1, stream);
}

/* ---- folds ------------------------------------------------------------------------------------ */

static int64_t divided_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* How a fold is spread over the GPU: by its shape alone. */
static void fold_spread(struct gni_form *form, bool is_by_columns, struct gni_fold_arguments *fold,
                        int64_t *blocks)
{
    bool is_short = !is_by_columns && fold->folded <= SHORT_MOST;
    form->fold = is_by_columns ? GNI_FOLD_COLUMNS : is_short ? GNI_FOLD_SHORT : GNI_FOLD_ROWS;
    *blocks = is_by_columns ? divided_up(fold->kept, 32)
              : is_short    ? divided_up(fold->kept, 8)
                            : fold->kept;
    fold->parts = 1;
    fold->chunk = fold->folded;
    if (!is_short && *blocks < ENOUGH_BLOCKS) {
        int64_t least = is_by_columns ? CHUNK_ROWS_LEAST : CHUNK_LEAST;
        int64_t parts = divided_up(ENOUGH_BLOCKS, *blocks > 0 ? *blocks : 1);
        int64_t most = divided_up(fold->folded, least);
        parts = parts < most ? parts : most;
        parts = parts < PARTS_MOST ? parts : PARTS_MOST;
        if (parts > 1) {
            fold->chunk = divided_up(fold->folded, parts);
            fold->parts = divided_up(fold->folded, fold->chunk);
        }
    }
    form->is_partial = fold->parts > 1;
}

static gn_status program_fold(struct gni_program *program, short value,
                              const struct gni_folding *folding, double divisor, gn_dtype dtype,
                              void *result, gn_stream *stream);

/* Folds the accumulators of parts. */
static gn_status parts_fold(const struct gni_folding *folding, int64_t parts, double divisor,
                            struct gni_storage *storage, gn_dtype accumulator, gn_dtype dtype,
                            void *result, gn_stream *stream)
{
    struct gni_program *program = gni_host_alloc(sizeof *program);
    if (program == NULL)
        return gni_error_host_memory(sizeof *program);
    int64_t sizes[] = {folding->is_by_columns ? parts : folding->kept,
                       folding->is_by_columns ? folding->kept : parts};
    int64_t strides[] = {sizes[1], 1};
    struct gni_folding rest = *folding;
    rest.folded = parts;
    gni_program_init(program, 2, sizes, NULL);
    short value = gni_program_add_memory(program, storage, 0, accumulator, strides);
    gn_status status = program_fold(program, value, &rest, divisor, dtype, result, stream);
    gni_host_free(program);
    return status;
}

static gn_status program_fold(struct gni_program *program, short value,
                              const struct gni_folding *folding, double divisor, gn_dtype dtype,
                              void *result, gn_stream *stream)
{
    struct gni_form form;
    struct gni_fold_arguments fold = {
        .kept = folding->kept, .folded = folding->folded, .divisor = divisor, .result = result};
    int64_t blocks;
    gni_form_make(&form, program);
    form.reduction = folding->reduction;
    form.value = value;
    form.result = dtype;
    fold_spread(&form, folding->is_by_columns, &fold, &blocks);
    if (blocks > GRID_MOST)
        return gni_error(GN_ERROR_OVERFLOW, "%lld results are more than a kernel can have",
                         (long long)folding->kept);
    if (fold.parts == 1)
        return form_launch(&form, &fold, (unsigned)blocks, 1, stream);
    gn_dtype accumulator =
        gni_fold_accumulator(folding->reduction, gni_program_held(program, value));
    struct gni_storage *storage;
    GN_TRY(gni_storage_create(stream->device,
                              (size_t)(fold.parts * fold.kept) * gni_dtype_size(accumulator),
                              stream, &storage));
    fold.result = storage->data;
    gn_status status = form_launch(&form, &fold, (unsigned)blocks, (unsigned)fold.parts, stream);
    if (status == GN_OK)
        status =
            parts_fold(folding, fold.parts, divisor, storage, accumulator, dtype, result, stream);
    gni_storage_release(storage);
    return status;
}

gn_status gni_cuda_fold(struct gni_program *program, short value, const struct gni_folding *folding,
                        gn_tensor *result, gn_stream *stream)
{
    struct gni_storage *storage = gni_tensor_storage(result);
    if (folding->kept == 0)
        return GN_OK;
    GN_TRY(gni_storage_order(storage, stream, true));
    return program_fold(program, value, folding, (double)folding->folded, result->dtype,
                        gni_tensor_data(result), stream);
}

const struct gni_backend gni_cuda_backend = {
    .run = gni_cuda_run,
    .fold = gni_cuda_fold,
    .product = gni_cuda_product,
    .product_copies = gni_cuda_product_copies,
};
