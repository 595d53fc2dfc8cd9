/*
 * genesis/index.h: elements by their places: keys as NumPy has them, and gathering, scattering and searching as
 * PyTorch has it.
 *
 * A key is a sequence of parts. Integers, slices, new axes and an ellipsis make a view. With index tensors or masks
 * among them (integers count as such then) the elements are gathered into a new tensor, or scattered into the one
 * that is there: the dimensions of the index tensors, broadcast together, stand where the first of them stood, or
 * in front if a slice, a new axis or an ellipsis lies between two of them.
 *
 * Everything is checked before anything is written. Where one place is written twice the last one wins, in row-major
 * order; sums are added up in that order.
 *
 * On a GPU the numbers of index tensors are checked by the kernel: nothing outside is read or written, elements that
 * are read there are 0, and the call succeeds; the error comes with the next read by the host, or gn_index_check().
 * Where one place is written twice any one of the values stays, and sums are added up in any order.
 *
 * Failures: GN_ERROR_INDEX (out of range, shapes of a key that do not fit), GN_ERROR_SHAPE (a value that does not
 * fit), GN_ERROR_TYPE, GN_ERROR_OUT_OF_MEMORY, GN_ERROR_INVALID_VALUE (two devices, a read-only tensor).
 */
#ifndef GENESIS_INDEX_H
#define GENESIS_INDEX_H

#include "genesis/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gn_key_kind {
    GN_KEY_INTEGER = 0, /* `start`; counted from the end if negative */
    GN_KEY_SLICE = 1,   /* from `start` to before `stop` in steps of `step`, cut to the dimension */
    GN_KEY_NEW_AXIS = 2, /* a dimension of 1 */
    GN_KEY_ELLIPSIS = 3, /* all dimensions that the others do not name; once */
    GN_KEY_TENSOR =
        4, /* `tensor`, of integers, or a mask: of bool, over as many dimensions as it has */
    GN_KEY_BOOL = 5, /* `start`: a mask over no dimension: a new one of 1, or of 0 if it is false */
} gn_key_kind;

/* A part of a key. "All of a dimension" is a slice from 0 to INT64_MAX in steps of 1. The tensor is borrowed. */
typedef struct gn_key {
    gn_key_kind kind;
    int64_t start, stop, step;
    gn_tensor *tensor;
} gn_key;

enum {
    GN_KEYS_MAX = 64, /* parts of a key */
};

typedef enum gn_index_kind {
    GN_INDEX_VIEW = 0,    /* reading: nothing is copied */
    GN_INDEX_GATHER = 1,  /* reading: elements are collected into a new tensor */
    GN_INDEX_SCATTER = 2, /* writing: elements are spread over places */
    GN_INDEX_COPY = 3,    /* writing: a view takes over the elements of a tensor */
    GN_INDEX_FILL = 4,    /* writing: a view takes over one number */
} gn_index_kind;

/* What a key comes to, before it is carried out. */
typedef struct gn_index_info {
    gn_index_kind kind;
    int dimensions;
    int64_t shape[GN_DIMENSIONS_MAX];   /* of the result, or of what is written */
    int64_t strides[GN_DIMENSIONS_MAX]; /* in elements: of the view, or of the new tensor */
    int64_t offset_bytes;       /* from the tensor's first element to the first that slices leave */
    bool needs_mask_compaction; /* there is a mask: which elements are meant depends on its bytes */
    size_t temp_bytes;          /* memory that is needed for the time of the call */
} gn_index_info;

/* tensor[keys]: a view, or a new tensor. */
GN_API gn_status gn_index_get(gn_tensor *tensor, int count, const gn_key *keys,
                              gn_tensor **result) GN_NODISCARD;

/* The same where it is a view that can be had at once, without waiting for anything. NULL where it is none, where the key
 * is wrong, and of a pending tensor or one that needs a gradient: gn_index_get() does the rest, and says what is wrong. */
