/*
 * python_graph.c: CUDAGraph, and the pools of graphs.
 *
 * A CUDAGraph makes its gn_graph when its first capture begins, on the device of the stream. A pool is a capsule that
 * owns one reference: it can only be handed on.
 */
#include "module.h"

#include "genesis/graph.h"

static const char pool_name[] = "genesis.graph_pool";

struct graph_object {
    PyObject_HEAD gn_graph *graph; /* NULL before the first capture */
};

static struct graph_object *graph_of(PyObject *object)
{
    return (struct graph_object *)object;
}

/* ---- pools ---------------------------------------------------------------------------------- */

static void pool_end(PyObject *capsule)
{
    gn_graph_pool *pool = PyCapsule_GetPointer(capsule, pool_name);
    Py_BEGIN_ALLOW_THREADS;
    gn_graph_pool_release(pool);
    Py_END_ALLOW_THREADS;
}

/* Takes over one reference to the pool, also when it fails. */
static PyObject *pool_to_python(gn_graph_pool *pool)
{
    PyObject *made = PyCapsule_New(pool, pool_name, pool_end);
    if (made == NULL)
        gn_graph_pool_release(pool);
    return made;
}

/* None is NULL. */
static int pool_from_python(PyObject *object, gn_graph_pool **pool)
{
    *pool = NULL;
    if (object == Py_None)
        return 0;
    if (!PyCapsule_IsValid(object, pool_name)) {
        PyErr_Format(
            PyExc_TypeError,
            "a pool is what CUDAGraph.pool() or graph_pool_handle() gives, or None, not %R",
            (PyObject *)Py_TYPE(object));
        return -1;
    }
    *pool = PyCapsule_GetPointer(object, pool_name);
    return 0;
}

static PyObject *graph_pool_handle(PyObject *module, PyObject *name)
{
    struct module_state *state = module_state_of(module);
    gn_device *device;
    gn_graph_pool *pool;
    gn_status status;
    if (device_from_python(state, name, &device) < 0)
        return NULL;
    CALL_UNLOCKED(status, gn_graph_pool_create(device, &pool));
    return status == GN_OK ? pool_to_python(pool) : error_raise(state, status);
}

/* ---- CUDAGraph ------------------------------------------------------------------------------ */

static PyObject *graph_new(PyTypeObject *class, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {NULL};
    return PyArg_ParseTupleAndKeywords(arguments, keywords, ":CUDAGraph", names)
               ? object_alloc(class)
               : NULL;
}

static void graph_dealloc(PyObject *self)
{
    gn_graph *graph = graph_of(self)->graph;
    Py_BEGIN_ALLOW_THREADS;
    gn_graph_destroy(graph);
    Py_END_ALLOW_THREADS;
    object_free(self);
}

/* The graph for a device: the one that is there, or a new one where it was for another. */
static gn_status graph_prepare(struct graph_object *own, gn_device *device)
{
    if (own->graph != NULL && (gn_graph_get_device(own->graph) == device ||
                               gn_graph_get_pool(own->graph) != NULL)) /* the begin will refuse */
        return GN_OK;
    gn_graph *made;
    gn_status status = gn_graph_create(device, &made);
    if (status != GN_OK)
        return status;
    gn_graph_destroy(own->graph); /* it is empty */
    own->graph = made;
    return GN_OK;
}

static PyObject *graph_capture_begin(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                     PyObject *keywords)
{
    static const struct signature signature = {"capture_begin", {"pool", "stream"}, 0};
    struct module_state *state = module_state_of_object(self);
    struct graph_object *own = graph_of(self);
    PyObject *taken[2];
    gn_graph_pool *pool;
    gn_device *device = NULL;
    gn_stream *stream;
    if (arguments_take(&signature, arguments, count, keywords, taken) < 0 ||
        pool_from_python(taken[0], &pool) < 0 ||
        (taken[1] == Py_None && device_from_python(state, Py_None, &device) < 0) ||
        stream_from_python(state, taken[1], device, &stream) < 0)
        return NULL;
    gn_status status = graph_prepare(own, gn_stream_get_device(stream));
    if (status == GN_OK)
        CALL_ALLOCATING(status, gn_graph_begin(own->graph, stream, pool));
    return none_or_raise(self, status);
}

static PyObject *empty_raise(void)
{
    PyErr_SetString(PyExc_ValueError, "the graph is empty: capture it first");
    return NULL;
}

