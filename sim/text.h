/*
 * text.h: a text that grows. Memory that runs out is remembered and asked for once, at the end, so
 * that building a text needs no check for each piece.
 *
 * Rules: `data` is NULL or ends with a NUL that `length` does not count. After a failure the text
 * stays as it was, and everything added later is dropped.
 */
#ifndef GNI_SIM_TEXT_H
#define GNI_SIM_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct sim_text {
    char *data;
    size_t length, capacity;
    bool has_failed; /* out of memory */
};

void sim_text_add(struct sim_text *text, const char *bytes, size_t count);
void sim_text_print(struct sim_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sim_text_deinit(struct sim_text *text);

/* Hands the bytes over, for free(); NULL after a failure. An empty text gives "". */
char *sim_text_take(struct sim_text *text);

#endif
