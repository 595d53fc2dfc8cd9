/*
 * tiles_basic.c: the tiles for every processor; tiles.c chooses.
 */
#define GNI_TILES_SET gni_tiles_basic
#define GNI_TILES_NAME "basic"
#define GNI_TILES_BYTES 16
#define GNI_TILES_ROWS 6
#include "ops/cpu/tiles_body.h"
