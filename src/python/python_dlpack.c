/*
 * python_dlpack.c: tensors to and from other libraries of Python, by DLPack.
 *
 *     capsule                 name                    after somebody took its tensor
 *     DLManagedTensorVersioned  "dltensor_versioned"    "used_dltensor_versioned"
 *     DLManagedTensor           "dltensor"              "used_dltensor"
 *
 * A capsule owns its tensor until it is renamed: then who renamed it does. So a tensor that cannot be imported
 * stays in its capsule, whose own destructor returns it.
 */
#include "module.h"

static const char versioned_name[] = "dltensor_versioned";
static const char unversioned_name[] = "dltensor";

/* ---- export ---------------------------------------------------------------------------------- */

static void versioned_drop(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, versioned_name))
        gn_dlpack_delete(PyCapsule_GetPointer(capsule, versioned_name));
}

static void unversioned_drop(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, unversioned_name))
        gn_dlpack_delete_unversioned(PyCapsule_GetPointer(capsule, unversioned_name));
}

static PyObject *capsule_of(struct module_state *state, gn_tensor *tensor, bool is_versioned,
                            bool is_copied)
{
    struct DLManagedTensorVersioned *versioned = NULL;
    struct DLManagedTensor *unversioned = NULL;
    gn_status status;
    if (!is_versioned && gn_tensor_is_read_only(tensor)) {
        PyErr_SetString(PyExc_BufferError,
                        "the tensor is read-only, which DLPack cannot say before version 1.0: "
                        "ask with max_version=(1, 0) or copy=True");
        return NULL;
    }
    if (is_versioned)
        CALL_ALLOCATING(status, gn_tensor_to_dlpack(tensor, is_copied, &versioned));
    else
        CALL_ALLOCATING(status, gn_tensor_to_dlpack_unversioned(tensor, &unversioned));
    if (status != GN_OK)
        return error_raise(state, status);
    PyObject *capsule = is_versioned
                            ? PyCapsule_New(versioned, versioned_name, versioned_drop)
                            : PyCapsule_New(unversioned, unversioned_name, unversioned_drop);
    if (capsule == NULL && is_versioned)
        gn_dlpack_delete(versioned);
    else if (capsule == NULL)
        gn_dlpack_delete_unversioned(unversioned);
    return capsule;
}

/* A pair of integers: 1; None: 0; anything else: -1 with an exception. */
static int pair_take(PyObject *object, const char *what, int64_t pair[2])
{
    int count;
    if (object == Py_None)
        return 0;
    if (integers_from_python(object, what, pair, 2, &count) < 0)
        return -1;
    if (count != 2) {
        PyErr_Format(PyExc_ValueError, "%s must be a pair of integers, not %R", what, object);
        return -1;
    }
    return 1;
}

/* True, False, or None, which is -1; -2 with an exception. */
static int choice_take(PyObject *object)
{
    int is_true = object == Py_None ? -1 : PyObject_IsTrue(object);
    return object != Py_None && is_true < 0 ? -2 : is_true;
}

/* The device of a tensor, or the one that is asked for, if the tensor can be there. */
static int target_check(const gn_tensor *tensor, PyObject *asked)
{
    int type, index;
    int64_t pair[2];
    int found = pair_take(asked, "dl_device", pair);
    gn_device_to_dlpack(gn_tensor_get_device(tensor), &type, &index);
    if (found > 0 && (pair[0] != type || pair[1] != index)) {
        PyErr_Format(PyExc_BufferError,
                     "a tensor of device (%d, %d) cannot be handed over on (%lld, %lld)", type,
                     index, (long long)pair[0], (long long)pair[1]);
        return -1;
    }
    return found < 0 ? -1 : 0;
}

/* What the consumer's stream is to wait for. */
static int stream_order(struct module_state *state, const gn_tensor *tensor, PyObject *object)
{
    int64_t stream = 0;
    gn_status status;
    if (object != Py_None) {
        stream = PyLong_AsLongLong(object);
        if (stream == -1 && PyErr_Occurred())
            return -1;
    }
    CALL_UNLOCKED(
        status, gn_dlpack_order(gn_tensor_get_device(tensor), object != Py_None ? &stream : NULL));
    if (status != GN_OK)
        (void)error_raise(state, status);
    return status == GN_OK ? 0 : -1;
}

