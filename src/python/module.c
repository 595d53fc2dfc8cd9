/*
 * module.c: the extension module genesis._C: its functions about devices and the library, and its
 * life.
 *
 * Importing it starts nothing: no driver, no device, no thread.
 */
#include "module.h"

#include <limits.h>

struct module_state *module_state_of(PyObject *module)
{
    return PyModule_GetState(module);
}

struct module_state *module_state_of_class(PyTypeObject *class)
{
    /* Python may have subclassed it: walk up to the class that is ours. */
    for (; class != NULL; class = PyType_GetSlot(class, Py_tp_base)) {
        PyObject *module = PyType_GetModule(class);
        if (module != NULL && PyModule_GetDef(module) == &gni_python_module)
            return PyModule_GetState(module);
        PyErr_Clear();
    }
    Py_UNREACHABLE();
}

struct module_state *module_state_of_object(PyObject *object)
{
    return module_state_of_class(Py_TYPE(object));
}

/* ---- devices -------------------------------------------------------------------------------- */

static PyObject *cuda_device_count(PyObject *module, PyObject *unused)
{
    (void)unused;
    int count;
    gn_status status;
    CALL_UNLOCKED(status, gn_device_count(GN_DEVICE_CUDA, &count));
    return status == GN_OK ? PyLong_FromLong(count) : error_raise(module_state_of(module), status);
}

static PyObject *cuda_is_missing(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    int count;
    gn_status status;
    CALL_UNLOCKED(status, gn_device_count(GN_DEVICE_CUDA, &count));
    return PyBool_FromLong(status == GN_ERROR_UNAVAILABLE);
}

static PyObject *cuda_is_started(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(gn_device_is_started(GN_DEVICE_CUDA));
}

static PyObject *can_access(PyObject *module, PyObject *arguments)
{
    struct module_state *state = module_state_of(module);
    PyObject *names[2];
    gn_device *devices[2];
    gn_status status;
    bool is_possible;
    if (!PyArg_ParseTuple(arguments, "OO", &names[0], &names[1]) ||
        device_from_python(state, names[0], &devices[0]) < 0 ||
        device_from_python(state, names[1], &devices[1]) < 0)
        return NULL;
    CALL_UNLOCKED(status, gn_device_can_access(devices[0], devices[1], &is_possible));
    return status == GN_OK ? PyBool_FromLong(is_possible) : error_raise(state, status);
}

static PyObject *current_device(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(gn_device_get_current(GN_DEVICE_CUDA));
}

static PyObject *set_device(PyObject *module, PyObject *name)
{
    struct module_state *state = module_state_of(module);
    gn_device_type type;
    int index;
    if (device_name_from_python(state, name, &type, &index) < 0)
        return NULL;
    if (type != GN_DEVICE_CUDA) {
        PyErr_SetString(PyExc_ValueError, "the current CUDA device must be a CUDA device");
        return NULL;
    }
    gn_status status;
    CALL_UNLOCKED(status, gn_device_set_current(type, index));
    if (status != GN_OK)
        return error_raise(state, status);
    Py_RETURN_NONE;
}

static PyObject *device_properties(PyObject *module, PyObject *name)
{
    struct module_state *state = module_state_of(module);
    gn_device *device;
    if (device_from_python(state, name, &device) < 0)
        return NULL;
    gn_device_properties now;
    gn_status status = gn_device_get_properties(device, &now);
    if (status != GN_OK)
        return error_raise(state, status);
#define INT(name) #name, now.name
#define BYTES(name) #name, (unsigned long long)now.name
#define FLAG(name) #name, now.name ? Py_True : Py_False
    return Py_BuildValue(
        "{ssssss sK sisisisisisisi sKsKsKsK sisisi sOsOsO}", "name", now.name, "uuid", now.uuid,
        "pci_bus_id", now.pci_bus_id, BYTES(total_memory), INT(major), INT(minor),
        INT(multi_processor_count), INT(warp_size), INT(max_threads_per_block),
        INT(max_threads_per_multi_processor), INT(registers_per_multi_processor),
        BYTES(shared_memory_per_block), BYTES(shared_memory_per_block_optin),
        BYTES(shared_memory_per_multi_processor), BYTES(l2_cache_size), INT(clock_rate_khz),
        INT(memory_clock_rate_khz), INT(memory_bus_width_bits), FLAG(is_integrated),
        FLAG(has_virtual_memory), FLAG(has_stream_ordered_memory));
#undef INT
#undef BYTES
#undef FLAG
}

