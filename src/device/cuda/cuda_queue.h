/*
 * cuda_queue.h: a thread that submits launches, so that the next operation is prepared while the driver takes the last.
 *
 * A launch costs the driver several microseconds of the host's time, which is more than all that the library does for a
 * small operation. In a run of launches, with no other call of the driver in between, a second thread makes them, in
 * their order; the first is ahead of it by QUEUE_LENGTH at most. Those that are there when it looks are submitted
 * together (cuda_bundle.h).
 *
 * Nobody can tell, because
 *   LO1  every other call of the driver for the device waits until all that was pushed before it is submitted:
 *       gni_cuda_enter() sees to it;
 *   LO2  nothing is pushed while others could know: while memory of tensors is reached by others or a stream's handle is
 *       known to them (gn_device.direct_count, gn_stream.is_shared), on streams that are not ours, during captures, and
 *       while memory is moved (cuda_gate.h).
 *       What begins one of these waits as in LO1.
 *
 * A launch that fails is reported, once and with its own text, by the next call that launches, copies, fills, captures,
 * replays, or waits for a stream or the device. The others are made where nobody would learn of it, too, as when
 * something is given back.
 *
 * Threads: any may push; a launch is behind those that were pushed before it, by whomever.
 */
#ifndef GNI_DEVICE_CUDA_CUDA_QUEUE_H
#define GNI_DEVICE_CUDA_CUDA_QUEUE_H

#include "device/cuda/cuda.h"

/* Takes a launch; false: it is to be made directly. */
bool gni_cuda_queue_push(struct gni_cuda_device *device, const struct gni_function *function,
                         gn_stream *stream, const struct gni_launch *launch);

/* Waits until all launches that were pushed are submitted. */
void gni_cuda_queue_wait(struct gni_cuda_queue *queue);

/* The same, and reports one that failed. */
gn_status gni_cuda_queue_report(struct gni_cuda_device *device);

/* Gives back what was made to submit launches on a stream, which goes; on all of them with NULL, as a module goes. */
void gni_cuda_queue_forget(struct gni_cuda_device *device, const CUstream *stream);

/* The table's slot: waits for the same, and leaves what has failed to others. */
void gni_cuda_submit(gn_device *device);

#endif
