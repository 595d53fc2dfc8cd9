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

#include <math.h>
#include <string.h>

enum {
    PARAMETERS_MOST = 12,
    FUNCTIONS_MOST = 768, /* names: aliases count */
    INTEGERS_MOST = 64,   /* of a call, but for one long list */
    SHAPES_MOST = 32,     /* of a call */
    RESULT_NAMES = 4,     /* of results that have names */
    QUICK_MATRIX = 1024,  /* elements of a matrix whose product is short */
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
    KIND_DOUBLES,
    KIND_GENERATOR,
    KIND_SHAPES,
    KIND_DATA,
    KIND_VALUES,
    KIND_KEYS,
    KIND_COUNTS,
    KIND_COUNT,
};

static const char *const kind_words[KIND_COUNT] = {
    "Tensor",    "operand", "int",     "number", "bool",   "text",     "dim",
    "dims",      "sizes",   "tensors", "dtype",  "device", "elements", "doubles",
    "generator", "shapes",  "data",    "values", "keys",   "counts",
};

/* What a parameter takes beside its kind: behind "|". */
enum {
    ALSO_TENSOR = 1,
    ALSO_TEXT = 2,
    ALSO_BOOL = 4,
    ALSO_SIZES = 8,
    ALSO_NONE = 16,
};

struct parameter {
    char name[24];
    PyObject *key; /* the name as the interpreter keeps it; it lives as long as the process */
    enum parameter_kind kind;
    unsigned also;   /* ALSO_* */
    bool is_by_name; /* behind "*" */
    bool is_rest;    /* "*shape": takes the rest of the arguments */
    bool is_required;
    char word[24];       /* of a text */
    int64_t integers[2]; /* of sizes */
};

enum result_kind {
    RESULT_TENSOR,
    RESULT_PAIR,
    RESULT_TENSORS,
    RESULT_EACH,
    RESULT_BOOL,
    RESULT_INT,
    RESULT_SIZES,
    RESULT_TEXT,
    RESULT_NONE,
    RESULT_DTYPE,
    RESULT_EITHER, /* a tensor, or a tuple of tensors */
};

struct function {
    const gn_function *row;
    const struct namespace *home;
    char name[40];
    char in_place[41]; /* name_ */
    int op, arity;     /* of an elementwise operation; -1: by row->call */
    bool is_parsed;
    int count;
    enum result_kind result;
    char result_names[RESULT_NAMES][16];
    int result_names_count;
    PyObject *pair_class;  /* of results with names; NULL: none was made yet */
    int by_place;          /* parameters that may be given by place, before a "*shape" */
    int required;          /* where the last parameter that must be given ends */
    bool has_late;         /* a default is known only at the call: a device, a generator */
    bool is_creation;      /* it takes a device, and so requires_grad= */
    gn_autocast_rule rule; /* what autocast does with its tensors */
    bool is_quick; /* a method's call without arguments, or with an integer, is quick_call()'s */
    gn_argument defaults[PARAMETERS_MOST];
    struct parameter parameters[PARAMETERS_MOST];
};

enum form {
    FORM_FUNCTION,
    FORM_METHOD,
    FORM_IN_PLACE,
};

/* Where functions are: what stands before the dot of a row's name says which of these. */
struct namespace
{
    const char *prefix;
    const char *
        attribute; /* of the extension: a module with these functions; "" for the extension itself */
    const char *home; /* the package's module that offers them */
};

static const struct namespace namespaces[] = {
    {"", "", "genesis"},
    {"nn.", "_nn", "genesis.nn.functional"},
    {"linalg.", "_linalg", "genesis.linalg"},
};

static struct function functions[FUNCTIONS_MOST];
static int function_count;
static PyObject *out_word; /* "out" as the interpreter keeps it */

/* The elementwise operations, by their numbers. */
static const gn_function op_rows[] = {
#define OP_ROW(NAME, c_name, arity, domain, name, aliases, signature, text) \
    {name, aliases, signature, GN_FORM_METHOD | GN_FORM_IN_PLACE | GN_FORM_OUT, NULL, text, NULL},
    GN_OP_LIST(OP_ROW)
#undef OP_ROW
};

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

