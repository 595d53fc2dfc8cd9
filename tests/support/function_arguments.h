/*
 * function_arguments.h: arguments for any row of the table of functions (genesis/function.h): those that many take.
 *
 * One thread at a time: what arguments point to is static.
 */
#ifndef GNI_TESTS_FUNCTION_ARGUMENTS_H
#define GNI_TESTS_FUNCTION_ARGUMENTS_H

#include "genesis/genesis.h"

enum {
    PARAMETERS_MOST = 12,
    WORD = 32,
};

/* The word up to one of `ends`; what follows. */
const char *word_take(const char *at, const char *ends, char word[WORD]);

bool is_identifier(const char *word);

/* Calls `found` for each parameter; how many there are. */
int signature_walk(const char *signature,
                   void (*found)(int place, const char *kind, const char *standard));

/* A matrix for each tensor, its first dimension, few elements. */
void arguments_make(const char *signature, gn_tensor *matrix, gn_device *device,
                    gn_argument arguments[PARAMETERS_MOST]);

#endif
