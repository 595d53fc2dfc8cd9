/*
 * python_kernel.c: kernels of users: CUDA C that is compiled and launched.
 *
 * The class here knows the text and what its parameters are, as one letter each; genesis.cuda.Kernel, which
 * is made from it, finds out the letters. Code is made for a device at its first launch there.
 *
 *     P  a pointer   b B h H i I q Q  integers   ?  bool   f d  floats   x  anything else, as bytes
 *
 * Where it does not, all are "x". From CUDA 12.4 on the driver knows the parameters' sizes, and nothing that is
 * smaller is ever handed to it; before, letters and bytes are taken at their word.
 *
 * A strict kernel also knows what each pointer points to, by the same letters, and the parameters as the source declares
 * them. Tensors must be of that type, contiguous, and on the device of the launch; floats must fit.
 *
 *     e  float16   E  bfloat16   blank  anything: not a pointer, or one to what is not known
 */
#include "module.h"

#include <math.h>
#include <string.h>

enum {
    ARGUMENTS_MAX = 256,
    OPTIONS_MAX = 32,
    WAIT_STEP_MS = 50,
};

struct kernel_object {
    PyObject_HEAD struct module_state *state;
    PyObject *text, *name, *options; /* str, str, tuple of str */
    PyObject *letters;               /* str, or None: not known */
    PyObject *pointees;              /* str, as long as letters, or None: not strict */
    PyObject *declared;              /* tuple of str, as long as letters; or empty */
    gn_kernel *kernels[DEVICE_CAPACITY];
};

/* The arguments of one launch. */
struct arguments {
    const struct kernel_object *kernel;
    gn_device *device; /* of the launch */
    const gn_kernel *code;
    const char *kernel_name;
    const char *pointees; /* NULL: the kernel is not strict */
    Py_ssize_t count;
    uint64_t values[ARGUMENTS_MAX];
    void *addresses[ARGUMENTS_MAX];   /* of each: in values, or in a buffer */
    Py_buffer buffers[ARGUMENTS_MAX]; /* of those that are given as bytes */
    Py_ssize_t buffer_count;
};

static struct kernel_object *kernel_of(PyObject *object)
{
    return (struct kernel_object *)object;
}

/* ---- making --------------------------------------------------------------------------------- */

/* Texts without a zero in them, since C takes them from here on. */
static int texts_check(PyObject *text, PyObject *name, PyObject *options)
{
    if (text_from_python(text) == NULL || text_from_python(name) == NULL)
        return -1;
    Py_ssize_t count = PyTuple_Size(options);
    if (count > OPTIONS_MAX) {
        PyErr_Format(PyExc_ValueError, "a kernel can have %d options, not %zd", OPTIONS_MAX, count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (text_from_python(PyTuple_GetItem(options, i)) == NULL)
            return -1;
    return 0;
}

/* Letters for the same parameters; letters are text from now on. */
static int letters_agree(PyObject *letters, PyObject *pointees, PyObject *declared)
{
    const char *first = letters != Py_None ? text_from_python(letters) : "";
    const char *second = pointees != Py_None && first != NULL ? text_from_python(pointees) : first;
    if (first == NULL || second == NULL)
        return -1;
    Py_ssize_t count = PyTuple_Size(declared);
    if (strlen(second) == strlen(first) && (count == 0 || (size_t)count == strlen(first)))
        return 0;
    PyErr_SetString(PyExc_ValueError, "letters, pointees and declared are of the same parameters");
    return -1;
}

static PyObject *kernel_new(PyTypeObject *class, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"source", "name", "options", "letters", "pointees", "declared", NULL};
    PyObject *text, *name, *options, *letters, *pointees, *declared;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "UUO!OOO!:Kernel", names, &text, &name,
                                     &PyTuple_Type, &options, &letters, &pointees, &PyTuple_Type,
                                     &declared) ||
        texts_check(text, name, options) < 0 || letters_agree(letters, pointees, declared) < 0)
        return NULL;
    PyObject *self = object_alloc(class);
    if (self == NULL)
        return NULL;
    struct kernel_object *kernel = kernel_of(self);
    kernel->state = module_state_of_object(self);
    kernel->text = Py_NewRef(text);
    kernel->name = Py_NewRef(name);
    kernel->options = Py_NewRef(options);
    kernel->letters = Py_NewRef(letters);
    kernel->pointees = Py_NewRef(pointees);
    kernel->declared = Py_NewRef(declared);
    return self;
}

