/*
 * graph_nodes.c: nodes of the graph, records of tensors, and leaves: autograd.h.
 *
 * A node is one block of host memory: the node, its edges, what its results look like, its saved values and details.
 *
 * While stacks are recorded (genesis/history.h), nodes know where they were called, and are in one list.
 */
#include "autograd/autograd.h"

#include "base/error.h"
#include "base/fork.h"
#include "base/host.h"
#include "genesis/history.h"

#include <string.h>

static _Atomic(uint64_t) last_sequence;
static struct gni_lock list_lock; /* of `listed` */
static struct gni_list listed = {.next = &listed, .prev = &listed};

/* ---- nodes ----------------------------------------------------------------------------------- */

enum {
    ALIGNMENT = 16,
};

static size_t aligned(size_t nbytes)
{
    return (nbytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* The next so many bytes of a node's memory. */
static void *room_take(char **at, size_t nbytes)
{
    void *taken = *at;
    *at += aligned(nbytes);
    return taken;
}

/* A node with room for what a step has; edges are empty and nothing is saved yet. */
static gn_status node_create(const struct gni_tape_step *step, int saved_most,
                             struct gni_graph_node **out)
{
    size_t sizes = 0;
    for (int i = 0; i < step->result_count; i++)
        sizes += aligned(sizeof(int64_t) * (size_t)step->results[i]->ndim);
    size_t edges = sizeof(struct gni_edge) * (size_t)step->input_count;
    size_t likes = sizeof(struct gni_like) * (size_t)step->result_count;
    size_t saved = sizeof(struct gni_saved) * (size_t)saved_most;
    size_t nbytes = aligned(sizeof(struct gni_graph_node)) + aligned(edges) + aligned(likes) +
                    aligned(saved) + aligned(step->detail_bytes) + sizes;
    char *memory = gni_host_alloc(nbytes);
    if (memory == NULL)
        return gni_error_host_memory(nbytes);
    struct gni_graph_node *node = room_take(&memory, sizeof *node);
    *node = (struct gni_graph_node){
        .rule = step->rule,
        .name = step->name,
        .edge_count = step->input_count,
        .result_count = step->result_count,
        .sequence = atomic_fetch_add_explicit(&last_sequence, 1, memory_order_relaxed) + 1,
    };
    atomic_init(&node->references, 1);
    node->edges = room_take(&memory, edges);
    node->results = room_take(&memory, likes);
    node->saved = room_take(&memory, saved);
    node->details = memory;
    if (step->detail_bytes > 0)
        memcpy(room_take(&memory, step->detail_bytes), step->details, step->detail_bytes);
    memset(node->edges, 0, edges);
    for (int i = 0; i < step->result_count; i++) {
        const gn_tensor *result = step->results[i];
        size_t bytes = sizeof(int64_t) * (size_t)result->ndim;
        int64_t *own = room_take(&memory, bytes);
        memcpy(own, result->sizes, bytes);
        node->results[i] = (struct gni_like){result->device, result->dtype, result->ndim, own};
    }
    *out = node;
    return GN_OK;
}

/* Nodes of this thread that nobody refers to any more: a node's saved values may be the last to refer to others. */
static _Thread_local struct gni_graph_node *ending;
static _Thread_local bool is_ending;

static void node_destroy(struct gni_graph_node *node)
{
    if (node->site != 0) {
        gni_lock_take(&list_lock);
        gni_list_remove(&node->listed);
        gni_lock_give(&list_lock);
    }
    for (int i = 0; i < node->saved_count; i++)
        gni_saved_release(&node->saved[i]);
    for (int i = 0; i < node->edge_count; i++)
        if (node->edges[i].node != NULL)
            gni_graph_node_release(node->edges[i].node);
    gni_hooks_release(node);
    if (node->rule == GNI_RULE_CUSTOM)
        gni_custom_deinit(node);
    if (node->stream != NULL)
        gn_stream_release(node->stream);
    gni_host_free(node);
}

void gni_graph_node_release(struct gni_graph_node *node)
{
    if (atomic_fetch_sub_explicit(&node->references, 1, memory_order_acq_rel) != 1)
        return;
    node->next = ending;
    ending = node;
    if (is_ending)
        return;
    is_ending = true;
    while (ending != NULL) {
        struct gni_graph_node *first = ending;
        ending = first->next;
        node_destroy(first);
    }
    is_ending = false;
}

void gni_graph_node_fail(struct gni_graph_node *node, bool is_run)
{
    gni_lock_take(&node->lock);
    node->is_failed |= is_run || !node->is_released;
    gni_lock_give(&node->lock);
    gni_graph_node_forget_saved(node);
}

void gni_graph_node_forget_saved(struct gni_graph_node *node)
{
    gni_lock_take(&node->lock);
    bool was_released = node->is_released;
    node->is_released = true;
    gni_lock_give(&node->lock);
    for (int i = 0; i < node->saved_count && !was_released; i++) {
        gni_lock_take(&node->lock);
        struct gni_saved gone = node->saved[i];
        node->saved[i].tensor = NULL;
        node->saved[i].packed = NULL;
        gni_lock_give(&node->lock);
        gni_saved_release(&gone);
    }
    if (node->rule == GNI_RULE_CUSTOM && !was_released)
        gni_custom_forget(node);
}

/* Where an operation was called, while stacks are recorded. */
static void node_list(struct gni_graph_node *node)
{
    if (!gn_history_is_on())
        return;
    node->site = gn_history_capture();
    if (node->site == 0)
        return;
    gni_lock_take(&list_lock);
    gni_list_push_back(&listed, &node->listed);
    gni_lock_give(&list_lock);
}

/* ---- records --------------------------------------------------------------------------------- */

gn_status gni_detach(gn_tensor *tensor, gn_tensor **detached)
{
    bool was_on = gn_set_gradients(false);
    gn_status status =
        gni_tensor_alias_as(tensor, 0, tensor->ndim, tensor->sizes, tensor->strides, detached);
    (void)gn_set_gradients(was_on);
    if (status != GN_OK)
        return status;
    if ((*detached)->aliases != NULL)
        gni_aliases_release((*detached)->aliases);
    (*detached)->aliases = NULL;
    (*detached)->is_untaped = false;
    if (!(*detached)->is_apart)
        gni_tensor_part(*detached);
    return GN_OK;
}

gn_status gni_attach(gn_tensor *tensor, struct gni_graph_node *node, int number)
{
    struct gni_record *record = gni_host_alloc(sizeof *record);
    if (record == NULL)
        return gni_error_host_memory(sizeof *record);
    gni_graph_node_retain(node);
    *record = (struct gni_record){.node = node, .number = number, .tensor = tensor};
    if (gni_tensor_was_rewritten(tensor))
        record->generation = atomic_load(&gni_tensor_aliases(tensor)->generation);
    tensor->gradient = record;
    tensor->is_untaped = false;
    return GN_OK;
}

static void record_keep(struct gni_record *record)
{
    gni_lock_take(&record->node->lock);
    if (!record->is_kept) {
        record->is_kept = true;
        record->next_kept = record->node->kept;
        record->node->kept = record;
        atomic_store(&record->node->is_watched, true);
    }
    gni_lock_give(&record->node->lock);
}

/* Takes a record out of the list of its node. */
static void record_unkeep(struct gni_record *record)
{
    gni_lock_take(&record->node->lock);
    struct gni_record **link = &record->node->kept;
    while (*link != record)
        link = &(*link)->next_kept;
    *link = record->next_kept;
    record->is_kept = false;
    gni_lock_give(&record->node->lock);
}

static void record_destroy(struct gni_record *record)
{
    struct gni_graph_node *node = record->node;
    if (record->is_kept)
        record_unkeep(record);
    gn_tensor_release(record->gradient);
    gn_tensor_release(record->place);
    gni_host_free(record);
    gni_graph_node_release(node);
}

static void tensor_forget(gn_tensor *tensor)
{
    struct gni_record *record = gni_record_of(tensor);
    tensor->gradient = NULL;
    record_destroy(record);
}

/* ---- recording ------------------------------------------------------------------------------- */

/* The last bit stands for all inputs behind. */
static gn_status values_save(struct gni_graph_node *node, const struct gni_tape_step *step,
                             const struct gni_rule_row *row)
{
    for (int i = 0; i < step->input_count && row->saves != 0; i++)
        if ((row->saves >> (i < 31 ? i : 31) & 1) != 0 && step->inputs[i].tensor != NULL)
            GN_TRY(gni_value_save(node, step->inputs[i].tensor, i));
    for (int i = 0; i < step->result_count && row->saves_result >> i != 0; i++)
        if ((row->saves_result >> i & 1) != 0)
            GN_TRY(gni_value_save(node, step->results[i], GNI_SAVED_RESULT + i));
    return GN_OK;
}

/* The inputs that need a gradient, as bits. */
static unsigned inputs_needed(const struct gni_tape_step *step)
{
    unsigned needed = 0;
    for (int i = 0; i < step->input_count && i < 32; i++)
        if (step->inputs[i].tensor != NULL && step->inputs[i].tensor->gradient != NULL)
            needed |= 1U << i;
    return needed;
}

static void edges_set(struct gni_graph_node *node, const struct gni_tape_step *step)
{
    for (int i = 0; i < step->input_count; i++) {
        const gn_tensor *tensor = step->inputs[i].tensor;
        const struct gni_record *record = tensor != NULL ? gni_record_of(tensor) : NULL;
        if (record == NULL)
            continue;
        gni_graph_node_retain(record->node);
        node->edges[i] = (struct gni_edge){.node = record->node, .number = record->number};
    }
}

/* Whether results of the step need records: they are floating numbers, and have none. */
static bool is_about_gradients(const struct gni_tape_step *step)
{
    for (int i = 0; i < step->result_count; i++)
        if (gni_dtypes[step->results[i]->dtype].kind == GNI_KIND_FLOATING &&
            step->results[i]->gradient == NULL)
            return true;
    return false;
}

static gn_status results_attach(struct gni_graph_node *node, const struct gni_tape_step *step)
{
    gn_status status = GN_OK;
    int done = 0;
    for (; done < step->result_count && status == GN_OK; done++)
        if (gni_dtypes[step->results[done]->dtype].kind == GNI_KIND_FLOATING)
            status = gni_attach(step->results[done], node, done);
    while (status != GN_OK && done-- > 0)
        if (step->results[done]->gradient != NULL)
            tensor_forget(step->results[done]);
    return status;
}

/* A view on the tape may be written to later, or what it is a view of. */
static gn_status aliases_prepare(const struct gni_tape_step *step)
{
    for (int i = 0; i < step->input_count; i++)
        if (step->inputs[i].tensor != NULL)
            GN_TRY(gni_aliases_refresh(step->inputs[i].tensor));
    gn_tensor *input = step->inputs[0].tensor;
    bool is_view = input != NULL && gni_tensor_storage(input) != NULL &&
                   gni_tensor_storage(input) == gni_tensor_storage(step->results[0]);
    return is_view ? gni_aliases_begin(input) : GN_OK;
}

/* The place of a value that the caller wants saved. */
static int place_find(const struct gni_tape_step *step, const gn_tensor *tensor)
{
    for (int i = 0; i < step->result_count; i++)
        if (step->results[i] == tensor)
            return GNI_SAVED_RESULT + i;
    for (int i = 0; i < step->input_count; i++)
        if (step->inputs[i].tensor == tensor)
            return i;
    return GNI_SAVED_OTHER;
}

/* The stream that a node's rule will run on. */
static gn_status stream_keep(struct gni_graph_node *node)
{
    gn_stream *stream = NULL;
    gn_device *device = node->results[0].device;
    if (device->ops->is_immediate)
        return GN_OK;
    GN_TRY(gni_stream_of(device, &stream));
    node->stream = gn_stream_retain(stream);
    return GN_OK;
}

gn_status gni_step_record(const struct gni_tape_step *step, int saved_count,
                          gn_tensor *const *saved)
{
    if (!is_about_gradients(step))
        return GN_OK;
    GN_TRY(aliases_prepare(step));
    struct gni_rule_row row = gni_rule_row(step->rule, step->details);
    if (row.call == NULL)
        return gni_error(GN_ERROR_UNSUPPORTED, "%s has no gradient", step->name);
    struct gni_graph_node *node;
    int saved_most = step->input_count + step->result_count;
    row.saves = gni_rule_saves(step->rule, step->details, row.saves, inputs_needed(step));
    if (row.saves == 0 && row.saves_result == 0)
        saved_most = 0;
    GN_TRY(node_create(step, saved_most + saved_count, &node));
    if (step->rule == GNI_RULE_CUSTOM)
        node->name = (const char *)((const gn_custom_gradient *)node->details + 1);
    node_list(node);
    gn_status status = stream_keep(node);
    if (status == GN_OK)
        status = values_save(node, step, &row);
    for (int i = 0; i < saved_count && status == GN_OK; i++)
        status = gni_value_save(node, saved[i], place_find(step, saved[i]));
    if (status == GN_OK) {
        edges_set(node, step);
        status = results_attach(node, step);
    }
    node->is_recorded = status == GN_OK;
    gni_graph_node_release(node); /* the results hold it */
    return status;
}

static gn_status step_record(const struct gni_tape_step *step)
{
    return gni_step_record(step, 0, NULL);
}

/* ---- leaves ---------------------------------------------------------------------------------- */

bool gn_tensor_requires_gradient(const gn_tensor *tensor)
{
    return tensor != NULL && gni_dtype_is_floating(tensor->dtype) && gni_has_gradient(tensor);
}

bool gn_tensor_is_leaf(const gn_tensor *tensor)
{
    if (tensor == NULL || tensor->gradient == NULL)
        return tensor != NULL && !gn_tensor_requires_gradient(tensor);
    return gni_record_of(tensor)->node->rule == GNI_RULE_ACCUMULATE;
}

const char *gn_tensor_get_operation(const gn_tensor *tensor)
{
    if (tensor != NULL && tensor->gradient == NULL && gni_tensor_was_rewritten(tensor))
        return "view";
    return gn_tensor_is_leaf(tensor) || tensor == NULL ? NULL : gni_record_of(tensor)->node->name;
}

static gn_status leaf_make(gn_tensor *tensor)
{
    struct gni_graph_node *node;
    const struct gni_tape_step step = {
        .rule = GNI_RULE_ACCUMULATE, .name = "leaf", .result_count = 1, .results = &tensor};
    GN_TRY(node_create(&step, 0, &node));
    gn_status status = gni_attach(tensor, node, 0);
    if (status == GN_OK)
        record_keep(gni_record_of(tensor));
    gni_graph_node_release(node);
    struct gni_storage *storage = gni_tensor_storage(tensor);
    if (status == GN_OK && storage != NULL)
        atomic_store_explicit(&storage->is_lasting, true, memory_order_relaxed);
    bool has_aliases = storage != NULL && (uint32_t)atomic_load(&storage->references) > 1;
    if (status == GN_OK && has_aliases && (status = gni_aliases_begin(tensor)) != GN_OK)
        tensor_forget(tensor);
    if (status == GN_OK) {
        gni_record_of(tensor)->gradient = tensor->idle_gradient;
        tensor->idle_gradient = NULL;
    }
    return status;
}

/* The tensor requires no gradient any more, and keeps the one that it has: TA4. */
static void record_end(gn_tensor *tensor)
{
    struct gni_record *record = gni_record_of(tensor);
    gni_lock_take(&record->node->lock);
    gn_tensor *gradient = record->gradient;
    record->gradient = NULL;
    gni_lock_give(&record->node->lock);
    tensor_forget(tensor);
    if (gradient == NULL)
        return;
    gn_tensor_release(tensor->idle_gradient);
    tensor->idle_gradient = gradient;
}

/* Whether it looks as the gradient of a tensor must. */
static gn_status gradient_check(const gn_tensor *tensor, const gn_tensor *gradient)
{
    if (gradient->dtype == tensor->dtype && gradient->device == tensor->device &&
        gni_shape_is_equal(gradient->ndim, gradient->sizes, tensor->ndim, tensor->sizes))
        return GN_OK;
    return gni_error(
        GN_ERROR_INVALID_VALUE,
        "the gradient of a tensor of %s and shape %s is no tensor of %s and "
        "shape %s",
        gni_dtypes[tensor->dtype].name, gni_shape_text(tensor->ndim, tensor->sizes).text,
        gni_dtypes[gradient->dtype].name, gni_shape_text(gradient->ndim, gradient->sizes).text);
}

gn_status gn_tensor_set_requires_gradient(gn_tensor *tensor, bool is_required)
{
    GN_CHECK_ARGUMENT(tensor != NULL, "tensor must not be NULL");
    if (!gn_tensor_is_leaf(tensor))
        return is_required ? GN_OK
                           : gni_error(GN_ERROR_INVALID_VALUE,
                                       "the tensor is the result of %s and needs a gradient: "
                                       "use detach()",
                                       gn_tensor_get_operation(tensor));
    if (is_required == gn_tensor_requires_gradient(tensor))
        return GN_OK;
    if (!is_required) {
        record_end(tensor);
        gni_aliases_forget(tensor);
        return GN_OK;
    }
    if (gni_dtypes[tensor->dtype].kind != GNI_KIND_FLOATING)
        return gni_error(GN_ERROR_TYPE, "a tensor of %s has no gradient: only floating types have",
                         gni_dtypes[tensor->dtype].name);
    if (tensor->idle_gradient != NULL)
        GN_TRY(gradient_check(tensor, tensor->idle_gradient));
    return leaf_make(tensor);
}

gn_status gn_tensor_get_gradient(gn_tensor *tensor, gn_tensor **gradient)
{
    GN_CHECK_ARGUMENT(tensor != NULL && gradient != NULL, "tensor and gradient must not be NULL");
    struct gni_record *record = gni_record_of(tensor);
    *gradient = NULL;
    if (record == NULL) {
        if (tensor->idle_gradient != NULL)
            gn_tensor_retain(tensor->idle_gradient);
        *gradient = tensor->idle_gradient;
        return GN_OK;
    }
    gni_lock_take(&record->node->lock);
    if (record->gradient != NULL) {
        gn_tensor_retain(record->gradient);
        *gradient = record->gradient;
    }
    gni_lock_give(&record->node->lock);
    return GN_OK;
}

/* The node of a leaf describes its gradients: they will be as another tensor is. */
static gn_status leaf_adapt(gn_tensor *tensor, const gn_tensor *other)
{
    struct gni_record *record = gni_record_of(tensor);
    bool is_same = tensor->dtype == other->dtype && tensor->device == other->device &&
                   gni_shape_is_equal(tensor->ndim, tensor->sizes, other->ndim, other->sizes);
    if (is_same)
        return GN_OK;
    if (record->node->rule != GNI_RULE_ACCUMULATE || tensor->ndim != other->ndim ||
        gni_dtypes[other->dtype].kind != GNI_KIND_FLOATING)
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "a tensor that needs a gradient can become one of another dtype, device "
                         "or shape if it is a leaf, the new one has as many dimensions and its "
                         "type is floating: use detach() first");
    gni_lock_take(&record->node->lock);
    bool has_gradient = record->gradient != NULL || record->place != NULL;
    struct gni_like *like = &record->node->results[0];
    if (!has_gradient) {
        like->dtype = other->dtype;
        like->device = other->device;
        memcpy((int64_t *)(uintptr_t)like->sizes, other->sizes,
               sizeof *other->sizes * (size_t)other->ndim);
    }
    gni_lock_give(&record->node->lock);
    return !has_gradient ? GN_OK
                         : gni_error(GN_ERROR_INVALID_VALUE,
                                     "the tensor has a gradient, which would not fit one of "
                                     "another dtype, device or shape: set grad to None first");
}

gn_status gn_tensor_set_gradient(gn_tensor *tensor, gn_tensor *gradient)
{
    GN_CHECK_ARGUMENT(tensor != NULL, "tensor must not be NULL");
    GN_CHECK_ARGUMENT(tensor != gradient, "a tensor cannot be its own gradient");
    struct gni_record *record = gni_record_of(tensor);
    if (record != NULL && !record->is_kept)
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "only a leaf, or a tensor that retains its gradient, can be given one");
    if (gradient != NULL) {
        GN_TRY(gradient_check(tensor, gradient));
        gn_tensor_retain(gradient);
    }
    if (record == NULL) {
        gn_tensor_release(tensor->idle_gradient);
        tensor->idle_gradient = gradient;
        return GN_OK;
    }
    gni_lock_take(&record->node->lock);
    gn_tensor *before = record->gradient;
    record->gradient = gradient;
    gni_lock_give(&record->node->lock);
    gn_tensor_release(before);
    return GN_OK;
}

