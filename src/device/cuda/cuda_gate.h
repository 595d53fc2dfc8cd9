/*
 * cuda_gate.h: stops the submission of work to a GPU while memory is moved underneath its addresses.
 *
 * The memory manager copies pages and maps others in their place (memory/compact.c, memory/divide.c). Between the copy
 * and the new mapping nothing may write to them. Work that runs is waited for; the gate keeps new work away:
 *
 *     a thread that submits                     the thread that moves memory
 *     inside++                                  mutex, closer = itself
 *     closer is NULL or itself? else            wait until the queue of launches is empty
 *       inside--, wait for the mutex, again     wait until inside is 0
 *     ... one call of the driver ...            ... waits for the device, copies, maps ...
 *     inside--                                  closer = NULL, mutex
 *
 * Invariants:
 *   CG1  every call that gives the GPU work with our addresses is made between enter and leave: launches, copies, fills,
 *       graphs, products of cuBLASLt. The queue (cuda_queue.h) needs no entry of its own: it takes no launch while the
 *       gate is closed, and is empty before anything moves;
 *   CG2  a thread inside takes no lock of the memory manager: who closes the gate may hold it;
 *   CG3  captures do not begin while the gate is closed.
 *
 * In a forked child the driver is gone, and the gate is open to calls that fail anyway.
 */
#ifndef GNI_DEVICE_CUDA_CUDA_GATE_H
#define GNI_DEVICE_CUDA_CUDA_GATE_H

#include "base/thread.h"

#include <stdatomic.h>

struct gni_cuda_device;
struct gn_device;

struct gni_cuda_gate {
    atomic_int inside;            /* threads between enter and leave */
    _Atomic(const void *) closer; /* gni_thread_self() of the thread that closed it; NULL: open */
    struct gni_mutex mutex;       /* held while it is closed */
};

static inline bool gni_cuda_gate_is_closed(struct gni_cuda_gate *gate)
{
    return atomic_load(&gate->closer) != NULL;
}

/* Waits until the gate is open, and leaves with the thread inside. cuda_gate.c */
void gni_cuda_gate_wait(struct gni_cuda_gate *gate);

/* Before and after a call that submits work: CG1. */
static inline void gni_cuda_gate_enter(struct gni_cuda_gate *gate)
{
    atomic_fetch_add(&gate->inside, 1);
    if (__builtin_expect(gni_cuda_gate_is_closed(gate), 0))
        gni_cuda_gate_wait(gate);
}

static inline void gni_cuda_gate_leave(struct gni_cuda_gate *gate)
{
    atomic_fetch_sub(&gate->inside, 1);
}

/* The slots of the table. */
void gni_cuda_pause(struct gn_device *device);
void gni_cuda_resume(struct gn_device *device);

#endif
