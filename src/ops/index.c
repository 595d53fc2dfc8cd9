/*
 * index.c: reading and writing by keys, gathering and scattering: what is checked and computed before a plan is
 * carried out, for one device or another.
 *
 * Invariants of every function that writes:
 *   IW1 whatever can fail (shapes, types, ranges, memory) comes before the first element is written; but where work is
 *        not immediate the kernel checks the numbers of index tensors, each before its element is written;
 *   IW2 values and index tensors that lie in the target's memory are copied first;
 *   IW3 pending operations that read the target are computed first, and its version grows.
 */
#include "tensor/tape.h"
#include "ops/recorder.h"

#include "ops/backend.h"
#include "ops/cpu/cpu_index.h"

#include <string.h>

static bool is_basic_key(int count, const gn_key *keys)
{
    for (int i = 0; i < count; i++)
        if (keys[i].kind == GN_KEY_TENSOR || keys[i].kind == GN_KEY_BOOL)
            return false;
    return true;
}

/* ---- keys that are on another device ----------------------------------------------------------- */

/* True if a part of a key is a tensor of the host for a tensor of another device: a copy goes there. */
static bool is_elsewhere(const gn_key *key, const gn_tensor *tensor)
{
    return key->kind == GN_KEY_TENSOR && key->tensor != NULL &&
           key->tensor->device != tensor->device && key->tensor->device->ops->is_host_memory;
}

static bool are_elsewhere(const gn_tensor *tensor, int count, const gn_key *keys)
{
    for (int i = 0; i < count; i++)
        if (is_elsewhere(&keys[i], tensor))
            return true;
    return false;
}

/* Index tensors of the host go where the tensor is: `copies` (NULLs before) are the caller's to release. */
static gn_status keys_move(const gn_tensor *tensor, int count, gn_key *keys, gn_tensor **copies)
{
    for (int i = 0; i < count; i++) {
        if (!is_elsewhere(&keys[i], tensor))
            continue;
        GN_TRY(gn_tensor_to(keys[i].tensor, tensor->device, &copies[i]));
        keys[i].tensor = copies[i];
    }
    return GN_OK;
}

/* Their numbers are looked at by the host, where the mistake is: what kernels find out is said later. */
static gn_status moved_check(const struct gni_index_plan *plan, int count, const gn_key *given,
                             gn_tensor *const *copies)
{
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
            GN_TRY(gni_index_check_numbers(&near));
        }
    return GN_OK;
}

/* True if a key is one mask over the first dimensions of a tensor. */
static bool is_mask(const gn_tensor *tensor, int count, const gn_key *keys)
{
    const gn_tensor *mask = count == 1 && keys[0].kind == GN_KEY_TENSOR ? keys[0].tensor : NULL;
    return mask != NULL && mask->dtype == GN_BOOL && mask->ndim > 0 &&
           mask->device == tensor->device && mask->ndim <= tensor->ndim &&
           gni_shape_is_equal(mask->ndim, mask->sizes, mask->ndim, tensor->sizes);
}

/* The elements of a tensor where a mask over all dimensions is true. */
static gn_status whole_mask_get(gn_tensor *tensor, gn_tensor *mask, gn_tensor **result)
{
    GN_TRY(gni_tensor_flush(tensor));
    GN_TRY(gni_tensor_flush(mask));
    return gni_backend_get(tensor->device)->mask_get(tensor, mask, result);
}

/* They take over contiguous values of their type, apart from the tensor. */
static gn_status whole_mask_set(gn_tensor *tensor, gn_tensor *mask, gn_tensor *values)
{
    struct gni_storage *storage = gni_tensor_storage(tensor);
    GN_TRY(gni_tensor_flush(mask));
    GN_TRY(gni_recorder_flush_readers(storage));
    GN_TRY(gni_backend_get(tensor->device)->mask_set(tensor, mask, values));
    gni_storage_note_write(storage);
    return GN_OK;
}

/* ---- reading ----------------------------------------------------------------------------------- */

/* Makes the result of a plan. */
static gn_status plan_get(struct gni_index_plan *plan, gn_tensor *tensor, gn_tensor **result)
{
    gn_tensor *made;
    GN_TRY(gni_tensor_flush(tensor));
    if (!gni_index_plan_is_streamed(plan))
        GN_TRY(gni_index_plan_compact(plan));
    GN_TRY(gn_tensor_create(tensor->dtype, plan->ndim, plan->sizes, tensor->device, &made));
    gn_status status = gni_backend_get(tensor->device)->index_get(plan, tensor, made);
    if (status == GN_OK)
        *result = made;
    else
        gn_tensor_release(made);
    return status;
}

