/*
 * python_graph_nodes.c: the operations that made tensors, as objects: Tensor.grad_fn.
 */
#include "module.h"

#include <ctype.h>
#include <string.h>

/* What made a tensor. */
struct node_object {
    PyObject_HEAD gn_gradient_node *node; /* a reference */
};

static gn_gradient_node *node_of(PyObject *self)
{
    return ((struct node_object *)self)->node;
}

static void node_free(PyObject *self)
{
    gn_gradient_node_release(node_of(self));
    object_free(self);
}

/* Takes the reference over. */
static PyObject *node_show(const struct module_state *state, gn_gradient_node *node)
{
    PyObject *made = object_alloc((PyTypeObject *)state->node_class);
    if (made != NULL)
        ((struct node_object *)made)->node = node;
    else
        gn_gradient_node_release(node);
    return made;
}

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

static bool is_leaf(const gn_gradient_node *node)
{
    return strcmp(gn_gradient_node_get_name(node), "leaf") == 0;
}

/* "log_softmax" is "LogSoftmaxBackward0", and an operation of the program's "MyOperationBackward". */
static PyObject *node_name(PyObject *self, PyObject *unused)
{
    (void)unused;
    char words[64];
    size_t length = 0;
    bool is_first = true;
    const char *name = gn_gradient_node_get_name(node_of(self));
    if (is_leaf(node_of(self)))
        return PyUnicode_FromString("AccumulateGrad");
    if (isupper((unsigned char)name[0]))
        return PyUnicode_FromFormat("%sBackward", name);
    for (const char *at = public_name(name); *at != '\0' && length < sizeof words - 1; at++) {
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

/* Two objects are equal if they are the same operation. */
static PyObject *node_compare(PyObject *self, PyObject *other, int operation)
{
    if (Py_TYPE(self) != Py_TYPE(other) || (operation != Py_EQ && operation != Py_NE))
        Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((node_of(self) == node_of(other)) == (operation == Py_EQ));
}

static Py_hash_t node_hash(PyObject *self)
{
    return (Py_hash_t)((uintptr_t)node_of(self) >> 4);
}

/* A pair for each input: its operation, or None, and which of that one's results it is. */
static PyObject *get_next_functions(PyObject *self, void *unused)
{
    (void)unused;
    int count = gn_gradient_node_get_count(node_of(self));
    const struct module_state *state = module_state_of_object(self);
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple != NULL && i < count; i++) {
        gn_gradient_node *next;
        int number;
        gn_gradient_node_get_next(node_of(self), i, &next, &number);
        if (next != NULL)
            gn_gradient_node_retain(next);
        PyObject *one = next != NULL ? node_show(state, next) : Py_NewRef(Py_None);
        PyObject *pair = one != NULL ? Py_BuildValue("(Ni)", one, number) : NULL;
        if (pair == NULL || PyTuple_SetItem(tuple, i, pair) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *get_variable(PyObject *self, void *unused)
{
    (void)unused;
    gn_tensor *leaf = gn_gradient_node_get_leaf(node_of(self));
    return leaf != NULL ? tensor_find_python(module_state_of_object(self), leaf)
                        : Py_NewRef(Py_None);
}

static PyObject *get_location(PyObject *self, void *unused)
{
    (void)unused;
    char text[256];
    return PyUnicode_FromString(
        gn_history_describe(gn_gradient_node_get_site(node_of(self)), text, sizeof text));
}

static PyObject *get_sequence(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(gn_gradient_node_get_sequence(node_of(self)));
}

/* A list, and the state to make its items with. */
struct listing {
    struct module_state *state;
    PyObject *list; /* NULL after an exception */
};

static void listing_add(struct listing *listing, PyObject *item)
{
    if (listing->list != NULL && (item == NULL || PyList_Append(listing->list, item) < 0))
        Py_CLEAR(listing->list);
    Py_XDECREF(item);
}

static void saved_visit(void *context, const gn_saved_value *value)
{
    struct listing *listing = context;
    if (value->tensor != NULL)
        gn_tensor_retain(value->tensor);
    PyObject *tensor = value->tensor != NULL ? tensor_find_python(listing->state, value->tensor)
                                             : Py_NewRef(Py_None);
    listing_add(listing, tensor != NULL
                             ? Py_BuildValue("(NKKO)", tensor, (unsigned long long)value->nbytes,
                                             (unsigned long long)value->address,
                                             value->is_leaf ? Py_True : Py_False)
                             : NULL);
}

/* A list of (tensor or None, bytes, address, whether it is a leaf's memory). */
static PyObject *node_saved(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct listing listing = {module_state_of_object(self), PyList_New(0)};
    gn_gradient_node_visit_saved(node_of(self), saved_visit, &listing);
    return listing.list;
}

static void node_visit(void *context, gn_gradient_node *node)
{
    struct listing *listing = context;
    gn_gradient_node_retain(node);
    listing_add(listing, node_show(listing->state, node));
}

static PyObject *listed_nodes(PyObject *module, PyObject *unused)
{
    (void)unused;
    struct listing listing = {module_state_of(module), PyList_New(0)};
    gn_gradient_nodes_visit(node_visit, &listing);
    return listing.list;
}

static PyMethodDef node_methods[] = {
    {"name", node_name, METH_NOARGS, "name($self, /)\n--\n\nThe name, as \"ExpBackward0\"."},
    {"_saved", node_saved, METH_NOARGS, "_saved($self, /)\n--\n\nWhat it has saved."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef node_properties[] = {
    {"next_functions", get_next_functions, NULL,
     "For each input the operation that made it, or None, and which of its results it is.", NULL},
    {"variable", get_variable, NULL, "The leaf whose gradient it accumulates; None: no leaf.",
     NULL},
    {"location", get_location, NULL,
     "Where it was called, if memory debugging or profiling was on then; else empty.", NULL},
    {"_sequence", get_sequence, NULL, "Larger for what was recorded later.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef node_functions[] = {
    {"_listed_nodes", listed_nodes, METH_NOARGS,
     "_listed_nodes($module, /)\n--\n\nThe operations that were recorded with their places."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot node_slots[] = {
    {Py_tp_doc, "The operation that made a tensor: ``Tensor.grad_fn``."},
    {Py_tp_dealloc, node_free},
    {Py_tp_methods, node_methods},
    {Py_tp_getset, node_properties},
    {Py_tp_repr, node_repr},
    {Py_tp_richcompare, node_compare},
    {Py_tp_hash, node_hash},
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
    gn_gradient_node *node;
    gn_status status;
    CALL_HELD(status, gn_tensor_get_node(tensor_of(self), &node));
    if (status != GN_OK)
        return error_raise(tensor_state(self), status);
    if (node != NULL && !is_leaf(node))
        return node_show(tensor_state(self), node);
    gn_gradient_node_release(node);
    Py_RETURN_NONE;
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
    if (PyModule_AddType(module, (PyTypeObject *)state->node_class) < 0)
        return -1;
    return PyModule_AddFunctions(module, node_functions);
}
