/*
 * functions_nn_margins.c: genesis.nn.functional: losses that keep examples apart by a margin.
 *
 * Halves are computed in float32, and the result is rounded once.
 */
#include "ops/losses.h"

#include "tensor/tape.h"

#include <math.h>

static gn_tensor *last_sum(struct gni_scope *s, gn_tensor *x)
{
    if (!gni_scope_is_ok(s))
        return NULL;
    return x->ndim == 0 ? x : gni_reduce(s, GN_REDUCE_SUM, x, UINT32_C(1) << (x->ndim - 1), false);
}

/* ---- two inputs and a target of 1 or -1 ---------------------------------------------------------- */

static gn_tensor *is_target(struct gni_scope *s, gn_operand target, int64_t number)
{
    return gni_binary(s, GN_OP_EQUAL, target, gni_integer(number));
}

/* The cosine of rows; 1e-12 is added to each square, as in PyTorch. */
static gn_tensor *cosine(struct gni_scope *s, gn_operand a, gn_operand b)
{
    gn_operand pairs[3][2] = {{a, b}, {a, a}, {b, b}};
    gn_tensor *sums[3];
    for (int i = 0; i < 3; i++) {
        sums[i] = last_sum(s, gni_binary(s, GN_OP_MULTIPLY, pairs[i][0], pairs[i][1]));
        if (i > 0)
            sums[i] = gni_binary(s, GN_OP_ADD, gni_of(sums[i]), gni_floating(1e-12));
    }
    gn_tensor *below = gni_binary(s, GN_OP_MULTIPLY, gni_of(sums[1]), gni_of(sums[2]));
    below = gni_unary(s, GN_OP_SQRT, below);
    return gni_binary(s, GN_OP_DIVIDE, gni_of(sums[0]), gni_of(below));
}

static gn_status cosine_embedding_loss_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_operand in[] = {a[0].operand, a[1].operand};
    const gn_tensor *x = in[0].tensor, *y = in[1].tensor, *target = a[2].operand.tensor;
    enum gni_loss_reduction reduction = gni_loss_reduction(&s, &a[6], &a[4], &a[5]);
    if (target->ndim > 1 || x->ndim != target->ndim + 1 || y->ndim != target->ndim + 1)
        gni_scope_fail(
            &s, GN_ERROR_SHAPE,
            "inputs have shapes %s and %s, and target %s: they are (N, D) and (N), or (D) "
            "and ()",
            gni_shape_text(x->ndim, x->sizes).text, gni_shape_text(y->ndim, y->sizes).text,
            gni_shape_text(target->ndim, target->sizes).text);
    gn_dtype dtype = gni_join(&s, 2, in, true);
    gn_tensor *near = cosine(&s, in[0], in[1]);
    gn_tensor *far = gni_binary(&s, GN_OP_SUBTRACT, gni_of(near), a[3].operand);
    far = gni_at_least_number(&s, far, 0);
    near = gni_binary(&s, GN_OP_SUBTRACT, gni_integer(1), gni_of(near));
    far = gni_where(&s, is_target(&s, a[2].operand, -1), gni_of(far), gni_integer(0));
    near = gni_where(&s, is_target(&s, a[2].operand, 1), gni_of(near), gni_of(far));
    return gni_scope_give(&s, gni_loss_reduce(&s, near, reduction, dtype), results);
}

