/*
 * python_autograd.c: gradients of tensors, as genesis/autograd.h has them: requires_grad, grad, backward() and their like.
 *
 * The gradient of a leaf is a gn_tensor that the leaf holds. It may have a Tensor already: tensor_find_python() gives that
 * one, so that `x.grad is x.grad`. Errors about gradients are RuntimeErrors, as PyTorch's are.
 */
#include "module.h"

#include <limits.h>

PyObject *gradient_raise(const struct module_state *state, const char *function, gn_status status)
{
    bool is_about_values = status == GN_ERROR_INVALID_VALUE || status == GN_ERROR_TYPE;
    return error_raise_in(state, function, is_about_values ? GN_ERROR_UNSUPPORTED : status);
}

int gradient_refuse(PyObject *self, const char *function)
{
    if (!gn_tensor_requires_gradient(tensor_of(self)))
        return 0;
    PyErr_Format(PyExc_RuntimeError,
                 "%s: the tensor requires a gradient, which would not follow: use "
                 "detach() first",
                 function);
    return -1;
}

PyObject *gradient_request(PyObject *made, bool is_required)
{
    if (made == NULL || !is_required)
        return made;
    gn_status status = gn_tensor_set_requires_gradient(tensor_of(made), true);
    if (status == GN_OK)
        return made;
    (void)gradient_raise(tensor_state(made), NULL, status);
    Py_DECREF(made);
    return NULL;
}

/* Whether a tensor, or one of a list or tuple of tensors, needs a gradient. */
static bool needs_gradient(struct module_state *state, PyObject *object)
{
    if (object == NULL)
        return false;
    if (tensor_check(state, object))
        return gn_tensor_requires_gradient(tensor_of(object));
    bool is_needed = false;
    if (PyTuple_Check(object))
        for (Py_ssize_t i = 0; !is_needed && i < PyTuple_Size(object); i++)
            is_needed = needs_gradient(state, PyTuple_GetItem(object, i));
    else if (PyList_Check(object))
        for (Py_ssize_t i = 0; !is_needed && i < PyList_Size(object); i++)
            is_needed = needs_gradient(state, PyList_GetItem(object, i));
    return is_needed;
}

int out_refuse(struct module_state *state, const char *name, PyObject *const *objects, int count,
               PyObject *out)
{
    if (out == NULL || out == Py_None || !gn_gradients_are_on())
        return 0;
    const char *which = needs_gradient(state, out) ? "out" : NULL;
    for (int i = 0; which == NULL && i < count; i++)
        which = needs_gradient(state, objects[i]) ? "an argument" : NULL;
    if (which == NULL)
        return 0;
    PyErr_Format(PyExc_RuntimeError,
                 "%s: out= has no gradient, and %s requires one: leave out= away, detach() the "
                 "tensor, or use no_grad()",
                 name, which);
    return -1;
}

/* ---- of a tensor ----------------------------------------------------------------------------- */

static PyObject *get_requires_grad(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(gn_tensor_requires_gradient(tensor_of(self)));
}

static int requires_grad_set(PyObject *self, PyObject *value)
{
    if (value == NULL || !PyBool_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "requires_grad is True or False");
        return -1;
    }
    gn_status status = gn_tensor_set_requires_gradient(tensor_of(self), value == Py_True);
    if (status != GN_OK)
        (void)gradient_raise(tensor_state(self), "requires_grad", status);
    return status == GN_OK ? 0 : -1;
}

static int set_requires_grad(PyObject *self, PyObject *value, void *unused)
{
    (void)unused;
    return requires_grad_set(self, value);
}

static PyObject *method_requires_grad(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                      PyObject *keywords)
{
    static const struct call call = {"requires_grad_", {"requires_grad"}, 1, 1, 0};
    PyObject *taken[CALL_ARGUMENTS_MOST];
    if (call_take(&call, arguments, count, keywords, taken) < 0 ||
        requires_grad_set(self, taken[0] != NULL ? taken[0] : Py_True) < 0)
        return NULL;
    return Py_NewRef(self);
}

static PyObject *get_grad(PyObject *self, void *unused)
{
    (void)unused;
    gn_tensor *gradient;
    gn_status status = gn_tensor_get_gradient(tensor_of(self), &gradient);
    if (status != GN_OK)
        return gradient_raise(tensor_state(self), "grad", status);
    return gradient != NULL ? tensor_find_python(tensor_state(self), gradient) : Py_NewRef(Py_None);
}

