/*
 * dlpack.c: tensors to and from DLPack's structures: see genesis/interop.h, and dlpack.h for the rules.
 *
 * An export is one block of host memory: the structure that others see, the tensor that it keeps, and the tensor's
 * layout, which belongs to the consumer as the deleter does. An import is a tensor over memory of others, whose
 * deleter is that of the structure.
 */
#include "tensor/dlpack.h"
#include "genesis/interop.h"
#include "tensor/tensor.h"

#include "base/checked.h"
#include "base/host.h"

#include <stdio.h>

/* ---- types and devices ----------------------------------------------------------------------- */

static const DLDataType types[GN_DTYPE_COUNT] = {
#define CODE_BOOL kDLBool
#define CODE_UINT kDLUInt
#define CODE_INT kDLInt
#define CODE_FLOAT kDLFloat
#define CODE_BFLOAT kDLBfloat
#define ROW(NAME, number, name, kind, bits) [number] = {CODE_##kind, bits, 1},
    GN_DTYPE_LIST(ROW)
#undef ROW
};

static gn_status dtype_from(DLDataType type, gn_dtype *dtype)
{
    for (int i = 0; i < GN_DTYPE_COUNT; i++)
        if (types[i].code == type.code && types[i].bits == type.bits && type.lanes == 1) {
            *dtype = (gn_dtype)i;
            return GN_OK;
        }
    bool is_complex = type.code == kDLComplex;
    char name[24];
    (void)snprintf(name, sizeof name, "%s%d", is_complex ? "complex" : "uint", type.bits);
    if (type.lanes == 1 && (is_complex || type.code == kDLUInt))
        return gni_error(GN_ERROR_TYPE, "elements of %s have no dtype here: %s", name,
                         gn_dtype_advice(name));
    return gni_error(
        GN_ERROR_TYPE,
        "elements of DLPack's type code %d with %d bits and %d lanes have no dtype here: %s",
        type.code, type.bits, type.lanes, gn_dtype_advice(""));
}

void gn_device_to_dlpack(const gn_device *device, int *type, int *index)
{
    *type = device->ops->dlpack_type;
    *index = device->index;
}

gn_status gn_device_from_dlpack(int type, int index, gn_device **device)
{
    GN_CHECK_ARGUMENT(device != NULL, "device must not be NULL");
    switch (type) {
    case kDLCPU: /* libraries that count CPUs share their memory all the same */
    case kDLCUDAHost:
        return gni_device_get_host(device);
    case kDLCUDA:
        return gn_device_get(GN_DEVICE_CUDA, index,
                             device); /* a number from outside names the kind */
    default:
        return gni_error(GN_ERROR_UNSUPPORTED, "there are no tensors on DLPack's device type %d",
                         type);
    }
}

/* ---- streams --------------------------------------------------------------------------------- */

gn_status gn_dlpack_current_stream(int type, int index, void **handle)
{
    GN_CHECK_ARGUMENT(handle != NULL, "handle must not be NULL");
    gn_device *device;
    gn_stream *stream;
    GN_TRY(gn_device_from_dlpack(type, index, &device));
    GN_TRY(gn_stream_get_current(device, &stream));
    *handle = gn_stream_get_handle(stream);
    return GN_OK;
}

/* One stream waits for another, on the device. */
static gn_status stream_follow(gn_device *device, gn_stream *first, gn_stream *second)
{
    uint64_t first_id, second_id;
    gn_event *event;
    GN_TRY(gn_stream_get_id(first, &first_id));
    GN_TRY(gn_stream_get_id(second, &second_id));
    if (first_id == second_id)
        return GN_OK;
    GN_TRY(gn_event_create(device, 0, &event));
    gn_status status = gn_event_record(event, first);
    if (status == GN_OK)
        status = gn_stream_wait_event(second, event);
    gn_event_destroy(event);
    return status;
}

gn_status gn_dlpack_follow(gn_tensor *tensor, void *handle)
{
    GN_CHECK_ARGUMENT(tensor != NULL, "tensor must not be NULL");
    gn_stream *producer;
    if (tensor->device->ops->is_immediate)
        return GN_OK;
    GN_TRY(gn_stream_from_handle(tensor->device, handle, &producer));
    gn_status status = gni_storage_order_begin(gni_tensor_storage(tensor), producer);
    gn_stream_release(producer);
    return status;
}

