/*
 * python_graph_nodes.c: the operations that made tensors, as objects: Tensor.grad_fn.
 */
#include "module.h"

#include <ctype.h>
#include <string.h>

/* What made a tensor. It has the name alone: the tensor holds the graph. */
struct node_object {
    PyObject_HEAD const char *operation; /* static memory */
};

/* The name that Python has for an operation: "mul" for "multiply". */
static const char *public_name(const char *operation)
{
#define PAIR(NAME, c_name, arity, domain, name, ...) {#c_name, name},
    static const char *const pairs[][2] = {GN_OP_LIST(PAIR)};
#undef PAIR
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (strcmp(pairs[i][0], operation) == 0 && pairs[i][1][0] != '\0')
            return pairs[i][1];
    return operation;
}

/* "log_softmax" is "LogSoftmaxBackward0". */
static PyObject *node_name(PyObject *self, PyObject *unused)
{
    (void)unused;
    char words[64];
    size_t length = 0;
    bool is_first = true;
    for (const char *at = public_name(((struct node_object *)self)->operation);
         *at != '\0' && length < sizeof words - 1; at++) {
        if (isalnum((unsigned char)*at))
            words[length++] = (char)(is_first ? toupper((unsigned char)*at) : *at);
        is_first = !isalnum((unsigned char)*at);
    }
    words[length] = '\0';
    return PyUnicode_FromFormat("%sBackward0", words);
}

static PyObject *node_repr(PyObject *self)
{
    PyObject *name = node_name(self, NULL);
    PyObject *text = name != NULL ? PyUnicode_FromFormat("<%U>", name) : NULL;
    Py_XDECREF(name);
    return text;
}

static PyMethodDef node_methods[] = {
    {"name", node_name, METH_NOARGS, "name($self, /)\n--\n\nThe name, as \"ExpBackward0\"."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot node_slots[] = {
    {Py_tp_doc, "The operation that made a tensor: ``Tensor.grad_fn``."},
    {Py_tp_dealloc, object_free},
    {Py_tp_methods, node_methods},
    {Py_tp_repr, node_repr},
    {0, NULL},
};

static PyType_Spec node_spec = {
    .name = "genesis.autograd.Node",
    .basicsize = sizeof(struct node_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = node_slots,
};

static PyObject *get_grad_fn(PyObject *self, void *unused)
{
    (void)unused;
    const char *operation = gn_tensor_get_operation(tensor_of(self));
    if (operation == NULL)
        return Py_NewRef(Py_None);
    PyObject *made = object_alloc((PyTypeObject *)tensor_state(self)->node_class);
    if (made != NULL)
        ((struct node_object *)made)->operation = operation;
    return made;
}

static PyGetSetDef grad_fn_property = {"grad_fn", get_grad_fn, NULL,
                                       "The operation that made it; None for a leaf.", NULL};

int graph_nodes_init(PyObject *module, struct module_state *state)
{
    PyObject *descriptor =
        PyDescr_NewGetSet((PyTypeObject *)state->tensor_class, &grad_fn_property);
    int status = descriptor != NULL
                     ? PyObject_SetAttrString(state->tensor_class, "grad_fn", descriptor)
                     : -1;
    Py_XDECREF(descriptor);
    if (status < 0)
        return -1;
    state->node_class = PyType_FromModuleAndSpec(module, &node_spec, NULL);
    if (state->node_class == NULL)
        return -1;
    return PyModule_AddType(module, (PyTypeObject *)state->node_class);
}
