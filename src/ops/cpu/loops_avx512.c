/*
 * loops_avx512.c: the loops for AVX-512 (F, BW, DQ, VL); loops.c chooses.
 */
#define GNI_LOOPS_SET gni_loops_avx512
#define GNI_LOOPS_NAME "avx512"
#include "ops/cpu/loops_body.h"
