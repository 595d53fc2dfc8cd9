/*
 * python_pickle.c: reads pickles of plain types: dicts, lists, tuples, text, numbers, True, False and None.
 *
 * Pickles are files of others. Python's own reader runs what they name, and believes their numbers: nine bytes make it
 * take gigabytes. This one has no way to call anything, and
 *   P1  what it takes is bounded by the bytes that it has read: a length is compared with what is left, and an index of
 *       the memo with what was read so far;
 *   P2  a key is a number or a text: the hash of nested tuples would go as deep as they do, without a bound;
 *   P3  a number has 64 bits at most.
 * Objects may be shared and nested without a bound: who reads the result must not go where it does not expect them.
 *
 * The stack holds values; a mark is a height of it, below which nothing is taken until the mark is gone. Everything is
 * owned by the stack and the memo until the end.
 */
#include "module.h"

#include <stdlib.h>
#include <string.h>

/* The opcodes of pickles that are read. Others are refused, by what they would do. */
enum opcode {
    OP_MARK = '(',
    OP_STOP = '.',
    OP_POP = '0',
    OP_POP_MARK = '1',
    OP_DUP = '2',
    OP_NONE = 'N',
    OP_FLOAT = 'G',
    OP_INT32 = 'J',
    OP_INT8 = 'K',
    OP_INT16 = 'M',
    OP_LONG1 = 0x8a,
    OP_LONG4 = 0x8b,
    OP_TRUE = 0x88,
    OP_FALSE = 0x89,
    OP_TEXT8 = 0x8c,
    OP_TEXT32 = 'X',
    OP_TEXT64 = 0x8d,
    OP_EMPTY_LIST = ']',
    OP_APPEND = 'a',
    OP_APPENDS = 'e',
    OP_LIST = 'l',
    OP_EMPTY_DICT = '}',
    OP_SETITEM = 's',
    OP_SETITEMS = 'u',
    OP_DICT = 'd',
    OP_EMPTY_TUPLE = ')',
    OP_TUPLE = 't',
    OP_TUPLE1 = 0x85,
    OP_TUPLE2 = 0x86,
    OP_TUPLE3 = 0x87,
    OP_PUT8 = 'q',
    OP_PUT32 = 'r',
    OP_MEMOIZE = 0x94,
    OP_GET8 = 'h',
    OP_GET32 = 'j',
    OP_PROTOCOL = 0x80,
    OP_FRAME = 0x95,
    OP_GLOBAL = 'c',
    OP_STACK_GLOBAL = 0x93,
    OP_PERSISTENT_TEXT = 'P',
    OP_PERSISTENT = 'Q',
};

enum {
    NAME_SHOWN = 60, /* bytes of a name in a message */
};

struct values {
    PyObject **items; /* owned, and each of them; NULL in the memo where nothing was put */
    size_t count, capacity;
};

struct reader {
    const unsigned char *start, *at, *end;
    struct values stack, memo;
    size_t *marks;
    size_t mark_count, mark_capacity;
};

/* ---- arrays --------------------------------------------------------------------------------- */

/* Room for `count` items; false with an exception. */
static bool array_reserve(void **array, size_t *capacity, size_t count, size_t size)
{
    if (count <= *capacity)
        return true;
    size_t grown = *capacity == 0 ? 64 : *capacity;
    while (grown < count)
        grown *= 2;
    void *moved = realloc(*array, grown * size);
    if (moved == NULL) {
        (void)PyErr_NoMemory();
        return false;
    }
    *array = moved;
    *capacity = grown;
    return true;
}

static void values_clear(struct values *values)
{
    for (size_t i = 0; i < values->count; i++)
        Py_XDECREF(values->items[i]);
    free(values->items);
}

/* Takes the reference, which may be NULL with an exception. */
static bool push(struct reader *reader, PyObject *value)
{
    struct values *stack = &reader->stack;
    if (value == NULL ||
        !array_reserve((void **)&stack->items, &stack->capacity, stack->count + 1, sizeof value)) {
        Py_XDECREF(value);
        return false;
    }
    stack->items[stack->count++] = value;
    return true;
}

