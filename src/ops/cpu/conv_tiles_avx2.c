/*
 * conv_tiles_avx2.c: the tiles of convolutions for AVX2 and FMA; conv_tiles.c chooses.
 */
#define GNI_TILES_SET gni_conv_tiles_avx2
#define GNI_TILES_NAME "avx2"
#define GNI_TILES_BYTES 32
#define GNI_TILES_ROWS 4
#define GNI_DOT_ROWS 3
#define GNI_DOT_COLUMNS 3
#include "ops/cpu/conv_tiles_body.h"
