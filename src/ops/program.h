/*
 * program.h: an expression, cut out of what is pending and ready to run: the same for every device.
 *
 *     values 0 .. input_count - 1          the inputs: memory by strides, or one number
 *     values input_count ..                the steps, in an order in which each has its operands before it
 *
 * Every value is held in a type of its own: what an input has in memory, what a step computes. A step's operands
 * are held in its `from`. Halves are held in float32, rounded after each operation, so that fused and unfused
 * give the same.
 *
 * Outputs are contiguous, or (written in place) have strides. Inputs that an output overlaps have the same
 * layout as it (so that each element is read before it is written), or were copied before.
 *
 * A *row program* has reductions among its steps, or values that are one number for each row. Its last `row_ndim` dimensions
 * are a row of `columns` elements:
 *
 *     x         full    an element for each place
 *     max(x)    row     GNI_STEP_REDUCE: one for each row
 *     x - max   full    a row value stands for all columns of its row
 *
 * An output may be the sum of a full value over all rows, one element for each column (is_column). A step is a row step if
 * none of its operands is full. The order in which a row is reduced follows from its length and type
 * alone, that of a sum of columns from the number of rows too, so that a reduction has the same bits in every program. No
 * output of a row program has strides.
 */
#ifndef GNI_OPS_PROGRAM_H
#define GNI_OPS_PROGRAM_H

#include "ops/op.h"
#include "tensor/tensor.h"

enum {
    GNI_PROGRAM_NODES_MOST = 64,
    GNI_CHAIN_NODES_MOST = 32, /* of a program without rows */
    GNI_PROGRAM_INPUTS_MOST = 3 * GNI_PROGRAM_NODES_MOST,
    GNI_PROGRAM_STEPS_MOST =
        5 * GNI_PROGRAM_NODES_MOST, /* with conversions of operands and rounding */
    GNI_PROGRAM_VALUES_MOST = GNI_PROGRAM_INPUTS_MOST + GNI_PROGRAM_STEPS_MOST,
};

enum gni_step_kind {
    GNI_STEP_OP,
    GNI_STEP_CONVERT, /* from `from` to `held` */
    GNI_STEP_ROUND,   /* float32 to what `half` can hold */
    GNI_STEP_REDUCE,  /* the elements of a row, in `from`, to one, as `half`, held in `held` */
};

struct gni_input {
    struct gni_storage *storage; /* NULL: a number */
    const char *data;            /* NULL: a number */
    gn_dtype held;
    int64_t strides[GN_DIMENSIONS_MAX]; /* of memory */
    uint64_t number;                    /* an element of `held` */
};

struct gni_step {
    enum gni_step_kind kind;
    enum gni_op op;
    gn_reduction reduction; /* of GNI_STEP_REDUCE */
    gn_dtype from, held;
    /* The half to which GNI_STEP_ROUND rounds, or the step behind a GNI_STEP_OP; else the same as `held`. Of
     * GNI_STEP_REDUCE the type of the result. */
    gn_dtype half;
    short in[3];
};

struct gni_output {
    short value;
    gn_dtype dtype;
    char *data;
    bool is_row;      /* an element for each row */
    bool is_column;   /* the sum over all rows: an element for each column */
    bool is_narrowed; /* a sum of float32 that is a half: rounded to float32 first */
    bool is_strided;
    int64_t strides[GN_DIMENSIONS_MAX];
};

struct gni_program {
    int ndim;
    int64_t sizes[GN_DIMENSIONS_MAX];
    int64_t count;
    int row_ndim;    /* 0: no row program */
    int64_t columns; /* of a row; 1 where that is no row program */
    int input_count, step_count, output_count;
    struct gni_input inputs[GNI_PROGRAM_INPUTS_MOST];
    struct gni_step steps[GNI_PROGRAM_STEPS_MOST];
    struct gni_output outputs[GNI_PROGRAM_NODES_MOST];
    bool is_row
        [GNI_PROGRAM_VALUES_MOST]; /* of a row program: the value is one for each row, or a number */
};

/* Where everything lies, after neighbouring dimensions that go on as if they were one are joined. */
struct gni_layout {
    int ndim;
    int64_t sizes[GN_DIMENSIONS_MAX];
    int64_t strides[GNI_PROGRAM_INPUTS_MOST][GN_DIMENSIONS_MAX];
    int64_t output_strides[GNI_PROGRAM_NODES_MOST][GN_DIMENSIONS_MAX];
};

/* Whether that leaves one dimension, in which all memory is contiguous. */
bool gni_program_join(const struct gni_program *program, struct gni_layout *layout);

/* The same for a row program: dimensions of rows are joined among themselves, and so are the others. Returns how many of
 * the dimensions, the last ones, are those of rows: at least 1. */
int gni_program_join_rows(const struct gni_program *program, struct gni_layout *layout);

/* A program of nothing, of a shape whose dimensions are taken in `order` (NULL: as they are). */
void gni_program_init(struct gni_program *program, int ndim, const int64_t *sizes,
                      const int *order);

/* Adds an input or a step; the value. The offset is in elements. */
short gni_program_add_memory(struct gni_program *program, struct gni_storage *storage,
                             int64_t offset, gn_dtype dtype, const int64_t *strides);
short gni_program_add_number(struct gni_program *program, gn_scalar number, gn_dtype dtype);
/* `result`: the type of the operation's result. If it is a half, the caller rounds to it next. */
short gni_program_add_op(struct gni_program *program, enum gni_op op, gn_dtype computing,
                         gn_dtype held, gn_dtype result, int arity, const short *in);

short gni_program_round(struct gni_program *program, short value, gn_dtype half);

/* The reduction of a full value along each row, as an element of a type. */
short gni_program_reduce(struct gni_program *program, gn_reduction reduction, short value,
                         gn_dtype dtype);

/* The step that rounds a value, if nothing else reads that; NULL: none. */
const struct gni_step *gni_program_rounding(const struct gni_program *program, int value);

/* What is submitted to the stream from now on may read the inputs. */
gn_status gni_program_order(struct gni_program *program, gn_stream *stream) GN_NODISCARD;

/* The type that a value is held in. */
gn_dtype gni_program_held(const struct gni_program *program, short value);

/* A value as another type: itself where it is held so already. */
short gni_program_convert(struct gni_program *program, short value, gn_dtype held);

#endif