GN_API gn_status gn_index_view(gn_tensor *tensor, int count, const gn_key *keys,
                               gn_tensor **view) GN_NODISCARD;

/* tensor[keys] = value, which is converted and broadcast; or += where every occurrence of a place counts. */
GN_API gn_status gn_index_set(gn_tensor *tensor, int count, const gn_key *keys, gn_operand value,
                              bool is_accumulated) GN_NODISCARD;

/* What one of the two would do. `value` (NULL for reading) is looked at for its kind and type only. */
GN_API gn_status gn_index_describe(gn_tensor *tensor, int count, const gn_key *keys,
                                   const gn_operand *value, gn_index_info *info) GN_NODISCARD;

/* The places that a key means, as int64 of one dimension: their numbers in the tensor in row-major order. */
GN_API gn_status gn_index_positions(gn_tensor *tensor, int count, const gn_key *keys,
                                    gn_tensor **result) GN_NODISCARD;

/*
 * Fails with GN_ERROR_INDEX if a number of an index tensor on a GPU was out of range: once, and for work that has been
 * waited for. To be asked after a synchronisation; reading elements on the host asks by itself.
 */
GN_API gn_status gn_index_check(gn_device *device) GN_NODISCARD;

/* ---- along one dimension: an index is from 0 to the size of the dimension ----------------------- */

/* result[i][j] = tensor[index[i][j]][j] for dimension 0, and so on; the result has the shape of the index. */
GN_API gn_status gn_gather(gn_tensor *tensor, int dimension, gn_tensor *index,
                           gn_tensor **result) GN_NODISCARD;

/* tensor[index[i][j]][j] = value[i][j] for dimension 0, and so on; or +=. The value has at least the index's sizes,
 * or is a number. */
GN_API gn_status gn_scatter(gn_tensor *tensor, int dimension, gn_tensor *index, gn_operand value,
                            bool is_accumulated) GN_NODISCARD;

/* The slices that an index of at most one dimension names, in its order; and the same as a target. */
GN_API gn_status gn_index_select(gn_tensor *tensor, int dimension, gn_tensor *index,
                                 gn_tensor **result) GN_NODISCARD;
GN_API gn_status gn_index_put(gn_tensor *tensor, int dimension, gn_tensor *index, gn_operand value,
                              bool is_accumulated) GN_NODISCARD;

/* ---- of all elements --------------------------------------------------------------------------- */

/* Elements by their number in row-major order, counted from the end if negative; the shape of the index. */
GN_API gn_status gn_take(gn_tensor *tensor, gn_tensor *index, gn_tensor **result) GN_NODISCARD;

/* The elements for which a mask is true, the two broadcast together. */
GN_API gn_status gn_masked_select(gn_tensor *tensor, gn_tensor *mask,
                                  gn_tensor **result) GN_NODISCARD;

/* The places of the elements that are not 0, in row-major order: int64, a row of coordinates for each. */
GN_API gn_status gn_nonzero(gn_tensor *tensor, gn_tensor **result) GN_NODISCARD;

/*
 * Where each value would have to be put in for the sequence, ascending along its last dimension, to stay so: before
 * those equal to it, or after them (`is_right`). The sequence has one dimension, or the leading ones of `values`.
 * int64; NaN counts as the largest.
 */
GN_API gn_status gn_searchsorted(gn_tensor *sequence, gn_tensor *values, bool is_right,
                                 gn_tensor **result) GN_NODISCARD;

/* How often each number from 0 on occurs in integers of one dimension, at least for `minimum` numbers: int64; with
 * weights (may be NULL) the sum of these, in their type if that is floating, otherwise float64. */
GN_API gn_status gn_bincount(gn_tensor *tensor, gn_tensor *weights, int64_t minimum,
                             gn_tensor **result) GN_NODISCARD;

#ifdef __cplusplus
}
#endif

#endif
