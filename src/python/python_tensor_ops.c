/*
 * python_tensor_ops.c: operators and elementwise operations of Tensor, as methods and functions.
 *
 * An operand is a Tensor, one of Python's numbers (which takes the tensors' type as long as its kind allows), or
 * something that has elements: an array of NumPy, say, which is copied, or what DLPack or __cuda_array_interface__
 * gives, which is not.
 */
#include "module.h"

/* Operands, and the tensors that were made for them. */
struct operands {
    gn_operand list[3];
    PyObject *made[3]; /* NULL: not */
    PyObject *refused; /* borrowed: what is no operand */
};

/* Whether it is one of NumPy's; called with an exception, which stays. */
static bool is_number(PyObject *object)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *ndim = PyObject_GetAttrString(object, "ndim");
    bool is_zero = ndim != NULL && PyLong_Check(ndim) && PyLong_AsLong(ndim) == 0;
    Py_XDECREF(ndim);
    PyErr_Restore(type, value, trace);
    return is_zero;
}

/* Elements of an array, as a tensor on the device of the first tensor among the objects, or on the CPU. NumPy's numbers
 * are taken as the nearest that there is: their type counts for little beside a tensor's. */
static PyObject *tensor_beside(struct module_state *state, PyObject *array,
                               PyObject *const *objects, int count)
{
    PyObject *made = tensor_from_data(state, array, NULL, true);
    if (made == NULL && is_number(array)) {
        PyErr_Clear();
        made = tensor_from_value(state, array);
    }
    for (int i = 0; made != NULL && i < count; i++) {
        if (objects[i] == NULL || !tensor_check(state, objects[i]))
            continue;
        if (gn_tensor_get_device(tensor_of(objects[i])) == gn_tensor_get_device(tensor_of(made)))
            return made;
        PyObject *device = PyObject_GetAttrString(objects[i], "device");
        PyObject *moved = device != NULL ? PyObject_CallMethod(made, "to", "O", device) : NULL;
        Py_XDECREF(device);
        Py_DECREF(made);
        return moved;
    }
    return made;
}

/* One operand among `objects`, and the tensor that was made for it, or NULL. 1, 0 for something that is no operand, -1 with
 * an exception. */
static int operand_make(struct module_state *state, PyObject *object, PyObject *const *objects,
                        int count, gn_operand *operand, PyObject **made)
{
    int found = operand_from_python(state, object, operand);
    *made = NULL;
    if (found != 0)
        return found;
    if (has_buffer(state, object))
        *made = tensor_beside(state, object, objects, count);
    else if (PyObject_HasAttrString(object, "__dlpack__") ||
             PyObject_HasAttrString(object, "__cuda_array_interface__"))
        *made = tensor_from_foreign(state, object, Py_None);
    else
        return 0;
    if (*made == NULL)
        return -1;
    *operand = (gn_operand){.tensor = tensor_of(*made)};
    return 1;
}

/* The same for all operands of an operation. */
static int operands_take(struct module_state *state, PyObject *const *objects, int count,
                         struct operands *operands)
{
    operands->made[0] = operands->made[1] = operands->made[2] = NULL;
    for (int i = 0; i < count; i++) {
        int found =
            operand_make(state, objects[i], objects, count, &operands->list[i], &operands->made[i]);
        if (found <= 0) {
            operands->refused = objects[i];
            return found;
        }
    }
    return 1;
}

bool operand_is_kept(void)
{
    bool is_kept = PyErr_ExceptionMatches(PyExc_BufferError);
    if (is_kept)
        PyErr_Clear();
    return is_kept;
}

static void operands_drop(struct operands *operands)
{
    for (int i = 0; i < 3; i++)
        Py_XDECREF(operands->made[i]);
}

/* For what is no operand, as operands_take() found it. */
static void operand_refuse(const char *name, PyObject *object)
{
    PyObject *type = PyType_GetQualName(Py_TYPE(object));
    if (type != NULL)
        PyErr_Format(PyExc_TypeError, "%s: operands are tensors, numbers or arrays, not %U", name,
                     type);
    Py_XDECREF(type);
}

