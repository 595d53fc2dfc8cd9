#include "tensor/index_plan.h"

#include "base/host.h"
#include "base/text.h"
#include "tensor/tape.h"

#include <string.h>

/* What every basic key takes, and the compiler would not by itself. */
#define INLINE static inline __attribute__((always_inline))

/* ---- the key ----------------------------------------------------------------------------------- */

/* A key while it is taken apart. */
struct parse {
    struct gni_index_plan *plan;
    const struct gni_index_source *source;
    int dimension;                                  /* the next of the source */
    int64_t sizes[GN_KEYS_MAX + GN_DIMENSIONS_MAX]; /* of slices, new axes and the ellipsis */
    int64_t strides[GN_KEYS_MAX + GN_DIMENSIONS_MAX];
    int basic_count;
    uint64_t axes; /* bit i: basic dimension i is a new axis, whose stride comes at the end */
    struct gni_shape block;
    bool has_index; /* an index tensor, a mask or a bool */
    int place;      /* basic dimensions before the index tensors */
    enum {
        NONE_YET,
        INSIDE,
        BEHIND,
        APART
    } adjacency;
};

static bool is_mask_tensor(const gn_key *key)
{
    return key->kind == GN_KEY_TENSOR && key->tensor->dtype == GN_BOOL;
}

/* How many dimensions of the source a part takes. */
static int part_use(const gn_key *key)
{
    switch (key->kind) {
    case GN_KEY_INTEGER:
    case GN_KEY_SLICE:
        return 1;
    case GN_KEY_TENSOR:
        return is_mask_tensor(key) ? key->tensor->ndim : 1;
    default:
        return 0;
    }
}

static gn_status key_check(const struct gni_index_source *source, int count, const gn_key *keys,
                           int *unused)
{
    int used = 0, ellipses = 0;
    if (count > GN_KEYS_MAX)
        return gni_error(GN_ERROR_INDEX, "a key has at most %d parts, not %d", GN_KEYS_MAX, count);
    for (int i = 0; i < count; i++) {
        if ((unsigned)keys[i].kind > GN_KEY_BOOL)
            return gni_error(GN_ERROR_INVALID_VALUE, "%d is no kind of a key", (int)keys[i].kind);
        if (keys[i].kind == GN_KEY_TENSOR && keys[i].tensor == NULL)
            return gni_error(GN_ERROR_INVALID_VALUE, "the tensor of a key is NULL");
        if (keys[i].kind == GN_KEY_TENSOR &&
            gni_dtype_kind(keys[i].tensor->dtype) == GNI_KIND_FLOATING)
            return gni_error(GN_ERROR_INDEX, "a tensor is indexed by integers or bool, not by %s",
                             gni_dtypes[keys[i].tensor->dtype].name);
        used += part_use(&keys[i]);
        ellipses += keys[i].kind == GN_KEY_ELLIPSIS;
    }
    if (ellipses > 1)
        return gni_error(GN_ERROR_INDEX, "a key can only have one ellipsis ('...')");
    if (used > source->ndim)
        return gni_error(GN_ERROR_INDEX,
                         "too many indices: %d for a tensor of %d dimension%s (shape %s)", used,
                         source->ndim, gni_plural((uint64_t)source->ndim),
                         gni_shape_text(source->ndim, source->sizes).text);
    *unused = source->ndim - used;
    return GN_OK;
}

/* An end of a slice, cut to a dimension by Python's rule. */
INLINE int64_t end_cut(int64_t end, int64_t size, int64_t least, int64_t most)
{
    if (end >= 0)
        return end < most ? end : most;
    return end < -size ? least : end + size;
}

/* Cuts a slice to a dimension: how many elements it has. */
INLINE int64_t slice_cut(int64_t *start, int64_t stop, int64_t step, int64_t size)
{
    int64_t least = step < 0 ? -1 : 0, most = size + least;
    int64_t first = end_cut(*start, size, least, most), last = end_cut(stop, size, least, most);
    int64_t length = step < 0 ? first - last : last - first;
    *start = first;
    if (length <= 0)
        return 0;
    return step == 1 ? length : (length - 1) / (step < 0 ? -step : step) + 1;
}

