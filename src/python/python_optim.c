/*
 * python_optim.c: steps of optimizers (genesis/optim.h) for genesis.optim: the lists are gathered here, from the parameters, their
 * gradients, and the optimizer's dict of states, so that a step costs no Python for each parameter.
 */
#include "module.h"

#include <limits.h>
#include <string.h>

enum {
    MAXIMIZE = 1,
    RECORD = 2,
    FIRST_OPTION = 4, /* and on: what an optimizer has of its own, in the order of its row */
    OPTION_0 = FIRST_OPTION,
    OPTION_1 = FIRST_OPTION << 1,
    OPTION_2 = FIRST_OPTION << 2,
    OPTION_3 = FIRST_OPTION << 3,
    NUMBERS_MOST = 8,
    LISTS_MOST = 2 + GN_OPTIM_STATES_MOST + GN_OPTIM_SCALARS_MOST,
};

/* A call's lists, one behind the other in `tensors`, with a reference to each tensor. */
struct lists {
    gn_optim_lists lists;
    gn_tensor **tensors;
    Py_ssize_t used;
    gn_operand numbers[NUMBERS_MOST];
};

struct state_name {
    const char *name;
    unsigned option; /* the state is there with it alone; 0: always */
};

struct optimizer {
    const char *name;
    struct state_name states[GN_OPTIM_STATES_MOST];
    const char *scalars[GN_OPTIM_SCALARS_MOST];
    int number_count;
    gn_status (*step)(const gn_optim_lists *lists, const gn_operand *numbers, unsigned flags);
};

/* ---- the optimizers -------------------------------------------------------------------------- */

static gn_status sgd_step(const gn_optim_lists *lists, const gn_operand *n, unsigned flags)
{
    const gn_optim_sgd sgd = {.rate = n[0],
                              .momentum = n[1],
                              .dampening = n[2],
                              .decay = n[3],
                              .has_momentum = (flags & OPTION_0) != 0,
                              .is_nesterov = (flags & OPTION_1) != 0,
                              .is_first = (flags & OPTION_2) != 0};
    return gn_optim_sgd_step(lists, &sgd);
}

static gn_status adam_step(const gn_optim_lists *lists, const gn_operand *n, unsigned flags)
{
    const gn_optim_adam adam = {.rate = n[0],
                                .beta1 = n[1],
                                .beta2 = n[2],
                                .epsilon = n[3],
                                .decay = n[4],
                                .is_amsgrad = (flags & OPTION_0) != 0,
                                .is_decoupled = (flags & OPTION_1) != 0};
    return gn_optim_adam_step(lists, &adam);
}

static gn_status nadam_step(const gn_optim_lists *lists, const gn_operand *n, unsigned flags)
{
    const gn_optim_nadam nadam = {.rate = n[0],
                                  .beta1 = n[1],
                                  .beta2 = n[2],
                                  .epsilon = n[3],
                                  .decay = n[4],
                                  .momentum_decay = n[5],
                                  .is_decoupled = (flags & OPTION_0) != 0};
    return gn_optim_nadam_step(lists, &nadam);
}

static gn_status radam_step(const gn_optim_lists *lists, const gn_operand *n, unsigned flags)
{
    const gn_optim_radam radam = {.rate = n[0],
                                  .beta1 = n[1],
                                  .beta2 = n[2],
                                  .epsilon = n[3],
                                  .decay = n[4],
                                  .is_decoupled = (flags & OPTION_0) != 0};
    return gn_optim_radam_step(lists, &radam);
}

static gn_status adamax_step(const gn_optim_lists *lists, const gn_operand *n, unsigned flags)
{
    const gn_optim_adamax adamax = {
        .rate = n[0], .beta1 = n[1], .beta2 = n[2], .epsilon = n[3], .decay = n[4]};
    (void)flags;
    return gn_optim_adamax_step(lists, &adamax);
}

static gn_status rmsprop_step(const gn_optim_lists *lists, const gn_operand *n, unsigned flags)
{
    const gn_optim_rmsprop rmsprop = {.rate = n[0],
                                      .alpha = n[1],
                                      .epsilon = n[2],
                                      .decay = n[3],
                                      .momentum = n[4],
                                      .has_momentum = (flags & OPTION_0) != 0,
                                      .is_centered = (flags & OPTION_1) != 0};
    return gn_optim_rmsprop_step(lists, &rmsprop);
}

