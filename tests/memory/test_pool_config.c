/*
 * test_pool_config.c: what can be configured, and what can be looked at: each field of the configuration,
 * the options of the environment in children, statistics, classes, visits.
 *
 *     test_pool_config [cpu | cuda]
 */
#include "pool_suite.h"

struct suite suite;

static gn_memory_config standard; /* as the process began */

static void config_set(gn_memory_config config)
{
    CHECK_OK(gn_memory_configure(suite.manager, &config));
}

/* Allocates some blocks of one size and frees them all. */
static void blocks_pass(size_t count, size_t nbytes)
{
    void *pointers[512];
    CHECK(count <= COUNT_OF(pointers));
    for (size_t i = 0; i < count; i++)
        pointers[i] = block_make(nbytes);
    for (size_t i = 0; i < count; i++)
        block_free(pointers[i]);
    CHECK_OK(gn_stream_synchronize(suite.stream));
}

/* What was freed is known to be complete, and one more free keeps the limits. */
static void frees_settle(void)
{
    CHECK_OK(gn_memory_collect(suite.manager)); /* records events */
    CHECK_OK(gn_device_synchronize(suite.device));
    CHECK_OK(gn_memory_collect(suite.manager)); /* takes in that they are done */
    block_free(block_make(2 * MIB));            /* not small: its thread does not keep it */
}

/* ---- bad values ----------------------------------------------------------------------------- */

static void config_refuse(gn_memory_config config)
{
    gn_memory_config before = config_now();
    CHECK_STATUS(gn_memory_configure(suite.manager, &config), GN_ERROR_INVALID_VALUE);
    gn_memory_config after = config_now();
    CHECK(memcmp(&before, &after, sizeof before) == 0);
}

static void test_bad_values(void)
{
    const double bad[] = {-0.1, 1.1, 1e300, -1e300, 0.0 / 0.0, 1e300 * 1e300};
    gn_memory_config config = standard;
    config.strategy = (gn_memory_strategy)3;
    config_refuse(config);
    config = standard;
    config.strategy = (gn_memory_strategy)-1;
    config_refuse(config);
    const size_t segments[] = {0, 1, 2 * MIB - 1, 64 * GIB + 1, SIZE_MAX};
    for (size_t i = 0; i < COUNT_OF(segments); i++) {
        config = standard;
        config.segment_bytes = segments[i];
        config_refuse(config);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        config = standard;
        config.memory_fraction = bad[i];
        config_refuse(config);
        config = standard;
        config.cleanup_threshold = bad[i];
        config_refuse(config);
        config = standard;
        config.coalescing_threshold = bad[i];
        config_refuse(config);
    }
    config = standard;
    config.memory_fraction = 0; /* nothing at all is no fraction */
    config_refuse(config);
    CHECK_STATUS(gn_memory_configure(suite.manager, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_configure(NULL, &standard), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_get_config(suite.manager, NULL), GN_ERROR_INVALID_VALUE);
}

/* ---- limits --------------------------------------------------------------------------------- */

static void test_memory_fraction(void)
{
    void *pointer = NULL;
    pool_empty();
    limit_set(32 * MIB);
    CHECK(statistics_now().limit_bytes >= 32 * MIB && statistics_now().limit_bytes < 33 * MIB);
    CHECK_STATUS(gn_memory_alloc(suite.manager, 40 * MIB, NULL, &pointer), GN_ERROR_OUT_OF_MEMORY);
    block_free(block_make(28 * MIB));
    CHECK(statistics_now().reserved_bytes <= 33 * MIB);
    pool_empty();
    limit_set(UINT64_MAX);
    /* A smaller limit gives idle memory back; what lives may stay. */
    void *kept = block_make(12 * MIB);
    block_free(block_make(40 * MIB));
    CHECK(statistics_now().reserved_bytes >= 52 * MIB);
    CHECK_OK(gn_stream_synchronize(suite.stream));
    limit_set(20 * MIB);
    CHECK(statistics_now().reserved_bytes <= 20 * MIB);
    limit_set(4 * MIB);
    CHECK_U64(statistics_now().live_bytes, 12 * MIB);
    block_free(kept);
    limit_set(UINT64_MAX);
    pool_empty();
}

static void test_cache_bytes(void)
{
    gn_memory_config config = standard;
    static const size_t sizes[] = {1000, 100 * KIB, 1 * MIB, 3 * MIB, 10 * MIB};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        size_t count = 96 * MIB / sizes[i] < 400 ? 96 * MIB / sizes[i] : 400;
        pool_empty();
        config.cache_bytes = SIZE_MAX;
        config_set(config);
        blocks_pass(count, sizes[i]);
        gn_memory_statistics before = statistics_now();
        CHECK(before.cached_bytes >= count * sizes[i]);
        config.cache_bytes = 16 * MIB; /* takes effect at once */
        config_set(config);
        CHECK(statistics_now().cached_bytes <= 16 * MIB);
        POOL_CHECK();
        blocks_pass(count, sizes[i]); /* and goes on; blocks that live hold up their segment */
        frees_settle();
        CHECK(statistics_now().cached_bytes <= (suite.is_virtual ? 20 * MIB : 48 * MIB));
        config.cache_bytes = 0;
        config_set(config);
        CHECK_U64(statistics_now().cached_bytes, 0);
        blocks_pass(3, sizes[i]);
        frees_settle();
        CHECK(statistics_now().cached_bytes <= (suite.is_virtual ? 4 * MIB : 32 * MIB));
        POOL_CHECK();
    }
    config_set(standard);
    pool_empty();
}

