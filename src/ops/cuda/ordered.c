/*
 * ordered.c: several values for one element: which kernels of index.cu and ordered.cu are launched.
 *
 *     up to 4096 entries   FEW_SET or FEW_ADD
 *     sums                 KEYS, a sort, SUM or ROWS, JOIN where there are several tiles
 *     the last of values   where the target is not much larger: MARK, then PUT, or CHOOSE and SET
 *                          else: KEYS, a sort, LAST, SET
 *
 * How the work is cut depends on shapes and strides alone.
 */
#include "ops/cuda/index_arguments.h"

#include "ops/cuda/fixed.h"
#include "ops/cuda/cuda_sort.h"
#include "ops/cuda/kernel_list.h"
#include "ops/cuda/kernel_texts.h"

#include <string.h>

enum {
    SUM_TILE = 8 * GNI_FIXED_THREADS, /* entries: TILE of ORDERED_SUM */
    ROWS_TILE_LEAST = 8,              /* entries of a thread; multiples of GROUP */
    ROWS_TILE_MOST = 64,
    ENOUGH_THREADS = 1 << 17, /* that keep a GPU busy */
    LATEST_EACH = 8,          /* words of memory that marks are worth, for each entry */
};

enum stage {
    STAGE_SUM,
    STAGE_ROWS,
    STAGE_JOIN,
    STAGE_LAST,
};

#define STAGE(word, name)                                                               \
    {                                                                                   \
        {word, {gni_text_ordered}, "#define " name "\ntypedef unsigned word;\n"},       \
        {                                                                               \
            word "_far", {gni_text_ordered}, "#define " name "\ntypedef uint64 word;\n" \
        }                                                                               \
    }

/* By [stage][whether words have 64 bits]. */
static const struct gni_fixed stages[][2] = {
    [STAGE_SUM] = STAGE("ordered_sum", "ORDERED_SUM"),
    [STAGE_ROWS] = STAGE("ordered_rows", "ORDERED_ROWS"),
    [STAGE_JOIN] = STAGE("ordered_join", "ORDERED_JOIN"),
    [STAGE_LAST] = STAGE("ordered_last", "ORDERED_LAST"),
};

/* As ordered.cu has it. */
struct arguments {
    const void *keys, *entries;
    int64_t count, none, tile, tiles;
    char *target;
    const char *other;
    uint64_t number;
    int64_t step;
    int64_t dimensions, sizes[GN_DIMENSIONS_MAX], other_strides[GN_DIMENSIONS_MAX];
    int64_t columns, column_dimensions, column_sizes[GN_DIMENSIONS_MAX];
    int64_t column_strides[GN_DIMENSIONS_MAX], column_other_strides[GN_DIMENSIONS_MAX];
    void *first, *last;
    uint8_t *chosen;
};

/* The entries of a plan, and the columns of each. */
struct entries {
    struct gni_index_plan plan; /* of entries alone; its strides make keys */
    int64_t other_strides[GN_DIMENSIONS_MAX];
    int64_t entry_strides[GN_DIMENSIONS_MAX]; /* for the dimensions of the whole plan */
    int64_t columns;
    int column_ndim;
    int64_t column_sizes[GN_DIMENSIONS_MAX];
    int64_t column_strides[GN_DIMENSIONS_MAX], column_other_strides[GN_DIMENSIONS_MAX];
    int64_t step; /* of the target, in elements, from key to key */
    int64_t low;  /* where key 0 is */
    int64_t range;
    bool is_far; /* a key, or an entry's number from 1, needs 64 bits */
};

/* Whether the index tensors, or nothing at all, depend on a dimension. */
static bool is_entry_dimension(const struct gni_index_plan *plan, int dimension)
{
    bool is_entry = plan->strides[dimension] == 0;
    for (int k = 0; k < plan->index_count; k++)
        is_entry |= plan->indices[k].strides[dimension] != 0;
    return is_entry;
}

/* Numbers from 0 to size - 1, times a stride: a part of the place of an element. */
struct digit {
    int64_t stride, size;
};

/* Adds a digit to those with smaller strides. */
static void digit_add(struct digit *digits, int count, struct digit digit)
{
    int at = count;
    for (; at > 0 && digits[at - 1].stride > digit.stride; at--)
        digits[at] = digits[at - 1];
    digits[at] = digit;
}

