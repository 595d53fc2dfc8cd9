/*
 * index_host.c: indexing by way of the host.
 *
 * Whatever is written is written into a copy of the target first, which the target then takes over: if anything
 * fails before that, the target is as it was. What is computed on the host has its bits, and its errors.
 */
#include "ops/index_host.h"

#include "ops/move.h"

#include <string.h>

gn_status gni_host_keys_init(struct gni_host_keys *host, int count, const gn_key *keys)
{
    host->count = count < GN_KEYS_MAX ? count : GN_KEYS_MAX;
    memset(host->copies, 0, sizeof host->copies);
    if (count > GN_KEYS_MAX)
        return gni_error(GN_ERROR_INDEX, "a key has at most %d parts, not %d", GN_KEYS_MAX, count);
    for (int i = 0; i < count; i++) {
        host->keys[i] = keys[i];
        if (keys[i].kind != GN_KEY_TENSOR || keys[i].tensor == NULL)
            continue; /* none at all is refused by the plan */
        GN_TRY(gni_host_copy(keys[i].tensor, &host->copies[i]));
        host->keys[i].tensor = host->copies[i];
    }
    return GN_OK;
}

void gni_host_keys_deinit(struct gni_host_keys *host)
{
    for (int i = 0; i < host->count; i++)
        gn_tensor_release(host->copies[i]);
}

static gn_status result_move(gn_status status, const gn_tensor *like, gn_tensor *made,
                             gn_tensor **result)
{
    gn_tensor **const results[] = {result};
    return gni_results_move(status, like->device, 1, &made, results);
}

gn_status gni_host_index_get(gn_tensor *tensor, int count, const gn_key *keys, gn_tensor **result)
{
    struct gni_host_keys host;
    gn_tensor *copy = NULL, *made = NULL;
    gn_status status = gni_host_keys_init(&host, count, keys);
    if (status == GN_OK)
        status = gni_host_copy(tensor, &copy);
    if (status == GN_OK)
        status = gn_index_get(copy, count, host.keys, &made);
    gn_tensor_release(copy);
    gni_host_keys_deinit(&host);
    return result_move(status, tensor, made, result);
}

/* A copy of a tensor on the host that nobody else has; and the value. */
static gn_status target_take(gn_tensor *tensor, gn_operand *value, gn_tensor **copy,
                             gn_tensor **value_copy)
{
    *copy = *value_copy = NULL;
    if (value->tensor != NULL) {
        GN_TRY(gni_host_copy(value->tensor, value_copy));
        value->tensor = *value_copy;
    }
    return gni_host_copy(tensor, copy);
}

/* The target takes over what was written, or nothing. */
static gn_status target_give(gn_status status, gn_tensor *tensor, gn_tensor *copy,
                             gn_tensor *value_copy)
{
    if (status == GN_OK)
        status = gn_assign(tensor, (gn_operand){.tensor = copy});
    gn_tensor_release(copy);
    gn_tensor_release(value_copy);
    return status;
}

gn_status gni_host_index_set(gn_tensor *tensor, int count, const gn_key *keys, gn_operand value,
                             bool is_accumulated)
{
    struct gni_host_keys host;
    gn_tensor *copy = NULL, *value_copy = NULL;
    gn_status status = gni_host_keys_init(&host, count, keys);
    if (status == GN_OK)
        status = target_take(tensor, &value, &copy, &value_copy);
    if (status == GN_OK)
        status = gn_index_set(copy, count, host.keys, value, is_accumulated);
    gni_host_keys_deinit(&host);
    return target_give(status, tensor, copy, value_copy);
}

gn_status gni_host_index_read(gni_index_read call, gn_tensor *tensor, int dimension,
                              gn_tensor *index, gn_tensor **result)
{
    gn_tensor *copy = NULL, *numbers = NULL, *made = NULL;
    gn_status status = gni_host_copy(tensor, &copy);
    if (status == GN_OK)
        status = gni_host_copy(index, &numbers);
    if (status == GN_OK)
        status = call(copy, dimension, numbers, &made);
    gn_tensor_release(numbers);
    gn_tensor_release(copy);
    return result_move(status, tensor, made, result);
}

gn_status gni_host_index_write(gni_index_write call, gn_tensor *tensor, int dimension,
                               gn_tensor *index, gn_operand value, bool is_accumulated)
{
    gn_tensor *copy = NULL, *value_copy = NULL, *numbers = NULL;
    gn_status status = gni_host_copy(index, &numbers);
    if (status == GN_OK)
        status = target_take(tensor, &value, &copy, &value_copy);
    if (status == GN_OK)
        status = call(copy, dimension, numbers, value, is_accumulated);
    gn_tensor_release(numbers);
    return target_give(status, tensor, copy, value_copy);
}

gn_status gni_host_nonzero(gn_tensor *tensor, gn_tensor **result)
{
    gn_tensor *copy, *made = NULL;
    GN_TRY(gni_host_copy(tensor, &copy));
    gn_status status = gn_nonzero(copy, &made);
    gn_tensor_release(copy);
    return result_move(status, tensor, made, result);
}

gn_status gni_host_searchsorted(gn_tensor *sequence, gn_tensor *values, bool is_right,
                                gn_tensor **result)
{
    gn_tensor *copy = NULL, *wanted = NULL, *made = NULL;
    gn_status status = gni_host_copy(sequence, &copy);
    if (status == GN_OK)
        status = gni_host_copy(values, &wanted);
    if (status == GN_OK)
        status = gn_searchsorted(copy, wanted, is_right, &made);
    gn_tensor_release(wanted);
    gn_tensor_release(copy);
    return result_move(status, sequence, made, result);
}

gn_status gni_host_bincount(gn_tensor *tensor, gn_tensor *weights, int64_t minimum,
                            gn_tensor **result)
{
    gn_tensor *copy = NULL, *own = NULL, *made = NULL;
    gn_status status = gni_host_copy(tensor, &copy);
    if (status == GN_OK && weights != NULL)
        status = gni_host_copy(weights, &own);
    if (status == GN_OK)
        status = gn_bincount(copy, own, minimum, &made);
    gn_tensor_release(own);
    gn_tensor_release(copy);
    return result_move(status, tensor, made, result);
}
