/*
 * copy.h: few elements from memory to memory, by strides, at once: for copies that take less time than a program does.
 *
 * Threads: pure functions. The caller computes what is pending before, and both sides do not overlap.
 */
#ifndef GNI_OPS_CPU_COPY_H
#define GNI_OPS_CPU_COPY_H

#include "tensor/shape.h"

enum {
    GNI_COPY_MOST =
        4096, /* elements that one thread copies in less time than a program takes to begin */
};

/* Copies elements of `size` bytes. Strides are in elements; those of `from` may be 0. */
void gni_copy_strided(char *to, const int64_t *to_strides, const char *from,
                      const int64_t *from_strides, int ndim, const int64_t *sizes, size_t size);

#endif
