/*
 * functions_nn_pooling.c: genesis.nn.functional: pooling and resampling.
 */
#include "ops/functions.h"

const gn_function gni_functions_nn_pooling[] = {
    {0},
};
