/*
 * python_memory.c: MemoryManager, a memory manager seen from Python: its blocks, and its class.
 *
 * The interpreter's lock. allocate_memory() and free_memory() are met by a cache nearly always, in
 * some tens of nanoseconds. Letting the lock go and taking it again costs more than that, and where
 * other threads wait for it, it costs this thread its turn. So:
 *
 *   1. a free keeps the lock where it never waits for a device. Under the direct policy it does, and
 *      where a pool may hand memory back to a GPU's driver while others still work;
 *   2. an allocation of up to SMALL_BYTES from such a manager keeps it, too. At worst it fetches a
 *      segment, or gives idle memory back first, while other threads wait;
 *   3. an allocation of more than that, which is likelier to need the driver, and every other call
 *      that may talk to the driver, lets it go.
 *
 * Locks: the library calls out-of-memory handlers, which take the interpreter's lock, outside of its
 * own locks, so that nobody who holds one of those ever waits for the interpreter's. Hazard: when
 * memory runs out, a request of kind 2 waits for the device with the lock held; if work there waits
 * for Python (a host function of another library that takes the lock), neither goes on.
 */
#include "module.h"

#include <string.h>

enum {
    SMALL_BYTES = 1 << 20
};

struct manager_object *manager_of(PyObject *object)
{
    return (struct manager_object *)object;
}

/* ---- the managers in use -------------------------------------------------------------------- */

void manager_entry_refresh(struct manager_entry *entry)
{
    const char *policy = gn_memory_manager_get_policy(entry->manager);
    gn_memory_config config = {.strategy = GN_MEMORY_DIRECT};
    gn_status status = gn_memory_get_config(entry->manager, &config);
    bool is_cpu = gn_device_get_type(gn_memory_manager_get_device(entry->manager)) == GN_DEVICE_CPU;
    entry->is_quick = status == GN_OK && config.strategy != GN_MEMORY_DIRECT &&
                      (strcmp(policy, "virtual") == 0 || (is_cpu && strcmp(policy, "pool") == 0));
}

/* The entry of a manager, made at its first use; NULL and an exception if there is no room. */
static struct manager_entry *entry_get(struct module_state *state, gn_memory_manager *manager,
                                       bool is_pinned)
{
    for (int i = 0; i < state->manager_count; i++)
        if (state->managers[i].manager == manager)
            return &state->managers[i];
    if (state->manager_count == MANAGER_CAPACITY) {
        PyErr_SetString(PyExc_RuntimeError, "there are too many memory managers");
        return NULL;
    }
    struct manager_entry *entry = &state->managers[state->manager_count++];
    *entry = (struct manager_entry){.manager = manager, .is_pinned = is_pinned};
    manager_entry_refresh(entry);
    return entry;
}

static PyObject *manager_to_python(PyTypeObject *class, struct module_state *state,
                                   struct manager_entry *entry)
{
    PyObject *made = object_alloc(class);
    if (made == NULL)
        return NULL;
    manager_of(made)->entry = entry;
    manager_of(made)->manager = entry->manager;
    manager_of(made)->state = state;
    return made;
}

static PyObject *manager_new(PyTypeObject *class, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"device", "pinned", NULL};
    PyObject *name = Py_None;
    int is_pinned = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|Op:MemoryManager", names, &name,
                                     &is_pinned))
        return NULL;
    struct module_state *state = module_state_of_class(class);
    gn_device *device;
    if (device_from_python(state, name, &device) < 0)
        return NULL;
    gn_memory_manager *manager;
    gn_status status;
    if (is_pinned)
        CALL_UNLOCKED(status, gn_memory_manager_get_pinned(device, &manager));
    else
        CALL_UNLOCKED(status, gn_memory_manager_get(device, &manager));
    if (status != GN_OK)
        return error_raise(state, status);
    bool is_cpu = gn_device_get_type(device) == GN_DEVICE_CPU;
    struct manager_entry *entry = entry_get(state, manager, is_pinned && !is_cpu);
    return entry != NULL ? manager_to_python(class, state, entry) : NULL;
}

