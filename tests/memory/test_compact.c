/*
 * test_compact.c: folding half-empty pages, and dividing pieces that are partly used: contents and addresses stay,
 * memory comes back, and everything goes on, also on folded pages.
 *
 *     test_compact [cuda [DIVISOR]]     needs the policy `virtual`, and 1.5 GiB on the device
 *
 * A model knows what every byte of every block must hold once its stream's work is done. With a DIVISOR
 * there is less of everything, for builds that are slow.
 */
#include "pool_suite.h"

struct suite suite;

enum {
    STREAMS = 3,
    ITEMS_MOST = 4096,
};

/* A block by address, or by handle whose address nobody asked for. */
struct item {
    gn_memory_block *handle;
    char *address; /* NULL: none */
    size_t nbytes;
    unsigned char value; /* in every byte */
    gn_stream *stream;
};

static struct item items[ITEMS_MOST];
static gn_stream *streams[STREAMS];
static uint64_t seed = 1;
static size_t divisor = 1;

static size_t pick(size_t below)
{
    return (size_t)(check_random(&seed) % below);
}

/* ---- items ---------------------------------------------------------------------------------- */

/* Submits a fill; nobody waits for it. */
static void item_fill(struct item *item)
{
    item->value = (unsigned char)(1 + pick(250));
    block_fill(item->address, item->value, item->nbytes, item->stream);
}

static gn_status item_try(struct item *item, size_t nbytes, bool is_handle)
{
    gn_memory_block *handle = NULL;
    void *pointer = NULL;
    gn_stream *stream = streams[pick(STREAMS)];
    gn_status status = is_handle ? gn_memory_block_alloc(suite.manager, nbytes, stream, &handle)
                                 : gn_memory_alloc(suite.manager, nbytes, stream, &pointer);
    if (status != GN_OK)
        return status;
    /* The test looks without asking, so that the handle stays unexported. */
    *item = (struct item){.handle = handle,
                          .address = handle != NULL ? handle->address : pointer,
                          .nbytes = nbytes,
                          .stream = stream};
    item_fill(item);
    return GN_OK;
}

static void item_make(struct item *item, size_t nbytes, bool is_handle)
{
    if (item_try(item, nbytes, is_handle) != GN_OK) {
        check_fail(__FILE__, __LINE__, gn_error_detail());
        exit(1); /* the rest would say nothing */
    }
}

static void item_free(struct item *item)
{
    if (item->handle != NULL)
        CHECK_OK(gn_memory_block_free(item->handle));
    else
        CHECK_OK(gn_memory_free(suite.manager, item->address));
    item->address = NULL;
}

static bool item_is_right(const struct item *item)
{
    if (item->address == NULL)
        return true;
    CHECK_OK(gn_stream_synchronize(item->stream));
    return (item->handle == NULL || item->handle->address == item->address) &&
           block_holds(item->address, item->value, item->nbytes);
}

static void items_check(size_t count)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++)
        wrong += !item_is_right(&items[i]);
    CHECK_U64(wrong, 0);
    POOL_CHECK();
    findings_check();
}

/* Frees what is left, in a random order, with looks at the others. */
static void items_free(size_t count)
{
    size_t left = 0;
    for (size_t i = 0; i < count; i++)
        left += items[i].address != NULL;
    for (size_t freed = 0; left > 0; left--, freed++) {
        size_t i = pick(count);
        while (items[i].address == NULL)
            i = (i + 1) % count;
        item_free(&items[i]);
        if (freed % 16 == 0)
            CHECK(item_is_right(&items[pick(count)]));
        if (left % 512 == 0)
            items_check(count);
    }
    POOL_CHECK();
}

static void streams_open(void)
{
    streams[0] = suite.stream;
    for (int i = 1; i < STREAMS; i++)
        streams[i] = stream_make(GN_STREAM_NON_BLOCKING);
}

static void streams_close(void)
{
    for (int i = 1; i < STREAMS; i++)
        gn_stream_release(streams[i]);
}

static gn_memory_compaction compact(void)
{
    gn_memory_compaction report = {0};
    uint64_t before = statistics_now().reserved_bytes;
    CHECK_OK(gn_memory_compact(suite.manager, &report));
    CHECK_U64(report.released_bytes, before - statistics_now().reserved_bytes);
    CHECK(report.can_fold);
    POOL_CHECK();
    return report;
}

