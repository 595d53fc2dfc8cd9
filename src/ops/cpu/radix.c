/*
 * radix.c: the sort of radix.h: the loops over items once for each kind of item, the rest for all.
 */
#include "ops/cpu/radix.h"

#include "base/error.h"
#include "base/parallel.h"
#include "ops/cpu/vector_sort.h"

#include <string.h>

enum {
    RADIX_BITS = 8, /* 256 open cache lines fit the first cache, 2048 do not */
    RADIX = 1 << RADIX_BITS,
    RADIX_BLOCK = 2048, /* items whose digits are all counted while they are in the first cache */
    RADIX_PART_MIN = 1 << 15, /* items that are worth waking a thread for */
    VECTOR_SHORT = 1 << 12,   /* where one or two digits become worth their counters */
    MERGE_MAX = 192,          /* where distributing becomes faster than merging */
    INSERT_MAX = 16,          /* runs that merging starts from */
};

struct item_loops {
    size_t size;
    void (*count)(const void *items, size_t n, unsigned shift, size_t *counts);
    void (*scatter)(const void *items, size_t n, unsigned shift, size_t *offsets, void *out);
    void *(*merge)(void *items, void *spare, size_t n);
};

/* KEY(item) is what orders; a position below a key in one word only confirms the order there is. */
#define ITEM_LOOPS(name, type, KEY)                                                                \
    static void name##_count(const void *in, size_t n, unsigned shift, size_t *counts)             \
    {                                                                                              \
        const type *items = in;                                                                    \
        for (size_t i = 0; i < n; i++)                                                             \
            counts[(KEY(items[i]) >> shift) & (RADIX - 1)]++;                                      \
    }                                                                                              \
                                                                                                   \
    static void name##_scatter(const void *in, size_t n, unsigned shift, size_t *restrict offsets, \
                               void *out)                                                          \
    {                                                                                              \
        const type *restrict items = in;                                                           \
        type *restrict moved = out;                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            type item = items[i];                                                                  \
            moved[offsets[(KEY(item) >> shift) & (RADIX - 1)]++] = item;                           \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void name##_insert(type *items, size_t n)                                               \
    {                                                                                              \
        for (size_t i = 1; i < n; i++) {                                                           \
            type item = items[i];                                                                  \
            size_t at = i;                                                                         \
            for (; at > 0 && KEY(items[at - 1]) > KEY(item); at--)                                 \
                items[at] = items[at - 1];                                                         \
            items[at] = item;                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void name##_join(const type *a, const type *a_end, const type *b, const type *b_end,    \
                            type *out)                                                             \
    {                                                                                              \
        while (a < a_end && b < b_end) {                                                           \
            bool is_b = KEY(*b) < KEY(*a);                                                         \
            *out++ = *(is_b ? b : a);                                                              \
            b += is_b;                                                                             \
            a += !is_b;                                                                            \
        }                                                                                          \
        for (; a < a_end; a++)                                                                     \
            *out++ = *a;                                                                           \
        for (; b < b_end; b++)                                                                     \
            *out++ = *b;                                                                           \
    }                                                                                              \
                                                                                                   \
    static void *name##_merge(void *in, void *spare, size_t n)                                     \
    {                                                                                              \
        type *from = in, *to = spare;                                                              \
        for (size_t i = 0; i < n; i += INSERT_MAX)                                                 \
            name##_insert(from + i, n - i < INSERT_MAX ? n - i : INSERT_MAX);                      \
        for (size_t run = INSERT_MAX; run < n; run *= 2) {                                         \
            for (size_t i = 0; i < n; i += 2 * run) {                                              \
                size_t middle = n - i < run ? n : i + run;                                         \
                size_t end = n - i < 2 * run ? n : i + 2 * run;                                    \
                name##_join(from + i, from + middle, from + middle, from + end, to + i);           \
            }                                                                                      \
            type *swap = from;                                                                     \
            from = to;                                                                             \
            to = swap;                                                                             \
        }                                                                                          \
        return from;                                                                               \
    }                                                                                              \
                                                                                                   \
    static const struct item_loops name##_loops = {sizeof(type), name##_count, name##_scatter,     \
                                                   name##_merge};

#define KEY_OF_WORD(item) (item)
#define KEY_OF_PAIR(item) ((item).key)

ITEM_LOOPS(item32, uint32_t, KEY_OF_WORD)
ITEM_LOOPS(item64, uint64_t, KEY_OF_WORD)
ITEM_LOOPS(pair, struct gni_pair, KEY_OF_PAIR)

static const struct item_loops *const loops_of[] = {
    [GNI_ITEM_32] = &item32_loops,
    [GNI_ITEM_64] = &item64_loops,
    [GNI_ITEM_PAIR] = &pair_loops,
};

size_t gni_item_size(enum gni_item item)
{
    return loops_of[item]->size;
}

static size_t digit_count(unsigned key_bits)
{
    return (key_bits + RADIX_BITS - 1) / RADIX_BITS;
}

size_t gni_radix_parts(size_t count, size_t threads)
{
    size_t most = count / RADIX_PART_MIN;
    size_t parts = threads < most ? threads : most;
    return parts > 1 ? parts : 1;
}

size_t gni_radix_counts(size_t parts, unsigned key_bits)
{
    return parts * digit_count(key_bits) * RADIX;
}

/* One step of a sort, for all of its parts. */
struct step {
    const struct gni_radix *sort;
    const struct item_loops *loops;
    size_t grain; /* items of a part */
    size_t first_digit;
    size_t end_digit;
    const unsigned char *from;
    void *to;
};

static size_t *step_counts(const struct step *step, size_t part, size_t digit)
{
    return step->sort->counts + (part * digit_count(step->sort->key_bits) + digit) * RADIX;
}

static unsigned step_shift(const struct step *step, size_t digit)
{
    return step->sort->first_bit + RADIX_BITS * (unsigned)digit;
}

static void step_count_part(void *context, size_t begin, size_t end)
{
    const struct step *step = context;
    size_t part = begin / step->grain;
    for (size_t digit = step->first_digit; digit < step->end_digit; digit++)
        memset(step_counts(step, part, digit), 0, RADIX * sizeof(size_t));
    for (size_t at = begin; at < end; at += RADIX_BLOCK) {
        size_t n = end - at < RADIX_BLOCK ? end - at : RADIX_BLOCK;
        for (size_t digit = step->first_digit; digit < step->end_digit; digit++)
            step->loops->count(step->from + at * step->loops->size, n, step_shift(step, digit),
                               step_counts(step, part, digit));
    }
}

static void step_scatter_part(void *context, size_t begin, size_t end)
{
    const struct step *step = context;
    size_t digit = step->first_digit;
    step->loops->scatter(step->from + begin * step->loops->size, end - begin,
                         step_shift(step, digit), step_counts(step, begin / step->grain, digit),
                         step->to);
}

static void step_run(struct step *step, gni_part part)
{
    if (step->sort->parts == 1)
        part(step, 0, step->sort->count);
    else
        gni_parallel_for(step->sort->count, step->grain, part, step);
}

/* Counts of a digit become the places where each part writes; false if all items have the same. */
static bool step_place(const struct step *step, size_t parts)
{
    size_t digit = step->first_digit, place = 0;
    for (size_t value = 0; value < RADIX; value++) {
        size_t before = place;
        for (size_t part = 0; part < parts; part++) {
            size_t *count = &step_counts(step, part, digit)[value];
            size_t n = *count;
            *count = place;
            place += n;
        }
        if (place - before == step->sort->count)
            return false;
    }
    return true;
}

/* Many positions below keys of one or two digits are distributed faster than they are split: no two words are
 * equal, though their keys are. */
static bool sort_can_vector(const struct gni_radix *sort)
{
    return sort->item != GNI_ITEM_PAIR && gni_vector_sort_is_present() &&
           (sort->item == GNI_ITEM_32 || sort->key_bits > 16 || sort->count <= VECTOR_SHORT);
}

void *gni_radix_sort(const struct gni_radix *sort)
{
    const struct item_loops *loops = loops_of[sort->item];
    if (sort_can_vector(sort)) {
        if (sort->item == GNI_ITEM_32)
            gni_vector_sort32(sort->items, sort->spare, sort->count, sort->parts);
        else
            gni_vector_sort64(sort->items, sort->spare, sort->count, sort->parts);
        return sort->items;
    }
    if (sort->count <= MERGE_MAX)
        return loops->merge(sort->items, sort->spare, sort->count);

    size_t digits = digit_count(sort->key_bits);
    size_t grain = (sort->count - 1) / sort->parts + 1;
    size_t parts = (sort->count - 1) / grain + 1;
    void *from = sort->items, *to = sort->spare;
    struct step step = {sort, loops, grain, 0, digits, from, to};
    bool is_moved = false;
    step_run(&step, step_count_part);
    for (size_t digit = 0; digit < digits; digit++) {
        step.first_digit = digit;
        step.end_digit = digit + 1;
        step.from = from;
        step.to = to;
        /* With one part the counts hold in any order of the items; with several, in that of the count. */
        if (is_moved && parts > 1)
            step_run(&step, step_count_part);
        if (!step_place(&step, parts))
            continue;
        step_run(&step, step_scatter_part);
        is_moved = true;
        void *swap = from;
        from = to;
        to = swap;
    }
    return from;
}
