/*
 * python_hooks.c: functions of the program's in the graph of gradients: hooks of tensors, gradients of operations of one's
 * own, and what stands for saved values.
 *
 * The library calls them in the thread that walks or records, with or without the interpreter's lock. An exception is kept
 * by the thread until the call that led there returns with a failure: error_raise_in() gives it on.
 */
#include "module.h"

#include <limits.h>

/* ---- exceptions ------------------------------------------------------------------------------ */

static _Thread_local struct {
    PyObject *type, *value, *traceback;
} kept;

/* Keeps the thread's exception; the status is that of a hook that raised. */
static gn_status exception_keep(void)
{
    PyObject *type = kept.type, *value = kept.value, *traceback = kept.traceback;
    PyErr_Fetch(&kept.type, &kept.value, &kept.traceback);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return GN_ERROR_UNSUPPORTED;
}

bool hook_exception_restore(void)
{
    if (kept.type == NULL)
        return false;
    PyErr_Restore(kept.type, kept.value, kept.traceback);
    kept.type = kept.value = kept.traceback = NULL;
    return true;
}

/* ---- calls from the library ------------------------------------------------------------------ */

static struct module_state *hook_state; /* of the only module; borrowed */

/* A new reference to a Python Tensor for a borrowed tensor; None for NULL. */
static PyObject *tensor_show(gn_tensor *tensor)
{
    if (tensor == NULL)
        return Py_NewRef(Py_None);
    gn_tensor_retain(tensor);
    return tensor_find_python(hook_state, tensor);
}

