/*
 * keys.h: elements as unsigned integers in the same order, so that one sort serves every type.
 *
 *   bool, unsigned       the bits                  int8 .. int64       the sign bit flipped
 *   floating, negative   all bits flipped          floating, positive  the sign bit set
 *   -0 and +0            one key                   NaN                 the largest key, for every NaN
 *
 * Invariants:
 *   SK1 key(a) < key(b) exactly when a is before b in ascending order; equal keys are equal elements.
 *   SK2 `flip` is 0, or gni_key_mask() for descending order: keys are stored exclusive-or it.
 *   SK3 Going back from a key gives the element, but +0 for -0, and one NaN for all. Whoever needs the very bits
 *        takes those from the elements: gni_key_zero() and gni_key_nan() say which keys these are.
 *
 * Keys have 32 bits for elements of up to 4 bytes, 64 bits for any element. Threads: pure functions.
 */
#ifndef GNI_OPS_CPU_KEYS_H
#define GNI_OPS_CPU_KEYS_H

#include "tensor/dtype.h"

/* Elements that are converted at a time where keys are not kept: a few KiB on the stack. */
enum {
    GNI_KEYS_BLOCK = 512,
};

/* How many low bits of a key can differ. */
static inline unsigned gni_key_bits(gn_dtype dtype)
{
    return 8 * (unsigned)gni_dtype_size(dtype);
}

static inline uint64_t gni_key_mask(gn_dtype dtype)
{
    return UINT64_MAX >> (64 - gni_key_bits(dtype));
}

/* The keys of NaN and of zero. Only floating types have several elements with one key. */
static inline uint64_t gni_key_nan(gn_dtype dtype)
{
    return gni_key_mask(dtype);
}

static inline uint64_t gni_key_zero(gn_dtype dtype)
{
    return (gni_key_mask(dtype) >> 1) + 1;
}

static inline uint32_t gni_key_float16(uint16_t bits)
{
    uint32_t magnitude = bits & 0x7fffu;
    uint32_t key = (bits & 0x8000u) != 0 ? (uint16_t)~bits : bits | 0x8000u;
    key = magnitude == 0 ? 0x8000u : key;
    return magnitude > 0x7c00u ? 0xffffu : key;
}

static inline uint32_t gni_key_bfloat16(uint16_t bits)
{
    uint32_t magnitude = bits & 0x7fffu;
    uint32_t key = (bits & 0x8000u) != 0 ? (uint16_t)~bits : bits | 0x8000u;
    key = magnitude == 0 ? 0x8000u : key;
    return magnitude > 0x7f80u ? 0xffffu : key;
}

static inline uint32_t gni_key_float32(uint32_t bits)
{
    int32_t magnitude = (int32_t)(bits & 0x7fffffffu); /* signed: SSE2 compares nothing else */
    uint32_t sign = 0 - (bits >> 31);
    uint32_t key = bits ^ (sign | 0x80000000u);
    key = magnitude == 0 ? 0x80000000u : key;
    return magnitude > 0x7f800000 ? 0xffffffffu : key;
}

static inline uint64_t gni_key_float64(uint64_t bits)
{
    const uint64_t sign = (uint64_t)1 << 63;
    uint64_t magnitude = bits & ~sign;
    uint64_t key = bits ^ ((uint64_t) - (int64_t)(bits >> 63) | sign);
    key = magnitude == 0 ? sign : key;
    return magnitude > (uint64_t)0x7ff << 52 ? UINT64_MAX : key;
}

/* The keys of `count` elements; the first for elements of at most 4 bytes. */
void gni_keys_load32(gn_dtype dtype, const void *in, size_t count, uint64_t flip, uint32_t *keys);
void gni_keys_load64(gn_dtype dtype, const void *in, size_t count, uint64_t flip, uint64_t *keys);

/* Back to elements. `out` may be the address of the keys where both have the same size. */
void gni_keys_store32(gn_dtype dtype, const uint32_t *keys, size_t count, uint64_t flip, void *out);
void gni_keys_store64(gn_dtype dtype, const uint64_t *keys, size_t count, uint64_t flip, void *out);

#endif
