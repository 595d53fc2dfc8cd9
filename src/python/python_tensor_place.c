/*
 * python_tensor_place.c: where a tensor's elements are: on which device, in page-locked memory or not, and on which
 * streams they are used.
 */
#include "module.h"

static PyObject *method_cpu(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

static PyObject *method_cuda(PyObject *self, PyObject *arguments)
{
    (void)self, (void)arguments;
    PyErr_SetString(PyExc_RuntimeError, "tensors live on the CPU");
    return NULL;
}

static PyObject *method_detach(PyObject *self, PyObject *unused)
{
    (void)unused;
    gn_tensor *tensor = tensor_of(self), *view;
    int order[GN_DIMENSIONS_MAX];
    gn_status status;
    for (int i = 0; i < gn_tensor_get_dimensions(tensor); i++)
        order[i] = i;
    CALL_ALLOCATING(status, gn_tensor_permute(tensor, order, &view));
    return tensor_or_raise(module_state_of_object(self), status, view);
}

static PyObject *method_is_pinned(PyObject *self, PyObject *unused)
{
    (void)unused;
    bool is_pinned;
    gn_status status;
    CALL_ALLOCATING(status, gn_tensor_is_pinned(tensor_of(self), &is_pinned));
    return status == GN_OK ? PyBool_FromLong(is_pinned)
                           : error_raise(module_state_of_object(self), status);
}

static PyObject *method_record_stream(PyObject *self, PyObject *object)
{
    struct module_state *state = module_state_of_object(self);
    gn_stream *stream;
    gn_status status;
    if (stream_from_python(state, object, gn_tensor_get_device(tensor_of(self)), &stream) < 0)
        return NULL;
    CALL_ALLOCATING(status, gn_tensor_record_stream(tensor_of(self), stream));
    return none_or_raise(self, status);
}

PyMethodDef tensor_place_methods[] = {
    {"cpu", method_cpu, METH_NOARGS, "cpu($self, /)\n--\n\nThe tensor on the CPU: itself."},
    {"cuda", method_cuda, METH_VARARGS,
     "cuda($self, device=None, /)\n--\n\nRaises RuntimeError: tensors live on the CPU."},
    {"detach", method_detach, METH_NOARGS,
     "detach($self, /)\n--\n\nA view of all elements, which has no history."},
    {"is_pinned", method_is_pinned, METH_NOARGS,
     "is_pinned($self, /)\n--\n\nWhether its memory is page-locked."},
    {"record_stream", method_record_stream, METH_O,
     "record_stream($self, stream, /)\n--\n\n"
     "Says that work on another stream uses its memory, which then goes to nobody else before that "
     "work is done."},
    {NULL, NULL, 0, NULL},
};

/* ---- functions for genesis._tensor_place and genesis.cpu ------------------------------------- */

static PyObject *empty_pinned(PyObject *module, PyObject *arguments)
{
    struct module_state *state = module_state_of(module);
    PyObject *shape, *dtype_object, *device_object;
    int64_t sizes[GN_DIMENSIONS_MAX];
    int ndim;
    gn_dtype dtype;
    gn_device *device;
    gn_tensor *tensor;
    gn_status status;
    if (!PyArg_ParseTuple(arguments, "OOO", &shape, &dtype_object, &device_object) ||
        integers_from_python(shape, "a shape", sizes, GN_DIMENSIONS_MAX, &ndim) < 0 ||
        dtype_from_python(state, dtype_object, &dtype) < 0 ||
        device_from_python(state, device_object, &device) < 0)
        return NULL;
    CALL_ALLOCATING(status, gn_tensor_create_pinned(dtype, ndim, sizes, device, &tensor));
    return tensor_or_raise(state, status, tensor);
}

static PyObject *set_pinned(PyObject *module, PyObject *is_on)
{
    struct module_state *state = module_state_of(module);
    gn_device *device = NULL;
    if (is_on == Py_True && device_from_python(state, Py_None, &device) < 0)
        return NULL;
    gn_status status = gn_tensor_set_pinned(device);
    if (status != GN_OK)
        return error_raise(state, status);
    Py_RETURN_NONE;
}

PyMethodDef tensor_place_functions[] = {
    {"_empty_pinned", empty_pinned, METH_VARARGS,
     "_empty_pinned($module, shape, dtype, device, /)\n--\n\nNo content, page-locked for a GPU."},
    {"_set_pinned", set_pinned, METH_O,
     "_set_pinned($module, is_on, /)\n--\n\n"
     "Whether memory of new CPU tensors is page-locked for the current CUDA device."},
    {NULL, NULL, 0, NULL},
};
