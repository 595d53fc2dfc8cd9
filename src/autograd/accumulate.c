/*
 * accumulate.c: the gradients that tensors keep: those of leaves, and of results that retain theirs.
 *
 * A walk collects them, and gives them to the tensors when it has ended. A tensor without a gradient takes the new one over,
 * or gets a copy if others have it, too. To a gradient that is there the new one is added, in its memory; with GN_CREATE_GRAPH
 * the sum is a new tensor.
 *
 * Everything that needs memory on the device is computed before the first tensor gets its gradient. Adding in place needs
 * none; it is tried twice.
 *
 * Threads: one walk at a time gives its gradients, so that no sum is lost. Nobody waits for that lock with an interpreter's.
 */
#include "autograd/autograd.h"

#include "base/error.h"
#include "base/host.h"
#include "ops/recorder.h"

static struct gni_lock give_lock;

/* ---- what a tensor has ----------------------------------------------------------------------- */

gn_tensor *gni_record_tensor(const struct gni_record *record)
{
    size_t references = atomic_load(&record->tensor->references);
    while (references > 0)
        if (atomic_compare_exchange_weak(&record->tensor->references, &references, references + 1))
            return record->tensor;
    return NULL;
}

/* The record that keeps the gradient of a result; NULL: its tensor is gone. With the node's lock. */
static struct gni_record *record_find(const struct gni_kept *kept)
{
    struct gni_record *record = kept->node->kept;
    while (record != NULL && record->number != kept->number)
        record = record->next_kept;
    return record;
}

bool gni_is_kept(struct gni_graph_node *node, int number)
{
    gni_lock_take(&node->lock);
    bool is_kept = record_find(&(struct gni_kept){.node = node, .number = number}) != NULL;
    gni_lock_give(&node->lock);
    return is_kept;
}

/* What the tensor has, with references; false: it is gone. */
static bool gradient_get(const struct gni_kept *kept, gn_tensor **gradient, gn_tensor **place)
{
    gni_lock_take(&kept->node->lock);
    const struct gni_record *record = record_find(kept);
    *gradient = record != NULL ? record->gradient : NULL;
    *place = record != NULL ? record->place : NULL;
    if (*gradient != NULL)
        gn_tensor_retain(*gradient);
    if (*place != NULL)
        gn_tensor_retain(*place);
    gni_lock_give(&kept->node->lock);
    return record != NULL;
}

/* Sets the gradient if it is the one of before still. */
static bool gradient_set(const struct gni_kept *kept, gn_tensor *before, gn_tensor *gradient)
{
    if (gradient != NULL)
        gn_tensor_retain(gradient);
    gni_lock_take(&kept->node->lock);
    struct gni_record *record = record_find(kept);
    bool is_set = record != NULL && record->gradient == before;
    if (is_set)
        record->gradient = gradient;
    gni_lock_give(&kept->node->lock);
    gn_tensor_release(is_set ? before : gradient);
    return is_set;
}

/* ---- giving ---------------------------------------------------------------------------------- */

/* Whether nobody else has this gradient or its memory: a tensor can have it as it is. */
static bool is_alone(const gn_tensor *gradient)
{
    struct gni_storage *storage = gni_tensor_storage(gradient);
    return gradient->is_contiguous && atomic_load(&gradient->references) == 1 &&
           (storage == NULL || atomic_load(&storage->references) == 1);
}

gn_status gni_gradient_own(gn_tensor **gradient)
{
    gn_tensor *copy;
    if (is_alone(*gradient))
        return GN_OK;
    GN_TRY(gn_cast(*gradient, (*gradient)->dtype, &copy));
    gn_tensor_release(*gradient);
    *gradient = copy;
    return GN_OK;
}

/* Makes a gradient's memory its own, and computes it. */
static gn_status sum_own(struct gni_kept *kept)
{
    GN_TRY(gni_gradient_own(&kept->sum));
    return gni_tensor_flush(kept->sum);
}

gn_status gni_gradient_add(gn_tensor **sum, gn_tensor *gradient)
{
    if (*sum == NULL) {
        gn_tensor_retain(gradient);
        *sum = gradient;
        return GN_OK;
    }
    const gn_operand both[] = {{.tensor = *sum}, {.tensor = gradient}};
    gn_tensor *made;
    GN_TRY(gn_elementwise(GN_OP_ADD, both, &made));
    gn_tensor_release(*sum);
    *sum = made;
    return GN_OK;
}

/* Whether a gradient can be added to in its memory. */
static bool is_writable(const gn_tensor *gradient)
{
    return !gn_tensor_is_read_only(gradient) &&
           !gni_strides_overlap(gradient->ndim, gradient->sizes, gradient->strides);
}

static gn_status sum_add(gn_tensor *gradient, gn_tensor *sum)
{
    const gn_operand both[] = {{.tensor = gradient}, {.tensor = sum}};
    gn_status status = gn_elementwise_into(GN_OP_ADD, both, gradient);
    return status == GN_OK ? GN_OK : gn_elementwise_into(GN_OP_ADD, both, gradient);
}

