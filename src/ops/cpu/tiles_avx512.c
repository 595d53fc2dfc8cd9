/*
 * tiles_avx512.c: the tiles for AVX-512; tiles.c chooses.
 */
#define GNI_TILES_SET gni_tiles_avx512
#define GNI_TILES_NAME "avx512"
#define GNI_TILES_BYTES 64
#define GNI_TILES_ROWS 12
#include "ops/cpu/tiles_body.h"