static uint64_t cached_in_threads(void)
{
    gn_memory_class classes[GNI_SIZE_BINS];
    size_t count = 0;
    uint64_t cached = 0;
    CHECK_OK(gn_memory_get_classes(suite.manager, classes, COUNT_OF(classes), &count));
    for (size_t i = 0; i < count; i++)
        cached += classes[i].cached_count;
    return cached;
}

static void test_stream_cache_blocks(void)
{
    gn_memory_config config = standard;
    pool_empty();
    blocks_pass(200, 4096);
    CHECK(cached_in_threads() >= 30);
    config.stream_cache_blocks = 10;
    config_set(config);
    CHECK(cached_in_threads() <= 10);
    blocks_pass(200, 4096);
    CHECK(cached_in_threads() <= 10);
    POOL_CHECK();
    config.stream_cache_blocks = 0;
    config_set(config);
    gn_memory_statistics before = statistics_now();
    blocks_pass(200, 4096);
    CHECK_U64(cached_in_threads(), 0);
    CHECK_U64(statistics_now().stream_hit_count, before.stream_hit_count);
    POOL_CHECK();
    config_set(standard);
    pool_empty();
}

static void test_global_cache_blocks(void)
{
    gn_memory_config config = standard;
    pool_empty();
    config.global_cache_blocks = 0;
    config_set(config);
    blocks_pass(50, 3 * MIB);
    frees_settle();
    CHECK(statistics_now().cached_bytes <= 40 * MIB);
    config_set(standard);
    pool_empty();
}

/* Above the threshold of pressure idle memory goes back at once. */
static void test_cleanup_threshold(void)
{
    gn_memory_config config = standard;
    pool_empty();
    blocks_pass(10, 10 * MIB);
    CHECK(statistics_now().cached_bytes >= 100 * MIB);
    config.cleanup_threshold = 50.0 * (double)MIB / (double)suite.pool->total_bytes;
    config_set(config);
    CHECK(statistics_now().reserved_bytes <= 50 * MIB);
    blocks_pass(10, 10 * MIB);
    frees_settle();
    CHECK(statistics_now().cached_bytes <= 50 * MIB);
    config.cleanup_threshold = 0;
    config_set(config);
    CHECK_U64(statistics_now().cached_bytes, 0);
    config_set(standard);
    pool_empty();
}

