#include "ops/cuda/generate.h"

#include "ops/cuda/texts.h"
#include "ops/promote.h"

#include <stdio.h>
#include <string.h>

/* ---- names ------------------------------------------------------------------------------------ */

const char *gni_cuda_type(gn_dtype dtype)
{
    static const char *const names[GN_DTYPE_COUNT] = {
        [GN_BOOL] = "bool",       [GN_UINT8] = "uint8",       [GN_INT8] = "int8",
        [GN_INT16] = "short",     [GN_INT32] = "int",         [GN_INT64] = "int64",
        [GN_FLOAT16] = "float16", [GN_BFLOAT16] = "bfloat16", [GN_FLOAT32] = "float",
        [GN_FLOAT64] = "double",
    };
    return names[dtype];
}

/* As it lies in memory. */
static const char *memory_type(gn_dtype dtype)
{
    return dtype == GN_BOOL ? "uint8" : gni_cuda_type(dtype);
}

static const char *reduction_word(gn_reduction reduction)
{
    static const char *const names[] = {
#define NAME(NAME, name) #name,
        GN_REDUCTION_LIST(NAME)
#undef NAME
    };
    return names[reduction];
}

static bool is_softmax(const struct gni_form *form)
{
    return form->fold == GNI_FOLD_SOFTMAX;
}

void gni_form_name(const struct gni_form *form, char *name, size_t size)
{
    enum {
        WORDS_MOST = 5
    };
    const struct gni_program *program = form->program;
    size_t used = 0;
    int words = 0;
    for (int s = 0; s < program->step_count && words < WORDS_MOST; s++) {
        if (program->steps[s].kind != GNI_STEP_OP)
            continue;
        used +=
            (size_t)snprintf(name + used, size - used, "%s_", gni_op_name(program->steps[s].op));
        words++;
    }
    if (is_softmax(form))
        used +=
            (size_t)snprintf(name + used, size - used, "%ssoftmax_", form->is_log ? "log_" : "");
    else if (form->fold != GNI_FOLD_NONE)
        used += (size_t)snprintf(name + used, size - used, "%s_", reduction_word(form->reduction));
    else if (words == 0)
        used += (size_t)snprintf(name + used, size - used, "copy_");
    gni_assert(used + sizeof "kernel" <= size);
    snprintf(name + used, size - used, "kernel");
}

/* ---- forms ------------------------------------------------------------------------------------ */

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
    gni_program_join(program, &form->layout);
    form->is_wide = program->count >= INT32_MAX / 2;
    for (int i = 0; i < program->input_count; i++) {
        form->inputs[i] = program->inputs[i].storage == NULL
                              ? GNI_ACCESS_NUMBER
                              : access_of(&form->layout, form->layout.strides[i]);
        form->is_wide |=
            form->inputs[i] == GNI_ACCESS_STRIDED && is_far(&form->layout, form->layout.strides[i]);
    }
    for (int i = 0; i < program->output_count; i++) {
        form->outputs[i] = access_of(&form->layout, form->layout.output_strides[i]);
        if (form->outputs[i] == GNI_ACCESS_ONE) /* one element, in strides of any kind */
            form->outputs[i] = GNI_ACCESS_CONTIGUOUS;
        form->is_wide |= form->outputs[i] == GNI_ACCESS_STRIDED &&
                         is_far(&form->layout, form->layout.output_strides[i]);
    }
}

static bool is_strided(const struct gni_form *form)
{
    bool found = false;
    for (int i = 0; i < form->program->input_count; i++)
        found |= form->inputs[i] == GNI_ACCESS_STRIDED;
    for (int i = 0; i < form->program->output_count; i++)
        found |= form->outputs[i] == GNI_ACCESS_STRIDED;
    return found;
}