gn_status gn_tensor_retain_gradient(gn_tensor *tensor)
{
    GN_CHECK_ARGUMENT(tensor != NULL, "tensor must not be NULL");
    GN_TRY(gni_aliases_refresh(tensor));
    if (gni_record_of(tensor) == NULL)
        return gni_error(GN_ERROR_INVALID_VALUE, "the tensor needs no gradient, and has none");
    record_keep(gni_record_of(tensor));
    return GN_OK;
}

bool gn_tensor_retains_gradient(const gn_tensor *tensor)
{
    const struct gni_record *record = tensor != NULL ? gni_record_of(tensor) : NULL;
    return record != NULL && record->is_kept && record->node->rule != GNI_RULE_ACCUMULATE;
}

gn_status gn_tensor_set_gradient_place(gn_tensor *tensor, gn_tensor *place)
{
    GN_CHECK_ARGUMENT(tensor != NULL, "tensor must not be NULL");
    struct gni_record *record = gni_record_of(tensor);
    if (record == NULL || record->node->rule != GNI_RULE_ACCUMULATE)
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "only the gradient of a leaf that needs one has a place");
    if (place != NULL) {
        GN_TRY(gradient_check(tensor, place));
        if (gn_tensor_is_read_only(place) || place->gradient != NULL)
            return gni_error(GN_ERROR_INVALID_VALUE,
                             "the place of a gradient is memory that can be written to, and needs "
                             "no gradient itself");
        GN_TRY(gni_tensor_flush(place));
        gn_tensor_retain(place);
    }
    gni_lock_take(&record->node->lock);
    gn_tensor *before = record->place;
    record->place = place;
    gni_lock_give(&record->node->lock);
    gn_tensor_release(before);
    return GN_OK;
}

