/*
 * select.c: what rests on sorting: the largest of a row, the different ones, places in a sorted row.
 *
 * The k largest of a long row are found in one pass. Candidates are gathered in a stock of k and some more;
 * when it is full it is sorted, all but the best k are dropped, and the last of these becomes the bound that
 * later elements must beat. So at least every element beyond k pays for its share of one sort, and nearly all
 * elements of an ordinary row cost a comparison.
 *
 * One element by its number is found by the digits of its key, the first one first: how often each occurs says which
 * digit the element has, and only the keys with that digit go on.
 */
#include "ops/cpu/cpu_sort.h"

#include "base/checked.h"
#include "base/host.h"
#include "base/parallel.h"
#include "ops/cpu/keys.h"
#include "ops/cpu/radix.h"

#include <math.h>
#include <string.h>

enum {
    TOPK_FRACTION = 8,      /* up to this fraction of a row is selected, more is sorted */
    TOPK_STOCK_MIN = 256,   /* candidates beyond k, at least */
    TOPK_GRAIN = 1 << 14,   /* elements that are worth waking a thread for */
    SEARCH_GRAIN = 1 << 11, /* searches that are */
    SEARCH_LANES = 8,       /* searches at the same time */
    DIGIT_BITS = 11,
    DIGIT_COUNT = 1 << DIGIT_BITS,
    SECTION_LEAST = 1 << 16, /* elements whose first digits a thread counts */
    SECTIONS_MOST = 32,
};

/* ---- the largest ----------------------------------------------------------------------------- */

struct topk {
    const unsigned char *in;
    gn_dtype dtype;
    size_t size; /* of an element */
    size_t columns;
    size_t k;
    uint64_t flip; /* so that the best key is the smallest */
    unsigned char *values;
    int64_t *indices;
    size_t grain;      /* rows of a slot */
    size_t room;       /* of a stock */
    size_t slot_bytes; /* two stocks and counters */
    unsigned char *slots;
};

/* Candidates in the order in which they came, but for those that were sorted. */
struct stock {
    const struct topk *topk;
    struct gni_pair *pairs;
    struct gni_pair *spare;
    size_t *counts;
    size_t used;
};

/* Sorts the stock and keeps the best k. Sorting is stable: of equal keys the earlier position wins. */
static void stock_drop(struct stock *stock)
{
    struct gni_radix radix = {.item = GNI_ITEM_PAIR,
                              .count = stock->used,
                              .items = stock->pairs,
                              .spare = stock->spare,
                              .key_bits = gni_key_bits(stock->topk->dtype),
                              .parts = 1,
                              .counts = stock->counts};
    if (gni_radix_sort(&radix) == stock->spare) {
        stock->spare = stock->pairs;
        stock->pairs = radix.spare;
    }
    if (stock->used > stock->topk->k)
        stock->used = stock->topk->k;
}

static void topk_row(const struct topk *topk, size_t index, struct stock *stock)
{
    const unsigned char *in = topk->in + index * topk->columns * topk->size;
    uint64_t keys[GNI_KEYS_BLOCK], bound = 0;
    bool has_bound = false;
    stock->used = 0;
    for (size_t at = 0; at < topk->columns; at += GNI_KEYS_BLOCK) {
        size_t n = topk->columns - at;
        n = n < GNI_KEYS_BLOCK ? n : GNI_KEYS_BLOCK;
        gni_keys_load64(topk->dtype, in + at * topk->size, n, topk->flip, keys);
        for (size_t i = 0; i < n; i++) {
            if (has_bound && keys[i] >= bound)
                continue;
            stock->pairs[stock->used++] = (struct gni_pair){keys[i], at + i};
            if (stock->used == topk->room) {
                stock_drop(stock);
                bound = stock->pairs[topk->k - 1].key;
                has_bound = true;
            }
        }
    }
    stock_drop(stock);
    for (size_t i = 0; i < topk->k; i++) {
        size_t position = stock->pairs[i].position, to = index * topk->k + i;
        if (topk->values != NULL)
            memcpy(topk->values + to * topk->size, in + position * topk->size, topk->size);
        if (topk->indices != NULL)
            topk->indices[to] = (int64_t)position;
    }
}

