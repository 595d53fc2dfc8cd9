/*
 * index_arguments.h: the kernels of index.cu, for those who launch them.
 */
#ifndef GNI_OPS_CUDA_INDEX_ARGUMENTS_H
#define GNI_OPS_CUDA_INDEX_ARGUMENTS_H

#include "ops/backend.h"
#include "tensor/index_plan.h"

enum {
    GNI_INDEX_UNIT = 16,      /* bytes that are moved at once, at most */
    GNI_INDEX_FEW = 4096,     /* entries that the FEW modes take: FEW in index.cu */
    GNI_INDEX_ANY_NUMBER = 9, /* ANY_NUMBER in index.cu */
};

/* As index.cu has them, which says what each does. */
enum gni_index_mode {
    GNI_INDEX_GET,
    GNI_INDEX_SET,
    GNI_INDEX_ADD,
    GNI_INDEX_CHECK,
    GNI_INDEX_KEYS,
    GNI_INDEX_MARK,
    GNI_INDEX_CHOOSE,
    GNI_INDEX_PUT,
    GNI_INDEX_FEW_SET,
    GNI_INDEX_FEW_ADD,
};

/* ---- the arguments, as index.cu has them ------------------------------------------------------- */

struct gni_place_index {
    const char *data;
    int64_t size, wrap, stride;
    int64_t strides[GN_DIMENSIONS_MAX];
    int32_t type, dimension;
};

struct gni_index_arguments {
    _Alignas(GNI_INDEX_UNIT) uint64_t number[2];
    uint64_t count;
    int64_t sizes[GN_DIMENSIONS_MAX], strides[GN_DIMENSIONS_MAX], other_strides[GN_DIMENSIONS_MAX];
    char *source, *other;
    void *fault;
    int32_t dimensions, index_count;
    struct gni_place_index indices[GN_DIMENSIONS_MAX];
    int64_t base, none, step;
    void *keys;
    const uint8_t *chosen;
    int64_t entry_strides[GN_DIMENSIONS_MAX];
    int64_t columns, column_dimensions, column_sizes[GN_DIMENSIONS_MAX];
    int64_t column_strides[GN_DIMENSIONS_MAX], column_other_strides[GN_DIMENSIONS_MAX];
};

/* What the text of a kernel depends on; the signature of it, so without holes. */
struct gni_index_form {
    uint32_t kind; /* apart from signatures of others; gni_index_launch() sets it */
    uint32_t mode, unit, dtype;
    uint32_t dimensions, indices, number, each; /* gni_index_launch() sets them, too */
    uint32_t is_wide; /* words of 8 bytes: set where there are many units, at least */
};

_Static_assert(sizeof(struct gni_index_arguments) <= 4096,
               "arguments of a kernel have at most 4096 bytes");
_Static_assert(sizeof(struct gni_index_form) == 9 * sizeof(uint32_t), "a signature has no holes");

/* The two sides of a plan: its source, and the result or the values. */
struct gni_index_sides {
    char *source, *other;
    int64_t width, other_width;   /* bytes of an element; 1 where strides make keys */
    const int64_t *other_strides; /* for the dimensions of the plan */
    const int64_t *entry_strides; /* the same; may be NULL */
};

/* What is written: `data`, or `number` if that is NULL, with strides for the dimensions of a plan. */
struct gni_index_values {
    gn_tensor *target;
    char *data;
    const int64_t *strides;
    uint64_t number;
    bool is_accumulated;
};

/* Arguments of a plan, with dimensions joined where all strides allow it. */
void gni_index_arguments_make(struct gni_index_arguments *to, const struct gni_index_plan *plan,
                              const struct gni_index_sides *sides);
gn_status gni_index_launch(struct gni_index_arguments *arguments,
                           struct gni_index_form *specialization, gn_stream *stream) GN_NODISCARD;

/* Writes, or adds integers, of each place whose entry is chosen: of all places, if `chosen` is NULL. */
gn_status gni_index_put(const struct gni_index_plan *plan, const struct gni_index_values *values,
                        const int64_t *entry_strides, const uint8_t *chosen,
                        gn_stream *stream) GN_NODISCARD;

/* ---- ordered.c --------------------------------------------------------------------------------- */

/*
 * Several values for one element of a tensor on a GPU: the last one stays, and sums are added up in an order
 * that follows from the indices alone. So the same call gives the same bits, whichever thread comes first.
 *
 *     place     of a plan (tensor/index_plan.h): a value, and the element that it is for
 *     entry     places that differ only in dimensions that no index tensor depends on, and that are dimensions of the
 *               target: its columns. Two places are for one element if their columns are the same, and their entries
 *               have the same key
 *     key       of an entry: where its first column is in the target, as a small number
 */

/* True if the order makes a difference: that of integers' sums, of equal values and of masks' places does not. */
bool gni_ordered_is_needed(const struct gni_index_plan *plan,
                           const struct gni_index_values *values);

/* Writes or adds. The plan has elements; all memory is in the order of the stream. */
gn_status gni_ordered_put(const struct gni_index_plan *plan, const struct gni_index_values *values,
                          gn_stream *stream) GN_NODISCARD;

#endif
