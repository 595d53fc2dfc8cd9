/*
 * genesis/tune.h: what was found out about the speed of kernels by measuring them.
 *
 * Some operations can be launched in several ways, and which is fastest depends on the device and the shape. The first
 * operation of a class of shapes measures them on its own tensors; what it finds is kept with the compiled kernels
 * (gn_kernel_cache_clear() removes it), and later processes take it from there. GENESIS_AUTOTUNE says how much of this
 * there is: docs/cuda.md.
 */
#ifndef GENESIS_TUNE_H
#define GENESIS_TUNE_H

#include "genesis/base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    GN_TUNING_CANDIDATES_MOST = 16,
};

/* One way to do it. */
typedef struct gn_tuning_candidate {
    char values[88]; /* "threads=512 variant=prefetch" */
    double
        milliseconds; /* the shortest of several; below 0: it could not be run, or there was no time left for it */
} gn_tuning_candidate;

/* One class of problems. The first candidate is what is used where nothing is measured. */
typedef struct gn_tuning {
    char kernel[32];   /* "softmax" */
    char problem[160]; /* "float32 rows=4096..6143 columns=8192..12287" */
    char device[160];  /* what it is valid for: "NVIDIA H200, driver 13.0, genesis 1.0" */
    int32_t chosen;    /* the candidate that is used */
    int32_t count;
    gn_tuning_candidate candidates[GN_TUNING_CANDIDATES_MOST];
} gn_tuning;

/*
 * Copies what is known, in this process and on disk, for every device: at most `capacity` entries. `count` gets how
 * many there are, which may be more. `entries` may be NULL if capacity is 0.
 */
GN_API gn_status gn_tuning_list(gn_tuning *entries, size_t capacity, size_t *count) GN_NODISCARD;

#ifdef __cplusplus
}
#endif

#endif