static void topk_part(void *context, size_t begin, size_t end)
{
    const struct topk *topk = context;
    unsigned char *slot = topk->slots + begin / topk->grain * topk->slot_bytes;
    struct gni_pair *pairs = (struct gni_pair *)(void *)slot;
    struct stock stock = {.topk = topk,
                          .pairs = pairs,
                          .spare = pairs + topk->room,
                          .counts = (size_t *)(void *)(pairs + 2 * topk->room)};
    for (size_t i = begin; i < end; i++)
        topk_row(topk, i, &stock);
}

/* The sizes of a slot; false if they cannot exist. */
static bool topk_size(struct topk *topk, size_t slots, size_t *nbytes)
{
    size_t more = topk->k > TOPK_STOCK_MIN ? topk->k : TOPK_STOCK_MIN, pairs, counts;
    if (!gni_size_multiply(gni_radix_counts(1, gni_key_bits(topk->dtype)), sizeof(size_t),
                           &counts) ||
        !gni_size_add(topk->k, more, &topk->room) ||
        !gni_size_multiply(topk->room, 2 * sizeof(struct gni_pair), &pairs) ||
        !gni_size_add(pairs, counts, &topk->slot_bytes))
        return false;
    return gni_size_multiply(slots, topk->slot_bytes, nbytes);
}

gn_status gni_topk(const void *in, gn_dtype dtype, size_t rows, size_t columns, size_t k,
                   bool is_largest, bool is_sorted, void *values, int64_t *indices)
{
    (void)is_sorted; /* what is found is sorted anyway */
    gni_assert(k <= columns);
    if (rows == 0 || k == 0 || (values == NULL && indices == NULL))
        return GN_OK;
    if (k > columns / TOPK_FRACTION)
        return gni_sort_first(in, dtype, rows, columns, k, is_largest, values, indices);

    size_t threads = (size_t)gni_parallel_get_threads();
    size_t even = (rows - 1) / threads + 1, least = TOPK_GRAIN / (columns + 1) + 1, nbytes;
    struct topk topk = {.in = in,
                        .dtype = dtype,
                        .size = gni_dtype_size(dtype),
                        .columns = columns,
                        .k = k,
                        .flip = is_largest ? gni_key_mask(dtype) : 0,
                        .values = values,
                        .indices = indices,
                        .grain = even > least ? even : least};
    if (!topk_size(&topk, (rows - 1) / topk.grain + 1, &nbytes))
        return gni_error(GN_ERROR_OVERFLOW, "the %zu largest do not fit the address space", k);
    topk.slots = gni_host_realloc(NULL, nbytes);
    if (topk.slots == NULL)
        return gni_error_host_memory(nbytes);
    gni_parallel_for(rows, topk.grain, topk_part, &topk);
    gni_host_free(topk.slots);
    return GN_OK;
}

/* ---- one by its number ------------------------------------------------------------------------ */

struct kth {
    const unsigned char *in;
    gn_dtype dtype;
    size_t size, count, section; /* of an element; elements; those of a section */
    unsigned shift;              /* of the first digit */
    uint64_t digit;              /* the one that goes on */
    size_t *counts;              /* [sections][DIGIT_COUNT] */
    uint64_t *keys;              /* those with that digit */
};

/* The digit of number *k among digits that occur so often; *k becomes the number among its own. */
static size_t digit_find(const size_t *counts, size_t *k)
{
    size_t digit = 0;
    for (; *k >= counts[digit]; digit++)
        *k -= counts[digit];
    return digit;
}

/* For each section: how often each digit occurs, or (with `keys`) the keys that go on, from the place on that stands
 * where that digit's count was. */
