/*
 * rules_shapes.c: the gradients of operations that move elements and do not change them.
 */
#include "autograd/autograd.h"

#include <string.h>

/* What gives the elements back, in whatever order they are, is what the caller does with every gradient. */
void gni_cast_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
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

/* The caller sums over what was broadcast. */
void gni_expand_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    gradients[0] = frame->given[0];
}

void gni_flip_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    gn_tensor *flipped = NULL;
    gn_status status = gn_flip(frame->given[0], *(const uint32_t *)frame->node->details, &flipped);
    gradients[0] = gni_scope_keep(frame->scope, status, flipped);
}

/* ---- views of some elements -------------------------------------------------------------------- */

/* 0 but for the elements of a view, which `x` has; x[...] is what gives them back. */
static gn_status spread_make(gn_tensor *x, const struct gni_strided_details *view,
                             const struct gni_like *like, gn_tensor **result)
{
    const gn_scalar zero = {.kind = GN_INT64};
    gn_tensor *whole, *part;
    GN_TRY(gn_full(zero, x->dtype, like->ndim, like->sizes, x->device, &whole));
    gn_status status =
        gni_tensor_alias_as(whole, view->offset, view->ndim, view->sizes, view->strides, &part);
    if (status == GN_OK) {
        status = gn_assign(part, (gn_operand){.tensor = x});
        gn_tensor_release(part);
    }
    if (status == GN_OK)
        *result = whole;
    else
        gn_tensor_release(whole);
    return status;
}

static gn_tensor *spread(struct gni_scope *scope, gn_tensor *x,
                         const struct gni_strided_details *view, const struct gni_like *like)
{
    gn_tensor *made = NULL;
    bool is_taped = gni_tape_enter(x);
    gn_status status = spread_make(x, view, like, &made);
    if (is_taped)
        status =
            gni_tape_leave_one(status, GNI_RULE_SPREAD, "spread", x, &made, view, sizeof *view);
    return gni_scope_keep(scope, status, made);
}

/* A view of the elements of a contiguous copy. */
static gn_tensor *view_take(struct gni_scope *scope, gn_tensor *x,
                            const struct gni_strided_details *view)
{
    gn_tensor *whole = x->is_contiguous ? x : gni_clone(scope, x), *made = NULL;
    if (whole == NULL)
        return NULL;
    bool is_taped = gni_tape_enter(whole);
    gn_status status =
        gni_tensor_alias_as(whole, view->offset, view->ndim, view->sizes, view->strides, &made);
    if (is_taped)
        status =
            gni_tape_leave_one(status, GNI_RULE_STRIDED, "slice", whole, &made, view, sizeof *view);
    return gni_scope_keep(scope, status, made);
}

void gni_strided_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    gradients[0] = spread(frame->scope, frame->given[0], frame->node->details, frame->likes[0]);
}

void gni_spread_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    gradients[0] = view_take(frame->scope, frame->given[0], frame->node->details);
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
