/*
 * python_tensor_rows.c: what works along one dimension, as methods.
 *
 * The dimension, and whether it is kept, have PyTorch's names and NumPy's: dim or axis, keepdim or keepdims.
 */
#include "module.h"

#include <stdarg.h>

/* Arguments with NumPy's names called by PyTorch's: a new reference, NULL for none. */
static int keywords_rename(PyObject *keywords, PyObject **renamed)
{
    static const char *const pairs[][2] = {{"axis", "dim"}, {"keepdims", "keepdim"}};
    *renamed = Py_XNewRef(keywords);
    for (int i = 0; i < 2 && keywords != NULL; i++) {
        PyObject *value = PyDict_GetItemString(keywords, pairs[i][0]); /* borrowed */
        if (value == NULL || PyDict_GetItemString(keywords, pairs[i][1]) != NULL)
            continue;
        PyObject *copy = PyDict_Copy(*renamed);
        Py_DECREF(*renamed);
        *renamed = copy;
        if (copy == NULL || PyDict_SetItemString(copy, pairs[i][1], value) < 0 ||
            PyDict_DelItemString(copy, pairs[i][0]) < 0) {
            Py_XDECREF(copy);
            return -1;
        }
    }
    return 0;
}

/* As PyArg_ParseTupleAndKeywords(). */
static bool arguments_parse(PyObject *arguments, PyObject *keywords, const char *format,
                            char **names, ...)
{
    PyObject *renamed;
    va_list places;
    if (keywords_rename(keywords, &renamed) < 0)
        return false;
    va_start(places, names);
    int is_parsed = PyArg_VaParseTupleAndKeywords(arguments, renamed, format, names, places);
    va_end(places);
    Py_XDECREF(renamed);
    return is_parsed != 0;
}

static PyObject *pair_make(struct module_state *state, gn_tensor *values, gn_tensor *indices)
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

static PyObject *method_sort(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"dim", "descending", "stable", NULL};
    struct module_state *state = module_state_of_object(self);
    int dim = -1, is_descending = 0, is_stable; /* it always is */
    gn_tensor *values, *indices;
    gn_status status;
    if (!arguments_parse(arguments, keywords, "|ipp:sort", names, &dim, &is_descending, &is_stable))
        return NULL;
    CALL_ALLOCATING(status, gn_sort(tensor_of(self), dim, is_descending != 0, &values, &indices));
    return status == GN_OK ? pair_make(state, values, indices)
                           : error_raise_in(state, "sort", status);
}

static PyObject *method_argsort(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"dim", "descending", "stable", NULL};
    int dim = -1, is_descending = 0, is_stable; /* it always is */
    gn_tensor *indices;
    gn_status status;
    if (!arguments_parse(arguments, keywords, "|ipp:argsort", names, &dim, &is_descending,
                         &is_stable))
        return NULL;
    CALL_ALLOCATING(status, gn_sort(tensor_of(self), dim, is_descending != 0, NULL, &indices));
    return tensor_or_raise_in(module_state_of_object(self), "argsort", status, indices);
}

