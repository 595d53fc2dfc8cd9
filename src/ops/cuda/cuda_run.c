/*
 * cuda_run.c: programs and reductions on a GPU: the specialization of the program, its kernel, and a launch.
 *
 * Elementwise kernels are bound by memory: a thread loads 16 bytes once, and there are many threads. On an H200 that
 * is a little faster than a copy by the driver, and than several loads a thread. Reductions of few results are cut into
 * parts, as many as fill a GPU.
 */
#include "ops/cuda/generate.h"
#include "ops/cuda/interpret.h"

#include "base/host.h"
#include "jit/kernel.h"
#include "jit/tune.h"
#include "ops/cuda/fixed.h"
#include "ops/cuda/block_join.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/program_kernel.h"
#include "ops/cuda/weight.h"
#include "ops/recorder.h"

#include <string.h>

enum {
    ENOUGH_BLOCKS = 1056, /* that fill a GPU: 8 for each of 132 multiprocessors */
    GRID_MOST = 1 << 30,
    SHORT_MOST = 1024,     /* elements of a row that a warp reduces */
    CHUNK_LEAST = 4096,    /* elements of a part of a row */
    CHUNK_ROWS_LEAST = 64, /* rows of a part of columns */
    CODE_MOST = 800,       /* instructions for the packs in flight, about */
    TOGETHER_MOST = 8,     /* packs in flight */
    LOADED_MOST = 64,      /* elements that a thread has registers for, with a block beside its own:
                              of bytes each takes one */
};

static void kernel_write(const void *context, char name[GNI_PROGRAM_KERNEL_NAME],
                         struct gni_builder *text)
{
    gni_specialization_name(context, name, GNI_PROGRAM_KERNEL_NAME);
    gni_specialization_text(context, name, text);
}

/* What the kernel of a specialization is found by; `signature` has room for it. */
static struct gni_program_kernel kernel_wanted(const struct gni_specialization *specialization,
                                               unsigned char *signature)
{
    return (struct gni_program_kernel){.program = specialization->program,
                                       .has_functions = specialization->kind == GNI_REDUCE_SOFTMAX,
                                       .signature = signature,
                                       .signature_size =
                                           gni_specialization_sign(specialization, signature),
                                       .write = kernel_write,
                                       .context = specialization};
}

static gn_status specialization_submit(const struct gni_specialization *specialization,
                                       const struct gni_reduce_arguments *reduce,
                                       struct gni_kernel *kernel, unsigned grid_x, unsigned grid_y,
                                       gn_stream *stream)
{
    uint64_t arguments[GNI_CUDA_ARGUMENTS_MOST];
    int words = gni_specialization_arguments(specialization, reduce, arguments);
    void *addresses[] = {arguments};
    struct gni_launch launch = {.grid = {grid_x, grid_y, 1},
                                .block = {(unsigned)specialization->threads, 1, 1},
                                .arguments = addresses,
                                .argument_bytes = (size_t)words * sizeof *arguments,
                                .waits = true};
    return gni_kernel_launch(kernel, stream, &launch);
}

gn_status gni_specialization_launch(const struct gni_specialization *specialization,
                                    const struct gni_reduce_arguments *reduce, unsigned grid_x,
                                    unsigned grid_y, gn_stream *stream)
{
    unsigned char signature[GNI_CUDA_SIGNATURE_MOST];
    struct gni_program_kernel wanted = kernel_wanted(specialization, signature);
    struct gni_kernel *kernel;
    GN_TRY(gni_program_kernel_build(stream->device, &wanted, &kernel));
    return specialization_submit(specialization, reduce, kernel, grid_x, grid_y, stream);
}

bool gni_specialization_is_interpreted(const struct gni_specialization *specialization,
                                       gn_stream *stream, gn_status *status)
{
    unsigned char signature[GNI_CUDA_SIGNATURE_MOST];
    struct gni_program_kernel wanted = kernel_wanted(specialization, signature);
    struct gni_kernel *kernel = NULL;
    *status = gni_program_kernel_find(stream, &wanted, &kernel);
    return *status == GN_OK && kernel == NULL;
}

