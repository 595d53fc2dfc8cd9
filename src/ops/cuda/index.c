/*
 * index.c: keys on a GPU: from a plan to the arguments of a kernel (index.cu), and from a mask to places (places.cu).
 *
 * The dimensions of a plan are joined where all strides allow it; the last one is moved in units of up to 16 bytes,
 * where it is contiguous on both sides and all addresses are multiples of that. Kernels are made for the number of
 * dimensions and index tensors, if these are few, and for the bytes of a unit, not for types.
 */
#include "ops/cuda/index.h"

#include "base/builder.h"
#include "base/option.h"
#include "jit/kernel.h"
#include "jit/tune.h"
#include "ops/cuda/generate.h"
#include "ops/cuda/texts.h"
#include "ops/move.h"

#include <stdio.h>
#include <string.h>

enum {
    UNIT_MOST = 16,      /* bytes */
    GRID_MOST = 1 << 30, /* blocks */
    FEW_DIMENSIONS = 3,  /* kernels of their own */
    FEW_INDICES = 2,     /* likewise */
    PART = 4096,         /* bytes of a mask that a block looks at: PART of places.cu */
    SCAN_THREADS = 1024, /* of the block that adds up counts */
    TEXT_NAME_MOST = 64,
};

enum mode {
    MODE_GET,
    MODE_SET,
    MODE_ADD,
    MODE_CHECK,
};

/* ---- the arguments, as index.cu has them ------------------------------------------------------- */

struct place_index {
    const char *data;
    int64_t size, wrap, stride;
    int64_t strides[GN_DIMENSIONS_MAX];
    int32_t type, dimension;
};

struct arguments {
    _Alignas(UNIT_MOST) uint64_t number[2];
    uint64_t count;
    int64_t sizes[GN_DIMENSIONS_MAX], strides[GN_DIMENSIONS_MAX], other_strides[GN_DIMENSIONS_MAX];
    char *source, *other;
    void *fault;
    int32_t dimensions, index_count;
    struct place_index indices[GN_DIMENSIONS_MAX];
};

/* What the text of a kernel depends on; the signature of it, so without holes. */
struct form {
    uint32_t kind; /* apart from signatures of others */
    uint32_t mode, unit, dimensions, indices, dtype;
    uint32_t is_wide;
    uint32_t items; /* units of a thread */
};

_Static_assert(sizeof(struct arguments) <= 4096, "arguments of a kernel have at most 4096 bytes");
_Static_assert(sizeof(struct form) == 8 * sizeof(uint32_t), "a signature has no holes");

static void form_text(const struct form *form, const char *name, struct gni_builder *text)
{
    gni_builder_add(text, gni_text_elements, strlen(gni_text_elements));
    gni_builder_print(text,
                      "#define NAME %s\n#define MODE %u\n#define UNIT %u\n#define DIMENSIONS %u\n"
                      "#define INDICES %u\n#define INDEX %s\n#define ELEMENT_TYPE %s\n"
                      "#define ITEMS %u\n",
                      name, (unsigned)form->mode, (unsigned)form->unit, (unsigned)form->dimensions,
                      (unsigned)form->indices, form->is_wide != 0 ? "uint64" : "unsigned",
                      gni_cuda_type((gn_dtype)form->dtype), (unsigned)form->items);
    gni_builder_add(text, gni_text_index, strlen(gni_text_index));
}

static gn_status form_kernel(gn_device *device, const struct form *form, struct gni_kernel **kernel)
{
    static const char *const modes[] = {"get", "set", "add", "check"};
    char name[TEXT_NAME_MOST];
    *kernel = gni_kernel_find(device, form, sizeof *form);
    if (*kernel != NULL)
        return GN_OK;
    struct gni_builder text = {.text = NULL};
    (void)snprintf(name, sizeof name, "index_%s_%u_%u_%u", modes[form->mode], (unsigned)form->unit,
                   (unsigned)form->dimensions, (unsigned)form->indices);
    form_text(form, name, &text);
    return gni_kernel_build(device, name, &text, form, sizeof *form, kernel);
}