static void kth_part(void *context, size_t begin, size_t end)
{
    const struct kth *kth = context;
    uint64_t keys[GNI_KEYS_BLOCK];
    for (size_t section = begin; section < end; section++) {
        size_t *counts = kth->counts + section * DIGIT_COUNT, place = counts[kth->digit];
        size_t at = section * kth->section, rest = kth->count - at;
        size_t last = at + (rest < kth->section ? rest : kth->section);
        for (; at < last; at += GNI_KEYS_BLOCK) {
            size_t n = last - at < GNI_KEYS_BLOCK ? last - at : GNI_KEYS_BLOCK;
            gni_keys_load64(kth->dtype, kth->in + at * kth->size, n, 0, keys);
            if (kth->keys == NULL)
                for (size_t i = 0; i < n; i++)
                    counts[keys[i] >> kth->shift]++;
            else
                for (size_t i = 0; i < n; i++)
                    if (keys[i] >> kth->shift == kth->digit)
                        kth->keys[place++] = keys[i];
        }
    }
}

/* Key number *k of some that are equal from bit `shift` on; *k becomes the number among those that are equal to it. */
static uint64_t keys_select(uint64_t *keys, size_t count, unsigned shift, size_t *k)
{
    size_t counts[DIGIT_COUNT];
    while (shift > 0) {
        unsigned low = shift > DIGIT_BITS ? shift - DIGIT_BITS : 0;
        uint64_t mask = (UINT64_C(1) << (shift - low)) - 1;
        memset(counts, 0, sizeof counts);
        for (size_t i = 0; i < count; i++)
            counts[keys[i] >> low & mask]++;
        size_t digit = digit_find(counts, k), kept = 0;
        for (size_t i = 0; i < count; i++)
            if ((keys[i] >> low & mask) == digit)
                keys[kept++] = keys[i];
        count = kept;
        shift = low;
    }
    return keys[0];
}

/* Number k of the elements that have a key. */
static const void *element_find(const struct kth *kth, uint64_t key, size_t k)
{
    uint64_t keys[GNI_KEYS_BLOCK];
    for (size_t at = 0;; at += GNI_KEYS_BLOCK) {
        size_t n = kth->count - at < GNI_KEYS_BLOCK ? kth->count - at : GNI_KEYS_BLOCK;
        gni_keys_load64(kth->dtype, kth->in + at * kth->size, n, 0, keys);
        for (size_t i = 0; i < n; i++)
            if (keys[i] == key && k-- == 0)
                return kth->in + (at + i) * kth->size;
    }
}

/* Counts the first digits, and finds that of the element; where each section's keys go. How many there are. */
static size_t first_digit(struct kth *kth, size_t sections, size_t *k)
{
    size_t totals[DIGIT_COUNT] = {0}, place = 0;
    gni_parallel_for(sections, 1, kth_part, kth);
    for (size_t section = 0; section < sections; section++)
        for (size_t digit = 0; digit < DIGIT_COUNT; digit++)
            totals[digit] += kth->counts[section * DIGIT_COUNT + digit];
    kth->digit = digit_find(totals, k);
    for (size_t section = 0; section < sections; section++) {
        size_t *own = &kth->counts[section * DIGIT_COUNT + kth->digit], count = *own;
        *own = place;
        place += count;
    }
    return place;
}

