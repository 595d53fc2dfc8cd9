/*
 * kernel_list.h: the kernels whose texts do not depend on the user's program, without a device.
 *
 * The archive (jit/archive.h) is made of them: tools/kernel_texts.c writes their texts, and tools/kernel_archive.py compiles
 * these. Each file that has such kernels has a function that adds them, and a row in GNI_KERNEL_LISTS. A test looks whether
 * the kernels that the programs of tests/ops make are in the list.
 *
 * Threads: a list belongs to one thread.
 */
#ifndef GNI_OPS_CUDA_KERNEL_LIST_H
#define GNI_OPS_CUDA_KERNEL_LIST_H

#include "base/builder.h"
#include "ops/cuda/fixed.h"

/* Takes kernels one after the other, as gni_kernel_build() would look for them in the archive. */
struct gni_kernel_list {
    void (*take)(void *context, const char *name, const char *text); /* borrows */
    void *context;
    bool has_failed; /* for want of memory: then some were not taken */
};

/* Each is in the file of that name; the kernels of operations are in warm.c. */
#define GNI_KERNEL_LISTS(ROW)         \
    ROW(gni_cuda_extreme_list)        \
    ROW(gni_cuda_index_list)          \
    ROW(gni_cuda_list_join_list)      \
    ROW(gni_cuda_mask_list)           \
    ROW(gni_cuda_ordered_list)        \
    ROW(gni_cuda_permutation_list)    \
    ROW(gni_cuda_product_list)        \
    ROW(gni_cuda_random_list)         \
    ROW(gni_cuda_scan_list)           \
    ROW(gni_cuda_search_list)         \
    ROW(gni_cuda_sort_list)           \
    ROW(gni_cuda_row_program_list)    \
    ROW(gni_cuda_warm_list)           \
    ROW(gni_interpret_kernels)        \
    ROW(gni_interpret_list_kernels)   \
    ROW(gni_interpret_reduce_kernels) \
    ROW(gni_interpret_rows_kernels)   \
    ROW(gni_interpret_softmax_kernels)

#define GNI_KERNEL_LIST_FUNCTION(function) void function(struct gni_kernel_list *list);
GNI_KERNEL_LISTS(GNI_KERNEL_LIST_FUNCTION)
#undef GNI_KERNEL_LIST_FUNCTION

/* All kernels. */
void gni_kernel_list_fill(struct gni_kernel_list *list);

/* Adds a kernel, and ends its text. */
void gni_kernel_list_add(struct gni_kernel_list *list, const char *name, struct gni_builder *text);

/* Adds a kernel for each type of elements whose bit is set: GNI_TYPE(GN_INT64), or a set of them. */
void gni_kernel_list_add_fixed(struct gni_kernel_list *list, const struct gni_fixed *fixed,
                               unsigned types);

#define GNI_TYPE(dtype) (1u << (dtype))

enum {
    GNI_TYPES_REAL =
        GNI_TYPE(GN_FLOAT16) | GNI_TYPE(GN_BFLOAT16) | GNI_TYPE(GN_FLOAT32) | GNI_TYPE(GN_FLOAT64),
    GNI_TYPES_UNSIGNED =
        GNI_TYPE(GN_UINT8) | GNI_TYPE(GN_UINT16) | GNI_TYPE(GN_UINT32) | GNI_TYPE(GN_UINT64),
    GNI_TYPES_SIGNED =
        GNI_TYPE(GN_INT8) | GNI_TYPE(GN_INT16) | GNI_TYPE(GN_INT32) | GNI_TYPE(GN_INT64),
    GNI_TYPES_INTEGER = GNI_TYPES_UNSIGNED | GNI_TYPES_SIGNED,
    GNI_TYPES_ALL = GNI_TYPES_REAL | GNI_TYPES_INTEGER, /* bool is uint8: gni_fixed_submit() */
};

#endif
