/*
 * python_device.c: genesis.device, the name of a device.
 *
 * A name is a type and an index; it starts nothing and need not exist. "cuda" without an index is
 * the current CUDA device at the time the name is made.
 *
 * In `with device:` new tensors for which no device is named go there, those of this thread only. Blocks lie within
 * each other: each thread has a stack of them.
 */
#include "module.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct device_object {
    PyObject_HEAD gn_device_type type;
    int index; /* 0 on the CPU */
};

struct context {
    struct context *outer;
    gn_device_type type;
    int index;
};

static _Thread_local struct context *innermost;

static struct device_object *device_of(PyObject *object)
{
    return (struct device_object *)object;
}

/* ---- parsing -------------------------------------------------------------------------------- */

static int device_parse_error(const struct module_state *state, PyObject *text)
{
    PyErr_Format(state->invalid_device_error,
                 "%R is not a device: write \"cpu\", \"cuda\" or \"cuda:N\"", text);
    return -1;
}

/* The digits after the colon; -1 if they are not an index. */
static int index_parse(const char *digits)
{
    size_t length = strlen(digits);
    if (length == 0 || length > 4 || strspn(digits, "0123456789") != length)
        return -1;
    return atoi(digits);
}

static int device_parse(const struct module_state *state, PyObject *object, gn_device_type *type,
                        int *index)
{
    const char *text = text_from_python(object);
    if (text == NULL) {
        PyErr_Clear(); /* zero bytes and lone surrogates name nothing */
        return device_parse_error(state, object);
    }
    const char *colon = strchr(text, ':');
    size_t length = colon != NULL ? (size_t)(colon - text) : strlen(text);
    int number = colon != NULL ? index_parse(colon + 1) : -1;
    if (colon != NULL && number < 0)
        return device_parse_error(state, object);
    if (length == 3 && memcmp(text, "cpu", 3) == 0 && number <= 0) {
        *type = GN_DEVICE_CPU;
        *index = 0;
    } else if (length == 4 && memcmp(text, "cuda", 4) == 0) {
        *type = GN_DEVICE_CUDA;
        *index = number >= 0 ? number : gn_device_get_current(GN_DEVICE_CUDA);
    } else {
        return device_parse_error(state, object);
    }
    return 0;
}

static int device_index_from_python(const struct module_state *state, PyObject *object, int *index)
{
    PyObject *integer = PyNumber_Index(object);
    if (integer == NULL)
        return -1;
    long number = PyLong_AsLong(integer);
    bool is_wrong = (number == -1 && PyErr_Occurred()) || number < 0 || number > INT_MAX;
    if (is_wrong) {
        PyErr_Clear();
        PyErr_Format(state->invalid_device_error, "there is no CUDA device %R", integer);
    } else {
        *index = (int)number;
    }
    Py_DECREF(integer);
    return is_wrong ? -1 : 0;
}

int device_name_from_python(struct module_state *state, PyObject *object, gn_device_type *type,
                            int *index)
{
    *type = GN_DEVICE_CUDA;
    if (object == NULL || object == Py_None) {
        *index = gn_device_get_current(GN_DEVICE_CUDA);
        return 0;
    }
    if (PyObject_TypeCheck(object, (PyTypeObject *)state->device_class)) {
        *type = device_of(object)->type;
        *index = device_of(object)->index;
        return 0;
    }
    if (PyUnicode_Check(object))
        return device_parse(state, object, type, index);
    if (!PyIndex_Check(object)) {
        PyErr_Format(PyExc_TypeError,
                     "a device is named by a str, an int or a genesis.device, not %R",
                     (PyObject *)Py_TYPE(object));
        return -1;
    }
    return device_index_from_python(state, object, index);
}

int device_from_python(struct module_state *state, PyObject *object, gn_device **device)
{
    gn_device_type type;
    int index;
    if (device_name_from_python(state, object, &type, &index) < 0)
        return -1;
    gn_status status;
    CALL_UNLOCKED(status, gn_device_get(type, index, device));
    if (status != GN_OK)
        error_raise(state, status);
    return status == GN_OK ? 0 : -1;
}

void device_default(const struct module_state *state, gn_device_type *type, int *index)
{
    const struct context *context = state->context_count > 0 ? innermost : NULL;
    *type = context != NULL ? context->type : state->default_type;
    *index = context != NULL ? context->index : state->default_index;
}

int device_of_new(struct module_state *state, PyObject *object, gn_device **device)
{
    if (object != NULL && object != Py_None)
        return device_from_python(state, object, device);
    gn_device_type type;
    int index;
    device_default(state, &type, &index);
    gn_status status = gn_device_get(type, index, device);
    if (status != GN_OK)
        error_raise(state, status);
    return status == GN_OK ? 0 : -1;
}

/* ---- the type ------------------------------------------------------------------------------- */

PyObject *device_to_python(struct module_state *state, gn_device_type type, int index)
{
    PyObject *made = object_alloc((PyTypeObject *)state->device_class);
    if (made == NULL)
        return NULL;
    device_of(made)->type = type;
    device_of(made)->index = index;
    return made;
}

static PyObject *device_new(PyTypeObject *class, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"type", "index", NULL};
    PyObject *name, *place = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|O:device", names, &name, &place))
        return NULL;
    struct module_state *state = module_state_of_class(class);
    gn_device_type type;
    int index;
    if (device_name_from_python(state, name, &type, &index) < 0)
        return NULL;
    if (place != Py_None) {
        if (!PyUnicode_Check(name) ||
            PyUnicode_FindChar(name, ':', 0, PyUnicode_GetLength(name), 1) >= 0) {
            PyErr_SetString(PyExc_ValueError,
                            "an index goes with a plain type: device(\"cuda\", 1)");
            return NULL;
        }
        if (device_index_from_python(state, place, &index) < 0)
            return NULL;
        if (type == GN_DEVICE_CPU && index != 0) {
            PyErr_Format(state->invalid_device_error, "there is no device cpu:%d", index);
            return NULL;
        }
    }
    return device_to_python(state, type, index);
}

