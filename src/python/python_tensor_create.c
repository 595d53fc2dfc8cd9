/*
 * python_tensor_create.c: tensors from shapes: empty, zeros, ones; numbers at equal distances: arange; and others one
 * behind the other: cat.
 */
#include "module.h"

#include <math.h>
#include <string.h>

/* ---- shapes ----------------------------------------------------------------------------------- */

struct creation {
    int64_t sizes[GN_DIMENSIONS_MAX];
    int ndim;
    gn_dtype dtype;
    gn_device *device;
    gn_memory_format format; /* of empty() */
    bool is_pinned, requires_gradient;
};

static int shape_take(PyObject *positional, PyObject *size, struct creation *creation)
{
    PyObject *objects[GN_DIMENSIONS_MAX + 1];
    Py_ssize_t count = PyTuple_Size(positional);
    if (size != NULL && count > 0) {
        PyErr_Format(PyExc_TypeError, "a shape is given once: %R and size=%R", positional, size);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count && i <= GN_DIMENSIONS_MAX; i++)
        objects[i] = PyTuple_GetItem(positional, i);
    if (size != NULL)
        objects[count++] = size;
    if (count == 1 && !PyIndex_Check(objects[0]) && !PySequence_Check(objects[0]) &&
        !PyObject_HasAttrString(objects[0], "__iter__")) {
        PyErr_Format(PyExc_TypeError, "a shape is of integers, not %R", objects[0]);
        return -1;
    }
    return shape_from_python(objects, count, creation->sizes, &creation->ndim);
}

/* The arguments of `name(*shape, size=None, dtype=None, device=None, pin_memory=False, requires_grad=False)`. */
static int creation_parse(struct module_state *state, const char *name, PyObject *positional,
                          PyObject *keywords, struct creation *creation)
{
    PyObject *size = NULL, *pinned = NULL, *dtype = NULL, *device = NULL, *required = NULL;
    PyObject *format = NULL;
    PyObject *key, *value;
    const struct {
        const char *name;
        PyObject **place;
    } known[] = {{"dtype", &dtype},       {"device", &device},          {"size", &size},
                 {"pin_memory", &pinned}, {"requires_grad", &required}, {"memory_format", &format}};
    Py_ssize_t at = 0;
    while (keywords != NULL && PyDict_Next(keywords, &at, &key, &value)) {
        size_t i = 0, count = sizeof known / sizeof *known - (strcmp(name, "empty") != 0);
        while (i < count && PyUnicode_CompareWithASCIIString(key, known[i].name) != 0)
            i++;
        if (i == count) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument %R", name, key);
            return -1;
        }
        *known[i].place = value != Py_None ? value : NULL;
    }
    int is_pinned = pinned != NULL ? PyObject_IsTrue(pinned) : 0;
    if (format != NULL && format_from_python(state, name, format, &creation->format) < 0)
        return -1;
    int is_required = required != NULL ? PyObject_IsTrue(required) : 0;
    creation->is_pinned = is_pinned > 0;
    creation->requires_gradient = is_required > 0;
    creation->dtype = gn_get_default_dtype();
    if (is_pinned < 0 || is_required < 0 || shape_take(positional, size, creation) < 0 ||
        (dtype != NULL && dtype_from_python(state, dtype, &creation->dtype) < 0) ||
        device_of_new(state, device, &creation->device) < 0)
        return error_name(name);
    return 0;
}

/* In page-locked memory, and filled with a value unless that is NULL. */
static PyObject *create_pinned(struct module_state *state, const char *name,
                               const struct creation *creation, const gn_operand *value)
{
    PyObject *made =
        tensor_pinned(state, creation->dtype, creation->ndim, creation->sizes, creation->device);
    gn_status status = GN_OK;
    if (made == NULL)
        (void)error_name(name);
    else if (value != NULL)
        CALL_ALLOCATING(status, gn_assign(tensor_of(made), *value));
    if (status == GN_OK)
        return gradient_request(made, creation->requires_gradient);
    Py_DECREF(made);
    return error_raise_in(state, name, status);
}

