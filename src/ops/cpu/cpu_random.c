/*
 * cpu_random.c: see cpu_random.h.
 *
 * A fill takes the words of some blocks into a buffer, and makes numbers of them there; parts of a loop begin at
 * a block's first element.
 *
 * A permutation sorts indices by their keys, in three loops: count how many keys begin with the same bits (buckets of
 * a few hundred), put each index into its bucket, sort each bucket. The indices are cut into sections, each of which has
 * a place of its own in every bucket, so that threads share no counters. Keys are computed anew in each loop instead
 * of being kept, but for the bits behind those of the bucket, which an index of 32 bits leaves room for.
 */
#include "ops/cpu/cpu_random.h"

#include "tensor/dtype.h"

#include "base/error.h"
#include "base/host.h"
#include "base/parallel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

enum {
    CHUNK_BLOCKS = 256, /* a buffer */
    LANE_BLOCKS = 8,    /* computed together where there is AVX2; divides a chunk */
    CHUNK_WORDS = 4 * CHUNK_BLOCKS,
    GRAIN_CHUNKS = 16, /* a part of a loop: some ten microseconds */
};

/* ---- words ------------------------------------------------------------------------------------ */

#if defined(__x86_64__)

struct lanes {
    __m256i c0, c1, c2,
        c3; /* of four blocks: counters in the lower halves, anything in the upper ones */
};

__attribute__((target("avx2"))) static inline struct lanes lanes_round(struct lanes in, __m256i k0,
                                                                       __m256i k1)
{
    __m256i a = _mm256_mul_epu32(in.c0, _mm256_set1_epi64x(GNI_PHILOX_FACTOR0));
    __m256i b = _mm256_mul_epu32(in.c2, _mm256_set1_epi64x(GNI_PHILOX_FACTOR1));
    return (struct lanes){
        .c0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(b, 32), in.c1), k0),
        .c1 = b,
        .c2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(a, 32), in.c3), k1),
        .c3 = a,
    };
}

__attribute__((target("avx2"))) static inline struct lanes lanes_start(struct gni_philox philox,
                                                                       uint64_t block)
{
    __m256i blocks =
        _mm256_add_epi64(_mm256_set1_epi64x((long long)block), _mm256_setr_epi64x(0, 1, 2, 3));
    return (struct lanes){
        .c0 = blocks,
        .c1 = _mm256_srli_epi64(blocks, 32),
        .c2 = _mm256_set1_epi64x((long long)philox.offset),
        .c3 = _mm256_set1_epi64x((long long)(philox.offset >> 32)),
    };
}

__attribute__((target("avx2"))) static inline void lanes_store(struct lanes in, uint32_t *words)
{
    __m256i first = _mm256_blend_epi32(in.c0, _mm256_slli_epi64(in.c1, 32), 0xAA);
    __m256i second = _mm256_blend_epi32(in.c2, _mm256_slli_epi64(in.c3, 32), 0xAA);
    __m256i even = _mm256_unpacklo_epi64(first, second);
    __m256i odd = _mm256_unpackhi_epi64(first, second);
    _mm256_storeu_si256((__m256i *)words, _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256((__m256i *)(words + 8), _mm256_permute2x128_si256(even, odd, 0x31));
}

/* Two chains of multiplications hide each other's latency; more do not fit the registers. */
__attribute__((target("avx2"))) static void
words_fill_avx2(struct gni_philox philox, uint64_t block, uint32_t *words, size_t block_count)
{
    for (size_t i = 0; i < block_count; i += LANE_BLOCKS) {
        struct lanes a = lanes_start(philox, block + i), b = lanes_start(philox, block + i + 4);
        uint32_t k0 = (uint32_t)philox.seed, k1 = (uint32_t)(philox.seed >> 32);
        for (int round = 0; round < 10; round++) {
            __m256i key0 = _mm256_set1_epi64x(k0), key1 = _mm256_set1_epi64x(k1);
            a = lanes_round(a, key0, key1);
            b = lanes_round(b, key0, key1);
            k0 += GNI_PHILOX_KEY0;
            k1 += GNI_PHILOX_KEY1;
        }
        lanes_store(a, words + 4 * i);
        lanes_store(b, words + 4 * i + 16);
    }
}

#endif

/* The words of some blocks, at most CHUNK_BLOCKS; more of the buffer may be written. */
static void words_fill(struct gni_philox philox, uint64_t block, uint32_t words[CHUNK_WORDS],
                       size_t block_count)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) { /* eight blocks take the time of two */
        words_fill_avx2(philox, block, words, block_count);
        return;
    }
