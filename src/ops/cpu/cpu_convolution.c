/*
 * cpu_convolution.c: convolutions and transposed ones on the CPU: sums of shifted runs, weighted.
 *
 * An item of work is a box of places, of a group, for some of its channels ("chunk"). It copies a few channels of the box
 * at a time (conv_layout.h), which then stay in the cache while all of the chunk's sums take them up.
 */
#include "ops/cpu/cpu_convolution.h"

#include "base/checked.h"
#include "base/parallel.h"
#include "base/thread.h"
#include "ops/cpu/cpu_product.h"
#include "ops/cpu/tiles.h"

#include <string.h>

enum {
    ALIGNMENT = 64,
    IMAGE_BYTES = 384 << 10, /* of a box's channels */
    SUM_BYTES = 384 << 10,   /* and of its sums: both fit a cache of 1 MiB */
    DEEP = 512,              /* channels times taps that are summed at a time */
    CHUNK = 128,             /* channels of the result */
    PLACES_MOST = 4096,
    ITEMS_LEAST = 16,
};

/* ---- slots ----------------------------------------------------------------------------------- */

gn_status gni_conv_slots_init(struct gni_conv_slots *slots, gn_device *device, size_t nbytes,
                              size_t items)
{
    int threads = gni_parallel_get_threads();
    size_t all;
    *slots = (struct gni_conv_slots){.count = items < (size_t)threads ? (int)items : threads};
    if (!gni_size_align_up(nbytes, ALIGNMENT, &slots->nbytes) ||
        !gni_size_multiply(slots->nbytes, (size_t)slots->count, &all))
        return gni_error_host_memory(nbytes);
    return gni_storage_create(device, all, NULL, &slots->storage);
}

void gni_conv_slots_deinit(struct gni_conv_slots *slots)
{
    gni_storage_release(slots->storage);
}

/* If somebody has raised the number of threads meanwhile, the last ones wait. */
int gni_conv_slot_take(struct gni_conv_slots *slots)
{
    for (int i = 0;; i = (i + 1) % slots->count) {
        if (!atomic_load_explicit(&slots->is_taken[i], memory_order_relaxed) &&
            !atomic_exchange_explicit(&slots->is_taken[i], true, memory_order_acquire))
            return i;
        gni_thread_pause();
    }
}

void gni_conv_slot_give(struct gni_conv_slots *slots, int number)
{
    atomic_store_explicit(&slots->is_taken[number], false, memory_order_release);
}

/* ---- a pass ---------------------------------------------------------------------------------- */

