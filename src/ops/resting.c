/*
 * resting.c: values that are computed again instead of being stored.
 *
 * A value that only the graph of gradients refers to (a spare tensor: tensor.h, T8) is needed once more, in the backward
 * pass, often in a program with others. A program that passes such a node does not store it where that saves memory: the
 * node rests (N12), with what it reads. Who writes to that memory has the value computed before, as with any pending node.
 *
 * A stored value that will be spare later, the operand of a product say, keeps a *recipe* (N13). Once the tensor is spare
 * its bytes go, and it is pending again. Most tensors are saved, if at all, by the operation that has asked for their
 * value: a recipe whose tensor is not saved is *idle*, and goes soon.
 *
 * What a value reads, down to memory, are its *sources*. A value rests only if those of its sources that would go otherwise
 * are together no larger than the value. Then they stay, and further values can rest on them for nothing. A recipe is kept
 * only if all sources stay anyway.
 */
#include "ops/node.h"

#include "base/option.h"
#include "tensor/graph_capture.h"

#include <string.h>

enum {
    WEIGHT_MOST = 16, /* operations that are worth being done again */
    SMALL_SHARE = 8,  /* memory counts as nothing if it is so many times smaller */
    IDLE_MOST = 8,    /* idle recipes */
    LOOKS_MOST = 16,  /* readers of a storage that are looked at */
    SOURCES_MOST = GNI_PROGRAM_INPUTS_MOST + GNI_PROGRAM_NODES_MOST,
    SOURCE_WORDS = (SOURCES_MOST + 63) / 64,
};

static size_t nbytes_of(const struct gni_node *node)
{
    return (size_t)node->count * gni_dtypes[node->typing.dtype].size;
}

/* ---- the switch -------------------------------------------------------------------------------- */

static size_t bytes_least; /* under the lock; 0: not known yet */

static void least_set(size_t nbytes)
{
    bytes_least = nbytes;
    atomic_store_explicit(&gni_counted_least, nbytes / SMALL_SHARE, memory_order_relaxed);
}

static void least_find(void)
{
    if (bytes_least == 0)
        least_set((size_t)gni_option_size(GNI_OPTION_RECOMPUTE_LEAST));
}

static bool is_large(const struct gni_node *node)
{
    least_find();
    return nbytes_of(node) >= bytes_least;
}

size_t gni_resting_set_least(size_t nbytes)
{
    gni_recorder_lock();
    size_t before = bytes_least;
    least_set(nbytes);
    gni_recorder_unlock();
    return before;
}

/* ---- what is needed ---------------------------------------------------------------------------- */

