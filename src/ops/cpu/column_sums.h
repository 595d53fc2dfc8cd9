/*
 * column_sums.h: sums of columns that a row program (cpu_row_program.c) computes beside other things: gradients of weights and
 * biases, from the tiles that the gradient of the input is made of.
 *
 *     rows     0 .. 7 | 8 .. 15 | ...    | chunk_rows .. | ...
 *              added in pairs as float,  | the next chunk has totals of its own
 *              then to the chunk's totals,
 *              which are double
 *
 * Invariant:
 *   CS1 elements are added as cpu_reduce.c adds them: chunks have as many rows, groups of GNI_REDUCE_ROWS begin with the chunk,
 *       and totals are added in the order of chunks. So a sum has the same bits wherever it is computed.
 *
 * Threads: a chunk is one thread's, with a struct gni_column_chunk of its own.
 */
#ifndef GNI_OPS_CPU_COLUMN_SUMS_H
#define GNI_OPS_CPU_COLUMN_SUMS_H

#include "ops/cpu/loops.h"
#include "ops/program.h"

enum {
    GNI_COLUMN_SUMS_MOST = 8, /* of a program */
};

struct gni_column_sums {
    const struct gni_program *program;
    int64_t rows, columns, chunk_rows, chunks;
    int count;
    short outputs[GNI_COLUMN_SUMS_MOST];
    gni_row_reducer reducer;
    double *totals; /* [chunks][count][columns], owned */
};

struct gni_column_chunk {
    const struct gni_column_sums *sums;
    int64_t number;
    float *copies;  /* [count][GNI_REDUCE_ROWS][columns], owned */
    float *nothing; /* [columns] of -0, which change no sum; behind the copies */
    const float *rows[GNI_COLUMN_SUMS_MOST][GNI_REDUCE_ROWS]; /* of the current group */
};

/* Rows of a chunk; cpu_reduce.c takes as many. */
int64_t gni_column_chunk_rows(int64_t columns);

/* How many sums a program has. */
int gni_column_sums_count(const struct gni_program *program);

/* Fails for want of memory. */
gn_status gni_column_sums_init(struct gni_column_sums *sums,
                               const struct gni_program *program) GN_NODISCARD;
void gni_column_sums_deinit(struct gni_column_sums *sums);

/* A chunk begins; false for want of memory. */
bool gni_column_chunk_init(struct gni_column_chunk *chunk, const struct gni_column_sums *sums,
                           int64_t number) GN_NODISCARD;
/* It ends: what is left of the last group is added. */
void gni_column_chunk_deinit(struct gni_column_chunk *chunk);

/* Which row of its group a row is. */
int gni_column_chunk_group(const struct gni_column_chunk *chunk, int64_t row);

/* Where the chunk copies elements of a row from a column on, of sum number n, until its group is added. Who has them written
 * there spares the copy. */
float *gni_column_chunk_place(const struct gni_column_chunk *chunk, int n, int64_t row,
                              size_t column);

/* `count` elements of a row from a column on, of sum number n. `is_lasting`: they stay where they are until the chunk ends or the
 * group is whole, and so does the rest of the row. After the last columns of a row that ends a group, the group is added. */
void gni_column_chunk_add(struct gni_column_chunk *chunk, int n, int64_t row, size_t column,
                          const float *elements, size_t count, bool is_lasting);

/* All chunks have ended: the totals become the outputs. */
void gni_column_sums_finish(struct gni_column_sums *sums);

#endif
