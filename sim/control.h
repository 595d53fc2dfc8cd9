/*
 * control.h: what a test can ask of the simulated GPU.
 *
 * The simulator is loaded by name, never linked; a test finds these functions in the library that
 * Genesis has loaded:
 *
 *     struct sim_control control;
 *     if (sim_control_load(path, &control)) control.fail("cuMemAlloc", 1, 999, 0);
 *
 * What is read from the environment when the library is loaded:
 *
 *   SIM_GPU_DEVICES    how many devices there are: 1 to 8; 1
 *   SIM_GPU_MEMORY     bytes of each device; 1 GiB
 *   SIM_GPU_VERSION    what cuDriverGetVersion() gives; 13000
 *   SIM_GPU_MISSING    names, separated by commas, that cuGetProcAddress() does not know
 *   SIM_GPU_SCHEDULE   eager, lazy or random; eager
 *   SIM_GPU_SEED       of the random schedule, of lanes and of blocks; 1
 *   SIM_GPU_DELAY_US   how long each call takes at least; 0
 *   SIM_GPU_STRICT     on: a stream or event that is destroyed with work pending is a finding; off
 *   SIM_GPU_FINDINGS   print (to standard error), abort, or silent; print
 *   SIM_GPU_LANES      the order of a block's threads: ascending, descending or random; by the seed
 *   SIM_GPU_CHECK      on or off: are a kernel's accesses to memory checked? on
 *   SIM_GPU_CXX, SIM_GPU_CACHE_DIR   the host compiler for kernels, and where its results are kept
 */
#ifndef GNI_SIM_CONTROL_H
#define GNI_SIM_CONTROL_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/*
 * X(result, name, arguments): exported as sim_control_NAME, and a field of struct sim_control.
 *
 *   fail             the nth call from now of the function, of the driver or of NVRTC, (NULL: of any but the lookups of error
 *                    texts) gives this result without doing anything; so does every later one if it
 *                    is persistent. A sticky result loses the device. Replaces the fault that was set
 *                    before; nth 0 sets none.
 *   refuse           texts that have this in them do not compile from now on; NULL: all may
 *   hold             a compilation of a text that has this in it waits at its start from now on; NULL: none does any more
 *   held_count       compilations that wait
 *   fault_count      how often the present fault struck
 *   call_count       calls of a function since the start (NULL: of all, without the lookups)
 *   schedule         0 eager, 1 lazy, 2 random with the seed; pending work is not touched
 *   memory           bytes of each device from now on; fails if more is in use
 *   live_allocations memory, mappings, physical memory, page-locked memory
 *   live_objects     streams, events, modules, graphs
 *   pending          ops that have not run
 *   order_hash       of the ops that ran since the schedule was set, in the order they ran in
 *   context_depth    how many contexts are on the calling thread's stack
 *   is_active        is the primary context of a device retained?
 *   finding_count    findings since the last reset
 *   finding_text     of the finding with this index; "" past the last. Valid until the reset.
 *   reset_findings   forgets them
 */
#define SIM_CONTROLS(X)                                                           \
    X(void, fail, (const char *function, int nth, int result, int is_persistent)) \
    X(void, refuse, (const char *text))                                           \
    X(void, hold, (const char *text))                                             \
    X(int, held_count, (void))                                                    \
    X(int, fault_count, (void))                                                   \
    X(long, call_count, (const char *function))                                   \
    X(void, schedule, (int kind, uint64_t seed))                                  \
    X(bool, memory, (size_t nbytes))                                              \
    X(int, live_allocations, (void))                                              \
    X(int, live_objects, (void))                                                  \
    X(int, pending, (void))                                                       \
    X(uint64_t, order_hash, (void))                                               \
    X(int, context_depth, (void))                                                 \
    X(int, is_active, (int device))                                               \
    X(int, finding_count, (void))                                                 \
    X(const char *, finding_text, (int index))                                    \
    X(void, reset_findings, (void))

struct sim_control {
#define SIM_CONTROL_FIELD(result, name, arguments) result(*name) arguments;
    SIM_CONTROLS(SIM_CONTROL_FIELD)
#undef SIM_CONTROL_FIELD
};

/* The simulator that is loaded from this path; false if none is. */
static inline bool sim_control_load(const char *path, struct sim_control *control)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (library == NULL)
        return false;
#define SIM_CONTROL_LOAD(result, name, arguments)             \
    do {                                                      \
        void *address = dlsym(library, "sim_control_" #name); \
        memcpy(&control->name, &address, sizeof address);     \
    } while (0);
    SIM_CONTROLS(SIM_CONTROL_LOAD)
#undef SIM_CONTROL_LOAD
    return control->fail != NULL;
}

#endif
