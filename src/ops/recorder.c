/*
 * recorder.c: the nodes that wait, their lock, and operations that become nodes. flush.c computes them.
 */
#include "ops/node.h"

#include "base/fork.h"
#include "base/hash.h"
#include "base/host.h"
#include "base/lock.h"
#include "base/thread.h"
#include "genesis/history.h"
#include "ops/memory_format.h"

#include <string.h>

enum {
    SURELY_MOST = 1 << 30, /* elements of any type that fit the address space */
};

static struct {
    struct gni_lock lock;
    bool is_off; /* fusion is off: nothing waits */
} recorder;

/* Storages without references, linked by next_dead, that are destroyed when the lock is let go: a deleter may be somebody
 * else's code, with locks of its own. */
static struct gni_storage *dead;

/* ---- the lock -------------------------------------------------------------------------------- */

static void fork_prepare(void)
{
    gni_lock_fork_take(&recorder.lock);
    gni_works_fork_prepare();
}

static void fork_done(bool is_child)
{
    gni_works_fork_done(is_child);
    gni_lock_fork_give(&recorder.lock);
}

static const struct gni_fork_handlers recorder_fork = {.prepare = fork_prepare, .done = fork_done};
static struct gni_once recorder_once = GNI_ONCE_INIT;
static atomic_bool is_registered; /* whether recorder_once has run */

static void recorder_register(void)
{
    gni_fork_register(GNI_FORK_RECORDER, &recorder_fork);
    atomic_store_explicit(&is_registered, true, memory_order_release);
}

void gni_recorder_lock(void)
{
    if (!atomic_load_explicit(&is_registered, memory_order_acquire))
        gni_once_run(&recorder_once, recorder_register);
    gni_lock_take(&recorder.lock);
}

void gni_recorder_unlock(void)
{
    struct gni_storage *ended = dead;
    dead = NULL;
    gni_lock_give(&recorder.lock);
    while (ended != NULL) {
        struct gni_storage *next = ended->next_dead;
        gni_storage_destroy(ended);
        ended = next;
    }
}

/* ---- nodes ----------------------------------------------------------------------------------- */

struct gni_list gni_nodes = {.next = &gni_nodes, .prev = &gni_nodes};

struct gni_list gni_resting = {.next = &gni_resting, .prev = &gni_resting};

_Atomic(unsigned) gni_node_count;

uint64_t gni_node_bytes[GNI_DEVICE_TYPES];

/* Under the lock, so that the load and the store need not be one operation. */
static void node_count_change(unsigned change)
{
    unsigned count = atomic_load_explicit(&gni_node_count, memory_order_relaxed);
    atomic_store_explicit(&gni_node_count, count + change, memory_order_release);
}

static uint64_t last_number;

uint64_t gni_node_last_number(void)
{
    return last_number;
}

void gni_storage_bury(struct gni_storage *storage)
{
    storage->next_dead = dead;
    dead = storage;
}

/* Releases a reference to a storage. */
static void storage_drop(struct gni_storage *storage)
{
    if (gni_storage_unhold(storage))
        gni_storage_bury(storage);
}

/* The memory that an operand reads; NULL: none yet, or a number. */
static struct gni_storage *operand_storage(const struct gni_node_operand *operand)
{
    if (operand->kind == GNI_OPERAND_NUMBER)
        return NULL;
    return operand->kind == GNI_OPERAND_MEMORY ? operand->storage : operand->node->storage;
}

static void operands_release(struct gni_node *node)
{
    int arity = node->arity;
    node->arity = 0;
    for (int i = 0; i < arity; i++) {
        struct gni_node_operand *operand = &node->operands[i];
        if (operand->kind == GNI_OPERAND_NUMBER)
            continue;
        gni_list_remove(&operand->link);
        struct gni_storage *storage = operand_storage(operand);
        if (storage != NULL && !node->is_resting)
            gni_node_bytes[node->device->type] -= storage->nbytes;
        if (operand->kind == GNI_OPERAND_MEMORY) {
            storage_drop(storage);
        } else {
            operand->node->reader_count--;
            gni_node_release(operand->node);
        }
    }
}

