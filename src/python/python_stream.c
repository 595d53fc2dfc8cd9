/*
 * python_stream.c: Stream and Event, and what is current.
 *
 * A Stream owns one reference to a gn_stream. An Event makes its gn_event at its first record, on
 * the device of the stream, as PyTorch's does: until then it counts as complete.
 */
#include "module.h"

#include <stdio.h>

struct stream_object {
    PyObject_HEAD gn_stream *stream;
};

struct event_object {
    PyObject_HEAD gn_event *event; /* NULL before the first record */
    unsigned flags;
};

static gn_stream *stream_of(PyObject *object)
{
    return ((struct stream_object *)object)->stream;
}

static struct event_object *event_of(PyObject *object)
{
    return (struct event_object *)object;
}

/* ---- Stream --------------------------------------------------------------------------------- */

/* Takes over one reference to the stream, also when it fails. */
static PyObject *stream_to_python(struct module_state *state, gn_stream *stream)
{
    PyObject *made = object_alloc((PyTypeObject *)state->stream_class);
    if (made != NULL)
        ((struct stream_object *)made)->stream = stream;
    else
        gn_stream_release(stream);
    return made;
}

int stream_from_python(struct module_state *state, PyObject *object, gn_device *device,
                       gn_stream **stream)
{
    if (object == NULL || object == Py_None) {
        gn_status status = gn_stream_get_current(device, stream);
        if (status != GN_OK)
            error_raise(state, status);
        return status == GN_OK ? 0 : -1;
    }
    if (!PyObject_TypeCheck(object, (PyTypeObject *)state->stream_class)) {
        PyErr_Format(PyExc_TypeError, "a stream must be a genesis.cuda.Stream or None, not %R",
                     (PyObject *)Py_TYPE(object));
        return -1;
    }
    *stream = stream_of(object);
    return 0;
}

static PyObject *stream_new(PyTypeObject *class, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"device", "priority", "blocking", NULL};
    PyObject *name = Py_None;
    int priority = 0, is_blocking = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|Oip:Stream", names, &name, &priority,
                                     &is_blocking))
        return NULL;
    struct module_state *state = module_state_of_class(class);
    gn_device *device;
    if (device_from_python(state, name, &device) < 0)
        return NULL;
    gn_stream *stream;
    gn_status status;
    unsigned flags = is_blocking ? 0 : GN_STREAM_NON_BLOCKING;
    CALL_UNLOCKED(status, gn_stream_create(device, flags, priority, &stream));
    return status == GN_OK ? stream_to_python(state, stream) : error_raise(state, status);
}

static void stream_dealloc(PyObject *self)
{
    gn_stream *stream = stream_of(self);
    Py_BEGIN_ALLOW_THREADS;
    gn_stream_release(stream);
    Py_END_ALLOW_THREADS;
    object_free(self);
}

static PyObject *stream_query(PyObject *self, PyObject *unused)
{
    (void)unused;
    gn_status status;
    CALL_IN_ORDER(status, gn_stream_query(stream_of(self)));
    return ready_or_raise(self, status);
}

static PyObject *stream_synchronize(PyObject *self, PyObject *unused)
{
    (void)unused;
    gn_status status;
    CALL_IN_ORDER(status, gn_stream_synchronize(stream_of(self)));
    if (status == GN_OK)
        status = gn_index_check(gn_stream_get_device(stream_of(self)));
    return none_or_raise(self, status);
}

/* The one event or stream argument of a method, by place or by name. */
static int argument_parse(PyObject *arguments, PyObject *keywords, const char *format,
                          const char *name, PyObject **object)
{
    char *names[] = {(char *)(uintptr_t)name, NULL};
    return PyArg_ParseTupleAndKeywords(arguments, keywords, format, names, object) ? 0 : -1;
}

static int event_check(const struct module_state *state, PyObject *object)
{
    if (PyObject_TypeCheck(object, (PyTypeObject *)state->event_class))
        return 0;
    PyErr_Format(PyExc_TypeError, "an event must be a genesis.cuda.Event, not %R",
                 (PyObject *)Py_TYPE(object));
    return -1;
}

