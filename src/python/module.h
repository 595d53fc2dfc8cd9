/*
 * module.h: what the files of the extension module genesis._C share.
 *
 * The extension is written against CPython's limited API, so that one binary serves every Python
 * from 3.11 on. It includes nothing of the library but its public headers.
 *
 * Rules: 1. The interpreter's lock is let go around every call that may wait for a device. 2. A
 * failed gn_ call becomes an exception right after the call, in the same thread, since its detail
 * is kept by the thread. 3. Types and exceptions live in the module's state, not in globals.
 */
#ifndef GNI_PYTHON_MODULE_H
#define GNI_PYTHON_MODULE_H

#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "genesis/genesis.h"

enum {
    DEVICE_CAPACITY = 64,
    MANAGER_CAPACITY = 2 * DEVICE_CAPACITY + 1, /* each GPU's own and pinned one, and the CPU's */
};

/* A memory manager that Python has used. Entries stay: managers live for ever. */
struct manager_entry {
    gn_memory_manager *manager;
    PyObject *handler;  /* what Python wants called when it is out of memory; NULL for nothing */
    PyObject *callback; /* and when its memory crosses a threshold */
    bool is_pinned;
    bool is_quick; /* its frees never wait: see python_memory.c */
};

struct module_state {
    PyObject *device_class;
    PyObject *stream_class;
    PyObject *event_class;
    PyObject *manager_class;
    PyObject *request_class;
    PyObject *block_class;
    PyObject *graph_pool_class;
    PyObject *dtype_class;
    PyObject *dtypes[GN_DTYPE_COUNT];
    PyObject *pointer_classes[GN_DTYPE_COUNT]; /* of addresses; once used */
    PyObject *tensor_class;
    PyObject *parameter_class; /* the subclass of it that was used first; NULL: none yet */
    PyObject *node_class;      /* of Tensor.grad_fn */
    PyObject *handle_class;    /* of what Tensor.register_hook() gives */
    PyObject *numpy_class;     /* the last class of NumPy's that an argument had; NULL: none yet */
    PyObject *numpy_asarray;   /* its function; NULL until it is used */
    PyObject *pair_class;
    PyObject *generator_class;
    PyObject *generator; /* that of genesis.rand() and its kin, unless they are given another */
    gn_device_type default_type; /* of the device of new tensors for which none is named */
    int default_index;
    int context_count;      /* of `with device:` in all threads */
    bool is_blas_told;      /* where Python's packages have an OpenBLAS */
    bool is_pinning_warned; /* that memory cannot be page-locked */
    PyObject *shape_error;
    PyObject *linalg_error;
    PyObject *out_of_memory_error;
    PyObject *device_lost_error;
    PyObject *invalid_device_error;
    struct manager_entry managers[MANAGER_CAPACITY]; /* those that Python has used */
    int manager_count;
    struct manager_entry *cuda_managers[DEVICE_CAPACITY]; /* by index, once used; shortcuts */
    struct manager_entry *cpu_manager; /* once this machine is known to have no CUDA */
};

extern struct PyModuleDef gni_python_module;

/* What a word ends with behind a number: "%d dimension%s". */
static inline const char *plural(Py_ssize_t count)
{
    return count == 1 ? "" : "s";
}

/* The state, from the module, one of its classes, or an object of one of them. */
struct module_state *module_state_of(PyObject *module);
struct module_state *module_state_of_class(PyTypeObject *class);
struct module_state *module_state_of_object(PyObject *object);

/* ---- errors: python_error.c ----------------------------------------------------------------- */

/* Creates the exception classes and puts them into the module. */
int errors_init(PyObject *module, struct module_state *state);

/* Raises what fits the status, with the thread's error detail. Always returns NULL. */
PyObject *error_raise(const struct module_state *state, gn_status status);

/* The same, of a function that was called by this name: the sentence names it, and no inner one. */
PyObject *error_raise_in(const struct module_state *state, const char *function, gn_status status);

/* Puts the function's name in front of the sentence of a TypeError or ValueError, unless it is there. Always -1. */
int error_name(const char *function);

/* Clears an exception that says that something is not there. An interrupt, or another one that is no error, stays. */
void error_clear(void);

/* Whether the thread is in a call of CALL_HELD(): the library has the interpreter's lock then, and may let it go. */
extern _Thread_local bool interpreter_is_held;

