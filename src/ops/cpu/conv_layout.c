/*
 * conv_layout.c: boxes of images as convolutions on the CPU read them: see conv_layout.h.
 */
#include "ops/cpu/conv_layout.h"

#include "ops/cpu/tiles.h"
#include "tensor/tensor.h"

#include <string.h>

enum {
    DEPTH,
    HEIGHT,
    WIDTH,
    DIMENSIONS = GNI_CONV_DIMENSIONS,
    PLACES_LEAST = 96, /* of a box that is made smaller so that there are more */
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t ceil_divide(int64_t value, int64_t by)
{
    return value > 0 ? (value - 1) / by + 1 : -(-value / by);
}

static int64_t floor_divide(int64_t value, int64_t by)
{
    return -ceil_divide(-value, by);
}

static int64_t round_up(int64_t value, int64_t unit)
{
    return ceil_divide(value, unit) * unit;
}

/* ---- passes ---------------------------------------------------------------------------------- */

void gni_conv_pass_forward(const struct gni_convolution *convolution, struct gni_conv_pass *pass)
{
    *pass = (struct gni_conv_pass){0};
    for (int d = 0; d < DIMENSIONS; d++)
        pass->axes[d] = (struct gni_conv_axis){
            .in = convolution->image[d],
            .out = convolution->result[d],
            .begin = -convolution->padding[d],
            .step = convolution->stride[d],
            .span = (convolution->kernel[d] - 1) * convolution->dilation[d] + 1,
            .taps = convolution->kernel[d],
            .kernel_step = 1,
            .tap_step = convolution->dilation[d],
            .to_step = 1,
        };
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/*
 * The elements of a dimension that are `phase` behind a multiple of the stride, counted with the padding in front: tap k
 * reads result q + (phase - k * dilation) / stride for the element number q, of those k for which that is whole.
 */
static void axis_back(const struct gni_convolution *convolution, int d, int64_t phase,
                      struct gni_conv_axis *axis)
{
    int64_t stride = convolution->stride[d], dilation = convolution->dilation[d];
    int64_t padding = convolution->padding[d], kernel = convolution->kernel[d], k = 0;
    int64_t first = ceil_divide(padding - phase, stride);
    int64_t last = floor_divide(convolution->image[d] - 1 + padding - phase, stride);
    while (k < kernel && k < stride && (k * dilation - phase) % stride != 0)
        k++;
    bool has_taps = k < kernel && (k * dilation - phase) % stride == 0;
    int64_t step = stride / common_divisor(stride, dilation);
    int64_t taps = has_taps ? (kernel - 1 - k) / step + 1 : 0, apart = dilation * step / stride;
    int64_t low = has_taps ? (phase - (k + (taps - 1) * step) * dilation) / stride : 0;
    *axis = (struct gni_conv_axis){
        .in = convolution->result[d],
        .out = last - first + 1,
        .begin = first + low,
        .step = 1,
        .span = has_taps ? (taps - 1) * apart + 1 : 1,
        .taps = taps,
        .kernel = k,
        .kernel_step = step,
        .position = has_taps ? (taps - 1) * apart : 0,
        .tap_step = -apart,
        .to = first * stride + phase - padding,
        .to_step = stride,
    };
}

void gni_conv_pass_back(const struct gni_convolution *convolution, int64_t index,
                        struct gni_conv_pass *pass)
{
    *pass = (struct gni_conv_pass){0};
    for (int d = DIMENSIONS - 1; d >= 0; d--) {
        int64_t stride = convolution->stride[d];
        int64_t count = smaller(stride, convolution->image[d]); /* of phases that have elements */
        axis_back(convolution, d, (convolution->padding[d] + index % count) % stride,
                  &pass->axes[d]);
        index /= count;
    }
}

/* ---- boxes ----------------------------------------------------------------------------------- */

/* How much memory a dimension of a box takes. The padding behind a row may be that of the next in front. */
static void axis_plan(struct gni_conv_axis *axis, int64_t box)
{
    int64_t read = (box - 1) * axis->step + axis->span;
    axis->box = box;
    axis->phases = smaller(axis->step, axis->span);
    axis->length = ceil_divide(read, axis->step);
    if (axis->step > 1 || box != axis->out)
        return;
    int64_t before = larger(-axis->begin, 0), behind = larger(axis->begin + read - axis->in, 0);
    axis->length = larger(box, read - smaller(before, behind));
}

/* As many as fit, in parts of nearly one size. */
static int64_t even_part(int64_t count, int64_t most)
{
    return ceil_divide(count, ceil_divide(count, larger(smaller(most, count), 1)));
}

static int64_t row_offset(const struct gni_conv_pass *pass, int64_t image, int64_t depth,
                          int64_t height)
{
    const struct gni_conv_axis *axes = pass->axes;
    return ((image * axes[DEPTH].length + depth) * axes[HEIGHT].length + height) *
           axes[WIDTH].length;
}

/* Boxes of about `most` places. */
static void boxes_cut(struct gni_conv_pass *pass, int64_t images, int64_t most)
{
    int64_t inner = 1;
    bool is_whole = true;
    for (int d = WIDTH; d >= DEPTH; d--) {
        struct gni_conv_axis *axis = &pass->axes[d];
        axis_plan(axis, is_whole ? even_part(axis->out, most / inner) : 1);
        is_whole &= axis->box == axis->out;
        inner *= axis->length;
        pass->boxes[1 + d] = ceil_divide(axis->out, axis->box);
    }
    pass->images = is_whole ? even_part(images, most / inner) : 1;
    pass->boxes[0] = ceil_divide(images, pass->images);
    pass->box_count = 1;
    for (int i = 0; i <= DIMENSIONS; i++)
        pass->box_count *= pass->boxes[i];
}

static int64_t places_of(const struct gni_conv_pass *pass, int64_t images, const int64_t *count)
{
    return row_offset(pass, images - 1, count[DEPTH] - 1, count[HEIGHT] - 1) + count[WIDTH];
}

void gni_conv_pass_plan(struct gni_conv_pass *pass, int64_t images, int64_t most, int64_t least,
                        size_t lanes)
{
    boxes_cut(pass, images, most);
    while (pass->box_count < least && most >= 2 * PLACES_LEAST) {
        most /= 2;
        boxes_cut(pass, images, most);
    }
    const struct gni_conv_axis *axes = pass->axes;
    int64_t count[DIMENSIONS], reach[DIMENSIONS];
    pass->taps = 1;
    pass->plane = 1;
    for (int d = 0; d < DIMENSIONS; d++) {
        count[d] = axes[d].box;
        reach[d] = (axes[d].span - 1) / axes[d].step;
        pass->taps *= axes[d].taps;
        pass->plane *= axes[d].phases;
    }
    pass->places = round_up(places_of(pass, pass->images, count), (int64_t)lanes);
    int64_t whole = row_offset(pass, pass->images, 0, 0);
    int64_t read = pass->places + row_offset(pass, 0, reach[DEPTH], reach[HEIGHT]) + reach[WIDTH];
    pass->phase = round_up(larger(whole, read), (int64_t)lanes);
    pass->plane *= pass->phase;
}

void gni_conv_pass_taps(const struct gni_conv_pass *pass, const int64_t *kernel, int64_t *offsets,
                        int64_t *elements)
{
    const struct gni_conv_axis *axes = pass->axes;
    for (int64_t t = 0; t < pass->taps; t++) {
        int64_t rest = t, shift[DIMENSIONS], phase = 0, element = 0, tap[DIMENSIONS];
        for (int d = DIMENSIONS - 1; d >= 0; d--) {
            tap[d] = rest % axes[d].taps;
            rest /= axes[d].taps;
        }
        for (int d = 0; d < DIMENSIONS; d++) {
            int64_t position = axes[d].position + tap[d] * axes[d].tap_step;
            shift[d] = position / axes[d].step;
            phase = phase * axes[d].phases + position % axes[d].step;
            element = element * kernel[d] + axes[d].kernel + tap[d] * axes[d].kernel_step;
        }
        offsets[t] =
            phase * pass->phase + row_offset(pass, 0, shift[DEPTH], shift[HEIGHT]) + shift[WIDTH];
        elements[t] = element;
    }
}

struct gni_conv_box gni_conv_box_at(const struct gni_conv_pass *pass, int64_t images, int64_t index)
{
    struct gni_conv_box box;
    for (int d = DIMENSIONS - 1; d >= 0; d--) {
        const struct gni_conv_axis *axis = &pass->axes[d];
        box.at[d] = index % pass->boxes[1 + d] * axis->box;
        box.count[d] = smaller(axis->box, axis->out - box.at[d]);
        index /= pass->boxes[1 + d];
    }
    box.image = index * pass->images;
    box.images = smaller(pass->images, images - box.image);
    box.places = places_of(pass, box.images, box.count);
    return box;
}

/* ---- copies ---------------------------------------------------------------------------------- */

struct gni_conv_side gni_conv_side_of(const gn_tensor *tensor, gn_dtype computing)
{
    struct gni_conv_side side = {gni_tensor_data(tensor), tensor->dtype, computing, {0}};
    memcpy(side.strides, tensor->strides, sizeof side.strides);
    return side;
}

static char *element_of(const struct gni_conv_side *side, int64_t image, int64_t channel)
{
    return side->data + (image * side->strides[0] + channel * side->strides[1]) *
                            (int64_t)gni_dtype_size(side->dtype);
}

/* Rows of elements of a tensor, and where they are in memory. */
struct block {
    char *data;                  /* of the tensor */
    int64_t depth, height;       /* from a row to the next, in bytes */
    int64_t step;                /* from an element to the next, in elements */
    int64_t depths, rows, count; /* of rows; elements of a row */
};

/* Rows that lie one behind the other on both sides are one: `length` elements of memory are a row's. */
static void block_join(struct block *block, size_t size, int64_t length)
{
    if (block->count == length && block->height == block->count * block->step * (int64_t)size) {
        block->count *= block->rows;
        block->rows = 1;
    }
}

/* Elements of float32 that are apart. With a constant step compilers make vector code of it. */
static inline void apart_load(const char *from, int64_t step, int64_t count, char *to)
{
    const float *source = (const float *)(const void *)from;
    float *target = (float *)(void *)to;
    for (int64_t i = 0; i < count; i++)
        target[i] = source[i * step];
}

static inline void apart_store(const char *from, int64_t step, int64_t count, char *to)
{
    const float *source = (const float *)(const void *)from;
    float *target = (float *)(void *)to;
    for (int64_t i = 0; i < count; i++)
        target[i * step] = source[i];
}

/* Loads rows as what is computed with. `depth` and `height` are from a row to the next in memory, in bytes. */
static void block_load(const struct gni_conv_side *side, const struct block *block, char *to,
                       int64_t depth, int64_t height)
{
    size_t wide = gni_dtype_size(side->computing);
    bool is_same = side->dtype == side->computing, is_plain = is_same && block->step == 1;
    bool is_apart = is_same && wide == sizeof(float);
    for (int64_t d = 0; d < block->depths; d++) {
        const char *from = block->data + d * block->depth;
        char *target = to + d * depth;
        for (int64_t h = 0; h < block->rows; h++, from += block->height, target += height) {
            if (is_plain)
                memcpy(target, from, (size_t)block->count * wide);
            else if (is_apart && block->step == 2)
                apart_load(from, 2, block->count, target);
            else if (is_apart)
                apart_load(from, block->step, block->count, target);
            else {
                const void *run = gni_run_load(from, block->step, (size_t)block->count, side->dtype,
                                               side->computing, target);
                if (run != target)
                    memcpy(target, run, (size_t)block->count * wide);
            }
        }
    }
}

/* Stores rows. */
static void block_store(const struct gni_conv_side *side, const struct block *block,
                        const char *from, int64_t depth, int64_t height)
{
    size_t wide = gni_dtype_size(side->computing);
    bool is_same = side->dtype == side->computing, is_plain = is_same && block->step == 1;
    bool is_apart = is_same && wide == sizeof(float);
    for (int64_t d = 0; d < block->depths; d++) {
        char *to = block->data + d * block->depth;
        const char *source = from + d * depth;
        for (int64_t h = 0; h < block->rows; h++, to += block->height, source += height) {
            if (is_plain)
                memcpy(to, source, (size_t)block->count * wide);
            else if (is_apart && block->step == 2)
                apart_store(source, 2, block->count, to);
            else if (is_apart)
                apart_store(source, block->step, block->count, to);
            else
                gni_run_store(source, (size_t)block->count, side->computing, side->dtype, to,
                              block->step);
        }
    }
}

/* The part of a dimension of a phase that is in the image: `first` counts in the phase. */
struct stretch {
    int64_t first, count;
    int64_t element; /* of the image, where it begins */
};

static struct stretch stretch_of(const struct gni_conv_axis *axis, int64_t at, int64_t count,
                                 int64_t phase)
{
    int64_t read = (count - 1) * axis->step + axis->span;
    int64_t origin = axis->begin + at * axis->step + phase;
    int64_t first = larger(ceil_divide(-origin, axis->step), 0);
    int64_t end =
        smaller(ceil_divide(read - phase, axis->step), ceil_divide(axis->in - origin, axis->step));
    return (struct stretch){first, larger(end - first, 0), origin + first * axis->step};
}

void gni_conv_pack(const struct gni_conv_pass *pass, const struct gni_conv_side *side,
                   const struct gni_conv_box *box, int64_t channel, int64_t channels, void *to)
{
    const struct gni_conv_axis *axes = pass->axes;
    const int64_t *strides = side->strides + 2;
    int64_t wide = (int64_t)gni_dtype_size(side->computing), phases = pass->plane / pass->phase;
    int64_t size = (int64_t)gni_dtype_size(side->dtype);
    memset(to, 0, (size_t)(channels * pass->plane * wide));
    for (int64_t phase = 0; phase < phases; phase++) {
        struct stretch parts[DIMENSIONS];
        int64_t rest = phase, element = 0;
        for (int d = DIMENSIONS - 1; d >= 0; d--) {
            parts[d] = stretch_of(&axes[d], box->at[d], box->count[d], rest % axes[d].phases);
            rest /= axes[d].phases;
            element += parts[d].element * strides[d];
        }
        if (parts[DEPTH].count == 0 || parts[HEIGHT].count == 0 || parts[WIDTH].count == 0)
            continue;
        struct block block = {.depth = strides[DEPTH] * axes[DEPTH].step * size,
                              .height = strides[HEIGHT] * axes[HEIGHT].step * size,
                              .step = strides[WIDTH] * axes[WIDTH].step,
                              .depths = parts[DEPTH].count,
                              .rows = parts[HEIGHT].count,
                              .count = parts[WIDTH].count};
        block_join(&block, (size_t)size, axes[WIDTH].length);
        int64_t place = phase * pass->phase + parts[WIDTH].first +
                        row_offset(pass, 0, parts[DEPTH].first, parts[HEIGHT].first);
        for (int64_t c = 0; c < channels; c++)
            for (int64_t i = 0; i < box->images; i++) {
                block.data = element_of(side, box->image + i, channel + c) + element * size;
                char *target =
                    (char *)to + (c * pass->plane + place + row_offset(pass, i, 0, 0)) * wide;
                block_load(side, &block, target, row_offset(pass, 0, 1, 0) * wide,
                           row_offset(pass, 0, 0, 1) * wide);
            }
    }
}

/* The places of a box in a tensor, but for where they begin. */
static struct block places_block(const struct gni_conv_pass *pass, const struct gni_conv_side *side,
                                 const struct gni_conv_box *box, int64_t *first)
{
    const struct gni_conv_axis *axes = pass->axes;
    const int64_t *strides = side->strides + 2;
    int64_t size = (int64_t)gni_dtype_size(side->dtype);
    struct block block = {.depth = strides[DEPTH] * axes[DEPTH].to_step * size,
                          .height = strides[HEIGHT] * axes[HEIGHT].to_step * size,
                          .step = strides[WIDTH] * axes[WIDTH].to_step,
                          .depths = box->count[DEPTH],
                          .rows = box->count[HEIGHT],
                          .count = box->count[WIDTH]};
    *first = 0;
    for (int d = 0; d < DIMENSIONS; d++)
        *first += (axes[d].to + box->at[d] * axes[d].to_step) * strides[d] * size;
    block_join(&block, (size_t)size, axes[WIDTH].length);
    return block;
}

void gni_conv_pack_places(const struct gni_conv_pass *pass, const struct gni_conv_side *side,
                          const struct gni_conv_box *box, int64_t channel, int64_t channels,
                          void *to, int64_t stride)
{
    int64_t wide = (int64_t)gni_dtype_size(side->computing), first;
    struct block block = places_block(pass, side, box, &first);
    memset(to, 0, (size_t)(channels * stride * wide));
    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = 0; i < box->images; i++) {
            block.data = element_of(side, box->image + i, channel + c) + first;
            block_load(side, &block, (char *)to + (c * stride + row_offset(pass, i, 0, 0)) * wide,
                       row_offset(pass, 0, 1, 0) * wide, row_offset(pass, 0, 0, 1) * wide);
        }
}

void gni_conv_unpack(const struct gni_conv_pass *pass, const struct gni_conv_side *side,
                     const struct gni_conv_box *box, int64_t channel, int64_t channels,
                     const void *from, int64_t stride)
{
    int64_t wide = (int64_t)gni_dtype_size(side->computing), first;
    struct block block = places_block(pass, side, box, &first);
    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = 0; i < box->images; i++) {
            block.data = element_of(side, box->image + i, channel + c) + first;
            block_store(side, &block,
                        (const char *)from + (c * stride + row_offset(pass, i, 0, 0)) * wide,
                        row_offset(pass, 0, 1, 0) * wide, row_offset(pass, 0, 0, 1) * wide);
        }
}
