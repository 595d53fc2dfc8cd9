/*
 * cuda_index.c: keys on a GPU: from a plan to the arguments of a kernel (index.cu).
 *
 * The dimensions of a plan are joined where all strides allow it; the last one is moved in units of up to 16 bytes,
 * where it is contiguous on both sides and all addresses are multiples of that. Kernels are made for the number of
 * dimensions and index tensors, if these are few, and for the bytes of a unit, not for types.
 */
#include "ops/cuda/cuda_ops.h"

#include "base/builder.h"
#include "base/option.h"
#include "jit/kernel.h"
#include "jit/tune.h"
#include "ops/cuda/generate.h"
#include "ops/cuda/index_arguments.h"
#include "ops/cuda/kernel_list.h"
#include "ops/cuda/kernel_texts.h"

#include <stdio.h>
#include <string.h>

enum {
    GRID_MOST = 1 << 30, /* blocks */
    FEW_DIMENSIONS = 3,  /* kernels of their own */
    FEW_INDICES = 2,     /* likewise */
    UNITS_EACH = 4,      /* units of a thread, where these are single elements */
    FEW_COLUMNS = 128,   /* that a warp has of one of few entries */
    FEW_COLUMNS_MOST = 4096,
    TEXT_NAME_MOST = 64,
    FORM_KIND = 'I' << 24 | 'X' << 16,
};

static void form_text(const struct gni_index_form *specialization, const char *name,
                      struct gni_builder *text)
{
    gni_builder_add(text, gni_text_elements, strlen(gni_text_elements));
    gni_builder_print(text,
                      "#define NAME %s\n#define MODE %u\n#define UNIT %u\n#define DIMENSIONS %u\n"
                      "#define INDICES %u\n#define NUMBER %u\n#define EACH %u\n#define INDEX %s\n"
                      "#define ELEMENT_TYPE %s\n",
                      name, (unsigned)specialization->mode, (unsigned)specialization->unit,
                      (unsigned)specialization->dimensions, (unsigned)specialization->indices,
                      (unsigned)specialization->number, (unsigned)specialization->each,
                      specialization->is_wide != 0 ? "uint64" : "unsigned",
                      gni_cuda_type((gn_dtype)specialization->dtype));
    gni_builder_add(text, gni_text_index, strlen(gni_text_index));
}

static void form_name(const struct gni_index_form *specialization, char name[TEXT_NAME_MOST])
{
    static const char *const modes[] = {"get",  "set",    "add", "check",   "keys",
                                        "mark", "choose", "put", "few_set", "few_add"};
    (void)snprintf(name, TEXT_NAME_MOST, "index_%s_%u_%u_%u", modes[specialization->mode],
                   (unsigned)specialization->unit, (unsigned)specialization->dimensions,
                   (unsigned)specialization->indices);
}

static gn_status form_kernel(gn_device *device, const struct gni_index_form *specialization,
                             struct gni_kernel **kernel)
{
    char name[TEXT_NAME_MOST];
    *kernel = gni_kernel_find(device, specialization, sizeof *specialization);
    if (*kernel != NULL)
        return GN_OK;
    struct gni_builder text = {.text = NULL};
    form_name(specialization, name);
    form_text(specialization, name, &text);
    return gni_kernel_build_general(device, name, &text, specialization, sizeof *specialization,
                                    kernel);
}

/* ---- numbers that are out of range ------------------------------------------------------------- */

/* The word of a device, made when it is needed first. */
static gn_status fault_word(gn_device *device, _Atomic(uint64_t) **word)
{
    void *made;
    _Atomic(uint64_t) *none = NULL;
    *word = atomic_load(&device->upper.fault);
    if (*word != NULL)
        return GN_OK;
    GN_TRY(device->ops->host_alloc(device, sizeof **word, &made));
    *word = made;
    atomic_init(*word, 0);
    if (!atomic_compare_exchange_strong(&device->upper.fault, &none, made)) {
        (void)device->ops->host_free(device, made, sizeof **word); /* another thread was first */
        *word = none;
    }
    return GN_OK;
}

