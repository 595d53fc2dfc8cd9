/*
 * functions_nn_activations.c: genesis.nn.functional: activations that are not among the operations.
 */
#include "ops/functions.h"

const gn_function gni_functions_nn_activations[] = {
    {0},
};
