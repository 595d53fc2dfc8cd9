/*
 * python_tensor_format.c: memory_format= of methods of Tensor: genesis.channels_last and its like, which are texts.
 */
#include "module.h"

int format_from_python(struct module_state *state, const char *name, PyObject *object,
                       gn_memory_format *format)
{
    if (object == NULL || object == Py_None)
        return 0;
    if (!PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError,
                     "%s: memory_format is genesis.contiguous_format, preserve_format, "
                     "channels_last or channels_last_3d, not %R",
                     name, object);
        return -1;
    }
    const char *text = text_from_python(object);
    if (text == NULL)
        return -1;
    gn_status status = gn_memory_format_find(text, format);
    if (status == GN_OK)
        return 0;
    (void)error_raise_in(state, name, status);
    return -1;
}

int format_argument(PyObject *self, const char *name, PyObject *const *arguments, Py_ssize_t count,
                    PyObject *keywords, gn_memory_format *format)
{
    const struct signature signature = {name, {"memory_format", NULL}, 0};
    PyObject *taken[2];
    if (count == 0 && keywords == NULL)
        return 0;
    if (arguments_take(&signature, arguments, count, keywords, taken) < 0)
        return -1;
    return format_from_python(tensor_state(self), name, taken[0], format);
}

PyObject *tensor_with_format(PyObject *self, gn_memory_format format, bool is_copied)
{
    gn_tensor *tensor = tensor_of(self), *made;
    gn_status status;
    if (!is_copied && gn_tensor_has_format(tensor, format))
        return Py_NewRef(self);
    CALL_OPERATION(is_long_on(tensor), status,
                   gn_tensor_to_format(tensor, format, is_copied, &made));
    return tensor_or_raise(tensor_state(self), status, made);
}
