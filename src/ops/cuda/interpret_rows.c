/*
 * interpret_rows.c: row programs without compiling: tier 0. Each reduction is made by itself:
 *
 *     softmax(x)      x                                   -> max, a number for each row    (interpret_rows.cu)
 *                     exp(x - max), interpreted           -> memory
 *                     that                                -> sum
 *                     exp(x - max) / sum, interpreted     -> the output
 *
 * A *stage* is an elementwise program cut out of the row program. Results of reductions are inputs of later stages, the same
 * for all columns of a row. What full values are made of is computed anew in each stage.
 *
 * Outputs are stored last, as they may lie on inputs: full ones, then one for each row, then sums of columns.
 */
#include "ops/cuda/interpret.h"

#include "jit/kernel.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/fixed.h"
#include "ops/cuda/kernel_list.h"
#include "ops/cuda/kernel_texts.h"

#include <stdio.h>
#include <string.h>

enum {
    COLUMN_THREADS = 256,
    PARTS_MOST = 65535, /* of a launch */
};

struct work {
    const struct gni_row_kernel *kernel;
    const struct gni_program *program;
    int64_t rows;
    gn_stream *stream;
    struct gni_storage *results[GNI_PROGRAM_STEPS_MOST]; /* of reductions; NULL for other steps */
};

static const struct gni_fixed columns_kernel = {
    "interpret_columns", {gni_text_interpret_columns, NULL}, NULL};

/* ---- stages ------------------------------------------------------------------------------------------- */

static int row_ndim(const struct gni_program *program)
{
    return program->ndim - program->row_ndim;
}

static bool is_reduction(const struct gni_program *program, int step)
{
    return program->steps[step].kind == GNI_STEP_REDUCE;
}

/* What a reduction has come to, as an input: one element for each row. */
static struct gni_input result_input(const struct work *work, int step)
{
    const struct gni_program *program = work->program;
    struct gni_storage *storage = work->results[step];
    struct gni_input input = {
        .storage = storage, .data = storage->data, .held = program->steps[step].held};
    gni_strides_contiguous(row_ndim(program), program->sizes, input.strides);
    return input;
}

/* The steps that values need: `needed` has the values, and gets what they are made of. */
static void needs_find(const struct gni_program *program, bool *needed)
{
    for (int s = program->step_count - 1; s >= 0; s--)
        for (int i = 0; i < 3 && needed[program->input_count + s] && !is_reduction(program, s); i++)
            if (program->steps[s].in[i] >= 0)
                needed[program->steps[s].in[i]] = true;
}

/* Makes a stage without outputs. `place` gets where it has the values that are needed. */
static void stage_make(const struct work *work, bool is_of_rows, bool *needed, short *place,
                       struct gni_program *stage)
{
    const struct gni_program *program = work->program;
    needs_find(program, needed);
    gni_program_init(stage, is_of_rows ? row_ndim(program) : program->ndim, program->sizes, NULL);
    for (int v = 0; v < program->input_count; v++)
        if (needed[v]) {
            place[v] = (short)stage->input_count;
            stage->inputs[stage->input_count++] = program->inputs[v];
        }
    for (int s = 0; s < program->step_count; s++)
        if (needed[program->input_count + s] && is_reduction(program, s)) {
            place[program->input_count + s] = (short)stage->input_count;
            stage->inputs[stage->input_count++] = result_input(work, s);
        }
    for (int s = 0; s < program->step_count; s++) {
        if (!needed[program->input_count + s] || is_reduction(program, s))
            continue;
        struct gni_step step = program->steps[s];
        for (int i = 0; i < 3 && step.in[i] >= 0; i++)
            step.in[i] = place[step.in[i]];
        place[program->input_count + s] = (short)(stage->input_count + stage->step_count);
        stage->steps[stage->step_count++] = step;
    }
}

