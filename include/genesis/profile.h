/*
 * genesis/profile.h: how long kernels take on the GPU.
 *
 *     gn_profile_enable(true);
 *     ...                                    launches, from any thread
 *     gn_profile_wait();
 *     gn_kernel_run runs[64];
 *     size_t count;
 *     do {
 *         gn_profile_take(runs, 64, &count); oldest end first
 *         ...
 *     } while (count == 64);
 *
 * While this is on, every launch lies between two events of its stream: kernels of users, of operations on tensors,
 * and cuBLASLt's. Off, it costs one branch for each launch. A launch that is captured into a graph is not measured.
 * Operations on tensors may wait (genesis/ops.h): gn_flush() submits them.
 */
#ifndef GENESIS_PROFILE_H
#define GENESIS_PROFILE_H

#include "genesis/base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    GN_KERNEL_NAME_CAPACITY = 160, /* bytes, with the final NUL; longer names are cut */
};

/* One launch that has run. Times are of CLOCK_MONOTONIC, as those of genesis/history.h. */
typedef struct gn_kernel_run {
    char name[GN_KERNEL_NAME_CAPACITY];
    int device;         /* the index of the CUDA device */
    uint64_t stream_id; /* gn_stream_get_id() */
    unsigned grid[3];   /* zeros where a library chose them */
    unsigned block[3];
    size_t shared_bytes;   /* dynamic shared memory of a block */
    uint64_t submitted_ns; /* when the host launched it */
    uint64_t
        start_ns; /* when the GPU began with it: the GPU's clock, tied to the host's by the fact that
                              nothing starts before it is submitted */
    double
        duration_ms; /* between the two events: with some microseconds that they take themselves */
} gn_kernel_run;

/* Measures launches from now on, or no longer. What was measured stays until it is taken,
 * or until gn_shutdown(). */
GN_API gn_status gn_profile_enable(bool is_on) GN_NODISCARD;
GN_API bool gn_profile_is_on(void);

/* Waits for the launches that are being measured. Fails as the device does; the others are waited for. */
GN_API gn_status gn_profile_wait(void) GN_NODISCARD;

/* Moves at most `capacity` runs to the caller. `count` gets how many there were: fewer than capacity if no more are
 * known. */
GN_API gn_status gn_profile_take(gn_kernel_run *runs, size_t capacity, size_t *count) GN_NODISCARD;

/* Runs that could not be measured, or that nobody took in time: the library keeps 65,536. */
GN_API uint64_t gn_profile_get_lost_count(void);

/*
 * Is called when runs have become known: after a wait for a device, a stream or an event, and at
 * launches. It may be in any thread and within any call of the library, so it may note the fact, and do no more. NULL:
 * none.
 */
GN_API void gn_profile_set_hook(void (*hook)(void));

#ifdef __cplusplus
}
#endif

#endif
