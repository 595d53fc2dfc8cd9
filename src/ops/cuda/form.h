/*
 * form.h: forms: which programs are one kernel.
 *
 * A form is everything of a program that its kernel's text depends on: the steps and types, which operands are
 * contiguous, the number of dimensions, the width of indices; not the sizes, strides, addresses and numbers, which
 * are arguments. Programs of one form are one kernel; generate.h makes its text.
 */
#ifndef GNI_OPS_CUDA_FORM_H
#define GNI_OPS_CUDA_FORM_H

#include "ops/backend.h"

/* How an operand's address follows from the index of an element. */
enum gni_access {
    GNI_ACCESS_NUMBER,       /* no address: an argument */
    GNI_ACCESS_ONE,          /* one element for all */
    GNI_ACCESS_CONTIGUOUS,   /* the index itself */
    GNI_ACCESS_STRIDED,      /* by the index in each dimension; also: */
    GNI_ACCESS_STRIDED_PACK, /* a pack's elements are neighbours in memory */
    GNI_ACCESS_STRIDED_ONE,  /* a pack's elements are one */
    GNI_ACCESS_STRIDED_TILE, /* neighbours in another dimension than the last one are neighbours in memory */
};

enum gni_fold_kind {
    GNI_FOLD_NONE,    /* elementwise */
    GNI_FOLD_ROWS,    /* a block folds a row, or a part of one */
    GNI_FOLD_SHORT,   /* a warp folds a row, or several */
    GNI_FOLD_COLUMNS, /* a block folds 32 packs of columns side by side, or a part of them */
    GNI_FOLD_SOFTMAX, /* a block or some threads for each row */
};

struct gni_form {
    const struct gni_program *program;
    struct gni_layout layout;
    enum gni_access inputs[GNI_PROGRAM_INPUTS_MOST];
    enum gni_access outputs[GNI_PROGRAM_NODES_MOST];
    bool is_strided; /* an operand is: then sizes and strides are arguments */
    bool is_wide;    /* indices have 64 bits */
    int pack;        /* elements, one behind the other, that a thread loads at once */
    int tile; /* the dimension in which GNI_ACCESS_STRIDED_TILE has its neighbours; -1: there are none */
    int steps; /* of a softmax: packs that a thread keeps; 0: it reads the row twice. Of a fold: packs in flight */
    int threads;    /* of a block */
    int blocks;     /* of a softmax: that a multiprocessor should hold */
    int lanes;      /* of a softmax: threads that share a row */
    bool is_ragged; /* of a softmax: packs do not divide rows */
    enum gni_fold_kind fold;
    gn_reduction reduction;
    short value;     /* that is folded */
    gn_dtype result; /* of a fold */
    bool is_log;     /* of a softmax */
};

enum {
    GNI_CUDA_BLOCK = 256,  /* threads */
    GNI_CUDA_TILE = 32,    /* elements of both dimensions of a tile */
    GNI_FOLD_TOGETHER = 4, /* packs in flight, by default */
    GNI_CUDA_SIGNATURE_MOST =
        64 + 4 * GNI_PROGRAM_INPUTS_MOST + 12 * GNI_PROGRAM_STEPS_MOST + 8 * GNI_PROGRAM_NODES_MOST,
};

/* The form of a program, elementwise; the caller changes it for a fold. */
void gni_form_make(struct gni_form *form, const struct gni_program *program);

/* Makes packs as large as all operands allow: 16 bytes of the largest type, or less. Packs do not go across a multiple
 * of `stretch` elements; 0: it does not matter. */
void gni_form_pack(struct gni_form *form, int64_t stretch);

/* Where inputs of an elementwise form are transposed, makes tiles, which go through shared memory so that everything is
 * read and written in order. Behind gni_form_pack(). Returns how many tiles; 0: none are made. */
int64_t gni_form_tile(struct gni_form *form);

/* Bytes that two forms have in common exactly when their kernels are one; returns how many. */
size_t gni_form_sign(const struct gni_form *form, unsigned char *signature);

#endif