/* Computes a full value into memory, as another type. NULL in `values`: there is not enough of it, or of the interpreter. */
static gn_status value_compute(const struct work *work, short value, gn_dtype dtype,
                               struct gni_storage **values)
{
    bool needed[GNI_PROGRAM_VALUES_MOST] = {false};
    short place[GNI_PROGRAM_VALUES_MOST];
    struct gni_program stage;
    needed[value] = true;
    stage_make(work, false, needed, place, &stage);
    return gni_interpret_value(&stage, place[value], dtype, work->stream, values);
}

/* ---- reductions ------------------------------------------------------------------------------------------ */

enum {
    NAME_MOST = 64,
};

static void reduction_text(gn_reduction reduction, gn_dtype slot, gn_dtype accumulator,
                           bool is_long, char name[NAME_MOST], struct gni_builder *text)
{
    snprintf(name, NAME_MOST, "interpret_%srows_%s_%s", is_long ? "long_" : "",
             gni_cuda_reduction(reduction), gni_cuda_type(slot));
    gni_builder_add(text, gni_text_elements, strlen(gni_text_elements));
    gni_builder_print(text,
                      "\n#define NAME %s\n#define REDUCTION reduce_%s\ntypedef uint64 index;\n"
                      "#define STEPS 1\n#define IS_EXACT 0\n#define SUMS 0\n"
                      "#define HAS_WORDS 1\n#define IS_LONG %d\n"
                      "typedef %s slot_type;\ntypedef %s accumulator;\n"
                      "typedef %s joined_type;\n",
                      name, gni_cuda_reduction(reduction), is_long, gni_cuda_type(slot),
                      gni_cuda_type(accumulator), gni_cuda_type(is_long ? accumulator : slot));
    gni_builder_add(text, gni_text_reductions, strlen(gni_text_reductions));
    gni_builder_add(text, gni_text_rows, strlen(gni_text_rows));
    gni_builder_add(text, gni_text_interpret_result, strlen(gni_text_interpret_result));
    gni_builder_add(text, gni_text_interpret_rows, strlen(gni_text_interpret_rows));
}

/* `from` is the type of what is reduced. */
static gn_status reduction_kernel_get(gn_device *device, gn_reduction reduction, gn_dtype from,
                                      bool is_long, struct gni_kernel **kernel)
{
    gn_dtype slot = gni_row_slot_type(reduction, from);
    gn_dtype accumulator = gni_reduce_accumulator(reduction, from);
    if (reduction == GN_REDUCE_MEAN)
        reduction = GN_REDUCE_SUM; /* which finish() divides */
    const uint64_t signature[] = {'j', reduction, slot, accumulator, is_long};
    *kernel = gni_kernel_find(device, signature, sizeof signature);
    if (*kernel != NULL)
        return GN_OK;
    char name[NAME_MOST];
    struct gni_builder text = {.text = NULL};
    reduction_text(reduction, slot, accumulator, is_long, name, &text);
    return gni_kernel_build_general(device, name, &text, signature, sizeof signature, kernel);
}

void gni_interpret_rows_kernels(struct gni_kernel_list *list)
{
    bool is_listed[GN_REDUCTION_COUNT][GN_DTYPE_COUNT] = {{false}}; /* by slots */
    for (int reduction = 0; reduction < GN_REDUCTION_COUNT; reduction++)
        for (int from = 0; from < GN_DTYPE_COUNT; from++) {
            gn_dtype slot = gni_row_slot_type((gn_reduction)reduction, (gn_dtype)from);
            if (reduction == GN_REDUCE_MEAN || gni_dtype_is_half((gn_dtype)from) ||
                is_listed[reduction][slot])
                continue;
            is_listed[reduction][slot] = true;
            for (int is_long = 0; is_long < 2; is_long++) {
                char name[NAME_MOST];
                struct gni_builder text = {.text = NULL};
                reduction_text((gn_reduction)reduction, slot,
                               gni_reduce_accumulator((gn_reduction)reduction, (gn_dtype)from),
                               is_long != 0, name, &text);
                gni_kernel_list_add(list, name, &text);
            }
        }
    gni_kernel_list_add_fixed(list, &columns_kernel, GNI_TYPE(GN_FLOAT32));
}

