/*
 * convolution.h: convolutions, transposed ones, and the gradient of their weights, as operations on the tape.
 *
 * struct gni_convolution (tensor/tape.h) says what is given and made. Images and results have 5 dimensions here: images,
 * channels, depth, height, width. All tensors have one floating type and one device, and the shapes that the struct says.
 *
 * The CPU has loops of its own (src/ops/cpu/cpu_convolution.h). Other devices compute matrix products of windows, and of
 * images of one channel for each group a sum over the taps. Which of the two it is is asked in one place:
 * struct gni_backend, convolve.
 */
#ifndef GNI_OPS_CONVOLUTION_H
#define GNI_OPS_CONVOLUTION_H

#include "ops/expression.h"
#include "tensor/tape.h"

/* `second` is NULL for the kinds that have one operand, `bias` where there is none. */
gn_tensor *gni_scope_convolve(struct gni_scope *scope, const struct gni_convolution *convolution,
                              gn_tensor *first, gn_tensor *second, gn_tensor *bias);

/*
 * An argument of one integer, or of one for each of `count` dimensions, as the last of three; `values` keeps what it has for
 * the others, and for all if nothing is given. GN_ERROR_INVALID_VALUE for numbers below `least`.
 */
void gni_window_sizes(struct gni_scope *scope, const char *function, const char *name,
                      const gn_argument *argument, int count, int64_t least,
                      int64_t values[GNI_CONV_DIMENSIONS]);

/* An image with 5 dimensions, as a view or a reshaped value, of one that has `count` behind its channels, and may have no
 * images; and the way back for a tensor that was made of it. */
gn_tensor *gni_image_widen(struct gni_scope *scope, gn_tensor *image, int count);
gn_tensor *gni_image_narrow(struct gni_scope *scope, gn_tensor *made, int count, bool has_images);

/* The places of windows in a dimension: how often they fit, with padding on both sides; at most 0: not at all. */
int64_t gni_window_count(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                         int64_t dilation, bool is_ceil);

#endif