/* ---- numbers that are out of range ------------------------------------------------------------- */

/* The word of a device, made when it is needed first. */
static gn_status fault_word(gn_device *device, _Atomic(uint64_t) **word)
{
    void *made;
    _Atomic(uint64_t) *none = NULL;
    *word = atomic_load(&device->fault);
    if (*word != NULL)
        return GN_OK;
    GN_TRY(device->ops->host_alloc(device, sizeof **word, &made));
    *word = made;
    atomic_init(*word, 0);
    if (!atomic_compare_exchange_strong(&device->fault, &none, made)) {
        (void)device->ops->host_free(device, made, sizeof **word); /* another thread was first */
        *word = none;
    }
    return GN_OK;
}

gn_status gni_cuda_index_check(gn_device *device)
{
    _Atomic(uint64_t) *word = atomic_load(&device->fault);
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

static int32_t type_code(const struct gni_index *index)
{
    if (index->is_trusted)
        return 0;
    switch (index->tensor->dtype) {
    case GN_INT32:
        return 2;
    case GN_INT16:
        return 3;
    case GN_INT8:
        return 4;
    case GN_UINT8:
        return 5;
    default:
        return 1;
    }
}

/* Adds a dimension, joined with the one before where all strides allow it. */
static void dimension_add(struct arguments *to, const struct gni_index_plan *plan, int from,
                          int64_t unit, const int64_t *other_strides)
{
    int64_t size = plan->sizes[from], stride = plan->strides[from] * unit;
    int64_t other = other_strides[from] * unit, own[GN_DIMENSIONS_MAX];
    int last = to->dimensions - 1;
    if (size == 1)
        return;
    bool is_joined =
        last >= 0 && to->strides[last] == stride * size && to->other_strides[last] == other * size;
    for (int k = 0; k < to->index_count; k++) {
        const struct gni_index *index = &plan->indices[k];
        own[k] = index->strides[from] * (int64_t)gni_dtype_size(index->tensor->dtype);
        is_joined = is_joined && to->indices[k].strides[last] == own[k] * size;
    }
    int at = is_joined ? last : to->dimensions++;
    to->sizes[at] = is_joined ? to->sizes[at] * size : size;
    to->strides[at] = stride;
    to->other_strides[at] = other;
    for (int k = 0; k < to->index_count; k++)
        to->indices[k].strides[at] = own[k];
}

/* The most bytes that the last dimension can be moved in at once; its own size is `width`. */
static int64_t unit_find(const struct arguments *from, int64_t width)
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
    int64_t unit = UNIT_MOST;
    while (unit > width && all % (uint64_t)unit != 0)
        unit /= 2;
    return unit;
}

static void arguments_make(struct arguments *to, const struct gni_index_plan *plan, int64_t width,
                           char *source, char *other, const int64_t *other_strides)
{
    memset(to, 0, sizeof *to);
    to->source = (char *)((uintptr_t)source + (uintptr_t)(plan->offset * width));
    to->other = other;
    to->index_count = plan->index_count;
    for (int k = 0; k < plan->index_count; k++) {
        const struct gni_index *index = &plan->indices[k];
        struct place_index *own = &to->indices[k];
        own->data = gni_tensor_data(index->tensor);
        own->size = index->size;
        own->wrap = index->wrap;
        own->stride = index->stride * width;
        own->type = type_code(index);
        own->dimension = index->dimension;
    }
    for (int i = 0; i < plan->ndim; i++)
        dimension_add(to, plan, i, width, other_strides);
    if (to->dimensions == 0) {
        to->sizes[0] = 1;
        to->dimensions = 1;
    }
    to->count = 1;
    for (int i = 0; i < to->dimensions; i++)
        to->count *= (uint64_t)to->sizes[i];
}

