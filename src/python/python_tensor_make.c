/*
 * python_tensor_make.c: tensors from shapes, numbers, lists in lists, and memory of others.
 */
#include "module.h"

#include <math.h>
#include <string.h>

static int cpu_take(struct module_state *state, gn_device **device)
{
    gn_status status = gn_device_get(GN_DEVICE_CPU, 0, device);
    if (status != GN_OK)
        (void)error_raise(state, status);
    return status == GN_OK ? 0 : -1;
}

/* ---- from memory ----------------------------------------------------------------------------- */

/* Called from any thread, also without the interpreter's lock, also at its end. */
static void buffer_release(void *context)
{
    if (!Py_IsInitialized())
        return;
    PyGILState_STATE lock = PyGILState_Ensure();
    PyBuffer_Release(context);
    PyMem_Free(context);
    PyGILState_Release(lock);
}

static int buffer_layout(const Py_buffer *buffer, gn_dtype *dtype, int64_t *sizes, int64_t *strides)
{
    if (dtype_from_format(buffer->format, buffer->itemsize, dtype) < 0)
        return -1;
    if (buffer->ndim > GN_DIMENSIONS_MAX) {
        PyErr_Format(PyExc_ValueError, "a tensor has at most %d dimensions, not %d",
                     GN_DIMENSIONS_MAX, buffer->ndim);
        return -1;
    }
    if (buffer->ndim > 0 && buffer->shape == NULL) {
        PyErr_SetString(PyExc_TypeError, "the object does not say how its elements lie in memory");
        return -1;
    }
    /* An empty array.array is anywhere. */
    bool is_aligned = buffer->len == 0 || (uintptr_t)buffer->buf % (size_t)buffer->itemsize == 0;
    Py_ssize_t step = buffer->itemsize; /* of those who give no strides, as ctypes: row-major */
    for (int i = buffer->ndim - 1; i >= 0; i--) {
        Py_ssize_t stride = buffer->strides != NULL ? buffer->strides[i] : step;
        sizes[i] = buffer->shape[i];
        strides[i] = stride / buffer->itemsize;
        is_aligned &= stride % buffer->itemsize == 0 || buffer->shape[i] < 2;
        if (buffer->strides == NULL && __builtin_mul_overflow(step, buffer->shape[i], &step)) {
            PyErr_SetString(PyExc_ValueError, "the object's shape does not fit the address space");
            return -1;
        }
    }
    if (!is_aligned) {
        PyErr_SetString(PyExc_ValueError,
                        "the elements are not aligned in memory: make a copy first");
        return -1;
    }
    return 0;
}

/* NumPy's dates show their bytes, without strides, as if they were numbers. */
static bool buffer_is_known(const Py_buffer *buffer, PyObject *object)
{
    if (buffer->strides != NULL || buffer->ndim == 0)
        return true;
    PyObject *module = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__module__");
    bool is_numpy = module != NULL && PyUnicode_Check(module) &&
                    PyUnicode_CompareWithASCIIString(module, "numpy") == 0;
    Py_XDECREF(module);
    PyErr_Clear();
    if (is_numpy)
        PyErr_SetString(PyExc_TypeError, "the object does not say how its elements lie in memory");
    return !is_numpy;
}

/* The memory that an object shows by the buffer protocol, shared. */
static PyObject *tensor_from_buffer(struct module_state *state, PyObject *object)
{
    int64_t sizes[GN_DIMENSIONS_MAX], strides[GN_DIMENSIONS_MAX];
    gn_device *device;
    gn_dtype dtype;
    gn_tensor *tensor;
    Py_buffer *buffer = PyMem_Malloc(sizeof *buffer);
    if (buffer == NULL)
        return PyErr_NoMemory();
    if (PyObject_GetBuffer(object, buffer, PyBUF_RECORDS_RO) < 0) {
        PyMem_Free(buffer);
        return NULL;
    }
    if (buffer_is_known(buffer, object) && buffer_layout(buffer, &dtype, sizes, strides) == 0 &&
        cpu_take(state, &device) == 0) {
        gn_status status =
            gn_tensor_from_memory(buffer->buf, dtype, buffer->ndim, sizes, strides, device,
                                  buffer->readonly != 0, buffer_release, buffer, &tensor);
        if (status == GN_OK)
            return tensor_to_python(state, tensor);
        (void)error_raise(state, status);
    }
    PyBuffer_Release(buffer);
    PyMem_Free(buffer);
    return NULL;
}

/* A copy of the elements of such memory, as a type; NULL: their own. */
static PyObject *tensor_from_buffer_copy(struct module_state *state, PyObject *object,
                                         PyObject *dtype_object)
{
    int64_t sizes[GN_DIMENSIONS_MAX], strides[GN_DIMENSIONS_MAX];
    gn_device *device;
    gn_dtype dtype, wanted;
    gn_tensor *shared, *copy = NULL;
    Py_buffer buffer;
    PyObject *made = NULL;
    if (dtype_object != NULL && dtype_from_python(state, dtype_object, &wanted) < 0)
        return NULL;
    if (PyObject_GetBuffer(object, &buffer, PyBUF_RECORDS_RO) < 0)
        return NULL;
    if (buffer_is_known(&buffer, object) && buffer_layout(&buffer, &dtype, sizes, strides) == 0 &&
        cpu_take(state, &device) == 0) {
        gn_status status = gn_tensor_from_memory(buffer.buf, dtype, buffer.ndim, sizes, strides,
                                                 device, true, NULL, NULL, &shared);
        if (status == GN_OK) { /* others can reach the memory: what reads it does not wait */
            CALL_OPERATION(is_long_on(shared), status,
                           gn_cast(shared, dtype_object != NULL ? wanted : dtype, &copy));
            gn_tensor_release(shared);
        }
        made = tensor_or_raise(state, status, copy);
    }
    PyBuffer_Release(&buffer);
    return made;
}