gn_status gn_tensor_detach(gn_tensor *tensor, gn_tensor **detached)
{
    GN_CHECK_ARGUMENT(tensor != NULL && detached != NULL, "tensor and detached must not be NULL");
    gn_tensor *made;
    GN_TRY(gni_detach(tensor, &made));
    gn_status status = gni_aliases_own(made);
    if (status == GN_OK)
        *detached = made;
    else
        gn_tensor_release(made);
    return status;
}

gn_status gn_tensor_forget_gradient(gn_tensor *tensor)
{
    GN_CHECK_ARGUMENT(tensor != NULL, "tensor must not be NULL");
    GN_TRY(gni_tensor_flush(tensor));
    if (gni_tensor_aliases(tensor) != NULL && !gni_is_alone(tensor))
        return gni_error(GN_ERROR_UNSUPPORTED,
                         "other tensors are views of the same memory: use detach()");
    if (tensor->gradient != NULL)
        record_end(tensor);
    if (gni_tensor_aliases(tensor) != NULL)
        gni_aliases_end(tensor);
    return GN_OK;
}

bool gn_gradients_are_on(void)
{
    return !gni_tape_is_paused;
}

bool gn_set_gradients(bool is_on)
{
    bool was_on = !gni_tape_is_paused;
    gni_tape_is_paused = !is_on;
    return was_on;
}

