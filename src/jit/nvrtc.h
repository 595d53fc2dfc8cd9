/*
 * nvrtc.h: from CUDA C to code for one architecture.
 *
 * NVRTC is loaded when something must be compiled, and not before (device/cuda/library.h has where it is
 * looked for). It needs no GPU.
 *
 * Threads: any number of compilations run at the same time, at full speed each.
 */
#ifndef GNI_JIT_NVRTC_H
#define GNI_JIT_NVRTC_H

#include "jit/source.h"

/*
 * Compiles for the architecture, 90 for sm_90: to machine code for exactly this one, or to PTX for the
 * newest one that NVRTC knows, where the device is newer.
 *
 * GN_ERROR_COMPILATION with the kernel's name and the first lines of the compiler's log, when the text is
 * wrong; with GENESIS_LOG=debug the numbered text goes to standard error. GN_ERROR_UNAVAILABLE without
 * NVRTC, GN_ERROR_UNSUPPORTED where it is too new for the architecture, GN_ERROR_INVALID_VALUE for an
 * option that it does not know. The image belongs to the caller.
 */
gn_status gni_nvrtc_compile(const struct gni_kernel_source *source, int architecture,
                            struct gni_kernel_image *image) GN_NODISCARD;

#endif
