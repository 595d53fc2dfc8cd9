/*
 * genesis/optim.h: steps of optimizers: one call changes all parameters by their gradients.
 *
 *     gn_optim_lists lists = {.count = 2, .parameters = weights, .gradients = gradients,
 *                             .states = {averages, squares}, .scalars = {steps}};
 *     gn_optim_adam adam = {.rate = number(1e-3), .beta1 = number(0.9), .beta2 = number(0.999),
 *                           .epsilon = number(1e-8), .decay = number(0.01), .is_decoupled = true};
 *     gn_optim_adam_step(&lists, &adam);
 *
 * A step is a list program (genesis/list.h): on a GPU one launch, or few, for all tensors of one device and the same types.
 * Values are computed in float32, or in float64 where a tensor is float64, and rounded once, when they are stored.
 *
 * Hyperparameters are numbers, or tensors of one element. A tensor on the device of the parameters is read when the work runs,
 * so that a captured graph can be replayed with another one; one that is elsewhere is read by the call.
 *
 * Steps that were done are counted by the call, for each parameter, in `scalars[0]`. Where they are on the CPU, the host counts;
 * where they are on the parameters' GPU, so does the GPU, and the call can be captured.
 *
 * Failures: GN_ERROR_INVALID_VALUE (a list is missing, tensors share memory, one is on another device), GN_ERROR_SHAPE,
 * GN_ERROR_TYPE (no floating type), GN_ERROR_UNSUPPORTED (a parameter needs a gradient, and gradients are on: see
 * gn_set_gradients()), GN_ERROR_OUT_OF_HOST_MEMORY. What can be checked is checked before anything is written.
 * On the CPU a call that runs out of memory has changed nothing, or whole parameters with their counts where these differ. A
 * GPU that counts steps does so in a second launch: if that one cannot be submitted, parameters have changed and counts have
 * not.
 * Threads: as for other operations on these tensors.
 */
#ifndef GENESIS_OPTIM_H
#define GENESIS_OPTIM_H

#include "genesis/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    GN_OPTIM_STATES_MOST = 3,
    GN_OPTIM_SCALARS_MOST = 3,
};

/* What a step works with. Every list has `count` tensors; those of one parameter have its shape. */
typedef struct gn_optim_lists {
    int count;
    gn_tensor *const *parameters, *const *gradients;
    gn_tensor *const *states[GN_OPTIM_STATES_MOST]; /* as each optimizer says */
    gn_tensor *const *scalars
        [GN_OPTIM_SCALARS_MOST]; /* of one element each; most have the count of steps, as float32 */
    gn_tensor *scale;  /* gradients are divided by it before all else, and stored so; NULL: 1 */
    gn_tensor *skip;   /* not 0: nothing is done; NULL: 0 */
    bool is_maximized; /* against the gradient's sign */
    bool
        is_recorded; /* by recorded operations, so that gradients go through the step: `skip` is NULL then */
} gn_optim_lists;

/* States: the momentum, if `momentum` is not 0. No scalars. Where `is_first`, the momentum becomes the gradient. */
typedef struct gn_optim_sgd {
    gn_operand rate, momentum, dampening, decay;
    bool has_momentum, is_nesterov, is_first;
} gn_optim_sgd;

GN_API gn_status gn_optim_sgd_step(const gn_optim_lists *lists,
                                   const gn_optim_sgd *options) GN_NODISCARD;

/* Adam, and AdamW if `is_decoupled`. States: the averages of the gradient and of its square, and the largest one of these if
 * `is_amsgrad`. Scalars: the steps. */
typedef struct gn_optim_adam {
    gn_operand rate, beta1, beta2, epsilon, decay;
    bool is_decoupled, is_amsgrad;
} gn_optim_adam;

GN_API gn_status gn_optim_adam_step(const gn_optim_lists *lists,
                                    const gn_optim_adam *options) GN_NODISCARD;

/* States: as Adam's. Scalars: the steps, and the product of the momenta, which begins with 1. */
typedef struct gn_optim_nadam {
    gn_operand rate, beta1, beta2, epsilon, decay, momentum_decay;
    bool is_decoupled;
} gn_optim_nadam;