/* Runs a gn_ call that may take long without the interpreter's lock; perhaps for a handler that the library has called
 * with it. */
#define CALL_UNLOCKED(status, call)           \
    do {                                      \
        bool *is_held = &interpreter_is_held; \
        bool was_held = *is_held;             \
        *is_held = false;                     \
        Py_BEGIN_ALLOW_THREADS;               \
        status = (call);                      \
        Py_END_ALLOW_THREADS;                 \
        *is_held = was_held;                  \
    } while (0)

/* The same for one that allocates: Python's frames are looked at before the lock is let go. */
#define CALL_ALLOCATING(status, call)                                                \
    do {                                                                             \
        bool is_recorded = gn_history_is_on();                                       \
        uint32_t site = is_recorded ? gn_history_set_site(gn_history_capture()) : 0; \
        CALL_UNLOCKED(status, call);                                                 \
        if (is_recorded)                                                             \
            (void)gn_history_set_site(site);                                         \
    } while (0)

enum {
    QUICK_MOST =
        16384, /* elements for which letting the interpreter's lock go costs more than it gives */
};

/* Runs a call with the interpreter's lock, which the library lets go where it computes for long, or waits for another
 * thread's work (that thread may need the lock, for a handler in Python): gn_set_wait_hooks(). */
#define CALL_HELD(status, call)                   \
    do {                                          \
        bool *is_held = &interpreter_is_held;     \
        bool was_held = *is_held; /* a handler */ \
        *is_held = true;                          \
        status = (call);                          \
        *is_held = was_held;                      \
    } while (0)

/* The same for an operation on tensors: a short one, and one that lets go by itself, keeps the interpreter's lock. */
#define CALL_OPERATION(is_long, status, call) \
    do {                                      \
        if ((is_long) || gn_history_is_on())  \
            CALL_ALLOCATING(status, call);    \
        else                                  \
            CALL_HELD(status, call);          \
    } while (0)

/* Whether an operation on a tensor, which does not let go by itself, is such a long one. A GPU's kernel may have to be
 * compiled. */
static inline bool is_long_on(const gn_tensor *tensor)
{
    return gn_tensor_get_count(tensor) > QUICK_MOST || gn_is_pending() ||
           gn_device_get_type(gn_tensor_get_device(tensor)) != GN_DEVICE_CPU;
}

/* The same for one that is about the order of work: operations that wait are submitted before. */
#define CALL_IN_ORDER(status, call)              \
    do {                                         \
        status = GN_OK;                          \
        if (gn_is_pending())                     \
            CALL_ALLOCATING(status, gn_flush()); \
        if (status == GN_OK)                     \
            CALL_UNLOCKED(status, call);         \
    } while (0)

/* METH_KEYWORDS functions have another type than the table's field; this is CPython's own way. */
#define WITH_KEYWORDS(function) (PyCFunction)(void (*)(void)) function, METH_VARARGS | METH_KEYWORDS

/* The same for a function that takes its arguments as an array; see arguments_take(). */
#define WITH_VECTOR(function) (PyCFunction)(void (*)(void)) function, METH_FASTCALL | METH_KEYWORDS

/* None, or the exception for a failed status; True when complete and False when not ready. */
PyObject *none_or_raise(PyObject *self, gn_status status);
PyObject *ready_or_raise(PyObject *self, gn_status status);

/* Makes and frees an object of one of our classes, whose fields start as zeros. */
PyObject *object_alloc(PyTypeObject *class);
void object_free(PyObject *self);

/* Text that the library was given from outside and that may be no UTF-8. */
PyObject *text_to_python(const char *text);

/* UTF-8 without a zero byte in it; NULL and an exception otherwise. */
const char *text_from_python(PyObject *text);

/* A size or an address from any integer; ValueError if it is negative or too large. */
int size_from_python(PyObject *object, const char *what, size_t *size);

/*
 * The items of a list, a tuple or another object, as a tuple that no user code can change: a new reference. An object
 * whose items do not end does not take all memory: with `most` at least 0 no more than `most + 1` of them are read (the
 * caller compares, and refuses), with -1 as many as its length says, which it must have.
 */
PyObject *items_take(PyObject *object, Py_ssize_t most);

