/*
 * test_json.c: the JSON writer against exact texts, every UTF-8 form, misuse and lack of memory.
 */
#include "check.h"

#include "base/host.h"
#include "base/json.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define FFFD "\xef\xbf\xbd"

/* Finishes the text, compares it and frees it. */
static void finish_check(struct gni_json *json, const char *expected)
{
    char *text = NULL;
    size_t length = 0;
    CHECK_OK(gni_json_finish(json, &text, &length));
    CHECK_TEXT(text == NULL ? "(no text)" : text, expected);
    CHECK_U64(length, strlen(expected));
    gni_host_free(text);
}

static void string_check(const char *bytes, size_t length, const char *expected)
{
    struct gni_json json;
    gni_json_init(&json);
    gni_json_string_bytes(&json, bytes, length);
    finish_check(&json, expected);
}

static void double_check(double value, const char *expected)
{
    struct gni_json json;
    gni_json_init(&json);
    gni_json_double(&json, value);
    finish_check(&json, expected);
}

/* A document with every kind of value in every kind of place. */
static void document_write(struct gni_json *json)
{
    gni_json_begin_object(json);
    gni_json_key(json, "empty object");
    gni_json_begin_object(json);
    gni_json_end_object(json);
    gni_json_key(json, "list");
    gni_json_begin_array(json);
    gni_json_int64(json, INT64_MIN);
    gni_json_uint64(json, UINT64_MAX);
    gni_json_begin_array(json);
    gni_json_end_array(json);
    gni_json_begin_object(json);
    gni_json_key(json, "\"");
    gni_json_bool(json, true);
    gni_json_end_object(json);
    gni_json_bool(json, false);
    gni_json_end_array(json);
    gni_json_key(json, "");
    gni_json_null(json);
    gni_json_key(json, "text");
    gni_json_string(json, "a");
    gni_json_key(json, "no text");
    gni_json_string(json, NULL);
    gni_json_end_object(json);
}

static const char document_text[] =
    "{\"empty object\":{},\"list\":[-9223372036854775808,18446744073709551615,[],{\"\\\"\":true},"
    "false],\"\":null,\"text\":\"a\",\"no text\":null}";

static void test_document(void)
{
    struct gni_json json;
    gni_json_init(&json);
    document_write(&json);
    finish_check(&json, document_text);
    gni_json_int64(&json, 0); /* the writer is empty again after finish */
    finish_check(&json, "0");
    char *text = NULL;
    gni_json_begin_array(&json);
    gni_json_deinit(&json);
    gni_json_int64(&json, INT64_MAX);
    CHECK_OK(gni_json_finish(&json, &text, NULL));
    CHECK_TEXT(text, "9223372036854775807");
    gni_host_free(text);
}

static void test_escapes(void)
{
    string_check("", 0, "\"\"");
    string_check(NULL, 0, "\"\"");
    string_check("\"\\/\b\f\n\r\t", 8, "\"\\\"\\\\/\\b\\f\\n\\r\\t\"");
    string_check("\0a\x01\x1f\x20\x7f", 6, "\"\\u0000a\\u0001\\u001f \x7f\"");
    string_check("one\ntwo", 7, "\"one\\ntwo\"");
    string_check("\n\n", 2, "\"\\n\\n\"");
}

/* Texts of every length around the buffer's sizes: the NUL must find room as well. */
static void test_every_length(void)
{
    char bytes[1100], expected[sizeof bytes + 3];
    memset(bytes, 'x', sizeof bytes);
    for (size_t length = 0; length <= sizeof bytes; length++) {
        (void)snprintf(expected, sizeof expected, "\"%.*s\"", (int)length, bytes);
        string_check(bytes, length, expected);
    }
}

/* From the tables of the Unicode standard (3.9): one U+FFFD for each longest valid beginning. */
static void test_invalid_utf8(void)
{
    string_check("\x80", 1, "\"" FFFD "\"");
    string_check("a\xffz", 3, "\"a" FFFD "z\"");
    string_check("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", 9,
                 "\"" FFFD FFFD FFFD FFFD FFFD FFFD FFFD FFFD "A\"");
    string_check("\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", 9,
                 "\"" FFFD FFFD FFFD FFFD FFFD FFFD FFFD FFFD "A\"");
    string_check("\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", 9,
                 "\"" FFFD FFFD FFFD FFFD FFFD "A" FFFD FFFD "B\"");
    string_check("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", 9, "\"" FFFD FFFD FFFD FFFD "A\"");
    string_check("\xe2\x82", 2, "\"" FFFD "\"");       /* cut off by the end */
    string_check("\xf0\x9f\x98", 3, "\"" FFFD "\"");   /* cut off by the end */
    string_check("\xe2\x82\n", 3, "\"" FFFD "\\n\"");  /* cut off by an escape */
    string_check("\xe2\x82\"", 3, "\"" FFFD "\\\"\""); /* a quote is not swallowed */
    string_check("\xc3\xa9\xc3", 3, "\"\xc3\xa9" FFFD "\"");
}

