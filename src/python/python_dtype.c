/*
 * python_dtype.c: genesis.dtype and its objects, and what the buffer protocol calls them.
 */
#include "module.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

struct dtype_object {
    PyObject_HEAD gn_dtype dtype;
};

/*
 * The letter of each type in the struct module, by kind and bits; bfloat16 has none. Those of 64 bits are long where that
 * has so many: NumPy's int64, which is not the same as its long long to who asks for its number.
 */
#define LETTER_BOOL8 "?"
#define LETTER_UINT8 "B"
#define LETTER_UINT16 "H"
#define LETTER_UINT32 "I"
#define LETTER_INT8 "b"
#define LETTER_INT16 "h"
#define LETTER_INT32 "i"
#define LETTER_FLOAT16 "e"
#define LETTER_BFLOAT16 NULL
#define LETTER_FLOAT32 "f"
#define LETTER_FLOAT64 "d"
#if LONG_MAX == INT64_MAX
#define LETTER_INT64 "l"
#define LETTER_UINT64 "L"
#else
#define LETTER_INT64 "q"
#define LETTER_UINT64 "Q"
#endif

static const char *const formats[GN_DTYPE_COUNT] = {
#define ROW(NAME, number, name, kind, bits) [number] = LETTER_##kind##bits,
    GN_DTYPE_LIST(ROW)
#undef ROW
};

const char *dtype_format(gn_dtype dtype)
{
    return formats[dtype];
}

/* By the name that NumPy has for them, where it has one. */
static void format_refuse(const char *format, Py_ssize_t size)
{
    char name[24] = "";
    bool is_swapped = strchr("<>!", *format) != NULL && format[0] != 0 && format[1] != 0;
    if (format[0] == 'Z')
        (void)snprintf(name, sizeof name, "complex%d", (int)size * 8);
    else if (strcmp(format, "g") == 0)
        (void)snprintf(name, sizeof name, "longdouble");
    if (name[0] != 0)
        PyErr_Format(PyExc_TypeError, "elements of %s have no dtype here: %s", name,
                     gn_dtype_advice(name));
    else
        PyErr_Format(PyExc_TypeError, "elements of the format '%s' have no dtype here: %s", format,
                     is_swapped ? "their bytes are in another order than this machine's: see "
                                  "newbyteorder() and astype()"
                                : gn_dtype_advice(""));
}

int dtype_from_format(const char *format, Py_ssize_t size, gn_dtype *dtype)
{
    if (format == NULL)
        format = "B";
    if (*format == '@' || *format == '=' || *format == (PY_LITTLE_ENDIAN ? '<' : '>'))
        format++;
    static const char integers[] = "bhilqn", naturals[] = "BHILQN";
    const char *same = format[0] == 0 || format[1] != 0      ? NULL
                       : strchr(integers, format[0]) != NULL ? integers
                       : strchr(naturals, format[0]) != NULL ? naturals
                                                             : NULL;
    for (int i = 0; i < GN_DTYPE_COUNT; i++) {
        if (formats[i] == NULL || gn_dtype_size((gn_dtype)i) != (size_t)size)
            continue;
        /* long and long long have several letters */
        bool is_same = strcmp(formats[i], format) == 0 ||
                       (same != NULL && strchr(same, formats[i][0]) != NULL);
        if (is_same) {
            *dtype = (gn_dtype)i;
            return 0;
        }
    }
    format_refuse(format, size);
    return -1;
}

PyObject *dtype_to_python(struct module_state *state, gn_dtype dtype)
{
    return Py_NewRef(state->dtypes[dtype]);
}

static bool dtype_of_name(const char *name, gn_dtype *dtype)
{
    for (int i = 0; i < GN_DTYPE_COUNT; i++)
        if (strcmp(name, gn_dtype_name((gn_dtype)i)) == 0) {
            *dtype = (gn_dtype)i;
            return true;
        }
    return false;
}

/* A text that an object has as an attribute, in `text`; false, without an exception but an interrupt, where it has none. */
static bool attribute_text(PyObject *object, const char *attribute, char *text, size_t size)
{
    PyObject *value = PyObject_GetAttrString(object, attribute);
    const char *own = value != NULL && PyUnicode_Check(value) ? text_from_python(value) : NULL;
    if (own != NULL)
        (void)snprintf(text, size, "%s", own);
    Py_XDECREF(value);
    error_clear();
    return own != NULL;
}

