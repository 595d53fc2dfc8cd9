/*
 * vector_sort.c: quicksort with AVX-512: a vector is split by the pivot with two compressing stores.
 *
 *   partition   from `from` to the same range of `to`: the low ones from its start, the others from its end
 *   leaves      up to LEAF vectors are sorted in registers by a bitonic network
 *
 * The two arrays change places at each level, and leaves go to `out`, which is one of them: a range is the
 * same range in both, so nothing else is there. A range that is split badly too often is merged instead.
 *
 * For several threads the first levels are split range by range, all ranges of a level at once.
 */
#include "ops/cpu/vector_sort.h"

#include "base/error.h"
#include "base/parallel.h"

#include <string.h>

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,popcnt")))
#define AVX512_INLINE static inline __attribute__((always_inline, target("avx512f,popcnt")))

enum {
    LEAF = 8,         /* vectors of a leaf */
    RANGES_MAX = 256, /* of the levels that threads split together */
    SAMPLES_FAR = 4,  /* vectors of samples for a pivot of a long range */
    FAR = 1 << 14,    /* elements of a long range */
};

static bool sort_is_allowed = true;
static int sort_splits_max = -1;

bool gni_vector_sort_is_present(void)
{
    return sort_is_allowed && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("popcnt");
}

void gni_vector_sort_tune(bool is_allowed, int splits_max)
{
    sort_is_allowed = is_allowed;
    sort_splits_max = splits_max;
}

/* ---- 16 words of 32 bits, 8 words of 64 bits ---------------------------------------------------- */

AVX512_INLINE __m512i v32_exchange(__m512i v, unsigned change)
{
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return _mm512_permutexvar_epi32(_mm512_xor_si512(lane, _mm512_set1_epi32((int)change)), v);
}

AVX512_INLINE __m512i v64_exchange(__m512i v, unsigned change)
{
    const __m512i lane = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    return _mm512_permutexvar_epi64(_mm512_xor_si512(lane, _mm512_set1_epi64((int)change)), v);
}

/* Which lanes have a bit of their number set, for bits 1, 2, 4, 8: they take the larger. */
#define LANES_WITH(bit) \
    ((bit) == 1 ? 0xaaaau : (bit) == 2 ? 0xccccu : (bit) == 4 ? 0xf0f0u : 0xff00u)

