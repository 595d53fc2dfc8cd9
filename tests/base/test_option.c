/*
 * test_option.c: the GENESIS_* variables and gn_size_parse().
 *
 * A process reads each variable once, so every case runs in a child with an environment of its own.
 * The parent never asks for an option: its children start with nothing read.
 */
#include "child.h"

#include "base/option.h"

#include <pthread.h>
#include <sys/mman.h>

/* ---- what a variable's value is, whatever its kind ------------------------------------------ */

struct reading {
    uint64_t number;
    double fraction;
    bool is_count;
    char text[64]; /* path and library */
};

enum kind {
    kind_flag,
    kind_size,
    kind_amount,
    kind_fraction,
    kind_number,
    kind_choice,
    kind_set,
    kind_path,
    kind_library,
    KIND_COUNT,
};

static const struct variable {
    const char *name;
    enum kind kind;
    const char *standard;
    const char *choices;
} variables[] = {
#define VARIABLE(id, variable, kind, standard, minimum, maximum, choices, meaning) \
    {variable, kind_##kind, standard, choices},
    GNI_OPTION_TABLE(VARIABLE)
#undef VARIABLE
};

static const char *const kind_names[KIND_COUNT] = {"flag",   "size", "amount", "fraction", "number",
                                                   "choice", "set",  "path",   "library"};

/* In memory that the children share with the parent: what the defaults mean. */
static struct reading *standard_readings;

static struct reading reading_of(int index)
{
    enum gni_option option = (enum gni_option)index;
    struct reading reading;
    memset(&reading, 0, sizeof reading); /* padding too, since readings are compared as bytes */
    switch (variables[index].kind) {
    case kind_flag:
        reading.number = gni_option_flag(option);
        break;
    case kind_amount:
        reading.is_count = gni_option_is_count(option);
        reading.number = gni_option_size(option);
        break;
    case kind_size:
        reading.number = gni_option_size(option);
        break;
    case kind_fraction:
        reading.fraction = gni_option_fraction(option);
        break;
    case kind_number:
        reading.number = gni_option_number(option);
        break;
    case kind_choice:
        reading.number = gni_option_choice(option);
        break;
    case kind_set:
        reading.number = gni_option_set(option);
        break;
    default:
        (void)snprintf(reading.text, sizeof reading.text, "%s", gni_option_text(option));
    }
    return reading;
}

/* Takes every variable of ours out of the environment, known or not. */
static void environment_clear(void)
{
    extern char **environ;
    for (char **entry = environ; entry != NULL && *entry != NULL;) {
        char name[256];
        size_t length = strcspn(*entry, "=");
        if (strncmp(*entry, "GENESIS_", 8) != 0 || length >= sizeof name) {
            entry++;
            continue;
        }
        memcpy(name, *entry, length);
        name[length] = '\0';
        (void)unsetenv(name); /* moves the rest down */
    }
}

/* ---- defaults ------------------------------------------------------------------------------- */

static void defaults_check(void *unused)
{
    (void)unused;
    gn_option_description description;
    int index = 0;
    for (; gn_option_describe(index, &description); index++) {
        if (index >= GNI_OPTION_COUNT)
            break;
        CHECK_TEXT(description.name, variables[index].name);
        CHECK_TEXT(description.kind, kind_names[variables[index].kind]);
        CHECK_TEXT(description.standard, variables[index].standard);
        CHECK_TEXT(description.value, description.standard);
        CHECK(description.meaning[0] != '\0' && strchr(description.meaning, '\n') == NULL);
        CHECK(description.range[0] != '\0' &&
              strlen(description.range) < sizeof description.range - 1);
        standard_readings[index] = reading_of(index);
    }
    CHECK_U64(index, GNI_OPTION_COUNT);
    CHECK(!gn_option_describe(-1, &description));
    CHECK(!gn_option_describe(GNI_OPTION_COUNT + 1, &description));
    CHECK(!gn_option_describe(0, NULL));
}

/* Runs first: the other tests compare with the readings that it leaves. */
static void test_defaults(void)
{
    static struct child_result result;
    child_run(defaults_check, NULL, &result);
    CHECK(child_is_ok(&result));
    CHECK_TEXT(result.text, "");
    CHECK_U64(standard_readings[GNI_OPTION_LOG].number, 2);
    CHECK_U64(standard_readings[GNI_OPTION_DEBUG].number, 0);
    CHECK_TEXT(standard_readings[GNI_OPTION_CUDA_DRIVER].text, "libcuda.so.1");
    CHECK(standard_readings[GNI_OPTION_CUDA_MEMORY_FRACTION].fraction == 1);
    CHECK_U64(standard_readings[GNI_OPTION_CUDA_SEGMENT_SIZE].number, 32 << 20);
    CHECK(!standard_readings[GNI_OPTION_CUDA_CACHE_SIZE].is_count);
    CHECK_U64(standard_readings[GNI_OPTION_COMPILE_THREADS].number, 0);
}

/* ---- bad values ----------------------------------------------------------------------------- */

#define VALUES_MAX 20

static const char *const bad_values[KIND_COUNT][VALUES_MAX] = {
    [kind_flag] = {"2", "-1", "01", "tru", "truee", " on", "on ", "on,off"},
    [kind_size] = {"0", "2097152GiB", "-1", "+32MiB", "abc", "32MiBx", "32.5MiB", "0x2000000",
                   "99999999999999999999", "9223372036854775808", "32 Mi B"},
    [kind_amount] = {"2TiB", "1099511627777", "x", "-5", "5 blocks", "99999999999999999999"},
    [kind_fraction] = {".", "0", "0.0009", "1.001", "2", "-0.5", "+0.5", "1e-1", "nan", "inf",
                       "0,5", "0.5 ", "0.5.5", "50%", "0.000000000000000005"},
    [kind_number] = {"0", "65", "-1", "+2", " 2", "2 ", "2.0", "2B", "0x2", "two", "2,3",
                     "99999999999999999999"},
    [kind_choice] = {"x", "of", "offf", ",", "off,", "0", " off"},
    [kind_set] = {",", "x", "poison;guard", "poison, guard", "poison,,guard", "0", "poisonguard"},
    [kind_path] = {"relative", "./here", "~/cache", " /tmp"},
    [kind_library] = {"./libcuda.so", "../libcuda.so", "a/libcuda.so", "lib cuda", ".hidden",
                      "lib;cuda"},
};

struct assignment {
    int index;
    const char *value;
};

static void bad_value_check(void *context)
{
    const struct assignment *given = context;
    (void)setenv(variables[given->index].name, given->value, 1);
    for (int round = 0; round < 3; round++) {
        gn_option_description description;
        struct reading reading = reading_of(given->index);
        CHECK(gn_option_describe(given->index, &description));
        CHECK_TEXT(description.value, description.standard);
        CHECK(memcmp(&reading, &standard_readings[given->index], sizeof reading) == 0);
        CHECK(!gni_option_is_given((enum gni_option)given->index));
    }
}

static void bad_value_try(int index, const char *value)
{
    static struct child_result result;
    struct assignment given = {index, value};
    char expected[512];
    int before = check_failures;
    child_run(bad_value_check, &given, &result);
    CHECK(child_is_ok(&result));
    (void)snprintf(expected, sizeof expected, "genesis: warning: %s=\"%.200s",
                   variables[index].name, value);
    CHECK(result.write_count == 1 && result.are_lines);
    CHECK(strncmp(result.text, expected, strlen(expected)) == 0);
    if (check_failures != before)
        fprintf(stderr, "    %s=\"%.60s\" printed: %s\n", variables[index].name, value,
                result.text);
}

/* Empty is not set: the default, and nothing is printed. */
static void test_empty_values(void)
{
    for (int index = 0; index < GNI_OPTION_COUNT; index++) {
        static struct child_result result;
        struct assignment given = {index, ""};
        child_run(bad_value_check, &given, &result);
        CHECK(child_is_ok(&result));
        CHECK_TEXT(result.text, "");
    }
}

static void test_bad_values(void)
{
    for (int index = 0; index < GNI_OPTION_COUNT; index++) {
        const char *const *values = bad_values[variables[index].kind];
        for (int i = 0; i < VALUES_MAX && values[i] != NULL; i++)
            bad_value_try(index, values[i]);
    }
}

/* Longer than any buffer: refused even where any text of the shape would do. */
static void test_long_values(void)
{
    const size_t lengths[] = {4096, 5000, 100000};
    static char value[100001];
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (int index = 0; index < GNI_OPTION_COUNT; index++) {
            enum kind kind = variables[index].kind;
            memset(value, kind <= kind_number ? '0' : 'a', lengths[i]);
            value[0] = kind == kind_path ? '/' : value[0];
            value[lengths[i]] = '\0';
            bad_value_try(index, value);
        }
    }
}

