#include "ops/cuda/generate.h"

#include "ops/cuda/block_join.h"
#include "ops/cuda/kernel_texts.h"
#include "ops/cuda/weight.h"
#include "ops/promote.h"

#include <stdio.h>
#include <string.h>

/* ---- names ------------------------------------------------------------------------------------ */

/* elements.cu has the types under their own names. */
const char *gni_cuda_type(gn_dtype dtype)
{
    return gni_dtypes[dtype].name;
}

/* As it lies in memory. */
const char *gni_cuda_memory_type(gn_dtype dtype)
{
    return dtype == GN_BOOL ? "uint8" : gni_cuda_type(dtype);
}

const char *gni_cuda_reduction(gn_reduction reduction)
{
    static const char *const names[] = {
#define NAME(NAME, name) #name,
        GN_REDUCTION_LIST(NAME)
#undef NAME
    };
    return names[reduction];
}

static bool is_softmax(const struct gni_specialization *specialization)
{
    return specialization->kind == GNI_REDUCE_SOFTMAX;
}

size_t gni_program_words(const struct gni_program *program, char *name, size_t size)
{
    enum {
        WORDS_MOST = 5
    };
    size_t used = 0;
    int words = 0;
    name[0] = '\0';
    for (int s = 0; s < program->step_count && words < WORDS_MOST; s++) {
        const struct gni_step *step = &program->steps[s];
        if (step->kind != GNI_STEP_OP && step->kind != GNI_STEP_REDUCE)
            continue;
        used += (size_t)snprintf(name + used, size - used, "%s_",
                                 step->kind == GNI_STEP_OP ? gni_ops[step->op].name
                                                           : gni_cuda_reduction(step->reduction));
        words++;
    }
    return used;
}

void gni_specialization_name(const struct gni_specialization *specialization, char *name,
                             size_t size)
{
    size_t used = gni_program_words(specialization->program, name, size);
    if (is_softmax(specialization))
        used += (size_t)snprintf(name + used, size - used, "%ssoftmax_",
                                 specialization->is_log ? "log_" : "");
    else if (specialization->kind != GNI_REDUCE_NONE)
        used += (size_t)snprintf(name + used, size - used, "%s_",
                                 gni_cuda_reduction(specialization->reduction));
    else if (used == 0)
        used += (size_t)snprintf(name + used, size - used, "copy_");
    gni_assert(used + sizeof "kernel" <= size);
    snprintf(name + used, size - used, "kernel");
}

/* ---- arguments: the struct, and what is in it -------------------------------------------------- */

static void text_arguments(const struct gni_specialization *specialization,
                           struct gni_builder *text)
{
    const struct gni_program *program = specialization->program;
    gni_builder_print(text, "\nstruct arguments {\n    uint64 count;\n");
    for (int i = 0; i < program->input_count; i++) {
        if (specialization->inputs[i] == GNI_ACCESS_NUMBER)
            gni_builder_print(text, "    __align__(8) %s number%d;\n",
                              gni_cuda_type(program->inputs[i].held), i);
        else
            gni_builder_print(text, "    const %s *in%d;\n",
                              gni_cuda_memory_type(program->inputs[i].held), i);
    }
    for (int i = 0; i < program->output_count; i++)
        gni_builder_print(text, "    %s *out%d;\n", gni_cuda_memory_type(program->outputs[i].dtype),
                          i);
    if (specialization->is_strided) {
        gni_builder_print(text, "    int64 size[%d];\n", specialization->layout.ndim);
        for (int i = 0; i < program->input_count; i++)
            if (specialization->inputs[i] >= GNI_ACCESS_STRIDED)
                gni_builder_print(text, "    int64 stride%d[%d];\n", i,
                                  specialization->layout.ndim);
        for (int i = 0; i < program->output_count; i++)
            if (specialization->outputs[i] >= GNI_ACCESS_STRIDED)
                gni_builder_print(text, "    int64 step%d[%d];\n", i, specialization->layout.ndim);
    }
    if (specialization->kind != GNI_REDUCE_NONE)
        gni_builder_print(text,
                          "    int64 kept, reduced, chunk, parts, slot;\n    double divisor;\n"
                          "    void *partial, *result;\n");
    gni_builder_print(text, "};\n\n");
}

