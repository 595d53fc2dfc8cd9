/*
 * cuda_sort.h: numbers in their order on a GPU, with where each was; equal ones stay as they were.
 *
 *     struct gni_order order;
 *     GN_TRY(gni_order_init(&order, count, false, 0, stream));
 *     order.in is filled by kernels of the stream, with `count` words
 *     status = gni_order_run(&order, 3);          sorted by their lowest three bytes
 *     order.keys, order.places are read by kernels of the stream
 *     gni_order_deinit(&order);
 */
#ifndef GNI_OPS_CUDA_SORT_H
#define GNI_OPS_CUDA_SORT_H

#include "ops/backend.h"

/* Words are of 4 bytes, or of 8 if is_far. */
struct gni_order {
    int64_t count;
    bool is_far;
    gn_stream *stream;
    void *in;                    /* [count] words; gone when the order is there */
    const void *keys, *places;   /* [count] words each, in their order */
    void *extra;                 /* memory for the caller */
    struct gni_storage *storage; /* where all of this is: */
    struct {
        char *keys, *places;
    } buffers[2];
    void *table, *totals;
};

/* `count` is positive, and fits into a word. */
gn_status gni_order_init(struct gni_order *order, int64_t count, bool is_far, size_t extra,
                         gn_stream *stream) GN_NODISCARD;
gn_status gni_order_run(struct gni_order *order, int digits) GN_NODISCARD;
void gni_order_deinit(struct gni_order *order);

#endif
