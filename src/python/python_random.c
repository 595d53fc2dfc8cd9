/*
 * python_random.c: genesis.Generator, and the functions of the default one.
 *
 * A Generator is a gn_generator: a seed, and how many calls took numbers since. The interpreter's lock guards it: a
 * call takes a copy, moves the original on by one, and then lets the lock go.
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

/* ---- functions ------------------------------------------------------------------------------ */

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

void generator_give_back(struct module_state *state, PyObject *object, const gn_generator *taken)
{
    gn_generator *own = generator_of(object == Py_None ? state->generator : object);
    if (own->seed == taken->seed && own->offset == taken->offset + 1)
        own->offset--;
}

/* The methods of the default generator, as functions. */
static PyObject *manual_seed(PyObject *module, PyObject *const *arguments, Py_ssize_t count,
                             PyObject *keywords)
{
    static const struct signature signature = {"manual_seed", {"seed", NULL}, 1};
    PyObject *taken[2];
    if (arguments_take(&signature, arguments, count, keywords, taken) < 0)
        return NULL;
    return generator_manual_seed(module_state_of(module)->generator, taken[0]);
}

static PyObject *seed(PyObject *module, PyObject *unused)
{
    return generator_seed(module_state_of(module)->generator, unused);
}

static PyObject *initial_seed(PyObject *module, PyObject *unused)
{
    return generator_initial_seed(module_state_of(module)->generator, unused);
}

static PyObject *get_rng_state(PyObject *module, PyObject *unused)
{
    return generator_get_state(module_state_of(module)->generator, unused);
}

static PyObject *set_rng_state(PyObject *module, PyObject *state)
{
    PyObject *done = generator_set_state(module_state_of(module)->generator, state);
    if (done == NULL)
        return NULL;
    Py_DECREF(done);
    Py_RETURN_NONE;
}

#define EXAMPLE "\n\nExamples\n--------\n>>> import genesis\n"

PyMethodDef random_functions[] = {
    {"manual_seed", WITH_VECTOR(manual_seed),
     "manual_seed(seed)\n--\n\n"
     "Begin the sequence of random numbers that belongs to a seed; the default generator." EXAMPLE
     ">>> genesis.manual_seed(3).initial_seed()\n3\n"},
    {"seed", seed, METH_NOARGS,
     "seed($module)\n--\n\nBegin a sequence that nobody knows before, and give its seed." EXAMPLE
     ">>> genesis.seed() == genesis.initial_seed()\nTrue\n"},
    {"initial_seed", initial_seed, METH_NOARGS,
     "initial_seed($module)\n--\n\nThe seed that the default generator began with." EXAMPLE
     ">>> _ = genesis.manual_seed(3)\n>>> genesis.initial_seed()\n3\n"},
    {"get_rng_state", get_rng_state, METH_NOARGS,
     "get_rng_state($module)\n--\n\n"
     "Where the default generator is in its sequence, as a tensor of bytes." EXAMPLE
     ">>> state = genesis.get_rng_state()\n"
     ">>> first = genesis.rand(3)\n"
     ">>> genesis.set_rng_state(state)\n"
     ">>> genesis.equal(first, genesis.rand(3))\nTrue\n"},
    {"set_rng_state", set_rng_state, METH_O,
     "set_rng_state($module, state)\n--\n\nGo on from where the default generator was." EXAMPLE
     ">>> genesis.set_rng_state(genesis.get_rng_state())\n"},
    {NULL, NULL, 0, NULL},
};
