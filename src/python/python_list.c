/*
 * python_list.c: list programs (genesis/list.h) for the package's own modules: one program over many tensors.
 */
#include "module.h"

#include <limits.h>
#include <string.h>

/* A program and what it works with, until list_free(). The program's steps and stores are the first two arrays. */
struct list {
    gn_list_program program;
    gn_list_step steps[GN_LIST_STEPS_MOST];
    gn_list_store stores[GN_LIST_PLACES_MOST];
    gn_operand numbers[GN_LIST_NUMBERS_MOST];
    gn_tensor **tensors;
    int count;
};

static int operation_find(const char *name, gn_op *op)
{
#define NAMES(NAME, name, ...) #name,
    static const char *const names[] = {GN_OP_LIST(NAMES)};
#undef NAMES
    for (int i = 0; i < GN_OP_COUNT; i++)
        if (strcmp(names[i], name) == 0) {
            *op = (gn_op)i;
            return 0;
        }
    PyErr_Format(PyExc_ValueError, "list program: there is no operation '%s'", name);
    return -1;
}

/* The items of a tuple, of which there may be `most`. */
static int items_count(PyObject *tuple, const char *what, int most, int *count)
{
    if (PyTuple_Size(tuple) > most) {
        PyErr_Format(PyExc_ValueError, "list program: %zd %s are more than %d", PyTuple_Size(tuple),
                     what, most);
        return -1;
    }
    *count = (int)PyTuple_Size(tuple);
    return 0;
}

/* Steps are tuples: an operation's name, and its operands. */
static int steps_take(struct list *list, PyObject *steps)
{
    if (items_count(steps, "steps", GN_LIST_STEPS_MOST, &list->program.step_count) < 0)
        return -1;
    for (int i = 0; i < list->program.step_count; i++) {
        const char *name;
        gn_list_step *step = &list->steps[i];
        PyObject *one = PyTuple_GetItem(steps, i);
        if (!PyTuple_Check(one)) {
            PyErr_Format(PyExc_TypeError, "list program: a step is a tuple, not %R", one);
            return -1;
        }
        step->in[0] = step->in[1] = step->in[2] = -1;
        if (!PyArg_ParseTuple(one, "s|iii", &name, &step->in[0], &step->in[1], &step->in[2]) ||
            operation_find(name, &step->op) < 0)
            return -1;
    }
    return 0;
}

/* Stores are pairs of a value and a place. */
static int stores_take(struct list *list, PyObject *stores)
{
    if (items_count(stores, "stores", GN_LIST_PLACES_MOST, &list->program.store_count) < 0)
        return -1;
    for (int i = 0; i < list->program.store_count; i++) {
        PyObject *one = PyTuple_GetItem(stores, i);
        if (!PyTuple_Check(one)) {
            PyErr_Format(PyExc_TypeError, "list program: a store is a tuple, not %R", one);
            return -1;
        }
        if (!PyArg_ParseTuple(one, "ii", &list->stores[i].value, &list->stores[i].place))
            return -1;
    }
    return 0;
}

static int numbers_take(struct module_state *state, struct list *list, PyObject *numbers)
{
    if (items_count(numbers, "numbers", GN_LIST_NUMBERS_MOST, &list->program.number_count) < 0)
        return -1;
    for (int i = 0; i < list->program.number_count; i++) {
        PyObject *one = PyTuple_GetItem(numbers, i);
        int found = operand_from_python(state, one, &list->numbers[i]);
        if (found == 0)
            PyErr_Format(PyExc_TypeError, "list program: %R is no number", one);
        if (found != 1)
            return -1;
    }
    return 0;
}

static int tensor_take(const struct module_state *state, PyObject *object, gn_tensor **tensor)
{
    if (!tensor_check(state, object)) {
        PyErr_Format(PyExc_TypeError, "list program: %R is not a Tensor", object);
        return -1;
    }
    *tensor = tensor_of(object);
    return 0;
}

