/*
 * python_dlpack.c: tensors to and from other libraries of Python, by DLPack.
 *
 *     capsule                 name                    after somebody took its tensor
 *     DLManagedTensorVersioned  "dltensor_versioned"    "used_dltensor_versioned"
 *     DLManagedTensor           "dltensor"              "used_dltensor"
 *
 * A capsule owns its tensor until it is renamed: then who renamed it does. So a tensor that cannot be imported
 * stays in its capsule, whose own destructor returns it.
 *
 * On a GPU streams are handed over with the memory. A consumer names the stream that it will use, which then waits
 * for ours; of a producer we ask for the calling thread's current stream. By the table the tensor belongs to the
 * producer's current stream; where nobody can be asked, as with a capsule, to the default stream.
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

/* Only names that DLPack has for a device of ours: page-locked memory is the CPU's, but not promised. */
static bool device_find(const int64_t pair[2], gn_device **device)
{
    int type = (int)pair[0], index = (int)pair[1];
    if (type != pair[0] || index != pair[1] || gn_device_from_dlpack(type, index, device) != GN_OK)
        return false;
    gn_device_to_dlpack(*device, &type, &index);
    return type == pair[0] && index == pair[1];
}

/*
 * The tensor that is handed over, as a new reference: one of the same memory, or a copy where one is asked for, or
 * where the consumer wants it on another device.
 */
static int target_take(struct module_state *state, gn_tensor *tensor, PyObject *asked,
                       int *is_copied, gn_tensor **target)
{
    gn_device *device = gn_tensor_get_device(tensor);
    int type, index;
    int64_t pair[2];
    gn_status status = GN_OK;
    gn_device_to_dlpack(device, &type, &index);
    int found = pair_take(asked, "dl_device", pair);
    if (found < 0)
        return -1;
    if (found > 0 && (pair[0] != type || pair[1] != index)) {
        if (*is_copied == 0 || !device_find(pair, &device)) {
            PyErr_Format(PyExc_BufferError,
                         "a tensor of device (%d, %d) cannot be handed over on (%lld, %lld)%s",
                         type, index, (long long)pair[0], (long long)pair[1],
                         *is_copied == 0 ? " without a copy" : "");
            return -1;
        }
    }
    *is_copied = *is_copied == 1 || device != gn_tensor_get_device(tensor);
    if (device != gn_tensor_get_device(tensor))
        CALL_ALLOCATING(status, gn_tensor_to(tensor, device, target));
    else if (*is_copied)
        CALL_ALLOCATING(status, gn_cast(tensor, gn_tensor_get_dtype(tensor), target));
    else /* another tensor: this one may become one of other memory */
        CALL_OPERATION(gn_is_pending(), status, gn_tensor_detach(tensor, target));
    if (status != GN_OK)
        (void)error_raise(state, status);
    return status == GN_OK ? 0 : -1;
}

/* What the consumer's stream is to wait for. */
static int stream_order(struct module_state *state, gn_tensor *tensor, PyObject *object)
{
    int64_t stream = 0;
    gn_status status;
    if (object != Py_None) {
        stream = PyLong_AsLongLong(object);
        if (stream == -1 && PyErr_Occurred())
            return -1;
    }
    CALL_ALLOCATING(status, gn_dlpack_order(tensor, object != Py_None ? &stream : NULL));
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
    gn_tensor *tensor = tensor_of(self), *target;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|$OOOO:__dlpack__", names, &stream,
                                     &version, &device, &copy))
        return NULL;
    if (gradient_refuse(self, "__dlpack__") < 0)
        return NULL;
    int is_copied = choice_take(copy);
    if (is_copied == -2 || pair_take(version, "max_version", most) < 0 ||
        target_take(state, tensor, device, &is_copied, &target) < 0)
        return NULL;
    PyObject *capsule = capsule_of(state, target, most[0] >= 1, is_copied == 1);
    /* What has come to the CPU is complete: a stream, if there is one, is of the device that it came from. */
    bool is_host = gn_device_get_type(gn_tensor_get_device(target)) == GN_DEVICE_CPU;
    if (capsule != NULL && stream_order(state, is_host ? tensor : target, stream) < 0)
        Py_CLEAR(capsule);
    gn_tensor_release(target);
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

enum {
    DEVICE_CPU = 1, /* as DLPack numbers them */
    DEVICE_CUDA = 2,
    DEVICE_PAGE_LOCKED = 3,
};

