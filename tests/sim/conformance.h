/*
 * conformance.h: small driver programs whose outcome is asserted, for any driver.
 *
 *   program   a function of plain driver calls; what it expects is in its text
 *   hold      a stream is kept busy for as long as a program wants
 *
 * The programs run on the simulated GPU in every test run and on a real driver where there is one; where
 * they disagree, the simulator is wrong. Rules for programs:
 *   1. No assertion depends on timing. "Not finished yet" is proved by a hold: on a real GPU a kernel
 *      that spins on a page-locked flag. In the simulator kernels run to their end, so there a hold does
 *      nothing, and what is HELD may be finished or not.
 *   2. Nothing that a real driver may crash on: no handles that were destroyed or never were.
 *   3. A program leaves nothing behind. One that loses the context, or might, says so and runs in a
 *      process of its own.
 *   4. Where NVIDIA's documentation leaves the result open, the allowed results are listed.
 */
#ifndef GNI_TESTS_SIM_CONFORMANCE_H
#define GNI_TESTS_SIM_CONFORMANCE_H

#include "device/cuda/driver_api.h"
#include "device/cuda/nvrtc_api.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIB ((size_t)1 << 20)

typedef void conformance_function(const struct gni_cuda_functions *cuda);

enum {
    IN_CHILD = 1,  /* it loses the context, or might */
    UNSTARTED = 2, /* in a child that has not called cuInit() */
    TWO_DEVICES = 4,
};

struct conformance_program {
    const char *name;
    conformance_function *function;
    unsigned flags;
};

#define PROGRAM(name, flags) \
    {                        \
#name, name, flags   \
    }

/* The lists, each ending with a program without a name. */
extern const struct conformance_program conformance_driver[], conformance_memory[],
    conformance_virtual[], conformance_stream[], conformance_kernel[], conformance_capture[],
    conformance_nvrtc[];

/* What programs may use. */
extern struct conformance {
    const struct gni_nvrtc_functions *nvrtc;
    bool is_simulated;
    int device_count;
    CUcontext context; /* current when a program starts */
    CUmodule module;
    CUfunction add, put, sums, bounded, hold, trap; /* the kernels of test_conformance.c */
} conformance;

/* ---- expectations --------------------------------------------------------------------------- */

enum conformance_call {
#define CALL_NAME(name, ...) CALL_##name,
#define CALL_NVRTC(result, name, ...) CALL_##name,
    GNI_CUDA_FUNCTIONS(CALL_NAME)
    GNI_NVRTC_FUNCTIONS(CALL_NVRTC)
#undef CALL_NAME
#undef CALL_NVRTC
        CALL_COUNT
};

struct conformance_place {
    const char *file;
    int line;
    const char *text;
    int call; /* an enum conformance_call */
};

/* Is the result one of the list, which ends with -1? Counts the call, and reports a surprise. */
bool conformance_expect(struct conformance_place place, int result, const int *allowed);
bool conformance_check(struct conformance_place place, bool is_true);

/* Calls a driver function by its name and says which results are right. */
#define CU(function, arguments, ...)                                                           \
    conformance_expect(                                                                        \
        (struct conformance_place){__FILE__, __LINE__, #function #arguments, CALL_##function}, \
        (int)cuda->function arguments, (const int[]){__VA_ARGS__, -1})

#define NVRTC(function, arguments, ...)                                                        \
    conformance_expect(                                                                        \
        (struct conformance_place){__FILE__, __LINE__, #function #arguments, CALL_##function}, \
        (int)conformance.nvrtc->function arguments, (const int[]){__VA_ARGS__, -1})

/* The call must succeed, or the program ends here. */
#define NEED(function, arguments)                   \
    do {                                            \
        if (!CU(function, arguments, CUDA_SUCCESS)) \
            return;                                 \
    } while (0)

#define EXPECT(condition) \
    conformance_check((struct conformance_place){__FILE__, __LINE__, #condition, -1}, condition)

/* Results of questions about work that is held. */
#define HELD CUDA_ERROR_NOT_READY, conformance.is_simulated ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY

/* How a handle that is NULL is refused. */
#define BAD_HANDLE CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_INVALID_VALUE

/* ---- helpers -------------------------------------------------------------------------------- */

/* Keeps the stream busy until the release; one at a time. */
void hold_begin(const struct gni_cuda_functions *cuda, CUstream stream);
void hold_end(void);

CUstream stream_make(const struct gni_cuda_functions *cuda, unsigned flags);
CUevent event_make(const struct gni_cuda_functions *cuda);
CUdeviceptr ints_make(const struct gni_cuda_functions *cuda, size_t count, int value);
int int_read(const struct gni_cuda_functions *cuda, CUdeviceptr pointer, CUstream stream);

/* p[i] += value for i < count, in blocks of 64. */
void add_launch(const struct gni_cuda_functions *cuda, CUdeviceptr p, int count, int value,
                CUstream stream);

/* Runs a function in a thread of its own and waits for it; the context is current there. */
void thread_run(const struct gni_cuda_functions *cuda, conformance_function *body);

#endif
