/*
 * list_writer.h: writes a list program (genesis/list.h) one value at a time.
 *
 *     struct gni_list_writer w;
 *     gni_list_writer_init(&w, 2, 0);
 *     int rate = gni_list_number(&w, 0.1);
 *     gni_list_store(&w, 0, gni_list_op(&w, GN_OP_SUBTRACT, 0, gni_list_op(&w, GN_OP_MULTIPLY, rate, 1)));
 *
 * A value is an int. Those of places are their numbers; others are given out by the functions below. What is made of numbers
 * that the host knows is computed here, and is a number again, so that it costs nothing for each element.
 *
 * A writer that has no room left says so in gni_list_writer_run(). Threads: a writer belongs to the call that has it.
 */
#ifndef GNI_OPS_LIST_WRITER_H
#define GNI_OPS_LIST_WRITER_H

#include "genesis/list.h"

enum {
    GNI_LIST_KNOWN_MOST = 64, /* numbers that the host knows, with those that are used no more */
};

struct gni_list_writer {
    int place_count, step_count, store_count, known_count, given_count;
    unsigned single_places;
    bool is_full; /* something did not fit: there is no program */
    double known[GNI_LIST_KNOWN_MOST];
    gn_operand given[GN_LIST_NUMBERS_MOST]; /* numbers that are tensors */
    gn_list_step steps[GN_LIST_STEPS_MOST];
    gn_list_store stores[GN_LIST_PLACES_MOST];
};

void gni_list_writer_init(struct gni_list_writer *writer, int place_count, unsigned single_places);

/* A number, and one that may be a tensor of one element. */
int gni_list_number(struct gni_list_writer *writer, double number);
int gni_list_operand(struct gni_list_writer *writer, gn_operand operand);

/* Whether the host knows a value, and which number it is. */
bool gni_list_is_known(const struct gni_list_writer *writer, int value);
double gni_list_known(const struct gni_list_writer *writer, int value);

/* Operations of one, two and three operands. */
int gni_list_unary(struct gni_list_writer *writer, gn_op op, int a);
int gni_list_op(struct gni_list_writer *writer, gn_op op, int a, int b);
int gni_list_where(struct gni_list_writer *writer, int condition, int a, int b);

void gni_list_store(struct gni_list_writer *writer, int place, int value);

/* gn_list_elementwise() with what was written. */
gn_status gni_list_writer_run(const struct gni_list_writer *writer, int count,
                              gn_tensor *const *tensors, gn_tensor *skip) GN_NODISCARD;

/* The same by recorded operations, one entry after the other, so that gradients go through it; there is no `skip`. */
gn_status gni_list_writer_record(const struct gni_list_writer *writer, int count,
                                 gn_tensor *const *tensors) GN_NODISCARD;

#endif
