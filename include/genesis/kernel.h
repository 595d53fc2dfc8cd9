/*
 * genesis/kernel.h: kernels from CUDA C, compiled when the program runs.
 *
 *     gn_kernel *kernel;
 *     gn_kernel_create(device, "extern \"C\" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }",
 *                      "twice", NULL, &kernel);
 *     gn_kernel_launch(kernel, &(gn_kernel_shape){.grid = {1, 1, 1}, .block = {32, 1, 1}},
 *                      (void *[]){&x}, stream);
 *
 * A text is compiled by NVRTC, once in a process for each device, and kept on disk for the next process
 * (docs/cuda.md). Code stays on the device until gn_shutdown().
 */
#ifndef GENESIS_KERNEL_H
#define GENESIS_KERNEL_H

#include "genesis/device.h"
#include "genesis/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gn_kernel gn_kernel;

/*
 * Compiles a text for a device, or finds what was compiled before. `name` is the kernel's: as C++ writes it,
 * such as "scale<float>", or plain for an extern "C" kernel. `options` are NVRTC's, with a NULL behind the
 * last; NULL: none. The architecture is added by itself. A text that includes headers is compiled anew in
 * each process: they may have changed.
 *
 * GN_ERROR_COMPILATION, with the first lines of the compiler's log, if the text is wrong;
 * GN_ERROR_UNAVAILABLE without NVRTC; GN_ERROR_UNSUPPORTED on the CPU. Takes some 50 milliseconds when
 * something is compiled. Nothing is kept of the texts that are given. The kernel belongs to the caller.
 */
GN_API gn_status gn_kernel_create(gn_device *device, const char *text, const char *name,
                                  const char *const *options, gn_kernel **kernel) GN_NODISCARD;

/*
 * Asks for the same in the background, and does not wait: threads of the library's own compile, whose number
 * GENESIS_COMPILE_THREADS limits. gn_kernel_create() finds the kernel then, waits for it, or makes it itself. What goes wrong
 * meanwhile is printed to standard error, and a wrong text is reported by gn_kernel_create(). Only arguments that are NULL or
 * empty, and the CPU, fail here.
 */
GN_API gn_status gn_kernel_request(gn_device *device, const char *text, const char *name,
                                   const char *const *options) GN_NODISCARD;

/*
 * Waits until all kernels are compiled that were asked for in the background, by gn_kernel_request() or by operations on
 * tensors (GENESIS_TIERS). GN_ERROR_NOT_READY: it takes longer than that. UINT64_MAX: as long as it takes. A kernel that cannot
 * be compiled is no failure here.
 */
GN_API gn_status gn_kernel_wait(uint64_t timeout_ms) GN_NODISCARD;

/*
 * Drops the kernels that wait to be compiled in the background, and waits for those that are being compiled. exit() does the
 * same; who ends the process while NVRTC compiles for the first time calls this before, since NVRTC registers exit handlers
 * of its own meanwhile.
 */
GN_API void gn_kernel_stop(void);

/* Launches that were submitted still run to their end. NULL is allowed. */
GN_API void gn_kernel_destroy(gn_kernel *kernel);

GN_API gn_device *gn_kernel_get_device(const gn_kernel *kernel);

typedef struct gn_kernel_properties {
    int parameter_count; /* -1: not known, with a driver before CUDA 12.4 */
    int max_threads_per_block;
    int register_count;
    size_t static_shared_bytes;
    size_t local_bytes; /* of each thread: spills and arrays */
} gn_kernel_properties;

GN_API gn_status gn_kernel_get_properties(const gn_kernel *kernel,
                                          gn_kernel_properties *properties) GN_NODISCARD;

/* The size of a parameter in bytes; 0 where it is not known, or there is none with this index. */
GN_API size_t gn_kernel_get_parameter_size(const gn_kernel *kernel, int index);

typedef struct gn_kernel_shape {
    unsigned grid[3];    /* blocks */
    unsigned block[3];   /* threads of a block */
    size_t shared_bytes; /* dynamic shared memory of a block */
} gn_kernel_shape;

/*
 * Submits a launch to a stream of the kernel's device; NULL: the calling thread's current one.
 * `arguments` has the address of each argument, in order; all are copied before the call returns, and
 * their number and sizes are the caller's word. A kernel that fails later loses the device: other
 * calls report it, or this one with GENESIS_DEBUG=sync.
 */
GN_API gn_status gn_kernel_launch(gn_kernel *kernel, const gn_kernel_shape *shape, void **arguments,
                                  gn_stream *stream) GN_NODISCARD;

/*
 * Forgets every compiled kernel, in this process and on disk: the next one is compiled again. Kernels that
 * exist can still be launched. `removed` (may be NULL) gets the number of files.
 */
GN_API gn_status gn_kernel_cache_clear(size_t *removed) GN_NODISCARD;

/* Where the code of a kernel came from. */
typedef enum gn_kernel_origin {
    GN_KERNEL_FROM_COMPILER, /* NVRTC, in this process */
    GN_KERNEL_FROM_DISK,     /* the cache on disk */
    GN_KERNEL_FROM_ARCHIVE,  /* what came with the library */
} gn_kernel_origin;

/* A kernel that the process has loaded. */
typedef struct gn_kernel_description {
    char name[GN_KERNEL_NAME_CAPACITY];
    int device; /* the index of the CUDA device */
    int tier; /* 0: it came with the library, or serves many programs; 1: it was compiled for what it does */
    gn_kernel_origin origin;
    double compile_ms; /* of NVRTC; 0 if it was not compiled in this process */
    uint64_t
        launch_count; /* a graph's launch counts when it is captured, and not when it is replayed */
    uint64_t measured_count; /* launches of which gn_profile_enable() has made the time known */
    double gpu_ms;           /* of those, together */
} gn_kernel_description;

/*
 * Copies what is known of the loaded kernels, the oldest first: at most `capacity` of them. `count` gets how many there are,
 * which may be more. `kernels` may be NULL if capacity is 0. Kernels of other libraries, such as cuBLASLt's, are not listed.
 */
GN_API gn_status gn_kernel_list(gn_kernel_description *kernels, size_t capacity,
                                size_t *count) GN_NODISCARD;

/* The archive of kernels that were compiled when the library was built (docs/cuda.md). */
typedef struct gn_kernel_archive_description {
    bool is_found;
    bool is_used;            /* false, too, where the driver cannot load it */
    int nvrtc_version;       /* that compiled it: 13000 is 13.0 */
    size_t kernel_count;     /* each for all architectures */
    size_t nbytes;           /* of the file */
    char architectures[128]; /* "sm_80 sm_90 compute_90": machine code, and PTX */
    char path[512];          /* where it is, or was looked for */
    char reason[512];        /* why it is not used, "" if it is */
} gn_kernel_archive_description;

GN_API void gn_kernel_archive_describe(gn_kernel_archive_description *description);

#ifdef __cplusplus
}
#endif

#endif
