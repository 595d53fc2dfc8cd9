/*
 * expression.h: operations in C, one after the other, without a check behind each.
 *
 *     struct gni_scope scope = {0};
 *     gn_tensor *root = gni_unary(&scope, GN_OP_SQRT, x);
 *     gn_tensor *made = gni_binary(&scope, GN_OP_ADD, gni_of(root), gni_floating(1));
 *     return gni_scope_end(&scope, made, result);
 *
 * A scope keeps the first failure. From then on every call with it does nothing and gives NULL, and gni_scope_end()
 * returns the failure. All results belong to the scope, which releases them at its end; one is handed out.
 *
 * Elementwise results stay pending, so that what is written here as several steps runs as one kernel.
 *
 * Threads: a scope belongs to the call that has it.
 */
#ifndef GNI_OPS_EXPRESSION_H
#define GNI_OPS_EXPRESSION_H

#include "genesis/function.h"
#include "genesis/index.h"
#include "tensor/tensor.h"

enum {
    GNI_SCOPE_FEW = 10, /* results without memory of their own */
};

struct gni_scope {
    gn_status status; /* the first failure, or GN_OK */
    int count, room;
    gn_tensor **held; /* `few`, or host memory once that is full */
    gn_tensor *few[GNI_SCOPE_FEW];
    void *memory; /* of gni_scope_list(); freed at the end */
};

/* Releases everything, and gives the first failure. */
gn_status gni_scope_close(struct gni_scope *scope) GN_NODISCARD;

/* Releases everything but `result`, whose reference the caller gets. On failure `out` stays as it is. */
gn_status gni_scope_end(struct gni_scope *scope, gn_tensor *result, gn_tensor **out) GN_NODISCARD;

/* The same with a result that is the first of a function's results; and with several, the number of which is at most
 * that of gn_results.few. */
gn_status gni_scope_give(struct gni_scope *scope, gn_tensor *result,
                         gn_results *results) GN_NODISCARD;
gn_status gni_scope_give_pair(struct gni_scope *scope, gn_tensor *first, gn_tensor *second,
                              gn_results *results) GN_NODISCARD;

/* Any number of results. `tensors` belong to the scope. */
gn_status gni_scope_give_list(struct gni_scope *scope, int count, gn_tensor *const *tensors,
                              gn_results *results) GN_NODISCARD;

/* Room for so many tensors until the scope ends, once in a scope; NULL on failure. */
gn_tensor **gni_scope_list(struct gni_scope *scope, int64_t count);

/* A number as a result. */
gn_status gni_scope_give_number(struct gni_scope *scope, gn_scalar number,
                                gn_results *results) GN_NODISCARD;

/* Takes over a new reference; gives the tensor. NULL where the status is a failure, which is kept. */
gn_tensor *gni_scope_keep(struct gni_scope *scope, gn_status status, gn_tensor *tensor);

/* Keeps a failure with its sentence, unless there is one. */
#define gni_scope_fail(scope, code, ...) \
    ((void)((scope)->status == GN_OK && ((scope)->status = gni_error(code, __VA_ARGS__))))

static inline bool gni_scope_is_ok(const struct gni_scope *scope)
{
    return scope->status == GN_OK;
}

/* ---- operands ---------------------------------------------------------------------------------- */

static inline gn_operand gni_of(gn_tensor *tensor)
{
    return (gn_operand){.tensor = tensor};
}

static inline gn_operand gni_integer(int64_t number)
{
    return (gn_operand){.scalar = {.kind = GN_INT64, .integer = number}};
}

static inline gn_operand gni_floating(double number)
{
    return (gn_operand){.scalar = {.kind = GN_FLOAT64, .floating = number}};
}

/* A number as a double. */
static inline double gni_scalar_double(gn_scalar scalar)
{
    return scalar.kind == GN_FLOAT64 ? scalar.floating : (double)scalar.integer;
}

/* A number as Python writes it, for messages. */
struct gni_number_text {
    char text[32];
};

struct gni_number_text gni_number_text(gn_scalar number);

/* ---- elements ---------------------------------------------------------------------------------- */

gn_tensor *gni_elementwise(struct gni_scope *scope, gn_op op, int arity,
                           const gn_operand *operands);

static inline gn_tensor *gni_unary(struct gni_scope *scope, gn_op op, gn_tensor *x)
{
    return gni_elementwise(scope, op, 1, &(gn_operand){.tensor = x});
}

static inline gn_tensor *gni_binary(struct gni_scope *scope, gn_op op, gn_operand a, gn_operand b)
{
    return gni_elementwise(scope, op, 2, (const gn_operand[]){a, b});
}

static inline gn_tensor *gni_where(struct gni_scope *scope, gn_tensor *condition, gn_operand a,
                                   gn_operand b)
{
    return gni_elementwise(scope, GN_OP_WHERE, 3, (const gn_operand[]){gni_of(condition), a, b});
}

/* 1 for each element, also for NaN. Gradients go through it, and are 0. */
static inline gn_tensor *gni_one_of(struct gni_scope *scope, gn_tensor *x)
{
    return gni_binary(scope, GN_OP_POWER, gni_of(x), gni_integer(0));
}

/* The elements as another type: the tensor itself where it has it. */
gn_tensor *gni_cast(struct gni_scope *scope, gn_tensor *x, gn_dtype dtype);

/* Halves as float32, others as they are: each step would round them. */
gn_tensor *gni_wide(struct gni_scope *scope, gn_tensor *x);

/* A copy, contiguous. */
gn_tensor *gni_clone(struct gni_scope *scope, gn_tensor *x);

