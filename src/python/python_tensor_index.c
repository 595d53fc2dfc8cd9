/*
 * python_tensor_index.c: x[key] and x[key] = value: Python's objects become the parts of a key, the library does the
 * rest (genesis/index.h).
 *
 *     int, slice, None, ...          as they are; so is whatever has __index__, and an integer tensor or array without
 *                                    dimensions
 *     bool, numpy.bool               a mask over no dimension
 *     Tensor, array, list, range     an index tensor, or a mask
 */
#include "module.h"

/* Parts, and the tensors that were made for them. */
struct key {
    int count, made_count;
    bool has_elements; /* an index tensor, a mask or a bool */
    bool is_long;      /* worth letting the interpreter's lock go */
    gn_key parts[GN_KEYS_MAX];
    PyObject *made[GN_KEYS_MAX];
};

static void key_drop(struct key *key)
{
    for (int i = 0; i < key->made_count; i++)
        Py_DECREF(key->made[i]);
}

static int key_refuse(PyObject *item)
{
    PyErr_Format(PyExc_IndexError,
                 "tensors are indexed by integers, slices, ..., None, and tensors, arrays or lists "
                 "of integers or bool, not by %R",
                 item);
    return -1;
}

static __attribute__((noinline)) int integer_refuse(PyObject *integer)
{
    if (PyErr_ExceptionMatches(PyExc_OverflowError))
        PyErr_Format(PyExc_IndexError, "index %S does not fit 64 bits", integer);
    return -1;
}

static inline int take_integer(gn_key *part, PyObject *integer)
{
    part->kind = GN_KEY_INTEGER;
    part->start = PyLong_AsSsize_t(integer);
    return part->start == -1 && PyErr_Occurred() ? integer_refuse(integer) : 0;
}

static inline int take_slice(gn_key *part, PyObject *slice)
{
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(slice, &start, &stop, &step) < 0)
        return -1;
    part->kind = GN_KEY_SLICE;
    part->start = start;
    part->stop = stop;
    part->step = step;
    return 0;
}

/* A tensor of the caller's, or one that the key holds. */
static int take_tensor(struct module_state *state, struct key *key, gn_key *part, gn_tensor *tensor)
{
    if (gn_tensor_get_dimensions(tensor) == 0 &&
        !gn_dtype_is_floating(gn_tensor_get_dtype(tensor))) {
        gn_scalar item;
        int64_t none = 0;
        gn_status status = gn_tensor_get_item(tensor, &none, &item);
        if (status != GN_OK) {
            (void)error_raise(state, status);
            return -1;
        }
        part->kind = item.kind == GN_BOOL ? GN_KEY_BOOL : GN_KEY_INTEGER;
        part->start = item.kind != GN_UINT64 ? item.integer : INT64_MAX; /* out of range, too */
        key->has_elements |= item.kind == GN_BOOL;
        return 0;
    }
    part->kind = GN_KEY_TENSOR;
    key->has_elements = true;
    part->tensor = tensor;
    key->is_long |= gn_tensor_get_count(tensor) > QUICK_MOST;
    return 0;
}

/* Plain integers, a tuple of a key's list: 1 and a tensor that nobody but the key sees; 0: it has others; -1 with an
 * exception. */
static int integers_take(struct module_state *state, PyObject *items, PyObject **made)
{
    int64_t length = PyTuple_Size(items);
    gn_device *device;
    gn_tensor *tensor;
    void *memory;
    for (Py_ssize_t i = 0; i < length; i++)
        if (!PyLong_CheckExact(PyTuple_GetItem(items, i)))
            return 0;
    if (length == 0)
        return 0;
    gn_status status = gn_device_get(GN_DEVICE_CPU, 0, &device);
    if (status == GN_OK)
        status = gn_tensor_create(GN_INT64, 1, &length, device, &tensor);
    if (status == GN_OK && (status = gn_tensor_get_data(tensor, &memory)) != GN_OK)
        gn_tensor_release(tensor);
    if (status != GN_OK) {
        (void)error_raise(state, status);
        return -1;
    }
    gn_key part = {.start = 0};
    for (Py_ssize_t i = 0; i < length; i++) {
        if (take_integer(&part, PyTuple_GetItem(items, i)) < 0) {
            gn_tensor_release(tensor);
            return -1;
        }
        ((int64_t *)memory)[i] = part.start;
    }
    *made = tensor_to_python(state, tensor);
    return *made != NULL ? 1 : -1;
}

