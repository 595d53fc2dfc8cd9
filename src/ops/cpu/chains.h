/*
 * chains.h: several steps over the same elements in one loop. A value that the next step alone reads stays in vector
 * registers; as a loop of its own, each step would write it to the first-level cache and read it again.
 *
 *     load x | subtract_row mean | store | multiply_row scale | multiply weight | add bias | store | end
 *
 * A chain has one value, `x` of the codes below. It is loaded first, and stored where a store says so.
 *
 * Invariants:
 *   CH1 each step rounds its result to the type, as the loop of the operation does: the bits are those of the loops.
 *   CH2 a store may write where the chain reads, at the same element: elements are taken in order, and a step of some
 *       elements comes before the next step of them.
 *
 * Threads: any, at once.
 */
#ifndef GNI_OPS_CPU_CHAINS_H
#define GNI_OPS_CPU_CHAINS_H

#include "ops/op.h"
#include "tensor/dtype.h"

/* Steps of two operands: what they are, and the operation, with the chain's value as operand number 0 or 1. */
#define GNI_CHAIN_LIST(X)                \
    X(ADD, x + y, ADD, 0)                \
    X(ADD_TO, y + x, ADD, 1)             \
    X(SUBTRACT, x - y, SUBTRACT, 0)      \
    X(SUBTRACT_FROM, y - x, SUBTRACT, 1) \
    X(MULTIPLY, x *y, MULTIPLY, 0)       \
    X(MULTIPLY_WITH, y *x, MULTIPLY, 1)  \
    X(DIVIDE, x / y, DIVIDE, 0)          \
    X(DIVIDE_INTO, y / x, DIVIDE, 1)

enum gni_chain_code {
    GNI_CHAIN_END,
    GNI_CHAIN_LOAD, /* the first step, and no other */
    GNI_CHAIN_STORE,
    GNI_CHAIN_NEGATIVE,
    GNI_CHAIN_SQUARE, /* x * x */
    GNI_CHAIN_DOUBLE, /* x + x */
#define GNI_CHAIN_ENUM(CODE, expression, op, place) GNI_CHAIN_##CODE, GNI_CHAIN_##CODE##_ROW,
    GNI_CHAIN_LIST(GNI_CHAIN_ENUM)
#undef GNI_CHAIN_ENUM
};

struct gni_chain_step {
    enum gni_chain_code code;
    void *
        data; /* elements of all rows, one behind the other; of _ROW: one for each row; else NULL */
};

/* Runs the steps up to GNI_CHAIN_END over `rows` rows of `columns` elements each. */
typedef void (*gni_chain)(const struct gni_chain_step *steps, size_t rows, size_t columns);

/* For float32 and float64; NULL for others. */
gni_chain gni_chain_find(gn_dtype computing);

enum {
    GNI_CHAIN_BOTH = 2,   /* see below */
    GNI_CHAIN_BLOCK = 64, /* elements that are taken at a time; the rest of a row takes as long */
};

/* The code of an operation. `place`: which operand is the chain's value, GNI_CHAIN_BOTH: both are. `is_row`: the other one is
 * one for each row. False if a chain cannot have it. */
bool gni_chain_code_find(enum gni_op op, int place, bool is_row, enum gni_chain_code *code);

#endif
