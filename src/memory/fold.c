/*
 * fold.c: first fit by decreasing occupancy, then again in better orders.
 *
 * To find the fewest groups of disjoint pages is hard (it is colouring a graph), so this is a
 * heuristic:
 *
 *   1. Pages are sorted by used granules, the fullest first. Each joins the first group that it does
 *      not overlap, or begins a new one. So the pages that are hardest to place choose first, and the
 *      light ones fill what is left.
 *   2. The groups are sorted by used granules, the emptiest first, and the pages are placed again, the
 *      members of a group one after the other. This never gives more groups (FO3), and often fewer: the
 *      members of the groups that were filled worst now choose first. Repeated a few times.
 *   3. More than BATCH_MAX pages are dealt into batches like cards, by their rank, so that each batch
 *      has the same mix, and the time grows with the count and not with its square. With thousands of
 *      pages to choose from, more would add little.
 *
 * What is tried most is whether a page overlaps a group. So each page has a sample of 64 of its
 * granules in one word, and a group the union of its pages' samples: samples that overlap prove that
 * the sets do, which settles nearly all pairs. Samples that do not overlap prove nothing, and the
 * masks are compared.
 *
 * Measured on 512 pages, as the part of the free bytes that came back (a bound by the most used granule
 * is above 0.9 everywhere): 8 blocks half of which live 0.85; heads and tails 0.95; 64 blocks of which
 * a quarter live 0.55, of which half live 0 (two such pages are disjoint once in 10^8). Best fit instead
 * of first fit gives the same. Merging by the fewest possible partners (a matrix of all pairs) gives 0.01
 * more and costs ten times as much above 1000 pages. Best fit with few candidates, the tightest first,
 * is useless for many small blocks: the tightest groups are those that overlap.
 *
 * Invariants:
 *   FO1  a group's mask, sample and used are the union, union and sum of its members';
 *   FO2  the members of a group are pairwise disjoint: it is joined only by a page that does not overlap
 *       its mask;
 *   FO3  placing the members of each group one after the other needs no more groups than there were: a
 *       member of the k-th one fits at least the group that the others of the k-th are in, or an
 *       earlier one.
 */
#include "memory/fold.h"

#include "base/bitmap.h"
#include "base/checked.h"
#include "base/host.h"

#include <stdlib.h>
#include <string.h>

enum {
    BATCH_MAX = 4096,  /* pages that are looked at together */
    PLACED_MAX = 8192, /* placements of a batch in all: small ones can be placed many times */
};

#define NOBODY UINT32_MAX /* the end of a list of members */

struct fold_page {
    uint64_t sample;
    uint32_t index; /* of the caller */
    uint32_t used;
    uint32_t next; /* the group's next member, or NOBODY */
};

struct fold_group {
    uint32_t used;
    uint32_t first; /* member */
    uint32_t last;
};

struct fold {
    size_t words;
    const uint64_t *masks;
    struct fold_page *pages; /* of this batch */
    size_t page_count;
    struct fold_group *groups;
    uint64_t *samples; /* of the groups, side by side: they are all that most tests touch */
    uint64_t *unions;  /* masks of the groups, `words` each */
    size_t group_count;
    uint64_t *keys;   /* for sorting */
    uint32_t *order;  /* pages in the order in which they are placed */
    size_t best;      /* groups of the plan in the targets */
    uint64_t moved;   /* granules that it moves */
    uint32_t *target; /* the caller's */
};

/* ---- sets ----------------------------------------------------------------------------------- */

/*
 * One granule out of each 64th of the page. Not always the same one of each part: blocks begin at
 * multiples of powers of two, and so would conflicts hide.
 */
static uint64_t mask_sample(const uint64_t *mask, size_t words)
{
    uint64_t sample = 0;
    for (unsigned bit = 0; bit < 64; bit++)
        if (gni_bitmap_test(mask, bit * words + bit * 37 % words))
            sample |= UINT64_C(1) << bit;
    return sample;
}

/* The first word in which two masks overlap; `words` when they do not. */
static size_t masks_find_overlap(const uint64_t *a, const uint64_t *b, size_t words)
{
    size_t word = 0;
    while (word < words && (a[word] & b[word]) == 0)
        word++;
    return word;
}

static const uint64_t *page_mask(const struct fold *fold, const struct fold_page *page)
{
    return fold->masks + page->index * fold->words;
}

