/*
 * tiles_avx2.c: the tiles for AVX2 and FMA; tiles.c chooses.
 */
#define GNI_TILES_SET gni_tiles_avx2
#define GNI_TILES_NAME "avx2"
#define GNI_TILES_BYTES 32
#define GNI_TILES_ROWS 6
#include "ops/cpu/tiles_body.h"