#endif
    for (size_t i = 0; i < block_count; i++)
        gni_philox_block(philox, block + i, words + 4 * i);
}

/* ---- fills ------------------------------------------------------------------------------------ */

struct fill;

/* Makes `count` elements, as many as the words give or fewer, at `out`. */
typedef void (*fill_convert)(const struct fill *fill, const uint32_t *words, size_t count,
                             void *out);

struct fill {
    struct gni_philox philox;
    size_t size, per_block; /* bytes of an element; elements of a block */
    fill_convert convert;
    char *out;
    uint64_t low, range; /* of integers */
};

static void fill_part(void *context, size_t begin, size_t end)
{
    const struct fill *fill = context;
    size_t per_chunk = CHUNK_BLOCKS * fill->per_block;
    uint32_t words[CHUNK_WORDS];
    for (size_t at = begin; at < end; at += per_chunk) {
        size_t count = end - at < per_chunk ? end - at : per_chunk;
        uint64_t block = at / fill->per_block;
        size_t block_count = (count + fill->per_block - 1) / fill->per_block;
        words_fill(fill->philox, block, words, block_count);
        fill->convert(fill, words, count, fill->out + at * fill->size);
    }
}

static void fill_run(struct fill *fill, size_t count)
{
    gni_parallel_for(count, GRAIN_CHUNKS * CHUNK_BLOCKS * fill->per_block, fill_part, fill);
}

/* A fill of float32 or float64, which take one or two words each. */
static void floating_run(struct fill *fill, gn_dtype dtype, size_t count)
{
    gni_assert(dtype == GN_FLOAT32 || dtype == GN_FLOAT64);
    fill->size = dtype == GN_FLOAT32 ? sizeof(float) : sizeof(double);
    fill->per_block = dtype == GN_FLOAT32 ? 4 : 2;
    fill_run(fill, count);
}

static void convert_uniform32(const struct fill *fill, const uint32_t *words, size_t count,
                              void *out)
{
    (void)fill;
    float *restrict numbers = out;
    for (size_t i = 0; i < count; i++)
        numbers[i] = gni_philox_uniform32(words[i]);
}

static void convert_uniform64(const struct fill *fill, const uint32_t *words, size_t count,
                              void *out)
{
    (void)fill;
    double *restrict numbers = out;
    for (size_t i = 0; i < count; i++)
        numbers[i] = gni_philox_uniform64(gni_philox_join(words[2 * i], words[2 * i + 1]));
}

void gni_random_uniform(struct gni_philox philox, gn_dtype dtype, void *out, size_t count)
{
    bool is_single = dtype == GN_FLOAT32;
    struct fill fill = {
        .philox = philox, .out = out, .convert = is_single ? convert_uniform32 : convert_uniform64};
    floating_run(&fill, dtype, count);
}

/* Whole pairs go into a buffer first: the last may be cut. */
static void convert_normal32(const struct fill *fill, const uint32_t *words, size_t count,
                             void *out)
{
    (void)fill;
    float numbers[CHUNK_WORDS];
    for (size_t i = 0; i < (count + 1) / 2; i++)
        gni_philox_normal32(words[2 * i], words[2 * i + 1], &numbers[2 * i], &numbers[2 * i + 1]);
    memcpy(out, numbers, count * sizeof *numbers);
}

