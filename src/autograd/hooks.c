/*
 * hooks.c: functions of the program's that backward passes call for a tensor's gradient.
 *
 * A hook belongs to the node that made the tensor when the hook was added. It may be removed by any thread at any time: its
 * context goes when nobody calls it.
 *
 * Invariants:
 *   HK1 a node's list has a reference to each of its hooks; removed ones leave it when the next one is added;
 *   HK2 `runs` counts the calls under way. The context is there while it is above 0, or the hook is not removed.
 */
#include "autograd/autograd.h"

#include "base/error.h"
#include "base/host.h"

#include <string.h>

struct gn_hook {
    _Atomic(size_t) references;
    struct gn_hook *next; /* in the node's list; under the node's lock */
    gn_hook_kind kind;
    int number; /* of the node's result */
    gn_hook_call call;
    atomic_bool is_removed;
    struct gni_lock lock; /* of the rest */
    unsigned runs;        /* HK2 */
    void *context;
    void (*deleter)(void *context);
};

/* ---- life ------------------------------------------------------------------------------------ */

static void context_end(struct gn_hook *hook)
{
    if (hook->deleter != NULL)
        hook->deleter(hook->context);
}

void gn_hook_release(gn_hook *hook)
{
    if (hook == NULL || atomic_fetch_sub(&hook->references, 1) != 1)
        return;
    if (!hook->is_removed)
        context_end(hook);
    gni_host_free(hook);
}

void gn_hook_remove(gn_hook *hook)
{
    gni_lock_take(&hook->lock);
    bool is_last = !hook->is_removed && hook->runs == 0;
    hook->is_removed = true;
    gni_lock_give(&hook->lock);
    if (is_last)
        context_end(hook);
}

static bool call_begin(struct gn_hook *hook)
{
    gni_lock_take(&hook->lock);
    bool is_there = !hook->is_removed;
    hook->runs += is_there;
    gni_lock_give(&hook->lock);
    return is_there;
}

static void call_end(struct gn_hook *hook)
{
    gni_lock_take(&hook->lock);
    bool is_last = --hook->runs == 0 && hook->is_removed;
    gni_lock_give(&hook->lock);
    if (is_last)
        context_end(hook);
}

void gni_hooks_release(struct gni_graph_node *node)
{
    while (node->hooks != NULL) {
        struct gn_hook *first = node->hooks;
        node->hooks = first->next;
        gn_hook_release(first);
    }
}

/* Takes removed hooks out of a list, and gives them in one of their own. */
static struct gn_hook *removed_take(struct gn_hook **list)
{
    struct gn_hook *gone = NULL;
    for (struct gn_hook **link = list; *link != NULL;) {
        struct gn_hook *one = *link;
        if (!one->is_removed) {
            link = &one->next;
            continue;
        }
        *link = one->next;
        one->next = gone;
        gone = one;
    }
    return gone;
}

static void hook_add(struct gni_graph_node *node, struct gn_hook *hook)
{
    gni_lock_take(&node->lock);
    struct gn_hook *gone = removed_take(&node->hooks), **link = &node->hooks;
    while (*link != NULL)
        link = &(*link)->next;
    *link = hook;
    atomic_store(&node->is_watched, true);
    gni_lock_give(&node->lock);
    while (gone != NULL) {
        struct gn_hook *next = gone->next;
        gn_hook_release(gone);
        gone = next;
    }
}