/* ---- writing in place ---------------------------------------------------------------------------- */

static void record_set(gn_tensor *tensor, struct gni_record *record)
{
    tensor->gradient = record;
    if (record == NULL)
        return;
    gni_lock_take(&record->node->lock);
    record->tensor = tensor;
    gni_lock_give(&record->node->lock);
}

/* A tensor that retains its gradient goes on to: it will be that of what it is now. */
void gni_records_exchange(gn_tensor *from, gn_tensor *to)
{
    struct gni_record *record = gni_record_of(from), *before = gni_record_of(to);
    bool is_kept = gn_tensor_retains_gradient(to);
    record_set(to, record);
    record_set(from, before);
    if (is_kept)
        record_unkeep(before);
    if (is_kept && record != NULL)
        record_keep(record);
}

static gn_status value_keep(gn_tensor *tensor, gn_tensor **kept)
{
    const struct gni_record *record = gni_record_of(tensor);
    bool was_on = gn_set_gradients(false);
    gn_status status = gn_cast(tensor, tensor->dtype, kept);
    (void)gn_set_gradients(was_on);
    if (status != GN_OK || record == NULL)
        return status;
    status = gni_attach(*kept, record->node, record->number);
    if (status != GN_OK)
        gn_tensor_release(*kept);
    return status;
}

