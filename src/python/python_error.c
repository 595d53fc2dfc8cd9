/*
 * python_error.c: which exception a status becomes, and how numbers, texts and objects are made.
 */
#include "module.h"

#include <string.h>

static PyObject *class_make(PyObject *module, const char *name, const char *qualified,
                            const char *doc, PyObject *bases)
{
    PyObject *made = PyErr_NewExceptionWithDoc(qualified, doc, bases, NULL);
    if (made != NULL && PyModule_AddObjectRef(module, name, made) < 0)
        Py_CLEAR(made);
    return made;
}

int errors_init(PyObject *module, struct module_state *state)
{
    state->out_of_memory_error =
        class_make(module, "OutOfMemoryError", "genesis.OutOfMemoryError",
                   "A device has no memory left for a request. The library goes on working.",
                   PyExc_RuntimeError);
    state->device_lost_error = class_make(
        module, "DeviceLostError", "genesis.DeviceLostError",
        "A device failed and can no longer be used by this process.", PyExc_RuntimeError);
    PyObject *both = PyTuple_Pack(2, PyExc_ValueError, PyExc_RuntimeError);
    if (both == NULL)
        return -1;
    state->invalid_device_error =
        class_make(module, "InvalidDeviceError", "genesis.InvalidDeviceError",
                   "There is no such device. Both a ValueError and a RuntimeError.", both);
    state->shape_error =
        class_make(module, "ShapeError", "genesis.ShapeError",
                   "Shapes do not go together, or a shape is not possible. Both a ValueError and a "
                   "RuntimeError.",
                   both);
    Py_DECREF(both);
    state->linalg_error = class_make(
        module, "_LinAlgError", "genesis.linalg.LinAlgError",
        "A matrix is singular or not positive-definite, or an iteration did not converge.",
        PyExc_RuntimeError);
    return state->shape_error && state->linalg_error && state->out_of_memory_error &&
                   state->device_lost_error && state->invalid_device_error
               ? 0
               : -1;
}

static PyObject *error_class(const struct module_state *state, gn_status status)
{
    switch (status) {
    case GN_ERROR_INVALID_VALUE:
    case GN_ERROR_OVERFLOW:
    case GN_ERROR_INVALID_POINTER:
    case GN_ERROR_DOUBLE_FREE:
    case GN_ERROR_WRONG_SIZE:
        return PyExc_ValueError;
    case GN_ERROR_OUT_OF_MEMORY:
        return state->out_of_memory_error;
    case GN_ERROR_OUT_OF_HOST_MEMORY:
        return PyExc_MemoryError;
    case GN_ERROR_INVALID_DEVICE:
        return state->invalid_device_error;
    case GN_ERROR_DEVICE_LOST:
        return state->device_lost_error;
    case GN_ERROR_SHAPE:
        return state->shape_error;
    case GN_ERROR_LINALG:
        return state->linalg_error;
    case GN_ERROR_NUMBER:
        return PyExc_OverflowError;
    case GN_ERROR_INDEX:
        return PyExc_IndexError;
    case GN_ERROR_TYPE:
        return PyExc_TypeError;
    default:
        return PyExc_RuntimeError;
    }
}

/* The sentence without the name in front of it, if there is one: "add: shapes ..." begins at "shapes". */
static const char *behind_name(const char *sentence)
{
    size_t length = strspn(sentence, "abcdefghijklmnopqrstuvwxyz_0123456789");
    return length > 0 && strncmp(sentence + length, ": ", 2) == 0 ? sentence + length + 2
                                                                  : sentence;
}

/* Whether the caller's arguments are to blame, and not memory or a device. */
static bool is_about_arguments(gn_status status)
{
    return status == GN_ERROR_INVALID_VALUE || status == GN_ERROR_OVERFLOW ||
           status == GN_ERROR_SHAPE || status == GN_ERROR_INDEX || status == GN_ERROR_TYPE ||
           status == GN_ERROR_NUMBER;
}

PyObject *error_raise_in(const struct module_state *state, const char *function, gn_status status)
{
    static const char undefined[] = " is not defined for ";
    const char *detail = status == GN_ERROR_NOT_READY ? "" : gn_error_detail();
    if (detail[0] == '\0')
        detail = gn_status_message(status);
    const char *rest = behind_name(detail), *verb = strchr(detail, ' ');
    PyObject *sentence;
    if (hook_exception_restore())
        return NULL;
    /* The names of C's functions are not for those who call from Python. */
    if (function == NULL || !is_about_arguments(status))
        sentence = text_to_python(strncmp(detail, "gn_", 3) == 0 ? rest : detail);
    else if (verb == detail + strlen(function) && strncmp(detail, function, strlen(function)) == 0)
        sentence = text_to_python(detail); /* "mean of int64 is ..." */
    else if (verb != NULL && strncmp(verb, undefined, sizeof undefined - 1) == 0)
        sentence = PyUnicode_FromFormat("%s%s", function, verb);
    else
        sentence = PyUnicode_FromFormat("%s: %s", function, rest);
    if (sentence != NULL) {
        PyErr_SetObject(error_class(state, status), sentence);
        Py_DECREF(sentence);
    }
    return NULL;
}