/* NULL is what `del x.grad` gives. */
static int set_grad(PyObject *self, PyObject *value, void *unused)
{
    (void)unused;
    struct module_state *state = tensor_state(self);
    bool is_none = value == NULL || value == Py_None;
    if (!is_none && !tensor_check(state, value)) {
        PyErr_Format(PyExc_TypeError, "grad is a Tensor or None, not %R", value);
        return -1;
    }
    if (value == self) {
        PyErr_SetString(PyExc_RuntimeError, "grad: a tensor cannot be its own gradient");
        return -1;
    }
    gn_status status = gn_tensor_set_gradient(tensor_of(self), is_none ? NULL : tensor_of(value));
    if (status != GN_OK)
        (void)gradient_raise(state, "grad", status);
    return status == GN_OK ? 0 : -1;
}

static PyObject *get_is_leaf(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(gn_tensor_is_leaf(tensor_of(self)));
}

PyObject *tensor_detach(PyObject *self)
{
    gn_tensor *detached;
    gn_status status;
    CALL_OPERATION(gn_is_pending(), status, gn_tensor_detach(tensor_of(self), &detached));
    return tensor_or_raise(tensor_state(self), status, detached);
}

/* A result becomes a leaf that needs no gradient. */
static PyObject *method_detach_in_place(PyObject *self, PyObject *unused)
{
    (void)unused;
    gn_status status = gn_tensor_forget_gradient(tensor_of(self));
    if (status != GN_OK)
        return gradient_raise(tensor_state(self), "detach_", status);
    return Py_NewRef(self);
}

static PyObject *method_retain_grad(PyObject *self, PyObject *unused)
{
    (void)unused;
    gn_status status = gn_tensor_retain_gradient(tensor_of(self));
    if (status != GN_OK)
        return gradient_raise(tensor_state(self), "retain_grad", status);
    Py_RETURN_NONE;
}

static PyObject *get_retains_grad(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(gn_tensor_retains_gradient(tensor_of(self)));
}

static PyObject *method_detach(PyObject *self, PyObject *unused)
{
    (void)unused;
    return tensor_detach(self);
}

/* ---- backward -------------------------------------------------------------------------------- */

/* `retain` None is what `create` is. */
static int flags_take(PyObject *retain, PyObject *create, unsigned *flags)
{
    int is_created = create != NULL ? PyObject_IsTrue(create) : 0;
    bool is_told = retain != NULL && retain != Py_None;
    int is_retained = is_told ? PyObject_IsTrue(retain) : is_created;
    if (is_created < 0 || is_retained < 0)
        return -1;
    *flags = (is_created ? GN_CREATE_GRAPH : 0) | (is_retained ? GN_RETAIN_GRAPH : 0);
    return 0;
}

/* The tensors of a tuple, NULL for None where `has_none`: freed by PyMem_Free(). */
static gn_tensor **list_take(struct module_state *state, const char *name, PyObject *items,
                             bool has_none)
{
    Py_ssize_t count = PyTuple_Size(items);
    gn_tensor **tensors = PyMem_Calloc((size_t)count + 1, sizeof(gn_tensor *));
    if (tensors == NULL)
        return (gn_tensor **)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *one = PyTuple_GetItem(items, i);
        if (tensor_check(state, one)) {
            tensors[i] = tensor_of(one);
        } else if (one != Py_None || !has_none) {
            PyErr_Format(PyExc_TypeError, "%s: %R is not a Tensor", name, one);
            PyMem_Free(tensors);
            return NULL;
        }
    }
    return tensors;
}

/* A Tensor, or several in a sequence, as a tuple; None or NULL is an empty one. */
static PyObject *inputs_tuple(struct module_state *state, PyObject *inputs)
{
    if (inputs == NULL || inputs == Py_None)
        return PyTuple_New(0);
    PyObject *tuple =
        tensor_check(state, inputs) ? PyTuple_Pack(1, inputs) : PySequence_Tuple(inputs);
    if (tuple != NULL && PyTuple_Size(tuple) == 0) {
        Py_CLEAR(tuple);
        PyErr_SetString(PyExc_RuntimeError, "backward: inputs must not be empty");
    }
    return tuple;
}