/*
 * Whether entries go to places of their own whatever the index tensors say: each entry differs from the others in the number of
 * a dimension, and no two sums of the parts of a place are equal. An index of one element for each row is an example.
 */
static bool are_places_apart(const struct gni_index_plan *plan)
{
    struct digit digits[2 * GN_DIMENSIONS_MAX];
    int count = 0;
    for (int i = 0; i < plan->ndim; i++) {
        if (plan->sizes[i] == 1)
            continue;
        if (plan->strides[i] <= 0)
            return false;
        digit_add(digits, count++, (struct digit){plan->strides[i], plan->sizes[i]});
    }
    for (int k = 0; k < plan->index_count; k++) {
        if (plan->indices[k].is_trusted || plan->indices[k].stride <= 0)
            return false;
        digit_add(digits, count++, (struct digit){plan->indices[k].stride, plan->indices[k].size});
    }
    int64_t reach = 1; /* what the digits so far stay below */
    for (int i = 0; i < count; i++) {
        if (digits[i].stride < reach)
            return false;
        reach += digits[i].stride * (digits[i].size - 1);
    }
    return true;
}

bool gni_ordered_is_needed(const struct gni_index_plan *plan, const struct gni_index_values *values)
{
    bool is_floating = gni_dtype_kind(values->target->dtype) == GNI_KIND_FLOATING;
    if (values->is_accumulated ? !is_floating : values->data == NULL)
        return false;
    bool is_mask = plan->index_count == 1 && plan->indices[0].is_trusted;
    bool is_unique = true, is_same = !values->is_accumulated;
    for (int i = 0; i < plan->ndim; i++) {
        if (plan->sizes[i] == 1 || !is_entry_dimension(plan, i))
            continue;
        is_unique &= is_mask && plan->indices[0].strides[i] != 0;
        is_same &= values->strides[i] == 0;
    }
    return !is_unique && !is_same && !are_places_apart(plan);
}

/* ---- entries ----------------------------------------------------------------------------------- */

