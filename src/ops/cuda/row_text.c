/*
 * row_text.c: the text of a row program's kernel (row_kernel.h), behind elements.cu, reductions.cu and rows.cu.
 *
 * Names: vN is value N, as everywhere; eN the chunks of input N; hN those of a value that is kept; rN the slots of the
 * reduction that gives value N, and jN what they come to; qN the chunk of output N; inN and outN point to a row. nN and wN
 * are input N of the next row, where a block goes through rows one after the other: RK4. Where
 * neighbours are computed two at a time, they are vNa and vNb, and pN is the pair.
 */
#include "ops/cuda/generate.h"
#include "ops/cuda/kernel_texts.h"
#include "ops/cuda/row_kernel.h"

#include <stdio.h>
#include <string.h>

static bool is_needed(const struct gni_row_kernel *kernel, int phase, int value)
{
    return gni_row_is_needed(&kernel->phases, phase, value);
}

static bool is_kept(const struct gni_row_kernel *kernel, int value)
{
    return gni_row_has(&kernel->phases.kept, value);
}

static const struct gni_step *step_of(const struct gni_row_kernel *kernel, int value)
{
    return &kernel->program->steps[value - kernel->program->input_count];
}

static int value_count(const struct gni_program *program)
{
    return program->input_count + program->step_count;
}

/* An input whose chunks are loaded. */
static bool is_loaded(const struct gni_row_kernel *kernel, int input)
{
    return kernel->inputs[input] >= GNI_ROW_DENSE;
}

void gni_row_kernel_name(const struct gni_row_kernel *kernel, char *name, size_t size)
{
    size_t used = gni_program_words(kernel->program, name, size);
    snprintf(name + used, size - used, "kernel");
}

/* ---- arguments ------------------------------------------------------------------------------------ */

static void arguments_text(const struct gni_row_kernel *kernel, struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
    gni_builder_print(
        text,
        "\nstruct arguments {\n    int64 kept, columns, shift, part;\n    float *partial;\n"
        "    double factor, divisor;\n    int64 size[%d];\n",
        kernel->layout.ndim);
    for (int i = 0; i < program->input_count; i++) {
        if (kernel->inputs[i] == GNI_ROW_NUMBER)
            gni_builder_print(text, "    __align__(8) %s number%d;\n",
                              gni_cuda_type(program->inputs[i].held), i);
        else
            gni_builder_print(text, "    const %s *in%d;\n    int64 stride%d[%d];\n",
                              gni_cuda_memory_type(program->inputs[i].held), i, i,
                              kernel->layout.ndim);
    }
    for (int i = 0; i < program->output_count; i++)
        gni_builder_print(text, "    %s *out%d;\n", gni_cuda_memory_type(program->outputs[i].dtype),
                          i);
    gni_builder_print(text, "};\n\n");
}

int gni_row_kernel_arguments(const struct gni_row_kernel *kernel, void *partial,
                             uint64_t *arguments)
{
    const struct gni_program *program = kernel->program;
    size_t row = (size_t)kernel->layout.ndim;
    double divisor = (double)program->columns, factor = 1 / divisor;
    uint64_t *at = arguments;
    *at++ = (uint64_t)(program->count / program->columns);
    *at++ = (uint64_t)program->columns;
    *at++ = (uint64_t)__builtin_ctz((unsigned)kernel->lanes);
    *at++ = (uint64_t)kernel->part_rows;
    *at++ = (uintptr_t)partial;
    memcpy(at++, &factor, sizeof factor);
    memcpy(at++, &divisor, sizeof divisor);
    memcpy(at, kernel->layout.sizes, row * sizeof *at);
    at += row;
    for (int i = 0; i < program->input_count; i++) {
        bool is_number = kernel->inputs[i] == GNI_ROW_NUMBER;
        *at++ = is_number ? program->inputs[i].number : (uintptr_t)program->inputs[i].data;
        if (!is_number) {
            memcpy(at, kernel->layout.strides[i], row * sizeof *at);
            at += row;
        }
    }
    for (int i = 0; i < program->output_count; i++)
        *at++ = (uintptr_t)program->outputs[i].data;
    return (int)(at - arguments);
}

/* ---- where a row is --------------------------------------------------------------------------------- */

/* A function that gives the place of a column of an input, in elements. */
static void columns_text(const struct gni_row_kernel *kernel, int input, struct gni_builder *text)
{
    gni_builder_print(text,
                      "ELEMENT int64 column%d(const arguments &a, index column)\n{\n"
                      "    index rest = column;\n    int64 place = 0;\n",
                      input);
    for (int d = kernel->layout.ndim - 1; d > kernel->kept_ndim; d--)
        gni_builder_print(text,
                          "    place += (int64)(rest %% (index)a.size[%d]) * a.stride%d[%d];\n"
                          "    rest /= (index)a.size[%d];\n",
                          d, input, d, d);
    gni_builder_print(text, "    return place + (int64)rest * a.stride%d[%d];\n}\n", input,
                      kernel->kept_ndim);
}

