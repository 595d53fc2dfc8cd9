/*
 * text.h: numbers as people read them.
 */
#ifndef GNI_BASE_TEXT_H
#define GNI_BASE_TEXT_H

#include "genesis/base.h"

/* A size such as "512 bytes" or "1.50 GiB", returned by value so that it can stand in a call. */
struct gni_size_text {
    char text[24];
};
struct gni_size_text gni_size_text(uint64_t bytes);

/* What a word ends with behind a number: "%d block%s". */
static inline const char *gni_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

#endif
