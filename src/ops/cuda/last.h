/*
 * last.h: results that several blocks of one launch share: see last.cu.
 */
#ifndef GNI_OPS_CUDA_LAST_H
#define GNI_OPS_CUDA_LAST_H

#include "device/device.h"

#define GNI_LAST_SLOTS 16      /* streams that may share out a result at the same time */
#define GNI_LAST_COUNTERS 1056 /* results of a launch: with more, a block for each fills a GPU */

#define GNI_LAST_TEXT_(number) #number
#define GNI_LAST_TEXT(number) GNI_LAST_TEXT_(number)
/* What last.cu wants to be defined. */
#define GNI_LAST_DEFINITIONS                                                          \
    "#define SLOTS " GNI_LAST_TEXT(GNI_LAST_SLOTS) "\n"                               \
                                                   "#define COUNTERS " GNI_LAST_TEXT( \
                                                       GNI_LAST_COUNTERS) "\n"

/* The place of a stream in every such kernel, for counters of its own; -1 if there is none left. Streams that may be
 * captured have none: a graph can run beside the stream. */
int gni_last_slot(gn_stream *stream);

#endif
