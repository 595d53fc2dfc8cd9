/*
 * thread.h: mutexes and one-time initialisation.
 *
 * Thin names over pthreads whose failures are programmer errors. Counters and flags that are read
 * without a lock are C17 <stdatomic.h> objects.
 *
 * Lock order: a thread that holds a lock of one layer may take locks of lower layers only (memory,
 * then device, then base), and the order within a layer stands at the top of its files. fork() is
 * made safe by the modules themselves: each registers handlers with pthread_atfork() when it is
 * first used. The handlers that run before the fork run in reverse order of registration, which is
 * the lock order, because an upper layer starts the lower one before it registers its own.
 */
#ifndef GNI_BASE_THREAD_H
#define GNI_BASE_THREAD_H

#include "base/error.h"

#include <pthread.h>

struct gni_mutex {
    pthread_mutex_t native;
};

#define GNI_MUTEX_INIT            \
    {                             \
        PTHREAD_MUTEX_INITIALIZER \
    }

static inline void gni_mutex_init(struct gni_mutex *mutex)
{
    int failed = pthread_mutex_init(&mutex->native, NULL);
    gni_assert(!failed);
    (void)failed;
}

static inline void gni_mutex_deinit(struct gni_mutex *mutex)
{
    int failed = pthread_mutex_destroy(&mutex->native);
    gni_assert(!failed);
    (void)failed;
}

static inline void gni_mutex_lock(struct gni_mutex *mutex)
{
    int failed = pthread_mutex_lock(&mutex->native);
    gni_assert(!failed);
    (void)failed;
}

static inline void gni_mutex_unlock(struct gni_mutex *mutex)
{
    int failed = pthread_mutex_unlock(&mutex->native);
    gni_assert(!failed);
    (void)failed;
}

struct gni_once {
    pthread_once_t native;
};

#define GNI_ONCE_INIT     \
    {                     \
        PTHREAD_ONCE_INIT \
    }

static inline void gni_once_run(struct gni_once *once, void (*function)(void))
{
    int failed = pthread_once(&once->native, function);
    gni_assert(!failed);
    (void)failed;
}

#endif