/* The arguments of interpret_rows.cu. */
struct row_arguments {
    const void *values;
    int64_t kept, columns, shift;
    double factor, divisor;
    void *result;
    int64_t result_type, is_mean;
};

static gn_status rows_reduce(const struct work *work, const struct gni_step *step,
                             const void *values, void *result)
{
    const struct gni_row_kernel *kernel = work->kernel;
    struct gni_kernel *compiled;
    double divisor = (double)work->program->columns;
    struct row_arguments arguments = {.values = values,
                                      .kept = work->rows,
                                      .columns = work->program->columns,
                                      .shift = __builtin_ctz((unsigned)kernel->lanes),
                                      .factor = 1 / divisor,
                                      .divisor = divisor,
                                      .result = result,
                                      .result_type = step->half,
                                      .is_mean = step->reduction == GN_REDUCE_MEAN};
    GN_TRY(reduction_kernel_get(work->stream->device, step->reduction, step->from,
                                !kernel->is_short, &compiled));
    void *addresses[] = {&arguments};
    const struct gni_launch launch = {
        .grid = {(unsigned)gni_divided_up(work->rows, gni_row_kernel_rows(kernel)), 1, 1},
        .block = {(unsigned)kernel->threads, 1, 1},
        .arguments = addresses,
        .argument_bytes = sizeof arguments,
        .waits = true};
    return gni_kernel_launch(compiled, work->stream, &launch);
}

/* Whether a value lies in memory as the kernels want it: dense, of a type, and no number. */
static const void *value_find(const struct work *work, short value, gn_dtype dtype)
{
    const struct gni_program *program = work->program;
    int64_t contiguous[GN_DIMENSIONS_MAX];
    if (value >= program->input_count || program->inputs[value].storage == NULL ||
        program->inputs[value].held != dtype)
        return NULL;
    gni_strides_contiguous(program->ndim, program->sizes, contiguous);
    for (int d = 0; d < program->ndim; d++)
        if (program->sizes[d] != 1 && program->inputs[value].strides[d] != contiguous[d])
            return NULL;
    return program->inputs[value].data;
}

static gn_status reduction_run(struct work *work, int s, bool *is_done)
{
    const struct gni_step *step = &work->program->steps[s];
    gn_dtype slot = gni_row_slot_type(step->reduction, step->from);
    struct gni_storage *values = NULL;
    const void *data = value_find(work, step->in[0], slot);
    *is_done = false;
    work->results[s] = gni_interpret_memory(work->rows, step->held, work->stream);
    if (work->results[s] == NULL)
        return GN_OK;
    if (data == NULL) {
        GN_TRY(value_compute(work, step->in[0], slot, &values));
        if (values == NULL)
            return GN_OK;
        data = values->data;
    }
    *is_done = true;
    gn_status status = rows_reduce(work, step, data, work->results[s]->data);
    gni_storage_release(values);
    return status;
}

/* ---- sums of columns --------------------------------------------------------------------------------------- */

/* The arguments of interpret_columns.cu. */
struct column_arguments {
    const float *values;
    int64_t kept, columns, part, groups, sums;
    float *partial;
};

