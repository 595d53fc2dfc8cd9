/*
 * cpu_blas.h: OpenBLAS, found and loaded when the first large product of floating numbers is computed.
 *
 * GENESIS_BLAS names one, or says `off`. Otherwise the one that is in the process already, NumPy's in most programs;
 * then the files that gn_blas_add_file() was told are tried in their order (the Python package tells of the wheel that
 * it depends on, which has been tested with it, and of NumPy's own), and then the system's libopenblas. Only builds with threads of their own are taken: those without any may not be called
 * by several threads at once, and OpenMP hangs in a forked child.
 *
 * Each call computes on the calling thread alone: the work is cut into blocks that our own threads share out
 * (cpu_product.c), so that there is one number of threads, and one pool that is right after a fork. Between begin and end
 * OpenBLAS is therefore set to one thread, and then back: others in the process may use the same library.
 *
 * A library that somebody else has loaded computes the largest products with threads of its own. These wait busily for
 * a tenth of a second after each product that somebody has them compute, and our threads would not have the processors
 * to themselves meanwhile. Smaller ones are not for them: its threads wait for each other, so that a product takes
 * several times as long where other programs have work, too (bench/RESULTS.md). Which of the two it is must not depend
 * on what runs at the moment, since the bits of a result would. GENESIS_BLAS=own takes no such library.
 */
#ifndef GNI_OPS_CPU_BLAS_H
#define GNI_OPS_CPU_BLAS_H

#include "ops/cpu/tiles.h"

/* Whether there is one; looks for it at the first call. Any thread. */
bool gni_blas_is_there(void);

/* Whether there is one whose own threads should compute the largest products. */
bool gni_blas_is_shared(void);

/* Where there is one: around products, each of which uses as many of its threads as the first of those who are inside
 * said. Any thread, and several at once. */
void gni_blas_begin(int threads);
void gni_blas_end(void);

/* Between the two, by any thread: a block of float32 or float64, of any size up to INT_MAX, of whose matrices
 * one stride is 1 and the other long enough, c by rows. */
void gni_blas_multiply(const struct gni_block *block, gn_dtype dtype);

/* Where there is one: a routine of LAPACK or BLAS as Fortran calls it, such as "spotrf"; NULL: it has none. */
void *gni_blas_routine(const char *name);

/* Whether its integers have 64 bits. */
bool gni_blas_is_wide(void);

/* For tests: whether it may be used, from now on. */
void gni_blas_enable(bool is_enabled);

#endif
