/*
 * program.c: programs, and how they are made of nodes: those that a value needs are collected, operands first, and become
 * inputs and steps.
 */
#include "ops/node.h"

/* ---- programs -------------------------------------------------------------------------------- */

void gni_program_init(struct gni_program *program, int ndim, const int64_t *sizes, const int *order)
{
    program->ndim = ndim;
    program->count = 1;
    program->row_ndim = 0;
    program->columns = 1;
    program->input_count = program->step_count = program->output_count = 0;
    for (int i = 0; i < ndim; i++) {
        program->sizes[i] = sizes[order != NULL ? order[i] : i];
        program->count *= sizes[i];
    }
}

/* Whether all columns of a row are one element. */
static bool input_is_row(const struct gni_program *program, const struct gni_input *input)
{
    for (int d = program->ndim - program->row_ndim; d < program->ndim; d++)
        if (input->strides[d] != 0 && program->sizes[d] != 1)
            return false;
    return true;
}

short gni_program_add_memory(struct gni_program *program, struct gni_storage *storage,
                             int64_t offset, gn_dtype dtype, const int64_t *strides)
{
    const char *data = storage->data + offset * (int64_t)gni_dtypes[dtype].size;
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
    if (program->row_ndim > 0)
        program->is_row[program->input_count] = input_is_row(program, input);
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

/* Whether a dimension goes on as if it were one with the last one of the layout. */
static bool is_continued(const struct gni_program *program, const struct gni_layout *layout, int d)
{
    int last = layout->ndim - 1;
    for (int i = 0; i < program->input_count; i++)
        if (program->inputs[i].storage != NULL &&
            layout->strides[i][last] != program->inputs[i].strides[d] * program->sizes[d])
            return false;
    for (int i = 0; i < program->output_count; i++)
        if (program->outputs[i].is_strided &&
            layout->output_strides[i][last] != program->outputs[i].strides[d] * program->sizes[d])
            return false;
    return true;
}

/* Adds a dimension to the layout, or joins it with the last one, if `may_join`. */
static void dimension_add(const struct gni_program *program, struct gni_layout *layout, int d,
                          const int64_t *contiguous, bool may_join)
{
    if (program->sizes[d] == 1)
        return;
    bool is_joined = may_join && is_continued(program, layout, d);
    int at = is_joined ? layout->ndim - 1 : layout->ndim++;
    layout->sizes[at] = is_joined ? layout->sizes[at] * program->sizes[d] : program->sizes[d];
    for (int i = 0; i < program->input_count; i++)
        layout->strides[i][at] =
            program->inputs[i].storage != NULL ? program->inputs[i].strides[d] : 0;
    for (int i = 0; i < program->output_count; i++)
        layout->output_strides[i][at] =
            program->outputs[i].is_strided ? program->outputs[i].strides[d] : contiguous[d];
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
    for (int d = 0; d < program->ndim; d++)
        dimension_add(program, layout, d, contiguous, layout->ndim > 0);
    return false;
}

int gni_program_join_rows(const struct gni_program *program, struct gni_layout *layout)
{
    int64_t contiguous[GN_DIMENSIONS_MAX];
    int first = program->ndim - program->row_ndim;
    gni_strides_contiguous(program->ndim, program->sizes, contiguous);
    layout->ndim = 0;
    for (int d = 0; d < first; d++)
        dimension_add(program, layout, d, contiguous, layout->ndim > 0);
    int outer = layout->ndim;
    for (int d = first; d < program->ndim; d++)
        dimension_add(program, layout, d, contiguous, layout->ndim > outer);
    gni_assert(layout->ndim > outer); /* a row has more than one element */
    return layout->ndim - outer;
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
    program->is_row[program->input_count] = true;
    return (short)program->input_count++;
}

static short step_add(struct gni_program *program, struct gni_step step)
{
    gni_assert(program->step_count < GNI_PROGRAM_STEPS_MOST);
    if (program->row_ndim > 0) {
        bool is_row = true;
        for (int i = 0; i < 3 && step.in[i] >= 0 && step.kind != GNI_STEP_REDUCE; i++)
            is_row &= program->is_row[step.in[i]];
        program->is_row[program->input_count + program->step_count] = is_row;
    }
    program->steps[program->step_count] = step;
    return (short)(program->input_count + program->step_count++);
}

/* The step that does just this already, or none: conversions of one value come again and again, and gradients compute
 * what the operation has computed. */
static short step_find(const struct gni_program *program, const struct gni_step *step)
{
    for (int i = 0; i < program->step_count; i++) {
        const struct gni_step *known = &program->steps[i];
        if (known->in[0] == step->in[0] && known->kind == step->kind && known->held == step->held &&
            known->half == step->half && known->op == step->op && known->from == step->from &&
            known->reduction == step->reduction && known->in[1] == step->in[1] &&
            known->in[2] == step->in[2])
            return (short)(program->input_count + i);
    }
    return -1;
}

short gni_program_add_op(struct gni_program *program, enum gni_op op, gn_dtype computing,
                         gn_dtype held, gn_dtype result, int arity, const short *in)
{
    struct gni_step step = {.kind = GNI_STEP_OP,
                            .op = op,
                            .from = computing,
                            .held = held,
                            .half = gni_dtype_is_half(result) ? result : held,
                            .in = {in[0], arity > 1 ? in[1] : -1, arity > 2 ? in[2] : -1}};
    short known = step_find(program, &step);
    return known >= 0 ? known : step_add(program, step);
}

gn_dtype gni_program_held(const struct gni_program *program, short value)
{
    return value < program->input_count ? program->inputs[value].held
                                        : program->steps[value - program->input_count].held;
}

short gni_program_convert(struct gni_program *program, short value, gn_dtype held)
{
    gn_dtype from = gni_program_held(program, value);
    if (from == held)
        return value;
    struct gni_step step = {
        .kind = GNI_STEP_CONVERT, .from = from, .held = held, .in = {value, -1, -1}};
    short known = step_find(program, &step);
    return known >= 0 ? known : step_add(program, step);
}

short gni_program_round(struct gni_program *program, short value, gn_dtype half)
{
    struct gni_step step = {.kind = GNI_STEP_ROUND,
                            .from = GN_FLOAT32,
                            .held = GN_FLOAT32,
                            .half = half,
                            .in = {value, -1, -1}};
    short known = step_find(program, &step);
    return known >= 0 ? known : step_add(program, step);
}

short gni_program_reduce(struct gni_program *program, gn_reduction reduction, short value,
                         gn_dtype dtype)
{
    struct gni_step step = {.kind = GNI_STEP_REDUCE,
                            .reduction = reduction,
                            .from = gni_program_held(program, value),
                            .held = gni_dtypes[dtype].compute,
                            .half = dtype,
                            .in = {value, -1, -1}};
    short known = step_find(program, &step);
    return known >= 0 ? known : step_add(program, step);
}

const struct gni_step *gni_program_rounding(const struct gni_program *program, int value)
{
    const struct gni_step *found = NULL;
    int readers = 0;
    for (int i = 0; i < program->output_count; i++)
        readers += program->outputs[i].value == value;
    for (int s = 0; s < program->step_count; s++)
        for (int i = 0; i < 3; i++)
            if (program->steps[s].in[i] == value) {
                found = &program->steps[s];
                readers++;
            }
    return readers == 1 && found != NULL && found->kind == GNI_STEP_ROUND ? found : NULL;
}

/* ---- from nodes to a program ----------------------------------------------------------------- */

static uint64_t last_round; /* under the recorder's lock */

static bool nodes_collect(struct gni_work *work, struct gni_node *node, uint64_t round)
{
    if (node->round == round || node->is_done)
        return true;
    if (node->is_running)
        return false;
    node->round = round;
    node->inner = 0;
    for (int i = 0; i < node->arity; i++) {
        if (node->operands[i].kind != GNI_OPERAND_NODE)
            continue;
        if (!nodes_collect(work, node->operands[i].node, round))
            return false;
        node->operands[i].node->inner++;
    }
    gni_assert(work->node_count < GNI_PROGRAM_NODES_MOST);
    node->place = (short)work->node_count;
    work->nodes[work->node_count++] = node;
    return true;
}

bool gni_work_collect(struct gni_work *work, struct gni_node *root)
{
    work->node_count = 0;
    work->root = root;
    work->stream = root->stream;
    return nodes_collect(work, root, ++last_round);
}

void gni_work_collect_more(struct gni_work *work, struct gni_node *node)
{
    bool is_collected = nodes_collect(work, node, work->root->round);
    gni_assert(is_collected);
    (void)is_collected;
}

/* The nodes below that this round has not seen, as far as there are at most so many. */
static int nodes_count(struct gni_node *node, uint64_t round, int most)
{
    if (node->round == round || node->is_done)
        return 0;
    node->round = round;
    int count = 1;
    for (int i = 0; i < node->arity && count <= most; i++)
        if (node->operands[i].kind == GNI_OPERAND_NODE)
            count += nodes_count(node->operands[i].node, round, most - count);
    return count;
}

int gni_operands_weigh(int arity, const gn_operand *operands)
{
    int count = 0;
    last_round++;
    for (int i = 0; i < arity && count <= GNI_PROGRAM_NODES_MOST; i++)
        if (operands[i].tensor != NULL && operands[i].tensor->node != NULL)
            count += nodes_count(operands[i].tensor->node, last_round, GNI_PROGRAM_NODES_MOST);
    return count;
}

/*
 * Strides of a node's dimensions in the order of the program's, which `permuted` has room for. A row value of a row program
 * has fewer dimensions than that, or 1 in their place.
 */
static const int64_t *strides_permute(const int64_t *strides, const struct gni_node *reader,
                                      const struct gni_program *program, const int *order,
                                      int64_t *permuted)
{
    if (order == NULL && program->row_ndim == 0)
        return strides;
    bool is_row = !reader->is_reduction && reader->count != program->count;
    int used = is_row ? program->ndim - program->row_ndim : program->ndim;
    for (int i = 0; i < program->ndim; i++)
        permuted[i] = i < used ? strides[order != NULL ? order[i] : i] : 0;
    return permuted;
}

/* The strides of a computed node for the dimensions of the node that reads it. */
static void strides_of_done(const struct gni_node *node, const struct gni_node *reader,
                            int64_t *strides)
{
    int kept = node->is_row && reader->ndim >= node->rows.ndim ? reader->ndim - node->rows.ndim : 0;
    bool is_spread = node->is_row && node->count != gni_shape_count(reader->ndim, reader->sizes);
    if (!is_spread) {
        gni_strides_contiguous(reader->ndim, reader->sizes, strides);
        return;
    }
    gni_strides_contiguous(kept, reader->sizes, strides);
    for (int d = kept; d < reader->ndim; d++)
        strides[d] = 0;
}

static short operand_input(struct gni_program *program, const struct gni_node *node, int i,
                           const int *order)
{
    const struct gni_node_operand *operand = &node->operands[i];
    int64_t permuted[GN_DIMENSIONS_MAX], strides[GN_DIMENSIONS_MAX];
    switch (operand->kind) {
    case GNI_OPERAND_NUMBER:
        return gni_program_add_number(program, operand->number,
                                      node->typing.is_identity
                                          ? node->typing.dtype /* a half is rounded once */
                                          : gni_typing_operand(&node->typing, i));
    case GNI_OPERAND_MEMORY:
        return gni_program_add_memory(
            program, operand->storage, operand->offset, operand->dtype,
            strides_permute(operand->strides, node, program, order, permuted));
    case GNI_OPERAND_NODE:
        if (operand->node->storage == NULL)
            return -1; /* a step */
        strides_of_done(operand->node, node, strides);
        return gni_program_add_memory(program, operand->node->storage, 0,
                                      operand->node->typing.dtype,
                                      strides_permute(strides, node, program, order, permuted));
    }
    return -1;
}

/* The operations of a power of a number (promote.h); -1: the node is no such power. */
static int node_power_ops(const struct gni_node *node, enum gni_op *ops)
{
    if (node->typing.is_identity || node->is_reduction || node->typing.op != GNI_OP_POWER ||
        node->operands[1].kind != GNI_OPERAND_NUMBER)
        return -1;
    return gni_power_ops(node->typing.computing, node->operands[1].number, ops);
}

/* How many operands are inputs of the program: the exponent of such a power is none. */
static int node_inputs(const struct gni_node *node)
{
    enum gni_op ops[GNI_POWER_OPS_MOST];
    return node_power_ops(node, ops) >= 0 ? 1 : node->arity;
}

static short node_op(struct gni_program *program, const struct gni_node *node, const short *in)
{
    const struct gni_typing *typing = &node->typing;
    gn_dtype computing = typing->computing;
    enum gni_op ops[GNI_POWER_OPS_MOST];
    int count = node_power_ops(node, ops);
    if (count < 0)
        return gni_program_add_op(program, typing->op, computing,
                                  typing->dtype == GN_BOOL ? GN_BOOL : computing, typing->dtype,
                                  node->arity, in);
    short value = in[0];
    for (int i = 0; i < count; i++)
        value = gni_program_add_op(program, ops[i], computing, computing, computing,
                                   gni_ops[ops[i]].arity, (short[3]){value, in[0], -1});
    return value;
}

/* Whether float32 has all numbers of a type. */
static bool is_in_float(gn_dtype dtype)
{
    return gni_dtype_size(dtype) < sizeof(float) || dtype == GN_FLOAT32;
}

/* A value as the type of the node. It becomes a half in one rounding: not by way of a float32 that is rounded itself. */
static short node_convert(struct gni_program *program, const struct gni_typing *typing, short value)
{
    gn_dtype held = gni_program_held(program, value);
    bool is_rounded = gni_dtype_is_half(typing->dtype) && held != typing->dtype;
    if (is_rounded && !is_in_float(held))
        value = gni_program_convert(program, value, typing->dtype);
    value = gni_program_convert(program, value, typing->computing);
    return is_rounded && is_in_float(held) ? gni_program_round(program, value, typing->dtype)
                                           : value;
}

static short node_step(struct gni_program *program, const struct gni_node *node, const short *in)
{
    const struct gni_typing *typing = &node->typing;
    short wanted[3];
    if (node->is_column) /* its output is summed */
        return gni_program_convert(program, in[0], typing->computing);
    if (node->is_reduction)
        return gni_program_reduce(program, node->reduction,
                                  gni_program_convert(program, in[0], typing->computing),
                                  typing->dtype);
    if (typing->is_identity)
        return node_convert(program, typing, in[0]);
    for (int i = 0; i < node_inputs(node); i++)
        wanted[i] = gni_program_convert(program, in[i], gni_typing_operand(&node->typing, i));
    short value = node_op(program, node, wanted);
    return gni_dtype_is_half(typing->dtype) ? gni_program_round(program, value, typing->dtype)
                                            : value;
}

bool gni_work_has_rows(const struct gni_work *work)
{
    for (int n = 0; n < work->node_count; n++)
        if (work->nodes[n]->is_reduction || work->nodes[n]->count != work->root->count)
            return true;
    return false;
}

/* The rows of a work's values. A full node may have rows of before (N14): those of a value that is computed by now. */
static uint64_t work_rows_key(const struct gni_work *work)
{
    for (int n = 0; n < work->node_count; n++)
        if (work->nodes[n]->is_reduction || work->nodes[n]->is_row)
            return work->nodes[n]->rows.key;
    return 0;
}

/* A node whose dimensions are those of the work's elements: of a row program a reduction, or a full value. */
static const struct gni_node *node_with_shape(const struct gni_work *work, bool has_rows)
{
    uint64_t key = has_rows ? work_rows_key(work) : 0;
    for (int n = 0; n < work->node_count && has_rows; n++)
        if (work->nodes[n]->rows.key == key &&
            (work->nodes[n]->is_reduction || !work->nodes[n]->is_row))
            return work->nodes[n];
    return work->root;
}

void gni_work_build_program(struct gni_work *work, const int *order)
{
    struct gni_program *program = &work->program;
    bool has_rows = gni_work_has_rows(work);
    const struct gni_node *shaped = node_with_shape(work, has_rows);
    short inputs[GNI_PROGRAM_NODES_MOST][3];
    gni_program_init(program, shaped->ndim, shaped->sizes, order);
    if (has_rows) {
        gni_assert(order == NULL && shaped->rows.key != 0);
        program->row_ndim = shaped->rows.ndim;
        program->columns = shaped->rows.columns;
    }
    for (int n = 0; n < work->node_count; n++)
        for (int i = 0; i < node_inputs(work->nodes[n]); i++)
            inputs[n][i] = operand_input(program, work->nodes[n], i, order);
    for (int n = 0; n < work->node_count; n++) {
        struct gni_node *node = work->nodes[n];
        for (int i = 0; i < node_inputs(node); i++)
            if (inputs[n][i] < 0)
                inputs[n][i] = node->operands[i].node->value;
        node->value = node_step(program, node, inputs[n]);
    }
    work->value = work->root->value;
}