static void default_parse(const char *text, struct parameter *parameter, gn_argument *standard)
{
    gn_scalar *number = &standard->operand.scalar;
    standard->is_given = strcmp(text, "None") != 0;
    if (text[0] == '\'') {
        (void)word_take(text + 1, "'", parameter->word, sizeof parameter->word);
        standard->text = parameter->word;
    } else if (text[0] == '(') {
        char *end;
        parameter->integers[0] = PyOS_strtol(text + 1, &end, 10);
        parameter->integers[1] = PyOS_strtol(end + 1, NULL, 10);
        standard->integers = parameter->integers;
        standard->count = 2;
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
static const char *parameter_parse(const char *at, struct parameter *parameter,
                                   gn_argument *standard)
{
    char kind[16], also[16] = "", value[24] = "";
    parameter->is_rest = *at == '*';
    at = word_take(at + parameter->is_rest, ":", parameter->name, sizeof parameter->name);
    at = word_take(behind_spaces(at + 1), "| ,", kind, sizeof kind);
    if (*at == '|')
        at = word_take(at + 1, " ,", also, sizeof also);
    parameter->also = strcmp(also, "Tensor") == 0  ? ALSO_TENSOR
                      : strcmp(also, "text") == 0  ? ALSO_TEXT
                      : strcmp(also, "bool") == 0  ? ALSO_BOOL
                      : strcmp(also, "sizes") == 0 ? ALSO_SIZES
                      : strcmp(also, "None") == 0  ? ALSO_NONE
                                                   : 0;
    at = behind_spaces(at);
    parameter->is_required = *at != '=' && !parameter->is_rest;
    if (*at == '=') {
        at = behind_spaces(at + 1);
        at = word_take(at, *at == '(' ? ")" : ", ", value, sizeof value);
    }
    for (int i = 0; i < KIND_COUNT; i++)
        if (strcmp(kind, kind_words[i]) == 0)
            parameter->kind = (enum parameter_kind)i;
    if (value[0] != '\0')
        default_parse(value, parameter, standard);
    return at;
}

static enum result_kind result_parse(const char *text)
{
    return text == NULL                             ? RESULT_TENSOR
           : strncmp(text, "-> tensors", 10) == 0   ? RESULT_TENSORS
           : strncmp(text, "-> bool", 7) == 0       ? RESULT_BOOL
           : strncmp(text, "-> int", 6) == 0        ? RESULT_INT
           : strncmp(text, "-> sizes", 8) == 0      ? RESULT_SIZES
           : strncmp(text, "-> each", 7) == 0       ? RESULT_EACH
           : strncmp(text, "-> text", 7) == 0       ? RESULT_TEXT
           : strncmp(text, "-> None", 7) == 0       ? RESULT_NONE
           : strncmp(text, "-> dtype", 8) == 0      ? RESULT_DTYPE
           : strncmp(text, "-> Tensor or", 12) == 0 ? RESULT_EITHER
                                                    : RESULT_PAIR;
}

static void function_parse(struct function *function)
{
    const char *at = function->row->signature;
    bool is_by_name = false;
    const char *result = strstr(at, "-> ");
    function->result = result_parse(result);
    function->rule = gn_autocast_find(function->row->name);
    if (function->result == RESULT_PAIR) {
        result += 3;
        while (*result != '\0' && function->result_names_count < RESULT_NAMES) {
            char *name = function->result_names[function->result_names_count++];
            result = word_take(result, ",", name, sizeof *function->result_names);
            result += strspn(result, ", ");
        }
    }
    while (*(at = at + strspn(at, "), ")) != '\0' && *at != '-') {
        if (at[0] == '*' && at[1] == ',') {
            is_by_name = true;
            at++;
            continue;
        }
        int place = function->count++;
        struct parameter *parameter = &function->parameters[place];
        parameter->is_by_name = is_by_name;
        at = parameter_parse(at, parameter, &function->defaults[place]);
        parameter->key = PyUnicode_InternFromString(parameter->name);
        error_clear(); /* without memory for it names are compared */
        is_by_name |= parameter->is_rest;
        function->by_place += !is_by_name;
        if (parameter->is_required)
            function->required = function->count;
        function->has_late |= parameter->kind == KIND_GENERATOR || parameter->kind == KIND_DEVICE;
        function->is_creation |= parameter->kind == KIND_DEVICE;
    }
    function->is_quick = function->op < 0 && !function->has_late && function->required <= 2 &&
                         function->parameters[0].kind == KIND_TENSOR &&
                         (function->row->forms & GN_FORM_BLAS) == 0;
    function->is_parsed = true;
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* What the arguments of one call are made of, until it ends. Entries of arrays are set as far as there are parameters:
 * to clear them all would take as long as a short call. */
struct call_frame {
    struct module_state *state;
    const char *name;
    int count;         /* of parameters: the rest of these arrays is not set */
    int integer_count; /* of `integers`, in use */
    int shape_count;   /* of `lengths`, in use */
    bool requires_gradient;
    PyObject *rest;   /* arguments of a "*shape", a new tuple */
    PyObject *out;    /* borrowed; NULL: none */
    PyObject *target; /* borrowed: the tensor that a GN_FORM_WRITES function changes; NULL: none */
    struct key *key;  /* of the one list of keys */
    gn_tensor **tensors;  /* of the one list of tensors */
    PyObject *generator;  /* the one that numbers were taken of, or Py_None; NULL: none */
    gn_generator numbers; /* of the one generator */
    gn_generator taken;   /* the same before the call */
    int64_t *many;        /* the integers of one list that has more than INTEGERS_MOST */
    PyObject *objects[PARAMETERS_MOST]; /* borrowed; NULL: left out */
    PyObject *made[PARAMETERS_MOST];    /* new references that arguments borrow from */
    gn_argument arguments[PARAMETERS_MOST];
    int64_t integers[INTEGERS_MOST];
    int lengths[SHAPES_MOST];
};

static void frame_init(struct call_frame *frame, const struct function *function)
{
    frame->name = function->name;
    frame->count = function->count;
    frame->integer_count = frame->shape_count = 0;
    frame->requires_gradient = false;
    frame->rest = frame->out = frame->target = frame->generator = NULL;
    frame->key = NULL;
    frame->tensors = NULL;
    frame->many = NULL;
    for (int i = 0; i < function->count; i++)
        frame->objects[i] = frame->made[i] = NULL;
}

static void frame_clear(struct call_frame *frame)
{
    for (int i = 0; i < frame->count; i++)
        Py_XDECREF(frame->made[i]);
    Py_XDECREF(frame->rest);
    PyMem_Free(frame->tensors);
    PyMem_Free(frame->many);
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
    if (strcmp(name, "exponent") == 0)
        return is_word(key, "other");
    if (strcmp(name, "dims") == 0)
        return is_word(key, "axis") || is_word(key, "axes");
    if (strcmp(name, "shape") == 0)
        return is_word(key, "size");
    return strcmp(name, "keepdim") == 0 && is_word(key, "keepdims");
}

/* The number of the parameter that a keyword names; their count: none. A keyword is nearly always the object that the
 * interpreter keeps for its name. */
static int keyword_find(const struct function *function, PyObject *key)
{
    for (int place = 0; place < function->count; place++)
        if (function->parameters[place].key == key)
            return place;
    int place = 0;
    while (place < function->count && !is_named(key, function->parameters[place].name))
        place++;
    return place;
}

static int keyword_take(const struct function *function, struct call_frame *frame, PyObject *key,
                        PyObject *value)
{
    if (key == out_word && (function->row->forms & GN_FORM_OUT) != 0) {
        frame->out = value != Py_None ? value : NULL;
        return 0;
    }
    int place = keyword_find(function, key);
    if (place == function->count && (function->row->forms & GN_FORM_OUT) != 0 &&
        is_word(key, "out")) {
        frame->out = value != Py_None ? value : NULL;
        return 0;
    }
    if (place == function->count && function->is_creation && is_word(key, "requires_grad")) {
        int is_true = PyObject_IsTrue(value);
        frame->requires_gradient = is_true > 0;
        return is_true < 0 ? -1 : 0;
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

/* Says how many operands an elementwise operation has; out= is not one of those that were `given`. */
static int operands_refuse(const struct function *function, const struct call_frame *frame,
                           const PyObject *self, Py_ssize_t given)
{
    int own = function->arity - (self != NULL);
    PyErr_Format(PyExc_TypeError, "%s() takes %d operand%s, not %zd", frame->name, own, plural(own),
                 given - (frame->out != NULL));
    return -1;
}

/* The arguments of a "*shape" or "*tensors": a list that stands alone, or all of them as a tuple. */
static int rest_take(const struct parameter *parameter, struct call_frame *frame,
                     PyObject *const *arguments, Py_ssize_t count, PyObject **taken)
{
    bool is_list = PyList_Check(arguments[0]) || PyTuple_Check(arguments[0]);
    bool has_integers = parameter->kind == KIND_SIZES || parameter->kind == KIND_DIMS;
    if (count == 1 && (has_integers || (is_list && parameter->kind == KIND_TENSORS))) {
        *taken = arguments[0];
        return 0;
    }
    frame->rest = PyTuple_New(count);
    for (Py_ssize_t i = 0; frame->rest != NULL && i < count; i++)
        (void)PyTuple_SetItem(frame->rest, i, Py_NewRef(arguments[i]));
    *taken = frame->rest;
    return frame->rest != NULL ? 0 : -1;
}

/* add(x, 2, y) is add(x, y, alpha=2), as PyTorch had it before 1.5, and warns still; addcmul() and addcdiv() have `value`. The
 * place of that parameter; 0: this is another call. */
static int old_factor(const struct function *function, const struct call_frame *frame,
                      const PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Py_ssize_t first = self == NULL;
    if (count - first != function->by_place || first + 1 >= count ||
        !(PyFloat_Check(arguments[first]) || PyLong_Check(arguments[first])))
        return 0;
    for (Py_ssize_t i = first + 1; i < count; i++)
        if (!tensor_check(frame->state, arguments[i]))
            return 0;
    for (int place = function->by_place; place < function->count; place++)
        if (strcmp(function->parameters[place].name, "alpha") == 0 ||
            strcmp(function->parameters[place].name, "value") == 0)
            return place;
    return 0;
}

static int old_fill(const struct function *function, struct call_frame *frame, int factor,
                    const PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Py_ssize_t first = self == NULL;
    if (first == 1)
        frame->objects[0] = arguments[0];
    frame->objects[factor] = arguments[first];
    for (Py_ssize_t i = first + 1; i < count; i++)
        frame->objects[i - first] = arguments[i];
    return PyErr_WarnFormat(PyExc_UserWarning, 1,
                            "%s(): a number before the tensors is deprecated: give it as %s=",
                            frame->name, function->parameters[factor].name);
}

/* Arguments to their parameters. `self` is the first, or NULL. */
static int frame_fill(const struct function *function, struct call_frame *frame, PyObject *self,
                      PyObject *const *arguments, Py_ssize_t count, PyObject *keywords)
{
    int place = 0, most = function->by_place;
    Py_ssize_t named = keywords != NULL ? PyTuple_Size(keywords) : 0, taken = 0;
    if (self != NULL)
        frame->objects[place++] = self;
    while (taken < count && place < most)
        frame->objects[place++] = arguments[taken++];
    if (taken < count && most < function->count && function->parameters[most].is_rest) {
        const struct parameter *next = &function->parameters[most + 1];
        if (count - taken == 1 && most + 1 < function->count && next->kind == KIND_DTYPE &&
            dtype_is_word(frame->state, arguments[taken]))
            frame->objects[most + 1] = arguments[taken]; /* view(x, int32) */
        else if (rest_take(&function->parameters[most], frame, arguments + taken, count - taken,
                           &frame->objects[most]) < 0)
            return -1;
        taken = count;
    }
    int factor = taken < count ? old_factor(function, frame, self, arguments, count) : 0;
    if (factor > 0) {
        if (old_fill(function, frame, factor, self, arguments, count) < 0)
            return -1;
        taken = count;
    }
    if (taken < count && function->op >= 0)
        return operands_refuse(function, frame, self, count);
    if (taken < count) {
        int own = most - (self != NULL);
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d argument%s by place, not %zd",
                     frame->name, own, plural(own), count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < named; i++)
        if (keyword_take(function, frame, PyTuple_GetItem(keywords, i), arguments[count + i]) < 0)
            return -1;
    for (int i = 0; i < function->required; i++)
        if (frame->objects[i] == NULL && function->parameters[i].is_required) {
            if (function->op >= 0)
                return operands_refuse(function, frame, self, count + named);
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

/* The same for an argument that would be long to show. */
static int refuse_type(const struct call_frame *frame, const struct parameter *parameter,
                       const char *what, PyObject *given)
{
    PyObject *type = PyType_GetName(Py_TYPE(given));
    if (type != NULL)
        PyErr_Format(PyExc_TypeError, "%s: the %s is %s, not %U", frame->name, parameter->name,
                     what, type);
    Py_XDECREF(type);
    return -1;
}

static int tensor_take(struct call_frame *frame, const struct function *function,
                       const struct parameter *parameter, PyObject *given, gn_argument *argument)
{
    if (!tensor_check(frame->state, given)) {
        bool is_input = strcmp(parameter->name, "input") == 0;
        if (!is_input && (function->row->forms & GN_FORM_BLAS) == 0)
            return refuse(frame, parameter, "a Tensor", given);
        PyErr_Format(PyExc_TypeError,
                     is_input ? "%s: %R is not a Tensor" : "%s: operands are tensors, not %R",
                     frame->name, given);
        return -1;
    }
    argument->operand.tensor = tensor_of(given);
    return 0;
}

/* An integer of Python, NumPy, or a tensor of one. */
static int integer_take(const struct call_frame *frame, const struct parameter *parameter,
                        PyObject *given, int64_t *value)
{
    int overflow = 0;
    PyObject *number = PyLong_CheckExact(given) ? Py_NewRef(given) : PyNumber_Index(given);
    if (number == NULL)
        return refuse(frame, parameter, "an integer", given);
    *value = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow != 0 && parameter->kind == KIND_DIM) {
        PyErr_Format(PyExc_IndexError, "%s: dimension %R is out of range", frame->name, given);
        return -1;
    }
    if (overflow != 0) /* the nearest that there is */
        *value = overflow > 0 ? INT64_MAX : INT64_MIN;
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
    if (number == NULL && tensor_check(frame->state, given))
        return error_name(frame->name); /* of several elements */
    found = number != NULL && !tensor_check(frame->state, number)
                ? operand_from_python(frame->state, number, operand)
                : 0;
    Py_XDECREF(number);
    return found > 0 ? 0 : found < 0 ? -1 : refuse(frame, parameter, "a number", given);
}

/* Room for a list of more integers than a frame has: its number; NULL with an exception. */
static int64_t *integers_grow(struct call_frame *frame, PyObject *given, int *room)
{
    Py_ssize_t length = PySequence_Check(given) ? PySequence_Size(given) : -1;
    if (length < 0)
        error_clear(); /* no sequence, or without a length: it must fit */
    if (length <= *room || length > INT32_MAX || frame->many != NULL)
        return frame->integers + frame->integer_count;
    frame->many = PyMem_Calloc((size_t)length, sizeof *frame->many);
    *room = (int)length;
    return frame->many != NULL ? frame->many : (int64_t *)PyErr_NoMemory();
}

/* Whether it is an integer, and no array of one. */
static bool is_one_integer(PyObject *given)
{
    if (!PyIndex_Check(given))
        return false;
    bool has_length = PySequence_Check(given) && PySequence_Size(given) >= 0;
    error_clear(); /* an array without dimensions */
    return !has_length;
}

/* Integers and None, each of which becomes GN_SIZE_NONE. */
static int sizes_take(struct call_frame *frame, const struct parameter *parameter, PyObject *given,
                      gn_argument *argument)
{
    Py_ssize_t count = PySequence_Size(given);
    int64_t *values = frame->integers + frame->integer_count;
    int room = INTEGERS_MOST - frame->integer_count, status = count < 0 ? -1 : 0;
    if (count > room) {
        PyErr_Format(PyExc_ValueError, "%s: %s has %zd elements", frame->name, parameter->name,
                     count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count && status == 0; i++) {
        PyObject *item = PySequence_GetItem(given, i);
        status = item == NULL ? -1 : 0;
        values[i] = GN_SIZE_NONE;
        if (item != Py_None && status == 0) {
            status = integer_take(frame, parameter, item, &values[i]);
            values[i] += values[i] == GN_SIZE_NONE;
        }
        Py_XDECREF(item);
    }
    argument->integers = values;
    argument->count = (int)count;
    frame->integer_count += (int)count;
    return status;
}

static int integers_take(struct call_frame *frame, const struct parameter *parameter,
                         PyObject *given, gn_argument *argument)
{
    if (parameter->also == ALSO_NONE && (PyTuple_Check(given) || PyList_Check(given)))
        return sizes_take(frame, parameter, given, argument);
    int64_t *values = frame->integers + frame->integer_count;
    int room = INTEGERS_MOST - frame->integer_count;
    if (PyLong_CheckExact(given) && room > 0) {
        argument->count = 1;
        argument->is_single = true;
        if (integer_take(frame, parameter, given, values) < 0)
            return -1;
    } else {
        if (parameter->kind == KIND_DIMS && room > GN_DIMENSIONS_MAX)
            room = GN_DIMENSIONS_MAX;
        else if (parameter->kind == KIND_SIZES)
            values = integers_grow(frame, given, &room);
        bool is_shape =
            strcmp(parameter->name, "shape") == 0 || strcmp(parameter->name, "size") == 0;
        if (is_shape && !PyIndex_Check(given) && !PySequence_Check(given) &&
            !PyObject_HasAttrString(given, "__iter__")) {
            PyErr_Format(PyExc_TypeError, "%s: a shape is of integers, not %R", frame->name, given);
            return -1;
        }
        if (values == NULL || integers_from_python(given, is_shape ? "a shape" : parameter->name,
                                                   values, room, &argument->count) < 0)
            return error_name(frame->name);
        argument->is_single = argument->count == 1 && is_one_integer(given);
    }
    argument->integers = values;
    frame->integer_count += values != frame->many ? argument->count : 0;
    return 0;
}

/* One integer, or lists of them: each may be an integer, which is a list of one. */
static int shapes_take(struct call_frame *frame, const struct parameter *parameter, PyObject *given,
                       gn_argument *argument)
{
    if (PyIndex_Check(given)) {
        argument->is_single = true;
        return integer_take(frame, parameter, given, &argument->operand.scalar.integer);
    }
    PyObject *items = items_take(given, SHAPES_MOST - frame->shape_count);
    if (items == NULL)
        return -1;
    Py_ssize_t count = PyTuple_Size(items);
    int *lengths = frame->lengths + frame->shape_count;
    int status = 0;
    argument->integers = frame->integers + frame->integer_count;
    argument->lengths = lengths;
    argument->count = (int)count;
    if (count > SHAPES_MOST - frame->shape_count) {
        PyErr_Format(PyExc_ValueError, "%s: %s has at most %d lists", frame->name, parameter->name,
                     SHAPES_MOST);
        status = -1;
    }
    for (Py_ssize_t i = 0; i < count && status == 0; i++) {
        status = integers_from_python(PyTuple_GetItem(items, i), parameter->name,
                                      frame->integers + frame->integer_count,
                                      INTEGERS_MOST - frame->integer_count, &lengths[i]);
        frame->integer_count += status == 0 ? lengths[i] : 0;
    }
    frame->shape_count += (int)count;
    Py_DECREF(items);
    return status;
}

/* A list of tensors, not the tensors one by one. */
static int tensors_take(struct call_frame *frame, const struct parameter *parameter,
                        PyObject *given, PyObject **items, gn_argument *argument)
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
    bool is_short = count == 0 && !parameter->is_rest;
    if (frame->tensors == NULL || is_short || count > INT32_MAX) {
        if (frame->tensors == NULL)
            (void)PyErr_NoMemory();
        else
            PyErr_Format(PyExc_ValueError, "%s: there must be a tensor", frame->name);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GetItem(*items, i);
        if (!tensor_check(frame->state, item) && parameter->is_rest) {
            PyErr_Format(PyExc_TypeError, "%s: %s are tensors, not %R", frame->name,
                         parameter->name, item);
            return -1;
        }
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

/* Numbers in any form: an operand, or a list, of which a tensor is made. `dtype`: theirs, or NULL. */
static int elements_take(struct call_frame *frame, const struct parameter *parameter,
                         PyObject *given, PyObject *dtype, gn_argument *argument, PyObject **made)
{
    int found = PyList_Check(given) || PyTuple_Check(given)
                    ? 0
                    : operand_from_python(frame->state, given, &argument->operand);
    if (found != 0)
        return found < 0 ? -1 : 0;
    PyObject *data = tensor_from_data(frame->state, given, dtype, true);
    if (data == NULL)
        return refuse(frame, parameter, "a tensor or numbers", given);
    bool has_place = frame->objects[0] != NULL && tensor_check(frame->state, frame->objects[0]);
    *made = has_place ? tensor_move(data, gn_tensor_get_device(tensor_of(frame->objects[0])))
                      : Py_NewRef(data);
    Py_DECREF(data);
    argument->operand.tensor = *made != NULL ? tensor_of(*made) : NULL;
    return *made != NULL ? 0 : -1;
}

/* What a parameter takes beside its kind: 1 if it is given, 0 if not, -1 with an exception. */
static int also_take(const struct call_frame *frame, const struct parameter *parameter,
                     PyObject *given, gn_argument *argument)
{
    if (parameter->also == ALSO_TENSOR && tensor_check(frame->state, given)) {
        argument->operand.tensor = tensor_of(given);
        return 1;
    }
    if (parameter->also == ALSO_BOOL && PyBool_Check(given)) {
        argument->operand.scalar = (gn_scalar){.kind = GN_BOOL, .integer = given == Py_True};
        return 1;
    }
    if (parameter->also == ALSO_TEXT && PyUnicode_Check(given)) {
        argument->text = text_from_python(given);
        argument->count = -1; /* no integers */
        return argument->text != NULL ? 1 : -1;
    }
    return 0;
}

/* The device of the first tensor among the arguments; NULL: there is none. */
static gn_device *device_beside(const struct call_frame *frame)
{
    for (int i = 0; i < frame->count; i++)
        if (frame->objects[i] != NULL && tensor_check(frame->state, frame->objects[i]))
            return gn_tensor_get_device(tensor_of(frame->objects[i]));
    return NULL;
}

/* Data as a tensor beside the others; numbers stay what they are where `is_number` allows that. */
static int data_take(struct call_frame *frame, int place, bool is_number)
{
    PyObject *given = frame->objects[place], **made = &frame->made[place];
    gn_operand *operand = &frame->arguments[place].operand;
    gn_device *device = device_beside(frame);
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
        return error_name(frame->name);
    *operand = (gn_operand){.tensor = tensor_of(*made)};
    return 0;
}

/* A count that does not fit int64 is as good as the largest that does: no tensor has as many elements. */
static int counts_take(struct call_frame *frame, int place)
{
    int overflow = 0;
    if (!PyLong_Check(frame->objects[place]))
        return data_take(frame, place, false);
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
    return frame->key != NULL ? 0 : error_name(frame->name);
}

/* The numbers of the next offset of a generator, or of the default one. */
static int numbers_take(struct call_frame *frame, PyObject *generator, gn_argument *argument)
{
    argument->generator = &frame->numbers;
    if (generator_take(frame->state, generator, &frame->numbers) < 0)
        return -1;
    frame->generator = generator;
    frame->taken = frame->numbers;
    return 0;
}

/* A default that is known only at the call, of a parameter that is left out, or None. */
static int default_take(struct call_frame *frame, const struct function *function, int place)
{
    const struct parameter *parameter = &function->parameters[place];
    gn_argument *argument = &frame->arguments[place];
    if (parameter->kind == KIND_GENERATOR)
        return numbers_take(frame, Py_None, argument);
    if (parameter->kind == KIND_DEVICE) {
        argument->device = device_beside(frame);
        if (argument->device == NULL)
            return device_of_new(frame->state, NULL, &argument->device);
    }
    return 0;
}

static int argument_take(struct call_frame *frame, const struct function *function, int place)
{
    const struct parameter *parameter = &function->parameters[place];
    gn_argument *argument = &frame->arguments[place];
    PyObject *given = frame->objects[place];
    if (given == Py_None && (!parameter->is_required || parameter->kind == KIND_DIMS)) {
        *argument = (gn_argument){0};
        return function->has_late ? default_take(frame, function, place) : 0;
    }
    *argument = (gn_argument){.is_given = true};
    gn_scalar *scalar = &argument->operand.scalar;
    scalar->kind = GN_INT64;
    int also = parameter->also != 0 ? also_take(frame, parameter, given, argument) : 0;
    if (also != 0)
        return also < 0 ? -1 : 0;
    if (parameter->also == ALSO_SIZES && !is_one_integer(given))
        return integers_take(frame, parameter, given, argument);
    switch (parameter->kind) {
    case KIND_TENSOR:
        return tensor_take(frame, function, parameter, given, argument);
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
            return refuse_type(frame, parameter, "a text", given);
        argument->text = text_from_python(given);
        return argument->text != NULL ? 0 : -1;
    case KIND_DIMS:
    case KIND_SIZES:
        return integers_take(frame, parameter, given, argument);
    case KIND_TENSORS:
        return tensors_take(frame, parameter, given, &frame->made[place], argument);
    case KIND_DTYPE:
        return dtype_from_python(frame->state, given, &argument->dtype) == 0
                   ? 0
                   : error_name(frame->name);
    case KIND_DEVICE:
        return device_of_new(frame->state, given, &argument->device) == 0 ? 0
                                                                          : error_name(frame->name);
    case KIND_ELEMENTS:
        return elements_take(frame, parameter, given, NULL, argument, &frame->made[place]);
    case KIND_DOUBLES:
        return elements_take(frame, parameter, given, frame->state->dtypes[GN_FLOAT64], argument,
                             &frame->made[place]);
    case KIND_GENERATOR:
        return numbers_take(frame, given, argument);
    case KIND_SHAPES:
        return shapes_take(frame, parameter, given, argument);
    case KIND_DATA:
    case KIND_VALUES:
        return data_take(frame, place, parameter->kind == KIND_VALUES);
    case KIND_KEYS:
        return keys_take(frame, given, &frame->made[place], argument);
    case KIND_COUNTS:
        return counts_take(frame, place);
    case KIND_COUNT:
        break;
    }
    return -1;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* A tensor of the results, which the object of Python takes over. A function may give an argument, or
 * the tensor of a list that has the same number, as it is: that has an object already. */
static PyObject *result_take(const struct call_frame *frame, gn_results *results, int index)
{
    gn_tensor *tensor = results->tensors[index];
    results->tensors[index] = NULL;
    for (int i = 0; i < frame->count; i++) {
        PyObject *object = frame->made[i] != NULL ? frame->made[i] : frame->objects[i];
        if (object == frame->made[i] && object != NULL && PyTuple_Check(object)) /* of tensors */
            object = index < PyTuple_Size(object) ? PyTuple_GetItem(object, index) : NULL;
        if (object != NULL && tensor_check(frame->state, object) && tensor_of(object) == tensor) {
            gn_tensor_release(tensor);
            return Py_NewRef(object);
        }
    }
    return tensor_to_python(frame->state, tensor);
}

/* The class of a function's pairs; it and its names live as long as the process. */
static PyObject *pair_class_make(struct function *function)
{
    int count = function->result_names_count;
    PyStructSequence_Field *fields = PyMem_Calloc(RESULT_NAMES + 1, sizeof *fields);
    char name[48];
    if (fields == NULL)
        return PyErr_NoMemory();
    for (int i = 0; i < count; i++)
        fields[i].name = function->result_names[i];
    (void)PyOS_snprintf(name, sizeof name, "genesis.%s_%s", fields[0].name, fields[1].name);
    PyStructSequence_Desc description = {name, "Tensors with names.", fields, count};
    return (PyObject *)PyStructSequence_NewType(&description);
}

/* Several functions give values and indices, as pairs of one class. */
static PyObject *pair_class_get(const struct module_state *state, struct function *function)
{
    if (function->pair_class == NULL)
        function->pair_class = strcmp(function->result_names[1], "indices") == 0
                                   ? Py_NewRef(state->pair_class)
                                   : pair_class_make(function);
    return function->pair_class;
}

static PyObject *pair_to_python(struct function *function, const struct call_frame *frame,
                                gn_results *results)
{
    PyObject *class = pair_class_get(frame->state, function);
    PyObject *pair = class != NULL ? PyStructSequence_New((PyTypeObject *)class) : NULL;
    for (int i = 0; pair != NULL && i < results->count; i++) {
        PyObject *item = result_take(frame, results, i);
        PyStructSequence_SetItem(pair, i, item);
        if (item == NULL)
            Py_CLEAR(pair);
    }
    return pair;
}

static PyObject *results_tuple(const struct call_frame *frame, gn_results *results)
{
    PyObject *tuple = PyTuple_New(results->count);
    for (int i = 0; tuple != NULL && i < results->count; i++) {
        PyObject *item = result_take(frame, results, i);
        if (item == NULL || PyTuple_SetItem(tuple, i, item) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *results_to_python(struct function *function, const struct call_frame *frame,
                                   gn_results *results)
{
    switch (function->result) {
    case RESULT_TENSOR:
        return result_take(frame, results, 0);
    case RESULT_PAIR:
        return results->count == 1 ? result_take(frame, results, 0)
                                   : pair_to_python(function, frame, results);
    case RESULT_EACH:
        if (frame->rest != NULL && results->count == 1)
            return result_take(frame, results, 0);
        return results_tuple(frame, results);
    case RESULT_EITHER:
        if (!results->is_tuple && results->count == 1)
            return result_take(frame, results, 0);
        return results_tuple(frame, results);
    case RESULT_TENSORS:
        return results_tuple(frame, results);
    case RESULT_BOOL:
        return PyBool_FromLong(results->number.integer != 0);
    case RESULT_INT:
        return PyLong_FromLongLong(results->number.integer);
    case RESULT_SIZES:
        return integers_to_python(results->sizes, results->count);
    case RESULT_TEXT:
        return PyUnicode_FromString(results->text);
    case RESULT_NONE:
        return Py_NewRef(Py_None);
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
        PyObject *written = NULL;
        if (place == NULL || tensor == results->out) /* the function has written it */
            gn_tensor_release(tensor);
        if (tensor == results->out)
            written = Py_XNewRef(place);
        else if (place != NULL)
            written = result_into(frame->state, frame->name, tensor, place);
        is_fitting = written != NULL;
        Py_XDECREF(written);
        Py_XDECREF(place);
    }
    Py_XDECREF(places);
    return is_fitting ? Py_NewRef(frame->out) : NULL;
}

/* Whether a call with this tensor may take long. Matrix products take more steps than there are elements. */
static bool is_long_with(const struct function *function, const gn_tensor *tensor)
{
    bool has_products = (function->row->forms & GN_FORM_BLAS) != 0;
    return is_long_on(tensor) || (has_products && gn_tensor_get_count(tensor) > QUICK_MATRIX);
}

/* Whether the call may take long: the interpreter's lock is let go then. So it is where all tensors are new ones, of
 * any size. */
static bool is_long(const struct function *function, const struct call_frame *frame)
{
    bool has_tensor = false;
    for (int i = 0; i < function->count; i++) {
        const gn_argument *argument = &frame->arguments[i];
        if (argument->operand.tensor != NULL && is_long_with(function, argument->operand.tensor))
            return true;
        bool is_list = function->parameters[i].kind == KIND_TENSORS;
        has_tensor |= argument->operand.tensor != NULL || is_list;
        for (int k = 0; is_list && k < argument->count; k++)
            if (is_long_with(function, argument->tensors[k]))
                return true;
    }
    return !has_tensor;
}

/* Not all of it is cleared: a call sets what it gives. */
static void results_begin(gn_results *results)
{
    results->out = results->target = NULL;
    results->count = 0;
    results->is_tuple = false;
    results->tensors = NULL;
}

/* Whether a call in place goes on the tape: its rules may read what the tensor was, of which they get a copy. */
static bool is_taped(const struct function *function, const struct call_frame *frame)
{
    bool has_gradient = false;
    for (int i = 0; i < function->count && gn_gradients_are_on(); i++) {
        const gn_tensor *tensor = frame->arguments[i].operand.tensor;
        has_gradient |= tensor != NULL && gn_tensor_requires_gradient(tensor);
    }
    return has_gradient;
}

/* The call of the row, with autocast where that is on. */
static gn_status row_call(const struct function *function, const gn_argument *arguments,
                          gn_results *results)
{
    if (gn_autocast_is_on())
        return gn_autocast_call(function->rule, function->row, arguments, results);
    return function->row->call(arguments, results);
}

static PyObject *function_run(struct function *function, struct call_frame *frame)
{
    gn_results results;
    gn_status status;
    PyObject *made;
    if ((function->row->forms & GN_FORM_BLAS) != 0 && blas_name(frame->state) < 0)
        return NULL;
    for (int i = 0; i < function->count; i++) {
        int taken = 0;
        if (frame->objects[i] != NULL) {
            taken = argument_take(frame, function, i);
        } else {
            frame->arguments[i] = function->defaults[i];
            if (function->has_late)
                taken = default_take(frame, function, i);
        }
        if (taken < 0)
            return NULL;
    }
    results_begin(&results);
    if (frame->out != NULL && tensor_check(frame->state, frame->out))
        results.out = tensor_of(frame->out);
    if (frame->target != NULL)
        results.target = tensor_of(frame->target);
    gn_tensor *kept = NULL;
    if (frame->out != NULL && frame->out == frame->objects[0] && is_taped(function, frame)) {
        status = gn_cast(results.out, gn_tensor_get_dtype(results.out), &kept);
        if (status != GN_OK)
            return error_raise_in(frame->state, frame->name, status);
        frame->arguments[0].operand.tensor = kept;
    }
    CALL_OPERATION(is_long(function, frame), status,
                   row_call(function, frame->arguments, &results));
    gn_tensor_release(kept);
    if (frame->generator != NULL && frame->numbers.offset == frame->taken.offset)
        generator_give_back(frame->state, frame->generator, &frame->taken);
    if (status != GN_OK)
        return error_raise_in(frame->state, frame->name, status);
    made = frame->out != NULL ? results_write(frame, &results)
                              : results_to_python(function, frame, &results);
    gn_results_clear(&results);
    return made;
}

/* An elementwise operation whose operands are all given by place: the usual call. */
static PyObject *operands_call(const struct function *function, struct module_state *state,
                               enum form form, PyObject *first, PyObject *const *arguments,
                               Py_ssize_t count)
{
    PyObject *objects[3] = {first};
    for (Py_ssize_t i = 0; i < count; i++)
        objects[i + (first != NULL)] = arguments[i];
    return elementwise_call(state, form == FORM_IN_PLACE ? function->in_place : function->name,
                            (gn_op)function->op, objects, function->arity,
                            form == FORM_IN_PLACE ? first : NULL);
}

/* The number that a parameter has where it is left out; NaN for None. */
static PyObject *default_to_python(const gn_argument *standard)
{
    gn_scalar number = standard->operand.scalar;
    if (standard->is_given && number.kind != GN_FLOAT64)
        return PyLong_FromLongLong(number.integer);
    return PyFloat_FromDouble(standard->is_given ? number.floating : (double)NAN);
}

/* An elementwise operation, with whatever was given: operands, inplace=, or options, which its row's call knows. */
static PyObject *operation_run(struct function *function, struct call_frame *frame)
{
    for (int i = function->arity; i < function->count; i++) {
        bool is_in_place = strcmp(function->parameters[i].name, "inplace") == 0;
        if (frame->objects[i] != NULL && !is_in_place)
            return function_run(function, frame);
        int is_true = frame->objects[i] != NULL ? PyObject_IsTrue(frame->objects[i]) : 0;
        if (is_true < 0)
            return NULL;
        frame->out = is_true > 0 ? frame->objects[0] : frame->out;
    }
    for (int i = 0; i < function->arity; i++) {
        bool is_left_out = frame->objects[i] == NULL ||
                           (frame->objects[i] == Py_None && !function->parameters[i].is_required);
        if (is_left_out)
            frame->objects[i] = frame->made[i] = default_to_python(&function->defaults[i]);
        if (frame->objects[i] == NULL)
            return NULL;
    }
    return elementwise_call(frame->state, frame->name, (gn_op)function->op, frame->objects,
                            function->arity, frame->out);
}

/* An integer of Python for the second parameter. False: it is something else, or out of range. */
static bool quick_integer(const struct function *function, PyObject *given, int64_t *value,
                          gn_argument *argument)
{
    const struct parameter *parameter = &function->parameters[1];
    bool is_list = parameter->kind == KIND_DIMS;
    bool is_integer = parameter->kind == KIND_DIM || parameter->kind == KIND_INT;
    int overflow;
    if (function->by_place < 2 || !(is_list || is_integer) || !PyLong_CheckExact(given))
        return false;
    *value = PyLong_AsLongLongAndOverflow(given, &overflow);
    *argument = (gn_argument){.is_given = true};
    argument->operand.scalar.kind = GN_INT64;
    if (is_integer)
        argument->operand.scalar.integer = *value;
    if (is_list) {
        argument->integers = value;
        argument->count = 1;
        argument->is_single = true;
    }
    return overflow == 0;
}

/* A method without arguments, or with a dimension: the usual call of max(), flip(), sort() and their like. Of the frame
 * only what results need is set. False: this is another call. */
static bool quick_call(struct function *function, PyObject *self, PyObject *const *arguments,
                       Py_ssize_t count, PyObject **made)
{
    struct call_frame frame;
    if (!function->is_quick || count > 1 || count + 1 < function->required ||
        (count == 1 && !quick_integer(function, arguments[0], frame.integers, &frame.arguments[1])))
        return false;
    frame.state = tensor_state(self);
    frame.count = 1;
    frame.rest = frame.made[0] = NULL;
    frame.objects[0] = self;
    frame.arguments[0] = (gn_argument){.is_given = true, .operand.tensor = tensor_of(self)};
    for (int i = 1 + (int)count; i < function->count; i++)
        frame.arguments[i] = function->defaults[i];
    gn_results results;
    gn_status status;
    results_begin(&results);
    CALL_OPERATION(is_long_on(tensor_of(self)), status,
                   row_call(function, frame.arguments, &results));
    if (status != GN_OK) {
        *made = error_raise_in(frame.state, function->name, status);
        return true;
    }
    *made = results_to_python(function, &frame, &results);
    gn_results_clear(&results);
    return true;
}

static PyObject *function_call(int number, enum form form, PyObject *self,
                               PyObject *const *arguments, Py_ssize_t count, PyObject *keywords)
{
    struct function *function = &functions[number];
    struct module_state *state = form == FORM_FUNCTION ? module_state_of(self) : tensor_state(self);
    PyObject *first = form == FORM_FUNCTION ? NULL : self, *made = NULL;
    if (function->op >= 0 && keywords == NULL && count + (first != NULL) == function->arity)
        return operands_call(function, state, form, first, arguments, count);
    if (!function->is_parsed)
        function_parse(function);
    if (form == FORM_METHOD && keywords == NULL &&
        quick_call(function, self, arguments, count, &made))
        return made;
    struct call_frame frame;
    frame_init(&frame, function);
    frame.state = state;
    frame.name = form == FORM_IN_PLACE ? function->in_place : function->name;
    int filled = frame_fill(function, &frame, first, arguments, count, keywords);
    if (filled == 0 && form == FORM_IN_PLACE && frame.out != NULL) {
        PyErr_Format(PyExc_TypeError,
                     "%s: the result goes to the tensor itself: out= is not for this", frame.name);
    } else if (filled == 0 &&
               out_refuse(state, frame.name, frame.objects, function->count, frame.out) == 0) {
        if (form == FORM_IN_PLACE && (function->row->forms & GN_FORM_WRITES) != 0)
            frame.target = self;
        else if (form == FORM_IN_PLACE)
            frame.out = self;
        made = function->op >= 0 ? operation_run(function, &frame) : function_run(function, &frame);
    }
    frame_clear(&frame);
    return gradient_request(made, frame.requires_gradient);
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
#define HEX_2(X, n) \
    HEX(X, n##0)    \
    HEX(X, n##1)    \
    HEX(X, n##2)    \
    HEX(X, n##3)    \
    HEX(X, n##4)    \
    HEX(X, n##5)    \
    HEX(X, n##6)    \
    HEX(X, n##7)    \
    HEX(X, n##8)    \
    HEX(X, n##9) HEX(X, n##a) HEX(X, n##b) HEX(X, n##c) HEX(X, n##d) HEX(X, n##e) HEX(X, n##f)
#define THUNKS(X) HEX_2(X, 0) HEX_2(X, 1) HEX_2(X, 2)

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
    const char *at = row->signature, *end = strstr(at, "-> ");
    end = end != NULL ? end : at + strlen(at);
    while (end > at && end[-1] == ' ')
        end--;
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
    bool is_creation = strstr(row->signature, ": device") != NULL;
    const char *last = has_out ? ", out=None" : is_creation ? ", requires_grad=False" : "";
    const char *star = *last == '\0' || strchr(parameters, '*') != NULL ? "" : ", *";
    shown = PyUnicode_FromFormat(
        "%s%s(%s%s%s%s)\n--\n\n%s%s%s%s%s", function->name, form == FORM_IN_PLACE ? "_" : "", first,
        listed, star, last, form == FORM_IN_PLACE ? "In place: " : "", row->text,
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

/* The module of a namespace, which is made at its first function. A new reference. */
static PyObject *namespace_get(PyObject *module, const struct namespace *home)
{
    if (home->attribute[0] == '\0')
        return Py_NewRef(module);
    if (PyObject_HasAttrString(module, home->attribute))
        return PyObject_GetAttrString(module, home->attribute);
    PyObject *made = PyModule_New(home->home);
    if (made != NULL && PyModule_AddObjectRef(module, home->attribute, made) < 0)
        Py_CLEAR(made);
    return made;
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
    PyObject *made = NULL, *owner = NULL;
    if (definition->ml_doc == NULL)
        return -1;
    if (form == FORM_FUNCTION) {
        PyObject *home = PyUnicode_FromString(function->home->home);
        owner = namespace_get(module, function->home);
        made = home != NULL && owner != NULL ? PyCFunction_NewEx(definition, module, home) : NULL;
        Py_XDECREF(home);
    } else {
        owner = Py_NewRef(state->tensor_class);
        made = PyDescr_NewMethod((PyTypeObject *)state->tensor_class, definition);
    }
    int status = made != NULL ? PyObject_SetAttrString(owner, name, made) : -1;
    Py_XDECREF(owner);
    Py_XDECREF(made);
    return status;
}

/* A row of options gives the operation of its name what it takes beside its operands. */
static int options_add(const gn_function *row, const char *name, size_t length)
{
    for (int i = 0; i < function_count; i++)
        if (functions[i].op >= 0 && strlen(functions[i].name) == length &&
            memcmp(functions[i].name, name, length) == 0) {
            functions[i].row = row;
            return 0;
        }
    PyErr_Format(PyExc_SystemError, "there is no operation for the options of %s", row->name);
    return -1;
}

/* The namespace of a row. */
static const struct namespace *namespace_of(const gn_function *row)
{
    for (size_t i = 1; i < sizeof namespaces / sizeof *namespaces; i++)
        if (strncmp(row->name, namespaces[i].prefix, strlen(namespaces[i].prefix)) == 0)
            return &namespaces[i];
    return &namespaces[0];
}

/* One name of a row, without its namespace. `op` and `arity` are of an elementwise operation, else -1 and 0. */
static int function_add(PyObject *module, struct module_state *state, const gn_function *row,
                        const char *name, size_t length, int op, int arity)
{
    struct function *function = &functions[function_count];
    if ((row->forms & GN_FORM_OPTIONS) != 0)
        return options_add(row, name, length);
    if (function_count == FUNCTIONS_MOST || length >= sizeof functions->name) {
        PyErr_Format(PyExc_SystemError, "there is no room for the function %s", row->name);
        return -1;
    }
    int number = function_count++;
    *function = (struct function){.row = row, .home = namespace_of(row), .op = op, .arity = arity};
    memcpy(function->name, name, length);
    (void)PyOS_snprintf(function->in_place, sizeof function->in_place, "%s_", function->name);
    for (int form = FORM_FUNCTION; form <= FORM_IN_PLACE; form++) {
        bool is_there =
            form == FORM_FUNCTION
                ? (row->forms & GN_FORM_NO_FUNCTION) == 0
                : (row->forms & (form == FORM_METHOD ? GN_FORM_METHOD : GN_FORM_IN_PLACE)) != 0;
        if (is_there && form_add(module, state, number, (enum form)form) < 0)
            return -1;
    }
    return 0;
}

/* All names of a row. */
static int row_add(PyObject *module, struct module_state *state, const gn_function *row, int op,
                   int arity)
{
    const char *alias = row->aliases != NULL ? row->aliases : "";
    const char *name = row->name + strlen(namespace_of(row)->prefix);
    int status = function_add(module, state, row, name, strlen(name), op, arity);
    while (status == 0 && *alias != '\0') {
        size_t length = strcspn(alias, " ");
        status = function_add(module, state, row, alias, length, op, arity);
        alias += length;
        alias += strspn(alias, " ");
    }
    return status;
}

const gn_function *function_find(const char *name)
{
    for (int i = 0; i < function_count; i++)
        if (functions[i].home == namespaces && strcmp(functions[i].name, name) == 0)
            return functions[i].row;
    return NULL;
}

PyObject *function_names(void)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list != NULL && i < function_count; i++)
        if (functions[i].home == namespaces && functions[i].name[0] != '_' &&
            (functions[i].row->forms & GN_FORM_NO_FUNCTION) == 0)
            (void)list_append(&list, PyUnicode_FromString(functions[i].name));
    return list;
}

int functions_init(PyObject *module, struct module_state *state)
{
#define ARITY(NAME, name, arity, ...) arity,
    static const int arities[] = {GN_OP_LIST(ARITY)};
#undef ARITY
    const gn_function *row;
    int status = 0;
    function_count = 0; /* a module that is loaded again has the same rows */
    if (out_word == NULL && (out_word = PyUnicode_InternFromString("out")) == NULL)
        return -1;
    for (int op = 0; status == 0 && op < GN_OP_COUNT; op++)
        if (op_rows[op].name[0] != '\0')
            status = row_add(module, state, &op_rows[op], op, arities[op]);
    for (int i = 0; status == 0 && (row = gn_function_table(i)) != NULL; i++)
        for (; status == 0 && row->name != NULL; row++)
            status = row_add(module, state, row, -1, 0);
    return status;
}
