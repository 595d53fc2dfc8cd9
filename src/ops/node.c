#include "ops/node.h"

#include "base/host.h"
#include "ops/backend.h"

struct gni_list gni_nodes = {.next = &gni_nodes, .prev = &gni_nodes};

_Atomic(unsigned) gni_node_count;

uint64_t *gni_node_bytes_of(const gn_device *device)
{
    static uint64_t bytes[2]; /* under the lock */
    return &bytes[!gni_device_is_host(device)];
}

/* Written under the lock only: nothing can come between the load and the store. */
static void node_count_change(unsigned change)
{
    unsigned count = atomic_load_explicit(&gni_node_count, memory_order_relaxed);
    atomic_store_explicit(&gni_node_count, count + change, memory_order_release);
}

static struct gni_storage *dead;
static uint64_t last_number;

struct gni_storage *gni_node_take_dead(void)
{
    struct gni_storage *taken = dead;
    dead = NULL;
    return taken;
}

/* A reference to a storage goes; if it was the last one, the storage waits for its end. */
static void storage_drop(struct gni_storage *storage)
{
    if (!gni_storage_unreference(storage))
        return;
    storage->next_dead = dead;
    dead = storage;
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
        struct gni_storage *storage =
            operand->kind == GNI_OPERAND_MEMORY ? operand->storage : operand->node->storage;
        if (storage != NULL)
            *gni_node_bytes_of(node->device) -= storage->nbytes;
        if (operand->kind == GNI_OPERAND_MEMORY) {
            storage_drop(storage);
        } else {
            operand->node->reader_count--;
            gni_node_release(operand->node);
        }
    }
}

void gni_node_leave(struct gni_node *node)
{
    if (gni_list_is_empty(&node->link))
        return;
    gni_list_remove(&node->link);
    node_count_change(-1U);
}

void gni_node_forget(struct gni_node *node)
{
    node->is_done = true;
    gni_node_leave(node);
    operands_release(node);
}

void gni_node_release(struct gni_node *node)
{
    if (--node->references > 0)
        return;
    gni_assert(gni_list_is_empty(&node->readers));
    operands_release(node);
    gni_node_leave(node);
    if (node->storage != NULL)
        storage_drop(node->storage);
    gn_stream_release(node->stream);
    gni_host_free(node->late);
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
        node->weight += tensor->node->weight;
    } else {
        struct gni_storage *storage = gni_tensor_storage(tensor);
        operand->kind = GNI_OPERAND_MEMORY;
        operand->dtype = tensor->dtype;
        operand->storage = storage;
        operand->offset = tensor->offset;
        operand->strides = strides;
        strides_broadcast(tensor, node, order, strides);
        gni_storage_retain(storage);
        gni_list_push_back(&storage->pending, &operand->link);
        *gni_node_bytes_of(node->device) += storage->nbytes;
    }
}

gn_status gni_node_create(const struct gni_typing *typing, int arity, const gn_operand *operands,
                          const struct gni_shape *shape, const int *order, gn_device *device,
                          gn_stream *stream, struct gni_node **out)
{
    size_t numbers = (size_t)shape->ndim * (size_t)(arity + 1);
    size_t nbytes = sizeof(struct gni_node) + numbers * sizeof(int64_t);
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
    node->count = gni_shape_count(shape->ndim, shape->sizes);
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

void gni_node_finish(struct gni_node *node, struct gni_storage *storage)
{
    gn_tensor *owner = node->owner;
    gni_list_append(&storage->pending, &node->readers);
    if (owner == NULL || node->reader_count > 0) {
        node->storage = storage;
        *gni_node_bytes_of(node->device) += node->reader_count * (uint64_t)storage->nbytes;
    }
    if (owner == NULL)
        return;
    if (node->storage != NULL)
        gni_storage_retain(storage);
    atomic_store_explicit(&owner->storage, storage, memory_order_release);
    owner->node = NULL;
    node->owner = NULL;
    node->references--;
}
