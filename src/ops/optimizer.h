/*
 * optimizer.h: how the step of an optimizer (genesis/optim.h) is run: a function writes its program for parameters that have
 * their device and their scalars in common.
 */
#ifndef GNI_OPS_OPTIMIZER_H
#define GNI_OPS_OPTIMIZER_H

#include "genesis/optim.h"
#include "ops/list_writer.h"

/* A program that is being written. Values are the writer's. */
struct gni_optim_writing {
    struct gni_list_writer list;
    const void *options;
    gn_device *device; /* of the parameters */
    bool is_recorded;
    bool must_know;          /* hyperparameters are read, whatever device they are on */
    gn_status status;        /* of numbers that are read from tensors: the first failure */
    int parameter, gradient; /* before the step; the gradient with its scale and sign */
    int states[GN_OPTIM_STATES_MOST];
    int scalars[GN_OPTIM_SCALARS_MOST], before[GN_OPTIM_SCALARS_MOST];
};

struct gni_optimizer {
    const char *name;
    int state_count, scalar_count;
    bool is_preparing; /* gradients stay as they are: another program follows */
    /* The other scalars, after the count of steps; NULL: there are none. */
    void (*advance)(struct gni_optim_writing *writing);
    void (*write)(
        struct gni_optim_writing *writing); /* `scalars` are those after the step, and `before` */
};

/* The value of a hyperparameter. */
int gni_optim_number(struct gni_optim_writing *writing, gn_operand operand);

/* What a parameter, or a state, becomes. */
void gni_optim_parameter(struct gni_optim_writing *writing, int value);
void gni_optim_state(struct gni_optim_writing *writing, int state, int value);

gn_status gni_optim_run(const struct gni_optimizer *optimizer, const gn_optim_lists *lists,
                        const void *options) GN_NODISCARD;

#endif
