/*
 * python_tensor_views.c: the views that programs make most often, as methods with a way of their own to take arguments:
 * the calls of ops/functions_views.c, through the table of functions, take about twice as long. Sizes are given one by
 * one, as one sequence, or as one by its name.
 */
#include "module.h"

/* ---- by sizes -------------------------------------------------------------------------------- */

/* The values that stand for sizes or dimensions: the arguments, or the one that has a name. */
static int values_take(const char *function, const char *const names[3], Py_ssize_t *count,
                       PyObject *keywords)
{
    Py_ssize_t named = keywords != NULL ? PyTuple_Size(keywords) : 0;
    if (named == 0)
        return 0;
    PyObject *name = PyTuple_GetItem(keywords, 0);
    if (*count > 0 || named > 1 ||
        (PyUnicode_CompareWithASCIIString(name, names[0]) != 0 &&
         PyUnicode_CompareWithASCIIString(name, names[1]) != 0 &&
         PyUnicode_CompareWithASCIIString(name, names[2]) != 0)) {
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
    static const char *const names[] = {"shape", "size", "size"};
    int64_t sizes[GN_DIMENSIONS_MAX];
    int ndim;
    gn_tensor *result;
    gn_status status;
    if (values_take(function, names, &count, keywords) < 0 ||
        shape_from_python(arguments, count, sizes, &ndim) < 0)
        return NULL;
    CALL_OPERATION(is_long_on(tensor_of(self)), status,
                   call(tensor_of(self), ndim, sizes, &result));
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
    if (count + named != 1 || (!is_named && (named == 1 || !dtype_is_word(state, arguments[0]))))
        return PyErr_Occurred()
                   ? NULL
                   : with_shape(self, "view", arguments, count, keywords, gn_tensor_view);
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

static PyObject *tensor_permute(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                PyObject *keywords)
{
    static const char *const names[] = {"dims", "dims", "dims"};
    int64_t values[GN_DIMENSIONS_MAX];
    int order[GN_DIMENSIONS_MAX], ndim;
    gn_tensor *view;
    if (values_take("permute", names, &count, keywords) < 0 ||
        shape_from_python(arguments, count, values, &ndim) < 0)
        return NULL;
    if (ndim != gn_tensor_get_dimensions(tensor_of(self))) {
        PyErr_Format(tensor_state(self)->shape_error,
                     "permute: %d dimension%s given for a tensor of %d: each is named once", ndim,
                     plural(ndim), gn_tensor_get_dimensions(tensor_of(self)));
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

/* ---- by dimensions ---------------------------------------------------------------------------- */

/* One of `ndim` dimensions, counted from the end if negative; `extra` of them are not there yet. */
static int dimension_find(const char *name, int64_t value, int ndim, int extra, int *dimension)
{
    int span = ndim > 0 ? ndim : 1;
    if (value < -span || value >= span) {
        PyErr_Format(PyExc_IndexError,
                     "%s: dimension %lld is out of range for a tensor of %d dimension%s: %d to %d",
                     name, (long long)value, ndim - extra, plural(ndim - extra), -span, span - 1);
        return -1;
    }
    *dimension = (int)(value < 0 ? value + span : value);
    return 0;
}

/* Dimensions as arguments. */
static int dimensions_take(PyObject *self, const char *name, PyObject *const *arguments, int count,
                           int extra, int *dimensions)
{
    int ndim = gn_tensor_get_dimensions(tensor_of(self)) + extra;
    for (int i = 0; i < count; i++) {
        int64_t value;
        int one;
        if (integers_from_python(arguments[i], "a dimension", &value, 1, &one) < 0 ||
            dimension_find(name, value, ndim, extra, &dimensions[i]) < 0)
            return -1;
    }
    return 0;
}

PyObject *tensor_transposed(PyObject *self, int first, int second)
{
    gn_tensor *tensor = tensor_of(self), *view;
    int order[GN_DIMENSIONS_MAX];
    for (int i = 0; i < gn_tensor_get_dimensions(tensor); i++)
        order[i] = i == first ? second : i == second ? first : i;
    gn_status status;
    CALL_OPERATION(gn_is_pending(), status, gn_tensor_permute(tensor, order, &view));
    return tensor_or_raise(tensor_state(self), status, view);
}

static PyObject *tensor_transpose(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                  PyObject *keywords)
{
    static const struct signature signature = {"transpose", {"dim0", "dim1"}, 2};
    PyObject *taken[2];
    int dimensions[2];
    if (arguments_take(&signature, arguments, count, keywords, taken) < 0 ||
        dimensions_take(self, "transpose", taken, 2, 0, dimensions) < 0)
        return NULL;
    return tensor_transposed(self, dimensions[0], dimensions[1]);
}

/* The dimensions from one to another become one. */
static PyObject *tensor_flatten(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                PyObject *keywords)
{
    static const struct signature signature = {"flatten", {"start_dim", "end_dim"}, 0};
    gn_tensor *tensor = tensor_of(self), *result;
    int ndim = gn_tensor_get_dimensions(tensor), ends[2] = {0, ndim > 0 ? ndim - 1 : 0};
    int64_t sizes[GN_DIMENSIONS_MAX], joined = 1;
    PyObject *taken[2];
    gn_status status;
    if (arguments_take(&signature, arguments, count, keywords, taken) < 0)
        return NULL;
    for (int i = 0; i < 2; i++)
        if (taken[i] != Py_None && dimensions_take(self, "flatten", &taken[i], 1, 0, &ends[i]) < 0)
            return NULL;
    if (ends[0] > ends[1]) {
        PyErr_Format(tensor_state(self)->shape_error,
                     "flatten: dimension %d does not come before %d", ends[0], ends[1]);
        return NULL;
    }
    for (int i = 0; i < ndim; i++) {
        if (i >= ends[0] && i <= ends[1])
            joined *= gn_tensor_get_shape(tensor)[i];
        else
            sizes[i < ends[0] ? i : i - (ends[1] - ends[0])] = gn_tensor_get_shape(tensor)[i];
    }
    sizes[ends[0]] = joined;
    int left = ndim > 0 ? ndim - (ends[1] - ends[0]) : 1;
    CALL_OPERATION(is_long_on(tensor), status, gn_tensor_reshape(tensor, left, sizes, &result));
    return tensor_or_raise(tensor_state(self), status, result);
}

static PyObject *tensor_unsqueeze(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                  PyObject *keywords)
{
    static const struct signature signature = {"unsqueeze", {"dim", NULL}, 1};
    PyObject *taken[2];
    int dimension;
    gn_tensor *view;
    if (arguments_take(&signature, arguments, count, keywords, taken) < 0 ||
        dimensions_take(self, "unsqueeze", taken, 1, 1, &dimension) < 0)
        return NULL;
    gn_status status;
    CALL_OPERATION(gn_is_pending(), status, gn_tensor_unsqueeze(tensor_of(self), dimension, &view));
    return tensor_or_raise(tensor_state(self), status, view);
}

/* Without dimensions of 1: all of them, or those that are named. */
static PyObject *tensor_squeeze(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                PyObject *keywords)
{
    static const struct signature signature = {"squeeze", {"dim", NULL}, 0};
    gn_tensor *tensor = tensor_of(self), *view;
    int ndim = gn_tensor_get_dimensions(tensor), named = 0, left = 0;
    int64_t sizes[GN_DIMENSIONS_MAX], dims[GN_DIMENSIONS_MAX];
    bool is_named[GN_DIMENSIONS_MAX] = {false};
    PyObject *taken[2];
    if (arguments_take(&signature, arguments, count, keywords, taken) < 0)
        return NULL;
    bool has_names = taken[0] != Py_None;
    if (has_names && integers_from_python(taken[0], "squeeze", dims, GN_DIMENSIONS_MAX, &named) < 0)
        return NULL;
    for (int i = 0; i < named; i++) {
        int dimension;
        if (dimension_find("squeeze", dims[i], ndim, 0, &dimension) < 0)
            return NULL;
        is_named[dimension] = true;
    }
    for (int i = 0; i < ndim; i++)
        if (gn_tensor_get_shape(tensor)[i] != 1 || (has_names && !is_named[i]))
            sizes[left++] = gn_tensor_get_shape(tensor)[i];
    gn_status status;
    CALL_OPERATION(gn_is_pending(), status, gn_tensor_view(tensor, left, sizes, &view));
    return tensor_or_raise(tensor_state(self), status, view);
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
    {"permute", WITH_VECTOR(tensor_permute),
     "permute($self, /, *dims)\n--\n\nA view with the dimensions in another order."},
    {"flatten", WITH_VECTOR(tensor_flatten),
     "flatten($self, start_dim=0, end_dim=-1)\n--\n\n"
     "Several dimensions, or all, as one, with a copy only where there must be one."},
    {"transpose", WITH_VECTOR(tensor_transpose),
     "transpose($self, dim0, dim1)\n--\n\nA view with two dimensions exchanged."},
    {"unsqueeze", WITH_VECTOR(tensor_unsqueeze),
     "unsqueeze($self, dim)\n--\n\nA view with a new dimension of 1."},
    {"squeeze", WITH_VECTOR(tensor_squeeze),
     "squeeze($self, dim=None)\n--\n\nA view without dimensions of 1: all of them, or those that "
     "are "
     "named."},
    {NULL, NULL, 0, NULL},
};
