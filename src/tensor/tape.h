/*
 * tape.h: where operations tell automatic differentiation what they have done.
 *
 * A tensor that needs a gradient has a record, gn_tensor.gradient. An operation that is given one is *taped*: it pauses
 * the tape for its own work, and tells it afterwards which operation gave which results. What is below src/autograd
 * knows nothing else about gradients.
 *
 *     bool is_taped = gni_tape_enter(tensor);
 *     gn_status status = flip(tensor, dims, result);
 *     if (!is_taped)
 *         return status;
 *     return gni_tape_leave(status, &(struct gni_tape_step){GNI_RULE_FLIP, ...});
 *
 * An operation that is made of taped ones does nothing: its parts are on the tape.
 *
 * Views are *aliases* of the tensor that they are made of. Writing to one of them on the tape changes what made all of
 * them: an alias set knows what that is, and how often it has changed. A tensor whose record is older than its alias set
 * gets a new record when it is used the next time. A detached tensor is apart: it is no alias of what it was detached from,
 * and has an alias set of its own once it has views. src/autograd/alias_sets.c
 *
 * Invariants:
 *   TA1 a tensor has a record only if its type is floating;
 *   TA2 the tape is paused in every operation between enter and leave, and nowhere else but by gn_set_gradients();
 *   TA3 a storage has an alias set if one of its tensors is, or was, a view that is on the tape;
 *   TA4 a gradient that is kept lies in the record. A tensor without a record keeps its gradient in idle_gradient: what
 *       it had when it stopped to require one, or was given since. It goes into the record that the tensor gets as a leaf.
 *
 * Threads: the pause is the calling thread's own.
 */
#ifndef GNI_TENSOR_TAPE_H
#define GNI_TENSOR_TAPE_H

#include "tensor/tensor.h"

#include "base/lock.h"
#include "genesis/index.h"

/* The rules for gradients, by the operation that they belong to: src/autograd/rules_*.c. */
enum gni_rule {
    GNI_RULE_ACCUMULATE,  /* no operation: the gradient of a leaf is kept */
    GNI_RULE_ELEMENTWISE, /* struct gni_elementwise_details */
    GNI_RULE_CAST,        /* none; also a copy to another device */
    GNI_RULE_RESHAPE,     /* none: the same elements in the same order, in another shape */
    GNI_RULE_PERMUTE,     /* int order[ndim] */
    GNI_RULE_EXPAND,      /* none */
    GNI_RULE_STRIDED,     /* struct gni_strided_details: some elements of a tensor, as a view */
    GNI_RULE_SPREAD,      /* the same: a tensor of 0 but for these elements, which the input has */
    GNI_RULE_STRIDED_PUT, /* the same: elements of the first input take over the second one */
    GNI_RULE_FLIP,        /* uint32_t dimensions */
    GNI_RULE_REDUCE,      /* struct gni_reduce_details */
    GNI_RULE_KTH,         /* none: an element by its rank */
    GNI_RULE_SOFTMAX,     /* struct gni_softmax_details */
    GNI_RULE_CAT,         /* int64_t: the dimension, and the size of each input in it */
    GNI_RULE_PARTS, /* struct gni_parts_details: a tensor, or a sum of two, cut up; the results are all of it */
    GNI_RULE_MATMUL,   /* none */
    GNI_RULE_REPEAT,   /* struct gni_repeat_details */
    GNI_RULE_CUMULATE, /* struct gni_cumulate_details */
    GNI_RULE_PLACES,   /* struct gni_places_details: elements by index tensors, the other inputs */
    GNI_RULE_PLACES_BACK, /* the same: a tensor of 0 to which the elements are added */
    GNI_RULE_PUT,         /* the same: places of the first input take over the second one */
    GNI_RULE_FOLD, /* struct gni_fold_details: rows, values and places; the largest or the smallest */
    GNI_RULE_ROW_SUMS,    /* none: a matrix, factors or a number, and which row goes to which */
    GNI_RULE_CONVOLUTION, /* struct gni_convolution */
    GNI_RULE_STANDARDIZE, /* struct gni_standardize_details: rows over their deviation, and 1 over that */
    GNI_RULE_CLASS_LOSS,  /* struct gni_class_loss_details: each row, and log(sum(exp(x))) of it */
    GNI_RULE_BINARY_LOSS, /* none */
    GNI_RULE_ALIGNMENTS,  /* none: losses, and the gradients of their sum */
    GNI_RULE_CHOLESKY,    /* of those that follow: struct gni_linalg_details */
    GNI_RULE_LU,
    GNI_RULE_SOLVE,
    GNI_RULE_TRIANGULAR,
    GNI_RULE_INVERSE,
    GNI_RULE_DETERMINANT,
    GNI_RULE_LOG_DETERMINANT,
    GNI_RULE_QR,
    GNI_RULE_SVD,
    GNI_RULE_EIGH,
    GNI_RULE_PINV,
    GNI_RULE_LEAST_SQUARES,
    GNI_RULE_CUSTOM, /* gn_custom_gradient, and its name */
    GNI_RULE_COUNT,
};