/* Where the row is along the dimensions of rows. */
static void place_text(const struct gni_row_kernel *kernel, struct gni_builder *text)
{
    for (int d = kernel->kept_ndim - 1; d >= 0; d--) {
        bool is_last = d == kernel->kept_ndim - 1;
        if (kernel->kept_ndim == 1)
            gni_builder_print(text, "    const int64 at0 = row;\n");
        else if (d > 0)
            gni_builder_print(
                text,
                "    %srest = %s;\n    const int64 at%d = rest %% (index)a.size[%d];\n"
                "    rest /= (index)a.size[%d];\n",
                is_last ? "index " : "", is_last ? "row" : "rest", d, d, d);
        else
            gni_builder_print(text, "    const int64 at0 = rest;\n");
    }
}

static bool is_memory(const struct gni_row_kernel *kernel, int input)
{
    return kernel->inputs[input] != GNI_ROW_NUMBER;
}

/* Where an input has the row. */
static void input_row_text(const struct gni_row_kernel *kernel, int input, struct gni_builder *text)
{
    gni_builder_print(text, "    const %s *in%d = a.in%d",
                      gni_cuda_memory_type(kernel->program->inputs[input].held), input, input);
    for (int d = 0; d < kernel->kept_ndim && !gni_row_kernel_is_same(kernel, input); d++)
        gni_builder_print(text, " + at%d * a.stride%d[%d]", d, input, d);
    gni_builder_print(text, ";\n");
}

/* Where each input has the row, and what is one for all of it. */
static void input_rows_text(const struct gni_row_kernel *kernel, struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
    for (int i = 0; i < program->input_count; i++) {
        const char *type = gni_cuda_type(program->inputs[i].held);
        if (!is_memory(kernel, i))
            continue;
        input_row_text(kernel, i, text);
        if (kernel->inputs[i] == GNI_ROW_ONE)
            gni_builder_print(text, "    const %s v%d = loaded<%s>(*in%d);\n", type, i, type, i);
    }
}

static void output_rows_text(const struct gni_row_kernel *kernel, struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
    for (int i = 0; i < program->output_count; i++)
        if (!program->outputs[i].is_column)
            gni_builder_print(text, "    %s *out%d = a.out%d + (int64)row%s;\n",
                              gni_cuda_memory_type(program->outputs[i].dtype), i, i,
                              program->outputs[i].is_row ? "" : " * a.columns");
}

/* ---- chunks ---------------------------------------------------------------------------------------- */

/* Begins a loop over the chunks that a thread has, or loads together. */
static void loop_text(const struct gni_row_kernel *kernel, struct gni_builder *text)
{
    gni_builder_print(text, "#pragma unroll\n    for (int u = 0; u < STEPS; u++) {\n"
                            "        const index column = first + (index)(u * LANES * CHUNK);\n");
    if (!kernel->is_complete)
        gni_builder_print(text, "        if (column >= columns)\n            continue;\n");
}

static void chunks_declare(const struct gni_row_kernel *kernel, int input, char name,
                           struct gni_builder *text)
{
    gni_builder_print(text, "    chunk<%s> %c%d[STEPS];\n",
                      gni_cuda_memory_type(kernel->program->inputs[input].held), name, input);
}

/* Chunk u of an input, into e or n. */
static void chunk_load_text(const struct gni_row_kernel *kernel, int input, char name,
                            struct gni_builder *text)
{
    if (kernel->inputs[input] == GNI_ROW_DENSE)
        gni_builder_print(text, "        chunk_load<%d>(%c%d[u], in%d, column, columns);\n",
                          kernel->input_vec[input], name, input, input);
    else
        gni_builder_print(text,
                          "        %c%d[u].clear();\n#pragma unroll\n"
                          "        for (int k = 0; k < CHUNK; k++)\n"
                          "            if (IS_EXACT || column + k < columns)\n"
                          "                %c%d[u].set(k, in%d[column%d(a, column + k)]);\n",
                          name, input, name, input, input, input);
}

/* Loads the chunks that a phase needs; phase -1: all of them. */
static void loads_text(const struct gni_row_kernel *kernel, int phase, struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
    bool is_any = false;
    for (int i = 0; i < program->input_count; i++) {
        if (!is_loaded(kernel, i) || (phase >= 0 && !is_needed(kernel, phase, i)))
            continue;
        chunks_declare(kernel, i, 'e', text);
        is_any = true;
    }
    if (!is_any)
        return;
    loop_text(kernel, text);
    for (int i = 0; i < program->input_count; i++)
        if (is_loaded(kernel, i) && (phase < 0 || is_needed(kernel, phase, i)))
            chunk_load_text(kernel, i, 'e', text);
    gni_builder_print(text, "    }\n");
}

/* ---- rows that are loaded ahead --------------------------------------------------------------------- */

/* What all rows have is loaded once. */
static void same_text(const struct gni_row_kernel *kernel, struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
    for (int i = 0; i < program->input_count; i++) {
        const char *type = gni_cuda_type(program->inputs[i].held);
        if (!is_memory(kernel, i) || !gni_row_kernel_is_same(kernel, i))
            continue;
        input_row_text(kernel, i, text);
        if (!is_loaded(kernel, i)) {
            gni_builder_print(text, "    const %s v%d = loaded<%s>(*in%d);\n", type, i, type, i);
            continue;
        }
        chunks_declare(kernel, i, 'e', text);
        gni_builder_print(text, "    {\n    const index columns = (index)a.columns;\n");
        loop_text(kernel, text);
        chunk_load_text(kernel, i, 'e', text);
        gni_builder_print(text, "    }\n    }\n");
    }
}