static PyObject *create_of(const char *name, PyObject *module, PyObject *arguments,
                           PyObject *keywords, int number)
{
    struct module_state *state = module_state_of(module);
    struct creation creation = {0};
    gn_tensor *tensor;
    gn_status status;
    if (creation_parse(state, name, arguments, keywords, &creation) < 0)
        return NULL;
    gn_scalar value = {.kind = GN_INT64, .integer = number};
    if (creation.is_pinned)
        return create_pinned(state, name, &creation, &(gn_operand){.scalar = value});
    CALL_ALLOCATING(status, gn_full(value, creation.dtype, creation.ndim, creation.sizes,
                                    creation.device, &tensor));
    return gradient_request(tensor_or_raise_in(state, name, status, tensor),
                            creation.requires_gradient);
}

static PyObject *create_zeros(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    return create_of("zeros", module, arguments, keywords, 0);
}

static PyObject *create_ones(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    return create_of("ones", module, arguments, keywords, 1);
}

static PyObject *create_empty(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    struct module_state *state = module_state_of(module);
    struct creation creation = {0};
    gn_tensor *tensor;
    gn_status status;
    if (creation_parse(state, "empty", arguments, keywords, &creation) < 0)
        return NULL;
    if (creation.is_pinned)
        return create_pinned(state, "empty", &creation, NULL);
    CALL_ALLOCATING(status, gn_tensor_create_format(creation.dtype, creation.ndim, creation.sizes,
                                                    creation.device, creation.format, &tensor));
    return gradient_request(tensor_or_raise_in(state, "empty", status, tensor),
                            creation.requires_gradient);
}

/* ---- the class, called ------------------------------------------------------------------------- */

/* True for a tuple of integers alone: what a tensor's shape is, and what numbers for elements may be. */
static bool is_shape_or_data(PyObject *object)
{
    if (!PyTuple_Check(object))
        return false;
    Py_ssize_t i = 0, count = PyTuple_Size(object);
    while (i < count && PyIndex_Check(PyTuple_GetItem(object, i)))
        i++;
    return i == count;
}

/* Of one argument that is no size: an array is shared where its dtype is the default one, a tensor is given back. */
static PyObject *tensor_of_argument(struct module_state *state, PyObject *data, PyObject *place)
{
    if (is_shape_or_data(data)) {
        PyErr_Format(PyExc_TypeError,
                     "Tensor: %R may be a shape or elements: genesis.empty(shape) makes a tensor "
                     "of a shape, genesis.tensor(data) one of elements",
                     data);
        return NULL;
    }
    if (PyUnicode_Check(data) || PyBytes_Check(data) ||
        (!PySequence_Check(data) && !tensor_check(state, data))) {
        PyErr_Format(PyExc_TypeError,
                     "Tensor: sizes, or one sequence or tensor of elements are expected, not %R",
                     data);
        return NULL;
    }
    if (tensor_check(state, data))
        return tensor_make(state, data, NULL, place, false);
    PyObject *dtype = dtype_to_python(state, gn_get_default_dtype());
    PyObject *made = dtype != NULL ? tensor_make(state, data, dtype, place, false) : NULL;
    Py_XDECREF(dtype);
    return made;
}

PyObject *tensor_of_call(struct module_state *state, PyObject *arguments, PyObject *keywords)
{
    PyObject *place = NULL, *key, *value;
    struct creation creation = {.dtype = gn_get_default_dtype()};
    Py_ssize_t at = 0, count = PyTuple_Size(arguments);
    gn_tensor *tensor;
    gn_status status;
    while (keywords != NULL && PyDict_Next(keywords, &at, &key, &value)) {
        if (PyUnicode_CompareWithASCIIString(key, "device") != 0) {
            PyErr_Format(PyExc_TypeError,
                         "Tensor() got an unexpected keyword argument %R: see genesis.tensor() and "
                         "genesis.empty()",
                         key);
            return NULL;
        }
        place = value != Py_None ? value : NULL;
    }
    PyObject *only = count == 1 ? PyTuple_GetItem(arguments, 0) : NULL;
    /* Arrays of NumPy and tensors have __index__, too. */
    if (only != NULL && (!PyIndex_Check(only) || PySequence_Check(only) || PyBool_Check(only) ||
                         tensor_check(state, only)))
        return tensor_of_argument(state, only, place);
    if (count == 0)
        creation.ndim = 1; /* of no elements */
    else if (shape_take(arguments, NULL, &creation) < 0)
        return error_name("Tensor"), NULL;
    if (device_of_new(state, place, &creation.device) < 0)
        return NULL;
    CALL_ALLOCATING(status, gn_tensor_create(creation.dtype, creation.ndim, creation.sizes,
                                             creation.device, &tensor));
    return tensor_or_raise_in(state, "Tensor", status, tensor);
}

