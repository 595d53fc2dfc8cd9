/*
 * python_tensor_views.c: other shapes of Tensor's elements, as methods that take sizes one by one, as one sequence,
 * or as one by its name.
 */
#include "module.h"

/* The values that stand for sizes or dimensions: the arguments, or the one that has a name. */
static int values_take(const char *function, const char *const names[2], Py_ssize_t *count,
                       PyObject *keywords)
{
    Py_ssize_t named = keywords != NULL ? PyTuple_Size(keywords) : 0;
    if (named == 0)
        return 0;
    PyObject *name = PyTuple_GetItem(keywords, 0);
    if (*count > 0 || named > 1 ||
        (PyUnicode_CompareWithASCIIString(name, names[0]) != 0 &&
         PyUnicode_CompareWithASCIIString(name, names[1]) != 0)) {
        PyErr_Format(PyExc_TypeError, "%s() takes one argument by name, %s, or none, not %R",
                     function, names[0], keywords);
        return -1;
    }
    *count = 1;
    return 0;
}

typedef gn_status (*shape_call)(gn_tensor *tensor, int ndim, const int64_t *sizes,
                                gn_tensor **result);

static PyObject *with_shape(PyObject *self, const char *function, PyObject *const *arguments,
                            Py_ssize_t count, PyObject *keywords, shape_call call)
{
    static const char *const names[] = {"shape", "size"};
    int64_t sizes[GN_DIMENSIONS_MAX];
    int ndim;
    gn_tensor *result;
    gn_status status;
    if (values_take(function, names, &count, keywords) < 0 ||
        shape_from_python(arguments, count, sizes, &ndim) < 0)
        return NULL;
    CALL_ALLOCATING(status, call(tensor_of(self), ndim, sizes, &result));
    return tensor_or_raise_in(tensor_state(self), function, status, result);
}

/* A shape, or a dtype: then the same bytes are seen as elements of that. */
static PyObject *tensor_view(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                             PyObject *keywords)
{
    struct module_state *state = tensor_state(self);
    Py_ssize_t named = keywords != NULL ? PyTuple_Size(keywords) : 0;
    bool is_named =
        named == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GetItem(keywords, 0), "dtype") == 0;
    gn_dtype dtype;
    gn_tensor *view;
    gn_status status;
    if (count + named != 1 ||
        (!is_named && Py_TYPE(arguments[0]) != (PyTypeObject *)state->dtype_class))
        return with_shape(self, "view", arguments, count, keywords, gn_tensor_view);
    if (dtype_from_python(state, arguments[0], &dtype) < 0)
        return NULL;
    CALL_ALLOCATING(status, gn_tensor_view_as_dtype(tensor_of(self), dtype, &view));
    return tensor_or_raise_in(state, "view", status, view);
}

static PyObject *tensor_reshape(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                PyObject *keywords)
{
    return with_shape(self, "reshape", arguments, count, keywords, gn_tensor_reshape);
}

static PyObject *tensor_expand(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                               PyObject *keywords)
{
    return with_shape(self, "expand", arguments, count, keywords, gn_tensor_expand);
}

static PyObject *tensor_broadcast_to(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                     PyObject *keywords)
{
    return with_shape(self, "broadcast_to", arguments, count, keywords, gn_tensor_expand);
}

static PyObject *tensor_permute(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                PyObject *keywords)
{
    static const char *const names[] = {"dims", "dims"};
    int64_t values[GN_DIMENSIONS_MAX];
    int order[GN_DIMENSIONS_MAX], ndim;
    gn_tensor *view;
    if (values_take("permute", names, &count, keywords) < 0 ||
        shape_from_python(arguments, count, values, &ndim) < 0)
        return NULL;
    if (ndim != gn_tensor_get_dimensions(tensor_of(self))) {
        PyErr_Format(tensor_state(self)->shape_error,
                     "permute: a tensor of %d dimensions takes as many, not %d",
                     gn_tensor_get_dimensions(tensor_of(self)), ndim);
        return NULL;
    }
    for (int i = 0; i < ndim; i++)
        order[i] = values[i] < -GN_DIMENSIONS_MAX || values[i] > GN_DIMENSIONS_MAX
                       ? GN_DIMENSIONS_MAX
                       : (int)values[i];
    gn_status status;
    CALL_OPERATION(gn_is_pending(), status, gn_tensor_permute(tensor_of(self), order, &view));
    return tensor_or_raise_in(tensor_state(self), "permute", status, view);
}

/* Any sizes and strides; the offset is that of the tensor where none is given. */
static PyObject *tensor_as_strided(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"size", "stride", "storage_offset", NULL};
    PyObject *size, *stride, *start = Py_None;
    int64_t sizes[GN_DIMENSIONS_MAX], strides[GN_DIMENSIONS_MAX];
    int64_t offset = gn_tensor_get_offset(tensor_of(self));
    int ndim, stride_count, one;
    gn_tensor *view;
    gn_status status;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO|O:as_strided", names, &size, &stride,
                                     &start) ||
        integers_from_python(size, "size", sizes, GN_DIMENSIONS_MAX, &ndim) < 0 ||
        integers_from_python(stride, "stride", strides, GN_DIMENSIONS_MAX, &stride_count) < 0 ||
        (start != Py_None && integers_from_python(start, "storage_offset", &offset, 1, &one) < 0))
        return NULL;
    if (ndim != stride_count) {
        PyErr_Format(tensor_state(self)->shape_error, "as_strided: %d sizes and %d strides", ndim,
                     stride_count);
        return NULL;
    }
    CALL_ALLOCATING(status,
                    gn_tensor_as_strided(tensor_of(self), ndim, sizes, strides, offset, &view));
    return tensor_or_raise_in(tensor_state(self), "as_strided", status, view);
}

PyMethodDef tensor_view_methods[] = {
    {"view", WITH_VECTOR(tensor_view),
     "view($self, /, *shape)\n--\n\n"
     "The same elements with another shape, or the same bytes as another dtype, without a copy."},
    {"reshape", WITH_VECTOR(tensor_reshape),
     "reshape($self, /, *shape)\n--\n\nAnother shape, with a copy only where there must be one."},
    {"expand", WITH_VECTOR(tensor_expand),
     "expand($self, /, *shape)\n--\n\nA view in which dimensions of 1 are repeated; -1 keeps a "
     "size."},
    {"broadcast_to", WITH_VECTOR(tensor_broadcast_to),
     "broadcast_to($self, /, *shape)\n--\n\nA view in which dimensions of 1 are repeated."},
    {"permute", WITH_VECTOR(tensor_permute),
     "permute($self, /, *dims)\n--\n\nA view with the dimensions in another order."},
    {"as_strided", WITH_KEYWORDS(tensor_as_strided),
     "as_strided($self, size, stride, storage_offset=None)\n--\n\n"
     "A view with any sizes and strides, in elements, as long as it stays in the storage."},
    {NULL, NULL, 0, NULL},
};
