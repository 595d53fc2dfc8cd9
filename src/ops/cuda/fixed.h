/*
 * fixed.h: kernels whose text is a .cu file of this folder, for a type of elements.
 *
 * The text is put together from elements.cu, the definitions below, and the files: a kernel is made when it is first
 * needed, and found by a few bytes after that.
 *
 *     #define NAME     the kernel's name: the word, and the dtype
 *     typedef element  the dtype as it lies in memory
 *     typedef key      an unsigned integer that the keys of elements fit into
 */
#ifndef GNI_OPS_CUDA_FIXED_H
#define GNI_OPS_CUDA_FIXED_H

#include "base/builder.h"
#include "jit/kernel.h"
#include "ops/backend.h"

struct gni_fixed {
    const char *word;        /* what it computes; the address of one constant for one kernel */
    const char *texts[2];    /* the .cu files behind the definitions; the second may be NULL */
    const char *definitions; /* more of them; NULL: none */
};

enum {
    GNI_FIXED_THREADS = 256, /* of every block */
    GNI_FIXED_NAME_MOST = 64,
};

/* The name and the text of a kernel. */
void gni_fixed_text(const struct gni_fixed *fixed, gn_dtype dtype, char name[GNI_FIXED_NAME_MOST],
                    struct gni_builder *text);

/* Launches a kernel. `arguments` points to the struct of that name in its text. */
#define gni_fixed_launch(fixed, dtype, grid_x, grid_y, arguments, stream) \
    gni_fixed_submit(fixed, dtype, grid_x, grid_y, arguments, sizeof *(arguments), stream)
gn_status gni_fixed_submit(const struct gni_fixed *fixed, gn_dtype dtype, int64_t grid_x,
                           int64_t grid_y, void *arguments, size_t argument_bytes,
                           gn_stream *stream) GN_NODISCARD;

/* The kernel, for launches of another form. */
gn_status gni_fixed_get(const struct gni_fixed *fixed, gn_dtype dtype, gn_device *device,
                        struct gni_kernel **kernel) GN_NODISCARD;

static inline int64_t gni_divided_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

#endif