static PyObject *stream_wait_event(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    PyObject *object;
    if (argument_parse(arguments, keywords, "O:wait_event", "event", &object) < 0 ||
        event_check(module_state_of_object(self), object) < 0)
        return NULL;
    gn_event *event = event_of(object)->event;
    gn_status status = GN_OK;
    if (event != NULL) /* never recorded: nothing to wait for */
        CALL_IN_ORDER(status, gn_stream_wait_event(stream_of(self), event));
    return none_or_raise(self, status);
}

/* Makes one stream wait for all that is in another now. */
static gn_status streams_join(gn_stream *stream, gn_stream *other)
{
    gn_event *event;
    gn_status status = gn_event_create(gn_stream_get_device(other), 0, &event);
    if (status != GN_OK)
        return status;
    status = gn_event_record(event, other);
    if (status == GN_OK)
        status = gn_stream_wait_event(stream, event);
    gn_event_destroy(event);
    return status;
}

static PyObject *stream_wait_stream(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    PyObject *object;
    gn_stream *other;
    if (argument_parse(arguments, keywords, "O:wait_stream", "stream", &object) < 0 ||
        stream_from_python(module_state_of_object(self), object,
                           gn_stream_get_device(stream_of(self)), &other) < 0)
        return NULL;
    gn_status status;
    CALL_IN_ORDER(status, streams_join(stream_of(self), other));
    return none_or_raise(self, status);
}

static PyObject *event_record_on(PyObject *event, gn_stream *stream);

static PyObject *stream_record_event(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    PyObject *event = Py_None;
    if (argument_parse(arguments, keywords, "|O:record_event", "event", &event) < 0)
        return NULL;
    struct module_state *state = module_state_of_object(self);
    if (event != Py_None && event_check(state, event) < 0)
        return NULL;
    event = event == Py_None ? PyObject_CallNoArgs(state->event_class) : Py_NewRef(event);
    if (event == NULL)
        return NULL;
    PyObject *done = event_record_on(event, stream_of(self));
    if (done == NULL)
        Py_CLEAR(event);
    Py_XDECREF(done);
    return event;
}

/* What `with stream:` puts back, last in first out; each thread has its own. */
struct stream_block {
    struct stream_block *outer;
    gn_stream *stream; /* a reference */
    int device;        /* the current CUDA device */
};

static _Thread_local struct stream_block *innermost;

/* Makes a stream current, and its device. */
static gn_status stream_make_current(gn_stream *stream)
{
    gn_device *device = gn_stream_get_device(stream);
    gn_status status;
    CALL_UNLOCKED(status, gn_stream_set_current(stream));
    if (status == GN_OK && gn_device_get_type(device) == GN_DEVICE_CUDA)
        CALL_UNLOCKED(status, gn_device_set_current(GN_DEVICE_CUDA, gn_device_get_index(device)));
    return status;
}

static PyObject *stream_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct module_state *state = module_state_of_object(self);
    struct stream_block *block = PyMem_Malloc(sizeof *block);
    gn_stream *before;
    if (block == NULL)
        return PyErr_NoMemory();
    block->device = gn_device_get_current(GN_DEVICE_CUDA);
    gn_status status = gn_stream_get_current(gn_stream_get_device(stream_of(self)), &before);
    if (status == GN_OK)
        block->stream = gn_stream_retain(before);
    if (status == GN_OK && (status = stream_make_current(stream_of(self))) != GN_OK)
        gn_stream_release(block->stream);
    if (status != GN_OK) {
        PyMem_Free(block);
        return error_raise(state, status);
    }
    block->outer = innermost;
    innermost = block;
    return Py_NewRef(self);
}

static PyObject *stream_exit(PyObject *self, PyObject *arguments)
{
    (void)arguments;
    struct stream_block *block = innermost;
    gn_status status, ignored = GN_OK;
    if (block == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "this thread is in no block of a stream");
        return NULL;
    }
    innermost = block->outer;
    CALL_UNLOCKED(status, gn_stream_set_current(block->stream));
    /* In a forked child there is no device to put back, and no reason to hide another exception. */
    if (block->device != gn_device_get_current(GN_DEVICE_CUDA))
        CALL_UNLOCKED(ignored, gn_device_set_current(GN_DEVICE_CUDA, block->device));
    (void)ignored;
    gn_stream_release(block->stream);
    PyMem_Free(block);
    return none_or_raise(self, status);
}

