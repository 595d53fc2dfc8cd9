/*
 * alias_sets.c: what made the elements of tensors that are views of one another: tensor/tape.h.
 *
 * An alias set begins with the first view on the tape. It has the node that made the tensor which the view was made of,
 * and that tensor's layout. The first write on the tape widens it to all elements of the storage. From then on
 *
 *     a write to an alias   is a node with two inputs, all elements before and the new ones of the alias
 *     an alias              is a view of what the last write made: it gets its record when it is used (gni_aliases_refresh)
 *
 * Invariants:
 *   AL1 the record of an alias is current if its generation is that of the set;
 *   AL2 a set holds no tensor. A storage holds its set only as long as it has aliases (T7): saved values are apart, so
 *       that a set does not keep the storage which keeps it.
 *
 * Threads: a set's node is read and changed under its lock; records are refreshed under one lock for all.
 */
#include "autograd/autograd.h"

#include "base/error.h"
#include "base/host.h"

#include <string.h>

static struct gni_lock refresh_lock; /* of records that are exchanged */

/* ---- life ------------------------------------------------------------------------------------ */

/* A set whose elements are those of a tensor; its record is what made them. */
static gn_status set_create(const gn_tensor *tensor, struct gni_alias_set **out)
{
    struct gni_alias_set *aliases = gni_host_alloc(sizeof *aliases);
    if (aliases == NULL)
        return gni_error_host_memory(sizeof *aliases);
    const struct gni_record *record = gni_record_of(tensor);
    atomic_init(&aliases->references, 1);
    aliases->dtype = tensor->dtype;
    aliases->offset = tensor->offset;
    aliases->ndim = tensor->ndim;
    memcpy(aliases->sizes, tensor->sizes, sizeof *aliases->sizes * (size_t)tensor->ndim);
    memcpy(aliases->strides, tensor->strides, sizeof *aliases->strides * (size_t)tensor->ndim);
    if (record != NULL) {
        gni_graph_node_retain(record->node);
        aliases->node = record->node;
        aliases->number = record->number;
    }
    *out = aliases;
    return GN_OK;
}

void gni_aliases_release(struct gni_alias_set *aliases)
{
    if (atomic_fetch_sub(&aliases->references, 1) != 1)
        return;
    struct gni_graph_node *node = aliases->node;
    gni_host_free(aliases);
    if (node != NULL)
        gni_graph_node_release(node);
}

static void whole_set(struct gni_alias_set *aliases, const gn_tensor *whole);

gn_status gni_aliases_begin(gn_tensor *tensor)
{
    struct gni_storage *storage = gni_tensor_storage(tensor);
    struct gni_alias_set *aliases = gni_tensor_aliases(tensor), *none = NULL;
    if (aliases != NULL && aliases->node == NULL && atomic_load(&aliases->generation) == 0)
        whole_set(aliases, tensor); /* it has got its record since */
    if (aliases != NULL || tensor->is_apart)
        return GN_OK; /* one that is apart has got its set when it was detached */
    GN_TRY(set_create(tensor, &aliases));
    if (!atomic_compare_exchange_strong(&storage->aliases, &none, aliases))
        gni_aliases_release(aliases); /* another thread was first */
    return GN_OK;
}

void gni_aliases_forget(gn_tensor *tensor)
{
    struct gni_alias_set *aliases = gni_tensor_aliases(tensor);
    if (aliases != NULL && atomic_load(&aliases->generation) == 0)
        whole_set(aliases, tensor);
}

gn_status gni_aliases_own(gn_tensor *tensor)
{
    if (tensor->aliases != NULL) {
        gni_aliases_release(tensor->aliases); /* of what it was detached from */
        tensor->aliases = NULL;
    }
    return set_create(tensor, &tensor->aliases);
}

/* ---- all elements ---------------------------------------------------------------------------- */