gn_status gni_cuda_index_check(gn_device *device)
{
    _Atomic(uint64_t) *word = atomic_load(&device->upper.fault);
    if (word == NULL || atomic_load(word) == 0)
        return GN_OK;
    uint64_t fault = atomic_exchange(word, 0);
    if (fault == 0) /* another thread has taken it */
        return GN_OK;
    int dimension = (int)(fault >> 55 & 0xff);
    int64_t number = (int64_t)(fault << 9) / 512;
    return gni_error(GN_ERROR_INDEX,
                     "index %lld of an index tensor on %s was out of range for dimension %d",
                     (long long)number, gni_device_label(device).text, dimension);
}

/* ---- from a plan to arguments ------------------------------------------------------------------ */

/* `type` in index.cu. */
static int32_t type_code(const struct gni_index *index)
{
    static const int32_t codes[GN_DTYPE_COUNT] = {
        [GN_INT64] = 1, [GN_INT32] = 2,  [GN_INT16] = 3,  [GN_INT8] = 4,
        [GN_UINT8] = 5, [GN_UINT16] = 6, [GN_UINT32] = 7, [GN_UINT64] = 8,
    };
    return index->is_trusted ? 0 : codes[index->tensor->dtype];
}

/* Adds a dimension, joined with the one before where all strides allow it. */
static void dimension_add(struct gni_index_arguments *to, const struct gni_index_plan *plan,
                          int from, const struct gni_index_sides *sides)
{
    int64_t size = plan->sizes[from], stride = plan->strides[from] * sides->width;
    int64_t other = sides->other_strides[from] * sides->other_width, own[GN_DIMENSIONS_MAX];
    int64_t entry = sides->entry_strides != NULL ? sides->entry_strides[from] : 0;
    int last = to->dimensions - 1;
    if (size == 1)
        return;
    bool is_joined = last >= 0 && to->strides[last] == stride * size &&
                     to->other_strides[last] == other * size &&
                     to->entry_strides[last] == entry * size;
    for (int k = 0; k < to->index_count; k++) {
        const struct gni_index *index = &plan->indices[k];
        own[k] = index->strides[from] * (int64_t)gni_dtype_size(index->tensor->dtype);
        is_joined = is_joined && to->indices[k].strides[last] == own[k] * size;
    }
    int at = is_joined ? last : to->dimensions++;
    to->sizes[at] = is_joined ? to->sizes[at] * size : size;
    to->strides[at] = stride;
    to->other_strides[at] = other;
    to->entry_strides[at] = entry;
    for (int k = 0; k < to->index_count; k++)
        to->indices[k].strides[at] = own[k];
}

/* The most bytes that the last dimension can be moved in at once; its own size is `width`. */
static int64_t unit_find(const struct gni_index_arguments *from, int64_t width)
{
    int last = from->dimensions - 1;
    bool has_other = from->other != NULL;
    if (from->strides[last] != width || (has_other && from->other_strides[last] != width))
        return width;
    uint64_t all = (uint64_t)(uintptr_t)from->source | (uint64_t)(uintptr_t)from->other |
                   (uint64_t)(from->sizes[last] * width);
    for (int i = 0; i < last; i++)
        all |= (uint64_t)from->strides[i] | (uint64_t)from->other_strides[i];
    for (int k = 0; k < from->index_count; k++) {
        if (from->indices[k].strides[last] != 0)
            return width;
        all |= (uint64_t)from->indices[k].stride;
    }
    int64_t unit = GNI_INDEX_UNIT;
    while (unit > width && all % (uint64_t)unit != 0)
        unit /= 2;
    return unit;
}

