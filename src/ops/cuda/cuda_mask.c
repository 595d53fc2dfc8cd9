/*
 * cuda_mask.c: where a mask on a GPU is true, and the elements there: two kernels of places.cu, and between them one wait
 * for the count, which is the size of what the second one writes.
 *
 * A mask is cut into parts, a block for each, so few that each block of the second kernel can add up the counts of the
 * parts before its own, and the host those of all.
 */
#include "jit/kernel.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/fixed.h"
#include "ops/cuda/generate.h"
#include "ops/cuda/kernel_list.h"
#include "ops/cuda/kernel_texts.h"
#include "ops/recorder.h"

#include <stdio.h>
#include <string.h>

enum {
    TILE = 4096,       /* bytes of a mask that a block looks at at a time: TILE of places.cu */
    PARTS_MOST = 1056, /* 8 blocks for each of 132 multiprocessors */
    TEXT_NAME_MOST = 64,
};

/* As places.cu has them, which says what each does. */
enum step {
    STEP_COUNT,
    STEP_PLACES,
    STEP_COORDINATES,
    STEP_GET,
    STEP_SET,
};

/* The arguments of places.cu. */
struct arguments {
    const char *bytes;
    int64_t length, tiles;
    uint32_t *counts, *host;
    int64_t total, *out;
    char *source, *other;
    int64_t dimensions, sizes[GN_DIMENSIONS_MAX], strides[GN_DIMENSIONS_MAX];
};

/* A mask whose true bytes are counted. */
struct places {
    gn_stream *stream;
    int64_t parts;
    struct gni_storage *counts;
    struct arguments arguments;
};

static void step_text(enum step step, size_t unit, char name[TEXT_NAME_MOST],
                      struct gni_builder *text)
{
    static const char *const words[] = {"count", "places", "coordinates", "get", "set"};
    (void)snprintf(name, TEXT_NAME_MOST, "mask_%s_%zu", words[step], unit);
    gni_builder_add(text, gni_text_elements, strlen(gni_text_elements));
    gni_builder_print(text, "#define NAME %s\n#define STEP %u\n#define UNIT %zu\n", name,
                      (unsigned)step, unit);
    gni_builder_add(text, gni_text_places, strlen(gni_text_places));
}