static bool refuse(const char *reason)
{
    PyErr_SetString(PyExc_ValueError, reason);
    return false;
}

/* Whether there are so many values above the last mark; false with an exception. */
static bool has_values(const struct reader *reader, size_t count)
{
    size_t floor = reader->mark_count > 0 ? reader->marks[reader->mark_count - 1] : 0;
    return reader->stack.count - floor >= count || refuse("it takes more values than it has");
}

/* Takes the last mark away; its height. */
static bool mark_pop(struct reader *reader, size_t *height)
{
    if (reader->mark_count == 0)
        return refuse("a mark is missing");
    *height = reader->marks[--reader->mark_count];
    return true;
}

static bool mark_push(struct reader *reader)
{
    if (!array_reserve((void **)&reader->marks, &reader->mark_capacity, reader->mark_count + 1,
                       sizeof *reader->marks))
        return false;
    reader->marks[reader->mark_count++] = reader->stack.count;
    return true;
}

/* Drops the values from a height on. */
static void stack_cut(struct reader *reader, size_t height)
{
    while (reader->stack.count > height)
        Py_DECREF(reader->stack.items[--reader->stack.count]);
}

/* ---- bytes ---------------------------------------------------------------------------------- */

/* P1: so many bytes, which are there; NULL with an exception. */
static const unsigned char *bytes_take(struct reader *reader, uint64_t count)
{
    if (count > (uint64_t)(reader->end - reader->at)) {
        (void)refuse("it ends too early");
        return NULL;
    }
    const unsigned char *bytes = reader->at;
    reader->at += count;
    return bytes;
}

/* A number of 1 to 8 bytes, the lowest first. */
static bool number_take(struct reader *reader, int size, uint64_t *number)
{
    const unsigned char *bytes = bytes_take(reader, (uint64_t)size);
    if (bytes == NULL)
        return false;
    *number = 0;
    for (int i = size - 1; i >= 0; i--)
        *number = *number << 8 | bytes[i];
    return true;
}

static bool text_read(struct reader *reader, int length_size)
{
    uint64_t length;
    if (!number_take(reader, length_size, &length))
        return false;
    const unsigned char *bytes = bytes_take(reader, length);
    return bytes != NULL && push(reader, PyUnicode_DecodeUTF8((const char *)bytes,
                                                              (Py_ssize_t)length, "surrogatepass"));
}

static bool small_read(struct reader *reader, int size)
{
    uint64_t number;
    if (!number_take(reader, size, &number))
        return false;
    return push(reader, PyLong_FromLongLong(size == 4 ? (int32_t)number : (int64_t)number));
}

/* P3: in two's complement. Nine bytes hold a number of 64 bits without a sign. */
static bool long_read(struct reader *reader, int length_size)
{
    uint64_t length, number = 0;
    if (!number_take(reader, length_size, &length))
        return false;
    const unsigned char *bytes = bytes_take(reader, length);
    if (bytes == NULL)
        return false;
    if (length > 9 || (length == 9 && bytes[8] != 0))
        return refuse("a number has more than 64 bits");
    bool is_negative = length > 0 && length <= 8 && bytes[length - 1] >= 0x80;
    for (size_t i = 0; i < 8; i++)
        number |= (uint64_t)(i < length ? bytes[i] : is_negative ? 0xff : 0) << (8 * i);
    return push(reader, is_negative ? PyLong_FromLongLong((int64_t)number)
                                    : PyLong_FromUnsignedLongLong(number));
}

static bool float_read(struct reader *reader)
{
    const unsigned char *bytes = bytes_take(reader, 8);
    if (bytes == NULL)
        return false;
    uint64_t bits = 0;
    double number;
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | bytes[i];
    memcpy(&number, &bits, sizeof number);
    return push(reader, PyFloat_FromDouble(number));
}

