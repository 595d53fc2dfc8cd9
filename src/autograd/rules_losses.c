/*
 * rules_losses.c: the gradients of losses that have a rule of their own: src/ops/losses.c
 */
#include "autograd/autograd.h"

/* ---- the cross entropy with classes ------------------------------------------------------------ */

/* What the gradient of a row's loss is multiplied by at its own class: (1 - smoothing) w[t]. */
static gn_operand own_share(const struct gni_rule_frame *frame)
{
    const struct gni_class_loss_details *details = frame->node->details;
    gn_tensor *weight = frame->inputs[2].tensor;
    gn_operand share = gni_floating(1 - details->smoothing);
    if (weight == NULL)
        return share;
    gn_tensor *own = gni_index_at(frame->scope, weight, frame->inputs[1].tensor);
    return gni_of(gni_binary(frame->scope, GN_OP_MULTIPLY, gni_of(own), share));
}

/* And at every class: smoothing / C * w, an operand that broadcasts against the classes. */
static gn_operand class_share(const struct gni_rule_frame *frame, int64_t classes)
{
    const struct gni_class_loss_details *details = frame->node->details;
    gn_tensor *weight = frame->inputs[2].tensor;
    gn_operand share = gni_floating(details->smoothing / (double)classes);
    return weight == NULL ? share
                          : gni_of(gni_binary(frame->scope, GN_OP_MULTIPLY, gni_of(weight), share));
}

static gn_operand product(struct gni_scope *s, gn_operand a, gn_operand b)
{
    if (a.tensor == NULL && b.tensor == NULL)
        return gni_floating(a.scalar.floating * b.scalar.floating);
    return gni_of(gni_binary(s, GN_OP_MULTIPLY, a, b));
}

/* The sum of all that a row's gradient is multiplied by: softmax(x) has it, and it goes with the sign changed. */
static gn_operand whole_share(struct gni_scope *s, gn_operand own, gn_operand each, int64_t classes)
{
    gn_operand all = each.tensor != NULL
                         ? gni_of(gni_reduce(s, GN_REDUCE_SUM, each.tensor, 0, false))
                         : gni_floating(each.scalar.floating * (double)classes);
    if (own.tensor == NULL && all.tensor == NULL)
        return gni_floating(own.scalar.floating + all.scalar.floating);
    return gni_of(gni_binary(s, GN_OP_ADD, own, all));
}

/* The loss's own part of the gradient of x: g (whole softmax(x) - own [c = t] - each). */
void gni_class_loss_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    const struct gni_class_loss_details *details = frame->node->details;
    struct gni_scope *s = frame->scope;
    gn_tensor *x = gni_wide(s, frame->inputs[0].tensor), *g = frame->given[0];
    gn_tensor *apart = gni_binary(s, GN_OP_SUBTRACT, gni_of(x), gni_of(frame->results[1]));
    gn_tensor *softmax = gni_unary(s, GN_OP_EXP, apart), *scale = frame->given[1];
    if (!gni_scope_is_ok(s))
        return;
    int64_t classes = x->sizes[x->ndim - 1];
    gn_tensor *is_own = NULL;
    gn_operand own = {0}, each = {0};
    if (g != NULL) {
        own = own_share(frame);
        each = class_share(frame, classes);
        gn_operand whole = product(s, gni_of(g), whole_share(s, own, each, classes));
        scale = scale == NULL ? whole.tensor
                              : gni_binary(s, GN_OP_ADD, gni_of(scale), gni_of(whole.tensor));
        is_own = gni_binary(s, GN_OP_EQUAL, gni_of(gni_arange(s, classes, x->device)),
                            gni_of(frame->inputs[1].tensor));
    }
    gn_tensor *made = gni_binary(s, GN_OP_MULTIPLY, gni_of(softmax), gni_of(scale));
    if (g != NULL) {
        gn_tensor *taken = gni_where(s, is_own, product(s, gni_of(g), own), gni_integer(0));
        made = gni_binary(s, GN_OP_SUBTRACT, gni_of(made), gni_of(taken));
    }
    if (g != NULL && details->smoothing != 0)
        made = gni_binary(s, GN_OP_SUBTRACT, gni_of(made), product(s, gni_of(g), each));
    gradients[0] = gni_scope_is_ok(s) ? gni_cast(s, made, frame->likes[0]->dtype) : NULL;
}

/* ---- the cross entropy with two classes ---------------------------------------------------------- */

/* x: g (x - t) / max(x (1 - x), 1e-12); t: g (log(1 - x) - log(x)) */
void gni_binary_loss_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    struct gni_scope *s = frame->scope;
    gn_tensor *x = frame->inputs[0].tensor, *target = frame->inputs[1].tensor, *g = frame->given[0];
    gn_tensor *rest = gni_binary(s, GN_OP_SUBTRACT, gni_integer(1), gni_of(x));
    if ((frame->needed & 1) != 0) {
        gn_tensor *below = gni_binary(s, GN_OP_MULTIPLY, gni_of(rest), gni_of(x));
        below = gni_binary(s, GN_OP_MAXIMUM, gni_of(below), gni_floating(1e-12));
        gn_tensor *apart = gni_binary(s, GN_OP_SUBTRACT, gni_of(x), gni_of(target));
        gn_tensor *above = gni_binary(s, GN_OP_MULTIPLY, gni_of(apart), gni_of(g));
        gradients[0] = gni_binary(s, GN_OP_DIVIDE, gni_of(above), gni_of(below));
    }
    if ((frame->needed & 2) != 0) {
        gn_tensor *other = gni_unary(s, GN_OP_LOG1P, gni_unary(s, GN_OP_NEGATIVE, x));
        gn_tensor *apart =
            gni_binary(s, GN_OP_SUBTRACT, gni_of(other), gni_of(gni_unary(s, GN_OP_LOG, x)));
        gradients[1] = gni_binary(s, GN_OP_MULTIPLY, gni_of(apart), gni_of(g));
    }
}
