/*
 * functions_nn_convolutions.c: genesis.nn.functional: convolutions, and what they are made of.
 */
#include "ops/functions.h"

const gn_function gni_functions_nn_convolutions[] = {
    {0},
};