int operand_take(struct module_state *state, const char *name, PyObject *object,
                 PyObject *const *objects, int count, gn_operand *operand, PyObject **made)
{
    int found = operand_make(state, object, objects, count, operand, made);
    if (found == 0)
        operand_refuse(name, object);
    return found > 0 ? 0 : -1;
}

/* An operation with autocast, which is on. */
static gn_status elementwise_autocast(gn_op op, const gn_operand *given, int arity,
                                      gn_tensor **result)
{
    gn_operand operands[3];
    gn_tensor *made[3];
    for (int i = 0; i < arity; i++)
        operands[i] = given[i];
    gn_status status = gn_autocast_operands(gn_autocast_find_operation(op), arity, operands, made);
    if (status != GN_OK)
        return status;
    status = gn_elementwise(op, operands, result);
    for (int i = 0; i < arity; i++)
        gn_tensor_release(made[i]);
    return status;
}

/* The result as a new tensor, or written into `out` where that is not NULL. `name`: that of the function; NULL for
 * an operator, whose operation has one. */
static PyObject *operation_into(struct module_state *state, const char *name, gn_op op,
                                PyObject *const *objects, int arity, PyObject *out,
                                PyObject *missing)
{
    struct operands operands;
    gn_tensor *result;
    gn_status status;
    int found = operands_take(state, objects, arity, &operands);
    PyObject *made = NULL;
    if (found > 0 && out == NULL) {
        if (gn_autocast_is_on())
            CALL_OPERATION(false, status, elementwise_autocast(op, operands.list, arity, &result));
        else
            CALL_OPERATION(false, status, gn_elementwise(op, operands.list, &result));
        made = tensor_or_raise_in(state, name, status, result);
    } else if (found > 0) {
        CALL_OPERATION(false, status, gn_elementwise_into(op, operands.list, tensor_of(out)));
        made = status == GN_OK ? Py_NewRef(out) : error_raise_in(state, name, status);
    } else if (missing != NULL && (found == 0 || operand_is_kept())) {
        made = Py_NewRef(missing);
    } else if (found == 0) {
        operand_refuse(name, operands.refused);
    }
    operands_drop(&operands);
    return made;
}

static PyObject *operator_call(struct module_state *state, gn_op op, PyObject *const *objects,
                               int arity, PyObject *missing)
{
    const char *name = op == GN_OP_SHIFT_LEFT    ? "bitwise_left_shift"
                       : op == GN_OP_SHIFT_RIGHT ? "bitwise_right_shift"
                                                 : NULL; /* as the operation is called */
    return operation_into(state, name, op, objects, arity, NULL, missing);
}

/* ---- operators ------------------------------------------------------------------------------- */

static PyObject *operator_add(PyObject *a, PyObject *b);

/* One of the two is a Tensor: the one whose class adds as ours does. */
static struct module_state *state_of_either(PyObject *a, PyObject *b)
{
    union {
        void *slot;
        binaryfunc function;
    } own = {.slot = PyType_GetSlot(Py_TYPE(a), Py_nb_add)};
    return tensor_state(own.function == operator_add ? a : b);
}