/* ---- half of many small blocks -------------------------------------------------------------- */

/* Allocates `total` bytes of blocks, and frees all but one of `one_in`; the bytes that were freed. */
static size_t part_make(size_t total, size_t nbytes, size_t one_in, bool is_handle)
{
    size_t count = total / nbytes, freed = 0;
    CHECK(count <= ITEMS_MOST);
    for (size_t i = 0; i < count; i++)
        item_make(&items[i], nbytes, is_handle);
    for (size_t i = 0; i < count; i++) {
        if (pick(one_in) == 0)
            continue;
        item_free(&items[i]);
        freed += nbytes;
    }
    return freed;
}

static void part_try(size_t total, size_t nbytes, size_t one_in, bool is_handle)
{
    pool_empty();
    total /= divisor;
    size_t freed = part_make(total, nbytes, one_in, is_handle), count = total / nbytes;
    for (size_t i = 0; i < count; i += 2) /* work that is queued when the call comes */
        if (items[i].address != NULL)
            item_fill(&items[i]);
    double begin = seconds_now();
    gn_memory_compaction report = compact();
    double seconds = seconds_now() - begin;
    printf("     %zu MiB freed, %.0f %% came back, %llu pages folded, %llu MiB moved, %.2f s\n",
           freed / MIB, 100 * (double)report.released_bytes / (double)freed,
           (unsigned long long)report.folded_pages, (unsigned long long)report.moved_bytes / MIB,
           seconds);
    /* Among few pages there are fewer that fit together. */
    CHECK((double)report.released_bytes >= (total >= GIB / 2   ? 0.7
                                            : total >= GIB / 8 ? 0.6
                                                               : 0.3) *
                                               (double)freed);
    CHECK(report.folded_pages > 0 && report.moved_bytes > 0);
    CHECK(suite.is_sim || seconds < 2);
    items_check(count);
    for (size_t i = 0; i < count; i++) /* work goes on */
        if (items[i].address != NULL && pick(2) == 0)
            item_fill(&items[i]);
    items_check(count);
    items_free(count);
    pool_empty();
}

static void test_half_by_address(void)
{
    part_try(GIB, 256 * KIB, 2, false);
}

static void test_half_by_handle(void)
{
    part_try(GIB / 2, 256 * KIB, 2, true);
}

/* Blocks that do not end where pages do: folded pages share blocks with their neighbours. */
static void test_half_of_odd_sizes(void)
{
    part_try(GIB / 4, 800 * KIB, 2, false);
    part_try(GIB / 8, 40 * KIB, 20, false);
}

/* ---- everything goes on --------------------------------------------------------------------- */

static size_t mixed_size(void)
{
    return pick(5) == 0 ? pick(8 * MIB) : pick(900 * KIB) >> pick(8);
}

static void mixed_step(size_t count)
{
    struct item *item = &items[pick(count)], *other = &items[pick(count)];
    if (item->address == NULL) {
        item_make(item, mixed_size(), pick(2) == 0);
    } else if (pick(3) == 0) {
        if (pick(8) == 0)
            CHECK_OK(gn_memory_record_stream(suite.manager, item->address, streams[pick(STREAMS)]));
        item_free(item);
    } else if (pick(2) == 0 || other->address == NULL || other->nbytes < item->nbytes) {
        item_fill(item);
    } else { /* a copy between blocks, on folded pages or not */
        CHECK_OK(gn_stream_synchronize(other->stream));
        CHECK_OK(gn_copy(item->address, other->address, item->nbytes, item->stream));
        CHECK_OK(gn_stream_synchronize(item->stream));
        item->value = other->value;
    }
}

/* Mixed sizes, compacted again and again, with work and frees and allocations between. */
static void test_mixed_sizes(void)
{
    enum {
        COUNT = 400,
        ROUNDS = 12
    };
    uint64_t folded = 0;
    pool_empty();
    for (size_t round = 0; round < ROUNDS / divisor; round++) {
        for (size_t step = 0; step < 600; step++)
            mixed_step(COUNT);
        POOL_CHECK();
        gn_memory_compaction report = compact();
        folded += report.folded_pages;
        items_check(COUNT);
        if (round % 3 == 1) { /* twice in a row finds nothing that must move */
            report = compact();
            CHECK(report.folded_pages <= 2);
        }
        if (round % 4 == 2)
            CHECK_OK(gn_memory_trim(suite.manager, 0, NULL));
        POOL_CHECK();
    }
    CHECK(folded > 20 / divisor);
    items_check(COUNT);
    items_free(COUNT);
    pool_empty();
}

