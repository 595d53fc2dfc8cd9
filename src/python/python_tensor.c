/*
 * python_tensor.c: genesis.Tensor: what a tensor is, its copies, and its bytes.
 *
 * A Tensor owns one reference to its gn_tensor, which never changes, and lies in the room within that: one
 * allocation makes both, and a gn_tensor becomes a Tensor once, but for a gradient, whose Tensor
 * is found or made again (tensor_find_python). A function that gives back the tensor that it was
 * given gives back the Tensor. The interpreter's lock is let go around calls that may compute for long.
 *
 * An object of a subclass (genesis.nn.Parameter) may need more room: it has memory of its own, and the room says where.
 */
#include "module.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

/* Makes a Tensor in the room of its gn_tensor. */
static PyObject *tensor_init(struct module_state *state, gn_tensor *tensor,
                             struct tensor_object *made)
{
    made->tensor = tensor;
    made->state = state;
    made->weak = made->apart = NULL;
    return PyObject_Init((PyObject *)made, (PyTypeObject *)state->tensor_class);
}

PyObject *tensor_to_python(struct module_state *state, gn_tensor *tensor)
{
    struct tensor_object *made = gn_tensor_take_room(tensor);
    if (made == NULL) {
        PyErr_SetString(PyExc_SystemError, "a gn_tensor became two objects of Python");
        gn_tensor_release(tensor);
        return NULL;
    }
    return tensor_init(state, tensor, made);
}

PyObject *tensor_find_python(struct module_state *state, gn_tensor *tensor)
{
    struct tensor_object *found = gn_tensor_get_room(tensor);
    if (found == NULL)
        return tensor_to_python(state, tensor);
    if (found->tensor != NULL) {
        gn_tensor_release(tensor); /* the Tensor has a reference of its own */
        return Py_NewRef((PyObject *)found);
    }
    if (found->apart != NULL && Py_REFCNT(found->apart) > 0) {
        gn_tensor_release(tensor);
        return Py_NewRef(found->apart);
    }
    return tensor_init(state, tensor, found); /* its Tensor has gone */
}

static PyObject *subclass_make(struct module_state *state, PyObject *class, PyObject *data,
                               bool is_required)
{
    gn_tensor *tensor;
    gn_status status;
    CALL_OPERATION(gn_is_pending(), status, gn_tensor_detach(tensor_of(data), &tensor));
    if (status != GN_OK)
        return error_raise(state, status);
    struct tensor_object *room = gn_tensor_take_room(tensor);
    struct tensor_object *made =
        room != NULL ? (struct tensor_object *)object_alloc((PyTypeObject *)class) : NULL;
    if (made == NULL) {
        if (room == NULL)
            PyErr_SetString(PyExc_SystemError, "a gn_tensor became two objects of Python");
        gn_tensor_release(tensor);
        return NULL;
    }
    made->tensor = tensor;
    made->state = state;
    *room = (struct tensor_object){.apart = (PyObject *)made};
    if (state->parameter_class == NULL)
        state->parameter_class = Py_NewRef(class);
    return gradient_request((PyObject *)made, is_required);
}

/* _make_subclass(class, data, requires_grad=False): what `data` is, without a history, as an object of a subclass. */
static PyObject *make_subclass(PyObject *module, PyObject *arguments)
{
    struct module_state *state = module_state_of(module);
    PyObject *class, *data;
    int is_required = 0;
    if (!PyArg_ParseTuple(arguments, "O!O|p:_make_subclass", &PyType_Type, &class, &data,
                          &is_required))
        return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)class, (PyTypeObject *)state->tensor_class) ||
        class == state->tensor_class || !tensor_check(state, data)) {
        PyErr_Format(PyExc_TypeError,
                     "_make_subclass: a subclass of Tensor and a Tensor are "
                     "expected, not %R and %R",
                     class, (PyObject *)Py_TYPE(data));
        return NULL;
    }
    return subclass_make(state, class, data, is_required != 0);
}

PyMethodDef tensor_subclass_functions[] = {
    {"_make_subclass", make_subclass, METH_VARARGS,
     "_make_subclass($module, cls, data, requires_grad=False, /)\n--\n\n"
     "What a tensor is, without a history, as an object of a subclass of Tensor."},
    {NULL, NULL, 0, NULL},
};

PyObject *tensor_or_raise_in(struct module_state *state, const char *function, gn_status status,
                             gn_tensor *tensor)
{
    return status == GN_OK ? tensor_to_python(state, tensor)
                           : error_raise_in(state, function, status);
}

PyObject *tensor_or_raise(struct module_state *state, gn_status status, gn_tensor *tensor)
{
    return tensor_or_raise_in(state, NULL, status, tensor);
}

static void tensor_dealloc(PyObject *self)
{
    PyTypeObject *class = Py_TYPE(self);
    struct tensor_object *object = (struct tensor_object *)self;
    gn_tensor *tensor = object->tensor; /* in which the object is, but for one of a subclass */
    struct tensor_object *room = gn_tensor_get_room(tensor);
    object->tensor = NULL; /* a graph may keep it: see tensor_find_python() */
    if (room->apart == self)
        room->apart = NULL;
    if (object->weak != NULL)
        PyObject_ClearWeakRefs(self);
    gn_tensor_release(tensor);
    if (room != object)
        object_free(self);
    else
        Py_DECREF(class);
}

