/*
 * vector_sort.h: sorts unsigned words with AVX-512, where the processor has it.
 *
 * Not stable, which cannot be seen: equal words are the same. Words that hold a position below their key are
 * all different, and their order is the stable one.
 *
 * Threads: a sort is one thread's, and uses others for its ranges through parallel.h.
 */
#ifndef GNI_OPS_CPU_VECTOR_SORT_H
#define GNI_OPS_CPU_VECTOR_SORT_H

#include "genesis/base.h"

#include <stdint.h>

/* Whether the processor has the instructions, and no test forbids them. */
bool gni_vector_sort_is_present(void);

/* For tests, so that every processor runs every path: whether these instructions may be used, and after how
 * many splits a range is merged (-1: the usual bound). Not while a sort runs. */
void gni_vector_sort_tune(bool is_allowed, int splits_max);

/* Sorts `items` in place; `spare` is as large. With `parts` over 1 other threads help. */
void gni_vector_sort32(uint32_t *items, uint32_t *spare, size_t count, size_t parts);
void gni_vector_sort64(uint64_t *items, uint64_t *spare, size_t count, size_t parts);

#endif