/* ---- containers ----------------------------------------------------------------------------- */

/* The last values as one tuple. */
static bool tuple_make(struct reader *reader, size_t count)
{
    struct values *stack = &reader->stack;
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);
    if (tuple == NULL)
        return false;
    stack->count -= count;
    for (size_t i = 0; i < count; i++) /* the tuple takes over the reference */
        (void)PyTuple_SetItem(tuple, (Py_ssize_t)i, stack->items[stack->count + i]);
    return push(reader, tuple);
}

/* Appends the values from a height on to the list below them. */
static bool list_extend(struct reader *reader, size_t height)
{
    if (height == 0 || !PyList_CheckExact(reader->stack.items[height - 1]))
        return refuse("something is appended that has no list below it");
    PyObject *list = reader->stack.items[height - 1];
    for (size_t i = height; i < reader->stack.count; i++)
        if (PyList_Append(list, reader->stack.items[i]) < 0)
            return false;
    stack_cut(reader, height);
    return true;
}

/* P2. */
static bool is_key(PyObject *key)
{
    return PyUnicode_CheckExact(key) || PyLong_CheckExact(key) || PyFloat_CheckExact(key) ||
           PyBool_Check(key) || key == Py_None;
}

/* Sets the pairs from a height on in the dict below them. */
static bool dict_update(struct reader *reader, size_t height)
{
    if (height == 0 || !PyDict_CheckExact(reader->stack.items[height - 1]) ||
        (reader->stack.count - height) % 2 != 0)
        return refuse("pairs are set that have no dict below them");
    PyObject *dict = reader->stack.items[height - 1];
    for (size_t i = height; i < reader->stack.count; i += 2) {
        if (!is_key(reader->stack.items[i]))
            return refuse("a key is neither a text nor a number");
        if (PyDict_SetItem(dict, reader->stack.items[i], reader->stack.items[i + 1]) < 0)
            return false;
    }
    stack_cut(reader, height);
    return true;
}

/* Puts an empty container below the values from a height on. */
static bool container_insert(struct reader *reader, size_t height, PyObject *container)
{
    if (!push(reader, container))
        return false;
    struct values *stack = &reader->stack;
    memmove(&stack->items[height + 1], &stack->items[height],
            (stack->count - 1 - height) * sizeof *stack->items);
    stack->items[height] = container;
    return true;
}

/* An opcode that takes all values above the last mark. */
static bool marked_read(struct reader *reader, enum opcode opcode)
{
    size_t height;
    if (!mark_pop(reader, &height))
        return false;
    /* What is added to must lie above the mark before. */
    size_t floor = reader->mark_count > 0 ? reader->marks[reader->mark_count - 1] : 0;
    switch (opcode) {
    case OP_POP_MARK:
        stack_cut(reader, height);
        return true;
    case OP_TUPLE:
        return tuple_make(reader, reader->stack.count - height);
    case OP_LIST:
        return container_insert(reader, height, PyList_New(0)) && list_extend(reader, height + 1);
    case OP_DICT:
        return container_insert(reader, height, PyDict_New()) && dict_update(reader, height + 1);
    case OP_APPENDS:
        return list_extend(reader, height > floor ? height : 0);
    default:
        return dict_update(reader, height > floor ? height : 0);
    }
}

/* ---- the memo ------------------------------------------------------------------------------- */

/* P1: writers count their entries, so that an index is never larger than what was written before it. */
static bool memo_put(struct reader *reader, uint64_t index)
{
    struct values *memo = &reader->memo;
    if (!has_values(reader, 1))
        return false;
    if (index > (uint64_t)(reader->at - reader->start))
        return refuse("an index of the memo is too large");
    if (!array_reserve((void **)&memo->items, &memo->capacity, (size_t)index + 1,
                       sizeof *memo->items))
        return false;
    while (memo->count <= index)
        memo->items[memo->count++] = NULL;
    PyObject *before = memo->items[index];
    memo->items[index] = Py_NewRef(reader->stack.items[reader->stack.count - 1]);
    Py_XDECREF(before);
    return true;
}

