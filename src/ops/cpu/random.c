/*
 * random.c: see random.h.
 *
 * A fill takes the words of some blocks into a buffer, and makes numbers of them there; parts of a loop begin at
 * a block's first element.
 *
 * A permutation sorts indices by their keys, in three loops that compute the keys anew instead of keeping them:
 * count how many keys begin with the same bits (buckets of a few hundred), put each index into its bucket, sort
 * each bucket. The order in which threads fill a bucket does not matter, since it is sorted afterwards.
 */
#include "ops/cpu/random.h"

#include "base/error.h"
#include "base/host.h"
#include "base/parallel.h"

#include <stdatomic.h>
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
    if (block_count >= LANE_BLOCKS / 2 && __builtin_cpu_supports("avx2")) {
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
    gni_assert(low < high);
    struct fill fill = {.philox = philox, .out = out, .per_block = 2, .low = (uint64_t)low};
    fill.range = (uint64_t)high - (uint64_t)low;
    bool is_wide = fill.range > (uint64_t)1 << 32;
    switch (dtype) {
    case GN_BOOL:
    case GN_UINT8:
    case GN_INT8:
        fill.size = 1;
        fill.convert = convert_narrow8;
        break;
    case GN_INT16:
        fill.size = 2;
        fill.convert = convert_narrow16;
        break;
    case GN_INT32:
        fill.size = 4;
        fill.convert = convert_narrow32;
        break;
    default:
        gni_assert(dtype == GN_INT64);
        fill.size = 8;
        fill.convert = is_wide ? convert_wide64 : convert_narrow64;
        fill.per_block = is_wide ? 1 : 2;
    }
    gni_assert(!is_wide || dtype == GN_INT64);
    fill_run(&fill, count);
}

/* ---- permutations ------------------------------------------------------------------------------ */

enum {
    BUCKET_MEAN = 512, /* indices, at most, on average */
    BUCKET_MOST = 2048,
    FINE_BITS = 9, /* inside a bucket: about one key for each value */
    FINE_COUNT = 1 << FINE_BITS,
    PERMUTATION_GRAIN = 8192,
};

struct permutation {
    struct gni_philox philox;
    int64_t *out;
    int bits;              /* of a key that choose its bucket */
    _Atomic(size_t) *ends; /* of each bucket; while it is filled: where the next index goes */
};

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

/* The buckets of the keys from `begin` on, which is even, at most 2 * CHUNK_BLOCKS. */
static void buckets_find(const struct permutation *permutation, size_t begin, size_t count,
                         size_t *buckets)
{
    uint32_t words[CHUNK_WORDS];
    words_fill(permutation->philox, begin / 2, words, (count + 1) / 2);
    for (size_t i = 0; i < count; i++)
        buckets[i] = bucket_of(permutation, gni_philox_join(words[2 * i], words[2 * i + 1]));
}

static void permutation_count(void *context, size_t begin, size_t end)
{
    struct permutation *permutation = context;
    size_t buckets[2 * CHUNK_BLOCKS];
    for (size_t at = begin; at < end; at += COUNT_OF(buckets)) {
        size_t count = end - at < COUNT_OF(buckets) ? end - at : COUNT_OF(buckets);
        buckets_find(permutation, at, count, buckets);
        for (size_t i = 0; i < count; i++)
            atomic_fetch_add_explicit(&permutation->ends[buckets[i]], 1, memory_order_relaxed);
    }
}

static void permutation_spread(void *context, size_t begin, size_t end)
{
    struct permutation *permutation = context;
    size_t buckets[2 * CHUNK_BLOCKS];
    for (size_t at = begin; at < end; at += COUNT_OF(buckets)) {
        size_t count = end - at < COUNT_OF(buckets) ? end - at : COUNT_OF(buckets);
        buckets_find(permutation, at, count, buckets);
        for (size_t i = 0; i < count; i++) {
            _Atomic(size_t) *place = &permutation->ends[buckets[i]];
            permutation->out[atomic_fetch_add_explicit(place, 1, memory_order_relaxed)] =
                (int64_t)(at + i);
        }
    }
}

/* By the next bits of the keys, and then by insertion: keys are random, so that little is left to do. Equal keys
 * keep the order of their indices. */
static void bucket_sort(const struct permutation *permutation, int64_t *indices, size_t count)
{
    struct keyed sorted[BUCKET_MOST];
    uint64_t keys[BUCKET_MOST];
    uint16_t places[FINE_COUNT + 1] = {0};
    int shift = 64 - FINE_BITS;
    for (size_t i = 0; i < count; i++) {
        keys[i] = key_of(permutation->philox, (size_t)indices[i]);
        places[(keys[i] << permutation->bits >> shift) + 1]++;
    }
    for (size_t i = 1; i <= FINE_COUNT; i++)
        places[i] = (uint16_t)(places[i] + places[i - 1]);
    for (size_t i = 0; i < count; i++)
        sorted[places[keys[i] << permutation->bits >> shift]++] =
            (struct keyed){keys[i], indices[i]};
    for (size_t i = 1; i < count; i++) {
        struct keyed one = sorted[i];
        size_t at = i;
        for (; at > 0 && (sorted[at - 1].key > one.key ||
                          (sorted[at - 1].key == one.key && sorted[at - 1].index > one.index));
             at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = one;
    }
    for (size_t i = 0; i < count; i++)
        indices[i] = sorted[i].index;
}

static void permutation_sort(void *context, size_t begin, size_t end)
{
    struct permutation *permutation = context;
    for (size_t i = begin; i < end; i++) {
        size_t first =
            i > 0 ? atomic_load_explicit(&permutation->ends[i - 1], memory_order_relaxed) : 0;
        size_t last = atomic_load_explicit(&permutation->ends[i], memory_order_relaxed);
        bucket_sort(permutation, permutation->out + first, last - first);
    }
}

/* From the number of indices in each bucket to where it begins. */
static gn_status buckets_place(struct permutation *permutation, size_t bucket_count)
{
    size_t place = 0;
    for (size_t i = 0; i < bucket_count; i++) {
        size_t count = atomic_load_explicit(&permutation->ends[i], memory_order_relaxed);
        if (count > BUCKET_MOST) /* less likely than 10^-500, whatever the seed */
            return gni_error(GN_ERROR_UNSUPPORTED, "%zu random keys begin with the same %d bits",
                             count, permutation->bits);
        atomic_store_explicit(&permutation->ends[i], place, memory_order_relaxed);
        place += count;
    }
    return GN_OK;
}

gn_status gni_random_permutation(struct gni_philox philox, int64_t *out, size_t count)
{
    struct permutation permutation = {.philox = philox, .out = out};
    while (count >> permutation.bits > BUCKET_MEAN)
        permutation.bits++;
    size_t bucket_count = (size_t)1 << permutation.bits;
    permutation.ends = gni_host_alloc(bucket_count * sizeof *permutation.ends);
    if (permutation.ends == NULL)
        return gni_error_host_memory(bucket_count * sizeof *permutation.ends);
    gni_parallel_for(count, PERMUTATION_GRAIN, permutation_count, &permutation);
    gn_status status = buckets_place(&permutation, bucket_count);
    if (status == GN_OK) {
        gni_parallel_for(count, PERMUTATION_GRAIN, permutation_spread, &permutation);
        gni_parallel_for(bucket_count, PERMUTATION_GRAIN / BUCKET_MEAN, permutation_sort,
                         &permutation);
    }
    gni_host_free(permutation.ends);
    return status;
}