static PyObject *tensors_show(int count, gn_tensor *const *tensors)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple != NULL && i < count; i++) {
        PyObject *one = tensor_show(tensors[i]);
        if (one == NULL || PyTuple_SetItem(tuple, i, one) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* The tensor of an answer: a new reference, or NULL for None. */
static int answer_take(PyObject *answer, const char *what, gn_tensor **tensor)
{
    *tensor = NULL;
    if (answer == Py_None)
        return 0;
    if (!tensor_check(hook_state, answer)) {
        PyErr_Format(PyExc_TypeError, "%s gives a Tensor or None, not %R", what, answer);
        return -1;
    }
    *tensor = tensor_of(answer);
    gn_tensor_retain(*tensor);
    return 0;
}

/* Calls a function of one argument, whose reference is taken over; NULL is an exception already. */
static PyObject *function_call(PyObject *function, PyObject *argument)
{
    if (argument == NULL)
        return NULL;
    PyObject *answer = PyObject_CallFunctionObjArgs(function, argument, NULL);
    Py_DECREF(argument);
    return answer;
}

static gn_status hook_call(void *context, gn_tensor *tensor, gn_tensor **replacement)
{
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *answer = function_call(context, tensor_show(tensor));
    gn_status status = GN_OK;
    if (answer == NULL || answer_take(answer, "a hook", replacement) < 0)
        status = exception_keep();
    Py_XDECREF(answer);
    PyGILState_Release(lock);
    return status;
}

/* The same for one whose answer does not count. */
static gn_status notice_call(void *context, gn_tensor *tensor, gn_tensor **replacement)
{
    (void)replacement;
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *answer = function_call(context, tensor_show(tensor));
    gn_status status = answer != NULL ? GN_OK : exception_keep();
    Py_XDECREF(answer);
    PyGILState_Release(lock);
    return status;
}

static void context_end(void *context)
{
    if (!Py_IsInitialized())
        return;
    PyGILState_STATE lock = PyGILState_Ensure();
    Py_DECREF((PyObject *)context);
    PyGILState_Release(lock);
}

/* ---- hooks of tensors ------------------------------------------------------------------------ */

struct handle_object {
    PyObject_HEAD gn_hook *hook;
};

static void handle_free(PyObject *self)
{
    gn_hook_release(((struct handle_object *)self)->hook);
    object_free(self);
}

static PyObject *handle_remove(PyObject *self, PyObject *unused)
{
    (void)unused;
    gn_hook_remove(((struct handle_object *)self)->hook);
    Py_RETURN_NONE;
}

static PyObject *handle_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

static PyObject *handle_exit(PyObject *self, PyObject *arguments)
{
    (void)arguments;
    return handle_remove(self, NULL);
}

static PyMethodDef handle_methods[] = {
    {"remove", handle_remove, METH_NOARGS, "remove($self, /)\n--\n\nThe hook is called no more."},
    {"__enter__", handle_enter, METH_NOARGS, "__enter__($self, /)\n--\n\nThe handle itself."},
    {"__exit__", handle_exit, METH_VARARGS, "__exit__($self, /, *exception)\n--\n\nremove()."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot handle_slots[] = {
    {Py_tp_doc, "What removes a hook: ``Tensor.register_hook()`` gives it."},
    {Py_tp_dealloc, handle_free},
    {Py_tp_methods, handle_methods},
    {0, NULL},
};

static PyType_Spec handle_spec = {
    .name = "genesis.autograd.RemovableHandle",
    .basicsize = sizeof(struct handle_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = handle_slots,
};

static PyObject *hook_register(PyObject *self, PyObject *function, gn_hook_kind kind,
                               const char *name)
{
    if (!PyCallable_Check(function)) {
        PyErr_Format(PyExc_TypeError, "%s: a hook is a function, not %R", name, function);
        return NULL;
    }
    struct handle_object *handle =
        (struct handle_object *)object_alloc((PyTypeObject *)hook_state->handle_class);
    if (handle == NULL)
        return NULL;
    gn_status status = gn_tensor_add_hook(tensor_of(self), kind,
                                          kind == GN_HOOK_GRADIENT ? hook_call : notice_call,
                                          Py_NewRef(function), context_end, &handle->hook);
    if (status == GN_OK)
        return (PyObject *)handle;
    Py_DECREF(function);
    Py_DECREF((PyObject *)handle);
    return gradient_raise(hook_state, name, status);
}

static PyObject *method_register_hook(PyObject *self, PyObject *function)
{
    return hook_register(self, function, GN_HOOK_GRADIENT, "register_hook");
}

static PyObject *method_register_accumulated(PyObject *self, PyObject *function)
{
    return hook_register(self, function, GN_HOOK_ACCUMULATED, "register_post_accumulate_grad_hook");
}

/* ---- operations of one's own ------------------------------------------------------------------- */

/* What the library has of such an operation. */
struct custom {
    PyObject *backward; /* called with (saved, given, needed): gives a tuple of gradients */
    int result_count, input_count, saved_count;
};

/* The gradients that a function of the program's gave: as many as there are inputs. */
static int gradients_take(const struct custom *custom, PyObject *answer, const bool *needed,
                          gn_tensor **gradients)
{
    if (!PyTuple_Check(answer) || PyTuple_Size(answer) != custom->input_count) {
        PyErr_Format(PyExc_RuntimeError, "backward must give a tuple of %d gradients, not %R",
                     custom->input_count, answer);
        return -1;
    }
    for (int i = 0; i < custom->input_count; i++)
        if (needed[i] && answer_take(PyTuple_GetItem(answer, i), "backward", &gradients[i]) < 0)
            return -1;
    return 0;
}

static PyObject *needed_show(int count, const bool *needed)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple != NULL && i < count; i++)
        if (PyTuple_SetItem(tuple, i, PyBool_FromLong(needed[i])) < 0)
            Py_CLEAR(tuple);
    return tuple;
}

static gn_status custom_call(void *context, gn_tensor *const *saved, gn_tensor *const *given,
                             const bool *needed, gn_tensor **gradients)
{
    const struct custom *custom = context;
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *parts[] = {tensors_show(custom->saved_count, saved),
                         tensors_show(custom->result_count, given),
                         needed_show(custom->input_count, needed)};
    PyObject *answer = NULL;
    if (parts[0] != NULL && parts[1] != NULL && parts[2] != NULL)
        answer = PyObject_CallFunctionObjArgs(custom->backward, parts[0], parts[1], parts[2], NULL);
    gn_status status = GN_OK;
    if (answer == NULL || gradients_take(custom, answer, needed, gradients) < 0)
        status = exception_keep();
    Py_XDECREF(answer);
    for (int i = 0; i < 3; i++)
        Py_XDECREF(parts[i]);
    PyGILState_Release(lock);
    return status;
}

static void custom_end(void *context)
{
    struct custom *custom = context;
    if (!Py_IsInitialized())
        return;
    PyGILState_STATE lock = PyGILState_Ensure();
    Py_DECREF(custom->backward);
    PyMem_Free(custom);
    PyGILState_Release(lock);
}

/* The tensors of a tuple, NULL for other things if `has_others`. The caller frees the array. */
static gn_tensor **tuple_take(PyObject *tuple, bool has_others)
{
    Py_ssize_t count = PyTuple_Size(tuple);
    gn_tensor **tensors = PyMem_Calloc((size_t)count + 1, sizeof *tensors);
    if (tensors == NULL)
        return (gn_tensor **)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *one = PyTuple_GetItem(tuple, i);
        if (tensor_check(hook_state, one)) {
            tensors[i] = tensor_of(one);
        } else if (!has_others) {
            PyErr_Format(PyExc_TypeError, "%R is not a Tensor", one);
            PyMem_Free(tensors);
            return NULL;
        }
    }
    return tensors;
}

/* The results, as Tensors: those that are as they were are the same objects. */
static PyObject *results_show(PyObject *objects, gn_tensor **results)
{
    Py_ssize_t count = PyTuple_Size(objects);
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *one = PyTuple_GetItem(objects, i);
        bool is_same = tensor_of(one) == results[i];
        if (tuple == NULL) {
            gn_tensor_release(results[i]);
            continue;
        }
        one = is_same ? Py_NewRef(one) : tensor_find_python(hook_state, results[i]);
        if (is_same)
            gn_tensor_release(results[i]);
        if (one == NULL || PyTuple_SetItem(tuple, i, one) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *custom_record(const char *name, PyObject *backward, PyObject *const *tuples,
                               gn_tensor **const *tensors)
{
    struct custom *custom = PyMem_Malloc(sizeof *custom);
    if (custom == NULL)
        return PyErr_NoMemory();
    int counts[3];
    for (int i = 0; i < 3; i++)
        counts[i] = PyTuple_Size(tuples[i]) < INT_MAX ? (int)PyTuple_Size(tuples[i]) : INT_MAX;
    *custom = (struct custom){Py_NewRef(backward), counts[1], counts[0], counts[2]};
    const gn_custom_gradient gradient = {
        .name = name, .call = custom_call, .deleter = custom_end, .context = custom};
    for (int i = 0; i < counts[1]; i++)
        gn_tensor_retain(tensors[1][i]);
    bool is_taken_over = false;
    gn_status status;
    CALL_ALLOCATING(status, gn_record_custom(&gradient, counts[0], tensors[0], counts[1],
                                             tensors[1], counts[2], tensors[2], &is_taken_over));
    if (!is_taken_over)
        custom_end(custom);
    if (status == GN_OK)
        return results_show(tuples[1], tensors[1]);
    for (int i = 0; i < counts[1]; i++)
        gn_tensor_release(tensors[1][i]);
    return gradient_raise(hook_state, name, status);
}

/* _record_custom(name, backward, inputs, results, saved): gives the results. */
static PyObject *record_custom(PyObject *module, PyObject *arguments)
{
    (void)module;
    const char *name;
    PyObject *backward, *tuples[3], *made = NULL;
    gn_tensor **tensors[3] = {NULL};
    if (!PyArg_ParseTuple(arguments, "sOO!O!O!:_record_custom", &name, &backward, &PyTuple_Type,
                          &tuples[0], &PyTuple_Type, &tuples[1], &PyTuple_Type, &tuples[2]))
        return NULL;
    bool is_taken = true;
    for (int i = 0; i < 3 && is_taken; i++)
        is_taken = (tensors[i] = tuple_take(tuples[i], i == 0)) != NULL;
    if (is_taken)
        made = custom_record(name, backward, tuples, tensors);
    for (int i = 0; i < 3; i++)
        PyMem_Free(tensors[i]);
    return made;
}

/* ---- saved values ------------------------------------------------------------------------------ */

/* Of a saved value: what pack() gave, and who unpacks it. */
static gn_status value_pack(void *context, gn_tensor *tensor, void **packed)
{
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *pair = context; /* (pack, unpack) */
    PyObject *answer = function_call(PyTuple_GetItem(pair, 0), tensor_show(tensor));
    *packed = answer != NULL ? PyTuple_Pack(2, answer, PyTuple_GetItem(pair, 1)) : NULL;
    Py_XDECREF(answer);
    gn_status status = *packed != NULL ? GN_OK : exception_keep();
    PyGILState_Release(lock);
    return status;
}

static gn_status value_unpack(void *context, void *packed, gn_tensor **tensor)
{
    (void)context;
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *answer =
        function_call(PyTuple_GetItem(packed, 1), Py_NewRef(PyTuple_GetItem(packed, 0)));
    gn_status status = GN_OK;
    if (answer == NULL || answer_take(answer, "a hook that unpacks", tensor) < 0)
        status = exception_keep();
    Py_XDECREF(answer);
    PyGILState_Release(lock);
    return status;
}

static void packed_end(void *context, void *packed)
{
    (void)context;
    context_end(packed);
}

/* _push_saved_hooks((pack, unpack)): the caller keeps the tuple until the pop. */
static PyObject *push_saved_hooks(PyObject *module, PyObject *pair)
{
    (void)module;
    if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2) {
        PyErr_SetString(PyExc_TypeError, "_push_saved_hooks: a tuple of two functions is expected");
        return NULL;
    }
    gn_status status = gn_saved_hooks_push(
        &(gn_saved_hooks){value_pack, value_unpack, packed_end, .context = pair});
    if (status != GN_OK)
        return error_raise(hook_state, status);
    Py_RETURN_NONE;
}

static PyObject *pop_saved_hooks(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    gn_saved_hooks_pop();
    Py_RETURN_NONE;
}

/* ---- the module ------------------------------------------------------------------------------- */

static PyMethodDef tensor_hook_methods[] = {
    {"register_hook", method_register_hook, METH_O,
     "register_hook($self, hook, /)\n--\n\n"
     "Calls a function with the tensor's gradient in each backward pass; what it gives, if not\n"
     "None, is used instead. ``remove()`` of the result ends it.\n\n"
     "Examples\n--------\n>>> import genesis\n"
     ">>> x = genesis.tensor([1.0, 2.0], requires_grad=True)\n"
     ">>> handle = x.register_hook(lambda gradient: gradient * 10)\n"
     ">>> x.sum().backward()\n>>> x.grad\ntensor([10., 10.])\n>>> handle.remove()\n"},
    {"register_post_accumulate_grad_hook", method_register_accumulated, METH_O,
     "register_post_accumulate_grad_hook($self, hook, /)\n--\n\n"
     "Calls a function with this leaf after a backward pass has added to its gradient.\n\n"
     "Examples\n--------\n>>> import genesis\n"
     ">>> x = genesis.tensor([1.0, 2.0], requires_grad=True)\n"
     ">>> handle = x.register_post_accumulate_grad_hook(lambda x: print(x.grad))\n"
     ">>> x.sum().backward()\ntensor([1., 1.])\n"},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef hook_functions[] = {
    {"_record_custom", record_custom, METH_VARARGS,
     "_record_custom($module, name, backward, inputs, results, saved, /)\n--\n\n"
     "Records an operation of the program's own; gives its results."},
    {"_push_saved_hooks", push_saved_hooks, METH_O,
     "_push_saved_hooks($module, pair, /)\n--\n\nValues are packed by these two from now on."},
    {"_pop_saved_hooks", pop_saved_hooks, METH_NOARGS,
     "_pop_saved_hooks($module, /)\n--\n\nAnd by those before from now on."},
    {NULL, NULL, 0, NULL},
};

int hooks_init(PyObject *module, struct module_state *state)
{
    hook_state = state;
    state->handle_class = PyType_FromModuleAndSpec(module, &handle_spec, NULL);
    if (state->handle_class == NULL ||
        PyModule_AddType(module, (PyTypeObject *)state->handle_class) < 0 ||
        methods_add(state->tensor_class, tensor_hook_methods) < 0)
        return -1;
    return PyModule_AddFunctions(module, hook_functions);
}
