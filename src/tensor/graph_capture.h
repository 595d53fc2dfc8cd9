/*
 * graph_capture.h: which storage a graph that is captured reads, writes and makes. graph_capture.c has the rules.
 */
#ifndef GNI_TENSOR_GRAPH_CAPTURE_H
#define GNI_TENSOR_GRAPH_CAPTURE_H

#include "device/device.h"

struct gni_storage;

/* From now on `stream->upper.capture` is set: what is submitted to the stream is noted. */
gn_status gni_capture_open(gn_stream *stream, struct gni_capture **capture) GN_NODISCARD;

/* The capture of the stream is over; what was noted stays. */
void gni_capture_close(struct gni_capture *capture, gn_stream *stream);

/* After the graph; lets go of what it used. NULL is allowed. */
void gni_capture_destroy(struct gni_capture *capture);

/* A storage was made of the graph's own memory. */
void gni_capture_adopt(struct gni_capture *capture, struct gni_storage *storage);

/* A storage that was made by a capture goes. */
void gni_capture_forget(struct gni_storage *storage);

/* What is captured next reads the storage, or writes to it. */
gn_status gni_capture_note(struct gni_capture *capture, struct gni_storage *storage,
                           bool is_write) GN_NODISCARD;

/* True if a replay writes to a storage. */
bool gni_capture_writes(struct gni_capture *capture, const struct gni_storage *storage);

/* The stream, which replays, waits on the device for all who use what the graph does, and they for it. */
gn_status gni_capture_order(struct gni_capture *capture, gn_stream *stream) GN_NODISCARD;

/* GN_ERROR_CAPTURE if the stream is captured; `what` begins the sentence. NULL, the CPU's, is not. */
gn_status gni_capture_refuse(const gn_stream *stream, const char *what) GN_NODISCARD;

/* GN_ERROR_CAPTURE: a capture's tensor met another stream. */
gn_status gni_capture_refuse_other(void) GN_NODISCARD;

#endif
