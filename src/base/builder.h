/*
 * builder.h: a text that grows.
 *
 * A builder of zeros is an empty text. Failing for want of memory is remembered: everything after that does nothing,
 * and whoever takes the text asks once.
 */
#ifndef GNI_BASE_BUILDER_H
#define GNI_BASE_BUILDER_H

#include "base/error.h"

struct gni_builder {
    char *text; /* of gni_host_alloc(); NULL while it is empty */
    size_t length, capacity;
    bool has_failed;
};

void gni_builder_print(struct gni_builder *builder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds bytes that may be many. */
void gni_builder_add(struct gni_builder *builder, const char *text, size_t length);

void gni_builder_deinit(struct gni_builder *builder);

#endif