#define VECTOR_SORT(bits, word, lanes, mask, vector_word)                                              \
    /* Lanes whose numbers differ by `change` are put in order; `high` is its highest bit. */          \
    AVX512_INLINE __m512i v##bits##_order(__m512i v, unsigned change, unsigned high)                   \
    {                                                                                                  \
        __m512i other = v##bits##_exchange(v, change);                                                 \
        return _mm512_mask_max_epu##bits(_mm512_min_epu##bits(v, other), (mask)LANES_WITH(high),       \
                                         v, other);                                                    \
    }                                                                                                  \
                                                                                                       \
    /* The last steps of each merge: within vectors. */                                                \
    AVX512_INLINE __m512i v##bits##_settle(__m512i v)                                                  \
    {                                                                                                  \
        if (lanes == 16)                                                                               \
            v = v##bits##_order(v, 8, 8);                                                              \
        v = v##bits##_order(v, 4, 4);                                                                  \
        v = v##bits##_order(v, 2, 2);                                                                  \
        return v##bits##_order(v, 1, 1);                                                               \
    }                                                                                                  \
                                                                                                       \
    AVX512_INLINE __m512i v##bits##_sort_one(__m512i v)                                                \
    {                                                                                                  \
        v = v##bits##_order(v, 1, 1);                                                                  \
        v = v##bits##_order(v, 3, 2);                                                                  \
        v = v##bits##_order(v, 1, 1);                                                                  \
        v = v##bits##_order(v, 7, 4);                                                                  \
        v = v##bits##_order(v, 2, 2);                                                                  \
        v = v##bits##_order(v, 1, 1);                                                                  \
        if (lanes == 16) {                                                                             \
            v = v##bits##_order(v, 15, 8);                                                             \
            v = v##bits##_order(v, 4, 4);                                                              \
            v = v##bits##_order(v, 2, 2);                                                              \
            v = v##bits##_order(v, 1, 1);                                                              \
        }                                                                                              \
        return v;                                                                                      \
    }                                                                                                  \
                                                                                                       \
    /* Sorts `count` vectors, a power of 2: sorted runs of vectors are merged in twos, the second */   \
    /* read backwards. */                                                                              \
    AVX512_INLINE void v##bits##_sort(__m512i *v, const int count)                                     \
    {                                                                                                  \
        _Pragma("GCC unroll 8") for (int i = 0; i < count; i++) v[i] = v##bits##_sort_one(v[i]);       \
        _Pragma("GCC unroll 8") for (int run = 1; run < count; run *= 2)                               \
        {                                                                                              \
            _Pragma("GCC unroll 8") for (int i = 0; i < count; i++)                                    \
            {                                                                                          \
                int j = i ^ (2 * run - 1);                                                             \
                if (i > j)                                                                             \
                    continue;                                                                          \
                __m512i a = v[i], b = v##bits##_exchange(v[j], lanes - 1);                             \
                v[i] = _mm512_min_epu##bits(a, b);                                                     \
                v[j] = v##bits##_exchange(_mm512_max_epu##bits(a, b), lanes - 1);                      \
            }                                                                                          \
            _Pragma("GCC unroll 8") for (int step = run / 2; step > 0; step /= 2)                      \
            {                                                                                          \
                _Pragma("GCC unroll 8") for (int i = 0; i < count; i++)                                \
                {                                                                                      \
                    if ((i & step) != 0)                                                               \
                        continue;                                                                      \
                    const int other = (i | step) % LEAF; /* so that gcc 13 sees the bound */           \
                    __m512i a = v[i], b = v[other];                                                    \
                    v[i] = _mm512_min_epu##bits(a, b);                                                 \
                    v[other] = _mm512_max_epu##bits(a, b);                                             \
                }                                                                                      \
            }                                                                                          \
            _Pragma("GCC unroll 8") for (int i = 0; i < count; i++) v[i] = v##bits##_settle(v[i]);     \
        }                                                                                              \
    }                                                                                                  \
                                                                                                       \
    /* The lanes of the i-th of several vectors that hold n words. */                                  \
    AVX512_INLINE mask v##bits##_lanes(size_t n, size_t i)                                             \
    {                                                                                                  \
        size_t left = n > i * lanes ? n - i * lanes : 0;                                               \
        return (mask)((1u << (left < lanes ? left : lanes)) - 1);                                      \
    }                                                                                                  \
                                                                                                       \
    /* Sorts up to `count` vectors of words: what is missing is filled with the largest. */            \
    AVX512_INLINE void v##bits##_leaf(const word *from, size_t n, word *out, const int count)          \
    {                                                                                                  \
        __m512i v[LEAF];                                                                               \
        const __m512i most = _mm512_set1_epi32(-1);                                                    \
        _Pragma("GCC unroll 8") for (int i = 0; i < count; i++) v[i] =                                 \
            _mm512_mask_loadu_epi##bits(most, v##bits##_lanes(n, (size_t)i),                           \
                                        from + (size_t)i * lanes);                                     \
        v##bits##_sort(v, count);                                                                      \
        _Pragma("GCC unroll 8") for (int i = 0; i < count; i++) _mm512_mask_storeu_epi##bits(          \
            out + (size_t)i * lanes, v##bits##_lanes(n, (size_t)i), v[i]);                             \
    }                                                                                                  \
                                                                                                       \
    AVX512 static void leaf##bits(const word *from, size_t n, word *out)                               \
    {                                                                                                  \
        if (n <= lanes)                                                                                \
            v##bits##_leaf(from, n, out, 1);                                                           \
        else if (n <= 2 * lanes)                                                                       \
            v##bits##_leaf(from, n, out, 2);                                                           \
        else if (n <= 4 * lanes)                                                                       \
            v##bits##_leaf(from, n, out, 4);                                                           \
        else                                                                                           \
            v##bits##_leaf(from, n, out, 8);                                                           \
    }                                                                                                  \
                                                                                                       \
    /* About the middle of the words: the middle of some. */                                           \
    AVX512 static word pivot##bits(const word *from, size_t n)                                         \
    {                                                                                                  \
        word samples[SAMPLES_FAR * lanes];                                                             \
        size_t count = n >= FAR ? SAMPLES_FAR * lanes : lanes, step = n / count;                       \
        for (size_t i = 0; i < count; i++)                                                             \
            samples[i] = from[i * step + step / 2];                                                    \
        leaf##bits(samples, count, samples);                                                           \
        return samples[count / 2];                                                                     \
    }                                                                                                  \
                                                                                                       \
    /* One vector: the low ones to *low, which grows, the others to before *high. A whole vector is */ \
    /* stored at *low: `has_room` says that no word lies in its way. */                                \
    AVX512_INLINE void v##bits##_part(__m512i v, mask there, __m512i bound, bool is_equal_low,         \
                                      bool has_room, word **low, word **high)                          \
    {                                                                                                  \
        mask is_low = is_equal_low ? _mm512_mask_cmple_epu##bits##_mask(there, v, bound)               \
                                   : _mm512_mask_cmplt_epu##bits##_mask(there, v, bound);              \
        mask is_high = (mask)(there & ~is_low);                                                        \
        unsigned lows = (unsigned)__builtin_popcount(is_low);                                          \
        unsigned highs = (unsigned)__builtin_popcount(there) - lows;                                   \
        __m512i lower = _mm512_maskz_compress_epi##bits(is_low, v);                                    \
        *high -= highs;                                                                                \
        if (has_room)                                                                                  \
            _mm512_storeu_si512(*low, lower);                                                          \
        else                                                                                           \
            _mm512_mask_storeu_epi##bits(*low, (mask)((1u << lows) - 1), lower);                       \
        _mm512_mask_storeu_epi##bits(*high, (mask)((1u << highs) - 1),                                 \
                                     _mm512_maskz_compress_epi##bits(is_high, v));                     \
        *low += lows;                                                                                  \
    }                                                                                                  \
                                                                                                       \
    AVX512_INLINE size_t v##bits##_partition(const word *restrict from, size_t n, word pivot,          \
                                             const bool is_equal_low, word *restrict to)               \
    {                                                                                                  \
        const __m512i bound = _mm512_set1_epi##bits((vector_word)pivot);                               \
        const mask all = (mask)((1u << lanes) - 1);                                                    \
        word *low = to, *high = to + n;                                                                \
        size_t i = 0;                                                                                  \
        /* Between `low` and `high` there is room for what was not read: here more than a vector. */   \
        for (; n - i >= 5 * lanes; i += 4 * lanes) {                                                   \
            __m512i a = _mm512_loadu_si512(from + i);                                                  \
            __m512i b = _mm512_loadu_si512(from + i + lanes);                                          \
            __m512i c = _mm512_loadu_si512(from + i + 2 * lanes);                                      \
            __m512i d = _mm512_loadu_si512(from + i + 3 * lanes);                                      \
            v##bits##_part(a, all, bound, is_equal_low, true, &low, &high);                            \
            v##bits##_part(b, all, bound, is_equal_low, true, &low, &high);                            \
            v##bits##_part(c, all, bound, is_equal_low, true, &low, &high);                            \
            v##bits##_part(d, all, bound, is_equal_low, true, &low, &high);                            \
        }                                                                                              \
        for (; i < n; i += lanes) {                                                                    \
            mask there = v##bits##_lanes(n - i, 0);                                                    \
            __m512i v = _mm512_maskz_loadu_epi##bits(there, from + i);                                 \
            v##bits##_part(v, there, bound, is_equal_low, false, &low, &high);                         \
        }                                                                                              \
        return (size_t)(low - to);                                                                     \
    }                                                                                                  \
                                                                                                       \
    /* Low ones are below the pivot, or with `is_equal_low` at most it. Returns how many. */           \
    AVX512 static size_t partition##bits(const word *restrict from, size_t n, word pivot,              \
                                         bool is_equal_low, word *restrict to)                         \
    {                                                                                                  \
        return is_equal_low ? v##bits##_partition(from, n, pivot, true, to)                            \
                            : v##bits##_partition(from, n, pivot, false, to);                          \
    }                                                                                                  \
                                                                                                       \
    /* For ranges that do not want to be split: merges runs of leaves. */                              \
    static void merge##bits(word *from, word *to, size_t n, word *out)                                 \
    {                                                                                                  \
        for (size_t i = 0; i < n; i += LEAF * lanes)                                                   \
            leaf##bits(from + i, n - i < LEAF * lanes ? n - i : LEAF * lanes, from + i);               \
        for (size_t run = LEAF * lanes; run < n; run *= 2) {                                           \
            for (size_t i = 0; i < n; i += 2 * run) {                                                  \
                size_t a = i, a_end = n - i < run ? n : i + run;                                       \
                size_t b = a_end, b_end = n - i < 2 * run ? n : i + 2 * run;                           \
                for (size_t at = i; at < b_end; at++)                                                  \
                    to[at] =                                                                           \
                        b == b_end || (a < a_end && from[a] <= from[b]) ? from[a++] : from[b++];       \
            }                                                                                          \
            word *swap = from;                                                                         \
            from = to;                                                                                 \
            to = swap;                                                                                 \
        }                                                                                              \
        if (from != out)                                                                               \
            memcpy(out, from, n * sizeof(word));                                                       \
    }                                                                                                  \
                                                                                                       \
    /* `out` is `from` or `to`. `depth` is how often a range may still be split. */                    \
    static void quick##bits(word *from, word *to, size_t n, word *out, int depth)                      \
    {                                                                                                  \
        while (n > LEAF * lanes) {                                                                     \
            if (depth-- == 0) {                                                                        \
                merge##bits(from, to, n, out);                                                         \
                return;                                                                                \
            }                                                                                          \
            word pivot = pivot##bits(from, n);                                                         \
            size_t low = partition##bits(from, n, pivot, false, to);                                   \
            if (low == 0) { /* the pivot is the smallest: those that are equal to it are done */       \
                low = partition##bits(from, n, pivot, true, to);                                       \
                for (size_t i = 0; i < low; i++)                                                       \
                    out[i] = pivot;                                                                    \
            } else {                                                                                   \
                quick##bits(to, from, low, out, depth);                                                \
            }                                                                                          \
            word *swap = from + low;                                                                   \
            from = to + low;                                                                           \
            to = swap;                                                                                 \
            out += low;                                                                                \
            n -= low;                                                                                  \
        }                                                                                              \
        leaf##bits(from, n, out);                                                                      \
    }                                                                                                  \
                                                                                                       \
    struct ranges##bits {                                                                              \
        word *from;                                                                                    \
        word *to;                                                                                      \
        word *out;                                                                                     \
        size_t ends[RANGES_MAX + 1]; /* of the ranges; ends[0] is 0, where the first begins */         \
        size_t lows[RANGES_MAX];                                                                       \
    };                                                                                                 \
                                                                                                       \
    static void ranges##bits##_split(void *context, size_t begin, size_t end)                          \
    {                                                                                                  \
        struct ranges##bits *r = context;                                                              \
        for (size_t i = begin; i < end; i++) {                                                         \
            size_t first = r->ends[i], n = r->ends[i + 1] - first;                                     \
            word pivot = n > LEAF * lanes ? pivot##bits(r->from + first, n) : 0;                       \
            r->lows[i] = partition##bits(r->from + first, n, pivot, false, r->to + first);             \
        }                                                                                              \
    }                                                                                                  \
                                                                                                       \
    static void ranges##bits##_sort(void *context, size_t begin, size_t end)                           \
    {                                                                                                  \
        struct ranges##bits *r = context;                                                              \
        for (size_t i = begin; i < end; i++) {                                                         \
            size_t first = r->ends[i], n = r->ends[i + 1] - first;                                     \
            quick##bits(r->from + first, r->to + first, n, r->out + first, depth_of(n));               \
        }                                                                                              \
    }                                                                                                  \
                                                                                                       \
    void gni_vector_sort##bits(word *items, word *spare, size_t count, size_t parts)                   \
    {                                                                                                  \
        if (parts <= 1) {                                                                              \
            quick##bits(items, spare, count, items, depth_of(count));                                  \
            return;                                                                                    \
        }                                                                                              \
        struct ranges##bits r = {.from = items, .to = spare, .out = items, .ends = {0, count}};        \
        size_t ranges = 1;                                                                             \
        for (; ranges < 4 * parts && ranges < RANGES_MAX; ranges *= 2) {                               \
            gni_parallel_for(ranges, 1, ranges##bits##_split, &r);                                     \
            for (size_t i = ranges; i > 0; i--) {                                                      \
                r.ends[2 * i] = r.ends[i];                                                             \
                r.ends[2 * i - 1] = r.ends[i - 1] + r.lows[i - 1];                                     \
            }                                                                                          \
            word *swap = r.from;                                                                       \
            r.from = r.to;                                                                             \
            r.to = swap;                                                                               \
        }                                                                                              \
        gni_parallel_for(ranges, 1, ranges##bits##_sort, &r);                                          \
    }

/* Twice what even splits need, and some for short ranges. */
static int depth_of(size_t n)
{
    if (sort_splits_max >= 0)
        return sort_splits_max;
    return n < 2 ? 0 : 8 + 2 * (63 - __builtin_clzll(n));
}

VECTOR_SORT(32, uint32_t, 16, __mmask16, int)
VECTOR_SORT(64, uint64_t, 8, __mmask8, long long)

#else

bool gni_vector_sort_is_present(void)
{
    return false;
}

void gni_vector_sort_tune(bool is_allowed, int splits_max)
{
    (void)is_allowed, (void)splits_max;
}

void gni_vector_sort32(uint32_t *items, uint32_t *spare, size_t count, size_t parts)
{
    (void)items, (void)spare, (void)count, (void)parts;
}

void gni_vector_sort64(uint64_t *items, uint64_t *spare, size_t count, size_t parts)
{
    (void)items, (void)spare, (void)count, (void)parts;
}

#endif