/* Something that has elements, as a tensor; a new reference. */
static PyObject *elements_take(struct module_state *state, PyObject *item)
{
    PyObject *made = NULL;
    if (PyList_CheckExact(item)) {
        PyObject *items = items_take(item, -1);
        int found = items != NULL ? integers_take(state, items, &made) : -1;
        Py_XDECREF(items);
        if (found != 0)
            return made;
    }
    if ((PyObject_CheckBuffer(item) || is_on_gpu(state, item)) && !PyBytes_Check(item)) {
        made = tensor_from_value(state, item);
    } else if (PySequence_Check(item) && !PyUnicode_Check(item) && !PyBytes_Check(item)) {
        PyObject *list = items_take(item, -1);
        made = list != NULL ? tensor_from_data(state, list, NULL, false) : NULL;
        if (made != NULL && gn_tensor_get_count(tensor_of(made)) == 0) {
            /* Without numbers there is nothing that says that they are none. */
            PyObject *dtype = dtype_to_python(state, GN_INT64);
            Py_DECREF(made);
            made = dtype != NULL ? tensor_from_data(state, list, dtype, false) : NULL;
            Py_XDECREF(dtype);
        }
        Py_XDECREF(list);
    }
    if (made == NULL && !PyErr_ExceptionMatches(PyExc_MemoryError)) {
        PyErr_Clear();
        (void)key_refuse(item);
    }
    return made;
}

/* Whatever is not usual. Apart, so that what is usual needs no more registers. */
static __attribute__((noinline)) int take_unusual(struct module_state *state, struct key *key,
                                                  gn_key *part, PyObject *item)
{
    if (item == Py_Ellipsis) {
        part->kind = GN_KEY_ELLIPSIS;
        return 0;
    }
    if (PyBool_Check(item)) {
        part->kind = GN_KEY_BOOL;
        part->start = item == Py_True;
        key->has_elements = true;
        return 0;
    }
    if (tensor_check(state, item))
        return take_tensor(state, key, part, tensor_of(item));
    if (PyIndex_Check(item) && !PyObject_CheckBuffer(item)) {
        PyObject *integer = PyNumber_Index(item);
        int status = integer != NULL ? take_integer(part, integer) : -1;
        Py_XDECREF(integer);
        return status;
    }
    PyObject *made = elements_take(state, item);
    if (made == NULL)
        return -1;
    key->made[key->made_count++] = made;
    return take_tensor(state, key, part, tensor_of(made));
}

static inline int take_item(struct module_state *state, struct key *key, gn_key *part,
                            PyObject *item)
{
    if (PyLong_CheckExact(item))
        return take_integer(part, item);
    if (PySlice_Check(item))
        return take_slice(part, item);
    if (item == Py_None) {
        part->kind = GN_KEY_NEW_AXIS;
        return 0;
    }
    return take_unusual(state, key, part, item);
}

static int tuple_take(struct module_state *state, PyObject *tuple, struct key *key)
{
    Py_ssize_t length = PyTuple_Size(tuple);
    if (length > GN_KEYS_MAX) {
        PyErr_Format(PyExc_IndexError, "a key has at most %d parts", GN_KEYS_MAX);
        return -1;
    }
    int status = 0;
    for (Py_ssize_t i = 0; status == 0 && i < length; i++)
        status = take_item(state, key, &key->parts[i], PyTuple_GetItem(tuple, i));
    key->count = (int)length;
    return status;
}

/* To be dropped by the caller if it succeeds. */
static inline int key_take(struct module_state *state, PyObject *object, struct key *key)
{
    key->count = 1;
    key->made_count = 0;
    key->has_elements = key->is_long = false;
    bool is_tuple = PyTuple_CheckExact(object) || /* the rest is a call */
                    (!PyLong_CheckExact(object) && !PySlice_Check(object) && PyTuple_Check(object));
    int status =
        is_tuple ? tuple_take(state, object, key) : take_item(state, key, key->parts, object);
    if (status < 0)
        key_drop(key);
    return status;
}

/* A key that is no view, or whose view has to wait for something. */
static __attribute__((noinline)) PyObject *key_get(PyObject *self, struct key *key)
{
    gn_tensor *tensor = tensor_of(self), *result;
    gn_status status;
    bool is_long = !key->has_elements || key->is_long || gn_tensor_get_count(tensor) > QUICK_MOST;
    CALL_OPERATION(is_long, status, gn_index_get(tensor, key->count, key->parts, &result));
    PyObject *made = tensor_or_raise(tensor_state(self), status, result);
    key_drop(key);
    return made;
}

