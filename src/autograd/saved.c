/*
 * saved.c: the values that nodes save for their rules, and hooks that put something else in their place.
 *
 * Threads: a node's saved values are read and released under its lock. Hooks are called without locks, and with gradients
 * off.
 */
#include "autograd/autograd.h"

#include "base/error.h"
#include "base/host.h"
#include "genesis/history.h"

#include <stdio.h>
#include <string.h>

/* The hooks of a thread, the last ones first. */
struct level {
    gn_saved_hooks hooks;
    struct level *before;
};

static _Thread_local struct level *last_level; /* NULL: values are saved as they are */

/* What `pack` made of a value, and what the value looked like. */
struct gni_packed {
    _Atomic(size_t) references;
    gn_saved_hooks hooks;
    void *object;
    gn_device *device;
    gn_dtype dtype;
    int ndim;
    int64_t sizes[];
};

/* ---- hooks ----------------------------------------------------------------------------------- */

gn_status gn_saved_hooks_push(const gn_saved_hooks *hooks)
{
    GN_CHECK_ARGUMENT(hooks != NULL && hooks->pack != NULL && hooks->unpack != NULL,
                      "hooks must have pack and unpack");
    struct level *level = gni_host_alloc(sizeof *level);
    if (level == NULL)
        return gni_error_host_memory(sizeof *level);
    *level = (struct level){*hooks, last_level};
    last_level = level;
    return GN_OK;
}

void gn_saved_hooks_pop(void)
{
    struct level *level = last_level;
    if (level != NULL)
        last_level = level->before;
    gni_host_free(level);
}

static void packed_release(struct gni_packed *packed)
{
    if (packed == NULL || atomic_fetch_sub(&packed->references, 1) != 1)
        return;
    if (packed->hooks.deleter != NULL)
        packed->hooks.deleter(packed->hooks.context, packed->object);
    gni_host_free(packed);
}

/* Packs a value with the thread's last hooks. */
static gn_status value_pack(gn_tensor *tensor, struct gni_packed **out)
{
    size_t nbytes = sizeof(struct gni_packed) + sizeof(int64_t) * (size_t)tensor->ndim;
    struct gni_packed *packed = gni_host_alloc(nbytes);
    if (packed == NULL)
        return gni_error_host_memory(nbytes);
    atomic_init(&packed->references, 1);
    packed->hooks = last_level->hooks;
    packed->device = tensor->device;
    packed->dtype = tensor->dtype;
    packed->ndim = tensor->ndim;
    memcpy(packed->sizes, tensor->sizes, sizeof *packed->sizes * (size_t)tensor->ndim);
    bool was_on = gn_set_gradients(false);
    gn_status status = packed->hooks.pack(packed->hooks.context, tensor, &packed->object);
    (void)gn_set_gradients(was_on);
    if (status == GN_OK)
        *out = packed;
    else
        gni_host_free(packed);
    return status;
}

/* A new reference. */
static gn_status value_unpack(const struct gni_packed *packed, gn_tensor **value)
{
    gn_tensor *made = NULL;
    GN_TRY(packed->hooks.unpack(packed->hooks.context, packed->object, &made));
    if (made != NULL && made->dtype == packed->dtype && made->device == packed->device &&
        gni_shape_is_equal(made->ndim, made->sizes, packed->ndim, packed->sizes)) {
        *value = made;
        return GN_OK;
    }
    gn_tensor_release(made);
    return gni_error(GN_ERROR_INVALID_VALUE,
                     "a hook for saved values gave another tensor than one of %s and shape %s on "
                     "the same device",
                     gni_dtypes[packed->dtype].name,
                     gni_shape_text(packed->ndim, packed->sizes).text);
}

/* ---- saving ---------------------------------------------------------------------------------- */

static uint64_t version_of(const gn_tensor *tensor)
{
    struct gni_storage *storage = gni_tensor_storage(tensor);
    return storage != NULL ? atomic_load_explicit(&storage->version, memory_order_relaxed) : 0;
}

/* What is pending keeps so: an input that is no leaf is saved as it is. AG2 */
gn_status gni_value_save(struct gni_graph_node *node, gn_tensor *tensor, int place)
{
    const struct gni_record *record = gni_record_of(tensor);
    bool is_result = place >= GNI_SAVED_RESULT && place < GNI_SAVED_OTHER;
    bool is_itself = !is_result && (record == NULL || record->node->rule != GNI_RULE_ACCUMULATE) &&
                     gni_tensor_aliases(tensor) == NULL; /* AL2 */
    struct gni_saved *saved = &node->saved[node->saved_count];
    gn_tensor *kept = tensor;
    *saved = (struct gni_saved){.place = place};
    if (is_itself)
        gn_tensor_retain(tensor);
    else
        GN_TRY(gni_detach(tensor, &kept));
    if (last_level != NULL) {
        gn_status status = value_pack(kept, &saved->packed);
        gn_tensor_release(kept);
        GN_TRY(status);
    } else {
        gni_tensor_save(kept);
        saved->tensor = kept;
        saved->version = version_of(kept);
        saved->life = kept->life;
    }
    node->saved_count++;
    return GN_OK;
}

void gni_saved_release(const struct gni_saved *saved)
{
    gni_tensor_unsave(saved->tensor);
    packed_release(saved->packed);
}

/* ---- for a rule ------------------------------------------------------------------------------ */

struct gni_site_text gni_site_text(const char *words, uint32_t site)
{
    struct gni_site_text made = {""};
    char place[128];
    if (site != 0 && gn_history_describe(site, place, sizeof place)[0] != '\0')
        (void)snprintf(made.text, sizeof made.text, " (%s %s)", words, place);
    return made;
}

