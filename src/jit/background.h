/*
 * background.h: kernels that threads of the library's own make while the program goes on.
 *
 *     struct gni_kernel *kernel = gni_kernel_find(device, signature, size);
 *     if (kernel == NULL && !gni_kernel_is_requested(device, signature, size, cost)) {
 *         make the text;
 *         gni_kernel_request(device, name, &text, signature, size, cost, 0);
 *     }
 *     launch the kernel, or let the interpreter run the program;
 *
 * A request goes through these states; gone means that nothing is known of it:
 *
 *     queued -----> running -----> gone      the kernel is in the table of kernel.h
 *       |              |  +------> stored    it is on disk for the next process: GNI_REQUEST_DISK_ONLY
 *       v              +---------> refused   it cannot be made
 *     gone: gni_kernel_get() makes it itself, or gni_kernel_clear(), gn_shutdown() and exit() drop it
 *
 * Invariants:
 *   BG1  a request never fails and waits for no compilation. What goes wrong in the background is printed once, and
 *        the kernel is refused: its program goes on without it. For want of memory it is tried again after a while;
 *   BG2  a request is made by gni_kernel_build(), so J1 to J5 of kernel.h hold for it. Who calls gni_kernel_get()
 *        for a request that runs waits for it;
 *   BG3  while a request is queued there is a thread that will take it. The one with the largest cost goes first; of
 *        equal ones the oldest;
 *   BG4  threads end when there was nothing to do for a while, and before gn_shutdown() closes the devices and exit()
 *        ends the driver and NVRTC. These two wait for compilations that run, and drop what is queued. Nothing can be done
 *        for an exit() while NVRTC is being loaded or compiles for the first time: it runs NVRTC's handlers first. Python
 *        calls gn_kernel_stop() before;
 *   BG5  a forked child has no threads and no requests.
 *
 * Threads: any.
 */
#ifndef GNI_JIT_BACKGROUND_H
#define GNI_JIT_BACKGROUND_H

#include "base/builder.h"
#include "device/device.h"
#include "jit/source.h"

enum {
    /* The kernel is stored on disk for the next process, and this one never finds it in the table. */
    GNI_REQUEST_DISK_ONLY = 1u << 0,
    /* The same where another version of NVRTC compiles it than the archive's: functions may then have other bits. */
    GNI_REQUEST_SAME_VERSION = 1u << 1,
};

/*
 * Asks for the kernel of a signature. Takes the text, which ends, as gni_kernel_build() does. `cost` says what the
 * program takes without the kernel, in any unit that all callers share.
 */
void gni_kernel_request(gn_device *device, const char *name, struct gni_builder *text,
                        const void *signature, size_t signature_size, uint64_t cost,
                        unsigned flags);

/* Whether there is nothing to ask for: the kernel is queued (which adds to its cost), being made, stored, or refused. */
bool gni_kernel_is_requested(gn_device *device, const void *signature, size_t size, uint64_t cost);

/* Asks for a source, which is copied. gni_kernel_get() repeats its failure. */
void gni_kernel_request_source(gn_device *device, const struct gni_kernel_source *source);

/* Waits until nothing is queued and nothing runs; false: it took longer. UINT64_MAX: as long as it takes. */
bool gni_background_wait(uint64_t timeout_ms);

/* Drops what is queued, and ends all threads, which first end what runs. The next request starts some again. */
void gni_background_stop(void);

/* ---- for kernel.c and nvrtc.c ---- */

/* The caller is about to make the kernel of a signature: takes it out of the queue. Waits for one that is being stored. */
void gni_background_leave(gn_device *device, const void *signature, size_t size);

/* Drops what is queued, and forgets what was refused or stored. */
void gni_background_clear(void);

/* Whether the calling thread is one of those that make requests. */
bool gni_background_is_thread(void);

/* exit() stops the threads before it runs the handlers that have been registered so far. */
void gni_background_guard_exit(void);

/* ---- for tests ---- */

int gni_background_thread_count(void);

/* After how long without work a thread ends; 0 puts the usual time back. */
void gni_background_set_idle_ms(unsigned idle_ms);

#endif
