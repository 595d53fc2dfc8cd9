/*
 * loops_set.h: all loops of one instruction set, as the files that are compiled for it export them.
 */
#ifndef GNI_OPS_CPU_LOOPS_SET_H
#define GNI_OPS_CPU_LOOPS_SET_H

#include "ops/cpu/chains.h"
#include "ops/cpu/loops.h"

enum {
    GNI_SIZE_COUNT = 4, /* of elements: 1, 2, 4 and 8 bytes */
};

/* Operations that have row loops. */
enum {
    GNI_ROW_LOOP_ADD,
    GNI_ROW_LOOP_SUBTRACT,
    GNI_ROW_LOOP_MULTIPLY,
    GNI_ROW_LOOP_DIVIDE,
    GNI_ROW_LOOP_COUNT,
};

struct gni_loops_set {
    const char *name;
    gni_loop ops[GNI_OP_COUNT][GN_DTYPE_COUNT];        /* by operation and computing type */
    gni_loop converts[GN_DTYPE_COUNT][GN_DTYPE_COUNT]; /* from, to */
    gni_loop rounds[GN_DTYPE_COUNT];                   /* the halves only */
    gni_gather gathers[GNI_SIZE_COUNT];                /* by the logarithm of the size */
    struct gni_reducers reducers[GNI_REDUCTION_COUNT][GN_DTYPE_COUNT];
    struct gni_reducers squares[GN_DTYPE_COUNT]; /* float32 and float64 only */
    gni_row_reducer row_reducer;
    gni_product_reducer product_reducer;
    gni_chain chains[GN_DTYPE_COUNT];                 /* float32 and float64 only */
    gni_row_loop row_loops[GNI_ROW_LOOP_COUNT][2][2]; /* by operation, 1: float64, and place */
};

extern const struct gni_loops_set gni_loops_basic;
extern const struct gni_loops_set gni_loops_avx2;   /* on x86 only */
extern const struct gni_loops_set gni_loops_avx512; /* on x86 only */

#endif