/* A function that loads a row: chunks into n, what is one for all of the row into w. */
static void ahead_text(const struct gni_row_kernel *kernel, struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
    for (int i = 0; i < program->input_count; i++) {
        if (!is_memory(kernel, i) || gni_row_kernel_is_same(kernel, i))
            continue;
        if (is_loaded(kernel, i))
            chunks_declare(kernel, i, 'n', text);
        else
            gni_builder_print(text, "    %s w%d;\n", gni_cuda_type(program->inputs[i].held), i);
    }
    gni_builder_print(text, "    const auto row_load = [&](index number) {\n"
                            "    const bool is_there = number < end;\n"
                            "    const index row = is_there ? number : begin;\n"
                            "    const index columns = is_there ? (index)a.columns : 0;\n");
    place_text(kernel, text);
    for (int i = 0; i < program->input_count; i++) {
        if (!is_memory(kernel, i) || gni_row_kernel_is_same(kernel, i))
            continue;
        input_row_text(kernel, i, text);
        if (!is_loaded(kernel, i))
            gni_builder_print(text, "    w%d = loaded<%s>(*in%d);\n", i,
                              gni_cuda_type(program->inputs[i].held), i);
    }
    loop_text(kernel, text);
    for (int i = 0; i < program->input_count; i++)
        if (is_loaded(kernel, i) && !gni_row_kernel_is_same(kernel, i))
            chunk_load_text(kernel, i, 'n', text);
    gni_builder_print(text, "    }\n    };\n    row_load(begin + (threadIdx.x >> SHIFT));\n");
}

/* The row that was loaded ahead becomes the current one, and the next is loaded. */
static void advance_text(const struct gni_row_kernel *kernel, struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
    for (int i = 0; i < program->input_count; i++) {
        if (!is_memory(kernel, i) || gni_row_kernel_is_same(kernel, i))
            continue;
        if (!is_loaded(kernel, i)) {
            gni_builder_print(text, "    const %s v%d = w%d;\n",
                              gni_cuda_type(program->inputs[i].held), i, i);
            continue;
        }
        chunks_declare(kernel, i, 'e', text);
        gni_builder_print(text,
                          "#pragma unroll\n    for (int u = 0; u < STEPS; u++)\n"
                          "        e%d[u] = n%d[u];\n",
                          i, i);
    }
    gni_builder_print(text, "    if (base + ROWS < end)\n        row_load(number + ROWS);\n");
}

static bool has_pair(const struct gni_row_kernel *kernel, int value)
{
    return kernel->is_paired && kernel->pair[value] >= 0;
}

static const char *pair_type(const struct gni_row_kernel *kernel, int value)
{
    return gni_cuda_type((gn_dtype)kernel->pair[value]);
}

/* The elements that are computed together: what is added to k, and to their names. */
static int element_count(const struct gni_row_kernel *kernel)
{
    return kernel->is_paired ? 2 : 1;
}

static const char *element_suffix(const struct gni_row_kernel *kernel, int element)
{
    return !kernel->is_paired ? "" : element == 0 ? "a" : "b";
}

/* The name of an element of a value. */
static const char *element_name(const struct gni_row_kernel *kernel, int value, int element,
                                char name[16])
{
    snprintf(name, 16, "v%d%s", value,
             kernel->program->is_row[value] ? "" : element_suffix(kernel, element));
    return name;
}

/* Whether the largest or smallest of pairs is asked for. */
static bool has_pair_slots(const struct gni_row_kernel *kernel, const struct gni_step *step)
{
    return (step->reduction == GN_REDUCE_MAXIMUM || step->reduction == GN_REDUCE_MINIMUM) &&
           has_pair(kernel, step->in[0]);
}

/* Whether a step reads a full operand as a pair, not its elements. */
static bool reads_pair(const struct gni_row_kernel *kernel, int reader, int value)
{
    const struct gni_step *step = step_of(kernel, reader);
    if (!has_pair(kernel, value))
        return false;
    if (step->kind == GNI_STEP_REDUCE)
        return has_pair_slots(kernel, step);
    return gni_row_has(&kernel->absorbed, reader) ||
           (step->kind == GNI_STEP_CONVERT && has_pair(kernel, reader));
}

/* Whether an output is stored as pairs. */
static bool stores_pair(const struct gni_row_kernel *kernel, const struct gni_output *output)
{
    return gni_dtype_is_half(output->dtype) && !kernel->program->is_row[output->value] &&
           has_pair(kernel, output->value) && kernel->pair[output->value] == (int)output->dtype;
}

