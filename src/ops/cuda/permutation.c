/*
 * permutation.c: random permutations on a GPU: indices sorted by random keys, which are the CPU's, and so are the
 * permutations. Keys have 64 bits; a sort by the highest few leaves next to nothing to do.
 */
#include "ops/cuda/fixed.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/cuda_sort.h"
#include "ops/cuda/kernel_list.h"
#include "ops/cuda/kernel_texts.h"

enum {
    SPARSE_BITS = 2, /* one key in 4 values, at most */
};

/* By [whether words have 64 bits]. */
static const struct gni_fixed keys_of[] = {
    {"permutation_keys",
     {gni_text_philox, gni_text_permutation},
     GNI_PHILOX_TYPES "#define PERMUTATION_KEYS\ntypedef unsigned word;\n"},
    {"permutation_keys_far",
     {gni_text_philox, gni_text_permutation},
     GNI_PHILOX_TYPES "#define PERMUTATION_KEYS\ntypedef unsigned long long word;\n"},
};
static const struct gni_fixed store[] = {
    {"permutation_store",
     {gni_text_philox, gni_text_permutation},
     GNI_PHILOX_TYPES "#define PERMUTATION_STORE\ntypedef unsigned word;\n"},
    {"permutation_store_far",
     {gni_text_philox, gni_text_permutation},
     GNI_PHILOX_TYPES "#define PERMUTATION_STORE\ntypedef unsigned long long word;\n"},
};

/* As permutation.cu has it. */
struct arguments {
    uint64_t seed, offset;
    int64_t count, shift;
    const void *keys, *indices;
    int64_t *out;
};

static gn_status permutation_run(struct arguments *arguments, struct gni_order *order, int digits)
{
    int64_t blocks = gni_divided_up(arguments->count, GNI_FIXED_THREADS);
    arguments->shift = 64 - 8 * (int64_t)digits;
    arguments->keys = order->in;
    GN_TRY(gni_fixed_launch(&keys_of[order->is_far], GN_INT64, gni_divided_up(blocks, 2), 1,
                            arguments, order->stream));
    GN_TRY(gni_order_run(order, digits));
    arguments->keys = order->keys;
    arguments->indices = order->places;
    return gni_fixed_launch(&store[order->is_far], GN_INT64, blocks, 1, arguments, order->stream);
}

gn_status gni_cuda_permutation(struct gni_philox philox, gn_tensor *out, gn_stream *stream)
{
    struct gni_order order;
    struct arguments arguments = {.seed = philox.seed,
                                  .offset = philox.offset,
                                  .count = out->count,
                                  .out = (int64_t *)(void *)gni_tensor_data(out)};
    int digits = 1;
    while (digits < 8 && out->count >> (8 * digits - SPARSE_BITS) != 0)
        digits++;
    GN_TRY(gni_storage_order(gni_tensor_storage(out), stream, true));
    GN_TRY(gni_order_init(&order, out->count, digits > 4, 0, stream));
    gn_status status = permutation_run(&arguments, &order, digits);
    gni_order_deinit(&order);
    return status;
}

void gni_cuda_permutation_list(struct gni_kernel_list *list)
{
    for (int is_far = 0; is_far < 2; is_far++) {
        gni_kernel_list_add_fixed(list, &keys_of[is_far], GNI_TYPE(GN_INT64));
        gni_kernel_list_add_fixed(list, &store[is_far], GNI_TYPE(GN_INT64));
    }
}