gn_status gn_dlpack_order(gn_tensor *tensor, const int64_t *stream)
{
    GN_CHECK_ARGUMENT(tensor != NULL, "tensor must not be NULL");
    gn_device *device = tensor->device;
    bool has_none = device->ops->is_immediate;
    if (stream != NULL && (*stream < -1 || (has_none ? *stream != -1 : *stream == 0)))
        return gni_error(GN_ERROR_INVALID_VALUE, "%lld is no stream for a tensor on %s: %s",
                         (long long)*stream, gni_device_label(device).text,
                         has_none ? "there are none"
                                  : "1 is the default stream, 2 the thread's, -1 none");
    if (has_none || (stream != NULL && *stream == -1))
        return GN_OK;
    gn_stream *own, *consumer;
    void *data;
    GN_TRY(gn_tensor_get_data(tensor, &data)); /* the current stream has waited for all others */
    GN_TRY(gn_stream_get_current(device, &own));
    GN_TRY(
        gn_stream_from_handle(device, (void *)(intptr_t)(stream != NULL ? *stream : 1), &consumer));
    gn_status status = gn_tensor_record_stream(tensor, consumer);
    if (status == GN_OK)
        status = stream_follow(device, own, consumer);
    gn_stream_release(consumer);
    return status;
}

/* ---- export ---------------------------------------------------------------------------------- */

struct export
{
    union {
        DLManagedTensorVersioned versioned;
        DLManagedTensor unversioned;
    } managed;
    gn_tensor *tensor;
    int64_t sizes[GN_DIMENSIONS_MAX], strides[GN_DIMENSIONS_MAX];
};

static void export_free(void *context)
{
    struct export *export = context;
    gn_tensor_release(export->tensor);
    gni_host_free(export);
}

static void versioned_delete(DLManagedTensorVersioned *self)
{
    export_free(self->manager_ctx);
}

static void unversioned_delete(DLManagedTensor *self)
{
    export_free(self->manager_ctx);
}

gn_status gn_tensor_describe_dlpack(gn_tensor *tensor, void *description)
{
    GN_CHECK_ARGUMENT(tensor != NULL && description != NULL,
                      "tensor and description must not be NULL");
    void *data;
    int type, index;
    GN_TRY(gn_tensor_get_data(tensor, &data));
    gn_device_to_dlpack(tensor->device, &type, &index);
    *(DLTensor *)description = (DLTensor){
        .data = tensor->count > 0 ? data : NULL,
        .device = {type, index},
        .ndim = tensor->ndim,
        .dtype = types[tensor->dtype],
        .shape = tensor->sizes,
        .strides = tensor->strides,
    };
    return GN_OK;
}

static gn_status export_create(gn_tensor *tensor, DLTensor *description, struct export **out)
{
    GN_TRY(gn_tensor_describe_dlpack(tensor, description));
    struct export *export = gni_host_alloc(sizeof *export);
    if (export == NULL)
        return gni_error_host_memory(sizeof *export);
    for (int i = 0; i < tensor->ndim; i++) {
        export->sizes[i] = tensor->sizes[i];
        export->strides[i] = tensor->strides[i];
    }
    description->shape = export->sizes;
    description->strides = export->strides;
    gn_tensor_retain(tensor);
    export->tensor = tensor;
    *out = export;
    return GN_OK;
}

gn_status gn_tensor_to_dlpack(gn_tensor *tensor, bool is_copied, DLManagedTensorVersioned **managed)
{
    GN_CHECK_ARGUMENT(tensor != NULL && managed != NULL, "tensor and managed must not be NULL");
    DLTensor description;
    struct export *export;
    GN_TRY(export_create(tensor, &description, &export));
    export->managed.versioned = (DLManagedTensorVersioned){
        .version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
        .manager_ctx = export,
        .deleter = versioned_delete,
        .flags = (gn_tensor_is_read_only(tensor) ? DLPACK_FLAG_BITMASK_READ_ONLY : 0u) |
                 (is_copied ? DLPACK_FLAG_BITMASK_IS_COPIED : 0u),
        .dl_tensor = description,
    };
    *managed = &export->managed.versioned;
    return GN_OK;
}

gn_status gn_tensor_to_dlpack_unversioned(gn_tensor *tensor, DLManagedTensor **managed)
{
    GN_CHECK_ARGUMENT(tensor != NULL && managed != NULL, "tensor and managed must not be NULL");
    DLTensor description;
    struct export *export;
    GN_TRY(export_create(tensor, &description, &export));
    if (gn_tensor_is_read_only(tensor)) {
        export_free(export);
        return gni_error(GN_ERROR_UNSUPPORTED,
                         "the tensor is read-only, which DLPack cannot say before version 1.0");
    }
    export->managed.unversioned = (DLManagedTensor){
        .dl_tensor = description,
        .manager_ctx = export,
        .deleter = unversioned_delete,
    };
    *managed = &export->managed.unversioned;
    return GN_OK;
}

/* ---- import ---------------------------------------------------------------------------------- */

/* Checks a shape that others gave, of which nothing is known. */
static gn_status shape_take(const DLTensor *from, gn_dtype dtype, int64_t *count)
{
    if (from->ndim > 0 && from->shape == NULL)
        return gni_error(GN_ERROR_SHAPE, "a tensor of %d dimensions has no shape", (int)from->ndim);
    return gni_shape_check(from->ndim, from->shape, gni_dtype_size(dtype), count);
}

