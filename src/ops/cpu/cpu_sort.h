/*
 * cpu_sort.h: sorting and what rests on it, over contiguous rows in the CPU's memory (cpu_sort.c and select.c).
 *
 * The order of all of these: NaN counts as larger than everything and as equal to NaN, -0 equals +0. Elements
 * that are equal stay in the order in which they were, ascending or descending, with all their bits.
 *
 * Results must not overlap what is read. They are untouched on failure; the only failures are
 * GN_ERROR_OUT_OF_HOST_MEMORY and, for sizes that cannot exist, GN_ERROR_OVERFLOW. Temporary memory is at most
 * 32 bytes for each element of the rows that are being sorted at once, one for each thread.
 *
 * Threads: any, at once; each call may use several. The result does not depend on how many.
 */
#ifndef GNI_OPS_CPU_SORT_H
#define GNI_OPS_CPU_SORT_H

#include "tensor/dtype.h"

/* Sorts each of `rows` rows of `columns` elements. `values` takes the sorted elements, `indices` where each
 * was in its row; either may be NULL. */
gn_status gni_sort(const void *in, gn_dtype dtype, size_t rows, size_t columns, bool is_descending,
                   void *values, int64_t *indices) GN_NODISCARD;

/* The same, but `values` and `indices` take only the first `kept` of each sorted row. */
gn_status gni_sort_first(const void *in, gn_dtype dtype, size_t rows, size_t columns, size_t kept,
                         bool is_descending, void *values, int64_t *indices) GN_NODISCARD;

/* The k largest or smallest elements of each row; of equal ones those with lower indices. `k` is at most
 * `columns`. `values` and `indices` have k elements for each row; either may be NULL. Without `is_sorted` any
 * order will do, and the caller must not rely on one. */
gn_status gni_topk(const void *in, gn_dtype dtype, size_t rows, size_t columns, size_t k,
                   bool is_largest, bool is_sorted, void *values, int64_t *indices) GN_NODISCARD;

/* The element that is number `k` of `count` in ascending order, from 0 on; of equal ones (-0 and +0, NaN) the one that
 * a sort has there. */
gn_status gni_kth(const void *in, gn_dtype dtype, size_t count, size_t k, void *value) GN_NODISCARD;

/* The different elements in ascending order; of equal ones (-0 and +0) the first that came. Each NaN is
 * different from all others. All results but `unique_count` have room for `count` elements: `inverse` says for
 * each element where it is in `values`, `counts` how often each of these came; both may be NULL. */
gn_status gni_unique(const void *in, gn_dtype dtype, size_t count, void *values, int64_t *inverse,
                     int64_t *counts, size_t *unique_count) GN_NODISCARD;

/* Where each of `n` values belongs in an ascending row of `count` elements of the same type: before the
 * elements that are equal to it, or behind them if `is_right`. Never fails. */
void gni_search_sorted(const void *sorted, gn_dtype dtype, size_t count, const void *values,
                       size_t n, bool is_right, int64_t *positions);

#endif