/* The same for an iterable of any kind: what has an iterator of its own needs no length. */
PyObject *iterable_take(PyObject *object);

/* Appends a new reference, which it takes over, to a list; -1 and no list on failure. */
int list_append(PyObject **list, PyObject *item);

/* What a METH_FASTCALL function is called, and takes. */
struct signature {
    const char *function;
    const char *names[2];
    int required; /* how many of them must be given */
};

/*
 * The arguments of a METH_FASTCALL | METH_KEYWORDS function: borrowed, None where one may be left out
 * and is.
 */
int arguments_take(const struct signature *signature, PyObject *const *arguments, Py_ssize_t count,
                   PyObject *keywords, PyObject *taken[2]);

/* The same for more of them, with NumPy's axis and keepdims for dim and keepdim. Those that are left out are NULL. */
enum {
    CALL_ARGUMENTS_MOST = 4,
};

struct call {
    const char *name;
    const char *names[CALL_ARGUMENTS_MOST];
    int count;    /* of them */
    int by_place; /* those that need no name */
    int required; /* those that must be given */
};

int call_take(const struct call *call, PyObject *const *arguments, Py_ssize_t count,
              PyObject *keywords, PyObject *taken[CALL_ARGUMENTS_MOST]);

/* ---- genesis.device: python_device.c -------------------------------------------------------- */

int device_class_init(PyObject *module, struct module_state *state);

/*
 * A device from None (the current CUDA device), an int (a CUDA index), a str or a genesis.device.
 * Only the second form starts the device.
 */
int device_name_from_python(struct module_state *state, PyObject *object, gn_device_type *type,
                            int *index);
int device_from_python(struct module_state *state, PyObject *object, gn_device **device);

/* The device of new tensors: that of the innermost `with device:` of this thread, or of all threads. */
void device_default(const struct module_state *state, gn_device_type *type, int *index);

/* The device of a new tensor: None is the default one. */
int device_of_new(struct module_state *state, PyObject *object, gn_device **device);

PyObject *device_to_python(struct module_state *state, gn_device_type type, int index);

/* ---- streams and events: python_stream.c ---------------------------------------------------- */

int stream_classes_init(PyObject *module, struct module_state *state);

/* A stream from None (the current one of `device`) or a Stream. Borrowed. */
int stream_from_python(struct module_state *state, PyObject *object, gn_device *device,
                       gn_stream **stream);

/* ---- memory managers: python_memory.c ------------------------------------------------------- */

struct manager_object {
    PyObject_HEAD struct manager_entry *entry;
    gn_memory_manager *manager; /* the entry's */
    struct module_state *state; /* as module_state_of_object(), which is slow in subclasses */
};

struct manager_object *manager_of(PyObject *object);

/* To be called when a manager's configuration may have changed. */
void manager_entry_refresh(struct manager_entry *entry);

int manager_class_init(PyObject *module, struct module_state *state);

/* A size, fast for plain ints; otherwise as size_from_python(). */
int size_take(PyObject *object, const char *what, size_t *size);

/* A number of bytes: the same, or a text such as "2GB". */
int nbytes_take(PyObject *object, const char *what, size_t *size);

/* A stream of the manager; None is NULL: the library finds the thread's current one itself. */
int stream_take(struct module_state *state, gn_memory_manager *manager, PyObject *object,
                gn_stream **stream);

/* The methods for many blocks and for giving back: python_memory_batch.c. */
PyObject *manager_allocate_batch(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                 PyObject *keywords);
PyObject *manager_warmup_cache(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                               PyObject *keywords);
PyObject *manager_allocate_async(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                                 PyObject *keywords);
PyObject *manager_collect(PyObject *self, PyObject *unused);
PyObject *manager_coalesce(PyObject *self, PyObject *unused);
PyObject *manager_trim(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                       PyObject *keywords);
PyObject *manager_reset_peaks(PyObject *self, PyObject *unused);

/* The methods that look and configure: python_memory_views.c. */
PyObject *manager_statistics(PyObject *self, PyObject *unused);
PyObject *manager_classes(PyObject *self, PyObject *unused);
PyObject *manager_blocks(PyObject *self, PyObject *unused);
PyObject *manager_get_config(PyObject *self, PyObject *unused);
PyObject *manager_set_config(PyObject *self, PyObject *arguments, PyObject *keywords);
PyObject *manager_compact(PyObject *self, PyObject *unused);

