/*
 * python_function.c: the functions of genesis/function.h as functions and methods of Python: one way to call them all.
 *
 * A row's signature is read when the function is first called. Arguments go by place or by name. NumPy's names are
 * understood where PyTorch's stand: axis for dim, axes and axis for dims, keepdims for keepdim.
 *
 * CPython's limited API gives a C function no data of its own: functions are numbered, and each number has three C
 * functions (THUNKS) for its forms.
 */
#include "module.h"

#include <stddef.h>
#include <string.h>

enum {
    PARAMETERS_MOST = 12,
    FUNCTIONS_MOST = 512, /* names: aliases count */
    INTEGERS_MOST = 64,   /* of one argument */
};

enum parameter_kind {
    KIND_TENSOR,
    KIND_OPERAND,
    KIND_INT,
    KIND_NUMBER,
    KIND_BOOL,
    KIND_TEXT,
    KIND_DIM,
    KIND_DIMS,
    KIND_SIZES,
    KIND_TENSORS,
    KIND_DTYPE,
    KIND_DEVICE,
    KIND_ELEMENTS,
    KIND_VALUES,
    KIND_KEYS,
    KIND_COUNTS,
    KIND_GENERATOR,
    KIND_COUNT,
};

static const char *const kind_words[KIND_COUNT] = {
    "Tensor",  "operand", "int",    "number",   "bool",   "text", "dim",    "dims",      "sizes",
    "tensors", "dtype",   "device", "elements", "values", "keys", "counts", "generator",
};

struct parameter {
    char name[24];
    enum parameter_kind kind;
    bool is_by_name; /* behind "*" */
    bool is_rest;    /* "*shape": takes the rest of the arguments */
    bool is_required;
    gn_argument standard; /* the default */
    char word[24];        /* of a text */
};

enum result_kind {
    RESULT_TENSOR,
    RESULT_PAIR,
    RESULT_TENSORS,
    RESULT_BOOL,
    RESULT_INT,
    RESULT_SIZES,
    RESULT_DTYPE,
    RESULT_EITHER, /* a tensor, or a tuple of tensors */
};

struct function {
    const gn_function *row;
    char name[32];
    bool is_parsed;
    int count;
    enum result_kind result;
    struct parameter parameters[PARAMETERS_MOST];
};

static struct function functions[FUNCTIONS_MOST];
static int function_count;

/* ---- signatures ------------------------------------------------------------------------------ */

static const char *behind_spaces(const char *at)
{
    return at + strspn(at, " ");
}

/* Copies the word up to one of `ends`; where that is. */
static const char *word_take(const char *at, const char *ends, char *word, size_t room)
{
    size_t length = strcspn(at, ends);
    size_t kept = length < room - 1 ? length : room - 1;
    memcpy(word, at, kept);
    word[kept] = '\0';
    return at + length;
}

static void default_parse(const char *text, struct parameter *parameter)
{
    gn_argument *standard = &parameter->standard;
    gn_scalar *number = &standard->operand.scalar;
    standard->is_given = strcmp(text, "None") != 0;
    if (text[0] == '\'') {
        (void)word_take(text + 1, "'", parameter->word, sizeof parameter->word);
        standard->text = parameter->word;
    } else if (strcmp(text, "True") == 0 || strcmp(text, "False") == 0) {
        *number = (gn_scalar){.kind = GN_BOOL, .integer = text[0] == 'T'};
    } else if (strpbrk(text, ".e") != NULL && standard->is_given) {
        *number =
            (gn_scalar){.kind = GN_FLOAT64, .floating = PyOS_string_to_double(text, NULL, NULL)};
    } else if (standard->is_given) {
        *number = (gn_scalar){.kind = GN_INT64, .integer = PyOS_strtol(text, NULL, 10)};
    }
}

/* One parameter of a signature; where it ends. */
static const char *parameter_parse(const char *at, struct parameter *parameter)
{
    char kind[16], value[24] = "";
    parameter->is_rest = *at == '*';
    at = word_take(at + parameter->is_rest, ":", parameter->name, sizeof parameter->name);
    at = word_take(behind_spaces(at + 1), " ,", kind, sizeof kind);
    at = behind_spaces(at);
    parameter->is_required = *at != '=' && !parameter->is_rest;
    if (*at == '=')
        at = word_take(behind_spaces(at + 1), ", ", value, sizeof value);
    for (int i = 0; i < KIND_COUNT; i++)
        if (strcmp(kind, kind_words[i]) == 0)
            parameter->kind = (enum parameter_kind)i;
    if (value[0] != '\0')
        default_parse(value, parameter);
    return at;
}