/* The manager of the current CUDA device, or of the CPU where there is no CUDA. */
static struct manager_entry *entry_find_current(struct module_state *state)
{
    int index = gn_device_get_current(GN_DEVICE_CUDA);
    bool is_short = index < DEVICE_CAPACITY;
    struct manager_entry *entry = is_short ? state->cuda_managers[index] : NULL;
    if (entry == NULL)
        entry = state->cpu_manager;
    if (entry != NULL)
        return entry;
    gn_device *device;
    gn_memory_manager *manager;
    gn_status status;
    CALL_UNLOCKED(status, gn_device_get(GN_DEVICE_CUDA, index, &device));
    bool is_missing = status == GN_ERROR_UNAVAILABLE;
    if (is_missing)
        CALL_UNLOCKED(status, gn_device_get(GN_DEVICE_CPU, 0, &device));
    if (status == GN_OK)
        CALL_UNLOCKED(status, gn_memory_manager_get(device, &manager));
    if (status != GN_OK) {
        error_raise(state, status);
        return NULL;
    }
    entry = entry_get(state, manager, false);
    if (is_missing)
        state->cpu_manager = entry;
    else if (is_short)
        state->cuda_managers[index] = entry;
    return entry;
}

/* The manager that has a block at this address, or the given one, which says that it has not. */
static struct manager_entry *entry_find_owner(struct module_state *state,
                                              struct manager_entry *entry, const void *pointer)
{
    size_t nbytes;
    if (state->manager_count < 2 || gn_memory_get_size(entry->manager, pointer, &nbytes) == GN_OK)
        return entry;
    for (int i = 0; i < state->manager_count; i++)
        if (gn_memory_get_size(state->managers[i].manager, pointer, &nbytes) == GN_OK)
            return &state->managers[i];
    return entry;
}

/* ---- blocks --------------------------------------------------------------------------------- */

static const struct signature allocate_signature = {"allocate_memory", {"nbytes", "stream"}, 1};
static const struct signature free_signature = {"free_memory", {"ptr", "nbytes"}, 1};

int size_take(PyObject *object, const char *what, size_t *size)
{
    if (PyLong_CheckExact(object)) {
        *size = PyLong_AsSize_t(object);
        if (*size != (size_t)-1)
            return 0;
        PyErr_Clear(); /* of a sentence about C types; the next one is better */
    }
    return size_from_python(object, what, size);
}

int nbytes_take(PyObject *object, const char *what, size_t *size)
{
    if (PyLong_CheckExact(object) || PyIndex_Check(object))
        return size_take(object, what, size);
    if (!PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s is an int or a text such as '2GB', not %R", what, object);
        return -1;
    }
    const char *text = text_from_python(object);
    if (text == NULL)
        return -1;
    if (gn_size_parse(text, size) == GN_OK)
        return 0;
    PyErr_Format(PyExc_ValueError, "%s: %s", what, gn_error_detail());
    return -1;
}

int stream_take(struct module_state *state, gn_memory_manager *manager, PyObject *object,
                gn_stream **stream)
{
    *stream = NULL;
    if (object == Py_None)
        return 0;
    return stream_from_python(state, object, gn_memory_manager_get_device(manager), stream);
}

static PyObject *memory_allocate(struct module_state *state, struct manager_entry *entry,
                                 PyObject *const taken[2])
{
    gn_memory_manager *manager = entry->manager;
    size_t nbytes;
    gn_stream *stream;
    if (nbytes_take(taken[0], "nbytes", &nbytes) < 0 ||
        stream_take(state, manager, taken[1], &stream) < 0)
        return NULL;
    void *pointer;
    gn_status status;
    if (nbytes <= SMALL_BYTES && entry->is_quick)
        status = gn_memory_alloc(manager, nbytes, stream, &pointer);
    else
        CALL_ALLOCATING(status, gn_memory_alloc(manager, nbytes, stream, &pointer));
    return status == GN_OK ? PyLong_FromVoidPtr(pointer) : error_raise(state, status);
}

static gn_status block_free(gn_memory_manager *manager, void *pointer, bool is_sized, size_t nbytes)
{
    return is_sized ? gn_memory_free_sized(manager, pointer, nbytes)
                    : gn_memory_free(manager, pointer);
}

