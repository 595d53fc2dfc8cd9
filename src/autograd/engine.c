/*
 * engine.c: the walk from roots back to leaves: gn_backward() and gn_grad().
 *
 * First the nodes behind the roots are collected, with the number of edges that lead to each. Then nodes run, the newest
 * first, each when the gradients of all its results are complete, and on the stream of its operation. Gradients that tensors
 * keep are given to them when the walk has ended (accumulate.c), so that a failure changes nothing.
 *
 * The gradient of taking elements by an index is 0 but at few places. It is not made if other gradients of the tensor come,
 * too: what is taken waits until these are summed, and is then added in place.
 *
 * Nothing calls itself: nodes that wait are in a heap. AG4
 */
#include "autograd/autograd.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/host.h"
#include "genesis/history.h"

#include <stdlib.h>
#include <string.h>

/* A gradient that is added to a sum once that is complete: elements at the places of a node's index tensors. */
struct late {
    struct late *next;
    const struct gni_graph_node *node;
    int number; /* which result of the node behind it belongs to */
    gn_tensor *given;
    int index_count;
    gn_tensor *indices[];
};

/* A node in one walk. */
struct visit {
    struct gni_graph_node *node;
    int64_t dependencies; /* edges to it whose gradients are missing */
    bool is_run;          /* its rule has run: saved values are gone, unless they stay */
    bool is_needed;       /* it leads to an input of gn_grad(); always in gn_backward() */
    bool is_captured;     /* an input of gn_grad() is one of its results */
    gn_tensor **sums;     /* the gradient of each result so far; NULL: 0 */
    struct late *late;    /* what is added to them in the end, newest first */
};

