/*
 * python_tensor_reduce.c: reductions of Tensor, as methods and functions.
 *
 * Dimensions and whether they are kept have PyTorch's names and NumPy's: dim or axis, keepdim or keepdims.
 */
#include "module.h"

/* What a reduction takes; the first three by place, too. */
enum reduction_argument {
    ARGUMENT_INPUT,
    ARGUMENT_DIM,
    ARGUMENT_KEEPDIM,
    ARGUMENT_DTYPE,
    ARGUMENT_OUT,
    REDUCTION_ARGUMENTS
};

/* Those that are left out are NULL. */
static int reduction_arguments_take(const char *name, enum reduction_argument begin,
                                    PyObject *const *arguments, Py_ssize_t count,
                                    PyObject *keywords, PyObject *taken[REDUCTION_ARGUMENTS])
{
    static const struct {
        const char *name;
        enum reduction_argument argument;
    } names[] = {
        {"dim", ARGUMENT_DIM},          {"axis", ARGUMENT_DIM},    {"keepdim", ARGUMENT_KEEPDIM},
        {"keepdims", ARGUMENT_KEEPDIM}, {"dtype", ARGUMENT_DTYPE}, {"out", ARGUMENT_OUT},
        {"input", ARGUMENT_INPUT},
    };
    enum {
        NAMES_COUNT = sizeof names / sizeof *names
    };
    Py_ssize_t named = keywords != NULL ? PyTuple_Size(keywords) : 0;
    if ((Py_ssize_t)begin + count > ARGUMENT_DTYPE) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d argument%s by place, not %zd", name,
                     ARGUMENT_DTYPE - (int)begin, plural(ARGUMENT_DTYPE - (int)begin), count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        taken[(Py_ssize_t)begin + i] = arguments[i];
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *key = PyTuple_GetItem(keywords, i);
        int found = 0;
        while (found < NAMES_COUNT && PyUnicode_CompareWithASCIIString(key, names[found].name) != 0)
            found++;
        if (found == NAMES_COUNT || taken[names[found].argument] != NULL) {
            PyErr_Format(PyExc_TypeError,
                         found == NAMES_COUNT ? "%s() got an unexpected keyword argument %R"
                                              : "%s() got two values for the argument %R",
                         name, key);
            return -1;
        }
        taken[names[found].argument] = arguments[count + i];
    }
    for (int i = ARGUMENT_DIM; i < REDUCTION_ARGUMENTS; i++)
        if (taken[i] == Py_None)
            taken[i] = NULL;
    return 0;
}

/* None, an int or several, as a set of bits. */
static int dimensions_from_python(const char *name, PyObject *dim, int ndim, uint32_t *bits)
{
    int64_t dimensions[GN_DIMENSIONS_MAX];
    int count = 0, span = ndim > 0 ? ndim : 1;
    *bits = 0;
    if (dim != NULL && integers_from_python(dim, "dim", dimensions, GN_DIMENSIONS_MAX, &count) < 0)
        return -1;
    for (int i = 0; i < count; i++) {
        int64_t wrapped = dimensions[i] < 0 ? dimensions[i] + span : dimensions[i];
        if (wrapped < 0 || wrapped >= span) {
            PyErr_Format(
                PyExc_IndexError,
                "%s: dimension %lld is out of range for a tensor of %d dimension%s: %d to %d", name,
                (long long)dimensions[i], ndim, plural(ndim), -span, span - 1);
            return -1;
        }
        if ((*bits >> wrapped & 1) != 0) {
            PyErr_Format(PyExc_ValueError, "%s: dimension %lld is there twice", name,
                         (long long)wrapped);
            return -1;
        }
        *bits |= UINT32_C(1) << wrapped;
    }
    if (ndim == 0)
        *bits = 0;
    return 0;
}