/* Takes a node out of the list of pending nodes (N1). */
static void node_leave(struct gni_node *node)
{
    if (node->is_done || node->is_inherited)
        return;
    if (node->is_column)
        gni_columns_remove(node);
    gni_list_remove(&node->link);
    if (!node->is_resting)
        node_count_change(-1U);
}

void gni_node_rest(struct gni_node *node)
{
    if (node->is_resting || node->is_inherited)
        return;
    for (int i = 0; i < node->arity; i++) {
        const struct gni_storage *storage = operand_storage(&node->operands[i]);
        if (storage != NULL)
            gni_node_bytes[node->device->type] -= storage->nbytes;
    }
    node_leave(node);
    node->is_resting = true;
    gni_list_push_back(&gni_resting, &node->link);
}

void gni_node_disown(struct gni_node *node)
{
    node_leave(node);
    node->is_inherited = true;
}

void gni_node_forget(struct gni_node *node)
{
    gni_assert(!node->is_running);
    node_leave(node);
    node->is_done = true;
    operands_release(node);
}

void gni_node_release(struct gni_node *node)
{
    gni_assert(node->references > 0);
    if (--node->references > 0)
        return;
    gni_assert(node->owner == NULL && !node->is_running);
    gni_assert(gni_list_is_empty(&node->readers));
    operands_release(node);
    node_leave(node);
    if (node->storage != NULL)
        storage_drop(node->storage);
    if (node->stream != NULL)
        gn_stream_release(node->stream);
    if (node->deferred != NULL)
        gni_host_free(node->deferred);
    gni_host_free(node);
}

/* Strides of a tensor for the dimensions of a node that it broadcasts to. */
static void strides_broadcast(const gn_tensor *tensor, const struct gni_node *node,
                              const int *order, int64_t *strides)
{
    int shift = node->ndim - tensor->ndim;
    for (int i = 0; i < node->ndim; i++) {
        int own = (order != NULL ? order[i] : i) - shift;
        strides[i] =
            own < 0 || tensor->sizes[own] == 1 || node->sizes[i] == 1 ? 0 : tensor->strides[own];
    }
}

static void operand_set(struct gni_node *node, struct gni_node_operand *operand,
                        const gn_operand *given, const int *order, int64_t *strides)
{
    gn_tensor *tensor = given->tensor;
    operand->reader = node;
    if (tensor == NULL) {
        operand->kind = GNI_OPERAND_NUMBER;
        operand->number = given->scalar;
    } else if (tensor->node != NULL) {
        operand->kind = GNI_OPERAND_NODE;
        operand->node = tensor->node;
        gni_list_push_back(&tensor->node->readers, &operand->link);
        tensor->node->references++;
        tensor->node->reader_count++;
    } else {
        struct gni_storage *storage = gni_tensor_storage(tensor);
        operand->kind = GNI_OPERAND_MEMORY;
        operand->dtype = tensor->dtype;
        operand->storage = storage;
        operand->offset = tensor->offset;
        operand->strides = strides;
        strides_broadcast(tensor, node, order, strides);
        node->is_exposed |= atomic_load_explicit(&storage->is_escaped, memory_order_relaxed);
        gni_storage_hold(storage);
        gni_list_push_back(&storage->pending, &operand->link);
        gni_node_bytes[node->device->type] += storage->nbytes;
    }
}

static size_t node_nbytes(int ndim, int arity)
{
    return sizeof(struct gni_node) + (size_t)ndim * (size_t)(arity + 1) * sizeof(int64_t);
}

static gn_status node_create(const struct gni_typing *typing, int arity, const gn_operand *operands,
                             const struct gni_shape *shape, int64_t count, const int *order,
                             gn_device *device, gn_stream *stream, struct gni_node **out)
{
    size_t nbytes = node_nbytes(shape->ndim, arity);
    struct gni_node *node = gni_host_alloc(nbytes);
    if (node == NULL)
        return gni_error_host_memory(nbytes);
    node->references = 1;
    gni_list_init(&node->readers);
    node->typing = *typing;
    node->device = device;
    node->stream = stream != NULL ? gn_stream_retain(stream) : NULL;
    node->number = ++last_number;
    node->weight = 1;
    node->ndim = shape->ndim;
    node->count = count;
    for (int i = 0; i < shape->ndim; i++)
        node->sizes[i] = shape->sizes[order != NULL ? order[i] : i];
    for (int i = 0; i < arity; i++)
        operand_set(node, &node->operands[i], &operands[i], order,
                    node->sizes + (i + 1) * shape->ndim);
    node->arity = arity;
    gni_list_push_back(&gni_nodes, &node->link);
    node_count_change(1);
    *out = node;
    return GN_OK;
}