static gn_status write_record(const struct gni_tape_step *step)
{
    gn_tensor *target = step->inputs[0].tensor, *changed;
    struct gni_tape_step own = *step;
    GN_TRY(gni_detach(target, &changed));
    own.results = &changed;
    own.result_count = 1;
    gn_status status = step_record(&own);
    if (status == GN_OK)
        status = gni_aliases_write_end(target, changed);
    gn_tensor_release(changed);
    return status;
}

/* ---- looking at the graph -------------------------------------------------------------------- */

gn_status gn_tensor_get_node(gn_tensor *tensor, gn_gradient_node **node)
{
    GN_CHECK_ARGUMENT(tensor != NULL && node != NULL, "tensor and node must not be NULL");
    GN_TRY(gni_aliases_refresh(tensor));
    const struct gni_record *record = gni_record_of(tensor);
    *node = record != NULL ? record->node : NULL;
    if (*node != NULL)
        gni_graph_node_retain(*node);
    return GN_OK;
}

void gn_gradient_node_retain(gn_gradient_node *node)
{
    gni_graph_node_retain(node);
}

void gn_gradient_node_release(gn_gradient_node *node)
{
    if (node != NULL)
        gni_graph_node_release(node);
}

const char *gn_gradient_node_get_name(const gn_gradient_node *node)
{
    return node->name;
}