/* A tensor of all elements of a set, with a record if the set has a node. */
static gn_status whole_make(struct gni_alias_set *aliases, gn_tensor *alias, gn_tensor **whole)
{
    bool was_on = gn_set_gradients(false);
    gn_status status = gni_tensor_alias_as(alias, aliases->offset - alias->offset, aliases->ndim,
                                           aliases->sizes, aliases->strides, whole);
    (void)gn_set_gradients(was_on);
    if (status != GN_OK)
        return status;
    (*whole)->dtype = aliases->dtype;
    gni_lock_take(&aliases->lock);
    struct gni_graph_node *node = aliases->node;
    int number = aliases->number;
    if (node != NULL)
        gni_graph_node_retain(node);
    gni_lock_give(&aliases->lock);
    if (node == NULL)
        return GN_OK;
    status = gni_attach(*whole, node, number);
    gni_graph_node_release(node);
    if (status != GN_OK)
        gn_tensor_release(*whole);
    return status;
}

/* The elements of a set are those of a tensor from now on, which its record has made. */
static void whole_set(struct gni_alias_set *aliases, const gn_tensor *whole)
{
    const struct gni_record *record = gni_record_of(whole);
    if (record != NULL)
        gni_graph_node_retain(record->node);
    gni_lock_take(&aliases->lock);
    struct gni_graph_node *before = aliases->node;
    aliases->node = record != NULL ? record->node : NULL;
    aliases->number = record != NULL ? record->number : 0;
    aliases->offset = whole->offset;
    aliases->ndim = whole->ndim;
    memcpy(aliases->sizes, whole->sizes, sizeof *aliases->sizes * (size_t)whole->ndim);
    memcpy(aliases->strides, whole->strides, sizeof *aliases->strides * (size_t)whole->ndim);
    gni_lock_give(&aliases->lock);
    if (before != NULL)
        gni_graph_node_release(before);
}

/* How a tensor lies in another one of the same memory. */
static struct gni_strided_details layout_in(const gn_tensor *tensor, const gn_tensor *whole)
{
    struct gni_strided_details view = {.ndim = tensor->ndim,
                                       .offset = tensor->offset - whole->offset};
    memcpy(view.own, whole->strides, sizeof *view.own * (size_t)whole->ndim);
    memcpy(view.sizes, tensor->sizes, sizeof *view.sizes * (size_t)tensor->ndim);
    memcpy(view.strides, tensor->strides, sizeof *view.strides * (size_t)tensor->ndim);
    return view;
}

/* Whether two tensors of the same memory have the same elements in the same order. */
static bool is_same_order(const gn_tensor *a, const gn_tensor *b)
{
    return a->is_contiguous && b->is_contiguous && a->count == b->count && a->offset == b->offset;
}

/* Puts a step with one input on the tape. */
static gn_status step_put(enum gni_rule rule, const char *name, gn_tensor *input, gn_tensor *result,
                          const struct gni_strided_details *details)
{
    const gn_operand operand = {.tensor = input};
    return gni_tape.record(
        &(struct gni_tape_step){.rule = rule,
                                .name = name,
                                .input_count = 1,
                                .inputs = &operand,
                                .result_count = 1,
                                .results = &result,
                                .details = details,
                                .detail_bytes = details != NULL ? sizeof *details : 0});
}

/* The elements of a set become all of the storage, in one dimension. Of memory that is not ours we do not know how much
 * there is: the set stays what it is. */
static gn_status set_widen(struct gni_alias_set *aliases, gn_tensor *alias)
{
    const struct gni_storage *storage = gni_tensor_storage(alias);
    int64_t count = (int64_t)(storage->nbytes / gni_dtype_size(aliases->dtype)), stride = 1;
    if (storage->block == NULL ||
        (aliases->ndim == 1 && aliases->offset == 0 && aliases->sizes[0] == count))
        return GN_OK;
    gn_tensor *before, *whole = NULL;
    GN_TRY(whole_make(aliases, alias, &before));
    bool was_on = gn_set_gradients(false);
    gn_status status = gni_tensor_alias_as(before, -before->offset, 1, &count, &stride, &whole);
    (void)gn_set_gradients(was_on);
    if (status == GN_OK && before->gradient != NULL) {
        struct gni_strided_details view = layout_in(before, whole);
        status = is_same_order(before, whole)
                     ? step_put(GNI_RULE_RESHAPE, "view", before, whole, NULL)
                     : step_put(GNI_RULE_SPREAD, "view", before, whole, &view);
    }
    if (status == GN_OK)
        whole_set(aliases, whole);
    if (whole != NULL)
        gn_tensor_release(whole);
    gn_tensor_release(before);
    return status;
}

