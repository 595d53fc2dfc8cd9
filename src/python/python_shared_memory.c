/*
 * python_shared_memory.c: tensors over the memory of a file: the batches of genesis.utils.data, which another process
 * has filled, and checkpoints that are read as they are used.
 *
 * The memory of a batch has no name: it is a file of memfd_create(), which came over a socket. One mapping serves all
 * tensors, each with a storage of its own, so that a write to one is no write to another.
 *   SM1  `holders` counts the tensors, and the call that makes them. The last one unmaps, from any thread, and without
 *        Python.
 *   SM2  The first word of memory that has an owner is a SHARED_ value. The owner writes SHARED_USED; it is changed here
 *        when the last tensor has gone: the owner may fill the memory again. After a fork a child may have tensors over
 *        it as well: then the owner gives it back, and the rest lives as long as the child's mapping.
 *   SM3  Nothing is mapped beyond the end of the file: a read there would end the process.
 */
#include "module.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum shared_state {
    SHARED_FREE, /* nobody uses it */
    SHARED_USED, /* it has a batch */
    SHARED_LEFT, /* this process does not use it, but another one may */
};

struct mapping {
    void *start;
    size_t nbytes;
    atomic_size_t holders; /* SM1 */
    bool has_owner;        /* SM2 */
    unsigned forks;        /* `fork_count` when it was made */
};

static atomic_uint
    fork_count; /* goes up before a fork and after it: another thread may map in between */

static void fork_note(void)
{
    atomic_fetch_add(&fork_count, 1);
}

static void mapping_release(void *context)
{
    struct mapping *mapping = context;
    if (atomic_fetch_sub(&mapping->holders, 1) > 1)
        return;
    if (mapping->has_owner)
        atomic_store((atomic_ullong *)mapping->start,
                     mapping->forks == atomic_load(&fork_count) ? SHARED_FREE : SHARED_LEFT);
    (void)munmap(mapping->start, mapping->nbytes);
    free(mapping);
}

/* The whole of a file, which may be closed afterwards; writes to a private one stay here. NULL with an exception. */
static struct mapping *mapping_create(int file, bool is_private, bool has_owner)
{
    struct stat found;
    if (fstat(file, &found) < 0) {
        (void)PyErr_SetFromErrno(PyExc_OSError);
        return NULL;
    }
    if (!S_ISREG(found.st_mode) || found.st_size <= 0) {
        PyErr_SetString(PyExc_ValueError, "the file has no memory to share");
        return NULL;
    }
    struct mapping *mapping = malloc(sizeof *mapping);
    if (mapping == NULL) {
        (void)PyErr_NoMemory();
        return NULL;
    }
    mapping->nbytes = (size_t)found.st_size;
    mapping->has_owner = has_owner;
    mapping->forks = atomic_load(&fork_count);
    atomic_init(&mapping->holders, 1);
    mapping->start = mmap(NULL, mapping->nbytes, PROT_READ | PROT_WRITE,
                          is_private ? MAP_PRIVATE : MAP_SHARED, file, 0);
    if (mapping->start == MAP_FAILED) {
        (void)PyErr_SetFromErrno(PyExc_OSError);
        free(mapping);
        return NULL;
    }
    return mapping;
}

/* Whether so many elements of a type lie within the mapping from a byte on; false with an exception. */
static bool part_is_within(const struct mapping *mapping, gn_dtype dtype, int ndim,
                           const int64_t *sizes, Py_ssize_t offset)
{
    size_t nbytes = gn_dtype_size(dtype), alignment = nbytes;
    bool fits = true;
    for (int i = 0; i < ndim; i++)
        fits &= sizes[i] >= 0 && !__builtin_mul_overflow(nbytes, (size_t)sizes[i], &nbytes);
    if (fits && offset >= 0 && (size_t)offset % alignment == 0 &&
        (size_t)offset <= mapping->nbytes && nbytes <= mapping->nbytes - (size_t)offset)
        return true;
    PyErr_SetString(PyExc_ValueError, "a tensor does not lie within the shared memory");
    return false;
}

static int cpu_find(struct module_state *state, gn_device **device)
{
    gn_status status = gn_device_get(GN_DEVICE_CPU, 0, device);
    if (status != GN_OK)
        (void)error_raise(state, status);
    return status == GN_OK ? 0 : -1;
}

/* One tensor of (dtype, shape, offset). */
static PyObject *part_create(struct module_state *state, struct mapping *mapping, PyObject *part)
{
    int64_t sizes[GN_DIMENSIONS_MAX];
    PyObject *dtype_object, *shape;
    Py_ssize_t offset;
    gn_device *device;
    gn_dtype dtype;
    gn_tensor *tensor;
    int ndim;
    if (!PyArg_ParseTuple(part, "OO!n", &dtype_object, &PyTuple_Type, &shape, &offset) ||
        dtype_from_python(state, dtype_object, &dtype) < 0 ||
        shape_from_python(&shape, 1, sizes, &ndim) < 0 || cpu_find(state, &device) < 0 ||
        !part_is_within(mapping, dtype, ndim, sizes, offset))
        return NULL;
    atomic_fetch_add(&mapping->holders, 1);
    gn_status status =
        gn_tensor_from_memory((char *)mapping->start + offset, dtype, ndim, sizes, NULL, device,
                              false, mapping_release, mapping, &tensor);
    if (status == GN_OK)
        return tensor_to_python(state, tensor);
    mapping_release(mapping);
    return error_raise(state, status);
}

static PyObject *shared_tensors(PyObject *module, PyObject *arguments)
{
    struct module_state *state = module_state_of(module);
    PyObject *parts;
    int file, is_private = 0, has_owner = 0;
    if (!PyArg_ParseTuple(arguments, "iO!|pp:_shared_tensors", &file, &PyTuple_Type, &parts,
                          &is_private, &has_owner))
        return NULL;
    struct mapping *mapping = mapping_create(file, is_private != 0, has_owner != 0);
    Py_ssize_t count = PyTuple_Size(parts);
    PyObject *made = mapping != NULL ? PyList_New(count) : NULL;
    for (Py_ssize_t i = 0; made != NULL && i < count; i++) {
        PyObject *one = PyTuple_GetItem(parts, i);
        PyObject *tensor = NULL;
        if (PyTuple_Check(one))
            tensor = part_create(state, mapping, one);
        else
            PyErr_SetString(PyExc_TypeError, "a part is (dtype, shape, offset)");
        if (tensor == NULL || PyList_SetItem(made, i, tensor) < 0)
            Py_CLEAR(made);
    }
    if (mapping != NULL)
        mapping_release(mapping);
    return made;
}

static PyMethodDef shared_memory_methods[] = {
    {"_shared_tensors", shared_tensors, METH_VARARGS,
     "_shared_tensors($module, fd, parts, is_private=False, has_owner=False, /)\n--\n\n"
     "Tensors over the memory of a file: one for each (dtype, shape, offset) of a tuple."},
    {NULL, NULL, 0, NULL},
};

int shared_memory_init(PyObject *module)
{
    static atomic_bool is_noting;
    if (!atomic_exchange(&is_noting, true) && pthread_atfork(fork_note, fork_note, NULL) != 0) {
        (void)PyErr_NoMemory();
        return -1;
    }
    return PyModule_AddFunctions(module, shared_memory_methods);
}