void gni_index_arguments_make(struct gni_index_arguments *to, const struct gni_index_plan *plan,
                              const struct gni_index_sides *sides)
{
    memset(to, 0, sizeof *to);
    to->source = (char *)((uintptr_t)sides->source + (uintptr_t)(plan->offset * sides->width));
    to->other = sides->other;
    to->index_count = plan->index_count;
    for (int k = 0; k < plan->index_count; k++) {
        const struct gni_index *index = &plan->indices[k];
        struct gni_place_index *own = &to->indices[k];
        own->data = gni_tensor_data(index->tensor);
        own->size = index->size;
        own->wrap = index->wrap;
        own->stride = index->stride * sides->width;
        own->type = type_code(index);
        own->dimension = index->dimension;
    }
    for (int i = 0; i < plan->ndim; i++)
        dimension_add(to, plan, i, sides);
    if (to->dimensions == 0) {
        to->sizes[0] = 1;
        to->dimensions = 1;
    }
    to->count = 1;
    for (int i = 0; i < to->dimensions; i++)
        to->count *= (uint64_t)to->sizes[i];
}

static void arguments_widen(struct gni_index_arguments *to, int64_t width, int64_t unit)
{
    int last = to->dimensions - 1;
    if (unit == width)
        return;
    to->sizes[last] = to->sizes[last] * width / unit;
    to->strides[last] = unit;
    if (to->other != NULL)
        to->other_strides[last] = unit;
    to->count = to->count * (uint64_t)width / (uint64_t)unit;
}

/* ---- launches ---------------------------------------------------------------------------------- */

static gn_status indices_order(const struct gni_index_plan *plan, gn_stream *stream)
{
    for (int k = 0; k < plan->index_count; k++)
        GN_TRY(gni_storage_order(gni_tensor_storage(plan->indices[k].tensor), stream, false));
    return GN_OK;
}

/* The units of a thread: several where finding one is little work. */
static uint32_t units_each(const struct gni_index_arguments *arguments, int64_t unit)
{
    bool is_few = arguments->index_count > 0 && arguments->index_count <= FEW_INDICES;
    return is_few && arguments->dimensions == 1 && unit <= 8 ? UNITS_EACH : 1;
}

/* What a kernel is made for, and what it is told. */
static void form_find(const struct gni_index_arguments *arguments,
                      struct gni_index_form *specialization)
{
    bool is_few = arguments->index_count > 0 && arguments->index_count <= FEW_INDICES;
    specialization->kind = FORM_KIND;
    specialization->is_wide |= arguments->count > INT32_MAX;
    specialization->dimensions =
        arguments->dimensions <= FEW_DIMENSIONS ? (uint32_t)arguments->dimensions : 0;
    specialization->indices = is_few ? (uint32_t)arguments->index_count : 0;
    specialization->number = is_few ? (uint32_t)arguments->indices[0].type : GNI_INDEX_ANY_NUMBER;
    for (int k = 1; k < arguments->index_count; k++)
        if (arguments->indices[k].type != arguments->indices[0].type)
            specialization->number = GNI_INDEX_ANY_NUMBER;
    if (specialization->each == 0)
        specialization->each = units_each(arguments, specialization->unit);
}

/* How many warps share the columns of an entry. */
static unsigned few_columns(const struct gni_index_arguments *arguments)
{
    int64_t wanted = (arguments->columns + FEW_COLUMNS - 1) / FEW_COLUMNS;
    return (unsigned)(wanted < FEW_COLUMNS_MOST ? wanted : FEW_COLUMNS_MOST);
}

