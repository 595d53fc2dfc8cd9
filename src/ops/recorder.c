#include "ops/recorder.h"

#include "base/fork.h"
#include "base/host.h"
#include "base/list.h"
#include "base/thread.h"
#include "ops/cpu/run.h"

#include <string.h>

enum operand_kind {
    OPERAND_NUMBER,
    OPERAND_NODE,
    OPERAND_MEMORY,
};

struct operand {
    enum operand_kind kind;
    gn_scalar number;
    struct gni_node *node;
    struct gni_storage *storage; /* of memory */
    gn_dtype dtype;
    int64_t offset;
    int64_t *strides; /* for the node's shape; behind the node */
};

struct gni_node {
    struct gni_list link; /* R1 */
    unsigned references;  /* R2 */
    gn_tensor *owner;
    struct gni_storage *storage; /* once it is computed */
    gn_device *device;
    struct gni_typing typing;
    unsigned weight; /* R6 */
    bool is_reduced; /* a reduction has taken it along: the next one had better find it in memory */
    int arity;
    struct operand operands[3];
    /* while a program is made */
    unsigned round;
    unsigned inner; /* references from nodes of the program */
    short value;
    int ndim;
    int64_t count;
    int64_t sizes[]; /* and the strides of operands */
};

static struct {
    struct gni_mutex mutex;
    struct gni_list pending;
    bool is_off;
    unsigned round;
    struct gni_storage *dead; /* to be released after the lock; linked by `next_dead` */
    struct gni_program program;
    struct gni_node *nodes[GNI_PROGRAM_NODES_MOST]; /* of the program, operands first */
    int node_count;
} recorder = {.mutex = GNI_MUTEX_INIT,
              .pending = {.next = &recorder.pending, .prev = &recorder.pending}};

static const struct gni_fork_handlers recorder_fork = {.mutex = &recorder.mutex};
static struct gni_once recorder_once = GNI_ONCE_INIT;

static void recorder_register(void)
{
    gni_fork_register(GNI_FORK_RECORDER, &recorder_fork);
}

/* ---- the lock -------------------------------------------------------------------------------- */

static void lock_take(void)
{
    gni_once_run(&recorder_once, recorder_register);
    gni_mutex_lock(&recorder.mutex);
}

static void lock_give(void)
{
    struct gni_storage *dead = recorder.dead;
    recorder.dead = NULL;
    gni_mutex_unlock(&recorder.mutex);
    while (dead != NULL) {
        struct gni_storage *next = dead->next_dead;
        gni_storage_destroy(dead);
        dead = next;
    }
}

