/*
 * row_kernel.h: kernels of row programs (ops/program.h): what of a program their text depends on, and the text.
 *
 * Some threads share a row. A kernel that *holds* rows loads each chunk of a row once, into registers; one that does not
 * loads it in each phase (row_phases.h) that needs it, when it is in a cache. A program that needs nothing twice is not held:
 * its text is one for many lengths of rows.
 *
 * Invariants:
 *   RK1 how many threads share a row follows from the number of its columns alone, and rows.cu adds in an order that follows
 *       from that: a reduction has the same bits in every kernel;
 *   RK2 all threads of a warp, or of a block that has one row, take part in each reduction;
 *   RK3 how many rows are a *part* follows from the numbers of rows and columns alone. A kernel with sums of columns has a
 *       block for each part, holds rows, and leaves the part's sums behind; columns.cu adds those;
 *   RK4 a kernel that is_ahead loads the next row of its part before it computes with the current one, and what all rows have
 *       once. All its phases use the chunks that were loaded.
 */
#ifndef GNI_OPS_CUDA_ROW_KERNEL_H
#define GNI_OPS_CUDA_ROW_KERNEL_H

#include "base/builder.h"
#include "ops/backend.h"
#include "ops/row_phases.h"

enum gni_row_access {
    GNI_ROW_NUMBER,  /* an argument */
    GNI_ROW_ONE,     /* an element for each row */
    GNI_ROW_DENSE,   /* the elements of a row are neighbours */
    GNI_ROW_STRIDED, /* they are not */
};

enum {
    GNI_ROW_CHUNK = 8,    /* elements that a thread takes at a time: CHUNK of rows.cu */
    GNI_ROW_SEGMENT = 64, /* chunks after which sums of floats become doubles: SEGMENT there */
    GNI_ROW_COLUMNS_MOST = 1 << 30,
    GNI_ROW_ARGUMENTS_MOST =
        16 + (GNI_PROGRAM_INPUTS_MOST + GNI_PROGRAM_NODES_MOST) * (GN_DIMENSIONS_MAX + 1),
};

struct gni_row_kernel {
    const struct gni_program *program;
    struct gni_layout layout;
    int kept_ndim; /* dimensions of the layout that are not of rows */
    enum gni_row_access inputs[GNI_PROGRAM_INPUTS_MOST];
    unsigned char input_vec[GNI_PROGRAM_INPUTS_MOST]; /* elements that are aligned together */
    unsigned char output_vec[GNI_PROGRAM_NODES_MOST];
    bool is_wide;     /* rows and columns need 64 bits */
    bool is_exact;    /* held, and chunks divide a row */
    bool is_complete; /* every thread has as many chunks as the others, and every row is there */
    int lanes;        /* threads that share a row */
    int threads;      /* of a block */
    int blocks;       /* that a multiprocessor should hold */
    int steps;        /* chunks that a thread has, or loads together */
    int turns;        /* of a loop over a chunk, whose other elements rotate (weight.h) */
    int step_turns;   /* of a loop over the chunks of a thread, likewise: all of them, or 1 */
    bool is_held;
    bool is_ahead;  /* RK4 */
    bool is_short;  /* a row is one segment */
    bool is_paired; /* neighbours are computed two at a time */
    signed char pair
        [GNI_PROGRAM_VALUES_MOST]; /* the type of halves that a value can be a pair of; -1: none */
    struct gni_row_values
        absorbed;      /* steps that are one instruction with the rounding that reads them */
    int sum_count;     /* outputs that are sums of columns */
    int64_t part_rows; /* of a part; 0: there are no sums */
    struct gni_row_phases phases;
};

void gni_row_kernel_make(struct gni_row_kernel *kernel, const struct gni_program *program);

/* Whether an input in memory is the same for all rows. */
static inline bool gni_row_kernel_is_same(const struct gni_row_kernel *kernel, int input)
{
    for (int d = 0; d < kernel->kept_ndim; d++)
        if (kernel->layout.strides[input][d] != 0)
            return false;
    return kernel->kept_ndim > 0;
}

/* Whether the text is one for all numbers of threads up to a warp: an argument says how many share a row. */
static inline bool gni_row_kernel_has_any_lanes(const struct gni_row_kernel *kernel)
{
    return !kernel->is_held && kernel->lanes <= 32;
}

/* Elements of a type that a word of a chunk has: chunk of rows.cu. */
static inline int gni_row_in_word(gn_dtype dtype)
{
    size_t size = gni_dtype_size(dtype);
    return size < 4 ? (int)(4 / size) : 1;
}

/* Rows that a block has. */
static inline int gni_row_kernel_rows(const struct gni_row_kernel *kernel)
{
    return kernel->threads / kernel->lanes;
}

/* The type of the slots of a reduction of values of a type: sums of float32 are added as such for a while. */
gn_dtype gni_row_slot_type(gn_reduction reduction, gn_dtype from);

/* Blocks that the kernel is launched with: parts, where there are sums of columns. */
int64_t gni_row_kernel_blocks(const struct gni_row_kernel *kernel);

/* Bytes that two kernels have in common exactly when their texts are one; returns how many, GNI_CUDA_SIGNATURE_MOST at the
 * most (specialization.h). */
size_t gni_row_kernel_sign(const struct gni_row_kernel *kernel, unsigned char *signature);

void gni_row_kernel_name(const struct gni_row_kernel *kernel, char *name, size_t size);
void gni_row_kernel_text(const struct gni_row_kernel *kernel, const char *name,
                         struct gni_builder *text);

/* The kernel's one argument, a struct of 8-byte fields; returns their number. `partial`: where the sums of parts go,
 * float [blocks][sum_count][columns]. */
int gni_row_kernel_arguments(const struct gni_row_kernel *kernel, void *partial,
                             uint64_t *arguments);

#endif
