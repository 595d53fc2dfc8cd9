/*
 * test_pool_parts.c: the parts of the pool that need no device: sizes, the index of free blocks, the
 * address index, the stock of descriptors.
 */
#include "check.h"

#include "base/host.h"
#include "memory/address.h"
#include "memory/fit.h"

#define MIB ((size_t)1 << 20)

/* ---- sizes ---------------------------------------------------------------------------------- */

/* What must hold for a request, whatever its size. */
static bool size_is_right(size_t nbytes)
{
    size_t rounded = gni_size_round(nbytes);
    enum gni_range range = gni_size_range(nbytes);
    size_t waste = rounded - nbytes, grains = rounded >> GNI_GRAIN_SHIFT;
    if (rounded < nbytes || rounded == 0 || rounded % GNI_GRAIN != 0)
        return false;
    if (gni_size_round(rounded) != rounded || gni_size_range(rounded) != range)
        return false; /* what was rounded stays as it is */
    switch (range) {
    case GNI_RANGE_TINY:
    case GNI_RANGE_SMALL:
        /* A class: at most 1/8 more than the grains that were asked for, and in its own bin. */
        return nbytes <= MIB && (range == GNI_RANGE_TINY) == (nbytes <= GNI_SIZE_TINY_MOST) &&
               waste <= GNI_GRAIN + nbytes / 8 && gni_size_bin(nbytes) < GNI_SIZE_BINS &&
               gni_class_bytes(gni_size_bin(nbytes)) == rounded &&
               gni_class_up(grains) == gni_size_bin(nbytes) &&
               gni_class_down(grains) == gni_size_bin(nbytes);
    case GNI_RANGE_MEDIUM:
        return nbytes > MIB && nbytes <= 8 * MIB && waste < 4096 && rounded % 4096 == 0;
    default:
        return nbytes > 8 * MIB && waste < MIB / 8 && rounded % (MIB / 8) == 0;
    }
}

static void test_every_size_up_to_2_mib(void)
{
    size_t wrong = 0, last = 0;
    for (size_t nbytes = 0; nbytes <= 2 * MIB; nbytes++) {
        size_t rounded = gni_size_round(nbytes);
        wrong += !size_is_right(nbytes) || rounded < last; /* never smaller for more */
        last = rounded;
    }
    CHECK_U64(wrong, 0);
    CHECK_U64(gni_size_round(0), 512);
    CHECK_U64(gni_size_round(1), 512);
    CHECK_U64(gni_size_round(513), 1024);
    CHECK_U64(gni_size_round(4097), 4608);
    CHECK_U64(gni_size_round(MIB), MIB);
    CHECK_U64(gni_size_round(MIB + 1), MIB + 4096);
    CHECK_U64(gni_size_round(8 * MIB), 8 * MIB);
    CHECK_U64(gni_size_round(8 * MIB + 1), 8 * MIB + MIB / 8);
}

static void test_random_sizes(void)
{
    uint64_t seed = 1;
    size_t wrong = 0;
    for (int i = 0; i < 1000000; i++) {
        size_t nbytes = (size_t)(check_random(&seed) >> (1 + check_random(&seed) % 43));
        wrong += nbytes <= (size_t)1 << 47 && !size_is_right(nbytes);
    }
    CHECK_U64(wrong, 0);
}

/* Every class is above the one before; up and down surround each number of grains. */
static void test_classes(void)
{
    for (unsigned class = 0; class + 1 < GNI_SIZE_CLASSES; class ++)
        CHECK(gni_class_bytes(class) < gni_class_bytes(class + 1));
    CHECK_U64(gni_class_bytes(GNI_SIZE_BINS - 1), MIB);
    uint64_t seed = 2;
    size_t wrong = 0;
    for (int i = 0; i < 1000000; i++) {
        size_t grains = (size_t)(check_random(&seed) >> (25 + check_random(&seed) % 38)) + 1;
        unsigned up = gni_class_up(grains), down = gni_class_down(grains);
        size_t nbytes = grains << GNI_GRAIN_SHIFT;
        wrong += up >= GNI_SIZE_CLASSES || down > up || up > down + 1;
        wrong += gni_class_bytes(up) < nbytes || gni_class_bytes(down) > nbytes;
        wrong += up > 0 && gni_class_bytes(up - 1) >= nbytes;
        wrong += gni_class_bytes(down + 1) <= nbytes;
    }
    CHECK_U64(wrong, 0);
}

/* ---- the index of free blocks --------------------------------------------------------------- */

enum {
    FIT_BLOCKS = 300,
    SEARCH_MOST = 16, /* blocks of a class that a search looks at */
};

struct fit_model {
    struct gni_fit fit;
    gn_memory_block blocks[FIT_BLOCKS];
    bool is_in[FIT_BLOCKS];
    size_t count, nbytes;
};

