/*
 * readback.h: a few words that a kernel says to the host: page-locked memory, which it writes to by itself.
 *
 *     struct gni_storage *answer;
 *     GN_TRY(gni_readback_create(stream, nbytes, &answer));
 *     a kernel of the stream writes to answer->data
 *     status = gni_readback_wait(stream);             then answer->data can be read
 *     gni_storage_release(answer);
 */
#ifndef GNI_OPS_CUDA_READBACK_H
#define GNI_OPS_CUDA_READBACK_H

#include "ops/cuda/cuda_ops.h"
#include "tensor/graph_capture.h"

/* Fails while the stream is captured: nothing runs then that could answer. */
static inline gn_status gni_readback_create(gn_stream *stream, size_t nbytes,
                                            struct gni_storage **answer)
{
    gn_memory_manager *manager;
    gn_device *host;
    GN_TRY(gni_capture_refuse(stream, "a value cannot be read on the host"));
    GN_TRY(gn_memory_manager_get_pinned(stream->device, &manager));
    GN_TRY(gni_device_get_host(&host));
    return gni_storage_create_from(manager, host, nbytes, NULL, answer);
}

static inline gn_status gni_readback_wait(gn_stream *stream)
{
    GN_TRY(gn_stream_synchronize(stream));
    return gni_cuda_index_check(stream->device);
}

#endif