/* Whether the elements of a pair are read by themselves. */
static bool is_read_unpaired(const struct gni_row_kernel *kernel, int value)
{
    const struct gni_program *program = kernel->program;
    for (int v = program->input_count; v < value_count(program); v++) {
        const struct gni_step *step = step_of(kernel, v);
        for (int i = 0; i < 3 && step->in[i] >= 0; i++)
            if (step->in[i] == value && !reads_pair(kernel, v, value))
                return true;
    }
    for (int i = 0; i < program->output_count; i++)
        if (program->outputs[i].value == value &&
            (program->outputs[i].is_column || !stores_pair(kernel, &program->outputs[i])))
            return true;
    return false;
}

/* The elements of a pair that has been made, where something reads them. */
static void unpaired_text(const struct gni_row_kernel *kernel, int value, struct gni_builder *text)
{
    const char *half = pair_type(kernel, value);
    if (!is_read_unpaired(kernel, value))
        return;
    gni_builder_print(text, "            ITEMS_OF(%s, %d);\n", half, value);
}

static void input_text(const struct gni_row_kernel *kernel, int input, struct gni_builder *text)
{
    const char *type = gni_cuda_type(kernel->program->inputs[input].held);
    if (has_pair(kernel, input))
        gni_builder_print(text, "            unsigned p%d = e%d[u].word[k / 2];\n", input, input);
    for (int i = 0;
         i < element_count(kernel) && (!has_pair(kernel, input) || is_read_unpaired(kernel, input));
         i++)
        gni_builder_print(text, "            const %s v%d%s = loaded<%s>(e%d[u].item(k + %d));\n",
                          type, input, element_suffix(kernel, i), type, input, i);
}

/* A value that an earlier phase has kept. */
static void kept_text(const struct gni_row_kernel *kernel, int value, struct gni_builder *text)
{
    if (has_pair(kernel, value)) {
        gni_builder_print(text, "            const unsigned p%d = h%d[u][k / 2];\n", value, value);
        unpaired_text(kernel, value, text);
        return;
    }
    for (int i = 0; i < element_count(kernel); i++)
        gni_builder_print(text, "            const %s v%d%s = h%d[u][k + %d];\n",
                          gni_cuda_type(step_of(kernel, value)->held), value,
                          element_suffix(kernel, i), value, i);
}

/* A step whose value is a pair: a conversion, or a rounding, which is one with the step before where that is absorbed. */
static void paired_text(const struct gni_row_kernel *kernel, int value, struct gni_builder *text)
{
    const struct gni_step *step = step_of(kernel, value);
    const char *half = pair_type(kernel, value);
    char low[16], high[16];
    int from = step->in[0];
    if (step->kind == GNI_STEP_CONVERT && has_pair(kernel, from)) {
        gni_builder_print(text, "            unsigned p%d = p%d;\n", value, from);
    } else if (step->kind == GNI_STEP_CONVERT) {
        gni_builder_print(text,
                          "            const unsigned p%d = pair_of<%s>(convert<float32>(%s), "
                          "convert<float32>(%s));\n",
                          value, half, element_name(kernel, from, 0, low),
                          element_name(kernel, from, 1, high));
    } else if (gni_row_has(&kernel->absorbed, from)) {
        const struct gni_step *absorbed = step_of(kernel, from);
        gni_builder_print(text, "            const unsigned p%d = pair_%s<%s>(", value,
                          gni_ops[absorbed->op].name, half);
        for (int i = 0; i < 3 && absorbed->in[i] >= 0; i++)
            gni_builder_print(text, "%sp%d", i > 0 ? ", " : "", absorbed->in[i]);
        gni_builder_print(text, ");\n");
    } else {
        gni_builder_print(text, "            const unsigned p%d = pair_of<%s>(%s, %s);\n", value,
                          half, element_name(kernel, from, 0, low),
                          element_name(kernel, from, 1, high));
    }
    unpaired_text(kernel, value, text);
}

static void full_step_text(const struct gni_row_kernel *kernel, int value, struct gni_builder *text)
{
    if (gni_row_has(&kernel->absorbed, value) && kernel->is_paired)
        return;
    if (has_pair(kernel, value))
        paired_text(kernel, value, text);
    else
        for (int i = 0; i < element_count(kernel); i++)
            gni_step_text(kernel->program, value - kernel->program->input_count, "            ",
                          element_suffix(kernel, i), text);
    if (!is_kept(kernel, value))
        return;
    if (has_pair(kernel, value))
        gni_builder_print(text, "            h%d[u][k / 2] = p%d;\n", value, value);
    else
        for (int i = 0; i < element_count(kernel); i++)
            gni_builder_print(text, "            h%d[u][k + %d] = v%d%s;\n", value, i, value,
                              element_suffix(kernel, i));
}

/* What element k of chunk u is in a phase, or the pair there: loaded, kept or computed. */
static void values_text(const struct gni_row_kernel *kernel, int phase, struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
    for (int v = 0; v < value_count(program); v++) {
        if (!is_needed(kernel, phase, v))
            continue;
        if (v < program->input_count)
            input_text(kernel, v, text);
        else if (is_kept(kernel, v) && kernel->phases.phase[v] < phase)
            kept_text(kernel, v, text);
        else
            full_step_text(kernel, v, text);
    }
}

/* ---- reductions --------------------------------------------------------------------------------------- */