/* Much idle memory: freed blocks are merged at once instead of staying with their thread. */
static void test_coalescing_threshold(void)
{
    gn_memory_config config = standard;
    pool_empty();
    blocks_pass(100, 4 * KIB);
    CHECK(cached_in_threads() > 30);
    config.coalescing_threshold = 0;
    config_set(config);
    blocks_pass(100, 4 * KIB);
    CHECK_U64(cached_in_threads(), 0);
    CHECK(statistics_now().largest_free_bytes >= 100 * 4 * KIB);
    POOL_CHECK();
    config_set(standard);
    pool_empty();
}

static void test_segment_bytes(void)
{
    gn_memory_config config = standard;
    pool_empty();
    config.segment_bytes = 2 * MIB;
    config_set(config);
    uint64_t before = statistics_now().driver_alloc_count;
    blocks_pass(500, 64 * KIB); /* 32 MiB in pieces of 2 MiB */
    CHECK(statistics_now().driver_alloc_count - before >= 15);
    config_set(standard);
    pool_empty();
}

static void test_detailed_statistics(void)
{
    gn_memory_config config = standard;
    pool_empty();
    uint64_t before = statistics_now().driver_time_ns;
    blocks_pass(1, 20 * MIB);
    pool_empty();
    CHECK_U64(statistics_now().driver_time_ns, before);
    config.has_detailed_statistics = true;
    config_set(config);
    blocks_pass(1, 20 * MIB);
    pool_empty();
    CHECK(statistics_now().driver_time_ns > before);
    config_set(standard);
}

/* ---- strategies ----------------------------------------------------------------------------- */

/* Leaves holes of 5, 3 and 4 MiB in this order, between living blocks, in one segment; then asks for 3. */
static size_t strategy_place(gn_memory_strategy strategy)
{
    gn_memory_config config = standard;
    static const size_t sizes[] = {5 * MIB, 1200 * KIB, 3 * MIB, 1200 * KIB, 4 * MIB, 1200 * KIB};
    char *pointers[6];
    pool_empty();
    void *all = block_make(8 * MIB), *more = block_make(8 * MIB); /* one stretch for all of them */
    block_free(all);
    block_free(more);
    CHECK_OK(gn_memory_coalesce(suite.manager, NULL));
    config.strategy = strategy;
    config_set(config);
    for (size_t i = 0; i < 6; i++)
        pointers[i] = block_make(sizes[i]);
    for (size_t i = 0; i < 6; i += 2)
        block_free(pointers[i]);
    CHECK_OK(gn_memory_coalesce(suite.manager, NULL));
    char *found = block_make(3 * MIB);
    size_t place = 6;
    for (size_t i = 0; i < 6; i += 2)
        if (found == pointers[i])
            place = i;
    block_free(found);
    for (size_t i = 1; i < 6; i += 2)
        block_free(pointers[i]);
    config_set(standard);
    pool_empty();
    return place;
}

static void test_first_fit_and_best_fit(void)
{
    CHECK_U64(strategy_place(GN_MEMORY_FIRST_FIT), 0);
    CHECK_U64(strategy_place(GN_MEMORY_BEST_FIT), 2);
}

