/*
 * common.cuh: the few things that header-free CUDA C cannot say in the same words for NVRTC and for
 * the simulator. It goes in front of a kernel's source under both.
 *
 *   gn_half_to_float(bits), gn_float_to_half(value)            IEEE half precision as 16 bits
 *   gn_bfloat16_to_float(bits), gn_float_to_bfloat16(value)    bfloat16 as 16 bits
 *   GN_DYN_SHARED(type, name)                                  the block's dynamic shared memory
 *
 * Conversions to 16 bits round to the nearest, ties to even; NaNs stay NaNs (0x7fff on the GPU, and
 * so here).
 */
#define GN_DYN_SHARED(type, name) extern __shared__ type name[];

static __device__ __forceinline__ float gn_bfloat16_to_float(unsigned short bits)
{
    return __uint_as_float((unsigned)bits << 16);
}

#ifdef __GENESIS_SIM__

static __device__ __forceinline__ float gn_half_to_float(unsigned short bits)
{
    unsigned sign = (unsigned)(bits & 0x8000u) << 16, rest = bits & 0x7fffu;
    if (rest >= 0x7c00u) /* infinity, NaN */
        return __uint_as_float(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    if (rest >= 0x400u)
        return __uint_as_float(sign | ((rest << 13) + 0x38000000u));
    float magnitude = (float)(int)rest * 5.9604644775390625e-8f; /* 2^-24: exact */
    return __uint_as_float(sign | __float_as_uint(magnitude));
}

static __device__ __forceinline__ unsigned short gn_float_to_half(float value)
{
    unsigned bits = __float_as_uint(value), rest = bits & 0x7fffffffu;
    unsigned sign = bits >> 16 & 0x8000u;
    if (rest > 0x7f800000u)
        return 0x7fffu;
    if (rest >= 0x477ff000u) /* rounds to 65536 or more */
        return (unsigned short)(sign | 0x7c00u);
    if (rest < 0x38800000u) {
        /* A subnormal half: adding 0.5 puts its last bit at the last bit of a float and rounds. */
        unsigned rounded = __float_as_uint(__uint_as_float(rest) + 0.5f) - 0x3f000000u;
        return (unsigned short)(sign | rounded);
    }
    rest += 0xfffu + (rest >> 13 & 1u);
    return (unsigned short)(sign | (rest - 0x38000000u) >> 13);
}

static __device__ __forceinline__ unsigned short gn_float_to_bfloat16(float value)
{
    unsigned bits = __float_as_uint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return 0x7fffu;
    return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#else

static __device__ __forceinline__ float gn_half_to_float(unsigned short bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

static __device__ __forceinline__ unsigned short gn_float_to_half(float value)
{
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

static __device__ __forceinline__ unsigned short gn_float_to_bfloat16(float value)
{
    unsigned short bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

#endif
