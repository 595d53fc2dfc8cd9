/*
 * tensor.c: tensors and their views.
 */
#include "tensor/tape.h"
#include "tensor/tensor.h"

#include "base/checked.h"
#include "base/host.h"
#include "memory/manager.h"

#include <stddef.h>
#include <string.h>

_Static_assert(sizeof(gn_tensor) <= GNI_HOST_KEPT, "a tensor is what a thread keeps a block for");

/* ---- life ------------------------------------------------------------------------------------ */

void gni_tensor_set_layout(gn_tensor *tensor, int ndim, const int64_t *sizes,
                           const int64_t *strides)
{
    tensor->ndim = ndim;
    for (int i = 0; i < ndim; i++) {
        tensor->sizes[i] = sizes[i];
        tensor->strides[i] = strides[i];
    }
    gni_tensor_measure(tensor);
}

gn_status gni_tensor_prepare(gn_dtype dtype, int ndim, const int64_t *sizes, gn_device *device,
                             gn_tensor **out)
{
    int64_t count;
    if (!gni_dtype_is_valid(dtype))
        return gni_error(GN_ERROR_TYPE, "%d is no dtype", (int)dtype);
    GN_TRY(gni_shape_check(ndim, sizes, gni_dtypes[dtype].size, &count));
    return gni_tensor_prepare_checked(dtype, ndim, sizes, count, device, out);
}

gn_status gni_tensor_prepare_checked(gn_dtype dtype, int ndim, const int64_t *sizes, int64_t count,
                                     gn_device *device, gn_tensor **out)
{
    gn_tensor *tensor = gni_host_alloc_kept();
    if (tensor == NULL)
        return gni_error_host_memory(sizeof *tensor);
    memset(tensor, 0, offsetof(gn_tensor, sizes));
    atomic_init(&tensor->references, 1);
    tensor->device = device;
    tensor->dtype = dtype;
    tensor->ndim = ndim;
    int64_t stride = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        tensor->sizes[i] = sizes[i];
        tensor->strides[i] = stride;
        stride *= sizes[i] > 1 ? sizes[i] : 1;
    }
    tensor->count = count;
    tensor->is_contiguous = true;
    *out = tensor;
    return GN_OK;
}

/* With storage from a manager; NULL: where the device's storage comes from. */
static gn_status tensor_create_from(gn_memory_manager *manager, gn_dtype dtype, int dimensions,
                                    const int64_t *shape, gn_device *device, gn_tensor **out)
{
    gn_tensor *tensor;
    struct gni_storage *storage;
    GN_TRY(gni_tensor_prepare(dtype, dimensions, shape, device, &tensor));
    gn_stream *stream = NULL;
    gn_status status = GN_OK;
    size_t nbytes = (size_t)tensor->count * gni_dtypes[dtype].size;
    if (!device->ops->is_immediate)
        status = gni_stream_of(device, &stream);
    if (status == GN_OK)
        status = manager != NULL
                     ? gni_storage_create_from(manager, device, nbytes, stream, &storage)
                     : gni_storage_create(device, nbytes, stream, &storage);
    if (status != GN_OK) {
        gni_host_free_kept(tensor);
        return status;
    }
    atomic_init(&tensor->storage, storage);
    *out = tensor;
    return GN_OK;
}

gn_status gn_tensor_create(gn_dtype dtype, int dimensions, const int64_t *shape, gn_device *device,
                           gn_tensor **out)
{
    GN_CHECK_ARGUMENT(device != NULL && out != NULL, "device and tensor must not be NULL");
    return tensor_create_from(NULL, dtype, dimensions, shape, device, out);
}

gn_status gn_tensor_create_pinned(gn_dtype dtype, int dimensions, const int64_t *shape,
                                  gn_device *device, gn_tensor **out)
{
    GN_CHECK_ARGUMENT(device != NULL && out != NULL, "device and tensor must not be NULL");
    gn_memory_manager *manager;
    gn_device *cpu;
    GN_TRY(gn_memory_manager_get_pinned(device, &manager));
    GN_TRY(gni_device_get_host(&cpu));
    return tensor_create_from(manager, dtype, dimensions, shape, cpu, out);
}

