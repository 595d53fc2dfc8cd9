/*
 * python_memory_objects.c: MemoryRequest, MemoryBlock and GraphPool: what a manager gives besides
 * addresses.
 *
 * Each object owns what it stands for, and ends it when it goes. Whoever ends it earlier takes the
 * pointer out of the object first, with the interpreter's lock held, so that no other thread can use
 * it after that.
 */
#include "module.h"

#include <time.h>

/* ---- MemoryRequest -------------------------------------------------------------------------- */

struct request_object {
    PyObject_HEAD gn_memory_request *request;
};

static gn_memory_request *request_of(PyObject *object)
{
    return ((struct request_object *)object)->request;
}

PyObject *request_to_python(struct module_state *state, gn_memory_request *request)
{
    PyObject *made = object_alloc((PyTypeObject *)state->request_class);
    if (made != NULL)
        ((struct request_object *)made)->request = request;
    else
        gn_memory_request_release(request);
    return made;
}

static void request_dealloc(PyObject *self)
{
    gn_memory_request *request = request_of(self);
    Py_BEGIN_ALLOW_THREADS;
    gn_memory_request_release(request);
    Py_END_ALLOW_THREADS;
    object_free(self);
}

static PyObject *request_query(PyObject *self, PyObject *unused)
{
    (void)unused;
    /* The allocation's own failure is for wait() to tell. */
    return PyBool_FromLong(gn_memory_request_query(request_of(self)) != GN_ERROR_NOT_READY);
}

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Waits until a time, looking ever less often; GN_ERROR_NOT_READY when it has passed. */
static gn_status request_poll(gn_memory_request *request, double end)
{
    long pause_ns = 1000;
    for (;;) {
        gn_status status = gn_memory_request_query(request);
        if (status != GN_ERROR_NOT_READY || !(now_seconds() < end)) /* also when end is no number */
            return status;
        nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
        pause_ns = pause_ns < 1000000 ? pause_ns * 2 : pause_ns;
    }
}

static PyObject *request_wait(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                              PyObject *keywords)
{
    static const struct signature signature = {"wait", {"timeout", NULL}, 0};
    PyObject *taken[2];
    if (arguments_take(&signature, arguments, count, keywords, taken) < 0)
        return NULL;
    gn_memory_request *request = request_of(self);
    gn_status status = GN_OK;
    if (taken[0] != Py_None) {
        double seconds = PyFloat_AsDouble(taken[0]);
        if (seconds == -1.0 && PyErr_Occurred())
            return NULL;
        CALL_UNLOCKED(status, request_poll(request, now_seconds() + seconds));
    }
    if (status == GN_ERROR_NOT_READY) {
        PyErr_SetString(PyExc_TimeoutError, "the memory is not there yet");
        return NULL;
    }
    void *pointer;
    CALL_UNLOCKED(status, gn_memory_request_wait(request, &pointer));
    return status == GN_OK ? PyLong_FromVoidPtr(pointer)
                           : error_raise(module_state_of_object(self), status);
}

static PyMethodDef request_methods[] = {
    {"query", request_query, METH_NOARGS,
     "query($self, /)\n--\n\nTrue when wait() would not wait."},
    {"wait", WITH_VECTOR(request_wait),
     "wait($self, timeout=None)\n--\n\n"
     "The address, which then belongs to the caller, or the allocation's error.\n\n"
     "Raises TimeoutError when the seconds have passed first; the request goes on."},
    {NULL, NULL, 0, NULL},
};

static const char request_doc[] =
    "An allocation that another thread prepares. A block that nobody took is freed with it.\n\n"
    "Examples\n--------\n"
    ">>> from genesis._C import MemoryManager\n"
    ">>> manager = MemoryManager(\"cpu\")\n"
    ">>> request = manager.allocate_async(1000)\n"
    ">>> manager.free_memory(request.wait(), 1000)\n";

static PyType_Slot request_slots[] = {
    {Py_tp_doc, (void *)request_doc},
    {Py_tp_dealloc, request_dealloc},
    {Py_tp_methods, request_methods},
    {0, NULL},
};

