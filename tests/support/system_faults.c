/*
 * system_faults.c: see system_faults.h. The names of CMakeLists.txt and those below are the same.
 */
#include "system_faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct {
    pthread_mutex_t mutex;
    const char *function;
    int countdown; /* to the failure: 1 is the next call; 0: none */
    int error, count;
    bool is_persistent, is_open_as_0;
    size_t most;
    const char *path, *by;
} faults = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void system_fail(const char *function, int nth, int error, bool is_persistent)
{
    (void)pthread_mutex_lock(&faults.mutex);
    faults.function = function;
    faults.countdown = nth;
    faults.error = error;
    faults.is_persistent = is_persistent;
    faults.count = 0;
    (void)pthread_mutex_unlock(&faults.mutex);
}

int system_fault_count(void)
{
    (void)pthread_mutex_lock(&faults.mutex);
    int count = faults.count;
    (void)pthread_mutex_unlock(&faults.mutex);
    return count;
}

void system_shorten(size_t most)
{
    faults.most = most;
}

void system_replace(const char *path, const char *by)
{
    faults.path = path;
    faults.by = by;
}

void system_open_as_0(bool is_on)
{
    faults.is_open_as_0 = is_on;
}

/* The errno with which this call fails; 0: it does not. */
static int fault_take(const char *function)
{
    int error = 0;
    (void)pthread_mutex_lock(&faults.mutex);
    if (faults.countdown > 0 && strcmp(faults.function, function) == 0) {
        if (faults.countdown == 1) {
            error = faults.error;
            faults.count++;
        }
        if (faults.countdown > 1 || !faults.is_persistent)
            faults.countdown--;
    }
    (void)pthread_mutex_unlock(&faults.mutex);
    return error;
}

static size_t shortened(size_t nbytes)
{
    return faults.most > 0 && nbytes > faults.most ? faults.most : nbytes;
}

/* What fails with `failure` and errno, or passes the call on. */
#define WRAP(type, failure, name, parameters, arguments) \
    type __real_##name parameters;                       \
    type __wrap_##name parameters;                       \
    type __wrap_##name parameters                        \
    {                                                    \
        int error = fault_take(#name);                   \
        if (error == 0)                                  \
            return __real_##name arguments;              \
        errno = error;                                   \
        return failure;                                  \
    }

WRAP(ssize_t, -1, read, (int file, void *bytes, size_t nbytes), (file, bytes, shortened(nbytes)))
WRAP(ssize_t, -1, write, (int file, const void *bytes, size_t nbytes),
     (file, bytes, shortened(nbytes)))
WRAP(int, -1, fstat, (int file, struct stat *info), (file, info))
WRAP(DIR *, NULL, fdopendir, (int file), (file))
WRAP(int, -1, dup, (int file), (file))
WRAP(int, -1, unlinkat, (int directory, const char *path, int flags), (directory, path, flags))
WRAP(int, -1, clock_gettime, (clockid_t clock, struct timespec *now), (clock, now))
WRAP(FILE *, NULL, fdopen, (int file, const char *mode), (file, mode))
WRAP(int, -1, pipe2, (int ends[2], int flags), (ends, flags))
WRAP(int, -1, getrlimit, (__rlimit_resource_t resource, struct rlimit *limit), (resource, limit))
WRAP(int, 0, dladdr, (const void *address, Dl_info *info), (address, info))
WRAP(long, -1, sysconf, (int name), (name))
WRAP(int, 1, atexit, (void (*run)(void)), (run))
WRAP(void *, MAP_FAILED, mmap,
     (void *address, size_t nbytes, int access, int flags, int file, off_t offset),
     (address, nbytes, access, flags, file, offset))
WRAP(int, -1, munmap, (void *address, size_t nbytes), (address, nbytes))
WRAP(int, error, pthread_create,
     (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context),
     (thread, attributes, run, context))
WRAP(int, error, pthread_setspecific, (pthread_key_t key, const void *value), (key, value))
WRAP(int, error, posix_spawn_file_actions_init, (posix_spawn_file_actions_t * actions), (actions))

/* The file is closed. */
int __real_close(int file);
int __wrap_close(int file);
int __wrap_close(int file)
{
    int error = fault_take("close"), result = __real_close(file);
    if (error == 0)
        return result;
    errno = error;
    return -1;
}

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
    int error = fault_take("fopen");
    if (error == 0)
        return __real_fopen(
            faults.path != NULL && strcmp(path, faults.path) == 0 ? faults.by : path, mode);
    errno = error;
    return NULL;
}

int __real_openat(int directory, const char *path, int flags, ...);
int __wrap_openat(int directory, const char *path, int flags, ...);
int __wrap_openat(int directory, const char *path, int flags, ...)
{
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list list;
        va_start(list, flags);
        mode = va_arg(list, mode_t);
        va_end(list);
    }
    int error = fault_take("openat");
    if (faults.is_open_as_0)
        (void)__real_close(0);
    if (error == 0)
        return __real_openat(directory, path, flags, mode);
    errno = error;
    return -1;
}

/* Of these only membarrier() fails: a futex is asked without looking at the answer. */
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    long arguments[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        arguments[i] = va_arg(list, long);
    va_end(list);
    int error = number == SYS_membarrier ? fault_take("membarrier") : 0;
    if (error == 0)
        return __real_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3],
                              arguments[4], arguments[5]);
    errno = error;
    return -1;
}
