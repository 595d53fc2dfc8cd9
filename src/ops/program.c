#include "ops/program.h"

void gni_program_init(struct gni_program *program, int ndim, const int64_t *sizes, const int *order)
{
    program->ndim = ndim;
    program->count = gni_shape_count(ndim, sizes);
    program->input_count = program->step_count = program->output_count = 0;
    for (int i = 0; i < ndim; i++)
        program->sizes[i] = sizes[order != NULL ? order[i] : i];
}

short gni_program_add_memory(struct gni_program *program, struct gni_storage *storage,
                             int64_t offset, gn_dtype dtype, const int64_t *strides)
{
    const char *data = storage->data + offset * (int64_t)gni_dtype_size(dtype);
    for (short i = 0; i < program->input_count; i++) {
        const struct gni_input *known = &program->inputs[i];
        if (known->storage == storage && known->data == data && known->held == dtype &&
            gni_shape_is_equal(program->ndim, known->strides, program->ndim, strides))
            return i;
    }
    gni_assert(program->step_count == 0 && program->input_count < GNI_PROGRAM_INPUTS_MOST);
    struct gni_input *input = &program->inputs[program->input_count];
    input->storage = storage;
    input->data = data;
    input->held = dtype;
    for (int d = 0; d < program->ndim; d++)
        input->strides[d] = strides[d];
    return (short)program->input_count++;
}

/* Whether all memory is contiguous, as it nearly always is. */
static bool program_is_contiguous(const struct gni_program *program, const int64_t *contiguous)
{
    for (int i = 0; i < program->output_count; i++)
        if (program->outputs[i].is_strided)
            return false;
    for (int i = 0; i < program->input_count; i++)
        for (int d = 0; d < program->ndim && program->inputs[i].storage != NULL; d++)
            if (program->inputs[i].strides[d] != contiguous[d] && program->sizes[d] != 1)
                return false;
    return true;
}

/* Everything in one dimension. */
static void layout_make_flat(const struct gni_program *program, struct gni_layout *layout)
{
    layout->ndim = 1;
    layout->sizes[0] = program->count;
    for (int i = 0; i < program->input_count; i++)
        layout->strides[i][0] = program->inputs[i].storage != NULL;
    for (int i = 0; i < program->output_count; i++)
        layout->output_strides[i][0] = 1;
}

bool gni_program_join(const struct gni_program *program, struct gni_layout *layout)
{
    int64_t contiguous[GN_DIMENSIONS_MAX];
    gni_strides_contiguous(program->ndim, program->sizes, contiguous);
    if (program->count > 1 && program_is_contiguous(program, contiguous)) {
        layout_make_flat(program, layout);
        return true;
    }
    layout->ndim = 0;
    for (int d = 0; d < program->ndim; d++) {
        if (program->sizes[d] == 1)
            continue;
        int last = layout->ndim - 1;
        bool is_joined = last >= 0;
        for (int i = 0; i < program->input_count && is_joined; i++)
            is_joined =
                program->inputs[i].storage == NULL ||
                layout->strides[i][last] == program->inputs[i].strides[d] * program->sizes[d];
        for (int i = 0; i < program->output_count && is_joined; i++)
            is_joined = !program->outputs[i].is_strided ||
                        layout->output_strides[i][last] ==
                            program->outputs[i].strides[d] * program->sizes[d];
        int at = is_joined ? last : layout->ndim++;
        layout->sizes[at] = is_joined ? layout->sizes[at] * program->sizes[d] : program->sizes[d];
        for (int i = 0; i < program->input_count; i++)
            layout->strides[i][at] =
                program->inputs[i].storage != NULL ? program->inputs[i].strides[d] : 0;
        for (int i = 0; i < program->output_count; i++)
            layout->output_strides[i][at] =
                program->outputs[i].is_strided ? program->outputs[i].strides[d] : contiguous[d];
    }
    return false;
}

gn_status gni_program_order(struct gni_program *program, gn_stream *stream)
{
    if (stream == NULL)
        return GN_OK;
    for (int i = 0; i < program->input_count; i++)
        if (program->inputs[i].storage != NULL)
            GN_TRY(gni_storage_order(program->inputs[i].storage, stream, false));
    return GN_OK;
}

short gni_program_add_number(struct gni_program *program, gn_scalar number, gn_dtype dtype)
{
    uint64_t element = 0;
    gni_scalar_store(number, dtype, &element);
    for (short i = 0; i < program->input_count; i++)
        if (program->inputs[i].storage == NULL && program->inputs[i].held == dtype &&
            program->inputs[i].number == element)
            return i;
    gni_assert(program->step_count == 0 && program->input_count < GNI_PROGRAM_INPUTS_MOST);
    struct gni_input *input = &program->inputs[program->input_count];
    input->storage = NULL;
    input->data = NULL;
    input->held = dtype;
    input->number = element;
    return (short)program->input_count++;
}

static short step_add(struct gni_program *program, struct gni_step step)
{
    gni_assert(program->step_count < GNI_PROGRAM_STEPS_MOST);
    program->steps[program->step_count] = step;
    return (short)(program->input_count + program->step_count++);
}

/* The step that does just this already, or none: conversions of one value come again and again. */
static short step_find(const struct gni_program *program, const struct gni_step *step)
{
    for (int i = 0; i < program->step_count; i++) {
        const struct gni_step *known = &program->steps[i];
        if (known->kind == step->kind && known->in[0] == step->in[0] && known->held == step->held &&
            known->half == step->half)
            return (short)(program->input_count + i);
    }
    return -1;
}

short gni_program_add_op(struct gni_program *program, enum gni_op op, gn_dtype computing,
                         gn_dtype held, int arity, const short *in)
{
    return step_add(
        program, (struct gni_step){.kind = GNI_STEP_OP,
                                   .op = op,
                                   .from = computing,
                                   .held = held,
                                   .in = {in[0], arity > 1 ? in[1] : -1, arity > 2 ? in[2] : -1}});
}

short gni_program_add_conversion(struct gni_program *program, short value, gn_dtype held)
{
    gn_dtype from = gni_program_held(program, value);
    struct gni_step step = {
        .kind = GNI_STEP_CONVERT, .from = from, .held = held, .in = {value, -1, -1}};
    short known = step_find(program, &step);
    return known >= 0 ? known : step_add(program, step);
}

short gni_program_round(struct gni_program *program, short value, gn_dtype half)
{
    return step_add(program, (struct gni_step){.kind = GNI_STEP_ROUND,
                                               .from = GN_FLOAT32,
                                               .held = GN_FLOAT32,
                                               .half = half,
                                               .in = {value, -1, -1}});
}