/* What the dtype of an array, a number of NumPy's or a tensor says of itself, a text; NULL, without an exception, where it
 * says nothing. */
static PyObject *dtype_word(PyObject *object, const char *name)
{
    PyObject *dtype = PyObject_GetAttrString(object, "dtype");
    PyObject *word = dtype != NULL ? PyObject_GetAttrString(dtype, name) : NULL;
    Py_XDECREF(dtype);
    if (word != NULL && !PyUnicode_Check(word))
        Py_CLEAR(word);
    PyErr_Clear();
    return word;
}

/* The name of a dtype that has an array's numbers, or most of them; NULL if it has none. */
static const char *array_near(PyObject *array)
{
    static const struct {
        char kind;
        const char *name;
    } near[] = {{'b', "bool"}, {'i', "int64"}, {'u', "int64"}, {'f', "float64"}};
    PyObject *kind = dtype_word(array, "kind");
    const char *letter = kind != NULL ? text_from_python(kind) : NULL;
    const char *name = NULL;
    for (size_t i = 0; letter != NULL && i < sizeof near / sizeof *near; i++)
        if (letter[0] == near[i].kind && letter[1] == 0)
            name = near[i].name;
    Py_XDECREF(kind);
    PyErr_Clear();
    return name;
}

/* A copy of numbers that NumPy makes, in the machine's order of bytes. */
static PyObject *array_copy(PyObject *array, const char *name)
{
    if (*name != 0)
        return PyObject_CallMethod(array, "astype", "s", name);
    PyObject *own = dtype_word(array, "name");
    PyObject *copy = own != NULL ? PyObject_CallMethod(array, "astype", "O", own) : NULL;
    Py_XDECREF(own);
    return copy;
}

/* Called with an exception, that there is no sharing an array: NULL leaves it as it is. `name`: of the type that the copy
 * has; empty: the array's own; NULL: the nearest that there is. */