gn_status gn_tensor_from_memory(void *data, gn_dtype dtype, int dimensions, const int64_t *shape,
                                const int64_t *strides, gn_device *device, bool is_read_only,
                                void (*deleter)(void *context), void *context, gn_tensor **out)
{
    GN_CHECK_ARGUMENT(device != NULL && out != NULL, "device and tensor must not be NULL");
    gn_tensor *tensor;
    struct gni_storage *storage;
    GN_TRY(gni_tensor_prepare(dtype, dimensions, shape, device, &tensor));
    gn_status status = GN_OK;
    if (data == NULL && tensor->count > 0)
        status = gni_error(GN_ERROR_INVALID_VALUE, "the memory of a tensor of shape %s is NULL",
                           gni_shape_text(dimensions, shape).text);
    if (status == GN_OK) {
        status = gni_strides_adopt(dimensions, shape, strides, gni_dtypes[dtype].size, data,
                                   tensor->strides);
        gni_tensor_measure(tensor);
    }
    if (status == GN_OK)
        status = gni_storage_wrap(device, data, is_read_only, deleter, context, &storage);
    if (status != GN_OK) {
        gni_host_free_kept(tensor);
        return status;
    }
    atomic_init(&tensor->storage, storage);
    *out = tensor;
    return GN_OK;
}

void gn_tensor_retain(gn_tensor *tensor)
{
    atomic_fetch_add_explicit(&tensor->references, 1, memory_order_relaxed);
}

void gn_tensor_release(gn_tensor *tensor)
{
    if (tensor == NULL)
        return;
    if (atomic_load_explicit(&tensor->recipe, memory_order_relaxed) != NULL)
        gni_evaluator.rest(tensor);
    /* The only reference is ours: nobody can take another one meanwhile. */
    if (atomic_load_explicit(&tensor->references, memory_order_acquire) != 1 &&
        atomic_fetch_sub_explicit(&tensor->references, 1, memory_order_acq_rel) != 1)
        return;
    struct gni_storage *storage = gni_tensor_storage(tensor);
    if (gni_tensor_has_recipe(tensor))
        gni_evaluator.forget_recipe(tensor);
    if (storage == NULL) {
        gni_evaluator.abandon(tensor);
        storage = gni_tensor_storage(tensor); /* it may have been computed since we looked */
    }
    if (storage != NULL && atomic_load_explicit(&storage->is_lasting, memory_order_relaxed))
        gni_evaluator.unlast();
    if (storage != NULL &&
        (tensor->is_apart ? gni_storage_unhold(storage) : gni_storage_unreference(storage)))
        gni_storage_destroy(storage);
    if (tensor->aliases != NULL)
        gni_tape.aliases_release(tensor->aliases);
    if (tensor->gradient != NULL)
        gni_tape.forget(tensor);
    gn_tensor_release(tensor->idle_gradient);
    gni_host_free_kept(tensor);
}

void *gn_tensor_take_room(gn_tensor *tensor)
{
    if (tensor->is_room_taken)
        return NULL;
    tensor->is_room_taken = true;
    return tensor->room;
}

void *gn_tensor_get_room(gn_tensor *tensor)
{
    return tensor->is_room_taken ? tensor->room : NULL;
}

/* ---- what it is ------------------------------------------------------------------------------ */

gn_dtype gn_tensor_get_dtype(const gn_tensor *tensor)
{
    return tensor->dtype;
}

gn_device *gn_tensor_get_device(const gn_tensor *tensor)
{
    return tensor->device;
}

int gn_tensor_get_dimensions(const gn_tensor *tensor)
{
    return tensor->ndim;
}

const int64_t *gn_tensor_get_shape(const gn_tensor *tensor)
{
    return tensor->sizes;
}

const int64_t *gn_tensor_get_strides(const gn_tensor *tensor)
{
    return tensor->strides;
}

int64_t gn_tensor_get_count(const gn_tensor *tensor)
{
    return tensor->count;
}

int64_t gn_tensor_get_offset(const gn_tensor *tensor)
{
    return tensor->offset;
}

bool gn_tensor_is_contiguous(const gn_tensor *tensor)
{
    return tensor->is_contiguous;
}

bool gn_tensor_is_read_only(const gn_tensor *tensor)
{
    const struct gni_storage *storage = gni_tensor_storage(tensor);
    return storage != NULL && storage->is_read_only;
}

bool gn_tensor_shares_storage(const gn_tensor *a, const gn_tensor *b)
{
    const struct gni_storage *storage = gni_tensor_storage(a);
    return a == b || (storage != NULL && storage == gni_tensor_storage(b));
}

const void *gn_tensor_peek_storage(const gn_tensor *tensor)
{
    const struct gni_storage *storage = gni_tensor_storage(tensor);
    return storage != NULL ? storage->data : NULL;
}

uint64_t gn_tensor_get_version(const gn_tensor *tensor)
{
    const struct gni_storage *storage = gni_tensor_storage(tensor);
    return storage != NULL ? atomic_load(&storage->version) : 0;
}

