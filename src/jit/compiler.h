/*
 * compiler.h: which compiler makes the kernels, known without loading it.
 *
 * What NVRTC makes of a text depends on its version, so the version is a part of what a kernel on disk is
 * found by. Loading NVRTC to ask for it takes longer than all the rest of a warm start: so what was
 * found is remembered in the cache as well, by the places where it was looked for, and holds as long as
 * the file is the same.
 *
 * Threads: any.
 */
#ifndef GNI_JIT_COMPILER_H
#define GNI_JIT_COMPILER_H

#include "jit/disk_cache.h"

struct gni_compiler {
    int version; /* of NVRTC: 13000 is 13.0 */
    int unused;  /* 0: this is written to disk, and has no holes */
    uint64_t file_bytes;
    int64_t file_time_ns; /* of its last change; versions do not tell all */
};

/* The compiler that would be used, as far as that is known without loading it. */
bool gni_compiler_guess(struct gni_compiler *compiler);

/* The compiler that is used, loaded if need be. GN_ERROR_UNAVAILABLE: there is none. */
gn_status gni_compiler_load(struct gni_compiler *compiler) GN_NODISCARD;

/* What a kernel is found by on disk: its source, the architecture, the compiler, and the driver. */
void gni_compiler_key(const struct gni_compiler *compiler, int architecture,
                      const struct gni_kernel_source *source, struct gni_disk_key *key);

#endif