static void basic_add(struct parse *parse, int64_t size, int64_t stride)
{
    parse->sizes[parse->basic_count] = size;
    parse->strides[parse->basic_count++] = stride;
    if (parse->adjacency == INSIDE)
        parse->adjacency = BEHIND;
}

/* What a slice, whose step is not 0, makes of a dimension; the offset of its first element is added. */
INLINE int64_t slice_apply(const gn_key *key, int64_t size, int64_t *stride, int64_t *offset)
{
    int64_t start = key->start, step = key->step < -INT64_MAX ? -INT64_MAX : key->step;
    int64_t count = slice_cut(&start, key->stop, step, size);
    if (count > 0)
        *offset += start * *stride;
    if (count > 1)
        *stride *= step;
    return count;
}

static gn_status slice_take(struct parse *parse, const gn_key *key)
{
    int at = parse->dimension++;
    int64_t stride = parse->source->strides[at];
    if (key->step == 0)
        return gni_error(GN_ERROR_INVALID_VALUE, "the step of a slice must not be 0");
    int64_t count = slice_apply(key, parse->source->sizes[at], &stride, &parse->plan->offset);
    basic_add(parse, count, stride);
    return GN_OK;
}

/* Integers count as index tensors for where those go. */
static void place_mark(struct parse *parse)
{
    if (parse->adjacency == NONE_YET) {
        parse->adjacency = INSIDE;
        parse->place = parse->basic_count;
    } else if (parse->adjacency == BEHIND) {
        parse->adjacency = APART;
        parse->place = 0;
    }
}

static gn_status integer_take(struct parse *parse, const gn_key *key)
{
    int at = parse->dimension++;
    int64_t size = parse->source->sizes[at];
    int64_t index = key->start < 0 ? key->start + size : key->start;
    if (index < 0 || index >= size)
        return gni_error(GN_ERROR_INDEX, "index %lld is out of range for dimension %d of size %lld",
                         (long long)key->start, at, (long long)size);
    parse->plan->offset += index * parse->source->strides[at];
    place_mark(parse);
    return GN_OK;
}

/* The shape of what the index tensors come to grows by another one. */
static gn_status block_join(struct parse *parse, int ndim, const int64_t *sizes)
{
    struct gni_shape own = {.ndim = ndim}, before = parse->block;
    memcpy(own.sizes, sizes, sizeof *sizes * (size_t)ndim);
    if (parse->has_index && !gni_shape_broadcast(&before, &own, &parse->block))
        return gni_error(
            GN_ERROR_INDEX, "index tensors of shapes %s and %s cannot be broadcast together",
            gni_shape_text(before.ndim, before.sizes).text, gni_shape_text(ndim, sizes).text);
    if (!parse->has_index)
        parse->block = own;
    parse->has_index = true;
    place_mark(parse);
    return GN_OK;
}

/* Bytes one after the other, of which the true ones are counted. */
static gn_status mask_count(struct gni_index *index, const int64_t *strides, struct gni_mask *mask)
{
    gn_tensor *whole;
    GN_TRY(gni_tensor_flush(index->tensor));
    GN_TRY(gni_evaluator.compact(index->tensor, &whole));
    gn_status status =
        gni_mask_init(mask, gni_tensor_data(whole), whole->ndim, whole->sizes, strides);
    if (status == GN_OK && whole != index->tensor) {
        index->made = whole;
        return GN_OK;
    }
    gn_tensor_release(whole); /* the key's own lives on */
    return status;
}

/* On a GPU: IP5. */
static gn_status mask_find(struct gni_index *index, const int64_t *strides)
{
    const gn_tensor *tensor = index->tensor;
    int64_t own[GN_DIMENSIONS_MAX], stride = strides[tensor->ndim - 1];
    gn_tensor *whole, *places;
    bool is_one = true;
    gni_strides_contiguous(tensor->ndim, tensor->sizes, own);
    for (int i = 0; i < tensor->ndim; i++)
        is_one &= tensor->sizes[i] == 1 || strides[i] == own[i] * stride;
    GN_TRY(gni_evaluator.compact(index->tensor, &whole));
    gn_status status = gni_tensor_flush(whole);
    if (status == GN_OK)
        status = gni_evaluator.mask_places(whole, is_one ? own : strides, &places);
    gn_tensor_release(whole);
    if (status != GN_OK)
        return status;
    index->tensor = index->made = places;
    index->is_mask = false;
    index->mask_count = places->count;
    index->stride = is_one ? stride : 1;
    return GN_OK;
}

