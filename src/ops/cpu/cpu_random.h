/*
 * cpu_random.h: memory filled with random numbers, on the CPU.
 *
 * `out` has `count` elements of the dtype, one behind the other. Each depends on the seed, the offset, its index
 * and the arguments alone (philox.h), so that neither the number of threads nor the device changes anything.
 * Two fills with one seed and different offsets are independent.
 *
 * The caller has checked its arguments: what is said of them here is asserted.
 *
 * Threads: any, at once; the work itself runs on several (parallel.h).
 */
#ifndef GNI_OPS_CPU_RANDOM_H
#define GNI_OPS_CPU_RANDOM_H

#include "genesis/tensor.h"
#include "ops/philox.h"

/* float32 (multiples of 2^-24) or float64 (of 2^-53), from 0 to before 1. */
void gni_random_uniform(struct gni_philox philox, gn_dtype dtype, void *out, size_t count);

/* float32 or float64, mean 0 and variance 1. */
void gni_random_normal(struct gni_philox philox, gn_dtype dtype, void *out, size_t count);

/* bool or an integer type that has low and high - 1, from low to before high. No number is more likely than
 * another by more than 2^-32 of its probability. */
void gni_random_integers(struct gni_philox philox, gn_dtype dtype, int64_t low, int64_t high,
                         void *out, size_t count);

/* The numbers from 0 to count - 1 in random order: that of their random keys of 64 bits, as integers of the
 * narrow kind have them. GN_ERROR_OUT_OF_HOST_MEMORY, with nothing written, where there is no room to count. */
gn_status gni_random_permutation(struct gni_philox philox, int64_t *out, size_t count) GN_NODISCARD;

#endif