static PyType_Spec request_spec = {
    .name = "genesis._C.MemoryRequest",
    .basicsize = sizeof(struct request_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = request_slots,
};

/* ---- MemoryBlock ---------------------------------------------------------------------------- */

struct block_object {
    PyObject_HEAD gn_memory_block *block; /* NULL when it was freed */
    bool is_host;                         /* the processor can read and write it */
    int view_count;                       /* buffers that look at it */
};

static struct block_object *block_of(PyObject *object)
{
    return (struct block_object *)object;
}

PyObject *block_to_python(struct module_state *state, gn_memory_block *block, bool is_host)
{
    PyObject *made = object_alloc((PyTypeObject *)state->block_class);
    if (made == NULL) {
        gn_status status = gn_memory_block_free(block);
        (void)status;
        return NULL;
    }
    block_of(made)->block = block;
    block_of(made)->is_host = is_host;
    return made;
}

static void block_dealloc(PyObject *self)
{
    if (block_of(self)->block != NULL) {
        gn_status status = gn_memory_block_free(block_of(self)->block);
        (void)status; /* nobody is there to hear of a lost device */
    }
    object_free(self);
}

/* The block; NULL and an exception if it was freed. */
static gn_memory_block *block_get(PyObject *self)
{
    if (block_of(self)->block == NULL)
        PyErr_SetString(PyExc_ValueError, "the block was freed already");
    return block_of(self)->block;
}

static PyObject *block_free(PyObject *self, PyObject *unused)
{
    (void)unused;
    gn_memory_block *block = block_get(self);
    if (block == NULL)
        return NULL;
    if (block_of(self)->view_count > 0) {
        PyErr_SetString(PyExc_BufferError, "views of the block are alive; nothing was changed");
        return NULL;
    }
    block_of(self)->block = NULL;
    return none_or_raise(self, gn_memory_block_free(block));
}

static PyObject *block_get_address(PyObject *self, void *unused)
{
    (void)unused;
    gn_memory_block *block = block_get(self);
    return block != NULL ? PyLong_FromVoidPtr(gn_memory_block_get_address(block)) : NULL;
}

static PyObject *block_get_nbytes(PyObject *self, void *unused)
{
    (void)unused;
    gn_memory_block *block = block_get(self);
    return block != NULL ? PyLong_FromSize_t(gn_memory_block_get_size(block)) : NULL;
}

static int block_get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    view->obj = NULL;
    gn_memory_block *block = block_get(self);
    if (block == NULL)
        return -1;
    if (!block_of(self)->is_host) {
        PyErr_SetString(PyExc_BufferError, "the block is in a device's memory");
        return -1;
    }
    if (PyBuffer_FillInfo(view, self, gn_memory_block_get_address(block),
                          (Py_ssize_t)gn_memory_block_get_size(block), 0, flags) < 0)
        return -1;
    block_of(self)->view_count++;
    return 0;
}

static void block_release_buffer(PyObject *self, Py_buffer *view)
{
    (void)view;
    block_of(self)->view_count--;
}

/* Where it is, for whoever only compares: its memory may still be moved together. */
static PyObject *block_get_place(PyObject *self, void *unused)
{
    (void)unused;
    gn_memory_block *block = block_of(self)->block;
    return PyLong_FromVoidPtr(block != NULL ? gn_memory_block_peek_address(block) : NULL);
}