static size_t fit_random_size(uint64_t *seed)
{
    return ((size_t)(check_random(seed) >> (46 + check_random(seed) % 18)) + 1) << GNI_GRAIN_SHIFT;
}

static void fit_toggle(struct fit_model *model, size_t i, uint64_t *seed)
{
    gn_memory_block *block = &model->blocks[i];
    if (model->is_in[i]) {
        gni_fit_remove(&model->fit, block);
        model->count--;
        model->nbytes -= block->nbytes;
    } else {
        block->nbytes = fit_random_size(seed);
        block->start = (char *)(uintptr_t)((check_random(seed) % 100000 * FIT_BLOCKS + i) << 9);
        gni_fit_insert(&model->fit, block);
        model->count++;
        model->nbytes += block->nbytes;
    }
    model->is_in[i] = !model->is_in[i];
}

/* The lowest address of all that fit: first fit is exact. */
static const gn_memory_block *fit_lowest(const struct fit_model *model, size_t nbytes)
{
    const gn_memory_block *lowest = NULL;
    for (size_t i = 0; i < FIT_BLOCKS; i++) {
        const gn_memory_block *block = &model->blocks[i];
        if (model->is_in[i] && block->nbytes >= nbytes &&
            (lowest == NULL || block->start < lowest->start))
            lowest = block;
    }
    return lowest;
}

/*
 * Best fit is exact as long as the classes have no more than SEARCH_MOST blocks: the smallest of all that
 * fit, and of equals the lowest. NULL where a class of interest has more.
 */
static bool fit_is_best(const struct fit_model *model, const gn_memory_block *found, size_t nbytes)
{
    const gn_memory_block *best = NULL;
    size_t in_class[GNI_SIZE_CLASSES] = {0};
    for (size_t i = 0; i < FIT_BLOCKS; i++) {
        const gn_memory_block *block = &model->blocks[i];
        if (!model->is_in[i])
            continue;
        in_class[gni_class_down(block->nbytes >> GNI_GRAIN_SHIFT)]++;
        if (block->nbytes >= nbytes &&
            (best == NULL || block->nbytes < best->nbytes ||
             (block->nbytes == best->nbytes && block->start < best->start)))
            best = block;
    }
    if (best == NULL || found == NULL)
        return best == found;
    if (found->nbytes < nbytes)
        return false;
    unsigned own = gni_class_down(nbytes >> GNI_GRAIN_SHIFT);
    unsigned of_best = gni_class_down(best->nbytes >> GNI_GRAIN_SHIFT);
    if (in_class[own] > SEARCH_MOST || in_class[of_best] > SEARCH_MOST)
        return true;
    return found == best;
}

static bool fit_largest_is_right(const struct fit_model *model)
{
    size_t largest = 0;
    for (size_t i = 0; i < FIT_BLOCKS; i++)
        if (model->is_in[i] && model->blocks[i].nbytes > largest)
            largest = model->blocks[i].nbytes;
    const gn_memory_block *found = gni_fit_largest(&model->fit);
    return found != NULL ? found->nbytes == largest : largest == 0;
}

static void test_fit(void)
{
    struct fit_model *model = calloc(1, sizeof *model);
    uint64_t seed = 3;
    for (int step = 0; step < 30000; step++) {
        fit_toggle(model, check_random(&seed) % FIT_BLOCKS, &seed);
        size_t nbytes = fit_random_size(&seed);
        CHECK(fit_is_best(model, gni_fit_best(&model->fit, nbytes), nbytes));
        CHECK(gni_fit_lowest(&model->fit, nbytes) == fit_lowest(model, nbytes));
        CHECK(fit_largest_is_right(model));
        CHECK(model->fit.count == model->count && model->fit.nbytes == model->nbytes);
    }
    size_t visited = 0, last_class = 0;
    gni_fit_each (block, &model->fit) {
        size_t class = gni_class_down(block->nbytes >> GNI_GRAIN_SHIFT);
        CHECK(model->is_in[block - model->blocks] && class >= last_class);
        last_class = class;
        visited++;
        gni_fit_remove(&model->fit, block); /* the body may */
    }
    CHECK_U64(visited, model->count);
    CHECK(model->fit.count == 0 && model->fit.nbytes == 0);
    CHECK(gni_fit_best(&model->fit, 512) == NULL);
    CHECK(gni_fit_largest(&model->fit) == NULL);
    free(model);
}

/* ---- the address index ---------------------------------------------------------------------- */

enum {
    ADDRESS_PAGES = 64,
};

/* Pages at the far end of what has addresses: nobody's. */
static char *const address_start = (char *)(uintptr_t)(UINT64_C(0x7ff) << 36);

static void address_add(gn_memory_block *block, size_t offset)
{
    *block = (gn_memory_block){.address = address_start + offset};
    gni_address_add(block);
    CHECK(gni_address_find(block->address) == block);
}

