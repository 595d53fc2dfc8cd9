/*
 * plan.h: how a program runs on the CPU: what cpu_run.c works out, and what cpu_reduce.c shares with it.
 *
 * Values live in registers, which are tiles of memory on a thread's stack, or where they are: contiguous inputs are
 * read in place, and a step whose value is an output writes it there.
 */
#ifndef GNI_OPS_CPU_PLAN_H
#define GNI_OPS_CPU_PLAN_H

#include "ops/cpu/loops.h"
#include "ops/program.h"

enum {
    GNI_TILE_MOST = 1024,          /* elements */
    GNI_ELEMENT_BYTES = 8,         /* of the widest type */
    GNI_SCRATCH_BYTES = 256 << 10, /* on the stack of a thread: many registers have shorter tiles */
    GNI_PART = 16 * GNI_TILE_MOST, /* elements that a thread takes at a time */
    GNI_REDUCE_PART_COLUMNS = 4 * GNI_PART, /* of a row; longer ones are reduced in parts */
    GNI_SHORT_COLUMNS = 32,                 /* a row of no more is reduced element by element */
};

_Static_assert((GNI_PROGRAM_VALUES_MOST + 1) * 8 * GNI_ELEMENT_BYTES <= GNI_SCRATCH_BYTES,
               "a tile has at least 8 elements");

/* ---- before running: what is known of each value ---------------------------------------------- */

struct gni_plan {
    const struct gni_program *program;
    struct gni_layout layout;
    bool is_direct[GNI_PROGRAM_INPUTS_MOST]; /* in the order of computing: read in place */
    bool is_single[GNI_PROGRAM_INPUTS_MOST]; /* one element for all: read once */
    bool is_near
        [GNI_PROGRAM_INPUTS_MOST]; /* within a run of the last dimension: read in place there */
    bool has_near;
    short place[GNI_PROGRAM_VALUES_MOST];   /* the register of a value; -1: none */
    short target[GNI_PROGRAM_STEPS_MOST];   /* the output that a step writes by itself; -1: none */
    gni_loop loops[GNI_PROGRAM_STEPS_MOST]; /* NULL: nobody needs the step's value */
    short source[GNI_PROGRAM_NODES_MOST];   /* the value that an output stores, see source_find() */
    gni_loop stores[GNI_PROGRAM_NODES_MOST]; /* from the source's type to the output's */
    int register_count;
    size_t tile; /* elements */
};

struct gni_run {
    const struct gni_plan *plan;
    char *tiles; /* register_count of them */
    void *values[GNI_PROGRAM_VALUES_MOST];
};

/* The loop of a step that is no reduction. */
gni_loop gni_step_loop(const struct gni_step *step);

/* `kept` is a value that is used after all steps; -1: none. */
void gni_plan_make(struct gni_plan *plan, const struct gni_program *program, short kept);

/* `tiles` has GNI_SCRATCH_BYTES. */
void gni_run_begin(struct gni_run *run, const struct gni_plan *plan, char *tiles);

/* Computes `count` elements from `position` on. */
void gni_run_tile(struct gni_run *run, int64_t position, size_t count);

/* ---- accumulators of reductions: cpu_reduce.c ---- */

enum gni_reduction gni_reduction_of(gn_reduction reduction);

/* The type of an accumulator, and one of nothing. */
gn_dtype gni_accumulator_type(gn_reduction reduction, gn_dtype held);
uint64_t gni_accumulator_start(gn_reduction reduction, gn_dtype held);

#endif