/* ---- placing -------------------------------------------------------------------------------- */

/*
 * The first group that a page does not overlap; group_count when there is none. The word in which it
 * overlapped the last group is tried first in the next: pages with one block at the same late place
 * would otherwise be compared from end to end each time.
 */
static size_t group_find(const struct fold *fold, const struct fold_page *page)
{
    const uint64_t *mask = page_mask(fold, page);
    size_t words = fold->words, likely = 0;
    for (size_t group = 0; group < fold->group_count; group++) {
        const uint64_t *whole = fold->unions + group * words;
        if ((fold->samples[group] & page->sample) != 0 || (whole[likely] & mask[likely]) != 0)
            continue;
        size_t word = masks_find_overlap(whole, mask, words);
        if (word == words)
            return group;
        likely = word;
    }
    return fold->group_count;
}

static void page_place(struct fold *fold, uint32_t number)
{
    struct fold_page *page = &fold->pages[number];
    size_t at = group_find(fold, page);
    struct fold_group *group = &fold->groups[at];
    uint64_t *mask = fold->unions + at * fold->words;
    page->next = NOBODY;
    if (at == fold->group_count) {
        fold->group_count++;
        *group = (struct fold_group){.used = 0, .first = number, .last = number};
        fold->samples[at] = 0;
        memset(mask, 0, fold->words * sizeof *mask);
    } else {
        fold->pages[group->last].next = number;
        group->last = number;
    }
    group->used += page->used;
    fold->samples[at] |= page->sample;
    for (size_t i = 0; i < fold->words; i++)
        mask[i] |= page_mask(fold, page)[i];
}

static void pages_place(struct fold *fold)
{
    fold->group_count = 0;
    for (size_t i = 0; i < fold->page_count; i++)
        page_place(fold, fold->order[i]);
}

static int key_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The pages group by group, the emptiest group first. */
static void order_by_group(struct fold *fold)
{
    for (size_t i = 0; i < fold->group_count; i++)
        fold->keys[i] = (uint64_t)fold->groups[i].used << 32 | i;
    qsort(fold->keys, fold->group_count, sizeof *fold->keys, key_compare);
    size_t count = 0;
    for (size_t i = 0; i < fold->group_count; i++) {
        const struct fold_group *group = &fold->groups[(uint32_t)fold->keys[i]];
        for (uint32_t at = group->first; at != NOBODY; at = fold->pages[at].next)
            fold->order[count++] = at;
    }
    gni_assert(count == fold->page_count);
}

/* ---- choosing ------------------------------------------------------------------------------- */

/* The member with the most used granules, the first of several. */
static const struct fold_page *group_heaviest(const struct fold *fold,
                                              const struct fold_group *group)
{
    const struct fold_page *heaviest = &fold->pages[group->first];
    for (uint32_t at = heaviest->next; at != NOBODY; at = fold->pages[at].next) {
        const struct fold_page *page = &fold->pages[at];
        if (page->used > heaviest->used ||
            (page->used == heaviest->used && page->index < heaviest->index))
            heaviest = page;
    }
    return heaviest;
}

static uint64_t moved_count(const struct fold *fold)
{
    uint64_t moved = 0;
    for (size_t i = 0; i < fold->group_count; i++)
        moved += fold->groups[i].used - group_heaviest(fold, &fold->groups[i])->used;
    return moved;
}

/* Keeps the groups in the targets if they are fewer, or as many for fewer moved bytes. */
static void plan_keep(struct fold *fold)
{
    uint64_t moved = moved_count(fold);
    if (fold->group_count > fold->best || (fold->group_count == fold->best && moved >= fold->moved))
        return;
    fold->best = fold->group_count;
    fold->moved = moved;
    for (size_t i = 0; i < fold->group_count; i++) {
        uint32_t target = group_heaviest(fold, &fold->groups[i])->index;
        for (uint32_t at = fold->groups[i].first; at != NOBODY; at = fold->pages[at].next)
            fold->target[fold->pages[at].index] = target;
    }
}

