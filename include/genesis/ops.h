/*
 * genesis/ops.h: operations on tensors.
 *
 * Shapes and types are checked at the call, where the mistake is. An elementwise operation may then wait until
 * somebody needs its result, so that a chain of them is one pass over memory; gn_flush() computes all that waits.
 * Types are promoted, and shapes broadcast, by PyTorch's rules.
 *
 * Failures: GN_ERROR_SHAPE (shapes do not go together), GN_ERROR_TYPE (not defined for these types),
 * GN_ERROR_OUT_OF_MEMORY (all arguments are as they were), GN_ERROR_INVALID_VALUE (two devices, a read-only
 * tensor as output).
 */
#ifndef GENESIS_OPS_H
#define GENESIS_OPS_H

#include "genesis/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The elementwise operations: X(NAME, name, arity, domain). The operands of an operation have one type, its
 * computing type, to which they are converted. The domain says which there are, and what comes out:
 *
 *   NUMBER      every type but bool (halves compute in float32); out: the same
 *   ANY         every type; out: the same
 *   FLOAT       float32 and float64 (integers and bool are converted before); out: the same
 *   TEST        every type; out: bool
 *   INTEGER     bool and the integers; out: the same
 *   LOGIC       every type, not 0 is true; out: bool
 *   SELECT      the first operand is bool, the others of any one type; out: that
 *
 * Integers wrap around. Integer division by 0 gives 0 (there is no exception on a GPU), and so does the
 * remainder. floor_divide and remainder follow Python: they round down, the remainder has the divisor's sign; fmod
 * rounds towards 0, and has the sign of the first.
 * maximum, minimum and clamp (value, least, most) hand on NaN. lerp (start, end, weight) is rounded once.
 * round is to even. sign of NaN is NaN, relu of NaN is NaN.
 * Shifts by less than 0 or by the width or more: left gives 0, right 0 or -1 by the sign.
 */
#define GN_OP_LIST(X)                        \
    X(ADD, add, 2, NUMBER)                   \
    X(SUBTRACT, subtract, 2, NUMBER)         \
    X(MULTIPLY, multiply, 2, NUMBER)         \
    X(DIVIDE, divide, 2, FLOAT)              \
    X(FLOOR_DIVIDE, floor_divide, 2, NUMBER) \
    X(REMAINDER, remainder, 2, NUMBER)       \
    X(FMOD, fmod, 2, NUMBER)                 \
    X(POWER, power, 2, NUMBER)               \
    X(MAXIMUM, maximum, 2, ANY)              \
    X(MINIMUM, minimum, 2, ANY)              \
    X(EQUAL, equal, 2, TEST)                 \
    X(NOT_EQUAL, not_equal, 2, TEST)         \
    X(LESS, less, 2, TEST)                   \
    X(LESS_EQUAL, less_equal, 2, TEST)       \
    X(GREATER, greater, 2, TEST)             \
    X(GREATER_EQUAL, greater_equal, 2, TEST) \
    X(LOGICAL_AND, logical_and, 2, LOGIC)    \
    X(LOGICAL_OR, logical_or, 2, LOGIC)      \
    X(LOGICAL_XOR, logical_xor, 2, LOGIC)    \
    X(LOGICAL_NOT, logical_not, 1, LOGIC)    \
    X(BITWISE_AND, bitwise_and, 2, INTEGER)  \
    X(BITWISE_OR, bitwise_or, 2, INTEGER)    \
    X(BITWISE_XOR, bitwise_xor, 2, INTEGER)  \
    X(BITWISE_NOT, bitwise_not, 1, INTEGER)  \
    X(SHIFT_LEFT, shift_left, 2, INTEGER)    \
    X(SHIFT_RIGHT, shift_right, 2, INTEGER)  \
    X(NEGATIVE, negative, 1, NUMBER)         \
    X(ABSOLUTE, absolute, 1, NUMBER)         \
    X(SIGN, sign, 1, NUMBER)                 \
    X(SQUARE, square, 1, NUMBER)             \
    X(RECIPROCAL, reciprocal, 1, FLOAT)      \
    X(FLOOR, floor, 1, FLOAT)                \
    X(CEIL, ceil, 1, FLOAT)                  \
    X(ROUND, round, 1, FLOAT)                \
    X(TRUNC, trunc, 1, FLOAT)                \
    X(SQRT, sqrt, 1, FLOAT)                  \
    X(RSQRT, rsqrt, 1, FLOAT)                \
    X(EXP, exp, 1, FLOAT)                    \
    X(EXPM1, expm1, 1, FLOAT)                \
    X(LOG, log, 1, FLOAT)                    \
    X(LOG1P, log1p, 1, FLOAT)                \
    X(LOG2, log2, 1, FLOAT)                  \
    X(LOG10, log10, 1, FLOAT)                \
    X(SIN, sin, 1, FLOAT)                    \
    X(COS, cos, 1, FLOAT)                    \
    X(TAN, tan, 1, FLOAT)                    \
    X(ASIN, asin, 1, FLOAT)                  \
    X(ACOS, acos, 1, FLOAT)                  \
    X(ATAN, atan, 1, FLOAT)                  \
    X(ATAN2, atan2, 2, FLOAT)                \
    X(HYPOT, hypot, 2, FLOAT)                \
    X(SINH, sinh, 1, FLOAT)                  \
    X(COSH, cosh, 1, FLOAT)                  \
    X(TANH, tanh, 1, FLOAT)                  \
    X(ASINH, asinh, 1, FLOAT)                \
    X(ACOSH, acosh, 1, FLOAT)                \
    X(ATANH, atanh, 1, FLOAT)                \
    X(ERF, erf, 1, FLOAT)                    \
    X(SIGMOID, sigmoid, 1, FLOAT)            \
    X(RELU, relu, 1, NUMBER)                 \
    X(GELU, gelu, 1, FLOAT)                  \
    X(GELU_TANH, gelu_tanh, 1, FLOAT)        \
    X(SILU, silu, 1, FLOAT)                  \
    X(ISNAN, isnan, 1, TEST)                 \
    X(ISINF, isinf, 1, TEST)                 \
    X(ISFINITE, isfinite, 1, TEST)           \
    X(CLAMP, clamp, 3, ANY)                  \
    X(LERP, lerp, 3, FLOAT)                  \
    X(WHERE, where, 3, SELECT)

