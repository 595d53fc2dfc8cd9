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
 * The elementwise operations: X(NAME, name, arity, domain, "Python's name", "aliases", signature, "what it gives"). An
 * operation is this row, a loop for the CPU (src/ops/cpu/math_functions.h, loops_body.h) and an expression for the GPU
 * (src/ops/cuda/elements.cu): enum, messages, Python's functions and methods, their documentation and types are made of
 * the row. Without a name Python has it by other functions. genesis/function.h says what a signature is.
 *
 * The operands of an operation have one type, its computing type, to which they are converted. The domain says which
 * there are, and what comes out:
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
 * ldexp (x, y) is x times 2 to the power of y; nextafter is not for halves, whose next numbers are others.
 * lgamma is infinite at its poles, the integers up to 0; digamma is NaN there, and infinite at 0, with the other sign.
 * sinc is sin(pi x) / (pi x).
 * Activations have their parameters as operands: leaky_relu (x, slope), elu and celu (x, alpha), softplus (x, beta,
 * threshold).
 * heaviside (x, value) is 0, 1, or the value where x is 0; xlogy (x, y) is x log(y), and 0 where x is 0; logit (x, eps)
 * bounds x by eps and 1 - eps, unless eps is below 0 or NaN.
 * gcd and lcm are those of the absolute values, and wrap where these do not fit; with 0 they are the other one, and 0.
 * Shifts by less than 0 or by the width or more: left gives 0, right 0 or -1 by the sign.
 */
