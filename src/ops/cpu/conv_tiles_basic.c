/*
 * conv_tiles_basic.c: the tiles of convolutions for the basic instruction set; conv_tiles.c chooses.
 */
#define GNI_TILES_SET gni_conv_tiles_basic
#define GNI_TILES_NAME "basic"
#define GNI_TILES_BYTES 16
#define GNI_TILES_ROWS 4
#define GNI_DOT_ROWS 3
#define GNI_DOT_COLUMNS 3
#include "ops/cpu/conv_tiles_body.h"