/* The same under other schedules than the environment's. */
static void test_schedules(void)
{
    if (!suite.is_sim)
        return;
    for (int kind = 0; kind <= 4; kind++) {
        CHECK_OK(gn_device_synchronize(suite.device));
        suite.control.schedule(kind > 2 ? 2 : kind, (uint64_t)kind);
        part_try(256 * MIB, 256 * KIB, 2, kind % 2 == 0);
    }
}

/* Folded pages fall apart when their blocks are freed: each piece is whole again, or goes back. */
static void test_unfold(void)
{
    pool_empty();
    (void)part_make(64 * MIB, 256 * KIB, 2, false);
    CHECK(compact().folded_pages > 5);
    size_t count = 64 * MIB / (256 * KIB), reserve = suite.pool->reserve_blocks;
    CHECK(reserve > 0);
    while (suite.pool->reserve_blocks > 0) {
        for (int i = 0; i < 16; i++) {
            struct item *item = &items[pick(count)];
            if (item->address != NULL)
                item_free(item);
        }
        CHECK_OK(gn_memory_trim(suite.manager, 0, NULL));
        items_check(count);
        CHECK(suite.pool->reserve_blocks <= reserve);
        reserve = suite.pool->reserve_blocks;
    }
    items_free(count);
    pool_empty();
}

/* ---- what the pool does by itself ----------------------------------------------------------- */

static uint64_t physical_of(const void *address)
{
    return gni_page_find(address)->mapping->physical->handle;
}

enum {
    OWN_BYTES = 256 << 10,
    OWN_COUNT = 256, /* 64 MiB of each kind */
};

static uint64_t physicals[2 * OWN_COUNT];

/* Half of the pages are full of exported blocks, half of handles; of both a random third stays. */
static void own_make(void)
{
    for (size_t i = 0; i < 2 * OWN_COUNT; i++)
        item_make(&items[i], OWN_BYTES, i >= OWN_COUNT);
    CHECK_OK(gn_device_synchronize(suite.device));
    for (size_t i = 0; i < 2 * OWN_COUNT; i++) {
        if (pick(3) != 0)
            item_free(&items[i]);
        else
            physicals[i] = physical_of(items[i].address);
    }
}

static size_t own_moved(size_t from, size_t to)
{
    size_t moved = 0;
    for (size_t i = from; i < to; i++)
        moved += items[i].address != NULL && physical_of(items[i].address) != physicals[i];
    return moved;
}

/* A request that only folding can meet: pages of handles are folded, exported ones never touched. */
static void test_automatic(void)
{
    pool_empty();
    limit_set(128 * MIB);
    own_make();
    struct item large = {.address = NULL};
    gn_status status = item_try(&large, 20 * MIB, false);
    CHECK_STATUS(status, GN_OK);
    CHECK_U64(own_moved(0, OWN_COUNT), 0);
    CHECK(own_moved(OWN_COUNT, (size_t)2 * OWN_COUNT) > 20);
    items_check((size_t)2 * OWN_COUNT);
    CHECK(item_is_right(&large));
    if (large.address != NULL)
        item_free(&large);
    items_free((size_t)2 * OWN_COUNT);
    limit_set(UINT64_MAX);
    pool_empty();
}