gn_status gni_index_launch(struct gni_index_arguments *arguments,
                           struct gni_index_form *specialization, gn_stream *stream)
{
    _Atomic(uint64_t) *word;
    struct gni_kernel *kernel;
    if (arguments->count == 0)
        return GN_OK;
    bool is_few =
        specialization->mode == GNI_INDEX_FEW_SET || specialization->mode == GNI_INDEX_FEW_ADD;
    form_find(arguments, specialization);
    /* Entries, or units, of a block. */
    uint64_t each = is_few ? GNI_CUDA_BLOCK / 32 : GNI_CUDA_BLOCK * (uint64_t)specialization->each;
    uint64_t blocks = (arguments->count + each - 1) / each;
    if (blocks > GRID_MOST)
        return gni_error(GN_ERROR_OVERFLOW, "%llu elements are more than a kernel can have",
                         (unsigned long long)arguments->count);
    GN_TRY(fault_word(stream->device, &word));
    arguments->fault = word;
    GN_TRY(form_kernel(stream->device, specialization, &kernel));
    void *addresses[] = {arguments};
    struct gni_launch launch = {.grid = {(unsigned)blocks, is_few ? few_columns(arguments) : 1, 1},
                                .block = {GNI_CUDA_BLOCK, 1, 1},
                                .arguments = addresses,
                                .argument_bytes = sizeof *arguments,
                                .waits = true};
    GN_TRY(gni_kernel_launch(kernel, stream, &launch));
    bool is_waiting = (gni_option_set(GNI_OPTION_DEBUG) & GNI_DEBUG_SYNC) != 0;
    return is_waiting ? gni_cuda_index_check(stream->device) : GN_OK;
}

/* Without an element to read or write the numbers are looked at all the same: those of one place of the others. */
static gn_status numbers_check(const struct gni_index_plan *plan, gn_stream *stream)
{
    static const int64_t none[GN_DIMENSIONS_MAX];
    struct gni_index_plan block = *plan;
    struct gni_index_arguments arguments;
    struct gni_index_form specialization = {.mode = GNI_INDEX_CHECK, .unit = 1, .dtype = GN_UINT8};
    struct gni_index_sides sides = {.width = 1, .other_width = 1, .other_strides = none};
    block.ndim = plan->block_end - plan->block_begin;
    for (int i = 0; i < block.ndim; i++) {
        block.sizes[i] = plan->sizes[plan->block_begin + i];
        block.strides[i] = 0;
        for (int k = 0; k < plan->index_count; k++)
            block.indices[k].strides[i] = plan->indices[k].strides[plan->block_begin + i];
    }
    gni_index_arguments_make(&arguments, &block, &sides);
    return gni_index_launch(&arguments, &specialization, stream);
}

static bool has_elements(const struct gni_index_plan *plan)
{
    for (int k = 0; k < plan->index_count; k++)
        if (!plan->indices[k].is_trusted && plan->indices[k].size == 0)
            return false;
    return plan->count > 0;
}

/* A plan that is read, and how that is tuned. */
struct get_work {
    struct gni_index_arguments arguments; /* in elements of `width` bytes */
    int64_t width, unit;                  /* the widest that there can be */
    gn_stream *stream;
};

enum get_value {
    GET_EACH,
    GET_UNIT,
};

static const struct gni_tune_family get_family = {
    .name = "index_get",
    .extents = {"bytes", "row_bytes", "unit", "dimensions", "indices"},
    .plain = 1 << 2 | 1 << 3 | 1 << 4,
    .values = {"items", "unit"},
};

static gn_status get_run(void *context, const struct gni_choice *choice)
{
    struct get_work *work = context;
    struct gni_index_arguments *arguments = &work->arguments;
    int last = arguments->dimensions - 1;
    const int64_t size = arguments->sizes[last], stride = arguments->strides[last];
    const int64_t other_stride = arguments->other_strides[last];
    const uint64_t count = arguments->count;
    struct gni_index_form specialization = {.mode = GNI_INDEX_GET,
                                            .dtype = GN_UINT8,
                                            .unit = (uint32_t)choice->values[GET_UNIT],
                                            .each = (uint32_t)choice->values[GET_EACH]};
    arguments_widen(arguments, work->width, specialization.unit);
    gn_status status = gni_index_launch(arguments, &specialization, work->stream);
    arguments->sizes[last] = size; /* for another choice */
    arguments->strides[last] = stride;
    arguments->other_strides[last] = other_stride;
    arguments->count = count;
    return status;
}