size_t gni_form_sign(const struct gni_form *form, unsigned char *signature)
{
    const struct gni_program *program = form->program;
    unsigned char *at = signature;
    *at++ = 'e';
    *at++ = (unsigned char)(is_strided(form) ? form->layout.ndim : 0);
    *at++ = form->is_wide;
    *at++ = (unsigned char)form->pack;
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
        *at++ = (unsigned char)step->kind;
        *at++ = (unsigned char)step->op;
        *at++ = (unsigned char)step->from;
        *at++ = (unsigned char)step->held;
        *at++ = (unsigned char)step->half;
        for (int i = 0; i < 3; i++) {
            *at++ = (unsigned char)step->in[i];
            *at++ = (unsigned char)((unsigned)step->in[i] >> 8);
        }
    }
    *at++ = (unsigned char)program->output_count;
    for (int i = 0; i < program->output_count; i++) {
        *at++ = (unsigned char)form->outputs[i];
        *at++ = (unsigned char)program->outputs[i].dtype;
        *at++ = (unsigned char)program->outputs[i].value;
        *at++ = (unsigned char)((unsigned)program->outputs[i].value >> 8);
    }
    return (size_t)(at - signature);
}

/* ---- arguments: the struct, and what is in it -------------------------------------------------- */

static void text_arguments(const struct gni_form *form, struct gni_builder *text)
{
    const struct gni_program *program = form->program;
    gni_builder_print(text, "\nstruct arguments {\n    uint64 count;\n");
    for (int i = 0; i < program->input_count; i++) {
        if (form->inputs[i] == GNI_ACCESS_NUMBER)
            gni_builder_print(text, "    __align__(8) %s number%d;\n",
                              gni_cuda_type(program->inputs[i].held), i);
        else
            gni_builder_print(text, "    const %s *in%d;\n", memory_type(program->inputs[i].held),
                              i);
    }
    for (int i = 0; i < program->output_count; i++)
        gni_builder_print(text, "    %s *out%d;\n", memory_type(program->outputs[i].dtype), i);
    if (is_strided(form)) {
        gni_builder_print(text, "    int64 size[%d];\n", form->layout.ndim);
        for (int i = 0; i < program->input_count; i++)
            if (form->inputs[i] == GNI_ACCESS_STRIDED)
                gni_builder_print(text, "    int64 stride%d[%d];\n", i, form->layout.ndim);
        for (int i = 0; i < program->output_count; i++)
            if (form->outputs[i] == GNI_ACCESS_STRIDED)
                gni_builder_print(text, "    int64 step%d[%d];\n", i, form->layout.ndim);
    }
    if (form->fold != GNI_FOLD_NONE)
        gni_builder_print(text, "    int64 kept, folded, chunk, parts, slot;\n    double divisor;\n"
                                "    void *partial, *result;\n");
    gni_builder_print(text, "};\n\n");
}

int gni_form_arguments(const struct gni_form *form, const struct gni_fold_arguments *fold,
                       uint64_t *arguments)
{
    const struct gni_program *program = form->program;
    size_t row = (size_t)form->layout.ndim;
    uint64_t *at = arguments;
    *at++ = (uint64_t)program->count;
    for (int i = 0; i < program->input_count; i++)
        *at++ = form->inputs[i] == GNI_ACCESS_NUMBER ? program->inputs[i].number
                                                     : (uintptr_t)program->inputs[i].data;
    for (int i = 0; i < program->output_count; i++)
        *at++ = (uintptr_t)program->outputs[i].data;
    if (is_strided(form)) {
        memcpy(at, form->layout.sizes, row * sizeof *at);
        at += row;
        for (int i = 0; i < program->input_count; i++)
            if (form->inputs[i] == GNI_ACCESS_STRIDED) {
                memcpy(at, form->layout.strides[i], row * sizeof *at);
                at += row;
            }
        for (int i = 0; i < program->output_count; i++)
            if (form->outputs[i] == GNI_ACCESS_STRIDED) {
                memcpy(at, form->layout.output_strides[i], row * sizeof *at);
                at += row;
            }
    }
    if (fold != NULL) {
        *at++ = (uint64_t)fold->kept;
        *at++ = (uint64_t)fold->folded;
        *at++ = (uint64_t)fold->chunk;
        *at++ = (uint64_t)fold->parts;
        *at++ = (uint64_t)fold->slot;
        memcpy(at++, &fold->divisor, sizeof *at);
        *at++ = (uintptr_t)fold->partial;
        *at++ = (uintptr_t)fold->result;
    }
    return (int)(at - arguments);
}

