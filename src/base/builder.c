#include "base/builder.h"

#include "base/host.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Room for `more` bytes and a NUL. */
static bool builder_reserve(struct gni_builder *builder, size_t more)
{
    size_t wanted = builder->length + more + 1;
    if (builder->has_failed || wanted <= builder->capacity)
        return !builder->has_failed;
    size_t capacity = wanted > 2 * builder->capacity ? wanted : 2 * builder->capacity;
    char *text = gni_host_realloc(builder->text, capacity);
    builder->has_failed = text == NULL;
    if (text == NULL)
        return false;
    builder->text = text;
    builder->capacity = capacity;
    return true;
}

void gni_builder_add(struct gni_builder *builder, const char *text, size_t length)
{
    if (!builder_reserve(builder, length))
        return;
    memcpy(builder->text + builder->length, text, length);
    builder->length += length;
    builder->text[builder->length] = 0;
}

void gni_builder_print(struct gni_builder *builder, const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    gni_assert(length >= 0 && (size_t)length < sizeof line);
    gni_builder_add(builder, line, (size_t)length);
}

void gni_builder_deinit(struct gni_builder *builder)
{
    gni_host_free(builder->text);
    *builder = (struct gni_builder){.text = NULL};
}