/* ---- one number -------------------------------------------------------------------------------- */

/* A number of Python, of NumPy, or a tensor of one element. */
static int number_from_python(struct module_state *state, const char *name, PyObject *object,
                              gn_scalar *number)
{
    gn_operand operand = {0};
    PyObject *plain = PyLong_CheckExact(object) || PyFloat_CheckExact(object) ||
                              !PyObject_HasAttrString(object, "item")
                          ? Py_NewRef(object)
                          : PyObject_CallMethod(object, "item", NULL);
    int found = plain != NULL ? operand_from_python(state, plain, &operand) : -1;
    if (found < 0 && PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Clear();
        PyErr_Format(PyExc_OverflowError, "%s: %R does not fit int64 or uint64", name, object);
    }
    if (found == 0 || (found > 0 && operand.tensor != NULL)) {
        PyErr_Format(PyExc_TypeError, "%s: %R is no number", name, object);
        found = -1;
    }
    Py_XDECREF(plain);
    *number = operand.scalar;
    return found > 0 ? 0 : -1;
}

/* The type of a number where none is named. */
static gn_dtype dtype_of_number(gn_scalar number)
{
    return number.kind == GN_FLOAT64 ? gn_get_default_dtype() : number.kind;
}

static gn_status full_make(const struct creation *creation, gn_operand value, gn_tensor **result)
{
    gn_tensor *made;
    if (value.tensor == NULL)
        return gn_full(value.scalar, creation->dtype, creation->ndim, creation->sizes,
                       creation->device, result);
    gn_status status =
        gn_tensor_create(creation->dtype, creation->ndim, creation->sizes, creation->device, &made);
    if (status != GN_OK)
        return status;
    status = gn_assign(made, value);
    if (status == GN_OK)
        *result = made;
    else
        gn_tensor_release(made);
    return status;
}

static PyObject *create_full(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"size",       "fill_value",    "dtype", "device",
                            "pin_memory", "requires_grad", NULL};
    struct module_state *state = module_state_of(module);
    struct creation creation = {0};
    PyObject *size, *given, *dtype = Py_None, *device = Py_None;
    gn_operand value = {0};
    gn_tensor *tensor;
    gn_status status;
    int is_pinned = 0, is_required = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO|OOpp:full", names, &size, &given,
                                     &dtype, &device, &is_pinned, &is_required))
        return NULL;
    if (tensor_check(state, given))
        value.tensor = tensor_of(given);
    else if (number_from_python(state, "full", given, &value.scalar) < 0)
        return NULL;
    creation.dtype =
        value.tensor != NULL ? gn_tensor_get_dtype(value.tensor) : dtype_of_number(value.scalar);
    PyObject *none = PyTuple_New(0);
    int found = none != NULL ? shape_take(none, size, &creation) : -1;
    Py_XDECREF(none);
    if (found < 0 || (dtype != Py_None && dtype_from_python(state, dtype, &creation.dtype) < 0) ||
        device_of_new(state, device, &creation.device) < 0) {
        (void)error_name("full");
        return NULL;
    }
    creation.requires_gradient = is_required != 0;
    if (is_pinned)
        return create_pinned(state, "full", &creation, &value);
    CALL_ALLOCATING(status, full_make(&creation, value, &tensor));
    return gradient_request(tensor_or_raise_in(state, "full", status, tensor), is_required != 0);
}

static PyObject *set_default_dtype(PyObject *module, PyObject *given)
{
    struct module_state *state = module_state_of(module);
    gn_dtype dtype;
    if (dtype_from_python(state, given, &dtype) < 0)
        return NULL;
    gn_status status = gn_set_default_dtype(dtype);
    if (status != GN_OK)
        return error_raise_in(state, "set_default_dtype", status);
    Py_RETURN_NONE;
}

static PyObject *get_default_dtype(PyObject *module, PyObject *unused)
{
    (void)unused;
    return dtype_to_python(module_state_of(module), gn_get_default_dtype());
}