/*
 * The type of an operation that is made of several, found once from all of its operands: by steps, a pair of them could
 * have one that does not hold what the third one has. Tensors among the operands are converted to it, halves to float32
 * (the result is rounded once, by gni_cast()). `is_floating`: integers become the default type.
 */
gn_dtype gni_join(struct gni_scope *scope, int count, gn_operand *operands, bool is_floating);

/* ---- reductions -------------------------------------------------------------------------------- */

/* `dims`: as gni_dims() gives them. */
gn_tensor *gni_reduce(struct gni_scope *scope, gn_reduction reduction, gn_tensor *x, uint32_t dims,
                      bool is_kept);

/* A sum, converted to a type. */
gn_tensor *gni_sum(struct gni_scope *scope, gn_tensor *x, uint32_t dims, bool is_kept,
                   gn_dtype dtype);

/* The element of a tensor that has one; it is computed for that. */
gn_scalar gni_item(struct gni_scope *scope, gn_tensor *x);

/* ---- dimensions and views ------------------------------------------------------------------------ */

/* A dimension, counted from the beginning; GN_ERROR_INDEX where there is none. A tensor without dimensions has one. */
int gni_dim(struct gni_scope *scope, const gn_tensor *x, int64_t dim);

/* Dimensions as a set of bits: 0 for None, which is all of them. */
uint32_t gni_dims(struct gni_scope *scope, const gn_tensor *x, const gn_argument *dims);

/* The elements of those dimensions. */
int64_t gni_dims_count(const gn_tensor *x, uint32_t dims);

gn_tensor *gni_view(struct gni_scope *scope, gn_tensor *x, int ndim, const int64_t *sizes);
gn_tensor *gni_reshape(struct gni_scope *scope, gn_tensor *x, int ndim, const int64_t *sizes);

/* The same values in a shape to which x can be reshaped, or broadcast. The result may be x or share its memory, so nobody
 * may write to it. Pending values stay pending where they can. */
gn_tensor *gni_reshape_values(struct gni_scope *scope, gn_tensor *x, int ndim,
                              const int64_t *sizes);
gn_tensor *gni_broadcast_values(struct gni_scope *scope, gn_tensor *x, int ndim,
                                const int64_t *sizes);

gn_tensor *gni_expand(struct gni_scope *scope, gn_tensor *x, int ndim, const int64_t *sizes);
gn_tensor *gni_permute(struct gni_scope *scope, gn_tensor *x, const int *order);
gn_tensor *gni_transpose(struct gni_scope *scope, gn_tensor *x, int first, int second);
gn_tensor *gni_strided(struct gni_scope *scope, gn_tensor *x, int ndim, const int64_t *sizes,
                       const int64_t *strides, int64_t offset);

/* `count` elements of a dimension from `start` on. */
gn_tensor *gni_narrow(struct gni_scope *scope, gn_tensor *x, int dim, int64_t start, int64_t count);
gn_tensor *gni_select(struct gni_scope *scope, gn_tensor *x, int dim, int64_t index);
gn_tensor *gni_unsqueeze(struct gni_scope *scope, gn_tensor *x, int dim);
gn_tensor *gni_squeeze(struct gni_scope *scope, gn_tensor *x, int dim);

/* A dimension moved to another place; the others keep their order. */
gn_tensor *gni_move_dim(struct gni_scope *scope, gn_tensor *x, int from, int to);

/* The elements whose index in `dim2` is `offset` more than in `dim1`, as the last dimension. */
gn_tensor *gni_diagonal(struct gni_scope *scope, gn_tensor *x, int64_t offset, int64_t dim1,
                        int64_t dim2);

/* At least 1, 2 or 3 dimensions: those that are missing come as in atleast_3d(). */
gn_tensor *gni_at_least(struct gni_scope *scope, gn_tensor *x, int ndim);

/* ---- new tensors --------------------------------------------------------------------------------- */

gn_tensor *gni_empty(struct gni_scope *scope, gn_dtype dtype, int ndim, const int64_t *sizes,
                     gn_device *device);
gn_tensor *gni_full(struct gni_scope *scope, gn_scalar value, gn_dtype dtype, int ndim,
                    const int64_t *sizes, gn_device *device);

/* 0, 1, 2 ... as int64. */
gn_tensor *gni_arange(struct gni_scope *scope, int64_t count, gn_device *device);

gn_tensor *gni_cat(struct gni_scope *scope, int count, gn_tensor *const *tensors, int dim);
gn_tensor *gni_matmul(struct gni_scope *scope, gn_tensor *a, gn_tensor *b);

/* ---- places: genesis/index.h ----------------------------------------------------------------------- */

/* x[key], of an index tensor or a mask; and the same as a target, which need not belong to the scope. */
gn_tensor *gni_index_at(struct gni_scope *scope, gn_tensor *x, gn_tensor *key);
void gni_index_put_at(struct gni_scope *scope, gn_tensor *target, gn_tensor *key, gn_operand value,
                      bool is_accumulated);
gn_tensor *gni_index_select(struct gni_scope *scope, gn_tensor *x, int dim, gn_tensor *index);
gn_tensor *gni_searchsorted(struct gni_scope *scope, gn_tensor *sequence, gn_tensor *values,
                            bool is_right);
gn_tensor *gni_bincount(struct gni_scope *scope, gn_tensor *x, gn_tensor *weights, int64_t minimum);
gn_tensor *gni_cumsum(struct gni_scope *scope, gn_tensor *x, int dim);

/* Writes into a tensor, which need not belong to the scope. */
void gni_assign(struct gni_scope *scope, gn_tensor *out, gn_operand value);

#endif
