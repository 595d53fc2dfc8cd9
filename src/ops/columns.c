/*
 * columns.c: sums of columns that wait (node.h, N15): the gradients of weights and biases.
 *
 * Such a sum reads what the gradient of the layer's input reads, and is computed with it, in one pass. It waits for that, but
 * not for long, since what it reads cannot go: until a sum of columns of something else is recorded, or all is flushed.
 *
 * Threads: under the recorder's lock.
 */
#include "ops/node.h"

#include <string.h>

enum {
    WAITING_MOST = 8,
    SOURCES_MOST = 2 * GNI_PROGRAM_NODES_MOST, /* of a work that are looked at */
};

static struct gni_node *waiting[WAITING_MOST]; /* oldest first */
static int waiting_count;

/* ---- what a node reads --------------------------------------------------------------------------- */

struct sources {
    uint64_t nbytes_least; /* smaller memory is not worth being read once */
    int count;
    const void *items[SOURCES_MOST]; /* storages, and nodes that are not computed */
};

static bool sources_have(const struct sources *sources, const void *item)
{
    for (int i = 0; i < sources->count; i++)
        if (sources->items[i] == item)
            return true;
    return false;
}

static void source_add(struct sources *sources, const void *item)
{
    if (sources->count < SOURCES_MOST && !sources_have(sources, item))
        sources->items[sources->count++] = item;
}

static void storage_add(struct sources *sources, const struct gni_storage *storage)
{
    if (storage->nbytes >= sources->nbytes_least)
        source_add(sources, storage);
}

static void sources_find(struct sources *sources, const struct gni_node *node)
{
    if (node->storage != NULL) {
        storage_add(sources, node->storage);
        return;
    }
    if (sources_have(sources, node) || sources->count == SOURCES_MOST)
        return;
    source_add(sources, node);
    for (int i = 0; i < node->arity; i++) {
        const struct gni_node_operand *operand = &node->operands[i];
        if (operand->kind == GNI_OPERAND_MEMORY)
            storage_add(sources, operand->storage);
        else if (operand->kind == GNI_OPERAND_NODE)
            sources_find(sources, operand->node);
    }
}

static bool is_shared(const struct sources *a, const struct sources *b)
{
    for (int i = 0; i < a->count; i++)
        if (sources_have(b, a->items[i]))
            return true;
    return false;
}

/* A byte for each element: memory that is the same for all rows is smaller. */
static void sources_begin(struct sources *sources, int64_t count)
{
    sources->count = 0;
    sources->nbytes_least = (uint64_t)count;
}

/* ---- waiting ------------------------------------------------------------------------------------- */

void gni_columns_add(struct gni_node *node)
{
    gni_assert(waiting_count < WAITING_MOST);
    node->is_column = true;
    waiting[waiting_count++] = node;
}

void gni_columns_remove(const struct gni_node *node)
{
    for (int i = 0; i < waiting_count; i++)
        if (waiting[i] == node) {
            waiting_count--;
            memmove(waiting + i, waiting + i + 1,
                    (size_t)(waiting_count - i) * sizeof(struct gni_node *));
            return;
        }
}

/* A sum that must not wait any longer, because there is no room, or it reads other memory; NULL: none. */
static struct gni_node *columns_refuse(const gn_tensor *operand)
{
    struct sources own, others;
    if (waiting_count == WAITING_MOST)
        return waiting[0];
    sources_begin(&own, operand->count);
    if (operand->node != NULL)
        sources_find(&own, operand->node);
    else
        storage_add(&own, gni_tensor_storage(operand));
    for (int i = 0; i < waiting_count; i++) {
        sources_begin(&others, operand->count);
        sources_find(&others, waiting[i]);
        if (!is_shared(&own, &others))
            return waiting[i];
    }
    return NULL;
}

/* A failure is not reported: whoever asks for the value gets the error. */
gn_status gni_columns_prepare(const gn_tensor *operand)
{
    struct gni_node *node;
    while ((node = columns_refuse(operand)) != NULL) {
        node->references++;
        gn_status status = node->is_running ? gni_running_wait(node)
                                            : gni_node_flush(node, "other columns are summed");
        if (status != GN_OK)
            gni_columns_remove(node);
        gni_node_release(node);
    }
    return GN_OK;
}

/* ---- joining ------------------------------------------------------------------------------------- */

/* The nodes below that a work has not collected, at least; more than `most` if one of them is running. */
static int nodes_missing(const struct gni_node *node, uint64_t round, int most)
{
    if (node->round == round || node->is_done)
        return 0;
    int count = node->is_running ? most + 1 : 1;
    for (int i = 0; i < node->arity && count <= most; i++)
        if (node->operands[i].kind == GNI_OPERAND_NODE)
            count += nodes_missing(node->operands[i].node, round, most - count);
    return count;
}

/* Whether a node is one for each row of a sum of columns: its dimensions are those of the sum that are not of rows, and ones. */
static bool is_row_of(const struct gni_node *node, const struct gni_node *sum)
{
    int kept = sum->ndim - sum->rows.ndim;
    return !node->is_reduction && node->ndim >= kept &&
           gni_shape_is_equal(kept, node->sizes, kept, sum->sizes) &&
           node->count == gni_shape_count(kept, sum->sizes);
}

/* Whether a sum has the work's rows: all its full values have one shape. */
static bool has_rows_of(const struct gni_work *work, const struct gni_node *sum)
{
    for (int n = 0; n < work->node_count; n++) {
        const struct gni_node *node = work->nodes[n];
        if (is_row_of(node, sum))
            continue;
        if (!gni_shape_is_equal(node->ndim, node->sizes, sum->ndim, sum->sizes) ||
            (node->is_reduction && node->rows.key != sum->rows.key))
            return false;
    }
    return true;
}

static bool can_join(const struct gni_work *work, const struct sources *sources,
                     const struct gni_node *sum)
{
    const struct gni_node *root = work->root;
    struct sources own;
    if (sum->round == root->round || sum->device != root->device || sum->stream != root->stream ||
        !has_rows_of(work, sum))
        return false;
    sources_begin(&own, (int64_t)sources->nbytes_least);
    sources_find(&own, sum);
    int room = GNI_PROGRAM_NODES_MOST - work->node_count;
    return is_shared(sources, &own) && nodes_missing(sum, root->round, room) <= room;
}

void gni_columns_join(struct gni_work *work)
{
    struct sources sources;
    if (waiting_count == 0 || work->root->into != NULL || work->root->deferred != NULL)
        return;
    sources_begin(&sources, gni_shape_count(waiting[0]->ndim, waiting[0]->sizes));
    for (int n = 0; n < work->node_count; n++)
        sources_find(&sources, work->nodes[n]);
    for (int i = 0; i < waiting_count; i++)
        if (can_join(work, &sources, waiting[i]))
            gni_work_collect_more(work, waiting[i]);
}
