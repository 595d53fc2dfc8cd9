/*
 * cpu_convolution_weight.c: the gradient of a convolution's weights on the CPU: sums over places.
 *
 * An item of work has some channels of the image and some of the result, of a group, in some of the boxes ("slice"). Each
 * slice sums for itself; slices are added in their order.
 */
#include "ops/cpu/cpu_convolution.h"

#include "base/checked.h"
#include "base/parallel.h"
#include "ops/cpu/cpu_product.h"

#include <string.h>

enum {
    CHANNELS = 32, /* of the image, in an item; half of them where it has phases */
    RESULTS = 64,
    CHANNELS_PLAIN = 96, /* the same where a kernel has one element: what is copied is used less */
    RESULTS_PLAIN = 128,
    IMAGE_BYTES = 288 << 10, /* of a box */
    GIVEN_BYTES = 384 << 10,
    PLACES_MOST = 4096,
    ITEMS_LEAST = 16,
    SUM_PART = 1 << 14, /* elements of slices that are added at a time */
};

struct job {
    const struct gni_conv_tile *tile;
    struct gni_conv_pass pass;
    struct gni_conv_side image, given;
    gn_dtype computing;
    size_t size;
    int64_t images, groups;
    int64_t channels, results;           /* of a group */
    int64_t channel_part, result_part;   /* of an item */
    int64_t channel_parts, result_parts; /* how many there are */
    int64_t slices, slice_boxes;
    int64_t count; /* weights */
    const int64_t *offsets;
    char *first, *others; /* the sums of the first slice, and of the others */
    struct gni_conv_slots slots;
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Adds what a box gives: [results][channels][taps] sums, a row of which has `stride` elements. */
static void box_dot(const struct job *job, int64_t channels, int64_t results, int64_t places,
                    const char *image, const char *given, char *sums, int64_t stride)
{
    const struct gni_conv_tile *tile = job->tile;
    int64_t size = (int64_t)job->size, taps = job->pass.taps, columns = channels * taps;
    size_t vectors = (size_t)((places - 1) / (int64_t)tile->lanes + 1);
    for (int64_t i = 0; i < results; i += (int64_t)tile->dot_rows) {
        int64_t rows = smaller((int64_t)tile->dot_rows, results - i), tap = 0;
        const char *channel = image;
        for (int64_t j = 0, some; j < columns; j += some) {
            int64_t tiles = (columns - j - 1) / (int64_t)tile->dot_columns + 1;
            const void *right[GNI_CONV_DOT_MOST];
            some = (columns - j - 1) / tiles + 1;
            for (int64_t k = 0; k < some; k++) {
                right[k] = channel + job->offsets[tap] * size;
                if (++tap == taps) {
                    tap = 0;
                    channel += job->pass.plane * size;
                }
            }
            tile->dot((size_t)rows, (size_t)some, vectors, given + i * job->pass.places * size,
                      (size_t)job->pass.places, right, sums + (i * stride + j) * size,
                      (size_t)stride);
        }
    }
}

static void item_run(struct job *job, int64_t index, char *memory)
{
    const struct gni_conv_pass *pass = &job->pass;
    int64_t size = (int64_t)job->size, stride = job->channels * pass->taps;
    int64_t channel = index % job->channel_parts * job->channel_part;
    index /= job->channel_parts;
    int64_t result = index % job->result_parts * job->result_part;
    index /= job->result_parts;
    int64_t group = index % job->groups, slice = index / job->groups;
    int64_t channels = smaller(job->channel_part, job->channels - channel);
    int64_t results = smaller(job->result_part, job->results - result);
    char *given = memory + job->channel_part * pass->plane * size;
    char *sums = slice == 0 ? job->first : job->others + (slice - 1) * job->count * size;
    sums += ((group * job->results + result) * stride + channel * pass->taps) * size;
    for (int64_t i = 0; i < results; i++)
        memset(sums + i * stride * size, 0, (size_t)(channels * pass->taps * size));
    int64_t end = smaller((slice + 1) * job->slice_boxes, pass->box_count);
    for (int64_t i = slice * job->slice_boxes; i < end; i++) {
        struct gni_conv_box box = gni_conv_box_at(pass, job->images, i);
        gni_conv_pack(pass, &job->image, &box, group * job->channels + channel, channels, memory);
        gni_conv_pack_places(pass, &job->given, &box, group * job->results + result, results, given,
                             pass->places);
        box_dot(job, channels, results, box.places, memory, given, sums, stride);
    }
}

static void items_part(void *context, size_t begin, size_t end)
{
    struct job *job = context;
    int slot = gni_conv_slot_take(&job->slots);
    for (size_t i = begin; i < end; i++)
        item_run(job, (int64_t)i, gni_conv_slot_data(&job->slots, slot));
    gni_conv_slot_give(&job->slots, slot);
}

#define SUM_SLICES(type)                                                                 \
    for (int64_t slice = 0; slice < job->slices - 1; slice++) {                          \
        const type *from = (const type *)(const void *)job->others + slice * job->count; \
        for (size_t i = begin; i < end; i++)                                             \
            ((type *)(void *)job->first)[i] += from[i];                                  \
    }

static void slices_part(void *context, size_t begin, size_t end)
{
    const struct job *job = context;
    if (job->computing == GN_FLOAT64)
        SUM_SLICES(double)
    else
        SUM_SLICES(float)
}

static void job_plan(struct job *job)
{
    struct gni_conv_pass *pass = &job->pass;
    int64_t phases = 1, taps = 1, size = (int64_t)job->size;
    for (int d = 0; d < GNI_CONV_DIMENSIONS; d++) {
        phases *= smaller(pass->axes[d].step, pass->axes[d].span);
        taps *= pass->axes[d].taps;
    }
    bool is_plain = taps == 1;
    int64_t few = phases > 1 ? CHANNELS / 2 : is_plain ? CHANNELS_PLAIN : CHANNELS;
    job->channel_parts = (job->channels - 1) / few + 1;
    job->channel_part = (job->channels - 1) / job->channel_parts + 1;
    job->result_parts = (job->results - 1) / (is_plain ? RESULTS_PLAIN : RESULTS) + 1;
    job->result_part = (job->results - 1) / job->result_parts + 1;
    int64_t items = job->channel_parts * job->result_parts * job->groups;
    int64_t most = smaller(IMAGE_BYTES / (job->channel_part * phases * size),
                           GIVEN_BYTES / (job->result_part * size));
    int64_t slices = (ITEMS_LEAST - 1) / items + 1;
    gni_conv_pass_plan(pass, job->images, smaller(most, PLACES_MOST), slices, job->tile->lanes);
    job->slice_boxes = (pass->box_count - 1) / slices + 1;
    job->slices = (pass->box_count - 1) / job->slice_boxes + 1;
}

/* Memory for the offsets, and for the sums of all slices but the first. */
static gn_status shared_create(struct job *job, gn_device *device, struct gni_storage **storage)
{
    size_t sums, offsets = (size_t)job->pass.taps * 2 * sizeof(int64_t);
    if (!gni_size_multiply((size_t)job->count, (size_t)(job->slices - 1), &sums) ||
        !gni_size_multiply(sums, job->size, &sums) || !gni_size_add(sums, offsets, &sums))
        return gni_error_host_memory(SIZE_MAX);
    GN_TRY(gni_storage_create(device, sums, NULL, storage));
    job->offsets = (int64_t *)(void *)(*storage)->data;
    job->others = (*storage)->data + offsets;
    return GN_OK;
}

static gn_status job_run(struct job *job, const int64_t *kernel, gn_device *device)
{
    struct gni_storage *shared;
    job_plan(job);
    int64_t *offsets;
    size_t items = (size_t)(job->channel_parts * job->result_parts * job->groups * job->slices);
    size_t image, given, nbytes;
    if (!gni_size_multiply((size_t)job->channel_part, (size_t)job->pass.plane, &image) ||
        !gni_size_multiply((size_t)job->result_part, (size_t)job->pass.places, &given) ||
        !gni_size_add(image, given, &nbytes) || !gni_size_multiply(nbytes, job->size, &nbytes))
        return gni_error_host_memory(SIZE_MAX);
    GN_TRY(shared_create(job, device, &shared));
    gn_status status = gni_conv_slots_init(&job->slots, device, nbytes, items);
    if (status == GN_OK) {
        int64_t work = job->channel_part * job->pass.taps * job->result_part *
                       larger(job->slice_boxes, 1) * job->pass.places;
        offsets = (int64_t *)(void *)shared->data;
        gni_conv_pass_taps(&job->pass, kernel, offsets, offsets + job->pass.taps);
        gni_parallel_for(items, gni_product_grain(work), items_part, job);
        if (job->slices > 1)
            gni_parallel_for((size_t)job->count, SUM_PART, slices_part, job);
        gni_conv_slots_deinit(&job->slots);
    }
    gni_storage_release(shared);
    return status;
}

gn_status gni_cpu_convolve_weight(const struct gni_convolution *convolution, gn_tensor *image,
                                  gn_tensor *given, gn_tensor *weight)
{
    gn_dtype computing = weight->dtype;
    struct job job = {
        .tile = gni_conv_tile_find(computing),
        .image = gni_conv_side_of(image, computing),
        .given = gni_conv_side_of(given, computing),
        .computing = computing,
        .size = gni_dtype_size(computing),
        .images = convolution->images,
        .groups = convolution->groups,
        .channels = convolution->channels / convolution->groups,
        .results = convolution->results / convolution->groups,
        .count = weight->count,
        .first = gni_tensor_data(weight),
    };
    gni_conv_pass_forward(convolution, &job.pass);
    return job_run(&job, convolution->kernel, image->device);
}
