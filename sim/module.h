/*
 * module.h: a loaded image, as the engine's own files see it.
 */
#ifndef GNI_SIM_MODULE_H
#define GNI_SIM_MODULE_H

#include "bridge.h"
#include "engine.h"

struct sim_module {
    struct sim_module *next; /* of the list of loaded modules */
    void *handle;            /* of dlopen() */
    int file;                /* the object in memory; open as long as it is loaded (module.c) */
    const struct gn_sim_module *table;
    struct sim_kernel *kernels;
    unsigned kernel_count;
    uintptr_t load_address; /* what the object's own addresses are relative to */
    uintptr_t begin, end;   /* its code and data */
    size_t thread_nbytes;   /* its thread-local memory, which is the static shared memory */
    size_t thread_module;   /* by which the C library finds that memory */
};

/* The calling thread's copy of the static shared memory; NULL if there is none. */
char *sim_module_shared(const struct sim_module *module);

/* Where each argument lies in a packed copy. */
void sim_kernel_parameters_locate(const struct sim_kernel *kernel, const void *packed,
                                  void **arguments);

/* The engine's side, which every module is given. */
extern struct gn_sim_bridge sim_bridge;

#endif