/* The history of events: python_history.c. */
extern PyMethodDef history_functions[];
extern PyMethodDef profile_functions[];
void history_init(PyObject *module);

/* ---- pickles of others: python_pickle.c ----------------------------------------------------- */

int pickle_init(PyObject *module);

/* ---- memory of other processes: python_shared_memory.c --------------------------------------- */

int shared_memory_init(PyObject *module);

/* ---- kernels: python_kernel.c --------------------------------------------------------------- */

int kernel_class_init(PyObject *module);

/* ---- dtypes: python_dtype.c ------------------------------------------------------------------ */

int dtype_class_init(PyObject *module, struct module_state *state);
PyObject *dtype_to_python(struct module_state *state, gn_dtype dtype);

/* _dtype_advice(): which types there are, and which one has the numbers of one that is not there. */
PyObject *dtype_advice(PyObject *module, PyObject *name);

/* Whether it means a dtype, as dtype_from_python() takes it; no exception is set but an interrupt. */
bool dtype_is_word(struct module_state *state, PyObject *object);

/* A dtype, its name, or one of Python's own types; TypeError otherwise. No exception may be on its way. */
int dtype_from_python(struct module_state *state, PyObject *object, gn_dtype *dtype);

/* The letter of the struct module; NULL where there is none. And back, with the size in bytes. */
const char *dtype_format(gn_dtype dtype);
int dtype_from_format(const char *format, Py_ssize_t size, gn_dtype *dtype);

/* ---- tensors: python_tensor.c ---------------------------------------------------------------- */

struct tensor_object {
    PyObject_HEAD gn_tensor *tensor;
    struct module_state *state; /* as module_state_of_object(), which takes three calls */
    PyObject *weak;             /* weak references to it; NULL: none */
    PyObject *apart;            /* in a room without a Tensor: that of a subclass, borrowed */
};

_Static_assert(sizeof(struct tensor_object) <= GN_TENSOR_ROOM, "a Tensor lies in its gn_tensor");

int tensor_class_init(PyObject *module, struct module_state *state);
int methods_add(PyObject *class, PyMethodDef *methods);

static inline gn_tensor *tensor_of(PyObject *object)
{
    return ((struct tensor_object *)object)->tensor;
}

static inline struct module_state *tensor_state(PyObject *object)
{
    return ((struct tensor_object *)object)->state;
}

static inline bool tensor_check(const struct module_state *state, PyObject *object)
{
    PyTypeObject *class = Py_TYPE(object), *base = (PyTypeObject *)state->tensor_class;
    return class == base || class == (PyTypeObject *)state->parameter_class ||
           PyType_IsSubtype(class, base);
}

/* A view with two dimensions exchanged: python_tensor_views.c. */
PyObject *tensor_transposed(PyObject *self, int first, int second);

/* Takes over a reference: to a new tensor, since a second Tensor of one cannot be. */
PyObject *tensor_to_python(struct module_state *state, gn_tensor *tensor);

/* The same for a tensor that may have a Tensor: a new reference to that. */
PyObject *tensor_find_python(struct module_state *state, gn_tensor *tensor);

/* The result of a call, or its exception. */
PyObject *tensor_or_raise(struct module_state *state, gn_status status, gn_tensor *tensor);

/* The same, of a function that was called by this name. */
PyObject *tensor_or_raise_in(struct module_state *state, const char *function, gn_status status,
                             gn_tensor *tensor);

/* A result, copied into `out`, which must have its shape, and a type that can hold it; takes over the reference. */
PyObject *result_into(struct module_state *state, const char *name, gn_tensor *result,
                      PyObject *out);

/* An int of Python's, which int64 or uint64 must have. */
int integer_from_python(PyObject *object, gn_scalar *number);

/* A Tensor, or a number of Python's: 1; anything else: 0; -1 with an exception. Borrowed. */
int operand_from_python(struct module_state *state, PyObject *object, gn_operand *operand);

/*
 * The same for a function of this name, with arrays of others, for which a tensor is made on the device of the first
 * tensor among `objects` (entries may be NULL): a new reference in `made`, or NULL. -1 with an exception.
 */