/* Where the first element is. */
static gn_status data_take(const DLTensor *from, int64_t count, size_t element_bytes, void **data)
{
    size_t address;
    if (count == 0) {
        *data = NULL;
        return GN_OK;
    }
    if (from->data == NULL)
        return gni_error(GN_ERROR_INVALID_VALUE, "the memory of a tensor of shape %s is NULL",
                         gni_shape_text(from->ndim, from->shape).text);
    if (!gni_size_add((uintptr_t)from->data, (size_t)from->byte_offset, &address))
        return gni_error(GN_ERROR_OVERFLOW, "an offset of %llu bytes leaves the address space",
                         (unsigned long long)from->byte_offset);
    if (address % element_bytes != 0)
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "the elements, of %zu bytes, are not aligned in memory: make a copy first",
                         element_bytes);
    *data = (void *)address;
    return GN_OK;
}

static gn_status import_create(const DLTensor *from, bool is_read_only, void (*deleter)(void *),
                               void *context, gn_tensor **tensor)
{
    gn_dtype dtype;
    gn_device *device;
    int64_t count;
    void *data;
    GN_TRY(dtype_from(from->dtype, &dtype));
    GN_TRY(shape_take(from, dtype, &count));
    GN_TRY(data_take(from, count, gni_dtype_size(dtype), &data));
    GN_TRY(gn_device_from_dlpack(from->device.device_type, from->device.device_id, &device));
    return gn_tensor_from_memory(data, dtype, from->ndim, from->shape, from->strides, device,
                                 is_read_only, deleter, context, tensor);
}

gn_status gn_tensor_from_others(void *data, gn_dtype dtype, int dimensions, const int64_t *shape,
                                const int64_t *strides, gn_device *device, bool is_read_only,
                                void (*deleter)(void *context), void *context, gn_tensor **tensor)
{
    GN_CHECK_ARGUMENT(device != NULL && tensor != NULL, "device and tensor must not be NULL");
    GN_CHECK_ARGUMENT(gni_dtype_is_valid(dtype), "there is no such dtype");
    DLTensor described = {
        .data = data,
        .ndim = dimensions,
        .dtype = types[dtype],
        .shape = (int64_t *)(uintptr_t)shape, /* DLPack knows no const; nobody writes there */
        .strides = (int64_t *)(uintptr_t)strides,
    };
    gn_device_to_dlpack(device, &described.device.device_type, &described.device.device_id);
    return import_create(&described, is_read_only, deleter, context, tensor);
}

static void versioned_release(void *context)
{
    gn_dlpack_delete(context);
}

static void unversioned_release(void *context)
{
    gn_dlpack_delete_unversioned(context);
}

static gn_status version_check(DLPackVersion version)
{
    if (version.major != DLPACK_MAJOR_VERSION)
        return gni_error(GN_ERROR_UNSUPPORTED,
                         "a tensor of DLPack %u.%u is not understood: it must be %d", version.major,
                         version.minor, DLPACK_MAJOR_VERSION);
    return GN_OK;
}

gn_status gn_tensor_from_dlpack(DLManagedTensorVersioned *managed, gn_tensor **tensor)
{
    GN_CHECK_ARGUMENT(managed != NULL && tensor != NULL, "managed and tensor must not be NULL");
    GN_TRY(version_check(managed->version));
    return import_create(&managed->dl_tensor, (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0,
                         versioned_release, managed, tensor);
}

gn_status gn_tensor_from_dlpack_unversioned(DLManagedTensor *managed, gn_tensor **tensor)
{
    GN_CHECK_ARGUMENT(managed != NULL && tensor != NULL, "managed and tensor must not be NULL");
    return import_create(&managed->dl_tensor, false, unversioned_release, managed, tensor);
}

void gn_dlpack_delete(DLManagedTensorVersioned *managed)
{
    if (managed->deleter != NULL)
        managed->deleter(managed);
}

void gn_dlpack_delete_unversioned(DLManagedTensor *managed)
{
    if (managed->deleter != NULL)
        managed->deleter(managed);
}

gn_status gn_dlpack_create(const void *prototype, DLManagedTensorVersioned **managed)
{
    GN_CHECK_ARGUMENT(prototype != NULL && managed != NULL, "arguments must not be NULL");
    const DLTensor *asked = prototype;
    gn_dtype dtype;
    gn_device *device;
    gn_tensor *tensor;
    int64_t count;
    GN_TRY(dtype_from(asked->dtype, &dtype));
    GN_TRY(shape_take(asked, dtype, &count));
    GN_TRY(gn_device_from_dlpack(asked->device.device_type, asked->device.device_id, &device));
    GN_TRY(gn_tensor_create(dtype, asked->ndim, asked->shape, device, &tensor));
    gn_status status = gn_tensor_to_dlpack(tensor, true, managed);
    gn_tensor_release(tensor);
    return status;
}
