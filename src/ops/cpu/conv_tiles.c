/*
 * conv_tiles.c: which instruction set's tiles convolutions use: see conv_tiles.h.
 */
#include "ops/cpu/conv_tiles.h"

#include "ops/cpu/loops.h"

#include <string.h>

static const struct gni_conv_tiles *set_get(void)
{
#ifdef GNI_LOOPS_X86
    const char *name = gni_loops_name();
    if (strcmp(name, gni_conv_tiles_avx512.name) == 0)
        return &gni_conv_tiles_avx512;
    if (strcmp(name, gni_conv_tiles_avx2.name) == 0 && __builtin_cpu_supports("fma"))
        return &gni_conv_tiles_avx2;
#endif
    return &gni_conv_tiles_basic;
}

const struct gni_conv_tile *gni_conv_tile_find(gn_dtype computing)
{
    return computing == GN_FLOAT64 ? &set_get()->float64 : &set_get()->float32;
}
