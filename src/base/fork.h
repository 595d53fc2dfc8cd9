/*
 * fork.h: what each module does around a fork(), in one fixed order.
 *
 * Before a fork the handlers run from the highest level to the lowest, after it from the lowest to the
 * highest, whatever the order in which the modules were first used. This is the lock order: a thread
 * that holds a lock of one level may take locks of lower levels only.
 *
 * A driver may fork by itself while we call it (to start a helper), so a handler meets locks that its
 * own thread holds, and passes over those.
 */
#ifndef GNI_BASE_FORK_H
#define GNI_BASE_FORK_H

#include <stdbool.h>

/* From the lowest. */
enum gni_fork_level {
    GNI_FORK_PARALLEL,
    GNI_FORK_OPTION,
    GNI_FORK_BLAS,
    GNI_FORK_HISTORY,
    GNI_FORK_CPU_QUEUE,
    GNI_FORK_CUDA_DRIVER,
    GNI_FORK_CUDA_LIBRARY,
    GNI_FORK_CUDA_STREAM,
    GNI_FORK_CUDA_QUEUE,
    GNI_FORK_CUDA_DEVICE,
    GNI_FORK_DEVICE,
    GNI_FORK_PROFILE,
    GNI_FORK_MARK,
    GNI_FORK_ADDRESS,
    GNI_FORK_MEMORY,
    GNI_FORK_REQUEST,
    GNI_FORK_TUNE,
    GNI_FORK_BACKGROUND,
    GNI_FORK_KERNEL,
    GNI_FORK_CUBLAS,
    GNI_FORK_STORAGE,
    GNI_FORK_CAPTURE,
    GNI_FORK_RECORDER,
    GNI_FORK_GRADIENTS,
    GNI_FORK_LEVELS
};

struct gni_mutex;

/* A module's lock is held over the fork; most need no more than that. */
struct gni_fork_handlers {
    struct gni_mutex *mutex; /* (optional) NULL: the other two take and give a lock themselves */
    void (*prepare)(void);   /* (optional) with the lock, before the fork */
    void (*done)(bool is_child); /* (optional) with the lock, after it, in both processes */
};

/* Registers a module's handlers, which live for ever. May be called again with the same ones. */
void gni_fork_register(enum gni_fork_level level, const struct gni_fork_handlers *handlers);

#endif
