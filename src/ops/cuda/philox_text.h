/*
 * philox_text.h: what stands before src/ops/philox.h in a kernel's text: its functions become the device's. Same text,
 * same numbers.
 */
#ifndef GNI_OPS_CUDA_PHILOX_TEXT_H
#define GNI_OPS_CUDA_PHILOX_TEXT_H

#define GNI_PHILOX_TYPES                                                              \
    "#define uint32_t unsigned\n#define int32_t int\n"                                \
    "#define uint64_t unsigned long long\n#define int64_t int64\n"                    \
    "#define GNI_PHILOX_PRODUCT(a, b) ((uint64_t)__umulhi(a, b) << 32 | (a) * (b))\n" \
    "#define inline __device__\n"

#endif