gn_status gni_kth(const void *in, gn_dtype dtype, size_t count, size_t k, void *value)
{
    gni_assert(k < count);
    unsigned bits = gni_key_bits(dtype);
    size_t sections = count / SECTION_LEAST + 1;
    sections = sections < SECTIONS_MOST ? sections : SECTIONS_MOST;
    struct kth kth = {.in = in,
                      .dtype = dtype,
                      .size = gni_dtype_size(dtype),
                      .count = count,
                      .section = (count - 1) / sections + 1,
                      .shift = bits > DIGIT_BITS ? bits - DIGIT_BITS : 0};
    sections = (count - 1) / kth.section + 1;
    size_t nbytes = sections * DIGIT_COUNT * sizeof *kth.counts;
    kth.counts = gni_host_alloc(nbytes);
    if (kth.counts == NULL)
        return gni_error_host_memory(nbytes);
    size_t found = first_digit(&kth, sections, &k);
    kth.keys = gni_host_realloc(NULL, found * sizeof *kth.keys);
    if (kth.keys != NULL) {
        gni_parallel_for(sections, 1, kth_part, &kth);
        uint64_t key = keys_select(kth.keys, found, kth.shift, &k);
        bool has_several = gni_dtype_kind(dtype) == GNI_KIND_FLOATING &&
                           (key == gni_key_zero(dtype) || key == gni_key_nan(dtype));
        if (has_several)
            memcpy(value, element_find(&kth, key, k), kth.size);
        else
            gni_keys_store64(dtype, &key, 1, 0, value);
    }
    gni_host_free(kth.counts);
    if (kth.keys == NULL)
        return gni_error_host_memory(found * sizeof *kth.keys);
    gni_host_free(kth.keys);
    return GN_OK;
}

/* ---- the different --------------------------------------------------------------------------- */

/* Moves the first of each group of equal elements to the front; `order` may be NULL. */
static size_t unique_compact(gn_dtype dtype, size_t count, unsigned char *values,
                             const int64_t *order, int64_t *inverse, int64_t *counts)
{
    size_t size = gni_dtype_size(dtype), groups = 0;
    bool is_floating = gni_dtype_kind(dtype) == GNI_KIND_FLOATING;
    uint64_t keys[GNI_KEYS_BLOCK], last = 0;
    for (size_t at = 0; at < count; at += GNI_KEYS_BLOCK) {
        size_t n = count - at < GNI_KEYS_BLOCK ? count - at : GNI_KEYS_BLOCK;
        gni_keys_load64(dtype, values + at * size, n, 0, keys);
        for (size_t i = 0; i < n; i++) {
            bool is_nan = is_floating && keys[i] == gni_key_nan(dtype);
            if (groups == 0 || keys[i] != last || is_nan) {
                if (groups != at + i)
                    memcpy(values + groups * size, values + (at + i) * size, size);
                if (counts != NULL)
                    counts[groups] = 0;
                groups++;
                last = keys[i];
            }
            if (counts != NULL)
                counts[groups - 1]++;
            if (inverse != NULL)
                inverse[order[at + i]] = (int64_t)(groups - 1);
        }
    }
    return groups;
}

gn_status gni_unique(const void *in, gn_dtype dtype, size_t count, void *values, int64_t *inverse,
                     int64_t *counts, size_t *unique_count)
{
    size_t nbytes;
    int64_t *order = NULL;
    if (inverse != NULL) {
        if (!gni_size_multiply(count, sizeof *order, &nbytes))
            return gni_error(GN_ERROR_OVERFLOW, "%zu elements do not fit the address space", count);
        order = gni_host_realloc(NULL, nbytes);
        if (order == NULL)
            return gni_error_host_memory(nbytes);
    }
    gn_status status = gni_sort(in, dtype, 1, count, false, values, order);
    if (status == GN_OK)
        *unique_count = unique_compact(dtype, count, values, order, inverse, counts);
    gni_host_free(order);
    return status;
}

/* ---- places in a sorted row ------------------------------------------------------------------ */

struct search {
    const unsigned char *sorted;
    gn_dtype dtype;
    size_t count;
    const unsigned char *values;
    bool is_right;
    int64_t *positions;
    size_t nan; /* where NaN of float32 and float64 belongs */
};

/*
 * Halves the range without a branch on what is found, as one of two would be mispredicted; several values at the same
 * time, as each step waits for the one before. All have the same steps: half of what is left, until one is.
 *
 * `stored` is what lies in memory, `type` what is compared: NaN is less than nothing, and has its place found before.
 */
