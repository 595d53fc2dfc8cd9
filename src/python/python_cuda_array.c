/*
 * python_cuda_array.c: __cuda_array_interface__ of version 3, a dictionary in which libraries show each other memory
 * on a GPU: tensors to it, and from it.
 *
 *     shape    sizes
 *     typestr  byte order, kind and bytes of an element, as NumPy writes them
 *     data     the address, 0 without elements, and whether the memory is read-only
 *     strides  in bytes; None for a contiguous array
 *     stream   on which the memory is in order: 1 the default one, 2 the thread's, else a handle; None: no matter.
 *              0 must not be there, but Numba has it for the default one
 *     mask     None: those who leave elements out are not for us
 *
 * Whoever has the dictionary must keep its object, which keeps the stream: a tensor that comes from one does, and
 * goes back in that stream's order. NumPy has no name for bfloat16: "<V2" stands for it, as in PyTorch and ml_dtypes.
 * Nor does the dictionary name a device: memory of others is taken for the current one's.
 */
#include "module.h"

/* By kind and bits. */
#define TYPESTR_BOOL8 "|b1"
#define TYPESTR_UINT8 "|u1"
#define TYPESTR_UINT16 "<u2"
#define TYPESTR_UINT32 "<u4"
#define TYPESTR_UINT64 "<u8"
#define TYPESTR_INT8 "|i1"
#define TYPESTR_INT16 "<i2"
#define TYPESTR_INT32 "<i4"
#define TYPESTR_INT64 "<i8"
#define TYPESTR_FLOAT16 "<f2"
#define TYPESTR_BFLOAT16 "<V2"
#define TYPESTR_FLOAT32 "<f4"
#define TYPESTR_FLOAT64 "<f8"

static const char *const typestrs[GN_DTYPE_COUNT] = {
#define ROW(NAME, number, name, kind, bits) [number] = TYPESTR_##kind##bits,
    GN_DTYPE_LIST(ROW)
#undef ROW
};

/* ---- to -------------------------------------------------------------------------------------- */

