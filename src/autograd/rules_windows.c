/*
 * rules_windows.c: the gradients of convolutions, which are convolutions again: struct gni_convolution says of what.
 */
#include "autograd/autograd.h"

#include "ops/convolution.h"

/* The same sum with another factor left open. */
static gn_tensor *other(const struct gni_rule_frame *frame, enum gni_convolution_kind kind,
                        gn_tensor *first, gn_tensor *second)
{
    struct gni_convolution convolution = *(const struct gni_convolution *)frame->node->details;
    convolution.kind = kind;
    return gni_scope_convolve(frame->scope, &convolution, first, second, NULL);
}

/* Of two operands: each gets what the gradient and the other one give. */
static void factor_gradients(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    const struct gni_convolution *convolution = frame->node->details;
    gn_tensor *a = frame->inputs[0].tensor, *b = frame->inputs[1].tensor, *g = frame->given[0];
    bool needs_first = (frame->needed & 1) != 0, needs_second = (frame->needed & 2) != 0;
    switch (convolution->kind) {
    case GNI_CONV_RESULT: /* of an image and weights */
        gradients[0] = needs_first ? other(frame, GNI_CONV_IMAGE, g, b) : NULL;
        gradients[1] = needs_second ? other(frame, GNI_CONV_WEIGHT, a, g) : NULL;
        break;
    case GNI_CONV_IMAGE: /* of a result and weights */
        gradients[0] = needs_first ? other(frame, GNI_CONV_RESULT, g, b) : NULL;
        gradients[1] = needs_second ? other(frame, GNI_CONV_WEIGHT, g, a) : NULL;
        break;
    default: /* GNI_CONV_WEIGHT: of an image and a result */
        gradients[0] = needs_first ? other(frame, GNI_CONV_IMAGE, b, g) : NULL;
        gradients[1] = needs_second ? other(frame, GNI_CONV_RESULT, a, g) : NULL;
    }
}

void gni_convolution_gradient(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    const struct gni_convolution *convolution = frame->node->details;
    gn_tensor *given = frame->given[0];
    if (convolution->kind == GNI_CONV_UNFOLD) {
        gradients[0] = other(frame, GNI_CONV_FOLD, given, NULL);
        return;
    }
    if (convolution->kind == GNI_CONV_FOLD) {
        gradients[0] = other(frame, GNI_CONV_UNFOLD, given, NULL);
        return;
    }
    factor_gradients(frame, gradients);
    if ((frame->needed & 4) != 0 && gni_scope_is_ok(frame->scope)) /* the bias */
        gradients[2] = gni_sum(frame->scope, given, 1U | 7U << 2, false, given->dtype);
}