static gn_status mask_take(struct parse *parse, const gn_key *key)
{
    struct gni_index_plan *plan = parse->plan;
    const gn_tensor *tensor = key->tensor;
    const int64_t *sizes = parse->source->sizes + parse->dimension;
    const int64_t *strides = parse->source->strides + parse->dimension;
    for (int i = 0; i < tensor->ndim; i++)
        if (tensor->sizes[i] != sizes[i] && tensor->sizes[i] != 0) /* none is true: as in NumPy */
            return gni_error(GN_ERROR_INDEX,
                             "a mask of shape %s does not fit dimension %d of size %lld: it has "
                             "%lld there",
                             gni_shape_text(tensor->ndim, tensor->sizes).text, parse->dimension + i,
                             (long long)sizes[i], (long long)tensor->sizes[i]);
    struct gni_index *index = &plan->indices[plan->index_count];
    *index = (struct gni_index){.tensor = key->tensor,
                                .is_mask = true,
                                .dimension = parse->dimension,
                                .is_trusted = true,
                                .stride = 1};
    if (!tensor->device->ops->is_host_memory) {
        GN_TRY(mask_find(index, strides));
        plan->index_count++;
        parse->dimension += tensor->ndim;
        return block_join(parse, 1, &index->mask_count);
    }
    struct gni_mask mask;
    GN_TRY(mask_count(index, strides, &mask));
    plan->index_count++; /* from here on what it owns is the plan's */
    index->mask_count = mask.count;
    if (plan->index_count == 1 && !parse->has_index) {
        plan->mask = mask;
        plan->has_mask = true;
    } else {
        gni_mask_deinit(&mask);
    }
    parse->dimension += tensor->ndim;
    return block_join(parse, 1, &index->mask_count);
}

static gn_status tensor_take(struct parse *parse, const gn_key *key)
{
    struct gni_index_plan *plan = parse->plan;
    if (key->tensor->device != parse->source->device)
        return gni_error(GN_ERROR_INVALID_VALUE, "an index tensor is on %s, and the tensor on %s",
                         gni_device_label(key->tensor->device).text,
                         gni_device_label(parse->source->device).text);
    if (is_mask_tensor(key) && key->tensor->ndim > 0)
        return mask_take(parse, key);
    if (is_mask_tensor(key)) {
        gn_scalar item;
        int64_t none = 0;
        GN_TRY(gni_evaluator.get_item(key->tensor, &none, &item));
        return block_join(parse, 1, &(int64_t){item.integer != 0});
    }
    int64_t size = parse->source->sizes[parse->dimension];
    plan->indices[plan->index_count++] =
        (struct gni_index){.tensor = key->tensor,
                           .dimension = parse->dimension,
                           .size = size,
                           .wrap = gni_dtypes[key->tensor->dtype].is_signed ? size : 0,
                           .stride = parse->source->strides[parse->dimension]};
    parse->dimension++;
    return block_join(parse, key->tensor->ndim, key->tensor->sizes);
}

static void dimensions_take(struct parse *parse, int count)
{
    for (int i = 0; i < count; i++, parse->dimension++)
        basic_add(parse, parse->source->sizes[parse->dimension],
                  parse->source->strides[parse->dimension]);
}

