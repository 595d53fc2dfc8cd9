/*
 * timing.h: the clock and the median, for the benchmarks' C programs.
 */
#ifndef BENCH_ALLOC_TIMING_H
#define BENCH_ALLOC_TIMING_H

#include <stddef.h>
#include <stdlib.h>
#include <time.h>

static inline double now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value below which this part of them lies: 0.5 is the median. Sorts the values. */
static inline double quantile(double *values, size_t count, double part)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, compare_doubles);
    size_t place = (size_t)((double)count * part);
    return values[place < count ? place : count - 1];
}

#endif