/* ---- good values ---------------------------------------------------------------------------- */

struct good_value {
    enum gni_option option;
    const char *value;
    uint64_t number; /* flag, size, amount, number, choice, set */
    double fraction;
    bool is_count;
};

#define FRACTION(value) 0, value, false
#define COUNT(value) value, 0, true
#define NUMBER(value) value, 0, false

static const struct good_value good_values[] = {
    {GNI_OPTION_LOG, "off", NUMBER(0)},
    {GNI_OPTION_LOG, "Error", NUMBER(1)},
    {GNI_OPTION_LOG, "warning", NUMBER(2)},
    {GNI_OPTION_LOG, "info", NUMBER(3)},
    {GNI_OPTION_LOG, "DEBUG", NUMBER(4)},
    {GNI_OPTION_DEBUG, "", NUMBER(0)},
    {GNI_OPTION_DEBUG, "poison", NUMBER(GNI_DEBUG_POISON)},
    {GNI_OPTION_DEBUG, "sync,GUARD", NUMBER(GNI_DEBUG_SYNC | GNI_DEBUG_GUARD)},
    {GNI_OPTION_DEBUG, "trace,trace", NUMBER(GNI_DEBUG_TRACE)},
    {GNI_OPTION_DEBUG, "poison,guard,trace,sync", NUMBER(15)},
    {GNI_OPTION_CUDA_ALLOCATOR, "Direct", NUMBER(0)},
    {GNI_OPTION_CUDA_MEMORY_FRACTION, "1", FRACTION(1)},
    {GNI_OPTION_CUDA_MEMORY_FRACTION, "1.000", FRACTION(1)},
    {GNI_OPTION_CUDA_MEMORY_FRACTION, "0.5", FRACTION(0.5)},
    {GNI_OPTION_CUDA_MEMORY_FRACTION, ".25", FRACTION(0.25)},
    {GNI_OPTION_CUDA_MEMORY_FRACTION, "0.001", FRACTION(0.001)},
    {GNI_OPTION_CUDA_ZERO, "1", NUMBER(1)},
    {GNI_OPTION_CUDA_ZERO, "TRUE", NUMBER(1)},
    {GNI_OPTION_CUDA_ZERO, "on", NUMBER(1)},
    {GNI_OPTION_CUDA_ZERO, "Yes", NUMBER(1)},
    {GNI_OPTION_CUDA_ZERO, "0", NUMBER(0)},
    {GNI_OPTION_CUDA_ZERO, "false", NUMBER(0)},
    {GNI_OPTION_CUDA_ZERO, "no", NUMBER(0)},
    {GNI_OPTION_CUDA_SEGMENT_SIZE, "2MiB", NUMBER(2097152)},
    {GNI_OPTION_CUDA_SEGMENT_SIZE, "2097152", NUMBER(2097152)},
    {GNI_OPTION_CUDA_SEGMENT_SIZE, " 3 mb ", NUMBER(3000000)},
    {GNI_OPTION_CUDA_SEGMENT_SIZE, "64GiB", NUMBER(UINT64_C(68719476736))},
    {GNI_OPTION_CUDA_CACHE_SIZE, "0", COUNT(0)},
    {GNI_OPTION_CUDA_CACHE_SIZE, "12", COUNT(12)},
    {GNI_OPTION_CUDA_CACHE_SIZE, "12B", NUMBER(12)},
    {GNI_OPTION_CUDA_CACHE_SIZE, "512MB", NUMBER(512000000)},
    {GNI_OPTION_CUDA_CACHE_SIZE, "1TiB", NUMBER(UINT64_C(1) << 40)},
    {GNI_OPTION_CUDA_WARMUP_ENABLED, "on", NUMBER(1)},
    {GNI_OPTION_CUDA_STATS_ENABLED, "on", NUMBER(1)},
    {GNI_OPTION_AUTOTUNE, "max", NUMBER(2)},
    {GNI_OPTION_CUDA_DRIVER, "/opt/driver/libcuda.so", NUMBER(0)},
    {GNI_OPTION_CUDA_DRIVER, "libcuda.so.1.1", NUMBER(0)},
    {GNI_OPTION_CUDA_DRIVER, "fake", NUMBER(0)},
    {GNI_OPTION_TIERS, "auto", NUMBER(0)},
    {GNI_OPTION_TIERS, "on", NUMBER(1)},
    {GNI_OPTION_TIERS, "Compiled", NUMBER(2)},
    {GNI_OPTION_TIERS, "interpreted", NUMBER(3)},
    {GNI_OPTION_COMPILE_THREADS, "1", NUMBER(1)},
    {GNI_OPTION_COMPILE_THREADS, "064", NUMBER(64)},
    {GNI_OPTION_RECOMPUTE_LEAST, "64KiB", NUMBER(65536)},
    {GNI_OPTION_KERNEL_CACHE_DIR, "/", NUMBER(0)},
    {GNI_OPTION_KERNEL_CACHE_DIR, "/var/cache/a b", NUMBER(0)},
};

