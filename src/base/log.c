/*
 * log.c: see log.h.
 */
#include "base/log.h"

#include "base/error.h"
#include "base/option.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static const char *log_level_name(enum gni_log_level level)
{
    switch (level) {
    case GNI_LOG_OFF:
        break;
    case GNI_LOG_ERROR:
        return "error";
    case GNI_LOG_WARNING:
        return "warning";
    case GNI_LOG_INFO:
        return "info";
    case GNI_LOG_DEBUG:
        return "debug";
    }
    return "off";
}

bool gni_log_is_on(enum gni_log_level level)
{
    return (unsigned)level <= gni_option_choice(GNI_OPTION_LOG);
}

void gni_log(enum gni_log_level level, const char *format, ...)
{
    gni_assert(level != GNI_LOG_OFF);
    if (!gni_log_is_on(level))
        return;
    char line[1280];
    int used = snprintf(line, sizeof line, "genesis: %s: ", log_level_name(level));
    va_list arguments;
    va_start(arguments, format);
    int more = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, arguments);
    va_end(arguments);
    size_t length = (size_t)used + (more < 0 ? 0 : (size_t)more);
    if (length > sizeof line - 2)
        length = sizeof line - 2;         /* cut, with room for the newline */
    for (size_t i = 0; i < length; i++) { /* one line, whatever a variable's value holds */
        if ((unsigned char)line[i] < ' ' || line[i] == '\x7f')
            line[i] = '?';
    }
    line[length++] = '\n';
    /* write(), not stdio: a single unbuffered call, safe in a forked child as well. */
    ssize_t written = write(STDERR_FILENO, line, length);
    (void)written;
}