#define GN_UNARY "input: operand"
#define GN_BINARY "input: operand, other: operand"
#define GN_OP_LIST(X)                                                                              \
    X(ADD, add, 2, NUMBER, "add", "", GN_BINARY ", *, alpha: number = 1", "The sum.")              \
    X(SUBTRACT, subtract, 2, NUMBER, "sub", "subtract", GN_BINARY ", *, alpha: number = 1",        \
      "The difference.")                                                                           \
    X(MULTIPLY, multiply, 2, NUMBER, "mul", "multiply", GN_BINARY, "The product.")                 \
    X(DIVIDE, divide, 2, FLOAT, "div", "divide true_divide",                                       \
      GN_BINARY ", *, rounding_mode: text = None", "The quotient, as a floating number.")          \
    X(FLOOR_DIVIDE, floor_divide, 2, NUMBER, "floor_divide", "", GN_BINARY,                        \
      "The quotient, rounded down.")                                                               \
    X(REMAINDER, remainder, 2, NUMBER, "remainder", "", GN_BINARY,                                 \
      "What is left of a division that rounds down.")                                              \
    X(FMOD, fmod, 2, NUMBER, "fmod", "", GN_BINARY,                                                \
      "What is left of a division that rounds towards 0.")                                         \
    X(POWER, power, 2, NUMBER, "pow", "", "input: operand, exponent: operand",                     \
      "The first to the power of the second.")                                                     \
    X(MAXIMUM, maximum, 2, ANY, "maximum", "", GN_BINARY, "The larger of two; NaN if one is.")     \
    X(MINIMUM, minimum, 2, ANY, "minimum", "", GN_BINARY, "The smaller of two; NaN if one is.")    \
    X(EQUAL, equal, 2, TEST, "eq", "", GN_BINARY, "Whether two are equal.")                        \
    X(NOT_EQUAL, not_equal, 2, TEST, "ne", "not_equal", GN_BINARY, "Whether two are not equal.")   \
    X(LESS, less, 2, TEST, "lt", "less", GN_BINARY, "Whether the first is smaller.")               \
    X(LESS_EQUAL, less_equal, 2, TEST, "le", "less_equal", GN_BINARY,                              \
      "Whether the first is not larger.")                                                          \
    X(GREATER, greater, 2, TEST, "gt", "greater", GN_BINARY, "Whether the first is larger.")       \
    X(GREATER_EQUAL, greater_equal, 2, TEST, "ge", "greater_equal", GN_BINARY,                     \
      "Whether the first is not smaller.")                                                         \
    X(LOGICAL_AND, logical_and, 2, LOGIC, "logical_and", "", GN_BINARY, "Whether both are not 0.") \
    X(LOGICAL_OR, logical_or, 2, LOGIC, "logical_or", "", GN_BINARY, "Whether one is not 0.")      \
    X(LOGICAL_XOR, logical_xor, 2, LOGIC, "logical_xor", "", GN_BINARY,                            \
      "Whether just one is not 0.")                                                                \
    X(LOGICAL_NOT, logical_not, 1, LOGIC, "logical_not", "", GN_UNARY, "Whether it is 0.")         \
    X(BITWISE_AND, bitwise_and, 2, INTEGER, "bitwise_and", "", GN_BINARY,                          \
      "The bits that both have.")                                                                  \
    X(BITWISE_OR, bitwise_or, 2, INTEGER, "bitwise_or", "", GN_BINARY, "The bits that one has.")   \
    X(BITWISE_XOR, bitwise_xor, 2, INTEGER, "bitwise_xor", "", GN_BINARY,                          \
      "The bits that just one has.")                                                               \
    X(BITWISE_NOT, bitwise_not, 1, INTEGER, "bitwise_not", "", GN_UNARY,                           \
      "The bits that it does not have.")                                                           \
    X(SHIFT_LEFT, shift_left, 2, INTEGER, "bitwise_left_shift", "", GN_BINARY,                     \
      "The bits moved up.")                                                                        \
    X(SHIFT_RIGHT, shift_right, 2, INTEGER, "bitwise_right_shift", "", GN_BINARY,                  \
      "The bits moved down.")                                                                      \
    X(GCD, gcd, 2, INTEGER, "gcd", "", GN_BINARY, "The greatest common divisor.")                  \
    X(LCM, lcm, 2, INTEGER, "lcm", "", GN_BINARY, "The least common multiple.")                    \
    X(NEGATIVE, negative, 1, NUMBER, "neg", "negative", GN_UNARY,                                  \
      "The value with the other sign.")                                                            \
    X(ABSOLUTE, absolute, 1, NUMBER, "abs", "absolute", GN_UNARY, "The value without its sign.")   \
    X(SIGN, sign, 1, NUMBER, "sign", "", GN_UNARY, "-1, 0 or 1.")                                  \
    X(HEAVISIDE, heaviside, 2, ANY, "heaviside", "", "input: operand, values: operand",            \
      "0 below 0, 1 above, and the value at 0.")                                                   \
    X(SQUARE, square, 1, NUMBER, "square", "", GN_UNARY, "The value times itself.")                \
    X(RECIPROCAL, reciprocal, 1, FLOAT, "reciprocal", "", GN_UNARY, "1 over the value.")           \
    X(FLOOR, floor, 1, FLOAT, "floor", "", GN_UNARY, "The next lower whole number.")               \
    X(CEIL, ceil, 1, FLOAT, "ceil", "", GN_UNARY, "The next higher whole number.")                 \
    X(ROUND, round, 1, FLOAT, "round", "", GN_UNARY ", *, decimals: int = 0",                      \
      "The nearest whole number, the even one of two.")                                            \
    X(TRUNC, trunc, 1, FLOAT, "trunc", "", GN_UNARY, "The whole number next to it towards 0.")     \
    X(SQRT, sqrt, 1, FLOAT, "sqrt", "", GN_UNARY, "The square root.")                              \
    X(RSQRT, rsqrt, 1, FLOAT, "rsqrt", "", GN_UNARY, "1 over the square root.")                    \
    X(EXP, exp, 1, FLOAT, "exp", "", GN_UNARY, "e to the power of it.")                            \
    X(EXP2, exp2, 1, FLOAT, "exp2", "", GN_UNARY, "2 to the power of it.")                         \
    X(EXPM1, expm1, 1, FLOAT, "expm1", "", GN_UNARY, "e to the power of it, minus 1.")             \
    X(LDEXP, ldexp, 2, FLOAT, "ldexp", "", GN_BINARY,                                              \
      "The first times 2 to the power of the second.")                                             \
    X(NEXTAFTER, nextafter, 2, FLOAT, "nextafter", "", GN_BINARY,                                  \
      "The next number on the way to the second.")                                                 \
    X(LOG, log, 1, FLOAT, "log", "", GN_UNARY, "The natural logarithm.")                           \
    X(LOG1P, log1p, 1, FLOAT, "log1p", "", GN_UNARY, "The natural logarithm of 1 more.")           \
    X(LOG2, log2, 1, FLOAT, "log2", "", GN_UNARY, "The logarithm to base 2.")                      \
    X(LOG10, log10, 1, FLOAT, "log10", "", GN_UNARY, "The logarithm to base 10.")                  \
    X(LOGADDEXP, logaddexp, 2, FLOAT, "logaddexp", "", GN_BINARY, "log(exp(input) + exp(other)).") \
    X(LOGADDEXP2, logaddexp2, 2, FLOAT, "logaddexp2", "", GN_BINARY, "The same to base 2.")        \
    X(XLOGY, xlogy, 2, FLOAT, "xlogy", "", GN_BINARY,                                              \
      "The first times the logarithm of the second.")                                              \
    X(LOGIT, logit, 2, FLOAT, "logit", "", "input: operand, eps: operand = None",                  \
      "log(x / (1 - x)), of x between eps and 1 - eps where that is given.")                       \
    X(SIN, sin, 1, FLOAT, "sin", "", GN_UNARY, "The sine.")                                        \
    X(COS, cos, 1, FLOAT, "cos", "", GN_UNARY, "The cosine.")                                      \
    X(TAN, tan, 1, FLOAT, "tan", "", GN_UNARY, "The tangent.")                                     \
    X(ASIN, asin, 1, FLOAT, "asin", "arcsin", GN_UNARY, "The angle that has this sine.")           \
    X(ACOS, acos, 1, FLOAT, "acos", "arccos", GN_UNARY, "The angle that has this cosine.")         \
    X(ATAN, atan, 1, FLOAT, "atan", "arctan", GN_UNARY, "The angle that has this tangent.")        \
    X(ATAN2, atan2, 2, FLOAT, "atan2", "arctan2", GN_BINARY,                                       \
      "The angle of the point (other, input).")                                                    \
    X(HYPOT, hypot, 2, FLOAT, "hypot", "", GN_BINARY,                                              \
      "The third side of a triangle with a right angle.")                                          \
    X(SINH, sinh, 1, FLOAT, "sinh", "", GN_UNARY, "The hyperbolic sine.")                          \
    X(COSH, cosh, 1, FLOAT, "cosh", "", GN_UNARY, "The hyperbolic cosine.")                        \
    X(TANH, tanh, 1, FLOAT, "tanh", "", GN_UNARY, "The hyperbolic tangent.")                       \
    X(ASINH, asinh, 1, FLOAT, "asinh", "arcsinh", GN_UNARY, "The inverse of the hyperbolic sine.") \
    X(ACOSH, acosh, 1, FLOAT, "acosh", "arccosh", GN_UNARY,                                        \
      "The inverse of the hyperbolic cosine.")                                                     \
    X(ATANH, atanh, 1, FLOAT, "atanh", "arctanh", GN_UNARY,                                        \
      "The inverse of the hyperbolic tangent.")                                                    \
    X(ERF, erf, 1, FLOAT, "erf", "", GN_UNARY, "The error function.")                              \
    X(ERFC, erfc, 1, FLOAT, "erfc", "", GN_UNARY, "1 minus the error function.")                   \
    X(ERFINV, erfinv, 1, FLOAT, "erfinv", "", GN_UNARY, "The inverse of the error function.")      \
    X(LGAMMA, lgamma, 1, FLOAT, "lgamma", "", GN_UNARY, "The logarithm of |gamma(x)|.")            \
    X(DIGAMMA, digamma, 1, FLOAT, "digamma", "", GN_UNARY, "The derivative of lgamma.")            \
    X(POLYGAMMA, polygamma, 2, FLOAT, "", "", GN_BINARY,                                           \
      "The derivative of digamma of the second, as often as the first says: 1 to 32 times.")       \
    X(SINC, sinc, 1, FLOAT, "sinc", "", GN_UNARY, "sin(pi x) / (pi x), and 1 at 0.")               \
    X(SIGMOID, sigmoid, 1, FLOAT, "sigmoid", "", GN_UNARY, "1 / (1 + exp(-x)).")                   \
    X(RELU, relu, 1, NUMBER, "relu", "", "input: operand, inplace: bool = False",                  \
      "The value, or 0 if that is larger.")                                                        \
    X(RELU6, relu6, 1, NUMBER, "relu6", "", "input: operand, inplace: bool = False",               \
      "x, but at least 0 and at most 6.")                                                          \
    X(LEAKY_RELU, leaky_relu, 2, FLOAT, "leaky_relu", "",                                          \
      "input: operand, negative_slope: operand = 0.01, inplace: bool = False",                     \
      "x, or the slope times x below 0.")                                                          \
    X(ELU, elu, 2, FLOAT, "elu", "",                                                               \
      "input: operand, alpha: operand = 1.0, inplace: bool = False",                               \
      "x, or alpha (exp(x) - 1) below 0.")                                                         \
    X(CELU, celu, 2, FLOAT, "celu", "",                                                            \
      "input: operand, alpha: operand = 1.0, inplace: bool = False",                               \
      "x, or alpha (exp(x / alpha) - 1) below 0.")                                                 \
    X(SELU, selu, 1, FLOAT, "selu", "", "input: operand, inplace: bool = False",                   \
      "elu with the alpha, and times the scale, of self-normalizing networks.")                    \
    X(GELU, gelu, 1, FLOAT, "gelu", "", GN_UNARY ", *, approximate: text = 'none'",                \
      "x times the normal distribution up to x.")                                                  \
    X(GELU_TANH, gelu_tanh, 1, FLOAT, "", "", GN_UNARY, "GELU by the hyperbolic tangent.")         \
    X(SILU, silu, 1, FLOAT, "silu", "", "input: operand, inplace: bool = False",                   \
      "x times its sigmoid.")                                                                      \
    X(HARDSWISH, hardswish, 1, FLOAT, "hardswish", "", "input: operand, inplace: bool = False",    \
      "x relu6(x + 3) / 6.")                                                                       \
    X(MISH, mish, 1, FLOAT, "mish", "", "input: operand, inplace: bool = False",                   \
      "x tanh(log(1 + exp(x))).")                                                                  \
    X(SOFTPLUS, softplus, 3, FLOAT, "softplus", "",                                                \
      "input: operand, beta: operand = 1.0, threshold: operand = 20.0",                            \
      "log(1 + exp(beta x)) / beta, or x where beta x is above the threshold.")                    \
    X(LOG_SIGMOID, log_sigmoid, 1, FLOAT, "logsigmoid", "log_sigmoid", GN_UNARY,                   \
      "The logarithm of the sigmoid.")                                                             \
    X(ISNAN, isnan, 1, TEST, "isnan", "", GN_UNARY, "Whether it is no number.")                    \
    X(ISINF, isinf, 1, TEST, "isinf", "", GN_UNARY, "Whether it is infinite.")                     \
    X(ISFINITE, isfinite, 1, TEST, "isfinite", "", GN_UNARY,                                       \
      "Whether it is a number, and not infinite.")                                                 \
    X(CLAMP, clamp, 3, ANY, "hardtanh", "",                                                        \
      "input: operand, min_val: operand = -1, max_val: operand = 1, inplace: bool = False",        \
      "The value, or a bound where it is beyond it.")                                              \
    X(LERP, lerp, 3, FLOAT, "lerp", "", "input: operand, end: operand, weight: operand",           \
      "What lies between two, a weight of the way.")                                               \
    X(WHERE, where, 3, SELECT, "", "", "condition: Tensor, input: operand, other: operand",        \
      "The second where the first is true, else the third.")

