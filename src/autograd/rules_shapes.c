/*
 * rules_shapes.c: the gradients of operations that move elements and do not change them.
 */
#include "autograd/autograd.h"

#include <string.h>

/* Of a cast, a copy to another device, and a tensor that is expanded: the caller sums what was broadcast, and converts
 * the type and the device. */
void gni_same_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    gradients[0] = frame->given[0];
}

void gni_reshape_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    gradients[0] =
        gni_reshape(frame->scope, frame->given[0], frame->likes[0]->ndim, frame->likes[0]->sizes);
}

void gni_permute_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    const int *order = frame->node->details;
    int back[GN_DIMENSIONS_MAX];
    for (int i = 0; i < frame->given[0]->ndim; i++)
        back[order[i]] = i;
    gradients[0] = gni_permute(frame->scope, frame->given[0], back);
}

void gni_flip_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    gn_tensor *flipped = NULL;
    gn_status status = gn_flip(frame->given[0], *(const uint32_t *)frame->node->details, &flipped);
    gradients[0] = gni_scope_keep(frame->scope, status, flipped);
}

/* ---- views ------------------------------------------------------------------------------------- */

/* A view whose elements are apart: those that a stride of 0 repeats are summed. */
static gn_tensor *repeated_sum(struct gni_scope *scope, gn_tensor *x,
                               struct gni_strided_details *view)
{
    uint32_t dims = 0;
    for (int i = 0; i < view->ndim; i++)
        if (view->strides[i] == 0 && view->sizes[i] > 1) {
            dims |= UINT32_C(1) << i;
            view->sizes[i] = 1;
        }
    return dims != 0 ? gni_reduce(scope, GN_REDUCE_SUM, x, dims, true) : x;
}

/* Memory as that of the tensor which the view belongs to, of 0: `*origin` is where its first element is. */
static gn_status room_make(const gn_tensor *x, const struct gni_strided_details *view,
                           const struct gni_like *like, gn_tensor **room, int64_t *origin)
{
    const gn_scalar zero = {.kind = GN_INT64};
    int64_t first = 0, last = 0, count = 1;
    for (int i = 0; i < like->ndim; i++)
        count *= like->sizes[i];
    if (count > 0)
        gni_strides_extent(like->ndim, like->sizes, view->own, &first, &last);
    *origin = -first;
    return gn_full(zero, x->dtype, 1, (int64_t[]){last - first + 1}, x->device, room);
}

/* The elements of a view go to their places in that memory. Windows that overlap are added one element at a time. */
static gn_status room_fill(gn_tensor *room, int64_t origin, gn_tensor *x,
                           const struct gni_strided_details *view)
{
    gn_tensor *part = NULL, *numbers = NULL, *places = NULL;
    const gn_scalar zero = {.kind = GN_INT64}, one = {.kind = GN_INT64, .integer = 1};
    if (!gni_strides_overlap(view->ndim, view->sizes, view->strides)) {
        GN_TRY(gni_tensor_alias_as(room, origin + view->offset, view->ndim, view->sizes,
                                   view->strides, &part));
        gn_status status = gn_assign(part, (gn_operand){.tensor = x});
        gn_tensor_release(part);
        return status;
    }
    GN_TRY(gn_range(zero, one, room->count, GN_INT64, room->device, &numbers));
    gn_status status = gni_tensor_alias_as(numbers, origin + view->offset, view->ndim, view->sizes,
                                           view->strides, &places);
    if (status == GN_OK)
        status = gn_index_set(room, 1, &(gn_key){.kind = GN_KEY_TENSOR, .tensor = places},
                              (gn_operand){.tensor = x}, true);
    gn_tensor_release(places);
    gn_tensor_release(numbers);
    return status;
}

/* 0 but for the elements of a view, which `x` has. */
static gn_status spread_make(gn_tensor *x, const struct gni_strided_details *view,
                             const struct gni_like *like, gn_tensor **result)
{
    gn_tensor *room;
    int64_t origin;
    GN_TRY(room_make(x, view, like, &room, &origin));
    gn_status status = x->count > 0 ? room_fill(room, origin, x, view) : GN_OK;
    if (status == GN_OK)
        status = gni_tensor_alias_as(room, origin, like->ndim, like->sizes, view->own, result);
    gn_tensor_release(room);
    return status;
}

/* The elements of the view get its gradient, the others 0. */
void gni_strided_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    struct gni_strided_details view = *(const struct gni_strided_details *)frame->node->details;
    gn_tensor *made = NULL, *x = repeated_sum(frame->scope, frame->given[0], &view);
    if (!gni_scope_is_ok(frame->scope))
        return;
    bool is_taped = gni_tape_enter(x);
    gn_status status = spread_make(x, &view, frame->likes[0], &made);
    if (is_taped)
        status = gni_tape_leave_one(status, GNI_RULE_SPREAD, "view_backward", x, &made, &view,
                                    sizeof view);
    gradients[0] = gni_scope_keep(frame->scope, status, made);
}

/* A gradient in memory with the strides that a view counts in: itself, or a copy. A new reference. */
static gn_status laid_out(gn_tensor *g, const int64_t *own, const struct gni_like *like,
                          gn_tensor **made)
{
    bool is_same = true;
    for (int i = 0; i < like->ndim; i++)
        is_same &= like->sizes[i] == 1 || g->strides[i] == own[i];
    if (is_same) {
        gn_tensor_retain(g);
        *made = g;
        return GN_OK;
    }
    struct gni_strided_details all = {.ndim = like->ndim};
    memcpy(all.own, own, sizeof all.own);
    memcpy(all.sizes, like->sizes, sizeof *all.sizes * (size_t)like->ndim);
    memcpy(all.strides, own, sizeof all.strides);
    return spread_make(g, &all, like, made);
}