/* A class of NumPy's numbers, as numpy.float32, or of ml_dtypes', which has bfloat16. */
static bool dtype_of_class(PyObject *object, gn_dtype *dtype)
{
    char module[16], name[24];
    return attribute_text(object, "__module__", module, sizeof module) &&
           (strcmp(module, "numpy") == 0 || strcmp(module, "ml_dtypes") == 0) &&
           attribute_text(object, "__name__", name, sizeof name) && dtype_of_name(name, dtype);
}

/* A dtype of NumPy's, whose bytes are in the order of this machine. */
static bool dtype_of_numpy(PyObject *object, gn_dtype *dtype)
{
    char module[24], name[24];
    if (!attribute_text((PyObject *)Py_TYPE(object), "__module__", module, sizeof module) ||
        (strcmp(module, "numpy") != 0 && strcmp(module, "numpy.dtypes") != 0) ||
        !attribute_text(object, "name", name, sizeof name) || !dtype_of_name(name, dtype))
        return false;
    PyObject *is_native = PyObject_GetAttrString(object, "isnative");
    bool is_own = is_native == Py_True;
    Py_XDECREF(is_native);
    error_clear();
    return is_own;
}

/* Whether it means a dtype, and which: every word for one is understood here, and nowhere else. No exception is set
 * but an interrupt. */
static bool dtype_find(struct module_state *state, PyObject *object, gn_dtype *dtype)
{
    if (Py_TYPE(object) == (PyTypeObject *)state->dtype_class) {
        *dtype = ((struct dtype_object *)object)->dtype;
        return true;
    }
    if (PyUnicode_Check(object)) {
        const char *name = text_from_python(object);
        PyErr_Clear();
        return name != NULL && dtype_of_name(name, dtype);
    }
    if (PyLong_Check(object) || PyTuple_Check(object) || PyList_Check(object))
        return false; /* a shape, where either may stand */
    if (!PyType_Check(object))
        return dtype_of_numpy(object, dtype);
    *dtype = object == (PyObject *)&PyFloat_Type  ? GN_FLOAT64
             : object == (PyObject *)&PyLong_Type ? GN_INT64
             : object == (PyObject *)&PyBool_Type ? GN_BOOL
                                                  : GN_DTYPE_COUNT;
    return *dtype != GN_DTYPE_COUNT || dtype_of_class(object, dtype);
}

/* What is given may be a text, a class of Python's or NumPy's, or a dtype of NumPy's. */
static int dtype_refuse(PyObject *object)
{
    const char *attribute = PyType_Check(object) ? "__name__" : "name";
    PyObject *name =
        PyUnicode_Check(object) ? Py_NewRef(object) : PyObject_GetAttrString(object, attribute);
    const char *text = name != NULL && PyUnicode_Check(name) ? text_from_python(name) : "";
    error_clear();
    if (PyErr_Occurred()) {
        Py_XDECREF(name);
        return -1;
    }
    if (text == NULL)
        text = "";
    gn_dtype near;
    if (dtype_of_name(text, &near)) { /* of another library, or with bytes in another order */
        PyErr_Format(PyExc_TypeError, "%R is no dtype here: write genesis.%s", object, text);
        Py_DECREF(name);
        return -1;
    }
    PyErr_Format(PyExc_TypeError, "%R is no dtype here: %s", object,
                 gn_dtype_advice(strcmp(text, "complex") == 0 ? "complex128" : text));
    Py_XDECREF(name);
    return -1;
}

PyObject *dtype_advice(PyObject *module, PyObject *name)
{
    (void)module;
    const char *text = text_from_python(name);
    return text != NULL ? text_to_python(gn_dtype_advice(text)) : NULL;
}

int dtype_from_python(struct module_state *state, PyObject *object, gn_dtype *dtype)
{
    gn_dtype found;
    if (!dtype_find(state, object, &found))
        return PyErr_Occurred() ? -1 : dtype_refuse(object);
    *dtype = found;
    return 0;
}

bool dtype_is_word(struct module_state *state, PyObject *object)
{
    gn_dtype dtype;
    return dtype_find(state, object, &dtype);
}

static gn_dtype dtype_of(PyObject *self)
{
    return ((struct dtype_object *)self)->dtype;
}

static PyObject *dtype_repr(PyObject *self)
{
    return PyUnicode_FromFormat("genesis.%s", gn_dtype_name(dtype_of(self)));
}

