/*
 * functions_nn.h: what the functions of neural networks share.
 */
#ifndef GNI_OPS_FUNCTIONS_NN_H
#define GNI_OPS_FUNCTIONS_NN_H

#include "ops/functions.h"
#include "tensor/tape.h"

/* Gives a result; with inplace=True it is written into the input, which is given then. */
static inline gn_status gni_give_in_place(struct gni_scope *s, gn_tensor *made, gn_tensor *input,
                                          bool is_in_place, gn_results *results)
{
    if (!is_in_place || made == input)
        return gni_scope_give(s, made, results);
    if (gni_scope_is_ok(s) && made->dtype != input->dtype)
        gni_scope_fail(s, GN_ERROR_TYPE,
                       "the result is genesis.%s, which cannot be stored in genesis.%s",
                       gni_dtypes[made->dtype].name, gni_dtypes[input->dtype].name);
    gni_assign(s, input, gni_of(made));
    return gni_scope_give(s, input, results);
}

/* Fails where elements are no floating numbers. `name`: of the parameter. */
static inline void gni_floating_require(struct gni_scope *s, const char *name, const gn_tensor *x)
{
    if (!gni_dtype_is_floating(x->dtype))
        gni_scope_fail(s, GN_ERROR_TYPE, "%s has floating numbers, not genesis.%s", name,
                       gni_dtypes[x->dtype].name);
}

/* The same values without a gradient. */
static inline gn_tensor *gni_detached(struct gni_scope *s, gn_tensor *x)
{
    bool is_taped = gni_scope_is_ok(s) && gni_tape_enter(x);
    gn_tensor *made = is_taped ? gni_view(s, x, x->ndim, x->sizes) : x;
    gni_tape_is_paused &= !is_taped;
    return made;
}

/* x with elements that are 0 with a probability of p, and the others divided by 1 - p. */
gn_tensor *gni_dropout(struct gni_scope *s, gn_tensor *x, double p, gn_generator *generator);

#endif
