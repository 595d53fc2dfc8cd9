/*
 * python_tensor_products.c: matrix products of Tensor: `@`, and matmul() as method and function. What is made of
 * them stands in genesis/_tensor_products.py.
 */
#include "module.h"

#include <limits.h>

enum {
    QUICK_WORK =
        32768, /* products for which letting the interpreter's lock go costs more than it gives */
};

/* Tells the library where the OpenBLAS of this Python environment is, before it looks for one. */
static int blas_tell(struct module_state *state)
{
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

static PyObject *product(struct module_state *state, gn_tensor *a, gn_tensor *b, PyObject *out)
{
    gn_tensor *result;
    gn_status status;
    bool is_long = work_of(a, b) > QUICK_WORK;
    if (!state->is_blas_told && blas_tell(state) < 0)
        return NULL;
    if (out == NULL) {
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
        return 0;
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

static PyObject *matmul_add(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    struct module_state *state = module_state_of(module);
    gn_tensor *result;
    gn_status status;
    for (Py_ssize_t i = 0; i < 3; i++)
        if (count != 3 || !tensor_check(state, arguments[i])) {
            PyErr_SetString(PyExc_TypeError, "_matmul_add() takes three tensors");
            return NULL;
        }
    if (!state->is_blas_told && blas_tell(state) < 0)
        return NULL;
    gn_tensor *a = tensor_of(arguments[0]), *b = tensor_of(arguments[1]);
    gn_tensor *addend = tensor_of(arguments[2]);
    CALL_OPERATION(work_of(a, b) > QUICK_WORK, status, gn_matmul_add(a, b, addend, &result));
    return tensor_or_raise(state, status, result);
}

static PyObject *set_allow_tf32(PyObject *module, PyObject *is_allowed)
{
    (void)module;
    int value = PyObject_IsTrue(is_allowed);
    if (value < 0)
        return NULL;
    gn_set_allow_tf32(value != 0);
    Py_RETURN_NONE;
}

static PyObject *get_allow_tf32(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyBool_FromLong(gn_get_allow_tf32());
}

PyMethodDef tensor_product_methods[] = {
    {"matmul", WITH_VECTOR(method_matmul),
     "matmul($self, other, *, out=None)\n--\n\n"
     "The matrix product; dimensions before the last two are a batch, which broadcasts."},
    {NULL, NULL, 0, NULL},
};

/* ---- by letters -------------------------------------------------------------------------------- */

enum {
    QUICK_PRODUCT = 1 << 20, /* of the operands' counts: then einsum() is short */
};

/* The operands of a tuple, which it keeps: freed by PyMem_Free(). Whether the work may be long. */
static gn_tensor **factors_of(struct module_state *state, PyObject *items, bool *is_long)
{
    Py_ssize_t count = PyTuple_Size(items);
    gn_tensor **tensors = PyMem_Malloc((size_t)(count > 0 ? count : 1) * sizeof *tensors);
    double work = 1;
    if (tensors == NULL) {
        (void)PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *one = PyTuple_GetItem(items, i);
        if (!tensor_check(state, one)) {
            PyErr_Format(PyExc_TypeError, "einsum: operands are tensors, not %R", one);
            PyMem_Free(tensors);
            return NULL;
        }
        tensors[i] = tensor_of(one);
        work *= (double)gn_tensor_get_count(tensors[i]);
        *is_long |= is_long_on(tensors[i]);
    }
    *is_long |= work > QUICK_PRODUCT;
    return tensors;
}

static PyObject *function_einsum(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    struct module_state *state = module_state_of(module);
    bool is_long = false;
    gn_tensor *result;
    gn_status status;
    if (count < 1 || !PyUnicode_Check(arguments[0])) {
        PyObject *type = PyType_GetName(count < 1 ? Py_TYPE(Py_None) : Py_TYPE(arguments[0]));
        if (type != NULL)
            PyErr_Format(PyExc_TypeError, "einsum: the equation is a text, not %U", type);
        Py_XDECREF(type);
        return NULL;
    }
    const char *text = text_from_python(arguments[0]);
    if (text == NULL || (!state->is_blas_told && blas_tell(state) < 0))
        return NULL;
    bool is_list = count == 2 && (PyList_Check(arguments[1]) || PyTuple_Check(arguments[1]));
    PyObject *items = is_list ? items_take(arguments[1], -1) : PyTuple_New(count - 1);
    for (Py_ssize_t i = 1; !is_list && items != NULL && i < count; i++)
        if (PyTuple_SetItem(items, i - 1, Py_NewRef(arguments[i])) < 0)
            Py_CLEAR(items);
    gn_tensor **tensors = items != NULL ? factors_of(state, items, &is_long) : NULL;
    if (tensors == NULL) {
        Py_XDECREF(items);
        return NULL;
    }
    Py_ssize_t operands = PyTuple_Size(items);
    CALL_OPERATION(is_long, status,
                   gn_einsum(text, operands < INT_MAX ? (int)operands : INT_MAX, tensors, &result));
    PyMem_Free(tensors);
    Py_DECREF(items);
    return tensor_or_raise_in(state, "einsum", status, result);
}

PyMethodDef tensor_product_functions[] = {
    {"einsum", (PyCFunction)(void (*)(void))function_einsum, METH_FASTCALL,
     "einsum(equation, *operands)\n--\n\n"
     "Sums of products by the letters of dimensions, as ``\"ij,jk->ik\"`` for a matrix product.\n\n"
     "Letters that the result has not are summed over; without ``->`` it has, in the alphabet's\n"
     "order, those that occur once. ``...`` stands for dimensions that broadcast.\n\n"
     "Examples\n--------\n>>> import genesis\n"
     ">>> genesis.einsum(\"ij,j->i\", genesis.eye(2), genesis.tensor([3.0, 4.0]))\n"
     "tensor([3., 4.])\n"},
    {"_set_allow_tf32", set_allow_tf32, METH_O,
     "_set_allow_tf32(is_allowed, /)\n--\n\n"
     "Choose whether float32 products on a GPU may round their operands to TF32."},
    {"_get_allow_tf32", get_allow_tf32, METH_NOARGS, "_get_allow_tf32()\n--\n\nWhether they may."},
    {"_matmul_add", (PyCFunction)(void (*)(void))matmul_add, METH_FASTCALL,
     "_matmul_add(a, b, addend, /)\n--\n\na @ b + addend, where it can be in one call."},
    {"matmul", WITH_VECTOR(function_matmul),
     "matmul(input, other, *, out=None)\n--\n\n"
     "The matrix product; dimensions before the last two are a batch, which broadcasts."},
    {NULL, NULL, 0, NULL},
};