/* Blocks of both engines live side by side, and each goes back to its own. */
static void test_direct_and_back(void)
{
    gn_memory_config config = standard;
    void *pooled[20], *direct[20];
    pool_empty();
    blocks_pass(20, 5000); /* the thread's cache has some */
    blocks_pass(3, 3 * MIB);
    for (int i = 0; i < 20; i++)
        pooled[i] = block_make(5000);
    block_free(pooled[19]);
    config.strategy = GN_MEMORY_DIRECT;
    config_set(config);
    CHECK_TEXT(gn_memory_manager_get_policy(suite.manager), "direct");
    gn_memory_statistics before = statistics_now();
    for (int i = 0; i < 20; i++)
        direct[i] = block_make(5000);
    gn_memory_statistics after = statistics_now();
    CHECK_U64(after.driver_alloc_count, before.driver_alloc_count + 20);
    CHECK_U64(after.live_count, before.live_count + 20);
    for (int i = 0; i < 10; i++) { /* of both, under both */
        block_free(direct[i]);
        if (i < 9)
            block_free(pooled[i]);
    }
    void *again = block_make(5000); /* what was freed to the pool is not what a request gets */
    CHECK_U64(statistics_now().driver_alloc_count, after.driver_alloc_count + 1);
    block_free(again);
    again = block_make(3 * MIB);
    CHECK_U64(statistics_now().driver_alloc_count, after.driver_alloc_count + 2);
    block_free(again);
    config_set(standard);
    CHECK(strcmp(gn_memory_manager_get_policy(suite.manager), "direct") != 0);
    size_t nbytes = 0;
    CHECK_OK(gn_memory_get_size(suite.manager, direct[15], &nbytes));
    CHECK_U64(nbytes, 5000);
    POOL_CHECK();
    for (int i = 10; i < 20; i++)
        block_free(direct[i]);
    for (int i = 9; i < 19; i++)
        block_free(pooled[i]);
    CHECK_STATUS(gn_memory_free(suite.manager, pooled[19]), GN_ERROR_DOUBLE_FREE);
    CHECK_STATUS(gn_memory_free(suite.manager, direct[12]), GN_ERROR_DOUBLE_FREE);
    pool_empty();
}

/* ---- statistics ----------------------------------------------------------------------------- */

static void statistics_check(const gn_memory_statistics *now)
{
    CHECK_U64(now->live_count, now->alloc_count - now->free_count);
    CHECK_U64(now->requested_bytes, now->alloc_bytes_total - now->free_bytes_total);
    CHECK_U64(now->alloc_count, now->stream_hit_count + now->global_hit_count + now->miss_count);
    CHECK(now->requested_bytes <= now->live_bytes);
    CHECK(now->live_bytes <= now->live_bytes_peak && now->live_count <= now->live_count_peak);
    CHECK(now->requested_bytes <= now->requested_bytes_peak);
    CHECK(now->reserved_bytes <= now->reserved_bytes_peak);
    CHECK_U64(now->cached_bytes, now->reserved_bytes - now->live_bytes - now->pending_bytes);
    CHECK(now->driver_alloc_count >= now->driver_free_count);
    CHECK(now->largest_free_bytes <= now->cached_bytes);
    CHECK(now->reserved_bytes <= now->limit_bytes);
}

static void test_statistics(void)
{
    enum {
        COUNT = 100
    };
    struct {
        void *pointer;
        size_t nbytes, rounded;
    } held[COUNT] = {{NULL, 0, 0}};
    uint64_t seed = 9, live = 0, requested = 0, count = 0;
    pool_empty();
    CHECK_OK(gn_memory_reset_peaks(suite.manager));
    gn_memory_statistics before = statistics_now();
    CHECK(before.live_bytes_peak == 0 && before.live_count_peak == 0);
    CHECK(before.requested_bytes_peak == 0 && before.reserved_bytes_peak == 0);
    uint64_t live_most = 0, count_most = 0, requested_most = 0;
    for (int step = 0; step < 3000; step++) {
        size_t i = check_random(&seed) % COUNT;
        if (held[i].pointer != NULL) {
            block_free(held[i].pointer);
            live -= held[i].rounded;
            requested -= held[i].nbytes;
            count--;
            held[i].pointer = NULL;
        } else {
            held[i].nbytes = (check_random(&seed) % (9 * MIB)) >> (check_random(&seed) % 14);
            held[i].pointer = block_make(held[i].nbytes);
            held[i].rounded = gni_address_find(held[i].pointer)->nbytes;
            CHECK(held[i].rounded >= gni_size_round(held[i].nbytes));
            live += held[i].rounded;
            requested += held[i].nbytes;
            count++;
        }
        live_most = live > live_most ? live : live_most;
        requested_most = requested > requested_most ? requested : requested_most;
        count_most = count > count_most ? count : count_most;
        gn_memory_statistics now = statistics_now();
        statistics_check(&now);
        CHECK(now.live_bytes == live && now.requested_bytes == requested);
        CHECK(now.live_count == count);
    }
    gn_memory_statistics now = statistics_now();
    CHECK_U64(now.live_bytes_peak, live_most);
    CHECK_U64(now.requested_bytes_peak, requested_most);
    CHECK_U64(now.live_count_peak, count_most);
    CHECK(now.stream_hit_count > before.stream_hit_count && now.miss_count > before.miss_count);
    CHECK(now.global_hit_count > before.global_hit_count);
    CHECK(now.driver_alloc_count > before.driver_alloc_count);
    for (size_t i = 0; i < COUNT; i++)
        if (held[i].pointer != NULL)
            block_free(held[i].pointer);
    pool_empty();
    now = statistics_now();
    CHECK_U64(now.driver_alloc_count - now.driver_free_count, 0);
    CHECK(now.reserved_bytes == 0 && now.largest_free_bytes == 0);
    CHECK_OK(gn_memory_reset_peaks(suite.manager));
    now = statistics_now();
    CHECK(now.live_bytes_peak == 0 && now.reserved_bytes_peak == 0 && now.live_count_peak == 0);
}