static void kernel_dealloc(PyObject *self)
{
    struct kernel_object *kernel = kernel_of(self);
    for (int i = 0; i < DEVICE_CAPACITY; i++)
        gn_kernel_destroy(kernel->kernels[i]);
    Py_CLEAR(kernel->text);
    Py_CLEAR(kernel->name);
    Py_CLEAR(kernel->options);
    Py_CLEAR(kernel->letters);
    Py_CLEAR(kernel->pointees);
    Py_CLEAR(kernel->declared);
    object_free(self);
}

static const char integer_letters[] = "bBhHiIqQ"; /* twice each size, signed first */

/* The size of what a letter stands for; 0: any. */
static size_t letter_size(char letter)
{
    const char *place = strchr(integer_letters, letter);
    if (place != NULL)
        return (size_t)1 << (place - integer_letters) / 2;
    return letter == 'x' ? 0 : letter == '?' ? 1 : letter == 'f' ? 4 : 8;
}

/* Do the letters go with what the driver says? */
static int letters_check(const struct kernel_object *kernel, const gn_kernel *code)
{
    gn_kernel_properties properties;
    gn_status status = gn_kernel_get_properties(code, &properties);
    if (status != GN_OK) {
        error_raise(kernel->state, status);
        return -1;
    }
    const char *letters = kernel->letters != Py_None ? text_from_python(kernel->letters) : NULL;
    if (letters == NULL || properties.parameter_count < 0)
        return PyErr_Occurred() != NULL ? -1 : 0;
    if (strlen(letters) != (size_t)properties.parameter_count) {
        PyErr_Format(PyExc_TypeError, "kernel %U has %d parameters, and argtypes has %zu",
                     kernel->name, properties.parameter_count, strlen(letters));
        return -1;
    }
    for (int i = 0; letters[i] != '\0'; i++) {
        size_t size = letter_size(letters[i]), needed = gn_kernel_get_parameter_size(code, i);
        if (size == 0 || size == needed)
            continue;
        PyErr_Format(PyExc_TypeError,
                     "parameter %d of kernel %U has %zu bytes, and what is to be passed has %zu: "
                     "give argtypes=",
                     i, kernel->name, needed, size);
        return -1;
    }
    return 0;
}

static void options_fill(const struct kernel_object *kernel, const char *options[OPTIONS_MAX + 1])
{
    Py_ssize_t count = PyTuple_Size(kernel->options);
    for (Py_ssize_t i = 0; i < count; i++)
        options[i] = text_from_python(PyTuple_GetItem(kernel->options, i));
    options[count] = NULL;
}

/* The code for a device, made if need be. */
static gn_kernel *kernel_on(struct kernel_object *kernel, gn_device *device)
{
    gn_kernel **slot = &kernel->kernels[gn_device_get_index(device)];
    if (*slot != NULL && gn_device_get_type(device) == GN_DEVICE_CUDA)
        return *slot;
    const char *options[OPTIONS_MAX + 1];
    options_fill(kernel, options);
    const char *text = text_from_python(kernel->text), *name = text_from_python(kernel->name);
    gn_kernel *made = NULL;
    gn_status status;
    CALL_UNLOCKED(status, gn_kernel_create(device, text, name, options, &made));
    if (status != GN_OK) {
        error_raise(kernel->state, status);
        return NULL;
    }
    bool is_right = letters_check(kernel, made) == 0;
    if (is_right && *slot == NULL)
        *slot = made;
    else /* or another thread was faster */
        gn_kernel_destroy(made);
    return is_right ? *slot : NULL;
}

/* ---- arguments ------------------------------------------------------------------------------ */