static void arguments_widen(struct arguments *to, int64_t width, int64_t unit)
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

static gn_status arguments_launch(struct arguments *arguments, struct form *form, gn_stream *stream)
{
    _Atomic(uint64_t) *word;
    struct gni_kernel *kernel;
    if (arguments->count == 0)
        return GN_OK;
    form->items = form->items > 0 ? form->items : 1;
    uint64_t block = (uint64_t)GNI_CUDA_BLOCK * form->items;
    uint64_t blocks = (arguments->count + block - 1) / block;
    if (blocks > GRID_MOST)
        return gni_error(GN_ERROR_OVERFLOW, "%llu elements are more than a kernel can have",
                         (unsigned long long)arguments->count);
    GN_TRY(fault_word(stream->device, &word));
    arguments->fault = word;
    form->kind = 'I' << 24 | 'X' << 16;
    form->is_wide = arguments->count > INT32_MAX;
    form->dimensions =
        arguments->dimensions <= FEW_DIMENSIONS ? (uint32_t)arguments->dimensions : 0;
    form->indices = arguments->index_count <= FEW_INDICES && arguments->index_count > 0
                        ? (uint32_t)arguments->index_count
                        : 0;
    GN_TRY(form_kernel(stream->device, form, &kernel));
    void *addresses[] = {arguments};
    struct gni_launch launch = {
        .grid = {(unsigned)blocks, 1, 1}, .block = {GNI_CUDA_BLOCK, 1, 1}, .arguments = addresses};
    GN_TRY(gni_kernel_launch(kernel, stream, &launch));
    bool is_waiting = (gni_option_set(GNI_OPTION_DEBUG) & GNI_DEBUG_SYNC) != 0;
    return is_waiting ? gni_cuda_index_check(stream->device) : GN_OK;
}

/* Without an element to read or write the numbers are looked at all the same: those of one place of the others. */
static gn_status numbers_check(const struct gni_index_plan *plan, gn_stream *stream)
{
    static const int64_t none[GN_DIMENSIONS_MAX];
    struct gni_index_plan block = *plan;
    struct arguments arguments;
    struct form form = {.mode = MODE_CHECK, .unit = 1, .dtype = GN_UINT8};
    block.ndim = plan->block_end - plan->block_begin;
    for (int i = 0; i < block.ndim; i++) {
        block.sizes[i] = plan->sizes[plan->block_begin + i];
        block.strides[i] = 0;
        for (int k = 0; k < plan->index_count; k++)
            block.indices[k].strides[i] = plan->indices[k].strides[plan->block_begin + i];
    }
    arguments_make(&arguments, &block, 1, NULL, NULL, none);
    return arguments_launch(&arguments, &form, stream);
}

static bool has_elements(const struct gni_index_plan *plan)
{
    for (int k = 0; k < plan->index_count; k++)
        if (!plan->indices[k].is_trusted && plan->indices[k].size == 0)
            return false;
    return plan->count > 0;
}

/* A plan that is read, and how that is tuned: all ways move the same bytes. */
struct get_work {
    struct arguments arguments; /* in elements of `width` bytes */
    int64_t width, unit;        /* the widest that there can be */
    gn_stream *stream;
};

enum get_value {
    GET_ITEMS,
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
    struct arguments *arguments = &work->arguments;
    int last = arguments->dimensions - 1;
    const int64_t size = arguments->sizes[last], stride = arguments->strides[last];
    const int64_t other_stride = arguments->other_strides[last];
    const uint64_t count = arguments->count;
    struct form form = {.mode = MODE_GET,
                        .dtype = GN_UINT8,
                        .unit = (uint32_t)choice->values[GET_UNIT],
                        .items = (uint32_t)choice->values[GET_ITEMS]};
    arguments_widen(arguments, work->width, form.unit);
    gn_status status = arguments_launch(arguments, &form, work->stream);
    arguments->sizes[last] = size; /* for another choice */
    arguments->strides[last] = stride;
    arguments->other_strides[last] = other_stride;
    arguments->count = count;
    return status;
}