static gn_status part_take(struct parse *parse, const gn_key *key, int *unused)
{
    switch (key->kind) {
    case GN_KEY_INTEGER:
        return integer_take(parse, key);
    case GN_KEY_SLICE:
        return slice_take(parse, key);
    case GN_KEY_TENSOR:
        return tensor_take(parse, key);
    case GN_KEY_BOOL:
        return block_join(parse, 1, &(int64_t){key->start != 0});
    case GN_KEY_NEW_AXIS:
        if (parse->basic_count < 64) /* more are refused at the end */
            parse->axes |= UINT64_C(1) << parse->basic_count;
        basic_add(parse, 1, 1);
        return GN_OK;
    case GN_KEY_ELLIPSIS:
        if (parse->adjacency == INSIDE) /* even if it stands for nothing */
            parse->adjacency = BEHIND;
        dimensions_take(parse, *unused);
        *unused = 0;
        return GN_OK;
    }
    return GN_OK;
}

/* ---- the plan ---------------------------------------------------------------------------------- */

/* A new axis (a bit of `axes`) has the stride that PyTorch gives it: over all of the next dimension. */
INLINE void axes_finish(int ndim, const int64_t *sizes, int64_t *strides, uint64_t axes)
{
    for (int i = ndim - 2; axes != 0 && i >= 0; i--)
        if ((axes >> i & 1) != 0)
            strides[i] = sizes[i + 1] * strides[i + 1];
}

static void basic_finish(struct gni_index_plan *plan, uint64_t axes)
{
    axes_finish(plan->ndim, plan->sizes, plan->strides, axes);
    plan->is_basic = true;
    plan->count = gni_shape_count(plan->ndim, plan->sizes); /* no more than the source has */
}

/* How many dimensions the first part stands for, an ellipsis, if `left` are left for it and those behind it; -1 where it
 * is none, or cannot be. */
static int ellipsis_count(int left, int count, const gn_key *parts)
{
    if (parts[0].kind != GN_KEY_ELLIPSIS)
        return -1;
    for (int i = 1; i < count; i++) {
        if (parts[i].kind > GN_KEY_NEW_AXIS)
            return -1;
        left -= parts[i].kind != GN_KEY_NEW_AXIS;
    }
    return left;
}

INLINE void layout_copy(int ndim, const int64_t *sizes, const int64_t *strides, int64_t *to_sizes,
                        int64_t *to_strides)
{
    for (int i = 0; i < ndim; i++) {
        to_sizes[i] = sizes[i];
        to_strides[i] = strides[i];
    }
}

/*
 * A key without index tensors, and the layout of its view: how many dimensions that has. -1 where there is something
 * else, or something wrong, which key_check() and part_take() put into words; the layout is not to be used then.
 */
INLINE int basic_apply(int ndim, const int64_t *sizes, const int64_t *strides, int count,
                       const gn_key *keys, int64_t *view_sizes, int64_t *view_strides,
                       int64_t *offset)
{
    int at = 0, made = 0;
    int64_t first = 0;
    uint64_t axes = 0;
    if (count > GN_DIMENSIONS_MAX - ndim)
        return -1;
    for (int i = 0; i < count; i++) {
        const gn_key *key = &keys[i];
        if (key->kind <= GN_KEY_SLICE) {
            if (at == ndim)
                return -1;
            int64_t size = sizes[at], stride = strides[at];
            at++;
            if (key->kind == GN_KEY_INTEGER) {
                int64_t index = key->start < 0 ? key->start + size : key->start;
                if (index < 0 || index >= size)
                    return -1;
                first += index * stride;
                continue;
            }
            if (key->step == 0)
                return -1;
            view_sizes[made] = slice_apply(key, size, &stride, &first);
            view_strides[made++] = stride;
        } else if (key->kind == GN_KEY_NEW_AXIS) {
            axes |= UINT64_C(1) << made;
            view_sizes[made] = view_strides[made] = 1;
            made++;
        } else {
            int more = ellipsis_count(ndim - at, count - i, key);
            if (more < 0)
                return -1;
            layout_copy(more, sizes + at, strides + at, view_sizes + made, view_strides + made);
            at += more;
            made += more;
        }
    }
    layout_copy(ndim - at, sizes + at, strides + at, view_sizes + made, view_strides + made);
    made += ndim - at;
    axes_finish(made, view_sizes, view_strides, axes);
    *offset = first;
    return made;
}