/* With keys of which some are on another device. */
static gn_status keys_get_moved(gn_tensor *tensor, int count, const gn_key *given,
                                gn_tensor **result)
{
    struct gni_index_plan plan;
    struct gni_index_source source = gni_index_source_of(tensor);
    gn_key keys[GN_KEYS_MAX];
    gn_tensor *copies[GN_KEYS_MAX] = {NULL};
    if (count > GN_KEYS_MAX)
        return gni_error(GN_ERROR_INDEX, "a key has at most %d parts, not %d", GN_KEYS_MAX, count);
    memcpy(keys, given, sizeof *keys * (size_t)count);
    gn_status status = keys_move(tensor, count, keys, copies);
    if (status == GN_OK)
        status = gni_index_plan_init(&plan, &source, count, keys);
    if (status == GN_OK) {
        status = moved_check(&plan, count, given, copies);
        if (status == GN_OK)
            status = plan_get(&plan, tensor, result);
        gni_index_plan_deinit(&plan);
    }
    for (int i = 0; i < count; i++)
        gn_tensor_release(copies[i]);
    return status;
}

/* A view on the tape of a tensor whose places share elements: the key is taken apart once more, for a tensor whose places
 * do not. */
static gn_status expanded_get(gn_tensor *tensor, const struct gni_index_plan *plan, int count,
                              const gn_key *keys, gn_tensor **result)
{
    struct gni_strided_details view;
    struct gni_index_plan apart;
    struct gni_index_source source = gni_index_source_of(tensor);
    gni_tape_strides(tensor, view.own);
    source.strides = view.own;
    GN_TRY(gni_index_plan_init(&apart, &source, count, keys));
    view.ndim = apart.ndim;
    view.offset = apart.offset;
    memcpy(view.sizes, apart.sizes, sizeof view.sizes);
    memcpy(view.strides, apart.strides, sizeof view.strides);
    return gni_tensor_alias_planned(tensor, plan->offset, plan->ndim, plan->sizes, plan->strides,
                                    &view, result);
}

static gn_status index_get(gn_tensor *tensor, int count, const gn_key *keys, gn_tensor **result)
{
    GN_CHECK_ARGUMENT(tensor != NULL && result != NULL && (keys != NULL || count == 0),
                      "tensor, keys and result must not be NULL");
    struct gni_index_plan plan;
    struct gni_index_source source = gni_index_source_of(tensor);
    if (is_mask(tensor, count, keys) && keys[0].tensor->ndim == tensor->ndim)
        return whole_mask_get(tensor, keys[0].tensor, result);
    if (are_elsewhere(tensor, count, keys))
        return keys_get_moved(tensor, count, keys, result);
    GN_TRY(gni_index_plan_init(&plan, &source, count, keys));
    if (plan.is_basic && gni_is_taped(tensor) &&
        gni_strides_overlap(tensor->ndim, tensor->sizes, tensor->strides))
        return expanded_get(tensor, &plan, count, keys, result);
    if (plan.is_basic)
        return gni_tensor_alias_as(tensor, plan.offset, plan.ndim, plan.sizes, plan.strides,
                                   result);
    gn_status status = plan_get(&plan, tensor, result);
    gni_index_plan_deinit(&plan);
    return status;
}

/* On the tape: the key, with its tensors as inputs. */
static gn_status index_get_taped(gn_tensor *tensor, int count, const gn_key *keys,
                                 gn_tensor **result)
{
    gn_operand inputs[1 + GN_KEYS_MAX] = {{.tensor = tensor}};
    struct gni_places_details details = {.kind = GNI_PLACES_KEYS, .key_count = count};
    int input_count = 1;
    if (count > GN_KEYS_MAX)
        return index_get(tensor, count, keys, result); /* refuses it */
    for (int i = 0; i < count; i++) {
        details.keys[i] = keys[i];
        details.keys[i].tensor = NULL;
        if (keys[i].kind == GN_KEY_TENSOR)
            inputs[input_count++].tensor = keys[i].tensor;
    }
    (void)gni_tape_enter(tensor);
    gn_status status = index_get(tensor, count, keys, result);
    return gni_tape_leave(
        status, &(struct gni_tape_step){.rule = GNI_RULE_PLACES,
                                        .name = "index",
                                        .input_count = input_count,
                                        .inputs = inputs,
                                        .result_count = 1,
                                        .results = result,
                                        .details = &details,
                                        .detail_bytes = offsetof(struct gni_places_details, keys) +
                                                        (size_t)count * sizeof *keys});
}