/* Whether all elements of a tensor are elements of the set. Sets that were not widened have them if the tensor was made
 * of one of theirs, as far as can be seen. */
static bool is_within(const struct gni_alias_set *aliases, const gn_tensor *tensor)
{
    int64_t first, last, own_first, own_last, count = 1;
    for (int i = 0; i < aliases->ndim; i++)
        count *= aliases->sizes[i];
    if (tensor->count == 0 || count == 0)
        return tensor->count == 0;
    gni_strides_extent(aliases->ndim, aliases->sizes, aliases->strides, &own_first, &own_last);
    gni_strides_extent(tensor->ndim, tensor->sizes, tensor->strides, &first, &last);
    bool is_dense = own_last - own_first + 1 == count;
    bool is_inside = tensor->offset + first >= aliases->offset + own_first &&
                     tensor->offset + last <= aliases->offset + own_last;
    return is_inside && (is_dense || tensor->gradient != NULL);
}

/* ---- records --------------------------------------------------------------------------------- */

static bool is_current(const struct gni_alias_set *aliases, const gn_tensor *tensor)
{
    const struct gni_record *record = gni_record_of(tensor);
    return record != NULL && record->generation == atomic_load(&aliases->generation);
}

/* Puts a view of all elements with a tensor's layout on the tape. */
static gn_status view_put(gn_tensor *whole, gn_tensor *view)
{
    struct gni_strided_details layout = layout_in(view, whole);
    return is_same_order(view, whole) ? step_put(GNI_RULE_RESHAPE, "view", whole, view, NULL)
                                      : step_put(GNI_RULE_STRIDED, "view", whole, view, &layout);
}

/* Gives a tensor the record of a view of all elements, unless another thread has just done so. What goes is released
 * without the lock: a program's own functions may go with it. */
static gn_status record_renew(struct gni_alias_set *aliases, gn_tensor *tensor)
{
    gn_tensor *whole, *view = NULL;
    uint64_t generation = atomic_load(&aliases->generation);
    if (tensor->dtype != aliases->dtype || !is_within(aliases, tensor))
        return gni_error(GN_ERROR_UNSUPPORTED,
                         "another view of the tensor's memory was changed by an operation with "
                         "a gradient, which cannot be followed to a view of %s and shape %s",
                         gni_dtypes[tensor->dtype].name,
                         gni_shape_text(tensor->ndim, tensor->sizes).text);
    GN_TRY(whole_make(aliases, tensor, &whole));
    gn_status status = gni_detach(tensor, &view);
    if (status == GN_OK)
        status = view_put(whole, view);
    if (status == GN_OK && view->gradient != NULL) {
        gni_record_of(view)->generation = generation;
        gni_lock_take(&refresh_lock);
        if (!is_current(aliases, tensor))
            gni_records_exchange(view, tensor);
        gni_lock_give(&refresh_lock);
    }
    gn_tensor_release(view);
    gn_tensor_release(whole);
    return status;
}

