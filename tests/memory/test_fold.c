/*
 * test_fold.c: the planner of meshing: every plan is legal, good ones come out, and quickly.
 *
 * With the argument "figures" the quality and the time of each kind of page are printed.
 */
#include "check.h"

#include "base/bitmap.h"
#include "base/host.h"
#include "memory/fold.h"

#include <time.h>

enum {
    WORDS = 64,
    GRANULES = 64 * WORDS,
    SEEDS = 8,
};

struct pages {
    size_t count;
    size_t words;
    uint64_t *masks;
    uint32_t *targets;
    size_t folded;
};

static struct pages pages_create(size_t count, size_t words)
{
    struct pages pages = {.count = count, .words = words};
    pages.masks = calloc(count * words + 1, sizeof *pages.masks);
    pages.targets = calloc(count + 1, sizeof *pages.targets);
    return pages;
}

static void pages_destroy(struct pages *pages)
{
    free(pages->masks);
    free(pages->targets);
}

static uint64_t *page_mask(const struct pages *pages, size_t page)
{
    return pages->masks + page * pages->words;
}

static size_t page_used(const struct pages *pages, size_t page)
{
    return gni_bitmap_count(page_mask(pages, page), 64 * pages->words);
}

/* ---- what a plan must hold ------------------------------------------------------------------ */

/* Joins a page to the union of its group; false when they overlap. */
static bool union_join(uint64_t *whole, const uint64_t *mask, size_t words)
{
    bool is_disjoint = true;
    for (size_t i = 0; i < words; i++) {
        is_disjoint = is_disjoint && (whole[i] & mask[i]) == 0;
        whole[i] |= mask[i];
    }
    return is_disjoint;
}

/* The invariants of fold.h. Nothing is lost: each page's set is in exactly one union. */
static void plan_check(const struct pages *pages)
{
    size_t wrong_target = 0, wrong_empty = 0, wrong_heaviest = 0, overlaps = 0, folded = 0;
    uint64_t *unions = calloc(pages->count * pages->words + 1, sizeof *unions);
    for (size_t i = 0; i < pages->count; i++) {
        size_t target = pages->targets[i];
        if (target >= pages->count || pages->targets[target] != target) {
            wrong_target++;
            continue;
        }
        folded += target != i;
        wrong_empty += target != i && (page_used(pages, i) == 0 || page_used(pages, target) == 0);
        wrong_heaviest += page_used(pages, i) > page_used(pages, target);
        overlaps += !union_join(unions + target * pages->words, page_mask(pages, i), pages->words);
    }
    free(unions);
    CHECK_U64(wrong_target, 0);
    CHECK_U64(wrong_empty, 0);
    CHECK_U64(wrong_heaviest, 0);
    CHECK_U64(overlaps, 0);
    CHECK_U64(pages->folded, folded);
}

static void pages_plan(struct pages *pages)
{
    size_t live = gni_host_live_count();
    CHECK_OK(
        gni_fold_plan(pages->count, pages->words, pages->masks, pages->targets, &pages->folded));
    CHECK_U64(gni_host_live_count(), live);
    plan_check(pages);
}

/* ---- pages as an allocator leaves them ------------------------------------------------------ */

/* Blocks of one size, each of which lives with a probability of percent in 100. */
static void page_fill_blocks(uint64_t *mask, size_t blocks, unsigned percent, uint64_t *seed)
{
    for (size_t i = 0; i < blocks; i++)
        if (check_random(seed) % 100 < percent)
            gni_bitmap_set_range(mask, i * (GRANULES / blocks), GRANULES / blocks);
}

/* The head or the tail of a page that a larger block reaches into. */
static void page_fill_boundary(uint64_t *mask, size_t page, uint64_t *seed)
{
    size_t border = 1 + check_random(seed) % (GRANULES - 1);
    if (page % 2 == 0)
        gni_bitmap_set_range(mask, 0, border);
    else
        gni_bitmap_set_range(mask, border, GRANULES - border);
}

/* Blocks of 512 bytes to 512 KiB side by side, every third of which lives. */
static void page_fill_mixed(uint64_t *mask, uint64_t *seed)
{
    for (size_t at = 0, size; at < GRANULES; at += size) {
        size = (size_t)1 << check_random(seed) % 11;
        size = size < GRANULES - at ? size : GRANULES - at;
        if (check_random(seed) % 3 == 0)
            gni_bitmap_set_range(mask, at, size);
    }
}

struct kind {
    const char *name;
    size_t blocks; /* 0: boundaries; 1: mixed */
    unsigned percent;
    double least; /* of the free bytes must come back from 512 pages */
};

