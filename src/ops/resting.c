/*
 * resting.c: values that are computed again instead of being stored.
 *
 * A value that only the graph of gradients refers to (a spare tensor: tensor.h, T8) is needed once more, in the backward
 * pass, often in a program with others. A program that passes such a node does not store it where that saves memory: the
 * node rests (N12), with what it reads. Who writes to that memory has the value computed before, as with any pending node.
 *
 * A stored value that will be spare later, the operand of a product say, keeps a *recipe* (N13). Once the tensor is spare
 * its bytes go, and it is pending again.
 *
 * A value rests only if what it reads stays anyway, or is no larger than the value. So no more memory is in use than with
 * all values stored.
 */
#include "ops/node.h"

enum {
    BYTES_LEAST = 1 << 20, /* smaller values are stored: launches cost more than they do */
    WEIGHT_MOST = 16,      /* operations that are worth being done again */
    SMALL_SHARE = 8,       /* memory counts as nothing if it is so many times smaller */
};

static size_t nbytes_of(const struct gni_node *node)
{
    return (size_t)node->count * gni_dtypes[node->typing.dtype].size;
}

bool gni_node_is_needed(const struct gni_node *node)
{
    if (node->owner != NULL && !gni_tensor_is_spare(node->owner))
        return true;
    if (node->reader_count == node->inner)
        return false;
    gni_list_each (link, &node->readers) {
        const struct gni_node *reader =
            gni_container_of(link, struct gni_node_operand, link)->reader;
        if (reader->round != node->round && !reader->is_resting)
            return true;
    }
    return false;
}

/* ---- what rests ------------------------------------------------------------------------------ */

/* The bytes that would stay only because a value of so many bytes rests. */
static size_t storage_cost(const struct gni_storage *storage, size_t nbytes)
{
    bool is_free = storage->nbytes * SMALL_SHARE <= nbytes ||
                   atomic_load_explicit(&storage->is_lasting, memory_order_relaxed);
    return is_free ? 0 : storage->nbytes;
}

/* The same for all that a node reads. `costs` are those of the nodes before it. */
static size_t node_cost(const struct gni_node *node, const size_t *costs)
{
    size_t cost = 0;
    for (int i = 0; i < node->arity; i++) {
        const struct gni_node_operand *operand = &node->operands[i];
        if (operand->kind == GNI_OPERAND_MEMORY)
            cost += storage_cost(operand->storage, nbytes_of(node));
        else if (operand->kind == GNI_OPERAND_NODE && operand->node->storage != NULL)
            cost += storage_cost(operand->node->storage, nbytes_of(node));
        else if (operand->kind == GNI_OPERAND_NODE)
            cost += costs[operand->node->place];
    }
    return cost;
}

/* A node will rest: the memory that it reads stays, and costs nothing from now on. */
static void cost_pay(const struct gni_node *node, const enum gni_fate *fates)
{
    for (int i = 0; i < node->arity; i++) {
        const struct gni_node_operand *operand = &node->operands[i];
        struct gni_storage *storage = operand->kind == GNI_OPERAND_MEMORY ? operand->storage
                                      : operand->kind == GNI_OPERAND_NODE ? operand->node->storage
                                                                          : NULL;
        if (storage != NULL)
            atomic_store_explicit(&storage->is_lasting, true, memory_order_relaxed);
        else if (operand->kind == GNI_OPERAND_NODE &&
                 fates[operand->node->place] == GNI_FATE_GONE)
            cost_pay(operand->node, fates);
    }
}

static bool is_worth_it(const struct gni_node *node)
{
    return nbytes_of(node) >= BYTES_LEAST && node->weight <= WEIGHT_MOST && node->deferred == NULL;
}