struct gni_elementwise_details {
    gn_op op;
    gn_scalar numbers[3]; /* of operands that are no tensors */
};

/* A view of a tensor: the tensor's own strides, and the layout of the view from its first element on. */
struct gni_strided_details {
    int ndim;
    int64_t offset, own[GN_DIMENSIONS_MAX], sizes[GN_DIMENSIONS_MAX], strides[GN_DIMENSIONS_MAX];
};

struct gni_reduce_details {
    gn_reduction reduction;
    uint32_t dimensions; /* bits; 0: all */
};

struct gni_standardize_details {
    uint32_t dimensions; /* bits: those of a row */
    bool is_centered;    /* less the mean of the row */
};

struct gni_softmax_details {
    int dimension;
    bool is_log;
};

struct gni_class_loss_details {
    double smoothing;
};

struct gni_parts_details {
    int dimension;
    bool is_unbound; /* the results do not have it */
};

struct gni_repeat_details {
    int dimension;
    int64_t count;
};

struct gni_cumulate_details {
    int dimension;
    bool is_product;
};

enum {
    GNI_CONV_DIMENSIONS = 3,
};

/*
 * The sum over images, places and taps of image * weight * result is linear in each of the three. What an operation gives
 * is the factor of one of them; the gradients of each are others of the list.
 */
enum gni_convolution_kind {
    GNI_CONV_RESULT, /* of an image and weights: a convolution; may have a bias */
    GNI_CONV_IMAGE,  /* of a result and weights: a transposed convolution; may have a bias */
    GNI_CONV_WEIGHT, /* of an image and a result */
    GNI_CONV_UNFOLD, /* of an image: what each tap reads, (images, channels * taps, places) */
    GNI_CONV_FOLD,   /* of that: an image with the sums of what each element was read as */
};

/* Shapes of a convolution: an image is (images, channels, ...), a result (images, results, ...), weights are
 * (results, channels / groups, ...); the dimensions behind come as depth, height and width, 1 where there are fewer. */
struct gni_convolution {
    enum gni_convolution_kind kind;
    int64_t images, channels, results, groups;
    int64_t image[GNI_CONV_DIMENSIONS], kernel[GNI_CONV_DIMENSIONS], result[GNI_CONV_DIMENSIONS];
    int64_t stride[GNI_CONV_DIMENSIONS], dilation[GNI_CONV_DIMENSIONS];
    int64_t padding[GNI_CONV_DIMENSIONS]; /* in front; behind it is what the result needs */
};

enum gni_places {
    GNI_PLACES_GATHER,  /* gn_gather() */
    GNI_PLACES_REDUCED, /* the same with a dimension of 1, which the index does not have */
    GNI_PLACES_SELECT,  /* gn_index_select() */
    GNI_PLACES_KEYS,    /* gn_index_get() */
};

struct gni_places_details {
    enum gni_places kind;
    int dimension;
    bool is_accumulated; /* of GNI_RULE_PUT: the value is added */
    int key_count;
    gn_key keys[GN_KEYS_MAX]; /* as many as there are; their tensors are the other inputs */
};

struct gni_fold_details {
    bool has_self; /* the rows count, too */
};

struct gni_linalg_details {
    bool is_upper, is_unit; /* which triangle; its diagonal counts as 1 */
    int mode;               /* of QR: enum gni_qr_mode */
};

/* What made the elements that aliases have. `layout` is that of a tensor with all of them. */
struct gni_alias_set {
    _Atomic(size_t) references;
    _Atomic(uint64_t) generation; /* how often aliases were written to on the tape */
    struct gni_lock lock;         /* of the rest */
    struct gni_graph_node *node;  /* what made them; NULL: nothing that needs a gradient */
    int number;                   /* which of the node's results it is */
    gn_dtype dtype;
    int64_t offset; /* from the storage's first element on */
    int ndim;
    int64_t sizes[GN_DIMENSIONS_MAX], strides[GN_DIMENSIONS_MAX];
};

/* What an operation tells the tape. All of it is borrowed. */
struct gni_tape_step {
    enum gni_rule rule;
    const char *name; /* of the operation, for people; static memory */
    int input_count;
    const gn_operand *inputs; /* numbers have no tensor */
    int result_count;
    gn_tensor **results;
    const void *details;
    size_t detail_bytes;
};

