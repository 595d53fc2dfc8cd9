/*
 * functions.c: the list of the tables of functions.
 */
#include "ops/functions.h"

const gn_function *gn_function_table(int index)
{
    static const gn_function *const tables[] = {
        gni_functions_elements, gni_functions_index, gni_functions_random,
        gni_functions_scatter,  gni_functions_types,
    };
    return index >= 0 && index < (int)(sizeof tables / sizeof *tables) ? tables[index] : NULL;
}