static PyObject *tensor_dlpack(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    struct module_state *state = module_state_of_object(self);
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    int64_t most[2] = {0, 0};
    gn_tensor *tensor = tensor_of(self), *copied = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|$OOOO:__dlpack__", names, &stream,
                                     &version, &device, &copy))
        return NULL;
    int is_copied = choice_take(copy);
    if (is_copied == -2 || pair_take(version, "max_version", most) < 0 ||
        target_check(tensor, device) < 0)
        return NULL;
    if (is_copied == 1) {
        gn_status status;
        CALL_ALLOCATING(status, gn_cast(tensor, gn_tensor_get_dtype(tensor), &copied));
        if (status != GN_OK)
            return error_raise(state, status);
        tensor = copied;
    }
    PyObject *capsule = capsule_of(state, tensor, most[0] >= 1, is_copied == 1);
    if (capsule != NULL && stream_order(state, tensor, stream) < 0)
        Py_CLEAR(capsule);
    gn_tensor_release(copied);
    return capsule;
}

static PyObject *tensor_dlpack_device(PyObject *self, PyObject *unused)
{
    (void)unused;
    int type, index;
    gn_device_to_dlpack(gn_tensor_get_device(tensor_of(self)), &type, &index);
    return Py_BuildValue("ii", type, index);
}