struct job {
    const struct gni_conv_tile *tile;
    struct gni_conv_pass pass;
    struct gni_conv_side in, out;
    gn_dtype computing;
    size_t size; /* of an element that is computed */
    int64_t images, groups;
    int64_t inner, outer;                       /* channels of a group that are read, and made */
    int64_t deep, chunk, chunks;                /* of these: at a time; chunks of a group */
    const char *weights;                        /* as the tensor has them */
    int64_t inner_step, outer_step, group_step; /* through these, in elements */
    int64_t *offsets, *elements;                /* of each tap: gni_conv_pass_taps() */
    char *panels;                               /* [group][outer / rows][inner][tap][row] */
    char *start;                                /* [group][outer]: the bias */
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

/* What is summed up at each place for one channel. */
static int64_t depth_of(const struct job *job)
{
    return job->inner * job->pass.taps;
}

#define PACK_ROWS(type)                                                                       \
    for (int64_t i = 0; i < rows; i++) {                                                      \
        const type *from = (const type *)(const void *)weights + (row + i) * job->outer_step; \
        type *to = (type *)(void *)panel + i;                                                 \
        for (int64_t c = 0; c < job->inner; c++, from += job->inner_step)                     \
            for (int64_t t = 0; t < job->pass.taps; t++, to += rows)                          \
                *to = from[job->elements[t]];                                                 \
    }

/* Weights of a tile's rows side by side. */
static void panel_pack(const struct job *job, int64_t group, int64_t row)
{
    int64_t rows = smaller((int64_t)job->tile->rows, job->outer - row);
    char *panel = job->panels + (group * job->outer + row) * depth_of(job) * (int64_t)job->size;
    const char *weights = job->weights + group * job->group_step * (int64_t)job->size;
    if (job->computing == GN_FLOAT64)
        PACK_ROWS(double)
    else
        PACK_ROWS(float)
}

static void panels_part(void *context, size_t begin, size_t end)
{
    const struct job *job = context;
    int64_t rows = (int64_t)job->tile->rows, panels = (job->outer - 1) / rows + 1;
    for (size_t i = begin; i < end; i++)
        panel_pack(job, (int64_t)i / panels, (int64_t)i % panels * rows);
}

/* Adds what some channels give to the sums of a chunk. */
static void chunk_multiply(const struct job *job, int64_t group, int64_t row, int64_t rows,
                           int64_t channel, int64_t channels, int64_t places, const char *image,
                           char *sums)
{
    int64_t size = (int64_t)job->size, lanes = (int64_t)job->tile->lanes;
    int64_t vectors = (places - 1) / lanes + 1;
    struct gni_conv_run run = {
        .channels = (size_t)channels,
        .taps = (size_t)job->pass.taps,
        .offsets = job->offsets,
        .plane = (size_t)job->pass.plane,
        .stride = (size_t)job->pass.places,
    };
    for (int64_t at = 0, some; at < vectors; at += some) {
        int64_t tiles = (vectors - at - 1) / GNI_CONV_VECTORS_MOST + 1;
        some = (vectors - at - 1) / tiles + 1;
        run.x = image + at * lanes * size;
        for (int64_t i = 0; i < rows; i += (int64_t)job->tile->rows) {
            int64_t few = smaller((int64_t)job->tile->rows, rows - i);
            int64_t first = group * job->outer + row + i;
            run.weights =
                job->panels + (first * depth_of(job) + channel * job->pass.taps * few) * size;
            run.start = channel == 0 ? job->start + first * size : NULL;
            run.sums = sums + (i * job->pass.places + at * lanes) * size;
            job->tile->multiply(&run, (size_t)few, (size_t)some);
        }
    }
}

static void item_run(struct job *job, int64_t index, char *memory)
{
    const struct gni_conv_pass *pass = &job->pass;
    int64_t group = index / job->chunks % job->groups;
    int64_t row = index % job->chunks * job->chunk, rows = smaller(job->chunk, job->outer - row);
    struct gni_conv_box box = gni_conv_box_at(pass, job->images, index / job->chunks / job->groups);
    char *image = memory, *sums = memory + job->deep * pass->plane * (int64_t)job->size;
    int64_t channel = 0;
    do {
        int64_t channels = smaller(job->deep, job->inner - channel);
        if (pass->taps > 0)
            gni_conv_pack(pass, &job->in, &box, group * job->inner + channel, channels, image);
        chunk_multiply(job, group, row, rows, channel, channels, box.places, image, sums);
        channel += channels;
    } while (channel < job->inner);
    gni_conv_unpack(pass, &job->out, &box, group * job->outer + row, rows, sums, pass->places);
}

static void items_part(void *context, size_t begin, size_t end)
{
    struct job *job = context;
    int slot = gni_conv_slot_take(&job->slots);
    for (size_t i = begin; i < end; i++)
        item_run(job, (int64_t)i, gni_conv_slot_data(&job->slots, slot));
    gni_conv_slot_give(&job->slots, slot);
}

/* How many channels and places are at work at a time. */
static void job_plan(struct job *job)
{
    struct gni_conv_pass *pass = &job->pass;
    int64_t taps = 1, phases = 1, size = (int64_t)job->size;
    for (int d = 0; d < GNI_CONV_DIMENSIONS; d++) {
        taps *= pass->axes[d].taps;
        phases *= smaller(pass->axes[d].step, pass->axes[d].span);
    }
    int64_t parts = (job->inner - 1) / larger(DEEP / larger(taps, 1), 1) + 1;
    job->deep = (job->inner - 1) / parts + 1;
    int64_t rows = (int64_t)job->tile->rows; /* a chunk begins with a panel */
    job->chunks = (job->outer - 1) / CHUNK + 1;
    job->chunk = ((job->outer - 1) / job->chunks / rows + 1) * rows;
    job->chunks = (job->outer - 1) / job->chunk + 1;
    job->chunk = smaller(job->chunk, job->outer);
    int64_t most =
        smaller(IMAGE_BYTES / (job->deep * phases * size), SUM_BYTES / (job->chunk * size));
    gni_conv_pass_plan(pass, job->images, smaller(most, PLACES_MOST),
                       (ITEMS_LEAST - 1) / (job->groups * job->chunks) + 1, job->tile->lanes);
}

/* The bytes that one thread works in; false if there are too many. */
static bool slot_bytes(const struct job *job, size_t *nbytes)
{
    size_t image, sums;
    return gni_size_multiply((size_t)job->deep, (size_t)job->pass.plane, &image) &&
           gni_size_multiply((size_t)job->chunk, (size_t)job->pass.places, &sums) &&
           gni_size_add(image, sums, &sums) && gni_size_multiply(sums, job->size, nbytes);
}

/* Elements of all panels, of the bias, and of two tables of taps, as bytes. */
static gn_status shared_create(struct job *job, gn_device *device, struct gni_storage **storage)
{
    size_t panels, nbytes, rows = (size_t)(job->groups * job->outer);
    size_t taps = (size_t)larger(job->pass.taps, 1) * sizeof(int64_t);
    if (!gni_size_multiply(rows, (size_t)depth_of(job) + 1, &panels) ||
        !gni_size_multiply(panels, job->size, &panels) ||
        !gni_size_align_up(panels, ALIGNMENT, &panels) || !gni_size_add(panels, 2 * taps, &nbytes))
        return gni_error_host_memory(SIZE_MAX);
    GN_TRY(gni_storage_create(device, nbytes, NULL, storage));
    char *data = (*storage)->data;
    job->offsets = (int64_t *)(void *)data;
    job->elements = (int64_t *)(void *)(data + taps);
    job->start = data + 2 * taps;
    job->panels = job->start + rows * job->size;
    return GN_OK;
}

static void start_fill(const struct job *job, const gn_tensor *bias)
{
    size_t rows = (size_t)(job->groups * job->outer);
    if (bias == NULL) {
        memset(job->start, 0, rows * job->size);
        return;
    }
    const void *run = gni_run_load(gni_tensor_data(bias), bias->strides[0], rows, bias->dtype,
                                   job->computing, job->start);
    if (run != job->start)
        memcpy(job->start, run, rows * job->size);
}

static gn_status job_run(struct job *job, const int64_t *kernel, const gn_tensor *bias,
                         gn_device *device)
{
    struct gni_storage *shared;
    size_t nbytes;
    job_plan(job);
    size_t items = (size_t)(job->pass.box_count * job->groups * job->chunks);
    if (!slot_bytes(job, &nbytes))
        return gni_error_host_memory(SIZE_MAX);
    GN_TRY(shared_create(job, device, &shared));
    gn_status status = gni_conv_slots_init(&job->slots, device, nbytes, items);
    if (status == GN_OK) {
        size_t panels = (size_t)(((job->outer - 1) / (int64_t)job->tile->rows + 1) * job->groups);
        int64_t panel_work = depth_of(job) * (int64_t)job->tile->rows;
        gni_conv_pass_taps(&job->pass, kernel, job->offsets, job->elements);
        start_fill(job, bias);
        if (depth_of(job) > 0)
            gni_parallel_for(panels, gni_product_grain(panel_work), panels_part, job);
        gni_parallel_for(items,
                         gni_product_grain((depth_of(job) + 8) * job->chunk * job->pass.places),
                         items_part, job);
        gni_conv_slots_deinit(&job->slots);
    }
    gni_storage_release(shared);
    return status;
}

/* ---- kinds ------------------------------------------------------------------------------------- */

/* What all passes have in common. */
static struct job job_of(const struct gni_convolution *convolution, const gn_tensor *from,
                         const gn_tensor *weight, const gn_tensor *to)
{
    gn_dtype computing = weight->dtype;
    bool is_back = convolution->kind == GNI_CONV_IMAGE;
    int64_t channels = convolution->channels / convolution->groups;
    int64_t results = convolution->results / convolution->groups, taps = 1;
    for (int d = 0; d < GNI_CONV_DIMENSIONS; d++)
        taps *= convolution->kernel[d];
    return (struct job){
        .tile = gni_conv_tile_find(computing),
        .in = gni_conv_side_of(from, computing),
        .out = gni_conv_side_of(to, computing),
        .computing = computing,
        .size = gni_dtype_size(computing),
        .images = convolution->images,
        .groups = convolution->groups,
        .inner = is_back ? results : channels,
        .outer = is_back ? channels : results,
        .weights = gni_tensor_data(weight),
        .inner_step = is_back ? channels * taps : taps,
        .outer_step = is_back ? taps : channels * taps,
        .group_step = results * channels * taps,
    };
}

gn_status gni_cpu_convolve(const struct gni_convolution *convolution, gn_tensor *first,
                           gn_tensor *second, gn_tensor *bias, gn_tensor *result)
{
    if (convolution->kind == GNI_CONV_WEIGHT)
        return gni_cpu_convolve_weight(convolution, first, second, result);
    struct job job = job_of(convolution, first, second, result);
    if (convolution->kind == GNI_CONV_RESULT) {
        gni_conv_pass_forward(convolution, &job.pass);
        return job_run(&job, convolution->kernel, bias, result->device);
    }
    int64_t passes = 1;
    for (int d = 0; d < GNI_CONV_DIMENSIONS; d++)
        passes *= smaller(convolution->stride[d], convolution->image[d]);
    for (int64_t i = 0; i < passes; i++) {
        gni_conv_pass_back(convolution, i, &job.pass);
        GN_TRY(job_run(&job, convolution->kernel, bias, result->device));
    }
    return GN_OK;
}
