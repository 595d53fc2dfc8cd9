/*
 * row_text.c: the text of a row program's kernel (row_kernel.h), behind elements.cu, reductions.cu and rows.cu.
 *
 * Names: vN is value N, as everywhere; eN the chunks of input N; hN those of a value that is kept; rN the slots of the
 * reduction that gives value N; qN the chunk of output N; inN and outN point to a row.
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
    gni_builder_print(text,
                      "\nstruct arguments {\n    int64 kept, columns, shift;\n"
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

int gni_row_kernel_arguments(const struct gni_row_kernel *kernel, uint64_t *arguments)
{
    const struct gni_program *program = kernel->program;
    size_t row = (size_t)kernel->layout.ndim;
    double divisor = (double)program->columns, factor = 1 / divisor;
    uint64_t *at = arguments;
    *at++ = (uint64_t)(program->count / program->columns);
    *at++ = (uint64_t)program->columns;
    *at++ = (uint64_t)__builtin_ctz((unsigned)kernel->lanes);
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

/* Where each input has the row, and what is one for all of it. */
static void rows_text(const struct gni_row_kernel *kernel, struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
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
    for (int i = 0; i < program->input_count; i++) {
        const char *type = gni_cuda_type(program->inputs[i].held);
        if (kernel->inputs[i] == GNI_ROW_NUMBER)
            continue;
        gni_builder_print(text, "    const %s *const in%d = a.in%d",
                          gni_cuda_memory_type(program->inputs[i].held), i, i);
        for (int d = 0; d < kernel->kept_ndim; d++)
            gni_builder_print(text, " + at%d * a.stride%d[%d]", d, i, d);
        gni_builder_print(text, ";\n");
        if (kernel->inputs[i] == GNI_ROW_ONE)
            gni_builder_print(text, "    const %s v%d = loaded<%s>(*in%d);\n", type, i, type, i);
    }
    for (int i = 0; i < program->output_count; i++)
        gni_builder_print(text, "    %s *const out%d = a.out%d + (int64)row%s;\n",
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

/* Loads the chunks that a phase needs; phase -1: all of them. */
static void loads_text(const struct gni_row_kernel *kernel, int phase, struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
    bool is_any = false;
    for (int i = 0; i < program->input_count; i++) {
        if (!is_loaded(kernel, i) || (phase >= 0 && !is_needed(kernel, phase, i)))
            continue;
        gni_builder_print(text, "    chunk<%s> e%d[STEPS];\n",
                          gni_cuda_memory_type(program->inputs[i].held), i);
        is_any = true;
    }
    if (!is_any)
        return;
    loop_text(kernel, text);
    for (int i = 0; i < program->input_count; i++) {
        if (!is_loaded(kernel, i) || (phase >= 0 && !is_needed(kernel, phase, i)))
            continue;
        if (kernel->inputs[i] == GNI_ROW_DENSE)
            gni_builder_print(text, "        chunk_load<%d>(e%d[u], in%d, column, columns);\n",
                              kernel->input_vec[i], i, i);
        else
            gni_builder_print(text,
                              "        e%d[u].clear();\n#pragma unroll\n"
                              "        for (int k = 0; k < CHUNK; k++)\n"
                              "            if (IS_EXACT || column + k < columns)\n"
                              "                e%d[u].set(k, in%d[column%d(a, column + k)]);\n",
                              i, i, i, i);
    }
    gni_builder_print(text, "    }\n");
}

/* What element k of chunk u is in a phase: loaded, kept or computed. */
static void values_text(const struct gni_row_kernel *kernel, int phase, struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
    for (int v = 0; v < value_count(program); v++) {
        if (!is_needed(kernel, phase, v))
            continue;
        if (v < program->input_count) {
            const char *type = gni_cuda_type(program->inputs[v].held);
            gni_builder_print(text, "            const %s v%d = loaded<%s>(e%d[u].item(k));\n",
                              type, v, type, v);
        } else if (is_kept(kernel, v) && kernel->phases.phase[v] < phase) {
            gni_builder_print(text, "            const %s v%d = h%d[u][k];\n",
                              gni_cuda_type(step_of(kernel, v)->held), v, v);
        } else {
            gni_step_text(program, v - program->input_count, "            ", text);
            if (is_kept(kernel, v))
                gni_builder_print(text, "            h%d[u][k] = v%d;\n", v, v);
        }
    }
}

/* ---- reductions --------------------------------------------------------------------------------------- */

static bool is_reduced_in(const struct gni_row_kernel *kernel, int value, int phase)
{
    return gni_row_is_reduced_in(&kernel->phases, phase, value);
}

/* The type of the slots: sums of float32 are added as such for a while. */
static gn_dtype slot_type(const struct gni_step *step)
{
    bool is_sum = step->reduction == GN_REDUCE_SUM || step->reduction == GN_REDUCE_MEAN;
    return is_sum && step->from == GN_FLOAT32 ? GN_FLOAT32
                                              : gni_reduce_accumulator(step->reduction, step->from);
}

static void slots_text(const struct gni_row_kernel *kernel, int phase, struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
    for (int v = program->input_count; v < value_count(program); v++) {
        const struct gni_step *step = step_of(kernel, v);
        if (is_reduced_in(kernel, v, phase))
            gni_builder_print(text, "    slots<reduce_%s, %s, %s> r%d;\n    r%d.begin();\n",
                              gni_cuda_reduction(step->reduction), gni_cuda_type(slot_type(step)),
                              gni_cuda_type(gni_reduce_accumulator(step->reduction, step->from)), v,
                              v);
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

static void slots_add_text(const struct gni_row_kernel *kernel, int phase, struct gni_builder *text)
{
    for (int v = kernel->program->input_count; v < value_count(kernel->program); v++)
        if (is_reduced_in(kernel, v, phase))
            gni_builder_print(text,
                              "            if (IS_EXACT || column + k < columns)\n"
                              "                r%d.add(k, convert<%s>(v%d));\n",
                              v, gni_cuda_type(slot_type(step_of(kernel, v))),
                              step_of(kernel, v)->in[0]);
}

/* The threads of a row join what they have come to, and all get the result. */
static void join_text(const struct gni_row_kernel *kernel, int phase, struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
    reductions_print(kernel, phase, "    ", ".fold();\n", text);
    for (int v = program->input_count; v < value_count(program); v++)
        if (is_reduced_in(kernel, v, phase))
            gni_builder_print(text,
                              "    r%d.total = lanes_join<reduce_%s>(r%d.total, LANES < 32 ? LANES "
                              ": 32);\n",
                              v, gni_cuda_reduction(step_of(kernel, v)->reduction), v);
    if (kernel->lanes > 32) {
        for (int v = program->input_count; v < value_count(program); v++)
            if (is_reduced_in(kernel, v, phase))
                gni_builder_print(
                    text,
                    "    __shared__ %s warps%d[LANES / 32];\n    if (threadIdx.x %% 32 == 0)\n"
                    "        warps%d[threadIdx.x / 32] = r%d.total;\n",
                    gni_cuda_type(gni_reduce_accumulator(step_of(kernel, v)->reduction,
                                                         step_of(kernel, v)->from)),
                    v, v, v);
        gni_builder_print(text, "    __syncthreads();\n");
        for (int v = program->input_count; v < value_count(program); v++)
            if (is_reduced_in(kernel, v, phase))
                gni_builder_print(text,
                                  "    r%d.total = lanes_join<reduce_%s>(warps%d[threadIdx.x & "
                                  "(LANES / 32 - 1)], LANES / 32);\n",
                                  v, gni_cuda_reduction(step_of(kernel, v)->reduction), v);
    }
}

/* A reduction's result as a value: a half is rounded once. */
static void result_text(const struct gni_row_kernel *kernel, int value, struct gni_builder *text)
{
    const struct gni_step *step = step_of(kernel, value);
    gn_dtype accumulator = gni_reduce_accumulator(step->reduction, step->from);
    char total[64];
    bool is_mean = step->reduction == GN_REDUCE_MEAN;
    bool is_double = gni_dtypes[step->half].compute == GN_FLOAT64;
    snprintf(total, sizeof total, "r%d.total%s", value,
             !is_mean    ? ""
             : is_double ? " / a.divisor"
                         : " * a.factor");
    (void)accumulator;
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
            gni_step_text(program, v - program->input_count, "    ", text);
    }
}

/* The chunks of a thread, or those that are loaded together, in one phase. */
static void chunks_text(const struct gni_row_kernel *kernel, int phase, struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
    loop_text(kernel, text);
    for (int i = 0; i < program->output_count; i++)
        if (is_stored_in(kernel, i, phase))
            gni_builder_print(text, "        chunk<%s> q%d;\n        q%d.clear();\n",
                              gni_cuda_memory_type(program->outputs[i].dtype), i, i);
    gni_builder_print(text, "#pragma unroll\n        for (int k = 0; k < CHUNK; k++) {\n");
    values_text(kernel, phase, text);
    slots_add_text(kernel, phase, text);
    for (int i = 0; i < program->output_count; i++)
        if (is_stored_in(kernel, i, phase))
            gni_builder_print(text, "            q%d.set(k, convert<%s>(v%d));\n", i,
                              gni_cuda_type(program->outputs[i].dtype), program->outputs[i].value);
    gni_builder_print(text, "        }\n");
    for (int i = 0; i < program->output_count; i++)
        if (is_stored_in(kernel, i, phase))
            gni_builder_print(text, "        chunk_store<%d>(out%d, q%d, column, columns);\n",
                              kernel->output_vec[i], i, i);
    gni_builder_print(text, "    }\n");
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
        gni_builder_print(text, "    for (index first = lane * CHUNK, turn = 0; first < columns; "
                                "first += STEPS * LANES * CHUNK) {\n");
        loads_text(kernel, phase, text);
        chunks_text(kernel, phase, text);
        gni_builder_print(text, "    if (++turn == SEGMENT / STEPS) {\n        turn = 0;\n");
        reductions_print(kernel, phase, "        ", ".fold();\n", text);
        reductions_print(kernel, phase, "        ", ".restart();\n", text);
        gni_builder_print(text, "    }\n    }\n");
    }
    join_text(kernel, phase, text);
}

/* The kernel: a block has one row, or several with some threads of a warp each. */
static void kernel_text(const struct gni_row_kernel *kernel, const char *name,
                        struct gni_builder *text)
{
    const struct gni_program *program = kernel->program;
    gni_builder_print(
        text,
        "\nextern \"C\" __global__ void __launch_bounds__(%d, %d) %s(const "
        "__grid_constant__ arguments a)\n{\n    kernel_begin();\n"
        "    const index lane = threadIdx.x & (LANES - 1);\n"
        "    const index number = (index)blockIdx.x * (%d >> SHIFT) + (threadIdx.x >> SHIFT);\n"
        "    const bool is_there = number < (index)a.kept;\n"
        "    const index row = is_there ? number : 0;\n"
        "    const index columns = is_there ? (index)a.columns : 0;\n",
        kernel->threads, kernel->blocks, name, kernel->threads);
    if (kernel->is_held)
        gni_builder_print(text, "    const index first = lane * CHUNK;\n");
    for (int i = 0; i < program->input_count; i++)
        if (kernel->inputs[i] == GNI_ROW_NUMBER)
            gni_builder_print(text, "    const %s v%d = a.number%d;\n",
                              gni_cuda_type(program->inputs[i].held), i, i);
    rows_text(kernel, text);
    if (kernel->is_held)
        loads_text(kernel, -1, text);
    for (int v = program->input_count; v < value_count(program); v++)
        if (is_kept(kernel, v))
            gni_builder_print(text, "    %s h%d[STEPS][CHUNK];\n",
                              gni_cuda_type(step_of(kernel, v)->held), v);
    for (int p = 0; p < kernel->phases.count; p++)
        phase_text(kernel, p, text);
    gni_builder_print(text, "\n    if (lane == 0 && is_there) {\n");
    for (int i = 0; i < program->output_count; i++)
        if (program->outputs[i].is_row)
            gni_builder_print(text, "        *out%d = convert<%s>(v%d);\n", i,
                              gni_cuda_type(program->outputs[i].dtype), program->outputs[i].value);
    gni_builder_print(text, "    }\n}\n");
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
    gni_builder_print(text, "#define LANES (1 << SHIFT)\n#define STEPS %d\n#define IS_EXACT %d\n",
                      kernel->steps, kernel->is_exact);
    gni_builder_add(text, gni_text_reductions, strlen(gni_text_reductions));
    gni_builder_add(text, gni_text_rows, strlen(gni_text_rows));
    arguments_text(kernel, text);
    for (int i = 0; i < kernel->program->input_count; i++)
        if (kernel->inputs[i] == GNI_ROW_STRIDED)
            columns_text(kernel, i, text);
    kernel_text(kernel, name, text);
}
