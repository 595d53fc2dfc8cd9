/*
 * rules_places.c: the gradients of operations that take elements by index tensors.
 *
 * Taking elements and adding them to a tensor of 0 are each other's gradients.
 */
#include "autograd/autograd.h"
#include "ops/row_sums.h"

#include <stddef.h>

/* The index tensors of a node: all inputs but the first one or two. */
struct indices {
    int count;
    gn_tensor *tensors[GN_KEYS_MAX];
};

static struct indices indices_of(const struct gni_rule_frame *frame, int first)
{
    struct indices indices = {.count = frame->node->edge_count - first};
    for (int i = 0; i < indices.count; i++)
        indices.tensors[i] = frame->inputs[first + i].tensor;
    return indices;
}

/* The parts of a key with their tensors. */
static void keys_fill(const struct gni_places_details *places, const struct indices *indices,
                      gn_key *keys)
{
    int next = 0;
    for (int i = 0; i < places->key_count; i++) {
        keys[i] = places->keys[i];
        if (keys[i].kind == GN_KEY_TENSOR)
            keys[i].tensor = indices->tensors[next++];
    }
}

static gn_status places_take(gn_tensor *x, const struct gni_places_details *places,
                             const struct indices *indices, gn_tensor *index, gn_tensor **made)
{
    gn_key keys[GN_KEYS_MAX];
    if (places->kind == GNI_PLACES_KEYS) {
        keys_fill(places, indices, keys);
        return gn_index_get(x, places->key_count, keys, made);
    }
    return places->kind == GNI_PLACES_SELECT ? gn_index_select(x, places->dimension, index, made)
                                             : gn_gather(x, places->dimension, index, made);
}

static gn_tensor *places_get(struct gni_scope *scope, gn_tensor *x,
                             const struct gni_places_details *places, const struct indices *indices)
{
    gn_tensor *made = NULL, *index = indices->tensors[0];
    bool is_reduced = places->kind == GNI_PLACES_REDUCED && x->ndim > 0;
    if (is_reduced)
        index = gni_unsqueeze(scope, index, places->dimension);
    if (!gni_scope_is_ok(scope))
        return NULL;
    gn_status status = places_take(x, places, indices, index, &made);
    made = gni_scope_keep(scope, status, made);
    return made != NULL && is_reduced ? gni_squeeze(scope, made, places->dimension) : made;
}

/* Writes a value, which has no tensor if it is a number, to the places of a tensor, or adds it there. */
static gn_status places_put(gn_tensor *to, gn_operand value, bool is_added,
                            const struct gni_places_details *places, const struct indices *indices)
{
    gn_key keys[GN_KEYS_MAX];
    gn_tensor *index = indices->tensors[0];
    int dim = places->dimension;
    if (places->kind == GNI_PLACES_KEYS) {
        keys_fill(places, indices, keys);
        return gn_index_set(to, places->key_count, keys, value, is_added);
    }
    if (places->kind == GNI_PLACES_SELECT)
        return gn_index_put(to, dim, index, value, is_added);
    if (places->kind == GNI_PLACES_GATHER || to->ndim == 0)
        return gn_scatter(to, dim, index, value, is_added);
    struct gni_scope scope = {0};
    if (value.tensor != NULL)
        value.tensor = gni_unsqueeze(&scope, value.tensor, dim);
    index = gni_scope_is_ok(&scope) ? gni_unsqueeze(&scope, index, dim) : NULL;
    gn_status status = scope.status;
    if (status == GN_OK)
        status = gn_scatter(to, dim, index, value, is_added);
    gn_status closed = gni_scope_close(&scope);
    return status != GN_OK ? status : closed;
}

static gn_status back_make(gn_tensor *x, const struct gni_places_details *places,
                           const struct indices *indices, const struct gni_like *like,
                           gn_tensor **result)
{
    const gn_scalar zero = {.kind = GN_INT64};
    gn_tensor *made;
    GN_TRY(gn_full(zero, x->dtype, like->ndim, like->sizes, x->device, &made));
    gn_status status = places_put(made, (gn_operand){.tensor = x}, true, places, indices);
    if (status == GN_OK)
        *result = made;
    else
        gn_tensor_release(made);
    return status;
}