static enum result_kind result_parse(const char *text)
{
    return text == NULL                             ? RESULT_TENSOR
           : strncmp(text, "-> tensors", 10) == 0   ? RESULT_TENSORS
           : strncmp(text, "-> bool", 7) == 0       ? RESULT_BOOL
           : strncmp(text, "-> int", 6) == 0        ? RESULT_INT
           : strncmp(text, "-> sizes", 8) == 0      ? RESULT_SIZES
           : strncmp(text, "-> dtype", 8) == 0      ? RESULT_DTYPE
           : strncmp(text, "-> Tensor or", 12) == 0 ? RESULT_EITHER
                                                    : RESULT_PAIR;
}

static void function_parse(struct function *function)
{
    const char *at = function->row->signature;
    bool is_by_name = false;
    function->result = result_parse(strstr(at, "-> "));
    while (*(at = at + strspn(at, ", ")) != '\0' && *at != '-') {
        if (at[0] == '*' && at[1] == ',') {
            is_by_name = true;
            at++;
            continue;
        }
        struct parameter *parameter = &function->parameters[function->count++];
        parameter->is_by_name = is_by_name;
        at = parameter_parse(at, parameter);
        is_by_name |= parameter->is_rest;
    }
    function->is_parsed = true;
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* What the arguments of one call are made of, until it ends. */
struct call_frame {
    struct module_state *state;
    const char *name;
    PyObject *objects[PARAMETERS_MOST]; /* borrowed; NULL: left out */
    PyObject *made[PARAMETERS_MOST];    /* new references that arguments borrow from */
    PyObject *rest;                     /* arguments of a "*shape", a new tuple */
    PyObject *out;                      /* borrowed; NULL: none */
    PyObject *target; /* borrowed: the tensor that a GN_FORM_WRITES function changes; NULL: none */
    gn_tensor **tensors;                    /* of the one list of tensors */
    struct key *key;                        /* of the one list of keys */
    int integer_count;                      /* of `integers` */
    gn_argument arguments[PARAMETERS_MOST]; /* from here on nothing is set at first */
    gn_generator generator;
    int64_t integers[INTEGERS_MOST];
};

static void frame_clear(struct call_frame *frame)
{
    for (int i = 0; i < PARAMETERS_MOST; i++)
        Py_XDECREF(frame->made[i]);
    Py_XDECREF(frame->rest);
    PyMem_Free(frame->tensors);
    key_free(frame->key);
}

static bool is_word(PyObject *key, const char *word)
{
    return PyUnicode_CompareWithASCIIString(key, word) == 0;
}

/* Whether a keyword names a parameter, by PyTorch's name or NumPy's. */
static bool is_named(PyObject *key, const char *name)
{
    if (is_word(key, name))
        return true;
    if (strcmp(name, "dim") == 0)
        return is_word(key, "axis");
    if (strcmp(name, "dims") == 0)
        return is_word(key, "axis") || is_word(key, "axes");
    return strcmp(name, "keepdim") == 0 && is_word(key, "keepdims");
}

static int keyword_take(const struct function *function, struct call_frame *frame, PyObject *key,
                        PyObject *value)
{
    int place = 0;
    while (place < function->count && !is_named(key, function->parameters[place].name))
        place++;
    if (place == function->count && (function->row->forms & GN_FORM_OUT) != 0 &&
        is_word(key, "out")) {
        frame->out = value != Py_None ? value : NULL;
        return 0;
    }
    if (place == function->count || frame->objects[place] != NULL) {
        PyErr_Format(PyExc_TypeError,
                     place == function->count ? "%s() got an unexpected keyword argument %R"
                                              : "%s() got two values for the argument %R",
                     frame->name, key);
        return -1;
    }
    frame->objects[place] = value;
    return 0;
}

/* Arguments to their parameters. `self` is the first, or NULL. */
static int frame_fill(const struct function *function, struct call_frame *frame, PyObject *self,
                      PyObject *const *arguments, Py_ssize_t count, PyObject *keywords)
{
    int place = 0, most = 0;
    Py_ssize_t named = keywords != NULL ? PyTuple_Size(keywords) : 0, taken = 0;
    while (most < function->count && !function->parameters[most].is_by_name &&
           !function->parameters[most].is_rest)
        most++;
    if (self != NULL)
        frame->objects[place++] = self;
    while (taken < count && place < most)
        frame->objects[place++] = arguments[taken++];
    if (taken < count && most < function->count && function->parameters[most].is_rest) {
        frame->rest = PyTuple_New(count - taken);
        for (Py_ssize_t i = taken; frame->rest != NULL && i < count; i++)
            (void)PyTuple_SetItem(frame->rest, i - taken, Py_NewRef(arguments[i]));
        if (frame->rest == NULL)
            return -1;
        frame->objects[most] = count - taken == 1 ? arguments[taken] : frame->rest;
        taken = count;
    }
    if (taken < count) {
        int own = most - (self != NULL);
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d argument%s by place, not %zd",
                     frame->name, own, plural(own), count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < named; i++)
        if (keyword_take(function, frame, PyTuple_GetItem(keywords, i), arguments[count + i]) < 0)
            return -1;
    for (int i = 0; i < function->count; i++)
        if (frame->objects[i] == NULL && function->parameters[i].is_required) {
            PyErr_Format(PyExc_TypeError, "%s() needs the argument '%s'", frame->name,
                         function->parameters[i].name);
            return -1;
        }
    return 0;
}

/* ---- values ---------------------------------------------------------------------------------- */

static int refuse(const struct call_frame *frame, const struct parameter *parameter,
                  const char *what, PyObject *given)
{
    error_clear();
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%s: %s is %s, not %R", frame->name, parameter->name, what,
                     given);
    return -1;
}

