/*
 * python_random.c: genesis.Generator, and what is filled with its numbers.
 *
 * A Generator is a gn_generator: a seed, and how many fills there were since. The interpreter's lock guards it: each
 * fill takes a copy, moves the original on by one, and then lets the lock go.
 */
#include "module.h"

#include <string.h>
#include <sys/random.h>

struct generator_object {
    PyObject_HEAD gn_generator generator;
};

static gn_generator *generator_of(PyObject *object)
{
    return &((struct generator_object *)object)->generator;
}

/* Every process begins with the same seed: programs are reproducible unless they ask otherwise. */
static PyObject *generator_make(PyTypeObject *class)
{
    PyObject *made = object_alloc(class);
    if (made != NULL)
        *generator_of(made) = (gn_generator){0};
    return made;
}

static int device_require_cpu(struct module_state *state, PyObject *object)
{
    gn_device_type type = GN_DEVICE_CPU;
    int index;
    if (object != Py_None && device_name_from_python(state, object, &type, &index) < 0)
        return -1;
    return 0;
}

static PyObject *generator_new(PyTypeObject *class, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"device", NULL};
    PyObject *device = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O", names, &device) ||
        device_require_cpu(module_state_of_class(class), device) < 0)
        return NULL;
    return generator_make(class);
}

static int seed_from_python(PyObject *object, uint64_t *seed)
{
    PyObject *integer = PyNumber_Index(object);
    if (integer == NULL)
        return -1;
    unsigned long long value = PyLong_AsUnsignedLongLongMask(integer); /* -1 is a seed, too */
    Py_DECREF(integer);
    if (value == (unsigned long long)-1 && PyErr_Occurred())
        return -1;
    *seed = value;
    return 0;
}

static PyObject *generator_manual_seed(PyObject *self, PyObject *seed)
{
    uint64_t value;
    if (seed_from_python(seed, &value) < 0)
        return NULL;
    *generator_of(self) = (gn_generator){.seed = value};
    return Py_NewRef(self);
}

static PyObject *generator_initial_seed(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(generator_of(self)->seed);
}

static PyObject *generator_seed(PyObject *self, PyObject *unused)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        return PyErr_SetFromErrno(PyExc_OSError);
    *generator_of(self) = (gn_generator){.seed = seed};
    return generator_initial_seed(self, unused);
}

static PyObject *generator_get_state(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct module_state *state = module_state_of_object(self);
    const int64_t size = sizeof(gn_generator);
    gn_device *device;
    gn_tensor *tensor = NULL;
    void *bytes;
    gn_status status = gn_device_get(GN_DEVICE_CPU, 0, &device);
    if (status == GN_OK)
        status = gn_tensor_create(GN_UINT8, 1, &size, device, &tensor);
    if (status == GN_OK)
        status = gn_tensor_get_data(tensor, &bytes);
    if (status != GN_OK) {
        gn_tensor_release(tensor);
        return error_raise(state, status);
    }
    memcpy(bytes, generator_of(self), sizeof(gn_generator));
    return tensor_to_python(state, tensor);
}

static PyObject *generator_set_state(PyObject *self, PyObject *object)
{
    struct module_state *state = module_state_of_object(self);
    void *bytes;
    if (!tensor_check(state, object) || gn_tensor_get_dtype(tensor_of(object)) != GN_UINT8 ||
        gn_tensor_get_count(tensor_of(object)) != (int64_t)sizeof(gn_generator) ||
        !gn_tensor_is_contiguous(tensor_of(object)) ||
        gn_device_get_type(gn_tensor_get_device(tensor_of(object))) != GN_DEVICE_CPU) {
        PyErr_Format(PyExc_ValueError,
                     "the state of a generator is a contiguous tensor of %zu uint8 on the CPU, as "
                     "get_state() gives it",
                     sizeof(gn_generator));
        return NULL;
    }
    gn_status status = gn_tensor_get_data(tensor_of(object), &bytes);
    if (status != GN_OK)
        return error_raise(state, status);
    memcpy(generator_of(self), bytes, sizeof(gn_generator));
    return Py_NewRef(self);
}

static PyObject *generator_get_device(PyObject *self, void *unused)
{
    (void)unused;
    return device_to_python(module_state_of_object(self), GN_DEVICE_CPU, 0);
}