PyObject *tensor_get_index(PyObject *self, PyObject *object)
{
    struct module_state *state = tensor_state(self);
    struct key key;
    gn_tensor *view = NULL;
    if (key_take(state, object, &key) < 0)
        return NULL;
    gn_status status = GN_OK;
    if (!key.has_elements)
        status = gn_index_view(tensor_of(self), key.count, key.parts, &view);
    if (status == GN_OK && view == NULL)
        return key_get(self, &key);
    key_drop(&key);
    return tensor_or_raise(state, status, view);
}

/* A tensor, a number, or something that has elements: `made` is the caller's to drop. */
static int value_take(struct module_state *state, PyObject *object, gn_operand *value,
                      PyObject **made)
{
    *made = NULL;
    int found = operand_from_python(state, object, value);
    if (found != 0)
        return found < 0 ? -1 : 0;
    if (!PyObject_CheckBuffer(object) && !is_on_gpu(state, object) &&
        (!PySequence_Check(object) || PyUnicode_Check(object))) {
        PyErr_Format(PyExc_TypeError, "%R is neither a tensor nor a number", object);
        return -1;
    }
    *made = tensor_from_value(state, object);
    if (*made == NULL)
        return -1;
    *value = (gn_operand){.tensor = tensor_of(*made)};
    return 0;
}

static int index_set(struct module_state *state, gn_tensor *tensor, PyObject *object,
                     PyObject *value_object, bool is_accumulated)
{
    struct key key;
    gn_operand value;
    PyObject *made;
    gn_status status;
    if (value_take(state, value_object, &value, &made) < 0)
        return -1;
    if (key_take(state, object, &key) < 0) {
        Py_XDECREF(made);
        return -1;
    }
    bool is_long = key.is_long ||
                   (value.tensor != NULL && gn_tensor_get_count(value.tensor) > QUICK_MOST) ||
                   gn_tensor_get_count(tensor) > QUICK_MOST;
    CALL_OPERATION(is_long, status,
                   gn_index_set(tensor, key.count, key.parts, value, is_accumulated));
    if (status != GN_OK)
        (void)error_raise_in(state, "assignment by a key", status);
    key_drop(&key);
    Py_XDECREF(made);
    return status == GN_OK ? 0 : -1;
}

int tensor_set_index(PyObject *self, PyObject *key, PyObject *value)
{
    if (value == NULL) {
        PyErr_SetString(PyExc_TypeError, "elements of a tensor cannot be deleted");
        return -1;
    }
    return index_set(tensor_state(self), tensor_of(self), key, value, false);
}

/* ---- for the functions in Python ---------------------------------------------------------------- */

static PyObject *function_index_put(PyObject *module, PyObject *arguments)
{
    struct module_state *state = module_state_of(module);
    PyObject *self, *key, *value;
    int is_accumulated;
    if (!PyArg_ParseTuple(arguments, "O!O!Op", state->tensor_class, &self, &PyTuple_Type, &key,
                          &value, &is_accumulated) ||
        index_set(state, tensor_of(self), key, value, is_accumulated != 0) < 0)
        return NULL;
    return Py_NewRef(self);
}

static PyObject *function_index_plan(PyObject *module, PyObject *arguments)
{
    static const char *const kinds[] = {"view", "gather", "scatter", "copy", "fill"};
    struct module_state *state = module_state_of(module);
    PyObject *self, *object, *value_object, *made = NULL;
    int is_writing;
    struct key key;
    gn_operand value = {.scalar = {.kind = GN_BOOL}};
    gn_index_info info;
    gn_status status;
    if (!PyArg_ParseTuple(arguments, "O!OOp", state->tensor_class, &self, &object, &value_object,
                          &is_writing))
        return NULL;
    if (value_object != Py_None && value_take(state, value_object, &value, &made) < 0)
        return NULL;
    if (value_object == Py_None)
        value.tensor = tensor_of(self); /* any tensor: it is not known yet which */
    if (key_take(state, object, &key) < 0) {
        Py_XDECREF(made);
        return NULL;
    }
    CALL_OPERATION(key.is_long, status,
                   gn_index_describe(tensor_of(self), key.count, key.parts,
                                     is_writing ? &value : NULL, &info));
    if (status != GN_OK)
        (void)error_raise(state, status);
    key_drop(&key);
    Py_XDECREF(made);
    if (status != GN_OK)
        return NULL;
    PyObject *shape = integers_to_python(info.shape, info.dimensions);
    PyObject *strides = integers_to_python(info.strides, info.dimensions);
    PyObject *result = NULL;
    if (shape != NULL && strides != NULL)
        result = Py_BuildValue(
            "sOOLOn", kinds[info.kind], shape, strides, (long long)info.offset_bytes,
            info.needs_mask_compaction ? Py_True : Py_False, (Py_ssize_t)info.temp_bytes);
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    return result;
}

