/*
 * move.c: tensors between devices, and operations that a device leaves to the host.
 *
 * Bytes move in the order of the GPU's current stream. A copy to the host has arrived when the call returns, and so has
 * one from memory that is, or may be, page-locked, which the device reads by itself; the driver takes other memory
 * of the host before it returns.
 */
#include "tensor/tape.h"
#include "ops/move.h"

#include "genesis/index.h"
#include "ops/backend.h"
#include "ops/explain.h"
#include "ops/recorder.h"
#include "tensor/graph_capture.h"

#include <string.h>

static size_t bytes_of(const gn_tensor *tensor)
{
    return (size_t)tensor->count * gni_dtype_size(tensor->dtype);
}

/* Both contiguous, one of them on the host. */
static gn_status bytes_move(gn_tensor *from, gn_tensor *to)
{
    bool is_up = from->device->ops->is_host_memory;
    gn_tensor *near = is_up ? to : from;
    gn_stream *stream;
    bool is_pinned;
    if (from->count == 0 && is_up)
        return GN_OK;
    GN_TRY(gni_stream_of(near->device, &stream));
    GN_TRY(gni_capture_refuse(stream, is_up ? "a tensor cannot be copied from the host"
                                            : "a tensor cannot be copied to the host"));
    if (from->count == 0) { /* it was made by a key, say, whose numbers were out of range */
        GN_TRY(gn_stream_synchronize(stream));
        return gn_index_check(near->device);
    }
    GN_TRY(gni_storage_order(gni_tensor_storage(near), stream, is_up));
    GN_TRY(gn_copy(gni_tensor_data(to), gni_tensor_data(from), bytes_of(from), stream));
    if (gni_explain_is_on())
        gni_explain_copy(from, to);
    GN_TRY(gn_tensor_is_pinned(is_up ? from : to, &is_pinned));
    if (is_up && !is_pinned && gni_tensor_storage(from)->block != NULL)
        return GN_OK;
    GN_TRY(gn_stream_synchronize(stream));
    return is_up ? GN_OK : gn_index_check(near->device);
}

/* From the host or to it. */
static gn_status tensor_move(gn_tensor *tensor, gn_device *device, gn_tensor **result)
{
    gn_tensor *whole, *made;
    GN_TRY(gni_tensor_compact(tensor, &whole));
    gn_status status = gni_tensor_flush(whole);
    if (status == GN_OK)
        status = gn_tensor_create(tensor->dtype, tensor->ndim, tensor->sizes, device, &made);
    if (status == GN_OK) {
        status = bytes_move(whole, made);
        if (status == GN_OK)
            *result = made;
        else
            gn_tensor_release(made);
    }
    gn_tensor_release(whole);
    return status;
}

static gn_status tensor_to(gn_tensor *tensor, gn_device *device, gn_tensor **result)
{
    GN_CHECK_ARGUMENT(tensor != NULL && device != NULL && result != NULL,
                      "tensor, device and result must not be NULL");
    if (tensor->device == device) {
        gn_tensor_retain(tensor);
        *result = tensor;
        return GN_OK;
    }
    if (tensor->device->ops->is_host_memory || device->ops->is_host_memory)
        return tensor_move(tensor, device, result);
    gn_device *host;
    gn_tensor *between;
    GN_TRY(gni_device_get_host(&host));
    GN_TRY(tensor_move(tensor, host, &between));
    gn_status status = tensor_move(between, device, result);
    gn_tensor_release(between);
    return status;
}

gn_status gn_tensor_to(gn_tensor *tensor, gn_device *device, gn_tensor **result)
{
    bool is_taped = gni_tape_enter(tensor);
    gn_status status = tensor_to(tensor, device, result);
    if (!is_taped)
        return status;
    return gni_tape_leave_one(status, GNI_RULE_CAST, "to", tensor, result, NULL, 0);
}

gn_status gni_tensor_read(gn_tensor *tensor, int64_t element, size_t nbytes, void *bytes)
{
    const char *from = gni_tensor_data(tensor) + element * (int64_t)gni_dtype_size(tensor->dtype);
    gn_stream *stream;
    GN_TRY(gni_stream_of(tensor->device, &stream));
    if (stream == NULL) {
        memcpy(bytes, from, nbytes);
        return GN_OK;
    }
    GN_TRY(gni_capture_refuse(stream, "a value cannot be read on the host"));
    GN_TRY(gni_storage_order(gni_tensor_storage(tensor), stream, false));
    GN_TRY(gn_copy(bytes, from, nbytes, stream));
    GN_TRY(gn_stream_synchronize(stream));
    return gn_index_check(tensor->device);
}

gn_status gni_host_copy(gn_tensor *tensor, gn_tensor **copy)
{
    gn_device *host;
    GN_TRY(gni_device_get_host(&host));
    return gn_tensor_to(tensor, host, copy);
}

gn_status gni_results_move(gn_status status, gn_device *device, int count, gn_tensor **made,
                           gn_tensor **const *results)
{
    gn_tensor *moved[GNI_RESULTS_MOST] = {NULL};
    for (int i = 0; i < count && status == GN_OK; i++)
        if (made[i] != NULL)
            status = gn_tensor_to(made[i], device, &moved[i]);
    for (int i = 0; i < count; i++) {
        gn_tensor_release(made[i]);
        if (status == GN_OK && results[i] != NULL)
            *results[i] = moved[i];
        else
            gn_tensor_release(moved[i]);
    }
    return status;
}
