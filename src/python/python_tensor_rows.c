/*
 * python_tensor_rows.c: unique() as a method, and the class of pairs (values, indices).
 */
#include "module.h"

/* A flag that was given; else it stays as it is. */
static int flag_take(PyObject *given, bool *flag)
{
    int is_true = given != NULL ? PyObject_IsTrue(given) : *flag;
    *flag = is_true > 0;
    return is_true < 0 ? -1 : 0;
}

static PyObject *method_unique(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                               PyObject *keywords)
{
    static const struct call method = {
        "unique", {"sorted", "return_inverse", "return_counts"}, 3, 3, 0};
    struct module_state *state = tensor_state(self);
    PyObject *taken[CALL_ARGUMENTS_MOST];
    bool has_inverse = false, has_counts = false; /* they always are sorted */
    gn_tensor *values, *inverse, *counts;
    gn_status status;
    if (call_take(&method, arguments, count, keywords, taken) < 0 ||
        flag_take(taken[1], &has_inverse) < 0 || flag_take(taken[2], &has_counts) < 0)
        return NULL;
    CALL_OPERATION(is_long_on(tensor_of(self)), status,
                   gn_unique(tensor_of(self), &values, has_inverse ? &inverse : NULL,
                             has_counts ? &counts : NULL));
    if (status != GN_OK)
        return error_raise_in(state, "unique", status);
    PyObject *first = tensor_to_python(state, values);
    if (!has_inverse && !has_counts)
        return first;
    PyObject *made[2] = {has_inverse ? tensor_to_python(state, inverse) : NULL,
                         has_counts ? tensor_to_python(state, counts) : NULL};
    bool is_made =
        first != NULL && (!has_inverse || made[0] != NULL) && (!has_counts || made[1] != NULL);
    PyObject *tuple = !is_made ? NULL
                      : has_inverse && has_counts
                          ? PyTuple_Pack(3, first, made[0], made[1])
                          : PyTuple_Pack(2, first, has_inverse ? made[0] : made[1]);
    Py_XDECREF(first);
    Py_XDECREF(made[0]);
    Py_XDECREF(made[1]);
    return tuple;
}

PyMethodDef tensor_row_methods[] = {
    {"unique", WITH_VECTOR(method_unique),
     "unique($self, sorted=True, return_inverse=False, return_counts=False)\n--\n\n"
     "The different elements, ascending; where each element is among them, and how often each "
     "occurs."},
    {NULL, NULL, 0, NULL},
};

static PyStructSequence_Field pair_fields[] = {
    {"values", "The elements."},
    {"indices", "Where they were."},
    {NULL, NULL},
};

static PyStructSequence_Desc pair_description = {
    .name = "genesis.values_indices",
    .doc = "Elements, and where they were.",
    .fields = pair_fields,
    .n_in_sequence = 2,
};

int pair_class_init(struct module_state *state)
{
    state->pair_class = (PyObject *)PyStructSequence_NewType(&pair_description);
    return state->pair_class != NULL ? 0 : -1;
}