int integer_from_python(PyObject *object, gn_scalar *number)
{
    int overflow;
    *number =
        (gn_scalar){.kind = GN_INT64, .integer = PyLong_AsLongLongAndOverflow(object, &overflow)};
    if (overflow > 0) {
        *number =
            (gn_scalar){.kind = GN_UINT64, .integer = (int64_t)PyLong_AsUnsignedLongLong(object)};
        overflow = number->integer == -1 && PyErr_Occurred();
        PyErr_Clear();
    }
    if (overflow != 0)
        PyErr_Format(PyExc_OverflowError, "%R does not fit int64 or uint64", object);
    return overflow != 0 || (number->integer == -1 && PyErr_Occurred()) ? -1 : 0;
}

int operand_from_python(struct module_state *state, PyObject *object, gn_operand *operand)
{
    if (tensor_check(state, object)) {
        operand->tensor = tensor_of(object);
        return 1;
    }
    bool is_plain_int = PyLong_CheckExact(object); /* the usual number, known without a call */
    if (!is_plain_int && PyFloat_Check(object)) {
        *operand =
            (gn_operand){.scalar = {.kind = GN_FLOAT64, .floating = PyFloat_AsDouble(object)}};
        return 1;
    }
    if (PyBool_Check(object)) {
        *operand = (gn_operand){.scalar = {.kind = GN_BOOL, .integer = object == Py_True}};
        return 1;
    }
    if (is_plain_int || PyLong_Check(object)) {
        *operand = (gn_operand){0};
        return integer_from_python(object, &operand->scalar) < 0 ? -1 : 1;
    }
    return 0;
}

int integers_from_python(PyObject *object, const char *what, int64_t *values, int most, int *count)
{
    if (PyLong_Check(object) || PyIndex_Check(object)) {
        values[0] = PyLong_AsLongLong(object);
        *count = 1;
        if (values[0] != -1 || !PyErr_Occurred())
            return 0;
        if (PyLong_Check(object) || !PySequence_Check(object))
            return -1;
        PyErr_Clear(); /* an array of several */
    }
    PyObject *sequence = PyUnicode_Check(object) ? NULL : items_take(object, most);
    if (sequence == NULL) {
        if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError, "%s is %s, not %R", what,
                         most == 1 ? "an integer" : "one integer or several", object);
        return -1;
    }
    Py_ssize_t length = PyTuple_Size(sequence);
    if (length > most || (most == 1 && length == 0)) {
        if (most == 1)
            PyErr_Format(PyExc_ValueError, "%s is one integer, not %R", what, object);
        else
            PyErr_Format(PyExc_ValueError, "%s has at most %d integers, not %zd", what, most,
                         length);
        Py_DECREF(sequence);
        return -1;
    }
    for (Py_ssize_t i = 0; i < length; i++) {
        PyObject *number = PyNumber_Index(PyTuple_GetItem(sequence, i));
        values[i] = number != NULL ? PyLong_AsLongLong(number) : -1;
        Py_XDECREF(number);
        if (values[i] == -1 && PyErr_Occurred()) {
            Py_DECREF(sequence);
            return -1;
        }
    }
    *count = (int)length;
    Py_DECREF(sequence);
    return 0;
}

int shape_from_python(PyObject *const *arguments, Py_ssize_t count, int64_t *sizes, int *ndim)
{
    if (count == 1)
        return integers_from_python(arguments[0], "a shape", sizes, GN_DIMENSIONS_MAX, ndim);
    if (count > GN_DIMENSIONS_MAX) {
        PyErr_Format(PyExc_ValueError, "a tensor has at most %d dimensions", GN_DIMENSIONS_MAX);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        int one;
        if (!PyIndex_Check(arguments[i])) {
            PyErr_SetString(PyExc_TypeError,
                            "a shape is given as integers, or as one tuple of them");
            return -1;
        }
        if (integers_from_python(arguments[i], "a shape", &sizes[i], 1, &one) < 0)
            return -1;
    }
    *ndim = (int)count;
    return 0;
}

int dim_take(const char *name, PyObject *given, int *dim)
{
    if (given == NULL)
        return 0;
    PyObject *number = PyIndex_Check(given) ? PyNumber_Index(given) : NULL;
    if (number == NULL) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "%s: dim is an integer, not %R", name, given);
        return -1;
    }
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow != 0 || value < -GN_DIMENSIONS_MAX || value > GN_DIMENSIONS_MAX) {
        PyErr_Format(PyExc_IndexError, "%s: dimension %R is out of range", name, given);
        return -1;
    }
    *dim = (int)value;
    return 0;
}