static int tensor_take(struct call_frame *frame, const struct parameter *parameter, PyObject *given,
                       gn_argument *argument)
{
    if (!tensor_check(frame->state, given)) {
        if (strcmp(parameter->name, "input") == 0) {
            PyErr_Format(PyExc_TypeError, "%s: %R is not a Tensor", frame->name, given);
            return -1;
        }
        return refuse(frame, parameter, "a Tensor", given);
    }
    argument->operand.tensor = tensor_of(given);
    return 0;
}

/* An integer of Python, NumPy, or a tensor of one. */
static int integer_take(const struct call_frame *frame, const struct parameter *parameter,
                        PyObject *given, int64_t *value)
{
    PyObject *number = PyNumber_Index(given);
    if (number == NULL)
        return refuse(frame, parameter, "an integer", given);
    *value = PyLong_AsLongLong(number);
    Py_DECREF(number);
    return *value == -1 && PyErr_Occurred() ? -1 : 0;
}

/* A number of any kind; tensors and NumPy's numbers as the number of Python that they are. */
static int number_take(const struct call_frame *frame, const struct parameter *parameter,
                       PyObject *given, gn_operand *operand)
{
    int found =
        tensor_check(frame->state, given) ? 0 : operand_from_python(frame->state, given, operand);
    if (found != 0)
        return found < 0 ? -1 : 0;
    PyObject *number = PyObject_HasAttrString(given, "item")
                           ? PyObject_CallMethod(given, "item", NULL)
                           : PyNumber_Float(given);
    found = number != NULL && !tensor_check(frame->state, number)
                ? operand_from_python(frame->state, number, operand)
                : 0;
    Py_XDECREF(number);
    return found > 0 ? 0 : found < 0 ? -1 : refuse(frame, parameter, "a number", given);
}