static gn_status adagrad_step(const gn_optim_lists *lists, const gn_operand *n, unsigned flags)
{
    const gn_optim_adagrad adagrad = {
        .rate = n[0], .rate_decay = n[1], .epsilon = n[2], .decay = n[3]};
    (void)flags;
    return gn_optim_adagrad_step(lists, &adagrad);
}

static gn_status adadelta_step(const gn_optim_lists *lists, const gn_operand *n, unsigned flags)
{
    const gn_optim_adadelta adadelta = {.rate = n[0], .rho = n[1], .epsilon = n[2], .decay = n[3]};
    (void)flags;
    return gn_optim_adadelta_step(lists, &adadelta);
}

static gn_status asgd_step(const gn_optim_lists *lists, const gn_operand *n, unsigned flags)
{
    const gn_optim_asgd asgd = {
        .rate = n[0], .lambda = n[1], .alpha = n[2], .start = n[3], .decay = n[4]};
    (void)flags;
    return gn_optim_asgd_step(lists, &asgd);
}

static gn_status rprop_step(const gn_optim_lists *lists, const gn_operand *n, unsigned flags)
{
    const gn_optim_rprop rprop = {.shrinkage = n[0], .growth = n[1], .least = n[2], .most = n[3]};
    (void)flags;
    return gn_optim_rprop_step(lists, &rprop);
}

static gn_status lion_step(const gn_optim_lists *lists, const gn_operand *n, unsigned flags)
{
    const gn_optim_lion lion = {.rate = n[0], .beta1 = n[1], .beta2 = n[2], .decay = n[3]};
    (void)flags;
    return gn_optim_lion_step(lists, &lion);
}

static double number_of(gn_operand operand)
{
    return operand.scalar.kind == GN_FLOAT64 ? operand.scalar.floating
                                             : (double)operand.scalar.integer;
}

static gn_status muon_step(const gn_optim_lists *lists, const gn_operand *n, unsigned flags)
{
    const gn_optim_muon muon = {.rate = n[0],
                                .momentum = n[1],
                                .decay = n[2],
                                .epsilon = number_of(n[3]),
                                .coefficients = {number_of(n[4]), number_of(n[5]), number_of(n[6])},
                                .iterations = (int)number_of(n[7]),
                                .is_nesterov = (flags & OPTION_0) != 0,
                                .adjustment = (flags & OPTION_1) != 0   ? GN_MUON_MATCH_RMS_ADAMW
                                              : (flags & OPTION_2) != 0 ? GN_MUON_SPECTRAL_UNCLAMPED
                                                                        : GN_MUON_ORIGINAL};
    return gn_optim_muon_step(lists, &muon);
}

static const struct optimizer optimizers[] = {
    {"sgd", {{"momentum_buffer", OPTION_0}}, {NULL}, 4, sgd_step},
    {"adam",
     {{"exp_avg", 0}, {"exp_avg_sq", 0}, {"max_exp_avg_sq", OPTION_0}},
     {"step"},
     5,
     adam_step},
    {"nadam", {{"exp_avg", 0}, {"exp_avg_sq", 0}}, {"step", "mu_product"}, 6, nadam_step},
    {"radam", {{"exp_avg", 0}, {"exp_avg_sq", 0}}, {"step"}, 5, radam_step},
    {"adamax", {{"exp_avg", 0}, {"exp_inf", 0}}, {"step"}, 5, adamax_step},
    {"rmsprop",
     {{"square_avg", 0}, {"momentum_buffer", OPTION_0}, {"grad_avg", OPTION_1}},
     {"step"},
     5,
     rmsprop_step},
    {"adagrad", {{"sum", 0}}, {"step"}, 4, adagrad_step},
    {"adadelta", {{"square_avg", 0}, {"acc_delta", 0}}, {"step"}, 4, adadelta_step},
    {"asgd", {{"ax", 0}}, {"step", "mu", "eta"}, 5, asgd_step},
    {"rprop", {{"prev", 0}, {"step_size", 0}}, {"step"}, 4, rprop_step},
    {"lion", {{"exp_avg", 0}}, {NULL}, 4, lion_step},
    {"muon", {{"momentum_buffer", 0}}, {NULL}, 8, muon_step},
};

