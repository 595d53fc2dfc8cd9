/*
 * python_profile.c: how long kernels took, for Python.
 *
 * The library says in any thread, with any of its locks held, that something has become known. The interpreter's lock
 * must not be waited for there: whoever has it may be waiting for one of those locks. So the interpreter is only asked
 * to call the listener when it comes to it, in the main thread, between two instructions.
 */
#include "module.h"

#include <stdatomic.h>

enum {
    TAKEN_AT_ONCE = 64,
};

static PyObject *listener; /* NULL: none. With the interpreter's lock */
static atomic_bool is_told;

static int listener_call(void *unused)
{
    (void)unused;
    atomic_store(&is_told, false);
    if (listener == NULL)
        return 0;
    PyObject *called = Py_NewRef(listener);
    PyObject *result = PyObject_CallNoArgs(called);
    if (result == NULL)
        PyErr_WriteUnraisable(called); /* it would appear in whatever runs now */
    Py_XDECREF(result);
    Py_DECREF(called);
    return 0;
}

static void listener_tell(void)
{
    if (!atomic_exchange(&is_told, true) && Py_AddPendingCall(listener_call, NULL) < 0)
        atomic_store(&is_told, false); /* too many others wait; the next run tells it again */
}

static PyObject *profile_set_listener(PyObject *module, PyObject *callable)
{
    (void)module;
    PyObject *before = listener;
    listener = callable != Py_None ? Py_NewRef(callable) : NULL;
    Py_XDECREF(before);
    gn_profile_set_hook(listener != NULL ? listener_tell : NULL);
    Py_RETURN_NONE;
}

static PyObject *profile_enable(PyObject *module, PyObject *is_on)
{
    int value = PyObject_IsTrue(is_on);
    if (value < 0)
        return NULL;
    gn_status status;
    CALL_UNLOCKED(status, gn_profile_enable(value != 0));
    if (status != GN_OK)
        return error_raise(module_state_of(module), status);
    Py_RETURN_NONE;
}

static PyObject *profile_wait(PyObject *module, PyObject *unused)
{
    (void)unused;
    gn_status status;
    CALL_IN_ORDER(status, gn_profile_wait());
    if (status != GN_OK)
        return error_raise(module_state_of(module), status);
    Py_RETURN_NONE;
}

static PyObject *run_to_python(const gn_kernel_run *run)
{
    return Py_BuildValue("(siK(III)(III)nKKd)", run->name, run->device,
                         (unsigned long long)run->stream_id, run->grid[0], run->grid[1],
                         run->grid[2], run->block[0], run->block[1], run->block[2],
                         (Py_ssize_t)run->shared_bytes, (unsigned long long)run->submitted_ns,
                         (unsigned long long)run->start_ns, run->duration_ms);
}

static int runs_append(PyObject *list, const gn_kernel_run *runs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        PyObject *run = run_to_python(&runs[i]);
        int result = run != NULL ? PyList_Append(list, run) : -1;
        Py_XDECREF(run);
        if (result < 0)
            return -1;
    }
    return 0;
}

static PyObject *profile_take(PyObject *module, PyObject *unused)
{
    (void)unused;
    gn_kernel_run runs[TAKEN_AT_ONCE];
    size_t count = TAKEN_AT_ONCE;
    PyObject *list = PyList_New(0);
    while (list != NULL && count == TAKEN_AT_ONCE) {
        gn_status status;
        CALL_UNLOCKED(status, gn_profile_take(runs, TAKEN_AT_ONCE, &count));
        if (status != GN_OK)
            (void)error_raise(module_state_of(module), status);
        if (status != GN_OK || runs_append(list, runs, count) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *profile_lost_count(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromUnsignedLongLong(gn_profile_get_lost_count());
}

static PyObject *explain_begin(PyObject *module, PyObject *unused)
{
    (void)unused;
    gn_status status = gn_explain_begin();
    if (status != GN_OK)
        return error_raise(module_state_of(module), status);
    Py_RETURN_NONE;
}

static void text_take(void *context, const char *json, size_t length)
{
    *(PyObject **)context = PyUnicode_DecodeUTF8(json, (Py_ssize_t)length, "replace");
}

static PyObject *explain_end(PyObject *module, PyObject *unused)
{
    PyObject *text = NULL;
    (void)unused;
    gn_status status = gn_explain_end(text_take, &text);
    return status == GN_OK ? text : error_raise(module_state_of(module), status);
}

PyMethodDef profile_functions[] = {
    {"_explain_begin", explain_begin, METH_NOARGS, NULL},
    {"_explain_end", explain_end, METH_NOARGS, NULL},
    {"profile_enable", profile_enable, METH_O,
     "profile_enable($module, is_on, /)\n--\n\nWhether launches of kernels are measured."},
    {"profile_wait", profile_wait, METH_NOARGS,
     "profile_wait($module, /)\n--\n\nWaits for the launches that are being measured."},
    {"profile_take", profile_take, METH_NOARGS,
     "profile_take($module, /)\n--\n\n"
     "The runs that are known and were not taken yet: (name, device, stream, grid, block,\n"
     "shared_bytes, submitted_ns, start_ns, duration_ms)."},
    {"profile_lost_count", profile_lost_count, METH_NOARGS,
     "profile_lost_count($module, /)\n--\n\nHow many runs could not be measured or kept."},
    {"profile_set_listener", profile_set_listener, METH_O,
     "profile_set_listener($module, callable, /)\n--\n\n"
     "What the main thread calls soon after runs have become known; None removes it."},
    {NULL, NULL, 0, NULL},
};
