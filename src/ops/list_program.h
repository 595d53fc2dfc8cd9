/*
 * list_program.h: a list program (genesis/list.h) as a device runs it: a program of one element, and what it reads and writes for each
 * entry.
 *
 * Invariants:
 *   LI1  the program has one dimension and no sizes that count: every entry has a count of its own;
 *   LI2  a value that is_scalar is one for all elements of an entry. It depends on numbers and single places alone;
 *   LI3  all entries of one group have the same types, and packs of the same size;
 *   LI4  memory that is written to is no other entry's. Within an entry a place may be read where it is written, element by
 *        element.
 */
#ifndef GNI_OPS_LIST_PROGRAM_H
#define GNI_OPS_LIST_PROGRAM_H

#include "genesis/list.h"
#include "ops/program.h"

struct gni_list_entry {
    int64_t count; /* elements; at least 1 */
    int64_t index; /* of its result, where the list is reduced */
    char *data[GN_LIST_PLACES_MOST];
};

struct gni_list_program {
    const struct gni_program *program;
    const bool *is_scalar;     /* of each value of the program: LI2 */
    const short *input_places; /* of each input: its place; -1: a number, or a tensor that is one */
    const short *output_places; /* of each output; -1 where it is reduced */
    int place_count, entry_count;
    const struct gni_list_entry *entries;
    const gn_tensor *skip; /* NULL: none */
    int pack;              /* elements that are aligned together at all places: LI3 */
    bool is_reduced;       /* the one output is reduced, and nothing is written */
    gn_reduction reduction;
    double *results; /* is_reduced: one for each entry, on the device */
};

#endif
