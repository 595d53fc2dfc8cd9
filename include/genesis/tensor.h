/*
 * genesis/tensor.h: tensors: typed, strided views of storage.
 *
 *   storage   bytes of a device, counted by references: our own, or somebody else's with a deleter
 *   tensor    a view of a storage: dtype, shape, strides (in elements), offset; counted by references.
 *             The result of an elementwise operation may be pending: its bytes are computed when
 *             somebody needs them, which nobody can tell but by the clock
 *   scalar    one number with its kind, as operations take it
 *
 * Ownership: a function that gives a tensor through its last argument gives a reference, which the
 * caller returns with gn_tensor_release(). Arguments are borrowed.
 *
 * Threads: a tensor may be used by several threads at once as long as none writes to it; references may
 * be taken and returned by any thread at any time.
 */
#ifndef GENESIS_TENSOR_H
#define GENESIS_TENSOR_H

#include "genesis/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The types of elements, one row for each: ROW(enumerator, number, name, kind, bits). The numbers are part of the ABI:
 * append, never renumber. The kinds are BOOL, UINT, INT, FLOAT and BFLOAT.
 */
#define GN_DTYPE_LIST(ROW)                   \
    ROW(BOOL, 0, "bool", BOOL, 8)            \
    ROW(UINT8, 1, "uint8", UINT, 8)          \
    ROW(INT8, 2, "int8", INT, 8)             \
    ROW(INT16, 3, "int16", INT, 16)          \
    ROW(INT32, 4, "int32", INT, 32)          \
    ROW(INT64, 5, "int64", INT, 64)          \
    ROW(FLOAT16, 6, "float16", FLOAT, 16)    \
    ROW(BFLOAT16, 7, "bfloat16", BFLOAT, 16) \
    ROW(FLOAT32, 8, "float32", FLOAT, 32)    \
    ROW(FLOAT64, 9, "float64", FLOAT, 64)    \
    ROW(UINT16, 10, "uint16", UINT, 16)      \
    ROW(UINT32, 11, "uint32", UINT, 32)      \
    ROW(UINT64, 12, "uint64", UINT, 64)

typedef enum gn_dtype {
#define GN_DTYPE_ROW(NAME, number, name, kind, bits) GN_##NAME = number,
    GN_DTYPE_LIST(GN_DTYPE_ROW)
#undef GN_DTYPE_ROW
    GN_DTYPE_COUNT = 13,
} gn_dtype;

enum {
    GN_DIMENSIONS_MAX = 16,
    GN_TENSOR_ROOM = 48,
};

typedef struct gn_tensor gn_tensor;

/* "float32"; NULL for no dtype. Static memory. */
GN_API const char *gn_dtype_name(gn_dtype dtype);

/* For messages about a type that there is not, such as "complex64": which there are, and what to use instead. The end
 * of a sentence, in static memory. */
GN_API const char *gn_dtype_advice(const char *name);

/* The smallest type that has the numbers of both; both are valid. GN_DTYPE_COUNT for uint64 and a signed integer, which
 * have none. */
GN_API gn_dtype gn_dtype_promote(gn_dtype a, gn_dtype b);

/* Bytes of an element; 0 for no dtype. */
GN_API size_t gn_dtype_size(gn_dtype dtype);

/* Whether it has fractions, and whether it is an unsigned integer. */
GN_API bool gn_dtype_is_floating(gn_dtype dtype);
GN_API bool gn_dtype_is_unsigned(gn_dtype dtype);

/* The floating type of new tensors for which none is named, of floating numbers beside integers, and of integers where
 * an operation needs floating numbers. At first float32. Of the whole process; any thread. */
GN_API gn_dtype gn_get_default_dtype(void);
GN_API gn_status gn_set_default_dtype(gn_dtype dtype) GN_NODISCARD;

/* A number: of kind GN_BOOL or GN_INT64 in `integer`, of kind GN_FLOAT64 in `floating`. What int64 has not, from 2^63 to
 * 2^64 - 1, is of kind GN_UINT64: `integer` has its bits. */
typedef struct gn_scalar {
    gn_dtype kind;
    int64_t integer;
    double floating;
} gn_scalar;

/* ---- life ------------------------------------------------------------------------------------ */