/* Puts the kernel and the parameter before what the exception on its way says. */
static int argument_error(const struct arguments *arguments, Py_ssize_t index)
{
    PyObject *kind, *value, *traceback, *declared = arguments->kernel->declared;
    PyErr_Fetch(&kind, &value, &traceback);
    if (kind != PyExc_TypeError && kind != PyExc_ValueError && kind != PyExc_OverflowError &&
        kind != PyExc_BufferError) { /* others may not be made of a text */
        PyErr_Restore(kind, value, traceback);
        return -1;
    }
    if (PyTuple_Size(declared) == 0)
        PyErr_Format(kind, "argument %zd of kernel %s: %S", index, arguments->kernel_name,
                     value != NULL ? value : Py_None);
    else
        PyErr_Format(kind, "argument %zd of kernel %s, %R: %S", index, arguments->kernel_name,
                     PyTuple_GetItem(declared, index), value != NULL ? value : Py_None);
    Py_XDECREF(kind);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return -1;
}

/* Whether an object says that its bytes are on the CPU. */
static bool is_on_cpu(PyObject *object)
{
    PyObject *device = PyObject_GetAttrString(object, "device");
    PyObject *type = device != NULL ? PyObject_GetAttrString(device, "type") : NULL;
    PyErr_Clear(); /* it says nothing of the kind */
    bool answer =
        type != NULL && PyUnicode_Check(type) && PyUnicode_CompareWithASCIIString(type, "cpu") == 0;
    Py_XDECREF(type);
    Py_XDECREF(device);
    return answer;
}

/* The address in __cuda_array_interface__: a new reference, or NULL with an exception. */
static PyObject *interface_address(PyObject *object)
{
    PyObject *interface = PyObject_GetAttrString(object, "__cuda_array_interface__");
    if (interface == NULL)
        return NULL;
    PyObject *data = PyMapping_GetItemString(interface, "data");
    PyObject *address = data != NULL ? PySequence_GetItem(data, 0) : NULL;
    Py_XDECREF(data);
    Py_DECREF(interface);
    return address;
}

/* The address that an object stands for: a new reference, or NULL with an exception. */
static PyObject *address_of(PyObject *object)
{
    if (PyLong_Check(object))
        return Py_NewRef(object);
    if (PyObject_HasAttrString(object, "data_ptr")) {
        if (!is_on_cpu(object))
            return PyObject_CallMethod(object, "data_ptr", NULL);
        PyErr_SetString(PyExc_ValueError, "the tensor is on the CPU, which a GPU cannot read");
        return NULL;
    }
    if (PyIndex_Check(object))
        return PyNumber_Index(object);
    if (PyObject_HasAttrString(object, "__cuda_array_interface__"))
        return interface_address(object);
    PyErr_Format(PyExc_TypeError,
                 "a pointer is an int, None, or an object with data_ptr() or "
                 "__cuda_array_interface__, not %R",
                 (PyObject *)Py_TYPE(object));
    return NULL;
}

/* Whether elements of a type can be seen through a pointer to what a letter stands for. Integers of one size can,
 * signed or not. */
static bool dtype_goes_with(gn_dtype dtype, char pointee)
{
    static const struct {
        char letter;
        gn_dtype dtype;
    } others[] = {{'?', GN_BOOL},
                  {'f', GN_FLOAT32},
                  {'d', GN_FLOAT64},
                  {'e', GN_FLOAT16},
                  {'E', GN_BFLOAT16}};
    if (pointee == ' ')
        return true;
    if (strchr(integer_letters, pointee) != NULL)
        return !gn_dtype_is_floating(dtype) && gn_dtype_size(dtype) == letter_size(pointee);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].letter == pointee)
            return others[i].dtype == dtype;
    return false;
}

/* What a strict kernel wants of a tensor or an array that is given for a pointer. */
static int pointer_check(const struct arguments *arguments, PyObject *object, char pointee)
{
    static const char advice[] = "or make the kernel with strict=False";
    struct module_state *state = arguments->kernel->state;
    bool is_tensor = tensor_check(state, object), is_contiguous;
    gn_dtype dtype;
    if (is_tensor) {
        dtype = gn_tensor_get_dtype(tensor_of(object));
        is_contiguous = gn_tensor_is_contiguous(tensor_of(object));
    } else if (!cuda_array_look(object, &dtype, &is_contiguous)) {
        return 0;
    }
    gn_device *place = is_tensor ? gn_tensor_get_device(tensor_of(object)) : arguments->device;
    if (place != arguments->device && gn_device_get_type(place) == GN_DEVICE_CUDA)
        PyErr_Format(PyExc_ValueError, "the tensor is on cuda:%d, and the kernel runs on cuda:%d",
                     gn_device_get_index(place), gn_device_get_index(arguments->device));
    else if (!dtype_goes_with(dtype, pointee))
        PyErr_Format(PyExc_TypeError, "the elements are %s: convert them with to(), %s",
                     gn_dtype_name(dtype), advice);
    else if (!is_contiguous)
        PyErr_Format(PyExc_ValueError,
                     "the elements are not contiguous in memory: pass contiguous(), %s", advice);
    return PyErr_Occurred() != NULL ? -1 : 0;
}