gn_status gn_index_get(gn_tensor *tensor, int count, const gn_key *keys, gn_tensor **result)
{
    if (!gni_is_taped(tensor) || (count > 0 && keys == NULL) || is_basic_key(count, keys))
        return index_get(tensor, count, keys, result);
    return index_get_taped(tensor, count, keys, result);
}

gn_status gn_index_check(gn_device *device)
{
    GN_CHECK_ARGUMENT(device != NULL, "device must not be NULL");
    return gni_backend_get(device)->index_check(device);
}

/* ---- writing ----------------------------------------------------------------------------------- */

/* From the first byte that a tensor in memory reaches to behind the last one. */
static void bytes_reach(const gn_tensor *tensor, uintptr_t *begin, uintptr_t *end)
{
    int64_t low, high, size = (int64_t)gni_dtype_size(tensor->dtype);
    uintptr_t first = (uintptr_t)gni_tensor_data(tensor);
    gni_strides_extent(tensor->ndim, tensor->sizes, tensor->strides, &low, &high);
    *begin = first + (uintptr_t)(low * size);
    *end = first + (uintptr_t)((high + 1) * size);
}

/* Whether a tensor's bytes may be among those that are written; by address, as memory of others may be here twice. */
static bool is_shared(const gn_tensor *tensor, const gn_tensor *target)
{
    uintptr_t begin, end, target_begin, target_end;
    if (tensor == NULL || gni_tensor_storage(tensor) == NULL || tensor->count == 0)
        return false;
    bytes_reach(tensor, &begin, &end);
    bytes_reach(target, &target_begin, &target_end);
    return begin < target_end && target_begin < end;
}

/* A tensor of a type, in memory, and apart from the target: itself, or a copy. */
static gn_status operand_take(gn_tensor *tensor, gn_dtype dtype, const gn_tensor *target,
                              gn_tensor **taken)
{
    gn_tensor *made = tensor;
    if (tensor->dtype != dtype || is_shared(tensor, target))
        GN_TRY(gn_cast(tensor, dtype, &made));
    else
        gn_tensor_retain(tensor);
    gn_status status = gni_tensor_flush(made);
    if (status == GN_OK)
        *taken = made;
    else
        gn_tensor_release(made);
    return status;
}

/* Strides of a tensor for a shape that it broadcasts to; dimensions of 1 in front of it are left out. */
static gn_status value_strides(const gn_tensor *value, const struct gni_index_plan *plan,
                               int64_t *strides)
{
    int shift = plan->ndim - value->ndim;
    bool fits = true;
    for (int i = 0; i < plan->ndim; i++)
        strides[i] = 0;
    for (int i = 0; i < value->ndim && fits; i++) {
        int at = i + shift;
        fits = value->sizes[i] == 1 || (at >= 0 && value->sizes[i] == plan->sizes[at]);
        if (fits && value->sizes[i] != 1)
            strides[at] = value->strides[i];
    }
    if (fits)
        return GN_OK;
    return gni_error(GN_ERROR_SHAPE,
                     "a value of shape %s cannot be broadcast to the %s that are written",
                     gni_shape_text(value->ndim, value->sizes).text,
                     gni_shape_text(plan->ndim, plan->sizes).text);
}

/* The last that can fail, and then the elements. `value` is of the target's type, and apart from it; NULL: a number. */
static gn_status plan_set(struct gni_index_plan *plan, gn_tensor *target, const gn_tensor *value,
                          gn_scalar scalar, bool is_accumulated)
{
    int64_t strides[GN_DIMENSIONS_MAX] = {0};
    uint64_t number = 0;
    if (value == NULL) {
        GN_TRY(gni_number_check(scalar, target->dtype));
        gni_scalar_store(scalar, target->dtype, &number);
    } else {
        GN_TRY(value_strides(value, plan, strides));
    }
    if (!gni_index_plan_is_streamed(plan))
        GN_TRY(gni_index_plan_compact(plan));
    struct gni_storage *storage = gni_tensor_storage(target);
    GN_TRY(gni_recorder_flush_readers(storage));
    GN_TRY(gni_backend_get(target->device)
               ->index_set(plan, target, value, strides, number, is_accumulated));
    gni_storage_note_write(storage);
    return GN_OK;
}