/* What this layer needs of src/autograd, which fills the table in when the library is loaded. */
struct gni_tape {
    /* Puts a step on the tape: its results get records. On failure they stay as they are. */
    gn_status (*record)(const struct gni_tape_step *step);
    /* A tensor that has a record goes. */
    void (*forget)(gn_tensor *tensor);
    /* Whether a tensor may be written to on the tape: it is no leaf that needs a gradient, and no view of one. */
    gn_status (*write_check)(const char *name, gn_tensor *out);
    /* A tensor takes over the record of a result, which its memory has the value of now; its own one goes. */
    gn_status (*rewrite)(gn_tensor *out, gn_tensor *result);
    /* What stands for a tensor whose memory is about to change: a copy with its record. */
    gn_status (*keep)(gn_tensor *tensor, gn_tensor **kept);
    /* Puts a step that wrote into its first input on the tape; results are not looked at. */
    gn_status (*record_write)(const struct gni_tape_step *step);
    void (*aliases_release)(struct gni_alias_set *aliases);
    /* A tensor that has a record is about to become another one: its gradient will be as that is, or this is refused. */
    gn_status (*adapt)(gn_tensor *tensor, const gn_tensor *other);
};

extern struct gni_tape gni_tape;
extern _Thread_local bool gni_tape_is_paused;
extern atomic_bool gni_aliases_were_written; /* some alias set has a generation above 0 */

/* The alias set of a tensor; NULL: it has none. */
static inline struct gni_alias_set *gni_tensor_aliases(const gn_tensor *tensor)
{
    struct gni_storage *storage = gni_tensor_storage(tensor);
    if (tensor->is_apart || storage == NULL)
        return tensor->aliases;
    return atomic_load_explicit(&storage->aliases, memory_order_acquire);
}

/* Whether an alias of the tensor was written to on the tape. */
static inline bool gni_tensor_was_rewritten(const gn_tensor *tensor)
{
    if (!atomic_load_explicit(&gni_aliases_were_written, memory_order_relaxed))
        return false;
    const struct gni_alias_set *aliases = gni_tensor_aliases(tensor);
    return aliases != NULL && atomic_load(&aliases->generation) > 0;
}

/* Whether a tensor needs a gradient: it has a record, or will have one when it is used. */
static inline bool gni_has_gradient(const gn_tensor *tensor)
{
    return tensor->gradient != NULL || gni_tensor_was_rewritten(tensor);
}

/* Whether work with this tensor goes on the tape; NULL is a number. */
static inline bool gni_is_taped(const gn_tensor *tensor)
{
    return tensor != NULL && gni_has_gradient(tensor) && !gni_tape_is_paused;
}

/* The same, and pauses the tape then. */
static inline bool gni_tape_enter(const gn_tensor *tensor)
{
    return gni_is_taped(tensor) && (gni_tape_is_paused = true);
}

bool gni_tape_enter_any(int count, const gn_operand *operands);

/* Ends the pause. Where `status` is GN_OK the step goes on the tape, unless its result has a record or is no floating
 * number; on failure the results are released, and set to NULL. */
gn_status gni_tape_leave(gn_status status, const struct gni_tape_step *step) GN_NODISCARD;

/* The strides by which a view counts in a gradient of the tensor: its own, unless places of it share an element. */
void gni_tape_strides(const gn_tensor *tensor, int64_t *own);

/* gni_tensor_alias_as() of a tensor whose places may share elements: `view` is what goes on the tape. */
gn_status gni_tensor_alias_planned(gn_tensor *tensor, int64_t offset, int ndim,
                                   const int64_t *sizes, const int64_t *strides,
                                   const struct gni_strided_details *view,
                                   gn_tensor **out) GN_NODISCARD;

/* The bytes of details that are set. */
size_t gni_places_bytes(const struct gni_places_details *places);

/* GN_ERROR_UNSUPPORTED where work with a tensor goes on the tape and the operation has no rule. */
gn_status gni_tape_refuse(const char *name, const gn_tensor *tensor) GN_NODISCARD;

/* The same for an operation that writes into `out`. */
gn_status gni_tape_refuse_write(const char *name, const gn_tensor *out,
                                const gn_tensor *value) GN_NODISCARD;

/* The end of an operation that takes elements of a tensor by one index. */
gn_status gni_tape_leave_places(gn_status status, enum gni_places kind, const char *name,
                                gn_tensor *tensor, int dimension, gn_tensor *index,
                                gn_tensor **result) GN_NODISCARD;

/* The usual step: of one tensor comes one. */
gn_status gni_tape_leave_one(gn_status status, enum gni_rule rule, const char *name,
                             gn_tensor *tensor, gn_tensor **result, const void *details,
                             size_t detail_bytes) GN_NODISCARD;

#endif