static PyObject *memory_info(PyObject *module, PyObject *name)
{
    struct module_state *state = module_state_of(module);
    gn_device *device;
    if (device_from_python(state, name, &device) < 0)
        return NULL;
    size_t free_bytes, total_bytes;
    gn_status status;
    CALL_UNLOCKED(status, gn_device_get_memory_info(device, &free_bytes, &total_bytes));
    if (status != GN_OK)
        return error_raise(state, status);
    return Py_BuildValue("KK", (unsigned long long)free_bytes, (unsigned long long)total_bytes);
}

static PyObject *synchronize(PyObject *module, PyObject *name)
{
    struct module_state *state = module_state_of(module);
    gn_device *device;
    if (device_from_python(state, name, &device) < 0)
        return NULL;
    gn_status status;
    CALL_ALLOCATING(status, gn_flush());
    if (status == GN_OK)
        CALL_UNLOCKED(status, gn_device_synchronize(device));
    if (status == GN_OK)
        status = gn_index_check(device);
    if (status != GN_OK)
        return error_raise(state, status);
    Py_RETURN_NONE;
}

/* ---- the library ---------------------------------------------------------------------------- */

static PyObject *parse_size(PyObject *module, PyObject *text)
{
    const char *utf8 = text_from_python(text);
    if (utf8 == NULL)
        return NULL;
    size_t bytes;
    gn_status status = gn_size_parse(utf8, &bytes);
    return status == GN_OK ? PyLong_FromSize_t(bytes)
                           : error_raise(module_state_of(module), status);
}

static PyObject *options(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *list = PyList_New(0);
    gn_option_description option;
    for (int i = 0; list != NULL && gn_option_describe(i, &option); i++) {
        PyObject *item = Py_BuildValue("{sssssssssNss}", "name", option.name, "kind", option.kind,
                                       "range", option.range, "default", option.standard, "value",
                                       text_to_python(option.value), "meaning", option.meaning);
        if (list_append(&list, item) < 0)
            return NULL;
    }
    return list;
}

static PyObject *libraries(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *list = PyList_New(0);
    gn_library_description library;
    bool is_there = true;
    for (int i = 0; list != NULL && is_there; i++) {
        Py_BEGIN_ALLOW_THREADS;
        is_there = gn_library_describe(i, &library);
        Py_END_ALLOW_THREADS;
        if (!is_there)
            break;
        PyObject *item = Py_BuildValue(
            "{sssOsissss}", "name", library.name, "is_found", library.is_found ? Py_True : Py_False,
            "version", library.version, "path", library.path, "reason", library.reason);
        if (list_append(&list, item) < 0)
            return NULL;
    }
    return list;
}

static PyObject *add_library_directory(PyObject *module, PyObject *text)
{
    const char *utf8 = text_from_python(text);
    if (utf8 == NULL)
        return NULL;
    gn_status status = gn_library_add_directory(utf8);
    if (status != GN_OK)
        return error_raise(module_state_of(module), status);
    Py_RETURN_NONE;
}

static PyObject *get_num_threads(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(gn_get_num_threads());
}

static PyObject *set_num_threads(PyObject *module, PyObject *count)
{
    PyObject *integer = PyNumber_Index(count);
    if (integer == NULL)
        return NULL;
    int overflow;
    long number = PyLong_AsLongAndOverflow(integer, &overflow);
    Py_DECREF(integer);
    if (number == -1 && PyErr_Occurred())
        return NULL;
    if (overflow > 0 || number > INT_MAX)
        number = INT_MAX; /* there is a highest number anyway */
    if (overflow < 0 || number < INT_MIN)
        number = INT_MIN;
    gn_status status = gn_set_num_threads((int)number);
    if (status != GN_OK)
        return error_raise(module_state_of(module), status);
    Py_RETURN_NONE;
}