/* A reduction of the elements as a type, which the result has, too. */
static gn_status reduce_as(gn_reduction reduction, gn_tensor *tensor, uint32_t bits, bool is_kept,
                           gn_dtype dtype, gn_tensor **result)
{
    gn_tensor *cast, *reduced;
    gn_status status = gn_cast(tensor, dtype, &cast);
    if (status != GN_OK)
        return status;
    status = gn_reduce(reduction, cast, bits, is_kept, &reduced);
    gn_tensor_release(cast);
    if (status != GN_OK || gn_tensor_get_dtype(reduced) == dtype) {
        *result = status == GN_OK ? reduced : NULL;
        return status;
    }
    status = gn_cast(reduced, dtype, result);
    gn_tensor_release(reduced);
    return status;
}

/* A reduction with autocast, which is on. */
static gn_status reduce_autocast(const char *name, gn_reduction reduction, gn_tensor *tensor,
                                 uint32_t bits, bool is_kept, gn_tensor **result)
{
    gn_operand operand = {.tensor = tensor};
    gn_tensor *made;
    gn_status status = gn_autocast_operands(gn_autocast_find(name), 1, &operand, &made);
    if (status != GN_OK)
        return status;
    status = gn_reduce(reduction, operand.tensor, bits, is_kept, result);
    gn_tensor_release(made);
    return status;
}

static void shapes_refuse(struct module_state *state, const char *name, const gn_tensor *result,
                          const gn_tensor *out)
{
    PyObject *made =
        integers_to_python(gn_tensor_get_shape(result), gn_tensor_get_dimensions(result));
    PyObject *room = integers_to_python(gn_tensor_get_shape(out), gn_tensor_get_dimensions(out));
    if (made != NULL && room != NULL)
        PyErr_Format(state->shape_error, "%s: a result of shape %R does not fit a tensor of %R",
                     name, made, room);
    Py_XDECREF(made);
    Py_XDECREF(room);
}

/* Which kinds can hold which: bool, integers, floating numbers. */
static int kind_of(const gn_tensor *tensor)
{
    gn_dtype dtype = gn_tensor_get_dtype(tensor);
    return dtype == GN_BOOL ? 0 : gn_dtype_is_floating(dtype) ? 2 : 1;
}

PyObject *result_into(struct module_state *state, const char *name, gn_tensor *result,
                      PyObject *out)
{
    gn_status status = GN_OK;
    int ndim = gn_tensor_get_dimensions(result);
    const int64_t *sizes = gn_tensor_get_shape(result);
    bool is_tensor = tensor_check(state, out);
    bool is_fitting = is_tensor && ndim == gn_tensor_get_dimensions(tensor_of(out));
    for (int i = 0; is_fitting && i < ndim; i++)
        is_fitting = sizes[i] == gn_tensor_get_shape(tensor_of(out))[i];
    if (is_fitting && kind_of(result) > kind_of(tensor_of(out))) {
        is_fitting = false;
        PyErr_Format(PyExc_TypeError, "%s: a result of %s cannot be stored as %s: cast it first",
                     name, gn_dtype_name(gn_tensor_get_dtype(result)),
                     gn_dtype_name(gn_tensor_get_dtype(tensor_of(out))));
    } else if (is_fitting)
        CALL_ALLOCATING(status, gn_assign(tensor_of(out), (gn_operand){.tensor = result}));
    else if (!is_tensor)
        PyErr_Format(PyExc_TypeError, "%s: out is a tensor, not %R", name, out);
    else
        shapes_refuse(state, name, result, tensor_of(out));
    gn_tensor_release(result);
    if (!is_fitting)
        return NULL;
    return status == GN_OK ? Py_NewRef(out) : error_raise_in(state, name, status);
}