static void test_addresses(void)
{
    struct gni_region *region = (struct gni_region *)(void *)&check_count; /* only compared */
    gn_memory_block first, second, third;
    CHECK(gni_address_find(address_start) == NULL);
    CHECK_OK(gni_address_open(region, address_start, (size_t)ADDRESS_PAGES * GNI_PAGE, 9));
    for (size_t i = 0; i < ADDRESS_PAGES; i++)
        CHECK(gni_page_find(address_start + i * GNI_PAGE)->region == region);
    address_add(&first, 0);
    address_add(&second, 512);
    address_add(&third, (size_t)ADDRESS_PAGES * GNI_PAGE - 512);
    for (size_t offset = 1; offset < 512; offset++) {
        CHECK(gni_address_find(address_start + offset) == NULL);
        CHECK(gni_address_find(address_start + 512 + offset) == NULL);
    }
    gni_address_remove(&second);
    CHECK(gni_address_find(second.address) == NULL);
    CHECK(gni_address_find(first.address) == &first);
    gni_address_remove(&first);
    gni_address_remove(&third);
    gni_address_close(address_start, (size_t)ADDRESS_PAGES * GNI_PAGE);
    CHECK(gni_page_find(address_start)->region == NULL);
}

/* Pages that come back with another grain, in every order, with blocks at every place. */
static void test_addresses_with_other_grains(void)
{
    static const unsigned shifts[] = {GNI_HALF_SHIFT,  GNI_SMALL_SHIFT, GNI_HALF_SHIFT,
                                      GNI_GRAIN_SHIFT, GNI_HALF_SHIFT,  GNI_SMALL_SHIFT,
                                      GNI_GRAIN_SHIFT, GNI_SMALL_SHIFT};
    static gn_memory_block blocks[GNI_PAGE >> GNI_GRAIN_SHIFT];
    char *start = address_start + (size_t)ADDRESS_PAGES * GNI_PAGE; /* fresh pages */
    struct gni_region *region = (struct gni_region *)(void *)&check_count;
    for (size_t i = 0; i < sizeof shifts / sizeof *shifts; i++) {
        size_t step = (size_t)1 << shifts[i], count = GNI_PAGE >> shifts[i], wrong = 0;
        CHECK_OK(gni_address_open(region, start, GNI_PAGE, shifts[i]));
        for (size_t j = 0; j < count; j++) {
            blocks[j] = (gn_memory_block){.address = start + j * step};
            gni_address_add(&blocks[j]);
        }
        for (size_t j = 0; j < count; j++) {
            wrong += gni_address_find(start + j * step) != &blocks[j];
            wrong += gni_address_find(start + j * step + 1) != NULL;
            gni_address_remove(&blocks[j]);
            wrong += gni_address_find(start + j * step) != NULL;
        }
        CHECK_U64(wrong, 0);
        gni_address_close(start, GNI_PAGE);
    }
    CHECK(gni_address_find((void *)(uintptr_t)UINT64_MAX) == NULL);
    CHECK(gni_address_find((void *)(uintptr_t)(UINT64_C(1) << 48)) == NULL);
    CHECK_STATUS(gni_address_open(region, (char *)(uintptr_t)(UINT64_C(1) << 48), GNI_PAGE, 9),
                 GN_ERROR_UNSUPPORTED);
}

/* ---- descriptors ---------------------------------------------------------------------------- */

static void test_stock(void)
{
    enum {
        COUNT = 2000
    };
    static gn_memory_block *taken[COUNT];
    struct gni_blocks blocks = {0};
    size_t live = gni_host_live_count();
    gni_host_fail_after(3);
    CHECK_STATUS(gni_blocks_reserve(&blocks, COUNT), GN_ERROR_OUT_OF_HOST_MEMORY);
    gni_host_fail_after(-1);
    CHECK(blocks.count > 0); /* what was got is kept */
    CHECK_OK(gni_blocks_reserve(&blocks, COUNT));
    CHECK(blocks.count >= COUNT);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            taken[i] = gni_blocks_take(&blocks);
            CHECK((uintptr_t)taken[i] % 64 == 0); /* on a cache line */
            CHECK(gni_block_state(taken[i]) == GNI_BLOCK_UNUSED);
            gni_block_set_state(taken[i], GNI_BLOCK_HOLE); /* nobody else gets it meanwhile */
            CHECK(taken[i]->requested == 0);
            taken[i]->requested = 1;
        }
        for (int i = 0; i < COUNT; i++) {
            taken[i]->requested = 0;
            gni_blocks_give(&blocks, taken[i]);
        }
    }
    gni_blocks_deinit(&blocks);
    CHECK_U64(gni_host_live_count(), live);
}

int main(void)
{
    RUN(test_every_size_up_to_2_mib);
    RUN(test_random_sizes);
    RUN(test_classes);
    RUN(test_fit);
    RUN(test_addresses);
    RUN(test_addresses_with_other_grains);
    RUN(test_stock);
    return check_result();
}