static void test_classes(void)
{
    gn_memory_class before[100], after[100];
    size_t count = 0;
    pool_empty();
    CHECK_OK(gn_memory_get_classes(suite.manager, before, COUNT_OF(before), &count));
    CHECK_U64(count, GNI_SIZE_BINS);
    for (size_t i = 0; i < count; i++) {
        CHECK_U64(before[i].nbytes, gni_class_bytes((unsigned)i));
        CHECK_U64(before[i].cached_count, 0);
    }
    blocks_pass(10, 4096);
    blocks_pass(10, 4096);
    CHECK_OK(gn_memory_get_classes(suite.manager, after, COUNT_OF(after), &count));
    for (size_t i = 0; i < count; i++) {
        uint64_t asked = after[i].alloc_count - before[i].alloc_count;
        uint64_t hits = after[i].hit_count - before[i].hit_count;
        CHECK_U64(asked, after[i].nbytes == 4096 ? 20 : 0); /* no other had one to lend */
        CHECK(after[i].nbytes == 4096 ? hits >= 10 && hits < 20 : hits == 0);
        CHECK(after[i].nbytes == 4096 || after[i].cached_count == 0);
    }
    CHECK(after[7].nbytes == 4096 && after[7].cached_count >= 10);
    after[3].nbytes = 4711; /* no more than there is room for */
    CHECK_OK(gn_memory_get_classes(suite.manager, after, 3, &count));
    CHECK(count == GNI_SIZE_BINS && after[3].nbytes == 4711);
    CHECK_OK(gn_memory_get_classes(suite.manager, NULL, 0, &count));
    pool_empty();
}

/* ---- visiting ------------------------------------------------------------------------------- */

struct visit {
    size_t count, most;
    uint64_t live, pending, idle, live_count;
    gn_memory_info last;
};

static bool visitor(const gn_memory_info *info, void *context)
{
    struct visit *visit = context;
    const char *address = info->address, *segment = info->segment_address;
    const gn_memory_info *last = &visit->last;
    bool is_same = visit->count > 0 && last->segment_id == info->segment_id;
    CHECK(info->segment_id != 0 && info->nbytes > 0);
    CHECK(address >= segment && address + info->nbytes <= segment + info->segment_bytes);
    if (is_same) /* the blocks of a segment tile it, in the order of addresses */
        CHECK(address == (const char *)last->address + last->nbytes &&
              segment == last->segment_address && info->segment_bytes == last->segment_bytes);
    else
        CHECK(address == segment);
    if (visit->count > 0 && !is_same)
        CHECK((const char *)last->address + last->nbytes ==
                  (const char *)last->segment_address + last->segment_bytes &&
              segment >= (const char *)last->segment_address + last->segment_bytes);
    bool is_used = info->state == GN_MEMORY_LIVE || info->state == GN_MEMORY_PENDING;
    CHECK(is_used == (info->number > 0));
    CHECK(info->requested <= info->nbytes && (is_used || info->requested == 0));
    visit->live += info->state == GN_MEMORY_LIVE ? info->nbytes : 0;
    visit->live_count += info->state == GN_MEMORY_LIVE;
    visit->pending += info->state == GN_MEMORY_PENDING ? info->nbytes : 0;
    visit->idle += is_used ? 0 : info->nbytes;
    visit->last = *info;
    CHECK_OK(gn_memory_collect(suite.manager)); /* outside of all locks */
    return ++visit->count < visit->most;
}

