/*
 * functions_nn_rotary.c: rotary positions: pairs of features turned by angles.
 */
#include "ops/functions.h"

static gn_operand product(struct gni_scope *s, gn_tensor *a, gn_tensor *b)
{
    return gni_of(gni_binary(s, GN_OP_MULTIPLY, gni_of(a), gni_of(b)));
}

/* (a, b) becomes (a cos - b sin, b cos + a sin): a and b are the halves of the last dimension. */
static gn_status rotate_call(const gn_argument *arguments, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = arguments[0].operand.tensor, *halves[3][2];
    int64_t width = x->ndim > 0 ? x->sizes[x->ndim - 1] : 0;
    for (int i = 0; i < 3; i++) {
        gn_tensor *one = arguments[i].operand.tensor;
        if (one->ndim == 0 || one->sizes[one->ndim - 1] != width || width % 2 != 0)
            gni_scope_fail(
                &s, GN_ERROR_SHAPE,
                "the last dimension is %lld for input: it is even, and that of cos and sin, "
                "too",
                (long long)width);
        for (int k = 0; k < 2 && gni_scope_is_ok(&s); k++) {
            gn_tensor *half = gni_narrow(&s, one, one->ndim - 1, k * width / 2, width / 2);
            halves[i][k] = gni_scope_is_ok(&s) ? gni_wide(&s, half) : NULL;
        }
    }
    if (!gni_scope_is_ok(&s))
        return gni_scope_give(&s, NULL, results);
    gn_tensor **a = halves[0], **cosine = halves[1], **sine = halves[2], *made[2];
    made[0] =
        gni_binary(&s, GN_OP_SUBTRACT, product(&s, a[0], cosine[0]), product(&s, a[1], sine[0]));
    made[1] = gni_binary(&s, GN_OP_ADD, product(&s, a[1], cosine[1]), product(&s, a[0], sine[1]));
    for (int k = 0; k < 2 && gni_scope_is_ok(&s); k++)
        made[k] = gni_cast(&s, made[k], x->dtype);
    gn_tensor *whole = gni_scope_is_ok(&s) ? gni_cat(&s, 2, made, made[0]->ndim - 1) : NULL;
    return gni_scope_give(&s, whole, results);
}

const gn_function gni_functions_nn_rotary[] = {
    {"nn._rotate", NULL, "input: Tensor, cos: Tensor, sin: Tensor", 0, rotate_call,
     "Pairs of features, one in each half of the last dimension, turned by angles.", NULL},
    {0},
};