GN_API gn_status gn_optim_nadam_step(const gn_optim_lists *lists,
                                     const gn_optim_nadam *options) GN_NODISCARD;

/* States: as Adam's. Scalars: the steps. */
typedef struct gn_optim_radam {
    gn_operand rate, beta1, beta2, epsilon, decay;
    bool is_decoupled;
} gn_optim_radam;

GN_API gn_status gn_optim_radam_step(const gn_optim_lists *lists,
                                     const gn_optim_radam *options) GN_NODISCARD;

/* States: the average of the gradient and the largest absolute value. Scalars: the steps. */
typedef struct gn_optim_adamax {
    gn_operand rate, beta1, beta2, epsilon, decay;
} gn_optim_adamax;

GN_API gn_status gn_optim_adamax_step(const gn_optim_lists *lists,
                                      const gn_optim_adamax *options) GN_NODISCARD;

/* States: the average of the square, the momentum if `has_momentum`, the average of the gradient if `is_centered`. Scalars: the
 * steps. */
typedef struct gn_optim_rmsprop {
    gn_operand rate, alpha, epsilon, decay, momentum;
    bool has_momentum, is_centered;
} gn_optim_rmsprop;

GN_API gn_status gn_optim_rmsprop_step(const gn_optim_lists *lists,
                                       const gn_optim_rmsprop *options) GN_NODISCARD;

/* States: the sum of the squares. Scalars: the steps. */
typedef struct gn_optim_adagrad {
    gn_operand rate, rate_decay, epsilon, decay;
} gn_optim_adagrad;

GN_API gn_status gn_optim_adagrad_step(const gn_optim_lists *lists,
                                       const gn_optim_adagrad *options) GN_NODISCARD;

/* States: the averages of the squares of the gradient and of the change. Scalars: the steps. */
typedef struct gn_optim_adadelta {
    gn_operand rate, rho, epsilon, decay;
} gn_optim_adadelta;

GN_API gn_status gn_optim_adadelta_step(const gn_optim_lists *lists,
                                        const gn_optim_adadelta *options) GN_NODISCARD;

/* States: the average of the parameter, which begins when `start` steps were done. Scalars: the steps, the weight of the next
 * value in the average, which begins with 1, and the rate of the next step, which begins with `rate`. */
typedef struct gn_optim_asgd {
    gn_operand rate, lambda, alpha, start, decay;
} gn_optim_asgd;

GN_API gn_status gn_optim_asgd_step(const gn_optim_lists *lists,
                                    const gn_optim_asgd *options) GN_NODISCARD;

/* States: the gradient before, and the size of an element's step, which begins with the rate. Scalars: the steps. */
typedef struct gn_optim_rprop {
    gn_operand shrinkage, growth, least, most;
} gn_optim_rprop;

GN_API gn_status gn_optim_rprop_step(const gn_optim_lists *lists,
                                     const gn_optim_rprop *options) GN_NODISCARD;

/* States: the average of the gradient. No scalars. */
typedef struct gn_optim_lion {
    gn_operand rate, beta1, beta2, decay;
} gn_optim_lion;

GN_API gn_status gn_optim_lion_step(const gn_optim_lists *lists,
                                    const gn_optim_lion *options) GN_NODISCARD;

/* How Muon's rate depends on a matrix of A rows and B columns. */
typedef enum gn_muon_rate {
    GN_MUON_ORIGINAL,           /* times sqrt(max(1, A / B)) */
    GN_MUON_MATCH_RMS_ADAMW,    /* times 0.2 sqrt(max(A, B)) */
    GN_MUON_SPECTRAL_UNCLAMPED, /* times sqrt(A / B) */
} gn_muon_rate;

/* Parameters are matrices. States: the momentum. No scalars. The change is made orthogonal by `iterations` of Newton-Schulz in
 * bfloat16. Several launches for each matrix. */
typedef struct gn_optim_muon {
    gn_operand rate, momentum, decay;
    double coefficients[3], epsilon;
    int iterations;
    bool is_nesterov;
    gn_muon_rate adjustment;
} gn_optim_muon;

GN_API gn_status gn_optim_muon_step(const gn_optim_lists *lists,
                                    const gn_optim_muon *options) GN_NODISCARD;

#ifdef __cplusplus
}
#endif

#endif
