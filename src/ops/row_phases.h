/*
 * row_phases.h: when the values of a row program (program.h) are computed.
 *
 * Reductions cut a program into *phases*: a full value of phase p needs the results of reductions of values of earlier
 * phases.
 *
 *     phase 0     load x, add it up                     -> mean
 *     phase 1     x - mean, add up its square           -> variance
 *     phase 2     (x - mean) * rsqrt(variance + eps), store it
 *
 * A phase goes once through the columns of a row. A full value that several phases read is computed in each, unless it costs
 * much and is kept.
 */
#ifndef GNI_OPS_ROW_PHASES_H
#define GNI_OPS_ROW_PHASES_H

#include "ops/program.h"

enum {
    GNI_ROW_PHASES_MOST = GNI_PROGRAM_NODES_MOST + 1,
    GNI_ROW_VALUE_WORDS = (GNI_PROGRAM_VALUES_MOST + 63) / 64,
};

/* A set of values of a program. */
struct gni_row_values {
    uint64_t bits[GNI_ROW_VALUE_WORDS];
};

struct gni_row_phases {
    const struct gni_program *program;
    int count;
    short phase[GNI_PROGRAM_VALUES_MOST]; /* of each value */
    struct gni_row_values kept;           /* full values that later phases do not compute again */
    struct gni_row_values
        needed[GNI_ROW_PHASES_MOST]; /* full values that a phase computes or loads */
};

/* Which values are kept that several phases read. */
enum gni_row_keeping {
    GNI_ROW_KEEP_NONE,
    GNI_ROW_KEEP_HEAVY, /* those that cost much */
    GNI_ROW_KEEP_ALL,
};

void gni_row_phases_make(struct gni_row_phases *phases, const struct gni_program *program,
                         enum gni_row_keeping keeping);

static inline void gni_row_add(struct gni_row_values *values, int value)
{
    values->bits[value / 64] |= UINT64_C(1) << (value % 64);
}

static inline bool gni_row_has(const struct gni_row_values *values, int value)
{
    return (values->bits[value / 64] >> (value % 64) & 1) != 0;
}

/* Whether a phase computes or loads a full value. */
static inline bool gni_row_is_needed(const struct gni_row_phases *phases, int phase, int value)
{
    return gni_row_has(&phases->needed[phase], value);
}

/* Whether a value is the result of a reduction of a value of the phase. */
static inline bool gni_row_is_reduced_in(const struct gni_row_phases *phases, int phase, int value)
{
    int step = value - phases->program->input_count;
    return step >= 0 && phases->program->steps[step].kind == GNI_STEP_REDUCE &&
           phases->phase[value] == phase + 1;
}

/* Whether a phase stores an output, which has an element for each column. */
static inline bool gni_row_is_stored_in(const struct gni_row_phases *phases, int phase, int output)
{
    const struct gni_output *one = &phases->program->outputs[output];
    return !one->is_row && !one->is_column && phases->phase[one->value] == phase;
}

/* Whether a phase adds an output's value to sums of columns. */
static inline bool gni_row_is_summed_in(const struct gni_row_phases *phases, int phase, int output)
{
    const struct gni_output *one = &phases->program->outputs[output];
    return one->is_column && phases->phase[one->value] == phase;
}

/* Whether a phase goes through the columns at all. */
bool gni_row_has_loop(const struct gni_row_phases *phases, int phase);

#endif