typedef enum gn_op {
#define GN_OP_ENUM(NAME, name, arity, domain) GN_OP_##NAME,
    GN_OP_LIST(GN_OP_ENUM)
#undef GN_OP_ENUM
    GN_OP_COUNT
} gn_op;

/* What an operation takes: a tensor, or a number where that is NULL. A number takes the tensors' type as long as
 * its kind allows. */
typedef struct gn_operand {
    gn_tensor *tensor;
    gn_scalar scalar;
} gn_operand;

/* The result of an elementwise operation. */
GN_API gn_status gn_elementwise(gn_op op, const gn_operand *operands,
                                gn_tensor **result) GN_NODISCARD;

/* The same, written into a tensor, whose shape must be that of the result, and whose type one that the result can
 * become. It may be one of the operands. */
GN_API gn_status gn_elementwise_into(gn_op op, const gn_operand *operands,
                                     gn_tensor *out) GN_NODISCARD;

/* The elements as another type, as a new tensor. */
GN_API gn_status gn_cast(gn_tensor *tensor, gn_dtype dtype, gn_tensor **result) GN_NODISCARD;

/* Copies elements, converted and broadcast, into a tensor. The two may overlap. */
GN_API gn_status gn_assign(gn_tensor *out, gn_operand value) GN_NODISCARD;

/* A tensor of one number. */
GN_API gn_status gn_full(gn_scalar value, gn_dtype dtype, int ndim, const int64_t *sizes,
                         gn_device *device, gn_tensor **result) GN_NODISCARD;

/* start + i step for i below `count`: computed in float64 if both are floating, in int64 (which wraps) if neither is,
 * and converted. */
GN_API gn_status gn_range(gn_scalar start, gn_scalar step, int64_t count, gn_dtype dtype,
                          gn_device *device, gn_tensor **result) GN_NODISCARD;

/* Tensors one behind the other along a dimension, in the type of all of them; those of shape (0,) count as nothing. */
GN_API gn_status gn_cat(int count, gn_tensor *const *tensors, int dimension,
                        gn_tensor **result) GN_NODISCARD;

