/*
 * cpu_scan.h: cumulative sums, products, maxima and minima along one dimension, in the CPU's memory.
 *
 * An array is seen as [outer][length][inner], contiguous, and scanned along the middle. What is accumulated in:
 *
 *   out is bool or an integer     int64, which wraps around; the result is cut to the type of `out`
 *   both are halves               float32
 *   else                          float64
 *
 * Maxima and minima hand on NaN. The result does not depend on the number of threads: a row that is longer than
 * GNI_SCAN_BLOCK is always cut into blocks of that length, and the sum before a block is the sum of the sums of
 * those before it. Only products of floating elements are never cut.
 *
 * Threads: any, at once; each call may use several.
 */
#ifndef GNI_OPS_CPU_SCAN_H
#define GNI_OPS_CPU_SCAN_H

#include "tensor/dtype.h"

enum {
    GNI_SCAN_BLOCK = 1 << 15,
};

enum gni_scan {
    GNI_SCAN_SUM,
    GNI_SCAN_PRODUCT,
    GNI_SCAN_MAXIMUM,
    GNI_SCAN_MINIMUM,
};

/*
 * out[o][l][i] = the operation over in[o][0 .. l][i]. `out` may be `in` where both types have one size.
 * `indices` may be NULL; for maxima and minima it takes where the result was, the last such place. Floating
 * elements cannot be scanned into integers: GN_ERROR_INVALID_VALUE. The other failure is
 * GN_ERROR_OUT_OF_HOST_MEMORY, before anything is written.
 */
gn_status gni_scan(enum gni_scan op, const void *in, gn_dtype dtype, size_t outer, size_t length,
                   size_t inner, void *out, gn_dtype out_dtype, int64_t *indices) GN_NODISCARD;

#endif
