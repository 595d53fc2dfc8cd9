/*
 * python_modules.c: what genesis.nn.Module does at each call: the call itself, and attributes that are parameters.
 *
 * Module is a class of Python. These two are its methods: `__call__`, which calls forward() at once where there are no
 * hooks, and `__getattr__`, which finds parameters, buffers and modules by name. They are descriptors of `object`, so
 * that the class needs no base of ours, and has a __dict__ as other classes of Python do.
 *
 * Python calls `__getattr__` after it has looked everywhere else, and before 3.12 after it has made an exception. So a
 * class gets a descriptor for each such name (_ModuleAttribute), which Python finds first: it looks where `__getattr__`
 * would. Without it everything works the same, more slowly. On the class itself the name is not there.
 */
#include "module.h"

enum name {
    NAME_PARAMETERS,
    NAME_BUFFERS,
    NAME_MODULES,
    NAME_HOOKS, /* the first of the dictionaries of hooks that calls look at */
    NAME_FORWARD = NAME_HOOKS + 4,
    NAME_HOOKED_CALL,
    NAME_COUNT,
};

/* Interned, for the life of the process. */
static PyObject *names[NAME_COUNT];
static bool has_global_hooks; /* with the interpreter's lock */

/* A dictionary of the object's, borrowed; NULL without an exception if it has none, or no such one. */
static PyObject *part_of(PyObject *attributes, enum name name)
{
    PyObject *part = PyDict_GetItemWithError(attributes, names[name]);
    return part != NULL && PyDict_Check(part) ? part : NULL;
}

/* A part's item of this name, borrowed; NULL, perhaps with an exception. */
static PyObject *part_get(PyObject *attributes, enum name part, PyObject *name)
{
    PyObject *items = part_of(attributes, part);
    return items != NULL ? PyDict_GetItemWithError(items, name) : NULL;
}

static PyObject *attribute_missing(PyObject *self, PyObject *name)
{
    PyObject *class = PyType_GetName(Py_TYPE(self));
    PyObject *text = class != NULL
                         ? PyUnicode_FromFormat("'%U' object has no attribute '%S'", class, name)
                         : NULL;
    PyObject *error =
        text != NULL ? PyObject_CallFunctionObjArgs(PyExc_AttributeError, text, NULL) : NULL;
    if (error != NULL && PyObject_SetAttrString(error, "name", name) == 0 &&
        PyObject_SetAttrString(error, "obj", self) == 0) /* for advice about names */
        PyErr_SetObject(PyExc_AttributeError, error);
    Py_XDECREF(class);
    Py_XDECREF(text);
    Py_XDECREF(error);
    return NULL;
}

/* Called for what is neither in the object's __dict__ nor in its class. */
static PyObject *module_get_attribute(PyObject *self, PyObject *name)
{
    PyObject *attributes = PyObject_GenericGetDict(self, NULL), *found = NULL;
    if (attributes == NULL)
        return NULL;
    for (enum name part = NAME_PARAMETERS; part <= NAME_MODULES && found == NULL; part++)
        found = part_get(attributes, part, name);
    Py_XINCREF(found);
    Py_DECREF(attributes);
    return found != NULL || PyErr_Occurred() ? found : attribute_missing(self, name);
}

/* ---- attributes of a class ---------------------------------------------------------------------- */

struct attribute_object {
    PyObject_HEAD PyObject *name;
    enum name part; /* where it was registered first: looked at first */
};

static PyObject *attribute_new(PyTypeObject *class, PyObject *arguments, PyObject *keywords)
{
    PyObject *name;
    int part;
    (void)keywords;
    if (!PyArg_ParseTuple(arguments, "Ui:_ModuleAttribute", &name, &part))
        return NULL;
    if (part < NAME_PARAMETERS || part > NAME_MODULES) {
        PyErr_SetString(PyExc_ValueError, "_ModuleAttribute: the part is 0, 1 or 2");
        return NULL;
    }
    struct attribute_object *made = (struct attribute_object *)object_alloc(class);
    if (made == NULL)
        return NULL;
    made->name = Py_NewRef(name);
    PyUnicode_InternInPlace(&made->name);
    made->part = (enum name)part;
    return (PyObject *)made;
}

static void attribute_free(PyObject *self)
{
    Py_CLEAR(((struct attribute_object *)self)->name);
    object_free(self);
}

static PyObject *attribute_get(PyObject *self, PyObject *object, PyObject *class)
{
    const struct attribute_object *attribute = (const struct attribute_object *)self;
    PyObject *name = attribute->name;
    if (object == NULL) {
        PyObject *text = PyType_GetName((PyTypeObject *)class);
        if (text != NULL)
            PyErr_Format(PyExc_AttributeError, "type object '%U' has no attribute '%U'", text,
                         name);
        Py_XDECREF(text);
        return NULL;
    }
    PyObject *attributes = PyObject_GenericGetDict(object, NULL);
    if (attributes == NULL)
        return NULL;
    PyObject *found = PyDict_GetItemWithError(attributes, name);
    if (found == NULL)
        found = part_get(attributes, attribute->part, name);
    for (enum name part = NAME_PARAMETERS; part <= NAME_MODULES && found == NULL; part++)
        found = part_get(attributes, part, name);
    Py_XINCREF(found);
    Py_DECREF(attributes);
    if (found == NULL && !PyErr_Occurred())
        PyErr_SetObject(PyExc_AttributeError, name); /* then __getattr__ is asked */
    return found;
}