static int get_list(void *context, struct gni_choice *choices)
{
    static const int items[] = {2, 4, 8, 1, 2, 4};
    const struct get_work *work = context;
    int count = 0;
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        int64_t unit = i < 3 ? work->unit : work->unit / 2;
        if (unit >= work->width)
            choices[count++] =
                (struct gni_choice){.values = {[GET_ITEMS] = items[i], [GET_UNIT] = (int)unit}};
    }
    return count;
}

static gn_status get_tune(struct get_work *work)
{
    const struct arguments *arguments = &work->arguments;
    int last = arguments->dimensions - 1;
    struct gni_tune tune = {.family = &get_family,
                            .stream = work->stream,
                            .type = "bytes",
                            .nbytes = 2 * arguments->count * (uint64_t)work->width,
                            .extents = {gni_tune_log((int64_t)arguments->count * work->width),
                                        gni_tune_log(arguments->sizes[last] * work->width),
                                        (int)work->unit, arguments->dimensions,
                                        arguments->index_count},
                            .standard = {.values = {[GET_ITEMS] = 1, [GET_UNIT] = (int)work->unit}},
                            .context = work,
                            .run = get_run,
                            .list = get_list};
    return gni_tune_run(&tune);
}

gn_status gni_cuda_index_get(const struct gni_index_plan *plan, gn_tensor *source,
                             gn_tensor *result)
{
    int64_t strides[GN_DIMENSIONS_MAX];
    struct get_work work; /* large, and all of it is set below */
    work.width = (int64_t)gni_dtype_size(source->dtype);
    GN_TRY(gni_stream_of(source->device, &work.stream));
    GN_TRY(indices_order(plan, work.stream));
    if (!has_elements(plan))
        return numbers_check(plan, work.stream);
    GN_TRY(gni_storage_order(gni_tensor_storage(source), work.stream, false));
    GN_TRY(gni_storage_order(gni_tensor_storage(result), work.stream, true));
    gni_strides_contiguous(plan->ndim, plan->sizes, strides);
    arguments_make(&work.arguments, plan, work.width, gni_tensor_data(source),
                   gni_tensor_data(result), strides);
    work.unit = unit_find(&work.arguments, work.width);
    return get_tune(&work);
}

gn_status gni_cuda_index_set(const struct gni_index_plan *plan, gn_tensor *target,
                             const gn_tensor *value, const int64_t *strides, uint64_t number,
                             bool is_accumulated)
{
    struct arguments arguments;
    struct form form = {.mode = is_accumulated ? MODE_ADD : MODE_SET,
                        .dtype = is_accumulated ? (uint32_t)target->dtype : GN_UINT8};
    int64_t width = (int64_t)gni_dtype_size(target->dtype);
    gn_stream *stream;
    GN_TRY(gni_stream_of(target->device, &stream));
    GN_TRY(indices_order(plan, stream));
    if (!has_elements(plan))
        return numbers_check(plan, stream);
    if (value != NULL)
        GN_TRY(gni_storage_order(gni_tensor_storage(value), stream, false));
    GN_TRY(gni_storage_order(gni_tensor_storage(target), stream, true));
    arguments_make(&arguments, plan, width, gni_tensor_data(target),
                   value != NULL ? gni_tensor_data(value) : NULL, strides);
    for (int64_t at = 0; at < UNIT_MOST; at += width)
        memcpy((char *)arguments.number + at, &number, (size_t)width);
    form.unit = (uint32_t)(is_accumulated ? width : unit_find(&arguments, width));
    arguments_widen(&arguments, width, form.unit);
    return arguments_launch(&arguments, &form, stream);
}

/* ---- masks ------------------------------------------------------------------------------------- */

