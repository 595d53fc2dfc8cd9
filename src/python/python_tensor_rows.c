/*
 * python_tensor_rows.c: what works along one dimension, as methods.
 *
 * The dimension, and whether it is kept, have PyTorch's names and NumPy's: dim or axis, keepdim or keepdims.
 */
#include "module.h"

/* What is out of range stays so, as an int. */
static int dimension_clamp(int64_t dimension)
{
    return dimension < -GN_DIMENSIONS_MAX || dimension > GN_DIMENSIONS_MAX ? GN_DIMENSIONS_MAX + 1
                                                                           : (int)dimension;
}

/* A flag that was given; else it stays as it is. */
static int flag_take(PyObject *given, bool *flag)
{
    int is_true = given != NULL ? PyObject_IsTrue(given) : *flag;
    *flag = is_true > 0;
    return is_true < 0 ? -1 : 0;
}

PyObject *pair_make(struct module_state *state, gn_tensor *values, gn_tensor *indices)
{
    PyObject *pair = PyStructSequence_New((PyTypeObject *)state->pair_class);
    PyObject *first = tensor_to_python(state, values), *second = tensor_to_python(state, indices);
    if (pair == NULL || first == NULL || second == NULL) {
        Py_XDECREF(pair);
        Py_XDECREF(first);
        Py_XDECREF(second);
        return NULL;
    }
    PyStructSequence_SetItem(pair, 0, first);
    PyStructSequence_SetItem(pair, 1, second);
    return pair;
}

static PyObject *method_sort(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                             PyObject *keywords)
{
    static const struct call method = {"sort", {"dim", "descending", "stable"}, 3, 3, 0};
    struct module_state *state = tensor_state(self);
    PyObject *taken[CALL_ARGUMENTS_MOST];
    int dim = -1;
    bool is_descending = false;
    gn_tensor *values, *indices;
    gn_status status;
    if (call_take(&method, arguments, count, keywords, taken) < 0 ||
        dim_take("sort", taken[0], &dim) < 0 || flag_take(taken[1], &is_descending) < 0)
        return NULL;
    CALL_OPERATION(is_long_on(tensor_of(self)), status,
                   gn_sort(tensor_of(self), dim, is_descending, &values, &indices));
    return status == GN_OK ? pair_make(state, values, indices)
                           : error_raise_in(state, "sort", status);
}

static PyObject *method_argsort(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                PyObject *keywords)
{
    static const struct call method = {"argsort", {"dim", "descending", "stable"}, 3, 3, 0};
    PyObject *taken[CALL_ARGUMENTS_MOST];
    int dim = -1;
    bool is_descending = false;
    gn_tensor *indices;
    gn_status status;
    if (call_take(&method, arguments, count, keywords, taken) < 0 ||
        dim_take("argsort", taken[0], &dim) < 0 || flag_take(taken[1], &is_descending) < 0)
        return NULL;
    CALL_OPERATION(is_long_on(tensor_of(self)), status,
                   gn_sort(tensor_of(self), dim, is_descending, NULL, &indices));
    return tensor_or_raise_in(tensor_state(self), "argsort", status, indices);
}

/* The one dimension of a function; `several` is the function that takes more of them, or NULL. */
static int dimension_take(PyObject *dim, const char *name, const char *several, int64_t *dimension)
{
    int64_t dimensions[GN_DIMENSIONS_MAX];
    int count;
    if (integers_from_python(dim, "dim", dimensions, GN_DIMENSIONS_MAX, &count) < 0)
        return -1;
    if (count != 1) {
        PyErr_Format(PyExc_ValueError, "%s: dim is one integer, not %R%s%s%s", name, dim,
                     several != NULL ? "; " : "", several != NULL ? several : "",
                     several != NULL ? "() takes several" : "");
        return -1;
    }
    *dimension = dimensions[0];
    return 0;
}