bool gni_specialization_is_ready(const struct gni_specialization *specialization, gn_stream *stream)
{
    gn_status status;
    return !gni_program_kernel_has_tiers(stream->device) ||
           (!gni_specialization_is_interpreted(specialization, stream, &status) && status == GN_OK);
}

/* ---- elementwise ------------------------------------------------------------------------------ */

gn_status gni_cuda_run(struct gni_program *program, gn_stream *stream)
{
    struct gni_specialization specialization;
    if (program->row_ndim > 0)
        return gni_cuda_run_rows(program, stream);
    if (program->count == 0)
        return GN_OK;
    gni_specialization_make(&specialization, program);
    gni_specialization_pack(&specialization, 0);
    uint64_t block = (uint64_t)GNI_CUDA_BLOCK * (uint64_t)specialization.pack; /* a power of two */
    uint64_t blocks =
        specialization.is_strided ? (uint64_t)gni_specialization_tile(&specialization) : 0;
    if (blocks == 0)
        blocks = ((uint64_t)program->count + block - 1) >> __builtin_ctzll(block);
    if (blocks > GRID_MOST)
        return gni_error(GN_ERROR_OVERFLOW, "%lld elements are more than a kernel can have",
                         (long long)program->count);
    unsigned char signature[GNI_CUDA_SIGNATURE_MOST];
    struct gni_program_kernel wanted = kernel_wanted(&specialization, signature);
    struct gni_kernel *kernel;
    bool is_done = false;
    GN_TRY(gni_program_kernel_find(stream, &wanted, &kernel));
    if (kernel == NULL) {
        GN_TRY(gni_interpret(program, stream, &is_done));
        if (is_done)
            return GN_OK;
        GN_TRY(gni_program_kernel_build(stream->device, &wanted, &kernel));
    }
    return specialization_submit(&specialization, NULL, kernel, (unsigned)blocks, 1, stream);
}

/* ---- reductions ------------------------------------------------------------------------------------ */

/* How a reduction is spread over the GPU, with so many blocks if there are few results. */
static void reduce_spread(struct gni_specialization *specialization, bool is_by_columns,
                          int64_t enough, struct gni_reduce_arguments *reduce, int64_t *blocks)
{
    bool is_short = !is_by_columns && reduce->reduced <= SHORT_MOST;
    specialization->kind = is_by_columns ? GNI_REDUCE_COLUMNS
                           : is_short    ? GNI_REDUCE_SHORT
                                         : GNI_REDUCE_ROWS;
    int lanes = 32; /* for a short row: reduce.cu has the same */
    while (is_short && lanes > 1 && reduce->reduced <= (int64_t)lanes / 2 * specialization->pack)
        lanes /= 2;
    *blocks = is_by_columns ? gni_divided_up(reduce->kept, 32 * specialization->pack)
              : is_short    ? gni_divided_up(reduce->kept, GNI_CUDA_BLOCK / lanes)
                            : reduce->kept;
    reduce->parts = 1;
    reduce->chunk = reduce->reduced;
    if (is_short || *blocks >= GNI_BLOCK_JOIN_COUNTERS)
        return;
    int64_t least = is_by_columns ? CHUNK_ROWS_LEAST : CHUNK_LEAST;
    int64_t parts = enough / *blocks, most = reduce->reduced / least;
    parts = parts < most ? parts : most;
    if (parts > 1) {
        int64_t unit = is_by_columns ? 1 : specialization->pack;
        reduce->chunk = gni_divided_up(gni_divided_up(reduce->reduced, parts), unit) * unit;
        reduce->parts = gni_divided_up(reduce->reduced, reduce->chunk);
    }
}

static gn_status reduce_launch(const struct gni_specialization *specialization,
                               struct gni_reduce_arguments *reduce, int64_t blocks,
                               gn_stream *stream)
{
    gn_dtype accumulator =
        gni_reduce_accumulator(specialization->reduction,
                               gni_program_held(specialization->program, specialization->value));
    struct gni_storage *storage = NULL;
    if (reduce->parts > 1) {
        size_t nbytes = (size_t)(reduce->parts * reduce->kept) * gni_dtype_size(accumulator);
        GN_TRY(gni_storage_create(stream->device, nbytes, stream, &storage));
        reduce->partial = storage->data;
    }
    gn_status status = gni_specialization_launch(specialization, reduce, (unsigned)blocks,
                                                 (unsigned)reduce->parts, stream);
    gni_storage_release(storage);
    return status;
}