static void good_value_check(void *context)
{
    const struct good_value *good = context;
    enum kind kind = variables[good->option].kind;
    (void)setenv(variables[good->option].name, good->value, 1);
    struct reading reading = reading_of((int)good->option);
    gn_option_description description;
    CHECK(gn_option_describe((int)good->option, &description));
    CHECK_TEXT(description.value, good->value);
    CHECK_U64(reading.number, good->number);
    CHECK(reading.fraction == good->fraction);
    CHECK(reading.is_count == good->is_count);
    CHECK(gni_option_is_given(good->option) == (good->value[0] != '\0'));
    CHECK_TEXT(reading.text, kind == kind_path || kind == kind_library ? good->value : "");
}

static void test_good_values(void)
{
    static struct child_result result;
    for (size_t i = 0; i < sizeof good_values / sizeof *good_values; i++) {
        child_run(good_value_check, (void *)(uintptr_t)&good_values[i], &result);
        CHECK(child_is_ok(&result));
        CHECK_TEXT(result.text, "");
    }
}

/* Every choice of every list is taken, at its place. */
static void choices_check(void *unused)
{
    (void)unused;
    for (int index = 0; index < GNI_OPTION_COUNT; index++) {
        if (variables[index].kind != kind_choice)
            continue;
        const char *last = strrchr(variables[index].choices, ',');
        unsigned place = 0;
        for (const char *at = variables[index].choices; *at != '\0'; at++)
            place += *at == ',';
        (void)setenv(variables[index].name, last != NULL ? last + 1 : variables[index].choices, 1);
        CHECK_U64(reading_of(index).number, place);
    }
}

