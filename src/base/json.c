/*
 * json.c: the buffer, the grammar, then strings and numbers. The invariants are in json.h.
 *
 * The grammar is one state for each level, level 0 being the place of the outermost value:
 *
 *     JSON_EMPTY --value--> JSON_DONE
 *     JSON_ARRAY_FIRST --value--> JSON_ARRAY_NEXT --value--> (same)
 *     JSON_OBJECT_FIRST --key--> JSON_OBJECT_VALUE --value--> JSON_OBJECT_NEXT --key--> ..._VALUE
 *
 * _FIRST and _NEXT are where a level may end; _NEXT is where a comma is due.
 */
#include "base/json.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/host.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSON_CAPACITY_MIN ((size_t)256)

enum json_state {
    JSON_EMPTY, /* 0: what gni_json_init leaves */
    JSON_DONE,
    JSON_ARRAY_FIRST,
    JSON_ARRAY_NEXT,
    JSON_OBJECT_FIRST,
    JSON_OBJECT_VALUE,
    JSON_OBJECT_NEXT,
};

/* Keeps the first error; the text so far is of no use any more. */
static void json_fail(struct gni_json *json, gn_status status, const char *problem)
{
    if (json->status != GN_OK)
        return;
    json->status = status;
    json->problem = problem;
}

static void json_misuse(struct gni_json *json, const char *problem)
{
    json_fail(json, GN_ERROR_INVALID_VALUE, problem);
    gni_assert(problem == NULL && "misuse of the JSON writer");
}

/* Makes room for `extra` more bytes and the NUL. Doubles, so that writing n bytes takes O(n). */
static bool json_reserve(struct gni_json *json, size_t extra)
{
    size_t needed;
    if (!gni_size_add(json->length, extra, &needed) || !gni_size_add(needed, 1, &needed) ||
        !gni_size_is_possible(needed)) {
        json_fail(json, GN_ERROR_OVERFLOW, "the text does not fit the address space");
        return false;
    }
    if (needed <= json->capacity)
        return true;
    size_t capacity = JSON_CAPACITY_MIN;
    if (!gni_size_multiply(json->capacity, 2, &capacity) || capacity < needed)
        capacity = needed < JSON_CAPACITY_MIN ? JSON_CAPACITY_MIN : needed;
    char *text = gni_host_realloc(json->text, capacity);
    if (text == NULL) {
        json_fail(json, GN_ERROR_OUT_OF_HOST_MEMORY, NULL);
        json->nbytes_refused = capacity;
        return false;
    }
    json->text = text;
    json->capacity = capacity;
    return true;
}

static void json_put(struct gni_json *json, const char *bytes, size_t length)
{
    if (length == 0 || json->status != GN_OK || !json_reserve(json, length))
        return;
    memcpy(json->text + json->length, bytes, length);
    json->length += length;
}

static void json_put_text(struct gni_json *json, const char *text)
{
    json_put(json, text, strlen(text));
}

/* Called before every value; true if it may be written here. */
static bool json_value_begin(struct gni_json *json)
{
    if (json->status != GN_OK)
        return false;
    unsigned char *state = &json->states[json->depth];
    switch ((enum json_state) * state) {
    case JSON_EMPTY:
        *state = JSON_DONE;
        break;
    case JSON_ARRAY_NEXT:
        json_put(json, ",", 1);
        break;
    case JSON_ARRAY_FIRST:
        *state = JSON_ARRAY_NEXT;
        break;
    case JSON_OBJECT_VALUE:
        *state = JSON_OBJECT_NEXT;
        break;
    case JSON_DONE:
        json_misuse(json, "there is a second outermost value");
        break;
    case JSON_OBJECT_FIRST:
    case JSON_OBJECT_NEXT:
        json_misuse(json, "a value in an object has no key");
        break;
    }
    return json->status == GN_OK;
}

static void json_value_put(struct gni_json *json, const char *text)
{
    if (json_value_begin(json))
        json_put_text(json, text);
}