/* Frees a block; `entry` may be NULL: whichever manager has it. */
static PyObject *memory_free(struct module_state *state, struct manager_entry *entry,
                             PyObject *const taken[2])
{
    size_t address, nbytes = 0;
    bool is_sized = taken[1] != Py_None;
    if (size_take(taken[0], "an address", &address) < 0 ||
        (is_sized && nbytes_take(taken[1], "nbytes", &nbytes) < 0))
        return NULL;
    void *pointer = (void *)(uintptr_t)address;
    if (entry == NULL) {
        entry = entry_find_current(state);
        if (entry == NULL)
            return NULL;
        entry = entry_find_owner(state, entry, pointer);
    }
    gn_status status;
    if (entry->is_quick)
        status = block_free(entry->manager, pointer, is_sized, nbytes);
    else
        CALL_UNLOCKED(status, block_free(entry->manager, pointer, is_sized, nbytes));
    if (status != GN_OK)
        return error_raise(state, status);
    Py_RETURN_NONE;
}

static PyObject *manager_allocate(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                  PyObject *keywords)
{
    PyObject *taken[2];
    if (arguments_take(&allocate_signature, arguments, count, keywords, taken) < 0)
        return NULL;
    return memory_allocate(manager_of(self)->state, manager_of(self)->entry, taken);
}

static PyObject *manager_free(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                              PyObject *keywords)
{
    PyObject *taken[2];
    if (arguments_take(&free_signature, arguments, count, keywords, taken) < 0)
        return NULL;
    return memory_free(manager_of(self)->state, manager_of(self)->entry, taken);
}

static PyObject *manager_block_size(PyObject *self, PyObject *number)
{
    size_t address, nbytes;
    if (size_from_python(number, "an address", &address) < 0)
        return NULL;
    gn_status status =
        gn_memory_get_size(manager_of(self)->manager, (void *)(uintptr_t)address, &nbytes);
    return status == GN_OK ? PyLong_FromSize_t(nbytes)
                           : error_raise(manager_of(self)->state, status);
}

static PyObject *manager_record_stream(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                       PyObject *keywords)
{
    static const struct signature signature = {"record_stream", {"ptr", "stream"}, 2};
    PyObject *taken[2];
    struct manager_object *own = manager_of(self);
    size_t address;
    gn_stream *stream;
    if (arguments_take(&signature, arguments, count, keywords, taken) < 0 ||
        size_take(taken[0], "an address", &address) < 0 ||
        stream_from_python(own->state, taken[1], gn_memory_manager_get_device(own->manager),
                           &stream) < 0)
        return NULL;
    return none_or_raise(self,
                         gn_memory_record_stream(own->manager, (void *)(uintptr_t)address, stream));
}

/* Whether the processor can look into its memory. */
static bool entry_is_host(const struct manager_entry *entry)
{
    gn_device *device = gn_memory_manager_get_device(entry->manager);
    return entry->is_pinned || gn_device_get_type(device) == GN_DEVICE_CPU;
}

static PyObject *manager_allocate_block(PyObject *self, PyObject *const *arguments,
                                        Py_ssize_t count, PyObject *keywords)
{
    static const struct signature signature = {"allocate_block", {"nbytes", "stream"}, 1};
    PyObject *taken[2];
    struct manager_object *own = manager_of(self);
    size_t nbytes;
    gn_stream *stream;
    if (arguments_take(&signature, arguments, count, keywords, taken) < 0 ||
        nbytes_take(taken[0], "nbytes", &nbytes) < 0 ||
        stream_take(own->state, own->manager, taken[1], &stream) < 0)
        return NULL;
    gn_memory_block *block;
    gn_status status;
    CALL_ALLOCATING(status, gn_memory_block_alloc(own->manager, nbytes, stream, &block));
    return status == GN_OK ? block_to_python(own->state, block, entry_is_host(own->entry))
                           : error_raise(own->state, status);
}

/* ---- out of memory -------------------------------------------------------------------------- */

/* Calls Python's handler, in the thread that asks. Its exceptions end here, and mean no. */
static bool handler_call(gn_memory_manager *manager, size_t nbytes, void *context)
{
    (void)manager;
    if (!Py_IsInitialized())
        return false;
    struct manager_entry *entry = context;
    PyGILState_STATE lock = PyGILState_Ensure();
    int is_retry = 0;
    PyObject *handler = Py_XNewRef(entry->handler); /* it may replace itself */
    if (handler != NULL) {
        PyObject *answer = PyObject_CallFunction(handler, "K", (unsigned long long)nbytes);
        is_retry = answer != NULL ? PyObject_IsTrue(answer) : -1;
        if (is_retry < 0)
            PyErr_WriteUnraisable(handler);
        Py_XDECREF(answer);
        Py_DECREF(handler);
    }
    PyGILState_Release(lock);
    return is_retry > 0;
}

