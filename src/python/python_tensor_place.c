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
    CALL_ALLOCATING(status, gn_tensor_to_in_order(tensor_of(self), device, &moved));
    return tensor_or_raise(tensor_state(self), status, moved);
}

/* The tensor on a device, in a memory format; `object` is NULL or None where none is named. */
static PyObject *moved_with_format(PyObject *self, const char *name, gn_device *device,
                                   PyObject *object)
{
    gn_memory_format format = GN_FORMAT_PRESERVE;
    if (object != NULL && object != Py_None &&
        format_from_python(tensor_state(self), name, object, &format) < 0)
        return NULL;
    PyObject *moved = tensor_move(self, device);
    if (moved == NULL || format == GN_FORMAT_PRESERVE)
        return moved;
    PyObject *made = tensor_with_format(moved, format, false);
    Py_DECREF(moved);
    return made;
}

static PyObject *method_cpu(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"non_blocking", "memory_format", NULL};
    PyObject *format = NULL;
    int is_asynchronous = 0;
    gn_device *device;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|p$O:cpu", names, &is_asynchronous,
                                     &format))
        return NULL;
    gn_status status = gn_device_get(GN_DEVICE_CPU, 0, &device);
    return status == GN_OK ? moved_with_format(self, "cpu", device, format)
                           : error_raise(tensor_state(self), status);
}

static PyObject *method_cuda(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"device", "non_blocking", "memory_format", NULL};
    struct module_state *state = tensor_state(self);
    PyObject *place = Py_None, *format = NULL;
    int is_asynchronous = 0;
    gn_device *device;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|Op$O:cuda", names, &place,
                                     &is_asynchronous, &format) ||
        device_from_python(state, place, &device) < 0)
        return NULL;
    if (gn_device_get_type(device) != GN_DEVICE_CUDA) {
        PyErr_Format(PyExc_ValueError, "cuda() goes to a CUDA device, not to %R", place);
        return NULL;
    }
    return moved_with_format(self, "cuda", device, format);
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

/* Whether there is a CUDA device, for which pages can be locked. Where there is none, one warning says so: -1 if that
 * is an exception. `level`: of Python's frames, from the innermost on. */
static int can_pin(struct module_state *state, Py_ssize_t level)
{
    int count = 0;
    gn_status status;
    CALL_UNLOCKED(status, gn_device_count(GN_DEVICE_CUDA, &count));
    if (status == GN_OK && count > 0)
        return 1;
    if (state->is_pinning_warned)
        return 0;
    state->is_pinning_warned = true;
    return PyErr_WarnEx(PyExc_RuntimeWarning,
                        "there is no CUDA device: CPU memory is not page-locked", level);
}

PyObject *tensor_pinned(struct module_state *state, gn_dtype dtype, int ndim, const int64_t *sizes,
                        gn_device *place)
{
    gn_device *device;
    gn_tensor *tensor;
    gn_status status;
    if (gn_device_get_type(place) != GN_DEVICE_CPU) {
        PyErr_Format(PyExc_ValueError, "pin_memory=True is for tensors of the CPU, not of cuda:%d",
                     gn_device_get_index(place));
        return NULL;
    }
    int found = can_pin(state, 1);
    if (found < 0 || (found > 0 && device_from_python(state, Py_None, &device) < 0))
        return NULL;
    if (found > 0)
        CALL_ALLOCATING(status, gn_tensor_create_pinned(dtype, ndim, sizes, device, &tensor));
    else
        CALL_ALLOCATING(status, gn_tensor_create(dtype, ndim, sizes, place, &tensor));
    return tensor_or_raise(state, status, tensor);
}

static PyObject *method_pin_memory(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                   PyObject *keywords)
{
    static const struct signature signature = {"pin_memory", {"device", NULL}, 0};
    struct module_state *state = tensor_state(self);
    gn_tensor *tensor = tensor_of(self), *made = NULL;
    PyObject *taken[2];
    gn_device *device;
    bool is_pinned;
    gn_status status;
    if (arguments_take(&signature, arguments, count, keywords, taken) < 0)
        return NULL;
    CALL_ALLOCATING(status, gn_tensor_is_pinned(tensor, &is_pinned));
    if (status != GN_OK)
        return error_raise(state, status);
    int found = is_pinned ? 0 : can_pin(state, 1);
    if (found <= 0)
        return found < 0 ? NULL : Py_NewRef(self);
    if (device_from_python(state, taken[0], &device) < 0)
        return NULL;
    CALL_ALLOCATING(status, gn_tensor_create_pinned(gn_tensor_get_dtype(tensor),
                                                    gn_tensor_get_dimensions(tensor),
                                                    gn_tensor_get_shape(tensor), device, &made));
    if (status == GN_OK)
        CALL_ALLOCATING(status, gn_assign(made, (gn_operand){.tensor = tensor}));
    if (status != GN_OK)
        gn_tensor_release(made);
    return tensor_or_raise(state, status, made);
}