static void json_level_begin(struct gni_json *json, const char *bracket, enum json_state first)
{
    if (!json_value_begin(json))
        return;
    if (json->depth == GNI_JSON_DEPTH_MAX) {
        /* Not misuse: how deep the data is may be up to the user. */
        json_fail(json, GN_ERROR_INVALID_VALUE, "objects and arrays are nested too deeply");
        return;
    }
    json_put_text(json, bracket);
    json->states[++json->depth] = (unsigned char)first;
}

static void json_level_end(struct gni_json *json, const char *bracket, enum json_state first,
                           enum json_state next)
{
    if (json->status != GN_OK)
        return;
    unsigned char state = json->states[json->depth];
    if (state != first && state != next) {
        json_misuse(json, "an end matches no begin, or a key has no value");
        return;
    }
    json_put_text(json, bracket);
    json->depth--;
}

void gni_json_init(struct gni_json *json)
{
    *json = (struct gni_json){.status = GN_OK};
}

void gni_json_deinit(struct gni_json *json)
{
    gni_host_free(json->text);
    gni_json_init(json);
}

void gni_json_begin_object(struct gni_json *json)
{
    json_level_begin(json, "{", JSON_OBJECT_FIRST);
}

void gni_json_end_object(struct gni_json *json)
{
    json_level_end(json, "}", JSON_OBJECT_FIRST, JSON_OBJECT_NEXT);
}

void gni_json_begin_array(struct gni_json *json)
{
    json_level_begin(json, "[", JSON_ARRAY_FIRST);
}

void gni_json_end_array(struct gni_json *json)
{
    json_level_end(json, "]", JSON_ARRAY_FIRST, JSON_ARRAY_NEXT);
}

/*
 * The range that the second byte of a character must lie in, by its first byte; it is narrower
 * than 80..BF where a longer form of a short character, a surrogate or a code over 10FFFF would
 * begin. Returns the bytes of the character, or 1 for a byte that begins none or is ASCII.
 */
static size_t utf8_lead(unsigned char lead, unsigned char *low, unsigned char *high)
{
    *low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    *high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (lead >= 0xc2 && lead <= 0xdf)
        return 2;
    if (lead >= 0xe0 && lead <= 0xef)
        return 3;
    if (lead >= 0xf0 && lead <= 0xf4)
        return 4;
    return 1;
}

/*
 * The bytes of the character at the start of a text that is not empty. When there is no valid one:
 * *is_valid is false, and it is the bytes that one U+FFFD stands for.
 */
static size_t utf8_next(const unsigned char *bytes, size_t length, bool *is_valid)
{
    unsigned char low, high;
    size_t full = utf8_lead(bytes[0], &low, &high);
    *is_valid = full > 1 || bytes[0] < 0x80;
    for (size_t used = 1; used < full; used++) {
        if (used == length || bytes[used] < low || bytes[used] > high) {
            *is_valid = false;
            return used;
        }
        low = 0x80;
        high = 0xbf;
    }
    return full;
}