struct gni_node *gni_node_copy(const struct gni_node *node)
{
    size_t nbytes = node_nbytes(node->ndim, node->arity);
    struct gni_node *copy = gni_host_alloc(nbytes);
    if (copy == NULL)
        return NULL;
    memcpy(copy, node, nbytes);
    copy->references = 1;
    copy->reader_count = 0;
    copy->owner = copy->into = NULL;
    copy->storage = NULL;
    copy->is_done = copy->is_running = copy->is_reduced = false;
    copy->is_resting = true;
    gni_list_init(&copy->readers);
    gni_list_push_back(&gni_resting, &copy->link);
    if (copy->stream != NULL)
        (void)gn_stream_retain(copy->stream);
    for (int i = 0; i < copy->arity; i++) {
        struct gni_node_operand *operand = &copy->operands[i];
        struct gni_storage *storage = operand_storage(operand);
        operand->reader = copy;
        if (operand->kind == GNI_OPERAND_MEMORY) {
            operand->strides = copy->sizes + (i + 1) * copy->ndim;
            gni_storage_hold(storage);
        } else if (operand->kind == GNI_OPERAND_NODE) {
            operand->node->references++;
            operand->node->reader_count++;
        }
        if (operand->kind != GNI_OPERAND_NUMBER)
            gni_list_push_back(storage != NULL ? &storage->pending : &operand->node->readers,
                               &operand->link);
    }
    return copy;
}

/* Operands of nodes that wait. */
static unsigned waiting_readers(const struct gni_node *node)
{
    unsigned count = 0;
    gni_list_each (link, &node->readers)
        count += !gni_container_of(link, struct gni_node_operand, link)->reader->is_resting;
    return count;
}

void gni_node_finish(struct gni_node *node, struct gni_storage *storage)
{
    gn_tensor *owner = node->owner;
    unsigned waiting = node->reader_count > 0 ? waiting_readers(node) : 0;
    gni_assert(node->storage == NULL && !node->is_done && !node->is_running);
    gni_list_append(&storage->pending, &node->readers);
    if (owner == NULL || node->reader_count > 0) {
        node->storage = storage;
        gni_node_bytes[node->device->type] += waiting * (uint64_t)storage->nbytes;
    }
    if (owner == NULL) {
        gni_storage_part(storage); /* a node is a holder */
        return;
    }
    if (node->storage != NULL)
        gni_storage_hold(storage);
    if ((uint32_t)atomic_load(&owner->saves) > 0)
        gni_tensor_count(owner, storage);
    node->owner = NULL;
    node->references--;
    owner->node = NULL;
    /* The last touch: a tensor with a storage may go without the lock. */
    atomic_store_explicit(&owner->storage, storage, memory_order_release);
}

/* ---- recording ------------------------------------------------------------------------------- */

/* What a new node is, as far as it is known before it is made. */
struct recording {
    const struct gni_shape *shape; /* of its operands */
    int64_t count;                 /* elements of that */
    const int *order;              /* of the node's dimensions; NULL: as they are */
    bool is_written;               /* into memory that is there: nothing is broadcast to it */
    struct gni_rows rows;          /* N14; those of its operands so far */
    bool is_row;
    gn_device *device;
    gn_stream *stream; /* NULL where work is immediate */
    unsigned weight;   /* N6 */
};

static uint64_t rows_key(int ndim, const int64_t *sizes, int row_ndim)
{
    return gni_hash_bytes(sizes + ndim - row_ndim, (size_t)row_ndim * sizeof *sizes,
                          (uint64_t)row_ndim) |
           1;
}

/* Whether a node, or one below it, is a row value that is pending. Else its rows say nothing any more. */
static bool has_pending_rows(const struct gni_node *node)
{
    if (node->is_done)
        return false;
    if (node->is_row)
        return true;
    for (int i = 0; i < node->arity; i++)
        if (node->operands[i].kind == GNI_OPERAND_NODE && has_pending_rows(node->operands[i].node))
            return true;
    return false;
}

