#include "ops/cuda/specialization.h"

#include "ops/cuda/fixed.h"

#include <string.h>

static enum gni_access access_of(const struct gni_layout *layout, const int64_t *strides)
{
    bool is_one = true, is_contiguous = true;
    for (int d = 0; d < layout->ndim; d++)
        is_one &= strides[d] == 0;
    if (is_one)
        return layout->ndim == 0 ? GNI_ACCESS_CONTIGUOUS : GNI_ACCESS_ONE;
    int64_t expected = 1;
    for (int d = layout->ndim - 1; d >= 0; d--) {
        is_contiguous &= strides[d] == expected;
        expected *= layout->sizes[d];
    }
    return is_contiguous ? GNI_ACCESS_CONTIGUOUS : GNI_ACCESS_STRIDED;
}

/* Whether an offset may need more than 32 bits. */
static bool is_far(const struct gni_layout *layout, const int64_t *strides)
{
    int64_t low, high;
    gni_strides_extent(layout->ndim, layout->sizes, strides, &low, &high);
    return low <= INT32_MIN / 2 || high >= INT32_MAX / 2;
}

void gni_specialization_make(struct gni_specialization *specialization,
                             const struct gni_program *program)
{
    specialization->program = program;
    specialization->pack = 1;
    specialization->tile = -1;
    specialization->steps = 0;
    specialization->threads = GNI_CUDA_BLOCK;
    specialization->blocks = 1;
    specialization->lanes = 32;
    specialization->is_ragged = false;
    specialization->kind = GNI_REDUCE_NONE;
    specialization->reduction = GN_REDUCE_SUM;
    specialization->value = -1;
    specialization->result = GN_BOOL;
    specialization->is_log = false;
    specialization->is_strided = false;
    specialization->is_wide = program->count >= INT32_MAX / 2;
    if (gni_program_join(program, &specialization->layout)) {
        for (int i = 0; i < program->input_count; i++)
            specialization->inputs[i] =
                program->inputs[i].storage == NULL ? GNI_ACCESS_NUMBER : GNI_ACCESS_CONTIGUOUS;
        for (int i = 0; i < program->output_count; i++)
            specialization->outputs[i] = GNI_ACCESS_CONTIGUOUS;
        return;
    }
    for (int i = 0; i < program->input_count; i++) {
        specialization->inputs[i] =
            program->inputs[i].storage == NULL
                ? GNI_ACCESS_NUMBER
                : access_of(&specialization->layout, specialization->layout.strides[i]);
        if (specialization->inputs[i] != GNI_ACCESS_STRIDED)
            continue;
        specialization->is_strided = true;
        specialization->is_wide |=
            is_far(&specialization->layout, specialization->layout.strides[i]);
    }
    for (int i = 0; i < program->output_count; i++) {
        specialization->outputs[i] =
            access_of(&specialization->layout, specialization->layout.output_strides[i]);
        if (specialization->outputs[i] == GNI_ACCESS_ONE) /* one element, in strides of any kind */
            specialization->outputs[i] = GNI_ACCESS_CONTIGUOUS;
        if (specialization->outputs[i] != GNI_ACCESS_STRIDED)
            continue;
        specialization->is_strided = true;
        specialization->is_wide |=
            is_far(&specialization->layout, specialization->layout.output_strides[i]);
    }
}

/* How an operand is read or written by packs; GNI_ACCESS_STRIDED: not at all. A pack is a power of two. */
static enum gni_access pack_access(const struct gni_layout *layout, enum gni_access access,
                                   const int64_t *strides, const void *data, size_t pack_bytes,
                                   int64_t pack)
{
    const int last = layout->ndim - 1;
    if (access == GNI_ACCESS_NUMBER || access == GNI_ACCESS_ONE)
        return access;
    bool is_aligned = ((uintptr_t)data & (pack_bytes - 1)) == 0;
    if (access == GNI_ACCESS_CONTIGUOUS)
        return is_aligned ? access : GNI_ACCESS_STRIDED;
    if ((layout->sizes[last] & (pack - 1)) != 0)
        return GNI_ACCESS_STRIDED;
    if (strides[last] == 0)
        return GNI_ACCESS_STRIDED_ONE;
    is_aligned &= strides[last] == 1;
    for (int d = 0; d < last; d++)
        is_aligned &= (strides[d] & (pack - 1)) == 0;
    return is_aligned ? GNI_ACCESS_STRIDED_PACK : GNI_ACCESS_STRIDED;
}

/* Whether all operands can be packed so; their accesses are changed if `is_final`. */
static bool pack_try(struct gni_specialization *specialization, int pack, bool is_final)
{
    const struct gni_program *program = specialization->program;
    const struct gni_layout *layout = &specialization->layout;
    for (int i = 0; i < program->input_count; i++) {
        const struct gni_input *input = &program->inputs[i];
        enum gni_access access =
            pack_access(layout, specialization->inputs[i], layout->strides[i], input->data,
                        gni_dtype_size(input->held) * (size_t)pack, pack);
        if (access == GNI_ACCESS_STRIDED)
            return false;
        specialization->inputs[i] = is_final ? access : specialization->inputs[i];
    }
    for (int i = 0; i < program->output_count; i++) {
        const struct gni_output *output = &program->outputs[i];
        enum gni_access access =
            pack_access(layout, specialization->outputs[i], layout->output_strides[i], output->data,
                        gni_dtype_size(output->dtype) * (size_t)pack, pack);
        if (access == GNI_ACCESS_STRIDED)
            return false;
        specialization->outputs[i] = is_final ? access : specialization->outputs[i];
    }
    return true;
}