gn_status gni_places_add(gn_tensor *to, gn_tensor *x, const struct gni_places_details *places,
                         int count, gn_tensor *const *tensors)
{
    struct indices indices = {.count = count};
    for (int i = 0; i < count; i++)
        indices.tensors[i] = tensors[i];
    return places_put(to, (gn_operand){.tensor = x}, true, places, &indices);
}

void gni_places_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    const struct gni_places_details *places = frame->node->details;
    struct indices indices = indices_of(frame, 1);
    gn_operand inputs[1 + GN_KEYS_MAX] = {{.tensor = frame->given[0]}};
    for (int i = 0; i < indices.count; i++)
        inputs[1 + i].tensor = indices.tensors[i];
    gn_tensor *made = NULL;
    bool is_taped = gni_tape_enter(frame->given[0]);
    gn_status status = back_make(frame->given[0], places, &indices, frame->likes[0], &made);
    if (is_taped)
        status = gni_tape_leave(status,
                                &(struct gni_tape_step){.rule = GNI_RULE_PLACES_BACK,
                                                        .name = "index_backward",
                                                        .input_count = 1 + indices.count,
                                                        .inputs = inputs,
                                                        .result_count = 1,
                                                        .results = &made,
                                                        .details = places,
                                                        .detail_bytes = gni_places_bytes(places)});
    gradients[0] = gni_scope_keep(frame->scope, status, made);
}

void gni_places_back_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    struct indices indices = indices_of(frame, 1);
    gradients[0] = places_get(frame->scope, frame->given[0], frame->node->details, &indices);
}

/* A copy of x with 0 at the places: x with a number put there. */
static gn_tensor *places_clear(const struct gni_rule_frame *frame, gn_tensor *x,
                               const struct indices *indices)
{
    const struct gni_places_details *places = frame->node->details;
    const gn_operand zero = {.scalar = {.kind = GN_INT64}};
    gn_operand inputs[2 + GN_KEYS_MAX] = {{.tensor = x}, zero};
    for (int i = 0; i < indices->count; i++)
        inputs[2 + i].tensor = indices->tensors[i];
    gn_tensor *made = NULL;
    bool is_taped = gni_tape_enter(x);
    gn_status status = gn_cast(x, x->dtype, &made);
    if (status == GN_OK) {
        status = places_put(made, zero, false, places, indices);
        if (status != GN_OK) {
            gn_tensor_release(made);
            made = NULL;
        }
    }
    if (is_taped)
        status = gni_tape_leave(status,
                                &(struct gni_tape_step){.rule = GNI_RULE_PUT,
                                                        .name = "index_put",
                                                        .input_count = 2 + indices->count,
                                                        .inputs = inputs,
                                                        .result_count = 1,
                                                        .results = &made,
                                                        .details = places,
                                                        .detail_bytes = gni_places_bytes(places)});
    return gni_scope_keep(frame->scope, status, made);
}

/* The tensor gets what did not go to the value. */
void gni_put_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    const struct gni_places_details *places = frame->node->details;
    struct indices indices = indices_of(frame, 2);
    gn_tensor *given = frame->given[0];
    if ((frame->needed & 1) != 0)
        gradients[0] = places->is_accumulated ? given : places_clear(frame, given, &indices);
    if ((frame->needed & 2) != 0 && gni_scope_is_ok(frame->scope))
        gradients[1] = places_get(frame->scope, given, places, &indices);
}

/* ---- largest and smallest elements ------------------------------------------------------------- */