/* Whether a pending row value of other sizes stands for all columns of its rows in the new node. */
static bool is_spread(const struct recording *recording, const gn_tensor *tensor)
{
    const struct gni_node *node = tensor->node;
    const struct gni_shape *shape = recording->shape;
    int kept = shape->ndim - node->rows.ndim;
    return node->is_row && !recording->is_written && recording->order == NULL &&
           tensor->ndim == shape->ndim && kept >= 0 &&
           tensor->count * node->rows.columns == recording->count &&
           gni_shape_is_equal(kept, tensor->sizes, kept, shape->sizes) &&
           rows_key(shape->ndim, shape->sizes, node->rows.ndim) == node->rows.key;
}

/* Takes over the rows of an operand. False if there are others already. */
static bool rows_take(struct recording *recording, const struct gni_node *node, bool is_row)
{
    if (node->rows.key == 0 || (!node->is_row && !has_pending_rows(node)))
        return true;
    if (recording->rows.key != 0 &&
        (recording->rows.key != node->rows.key || recording->is_row != is_row))
        return false;
    recording->rows = node->rows;
    recording->is_row = is_row;
    return true;
}

/* Why a pending operand must be computed first; NULL: it need not. */
static const char *operand_refuse(struct recording *recording, const gn_tensor *tensor)
{
    const struct gni_node *node = tensor->node;
    const struct gni_shape *shape = recording->shape;
    if (node->deferred != NULL)
        return "it is no elementwise operation";
    if (node->is_column)
        return "it is a sum of columns";
    if (node->stream != recording->stream)
        return "it is needed on another stream";
    if (is_spread(recording, tensor))
        return rows_take(recording, node, false) ? NULL : "it is needed with other rows";
    /* It broadcasts to the shape, so that it has it if it has as many dimensions and elements, unless these are none. */
    if (tensor->ndim != shape->ndim || tensor->count != recording->count ||
        (recording->count == 0 &&
         !gni_shape_is_equal(tensor->ndim, tensor->sizes, shape->ndim, shape->sizes)))
        return "it is needed in another shape";
    /* In an order all operands have the same strides. */
    if (!tensor->is_contiguous && recording->order == NULL)
        return "it is needed in another order of dimensions";
    return rows_take(recording, node, node->is_row) ? NULL : "it is needed with other rows";
}

/* Whether so many nodes are too many for a program. */
static bool is_long(const struct recording *recording, unsigned weight)
{
    unsigned most = recording->rows.key != 0 ? GNI_PROGRAM_NODES_MOST : GNI_CHAIN_NODES_MOST;
    return weight + 3 > most;
}

/* Computes pending operands that cannot be operands of the new node. The lock is released meanwhile, so all are checked
 * again after each. */
static gn_status operands_prepare(struct recording *recording, int arity,
                                  const gn_operand *operands)
{
    const struct recording given = *recording;
    recording->weight = 1;
    for (int i = 0; i < arity; i++) {
        struct gni_node *node = operands[i].tensor != NULL ? operands[i].tensor->node : NULL;
        if (node == NULL)
            continue;
        const char *why = operand_refuse(recording, operands[i].tensor);
        unsigned with = recording->weight + node->weight;
        if (why == NULL && is_long(recording, with))
            with = 1 + (unsigned)gni_operands_weigh(i + 1, operands);
        if (why == NULL && is_long(recording, with))
            why = "the program is long";
        if (why == NULL && !node->is_running) {
            recording->weight = with;
            continue;
        }
        if (node->is_running)
            GN_TRY(gni_running_wait(node));
        else
            GN_TRY(gni_node_flush(node, why));
        i = -1;
        *recording = given;
        recording->weight = 1;
    }
    return GN_OK;
}

/* Begins a node: what is too much is computed, and so are operands that cannot be its. */
static gn_status recording_begin(struct recording *recording, int arity, const gn_operand *operands)
{
    gn_device *device = recording->device;
    uint64_t bytes = gni_node_bytes[device->type];
    if (!device->ops->is_immediate)
        GN_TRY(gni_stream_of(device, &recording->stream));
    if (bytes >= GNI_WAITING_BYTES_LEAST ||
        atomic_load_explicit(&gni_node_count, memory_order_relaxed) >= GNI_WAITING_MOST)
        gni_waiting_bound(arity, operands, device, bytes);
    return operands_prepare(recording, arity, operands);
}

