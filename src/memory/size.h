/*
 * size.h: sizes: what a request is rounded to, and how free blocks are sorted by size.
 *
 *   grain    512 bytes, the unit of everything
 *   page     2 MiB, what a GPU maps; no two medium or large blocks start in one half of a page
 *   class    a step of sizes: every multiple of 512 up to 4 KiB, then 8 steps a doubling. The first
 *            GNI_SIZE_BINS classes, up to 1 MiB, are what small requests are rounded to; the index of
 *            free blocks uses all of them for sorting only.
 *   range    tiny, small, medium or large: each lives in memory of its own, so that a small block never
 *            holds up the pages of a large one. Medium blocks may also lie in idle memory of large ones
 *
 *   requests          range     rounded to
 *   up to 64 KiB      tiny      a class: at most 12.5 % more, 6 % on average
 *   up to 1 MiB       small     a class
 *   up to 8 MiB       medium    4 KiB: at most 0.4 % more
 *   above             large     128 KiB: at most 1.6 % more
 */
#ifndef GNI_MEMORY_SIZE_H
#define GNI_MEMORY_SIZE_H

#include "base/bitmap.h"

enum {
    GNI_GRAIN_SHIFT = 9,
    GNI_GRAIN = 1 << GNI_GRAIN_SHIFT,
    GNI_PAGE_SHIFT = 21,
    GNI_PAGE = 1 << GNI_PAGE_SHIFT,
    GNI_HALF_SHIFT = 20,  /* half a page is as much as a small block has at most */
    GNI_SMALL_SHIFT = 13, /* sizes of small blocks are multiples of 8 KiB */
    GNI_MEDIUM_SHIFT = 12,
    GNI_LARGE_SHIFT = 17,
    GNI_SIZE_TINY_MOST = 64 << 10,
    GNI_SIZE_SMALL_MOST = 1 << 20,
    GNI_SIZE_MEDIUM_MOST = 8 << 20,
    GNI_SIZE_BINS = 72,
    GNI_SIZE_CLASSES = 320, /* up to more than any address space has */
};

enum gni_range {
    GNI_RANGE_TINY,
    GNI_RANGE_SMALL,
    GNI_RANGE_MEDIUM,
    GNI_RANGE_LARGE,
    GNI_RANGE_COUNT
};

/* The smallest class that holds this many grains, at least 1. */
static inline unsigned gni_class_up(size_t grains)
{
    size_t last =
        grains - 1; /* 8 classes in each doubling from 8 on, and below: by its top 4 bits */
    unsigned shift = gni_bit_log2_floor(last | 8) - 3;
    return shift * 8 + (unsigned)(last >> shift);
}

/* The largest class that this many grains fill. */
static inline unsigned gni_class_down(size_t grains)
{
    return gni_class_up(grains + 1) - 1;
}

static inline size_t gni_class_bytes(unsigned class)
{
    size_t grains = class < 8 ? class + 1 : (size_t)(class % 8 + 9) << (class / 8 - 1);
    return grains << GNI_GRAIN_SHIFT;
}

/* The class of a small request; 0 bytes are a request of 1. */
static inline unsigned gni_size_bin(size_t nbytes)
{
    size_t grains = (nbytes + GNI_GRAIN - 1) >> GNI_GRAIN_SHIFT;
    return gni_class_up(grains != 0 ? grains : 1);
}

static inline size_t gni_align_up(size_t nbytes, size_t unit)
{
    return (nbytes + unit - 1) & ~(unit - 1);
}

static inline enum gni_range gni_size_range(size_t nbytes)
{
    if (nbytes <= GNI_SIZE_SMALL_MOST)
        return nbytes <= GNI_SIZE_TINY_MOST ? GNI_RANGE_TINY : GNI_RANGE_SMALL;
    return nbytes <= GNI_SIZE_MEDIUM_MOST ? GNI_RANGE_MEDIUM : GNI_RANGE_LARGE;
}

/* No two blocks of a range start in one step of so many bytes, as a shift: address.h. */
static inline unsigned gni_range_shift(enum gni_range range)
{
    static const unsigned shifts[GNI_RANGE_COUNT] = {GNI_GRAIN_SHIFT, GNI_SMALL_SHIFT,
                                                     GNI_HALF_SHIFT, GNI_HALF_SHIFT};
    return shifts[range];
}

/* What a request takes. The size is possible (checked.h), so nothing here overflows. */
static inline size_t gni_size_round(size_t nbytes)
{
    switch (gni_size_range(nbytes)) {
    case GNI_RANGE_TINY:
    case GNI_RANGE_SMALL:
        return gni_class_bytes(gni_size_bin(nbytes));
    case GNI_RANGE_MEDIUM:
        return gni_align_up(nbytes, (size_t)1 << GNI_MEDIUM_SHIFT);
    default:
        return gni_align_up(nbytes, (size_t)1 << GNI_LARGE_SHIFT);
    }
}

#endif
