/* setting.c: see setting.h. */
#include "setting.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

extern char **environ;

enum kind {
    NUMBER,
    SIZE,    /* a number, with K, M, G or T for powers of 1024 */
    CHOICE,  /* a word of a list */
    NAMES,   /* any text */
    PATH,    /* empty, or an absolute path */
    PROGRAM, /* a name without a slash, or an absolute path */
};

static const struct setting {
    const char *name;
    enum kind kind;
    uint64_t least, most;
    const char *choices; /* separated by commas */
} settings[] = {
    {"SIM_GPU_SCHEDULE", CHOICE, 0, 0, "eager,lazy,random"},
    {"SIM_GPU_LANES", CHOICE, 0, 0, "ascending,descending,random"},
    {"SIM_GPU_CHECK", CHOICE, 0, 0, "on,off"},
    {"SIM_GPU_STRICT", CHOICE, 0, 0, "off,on"},
    {"SIM_GPU_FINDINGS", CHOICE, 0, 0, "print,abort,silent"},
    {"SIM_GPU_SEED", NUMBER, 0, UINT64_MAX, NULL},
    {"SIM_GPU_DEVICES", NUMBER, 0, 8, NULL},
    {"SIM_GPU_VERSION", NUMBER, 0, INT32_MAX, NULL},
    {"SIM_GPU_DELAY_US", NUMBER, 0, 999999, NULL},
    {"SIM_GPU_MEMORY", SIZE, 1, (uint64_t)1 << 46, NULL},
    {"SIM_GPU_MISSING", NAMES, 0, 0, NULL},
    {"SIM_GPU_CACHE_DIR", PATH, 0, 0, NULL},
    {"SIM_GPU_CXX", PROGRAM, 0, 0, NULL},
};

enum {
    SETTING_COUNT = sizeof settings / sizeof *settings,
};

static const struct setting *setting_find(const char *name, size_t length)
{
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (strlen(settings[i].name) == length && strncmp(settings[i].name, name, length) == 0)
            return &settings[i];
    return NULL;
}

/* ---- values --------------------------------------------------------------------------------- */

/* How many bits a unit shifts by; -1: no such unit. */
static int unit_shift(const char *unit)
{
    static const char *const units[] = {"K", "M", "G", "T"};
    if (*unit == '\0' || strcasecmp(unit, "B") == 0)
        return 0;
    for (int i = 0; i < 4; i++)
        if (strncasecmp(unit, units[i], 1) == 0 &&
            (unit[1] == '\0' || strcasecmp(unit + 1, "iB") == 0))
            return 10 * (i + 1);
    return -1;
}

static bool number_read(const struct setting *setting, const char *text, uint64_t *number)
{
    char *end;
    if (!isdigit((unsigned char)*text)) /* strtoull() takes a sign and blanks */
        return false;
    errno = 0;
    *number = strtoull(text, &end, 0);
    int shift = setting->kind == SIZE ? unit_shift(end) : *end == '\0' ? 0 : -1;
    if (errno != 0 || shift < 0 || *number > UINT64_MAX >> shift)
        return false;
    *number <<= shift;
    return *number >= setting->least && *number <= setting->most;
}

static int choice_read(const char *choices, const char *text)
{
    size_t length = strlen(text);
    for (int place = 0;; place++) {
        size_t own = strcspn(choices, ",");
        if (own == length && strncmp(choices, text, own) == 0)
            return place;
        if (choices[own] == '\0')
            return -1;
        choices += own + 1;
    }
}

static bool is_valid(const struct setting *setting, const char *text)
{
    uint64_t number;
    switch (setting->kind) {
    case NUMBER:
    case SIZE:
        return *text == '\0' || number_read(setting, text, &number);
    case CHOICE:
        return *text == '\0' || choice_read(setting->choices, text) >= 0;
    case PATH:
        return *text == '\0' || *text == '/';
    case PROGRAM:
        return *text == '/' || strchr(text, '/') == NULL;
    case NAMES:
        break;
    }
    return true;
}

const char *sim_setting_text(const char *name)
{
    const struct setting *setting = setting_find(name, strlen(name));
    const char *text = secure_getenv(name);
    return setting != NULL && text != NULL && is_valid(setting, text) ? text : NULL;
}

uint64_t sim_setting_number(const char *name, uint64_t standard)
{
    const char *text = sim_setting_text(name);
    uint64_t number;
    if (text == NULL || *text == '\0' ||
        !number_read(setting_find(name, strlen(name)), text, &number))
        return standard;
    return number;
}

int sim_setting_choice(const char *name)
{
    const char *text = sim_setting_text(name);
    if (text == NULL || *text == '\0')
        return -1;
    return choice_read(setting_find(name, strlen(name))->choices, text);
}

/* ---- warnings ------------------------------------------------------------------------------- */

static void expected_print(const struct setting *setting, char *text, size_t size)
{
    switch (setting->kind) {
    case NUMBER:
        (void)snprintf(text, size, "a number from %llu to %llu", (unsigned long long)setting->least,
                       (unsigned long long)setting->most);
        break;
    case SIZE:
        (void)snprintf(text, size, "a number of bytes, or one with K, M, G or T");
        break;
    case CHOICE:
        (void)snprintf(text, size, "one of %s", setting->choices);
        break;
    default:
        (void)snprintf(text, size,
                       setting->kind == PROGRAM ? "a program's name or absolute path"
                                                : "an absolute path");
    }
}

void sim_settings_check(void)
{
    static const char prefix[] = "SIM_GPU_";
    for (char **one = environ; one != NULL && *one != NULL; one++) {
        const char *name = *one, *equals = strchr(name, '=');
        if (equals == NULL || strncmp(name, prefix, sizeof prefix - 1) != 0)
            continue;
        const struct setting *setting = setting_find(name, (size_t)(equals - name));
        char expected[128];
        if (setting == NULL) {
            fprintf(stderr, "simulated GPU: there is no variable %.*s\n", (int)(equals - name),
                    name);
        } else if (!is_valid(setting, equals + 1)) {
            expected_print(setting, expected, sizeof expected);
            fprintf(stderr, "simulated GPU: %.100s is ignored: it must be %s\n", name, expected);
        }
    }
}