static void test_visit(void)
{
    enum {
        COUNT = 200
    };
    void *pointers[COUNT];
    uint64_t seed = 4;
    gn_stream *side = stream_make(GN_STREAM_NON_BLOCKING);
    pool_empty();
    struct visit visit = {.most = SIZE_MAX};
    CHECK_OK(gn_memory_visit(suite.manager, visitor, &visit));
    CHECK_U64(visit.count, 0);
    for (size_t i = 0; i < COUNT; i++)
        pointers[i] =
            block_make_on((check_random(&seed) % (12 * MIB)) >> (check_random(&seed) % 15),
                          i % 3 == 0 ? side : suite.stream);
    for (size_t i = 0; i < COUNT; i += 2) {
        if (i % 10 == 0)
            CHECK_OK(gn_memory_record_stream(suite.manager, pointers[i], side));
        block_free(pointers[i]);
    }
    gn_memory_statistics now = statistics_now();
    CHECK_OK(gn_memory_visit(suite.manager, visitor, &visit));
    CHECK_U64(visit.live, now.live_bytes);
    CHECK_U64(visit.live_count, now.live_count);
    CHECK(visit.live + visit.pending + visit.idle <= now.reserved_bytes);
    CHECK(visit.live + visit.pending + visit.idle >= now.reserved_bytes - 64 * MIB);
    visit = (struct visit){.most = 5};
    CHECK_OK(gn_memory_visit(suite.manager, visitor, &visit));
    CHECK_U64(visit.count, 5);
    CHECK_STATUS(gn_memory_visit(suite.manager, NULL, NULL), GN_ERROR_INVALID_VALUE);
    for (size_t i = 1; i < COUNT; i += 2)
        block_free(pointers[i]);
    gn_stream_release(side);
    pool_empty();
}

/* Visiting many blocks takes a time in proportion to them. */
static void test_visit_is_linear(void)
{
    enum {
        COUNT = 100000
    };
    void **pointers = calloc(COUNT, sizeof *pointers);
    for (size_t i = 0; i < COUNT; i++)
        pointers[i] = block_make(100);
    double begin = seconds_now();
    CHECK_U64(gni_pool_list(suite.pool, NULL, 0) >= COUNT, true);
    CHECK(seconds_now() - begin < 1);
    for (size_t i = 0; i < COUNT; i++)
        block_free(pointers[i]);
    free(pointers);
    pool_empty();
}

/* ---- options of the environment ------------------------------------------------------------- */

static void child_warm_up(void)
{
    gn_memory_statistics before = statistics_now();
    long calls = driver_calls();
    CHECK(before.cached_bytes >= 32 * MIB && before.live_count == 0);
    static const size_t sizes[] = {4096, 65536, MIB, 4 * MIB, 32 * MIB};
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        block_free(block_make(sizes[i]));
    CHECK_U64(statistics_now().miss_count, before.miss_count);
    CHECK_U64(driver_calls(), calls);
    POOL_CHECK();
}