/* Places are tuples of tensors, as many in each. */
static int places_take(const struct module_state *state, struct list *list, PyObject *places)
{
    int count = 0, used = 0;
    if (items_count(places, "places", GN_LIST_PLACES_MOST, &list->program.place_count) < 0)
        return -1;
    for (int p = 0; p < list->program.place_count; p++) {
        PyObject *one = PyTuple_GetItem(places, p);
        if (!PyTuple_Check(one) || (p > 0 && PyTuple_Size(one) != list->count)) {
            PyErr_SetString(PyExc_TypeError, "list program: a place is a tuple of tensors, as many "
                                             "as the others have");
            return -1;
        }
        if (p == 0 && items_count(one, "entries", INT_MAX / GN_LIST_PLACES_MOST, &list->count) < 0)
            return -1;
    }
    count = list->count * list->program.place_count;
    list->tensors = PyMem_Calloc((size_t)count + 1, sizeof(gn_tensor *));
    if (list->tensors == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    for (int p = 0; p < list->program.place_count; p++)
        for (int e = 0; e < list->count; e++)
            if (tensor_take(state, PyTuple_GetItem(PyTuple_GetItem(places, p), e),
                            &list->tensors[used++]) < 0)
                return -1;
    return 0;
}

/* _list_elementwise(places, steps, stores, numbers, skip, single_places): gn_list_elementwise(). */
static PyObject *list_elementwise(PyObject *module, PyObject *arguments)
{
    struct module_state *state = module_state_of(module);
    PyObject *places, *steps, *stores, *numbers, *skip, *done = NULL;
    struct list list = {.tensors = NULL};
    gn_tensor *skipping = NULL;
    gn_status status;
    if (!PyArg_ParseTuple(arguments, "O!O!O!O!OI:_list_elementwise", &PyTuple_Type, &places,
                          &PyTuple_Type, &steps, &PyTuple_Type, &stores, &PyTuple_Type, &numbers,
                          &skip, &list.program.single_places))
        return NULL;
    list.program.steps = list.steps;
    list.program.stores = list.stores;
    if (steps_take(&list, steps) < 0 || stores_take(&list, stores) < 0 ||
        numbers_take(state, &list, numbers) < 0 || places_take(state, &list, places) < 0 ||
        (skip != Py_None && tensor_take(state, skip, &skipping) < 0))
        goto free_list;
    CALL_ALLOCATING(status, gn_list_elementwise(&list.program, list.count, list.tensors,
                                                list.numbers, skipping));
    done = status == GN_OK ? Py_NewRef(Py_None) : error_raise_in(state, "list program", status);
free_list:
    PyMem_Free(list.tensors);
    return done;
}

/* _list_norm(tensors, order, is_total): gn_list_norm(). */
static PyObject *list_norm(PyObject *module, PyObject *arguments)
{
    struct module_state *state = module_state_of(module);
    PyObject *tensors, *places, *made = NULL;
    struct list list = {.tensors = NULL};
    double order;
    int is_total;
    gn_tensor *result = NULL;
    gn_status status;
    if (!PyArg_ParseTuple(arguments, "O!dp:_list_norm", &PyTuple_Type, &tensors, &order,
                          &is_total) ||
        (places = PyTuple_Pack(1, tensors)) == NULL)
        return NULL;
    if (places_take(state, &list, places) == 0) {
        CALL_ALLOCATING(status,
                        gn_list_norm(list.count, list.tensors, order, is_total != 0, &result));
        made = tensor_or_raise_in(state, "list norm", status, result);
    }
    Py_DECREF(places);
    PyMem_Free(list.tensors);
    return made;
}

/* _list_unscale(gradients, factor, found): gn_list_unscale(). */
static PyObject *list_unscale(PyObject *module, PyObject *arguments)
{
    struct module_state *state = module_state_of(module);
    PyObject *gradients, *factor, *found, *places, *made = NULL;
    struct list list = {.tensors = NULL};
    gn_tensor *multiplied = NULL, *finding;
    gn_status status;
    if (!PyArg_ParseTuple(arguments, "O!OO:_list_unscale", &PyTuple_Type, &gradients, &factor,
                          &found) ||
        (factor != Py_None && tensor_take(state, factor, &multiplied) < 0) ||
        tensor_take(state, found, &finding) < 0 || (places = PyTuple_Pack(1, gradients)) == NULL)
        return NULL;
    if (places_take(state, &list, places) == 0) {
        CALL_ALLOCATING(status, gn_list_unscale(list.count, list.tensors, multiplied, finding));
        made = status == GN_OK ? Py_NewRef(Py_None) : error_raise_in(state, "unscale_", status);
    }
    Py_DECREF(places);
    PyMem_Free(list.tensors);
    return made;
}

/* _scale_update(scale, tracker, found, growth, backoff, interval): gn_scale_update(). */
static PyObject *scale_update(PyObject *module, PyObject *arguments)
{
    struct module_state *state = module_state_of(module);
    PyObject *objects[3];
    gn_tensor *tensors[3];
    double growth, backoff;
    long long interval;
    gn_status status;
    if (!PyArg_ParseTuple(arguments, "OOOddL:_scale_update", &objects[0], &objects[1], &objects[2],
                          &growth, &backoff, &interval))
        return NULL;
    for (int i = 0; i < 3; i++)
        if (tensor_take(state, objects[i], &tensors[i]) < 0)
            return NULL;
    CALL_ALLOCATING(status,
                    gn_scale_update(tensors[0], tensors[1], tensors[2], growth, backoff, interval));
    return status == GN_OK ? Py_NewRef(Py_None) : error_raise_in(state, "update", status);
}

PyMethodDef list_functions[] = {
    {"_list_unscale", list_unscale, METH_VARARGS, NULL},
    {"_scale_update", scale_update, METH_VARARGS, NULL},
    {"_list_elementwise", list_elementwise, METH_VARARGS, NULL},
    {"_list_norm", list_norm, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