static void test_choices(void)
{
    static struct child_result result;
    child_run(choices_check, NULL, &result);
    CHECK(child_is_ok(&result));
    CHECK_TEXT(result.text, "");
}

/* ---- reading once --------------------------------------------------------------------------- */

static void read_once_check(void *unused)
{
    (void)unused;
    (void)setenv("GENESIS_CUDA_SEGMENT_SIZE", "4MiB", 1);
    CHECK_U64(gni_option_size(GNI_OPTION_CUDA_SEGMENT_SIZE), 4 << 20);
    (void)setenv("GENESIS_CUDA_SEGMENT_SIZE", "8MiB", 1);
    CHECK_U64(gni_option_size(GNI_OPTION_CUDA_SEGMENT_SIZE), 4 << 20);
    (void)unsetenv("GENESIS_CUDA_SEGMENT_SIZE");
    CHECK_U64(gni_option_size(GNI_OPTION_CUDA_SEGMENT_SIZE), 4 << 20);
    gn_option_description description;
    CHECK(gn_option_describe(GNI_OPTION_CUDA_SEGMENT_SIZE, &description));
    CHECK_TEXT(description.value, "4MiB");
    /* Another variable is read when it is asked for, not with the first one. */
    (void)setenv("GENESIS_AUTOTUNE", "off", 1);
    CHECK_U64(gni_option_choice(GNI_OPTION_AUTOTUNE), 0);
}

static void test_read_once(void)
{
    static struct child_result result;
    child_run(read_once_check, NULL, &result);
    CHECK(child_is_ok(&result));
    CHECK_TEXT(result.text, "");
}

static void *describe_all(void *unused)
{
    (void)unused;
    gn_option_description description;
    for (int index = 0; gn_option_describe(index, &description); index++)
        CHECK_TEXT(description.value, description.standard);
    return NULL;
}

