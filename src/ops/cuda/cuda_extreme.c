/*
 * cuda_extreme.c: where the largest or smallest element of each row is: one kernel for each type, one launch.
 */
#include "jit/tune.h"
#include "ops/cuda/fixed.h"
#include "ops/cuda/block_join.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/kernel_list.h"
#include "ops/cuda/kernel_texts.h"

enum {
    ENOUGH_BLOCKS = 1056, /* that fill a GPU: 8 for each of 132 multiprocessors */
    SHORT_MOST = 1024,    /* elements of a row that a warp searches */
    CHUNK_LEAST = 2048,   /* elements of a part of a row */
    PARTS_MOST = 1024,
    PACK_BYTES = 16,
};

static const struct gni_fixed extreme = {
    "extreme", {gni_text_block_join, gni_text_extreme}, GNI_BLOCK_JOIN_DEFINITIONS};

struct arguments {
    const void *in;
    int64_t rows, length, inner, parts, chunk, width, is_packed, is_maximum, slot;
    void *scores;
    int64_t *places, *indices;
    void *values;
};

/* A search, and how it is tuned: joining is exact, so that the number of blocks changes nothing. */
struct work {
    struct arguments arguments;
    gn_dtype dtype;
    gn_stream *stream;
    int64_t pack; /* elements of 16 bytes */
};

static const struct gni_tune_family extreme_family = {
    .name = "extreme",
    .extents = {"rows", "length", "strided"},
    .plain = 1 << 2,
    .values = {"blocks"},
};

/* How the work is spread, with so many blocks if there are few rows. */
static int64_t extreme_spread(struct arguments *arguments, int64_t pack, int64_t enough)
{
    arguments->width = arguments->inner > 1 ? 32 : arguments->length <= SHORT_MOST ? 8 : 1;
    int64_t blocks = gni_divided_up(arguments->rows, arguments->width);
    int64_t parts = 1;
    if (blocks < enough && blocks < GNI_BLOCK_JOIN_COUNTERS && arguments->width != 8) {
        int64_t least = CHUNK_LEAST / arguments->width;
        int64_t most = gni_divided_up(arguments->length, least);
        parts = gni_divided_up(enough, blocks);
        parts = parts < most ? parts : most;
        parts = parts < PARTS_MOST ? parts : PARTS_MOST;
    }
    arguments->chunk = gni_divided_up(gni_divided_up(arguments->length, parts), pack) * pack;
    arguments->parts = gni_divided_up(arguments->length, arguments->chunk);
    arguments->is_packed = arguments->inner == 1 && (uintptr_t)arguments->in % PACK_BYTES == 0 &&
                           (arguments->rows == 1 || arguments->length % pack == 0);
    return blocks;
}

static gn_status extreme_run(struct arguments *arguments, gn_dtype dtype, int64_t blocks,
                             gn_stream *stream)
{
    struct gni_storage *found = NULL;
    int slot = arguments->parts > 1 ? gni_block_join_slot(stream) : 0;
    if (slot < 0) { /* slower, and the same */
        arguments->parts = 1;
        arguments->chunk = arguments->length;
    }
    if (arguments->parts > 1) {
        size_t count = (size_t)(arguments->rows * arguments->parts);
        GN_TRY(gni_storage_create(stream->device, 2 * count * sizeof(int64_t), stream, &found));
        arguments->slot = slot;
        arguments->places = (int64_t *)(void *)found->data;
        arguments->scores = arguments->places + count;
    }
    gn_status status =
        gni_fixed_launch(&extreme, dtype, blocks, arguments->parts, arguments, stream);
    gni_storage_release(found);
    return status;
}

static gn_status work_run(void *context, const struct gni_choice *choice)
{
    const struct work *work = context;
    struct arguments arguments = work->arguments;
    int64_t blocks = extreme_spread(&arguments, work->pack, choice->values[0]);
    return extreme_run(&arguments, work->dtype, blocks, work->stream);
}

static int work_list(void *context, struct gni_choice *choices)
{
    static const int blocks[] = {ENOUGH_BLOCKS / 4, ENOUGH_BLOCKS / 2, ENOUGH_BLOCKS * 2,
                                 ENOUGH_BLOCKS * 4};
    const struct work *work = context;
    int count = 0;
    if (work->arguments.inner == 1 && work->arguments.length <= SHORT_MOST)
        return 0; /* never in parts */
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        choices[count++] = (struct gni_choice){.values = {blocks[i]}};
    return count;
}

gn_status gni_cuda_extreme(gn_tensor *tensor, const struct gni_along *along, bool is_maximum,
                           gn_tensor *values, gn_tensor *indices, gn_stream *stream)
{
    struct work work = {.dtype = tensor->dtype,
                        .stream = stream,
                        .pack = PACK_BYTES / (int64_t)gni_dtype_size(tensor->dtype)};
    struct gni_tune tune = {.family = &extreme_family,
                            .stream = stream,
                            .type = gni_dtypes[tensor->dtype].name,
                            .nbytes = (uint64_t)tensor->count * gni_dtype_size(tensor->dtype),
                            .extents = {gni_tune_log(along->outer * along->inner),
                                        gni_tune_log(along->length), along->inner > 1},
                            .standard = {.values = {ENOUGH_BLOCKS}},
                            .context = &work,
                            .run = work_run,
                            .list = work_list};
    work.arguments = (struct arguments){
        .in = gni_tensor_data(tensor),
        .rows = along->outer * along->inner,
        .length = along->length,
        .inner = along->inner,
        .is_maximum = is_maximum,
        .indices = (int64_t *)(void *)gni_tensor_data(indices),
        .values = values != NULL ? gni_tensor_data(values) : NULL,
    };
    GN_TRY(gni_storage_order(gni_tensor_storage(tensor), stream, false));
    GN_TRY(gni_storage_order(gni_tensor_storage(indices), stream, true));
    if (values != NULL)
        GN_TRY(gni_storage_order(gni_tensor_storage(values), stream, true));
    return gni_tune_run(&tune);
}

void gni_cuda_extreme_list(struct gni_kernel_list *list)
{
    gni_kernel_list_add_fixed(list, &extreme, GNI_TYPES_ALL);
}
