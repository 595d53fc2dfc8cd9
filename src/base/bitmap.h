/*
 * bitmap.h: single bits: questions about one word, and sets of small numbers kept in words.
 *
 * Bit i of a bitmap is bit i % 64 of words[i / 64]:
 *
 *     words[0]                words[1]
 *     63 ......... 2 1 0      127 ......... 65 64
 *
 * Invariants:
 *   1. The caller owns the words, gni_bitmap_words(nbits) of them, and sets them to zero first.
 *   2. Bits of the last word at and after nbits are never looked at by a function that is given
 *      nbits, so they may have any value.
 *   3. Finding functions return a position under nbits, or nbits when there is none.
 *
 * Threads: no locks and no atomics here; the owner of the bitmap guards it.
 */
#ifndef GNI_BASE_BITMAP_H
#define GNI_BASE_BITMAP_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero bits above the highest set bit; 64 for 0. */
static inline unsigned gni_bit_leading_zeros(uint64_t word)
{
    return word == 0 ? 64 : (unsigned)__builtin_clzll(word);
}

/* Zero bits below the lowest set bit, which is that bit's position; 64 for 0. */
static inline unsigned gni_bit_trailing_zeros(uint64_t word)
{
    return word == 0 ? 64 : (unsigned)__builtin_ctzll(word);
}

/* The position of the highest set bit; 0 for 0, so that it always indexes a table of 64. */
static inline unsigned gni_bit_log2_floor(uint64_t word)
{
    return 63 - gni_bit_leading_zeros(word | 1);
}

/* Exactly one bit is set; false for 0. */
static inline bool gni_bit_is_power_of_two(uint64_t word)
{
    return word != 0 && (word & (word - 1)) == 0;
}

/* Set bits; 0 for 0. */
static inline unsigned gni_bit_count(uint64_t word)
{
    return (unsigned)__builtin_popcountll(word);
}

/* The `count` lowest bits, 0 to 64 of them: a plain shift by 64 would be undefined. */
static inline uint64_t gni_bit_mask(unsigned count)
{
    gni_assert(count <= 64);
    return count == 0 ? 0 : UINT64_MAX >> (64 - count);
}

/* Words that hold nbits bits. Divides before it adds, so that no nbits can overflow. */
static inline size_t gni_bitmap_words(size_t nbits)
{
    return nbits / 64 + (nbits % 64 != 0);
}

static inline void gni_bitmap_set(uint64_t *words, size_t bit)
{
    words[bit / 64] |= UINT64_C(1) << (bit % 64);
}

static inline void gni_bitmap_clear(uint64_t *words, size_t bit)
{
    words[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
}

static inline bool gni_bitmap_test(const uint64_t *words, size_t bit)
{
    return (words[bit / 64] >> (bit % 64) & 1) != 0;
}

/* The part of bits [bit, end) that lies in the word of `bit`, as a mask of that word. */
static inline uint64_t gni_bitmap_word_mask(size_t bit, size_t end)
{
    size_t room = 64 - bit % 64;
    size_t count = end - bit < room ? end - bit : room;
    return gni_bit_mask((unsigned)count) << (bit % 64);
}

/* Sets bits first to first + count - 1; none when count is 0. */
static inline void gni_bitmap_set_range(uint64_t *words, size_t first, size_t count)
{
    gni_assert(count <= SIZE_MAX - first);
    size_t end = first + count;
    for (size_t bit = first; bit < end; bit += 64 - bit % 64)
        words[bit / 64] |= gni_bitmap_word_mask(bit, end);
}

/* Clears bits first to first + count - 1; none when count is 0. */
static inline void gni_bitmap_clear_range(uint64_t *words, size_t first, size_t count)
{
    gni_assert(count <= SIZE_MAX - first);
    size_t end = first + count;
    for (size_t bit = first; bit < end; bit += 64 - bit % 64)
        words[bit / 64] &= ~gni_bitmap_word_mask(bit, end);
}

/* Set bits among the first nbits. */
static inline size_t gni_bitmap_count(const uint64_t *words, size_t nbits)
{
    size_t count = 0;
    for (size_t bit = 0; bit < nbits; bit += 64)
        count += gni_bit_count(words[bit / 64] & gni_bitmap_word_mask(bit, nbits));
    return count;
}

/* The first bit at or after `from` that is set once the words are xored with `flip`. */
static inline size_t gni_bitmap_scan(const uint64_t *words, size_t nbits, size_t from,
                                     uint64_t flip)
{
    for (size_t bit = from; bit < nbits; bit += 64 - bit % 64) {
        uint64_t found = (words[bit / 64] ^ flip) & gni_bitmap_word_mask(bit, nbits);
        if (found != 0)
            return bit - bit % 64 + gni_bit_trailing_zeros(found);
    }
    return nbits;
}

/* The first set bit at or after `from`; `from` may lie past the end. */
static inline size_t gni_bitmap_find_set(const uint64_t *words, size_t nbits, size_t from)
{
    return gni_bitmap_scan(words, nbits, from, 0);
}

/* The first clear bit at or after `from`; `from` may lie past the end. */
static inline size_t gni_bitmap_find_clear(const uint64_t *words, size_t nbits, size_t from)
{
    return gni_bitmap_scan(words, nbits, from, UINT64_MAX);
}

/*
 * The start of the first run of `count` clear bits, at least 1, that lies wholly in [from, nbits).
 * Looks at each word about once, whatever the count.
 */
static inline size_t gni_bitmap_find_clear_run(const uint64_t *words, size_t nbits, size_t from,
                                               size_t count)
{
    gni_assert(count > 0);
    size_t start = gni_bitmap_find_clear(words, nbits, from);
    while (start < nbits && count <= nbits - start) {
        /* The run need not be measured to its end, only as far as it must reach. */
        size_t end = gni_bitmap_find_set(words, start + count, start);
        if (end == start + count)
            return start;
        start = gni_bitmap_find_clear(words, nbits, end);
    }
    return nbits;
}

#endif
