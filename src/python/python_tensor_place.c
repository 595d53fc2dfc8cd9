/*
 * python_tensor_place.c: where a tensor's elements are: on which device, in page-locked memory or not, and on which
 * streams they are used.
 */
#include "module.h"

PyObject *tensor_move(PyObject *self, gn_device *device)
{
    gn_tensor *moved;
    gn_status status;
    if (gn_tensor_get_device(tensor_of(self)) == device)
        return Py_NewRef(self);
    CALL_ALLOCATING(status, gn_tensor_to(tensor_of(self), device, &moved));
    return tensor_or_raise(tensor_state(self), status, moved);
}

static PyObject *method_cpu(PyObject *self, PyObject *unused)
{
    (void)unused;
    gn_device *device;
    gn_status status = gn_device_get(GN_DEVICE_CPU, 0, &device);
    return status == GN_OK ? tensor_move(self, device) : error_raise(tensor_state(self), status);
}

static PyObject *method_cuda(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"device", "non_blocking", NULL};
    struct module_state *state = tensor_state(self);
    PyObject *place = Py_None;
    int is_asynchronous = 0;
    gn_device *device;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|Op", names, &place, &is_asynchronous) ||
        device_from_python(state, place, &device) < 0)
        return NULL;
    if (gn_device_get_type(device) != GN_DEVICE_CUDA) {
        PyErr_Format(PyExc_ValueError, "cuda() goes to a CUDA device, not to %R", place);
        return NULL;
    }
    return tensor_move(self, device);
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
    return tensor_or_raise(tensor_state(self), status, view);
}

static PyObject *method_is_pinned(PyObject *self, PyObject *unused)
{
    (void)unused;
    bool is_pinned;
    gn_status status;
    CALL_ALLOCATING(status, gn_tensor_is_pinned(tensor_of(self), &is_pinned));
    return status == GN_OK ? PyBool_FromLong(is_pinned) : error_raise(tensor_state(self), status);
}

static PyObject *method_record_stream(PyObject *self, PyObject *object)
{
    struct module_state *state = tensor_state(self);
    gn_stream *stream;
    gn_status status;
    if (stream_from_python(state, object, gn_tensor_get_device(tensor_of(self)), &stream) < 0)
        return NULL;
    CALL_ALLOCATING(status, gn_tensor_record_stream(tensor_of(self), stream));
    return none_or_raise(self, status);
}

PyMethodDef tensor_place_methods[] = {
    {"cpu", method_cpu, METH_NOARGS,
     "cpu($self, /)\n--\n\nThe tensor on the CPU; itself where it is there."},
    {"cuda", WITH_KEYWORDS(method_cuda),
     "cuda($self, device=None, non_blocking=False)\n--\n\n"
     "The tensor on a CUDA device, the current one by default; itself where it is there."},
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

static PyObject *set_default_device(PyObject *module, PyObject *object)
{
    struct module_state *state = module_state_of(module);
    gn_device *device = NULL;
    if (object != Py_None && device_from_python(state, object, &device) < 0)
        return NULL;
    state->default_type = device != NULL ? gn_device_get_type(device) : GN_DEVICE_CPU;
    state->default_index = device != NULL ? gn_device_get_index(device) : 0;
    Py_RETURN_NONE;
}

static PyObject *get_default_device(PyObject *module, PyObject *unused)
{
    (void)unused;
    struct module_state *state = module_state_of(module);
    gn_device_type type;
    int index;
    device_default(state, &type, &index);
    return device_to_python(state, type, index);
}

PyMethodDef tensor_place_functions[] = {
    {"_set_default_device", set_default_device, METH_O,
     "_set_default_device($module, device, /)\n--\n\nOf new tensors; None: the CPU."},
    {"_get_default_device", get_default_device, METH_NOARGS,
     "_get_default_device($module, /)\n--\n\nOf new tensors."},
    {"_empty_pinned", empty_pinned, METH_VARARGS,
     "_empty_pinned($module, shape, dtype, device, /)\n--\n\nNo content, page-locked for a GPU."},
    {"_set_pinned", set_pinned, METH_O,
     "_set_pinned($module, is_on, /)\n--\n\n"
     "Whether memory of new CPU tensors is page-locked for the current CUDA device."},
    {NULL, NULL, 0, NULL},
};