static gn_status devices_check(const char *what, const gn_tensor *target, const gn_operand *value)
{
    if (value->tensor != NULL && value->tensor->device != target->device)
        return gni_error(GN_ERROR_INVALID_VALUE, "%s: the tensors are on two devices", what);
    return GN_OK;
}

static gn_status target_check(const char *what, gn_tensor *target)
{
    if (gn_tensor_is_read_only(target))
        return gni_error(GN_ERROR_INVALID_VALUE, "%s: the tensor is read-only", what);
    if (gni_strides_overlap(target->ndim, target->sizes, target->strides))
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "%s: several elements of the tensor (shape %s, strides %s) lie at one "
                         "address, as in an expanded view: write into a clone()",
                         what, gni_shape_text(target->ndim, target->sizes).text,
                         gni_shape_text(target->ndim, target->strides).text);
    return gni_tensor_flush(target);
}

/* A number into few elements of a view, without the recorder; false where that is not to be. */
static bool small_fill(const struct gni_index_plan *plan, gn_tensor *tensor, gn_operand value)
{
    static const int64_t none[GN_DIMENSIONS_MAX];
    struct gni_storage *storage = gni_tensor_storage(tensor);
    uint64_t number = 0;
    if (value.tensor != NULL || plan->count > gni_backend_get(tensor->device)->small_most ||
        storage == NULL || storage->is_read_only ||
        gni_strides_overlap(plan->ndim, plan->sizes, plan->strides) ||
        gni_recorder_flush_readers(storage) != GN_OK)
        return false;
    gni_scalar_store(value.scalar, tensor->dtype, &number);
    gni_index_plan_scatter(plan, gni_tensor_data(tensor), tensor->dtype, &number, none, false);
    gni_storage_note_write(storage);
    return true;
}

/* Copies of the keys, with tensors that lie in the target's memory copied: `copies` are the caller's to release. */
static gn_status keys_part(const gn_tensor *target, int count, gn_key *keys, gn_tensor **copies)
{
    for (int i = 0; i < count; i++) {
        if (keys[i].kind != GN_KEY_TENSOR || !is_shared(keys[i].tensor, target))
            continue;
        GN_TRY(operand_take(keys[i].tensor, keys[i].tensor->dtype, target, &copies[i]));
        keys[i].tensor = copies[i];
    }
    return GN_OK;
}

/* A view takes a value over, without dimensions of 1 in front that it does not have itself. */
static gn_status view_set(gn_tensor *view, gn_operand value, bool is_accumulated)
{
    gn_tensor *narrow = NULL;
    if (value.tensor != NULL && value.tensor->ndim > view->ndim) {
        int extra = value.tensor->ndim - view->ndim;
        for (int i = 0; i < extra; i++)
            if (value.tensor->sizes[i] != 1)
                extra = 0;
        if (extra > 0) {
            GN_TRY(gni_tensor_alias_as(value.tensor, 0, view->ndim, value.tensor->sizes + extra,
                                       value.tensor->strides + extra, &narrow));
            value.tensor = narrow;
        }
    }
    gn_operand both[] = {{.tensor = view}, value};
    gn_status status =
        is_accumulated ? gn_elementwise_into(GN_OP_ADD, both, view) : gn_assign(view, value);
    gn_tensor_release(narrow);
    return status;
}

/* Floating values are not stored as integers behind somebody's back. */
static gn_status kind_check(const char *what, const gn_tensor *target, const gn_operand *value)
{
    gn_dtype dtype = value->tensor != NULL ? value->tensor->dtype : value->scalar.kind;
    if (gni_dtype_kind(dtype) > gni_dtype_kind(target->dtype))
        return gni_error(GN_ERROR_TYPE, "%s: values of %s cannot be stored as %s", what,
                         gni_dtypes[dtype].name, gni_dtypes[target->dtype].name);
    return GN_OK;
}

/* A value of the CPU goes where a GPU's target is: `moved` is the caller's. */
static gn_status value_move(const gn_tensor *target, gn_operand *value, gn_tensor **moved)
{
    if (value->tensor == NULL || value->tensor->device == target->device ||
        !value->tensor->device->ops->is_host_memory)
        return devices_check("assignment by a key", target, value);
    GN_TRY(gn_tensor_to(value->tensor, target->device, moved));
    value->tensor = *moved;
    return GN_OK;
}

