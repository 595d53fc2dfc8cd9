/*
 * functions.c: the list of the tables of functions.
 */
#include "ops/functions.h"

const gn_function *gn_function_table(int index)
{
    static const gn_function *const tables[] = {
        gni_functions_create,         gni_functions_elements,        gni_functions_index,
        gni_functions_matrices,       gni_functions_options,         gni_functions_parts,
        gni_functions_poisson,        gni_functions_products,        gni_functions_random,
        gni_functions_rows,           gni_functions_scatter,         gni_functions_series,
        gni_functions_shapes,         gni_functions_statistics,      gni_functions_types,
        gni_functions_views,          gni_functions_linalg,          gni_functions_nn_activations,
        gni_functions_linalg_factors, gni_functions_linalg_norms,    gni_functions_linalg_products,
        gni_functions_linalg_solve,   gni_functions_nn_convolutions, gni_functions_nn_layers,
        gni_functions_nn_losses,      gni_functions_nn_pooling,      gni_functions_nn_attention,
        gni_functions_nn_dropout,     gni_functions_nn_embeddings,   gni_functions_nn_norms,
        gni_functions_nn_resampling,  gni_functions_nn_classes,      gni_functions_nn_margins,
        gni_functions_nn_recurrent,   gni_functions_nn_rotary,       gni_functions_nn_grids,
        gni_functions_nn_ctc,
    };
    return index >= 0 && index < (int)(sizeof tables / sizeof *tables) ? tables[index] : NULL;
}
