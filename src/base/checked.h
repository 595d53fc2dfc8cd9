/*
 * checked.h: arithmetic on sizes that says when the result does not fit.
 *
 * Sizes come from callers, files and drivers, and a sum that wraps around becomes a block that is
 * too small. So no size is added, multiplied or rounded up with a bare operator:
 *
 *     size_t nbytes;
 *     if (!gni_size_multiply(count, sizeof *items, &nbytes) || !gni_size_is_possible(nbytes))
 *         return gni_error(GN_ERROR_OVERFLOW, "%zu items do not fit the address space", count);
 *
 * Invariants:
 *   1. A helper returns true and stores the exact result, or returns false and leaves *result as
 *      it was. `result` may point to an operand's variable, as operands are passed by value.
 *   2. "Fits" means size_t here. A block must fit GNI_SIZE_MAX_BYTES as well, which is half of
 *      that; the allocation funnels check it, so that pointer differences never overflow.
 *
 * Threads: pure functions.
 */
#ifndef GNI_BASE_CHECKED_H
#define GNI_BASE_CHECKED_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The cap on any one block: with more, subtracting two pointers into it would be undefined. */
#define GNI_SIZE_MAX_BYTES ((size_t)PTRDIFF_MAX)

/* Whether a block of this size can exist; 0 can. */
static inline bool gni_size_is_possible(size_t size)
{
    return size <= GNI_SIZE_MAX_BYTES;
}

static inline bool gni_size_add(size_t a, size_t b, size_t *result)
{
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *result = sum;
    return true;
}

static inline bool gni_size_multiply(size_t a, size_t b, size_t *result)
{
    size_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *result = product;
    return true;
}

/*
 * The smallest multiple of `alignment`, which must be a power of two, that is at least `size`; 0
 * stays 0. The check comes before the rounding: afterwards a wrapped size would look small and
 * fine.
 */
static inline bool gni_size_align_up(size_t size, size_t alignment, size_t *result)
{
    gni_assert(alignment != 0 && (alignment & (alignment - 1)) == 0);
    size_t mask = alignment - 1;
    if (size > SIZE_MAX - mask)
        return false;
    *result = (size + mask) & ~mask;
    return true;
}

#endif