/* a reduction, and how it is tuned: more loads in flight give the same bits, other parts only where joining is exact. */
struct reduce_work {
    struct gni_specialization specialization;
    bool is_by_columns;
    int together_most; /* packs in flight */
    struct gni_reduce_arguments arguments;
    gn_stream *stream;
};

enum reduce_value {
    REDUCE_TOGETHER,
    REDUCE_BLOCKS,
};

static const struct gni_tune_family reduce_family = {
    .name = "reduce",
    .extents = {"kept", "reduced", "pack", "by_columns", "reduction"},
    .plain = 1 << 2 | 1 << 3 | 1 << 4,
    .values = {"together", "blocks"},
};

/* Whether joining gives the same bits in every order. */
static bool reduce_is_exact(const struct gni_specialization *specialization)
{
    gn_dtype accumulator =
        gni_reduce_accumulator(specialization->reduction,
                               gni_program_held(specialization->program, specialization->value));
    return (specialization->reduction != GN_REDUCE_SUM &&
            specialization->reduction != GN_REDUCE_MEAN &&
            specialization->reduction != GN_REDUCE_PRODUCT) ||
           gni_dtype_kind(accumulator) != GNI_KIND_FLOATING;
}

/* Spreads a reduction over so many blocks, if there are few results. */
static gn_status reduce_prepare(const struct reduce_work *work,
                                struct gni_specialization *specialization, int64_t enough,
                                struct gni_reduce_arguments *reduce, int64_t *blocks)
{
    reduce_spread(specialization, work->is_by_columns, enough, reduce, blocks);
    if (*blocks > GRID_MOST)
        return gni_error(GN_ERROR_OVERFLOW, "%lld results are more than a kernel can have",
                         (long long)reduce->kept);
    int slot = reduce->parts > 1 ? gni_block_join_slot(work->stream) : 0;
    if (slot < 0) { /* slower, and the same numbers in another order */
        reduce->parts = 1;
        reduce->chunk = reduce->reduced;
    }
    reduce->slot = slot < 0 ? 0 : slot;
    return GN_OK;
}

static gn_status reduce_run(void *context, const struct gni_choice *choice)
{
    struct reduce_work *work = context;
    struct gni_reduce_arguments reduce = work->arguments;
    int64_t blocks;
    work->specialization.steps = choice->values[REDUCE_TOGETHER];
    GN_TRY(reduce_prepare(work, &work->specialization, choice->values[REDUCE_BLOCKS], &reduce,
                          &blocks));
    return reduce_launch(&work->specialization, &reduce, blocks, work->stream);
}

static int usual_together(const struct reduce_work *work)
{
    return work->together_most < GNI_REDUCE_TOGETHER ? work->together_most : GNI_REDUCE_TOGETHER;
}

/* Whether a choice need not be waited for. */
static bool reduce_is_ready(void *context, const struct gni_choice *choice)
{
    struct reduce_work *work = context;
    struct gni_reduce_arguments reduce = work->arguments;
    int64_t blocks;
    work->specialization.steps = choice->values[REDUCE_TOGETHER];
    reduce_spread(&work->specialization, work->is_by_columns, choice->values[REDUCE_BLOCKS],
                  &reduce, &blocks);
    return gni_specialization_is_ready(&work->specialization, work->stream);
}

/* The same without compiling, where the kernel that is taken by default is not there yet. */
static gn_status reduce_interpret(struct reduce_work *work, bool *is_done)
{
    struct gni_specialization *specialization = &work->specialization;
    struct gni_reduce_arguments reduce = work->arguments;
    const int pack = specialization->pack;
    gn_status status;
    int64_t blocks;
    *is_done = false;
    specialization->steps = usual_together(work);
    reduce_spread(specialization, work->is_by_columns, ENOUGH_BLOCKS, &reduce, &blocks);
    if (!gni_specialization_is_interpreted(specialization, work->stream, &status))
        return status;
    if (reduce_is_exact(specialization))
        specialization->pack = 1; /* fewer kernels */
    reduce = work->arguments;
    status = reduce_prepare(work, specialization, ENOUGH_BLOCKS, &reduce, &blocks);
    if (status == GN_OK)
        status = gni_interpret_reduce(specialization, &reduce, blocks, work->stream, is_done);
    specialization->pack = pack;
    return status;
}

