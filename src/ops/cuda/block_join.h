/*
 * block_join.h: results that several blocks of one launch share: see block_join.cu.
 */
#ifndef GNI_OPS_CUDA_BLOCK_JOIN_H
#define GNI_OPS_CUDA_BLOCK_JOIN_H

#include "device/device.h"

#define GNI_BLOCK_JOIN_SLOTS 16 /* streams that may share out a result at the same time */
#define GNI_BLOCK_JOIN_COUNTERS \
    1056 /* results of a launch: with more, a block for each fills a GPU */

#define GNI_BLOCK_JOIN_TEXT_(number) #number
#define GNI_BLOCK_JOIN_TEXT(number) GNI_BLOCK_JOIN_TEXT_(number)
/* What block_join.cu wants to be defined. */
#define GNI_BLOCK_JOIN_DEFINITIONS                                     \
    "#define SLOTS " GNI_BLOCK_JOIN_TEXT(                              \
        GNI_BLOCK_JOIN_SLOTS) "\n"                                     \
                              "#define COUNTERS " GNI_BLOCK_JOIN_TEXT( \
                                  GNI_BLOCK_JOIN_COUNTERS) "\n"

/* The place of a stream in every such kernel, for counters of its own; -1 if there is none left. Streams that may be
 * captured have none: a graph can run beside the stream. */
int gni_block_join_slot(gn_stream *stream);

#endif