static const struct optimizer *optimizer_find(const char *name)
{
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++)
        if (strcmp(optimizers[i].name, name) == 0)
            return &optimizers[i];
    PyErr_Format(PyExc_ValueError, "there is no optimizer '%s'", name);
    return NULL;
}

/* ---- the lists ------------------------------------------------------------------------------- */

/* The names of the states that a call has, and then those of the scalars, as strings of Python. */
struct names {
    PyObject *items[GN_OPTIM_STATES_MOST + GN_OPTIM_SCALARS_MOST];
    int count, state_count;
};

static void names_free(struct names *names)
{
    for (int i = 0; i < names->count; i++)
        Py_DECREF(names->items[i]);
}

static int names_make(const struct optimizer *optimizer, unsigned flags, struct names *names)
{
    const char *words[GN_OPTIM_STATES_MOST + GN_OPTIM_SCALARS_MOST];
    int count = 0;
    names->count = 0;
    for (int i = 0; i < GN_OPTIM_STATES_MOST; i++) {
        const struct state_name *state = &optimizer->states[i];
        if (state->name != NULL && (state->option == 0 || (flags & state->option) != 0))
            words[count++] = state->name;
    }
    names->state_count = count;
    for (int i = 0; i < GN_OPTIM_SCALARS_MOST; i++)
        if (optimizer->scalars[i] != NULL)
            words[count++] = optimizer->scalars[i];
    for (; names->count < count; names->count++) {
        names->items[names->count] = PyUnicode_InternFromString(words[names->count]);
        if (names->items[names->count] == NULL) {
            names_free(names);
            return -1;
        }
    }
    return 0;
}

/* A parameter's states: 1; 0 where one is missing; -1 with an exception. */
static int states_take(const struct module_state *state, PyObject *states, PyObject *parameter,
                       const struct names *names, gn_tensor **found)
{
    PyObject *own = PyDict_GetItemWithError(states, parameter);
    if (own == NULL || !PyDict_Check(own))
        return PyErr_Occurred() != NULL ? -1 : names->count == 0;
    for (int i = 0; i < names->count; i++) {
        PyObject *one = PyDict_GetItemWithError(own, names->items[i]);
        if (one == NULL || one == Py_None)
            return PyErr_Occurred() != NULL ? -1 : 0;
        if (!tensor_check(state, one)) {
            PyErr_Format(PyExc_TypeError, "the state '%U' is a Tensor, not %R", names->items[i],
                         one);
            return -1;
        }
        found[i] = tensor_of(one);
    }
    return 1;
}

/*
 * Takes a parameter with its gradient and states into the lists, which have room for `most`. Without a gradient nothing is
 * taken; without a state the parameter is put into `missing`.
 */
static int parameter_take(const struct module_state *state, PyObject *states, PyObject *parameter,
                          const struct names *names, struct lists *made, Py_ssize_t most,
                          PyObject *missing)
{
    gn_tensor *found[LISTS_MOST], *gradient = NULL;
    if (!tensor_check(state, parameter)) {
        PyErr_Format(PyExc_TypeError, "a parameter is a Tensor, not %R", parameter);
        return -1;
    }
    if (gn_tensor_get_gradient(tensor_of(parameter), &gradient) != GN_OK || gradient == NULL)
        return 0;
    int is_there = states_take(state, states, parameter, names, found);
    if (is_there <= 0) {
        gn_tensor_release(gradient);
        return is_there < 0 ? -1 : PyList_Append(missing, parameter);
    }
    gn_tensor **at = made->tensors + made->used++;
    gn_tensor_retain(tensor_of(parameter));
    at[0] = tensor_of(parameter);
    at[most] = gradient;
    for (int i = 0; i < names->count; i++) {
        gn_tensor_retain(found[i]);
        at[(2 + i) * most] = found[i];
    }
    return 0;
}

static void lists_free(struct lists *made, Py_ssize_t most, int list_count)
{
    for (int i = 0; i < list_count && made->tensors != NULL; i++)
        for (Py_ssize_t k = 0; k < made->used; k++)
            gn_tensor_release(made->tensors[i * most + k]);
    PyMem_Free(made->tensors);
}

static void lists_point(struct lists *made, Py_ssize_t most, const struct names *names)
{
    made->lists.count = (int)made->used;
    made->lists.parameters = made->tensors;
    made->lists.gradients = made->tensors + most;
    for (int i = 0; i < names->state_count; i++)
        made->lists.states[i] = made->tensors + (2 + i) * most;
    for (int i = names->state_count; i < names->count; i++)
        made->lists.scalars[i - names->state_count] = made->tensors + (2 + i) * most;
}