static PyMethodDef module_functions[] = {
    {"cuda_device_count", cuda_device_count, METH_NOARGS,
     "cuda_device_count($module, /)\n--\n\n"
     "How many GPUs there are; RuntimeError with the reason where CUDA cannot be used."},
    {"cuda_is_missing", cuda_is_missing, METH_NOARGS,
     "cuda_is_missing($module, /)\n--\n\n"
     "Whether this machine has no usable CUDA at all; not so in a forked child."},
    {"current_device", current_device, METH_NOARGS,
     "current_device($module, /)\n--\n\nThe index of this thread's current CUDA device."},
    {"_cuda_is_started", cuda_is_started, METH_NOARGS,
     "_cuda_is_started($module, /)\n--\n\nWhether a CUDA device has been started."},
    {"_can_access", can_access, METH_VARARGS,
     "_can_access($module, device, peer, /)\n--\n\nWhether one reaches the other's memory."},
    {"set_device", set_device, METH_O,
     "set_device($module, device, /)\n--\n\nMakes a CUDA device this thread's current one."},
    {"device_properties", device_properties, METH_O,
     "device_properties($module, device, /)\n--\n\nWhat a device is, as a dict."},
    {"memory_info", memory_info, METH_O,
     "memory_info($module, device, /)\n--\n\nBytes free and in all on a device."},
    {"synchronize", synchronize, METH_O,
     "synchronize($module, device, /)\n--\n\nWaits for all work on a device."},
    {"get_num_threads", get_num_threads, METH_NOARGS,
     "get_num_threads($module, /)\n--\n\nHow many threads operations on the CPU use at most."},
    {"set_num_threads", set_num_threads, METH_O,
     "set_num_threads($module, count, /)\n--\n\nSets how many threads they use at most."},
    {"parse_size", parse_size, METH_O,
     "parse_size($module, text, /)\n--\n\nBytes of a text such as \"512MB\" or \"1GiB\"."},
    {"options", options, METH_NOARGS,
     "options($module, /)\n--\n\nEvery GENESIS_* variable, as a list of dicts."},
    {"libraries", libraries, METH_NOARGS,
     "libraries($module, /)\n--\n\nThe libraries that Genesis uses where it finds them."},
    {"add_library_directory", add_library_directory, METH_O,
     "add_library_directory($module, path, /)\n--\n\n"
     "A directory in which NVRTC and cuBLASLt are looked for."},
    {NULL, NULL, 0, NULL},
};

/* ---- waiting ------------------------------------------------------------------------------- */

_Thread_local bool interpreter_is_held;

static void *wait_begin(void)
{
    if (!interpreter_is_held)
        return NULL;
    interpreter_is_held = false; /* for what a handler calls meanwhile */
    return PyEval_SaveThread();
}

static void wait_end(void *state)
{
    if (state == NULL)
        return;
    PyEval_RestoreThread(state);
    interpreter_is_held = true;
}

/* ---- the module's life ---------------------------------------------------------------------- */

/* Adds the public names of a table of functions to a list. */
static int names_add(PyObject **list, const PyMethodDef *functions)
{
    int status = 0;
    for (; status == 0 && functions->ml_name != NULL; functions++)
        if (functions->ml_name[0] != '_')
            status = list_append(list, PyUnicode_FromString(functions->ml_name));
    return status;
}

/* __all__: what `genesis` has of this module: types, and functions of tensors. */
static int names_publish(PyObject *module)
{
    static const char *const own[] = {
        "DeviceLostError",   "Generator",  "InvalidDeviceError",
        "OutOfMemoryError",  "ShapeError", "Tensor",
        "default_generator", "device",     "dtype",
    };
    const PyMethodDef *const tables[] = {
        tensor_op_functions,     tensor_reduction_functions, tensor_make_functions,
        tensor_create_functions, tensor_place_functions,     tensor_product_functions,
        tensor_dlpack_functions, tensor_index_functions,     random_functions,
        autograd_functions,      autocast_functions,
    };
    PyObject *list = function_names();
    int status = list != NULL ? 0 : -1;
    for (size_t i = 0; status == 0 && i < sizeof own / sizeof *own; i++)
        status = list_append(&list, PyUnicode_FromString(own[i]));
    for (int i = 0; status == 0 && i < GN_DTYPE_COUNT; i++)
        status = list_append(&list, PyUnicode_FromString(gn_dtype_name((gn_dtype)i)));
    for (size_t i = 0; status == 0 && i < sizeof tables / sizeof *tables; i++)
        status = names_add(&list, tables[i]);
    if (status == 0)
        status = PyModule_AddObjectRef(module, "__all__", list);
    Py_XDECREF(list);
    return status;
}