static int pointer_take(PyObject *object, uint64_t *value)
{
    size_t address = 0;
    if (object != Py_None) {
        PyObject *number = address_of(object);
        int result = number != NULL ? size_from_python(number, "an address", &address) : -1;
        Py_XDECREF(number);
        if (result < 0)
            return -1;
    }
    *value = address;
    return 0;
}

/* An integer of 1, 2, 4 or 8 bytes, signed or not. Any machine here stores the low bytes first. */
static int integer_take(PyObject *object, int size, bool is_signed, uint64_t *value)
{
    PyObject *number = PyNumber_Index(object);
    if (number == NULL)
        return -1;
    int bits = 8 * size;
    bool is_wrong;
    if (is_signed) {
        long long signed_value = PyLong_AsLongLong(number);
        long long most = (long long)(UINT64_MAX >> (65 - bits));
        is_wrong = PyErr_Occurred() != NULL || signed_value > most || signed_value < -most - 1;
        *value = (uint64_t)signed_value;
    } else {
        *value = PyLong_AsUnsignedLongLong(number);
        is_wrong = PyErr_Occurred() != NULL || *value > UINT64_MAX >> (64 - bits);
    }
    Py_DECREF(number);
    if (!is_wrong)
        return 0;
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "%S does not fit %s integer of %d bits", object,
                 is_signed ? "a signed" : "an unsigned", bits);
    return -1;
}

static int float_take(PyObject *object, bool is_double, bool is_strict, uint64_t *value)
{
    double number = PyFloat_AsDouble(object);
    if (number == -1 && PyErr_Occurred())
        return -1;
    float narrow = (float)number;
    bool is_wrong = !is_double && isinf(narrow) && !isinf(number);
    if (!is_double && PyLong_Check(object)) /* an index, say, that is to come back as it was */
        is_wrong |= (double)narrow != number;
    if (is_strict && is_wrong) {
        PyErr_Format(PyExc_ValueError, "%S does not fit a float", object);
        return -1;
    }
    *value = 0;
    memcpy(value, is_double ? (void *)&number : (void *)&narrow, is_double ? 8 : 4);
    return 0;
}

/* Bytes as they are: a NumPy scalar, bytes, a ctypes structure. */
static int bytes_take(struct arguments *arguments, PyObject *object, Py_ssize_t index)
{
    Py_buffer *buffer = &arguments->buffers[arguments->buffer_count];
    if (PyObject_GetBuffer(object, buffer, PyBUF_SIMPLE) < 0)
        return -1;
    arguments->buffer_count++;
    arguments->addresses[index] = buffer->buf;
    size_t needed = gn_kernel_get_parameter_size(arguments->code, (int)index);
    if (needed == 0 || (size_t)buffer->len == needed)
        return 0;
    PyErr_Format(PyExc_TypeError, "the parameter has %zu bytes, and %R has %zd", needed, object,
                 buffer->len);
    return -1;
}

/* An argument for a parameter of which no more than its size is known. */
static int unknown_take(struct arguments *arguments, PyObject *object, Py_ssize_t index)
{
    size_t needed = gn_kernel_get_parameter_size(arguments->code, (int)index);
    bool has_address = PyObject_HasAttrString(object, "data_ptr") ||
                       PyObject_HasAttrString(object, "__cuda_array_interface__");
    if ((has_address || object == Py_None) && (needed == 0 || needed == sizeof(uint64_t)))
        return pointer_take(object, &arguments->values[index]);
    if (PyObject_CheckBuffer(object))
        return bytes_take(arguments, object, index);
    PyErr_Format(
        PyExc_TypeError,
        "the type of this parameter is not known: give argtypes=, or a NumPy scalar in the "
        "place of %R",
        object);
    return -1;
}

