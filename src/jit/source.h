/*
 * source.h: what a kernel is made of, and what comes out.
 *
 *   gni_kernel_source   CUDA C with options: what is compiled
 *   gni_kernel_image    code for one architecture: what is loaded
 */
#ifndef GNI_JIT_SOURCE_H
#define GNI_JIT_SOURCE_H

#include "genesis/base.h"

/*
 * Borrowed for the time of a call. Kernels that we generate include no header (a compilation takes 40 ms
 * without and a second with some), and take scalars as arguments, never as text.
 */
struct gni_kernel_source {
    const char *name;           /* of the kernel in the text; in messages, too */
    const char *text;           /* CUDA C */
    const char *const *options; /* NVRTC's, with a NULL behind the last. NULL: gni_kernel_options */
    bool is_expression;         /* the name is as C++ writes it, such as scale<float> */
    /*
     * (optional) Bytes that stand for all of the above, made from whatever the text is made from: two
     * sources with the same signature are one kernel. Then a kernel can be found without its text
     * (gni_kernel_find), in some tens of nanoseconds. Without one, all of the above is compared.
     */
    const void *signature;
    size_t signature_size;
    bool is_known_only; /* taken from the archive or the disk, never compiled */
    bool is_general;    /* the kernel is one of tier 0 (tiers.h): it is there for many programs */
};

/* The options of kernels that we generate: C++17, and no product that is contracted with a sum, so that
 * + - * / give the same bits however operations are put together. */
extern const char *const gni_kernel_options[];

/*
 * The texts that a source consists of, one after the other, NULL behind the last: with their final NULs
 * they are different for different sources. Whether the name is an expression is one of them.
 */
const char *gni_kernel_source_piece(const struct gni_kernel_source *source, size_t index);

/* Is this all that the code depends on? Not if there are files to include: those can change. */
bool gni_kernel_source_is_whole(const struct gni_kernel_source *source);

/* Writes the text to the directory, as NAME_HASH.cu, for readers and for the builder of the archive; false: it cannot,
 * and the log says why. */
bool gni_kernel_source_write(const struct gni_kernel_source *source, const char *directory);

/* What it points to is of gni_host_alloc(), and owned. */
struct gni_kernel_image {
    void *bytes; /* a cubin; or PTX, with its final NUL, where NVRTC is older than the device */
    size_t nbytes;
    char *symbol; /* the kernel's name in there */
};

/* Frees what an image owns; an image of zeros is allowed. */
void gni_kernel_image_deinit(struct gni_kernel_image *image);

#endif
