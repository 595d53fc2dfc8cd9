/*
 * index_describe.c: what a key comes to, without carrying it out. For a tensor of a GPU, too, that is found out by the
 * host, which gets the index tensors and masks for it.
 */
#include "ops/recorder.h"

#include "ops/cpu/cpu_index.h"
#include "ops/move.h"

#include <string.h>

/* Keys whose tensors are on the host. */
struct host_keys {
    gn_device *host;
    int count;
    gn_key keys[GN_KEYS_MAX];
    gn_tensor *copies[GN_KEYS_MAX];
};

static void keys_deinit(struct host_keys *near)
{
    for (int i = 0; i < near->count; i++)
        gn_tensor_release(near->copies[i]);
}

/* Index tensors of a GPU's tensor are copied; others are as they were given. */
static gn_status keys_init(struct host_keys *near, const gn_tensor *tensor, int count,
                           const gn_key *keys)
{
    if (count > GN_KEYS_MAX)
        return gni_error(GN_ERROR_INDEX, "a key has at most %d parts, not %d", GN_KEYS_MAX, count);
    GN_TRY(gni_device_get_host(&near->host));
    gn_status status = GN_OK;
    for (near->count = 0; near->count < count && status == GN_OK; near->count++) {
        gn_key *key = &near->keys[near->count];
        gn_tensor **copy = &near->copies[near->count];
        *key = keys[near->count];
        *copy = NULL;
        if (key->kind != GN_KEY_TENSOR || key->tensor == NULL || tensor->device == near->host)
            continue;
        status = gni_host_copy(key->tensor, copy);
        key->tensor = *copy;
    }
    if (status != GN_OK)
        keys_deinit(near);
    return status;
}

/* The numbers of index tensors are in range, as they must be for the key to be carried out. */
static gn_status numbers_check(struct gni_index_plan *plan)
{
    bool is_needed = false;
    for (int k = 0; k < plan->index_count; k++)
        is_needed |= !plan->indices[k].is_trusted;
    if (is_needed)
        GN_TRY(gni_index_plan_compact(plan));
    return !is_needed || gni_index_plan_is_in_range(plan) ? GN_OK : gni_index_refuse(plan);
}

static gn_status key_describe(const gn_tensor *tensor, const struct host_keys *near,
                              const gn_operand *value, gn_index_info *info)
{
    struct gni_index_plan plan;
    struct gni_index_source source = gni_index_source_of(tensor);
    source.device = near->host;
    GN_TRY(gni_index_plan_init(&plan, &source, near->count, near->keys));
    bool is_number = value != NULL && value->tensor == NULL;
    *info = (gn_index_info){
        .kind = plan.is_basic ? (value == NULL ? GN_INDEX_VIEW
                                 : is_number   ? GN_INDEX_FILL
                                               : GN_INDEX_COPY)
                              : (value == NULL ? GN_INDEX_GATHER : GN_INDEX_SCATTER),
        .dimensions = plan.ndim,
        .offset_bytes = plan.offset * (int64_t)gni_dtype_size(tensor->dtype),
        .temp_bytes = gni_index_plan_temp_bytes(&plan),
    };
    memcpy(info->shape, plan.sizes, sizeof *plan.sizes * (size_t)plan.ndim);
    memcpy(info->strides, plan.strides, sizeof *plan.strides * (size_t)plan.ndim);
    if (!plan.is_basic)
        gni_strides_contiguous(plan.ndim, plan.sizes, info->strides);
    for (int k = 0; k < plan.index_count; k++)
        info->needs_mask_compaction |= plan.indices[k].is_mask;
    if (!plan.is_basic && value != NULL && value->tensor != NULL &&
        value->tensor->dtype != tensor->dtype)
        info->temp_bytes += (size_t)value->tensor->count * gni_dtype_size(tensor->dtype);
    gn_status status = numbers_check(&plan);
    gni_index_plan_deinit(&plan);
    return status;
}

gn_status gn_index_describe(gn_tensor *tensor, int count, const gn_key *keys,
                            const gn_operand *value, gn_index_info *info)
{
    GN_CHECK_ARGUMENT(tensor != NULL && info != NULL && (keys != NULL || count == 0),
                      "tensor, keys and info must not be NULL");
    struct host_keys near;
    GN_TRY(keys_init(&near, tensor, count, keys));
    gn_index_info made;
    gn_status status = key_describe(tensor, &near, value, &made);
    keys_deinit(&near);
    if (status == GN_OK)
        *info = made;
    return status;
}

static gn_status positions_find(const gn_tensor *tensor, const struct host_keys *near,
                                gn_tensor **result)
{
    struct gni_index_plan plan;
    int64_t strides[GN_DIMENSIONS_MAX];
    gn_tensor *made;
    gni_strides_contiguous(tensor->ndim, tensor->sizes, strides);
    struct gni_index_source source = {near->host, GN_INT64, tensor->ndim, tensor->sizes, strides};
    GN_TRY(gni_index_plan_init(&plan, &source, near->count, near->keys));
    gn_status status = gni_index_plan_compact(&plan);
    if (status == GN_OK)
        status = gn_tensor_create(GN_INT64, 1, &plan.count, near->host, &made);
    if (status == GN_OK &&
        !gni_index_plan_offsets(&plan, (int64_t *)(void *)gni_tensor_data(made))) {
        gn_tensor_release(made);
        status = gni_index_refuse(&plan);
    }
    gni_index_plan_deinit(&plan);
    if (status == GN_OK)
        *result = made;
    return status;
}

gn_status gn_index_positions(gn_tensor *tensor, int count, const gn_key *keys, gn_tensor **result)
{
    GN_CHECK_ARGUMENT(tensor != NULL && result != NULL && (keys != NULL || count == 0),
                      "tensor, keys and result must not be NULL");
    struct host_keys near;
    gn_tensor *made = NULL, **const results[] = {result};
    GN_TRY(keys_init(&near, tensor, count, keys));
    gn_status status = positions_find(tensor, &near, &made);
    keys_deinit(&near);
    return gni_results_move(status, tensor->device, 1, &made, results);
}
