/*
 * python_history.c: the history of events for Python, and Python's frames for the history.
 *
 * Frames are looked at while memory is allocated, so every nanosecond counts: a frame is its code object and
 * the offset of its instruction, and becomes a name and a line when somebody reads it. The functions that walk
 * frames quickly are exported by every CPython from 3.11 on but are not part of the limited API; where they
 * are missing there are no Python frames.
 */
#include "module.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CPython's own, found at run time. */
static struct {
    PyThreadState *(*thread_state)(void); /* that runs now, or NULL; never fails */
    int (*is_finalizing)(void);
    PyFrameObject *(*frame_back)(PyFrameObject *frame);
    int (*frame_lasti)(PyFrameObject *frame);
    int (*code_line)(PyCodeObject *code, int offset);
} cpython;

#define FIND(field, name) (*(void **)&cpython.field = dlsym(RTLD_DEFAULT, name))

static bool cpython_find(void)
{
    if (FIND(thread_state, "PyThreadState_GetUnchecked") == NULL)
        (void)FIND(thread_state, "_PyThreadState_UncheckedGet"); /* its name before 3.13 */
    if (FIND(is_finalizing, "Py_IsFinalizing") == NULL)
        (void)FIND(is_finalizing, "_Py_IsFinalizing");
    FIND(frame_back, "PyFrame_GetBack");
    FIND(frame_lasti, "PyFrame_GetLasti");
    FIND(code_line, "PyCode_Addr2Line");
    return cpython.thread_state != NULL && cpython.is_finalizing != NULL &&
           cpython.frame_back != NULL && cpython.frame_lasti != NULL && cpython.code_line != NULL;
}

/* ---- frames for the library ----------------------------------------------------------------- */

enum {
    NOT_TAKEN = -1, /* a token: the interpreter's lock was there, or was not needed */
};