static int get_list(void *context, struct gni_choice *choices)
{
    static const int each[] = {1, 2, 4, 8, 1, 2, 4};
    const struct get_work *work = context;
    int count = 0;
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        int64_t unit = i < 4 ? work->unit : work->unit / 2;
        bool is_usual = i < 4 && (uint32_t)each[i] == units_each(&work->arguments, work->unit);
        if (unit >= work->width && !is_usual)
            choices[count++] =
                (struct gni_choice){.values = {[GET_EACH] = each[i], [GET_UNIT] = (int)unit}};
    }
    return count;
}

static gn_status get_tune(struct get_work *work)
{
    const struct gni_index_arguments *arguments = &work->arguments;
    int last = arguments->dimensions - 1, each = (int)units_each(arguments, work->unit);
    struct gni_tune tune = {
        .family = &get_family,
        .stream = work->stream,
        .type = "bytes",
        .nbytes = 2 * arguments->count * (uint64_t)work->width,
        .extents = {gni_tune_log((int64_t)arguments->count * work->width),
                    gni_tune_log(arguments->sizes[last] * work->width), (int)work->unit,
                    arguments->dimensions, arguments->index_count},
        .standard = {.values = {[GET_EACH] = each, [GET_UNIT] = (int)work->unit}},
        .context = work,
        .run = get_run,
        .list = get_list};
    return gni_tune_run(&tune);
}

gn_status gni_cuda_index_get(const struct gni_index_plan *plan, gn_tensor *source,
                             gn_tensor *result)
{
    struct get_work work; /* large, and all of it is set below */
    int64_t strides[GN_DIMENSIONS_MAX];
    work.width = (int64_t)gni_dtype_size(source->dtype);
    GN_TRY(gni_stream_of(source->device, &work.stream));
    GN_TRY(indices_order(plan, work.stream));
    if (!has_elements(plan))
        return numbers_check(plan, work.stream);
    GN_TRY(gni_storage_order(gni_tensor_storage(source), work.stream, false));
    GN_TRY(gni_storage_order(gni_tensor_storage(result), work.stream, true));
    gni_strides_contiguous(plan->ndim, plan->sizes, strides);
    struct gni_index_sides sides = {.source = gni_tensor_data(source),
                                    .other = gni_tensor_data(result),
                                    .width = work.width,
                                    .other_width = work.width,
                                    .other_strides = strides};
    gni_index_arguments_make(&work.arguments, plan, &sides);
    work.unit = unit_find(&work.arguments, work.width);
    return get_tune(&work);
}

/* Each place of which the entry is chosen. */
gn_status gni_index_put(const struct gni_index_plan *plan, const struct gni_index_values *values,
                        const int64_t *entry_strides, const uint8_t *chosen, gn_stream *stream)
{
    struct gni_index_arguments arguments;
    gn_dtype dtype = values->target->dtype;
    struct gni_index_form specialization = {
        .mode = values->is_accumulated ? GNI_INDEX_ADD : GNI_INDEX_SET,
        .dtype = values->is_accumulated ? (uint32_t)dtype : GN_UINT8};
    int64_t width = (int64_t)gni_dtype_size(dtype);
    struct gni_index_sides sides = {.source = gni_tensor_data(values->target),
                                    .other = values->data,
                                    .width = width,
                                    .other_width = width,
                                    .other_strides = values->strides,
                                    .entry_strides = entry_strides};
    gni_index_arguments_make(&arguments, plan, &sides);
    arguments.chosen = chosen;
    for (int64_t at = 0; at < GNI_INDEX_UNIT; at += width)
        memcpy((char *)arguments.number + at, &values->number, (size_t)width);
    specialization.unit = (uint32_t)(values->is_accumulated ? width : unit_find(&arguments, width));
    arguments_widen(&arguments, width, specialization.unit);
    return gni_index_launch(&arguments, &specialization, stream);
}

