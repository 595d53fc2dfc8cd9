/*
 * functions_nn_losses.c: genesis.nn.functional: losses.
 */
#include "ops/functions.h"

const gn_function gni_functions_nn_losses[] = {
    {0},
};