/* The bytes of a code in `nbytes` bytes, whether or not that is a legal form of it. */
static void utf8_encode(uint32_t code, size_t nbytes, char *bytes)
{
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = nbytes; i-- > 1; code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)(leads[nbytes] | code);
}

static bool utf8_is_legal(uint32_t code, size_t nbytes)
{
    static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
    return code >= lowest[nbytes] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

/* Each code in each length: legal ones come out as they are, others as U+FFFD and nothing else. */
static void test_every_utf8_form(void)
{
    struct gni_json json;
    gni_json_init(&json);
    for (size_t nbytes = 2; nbytes <= 4; nbytes++) {
        uint32_t end = (uint32_t)1 << (nbytes == 2 ? 11 : nbytes == 3 ? 16 : 21);
        for (uint32_t code = 0; code < end; code += nbytes == 4 && code % 4096 > 2 ? 61 : 1) {
            char bytes[4], *text = NULL;
            size_t length = 0;
            utf8_encode(code, nbytes, bytes);
            gni_json_string_bytes(&json, bytes, nbytes);
            CHECK_OK(gni_json_finish(&json, &text, &length));
            if (utf8_is_legal(code, nbytes)) {
                CHECK(length == nbytes + 2 && memcmp(text + 1, bytes, nbytes) == 0);
            } else {
                CHECK(length == 3 * nbytes + 2); /* no illegal form begins like a legal one */
                for (size_t at = 1; at + 1 < length; at += 3)
                    CHECK(memcmp(text + at, FFFD, 3) == 0);
            }
            gni_host_free(text);
        }
    }
}

static void test_doubles(void)
{
    double_check(0.0, "0.0");
    double_check(-0.0, "-0.0");
    double_check(1.0, "1.0");
    double_check(-1.5, "-1.5");
    double_check(0.1, "0.1");
    double_check(0.1 + 0.2, "0.30000000000000004");
    double_check(1.0 / 3, "0.3333333333333333");
    double_check(1e15, "1e+15");
    double_check(1e14, "100000000000000.0");
    double_check(1e300, "1e+300");
    double_check(DBL_MAX, "1.7976931348623157e+308");
    double_check(DBL_MIN, "2.2250738585072014e-308");
    double_check(5e-324, "4.94065645841247e-324");
    double_check((double)NAN, "null");
    double_check((double)INFINITY, "null");
    double_check(-(double)INFINITY, "null");
}

/* Every finite pattern of bits reads back as the same bits. */
static void doubles_round_trip(uint64_t seed)
{
    struct gni_json json;
    gni_json_init(&json);
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = check_random(&seed);
        double value, again;
        char *text = NULL;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        gni_json_double(&json, value);
        CHECK_OK(gni_json_finish(&json, &text, NULL));
        CHECK(strspn(text, "+-.e0123456789") == strlen(text) && strpbrk(text, ".e") != NULL);
        again = strtod(text, NULL);
        CHECK(memcmp(&again, &value, sizeof value) == 0);
        gni_host_free(text);
    }
}

/* A decimal comma, and separators of several bytes, where the machine has such a locale. */
static void test_locale(void)
{
    const char *names[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "fa_IR.UTF-8", "ps_AF.UTF-8"};
    doubles_round_trip(1);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (setlocale(LC_ALL, names[i]) == NULL)
            continue;
        printf("     with %s\n", names[i]);
        test_doubles();
    }
    CHECK(setlocale(LC_ALL, "C") != NULL);
}

/* Makes the calls that a script names, one for each character; k is a key and n is null. */
static void script_run(struct gni_json *json, const char *script)
{
    for (; *script != '\0'; script++) {
        switch (*script) {
        case '{':
            gni_json_begin_object(json);
            break;
        case '}':
            gni_json_end_object(json);
            break;
        case '[':
            gni_json_begin_array(json);
            break;
        case ']':
            gni_json_end_array(json);
            break;
        case 'k':
            gni_json_key(json, "k");
            break;
        default:
            gni_json_null(json);
        }
    }
}