static PyMethodDef tensor_dlpack_methods[] = {
    {"__dlpack__", WITH_KEYWORDS(tensor_dlpack),
     "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "The tensor as other libraries take it, in a capsule."},
    {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\nThe device, as DLPack numbers it."},
    {NULL, NULL, 0, NULL},
};

/* ---- import ---------------------------------------------------------------------------------- */

static PyObject *tensor_from_capsule(struct module_state *state, PyObject *capsule)
{
    bool is_versioned = PyCapsule_IsValid(capsule, versioned_name);
    gn_tensor *tensor;
    gn_status status;
    if (!is_versioned && !PyCapsule_IsValid(capsule, unversioned_name)) {
        const char *name = PyCapsule_GetName(capsule);
        PyErr_Clear();
        PyErr_Format(PyExc_ValueError, "a capsule of the name '%s' holds no tensor%s",
                     name != NULL ? name : "",
                     name != NULL && PyOS_strnicmp(name, "used_", 5) == 0
                         ? ": it was taken out before"
                         : "");
        return NULL;
    }
    if (is_versioned)
        status = gn_tensor_from_dlpack(PyCapsule_GetPointer(capsule, versioned_name), &tensor);
    else
        status = gn_tensor_from_dlpack_unversioned(PyCapsule_GetPointer(capsule, unversioned_name),
                                                   &tensor);
    if (status != GN_OK)
        return error_raise(state, status);
    (void)PyCapsule_SetName(capsule, is_versioned ? "used_dltensor_versioned" : "used_dltensor");
    return tensor_to_python(state, tensor);
}

static bool is_host(int64_t type)
{
    return type == 1 || type == 3; /* kDLCPU, kDLCUDAHost */
}

/* The table of functions that an object's class may have: genesis/interop.h. */
static const gn_exchange_api *table_of(PyObject *object)
{
    PyObject *capsule =
        PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__dlpack_c_exchange_api__");
    const gn_exchange_api *api = NULL;
    if (capsule != NULL && PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
        api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    while (api != NULL && api->major != 1)
        api = api->previous;
    Py_XDECREF(capsule);
    PyErr_Clear();
    return api;
}

/* Whether a tensor of PyTorch's has gradients, which its table, unlike its __dlpack__(), does not ask. */
static bool has_gradients(PyObject *object)
{
    PyObject *value = PyObject_GetAttrString(object, "requires_grad");
    bool is_true = value != NULL && PyObject_IsTrue(value) != 0;
    Py_XDECREF(value);
    PyErr_Clear();
    return is_true;
}

/*
 * A tensor by the table, in a fraction of the time. NULL without an exception for everything out of the ordinary:
 * the long way has the right words for that.
 */
static PyObject *tensor_from_table(struct module_state *state, PyObject *object)
{
    const gn_exchange_api *api = table_of(object);
    struct DLManagedTensorVersioned *managed = NULL;
    gn_tensor *tensor;
    int type, index;
    if (api == NULL || has_gradients(object))
        return NULL;
    if (api->from_python(object, &managed) != 0 || managed == NULL) {
        PyErr_Clear();
        return NULL;
    }
    gn_status status = gn_dlpack_get_device(managed, &type, &index);
    if (status != GN_OK || !is_host(type) || gn_tensor_from_dlpack(managed, &tensor) != GN_OK) {
        gn_dlpack_delete(managed);
        return NULL;
    }
    return tensor_to_python(state, tensor);
}

/* What a consumer's wish becomes: "cpu" is a copy on the CPU if need be; where the tensor is, otherwise. */
struct wish {
    bool is_moved; /* to the CPU, by the producer */
    int is_copied; /* -1: as it comes */
};

/* Where a tensor of others is, and whether it can come here. */
static int wish_take(PyObject *object, PyObject *device, struct wish *wish)
{
    int64_t pair[2] = {1, 0};
    PyObject *place = PyObject_CallMethod(object, "__dlpack_device__", NULL);
    int found = place != NULL ? pair_take(place, "__dlpack_device__()", pair) : -1;
    Py_XDECREF(place);
    if (found < 0)
        return -1;
    wish->is_moved = !is_host(pair[0]) && device != Py_None;
    if (!is_host(pair[0]) && !wish->is_moved) {
        PyErr_Format(PyExc_RuntimeError,
                     "tensors live on the CPU: a tensor of DLPack's device (%lld, %lld) is copied "
                     "there with device=\"cpu\"",
                     (long long)pair[0], (long long)pair[1]);
        return -1;
    }
    if (wish->is_moved && wish->is_copied == 0) {
        PyErr_SetString(PyExc_BufferError, "a tensor comes to the CPU only with a copy");
        return -1;
    }
    return 0;
}

/* x.__dlpack__(...), with what the producer must be asked for. */
static PyObject *capsule_ask(PyObject *object, const struct wish *wish)
{
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    PyObject *none = PyTuple_New(0), *capsule = NULL;
    PyObject *keywords = Py_BuildValue("{s(ii)}", "max_version", 1, 3);
    if (method == NULL || none == NULL || keywords == NULL)
        goto done;
    if (wish->is_copied >= 0 &&
        PyDict_SetItemString(keywords, "copy", wish->is_copied ? Py_True : Py_False) < 0)
        goto done;
    if (wish->is_moved) {
        PyObject *cpu = Py_BuildValue("ii", 1, 0);
        int status = cpu != NULL ? PyDict_SetItemString(keywords, "dl_device", cpu) : -1;
        Py_XDECREF(cpu);
        if (status < 0)
            goto done;
    }
    capsule = PyObject_Call(method, none, keywords);
done:
    Py_XDECREF(method);
    Py_XDECREF(none);
    Py_XDECREF(keywords);
    return capsule;
}

/* A producer from before 1.0 knows none of our arguments: then a copy is ours to make. */
static PyObject *capsule_ask_old(PyObject *object, const struct wish *wish, bool *is_copy_due)
{
    if (wish->is_moved || !PyErr_ExceptionMatches(PyExc_TypeError))
        return NULL;
    PyErr_Clear();
    *is_copy_due = wish->is_copied == 1;
    return PyObject_CallMethod(object, "__dlpack__", NULL);
}

PyObject *tensor_from_dlpack(struct module_state *state, PyObject *object, PyObject *device,
                             PyObject *copy)
{
    struct wish wish = {.is_copied = choice_take(copy)};
    bool is_copy_due = false, is_capsule = PyCapsule_CheckExact(object);
    PyObject *capsule, *made = NULL;
    gn_device_type type;
    int index;
    if (wish.is_copied == -2 ||
        (device != Py_None && device_name_from_python(state, device, &type, &index) < 0))
        return NULL;
    if (!is_capsule && wish.is_copied < 1 && (made = tensor_from_table(state, object)) != NULL)
        return made;
    if (PyErr_Occurred())
        return NULL;
    if (is_capsule) {
        capsule = Py_NewRef(object);
        is_copy_due = wish.is_copied == 1;
    } else {
        if (wish_take(object, device, &wish) < 0)
            return NULL;
        capsule = capsule_ask(object, &wish);
        if (capsule == NULL)
            capsule = capsule_ask_old(object, &wish, &is_copy_due);
    }
    if (capsule != NULL && PyCapsule_CheckExact(capsule))
        made = tensor_from_capsule(state, capsule);
    else if (capsule != NULL)
        PyErr_Format(PyExc_TypeError, "__dlpack__() gave no capsule, but %R", capsule);
    Py_XDECREF(capsule);
    if (made == NULL || !is_copy_due)
        return made;
    PyObject *copied = PyObject_CallMethod(made, "clone", NULL);
    Py_DECREF(made);
    return copied;
}

static PyObject *from_dlpack(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"", "device", "copy", NULL};
    struct module_state *state = module_state_of(module);
    PyObject *object, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|$OO:from_dlpack", names, &object,
                                     &device, &copy))
        return NULL;
    if (!PyCapsule_CheckExact(object) && !PyObject_HasAttrString(object, "__dlpack__")) {
        PyErr_Format(PyExc_TypeError, "%R has no __dlpack__()", (PyObject *)Py_TYPE(object));
        return NULL;
    }
    return tensor_from_dlpack(state, object, device, copy);
}

