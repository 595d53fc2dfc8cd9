/*
 * rules_losses.c: the gradients of losses that have a rule of their own: src/ops/losses.c
 */
#include "autograd/autograd.h"

/* ---- the cross entropy with classes ------------------------------------------------------------ */

/* A row of x, and what its gradient is made of. */
struct class_rows {
    gn_tensor *g;       /* the gradient of the row's loss; NULL: 0 */
    gn_tensor *log_sum; /* log(sum(exp(x))) */
    gn_tensor *scale;   /* what softmax(x) is multiplied by */
    double each;        /* what a class's weight is multiplied by: smoothing / C */
    gn_dtype dtype;     /* of the gradient */
};

static gn_tensor *product(struct gni_scope *s, gn_tensor *a, gn_operand b)
{
    return gni_binary(s, GN_OP_MULTIPLY, gni_of(a), b);
}

/*
 * The gradient of some elements of x, which are not those of a row's own class, less what is `taken`, if anything is:
 * scale softmax(x) - g each weight. A scope of its own: what is between is let go before the result is computed, so that it
 * is not stored.
 */
static gn_tensor *classes_gradient(struct gni_scope *scope, const struct class_rows *rows,
                                   gn_tensor *x, gn_tensor *weight, gn_tensor *taken)
{
    struct gni_scope s = {.status = scope->status};
    gn_tensor *made = NULL, *result = NULL;
    gn_tensor *wide = gni_scope_is_ok(&s) ? gni_wide(&s, x) : NULL;
    gn_tensor *apart = gni_binary(&s, GN_OP_SUBTRACT, gni_of(wide), gni_of(rows->log_sum));
    made = product(&s, gni_unary(&s, GN_OP_EXP, apart), gni_of(rows->scale));
    if (rows->g != NULL && rows->each != 0) {
        gn_tensor *each = product(&s, rows->g, gni_floating(rows->each));
        if (weight != NULL)
            each = product(&s, each, gni_of(weight));
        made = gni_binary(&s, GN_OP_SUBTRACT, gni_of(made), gni_of(each));
    }
    if (taken != NULL)
        made = gni_binary(&s, GN_OP_SUBTRACT, gni_of(made), gni_of(taken));
    made = gni_scope_is_ok(&s) ? gni_cast(&s, made, rows->dtype) : NULL;
    gn_status status = gni_scope_end(&s, made, &result);
    return gni_scope_is_ok(scope) ? gni_scope_keep(scope, status, result) : NULL;
}

/* g times the sum of the weights of -log_softmax(x) in a row's loss. */
static gn_tensor *scale_of(struct gni_scope *s, gn_tensor *g, gn_tensor *weight, gn_tensor *own,
                           double smoothing, int64_t classes)
{
    if (weight == NULL)
        return g;
    gn_tensor *all = gni_reduce(s, GN_REDUCE_SUM, weight, 0, false);
    all = product(s, all, gni_floating(smoothing / (double)classes));
    gn_tensor *sum =
        gni_binary(s, GN_OP_ADD, gni_of(product(s, own, gni_floating(1 - smoothing))), gni_of(all));
    return product(s, g, gni_of(sum));
}

static gn_tensor *picked_of(struct gni_scope *s, gn_tensor *x, gn_tensor *places)
{
    gn_tensor *made = NULL;
    gn_status status = gni_scope_is_ok(s) ? gn_gather(x, -1, places, &made) : s->status;
    return gni_scope_keep(s, status, made);
}

/*
 * Every element as if it were of another class, and then those of the rows' own classes in their places: computed apart, they
 * are rounded once, too.
 */
void gni_class_loss_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    struct gni_scope *s = frame->scope;
    double smoothing = ((const struct gni_class_loss_details *)frame->node->details)->smoothing;
    gn_tensor *x = frame->inputs[0].tensor, *places = frame->inputs[1].tensor, *own = NULL;
    gn_tensor *weight = frame->inputs[2].tensor, *scale = frame->given[1];
    int64_t classes = x->sizes[x->ndim - 1];
    struct class_rows rows = {
        .g = frame->given[0],
        .log_sum = frame->results[1],
        .each = smoothing / (double)classes,
        .dtype = frame->likes[0]->dtype,
    };
    if (weight != NULL)
        own = gni_index_at(s, weight, places);
    if (rows.g != NULL) {
        gn_tensor *whole = scale_of(s, rows.g, weight, own, smoothing, classes);
        scale = scale == NULL ? whole : gni_binary(s, GN_OP_ADD, gni_of(scale), gni_of(whole));
    }
    rows.scale = scale;
    if (gni_scope_is_ok(s)) /* once for each row, not for each element */
        s->status = gni_tensor_flush(scale);
    gn_tensor *made = classes_gradient(s, &rows, x, weight, NULL);
    if (rows.g != NULL) {
        gn_tensor *taken = product(s, rows.g, gni_floating(1 - smoothing));
        if (weight != NULL)
            taken = product(s, taken, gni_of(own));
        gn_tensor *at = classes_gradient(s, &rows, picked_of(s, x, places), own, taken);
        if (gni_scope_is_ok(s))
            s->status = gn_scatter(made, -1, places, gni_of(at), false);
    }
    gradients[0] = made;
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

/* ---- alignments ------------------------------------------------------------------------------------ */

/* (steps, sequences, states): the gradient of a sequence's loss, times what was computed with the loss. */
void gni_alignments_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    struct gni_scope *s = frame->scope;
    gn_tensor *g = frame->given[0], *own = frame->results[1];
    if (gni_is_taped(frame->inputs[0].tensor))
        gni_scope_fail(s, GN_ERROR_UNSUPPORTED,
                       "the gradient of ctc_loss has no gradient: create_graph is False");
    if (g == NULL || !gni_scope_is_ok(s))
        return;
    gradients[0] = product(s, own, gni_of(gni_unsqueeze(s, g, 1)));
}
