/*
 * keys.c: blocks of elements to keys and back; plain loops that compilers turn into vector instructions: those that
 * every processor has, and AVX2 for one that has it.
 */
#include "ops/cpu/keys.h"

#include "base/error.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* A function of the name gni_##name for its inline body `name`. */
#if defined(__x86_64__)
#define FOR_PROCESSORS(name, parameters, arguments)                    \
    __attribute__((target("avx2"))) static void name##_avx2 parameters \
    {                                                                  \
        name arguments;                                                \
    }                                                                  \
    static void name##_basic parameters                                \
    {                                                                  \
        name arguments;                                                \
    }                                                                  \
    void gni_##name parameters                                         \
    {                                                                  \
        if (__builtin_cpu_supports("avx2"))                            \
            name##_avx2 arguments;                                     \
        else                                                           \
            name##_basic arguments;                                    \
    }
#else
#define FOR_PROCESSORS(name, parameters, arguments) \
    void gni_##name parameters                      \
    {                                               \
        name arguments;                             \
    }
#endif

/* Elements are read as bytes: what they are in C, the caller knows. */
#define KEYS_EACH(type, expression)                          \
    for (size_t i = 0; i < count; i++) {                     \
        type bits;                                           \
        memcpy(&bits, bytes + i * sizeof bits, sizeof bits); \
        keys[i] = (expression) ^ mask;                       \
    }

#define ELEMENTS_EACH(type, expression)                      \
    for (size_t i = 0; i < count; i++) {                     \
        type key = (type)(keys[i] ^ mask);                   \
        type bits = (type)(expression);                      \
        memcpy(bytes + i * sizeof bits, &bits, sizeof bits); \
    }

/* What the key of an integer differs in from its bits: the sign bit of a signed type. */
INLINE uint64_t key_sign(gn_dtype dtype)
{
    bool is_signed = gni_dtype_kind(dtype) == GNI_KIND_INTEGER && gni_dtypes[dtype].is_signed;
    return is_signed ? gni_key_zero(dtype) : 0;
}

INLINE void keys_load32(gn_dtype dtype, const void *in, size_t count, uint64_t flip, uint32_t *keys)
{
    const unsigned char *bytes = in;
    uint32_t mask = (uint32_t)(flip ^ key_sign(dtype));
    gni_assert(gni_dtype_size(dtype) <= sizeof *keys);
    switch (dtype) {
    case GN_BOOL:
    case GN_UINT8:
    case GN_INT8:
        KEYS_EACH(uint8_t, (uint32_t)bits)
        break;
    case GN_UINT16:
    case GN_INT16:
        KEYS_EACH(uint16_t, (uint32_t)bits)
        break;
    case GN_UINT32:
    case GN_INT32:
        KEYS_EACH(uint32_t, bits)
        break;
    case GN_FLOAT16:
        KEYS_EACH(uint16_t, gni_key_float16(bits))
        break;
    case GN_BFLOAT16:
        KEYS_EACH(uint16_t, gni_key_bfloat16(bits))
        break;
    case GN_FLOAT32:
        KEYS_EACH(uint32_t, gni_key_float32(bits))
        break;
    default:
        break;
    }
}

INLINE void keys_load64(gn_dtype dtype, const void *in, size_t count, uint64_t flip, uint64_t *keys)
{
    const unsigned char *bytes = in;
    uint64_t mask = flip ^ key_sign(dtype);
    if (dtype == GN_INT64 || dtype == GN_UINT64) {
        KEYS_EACH(uint64_t, bits)
        return;
    }
    if (dtype == GN_FLOAT64) {
        KEYS_EACH(uint64_t, gni_key_float64(bits))
        return;
    }
    uint32_t block[GNI_KEYS_BLOCK];
    size_t size = gni_dtype_size(dtype);
    for (size_t done = 0; done < count; done += GNI_KEYS_BLOCK) {
        size_t n = count - done < GNI_KEYS_BLOCK ? count - done : GNI_KEYS_BLOCK;
        keys_load32(dtype, bytes + done * size, n, flip, block);
        for (size_t i = 0; i < n; i++)
            keys[done + i] = block[i];
    }
}

INLINE void keys_store32(gn_dtype dtype, const uint32_t *keys, size_t count, uint64_t flip,
                         void *out)
{
    unsigned char *bytes = out;
    uint32_t mask = (uint32_t)(flip ^ key_sign(dtype));
    gni_assert(gni_dtype_size(dtype) <= sizeof *keys);
    switch (dtype) {
    case GN_BOOL:
    case GN_UINT8:
    case GN_INT8:
        ELEMENTS_EACH(uint8_t, key)
        break;
    case GN_UINT16:
    case GN_INT16:
        ELEMENTS_EACH(uint16_t, key)
        break;
    case GN_UINT32:
    case GN_INT32:
        ELEMENTS_EACH(uint32_t, key)
        break;
    case GN_FLOAT16:
    case GN_BFLOAT16:
        ELEMENTS_EACH(uint16_t, (key & 0x8000u) != 0 ? key ^ 0x8000u : ~(uint32_t)key)
        break;
    case GN_FLOAT32:
        ELEMENTS_EACH(uint32_t, (key & 0x80000000u) != 0 ? key ^ 0x80000000u : ~key)
        break;
    default:
        break;
    }
}

INLINE void keys_store64(gn_dtype dtype, const uint64_t *keys, size_t count, uint64_t flip,
                         void *out)
{
    unsigned char *bytes = out;
    uint64_t mask = flip ^ key_sign(dtype);
    const uint64_t sign = (uint64_t)1 << 63;
    if (dtype == GN_INT64 || dtype == GN_UINT64) {
        ELEMENTS_EACH(uint64_t, key)
        return;
    }
    if (dtype == GN_FLOAT64) {
        ELEMENTS_EACH(uint64_t, (key & sign) != 0 ? key ^ sign : ~key)
        return;
    }
    uint32_t block[GNI_KEYS_BLOCK];
    size_t size = gni_dtype_size(dtype);
    for (size_t done = 0; done < count; done += GNI_KEYS_BLOCK) {
        size_t n = count - done < GNI_KEYS_BLOCK ? count - done : GNI_KEYS_BLOCK;
        for (size_t i = 0; i < n; i++)
            block[i] = (uint32_t)keys[done + i];
        keys_store32(dtype, block, n, flip, bytes + done * size);
    }
}

FOR_PROCESSORS(keys_load32,
               (gn_dtype dtype, const void *in, size_t count, uint64_t flip, uint32_t *keys),
               (dtype, in, count, flip, keys))
FOR_PROCESSORS(keys_load64,
               (gn_dtype dtype, const void *in, size_t count, uint64_t flip, uint64_t *keys),
               (dtype, in, count, flip, keys))
FOR_PROCESSORS(keys_store32,
               (gn_dtype dtype, const uint32_t *keys, size_t count, uint64_t flip, void *out),
               (dtype, keys, count, flip, out))
FOR_PROCESSORS(keys_store64,
               (gn_dtype dtype, const uint64_t *keys, size_t count, uint64_t flip, void *out),
               (dtype, keys, count, flip, out))