gn_status gn_index_view(gn_tensor *tensor, int count, const gn_key *keys, gn_tensor **view)
{
    GN_CHECK_ARGUMENT(tensor != NULL && view != NULL && (keys != NULL || count == 0),
                      "tensor, keys and view must not be NULL");
    if (gni_tensor_storage(tensor) == NULL || gni_is_taped(tensor)) {
        *view = NULL;
        return GN_OK;
    }
    gn_tensor *made = gni_host_alloc_kept();
    int64_t offset;
    if (made == NULL)
        return gni_error_host_memory(sizeof *made);
    made->ndim = basic_apply(tensor->ndim, tensor->sizes, tensor->strides, count, keys, made->sizes,
                             made->strides, &offset);
    if (made->ndim < 0) {
        gni_host_free_kept(made);
        *view = NULL;
        return GN_OK;
    }
    gni_tensor_measure(made);
    gni_tensor_share(tensor, offset, made);
    *view = made;
    return GN_OK;
}

/* Basic dimensions and those of the index tensors, in the order of the result. */
static gn_status dimensions_place(struct parse *parse)
{
    struct gni_index_plan *plan = parse->plan;
    int block = parse->has_index ? parse->block.ndim : 0;
    int before = parse->has_index ? parse->place : parse->basic_count;
    int ndim = parse->basic_count + block;
    if (ndim > GN_DIMENSIONS_MAX)
        return gni_error(GN_ERROR_INDEX,
                         "the result of the key would have %d dimensions: at most %d", ndim,
                         GN_DIMENSIONS_MAX);
    plan->ndim = ndim;
    plan->block_begin = before;
    plan->block_end = before + block;
    for (int i = 0; i < ndim; i++) {
        bool is_block = i >= before && i < before + block;
        int from = i < before ? i : i - block;
        plan->sizes[i] = is_block ? parse->block.sizes[i - before] : parse->sizes[from];
        plan->strides[i] = is_block ? 0 : parse->strides[from];
    }
    if (!parse->has_index) {
        basic_finish(plan, parse->axes);
        return GN_OK;
    }
    return gni_shape_check(ndim, plan->sizes, gni_dtype_size(parse->source->dtype), &plan->count);
}

static void strides_set(struct gni_index *index, const struct gni_index_plan *plan)
{
    int ndim = index->is_mask ? 1 : index->tensor->ndim;
    int shift = plan->block_end - ndim;
    memset(index->strides, 0, sizeof index->strides);
    for (int i = 0; i < ndim; i++) {
        int64_t size = index->is_mask ? index->mask_count : index->tensor->sizes[i];
        if (size != 1)
            index->strides[shift + i] = index->is_mask ? 1 : index->tensor->strides[i];
    }
}

/* Of a key that is not basic, or is wrong. */
static gn_status plan_parse(struct gni_index_plan *plan, const struct gni_index_source *source,
                            int count, const gn_key *keys)
{
    struct parse parse;
    int unused;
    GN_TRY(key_check(source, count, keys, &unused));
    parse.plan = plan;
    parse.source = source;
    parse.dimension = parse.basic_count = parse.place = 0;
    parse.axes = 0;
    parse.has_index = false;
    parse.adjacency = NONE_YET;
    gn_status status = GN_OK;
    for (int i = 0; i < count && status == GN_OK; i++)
        status = part_take(&parse, &keys[i], &unused);
    if (status == GN_OK) {
        dimensions_take(&parse, unused);
        plan->is_basic = false;
        status = dimensions_place(&parse);
    }
    if (status != GN_OK) {
        gni_index_plan_deinit(plan);
        return status;
    }
    for (int k = 0; k < plan->index_count; k++)
        strides_set(&plan->indices[k], plan);
    if (plan->index_count > 0)
        memcpy(plan->source_strides, source->strides,
               sizeof *source->strides * (size_t)source->ndim);
    /* A mask beside other indices, or over something that is repeated, cannot be streamed. */
    if (plan->has_mask && (plan->index_count > 1 || plan->block_end - plan->block_begin != 1 ||
                           plan->sizes[plan->block_begin] != plan->mask.count)) {
        gni_mask_deinit(&plan->mask);
        plan->has_mask = false;
    }
    return GN_OK;
}