static bool is_reduced_in(const struct gni_row_kernel *kernel, int value, int phase)
{
    return gni_row_is_reduced_in(&kernel->phases, phase, value);
}

gn_dtype gni_row_slot_type(gn_reduction reduction, gn_dtype from)
{
    bool is_sum = reduction == GN_REDUCE_SUM || reduction == GN_REDUCE_MEAN;
    return is_sum && from == GN_FLOAT32 ? GN_FLOAT32 : gni_reduce_accumulator(reduction, from);
}

static void slots_text(const struct gni_row_kernel *kernel, int phase, struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
    for (int v = program->input_count; v < value_count(program); v++) {
        const struct gni_step *step = step_of(kernel, v);
        if (!is_reduced_in(kernel, v, phase))
            continue;
        bool is_paired = has_pair_slots(kernel, step);
        gni_builder_print(text, "    %sslots<reduce_%s, %s, %s> r%d;\n    r%d.begin();\n",
                          is_paired ? "pair_" : "", gni_cuda_reduction(step->reduction),
                          is_paired ? pair_type(kernel, step->in[0])
                                    : gni_cuda_type(gni_row_slot_type(step->reduction, step->from)),
                          gni_cuda_type(gni_reduce_accumulator(step->reduction, step->from)), v, v);
    }
}

/* `format` for each reduction of values of a phase, with its number. */
static void reductions_print(const struct gni_row_kernel *kernel, int phase, const char *before,
                             const char *after, struct gni_builder *text)
{
    for (int v = kernel->program->input_count; v < value_count(kernel->program); v++)
        if (is_reduced_in(kernel, v, phase))
            gni_builder_print(text, "%sr%d%s", before, v, after);
}

static void slot_add_text(const struct gni_row_kernel *kernel, int value, struct gni_builder *text)
{
    const struct gni_step *step = step_of(kernel, value);
    char name[16];
    if (has_pair_slots(kernel, step)) {
        gni_builder_print(text,
                          "            if (IS_EXACT || from + k < columns)\n"
                          "                r%d.add(k, p%d, IS_EXACT || from + k + 1 < columns);\n",
                          value, step->in[0]);
        return;
    }
    for (int i = 0; i < element_count(kernel); i++) {
        if (!kernel->is_exact)
            gni_builder_print(text, "            if (from + k + %d < columns)\n    ", i);
        gni_builder_print(text, "            r%d.add(k + %d, convert<%s>(%s));\n", value, i,
                          gni_cuda_type(gni_row_slot_type(step->reduction, step->from)),
                          element_name(kernel, step->in[0], i, name));
    }
}

static void slots_add_text(const struct gni_row_kernel *kernel, int phase, struct gni_builder *text)
{
    for (int v = kernel->program->input_count; v < value_count(kernel->program); v++)
        if (is_reduced_in(kernel, v, phase))
            slot_add_text(kernel, v, text);
}

/* The type of what a row comes to. */
static gn_dtype joined_type(const struct gni_row_kernel *kernel, const struct gni_step *step)
{
    return kernel->is_short ? gni_row_slot_type(step->reduction, step->from)
                            : gni_reduce_accumulator(step->reduction, step->from);
}

/* The threads of a row join what they have come to, and all get the result. */
static void join_text(const struct gni_row_kernel *kernel, int phase, struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
    if (!kernel->is_short)
        reductions_print(kernel, phase, "    ", ".fold();\n", text);
    for (int v = program->input_count; v < value_count(program); v++) {
        const struct gni_step *step = step_of(kernel, v);
        if (is_reduced_in(kernel, v, phase))
            gni_builder_print(
                text, "    %s j%d = lanes_join<reduce_%s>(r%d.%s, %s);\n",
                gni_cuda_type(joined_type(kernel, step)), v, gni_cuda_reduction(step->reduction), v,
                kernel->is_short ? "sum()" : "total", kernel->lanes <= 32 ? "LANES" : "32");
    }
    if (kernel->lanes <= 32)
        return;
    for (int v = program->input_count; v < value_count(program); v++)
        if (is_reduced_in(kernel, v, phase))
            gni_builder_print(text,
                              "    __shared__ %s warps%d[2][LANES / 32];\n"
                              "    if (threadIdx.x %% 32 == 0)\n"
                              "        warps%d[turn][threadIdx.x / 32] = j%d;\n",
                              gni_cuda_type(joined_type(kernel, step_of(kernel, v))), v, v, v);
    gni_builder_print(text, "    __syncthreads();\n");
    for (int v = program->input_count; v < value_count(program); v++)
        if (is_reduced_in(kernel, v, phase))
            gni_builder_print(text,
                              "    j%d = lanes_join<reduce_%s>(warps%d[turn][threadIdx.x & "
                              "(LANES / 32 - 1)], LANES / 32);\n",
                              v, gni_cuda_reduction(step_of(kernel, v)->reduction), v);
}