static int module_exec(PyObject *module)
{
    struct module_state *state = module_state_of(module);
    if (errors_init(module, state) < 0 || device_class_init(module, state) < 0 ||
        stream_classes_init(module, state) < 0 || manager_class_init(module, state) < 0 ||
        memory_classes_init(module, state) < 0 || dtype_class_init(module, state) < 0 ||
        tensor_class_init(module, state) < 0 || autograd_init(module, state) < 0 ||
        graph_nodes_init(module, state) < 0 || hooks_init(module, state) < 0 ||
        random_init(module, state) < 0 || kernel_class_init(module) < 0 ||
        graph_class_init(module) < 0)
        return -1;
    history_init(module);
    if (pickle_init(module) < 0 || shared_memory_init(module) < 0)
        return -1;
    gn_set_wait_hooks(wait_begin, wait_end);
    if (PyModule_AddFunctions(module, history_functions) < 0 ||
        PyModule_AddFunctions(module, profile_functions) < 0 ||
        PyModule_AddFunctions(module, tensor_op_functions) < 0 ||
        PyModule_AddFunctions(module, tensor_reduction_functions) < 0 ||
        PyModule_AddFunctions(module, tensor_make_functions) < 0 ||
        PyModule_AddFunctions(module, tensor_create_functions) < 0 ||
        PyModule_AddFunctions(module, tensor_place_functions) < 0 ||
        PyModule_AddFunctions(module, random_functions) < 0 ||
        PyModule_AddFunctions(module, tensor_product_functions) < 0 ||
        PyModule_AddFunctions(module, tensor_dlpack_functions) < 0 ||
        PyModule_AddFunctions(module, tensor_index_functions) < 0 ||
        PyModule_AddFunctions(module, tensor_subclass_functions) < 0 || modules_init(module) < 0 ||
        PyModule_AddFunctions(module, autocast_functions) < 0 ||
        PyModule_AddFunctions(module, list_functions) < 0 ||
        PyModule_AddFunctions(module, optim_functions) < 0 || functions_init(module, state) < 0 ||
        names_publish(module) < 0)
        return -1;
    return PyModule_AddStringConstant(module, "__version__", gn_version());
}

/* Every object that the module's state holds. */
#define STATE_EACH(state, visit)                           \
    do {                                                   \
        visit((state)->device_class);                      \
        visit((state)->stream_class);                      \
        visit((state)->event_class);                       \
        visit((state)->manager_class);                     \
        visit((state)->request_class);                     \
        visit((state)->block_class);                       \
        visit((state)->graph_pool_class);                  \
        visit((state)->out_of_memory_error);               \
        visit((state)->device_lost_error);                 \
        visit((state)->invalid_device_error);              \
        visit((state)->shape_error);                       \
        visit((state)->linalg_error);                      \
        visit((state)->dtype_class);                       \
        visit((state)->tensor_class);                      \
        visit((state)->parameter_class);                   \
        visit((state)->node_class);                        \
        visit((state)->handle_class);                      \
        visit((state)->numpy_class);                       \
        visit((state)->numpy_asarray);                     \
        visit((state)->pair_class);                        \
        visit((state)->generator_class);                   \
        visit((state)->generator);                         \
        for (int i = 0; i < GN_DTYPE_COUNT; i++) {         \
            visit((state)->dtypes[i]);                     \
            visit((state)->pointer_classes[i]);            \
        }                                                  \
        for (int i = 0; i < (state)->manager_count; i++) { \
            visit((state)->managers[i].handler);           \
            visit((state)->managers[i].callback);          \
        }                                                  \
    } while (0)

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    struct module_state *state = module_state_of(module);
    STATE_EACH(state, Py_VISIT);
    return 0;
}

static int module_clear(PyObject *module)
{
    struct module_state *state = module_state_of(module);
    STATE_EACH(state, Py_CLEAR);
    return 0;
}

/* The library outlives the module: it must not call handlers that are gone. */
static void module_free(void *module)
{
    struct module_state *state = module_state_of(module);
    for (int i = 0; state != NULL && i < state->manager_count; i++) {
        gn_status status =
            gn_memory_set_out_of_memory_handler(state->managers[i].manager, NULL, NULL);
        if (status == GN_OK)
            status = gn_memory_set_callback(state->managers[i].manager, 1, NULL, NULL);
        (void)status;
    }
    (void)module_clear(module);
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
    {0, NULL},
};

struct PyModuleDef gni_python_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "genesis._C",
    .m_doc = "The C core of Genesis. Use the genesis package instead.",
    .m_size = sizeof(struct module_state),
    .m_methods = module_functions,
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__C(void);
PyMODINIT_FUNC PyInit__C(void)
{
    return PyModuleDef_Init(&gni_python_module);
}