static PyObject *stream_get_device(PyObject *self, void *unused)
{
    (void)unused;
    gn_device *device = gn_stream_get_device(stream_of(self));
    return device_to_python(module_state_of_object(self), gn_device_get_type(device),
                            gn_device_get_index(device));
}

static PyObject *stream_get_handle(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr(gn_stream_get_handle(stream_of(self)));
}

static PyObject *stream_get_id(PyObject *self, void *unused)
{
    (void)unused;
    uint64_t id;
    gn_status status = gn_stream_get_id(stream_of(self), &id);
    if (status != GN_OK)
        return error_raise(module_state_of_object(self), status);
    return PyLong_FromUnsignedLongLong(id);
}

static PyObject *stream_get_priority(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(gn_stream_get_priority(stream_of(self)));
}

static PyObject *stream_get_is_capturing(PyObject *self, void *unused)
{
    (void)unused;
    bool is_capturing;
    gn_status status = gn_stream_is_capturing(stream_of(self), &is_capturing);
    if (status != GN_OK)
        return error_raise(module_state_of_object(self), status);
    return PyBool_FromLong(is_capturing);
}

static PyObject *stream_repr(PyObject *self)
{
    char handle[32]; /* PyUnicode_FromFormat has no %llx before Python 3.12 */
    (void)snprintf(handle, sizeof handle, "0x%llx",
                   (unsigned long long)(uintptr_t)gn_stream_get_handle(stream_of(self)));
    PyObject *device = stream_get_device(self, NULL);
    PyObject *text =
        device != NULL
            ? PyUnicode_FromFormat("<genesis.cuda.Stream device=%S cuda_stream=%s>", device, handle)
            : NULL;
    Py_XDECREF(device);
    return text;
}

/* Streams are the same when their ids are, whichever object wraps them. */
static PyObject *stream_compare(PyObject *self, PyObject *other, int operation)
{
    struct module_state *state = module_state_of_object(self);
    if ((operation != Py_EQ && operation != Py_NE) ||
        !PyObject_TypeCheck(other, (PyTypeObject *)state->stream_class))
        Py_RETURN_NOTIMPLEMENTED;
    uint64_t own, others;
    gn_status status = gn_stream_get_id(stream_of(self), &own);
    if (status == GN_OK)
        status = gn_stream_get_id(stream_of(other), &others);
    if (status != GN_OK)
        return error_raise(state, status);
    bool is_equal = own == others &&
                    gn_stream_get_device(stream_of(self)) == gn_stream_get_device(stream_of(other));
    return PyBool_FromLong(is_equal == (operation == Py_EQ));
}

static Py_hash_t stream_hash(PyObject *self)
{
    PyObject *id = stream_get_id(self, NULL);
    Py_hash_t hash = id != NULL ? PyObject_Hash(id) : -1;
    Py_XDECREF(id);
    return hash;
}