static void child_zero(void)
{
    static const size_t sizes[] = {1000, 300 * KIB, 3 * MIB, 10 * MIB};
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            void *pointer = block_make(sizes[i]);
            CHECK(block_holds(pointer, 0, sizes[i])); /* fresh from the driver */
            block_fill(pointer, 0x77, sizes[i], suite.stream);
            block_free(pointer);
        }
        pool_empty();
    }
    if (!suite.is_virtual)
        return;
    gn_memory_compaction report = {0};
    block_free(block_make(8 * MIB));
    CHECK_OK(gn_memory_coalesce(suite.manager, NULL));
    void *first = block_make(5 * MIB / 2); /* a page, and a part of one */
    CHECK_OK(gn_memory_compact(suite.manager, &report));
    CHECK_U64(report.released_bytes, 4 * MIB);
    void *second = block_make(3 * MIB / 2);
    CHECK((char *)second == (char *)first + 5 * MIB / 2);
    CHECK(block_holds(second, 0, 3 * MIB / 2)); /* the page came from the driver for this */
    block_free(first);
    block_free(second);
    pool_empty();
}

static void child_segment_size(void)
{
    CHECK_U64(config_now().segment_bytes, 4 * MIB);
    void *pointers[500];
    for (size_t i = 0; i < 500; i++)
        pointers[i] = block_make(128 * KIB); /* 62.5 MiB */
    gn_memory_statistics now = statistics_now();
    CHECK(now.driver_alloc_count >= 15); /* no step above 4 MiB */
    CHECK(now.reserved_bytes <= 68 * MIB);
    for (size_t i = 0; i < 500; i++)
        block_free(pointers[i]);
    pool_empty();
}