/* The arguments of places.cu. */
struct places {
    const char *bytes;
    int64_t length, parts;
    int64_t *counts, *out;
    int32_t dimensions, is_coordinates;
    int64_t sizes[GN_DIMENSIONS_MAX], strides[GN_DIMENSIONS_MAX];
};

static gn_status places_launch(struct places *places, uint32_t step, unsigned blocks,
                               unsigned threads, gn_stream *stream)
{
    const uint32_t signature[] = {'P' << 24 | 'L' << 16, step};
    char name[TEXT_NAME_MOST];
    struct gni_kernel *kernel = gni_kernel_find(stream->device, signature, sizeof signature);
    if (kernel == NULL) {
        struct gni_builder text = {.text = NULL};
        (void)snprintf(name, sizeof name, "mask_places_%u", (unsigned)step);
        gni_builder_add(&text, gni_text_elements, strlen(gni_text_elements));
        gni_builder_print(&text, "#define NAME %s\n#define STEP %u\n", name, (unsigned)step);
        gni_builder_add(&text, gni_text_places, strlen(gni_text_places));
        GN_TRY(gni_kernel_build(stream->device, name, &text, signature, sizeof signature, &kernel));
    }
    void *addresses[] = {places};
    struct gni_launch launch = {
        .grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .arguments = addresses};
    return gni_kernel_launch(kernel, stream, &launch);
}

/* Counts, waits for the sum, and makes room for it. */
static gn_status places_count(struct places *places, gn_tensor *counts, int64_t *count,
                              gn_stream *stream)
{
    unsigned blocks = (unsigned)places->parts;
    GN_TRY(places_launch(places, 0, blocks, GNI_CUDA_BLOCK, stream));
    GN_TRY(places_launch(places, 1, 1, SCAN_THREADS, stream));
    return gni_tensor_read(counts, places->parts, sizeof *count, count);
}

static gn_status places_find(gn_tensor *mask, struct places *places, gn_tensor *counts,
                             gn_tensor **result)
{
    gn_stream *stream;
    gn_tensor *made;
    int64_t shape[] = {0, mask->ndim};
    GN_TRY(gni_stream_of(mask->device, &stream));
    GN_TRY(gni_storage_order(gni_tensor_storage(mask), stream, false));
    if (places->parts > 0)
        GN_TRY(places_count(places, counts, &shape[0], stream));
    GN_TRY(gn_tensor_create(GN_INT64, places->is_coordinates != 0 ? 2 : 1, shape, mask->device,
                            &made));
    if (made->count > 0) {
        places->out = (int64_t *)(void *)gni_tensor_data(made);
        gn_status status =
            places_launch(places, 2, (unsigned)places->parts, GNI_CUDA_BLOCK, stream);
        if (status != GN_OK) {
            gn_tensor_release(made);
            return status;
        }
    }
    *result = made;
    return GN_OK;
}

gn_status gni_cuda_mask_places(gn_tensor *mask, const int64_t *strides, gn_tensor **places)
{
    struct places arguments = {.bytes = gni_tensor_data(mask),
                               .length = mask->count,
                               .parts = (mask->count + PART - 1) / PART,
                               .dimensions = mask->ndim,
                               .is_coordinates = strides == NULL};
    gn_tensor *counts;
    int64_t room = arguments.parts + 1;
    if (arguments.parts > GRID_MOST)
        return gni_error(GN_ERROR_OVERFLOW, "%lld elements are more than a kernel can have",
                         (long long)mask->count);
    for (int i = 0; i < mask->ndim; i++) {
        arguments.sizes[i] = mask->sizes[i];
        arguments.strides[i] = strides != NULL ? strides[i] : 0;
    }
    GN_TRY(gn_tensor_create(GN_INT64, 1, &room, mask->device, &counts));
    arguments.counts = (int64_t *)(void *)gni_tensor_data(counts);
    gn_status status = places_find(mask, &arguments, counts, places);
    gn_tensor_release(counts);
    return status;
}