/* What stands for a byte that may not appear as itself in a string; NULL if it may. */
static const char *json_escape_find(unsigned char byte, char buffer[8])
{
    static const char special[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *found = byte == '\0' ? NULL : strchr(special, byte);
    if (found != NULL)
        (void)snprintf(buffer, 8, "\\%c", letters[found - special]);
    else if (byte < 0x20)
        (void)snprintf(buffer, 8, "\\u%04x", (unsigned)byte);
    else
        return NULL;
    return buffer;
}

/* A string in quotes. Bytes that stay as they are, nearly all, are copied in runs. */
static void json_put_quoted(struct gni_json *json, const char *text, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t run = 0; /* start of the bytes that were looked at and not yet written */
    json_put(json, "\"", 1);
    for (size_t at = 0; at < length && json->status == GN_OK;) {
        char buffer[8];
        bool is_valid;
        size_t used = utf8_next(bytes + at, length - at, &is_valid);
        const char *instead = is_valid ? json_escape_find(bytes[at], buffer) : "\xef\xbf\xbd";
        if (instead != NULL) {
            json_put(json, text + run, at - run);
            json_put_text(json, instead);
            run = at + used;
        }
        at += used;
    }
    if (run < length)
        json_put(json, text + run, length - run);
    json_put(json, "\"", 1);
}

void gni_json_key(struct gni_json *json, const char *key)
{
    gni_assert(key != NULL);
    if (json->status != GN_OK)
        return;
    unsigned char *state = &json->states[json->depth];
    if (*state != JSON_OBJECT_FIRST && *state != JSON_OBJECT_NEXT) {
        json_misuse(json, "a key is not in an object, or follows another key");
        return;
    }
    if (*state == JSON_OBJECT_NEXT)
        json_put(json, ",", 1);
    *state = JSON_OBJECT_VALUE;
    json_put_quoted(json, key, strlen(key));
    json_put(json, ":", 1);
}

void gni_json_string(struct gni_json *json, const char *text)
{
    if (text == NULL)
        gni_json_null(json);
    else
        gni_json_string_bytes(json, text, strlen(text));
}

void gni_json_string_bytes(struct gni_json *json, const char *bytes, size_t length)
{
    if (json_value_begin(json))
        json_put_quoted(json, bytes, length);
}

void gni_json_int64(struct gni_json *json, int64_t value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%" PRId64, value);
    json_value_put(json, text);
}

void gni_json_uint64(struct gni_json *json, uint64_t value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    json_value_put(json, text);
}

/*
 * Puts "." in place of the locale's decimal separator, which may be any bytes (a comma, or U+066B),
 * and ".0" after a number that would read as an integer. Looks at the text and not at the locale,
 * which another thread may change at any time.
 */
static void json_number_normalize(char *text)
{
    size_t first = strspn(text, "-0123456789");
    size_t separator = strcspn(text + first, "+-e0123456789");
    if (separator > 0) {
        text[first] = '.';
        memmove(text + first + 1, text + first + separator, strlen(text + first + separator) + 1);
    } else if (text[first] == '\0') {
        strcpy(text + first, ".0");
    }
}

void gni_json_double(struct gni_json *json, double value)
{
    if (!isfinite(value)) {
        gni_json_null(json);
        return;
    }
    char text[64]; /* 17 digits, sign, exponent, ".0" and the separator of any locale */
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        double again = strtod(text, NULL); /* in the same locale, or else 17 digits: always right */
        if (memcmp(&again, &value, sizeof value) == 0)
            break;
    }
    json_number_normalize(text);
    json_value_put(json, text);
}

void gni_json_bool(struct gni_json *json, bool value)
{
    json_value_put(json, value ? "true" : "false");
}

void gni_json_null(struct gni_json *json)
{
    json_value_put(json, "null");
}

/* The first error, in words, for the thread that finishes. */
static gn_status json_error(const struct gni_json *json)
{
    if (json->status == GN_ERROR_OUT_OF_HOST_MEMORY)
        return gni_error_host_memory(json->nbytes_refused);
    return gni_error(json->status, "JSON after %zu bytes: %s", json->length, json->problem);
}

gn_status gni_json_finish(struct gni_json *json, char **text, size_t *length)
{
    if (json->status == GN_OK && json->states[0] == JSON_EMPTY)
        json_misuse(json, "there is no value");
    if (json->status == GN_OK && json->depth != 0)
        json_misuse(json, "an object or array is not ended");
    if (json->status != GN_OK) {
        gn_status status = json_error(json);
        gni_json_deinit(json);
        return status;
    }
    json->text[json->length] = '\0';
    *text = json->text;
    if (length != NULL)
        *length = json->length;
    gni_json_init(json); /* the text is the caller's now */
    return GN_OK;
}
