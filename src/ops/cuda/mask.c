/*
 * mask.c: where a mask on a GPU is true: the kernels of places.cu.
 */
#include "jit/kernel.h"
#include "ops/cuda/generate.h"
#include "ops/cuda/index.h"
#include "ops/cuda/texts.h"
#include "ops/move.h"

#include <stdio.h>
#include <string.h>

enum {
    GRID_MOST = 1 << 30, /* blocks */
    PART = 4096,         /* bytes of a mask that a block looks at: PART of places.cu */
    SCAN_THREADS = 1024, /* of the block that adds up counts */
    TEXT_NAME_MOST = 64,
};

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