static PyObject *manager_set_oom_handler(PyObject *self, PyObject *handler)
{
    struct manager_object *own = manager_of(self);
    bool is_none = handler == Py_None;
    if (!is_none && !PyCallable_Check(handler)) {
        PyErr_Format(PyExc_TypeError, "a handler must be callable or None, not %R",
                     (PyObject *)Py_TYPE(handler));
        return NULL;
    }
    struct manager_entry *entry = own->entry;
    gn_status status = gn_memory_set_out_of_memory_handler(
        own->manager, is_none ? NULL : handler_call, is_none ? NULL : entry);
    if (status == GN_OK) {
        PyObject *before = entry->handler;
        entry->handler = is_none ? NULL : Py_NewRef(handler);
        Py_XDECREF(before);
    }
    return none_or_raise(self, status);
}

/* Calls Python's callback, in the thread that crossed the threshold. Its exceptions end here. */
static void callback_call(gn_memory_manager *manager, bool is_out_of_memory, void *context)
{
    (void)manager;
    if (!Py_IsInitialized())
        return;
    struct manager_entry *entry = context;
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *callback = Py_XNewRef(entry->callback); /* it may replace itself */
    if (callback != NULL) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PyObject *answer =
            PyObject_CallFunction(callback, "O", is_out_of_memory ? Py_True : Py_False);
        if (answer == NULL)
            PyErr_WriteUnraisable(callback);
        Py_XDECREF(answer);
        Py_DECREF(callback);
        PyErr_Restore(type, value, traceback);
    }
    PyGILState_Release(lock);
}

static PyObject *manager_set_callback(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                      PyObject *keywords)
{
    static const struct signature signature = {"set_callback", {"callback", "threshold"}, 2};
    PyObject *taken[2];
    if (arguments_take(&signature, arguments, count, keywords, taken) < 0)
        return NULL;
    bool is_none = taken[0] == Py_None;
    if (!is_none && !PyCallable_Check(taken[0])) {
        PyErr_Format(PyExc_TypeError, "a callback must be callable or None, not %R",
                     (PyObject *)Py_TYPE(taken[0]));
        return NULL;
    }
    double threshold = PyFloat_AsDouble(taken[1]);
    if (threshold == -1.0 && PyErr_Occurred())
        return NULL;
    struct manager_object *own = manager_of(self);
    PyObject *before = own->entry->callback;
    own->entry->callback = is_none ? NULL : Py_NewRef(taken[0]); /* it may be called at once */
    gn_status status;
    CALL_UNLOCKED(status, gn_memory_set_callback(own->manager, threshold,
                                                 is_none ? NULL : callback_call, own->entry));
    if (status != GN_OK) { /* what was is */
        PyObject *refused = own->entry->callback;
        own->entry->callback = before;
        before = refused;
    }
    Py_XDECREF(before);
    return none_or_raise(self, status);
}

/* ---- the class ------------------------------------------------------------------------------ */

static PyObject *manager_get_device(PyObject *self, void *unused)
{
    (void)unused;
    gn_device *device = gn_memory_manager_get_device(manager_of(self)->manager);
    return device_to_python(manager_of(self)->state, gn_device_get_type(device),
                            gn_device_get_index(device));
}

static PyObject *manager_get_number(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong((long)gn_memory_manager_get_number(manager_of(self)->manager));
}

static PyObject *manager_get_policy(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(gn_memory_manager_get_policy(manager_of(self)->manager));
}

static PyObject *manager_get_is_pinned(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(manager_of(self)->entry->is_pinned);
}

