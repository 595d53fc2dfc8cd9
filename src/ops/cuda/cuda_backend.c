/*
 * cuda_backend.c: the GPU's table of operations: src/ops/backend.h.
 */
#include "ops/cuda/cuda_ops.h"

const struct gni_backend gni_cuda_backend = {
    .run = gni_cuda_run,
    .rows_fit = gni_cuda_rows_fit,
    .columns_fit = gni_cuda_columns_fit,
    .reduce = gni_cuda_reduce,
    .softmax = gni_cuda_softmax,
    .run_list = gni_cuda_run_list,
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
    .has_half_products = true,
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
    .small_most = -1,
    .copy_most = -1,
    .batch_sums_most = INT64_MAX,
};