gn_status gn_tensor_get_data(gn_tensor *tensor, void **data)
{
    GN_CHECK_ARGUMENT(tensor != NULL && data != NULL, "tensor and data must not be NULL");
    GN_TRY(gni_tensor_flush(tensor));
    struct gni_storage *storage = gni_tensor_storage(tensor);
    /* In this order: what another thread records meanwhile sees the mark, or is seen by the flush. */
    if (!atomic_exchange(&storage->is_escaped, true))
        gni_device_direct_begin(storage->device);
    if (storage->block != NULL)
        (void)gni_block_pin(storage->block); /* the manager may not move it any more */
    GN_TRY(gni_evaluator.flush_readers(storage));
    gn_stream *stream;
    GN_TRY(gni_stream_of(tensor->device, &stream));
    GN_TRY(gni_storage_order(storage, stream, !storage->is_read_only));
    *data = gni_tensor_data(tensor);
    return GN_OK;
}

gn_status gn_tensor_is_pinned(gn_tensor *tensor, bool *is_pinned)
{
    GN_CHECK_ARGUMENT(tensor != NULL && is_pinned != NULL, "tensor and is_pinned must not be NULL");
    GN_TRY(gni_tensor_flush(tensor));
    const struct gni_storage *storage = gni_tensor_storage(tensor);
    *is_pinned =
        storage->block != NULL && gn_memory_manager_get_device(storage->manager) != tensor->device;
    return GN_OK;
}

gn_status gn_tensor_record_stream(gn_tensor *tensor, gn_stream *stream)
{
    GN_CHECK_ARGUMENT(tensor != NULL && stream != NULL, "tensor and stream must not be NULL");
    GN_TRY(gni_tensor_flush(tensor));
    const struct gni_storage *storage = gni_tensor_storage(tensor);
    if (storage->block == NULL)
        return GN_OK;
    return gn_memory_record_stream(storage->manager, storage->data, stream);
}

/* ---- views ----------------------------------------------------------------------------------- */

static gn_status alias_make(gn_tensor *tensor, int64_t offset, int ndim, const int64_t *sizes,
                            const int64_t *strides, gn_tensor **out)
{
    if (gni_tensor_storage(tensor) == NULL)
        GN_TRY(gni_tensor_flush(tensor));
    gn_tensor *view = gni_host_alloc_kept();
    if (view == NULL)
        return gni_error_host_memory(sizeof *view);
    gni_tensor_share(tensor, offset, view);
    gni_tensor_set_layout(view, ndim, sizes, strides);
    *out = view;
    return GN_OK;
}

void gni_tape_strides(const gn_tensor *tensor, int64_t *own)
{
    if (gni_strides_overlap(tensor->ndim, tensor->sizes, tensor->strides))
        gni_strides_contiguous(tensor->ndim, tensor->sizes, own);
    else
        memcpy(own, tensor->strides, sizeof *own * (size_t)tensor->ndim);
}

gn_status gni_tensor_alias_planned(gn_tensor *tensor, int64_t offset, int ndim,
                                   const int64_t *sizes, const int64_t *strides,
                                   const struct gni_strided_details *view, gn_tensor **out)
{
    GN_TRY(alias_make(tensor, offset, ndim, sizes, strides, out));
    if (!gni_is_taped(tensor))
        return GN_OK;
    return gni_tape_leave_one(GN_OK, GNI_RULE_STRIDED, "view", tensor, out, view, sizeof *view);
}

/* A view on the tape; where several places of the tensor itself share an element, a gradient has no place to go. */
static gn_status alias_tape(gn_tensor *tensor, int64_t offset, gn_tensor **out)
{
    const gn_tensor *made = *out;
    if (gni_strides_overlap(tensor->ndim, tensor->sizes, tensor->strides)) {
        gn_tensor_release(*out);
        *out = NULL;
        return gni_tape_refuse("a view of an expanded tensor", tensor);
    }
    struct gni_strided_details view = {.ndim = made->ndim, .offset = offset};
    memcpy(view.own, tensor->strides, sizeof *view.own * (size_t)tensor->ndim);
    memcpy(view.sizes, made->sizes, sizeof *view.sizes * (size_t)made->ndim);
    memcpy(view.strides, made->strides, sizeof *view.strides * (size_t)made->ndim);
    return gni_tape_leave_one(GN_OK, GNI_RULE_STRIDED, "view", tensor, out, &view, sizeof view);
}

gn_status gni_tensor_alias_as(gn_tensor *tensor, int64_t offset, int ndim, const int64_t *sizes,
                              const int64_t *strides, gn_tensor **out)
{
    GN_TRY(alias_make(tensor, offset, ndim, sizes, strides, out));
    return gni_is_taped(tensor) ? alias_tape(tensor, offset, out) : GN_OK;
}

gn_status gni_tensor_alias(gn_tensor *tensor, gn_tensor **out)
{
    return gni_tensor_alias_as(tensor, 0, tensor->ndim, tensor->sizes, tensor->strides, out);
}