/* ---- one element ------------------------------------------------------------------------------ */

static void text_step(const struct gni_program *program, int s, struct gni_builder *text)
{
    const struct gni_step *step = &program->steps[s];
    gni_builder_print(text, "    const %s v%d = ", gni_cuda_type(step->held),
                      program->input_count + s);
    switch (step->kind) {
    case GNI_STEP_OP:
        gni_builder_print(text, "op_%s<%s>(", gni_op_name(step->op), gni_cuda_type(step->from));
        for (int i = 0; i < 3 && step->in[i] >= 0; i++)
            gni_builder_print(text, "%sv%d", i > 0 ? ", " : "", step->in[i]);
        gni_builder_print(text, ");\n");
        return;
    case GNI_STEP_CONVERT:
        gni_builder_print(text, "convert<%s>(v%d);\n", gni_cuda_type(step->held), step->in[0]);
        return;
    case GNI_STEP_ROUND:
        gni_builder_print(text, "round_%s(v%d);\n", gni_cuda_type(step->half), step->in[0]);
        return;
    }
}

/* void element(a, inputs .., &outputs ..), or for a fold: its value, returned. */
static void text_element(const struct gni_form *form, struct gni_builder *text)
{
    const struct gni_program *program = form->program;
    bool is_fold = form->fold != GNI_FOLD_NONE;
    gni_builder_print(text, "ELEMENT %s element(const arguments &a",
                      is_fold ? gni_cuda_type(gni_program_held(program, form->value)) : "void");
    for (int i = 0; i < program->input_count; i++)
        if (form->inputs[i] != GNI_ACCESS_NUMBER)
            gni_builder_print(text, ", %s v%d", gni_cuda_type(program->inputs[i].held), i);
    for (int i = 0; i < program->output_count; i++)
        gni_builder_print(text, ", %s &y%d", memory_type(program->outputs[i].dtype), i);
    gni_builder_print(text, ")\n{\n");
    for (int i = 0; i < program->input_count; i++)
        if (form->inputs[i] == GNI_ACCESS_NUMBER)
            gni_builder_print(text, "    const %s v%d = a.number%d;\n",
                              gni_cuda_type(program->inputs[i].held), i, i);
    for (int s = 0; s < program->step_count; s++)
        text_step(program, s, text);
    for (int i = 0; i < program->output_count; i++)
        gni_builder_print(text, "    y%d = convert<%s>(v%d);\n", i,
                          gni_cuda_type(program->outputs[i].dtype), program->outputs[i].value);
    if (is_fold)
        gni_builder_print(text, "    return v%d;\n", form->value);
    gni_builder_print(text, "}\n\n");
}

/* ---- elements at strides ---------------------------------------------------------------------- */

/* Offsets o0, .. of strided inputs and w0, .. of outputs, from the index i. */
static void text_offsets(const struct gni_form *form, const char *indent, struct gni_builder *text)
{
    const struct gni_program *program = form->program;
    if (!is_strided(form))
        return;
    gni_builder_print(text, "%sindex rest = i, at;\n", indent);
    for (int d = form->layout.ndim - 1; d >= 0; d--) {
        if (d > 0)
            gni_builder_print(text,
                              "%sat = rest %% (index)a.size[%d];\n%srest /= (index)a.size[%d];\n",
                              indent, d, indent, d);
        else
            gni_builder_print(text, "%sat = rest;\n", indent);
        bool is_first = d == form->layout.ndim - 1;
        for (int i = 0; i < program->input_count; i++)
            if (form->inputs[i] == GNI_ACCESS_STRIDED)
                gni_builder_print(text, "%s%so%d %s (offset)at * (offset)a.stride%d[%d];\n", indent,
                                  is_first ? "offset " : "", i, is_first ? "=" : "+=", i, d);
        for (int i = 0; i < program->output_count; i++)
            if (form->outputs[i] == GNI_ACCESS_STRIDED)
                gni_builder_print(text, "%s%sw%d %s (offset)at * (offset)a.step%d[%d];\n", indent,
                                  is_first ? "offset " : "", i, is_first ? "=" : "+=", i, d);
    }
}