/* target = where(mask, value, target), of one value: nobody waits for the number of true elements. */
static gn_status masked_fill(gn_tensor *target, gn_tensor *mask, gn_operand value)
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

/* With keys and a value that are where the target is; `copies` is room for those of keys. */
static gn_status keys_scatter(gn_tensor *tensor, int count, const gn_key *given, gn_key *keys,
                              gn_tensor **copies, gn_operand value, bool is_accumulated)
{
    struct gni_index_plan plan;
    struct gni_index_source source = gni_index_source_of(tensor);
    gn_tensor *taken = NULL;
    bool has_mask = !is_accumulated && is_mask(tensor, count, keys);
    if (has_mask && !tensor->device->ops->is_immediate &&
        (value.tensor == NULL || value.tensor->count == 1))
        return masked_fill(tensor, keys[0].tensor, value);
    gn_status status = keys_part(tensor, count, keys, copies);
    if (status == GN_OK && value.tensor != NULL)
        status = operand_take(value.tensor, tensor->dtype, tensor, &taken);
    if (status == GN_OK && has_mask && taken != NULL && taken->count != 1 &&
        keys[0].tensor->ndim == tensor->ndim && taken->ndim == 1 && taken->is_contiguous) {
        status = whole_mask_set(tensor, keys[0].tensor, taken);
        gn_tensor_release(taken);
        return status;
    }
    if (status == GN_OK)
        status = gni_index_plan_init(&plan, &source, count, keys);
    if (status == GN_OK) {
        status = moved_check(&plan, count, given, copies);
        if (status == GN_OK)
            status = plan_set(&plan, tensor, taken, value.scalar, is_accumulated);
        gni_index_plan_deinit(&plan);
    }
    gn_tensor_release(taken);
    return status;
}

static gn_status index_scatter(gn_tensor *tensor, int count, const gn_key *given, gn_operand value,
                               bool is_accumulated)
{
    gn_key keys[GN_KEYS_MAX];
    gn_tensor *copies[GN_KEYS_MAX], *moved = NULL;
    GN_TRY(target_check("assignment by a key", tensor));
    if (is_accumulated)
        GN_TRY(kind_check("accumulation by a key", tensor, &value));
    memcpy(keys, given, sizeof *keys * (size_t)count);
    memset(copies, 0, sizeof *copies * (size_t)count);
    gn_status status = value_move(tensor, &value, &moved);
    if (status == GN_OK && are_elsewhere(tensor, count, keys))
        status = keys_move(tensor, count, keys, copies);
    if (status == GN_OK)
        status = keys_scatter(tensor, count, given, keys, copies, value, is_accumulated);
    gn_tensor_release(moved);
    for (int i = 0; i < count; i++)
        gn_tensor_release(copies[i]);
    return status;
}

static gn_status index_set(gn_tensor *tensor, int count, const gn_key *keys, gn_operand value,
                           bool is_accumulated)
{
    GN_CHECK_ARGUMENT(tensor != NULL && (keys != NULL || count == 0),
                      "tensor and keys must not be NULL");
    if (count > GN_KEYS_MAX)
        return gni_error(GN_ERROR_INDEX, "a key has at most %d parts, not %d", GN_KEYS_MAX, count);
    if (!is_basic_key(count, keys))
        return index_scatter(tensor, count, keys, value, is_accumulated);
    struct gni_index_plan plan;
    struct gni_index_source source = gni_index_source_of(tensor);
    gn_tensor *view;
    GN_TRY(gni_index_plan_init(&plan, &source, count, keys));
    if (!is_accumulated && small_fill(&plan, tensor, value))
        return GN_OK;
    GN_TRY(gni_tensor_alias_as(tensor, plan.offset, plan.ndim, plan.sizes, plan.strides, &view));
    gn_status status = view_set(view, value, is_accumulated);
    gn_tensor_release(view);
    return status;
}

/* Writes on the tape: first what is written to may be, then the write, then the step. */
static gn_status write_begin(const char *name, gn_tensor *tensor)
{
    GN_TRY(gni_tape.write_check(name, tensor));
    gni_tape_is_paused = true;
    return GN_OK;
}