static PyObject *tensor_from_copy(struct module_state *state, PyObject *array, const char *name)
{
    PyObject *type, *value, *trace, *made = NULL;
    PyErr_Fetch(&type, &value, &trace);
    const char *near = array_near(array);
    PyObject *copy = near != NULL ? array_copy(array, name != NULL ? name : near) : NULL;
    if (copy != NULL)
        made = tensor_from_buffer(state, copy);
    Py_XDECREF(copy);
    if (made == NULL) {
        PyErr_Restore(type, value, trace);
        return NULL;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return made;
}

/* ---- from lists ------------------------------------------------------------------------------ */

/*
 * Numbers of lists in lists, in order. User code runs at every number and every list that is not Python's own, and may
 * change what is being read. So: a level is read through a tuple of its items that nobody can change, and each list is
 * compared with the shape, which the first item of each level gives, before its numbers are stored.
 */
struct listing {
    int ndim; /* levels met so far; all of them once `is_shaped` */
    int64_t sizes[GN_DIMENSIONS_MAX];
    bool is_shaped;     /* the first number, or an empty list, was met */
    size_t count;       /* of the shape */
    gn_scalar *numbers; /* room for `count`, owned; NULL before `is_shaped` */
    size_t used;
    bool has_floating; /* there was a floating number */
    bool has_negative; /* there was a negative integer */
    bool is_floating;  /* so are all numbers to be: integers may be larger than int64 has them */
    gn_dtype dtype;    /* of all so far: Python's numbers are bool, int64 and float32 */
    bool has_dtype;    /* there was one */
    bool is_known; /* the items that are read are an array's or a tensor's, whose dtype counted */
};

/* uint64 and signed integers give uint64, which then must have all of them. */
static void listing_join(struct listing *listing, gn_dtype dtype)
{
    if (listing->has_dtype && listing->dtype == dtype)
        return; /* as nearly always */
    gn_dtype joined = listing->has_dtype ? gn_dtype_promote(listing->dtype, dtype) : dtype;
    listing->dtype = joined != GN_DTYPE_COUNT ? joined : GN_UINT64;
    listing->has_dtype = true;
}

/* Whether something that is none of Python's numbers says of which dtype it is, and that is one of ours. */
static bool is_typed(PyObject *object, gn_dtype *dtype)
{
    if (PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyBool_Check(object))
        return false;
    PyObject *name = dtype_word(object, "name");
    bool is_found = false;
    for (int i = 0; name != NULL && !is_found && i < GN_DTYPE_COUNT; i++) {
        is_found = PyUnicode_CompareWithASCIIString(name, gn_dtype_name((gn_dtype)i)) == 0;
        if (is_found)
            *dtype = (gn_dtype)i;
    }
    Py_XDECREF(name);
    return is_found;
}

static bool is_list(PyObject *object)
{
    return PyList_Check(object) || PyTuple_Check(object);
}

static int number_take(PyObject *item, bool is_floating, gn_scalar *number)
{
    if (PyBool_Check(item)) {
        *number = (gn_scalar){.kind = GN_BOOL, .integer = item == Py_True};
        return 0;
    }
    if (PyFloat_Check(item)) {
        *number = (gn_scalar){.kind = GN_FLOAT64, .floating = PyFloat_AsDouble(item)};
        return 0;
    }
    if (PyLong_CheckExact(item) || PyLong_Check(item)) { /* the first needs no call */
        int status = integer_from_python(item, number);
        if (is_floating && (status < 0 || number->kind == GN_UINT64)) {
            PyErr_Clear();
            *number = (gn_scalar){.kind = GN_FLOAT64, .floating = PyLong_AsDouble(item)};
            status = PyErr_Occurred() ? -1 : 0;
        }
        return status;
    }
    if (PyComplex_Check(item)) {
        PyErr_Format(PyExc_TypeError, "%R is complex: %s", item, gn_dtype_advice("complex128"));
        return -1;
    }
    if (!PyNumber_Check(item)) {
        PyErr_Format(PyExc_TypeError, "%R is no number", item);
        return -1;
    }
    /* NumPy's numbers and tensors of one element know themselves which of Python's numbers they are. */
    PyObject *converted = PyObject_HasAttrString(item, "item")
                              ? PyObject_CallMethod(item, "item", NULL)
                          : PyIndex_Check(item) ? PyNumber_Index(item)
                                                : PyNumber_Float(item);
    if (converted == NULL && PySequence_Check(item) && PyErr_ExceptionMatches(PyExc_ValueError)) {
        PyErr_Clear(); /* an array of several */
        PyErr_Format(PyExc_ValueError,
                     "lists of one level have different depths: %R is no number, as others are",
                     item);
    }
    if (converted != NULL && !PyFloat_Check(converted) && !PyLong_Check(converted)) {
        PyObject *wide = converted; /* NumPy's long double, say */
        converted = PyNumber_Float(wide);
        Py_DECREF(wide);
    }
    int status = converted != NULL ? number_take(converted, is_floating, number) : -1;
    Py_XDECREF(converted);
    return status;
}

/* No level comes below: makes room for the numbers of the shape. */
static int listing_close(struct module_state *state, struct listing *listing)
{
    size_t count = 1, nbytes;
    bool is_possible =
        true; /* only the last size can be 0: the sizes before it are multiplied, too */
    for (int i = 0; i < listing->ndim; i++)
        is_possible &= !__builtin_mul_overflow(count, (size_t)listing->sizes[i], &count);
    is_possible &= !__builtin_mul_overflow(count > 0 ? count : 1, sizeof(gn_scalar), &nbytes);
    if (!is_possible || nbytes > PY_SSIZE_T_MAX) {
        PyObject *shape = integers_to_python(listing->sizes, listing->ndim);
        if (shape != NULL)
            PyErr_Format(state->shape_error, "lists of the shape %R do not fit the address space",
                         shape);
        Py_XDECREF(shape);
        return -1;
    }
    listing->numbers = PyMem_Malloc(nbytes);
    if (listing->numbers == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    listing->count = count;
    listing->is_shaped = true;
    return 0;
}

static inline int listing_add(struct listing *listing, PyObject *item)
{
    gn_scalar number;
    bool is_usual = PyFloat_CheckExact(item) || PyLong_CheckExact(item); /* known without a call */
    if (!is_usual && is_list(item)) {
        PyErr_SetString(PyExc_ValueError, "lists of one level have different depths");
        return -1;
    }
    if (number_take(item, listing->is_floating, &number) < 0)
        return -1;
    listing->has_floating |= number.kind == GN_FLOAT64;
    listing->has_negative |= number.kind == GN_INT64 && number.integer < 0;
    if (!listing->is_known) {
        gn_dtype dtype = number.kind == GN_FLOAT64 ? gn_get_default_dtype() : number.kind;
        if (!is_usual)
            (void)is_typed(item, &dtype);
        listing_join(listing, dtype);
    }
    listing->numbers[listing->used++] = number;
    return 0;
}

/* What an object has items of: a tuple of them; or the number that it is. A new reference. */
static PyObject *listing_open(struct listing *listing, PyObject *data)
{
    if (is_list(data))
        return items_take(data, -1);
    if (PyFloat_CheckExact(data) || PyLong_CheckExact(data))
        return Py_NewRef(data);
    if (PyObject_HasAttrString(data, "tolist")) { /* an array or a tensor */
        gn_dtype dtype;
        if (!listing->is_known && is_typed(data, &dtype)) {
            listing_join(listing, dtype);
            listing->is_known = true;
        }
        PyObject *list = PyObject_CallMethod(data, "tolist", NULL);
        PyObject *items = list != NULL && is_list(list) ? items_take(list, -1) : Py_XNewRef(list);
        Py_XDECREF(list);
        return items;
    }
    if (!PySequence_Check(data) || PyUnicode_Check(data) || PyBytes_Check(data))
        return Py_NewRef(data);
    PyObject *items = items_take(data, -1);
    if (items == NULL && PyNumber_Check(data) && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear(); /* a number that can be asked for items, and has none */
        return Py_NewRef(data);
    }
    return items;
}

static int listing_walk(struct module_state *state, struct listing *listing, PyObject *data,
                        int level);

/* The items of one list, at a level that the shape has, or is about to have. */
static int listing_walk_items(struct module_state *state, struct listing *listing, PyObject *items,
                              int level)
{
    Py_ssize_t length = PyTuple_Size(items);
    if (!listing->is_shaped && level == GN_DIMENSIONS_MAX) {
        PyErr_Format(PyExc_ValueError, "a tensor has at most %d dimensions", GN_DIMENSIONS_MAX);
        return -1;
    }
    if (!listing->is_shaped) {
        listing->sizes[level] = length;
        listing->ndim = level + 1;
        if (length == 0)
            return listing_close(state, listing);
    }
    if (length != listing->sizes[level]) {
        PyErr_Format(PyExc_ValueError, "lists of level %d have different lengths: %lld and %zd",
                     level, (long long)listing->sizes[level], length);
        return -1;
    }
    int status = 0;
    for (Py_ssize_t i = 0; status == 0 && i < length; i++) {
        PyObject *item = PyTuple_GetItem(items, i);
        status = listing->is_shaped && level + 1 == listing->ndim
                     ? listing_add(listing, item)
                     : listing_walk(state, listing, item, level + 1);
    }
    return status;
}

static int listing_walk(struct module_state *state, struct listing *listing, PyObject *data,
                        int level)
{
    bool was_known = listing->is_known;
    PyObject *opened = listing_open(listing, data);
    if (opened == NULL)
        return -1;
    int status = -1;
    if (is_list(opened))
        status = listing_walk_items(state, listing, opened, level);
    else if (listing->is_shaped)
        PyErr_Format(PyExc_ValueError,
                     "lists of one level have different depths: %R is no list, as others are",
                     data);
    else if (listing_close(state, listing) == 0)
        status = listing_add(listing, opened);
    listing->is_known = was_known;
    Py_DECREF(opened);
    return status;
}

/* Whether a type has a number, as PyTorch sees it: unsigned ones have negative numbers, which wrap around. */
static bool number_fits(gn_scalar number, gn_dtype dtype)
{
    bool is_unsigned = gn_dtype_is_unsigned(dtype);
    if (dtype == GN_BOOL || gn_dtype_is_floating(dtype))
        return true;
    if (number.kind == GN_UINT64)
        return dtype == GN_UINT64;
    if (number.kind != GN_FLOAT64 && gn_dtype_size(dtype) == 8)
        return true;
    double most = ldexp(1, (int)gn_dtype_size(dtype) * 8 - (is_unsigned ? 0 : 1));
    double value = number.kind == GN_FLOAT64 ? number.floating : (double)number.integer;
    /* Below the least int64 the next float64 is far away. */
    bool is_above = gn_dtype_size(dtype) == 8 ? value >= -0x1p63 : value > -most - !is_unsigned;
    return is_above && value < most;
}

static void number_refuse(gn_scalar number, size_t place, gn_dtype dtype)
{
    PyObject *value = number.kind == GN_FLOAT64 ? PyFloat_FromDouble(number.floating)
                      : number.kind == GN_UINT64
                          ? PyLong_FromUnsignedLongLong((uint64_t)number.integer)
                          : PyLong_FromLongLong(number.integer);
    if (value == NULL)
        return;
    PyErr_Format(PyExc_OverflowError, "%R does not fit %s (it is number %zu of the data)", value,
                 gn_dtype_name(dtype), place);
    Py_DECREF(value);
}

static void number_store(gn_scalar number, gn_dtype dtype, void *element)
{
    bool is_floating = number.kind == GN_FLOAT64;
    if (dtype == GN_FLOAT64) {
        double value = is_floating                ? number.floating
                       : number.kind == GN_UINT64 ? (double)(uint64_t)number.integer
                                                  : (double)number.integer;
        memcpy(element, &value, sizeof value);
    } else {
        bool is_large = is_floating && number.floating >= 0x1p63;
        int64_t integer = is_large      ? (int64_t)(uint64_t)number.floating
                          : is_floating ? (int64_t)number.floating
                                        : number.integer; /* it fits */
        memcpy(element, &integer, sizeof integer);
    }
}

/* A tensor of the numbers, in the type that they, or the caller, want. */
static PyObject *listing_to_tensor(struct module_state *state, const struct listing *listing,
                                   gn_dtype dtype)
{
    gn_device *device;
    gn_tensor *wide, *result = NULL;
    void *memory;
    if (cpu_take(state, &device) < 0)
        return NULL;
    for (size_t i = 0; i < listing->count; i++)
        if (!number_fits(listing->numbers[i], dtype)) {
            number_refuse(listing->numbers[i], i, dtype);
            return NULL;
        }
    /* As float64 or int64 first, from which every other type comes; integers do not go through float64. */
    bool is_integer = dtype != GN_BOOL && !gn_dtype_is_floating(dtype);
    gn_dtype first = listing->has_floating && !is_integer ? GN_FLOAT64
                     : dtype == GN_UINT64                 ? GN_UINT64
                                                          : GN_INT64;
    gn_status status = gn_tensor_create(first, listing->ndim, listing->sizes, device, &wide);
    if (status == GN_OK) {
        status = gn_tensor_get_data(wide, &memory);
        for (size_t i = 0; status == GN_OK && i < listing->count; i++)
            number_store(listing->numbers[i], first, (char *)memory + i * 8);
        if (status == GN_OK)
            status = gn_cast(wide, dtype, &result);
        gn_tensor_release(wide);
    }
    return tensor_or_raise(state, status, result);
}

/* Whether another way is to be tried: there is no exception, or one that says that this was none; it is cleared. */
static bool is_retried(void)
{
    if (PyErr_Occurred() &&
        (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError)))
        return false;
    PyErr_Clear();
    return true;
}

/* A single number of Python's, as its own type or one of its kind: true, and perhaps an exception. */
static bool number_is_tensor(struct module_state *state, PyObject *data, bool has_dtype,
                             gn_dtype dtype, PyObject **made)
{
    gn_operand operand = {0};
    gn_device *device;
    gn_tensor *tensor;
    gn_status status;
    int64_t none = 0;
    bool is_floating = PyFloat_CheckExact(data);
    if (!is_floating && !PyLong_CheckExact(data) && !PyBool_Check(data))
        return false;
    gn_dtype own = is_floating ? gn_get_default_dtype() : PyBool_Check(data) ? GN_BOOL : GN_INT64;
    if (has_dtype && dtype != own && !(is_floating && gn_dtype_is_floating(dtype)))
        return false; /* whether the number fits is looked at elsewhere */
    *made = NULL;
    if (operand_from_python(state, data, &operand) < 1)
        return !PyErr_ExceptionMatches(PyExc_OverflowError) || !is_retried();
    if (operand.scalar.kind == GN_UINT64)
        own = GN_UINT64;
    if (cpu_take(state, &device) < 0)
        return true;
    CALL_HELD(status, gn_full(operand.scalar, has_dtype ? dtype : own, 0, &none, device, &tensor));
    *made = tensor_or_raise(state, status, tensor);
    return true;
}

/* A number, or lists in lists: arrays, tensors and whatever else has items and a length are lists, too. */
static PyObject *tensor_from_lists(struct module_state *state, PyObject *data,
                                   PyObject *dtype_object)
{
    struct listing listing = {0};
    gn_dtype dtype = GN_BOOL;
    if (dtype_object != NULL && dtype_from_python(state, dtype_object, &dtype) < 0)
        return NULL;
    listing.is_floating = gn_dtype_is_floating(dtype);
    PyObject *made = NULL;
    if (number_is_tensor(state, data, dtype_object != NULL, dtype, &made))
        return made;
    if (listing_walk(state, &listing, data, 0) == 0) {
        if (dtype_object == NULL)
            dtype = listing.has_dtype ? listing.dtype
                                      : gn_get_default_dtype(); /* of no numbers at all */
        if (dtype_object == NULL && dtype == GN_UINT64 && listing.has_negative)
            PyErr_SetString(PyExc_OverflowError,
                            "no type has all of the integers: some are negative, which uint64 has "
                            "not, and some are of uint64");
        else
            made = listing_to_tensor(state, &listing, dtype);
    }
    PyMem_Free(listing.numbers);
    return made;
}

/* ---- from anything --------------------------------------------------------------------------- */

/* What the buffer protocol has no format for, as bfloat16, DLPack may have a type for. */
static PyObject *tensor_from_buffer_or_dlpack(struct module_state *state, PyObject *data)
{
    PyObject *type, *value, *trace, *shared = tensor_from_buffer(state, data);
    if (shared != NULL || !PyErr_ExceptionMatches(PyExc_BufferError))
        return shared;
    PyErr_Fetch(&type, &value, &trace);
    if (!PyObject_HasAttrString(data, "__dlpack__")) {
        PyErr_Restore(type, value, trace);
        return NULL;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return tensor_from_dlpack(state, data, Py_None, Py_None);
}

PyObject *tensor_from_value(struct module_state *state, PyObject *data)
{
    PyObject *made = tensor_from_data(state, data, NULL, false);
    if (made != NULL || PyErr_ExceptionMatches(PyExc_MemoryError) || !PyObject_CheckBuffer(data))
        return made;
    return tensor_from_copy(state, data, NULL);
}

/* The memory of a buffer, or a copy of it where one is wanted anyway and there is no other way. */
static PyObject *tensor_of_buffer(struct module_state *state, PyObject *data, PyObject *dtype,
                                  bool is_copied)
{
    gn_dtype wanted = GN_BOOL;
    if (dtype != NULL && dtype_from_python(state, dtype, &wanted) < 0)
        return NULL;
    PyObject *shared = tensor_from_buffer_or_dlpack(state, data);
    if (shared != NULL || (!is_copied && dtype == NULL) ||
        PyErr_ExceptionMatches(PyExc_MemoryError))
        return shared;
    const char *name = wanted == GN_BFLOAT16 ? "float32" : gn_dtype_name(wanted);
    return tensor_from_copy(state, data, dtype != NULL ? name : "");
}

PyObject *tensor_from_data(struct module_state *state, PyObject *data, PyObject *dtype,
                           bool is_copied)
{
    PyObject *shared;
    if (tensor_check(state, data)) {
        shared = Py_NewRef(data);
    } else if (has_buffer(state, data) && !PyBytes_Check(data)) {
        shared = is_copied ? tensor_from_buffer_copy(state, data, dtype) : NULL;
        if (shared != NULL || !is_retried())
            return shared;
        shared = tensor_of_buffer(state, data, dtype, is_copied);
    } else if (is_foreign(data))
        shared = tensor_from_foreign(state, data, Py_None);
    else
        return tensor_from_lists(state, data, dtype);
    if (shared == NULL)
        return NULL;
    gn_dtype wanted = gn_tensor_get_dtype(tensor_of(shared));
    if (dtype != NULL && dtype_from_python(state, dtype, &wanted) < 0) {
        Py_DECREF(shared);
        return NULL;
    }
    if (!is_copied && wanted == gn_tensor_get_dtype(tensor_of(shared)))
        return shared;
    gn_tensor *copy;
    gn_status status;
    CALL_ALLOCATING(status, gn_cast(tensor_of(shared), wanted, &copy));
    PyObject *made = tensor_or_raise(state, status, copy);
    Py_DECREF(shared);
    return made;
}

PyObject *tensor_make(struct module_state *state, PyObject *data, PyObject *dtype, PyObject *place,
                      bool is_copied)
{
    gn_device *device;
    if (device_of_new(state, place, &device) < 0)
        return NULL;
    bool is_theirs = place != NULL && is_foreign(data) && !has_buffer(state, data);
    PyObject *shared = is_theirs ? tensor_from_foreign(state, data, place) : Py_NewRef(data);
    /* NumPy's single numbers never change: a tensor has its own. */
    is_copied |= PyObject_CheckBuffer(data) && PyNumber_Check(data) && !PySequence_Check(data);
    PyObject *made = shared != NULL ? tensor_from_data(state, shared, dtype, is_copied) : NULL;
    Py_XDECREF(shared);
    bool is_placed = made != NULL &&
                     (tensor_check(state, data) ||
                      gn_device_get_type(gn_tensor_get_device(tensor_of(made))) != GN_DEVICE_CPU);
    if (made == NULL || (place == NULL && is_placed))
        return made; /* a tensor, and what is on a GPU, stays where it is */
    PyObject *moved = tensor_move(made, device);
    Py_DECREF(made);
    return moved;
}

static PyObject *make_from_data(PyObject *module, PyObject *const *arguments, Py_ssize_t count,
                                PyObject *keywords, const char *name, bool is_copied)
{
    const struct call call = {
        name, {"data", "dtype", "device", "requires_grad"}, 3 + is_copied, 3, 1};
    struct module_state *state = module_state_of(module);
    PyObject *taken[CALL_ARGUMENTS_MOST];
    if (call_take(&call, arguments, count, keywords, taken) < 0)
        return NULL;
    int is_required = taken[3] != NULL ? PyObject_IsTrue(taken[3]) : 0;
    /* A copy has no history. */
    bool is_recorded = is_copied && tensor_check(state, taken[0]) &&
                       gn_tensor_requires_gradient(tensor_of(taken[0]));
    PyObject *data = is_recorded ? tensor_detach(taken[0]) : Py_NewRef(taken[0]);
    PyObject *made = NULL;
    if (is_required >= 0 && data != NULL)
        made = tensor_make(state, data, taken[1] != Py_None ? taken[1] : NULL,
                           taken[2] != Py_None ? taken[2] : NULL, is_copied);
    Py_XDECREF(data);
    return gradient_request(made, is_required > 0);
}

static PyObject *make_tensor(PyObject *module, PyObject *const *arguments, Py_ssize_t count,
                             PyObject *keywords)
{
    return make_from_data(module, arguments, count, keywords, "tensor", true);
}

static PyObject *make_as_tensor(PyObject *module, PyObject *const *arguments, Py_ssize_t count,
                                PyObject *keywords)
{
    return make_from_data(module, arguments, count, keywords, "as_tensor", false);
}

static PyObject *make_from_numpy(PyObject *module, PyObject *array)
{
    if (!PyObject_CheckBuffer(array)) {
        PyErr_Format(PyExc_TypeError,
                     "from_numpy: %R is no array whose memory can be shared: see tensor()", array);
        return NULL;
    }
    return tensor_from_buffer(module_state_of(module), array);
}

/* So many elements of a buffer, from a byte on; -1: all. NULL with an exception where they are not there. */
static const char *buffer_part(const Py_buffer *buffer, gn_dtype dtype, Py_ssize_t offset,
                               Py_ssize_t *count)
{
    Py_ssize_t size = (Py_ssize_t)gn_dtype_size(dtype), left = buffer->len - offset;
    if (offset < 0 || left < 0 || *count < -1)
        PyErr_Format(PyExc_ValueError,
                     "frombuffer: %zd elements from byte %zd on are not in a buffer of %zd bytes",
                     *count, offset, buffer->len);
    else if (*count < 0 && left % size != 0)
        PyErr_Format(PyExc_ValueError,
                     "frombuffer: the %zd bytes from byte %zd on are no whole number of %s", left,
                     offset, gn_dtype_name(dtype));
    else if (*count > left / size)
        PyErr_Format(PyExc_ValueError,
                     "frombuffer: %zd elements of %s are more than the %zd bytes from byte %zd on",
                     *count, gn_dtype_name(dtype), left, offset);
    else if (((uintptr_t)buffer->buf + (size_t)offset) % (size_t)size != 0 && left > 0)
        PyErr_SetString(PyExc_ValueError, "frombuffer: the elements are not aligned in memory");
    else
        *count = *count < 0 ? left / size : *count;
    return PyErr_Occurred() ? NULL : (const char *)buffer->buf + offset;
}

static PyObject *make_frombuffer(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"buffer", "dtype", "count", "offset", NULL};
    struct module_state *state = module_state_of(module);
    PyObject *object, *dtype_object;
    Py_ssize_t count = -1, offset = 0;
    gn_device *device;
    gn_dtype dtype;
    gn_tensor *tensor;
    Py_buffer *buffer;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO|nn:frombuffer", names, &object,
                                     &dtype_object, &count, &offset) ||
        dtype_from_python(state, dtype_object, &dtype) < 0 || cpu_take(state, &device) < 0)
        return NULL;
    buffer = PyMem_Malloc(sizeof *buffer);
    if (buffer == NULL)
        return PyErr_NoMemory();
    if (PyObject_GetBuffer(object, buffer, PyBUF_SIMPLE) < 0) {
        PyMem_Free(buffer);
        return NULL;
    }
    const char *data = buffer_part(buffer, dtype, offset, &count);
    int64_t size = count;
    if (data != NULL) {
        gn_status status =
            gn_tensor_from_memory((void *)(uintptr_t)data, dtype, 1, &size, NULL, device,
                                  buffer->readonly != 0, buffer_release, buffer, &tensor);
        if (status == GN_OK)
            return tensor_to_python(state, tensor);
        (void)error_raise_in(state, "frombuffer", status);
    }
    PyBuffer_Release(buffer);
    PyMem_Free(buffer);
    return NULL;
}