gn_status gni_cuda_index_set(const struct gni_index_plan *plan, gn_tensor *target,
                             const gn_tensor *value, const int64_t *strides, uint64_t number,
                             bool is_accumulated)
{
    struct gni_index_values values = {.target = target,
                                      .data = value != NULL ? gni_tensor_data(value) : NULL,
                                      .strides = strides,
                                      .number = number,
                                      .is_accumulated = is_accumulated};
    gn_stream *stream;
    GN_TRY(gni_stream_of(target->device, &stream));
    GN_TRY(indices_order(plan, stream));
    if (!has_elements(plan))
        return numbers_check(plan, stream);
    if (value != NULL)
        GN_TRY(gni_storage_order(gni_tensor_storage(value), stream, false));
    GN_TRY(gni_storage_order(gni_tensor_storage(target), stream, true));
    return gni_ordered_is_needed(plan, &values) ? gni_ordered_put(plan, &values, stream)
                                                : gni_index_put(plan, &values, NULL, NULL, stream);
}

/* ---- for the archive --------------------------------------------------------------------------- */

static void form_list(struct gni_kernel_list *list, const struct gni_index_form *form)
{
    char name[TEXT_NAME_MOST];
    struct gni_builder text = {.text = NULL};
    form_name(form, name);
    form_text(form, name, &text);
    gni_kernel_list_add(list, name, &text);
}

/* The general forms of a mode, which do what any other one does. The FEW modes, whose code is long, have words of 8 bytes
 * only: these are no less right. */
static void forms_list(struct gni_kernel_list *list, enum gni_index_mode mode, uint32_t unit,
                       gn_dtype dtype)
{
    struct gni_index_form form = {.kind = FORM_KIND,
                                  .mode = mode,
                                  .unit = unit,
                                  .dtype = (uint32_t)dtype,
                                  .number = GNI_INDEX_ANY_NUMBER,
                                  .each = 1};
    form.is_wide = mode == GNI_INDEX_FEW_SET || mode == GNI_INDEX_FEW_ADD;
    for (; form.is_wide < 2; form.is_wide++)
        form_list(list, &form);
}

/* The usual forms: an index tensor, which is trusted or int64, and one or two dimensions. */
static void usual_list(struct gni_kernel_list *list, enum gni_index_mode mode, uint32_t unit)
{
    struct gni_index_form form = {
        .kind = FORM_KIND, .mode = mode, .unit = unit, .dtype = GN_UINT8, .indices = 1};
    for (form.dimensions = 1; form.dimensions <= 2; form.dimensions++) {
        form.each = form.dimensions == 1 && unit <= 8 ? UNITS_EACH : 1; /* as units_each() says */
        for (form.number = 0; form.number < 2; form.number++)
            form_list(list, &form);
    }
}

void gni_cuda_index_list(struct gni_kernel_list *list)
{
    static const enum gni_index_mode bytes[] = {GNI_INDEX_CHECK, GNI_INDEX_KEYS, GNI_INDEX_MARK,
                                                GNI_INDEX_CHOOSE};
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        forms_list(list, bytes[i], 1, GN_UINT8);
    for (uint32_t unit = 1; unit <= GNI_INDEX_UNIT; unit *= 2) {
        forms_list(list, GNI_INDEX_GET, unit, GN_UINT8);
        forms_list(list, GNI_INDEX_SET, unit, GN_UINT8);
        forms_list(list, GNI_INDEX_FEW_SET, unit, GN_UINT8);
        if (unit <= 8)
            forms_list(list, GNI_INDEX_PUT, unit, GN_UINT8);
        if (unit > 1) {
            usual_list(list, GNI_INDEX_GET, unit);
            usual_list(list, GNI_INDEX_SET, unit);
        }
    }
    for (int dtype = 0; dtype < GN_DTYPE_COUNT; dtype++)
        forms_list(list, gni_dtype_is_floating((gn_dtype)dtype) ? GNI_INDEX_FEW_ADD : GNI_INDEX_ADD,
                   (uint32_t)gni_dtype_size((gn_dtype)dtype), (gn_dtype)dtype);
}