static int reduce_list(void *context, struct gni_choice *choices)
{
    static const int together[] = {2, 8, 4};
    static const int blocks[] = {ENOUGH_BLOCKS, ENOUGH_BLOCKS / 2, ENOUGH_BLOCKS / 4,
                                 2 * ENOUGH_BLOCKS};
    const struct reduce_work *work = context;
    struct gni_reduce_arguments reduce = work->arguments;
    struct gni_specialization specialization = work->specialization;
    int64_t grid;
    int count = 0;
    bool has_packs = specialization.pack > 1 || work->is_by_columns;
    reduce_spread(&specialization, work->is_by_columns, ENOUGH_BLOCKS, &reduce, &grid);
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++)
        for (size_t i = 0; i < sizeof together / sizeof *together; i++) {
            int usual = usual_together(work), taken = together[i];
            bool is_usual = taken == GNI_REDUCE_TOGETHER;
            if (is_usual)
                taken = usual;
            else if (taken == usual || taken > work->together_most)
                continue;
            if ((k > 0 && reduce.parts == 1) || (k == 0 && is_usual) || (!is_usual && !has_packs) ||
                taken * specialization.pack > LOADED_MOST)
                continue;
            choices[count++] = (struct gni_choice){
                .values = {[REDUCE_TOGETHER] = taken, [REDUCE_BLOCKS] = blocks[k]},
                .is_reordering = k > 0 && !reduce_is_exact(&specialization)};
        }
    return count;
}

gn_status gni_cuda_reduce(struct gni_program *program, short value,
                          const struct gni_reduction_task *task, gn_tensor *result,
                          gn_stream *stream)
{
    struct reduce_work work; /* large, and all of it is set below */
    struct gni_tune tune = {.family = &reduce_family,
                            .stream = stream,
                            .type = gni_dtypes[gni_program_held(program, value)].name,
                            .context = &work,
                            .run = reduce_run,
                            .is_ready = reduce_is_ready,
                            .list = reduce_list};
    if (task->kept == 0)
        return GN_OK;
    GN_TRY(gni_storage_order(gni_tensor_storage(result), stream, true));
    work.is_by_columns = task->is_by_columns;
    work.stream = stream;
    work.arguments = (struct gni_reduce_arguments){.kept = task->kept,
                                                   .reduced = task->reduced,
                                                   .divisor = (double)task->reduced,
                                                   .result = gni_tensor_data(result)};
    gni_specialization_make(&work.specialization, program);
    work.specialization.is_wide |= task->kept >= INT32_MAX / 2; /* of nothing, perhaps */
    work.specialization.reduction = task->reduction;
    work.specialization.value = value;
    work.specialization.result = result->dtype;
    gni_specialization_pack(&work.specialization,
                            task->is_by_columns ? task->kept
                            : task->kept > 1    ? task->reduced
                                                : 0); /* a single row begins where it begins */
    work.together_most = gni_weight_packs(gni_program_weight(program), work.specialization.pack,
                                          TOGETHER_MOST, CODE_MOST);
    bool is_done;
    GN_TRY(reduce_interpret(&work, &is_done));
    if (is_done)
        return GN_OK;
    tune.standard.values[REDUCE_TOGETHER] = usual_together(&work);
    tune.standard.values[REDUCE_BLOCKS] = ENOUGH_BLOCKS;
    tune.nbytes = (uint64_t)program->count * gni_dtype_size(gni_program_held(program, value));
    tune.extents[0] = gni_tune_log(task->kept);
    tune.extents[1] = gni_tune_log(task->reduced);
    tune.extents[2] = work.specialization.pack;
    tune.extents[3] = task->is_by_columns;
    tune.extents[4] = (int)task->reduction;
    return gni_tune_run(&tune);
}
