/*
 * promote.h: which type an operation computes in, and which its result has.
 *
 * PyTorch's rule: operands count in three groups, tensors with dimensions, tensors without, and numbers. A lower
 * group matters only if its kind (bool, integer, floating) is higher than that of the groups above it. A floating
 * number beside integers makes float32. What numbers that a type has not do in comparisons: elementwise.c.
 */
#ifndef GNI_OPS_PROMOTE_H
#define GNI_OPS_PROMOTE_H

#include "ops/op.h"
#include "tensor/tensor.h"

struct gni_typing {
    enum gni_op op;     /* another one where a type has its own: bool + bool is or */
    bool is_identity;   /* floor of an integer: nothing to compute */
    bool is_copy;       /* a copy or conversion that is contiguous, whatever its operand is */
    gn_dtype computing; /* of the operands, but for the first of where() */
    gn_dtype dtype;     /* of the result */
};

/* The type that an operand is wanted in. */
static inline gn_dtype gni_typing_operand(const struct gni_typing *typing, int i)
{
    return typing->op == GNI_OP_WHERE && i == 0 ? GN_BOOL : typing->computing;
}

/* GN_ERROR_TYPE for uint64 and signed integers of one group. */
gn_status gni_promote(int count, const gn_operand *operands, gn_dtype *dtype) GN_NODISCARD;
gn_status gni_promote_types(gn_dtype a, gn_dtype b, gn_dtype *dtype) GN_NODISCARD;

/* Whether a type has a number; floating types and bool have all, as nearly as they can. */
bool gni_number_fits(gn_scalar number, gn_dtype dtype);

/* Numbers wrap where they become elements, but those that not even int64 has: GN_ERROR_NUMBER. */
gn_status gni_number_check(gn_scalar number, gn_dtype dtype) GN_NODISCARD;

/* GN_ERROR_TYPE where the operation is not defined; GN_ERROR_INVALID_VALUE for integers to a negative power. */
gn_status gni_typing_find(enum gni_op op, const gn_operand *operands,
                          struct gni_typing *typing) GN_NODISCARD;

/*
 * The operations that x to the power of a number is made of: the first is of x, a MULTIPLY after it by x. Returns how
 * many there are, 0 for x itself, or -1: the number has none, and POWER computes it. Results are those of the
 * operations, as in PyTorch: -0.0 to the power of 0.5 is sqrt(-0.0).
 */
enum {
    GNI_POWER_OPS_MOST = 2,
};
int gni_power_ops(gn_dtype computing, gn_scalar exponent, enum gni_op *own);

#endif
