/*
 * error.c: status names and messages, and the thread's last error text.
 */
#include "base/error.h"

#include "base/thread.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

#define STRINGIZE_(x) #x
#define STRINGIZE(x) STRINGIZE_(x)

enum {
    DETAIL_BYTES = 4096, /* long enough for a driver's text and two paths */
};

/* The thread's last text, in a page of the system's from its first error on: not in thread-local memory itself, of
 * which little is at hand (device.h, gni_thread). */
static _Thread_local char *error_detail;

static pthread_key_t thread_key;
static struct gni_once thread_key_once = GNI_ONCE_INIT;

static void detail_free(void *detail)
{
    (void)munmap(detail, DETAIL_BYTES);
    error_detail = NULL;
}

static void thread_key_create(void)
{
    int failed = pthread_key_create(&thread_key, detail_free);
    gni_assert(!failed);
    (void)failed;
}

/* The thread's buffer; NULL if the system has no memory for it. */
static char *detail_get(void)
{
    if (error_detail != NULL)
        return error_detail;
    gni_once_run(&thread_key_once, thread_key_create);
    char *made =
        mmap(NULL, DETAIL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED)
        return NULL;
    if (pthread_setspecific(thread_key, made) != 0) {
        (void)munmap(made, DETAIL_BYTES);
        return NULL;
    }
    return error_detail = made;
}

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
    return error_detail != NULL ? error_detail : "";
}

const char *gn_version(void)
{
    return STRINGIZE(GN_VERSION_MAJOR) "." STRINGIZE(GN_VERSION_MINOR) "." STRINGIZE(GN_VERSION_PATCH);
}

void gni_error_keep(const char *format, ...)
{
    char *detail = detail_get();
    if (detail == NULL)
        return; /* the status must do */
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(detail, DETAIL_BYTES, format, arguments);
    va_end(arguments);
}

gn_status gni_error_host_memory(size_t nbytes)
{
    return gni_error(GN_ERROR_OUT_OF_HOST_MEMORY, "no host memory for %zu bytes of bookkeeping",
                     nbytes);
}