#define OPERATOR(name, OP)                                                                      \
    static PyObject *operator_##name(PyObject *a, PyObject *b)                                  \
    {                                                                                           \
        PyObject *objects[] = {a, b};                                                           \
        return operator_call(state_of_either(a, b), GN_OP_##OP, objects, 2, Py_NotImplemented); \
    }
#define OPERATOR_IN_PLACE(name, OP)                                                   \
    static PyObject *operator_in_place_##name(PyObject *self, PyObject *other)        \
    {                                                                                 \
        PyObject *objects[] = {self, other};                                          \
        return operation_into(tensor_state(self), NULL, GN_OP_##OP, objects, 2, self, \
                              Py_NotImplemented);                                     \
    }
#define OPERATOR_UNARY(name, OP)                                              \
    static PyObject *operator_##name(PyObject *self)                          \
    {                                                                         \
        return operator_call(tensor_state(self), GN_OP_##OP, &self, 1, NULL); \
    }

OPERATOR(add, ADD)
OPERATOR(subtract, SUBTRACT)
OPERATOR(multiply, MULTIPLY)
OPERATOR(divide, DIVIDE)
OPERATOR(floor_divide, FLOOR_DIVIDE)
OPERATOR(remainder, REMAINDER)
OPERATOR(and, BITWISE_AND)
OPERATOR(or, BITWISE_OR)
OPERATOR(xor, BITWISE_XOR)
OPERATOR(left, SHIFT_LEFT)
OPERATOR(right, SHIFT_RIGHT)
OPERATOR_IN_PLACE(add, ADD)
OPERATOR_IN_PLACE(subtract, SUBTRACT)
OPERATOR_IN_PLACE(multiply, MULTIPLY)
OPERATOR_IN_PLACE(divide, DIVIDE)
OPERATOR_IN_PLACE(floor_divide, FLOOR_DIVIDE)
OPERATOR_IN_PLACE(remainder, REMAINDER)
OPERATOR_IN_PLACE(and, BITWISE_AND)
OPERATOR_IN_PLACE(or, BITWISE_OR)
OPERATOR_IN_PLACE(xor, BITWISE_XOR)
OPERATOR_IN_PLACE(left, SHIFT_LEFT)
OPERATOR_IN_PLACE(right, SHIFT_RIGHT)
OPERATOR_UNARY(negative, NEGATIVE)
OPERATOR_UNARY(absolute, ABSOLUTE)
OPERATOR_UNARY(invert, BITWISE_NOT)

static PyObject *operator_power(PyObject *a, PyObject *b, PyObject *modulus)
{
    PyObject *objects[] = {a, b};
    if (modulus != Py_None)
        return Py_NewRef(Py_NotImplemented);
    return operator_call(state_of_either(a, b), GN_OP_POWER, objects, 2, Py_NotImplemented);
}

static PyObject *operator_in_place_power(PyObject *self, PyObject *other, PyObject *modulus)
{
    PyObject *objects[] = {self, other};
    if (modulus != Py_None)
        return Py_NewRef(Py_NotImplemented);
    return operation_into(tensor_state(self), NULL, GN_OP_POWER, objects, 2, self,
                          Py_NotImplemented);
}

static PyObject *operator_positive(PyObject *self)
{
    return Py_NewRef(self);
}

static PyObject *operator_compare(PyObject *self, PyObject *other, int what)
{
    static const gn_op ops[] = {
        [Py_LT] = GN_OP_LESS,      [Py_LE] = GN_OP_LESS_EQUAL, [Py_EQ] = GN_OP_EQUAL,
        [Py_NE] = GN_OP_NOT_EQUAL, [Py_GT] = GN_OP_GREATER,    [Py_GE] = GN_OP_GREATER_EQUAL};
    PyObject *objects[] = {self, other};
    return operator_call(tensor_state(self), ops[what], objects, 2, Py_NotImplemented);
}

PyType_Slot tensor_number_slots[] = {
    {Py_nb_add, operator_add},
    {Py_nb_subtract, operator_subtract},
    {Py_nb_multiply, operator_multiply},
    {Py_nb_matrix_multiply, tensor_matmul},
    {Py_nb_true_divide, operator_divide},
    {Py_nb_floor_divide, operator_floor_divide},
    {Py_nb_remainder, operator_remainder},
    {Py_nb_power, operator_power},
    {Py_nb_and, operator_and},
    {Py_nb_or, operator_or},
    {Py_nb_xor, operator_xor},
    {Py_nb_lshift, operator_left},
    {Py_nb_rshift, operator_right},
    {Py_nb_inplace_add, operator_in_place_add},
    {Py_nb_inplace_subtract, operator_in_place_subtract},
    {Py_nb_inplace_multiply, operator_in_place_multiply},
    {Py_nb_inplace_true_divide, operator_in_place_divide},
    {Py_nb_inplace_floor_divide, operator_in_place_floor_divide},
    {Py_nb_inplace_remainder, operator_in_place_remainder},
    {Py_nb_inplace_and, operator_in_place_and},
    {Py_nb_inplace_or, operator_in_place_or},
    {Py_nb_inplace_xor, operator_in_place_xor},
    {Py_nb_inplace_lshift, operator_in_place_left},
    {Py_nb_inplace_rshift, operator_in_place_right},
    {Py_nb_inplace_power, operator_in_place_power},
    {Py_nb_negative, operator_negative},
    {Py_nb_positive, operator_positive},
    {Py_nb_absolute, operator_absolute},
    {Py_nb_invert, operator_invert},
    {Py_tp_richcompare, operator_compare},
    {0, NULL},
};

/* ---- methods and functions ------------------------------------------------------------------- */

PyObject *elementwise_call(struct module_state *state, const char *name, gn_op op,
                           PyObject *const *objects, int arity, PyObject *out)
{
    if (out != NULL && !tensor_check(state, out)) {
        PyErr_Format(PyExc_TypeError, "%s: out is a tensor, not %R", name, out);
        return NULL;
    }
    return operation_into(state, name, op, objects, arity, out, NULL);
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* The places of elements that are not 0, as a tuple of a tensor for each dimension: nonzero(as_tuple=True). */
static PyObject *nonzero_tuple(struct module_state *state, gn_tensor *tensor)
{
    static const gn_function *nonzero; /* its row, once it is found */
    if (nonzero == NULL)
        nonzero = function_find("nonzero");
    const gn_argument arguments[] = {
        {.is_given = true, .operand.tensor = tensor},
        {.is_given = true, .operand.scalar = {.kind = GN_BOOL, .integer = 1}},
    };
    gn_results results = {0};
    gn_status status;
    CALL_OPERATION(is_long_on(tensor), status, nonzero->call(arguments, &results));
    if (status != GN_OK)
        return error_raise_in(state, "where", status);
    PyObject *tuple = PyTuple_New(results.count);
    for (int i = 0; tuple != NULL && i < results.count; i++) {
        PyObject *item = tensor_to_python(state, results.tensors[i]);
        results.tensors[i] = NULL;
        if (item == NULL || PyTuple_SetItem(tuple, i, item) < 0)
            Py_CLEAR(tuple);
    }
    gn_results_clear(&results);
    return tuple;
}

static PyObject *function_where(PyObject *module, PyObject *const *arguments, Py_ssize_t count,
                                PyObject *keywords)
{
    static const struct call row = {"where", {"condition", "input", "other", "out"}, 4, 3, 1};
    struct module_state *state = module_state_of(module);
    PyObject *taken[CALL_ARGUMENTS_MOST];
    if (call_take(&row, arguments, count, keywords, taken) < 0)
        return NULL;
    if (taken[1] == NULL && taken[2] == NULL && tensor_check(state, taken[0]))
        return nonzero_tuple(state, tensor_of(taken[0]));
    if (taken[1] == NULL || taken[2] == NULL) {
        PyErr_SetString(PyExc_TypeError, "where() takes 3 operands, or a condition alone");
        return NULL;
    }
    if (out_refuse(state, "where", taken, 3, taken[3]) < 0)
        return NULL;
    return elementwise_call(state, "where", GN_OP_WHERE, taken, 3,
                            taken[3] != Py_None ? taken[3] : NULL);
}

static PyObject *assign(PyObject *self, const char *name, PyObject *value)
{
    struct module_state *state = tensor_state(self);
    struct operands operands;
    gn_status status;
    PyObject *made = NULL;
    int found = operands_take(state, &value, 1, &operands);
    if (found > 0) {
        bool is_long = gn_tensor_get_count(tensor_of(self)) > QUICK_MOST;
        CALL_OPERATION(is_long, status, gn_assign(tensor_of(self), operands.list[0]));
        made = status == GN_OK ? Py_NewRef(self) : error_raise_in(state, name, status);
    } else if (found == 0) {
        PyErr_Format(PyExc_TypeError, "%s: %R is neither a tensor nor a number", name, value);
    }
    operands_drop(&operands);
    return made;
}

/* One value, by its place or its name; with `most` of 2 also non_blocking, which changes nothing: copies are in the order of
 * streams in any case. */
static PyObject *assign_given(PyObject *self, const char *name, const char *key, Py_ssize_t most,
                              PyObject *const *arguments, Py_ssize_t count, PyObject *keywords)
{
    PyObject *value = count > 0 ? arguments[0] : NULL;
    Py_ssize_t named = keywords != NULL ? PyTuple_Size(keywords) : 0;
    bool is_known = count + named <= most;
    for (Py_ssize_t i = 0; is_known && i < named; i++) {
        PyObject *word = PyTuple_GetItem(keywords, i);
        if (value == NULL && PyUnicode_CompareWithASCIIString(word, key) == 0)
            value = arguments[count + i];
        else
            is_known = most > 1 && PyUnicode_CompareWithASCIIString(word, "non_blocking") == 0;
    }
    if (is_known && value != NULL)
        return assign(self, name, value);
    PyErr_Format(PyExc_TypeError, most > 1 ? "%s() takes %s and non_blocking" : "%s() takes %s",
                 name, key);
    return NULL;
}

static PyObject *method_copy(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                             PyObject *keywords)
{
    return assign_given(self, "copy_", "src", 2, arguments, count, keywords);
}

static PyObject *method_fill(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                             PyObject *keywords)
{
    return assign_given(self, "fill_", "value", 1, arguments, count, keywords);
}

static PyObject *method_zero(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *zero = PyLong_FromLong(0);
    PyObject *made = zero != NULL ? assign(self, "zero_", zero) : NULL;
    Py_XDECREF(zero);
    return made;
}

static PyObject *flush(PyObject *module, PyObject *unused)
{
    (void)unused;
    gn_status status = GN_OK;
    if (gn_is_pending())
        CALL_OPERATION(false, status, gn_flush());
    if (status != GN_OK)
        return error_raise(module_state_of(module), status);
    Py_RETURN_NONE;
}

static PyObject *set_fusion(PyObject *module, PyObject *is_on)
{
    int value = PyObject_IsTrue(is_on);
    gn_status status;
    if (value < 0)
        return NULL;
    CALL_ALLOCATING(status, gn_set_fusion(value != 0));
    if (status != GN_OK)
        return error_raise(module_state_of(module), status);
    Py_RETURN_NONE;
}

static PyObject *get_fusion(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(gn_get_fusion());
}

static PyObject *get_fusion_failures(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromUnsignedLongLong(gn_get_fusion_failures());
}

PyMethodDef tensor_op_methods[] = {
    {"copy_", WITH_VECTOR(method_copy),
     "copy_($self, src, non_blocking=False)\n--\n\n"
     "Takes over elements, converted and broadcast."},
    {"fill_", WITH_VECTOR(method_fill),
     "fill_($self, value)\n--\n\nSets all elements to one number."},
    {"zero_", method_zero, METH_NOARGS, "zero_($self, /)\n--\n\nSets all elements to 0."},
    {NULL, NULL, 0, NULL},
};

PyMethodDef tensor_op_functions[] = {
    {"where", WITH_VECTOR(function_where),
     "where(condition, input=None, other=None, *, out=None)\n--\n\n"
     "Elements of the second where the first is true, of the third elsewhere; of a condition "
     "alone the places where it is true, a tensor for each dimension."},
    {"flush", flush, METH_NOARGS, "flush($module, /)\n--\n\nComputes everything that is pending."},
    {"set_fusion", set_fusion, METH_O,
     "set_fusion($module, is_on, /)\n--\n\nWhether elementwise operations may wait."},
    {"get_fusion", get_fusion, METH_NOARGS,
     "get_fusion($module, /)\n--\n\nWhether elementwise operations may wait."},
    {"_get_fusion_failures", get_fusion_failures, METH_NOARGS,
     "_get_fusion_failures($module, /)\n--\n\n"
     "How often operations could not be one kernel, and ran one by one."},
    {NULL, NULL, 0, NULL},
};