/* element(a, what is loaded for the index i */
static void text_call(const struct gni_form *form, struct gni_builder *text)
{
    const struct gni_program *program = form->program;
    gni_builder_print(text, "element(a");
    for (int i = 0; i < program->input_count; i++) {
        const char *type = gni_cuda_type(program->inputs[i].held);
        switch (form->inputs[i]) {
        case GNI_ACCESS_NUMBER:
            break;
        case GNI_ACCESS_ONE:
            gni_builder_print(text, ", loaded<%s>(*a.in%d)", type, i);
            break;
        case GNI_ACCESS_CONTIGUOUS:
            gni_builder_print(text, ", loaded<%s>(a.in%d[i])", type, i);
            break;
        case GNI_ACCESS_STRIDED:
            gni_builder_print(text, ", loaded<%s>(a.in%d[o%d])", type, i, i);
            break;
        }
    }
}

static void text_head(const char *name, struct gni_builder *text)
{
    gni_builder_print(text,
                      "extern \"C\" __global__ void __launch_bounds__(%d) %s(const "
                      "__grid_constant__ arguments a)\n{\n",
                      GNI_CUDA_BLOCK, name);
}

/* A thread computes one element. */
static void text_strided(const struct gni_form *form, const char *name, struct gni_builder *text)
{
    const struct gni_program *program = form->program;
    text_head(name, text);
    gni_builder_print(text,
                      "    const index i = (index)blockIdx.x * %d + threadIdx.x;\n"
                      "    if (i >= a.count)\n        return;\n",
                      GNI_CUDA_BLOCK);
    text_offsets(form, "    ", text);
    for (int i = 0; i < program->output_count; i++)
        gni_builder_print(text, "    %s y%d;\n", memory_type(program->outputs[i].dtype), i);
    gni_builder_print(text, "    ");
    text_call(form, text);
    for (int i = 0; i < program->output_count; i++)
        gni_builder_print(text, ", y%d", i);
    gni_builder_print(text, ");\n");
    for (int i = 0; i < program->output_count; i++)
        if (form->outputs[i] == GNI_ACCESS_STRIDED)
            gni_builder_print(text, "    a.out%d[w%d] = y%d;\n", i, i, i);
        else
            gni_builder_print(text, "    a.out%d[i] = y%d;\n", i, i);
    gni_builder_print(text, "}\n");
}

/* ---- contiguous elements ---------------------------------------------------------------------- */

/* What a pack does as a whole, or, where the elements end within it, for each that is there. */
static void text_move(const struct gni_form *form, bool is_load, struct gni_builder *text)
{
    const struct gni_program *program = form->program;
    const int pack = form->pack, count = is_load ? program->input_count : program->output_count;
    for (int part = 0; part < (pack > 1 ? 2 : 1); part++) {
        if (part == 0)
            gni_builder_print(text, "    if (at + %d <= a.count) {\n", pack);
        else
            gni_builder_print(text,
                              "    } else {\n#pragma unroll\n"
                              "        for (int k = 0; k < %d && at + k < a.count; k++) {\n",
                              pack);
        for (int i = 0; i < count; i++) {
            if (is_load && form->inputs[i] != GNI_ACCESS_CONTIGUOUS)
                continue;
            const char *type =
                memory_type(is_load ? program->inputs[i].held : program->outputs[i].dtype);
            if (part == 1)
                gni_builder_print(text,
                                  is_load ? "            p%d.item[k] = a.in%d[at + k];\n"
                                          : "            a.out%d[at + k] = q%d.item[k];\n",
                                  i, i);
            else if (is_load)
                gni_builder_print(text, "        p%d = *(const pack<%s, %d> *)(a.in%d + at);\n", i,
                                  type, pack, i);
            else
                gni_builder_print(text, "        *(pack<%s, %d> *)(a.out%d + at) = q%d;\n", type,
                                  pack, i, i);
        }
    }
    gni_builder_print(text, pack > 1 ? "        }\n    }\n" : "    }\n");
}

