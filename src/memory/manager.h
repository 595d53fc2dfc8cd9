/*
 * manager.h: the interface between the memory managers' entrances and their policies.
 *
 *   gn_memory_manager   the memory of one device; starts with a pointer to its policy's table
 *   policy              how requests are met: struct gni_memory_policy. `direct` is in direct.c
 *
 * manager.c checks arguments, keeps one manager for each device and offers the public functions; a
 * policy does the rest. One test suite (tests/c/test_memory.c) runs over every policy.
 *
 * Threads: every slot may be called from any thread; a policy has its own locks.
 */
#ifndef GNI_MEMORY_MANAGER_H
#define GNI_MEMORY_MANAGER_H

#include "genesis/memory.h"

#include "base/error.h"
#include "device/device.h"

struct gn_memory_manager {
    const struct gni_memory_policy *policy;
    gn_device *device;
};

struct gni_memory_policy {
    const char *name;

    /* Makes the manager of a device. It lives for ever. */
    gn_status (*create)(gn_device *device, gn_memory_manager **manager);

    /* `nbytes` is possible (checked.h) and may be 0; `stream` is of the manager's device. */
    gn_status (*alloc)(gn_memory_manager *manager, size_t nbytes, gn_stream *stream,
                       void **pointer);

    /* `nbytes` is NULL where the caller does not say the size. On failure nothing changed. */
    gn_status (*free)(gn_memory_manager *manager, void *pointer, const size_t *nbytes);

    /* The size of a living block. */
    gn_status (*size)(gn_memory_manager *manager, const void *pointer, size_t *nbytes);

    gn_status (*statistics)(gn_memory_manager *manager, gn_memory_statistics *statistics);
    void (*reset_peaks)(gn_memory_manager *manager);

    /* Logs each living block as a leak, at most `most` of them, and returns how many there are. */
    size_t (*report_leaks)(gn_memory_manager *manager, size_t most);

    /* Frees everything that lives. What cannot be freed stays, and the first failure is returned.
     */
    gn_status (*clear)(gn_memory_manager *manager);

    /* Takes the manager's locks before a fork() and lets them go after it, in both processes. In
     * the child there are no other threads: what they were doing is over. */
    void (*fork_prepare)(gn_memory_manager *manager);
    void (*fork_done)(gn_memory_manager *manager, bool is_child);
};

extern const struct gni_memory_policy gni_memory_policy_direct;

#endif