PyObject *error_raise(const struct module_state *state, gn_status status)
{
    return error_raise_in(state, NULL, status);
}

void error_clear(void)
{
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
}

PyObject *none_or_raise(PyObject *self, gn_status status)
{
    if (status != GN_OK)
        return error_raise(module_state_of_object(self), status);
    Py_RETURN_NONE;
}

PyObject *ready_or_raise(PyObject *self, gn_status status)
{
    if (status != GN_OK && status != GN_ERROR_NOT_READY)
        return error_raise(module_state_of_object(self), status);
    return PyBool_FromLong(status == GN_OK);
}

int error_name(const char *function)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    bool is_named = type != PyExc_TypeError && type != PyExc_ValueError; /* or not of a text */
    PyObject *text = is_named ? NULL : PyObject_Str(value);
    const char *sentence = text != NULL ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    size_t length = strlen(function);
    is_named |= sentence == NULL || (strncmp(sentence, function, length) == 0 &&
                                     (sentence[length] == ':' || sentence[length] == '('));
    if (is_named) {
        PyErr_Clear();
        PyErr_Restore(type, value, trace);
    } else {
        PyErr_Format(type, "%s: %U", function, text);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    }
    Py_XDECREF(text);
    return -1;
}

/* ---- arguments ------------------------------------------------------------------------------ */

int size_from_python(PyObject *object, const char *what, size_t *size)
{
    PyObject *number = PyNumber_Index(object);
    if (number == NULL)
        return -1;
    unsigned long long value = PyLong_AsUnsignedLongLong(number);
    bool is_wrong = value == (unsigned long long)-1 && PyErr_Occurred() != NULL;
    if (is_wrong) {
        PyErr_Clear(); /* an OverflowError that speaks of C types */
        PyErr_Format(PyExc_ValueError, "%s must be a number from 0 to 2**64 - 1, not %R", what,
                     number);
    } else {
        *size = (size_t)value;
    }
    Py_DECREF(number);
    return is_wrong ? -1 : 0;
}

/* A tuple of the first items of an iterable, at most `most`. */
static PyObject *items_collect(PyObject *object, Py_ssize_t most)
{
    size_t nbytes;
    if (__builtin_mul_overflow((size_t)most, sizeof(PyObject *), &nbytes) ||
        nbytes > PY_SSIZE_T_MAX)
        return PyErr_NoMemory();
    PyObject *iterator = PyObject_GetIter(object), *tuple = NULL;
    if (iterator == NULL)
        return NULL;
    /* Not a tuple at once: the length may be a lie, and memory that is not written costs nothing. */
    PyObject **items = PyMem_Malloc(nbytes > 0 ? nbytes : 1);
    Py_ssize_t count = 0;
    if (items == NULL)
        PyErr_NoMemory();
    while (items != NULL && count < most && (items[count] = PyIter_Next(iterator)) != NULL)
        count++;
    if (PyErr_Occurred() == NULL)
        tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (tuple == NULL || PyTuple_SetItem(tuple, i, Py_NewRef(items[i])) < 0)
            Py_CLEAR(tuple);
        Py_DECREF(items[i]);
    }
    PyMem_Free(items);
    Py_DECREF(iterator);
    return tuple;
}

PyObject *items_take(PyObject *object, Py_ssize_t most)
{
    if (PyTuple_Check(object))
        return Py_NewRef(object);
    if (PyList_Check(object))
        return PyList_AsTuple(object);
    if (most >= 0)
        return items_collect(object, most + 1);
    Py_ssize_t length = PyObject_Size(object);
    PyObject *tuple = length >= 0 ? items_collect(object, length) : NULL;
    if (tuple != NULL && PyTuple_Size(tuple) < length) {
        PyErr_Format(PyExc_ValueError, "%R has %zd items, and its length is %zd", object,
                     PyTuple_Size(tuple), length);
        Py_CLEAR(tuple);
    }
    return tuple;
}

