/*
 * kernel.h: kernels from source, compiled once and kept.
 *
 *     static const struct gni_kernel_source source = {.name = "scale", .text = scale_text};
 *     struct gni_kernel *kernel;
 *     GN_TRY(gni_kernel_get(device, &source, &kernel));
 *     GN_TRY(gni_kernel_launch(kernel, stream, &(struct gni_launch){.grid = {blocks, 1, 1}, ...}));
 *
 * Who makes texts from something smaller gives that as a signature, and asks for it first, so that the
 * text is made only when it must be compiled:
 *
 *     struct gni_kernel *kernel = gni_kernel_find(device, signature, size);
 *     if (kernel == NULL) {
 *         make the text;
 *         GN_TRY(gni_kernel_build(device, name, &text, signature, size, &kernel));
 *     }
 *
 * A kernel that this process has not seen comes from the archive (archive.h), from the disk cache, or from NVRTC. Who need
 * not wait for it asks for it in the background (background.h).
 *
 * Invariants:
 *   J1  a kernel that was handed out can be launched until gn_shutdown(), which the caller keeps apart
 *       from all other calls: gni_kernel_clear() makes kernels be forgotten, not unloaded. So a pointer
 *       may be kept, with gni_shutdown_count() beside it where shutdowns are to be survived;
 *   J2  a kernel that is in the table does not change, and is found without a lock;
 *   J3  one thread makes a kernel, and others that ask for the same one meanwhile wait for it, and fail
 *       as it fails. Different kernels are made at the same time. That a text without headers does not
 *       compile is remembered until gni_kernel_clear(); other failures are not;
 *   J4  kernel_mutex is not held while a kernel is compiled, loaded, or read from disk or written to it;
 *   J5  what is on disk was loaded once by the process that wrote it;
 *   J6  a kernel that is queued in the background is made by who asks for it here, and leaves the queue.
 */
#ifndef GNI_JIT_KERNEL_H
#define GNI_JIT_KERNEL_H

#include "base/builder.h"
#include "device/device.h"
#include "genesis/kernel.h"
#include "genesis/profile.h"
#include "jit/profile.h"
#include "jit/source.h"

struct gni_kernel {
    struct gni_kernel *next;        /* in its place of the table; constant: J2 */
    struct gni_kernel *made_before; /* all of them, for gn_shutdown() */
    uint64_t hash;                  /* of the device and what it is known by */
    gn_device *device;
    struct gni_module module;
    struct gni_function function;
    struct gni_function_properties properties;
    gn_kernel_origin origin;
    double compile_ms; /* of NVRTC, or 0 */
    bool is_general;   /* serves many programs: tier 0 */
    bool is_in_table;  /* under the mutex of kernel.c */
    _Atomic(uint64_t) launch_count;
    struct gni_profile_total total;     /* of the launches that were measured */
    _Atomic(size_t) shared_bytes_max;   /* dynamic ones that it may use as it is; only grows */
    char name[GN_KERNEL_NAME_CAPACITY]; /* for people; cut if it is longer */
    bool has_signature;
    size_t identity_size;
    char identity[]; /* its signature, or the pieces of its source */
};

/*
 * Borrows the kernel of a source on a device, made if need be, which takes some 50 milliseconds where the
 * disk does not have it. A kernel that is there costs what comparing its signature or source costs.
 *
 * Fails as gni_nvrtc_compile() does, or as the driver does when it loads code; GN_ERROR_UNSUPPORTED on the
 * CPU.
 */
gn_status gni_kernel_get(gn_device *device, const struct gni_kernel_source *source,
                         struct gni_kernel **kernel) GN_NODISCARD;

/* Makes many kernels, as many at a time as there are processors. Fails as the first that failed; all are
 * tried. */
gn_status gni_kernel_prepare(gn_device *device, const struct gni_kernel_source *sources,
                             size_t count) GN_NODISCARD;

/* The same for a text that was put together, which ends: its failures are this call's, too. */
gn_status gni_kernel_build(gn_device *device, const char *name, struct gni_builder *text,
                           const void *signature, size_t signature_size,
                           struct gni_kernel **kernel) GN_NODISCARD;

/* The same for a kernel of tier 0, which serves many programs. */
gn_status gni_kernel_build_general(gn_device *device, const char *name, struct gni_builder *text,
                                   const void *signature, size_t signature_size,
                                   struct gni_kernel **kernel) GN_NODISCARD;

/* The same, but nothing is compiled: GN_ERROR_UNAVAILABLE where neither archive nor disk have the kernel. */
gn_status gni_kernel_build_known(gn_device *device, const char *name, struct gni_builder *text,
                                 const void *signature, size_t signature_size,
                                 struct gni_kernel **kernel) GN_NODISCARD;

/* The same, but the kernel is only made to be stored on disk: it is not in the table. */
gn_status gni_kernel_build_stored(gn_device *device, const char *name, struct gni_builder *text,
                                  const void *signature, size_t signature_size) GN_NODISCARD;

/* Borrows the kernel that gni_kernel_get() was given with this signature; NULL if there is none. */
struct gni_kernel *gni_kernel_find(gn_device *device, const void *signature, size_t size);

/*
 * Submits a launch. The stream is of the kernel's device; the arguments are copied before the call
 * returns. A block may use as much dynamic shared memory as the device has. With GENESIS_DEBUG=sync the
 * call waits for the end of the kernel, and fails if the kernel does.
 */
gn_status gni_kernel_launch(struct gni_kernel *kernel, gn_stream *stream,
                            const struct gni_launch *launch) GN_NODISCARD;

/* Part of every launch: with GENESIS_DEBUG=sync waits for what was submitted to a stream, and fails if that does. */
gn_status gni_launch_check(gn_stream *stream) GN_NODISCARD;

/* Forgets all kernels of the process: the next gni_kernel_get() makes them again (J1). */
void gni_kernel_clear(void);

/* How many kernels the process knows. */
size_t gni_kernel_count(void);

/* Calls a function with each of them and its place among them, 0 for the oldest; gives how many there are. The function
 * takes no lock, and asks for no kernel. */
typedef void gni_kernel_visitor(void *context, const struct gni_kernel *kernel, size_t index);
size_t gni_kernel_visit(gni_kernel_visitor *visit, void *context);

/* Sees to it that gn_shutdown() ends the kernels; otherwise the first gni_kernel_get() does. */
void gni_kernel_start(void);

#endif