int gni_specialization_arguments(const struct gni_specialization *specialization,
                                 const struct gni_reduce_arguments *reduce, uint64_t *arguments)
{
    const struct gni_program *program = specialization->program;
    size_t row = (size_t)specialization->layout.ndim;
    uint64_t *at = arguments;
    *at++ = (uint64_t)program->count;
    for (int i = 0; i < program->input_count; i++)
        *at++ = specialization->inputs[i] == GNI_ACCESS_NUMBER ? program->inputs[i].number
                                                               : (uintptr_t)program->inputs[i].data;
    for (int i = 0; i < program->output_count; i++)
        *at++ = (uintptr_t)program->outputs[i].data;
    if (specialization->is_strided) {
        memcpy(at, specialization->layout.sizes, row * sizeof *at);
        at += row;
        for (int i = 0; i < program->input_count; i++)
            if (specialization->inputs[i] >= GNI_ACCESS_STRIDED) {
                memcpy(at, specialization->layout.strides[i], row * sizeof *at);
                at += row;
            }
        for (int i = 0; i < program->output_count; i++)
            if (specialization->outputs[i] >= GNI_ACCESS_STRIDED) {
                memcpy(at, specialization->layout.output_strides[i], row * sizeof *at);
                at += row;
            }
    }
    if (reduce != NULL) {
        *at++ = (uint64_t)reduce->kept;
        *at++ = (uint64_t)reduce->reduced;
        *at++ = (uint64_t)reduce->chunk;
        *at++ = (uint64_t)reduce->parts;
        *at++ = (uint64_t)reduce->slot;
        memcpy(at++, &reduce->divisor, sizeof *at);
        *at++ = (uintptr_t)reduce->partial;
        *at++ = (uintptr_t)reduce->result;
    }
    return (int)(at - arguments);
}

/* ---- one element ------------------------------------------------------------------------------ */

/* The name of an operand: of one element among several, if it is not one for all of the row. */
static void text_operand(const struct gni_program *program, short value, const char *suffix,
                         struct gni_builder *text)
{
    bool is_row = program->row_ndim > 0 && program->is_row[value];
    gni_builder_print(text, "v%d%s", value, is_row ? "" : suffix);
}

/* Whether elements.cu has a shorter form of an operation whose result is rounded to a half at once. */
static bool has_half_form(const struct gni_step *step)
{
    return step->op == GNI_OP_EXP && step->from == GN_FLOAT32 && gni_dtype_is_half(step->half);
}

void gni_step_text(const struct gni_program *program, int s, const char *indent, const char *suffix,
                   struct gni_builder *text)
{
    const struct gni_step *step = &program->steps[s];
    gni_builder_print(text, "%s%s ", indent, gni_cuda_type(step->held));
    text_operand(program, (short)(program->input_count + s), suffix, text);
    if (step->kind == GNI_STEP_OP)
        gni_builder_print(text, " = op_%s%s<%s>(", gni_ops[step->op].name,
                          has_half_form(step) ? "_half" : "", gni_cuda_type(step->from));
    else if (step->kind == GNI_STEP_CONVERT)
        gni_builder_print(text, " = convert<%s>(", gni_cuda_type(step->held));
    else
        gni_builder_print(text, " = round_%s(", gni_cuda_type(step->half));
    gni_assert(step->kind != GNI_STEP_REDUCE); /* row_text.c */
    for (int i = 0; i < 3 && step->in[i] >= 0; i++) {
        gni_builder_print(text, "%s", i > 0 ? ", " : "");
        text_operand(program, step->in[i], suffix, text);
    }
    gni_builder_print(text, ");\n");
}

