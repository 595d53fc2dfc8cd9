/*
 * engine.c: the walk from roots back to leaves: gn_backward() and gn_grad().
 *
 * First the nodes behind the roots are collected, with the number of edges that lead to each. Then nodes run, the newest
 * first, each when the gradients of all its results are complete. Gradients of leaves are kept aside until the walk has
 * ended, so that a failure changes nothing.
 *
 * Nothing calls itself: nodes that wait are in a heap. AG4
 */
#include "autograd/autograd.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/host.h"

#include <stdlib.h>
#include <string.h>

/* A node in one walk. */
struct visit {
    struct gni_graph_node *node;
    int64_t dependencies; /* edges to it whose gradients are missing */
    bool is_needed;       /* it leads to an input of gn_grad(); always in gn_backward() */
    bool is_captured;     /* an input of gn_grad() is one of its results */
    gn_tensor **sums;     /* the gradient of each result so far; NULL: 0 */
    gn_tensor *before;    /* of a leaf at the end: what it had, in `total` */
    gn_tensor *total;     /* of a leaf at the end: what it gets */
};

struct walk {
    struct visit *visits;
    size_t count, room;
    size_t *table; /* numbers of visits + 1 by the hash of their nodes; 0: empty */
    size_t table_size;
    size_t *heap; /* numbers of visits that are ready: the first has the largest sequence */
    size_t heap_count, heap_room;
    unsigned flags;
    bool is_running; /* rules have run: what they needed may be gone */
    int input_count;
    gn_tensor *const *inputs; /* of gn_grad() */
    gn_tensor **captured;     /* its results */
};

/* ---- visits ---------------------------------------------------------------------------------- */

static size_t place_of(const struct walk *walk, const struct gni_graph_node *node)
{
    size_t at = (size_t)gni_hash_bytes(&node, sizeof node, 0) & (walk->table_size - 1);
    while (walk->table[at] != 0 && walk->visits[walk->table[at] - 1].node != node)
        at = (at + 1) & (walk->table_size - 1);
    return at;
}

/* The visit of a node; NULL: there is none. */
static struct visit *visit_find(const struct walk *walk, const struct gni_graph_node *node)
{
    size_t number = walk->table_size > 0 ? walk->table[place_of(walk, node)] : 0;
    return number > 0 ? &walk->visits[number - 1] : NULL;
}

/* Memory for twice as many of something; the old memory stays valid on failure. */
static gn_status array_grow(void **array, size_t *room, size_t size)
{
    size_t more = *room > 0 ? 2 * *room : 64;
    void *grown = gni_host_realloc(*array, more * size);
    if (grown == NULL)
        return gni_error_host_memory(more * size);
    *array = grown;
    *room = more;
    return GN_OK;
}

static gn_status table_grow(struct walk *walk)
{
    size_t size = walk->table_size > 0 ? 2 * walk->table_size : 128;
    size_t *table = gni_host_alloc(size * sizeof *table);
    if (table == NULL)
        return gni_error_host_memory(size * sizeof *table);
    gni_host_free(walk->table);
    walk->table = table;
    walk->table_size = size;
    for (size_t i = 0; i < walk->count; i++)
        walk->table[place_of(walk, walk->visits[i].node)] = i + 1;
    return GN_OK;
}

/* Adds a node that has no visit yet. */
static gn_status visit_add(struct walk *walk, struct gni_graph_node *node)
{
    if (walk->count == walk->room)
        GN_TRY(array_grow((void **)&walk->visits, &walk->room, sizeof *walk->visits));
    if (2 * (walk->count + 1) > walk->table_size)
        GN_TRY(table_grow(walk));
    size_t nbytes = (size_t)node->result_count * sizeof(gn_tensor *);
    gn_tensor **sums = gni_host_alloc((size_t)node->result_count * sizeof *sums);
    if (sums == NULL)
        return gni_error_host_memory(nbytes);
    walk->visits[walk->count] = (struct visit){.node = node, .sums = sums, .is_needed = true};
    walk->table[place_of(walk, node)] = ++walk->count;
    return GN_OK;
}

