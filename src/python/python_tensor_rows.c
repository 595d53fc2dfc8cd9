/*
 * python_tensor_rows.c: the class of pairs (values, indices).
 */
#include "module.h"

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