static bool memo_get(struct reader *reader, uint64_t index)
{
    if (index >= reader->memo.count || reader->memo.items[index] == NULL)
        return refuse("it refers to an entry of the memo that it has not made");
    return push(reader, Py_NewRef(reader->memo.items[index]));
}

static bool memo_read(struct reader *reader, enum opcode opcode)
{
    uint64_t index = reader->memo.count;
    if (opcode != OP_MEMOIZE &&
        !number_take(reader, opcode == OP_PUT32 || opcode == OP_GET32 ? 4 : 1, &index))
        return false;
    return opcode == OP_GET8 || opcode == OP_GET32 ? memo_get(reader, index)
                                                   : memo_put(reader, index);
}

/* ---- what is refused ------------------------------------------------------------------------ */

/* A line, or a text on the stack, as far as it can be shown. */
static void name_show(const char *from, size_t length, char shown[NAME_SHOWN])
{
    size_t count = length < NAME_SHOWN - 1 ? length : NAME_SHOWN - 1;
    for (size_t i = 0; i < count; i++)
        shown[i] = from[i] > ' ' && from[i] < 0x7f ? from[i] : '?';
    shown[count] = '\0';
}

static void line_show(struct reader *reader, char shown[NAME_SHOWN])
{
    const unsigned char *end = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
    size_t length = (size_t)((end != NULL ? end : reader->end) - reader->at);
    name_show((const char *)reader->at, length, shown);
    reader->at += length + (end != NULL);
}

static void value_show(const struct reader *reader, size_t from_top, char shown[NAME_SHOWN])
{
    Py_ssize_t length = 0;
    const char *text = NULL;
    if (reader->stack.count >= from_top &&
        PyUnicode_CheckExact(reader->stack.items[reader->stack.count - from_top]))
        text =
            PyUnicode_AsUTF8AndSize(reader->stack.items[reader->stack.count - from_top], &length);
    PyErr_Clear(); /* a surrogate is no UTF-8 */
    name_show(text != NULL ? text : "?", text != NULL ? (size_t)length : 1, shown);
}

static bool opcode_refuse(struct reader *reader, unsigned char opcode)
{
    char module[NAME_SHOWN], name[NAME_SHOWN];
    switch (opcode) {
    case OP_GLOBAL:
        line_show(reader, module);
        line_show(reader, name);
        break;
    case OP_STACK_GLOBAL:
        value_show(reader, 2, module);
        value_show(reader, 1, name);
        break;
    case OP_PERSISTENT:
    case OP_PERSISTENT_TEXT:
        return refuse("it refers to something outside of it");
    default:
        PyErr_Format(
            PyExc_ValueError,
            "it has the opcode 0x%x, which dicts, lists, tuples, text and numbers do not need",
            opcode);
        return false;
    }
    PyErr_Format(PyExc_ValueError, "it wants %s.%s: it may have plain types only", module, name);
    return false;
}

/* ---- reading -------------------------------------------------------------------------------- */

static bool header_read(struct reader *reader, enum opcode opcode)
{
    uint64_t number;
    if (!number_take(reader, opcode == OP_FRAME ? 8 : 1, &number))
        return false;
    if (opcode == OP_FRAME)
        return number <= (uint64_t)(reader->end - reader->at) || refuse("it ends too early");
    return number <= 5 || refuse("its protocol is not known");
}

