/*
 * functions_nn_layers.c: genesis.nn.functional: linear layers, embeddings, norms, dropout, attention.
 */
#include "ops/functions.h"

/* ---- products ---------------------------------------------------------------------------------- */

static gn_status linear_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *weight = a[1].operand.tensor;
    if (weight->ndim != 1 && weight->ndim != 2)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "the weight has shape %s: it has one or two dimensions",
                       gni_shape_text(weight->ndim, weight->sizes).text);
    gn_tensor *turned =
        gni_scope_is_ok(&s) && weight->ndim == 2 ? gni_transpose(&s, weight, 0, 1) : weight;
    gn_tensor *made = gni_matmul(&s, a[0].operand.tensor, turned);
    if (a[2].is_given)
        made = gni_binary(&s, GN_OP_ADD, gni_of(made), a[2].operand);
    return gni_scope_give(&s, made, results);
}

const gn_function gni_functions_nn_layers[] = {
    {"nn.linear", NULL, "input: Tensor, weight: Tensor, bias: Tensor = None", GN_FORM_BLAS,
     linear_call, "input @ weight.T + bias.",
     ">>> genesis.nn.functional.linear(genesis.ones(1, 3), genesis.ones(2, 3)).tolist()\n"
     "[[3.0, 3.0]]"},
    {0},
};