/* void element(a, inputs .., &outputs ..), or for a reduction: its value, returned. */
static void text_element(const struct gni_specialization *specialization, struct gni_builder *text)
{
    const struct gni_program *program = specialization->program;
    bool is_reduction = specialization->kind != GNI_REDUCE_NONE;
    gni_builder_print(text, "ELEMENT %s element(const arguments &a",
                      is_reduction ? gni_cuda_type(gni_program_held(program, specialization->value))
                                   : "void");
    for (int i = 0; i < program->input_count; i++)
        if (specialization->inputs[i] != GNI_ACCESS_NUMBER)
            gni_builder_print(text, ", %s v%d", gni_cuda_type(program->inputs[i].held), i);
    for (int i = 0; i < program->output_count; i++)
        gni_builder_print(text, ", %s &y%d", gni_cuda_memory_type(program->outputs[i].dtype), i);
    gni_builder_print(text, ")\n{\n");
    for (int i = 0; i < program->input_count; i++)
        if (specialization->inputs[i] == GNI_ACCESS_NUMBER)
            gni_builder_print(text, "    const %s v%d = a.number%d;\n",
                              gni_cuda_type(program->inputs[i].held), i, i);
    for (int s = 0; s < program->step_count; s++)
        gni_step_text(program, s, "    ", "", text);
    for (int i = 0; i < program->output_count; i++)
        gni_builder_print(text, "    y%d = convert<%s>(v%d);\n", i,
                          gni_cuda_type(program->outputs[i].dtype), program->outputs[i].value);
    if (is_reduction)
        gni_builder_print(text, "    return v%d;\n", specialization->value);
    gni_builder_print(text, "}\n\n");
}

/* ---- elements at strides ---------------------------------------------------------------------- */

/* Offsets o0, .. of strided inputs and w0, .. of outputs, from the index i. */
static void text_offsets(const struct gni_specialization *specialization, struct gni_builder *text)
{
    const struct gni_program *program = specialization->program;
    if (!specialization->is_strided)
        return;
    gni_builder_print(text, "    index rest = i, at;\n");
    for (int d = specialization->layout.ndim - 1; d >= 0; d--) {
        if (d > 0)
            gni_builder_print(text,
                              "    at = rest %% (index)a.size[%d];\n"
                              "    rest /= (index)a.size[%d];\n",
                              d, d);
        else
            gni_builder_print(text, "    at = rest;\n");
        bool is_first = d == specialization->layout.ndim - 1;
        for (int i = 0; i < program->input_count; i++)
            if (specialization->inputs[i] >= GNI_ACCESS_STRIDED)
                gni_builder_print(text, "    %so%d %s (offset)at * (offset)a.stride%d[%d];\n",
                                  is_first ? "offset " : "", i, is_first ? "=" : "+=", i, d);
        for (int i = 0; i < program->output_count; i++)
            if (specialization->outputs[i] >= GNI_ACCESS_STRIDED)
                gni_builder_print(text, "    %sw%d %s (offset)at * (offset)a.step%d[%d];\n",
                                  is_first ? "offset " : "", i, is_first ? "=" : "+=", i, d);
    }
}

/* ---- packs of elements ------------------------------------------------------------------------- */

/* Where operand `number` of a kind has its elements for the index i. */
static void text_place(enum gni_access access, const char *operand, char offset, int number,
                       struct gni_builder *text)
{
    if (access >= GNI_ACCESS_STRIDED)
        gni_builder_print(text, "a.%s%d + %c%d", operand, number, offset, number);
    else
        gni_builder_print(text, access == GNI_ACCESS_ONE ? "a.%s%d" : "a.%s%d + i", operand,
                          number);
}

static bool is_packed(enum gni_access access)
{
    return access == GNI_ACCESS_CONTIGUOUS || access == GNI_ACCESS_STRIDED ||
           access == GNI_ACCESS_STRIDED_PACK;
}

/* What is loaded of each input: a pack p0, or an element one0; where the elements end within a pack, those that are
 * there. Strided programs are made of whole packs. */
static void text_load(const struct gni_specialization *specialization, bool is_partial,
                      const char *indent, struct gni_builder *text)
{
    const struct gni_program *program = specialization->program;
    for (int i = 0; i < program->input_count; i++) {
        if (!is_packed(specialization->inputs[i]))
            continue;
        gni_builder_print(text, "%sp%d%s = ", indent, i, is_partial ? ".item[k]" : "");
        if (is_partial)
            gni_builder_print(text, "a.in%d[i + k];\n", i);
        else {
            gni_builder_print(text, "*(const pack<%s, %d> *)(",
                              gni_cuda_memory_type(program->inputs[i].held), specialization->pack);
            text_place(specialization->inputs[i], "in", 'o', i, text);
            gni_builder_print(text, ");\n");
        }
    }
}