static int64_t common_divisor(int64_t a, int64_t b)
{
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void reach_add(int64_t most, int64_t stride, int64_t *low, int64_t *high)
{
    *(stride < 0 ? low : high) += most * stride;
}

/* From where to where entries may be in the target, and in which steps; then strides are counted in these. */
static void keys_make(struct entries *entries, const gn_tensor *target)
{
    struct gni_index_plan *plan = &entries->plan;
    int64_t low = 0, high = 0, step = 0;
    bool is_known = true; /* the numbers of masks are not */
    for (int i = 0; i < plan->ndim; i++) {
        step = common_divisor(step, plan->strides[i]);
        reach_add(plan->sizes[i] - 1, plan->strides[i], &low, &high);
    }
    for (int k = 0; k < plan->index_count; k++) {
        const struct gni_index *index = &plan->indices[k];
        step = common_divisor(step, index->stride);
        is_known &= !index->is_trusted;
        if (!index->is_trusted)
            reach_add(index->size - 1, index->stride, &low, &high);
    }
    step = step == 0 ? 1 : step;
    if (!is_known) {
        gni_strides_extent(target->ndim, target->sizes, target->strides, &low, &high);
        low = -((step - 1 - low) / step) * step; /* down to a multiple */
    }
    entries->step = step;
    entries->low = low;
    entries->range = (high - low) / step + 1;
    for (int i = 0; i < plan->ndim; i++)
        plan->strides[i] /= step;
    for (int k = 0; k < plan->index_count; k++)
        plan->indices[k].stride /= step;
    entries->is_far = entries->range >= UINT32_MAX || plan->count >= UINT32_MAX;
}

static void column_add(struct entries *entries, int64_t size, int64_t stride, int64_t other)
{
    int last = entries->column_ndim - 1;
    bool is_joined = last >= 0 && entries->column_strides[last] == stride * size &&
                     entries->column_other_strides[last] == other * size;
    int at = is_joined ? last : entries->column_ndim++;
    entries->column_sizes[at] = is_joined ? entries->column_sizes[at] * size : size;
    entries->column_strides[at] = stride;
    entries->column_other_strides[at] = other;
    entries->columns *= size;
}

static void entries_make(struct entries *entries, const struct gni_index_plan *plan,
                         const struct gni_index_values *values)
{
    struct gni_index_plan *own = &entries->plan;
    *own = *plan;
    own->ndim = 0;
    own->offset = 0;
    own->count = 1;
    entries->columns = 1;
    entries->column_ndim = 0;
    for (int i = 0; i < plan->ndim; i++) {
        int64_t size = plan->sizes[i];
        if (size == 1)
            continue;
        if (!is_entry_dimension(plan, i)) {
            column_add(entries, size, plan->strides[i], values->strides[i]);
            continue;
        }
        int at = own->ndim++;
        own->sizes[at] = size;
        own->strides[at] = plan->strides[i];
        entries->other_strides[at] = values->strides[i];
        for (int k = 0; k < plan->index_count; k++)
            own->indices[k].strides[at] = plan->indices[k].strides[i];
        own->count *= size;
    }
    int64_t before = own->count;
    for (int i = 0; i < plan->ndim; i++) {
        bool is_entry = plan->sizes[i] > 1 && is_entry_dimension(plan, i);
        before /= is_entry ? plan->sizes[i] : 1;
        entries->entry_strides[i] = is_entry ? before : 0;
    }
    keys_make(entries, values->target);
}

/* ---- arguments --------------------------------------------------------------------------------- */

static char *first_of(const struct entries *entries, const struct gni_index_plan *plan,
                      const gn_tensor *target)
{
    int64_t offset = (plan->offset + entries->low) * (int64_t)gni_dtype_size(target->dtype);
    return (char *)((uintptr_t)gni_tensor_data(target) + (uintptr_t)offset);
}

/* Of the entries' modes of index.cu; `memory` is what they call keys. */
static void keys_arguments(const struct entries *entries, const struct gni_index_plan *plan,
                           const struct gni_index_values *values, void *memory,
                           struct gni_index_arguments *arguments)
{
    int64_t width = (int64_t)gni_dtype_size(values->target->dtype);
    struct gni_index_sides sides = {.width = 1,
                                    .other = values->data,
                                    .other_width = width,
                                    .other_strides = entries->other_strides};
    gni_index_arguments_make(arguments, &entries->plan, &sides);
    arguments->source = first_of(entries, plan, values->target);
    arguments->base = -entries->low / entries->step;
    arguments->none = entries->range;
    arguments->step = entries->step * width;
    arguments->keys = memory;
    memcpy(arguments->number, &values->number, sizeof values->number);
}

static gn_status keys_launch(struct gni_index_arguments *arguments, enum gni_index_mode mode,
                             int64_t unit, const struct entries *entries, gn_stream *stream)
{
    struct gni_index_form specialization = {
        .mode = mode, .unit = (uint32_t)unit, .dtype = GN_UINT8, .is_wide = entries->is_far};
    return gni_index_launch(arguments, &specialization, stream);
}

/* ---- few --------------------------------------------------------------------------------------- */

/* The most bytes that columns can be moved in at once. */
static int64_t columns_unit(const struct gni_index_arguments *arguments, int64_t width)
{
    int last = (int)arguments->column_dimensions - 1;
    if (last < 0 || arguments->column_strides[last] != width ||
        arguments->column_other_strides[last] != width)
        return width;
    uint64_t all = (uint64_t)(uintptr_t)arguments->source | (uint64_t)(uintptr_t)arguments->other |
                   (uint64_t)arguments->step | (uint64_t)(arguments->column_sizes[last] * width);
    for (int i = 0; i < last; i++)
        all |= (uint64_t)(arguments->column_strides[i] | arguments->column_other_strides[i]);
    for (int i = 0; i < arguments->dimensions; i++)
        all |= (uint64_t)arguments->other_strides[i];
    int64_t unit = GNI_INDEX_UNIT;
    while (unit > width && all % (uint64_t)unit != 0)
        unit /= 2;
    return unit;
}

static gn_status few_put(const struct entries *entries, const struct gni_index_plan *plan,
                         const struct gni_index_values *values, gn_stream *stream)
{
    struct gni_index_arguments arguments;
    gn_dtype dtype = values->target->dtype;
    int64_t width = (int64_t)gni_dtype_size(dtype), unit = width;
    keys_arguments(entries, plan, values, NULL, &arguments);
    arguments.columns = entries->columns;
    arguments.column_dimensions = entries->column_ndim;
    for (int i = 0; i < entries->column_ndim; i++) {
        arguments.column_sizes[i] = entries->column_sizes[i];
        arguments.column_strides[i] = entries->column_strides[i] * width;
        arguments.column_other_strides[i] = entries->column_other_strides[i] * width;
    }
    struct gni_index_form specialization = {
        .mode = GNI_INDEX_FEW_ADD, .dtype = (uint32_t)dtype, .is_wide = entries->is_far};
    if (!values->is_accumulated) {
        unit = columns_unit(&arguments, width);
        specialization.mode = GNI_INDEX_FEW_SET;
        specialization.dtype = GN_UINT8;
    }
    if (unit > width) {
        int last = entries->column_ndim - 1;
        arguments.columns = arguments.columns * width / unit;
        arguments.column_sizes[last] = arguments.column_sizes[last] * width / unit;
        arguments.column_strides[last] = arguments.column_other_strides[last] = unit;
    }
    specialization.unit = (uint32_t)unit;
    return gni_index_launch(&arguments, &specialization, stream);
}

/* ---- many, sorted ------------------------------------------------------------------------------ */

static gn_status stage_launch(enum stage stage, const struct gni_order *order, gn_dtype dtype,
                              int64_t blocks, struct arguments *arguments)
{
    return gni_fixed_launch(&stages[stage][order->is_far], dtype, blocks, 1, arguments,
                            order->stream);
}

/* Keys, and the order of entries by them. */
static gn_status entries_sort(const struct entries *entries, const struct gni_index_plan *plan,
                              const struct gni_index_values *values, struct gni_order *order)
{
    struct gni_index_arguments arguments;
    int digits = 1;
    while (digits < 8 && entries->range >> (8 * digits) != 0) /* `none` is one more than keys are */
        digits++;
    keys_arguments(entries, plan, values, order->in, &arguments);
    GN_TRY(keys_launch(&arguments, GNI_INDEX_KEYS, 1, entries, order->stream));
    return gni_order_run(order, digits);
}

static void sum_arguments(const struct entries *entries, const struct gni_index_plan *plan,
                          const struct gni_index_values *values, struct arguments *arguments)
{
    int64_t width = (int64_t)gni_dtype_size(values->target->dtype);
    *arguments = (struct arguments){.count = entries->plan.count,
                                    .none = entries->range,
                                    .target = first_of(entries, plan, values->target),
                                    .other = values->data,
                                    .number = values->number,
                                    .step = entries->step * width,
                                    .columns = entries->columns,
                                    .column_dimensions = entries->column_ndim};
    for (int i = 0; i < entries->plan.ndim; i++) {
        int64_t size = entries->plan.sizes[i], stride = entries->other_strides[i] * width;
        int last = (int)arguments->dimensions - 1;
        bool is_joined = last >= 0 && arguments->other_strides[last] == stride * size;
        int at = is_joined ? last : (int)arguments->dimensions++;
        arguments->sizes[at] = is_joined ? arguments->sizes[at] * size : size;
        arguments->other_strides[at] = stride;
    }
    for (int i = 0; i < entries->column_ndim; i++) {
        arguments->column_sizes[i] = entries->column_sizes[i];
        arguments->column_strides[i] = entries->column_strides[i] * width;
        arguments->column_other_strides[i] = entries->column_other_strides[i] * width;
    }
    arguments->tile = SUM_TILE;
    if (entries->columns > 1) {
        arguments->tile = ROWS_TILE_LEAST;
        while (arguments->tile < ROWS_TILE_MOST &&
               arguments->count / arguments->tile > ENOUGH_THREADS / entries->columns)
            arguments->tile *= 2;
    }
    arguments->tiles = gni_divided_up(arguments->count, arguments->tile);
}

static gn_status sum_run(struct arguments *arguments, const struct gni_order *order, gn_dtype dtype)
{
    size_t real = dtype == GN_FLOAT64 ? sizeof(double) : sizeof(float);
    bool has_columns = arguments->columns > 1;
    int64_t threads = arguments->tiles * arguments->columns;
    int64_t blocks = gni_divided_up(threads, GNI_FIXED_THREADS);
    arguments->keys = order->keys;
    arguments->entries = order->places;
    arguments->first = order->extra;
    arguments->last = (char *)order->extra + (size_t)threads * real;
    GN_TRY(stage_launch(has_columns ? STAGE_ROWS : STAGE_SUM, order, dtype,
                        has_columns ? blocks : arguments->tiles, arguments));
    return arguments->tiles > 1 ? stage_launch(STAGE_JOIN, order, dtype, blocks, arguments) : GN_OK;
}

static gn_status many_add(const struct entries *entries, const struct gni_index_plan *plan,
                          const struct gni_index_values *values, gn_stream *stream)
{
    struct arguments arguments;
    struct gni_order order;
    sum_arguments(entries, plan, values, &arguments);
    size_t parts = (size_t)arguments.tiles * (size_t)arguments.columns; /* fewer than elements */
    GN_TRY(gni_order_init(&order, entries->plan.count, entries->is_far, parts * 2 * sizeof(double),
                          stream));
    gn_status status = entries_sort(entries, plan, values, &order);
    if (status == GN_OK)
        status = sum_run(&arguments, &order, values->target->dtype);
    gni_order_deinit(&order);
    return status;
}

static gn_status last_find(struct gni_order *order, uint8_t *chosen)
{
    struct arguments arguments = {
        .keys = order->keys, .entries = order->places, .count = order->count, .chosen = chosen};
    return stage_launch(STAGE_LAST, order, GN_INT32,
                        gni_divided_up(order->count, GNI_FIXED_THREADS), &arguments);
}

static gn_status many_set_sorted(const struct entries *entries, const struct gni_index_plan *plan,
                                 const struct gni_index_values *values, gn_stream *stream)
{
    struct gni_order order;
    GN_TRY(gni_order_init(&order, entries->plan.count, entries->is_far, (size_t)entries->plan.count,
                          stream));
    gn_status status = entries_sort(entries, plan, values, &order);
    if (status == GN_OK)
        status = last_find(&order, order.extra);
    if (status == GN_OK)
        status = gni_index_put(plan, values, entries->entry_strides, order.extra, stream);
    gni_order_deinit(&order);
    return status;
}

/* ---- many, marked ------------------------------------------------------------------------------ */

static gn_status marked_put(const struct entries *entries, const struct gni_index_plan *plan,
                            const struct gni_index_values *values, char *latest, size_t nbytes,
                            gn_stream *stream)
{
    struct gni_index_arguments arguments;
    GN_TRY(gn_fill(latest, 0, sizeof(uint32_t), nbytes / sizeof(uint32_t), stream));
    keys_arguments(entries, plan, values, latest, &arguments);
    GN_TRY(keys_launch(&arguments, GNI_INDEX_MARK, 1, entries, stream));
    if (entries->columns == 1)
        return keys_launch(&arguments, GNI_INDEX_PUT,
                           (int64_t)gni_dtype_size(values->target->dtype), entries, stream);
    uint8_t *chosen = (uint8_t *)latest + nbytes;
    arguments.chosen = chosen;
    GN_TRY(keys_launch(&arguments, GNI_INDEX_CHOOSE, 1, entries, stream));
    return gni_index_put(plan, values, entries->entry_strides, chosen, stream);
}

static gn_status many_set_marked(const struct entries *entries, const struct gni_index_plan *plan,
                                 const struct gni_index_values *values, gn_stream *stream)
{
    struct gni_storage *storage;
    size_t nbytes = (size_t)entries->range * (entries->is_far ? 8 : 4);
    GN_TRY(
        gni_storage_create(stream->device, nbytes + (size_t)entries->plan.count, stream, &storage));
    gn_status status = marked_put(entries, plan, values, storage->data, nbytes, stream);
    gni_storage_release(storage);
    return status;
}

gn_status gni_ordered_put(const struct gni_index_plan *plan, const struct gni_index_values *values,
                          gn_stream *stream)
{
    struct entries entries;
    entries_make(&entries, plan, values);
    if (entries.plan.count <= GNI_INDEX_FEW)
        return few_put(&entries, plan, values, stream);
    if (values->is_accumulated)
        return many_add(&entries, plan, values, stream);
    return entries.range / LATEST_EACH <= entries.plan.count
               ? many_set_marked(&entries, plan, values, stream)
               : many_set_sorted(&entries, plan, values, stream);
}

/* ---- for the archive --------------------------------------------------------------------------- */

void gni_cuda_ordered_list(struct gni_kernel_list *list)
{
    for (int stage = STAGE_SUM; stage <= STAGE_LAST; stage++)
        for (int is_far = 0; is_far < 2; is_far++)
            gni_kernel_list_add_fixed(list, &stages[stage][is_far],
                                      stage == STAGE_LAST ? GNI_TYPE(GN_INT32) : GNI_TYPES_REAL);
}
