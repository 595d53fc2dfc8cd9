/*
 * cpu_backend.c: the CPU's table of operations: src/ops/backend.h.
 */
#include "ops/cpu/cpu_convolution.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/cpu_product.h"

const struct gni_backend gni_cpu_backend = {
    .run = gni_cpu_run,
    .rows_fit = gni_cpu_rows_fit,
    .columns_fit = gni_cpu_columns_fit,
    .reduce = gni_cpu_reduce,
    .softmax = gni_cpu_softmax,
    .softmax_row_bytes = GNI_SOFTMAX_ROW_BYTES,
    .softmax_columns_least = 8193,
    .attention_rows = 128,
    .random = gni_cpu_random,
    .extreme = gni_cpu_extreme,
    .cumulate = gni_cpu_cumulate,
    .cumulate_extreme = gni_cpu_cumulate_extreme,
    .select = gni_cpu_select,
    .unique = gni_cpu_unique,
    .product = gni_cpu_product,
    .product_copies = gni_cpu_product_copies,
    .convolve = gni_cpu_convolve,
    .fold = gni_cpu_fold,
    .row_sums = gni_cpu_row_sums,
    .row_maxima = gni_cpu_row_maxima,
    .pool_maximum = gni_cpu_pool_maximum,
    .index_get = gni_cpu_index_get,
    .index_set = gni_cpu_index_set,
    .mask_places = gni_cpu_mask_places,
    .mask_get = gni_cpu_mask_get,
    .mask_set = gni_cpu_mask_set,
    .index_check = gni_cpu_index_check,
    .search = gni_cpu_search,
    .range = gni_cpu_range,
    .count = gni_cpu_count,
    .count_small = gni_cpu_count_small,
    .kth = gni_cpu_kth,
    .permutation = gni_cpu_permutation,
    .fill = gni_cpu_fill_number,
    .sequence = gni_cpu_sequence,
    .small_most = 256,
    .copy_most = GNI_COPY_MOST,
    .has_cheap_sort_values = true,
    .batch_sums_most = 4096,
};