/* empty(shape..., dtype, device) and full(shape, value, dtype, device), for the functions in Python. */
static PyObject *make_empty(PyObject *module, PyObject *arguments)
{
    struct module_state *state = module_state_of(module);
    PyObject *shape, *dtype_object, *device_object;
    int64_t sizes[GN_DIMENSIONS_MAX];
    int ndim;
    gn_dtype dtype = gn_get_default_dtype();
    gn_device *device;
    gn_tensor *tensor;
    gn_status status;
    if (!PyArg_ParseTuple(arguments, "OOO", &shape, &dtype_object, &device_object) ||
        integers_from_python(shape, "a shape", sizes, GN_DIMENSIONS_MAX, &ndim) < 0 ||
        (dtype_object != Py_None && dtype_from_python(state, dtype_object, &dtype) < 0) ||
        device_of_new(state, device_object, &device) < 0)
        return NULL;
    CALL_ALLOCATING(status, gn_tensor_create(dtype, ndim, sizes, device, &tensor));
    return tensor_or_raise(state, status, tensor);
}

/*
 * Copies elements of a contiguous tensor of the CPU to memory, or from there, for pickle and files. Nobody gets to know
 * the tensor's own address: what was saved or loaded goes on waiting like any other.
 */
static gn_status bytes_exchange(gn_tensor *tensor, int64_t first, int64_t count, void *memory,
                                bool is_stored)
{
    gn_tensor *plain = NULL, *flat = NULL, *part = NULL, *bytes = NULL;
    const int64_t all = gn_tensor_get_count(tensor);
    gn_dtype dtype = gn_tensor_get_dtype(tensor);
    if (dtype == GN_BOOL)
        dtype = GN_UINT8; /* bytes from outside need not be 0 or 1 */
    gn_status status = gn_tensor_detach(tensor, &plain);
    if (status == GN_OK)
        status = gn_tensor_view(plain, 1, &all, &flat);
    if (status == GN_OK)
        status = gn_tensor_slice(flat, 0, first, 1, count, &part);
    if (status == GN_OK)
        status = gn_tensor_from_memory(memory, dtype, 1, &count, NULL, gn_tensor_get_device(tensor),
                                       is_stored, NULL, NULL, &bytes);
    if (status == GN_OK)
        status =
            gn_assign(is_stored ? part : bytes, (gn_operand){.tensor = is_stored ? bytes : part});
    gn_tensor_release(bytes);
    gn_tensor_release(part);
    gn_tensor_release(flat);
    gn_tensor_release(plain);
    return status;
}