static int argument_take(struct arguments *arguments, char letter, PyObject *object,
                         Py_ssize_t index)
{
    uint64_t *value = &arguments->values[index];
    arguments->addresses[index] = value;
    const char *place = strchr(integer_letters, letter);
    if (place != NULL)
        return integer_take(object, (int)letter_size(letter), (place - integer_letters) % 2 == 0,
                            value);
    switch (letter) {
    case 'P':
        if (arguments->pointees != NULL && object != Py_None && !PyLong_Check(object) &&
            pointer_check(arguments, object, arguments->pointees[index]) < 0)
            return -1;
        return pointer_take(object, value);
    case '?': {
        int is_true = PyObject_IsTrue(object);
        *value = is_true > 0;
        return is_true < 0 ? -1 : 0;
    }
    case 'f':
    case 'd':
        return float_take(object, letter == 'd', arguments->pointees != NULL, value);
    default:
        return unknown_take(arguments, object, index);
    }
}

static void arguments_release(struct arguments *arguments)
{
    while (arguments->buffer_count > 0)
        PyBuffer_Release(&arguments->buffers[--arguments->buffer_count]);
}

/* What was taken must be released, also after a failure. */
static int arguments_read(struct kernel_object *kernel, PyObject *sequence,
                          struct arguments *arguments)
{
    const char *letters = NULL;
    if (kernel->letters != Py_None && (letters = text_from_python(kernel->letters)) == NULL)
        return -1;
    arguments->kernel = kernel;
    arguments->kernel_name = text_from_python(kernel->name);
    arguments->pointees =
        letters != NULL && kernel->pointees != Py_None ? text_from_python(kernel->pointees) : NULL;
    arguments->count = PyTuple_Size(sequence);
    gn_kernel_properties properties;
    gn_status status = gn_kernel_get_properties(arguments->code, &properties);
    if (status != GN_OK) {
        error_raise(kernel->state, status);
        return -1;
    }
    Py_ssize_t needed = properties.parameter_count;
    if (needed < 0)
        needed = letters != NULL ? (Py_ssize_t)strlen(letters) : arguments->count;
    if (arguments->count != needed || needed > ARGUMENTS_MAX) {
        PyErr_Format(PyExc_TypeError, "kernel %s takes %zd arguments, not %zd",
                     arguments->kernel_name, needed, arguments->count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < arguments->count; i++)
        if (argument_take(arguments, letters != NULL ? letters[i] : 'x',
                          PyTuple_GetItem(sequence, i), i) < 0)
            return argument_error(arguments, i);
    return 0;
}

/* Blocks or threads: a number, or up to three. */
static int sizes_take(PyObject *object, const char *what, unsigned sizes[3])
{
    PyObject *tuple = PyIndex_Check(object) ? PyTuple_Pack(1, object) : items_take(object, 3);
    if (tuple == NULL)
        return -1;
    Py_ssize_t count = PyTuple_Size(tuple);
    int result = count >= 1 && count <= 3 ? 0 : -1;
    if (result < 0)
        PyErr_Format(PyExc_ValueError, "%s is a number, or one to three of them, not %R", what,
                     object);
    for (Py_ssize_t i = 0; i < 3 && result == 0; i++) {
        size_t size = 1;
        result = i < count ? size_from_python(PyTuple_GetItem(tuple, i), what, &size) : 0;
        if (result == 0 && (size == 0 || size > UINT32_MAX)) {
            PyErr_Format(PyExc_ValueError, "%s has sizes from 1 on, not %R", what, object);
            result = -1;
        }
        sizes[i] = (unsigned)size;
    }
    Py_DECREF(tuple);
    return result;
}

/* ---- calls ---------------------------------------------------------------------------------- */

static PyObject *kernel_launch(struct kernel_object *kernel, gn_kernel *code, gn_device *device,
                               const gn_kernel_shape *shape, gn_stream *stream, PyObject *sequence)
{
    struct arguments arguments;
    arguments.code = code;
    arguments.device = device;
    arguments.buffer_count = 0;
    gn_status status = GN_OK;
    int result = arguments_read(kernel, sequence, &arguments);
    if (result == 0)
        CALL_UNLOCKED(status, gn_kernel_launch(code, shape, arguments.addresses, stream));
    arguments_release(&arguments);
    if (result < 0)
        return NULL;
    return none_or_raise((PyObject *)kernel, status);
}

static PyObject *kernel_call(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"grid", "block", "args", "shared", "stream", NULL};
    struct kernel_object *kernel = kernel_of(self);
    PyObject *grid, *block, *given, *shared = NULL, *where = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOO|OO:Kernel", names, &grid, &block,
                                     &given, &shared, &where))
        return NULL;
    gn_kernel_shape shape = {.shared_bytes = 0};
    gn_device *device = NULL;
    gn_stream *stream = NULL;
    if (sizes_take(grid, "grid", shape.grid) < 0 || sizes_take(block, "block", shape.block) < 0 ||
        (shared != NULL && size_from_python(shared, "shared", &shape.shared_bytes) < 0))
        return NULL;
    if (where != Py_None && stream_from_python(kernel->state, where, NULL, &stream) < 0)
        return NULL;
    if (stream != NULL)
        device = gn_stream_get_device(stream);
    else if (device_from_python(kernel->state, Py_None, &device) < 0)
        return NULL;
    gn_kernel *code = kernel_on(kernel, device);
    PyObject *sequence = code != NULL ? items_take(given, ARGUMENTS_MAX) : NULL;
    if (sequence == NULL)
        return NULL;
    PyObject *result = kernel_launch(kernel, code, device, &shape, stream, sequence);
    Py_DECREF(sequence);
    return result;
}