static void race_check(void *unused)
{
    (void)unused;
    enum {
        THREADS = 8
    };
    pthread_t threads[THREADS];
    for (int index = 0; index < GNI_OPTION_COUNT; index++)
        (void)setenv(variables[index].name, "%", 1);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, describe_all, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* Eight threads ask first for variables that are all bad: still one warning for each. */
static void test_first_reads_race(void)
{
    static struct child_result result;
    for (int round = 0; round < 10; round++) {
        child_run(race_check, NULL, &result);
        CHECK(child_is_ok(&result));
        CHECK_U64(result.write_count, GNI_OPTION_COUNT);
        for (int index = 0; index < GNI_OPTION_COUNT; index++) {
            char expected[128];
            (void)snprintf(expected, sizeof expected, "warning: %s=\"%%\"", variables[index].name);
            CHECK(child_count(&result, expected) == 1);
        }
    }
}

static void quiet_check(void *unused)
{
    (void)unused;
    (void)setenv("GENESIS_LOG", "error", 1);
    (void)setenv("GENESIS_AUTOTUNE", "bad", 1);
    (void)setenv("GENESIS_NOT_A_NAME", "1", 1);
    CHECK_U64(gni_option_choice(GNI_OPTION_AUTOTUNE), 1);
}

static void test_warnings_can_be_turned_off(void)
{
    static struct child_result result;
    child_run(quiet_check, NULL, &result);
    CHECK(child_is_ok(&result));
    CHECK_TEXT(result.text, "");
}

/* ---- unknown names -------------------------------------------------------------------------- */

static void unknown_check(void *unused)
{
    (void)unused;
    static char long_name[600] = "GENESIS_";
    memset(long_name + 8, 'L', sizeof long_name - 9);
    (void)setenv("GENESIS_", "empty name", 1);
    (void)setenv("GENESIS_CUDA_ALLOCATORS", "one letter more", 1);
    (void)setenv("GENESIS_CUDA_ALLOCATO", "one letter less", 1);
    (void)setenv("GENESIS_lOG", "another case", 1);
    (void)setenv(long_name, "", 1);
    (void)setenv("XGENESIS_LOG", "not ours", 1);
    (void)setenv("GENESIS", "not ours", 1);
    gn_option_description description;
    for (int round = 0; round < 2; round++)
        for (int index = 0; gn_option_describe(index, &description); index++)
            continue;
}

static void test_unknown_names(void)
{
    static struct child_result result;
    child_run(unknown_check, NULL, &result);
    CHECK(child_is_ok(&result));
    CHECK(result.write_count == 5 && result.are_lines);
    CHECK(child_count(&result, "genesis: warning: GENESIS_ is not") == 1);
    CHECK(child_count(&result, "genesis: warning: GENESIS_CUDA_ALLOCATORS is not") == 1);
    CHECK(child_count(&result, "genesis: warning: GENESIS_CUDA_ALLOCATO is not") == 1);
    CHECK(child_count(&result, "genesis: warning: GENESIS_lOG is not") == 1);
    CHECK(child_count(&result, "genesis: warning: GENESIS_LLLL") == 1);
}

/* ---- hostile values ------------------------------------------------------------------------- */

/* Bytes of which some look like the start of something good; no zeros. */
static void hostile_fill(char *value, size_t length, uint64_t *seed)
{
    static const char familiar[] = "0123456789./,-+eE%sndkKmMgGiIbBoOfFtT \t\x7f\x80\xff";
    bool is_familiar = check_random(seed) % 2 == 0;
    for (size_t i = 0; i < length; i++) {
        uint64_t random = check_random(seed);
        int byte = is_familiar ? familiar[random % (sizeof familiar - 1)] : (int)(1 + random % 255);
        value[i] = (char)byte;
    }
    value[length] = '\0';
}

static void hostile_check(void *context)
{
    uint64_t seed = *(uint64_t *)context;
    static char value[9000];
    for (int index = 1; index < GNI_OPTION_COUNT; index++) { /* all but GENESIS_LOG */
        uint64_t random = check_random(&seed);
        hostile_fill(value, (size_t)(random % 16 == 0 ? random >> 32 & 8191 : random >> 32 & 15),
                     &seed);
        (void)setenv(variables[index].name, value, 1);
    }
    gn_option_description description;
    for (int index = 0; gn_option_describe(index, &description); index++) {
        struct reading reading = reading_of(index);
        bool is_standard = strcmp(description.value, description.standard) == 0;
        CHECK(!is_standard || memcmp(&reading, &standard_readings[index], sizeof reading) == 0);
        CHECK(strlen(description.value) < 4096);
    }
}

static void test_hostile_values(void)
{
    static struct child_result result;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        child_run(hostile_check, &seed, &result);
        CHECK(child_is_ok(&result));
        CHECK(result.are_lines);
        for (int index = 0; index < GNI_OPTION_COUNT; index++) {
            char start[128];
            (void)snprintf(start, sizeof start, "genesis: warning: %s=", variables[index].name);
            CHECK(child_count(&result, start) <= 1);
        }
    }
}