/* A thread loads one pack of each operand. */
static void text_packed(const struct gni_form *form, const char *name, struct gni_builder *text)
{
    const struct gni_program *program = form->program;
    const int pack = form->pack;
    text_head(name, text);
    gni_builder_print(text,
                      "    const index at = ((index)blockIdx.x * %d + threadIdx.x) * %d;\n"
                      "    if (at >= a.count)\n        return;\n",
                      GNI_CUDA_BLOCK, pack);
    for (int i = 0; i < program->input_count; i++) {
        const char *type = memory_type(program->inputs[i].held);
        if (form->inputs[i] == GNI_ACCESS_CONTIGUOUS)
            gni_builder_print(text, "    pack<%s, %d> p%d;\n", type, pack, i);
        else if (form->inputs[i] == GNI_ACCESS_ONE)
            gni_builder_print(text, "    const %s one%d = *a.in%d;\n", type, i, i);
    }
    text_move(form, true, text);
    for (int i = 0; i < program->output_count; i++)
        gni_builder_print(text, "    pack<%s, %d> q%d;\n", memory_type(program->outputs[i].dtype),
                          pack, i);
    gni_builder_print(text, "#pragma unroll\n    for (int k = 0; k < %d; k++)\n        element(a",
                      pack);
    for (int i = 0; i < program->input_count; i++) {
        const char *type = gni_cuda_type(program->inputs[i].held);
        if (form->inputs[i] == GNI_ACCESS_CONTIGUOUS)
            gni_builder_print(text, ", loaded<%s>(p%d.item[k])", type, i);
        else if (form->inputs[i] == GNI_ACCESS_ONE)
            gni_builder_print(text, ", loaded<%s>(one%d)", type, i);
    }
    for (int i = 0; i < program->output_count; i++)
        gni_builder_print(text, ", q%d.item[k]", i);
    gni_builder_print(text, ");\n");
    text_move(form, false, text);
    gni_builder_print(text, "}\n");
}

/* ---- folds ------------------------------------------------------------------------------------ */

gn_dtype gni_fold_accumulator(gn_reduction reduction, gn_dtype dtype)
{
    gn_dtype computing = gni_dtypes[dtype].compute;
    switch (reduction) {
    case GN_REDUCE_ANY:
    case GN_REDUCE_ALL:
        return GN_BOOL;
    case GN_REDUCE_MAXIMUM:
    case GN_REDUCE_MINIMUM:
        return computing;
    case GN_REDUCE_SUM:
    case GN_REDUCE_PRODUCT:
    case GN_REDUCE_MEAN:
    case GN_REDUCTION_COUNT:
        break;
    }
    return gni_dtype_kind(computing) == GNI_KIND_FLOATING ? GN_FLOAT64 : GN_INT64;
}

/* values_at(): packs of contiguous operands. */
static void text_values(const struct gni_form *form, struct gni_builder *text)
{
    const struct gni_program *program = form->program;
    gni_builder_print(text, "ELEMENT void values_at(const arguments &a, index i, %s *e)\n{\n",
                      gni_cuda_type(gni_program_held(program, form->value)));
    if (form->pack == 1) {
        gni_builder_print(text, "    e[0] = value_at(a, i);\n}\n\n");
        return;
    }
    for (int i = 0; i < program->input_count; i++)
        if (form->inputs[i] == GNI_ACCESS_CONTIGUOUS)
            gni_builder_print(text,
                              "    const pack<%s, %d> p%d = *(const pack<%s, %d> *)(a.in%d + i);\n",
                              memory_type(program->inputs[i].held), form->pack, i,
                              memory_type(program->inputs[i].held), form->pack, i);
    gni_builder_print(text,
                      "#pragma unroll\n    for (int k = 0; k < %d; k++)\n        e[k] = element(a",
                      form->pack);
    for (int i = 0; i < program->input_count; i++) {
        const char *type = gni_cuda_type(program->inputs[i].held);
        if (form->inputs[i] == GNI_ACCESS_CONTIGUOUS)
            gni_builder_print(text, ", loaded<%s>(p%d.item[k])", type, i);
        else if (form->inputs[i] == GNI_ACCESS_ONE)
            gni_builder_print(text, ", loaded<%s>(*a.in%d)", type, i);
    }
    gni_builder_print(text, ");\n}\n\n");
}