/* The pages of the batch are sorted, the fullest first. */
static void batch_plan(struct fold *fold)
{
    uint64_t used = 0, room = 64 * fold->words;
    for (size_t i = 0; i < fold->page_count; i++) {
        fold->order[i] = (uint32_t)i;
        used += fold->pages[i].used;
    }
    fold->best = SIZE_MAX;
    pages_place(fold);
    plan_keep(fold);
    for (size_t placed = 2 * fold->page_count; placed <= PLACED_MAX; placed += fold->page_count) {
        if (fold->best == fold->page_count || (fold->best - 1) * room < used)
            break; /* nothing fits at all, or no plan can be better */
        size_t before = fold->group_count;
        order_by_group(fold);
        pages_place(fold);
        gni_assert(fold->group_count <= before); /* FO3 */
        (void)before;
        plan_keep(fold);
    }
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* Sorts the pages that use anything, the fullest first, as keys; returns how many there are. */
static size_t keys_sort(size_t count, size_t words, const uint64_t *masks, uint64_t *keys)
{
    size_t page_count = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t used = gni_bitmap_count(masks + i * words, 64 * words);
        if (used > 0)
            keys[page_count++] = (UINT32_MAX - used) << 32 | i;
    }
    qsort(keys, page_count, sizeof *keys, key_compare);
    return page_count;
}

/* Takes every stride-th page from `start` on as the batch. */
static void batch_deal(struct fold *fold, const uint64_t *sorted, size_t count, size_t start,
                       size_t stride)
{
    fold->page_count = 0;
    for (size_t i = start; i < count; i += stride) {
        uint32_t index = (uint32_t)sorted[i];
        fold->pages[fold->page_count++] = (struct fold_page){
            .sample = mask_sample(fold->masks + index * fold->words, fold->words),
            .index = index,
            .used = UINT32_MAX - (uint32_t)(sorted[i] >> 32),
        };
    }
}

/* Everything that a batch of at most `most` pages needs, or NULL pointers. */
static bool fold_init(struct fold *fold, size_t most)
{
    size_t mask_bytes;
    if (!gni_size_multiply(most * sizeof(uint64_t), fold->words, &mask_bytes))
        return false;
    fold->pages = gni_host_alloc(most * sizeof *fold->pages);
    fold->groups = gni_host_alloc(most * sizeof *fold->groups);
    fold->samples = gni_host_alloc(most * sizeof *fold->samples);
    fold->unions = gni_host_alloc(mask_bytes);
    fold->keys = gni_host_alloc(most * sizeof *fold->keys);
    fold->order = gni_host_alloc(most * sizeof *fold->order);
    return fold->pages != NULL && fold->groups != NULL && fold->samples != NULL &&
           fold->unions != NULL && fold->keys != NULL && fold->order != NULL;
}

static void fold_deinit(struct fold *fold)
{
    gni_host_free(fold->pages);
    gni_host_free(fold->groups);
    gni_host_free(fold->samples);
    gni_host_free(fold->unions);
    gni_host_free(fold->keys);
    gni_host_free(fold->order);
}

gn_status gni_fold_plan(size_t count, size_t words, const uint64_t *masks, uint32_t *targets,
                        size_t *folded)
{
    /* Indices and numbers of granules are 32 bits wide; NOBODY is no index. */
    size_t nbytes;
    if (count >= UINT32_MAX || words >= UINT32_MAX / 64 ||
        !gni_size_multiply(count, words, &nbytes) ||
        !gni_size_multiply(nbytes, sizeof *masks, &nbytes))
        return gni_error(GN_ERROR_OVERFLOW, "%zu pages of %zu words cannot be folded", count,
                         words);
    uint64_t *sorted = gni_host_alloc(count * sizeof *sorted);
    if (sorted == NULL)
        return gni_error_host_memory(count * sizeof *sorted);
    size_t page_count = keys_sort(count, words, masks, sorted);
    size_t batches = page_count / BATCH_MAX + (page_count % BATCH_MAX != 0);
    size_t most = page_count < BATCH_MAX ? page_count : BATCH_MAX;
    struct fold fold = {.words = words, .masks = masks, .target = targets};
    bool is_ready = fold_init(&fold, most);
    if (is_ready) {
        for (size_t i = 0; i < count; i++)
            targets[i] = (uint32_t)i;
        *folded = page_count;
        for (size_t i = 0; i < batches; i++) {
            batch_deal(&fold, sorted, page_count, i, batches);
            batch_plan(&fold);
            *folded -= fold.best;
        }
    }
    fold_deinit(&fold);
    gni_host_free(sorted);
    return is_ready ? GN_OK : gni_error_host_memory(most * words * sizeof *masks);
}
