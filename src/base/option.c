/*
 * option.c: parsing and keeping the GENESIS_* variables. The rules stand in option.h.
 *
 * Threads: a value is published by a release store of its `is_read` flag after it was written under
 * option_mutex, and never changes again.
 */
#include "base/option.h"

#include "base/fork.h"
#include "base/log.h"
#include "base/thread.h"

#include <ctype.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>

extern char **environ;

enum option_kind {
    option_kind_flag,
    option_kind_size,
    option_kind_amount,
    option_kind_fraction,
    option_kind_number,
    option_kind_choice,
    option_kind_set,
    option_kind_path,
    option_kind_library,
};

struct option_rule {
    const char *variable;
    enum option_kind kind;
    const char *kind_name;
    const char *standard; /* the default, in the same spelling as a user would give */
    uint64_t minimum, maximum;
    const char *choices; /* separated by commas */
    const char *meaning;
};

struct option_value {
    uint64_t
        number; /* flag, size, amount, number, choice, set; thousandths are not enough for fraction */
    double fraction;
    bool is_count;
    bool is_given;   /* by the environment; else the default */
    char text[4096]; /* as given, or the default; for path and library it is the value */
    atomic_bool is_read;
};

static const struct option_rule option_rules[GNI_OPTION_COUNT] = {
#define OPTION_RULE(id, variable, kind, standard, minimum, maximum, choices, meaning) \
    {variable, option_kind_##kind, #kind, standard, minimum, maximum, choices, meaning},
    GNI_OPTION_TABLE(OPTION_RULE)
#undef OPTION_RULE
};

static struct option_value option_values[GNI_OPTION_COUNT];
static struct gni_mutex option_mutex = GNI_MUTEX_INIT;
static struct gni_once option_once = GNI_ONCE_INIT;

/* ---- sizes ---------------------------------------------------------------------------------- */

static bool size_unit_find(const char *unit, uint64_t *factor)
{
    static const struct {
        const char *name;
        uint64_t factor;
    } units[] = {
        {"", 1},
        {"B", 1},
        {"KB", 1000},
        {"MB", 1000 * 1000},
        {"GB", 1000 * 1000 * 1000},
        {"TB", 1000ull * 1000 * 1000 * 1000},
        {"K", 1ull << 10},
        {"M", 1ull << 20},
        {"G", 1ull << 30},
        {"T", 1ull << 40},
        {"KiB", 1ull << 10},
        {"MiB", 1ull << 20},
        {"GiB", 1ull << 30},
        {"TiB", 1ull << 40},
    };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcasecmp(unit, units[i].name) == 0) {
            *factor = units[i].factor;
            return true;
        }
    }
    return false;
}

/* Parses text into bytes; `has_unit` tells whether a unit was written. Sets no error text. */
static gn_status size_scan(const char *text, uint64_t *bytes, bool *has_unit)
{
    const char *at = text;
    while (isspace((unsigned char)*at))
        at++;
    if (!isdigit((unsigned char)*at)) /* strtoull() would take a sign */
        return GN_ERROR_INVALID_VALUE;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(at, &end, 10);
    bool is_over = errno == ERANGE;
    while (isspace((unsigned char)*end))
        end++;
    char unit[4] = "";
    size_t length = 0;
    while (isalpha((unsigned char)end[length]) && length < sizeof unit - 1) {
        unit[length] = end[length];
        length++;
    }
    const char *rest = end + length;
    while (isspace((unsigned char)*rest))
        rest++;
    uint64_t factor;
    if (*rest != '\0' || !size_unit_find(unit, &factor))
        return GN_ERROR_INVALID_VALUE;
    uint64_t product;
    if (is_over || __builtin_mul_overflow((uint64_t)number, factor, &product) ||
        product > PTRDIFF_MAX)
        return GN_ERROR_OVERFLOW;
    *bytes = product;
    *has_unit = unit[0] != '\0';
    return GN_OK;
}

gn_status gn_size_parse(const char *text, size_t *bytes)
{
    if (text == NULL || bytes == NULL)
        return gni_error(GN_ERROR_INVALID_VALUE, "gn_size_parse: text and bytes must not be NULL");
    bool has_unit;
    uint64_t number;
    gn_status status = size_scan(text, &number, &has_unit);
    if (status == GN_ERROR_OVERFLOW)
        return gni_error(status, "the size \"%s\" is too large", text);
    if (status != GN_OK)
        return gni_error(status,
                         "\"%s\" is not a size: write a number of bytes, or a number with B, KB, "
                         "MB, GB, TB, KiB, MiB, GiB or TiB",
                         text);
    *bytes = (size_t)number;
    return GN_OK;
}

/* ---- the other kinds ------------------------------------------------------------------------ */