/* Bytes are exchanged with the CPU's memory alone. */
static bool is_near(gn_tensor *tensor)
{
    return gn_device_get_type(gn_tensor_get_device(tensor)) == GN_DEVICE_CPU;
}

static PyObject *bytes_of(PyObject *module, PyObject *arguments)
{
    struct module_state *state = module_state_of(module);
    PyObject *object;
    long long first, count;
    gn_status status;
    if (!PyArg_ParseTuple(arguments, "O!LL", state->tensor_class, &object, &first, &count))
        return NULL;
    gn_tensor *tensor = tensor_of(object);
    if (!is_near(tensor) || first < 0 || count < 0 || count > gn_tensor_get_count(tensor) - first) {
        PyErr_SetString(PyExc_ValueError, "the tensor does not have these elements");
        return NULL;
    }
    size_t size = gn_dtype_size(gn_tensor_get_dtype(tensor));
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)((size_t)count * size));
    if (bytes == NULL)
        return NULL;
    CALL_ALLOCATING(status, bytes_exchange(tensor, first, count, PyBytes_AsString(bytes), false));
    if (status == GN_OK)
        return bytes;
    Py_DECREF(bytes);
    return error_raise(state, status);
}

static PyObject *set_bytes(PyObject *module, PyObject *arguments)
{
    struct module_state *state = module_state_of(module);
    PyObject *object, *made = NULL;
    long long first;
    Py_buffer data;
    gn_status status;
    if (!PyArg_ParseTuple(arguments, "O!Ly*", state->tensor_class, &object, &first, &data))
        return NULL;
    gn_tensor *tensor = tensor_of(object);
    size_t size = gn_dtype_size(gn_tensor_get_dtype(tensor));
    int64_t count = (int64_t)((size_t)data.len / size), all = gn_tensor_get_count(tensor);
    if (!is_near(tensor) || (size_t)data.len % size != 0 || (uintptr_t)data.buf % size != 0 ||
        first < 0 || count > all - first) {
        PyErr_SetString(PyExc_ValueError, "the bytes are not those of elements of the tensor");
    } else {
        CALL_ALLOCATING(status, bytes_exchange(tensor, first, count, data.buf, true));
        made = none_or_raise(object, status);
    }
    PyBuffer_Release(&data);
    return made;
}