static const struct kind kinds[] = {
    {"8 blocks, 50 %", 8, 50, 0.80},  {"8 blocks, 25 %", 8, 25, 0.93},
    {"heads and tails", 0, 0, 0.90},  {"64 blocks, 50 %", 64, 50, 0},
    {"64 blocks, 25 %", 64, 25, 0.5}, {"64 blocks, 10 %", 64, 10, 0.91},
    {"256 blocks, 5 %", 256, 5, 0.9}, {"mixed sizes, 33 %", 1, 0, 0.55},
};

static void pages_fill(struct pages *pages, const struct kind *kind, uint64_t seed)
{
    memset(pages->masks, 0, pages->count * pages->words * sizeof *pages->masks);
    for (size_t i = 0; i < pages->count; i++) {
        if (kind->blocks == 0)
            page_fill_boundary(page_mask(pages, i), i, &seed);
        else if (kind->blocks == 1)
            page_fill_mixed(page_mask(pages, i), &seed);
        else
            page_fill_blocks(page_mask(pages, i), kind->blocks, kind->percent, &seed);
    }
}

/* The part of the free granules that comes back as whole pages, those that were empty included. */
static double pages_returned(const struct pages *pages)
{
    size_t free_count = 0, empty = 0;
    for (size_t i = 0; i < pages->count; i++) {
        size_t used = page_used(pages, i);
        free_count += GRANULES - used;
        empty += used == 0;
    }
    return free_count == 0 ? 1 : (double)(pages->folded + empty) * GRANULES / (double)free_count;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void test_quality(void)
{
    struct pages pages = pages_create(512, WORDS);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            pages_fill(&pages, &kinds[k], seed);
            pages_plan(&pages);
            double returned = pages_returned(&pages);
            CHECK(returned >= kinds[k].least);
            if (returned < kinds[k].least)
                fprintf(stderr, "    %s, seed %d: %.3f\n", kinds[k].name, (int)seed, returned);
        }
    }
    pages_destroy(&pages);
}

/* Heads and tails that fit exactly are all paired, in whatever order they come. */
static void test_exact_pairs(void)
{
    enum {
        PAIRS = 500
    };
    struct pages pages = pages_create(2 * PAIRS, WORDS);
    uint64_t seed = 3;
    for (size_t i = 0; i < PAIRS; i++) {
        size_t border = 1 + check_random(&seed) % (GRANULES - 1);
        gni_bitmap_set_range(page_mask(&pages, i), 0, border);
        gni_bitmap_set_range(page_mask(&pages, 2 * PAIRS - 1 - i), border, GRANULES - border);
    }
    pages_plan(&pages);
    CHECK_U64(pages.folded, PAIRS);
    pages_destroy(&pages);
}

/* Many light pages share one target. */
static void test_many_in_one(void)
{
    struct pages pages = pages_create(GRANULES, WORDS);
    for (size_t i = 0; i < GRANULES; i++)
        gni_bitmap_set(page_mask(&pages, i), i * 1031 % GRANULES);
    pages_plan(&pages);
    CHECK_U64(pages.folded, GRANULES - 1);
    pages_destroy(&pages);
}

/* Of the two ways to fold these pages into two, the one that copies less is taken. */
static void test_least_is_moved(void)
{
    struct pages pages = pages_create(2, WORDS);
    gni_bitmap_set_range(page_mask(&pages, 0), 0, 100);
    gni_bitmap_set_range(page_mask(&pages, 1), 100, 3000);
    pages_plan(&pages);
    CHECK(pages.targets[0] == 1 && pages.targets[1] == 1);
    pages_destroy(&pages);
}

/* ---- edges ---------------------------------------------------------------------------------- */

static void test_edges(void)
{
    size_t folded = 77;
    uint64_t mask[2] = {0, 0};
    uint32_t target[2] = {9, 9};
    CHECK_OK(gni_fold_plan(0, WORDS, mask, target, &folded));
    CHECK(folded == 0 && target[0] == 9);
    CHECK_OK(gni_fold_plan(2, 0, mask, target, &folded));
    CHECK(folded == 0 && target[0] == 0 && target[1] == 1);
    CHECK_OK(gni_fold_plan(1, 1, mask, target, &folded));
    CHECK(folded == 0 && target[0] == 0);
    mask[0] = 1;
    CHECK_OK(gni_fold_plan(1, 1, mask, target, &folded));
    CHECK(folded == 0 && target[0] == 0);
    mask[1] = 6;
    CHECK_OK(gni_fold_plan(2, 1, mask, target, &folded));
    CHECK(folded == 1 && target[0] == 1 && target[1] == 1);
    folded = 77;
    CHECK_STATUS(gni_fold_plan(UINT32_MAX, 1, mask, target, &folded), GN_ERROR_OVERFLOW);
    CHECK_STATUS(gni_fold_plan(1, SIZE_MAX / 8, mask, target, &folded), GN_ERROR_OVERFLOW);
    CHECK(folded == 77 && target[0] == 1);
}