static PyObject *method_backward(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                 PyObject *keywords)
{
    static const struct call call = {
        "backward", {"gradient", "retain_graph", "create_graph", "inputs"}, 4, 4, 0};
    struct module_state *state = tensor_state(self);
    PyObject *taken[CALL_ARGUMENTS_MOST], *inputs;
    gn_tensor *root = tensor_of(self), *given = NULL, **tensors = NULL;
    unsigned flags;
    gn_status status = GN_OK;
    if (call_take(&call, arguments, count, keywords, taken) < 0 ||
        flags_take(taken[1], taken[2], &flags) < 0)
        return NULL;
    if (taken[0] != NULL && taken[0] != Py_None) {
        if (!tensor_check(state, taken[0])) {
            PyErr_Format(PyExc_TypeError, "backward: the gradient is a Tensor or None, not %R",
                         taken[0]);
            return NULL;
        }
        given = tensor_of(taken[0]);
    }
    if ((inputs = inputs_tuple(state, taken[3])) == NULL ||
        (tensors = list_take(state, "backward", inputs, false)) == NULL) {
        Py_XDECREF(inputs);
        return NULL;
    }
    int input_count = (int)PyTuple_Size(inputs);
    if (input_count > 0)
        CALL_ALLOCATING(status, gn_backward_to(1, &root, &given, input_count, tensors, flags));
    else
        CALL_ALLOCATING(status, gn_backward(1, &root, &given, flags));
    PyMem_Free(tensors);
    Py_DECREF(inputs);
    if (status != GN_OK)
        return gradient_raise(state, "backward", status);
    Py_RETURN_NONE;
}