/* ---- numbers at equal distances --------------------------------------------------------------- */

__extension__ typedef __int128 wide;

static wide as_wide(gn_scalar number)
{
    return number.kind == GN_UINT64 ? (wide)(uint64_t)number.integer : (wide)number.integer;
}

static double as_double(gn_scalar number)
{
    return number.kind == GN_FLOAT64 ? number.floating : (double)as_wide(number);
}

/* How many numbers there are from the start to before the end. */
static int range_count(gn_scalar start, gn_scalar end, gn_scalar step, bool is_whole,
                       int64_t *count)
{
    if (is_whole) {
        wide span = as_wide(end) - as_wide(start), by = as_wide(step);
        wide steps = span / by + (span % by != 0 && (span < 0) == (by < 0));
        *count = steps < 0 ? 0 : steps > INT64_MAX ? INT64_MAX : (int64_t)steps;
        return 0;
    }
    double steps = ceil((as_double(end) - as_double(start)) / as_double(step));
    if (!(steps < 0x1p62)) {
        PyErr_SetString(steps != steps ? PyExc_ValueError : PyExc_OverflowError,
                        steps != steps ? "arange: the bounds and the step must not be NaN"
                                       : "arange: there are more numbers than a tensor can have");
        return -1;
    }
    *count = steps > 0 ? (int64_t)steps : 0;
    return 0;
}

static int range_parse(struct module_state *state, PyObject *const objects[3], gn_scalar *start,
                       gn_scalar *end, gn_scalar *step)
{
    const gn_scalar one = {.kind = GN_INT64, .integer = 1}, zero = {.kind = GN_INT64};
    *start = zero;
    *step = one;
    PyObject *first = objects[1] != NULL ? objects[0] : NULL;
    PyObject *last = objects[1] != NULL ? objects[1] : objects[0];
    if (last == NULL) {
        PyErr_SetString(PyExc_TypeError, "arange: where the numbers end is missing");
        return -1;
    }
    if ((first != NULL && number_from_python(state, "arange", first, start) < 0) ||
        number_from_python(state, "arange", last, end) < 0 ||
        (objects[2] != NULL && number_from_python(state, "arange", objects[2], step) < 0))
        return -1;
    if (as_double(*step) == 0) {
        PyErr_SetString(PyExc_ValueError, "arange: the step must not be 0");
        return -1;
    }
    return 0;
}

/* The start and the step as the numbers are computed: all integers, or all floating. Of an integer type both are cut
 * off, and not only their sums. */
static int range_unify(bool is_whole, gn_dtype dtype, gn_scalar *start, gn_scalar *step)
{
    gn_scalar *numbers[] = {start, step};
    bool is_floating = !is_whole && gn_dtype_is_floating(dtype);
    for (int i = 0; i < 2; i++) {
        double value = as_double(*numbers[i]);
        if (!is_floating && numbers[i]->kind == GN_FLOAT64 && !(fabs(value) < 0x1p63)) {
            PyErr_SetString(PyExc_OverflowError, "arange: a number does not fit int64");
            return -1;
        }
        if (is_floating)
            *numbers[i] = (gn_scalar){.kind = GN_FLOAT64, .floating = value};
        else if (numbers[i]->kind == GN_FLOAT64)
            *numbers[i] = (gn_scalar){.kind = GN_INT64, .integer = (int64_t)value};
        else if (numbers[i]->kind == GN_BOOL)
            numbers[i]->kind = GN_INT64;
    }
    return 0;
}