/* Computes what needs memory, before anything is given. */
static gn_status kept_prepare(struct gni_kept *kept)
{
    gn_tensor *gradient, *place;
    if (!gradient_get(kept, &gradient, &place))
        return GN_OK;
    bool is_taken = gradient == NULL && place == NULL;
    gn_tensor_release(gradient);
    gn_tensor_release(place);
    return is_taken ? sum_own(kept) : gni_tensor_flush(kept->sum);
}

/* What the tensor gets in the place of nothing, or of a gradient that stays as it is: a new reference. */
static gn_status gradient_make(struct gni_kept *kept, gn_tensor *place, gn_tensor **made)
{
    if (kept->before != NULL) {
        *made = kept->before;
        gn_tensor_retain(*made);
        gn_status status = gni_gradient_add(made, kept->sum);
        if (status == GN_OK)
            status = gni_tensor_flush(*made);
        if (status != GN_OK)
            gn_tensor_release(*made);
        return status;
    }
    if (place != NULL)
        GN_TRY(gn_assign(place, (gn_operand){.tensor = kept->sum}));
    else
        GN_TRY(sum_own(kept));
    *made = place != NULL ? place : kept->sum;
    gn_tensor_retain(*made);
    return GN_OK;
}

static gn_status kept_give(struct gni_kept *kept, bool is_graph)
{
    gn_tensor *place;
    if (!gradient_get(kept, &kept->before, &place)) {
        kept->is_given = true;
        return GN_OK;
    }
    bool is_added = kept->before != NULL && !is_graph && is_writable(kept->before);
    gn_status status =
        is_added ? sum_add(kept->before, kept->sum) : gradient_make(kept, place, &kept->given);
    if (status == GN_OK && !is_added)
        (void)gradient_set(kept, kept->before, kept->given);
    kept->is_given = status == GN_OK;
    gn_tensor_release(place);
    return status;
}

/* ---- lists ----------------------------------------------------------------------------------- */

gn_status gni_array_grow(void **items, size_t *room, size_t size)
{
    size_t more = *room > 0 ? 2 * *room : 64;
    void *grown = gni_host_realloc(*items, more * size);
    if (grown == NULL)
        return gni_error_host_memory(more * size);
    *items = grown;
    *room = more;
    return GN_OK;
}

/* The hooks of a leaf that has just got its gradient. */
static gn_status leaf_hooks_run(struct gni_graph_node *node)
{
    gn_tensor *leaf = gn_gradient_node_get_leaf(node);
    if (leaf == NULL)
        return GN_OK;
    gn_status status = gni_hooks_run(node, GN_HOOK_ACCUMULATED, 0, &leaf);
    gn_tensor_release(leaf);
    return status;
}

gn_status gni_kept_add(struct gni_kept_list *list, struct gni_graph_node *node, int number,
                       gn_tensor *sum, bool is_graph)
{
    gn_status status = GN_OK;
    if (list->count == list->room)
        status = gni_array_grow((void **)&list->items, &list->room, sizeof *list->items);
    if (status != GN_OK) {
        gn_tensor_release(sum);
        return status;
    }
    struct gni_kept *kept = &list->items[list->count++];
    *kept = (struct gni_kept){.node = node, .number = number, .sum = sum};
    if (node->rule != GNI_RULE_ACCUMULATE || !gni_has_hooks(node, GN_HOOK_ACCUMULATED))
        return GN_OK;
    GN_TRY(kept_prepare(kept));
    gni_lock_take(&give_lock);
    status = kept_give(kept, is_graph);
    gni_lock_give(&give_lock);
    return status == GN_OK ? leaf_hooks_run(node) : status;
}

gn_status gni_kept_give(struct gni_kept_list *list, bool is_graph)
{
    gn_status status = GN_OK;
    for (size_t i = 0; i < list->count; i++)
        if (!list->items[i].is_given && !gni_is_pending_column(list->items[i].sum))
            GN_TRY(kept_prepare(&list->items[i]));
    for (size_t i = 0; i < list->count; i++)
        if (!list->items[i].is_given)
            GN_TRY(kept_prepare(&list->items[i]));
    gni_lock_take(&give_lock);
    for (size_t i = 0; i < list->count && status == GN_OK; i++)
        if (!list->items[i].is_given)
            status = kept_give(&list->items[i], is_graph);
    gni_lock_give(&give_lock);
    return status;
}

void gni_kept_undo(struct gni_kept_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].given != NULL)
            (void)gradient_set(&list->items[i], list->items[i].given, list->items[i].before);
}

void gni_kept_deinit(struct gni_kept_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        gn_tensor_release(list->items[i].sum);
        gn_tensor_release(list->items[i].before);
        gn_tensor_release(list->items[i].given);
    }
    gni_host_free(list->items);
}

void gni_kept_forget_threads(void)
{
    if (!gni_lock_is_held(&give_lock))
        give_lock = (struct gni_lock){0};
}