/* value_at() and values_at(), of the value that is folded. */
static void text_value(const struct gni_form *form, struct gni_builder *text)
{
    gni_builder_print(text, "ELEMENT %s value_at(const arguments &a, index i)\n{\n",
                      gni_cuda_type(gni_program_held(form->program, form->value)));
    text_offsets(form, "    ", text);
    gni_builder_print(text, "    return ");
    text_call(form, text);
    gni_builder_print(text, ");\n}\n\n");
    text_values(form, text);
}

/* What fold.cu wants to be defined. */
static void text_fold(const struct gni_form *form, const char *name, struct gni_builder *text)
{
    static const char *const kernels[] = {[GNI_FOLD_ROWS] = "FOLD_ROWS",
                                          [GNI_FOLD_SHORT] = "FOLD_SHORT",
                                          [GNI_FOLD_COLUMNS] = "FOLD_COLUMNS"};
    gn_dtype held = gni_program_held(form->program, form->value);
    gn_dtype accumulator = gni_fold_accumulator(form->reduction, held);
    text_value(form, text);
    gni_builder_print(text, "#define NAME %s\n#define %s\n#define REDUCTION fold_%s\n", name,
                      kernels[form->fold], reduction_word(form->reduction));
    gni_builder_print(text, "#define PACK %d\n#define SLOTS %d\n#define COUNTERS %d\n", form->pack,
                      GNI_FOLD_SLOTS, GNI_FOLD_COUNTERS);
    gni_builder_print(text, "#define TOGETHER %d\n", form->steps);
    gni_builder_print(
        text, "typedef %s accumulator;\ntypedef %s element_type;\ntypedef %s result_type;\n",
        gni_cuda_type(accumulator), gni_cuda_type(held), memory_type(form->result));
    gni_builder_print(text, "#define FINISH(x) convert<%s>(%s)\n", gni_cuda_type(form->result),
                      form->reduction == GN_REDUCE_MEAN ? "(x) / a.divisor" : "x");
    gni_builder_add(text, gni_text_fold, strlen(gni_text_fold));
}

/* What softmax.cu wants to be defined. */
static void text_softmax(const struct gni_form *form, const char *name, struct gni_builder *text)
{
    gn_dtype held = gni_program_held(form->program, form->value);
    text_value(form, text);
    gni_builder_print(text, "#define STEPS %d\n#define THREADS %d\n#define BLOCKS %d\n",
                      form->steps, form->threads, form->blocks);
    gni_builder_print(text, "#define LANES %d\n#define IS_RAGGED %d\n", form->lanes,
                      form->is_ragged);
    gni_builder_print(text, "#define NAME %s\n#define IS_LOG %d\n#define PACK %d\n", name,
                      form->is_log, form->pack);
    gni_builder_print(text,
                      "typedef %s element_type;\ntypedef %s result_type;\ntypedef %s compute;\n",
                      gni_cuda_type(held), gni_cuda_type(form->result),
                      gni_cuda_type(gni_dtypes[form->result].compute));
    gni_builder_add(text, gni_text_softmax, strlen(gni_text_softmax));
}

void gni_form_text(const struct gni_form *form, const char *name, struct gni_builder *text)
{
    gni_builder_add(text, gni_text_elements, strlen(gni_text_elements));
    gni_builder_print(text, "\ntypedef %s index;\ntypedef %s offset;\n",
                      form->is_wide ? "uint64" : "unsigned", form->is_wide ? "int64" : "int");
    text_arguments(form, text);
    text_element(form, text);
    if (is_softmax(form))
        text_softmax(form, name, text);
    else if (form->fold != GNI_FOLD_NONE)
        text_fold(form, name, text);
    else if (is_strided(form))
        text_strided(form, name, text);
    else
        text_packed(form, name, text);
}
