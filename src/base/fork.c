/*
 * fork.c: see fork.h.
 *
 * Which levels were prepared is kept by the thread that forks: a module that another thread registers
 * meanwhile is not undone.
 */
#include "base/fork.h"

#include "base/thread.h"

#include <stdatomic.h>

static _Atomic(const struct gni_fork_handlers *) fork_handlers[GNI_FORK_LEVELS];
static struct gni_once fork_once = GNI_ONCE_INIT;
static _Thread_local bool is_prepared[GNI_FORK_LEVELS];

static void fork_prepare(void)
{
    for (int level = GNI_FORK_LEVELS; level-- > 0;) {
        const struct gni_fork_handlers *handlers = atomic_load(&fork_handlers[level]);
        is_prepared[level] = handlers != NULL;
        if (handlers == NULL)
            continue;
        if (handlers->mutex != NULL)
            gni_mutex_fork_lock(handlers->mutex);
        if (handlers->prepare != NULL)
            handlers->prepare();
    }
}

static void fork_done(bool is_child)
{
    for (int level = 0; level < GNI_FORK_LEVELS; level++) {
        if (!is_prepared[level])
            continue;
        const struct gni_fork_handlers *handlers = atomic_load(&fork_handlers[level]);
        if (handlers->done != NULL)
            handlers->done(is_child);
        if (handlers->mutex != NULL)
            gni_mutex_fork_unlock(handlers->mutex);
    }
}

static void fork_parent(void)
{
    fork_done(false);
}

static void fork_child(void)
{
    fork_done(true);
}

static void fork_start(void)
{
    (void)pthread_atfork(fork_prepare, fork_parent, fork_child);
}

void gni_fork_register(enum gni_fork_level level, const struct gni_fork_handlers *handlers)
{
    gni_once_run(&fork_once, fork_start);
    atomic_store(&fork_handlers[level], handlers);
}