static void text_inputs(const struct gni_specialization *specialization, struct gni_builder *text)
{
    const struct gni_program *program = specialization->program;
    for (int i = 0; i < program->input_count; i++) {
        const char *type = gni_cuda_memory_type(program->inputs[i].held);
        if (is_packed(specialization->inputs[i]))
            gni_builder_print(text, "    pack<%s, %d> p%d;\n", type, specialization->pack, i);
        else if (specialization->inputs[i] != GNI_ACCESS_NUMBER) {
            gni_builder_print(text, "    const %s one%d = *(", type, i);
            text_place(specialization->inputs[i], "in", 'o', i, text);
            gni_builder_print(text, ");\n");
        }
    }
}

/* element(a, element k of what is loaded */
static void text_call(const struct gni_specialization *specialization, struct gni_builder *text)
{
    const struct gni_program *program = specialization->program;
    gni_builder_print(text, "element(a");
    for (int i = 0; i < program->input_count; i++) {
        const char *type = gni_cuda_type(program->inputs[i].held);
        if (is_packed(specialization->inputs[i]))
            gni_builder_print(text, ", loaded<%s>(p%d.item[k])", type, i);
        else if (specialization->inputs[i] != GNI_ACCESS_NUMBER)
            gni_builder_print(text, ", loaded<%s>(one%d)", type, i);
    }
}

/* Elements of a pack whose code stands side by side. */
static int side_by_side(const struct gni_specialization *specialization)
{
    return gni_weight_together(gni_program_weight(specialization->program), specialization->pack);
}

static bool has_turns(const struct gni_specialization *specialization)
{
    return side_by_side(specialization) < specialization->pack;
}

/* A loop over the elements k of a pack, or one over those in front of packs that rotate. The caller writes its body, a
 * statement, before text_loop_end(), and ends it with "}" when all arrays rotate. */
static void text_loop_begin(const struct gni_specialization *specialization,
                            struct gni_builder *text)
{
    if (has_turns(specialization))
        gni_builder_print(text, "#pragma unroll 1\n    for (int turn = 0; turn < %d; turn++) {\n",
                          specialization->pack / side_by_side(specialization));
    else
        gni_builder_print(text, "    {\n");
    gni_builder_print(text, "#pragma unroll\n        for (int k = 0; k < %d; k++)\n            ",
                      side_by_side(specialization));
}

static void text_loop_end(const struct gni_specialization *specialization, struct gni_builder *text)
{
    for (int i = 0; i < specialization->program->input_count && has_turns(specialization); i++)
        if (is_packed(specialization->inputs[i]))
            gni_builder_print(text, "        rotate<%d>(p%d.item);\n", side_by_side(specialization),
                              i);
}

static void text_store(const struct gni_specialization *specialization, bool is_partial,
                       const char *indent, struct gni_builder *text)
{
    const struct gni_program *program = specialization->program;
    for (int i = 0; i < program->output_count; i++) {
        if (is_partial) {
            gni_builder_print(text, "%sa.out%d[i + k] = q%d.item[k];\n", indent, i, i);
            continue;
        }
        gni_builder_print(text, "%s*(pack<%s, %d> *)(", indent,
                          gni_cuda_memory_type(program->outputs[i].dtype), specialization->pack);
        text_place(specialization->outputs[i], "out", 'w', i, text);
        gni_builder_print(text, ") = q%d;\n", i);
    }
}

/* Loads or stores a pack, or where the elements end within it, those that are there. */
static void text_move(const struct gni_specialization *specialization,
                      void (*part)(const struct gni_specialization *specialization, bool is_partial,
                                   const char *indent, struct gni_builder *text),
                      struct gni_builder *text)
{
    if (specialization->pack == 1 || specialization->is_strided) {
        part(specialization, false, "    ", text);
        return;
    }
    gni_builder_print(text, "    if (i + %d <= a.count) {\n", specialization->pack);
    part(specialization, false, "        ", text);
    gni_builder_print(text,
                      "    } else {\n#pragma unroll\n"
                      "        for (int k = 0; k < %d && i + k < a.count; k++) {\n",
                      specialization->pack);
    part(specialization, true, "            ", text);
    gni_builder_print(text, "        }\n    }\n");
}

static void text_head(const char *name, struct gni_builder *text)
{
    gni_builder_print(text,
                      "extern \"C\" __global__ void __launch_bounds__(%d) %s(const "
                      "__grid_constant__ arguments a)\n{\n    kernel_begin();\n",
                      GNI_CUDA_BLOCK, name);
}

