/*
 * cpu_ctc.h: the sums over all alignments of sequences, of the CTC loss, and their gradients.
 *
 * A sequence has `labels` states: a blank, its first class, a blank, its second class, and so on to a last blank. A path stays
 * in a state, goes to the next one, or leaves out the blank between two classes that differ.
 *
 * Threads: any; sequences are spread over the workers.
 */
#ifndef GNI_CPU_CTC_H
#define GNI_CPU_CTC_H

#include "genesis/base.h"

#include <stdbool.h>
#include <stdint.h>

struct gni_ctc {
    int64_t steps, sequences, labels;
    const int64_t *input_lengths;  /* of each sequence, at most `steps` */
    const int64_t *target_lengths; /* of each, so that 2 n + 1 is at most `labels` */
    const int64_t *classes;        /* (sequences, labels): those of the states */
    double *sums;                  /* (steps, sequences, labels): room for logarithms */
    double *rows;                  /* (sequences, 2, labels): room */
    void *
        emissions; /* (steps, sequences, labels): logarithms of probabilities; the gradients take their place */
    void *losses;   /* (sequences): what comes of it */
    bool is_double; /* the elements of both; else float32 */
    bool has_gradients;
    bool is_infinity_zero; /* the gradients of an infinite loss: 0, else NaN */
};

void gni_cpu_ctc_run(const struct gni_ctc *task);

#endif
