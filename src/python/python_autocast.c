/*
 * python_autocast.c: the settings of autocast (genesis/autocast.h) as functions with PyTorch's names. The package's module
 * genesis.amp has the context manager.
 */
#include "module.h"

#include <string.h>

/* "cpu" or "cuda"; NULL is "cuda". */
static int type_take(const char *name, const char *text, gn_device_type *type)
{
    *type = text != NULL && strcmp(text, "cpu") == 0 ? GN_DEVICE_CPU : GN_DEVICE_CUDA;
    if (text == NULL || *type == GN_DEVICE_CPU || strcmp(text, "cuda") == 0)
        return 0;
    PyErr_Format(PyExc_RuntimeError, "%s: a type of device is 'cpu' or 'cuda', not '%s'", name,
                 text);
    return -1;
}

static PyObject *is_autocast_enabled(PyObject *module, PyObject *arguments)
{
    (void)module;
    const char *text = NULL;
    gn_device_type type;
    if (!PyArg_ParseTuple(arguments, "|s:is_autocast_enabled", &text) ||
        type_take("is_autocast_enabled", text, &type) < 0)
        return NULL;
    return PyBool_FromLong(gn_autocast_is_enabled(type));
}

/* (device_type, enabled), or (enabled) alone for CUDA. */
static PyObject *set_autocast_enabled(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *first, *second = NULL;
    const char *text = NULL;
    gn_device_type type;
    if (!PyArg_ParseTuple(arguments, "O|O:set_autocast_enabled", &first, &second) ||
        (second != NULL && (text = text_from_python(first)) == NULL) ||
        type_take("set_autocast_enabled", text, &type) < 0)
        return NULL;
    int is_enabled = PyObject_IsTrue(second != NULL ? second : first);
    if (is_enabled < 0)
        return NULL;
    gn_autocast_set_enabled(type, is_enabled > 0);
    Py_RETURN_NONE;
}

static PyObject *get_autocast_dtype(PyObject *module, PyObject *arguments)
{
    const char *text;
    gn_device_type type;
    if (!PyArg_ParseTuple(arguments, "s:get_autocast_dtype", &text) ||
        type_take("get_autocast_dtype", text, &type) < 0)
        return NULL;
    return dtype_to_python(module_state_of(module), gn_autocast_get_dtype(type));
}

static PyObject *set_autocast_dtype(PyObject *module, PyObject *arguments)
{
    struct module_state *state = module_state_of(module);
    const char *text;
    PyObject *object;
    gn_device_type type;
    gn_dtype dtype;
    if (!PyArg_ParseTuple(arguments, "sO:set_autocast_dtype", &text, &object) ||
        type_take("set_autocast_dtype", text, &type) < 0 ||
        dtype_from_python(state, object, &dtype) < 0)
        return NULL;
    gn_status status = gn_autocast_set_dtype(type, dtype);
    return status == GN_OK ? Py_NewRef(Py_None) : error_raise(state, status);
}

static PyObject *is_autocast_cache_enabled(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(gn_autocast_cache_is_enabled());
}

static PyObject *set_autocast_cache_enabled(PyObject *module, PyObject *is_on)
{
    (void)module;
    int is_true = PyObject_IsTrue(is_on);
    if (is_true < 0)
        return NULL;
    gn_autocast_set_cache_enabled(is_true > 0);
    Py_RETURN_NONE;
}

static PyObject *clear_autocast_cache(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    gn_autocast_clear_cache();
    Py_RETURN_NONE;
}

static PyObject *autocast_increment_nesting(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(gn_autocast_enter());
}

static PyObject *autocast_decrement_nesting(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(gn_autocast_leave());
}

PyMethodDef autocast_functions[] = {
    {"is_autocast_enabled", is_autocast_enabled, METH_VARARGS,
     "is_autocast_enabled(device_type='cuda', /)\n--\n\n"
     "Whether this thread computes in mixed precision on a type of device: see genesis.amp."},
    {"set_autocast_enabled", set_autocast_enabled, METH_VARARGS,
     "set_autocast_enabled(device_type, enabled=None, /)\n--\n\n"
     "Sets whether it does; with one argument for CUDA. genesis.amp.autocast() is the usual way."},
    {"get_autocast_dtype", get_autocast_dtype, METH_VARARGS,
     "get_autocast_dtype(device_type, /)\n--\n\n"
     "The half precision of autocast on a type of device."},
    {"set_autocast_dtype", set_autocast_dtype, METH_VARARGS,
     "set_autocast_dtype(device_type, dtype, /)\n--\n\n"
     "Sets the half precision of autocast: float16 or bfloat16."},
    {"is_autocast_cache_enabled", is_autocast_cache_enabled, METH_NOARGS,
     "is_autocast_cache_enabled($module)\n--\n\n"
     "Whether autocast converts a weight once, and not each time."},
    {"set_autocast_cache_enabled", set_autocast_cache_enabled, METH_O,
     "set_autocast_cache_enabled($module, enabled, /)\n--\n\nSets whether it does."},
    {"clear_autocast_cache", clear_autocast_cache, METH_NOARGS,
     "clear_autocast_cache($module)\n--\n\nLets converted weights go."},
    {"autocast_increment_nesting", autocast_increment_nesting, METH_NOARGS,
     "autocast_increment_nesting($module)\n--\n\n"
     "Begins a part of a program in which converted weights are kept; how many are open."},
    {"autocast_decrement_nesting", autocast_decrement_nesting, METH_NOARGS,
     "autocast_decrement_nesting($module)\n--\n\n"
     "Ends such a part. With the last one the converted weights go."},
    {NULL, NULL, 0, NULL},
};