gn_status gn_tensor_add_hook(gn_tensor *tensor, gn_hook_kind kind, gn_hook_call call, void *context,
                             void (*deleter)(void *context), gn_hook **hook)
{
    GN_CHECK_ARGUMENT(tensor != NULL && call != NULL && hook != NULL,
                      "tensor, call and hook must not be NULL");
    GN_TRY(gni_aliases_refresh(tensor));
    const struct gni_record *record = gni_record_of(tensor);
    if (record == NULL)
        return gni_error(GN_ERROR_INVALID_VALUE, "a tensor that needs no gradient has no hooks");
    if (kind == GN_HOOK_ACCUMULATED && record->node->rule != GNI_RULE_ACCUMULATE)
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "only a leaf has hooks for when its gradient was accumulated");
    struct gn_hook *made = gni_host_alloc(sizeof *made);
    if (made == NULL)
        return gni_error_host_memory(sizeof *made);
    made->kind = kind;
    made->number = record->number;
    made->call = call;
    made->context = context;
    made->deleter = deleter;
    atomic_init(&made->references, 2);
    hook_add(record->node, made);
    *hook = made;
    return GN_OK;
}

/* ---- calling --------------------------------------------------------------------------------- */

bool gni_has_hooks(struct gni_graph_node *node, gn_hook_kind kind)
{
    bool has_hooks = false;
    gni_lock_take(&node->lock);
    for (const struct gn_hook *hook = node->hooks; hook != NULL; hook = hook->next)
        has_hooks |= hook->kind == kind && !hook->is_removed;
    gni_lock_give(&node->lock);
    return has_hooks;
}

/* A new gradient in the place of another one. */
static gn_status gradient_replace(const struct gni_graph_node *node, gn_tensor *made,
                                  gn_tensor **tensor)
{
    const gn_tensor *before = *tensor;
    if (made->dtype != before->dtype || made->device != before->device ||
        !gni_shape_is_equal(made->ndim, made->sizes, before->ndim, before->sizes)) {
        gn_status status = gni_error(
            GN_ERROR_INVALID_VALUE,
            "a hook of %s gave a gradient of %s and shape %s for one of %s and shape %s",
            node->name, gni_dtypes[made->dtype].name, gni_shape_text(made->ndim, made->sizes).text,
            gni_dtypes[before->dtype].name, gni_shape_text(before->ndim, before->sizes).text);
        gn_tensor_release(made);
        return status;
    }
    gn_tensor_release(*tensor);
    *tensor = made;
    return GN_OK;
}

static gn_status hook_run(const struct gni_graph_node *node, struct gn_hook *hook,
                          gn_tensor **tensor)
{
    gn_tensor *made = NULL;
    if (!call_begin(hook))
        return GN_OK;
    gn_status status = hook->call(hook->context, *tensor, &made);
    call_end(hook);
    if (status != GN_OK || made == NULL)
        return status;
    return gradient_replace(node, made, tensor);
}

/* The hooks that are there now, with references; the caller frees the array. */
static gn_status hooks_take(struct gni_graph_node *node, gn_hook_kind kind, int number,
                            struct gn_hook ***out, int *out_count)
{
    int count = 0, room = 0;
    struct gn_hook **hooks = NULL;
    for (const struct gn_hook *hook = node->hooks; hook != NULL; hook = hook->next)
        room++;
    if (room > 0 && (hooks = gni_host_alloc((size_t)room * sizeof *hooks)) == NULL)
        return gni_error_host_memory((size_t)room * sizeof *hooks);
    for (struct gn_hook *hook = node->hooks; hook != NULL; hook = hook->next)
        if (hook->kind == kind && hook->number == number) {
            atomic_fetch_add(&hook->references, 1);
            hooks[count++] = hook;
        }
    *out = hooks;
    *out_count = count;
    return GN_OK;
}

gn_status gni_hooks_run(struct gni_graph_node *node, gn_hook_kind kind, int number,
                        gn_tensor **tensor)
{
    struct gn_hook **hooks = NULL;
    int count = 0;
    gni_lock_take(&node->lock);
    gn_status status = hooks_take(node, kind, number, &hooks, &count);
    gni_lock_give(&node->lock);
    for (int i = 0; i < count; i++) {
        if (status == GN_OK)
            status = hook_run(node, hooks[i], tensor);
        gn_hook_release(hooks[i]);
    }
    gni_host_free(hooks);
    return status;
}