PyObject *iterable_take(PyObject *object)
{
    bool is_list = PyList_Check(object) || PyTuple_Check(object);
    return !is_list && PyObject_HasAttrString(object, "__iter__") ? PySequence_Tuple(object)
                                                                  : items_take(object, -1);
}

static int keyword_take(const struct signature *signature, PyObject *name, PyObject *value,
                        PyObject *taken[2])
{
    for (int i = 0; i < 2 && signature->names[i] != NULL; i++) {
        if (PyUnicode_CompareWithASCIIString(name, signature->names[i]) != 0)
            continue;
        if (taken[i] != NULL) {
            PyErr_Format(PyExc_TypeError, "%s() got two values for the argument '%U'",
                         signature->function, name);
            return -1;
        }
        taken[i] = value;
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'",
                 signature->function, name);
    return -1;
}

int arguments_take(const struct signature *signature, PyObject *const *arguments, Py_ssize_t count,
                   PyObject *keywords, PyObject *taken[2])
{
    int capacity = signature->names[1] != NULL ? 2 : 1;
    if (count > capacity) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d argument%s (%zd given)",
                     signature->function, capacity, plural(capacity), count);
        return -1;
    }
    taken[0] = count > 0 ? arguments[0] : NULL;
    taken[1] = count > 1 ? arguments[1] : NULL;
    Py_ssize_t keyword_count = keywords != NULL ? PyTuple_Size(keywords) : 0;
    for (Py_ssize_t i = 0; i < keyword_count; i++)
        if (keyword_take(signature, PyTuple_GetItem(keywords, i), arguments[count + i], taken) < 0)
            return -1;
    for (int i = 0; i < capacity; i++) {
        if (taken[i] != NULL)
            continue;
        if (i < signature->required) {
            PyErr_Format(PyExc_TypeError, "%s() is missing the argument '%s'", signature->function,
                         signature->names[i]);
            return -1;
        }
        taken[i] = Py_None;
    }
    return 0;
}

/* Whether a keyword is an argument's name, or NumPy's for it. */
static bool is_named(PyObject *key, const char *name)
{
    static const char *const pairs[][2] = {{"dim", "axis"}, {"keepdim", "keepdims"}};
    bool is_same = PyUnicode_CompareWithASCIIString(key, name) == 0;
    for (int i = 0; i < 2 && !is_same; i++)
        is_same = strcmp(name, pairs[i][0]) == 0 &&
                  PyUnicode_CompareWithASCIIString(key, pairs[i][1]) == 0;
    return is_same;
}

int call_take(const struct call *call, PyObject *const *arguments, Py_ssize_t count,
              PyObject *keywords, PyObject *taken[CALL_ARGUMENTS_MOST])
{
    Py_ssize_t named = keywords != NULL ? PyTuple_Size(keywords) : 0;
    if (count > call->by_place) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d argument%s by place, not %zd",
                     call->name, call->by_place, plural(call->by_place), count);
        return -1;
    }
    for (int i = 0; i < CALL_ARGUMENTS_MOST; i++)
        taken[i] = i < count ? arguments[i] : NULL;
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *key = PyTuple_GetItem(keywords, i);
        int found = 0;
        while (found < call->count && !is_named(key, call->names[found]))
            found++;
        if (found == call->count || taken[found] != NULL) {
            PyErr_Format(PyExc_TypeError,
                         found == call->count ? "%s() got an unexpected keyword argument %R"
                                              : "%s() got two values for the argument %R",
                         call->name, key);
            return -1;
        }
        taken[found] = arguments[count + i];
    }
    for (int i = 0; i < call->required; i++)
        if (taken[i] == NULL) {
            PyErr_Format(PyExc_TypeError, "%s() needs the argument '%s'", call->name,
                         call->names[i]);
            return -1;
        }
    return 0;
}

/* ---- objects and texts ---------------------------------------------------------------------- */

PyObject *object_alloc(PyTypeObject *class)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(class, Py_tp_alloc);
    return alloc(class, 0);
}

void object_free(PyObject *self)
{
    PyTypeObject *class = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(class, Py_tp_free);
    release(self);
    Py_DECREF(class);
}

PyObject *text_to_python(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

const char *text_from_python(PyObject *text)
{
    Py_ssize_t length;
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, &length);
    if (utf8 != NULL && strlen(utf8) != (size_t)length) {
        PyErr_SetString(PyExc_ValueError, "the text has a zero byte in it");
        return NULL;
    }
    return utf8;
}

int list_append(PyObject **list, PyObject *item)
{
    if (item == NULL || PyList_Append(*list, item) < 0)
        Py_CLEAR(*list);
    Py_XDECREF(item);
    return *list != NULL ? 0 : -1;
}
