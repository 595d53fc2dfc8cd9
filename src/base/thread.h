/*
 * thread.h: mutexes, one-time initialisation, and threads of the library's own.
 *
 * Thin names over pthreads whose failures are programmer errors. Counters and flags that are read
 * without a lock are C17 <stdatomic.h> objects.
 *
 * Lock order: a thread that holds a lock of one layer may take locks of lower layers only (memory,
 * then device, then base). fork.h has the order in full, and makes fork() keep it.
 */
#ifndef GNI_BASE_THREAD_H
#define GNI_BASE_THREAD_H

#include "base/error.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

struct gni_mutex {
    pthread_mutex_t native;
    _Atomic(const void *) owner; /* who locked it last, and NULL after an unlock: for fork() only */
    bool is_passed_over;         /* by the owner's own fork() */
};

#define GNI_MUTEX_INIT                       \
    {                                        \
        .native = PTHREAD_MUTEX_INITIALIZER, \
    }

static inline void gni_mutex_init(struct gni_mutex *mutex)
{
    *mutex = (struct gni_mutex)GNI_MUTEX_INIT;
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

/* Between two looks at what another thread will change. */
static inline void gni_thread_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* An address that no other living thread has: without a call, since every lock asks for it. */
static inline const void *gni_thread_self(void)
{
#if defined(__clang__) || __GNUC__ >= 11
    return __builtin_thread_pointer();
#else
    return (const void *)(uintptr_t)pthread_self();
#endif
}

static inline void gni_mutex_lock(struct gni_mutex *mutex)
{
    int failed = pthread_mutex_lock(&mutex->native);
    gni_assert(!failed);
    (void)failed;
    atomic_store_explicit(&mutex->owner, gni_thread_self(), memory_order_relaxed);
}

static inline void gni_mutex_unlock(struct gni_mutex *mutex)
{
    atomic_store_explicit(&mutex->owner, NULL, memory_order_relaxed);
    int failed = pthread_mutex_unlock(&mutex->native);
    gni_assert(!failed);
    (void)failed;
}

/* For fork handlers: passes over a lock that the thread holds already. */
static inline void gni_mutex_fork_lock(struct gni_mutex *mutex)
{
    if (atomic_load_explicit(&mutex->owner, memory_order_relaxed) == gni_thread_self())
        mutex->is_passed_over = true;
    else
        gni_mutex_lock(mutex);
}

static inline void gni_mutex_fork_unlock(struct gni_mutex *mutex)
{
    if (mutex->is_passed_over)
        mutex->is_passed_over = false;
    else
        gni_mutex_unlock(mutex);
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

/* Starts a thread; 0, or the system's error. Signals belong to the program's own threads, but for those that a bad
 * address causes: while they are blocked the program dies without its crash handlers. */
int gni_thread_start(pthread_t *thread, void *(*run)(void *context), void *context);

/* Lets others run after so many looks at what another thread will change soon: by yielding at first, and then by sleeping
 * for a moment, without which a thread of lower priority would not run. */
void gni_thread_wait(int looks);

/* The processors that this process may use; what a container has a share of counts as a whole one. */
int gni_processor_count(void);

/* The container's part of that, by the system's files in `root`, of either version; INT_MAX: all. */
int gni_processor_share(const char *root);

/* The clock by which things are measured and ordered: nanoseconds, the same for all threads. */
static inline uint64_t gni_time_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
