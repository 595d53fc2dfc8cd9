/*
 * cut.c: from nodes to a program: those that a value needs are collected, operands first, and become inputs and
 * steps.
 */
#include "ops/node.h"

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
    work->nodes[work->node_count++] = node;
    return true;
}

bool gni_work_collect(struct gni_work *work, struct gni_node *root)
{
    static uint64_t round;
    work->node_count = 0;
    work->stream = root->stream;
    return nodes_collect(work, root, ++round);
}

/* Strides of a node's dimensions in the order of the program's, which `permuted` has room for. */
static const int64_t *strides_permute(const int64_t *strides, int ndim, const int *order,
                                      int64_t *permuted)
{
    if (order == NULL)
        return strides;
    for (int i = 0; i < ndim; i++)
        permuted[i] = strides[order[i]];
    return permuted;
}

static short operand_input(struct gni_program *program, const struct gni_node *node, int i,
                           const int *order)
{
    const struct gni_node_operand *operand = &node->operands[i];
    int64_t strides[GN_DIMENSIONS_MAX], contiguous[GN_DIMENSIONS_MAX];
    switch (operand->kind) {
    case GNI_OPERAND_NUMBER:
        return gni_program_add_number(program, operand->number,
                                      node->typing.is_identity
                                          ? node->typing.dtype /* a half is rounded once */
                                          : gni_typing_operand(&node->typing, i));
    case GNI_OPERAND_MEMORY:
        return gni_program_add_memory(
            program, operand->storage, operand->offset, operand->dtype,
            strides_permute(operand->strides, node->ndim, order, strides));
    case GNI_OPERAND_NODE:
        if (operand->node->storage == NULL)
            return -1; /* a step */
        gni_strides_contiguous(node->ndim, node->sizes, contiguous);
        return gni_program_add_memory(program, operand->node->storage, 0,
                                      operand->node->typing.dtype,
                                      strides_permute(contiguous, node->ndim, order, strides));
    }
    return -1;
}

/* The operations of a power of a number (promote.h); -1: the node is no such power. */
static int node_power_ops(const struct gni_node *node, enum gni_op *ops)
{
    if (node->typing.is_identity || node->typing.op != GNI_OP_POWER ||
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
                                  typing->dtype == GN_BOOL ? GN_BOOL : computing, node->arity, in);
    short value = in[0];
    for (int i = 0; i < count; i++)
        value = gni_program_add_op(program, ops[i], computing, computing, gni_op_arity(ops[i]),
                                   (short[]){value, in[0]});
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
    if (typing->is_identity)
        return node_convert(program, typing, in[0]);
    for (int i = 0; i < node_inputs(node); i++)
        wanted[i] = gni_program_convert(program, in[i], gni_typing_operand(&node->typing, i));
    short value = node_op(program, node, wanted);
    return gni_dtype_is_half(typing->dtype) ? gni_program_round(program, value, typing->dtype)
                                            : value;
}

void gni_work_cut(struct gni_work *work, const int *order)
{
    struct gni_program *program = &work->program;
    const struct gni_node *root = work->nodes[work->node_count - 1];
    short inputs[GNI_PROGRAM_NODES_MOST][3];
    gni_program_init(program, root->ndim, root->sizes, order);
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
    work->value = root->value;
}
