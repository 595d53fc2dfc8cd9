/*
 * cpu.h: the CPU as a device. device.c opens it; cpu_queue.c runs its streams.
 */
#ifndef GNI_DEVICE_CPU_CPU_H
#define GNI_DEVICE_CPU_CPU_H

#include "device/device.h"

/* Borrows the one CPU device. Cannot fail. */
gn_status gni_cpu_device_open(gn_device **device);

/* How many streams and events of the CPU are still alive; the device itself stays. */
int gni_cpu_device_close(void);

/* ---- streams and events: cpu_queue.c -------------------------------------------------------- */

gn_status gni_cpu_stream_open(gn_stream *stream);
void gni_cpu_stream_close(gn_stream *stream);
gn_status gni_cpu_stream_id(gn_stream *stream, uint64_t *id);
gn_status gni_cpu_stream_query(gn_stream *stream);
gn_status gni_cpu_stream_synchronize(gn_stream *stream);
gn_status gni_cpu_stream_wait_event(gn_stream *stream, gn_event *event);
gn_status gni_cpu_stream_is_capturing(gn_stream *stream, bool *is_capturing);
gn_status gni_cpu_event_open(gn_event *event);
void gni_cpu_event_close(gn_event *event);
gn_status gni_cpu_event_record(gn_event *event, gn_stream *stream);
gn_status gni_cpu_event_query(gn_event *event);
gn_status gni_cpu_event_synchronize(gn_event *event);
gn_status gni_cpu_event_elapsed(gn_event *start, gn_event *end, float *milliseconds);
gn_status gni_cpu_copy(gn_stream *stream, void *destination, const void *source, size_t nbytes);
gn_status gni_cpu_fill(gn_stream *stream, void *destination, uint32_t value, size_t element_size,
                       size_t count);

/* Waits for all work of all streams. */
gn_status gni_cpu_synchronize(gn_device *device);

#endif