/* max() and min(): of all elements one; along a dimension a pair; with another tensor the larger of two. */
static PyObject *extreme(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                         PyObject *keywords, bool is_maximum)
{
    const char *name = is_maximum ? "max" : "min";
    const struct call method = {name, {"dim", "keepdim"}, 2, 2, 0};
    struct module_state *state = tensor_state(self);
    gn_tensor *tensor = tensor_of(self), *values, *indices, *wide;
    PyObject *taken[CALL_ARGUMENTS_MOST];
    bool is_kept = false;
    int64_t dimension;
    gn_status status;
    if (call_take(&method, arguments, count, keywords, taken) < 0 ||
        flag_take(taken[1], &is_kept) < 0)
        return NULL;
    PyObject *dim = taken[0] != NULL ? taken[0] : Py_None;
    if (tensor_check(state, dim))
        return PyObject_CallMethod(self, is_maximum ? "maximum" : "minimum", "O", dim);
    if (dim == Py_None) {
        CALL_OPERATION(gn_tensor_get_count(tensor) > QUICK_MOST, status,
                       gn_reduce(is_maximum ? GN_REDUCE_MAXIMUM : GN_REDUCE_MINIMUM, tensor, 0,
                                 is_kept, &values));
        return tensor_or_raise_in(state, name, status, values);
    }
    if (dimension_take(dim, name, is_maximum ? "amax" : "amin", &dimension) < 0)
        return NULL;
    int at = dimension_clamp(dimension);
    CALL_OPERATION(is_long_on(tensor), status,
                   gn_extreme(tensor, at, is_maximum, &values, &indices));
    if (status != GN_OK)
        return error_raise_in(state, name, status);
    is_kept = is_kept && gn_tensor_get_dimensions(tensor) > 0;
    gn_tensor **both[] = {&values, &indices};
    for (int i = 0; i < 2 && is_kept && status == GN_OK; i++) {
        status = gn_tensor_unsqueeze(*both[i], at, &wide);
        if (status == GN_OK) {
            gn_tensor_release(*both[i]);
            *both[i] = wide;
        }
    }
    if (status == GN_OK)
        return pair_make(state, values, indices);
    gn_tensor_release(values);
    gn_tensor_release(indices);
    return error_raise_in(state, name, status);
}

/* Where it is: of all elements, in row-major order, or along a dimension. */
static PyObject *extreme_place(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                               PyObject *keywords, bool is_maximum)
{
    const char *name = is_maximum ? "argmax" : "argmin";
    const struct call method = {name, {"dim", "keepdim"}, 2, 2, 0};
    struct module_state *state = tensor_state(self);
    gn_tensor *tensor = tensor_of(self), *flat = NULL, *place, *wide;
    PyObject *taken[CALL_ARGUMENTS_MOST];
    int64_t ones[GN_DIMENSIONS_MAX], dimension = 0, whole = -1;
    bool is_kept = false;
    int ndim = gn_tensor_get_dimensions(tensor);
    gn_status status = GN_OK;
    if (call_take(&method, arguments, count, keywords, taken) < 0 ||
        flag_take(taken[1], &is_kept) < 0)
        return NULL;
    bool is_whole = taken[0] == NULL || taken[0] == Py_None;
    if (!is_whole && dimension_take(taken[0], name, NULL, &dimension) < 0)
        return NULL;
    bool is_long = is_long_on(tensor);
    int at = dimension_clamp(dimension);
    if (is_whole && ndim != 1)
        CALL_OPERATION(is_long, status, gn_tensor_reshape(tensor, 1, &whole, &flat));
    if (status == GN_OK)
        CALL_OPERATION(is_long, status,
                       gn_extreme(flat != NULL ? flat : tensor, at, is_maximum, NULL, &place));
    gn_tensor_release(flat);
    if (status != GN_OK || !is_kept || ndim == 0)
        return tensor_or_raise_in(state, name, status, place);
    for (int i = 0; i < ndim; i++)
        ones[i] = 1;
    if (is_whole)
        status = gn_tensor_view(place, ndim, ones, &wide);
    else
        status = gn_tensor_unsqueeze(place, at, &wide);
    gn_tensor_release(place);
    return tensor_or_raise_in(state, name, status, wide);
}

/* Methods of one function with two meanings. */
#define METHODS_OF_TWO(function, first, second)                                                    \
    static PyObject *method_##first(PyObject *self, PyObject *const *arguments, Py_ssize_t count,  \
                                    PyObject *keywords)                                            \
    {                                                                                              \
        return function(self, arguments, count, keywords, true);                                   \
    }                                                                                              \
    static PyObject *method_##second(PyObject *self, PyObject *const *arguments, Py_ssize_t count, \
                                     PyObject *keywords)                                           \
    {                                                                                              \
        return function(self, arguments, count, keywords, false);                                  \
    }
METHODS_OF_TWO(extreme, max, min)
METHODS_OF_TWO(extreme_place, argmax, argmin)