/* What is out of range stays so, as an int. */
static int dimension_clamp(int64_t dimension)
{
    return dimension < -GN_DIMENSIONS_MAX || dimension > GN_DIMENSIONS_MAX ? GN_DIMENSIONS_MAX + 1
                                                                           : (int)dimension;
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
static PyObject *extreme(PyObject *self, PyObject *arguments, PyObject *keywords, bool is_maximum)
{
    static char *names[] = {"dim", "keepdim", NULL};
    struct module_state *state = module_state_of_object(self);
    const char *name = is_maximum ? "max" : "min";
    PyObject *dim = Py_None;
    int is_kept = 0;
    int64_t dimension;
    gn_tensor *values, *indices, *wide;
    gn_status status;
    if (!arguments_parse(arguments, keywords, is_maximum ? "|Op:max" : "|Op:min", names, &dim,
                         &is_kept))
        return NULL;
    if (tensor_check(state, dim))
        return PyObject_CallMethod(self, is_maximum ? "maximum" : "minimum", "O", dim);
    if (dim == Py_None) {
        CALL_ALLOCATING(status, gn_reduce(is_maximum ? GN_REDUCE_MAXIMUM : GN_REDUCE_MINIMUM,
                                          tensor_of(self), 0, is_kept != 0, &values));
        return tensor_or_raise_in(state, name, status, values);
    }
    if (dimension_take(dim, name, is_maximum ? "amax" : "amin", &dimension) < 0)
        return NULL;
    int at = dimension_clamp(dimension);
    CALL_ALLOCATING(status, gn_extreme(tensor_of(self), at, is_maximum, &values, &indices));
    if (status != GN_OK)
        return error_raise_in(state, name, status);
    is_kept = is_kept && gn_tensor_get_dimensions(tensor_of(self)) > 0;
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

static PyObject *method_max(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    return extreme(self, arguments, keywords, true);
}

static PyObject *method_min(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    return extreme(self, arguments, keywords, false);
}

/* Where it is: of all elements, in row-major order, or along a dimension. */
static PyObject *extreme_place(PyObject *self, PyObject *arguments, PyObject *keywords,
                               bool is_maximum)
{
    static char *names[] = {"dim", "keepdim", NULL};
    struct module_state *state = tensor_state(self);
    const char *name = is_maximum ? "argmax" : "argmin";
    gn_tensor *tensor = tensor_of(self), *flat = NULL, *place, *wide;
    PyObject *dim = Py_None;
    int64_t ones[GN_DIMENSIONS_MAX], dimension = 0, whole = -1;
    int is_kept = 0, ndim = gn_tensor_get_dimensions(tensor);
    gn_status status = GN_OK;
    if (!arguments_parse(arguments, keywords, is_maximum ? "|Op:argmax" : "|Op:argmin", names, &dim,
                         &is_kept) ||
        (dim != Py_None && dimension_take(dim, name, NULL, &dimension) < 0))
        return NULL;
    int at = dimension_clamp(dimension);
    if (dim == Py_None)
        CALL_ALLOCATING(status, gn_tensor_reshape(tensor, 1, &whole, &flat));
    if (status == GN_OK)
        CALL_ALLOCATING(status,
                        gn_extreme(flat != NULL ? flat : tensor, at, is_maximum, NULL, &place));
    gn_tensor_release(flat);
    if (status != GN_OK || !is_kept || ndim == 0)
        return tensor_or_raise_in(state, name, status, place);
    for (int i = 0; i < ndim; i++)
        ones[i] = 1;
    if (dim == Py_None)
        status = gn_tensor_view(place, ndim, ones, &wide);
    else
        status = gn_tensor_unsqueeze(place, at, &wide);
    gn_tensor_release(place);
    return tensor_or_raise_in(state, name, status, wide);
}

static PyObject *method_argmax(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    return extreme_place(self, arguments, keywords, true);
}

static PyObject *method_argmin(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    return extreme_place(self, arguments, keywords, false);
}

static PyObject *method_topk(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"k", "dim", "largest", "sorted", NULL};
    struct module_state *state = module_state_of_object(self);
    long long k;
    int dim = -1, is_largest = 1, is_sorted = 1; /* they always are */
    gn_tensor *values, *indices;
    gn_status status;
    if (!arguments_parse(arguments, keywords, "L|ipp:topk", names, &k, &dim, &is_largest,
                         &is_sorted))
        return NULL;
    CALL_ALLOCATING(status, gn_topk(tensor_of(self), k, dim, is_largest != 0, &values, &indices));
    return status == GN_OK ? pair_make(state, values, indices)
                           : error_raise_in(state, "topk", status);
}

static PyObject *softmax(PyObject *self, PyObject *arguments, PyObject *keywords, bool is_log)
{
    static char *names[] = {"dim", "dtype", NULL};
    struct module_state *state = module_state_of_object(self);
    PyObject *type = Py_None;
    gn_tensor *cast = NULL, *result = NULL;
    gn_dtype dtype;
    gn_status status = GN_OK;
    int dim;
    if (!arguments_parse(arguments, keywords, is_log ? "i|O:log_softmax" : "i|O:softmax", names,
                         &dim, &type) ||
        (type != Py_None && dtype_from_python(state, type, &dtype) < 0))
        return NULL;
    if (type != Py_None)
        CALL_ALLOCATING(status, gn_cast(tensor_of(self), dtype, &cast));
    if (status == GN_OK)
        CALL_ALLOCATING(status,
                        gn_softmax(cast != NULL ? cast : tensor_of(self), dim, is_log, &result));
    gn_tensor_release(cast);
    return tensor_or_raise_in(state, is_log ? "log_softmax" : "softmax", status, result);
}

static PyObject *method_softmax(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    return softmax(self, arguments, keywords, false);
}

static PyObject *method_log_softmax(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    return softmax(self, arguments, keywords, true);
}

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

static PyObject *cumulate(PyObject *self, PyObject *arguments, PyObject *keywords, bool is_product)
{
    static char *names[] = {"dim", "dtype", NULL};
    struct module_state *state = tensor_state(self);
    PyObject *type = Py_None;
    gn_dtype dtype;
    int dim;
    gn_tensor *result;
    gn_status status;
    if (!arguments_parse(arguments, keywords, is_product ? "i|O:cumprod" : "i|O:cumsum", names,
                         &dim, &type) ||
        (type != Py_None && dtype_from_python(state, type, &dtype) < 0))
        return NULL;
    if (type == Py_None)
        CALL_ALLOCATING(status, gn_cumulate(tensor_of(self), dim, is_product, &result));
    else
        CALL_ALLOCATING(status, cumulate_as(tensor_of(self), dim, is_product, dtype, &result));
    return tensor_or_raise_in(state, is_product ? "cumprod" : "cumsum", status, result);
}

static PyObject *method_cumsum(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    return cumulate(self, arguments, keywords, false);
}

static PyObject *method_cumprod(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    return cumulate(self, arguments, keywords, true);
}

static PyObject *cumulate_extreme(PyObject *self, PyObject *arguments, PyObject *keywords,
                                  bool is_maximum)
{
    static char *names[] = {"dim", NULL};
    struct module_state *state = tensor_state(self);
    int dim;
    gn_tensor *values, *indices;
    gn_status status;
    if (!arguments_parse(arguments, keywords, is_maximum ? "i:cummax" : "i:cummin", names, &dim))
        return NULL;
    CALL_ALLOCATING(status,
                    gn_cumulate_extreme(tensor_of(self), dim, is_maximum, &values, &indices));
    return status == GN_OK ? pair_make(state, values, indices)
                           : error_raise_in(state, is_maximum ? "cummax" : "cummin", status);
}

static PyObject *method_cummax(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    return cumulate_extreme(self, arguments, keywords, true);
}

static PyObject *method_cummin(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    return cumulate_extreme(self, arguments, keywords, false);
}

static PyObject *method_unique(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"sorted", "return_inverse", "return_counts", NULL};
    struct module_state *state = module_state_of_object(self);
    int is_sorted = 1, has_inverse = 0, has_counts = 0; /* they always are */
    gn_tensor *values, *inverse, *counts;
    gn_status status;
    if (!arguments_parse(arguments, keywords, "|ppp:unique", names, &is_sorted, &has_inverse,
                         &has_counts))
        return NULL;
    CALL_ALLOCATING(status, gn_unique(tensor_of(self), &values, has_inverse ? &inverse : NULL,
                                      has_counts ? &counts : NULL));
    if (status != GN_OK)
        return error_raise_in(state, "unique", status);
    PyObject *first = tensor_to_python(state, values);
    if (!has_inverse && !has_counts)
        return first;
    PyObject *made[2] = {has_inverse ? tensor_to_python(state, inverse) : NULL,
                         has_counts ? tensor_to_python(state, counts) : NULL};
    bool is_made =
        first != NULL && (!has_inverse || made[0] != NULL) && (!has_counts || made[1] != NULL);
    PyObject *tuple = !is_made ? NULL
                      : has_inverse && has_counts
                          ? PyTuple_Pack(3, first, made[0], made[1])
                          : PyTuple_Pack(2, first, has_inverse ? made[0] : made[1]);
    Py_XDECREF(first);
    Py_XDECREF(made[0]);
    Py_XDECREF(made[1]);
    return tuple;
}