/* A thread computes one pack of each output. */
static void text_elements(const struct gni_specialization *specialization, const char *name,
                          struct gni_builder *text)
{
    const struct gni_program *program = specialization->program;
    text_head(name, text);
    gni_builder_print(text,
                      "    const index i = ((index)blockIdx.x * %d + threadIdx.x) * %d;\n"
                      "    if (i >= a.count)\n        return;\n",
                      GNI_CUDA_BLOCK, specialization->pack);
    text_offsets(specialization, text);
    text_inputs(specialization, text);
    text_move(specialization, text_load, text);
    for (int i = 0; i < program->output_count; i++)
        gni_builder_print(text, "    pack<%s, %d> q%d;\n",
                          gni_cuda_memory_type(program->outputs[i].dtype), specialization->pack, i);
    text_loop_begin(specialization, text);
    text_call(specialization, text);
    for (int i = 0; i < program->output_count; i++)
        gni_builder_print(text, ", q%d.item[k]", i);
    gni_builder_print(text, ");\n");
    text_loop_end(specialization, text);
    for (int i = 0; i < program->output_count && has_turns(specialization); i++)
        gni_builder_print(text, "        rotate<%d>(q%d.item);\n", side_by_side(specialization), i);
    gni_builder_print(text, "    }\n");
    text_move(specialization, text_store, text);
    gni_builder_print(text, "}\n");
}

/* ---- tiles ------------------------------------------------------------------------------------- */

enum {
    TILE_ROWS = GNI_CUDA_TILE / (GNI_CUDA_BLOCK / GNI_CUDA_TILE), /* of a thread */
};

/* Where operand `number` has the element of a tile. */
static void text_tile_place(const struct gni_specialization *specialization, const char *operand,
                            const char *strides, char offset, int number, struct gni_builder *text)
{
    gni_builder_print(text, "a.%s%d[%c%d + x * (offset)a.%s%d[%d] + y * (offset)a.%s%d[%d]]",
                      operand, number, offset, number, strides, number,
                      specialization->layout.ndim - 1, strides, number, specialization->tile);
}

/* Offsets of the tile's first element, from its number. */
static void text_tile_offsets(const struct gni_specialization *specialization,
                              struct gni_builder *text)
{
    const struct gni_program *program = specialization->program;
    const int last = specialization->layout.ndim - 1;
    gni_builder_print(text,
                      "    const int column = threadIdx.x %% %d, row = threadIdx.x / %d;\n"
                      "    const offset width = (offset)a.size[%d], height = (offset)a.size[%d];\n"
                      "    index rest = blockIdx.x, at;\n"
                      "    at = (index)((width + %d) / %d);\n"
                      "    const offset left = (offset)(rest %% at) * %d;\n    rest /= at;\n"
                      "    at = (index)((height + %d) / %d);\n"
                      "    const offset top = (offset)(rest %% at) * %d;\n    rest /= at;\n",
                      GNI_CUDA_TILE, GNI_CUDA_TILE, last, specialization->tile, GNI_CUDA_TILE - 1,
                      GNI_CUDA_TILE, GNI_CUDA_TILE, GNI_CUDA_TILE - 1, GNI_CUDA_TILE,
                      GNI_CUDA_TILE);
    for (int i = 0; i < program->input_count; i++)
        if (specialization->inputs[i] >= GNI_ACCESS_STRIDED)
            gni_builder_print(text, "    offset o%d = 0;\n", i);
    for (int i = 0; i < program->output_count; i++)
        gni_builder_print(text, "    offset w%d = 0;\n", i);
    for (int d = last - 1; d >= 0; d--) {
        if (d == specialization->tile)
            continue;
        gni_builder_print(
            text, "    at = rest %% (index)a.size[%d];\n    rest /= (index)a.size[%d];\n", d, d);
        for (int i = 0; i < program->input_count; i++)
            if (specialization->inputs[i] >= GNI_ACCESS_STRIDED)
                gni_builder_print(text, "    o%d += (offset)at * (offset)a.stride%d[%d];\n", i, i,
                                  d);
        for (int i = 0; i < program->output_count; i++)
            gni_builder_print(text, "    w%d += (offset)at * (offset)a.step%d[%d];\n", i, i, d);
    }
}

/* The elements of a tile that a thread has, some of them side by side: x along the last dimension, y along the other.
 * Consecutive threads are neighbours along the last dimension, or along the other. */