/* A reduction's result as a value: a half is rounded once. */
static void result_text(const struct gni_row_kernel *kernel, int value, struct gni_builder *text)
{
    const struct gni_step *step = step_of(kernel, value);
    char total[64];
    bool is_mean = step->reduction == GN_REDUCE_MEAN;
    bool is_double = gni_dtypes[step->half].compute == GN_FLOAT64;
    snprintf(total, sizeof total, "j%d%s", value,
             !is_mean    ? ""
             : is_double ? " / a.divisor"
                         : " * a.factor");
    if (step->half != step->held)
        gni_builder_print(text, "    const %s v%d = convert<%s>(convert<%s>(%s));\n",
                          gni_cuda_type(step->held), value, gni_cuda_type(step->held),
                          gni_cuda_type(step->half), total);
    else
        gni_builder_print(text, "    const %s v%d = convert<%s>(%s);\n", gni_cuda_type(step->held),
                          value, gni_cuda_type(step->held), total);
}

/* ---- phases -------------------------------------------------------------------------------------------- */

static bool is_stored_in(const struct gni_row_kernel *kernel, int output, int phase)
{
    return gni_row_is_stored_in(&kernel->phases, phase, output);
}

/* Row values of a phase: what its reductions gave, and what is made of that. */
static void row_values_text(const struct gni_row_kernel *kernel, int phase,
                            struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
    for (int v = program->input_count; v < value_count(program); v++) {
        if (!program->is_row[v] || kernel->phases.phase[v] != phase)
            continue;
        if (step_of(kernel, v)->kind == GNI_STEP_REDUCE)
            result_text(kernel, v, text);
        else
            gni_step_text(program, v - program->input_count, "    ", "", text);
        if (has_pair(kernel, v))
            gni_builder_print(text, "    const unsigned p%d = pair_of<%s>(v%d, v%d);\n", v,
                              pair_type(kernel, v), v, v);
    }
}

/* Puts the elements of an output into its chunk. */
static void output_text(const struct gni_row_kernel *kernel, int output, struct gni_builder *text)
{
    const struct gni_output *one = &kernel->program->outputs[output];
    char name[16];
    if (stores_pair(kernel, one)) {
        gni_builder_print(text, "            q%d.word[k / 2] = p%d;\n", output, one->value);
        return;
    }
    for (int i = 0; i < element_count(kernel); i++)
        gni_builder_print(text, "            q%d.set(k + %d, convert<%s>(%s));\n", output, i,
                          gni_cuda_type(one->dtype), element_name(kernel, one->value, i, name));
}

/* Adds the elements of an output to its sums of columns. */
static void sum_text(const struct gni_row_kernel *kernel, int output, struct gni_builder *text)
{
    char name[16];
    for (int i = 0; i < element_count(kernel); i++)
        gni_builder_print(text, "            c%d[u][k + %d] += %s;\n", output, i,
                          element_name(kernel, kernel->program->outputs[output].value, i, name));
}

/* ---- loops over chunks ------------------------------------------------------------------------------- */

static bool is_touched_in(const struct gni_row_kernel *kernel, int value, int phase)
{
    bool is_array =
        value < kernel->program->input_count ? is_loaded(kernel, value) : is_kept(kernel, value);
    return is_array && is_needed(kernel, phase, value);
}

/* After one of several turns over a chunk: what lies in arrays of elements or words rotates. */
static void chunk_rotate_text(const struct gni_row_kernel *kernel, int phase,
                              struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
    const int by = GNI_ROW_CHUNK / kernel->turns;
    for (int v = 0; v < value_count(program); v++) {
        if (is_reduced_in(kernel, v, phase))
            gni_builder_print(text, "        rotate<%d>(r%d.slot);\n",
                              has_pair_slots(kernel, step_of(kernel, v)) ? by / 2 : by, v);
        if (!is_touched_in(kernel, v, phase))
            continue;
        if (v < program->input_count)
            gni_builder_print(text, "        rotate<%d>(e%d[u].word);\n",
                              by / gni_row_in_word(program->inputs[v].held), v);
        else
            gni_builder_print(text, "        rotate<%d>(h%d[u]);\n",
                              has_pair(kernel, v) ? by / 2 : by, v);
    }
    for (int i = 0; i < program->output_count; i++)
        if (is_stored_in(kernel, i, phase))
            gni_builder_print(text, "        rotate<%d>(q%d.word);\n",
                              by / gni_row_in_word(program->outputs[i].dtype), i);
        else if (gni_row_is_summed_in(&kernel->phases, phase, i))
            gni_builder_print(text, "        rotate<%d>(c%d[u]);\n", by, i);
}

/* After one of several turns over the chunks of a thread: the chunks rotate. */
static void steps_rotate_text(const struct gni_row_kernel *kernel, int phase,
                              struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
    for (int v = 0; v < value_count(program); v++)
        if (is_touched_in(kernel, v, phase))
            gni_builder_print(text,
                              v < program->input_count ? "    rotate<1>(e%d);\n"
                                                       : "    chunks_rotate(h%d);\n",
                              v);
    for (int i = 0; i < program->output_count; i++)
        if (gni_row_is_summed_in(&kernel->phases, phase, i))
            gni_builder_print(text, "    chunks_rotate(c%d);\n", i);
}

