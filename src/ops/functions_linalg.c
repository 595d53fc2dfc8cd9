/*
 * functions_linalg.c: genesis.linalg: linear algebra.
 */
#include "ops/functions.h"

static gn_status matmul_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    return gni_scope_give(&s, gni_matmul(&s, a[0].operand.tensor, a[1].operand.tensor), results);
}

const gn_function gni_functions_linalg[] = {
    {"linalg.matmul", NULL, "input: Tensor, other: Tensor", GN_FORM_OUT | GN_FORM_BLAS, matmul_call,
     "The product of two matrices, or of each two of a batch.",
     ">>> genesis.linalg.matmul(genesis.ones(2, 3), genesis.ones(3, 1)).tolist()\n[[3.0], [3.0]]"},
    {0},
};