static void convert_normal64(const struct fill *fill, const uint32_t *words, size_t count,
                             void *out)
{
    (void)fill;
    double numbers[CHUNK_WORDS / 2];
    for (size_t i = 0; i < (count + 1) / 2; i++)
        gni_philox_normal64(gni_philox_join(words[4 * i], words[4 * i + 1]),
                            gni_philox_join(words[4 * i + 2], words[4 * i + 3]), &numbers[2 * i],
                            &numbers[2 * i + 1]);
    memcpy(out, numbers, count * sizeof *numbers);
}

void gni_random_normal(struct gni_philox philox, gn_dtype dtype, void *out, size_t count)
{
    bool is_single = dtype == GN_FLOAT32;
    struct fill fill = {
        .philox = philox, .out = out, .convert = is_single ? convert_normal32 : convert_normal64};
    floating_run(&fill, dtype, count);
}

static inline uint64_t integer_narrow(const struct fill *fill, const uint32_t *words, size_t i)
{
    uint64_t number = gni_philox_join(words[2 * i], words[2 * i + 1]);
    return fill->low + gni_philox_narrow(number, fill->range);
}

static inline uint64_t integer_wide(const struct fill *fill, const uint32_t *words, size_t i)
{
    const uint32_t *own = words + 4 * i;
    return fill->low + gni_philox_wide(gni_philox_join(own[0], own[1]),
                                       gni_philox_join(own[2], own[3]), fill->range);
}

/* Signed numbers are stored as their bits. */
#define CONVERT_INTEGER(name, type, integer)                                                  \
    static void name(const struct fill *fill, const uint32_t *words, size_t count, void *out) \
    {                                                                                         \
        type *restrict numbers = out;                                                         \
        for (size_t i = 0; i < count; i++)                                                    \
            numbers[i] = (type)integer(fill, words, i);                                       \
    }

CONVERT_INTEGER(convert_narrow8, uint8_t, integer_narrow)
CONVERT_INTEGER(convert_narrow16, uint16_t, integer_narrow)
CONVERT_INTEGER(convert_narrow32, uint32_t, integer_narrow)
CONVERT_INTEGER(convert_narrow64, uint64_t, integer_narrow)
CONVERT_INTEGER(convert_wide64, uint64_t, integer_wide)

void gni_random_integers(struct gni_philox philox, gn_dtype dtype, int64_t low, int64_t high,
                         void *out, size_t count)
{
    gni_assert(dtype == GN_UINT64 ? (uint64_t)low < (uint64_t)high : low < high);
    struct fill fill = {.philox = philox, .out = out, .per_block = 2, .low = (uint64_t)low};
    fill.range = (uint64_t)high - (uint64_t)low;
    bool is_wide = fill.range > (uint64_t)1 << 32;
    fill.size = gni_dtype_size(dtype);
    fill.per_block = is_wide ? 1 : 2;
    fill.convert = is_wide          ? convert_wide64
                   : fill.size == 1 ? convert_narrow8
                   : fill.size == 2 ? convert_narrow16
                   : fill.size == 4 ? convert_narrow32
                                    : convert_narrow64;
    gni_assert(gni_dtype_kind(dtype) != GNI_KIND_FLOATING && (!is_wide || fill.size == 8));
    fill_run(&fill, count);
}

/* ---- permutations ------------------------------------------------------------------------------ */

enum {
    BUCKET_MEAN = 512, /* indices, at most, on average */
    BUCKET_MOST = 2048,
    FINE_BITS = 9, /* inside a bucket: about one key for each value */
    FINE_COUNT = 1 << FINE_BITS,
    SECTION_LEAST = 1 << 16, /* indices */
    SECTIONS_MOST = 64,
    SORT_GRAIN = 16, /* buckets */
};

struct permutation {
    struct gni_philox philox;
    int64_t *out;
    size_t count, section; /* indices, and those of a section */
    size_t section_count, bucket_count;
    int bits; /* of a key that choose its bucket */
    bool
        is_packed; /* indices have 32 bits, and the next 32 of their keys above them until they are sorted */
    size_t *places; /* [sections][buckets]: how many indices, then where the next one goes */
};

/* What is sorted inside a bucket: the bits of a key behind those of the bucket, or the first of them. */
struct keyed {
    uint64_t key;
    int64_t index;
};