static int integers_take(struct call_frame *frame, const struct parameter *parameter,
                         PyObject *given, gn_argument *argument)
{
    int64_t *values = frame->integers + frame->integer_count;
    int room = INTEGERS_MOST - frame->integer_count;
    int most = parameter->kind == KIND_DIMS && room > GN_DIMENSIONS_MAX ? GN_DIMENSIONS_MAX : room;
    bool is_shape = strcmp(parameter->name, "shape") == 0 || strcmp(parameter->name, "size") == 0;
    if (is_shape && !PyIndex_Check(given) && !PySequence_Check(given) &&
        !PyObject_HasAttrString(given, "__iter__")) {
        PyErr_Format(PyExc_TypeError, "a shape is of integers, not %R", given);
        return -1;
    }
    if (integers_from_python(given, is_shape ? "a shape" : parameter->name, values, most,
                             &argument->count) < 0)
        return -1;
    argument->integers = values;
    frame->integer_count += argument->count;
    return 0;
}

/* A list of tensors, not the tensors one by one. */
static int tensors_take(struct call_frame *frame, PyObject *given, PyObject **items,
                        gn_argument *argument)
{
    if (tensor_check(frame->state, given)) {
        PyErr_Format(PyExc_TypeError, "%s: pass a list: %s([x, y]), not the tensors one by one",
                     frame->name, frame->name);
        return -1;
    }
    *items = iterable_take(given);
    if (*items == NULL)
        return -1;
    Py_ssize_t count = PyTuple_Size(*items);
    frame->tensors = PyMem_Calloc((size_t)count + 1, sizeof(gn_tensor *));
    if (frame->tensors == NULL || count == 0 || count > INT32_MAX) {
        if (frame->tensors == NULL)
            (void)PyErr_NoMemory();
        else
            PyErr_Format(PyExc_ValueError, "%s: there must be a tensor", frame->name);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GetItem(*items, i);
        if (!tensor_check(frame->state, item)) {
            PyObject *type = PyType_GetName(Py_TYPE(item));
            if (type != NULL)
                PyErr_Format(PyExc_TypeError,
                             "%s: a list of tensors, and number %zd of it is of type %U",
                             frame->name, i, type);
            Py_XDECREF(type);
            return -1;
        }
        frame->tensors[i] = tensor_of(item);
    }
    argument->tensors = frame->tensors;
    argument->count = (int)count;
    return 0;
}

/* The device of the first tensor among the arguments; NULL: there is none. */
static gn_device *device_beside(const struct call_frame *frame, const struct function *function)
{
    for (int i = 0; i < function->count; i++)
        if (frame->objects[i] != NULL && tensor_check(frame->state, frame->objects[i]))
            return gn_tensor_get_device(tensor_of(frame->objects[i]));
    return NULL;
}

/* Data as a tensor beside the others; numbers stay what they are where `is_number` allows that. */
static int elements_take(struct call_frame *frame, const struct function *function, int place,
                         bool is_number)
{
    PyObject *given = frame->objects[place], **made = &frame->made[place];
    gn_operand *operand = &frame->arguments[place].operand;
    gn_device *device = device_beside(frame, function);
    if (tensor_check(frame->state, given)) {
        operand->tensor = tensor_of(given);
        return 0;
    }
    int found = is_number ? operand_from_python(frame->state, given, operand) : 0;
    if (found != 0)
        return found < 0 ? -1 : 0;
    *made = is_number ? value_take(frame->state, given)
                      : tensor_make(frame->state, given, NULL, NULL, false);
    if (*made != NULL && device != NULL) {
        PyObject *moved = tensor_move(*made, device);
        Py_DECREF(*made);
        *made = moved;
    }
    if (*made == NULL)
        return -1;
    *operand = (gn_operand){.tensor = tensor_of(*made)};
    return 0;
}

/* A count that does not fit int64 is as good as the largest that does: no tensor has as many elements. */
static int counts_take(struct call_frame *frame, const struct function *function, int place)
{
    int overflow = 0;
    if (!PyLong_Check(frame->objects[place]))
        return elements_take(frame, function, place, false);
    long long count = PyLong_AsLongLongAndOverflow(frame->objects[place], &overflow);
    frame->arguments[place].operand.scalar.integer = overflow == 0  ? count
                                                     : overflow > 0 ? INT64_MAX
                                                                    : -1;
    return 0;
}

/* The parts of a key, which borrow from `items`. */
static int keys_take(struct call_frame *frame, PyObject *given, PyObject **items,
                     gn_argument *argument)
{
    *items = iterable_take(given);
    if (*items == NULL)
        return -1;
    frame->key = key_make(frame->state, *items, &argument->keys, &argument->count);
    return frame->key != NULL ? 0 : -1;
}