gn_status gni_aliases_renew(gn_tensor *tensor)
{
    struct gni_alias_set *aliases = gni_tensor_aliases(tensor);
    if (!gni_dtype_is_floating(tensor->dtype) || is_current(aliases, tensor))
        return GN_OK;
    return record_renew(aliases, tensor);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Whether a tensor has no aliases. */
bool gni_is_alone(const gn_tensor *tensor)
{
    size_t references = atomic_load(&gni_tensor_storage(tensor)->references);
    if (!tensor->is_apart)
        return (uint32_t)references == 1;
    return tensor->aliases != NULL ? atomic_load(&tensor->aliases->references) == 1
                                   : references == GNI_STORAGE_HOLDER;
}

/* A tensor without aliases has its record alone. */
void gni_aliases_end(gn_tensor *tensor)
{
    struct gni_alias_set *aliases = NULL;
    if (!tensor->is_apart) {
        aliases = atomic_exchange(&gni_tensor_storage(tensor)->aliases, NULL);
    } else if (tensor->aliases != NULL) { /* what is made of it still gets one */
        gni_lock_take(&tensor->aliases->lock);
        struct gni_graph_node *node = tensor->aliases->node;
        tensor->aliases->node = NULL;
        atomic_store(&tensor->aliases->generation, 0);
        gni_lock_give(&tensor->aliases->lock);
        if (node != NULL)
            gni_graph_node_release(node);
    }
    if (tensor->gradient != NULL)
        gni_record_of(tensor)->generation = 0;
    if (aliases != NULL)
        gni_aliases_release(aliases);
}

gn_status gni_aliases_write_begin(const char *name, gn_tensor *out)
{
    GN_TRY(gni_aliases_refresh(out));
    if (out->gradient != NULL && gn_tensor_is_leaf(out))
        return gni_error(GN_ERROR_UNSUPPORTED,
                         "%s in place: the tensor is a leaf that needs a gradient; change it with "
                         "gradients switched off",
                         name);
    GN_TRY(gni_tensor_flush(out));
    if (gni_is_alone(out)) {
        gni_aliases_end(out);
        return GN_OK;
    }
    if (out->is_untaped)
        return gni_error(GN_ERROR_UNSUPPORTED,
                         "%s in place: the tensor is a view that was made with gradients off, of "
                         "one that needs a gradient; make the view with gradients on",
                         name);
    GN_TRY(gni_aliases_begin(out));
    struct gni_alias_set *aliases = gni_tensor_aliases(out);
    if (aliases != NULL && aliases->node != NULL && aliases->node->rule == GNI_RULE_ACCUMULATE)
        return gni_error(GN_ERROR_UNSUPPORTED,
                         "%s in place: the tensor is a view of a leaf that needs a gradient; "
                         "change it with gradients switched off",
                         name);
    if (aliases != NULL)
        GN_TRY(set_widen(aliases, out));
    if (aliases == NULL || aliases->dtype != out->dtype || !is_within(aliases, out))
        return gni_error(GN_ERROR_UNSUPPORTED,
                         "%s in place: the memory is shared in a way that gradients cannot follow "
                         "(a view of another type, or memory of another program): use clone()",
                         name);
    return GN_OK;
}

/* All elements after a write: those of before, and the new ones of an alias. */
static gn_status whole_write(struct gni_alias_set *aliases, gn_tensor *out, gn_tensor *result)
{
    gn_tensor *before, *after = NULL;
    GN_TRY(whole_make(aliases, out, &before));
    gn_status status = gni_detach(before, &after);
    if (status == GN_OK) {
        const gn_operand inputs[] = {{.tensor = before}, {.tensor = result}};
        struct gni_strided_details view = layout_in(out, before);
        status = is_same_order(out, before)
                     ? step_put(GNI_RULE_RESHAPE, "view", result, after, NULL)
                     : gni_tape.record(&(struct gni_tape_step){.rule = GNI_RULE_STRIDED_PUT,
                                                               .name = "copy_slices",
                                                               .input_count = 2,
                                                               .inputs = inputs,
                                                               .result_count = 1,
                                                               .results = &after,
                                                               .details = &view,
                                                               .detail_bytes = sizeof view});
    }
    if (status == GN_OK)
        whole_set(aliases, after);
    gn_tensor_release(after);
    gn_tensor_release(before);
    return status;
}

gn_status gni_aliases_write_end(gn_tensor *out, gn_tensor *result)
{
    struct gni_alias_set *aliases = gni_tensor_aliases(out);
    uint64_t generation = 0;
    uint32_t saves = (uint32_t)atomic_load(&out->saves);
    if (saves > 0 && result->gradient != NULL)
        GN_TRY(gni_graph_spoil(gni_record_of(result)->node, out, saves));
    if (aliases != NULL && !gni_is_alone(out)) {
        GN_TRY(whole_write(aliases, out, result));
        generation = atomic_fetch_add(&aliases->generation, 1) + 1;
        atomic_store(&gni_aliases_were_written, true);
    }
    gni_records_exchange(result, out);
    if (out->gradient != NULL)
        gni_record_of(out)->generation = generation;
    return GN_OK;
}

void gni_aliases_fork_take(void)
{
    gni_lock_fork_take(&refresh_lock);
}

void gni_aliases_fork_give(void)
{
    gni_lock_fork_give(&refresh_lock);
}
