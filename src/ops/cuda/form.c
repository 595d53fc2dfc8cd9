#include "ops/cuda/form.h"

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

void gni_form_make(struct gni_form *form, const struct gni_program *program)
{
    form->program = program;
    form->pack = 1;
    form->tile = -1;
    form->steps = 0;
    form->threads = GNI_CUDA_BLOCK;
    form->blocks = 1;
    form->lanes = 32;
    form->is_ragged = false;
    form->fold = GNI_FOLD_NONE;
    form->reduction = GN_REDUCE_SUM;
    form->value = -1;
    form->result = GN_BOOL;
    form->is_log = false;
    form->is_strided = false;
    form->is_wide = program->count >= INT32_MAX / 2;
    if (gni_program_join(program, &form->layout)) {
        for (int i = 0; i < program->input_count; i++)
            form->inputs[i] =
                program->inputs[i].storage == NULL ? GNI_ACCESS_NUMBER : GNI_ACCESS_CONTIGUOUS;
        for (int i = 0; i < program->output_count; i++)
            form->outputs[i] = GNI_ACCESS_CONTIGUOUS;
        return;
    }
    for (int i = 0; i < program->input_count; i++) {
        form->inputs[i] = program->inputs[i].storage == NULL
                              ? GNI_ACCESS_NUMBER
                              : access_of(&form->layout, form->layout.strides[i]);
        if (form->inputs[i] != GNI_ACCESS_STRIDED)
            continue;
        form->is_strided = true;
        form->is_wide |= is_far(&form->layout, form->layout.strides[i]);
    }
    for (int i = 0; i < program->output_count; i++) {
        form->outputs[i] = access_of(&form->layout, form->layout.output_strides[i]);
        if (form->outputs[i] == GNI_ACCESS_ONE) /* one element, in strides of any kind */
            form->outputs[i] = GNI_ACCESS_CONTIGUOUS;
        if (form->outputs[i] != GNI_ACCESS_STRIDED)
            continue;
        form->is_strided = true;
        form->is_wide |= is_far(&form->layout, form->layout.output_strides[i]);
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
static bool pack_try(struct gni_form *form, int pack, bool is_final)
{
    const struct gni_program *program = form->program;
    const struct gni_layout *layout = &form->layout;
    for (int i = 0; i < program->input_count; i++) {
        const struct gni_input *input = &program->inputs[i];
        enum gni_access access =
            pack_access(layout, form->inputs[i], layout->strides[i], input->data,
                        gni_dtype_size(input->held) * (size_t)pack, pack);
        if (access == GNI_ACCESS_STRIDED)
            return false;
        form->inputs[i] = is_final ? access : form->inputs[i];
    }
    for (int i = 0; i < program->output_count; i++) {
        const struct gni_output *output = &program->outputs[i];
        enum gni_access access =
            pack_access(layout, form->outputs[i], layout->output_strides[i], output->data,
                        gni_dtype_size(output->dtype) * (size_t)pack, pack);
        if (access == GNI_ACCESS_STRIDED)
            return false;
        form->outputs[i] = is_final ? access : form->outputs[i];
    }
    return true;
}

void gni_form_pack(struct gni_form *form, int64_t stretch)
{
    enum {
        PACK_BYTES = 16
    };
    const struct gni_program *program = form->program;
    size_t sizes = 0; /* powers of two, all together */
    for (int i = 0; i < program->input_count; i++)
        if (form->inputs[i] >= GNI_ACCESS_CONTIGUOUS)
            sizes |= gni_dtype_size(program->inputs[i].held);
    for (int i = 0; i < program->output_count; i++)
        sizes |= gni_dtype_size(program->outputs[i].dtype);
    form->pack = sizes == 0 ? 1 : PACK_BYTES >> (63 - __builtin_clzll(sizes));
    while (form->pack > 1 &&
           ((stretch & (form->pack - 1)) != 0 || !pack_try(form, form->pack, false)))
        form->pack /= 2;
    if (form->pack > 1 && form->is_strided)
        (void)pack_try(form, form->pack, true);
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

int64_t gni_form_tile(struct gni_form *form)
{
    const struct gni_program *program = form->program;
    const struct gni_layout *layout = &form->layout;
    if (form->pack > 1)
        return 0;
    for (int i = 0; i < program->input_count; i++) {
        if (form->inputs[i] != GNI_ACCESS_STRIDED)
            continue;
        int tile = tile_of(layout, layout->strides[i]);
        if (tile < 0 || (form->tile >= 0 && tile != form->tile))
            continue;
        form->tile = tile;
        form->inputs[i] = GNI_ACCESS_STRIDED_TILE;
    }
    if (form->tile < 0)
        return 0;
    int64_t tiles = 1;
    for (int d = 0; d < layout->ndim; d++)
        tiles *= d == form->tile || d == layout->ndim - 1
                     ? gni_divided_up(layout->sizes[d], GNI_CUDA_TILE)
                     : layout->sizes[d];
    for (int i = 0; i < program->input_count; i++)
        if (form->inputs[i] == GNI_ACCESS_CONTIGUOUS)
            form->inputs[i] = GNI_ACCESS_STRIDED; /* there is no index of all elements */
    for (int i = 0; i < program->output_count; i++)
        form->outputs[i] = GNI_ACCESS_STRIDED;
    return tiles;
}

size_t gni_form_sign(const struct gni_form *form, unsigned char *signature)
{
    const struct gni_program *program = form->program;
    unsigned char *at = signature;
    *at++ = 'e';
    *at++ = (unsigned char)(form->is_strided ? form->layout.ndim : 0);
    *at++ = form->is_wide;
    *at++ = (unsigned char)form->pack;
    *at++ = (unsigned char)form->tile;
    *at++ = (unsigned char)form->steps;
    *at++ = (unsigned char)(form->threads / 32);
    *at++ = (unsigned char)form->blocks;
    *at++ = (unsigned char)form->lanes;
    *at++ = (unsigned char)(form->lanes >> 8);
    *at++ = form->is_ragged;
    *at++ = (unsigned char)form->fold;
    *at++ = (unsigned char)form->reduction;
    *at++ = (unsigned char)form->value;
    *at++ = (unsigned char)((unsigned)form->value >> 8);
    *at++ = (unsigned char)form->result;
    *at++ = form->is_log;
    *at++ = (unsigned char)program->input_count;
    for (int i = 0; i < program->input_count; i++) {
        *at++ = (unsigned char)form->inputs[i];
        *at++ = (unsigned char)program->inputs[i].held;
    }
    *at++ = (unsigned char)program->step_count;
    for (int s = 0; s < program->step_count; s++) {
        const struct gni_step *step = &program->steps[s];
        uint64_t what = (uint64_t)step->kind | (uint64_t)step->op << 8 |
                        (uint64_t)step->from << 16 | (uint64_t)step->held << 24 |
                        (uint64_t)step->half << 32;
        memcpy(at, &what, sizeof what);
        memcpy(at + 5, step->in, sizeof step->in);
        at += 5 + sizeof step->in;
    }
    *at++ = (unsigned char)program->output_count;
    for (int i = 0; i < program->output_count; i++) {
        uint32_t what = (uint32_t)form->outputs[i] | (uint32_t)program->outputs[i].dtype << 8 |
                        (uint32_t)program->outputs[i].value << 16;
        memcpy(at, &what, sizeof what);
        at += sizeof what;
    }
    return (size_t)(at - signature);
}