static gn_status view_make(gn_tensor *tensor, int dimensions, const int64_t *shape, gn_tensor **out)
{
    GN_CHECK_ARGUMENT(tensor != NULL && out != NULL, "tensor and view must not be NULL");
    int64_t sizes[GN_DIMENSIONS_MAX], strides[GN_DIMENSIONS_MAX];
    GN_TRY(
        gni_shape_infer(dimensions, shape, tensor->count, gni_dtypes[tensor->dtype].size, sizes));
    if (!gni_strides_view(tensor->ndim, tensor->sizes, tensor->strides, dimensions, sizes, strides))
        return gni_error(GN_ERROR_SHAPE,
                         "a tensor of shape %s and strides %s cannot be seen as %s without a copy: "
                         "use reshape()",
                         gni_shape_text(tensor->ndim, tensor->sizes).text,
                         gni_shape_text(tensor->ndim, tensor->strides).text,
                         gni_shape_text(dimensions, sizes).text);
    gn_tensor *view;
    GN_TRY(gni_tensor_alias(tensor, &view));
    gni_tensor_set_layout(view, dimensions, sizes, strides);
    *out = view;
    return GN_OK;
}

gn_status gn_tensor_view(gn_tensor *tensor, int dimensions, const int64_t *shape, gn_tensor **out)
{
    bool is_taped = gni_tape_enter(tensor);
    gn_status status = view_make(tensor, dimensions, shape, out);
    if (!is_taped)
        return status;
    return gni_tape_leave_one(status, GNI_RULE_RESHAPE, "view", tensor, out, NULL, 0);
}

static gn_status reshape(gn_tensor *tensor, int dimensions, const int64_t *shape, gn_tensor **out)
{
    GN_CHECK_ARGUMENT(tensor != NULL && out != NULL, "tensor and result must not be NULL");
    int64_t sizes[GN_DIMENSIONS_MAX], strides[GN_DIMENSIONS_MAX];
    GN_TRY(
        gni_shape_infer(dimensions, shape, tensor->count, gni_dtypes[tensor->dtype].size, sizes));
    if (gni_strides_view(tensor->ndim, tensor->sizes, tensor->strides, dimensions, sizes, strides))
        return gn_tensor_view(tensor, dimensions, sizes, out);
    gn_tensor *copy;
    GN_TRY(gni_evaluator.compact(tensor, &copy));
    gn_status status = gn_tensor_view(copy, dimensions, sizes, out);
    gn_tensor_release(copy);
    return status;
}

gn_status gn_tensor_reshape(gn_tensor *tensor, int dimensions, const int64_t *shape,
                            gn_tensor **out)
{
    bool is_taped = gni_tape_enter(tensor);
    gn_status status = reshape(tensor, dimensions, shape, out);
    if (!is_taped)
        return status;
    return gni_tape_leave_one(status, GNI_RULE_RESHAPE, "reshape", tensor, out, NULL, 0);
}

/* Whether sizes and strides from an offset on reach nothing outside of the elements from `first` to `last`. */
static bool strides_stay_within(int ndim, const int64_t *sizes, const int64_t *strides,
                                int64_t offset, int64_t first, int64_t last)
{
    int64_t low = offset, high = offset, span;
    for (int i = 0; i < ndim; i++) {
        if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &span) ||
            __builtin_add_overflow(span < 0 ? low : high, span, span < 0 ? &low : &high))
            return false;
    }
    return low >= first && high <= last;
}

gn_status gn_tensor_as_strided(gn_tensor *tensor, int dimensions, const int64_t *shape,
                               const int64_t *strides, int64_t offset, gn_tensor **out)
{
    GN_CHECK_ARGUMENT(tensor != NULL && out != NULL, "tensor and view must not be NULL");
    int64_t count, first, last, size = (int64_t)gni_dtypes[tensor->dtype].size;
    int64_t plain[GN_DIMENSIONS_MAX];
    GN_TRY(gni_shape_check(dimensions, shape, (size_t)size, &count));
    GN_TRY(gni_tensor_flush(tensor));
    const struct gni_storage *storage = gni_tensor_storage(tensor);
    if (storage->block != NULL) {
        first = 0;
        last = (int64_t)storage->nbytes / size - 1;
    } else {
        gni_strides_extent(tensor->ndim, tensor->sizes, tensor->strides, &first, &last);
        first += tensor->offset;
        last += tensor->offset - (tensor->count == 0 ? 1 : 0);
    }
    bool is_possible = gni_strides_are_possible(dimensions, shape, strides, (size_t)size);
    bool is_inside = count > 0 ? is_possible && strides_stay_within(dimensions, shape, strides,
                                                                    offset, first, last)
                               : offset >= 0;
    if (count == 0 && is_inside)
        offset = tensor->offset; /* nothing is there, wherever it is */
    if (count == 0 && !is_possible) {
        gni_strides_contiguous(dimensions, shape, plain);
        strides = plain;
    }
    if (!is_inside)
        return gni_error(GN_ERROR_SHAPE,
                         "a view of shape %s and strides %s from element %lld on is not within the "
                         "elements %lld to %lld that there are",
                         gni_shape_text(dimensions, shape).text,
                         gni_shape_text(dimensions, strides).text, (long long)offset,
                         (long long)first, (long long)last);
    return gni_tensor_alias_as(tensor, offset - tensor->offset, dimensions, shape, strides, out);
}