static void text_tile_loop(bool is_transposed, int together, struct gni_builder *text)
{
    gni_builder_print(text,
                      "#pragma unroll %d\n    for (int k = 0; k < %d; k += %d) {\n"
                      "        const offset x = left + %s, y = top + %s;\n"
                      "        if (x >= width || y >= height)\n            continue;\n",
                      together, GNI_CUDA_TILE, GNI_CUDA_BLOCK / GNI_CUDA_TILE,
                      is_transposed ? "row + k" : "column", is_transposed ? "column" : "row + k");
}

/* A block computes a tile. What is transposed is read along its own neighbours, and goes through shared memory. */
static void text_tile(const struct gni_specialization *specialization, const char *name,
                      struct gni_builder *text)
{
    const struct gni_program *program = specialization->program;
    text_head(name, text);
    for (int i = 0; i < program->input_count; i++)
        if (specialization->inputs[i] == GNI_ACCESS_STRIDED_TILE)
            gni_builder_print(text, "    __shared__ %s tile%d[%d][%d];\n",
                              gni_cuda_memory_type(program->inputs[i].held), i, GNI_CUDA_TILE,
                              GNI_CUDA_TILE + 1);
    text_tile_offsets(specialization, text);
    text_tile_loop(true, TILE_ROWS, text);
    for (int i = 0; i < program->input_count; i++)
        if (specialization->inputs[i] == GNI_ACCESS_STRIDED_TILE) {
            gni_builder_print(text, "        tile%d[row + k][column] = ", i);
            text_tile_place(specialization, "in", "stride", 'o', i, text);
            gni_builder_print(text, ";\n");
        }
    gni_builder_print(text, "    }\n    __syncthreads();\n");
    text_tile_loop(false, gni_weight_together(gni_program_weight(program), TILE_ROWS), text);
    for (int i = 0; i < program->output_count; i++)
        gni_builder_print(text, "        %s y%d;\n",
                          gni_cuda_memory_type(program->outputs[i].dtype), i);
    gni_builder_print(text, "        element(a");
    for (int i = 0; i < program->input_count; i++) {
        if (specialization->inputs[i] == GNI_ACCESS_NUMBER)
            continue;
        gni_builder_print(text, ", loaded<%s>(", gni_cuda_type(program->inputs[i].held));
        if (specialization->inputs[i] == GNI_ACCESS_STRIDED_TILE)
            gni_builder_print(text, "tile%d[column][row + k]", i);
        else if (specialization->inputs[i] == GNI_ACCESS_STRIDED)
            text_tile_place(specialization, "in", "stride", 'o', i, text);
        else
            gni_builder_print(text, "*a.in%d", i);
        gni_builder_print(text, ")");
    }
    for (int i = 0; i < program->output_count; i++)
        gni_builder_print(text, ", y%d", i);
    gni_builder_print(text, ");\n");
    for (int i = 0; i < program->output_count; i++) {
        gni_builder_print(text, "        ");
        text_tile_place(specialization, "out", "step", 'w', i, text);
        gni_builder_print(text, " = y%d;\n", i);
    }
    gni_builder_print(text, "    }\n}\n");
}

/* ---- reductions ------------------------------------------------------------------------------------ */

gn_dtype gni_reduce_accumulator(gn_reduction reduction, gn_dtype dtype)
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
    return gni_dtype_kind(computing) == GNI_KIND_FLOATING ? GN_FLOAT64
                                                          : gni_dtype_of_sum(computing);
}

/* A function of the value that is reduced, for the index i: one element, or those of a pack. */
static void text_value(const struct gni_specialization *specialization, struct gni_builder *text)
{
    const struct gni_program *program = specialization->program;
    const char *type = gni_cuda_type(gni_program_held(program, specialization->value));
    gni_builder_print(text, "ELEMENT %s value_at(const arguments &a, index i)\n{\n", type);
    text_offsets(specialization, text);
    gni_builder_print(text, "    return element(a");
    for (int i = 0; i < program->input_count; i++)
        if (specialization->inputs[i] != GNI_ACCESS_NUMBER) {
            gni_builder_print(text, ", loaded<%s>(*(", gni_cuda_type(program->inputs[i].held));
            text_place(specialization->inputs[i], "in", 'o', i, text);
            gni_builder_print(text, "))");
        }
    gni_builder_print(
        text, ");\n}\n\nELEMENT void values_at(const arguments &a, index i, %s (&e)[%d])\n{\n",
        type, specialization->pack);
    text_offsets(specialization, text);
    text_inputs(specialization, text);
    text_load(specialization, false, "    ", text);
    text_loop_begin(specialization, text);
    gni_builder_print(text, "e[k] = ");
    text_call(specialization, text);
    gni_builder_print(text, ");\n");
    text_loop_end(specialization, text);
    if (has_turns(specialization))
        gni_builder_print(text, "        rotate<%d>(e);\n", side_by_side(specialization));
    gni_builder_print(text, "    }\n}\n\n");
}