static PyObject *function_index_positions(PyObject *module, PyObject *arguments)
{
    struct module_state *state = module_state_of(module);
    PyObject *self, *object;
    struct key key;
    gn_tensor *result;
    gn_status status;
    if (!PyArg_ParseTuple(arguments, "O!O", state->tensor_class, &self, &object) ||
        key_take(state, object, &key) < 0)
        return NULL;
    CALL_ALLOCATING(status, gn_index_positions(tensor_of(self), key.count, key.parts, &result));
    PyObject *made = tensor_or_raise(state, status, result);
    key_drop(&key);
    return made;
}

typedef gn_status (*read_call)(gn_tensor *tensor, int dimension, gn_tensor *index,
                               gn_tensor **result);

static PyObject *read_along(PyObject *module, PyObject *arguments, read_call call)
{
    struct module_state *state = module_state_of(module);
    PyObject *self, *index;
    int dim;
    gn_tensor *result;
    gn_status status;
    if (!PyArg_ParseTuple(arguments, "O!iO!", state->tensor_class, &self, &dim, state->tensor_class,
                          &index))
        return NULL;
    CALL_ALLOCATING(status, call(tensor_of(self), dim, tensor_of(index), &result));
    return tensor_or_raise(state, status, result);
}

static PyObject *function_gather(PyObject *module, PyObject *arguments)
{
    return read_along(module, arguments, gn_gather);
}

static PyObject *function_index_select(PyObject *module, PyObject *arguments)
{
    return read_along(module, arguments, gn_index_select);
}

typedef gn_status (*write_call)(gn_tensor *tensor, int dimension, gn_tensor *index,
                                gn_operand value, bool is_accumulated);

/* (tensor, dim, index, value, accumulate): written in place. */
static PyObject *write_along(PyObject *module, PyObject *arguments, write_call call)
{
    struct module_state *state = module_state_of(module);
    PyObject *self, *index, *value_object, *made;
    int dim, is_accumulated;
    gn_operand value;
    gn_status status;
    if (!PyArg_ParseTuple(arguments, "O!iO!Op", state->tensor_class, &self, &dim,
                          state->tensor_class, &index, &value_object, &is_accumulated) ||
        value_take(state, value_object, &value, &made) < 0)
        return NULL;
    CALL_ALLOCATING(status,
                    call(tensor_of(self), dim, tensor_of(index), value, is_accumulated != 0));
    PyObject *result = status == GN_OK ? Py_NewRef(self) : error_raise(state, status);
    Py_XDECREF(made);
    return result;
}

static PyObject *function_scatter(PyObject *module, PyObject *arguments)
{
    return write_along(module, arguments, gn_scatter);
}

static PyObject *function_index_put_along(PyObject *module, PyObject *arguments)
{
    return write_along(module, arguments, gn_index_put);
}

typedef gn_status (*pair_call)(gn_tensor *tensor, gn_tensor *other, gn_tensor **result);

static PyObject *of_two(PyObject *module, PyObject *arguments, pair_call call)
{
    struct module_state *state = module_state_of(module);
    PyObject *self, *other;
    gn_tensor *result;
    gn_status status;
    if (!PyArg_ParseTuple(arguments, "O!O!", state->tensor_class, &self, state->tensor_class,
                          &other))
        return NULL;
    CALL_ALLOCATING(status, call(tensor_of(self), tensor_of(other), &result));
    return tensor_or_raise(state, status, result);
}

static PyObject *function_take(PyObject *module, PyObject *arguments)
{
    return of_two(module, arguments, gn_take);
}

static PyObject *function_masked_select(PyObject *module, PyObject *arguments)
{
    return of_two(module, arguments, gn_masked_select);
}

