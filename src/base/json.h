/*
 * json.h: writes JSON text piece by piece into a buffer that grows.
 *
 *     struct gni_json json;
 *     gni_json_init(&json);
 *     gni_json_begin_object(&json);
 *     gni_json_key(&json, "bytes");
 *     gni_json_uint64(&json, 4096);
 *     gni_json_end_object(&json);
 *     GN_TRY(gni_json_finish(&json, &text, &length));      text is {"bytes":4096}
 *
 * Invariants:
 *   1. Only finish reports errors. The first error sticks: later calls do nothing, so that a report
 *      of a hundred values needs one check.
 *   2. The text is one value of RFC 8259 JSON in UTF-8, without spaces, whatever bytes and numbers
 *      came in. Keys are written as they come: that they differ is the caller's business.
 *   3. Misuse (a value without its key, an end that matches no begin, a second outermost value) is
 *      a programmer error: debug builds assert, others give GN_ERROR_INVALID_VALUE from finish.
 *   4. The writer owns its buffer until finish hands it over or deinit frees it.
 *
 * Threads: a writer is used by one thread at a time.
 */
#ifndef GNI_BASE_JSON_H
#define GNI_BASE_JSON_H

#include "genesis/base.h"

/* Objects and arrays inside one another. More is GN_ERROR_INVALID_VALUE, as readers refuse it. */
#define GNI_JSON_DEPTH_MAX 64

struct gni_json {
    char *text;                                   /* owned; NULL until the first byte */
    size_t length;                                /* bytes written; length < capacity if any */
    size_t capacity;                              /* bytes of `text`, with room for the last NUL */
    size_t nbytes_refused;                        /* what the host would not give, if it failed */
    const char *problem;                          /* what was wrong, if it is not the memory */
    gn_status status;                             /* the first error (invariant 1) */
    unsigned depth;                               /* open objects and arrays */
    unsigned char states[GNI_JSON_DEPTH_MAX + 1]; /* what may come next, for each level; json.c */
};

/* An empty writer; allocates nothing and cannot fail. */
void gni_json_init(struct gni_json *json);

/* Throws away what was written; the writer is empty, as after init. Not needed after finish. */
void gni_json_deinit(struct gni_json *json);

void gni_json_begin_object(struct gni_json *json);
void gni_json_end_object(struct gni_json *json);
void gni_json_begin_array(struct gni_json *json);
void gni_json_end_array(struct gni_json *json);

/* The name of the next value; only in an object, and there before every value. */
void gni_json_key(struct gni_json *json, const char *key);

/*
 * A string, or null for NULL. Control characters, quotes and backslashes are escaped; bytes that
 * are not UTF-8 become U+FFFD, one for each longest part that begins like a character.
 */
void gni_json_string(struct gni_json *json, const char *text);

/* The same for bytes with a known length, which may hold NUL; NULL with length 0 is "". */
void gni_json_string_bytes(struct gni_json *json, const char *bytes, size_t length);

void gni_json_int64(struct gni_json *json, int64_t value);
void gni_json_uint64(struct gni_json *json, uint64_t value);

/*
 * With the fewest digits from 15 on that read back as the same number, and always with a point or
 * an exponent, so that readers that tell integers apart see a double (and -0.0 keeps its sign).
 * NaN and infinities have no JSON form and become null.
 */
void gni_json_double(struct gni_json *json, double value);

void gni_json_bool(struct gni_json *json, bool value);
void gni_json_null(struct gni_json *json);

/*
 * Hands the text over, with a NUL after its `length` bytes: gni_host_free it. `length` may be NULL.
 * Fails with the first error, which may be GN_ERROR_OUT_OF_HOST_MEMORY, GN_ERROR_OVERFLOW or
 * GN_ERROR_INVALID_VALUE, and then frees what was written. The writer is empty afterwards either
 * way.
 */
gn_status gni_json_finish(struct gni_json *json, char **text, size_t *length) GN_NODISCARD;

#endif
