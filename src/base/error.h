/*
 * error.h: how a failure is made and passed on.
 *
 * A function that fails calls gni_error() once, where the reason is known, and every caller above
 * passes the status on with GN_TRY. The text stays in a buffer of the calling thread.
 */
#ifndef GNI_BASE_ERROR_H
#define GNI_BASE_ERROR_H

#include "genesis/base.h"

#include <assert.h>

/* Runs an expression that gives a gn_status and returns it to the caller if it is not GN_OK, which the compiler lays
 * aside: what nearly always runs lies together. */
#define GN_TRY(expression)                               \
    do {                                                 \
        gn_status gn_try_status = (expression);          \
        if (__builtin_expect(gn_try_status != GN_OK, 0)) \
            return gn_try_status;                        \
    } while (0)

/* Programmer errors only; compiled out unless the build is a debug build (GNI_DEBUG). */
#ifdef GNI_DEBUG
#define gni_assert(condition) assert(condition)
#else
#define gni_assert(condition) ((void)sizeof(!(condition)))
#endif

/*
 * Keeps a sentence for the calling thread and returns `status`, so that a failure is one line:
 *     return gni_error(GN_ERROR_INVALID_VALUE, "the index is %d, of %d devices", index, count);
 * A text that is too long is cut. Never allocates. A macro, so that the compiler sees which status
 * comes back.
 */
#define gni_error(status, ...) (gni_error_keep(__VA_ARGS__), (gn_status)(status))

void gni_error_keep(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* For public entrances: refuses an argument, with the function's name. */
#define GN_CHECK_ARGUMENT(condition, text)                                      \
    do {                                                                        \
        if (!(condition))                                                       \
            return gni_error(GN_ERROR_INVALID_VALUE, "%s: %s", __func__, text); \
    } while (0)

/* The sentence for a failed allocation of host memory for our own bookkeeping. */
gn_status gni_error_host_memory(size_t nbytes);

#endif