static gn_status write_end(gn_status status, const char *name,
                           const struct gni_places_details *places, int input_count,
                           const gn_operand *inputs)
{
    gni_tape_is_paused = false;
    return status != GN_OK ? status
                           : gni_tape.record_write(
                                 &(struct gni_tape_step){.rule = GNI_RULE_PUT,
                                                         .name = name,
                                                         .input_count = input_count,
                                                         .inputs = inputs,
                                                         .details = places,
                                                         .detail_bytes = gni_places_bytes(places)});
}

static gn_status index_set_taped(gn_tensor *tensor, int count, const gn_key *keys, gn_operand value,
                                 bool is_accumulated)
{
    gn_operand inputs[2 + GN_KEYS_MAX] = {{.tensor = tensor}, value};
    struct gni_places_details details = {
        .kind = GNI_PLACES_KEYS, .key_count = count, .is_accumulated = is_accumulated};
    int input_count = 2;
    if (count > GN_KEYS_MAX || (count > 0 && keys == NULL))
        return index_set(tensor, count, keys, value, is_accumulated); /* refuses it */
    for (int i = 0; i < count; i++) {
        details.keys[i] = keys[i];
        details.keys[i].tensor = NULL;
        if (keys[i].kind == GN_KEY_TENSOR)
            inputs[input_count++].tensor = keys[i].tensor;
    }
    GN_TRY(write_begin("assignment by a key", tensor));
    gn_status status = index_set(tensor, count, keys, value, is_accumulated);
    return write_end(status, "index_put", &details, input_count, inputs);
}

gn_status gn_index_set(gn_tensor *tensor, int count, const gn_key *keys, gn_operand value,
                       bool is_accumulated)
{
    return gni_is_taped(tensor) || (tensor != NULL && gni_is_taped(value.tensor))
               ? index_set_taped(tensor, count, keys, value, is_accumulated)
               : index_set(tensor, count, keys, value, is_accumulated);
}

/* ---- along one dimension ----------------------------------------------------------------------- */

static gn_status index_check(const char *what, const gn_tensor *tensor, const gn_tensor *index)
{
    if (gni_dtype_kind(index->dtype) != GNI_KIND_INTEGER)
        return gni_error(GN_ERROR_TYPE, "%s: an index is of integers, not of %s", what,
                         gni_dtypes[index->dtype].name);
    if (index->device != tensor->device)
        return gni_error(GN_ERROR_INVALID_VALUE, "%s: the tensor and the index are on two devices",
                         what);
    return GN_OK;
}

/*
 * The plan of a gather: the place of the result is that of the tensor but for one dimension, which the index gives.
 * `index` must be in memory.
 */
static gn_status gather_plan(const char *what, const gn_tensor *tensor, int dimension,
                             gn_tensor *index, struct gni_index_plan *plan)
{
    int at;
    GN_TRY(gni_dimension_wrap(dimension, tensor->ndim, &at));
    bool fits = index->ndim == tensor->ndim;
    for (int i = 0; fits && i < index->ndim; i++)
        fits = i == at || index->sizes[i] <= tensor->sizes[i];
    if (!fits && index->count > 0)
        return gni_error(GN_ERROR_SHAPE,
                         "%s: an index of shape %s does not fit a tensor of %s along dimension %d: "
                         "it has as many dimensions, and is no larger but there",
                         what, gni_shape_text(index->ndim, index->sizes).text,
                         gni_shape_text(tensor->ndim, tensor->sizes).text, at);
    plan->is_basic = plan->has_mask = false;
    plan->ndim = index->ndim;
    plan->count = index->count;
    plan->offset = 0;
    plan->block_begin = 0;
    plan->block_end = index->ndim;
    plan->index_count = 1;
    bool has_dimension = tensor->ndim > 0 && index->ndim == tensor->ndim;
    int64_t size = has_dimension ? tensor->sizes[at] : 1;
    plan->indices[0] = (struct gni_index){.tensor = index,
                                          .dimension = at,
                                          .size = size,
                                          .stride = has_dimension ? tensor->strides[at] : 0};
    for (int i = 0; i < index->ndim; i++) {
        plan->sizes[i] = index->sizes[i];
        plan->strides[i] = i == at || !has_dimension ? 0 : tensor->strides[i];
        plan->indices[0].strides[i] = index->sizes[i] == 1 ? 0 : index->strides[i];
    }
    return GN_OK;
}

