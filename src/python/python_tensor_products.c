/*
 * python_tensor_products.c: matrix products of Tensor: `@`, and matmul() as method and function. What is made of
 * them stands in ops/functions_products.c.
 */
#include "module.h"

enum {
    QUICK_WORK =
        32768, /* products for which letting the interpreter's lock go costs more than it gives */
};

int blas_name(struct module_state *state)
{
    if (state->is_blas_told)
        return 0;
    PyObject *module = PyImport_ImportModule("genesis._wheels");
    PyObject *files = module != NULL ? PyObject_CallMethod(module, "openblas", NULL) : NULL;
    Py_ssize_t count = files != NULL ? PyList_Size(files) : -1;
    gn_status status = GN_OK;
    for (Py_ssize_t i = 0; i < count && status == GN_OK; i++) {
        const char *path = text_from_python(PyList_GetItem(files, i));
        if (path == NULL)
            count = -1;
        else
            status = gn_blas_add_file(path); /* when there are too many already, those are enough */
    }
    Py_XDECREF(files);
    Py_XDECREF(module);
    state->is_blas_told = count >= 0;
    return state->is_blas_told ? 0 : -1;
}

/* A Tensor, or something with elements, which is copied unless a GPU has them: a new reference; NULL without an
 * exception otherwise. */
static PyObject *factor_take(struct module_state *state, PyObject *object)
{
    if (tensor_check(state, object))
        return Py_NewRef(object);
    bool is_far = is_on_gpu(state, object);
    return is_far || PyObject_CheckBuffer(object) ? tensor_from_data(state, object, NULL, !is_far)
                                                  : NULL;
}

/* About how many products are computed. */
static double work_of(const gn_tensor *a, const gn_tensor *b)
{
    int a_ndim = gn_tensor_get_dimensions(a), b_ndim = gn_tensor_get_dimensions(b);
    double rows = a_ndim > 1 ? (double)gn_tensor_get_shape(a)[a_ndim - 2] : 1;
    double columns = b_ndim > 1 ? (double)gn_tensor_get_shape(b)[b_ndim - 1] : 1;
    double by_a = (double)gn_tensor_get_count(a) * columns;
    double by_b = (double)gn_tensor_get_count(b) * rows;
    return by_a > by_b ? by_a : by_b;
}

/* The product with autocast, which is on. */
static gn_status matmul_autocast(gn_tensor *a, gn_tensor *b, gn_tensor **result)
{
    gn_operand factors[] = {{.tensor = a}, {.tensor = b}};
    gn_tensor *made[2];
    gn_status status = gn_autocast_operands(gn_autocast_find("matmul"), 2, factors, made);
    if (status != GN_OK)
        return status;
    status = gn_matmul(factors[0].tensor, factors[1].tensor, result);
    gn_tensor_release(made[0]);
    gn_tensor_release(made[1]);
    return status;
}

static PyObject *product(struct module_state *state, gn_tensor *a, gn_tensor *b, PyObject *out)
{
    gn_tensor *result;
    gn_status status;
    bool is_long = work_of(a, b) > QUICK_WORK;
    if (blas_name(state) < 0)
        return NULL;
    if (out == NULL) {
        if (gn_autocast_is_on())
            CALL_OPERATION(is_long, status, matmul_autocast(a, b, &result));
        else
            CALL_OPERATION(is_long, status, gn_matmul(a, b, &result));
        return tensor_or_raise(state, status, result);
    }
    CALL_OPERATION(is_long, status, gn_matmul_into(a, b, tensor_of(out)));
    return status == GN_OK ? Py_NewRef(out) : error_raise(state, status);
}

/* `missing`: what to return for something that is no factor; NULL: an exception. */
static PyObject *multiply(struct module_state *state, PyObject *a, PyObject *b, PyObject *out,
                          PyObject *missing)
{
    PyObject *made = NULL, *left = factor_take(state, a);
    PyObject *right = left != NULL ? factor_take(state, b) : NULL;
    if (right != NULL)
        made = product(state, tensor_of(left), tensor_of(right), out);
    else if (missing != NULL && (!PyErr_Occurred() || operand_is_kept()))
        made = Py_NewRef(missing);
    else if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "matmul() takes tensors or arrays, not %R",
                     left != NULL ? b : a);
    Py_XDECREF(left);
    Py_XDECREF(right);
    return made;
}

PyObject *tensor_matmul(PyObject *a, PyObject *b)
{
    union {
        void *slot;
        binaryfunc function;
    } own = {.slot = PyType_GetSlot(Py_TYPE(a), Py_nb_matrix_multiply)};
    PyObject *tensor = own.function == tensor_matmul ? a : b; /* one of the two is */
    return multiply(tensor_state(tensor), a, b, NULL, Py_NotImplemented);
}

/* The factors from `begin` on, by place or as `input` and `other`, and `out`, by its name alone. */
static int factors_take(struct module_state *state, PyObject *const *arguments, Py_ssize_t count,
                        int begin, PyObject *keywords, PyObject *factors[2], PyObject **out)
{
    static const char *const names[] = {"input", "other"};
    Py_ssize_t named = keywords != NULL ? PyTuple_Size(keywords) : 0, taken = begin + count;
    *out = NULL;
    for (Py_ssize_t i = 0; i < count && begin + i < 2; i++)
        factors[begin + i] = arguments[i];
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GetItem(keywords, i), *given = arguments[count + i];
        int place = 0;
        while (place < 2 && (PyUnicode_CompareWithASCIIString(name, names[place]) != 0 ||
                             factors[place] != NULL))
            place++;
        if (place < 2) {
            factors[place] = given;
            taken++;
            continue;
        }
        if (PyUnicode_CompareWithASCIIString(name, "out") != 0) {
            PyErr_Format(PyExc_TypeError, "matmul() has no argument %R", name);
            return -1;
        }
        if (given != Py_None && !tensor_check(state, given)) {
            PyErr_Format(PyExc_TypeError, "matmul: out is a tensor, not %R", given);
            return -1;
        }
        *out = given != Py_None ? given : NULL;
    }
    if (taken == 2)
        return out_refuse(state, "matmul", factors, 2, *out);
    PyErr_Format(PyExc_TypeError, "matmul() takes %d operand%s, not %zd", 2 - begin,
                 plural(2 - begin), taken - begin);
    return -1;
}

static PyObject *function_matmul(PyObject *module, PyObject *const *arguments, Py_ssize_t count,
                                 PyObject *keywords)
{
    struct module_state *state = module_state_of(module);
    PyObject *out, *factors[2] = {NULL};
    if (factors_take(state, arguments, count, 0, keywords, factors, &out) < 0)
        return NULL;
    return multiply(state, factors[0], factors[1], out, NULL);
}

static PyObject *method_matmul(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                               PyObject *keywords)
{
    struct module_state *state = module_state_of_object(self);
    PyObject *out, *factors[2] = {self};
    if (factors_take(state, arguments, count, 1, keywords, factors, &out) < 0)
        return NULL;
    return multiply(state, factors[0], factors[1], out, NULL);
}

PyMethodDef tensor_product_methods[] = {
    {"matmul", WITH_VECTOR(method_matmul),
     "matmul($self, other, *, out=None)\n--\n\n"
     "The matrix product; dimensions before the last two are a batch, which broadcasts."},
    {NULL, NULL, 0, NULL},
};

PyMethodDef tensor_product_functions[] = {
    {"matmul", WITH_VECTOR(function_matmul),
     "matmul(input, other, *, out=None)\n--\n\n"
     "The matrix product; dimensions before the last two are a batch, which broadcasts."},
    {NULL, NULL, 0, NULL},
};