static PyMethodDef stream_methods[] = {
    {"query", stream_query, METH_NOARGS,
     "query($self, /)\n--\n\nTrue when all work submitted to the stream is complete."},
    {"synchronize", stream_synchronize, METH_NOARGS,
     "synchronize($self, /)\n--\n\nWaits until all work submitted to the stream is complete."},
    {"wait_event", WITH_KEYWORDS(stream_wait_event),
     "wait_event($self, event)\n--\n\n"
     "Makes work submitted from now on wait for the event, without blocking the host."},
    {"wait_stream", WITH_KEYWORDS(stream_wait_stream),
     "wait_stream($self, stream)\n--\n\n"
     "Makes work submitted from now on wait for all work now in another stream."},
    {"record_event", WITH_KEYWORDS(stream_record_event),
     "record_event($self, event=None)\n--\n\n"
     "Records an event, a new one if none is given, and returns it."},
    {"__enter__", stream_enter, METH_NOARGS, NULL},
    {"__exit__", stream_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef stream_getset[] = {
    {"device", stream_get_device, NULL, "The device whose work the stream orders.", NULL},
    {"cuda_stream", stream_get_handle, NULL, "The driver's handle, as an int.", NULL},
    {"stream_id", stream_get_id, NULL, "A number that no other stream ever has.", NULL},
    {"priority", stream_get_priority, NULL, "The lower, the sooner.", NULL},
    {"is_capturing", stream_get_is_capturing, NULL, "Is it being captured into a graph?", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static const char stream_doc[] =
    "Stream(device=None, priority=0, blocking=False)\n--\n\n"
    "An ordered queue of work on a device.\n\n"
    "Parameters\n----------\n"
    "device : device, str or int, optional\n"
    "    The current CUDA device if not given.\n"
    "priority : int\n"
    "    A lower number is a higher priority; it is moved into the device's range.\n"
    "blocking : bool\n"
    "    Whether the stream is ordered with the default stream.\n\n"
    "Examples\n--------\n"
    ">>> import genesis\n"
    ">>> stream = genesis.cuda.Stream(device=\"cpu\")\n"
    ">>> stream.synchronize()\n"
    ">>> stream.query()\n"
    "True\n";

static PyType_Slot stream_slots[] = {
    {Py_tp_doc, (void *)stream_doc},
    {Py_tp_new, stream_new},
    {Py_tp_dealloc, stream_dealloc},
    {Py_tp_repr, stream_repr},
    {Py_tp_hash, stream_hash},
    {Py_tp_richcompare, stream_compare},
    {Py_tp_methods, stream_methods},
    {Py_tp_getset, stream_getset},
    {0, NULL},
};

static PyType_Spec stream_spec = {
    .name = "genesis.cuda.Stream",
    .basicsize = sizeof(struct stream_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = stream_slots,
};

/* ---- Event ---------------------------------------------------------------------------------- */

static PyObject *event_new(PyTypeObject *class, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"enable_timing", "blocking", "interprocess", NULL};
    int has_timing = 0, is_blocking = 0, is_shared = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|ppp:Event", names, &has_timing,
                                     &is_blocking, &is_shared))
        return NULL;
    if (is_shared) {
        PyErr_SetString(PyExc_ValueError, "events cannot be shared between processes");
        return NULL;
    }
    PyObject *made = object_alloc(class);
    if (made != NULL)
        event_of(made)->flags = (has_timing ? (unsigned)GN_EVENT_TIMING : 0) |
                                (is_blocking ? (unsigned)GN_EVENT_BLOCKING_SYNC : 0);
    return made;
}

static void event_dealloc(PyObject *self)
{
    gn_event *event = event_of(self)->event;
    Py_BEGIN_ALLOW_THREADS;
    gn_event_destroy(event);
    Py_END_ALLOW_THREADS;
    object_free(self);
}

/* The event of an object, made on the stream's device if it has none; two threads may meet here. */
static gn_status event_ensure(struct event_object *own, gn_stream *stream)
{
    if (own->event != NULL)
        return GN_OK;
    gn_event *made;
    gn_status status;
    CALL_UNLOCKED(status, gn_event_create(gn_stream_get_device(stream), own->flags, &made));
    if (status == GN_OK && own->event == NULL)
        own->event = made;
    else if (status == GN_OK)
        gn_event_destroy(made);
    return status;
}

static PyObject *event_record_on(PyObject *self, gn_stream *stream)
{
    gn_status status = event_ensure(event_of(self), stream);
    if (status == GN_OK)
        CALL_IN_ORDER(status, gn_event_record(event_of(self)->event, stream));
    return none_or_raise(self, status);
}

/* The stream argument of record() and wait(); None is the current CUDA device's current one. */
static int event_stream_parse(PyObject *self, PyObject *arguments, PyObject *keywords,
                              const char *format, gn_stream **stream)
{
    PyObject *object = Py_None;
    if (argument_parse(arguments, keywords, format, "stream", &object) < 0)
        return -1;
    struct module_state *state = module_state_of_object(self);
    gn_device *device = NULL;
    if (object == Py_None && device_from_python(state, NULL, &device) < 0)
        return -1;
    return stream_from_python(state, object, device, stream);
}

static PyObject *event_record(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    gn_stream *stream;
    if (event_stream_parse(self, arguments, keywords, "|O:record", &stream) < 0)
        return NULL;
    return event_record_on(self, stream);
}

static PyObject *event_wait(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    gn_stream *stream;
    if (event_stream_parse(self, arguments, keywords, "|O:wait", &stream) < 0)
        return NULL;
    gn_event *event = event_of(self)->event;
    gn_status status = GN_OK;
    if (event != NULL)
        CALL_IN_ORDER(status, gn_stream_wait_event(stream, event));
    return none_or_raise(self, status);
}

static PyObject *event_query(PyObject *self, PyObject *unused)
{
    (void)unused;
    gn_event *event = event_of(self)->event;
    gn_status status = GN_OK;
    if (event != NULL)
        CALL_UNLOCKED(status, gn_event_query(event));
    return ready_or_raise(self, status);
}

static PyObject *event_synchronize(PyObject *self, PyObject *unused)
{
    (void)unused;
    gn_event *event = event_of(self)->event;
    gn_status status = GN_OK;
    if (event != NULL)
        CALL_UNLOCKED(status, gn_event_synchronize(event));
    if (event != NULL && status == GN_OK)
        status = gn_index_check(gn_event_get_device(event));
    return none_or_raise(self, status);
}

static PyObject *event_elapsed_time(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    struct module_state *state = module_state_of_object(self);
    PyObject *end;
    if (argument_parse(arguments, keywords, "O:elapsed_time", "end_event", &end) < 0 ||
        event_check(state, end) < 0)
        return NULL;
    if (event_of(self)->event == NULL || event_of(end)->event == NULL) {
        PyErr_SetString(PyExc_ValueError, "both events must be recorded before time is measured");
        return NULL;
    }
    if ((event_of(self)->flags & event_of(end)->flags & GN_EVENT_TIMING) == 0) {
        PyErr_SetString(PyExc_ValueError,
                        "elapsed_time: both events must be made with enable_timing=True");
        return NULL;
    }
    float milliseconds;
    gn_status status = gn_event_elapsed(event_of(self)->event, event_of(end)->event, &milliseconds);
    return status == GN_OK ? PyFloat_FromDouble((double)milliseconds) : error_raise(state, status);
}

static PyObject *event_get_device(PyObject *self, void *unused)
{
    (void)unused;
    if (event_of(self)->event == NULL)
        Py_RETURN_NONE;
    gn_device *device = gn_event_get_device(event_of(self)->event);
    return device_to_python(module_state_of_object(self), gn_device_get_type(device),
                            gn_device_get_index(device));
}

static PyObject *event_get_handle(PyObject *self, void *unused)
{
    (void)unused;
    gn_event *event = event_of(self)->event;
    return PyLong_FromVoidPtr(event != NULL ? gn_event_get_handle(event) : NULL);
}

static PyMethodDef event_methods[] = {
    {"record", WITH_KEYWORDS(event_record),
     "record($self, stream=None)\n--\n\nMarks the end of all work now in the stream."},
    {"wait", WITH_KEYWORDS(event_wait),
     "wait($self, stream=None)\n--\n\nMakes later work of the stream wait for the event."},
    {"query", event_query, METH_NOARGS,
     "query($self, /)\n--\n\nTrue when the recorded work is complete, or nothing was recorded."},
    {"synchronize", event_synchronize, METH_NOARGS,
     "synchronize($self, /)\n--\n\nWaits until the recorded work is complete."},
    {"elapsed_time", WITH_KEYWORDS(event_elapsed_time),
     "elapsed_time($self, end_event)\n--\n\n"
     "Milliseconds from this event to a later one; both need enable_timing=True."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef event_getset[] = {
    {"device", event_get_device, NULL, "The device it was recorded on; None before that.", NULL},
    {"cuda_event", event_get_handle, NULL, "The driver's handle, as an int; 0 if never recorded.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static const char event_doc[] =
    "Event(enable_timing=False, blocking=False, interprocess=False)\n--\n\n"
    "A mark in a stream, to wait for and to measure time with.\n\n"
    "Parameters\n----------\n"
    "enable_timing : bool\n"
    "    Whether elapsed_time() can be asked for.\n"
    "blocking : bool\n"
    "    Whether synchronize() sleeps instead of spinning.\n\n"
    "Examples\n--------\n"
    ">>> import genesis\n"
    ">>> stream = genesis.cuda.Stream(device=\"cpu\")\n"
    ">>> event = stream.record_event()\n"
    ">>> event.synchronize()\n"
    ">>> event.query()\n"
    "True\n";

static PyType_Slot event_slots[] = {
    {Py_tp_doc, (void *)event_doc}, {Py_tp_new, event_new},       {Py_tp_dealloc, event_dealloc},
    {Py_tp_methods, event_methods}, {Py_tp_getset, event_getset}, {0, NULL},
};

static PyType_Spec event_spec = {
    .name = "genesis.cuda.Event",
    .basicsize = sizeof(struct event_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = event_slots,
};

/* ---- functions ------------------------------------------------------------------------------ */

/* The stream that a getter borrows from a device, as an object of its own. */
static PyObject *device_stream(PyObject *module, PyObject *name,
                               gn_status (*get)(gn_device *device, gn_stream **stream))
{
    struct module_state *state = module_state_of(module);
    gn_device *device;
    if (device_from_python(state, name, &device) < 0)
        return NULL;
    gn_stream *stream;
    gn_status status = get(device, &stream);
    return status == GN_OK ? stream_to_python(state, gn_stream_retain(stream))
                           : error_raise(state, status);
}

static PyObject *current_stream(PyObject *module, PyObject *name)
{
    return device_stream(module, name, gn_stream_get_current);
}

static PyObject *default_stream(PyObject *module, PyObject *name)
{
    return device_stream(module, name, gn_stream_get_default);
}

static PyObject *set_current_stream(PyObject *module, PyObject *object)
{
    struct module_state *state = module_state_of(module);
    if (!PyObject_TypeCheck(object, (PyTypeObject *)state->stream_class)) {
        PyErr_Format(PyExc_TypeError, "a stream must be a genesis.cuda.Stream, not %R",
                     (PyObject *)Py_TYPE(object));
        return NULL;
    }
    gn_status status;
    CALL_UNLOCKED(status, gn_stream_set_current(stream_of(object)));
    if (status != GN_OK)
        return error_raise(state, status);
    Py_RETURN_NONE;
}

static PyObject *external_stream(PyObject *module, PyObject *arguments)
{
    PyObject *number, *name = Py_None;
    if (!PyArg_ParseTuple(arguments, "O|O:external_stream", &number, &name))
        return NULL;
    struct module_state *state = module_state_of(module);
    gn_device *device;
    size_t handle;
    if (size_from_python(number, "a stream handle", &handle) < 0 ||
        device_from_python(state, name, &device) < 0)
        return NULL;
    gn_stream *stream;
    gn_status status;
    CALL_UNLOCKED(status, gn_stream_from_handle(device, (void *)(uintptr_t)handle, &stream));
    return status == GN_OK ? stream_to_python(state, stream) : error_raise(state, status);
}

static PyMethodDef stream_functions[] = {
    {"current_stream", current_stream, METH_O,
     "current_stream($module, device, /)\n--\n\nThe stream that this thread uses on a device."},
    {"default_stream", default_stream, METH_O,
     "default_stream($module, device, /)\n--\n\nThe default stream of a device."},
    {"set_current_stream", set_current_stream, METH_O,
     "set_current_stream($module, stream, /)\n--\n\nMakes this thread use a stream."},
    {"external_stream", external_stream, METH_VARARGS,
     "external_stream($module, handle, device=None, /)\n--\n\n"
     "Wraps a stream of another library, which must outlive its use."},
    {NULL, NULL, 0, NULL},
};

int stream_classes_init(PyObject *module, struct module_state *state)
{
    state->stream_class = PyType_FromModuleAndSpec(module, &stream_spec, NULL);
    state->event_class = PyType_FromModuleAndSpec(module, &event_spec, NULL);
    if (state->stream_class == NULL || state->event_class == NULL ||
        PyModule_AddObjectRef(module, "Stream", state->stream_class) < 0 ||
        PyModule_AddObjectRef(module, "Event", state->event_class) < 0)
        return -1;
    return PyModule_AddFunctions(module, stream_functions);
}
