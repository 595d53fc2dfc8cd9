/*
 * dtype.h: the types of elements: sizes, kinds, promotion, and scalars of any of them.
 *
 * Promotion follows PyTorch: the kinds are ordered bool < integer < floating. Two types of one kind give
 * the smallest that holds both (float16 and bfloat16 give float32, an unsigned and a signed type of its size or
 * smaller the next wider signed one); otherwise the higher kind wins with its own width. No integer holds both
 * uint64 and a signed type: these have no common type. A weak operand (a Python number, a tensor without
 * dimensions) counts only if its kind is higher: promote.c in src/ops.
 *
 * A new type is a row of GN_DTYPE_LIST in genesis/tensor.h, and of GNI_INTEGER_LIST below if it is an integer.
 *
 * Threads: pure functions, constant tables, and the default type, which is atomic.
 */
#ifndef GNI_TENSOR_DTYPE_H
#define GNI_TENSOR_DTYPE_H

#include "genesis/tensor.h"

#include <string.h>

enum gni_kind {
    GNI_KIND_BOOL,
    GNI_KIND_INTEGER,
    GNI_KIND_FLOATING,
};

struct gni_dtype_info {
    const char *name;
    size_t size; /* bytes */
    enum gni_kind kind;
    bool is_signed;
    gn_dtype compute; /* what arithmetic is done in: float32 for the halves, else itself */
};

extern const struct gni_dtype_info gni_dtypes[GN_DTYPE_COUNT];

/*
 * The integers for code that is written once for each: ROW(enumerator, name, C type, enumerator of the signed type). Integers
 * of one width are the same bits: copies, sums, products, logic and equality need the signed one's code only.
 */
#define GNI_INTEGER_LIST(ROW)            \
    ROW(UINT8, uint8, uint8_t, INT8)     \
    ROW(INT8, int8, int8_t, INT8)        \
    ROW(UINT16, uint16, uint16_t, INT16) \
    ROW(INT16, int16, int16_t, INT16)    \
    ROW(UINT32, uint32, uint32_t, INT32) \
    ROW(INT32, int32, int32_t, INT32)    \
    ROW(UINT64, uint64, uint64_t, INT64) \
    ROW(INT64, int64, int64_t, INT64)

static inline bool gni_dtype_is_valid(gn_dtype dtype)
{
    return (unsigned)dtype < GN_DTYPE_COUNT;
}

static inline size_t gni_dtype_size(gn_dtype dtype)
{
    return gni_dtypes[dtype].size;
}

static inline enum gni_kind gni_dtype_kind(gn_dtype dtype)
{
    return gni_dtypes[dtype].kind;
}

static inline bool gni_dtype_is_floating(gn_dtype dtype)
{
    return gni_dtype_kind(dtype) == GNI_KIND_FLOATING;
}

static inline bool gni_dtype_is_half(gn_dtype dtype)
{
    return dtype == GN_FLOAT16 || dtype == GN_BFLOAT16;
}

static inline bool gni_dtype_is_unsigned(gn_dtype dtype)
{
    return gni_dtypes[dtype].kind == GNI_KIND_INTEGER && !gni_dtypes[dtype].is_signed;
}

/* What elements are summed and multiplied as: no value of uint64 is lost, and other integers have room. */
static inline gn_dtype gni_dtype_of_sum(gn_dtype dtype)
{
    bool is_kept = gni_dtype_kind(dtype) == GNI_KIND_FLOATING || dtype == GN_UINT64;
    return is_kept ? dtype : GN_INT64;
}

/* The smallest type that both can be converted to; GN_DTYPE_COUNT where there is none. */
gn_dtype gni_dtype_promote(gn_dtype a, gn_dtype b);

/* ---- halves ---------------------------------------------------------------------------------- */

/* Nearest, ties to even; overflow is infinite, NaN stays NaN. A number that float32 does not hold comes by way of
 * gni_float_to_odd(): rounding to the nearest float32 first would round twice. */
uint16_t gni_float16_from(float value);
uint16_t gni_bfloat16_from(float value);
float gni_float16_to(uint16_t bits);
float gni_bfloat16_to(uint16_t bits);

/*
 * A float32 beside a number ("round to odd"): the number itself, or the neighbour whose last bit is 1. It lies on the
 * same side of everything that a half can be and of everything halfway between, so that the half nearest to it is
 * nearest to the number.
 */
static inline float gni_float_to_odd(double value)
{
    float nearest = (float)value;
    uint32_t bits;
    memcpy(&bits, &nearest, sizeof bits);
    double magnitude = value < 0 ? -value : value, made = nearest < 0 ? -nearest : nearest;
    uint32_t odd = (bits - (made > magnitude)) | 1;
    bits = ((made == magnitude) | (value != value)) ? bits : odd;
    memcpy(&nearest, &bits, sizeof bits);
    return nearest;
}

/* The same of an integer: the bits that double does not hold leave their mark in the last one that it does. */
static inline float gni_float_of_unsigned_to_odd(uint64_t value)
{
    uint64_t rounded = value >> 11 << 11 | (uint64_t)((value & 0x7ff) != 0) << 11;
    return gni_float_to_odd((double)(value >> 53 ? rounded : value));
}

static inline float gni_float_of_integer_to_odd(int64_t value)
{
    float magnitude =
        gni_float_of_unsigned_to_odd(value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
    return value < 0 ? -magnitude : magnitude;
}

/* ---- scalars --------------------------------------------------------------------------------- */

/* An integer as a number: of kind GN_UINT64 only where int64 has it not. */
static inline gn_scalar gni_scalar_of_unsigned(uint64_t value)
{
    return (gn_scalar){.kind = value > INT64_MAX ? GN_UINT64 : GN_INT64, .integer = (int64_t)value};
}

/* A number as a double, which may round it. */
double gni_scalar_floating(gn_scalar value);

/* Stores a number as an element. Integers wrap, floating values are truncated towards zero (undefined
 * where they do not fit, as in C, but never a trap), anything that is not 0 is true. */
void gni_scalar_store(gn_scalar value, gn_dtype dtype, void *element);

/* Reads an element. */
gn_scalar gni_scalar_load(gn_dtype dtype, const void *element);

#endif
