/*
 * program_kernel.h: the kernel of a program, which has been compiled, or is asked for while the interpreter runs the program.
 *
 *     struct gni_program_kernel wanted = {...};
 *     GN_TRY(gni_program_kernel_find(stream, &wanted, &kernel));
 *     if (kernel == NULL)
 *         GN_TRY(interpret the program, &is_done);
 *     if (kernel == NULL && !is_done)
 *         GN_TRY(gni_program_kernel_build(stream->device, &wanted, &kernel));
 *     launch the kernel, if there is one
 *
 * GENESIS_TIERS decides (jit/tiers.h). Both tiers give the same bits where one version of NVRTC has compiled both. Where it
 * was another, a program with functions that are not exact (sin, exp) stays in the tier in which it began, as long as the
 * process lives: its kernel is only stored for the next one.
 *
 * Threads: any.
 */
#ifndef GNI_OPS_CUDA_PROGRAM_KERNEL_H
#define GNI_OPS_CUDA_PROGRAM_KERNEL_H

#include "base/builder.h"
#include "jit/kernel.h"
#include "ops/program.h"

enum {
    GNI_PROGRAM_KERNEL_NAME = 160,
};

struct gni_program_kernel {
    const struct gni_program *program;
    bool
        has_functions; /* the kernel computes functions that are no steps of the program, as softmax does */
    const void *signature;
    size_t signature_size;
    /* Makes the kernel's name and text. */
    void (*write)(const void *context, char name[GNI_PROGRAM_KERNEL_NAME],
                  struct gni_builder *text);
    const void *context;
};

/* The kernel that is there. NULL: the program is to be interpreted now. Where it may not be, the kernel is built; so it is while
 * the stream is captured, since a graph runs many times. */
gn_status gni_program_kernel_find(gn_stream *stream, const struct gni_program_kernel *wanted,
                                  struct gni_kernel **kernel) GN_NODISCARD;

/* Whether programs of a device have two tiers. */
bool gni_program_kernel_has_tiers(gn_device *device);

/* The kernel, compiled now if need be. */
gn_status gni_program_kernel_build(gn_device *device, const struct gni_program_kernel *wanted,
                                   struct gni_kernel **kernel) GN_NODISCARD;

#endif