PyMethodDef tensor_row_methods[] = {
    {"sort", WITH_KEYWORDS(method_sort),
     "sort($self, dim=-1, descending=False, stable=True)\n--\n\n"
     "The sorted elements and where they were, as a pair (values, indices); stable, NaN is the "
     "largest."},
    {"argsort", WITH_KEYWORDS(method_argsort),
     "argsort($self, dim=-1, descending=False, stable=True)\n--\n\nWhere the sorted elements are."},
    {"max", WITH_KEYWORDS(method_max),
     "max($self, dim=None, keepdim=False)\n--\n\n"
     "The largest element; along a dimension a pair (values, indices). NaN wins."},
    {"min", WITH_KEYWORDS(method_min),
     "min($self, dim=None, keepdim=False)\n--\n\n"
     "The smallest element; along a dimension a pair (values, indices). NaN wins."},
    {"argmax", WITH_KEYWORDS(method_argmax),
     "argmax($self, dim=None, keepdim=False)\n--\n\nWhere the first of the largest elements is."},
    {"argmin", WITH_KEYWORDS(method_argmin),
     "argmin($self, dim=None, keepdim=False)\n--\n\nWhere the first of the smallest elements is."},
    {"topk", WITH_KEYWORDS(method_topk),
     "topk($self, k, dim=-1, largest=True, sorted=True)\n--\n\n"
     "The k largest or smallest elements, in order, as a pair (values, indices)."},
    {"softmax", WITH_KEYWORDS(method_softmax),
     "softmax($self, dim, dtype=None)\n--\n\nexp(x) over the sum of it along a dimension."},
    {"log_softmax", WITH_KEYWORDS(method_log_softmax),
     "log_softmax($self, dim, dtype=None)\n--\n\nThe logarithm of softmax, without going there."},
    {"cumsum", WITH_KEYWORDS(method_cumsum),
     "cumsum($self, dim, dtype=None)\n--\n\nThe sum of the elements up to each; of integers and "
     "bool as "
     "int64."},
    {"cumprod", WITH_KEYWORDS(method_cumprod),
     "cumprod($self, dim, dtype=None)\n--\n\nThe product of the elements up to each; of integers "
     "and bool as "
     "int64."},
    {"cummax", WITH_KEYWORDS(method_cummax),
     "cummax($self, dim)\n--\n\nThe largest of the elements up to each, and where the last of them "
     "is, "
     "as a pair (values, indices). NaN wins."},
    {"cummin", WITH_KEYWORDS(method_cummin),
     "cummin($self, dim)\n--\n\nThe smallest of the elements up to each, and where the last of "
     "them is, "
     "as a pair (values, indices). NaN wins."},
    {"unique", WITH_KEYWORDS(method_unique),
     "unique($self, sorted=True, return_inverse=False, return_counts=False)\n--\n\n"
     "The different elements, ascending; where each element is among them, and how often each "
     "occurs."},
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
