/*
 * error.c: status names and messages, and the thread's last error text.
 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

#define STRINGIZE_(x) #x
#define STRINGIZE(x) STRINGIZE_(x)

/* Long enough for a driver's text and two paths; a fixed buffer, since an error must not fail. */
static _Thread_local char error_detail[4096];

struct status_text {
    const char *name;
    const char *message;
};

static struct status_text status_text_find(gn_status status)
{
    switch (status) {
#define STATUS_CASE(name, number, message) \
    case GN_##name:                        \
        return (struct status_text){"GN_" #name, message};
        GN_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    }
    return (struct status_text){"GN_ERROR_UNKNOWN", "not a status of this library"};
}

const char *gn_status_name(gn_status status)
{
    return status_text_find(status).name;
}

const char *gn_status_message(gn_status status)
{
    return status_text_find(status).message;
}

const char *gn_error_detail(void)
{
    return error_detail;
}

const char *gn_version(void)
{
    return STRINGIZE(GN_VERSION_MAJOR) "." STRINGIZE(GN_VERSION_MINOR) "." STRINGIZE(GN_VERSION_PATCH);
}

void gni_error_keep(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(error_detail, sizeof error_detail, format, arguments);
    va_end(arguments);
}

gn_status gni_error_host_memory(size_t nbytes)
{
    return gni_error(GN_ERROR_OUT_OF_HOST_MEMORY, "no host memory for %zu bytes of bookkeeping",
                     nbytes);
}