static gn_status node_record(const struct gni_typing *typing, int arity, const gn_operand *operands,
                             struct recording *recording, struct gni_node **node)
{
    GN_TRY(recording_begin(recording, arity, operands));
    GN_TRY(node_create(typing, arity, operands, recording->shape, recording->count,
                       recording->order, recording->device, recording->stream, node));
    (*node)->weight = recording->weight;
    (*node)->rows = recording->rows;
    (*node)->is_row = recording->is_row;
    return GN_OK;
}

/* The first operand of the result's shape, if all of those have the same strides and are not contiguous; else NULL. The result
 * then gets its strides. */
static const gn_tensor *model_find(int arity, const gn_operand *operands,
                                   const struct gni_shape *shape, int64_t count)
{
    const gn_tensor *model = NULL;
    for (int i = 0; i < arity; i++) {
        const gn_tensor *tensor = operands[i].tensor;
        if (tensor == NULL)
            continue;
        /* It broadcasts to the shape, so that it has it if it has as many dimensions and elements. */
        if (tensor->ndim != shape->ndim || tensor->count != count)
            continue;
        if (tensor->is_contiguous ||
            (model != NULL &&
             !gni_shape_is_equal(shape->ndim, tensor->strides, shape->ndim, model->strides)))
            return NULL;
        model = tensor;
    }
    return model;
}

/*
 * Where all operands of the result's shape are transposed in the same way, and have no gaps, the result is, too: it has their
 * strides, as in NumPy and PyTorch, and memory is walked from one end to the other. With gaps it is contiguous, so that it
 * joins more programs. Copies are contiguous unless they are to keep the order, with gaps or without.
 */
static const int *result_order(const struct gni_typing *typing, int arity,
                               const gn_operand *operands, const struct gni_shape *shape,
                               gn_tensor *result, int *order)
{
    int64_t strides[GN_DIMENSIONS_MAX];
    const gn_tensor *model =
        typing->is_copy ? NULL : model_find(arity, operands, shape, result->count);
    if (model == NULL || (!typing->is_identity && !gni_is_dense(model)))
        return NULL;
    gni_order_preserve(model, order, strides);
    gni_tensor_set_layout(result, shape->ndim, shape->sizes, strides);
    return result->is_contiguous ? NULL : order;
}

/* Makes a tensor the owner of a node, and computes the node if it must not wait. On failure the tensor has no node. */
static gn_status node_own(struct gni_node *node, gn_tensor *tensor)
{
    gn_status status = GN_OK;
    node->owner = tensor;
    tensor->node = node;
    if (recorder.is_off || node->is_exposed)
        status = gni_node_flush(node, recorder.is_off ? "fusion is off"
                                                      : "others can reach its operands");
    if (status != GN_OK) {
        node->owner = NULL;
        tensor->node = NULL;
        gni_node_release(node);
    }
    return status;
}

gn_status gni_record(const struct gni_typing *typing, int arity, const gn_operand *operands,
                     const struct gni_shape *shape, int64_t count, gn_device *device,
                     gn_tensor **result)
{
    gn_tensor *tensor;
    struct gni_node *node;
    int room[GN_DIMENSIONS_MAX];
    if (count == 0 || count > SURELY_MOST)
        GN_TRY(gni_shape_check(shape->ndim, shape->sizes, gni_dtypes[typing->dtype].size, &count));
    GN_TRY(gni_tensor_prepare_checked(typing->dtype, shape->ndim, shape->sizes, count, device,
                                      &tensor));
    struct recording recording = {.shape = shape, .count = count, .device = device};
    recording.order = result_order(typing, arity, operands, shape, tensor, room);
    uint32_t site = gn_history_capture(); /* without the lock: an interpreter may be waited for */
    gni_recorder_lock();
    gn_status status = node_record(typing, arity, operands, &recording, &node);
    if (status == GN_OK) {
        node->site = site;
        status = node_own(node, tensor);
    }
    gni_recorder_unlock();
    if (status != GN_OK) {
        gni_host_free(tensor);
        return status;
    }
    *result = tensor;
    return GN_OK;
}