/* Leaves the sums of each part behind, for one output. */
static gn_status column_run(const struct work *work, const struct gni_output *output, int sum,
                            float *partial, bool *is_done)
{
    const struct gni_row_kernel *kernel = work->kernel;
    struct gni_storage *values = NULL;
    const float *data = value_find(work, output->value, GN_FLOAT32);
    *is_done = false;
    if (data == NULL) {
        GN_TRY(value_compute(work, output->value, GN_FLOAT32, &values));
        if (values == NULL)
            return GN_OK;
        data = (const float *)(const void *)values->data;
    }
    struct column_arguments arguments = {.values = data,
                                         .kept = work->rows,
                                         .columns = work->program->columns,
                                         .part = kernel->part_rows,
                                         .groups = gni_row_kernel_rows(kernel),
                                         .sums = kernel->sum_count,
                                         .partial = partial + sum * work->program->columns};
    int64_t parts = gni_row_kernel_blocks(kernel);
    *is_done = true;
    gn_status status = gni_fixed_launch(
        &columns_kernel, GN_FLOAT32, gni_divided_up(arguments.columns, COLUMN_THREADS),
        parts < PARTS_MOST ? parts : PARTS_MOST, &arguments, work->stream);
    gni_storage_release(values);
    return status;
}

static gn_status columns_run(const struct work *work, float *partial, bool *is_done)
{
    const struct gni_program *program = work->program;
    int sum = 0;
    *is_done = true;
    for (int i = 0; i < program->output_count && *is_done; i++) {
        const struct gni_output *output = &program->outputs[i];
        if (!output->is_column)
            continue;
        *is_done = gni_program_held(program, output->value) == GN_FLOAT32;
        if (*is_done)
            GN_TRY(column_run(work, output, sum++, partial, is_done));
    }
    return GN_OK;
}

/* ---- outputs ------------------------------------------------------------------------------------------------- */

/* The stage of all outputs that are full, or of those that are one for each row. False: it has too many instructions. */
static bool outputs_prepare(const struct work *work, bool is_of_rows,
                            struct gni_interpretation *interpretation)
{
    const struct gni_program *program = work->program;
    bool needed[GNI_PROGRAM_VALUES_MOST] = {false};
    short place[GNI_PROGRAM_VALUES_MOST];
    struct gni_program stage;
    interpretation->blocks = 0;
    for (int i = 0; i < program->output_count; i++)
        if (!program->outputs[i].is_column && program->outputs[i].is_row == is_of_rows)
            needed[program->outputs[i].value] = true;
    stage_make(work, is_of_rows, needed, place, &stage);
    for (int i = 0; i < program->output_count; i++) {
        const struct gni_output *output = &program->outputs[i];
        if (output->is_column || output->is_row != is_of_rows)
            continue;
        stage.outputs[stage.output_count] = *output;
        stage.outputs[stage.output_count].is_strided = false;
        stage.outputs[stage.output_count++].value = place[output->value];
    }
    return stage.output_count == 0 ||
           gni_interpret_prepare(&stage, NULL, work->stream->device, interpretation);
}

static gn_status outputs_run(const struct work *work, bool *is_done)
{
    struct gni_interpretation full, rows;
    *is_done = outputs_prepare(work, false, &full) && outputs_prepare(work, true, &rows);
    if (*is_done && full.blocks > 0)
        GN_TRY(gni_interpret_submit(&full, work->stream));
    if (*is_done && rows.blocks > 0)
        GN_TRY(gni_interpret_submit(&rows, work->stream));
    return GN_OK;
}

static gn_status work_run(struct work *work, float *partial, bool *is_done)
{
    const struct gni_program *program = work->program;
    *is_done = true;
    for (int s = 0; s < program->step_count && *is_done; s++)
        if (is_reduction(program, s))
            GN_TRY(reduction_run(work, s, is_done));
    if (*is_done)
        GN_TRY(columns_run(work, partial, is_done));
    return *is_done ? outputs_run(work, is_done) : GN_OK;
}

gn_status gni_interpret_rows(const struct gni_row_kernel *kernel, void *partial, gn_stream *stream,
                             bool *is_done)
{
    struct work work;
    work.kernel = kernel;
    work.program = kernel->program;
    work.rows = kernel->program->count / kernel->program->columns;
    work.stream = stream;
    memset(work.results, 0, sizeof work.results);
    gn_status status = work_run(&work, partial, is_done);
    for (int s = 0; s < work.program->step_count; s++)
        gni_storage_release(work.results[s]);
    return status;
}