/* With the interpreter's lock. */
static size_t frames_walk(gn_history_frame *frames, size_t most)
{
    size_t count = 0;
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF((PyObject *)frame);
    while (frame != NULL && count < most) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        int offset = cpython.frame_lasti(frame);
        frames[count++] = (gn_history_frame){.code = code, .offset = offset > 0 ? offset : 0};
        Py_DECREF(code); /* the frame has it */
        PyFrameObject *back = cpython.frame_back(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF((PyObject *)frame);
    return count;
}

/*
 * A thread that runs Python may have let the interpreter's lock go to compute, as other libraries' operations
 * do: then it is taken for a moment. That is safe here, since whoever allocates holds none of our locks; a
 * program that allocates with a lock of its own held must not wait for that lock with the interpreter's.
 */
static size_t frames_capture(gn_history_frame *frames, size_t most, int *token)
{
    *token = NOT_TAKEN;
    if (!Py_IsInitialized() || cpython.is_finalizing())
        return 0;
    PyThreadState *own = PyGILState_GetThisThreadState();
    if (own == NULL)
        return 0;
    if (cpython.thread_state() == own)
        return frames_walk(frames, most);
    *token = (int)PyGILState_Ensure();
    return frames_walk(frames, most);
}

static void frames_release(int token)
{
    if (token != NOT_TAKEN)
        PyGILState_Release((PyGILState_STATE)token);
}

static void frames_keep(const gn_history_frame *frames, size_t count)
{
    for (size_t i = 0; i < count; i++)
        Py_INCREF((PyObject *)frames[i].code);
}

/* A text attribute of a code object, borrowed from `*holder`, which the caller lets go; "?" if it has none. */
static const char *code_text(PyObject *code, const char *name, PyObject **holder)
{
    *holder = PyObject_GetAttrString(code, name);
    const char *text =
        *holder != NULL && PyUnicode_Check(*holder) ? PyUnicode_AsUTF8AndSize(*holder, NULL) : NULL;
    if (text == NULL)
        PyErr_Clear();
    return text != NULL ? text : "?";
}

/* What the files of this package begin with; empty where that is not known. */
static char own_directory[1024];

/* Functions of this package are not who allocates: whoever has called them is. */
static bool frame_describe(const gn_history_frame *frame, char *buffer, size_t size)
{
    if (!Py_IsInitialized())
        return false;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *type, *value, *traceback, *name, *file;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *code = (PyObject *)frame->code;
    const char *function = code_text(code, "co_qualname", &name);
    const char *path = code_text(code, "co_filename", &file);
    (void)snprintf(buffer, size, "%s (%s:%d)", function, path,
                   cpython.code_line((PyCodeObject *)code, frame->offset));
    size_t length = strlen(own_directory);
    bool is_own = length > 0 && strncmp(path, own_directory, length) == 0;
    Py_XDECREF(name);
    Py_XDECREF(file);
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(gil);
    return !is_own;
}

static void own_directory_find(PyObject *module)
{
    PyObject *file = PyModule_GetFilenameObject(module);
    const char *path = file != NULL ? PyUnicode_AsUTF8AndSize(file, NULL) : NULL;
    const char *name = path != NULL ? strrchr(path, '/') : NULL;
    if (name != NULL && (size_t)(name + 1 - path) < sizeof own_directory)
        memcpy(own_directory, path, (size_t)(name + 1 - path)); /* the rest is 0 */
    Py_XDECREF(file);
    PyErr_Clear();
}

static const gn_history_interpreter interpreter = {.capture = frames_capture,
                                                   .release = frames_release,
                                                   .keep = frames_keep,
                                                   .describe = frame_describe};

void history_init(PyObject *module)
{
    own_directory_find(module);
    if (cpython_find())
        gn_history_set_interpreter(&interpreter);
}

/* ---- for Python ----------------------------------------------------------------------------- */

static PyObject *history_start(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"events", "python_frames", "c_frames", NULL};
    Py_ssize_t events = 0;
    int python_frames = 0, c_frames = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|nii:history_start", names, &events,
                                     &python_frames, &c_frames))
        return NULL;
    if (events < 0 || python_frames < 0 || c_frames < 0) {
        PyErr_SetString(PyExc_ValueError, "numbers of events and frames are not negative");
        return NULL;
    }
    gn_history_options options = {.events_most = (size_t)events,
                                  .python_frames = (unsigned)python_frames,
                                  .c_frames = (unsigned)c_frames};
    gn_status status = gn_history_start(&options);
    if (status != GN_OK)
        return error_raise(module_state_of(module), status);
    Py_RETURN_NONE;
}

static PyObject *history_stop(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    gn_history_stop();
    Py_RETURN_NONE;
}

static PyObject *history_is_on(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(gn_history_is_on());
}

static PyObject *history_read(PyObject *module, PyObject *unused)
{
    (void)unused;
    size_t count = 0, read = 0;
    uint64_t lost = 0;
    gn_status status;
    CALL_UNLOCKED(status, gn_history_read(NULL, 0, &count, &lost));
    if (status != GN_OK)
        return error_raise(module_state_of(module), status);
    /* What other threads add meanwhile is for the next time; what they overwrite, is lost. */
    PyObject *bytes =
        PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * sizeof(gn_history_event)));
    if (bytes == NULL)
        return NULL;
    gn_history_event *events = (gn_history_event *)(void *)PyBytes_AsString(bytes);
    CALL_UNLOCKED(status, gn_history_read(events, count, &read, &lost));
    if (status != GN_OK) {
        Py_DECREF(bytes);
        return error_raise(module_state_of(module), status);
    }
    if (read < count) { /* another recording has started meanwhile */
        PyObject *part =
            PyBytes_FromStringAndSize((const char *)events, (Py_ssize_t)(read * sizeof *events));
        Py_DECREF(bytes);
        bytes = part;
    }
    return bytes != NULL ? Py_BuildValue("NK", bytes, (unsigned long long)lost) : NULL;
}