static PyObject *is_tensor(PyObject *module, PyObject *object)
{
    return PyBool_FromLong(tensor_check(module_state_of(module), object));
}

/* tensor() with the dtype and on the device of another one. */
static PyObject *method_new_tensor(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                   PyObject *keywords)
{
    static const struct call call = {"new_tensor", {"data", "dtype", "device"}, 3, 3, 1};
    PyObject *taken[CALL_ARGUMENTS_MOST], *own[3] = {NULL}, *made = NULL;
    static const char *const names[] = {NULL, "dtype", "device"};
    if (call_take(&call, arguments, count, keywords, taken) < 0)
        return NULL;
    for (int i = 1; i < 3; i++)
        own[i] = taken[i] != NULL && taken[i] != Py_None ? Py_NewRef(taken[i])
                                                         : PyObject_GetAttrString(self, names[i]);
    if (own[1] != NULL && own[2] != NULL) {
        bool was_on = gn_set_gradients(false);
        made = tensor_make(tensor_state(self), taken[0], own[1], own[2], true);
        (void)gn_set_gradients(was_on);
    }
    Py_XDECREF(own[1]);
    Py_XDECREF(own[2]);
    return made;
}

PyMethodDef tensor_make_methods[] = {
    {"new_tensor", WITH_VECTOR(method_new_tensor),
     "new_tensor($self, data, dtype=None, device=None)\n--\n\n"
     "A copy of numbers with the same dtype on the same device."},
    {NULL, NULL, 0, NULL},
};

