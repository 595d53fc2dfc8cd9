/*
 * python_memory.c: MemoryManager, a memory manager seen from Python.
 */
#include "module.h"

struct manager_object {
    PyObject_HEAD gn_memory_manager *manager; /* borrowed: managers live for ever */
};

static gn_memory_manager *manager_of(PyObject *object)
{
    return ((struct manager_object *)object)->manager;
}

static PyObject *manager_new(PyTypeObject *class, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"device", NULL};
    PyObject *name = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O:MemoryManager", names, &name))
        return NULL;
    struct module_state *state = module_state_of_class(class);
    gn_device *device;
    if (device_from_python(state, name, &device) < 0)
        return NULL;
    gn_memory_manager *manager;
    gn_status status;
    CALL_UNLOCKED(status, gn_memory_manager_get(device, &manager));
    if (status != GN_OK)
        return error_raise(state, status);
    PyObject *made = object_alloc(class);
    if (made != NULL)
        ((struct manager_object *)made)->manager = manager;
    return made;
}

static PyObject *manager_allocate(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"nbytes", "stream", NULL};
    PyObject *number, *object = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|O:allocate_memory", names, &number,
                                     &object))
        return NULL;
    struct module_state *state = module_state_of_object(self);
    gn_memory_manager *manager = manager_of(self);
    gn_stream *stream;
    size_t nbytes;
    if (size_from_python(number, "nbytes", &nbytes) < 0 ||
        stream_from_python(state, object, gn_memory_manager_get_device(manager), &stream) < 0)
        return NULL;
    void *pointer;
    gn_status status;
    CALL_UNLOCKED(status, gn_memory_alloc(manager, nbytes, stream, &pointer));
    return status == GN_OK ? PyLong_FromVoidPtr(pointer) : error_raise(state, status);
}

static PyObject *manager_free(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"ptr", "nbytes", NULL};
    PyObject *number, *size = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|O:free_memory", names, &number, &size))
        return NULL;
    gn_memory_manager *manager = manager_of(self);
    size_t address, nbytes = 0;
    if (size_from_python(number, "an address", &address) < 0 ||
        (size != Py_None && size_from_python(size, "nbytes", &nbytes) < 0))
        return NULL;
    void *pointer = (void *)(uintptr_t)address;
    gn_status status;
    if (size == Py_None)
        CALL_UNLOCKED(status, gn_memory_free(manager, pointer));
    else
        CALL_UNLOCKED(status, gn_memory_free_sized(manager, pointer, nbytes));
    if (status != GN_OK)
        return error_raise(module_state_of_object(self), status);
    Py_RETURN_NONE;
}

static PyObject *manager_block_size(PyObject *self, PyObject *number)
{
    size_t address, nbytes;
    if (size_from_python(number, "an address", &address) < 0)
        return NULL;
    gn_status status = gn_memory_get_size(manager_of(self), (void *)(uintptr_t)address, &nbytes);
    return status == GN_OK ? PyLong_FromSize_t(nbytes)
                           : error_raise(module_state_of_object(self), status);
}

static PyObject *manager_statistics(PyObject *self, PyObject *unused)
{
    (void)unused;
    gn_memory_statistics now;
    gn_status status = gn_memory_get_statistics(manager_of(self), &now);
    if (status != GN_OK)
        return error_raise(module_state_of_object(self), status);
#define FIELD(name) #name, (unsigned long long)now.name
    return Py_BuildValue("{sKsKsKsKsKsKsKsKsKsKsKsKsKsK}", FIELD(live_bytes),
                         FIELD(live_bytes_peak), FIELD(live_count), FIELD(live_count_peak),
                         FIELD(reserved_bytes), FIELD(reserved_bytes_peak), FIELD(alloc_count),
                         FIELD(free_count), FIELD(alloc_bytes_total), FIELD(free_bytes_total),
                         FIELD(out_of_memory_count), FIELD(refused_count),
                         FIELD(driver_alloc_count), FIELD(driver_free_count));
#undef FIELD
}

static PyObject *manager_reset_peaks(PyObject *self, PyObject *unused)
{
    (void)unused;
    gn_status status = gn_memory_reset_peaks(manager_of(self));
    if (status != GN_OK)
        return error_raise(module_state_of_object(self), status);
    Py_RETURN_NONE;
}

static PyObject *manager_get_device(PyObject *self, void *unused)
{
    (void)unused;
    gn_device *device = gn_memory_manager_get_device(manager_of(self));
    return device_to_python(module_state_of_object(self), gn_device_get_type(device),
                            gn_device_get_index(device));
}

static PyObject *manager_get_policy(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(gn_memory_manager_get_policy(manager_of(self)));
}

static PyMethodDef manager_methods[] = {
    {"allocate_memory", WITH_KEYWORDS(manager_allocate),
     "allocate_memory($self, nbytes, stream=None)\n--\n\n"
     "Allocates nbytes for use on a stream and returns the address.\n\n"
     "Raises ValueError for an impossible size and genesis.OutOfMemoryError when the device has\n"
     "no room; both change nothing. 0 bytes give an address of its own, too."},
    {"free_memory", WITH_KEYWORDS(manager_free),
     "free_memory($self, ptr, nbytes=None)\n--\n\n"
     "Frees the block at an address, checking its size if one is given.\n\n"
     "Raises ValueError for an address that is not a living block, and changes nothing."},
    {"block_size", manager_block_size, METH_O,
     "block_size($self, ptr, /)\n--\n\nThe size with which a living block was allocated."},
    {"statistics", manager_statistics, METH_NOARGS,
     "statistics($self, /)\n--\n\nOne consistent reading of all counters, as a dict."},
    {"reset_peaks", manager_reset_peaks, METH_NOARGS,
     "reset_peaks($self, /)\n--\n\nSets the peaks to what is live now."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef manager_getset[] = {
    {"device", manager_get_device, NULL, "The device whose memory this is.", NULL},
    {"policy", manager_get_policy, NULL, "How requests are met: \"direct\".", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static const char manager_doc[] =
    "MemoryManager(device=None)\n--\n\n"
    "The memory manager of a device; the current CUDA device if none is given.\n\n"
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

int manager_class_init(PyObject *module, struct module_state *state)
{
    state->manager_class = PyType_FromModuleAndSpec(module, &manager_spec, NULL);
    return state->manager_class != NULL
               ? PyModule_AddObjectRef(module, "MemoryManager", state->manager_class)
               : -1;
}