static uint64_t key_of(struct gni_philox philox, size_t index)
{
    uint32_t words[4];
    gni_philox_block(philox, index / 2, words);
    return index % 2 == 0 ? gni_philox_join(words[0], words[1])
                          : gni_philox_join(words[2], words[3]);
}

static size_t bucket_of(const struct permutation *permutation, uint64_t key)
{
    return permutation->bits > 0 ? (size_t)(key >> (64 - permutation->bits)) : 0;
}

/* The keys from `begin` on, which is even, at most 2 * CHUNK_BLOCKS. */
static void keys_fill(struct gni_philox philox, size_t begin, size_t count, uint64_t *keys)
{
    uint32_t words[CHUNK_WORDS];
    words_fill(philox, begin / 2, words, (count + 1) / 2);
    for (size_t i = 0; i < count; i++)
        keys[i] = gni_philox_join(words[2 * i], words[2 * i + 1]);
}

static size_t section_end(const struct permutation *permutation, size_t section)
{
    size_t end = (section + 1) * permutation->section;
    return end < permutation->count ? end : permutation->count;
}

static void permutation_count(void *context, size_t begin, size_t end)
{
    struct permutation *permutation = context;
    uint64_t keys[2 * CHUNK_BLOCKS];
    for (size_t section = begin; section < end; section++) {
        size_t *places = permutation->places + section * permutation->bucket_count;
        size_t last = section_end(permutation, section);
        for (size_t at = section * permutation->section; at < last; at += COUNT_OF(keys)) {
            size_t count = last - at < COUNT_OF(keys) ? last - at : COUNT_OF(keys);
            keys_fill(permutation->philox, at, count, keys);
            for (size_t i = 0; i < count; i++)
                places[bucket_of(permutation, keys[i])]++;
        }
    }
}

static void permutation_spread(void *context, size_t begin, size_t end)
{
    struct permutation *permutation = context;
    uint64_t keys[2 * CHUNK_BLOCKS];
    uint64_t kept = permutation->is_packed ? UINT64_MAX << 32 : 0;
    for (size_t section = begin; section < end; section++) {
        size_t *places = permutation->places + section * permutation->bucket_count;
        size_t last = section_end(permutation, section);
        for (size_t at = section * permutation->section; at < last; at += COUNT_OF(keys)) {
            size_t count = last - at < COUNT_OF(keys) ? last - at : COUNT_OF(keys);
            keys_fill(permutation->philox, at, count, keys);
            for (size_t i = 0; i < count; i++) {
                size_t place = places[bucket_of(permutation, keys[i])]++;
                permutation->out[place] =
                    (int64_t)(((keys[i] << permutation->bits) & kept) | (at + i));
            }
        }
    }
}

/* Whole keys are compared where the kept bits are equal, which is rare; equal keys are in the order of their indices. */
static __attribute__((noinline)) bool is_after_whole(struct gni_philox philox,
                                                     const struct keyed *a, const struct keyed *b)
{
    uint64_t first = key_of(philox, (size_t)a->index), second = key_of(philox, (size_t)b->index);
    return first != second ? first > second : a->index > b->index;
}

