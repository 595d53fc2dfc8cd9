/*
 * extreme.c: where the largest or smallest element of each row is: one kernel for each type, in one or two launches.
 */
#include "ops/cuda/fixed.h"
#include "ops/cuda/rows.h"
#include "ops/cuda/texts.h"

enum {
    ENOUGH_BLOCKS = 1056, /* that fill a GPU: 8 for each of 132 multiprocessors */
    SHORT_MOST = 1024,    /* elements of a row that a warp searches */
    CHUNK_LEAST = 2048,   /* elements of a part of a row */
    PARTS_MOST = 1024,
};

static const struct gni_fixed extreme = {"extreme", {gni_text_extreme}, NULL};

struct arguments {
    const void *in;
    int64_t rows, length, inner, parts, chunk, width, is_strided, is_maximum, is_joining;
    void *scores;
    int64_t *places, *indices;
    void *values;
};

/* How the work is spread: by its shape alone. */
static int64_t extreme_spread(struct arguments *arguments)
{
    arguments->is_strided = arguments->inner > 1;
    arguments->width = arguments->inner > 1 ? 32 : arguments->length <= SHORT_MOST ? 8 : 1;
    int64_t blocks = gni_divided_up(arguments->rows, arguments->width);
    int64_t parts = 1;
    if (blocks < ENOUGH_BLOCKS && arguments->width != 8) {
        int64_t least = CHUNK_LEAST / arguments->width;
        int64_t most = gni_divided_up(arguments->length, least);
        parts = gni_divided_up(ENOUGH_BLOCKS, blocks);
        parts = parts < most ? parts : most;
        parts = parts < PARTS_MOST ? parts : PARTS_MOST;
    }
    arguments->chunk = gni_divided_up(arguments->length, parts);
    arguments->parts = gni_divided_up(arguments->length, arguments->chunk);
    return blocks;
}

/* Parts first, then what they have found. */
static gn_status parts_run(struct arguments *arguments, gn_dtype dtype, int64_t blocks,
                           gn_stream *stream)
{
    size_t count = (size_t)(arguments->rows * arguments->parts);
    struct gni_storage *found;
    GN_TRY(gni_storage_create(stream->device, 2 * count * sizeof(int64_t), stream, &found));
    arguments->places = (int64_t *)(void *)found->data;
    arguments->scores = arguments->places + count;
    gn_status status =
        gni_fixed_launch(&extreme, dtype, blocks, arguments->parts, arguments, stream);
    arguments->is_joining = 1;
    arguments->is_strided = 0;
    arguments->width = 8;
    if (status == GN_OK)
        status = gni_fixed_launch(&extreme, dtype, gni_divided_up(arguments->rows, 8), 1, arguments,
                                  stream);
    gni_storage_release(found);
    return status;
}

gn_status gni_cuda_extreme(gn_tensor *tensor, const struct gni_along *along, bool is_maximum,
                           gn_tensor *values, gn_tensor *indices, gn_stream *stream)
{
    struct arguments arguments = {
        .in = gni_tensor_data(tensor),
        .rows = along->outer * along->inner,
        .length = along->length,
        .inner = along->inner,
        .is_maximum = is_maximum,
        .indices = (int64_t *)(void *)gni_tensor_data(indices),
        .values = values != NULL ? gni_tensor_data(values) : NULL,
    };
    int64_t blocks = extreme_spread(&arguments);
    GN_TRY(gni_storage_order(gni_tensor_storage(tensor), stream, false));
    GN_TRY(gni_storage_order(gni_tensor_storage(indices), stream, true));
    if (values != NULL)
        GN_TRY(gni_storage_order(gni_tensor_storage(values), stream, true));
    if (arguments.parts > 1)
        return parts_run(&arguments, tensor->dtype, blocks, stream);
    return gni_fixed_launch(&extreme, tensor->dtype, blocks, 1, &arguments, stream);
}
