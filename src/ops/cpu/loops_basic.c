/*
 * loops_basic.c: the loops for the basic instruction set of the processor; loops.c chooses.
 */
#define GNI_LOOPS_SET gni_loops_basic
#define GNI_LOOPS_NAME "basic"
#include "ops/cpu/loops_body.h"