/* New references become a tuple of Tensors, None for NULL. */
static PyObject *results_to_python(struct module_state *state, int count, gn_tensor **results)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; i < count; i++) {
        PyObject *one = NULL;
        if (tuple == NULL)
            gn_tensor_release(results[i]);
        else
            one = results[i] != NULL ? tensor_find_python(state, results[i]) : Py_NewRef(Py_None);
        if (tuple != NULL && (one == NULL || PyTuple_SetItem(tuple, i, one) < 0))
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* _backward(outputs, gradients, inputs, retain_graph, create_graph, allow_unused): without inputs, an empty tuple, leaves
 * get their gradients; with allow_unused None the inputs get them. */
static PyObject *backward(PyObject *module, PyObject *arguments)
{
    struct module_state *state = module_state_of(module);
    PyObject *items[3], *retain, *create, *unused, *made = NULL;
    gn_tensor **tensors[4] = {NULL};
    static const char *const names[] = {"backward", "grad"};
    unsigned flags;
    gn_status status;
    if (!PyArg_ParseTuple(arguments, "O!O!O!OOO:_backward", &PyTuple_Type, &items[0], &PyTuple_Type,
                          &items[1], &PyTuple_Type, &items[2], &retain, &create, &unused) ||
        flags_take(retain, create, &flags) < 0)
        return NULL;
    bool is_kept = unused == Py_None; /* by the inputs */
    int allows_unused = is_kept ? 0 : PyObject_IsTrue(unused);
    if (allows_unused < 0)
        return NULL;
    Py_ssize_t count = PyTuple_Size(items[0]), input_count = PyTuple_Size(items[2]);
    const char *name = names[input_count > 0 && !is_kept];
    if (PyTuple_Size(items[1]) != count || count > INT_MAX || input_count > INT_MAX) {
        PyErr_Format(PyExc_RuntimeError, "%s: %zd tensors have %zd gradients", name, count,
                     PyTuple_Size(items[1]));
        return NULL;
    }
    for (int i = 0; i < 3; i++)
        if ((tensors[i] = list_take(state, name, items[i], i == 1)) == NULL)
            goto free_lists;
    tensors[3] = PyMem_Calloc((size_t)input_count + 1, sizeof(gn_tensor *));
    if (tensors[3] == NULL) {
        (void)PyErr_NoMemory();
        goto free_lists;
    }
    flags |= allows_unused ? GN_ALLOW_UNUSED : 0;
    if (input_count > 0 && is_kept)
        CALL_ALLOCATING(status, gn_backward_to((int)count, tensors[0], tensors[1], (int)input_count,
                                               tensors[2], flags));
    else if (input_count > 0)
        CALL_ALLOCATING(status, gn_grad((int)count, tensors[0], tensors[1], (int)input_count,
                                        tensors[2], flags, tensors[3]));
    else
        CALL_ALLOCATING(status, gn_backward((int)count, tensors[0], tensors[1], flags));
    made = status == GN_OK ? results_to_python(state, is_kept ? 0 : (int)input_count, tensors[3])
                           : gradient_raise(state, name, status);
free_lists:
    for (int i = 0; i < 4; i++)
        PyMem_Free(tensors[i]);
    return made;
}

/* ---- the mode -------------------------------------------------------------------------------- */

static PyObject *is_grad_enabled(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(gn_gradients_are_on());
}

static PyObject *set_gradients(PyObject *module, PyObject *is_on)
{
    (void)module;
    int is_true = PyObject_IsTrue(is_on);
    return is_true < 0 ? NULL : PyBool_FromLong(gn_set_gradients(is_true > 0));
}

static PyObject *set_gradient_checks(PyObject *module, PyObject *is_on)
{
    (void)module;
    int is_true = PyObject_IsTrue(is_on);
    return is_true < 0 ? NULL : PyBool_FromLong(gn_set_gradient_checks(is_true > 0));
}

/* ---- the class and the module ------------------------------------------------------------------ */

static PyGetSetDef tensor_gradient_properties[] = {
    {"requires_grad", get_requires_grad, set_requires_grad,
     "Whether operations with it are recorded, so that backward() finds its gradient.", NULL},
    {"grad", get_grad, set_grad, "What backward() has summed up for a leaf; None: nothing yet.",
     NULL},
    {"retains_grad", get_retains_grad, NULL, "Whether it keeps its gradient, and is no leaf.",
     NULL},
    {"is_leaf", get_is_leaf, NULL, "Whether no recorded operation has made it.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef tensor_gradient_methods[] = {
    {"requires_grad_", WITH_VECTOR(method_requires_grad),
     "requires_grad_($self, requires_grad=True)\n--\n\n"
     "Sets whether operations with it are recorded; gives the tensor itself."},
    {"detach", method_detach, METH_NOARGS,
     "detach($self, /)\n--\n\nA tensor of the same memory that requires no gradient."},
    {"detach_", method_detach_in_place, METH_NOARGS,
     "detach_($self, /)\n--\n\nThe tensor forgets how it was made, and requires no gradient."},
    {"retain_grad", method_retain_grad, METH_NOARGS,
     "retain_grad($self, /)\n--\n\nThe tensor keeps its gradient in ``grad``, as a leaf does."},
    {"backward", WITH_VECTOR(method_backward),
     "backward($self, gradient=None, retain_graph=None, create_graph=False, inputs=None)\n--\n\n"
     "Adds the gradients of this tensor to ``grad`` of all leaves that it depends on.\n\n"
     "`gradient` is that of the tensor itself: 1 if it has one element. The graph goes, unless\n"
     "`retain_graph` keeps it for another call; with `create_graph` the gradients can be\n"
     "differentiated themselves. With `inputs` these tensors alone get gradients.\n\n"
     "Examples\n--------\n>>> import genesis\n"
     ">>> x = genesis.tensor([1.0, 2.0], requires_grad=True)\n"
     ">>> (x * x).sum().backward()\n>>> x.grad\ntensor([2., 4.])\n"},
    {NULL, NULL, 0, NULL},
};

PyMethodDef autograd_functions[] = {
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS,
     "is_grad_enabled($module, /)\n--\n\n"
     "Whether this thread records operations for gradients.\n\n"
     "Examples\n--------\n>>> import genesis\n>>> genesis.is_grad_enabled()\nTrue\n"},
    {"_set_gradients", set_gradients, METH_O,
     "_set_gradients($module, is_on, /)\n--\n\nSets whether it does; gives what it was."},
    {"_set_gradient_checks", set_gradient_checks, METH_O,
     "_set_gradient_checks($module, is_on, /)\n--\n\n"
     "Sets whether gradients with a NaN are errors; gives what it was."},
    {"_backward", backward, METH_VARARGS,
     "_backward($module, outputs, gradients, inputs, retain_graph, create_graph, allow_unused, "
     "/)\n"
     "--\n\nThe gradients of the inputs; without inputs those of all leaves get their sums."},
    {NULL, NULL, 0, NULL},
};

int autograd_init(PyObject *module, struct module_state *state)
{
    for (PyGetSetDef *one = tensor_gradient_properties; one->name != NULL; one++) {
        PyObject *descriptor = PyDescr_NewGetSet((PyTypeObject *)state->tensor_class, one);
        int status = descriptor != NULL
                         ? PyObject_SetAttrString(state->tensor_class, one->name, descriptor)
                         : -1;
        Py_XDECREF(descriptor);
        if (status < 0)
            return -1;
    }
    if (methods_add(state->tensor_class, tensor_gradient_methods) < 0)
        return -1;
    return PyModule_AddFunctions(module, autograd_functions);
}