static PyMethodDef generator_methods[] = {
    {"manual_seed", generator_manual_seed, METH_O,
     "manual_seed($self, seed, /)\n--\n\nBegins the sequence of numbers that belongs to a seed."},
    {"seed", generator_seed, METH_NOARGS,
     "seed($self, /)\n--\n\nBegins a sequence that nobody knows before; its seed."},
    {"initial_seed", generator_initial_seed, METH_NOARGS,
     "initial_seed($self, /)\n--\n\nThe seed that it began with."},
    {"get_state", generator_get_state, METH_NOARGS,
     "get_state($self, /)\n--\n\nWhere it is in its sequence, as a tensor of bytes."},
    {"set_state", generator_set_state, METH_O,
     "set_state($self, state, /)\n--\n\nGoes on from where another was, or it was before."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef generator_properties[] = {
    {"device", generator_get_device, NULL, "Where its numbers are made.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static const char generator_doc[] =
    "Generator(device=\"cpu\")\n--\n\n"
    "A sequence of random numbers of its own.\n\n"
    "It begins with seed 0. The same seed gives the same numbers, whatever the number of "
    "threads.\n\n"
    "Examples\n--------\n"
    ">>> import genesis\n"
    ">>> generator = genesis.Generator().manual_seed(7)\n"
    ">>> first = genesis.rand(3, generator=generator)\n"
    ">>> again = genesis.rand(3, generator=generator.manual_seed(7))\n"
    ">>> genesis.equal(first, again)\n"
    "True\n";

static PyType_Slot generator_slots[] = {
    {Py_tp_doc, (void *)generator_doc},   {Py_tp_new, generator_new},
    {Py_tp_dealloc, object_free},         {Py_tp_methods, generator_methods},
    {Py_tp_getset, generator_properties}, {0, NULL},
};

static PyType_Spec generator_spec = {
    .name = "genesis.Generator",
    .basicsize = sizeof(struct generator_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = generator_slots,
};

int random_init(PyObject *module, struct module_state *state)
{
    state->generator_class = PyType_FromModuleAndSpec(module, &generator_spec, NULL);
    if (state->generator_class == NULL ||
        PyModule_AddType(module, (PyTypeObject *)state->generator_class) < 0)
        return -1;
    state->generator = generator_make((PyTypeObject *)state->generator_class);
    return state->generator != NULL
               ? PyModule_AddObjectRef(module, "default_generator", state->generator)
               : -1;
}

/* ---- what is filled ------------------------------------------------------------------------- */

int generator_take(struct module_state *state, PyObject *object, gn_generator *taken)
{
    if (object == Py_None)
        object = state->generator;
    if (Py_TYPE(object) != (PyTypeObject *)state->generator_class) {
        PyErr_Format(PyExc_TypeError, "generator must be a genesis.Generator or None, not %R",
                     object);
        return -1;
    }
    *taken = *generator_of(object);
    generator_of(object)->offset++;
    return 0;
}

typedef gn_status (*fill_call)(gn_tensor *out, gn_generator *generator);

static PyObject *fill(PyObject *module, PyObject *arguments, fill_call call)
{
    struct module_state *state = module_state_of(module);
    PyObject *object, *generator_object;
    gn_generator generator;
    gn_status status;
    if (!PyArg_ParseTuple(arguments, "O!O", state->tensor_class, &object, &generator_object) ||
        generator_take(state, generator_object, &generator) < 0)
        return NULL;
    CALL_ALLOCATING(status, call(tensor_of(object), &generator));
    return status == GN_OK ? Py_NewRef(object) : error_raise(state, status);
}

static PyObject *fill_uniform(PyObject *module, PyObject *arguments)
{
    return fill(module, arguments, gn_random_uniform);
}

static PyObject *fill_normal(PyObject *module, PyObject *arguments)
{
    return fill(module, arguments, gn_random_normal);
}

static PyObject *fill_integers(PyObject *module, PyObject *arguments)
{
    struct module_state *state = module_state_of(module);
    PyObject *object, *generator_object;
    PyObject *bounds[2];
    int64_t numbers[2];
    gn_generator generator;
    gn_status status;
    if (!PyArg_ParseTuple(arguments, "O!OOO", state->tensor_class, &object, &bounds[0], &bounds[1],
                          &generator_object) ||
        generator_take(state, generator_object, &generator) < 0)
        return NULL;
    bool is_unsigned = gn_tensor_get_dtype(tensor_of(object)) == GN_UINT64;
    for (int i = 0; i < 2; i++) {
        numbers[i] = is_unsigned ? (int64_t)PyLong_AsUnsignedLongLong(bounds[i])
                                 : PyLong_AsLongLong(bounds[i]);
        if (PyErr_Occurred())
            return NULL;
    }
    CALL_ALLOCATING(status,
                    gn_random_integers(tensor_of(object), numbers[0], numbers[1], &generator));
    return status == GN_OK ? Py_NewRef(object) : error_raise(state, status);
}

static PyObject *permutation(PyObject *module, PyObject *arguments)
{
    struct module_state *state = module_state_of(module);
    PyObject *n, *generator_object, *device_object;
    size_t count;
    gn_device *device;
    gn_generator generator;
    gn_tensor *result = NULL;
    gn_status status;
    if (!PyArg_ParseTuple(arguments, "OOO", &n, &generator_object, &device_object) ||
        size_from_python(n, "n", &count) < 0 ||
        generator_take(state, generator_object, &generator) < 0 ||
        device_of_new(state, device_object, &device) < 0)
        return NULL;
    CALL_ALLOCATING(status, gn_random_permutation((int64_t)count, device, &generator, &result));
    return tensor_or_raise(state, status, result);
}

PyMethodDef random_functions[] = {
    {"_fill_uniform", fill_uniform, METH_VARARGS,
     "_fill_uniform($module, tensor, generator, /)\n--\n\nFills it."},
    {"_fill_normal", fill_normal, METH_VARARGS,
     "_fill_normal($module, tensor, generator, /)\n--\n\nFills it."},
    {"_fill_integers", fill_integers, METH_VARARGS,
     "_fill_integers($module, tensor, low, high, generator, /)\n--\n\nFills it."},
    {"_permutation", permutation, METH_VARARGS,
     "_permutation($module, n, generator, device, /)\n--\n\nThe numbers from 0 to n - 1 in random "
     "order."},
    {NULL, NULL, 0, NULL},
};