void gni_cuda_mask_list(struct gni_kernel_list *list)
{
    static const struct {
        enum step step;
        size_t units; /* a sum of powers of two */
    } forms[] = {{STEP_COUNT, 1},
                 {STEP_PLACES, 8},
                 {STEP_COORDINATES, 8},
                 {STEP_GET, 1 | 2 | 4 | 8},
                 {STEP_SET, 1 | 2 | 4 | 8}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (size_t unit = 1; unit <= forms[i].units; unit *= 2) {
            char name[TEXT_NAME_MOST];
            struct gni_builder text = {.text = NULL};
            if ((forms[i].units & unit) == 0)
                continue;
            step_text(forms[i].step, unit, name, &text);
            gni_kernel_list_add(list, name, &text);
        }
}

static gn_status step_launch(struct places *places, enum step step, size_t unit)
{
    const uint32_t signature[] = {'P' << 24 | 'L' << 16, step, (uint32_t)unit};
    gn_device *device = places->stream->device;
    char name[TEXT_NAME_MOST];
    struct gni_kernel *kernel = gni_kernel_find(device, signature, sizeof signature);
    if (kernel == NULL) {
        struct gni_builder text = {.text = NULL};
        step_text(step, unit, name, &text);
        GN_TRY(gni_kernel_build_general(device, name, &text, signature, sizeof signature, &kernel));
    }
    void *addresses[] = {&places->arguments};
    struct gni_launch launch = {.grid = {(unsigned)places->parts, 1, 1},
                                .block = {GNI_CUDA_BLOCK, 1, 1},
                                .arguments = addresses,
                                .waits = true};
    return gni_kernel_launch(kernel, places->stream, &launch);
}

static gn_status places_wait(struct places *places, const struct gni_storage *answer)
{
    const uint32_t *counts = (const uint32_t *)(const void *)answer->data;
    places->arguments.host = (uint32_t *)(void *)answer->data;
    GN_TRY(step_launch(places, STEP_COUNT, 1));
    GN_TRY(gni_readback_wait(places->stream));
    for (int64_t i = 0; i < places->parts; i++)
        places->arguments.total += counts[i];
    return GN_OK;
}

/* Counts a contiguous mask, and waits for that. */
static gn_status places_init(struct places *places, gn_tensor *mask)
{
    int64_t tiles = gni_divided_up(mask->count, TILE);
    struct gni_storage *answer;
    *places = (struct places){.arguments = {.bytes = gni_tensor_data(mask), .length = mask->count}};
    if (tiles == 0)
        return GN_OK;
    places->arguments.tiles = gni_divided_up(tiles, PARTS_MOST);
    places->parts = gni_divided_up(tiles, places->arguments.tiles);
    size_t nbytes = (size_t)places->parts * sizeof(uint32_t);
    GN_TRY(gni_stream_of(mask->device, &places->stream));
    GN_TRY(gni_storage_order(gni_tensor_storage(mask), places->stream, false));
    GN_TRY(gni_readback_create(places->stream, nbytes, &answer));
    gn_status status = gni_storage_create(mask->device, nbytes, places->stream, &places->counts);
    if (status == GN_OK) {
        places->arguments.counts = (uint32_t *)(void *)places->counts->data;
        status = places_wait(places, answer);
        if (status != GN_OK)
            gni_storage_release(places->counts);
    }
    gni_storage_release(answer);
    return status;
}

static void places_deinit(struct places *places)
{
    gni_storage_release(places->counts);
}

/* The mask's dimensions, joined where the strides allow it. */
static void places_stride(struct places *places, const gn_tensor *mask, const int64_t *strides,
                          int64_t unit)
{
    struct arguments *to = &places->arguments;
    for (int i = 0; i < mask->ndim; i++) {
        int64_t size = mask->sizes[i], stride = strides[i] * unit;
        int last = (int)to->dimensions - 1;
        bool is_joined = last >= 0 && to->strides[last] == stride * size;
        int at = is_joined ? last : (int)to->dimensions++;
        to->sizes[at] = is_joined ? to->sizes[at] * size : size;
        to->strides[at] = stride;
    }
}

static gn_status places_write(struct places *places, gn_tensor *mask, const int64_t *strides,
                              gn_tensor **result)
{
    int64_t shape[] = {places->arguments.total, mask->ndim};
    gn_tensor *made;
    bool is_row = strides == NULL && mask->ndim != 1; /* of one dimension both are the same */
    GN_TRY(gn_tensor_create(GN_INT64, strides == NULL ? 2 : 1, shape, mask->device, &made));
    if (is_row) {
        places->arguments.dimensions = mask->ndim;
        memcpy(places->arguments.sizes, mask->sizes, sizeof *mask->sizes * (size_t)mask->ndim);
    } else {
        places_stride(places, mask, strides != NULL ? strides : mask->strides, 1);
    }
    places->arguments.out = (int64_t *)(void *)gni_tensor_data(made);
    if (made->count > 0) {
        gn_status status = step_launch(places, is_row ? STEP_COORDINATES : STEP_PLACES, 8);
        if (status != GN_OK) {
            gn_tensor_release(made);
            return status;
        }
    }
    *result = made;
    return GN_OK;
}

gn_status gni_cuda_mask_places(gn_tensor *mask, const int64_t *strides, gn_tensor **result)
{
    struct places places;
    GN_TRY(places_init(&places, mask));
    gn_status status = places_write(&places, mask, strides, result);
    places_deinit(&places);
    return status;
}

/* The elements of a tensor of the mask's shape, one way or the other. */
static gn_status elements_move(struct places *places, gn_tensor *mask, gn_tensor *tensor,
                               gn_tensor *other, enum step step)
{
    size_t unit = gni_dtype_size(tensor->dtype);
    if (places->arguments.total == 0)
        return GN_OK;
    GN_TRY(gni_storage_order(gni_tensor_storage(tensor), places->stream, step == STEP_SET));
    GN_TRY(gni_storage_order(gni_tensor_storage(other), places->stream, step == STEP_GET));
    places_stride(places, mask, tensor->strides, (int64_t)unit);
    places->arguments.source = gni_tensor_data(tensor);
    places->arguments.other = gni_tensor_data(other);
    return step_launch(places, step, unit);
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

static gn_status elements_get(gn_tensor *source, gn_tensor *mask, gn_tensor **result)
{
    struct places places;
    gn_tensor *made;
    GN_TRY(places_init(&places, mask));
    gn_status status =
        gn_tensor_create(source->dtype, 1, &places.arguments.total, source->device, &made);
    if (status == GN_OK) {
        status = elements_move(&places, mask, source, made, STEP_GET);
        if (status == GN_OK)
            *result = made;
        else
            gn_tensor_release(made);
    }
    places_deinit(&places);
    return status;
}

gn_status gni_cuda_mask_get(gn_tensor *source, gn_tensor *mask, gn_tensor **result)
{
    gn_tensor *whole;
    GN_TRY(mask_take(mask, &whole));
    gn_status status = elements_get(source, whole, result);
    gn_tensor_release(whole);
    return status;
}

static gn_status elements_set(gn_tensor *target, gn_tensor *mask, gn_tensor *values)
{
    struct places places;
    gn_status status;
    GN_TRY(places_init(&places, mask));
    if (values->count == places.arguments.total)
        status = elements_move(&places, mask, target, values, STEP_SET);
    else
        status = gni_error(GN_ERROR_SHAPE,
                           "a value of shape %s cannot be broadcast to the %s that are written",
                           gni_shape_text(values->ndim, values->sizes).text,
                           gni_shape_text(1, &places.arguments.total).text);
    places_deinit(&places);
    return status;
}

gn_status gni_cuda_mask_set(gn_tensor *target, gn_tensor *mask, gn_tensor *values)
{
    gn_tensor *whole;
    GN_TRY(mask_take(mask, &whole));
    gn_status status = elements_set(target, whole, values);
    gn_tensor_release(whole);
    return status;
}