/* Exchanges a dimension of a tensor, which nobody knows yet, with the last one. */
static void dimension_exchange(gn_tensor *tensor, int dimension)
{
    int64_t *numbers[] = {tensor->sizes, tensor->strides};
    for (int i = 0; i < 2; i++) {
        int64_t number = numbers[i][dimension];
        numbers[i][dimension] = numbers[i][tensor->ndim - 1];
        numbers[i][tensor->ndim - 1] = number;
    }
    gni_tensor_measure(tensor);
}

gn_status gni_record_deferred(const struct gni_deferred *deferred, gn_tensor *operand,
                              int dimension, gn_dtype dtype, gn_tensor **result)
{
    struct gni_typing typing = {
        .is_identity = true, .is_copy = true, .computing = dtype, .dtype = dtype};
    gn_operand operands[] = {{.tensor = operand}};
    struct gni_shape shape = {.ndim = operand->ndim};
    gn_tensor *tensor;
    struct gni_node *node;
    memcpy(shape.sizes, operand->sizes, sizeof shape.sizes);
    struct gni_deferred *kept = gni_host_alloc(sizeof *kept);
    if (kept == NULL)
        return gni_error_host_memory(sizeof *kept);
    gn_status status = gni_tensor_prepare(dtype, shape.ndim, shape.sizes, operand->device, &tensor);
    if (status != GN_OK) {
        gni_host_free(kept);
        return status;
    }
    dimension_exchange(tensor, dimension);
    uint32_t site = gn_history_capture();
    gni_recorder_lock();
    status = node_create(&typing, 1, operands, &shape, operand->count, NULL, operand->device, NULL,
                         &node);
    if (status == GN_OK) {
        *kept = *deferred;
        node->deferred = kept;
        node->site = site;
        kept = NULL;
        status = node_own(node, tensor);
    }
    gni_recorder_unlock();
    if (status != GN_OK) {
        gni_host_free(kept);
        gni_host_free(tensor);
        return status;
    }
    *result = tensor;
    return GN_OK;
}

/* The shape of the result of a reduction of the last dimensions, or, if it is one of columns, of all others. */
static void reduced_shape(const struct gni_shape *shape, int row_ndim, bool is_column,
                          bool has_dimensions, struct gni_shape *reduced)
{
    int first = shape->ndim - row_ndim;
    *reduced = (struct gni_shape){.ndim = 0};
    for (int i = 0; i < shape->ndim; i++) {
        bool is_kept = (i < first) != is_column;
        if (is_kept || has_dimensions)
            reduced->sizes[reduced->ndim++] = is_kept ? shape->sizes[i] : 1;
    }
}

/* With the lock. `rows` are those that are reduced, or whose columns are. */
static gn_status reduction_record(gn_reduction reduction, gn_tensor *operand,
                                  const struct gni_rows *rows, bool is_column, gn_dtype dtype,
                                  const struct gni_shape *shape, struct gni_node **out)
{
    const struct gni_typing typing = {.computing = gni_dtypes[operand->dtype].compute,
                                      .dtype = dtype};
    const gn_operand operands[] = {{.tensor = operand}};
    struct recording recording = {
        .shape = shape, .count = operand->count, .rows = *rows, .device = operand->device};
    struct gni_node *node;
    int64_t count = is_column ? rows->columns : operand->count / rows->columns;
    if (is_column)
        GN_TRY(gni_columns_prepare(operand));
    GN_TRY(recording_begin(&recording, 1, operands));
    GN_TRY(node_create(&typing, 1, operands, shape, count, NULL, operand->device, recording.stream,
                       &node));
    node->weight = recording.weight;
    node->rows = *rows;
    node->is_reduction = true;
    node->is_row = !is_column;
    node->reduction = reduction;
    if (is_column)
        gni_columns_add(node);
    *out = node;
    return GN_OK;
}