static PyObject *reduce_call(struct module_state *state, const char *name, gn_reduction reduction,
                             PyObject *const taken[REDUCTION_ARGUMENTS])
{
    gn_tensor *tensor = tensor_of(taken[ARGUMENT_INPUT]), *result;
    bool is_long = gn_tensor_get_count(tensor) > QUICK_MOST;
    int is_kept = taken[ARGUMENT_KEEPDIM] != NULL ? PyObject_IsTrue(taken[ARGUMENT_KEEPDIM]) : 0;
    uint32_t bits;
    gn_dtype dtype;
    gn_status status;
    if (is_kept < 0 ||
        dimensions_from_python(name, taken[ARGUMENT_DIM], gn_tensor_get_dimensions(tensor), &bits) <
            0 ||
        out_refuse(state, name, &taken[ARGUMENT_INPUT], 1, taken[ARGUMENT_OUT]) < 0)
        return NULL;
    if (taken[ARGUMENT_DTYPE] == NULL && taken[ARGUMENT_OUT] == NULL && gn_autocast_is_on()) {
        CALL_OPERATION(is_long, status,
                       reduce_autocast(name, reduction, tensor, bits, is_kept != 0, &result));
    } else if (taken[ARGUMENT_DTYPE] == NULL) {
        CALL_OPERATION(is_long, status, gn_reduce(reduction, tensor, bits, is_kept != 0, &result));
    } else if (reduction != GN_REDUCE_SUM && reduction != GN_REDUCE_PRODUCT &&
               reduction != GN_REDUCE_MEAN) {
        PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument 'dtype'", name);
        return NULL;
    } else {
        if (dtype_from_python(state, taken[ARGUMENT_DTYPE], &dtype) < 0)
            return NULL;
        CALL_OPERATION(is_long, status,
                       reduce_as(reduction, tensor, bits, is_kept != 0, dtype, &result));
    }
    if (status == GN_OK && taken[ARGUMENT_OUT] != NULL)
        return result_into(state, name, result, taken[ARGUMENT_OUT]);
    return tensor_or_raise_in(state, name, status, result);
}

/* How many elements are not 0. */
static gn_status count_reduce(gn_tensor *tensor, uint32_t bits, gn_tensor **result)
{
    const gn_operand operands[] = {{.tensor = tensor}, {.scalar = {.kind = GN_INT64}}};
    gn_tensor *is_other;
    if (gn_tensor_get_dtype(tensor) == GN_BOOL)
        return gn_reduce(GN_REDUCE_SUM, tensor, bits, false, result);
    gn_status status = gn_elementwise(GN_OP_NOT_EQUAL, operands, &is_other);
    if (status != GN_OK)
        return status;
    status = gn_reduce(GN_REDUCE_SUM, is_other, bits, false, result);
    gn_tensor_release(is_other);
    return status;
}

/* count_nonzero() of `input`, or of the first argument if that is NULL. */
static PyObject *count_call(struct module_state *state, PyObject *input, PyObject *const *arguments,
                            Py_ssize_t count, PyObject *keywords)
{
    static const struct call method = {"count_nonzero", {"dim"}, 1, 1, 0},
                             function = {"count_nonzero", {"input", "dim"}, 2, 2, 1};
    PyObject *taken[CALL_ARGUMENTS_MOST];
    uint32_t bits;
    gn_tensor *result;
    gn_status status;
    if (call_take(input != NULL ? &method : &function, arguments, count, keywords, taken) < 0)
        return NULL;
    PyObject *dim = input != NULL ? taken[0] : taken[1];
    input = input != NULL ? input : taken[0];
    if (!tensor_check(state, input)) {
        PyErr_Format(PyExc_TypeError, "count_nonzero: %R is not a Tensor", input);
        return NULL;
    }
    if (dimensions_from_python("count_nonzero", dim != Py_None ? dim : NULL,
                               gn_tensor_get_dimensions(tensor_of(input)), &bits) < 0)
        return NULL;
    CALL_OPERATION(gn_tensor_get_count(tensor_of(input)) > QUICK_MOST, status,
                   count_reduce(tensor_of(input), bits, &result));
    return tensor_or_raise_in(state, "count_nonzero", status, result);
}

static PyObject *method_count_nonzero(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                      PyObject *keywords)
{
    return count_call(tensor_state(self), self, arguments, count, keywords);
}

static PyObject *function_count_nonzero(PyObject *module, PyObject *const *arguments,
                                        Py_ssize_t count, PyObject *keywords)
{
    return count_call(module_state_of(module), NULL, arguments, count, keywords);
}