gn_status gni_index_plan_init(struct gni_index_plan *plan, const struct gni_index_source *source,
                              int count, const gn_key *keys)
{
    plan->offset = 0;
    plan->index_count = 0;
    plan->has_mask = false;
    plan->ndim = basic_apply(source->ndim, source->sizes, source->strides, count, keys, plan->sizes,
                             plan->strides, &plan->offset);
    if (plan->ndim < 0)
        return plan_parse(plan, source, count, keys);
    plan->block_begin = plan->block_end = plan->ndim;
    basic_finish(plan, 0);
    return GN_OK;
}

void gni_index_plan_deinit(struct gni_index_plan *plan)
{
    for (int k = 0; k < plan->index_count; k++)
        gn_tensor_release(plan->indices[k].made);
    plan->index_count = 0;
    if (plan->has_mask)
        gni_mask_deinit(&plan->mask);
    plan->has_mask = false;
}

bool gni_index_plan_is_streamed(const struct gni_index_plan *plan)
{
    return plan->has_mask && plan->count == plan->mask.count &&
           plan->mask.count >= plan->mask.length / GNI_MASK_DENSE;
}

size_t gni_index_plan_temp_bytes(const struct gni_index_plan *plan)
{
    size_t bytes = plan->has_mask ? gni_mask_bytes(&plan->mask) : 0;
    bool is_streamed = gni_index_plan_is_streamed(plan);
    for (int k = 0; k < plan->index_count; k++) {
        const struct gni_index *index = &plan->indices[k];
        if (!index->is_mask)
            continue;
        if (index->made != NULL)
            bytes += (size_t)index->made->count;
        if (!is_streamed)
            bytes += (size_t)index->mask_count * sizeof(int64_t);
    }
    return bytes;
}

static gn_status mask_compact(struct gni_index_plan *plan, struct gni_index *index)
{
    const gn_tensor *bytes = index->made != NULL ? index->made : index->tensor;
    struct gni_mask own, *mask = plan->has_mask ? &plan->mask : &own;
    gn_tensor *offsets;
    GN_TRY(gn_tensor_create(GN_INT64, 1, &index->mask_count, index->tensor->device, &offsets));
    gn_status status = GN_OK;
    if (mask == &own)
        status = gni_mask_init(&own, gni_tensor_data(bytes), bytes->ndim, bytes->sizes,
                               plan->source_strides + index->dimension);
    if (status != GN_OK) {
        gn_tensor_release(offsets);
        return status;
    }
    gni_mask_offsets(mask, (int64_t *)(void *)gni_tensor_data(offsets));
    if (mask == &own)
        gni_mask_deinit(&own);
    gn_tensor_release(index->made);
    index->made = index->tensor = offsets;
    index->is_mask = false;
    return GN_OK;
}

gn_status gni_index_plan_compact(struct gni_index_plan *plan)
{
    for (int k = 0; k < plan->index_count; k++) {
        struct gni_index *index = &plan->indices[k];
        GN_TRY(gni_tensor_flush(index->tensor));
        if (index->is_mask)
            GN_TRY(mask_compact(plan, index));
    }
    return GN_OK;
}

/* ---- numbers that are out of range ------------------------------------------------------------- */

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

gn_status gni_index_check_numbers(const struct gni_index *index)
{
    int64_t found;
    if (!outside_find(index, &found))
        return GN_OK;
    bool is_negative = found < 0 && !gni_dtype_is_unsigned(index->tensor->dtype);
    return gni_error(
        GN_ERROR_INDEX, "index %s%llu is out of range for dimension %d of size %lld%s",
        is_negative ? "-" : "",
        is_negative ? 0 - (unsigned long long)found : (unsigned long long)found, index->dimension,
        (long long)index->size,
        is_negative && index->wrap == 0 ? ": negative ones do not count from the end here" : "");
}

gn_status gni_index_refuse(const struct gni_index_plan *plan)
{
    for (int k = 0; k < plan->index_count; k++)
        if (!plan->indices[k].is_trusted)
            GN_TRY(gni_index_check_numbers(&plan->indices[k]));
    return gni_error(GN_ERROR_INDEX, "an index is out of range");
}