/* The device argument of a method, and the code for it. */
static gn_kernel *kernel_on_argument(PyObject *self, PyObject *arguments, PyObject *keywords,
                                     const char *format)
{
    static char *names[] = {"device", NULL};
    PyObject *name = Py_None;
    gn_device *device;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, format, names, &name) ||
        device_from_python(kernel_of(self)->state, name, &device) < 0)
        return NULL;
    return kernel_on(kernel_of(self), device);
}

static PyObject *kernel_compile(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"device", "wait", NULL};
    struct kernel_object *kernel = kernel_of(self);
    PyObject *name = Py_None;
    int is_waiting = 1;
    gn_device *device;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O$p:compile", names, &name,
                                     &is_waiting) ||
        device_from_python(kernel->state, name, &device) < 0)
        return NULL;
    if (is_waiting) {
        if (kernel_on(kernel, device) == NULL)
            return NULL;
        Py_RETURN_NONE;
    }
    const char *options[OPTIONS_MAX + 1];
    options_fill(kernel, options);
    return none_or_raise(self, gn_kernel_request(device, text_from_python(kernel->text),
                                                 text_from_python(kernel->name), options));
}

static PyObject *kernel_properties(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    gn_kernel *code = kernel_on_argument(self, arguments, keywords, "|O:properties");
    if (code == NULL)
        return NULL;
    gn_kernel_properties properties;
    gn_status status = gn_kernel_get_properties(code, &properties);
    if (status != GN_OK)
        return error_raise(kernel_of(self)->state, status);
    return Py_BuildValue("{sisisisnsn}", "parameters", properties.parameter_count,
                         "max_threads_per_block", properties.max_threads_per_block, "registers",
                         properties.register_count, "static_shared_bytes",
                         (Py_ssize_t)properties.static_shared_bytes, "local_bytes",
                         (Py_ssize_t)properties.local_bytes);
}

static PyObject *kernel_get_name(PyObject *self, void *unused)
{
    (void)unused;
    return Py_NewRef(kernel_of(self)->name);
}

static PyObject *kernel_get_source(PyObject *self, void *unused)
{
    (void)unused;
    return Py_NewRef(kernel_of(self)->text);
}

static PyObject *kernel_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<genesis.cuda.Kernel %U>", kernel_of(self)->name);
}