/* Numbers, each times a factor, as a tuple. */
static PyObject *tuple_of(int count, const int64_t *numbers, int64_t factor)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple != NULL && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(numbers[i] * factor);
        if (number == NULL || PyTuple_SetItem(tuple, i, number) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *get_cuda_array_interface(PyObject *self, void *unused)
{
    (void)unused;
    struct module_state *state = module_state_of_object(self);
    gn_tensor *tensor = tensor_of(self);
    gn_device *device = gn_tensor_get_device(tensor);
    int type, index, ndim = gn_tensor_get_dimensions(tensor);
    void *data, *stream = NULL;
    gn_status status;
    if (gn_device_get_type(device) != GN_DEVICE_CUDA) {
        PyErr_SetString(PyExc_AttributeError,
                        "a tensor on the CPU has no __cuda_array_interface__: it is for memory of "
                        "GPUs");
        return NULL;
    }
    if (gradient_refuse(self, "__cuda_array_interface__") < 0)
        return NULL;
    CALL_ALLOCATING(status, gn_tensor_get_data(tensor, &data));
    gn_device_to_dlpack(device, &type, &index);
    if (status == GN_OK) /* on which the memory is in order now */
        status = gn_dlpack_current_stream(type, index, &stream);
    if (status != GN_OK)
        return error_raise(state, status);
    PyObject *address = PyLong_FromVoidPtr(gn_tensor_get_count(tensor) > 0 ? data : NULL);
    PyObject *handle = PyLong_FromVoidPtr(stream != NULL ? stream : (void *)1);
    PyObject *shape = tuple_of(ndim, gn_tensor_get_shape(tensor), 1);
    PyObject *strides = gn_tensor_is_contiguous(tensor)
                            ? Py_NewRef(Py_None)
                            : tuple_of(ndim, gn_tensor_get_strides(tensor),
                                       (int64_t)gn_dtype_size(gn_tensor_get_dtype(tensor)));
    PyObject *made = NULL;
    if (address != NULL && handle != NULL && shape != NULL && strides != NULL)
        made = Py_BuildValue("{sOsss(OO)sOsOsi}", "shape", shape, "typestr",
                             typestrs[gn_tensor_get_dtype(tensor)], "data", address,
                             gn_tensor_is_read_only(tensor) ? Py_True : Py_False, "strides",
                             strides, "stream", handle, "version", 3);
    Py_XDECREF(address);
    Py_XDECREF(handle);
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    return made;
}

static PyGetSetDef property = {"__cuda_array_interface__", get_cuda_array_interface, NULL,
                               "Of tensors on a GPU.", NULL};

PyObject *cuda_array_property(PyObject *class)
{
    return PyDescr_NewGetSet((PyTypeObject *)class, &property);
}

/* ---- from ------------------------------------------------------------------------------------ */

struct array {
    gn_dtype dtype;
    int ndim;
    int64_t shape[GN_DIMENSIONS_MAX];
    int64_t strides[GN_DIMENSIONS_MAX]; /* in elements */
    bool has_strides, has_stream;
    void *data, *stream;
    int is_read_only;
};

/* An item of the dictionary, borrowed; None where there is none. Nobody else has the dictionary: no user code takes its
 * items away. */
static PyObject *item_of(PyObject *dictionary, const char *name)
{
    PyObject *item = PyDict_GetItemString(dictionary, name);
    return item != NULL ? item : Py_None;
}

static int dtype_take(PyObject *item, gn_dtype *dtype)
{
    for (int i = 0; i < GN_DTYPE_COUNT; i++)
        if (PyUnicode_Check(item) && PyUnicode_CompareWithASCIIString(item, typestrs[i]) == 0) {
            *dtype = (gn_dtype)i;
            return 0;
        }
    PyErr_Format(PyExc_TypeError, "elements of the type %R have no dtype here: %s", item,
                 gn_dtype_advice(""));
    return -1;
}

static int shape_take(PyObject *dictionary, struct array *array)
{
    PyObject *shape = item_of(dictionary, "shape"), *strides = item_of(dictionary, "strides");
    int64_t size = (int64_t)gn_dtype_size(array->dtype);
    int count;
    if (!PyTuple_Check(shape) || (strides != Py_None && !PyTuple_Check(strides))) {
        PyErr_Format(PyExc_TypeError, "shape and strides must be tuples, not %R and %R", shape,
                     strides);
        return -1;
    }
    if (integers_from_python(shape, "a shape", array->shape, GN_DIMENSIONS_MAX, &array->ndim) < 0)
        return -1;
    array->has_strides = strides != Py_None;
    if (!array->has_strides)
        return 0;
    if (integers_from_python(strides, "strides", array->strides, GN_DIMENSIONS_MAX, &count) < 0)
        return -1;
    bool is_right = count == array->ndim;
    for (int i = 0; is_right && i < count; i++) {
        is_right = array->strides[i] % size == 0 || array->shape[i] < 2;
        array->strides[i] /= size;
    }
    if (!is_right)
        PyErr_Format(PyExc_ValueError,
                     "strides of %R bytes do not fit a shape of %R and elements of %lld bytes",
                     strides, shape, (long long)size);
    return is_right ? 0 : -1;
}

static int data_take(PyObject *dictionary, struct array *array)
{
    PyObject *data = item_of(dictionary, "data"), *stream = item_of(dictionary, "stream");
    size_t address, handle = 0;
    if (!PyTuple_Check(data) || PyTuple_Size(data) != 2) {
        PyErr_Format(PyExc_TypeError, "data must be an address and whether it is read-only, not %R",
                     data);
        return -1;
    }
    array->is_read_only = PyObject_IsTrue(PyTuple_GetItem(data, 1));
    array->has_stream = stream != Py_None;
    if (array->is_read_only < 0 ||
        size_from_python(PyTuple_GetItem(data, 0), "an address", &address) < 0 ||
        (array->has_stream && size_from_python(stream, "a stream", &handle) < 0))
        return -1;
    array->data = (void *)address;
    array->stream = (void *)handle;
    return 0;
}

static PyObject *dictionary_copy(PyObject *given)
{
    if (PyDict_Check(given))
        return PyDict_Copy(given);
    PyErr_Format(PyExc_TypeError, "__cuda_array_interface__ must be a dictionary, not %R", given);
    return NULL;
}

static int array_take(PyObject *dictionary, struct array *array)
{
    if (item_of(dictionary, "mask") != Py_None) {
        PyErr_SetString(PyExc_TypeError, "tensors have no masks: fill in what is left out first");
        return -1;
    }
    if (dtype_take(item_of(dictionary, "typestr"), &array->dtype) < 0 ||
        shape_take(dictionary, array) < 0)
        return -1;
    return data_take(dictionary, array);
}

bool cuda_array_look(PyObject *object, gn_dtype *dtype, bool *is_contiguous)
{
    struct array array = {0};
    PyObject *given = PyObject_GetAttrString(object, "__cuda_array_interface__");
    PyObject *dictionary = given != NULL ? dictionary_copy(given) : NULL;
    bool is_known = dictionary != NULL &&
                    dtype_take(item_of(dictionary, "typestr"), &array.dtype) == 0 &&
                    shape_take(dictionary, &array) == 0;
    Py_XDECREF(dictionary);
    Py_XDECREF(given);
    PyErr_Clear();
    int64_t step = 1;
    *dtype = array.dtype;
    *is_contiguous = true;
    for (int i = array.ndim - 1; is_known && array.has_strides && i >= 0; i--) {
        *is_contiguous &= array.shape[i] == 1 || array.strides[i] == step;
        is_known = !__builtin_mul_overflow(step, array.shape[i], &step);
    }
    *is_contiguous |= step == 0; /* nothing is there */
    return is_known;
}

/* Called from any thread, also without the interpreter's lock, also at its end. */
static void owner_release(void *context)
{
    if (!Py_IsInitialized())
        return;
    PyGILState_STATE lock = PyGILState_Ensure();
    Py_DECREF((PyObject *)context);
    PyGILState_Release(lock);
}

PyObject *tensor_from_cuda_array(struct module_state *state, PyObject *object)
{
    struct array array = {0};
    gn_device *device;
    gn_tensor *tensor;
    PyObject *given = PyObject_GetAttrString(object, "__cuda_array_interface__");
    PyObject *dictionary = given != NULL ? dictionary_copy(given) : NULL;
    int taken = dictionary != NULL ? array_take(dictionary, &array) : -1;
    Py_XDECREF(dictionary);
    Py_XDECREF(given);
    if (taken < 0 || device_from_python(state, Py_None, &device) < 0)
        return NULL;
    gn_status status = gn_tensor_from_others(
        array.data, array.dtype, array.ndim, array.shape, array.has_strides ? array.strides : NULL,
        device, array.is_read_only != 0, owner_release, object, &tensor);
    if (status != GN_OK)
        return error_raise(state, status);
    Py_INCREF(object);
    if (array.has_stream)
        status = gn_dlpack_follow(tensor, array.stream);
    if (status == GN_OK)
        return tensor_to_python(state, tensor);
    (void)error_raise(state, status);
    gn_tensor_release(tensor);
    return NULL;
}