uint64_t gn_gradient_node_get_sequence(const gn_gradient_node *node)
{
    return node->sequence;
}

uint32_t gn_gradient_node_get_site(const gn_gradient_node *node)
{
    return node->site;
}

int gn_gradient_node_get_count(const gn_gradient_node *node)
{
    return node->edge_count;
}

void gn_gradient_node_get_next(const gn_gradient_node *node, int input, gn_gradient_node **next,
                               int *number)
{
    *next = node->edges[input].node;
    *number = node->edges[input].number;
}

gn_tensor *gn_gradient_node_get_leaf(gn_gradient_node *node)
{
    gn_tensor *leaf = NULL;
    if (node->rule != GNI_RULE_ACCUMULATE)
        return NULL;
    gni_lock_take(&node->lock);
    if (node->kept != NULL)
        leaf = gni_record_tensor(node->kept);
    gni_lock_give(&node->lock);
    return leaf;
}

/* A new reference to the listed node behind another one, which is released, or to the first; NULL: there is none. */
static struct gni_graph_node *listed_next(struct gni_graph_node *node)
{
    struct gni_graph_node *found = NULL;
    gni_lock_take(&list_lock);
    struct gni_list *link = node != NULL ? node->listed.next : listed.next;
    for (; link != &listed && found == NULL; link = link->next) {
        struct gni_graph_node *one = gni_container_of(link, struct gni_graph_node, listed);
        size_t references = atomic_load(&one->references);
        while (references > 0 && found == NULL)
            if (atomic_compare_exchange_weak(&one->references, &references, references + 1))
                found = one;
    }
    gni_lock_give(&list_lock);
    gn_gradient_node_release(node);
    return found;
}