static PyObject *device_str(PyObject *self)
{
    if (device_of(self)->type == GN_DEVICE_CPU)
        return PyUnicode_FromString("cpu");
    return PyUnicode_FromFormat("cuda:%d", device_of(self)->index);
}

static PyObject *device_repr(PyObject *self)
{
    PyObject *text = device_str(self);
    PyObject *shown = text != NULL ? PyUnicode_FromFormat("device(%R)", text) : NULL;
    Py_XDECREF(text);
    return shown;
}

static Py_hash_t device_hash(PyObject *self)
{
    PyObject *text = device_str(self);
    Py_hash_t hash = text != NULL ? PyObject_Hash(text) : -1;
    Py_XDECREF(text);
    return hash;
}

static PyObject *device_compare(PyObject *self, PyObject *other, int operation)
{
    struct module_state *state = module_state_of_object(self);
    bool is_name =
        PyUnicode_Check(other) || PyObject_TypeCheck(other, (PyTypeObject *)state->device_class);
    if ((operation != Py_EQ && operation != Py_NE) || !is_name)
        Py_RETURN_NOTIMPLEMENTED;
    gn_device_type type = GN_DEVICE_CPU;
    int index = 0;
    bool is_equal = false;
    if (device_name_from_python(state, other, &type, &index) == 0)
        is_equal = type == device_of(self)->type && index == device_of(self)->index;
    else if (PyErr_ExceptionMatches(state->invalid_device_error))
        PyErr_Clear(); /* a text that names no device is just not equal */
    else
        return NULL;
    return PyBool_FromLong(is_equal == (operation == Py_EQ));
}

static PyObject *device_get_type(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(device_of(self)->type == GN_DEVICE_CPU ? "cpu" : "cuda");
}

static PyObject *device_get_index(PyObject *self, void *unused)
{
    (void)unused;
    if (device_of(self)->type == GN_DEVICE_CPU)
        Py_RETURN_NONE;
    return PyLong_FromLong(device_of(self)->index);
}

static PyObject *device_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *text = device_str(self);
    if (text == NULL)
        return NULL;
    return Py_BuildValue("O(N)", (PyObject *)Py_TYPE(self), text);
}

static PyObject *device_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct module_state *state = module_state_of_object(self);
    gn_device *device;
    if (device_from_python(state, self, &device) < 0)
        return NULL;
    struct context *context = PyMem_Malloc(sizeof *context);
    if (context == NULL)
        return PyErr_NoMemory();
    *context = (struct context){
        .outer = innermost, .type = device_of(self)->type, .index = device_of(self)->index};
    innermost = context;
    state->context_count++;
    return Py_NewRef(self);
}

static PyObject *device_exit(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct context *context = innermost;
    if (context == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "this thread is in no block of a device");
        return NULL;
    }
    innermost = context->outer;
    PyMem_Free(context);
    module_state_of_object(self)->context_count--;
    Py_RETURN_NONE;
}

static PyGetSetDef device_getset[] = {
    {"type", device_get_type, NULL, "\"cpu\" or \"cuda\".", NULL},
    {"index", device_get_index, NULL, "The number of the GPU; None on the CPU.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef device_methods[] = {
    {"__reduce__", device_reduce, METH_NOARGS, NULL},
    {"__enter__", device_enter, METH_NOARGS,
     "__enter__($self, /)\n--\n\nNew tensors of this thread go there until the block ends."},
    {"__exit__", device_exit, METH_VARARGS, "__exit__($self, *exception)\n--\n\n"},
    {NULL, NULL, 0, NULL},
};

static const char device_doc[] =
    "device(type, index=None)\n--\n\n"
    "The name of a device.\n\n"
    "Parameters\n----------\n"
    "type : str, int or device\n"
    "    \"cpu\", \"cuda\" (the current CUDA device), \"cuda:N\", or the number of a GPU.\n"
    "index : int, optional\n"
    "    The number of the GPU, with a plain \"cuda\".\n\n"
    "Making a name starts nothing, and the device need not exist. A device equals the text that\n"
    "names it. In ``with device:`` this thread's new tensors for which no device is named go "
    "there.\n\n"
    "Examples\n--------\n"
    ">>> import genesis\n"
    ">>> genesis.device(\"cuda:1\").index\n"
    "1\n"
    ">>> genesis.device(\"cpu\") == \"cpu\"\n"
    "True\n"
    ">>> with genesis.device(\"cpu\"):\n"
    "...     genesis.zeros(2).device\n"
    "device('cpu')\n";

static PyType_Slot device_slots[] = {
    {Py_tp_doc, (void *)device_doc},
    {Py_tp_new, device_new},
    {Py_tp_dealloc, object_free},
    {Py_tp_repr, device_repr},
    {Py_tp_str, device_str},
    {Py_tp_hash, device_hash},
    {Py_tp_richcompare, device_compare},
    {Py_tp_getset, device_getset},
    {Py_tp_methods, device_methods},
    {0, NULL},
};

static PyType_Spec device_spec = {
    .name = "genesis.device",
    .basicsize = sizeof(struct device_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = device_slots,
};

int device_class_init(PyObject *module, struct module_state *state)
{
    state->device_class = PyType_FromModuleAndSpec(module, &device_spec, NULL);
    return state->device_class != NULL
               ? PyModule_AddObjectRef(module, "device", state->device_class)
               : -1;
}