/* A copy with dimensions (bit i of `dimensions`: dimension i) the other way round. */
GN_API gn_status gn_flip(gn_tensor *tensor, uint32_t dimensions, gn_tensor **result) GN_NODISCARD;

/* A copy with each element of a dimension `count` times, one behind the other. */
GN_API gn_status gn_repeat_interleave(gn_tensor *tensor, int dimension, int64_t count,
                                      gn_tensor **result) GN_NODISCARD;

/* The type that an operation on these has. */
GN_API gn_status gn_result_type(int count, const gn_operand *operands,
                                gn_dtype *dtype) GN_NODISCARD;

#define GN_REDUCTION_LIST(X) \
    X(SUM, sum)              \
    X(PRODUCT, prod)         \
    X(MAXIMUM, amax)         \
    X(MINIMUM, amin)         \
    X(ANY, any)              \
    X(ALL, all)              \
    X(MEAN, mean)

typedef enum gn_reduction {
#define GN_REDUCTION_ENUM(NAME, name) GN_REDUCE_##NAME,
    GN_REDUCTION_LIST(GN_REDUCTION_ENUM)
#undef GN_REDUCTION_ENUM
    GN_REDUCTION_COUNT
} gn_reduction;

/*
 * Folds dimensions (bit i of `dimensions`: dimension i; 0: all). `has_dimensions` keeps those as 1. Sums and
 * products of integers and bool are int64; means are floating. Deterministic, whatever the number of threads.
 */
GN_API gn_status gn_reduce(gn_reduction reduction, gn_tensor *tensor, uint32_t dimensions,
                           bool has_dimensions, gn_tensor **result) GN_NODISCARD;

/* exp(x) over the sum of it along a dimension, or the logarithm of that; floating types. */
GN_API gn_status gn_softmax(gn_tensor *tensor, int dimension, bool is_log,
                            gn_tensor **result) GN_NODISCARD;

/* ---- along one dimension ---------------------------------------------------------------------- */

/* Sorted, stable; NaN counts as the largest. `values` and `indices` (int64) may each be NULL. On the CPU
 * indices may wait until somebody needs them, as elementwise operations do. */
GN_API gn_status gn_sort(gn_tensor *tensor, int dimension, bool is_descending, gn_tensor **values,
                         gn_tensor **indices) GN_NODISCARD;

/* The k largest or smallest, in order; the lower index first among equals. */
GN_API gn_status gn_topk(gn_tensor *tensor, int64_t k, int dimension, bool is_largest,
                         gn_tensor **values, gn_tensor **indices) GN_NODISCARD;

/* The element that is number k of all in ascending order, from 0 on, as a tensor without dimensions; NaN counts as the
 * largest. */
GN_API gn_status gn_kth(gn_tensor *tensor, int64_t k, gn_tensor **result) GN_NODISCARD;

/* The largest or smallest elements of a dimension, which goes, and where the first of them are; NaN wins. `values`
 * and `indices` (int64) may each be NULL. */
GN_API gn_status gn_extreme(gn_tensor *tensor, int dimension, bool is_maximum, gn_tensor **values,
                            gn_tensor **indices) GN_NODISCARD;

/* Cumulative sums or products; of integers and bool as int64. */
GN_API gn_status gn_cumulate(gn_tensor *tensor, int dimension, bool is_product,
                             gn_tensor **result) GN_NODISCARD;

/* The largest or smallest of the elements up to each, and where the last of them is (int64); NaN wins. */
GN_API gn_status gn_cumulate_extreme(gn_tensor *tensor, int dimension, bool is_maximum,
                                     gn_tensor **values, gn_tensor **indices) GN_NODISCARD;

/* The different elements, ascending; where each element is among them, in the tensor's shape, and how often each
 * occurs (int64): `inverse` and `counts` may be NULL. */
GN_API gn_status gn_unique(gn_tensor *tensor, gn_tensor **values, gn_tensor **inverse,
                           gn_tensor **counts) GN_NODISCARD;

/* ---- matrix products --------------------------------------------------------------------------- */

/* Sums of products by the letters of dimensions, as "ij,jk->ik" for a matrix product. Letters that the result has not are
 * summed over; without "->" it has those that occur once, in the alphabet's order. "..." stands for dimensions that
 * broadcast. */