#define SEARCH_STEPS(stored, type, OF, is_behind)                                          \
    for (size_t left = search->count; left > 0;) {                                         \
        size_t half = left > 1 ? left / 2 : 1;                                             \
        left -= half;                                                                      \
        for (size_t k = 0; k < SEARCH_LANES; k++) {                                        \
            stored bits;                                                                   \
            memcpy(&bits, search->sorted + (at[k] + half - 1) * sizeof bits, sizeof bits); \
            type found = OF(bits);                                                         \
            at[k] += half & (0 - (size_t)(is_behind));                                     \
        }                                                                                  \
    }

#define SEARCH(name, stored, type, OF, IS_NAN)                                                 \
    static void search_##name(const struct search *search, size_t begin, size_t count)         \
    {                                                                                          \
        size_t at[SEARCH_LANES] = {0};                                                         \
        type wanted[SEARCH_LANES];                                                             \
        for (size_t k = 0; k < SEARCH_LANES; k++) { /* behind the last: that one again */      \
            stored bits;                                                                       \
            size_t i = begin + (k < count ? k : count - 1);                                    \
            memcpy(&bits, search->values + i * sizeof bits, sizeof bits);                      \
            wanted[k] = OF(bits);                                                              \
        }                                                                                      \
        if (search->is_right)                                                                  \
            SEARCH_STEPS(stored, type, OF, found <= wanted[k])                                 \
        else                                                                                   \
            SEARCH_STEPS(stored, type, OF, found < wanted[k])                                  \
        for (size_t k = 0; k < count; k++)                                                     \
            search->positions[begin + k] = (int64_t)(IS_NAN(wanted[k]) ? search->nan : at[k]); \
    }

#define NEVER_NAN(x) false
#define SAME(x) (x)
#define IS_NAN(x) ((x) != (x))

#define ROW(NAME, name, type, SIGNED) SEARCH(name, type, type, SAME, NEVER_NAN)
GNI_INTEGER_LIST(ROW)
#undef ROW
SEARCH(float16, uint16_t, uint32_t, gni_key_float16, NEVER_NAN)
SEARCH(bfloat16, uint16_t, uint32_t, gni_key_bfloat16, NEVER_NAN)
SEARCH(float32, float, float, SAME, IS_NAN)
SEARCH(float64, double, double, SAME, IS_NAN)

static void (*const search_of[GN_DTYPE_COUNT])(const struct search *, size_t, size_t) = {
#define ROW(NAME, name, type, SIGNED) [GN_##NAME] = search_##name,
    GNI_INTEGER_LIST(ROW)
#undef ROW
        [GN_BOOL] = search_uint8,
    [GN_FLOAT16] = search_float16,
    [GN_BFLOAT16] = search_bfloat16,
    [GN_FLOAT32] = search_float32,
    [GN_FLOAT64] = search_float64,
};

static void search_part(void *context, size_t begin, size_t end)
{
    const struct search *search = context;
    for (size_t at = begin; at < end; at += SEARCH_LANES)
        search_of[search->dtype](search, at, end - at < SEARCH_LANES ? end - at : SEARCH_LANES);
}

/* Where NaN belongs: behind everything, or before the first one, which is behind infinity. */
static size_t nan_place(const struct search *search)
{
    const float infinite32 = INFINITY;
    const double infinite64 = INFINITY;
    int64_t place;
    struct search own = *search;
    if (search->is_right || (search->dtype != GN_FLOAT32 && search->dtype != GN_FLOAT64))
        return search->count;
    own.values = search->dtype == GN_FLOAT32 ? (const unsigned char *)&infinite32
                                             : (const unsigned char *)&infinite64;
    own.is_right = true;
    own.positions = &place;
    search_of[search->dtype](&own, 0, 1);
    return (size_t)place;
}

void gni_search_sorted(const void *sorted, gn_dtype dtype, size_t count, const void *values,
                       size_t n, bool is_right, int64_t *positions)
{
    struct search search = {sorted, dtype, count, values, is_right, positions, 0};
    search.nan = nan_place(&search);
    if (n > 0)
        gni_parallel_for(n, SEARCH_GRAIN, search_part, &search);
}
