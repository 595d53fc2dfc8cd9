/*
 * cuda_bundle.h: launches that wait together are submitted together.
 *
 * A launch costs the driver 2.8 us of the host's time, and 3.5 us without early starts; a graph of two kernels costs
 * 1.9 us, one of eight 2.9 us, with all of their arguments set anew (H200, driver 580). So the thread that submits
 * launches (cuda_queue.h) makes one graph of those that are there when it looks. The GPU needs a microsecond more where
 * a graph ends, so that the thread waits for more of them while the GPU has enough to do.
 *
 * A bundle is such a graph for one number of kernels in a row. It is made once for a stream, and its kernels are others
 * each time. What is on its way keeps what it was launched with.
 *
 * Invariants:
 *   CB1  a bundle is launched on one stream only: the driver has an executable graph wait for its own last launch,
 *       wherever that was, and streams must not wait for each other here;
 *   CB2  a bundle goes before its stream does, and before any module does: the driver may look at the kernels that it had.
 *
 * Threads: those who hold the queue's right to submit.
 */
#ifndef GNI_DEVICE_CUDA_CUDA_BUNDLE_H
#define GNI_DEVICE_CUDA_CUDA_BUNDLE_H

#include "device/cuda/cuda.h"

enum {
    GNI_BUNDLE_LEAST = 2,   /* launches for which a graph is cheaper than they are */
    GNI_BUNDLE_MOST = 8,    /* launches in one */
    GNI_BUNDLE_STREAMS = 8, /* of a device that have bundles: the first ones that want them */
};

struct gni_cuda_bundle {
    CUgraph graph;    /* its nodes name those of exec */
    CUgraphExec exec; /* NULL: not made yet */
    CUgraphNode nodes[GNI_BUNDLE_MOST];
};

/* Of a device. All zero: none yet. */
struct gni_cuda_bundles {
    int failures; /* in a row; after some of them there are no bundles any more */
    struct gni_cuda_bundle_set {
        bool is_used;
        CUstream stream;
        struct gni_cuda_bundle
            of[2][GNI_BUNDLE_MOST + 1]; /* by is_early, and the number of launches */
    } sets[GNI_BUNDLE_STREAMS];
};

/* Submits launches, GNI_BUNDLE_LEAST to GNI_BUNDLE_MOST, which go together: see below; with the context current, and relaxed about
 * captures. False: none of them is submitted, and who launches them by themselves learns why. */
bool gni_cuda_bundle_submit(struct gni_cuda_bundles *bundles, const struct gni_cuda_driver *driver,
                            const struct gni_cuda_launch *const launches[], void *const arguments[],
                            int count);

/* Whether a launch can be in one bundle with another one. */
static inline bool gni_cuda_bundle_fits(const struct gni_cuda_launch *launch,
                                        const struct gni_cuda_launch *other)
{
    return launch->stream == other->stream && launch->is_early == other->is_early;
}

/* How far ahead of the GPU submissions are: by an event that is recorded on one stream now and then. All zero: not known.
 */
struct gni_cuda_pace {
    CUevent event; /* NULL: nobody can tell */
    CUstream stream;
    bool is_recorded;
    int since; /* submissions behind it */
};

/* With the context current, as all about it. It may fail, and then nobody is ever ahead. */
void gni_cuda_pace_init(struct gni_cuda_pace *pace, const struct gni_cuda_driver *driver);
void gni_cuda_pace_deinit(struct gni_cuda_pace *pace, const struct gni_cuda_driver *driver);

/* Something was submitted on the stream. */
void gni_cuda_pace_note(struct gni_cuda_pace *pace, const struct gni_cuda_driver *driver,
                        CUstream stream);

/* Whether the stream has several submissions before it that are not done: the next one can wait some microseconds. */
bool gni_cuda_pace_is_ahead(struct gni_cuda_pace *pace, const struct gni_cuda_driver *driver,
                            CUstream stream);

/* Gives back the bundles of a stream; of all with NULL. */
void gni_cuda_bundles_drop(struct gni_cuda_bundles *bundles, const struct gni_cuda_driver *driver,
                           const CUstream *stream);

#endif