static gn_status gather(gn_tensor *tensor, int dimension, gn_tensor *index, gn_tensor **result)
{
    GN_CHECK_ARGUMENT(tensor != NULL && index != NULL && result != NULL,
                      "tensor, index and result must not be NULL");
    struct gni_index_plan plan;
    GN_TRY(index_check("gather", tensor, index));
    GN_TRY(gather_plan("gather", tensor, dimension, index, &plan));
    return plan_get(&plan, tensor, result);
}

gn_status gn_gather(gn_tensor *tensor, int dimension, gn_tensor *index, gn_tensor **result)
{
    bool is_taped = gni_tape_enter(tensor);
    gn_status status = gather(tensor, dimension, index, result);
    return !is_taped ? status
                     : gni_tape_leave_places(status, GNI_PLACES_GATHER, "gather", tensor, dimension,
                                             index, result);
}

/* The part of the values that an index of this shape uses, in the target's type. */
static gn_status value_cut(gn_tensor *value, const gn_tensor *index, gn_tensor **cut)
{
    bool fits = value->ndim == index->ndim;
    for (int i = 0; fits && i < index->ndim; i++)
        fits = index->sizes[i] <= value->sizes[i];
    if (!fits)
        return gni_error(GN_ERROR_SHAPE,
                         "scatter: values of shape %s are too few for an index of %s",
                         gni_shape_text(value->ndim, value->sizes).text,
                         gni_shape_text(index->ndim, index->sizes).text);
    struct gni_strided_details view = {.ndim = index->ndim};
    gni_tape_strides(value, view.own);
    memcpy(view.sizes, index->sizes, sizeof view.sizes);
    memcpy(view.strides, view.own, sizeof view.strides);
    return gni_tensor_alias_planned(value, 0, index->ndim, index->sizes, value->strides, &view,
                                    cut);
}

static gn_status scatter(gn_tensor *tensor, int dimension, gn_tensor *index, gn_operand value,
                         bool is_accumulated)
{
    GN_CHECK_ARGUMENT(tensor != NULL && index != NULL, "tensor and index must not be NULL");
    struct gni_index_plan plan;
    gn_tensor *own = NULL, *cut = NULL, *taken = NULL;
    GN_TRY(target_check("scatter", tensor));
    GN_TRY(devices_check("scatter", tensor, &value));
    GN_TRY(kind_check("scatter", tensor, &value));
    GN_TRY(index_check("scatter", tensor, index));
    GN_TRY(operand_take(index, index->dtype, tensor, &own));
    gn_status status = gather_plan("scatter", tensor, dimension, own, &plan);
    if (status == GN_OK && value.tensor != NULL && index->count > 0) {
        status = value_cut(value.tensor, index, &cut);
        if (status == GN_OK)
            status = operand_take(cut, tensor->dtype, tensor, &taken);
    }
    if (status == GN_OK && index->count > 0)
        status = plan_set(&plan, tensor, taken, value.scalar, is_accumulated);
    gn_tensor_release(taken);
    gn_tensor_release(cut);
    gn_tensor_release(own);
    return status;
}

gn_status gn_scatter(gn_tensor *tensor, int dimension, gn_tensor *index, gn_operand value,
                     bool is_accumulated)
{
    bool is_taped = tensor != NULL && (gni_is_taped(tensor) || gni_is_taped(value.tensor));
    if (!is_taped)
        return scatter(tensor, dimension, index, value, is_accumulated);
    gn_tensor *cut = NULL;
    if (value.tensor != NULL && index != NULL && index->count > 0) /* on the tape as well */
        GN_TRY(value_cut(value.tensor, index, &cut));
    if (cut != NULL)
        value.tensor = cut;
    const gn_operand inputs[] = {{.tensor = tensor}, value, {.tensor = index}};
    struct gni_places_details details = {.kind = GNI_PLACES_GATHER,
                                         .dimension =
                                             dimension < 0 ? dimension + tensor->ndim : dimension,
                                         .is_accumulated = is_accumulated};
    gn_status status = write_begin("scatter", tensor);
    if (status == GN_OK) {
        status = scatter(tensor, dimension, index, value, is_accumulated);
        status = write_end(status, "scatter", &details, 3, inputs);
    }
    gn_tensor_release(cut);
    return status;
}

