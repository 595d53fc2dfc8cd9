/*
 * genesis/list.h: one elementwise program over many tensors at once: steps of optimizers, clipping, scaling, setting to zero.
 *
 * A list has entries. An entry has a tensor for each *place* of the program; all tensors of an entry have one shape.
 *
 *                  place 0    place 1    number 0
 *     entry 0      weight     gradient   \
 *     entry 1      bias       gradient    > the rate
 *     ...                                /
 *
 * The program is a list of steps. A step is an operation on *values*: first those of the places, then the numbers, then the
 * results of the steps before it. A store writes a value into a place. `weight -= rate * gradient` is
 *
 *     static const gn_list_step steps[] = {{GN_OP_MULTIPLY, {1, 2}}, {GN_OP_SUBTRACT, {0, 3}}};
 *     static const gn_list_store stores[] = {{.value = 4, .place = 0}};
 *     const gn_list_program descent = {.place_count = 2, .number_count = 1, .steps = steps, .step_count = 2,
 *                                      .stores = stores, .store_count = 1};
 *     gn_tensor *tensors[] = {weight, bias, weight_gradient, bias_gradient};
 *     gn_list_elementwise(&descent, 2, tensors, &rate, NULL);
 *
 * On a GPU entries of the same types are computed by one kernel in as few launches as their addresses fit into: one for some
 * 700 entries. A number that is a tensor is read when the work runs, so that a captured graph can be replayed with another one.
 *
 * Values are computed in float32, or in float64 if a tensor of the entry is float64; they are rounded to the type of a place
 * when they are stored, and not before. What is made of numbers alone is computed in float64.
 */
#ifndef GENESIS_LIST_H
#define GENESIS_LIST_H

#include "genesis/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    GN_LIST_PLACES_MOST = 8,
    GN_LIST_NUMBERS_MOST = 16,
    GN_LIST_STEPS_MOST = 48,
};

typedef struct gn_list_step {
    gn_op op;  /* any but those of integers alone */
    int in[3]; /* values; as many as the operation has operands */
} gn_list_step;

typedef struct gn_list_store {
    int value, place;
} gn_list_store;

typedef struct gn_list_program {
    int place_count, number_count, step_count, store_count;
    unsigned
        single_places; /* bit p: the tensors of place p have one element, which stands for all of its entry */
    const gn_list_step *steps;
    const gn_list_store *stores; /* at most one for each place */
} gn_list_program;

/*
 * Runs a program on each entry. The tensor of an entry at a place is tensors[place * count + entry]; all are floating, and on
 * one device. A number is a number, or a tensor of one element on that device. `skip` may be NULL, or a tensor of one element:
 * if that is not 0 when the work runs, nothing is written.
 *
 * Tensors that are written to must not share memory with others of the list, but an entry may have one tensor at two places
 * of which one is written to: GN_ERROR_INVALID_VALUE. The call has no gradient: GN_ERROR_UNSUPPORTED where it would need one.
 * What can be checked is checked before anything is written. Threads: as for other operations on these tensors.
 */
GN_API gn_status gn_list_elementwise(const gn_list_program *program, int count,
                                     gn_tensor *const *tensors, const gn_operand *numbers,
                                     gn_tensor *skip) GN_NODISCARD;

/*
 * The norm of each tensor, as a tensor of `count` numbers, or, if `is_total`, that of all elements of all tensors, as one
 * without dimensions. `order` is that of the norm: 2, 1, any other number, or an infinity, for the largest or smallest absolute
 * value; 0 counts what is not 0. The norm of no elements is 0, but the smallest of none is GN_ERROR_INVALID_VALUE.
 *
 * The result is float32, or float64 if a tensor is. Sums are made in float64, in an order that follows from the numbers of
 * elements alone. The tensors are floating, and on one device. The norm of no tensors is on the CPU.
 */
GN_API gn_status gn_list_norm(int count, gn_tensor *const *tensors, double order, bool is_total,
                              gn_tensor **result) GN_NODISCARD;

/*
 * Multiplies gradients by `factor`, a tensor of one element or NULL for 1, and sets `found`, a float32 tensor of one element, to
 * 1 if an element of theirs was infinite or NaN; else it stays. All are on one device, which is not waited for.
 */
GN_API gn_status gn_list_unscale(int count, gn_tensor *const *gradients, gn_tensor *factor,
                                 gn_tensor *found) GN_NODISCARD;

/*
 * The scale of the next step: `scale` (float32) is multiplied by `backoff` if `found` is not 0, and by `growth` after
 * `interval` steps in a row without; `tracker` (int32) counts these. A scale that would be infinite stays.
 */
GN_API gn_status gn_scale_update(gn_tensor *scale, gn_tensor *tracker, gn_tensor *found,
                                 double growth, double backoff, int64_t interval) GN_NODISCARD;

#ifdef __cplusplus
}
#endif

#endif
