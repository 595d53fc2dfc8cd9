/*
 * text_conditions.h: a text of CUDA C without its comments, and without the conditional lines (#if, #ifdef ...) that depend
 * on nothing but the macros that it defines.
 */
#ifndef GNI_JIT_TEXT_CONDITIONS_H
#define GNI_JIT_TEXT_CONDITIONS_H

#include "base/builder.h"

#include <string.h>

/* A part of a text. */
struct gni_slice {
    const char *at;
    size_t length;
};

static inline bool gni_slice_is(struct gni_slice slice, const char *text)
{
    return strlen(text) == slice.length && memcmp(slice.at, text, slice.length) == 0;
}

/* Adds to `out` what is left. Conditions on names that begin with "__" or "GN_" are the compiler's: they and all of their
 * branches stay. Fails for want of memory: then `out` has_failed. */
void gni_text_decide(const char *text, struct gni_builder *out);

#endif
