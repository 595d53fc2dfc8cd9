/*
 * reuse.c: values that are computed into the memory of an input.
 *
 * When nothing but a program refers to the memory of one of its inputs, that memory goes when the program has run. An output
 * of the same size takes it over instead, and each element is written where the last one that it is made of was read: the
 * gradient of a cross entropy over the logits, an activation over what it is computed from. Less memory is needed at a time.
 *
 * Invariants:
 *   RU1 the operands of the work's nodes are the only references to memory that is taken over, and all those nodes are
 *       computed for good: none of them rests, or has a recipe;
 *   RU2 the program reads that memory as one input, contiguous like the output, and no step reads it after the one that
 *       computes the output's value, in no phase of a row program. The input is not reduced itself, and no other output is the
 *       input, or the input rounded: those are read when all steps have run.
 *
 * Threads: under the recorder's lock. All holders of the memory are this work's, so that nobody else can get a reference.
 */
#include "ops/node.h"
#include "ops/row_phases.h"

enum {
#ifdef GNI_DEBUG
    BYTES_LEAST = 1 << 10, /* so that small tests come here */
#else
    BYTES_LEAST = 1 << 20, /* smaller memory is not worth the search */
#endif
};

/* RU1, second half. */
static bool is_for_good(const struct gni_work *work, const enum gni_fate *fates)
{
    for (int n = 0; n < work->node_count; n++) {
        const struct gni_node *node = work->nodes[n];
        bool is_held = node->owner != NULL || node->reader_count > node->inner;
        if (fates[n] == GNI_FATE_RECIPE || (fates[n] == GNI_FATE_GONE && is_held))
            return false;
    }
    return true;
}

/* The operands of the work's nodes that are a storage. */
static size_t operands_count(const struct gni_work *work, const struct gni_storage *storage)
{
    size_t count = 0;
    for (int n = 0; n < work->node_count; n++)
        for (int i = 0; i < work->nodes[n]->arity; i++) {
            const struct gni_node_operand *operand = &work->nodes[n]->operands[i];
            count += operand->kind == GNI_OPERAND_MEMORY && operand->storage == storage;
        }
    return count;
}

/* The one input that reads a storage, if its elements lie as those of the program; else -1. */
static int input_find(const struct gni_program *program, const struct gni_storage *storage)
{
    int64_t contiguous[GN_DIMENSIONS_MAX];
    int found = -1;
    gni_strides_contiguous(program->ndim, program->sizes, contiguous);
    for (int i = 0; i < program->input_count; i++) {
        const struct gni_input *input = &program->inputs[i];
        if (input->storage != storage)
            continue;
        if (found >= 0 || input->data != storage->data)
            return -1;
        for (int d = 0; d < program->ndim; d++)
            if (program->sizes[d] != 1 && input->strides[d] != contiguous[d])
                return -1;
        found = i;
    }
    return found;
}

/* Whether an input is read when all steps of a phase have run: it is reduced, or an output as it is or rounded. */
static bool is_read_last(const struct gni_program *program, int input)
{
    for (int s = 0; s < program->step_count; s++)
        if (program->steps[s].kind == GNI_STEP_REDUCE && program->steps[s].in[0] == input)
            return true;
    for (int i = 0; i < program->output_count; i++) {
        int value = program->outputs[i].value, step = value - program->input_count;
        if (value == input || (step >= 0 && program->steps[step].kind == GNI_STEP_ROUND &&
                               program->steps[step].in[0] == input))
            return true;
    }
    return false;
}

/* Whether an input is read after a value was computed. */
static bool is_read_later(const struct gni_program *program, int input, int value)
{
    for (int s = value - program->input_count + 1; s < program->step_count; s++)
        for (int i = 0; i < 3; i++)
            if (program->steps[s].in[i] == input)
                return true;
    if (program->row_ndim == 0)
        return false;
    struct gni_row_phases phases; /* large, and all that is read of it is set */
    gni_row_phases_make(&phases, program, GNI_ROW_KEEP_NONE);
    for (int p = phases.phase[value] + 1; p < phases.count; p++)
        if (gni_row_is_needed(&phases, p, input))
            return true;
    return false;
}

static bool can_take(const struct gni_work *work, const struct gni_node *node,
                     const struct gni_storage *storage)
{
    const struct gni_program *program = &work->program;
    size_t size = gni_dtypes[node->typing.dtype].size;
    if (storage->nbytes != (size_t)node->count * size ||
        !gni_storage_can_be_taken(storage, operands_count(work, storage)))
        return false;
    int input = input_find(program, storage);
    return input >= 0 && gni_dtypes[program->inputs[input].held].size == size &&
           !is_read_last(program, input) && !is_read_later(program, input, node->value);
}

/* Memory that a node's value can have; NULL: there is none. */
static struct gni_storage *storage_find(const struct gni_work *work, const struct gni_node *node)
{
    for (int i = 0; i < work->program.input_count; i++) {
        struct gni_storage *storage = work->program.inputs[i].storage;
        if (storage != NULL && can_take(work, node, storage))
            return storage;
    }
    return NULL;
}

void gni_work_reuse(const struct gni_work *work, const enum gni_fate *fates,
                    struct gni_storage **storages)
{
    bool can_any = work->root->into == NULL && work->root->deferred == NULL;
    for (int n = 0; n < work->node_count; n++) {
        const struct gni_node *node = work->nodes[n];
        size_t nbytes = (size_t)node->count * gni_dtypes[node->typing.dtype].size;
        storages[n] = NULL;
        if (!can_any || fates[n] != GNI_FATE_STORED || nbytes < BYTES_LEAST || node->is_column ||
            node->count != work->program.count || node->value < work->program.input_count)
            continue;
        can_any = is_for_good(work, fates);
        storages[n] = can_any ? storage_find(work, node) : NULL;
        if (storages[n] != NULL)
            gni_storage_take(storages[n]);
    }
}