static Py_hash_t dtype_hash(PyObject *self)
{
    PyObject *name = PyUnicode_FromString(gn_dtype_name(dtype_of(self)));
    Py_hash_t hash = name != NULL ? PyObject_Hash(name) : -1;
    Py_XDECREF(name);
    return hash;
}

/* Equal to every word for the same type. The hash is that of the name, so that the name finds it in a dict, too; NumPy's
 * own words have hashes of their own, among themselves as well. */
static PyObject *dtype_compare(PyObject *self, PyObject *other, int what)
{
    struct module_state *state = PyType_GetModuleState(Py_TYPE(self));
    gn_dtype dtype;
    if (state == NULL)
        return NULL;
    if ((what != Py_EQ && what != Py_NE) || !dtype_find(state, other, &dtype))
        return Py_NewRef(Py_NotImplemented);
    return PyBool_FromLong((dtype == dtype_of(self)) == (what == Py_EQ));
}

static PyObject *dtype_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyUnicode_FromFormat("%s", gn_dtype_name(dtype_of(self))); /* a name of the module */
}

static PyObject *dtype_get_name(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(gn_dtype_name(dtype_of(self)));
}

static PyObject *dtype_get_itemsize(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(gn_dtype_size(dtype_of(self)));
}

static PyObject *dtype_get_is_floating_point(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(gn_dtype_is_floating(dtype_of(self)));
}

static PyObject *dtype_get_is_signed(PyObject *self, void *unused)
{
    (void)unused;
    gn_dtype dtype = dtype_of(self);
    return PyBool_FromLong(dtype != GN_BOOL && !gn_dtype_is_unsigned(dtype));
}

/* What NumPy 2.4 and newer ask of what stands where they expect a dtype. */
static PyObject *dtype_get_numpy(PyObject *self, void *unused)
{
    (void)unused;
    const char *name = gn_dtype_name(dtype_of(self));
    if (dtype_format(dtype_of(self)) == NULL) {
        PyErr_Format(PyExc_AttributeError, "NumPy has no %s", name);
        return NULL;
    }
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *made = numpy != NULL ? PyObject_CallMethod(numpy, "dtype", "s", name) : NULL;
    Py_XDECREF(numpy);
    return made;
}

static PyGetSetDef dtype_properties[] = {
    {"name", dtype_get_name, NULL, "For example \"float32\".", NULL},
    {"itemsize", dtype_get_itemsize, NULL, "Bytes of an element.", NULL},
    {"is_floating_point", dtype_get_is_floating_point, NULL, "Whether it has fractions.", NULL},
    {"is_signed", dtype_get_is_signed, NULL, "Whether it has negative numbers.", NULL},
    {"__numpy_dtype__", dtype_get_numpy, NULL, "The same type of NumPy's.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef dtype_methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, "__reduce__($self, /)\n--\n\nFor pickle and copy."},
    {NULL, NULL, 0, NULL},
};

static const char dtype_doc[] = "The type of a tensor's elements.\n\n"
                                "Examples\n--------\n"
                                ">>> import genesis\n"
                                ">>> genesis.float32, genesis.float32.itemsize\n"
                                "(genesis.float32, 4)\n";

static PyType_Slot dtype_slots[] = {
    {Py_tp_doc, (void *)dtype_doc},   {Py_tp_repr, dtype_repr},
    {Py_tp_hash, dtype_hash},         {Py_tp_richcompare, dtype_compare},
    {Py_tp_getset, dtype_properties}, {Py_tp_methods, dtype_methods},
    {Py_tp_dealloc, object_free},     {0, NULL},
};

static PyType_Spec dtype_spec = {
    .name = "genesis.dtype",
    .basicsize = sizeof(struct dtype_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = dtype_slots,
};

int dtype_class_init(PyObject *module, struct module_state *state)
{
    state->dtype_class = PyType_FromModuleAndSpec(module, &dtype_spec, NULL);
    if (state->dtype_class == NULL ||
        PyModule_AddType(module, (PyTypeObject *)state->dtype_class) < 0)
        return -1;
    for (int i = 0; i < GN_DTYPE_COUNT; i++) {
        PyObject *made = object_alloc((PyTypeObject *)state->dtype_class);
        if (made == NULL)
            return -1;
        ((struct dtype_object *)made)->dtype = (gn_dtype)i;
        state->dtypes[i] = made;
        if (PyModule_AddObjectRef(module, gn_dtype_name((gn_dtype)i), made) < 0)
            return -1;
    }
    return 0;
}