static PyObject *create_arange(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"start", "end", "step", "dtype", "device", "requires_grad", NULL};
    struct module_state *state = module_state_of(module);
    PyObject *objects[3] = {NULL}, *dtype_object = Py_None, *device_object = Py_None;
    gn_scalar start, end, step;
    gn_device *device;
    gn_tensor *tensor;
    gn_status status;
    int64_t count;
    int is_required = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|OOO$OOp:arange", names, &objects[0],
                                     &objects[1], &objects[2], &dtype_object, &device_object,
                                     &is_required))
        return NULL;
    objects[1] = objects[1] != Py_None ? objects[1] : NULL;
    if (range_parse(state, objects, &start, &end, &step) < 0)
        return NULL;
    bool is_whole = start.kind != GN_FLOAT64 && end.kind != GN_FLOAT64 && step.kind != GN_FLOAT64;
    gn_dtype dtype = !is_whole                                          ? gn_get_default_dtype()
                     : start.kind == GN_UINT64 || end.kind == GN_UINT64 ? GN_UINT64
                                                                        : GN_INT64;
    if ((dtype_object != Py_None && dtype_from_python(state, dtype_object, &dtype) < 0) ||
        device_of_new(state, device_object, &device) < 0) {
        (void)error_name("arange");
        return NULL;
    }
    if (dtype_object == Py_None && dtype == GN_UINT64 && start.kind == GN_INT64 &&
        start.integer < 0) {
        PyErr_SetString(PyExc_OverflowError,
                        "arange: no type has all of the numbers, of which some are negative and "
                        "some above 2^63 - 1");
        return NULL;
    }
    if (range_count(start, end, step, is_whole, &count) < 0 ||
        range_unify(is_whole, dtype, &start, &step) < 0)
        return NULL;
    CALL_ALLOCATING(status, gn_range(start, step, count, dtype, device, &tensor));
    return gradient_request(tensor_or_raise_in(state, "arange", status, tensor), is_required != 0);
}

/* ---- of others -------------------------------------------------------------------------------- */

/* The tensors of a list or a tuple, which the items keep: freed by PyMem_Free(). */
static gn_tensor **tensors_take(struct module_state *state, const char *name, PyObject *items)
{
    Py_ssize_t count = PyTuple_Size(items);
    if (count == 0 || count > INT_MAX) {
        PyErr_Format(PyExc_ValueError,
                     count == 0 ? "%s: there must be a tensor" : "%s: too many tensors", name);
        return NULL;
    }
    gn_tensor **tensors = PyMem_Malloc((size_t)count * sizeof *tensors);
    if (tensors == NULL) {
        (void)PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *one = PyTuple_GetItem(items, i);
        if (tensor_check(state, one)) {
            tensors[i] = tensor_of(one);
            continue;
        }
        PyObject *type = PyType_GetName(Py_TYPE(one));
        if (type != NULL)
            PyErr_Format(PyExc_TypeError,
                         "%s: a list of tensors, and number %zd of it is of type %U", name, i,
                         type);
        Py_XDECREF(type);
        PyMem_Free(tensors);
        return NULL;
    }
    return tensors;
}

/* By one of its names. */
static PyObject *cat_as(const char *name, PyObject *module, PyObject *const *arguments,
                        Py_ssize_t count, PyObject *keywords)
{
    const struct call call = {name, {"tensors", "dim", "out"}, 3, 2, 1};
    struct module_state *state = module_state_of(module);
    PyObject *taken[CALL_ARGUMENTS_MOST];
    int dim = 0;
    gn_tensor *result;
    gn_status status;
    if (call_take(&call, arguments, count, keywords, taken) < 0)
        return NULL;
    if (tensor_check(state, taken[0]) || (taken[1] != NULL && tensor_check(state, taken[1]))) {
        PyErr_Format(PyExc_TypeError, "%s: pass a list: %s([x, y]), not the tensors one by one",
                     name, name);
        return NULL;
    }
    PyObject *items = iterable_take(taken[0]);
    gn_tensor **tensors = items != NULL ? tensors_take(state, name, items) : NULL;
    if (tensors == NULL || dim_take(name, taken[1], &dim) < 0 ||
        out_refuse(state, name, &items, 1, taken[2]) < 0) {
        if (items == NULL)
            (void)error_name(name);
        PyMem_Free(tensors);
        Py_XDECREF(items);
        return NULL;
    }
    bool is_long = is_long_on(tensors[0]) || PyTuple_Size(items) > 16;
    for (Py_ssize_t i = 1; !is_long && i < PyTuple_Size(items); i++)
        is_long = is_long_on(tensors[i]);
    CALL_OPERATION(is_long, status, gn_cat((int)PyTuple_Size(items), tensors, dim, &result));
    PyMem_Free(tensors);
    Py_DECREF(items);
    if (status == GN_OK && taken[2] != NULL && taken[2] != Py_None)
        return result_into(state, name, result, taken[2]);
    return tensor_or_raise_in(state, name, status, result);
}