/* Begins the loops over chunks u and their elements k; `from` is the column of the elements in front. */
static void elements_begin_text(const struct gni_row_kernel *kernel, struct gni_builder *text)
{
    if (kernel->turns > 1)
        gni_builder_print(text,
                          "#pragma unroll 1\n        for (int lap = 0; lap < %d; lap++) {\n"
                          "        const index from = column + lap * %d;\n",
                          kernel->turns, GNI_ROW_CHUNK / kernel->turns);
    else
        gni_builder_print(text, "        const index from = column;\n");
    gni_builder_print(text, "#pragma unroll\n        for (int k = 0; k < %d; k += %d) {\n",
                      GNI_ROW_CHUNK / kernel->turns, element_count(kernel));
}

static void steps_begin_text(const struct gni_row_kernel *kernel, struct gni_builder *text)
{
    if (kernel->step_turns == 1) {
        loop_text(kernel, text);
        return;
    }
    gni_builder_print(text,
                      "#pragma unroll 1\n    for (int step = 0; step < STEPS; step++) {\n"
                      "        const int u = 0;\n"
                      "        const index column = first + (index)(step * LANES * CHUNK);\n");
    if (!kernel->is_complete)
        gni_builder_print(text, "        if (column < columns) {\n");
}

static void steps_end_text(const struct gni_row_kernel *kernel, int phase, struct gni_builder *text)
{
    if (kernel->step_turns > 1 && !kernel->is_complete)
        gni_builder_print(text, "        }\n");
    if (kernel->step_turns > 1)
        steps_rotate_text(kernel, phase, text);
    gni_builder_print(text, "    }\n");
}

/* The chunks of a thread, or those that are loaded together, in one phase. */
static void chunks_text(const struct gni_row_kernel *kernel, int phase, struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
    steps_begin_text(kernel, text);
    for (int i = 0; i < program->output_count; i++)
        if (is_stored_in(kernel, i, phase))
            gni_builder_print(text, "        chunk<%s> q%d;\n        q%d.clear();\n",
                              gni_cuda_memory_type(program->outputs[i].dtype), i, i);
    elements_begin_text(kernel, text);
    values_text(kernel, phase, text);
    slots_add_text(kernel, phase, text);
    for (int i = 0; i < program->output_count; i++)
        if (is_stored_in(kernel, i, phase))
            output_text(kernel, i, text);
        else if (gni_row_is_summed_in(&kernel->phases, phase, i))
            sum_text(kernel, i, text);
    gni_builder_print(text, "        }\n");
    if (kernel->turns > 1) {
        chunk_rotate_text(kernel, phase, text);
        gni_builder_print(text, "        }\n");
    }
    for (int i = 0; i < program->output_count; i++)
        if (is_stored_in(kernel, i, phase))
            gni_builder_print(text, "        chunk_store<%d>(out%d, q%d, column, columns);\n",
                              kernel->output_vec[i], i, i);
    steps_end_text(kernel, phase, text);
}

static void phase_text(const struct gni_row_kernel *kernel, int phase, struct gni_builder *text)
{
    gni_builder_print(text, "\n    /* phase %d */\n", phase);
    row_values_text(kernel, phase, text);
    if (!gni_row_has_loop(&kernel->phases, phase))
        return;
    slots_text(kernel, phase, text);
    if (kernel->is_held) {
        chunks_text(kernel, phase, text);
    } else {
        gni_builder_print(text,
                          "    for (index first = lane * CHUNK%s; first < columns; "
                          "first += STEPS * LANES * CHUNK) {\n",
                          kernel->is_short ? "" : ", loads = 0");
        loads_text(kernel, phase, text);
        chunks_text(kernel, phase, text);
        if (!kernel->is_short) {
            gni_builder_print(text, "    if (++loads == SEGMENT / STEPS) {\n        loads = 0;\n");
            reductions_print(kernel, phase, "        ", ".fold();\n", text);
            gni_builder_print(text, "    }\n");
        }
        gni_builder_print(text, "    }\n");
    }
    join_text(kernel, phase, text);
}

/* All of the rows that a block has at a time. */
static void body_text(const struct gni_row_kernel *kernel, struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
    if (kernel->is_ahead) {
        advance_text(kernel, text);
    } else {
        if (kernel->is_held)
            gni_builder_print(text, "    const index first = lane * CHUNK;\n");
        place_text(kernel, text);
        input_rows_text(kernel, text);
    }
    output_rows_text(kernel, text);
    if (kernel->is_held && !kernel->is_ahead)
        loads_text(kernel, -1, text);
    for (int v = program->input_count; v < value_count(program); v++)
        if (is_kept(kernel, v))
            gni_builder_print(text, "    %s h%d[STEPS][%s];\n",
                              has_pair(kernel, v) ? "unsigned"
                                                  : gni_cuda_type(step_of(kernel, v)->held),
                              v, has_pair(kernel, v) ? "CHUNK / 2" : "CHUNK");
    for (int p = 0; p < kernel->phases.count; p++)
        phase_text(kernel, p, text);
    gni_builder_print(text, "\n    if (lane == 0 && is_there) {\n");
    for (int i = 0; i < program->output_count; i++)
        if (program->outputs[i].is_row)
            gni_builder_print(text, "        *out%d = convert<%s>(v%d);\n", i,
                              gni_cuda_type(program->outputs[i].dtype), program->outputs[i].value);
    gni_builder_print(text, "    }\n");
}

