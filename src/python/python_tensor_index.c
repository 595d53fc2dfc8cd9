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

struct key *key_make(struct module_state *state, PyObject *tuple, const gn_key **parts, int *count)
{
    struct key *key = PyMem_Calloc(1, sizeof *key);
    if (key == NULL) {
        (void)PyErr_NoMemory();
        return NULL;
    }
    if (key_take(state, tuple, key) < 0) {
        PyMem_Free(key);
        return NULL;
    }
    *parts = key->parts;
    *count = key->count;
    return key;
}

void key_free(struct key *key)
{
    if (key != NULL)
        key_drop(key);
    PyMem_Free(key);
}

PyObject *value_take(struct module_state *state, PyObject *object)
{
    if (!PyObject_CheckBuffer(object) && !is_on_gpu(state, object) &&
        (!PySequence_Check(object) || PyUnicode_Check(object))) {
        PyErr_Format(PyExc_TypeError, "%R is neither a tensor nor a number", object);
        return NULL;
    }
    return tensor_from_value(state, object);
}

/* A tensor, a number, or something that has elements: `made` is the caller's to drop. */
static int operand_of_value(struct module_state *state, PyObject *object, gn_operand *value,
                            PyObject **made)
{
    *made = NULL;
    int found = operand_from_python(state, object, value);
    if (found != 0)
        return found < 0 ? -1 : 0;
    *made = value_take(state, object);
    if (*made == NULL)
        return -1;
    *value = (gn_operand){.tensor = tensor_of(*made)};
    return 0;
}

static int index_set(struct module_state *state, gn_tensor *tensor, PyObject *object,
                     PyObject *value_object)
{
    struct key key;
    gn_operand value;
    PyObject *made;
    gn_status status;
    if (operand_of_value(state, value_object, &value, &made) < 0)
        return -1;
    if (key_take(state, object, &key) < 0) {
        Py_XDECREF(made);
        return -1;
    }
    bool is_long = key.is_long ||
                   (value.tensor != NULL && gn_tensor_get_count(value.tensor) > QUICK_MOST) ||
                   gn_tensor_get_count(tensor) > QUICK_MOST;
    CALL_OPERATION(is_long, status, gn_index_set(tensor, key.count, key.parts, value, false));
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
    return index_set(tensor_state(self), tensor_of(self), key, value);
}

/* ---- plans ------------------------------------------------------------------------------ */

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
    if (value_object != Py_None && operand_of_value(state, value_object, &value, &made) < 0)
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

PyMethodDef tensor_index_functions[] = {
    {"_index_plan", function_index_plan, METH_VARARGS,
     "_index_plan($module, tensor, key, value, for_set, /)\n--\n\nWhat a key comes to."},
    {"_index_positions", function_index_positions, METH_VARARGS,
     "_index_positions($module, tensor, key, /)\n--\n\nThe places that a key means."},
    {NULL, NULL, 0, NULL},
};