#define DEFINE_CAT(name)                                                                           \
    static PyObject *create_##name(PyObject *module, PyObject *const *arguments, Py_ssize_t count, \
                                   PyObject *keywords)                                             \
    {                                                                                              \
        return cat_as(#name, module, arguments, count, keywords);                                  \
    }
DEFINE_CAT(cat)
DEFINE_CAT(concat)
DEFINE_CAT(concatenate)

#define CAT_FUNCTION(name)                                                                              \
    {                                                                                                   \
#name, WITH_VECTOR(create_##name),                                                              \
            #name                                                                                       \
            "(tensors, dim=0, *, out=None)\n--\n\n"                                                     \
            "Tensors one behind the other along a dimension; those of shape (0,) count as nothing.\n\n" \
            "Examples\n--------\n>>> import genesis\n"                                                  \
            ">>> genesis." #name "([genesis.zeros(2), genesis.ones(1)])\ntensor([0., 0., 1.])\n"        \
    }

PyMethodDef tensor_create_functions[] = {
    CAT_FUNCTION(cat),
    CAT_FUNCTION(concat),
    CAT_FUNCTION(concatenate),
    {"empty", WITH_KEYWORDS(create_empty),
     "empty(*shape, size=None, dtype=None, device=None, pin_memory=False, "
     "requires_grad=False, memory_format=None)\n--\n\n"
     "A tensor whose elements are not set.\n\n"
     "Examples\n--------\n>>> import genesis\n>>> genesis.empty(2, 3).shape\n(2, 3)\n"},
    {"zeros", WITH_KEYWORDS(create_zeros),
     "zeros(*shape, size=None, dtype=None, device=None, pin_memory=False, "
     "requires_grad=False)\n--\n\n"
     "A tensor of zeros.\n\n"
     "Examples\n--------\n>>> import genesis\n>>> genesis.zeros(2)\ntensor([0., 0.])\n"},
    {"ones", WITH_KEYWORDS(create_ones),
     "ones(*shape, size=None, dtype=None, device=None, pin_memory=False, "
     "requires_grad=False)\n--\n\n"
     "A tensor of ones.\n\n"
     "Examples\n--------\n>>> import genesis\n>>> genesis.ones(2, dtype=genesis.int8)\n"
     "tensor([1, 1], dtype=genesis.int8)\n"},
    {"full", WITH_KEYWORDS(create_full),
     "full(size, fill_value, dtype=None, device=None, pin_memory=False, "
     "requires_grad=False)\n--\n\n"
     "A tensor of one number; without a dtype that of the number.\n\n"
     "Examples\n--------\n>>> import genesis\n>>> genesis.full((2,), 7)\ntensor([7, 7])\n"},
    {"set_default_dtype", set_default_dtype, METH_O,
     "set_default_dtype($module, d, /)\n--\n\n"
     "Sets the floating type of new tensors and of floating numbers: at first float32.\n\n"
     "Integers become it where an operation needs floating numbers.\n\n"
     "Examples\n--------\n>>> import genesis\n>>> genesis.set_default_dtype(genesis.float64)\n"
     ">>> genesis.tensor([1.5]).dtype, (genesis.tensor([1]) / 2).dtype\n"
     "(genesis.float64, genesis.float64)\n>>> genesis.set_default_dtype(genesis.float32)\n"},
    {"get_default_dtype", get_default_dtype, METH_NOARGS,
     "get_default_dtype($module, /)\n--\n\n"
     "The floating type of new tensors and of floating numbers.\n\n"
     "Examples\n--------\n>>> import genesis\n>>> genesis.get_default_dtype()\n"
     "genesis.float32\n"},
    {"arange", WITH_KEYWORDS(create_arange),
     "arange(start=0, end=None, step=1, *, dtype=None, device=None, requires_grad=False)\n--\n\n"
     "Numbers from `start` (0 if only one is given) to before `end`, in steps.\n\n"
     "Examples\n--------\n>>> import genesis\n>>> genesis.arange(3), genesis.arange(1, 2, 0.25)\n"
     "(tensor([0, 1, 2]), tensor([1.0000, 1.2500, 1.5000, 1.7500]))\n"},
    {NULL, NULL, 0, NULL},
};