PyMethodDef tensor_dlpack_functions[] = {
    {"from_dlpack", WITH_KEYWORDS(from_dlpack),
     "from_dlpack(x, /, *, device=None, copy=None)\n--\n\n"
     "A tensor that shares the memory of another library's, or of a capsule.\n\n"
     "Parameters\n----------\n"
     "x : object\n    Something with ``__dlpack__``, or a capsule from there.\n"
     "device : device, optional\n    ``\"cpu\"`` lets the other library copy what is elsewhere.\n"
     "copy : bool, optional\n    True for a copy, False for none: BufferError where there must be "
     "one.\n\n"
     "Examples\n--------\n"
     ">>> import genesis\n"
     ">>> genesis.from_dlpack(genesis.tensor([1, 2]))\n"
     "tensor([1, 2])\n"},
    {NULL, NULL, 0, NULL},
};

/* ---- the table of functions: genesis/interop.h ----------------------------------------------- */

static int table_allocate(void *prototype, struct DLManagedTensorVersioned **managed, void *context,
                          void (*fail)(void *context, const char *kind, const char *message))
{
    gn_status status = gn_dlpack_create(prototype, managed);
    if (status != GN_OK)
        fail(context,
             status == GN_ERROR_OUT_OF_MEMORY || status == GN_ERROR_OUT_OF_HOST_MEMORY
                 ? "MemoryError"
                 : "BufferError",
             gn_error_detail());
    return status == GN_OK ? 0 : -1;
}

static int table_result(const struct module_state *state, gn_status status)
{
    if (status != GN_OK)
        (void)error_raise(state, status);
    return status == GN_OK ? 0 : -1;
}

static int table_from_python(void *object, struct DLManagedTensorVersioned **managed)
{
    gn_status status;
    CALL_ALLOCATING(status, gn_tensor_to_dlpack(tensor_of(object), false, managed));
    return table_result(module_state_of_object(object), status);
}

static int table_describe(void *object, void *description)
{
    gn_status status;
    CALL_ALLOCATING(status, gn_tensor_describe_dlpack(tensor_of(object), description));
    return table_result(module_state_of_object(object), status);
}

/* These know no object of ours: the table is of the process, the state of the module. */
static struct module_state *table_state(PyObject **module)
{
    *module = PyImport_ImportModule("genesis._C");
    return *module != NULL ? module_state_of(*module) : NULL;
}

/* A structure that cannot be imported stays the caller's: consumers delete it then. */
static int table_to_python(struct DLManagedTensorVersioned *managed, void **object)
{
    PyObject *module;
    struct module_state *state = table_state(&module);
    if (state == NULL)
        return -1;
    PyObject *made = object_alloc((PyTypeObject *)state->tensor_class);
    int result = made != NULL ? 0 : -1;
    if (result == 0)
        result = table_result(
            state, gn_tensor_from_dlpack(managed, &((struct tensor_object *)made)->tensor));
    Py_DECREF(module);
    if (result == 0)
        *object = made;
    else
        Py_XDECREF(made);
    return result;
}

static int table_current_stream(int32_t type, int32_t index, void **handle)
{
    PyObject *module;
    gn_status status;
    CALL_UNLOCKED(status, gn_dlpack_current_stream(type, index, handle));
    if (status == GN_OK)
        return 0;
    const struct module_state *state = table_state(&module);
    if (state != NULL) {
        (void)error_raise(state, status);
        Py_DECREF(module);
    }
    return -1;
}

static gn_exchange_api table = {
    .major = 1,
    .minor = 3,
    .allocate = table_allocate,
    .from_python = table_from_python,
    .to_python = table_to_python,
    .describe = table_describe,
    .current_stream = table_current_stream,
};

int tensor_dlpack_init(PyObject *class)
{
    if (methods_add(class, tensor_dlpack_methods) < 0)
        return -1;
    PyObject *capsule = PyCapsule_New(&table, "dlpack_exchange_api", NULL);
    int status =
        capsule != NULL ? PyObject_SetAttrString(class, "__dlpack_c_exchange_api__", capsule) : -1;
    Py_XDECREF(capsule);
    return status;
}
