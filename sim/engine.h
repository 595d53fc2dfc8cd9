/*
 * engine.h: runs compiled kernels on the host; the driver's side of the simulator stands on this.
 *
 *   module   a loaded image (image.h) with its kernels
 *   launch   one run of a kernel over a grid, from a copy of its arguments, to its end
 *   report   what went wrong in a launch, in words and in fields
 *
 * How a launch runs. Blocks run one after the other. The threads of a block run on fibers: a thread
 * runs until it waits (barrier, warp operation) or ends; one that ends hands its stack to the next,
 * so that a kernel without barriers is a plain loop. The order of lanes and of blocks is chosen by
 * the caller; whatever it is, a correct kernel computes the same, but for the order of float
 * atomics.
 *
 * What is checked always: lanes that never meet (a barrier or warp operation that cannot end),
 * masks without the caller, shuffles that read from a lane that is not there, barriers whose
 * threads wait at different lines, __trap and assert. With instrumented kernels (compile.h) also
 * each access to memory: races in shared memory, races between blocks (global.h), bounds of shared
 * memory, alignment, and for all other memory what the launch's callbacks say.
 *
 * Rules:
 *   E1  one launch at a time in a process: kernels' shared memory and the fibers are its only ones.
 *       Loading, unloading and describing sites may go on in other threads.
 *   E2  a launch's callbacks run on a GPU thread's stack of 128 KiB (fiber.h). They must return.
 *   E3  a module stays loaded while a launch of its kernels runs.
 */
#ifndef GNI_SIM_ENGINE_H
#define GNI_SIM_ENGINE_H

#include "device/cuda/driver_api.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SIM_WARP_LANES = 32,
    SIM_BLOCK_MAX_THREADS = 1024,
    SIM_PARAMETERS_MAX_BYTES = 4096,
};

/* ---- Modules ---- */

struct sim_module;

struct sim_kernel {
    struct sim_module *module;
    const char *name;       /* the symbol, mangled unless extern "C": what a module is asked for */
    const char *expression; /* the name in the source, or the name expression */
    unsigned parameter_count;
    const unsigned *parameter_sizes, *parameter_alignments;
    size_t static_shared_bytes;     /* of all kernels of the module together */
    unsigned max_threads_per_block; /* 1024, or less by __launch_bounds__ */
    const struct gn_sim_entry *entry;
};

/*
 * Gives CUDA_ERROR_INVALID_IMAGE for bytes that are not one whole image, CUDA_ERROR_OUT_OF_MEMORY,
 * or CUDA_ERROR_SHARED_OBJECT_INIT_FAILED if the host cannot load it. A text that nvrtcGetPTX()
 * gave is taken as well, by the process that compiled it or one with the same cache.
 */
CUresult sim_module_load(const void *image, struct sim_module **module);
void sim_module_unload(struct sim_module *module);

/* NULL: there is no such kernel. */
const struct sim_kernel *sim_module_find(const struct sim_module *module, const char *name);
const struct sim_kernel *sim_module_find_expression(const struct sim_module *module,
                                                    const char *expression);

/*
 * Kernel parameters are copied when a launch is queued: the buffer that `packed` points to has
 * sim_kernel_parameters_bytes() bytes, aligned for any type, and holds each argument at its offset.
 */
size_t sim_kernel_parameters_bytes(const struct sim_kernel *kernel);
void sim_kernel_parameters_copy(const struct sim_kernel *kernel, void *const *arguments,
                                void *packed);

/* ---- Reports ---- */

enum sim_fault {
    SIM_FAULT_NONE,
    SIM_FAULT_BAD_LAUNCH,        /* sizes that no kernel can be launched with */
    SIM_FAULT_NO_MEMORY,         /* of the host */
    SIM_FAULT_DIVERGENT_BARRIER, /* threads wait at different barriers */
    SIM_FAULT_ABSENT_LANE,       /* a warp operation names or reads a lane that does not come */
    SIM_FAULT_BAD_MASK,          /* a lane is not in its own mask, or reads one outside it */
    SIM_FAULT_SHARED_RACE,       /* two threads of a block, no barrier between them */
    SIM_FAULT_GLOBAL_RACE,       /* two blocks, no fences and atomics between them */
    SIM_FAULT_OUT_OF_BOUNDS,
    SIM_FAULT_MISALIGNED,
    SIM_FAULT_TRAP,
    SIM_FAULT_ASSERT,
    SIM_FAULT_EARLY,   /* an access before the wait that an early launch needs */
    SIM_FAULT_TIMEOUT, /* a thread made more accesses than the launch allows */
};

struct sim_place {
    char file[128];
    int line; /* 0: not known */
    unsigned block[3], thread[3];
    bool is_write;
};

struct sim_report {
    CUresult result;
    enum sim_fault fault;
    char kernel[160];
    struct sim_place place; /* where it went wrong */
    struct sim_place other; /* of a race, or where the missing lane waits; line 0: none */
    uintptr_t address;      /* of an access, else 0 */
    size_t nbytes;
    char text[1024]; /* all of it, as a sentence */
};

/* ---- Launches ---- */

enum sim_order {
    SIM_ORDER_ASCENDING,
    SIM_ORDER_DESCENDING,
    SIM_ORDER_RANDOM, /* by the seed */
};

struct sim_launch {
    const struct sim_kernel *kernel;
    unsigned grid[3], block[3];
    size_t dynamic_shared_bytes;
    const void *parameters; /* as sim_kernel_parameters_copy() packed them */
    enum sim_order lane_order;
    enum sim_order block_order; /* blocks that wait for earlier ones need ASCENDING or tickets */
    uint64_t seed;
    bool is_early;         /* a thread must wait before it accesses memory that others know */
    uint64_t accesses_max; /* of one thread; 0: no limit. Only instrumented kernels are counted */

    void *context; /* of the callbacks, which may all be NULL */

    /*
     * The range of memory around an address that a kernel may use, which must stay so for the whole
     * launch. Neighbours that a kernel may cross are one range. False: out of bounds. With this
     * callback, access() gets whole runs of accesses: the accesses of one instruction that touch or
     * overlap, in any order, after they were made.
     */
    bool (*find_range)(void *context, uintptr_t address, uintptr_t *begin, uintptr_t *end);

    /*
     * An access to memory that is neither shared nor a thread's own nor the module's. `site` is a
     * place in the kernel's code for sim_site_describe(). Without find_range it comes for each
     * access and before it. False stops the kernel with CUDA_ERROR_ILLEGAL_ADDRESS.
     */
    bool (*access)(void *context, uintptr_t address, size_t nbytes, bool is_write, bool is_atomic,
                   const void *site);
};

/* Runs it to its end. The report is always filled; its result is returned. */
CUresult sim_launch_run(const struct sim_launch *launch, struct sim_report *report);

/*
 * The source file's name and the line of a site, while its module is loaded; else "?" and 0. Slow:
 * a debugger's tool is started. Without the tool the kernel's name stands for the file.
 */
void sim_site_describe(const void *site, char *file, size_t capacity, int *line);

#endif
