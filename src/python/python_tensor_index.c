/*
 * python_tensor_index.c: x[key] and x[key] = value for basic keys: integers, slices, None and Ellipsis. All of
 * them are views.
 */
#include "module.h"

/* A view that becomes another one, one item of the key after the other. */
struct cursor {
    struct module_state *state;
    gn_tensor *view;
    int dimension; /* the next one of the view */
};

static int cursor_step(struct cursor *cursor, gn_status status, gn_tensor *next, int skipped)
{
    if (status != GN_OK) {
        (void)error_raise(cursor->state, status);
        return -1;
    }
    gn_tensor_release(cursor->view);
    cursor->view = next;
    cursor->dimension += skipped;
    return 0;
}

static int take_slice(struct cursor *cursor, PyObject *slice)
{
    Py_ssize_t start, stop, step;
    gn_tensor *next;
    if (cursor->dimension >= gn_tensor_get_dimensions(cursor->view)) {
        PyErr_SetString(PyExc_IndexError, "there are more indices than dimensions");
        return -1;
    }
    if (PySlice_Unpack(slice, &start, &stop, &step) < 0)
        return -1;
    int64_t size = gn_tensor_get_shape(cursor->view)[cursor->dimension];
    Py_ssize_t count = PySlice_AdjustIndices((Py_ssize_t)size, &start, &stop, step);
    gn_status status = gn_tensor_slice(cursor->view, cursor->dimension, start, step, count, &next);
    return cursor_step(cursor, status, next, 1);
}

static int take_integer(struct cursor *cursor, PyObject *item)
{
    gn_tensor *next;
    int64_t index;
    int one;
    if (cursor->dimension >= gn_tensor_get_dimensions(cursor->view)) {
        PyErr_SetString(PyExc_IndexError, "there are more indices than dimensions");
        return -1;
    }
    if (integers_from_python(item, "an index", &index, 1, &one) < 0)
        return -1;
    gn_status status = gn_tensor_select(cursor->view, cursor->dimension, index, &next);
    return cursor_step(cursor, status, next, 0);
}

static int take_item(struct cursor *cursor, PyObject *item, int left)
{
    gn_tensor *next;
    if (PySlice_Check(item))
        return take_slice(cursor, item);
    if (item == Py_Ellipsis) {
        cursor->dimension = gn_tensor_get_dimensions(cursor->view) - left;
        return 0;
    }
    if (item == Py_None) {
        gn_status status = gn_tensor_unsqueeze(cursor->view, cursor->dimension, &next);
        return cursor_step(cursor, status, next, 1);
    }
    if (PyBool_Check(item) || !PyIndex_Check(item)) {
        PyErr_Format(PyExc_TypeError,
                     "tensors are indexed by integers, slices, None and Ellipsis, not by %R", item);
        return -1;
    }
    return take_integer(cursor, item);
}

/* How many dimensions the items from `from` on use up. */
static int items_use(PyObject *key, Py_ssize_t from)
{
    int used = 0;
    for (Py_ssize_t i = from; i < PyTuple_Size(key); i++)
        used += PyTuple_GetItem(key, i) != Py_None && PyTuple_GetItem(key, i) != Py_Ellipsis;
    return used;
}

static int key_check(struct module_state *state, gn_tensor *tensor, PyObject *key)
{
    int ellipses = 0, used = items_use(key, 0);
    (void)state;
    for (Py_ssize_t i = 0; i < PyTuple_Size(key); i++)
        ellipses += PyTuple_GetItem(key, i) == Py_Ellipsis;
    if (ellipses > 1) {
        PyErr_SetString(PyExc_IndexError, "a key has at most one Ellipsis");
        return -1;
    }
    if (used > gn_tensor_get_dimensions(tensor)) {
        PyErr_Format(PyExc_IndexError, "%d indices are too many for a tensor of %d dimensions",
                     used, gn_tensor_get_dimensions(tensor));
        return -1;
    }
    return 0;
}

/* The view that a key means; a new reference. */
static gn_tensor *key_view(PyObject *self, PyObject *key)
{
    struct module_state *state = module_state_of_object(self);
    PyObject *items = PyTuple_Check(key) ? Py_NewRef(key) : PyTuple_Pack(1, key);
    if (items == NULL)
        return NULL;
    struct cursor cursor = {.state = state, .view = tensor_of(self)};
    gn_tensor_retain(cursor.view);
    int status = key_check(state, cursor.view, items);
    for (Py_ssize_t i = 0; status == 0 && i < PyTuple_Size(items); i++)
        status = take_item(&cursor, PyTuple_GetItem(items, i), items_use(items, i + 1));
    Py_DECREF(items);
    if (status < 0) {
        gn_tensor_release(cursor.view);
        return NULL;
    }
    return cursor.view;
}

PyObject *tensor_get_index(PyObject *self, PyObject *key)
{
    gn_tensor *view = key_view(self, key);
    return view != NULL ? tensor_to_python(module_state_of_object(self), view) : NULL;
}

int tensor_set_index(PyObject *self, PyObject *key, PyObject *value)
{
    if (value == NULL) {
        PyErr_SetString(PyExc_TypeError, "elements of a tensor cannot be deleted");
        return -1;
    }
    PyObject *view = tensor_get_index(self, key);
    if (view == NULL)
        return -1;
    PyObject *done = PyObject_CallMethod(view, "copy_", "O", value);
    Py_DECREF(view);
    Py_XDECREF(done);
    return done != NULL ? 0 : -1;
}