/* An argument that is left out, or None. */
static int default_take(struct call_frame *frame, const struct function *function, int place)
{
    const struct parameter *parameter = &function->parameters[place];
    gn_argument *argument = &frame->arguments[place];
    *argument = frame->objects[place] == NULL ? parameter->standard : (gn_argument){0};
    if (parameter->kind == KIND_DEVICE) {
        argument->device = device_beside(frame, function);
        if (argument->device == NULL)
            return device_of_new(frame->state, Py_None, &argument->device);
    } else if (parameter->kind == KIND_GENERATOR) {
        argument->generator = &frame->generator;
        return generator_take(frame->state, Py_None, &frame->generator);
    }
    return 0;
}

static int argument_take(struct call_frame *frame, const struct function *function, int place)
{
    const struct parameter *parameter = &function->parameters[place];
    gn_argument *argument = &frame->arguments[place];
    PyObject *given = frame->objects[place];
    if (given == NULL || (given == Py_None && !parameter->is_required))
        return default_take(frame, function, place);
    *argument = (gn_argument){.is_given = true};
    gn_scalar *scalar = &argument->operand.scalar;
    scalar->kind = GN_INT64;
    switch (parameter->kind) {
    case KIND_TENSOR:
        return tensor_take(frame, parameter, given, argument);
    case KIND_OPERAND:
        return operand_take(frame->state, frame->name, given, frame->objects, function->count,
                            &argument->operand, &frame->made[place]);
    case KIND_INT:
    case KIND_DIM:
        return integer_take(frame, parameter, given, &scalar->integer);
    case KIND_NUMBER:
        return number_take(frame, parameter, given, &argument->operand);
    case KIND_BOOL:
        scalar->integer = PyObject_IsTrue(given);
        return scalar->integer < 0 ? -1 : 0;
    case KIND_TEXT:
        if (!PyUnicode_Check(given))
            return refuse(frame, parameter, "a text", given);
        argument->text = text_from_python(given);
        return argument->text != NULL ? 0 : -1;
    case KIND_DIMS:
    case KIND_SIZES:
        return integers_take(frame, parameter, given, argument);
    case KIND_TENSORS:
        return tensors_take(frame, given, &frame->made[place], argument);
    case KIND_DTYPE:
        return dtype_from_python(frame->state, given, &argument->dtype);
    case KIND_DEVICE:
        return device_of_new(frame->state, given, &argument->device);
    case KIND_ELEMENTS:
    case KIND_VALUES:
        return elements_take(frame, function, place, parameter->kind == KIND_VALUES);
    case KIND_COUNTS:
        return counts_take(frame, function, place);
    case KIND_KEYS:
        return keys_take(frame, given, &frame->made[place], argument);
    case KIND_GENERATOR:
        argument->generator = &frame->generator;
        return generator_take(frame->state, given, &frame->generator);
    case KIND_COUNT:
        break;
    }
    return -1;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* A tensor of the results, which the object of Python takes over. A function may give an argument as it is: that has an
 * object already. */
static PyObject *result_take(const struct call_frame *frame, gn_results *results, int index)
{
    gn_tensor *tensor = results->tensors[index];
    results->tensors[index] = NULL;
    for (int i = 0; i < PARAMETERS_MOST; i++) {
        PyObject *object = frame->made[i] != NULL ? frame->made[i] : frame->objects[i];
        if (object != NULL && tensor_check(frame->state, object) && tensor_of(object) == tensor) {
            gn_tensor_release(tensor);
            return Py_NewRef(object);
        }
    }
    return tensor_to_python(frame->state, tensor);
}

static PyObject *tuple_of(const struct call_frame *frame, gn_results *results)
{
    PyObject *tuple = PyTuple_New(results->count);
    for (int i = 0; tuple != NULL && i < results->count; i++) {
        PyObject *item = result_take(frame, results, i);
        if (item == NULL || PyTuple_SetItem(tuple, i, item) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *results_to_python(const struct function *function, const struct call_frame *frame,
                                   gn_results *results)
{
    switch (function->result) {
    case RESULT_TENSOR:
        return result_take(frame, results, 0);
    case RESULT_PAIR: {
        gn_tensor *first = results->tensors[0], *second = results->tensors[1];
        results->count = 0;
        return pair_make(frame->state, first, second);
    }
    case RESULT_EITHER:
        if (!results->is_tuple && results->count == 1)
            return result_take(frame, results, 0);
        return tuple_of(frame, results);
    case RESULT_TENSORS:
        return tuple_of(frame, results);
    case RESULT_BOOL:
        return PyBool_FromLong(results->number.integer != 0);
    case RESULT_INT:
        return PyLong_FromLongLong(results->number.integer);
    case RESULT_SIZES:
        return integers_to_python(results->sizes, results->count);
    case RESULT_DTYPE:
        return dtype_to_python(frame->state, results->dtype);
    }
    return NULL;
}

/* Writes results to the tensors of out=, one or a tuple of as many. */
static PyObject *results_write(struct call_frame *frame, gn_results *results)
{
    bool is_one = results->count == 1;
    PyObject *places = is_one ? PyTuple_Pack(1, frame->out) : Py_NewRef(frame->out);
    bool is_fitting = places != NULL && (PyTuple_Check(places) || PyList_Check(places)) &&
                      PySequence_Size(places) == results->count;
    if (places != NULL && !is_fitting)
        PyErr_Format(PyExc_TypeError, "%s: out is a tuple of %d tensors, not %R", frame->name,
                     results->count, frame->out);
    for (int i = 0; is_fitting && i < results->count; i++) {
        PyObject *place = PySequence_GetItem(places, i);
        gn_tensor *tensor = results->tensors[i];
        results->tensors[i] = NULL;
        PyObject *written =
            place != NULL ? result_into(frame->state, frame->name, tensor, place) : NULL;
        if (place == NULL)
            gn_tensor_release(tensor);
        is_fitting = written != NULL;
        Py_XDECREF(written);
        Py_XDECREF(place);
    }
    Py_XDECREF(places);
    return is_fitting ? Py_NewRef(frame->out) : NULL;
}

/* Whether the call may take long: the interpreter's lock is let go then. So it is where all tensors are new ones, of
 * any size. */
static bool is_long(const struct function *function, const struct call_frame *frame)
{
    bool has_tensor = false;
    for (int i = 0; i < function->count; i++) {
        const gn_argument *argument = &frame->arguments[i];
        has_tensor |= argument->operand.tensor != NULL || argument->tensors != NULL;
        if (argument->operand.tensor != NULL && is_long_on(argument->operand.tensor))
            return true;
        for (int k = 0; argument->tensors != NULL && k < argument->count; k++)
            if (is_long_on(argument->tensors[k]))
                return true;
    }
    return !has_tensor;
}

static PyObject *function_run(struct function *function, struct call_frame *frame)
{
    gn_results results = {.target = frame->target != NULL ? tensor_of(frame->target) : NULL};
    gn_status status;
    PyObject *made;
    for (int i = 0; i < function->count; i++)
        if (argument_take(frame, function, i) < 0) {
            (void)argument_refuse(frame->name);
            return NULL;
        }
    CALL_OPERATION(is_long(function, frame), status,
                   function->row->call(frame->arguments, &results));
    if (status != GN_OK)
        return error_raise_in(frame->state, frame->name, status);
    made = frame->out != NULL ? results_write(frame, &results)
                              : results_to_python(function, frame, &results);
    gn_results_clear(&results);
    return made;
}

enum form {
    FORM_FUNCTION,
    FORM_METHOD,
    FORM_IN_PLACE,
};

static PyObject *function_call(int number, enum form form, PyObject *self,
                               PyObject *const *arguments, Py_ssize_t count, PyObject *keywords)
{
    struct function *function = &functions[number];
    struct call_frame frame;
    PyObject *made = NULL;
    memset(&frame, 0, offsetof(struct call_frame, arguments)); /* the rest is set when it is used */
    frame.name = function->name;
    char in_place[sizeof function->name + 1];
    if (!function->is_parsed)
        function_parse(function);
    frame.state = form == FORM_FUNCTION ? module_state_of(self) : tensor_state(self);
    if (form == FORM_IN_PLACE) {
        (void)PyOS_snprintf(in_place, sizeof in_place, "%s_", function->name);
        frame.name = in_place;
    }
    if (frame_fill(function, &frame, form == FORM_FUNCTION ? NULL : self, arguments, count,
                   keywords) < 0) {
        /* The exception says what is wrong. */
    } else if (form == FORM_IN_PLACE && frame.out != NULL) {
        PyErr_Format(PyExc_TypeError,
                     "%s: the result goes to the tensor itself: out= is not for this", frame.name);
    } else {
        if (form == FORM_IN_PLACE && (function->row->forms & GN_FORM_WRITES) != 0)
            frame.target = self;
        else if (form == FORM_IN_PLACE)
            frame.out = self;
        made = function_run(function, &frame);
    }
    frame_clear(&frame);
    return made;
}

/* ---- thunks ---------------------------------------------------------------------------------- */

#define THUNK(n)                                                                                \
    static PyObject *function_##n(PyObject *self, PyObject *const *arguments, Py_ssize_t count, \
                                  PyObject *keywords)                                           \
    {                                                                                           \
        return function_call(0x##n, FORM_FUNCTION, self, arguments, count, keywords);           \
    }                                                                                           \
    static PyObject *method_##n(PyObject *self, PyObject *const *arguments, Py_ssize_t count,   \
                                PyObject *keywords)                                             \
    {                                                                                           \
        return function_call(0x##n, FORM_METHOD, self, arguments, count, keywords);             \
    }                                                                                           \
    static PyObject *in_place_##n(PyObject *self, PyObject *const *arguments, Py_ssize_t count, \
                                  PyObject *keywords)                                           \
    {                                                                                           \
        return function_call(0x##n, FORM_IN_PLACE, self, arguments, count, keywords);           \
    }
#define HEX(X, n) \
    X(n##0)       \
    X(n##1)       \
    X(n##2)       \
    X(n##3)       \
    X(n##4) X(n##5) X(n##6) X(n##7) X(n##8) X(n##9) X(n##a) X(n##b) X(n##c) X(n##d) X(n##e) X(n##f)
#define HEX_2(X, n)                                                                            \
    HEX(X, n##0)                                                                               \
    HEX(X, n##1)                                                                               \
    HEX(X, n##2)                                                                               \
    HEX(X, n##3)                                                                               \
    HEX(X, n##4)                                                                               \
    HEX(X, n##5)                                                                               \
    HEX(X, n##6) HEX(X, n##7) HEX(X, n##8) HEX(X, n##9) HEX(X, n##a) HEX(X, n##b) HEX(X, n##c) \
        HEX(X, n##d) HEX(X, n##e) HEX(X, n##f)
#define THUNKS(X) HEX_2(X, 0) HEX_2(X, 1)

THUNKS(THUNK)

typedef PyObject *(*fast_call)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

#define THUNK_ROW(n) {function_##n, method_##n, in_place_##n},
static const fast_call thunks[FUNCTIONS_MOST][3] = {THUNKS(THUNK_ROW)};

/* ---- the module ------------------------------------------------------------------------------ */

/* "name(parameters)\n--\n\ntext" with the example: what help() and inspect.signature() show. */
static char *document(const struct function *function, enum form form)
{
    const gn_function *row = function->row;
    PyObject *shown = NULL;
    char parameters[256], *to = parameters;
    const char *at = row->signature, *end = strstr(at, " -> ");
    end = end != NULL ? end : at + strlen(at);
    while (at < end && to < parameters + sizeof parameters - 32) {
        if (*at == ':') { /* the type goes */
            at += 2;
            while (at < end && *at != ' ' && *at != ',')
                at++;
            if (at + 3 < end && strncmp(at, " = ", 3) == 0) {
                *to++ = '=';
                at += 3;
            }
            continue;
        }
        *to++ = *at++;
    }
    *to = '\0';
    const char *listed = parameters, *first = "";
    if (form != FORM_FUNCTION) {
        listed = strchr(parameters, ',');
        listed = listed != NULL ? listed : "";
        first = listed[0] != '\0' ? "$self" : "$self, /";
    }
    bool has_out = (row->forms & GN_FORM_OUT) != 0 && form != FORM_IN_PLACE;
    const char *out = !has_out                          ? ""
                      : strchr(parameters, '*') != NULL ? ", out=None"
                                                        : ", *, out=None";
    shown = PyUnicode_FromFormat(
        "%s%s(%s%s%s)\n--\n\n%s%s%s%s%s", function->name, form == FORM_IN_PLACE ? "_" : "", first,
        listed, out, form == FORM_IN_PLACE ? "In place: " : "", row->text,
        row->example != NULL ? "\n\nExamples\n--------\n>>> import genesis\n" : "",
        row->example != NULL ? row->example : "", row->example != NULL ? "\n" : "");
    Py_ssize_t length = 0;
    const char *text = shown != NULL ? PyUnicode_AsUTF8AndSize(shown, &length) : NULL;
    char *kept =
        text != NULL ? PyMem_Malloc((size_t)length + 1) : NULL; /* for the process's life */
    if (kept != NULL)
        memcpy(kept, text, (size_t)length + 1);
    Py_XDECREF(shown);
    return kept;
}

/* Adds a function to the module, or a method to Tensor. */
static int form_add(PyObject *module, struct module_state *state, int number, enum form form)
{
    struct function *function = &functions[number];
    PyMethodDef *definition = PyMem_Calloc(1, sizeof *definition + sizeof function->name + 1);
    if (definition == NULL)
        return -1;
    char *name = (char *)(definition + 1);
    (void)PyOS_snprintf(name, sizeof function->name + 1, "%s%s", function->name,
                        form == FORM_IN_PLACE ? "_" : "");
    *definition = (PyMethodDef){name, WITH_VECTOR(thunks[number][form]), document(function, form)};
    PyObject *made = NULL, *owner = form == FORM_FUNCTION ? module : state->tensor_class;
    if (definition->ml_doc == NULL)
        return -1;
    if (form == FORM_FUNCTION) {
        PyObject *home = PyUnicode_FromString("genesis");
        made = home != NULL ? PyCFunction_NewEx(definition, module, home) : NULL;
        Py_XDECREF(home);
    } else {
        made = PyDescr_NewMethod((PyTypeObject *)state->tensor_class, definition);
    }
    int status = made != NULL ? PyObject_SetAttrString(owner, name, made) : -1;
    Py_XDECREF(made);
    return status;
}

static int function_add(PyObject *module, struct module_state *state, const gn_function *row,
                        const char *name, size_t length)
{
    if (function_count == FUNCTIONS_MOST || length >= sizeof functions->name) {
        PyErr_Format(PyExc_SystemError, "there is no room for the function %s", row->name);
        return -1;
    }
    int number = function_count++;
    struct function *function = &functions[number];
    function->row = row;
    memcpy(function->name, name, length);
    function->name[length] = '\0';
    if (((row->forms & GN_FORM_NO_FUNCTION) == 0 &&
         form_add(module, state, number, FORM_FUNCTION) < 0) ||
        ((row->forms & GN_FORM_METHOD) != 0 && form_add(module, state, number, FORM_METHOD) < 0) ||
        ((row->forms & GN_FORM_IN_PLACE) != 0 &&
         form_add(module, state, number, FORM_IN_PLACE) < 0))
        return -1;
    return 0;
}

PyObject *function_names(void)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list != NULL && i < function_count; i++)
        if ((functions[i].row->forms & GN_FORM_NO_FUNCTION) == 0)
            (void)list_append(&list, PyUnicode_FromString(functions[i].name));
    return list;
}

int functions_init(PyObject *module, struct module_state *state)
{
    const gn_function *row;
    function_count = 0; /* a module that is loaded again has the same rows */
    for (int i = 0; (row = gn_function_table(i)) != NULL; i++)
        for (; row->name != NULL; row++) {
            const char *alias = row->aliases != NULL ? row->aliases : "";
            if (function_add(module, state, row, row->name, strlen(row->name)) < 0)
                return -1;
            while (*alias != '\0') {
                size_t length = strcspn(alias, " ");
                if (function_add(module, state, row, alias, length) < 0)
                    return -1;
                alias += length;
                alias += strspn(alias, " ");
            }
        }
    return 0;
}