int operand_take(struct module_state *state, const char *name, PyObject *object,
                 PyObject *const *objects, int count, gn_operand *operand, PyObject **made);

/* Whether the exception says that an operand's owner does not give it away, as a tensor that needs gradients: then it is
 * cleared, and the owner is asked to compute. */
bool operand_is_kept(void);

/* A shape from arguments: integers, or one sequence of them. */
int shape_from_python(PyObject *const *arguments, Py_ssize_t count, int64_t *sizes, int *ndim);

/* A dimension that was given (NULL: `dim` stays as it is). What no tensor has is refused, the rest by the library. */
int dim_take(const char *name, PyObject *given, int *dim);

/* Integers, such as dimensions, from an int or a sequence. */
int integers_from_python(PyObject *object, const char *what, int64_t *values, int most, int *count);
PyObject *integers_to_python(const int64_t *values, int count);

/* Elementwise operations: python_tensor_ops.c. Indexing: python_tensor_index.c. Creation:
 * python_tensor_make.c. */
extern PyMethodDef tensor_op_methods[];
extern PyMethodDef tensor_op_functions[];
extern PyType_Slot tensor_number_slots[];
PyObject *elementwise_call(struct module_state *state, const char *name, gn_op op,
                           PyObject *const *objects, int arity, PyObject *out);
extern PyMethodDef tensor_make_functions[];
extern PyMethodDef tensor_make_methods[];
extern PyMethodDef tensor_create_functions[];
extern PyMethodDef tensor_reduction_methods[]; /* python_tensor_reduce.c */
extern PyMethodDef tensor_reduction_functions[];
extern PyMethodDef tensor_view_methods[];    /* python_tensor_views.c */
extern PyMethodDef tensor_product_methods[]; /* python_tensor_products.c */
extern PyMethodDef tensor_product_functions[];
PyObject *tensor_matmul(PyObject *a, PyObject *b);

/* Tells the library where the OpenBLAS of this Python environment is, once, before it looks for one. */
int blas_name(struct module_state *state);
extern PyMethodDef tensor_index_functions[];
int pair_class_init(struct module_state *state);

/* Functions that are made of others, from their table: python_function.c. */
int functions_init(PyObject *module, struct module_state *state);
/* The row of a name, aliases among them; NULL: there is none. */
const gn_function *function_find(const char *name);
PyObject *function_names(void); /* a new list of the names of functions, aliases among them */

/* A tensor on another device, as a new reference; itself where it is there. */
PyObject *tensor_move(PyObject *self, gn_device *device);

/* A tensor of the CPU, which `place` must be, whose elements are not set: page-locked where there is a CUDA device. */
PyObject *tensor_pinned(struct module_state *state, gn_dtype dtype, int ndim, const int64_t *sizes,
                        gn_device *place);

/* Devices, page-locked memory, streams: python_tensor_place.c. */
extern PyMethodDef tensor_place_methods[];
extern PyMethodDef tensor_place_functions[];

/* Random numbers: python_random.c. */
extern PyMethodDef random_functions[];

/* The numbers of one call, from a Generator, or from the default one for None. */
int generator_take(struct module_state *state, PyObject *object, gn_generator *taken);
int random_init(PyObject *module, struct module_state *state);

/* A call needed no numbers of those that it took: the next call gets them, unless another one took some since. */
void generator_give_back(struct module_state *state, PyObject *object, const gn_generator *taken);

/* The parts of a key from a tuple of them, until key_free(), which takes NULL, too. */
struct key *key_make(struct module_state *state, PyObject *tuple, const gn_key **parts, int *count);
void key_free(struct key *key);

/* A tensor of something that has elements, to be written by a key; a new reference. */
PyObject *value_take(struct module_state *state, PyObject *object);

PyObject *tensor_get_index(PyObject *self, PyObject *key);
int tensor_set_index(PyObject *self, PyObject *key, PyObject *value);

/* What tensor() and, without a copy, as_tensor() give: `dtype` and `place`, a device, may be NULL. */
PyObject *tensor_make(struct module_state *state, PyObject *data, PyObject *dtype, PyObject *place,
                      bool is_copied);

/* What the class Tensor makes when it is called: of sizes, or of one sequence, array or tensor. */
PyObject *tensor_of_call(struct module_state *state, PyObject *arguments, PyObject *keywords);

