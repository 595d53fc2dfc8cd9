/*
 * tune.h: the choice between ways to launch a kernel, measured once and kept.
 *
 *     static const struct gni_tune_family family = {
 *         .name = "softmax", .extents = {"rows", "columns"}, .values = {"threads", "blocks"}};
 *     struct gni_tune tune = {.family = &family, .stream = stream, .type = "float32", .nbytes = moved,
 *                             .extents = {gni_tune_log(rows), gni_tune_log(columns)},
 *                             .standard = {.values = {256, 4}},
 *                             .context = &work, .run = work_run, .list = work_list};
 *     GN_TRY(gni_tune_run(&tune));
 *
 * A problem belongs to a class: the family, the type, the device, and a few small numbers, mostly rounded logarithms of
 * sizes. The choice for a class is a few integers, out of candidates that the family lists; the default follows from
 * the shape alone.
 *
 * The rules, which docs/cuda.md tells the user:
 *   TU1  `on` changes no bit of a result: it takes only candidates that compute in the same order as the default. `max`
 *       takes those that sum in another order, too, and then the cache is what makes results repeat: a choice that was
 *       stored is used by every process that finds it.
 *   TU2  A class is decided once in a process, by what is on disk or by measuring, until gni_tune_clear() or
 *       gn_shutdown(). While it cannot be measured (a stream that is captured, a profiler that would see it, another
 *       thread that measures, no time left) it takes the default; with `max` that decides it, since bits must not
 *       change later.
 *   TU3  Every candidate is run on the problem's own inputs and into its own output, so each must give a right result,
 *       and be free to run any number of times. The chosen one runs last.
 *   TU4  Measuring is bounded: 50 ms for a class and 2 s for the process, with all that is compiled for it; with `max`
 *       1 s and 60 s. A candidate that fails is passed over, and one that is not faster than the default by a
 *       fiftieth is not chosen. Where kernels are compiled in the background, a class waits until all candidates are there.
 *   TU5  Small problems, where launching takes longer than running, are never looked up.
 *
 * Threads: any. One measures at a time, and nobody waits for it.
 */
#ifndef GNI_JIT_TUNE_H
#define GNI_JIT_TUNE_H

#include "device/device.h"
#include "genesis/tune.h"

enum {
    GNI_TUNE_EXTENTS = 6,
    GNI_TUNE_VALUES = 4,
    GNI_TUNE_OTHERS_MOST = GN_TUNING_CANDIDATES_MOST - 1,
};

struct gni_choice {
    int values[GNI_TUNE_VALUES]; /* unused ones are 0 */
    bool is_reordering;          /* sums in another order than the default: TU1 */
};

/* Lives for ever. */
struct gni_tune_family {
    const char *name;
    const char *extents[GNI_TUNE_EXTENTS]; /* names; NULL behind the last */
    unsigned plain;                        /* bit i: extent i is a number, not a logarithm */
    const char *values[GNI_TUNE_VALUES];   /* names; NULL behind the last */
};

/* A problem. */
struct gni_tune {
    const struct gni_tune_family *family;
    gn_stream *stream;
    const char *type; /* of elements, for people and as a part of the class; lives for ever */
    uint64_t nbytes;  /* that are moved */
    int extents[GNI_TUNE_EXTENTS]; /* the class; unused ones are 0 */
    struct gni_choice standard;    /* the default: follows from the shape alone */
    void *context;                 /* of the functions below */
    /* Submits the problem. */
    gn_status (*run)(void *context, const struct gni_choice *choice);
    /* (optional) Whether a candidate need not be waited for; with `on` nothing else is run. It may become ready later. */
    bool (*is_ready)(void *context, const struct gni_choice *choice);
    /* Lists other candidates, GNI_TUNE_OTHERS_MOST at most; gives how many. They follow from the class. */
    int (*list)(void *context, struct gni_choice *choices);
};

/* Twice the logarithm of a size, rounded down: 1, 2, 3, 4 and 5, 6 and 7, 8 to 11, ... are classes. */
int gni_tune_log(int64_t size);

/* Submits a problem, in the way that is best as far as it is known. Fails as the run of the chosen way does. */
gn_status gni_tune_run(const struct gni_tune *tune) GN_NODISCARD;

/* Whether candidates may sum in another order: TU1. */
bool gni_tune_is_max(void);

/* Forgets all choices of the process. */
void gni_tune_clear(void);

/* ---- for tests ---- */

/* Times, in milliseconds, in the place of those that are measured; NULL: the device's. */
typedef double gni_tune_clock(const struct gni_tune *tune, const struct gni_choice *choice);
void gni_tune_set_clock(gni_tune_clock *clock);

/* Another setting than GENESIS_AUTOTUNE's: 0 off, 1 on, 2 max; -1: the option's. */
void gni_tune_set_mode(int mode);

/* Every problem is run by this candidate, 0 being the default, of those that the mode allows; a number behind the last
 * one stands for that. Nothing is looked up or measured. -1: as usual. */
void gni_tune_force(int candidate);

/* How many candidates the problem had that was run so last. */
int gni_tune_forced_count(void);

/* How many classes were measured. */
uint64_t gni_tune_measure_count(void);

#endif