/* An attribute of the object alone: Module.__setattr__ has found that it is nothing else. */
static int attribute_set(PyObject *self, PyObject *object, PyObject *value)
{
    PyObject *name = ((struct attribute_object *)self)->name;
    PyObject *attributes = PyObject_GenericGetDict(object, NULL);
    if (attributes == NULL)
        return -1;
    int status =
        value != NULL ? PyDict_SetItem(attributes, name, value) : PyDict_DelItem(attributes, name);
    Py_DECREF(attributes);
    if (status < 0 && value == NULL && PyErr_ExceptionMatches(PyExc_KeyError)) {
        PyErr_Clear();
        (void)attribute_missing(object, name);
    }
    return status;
}

/* For what pickles classes, too. */
static PyObject *attribute_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    const struct attribute_object *attribute = (const struct attribute_object *)self;
    return Py_BuildValue("O(Oi)", Py_TYPE(self), attribute->name, (int)attribute->part);
}

static PyMethodDef attribute_methods[] = {
    {"__reduce__", attribute_reduce, METH_NOARGS, "__reduce__($self, /)\n--\n\nFor pickle."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot attribute_slots[] = {
    {Py_tp_doc, "A parameter, a buffer or a module of objects of a class."},
    {Py_tp_methods, attribute_methods},
    {Py_tp_new, attribute_new},
    {Py_tp_dealloc, attribute_free},
    {Py_tp_descr_get, attribute_get},
    {Py_tp_descr_set, attribute_set},
    {0, NULL},
};

static PyType_Spec attribute_spec = {
    .name = "genesis._C._ModuleAttribute",
    .basicsize = sizeof(struct attribute_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = attribute_slots,
};

/* ---- calls --------------------------------------------------------------------------------------- */

/* -1 with an exception. */
static int has_hooks(PyObject *self)
{
    PyObject *attributes = PyObject_GenericGetDict(self, NULL);
    bool is_found = has_global_hooks;
    if (attributes == NULL)
        return -1;
    for (int i = 0; !is_found && i < NAME_FORWARD - NAME_HOOKS; i++) {
        PyObject *hooks = part_of(attributes, (enum name)(NAME_HOOKS + i));
        is_found = hooks != NULL && PyDict_Size(hooks) > 0;
    }
    Py_DECREF(attributes);
    return is_found;
}

/* Calls forward() with the same arguments, or _call_with_hooks(arguments, keywords). */
static PyObject *module_call(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    int is_hooked = has_hooks(self);
    if (is_hooked < 0)
        return NULL;
    if (is_hooked == 0) {
        PyObject *forward = PyObject_GetAttr(self, names[NAME_FORWARD]);
        PyObject *result = forward != NULL ? PyObject_Call(forward, arguments, keywords) : NULL;
        Py_XDECREF(forward);
        return result;
    }
    PyObject *named = keywords != NULL ? Py_NewRef(keywords) : PyDict_New();
    PyObject *result = named != NULL ? PyObject_CallMethodObjArgs(self, names[NAME_HOOKED_CALL],
                                                                  arguments, named, NULL)
                                     : NULL;
    Py_XDECREF(named);
    return result;
}

static PyObject *set_global_hooks(PyObject *module, PyObject *are_there)
{
    (void)module;
    int is_true = PyObject_IsTrue(are_there);
    if (is_true < 0)
        return NULL;
    has_global_hooks = is_true > 0;
    Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {
    {"__call__", WITH_KEYWORDS(module_call), "Calls forward(), and the hooks."},
    {"__getattr__", module_get_attribute, METH_O,
     "__getattr__($self, name, /)\n--\n\nA parameter, a buffer or a module by its name."},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef global_hook_functions[] = {
    {"_set_global_module_hooks", set_global_hooks, METH_O,
     "_set_global_module_hooks($module, are_there, /)\n--\n\nWhether modules have hooks in "
     "common."},
    {NULL, NULL, 0, NULL},
};

int modules_init(PyObject *module)
{
    static const char *const texts[NAME_COUNT] = {
        "_parameters",
        "_buffers",
        "_modules",
        "_forward_hooks",
        "_forward_pre_hooks",
        "_backward_hooks",
        "_backward_pre_hooks",
        "forward",
        "_call_with_hooks",
    };
    for (int i = 0; i < NAME_COUNT; i++)
        if (names[i] == NULL && (names[i] = PyUnicode_InternFromString(texts[i])) == NULL)
            return -1;
    static const char *const published[] = {"_module_call", "_module_get_attribute"};
    for (int i = 0; i < 2; i++) {
        PyObject *method = PyDescr_NewMethod(&PyBaseObject_Type, &module_methods[i]);
        int status = method != NULL ? PyModule_AddObjectRef(module, published[i], method) : -1;
        Py_XDECREF(method);
        if (status < 0)
            return -1;
    }
    PyObject *class = PyType_FromModuleAndSpec(module, &attribute_spec, NULL);
    int status = class != NULL ? PyModule_AddType(module, (PyTypeObject *)class) : -1;
    Py_XDECREF(class);
    return status < 0 ? -1 : PyModule_AddFunctions(module, global_hook_functions);
}