PyObject *integers_to_python(const int64_t *values, int count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple != NULL && i < count; i++) {
        PyObject *value = PyLong_FromLongLong(values[i]);
        if (value == NULL || PyTuple_SetItem(tuple, i, value) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* ---- what it is ------------------------------------------------------------------------------ */

static PyObject *get_shape(PyObject *self, void *unused)
{
    (void)unused;
    return integers_to_python(gn_tensor_get_shape(tensor_of(self)),
                              gn_tensor_get_dimensions(tensor_of(self)));
}

static PyObject *get_strides(PyObject *self, void *unused)
{
    (void)unused;
    return integers_to_python(gn_tensor_get_strides(tensor_of(self)),
                              gn_tensor_get_dimensions(tensor_of(self)));
}

static PyObject *get_dtype(PyObject *self, void *unused)
{
    (void)unused;
    return dtype_to_python(tensor_state(self), gn_tensor_get_dtype(tensor_of(self)));
}

static PyObject *get_device(PyObject *self, void *unused)
{
    (void)unused;
    gn_device *device = gn_tensor_get_device(tensor_of(self));
    return device_to_python(tensor_state(self), gn_device_get_type(device),
                            gn_device_get_index(device));
}

static PyObject *get_ndim(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(gn_tensor_get_dimensions(tensor_of(self)));
}

static PyObject *get_nbytes(PyObject *self, void *unused)
{
    (void)unused;
    const gn_tensor *tensor = tensor_of(self);
    return PyLong_FromSize_t((size_t)gn_tensor_get_count(tensor) *
                             gn_dtype_size(gn_tensor_get_dtype(tensor)));
}

static PyObject *get_t(PyObject *self, void *unused)
{
    (void)unused;
    gn_tensor *tensor = tensor_of(self), *view;
    int order[GN_DIMENSIONS_MAX], ndim = gn_tensor_get_dimensions(tensor);
    for (int i = 0; i < ndim; i++)
        order[i] = ndim - 1 - i;
    gn_status status;
    CALL_OPERATION(gn_is_pending(), status, gn_tensor_permute(tensor, order, &view));
    return tensor_or_raise(tensor_state(self), status, view);
}

static PyObject *get_mt(PyObject *self, void *unused)
{
    (void)unused;
    int ndim = gn_tensor_get_dimensions(tensor_of(self));
    if (ndim < 2) {
        PyErr_Format(tensor_state(self)->shape_error, "mT needs at least 2 dimensions, not %d",
                     ndim);
        return NULL;
    }
    return tensor_transposed(self, ndim - 2, ndim - 1);
}

static PyObject *get_place(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr((void *)(uintptr_t)gn_tensor_peek_storage(tensor_of(self)));
}

static PyObject *get_data(PyObject *self, void *unused)
{
    (void)unused;
    return tensor_detach(self);
}

/* The tensor becomes what another one is. */
static int set_data(PyObject *self, PyObject *value, void *unused)
{
    (void)unused;
    gn_status status;
    if (value == NULL || !tensor_check(tensor_state(self), value)) {
        PyErr_SetString(PyExc_TypeError, "data is a Tensor");
        return -1;
    }
    CALL_OPERATION(gn_is_pending(), status, gn_tensor_set_data(tensor_of(self), tensor_of(value)));
    if (status != GN_OK)
        (void)error_raise_in(tensor_state(self), "data", status);
    return status == GN_OK ? 0 : -1;
}

static PyObject *get_is_cuda(PyObject *self, void *unused)
{
    (void)unused;
    gn_device *device = gn_tensor_get_device(tensor_of(self));
    return PyBool_FromLong(gn_device_get_type(device) == GN_DEVICE_CUDA);
}

static PyObject *get_itemsize(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(gn_dtype_size(gn_tensor_get_dtype(tensor_of(self))));
}

static PyGetSetDef tensor_properties[] = {
    {"shape", get_shape, NULL, "The sizes, as a tuple.", NULL},
    {"strides", get_strides, NULL, "Elements from one index to the next, in each dimension.", NULL},
    {"data", get_data, set_data,
     "A view of all elements, without a history; what is assigned to it, the tensor becomes.",
     NULL},
    {"dtype", get_dtype, NULL, "The type of the elements.", NULL},
    {"device", get_device, NULL, "Where the elements are.", NULL},
    {"ndim", get_ndim, NULL, "How many dimensions there are.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all elements.", NULL},
    {"itemsize", get_itemsize, NULL, "Bytes of an element.", NULL},
    {"is_cuda", get_is_cuda, NULL, "Whether it is on a GPU.", NULL},
    {"T", get_t, NULL, "A view with the dimensions in reverse order.", NULL},
    {"mT", get_mt, NULL, "A view with the last two dimensions exchanged.", NULL},
    {"_place", get_place, NULL, "Where the storage is, to compare; 0 while it is pending.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyObject *tensor_numel(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLongLong(gn_tensor_get_count(tensor_of(self)));
}

static PyObject *tensor_element_size(PyObject *self, PyObject *unused)
{
    (void)unused;
    return get_itemsize(self, NULL);
}

static PyObject *tensor_storage_offset(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLongLong(gn_tensor_get_offset(tensor_of(self)));
}

static PyObject *tensor_is_contiguous(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                      PyObject *keywords)
{
    gn_memory_format format = GN_FORMAT_CONTIGUOUS;
    if (count > 0 || keywords != NULL) {
        if (format_argument(self, "is_contiguous", arguments, count, keywords, &format) < 0)
            return NULL;
    }
    return PyBool_FromLong(gn_tensor_has_format(tensor_of(self), format));
}

static PyObject *tensor_dim(PyObject *self, PyObject *unused)
{
    (void)unused;
    return get_ndim(self, NULL);
}

/* All, or those of one dimension. */
static PyObject *one_or_all(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                            PyObject *keywords, const int64_t *values, const char *what)
{
    const struct signature signature = {what, {"dim", NULL}, 0};
    int ndim = gn_tensor_get_dimensions(tensor_of(self));
    PyObject *taken[2];
    int64_t dimension;
    int one;
    if (arguments_take(&signature, arguments, count, keywords, taken) < 0)
        return NULL;
    if (taken[0] == Py_None)
        return integers_to_python(values, ndim);
    if (integers_from_python(taken[0], what, &dimension, 1, &one) < 0)
        return NULL;
    if (dimension < -ndim || dimension >= ndim) {
        PyErr_Format(PyExc_IndexError,
                     "dimension %lld is out of range for a tensor of %d dimension%s",
                     (long long)dimension, ndim, plural(ndim));
        return NULL;
    }
    return PyLong_FromLongLong(values[dimension < 0 ? dimension + ndim : dimension]);
}

static PyObject *tensor_stride(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                               PyObject *keywords)
{
    return one_or_all(self, arguments, count, keywords, gn_tensor_get_strides(tensor_of(self)),
                      "stride");
}

/* ---- copies ---------------------------------------------------------------------------------- */

static PyObject *cast_to(PyObject *self, gn_dtype dtype, bool is_copied)
{
    struct module_state *state = tensor_state(self);
    gn_tensor *result;
    gn_status status;
    if (!is_copied && gn_tensor_get_dtype(tensor_of(self)) == dtype)
        return Py_NewRef(self);
    CALL_OPERATION(false, status, gn_cast_in_order(tensor_of(self), dtype, &result));
    return tensor_or_raise(state, status, result);
}

static PyObject *tensor_clone(PyObject *self, PyObject *unused)
{
    (void)unused;
    return cast_to(self, gn_tensor_get_dtype(tensor_of(self)), true);
}

/* The copy of a leaf is a leaf, with a copy of its gradient. */
static PyObject *tensor_copy(PyObject *self, PyObject *unused)
{
    (void)unused;
    gn_tensor *tensor = tensor_of(self);
    if (!gn_tensor_is_leaf(tensor)) {
        PyErr_SetString(PyExc_RuntimeError,
                        "the tensor is the result of operations with one that requires a gradient, "
                        "and cannot be copied with them: use detach() or clone()");
        return NULL;
    }
    bool was_on = gn_set_gradients(false);
    PyObject *made =
        gradient_request(tensor_clone(self, NULL), gn_tensor_requires_gradient(tensor));
    PyObject *gradient = made != NULL ? PyObject_GetAttrString(self, "grad") : NULL;
    PyObject *copy = gradient == NULL || gradient == Py_None ? Py_XNewRef(gradient)
                                                             : tensor_clone(gradient, NULL);
    (void)gn_set_gradients(was_on);
    if (made != NULL && (copy == NULL || PyObject_SetAttrString(made, "grad", copy) < 0))
        Py_CLEAR(made);
    Py_XDECREF(copy);
    Py_XDECREF(gradient);
    return made;
}

static PyObject *tensor_contiguous(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                   PyObject *keywords)
{
    gn_memory_format format = GN_FORMAT_CONTIGUOUS;
    if (format_argument(self, "contiguous", arguments, count, keywords, &format) < 0)
        return NULL;
    return tensor_with_format(self, format, false);
}

static PyObject *method_clone(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                              PyObject *keywords)
{
    gn_memory_format format = GN_FORMAT_PRESERVE;
    if (format_argument(self, "clone", arguments, count, keywords, &format) < 0)
        return NULL;
    return tensor_with_format(self, format, true);
}

/* With the exception that a text is no device: it may have been meant as a dtype. */
static PyObject *word_refuse(struct module_state *state, PyObject *object)
{
    const char *text = PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, NULL) : NULL;
    bool is_device = text == NULL || strncmp(text, "cuda", 4) == 0 || strncmp(text, "cpu", 3) == 0;
    if (!is_device && PyErr_ExceptionMatches(state->invalid_device_error)) {
        PyErr_Clear();
        PyErr_Format(
            state->invalid_device_error,
            "to: %R is neither a device, as \"cpu\", \"cuda\" or \"cuda:N\", nor a dtype: %s",
            object, gn_dtype_advice(text));
    }
    return NULL;
}

/* Each argument says by itself what it is: a dtype, a device, another tensor; `non_blocking` and `copy` by name, or as
 * the first and second bool. */
static PyObject *tensor_to(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                           PyObject *keywords)
{
    struct module_state *state = tensor_state(self);
    gn_dtype dtype = gn_tensor_get_dtype(tensor_of(self));
    gn_device *device = gn_tensor_get_device(tensor_of(self));
    Py_ssize_t named = keywords != NULL ? PyTuple_Size(keywords) : 0;
    bool is_copied = false;
    int flags = 0;
    gn_memory_format format = GN_FORMAT_PRESERVE;
    for (Py_ssize_t i = 0; i < count + named; i++) {
        PyObject *name = i >= count ? PyTuple_GetItem(keywords, i - count) : NULL;
        if (arguments[i] == Py_None)
            continue;
        if (name == NULL && PyBool_Check(arguments[i])) {
            is_copied |= flags++ == 1 && arguments[i] == Py_True;
            continue;
        }
        if (name != NULL && (PyUnicode_CompareWithASCIIString(name, "copy") == 0 ||
                             PyUnicode_CompareWithASCIIString(name, "non_blocking") == 0)) {
            int is_true = PyObject_IsTrue(arguments[i]);
            if (is_true < 0)
                return NULL;
            is_copied |= is_true && PyUnicode_CompareWithASCIIString(name, "copy") == 0;
            continue;
        }
        if (name != NULL && PyUnicode_CompareWithASCIIString(name, "memory_format") == 0) {
            if (format_from_python(state, "to", arguments[i], &format) < 0)
                return NULL;
            continue;
        }
        if (name != NULL && PyUnicode_CompareWithASCIIString(name, "dtype") == 0) {
            if (dtype_from_python(state, arguments[i], &dtype) < 0)
                return NULL;
            continue;
        }
        if (name != NULL && PyUnicode_CompareWithASCIIString(name, "device") != 0 &&
            PyUnicode_CompareWithASCIIString(name, "other") != 0) {
            PyErr_Format(PyExc_TypeError, "to() has no argument %R", name);
            return NULL;
        }
        if (dtype_is_word(state, arguments[i])) { /* no device has such a name */
            if (dtype_from_python(state, arguments[i], &dtype) < 0)
                return NULL;
            continue;
        }
        if (PyErr_Occurred())
            return NULL;
        if (tensor_check(state, arguments[i])) {
            dtype = gn_tensor_get_dtype(tensor_of(arguments[i]));
            device = gn_tensor_get_device(tensor_of(arguments[i]));
            continue;
        }
        if (device_from_python(state, arguments[i], &device) < 0)
            return name == NULL ? word_refuse(state, arguments[i]) : NULL;
    }
    bool is_moved = device != gn_tensor_get_device(tensor_of(self));
    PyObject *moved = tensor_move(self, device);
    PyObject *made = moved != NULL ? cast_to(moved, dtype, is_copied && !is_moved) : NULL;
    Py_XDECREF(moved);
    if (made == NULL || format == GN_FORMAT_PRESERVE)
        return made;
    PyObject *ordered = tensor_with_format(made, format, false);
    Py_DECREF(made);
    return ordered;
}

/* x.float() and its like, with a memory format or without. */
static PyObject *cast_by_name(PyObject *self, const char *name, gn_dtype dtype,
                              PyObject *const *arguments, Py_ssize_t count, PyObject *keywords)
{
    gn_memory_format format = GN_FORMAT_PRESERVE;
    if (format_argument(self, name, arguments, count, keywords, &format) < 0)
        return NULL;
    PyObject *made = cast_to(self, dtype, false);
    if (made == NULL || format == GN_FORMAT_PRESERVE)
        return made;
    PyObject *ordered = tensor_with_format(made, format, false);
    Py_DECREF(made);
    return ordered;
}

#define CAST(name, dtype)                                                                        \
    static PyObject *tensor_##name(PyObject *self, PyObject *const *arguments, Py_ssize_t count, \
                                   PyObject *keywords)                                           \
    {                                                                                            \
        return cast_by_name(self, #name, dtype, arguments, count, keywords);                     \
    }
CAST(float, GN_FLOAT32)
CAST(double, GN_FLOAT64)
CAST(half, GN_FLOAT16)
CAST(bfloat16, GN_BFLOAT16)
CAST(long, GN_INT64)
CAST(int, GN_INT32)
CAST(short, GN_INT16)
CAST(char, GN_INT8)
CAST(byte, GN_UINT8)
CAST(bool, GN_BOOL)

/* ---- bytes ----------------------------------------------------------------------------------- */

static PyObject *scalar_to_python(gn_scalar scalar)
{
    switch (scalar.kind) {
    case GN_BOOL:
        return PyBool_FromLong(scalar.integer != 0);
    case GN_FLOAT64:
        return PyFloat_FromDouble(scalar.floating);
    case GN_UINT64:
        return PyLong_FromUnsignedLongLong((uint64_t)scalar.integer);
    default:
        return PyLong_FromLongLong(scalar.integer);
    }
}

static PyObject *tensor_item(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct module_state *state = tensor_state(self);
    const int64_t index[GN_DIMENSIONS_MAX] = {0};
    gn_scalar item;
    gn_status status;
    if (gn_tensor_peek_item(tensor_of(self), &item))
        return scalar_to_python(item);
    if (gn_tensor_get_count(tensor_of(self)) != 1) {
        PyErr_Format(PyExc_ValueError, "item() is for a tensor of one element, not of %lld",
                     (long long)gn_tensor_get_count(tensor_of(self)));
        return NULL;
    }
    CALL_OPERATION(is_long_on(tensor_of(self)), status,
                   gn_tensor_get_item(tensor_of(self), index, &item));
    return status == GN_OK ? scalar_to_python(item) : error_raise(state, status);
}

/* An item of a list; `plain` is float64, int64, uint64 or bool. */
static PyObject *plain_to_python(gn_dtype plain, const void *elements, int64_t i)
{
    switch (plain) {
    case GN_FLOAT64:
        return PyFloat_FromDouble(((const double *)elements)[i]);
    case GN_INT64:
        return PyLong_FromLongLong(((const int64_t *)elements)[i]);
    case GN_UINT64:
        return PyLong_FromUnsignedLongLong(((const uint64_t *)elements)[i]);
    default:
        return PyBool_FromLong(((const uint8_t *)elements)[i]);
    }
}

/* Lists in lists of contiguous elements; *next is the first that is not in a list yet. */
static PyObject *list_from(gn_tensor *tensor, int dimension, gn_dtype plain, const void *elements,
                           int64_t *next)
{
    int64_t size = gn_tensor_get_shape(tensor)[dimension];
    bool is_last = dimension + 1 == gn_tensor_get_dimensions(tensor);
    PyObject *list = PyList_New((Py_ssize_t)size);
    for (int64_t i = 0; list != NULL && i < size; i++) {
        PyObject *item = is_last ? plain_to_python(plain, elements, (*next)++)
                                 : list_from(tensor, dimension + 1, plain, elements, next);
        if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* A contiguous copy on the CPU as another type, and where its elements are: nobody gets to know the tensor's own
 * address. */
static gn_status plain_copy(gn_tensor *tensor, gn_dtype plain, gn_tensor **copy, void **elements)
{
    gn_device *host;
    gn_tensor *near;
    gn_status status = gn_device_get(GN_DEVICE_CPU, 0, &host);
    bool was_on = gn_set_gradients(false);
    if (status == GN_OK)
        status = gn_tensor_to(tensor, host, &near);
    if (status == GN_OK) {
        status = gn_cast(near, plain, copy);
        gn_tensor_release(near);
    }
    (void)gn_set_gradients(was_on);
    if (status != GN_OK)
        return status;
    status = gn_tensor_get_data(*copy, elements);
    if (status != GN_OK)
        gn_tensor_release(*copy);
    return status;
}

static PyObject *tensor_tolist(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct module_state *state = tensor_state(self);
    gn_tensor *tensor = tensor_of(self), *near;
    gn_dtype dtype = gn_tensor_get_dtype(tensor);
    gn_dtype plain = dtype == GN_BOOL || dtype == GN_UINT64 ? dtype
                     : gn_dtype_is_floating(dtype)          ? GN_FLOAT64
                                                            : GN_INT64;
    if (gn_tensor_get_dimensions(tensor) == 0)
        return tensor_item(self, NULL);
    void *elements = NULL;
    gn_status status;
    CALL_ALLOCATING(status, plain_copy(tensor, plain, &near, &elements));
    if (status != GN_OK)
        return error_raise(state, status);
    int64_t next = 0;
    PyObject *list = list_from(near, 0, plain, elements, &next);
    gn_tensor_release(near);
    return list;
}

/* Where a buffer's numbers are kept while somebody has it. */
struct buffer {
    Py_ssize_t sizes[GN_DIMENSIONS_MAX], strides[GN_DIMENSIONS_MAX];
    gn_tensor *owner; /* of the memory, whatever the Tensor becomes meanwhile */
};

static int tensor_get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    gn_tensor *tensor = tensor_of(self);
    gn_dtype dtype = gn_tensor_get_dtype(tensor);
    int ndim = gn_tensor_get_dimensions(tensor);
    void *data;
    gn_status status;
    view->obj = NULL;
    if (gn_tensor_requires_gradient(tensor)) {
        PyErr_SetString(PyExc_BufferError,
                        "the tensor requires a gradient, which would not follow: use detach() "
                        "first");
        return -1;
    }
    if (gn_device_get_type(gn_tensor_get_device(tensor)) != GN_DEVICE_CPU) {
        PyErr_SetString(PyExc_BufferError,
                        "the tensor is on a GPU, where the host cannot read: use cpu() first");
        return -1;
    }
    if (dtype_format(dtype) == NULL) {
        PyErr_Format(PyExc_BufferError, "%s has no format in the buffer protocol: convert it first",
                     gn_dtype_name(dtype));
        return -1;
    }
    if (!gn_tensor_is_contiguous(tensor) && (flags & PyBUF_STRIDES) != PyBUF_STRIDES) {
        PyErr_SetString(PyExc_BufferError, "the tensor is not contiguous");
        return -1;
    }
    if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE && gn_tensor_is_read_only(tensor)) {
        PyErr_SetString(PyExc_BufferError, "the tensor is read-only");
        return -1;
    }
    CALL_OPERATION(gn_is_pending(), status, gn_tensor_get_data(tensor, &data));
    struct buffer *buffer = status == GN_OK ? PyMem_Malloc(sizeof *buffer) : NULL;
    if (status == GN_OK && buffer == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (status == GN_OK)
        status = gn_tensor_detach(tensor, &buffer->owner);
    if (status != GN_OK) {
        PyMem_Free(buffer);
        (void)error_raise(tensor_state(self), status);
        return -1;
    }
    Py_ssize_t size = (Py_ssize_t)gn_dtype_size(dtype);
    for (int i = 0; i < ndim; i++) {
        buffer->sizes[i] = (Py_ssize_t)gn_tensor_get_shape(tensor)[i];
        buffer->strides[i] = (Py_ssize_t)gn_tensor_get_strides(tensor)[i] * size;
    }
    *view = (Py_buffer){
        .buf = data,
        .obj = Py_NewRef(self),
        .len = (Py_ssize_t)gn_tensor_get_count(tensor) * size,
        .itemsize = size,
        .readonly = gn_tensor_is_read_only(tensor),
        .ndim = ndim,
        .format =
            (flags & PyBUF_FORMAT) == PyBUF_FORMAT ? (char *)(uintptr_t)dtype_format(dtype) : NULL,
        .shape = (flags & PyBUF_ND) == PyBUF_ND ? buffer->sizes : NULL,
        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? buffer->strides : NULL,
        .internal = buffer,
    };
    return 0;
}

static void tensor_release_buffer(PyObject *self, Py_buffer *view)
{
    (void)self;
    gn_tensor_release(((struct buffer *)view->internal)->owner);
    PyMem_Free(view->internal);
}

/* At once, and a TypeError: that is how others ask whether there is something to go over. */
static PyObject *tensor_iterate(PyObject *self)
{
    if (gn_tensor_get_dimensions(tensor_of(self)) == 0) {
        PyErr_SetString(PyExc_TypeError, "a tensor without dimensions has no elements to go over");
        return NULL;
    }
    if (!gn_tensor_requires_gradient(tensor_of(self)) || !gn_gradients_are_on())
        return PySeqIter_New(self);
    PyObject *parts = PyObject_CallMethod(self, "unbind", NULL); /* one operation for gradients */
    PyObject *iterator = parts != NULL ? PyObject_GetIter(parts) : NULL;
    Py_XDECREF(parts);
    return iterator;
}

static PyObject *tensor_sequence_item(PyObject *self, Py_ssize_t index)
{
    PyObject *key = PyLong_FromSsize_t(index);
    PyObject *item = key != NULL ? tensor_get_index(self, key) : NULL;
    Py_XDECREF(key);
    return item;
}

static int tensor_truth(PyObject *self)
{
    int64_t count = gn_tensor_get_count(tensor_of(self));
    if (count != 1) {
        PyErr_Format(PyExc_ValueError,
                     "the truth of a tensor of %s elements is not defined: use any() or all()",
                     count == 0 ? "no" : "several");
        return -1;
    }
    PyObject *item = tensor_item(self, NULL);
    int is_true = item != NULL ? PyObject_IsTrue(item) : -1;
    Py_XDECREF(item);
    return is_true;
}

static PyObject *tensor_as_int(PyObject *self)
{
    PyObject *item = tensor_item(self, NULL);
    PyObject *number = item != NULL ? PyNumber_Long(item) : NULL;
    Py_XDECREF(item);
    return number;
}

static PyObject *tensor_as_float(PyObject *self)
{
    PyObject *item = tensor_item(self, NULL);
    PyObject *number = item != NULL ? PyNumber_Float(item) : NULL;
    Py_XDECREF(item);
    return number;
}

static PyObject *tensor_as_complex(PyObject *self, PyObject *unused)
{
    PyObject *number = tensor_item(self, unused);
    double real = number != NULL ? PyFloat_AsDouble(number) : -1;
    Py_XDECREF(number);
    return real == -1 && PyErr_Occurred() ? NULL : PyComplex_FromDoubles(real, 0);
}

/* Whether an element is equal to it. */
static int tensor_contains(PyObject *self, PyObject *value)
{
    PyObject *is_equal = PyObject_RichCompare(self, value, Py_EQ), *found = is_equal;
    if (is_equal != NULL && tensor_check(tensor_state(self), is_equal)) {
        found = PyObject_CallMethod(is_equal, "any", NULL);
        Py_DECREF(is_equal);
    }
    int is_true = found != NULL ? PyObject_IsTrue(found) : -1;
    Py_XDECREF(found);
    return is_true;
}

/* All dimensions the other way round, as PyTorch has it. */
static PyObject *tensor_reversed(PyObject *self, PyObject *unused)
{
    (void)unused;
    gn_tensor *tensor = tensor_of(self), *result;
    uint32_t all = (uint32_t)((UINT64_C(1) << gn_tensor_get_dimensions(tensor)) - 1);
    gn_status status;
    CALL_OPERATION(is_long_on(tensor), status, gn_flip(tensor, all, &result));
    return tensor_or_raise(tensor_state(self), status, result);
}

static PyObject *tensor_index(PyObject *self)
{
    if (gn_dtype_is_floating(gn_tensor_get_dtype(tensor_of(self)))) {
        PyErr_SetString(PyExc_TypeError, "only a tensor of one integer can be an index");
        return NULL;
    }
    return tensor_as_int(self);
}

static Py_ssize_t tensor_length(PyObject *self)
{
    if (gn_tensor_get_dimensions(tensor_of(self)) == 0) {
        PyErr_SetString(PyExc_TypeError, "a tensor without dimensions has no length");
        return -1;
    }
    return (Py_ssize_t)gn_tensor_get_shape(tensor_of(self))[0];
}

static PyObject *tensor_repr(PyObject *self)
{
    PyObject *module = PyImport_ImportModule("genesis._tensor");
    PyObject *text = module != NULL ? PyObject_CallMethod(module, "text_of", "O", self) : NULL;
    Py_XDECREF(module);
    return text;
}

static Py_hash_t tensor_hash(PyObject *self)
{
    return (Py_hash_t)((uintptr_t)self >> 4); /* by identity: == is elementwise */
}

static PyObject *tensor_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *module = PyImport_ImportModule("genesis._tensor");
    PyObject *made = module != NULL ? PyObject_CallMethod(module, "reduced", "O", self) : NULL;
    Py_XDECREF(module);
    return made;
}

#define CAST_ENTRY(name, type)                                               \
    {                                                                        \
#name, WITH_VECTOR(tensor_##name),                                   \
            #name "($self, memory_format=None)\n--\n\nThe elements as " type \
                  "; itself where they are."                                 \
    }

static PyMethodDef tensor_methods[] = {
    {"numel", tensor_numel, METH_NOARGS, "numel($self, /)\n--\n\nHow many elements there are."},
    {"nelement", tensor_numel, METH_NOARGS,
     "nelement($self, /)\n--\n\nHow many elements there are."},
    {"dim", tensor_dim, METH_NOARGS, "dim($self, /)\n--\n\nHow many dimensions there are."},
    {"ndimension", tensor_dim, METH_NOARGS,
     "ndimension($self, /)\n--\n\nHow many dimensions there are."},
    {"__complex__", tensor_as_complex, METH_NOARGS, "__complex__($self, /)\n--\n\n"},
    {"__reversed__", tensor_reversed, METH_NOARGS,
     "__reversed__($self, /)\n--\n\nA copy with all dimensions the other way round."},
    {"element_size", tensor_element_size, METH_NOARGS,
     "element_size($self, /)\n--\n\nBytes of an element."},
    {"storage_offset", tensor_storage_offset, METH_NOARGS,
     "storage_offset($self, /)\n--\n\nWhere the first element is in its storage, in elements."},
    {"is_contiguous", WITH_VECTOR(tensor_is_contiguous),
     "is_contiguous($self, memory_format=None)\n--\n\n"
     "Whether the elements follow each other in row-major order, or in that of a memory format."},
    {"stride", WITH_VECTOR(tensor_stride),
     "stride($self, dim=None)\n--\n\nElements from one index to the next: of all dimensions, or "
     "one."},
    {"clone", WITH_VECTOR(method_clone),
     "clone($self, *, memory_format=None)\n--\n\n"
     "A copy: without gaps, in the order of the elements in memory, or in a memory format."},
    {"__copy__", tensor_copy, METH_NOARGS, "__copy__($self, /)\n--\n\nThe same as clone()."},
    {"__deepcopy__", tensor_copy, METH_O,
     "__deepcopy__($self, memo, /)\n--\n\nThe same as clone()."},
    {"__reduce__", tensor_reduce, METH_NOARGS, "__reduce__($self, /)\n--\n\nFor pickle."},
    {"contiguous", WITH_VECTOR(tensor_contiguous),
     "contiguous($self, memory_format=None)\n--\n\n"
     "Itself if it is contiguous, or has a memory format, else a copy that is so."},
    {"to", WITH_VECTOR(tensor_to),
     "to($self, /, *what, dtype=None, device=None, copy=False, non_blocking=False, "
     "memory_format=None)\n--\n\n"
     "With another dtype, or as another tensor is; itself where it is so, unless a copy is asked "
     "for."},
    CAST_ENTRY(float, "float32"),
    CAST_ENTRY(double, "float64"),
    CAST_ENTRY(half, "float16"),
    CAST_ENTRY(bfloat16, "bfloat16"),
    CAST_ENTRY(long, "int64"),
    CAST_ENTRY(int, "int32"),
    CAST_ENTRY(short, "int16"),
    CAST_ENTRY(char, "int8"),
    CAST_ENTRY(byte, "uint8"),
    CAST_ENTRY(bool, "bool"),
    {"item", tensor_item, METH_NOARGS,
     "item($self, /)\n--\n\nThe one element, as Python's number."},
    {"tolist", tensor_tolist, METH_NOARGS,
     "tolist($self, /)\n--\n\nThe elements as lists in lists, or as one number."},
    {NULL, NULL, 0, NULL},
};

static const char tensor_doc[] = "Elements of one type on a device, with a shape.\n\n"
                                 "Elementwise operations may wait until somebody needs their "
                                 "result: a chain of them is then one\n"
                                 "pass over memory. Nobody can tell but by the clock.\n\n"
                                 "Examples\n--------\n"
                                 ">>> import genesis\n"
                                 ">>> x = genesis.tensor([[1.0, 2.0], [3.0, 4.0]])\n"
                                 ">>> ((x + 1) * 2).sum(dim=1)\n"
                                 "tensor([10., 18.])\n";

/* Tensor(2, 3) is empty(2, 3), and Tensor(data) is as_tensor(data) in the default dtype: of a subclass, too. */
static PyObject *tensor_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    struct module_state *state = module_state_of_class(type);
    PyObject *made = tensor_of_call(state, arguments, keywords);
    if (made == NULL || (PyObject *)type == state->tensor_class)
        return made;
    PyObject *own = subclass_make(state, (PyObject *)type, made, false);
    Py_DECREF(made);
    return own;
}

static PyMemberDef tensor_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct tensor_object, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot tensor_slots[] = {
    {Py_tp_doc, (void *)tensor_doc},
    {Py_tp_new, tensor_new},
    {Py_tp_dealloc, tensor_dealloc},
    {Py_tp_methods, tensor_methods},
    {Py_tp_members, tensor_members},
    {Py_tp_getset, tensor_properties},
    {Py_tp_repr, tensor_repr},
    {Py_tp_hash, tensor_hash},
    {Py_mp_length, tensor_length},
    {Py_sq_length, tensor_length},
    {Py_sq_item, tensor_sequence_item},
    {Py_sq_contains, tensor_contains},
    {Py_tp_iter, tensor_iterate},
    {Py_mp_subscript, tensor_get_index},
    {Py_mp_ass_subscript, tensor_set_index},
    {Py_bf_getbuffer, tensor_get_buffer},
    {Py_bf_releasebuffer, tensor_release_buffer},
    {Py_nb_bool, tensor_truth},
    {Py_nb_int, tensor_as_int},
    {Py_nb_float, tensor_as_float},
    {Py_nb_index, tensor_index},
};

enum {
    OWN_SLOTS = sizeof tensor_slots / sizeof *tensor_slots,
    SLOTS_MOST = OWN_SLOTS + 48,
};

/* Methods that stand in tables of their own are put into the class one by one. */
int methods_add(PyObject *class, PyMethodDef *methods)
{
    for (; methods->ml_name != NULL; methods++) {
        PyObject *descriptor = (methods->ml_flags & METH_CLASS) != 0
                                   ? PyDescr_NewClassMethod((PyTypeObject *)class, methods)
                                   : PyDescr_NewMethod((PyTypeObject *)class, methods);
        if (descriptor == NULL)
            return -1;
        int status = PyObject_SetAttrString(class, methods->ml_name, descriptor);
        Py_DECREF(descriptor);
        if (status < 0)
            return -1;
    }
    return 0;
}

int tensor_class_init(PyObject *module, struct module_state *state)
{
    PyType_Slot slots[SLOTS_MOST];
    int count = OWN_SLOTS;
    memcpy(slots, tensor_slots, sizeof tensor_slots);
    for (const PyType_Slot *slot = tensor_number_slots; slot->slot != 0; slot++)
        slots[count++] = *slot;
    slots[count] = (PyType_Slot){0, NULL};
    PyType_Spec spec = {
        .name = "genesis.Tensor",
        .basicsize = sizeof(struct tensor_object),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
        .slots = slots,
    };
    state->tensor_class = PyType_FromModuleAndSpec(module, &spec, NULL);
    if (state->tensor_class == NULL || pair_class_init(state) < 0 ||
        methods_add(state->tensor_class, tensor_op_methods) < 0 ||
        methods_add(state->tensor_class, tensor_reduction_methods) < 0 ||
        methods_add(state->tensor_class, tensor_view_methods) < 0 ||
        methods_add(state->tensor_class, tensor_place_methods) < 0 ||
        methods_add(state->tensor_class, tensor_make_methods) < 0 ||
        methods_add(state->tensor_class, tensor_product_methods) < 0 ||
        tensor_dlpack_init(state->tensor_class) < 0 || tensor_interop_init(state->tensor_class) < 0)
        return -1;
    return PyModule_AddType(module, (PyTypeObject *)state->tensor_class);
}
