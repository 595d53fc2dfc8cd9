/*
 * python_interop.c: what other libraries of Python ask a tensor for: its address, arrays of NumPy, and what their
 * functions do with it; and what a tensor takes from them. DLPack stands in python_dlpack.c, the interface of CUDA
 * arrays in python_cuda_array.c.
 *
 * What NumPy's and PyTorch's functions do is written in Python (genesis/_numpy.py, genesis/_torch.py), which is
 * loaded at the first such call.
 */
#include "module.h"

/* ---- addresses ------------------------------------------------------------------------------- */

static PyObject *pointer_data_ptr(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyNumber_Long(self);
}

static PyObject *pointer_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *number = PyNumber_Long(self);
    return number != NULL ? Py_BuildValue("O(N)", (PyObject *)&PyLong_Type, number) : NULL;
}

static PyMethodDef pointer_methods[] = {
    {"data_ptr", pointer_data_ptr, METH_NOARGS, "data_ptr($self, /)\n--\n\nIt, as an int."},
    {"__reduce__", pointer_reduce, METH_NOARGS, "__reduce__($self, /)\n--\n\nFor pickle: an int."},
    {NULL, NULL, 0, NULL},
};

/* One class for each dtype, so that an address is no larger than an int and made as fast. */
static PyObject *pointer_class_create(PyObject *dtype)
{
    PyObject *class = PyObject_CallFunction(
        (PyObject *)&PyType_Type, "s(O){s()sssssO}", "DataPointer", (PyObject *)&PyLong_Type,
        "__slots__", "__module__", "genesis", "__doc__",
        "The address of a tensor's first element: an int that knows the type of the elements.",
        "dtype", dtype);
    if (class != NULL && methods_add(class, pointer_methods) < 0)
        Py_CLEAR(class);
    return class;
}

static PyObject *tensor_data_ptr(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct module_state *state = tensor_state(self);
    gn_dtype dtype = gn_tensor_get_dtype(tensor_of(self));
    void *data;
    gn_status status;
    CALL_OPERATION(gn_is_pending(), status, gn_tensor_get_data(tensor_of(self), &data));
    if (status != GN_OK)
        return error_raise(state, status);
    if (state->pointer_classes[dtype] == NULL)
        state->pointer_classes[dtype] = pointer_class_create(state->dtypes[dtype]);
    PyObject *class = state->pointer_classes[dtype];
    PyObject *address = class != NULL ? PyLong_FromVoidPtr(data) : NULL;
    PyObject *made = address != NULL ? PyObject_CallFunctionObjArgs(class, address, NULL) : NULL;
    Py_XDECREF(address);
    return made;
}

/* ---- NumPy ----------------------------------------------------------------------------------- */

/* An object as an array of NumPy. */
static PyObject *numpy_asarray(struct module_state *state, PyObject *object)
{
    if (state->numpy_asarray == NULL) {
        PyObject *numpy = PyImport_ImportModule("numpy");
        state->numpy_asarray = numpy != NULL ? PyObject_GetAttrString(numpy, "asarray") : NULL;
        Py_XDECREF(numpy);
    }
    return state->numpy_asarray != NULL
               ? PyObject_CallFunctionObjArgs(state->numpy_asarray, object, NULL)
               : NULL;
}

static PyObject *tensor_numpy(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct module_state *state = tensor_state(self);
    gn_dtype dtype = gn_tensor_get_dtype(tensor_of(self));
    void *data;
    gn_status status;
    if (gradient_refuse(self, "numpy") < 0)
        return NULL;
    if (gn_device_get_type(gn_tensor_get_device(tensor_of(self))) != GN_DEVICE_CPU) {
        PyErr_SetString(PyExc_TypeError,
                        "the tensor is on a GPU, where NumPy cannot read: use cpu() first");
        return NULL;
    }
    if (dtype_format(dtype) == NULL) {
        PyErr_Format(PyExc_TypeError, "NumPy has no %s: convert it first, with float()",
                     gn_dtype_name(dtype));
        return NULL;
    }
    /* NumPy would swallow what goes wrong here */
    CALL_OPERATION(gn_is_pending(), status, gn_tensor_get_data(tensor_of(self), &data));
    if (status != GN_OK)
        return error_raise(state, status);
    return numpy_asarray(state, self);
}

/* As NumPy 2 asks: copy None for one where there must be, False for none, ever. */
static PyObject *tensor_array(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|OO:__array__", names, &dtype, &copy))
        return NULL;
    PyObject *array = tensor_numpy(self, NULL);
    if (array == NULL || (dtype == Py_None && copy != Py_True))
        return array;
    PyObject *made = NULL, *numpy = PyImport_ImportModule("numpy");
    PyObject *from = numpy != NULL ? PyObject_GetAttrString(numpy, "array") : NULL;
    PyObject *positional = PyTuple_Pack(1, array);
    PyObject *named = Py_BuildValue("{sOsO}", "dtype", dtype, "copy", copy);
    if (from != NULL && positional != NULL && named != NULL)
        made = PyObject_Call(from, positional, named);
    Py_XDECREF(numpy);
    Py_XDECREF(from);
    Py_XDECREF(positional);
    Py_XDECREF(named);
    Py_DECREF(array);
    return made;
}