/* As soon as somebody has asked for one address of a page, the pool leaves the page alone. */
static void test_automatic_leaves_exported(void)
{
    pool_empty();
    limit_set(128 * MIB);
    own_make();
    long maps = suite.is_sim ? suite.control.call_count("cuMemMap") : 0;
    for (size_t i = 0; i < (size_t)2 * OWN_COUNT; i++)
        if (items[i].handle != NULL && items[i].address != NULL)
            CHECK(gn_memory_block_get_address(items[i].handle) == items[i].address);
    struct item large = {.address = NULL};
    CHECK_STATUS(item_try(&large, 20 * MIB, false), GN_ERROR_OUT_OF_MEMORY);
    CHECK_U64(own_moved(0, (size_t)2 * OWN_COUNT), 0);
    if (suite.is_sim)
        CHECK_U64(suite.control.call_count("cuMemMap"), maps);
    items_check((size_t)2 * OWN_COUNT);
    CHECK(compact().folded_pages >= 10); /* the caller may */
    CHECK_OK(item_try(&large, 20 * MIB, false));
    items_check((size_t)2 * OWN_COUNT);
    item_free(&large);
    items_free((size_t)2 * OWN_COUNT);
    limit_set(UINT64_MAX);
    pool_empty();
}

/* Automatic folding again and again, with free blocks of several heaps side by side. */
static void test_automatic_goes_on(void)
{
    enum {
        COUNT = 300
    };
    size_t refused = 0;
    pool_empty();
    limit_set(64 * MIB);
    for (size_t step = 0; step < 6000 / divisor; step++) {
        struct item *item = &items[pick(COUNT)];
        if (item->address != NULL) {
            CHECK(pick(32) != 0 || item_is_right(item));
            item_free(item);
        } else {
            size_t nbytes = pick(12) == 0 ? pick(8 * MIB) : pick(500 * KIB);
            CHECK_OK(gn_device_synchronize(suite.device)); /* handles have no work while it folds */
            gn_status status = item_try(item, nbytes, pick(16) != 0);
            CHECK(status == GN_OK || status == GN_ERROR_OUT_OF_MEMORY);
            refused += status != GN_OK;
        }
        if (step % 100 == 0)
            POOL_CHECK();
        if (step % 1000 == 0)
            items_check(COUNT);
    }
    CHECK(refused > 0); /* it was tight */
    items_check(COUNT);
    items_free(COUNT);
    limit_set(UINT64_MAX);
    pool_empty();
}

/* ---- pieces of several pages ---------------------------------------------------------------- */

enum {
    LARGE_BYTES = 32 << 20, /* one piece each */
    PART_BYTES = 9 << 20,   /* blocks that come in their place: three and a half in each */
    PART_COUNT = 12,
};

/* What is free goes to where every stream finds it. */
static void frees_spread(void)
{
    CHECK_OK(gn_memory_coalesce(suite.manager, NULL));
    CHECK_OK(gn_device_synchronize(suite.device));
    CHECK_OK(gn_memory_collect(suite.manager));
}

/* Blocks in the place of `count` large ones, of which every third stays; the pieces are theirs together. */
static void parts_make(size_t count, bool is_handle)
{
    for (size_t i = 0; i < count; i++)
        item_make(&items[i], LARGE_BYTES, is_handle);
    for (size_t i = 0; i < count; i++)
        item_free(&items[i]);
    frees_spread();
    size_t parts = count * PART_COUNT / 4;
    for (size_t i = 0; i < parts; i++)
        item_make(&items[i], PART_BYTES, is_handle);
    CHECK_U64(statistics_now().reserved_bytes, count * LARGE_BYTES);
    for (size_t i = 0; i < parts; i++)
        if (i % 3 != 0)
            item_free(&items[i]);
    CHECK_OK(gn_device_synchronize(suite.device));
}

/* All but the pages that are used comes back, and nothing else has changed. */
static void divide_try(bool is_handle)
{
    pool_empty();
    parts_make(4, is_handle);
    gn_memory_compaction report = compact();
    size_t pages = PART_BYTES / GNI_PAGE + 2; /* that a block reaches into at most */
    CHECK(statistics_now().reserved_bytes <= PART_COUNT / 3 * pages * GNI_PAGE);
    CHECK(report.moved_bytes >= PART_COUNT / 3 * PART_BYTES);
    items_check(PART_COUNT);
    CHECK_U64(compact().released_bytes, 0); /* there is nothing left to do */
    for (size_t i = 0; i < PART_COUNT; i++) {
        if (items[i].address == NULL)
            item_make(&items[i], PART_BYTES - pick(MIB), is_handle);
        else
            item_fill(&items[i]);
    }
    items_check(PART_COUNT);
    items_free(PART_COUNT);
    pool_empty();
}

static void test_divide(void)
{
    divide_try(false);
    divide_try(true);
}