/* Where the rows themselves are the result: not where they were left out. */
static gn_tensor *rows_are_result(const struct gni_rule_frame *frame, gn_tensor *places)
{
    const struct gni_fold_details *details = frame->node->details;
    struct gni_scope *s = frame->scope;
    gn_tensor *rows = frame->inputs[0].tensor, *result = frame->results[0];
    gn_tensor *are_same = gni_binary(s, GN_OP_EQUAL, gni_of(rows), gni_of(result));
    if (details->has_self || !gni_scope_is_ok(s))
        return are_same;
    const gn_scalar yes = {.kind = GN_BOOL, .integer = 1};
    gn_tensor *are_own = gni_full(s, yes, GN_BOOL, rows->ndim, rows->sizes, rows->device);
    gni_index_put_at(s, are_own, places, (gn_operand){.scalar = {.kind = GN_BOOL}}, false);
    return gni_binary(s, GN_OP_LOGICAL_AND, gni_of(are_same), gni_of(are_own));
}

/* All that are equal to the result share its gradient. */
void gni_fold_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    struct gni_scope *s = frame->scope;
    gn_tensor *values = frame->inputs[1].tensor, *places = frame->inputs[2].tensor;
    gn_tensor *result = frame->results[0], *given = gni_wide(s, frame->given[0]);
    gn_tensor *taken = gni_index_select(s, result, 0, places);
    gn_tensor *are_values = gni_binary(s, GN_OP_EQUAL, gni_of(values), gni_of(taken));
    gn_tensor *are_rows = rows_are_result(frame, places);
    if (!gni_scope_is_ok(s))
        return;
    gn_dtype dtype = given->dtype;
    gn_tensor *counts = gni_cast(s, are_rows, dtype), *ones = gni_cast(s, are_values, dtype);
    if (gni_scope_is_ok(s))
        gni_index_put_at(s, counts, places, gni_of(ones), true);
    gn_tensor *share = gni_binary(s, GN_OP_DIVIDE, gni_of(given), gni_of(counts));
    if ((frame->needed & 1) != 0)
        gradients[0] = gni_where(s, are_rows, gni_of(share), gni_integer(0));
    if ((frame->needed & 2) != 0)
        gradients[1] =
            gni_where(s, are_values, gni_of(gni_index_select(s, share, 0, places)), gni_integer(0));
}

/* ---- sums of rows ------------------------------------------------------------------------------ */

/* Rows that are named; what stands for those that are left out is one of them. */
static gn_tensor *rows_named(struct gni_scope *s, gn_tensor *x, gn_tensor *rows)
{
    gn_tensor *named = gni_binary(s, GN_OP_MAXIMUM, gni_of(rows), gni_integer(0));
    return gni_wide(s, gni_index_select(s, x, 0, named));
}

/* The product of the row that a pair reads and the gradient of the one that it goes to: of its factor. */
static gn_tensor *factors_gradient(struct gni_scope *s, gn_tensor *source, gn_tensor *given,
                                   gn_tensor *from, gn_tensor *to)
{
    gn_tensor *read = rows_named(s, source, from), *written = rows_named(s, given, to);
    gn_tensor *products = gni_binary(s, GN_OP_MULTIPLY, gni_of(read), gni_of(written));
    gn_tensor *sums = gni_reduce(s, GN_REDUCE_SUM, products, 2, false);
    gn_tensor *least = gni_binary(s, GN_OP_MINIMUM, gni_of(from), gni_of(to));
    gn_tensor *is_counted = gni_binary(s, GN_OP_GREATER_EQUAL, gni_of(least), gni_integer(0));
    return gni_where(s, is_counted, gni_of(sums), gni_integer(0));
}

void gni_row_sums_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    gn_tensor *given = frame->given[0], *factors = frame->inputs[1].tensor, *made = NULL;
    gn_tensor *from = frame->inputs[2].tensor, *to = frame->inputs[3].tensor;
    if ((frame->needed & 1) != 0) {
        gn_status status = gni_row_sums(given, factors, to, from, frame->likes[0]->sizes[0], &made);
        gradients[0] = gni_scope_keep(frame->scope, status, made);
    }
    if ((frame->needed & 2) != 0 && gni_scope_is_ok(frame->scope))
        gradients[1] = factors_gradient(frame->scope, frame->inputs[0].tensor, given, from, to);
}