static bool is_host(int64_t type)
{
    return type == DEVICE_CPU || type == DEVICE_PAGE_LOCKED;
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

/* A tensor that came by the table belongs to the producer's current stream. */
static int table_follow(struct module_state *state, const gn_exchange_api *api, gn_tensor *tensor)
{
    gn_device *device = gn_tensor_get_device(tensor);
    void *handle = NULL;
    if (gn_device_get_type(device) == GN_DEVICE_CPU)
        return 0;
    if (api->current_stream == NULL ||
        api->current_stream(DEVICE_CUDA, gn_device_get_index(device), &handle) != 0)
        return -1;
    gn_status status = gn_dlpack_follow(tensor, handle);
    if (status != GN_OK)
        (void)error_raise(state, status);
    return status == GN_OK ? 0 : -1;
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
    if (api == NULL || has_gradients(object))
        return NULL;
    if (api->from_python(object, &managed) != 0 || managed == NULL) {
        PyErr_Clear();
        return NULL;
    }
    if (gn_tensor_from_dlpack(managed, &tensor) != GN_OK) {
        gn_dlpack_delete(managed);
        return NULL;
    }
    if (table_follow(state, api, tensor) < 0) {
        gn_tensor_release(tensor);
        return NULL;
    }
    return tensor_to_python(state, tensor);
}

/* What a consumer wishes, and what of that the producer is asked for. */
struct wish {
    gn_device *device; /* NULL: where it is */
    int is_copied;     /* -1: as it comes */
    bool is_moved;     /* to the CPU, by the producer */
    int64_t stream;    /* that we use it on; 0: none */
};

/* The number by which DLPack knows the current stream of a device. */
static int stream_take_current(struct module_state *state, int index, int64_t *stream)
{
    void *handle = NULL;
    gn_status status = gn_dlpack_current_stream(DEVICE_CUDA, index, &handle);
    if (status != GN_OK)
        (void)error_raise(state, status);
    *stream = handle != NULL ? (int64_t)(intptr_t)handle : 1;
    return status == GN_OK ? 0 : -1;
}

/* Where a tensor of others is: on the CPU if it says nothing. */
static int place_take(PyObject *object, int64_t pair[2])
{
    pair[0] = DEVICE_CPU;
    pair[1] = 0;
    PyObject *place = PyObject_CallMethod(object, "__dlpack_device__", NULL);
    int found = place != NULL ? pair_take(place, "__dlpack_device__()", pair) : -1;
    Py_XDECREF(place);
    return found;
}

bool dlpack_is_on_gpu(PyObject *object)
{
    int64_t pair[2];
    if (!PyObject_HasAttrString(object, "__dlpack_device__"))
        return false;
    if (place_take(object, pair) >= 0)
        return !is_host(pair[0]);
    PyErr_Clear(); /* who takes it as DLPack's is told */
    return false;
}

/* The place, and how it can come from there. */
static int wish_take(struct module_state *state, PyObject *object, struct wish *wish)
{
    int64_t pair[2];
    int type = DEVICE_CPU, index = 0;
    if (place_take(object, pair) < 0)
        return -1;
    if (wish->device != NULL)
        gn_device_to_dlpack(wish->device, &type, &index);
    wish->is_moved = wish->device != NULL && type == DEVICE_CPU && !is_host(pair[0]);
    if (wish->device != NULL && wish->is_copied == 0 && !(is_host(type) && is_host(pair[0])) &&
        (pair[0] != type || pair[1] != index)) {
        PyErr_Format(PyExc_BufferError,
                     "a tensor of DLPack's device (%lld, %lld) comes to (%d, %d) only with a copy",
                     (long long)pair[0], (long long)pair[1], type, index);
        return -1;
    }
    if (wish->is_moved || is_host(pair[0]))
        return 0;
    if (pair[0] != DEVICE_CUDA || pair[1] != (int)pair[1]) {
        PyErr_Format(
            PyExc_RuntimeError,
            "there are no tensors on DLPack's device (%lld, %lld): device=\"cpu\" asks for "
            "a copy on the CPU",
            (long long)pair[0], (long long)pair[1]);
        return -1;
    }
    return stream_take_current(state, (int)pair[1], &wish->stream);
}

static int keyword_set(PyObject *keywords, const char *name, PyObject *value)
{
    int status = value != NULL ? PyDict_SetItemString(keywords, name, value) : -1;
    Py_XDECREF(value);
    return status;
}

/* x.__dlpack__(...), with what the producer must be asked for; one from before 1.0 knows the stream only. */
static PyObject *capsule_ask(PyObject *object, const struct wish *wish, bool is_old)
{
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    PyObject *none = PyTuple_New(0), *keywords = PyDict_New(), *capsule = NULL;
    bool is_asked = method != NULL && none != NULL && keywords != NULL;
    if (is_asked && wish->stream != 0)
        is_asked = keyword_set(keywords, "stream", PyLong_FromLongLong(wish->stream)) == 0;
    if (is_asked && !is_old)
        is_asked = keyword_set(keywords, "max_version", Py_BuildValue("ii", 1, 3)) == 0;
    if (is_asked && !is_old && wish->is_copied >= 0)
        is_asked = keyword_set(keywords, "copy", PyBool_FromLong(wish->is_copied)) == 0;
    if (is_asked && !is_old && wish->is_moved)
        is_asked = keyword_set(keywords, "dl_device", Py_BuildValue("ii", DEVICE_CPU, 0)) == 0;
    if (is_asked)
        capsule = PyObject_Call(method, none, keywords);
    Py_XDECREF(method);
    Py_XDECREF(none);
    Py_XDECREF(keywords);
    return capsule;
}

/* The tensor in a capsule whose producer was not asked by us for a stream: the default one, if there is one. */
static PyObject *tensor_on_default(struct module_state *state, PyObject *capsule)
{
    PyObject *made = tensor_from_capsule(state, capsule);
    gn_status status = made != NULL ? gn_dlpack_follow(tensor_of(made), NULL) : GN_OK;
    if (status == GN_OK)
        return made;
    Py_DECREF(made);
    return error_raise(state, status);
}

/* A producer's tensor. One from before 1.0 knows few of our arguments: then a copy is ours to make. */
static PyObject *tensor_from_producer(struct module_state *state, PyObject *object,
                                      struct wish *wish)
{
    if (wish_take(state, object, wish) < 0)
        return NULL;
    PyObject *capsule = capsule_ask(object, wish, false), *made = NULL;
    if (capsule != NULL) {
        wish->is_copied = wish->is_copied == 1 ? -1 : wish->is_copied;
    } else if (PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        capsule = capsule_ask(object, wish, true);
    }
    if (capsule != NULL && PyCapsule_CheckExact(capsule))
        made = wish->stream != 0 ? tensor_from_capsule(state, capsule)
                                 : tensor_on_default(state, capsule);
    else if (capsule != NULL)
        PyErr_Format(PyExc_TypeError, "__dlpack__() gave no capsule, but %R", capsule);
    Py_XDECREF(capsule);
    return made;
}

/* The rest of a wish: another device, or a copy. */
static PyObject *wish_fulfil(PyObject *made, const struct wish *wish)
{
    PyObject *result = NULL;
    if (made == NULL)
        return NULL;
    bool is_there = wish->device == NULL || gn_tensor_get_device(tensor_of(made)) == wish->device;
    if (is_there && wish->is_copied < 1)
        return made;
    if (is_there)
        result = PyObject_CallMethod(made, "clone", NULL);
    else if (wish->is_copied == 0)
        PyErr_SetString(PyExc_BufferError, "a tensor comes to another device only with a copy");
    else
        result = tensor_move(made, wish->device);
    Py_DECREF(made);
    return result;
}

PyObject *tensor_from_dlpack(struct module_state *state, PyObject *object, PyObject *device,
                             PyObject *copy)
{
    struct wish wish = {.is_copied = choice_take(copy)};
    if (wish.is_copied == -2 ||
        (device != Py_None && device_from_python(state, device, &wish.device) < 0))
        return NULL;
    PyObject *made = NULL;
    if (PyCapsule_CheckExact(object))
        made = tensor_on_default(state, object);
    else if (wish.is_copied < 1)
        made = tensor_from_table(state, object);
    if (made == NULL && !PyCapsule_CheckExact(object) && !PyErr_Occurred())
        made = tensor_from_producer(state, object, &wish);
    return wish_fulfil(made, &wish);
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
     "device : device, optional\n    Where the tensor is to be, by default where it is: a copy, if "
     "need be.\n"
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
    if (gradient_refuse(object, "__dlpack__") < 0)
        return -1;
    CALL_ALLOCATING(status, gn_tensor_to_dlpack(tensor_of(object), false, managed));
    return table_result(module_state_of_object(object), status);
}

static int table_describe(void *object, void *description)
{
    gn_status status;
    if (gradient_refuse(object, "__dlpack__") < 0)
        return -1;
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
    gn_tensor *tensor;
    int result = table_result(state, gn_tensor_from_dlpack(managed, &tensor));
    if (result == 0)
        *object = tensor_to_python(state, tensor);
    Py_DECREF(module);
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