/* The borders of holes need descriptors: where the stock has none they are made before a piece is divided. */
static void test_divide_with_an_empty_stock(void)
{
    pool_empty();
    parts_make(4, false);
    CHECK_OK(gn_memory_trim(suite.manager, 0, NULL)); /* whole pieces go, which needs some, too */
    struct gni_blocks *blocks = &suite.pool->blocks;
    gn_memory_block *unused = blocks->unused;
    blocks->unused = NULL;
    blocks->count = 0;
    CHECK(compact().released_bytes > 0);
    CHECK(blocks->count > 0);
    for (gn_memory_block *next; unused != NULL; unused = next) {
        next = unused->next;
        gni_blocks_give(blocks, unused);
    }
    items_check(PART_COUNT);
    items_free(PART_COUNT);
    pool_empty();
}

/* A request that only dividing can meet, where nobody knows an address of the pieces. */
static void test_divide_automatic(void)
{
    struct item large = {.address = NULL};
    for (int is_exported = 0; is_exported <= 1; is_exported++) {
        pool_empty();
        parts_make(4, !is_exported);
        limit_set((size_t)4 * LARGE_BYTES + 16 * MIB);
        gn_status status = item_try(&large, (size_t)2 * LARGE_BYTES, false);
        CHECK_STATUS(status, is_exported ? GN_ERROR_OUT_OF_MEMORY : GN_OK);
        if (is_exported) {
            CHECK(compact().released_bytes > 0); /* the caller may */
            CHECK_OK(item_try(&large, (size_t)2 * LARGE_BYTES, false));
        }
        items_check(PART_COUNT);
        CHECK(item_is_right(&large));
        item_free(&large);
        items_free(PART_COUNT);
        limit_set(UINT64_MAX);
    }
    pool_empty();
}

/* Without room for a second copy of what is used a piece stays as it is, and the report says so. */
static void test_divide_without_room(void)
{
    pool_empty();
    parts_make(1, false);
    limit_set(LARGE_BYTES);
    gn_memory_compaction report = compact();
    CHECK_U64(report.released_bytes, 0);
    CHECK_U64(report.moved_bytes, 0);
    CHECK_U64(report.skipped_bytes, LARGE_BYTES - PART_BYTES);
    items_check(PART_COUNT / 4);
    if (suite.is_sim) { /* nor is it tried where the device has none */
        size_t left, total;
        CHECK_OK(suite.device->ops->memory_info(suite.device, &left, &total));
        CHECK(suite.control.memory(total - left + PART_BYTES));
        limit_set(UINT64_MAX);
        long made = suite.control.call_count("cuMemCreate");
        CHECK_U64(compact().skipped_bytes, LARGE_BYTES - PART_BYTES);
        CHECK_U64(suite.control.call_count("cuMemCreate"), made);
        CHECK(suite.control.memory(total));
    }
    limit_set(LARGE_BYTES + PART_BYTES + 3 * MIB);
    CHECK(compact().released_bytes >= LARGE_BYTES - PART_BYTES - 3 * MIB);
    items_check(PART_COUNT / 4);
    items_free(PART_COUNT / 4);
    limit_set(UINT64_MAX);
    pool_empty();
}

/* Pieces that blocks share, and that cannot be divided since their addresses are known, hold up little. */
static void test_addresses_hold_up_little(void)
{
    enum {
        COUNT = 64, /* of 2 MiB: half of the limit */
        KEPT = 8    /* one of so many */
    };
    pool_empty();
    limit_set(2 * COUNT * GNI_PAGE);
    for (size_t i = 0; i < COUNT; i++)
        item_make(&items[i], GNI_PAGE, false);
    for (size_t i = 0; i < COUNT; i++)
        if (i % KEPT != 0)
            item_free(&items[i]);
    CHECK_OK(gn_memory_trim(suite.manager, 0, NULL));
    CHECK(statistics_now().reserved_bytes <= (COUNT / KEPT + 2 * COUNT / 8) * GNI_PAGE);
    items_free(COUNT);
    limit_set(UINT64_MAX);
    pool_empty();
}