/* Elements of `from` bytes as elements of `to`, if their number, or the steps between them, allow it. */
static bool elements_regroup(int64_t *value, int64_t from, int64_t to)
{
    if (from >= to)
        return !__builtin_mul_overflow(*value, from / to, value);
    bool is_whole = *value % (to / from) == 0;
    *value /= to / from;
    return is_whole;
}

gn_status gn_tensor_view_as_dtype(gn_tensor *tensor, gn_dtype dtype, gn_tensor **out)
{
    GN_CHECK_ARGUMENT(tensor != NULL && out != NULL, "tensor and view must not be NULL");
    GN_TRY(gni_tape_refuse("view", tensor));
    GN_CHECK_ARGUMENT((unsigned)dtype < GN_DTYPE_COUNT, "there is no such dtype");
    int64_t from = (int64_t)gni_dtypes[tensor->dtype].size, to = (int64_t)gni_dtypes[dtype].size;
    int64_t sizes[GN_DIMENSIONS_MAX], strides[GN_DIMENSIONS_MAX];
    int last = tensor->ndim - 1;
    GN_TRY(gni_tensor_flush(tensor));
    int64_t offset = tensor->offset;
    memcpy(sizes, tensor->sizes, sizeof sizes);
    memcpy(strides, tensor->strides, sizeof strides);
    bool is_possible = from == to;
    if (from != to && last >= 0 && (strides[last] == 1 || sizes[last] == 1)) {
        is_possible =
            elements_regroup(&offset, from, to) && elements_regroup(&sizes[last], from, to);
        for (int i = 0; i < last && is_possible; i++)
            is_possible = elements_regroup(&strides[i], from, to);
        strides[last] = 1;
    }
    if (!is_possible || (uintptr_t)gni_tensor_storage(tensor)->data % (size_t)to != 0)
        return gni_error(
            GN_ERROR_SHAPE, "a tensor of %s, shape %s and strides %s cannot be seen as %s",
            gni_dtypes[tensor->dtype].name, gni_shape_text(tensor->ndim, tensor->sizes).text,
            gni_shape_text(tensor->ndim, tensor->strides).text, gni_dtypes[dtype].name);
    GN_TRY(gni_tensor_alias_as(tensor, offset - tensor->offset, tensor->ndim, sizes, strides, out));
    (*out)->dtype = dtype;
    return GN_OK;
}

gn_status gn_tensor_view_storage(gn_tensor *tensor, gn_dtype dtype, gn_tensor **out)
{
    GN_CHECK_ARGUMENT(tensor != NULL && out != NULL, "tensor and view must not be NULL");
    GN_CHECK_ARGUMENT((unsigned)dtype < GN_DTYPE_COUNT, "there is no such dtype");
    int64_t from = (int64_t)gni_dtype_size(tensor->dtype), to = (int64_t)gni_dtype_size(dtype);
    int64_t first = 0, last, stride = 1;
    GN_TRY(gni_tensor_flush(tensor));
    const struct gni_storage *storage = gni_tensor_storage(tensor);
    int64_t nbytes = (int64_t)storage->nbytes;
    if (storage->block == NULL) {
        gni_strides_extent(tensor->ndim, tensor->sizes, tensor->strides, &first, &last);
        nbytes = tensor->count > 0 ? (last - first + 1) * from : 0;
        first += tensor->offset;
    }
    if (first * from % to != 0 || (uintptr_t)storage->data % (size_t)to != 0)
        return gni_error(GN_ERROR_SHAPE, "the memory cannot be seen as %s", gni_dtypes[dtype].name);
    int64_t count = nbytes / to;
    GN_TRY(gni_tensor_alias_as(tensor, 0, 1, &count, &stride, out));
    (*out)->dtype = dtype;
    (*out)->offset = first * from / to;
    return GN_OK;
}

