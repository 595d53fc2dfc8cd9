/*
 * log.h: one line to standard error for what a person should know and no status can say.
 *
 * GENESIS_LOG sets the lowest level that is printed; the default is warning. A line is written with
 * one call, so that lines of several threads do not mix.
 */
#ifndef GNI_BASE_LOG_H
#define GNI_BASE_LOG_H

#include <stdbool.h>

/* In the order of the choices of GENESIS_LOG. */
enum gni_log_level {
    GNI_LOG_OFF = 0,
    GNI_LOG_ERROR = 1,
    GNI_LOG_WARNING = 2,
    GNI_LOG_INFO = 3,
    GNI_LOG_DEBUG = 4,
};

void gni_log(enum gni_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* For callers whose arguments cost something to compute. */
bool gni_log_is_on(enum gni_log_level level);

#endif