static void test_depth(void)
{
    struct gni_json json;
    char script[2 * GNI_JSON_DEPTH_MAX + 3] = {0}, *text = script;
    size_t live = gni_host_live_count(), length = 99;
    memset(script, '[', GNI_JSON_DEPTH_MAX);
    memset(script + GNI_JSON_DEPTH_MAX, ']', GNI_JSON_DEPTH_MAX);
    gni_json_init(&json);
    script_run(&json, script);
    finish_check(&json, script);
    memset(script, '[', GNI_JSON_DEPTH_MAX + 1);
    memset(script + GNI_JSON_DEPTH_MAX + 1, ']', GNI_JSON_DEPTH_MAX + 1);
    script_run(&json, script); /* an error and no assert, in every build */
    CHECK_STATUS(gni_json_finish(&json, &text, &length), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("deep");
    CHECK(text == script && length == 99);
    CHECK_U64(gni_host_live_count(), live);
}

static gn_status misuse_run(const char *script, char **text, size_t *length)
{
    struct gni_json json;
    gni_json_init(&json);
    script_run(&json, script);
    return gni_json_finish(&json, text, length);
}

/* Where asserts are on, misuse ends the process, so it happens in another one. */
static void misuse_check(const char *script)
{
    char none, *text = &none;
    size_t length = 99, live = gni_host_live_count();
#if defined(GNI_DEBUG) && !defined(NDEBUG)
    pid_t child = fork();
    if (child == 0) {
        struct rlimit no_core = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)close(STDERR_FILENO);
        _exit(misuse_run(script, &text, &length) == GN_OK ? 0 : 1);
    }
    int result = 0;
    CHECK(child > 0 && waitpid(child, &result, 0) == child);
    CHECK(WIFSIGNALED(result) && WTERMSIG(result) == SIGABRT);
#else
    CHECK_STATUS(misuse_run(script, &text, &length), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("JSON after");
#endif
    CHECK(text == &none && length == 99);
    CHECK_U64(gni_host_live_count(), live);
}

static void test_misuse(void)
{
    const char *scripts[] = {
        "",       "nn",   "[][]", "{}n",          /* not exactly one outermost value */
        "{n}",    "{[]}", "{{}}", "{knn}",        /* a value without a key */
        "k",      "kn",   "[kn]", "{kkn}",        /* a key where none may be */
        "{k}",    "{k]",  "[}",   "{]",    "[n}", /* an end that does not match */
        "]",      "n]",   "[]]",  "{}}",          /* an end without a begin */
        "[",      "{",    "[{}",  "{kn",   "{k",  /* no end */
        "[[[]]}",
    };
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++)
        misuse_check(scripts[i]);
}

#define COPIES 40

static gn_status documents_write(char **text, size_t *length)
{
    struct gni_json json;
    gni_json_init(&json);
    gni_json_begin_array(&json);
    for (int i = 0; i < COPIES; i++)
        document_write(&json);
    gni_json_end_array(&json);
    return gni_json_finish(&json, text, length);
}

static void test_allocation_failures(void)
{
    size_t live = gni_host_live_count(), length = 99;
    char none, *text = &none;
    gn_status status;
    long nth = 0;
    do {
        gni_host_fail_after(++nth);
        status = documents_write(&text, &length);
        gni_host_fail_after(-1);
        if (status != GN_OK) {
            CHECK_STATUS(status, GN_ERROR_OUT_OF_HOST_MEMORY);
            CHECK_DETAIL("bytes of bookkeeping");
            CHECK(text == &none && length == 99);
            CHECK_U64(gni_host_live_count(), live);
        }
    } while (status != GN_OK && nth < 100);
    CHECK(nth > 4); /* several sizes of the buffer were refused in turn */
    CHECK_U64(length, COPIES * (sizeof document_text - 1) + COPIES + 1);
    for (size_t i = 0; status == GN_OK && i < COPIES; i++)
        CHECK(memcmp(text + 1 + i * sizeof document_text, document_text,
                     sizeof document_text - 1) == 0);
    if (status == GN_OK)
        gni_host_free(text);
    CHECK_U64(gni_host_live_count(), live);
}

int main(void)
{
    RUN(test_document);
    RUN(test_escapes);
    RUN(test_every_length);
    RUN(test_invalid_utf8);
    RUN(test_every_utf8_form);
    RUN(test_doubles);
    RUN(test_locale);
    RUN(test_depth);
    RUN(test_misuse);
    RUN(test_allocation_failures);
    return check_result();
}