static PyObject *method_topk(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                             PyObject *keywords)
{
    static const struct call method = {"topk", {"k", "dim", "largest", "sorted"}, 4, 4, 1};
    struct module_state *state = tensor_state(self);
    PyObject *taken[CALL_ARGUMENTS_MOST];
    int dim = -1;
    bool is_largest = true; /* they always are sorted */
    gn_tensor *values, *indices;
    gn_status status;
    if (call_take(&method, arguments, count, keywords, taken) < 0 ||
        dim_take("topk", taken[1], &dim) < 0 || flag_take(taken[2], &is_largest) < 0)
        return NULL;
    PyObject *number = PyNumber_Index(taken[0]);
    long long k = number != NULL ? PyLong_AsLongLong(number) : -1;
    Py_XDECREF(number);
    if (k == -1 && PyErr_Occurred())
        return NULL;
    CALL_OPERATION(is_long_on(tensor_of(self)), status,
                   gn_topk(tensor_of(self), k, dim, is_largest, &values, &indices));
    return status == GN_OK ? pair_make(state, values, indices)
                           : error_raise_in(state, "topk", status);
}

static PyObject *method_kth(PyObject *self, PyObject *number)
{
    gn_tensor *value = NULL;
    gn_status status;
    long long k = PyLong_AsLongLong(number);
    if (k == -1 && PyErr_Occurred())
        return NULL;
    CALL_OPERATION(is_long_on(tensor_of(self)), status, gn_kth(tensor_of(self), k, &value));
    return tensor_or_raise_in(tensor_state(self), "kth", status, value);
}

static PyObject *softmax(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                         PyObject *keywords, bool is_log)
{
    const char *name = is_log ? "log_softmax" : "softmax";
    const struct call method = {name, {"dim", "dtype"}, 2, 2, 1};
    struct module_state *state = tensor_state(self);
    PyObject *taken[CALL_ARGUMENTS_MOST];
    gn_tensor *cast = NULL, *result = NULL;
    gn_dtype dtype;
    gn_status status = GN_OK;
    int dim = 0;
    if (call_take(&method, arguments, count, keywords, taken) < 0 ||
        dim_take(name, taken[0], &dim) < 0)
        return NULL;
    bool has_dtype = taken[1] != NULL && taken[1] != Py_None;
    if (has_dtype && dtype_from_python(state, taken[1], &dtype) < 0)
        return NULL;
    bool is_long = is_long_on(tensor_of(self));
    if (has_dtype)
        CALL_OPERATION(is_long, status, gn_cast(tensor_of(self), dtype, &cast));
    if (status == GN_OK)
        CALL_OPERATION(is_long, status,
                       gn_softmax(cast != NULL ? cast : tensor_of(self), dim, is_log, &result));
    gn_tensor_release(cast);
    return tensor_or_raise_in(state, name, status, result);
}
METHODS_OF_TWO(softmax, log_softmax, softmax)

/* With a type: of the elements as that, and as that. */
static gn_status cumulate_as(gn_tensor *tensor, int dim, bool is_product, gn_dtype dtype,
                             gn_tensor **result)
{
    gn_tensor *cast, *made;
    gn_status status = gn_cast(tensor, dtype, &cast);
    if (status != GN_OK)
        return status;
    status = gn_cumulate(cast, dim, is_product, &made);
    gn_tensor_release(cast);
    if (status != GN_OK)
        return status;
    status = gn_cast(made, dtype, result);
    gn_tensor_release(made);
    return status;
}

static PyObject *cumulate(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                          PyObject *keywords, bool is_product)
{
    const char *name = is_product ? "cumprod" : "cumsum";
    const struct call method = {name, {"dim", "dtype"}, 2, 2, 1};
    struct module_state *state = tensor_state(self);
    PyObject *taken[CALL_ARGUMENTS_MOST];
    gn_dtype dtype;
    int dim = 0;
    gn_tensor *result;
    gn_status status;
    if (call_take(&method, arguments, count, keywords, taken) < 0 ||
        dim_take(name, taken[0], &dim) < 0)
        return NULL;
    bool has_dtype = taken[1] != NULL && taken[1] != Py_None;
    if (has_dtype && dtype_from_python(state, taken[1], &dtype) < 0)
        return NULL;
    bool is_long = is_long_on(tensor_of(self));
    if (has_dtype)
        CALL_OPERATION(is_long, status,
                       cumulate_as(tensor_of(self), dim, is_product, dtype, &result));
    else
        CALL_OPERATION(is_long, status, gn_cumulate(tensor_of(self), dim, is_product, &result));
    return tensor_or_raise_in(state, name, status, result);
}
METHODS_OF_TWO(cumulate, cumprod, cumsum)