/* All nodes behind those that have visits. New ones come to the end of the list, which is gone through once. */
static gn_status nodes_collect(struct walk *walk)
{
    for (size_t i = 0; i < walk->count; i++) {
        const struct gni_graph_node *node = walk->visits[i].node;
        for (int e = 0; e < node->edge_count; e++) {
            struct gni_graph_node *behind = node->edges[e].node;
            if (behind == NULL)
                continue;
            if (visit_find(walk, behind) == NULL)
                GN_TRY(visit_add(walk, behind));
            visit_find(walk, behind)->dependencies++;
        }
    }
    return GN_OK;
}

static void walk_deinit(struct walk *walk)
{
    for (size_t i = 0; i < walk->count; i++) {
        for (int k = 0; k < walk->visits[i].node->result_count; k++)
            gn_tensor_release(walk->visits[i].sums[k]);
        gni_host_free(walk->visits[i].sums);
        gn_tensor_release(walk->visits[i].before);
        gn_tensor_release(walk->visits[i].total);
    }
    gni_host_free(walk->visits);
    gni_host_free(walk->table);
    gni_host_free(walk->heap);
}

/* ---- what is ready --------------------------------------------------------------------------- */

static bool is_newer(const struct walk *walk, size_t a, size_t b)
{
    return walk->visits[walk->heap[a]].node->sequence > walk->visits[walk->heap[b]].node->sequence;
}

static void heap_swap(struct walk *walk, size_t a, size_t b)
{
    size_t kept = walk->heap[a];
    walk->heap[a] = walk->heap[b];
    walk->heap[b] = kept;
}

static gn_status heap_push(struct walk *walk, size_t visit)
{
    if (walk->heap_count == walk->heap_room)
        GN_TRY(array_grow((void **)&walk->heap, &walk->heap_room, sizeof *walk->heap));
    size_t at = walk->heap_count++;
    walk->heap[at] = visit;
    for (; at > 0 && is_newer(walk, at, (at - 1) / 2); at = (at - 1) / 2)
        heap_swap(walk, at, (at - 1) / 2);
    return GN_OK;
}

