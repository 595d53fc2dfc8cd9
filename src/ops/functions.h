/*
 * functions.h: the tables of functions that are made of operations: genesis/function.h says what a row is.
 *
 * A new function is a row in one of these tables and the C function that it names. Write it with the calls of
 * expression.h. Arguments come in the order of the signature, defaults filled in.
 */
#ifndef GNI_OPS_FUNCTIONS_H
#define GNI_OPS_FUNCTIONS_H

#include "ops/expression.h"

extern const gn_function gni_functions_elements[];
extern const gn_function gni_functions_index[];
extern const gn_function gni_functions_random[];
extern const gn_function gni_functions_scatter[];
extern const gn_function gni_functions_types[];

#endif