/* The type that an operation on these tensors and numbers has. */
static PyObject *result_type(PyObject *module, PyObject *const *tensors, Py_ssize_t count)
{
    struct module_state *state = module_state_of(module);
    gn_operand *operands = PyMem_Malloc((size_t)(count > 0 ? count : 1) * sizeof *operands);
    if (operands == NULL)
        return PyErr_NoMemory();
    gn_dtype dtype;
    gn_status status = GN_OK;
    PyObject *made = NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        int found = operand_from_python(state, tensors[i], &operands[i]);
        if (found == 0)
            PyErr_Format(PyExc_TypeError, "%R is not a Tensor", tensors[i]);
        if (found <= 0)
            goto free_operands;
    }
    status = gn_result_type((int)count, operands, &dtype);
    made = status == GN_OK ? dtype_to_python(state, dtype) : error_raise(state, status);
free_operands:
    PyMem_Free(operands);
    return made;
}

static PyObject *items_of(PyObject *module, PyObject *iterable)
{
    (void)module;
    return iterable_take(iterable);
}

static PyObject *dimensions_of(PyObject *module, PyObject *sequence)
{
    (void)module;
    PyObject *items = items_take(sequence, GN_DIMENSIONS_MAX);
    if (items != NULL && PyTuple_Size(items) > GN_DIMENSIONS_MAX) {
        PyErr_Format(PyExc_ValueError, "a tensor has at most %d dimensions", GN_DIMENSIONS_MAX);
        Py_CLEAR(items);
    }
    return items;
}