static bool flag_parse(const char *text, uint64_t *number)
{
    static const char *const words[][2] = {
        {"0", "1"}, {"false", "true"}, {"off", "on"}, {"no", "yes"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        for (unsigned value = 0; value < 2; value++) {
            if (strcasecmp(text, words[i][value]) == 0) {
                *number = value;
                return true;
            }
        }
    }
    return false;
}

/* The decimal number of a fraction, without strtod(), whose decimal point depends on the locale. */
static bool fraction_parse(const char *text, double *fraction)
{
    double number = 0, scale = 1;
    int digits = 0;
    bool is_after_point = false;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '.' && !is_after_point) {
            is_after_point = true;
            continue;
        }
        if (!isdigit((unsigned char)*at) || ++digits > 17)
            return false;
        number = number * 10 + (*at - '0');
        if (is_after_point)
            scale *= 10;
    }
    *fraction = number / scale;
    return digits > 0;
}

/* Digits and nothing else. */
static bool number_parse(const struct option_rule *rule, const char *text, uint64_t *number)
{
    bool has_unit;
    uint64_t found;
    if (text[strspn(text, "0123456789")] != '\0' || size_scan(text, &found, &has_unit) != GN_OK ||
        found < rule->minimum || found > rule->maximum)
        return false;
    *number = found;
    return true;
}

/* Finds a word of `length` characters in a comma-separated list; its place, or -1. */
static int choice_find(const char *choices, const char *word, size_t length)
{
    int place = 0;
    for (const char *at = choices;; place++) {
        size_t choice_length = strcspn(at, ",");
        if (choice_length == length && strncasecmp(at, word, length) == 0)
            return place;
        at += choice_length;
        if (*at++ == '\0')
            return -1;
    }
}

static bool set_parse(const char *choices, const char *text, uint64_t *number)
{
    uint64_t bits = 0;
    for (const char *at = text; *at != '\0';) {
        size_t length = strcspn(at, ",");
        int place = choice_find(choices, at, length);
        if (place < 0)
            return false;
        bits |= 1ull << place;
        at += length;
        if (*at == ',')
            at++;
    }
    *number = bits;
    return true;
}

/* An absolute path; or a file name or a word without any slash, which cannot mean "here". */
static bool library_is_valid(const char *text)
{
    if (text[0] == '/')
        return true;
    if (text[0] == '\0' || text[0] == '.')
        return false;
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-") ==
           strlen(text);
}

/* Fills in the value from text; false, and the value half filled, if the text is not allowed. */
static bool option_parse(const struct option_rule *rule, const char *text,
                         struct option_value *value)
{
    bool has_unit;
    int place;
    switch (rule->kind) {
    case option_kind_flag:
        return flag_parse(text, &value->number);
    case option_kind_size:
    case option_kind_amount:
        if (size_scan(text, &value->number, &has_unit) != GN_OK)
            return false;
        value->is_count = rule->kind == option_kind_amount && !has_unit;
        return value->number >= rule->minimum && value->number <= rule->maximum;
    case option_kind_fraction:
        return fraction_parse(text, &value->fraction) &&
               value->fraction * 1000 >= (double)rule->minimum &&
               value->fraction * 1000 <= (double)rule->maximum;
    case option_kind_number:
        return number_parse(rule, text, &value->number);
    case option_kind_choice:
        place = choice_find(rule->choices, text, strlen(text));
        value->number = (uint64_t)place;
        return place >= 0;
    case option_kind_set:
        return set_parse(rule->choices, text, &value->number);
    case option_kind_path:
        return text[0] == '/';
    case option_kind_library:
        return library_is_valid(text);
    }
    return false;
}

/* What is allowed, in words, for warnings and tables. */
static void option_range_print(const struct option_rule *rule, char *buffer, size_t size)
{
    switch (rule->kind) {
    case option_kind_flag:
        (void)snprintf(buffer, size, "on or off");
        break;
    case option_kind_size:
        (void)snprintf(buffer, size, "a size from %llu to %llu bytes, such as 512MB or 1GiB",
                       (unsigned long long)rule->minimum, (unsigned long long)rule->maximum);
        break;
    case option_kind_amount:
        (void)snprintf(buffer, size, "a size such as 512MB or 1GiB, or a count of blocks");
        break;
    case option_kind_fraction:
        (void)snprintf(buffer, size, "a number from %g to %g", (double)rule->minimum / 1000,
                       (double)rule->maximum / 1000);
        break;
    case option_kind_number:
        (void)snprintf(buffer, size, "a whole number from %llu to %llu",
                       (unsigned long long)rule->minimum, (unsigned long long)rule->maximum);
        break;
    case option_kind_choice:
        (void)snprintf(buffer, size, "one of %s", rule->choices);
        break;
    case option_kind_set:
        (void)snprintf(buffer, size, "any of %s, separated by commas", rule->choices);
        break;
    case option_kind_path:
        (void)snprintf(buffer, size, "an absolute path");
        break;
    case option_kind_library:
        (void)snprintf(buffer, size, "an absolute path, a library's file name, or a plain word");
        break;
    }
}

/* ---- reading -------------------------------------------------------------------------------- */

static const struct gni_fork_handlers option_fork = {.mutex = &option_mutex};

