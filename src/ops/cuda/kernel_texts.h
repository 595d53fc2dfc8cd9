/*
 * kernel_texts.h: the .cu files of this folder and src/ops/philox.h, as text, each with a final NUL. The build makes them
 * (src/embed.cmake).
 */
#ifndef GNI_OPS_CUDA_KERNEL_TEXTS_H
#define GNI_OPS_CUDA_KERNEL_TEXTS_H

extern const char gni_text_elements[];
extern const char gni_text_extreme[];
extern const char gni_text_reduce[];
extern const char gni_text_reductions[];
extern const char gni_text_rows[];
extern const char gni_text_columns[];
extern const char gni_text_list[];
extern const char gni_text_philox[];
extern const char gni_text_random[];
extern const char gni_text_scan[];
extern const char gni_text_sort[];
extern const char gni_text_softmax[];
extern const char gni_text_matmul[];
extern const char gni_text_index[];
extern const char gni_text_interpret[];
extern const char gni_text_interpret_columns[];
extern const char gni_text_interpret_reduce[];
extern const char gni_text_interpret_result[];
extern const char gni_text_interpret_rows[];
extern const char gni_text_interpret_softmax[];
extern const char gni_text_block_join[];
extern const char gni_text_ordered[];
extern const char gni_text_permutation[];
extern const char gni_text_places[];
extern const char gni_text_search[];

/* What stands before src/ops/philox.h in a kernel: its functions become the device's. Same text, same numbers. */
#define GNI_PHILOX_TYPES                                                              \
    "#define uint32_t unsigned\n#define int32_t int\n"                                \
    "#define uint64_t unsigned long long\n#define int64_t int64\n"                    \
    "#define GNI_PHILOX_PRODUCT(a, b) ((uint64_t)__umulhi(a, b) << 32 | (a) * (b))\n" \
    "#define inline __device__\n"

#endif