/* Of a block counts what was asked for, in whole grains, and not what its size was rounded up to. */
static void test_what_is_rounded_up_is_free(void)
{
    static const size_t sizes[] = {1, 511, 512, 513, 100001, 3 * MIB + 1};
    pool_empty();
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        char *address = block_make(sizes[i]);
        const gn_memory_block *block = gni_address_find(address);
        size_t used = gni_align_up(sizes[i], GNI_GRAIN);
        CHECK(block != NULL && gni_block_used_end(block) == address + used);
        CHECK(sizes[i] != 100001 || gni_block_used_end(block) < gni_block_end(block));
        block_free(address);
    }
    pool_empty();
}

/* Where the driver has less left than what several blocks would share, one still gets what it needs. */
static void test_less_than_a_step(void)
{
    enum {
        COUNT = 40,
        LEFT = 3
    };
    gn_memory_pool *graph = NULL;
    void *pointers[2 * COUNT];
    size_t count, spare, left, total;
    if (!suite.is_sim)
        return;
    pool_empty();
    CHECK_OK(gn_memory_pool_create(suite.manager, &graph));
    CHECK_OK(gn_memory_pool_begin(graph, streams[1]));
    for (count = 0; count < COUNT; count++)
        pointers[count] = block_make_on(GNI_PAGE, streams[1]);
    gn_memory_statistics now = statistics_now();
    spare = (size_t)(now.reserved_bytes - now.live_bytes) / GNI_PAGE;
    CHECK(spare > 0 && spare < COUNT - LEFT); /* they share pieces */
    CHECK_OK(suite.device->ops->memory_info(suite.device, &left, &total));
    CHECK(suite.control.memory(total - left + LEFT * GNI_PAGE));
    for (; count < COUNT + spare + LEFT; count++)
        pointers[count] = block_make_on(GNI_PAGE, streams[1]);
    CHECK(suite.control.memory(total));
    CHECK_OK(gn_memory_pool_end(graph, streams[1]));
    while (count > 0)
        block_free(pointers[--count]);
    CHECK_OK(gn_memory_pool_destroy(graph));
    pool_empty();
}

/* Room is made for all of a request, also where the free memory that it would have grown beside goes back first. */
static void test_divide_for_all(void)
{
    struct item large = {.address = NULL};
    pool_empty();
    for (size_t i = 0; i < 4; i++)
        item_make(&items[i], LARGE_BYTES, true);
    item_free(&items[0]);
    frees_spread();
    item_make(&items[0], PART_BYTES, true);
    item_free(&items[2]);
    frees_spread();
    item_make(&items[2], 24 * MIB, true); /* where it fits: in the third piece */
    item_free(&items[1]);
    CHECK_OK(gn_device_synchronize(suite.device));
    CHECK_OK(gn_memory_trim(suite.manager, 0, NULL));
    CHECK_U64(statistics_now().reserved_bytes, (size_t)3 * LARGE_BYTES);
    limit_set((size_t)3 * LARGE_BYTES + 10 * MIB);
    item_make(&large, 36 * MIB, false);
    items_check(4);
    CHECK(item_is_right(&large));
    item_free(&large);
    items_free(4);
    limit_set(UINT64_MAX);
    pool_empty();
}

/* Room is made for a block where there is none for all that its kind would take at a time. */
static void test_fold_for_little(void)
{
    enum {
        TINY = 1024, /* 64 MiB of 64 KiB: the next step is 4 MiB */
        HALVES =
            16, /* two pages of 256 KiB, of which the first half of one stays, and the second of the other */
    };
    pool_empty();
    for (size_t i = 0; i < TINY; i++)
        item_make(&items[i], 64 * KIB, true);
    for (size_t i = TINY; i < TINY + HALVES; i++)
        item_make(&items[i], 256 * KIB, true);
    frees_spread();
    CHECK_OK(gn_memory_trim(suite.manager, 0, NULL));
    for (size_t i = TINY + 4; i < TINY + 12; i++)
        item_free(&items[i]);
    limit_set(statistics_now().reserved_bytes);
    CHECK_U64(statistics_now().reserved_bytes, 68 * MIB);
    item_make(&items[TINY + 4], 64 * KIB, true);
    items_check(TINY + HALVES);
    items_free(TINY + HALVES);
    limit_set(UINT64_MAX);
    pool_empty();
}

/* ---- what is left alone --------------------------------------------------------------------- */