/* A tensor without content, contiguous. GN_ERROR_SHAPE for a shape that cannot be. */
GN_API gn_status gn_tensor_create(gn_dtype dtype, int dimensions, const int64_t *shape,
                                  gn_device *device, gn_tensor **tensor) GN_NODISCARD;

/* The same on the CPU, in page-locked memory that a CUDA device reads and writes directly. */
GN_API gn_status gn_tensor_create_pinned(gn_dtype dtype, int dimensions, const int64_t *shape,
                                         gn_device *device, gn_tensor **tensor) GN_NODISCARD;

/* From now on the memory of all new CPU tensors is page-locked for a CUDA device, where such memory can be had; NULL:
 * it is ordinary again. */
GN_API gn_status gn_tensor_set_pinned(gn_device *device) GN_NODISCARD;

/*
 * A tensor over memory that somebody else owns. `strides` in elements, may be negative or 0, and NULL for
 * contiguous; every element must lie in that memory. `deleter` (may be NULL) is called once, from any thread,
 * when the last view has gone; not if this call fails. Others may write to the memory at any time between calls.
 */
GN_API gn_status gn_tensor_from_memory(void *data, gn_dtype dtype, int dimensions,
                                       const int64_t *shape, const int64_t *strides,
                                       gn_device *device, bool is_read_only,
                                       void (*deleter)(void *context), void *context,
                                       gn_tensor **tensor) GN_NODISCARD;

GN_API void gn_tensor_retain(gn_tensor *tensor);
GN_API void gn_tensor_release(gn_tensor *tensor); /* NULL is allowed */

/*
 * GN_TENSOR_ROOM bytes within the tensor, aligned for anything, that go when it goes: for the object of another language
 * that holds a reference to it, and then needs no memory of its own. Given once in the life of a tensor, afterwards
 * NULL; of several callers one at a time.
 */
GN_API void *gn_tensor_take_room(gn_tensor *tensor);

/* The same bytes after they were given; NULL before. */
GN_API void *gn_tensor_get_room(gn_tensor *tensor);

/* ---- what it is ------------------------------------------------------------------------------ */

GN_API gn_dtype gn_tensor_get_dtype(const gn_tensor *tensor);
GN_API gn_device *gn_tensor_get_device(const gn_tensor *tensor);
GN_API int gn_tensor_get_dimensions(const gn_tensor *tensor);

/* Borrowed: as long as the tensor. */
GN_API const int64_t *gn_tensor_get_shape(const gn_tensor *tensor);
GN_API const int64_t *gn_tensor_get_strides(const gn_tensor *tensor);

/* The elements, and where the first one lies in its storage, in elements. */
GN_API int64_t gn_tensor_get_count(const gn_tensor *tensor);
GN_API int64_t gn_tensor_get_offset(const gn_tensor *tensor);
GN_API bool gn_tensor_is_contiguous(const gn_tensor *tensor);
GN_API bool gn_tensor_is_read_only(const gn_tensor *tensor);

/* Whether its memory is page-locked memory of ours, with everything computed that was pending there. */
GN_API gn_status gn_tensor_is_pinned(gn_tensor *tensor, bool *is_pinned) GN_NODISCARD;

/* Whether both look at one storage. A pending result has none of its own yet. */
GN_API bool gn_tensor_shares_storage(const gn_tensor *a, const gn_tensor *b);

/* Where the storage begins, for whoever only compares: nothing is computed for it. NULL for a pending result. */
GN_API const void *gn_tensor_peek_storage(const gn_tensor *tensor);

/* How often the storage was written to in place. */
GN_API uint64_t gn_tensor_get_version(const gn_tensor *tensor);

/*
 * The address of the first element, with everything computed that was pending there. From then on the storage
 * counts as known to others: operations that read or write it are submitted before they return. On a GPU what is
 * submitted to the calling thread's current stream from now on may use it.
 */
GN_API gn_status gn_tensor_get_data(gn_tensor *tensor, void **data) GN_NODISCARD;

/*
 * Says that work on another stream uses the tensor's memory, which then goes to nobody else before that work is done
 * (genesis/memory.h). Nothing happens where the memory is somebody else's.
 */
GN_API gn_status gn_tensor_record_stream(gn_tensor *tensor, gn_stream *stream) GN_NODISCARD;

/* The element of a tensor that has one, if it is in the host's memory and nothing needs to be computed or waited for;
 * else false. */
GN_API bool gn_tensor_peek_item(const gn_tensor *tensor, gn_scalar *item);