static PyMethodDef manager_methods[] = {
    {"allocate_memory", WITH_VECTOR(manager_allocate),
     "allocate_memory($self, nbytes, stream=None)\n--\n\n"
     "Allocates nbytes for use on a stream and returns the address.\n\n"
     "Raises ValueError for an impossible size and genesis.OutOfMemoryError when the device has\n"
     "no room; both change nothing. 0 bytes give an address of its own, too."},
    {"free_memory", WITH_VECTOR(manager_free),
     "free_memory($self, ptr, nbytes=None)\n--\n\n"
     "Frees the block at an address, checking its size if one is given.\n\n"
     "Work that was submitted before may still use it. Raises ValueError for an address that is\n"
     "not a living block, and changes nothing."},
    {"block_size", manager_block_size, METH_O,
     "block_size($self, ptr, /)\n--\n\nThe size with which a living block was allocated."},
    {"record_stream", WITH_VECTOR(manager_record_stream),
     "record_stream($self, ptr, stream)\n--\n\n"
     "Says that work on another stream uses a living block.\n\n"
     "When the block is freed it is not handed out again before that work is done. None is the\n"
     "current stream."},
    {"allocate_block", WITH_VECTOR(manager_allocate_block),
     "allocate_block($self, nbytes, stream=None)\n--\n\n"
     "Allocates a block that is known by an object instead of its address."},
    {"allocate_batch", WITH_VECTOR(manager_allocate_batch),
     "allocate_batch($self, sizes, stream=None)\n--\n\n"
     "Allocates many blocks in one step, and returns their addresses in the order of the sizes.\n\n"
     "All or nothing. They lie near each other where that can be had; each is freed by itself."},
    {"warmup_cache", WITH_VECTOR(manager_warmup_cache),
     "warmup_cache($self, sizes, counts)\n--\n\n"
     "Fills the cache that all threads share: counts[i] blocks of sizes[i] bytes."},
    {"allocate_async", WITH_VECTOR(manager_allocate_async),
     "allocate_async($self, nbytes, stream=None)\n--\n\n"
     "Starts an allocation that another thread prepares, and returns a MemoryRequest."},
    {"collect", manager_collect, METH_NOARGS,
     "collect($self, /)\n--\n\n"
     "Takes in what freed blocks waited for, as far as it is done. Never waits."},
    {"coalesce", manager_coalesce, METH_NOARGS,
     "coalesce($self, /)\n--\n\n"
     "Empties the threads' caches and merges free neighbours; returns how many were merged."},
    {"trim", WITH_VECTOR(manager_trim),
     "trim($self, keep_bytes=0)\n--\n\n"
     "Gives idle memory back until at most keep_bytes are cached; returns the bytes."},
    {"compact", manager_compact, METH_NOARGS,
     "compact($self, /)\n--\n\n"
     "Gives back every byte that is not needed, and says what was done, as a dict.\n\n"
     "Nobody may submit work on this memory meanwhile."},
    {"set_callback", WITH_VECTOR(manager_set_callback),
     "set_callback($self, callback, threshold)\n--\n\n"
     "Has callback(is_out_of_memory) called when reserved memory rises above a fraction of what "
     "the\n"
     "manager may take, and after failed requests; None removes it."},
    {"set_oom_handler", manager_set_oom_handler, METH_O,
     "set_oom_handler($self, handler, /)\n--\n\n"
     "Has handler(nbytes) called when a request cannot be met; None removes it."},
    {"get_config", manager_get_config, METH_NOARGS,
     "get_config($self, /)\n--\n\nThe configuration in force, as a dict; None is no limit."},
    {"set_config", WITH_KEYWORDS(manager_set_config),
     "set_config($self, **settings)\n--\n\n"
     "Changes settings of get_config(), all or none, and takes effect at once."},
    {"statistics", manager_statistics, METH_NOARGS,
     "statistics($self, /)\n--\n\nOne consistent reading of all counters, as a dict."},
    {"reset_peaks", manager_reset_peaks, METH_NOARGS,
     "reset_peaks($self, /)\n--\n\nSets the peaks to what is live now."},
    {"classes", manager_classes, METH_NOARGS,
     "classes($self, /)\n--\n\nWhat each size class has met, as a list of dicts."},
    {"blocks", manager_blocks, METH_NOARGS,
     "blocks($self, /)\n--\n\nEvery block, by segment and address, as a list of dicts."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef manager_getset[] = {
    {"device", manager_get_device, NULL, "The device whose memory this is.", NULL},
    {"number", manager_get_number, NULL, "Which manager it is in the history.", NULL},
    {"policy", manager_get_policy, NULL,
     "How requests are met: \"virtual\", \"pool\" or \"direct\".", NULL},
    {"is_pinned", manager_get_is_pinned, NULL,
     "Is this host memory that the device reads and writes directly?", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static const char manager_doc[] =
    "MemoryManager(device=None, pinned=False)\n--\n\n"
    "The memory manager of a device; the current CUDA device if none is given.\n\n"
    "With pinned=True, of host memory that the device reads and writes directly; on the CPU that\n"
    "is the CPU's own.\n\n"
    "Examples\n--------\n"
    ">>> from genesis._C import MemoryManager\n"
    ">>> manager = MemoryManager(\"cpu\")\n"
    ">>> address = manager.allocate_memory(1000)\n"
    ">>> manager.block_size(address)\n"
    "1000\n"
    ">>> manager.free_memory(address)\n";

static PyType_Slot manager_slots[] = {
    {Py_tp_doc, (void *)manager_doc}, {Py_tp_new, manager_new},       {Py_tp_dealloc, object_free},
    {Py_tp_methods, manager_methods}, {Py_tp_getset, manager_getset}, {0, NULL},
};

static PyType_Spec manager_spec = {
    .name = "genesis._C.MemoryManager",
    .basicsize = sizeof(struct manager_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = manager_slots,
};

/* ---- functions ------------------------------------------------------------------------------ */

static PyObject *allocate_memory(PyObject *module, PyObject *const *arguments, Py_ssize_t count,
                                 PyObject *keywords)
{
    struct module_state *state = module_state_of(module);
    PyObject *taken[2];
    if (arguments_take(&allocate_signature, arguments, count, keywords, taken) < 0)
        return NULL;
    struct manager_entry *entry = entry_find_current(state);
    return entry != NULL ? memory_allocate(state, entry, taken) : NULL;
}

static PyObject *free_memory(PyObject *module, PyObject *const *arguments, Py_ssize_t count,
                             PyObject *keywords)
{
    PyObject *taken[2];
    if (arguments_take(&free_signature, arguments, count, keywords, taken) < 0)
        return NULL;
    return memory_free(module_state_of(module), NULL, taken);
}

static PyObject *memory_managers(PyObject *module, PyObject *unused)
{
    (void)unused;
    struct module_state *state = module_state_of(module);
    PyTypeObject *class = (PyTypeObject *)state->manager_class;
    PyObject *list = PyList_New(0);
    gn_memory_manager *manager = NULL;
    while (list != NULL && (manager = gn_memory_manager_next(manager)) != NULL) {
        struct manager_entry *entry =
            entry_get(state, manager, gn_memory_manager_is_pinned(manager));
        (void)list_append(&list, entry != NULL ? manager_to_python(class, state, entry) : NULL);
    }
    return list;
}

static PyMethodDef manager_functions[] = {
    {"allocate_memory", WITH_VECTOR(allocate_memory),
     "allocate_memory($module, nbytes, stream=None)\n--\n\n"
     "Allocate memory on the current CUDA device, or the CPU where there is none.\n\n"
     "Parameters\n----------\n"
     "nbytes : int\n"
     "    0 gives an address of its own, too.\n"
     "stream : Stream, optional\n"
     "    The stream on which the memory is used; the current one if not given.\n\n"
     "Returns\n-------\n"
     "int\n"
     "    The address.\n\n"
     "Raises\n------\n"
     "ValueError\n"
     "    If no device can have that much.\n"
     "OutOfMemoryError\n"
     "    If the device has not that much left. Everything goes on working.\n"},
    {"free_memory", WITH_VECTOR(free_memory),
     "free_memory($module, ptr, nbytes=None)\n--\n\n"
     "Free memory by its address, whichever device it is on, checking its size if one is given.\n\n"
     "Raises\n------\n"
     "ValueError\n"
     "    If the address is not that of a living block, or the size is not its size.\n"},
    {"memory_managers", memory_managers, METH_NOARGS,
     "memory_managers($module, /)\n--\n\nThe memory managers that were used, by whomever."},
    {NULL, NULL, 0, NULL},
};

int manager_class_init(PyObject *module, struct module_state *state)
{
    state->manager_class = PyType_FromModuleAndSpec(module, &manager_spec, NULL);
    if (state->manager_class == NULL ||
        PyModule_AddObjectRef(module, "MemoryManager", state->manager_class) < 0)
        return -1;
    return PyModule_AddFunctions(module, manager_functions);
}