static gn_status version_check(const struct gni_graph_node *node, const struct gni_saved *saved)
{
    const struct gni_storage *storage = gni_tensor_storage(saved->tensor);
    uint64_t version = version_of(saved->tensor);
    if (saved->tensor->life != saved->life)
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "a tensor that the gradient of %s needs was given another shape or other "
                         "memory in place%s",
                         node->name, gni_site_text("saved at", node->site).text);
    if (version == saved->version)
        return GN_OK;
    uint32_t write_site = atomic_load_explicit(&storage->write_site, memory_order_relaxed);
    return gni_error(GN_ERROR_INVALID_VALUE,
                     "a tensor of shape %s that the gradient of %s needs was changed by an "
                     "operation in place: it has version %llu, and had %llu%s%s",
                     gni_shape_text(saved->tensor->ndim, saved->tensor->sizes).text, node->name,
                     (unsigned long long)version, (unsigned long long)saved->version,
                     gni_site_text("saved at", node->site).text,
                     gni_site_text("changed at", write_site).text);
}

gn_status gni_values_hold(struct gni_graph_node *node, struct gni_saved *held)
{
    gn_status status = GN_OK;
    gni_lock_take(&node->lock);
    /* Who has saved nothing lacks nothing: several graphs may have a view, a sum or a conversion in common. */
    bool is_reusable = node->rule != GNI_RULE_CUSTOM && node->saved_count == 0 && !node->is_failed;
    if (node->is_released && !is_reusable)
        status = gni_error(GN_ERROR_INVALID_VALUE,
                           node->is_failed
                               ? "the graph is gone: the backward pass before this one failed (%s)"
                               : "the graph was walked before, and the values that were saved "
                                 "for it are gone: keep them with retain_graph (%s)",
                           node->name);
    if (status == GN_OK && node->is_spoilt)
        status = gni_error(GN_ERROR_INVALID_VALUE,
                           "a tensor that the gradient of %s needs was changed by an operation in "
                           "place%s",
                           node->name, gni_site_text("saved at", node->site).text);
    for (int i = 0; i < node->saved_count && status == GN_OK; i++) {
        held[i] = node->saved[i];
        if (held[i].packed != NULL)
            atomic_fetch_add(&held[i].packed->references, 1);
        else
            gni_tensor_read_begin(held[i].tensor);
    }
    gni_lock_give(&node->lock);
    return status;
}

void gni_values_let_go(const struct gni_graph_node *node, const struct gni_saved *held)
{
    for (int i = 0; i < node->saved_count; i++) {
        if (held[i].packed != NULL)
            packed_release(held[i].packed);
        else
            gni_tensor_read_end(held[i].tensor);
    }
}

/* The same elements with the record that the value had. It belongs to the scope. */
static gn_status record_restore(struct gni_graph_node *node, int place, struct gni_scope *scope,
                                gn_tensor **value)
{
    struct gni_edge edge = {NULL, 0};
    if (place < GNI_SAVED_RESULT)
        edge = node->edges[place];
    else if (place < GNI_SAVED_OTHER)
        edge = (struct gni_edge){node, place - GNI_SAVED_RESULT};
    if (edge.node == NULL || (*value)->gradient != NULL)
        return GN_OK;
    gn_tensor *made;
    GN_TRY(gni_detach(*value, &made));
    gn_status status = gni_attach(made, edge.node, edge.number);
    if (status != GN_OK)
        gn_tensor_release(made);
    *value = gni_scope_keep(scope, status, made);
    return scope->status;
}

gn_status gni_values_take(struct gni_graph_node *node, bool is_graph, const struct gni_saved *held,
                          struct gni_rule_frame *frame)
{
    for (int i = 0; i < node->saved_count; i++) {
        gn_tensor *value = held[i].tensor;
        int place = held[i].place;
        if (held[i].packed != NULL) {
            gn_status status = value_unpack(held[i].packed, &value);
            if (gni_scope_keep(frame->scope, status, status == GN_OK ? value : NULL) == NULL)
                return frame->scope->status;
        } else {
            GN_TRY(version_check(node, &held[i]));
        }
        if (is_graph)
            GN_TRY(record_restore(node, place, frame->scope, &value));
        frame->saved[i] = value;
        if (place < GNI_SAVED_RESULT)
            frame->inputs[place].tensor = value;
        else if (place < GNI_SAVED_OTHER)
            frame->results[place - GNI_SAVED_RESULT] = value;
    }
    return GN_OK;
}

/* ---- looking at it --------------------------------------------------------------------------- */

void gn_gradient_node_visit_saved(gn_gradient_node *node,
                                  void (*visit)(void *context, const gn_saved_value *value),
                                  void *context)
{
    for (int i = 0; i < node->saved_count; i++) {
        gni_lock_take(&node->lock);
        gn_tensor *tensor = node->saved[i].tensor;
        bool is_packed = node->saved[i].packed != NULL;
        if (tensor != NULL)
            gn_tensor_retain(tensor);
        gni_lock_give(&node->lock);
        if (tensor == NULL && !is_packed)
            continue;
        const struct gni_storage *storage = tensor != NULL ? gni_tensor_storage(tensor) : NULL;
        const struct gni_edge *edge =
            node->saved[i].place < node->edge_count ? &node->edges[node->saved[i].place] : NULL;
        gn_saved_value value = {.tensor = tensor,
                                .nbytes = storage != NULL ? storage->nbytes : 0,
                                .address = storage != NULL ? (uintptr_t)storage->data : 0,
                                .is_leaf = edge != NULL && edge->node != NULL &&
                                           edge->node->rule == GNI_RULE_ACCUMULATE};
        visit(context, &value);
        gn_tensor_release(tensor);
    }
}