/* Sums of columns: a block has a part of the rows, some at a time. */
static void parts_text(const struct gni_row_kernel *kernel, struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
    int sum = 0;
    for (int i = 0; i < program->output_count; i++)
        if (program->outputs[i].is_column)
            gni_builder_print(text, "    float c%d[STEPS][CHUNK] = {};\n", i);
    gni_builder_print(text, "    const index begin = (index)blockIdx.x * (index)a.part;\n"
                            "    const index rest_of_all = (index)a.kept - begin;\n"
                            "    const index end = begin + (rest_of_all < (index)a.part ? "
                            "rest_of_all : (index)a.part);\n");
    if (kernel->is_ahead) {
        gni_builder_print(text, "    const index first = lane * CHUNK;\n");
        same_text(kernel, text);
        ahead_text(kernel, text);
    }
    gni_builder_print(text, "    int turn = 0;\n#pragma unroll 1\n"
                            "    for (index base = begin; base < end; base += ROWS, turn ^= 1) {\n"
                            "    const index number = base + (threadIdx.x >> SHIFT);\n"
                            "    const bool is_there = number < end;\n"
                            "    const index row = is_there ? number : begin;\n"
                            "    const index columns = is_there ? (index)a.columns : 0;\n");
    body_text(kernel, text);
    gni_builder_print(text, "    }\n    float *const partial = a.partial + "
                            "(int64)blockIdx.x * (SUMS * a.columns);\n");
    for (int i = 0; i < program->output_count; i++)
        if (program->outputs[i].is_column)
            gni_builder_print(text,
                              "    part_store(c%d, partial + %d * a.columns, lane, "
                              "(index)a.columns);\n",
                              i, sum++);
}

/* The kernel: a block has one row, or several with some threads of a warp each. */
static void kernel_text(const struct gni_row_kernel *kernel, const char *name,
                        struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
    gni_builder_print(text,
                      "\nextern \"C\" __global__ void __launch_bounds__(%d, %d) %s(const "
                      "__grid_constant__ arguments a)\n{\n    kernel_begin();\n"
                      "    const index lane = threadIdx.x & (LANES - 1);\n",
                      kernel->threads, kernel->blocks, name);
    for (int i = 0; i < program->input_count; i++)
        if (kernel->inputs[i] == GNI_ROW_NUMBER)
            gni_builder_print(text, "    const %s v%d = a.number%d;\n",
                              gni_cuda_type(program->inputs[i].held), i, i);
    if (kernel->sum_count > 0) {
        parts_text(kernel, text);
    } else {
        if (kernel->lanes > 32)
            gni_builder_print(text, "    const int turn = 0;\n");
        gni_builder_print(
            text, "    const index number = (index)blockIdx.x * ROWS + (threadIdx.x >> SHIFT);\n"
                  "    const bool is_there = number < (index)a.kept;\n"
                  "    index row = is_there ? number : 0;\n"
                  "    index columns = is_there ? (index)a.columns : 0;\n");
        body_text(kernel, text);
    }
    gni_builder_print(text, "}\n");
}

/* Whether an element of a chunk has 4 bytes or more. */
static bool has_words(const struct gni_row_kernel *kernel)
{
    const struct gni_program *program = kernel->program;
    bool is_any = false;
    for (int i = 0; i < program->input_count; i++)
        is_any |= is_loaded(kernel, i) && gni_row_in_word(program->inputs[i].held) == 1;
    for (int i = 0; i < program->output_count; i++)
        is_any |= gni_row_in_word(program->outputs[i].dtype) == 1;
    return is_any;
}

void gni_row_kernel_text(const struct gni_row_kernel *kernel, const char *name,
                         struct gni_builder *text)
{
    gni_builder_add(text, gni_text_elements, strlen(gni_text_elements));
    gni_builder_print(text, "\ntypedef %s index;\n", kernel->is_wide ? "uint64" : "unsigned");
    if (gni_row_kernel_has_any_lanes(kernel))
        gni_builder_print(text, "#define SHIFT ((int)a.shift)\n");
    else
        gni_builder_print(text, "#define SHIFT %d\n", __builtin_ctz((unsigned)kernel->lanes));
    gni_builder_print(text,
                      "#define LANES (1 << SHIFT)\n#define THREADS %d\n"
                      "#define ROWS (THREADS >> SHIFT)\n#define STEPS %d\n#define IS_EXACT %d\n"
                      "#define SUMS %d\n#define HAS_WORDS %d\n#define IS_LONG %d\n",
                      kernel->threads, kernel->steps, kernel->is_exact, kernel->sum_count,
                      has_words(kernel), !kernel->is_short);
    gni_builder_add(text, gni_text_reductions, strlen(gni_text_reductions));
    gni_builder_add(text, gni_text_rows, strlen(gni_text_rows));
    arguments_text(kernel, text);
    for (int i = 0; i < kernel->program->input_count; i++)
        if (kernel->inputs[i] == GNI_ROW_STRIDED)
            columns_text(kernel, i, text);
    kernel_text(kernel, name, text);
}