/* ("python", name, file, line) or ("c", function, file, address); what is not known is None or 0. */
static PyObject *frame_to_python(const gn_history_frame *frame)
{
    if (frame->offset >= 0) {
        PyObject *code = (PyObject *)frame->code;
        return Py_BuildValue("sNNi", "python", PyObject_GetAttrString(code, "co_qualname"),
                             PyObject_GetAttrString(code, "co_filename"),
                             cpython.code_line((PyCodeObject *)code, frame->offset));
    }
    const char *file, *function;
    uint64_t address;
    if (!gn_history_find_code(frame->code, &file, &function, &address))
        return Py_BuildValue("sOOK", "c", Py_None, Py_None,
                             (unsigned long long)(uintptr_t)frame->code);
    PyObject *name = function != NULL ? text_to_python(function) : Py_NewRef(Py_None);
    return Py_BuildValue("sNNK", "c", name, text_to_python(file), (unsigned long long)address);
}

static PyObject *history_stack(PyObject *module, PyObject *number)
{
    size_t site, count = 0;
    gn_history_frame frames[GN_HISTORY_FRAMES_MOST];
    if (size_from_python(number, "a site", &site) < 0)
        return NULL;
    gn_status status = gn_history_get_stack(site <= UINT32_MAX ? (uint32_t)site : UINT32_MAX,
                                            frames, GN_HISTORY_FRAMES_MOST, &count);
    if (status != GN_OK)
        return error_raise(module_state_of(module), status);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < count && i < GN_HISTORY_FRAMES_MOST; i++)
        (void)list_append(&list, frame_to_python(&frames[i]));
    return list;
}

static PyObject *history_name(PyObject *module, PyObject *number)
{
    (void)module;
    size_t annotation;
    if (size_from_python(number, "an annotation", &annotation) < 0)
        return NULL;
    const char *name = annotation <= UINT32_MAX ? gn_history_get_name((uint32_t)annotation) : NULL;
    if (name == NULL)
        return PyErr_Format(PyExc_ValueError, "there is no annotation %zu", annotation);
    return text_to_python(name);
}

static PyObject *word_say(PyObject *module, PyObject *text, gn_status (*say)(const char *))
{
    const char *name = text_from_python(text);
    if (name == NULL)
        return NULL;
    gn_status status = say(name);
    if (status != GN_OK)
        return error_raise(module_state_of(module), status);
    Py_RETURN_NONE;
}

static PyObject *history_mark(PyObject *module, PyObject *text)
{
    return word_say(module, text, gn_history_mark);
}

static PyObject *history_begin(PyObject *module, PyObject *text)
{
    return word_say(module, text, gn_history_begin);
}

static PyObject *history_end(PyObject *module, PyObject *unused)
{
    (void)unused;
    gn_status status = gn_history_end();
    if (status != GN_OK)
        return error_raise(module_state_of(module), status);
    Py_RETURN_NONE;
}

PyMethodDef history_functions[] = {
    {"history_start", WITH_KEYWORDS(history_start),
     "history_start($module, /, events=0, python_frames=0, c_frames=0)\n--\n\n"
     "Forgets the events so far, and records from now on; events: how many each thread keeps."},
    {"history_stop", history_stop, METH_NOARGS,
     "history_stop($module, /)\n--\n\nStops recording; the events stay."},
    {"history_is_on", history_is_on, METH_NOARGS,
     "history_is_on($module, /)\n--\n\nWhether events or sites are recorded."},
    {"history_read", history_read, METH_NOARGS,
     "history_read($module, /)\n--\n\n"
     "The events of all threads, packed and oldest first, and how many were lost."},
    {"history_stack", history_stack, METH_O,
     "history_stack($module, site, /)\n--\n\nThe frames of a site, innermost first."},
    {"history_name", history_name, METH_O,
     "history_name($module, annotation, /)\n--\n\nThe name of an annotation or mark."},
    {"history_mark", history_mark, METH_O,
     "history_mark($module, name, /)\n--\n\nRecords a moment with a name."},
    {"history_begin", history_begin, METH_O,
     "history_begin($module, name, /)\n--\n\nBegins an annotation of this thread."},
    {"history_end", history_end, METH_NOARGS,
     "history_end($module, /)\n--\n\nEnds the innermost annotation of this thread."},
    {NULL, NULL, 0, NULL},
};
