/*
 * index_device.c: what keys need beside a plan where a tensor is on a GPU: parts of the CPU go there, and their numbers
 * are checked before; and what is said about numbers that are out of range.
 */
#include "ops/index.h"

#include "ops/backend.h"
#include "ops/recorder.h"

#include <string.h>

/* The first number of an index tensor that is out of range, for the message; false if all are in range by now. */
static bool outside_find(const struct gni_index *index, int64_t *found)
{
    const gn_tensor *tensor = index->tensor;
    int64_t at[GN_DIMENSIONS_MAX] = {0};
    for (int64_t i = 0; i < tensor->count; i++) {
        int64_t offset = 0;
        for (int d = 0; d < tensor->ndim; d++)
            offset += at[d] * tensor->strides[d];
        const char *element =
            gni_tensor_data(tensor) + offset * (int64_t)gni_dtype_size(tensor->dtype);
        *found = gni_scalar_load(tensor->dtype, element).integer; /* of uint64: maybe its bits */
        int64_t wrapped = *found < 0 ? *found + index->wrap : *found;
        if (wrapped < 0 || wrapped >= index->size)
            return true;
        for (int d = tensor->ndim - 1; d >= 0 && ++at[d] == tensor->sizes[d]; d--)
            at[d] = 0;
    }
    return false;
}

static gn_status outside_say(const struct gni_index *index, int64_t found)
{
    bool is_unsigned = gni_dtype_is_unsigned(index->tensor->dtype);
    const char *sign = found < 0 && !is_unsigned ? "-" : "";
    return gni_error(
        GN_ERROR_INDEX, "index %s%llu is out of range for dimension %d of size %lld%s", sign,
        found < 0 && !is_unsigned ? 0 - (unsigned long long)found : (unsigned long long)found,
        index->dimension, (long long)index->size,
        *sign != 0 && index->wrap == 0 ? ": negative ones do not count from the end here" : "");
}

gn_status gni_index_refuse(const struct gni_index_plan *plan)
{
    int64_t found;
    for (int k = 0; k < plan->index_count; k++)
        if (!plan->indices[k].is_trusted && outside_find(&plan->indices[k], &found))
            return outside_say(&plan->indices[k], found);
    return gni_error(GN_ERROR_INDEX, "an index is out of range");
}

gn_status gni_index_keys_move(const gn_tensor *tensor, int count, gn_key *keys, gn_tensor **copies)
{
    for (int i = 0; i < count; i++) {
        if (keys[i].kind != GN_KEY_TENSOR || keys[i].tensor == NULL ||
            keys[i].tensor->device == tensor->device || !gni_device_is_host(keys[i].tensor->device))
            continue;
        GN_TRY(gn_tensor_to(keys[i].tensor, tensor->device, &copies[i]));
        keys[i].tensor = copies[i];
    }
    return GN_OK;
}

gn_status gni_index_moved_check(const struct gni_index_plan *plan, int count, const gn_key *given,
                                gn_tensor *const *copies)
{
    int64_t found;
    for (int i = plan->block_begin; i < plan->block_end; i++)
        if (plan->sizes[i] == 0) /* broadcast to nothing: no number is looked at */
            return GN_OK;
    for (int k = 0; k < plan->index_count; k++)
        for (int i = 0; i < count; i++) {
            struct gni_index near = plan->indices[k];
            if (copies[i] == NULL || copies[i] != near.tensor ||
                given[i].tensor->device == near.tensor->device)
                continue; /* not a copy, or one that was made for another reason */
            near.tensor = given[i].tensor;
            if (outside_find(&near, &found))
                return outside_say(&near, found);
        }
    return GN_OK;
}

bool gni_index_is_mask(const gn_tensor *tensor, int count, const gn_key *keys)
{
    const gn_tensor *mask = count == 1 && keys[0].kind == GN_KEY_TENSOR ? keys[0].tensor : NULL;
    return !gni_device_is_host(tensor->device) && mask != NULL && mask->dtype == GN_BOOL &&
           mask->ndim > 0 && mask->device == tensor->device && mask->ndim <= tensor->ndim &&
           gni_shape_is_equal(mask->ndim, mask->sizes, mask->ndim, tensor->sizes);
}

/* A mask in memory, contiguous. */
static gn_status mask_take(gn_tensor *mask, gn_tensor **whole)
{
    GN_TRY(gni_tensor_compact(mask, whole));
    gn_status status = gni_tensor_flush(*whole);
    if (status != GN_OK)
        gn_tensor_release(*whole);
    return status;
}

gn_status gni_index_mask_get(gn_tensor *tensor, gn_tensor *mask, gn_tensor **result)
{
    gn_tensor *whole;
    GN_TRY(gni_tensor_flush(tensor));
    GN_TRY(mask_take(mask, &whole));
    gn_status status = gni_backend_get(tensor->device)->mask_get(tensor, whole, result);
    gn_tensor_release(whole);
    return status;
}

gn_status gni_index_mask_set(gn_tensor *tensor, gn_tensor *mask, gn_tensor *values)
{
    struct gni_storage *storage = gni_tensor_storage(tensor);
    gn_tensor *whole;
    GN_TRY(mask_take(mask, &whole));
    gn_status status = gni_recorder_flush_readers(storage);
    if (status == GN_OK) {
        atomic_fetch_add(&storage->version, 1);
        status = gni_backend_get(tensor->device)->mask_set(tensor, whole, values);
    }
    gn_tensor_release(whole);
    return status;
}

gn_status gni_index_masked_fill(gn_tensor *target, gn_tensor *mask, gn_operand value)
{
    int64_t strides[GN_DIMENSIONS_MAX] = {0};
    uint64_t number = 0;
    gn_tensor *wide = NULL, *one = NULL, *cast = NULL;
    memcpy(strides, mask->strides, sizeof *strides * (size_t)mask->ndim);
    gn_status status = gni_tensor_alias_as(mask, 0, target->ndim, target->sizes, strides, &wide);
    if (status == GN_OK && value.tensor != NULL) {
        status = gni_tensor_alias_as(value.tensor, 0, 0, strides, strides, &one);
        if (status == GN_OK)
            status = gn_cast(one, target->dtype, &cast);
        value.tensor = cast;
    } else if (status == GN_OK) {
        status = gni_number_check(value.scalar, target->dtype);
        gni_scalar_store(value.scalar, target->dtype, &number);
        value.scalar = gni_scalar_load(target->dtype, &number);
    }
    if (status == GN_OK) {
        gn_operand operands[] = {{.tensor = wide}, value, {.tensor = target}};
        status = gn_elementwise_into(GN_OP_WHERE, operands, target);
    }
    gn_tensor_release(cast);
    gn_tensor_release(one);
    gn_tensor_release(wide);
    return status;
}