static bool opcode_read(struct reader *reader, unsigned char opcode)
{
    switch (opcode) {
    case OP_PROTOCOL:
    case OP_FRAME:
        return header_read(reader, opcode);
    case OP_MARK:
        return mark_push(reader);
    case OP_POP_MARK:
    case OP_TUPLE:
    case OP_LIST:
    case OP_DICT:
    case OP_APPENDS:
    case OP_SETITEMS:
        return marked_read(reader, opcode);
    case OP_POP: /* of the mark, if there is nothing above it */
        if (reader->mark_count > 0 && reader->marks[reader->mark_count - 1] == reader->stack.count)
            reader->mark_count--;
        else if (has_values(reader, 1))
            stack_cut(reader, reader->stack.count - 1);
        else
            return false;
        return true;
    case OP_DUP:
        return has_values(reader, 1) &&
               push(reader, Py_NewRef(reader->stack.items[reader->stack.count - 1]));
    case OP_NONE:
        return push(reader, Py_NewRef(Py_None));
    case OP_TRUE:
        return push(reader, PyBool_FromLong(1));
    case OP_FALSE:
        return push(reader, PyBool_FromLong(0));
    case OP_INT8:
        return small_read(reader, 1);
    case OP_INT16:
        return small_read(reader, 2);
    case OP_INT32:
        return small_read(reader, 4);
    case OP_LONG1:
        return long_read(reader, 1);
    case OP_LONG4:
        return long_read(reader, 4);
    case OP_FLOAT:
        return float_read(reader);
    case OP_TEXT8:
        return text_read(reader, 1);
    case OP_TEXT32:
        return text_read(reader, 4);
    case OP_TEXT64:
        return text_read(reader, 8);
    case OP_EMPTY_LIST:
        return push(reader, PyList_New(0));
    case OP_EMPTY_DICT:
        return push(reader, PyDict_New());
    case OP_EMPTY_TUPLE:
        return push(reader, PyTuple_New(0));
    case OP_TUPLE1:
    case OP_TUPLE2:
    case OP_TUPLE3:
        return has_values(reader, opcode - OP_TUPLE1 + 1U) &&
               tuple_make(reader, opcode - OP_TUPLE1 + 1U);
    case OP_APPEND:
        return has_values(reader, 2) && list_extend(reader, reader->stack.count - 1);
    case OP_SETITEM:
        return has_values(reader, 3) && dict_update(reader, reader->stack.count - 2);
    case OP_PUT8:
    case OP_PUT32:
    case OP_MEMOIZE:
    case OP_GET8:
    case OP_GET32:
        return memo_read(reader, opcode);
    default:
        return opcode_refuse(reader, opcode);
    }
}

/* Up to OP_STOP: the value on top is the result. NULL with an exception. */
static PyObject *reader_run(struct reader *reader)
{
    while (reader->at < reader->end) {
        unsigned char opcode = *reader->at++;
        if (opcode == OP_STOP)
            return has_values(reader, 1) ? Py_NewRef(reader->stack.items[reader->stack.count - 1])
                                         : NULL;
        if (!opcode_read(reader, opcode))
            return NULL;
    }
    (void)refuse("it ends too early");
    return NULL;
}

static PyObject *read_pickle(PyObject *module, PyObject *data)
{
    (void)module;
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    const unsigned char *start = view.buf;
    struct reader reader = {.start = start, .at = start, .end = start + view.len};
    PyObject *result = reader_run(&reader);
    values_clear(&reader.stack);
    values_clear(&reader.memo);
    free(reader.marks);
    PyBuffer_Release(&view);
    return result;
}

static PyMethodDef pickle_methods[] = {
    {"read_pickle", read_pickle, METH_O,
     "read_pickle($module, data, /)\n--\n\n"
     "What a pickle of plain types holds. Raises ValueError for any other.\n\n"
     "Examples\n--------\n"
     ">>> import pickle\n"
     ">>> from genesis import _C\n"
     ">>> _C.read_pickle(pickle.dumps({\"a\": [1, 2.5, None]}))\n"
     "{'a': [1, 2.5, None]}\n"},
    {NULL, NULL, 0, NULL},
};

int pickle_init(PyObject *module)
{
    return PyModule_AddFunctions(module, pickle_methods);
}