struct walk {
    struct visit *visits;
    size_t count, room;
    size_t *table; /* numbers of visits + 1 by the hash of their nodes; 0: empty */
    size_t table_size;
    size_t *heap; /* numbers of visits that are ready: the first has the largest sequence */
    size_t heap_count, heap_room;
    unsigned flags;
    bool is_running;   /* rules have run: what they needed may be gone */
    size_t root_count; /* visits at the start whose nodes have a reference: they hold all others */
    int input_count;
    gn_tensor *const *inputs;  /* of gn_grad() and gn_backward_to(); NULL: all leaves */
    gn_tensor **captured;      /* results of gn_grad(); NULL: tensors keep their gradients */
    struct gni_kept_list kept; /* for them */
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
        GN_TRY(gni_array_grow((void **)&walk->visits, &walk->room, sizeof *walk->visits));
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

static void late_release(struct late *late)
{
    gn_tensor_release(late->given);
    for (int i = 0; i < late->index_count; i++)
        gn_tensor_release(late->indices[i]);
    gni_host_free(late);
}

static void walk_deinit(struct walk *walk)
{
    for (size_t i = 0; i < walk->count; i++) {
        for (struct late *late = walk->visits[i].late, *next; late != NULL; late = next) {
            next = late->next;
            late_release(late);
        }
        for (int k = 0; k < walk->visits[i].node->result_count; k++)
            gn_tensor_release(walk->visits[i].sums[k]);
        gni_host_free(walk->visits[i].sums);
    }
    gni_kept_deinit(&walk->kept);
    for (size_t i = 0; i < walk->root_count; i++)
        gni_graph_node_release(walk->visits[i].node);
    gni_host_free(walk->visits);
    gni_host_free(walk->table);
    gni_host_free(walk->heap);
}

/* ---- circles --------------------------------------------------------------------------------- */

/* Releases what a node has saved of a tensor that was written to; gives how many values those were. */
static int64_t saved_spoil(struct gni_graph_node *node, const gn_tensor *tensor)
{
    int64_t found = 0;
    for (int i = 0; i < node->saved_count; i++) {
        gni_lock_take(&node->lock);
        struct gni_saved gone = node->saved[i];
        bool is_it = gone.tensor == tensor;
        if (is_it) {
            node->saved[i].tensor = NULL;
            node->is_spoilt = true;
        }
        gni_lock_give(&node->lock);
        if (is_it)
            gni_saved_release(&gone);
        found += is_it;
    }
    return found;
}

/* New nodes are looked at as they are found: those that are meant are close to the first one. */
gn_status gni_graph_spoil(struct gni_graph_node *node, const gn_tensor *tensor, int64_t count)
{
    struct walk walk = {0};
    gn_status status = visit_add(&walk, node);
    for (size_t i = 0; i < walk.count && count > 0 && status == GN_OK; i++) {
        struct gni_graph_node *one = walk.visits[i].node;
        count -= saved_spoil(one, tensor);
        for (int e = 0; e < one->edge_count && count > 0 && status == GN_OK; e++)
            if (one->edges[e].node != NULL && visit_find(&walk, one->edges[e].node) == NULL)
                status = visit_add(&walk, one->edges[e].node);
    }
    walk_deinit(&walk);
    return status;
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
        GN_TRY(gni_array_grow((void **)&walk->heap, &walk->heap_room, sizeof *walk->heap));
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
    bool is_leading = more > 0 && dims == (UINT32_C(1) << more) - 1; /* no others are summed */
    if (dims != 0)
        gradient = gni_sum(scope, gradient, dims, !is_leading, like->dtype);
    if (more > 0 && !is_leading && gni_scope_is_ok(scope))
        gradient = gni_reshape(scope, gradient, like->ndim, gradient->sizes + more);
    gradient = gni_broadcast_values(scope, gradient, like->ndim, like->sizes);
    if (gni_scope_is_ok(scope) && gradient->dtype != like->dtype)
        gradient = gni_cast(scope, gradient, like->dtype);
    if (gni_scope_is_ok(scope) && gradient->device != like->device) {
        gn_tensor *moved = NULL;
        gn_status status = gn_tensor_to(gradient, like->device, &moved);
        gradient = gni_scope_keep(scope, status, moved);
    }
    return gni_scope_is_ok(scope) ? gradient : NULL;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* What a rule is given: arrays with entries for all inputs, results and saved values of a node. */
struct frame_room {
    gn_operand *inputs;
    gn_tensor **gradients;
    const struct gni_like **likes;
    gn_tensor **results, **saved;
    struct gni_saved *held;
};

static gn_status frame_room_init(struct frame_room *room, const struct gni_graph_node *node)
{
    size_t edges = (size_t)node->edge_count, results = (size_t)node->result_count;
    size_t saved = (size_t)node->saved_count;
    size_t nbytes = edges * (sizeof *room->inputs + sizeof *room->gradients + sizeof *room->likes) +
                    results * sizeof *room->results +
                    saved * (sizeof *room->saved + sizeof *room->held);
    room->inputs = gni_host_alloc(nbytes);
    if (room->inputs == NULL)
        return gni_error_host_memory(nbytes);
    room->held = (struct gni_saved *)(room->inputs + edges);
    room->gradients = (gn_tensor **)(room->held + saved);
    room->likes = (const struct gni_like **)(room->gradients + edges);
    room->results = (gn_tensor **)(room->likes + edges);
    room->saved = room->results + results;
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

static atomic_bool are_checked; /* gn_set_gradient_checks() */

bool gn_set_gradient_checks(bool is_on)
{
    return atomic_exchange(&are_checked, is_on);
}

bool gn_get_gradient_checks(void)
{
    return atomic_load(&are_checked);
}

/* Fails if a gradient has a NaN and that is looked for. */
static gn_status gradient_check(const struct gni_graph_node *node, int input, gn_tensor *gradient)
{
    struct gni_scope scope = {0};
    gn_scalar found = {.kind = GN_BOOL};
    if (!gn_get_gradient_checks())
        return GN_OK;
    bool was_on = gn_set_gradients(false);
    gn_tensor *is_nan = gni_unary(&scope, GN_OP_ISNAN, gradient);
    gn_tensor *any =
        gni_scope_is_ok(&scope) ? gni_reduce(&scope, GN_REDUCE_ANY, is_nan, 0, false) : NULL;
    gn_status status = any != NULL ? gn_tensor_get_item(any, NULL, &found) : scope.status;
    gn_status closed = gni_scope_close(&scope);
    (void)gn_set_gradients(was_on);
    GN_TRY(status != GN_OK ? status : closed);
    if (found.integer == 0)
        return GN_OK;
    return gni_error(GN_ERROR_INVALID_VALUE, "the gradient of input %d of %s has a NaN%s", input,
                     node->name, gni_site_text("called at", node->site).text);
}

/*
 * Whether a pending gradient will be summed, since its input was broadcast, and goes to another input as it is, whose node
 * needs it in memory. It is stored first then, so that it is not computed twice.
 */
static bool is_summed_and_stored(const struct gni_graph_node *node, const struct frame_room *room,
                                 int input)
{
    const gn_tensor *gradient = room->gradients[input];
    if (gradient == NULL || gni_tensor_storage(gradient) != NULL || room->likes[input] == NULL ||
        broadcast_dims(gradient, room->likes[input]) == 0)
        return false;
    for (int i = 0; i < node->edge_count; i++)
        if (i != input && room->gradients[i] == gradient && room->likes[i] != NULL &&
            broadcast_dims(gradient, room->likes[i]) == 0 &&
            node->edges[i].node->rule != GNI_RULE_ELEMENTWISE &&
            node->edges[i].node->rule != GNI_RULE_CAST)
            return true;
    return false;
}

/* ---- gradients that are added in place ------------------------------------------------------- */

/* Whether a node's gradient is 0 but at few places, and other gradients are summed with it. Where a walk is itself recorded,
 * or looks for NaN, all gradients are made. */
static bool can_be_late(const struct walk *walk, const struct gni_rule_frame *frame)
{
    const struct gni_graph_node *node = frame->node;
    const struct gni_like *like = frame->likes[0];
    const gn_tensor *given = frame->given[0];
    if (node->rule != GNI_RULE_PLACES || (walk->flags & GN_CREATE_GRAPH) != 0 ||
        gn_get_gradient_checks() || like == NULL || given == NULL || given->dtype != like->dtype ||
        given->device != like->device || like->ndim == 0)
        return false;
    const struct visit *behind = visit_find(walk, node->edges[0].node);
    return behind->dependencies > 1 || behind->sums[node->edges[0].number] != NULL;
}

static gn_status late_add(const struct walk *walk, const struct gni_rule_frame *frame)
{
    const struct gni_graph_node *node = frame->node;
    int count = node->edge_count - 1;
    struct visit *behind = visit_find(walk, node->edges[0].node);
    size_t nbytes = sizeof(struct late) + (size_t)count * sizeof(gn_tensor *);
    struct late *late = gni_host_alloc(nbytes);
    if (late == NULL)
        return gni_error_host_memory(nbytes);
    *late = (struct late){.next = behind->late,
                          .node = node,
                          .number = node->edges[0].number,
                          .given = frame->given[0],
                          .index_count = count};
    gn_tensor_retain(late->given);
    for (int i = 0; i < count; i++) {
        late->indices[i] = frame->inputs[1 + i].tensor;
        gn_tensor_retain(late->indices[i]);
    }
    behind->late = late;
    return GN_OK;
}

/* Makes the sum one that can be written to, and adds. */
static gn_status late_apply(const struct visit *visit, const struct late *late)
{
    const struct gni_like *like = &visit->node->results[late->number];
    const gn_scalar zero = {.kind = GN_INT64};
    gn_tensor **sum = &visit->sums[late->number];
    GN_TRY(*sum != NULL ? gni_gradient_own(sum)
                        : gn_full(zero, like->dtype, like->ndim, like->sizes, like->device, sum));
    return gni_places_add(*sum, late->given, late->node->details, late->index_count, late->indices);
}

/* Runs a node's rule, and adds what it gives to the nodes behind. */
static gn_status rule_run(struct walk *walk, struct visit *visit, struct gni_scope *scope,
                          struct frame_room *room)
{
    struct gni_graph_node *node = visit->node;
    bool is_graph = (walk->flags & GN_CREATE_GRAPH) != 0 || node->rule == GNI_RULE_CUSTOM;
    struct gni_rule_frame frame = {.scope = scope,
                                   .node = node,
                                   .inputs = room->inputs,
                                   .results = room->results,
                                   .saved = room->saved,
                                   .given = visit->sums,
                                   .likes = room->likes};
    for (int i = 0; i < node->edge_count; i++)
        if (is_wanted(walk, &node->edges[i])) {
            frame.needed |= i < 32 ? 1U << i : 0;
            room->likes[i] = &node->edges[i].node->results[node->edges[i].number];
        }
    numbers_set(node, room->inputs);
    GN_TRY(gni_values_take(node, is_graph, room->held, &frame));
    if (can_be_late(walk, &frame))
        return late_add(walk, &frame);
    gni_rule_row(node->rule, node->details).call(&frame, room->gradients);
    for (int i = 0; i < node->edge_count && gni_scope_is_ok(scope); i++)
        if (is_summed_and_stored(node, room, i))
            GN_TRY(gni_tensor_flush(room->gradients[i]));
    for (int i = 0; i < node->edge_count && gni_scope_is_ok(scope); i++) {
        gn_tensor *fitting =
            room->likes[i] != NULL ? gradient_fit(scope, room->gradients[i], room->likes[i]) : NULL;
        const struct gni_edge *edge = &node->edges[i];
        if (fitting == NULL)
            continue;
        GN_TRY(gradient_check(node, i, fitting));
        GN_TRY(gni_gradient_add(&visit_find(walk, edge->node)->sums[edge->number], fitting));
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
    struct gni_graph_node *node = visit->node;
    GN_TRY(frame_room_init(&room, node));
    gn_status status = gni_values_hold(node, room.held);
    if (status == GN_OK) {
        status = rule_run(walk, visit, &scope, &room);
        gn_status closed = gni_scope_close(&scope);
        gni_values_let_go(node, room.held);
        status = status == GN_OK ? closed : status;
    }
    gni_host_free(room.inputs);
    visit->is_run = status == GN_OK;
    if (status == GN_OK && (walk->flags & (GN_RETAIN_GRAPH | GN_CREATE_GRAPH)) == 0)
        gni_graph_node_forget_saved(node);
    return status;
}

/* What the history calls the work until name_end(), which passes a status on. */
static bool name_begin(const char *name)
{
    return gn_history_is_on() && gn_history_begin(name) == GN_OK;
}

static gn_status name_end(bool is_named, gn_status status)
{
    gn_status ended = is_named ? gn_history_end() : GN_OK;
    return status == GN_OK ? ended : status;
}

/* Does a part of the walk on the stream of a node's operation, under its name in the history. */
static gn_status run_there(const struct gni_graph_node *node, struct walk *walk,
                           struct visit *visit, const struct late *late)
{
    gn_stream *before = NULL;
    if (node->stream != NULL)
        GN_TRY(gni_stream_of(node->results[0].device, &before));
    bool is_moved = node->stream != before;
    if (is_moved) {
        before = gn_stream_retain(before);
        GN_TRY(gn_stream_set_current(node->stream));
    }
    bool is_named = name_begin(node->name);
    gn_status status =
        name_end(is_named, late != NULL ? late_apply(visit, late) : node_run(walk, visit));
    if (is_moved) {
        gn_status back = gn_stream_set_current(before);
        status = status == GN_OK ? back : status;
        gn_stream_release(before);
    }
    return status;
}

/* Adds the gradients that have waited for a visit's sums. */
static gn_status late_finish(struct walk *walk, struct visit *visit)
{
    gn_status status = GN_OK;
    while (visit->late != NULL && status == GN_OK) {
        struct late *late = visit->late;
        visit->late = late->next;
        status = run_there(late->node, walk, visit, late);
        late_release(late);
    }
    return status;
}

/* Gradients that gn_grad() is asked for are taken when they are complete. */
static void gradients_capture(struct walk *walk, const struct visit *visit)
{
    for (int i = 0; i < walk->input_count && walk->captured != NULL; i++) {
        const struct gni_record *record = gni_record_of(walk->inputs[i]);
        if (record->node != visit->node || visit->sums[record->number] == NULL)
            continue;
        gn_tensor_retain(visit->sums[record->number]);
        walk->captured[i] = visit->sums[record->number];
    }
}

/* Calls the hooks of a node's results, and keeps gradients that tensors will get. */
static gn_status gradients_finish(struct walk *walk, const struct visit *visit)
{
    struct gni_graph_node *node = visit->node;
    bool is_graph = (walk->flags & GN_CREATE_GRAPH) != 0;
    bool is_leaf = node->rule == GNI_RULE_ACCUMULATE;
    bool is_watched = atomic_load(&node->is_watched);
    for (int i = 0; is_watched && i < node->result_count; i++)
        if (visit->sums[i] != NULL)
            GN_TRY(gni_hooks_run(node, GN_HOOK_GRADIENT, i, &visit->sums[i]));
    if (visit->is_captured)
        gradients_capture(walk, visit);
    bool is_asked = walk->inputs == NULL || visit->is_captured || !is_leaf;
    if (!is_watched || walk->captured != NULL || !is_asked)
        return GN_OK;
    for (int i = 0; i < node->result_count; i++) {
        if (visit->sums[i] == NULL || !gni_is_kept(node, i))
            continue;
        gn_tensor *sum = visit->sums[i];
        if (is_leaf)
            visit->sums[i] = NULL;
        else
            gn_tensor_retain(sum);
        GN_TRY(gni_kept_add(&walk->kept, node, i, sum, is_graph));
    }
    return GN_OK;
}

/* Runs a node and makes those ready that waited for it alone. */
static gn_status visit_run(struct walk *walk, struct visit *visit)
{
    const struct gni_graph_node *node = visit->node;
    GN_TRY(late_finish(walk, visit));
    if (has_gradient(visit)) {
        GN_TRY(gradients_finish(walk, visit));
        if (node->rule != GNI_RULE_ACCUMULATE && visit->is_needed)
            GN_TRY(run_there(node, walk, visit, NULL));
    }
    for (int i = 0; i < node->result_count; i++) {
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
        if (visit_find(walk, record->node) != NULL)
            continue;
        GN_TRY(visit_add(walk, record->node));
        gni_graph_node_retain(record->node);
        walk->root_count++;
    }
    for (int i = 0; i < count; i++) {
        const struct gni_record *record = gni_record_of(roots[i]);
        gn_tensor *gradient;
        GN_TRY(root_gradient(roots[i], gradients != NULL ? gradients[i] : NULL, &gradient));
        gn_status status =
            gni_gradient_add(&visit_find(walk, record->node)->sums[record->number], gradient);
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
    return walk->captured == NULL ? gni_kept_give(&walk->kept, (walk->flags & GN_CREATE_GRAPH) != 0)
                                  : GN_OK;
}

/* After a failure nothing of the graph is of use, unless it was to stay. */
static void graph_abandon(const struct walk *walk)
{
    for (size_t i = 0; i < walk->count; i++)
        if (walk->visits[i].node->rule != GNI_RULE_ACCUMULATE)
            gni_graph_node_fail(walk->visits[i].node, walk->visits[i].is_run);
}

static gn_status walk_all(struct walk *walk, int count, gn_tensor *const *roots,
                          gn_tensor *const *gradients)
{
    bool was_on = gn_set_gradients((walk->flags & GN_CREATE_GRAPH) != 0);
    bool is_named = name_begin("backward");
    gn_status status = name_end(is_named, walk_run(walk, count, roots, gradients));
    (void)gn_set_gradients(was_on);
    if (status != GN_OK)
        gni_kept_undo(&walk->kept);
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

/* Whether inputs need gradients, and the roots may depend on them. */
static gn_status inputs_check(int input_count, gn_tensor *const *inputs)
{
    for (int i = 0; i < input_count; i++) {
        if (inputs[i] != NULL)
            GN_TRY(gni_aliases_refresh(inputs[i]));
        if (inputs[i] == NULL || inputs[i]->gradient == NULL)
            return gni_error(GN_ERROR_INVALID_VALUE, "input %d needs no gradient", i);
    }
    return GN_OK;
}

gn_status gn_backward_to(int count, gn_tensor *const *roots, gn_tensor *const *gradients,
                         int input_count, gn_tensor *const *inputs, unsigned flags)
{
    GN_CHECK_ARGUMENT(count >= 0 && (roots != NULL || count == 0) && input_count > 0 &&
                          inputs != NULL,
                      "roots and inputs must not be NULL");
    GN_TRY(inputs_check(input_count, inputs));
    for (int i = 0; i < input_count; i++)
        GN_TRY(gn_tensor_retain_gradient(inputs[i]));
    struct walk walk = {.flags = flags, .input_count = input_count, .inputs = inputs};
    return walk_all(&walk, count, roots, gradients);
}

gn_status gn_grad(int count, gn_tensor *const *roots, gn_tensor *const *gradients, int input_count,
                  gn_tensor *const *inputs, unsigned flags, gn_tensor **results)
{
    GN_CHECK_ARGUMENT(count >= 0 && (roots != NULL || count == 0) && input_count > 0 &&
                          inputs != NULL && results != NULL,
                      "roots, inputs and results must not be NULL");
    GN_TRY(inputs_check(input_count, inputs));
    for (int i = 0; i < input_count; i++)
        results[i] = NULL;
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