PyMethodDef tensor_make_functions[] = {
    {"tensor", WITH_VECTOR(make_tensor),
     "tensor(data, dtype=None, device=None, *, requires_grad=False)\n--\n\n"
     "A tensor with a copy of numbers: a number, lists in lists, an array, another tensor."},
    {"as_tensor", WITH_VECTOR(make_as_tensor),
     "as_tensor(data, dtype=None, device=None)\n--\n\n"
     "The same, with the memory of an array or tensor shared where it has that dtype."},
    {"frombuffer", WITH_KEYWORDS(make_frombuffer),
     "frombuffer(buffer, dtype, count=-1, offset=0)\n--\n\n"
     "A vector of elements that an object shows by the buffer protocol, without a copy.\n\n"
     "`count` elements from the byte `offset` on; -1: all that there are. Of memory that cannot "
     "be\n"
     "written to, as that of bytes, the tensor is read-only.\n\n"
     "Examples\n--------\n>>> import genesis\n"
     ">>> genesis.frombuffer(bytearray(b\"\\x01\\x02\\x03\"), dtype=genesis.uint8, offset=1)\n"
     "tensor([2, 3], dtype=genesis.uint8)\n"},
    {"from_numpy", make_from_numpy, METH_O,
     "from_numpy($module, array, /)\n--\n\nA tensor that shares the memory of an array."},
    {"is_tensor", is_tensor, METH_O,
     "is_tensor($module, obj)\n--\n\nWhether it is a tensor of Genesis.\n\n"
     "Examples\n--------\n>>> import genesis\n"
     ">>> genesis.is_tensor(genesis.zeros(2)), genesis.is_tensor([1, 2])\n(True, False)\n"},
    {"_dtype_advice", dtype_advice, METH_O,
     "_dtype_advice($module, name, /)\n--\n\nWhich types there are, and which has these numbers."},
    {"_result_type", (PyCFunction)(void (*)(void))result_type, METH_FASTCALL,
     "_result_type($module, /, *operands)\n--\n\nThe type that an operation on these has."},
    {"_items", items_of, METH_O,
     "_items($module, iterable, /)\n--\n\n"
     "The items as a tuple, of a list as it is; what has no iterator must have a length."},
    {"_dimensions", dimensions_of, METH_O,
     "_dimensions($module, sequence, /)\n--\n\n"
     "The items of a shape, or one for each dimension, as a tuple: not more than a tensor has."},
    {"_bytes_of", bytes_of, METH_VARARGS,
     "_bytes_of($module, tensor, first, count, /)\n--\n\nElements of a contiguous tensor as "
     "bytes."},
    {"_set_bytes", set_bytes, METH_VARARGS,
     "_set_bytes($module, tensor, first, data, /)\n--\n\nSets elements of a contiguous tensor."},
    {"_empty", make_empty, METH_VARARGS,
     "_empty($module, shape, dtype, device, /)\n--\n\nNo content."},
    {NULL, NULL, 0, NULL},
};