static gn_status reduction_make(gn_reduction reduction, gn_tensor *operand, int row_ndim,
                                bool is_column, bool has_dimensions, gn_dtype dtype,
                                gn_tensor **result)
{
    struct gni_shape shape = {.ndim = operand->ndim}, reduced;
    memcpy(shape.sizes, operand->sizes, sizeof shape.sizes);
    reduced_shape(&shape, row_ndim, is_column, has_dimensions, &reduced);
    const struct gni_rows rows = {
        .key = rows_key(shape.ndim, shape.sizes, row_ndim),
        .ndim = row_ndim,
        .columns = gni_shape_count(row_ndim, shape.sizes + shape.ndim - row_ndim)};
    gn_tensor *tensor;
    struct gni_node *node;
    gni_assert(rows.columns > 1 && operand->count > 0);
    GN_TRY(gni_tensor_prepare(dtype, reduced.ndim, reduced.sizes, operand->device, &tensor));
    uint32_t site = gn_history_capture();
    gni_recorder_lock();
    gn_status status = reduction_record(reduction, operand, &rows, is_column, dtype, &shape, &node);
    if (status == GN_OK) {
        node->site = site;
        status = node_own(node, tensor);
    }
    gni_recorder_unlock();
    if (status != GN_OK) {
        gni_host_free(tensor);
        return status;
    }
    *result = tensor;
    return GN_OK;
}

gn_status gni_record_reduction(gn_reduction reduction, gn_tensor *operand, int row_ndim,
                               bool has_dimensions, gn_dtype dtype, gn_tensor **result)
{
    return reduction_make(reduction, operand, row_ndim, false, has_dimensions, dtype, result);
}

gn_status gni_record_columns(gn_tensor *operand, int row_ndim, bool has_dimensions, gn_dtype dtype,
                             gn_tensor **result)
{
    return reduction_make(GN_REDUCE_SUM, operand, row_ndim, true, has_dimensions, dtype, result);
}

bool gni_is_pending_row(const gn_tensor *tensor)
{
    gni_recorder_lock();
    bool is_row = tensor->node != NULL && tensor->node->is_row;
    gni_recorder_unlock();
    return is_row;
}

bool gni_is_pending_column(const gn_tensor *tensor)
{
    gni_recorder_lock();
    bool is_column = tensor->node != NULL && tensor->node->is_column;
    gni_recorder_unlock();
    return is_column;
}

gn_status gni_record_into(const struct gni_typing *typing, int arity, const gn_operand *operands,
                          gn_tensor *out)
{
    struct gni_shape shape = {.ndim = out->ndim};
    struct gni_node *node;
    memcpy(shape.sizes, out->sizes, sizeof shape.sizes);
    gni_recorder_lock();
    /* What reads the bytes that go, other than this operation itself, is computed first. */
    struct gni_storage *storage = gni_tensor_storage(out);
    gn_status status = gni_readers_flush(storage, "what it reads is about to be written to");
    struct recording recording = {
        .shape = &shape, .count = out->count, .is_written = true, .device = out->device};
    if (status == GN_OK)
        status = node_record(typing, arity, operands, &recording, &node);
    if (status == GN_OK) {
        node->into = out;
        status = gni_node_flush(node, "it is written into memory");
        node->into = NULL; /* if that failed, and another thread computes it still */
        gni_node_release(node);
    }
    if (status == GN_OK)
        atomic_fetch_add(&storage->version, 1);
    gni_recorder_unlock();
    if (status == GN_OK)
        gni_storage_note_site(storage);
    return status;
}

/* ---- the switch ------------------------------------------------------------------------------ */

bool gn_is_pending(void)
{
    return atomic_load_explicit(&gni_node_count, memory_order_acquire) > 0;
}

gn_status gn_flush(void)
{
    if (!gn_is_pending())
        return GN_OK;
    gni_recorder_lock();
    gn_status status = gni_nodes_flush("a flush was asked for");
    gni_recorder_unlock();
    return status;
}

gn_status gn_set_fusion(bool is_on)
{
    gni_recorder_lock();
    gn_status status = is_on ? GN_OK : gni_nodes_flush("fusion is switched off");
    if (status == GN_OK)
        recorder.is_off = !is_on;
    gni_recorder_unlock();
    return status;
}

bool gn_get_fusion(void)
{
    gni_recorder_lock();
    bool is_on = !recorder.is_off;
    gni_recorder_unlock();
    return is_on;
}
