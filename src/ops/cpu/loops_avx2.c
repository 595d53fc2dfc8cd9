/*
 * loops_avx2.c: the loops for AVX2 and F16C; loops.c chooses.
 */
#define GNI_LOOPS_SET gni_loops_avx2
#define GNI_LOOPS_NAME "avx2"
#include "ops/cpu/loops_body.h"