void gni_specialization_pack(struct gni_specialization *specialization, int64_t stretch)
{
    enum {
        PACK_BYTES = 16
    };
    const struct gni_program *program = specialization->program;
    size_t sizes = 0; /* powers of two, all together */
    for (int i = 0; i < program->input_count; i++)
        if (specialization->inputs[i] >= GNI_ACCESS_CONTIGUOUS)
            sizes |= gni_dtype_size(program->inputs[i].held);
    for (int i = 0; i < program->output_count; i++)
        sizes |= gni_dtype_size(program->outputs[i].dtype);
    specialization->pack = sizes == 0 ? 1 : PACK_BYTES >> (63 - __builtin_clzll(sizes));
    while (specialization->pack > 1 && ((stretch & (specialization->pack - 1)) != 0 ||
                                        !pack_try(specialization, specialization->pack, false)))
        specialization->pack /= 2;
    if (specialization->pack > 1 && specialization->is_strided)
        (void)pack_try(specialization, specialization->pack, true);
}

/* The dimension in which an input's neighbours are neighbours in memory, where that is not the last one; -1: none. */
static int tile_of(const struct gni_layout *layout, const int64_t *strides)
{
    const int last = layout->ndim - 1;
    int found = -1;
    for (int d = 0; d <= last; d++) {
        if (layout->sizes[d] < GNI_CUDA_TILE / 2)
            continue;
        if (strides[d] == 1)
            found = d;
        else if (d == last && strides[d] == 0)
            return -1;
    }
    return found == last || layout->sizes[last] < GNI_CUDA_TILE / 2 ? -1 : found;
}

int64_t gni_specialization_tile(struct gni_specialization *specialization)
{
    const struct gni_program *program = specialization->program;
    const struct gni_layout *layout = &specialization->layout;
    if (specialization->pack > 1)
        return 0;
    for (int i = 0; i < program->input_count; i++) {
        if (specialization->inputs[i] != GNI_ACCESS_STRIDED)
            continue;
        int tile = tile_of(layout, layout->strides[i]);
        if (tile < 0 || (specialization->tile >= 0 && tile != specialization->tile))
            continue;
        specialization->tile = tile;
        specialization->inputs[i] = GNI_ACCESS_STRIDED_TILE;
    }
    if (specialization->tile < 0)
        return 0;
    int64_t tiles = 1;
    for (int d = 0; d < layout->ndim; d++)
        tiles *= d == specialization->tile || d == layout->ndim - 1
                     ? gni_divided_up(layout->sizes[d], GNI_CUDA_TILE)
                     : layout->sizes[d];
    for (int i = 0; i < program->input_count; i++)
        if (specialization->inputs[i] == GNI_ACCESS_CONTIGUOUS)
            specialization->inputs[i] = GNI_ACCESS_STRIDED; /* there is no index of all elements */
    for (int i = 0; i < program->output_count; i++)
        specialization->outputs[i] = GNI_ACCESS_STRIDED;
    return tiles;
}

size_t gni_steps_sign(const struct gni_program *program, unsigned char *signature)
{
    enum {
        WHAT_BYTES = 6
    };
    unsigned char *at = signature;
    *at++ = (unsigned char)program->step_count;
    for (int s = 0; s < program->step_count; s++) {
        const struct gni_step *step = &program->steps[s];
        uint64_t what = (uint64_t)step->kind | (uint64_t)step->op << 8 |
                        (uint64_t)step->from << 16 | (uint64_t)step->held << 24 |
                        (uint64_t)step->half << 32 | (uint64_t)step->reduction << 40;
        memcpy(at, &what, sizeof what);
        memcpy(at + WHAT_BYTES, step->in, sizeof step->in);
        at += WHAT_BYTES + sizeof step->in;
    }
    return (size_t)(at - signature);
}

size_t gni_specialization_sign(const struct gni_specialization *specialization,
                               unsigned char *signature)
{
    const struct gni_program *program = specialization->program;
    unsigned char *at = signature;
    *at++ = 'e';
    *at++ = (unsigned char)(specialization->is_strided ? specialization->layout.ndim : 0);
    *at++ = specialization->is_wide;
    *at++ = (unsigned char)specialization->pack;
    *at++ = (unsigned char)specialization->tile;
    *at++ = (unsigned char)specialization->steps;
    *at++ = (unsigned char)(specialization->threads / 32);
    *at++ = (unsigned char)specialization->blocks;
    *at++ = (unsigned char)specialization->lanes;
    *at++ = (unsigned char)(specialization->lanes >> 8);
    *at++ = specialization->is_ragged;
    *at++ = (unsigned char)specialization->kind;
    *at++ = (unsigned char)specialization->reduction;
    *at++ = (unsigned char)specialization->value;
    *at++ = (unsigned char)((unsigned)specialization->value >> 8);
    *at++ = (unsigned char)specialization->result;
    *at++ = specialization->is_log;
    *at++ = (unsigned char)program->input_count;
    for (int i = 0; i < program->input_count; i++) {
        *at++ = (unsigned char)specialization->inputs[i];
        *at++ = (unsigned char)program->inputs[i].held;
    }
    at += gni_steps_sign(program, at);
    *at++ = (unsigned char)program->output_count;
    for (int i = 0; i < program->output_count; i++) {
        uint32_t what = (uint32_t)specialization->outputs[i] |
                        (uint32_t)program->outputs[i].dtype << 8 |
                        (uint32_t)program->outputs[i].value << 16;
        memcpy(at, &what, sizeof what);
        at += sizeof what;
    }
    return (size_t)(at - signature);
}
