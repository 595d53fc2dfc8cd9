/*
 * cuda_search.c: searching and counting on a GPU: a kernel of search.cu each.
 */
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/fixed.h"
#include "ops/cuda/kernel_list.h"
#include "ops/cuda/kernel_texts.h"

enum {
    SEARCH_EACH = 4,   /* values of a thread: EACH in search.cu */
    BINS_FEW = 8192,   /* that are counted in shared memory: BINS in search.cu */
    BLOCKS_MOST = 528, /* that share integers: 4 for each of 132 multiprocessors */
    NUMBERS_EACH = 4 * GNI_FIXED_THREADS, /* that are worth a block */
};

static const struct gni_fixed search = {"search_sorted", {gni_text_search}, "#define SEARCH\n"};
static const struct gni_fixed range = {"numbers_range", {gni_text_search}, "#define RANGE\n"};
static const struct gni_fixed count_few = {"count_few", {gni_text_search}, "#define COUNT_FEW\n"};
static const struct gni_fixed count_many = {
    "count_many", {gni_text_search}, "#define COUNT_MANY\n"};

/* As search.cu has it. */
struct arguments {
    const void *sequence, *values;
    int64_t length, each, count, is_right;
    int64_t *out;
    const int64_t *numbers;
    int64_t *host;
    int64_t bins;
};

gn_status gni_cuda_search(gn_tensor *sequence, gn_tensor *values, bool is_right, gn_tensor *result,
                          gn_stream *stream)
{
    struct arguments arguments = {
        .sequence = gni_tensor_data(sequence),
        .values = gni_tensor_data(values),
        .length = sequence->sizes[sequence->ndim - 1],
        .each = sequence->ndim > 1 ? values->sizes[values->ndim - 1] : 0,
        .count = values->count,
        .is_right = is_right,
        .out = (int64_t *)(void *)gni_tensor_data(result),
    };
    GN_TRY(gni_storage_order(gni_tensor_storage(sequence), stream, false));
    GN_TRY(gni_storage_order(gni_tensor_storage(values), stream, false));
    GN_TRY(gni_storage_order(gni_tensor_storage(result), stream, true));
    return gni_fixed_launch(&search, sequence->dtype,
                            gni_divided_up(values->count, SEARCH_EACH * GNI_FIXED_THREADS), 1,
                            &arguments, stream);
}

static int64_t blocks_of(const gn_tensor *numbers)
{
    int64_t wanted = gni_divided_up(numbers->count, NUMBERS_EACH);
    return wanted < BLOCKS_MOST ? wanted : BLOCKS_MOST;
}

gn_status gni_cuda_range(gn_tensor *numbers, int64_t *least, int64_t *most, gn_stream *stream)
{
    int64_t blocks = blocks_of(numbers);
    struct gni_storage *answer;
    GN_TRY(gni_storage_order(gni_tensor_storage(numbers), stream, false));
    GN_TRY(gni_readback_create(stream, (size_t)blocks * 2 * sizeof(int64_t), &answer));
    int64_t *found = (int64_t *)(void *)answer->data;
    struct arguments arguments = {.numbers = (const int64_t *)(void *)gni_tensor_data(numbers),
                                  .count = numbers->count,
                                  .host = found};
    gn_status status = gni_fixed_launch(&range, GN_INT64, blocks, 1, &arguments, stream);
    if (status == GN_OK)
        status = gni_readback_wait(stream);
    if (status == GN_OK) {
        *least = found[0];
        *most = found[1];
        for (int64_t i = 1; i < blocks; i++) {
            *least = found[2 * i] < *least ? found[2 * i] : *least;
            *most = found[2 * i + 1] > *most ? found[2 * i + 1] : *most;
        }
    }
    gni_storage_release(answer);
    return status;
}

gn_status gni_cuda_count(gn_tensor *numbers, gn_tensor *counts, gn_stream *stream)
{
    struct arguments arguments = {.numbers = (const int64_t *)(void *)gni_tensor_data(numbers),
                                  .count = numbers->count,
                                  .out = (int64_t *)(void *)gni_tensor_data(counts),
                                  .bins = counts->count};
    GN_TRY(gni_storage_order(gni_tensor_storage(numbers), stream, false));
    GN_TRY(gni_storage_order(gni_tensor_storage(counts), stream, true));
    return gni_fixed_launch(counts->count <= BINS_FEW ? &count_few : &count_many, GN_INT64,
                            blocks_of(numbers), 1, &arguments, stream);
}

void gni_cuda_search_list(struct gni_kernel_list *list)
{
    gni_kernel_list_add_fixed(list, &search, GNI_TYPES_ALL);
    gni_kernel_list_add_fixed(list, &range, GNI_TYPE(GN_INT64));
    gni_kernel_list_add_fixed(list, &count_few, GNI_TYPE(GN_INT64));
    gni_kernel_list_add_fixed(list, &count_many, GNI_TYPE(GN_INT64));
}
