/*
 * loops.h: the innermost loops of the CPU: one operation over a short run of elements in cache.
 *
 * A loop reads operands and writes results at consecutive addresses. `out` may be the same address as any
 * operand whose elements have the same size; otherwise they do not overlap. Counts may be 0, addresses need
 * only the alignment of their elements.
 *
 * The loops exist for the basic instruction set, for AVX2 and for AVX-512; the best that the processor has is
 * chosen at the first call. All give the same bits: no multiplication is contracted with an addition, and
 * functions are computed by the same arithmetic in all. Only which NaN a NaN is may differ.
 *
 * Threads: any, at once.
 */
#ifndef GNI_OPS_CPU_LOOPS_H
#define GNI_OPS_CPU_LOOPS_H

#include "ops/op.h"
#include "tensor/dtype.h"

/* out[i] = op(in[0][i], in[1][i], ..), for i < count. */
typedef void (*gni_loop)(void *out, const void *const *in, size_t count);

/* The loop of an operation for its computing type; NULL where its domain does not have the type. The halves
 * are the computing type of `where` only. A bool may be any byte, and comes out as 0 or 1 (`where` hands the
 * byte on); as a number of one bit it is shifted out by true. */
gni_loop gni_loop_find(enum gni_op op, gn_dtype computing);

/* Conversion of elements of one type to another: out[i] = (to)in[0][i]. Any two types, also equal ones (a
 * copy). Floating to integer truncates and saturates nothing: what does not fit gives any value. */
gni_loop gni_loop_convert(gn_dtype from, gn_dtype to);

/* Rounds float32 values to what a half type can hold, in float32: as converting there and back. */
gni_loop gni_loop_round(gn_dtype half);

/* Elements at equal distances become neighbours: to[i] = from[i * step], which do not overlap. */
typedef void (*gni_gather)(void *to, const void *from, int64_t step, size_t count);

/* By the size of an element: 1, 2, 4 or 8 bytes. */
gni_gather gni_gather_find(size_t size);

/* The same of two operands one of which, `row`, is one number for each row: of consecutive rows. */
typedef void (*gni_row_loop)(void *out, const void *full, const void *row, size_t rows,
                             size_t columns);

/* For + - * and / of float32 and float64; NULL for others. `place`: which operand is one for each row. */
gni_row_loop gni_row_loop_find(enum gni_op op, gn_dtype computing, int place);

/* ---- reductions ------------------------------------------------------------------------------ */

#define GNI_REDUCTION_LIST(X) \
    X(SUM, sum)               \
    X(PRODUCT, product)       \
    X(MAXIMUM, maximum)       \
    X(MINIMUM, minimum)       \
    X(ANY, any)               \
    X(ALL, all)

enum gni_reduction {
#define GNI_REDUCTION_ENUM(NAME, name) GNI_REDUCTION_##NAME,
    GNI_REDUCTION_LIST(GNI_REDUCTION_ENUM)
#undef GNI_REDUCTION_ENUM
    GNI_REDUCTION_COUNT
};

/*
 * Reduces a run into *accumulator: sums and products of float32 and float64 are accumulated in double (inside
 * the run in several partial sums, so that the error grows with the logarithm of its length or better; of float32 up to 8
 * numbers are added as float32 before), those of
 * integers and bool in int64, maxima and minima in the type itself (NaN wins), any and all in bool. The caller
 * starts the accumulator.
 */
typedef void (*gni_reducer)(void *accumulator, const void *in, size_t count);

/* The same for several short, consecutive rows, with an accumulator for each: elements are taken one by one, in order. */
typedef void (*gni_short_reducer)(void *accumulators, const void *in, size_t rows, size_t columns);

/* The loops of a reduction. */
struct gni_reducers {
    gni_reducer one;
    gni_short_reducer short_rows;
    gni_reducer columns; /* each element goes into an accumulator of its own */
};

/* All NULL for the half types, which are converted before. */
struct gni_reducers gni_reducers_find(enum gni_reduction reduction, gn_dtype dtype);

/* The sum of the squares of float32 or float64, in double: as the reduce of such squares. */
struct gni_reducers gni_reducers_find_squares(gn_dtype dtype);

/* The sum of x[i] * y[i] of float32: as the reducer of such products, rounded to float32, adds them. */
typedef void (*gni_product_reducer)(double *accumulator, const float *x, const float *y,
                                    size_t count);

gni_product_reducer gni_product_reducer_find(void);

enum {
    GNI_REDUCE_ROWS = 8,
};

/* sums[i] += the sum of rows[0][i] to rows[GNI_REDUCE_ROWS - 1][i], which are added in pairs in float32. The sums
 * overlap no row. */
typedef void (*gni_row_reducer)(double *sums, const float *const *rows, size_t count);

gni_row_reducer gni_row_reducer_find(void);

/* Name of the instruction set in use: "basic", "avx2" or "avx512". Static memory. */
const char *gni_loops_name(void);

/* For tests: uses another set, if the processor has it; false if not. NULL: the best. */
bool gni_loops_use(const char *name);

#endif