/* The gradient's elements at a view, as a view: the gradient is copied first where its strides are others. */
static void view_gradient(const struct gni_rule_frame *frame, gn_tensor **gradient)
{
    const struct gni_strided_details *view = frame->node->details;
    gn_tensor *given = frame->given[0], *whole = NULL, *made = NULL;
    bool is_taped = gni_tape_enter(given);
    gn_status status = gni_tensor_flush(given);
    if (status == GN_OK)
        status = laid_out(given, view->own, &frame->node->results[0], &whole);
    if (status == GN_OK)
        status =
            gni_tensor_alias_as(whole, view->offset, view->ndim, view->sizes, view->strides, &made);
    gn_tensor_release(whole);
    if (is_taped)
        status =
            gni_tape_leave_one(status, GNI_RULE_STRIDED, "view", given, &made, view, sizeof *view);
    *gradient = gni_scope_keep(frame->scope, status, made);
}

void gni_spread_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    view_gradient(frame, &gradients[0]);
}

/* A copy of g with 0 for the elements of a view. */
static gn_status cleared_make(gn_tensor *g, const struct gni_strided_details *view,
                              const struct gni_like *like, gn_tensor **made)
{
    const gn_operand zero = {.scalar = {.kind = GN_INT64}};
    gn_tensor *copy = NULL, *whole = NULL, *part = NULL;
    GN_TRY(gn_cast(g, g->dtype, &copy));
    gn_status status = gni_tensor_flush(copy);
    if (status == GN_OK)
        status = laid_out(copy, view->own, like, &whole);
    if (status == GN_OK)
        status =
            gni_tensor_alias_as(whole, view->offset, view->ndim, view->sizes, view->strides, &part);
    if (status == GN_OK)
        status = gn_assign(part, zero);
    gn_tensor_release(part);
    gn_tensor_release(copy);
    if (status == GN_OK)
        *made = whole;
    else
        gn_tensor_release(whole);
    return status;
}

/* What was overwritten gets 0, and the value gets the gradient of the elements that it became. */
void gni_strided_put_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    const struct gni_strided_details *view = frame->node->details;
    const struct gni_like *like = &frame->node->results[0];
    gn_tensor *given = frame->given[0], *made = NULL;
    if ((frame->needed & 1) != 0) {
        const gn_operand inputs[] = {{.tensor = given}, {.scalar = {.kind = GN_INT64}}};
        bool is_taped = gni_tape_enter(given);
        gn_status status = cleared_make(given, view, like, &made);
        if (is_taped)
            status = gni_tape_leave(status, &(struct gni_tape_step){.rule = GNI_RULE_STRIDED_PUT,
                                                                    .name = "copy_slices",
                                                                    .input_count = 2,
                                                                    .inputs = inputs,
                                                                    .result_count = 1,
                                                                    .results = &made,
                                                                    .details = view,
                                                                    .detail_bytes = sizeof *view});
        gradients[0] = gni_scope_keep(frame->scope, status, made);
    }
    if ((frame->needed & 2) != 0 && gni_scope_is_ok(frame->scope))
        view_gradient(frame, &gradients[1]);
}

void gni_repeat_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    const struct gni_repeat_details *details = frame->node->details;
    const struct gni_like *like = frame->likes[0];
    int64_t sizes[GN_DIMENSIONS_MAX];
    int at = details->dimension;
    if (like->ndim == GN_DIMENSIONS_MAX) {
        gni_scope_fail(frame->scope, GN_ERROR_UNSUPPORTED,
                       "repeat_interleave of %d dimensions has no gradient", like->ndim);
        return;
    }
    for (int i = 0; i <= like->ndim; i++)
        sizes[i] = i <= at ? like->sizes[i] : i == at + 1 ? details->count : like->sizes[i - 1];
    gn_tensor *wide = gni_reshape(frame->scope, frame->given[0], like->ndim + 1, sizes);
    if (wide != NULL)
        gradients[0] =
            gni_reduce(frame->scope, GN_REDUCE_SUM, wide, UINT32_C(1) << (at + 1), false);
}

/* ---- several tensors ----------------------------------------------------------------------------- */

/* Each gets the part that it was; `details` has the dimension, and the size of each in it. */
void gni_cat_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    const int64_t *details = frame->node->details;
    int64_t start = 0;
    for (int i = 0; i < frame->node->edge_count; i++) {
        if (frame->likes[i] != NULL)
            gradients[i] =
                gni_narrow(frame->scope, frame->given[0], (int)details[0], start, details[1 + i]);
        start += details[1 + i];
    }
}

/* The gradients of the parts side by side, 0 for those that have none. */
void gni_parts_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    struct gni_scope *s = frame->scope;
    const struct gni_parts_details *details = frame->node->details;
    int count = frame->node->result_count;
    gn_tensor **parts = gni_scope_list(s, count);
    for (int i = 0; i < count && gni_scope_is_ok(s); i++) {
        const struct gni_like *like = &frame->node->results[i];
        const gn_scalar zero = {.kind = GN_INT64};
        parts[i] = frame->given[i];
        if (parts[i] == NULL)
            parts[i] = gni_full(s, zero, like->dtype, like->ndim, like->sizes, like->device);
        if (gni_scope_is_ok(s) && details->is_unbound)
            parts[i] = gni_unsqueeze(s, parts[i], details->dimension);
    }
    if (!gni_scope_is_ok(s))
        return;
    gn_tensor *whole = gni_cat(s, count, parts, details->dimension);
    for (int i = 0; i < frame->node->edge_count; i++) /* addends have the same */
        if ((frame->needed >> i & 1) != 0)
            gradients[i] = whole;
}
