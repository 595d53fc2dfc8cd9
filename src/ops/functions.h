/*
 * functions.h: the tables of functions that are made of operations: genesis/function.h says what a row is.
 *
 * A new function is a row in one of these tables and the C function that it names. Write it with the calls of
 * expression.h. Arguments come in the order of the signature, defaults filled in.
 */
#ifndef GNI_OPS_FUNCTIONS_H
#define GNI_OPS_FUNCTIONS_H

#include "ops/expression.h"

extern const gn_function gni_functions_create[];
extern const gn_function gni_functions_elements[];
extern const gn_function gni_functions_matrices[];
extern const gn_function gni_functions_parts[];
extern const gn_function gni_functions_products[];
extern const gn_function gni_functions_shapes[];
extern const gn_function gni_functions_views[];
extern const gn_function gni_functions_options[];
extern const gn_function gni_functions_index[];
extern const gn_function gni_functions_poisson[];
extern const gn_function gni_functions_random[];
extern const gn_function gni_functions_scatter[];
extern const gn_function gni_functions_types[];
extern const gn_function gni_functions_rows[];
extern const gn_function gni_functions_series[];
extern const gn_function gni_functions_statistics[];
extern const gn_function gni_functions_linalg[];
extern const gn_function gni_functions_linalg_factors[];
extern const gn_function gni_functions_linalg_norms[];
extern const gn_function gni_functions_linalg_products[];
extern const gn_function gni_functions_linalg_solve[];
extern const gn_function gni_functions_nn_activations[];
extern const gn_function gni_functions_nn_attention[];
extern const gn_function gni_functions_nn_convolutions[];
extern const gn_function gni_functions_nn_dropout[];
extern const gn_function gni_functions_nn_embeddings[];
extern const gn_function gni_functions_nn_layers[];
extern const gn_function gni_functions_nn_classes[];
extern const gn_function gni_functions_nn_ctc[];
extern const gn_function gni_functions_nn_losses[];
extern const gn_function gni_functions_nn_norms[];
extern const gn_function gni_functions_nn_grids[];
extern const gn_function gni_functions_nn_pooling[];
extern const gn_function gni_functions_nn_resampling[];
extern const gn_function gni_functions_nn_margins[];
extern const gn_function gni_functions_nn_recurrent[];
extern const gn_function gni_functions_nn_rotary[];

/* A bool that is given, or its default. */
static inline bool gni_is_set(const gn_argument *argument)
{
    return argument->operand.scalar.integer != 0;
}

/* The type of new elements: the default one if none is given. */
static inline gn_dtype gni_dtype_of_new(const gn_argument *dtype)
{
    return dtype->is_given ? dtype->dtype : gn_get_default_dtype();
}

/* Hands out references that the caller has, without a scope. */
static inline gn_status gni_give_two(gn_tensor *first, gn_tensor *second, gn_results *results)
{
    results->few[0] = first;
    results->few[1] = second;
    results->tensors = results->few;
    results->count = 2;
    return GN_OK;
}

static inline gn_status gni_give_one(gn_tensor *tensor, gn_results *results)
{
    (void)gni_give_two(tensor, NULL, results);
    results->count = 1;
    return GN_OK;
}

/* `steps` numbers at equal distances between two ends, both among them, in float64. */
gn_tensor *gni_spaced(struct gni_scope *scope, const double ends[2], int64_t steps,
                      gn_device *device);

/* The p-th root of the sum of the p-th powers of absolute values, of float32 or float64. */
gn_tensor *gni_vector_norm(struct gni_scope *s, gn_tensor *x, double p, uint32_t dims,
                           bool is_kept);

#endif
