/*
 * blas.h: OpenBLAS, found and loaded when the first large product of floating numbers is computed.
 *
 * GENESIS_BLAS names one, or says `off`. Otherwise the files that gn_blas_add_file() was told are tried in their order
 * (the Python package tells of the wheel that it depends on, which has been tested with it, and of NumPy's own), and
 * then the system's libopenblas. Only builds with threads of their own are taken: those without any may not be called
 * by several threads at once, and OpenMP hangs in a forked child.
 *
 * Each call computes on the calling thread alone: the work is cut into blocks that our own threads share out
 * (product.c), so that there is one number of threads, and one pool that is right after a fork. Between begin and end
 * OpenBLAS is therefore set to one thread, and then back: others in the process may use the same library.
 */
#ifndef GNI_OPS_CPU_BLAS_H
#define GNI_OPS_CPU_BLAS_H

#include "ops/cpu/tiles.h"

/* Whether there is one; looks for it at the first call. Any thread. */
bool gni_blas_is_there(void);

/* Where there is one: around products. Any thread, and several at once. */
void gni_blas_begin(void);
void gni_blas_end(void);

/* Between the two, by any thread: a block of float32 or float64, of any size up to INT_MAX, of whose matrices
 * one stride is 1 and the other long enough, c by rows. */
void gni_blas_multiply(const struct gni_block *block, gn_dtype dtype);

/* For tests: whether it may be used, from now on. */
void gni_blas_enable(bool is_enabled);

#endif