static PyMethodDef kernel_methods[] = {
    {"compile", WITH_KEYWORDS(kernel_compile),
     "compile($self, device=None, *, wait=True)\n--\n\n"
     "Compiles for a device now, which the first launch there would do otherwise. wait=False: in "
     "the\n"
     "background."},
    {"properties", WITH_KEYWORDS(kernel_properties),
     "properties($self, device=None)\n--\n\n"
     "What the compiled kernel is: parameters (-1: not known), max_threads_per_block, registers,\n"
     "static_shared_bytes, local_bytes."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef kernel_getset[] = {
    {"name", kernel_get_name, NULL, "The kernel's name.", NULL},
    {"source", kernel_get_source, NULL, "The text that is compiled.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot kernel_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t) "A kernel from CUDA C. Use genesis.cuda.Kernel instead."},
    {Py_tp_new, kernel_new},
    {Py_tp_dealloc, kernel_dealloc},
    {Py_tp_repr, kernel_repr},
    {Py_tp_call, kernel_call},
    {Py_tp_methods, kernel_methods},
    {Py_tp_getset, kernel_getset},
    {0, NULL},
};

static PyType_Spec kernel_spec = {
    .name = "genesis._C.Kernel",
    .basicsize = sizeof(struct kernel_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = kernel_slots,
};

static PyObject *clear_kernel_cache(PyObject *module, PyObject *unused)
{
    (void)unused;
    size_t removed;
    gn_status status;
    CALL_UNLOCKED(status, gn_kernel_cache_clear(&removed));
    return status == GN_OK ? PyLong_FromSize_t(removed)
                           : error_raise(module_state_of(module), status);
}

static PyObject *kernel_archive(PyObject *module, PyObject *unused)
{
    gn_kernel_archive_description archive;
    (void)module, (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    gn_kernel_archive_describe(&archive);
    Py_END_ALLOW_THREADS;
    return Py_BuildValue("{sOsOsisnsnsssssN}", "is_found", archive.is_found ? Py_True : Py_False,
                         "is_used", archive.is_used ? Py_True : Py_False, "nvrtc_version",
                         archive.nvrtc_version, "kernel_count", (Py_ssize_t)archive.kernel_count,
                         "nbytes", (Py_ssize_t)archive.nbytes, "architectures",
                         archive.architectures, "path", archive.path, "reason",
                         PyUnicode_DecodeFSDefault(archive.reason));
}

static PyObject *warm_up_operations(PyObject *module, PyObject *arguments)
{
    struct module_state *state = module_state_of(module);
    PyObject *name;
    int is_waiting;
    gn_device *device;
    gn_status status;
    if (!PyArg_ParseTuple(arguments, "Op:warm_up_operations", &name, &is_waiting) ||
        device_from_python(state, name, &device) < 0)
        return NULL;
    CALL_UNLOCKED(status, is_waiting ? gn_warm_up(device) : gn_warm_up_begin(device));
    if (status != GN_OK)
        return error_raise(state, status);
    Py_RETURN_NONE;
}

/* In short steps, between which signals are handled. */
static PyObject *wait_for_kernels(PyObject *module, PyObject *unused)
{
    (void)unused;
    gn_status status = GN_ERROR_NOT_READY;
    while (status == GN_ERROR_NOT_READY) {
        CALL_UNLOCKED(status, gn_kernel_wait(WAIT_STEP_MS));
        if (PyErr_CheckSignals() < 0)
            return NULL;
    }
    if (status != GN_OK)
        return error_raise(module_state_of(module), status);
    Py_RETURN_NONE;
}

/* (name, device, tier, origin, compile_ms, launches, measured, gpu_ms) */
static PyObject *description_to_python(const gn_kernel_description *from)
{
    static const char *const origins[] = {"compiler", "disk", "archive"};
    return Py_BuildValue("(siisdKKd)", from->name, from->device, from->tier, origins[from->origin],
                         from->compile_ms, (unsigned long long)from->launch_count,
                         (unsigned long long)from->measured_count, from->gpu_ms);
}

/* What is loaded now: there may be more of it a moment later. */
static PyObject *kernel_list(PyObject *module, PyObject *unused)
{
    (void)unused;
    struct module_state *state = module_state_of(module);
    gn_kernel_description *kernels = NULL;
    size_t capacity = 0, count;
    gn_status status;
    while ((status = gn_kernel_list(kernels, capacity, &count)) == GN_OK && count > capacity) {
        PyMem_Free(kernels);
        capacity = count;
        kernels = PyMem_Calloc(capacity, sizeof *kernels);
        if (kernels == NULL)
            return PyErr_NoMemory();
    }
    PyObject *list = status == GN_OK ? PyList_New(0) : error_raise(state, status);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *one = description_to_python(&kernels[i]);
        if (one == NULL || PyList_Append(list, one) < 0)
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    PyMem_Free(kernels);
    return list;
}

/* (kernel, problem, device, chosen, ((values, milliseconds), ...)) */
static PyObject *tuning_to_python(const gn_tuning *tuning)
{
    PyObject *candidates = PyTuple_New(tuning->count);
    for (int i = 0; candidates != NULL && i < tuning->count; i++) {
        const gn_tuning_candidate *from = &tuning->candidates[i];
        PyObject *one = Py_BuildValue("(sd)", from->values, from->milliseconds);
        if (one == NULL || PyTuple_SetItem(candidates, i, one) < 0)
            Py_CLEAR(candidates);
    }
    return candidates == NULL ? NULL
                              : Py_BuildValue("(sssiN)", tuning->kernel, tuning->problem,
                                              tuning->device, (int)tuning->chosen, candidates);
}

/* What is known now: there may be more of it a moment later. */
static PyObject *tuning_list(PyObject *module, PyObject *unused)
{
    (void)unused;
    struct module_state *state = module_state_of(module);
    gn_tuning *entries = NULL;
    size_t capacity = 0, count;
    gn_status status;
    for (;;) {
        CALL_UNLOCKED(status, gn_tuning_list(entries, capacity, &count));
        if (status != GN_OK || count <= capacity)
            break;
        PyMem_Free(entries);
        capacity = count;
        entries = PyMem_Calloc(capacity, sizeof *entries);
        if (entries == NULL)
            return PyErr_NoMemory();
    }
    PyObject *list = status == GN_OK ? PyList_New(0) : error_raise(state, status);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *one = tuning_to_python(&entries[i]);
        if (one == NULL || PyList_Append(list, one) < 0)
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    PyMem_Free(entries);
    return list;
}

static PyMethodDef kernel_functions[] = {
    {"kernel_archive", kernel_archive, METH_NOARGS,
     "kernel_archive($module, /)\n--\n\nThe archive of compiled kernels, as a dict."},
    {"clear_kernel_cache", clear_kernel_cache, METH_NOARGS,
     "clear_kernel_cache($module, /)\n--\n\nForgets compiled kernels; how many were on disk."},
    {"kernel_list", kernel_list, METH_NOARGS,
     "kernel_list($module, /)\n--\n\nWhat is loaded: (name, device, tier, origin, compile_ms, "
     "launches, measured,\ngpu_ms)."},
    {"tuning_list", tuning_list, METH_NOARGS,
     "tuning_list($module, /)\n--\n\nWhat was measured: (kernel, problem, device, chosen, "
     "candidates)."},
    {"wait_for_kernels", wait_for_kernels, METH_NOARGS,
     "wait_for_kernels($module, /)\n--\n\nWaits for what is compiled in the background."},
    {"warm_up_operations", warm_up_operations, METH_VARARGS,
     "warm_up_operations($module, device, wait, /)\n--\n\nCompiles kernels of common operations, "
     "or has them\ncompiled in the background."},
    {NULL, NULL, 0, NULL},
};

/* The interpreter ends before the process's exit handlers run: see gn_kernel_stop(). */
static int stop_register(void)
{
    static bool is_registered;
    if (!is_registered && Py_AtExit(gn_kernel_stop) < 0) {
        PyErr_SetString(PyExc_RuntimeError, "the interpreter takes no more exit handlers");
        return -1;
    }
    is_registered = true;
    return 0;
}

int kernel_class_init(PyObject *module)
{
    if (stop_register() < 0)
        return -1;
    PyObject *class = PyType_FromModuleAndSpec(module, &kernel_spec, NULL);
    int result = class != NULL ? PyModule_AddObjectRef(module, "Kernel", class) : -1;
    Py_XDECREF(class);
    return result == 0 ? PyModule_AddFunctions(module, kernel_functions) : -1;
}