/* A tensor takes other memory. It is no alias, for gradients, of those that have it already. */
static void storage_exchange(gn_tensor *tensor, struct gni_storage *old,
                             struct gni_storage *storage)
{
    gni_storage_hold(storage);
    if (atomic_exchange(&tensor->is_counted, false)) {
        atomic_fetch_sub(&old->saved_tensors, 1);
        gni_tensor_count(tensor, storage);
    }
    atomic_store(&tensor->storage, storage);
    if (tensor->is_apart ? gni_storage_unhold(old) : gni_storage_unreference(old))
        gni_storage_destroy(old);
    if (tensor->aliases != NULL)
        gni_tape.aliases_release(tensor->aliases);
    tensor->aliases = NULL;
    tensor->is_apart = true;
}

gn_status gn_tensor_become(gn_tensor *tensor, gn_tensor *other)
{
    GN_CHECK_ARGUMENT(tensor != NULL && other != NULL, "tensor and other must not be NULL");
    if (tensor->dtype != other->dtype || tensor->device != other->device)
        return gni_error(GN_ERROR_TYPE,
                         "a tensor of %s cannot become one of %s or on another "
                         "device",
                         gni_dtypes[tensor->dtype].name, gni_dtypes[other->dtype].name);
    if (tensor->gradient != NULL &&
        !gni_shape_is_equal(tensor->ndim, tensor->sizes, other->ndim, other->sizes))
        return gni_error(GN_ERROR_SHAPE,
                         "a tensor that needs a gradient cannot have another shape");
    GN_TRY(gni_tensor_flush(tensor));
    GN_TRY(gni_tensor_flush(other));
    if (gni_tensor_has_recipe(tensor))
        gni_evaluator.forget_recipe(tensor);
    struct gni_storage *old = gni_tensor_storage(tensor), *storage = gni_tensor_storage(other);
    if (old != storage && atomic_load(&old->is_escaped))
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "the tensor cannot have other memory: numpy() or another program has the "
                         "address of what it has");
    if (old != storage)
        storage_exchange(tensor, old, storage);
    tensor->offset = other->offset;
    tensor->life++;
    gni_tensor_set_layout(tensor, other->ndim, other->sizes, other->strides);
    return GN_OK;
}

gn_status gn_tensor_set_data(gn_tensor *tensor, gn_tensor *other)
{
    GN_CHECK_ARGUMENT(tensor != NULL && other != NULL, "tensor and other must not be NULL");
    GN_TRY(gni_tensor_flush(tensor));
    GN_TRY(gni_tensor_flush(other));
    if (gni_tensor_has_recipe(tensor))
        gni_evaluator.forget_recipe(tensor);
    struct gni_storage *old = gni_tensor_storage(tensor), *storage = gni_tensor_storage(other);
    if (tensor->dtype != other->dtype || tensor->device != other->device)
        GN_TRY(gni_evaluator.flush_readers(old)); /* they have its dtype from the tensor */
    if (tensor->gradient != NULL)
        GN_TRY(gni_tape.adapt(tensor, other));
    if (old != storage) {
        if (tensor->gradient != NULL && atomic_load(&old->is_lasting))
            atomic_store(&storage->is_lasting, true);
        storage_exchange(tensor, old, storage);
    }
    tensor->dtype = other->dtype;
    tensor->device = other->device;
    tensor->offset = other->offset;
    tensor->life++;
    gni_tensor_set_layout(tensor, other->ndim, other->sizes, other->strides);
    return GN_OK;
}

static gn_status permute(gn_tensor *tensor, const int *order, gn_tensor **out)
{
    GN_CHECK_ARGUMENT(tensor != NULL && out != NULL, "tensor and view must not be NULL");
    int64_t sizes[GN_DIMENSIONS_MAX], strides[GN_DIMENSIONS_MAX];
    unsigned seen = 0;
    for (int i = 0; i < tensor->ndim; i++) {
        int from;
        GN_TRY(gni_dimension_wrap(order[i], tensor->ndim, &from));
        if ((seen >> from & 1) != 0)
            return gni_error(GN_ERROR_INVALID_VALUE, "dimension %d is there twice", from);
        seen |= 1U << from;
        sizes[i] = tensor->sizes[from];
        strides[i] = tensor->strides[from];
    }
    gn_tensor *view;
    GN_TRY(gni_tensor_alias(tensor, &view));
    gni_tensor_set_layout(view, tensor->ndim, sizes, strides);
    *out = view;
    return GN_OK;
}

gn_status gn_tensor_permute(gn_tensor *tensor, const int *order, gn_tensor **out)
{
    bool is_taped = gni_tape_enter(tensor);
    gn_status status = permute(tensor, order, out);
    if (!is_taped)
        return status;
    int from[GN_DIMENSIONS_MAX] = {0}; /* counted from the beginning */
    for (int i = 0; i < tensor->ndim && status == GN_OK; i++)
        from[i] = order[i] < 0 ? order[i] + tensor->ndim : order[i];
    return gni_tape_leave_one(status, GNI_RULE_PERMUTE, "permute", tensor, out, from, sizeof from);
}