/* By the first bits, and then by insertion: keys are random, so that little is left to do. */
static void keyed_sort(struct gni_philox philox, const struct keyed *given, size_t count,
                       int64_t *out)
{
    struct keyed sorted[BUCKET_MOST];
    uint16_t places[FINE_COUNT + 1] = {0};
    int shift = 64 - FINE_BITS;
    for (size_t i = 0; i < count; i++)
        places[(given[i].key >> shift) + 1]++;
    for (size_t i = 1; i <= FINE_COUNT; i++)
        places[i] = (uint16_t)(places[i] + places[i - 1]);
    for (size_t i = 0; i < count; i++)
        sorted[places[given[i].key >> shift]++] = given[i];
    for (size_t i = 1; i < count; i++) {
        struct keyed one = sorted[i];
        size_t at = i;
        for (; at > 0 &&
               (sorted[at - 1].key > one.key ||
                (sorted[at - 1].key == one.key && is_after_whole(philox, &sorted[at - 1], &one)));
             at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = one;
    }
    for (size_t i = 0; i < count; i++)
        out[i] = sorted[i].index;
}

/* Buckets end where the last section's place in them does. */
static void permutation_sort(void *context, size_t begin, size_t end)
{
    struct permutation *permutation = context;
    const size_t *ends =
        permutation->places + (permutation->section_count - 1) * permutation->bucket_count;
    struct keyed keyed[BUCKET_MOST];
    for (size_t bucket = begin; bucket < end; bucket++) {
        size_t first = bucket > 0 ? ends[bucket - 1] : 0, count = ends[bucket] - first;
        int64_t *out = permutation->out + first;
        for (size_t i = 0; i < count; i++) {
            uint64_t given = (uint64_t)out[i];
            if (permutation->is_packed)
                keyed[i] = (struct keyed){given >> 32 << 32, (int64_t)(given & UINT32_MAX)};
            else
                keyed[i] = (struct keyed){key_of(permutation->philox, given) << permutation->bits,
                                          (int64_t)given};
        }
        keyed_sort(permutation->philox, keyed, count, out);
    }
}

/* A permutation that is one bucket. */
static void permutation_small(struct gni_philox philox, int64_t *out, size_t count)
{
    struct keyed keyed[BUCKET_MOST];
    uint64_t keys[2 * CHUNK_BLOCKS];
    for (size_t at = 0; at < count; at += COUNT_OF(keys)) {
        size_t length = count - at < COUNT_OF(keys) ? count - at : COUNT_OF(keys);
        keys_fill(philox, at, length, keys);
        for (size_t i = 0; i < length; i++)
            keyed[at + i] = (struct keyed){keys[i], (int64_t)(at + i)};
    }
    keyed_sort(philox, keyed, count, out);
}

/* From the number of indices of each section in each bucket to where the first of them goes. */
static gn_status buckets_place(struct permutation *permutation)
{
    size_t place = 0;
    for (size_t bucket = 0; bucket < permutation->bucket_count; bucket++) {
        size_t first = place, *at = permutation->places + bucket;
        for (size_t section = 0; section < permutation->section_count; section++) {
            size_t count = *at;
            *at = place;
            place += count;
            at += permutation->bucket_count;
        }
        if (place - first > BUCKET_MOST) /* less likely than 10^-500, whatever the seed */
            return gni_error(GN_ERROR_UNSUPPORTED, "%zu random keys begin with the same %d bits",
                             place - first, permutation->bits);
    }
    return GN_OK;
}

gn_status gni_random_permutation(struct gni_philox philox, int64_t *out, size_t count)
{
    if (count <= BUCKET_MOST) {
        permutation_small(philox, out, count);
        return GN_OK;
    }
    size_t sections = count / SECTION_LEAST + 1;
    sections = sections < SECTIONS_MOST ? sections : SECTIONS_MOST;
    struct permutation permutation = {.philox = philox,
                                      .out = out,
                                      .count = count,
                                      .section = (count / sections / 2 + 1) * 2, /* even */
                                      .is_packed = count <= UINT32_MAX};
    while (count >> permutation.bits > BUCKET_MEAN)
        permutation.bits++;
    permutation.section_count = (count - 1) / permutation.section + 1;
    permutation.bucket_count = (size_t)1 << permutation.bits;
    size_t nbytes =
        permutation.section_count * permutation.bucket_count * sizeof *permutation.places;
    permutation.places = gni_host_alloc(nbytes);
    if (permutation.places == NULL)
        return gni_error_host_memory(nbytes);
    gni_parallel_for(permutation.section_count, 1, permutation_count, &permutation);
    gn_status status = buckets_place(&permutation);
    if (status == GN_OK) {
        gni_parallel_for(permutation.section_count, 1, permutation_spread, &permutation);
        gni_parallel_for(permutation.bucket_count, SORT_GRAIN, permutation_sort, &permutation);
    }
    gni_host_free(permutation.places);
    return status;
}