static size_t heap_pop(struct walk *walk)
{
    size_t first = walk->heap[0], at = 0;
    walk->heap[0] = walk->heap[--walk->heap_count];
    for (;;) {
        size_t newest = at;
        for (size_t below = 2 * at + 1; below <= 2 * at + 2 && below < walk->heap_count; below++)
            if (is_newer(walk, below, newest))
                newest = below;
        if (newest == at)
            return first;
        heap_swap(walk, at, newest);
        at = newest;
    }
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* The dimensions over which a gradient is summed to have a shape: those that were broadcast. */
static uint32_t broadcast_dims(const gn_tensor *gradient, const struct gni_like *like)
{
    int more = gradient->ndim - like->ndim;
    uint32_t dims = 0;
    for (int i = 0; i < gradient->ndim; i++)
        if (i < more || (like->sizes[i - more] == 1 && gradient->sizes[i] != 1))
            dims |= UINT32_C(1) << i;
    return dims;
}

/* A gradient as its tensor is: what was broadcast is summed, and the type and the device are the tensor's. */
static gn_tensor *gradient_fit(struct gni_scope *scope, gn_tensor *gradient,
                               const struct gni_like *like)
{
    if (gradient == NULL || !gni_scope_is_ok(scope))
        return NULL;
    int more = gradient->ndim - like->ndim;
    uint32_t dims = broadcast_dims(gradient, like);
    if (dims != 0)
        gradient = gni_reduce(scope, GN_REDUCE_SUM, gradient, dims, true);
    if (more > 0 && gni_scope_is_ok(scope))
        gradient = gni_reshape(scope, gradient, like->ndim, gradient->sizes + more);
    if (gni_scope_is_ok(scope) &&
        !gni_shape_is_equal(gradient->ndim, gradient->sizes, like->ndim, like->sizes))
        gradient = gni_expand(scope, gradient, like->ndim, like->sizes);
    if (gni_scope_is_ok(scope) && gradient->dtype != like->dtype)
        gradient = gni_cast(scope, gradient, like->dtype);
    if (gni_scope_is_ok(scope) && gradient->device != like->device) {
        gn_tensor *moved = NULL;
        gn_status status = gn_tensor_to(gradient, like->device, &moved);
        gradient = gni_scope_keep(scope, status, moved);
    }
    return gni_scope_is_ok(scope) ? gradient : NULL;
}

/* Adds a gradient to what a result of a node has. */
static gn_status gradient_add(gn_tensor **sum, gn_tensor *gradient)
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

/* ---- saved values ---------------------------------------------------------------------------- */

static gn_status version_check(const struct gni_graph_node *node, const struct gni_saved *saved)
{
    struct gni_storage *storage = gni_tensor_storage(saved->tensor);
    uint64_t version = storage != NULL ? atomic_load(&storage->version) : 0;
    if (version == saved->version)
        return GN_OK;
    return gni_error(GN_ERROR_INVALID_VALUE,
                     "a tensor of shape %s that the gradient of %s needs was changed by an "
                     "operation in place: it has version %llu, and had %llu",
                     gni_shape_text(saved->tensor->ndim, saved->tensor->sizes).text, node->name,
                     (unsigned long long)version, (unsigned long long)saved->version);
}

/* A saved value for a rule. Where gradients are to be differentiated it has the record that it had. */
static gn_status value_unpack(struct gni_graph_node *node, const struct gni_saved *saved,
                              bool is_graph, struct gni_scope *scope, gn_tensor **value)
{
    bool is_result = saved->place >= GNI_SAVED_RESULT;
    struct gni_edge edge = {node, saved->place - GNI_SAVED_RESULT};
    if (!is_result)
        edge = node->edges[saved->place];
    if (!is_graph || edge.node == NULL || saved->tensor->gradient != NULL) {
        *value = saved->tensor;
        return GN_OK;
    }
    gn_tensor *made;
    GN_TRY(gni_detach(saved->tensor, &made));
    gn_status status = gni_attach(made, edge.node, edge.number);
    *value = gni_scope_keep(scope, status, made);
    return status == GN_OK ? scope->status : status;
}

/* What a node has saved, with references of the caller's own. */
static gn_status values_hold(struct gni_graph_node *node, struct gni_saved *held)
{
    gn_status status = GN_OK;
    gni_lock_take(&node->lock);
    if (node->is_released)
        status = gni_error(GN_ERROR_INVALID_VALUE,
                           node->is_failed
                               ? "the graph is gone: the backward pass before this one failed (%s)"
                               : "the graph was walked before, and the values that were saved "
                                 "for it are gone: keep them with retain_graph (%s)",
                           node->name);
    for (int i = 0; i < node->saved_count && status == GN_OK; i++) {
        held[i] = node->saved[i];
        gni_tensor_read_begin(held[i].tensor);
    }
    gni_lock_give(&node->lock);
    return status;
}

/* Values of a node for its rule, of those that are held. */
static gn_status values_take(struct gni_graph_node *node, bool is_graph, struct gni_saved *held,
                             struct gni_rule_frame *frame)
{
    for (int i = 0; i < node->saved_count; i++) {
        gn_tensor *value;
        GN_TRY(version_check(node, &held[i]));
        GN_TRY(value_unpack(node, &held[i], is_graph, frame->scope, &value));
        if (held[i].place >= GNI_SAVED_RESULT)
            frame->results[held[i].place - GNI_SAVED_RESULT] = value;
        else
            frame->inputs[held[i].place].tensor = value;
    }
    return GN_OK;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* What a rule is given: arrays of as many entries as the node has edges. */
struct frame_room {
    gn_operand *inputs;
    gn_tensor **gradients;
    const struct gni_like **likes;
    void *memory;
};

static gn_status frame_room_init(struct frame_room *room, int count)
{
    size_t each = sizeof *room->inputs + sizeof *room->gradients + sizeof *room->likes;
    room->memory = gni_host_alloc((size_t)count * each);
    if (room->memory == NULL)
        return gni_error_host_memory((size_t)count * each);
    room->inputs = room->memory;
    room->gradients = (gn_tensor **)(room->inputs + count);
    room->likes = (const struct gni_like **)(room->gradients + count);
    return GN_OK;
}

static bool is_wanted(const struct walk *walk, const struct gni_edge *edge)
{
    const struct visit *visit = edge->node != NULL ? visit_find(walk, edge->node) : NULL;
    return visit != NULL && (visit->is_needed || visit->is_captured);
}

/* The numbers among the operands of an elementwise operation. */
static void numbers_set(const struct gni_graph_node *node, gn_operand *inputs)
{
    if (node->rule != GNI_RULE_ELEMENTWISE)
        return;
    const struct gni_elementwise_details *details = node->details;
    for (int i = 0; i < node->edge_count; i++)
        inputs[i].scalar = details->numbers[i];
}

/* Runs a node's rule, and adds what it gives to the nodes behind. */
static gn_status rule_run(struct walk *walk, struct visit *visit, struct gni_saved *held,
                          struct gni_scope *scope, struct frame_room *room)
{
    struct gni_graph_node *node = visit->node;
    gn_tensor *results[GNI_SAVED_RESULT] = {NULL};
    struct gni_rule_frame frame = {.scope = scope,
                                   .node = node,
                                   .inputs = room->inputs,
                                   .results = results,
                                   .given = visit->sums,
                                   .likes = room->likes};
    for (int i = 0; i < node->edge_count; i++)
        if (is_wanted(walk, &node->edges[i])) {
            frame.needed |= i < 32 ? 1U << i : 0;
            room->likes[i] = &node->edges[i].node->results[node->edges[i].number];
        }
    numbers_set(node, room->inputs);
    GN_TRY(values_take(node, (walk->flags & GN_CREATE_GRAPH) != 0, held, &frame));
    gni_rule_row(node->rule, node->details).call(&frame, room->gradients);
    for (int i = 0; i < node->edge_count && gni_scope_is_ok(scope); i++) {
        gn_tensor *fitting =
            room->likes[i] != NULL ? gradient_fit(scope, room->gradients[i], room->likes[i]) : NULL;
        const struct gni_edge *edge = &node->edges[i];
        if (fitting != NULL)
            GN_TRY(gradient_add(&visit_find(walk, edge->node)->sums[edge->number], fitting));
    }
    return scope->status;
}

static bool has_gradient(const struct visit *visit)
{
    for (int i = 0; i < visit->node->result_count; i++)
        if (visit->sums[i] != NULL)
            return true;
    return false;
}

static gn_status node_run(struct walk *walk, struct visit *visit)
{
    struct gni_scope scope = {0};
    struct frame_room room = {0};
    struct gni_saved held[2 * GNI_SAVED_RESULT];
    GN_TRY(frame_room_init(&room, visit->node->edge_count));
    gn_status status = values_hold(visit->node, held);
    bool is_held = status == GN_OK;
    if (is_held)
        status = rule_run(walk, visit, held, &scope, &room);
    gn_status closed = gni_scope_close(&scope);
    for (int i = 0; is_held && i < visit->node->saved_count; i++)
        gni_tensor_read_end(held[i].tensor);
    gni_host_free(room.memory);
    status = status == GN_OK ? closed : status;
    if (status == GN_OK && (walk->flags & (GN_RETAIN_GRAPH | GN_CREATE_GRAPH)) == 0)
        gni_graph_node_forget_saved(visit->node, false);
    return status;
}

/* Gradients that gn_grad() is asked for are taken when they are complete. */
static void gradients_capture(struct walk *walk, const struct visit *visit)
{
    for (int i = 0; i < walk->input_count; i++) {
        const struct gni_record *record = gni_record_of(walk->inputs[i]);
        if (record->node != visit->node || visit->sums[record->number] == NULL)
            continue;
        gn_tensor_retain(visit->sums[record->number]);
        walk->captured[i] = visit->sums[record->number];
    }
}

/* Runs a node and makes those ready that waited for it alone. Gradients of leaves stay where they are. */
static gn_status visit_run(struct walk *walk, struct visit *visit)
{
    const struct gni_graph_node *node = visit->node;
    if (visit->is_captured)
        gradients_capture(walk, visit);
    bool is_leaf = node->rule == GNI_RULE_ACCUMULATE;
    if (!is_leaf && visit->is_needed && has_gradient(visit))
        GN_TRY(node_run(walk, visit));
    for (int i = 0; i < node->result_count && !(is_leaf && walk->inputs == NULL); i++) {
        gn_tensor_release(visit->sums[i]);
        visit->sums[i] = NULL;
    }
    for (int i = 0; i < node->edge_count; i++) {
        if (node->edges[i].node == NULL)
            continue;
        struct visit *behind = visit_find(walk, node->edges[i].node);
        if (--behind->dependencies == 0)
            GN_TRY(heap_push(walk, (size_t)(behind - walk->visits)));
    }
    return GN_OK;
}

/* ---- leaves ---------------------------------------------------------------------------------- */

/* What a leaf has got so far; a new reference, or NULL. */
static gn_tensor *leaf_gradient(struct gni_graph_node *node)
{
    gni_lock_take(&node->lock);
    gn_tensor *gradient = node->leaf != NULL ? node->leaf->gradient : NULL;
    if (gradient != NULL)
        gn_tensor_retain(gradient);
    gni_lock_give(&node->lock);
    return gradient;
}

/* Whether nobody else has this gradient or its memory: a leaf can have it as it is. */
static bool is_alone(const gn_tensor *gradient)
{
    struct gni_storage *storage = gni_tensor_storage(gradient);
    return gradient->is_contiguous && atomic_load(&gradient->references) == 1 &&
           (storage == NULL || atomic_load(&storage->references) == 1);
}

/* Computes what a leaf's gradient becomes: the sum of what it has and the new one. */
static gn_status leaf_sum(struct visit *visit)
{
    gn_tensor_release(visit->before);
    gn_tensor_release(visit->total);
    visit->before = leaf_gradient(visit->node);
    visit->total = NULL;
    if (is_alone(visit->sums[0])) {
        gn_tensor_retain(visit->sums[0]);
        visit->total = visit->sums[0];
    } else {
        GN_TRY(gn_cast(visit->sums[0], visit->sums[0]->dtype, &visit->total));
    }
    if (visit->before != NULL)
        GN_TRY(gradient_add(&visit->total, visit->before));
    return gni_tensor_flush(visit->total);
}

/* Gives it to the leaf. False: another thread has given it something since the sum was computed. */
static bool leaf_set(struct visit *visit)
{
    struct gni_graph_node *node = visit->node;
    gni_lock_take(&node->lock);
    struct gni_record *leaf = node->leaf;
    bool is_set = leaf == NULL || leaf->gradient == visit->before;
    if (leaf != NULL && is_set) {
        leaf->gradient = visit->total;
        visit->total = visit->before; /* the leaf's reference to it is ours now, beside our own */
    }
    gni_lock_give(&node->lock);
    return is_set;
}

static bool is_leaf_with_gradient(const struct visit *visit)
{
    return visit->node->rule == GNI_RULE_ACCUMULATE && visit->sums[0] != NULL;
}

/* All sums are computed before the first leaf changes. */
static gn_status leaves_update(struct walk *walk)
{
    for (size_t i = 0; i < walk->count; i++)
        if (is_leaf_with_gradient(&walk->visits[i]))
            GN_TRY(leaf_sum(&walk->visits[i]));
    for (size_t i = 0; i < walk->count; i++)
        while (is_leaf_with_gradient(&walk->visits[i]) && !leaf_set(&walk->visits[i]))
            GN_TRY(leaf_sum(&walk->visits[i]));
    return GN_OK;
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* The gradient of a root: the one that is given, or 1. */
static gn_status root_gradient(const gn_tensor *root, gn_tensor *given, gn_tensor **gradient)
{
    const gn_scalar one = {.kind = GN_INT64, .integer = 1};
    if (given == NULL && root->count != 1)
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "the gradient of a root of shape %s must be given: only of one element "
                         "it is 1",
                         gni_shape_text(root->ndim, root->sizes).text);
    if (given == NULL)
        return gn_full(one, root->dtype, root->ndim, root->sizes, root->device, gradient);
    if (given->dtype != root->dtype || given->device != root->device ||
        !gni_shape_is_equal(given->ndim, given->sizes, root->ndim, root->sizes))
        return gni_error(
            GN_ERROR_INVALID_VALUE,
            "the gradient of a root of %s and shape %s is no tensor of %s and shape %s",
            gni_dtypes[root->dtype].name, gni_shape_text(root->ndim, root->sizes).text,
            gni_dtypes[given->dtype].name, gni_shape_text(given->ndim, given->sizes).text);
    gn_tensor_retain(given);
    *gradient = given;
    return GN_OK;
}

static gn_status roots_begin(struct walk *walk, int count, gn_tensor *const *roots,
                             gn_tensor *const *gradients)
{
    for (int i = 0; i < count; i++) {
        if (roots[i] != NULL)
            GN_TRY(gni_aliases_refresh(roots[i]));
        const struct gni_record *record = roots[i] != NULL ? gni_record_of(roots[i]) : NULL;
        if (record == NULL)
            return gni_error(GN_ERROR_INVALID_VALUE,
                             "root %d needs no gradient: no operation with a tensor that does has "
                             "made it",
                             i);
        if (visit_find(walk, record->node) == NULL)
            GN_TRY(visit_add(walk, record->node));
    }
    for (int i = 0; i < count; i++) {
        const struct gni_record *record = gni_record_of(roots[i]);
        gn_tensor *gradient;
        GN_TRY(root_gradient(roots[i], gradients != NULL ? gradients[i] : NULL, &gradient));
        gn_status status =
            gradient_add(&visit_find(walk, record->node)->sums[record->number], gradient);
        gn_tensor_release(gradient);
        GN_TRY(status);
    }
    return GN_OK;
}

static int sequence_compare(const void *a, const void *b, void *context)
{
    const struct walk *walk = context;
    uint64_t first = walk->visits[*(const size_t *)a].node->sequence;
    uint64_t second = walk->visits[*(const size_t *)b].node->sequence;
    return (first > second) - (first < second);
}

/* Marks the nodes that lead to inputs of gn_grad(): older ones first, since edges lead to older nodes. AG1 */
static gn_status needed_mark(struct walk *walk)
{
    size_t *order = gni_host_alloc(walk->count * sizeof *order);
    if (order == NULL)
        return gni_error_host_memory(walk->count * sizeof *order);
    for (size_t i = 0; i < walk->count; i++) {
        order[i] = i;
        walk->visits[i].is_needed = false;
    }
    for (int i = 0; i < walk->input_count; i++) {
        struct visit *visit = visit_find(walk, gni_record_of(walk->inputs[i])->node);
        if (visit != NULL)
            visit->is_captured = true;
    }
    qsort_r(order, walk->count, sizeof *order, sequence_compare, walk);
    for (size_t i = 0; i < walk->count; i++) {
        struct visit *visit = &walk->visits[order[i]];
        for (int e = 0; e < visit->node->edge_count; e++)
            visit->is_needed |= is_wanted(walk, &visit->node->edges[e]);
    }
    gni_host_free(order);
    return GN_OK;
}

static gn_status walk_run(struct walk *walk, int count, gn_tensor *const *roots,
                          gn_tensor *const *gradients)
{
    GN_TRY(roots_begin(walk, count, roots, gradients));
    GN_TRY(nodes_collect(walk));
    if (walk->inputs != NULL)
        GN_TRY(needed_mark(walk));
    for (size_t i = 0; i < walk->count; i++)
        if (walk->visits[i].dependencies == 0)
            GN_TRY(heap_push(walk, i));
    walk->is_running = true;
    while (walk->heap_count > 0)
        GN_TRY(visit_run(walk, &walk->visits[heap_pop(walk)]));
    return walk->inputs == NULL ? leaves_update(walk) : GN_OK;
}

/* After a failure nothing of the graph is of use, unless it was to stay. */
static void graph_abandon(const struct walk *walk)
{
    for (size_t i = 0; i < walk->count; i++)
        if (walk->visits[i].node->rule != GNI_RULE_ACCUMULATE)
            gni_graph_node_forget_saved(walk->visits[i].node, true);
}

static gn_status walk_all(struct walk *walk, int count, gn_tensor *const *roots,
                          gn_tensor *const *gradients)
{
    bool was_on = gn_set_gradients((walk->flags & GN_CREATE_GRAPH) != 0);
    gn_status status = walk_run(walk, count, roots, gradients);
    (void)gn_set_gradients(was_on);
    if (status != GN_OK && walk->is_running &&
        (walk->flags & (GN_RETAIN_GRAPH | GN_CREATE_GRAPH)) == 0)
        graph_abandon(walk);
    walk_deinit(walk);
    return status;
}

gn_status gn_backward(int count, gn_tensor *const *roots, gn_tensor *const *gradients,
                      unsigned flags)
{
    GN_CHECK_ARGUMENT(count >= 0 && (roots != NULL || count == 0), "roots must not be NULL");
    struct walk walk = {.flags = flags};
    return walk_all(&walk, count, roots, gradients);
}

gn_status gn_grad(int count, gn_tensor *const *roots, gn_tensor *const *gradients, int input_count,
                  gn_tensor *const *inputs, unsigned flags, gn_tensor **results)
{
    GN_CHECK_ARGUMENT(count >= 0 && (roots != NULL || count == 0) && input_count > 0 &&
                          inputs != NULL && results != NULL,
                      "roots, inputs and results must not be NULL");
    for (int i = 0; i < input_count; i++) {
        if (inputs[i] != NULL)
            GN_TRY(gni_aliases_refresh(inputs[i]));
        if (inputs[i] == NULL || inputs[i]->gradient == NULL)
            return gni_error(GN_ERROR_INVALID_VALUE, "input %d needs no gradient", i);
        results[i] = NULL;
    }
    struct walk walk = {
        .flags = flags, .input_count = input_count, .inputs = inputs, .captured = results};
    gn_status status = walk_all(&walk, count, roots, gradients);
    for (int i = 0; i < input_count && status == GN_OK; i++)
        if (results[i] == NULL && (flags & GN_ALLOW_UNUSED) == 0)
            status = gni_error(GN_ERROR_INVALID_VALUE,
                               "the roots do not depend on input %d: its gradient can be nothing "
                               "with allow_unused",
                               i);
    for (int i = 0; i < input_count && status != GN_OK; i++) {
        gn_tensor_release(results[i]);
        results[i] = NULL;
    }
    return status;
}
