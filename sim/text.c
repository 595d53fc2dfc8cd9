/*
 * text.c: see text.h.
 */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool text_reserve(struct sim_text *text, size_t count)
{
    if (text->has_failed)
        return false;
    if (text->capacity - text->length > count)
        return true;
    size_t capacity = (text->length + count + 1) * 2;
    char *data = count < (size_t)-1 / 4 ? realloc(text->data, capacity) : NULL;
    if (data == NULL) {
        text->has_failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void sim_text_add(struct sim_text *text, const char *bytes, size_t count)
{
    if (!text_reserve(text, count))
        return;
    if (count > 0)
        memcpy(text->data + text->length, bytes, count);
    text->length += count;
    text->data[text->length] = '\0';
}

void sim_text_print(struct sim_text *text, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int count = vsnprintf(NULL, 0, format, arguments);
    if (count >= 0 && text_reserve(text, (size_t)count)) {
        vsnprintf(text->data + text->length, (size_t)count + 1, format, again);
        text->length += (size_t)count;
    }
    va_end(again);
    va_end(arguments);
}

void sim_text_deinit(struct sim_text *text)
{
    free(text->data);
    memset(text, 0, sizeof *text);
}

char *sim_text_take(struct sim_text *text)
{
    sim_text_add(text, "", 0);
    char *data = text->has_failed ? NULL : text->data;
    if (data == NULL)
        free(text->data);
    memset(text, 0, sizeof *text);
    return data;
}