void gni_work_decide(const struct gni_work *work, const gn_tensor *into, enum gni_fate *fates)
{
    size_t costs[GNI_PROGRAM_NODES_MOST];
    for (int n = 0; n < work->node_count; n++) {
        const struct gni_node *node = work->nodes[n];
        bool is_last = n == work->node_count - 1, is_worth = is_worth_it(node);
        bool is_needed = is_last ? into == NULL : gni_node_is_needed(node);
        costs[n] = node_cost(node, costs);
        fates[n] = is_needed || node->owner != NULL ? GNI_FATE_STORED : GNI_FATE_GONE;
        if (!is_needed && is_worth && node->owner != NULL && costs[n] <= nbytes_of(node)) {
            fates[n] = GNI_FATE_GONE;
            cost_pay(node, fates);
            costs[n] = 0;
        }
        bool has_recipe = is_needed && is_worth && costs[n] == 0 && node->owner != NULL &&
                          node->owner->gradient != NULL && !node->is_exposed;
        if (fates[n] == GNI_FATE_STORED) {
            fates[n] = has_recipe ? GNI_FATE_RECIPE : GNI_FATE_STORED;
            costs[n] = 0;
        }
    }
}

static void recipe_make(const struct gni_node *node, gn_tensor *tensor)
{
    struct gni_node *recipe = gni_node_copy(node);
    if (recipe == NULL)
        return; /* then it stays stored */
    recipe->owner = tensor;
    atomic_store(&tensor->recipe, recipe);
}

/* Readers come first, since they may keep what they read. */
void gni_work_settle(const struct gni_work *work, const enum gni_fate *fates,
                     struct gni_storage **storages)
{
    for (int n = 0; n < work->node_count; n++) {
        struct gni_node *node = work->nodes[n];
        gn_tensor *owner = node->owner;
        if (fates[n] == GNI_FATE_GONE)
            continue;
        gni_node_finish(node, storages[n]);
        if (fates[n] == GNI_FATE_RECIPE && owner != NULL)
            recipe_make(node, owner);
    }
    for (int n = work->node_count - 1; n >= 0; n--) {
        struct gni_node *node = work->nodes[n];
        bool is_held = node->owner != NULL || node->reader_count > 0;
        if (fates[n] == GNI_FATE_GONE && is_held)
            gni_node_rest(node);
        else
            gni_node_forget(node);
    }
}

/* ---- recipes --------------------------------------------------------------------------------- */

static void recipe_release(gn_tensor *tensor)
{
    struct gni_node *recipe = atomic_exchange(&tensor->recipe, NULL);
    if (recipe == NULL)
        return;
    recipe->owner = NULL;
    gni_node_release(recipe);
}

bool gni_recipe_forget(struct gni_node *node)
{
    bool is_recipe = node->owner != NULL && node->is_resting && node->owner->node != node;
    if (is_recipe)
        recipe_release(node->owner);
    return is_recipe;
}

void gni_recorder_forget_recipe(gn_tensor *tensor)
{
    gni_recorder_lock();
    recipe_release(tensor);
    gni_recorder_unlock();
}

void gni_recorder_meet(void)
{
    gni_recorder_lock();
    gni_recorder_unlock();
}

/* Whether a tensor has its memory for itself, with its first content, and only saved values and the caller refer to it. */
static bool can_rest(const gn_tensor *tensor)
{
    const struct gni_storage *storage = gni_tensor_storage(tensor);
    uint64_t saves = atomic_load(&tensor->saves);
    return saves > 0 && saves < GNI_TENSOR_READER &&
           atomic_load(&tensor->references) == saves + 1 &&
           atomic_load(&storage->references) == 1 && atomic_load(&storage->version) == 0 &&
           !atomic_load(&storage->is_escaped) && atomic_load(&storage->aliases) == NULL &&
           atomic_load(&storage->capture) == NULL;
}

void gni_recorder_rest(gn_tensor *tensor)
{
    gni_recorder_lock();
    struct gni_node *recipe = atomic_load(&tensor->recipe);
    if (recipe != NULL && can_rest(tensor)) {
        struct gni_storage *storage = gni_tensor_storage(tensor);
        atomic_store(&tensor->storage, NULL);
        tensor->node = recipe;
        atomic_store(&tensor->recipe, NULL);
        gni_storage_bury(storage);
    }
    gni_recorder_unlock();
}