static bool option_is_known(const char *name, size_t length)
{
    for (int i = 0; i < GNI_OPTION_COUNT; i++)
        if (strlen(option_rules[i].variable) == length &&
            memcmp(option_rules[i].variable, name, length) == 0)
            return true;
    return false;
}

static void option_start(void)
{
    gni_fork_register(GNI_FORK_OPTION, &option_fork);
}

/* Rule 3. Called once, from outside option_mutex, since it prints. */
static void option_unknown_report(void)
{
    if (getauxval(AT_SECURE) != 0) /* rule 4, as secure_getenv() does it */
        return;
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        size_t length = strcspn(*entry, "=");
        if (strncmp(*entry, "GENESIS_", 8) == 0 && !option_is_known(*entry, length))
            gni_log(GNI_LOG_WARNING, "%.*s is not a variable of Genesis and has no effect",
                    (int)(length < 100 ? length : 100), *entry);
    }
}

/* Reads one variable under the lock; returns the warning that the caller prints after it. */
static void option_read(enum gni_option option, char *warning, size_t warning_size)
{
    const struct option_rule *rule = &option_rules[option];
    struct option_value *value = &option_values[option];
    const char *given = secure_getenv(rule->variable);
    if (given != NULL && given[0] == '\0')
        given = NULL; /* empty is not set */
    warning[0] = '\0';
    if (given != NULL &&
        (strlen(given) >= sizeof value->text || !option_parse(rule, given, value))) {
        char range[256];
        option_range_print(rule, range, sizeof range);
        (void)snprintf(warning, warning_size, "%s=\"%.200s\" is not %s; using %s", rule->variable,
                       given, range, rule->standard[0] != '\0' ? rule->standard : "the default");
        given = NULL;
    }
    if (given == NULL) {
        bool is_default_valid = option_parse(rule, rule->standard, value);
        gni_assert(is_default_valid || rule->standard[0] == '\0');
        (void)is_default_valid;
    }
    value->is_given = given != NULL;
    (void)snprintf(value->text, sizeof value->text, "%s", given != NULL ? given : rule->standard);
    atomic_store_explicit(&value->is_read, true, memory_order_release);
}

static const struct option_value *option_get(enum gni_option option)
{
    static atomic_bool has_reported_unknown;
    struct option_value *value = &option_values[option];
    if (atomic_load_explicit(&value->is_read, memory_order_acquire))
        return value;
    gni_once_run(&option_once, option_start);
    char warning[640] = "";
    gni_mutex_lock(&option_mutex);
    if (!atomic_load_explicit(&value->is_read, memory_order_relaxed))
        option_read(option, warning, sizeof warning);
    gni_mutex_unlock(&option_mutex);
    /* Printing reads GENESIS_LOG, so it waits until the lock is free. */
    if (warning[0] != '\0')
        gni_log(GNI_LOG_WARNING, "%s", warning);
    if (!atomic_exchange(&has_reported_unknown, true))
        option_unknown_report();
    return value;
}

bool gni_option_is_given(enum gni_option option)
{
    return option_get(option)->is_given;
}

bool gni_option_flag(enum gni_option option)
{
    gni_assert(option_rules[option].kind == option_kind_flag);
    return option_get(option)->number != 0;
}

uint64_t gni_option_size(enum gni_option option)
{
    gni_assert(option_rules[option].kind == option_kind_size ||
               option_rules[option].kind == option_kind_amount);
    return option_get(option)->number;
}

bool gni_option_is_count(enum gni_option option)
{
    gni_assert(option_rules[option].kind == option_kind_amount);
    return option_get(option)->is_count;
}

uint64_t gni_option_number(enum gni_option option)
{
    gni_assert(option_rules[option].kind == option_kind_number);
    return option_get(option)->number;
}

double gni_option_fraction(enum gni_option option)
{
    gni_assert(option_rules[option].kind == option_kind_fraction);
    return option_get(option)->fraction;
}

unsigned gni_option_choice(enum gni_option option)
{
    gni_assert(option_rules[option].kind == option_kind_choice);
    return (unsigned)option_get(option)->number;
}

unsigned gni_option_set(enum gni_option option)
{
    gni_assert(option_rules[option].kind == option_kind_set);
    return (unsigned)option_get(option)->number;
}

const char *gni_option_text(enum gni_option option)
{
    gni_assert(option_rules[option].kind == option_kind_path ||
               option_rules[option].kind == option_kind_library);
    return option_get(option)->text;
}

bool gn_option_describe(int index, gn_option_description *out)
{
    if (index < 0 || index >= GNI_OPTION_COUNT || out == NULL)
        return false;
    const struct option_rule *rule = &option_rules[index];
    const struct option_value *value = option_get((enum gni_option)index);
    *out = (gn_option_description){.name = rule->variable,
                                   .kind = rule->kind_name,
                                   .standard = rule->standard,
                                   .value = value->text,
                                   .meaning = rule->meaning};
    option_range_print(rule, out->range, sizeof out->range);
    return true;
}