static PyObject *method_to_device(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                  PyObject *keywords)
{
    static const struct call call = {"to_device", {"device", "stream"}, 2, 1, 1};
    struct module_state *state = tensor_state(self);
    PyObject *taken[CALL_ARGUMENTS_MOST];
    gn_device *device;
    if (call_take(&call, arguments, count, keywords, taken) < 0)
        return NULL;
    if (taken[1] != NULL && taken[1] != Py_None) {
        PyErr_SetString(PyExc_ValueError,
                        "to_device: the current stream is used: see genesis.cuda.stream()");
        return NULL;
    }
    return device_from_python(state, taken[0], &device) < 0 ? NULL : tensor_move(self, device);
}

PyMethodDef tensor_place_methods[] = {
    {"cpu", WITH_KEYWORDS(method_cpu),
     "cpu($self, non_blocking=False, *, memory_format=None)\n--\n\nThe tensor on the CPU; itself "
     "where it is there."},
    {"cuda", WITH_KEYWORDS(method_cuda),
     "cuda($self, device=None, non_blocking=False, *, memory_format=None)\n--\n\n"
     "The tensor on a CUDA device, the current one by default; itself where it is there."},
    {"is_pinned", method_is_pinned, METH_NOARGS,
     "is_pinned($self, /)\n--\n\nWhether its memory is page-locked."},
    {"pin_memory", WITH_VECTOR(method_pin_memory),
     "pin_memory($self, device=None)\n--\n\n"
     "A copy in page-locked memory, which a CUDA device reads directly; itself if it is there.\n\n"
     "Where there is no CUDA device it is the tensor itself, and one warning says so.\n\n"
     "Examples\n--------\n>>> import genesis\n>>> genesis.ones(2).pin_memory().tolist()\n"
     "[1.0, 1.0]\n"},
    {"to_device", WITH_VECTOR(method_to_device),
     "to_device($self, device, *, stream=None)\n--\n\n"
     "The tensor on a device, as the array API standard names it."},
    {"record_stream", method_record_stream, METH_O,
     "record_stream($self, stream, /)\n--\n\n"
     "Says that work on another stream uses its memory, which then goes to nobody else before that "
     "work is done."},
    {NULL, NULL, 0, NULL},
};

/* ---- functions ------------------------------------------------------------------------------ */

static PyObject *empty_pinned(PyObject *module, PyObject *arguments)
{
    struct module_state *state = module_state_of(module);
    PyObject *shape, *dtype_object, *device_object;
    int64_t sizes[GN_DIMENSIONS_MAX];
    int ndim;
    gn_dtype dtype = GN_FLOAT32;
    gn_device *place;
    if (!PyArg_ParseTuple(arguments, "OOO", &shape, &dtype_object, &device_object) ||
        integers_from_python(shape, "a shape", sizes, GN_DIMENSIONS_MAX, &ndim) < 0 ||
        (dtype_object != Py_None && dtype_from_python(state, dtype_object, &dtype) < 0) ||
        device_of_new(state, device_object, &place) < 0)
        return NULL;
    return tensor_pinned(state, dtype, ndim, sizes, place);
}

/* can_pin() of a function of Python, whose caller is warned. */
static PyObject *python_can_pin(PyObject *module, PyObject *unused)
{
    (void)unused;
    int found = can_pin(module_state_of(module), 2);
    return found < 0 ? NULL : PyBool_FromLong(found);
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
    {"set_default_device", set_default_device, METH_O,
     "set_default_device($module, device)\n--\n\n"
     "Choose the device of new tensors for which none is named; None for the CPU.\n\n"
     "Within ``with genesis.device(...):`` that one is chosen.\n\n"
     "Examples\n--------\n>>> import genesis\n>>> genesis.set_default_device(\"cpu\")\n"
     ">>> genesis.get_default_device()\ndevice('cpu')\n"},
    {"get_default_device", get_default_device, METH_NOARGS,
     "get_default_device($module)\n--\n\n"
     "The device of new tensors for which none is named.\n\n"
     "Examples\n--------\n>>> import genesis\n>>> genesis.get_default_device().type\n'cpu'\n"},
    {"_empty_pinned", empty_pinned, METH_VARARGS,
     "_empty_pinned($module, shape, dtype, device, /)\n--\n\nNo content, page-locked for a GPU."},
    {"_can_pin", python_can_pin, METH_NOARGS,
     "_can_pin($module, /)\n--\n\nWhether pages can be locked; once, a warning if not."},
    {"_set_pinned", set_pinned, METH_O,
     "_set_pinned($module, is_on, /)\n--\n\n"
     "Whether memory of new CPU tensors is page-locked for the current CUDA device."},
    {NULL, NULL, 0, NULL},
};
