/*
 * conv_layout.h: how a box of an image lies in memory while it is convolved on the CPU.
 *
 * Rows of a box are copied one behind the other, with zeros where the image is padded. In this memory what a tap of the
 * kernel reads for all places is one run, shifted by the tap's offset: a convolution is a sum of shifted runs, and nothing
 * is gathered. The places between rows and images give sums that nobody reads.
 *
 *     row 0: 0 a b c | row 1: 0 d e f | row 2: ...      3 columns, 1 of padding: a row's padding behind is that of the next
 *                                                       row in front
 *
 * With a stride of s there are s such images in each dimension (phases), each of every s-th element.
 *
 * A *pass* is what is computed with one such layout: all of a convolution, or the part of a transposed one whose elements
 * are s apart.
 */
#ifndef GNI_OPS_CPU_CONV_LAYOUT_H
#define GNI_OPS_CPU_CONV_LAYOUT_H

#include "ops/cpu/conv_tiles.h"
#include "tensor/tape.h"

/* One dimension of a pass. Positions count elements of the padded image, from the first that is read. The last three are
 * set by gni_conv_pass_plan(). */
struct gni_conv_axis {
    int64_t in, out;             /* elements that are read from, and places */
    int64_t begin, step;         /* the element at position 0; positions from a place to the next */
    int64_t span;                /* positions that a place reads */
    int64_t taps;                /* of the kernel, of which this is each kernel_step-th */
    int64_t kernel, kernel_step; /* the first tap's element of the kernel */
    int64_t position, tap_step;  /* the first tap's position at the first place */
    int64_t to, to_step;         /* where places are in what is made */
    int64_t box;                 /* places of a box */
    int64_t length, phases;      /* elements of a phase in memory, and how many phases */
};

struct gni_conv_pass {
    struct gni_conv_axis axes[GNI_CONV_DIMENSIONS];
    int64_t images;                         /* of a box */
    int64_t boxes[GNI_CONV_DIMENSIONS + 1]; /* how many: of images, and in each dimension */
    int64_t box_count;
    int64_t places;       /* of a box, with those between rows; a multiple of a register's lanes */
    int64_t phase, plane; /* elements of a phase, and of all phases of a channel */
    int64_t taps;
};

/* Elements of a tensor: images, channels, depth, height, width. */
struct gni_conv_side {
    char *data;
    gn_dtype dtype, computing;
    int64_t strides[GNI_CONV_DIMENSIONS + 2];
};

struct gni_conv_box {
    int64_t image, images;
    int64_t at[GNI_CONV_DIMENSIONS], count[GNI_CONV_DIMENSIONS];
    int64_t places; /* with those between rows */
};

struct gni_conv_side gni_conv_side_of(const gn_tensor *tensor, gn_dtype computing);

/* The one pass of a convolution. */
void gni_conv_pass_forward(const struct gni_convolution *convolution, struct gni_conv_pass *pass);

/* Pass `index` of a transposed convolution. There are as many as the product of the strides, or in a dimension as many as
 * the image has elements, if these are fewer. */
void gni_conv_pass_back(const struct gni_convolution *convolution, int64_t index,
                        struct gni_conv_pass *pass);

/* Chooses boxes of about `most` places, and of fewer while there are not `least` boxes. */
void gni_conv_pass_plan(struct gni_conv_pass *pass, int64_t images, int64_t most, int64_t least,
                        size_t lanes);

/* The offsets of all taps, in the order of the kernel's dimensions, and which elements of the kernel they are. */
void gni_conv_pass_taps(const struct gni_conv_pass *pass, const int64_t *kernel, int64_t *offsets,
                        int64_t *elements);

struct gni_conv_box gni_conv_box_at(const struct gni_conv_pass *pass, int64_t images,
                                    int64_t index);

/* Copies a box of `channels` channels from `channel` on: all phases, each channel in `plane` elements. */
void gni_conv_pack(const struct gni_conv_pass *pass, const struct gni_conv_side *side,
                   const struct gni_conv_box *box, int64_t channel, int64_t channels, void *to);

/* The same for what is at the places of a box: `stride` elements for each channel, 0 between rows. */
void gni_conv_pack_places(const struct gni_conv_pass *pass, const struct gni_conv_side *side,
                          const struct gni_conv_box *box, int64_t channel, int64_t channels,
                          void *to, int64_t stride);

/* Stores a box of sums. */
void gni_conv_unpack(const struct gni_conv_pass *pass, const struct gni_conv_side *side,
                     const struct gni_conv_box *box, int64_t channel, int64_t channels,
                     const void *from, int64_t stride);

#endif
