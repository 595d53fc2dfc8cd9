/*
 * fake_cuda.h: what a test can ask of the stand-in for the CUDA driver (fake_cuda.c).
 *
 * The driver is loaded by Genesis, never linked; a test finds these functions in the library that
 * Genesis has loaded:
 *
 *     struct fake_control fake = fake_control_load(path);
 *     fake.fail("cuMemAlloc", 1, CUDA_ERROR_UNKNOWN, 0);
 *
 * The knobs that are read from the environment when the library is loaded:
 *
 *   FAKE_CUDA_DEVICES      how many devices there are; 2
 *   FAKE_CUDA_MEMORY       bytes of each device; 64 MiB
 *   FAKE_CUDA_VERSION      what cuDriverGetVersion() gives
 *   FAKE_CUDA_MISSING      names, separated by commas, that cuGetProcAddress() does not know
 *   FAKE_CUDA_INIT_RESULT  what cuInit() returns
 *   FAKE_CUDA_FORKS        1: cuInit() and two others fork, as to start a helper
 *   FAKE_CUDA_DELAY_US     how long each call takes at least, so that threads meet
 */
#ifndef GNI_TESTS_FAKE_CUDA_H
#define GNI_TESTS_FAKE_CUDA_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How the stand-in ends a process that must not have called it. */
#define FAKE_EXIT_FORKED 98 /* a child called a driver that its parent had started */
#define FAKE_EXIT_LATE 99   /* a call came after the driver's exit handler */

/*
 * X(result, name, arguments): exported as fake_NAME, and a field of struct fake_control.
 *
 *   fail            the nth call from now of the function (NULL: of any but the lookups of error
 *                   texts) gives this result without doing anything; so does every later one if it
 *                   is persistent. Replaces the fault that was set before; nth 0 sets none.
 *   fault_count     how often the present fault struck
 *   call_count      calls of a function since the start (NULL: of all, without the lookups)
 *   live_allocations  memory, address ranges, physical memory, mappings, host blocks
 *   live_objects    streams, events and modules
 *   context_depth   how many contexts are on the calling thread's stack
 *   is_active       is the primary context of a device retained?
 *   stream_flags    the flags a stream was created with
 *   capture         sets the CUstreamCaptureStatus of a stream (-1: leaves it) and returns it
 */
#define FAKE_CONTROLS(X)                                                          \
    X(void, fail, (const char *function, int nth, int result, int is_persistent)) \
    X(int, fault_count, (void))                                                   \
    X(long, call_count, (const char *function))                                   \
    X(int, live_allocations, (void))                                              \
    X(int, live_objects, (void))                                                  \
    X(int, context_depth, (void))                                                 \
    X(int, is_active, (int device))                                               \
    X(int, stream_flags, (void *stream))                                          \
    X(int, capture, (void *stream, int status))

struct fake_control {
#define FAKE_FIELD(result, name, arguments) result(*name) arguments;
    FAKE_CONTROLS(FAKE_FIELD)
#undef FAKE_FIELD
};

/* The stand-in that Genesis has loaded from this path. */
static inline struct fake_control fake_control_load(const char *path)
{
    struct fake_control control;
    void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (library == NULL) {
        fprintf(stderr, "the stand-in %s is not loaded\n", path);
        exit(1);
    }
#define FAKE_LOAD(result, name, arguments)               \
    do {                                                 \
        void *address = dlsym(library, "fake_" #name);   \
        memcpy(&control.name, &address, sizeof address); \
    } while (0);
    FAKE_CONTROLS(FAKE_LOAD)
#undef FAKE_LOAD
    return control;
}

#endif
