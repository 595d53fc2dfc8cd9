/*
 * genesis/function.h: the functions of tensors that are made of others, as a table: a row for each.
 *
 * A row has what a binding for another language needs: names, parameters, documentation, and a call that takes all
 * arguments in order. The package for Python makes its functions, methods, in-place and out= forms, docstrings and type
 * stubs from these rows; genesis/ops.h has the operations that they are made of.
 *
 * A name may begin with a namespace: "nn." for neural networks (genesis.nn.functional), "linalg." for linear algebra. Aliases
 * have none: they are in the same one.
 *
 * A signature is a text such as
 *
 *     "input: Tensor, dim: dims = None, keepdim: bool = False, *, dtype: dtype = None"
 *
 * Parameters behind `*` are passed by name only. `*shape: sizes` takes the rest of the arguments, one by one or as one
 * list. The types are:
 *
 *     Tensor    a tensor                          operand   a tensor or a number
 *     int       an integer                        number    a number of any kind
 *     bool      true or false                     text      one of a few words
 *     dim       a dimension, may be negative      dims      one dimension or several; None: all
 *     sizes     integers, such as a shape         tensors   a list of tensors
 *     dtype     a type of elements                device    a device
 *     elements  a number, tensor, array or list   doubles   the same; a list becomes float64
 *     data      a tensor, or data for one         values    a tensor, a number, or data for a tensor
 *     counts    an integer, or data for a tensor  keys      the parts of x[...]
 *     shapes    lists of integers, or one integer generator where random numbers come from
 *
 * A device that is not given is that of the first tensor among the arguments, or the one of new tensors.
 *
 * "dims|Tensor" takes dimensions or a tensor, which is passed as operand.tensor; "number|text" a number or a word, in
 * `text`; "dims|bool" dimensions or true or false, in operand.scalar of kind GN_BOOL;
 * "sizes|None" integers some of which may be None: GN_SIZE_NONE; "number|sizes" an integer, or integers; "sizes|text" integers or a word, with a count of -1. Sizes with one number as
 * their default have no integers then, and the number in operand.scalar.
 *
 * A default is None, True, False, a number, integers such as (0, 1), or a word in single quotes. "-> Tensor" is left
 * out; other results are "-> values, indices" (a pair of tensors with these names, or one tensor where the function
 * gives one; there may be up to 4 names), "-> tensors" (any number of them), "-> Tensor or tensors"
 * (gn_results.is_tuple says which), "-> each" (a tensor for one that `*tensors` was given, a list for a list), "-> bool",
 * "-> int", "-> sizes", "-> dtype", "-> text" and "-> None".
 */
#ifndef GENESIS_FUNCTION_H
#define GENESIS_FUNCTION_H

#include "genesis/index.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is passed for a parameter: the fields of its type. */
#define GN_SIZE_NONE INT64_MIN

typedef struct gn_argument {
    bool is_given;  /* false: None; the other fields are 0, but for a device */
    bool is_single; /* sizes, shapes: one integer that is no list of one */
    gn_dtype dtype;
    int count;          /* of integers, tensors, shapes or keys */
    gn_operand operand; /* Tensor, operand, number; an int, bool or dim in operand.scalar.integer */
    const int *lengths; /* of shapes: how many integers each has */
    union {
        const int64_t *integers; /* dims, sizes; of shapes: one behind the other */
        gn_tensor *const *tensors;
        const gn_key *keys;
        gn_device *device;       /* set even where none is given */
        gn_generator *generator; /* of this call alone: it may take the numbers of one offset, which
                                    changes the offset; else they are left to the next call */
        const char *text;
    };
} gn_argument;

/* What a function gives: references that the caller returns, or a number. */
typedef struct gn_results {
    gn_tensor
        *out; /* what out= names, borrowed; a function may write its result there and give it */
    gn_tensor *
        target; /* where a GN_FORM_WRITES function is called in place: its first parameter, else NULL */
    int count;
    bool is_tuple;       /* of "-> Tensor or tensors": also a single result is a tuple */
    gn_tensor **tensors; /* `few`, or memory for gn_results_clear() */
    gn_tensor *few[4];
    gn_scalar number;                 /* of "-> bool" and "-> int" */
    gn_dtype dtype;                   /* of "-> dtype" */
    int64_t sizes[GN_DIMENSIONS_MAX]; /* `count` of them, of "-> sizes" */
    const char *text;                 /* of "-> text"; static memory */
} gn_results;

/* How a function can be called, beside by its name. */
enum {
    GN_FORM_METHOD = 1,   /* of its first parameter */
    GN_FORM_IN_PLACE = 2, /* name_(), which writes the result into its first parameter */
    GN_FORM_OUT = 4,      /* with out=, which the result is written to */
    GN_FORM_NO_FUNCTION = 8,
    GN_FORM_OPTIONS = 16, /* of an elementwise operation: how that is called with options */
    GN_FORM_BLAS =
        32, /* it computes matrix products: a binding that knows a BLAS library names it first */
    GN_FORM_WRITES = 64, /* in place, the call itself changes results->target, and gives it */
};

typedef struct gn_function {
    const char *name;
    const char *aliases; /* other names, separated by spaces; may be NULL */
    const char *signature;
    unsigned forms; /* GN_FORM_* */
    gn_status (*call)(const gn_argument *arguments, gn_results *results);
    const char *text;    /* what it gives: a sentence, and more in paragraphs of their own */
    const char *example; /* lines as Python shows them, ">>> " and what is printed; may be NULL */
} gn_function;

/* The table number `index`, ended by a row without a name; NULL past the last. Static memory. */
GN_API const gn_function *gn_function_table(int index);

/* Returns the references of results, and their memory. */
GN_API void gn_results_clear(gn_results *results);

#ifdef __cplusplus
}
#endif

#endif