/* What reduce.cu wants to be defined. */
static void text_reduce(const struct gni_specialization *specialization, const char *name,
                        struct gni_builder *text)
{
    static const char *const kernels[] = {[GNI_REDUCE_ROWS] = "REDUCE_ROWS",
                                          [GNI_REDUCE_SHORT] = "REDUCE_SHORT",
                                          [GNI_REDUCE_COLUMNS] = "REDUCE_COLUMNS"};
    gn_dtype held = gni_program_held(specialization->program, specialization->value);
    gn_dtype accumulator = gni_reduce_accumulator(specialization->reduction, held);
    text_value(specialization, text);
    gni_builder_print(text, "#define NAME %s\n#define %s\n#define REDUCTION reduce_%s\n", name,
                      kernels[specialization->kind], gni_cuda_reduction(specialization->reduction));
    gni_builder_print(text, "#define PACK %d\n" GNI_BLOCK_JOIN_DEFINITIONS, specialization->pack);
    gni_builder_print(text, "#define TOGETHER %d\n", specialization->steps);
    gni_builder_print(text, "typedef %s accumulator;\ntypedef %s element_type;\n",
                      gni_cuda_type(accumulator), gni_cuda_type(held));
    gni_builder_print(text, "#define FINISH(at, x) ((%s *)a.result)[at] = convert<%s>(%s)\n",
                      gni_cuda_memory_type(specialization->result),
                      gni_cuda_type(specialization->result),
                      specialization->reduction == GN_REDUCE_MEAN ? "(x) / a.divisor" : "x");
    gni_builder_add(text, gni_text_reductions, strlen(gni_text_reductions));
    gni_builder_add(text, gni_text_block_join, strlen(gni_text_block_join));
    gni_builder_add(text, gni_text_reduce, strlen(gni_text_reduce));
}

/* What softmax.cu wants to be defined. */
static void text_softmax(const struct gni_specialization *specialization, const char *name,
                         struct gni_builder *text)
{
    gn_dtype held = gni_program_held(specialization->program, specialization->value);
    text_value(specialization, text);
    gni_builder_print(text, "#define STEPS %d\n#define THREADS %d\n#define BLOCKS %d\n",
                      specialization->steps, specialization->threads, specialization->blocks);
    gni_builder_print(text, "#define LANES %d\n#define IS_RAGGED %d\n", specialization->lanes,
                      specialization->is_ragged);
    gni_builder_print(text, "#define NAME %s\n#define IS_LOG %d\n#define PACK %d\n", name,
                      specialization->is_log, specialization->pack);
    gni_builder_print(text,
                      "typedef %s element_type;\ntypedef %s result_type;\ntypedef %s compute;\n",
                      gni_cuda_type(held), gni_cuda_type(specialization->result),
                      gni_cuda_type(gni_dtypes[specialization->result].compute));
    gni_builder_add(text, gni_text_softmax, strlen(gni_text_softmax));
}

void gni_specialization_text(const struct gni_specialization *specialization, const char *name,
                             struct gni_builder *text)
{
    gni_builder_add(text, gni_text_elements, strlen(gni_text_elements));
    gni_builder_print(text, "\ntypedef %s index;\ntypedef %s offset;\n",
                      specialization->is_wide ? "uint64" : "unsigned",
                      specialization->is_wide ? "int64" : "int");
    text_arguments(specialization, text);
    text_element(specialization, text);
    if (is_softmax(specialization))
        text_softmax(specialization, name, text);
    else if (specialization->kind != GNI_REDUCE_NONE)
        text_reduce(specialization, name, text);
    else if (specialization->tile >= 0)
        text_tile(specialization, name, text);
    else
        text_elements(specialization, name, text);
}