/* Reads one element. */
GN_API gn_status gn_tensor_get_item(gn_tensor *tensor, const int64_t *index,
                                    gn_scalar *item) GN_NODISCARD;

/*
 * The same elements on another device; the tensor itself, with a reference, if it is there already. In the order of
 * the GPU's current stream; a copy to the CPU has arrived when the call returns.
 */
GN_API gn_status gn_tensor_to(gn_tensor *tensor, gn_device *device,
                              gn_tensor **result) GN_NODISCARD;

/* ---- views: no element is copied ------------------------------------------------------------- */

/* The same elements, or GN_ERROR_SHAPE where the strides do not allow that shape. One -1 is worked out. */
GN_API gn_status gn_tensor_view(gn_tensor *tensor, int dimensions, const int64_t *shape,
                                gn_tensor **view) GN_NODISCARD;

/* As above, with a copy where there must be one. */
GN_API gn_status gn_tensor_reshape(gn_tensor *tensor, int dimensions, const int64_t *shape,
                                   gn_tensor **result) GN_NODISCARD;

/*
 * Any sizes and strides (in elements, also negative or 0) from an offset into the storage, in elements. Every element
 * must lie in the storage; in memory of somebody else's, between the first and the last that the tensor reaches.
 */
GN_API gn_status gn_tensor_as_strided(gn_tensor *tensor, int dimensions, const int64_t *shape,
                                      const int64_t *strides, int64_t offset,
                                      gn_tensor **view) GN_NODISCARD;

/*
 * The same bytes as elements of another type. Where their sizes differ, so does that of the last dimension, whose
 * elements must lie side by side, and in whole groups of the larger type.
 */
GN_API gn_status gn_tensor_view_as_dtype(gn_tensor *tensor, gn_dtype dtype,
                                         gn_tensor **view) GN_NODISCARD;

/* All of the storage as one dimension, as far as it has whole elements of the dtype. Of memory of others, what lies
 * between the tensor's first and last element. */
GN_API gn_status gn_tensor_view_storage(gn_tensor *tensor, gn_dtype dtype,
                                        gn_tensor **view) GN_NODISCARD;

/*
 * The tensor becomes what another one of its dtype and device is: it has that one's storage, shape, strides and offset
 * from now on. Its own value is computed before. Its memory cannot be exchanged for another once somebody outside
 * knows the address (gn_tensor_get_data()). No other thread may use the tensor meanwhile.
 */
GN_API gn_status gn_tensor_become(gn_tensor *tensor, gn_tensor *other) GN_NODISCARD;

/*
 * The same for another one of any dtype, on any device. A leaf that needs a gradient goes on to need one, of the new dtype,
 * device and sizes, and must have none yet where these change; the number of its dimensions stays. Whoever has the address
 * of the memory that it had must keep that alive by another tensor: gn_tensor_detach().
 */
GN_API gn_status gn_tensor_set_data(gn_tensor *tensor, gn_tensor *other) GN_NODISCARD;

/* Dimension i of the view is dimension order[i]. */
GN_API gn_status gn_tensor_permute(gn_tensor *tensor, const int *order,
                                   gn_tensor **view) GN_NODISCARD;

/* Dimensions of 1 are repeated, new ones put in front; -1 keeps a size. */
GN_API gn_status gn_tensor_expand(gn_tensor *tensor, int dimensions, const int64_t *shape,
                                  gn_tensor **view) GN_NODISCARD;

/* Every step-th element of a dimension from `start`, `count` of them; the step may be negative. */
GN_API gn_status gn_tensor_slice(gn_tensor *tensor, int dimension, int64_t start, int64_t step,
                                 int64_t count, gn_tensor **view) GN_NODISCARD;

/* One index of a dimension, which goes. */
GN_API gn_status gn_tensor_select(gn_tensor *tensor, int dimension, int64_t index,
                                  gn_tensor **view) GN_NODISCARD;

/* A new dimension of 1 before `dimension`; and one of 1 taken out. */
GN_API gn_status gn_tensor_unsqueeze(gn_tensor *tensor, int dimension,
                                     gn_tensor **view) GN_NODISCARD;
GN_API gn_status gn_tensor_squeeze(gn_tensor *tensor, int dimension, gn_tensor **view) GN_NODISCARD;

#ifdef __cplusplus
}
#endif

#endif