typedef enum gn_op {
#define GN_OP_ENUM(NAME, ...) GN_OP_##NAME,
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

/* The order of elements in memory, which PyTorch calls memory format. */
typedef enum gn_memory_format {
    GN_FORMAT_CONTIGUOUS,
    GN_FORMAT_PRESERVE,         /* the order of the tensor itself, without gaps */
    GN_FORMAT_CHANNELS_LAST,    /* of 4 dimensions N, C, H, W: in memory N, H, W, C */
    GN_FORMAT_CHANNELS_LAST_3D, /* of 5 dimensions N, C, D, H, W: in memory N, D, H, W, C */
} gn_memory_format;

/* The format of a name such as "channels_last". */
GN_API gn_status gn_memory_format_find(const char *name, gn_memory_format *format) GN_NODISCARD;

GN_API bool gn_tensor_has_format(const gn_tensor *tensor, gn_memory_format format);

/* The tensor itself if it has the format and need not be copied, else a copy. */
GN_API gn_status gn_tensor_to_format(gn_tensor *tensor, gn_memory_format format, bool is_copied,
                                     gn_tensor **result) GN_NODISCARD;

/* gn_cast() and gn_tensor_to() with a result in the order of the tensor: GN_FORMAT_PRESERVE. A tensor without gaps keeps its
 * strides. */
GN_API gn_status gn_cast_in_order(gn_tensor *tensor, gn_dtype dtype,
                                  gn_tensor **result) GN_NODISCARD;
GN_API gn_status gn_tensor_to_in_order(gn_tensor *tensor, gn_device *device,
                                       gn_tensor **result) GN_NODISCARD;

/* A tensor whose elements are not set. */
GN_API gn_status gn_tensor_create_format(gn_dtype dtype, int ndim, const int64_t *sizes,
                                         gn_device *device, gn_memory_format format,
                                         gn_tensor **result) GN_NODISCARD;

/* Copies elements, converted and broadcast, into a tensor. The two may overlap. */
GN_API gn_status gn_assign(gn_tensor *out, gn_operand value) GN_NODISCARD;

/* A tensor of one number. */
GN_API gn_status gn_full(gn_scalar value, gn_dtype dtype, int ndim, const int64_t *sizes,
                         gn_device *device, gn_tensor **result) GN_NODISCARD;

/* start + i step for i below `count`: computed in float64 if both are floating, in int64 (which wraps) if neither is,
 * or uint64 where that is the type or the start needs it, and converted. */
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
 * products of integers and bool are int64, those of uint64 uint64; means are floating. Deterministic, whatever the number of threads.
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

/* Integers from `low` to before `high`, which the type must have. For uint64 both are the bits of unsigned numbers. */
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

/* The same in the background: gn_kernel_wait() waits for it. A kernel that does not compile is printed, and fails again where it
 * is needed. */
GN_API gn_status gn_warm_up_begin(gn_device *device) GN_NODISCARD;

#ifdef __cplusplus
}
#endif

#endif