static bool is_recipe(const struct gni_node *node)
{
    return node->is_resting && node->owner != NULL && node->owner->node != node;
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

/* ---- sources ----------------------------------------------------------------------------------- */

struct source {
    const void *memory; /* a storage, or a node that will have one */
    size_t nbytes;      /* 0: it stays anyway */
};

struct source_set {
    uint64_t bits[SOURCE_WORDS];
};

struct decision {
    const struct gni_work *work;
    enum gni_fate *fates;
    int source_count;
    struct source sources[SOURCES_MOST];
    struct source_set sets[GNI_PROGRAM_NODES_MOST]; /* of each node */
    unsigned weights[GNI_PROGRAM_NODES_MOST];       /* of those whose operands are not stored: N6 */
};

/* True if a resting node reads the storage, as far as a short look tells. One of the work itself may end with it. */
static bool is_rested_on(const struct gni_storage *storage, uint64_t round)
{
    int looks = 0;
    for (const struct gni_list *link = storage->pending.next;
         link != &storage->pending && looks++ < LOOKS_MOST; link = link->next) {
        const struct gni_node *reader =
            gni_container_of(link, struct gni_node_operand, link)->reader;
        if (reader->is_resting && reader->round != round && !is_recipe(reader))
            return true;
    }
    return false;
}

static bool storage_stays(const struct gni_storage *storage, uint64_t round)
{
    return atomic_load_explicit(&storage->is_lasting, memory_order_relaxed) ||
           atomic_load_explicit(&storage->saved_tensors, memory_order_relaxed) > 0 ||
           is_rested_on(storage, round);
}

static void source_add(struct decision *decision, struct source_set *set, const void *memory,
                       const struct gni_storage *storage, size_t nbytes)
{
    int at = 0;
    while (at < decision->source_count && decision->sources[at].memory != memory)
        at++;
    if (at == decision->source_count) {
        gni_assert(at < SOURCES_MOST);
        decision->source_count++;
        uint64_t round = decision->work->nodes[0]->round;
        bool stays = storage != NULL && storage_stays(storage, round);
        decision->sources[at] = (struct source){.memory = memory, .nbytes = stays ? 0 : nbytes};
    }
    set->bits[at / 64] |= UINT64_C(1) << (at % 64);
}

/* What an operand reads becomes a part of the set, and what it weighs of the weight. */
static void operand_add(struct decision *decision, struct source_set *set, unsigned *weight,
                        const struct gni_node_operand *operand)
{
    if (operand->kind == GNI_OPERAND_NUMBER)
        return;
    const struct gni_storage *storage =
        operand->kind == GNI_OPERAND_MEMORY ? operand->storage : operand->node->storage;
    if (storage != NULL) {
        source_add(decision, set, storage, storage, storage->nbytes);
        return;
    }
    const struct gni_node *node = operand->node;
    if (decision->fates[node->place] == GNI_FATE_GONE && !node->is_row) {
        for (int i = 0; i < SOURCE_WORDS; i++)
            set->bits[i] |= decision->sets[node->place].bits[i];
        *weight += decision->weights[node->place];
        return;
    }
    bool is_saved = node->owner != NULL && (uint32_t)atomic_load(&node->owner->saves) > 0;
    source_add(decision, set, node, NULL, is_saved ? 0 : nbytes_of(node));
}

/* The bytes that would stay only because a value of so many bytes rests. */
static size_t set_cost(const struct decision *decision, const struct source_set *set, size_t nbytes)
{
    size_t cost = 0;
    for (int i = 0; i < decision->source_count; i++)
        if ((set->bits[i / 64] >> (i % 64) & 1) != 0 &&
            decision->sources[i].nbytes > nbytes / SMALL_SHARE)
            cost += decision->sources[i].nbytes;
    return cost;
}

/* A value rests: its sources stay. */
static void set_pay(struct decision *decision, const struct source_set *set)
{
    for (int i = 0; i < decision->source_count; i++)
        if ((set->bits[i / 64] >> (i % 64) & 1) != 0)
            decision->sources[i].nbytes = 0;
}

/* ---- what rests -------------------------------------------------------------------------------- */

static bool can_be_again(const struct gni_node *node)
{
    return node->deferred == NULL && !node->is_row && !node->is_column && is_large(node);
}

/* True if nothing needs a node but nodes that a reduction has computed already: nobody may ever ask for their values. */
static bool is_needed_hardly(const struct gni_node *node)
{
    if (node->owner != NULL && !gni_tensor_is_spare(node->owner))
        return false;
    gni_list_each (link, &node->readers) {
        const struct gni_node *reader =
            gni_container_of(link, struct gni_node_operand, link)->reader;
        if (reader->round != node->round && !reader->is_resting &&
            (!reader->is_reduced || reader->is_running))
            return false;
    }
    return true;
}

/* The fate of a node whose value is worth being computed again. A walk that reads a value may read it again. */
static enum gni_fate fate_choose(struct decision *decision, int n, bool is_needed)
{
    const struct gni_node *node = decision->work->nodes[n];
    size_t cost = set_cost(decision, &decision->sets[n], nbytes_of(node));
    if (!is_needed && cost <= nbytes_of(node)) {
        set_pay(decision, &decision->sets[n]);
        return GNI_FATE_GONE;
    }
    bool has_recipe = cost == 0 && node->owner != NULL && !node->is_exposed &&
                      atomic_load(&node->owner->saves) < GNI_TENSOR_READER;
    return has_recipe ? GNI_FATE_RECIPE : GNI_FATE_STORED;
}

/* Row values that resting nodes read are stored: they never rest (N14). Nodes between them and the resting ones rest. */
static void rows_store(const struct gni_work *work, enum gni_fate *fates)
{
    bool rests[GNI_PROGRAM_NODES_MOST] = {false};
    for (int n = work->node_count - 1; n >= 0; n--) {
        const struct gni_node *node = work->nodes[n];
        bool is_read = node->owner != NULL || node->reader_count > node->inner;
        rests[n] =
            fates[n] == GNI_FATE_RECIPE || (fates[n] == GNI_FATE_GONE && (rests[n] || is_read));
        for (int i = 0; i < node->arity && rests[n]; i++) {
            const struct gni_node_operand *operand = &node->operands[i];
            if (operand->kind != GNI_OPERAND_NODE || operand->node->storage != NULL)
                continue;
            rests[operand->node->place] = true;
            if (operand->node->is_row && fates[operand->node->place] == GNI_FATE_GONE)
                fates[operand->node->place] = GNI_FATE_STORED;
        }
    }
}

void gni_work_decide(const struct gni_work *work, const gn_tensor *into, bool is_asked,
                     enum gni_fate *fates)
{
    struct decision decision;
    decision.work = work;
    decision.fates = fates;
    decision.source_count = 0;
    bool is_any = false;
    for (int n = 0; n < work->node_count && !is_any; n++)
        is_any = can_be_again(work->nodes[n]);
    for (int n = 0; n < work->node_count; n++) {
        const struct gni_node *node = work->nodes[n];
        bool is_root = node == work->root;
        bool is_needed = is_root ? into == NULL && (is_asked || gni_node_is_needed(node))
                                 : gni_node_is_needed(node);
        memset(&decision.sets[n], 0, is_any ? sizeof decision.sets[n] : 0);
        decision.weights[n] = 1;
        for (int i = 0; i < node->arity && is_any; i++)
            operand_add(&decision, &decision.sets[n], &decision.weights[n], &node->operands[i]);
        if (decision.weights[n] > node->weight)
            decision.weights[n] = node->weight;
        if (!is_needed && node->owner == NULL)
            fates[n] = GNI_FATE_GONE;
        else if (can_be_again(node) && decision.weights[n] <= WEIGHT_MOST)
            fates[n] = fate_choose(&decision, n, is_needed && (is_root || !is_needed_hardly(node)));
        else
            fates[n] = GNI_FATE_STORED;
    }
    rows_store(work, fates);
}

/* ---- recipes ----------------------------------------------------------------------------------- */

static struct gni_node *idle[IDLE_MOST]; /* under the lock; perhaps not idle any more. NULL: none */
static unsigned idle_next;
static atomic_bool has_idle; /* some of them are not NULL; without the lock a guess */

static void recipe_release(gn_tensor *tensor)
{
    struct gni_node *recipe = atomic_exchange(&tensor->recipe, NULL);
    if (recipe == NULL)
        return;
    for (int i = 0; i < IDLE_MOST; i++)
        if (idle[i] == recipe)
            idle[i] = NULL;
    recipe->owner = NULL;
    gni_node_release(recipe);
}

/* One of the list is idle no more: it is saved, or goes. */
static void idle_end(unsigned at)
{
    struct gni_node *recipe = idle[at];
    idle[at] = NULL;
    if (recipe != NULL && (uint32_t)atomic_load(&recipe->owner->saves) == 0)
        recipe_release(recipe->owner);
}

/* What a recipe reads may not stay any longer: all idle ones go. */
static void idle_forget(void)
{
    if (!atomic_load_explicit(&has_idle, memory_order_relaxed))
        return;
    for (unsigned i = 0; i < IDLE_MOST; i++)
        idle_end(i);
    atomic_store_explicit(&has_idle, false, memory_order_relaxed);
}

/* Of a node that is computed, or not stored: what is stored below it weighs nothing now. */
static void weight_renew(struct gni_node *node)
{
    unsigned weight = 1;
    for (int i = 0; i < node->arity; i++)
        if (node->operands[i].kind == GNI_OPERAND_NODE && node->operands[i].node->storage == NULL)
            weight += node->operands[i].node->weight;
    if (weight < node->weight) /* which may have counted shared nodes once */
        node->weight = weight;
}

/* Before the tensor has its storage: from then on it may go without the lock. */
static void recipe_make(const struct gni_node *node)
{
    gn_tensor *tensor = node->owner;
    struct gni_node *recipe = tensor != NULL ? gni_node_copy(node) : NULL;
    if (recipe == NULL)
        return; /* then it stays stored */
    recipe->owner = tensor;
    atomic_store(&tensor->recipe, recipe);
    idle_end(idle_next);
    idle[idle_next] = recipe;
    idle_next = (idle_next + 1) % IDLE_MOST;
    atomic_store_explicit(&has_idle, true, memory_order_relaxed);
}

/* Readers come first, since they may keep what they read. */
void gni_work_settle(const struct gni_work *work, const enum gni_fate *fates,
                     struct gni_storage **storages)
{
    for (int n = 0; n < work->node_count; n++) {
        struct gni_node *node = work->nodes[n];
        weight_renew(node);
        if (fates[n] == GNI_FATE_RECIPE)
            recipe_make(node);
        if (fates[n] != GNI_FATE_GONE)
            gni_node_finish(node, storages[n]);
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

bool gni_recipe_forget(struct gni_node *node)
{
    while (!gni_list_is_empty(&node->readers))
        node = gni_container_of(node->readers.prev, struct gni_node_operand, link)->reader;
    if (!is_recipe(node))
        return false;
    recipe_release(node->owner);
    return true;
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

void gni_recorder_unsaved(gn_tensor *tensor)
{
    gni_recorder_lock();
    least_find();
    struct gni_storage *storage = gni_tensor_storage(tensor);
    if ((uint32_t)atomic_load(&tensor->saves) == 0) {
        if (atomic_exchange(&tensor->is_counted, false) && storage != NULL)
            atomic_fetch_sub_explicit(&storage->saved_tensors, 1, memory_order_relaxed);
        recipe_release(tensor);
    }
    idle_forget();
    gni_recorder_unlock();
}

void gni_recorder_unlast(void)
{
    if (!atomic_load_explicit(&has_idle, memory_order_relaxed))
        return;
    gni_recorder_lock();
    idle_forget();
    gni_recorder_unlock();
}

void gni_recorder_abandon(gn_tensor *tensor)
{
    gni_recorder_lock();
    struct gni_node *node = tensor->node;
    recipe_release(tensor); /* it may have got one since it was looked at */
    if (node != NULL) {
        bool was_resting = node->is_resting;
        node->owner = NULL;
        tensor->node = NULL;
        gni_node_release(node);
        if (was_resting)
            idle_forget();
    }
    gni_recorder_unlock();
}

/* ---- graphs that are captured ------------------------------------------------------------------ */

static bool is_of_stream(const struct gni_node *node, const void *stream)
{
    return node->stream == stream;
}

static bool is_of_device(const struct gni_node *node, const void *device)
{
    return node->device == device;
}

/* What is recorded in a graph is computed at each replay, and nothing else is: a value of before is stored before, and one
 * of the graph is stored in it. */
gn_status gni_resting_flush_device(const gn_device *device)
{
    gni_recorder_lock();
    gn_status status = gni_resting_flush(is_of_device, device, "a graph is captured");
    gni_recorder_unlock();
    return status;
}

gn_status gni_resting_flush_stream(const gn_stream *stream)
{
    gni_recorder_lock();
    gn_status status = gni_resting_flush(is_of_stream, stream, "the graph ends");
    gni_recorder_unlock();
    return status;
}

static bool is_overwritten(const struct gni_node *node, const void *context)
{
    struct gni_capture *capture = (struct gni_capture *)(uintptr_t)context;
    for (int i = 0; i < node->arity; i++) {
        const struct gni_node_operand *operand = &node->operands[i];
        const struct gni_storage *storage = operand->kind == GNI_OPERAND_MEMORY ? operand->storage
                                            : operand->kind == GNI_OPERAND_NODE
                                                ? operand->node->storage
                                                : NULL;
        if (storage != NULL && gni_capture_writes(capture, storage))
            return true;
    }
    return false;
}

gn_status gni_resting_flush_capture(struct gni_capture *capture)
{
    gni_recorder_lock();
    gn_status status =
        gni_resting_flush(is_overwritten, capture, "a graph writes to what it reads");
    gni_recorder_unlock();
    return status;
}

/* ---- a tensor that is spare -------------------------------------------------------------------- */

/* True if a tensor has its memory for itself, with its first content, and no other alias can come. */
static bool is_as_computed(const struct gni_storage *storage)
{
    return atomic_load(&storage->version) == 0 && !atomic_load(&storage->is_escaped) &&
           atomic_load(&storage->aliases) == NULL &&
           (atomic_load(&storage->capture) == NULL || atomic_load(&storage->is_capturing));
}

/* True if only saved values and the caller refer to it. */
static bool will_be_spare(const gn_tensor *tensor)
{
    uint64_t saves = atomic_load(&tensor->saves);
    return saves > 0 && saves < GNI_TENSOR_READER && atomic_load(&tensor->references) == saves + 1;
}

void gni_recorder_rest(gn_tensor *tensor)
{
    gni_recorder_lock();
    struct gni_node *recipe = atomic_load(&tensor->recipe);
    struct gni_storage *storage = gni_tensor_storage(tensor);
    if (recipe != NULL && !is_as_computed(storage)) {
        recipe_release(tensor);
    } else if (recipe != NULL && will_be_spare(tensor) && atomic_load(&storage->references) == 1) {
        for (int i = 0; i < IDLE_MOST; i++)
            if (idle[i] == recipe)
                idle[i] = NULL;
        atomic_store(&tensor->is_counted, false);
        tensor->node = recipe;
        atomic_store(&tensor->storage, NULL);
        atomic_store(&tensor->recipe, NULL);
        gni_storage_bury(storage);
    }
    gni_recorder_unlock();
}