/* Hands a call on to a function of Python, in a module that is loaded then. */
static PyObject *hand_on(const char *module_name, const char *function_name, PyObject *arguments,
                         PyObject *keywords)
{
    PyObject *module = PyImport_ImportModule(module_name);
    PyObject *function = module != NULL ? PyObject_GetAttrString(module, function_name) : NULL;
    PyObject *made = function != NULL ? PyObject_Call(function, arguments, keywords) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(function);
    return made;
}

static PyObject *tensor_array_ufunc(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    (void)self;
    return hand_on("genesis._numpy", "ufunc_call", arguments, keywords);
}

static PyObject *tensor_array_function(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    (void)self;
    return hand_on("genesis._numpy", "function_call", arguments, keywords);
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

static PyObject *tensor_torch_function(PyObject *class, PyObject *arguments, PyObject *keywords)
{
    (void)class;
    return hand_on("genesis._torch", "function_call", arguments, keywords);
}

/* ---- what others have ------------------------------------------------------------------------ */

/* Whether NumPy itself made its class: the usual case, known by one look at the class. */
static bool is_of_numpy(struct module_state *state, PyObject *object)
{
    if ((PyObject *)Py_TYPE(object) == state->numpy_class)
        return true;
    PyObject *module = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__module__");
    bool is_numpy = module != NULL && PyUnicode_Check(module) &&
                    PyUnicode_CompareWithASCIIString(module, "numpy") == 0;
    Py_XDECREF(module);
    PyErr_Clear();
    if (is_numpy) {
        Py_XDECREF(state->numpy_class);
        state->numpy_class = Py_NewRef((PyObject *)Py_TYPE(object));
    }
    return is_numpy;
}

/* Arrays of CuPy have a buffer, which raises: whoever has memory of a GPU is asked for that, and for nothing else. */
bool is_on_gpu(struct module_state *state, PyObject *object)
{
    if (is_of_numpy(state, object))
        return false;
    return PyObject_HasAttrString(object, "__cuda_array_interface__") || dlpack_is_on_gpu(object);
}

bool has_buffer(struct module_state *state, PyObject *object)
{
    return PyObject_CheckBuffer(object) && !is_on_gpu(state, object);
}

bool is_foreign(PyObject *object)
{
    static const char *const names[] = {"__dlpack__", "__cuda_array_interface__", "__array__",
                                        "__array_interface__"};
    if (PyList_Check(object) || PyTuple_Check(object) || PyLong_Check(object) ||
        PyFloat_Check(object))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (PyObject_HasAttrString(object, names[i]))
            return true;
    return false;
}

PyObject *tensor_from_foreign(struct module_state *state, PyObject *object, PyObject *device)
{
    bool has_dictionary = PyObject_HasAttrString(object, "__cuda_array_interface__");
    if (PyObject_HasAttrString(object, "__dlpack__")) {
        PyObject *made = tensor_from_dlpack(state, object, device, Py_None);
        /* CuPy 14 divides negative strides as if they had no sign; its dictionary has them right. */
        if (made != NULL || !has_dictionary || !PyErr_ExceptionMatches(PyExc_ValueError))
            return made;
        PyErr_Clear();
    }
    if (has_dictionary)
        return tensor_from_cuda_array(state, object);
    PyObject *array = numpy_asarray(state, object);
    PyObject *made = array != NULL ? tensor_from_data(state, array, NULL, false) : NULL;
    Py_XDECREF(array);
    return made;
}

/* ---- the class ------------------------------------------------------------------------------- */

static PyMethodDef tensor_interop_methods[] = {
    {"data_ptr", tensor_data_ptr, METH_NOARGS,
     "data_ptr($self, /)\n--\n\n"
     "The address of the first element, with everything computed: an int with ``dtype``."},
    {"numpy", tensor_numpy, METH_NOARGS,
     "numpy($self, /)\n--\n\nThe same memory as an array of NumPy."},
    {"__array__", WITH_KEYWORDS(tensor_array),
     "__array__($self, dtype=None, copy=None)\n--\n\nFor NumPy: the same memory, if that can be."},
    {"__array_ufunc__", WITH_KEYWORDS(tensor_array_ufunc),
     "__array_ufunc__($self, ufunc, method, /, *inputs, **kwargs)\n--\n\nFor NumPy's functions "
     "of elements."},
    {"__array_function__", WITH_KEYWORDS(tensor_array_function),
     "__array_function__($self, func, types, args, kwargs)\n--\n\nFor NumPy's other functions."},
    {"__torch_function__", (PyCFunction)(void (*)(void))tensor_torch_function,
     METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "__torch_function__($type, func, types, args=(), kwargs=None)\n--\n\nFor PyTorch's "
     "functions."},
    {NULL, NULL, 0, NULL},
};

static int attribute_set(PyObject *class, const char *name, PyObject *value)
{
    int status = value != NULL ? PyObject_SetAttrString(class, name, value) : -1;
    Py_XDECREF(value);
    return status;
}

int tensor_interop_init(PyObject *class)
{
    if (methods_add(class, tensor_interop_methods) < 0 ||
        attribute_set(class, "__cuda_array_interface__", cuda_array_property(class)) < 0)
        return -1;
    return attribute_set(class, "__array_priority__", PyFloat_FromDouble(1000));
}
