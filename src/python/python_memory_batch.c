/*
 * python_memory_batch.c: many blocks at a time, blocks ahead of time, and giving memory back.
 */
#include "module.h"

#include <stdlib.h>

/* ---- many, and ahead of time ---------------------------------------------------------------- */

/* The numbers of an iterable, in memory that the caller frees; NULL and an exception on failure. A text is one size,
 * not an iterable of its letters. */
static size_t *sizes_from_python(PyObject *object, const char *what,
                                 int (*take)(PyObject *, const char *, size_t *), size_t *count)
{
    if (PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s is of a list, not %R", what, object);
        return NULL;
    }
    PyObject *items = iterable_take(object);
    if (items == NULL)
        return NULL;
    *count = (size_t)PyTuple_Size(items);
    size_t *sizes = calloc(*count + 1, sizeof *sizes);
    if (sizes == NULL)
        PyErr_NoMemory();
    for (size_t i = 0; sizes != NULL && i < *count; i++) {
        if (take(PyTuple_GetItem(items, (Py_ssize_t)i), what, &sizes[i]) == 0)
            continue;
        free(sizes);
        sizes = NULL;
    }
    Py_DECREF(items);
    return sizes;
}

/* A list of the addresses; frees the blocks if there is no room for it. */
static PyObject *batch_to_python(gn_memory_manager *manager, void *const *pointers, size_t count)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < count; i++)
        (void)list_append(&list, PyLong_FromVoidPtr(pointers[i]));
    for (size_t i = 0; list == NULL && i < count; i++) {
        gn_status status = gn_memory_free(manager, pointers[i]);
        (void)status;
    }
    return list;
}

PyObject *manager_allocate_batch(PyObject *self, PyObject *const *arguments,
                                 Py_ssize_t argument_count, PyObject *keywords)
{
    static const struct signature signature = {"allocate_batch", {"sizes", "stream"}, 1};
    PyObject *taken[2];
    struct manager_object *own = manager_of(self);
    gn_stream *stream;
    if (arguments_take(&signature, arguments, argument_count, keywords, taken) < 0 ||
        stream_take(own->state, own->manager, taken[1], &stream) < 0)
        return NULL;
    size_t count;
    size_t *sizes = sizes_from_python(taken[0], "a size", nbytes_take, &count);
    if (sizes == NULL)
        return NULL;
    PyObject *list = NULL;
    void **pointers = calloc(count + 1, sizeof *pointers);
    gn_status status = GN_OK;
    if (pointers == NULL)
        PyErr_NoMemory();
    else if (count > 0)
        CALL_ALLOCATING(status,
                        gn_memory_alloc_batch(own->manager, count, sizes, stream, pointers));
    if (status != GN_OK)
        error_raise(own->state, status);
    else if (pointers != NULL)
        list = batch_to_python(own->manager, pointers, count);
    free(pointers);
    free(sizes);
    return list;
}

PyObject *manager_warmup_cache(PyObject *self, PyObject *const *arguments,
                               Py_ssize_t argument_count, PyObject *keywords)
{
    static const struct signature signature = {"warmup_cache", {"sizes", "counts"}, 2};
    PyObject *taken[2];
    if (arguments_take(&signature, arguments, argument_count, keywords, taken) < 0)
        return NULL;
    size_t size_count, count_count = 0;
    size_t *sizes = sizes_from_python(taken[0], "a size", nbytes_take, &size_count);
    size_t *counts =
        sizes != NULL ? sizes_from_python(taken[1], "a count", size_take, &count_count) : NULL;
    PyObject *result = NULL;
    gn_status status = GN_OK;
    if (counts != NULL && size_count != count_count)
        PyErr_Format(PyExc_ValueError, "there are %zu sizes and %zu counts: one is for the other",
                     size_count, count_count);
    else if (counts != NULL) {
        if (size_count > 0)
            CALL_UNLOCKED(status,
                          gn_memory_warm_up(manager_of(self)->manager, size_count, sizes, counts));
        result = none_or_raise(self, status);
    }
    free(counts);
    free(sizes);
    return result;
}

PyObject *manager_allocate_async(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                 PyObject *keywords)
{
    static const struct signature signature = {"allocate_async", {"nbytes", "stream"}, 1};
    PyObject *taken[2];
    struct manager_object *own = manager_of(self);
    size_t nbytes;
    gn_stream *stream;
    if (arguments_take(&signature, arguments, count, keywords, taken) < 0 ||
        nbytes_take(taken[0], "nbytes", &nbytes) < 0 ||
        stream_take(own->state, own->manager, taken[1], &stream) < 0)
        return NULL;
    gn_memory_request *request;
    gn_status status;
    CALL_ALLOCATING(status, gn_memory_request_start(own->manager, nbytes, stream, &request));
    return status == GN_OK ? request_to_python(own->state, request)
                           : error_raise(own->state, status);
}

/* ---- giving back ---------------------------------------------------------------------------- */

PyObject *manager_collect(PyObject *self, PyObject *unused)
{
    (void)unused;
    gn_status status;
    CALL_UNLOCKED(status, gn_memory_collect(manager_of(self)->manager));
    return none_or_raise(self, status);
}

PyObject *manager_coalesce(PyObject *self, PyObject *unused)
{
    (void)unused;
    size_t merged;
    gn_status status;
    CALL_UNLOCKED(status, gn_memory_coalesce(manager_of(self)->manager, &merged));
    return status == GN_OK ? PyLong_FromSize_t(merged)
                           : error_raise(manager_of(self)->state, status);
}

PyObject *manager_trim(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                       PyObject *keywords)
{
    static const struct signature signature = {"trim", {"keep_bytes", NULL}, 0};
    PyObject *taken[2];
    size_t keep_bytes = 0, released;
    if (arguments_take(&signature, arguments, count, keywords, taken) < 0 ||
        (taken[0] != Py_None && nbytes_take(taken[0], "keep_bytes", &keep_bytes) < 0))
        return NULL;
    gn_status status;
    CALL_UNLOCKED(status, gn_memory_trim(manager_of(self)->manager, keep_bytes, &released));
    if (status == GN_ERROR_CAPTURE) /* nothing can go back before the graph is whole */
        return PyLong_FromLong(0);
    return status == GN_OK ? PyLong_FromSize_t(released)
                           : error_raise(manager_of(self)->state, status);
}

PyObject *manager_reset_peaks(PyObject *self, PyObject *unused)
{
    (void)unused;
    return none_or_raise(self, gn_memory_reset_peaks(manager_of(self)->manager));
}