/* A reference to a storage goes; if it was the last one, the storage ends when the lock is let go. */
static void storage_drop(struct gni_storage *storage)
{
    if (!gni_storage_unreference(storage))
        return;
    storage->next_dead = recorder.dead;
    recorder.dead = storage;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void node_release(struct gni_node *node);

static void operands_release(struct gni_node *node)
{
    int arity = node->arity;
    node->arity = 0;
    for (int i = 0; i < arity; i++) {
        struct operand *operand = &node->operands[i];
        if (operand->kind == OPERAND_MEMORY) {
            operand->storage->reader_count--;
            storage_drop(operand->storage);
        } else if (operand->kind == OPERAND_NODE) {
            if (operand->node->storage != NULL)
                operand->node->storage->reader_count--;
            node_release(operand->node);
        }
    }
}

static void node_release(struct gni_node *node)
{
    if (--node->references > 0)
        return;
    operands_release(node);
    gni_list_remove(&node->link);
    if (node->storage != NULL)
        storage_drop(node->storage);
    gni_host_free(node);
}

/* Strides of a tensor for a shape that it broadcasts to. */
static void strides_broadcast(const gn_tensor *tensor, int ndim, const int64_t *sizes,
                              int64_t *strides)
{
    int shift = ndim - tensor->ndim;
    for (int i = 0; i < ndim; i++)
        strides[i] = i < shift || tensor->sizes[i - shift] == 1 || sizes[i] == 1
                         ? 0
                         : tensor->strides[i - shift];
}

static gn_status node_flush(struct gni_node *root, gn_tensor *into);

/* Pending operands of another shape, and those of which there would be too many, are computed first. */
static gn_status operands_prepare(int arity, const gn_operand *operands,
                                  const struct gni_shape *shape)
{
    unsigned weight = 1;
    for (int i = 0; i < arity; i++) {
        gn_tensor *tensor = operands[i].tensor;
        if (tensor == NULL || tensor->node == NULL)
            continue;
        if (!gni_shape_is_equal(tensor->ndim, tensor->sizes, shape->ndim, shape->sizes) ||
            weight + tensor->node->weight + 3 > GNI_PROGRAM_NODES_MOST)
            GN_TRY(node_flush(tensor->node, NULL));
        else
            weight += tensor->node->weight;
    }
    return GN_OK;
}

static void operand_set(struct gni_node *node, struct operand *operand, const gn_operand *given,
                        int64_t *strides)
{
    gn_tensor *tensor = given->tensor;
    if (tensor == NULL) {
        *operand = (struct operand){.kind = OPERAND_NUMBER, .number = given->scalar};
    } else if (tensor->node != NULL) {
        *operand = (struct operand){.kind = OPERAND_NODE, .node = tensor->node};
        tensor->node->references++;
        node->weight += tensor->node->weight;
    } else {
        struct gni_storage *storage = gni_tensor_storage(tensor);
        *operand = (struct operand){.kind = OPERAND_MEMORY,
                                    .storage = storage,
                                    .dtype = tensor->dtype,
                                    .offset = tensor->offset,
                                    .strides = strides};
        strides_broadcast(tensor, node->ndim, node->sizes, strides);
        gni_storage_retain(storage);
        storage->reader_count++;
    }
}

/* With the lock, after operands_prepare(): a node without an owner, with one reference. */
static gn_status node_create(const struct gni_typing *typing, int arity, const gn_operand *operands,
                             const struct gni_shape *shape, gn_device *device,
                             struct gni_node **out)
{
    size_t numbers = (size_t)shape->ndim * (size_t)(arity + 1);
    size_t nbytes = sizeof(struct gni_node) + numbers * sizeof(int64_t);
    struct gni_node *node = gni_host_alloc(nbytes);
    if (node == NULL)
        return gni_error_host_memory(nbytes);
    node->references = 1;
    node->typing = *typing;
    node->device = device;
    node->weight = 1;
    node->ndim = shape->ndim;
    node->count = gni_shape_count(shape->ndim, shape->sizes);
    memcpy(node->sizes, shape->sizes, sizeof *shape->sizes * (size_t)shape->ndim);
    for (int i = 0; i < arity; i++)
        operand_set(node, &node->operands[i], &operands[i], node->sizes + (i + 1) * shape->ndim);
    node->arity = arity;
    gni_list_push_back(&recorder.pending, &node->link);
    *out = node;
    return GN_OK;
}

/* ---- programs -------------------------------------------------------------------------------- */

/* The nodes that a node needs, operands first, that are not computed. */
static void nodes_collect(struct gni_node *node)
{
    if (node->round == recorder.round || node->storage != NULL)
        return;
    node->round = recorder.round;
    node->inner = 0;
    for (int i = 0; i < node->arity; i++) {
        if (node->operands[i].kind != OPERAND_NODE)
            continue;
        nodes_collect(node->operands[i].node);
        node->operands[i].node->inner++;
    }
    gni_assert(recorder.node_count < GNI_PROGRAM_NODES_MOST);
    recorder.nodes[recorder.node_count++] = node;
}

/* `permuted` strides are those of a node's dimensions in the order of the program's. */
static const int64_t *strides_permute(const int64_t *strides, int ndim, const int *order,
                                      int64_t *permuted)
{
    for (int i = 0; i < ndim; i++)
        permuted[i] = strides[order != NULL ? order[i] : i];
    return permuted;
}

static short operand_input(struct gni_program *program, const struct gni_node *node, int i,
                           const int *order)
{
    const struct operand *operand = &node->operands[i];
    int64_t strides[GN_DIMENSIONS_MAX], contiguous[GN_DIMENSIONS_MAX];
    switch (operand->kind) {
    case OPERAND_NUMBER:
        return gni_program_add_number(program, operand->number,
                                      gni_typing_operand(&node->typing, i));
    case OPERAND_MEMORY:
        return gni_program_add_memory(
            program,
            operand->storage->data + operand->offset * (int64_t)gni_dtype_size(operand->dtype),
            operand->dtype, strides_permute(operand->strides, node->ndim, order, strides));
    case OPERAND_NODE:
        if (operand->node->storage == NULL)
            return -1; /* a step */
        gni_strides_contiguous(node->ndim, node->sizes, contiguous);
        return gni_program_add_memory(program, operand->node->storage->data,
                                      operand->node->typing.dtype,
                                      strides_permute(contiguous, node->ndim, order, strides));
    }
    return -1;
}

static short node_step(struct gni_program *program, const struct gni_node *node, const short *in)
{
    const struct gni_typing *typing = &node->typing;
    short wanted[3];
    if (typing->is_identity) {
        short value = gni_program_convert(program, in[0], typing->computing);
        return gni_dtype_is_half(typing->dtype) && gni_program_held(program, in[0]) != typing->dtype
                   ? gni_program_round(program, value, typing->dtype)
                   : value;
    }
    for (int i = 0; i < node->arity; i++)
        wanted[i] = gni_program_convert(program, in[i], gni_typing_operand(&node->typing, i));
    gn_dtype held = typing->dtype == GN_BOOL ? GN_BOOL : typing->computing;
    short value =
        gni_program_add_op(program, typing->op, typing->computing, held, node->arity, wanted);
    return gni_dtype_is_half(typing->dtype) ? gni_program_round(program, value, typing->dtype)
                                            : value;
}

/* The program of the collected nodes, without outputs. */
static void program_make(const struct gni_node *root, const int *order)
{
    struct gni_program *program = &recorder.program;
    short inputs[GNI_PROGRAM_NODES_MOST][3];
    program->ndim = root->ndim;
    program->count = root->count;
    for (int i = 0; i < root->ndim; i++)
        program->sizes[i] = root->sizes[order != NULL ? order[i] : i];
    program->input_count = program->step_count = program->output_count = 0;
    for (int n = 0; n < recorder.node_count; n++)
        for (int i = 0; i < recorder.nodes[n]->arity; i++)
            inputs[n][i] = operand_input(program, recorder.nodes[n], i, order);
    for (int n = 0; n < recorder.node_count; n++) {
        struct gni_node *node = recorder.nodes[n];
        for (int i = 0; i < node->arity; i++)
            if (inputs[n][i] < 0)
                inputs[n][i] = node->operands[i].node->value;
        node->value = node_step(program, node, inputs[n]);
    }
}

static void collect_from(struct gni_node *root)
{
    recorder.round++;
    recorder.node_count = 0;
    nodes_collect(root);
}

/* Whether somebody outside of the program needs a node's value: its tensor, or another node. */
static bool is_needed(const struct gni_node *node)
{
    return node->owner != NULL || node->references > node->inner;
}

static void output_add(struct gni_program *program, const struct gni_node *node, char *data,
                       gn_dtype dtype)
{
    program->outputs[program->output_count++] =
        (struct gni_output){.value = node->value, .dtype = dtype, .data = data};
}

/* Memory for every value that is needed; all or nothing. */
static gn_status storages_create(struct gni_storage **storages)
{
    gn_status status = GN_OK;
    int n = 0;
    for (; n < recorder.node_count && status == GN_OK; n++) {
        const struct gni_node *node = recorder.nodes[n];
        storages[n] = NULL;
        if (is_needed(node))
            status = gni_storage_create(node->device,
                                        (size_t)node->count * gni_dtype_size(node->typing.dtype),
                                        &storages[n]);
    }
    if (status != GN_OK)
        for (int i = 0; i < n; i++)
            gni_storage_release(storages[i]); /* our own: no foreign deleter */
    return status;
}

/* A node has its bytes; who reads it from now on reads them. The caller has a reference. */
static void node_finish(struct gni_node *node, struct gni_storage *storage)
{
    gn_tensor *owner = node->owner;
    node->storage = storage;
    storage->reader_count += node->references - (owner != NULL ? 1 : 0);
    if (owner == NULL)
        return;
    gni_storage_retain(storage);
    atomic_store_explicit(&owner->storage, storage, memory_order_release);
    owner->node = NULL;
    node->owner = NULL;
    node->references--;
}

/*
 * With the lock: computes a node and what it needs. Its value goes into new memory, or into `into`, which has its
 * shape; then it must have no owner, one reference, and nobody may need what `into` overlaps.
 */
static gn_status node_flush(struct gni_node *root, gn_tensor *into)
{
    struct gni_program *program = &recorder.program;
    struct gni_storage *storages[GNI_PROGRAM_NODES_MOST];
    collect_from(root);
    program_make(root, NULL);
    if (into != NULL)
        root->inner = root->references; /* nobody needs it in memory of its own */
    GN_TRY(storages_create(storages));
    for (int n = 0; n < recorder.node_count; n++)
        if (storages[n] != NULL)
            output_add(program, recorder.nodes[n], storages[n]->data,
                       recorder.nodes[n]->typing.dtype);
    if (into != NULL) {
        output_add(program, root, gni_tensor_data(into), into->dtype);
        struct gni_output *output = &program->outputs[program->output_count - 1];
        output->is_strided = !into->is_contiguous;
        memcpy(output->strides, into->strides, sizeof output->strides);
    }
    gni_cpu_run(program);
    for (int n = 0; n < recorder.node_count; n++)
        if (storages[n] != NULL)
            node_finish(recorder.nodes[n], storages[n]);
    for (int n = 0; n < recorder.node_count; n++)
        recorder.nodes[n]->references++; /* until all have let go their operands */
    for (int n = 0; n < recorder.node_count; n++)
        operands_release(recorder.nodes[n]);
    for (int n = 0; n < recorder.node_count; n++)
        node_release(recorder.nodes[n]);
    return GN_OK;
}

static gn_status flush_all(void)
{
    while (!gni_list_is_empty(&recorder.pending)) {
        struct gni_node *last = NULL;
        for (struct gni_list *link = recorder.pending.prev; link != &recorder.pending;
             link = link->prev) {
            struct gni_node *node = gni_container_of(link, struct gni_node, link);
            if (node->storage == NULL) {
                last = node;
                break;
            }
        }
        if (last == NULL)
            return GN_OK;
        GN_TRY(node_flush(last, NULL));
    }
    return GN_OK;
}

/* ---- for the layer below ---------------------------------------------------------------------- */

gn_status gni_tensor_flush(gn_tensor *tensor)
{
    if (gni_tensor_storage(tensor) != NULL)
        return GN_OK;
    lock_take();
    gn_status status = tensor->node != NULL ? node_flush(tensor->node, NULL) : GN_OK;
    lock_give();
    return status;
}

gn_status gni_storage_flush_readers(struct gni_storage *storage)
{
    lock_take();
    gn_status status = storage->reader_count > 0 ? flush_all() : GN_OK;
    lock_give();
    return status;
}

void gni_node_abandon(gn_tensor *tensor)
{
    lock_take();
    if (tensor->node != NULL) {
        tensor->node->owner = NULL;
        node_release(tensor->node);
        tensor->node = NULL;
    }
    lock_give();
}

/* ---- recording ------------------------------------------------------------------------------- */

static bool reads_escaped(int arity, const gn_operand *operands)
{
    for (int i = 0; i < arity; i++) {
        const gn_tensor *tensor = operands[i].tensor;
        const struct gni_storage *storage = tensor != NULL ? gni_tensor_storage(tensor) : NULL;
        if (storage != NULL && atomic_load_explicit(&storage->is_escaped, memory_order_relaxed))
            return true;
    }
    return false;
}

gn_status gni_record(const struct gni_typing *typing, int arity, const gn_operand *operands,
                     const struct gni_shape *shape, gn_device *device, gn_tensor **result)
{
    gn_tensor *tensor;
    struct gni_node *node;
    GN_TRY(gni_tensor_prepare(typing->dtype, shape->ndim, shape->sizes, device, &tensor));
    lock_take();
    gn_status status = operands_prepare(arity, operands, shape);
    if (status == GN_OK)
        status = node_create(typing, arity, operands, shape, device, &node);
    if (status == GN_OK) {
        node->owner = tensor;
        tensor->node = node;
        if (recorder.is_off || reads_escaped(arity, operands))
            status = node_flush(node, NULL);
        if (status != GN_OK) {
            node->owner = NULL;
            tensor->node = NULL;
            node_release(node);
        }
    }
    lock_give();
    if (status != GN_OK) {
        gni_host_free(tensor);
        return status;
    }
    *result = tensor;
    return GN_OK;
}

gn_status gni_record_into(const struct gni_typing *typing, int arity, const gn_operand *operands,
                          gn_tensor *out)
{
    struct gni_shape shape = {.ndim = out->ndim};
    struct gni_node *node;
    memcpy(shape.sizes, out->sizes, sizeof shape.sizes);
    lock_take();
    /* What reads the bytes that go, other than this operation itself, is computed first. */
    struct gni_storage *storage = gni_tensor_storage(out);
    gn_status status = storage->reader_count > 0 ? flush_all() : GN_OK;
    if (status == GN_OK)
        status = operands_prepare(arity, operands, &shape);
    if (status == GN_OK)
        status = node_create(typing, arity, operands, &shape, out->device, &node);
    if (status == GN_OK) {
        status = node_flush(node, out);
        node_release(node);
    }
    if (status == GN_OK)
        atomic_fetch_add(&storage->version, 1);
    lock_give();
    return status;
}

gn_status gni_program_begin(gn_tensor *tensor, const int *order, struct gni_program **out,
                            short *value)
{
    struct gni_program *program = &recorder.program;
    lock_take();
    if (tensor->node != NULL) {
        collect_from(tensor->node);
        bool is_simple = !tensor->node->is_reduced; /* and nobody else needs anything of it */
        for (int n = 0; n < recorder.node_count - 1; n++)
            is_simple &= !is_needed(recorder.nodes[n]);
        gn_status status = is_simple ? GN_OK : node_flush(tensor->node, NULL);
        if (status != GN_OK) {
            lock_give();
            return status;
        }
    }
    if (tensor->node != NULL) {
        collect_from(tensor->node);
        program_make(tensor->node, order);
        tensor->node->is_reduced = true;
        *value = tensor->node->value;
    } else {
        int64_t strides[GN_DIMENSIONS_MAX];
        program->ndim = tensor->ndim;
        program->count = tensor->count;
        program->input_count = program->step_count = program->output_count = 0;
        for (int i = 0; i < tensor->ndim; i++)
            program->sizes[i] = tensor->sizes[order != NULL ? order[i] : i];
        *value =
            gni_program_add_memory(program, gni_tensor_data(tensor), tensor->dtype,
                                   strides_permute(tensor->strides, tensor->ndim, order, strides));
    }
    *out = program;
    return GN_OK;
}

void gni_program_end(void)
{
    lock_give();
}

/* ---- the switch ------------------------------------------------------------------------------ */

gn_status gn_flush(void)
{
    lock_take();
    gn_status status = flush_all();
    lock_give();
    return status;
}

gn_status gn_set_fusion(bool is_on)
{
    lock_take();
    gn_status status = is_on ? GN_OK : flush_all();
    if (status == GN_OK)
        recorder.is_off = !is_on;
    lock_give();
    return status;
}

bool gn_get_fusion(void)
{
    lock_take();
    bool is_on = !recorder.is_off;
    lock_give();
    return is_on;
}