/* Memory of a graph's pool stays where it is, and the report says how much could not be had. */
static void test_private_pools(void)
{
    enum {
        COUNT = 64
    };
    gn_memory_pool *graph = NULL;
    void *pointers[COUNT];
    uint64_t handles[COUNT] = {0};
    pool_empty();
    CHECK_OK(gn_memory_pool_create(suite.manager, &graph));
    CHECK_OK(gn_memory_pool_begin(graph, streams[1]));
    for (size_t i = 0; i < COUNT; i++)
        pointers[i] = block_make_on(256 * KIB, streams[1]);
    for (size_t i = 0; i < COUNT; i += 2)
        block_free(pointers[i]);
    CHECK_OK(gn_memory_pool_end(graph, streams[1]));
    for (size_t i = 1; i < COUNT; i += 2) {
        handles[i] = physical_of(pointers[i]);
        block_fill(pointers[i], (unsigned char)i, 256 * KIB, streams[1]);
    }
    gn_memory_compaction report = compact();
    CHECK(report.folded_pages == 0 && report.released_bytes == 0);
    CHECK(report.skipped_bytes >= COUNT / 2 * 256 * KIB);
    for (size_t i = 1; i < COUNT; i += 2) {
        CHECK_U64(physical_of(pointers[i]), handles[i]);
        CHECK(block_holds(pointers[i], (unsigned char)i, 256 * KIB));
        block_free(pointers[i]);
    }
    CHECK_OK(gn_memory_pool_destroy(graph));
    pool_empty();
}

/* The policy `pool` cannot fold, and says so; idle segments go back, blocks stay as they are. */
static void test_policy_pool(void)
{
    enum {
        COUNT = 64
    };
    static gn_memory_manager *plain;
    void *pointers[COUNT];
    gn_memory_compaction report = {.can_fold = true};
    CHECK_OK(gni_manager_create(suite.device, false, "pool", &plain));
    for (size_t i = 0; i < COUNT; i++)
        CHECK_OK(gn_memory_alloc(plain, MIB, NULL, &pointers[i]));
    for (size_t i = 0; i < COUNT; i++) {
        if (i % 2 == 0)
            CHECK_OK(gn_memory_free(plain, pointers[i]));
        else
            block_fill(pointers[i], (unsigned char)i, MIB, suite.stream);
    }
    CHECK_OK(gn_memory_compact(plain, &report));
    CHECK(!report.can_fold && report.folded_pages == 0 && report.moved_bytes == 0);
    CHECK(gni_pool_is_valid(plain->pool));
    for (size_t i = 1; i < COUNT; i += 2) {
        CHECK(block_holds(pointers[i], (unsigned char)i, MIB));
        CHECK_OK(gn_memory_free(plain, pointers[i]));
    }
    CHECK_OK(gn_memory_compact(plain, &report));
    CHECK(report.released_bytes >= COUNT * MIB);
    CHECK_OK(gni_manager_clear(plain));
}

/* ---- the program ---------------------------------------------------------------------------- */

static void run(void)
{
    streams_open();
    RUN(test_half_by_address);
    RUN(test_half_by_handle);
    RUN(test_half_of_odd_sizes);
    RUN(test_mixed_sizes);
    RUN(test_unfold);
    RUN(test_automatic);
    RUN(test_automatic_leaves_exported);
    RUN(test_automatic_goes_on);
    RUN(test_divide);
    RUN(test_divide_with_an_empty_stock);
    RUN(test_divide_automatic);
    RUN(test_divide_without_room);
    RUN(test_addresses_hold_up_little);
    RUN(test_what_is_rounded_up_is_free);
    RUN(test_less_than_a_step);
    RUN(test_divide_for_all);
    RUN(test_fold_for_little);
    RUN(test_private_pools);
    RUN(test_policy_pool);
    RUN(test_schedules);
    streams_close();
    size_t leaked = 1;
    CHECK_OK(gn_shutdown(&leaked));
    CHECK_U64(leaked, 0);
}

int main(int argc, char **argv)
{
    if (!suite_open(argc > 1 ? argv[1] : "cuda") || !suite.is_virtual) {
        printf("skipped: the policy virtual is needed\n");
        return CHECK_SKIPPED;
    }
    if (argc > 2)
        divisor = (size_t)atoi(argv[2]);
    run();
    return check_result();
}