static void child_cache_bytes(void)
{
    CHECK_U64(config_now().cache_bytes, 8 * MIB);
    CHECK_U64(config_now().global_cache_blocks, SIZE_MAX);
    blocks_pass(20, 9 * MIB);
    frees_settle();
    CHECK(statistics_now().cached_bytes <= 20 * MIB);
    enum {
        COUNT = 64
    };
    void *pointers[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        pointers[i] = block_make(2 * MIB);
    for (size_t i = 0; i < COUNT; i++) /* those that stay do not hold up the rest */
        if (i % 8 != 0)
            block_free(pointers[i]);
    frees_settle();
    CHECK(!suite.is_virtual || statistics_now().cached_bytes <= 10 * MIB);
    for (size_t i = 0; i < COUNT; i += 8)
        block_free(pointers[i]);
}

static void child_cache_count(void)
{
    CHECK_U64(config_now().global_cache_blocks, 5);
    CHECK_U64(config_now().cache_bytes, SIZE_MAX);
    blocks_pass(50, 3 * MIB);
    CHECK_OK(gn_memory_coalesce(suite.manager, NULL));
    frees_settle();
    size_t idle = 0;
    gni_list_each (link, &suite.pool->main.heaps)
        for (int range = 0; range < GNI_RANGE_COUNT; range++)
            idle += gni_container_of(link, struct gni_heap, link)->fit[range].count;
    CHECK(idle <= 6);
    POOL_CHECK();
}

static void child_fraction(void)
{
    CHECK(config_now().memory_fraction == 0.25);
    CHECK(statistics_now().limit_bytes <= suite.pool->total_bytes / 4);
    void *pointer = NULL;
    CHECK_STATUS(
        gn_memory_alloc(suite.manager, (size_t)suite.pool->total_bytes / 3, NULL, &pointer),
        GN_ERROR_OUT_OF_MEMORY);
    CHECK_DETAIL("GENESIS_CUDA_MEMORY_FRACTION");
}

static void child_stats(void)
{
    CHECK(config_now().has_detailed_statistics);
    block_free(block_make(20 * MIB));
    CHECK(statistics_now().driver_time_ns > 0);
}

static const struct child_mode modes[] = {
    {"warm_up", child_warm_up, {"GENESIS_CUDA_WARMUP_ENABLED=1"}},
    {"zero", child_zero, {"GENESIS_CUDA_ZERO=1"}},
    {"segment_size", child_segment_size, {"GENESIS_CUDA_SEGMENT_SIZE=4MiB"}},
    {"cache_bytes", child_cache_bytes, {"GENESIS_CUDA_CACHE_SIZE=8MiB"}},
    {"cache_count", child_cache_count, {"GENESIS_CUDA_CACHE_SIZE=5"}},
    {"fraction", child_fraction, {"GENESIS_CUDA_MEMORY_FRACTION=0.25"}},
    {"stats", child_stats, {"GENESIS_CUDA_STATS_ENABLED=1"}},
};

static void test_options(void)
{
    if (!suite.is_cpu)
        children_run(modes, COUNT_OF(modes));
}

/* ---- the program ---------------------------------------------------------------------------- */

/* ---- being told ----------------------------------------------------------------------------- */

struct told {
    int crossings, failures;
};

static void tell(gn_memory_manager *manager, bool is_out_of_memory, void *context)
{
    struct told *told = context;
    void *pointer;
    *(is_out_of_memory ? &told->failures : &told->crossings) += 1;
    /* It may use the manager, and fail at it, without being called for that. */
    CHECK_STATUS(gn_memory_alloc(manager, (size_t)1 << 46, NULL, &pointer), GN_ERROR_OUT_OF_MEMORY);
    CHECK_STATUS(gn_memory_free(manager, &pointer), GN_ERROR_INVALID_POINTER);
    CHECK_OK(gn_memory_alloc(manager, 100, NULL, &pointer));
    CHECK_OK(gn_memory_free(manager, pointer));
}

static void test_callback(void)
{
    struct told told = {0};
    void *pointer;
    pool_empty();
    CHECK_STATUS(gn_memory_set_callback(suite.manager, 1.5, tell, &told), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_set_callback(suite.manager, 0.0 / 0.0, tell, &told),
                 GN_ERROR_INVALID_VALUE);
    limit_set(256 * MIB);
    CHECK_OK(gn_memory_set_callback(suite.manager, 0.5, tell, &told));
    CHECK_U64((uint64_t)told.crossings, 0);
    void *small = block_make(100 * MIB);
    CHECK_U64((uint64_t)told.crossings, 0);
    for (int i = 1; i <= 3; i++) {
        void *large = block_make(100 * MIB);
        CHECK_U64((uint64_t)told.crossings, (uint64_t)i);
        block_free(large);
        block_free(block_make(100 * MIB)); /* from the cache: no crossing */
        CHECK_U64((uint64_t)told.crossings, (uint64_t)i);
        CHECK_OK(gn_memory_trim(suite.manager, 0, NULL));
    }
    CHECK_STATUS(gn_memory_alloc(suite.manager, 200 * MIB, NULL, &pointer), GN_ERROR_OUT_OF_MEMORY);
    CHECK_DETAIL("out of memory"); /* not the callback's own failure */
    CHECK_U64((uint64_t)told.failures, 1);
    void *again = block_make(120 * MIB);
    int before = told.crossings;
    CHECK_OK(gn_memory_set_callback(suite.manager, 0.25, tell, &told)); /* above it already */
    CHECK_U64((uint64_t)told.crossings, (uint64_t)before + 1);
    CHECK_OK(gn_memory_set_callback(suite.manager, 0, NULL, NULL));
    block_free(small);
    block_free(again);
    pool_empty();
    block_free(block_make(200 * MIB));
    CHECK_U64((uint64_t)told.crossings, (uint64_t)before + 1);
    limit_set(UINT64_MAX);
    pool_empty();
}

static void run(void)
{
    standard = config_now();
    RUN(test_callback);
    RUN(test_bad_values);
    RUN(test_memory_fraction);
    RUN(test_cache_bytes);
    RUN(test_stream_cache_blocks);
    RUN(test_global_cache_blocks);
    RUN(test_cleanup_threshold);
    RUN(test_coalescing_threshold);
    RUN(test_segment_bytes);
    RUN(test_detailed_statistics);
    RUN(test_first_fit_and_best_fit);
    RUN(test_statistics);
    RUN(test_classes);
    RUN(test_visit);
    RUN(test_visit_is_linear);
    RUN(test_direct_and_back); /* which makes the other engine, for ever */
    RUN(test_options);
}

int main(int argc, char **argv)
{
    return suite_main(argc, argv, run, modes, COUNT_OF(modes));
}