static void test_all_empty_and_all_full(void)
{
    static const size_t counts[] = {1, 2, 100, 5000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct pages pages = pages_create(counts[i], WORDS);
        pages_plan(&pages);
        CHECK_U64(pages.folded, 0);
        memset(pages.masks, 0xff, pages.count * WORDS * sizeof *pages.masks);
        pages_plan(&pages);
        CHECK_U64(pages.folded, 0);
        pages_destroy(&pages);
    }
}

/* Any number of pages and words, and any sets. */
static void test_property(void)
{
    uint64_t seed = 11;
    for (int step = 0; step < 600; step++) {
        size_t words = 1 + check_random(&seed) % (step % 2 == 0 ? 4 : 70);
        struct pages pages = pages_create(check_random(&seed) % 200, words);
        unsigned rarity = 1 + (unsigned)(check_random(&seed) % 200);
        for (size_t i = 0; i < pages.count; i++)
            for (size_t bit = 0; bit < 64 * words; bit++)
                if (check_random(&seed) % rarity == 0)
                    gni_bitmap_set(page_mask(&pages, i), bit);
        pages_plan(&pages);
        uint32_t *again = calloc(pages.count + 1, sizeof *again);
        size_t folded;
        CHECK_OK(gni_fold_plan(pages.count, words, pages.masks, again, &folded));
        CHECK(folded == pages.folded);
        CHECK(memcmp(again, pages.targets, pages.count * sizeof *again) == 0);
        free(again);
        pages_destroy(&pages);
    }
}

static void test_allocation_failures(void)
{
    struct pages pages = pages_create(100, WORDS);
    pages_fill(&pages, &kinds[0], 1);
    memset(pages.targets, 0x55, pages.count * sizeof *pages.targets);
    pages.folded = 4711;
    size_t live = gni_host_live_count();
    long nth = 1;
    for (;; nth++) {
        gni_host_fail_after(nth);
        gn_status status =
            gni_fold_plan(pages.count, pages.words, pages.masks, pages.targets, &pages.folded);
        gni_host_fail_after(-1);
        CHECK_U64(gni_host_live_count(), live);
        if (status == GN_OK)
            break;
        CHECK(status == GN_ERROR_OUT_OF_HOST_MEMORY && pages.folded == 4711);
        for (size_t i = 0; i < pages.count; i++)
            CHECK(pages.targets[i] == 0x55555555);
    }
    CHECK(nth > 3);
    plan_check(&pages);
    pages_destroy(&pages);
}

static void large_plan(struct pages *pages)
{
    double start = seconds_now();
    pages_plan(pages);
    CHECK(seconds_now() - start < 30); /* loose, for slow machines and sanitizers */
}

/* More than one batch. */
static void test_large(void)
{
    struct pages pages = pages_create(65536, WORDS);
    for (size_t k = 0; k < 5; k++) {
        pages_fill(&pages, &kinds[k], k);
        large_plan(&pages);
        CHECK(pages_returned(&pages) >= kinds[k].least);
    }
    /* All pages use one granule, which is not in the sample: every pair must be compared. */
    memset(pages.masks, 0, pages.count * WORDS * sizeof *pages.masks);
    for (size_t i = 0; i < pages.count; i++) {
        gni_bitmap_set(page_mask(&pages, i), GRANULES - 2);
        gni_bitmap_set(page_mask(&pages, i), i % GRANULES);
    }
    large_plan(&pages);
    CHECK_U64(pages.folded, 0);
    pages_destroy(&pages);
}

static void figures_print(void)
{
    static const size_t counts[] = {512, 4096, 65536};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct pages pages = pages_create(counts[i], WORDS);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            double least = 1, sum = 0, longest = 0;
            for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                pages_fill(&pages, &kinds[k], seed);
                double start = seconds_now();
                CHECK_OK(
                    gni_fold_plan(pages.count, WORDS, pages.masks, pages.targets, &pages.folded));
                double seconds = seconds_now() - start, returned = pages_returned(&pages);
                longest = seconds > longest ? seconds : longest;
                least = returned < least ? returned : least;
                sum += returned;
            }
            printf("%6zu pages, %-18s %.3f returned (least %.3f), %8.2f ms\n", counts[i],
                   kinds[k].name, sum / SEEDS, least, 1e3 * longest);
        }
        pages_destroy(&pages);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "figures") == 0)
        figures_print();
    RUN(test_quality);
    RUN(test_exact_pairs);
    RUN(test_many_in_one);
    RUN(test_least_is_moved);
    RUN(test_edges);
    RUN(test_all_empty_and_all_full);
    RUN(test_property);
    RUN(test_allocation_failures);
    RUN(test_large);
    return check_result();
}