PyObject *nonzero_tuple(struct module_state *state, gn_tensor *tensor)
{
    gn_tensor *places, *column, *one = NULL;
    gn_status status = GN_OK;
    if (gn_tensor_get_dimensions(tensor) == 0) { /* counts as one of one element */
        status = gn_tensor_unsqueeze(tensor, 0, &one);
        if (status != GN_OK)
            return error_raise(state, status);
    }
    CALL_ALLOCATING(status, gn_nonzero(one != NULL ? one : tensor, &places));
    gn_tensor_release(one);
    if (status != GN_OK)
        return error_raise(state, status);
    int ndim = (int)gn_tensor_get_shape(places)[1];
    PyObject *tuple = PyTuple_New(ndim);
    for (int i = 0; tuple != NULL && i < ndim; i++) {
        status = gn_tensor_select(places, 1, i, &column);
        PyObject *item = tensor_or_raise(state, status, column);
        if (item == NULL || PyTuple_SetItem(tuple, i, item) < 0)
            Py_CLEAR(tuple);
    }
    gn_tensor_release(places);
    return tuple;
}

static PyObject *function_nonzero(PyObject *module, PyObject *arguments)
{
    struct module_state *state = module_state_of(module);
    PyObject *tensor;
    int is_tuple;
    gn_tensor *result;
    gn_status status;
    if (!PyArg_ParseTuple(arguments, "O!p", state->tensor_class, &tensor, &is_tuple))
        return NULL;
    if (is_tuple)
        return nonzero_tuple(state, tensor_of(tensor));
    CALL_ALLOCATING(status, gn_nonzero(tensor_of(tensor), &result));
    return tensor_or_raise(state, status, result);
}

static PyObject *function_searchsorted(PyObject *module, PyObject *arguments)
{
    struct module_state *state = module_state_of(module);
    PyObject *sequence, *values;
    int is_right;
    gn_tensor *result;
    gn_status status;
    if (!PyArg_ParseTuple(arguments, "O!O!p", state->tensor_class, &sequence, state->tensor_class,
                          &values, &is_right))
        return NULL;
    CALL_ALLOCATING(
        status, gn_searchsorted(tensor_of(sequence), tensor_of(values), is_right != 0, &result));
    return tensor_or_raise(state, status, result);
}

static PyObject *function_bincount(PyObject *module, PyObject *arguments)
{
    struct module_state *state = module_state_of(module);
    PyObject *self, *weights;
    long long minimum;
    gn_tensor *result;
    gn_status status;
    if (!PyArg_ParseTuple(arguments, "O!OL", state->tensor_class, &self, &weights, &minimum))
        return NULL;
    if (weights != Py_None && !tensor_check(state, weights)) {
        PyErr_SetString(PyExc_TypeError, "bincount: weights must be a Tensor");
        return NULL;
    }
    CALL_ALLOCATING(status,
                    gn_bincount(tensor_of(self), weights != Py_None ? tensor_of(weights) : NULL,
                                minimum, &result));
    return tensor_or_raise(state, status, result);
}

PyMethodDef tensor_index_functions[] = {
    {"_index_plan", function_index_plan, METH_VARARGS,
     "_index_plan($module, tensor, key, value, for_set, /)\n--\n\nWhat a key comes to."},
    {"_index_positions", function_index_positions, METH_VARARGS,
     "_index_positions($module, tensor, key, /)\n--\n\nThe places that a key means."},
    {"_index_put", function_index_put, METH_VARARGS,
     "_index_put($module, tensor, key, value, accumulate, /)\n--\n\nIn place."},
    {"_index_put_along", function_index_put_along, METH_VARARGS,
     "_index_put_along($module, tensor, dim, index, value, accumulate, /)\n--\n\nIn place."},
    {"_gather", function_gather, METH_VARARGS,
     "_gather($module, tensor, dim, index, /)\n--\n\nElements along a dimension."},
    {"_scatter", function_scatter, METH_VARARGS,
     "_scatter($module, tensor, dim, index, value, accumulate, /)\n--\n\nIn place."},
    {"_index_select", function_index_select, METH_VARARGS,
     "_index_select($module, tensor, dim, index, /)\n--\n\nSlices of a dimension."},
    {"_take", function_take, METH_VARARGS,
     "_take($module, tensor, index, /)\n--\n\nElements by number."},
    {"_masked_select", function_masked_select, METH_VARARGS,
     "_masked_select($module, tensor, mask, /)\n--\n\nElements by a mask."},
    {"_nonzero", function_nonzero, METH_VARARGS,
     "_nonzero($module, tensor, as_tuple, /)\n--\n\nThe places of elements that are not 0."},
    {"_searchsorted", function_searchsorted, METH_VARARGS,
     "_searchsorted($module, sequence, values, right, /)\n--\n\nPlaces in a sorted sequence."},
    {"_bincount", function_bincount, METH_VARARGS,
     "_bincount($module, tensor, weights, minlength, /)\n--\n\nHow often each number occurs."},
    {NULL, NULL, 0, NULL},
};