static gn_status expand(gn_tensor *tensor, int dimensions, const int64_t *shape, gn_tensor **out)
{
    GN_CHECK_ARGUMENT(tensor != NULL && out != NULL, "tensor and view must not be NULL");
    int64_t sizes[GN_DIMENSIONS_MAX], strides[GN_DIMENSIONS_MAX], count;
    int shift = dimensions - tensor->ndim;
    bool is_possible = shift >= 0 && dimensions <= GN_DIMENSIONS_MAX;
    for (int i = 0; is_possible && i < dimensions; i++) {
        int64_t own = i < shift ? 1 : tensor->sizes[i - shift];
        sizes[i] = shape[i] == -1 && i >= shift ? own : shape[i];
        strides[i] = i < shift || own == 1 ? 0 : tensor->strides[i - shift];
        if (sizes[i] == 1 && i >= shift)
            strides[i] = tensor->strides[i - shift];
        is_possible = sizes[i] == own || (own == 1 && sizes[i] >= 0);
    }
    if (!is_possible)
        return gni_error(GN_ERROR_SHAPE, "a tensor of shape %s cannot be expanded to %s",
                         gni_shape_text(tensor->ndim, tensor->sizes).text,
                         gni_shape_text(dimensions, shape).text);
    GN_TRY(gni_shape_check(dimensions, sizes, gni_dtypes[tensor->dtype].size, &count));
    gn_tensor *view;
    GN_TRY(gni_tensor_alias(tensor, &view));
    gni_tensor_set_layout(view, dimensions, sizes, strides);
    *out = view;
    return GN_OK;
}

gn_status gn_tensor_expand(gn_tensor *tensor, int dimensions, const int64_t *shape, gn_tensor **out)
{
    bool is_taped = gni_tape_enter(tensor);
    gn_status status = expand(tensor, dimensions, shape, out);
    if (!is_taped)
        return status;
    return gni_tape_leave_one(status, GNI_RULE_EXPAND, "expand", tensor, out, NULL, 0);
}

static gn_status slice(gn_tensor *tensor, int dimension, int64_t start, int64_t step, int64_t count,
                       gn_tensor **out)
{
    int at;
    GN_TRY(gni_dimension_wrap(dimension, tensor->ndim, &at));
    int64_t size = tensor->ndim > 0 ? tensor->sizes[at] : 0, last, span;
    if (count < 0 || (count > 0 && (start < 0 || start >= size)) ||
        (count > 1 && (__builtin_mul_overflow(count - 1, step, &span) ||
                       __builtin_add_overflow(start, span, &last) || last < 0 || last >= size)))
        return gni_error(
            GN_ERROR_INDEX,
            "%lld elements from %lld on in steps of %lld are not in a dimension of %lld",
            (long long)count, (long long)start, (long long)step, (long long)size);
    gn_tensor *view;
    GN_TRY(gni_tensor_alias(tensor, &view));
    int64_t sizes[GN_DIMENSIONS_MAX], strides[GN_DIMENSIONS_MAX];
    memcpy(sizes, view->sizes, sizeof sizes);
    memcpy(strides, view->strides, sizeof strides);
    if (count > 0)
        view->offset += start * strides[at];
    sizes[at] = count;
    strides[at] = count > 1 ? strides[at] * step : strides[at];
    gni_tensor_set_layout(view, tensor->ndim, sizes, strides);
    *out = view;
    return GN_OK;
}

gn_status gn_tensor_slice(gn_tensor *tensor, int dimension, int64_t start, int64_t step,
                          int64_t count, gn_tensor **out)
{
    GN_CHECK_ARGUMENT(tensor != NULL && out != NULL, "tensor and view must not be NULL");
    gn_tensor *made;
    bool is_taped = gni_tape_enter(tensor);
    gn_status status = slice(tensor, dimension, start, step, count, &made);
    gni_tape_is_paused &= !is_taped;
    if (status != GN_OK)
        return status;
    *out = made;
    if (!is_taped)
        return GN_OK;
    struct gni_strided_details view = {.ndim = made->ndim};
    int at = dimension < 0 ? dimension + tensor->ndim : dimension;
    gni_tape_strides(tensor, view.own);
    memcpy(view.sizes, made->sizes, sizeof *view.sizes * (size_t)made->ndim);
    memcpy(view.strides, view.own, sizeof *view.strides * (size_t)made->ndim);
    view.offset = count > 0 ? start * view.own[at] : 0;
    view.strides[at] *= count > 1 ? step : 1;
    return gni_tape_leave_one(GN_OK, GNI_RULE_STRIDED, "slice", tensor, out, &view, sizeof view);
}