static gn_status margin_ranking_loss_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_operand in[] = {a[0].operand, a[1].operand, a[2].operand};
    enum gni_loss_reduction reduction = gni_loss_reduction(&s, &a[6], &a[4], &a[5]);
    if (in[0].tensor->ndim != in[1].tensor->ndim || in[0].tensor->ndim != in[2].tensor->ndim)
        gni_scope_fail(&s, GN_ERROR_SHAPE,
                       "inputs have shapes %s and %s, and target %s: they have as many dimensions",
                       gni_shape_text(in[0].tensor->ndim, in[0].tensor->sizes).text,
                       gni_shape_text(in[1].tensor->ndim, in[1].tensor->sizes).text,
                       gni_shape_text(in[2].tensor->ndim, in[2].tensor->sizes).text);
    gn_dtype dtype = gni_join(&s, 3, in, true);
    gn_tensor *apart = gni_binary(&s, GN_OP_SUBTRACT, in[1], in[0]);
    gn_tensor *each = gni_binary(&s, GN_OP_MULTIPLY, gni_of(apart), in[2]);
    each = gni_at_least_number(&s, gni_binary(&s, GN_OP_ADD, gni_of(each), a[3].operand), 0);
    return gni_scope_give(&s, gni_loss_reduce(&s, each, reduction, dtype), results);
}

static gn_status hinge_embedding_loss_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_operand x = a[0].operand, target = a[1].operand;
    enum gni_loss_reduction reduction = gni_loss_reduction(&s, &a[5], &a[3], &a[4]);
    gn_dtype dtype = gni_join(&s, 1, &x, true);
    gn_tensor *far = gni_at_least_number(&s, gni_binary(&s, GN_OP_SUBTRACT, a[2].operand, x), 0);
    far = gni_where(&s, is_target(&s, target, 1), gni_integer(0), gni_of(far));
    gn_tensor *near = gni_where(&s, is_target(&s, target, -1), gni_integer(0), x);
    gn_tensor *each = gni_binary(&s, GN_OP_ADD, gni_of(far), gni_of(near));
    return gni_scope_give(&s, gni_loss_reduce(&s, each, reduction, dtype), results);
}

/* ---- triplets ---------------------------------------------------------------------------------- */

/* The root of a sum of powers. That of 0 has the gradient 0, as in PyTorch, though its slope is infinite. */
static gn_tensor *root_of(struct gni_scope *s, gn_tensor *sum, double p)
{
    if (!gni_scope_is_ok(s) || !gni_is_taped(sum))
        return p == 2 ? gni_unary(s, GN_OP_SQRT, sum)
                      : gni_binary(s, GN_OP_POWER, gni_of(sum), gni_floating(1 / p));
    gn_tensor *is_zero = gni_binary(s, GN_OP_EQUAL, gni_of(sum), gni_integer(0));
    sum = gni_where(s, is_zero, gni_integer(1), gni_of(sum));
    gn_tensor *root = p == 2 ? gni_unary(s, GN_OP_SQRT, sum)
                             : gni_binary(s, GN_OP_POWER, gni_of(sum), gni_floating(1 / p));
    return gni_where(s, is_zero, gni_integer(0), gni_of(root));
}

/* The p-norm of a - b + eps along the last dimension. */
static gn_tensor *distance(struct gni_scope *s, gn_operand a, gn_operand b, double p, double eps)
{
    gn_tensor *apart = gni_binary(s, GN_OP_SUBTRACT, a, b);
    apart = gni_binary(s, GN_OP_ADD, gni_of(apart), gni_floating(eps));
    if (p == 2)
        return root_of(s, last_sum(s, gni_unary(s, GN_OP_SQUARE, apart)), 2);
    gn_tensor *sizes = gni_unary(s, GN_OP_ABSOLUTE, apart);
    if (p == 1 || !gni_scope_is_ok(s))
        return last_sum(s, sizes);
    if (isinf(p))
        return gni_reduce(s, GN_REDUCE_MAXIMUM, sizes, UINT32_C(1) << (sizes->ndim - 1), false);
    return root_of(s, last_sum(s, gni_binary(s, GN_OP_POWER, gni_of(sizes), gni_floating(p))), p);
}

