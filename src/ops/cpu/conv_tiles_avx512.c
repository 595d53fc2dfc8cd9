/*
 * conv_tiles_avx512.c: the tiles of convolutions for AVX-512; conv_tiles.c chooses.
 */
#define GNI_TILES_SET gni_conv_tiles_avx512
#define GNI_TILES_NAME "avx512"
#define GNI_TILES_BYTES 64
#define GNI_TILES_ROWS 8
#define GNI_DOT_ROWS 4
#define GNI_DOT_COLUMNS 6
#include "ops/cpu/conv_tiles_body.h"
