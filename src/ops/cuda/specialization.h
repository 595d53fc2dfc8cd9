/*
 * specialization.h: which programs are one kernel.
 *
 * A specialization is everything of a program that its kernel's text depends on: the steps and types, which operands are
 * contiguous, the number of dimensions, the width of indices; not the sizes, strides, addresses and numbers, which
 * are arguments. Programs of one specialization are one kernel; generate.h makes its text.
 */
#ifndef GNI_OPS_CUDA_SPECIALIZATION_H
#define GNI_OPS_CUDA_SPECIALIZATION_H

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

enum gni_reduce_kind {
    GNI_REDUCE_NONE,    /* elementwise */
    GNI_REDUCE_ROWS,    /* a block reduces a row, or a part of one */
    GNI_REDUCE_SHORT,   /* a warp reduces a row, or several */
    GNI_REDUCE_COLUMNS, /* a block reduces 32 packs of columns side by side, or a part of them */
    GNI_REDUCE_SOFTMAX, /* a block or some threads for each row */
};

struct gni_specialization {
    const struct gni_program *program;
    struct gni_layout layout;
    enum gni_access inputs[GNI_PROGRAM_INPUTS_MOST];
    enum gni_access outputs[GNI_PROGRAM_NODES_MOST];
    bool is_strided; /* an operand is: then sizes and strides are arguments */
    bool is_wide;    /* indices have 64 bits */
    int pack;        /* elements, one behind the other, that a thread loads at once */
    int tile; /* the dimension in which GNI_ACCESS_STRIDED_TILE has its neighbours; -1: there are none */
    int steps; /* of a softmax: packs that a thread keeps; 0: it reads the row twice. Of a reduction: packs in flight */
    int threads;    /* of a block */
    int blocks;     /* of a softmax: that a multiprocessor should hold */
    int lanes;      /* of a softmax: threads that share a row */
    bool is_ragged; /* of a softmax: packs do not divide rows */
    enum gni_reduce_kind kind;
    gn_reduction reduction;
    short value;     /* that is reduced */
    gn_dtype result; /* of a reduction */
    bool is_log;     /* of a softmax */
};

enum {
    GNI_CUDA_BLOCK = 256,    /* threads */
    GNI_CUDA_TILE = 32,      /* elements of both dimensions of a tile */
    GNI_REDUCE_TOGETHER = 4, /* packs in flight, by default */
    GNI_CUDA_SIGNATURE_MOST =
        64 + 4 * GNI_PROGRAM_INPUTS_MOST + 12 * GNI_PROGRAM_STEPS_MOST + 8 * GNI_PROGRAM_NODES_MOST,
};

/* The specialization of a program, elementwise; the caller changes it for a reduction. */
void gni_specialization_make(struct gni_specialization *specialization,
                             const struct gni_program *program);

/* Makes packs as large as all operands allow: 16 bytes of the largest type, or less. Packs do not go across a multiple
 * of `stretch` elements; 0: it does not matter. */
void gni_specialization_pack(struct gni_specialization *specialization, int64_t stretch);

/* Where inputs of an elementwise specialization are transposed, makes tiles, which go through shared memory so that everything is
 * read and written in order. Behind gni_specialization_pack(). Returns how many tiles; 0: none are made. */
int64_t gni_specialization_tile(struct gni_specialization *specialization);

/* Bytes that two specializations have in common exactly when their kernels are one; returns how many. The first function
 * gives the part of them that says what a program's steps are. */
size_t gni_steps_sign(const struct gni_program *program, unsigned char *signature);
size_t gni_specialization_sign(const struct gni_specialization *specialization,
                               unsigned char *signature);

#endif
