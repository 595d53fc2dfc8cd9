/*
 * genesis/autocast.h: mixed precision: functions convert their tensors to the type that suits them.
 *
 * While it is on for a device, matrix products and convolutions of tensors there are made in a half precision, and functions
 * that need the range or the digits of float32 get that: PyTorch's lists decide (src/autograd/autocast_policies.c).
 *
 *     gn_autocast_set_dtype(GN_DEVICE_CUDA, GN_BFLOAT16);
 *     gn_autocast_set_enabled(GN_DEVICE_CUDA, true);
 *     gn_autocast_enter();
 *     gn_function_call(linear, arguments, &results);
 *     gn_autocast_leave();
 *     gn_autocast_set_enabled(GN_DEVICE_CUDA, false);
 *
 * It is done where functions are called: by gn_function_call(), and by the package for Python. The operations of genesis/ops.h,
 * the steps that a function is made of, and the rules of gradients use the types that they are given. Gradients go back through
 * the conversions: those of a leaf have the leaf's type.
 *
 * A leaf that needs a gradient is converted to the half precision once: the result is kept until the outermost
 * gn_autocast_leave(), or until the leaf is written to.
 *
 * Only floating tensors are converted, and never float64. A function that is given out=, or works in place, is called as it is.
 *
 * Threads: each thread has its own settings, which are off at first, and leaves what it entered.
 */
#ifndef GENESIS_AUTOCAST_H
#define GENESIS_AUTOCAST_H

#include "genesis/function.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a function's tensors become. */
typedef enum gn_autocast_policy {
    GN_AUTOCAST_NONE,       /* they stay */
    GN_AUTOCAST_LOWER,      /* the half precision */
    GN_AUTOCAST_FLOAT32,    /* float32, unless the call names a type */
    GN_AUTOCAST_WIDEST,     /* float32 if one of them is float32, else the half precision */
    GN_AUTOCAST_LIKE_FIRST, /* they stay, and the result gets the type of the first */
    GN_AUTOCAST_REFUSED,    /* an error: the result would have no digits left */
} gn_autocast_policy;

/* The policies of one function, by the type of the device. */
typedef struct gn_autocast_rule {
    unsigned char policy[2];
} gn_autocast_rule;

/* ---- settings of the calling thread ------------------------------------------------------------ */

/* Whether it is on for a type of device, or for any. */
GN_API bool gn_autocast_is_on(void);
GN_API bool gn_autocast_is_enabled(gn_device_type type);
GN_API void gn_autocast_set_enabled(gn_device_type type, bool is_enabled);

/* The half precision: bfloat16 for the CPU and float16 for CUDA at first. GN_ERROR_TYPE for any other type but these two. */
GN_API gn_dtype gn_autocast_get_dtype(gn_device_type type);
GN_API gn_status gn_autocast_set_dtype(gn_device_type type, gn_dtype dtype) GN_NODISCARD;

/* Whether converted leaves are kept. On at first. */
GN_API bool gn_autocast_cache_is_enabled(void);
GN_API void gn_autocast_set_cache_enabled(bool is_enabled);
GN_API void gn_autocast_clear_cache(void);

/* Begins and ends a part of a program; how many are open. With the last one the converted leaves go. */
GN_API int gn_autocast_enter(void);
GN_API int gn_autocast_leave(void);

/* ---- functions ----------------------------------------------------------------------------------- */

/* The rule of a function of the table (its name may have a namespace), of an operation, or of "matmul", "sum", "prod", "cat". */
GN_API gn_autocast_rule gn_autocast_find(const char *name);
GN_API gn_autocast_rule gn_autocast_find_operation(gn_op op);

/* Calls a function of the table: with autocast, where that is on. */
GN_API gn_status gn_function_call(const gn_function *function, const gn_argument *arguments,
                                  gn_results *results) GN_NODISCARD;

/* The same for a caller that has found the rule before, and has seen that autocast is on. */
GN_API gn_status gn_autocast_call(gn_autocast_rule rule, const gn_function *function,
                                  const gn_argument *arguments, gn_results *results) GN_NODISCARD;

/*
 * Converts the tensors among operands for a call that is not one of the table's. made[i] is NULL, or a new reference that
 * operands[i] was replaced by; the caller releases it. On failure all are NULL.
 */
GN_API gn_status gn_autocast_operands(gn_autocast_rule rule, int count, gn_operand *operands,
                                      gn_tensor **made) GN_NODISCARD;

#ifdef __cplusplus
}
#endif

#endif