/* A key that names slices of one dimension. The index becomes one of one dimension: `made` is the caller's. */
static gn_status select_plan(const char *what, gn_tensor *tensor, int dimension, gn_tensor *index,
                             struct gni_index_plan *plan, gn_tensor **made)
{
    int at;
    GN_TRY(gni_dimension_wrap(dimension, tensor->ndim, &at));
    if (index->ndim > 1)
        return gni_error(GN_ERROR_INDEX, "%s: an index has at most one dimension, not the shape %s",
                         what, gni_shape_text(index->ndim, index->sizes).text);
    GN_TRY(gn_tensor_view(index, 1, &index->count, made));
    static const int64_t one[] = {1};
    struct gni_index_source source = gni_index_source_of(tensor);
    if (tensor->ndim == 0) { /* counts as one of one element */
        source.ndim = 1;
        source.sizes = source.strides = one;
    }
    gn_key keys[GN_DIMENSIONS_MAX];
    for (int i = 0; i < at; i++)
        keys[i] = (gn_key){.kind = GN_KEY_SLICE, .stop = INT64_MAX, .step = 1};
    keys[at] = (gn_key){.kind = GN_KEY_TENSOR, .tensor = *made};
    gn_status status = gni_index_plan_init(plan, &source, at + 1, keys);
    if (status != GN_OK) {
        gn_tensor_release(*made);
        return status;
    }
    plan->indices[0].wrap = 0;
    return GN_OK;
}

static gn_status index_select(gn_tensor *tensor, int dimension, gn_tensor *index,
                              gn_tensor **result)
{
    GN_CHECK_ARGUMENT(tensor != NULL && index != NULL && result != NULL,
                      "tensor, index and result must not be NULL");
    struct gni_index_plan plan;
    gn_tensor *flat;
    GN_TRY(index_check("index_select", tensor, index));
    GN_TRY(select_plan("index_select", tensor, dimension, index, &plan, &flat));
    if (tensor->ndim == 0 && index->count == 1) { /* PyTorch gives no dimension back, either */
        plan.ndim = plan.block_begin = plan.block_end = 0;
    }
    gn_status status = plan_get(&plan, tensor, result);
    gn_tensor_release(flat);
    return status;
}

gn_status gn_index_select(gn_tensor *tensor, int dimension, gn_tensor *index, gn_tensor **result)
{
    bool is_taped = gni_tape_enter(tensor);
    gn_status status = index_select(tensor, dimension, index, result);
    return !is_taped ? status
                     : gni_tape_leave_places(status, GNI_PLACES_SELECT, "index_select", tensor,
                                             dimension, index, result);
}

static gn_status index_put(gn_tensor *tensor, int dimension, gn_tensor *index, gn_operand value,
                           bool is_accumulated)
{
    GN_CHECK_ARGUMENT(tensor != NULL && index != NULL, "tensor and index must not be NULL");
    struct gni_index_plan plan;
    gn_tensor *own = NULL, *flat = NULL, *taken = NULL;
    GN_TRY(target_check("index_put", tensor));
    GN_TRY(devices_check("index_put", tensor, &value));
    GN_TRY(kind_check("index_put", tensor, &value));
    GN_TRY(index_check("index_put", tensor, index));
    GN_TRY(operand_take(index, index->dtype, tensor, &own));
    gn_status status = GN_OK;
    if (value.tensor != NULL)
        status = operand_take(value.tensor, tensor->dtype, tensor, &taken);
    if (status == GN_OK)
        status = select_plan("index_put", tensor, dimension, own, &plan, &flat);
    if (status == GN_OK)
        status = plan_set(&plan, tensor, taken, value.scalar, is_accumulated);
    gn_tensor_release(flat);
    gn_tensor_release(taken);
    gn_tensor_release(own);
    return status;
}

gn_status gn_index_put(gn_tensor *tensor, int dimension, gn_tensor *index, gn_operand value,
                       bool is_accumulated)
{
    bool is_taped = tensor != NULL && (gni_is_taped(tensor) || gni_is_taped(value.tensor));
    if (!is_taped)
        return index_put(tensor, dimension, index, value, is_accumulated);
    const gn_operand inputs[] = {{.tensor = tensor}, value, {.tensor = index}};
    struct gni_places_details details = {.kind = GNI_PLACES_SELECT,
                                         .dimension =
                                             dimension < 0 ? dimension + tensor->ndim : dimension,
                                         .is_accumulated = is_accumulated};
    GN_TRY(write_begin("index_put", tensor));
    gn_status status = index_put(tensor, dimension, index, value, is_accumulated);
    return write_end(status, "index_put", &details, 3, inputs);
}