static gn_status triplet_margin_loss_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_operand in[] = {a[0].operand, a[1].operand, a[2].operand};
    enum gni_loss_reduction reduction = gni_loss_reduction(&s, &a[9], &a[7], &a[8]);
    double margin = gni_scalar_double(a[3].operand.scalar);
    double p = gni_scalar_double(a[4].operand.scalar);
    double eps = gni_scalar_double(a[5].operand.scalar);
    if (!(margin > 0))
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "margin is positive, not %g", margin);
    if (!(p > 0))
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "p is positive, not %g", p);
    for (int i = 0; i < 3; i++)
        if (in[i].tensor->ndim != in[0].tensor->ndim || in[i].tensor->ndim == 0)
            gni_scope_fail(
                &s, GN_ERROR_SHAPE,
                "anchor, positive and negative have as many dimensions, and at least one, "
                "not %d, %d and %d",
                in[0].tensor->ndim, in[1].tensor->ndim, in[2].tensor->ndim);
    gn_dtype dtype = gni_join(&s, 3, in, true);
    gn_tensor *near = distance(&s, in[0], in[1], p, eps);
    gn_tensor *far = distance(&s, in[0], in[2], p, eps);
    if (gni_is_set(&a[6]))
        far =
            gni_binary(&s, GN_OP_MINIMUM, gni_of(far), gni_of(distance(&s, in[1], in[2], p, eps)));
    gn_tensor *each = gni_binary(&s, GN_OP_SUBTRACT, gni_of(near), gni_of(far));
    each = gni_at_least_number(&s, gni_binary(&s, GN_OP_ADD, gni_of(each), a[3].operand), 0);
    return gni_scope_give(&s, gni_loss_reduce(&s, each, reduction, dtype), results);
}

#define REDUCED "size_average: bool = None, reduce: bool = None, reduction: text = 'mean'"

const gn_function gni_functions_nn_margins[] = {
    {"nn.cosine_embedding_loss", NULL,
     "input1: Tensor, input2: Tensor, target: Tensor, margin: number = 0, " REDUCED, 0,
     cosine_embedding_loss_call,
     "1 less the cosine of rows whose target is 1; where it is -1, what the cosine is above "
     "margin.",
     ">>> x = genesis.tensor([[1.0, 0.0], [1.0, 0.0]])\n"
     ">>> target = genesis.tensor([1, -1])\n"
     ">>> genesis.nn.functional.cosine_embedding_loss(x, x, target, reduction='none')\n"
     "tensor([0., 1.])"},
    {"nn.margin_ranking_loss", NULL,
     "input1: Tensor, input2: Tensor, target: Tensor, margin: number = 0, " REDUCED, 0,
     margin_ranking_loss_call,
     "max(0, margin - target (input1 - input2)): with the target 1 the first should be larger.",
     ">>> one = genesis.ones(2)\n"
     ">>> genesis.nn.functional.margin_ranking_loss(one, 2 * one, one)\ntensor(1.)"},
    {"nn.hinge_embedding_loss", NULL,
     "input: Tensor, target: Tensor, margin: number = 1.0, " REDUCED, 0, hinge_embedding_loss_call,
     "The input where the target is 1; max(0, margin - input) where it is -1.",
     ">>> x = genesis.tensor([0.25, 0.25])\n"
     ">>> target = genesis.tensor([1.0, -1.0])\n"
     ">>> genesis.nn.functional.hinge_embedding_loss(x, target, reduction='none')\n"
     "tensor([0.2500, 0.7500])"},
    {"nn.triplet_margin_loss", NULL,
     "anchor: Tensor, positive: Tensor, negative: Tensor, margin: number = 1.0, p: number = 2, "
     "eps: number = 1e-06, swap: bool = False, " REDUCED,
     0, triplet_margin_loss_call,
     "max(0, |anchor - positive| - |anchor - negative| + margin) of rows, by the p-norm.\n\nWith "
     "`swap` the distance from positive to negative counts where it is less.",
     ">>> zero, one = genesis.zeros(1, 2), genesis.ones(1, 2)\n"
     ">>> genesis.nn.functional.triplet_margin_loss(zero, zero, one, margin=2.0)\n"
     "tensor(0.5858)"},
    {0},
};
