/*
 * test_base.c: statuses, the error text of a thread, sizes as text, the version, the log, SHA-256.
 */
#include "child.h"

#include "base/error.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/text.h"

#include <limits.h>
#include <pthread.h>

enum {
    DETAIL_LENGTH_MAX = 4095, /* error.c keeps 4096 bytes with the zero */
};

/* ---- statuses ------------------------------------------------------------------------------- */

static void test_status_texts(void)
{
#define STATUS_CHECK(name, number, message)             \
    CHECK_U64(GN_##name, number);                       \
    CHECK_TEXT(gn_status_name(GN_##name), "GN_" #name); \
    CHECK_TEXT(gn_status_message(GN_##name), message);  \
    CHECK_TEXT(gn_status_name((gn_status)number), "GN_" #name);
    GN_STATUS_LIST(STATUS_CHECK)
#undef STATUS_CHECK
}

/* Two statuses with one number would not compile as cases of a switch, but two messages might. */
static void test_status_texts_differ(void)
{
    static const char *const messages[] = {
#define STATUS_MESSAGE(name, number, message) message,
        GN_STATUS_LIST(STATUS_MESSAGE)
#undef STATUS_MESSAGE
    };
    size_t count = sizeof messages / sizeof *messages;
    for (size_t i = 0; i < count; i++) {
        CHECK(messages[i][0] != '\0');
        for (size_t j = i + 1; j < count; j++)
            CHECK(strcmp(messages[i], messages[j]) != 0);
    }
}

static void test_status_unknown(void)
{
    const int numbers[] = {-1, INT_MIN, INT_MAX, 24, 1000};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        CHECK_TEXT(gn_status_name((gn_status)numbers[i]), "GN_ERROR_UNKNOWN");
        CHECK(gn_status_message((gn_status)numbers[i])[0] != '\0');
    }
}

/* ---- error details -------------------------------------------------------------------------- */

static void test_detail_is_cut(void)
{
    char text[6000];
    for (size_t length = DETAIL_LENGTH_MAX - 2; length < sizeof text; length += length / 16) {
        memset(text, 'x', length);
        text[length] = '\0';
        CHECK_STATUS(gni_error(GN_ERROR_DRIVER, "%s", text), GN_ERROR_DRIVER);
        size_t kept = length < DETAIL_LENGTH_MAX ? length : DETAIL_LENGTH_MAX;
        CHECK_U64(strlen(gn_error_detail()), kept);
    }
}

static void test_detail_is_kept_across_success(void)
{
    size_t bytes = 0;
    CHECK_STATUS(gn_size_parse("first", &bytes), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("first");
    CHECK_OK(gn_size_parse("1", &bytes));
    CHECK_DETAIL("first");
    CHECK_STATUS(gn_size_parse("second", &bytes), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("second");
    CHECK(strstr(gn_error_detail(), "first") == NULL);
}

static void test_detail_of_host_memory(void)
{
    CHECK_STATUS(gni_error_host_memory(4711), GN_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_DETAIL("4711");
}

enum {
    DETAIL_THREADS = 8,
    DETAIL_ROUNDS = 2000,
};

static void *detail_thread(void *argument)
{
    int number = *(int *)argument;
    CHECK_TEXT(gn_error_detail(), ""); /* nothing failed here, whatever failed elsewhere */
    for (int round = 0; round < DETAIL_ROUNDS; round++) {
        char expected[64];
        (void)snprintf(expected, sizeof expected, "thread %d, round %d", number, round);
        CHECK_STATUS(gni_error(GN_ERROR_DRIVER, "thread %d, round %d", number, round),
                     GN_ERROR_DRIVER);
        CHECK_TEXT(gn_error_detail(), expected);
    }
    return NULL;
}

static void test_detail_is_per_thread(void)
{
    pthread_t threads[DETAIL_THREADS];
    int numbers[DETAIL_THREADS];
    CHECK_STATUS(gni_error(GN_ERROR_DRIVER, "%s", "the main thread's own"), GN_ERROR_DRIVER);
    for (int i = 0; i < DETAIL_THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, detail_thread, &numbers[i]) == 0);
    }
    for (int i = 0; i < DETAIL_THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK_TEXT(gn_error_detail(), "the main thread's own");
}

/* ---- GN_TRY --------------------------------------------------------------------------------- */

static gn_status try_counted(gn_status status, int *calls, int *passed)
{
    GN_TRY((*calls += 1, status));
    *passed += 1;
    return GN_OK;
}

static gn_status try_in_branch(bool is_tried)
{
    if (is_tried)
        GN_TRY(GN_ERROR_CAPTURE);
    else
        return GN_ERROR_SHUTDOWN;
    return GN_OK;
}

static void test_try(void)
{
    int calls = 0, passed = 0;
    CHECK_STATUS(try_counted(GN_OK, &calls, &passed), GN_OK);
    CHECK(calls == 1 && passed == 1);
    CHECK_STATUS(try_counted(GN_ERROR_OVERFLOW, &calls, &passed), GN_ERROR_OVERFLOW);
    CHECK(calls == 2 && passed == 1); /* evaluated once, and nothing ran after it */
    CHECK_STATUS(try_in_branch(true), GN_ERROR_CAPTURE);
    CHECK_STATUS(try_in_branch(false), GN_ERROR_SHUTDOWN); /* the macro is one statement */
}

/* ---- texts ---------------------------------------------------------------------------------- */

static void test_size_text(void)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 bytes"},
        {1023, "1023 bytes"},
        {1024, "1.00 KiB"},
        {1536, "1.50 KiB"},
        {UINT64_C(1) << 20, "1.00 MiB"},
        {UINT64_C(3) << 29, "1.50 GiB"},
        {UINT64_C(1) << 40, "1.00 TiB"},
        {UINT64_C(1) << 50, "1.00 PiB"},
        {UINT64_C(1) << 60, "1.00 EiB"},
        {UINT64_MAX, "16.00 EiB"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_TEXT(gni_size_text(cases[i].bytes).text, cases[i].text);
    for (unsigned shift = 0; shift < 64; shift++) /* none fills its buffer to the brim */
        CHECK(strlen(gni_size_text((UINT64_C(1) << shift) - 1).text) < 22);
}

static void test_version(void)
{
    char expected[32];
    (void)snprintf(expected, sizeof expected, "%d.%d.%d", GN_VERSION_MAJOR, GN_VERSION_MINOR,
                   GN_VERSION_PATCH);
    CHECK_TEXT(gn_version(), expected);
}

/* ---- the log -------------------------------------------------------------------------------- */

static void log_every_level(void *setting)
{
    if (setting != NULL)
        (void)setenv("GENESIS_LOG", setting, 1);
    else
        (void)unsetenv("GENESIS_LOG");
    gni_log(GNI_LOG_ERROR, "number %d", 1);
    gni_log(GNI_LOG_WARNING, "number %d", 2);
    gni_log(GNI_LOG_INFO, "number %d", 3);
    gni_log(GNI_LOG_DEBUG, "number %d", 4);
}

static void test_log_levels(void)
{
    static const char *const lines[] = {"genesis: error: number 1\n",
                                        "genesis: warning: number 2\n", "genesis: info: number 3\n",
                                        "genesis: debug: number 4\n"};
    static const struct {
        const char *setting;
        int printed; /* so many of the lines */
    } cases[] = {{"off", 0},   {"error", 1}, {"warning", 2}, {"info", 3},
                 {"debug", 4}, {"DEBUG", 4}, {NULL, 2}};
    static struct child_result result;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[256] = "";
        for (int line = 0; line < cases[i].printed; line++)
            strcat(expected, lines[line]);
        child_run(log_every_level, (void *)(uintptr_t)cases[i].setting, &result);
        CHECK(child_is_ok(&result));
        CHECK_TEXT(result.text, expected);
        CHECK(result.write_count == cases[i].printed && result.are_lines);
    }
}

static void log_is_on_check(void *unused)
{
    (void)unused;
    (void)setenv("GENESIS_LOG", "info", 1);
    CHECK(gni_log_is_on(GNI_LOG_ERROR) && gni_log_is_on(GNI_LOG_INFO));
    CHECK(!gni_log_is_on(GNI_LOG_DEBUG));
}

static void test_log_is_on(void)
{
    static struct child_result result;
    child_run(log_is_on_check, NULL, &result);
    CHECK(child_is_ok(&result));
}

/* Around the size of the line buffer, and far beyond it. */
static const size_t log_lengths[] = {0, 1, 1250, 1258, 1259, 1260, 1261, 1262, 1300, 5000};
#define LOG_LENGTH_COUNT (sizeof log_lengths / sizeof *log_lengths)

static void log_long_lines(void *unused)
{
    (void)unused;
    static char text[6000];
    for (size_t i = 0; i < LOG_LENGTH_COUNT; i++) {
        memset(text, 'a' + (int)i, log_lengths[i]);
        text[log_lengths[i]] = '\0';
        gni_log(GNI_LOG_WARNING, "%s", text);
    }
}

static void test_log_long_lines_are_cut(void)
{
    static struct child_result result;
    const char prefix[] = "genesis: warning: ";
    child_run(log_long_lines, NULL, &result);
    CHECK(child_is_ok(&result));
    CHECK(result.write_count == LOG_LENGTH_COUNT && result.are_lines);
    const char *line = result.text;
    for (size_t i = 0; i < LOG_LENGTH_COUNT; i++) {
        size_t length = strcspn(line, "\n"), text_length = length - (sizeof prefix - 1);
        CHECK(strncmp(line, prefix, sizeof prefix - 1) == 0);
        CHECK(text_length <= log_lengths[i] && length < 1280);
        CHECK(text_length == log_lengths[i] || length > 1270); /* cut only where it must be */
        for (size_t at = sizeof prefix - 1; at < length; at++)
            CHECK(line[at] == 'a' + (int)i);
        line += length + 1;
    }
}

enum {
    LOG_THREADS = 4,
    LOG_LINES = 100,
};

static void *log_thread(void *argument)
{
    for (int line = 0; line < LOG_LINES; line++)
        gni_log(GNI_LOG_ERROR, "thread %d writes its line %d here", *(int *)argument, line);
    return NULL;
}

static void log_from_threads(void *unused)
{
    (void)unused;
    pthread_t threads[LOG_THREADS];
    int numbers[LOG_THREADS];
    for (int i = 0; i < LOG_THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, log_thread, &numbers[i]) == 0);
    }
    for (int i = 0; i < LOG_THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void test_log_lines_do_not_mix(void)
{
    static struct child_result result;
    child_run(log_from_threads, NULL, &result);
    CHECK(child_is_ok(&result));
    CHECK(result.write_count == LOG_THREADS * LOG_LINES && result.are_lines);
    for (int number = 0; number < LOG_THREADS; number++) {
        for (int line = 0; line < LOG_LINES; line++) {
            char expected[128];
            (void)snprintf(expected, sizeof expected,
                           "genesis: error: thread %d writes its line %d here\n", number, line);
            CHECK(child_count(&result, expected) == 1);
        }
    }
}

/* FIPS 180-4's examples, whole and in pieces of any length. */
static void test_sha256(void)
{
    static const struct {
        const char *text, *digest;
    } known[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    uint8_t digest[GNI_SHA256_BYTES];
    char text[GNI_SHA256_TEXT_BYTES];
    struct gni_sha256 hash;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        gni_sha256_init(&hash);
        gni_sha256_add(&hash, known[i].text, strlen(known[i].text));
        gni_sha256_finish(&hash, digest);
        gni_sha256_text(digest, text);
        CHECK_TEXT(text, known[i].digest);
    }
    char letters[200];
    memset(letters, 'a', sizeof letters);
    gni_sha256_init(&hash);
    for (size_t left = 1000000, piece = 1; left > 0; piece = piece % 197 + 3) {
        size_t size = piece < left ? piece : left;
        gni_sha256_add(&hash, letters, size);
        left -= size;
    }
    gni_sha256_finish(&hash, digest);
    gni_sha256_text(digest, text);
    CHECK_TEXT(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int main(void)
{
    (void)unsetenv("GENESIS_LOG"); /* the children start with the default */
    RUN(test_status_texts);
    RUN(test_status_texts_differ);
    RUN(test_status_unknown);
    RUN(test_detail_is_cut);
    RUN(test_detail_is_kept_across_success);
    RUN(test_detail_of_host_memory);
    RUN(test_detail_is_per_thread);
    RUN(test_try);
    RUN(test_size_text);
    RUN(test_version);
    RUN(test_sha256);
    RUN(test_log_levels);
    RUN(test_log_is_on);
    RUN(test_log_long_lines_are_cut);
    RUN(test_log_lines_do_not_mix);
    return check_result();
}