static PyObject *graph_capture_end(PyObject *self, PyObject *unused)
{
    (void)unused;
    gn_graph *graph = graph_of(self)->graph;
    gn_status status;
    if (graph == NULL)
        return empty_raise();
    CALL_ALLOCATING(status, gn_graph_end(graph));
    return none_or_raise(self, status);
}

static PyObject *graph_replay(PyObject *self, PyObject *unused)
{
    (void)unused;
    gn_graph *graph = graph_of(self)->graph;
    gn_stream *stream;
    if (graph == NULL)
        return empty_raise();
    gn_status status = gn_stream_get_current(gn_graph_get_device(graph), &stream);
    if (status == GN_OK)
        CALL_ALLOCATING(status, gn_graph_replay(graph, stream));
    return none_or_raise(self, status);
}

static PyObject *graph_reset(PyObject *self, PyObject *unused)
{
    (void)unused;
    gn_graph *graph = graph_of(self)->graph;
    gn_status status = GN_OK;
    if (graph != NULL)
        CALL_UNLOCKED(status, gn_graph_reset(graph));
    return none_or_raise(self, status);
}

static PyObject *graph_pool(PyObject *self, PyObject *unused)
{
    (void)unused;
    gn_graph *graph = graph_of(self)->graph;
    gn_graph_pool *pool = graph != NULL ? gn_graph_get_pool(graph) : NULL;
    return pool != NULL ? pool_to_python(gn_graph_pool_retain(pool)) : empty_raise();
}

static PyMethodDef graph_methods[] = {
    {"capture_begin", WITH_VECTOR(graph_capture_begin),
     "capture_begin($self, pool=None, stream=None)\n--\n\n"
     "Captures what is submitted to the stream, the current one if none is given, from now on.\n\n"
     "genesis.cuda.graph() does this, and the rest, for a with block."},
    {"capture_end", graph_capture_end, METH_NOARGS,
     "capture_end($self, /)\n--\n\nEnds the capture; the graph can be replayed."},
    {"replay", graph_replay, METH_NOARGS,
     "replay($self, /)\n--\n\nSubmits what was captured to the current stream."},
    {"reset", graph_reset, METH_NOARGS,
     "reset($self, /)\n--\n\n"
     "Makes the graph empty, giving up a capture that is under way, and lets its memory go."},
    {"pool", graph_pool, METH_NOARGS,
     "pool($self, /)\n--\n\n"
     "The memory of the graph, to capture another one with: they must be replayed in that order."},
    {NULL, NULL, 0, NULL},
};

static const char graph_doc[] =
    "CUDAGraph()\n--\n\n"
    "Operations that are captured once and run many times.\n\n"
    "The addresses stay the same: new inputs are copied into the tensors that were read, and\n"
    "results are found in those that were made. Random numbers are the same in each replay.\n\n"
    "Examples\n--------\n"
    ">>> import genesis\n"
    ">>> if genesis.cuda.is_available():\n"
    "...     x = genesis.zeros(3, device=\"cuda\")\n"
    "...     graph = genesis.cuda.CUDAGraph()\n"
    "...     with genesis.cuda.graph(graph):\n"
    "...         y = x * 2 + 1\n"
    "...     _ = x.fill_(4)\n"
    "...     graph.replay()\n"
    "...     assert y.tolist() == [9, 9, 9]\n";

static PyType_Slot graph_slots[] = {
    {Py_tp_doc, (void *)graph_doc},
    {Py_tp_new, graph_new},
    {Py_tp_dealloc, graph_dealloc},
    {Py_tp_methods, graph_methods},
    {0, NULL},
};

static PyType_Spec graph_spec = {
    .name = "genesis._C.CUDAGraph",
    .basicsize = sizeof(struct graph_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = graph_slots,
};

static PyMethodDef graph_functions[] = {
    {"graph_pool_handle", graph_pool_handle, METH_O,
     "graph_pool_handle($module, device, /)\n--\n\nMemory for graphs that share it."},
    {NULL, NULL, 0, NULL},
};

int graph_class_init(PyObject *module)
{
    PyObject *class = PyType_FromModuleAndSpec(module, &graph_spec, NULL);
    int status = class != NULL ? PyModule_AddObjectRef(module, "CUDAGraph", class) : -1;
    Py_XDECREF(class);
    return status < 0 ? -1 : PyModule_AddFunctions(module, graph_functions);
}