static PyMethodDef block_methods[] = {
    {"free", block_free, METH_NOARGS,
     "free($self, /)\n--\n\nFrees the block now; otherwise it goes with the object."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef block_getset[] = {
    {"address", block_get_address, NULL,
     "Where it is. Once asked for, compact() leaves its memory where it is.", NULL},
    {"nbytes", block_get_nbytes, NULL, "Its size, as it was asked for.", NULL},
    {"_place", block_get_place, NULL, "Where it is, to compare; 0 when it was freed.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static const char block_doc[] =
    "A block of memory that is known by this object, and freed with it.\n\n"
    "One in the host's memory can be looked at: memoryview(block).\n\n"
    "Examples\n--------\n"
    ">>> from genesis._C import MemoryManager\n"
    ">>> block = MemoryManager(\"cpu\").allocate_block(1000)\n"
    ">>> block.nbytes\n"
    "1000\n"
    ">>> block.free()\n";

static PyType_Slot block_slots[] = {
    {Py_tp_doc, (void *)block_doc},
    {Py_tp_dealloc, block_dealloc},
    {Py_tp_methods, block_methods},
    {Py_tp_getset, block_getset},
    {Py_bf_getbuffer, block_get_buffer},
    {Py_bf_releasebuffer, block_release_buffer},
    {0, NULL},
};

static PyType_Spec block_spec = {
    .name = "genesis._C.MemoryBlock",
    .basicsize = sizeof(struct block_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = block_slots,
};

/* ---- GraphPool ------------------------------------------------------------------------------ */

struct graph_pool_object {
    PyObject_HEAD gn_memory_pool *pool; /* NULL when it was closed */
    gn_device *device;
};

static struct graph_pool_object *graph_pool_of(PyObject *object)
{
    return (struct graph_pool_object *)object;
}

static PyObject *graph_pool_new(PyTypeObject *class, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"manager", NULL};
    PyObject *object;
    struct module_state *state = module_state_of_class(class);
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O:GraphPool", names, &object))
        return NULL;
    if (!PyObject_TypeCheck(object, (PyTypeObject *)state->manager_class)) {
        PyErr_Format(PyExc_TypeError, "a GraphPool is made of a MemoryManager, not %R",
                     (PyObject *)Py_TYPE(object));
        return NULL;
    }
    gn_memory_manager *manager = manager_of(object)->manager;
    PyObject *made = object_alloc(class);
    if (made == NULL)
        return NULL;
    gn_memory_pool *pool;
    gn_status status;
    CALL_UNLOCKED(status, gn_memory_pool_create(manager, &pool));
    if (status != GN_OK) {
        Py_DECREF(made);
        return error_raise(state, status);
    }
    graph_pool_of(made)->pool = pool;
    graph_pool_of(made)->device = gn_memory_manager_get_device(manager);
    return made;
}

/* Destroys the pool; it stays if that fails. */
static gn_status graph_pool_end(struct graph_pool_object *own)
{
    gn_memory_pool *pool = own->pool;
    own->pool = NULL;
    if (pool == NULL)
        return GN_OK;
    gn_status status;
    CALL_UNLOCKED(status, gn_memory_pool_destroy(pool));
    if (status != GN_OK)
        own->pool = pool;
    return status;
}

static void graph_pool_dealloc(PyObject *self)
{
    gn_memory_pool *pool = graph_pool_of(self)->pool;
    Py_BEGIN_ALLOW_THREADS;
    gn_memory_pool_abandon(pool); /* one with living blocks goes after the last of them */
    Py_END_ALLOW_THREADS;
    object_free(self);
}

static PyObject *graph_pool_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    return none_or_raise(self, graph_pool_end(graph_pool_of(self)));
}

/* Begins or ends a stream's use of the pool. Keeps the interpreter's lock: see the file's head. */
static PyObject *graph_pool_switch(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                   PyObject *keywords, const struct signature *signature,
                                   gn_status (*call)(gn_memory_pool *pool, gn_stream *stream))
{
    struct graph_pool_object *own = graph_pool_of(self);
    PyObject *taken[2];
    gn_stream *stream;
    if (arguments_take(signature, arguments, count, keywords, taken) < 0 ||
        stream_from_python(module_state_of_object(self), taken[0], own->device, &stream) < 0)
        return NULL;
    if (own->pool == NULL) {
        PyErr_SetString(PyExc_ValueError, "the pool is closed");
        return NULL;
    }
    return none_or_raise(self, call(own->pool, stream));
}

static PyObject *graph_pool_begin(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                  PyObject *keywords)
{
    static const struct signature signature = {"begin", {"stream", NULL}, 0};
    return graph_pool_switch(self, arguments, count, keywords, &signature, gn_memory_pool_begin);
}

static PyObject *graph_pool_finish(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                   PyObject *keywords)
{
    static const struct signature signature = {"end", {"stream", NULL}, 0};
    return graph_pool_switch(self, arguments, count, keywords, &signature, gn_memory_pool_end);
}

static PyMethodDef graph_pool_methods[] = {
    {"begin", WITH_VECTOR(graph_pool_begin),
     "begin($self, stream=None)\n--\n\n"
     "From now on allocations for the stream, the current one if none is given, are the pool's."},
    {"end", WITH_VECTOR(graph_pool_finish),
     "end($self, stream=None)\n--\n\nEnds what begin() began for the stream."},
    {"close", graph_pool_close, METH_NOARGS,
     "close($self, /)\n--\n\n"
     "Gives the pool's memory back; after the graph that uses it.\n\n"
     "Raises ValueError while blocks of it live or a stream uses it."},
    {NULL, NULL, 0, NULL},
};

static const char graph_pool_doc[] =
    "GraphPool(manager)\n--\n\n"
    "A pool of its own for the memory that a captured graph uses.\n\n"
    "Nothing in it is handed to anyone else or given back before it is closed.\n\n"
    "Examples\n--------\n"
    ">>> from genesis._C import GraphPool, MemoryManager\n"
    ">>> manager = MemoryManager(\"cpu\")\n"
    ">>> pool = GraphPool(manager)\n"
    ">>> pool.begin()\n"
    ">>> address = manager.allocate_memory(1000)\n"
    ">>> manager.free_memory(address)\n"
    ">>> pool.end()\n"
    ">>> pool.close()\n";

static PyType_Slot graph_pool_slots[] = {
    {Py_tp_doc, (void *)graph_pool_doc},
    {Py_tp_new, graph_pool_new},
    {Py_tp_dealloc, graph_pool_dealloc},
    {Py_tp_methods, graph_pool_methods},
    {0, NULL},
};

static PyType_Spec graph_pool_spec = {
    .name = "genesis._C.GraphPool",
    .basicsize = sizeof(struct graph_pool_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = graph_pool_slots,
};

int memory_classes_init(PyObject *module, struct module_state *state)
{
    state->request_class = PyType_FromModuleAndSpec(module, &request_spec, NULL);
    state->block_class = PyType_FromModuleAndSpec(module, &block_spec, NULL);
    state->graph_pool_class = PyType_FromModuleAndSpec(module, &graph_pool_spec, NULL);
    if (state->request_class == NULL || state->block_class == NULL ||
        state->graph_pool_class == NULL ||
        PyModule_AddObjectRef(module, "MemoryRequest", state->request_class) < 0 ||
        PyModule_AddObjectRef(module, "MemoryBlock", state->block_class) < 0)
        return -1;
    return PyModule_AddObjectRef(module, "GraphPool", state->graph_pool_class);
}