GN_API gn_status gn_einsum(const char *equation, int count, gn_tensor *const *operands,
                           gn_tensor **result) GN_NODISCARD;

/*
 * The matrix product, by PyTorch's rules: of two vectors a number; of a matrix and a vector a vector; the last two
 * dimensions are matrices, those before a batch, which broadcasts. Both operands have the same type, which is that of
 * the result. Integers wrap around; of bool, whether there is an index at which both are true. Halves are summed in
 * float32, and rounded once. An element differs from the exact one by at most n * epsilon / 2 (n products; epsilon
 * of float32 for halves, to which the one rounding comes) times the sum of the absolute values of its products.
 */
GN_API gn_status gn_matmul(gn_tensor *a, gn_tensor *b, gn_tensor **result) GN_NODISCARD;

/* The same, written into a tensor of the result's shape and type. It may overlap the operands. */
GN_API gn_status gn_matmul_into(gn_tensor *a, gn_tensor *b, gn_tensor *out) GN_NODISCARD;

/*
 * The product, to which a tensor is added that broadcasts with it: gn_matmul() and a sum. On a GPU both are one call
 * of cuBLASLt where that can, of tensors of one type, with the same row, or a row each, for all rows of the product:
 * halves are then rounded once, behind the sum.
 */
GN_API gn_status gn_matmul_add(gn_tensor *a, gn_tensor *b, gn_tensor *addend,
                               gn_tensor **result) GN_NODISCARD;

/*
 * Whether products of float32 on a GPU may round their operands to TF32, of which 10 bits behind the point are kept:
 * several times faster there. At first they may not. Any thread.
 */
GN_API void gn_set_allow_tf32(bool is_allowed);
GN_API bool gn_get_allow_tf32(void);

/*
 * A file, with its whole path, that may be an OpenBLAS, for large products of float32 and float64. Files are tried in
 * their order before the system's own, when the first such product is computed. Without any all is computed by
 * loops of our own. Copied; any thread.
 */
GN_API gn_status gn_blas_add_file(const char *path) GN_NODISCARD;

/* ---- random numbers --------------------------------------------------------------------------- */

/* Where a sequence of random numbers is: the same seed gives the same numbers on every device, and each call goes
 * on with the next offset. Threads: not shared between threads without a lock. */
typedef struct gn_generator {
    uint64_t seed, offset;
} gn_generator;

/* Fills a tensor: uniform from 0 to before 1, or normal with mean 0 and variance 1; floating types. */
GN_API gn_status gn_random_uniform(gn_tensor *out, gn_generator *generator) GN_NODISCARD;
GN_API gn_status gn_random_normal(gn_tensor *out, gn_generator *generator) GN_NODISCARD;

/* Integers from `low` to before `high`, which the type must have. */
GN_API gn_status gn_random_integers(gn_tensor *out, int64_t low, int64_t high,
                                    gn_generator *generator) GN_NODISCARD;

/* The numbers from 0 to `count` - 1 in random order, as int64. */
GN_API gn_status gn_random_permutation(int64_t count, gn_device *device, gn_generator *generator,
                                       gn_tensor **result) GN_NODISCARD;

/* Computes everything that is pending. */
GN_API gn_status gn_flush(void) GN_NODISCARD;

/*
 * For an interpreter with a lock of its own: `begin` is called before a thread computes pending operations of many
 * elements, has a kernel compiled for them, or waits for what another one computes; `end` after that, with what the
 * first gave. NULL: nothing. To be set before tensors are used.
 */
GN_API void gn_set_wait_hooks(void *(*begin)(void), void (*end)(void *state));

/* Whether a flush could have something to do. */
GN_API bool gn_is_pending(void);

/* Whether elementwise operations may wait; at first they may. Switching it off computes what is pending. */
GN_API gn_status gn_set_fusion(bool is_on) GN_NODISCARD;
GN_API bool gn_get_fusion(void);

/* How often operations could not be one kernel, because that does not compile or the driver does not take it, and ran
 * one by one. The log says why. */
GN_API uint64_t gn_get_fusion_failures(void);

/* Compiles the kernels of common operations on float32 for a device, several at the same time, so that their first use
 * does not wait for it. Nothing on the CPU. */
GN_API gn_status gn_warm_up(gn_device *device) GN_NODISCARD;

#ifdef __cplusplus
}
#endif

#endif