PyObject *tensor_from_data(struct module_state *state, PyObject *data, PyObject *dtype,
                           bool is_copied);

/* The same for what is only read: an array of a type that there is not comes as the nearest one. */
PyObject *tensor_from_value(struct module_state *state, PyObject *data);

/* DLPack: python_dlpack.c. `device` and `copy` may be None. */
extern PyMethodDef tensor_dlpack_functions[];
int tensor_dlpack_init(PyObject *class);
PyObject *tensor_from_dlpack(struct module_state *state, PyObject *object, PyObject *device,
                             PyObject *copy);
bool dlpack_is_on_gpu(PyObject *object);

/* __cuda_array_interface__: python_cuda_array.c. The descriptor of the class, and the tensor of an object that has
 * one. */
PyObject *cuda_array_property(PyObject *class);
PyObject *tensor_from_cuda_array(struct module_state *state, PyObject *object);

/* What an object's __cuda_array_interface__ says of its elements; false, without an exception, where it says nothing that
 * there is a dtype for. */
bool cuda_array_look(PyObject *object, gn_dtype *dtype, bool *is_contiguous);

/* Modules of genesis.nn: python_modules.c. */
extern PyMethodDef tensor_subclass_functions[];
int modules_init(PyObject *module);

/* Other protocols: python_interop.c. Whether an object has elements that only they give, and these, shared. Memory of a
 * GPU comes by DLPack or __cuda_array_interface__ whatever else its owner has: the buffer protocol is for the CPU. */
int tensor_interop_init(PyObject *class);
bool is_on_gpu(struct module_state *state, PyObject *object);
bool has_buffer(struct module_state *state, PyObject *object);
bool is_foreign(PyObject *object);
PyObject *tensor_from_foreign(struct module_state *state, PyObject *object, PyObject *device);

/* ---- gradients: python_autograd.c ------------------------------------------------------------ */

extern PyMethodDef autograd_functions[];
int autograd_init(PyObject *module, struct module_state *state);
int graph_nodes_init(PyObject *module, struct module_state *state);
int hooks_init(PyObject *module, struct module_state *state);

/* Raises the exception that a hook of this thread has ended with, if there is one. */
bool hook_exception_restore(void);

/* Raises what fits a status of a function of gradients: a RuntimeError for wrong values. NULL. */
PyObject *gradient_raise(const struct module_state *state, const char *function, gn_status status);

/* -1 with a RuntimeError where the tensor requires a gradient: its memory is not for others then. */
int gradient_refuse(PyObject *self, const char *function);

/* Takes over a new Tensor, or NULL, and asks for its gradient if that is required. NULL with an exception. */
PyObject *gradient_request(PyObject *made, bool is_required);

/* out= takes no part in gradients: refuses it where `out`, or one of `objects` (tensors, lists of them, others, or NULL)
 * needs one. -1 with an exception; nothing is refused where out is NULL or None. */
int out_refuse(struct module_state *state, const char *name, PyObject *const *objects, int count,
               PyObject *out);

/* A new tensor of the same memory that requires no gradient. */
PyObject *tensor_detach(PyObject *self);

/* List programs: python_list.c. */
extern PyMethodDef list_functions[];
extern PyMethodDef optim_functions[]; /* python_optim.c */

/* memory_format=: python_tensor_format.c. `*format` stays where none is given. */
int format_from_python(struct module_state *state, const char *name, PyObject *object,
                       gn_memory_format *format);
int format_argument(PyObject *self, const char *name, PyObject *const *arguments, Py_ssize_t count,
                    PyObject *keywords, gn_memory_format *format);
/* The tensor itself if it has the format and need not be copied, else a copy. */
PyObject *tensor_with_format(PyObject *self, gn_memory_format format, bool is_copied);

/* Autocast: python_autocast.c. */
extern PyMethodDef autocast_functions[];

/* Captured graphs: python_graph.c. */
int graph_class_init(PyObject *module);

/* Requests, blocks by handle and graph pools: python_memory_objects.c. */
int memory_classes_init(PyObject *module, struct module_state *state);
PyObject *request_to_python(struct module_state *state, gn_memory_request *request);
PyObject *block_to_python(struct module_state *state, gn_memory_block *block, bool is_host);

#endif