static void forged_check(void *unused)
{
    (void)unused;
    (void)setenv("GENESIS_AUTOTUNE", "x\ngenesis: error: \x1b[31mforged", 1);
    (void)setenv("GENESIS_\nNAME", "1", 1);
    CHECK_U64(gni_option_choice(GNI_OPTION_AUTOTUNE), 1);
}

/* A value cannot write lines of its own, nor control a terminal. */
static void test_forged_lines(void)
{
    static struct child_result result;
    child_run(forged_check, NULL, &result);
    CHECK(child_is_ok(&result));
    CHECK(result.write_count == 2 && result.are_lines);
    CHECK(strchr(result.text, '\x1b') == NULL);
}

/* ---- sizes ---------------------------------------------------------------------------------- */

static void test_size_parse_good(void)
{
    static const struct {
        const char *text;
        size_t bytes;
    } cases[] = {
        {"0", 0},
        {"1", 1},
        {"1B", 1},
        {"1b", 1},
        {"007", 7},
        {"0TiB", 0},
        {" 1", 1},
        {"1 ", 1},
        {"\t1\n", 1},
        {"1k", 1024},
        {"1K", 1024},
        {"1kb", 1000},
        {"1KB", 1000},
        {"1kib", 1024},
        {"1 KiB", 1024},
        {" 1  KIB  ", 1024},
        {"512MB", 512000000},
        {"512MiB", (size_t)512 << 20},
        {"3m", (size_t)3 << 20},
        {"1GB", 1000000000},
        {"1GiB", (size_t)1 << 30},
        {"1 gib", (size_t)1 << 30},
        {"1g", (size_t)1 << 30},
        {"1TB", 1000000000000},
        {"1T", (size_t)1 << 40},
        {"1TiB", (size_t)1 << 40},
        {"9223372036854775807", PTRDIFF_MAX},
        {"8388607TiB", (size_t)8388607 << 40},
        {"00000000000000000000000000000000000001", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t bytes = 4711;
        CHECK_OK(gn_size_parse(cases[i].text, &bytes));
        CHECK_U64(bytes, cases[i].bytes);
    }
}

static void test_size_parse_bad(void)
{
    static const struct {
        const char *text;
        gn_status status;
    } cases[] = {
        {NULL, GN_ERROR_INVALID_VALUE},
        {"", GN_ERROR_INVALID_VALUE},
        {" ", GN_ERROR_INVALID_VALUE},
        {"-1", GN_ERROR_INVALID_VALUE},
        {"- 1", GN_ERROR_INVALID_VALUE},
        {"+1", GN_ERROR_INVALID_VALUE},
        {"1.5GB", GN_ERROR_INVALID_VALUE},
        {".5", GN_ERROR_INVALID_VALUE},
        {"1,5", GN_ERROR_INVALID_VALUE},
        {"0x10", GN_ERROR_INVALID_VALUE},
        {"1e3", GN_ERROR_INVALID_VALUE},
        {"1_000", GN_ERROR_INVALID_VALUE},
        {"1 G B", GN_ERROR_INVALID_VALUE},
        {"1 1", GN_ERROR_INVALID_VALUE},
        {"1GiBB", GN_ERROR_INVALID_VALUE},
        {"1GBi", GN_ERROR_INVALID_VALUE},
        {"1GiB;", GN_ERROR_INVALID_VALUE},
        {"1GiB junk", GN_ERROR_INVALID_VALUE},
        {"1PiB", GN_ERROR_INVALID_VALUE},
        {"GiB", GN_ERROR_INVALID_VALUE},
        {"KiB1", GN_ERROR_INVALID_VALUE},
        {"1\xc2\xa0K", GN_ERROR_INVALID_VALUE},   /* a space that is none in the C locale */
        {"\xef\xbc\x91", GN_ERROR_INVALID_VALUE}, /* a digit of another script */
        {"nan", GN_ERROR_INVALID_VALUE},
        {"99999999999999999999", GN_ERROR_OVERFLOW},
        {"9223372036854775808", GN_ERROR_OVERFLOW}, /* 2^63 */
        {"18446744073709551615", GN_ERROR_OVERFLOW},
        {"18446744073709551616", GN_ERROR_OVERFLOW},
        {"8388608TiB", GN_ERROR_OVERFLOW},         /* 2^63 */
        {"16777216TiB", GN_ERROR_OVERFLOW},        /* 2^64, 0 if it wrapped around */
        {"18014398509481985K", GN_ERROR_OVERFLOW}, /* 2^64 + 1024 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t bytes = 4711;
        CHECK_STATUS(gn_size_parse(cases[i].text, &bytes), cases[i].status);
        CHECK_U64(bytes, 4711);
        if (cases[i].text != NULL)
            CHECK_DETAIL(cases[i].text);
    }
    CHECK_STATUS(gn_size_parse("1", NULL), GN_ERROR_INVALID_VALUE);
}

static void test_size_parse_long(void)
{
    static char text[5001];
    size_t bytes = 4711;
    memset(text, '9', sizeof text - 1);
    CHECK_STATUS(gn_size_parse(text, &bytes), GN_ERROR_OVERFLOW);
    memset(text, 'x', sizeof text - 1);
    CHECK_STATUS(gn_size_parse(text, &bytes), GN_ERROR_INVALID_VALUE);
    CHECK_U64(bytes, 4711);
    memset(text, ' ', sizeof text - 1);
    text[2500] = '1';
    text[4000] = 'k';
    CHECK_OK(gn_size_parse(text, &bytes));
    CHECK_U64(bytes, 1024);
}

/* Random numbers with every unit, against arithmetic in 128 bits. */
static void test_size_parse_property(void)
{
    static const struct {
        const char *unit;
        uint64_t factor;
    } units[] = {{"", 1},
                 {"B", 1},
                 {"kB", 1000},
                 {"mb", 1000000},
                 {"GB", 1000000000},
                 {"TB", UINT64_C(1000000000000)},
                 {"k", 1 << 10},
                 {"M", 1 << 20},
                 {"g", 1 << 30},
                 {"KiB", 1 << 10},
                 {"mIb", 1 << 20},
                 {"GiB", 1 << 30},
                 {"tib", UINT64_C(1) << 40}};
    uint64_t seed = 11;
    for (int step = 0; step < 50000; step++) {
        uint64_t number = check_random(&seed) >> check_random(&seed) % 64;
        size_t unit = (size_t)(check_random(&seed) % (sizeof units / sizeof *units));
        unsigned __int128 expected = (unsigned __int128)number * units[unit].factor;
        bool is_possible = expected <= PTRDIFF_MAX;
        char text[64];
        size_t bytes = 4711;
        (void)snprintf(text, sizeof text, "%" PRIu64 "%s%s", number, step % 2 == 0 ? "" : " ",
                       units[unit].unit);
        CHECK_STATUS(gn_size_parse(text, &bytes), is_possible ? GN_OK : GN_ERROR_OVERFLOW);
        CHECK_U64(bytes, is_possible ? (uint64_t)expected : 4711);
    }
}

int main(void)
{
    environment_clear();
    size_t size = GNI_OPTION_COUNT * sizeof *standard_readings;
    standard_readings = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (standard_readings == MAP_FAILED)
        return 1;
    RUN(test_defaults);
    RUN(test_empty_values);
    RUN(test_bad_values);
    RUN(test_long_values);
    RUN(test_good_values);
    RUN(test_choices);
    RUN(test_read_once);
    RUN(test_first_reads_race);
    RUN(test_warnings_can_be_turned_off);
    RUN(test_unknown_names);
    RUN(test_hostile_values);
    RUN(test_forged_lines);
    RUN(test_size_parse_good);
    RUN(test_size_parse_bad);
    RUN(test_size_parse_long);
    RUN(test_size_parse_property);
    return check_result();
}