static PyObject *cumulate_extreme(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                  PyObject *keywords, bool is_maximum)
{
    const char *name = is_maximum ? "cummax" : "cummin";
    const struct call method = {name, {"dim"}, 1, 1, 1};
    struct module_state *state = tensor_state(self);
    PyObject *taken[CALL_ARGUMENTS_MOST];
    int dim = 0;
    gn_tensor *values, *indices;
    gn_status status;
    if (call_take(&method, arguments, count, keywords, taken) < 0 ||
        dim_take(name, taken[0], &dim) < 0)
        return NULL;
    CALL_OPERATION(is_long_on(tensor_of(self)), status,
                   gn_cumulate_extreme(tensor_of(self), dim, is_maximum, &values, &indices));
    return status == GN_OK ? pair_make(state, values, indices)
                           : error_raise_in(state, name, status);
}
METHODS_OF_TWO(cumulate_extreme, cummax, cummin)

PyMethodDef tensor_row_methods[] = {
    {"sort", WITH_VECTOR(method_sort),
     "sort($self, dim=-1, descending=False, stable=True)\n--\n\n"
     "The sorted elements and where they were, as a pair (values, indices); stable, NaN is the "
     "largest."},
    {"argsort", WITH_VECTOR(method_argsort),
     "argsort($self, dim=-1, descending=False, stable=True)\n--\n\nWhere the sorted elements are."},
    {"max", WITH_VECTOR(method_max),
     "max($self, dim=None, keepdim=False)\n--\n\n"
     "The largest element; along a dimension a pair (values, indices). NaN wins."},
    {"min", WITH_VECTOR(method_min),
     "min($self, dim=None, keepdim=False)\n--\n\n"
     "The smallest element; along a dimension a pair (values, indices). NaN wins."},
    {"argmax", WITH_VECTOR(method_argmax),
     "argmax($self, dim=None, keepdim=False)\n--\n\nWhere the first of the largest elements is."},
    {"argmin", WITH_VECTOR(method_argmin),
     "argmin($self, dim=None, keepdim=False)\n--\n\nWhere the first of the smallest elements is."},
    {"topk", WITH_VECTOR(method_topk),
     "topk($self, k, dim=-1, largest=True, sorted=True)\n--\n\n"
     "The k largest or smallest elements, in order, as a pair (values, indices)."},
    {"_kth", method_kth, METH_O,
     "_kth($self, k, /)\n--\n\nElement number k of all in ascending order, on the CPU."},
    {"softmax", WITH_VECTOR(method_softmax),
     "softmax($self, dim, dtype=None)\n--\n\nexp(x) over the sum of it along a dimension."},
    {"log_softmax", WITH_VECTOR(method_log_softmax),
     "log_softmax($self, dim, dtype=None)\n--\n\nThe logarithm of softmax, without going there."},
    {"cumsum", WITH_VECTOR(method_cumsum),
     "cumsum($self, dim, dtype=None)\n--\n\nThe sum of the elements up to each; of integers and "
     "bool as "
     "int64."},
    {"cumprod", WITH_VECTOR(method_cumprod),
     "cumprod($self, dim, dtype=None)\n--\n\nThe product of the elements up to each; of integers "
     "and bool as "
     "int64."},
    {"cummax", WITH_VECTOR(method_cummax),
     "cummax($self, dim)\n--\n\nThe largest of the elements up to each, and where the last of them "
     "is, "
     "as a pair (values, indices). NaN wins."},
    {"cummin", WITH_VECTOR(method_cummin),
     "cummin($self, dim)\n--\n\nThe smallest of the elements up to each, and where the last of "
     "them is, "
     "as a pair (values, indices). NaN wins."},
    {NULL, NULL, 0, NULL},
};

static PyStructSequence_Field pair_fields[] = {
    {"values", "The elements."},
    {"indices", "Where they were."},
    {NULL, NULL},
};

static PyStructSequence_Desc pair_description = {
    .name = "genesis.values_indices",
    .doc = "Elements, and where they were.",
    .fields = pair_fields,
    .n_in_sequence = 2,
};

int pair_class_init(struct module_state *state)
{
    state->pair_class = (PyObject *)PyStructSequence_NewType(&pair_description);
    return state->pair_class != NULL ? 0 : -1;
}