static PyObject *reduce_method(PyObject *self, const char *name, gn_reduction reduction,
                               PyObject *const *arguments, Py_ssize_t count, PyObject *keywords)
{
    PyObject *taken[REDUCTION_ARGUMENTS] = {[ARGUMENT_INPUT] = self};
    if (reduction_arguments_take(name, ARGUMENT_DIM, arguments, count, keywords, taken) < 0)
        return NULL;
    return reduce_call(tensor_state(self), name, reduction, taken);
}

static PyObject *reduce_function(PyObject *module, const char *name, gn_reduction reduction,
                                 PyObject *const *arguments, Py_ssize_t count, PyObject *keywords)
{
    struct module_state *state = module_state_of(module);
    PyObject *taken[REDUCTION_ARGUMENTS] = {NULL};
    if (reduction_arguments_take(name, ARGUMENT_INPUT, arguments, count, keywords, taken) < 0)
        return NULL;
    if (taken[ARGUMENT_INPUT] == NULL || !tensor_check(state, taken[ARGUMENT_INPUT])) {
        PyErr_Format(PyExc_TypeError, "%s() takes a Tensor", name);
        return NULL;
    }
    return reduce_call(state, name, reduction, taken);
}

/* X(python name, REDUCTION, what it takes beside the usual, what it gives) */
#define REDUCTIONS(X)                                                                      \
    X(sum, SUM, ", dtype=None", "The sum of the elements; of integers and bool as int64.") \
    X(prod, PRODUCT, ", dtype=None",                                                       \
      "The product of the elements; of integers and bool as int64.")                       \
    X(mean, MEAN, ", dtype=None", "The mean of the elements.")                             \
    X(amax, MAXIMUM, "", "The largest element; NaN if there is one.")                      \
    X(amin, MINIMUM, "", "The smallest element; NaN if there is one.")                     \
    X(any, ANY, "", "Whether an element is not 0.")                                        \
    X(all, ALL, "", "Whether no element is 0.")

#define DEFINE_REDUCTION(name, REDUCTION, more, doc)                                              \
    static PyObject *function_##name(PyObject *module, PyObject *const *arguments,                \
                                     Py_ssize_t count, PyObject *keywords)                        \
    {                                                                                             \
        return reduce_function(module, #name, GN_REDUCE_##REDUCTION, arguments, count, keywords); \
    }                                                                                             \
    static PyObject *method_##name(PyObject *self, PyObject *const *arguments, Py_ssize_t count,  \
                                   PyObject *keywords)                                            \
    {                                                                                             \
        return reduce_method(self, #name, GN_REDUCE_##REDUCTION, arguments, count, keywords);     \
    }
REDUCTIONS(DEFINE_REDUCTION)

#define REDUCTION_METHOD(name, REDUCTION, more, doc) \
    {#name, WITH_VECTOR(method_##name),              \
     #name "($self, dim=None, keepdim=False, *" more ", out=None)\n--\n\n" doc},
#define REDUCTION_FUNCTION(name, REDUCTION, more, doc) \
    {#name, WITH_VECTOR(function_##name),              \
     #name "(input, dim=None, keepdim=False, *" more ", out=None)\n--\n\n" doc},

PyMethodDef tensor_reduction_methods[] = {
    REDUCTIONS(REDUCTION_METHOD){
        "count_nonzero", WITH_VECTOR(method_count_nonzero),
        "count_nonzero($self, dim=None)\n--\n\nHow many elements are not 0."},
    {NULL, NULL, 0, NULL},
};

PyMethodDef tensor_reduction_functions[] = {
    REDUCTIONS(REDUCTION_FUNCTION){
        "count_nonzero", WITH_VECTOR(function_count_nonzero),
        "count_nonzero(input, dim=None)\n--\n\nHow many elements are not 0.\n\n"
        "Examples\n--------\n>>> import genesis\n"
        ">>> genesis.count_nonzero(genesis.tensor([[0, 7], [8, 9]]), 0)\ntensor([1, 2])\n"},
    {NULL, NULL, 0, NULL},
};
