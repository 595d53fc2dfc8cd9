/*
 * texts.h: the .cu files of this folder and src/ops/philox.h, as text, each with a final NUL. The build makes them
 * (src/embed.cmake).
 */
#ifndef GNI_OPS_CUDA_TEXTS_H
#define GNI_OPS_CUDA_TEXTS_H

extern const char gni_text_elements[];
extern const char gni_text_extreme[];
extern const char gni_text_fold[];
extern const char gni_text_philox[];
extern const char gni_text_random[];
extern const char gni_text_scan[];
extern const char gni_text_sort[];
extern const char gni_text_softmax[];
extern const char gni_text_matmul[];
extern const char gni_text_index[];
extern const char gni_text_last[];
extern const char gni_text_ordered[];
extern const char gni_text_permutation[];
extern const char gni_text_places[];
extern const char gni_text_search[];

#endif