/* A view without one of the dimensions. */
static void dimension_drop(gn_tensor *view, int at)
{
    for (int i = at; i + 1 < view->ndim; i++) {
        view->sizes[i] = view->sizes[i + 1];
        view->strides[i] = view->strides[i + 1];
    }
    gni_tensor_set_layout(view, view->ndim - 1, view->sizes, view->strides);
}

static gn_status select_one(gn_tensor *tensor, int dimension, int64_t index, gn_tensor **out)
{
    int at;
    GN_TRY(gni_dimension_wrap(dimension, tensor->ndim, &at));
    int64_t size = tensor->ndim > 0 ? tensor->sizes[at] : 0;
    int64_t wrapped = index < 0 ? index + size : index;
    if (wrapped < 0 || wrapped >= size)
        return gni_error(GN_ERROR_INDEX, "index %lld is out of range for a dimension of %lld",
                         (long long)index, (long long)size);
    gn_tensor *view;
    GN_TRY(gni_tensor_alias(tensor, &view));
    view->offset += wrapped * view->strides[at];
    dimension_drop(view, at);
    *out = view;
    return GN_OK;
}

gn_status gn_tensor_select(gn_tensor *tensor, int dimension, int64_t index, gn_tensor **out)
{
    GN_CHECK_ARGUMENT(tensor != NULL && out != NULL, "tensor and view must not be NULL");
    gn_tensor *made;
    bool is_taped = gni_tape_enter(tensor);
    gn_status status = select_one(tensor, dimension, index, &made);
    gni_tape_is_paused &= !is_taped;
    if (status != GN_OK)
        return status;
    *out = made;
    if (!is_taped)
        return GN_OK;
    struct gni_strided_details view = {.ndim = made->ndim};
    int at = dimension < 0 ? dimension + tensor->ndim : dimension;
    gni_tape_strides(tensor, view.own);
    memcpy(view.sizes, made->sizes, sizeof *view.sizes * (size_t)made->ndim);
    for (int i = 0; i < made->ndim; i++)
        view.strides[i] = view.own[i + (i >= at)];
    view.offset = (index < 0 ? index + tensor->sizes[at] : index) * view.own[at];
    return gni_tape_leave_one(GN_OK, GNI_RULE_STRIDED, "select", tensor, out, &view, sizeof view);
}

static gn_status unsqueeze(gn_tensor *tensor, int dimension, gn_tensor **out)
{
    GN_CHECK_ARGUMENT(tensor != NULL && out != NULL, "tensor and view must not be NULL");
    int at;
    if (tensor->ndim == GN_DIMENSIONS_MAX)
        return gni_error(GN_ERROR_SHAPE, "a tensor has at most %d dimensions", GN_DIMENSIONS_MAX);
    GN_TRY(gni_dimension_wrap(dimension, tensor->ndim + 1, &at));
    gn_tensor *view;
    GN_TRY(gni_tensor_alias(tensor, &view));
    int64_t stride = at < view->ndim ? view->sizes[at] * view->strides[at] : 1;
    for (int i = view->ndim; i > at; i--) {
        view->sizes[i] = view->sizes[i - 1];
        view->strides[i] = view->strides[i - 1];
    }
    view->sizes[at] = 1;
    view->strides[at] = stride;
    gni_tensor_set_layout(view, view->ndim + 1, view->sizes, view->strides);
    *out = view;
    return GN_OK;
}

gn_status gn_tensor_unsqueeze(gn_tensor *tensor, int dimension, gn_tensor **out)
{
    bool is_taped = gni_tape_enter(tensor);
    gn_status status = unsqueeze(tensor, dimension, out);
    if (!is_taped)
        return status;
    return gni_tape_leave_one(status, GNI_RULE_RESHAPE, "unsqueeze", tensor, out, NULL, 0);
}

static gn_status squeeze(gn_tensor *tensor, int dimension, gn_tensor **out)
{
    GN_CHECK_ARGUMENT(tensor != NULL && out != NULL, "tensor and view must not be NULL");
    int at;
    GN_TRY(gni_dimension_wrap(dimension, tensor->ndim, &at));
    gn_tensor *view;
    GN_TRY(gni_tensor_alias(tensor, &view));
    if (view->ndim > 0 && view->sizes[at] == 1)
        dimension_drop(view, at);
    *out = view;
    return GN_OK;
}

gn_status gn_tensor_squeeze(gn_tensor *tensor, int dimension, gn_tensor **out)
{
    bool is_taped = gni_tape_enter(tensor);
    gn_status status = squeeze(tensor, dimension, out);
    if (!is_taped)
        return status;
    return gni_tape_leave_one(status, GNI_RULE_RESHAPE, "squeeze", tensor, out, NULL, 0);
}