void gn_gradient_nodes_visit(void (*visit)(void *context, gn_gradient_node *node), void *context)
{
    for (struct gni_graph_node *node = listed_next(NULL); node != NULL; node = listed_next(node))
        visit(context, node);
}

/* ---- fork() ---------------------------------------------------------------------------------- */

static void fork_prepare(void)
{
    gni_lock_fork_take(&list_lock);
    gni_aliases_fork_take();
}

static void fork_done(bool is_child)
{
    gni_aliases_fork_give();
    gni_lock_fork_give(&list_lock);
    if (is_child)
        gni_kept_forget_threads();
}

static const struct gni_fork_handlers gradients_fork = {.prepare = fork_prepare, .done = fork_done};

/* ---- what the tensor layer is offered ----------------------------------------------------------- */

__attribute__((constructor)) void gni_tape_fill(void);

void gni_tape_fill(void)
{
    gni_fork_register(GNI_FORK_GRADIENTS, &gradients_fork);
    gni_tape = (struct gni_tape){.record = step_record,
                                 .forget = tensor_forget,
                                 .write_check = gni_aliases_write_begin,
                                 .rewrite = gni_aliases_write_end,
                                 .keep = value_keep,
                                 .record_write = write_record,
                                 .aliases_release = gni_aliases_release,
                                 .adapt = leaf_adapt};
}
