/*
 * radix.h: sorts items, unsigned keys with or without a position beside them, stably.
 *
 * Rows of up to a few hundred items are merged. Longer ones are distributed by the digits of their keys, from
 * the lowest, between two arrays; a digit that all have in common costs nothing but the count:
 *
 *       part 0      part 1      ..            each part counts its digits;
 *     [ ......... | ......... | .... ]        sums over digits, then parts, say where each part writes;
 *         \    \  /   /                       each part writes its items there, in order
 *     [ 0.... 1..... 2... ]
 *
 * Words go to vector_sort.h instead where the processor has what it needs.
 *
 * Threads: a sort is one thread's, and uses others for its parts through parallel.h.
 */
#ifndef GNI_OPS_CPU_RADIX_H
#define GNI_OPS_CPU_RADIX_H

#include "genesis/base.h"

#include <stdint.h>

enum gni_item {
    GNI_ITEM_32,   /* uint32_t: a key */
    GNI_ITEM_64,   /* uint64_t: a key, or a key of 32 bits above a position of 32 bits */
    GNI_ITEM_PAIR, /* struct gni_pair */
};

struct gni_pair {
    uint64_t key;
    uint64_t position;
};

size_t gni_item_size(enum gni_item item);

struct gni_radix {
    enum gni_item item;
    size_t count;
    void *items;        /* in; used up */
    void *spare;        /* as large */
    unsigned first_bit; /* the lowest bit of the key in the item, or in the pair's key */
    unsigned key_bits;
    size_t parts;   /* at least 1; more only where threads are to share the work */
    size_t *counts; /* gni_radix_counts(parts, key_bits) of them */
};

/* How many parts pay for a row of this length, if `threads` share it. */
size_t gni_radix_parts(size_t count, size_t threads);

/* How many counters a sort needs. */
size_t gni_radix_counts(size_t parts, unsigned key_bits);

/* Sorts by ascending keys; the result is in `items` or in `spare`, whichever comes back. */
void *gni_radix_sort(const struct gni_radix *sort);

#endif