static int numbers_read(struct module_state *state, PyObject *numbers, int count,
                        gn_operand *operands)
{
    if (PyTuple_Size(numbers) != count) {
        PyErr_Format(PyExc_TypeError, "the optimizer has %d numbers, not %zd", count,
                     PyTuple_Size(numbers));
        return -1;
    }
    for (int i = 0; i < count; i++) {
        PyObject *one = PyTuple_GetItem(numbers, i);
        int found = operand_from_python(state, one, &operands[i]);
        if (found == 0)
            PyErr_Format(PyExc_TypeError, "a hyperparameter is a number, or a Tensor, not %R", one);
        if (found != 1)
            return -1;
    }
    return 0;
}

static int tensor_or_none(const struct module_state *state, PyObject *object, const char *what,
                          gn_tensor **tensor)
{
    *tensor = NULL;
    if (object == Py_None)
        return 0;
    if (!tensor_check(state, object)) {
        PyErr_Format(PyExc_TypeError, "%s is a Tensor or None, not %R", what, object);
        return -1;
    }
    *tensor = tensor_of(object);
    return 0;
}

static gn_status step_run(const struct optimizer *optimizer, const struct lists *made,
                          unsigned flags)
{
    bool before = gn_set_gradients((flags & RECORD) != 0);
    gn_status status;
    CALL_ALLOCATING(status, optimizer->step(&made->lists, made->numbers, flags));
    (void)gn_set_gradients(before);
    return status;
}

/*
 * _optim_step(name, parameters, states, numbers, flags, scale, skip): a step of all parameters that have a gradient. Nothing is
 * done, and the list of them comes back, if there are some without the states that they need.
 */
static PyObject *optim_step(PyObject *module, PyObject *arguments)
{
    struct module_state *state = module_state_of(module);
    PyObject *parameters, *states, *numbers, *scale, *skip, *missing, *result = NULL;
    const char *name;
    unsigned flags;
    struct lists made = {.tensors = NULL};
    struct names names;
    if (!PyArg_ParseTuple(arguments, "sO!O!O!IOO:_optim_step", &name, &PyList_Type, &parameters,
                          &PyDict_Type, &states, &PyTuple_Type, &numbers, &flags, &scale, &skip))
        return NULL;
    const struct optimizer *optimizer = optimizer_find(name);
    if (optimizer == NULL || names_make(optimizer, flags, &names) < 0)
        return NULL;
    Py_ssize_t most = PyList_Size(parameters);
    if (most > INT_MAX / LISTS_MOST) {
        names_free(&names);
        return PyErr_NoMemory();
    }
    missing = PyList_New(0);
    made.tensors = PyMem_Calloc((size_t)(most * (2 + names.count)) + 1, sizeof(gn_tensor *));
    if (missing == NULL || made.tensors == NULL) {
        (void)PyErr_NoMemory();
        goto free_all;
    }
    for (Py_ssize_t i = 0; i < most && i < PyList_Size(parameters); i++) {
        PyObject *parameter = Py_NewRef(PyList_GetItem(parameters, i));
        int taken = parameter_take(state, states, parameter, &names, &made, most, missing);
        Py_DECREF(parameter);
        if (taken < 0)
            goto free_all;
    }
    if (PyList_Size(missing) > 0) {
        result = Py_NewRef(missing);
        goto free_all;
    }
    lists_point(&made, most, &names);
    made.lists.is_maximized = (flags & MAXIMIZE) != 0;
    made.lists.is_recorded = (flags & RECORD) != 0;
    if (numbers_read(state, numbers, optimizer->number_count, made.numbers) < 0 ||
        tensor_or_none(state, scale, "grad_scale", &made.lists.scale) < 0 ||
        tensor_or_none(state, skip, "found_inf", &made.lists.skip) < 0)
        goto free_all;
    gn_status status = step_run(optimizer, &made, flags);
    result = status == GN_OK ? Py_NewRef(Py_None) : error_raise_in(state, "step", status);
free_all:
    lists_free(&made, most, 2 + names.count);
    names_free(&names);
    Py_XDECREF(missing);
    return result;
}

PyMethodDef optim_functions[] = {
    {"_optim_step", optim_step, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
