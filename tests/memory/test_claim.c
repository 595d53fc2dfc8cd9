/*
 * test_claim.c: regions of the CPU's memory that a thread has to itself (claim.h), and batches of small blocks that
 * threads pass to each other (depot.h).
 *
 *     test_claim [cpu [seconds [seed]]]     of the last test; 1 second by default
 *
 * First one thing after the other, with threads that do as they are told: who has which region, where blocks go that
 * others free, and what becomes of a claim when memory is trimmed, limited or wanted elsewhere, when its thread ends
 * and in a forked child. Then threads that free each other's blocks and die, while the main thread disturbs them.
 */
#include "pool_suite.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

struct suite suite;

/* ---- a thread that does as it is told -------------------------------------------------------- */

enum {
    HELD = 40,
    HELD_MOST = 2000,
};

struct hand {
    pthread_t thread;
    pthread_barrier_t barrier; /* before and after each piece of work */
    void (*work)(struct hand *hand);
    size_t count; /* of blocks */
    size_t nbytes;
    size_t step;       /* by which each block is larger than the one before */
    gn_stream *stream; /* of the blocks, or NULL */
    void *blocks[HELD_MOST];
};

static void *hand_body(void *argument)
{
    struct hand *hand = argument;
    for (;;) {
        (void)pthread_barrier_wait(&hand->barrier);
        if (hand->work == NULL)
            return NULL;
        hand->work(hand);
        (void)pthread_barrier_wait(&hand->barrier);
    }
}

static void hand_start(struct hand *hand)
{
    *hand = (struct hand){0};
    CHECK(pthread_barrier_init(&hand->barrier, NULL, 2) == 0);
    CHECK(pthread_create(&hand->thread, NULL, hand_body, hand) == 0);
}

static void hand_do(struct hand *hand, void (*work)(struct hand *hand))
{
    hand->work = work;
    (void)pthread_barrier_wait(&hand->barrier);
    if (work != NULL)
        (void)pthread_barrier_wait(&hand->barrier);
}

static void hand_end(struct hand *hand)
{
    hand_do(hand, NULL);
    CHECK(pthread_join(hand->thread, NULL) == 0);
    CHECK(pthread_barrier_destroy(&hand->barrier) == 0);
}

static void work_alloc(struct hand *hand)
{
    for (size_t i = 0; i < hand->count; i++)
        hand->blocks[i] = hand->stream != NULL ? block_make_on(hand->nbytes, hand->stream)
                                               : block_make(hand->nbytes + i * hand->step);
}

static void work_free(struct hand *hand)
{
    for (size_t i = 0; i < hand->count; i++)
        block_free(hand->blocks[i]);
}

/* A size from 3 MiB on that was not asked for before: no slot keeps it. */
static size_t size_new(void)
{
    static size_t count;
    return 3 * MIB + ++count * 4 * KIB;
}

/* A thread that has `count` medium blocks of different sizes; five of them fill a region. */
static void hand_start_with(struct hand *hand, size_t count)
{
    hand_start(hand);
    hand->count = count;
    hand->nbytes = size_new();
    hand->step = 64 * KIB;
    hand_do(hand, work_alloc);
}

/* ---- what is known ---------------------------------------------------------------------------- */

static const struct gni_claim *claim_of_address(const void *address)
{
    return atomic_load(&gni_page_find(address)->claim);
}

static size_t claims_idle(void)
{
    size_t nbytes = 0;
    for (const struct gni_cache *cache = atomic_load(&suite.pool->caches); cache != NULL;
         cache = cache->next)
        nbytes += cache->claim != NULL ? cache->claim->fit.nbytes : 0;
    return nbytes;
}

/* Whether a thread's blocks were freed by others, and it has not taken them in yet. */
static bool claims_have_returned(void)
{
    for (const struct gni_cache *cache = atomic_load(&suite.pool->caches); cache != NULL;
         cache = cache->next)
        if (cache->claim != NULL && atomic_load(&cache->claim->returned) != NULL)
            return true;
    return false;
}

/* ---- one thing after the other ---------------------------------------------------------------- */

static void test_claimed(void)
{
    pool_empty();
    CHECK(suite.pool->has_claims);
    void *first = block_make(size_new());
    const struct gni_claim *claim = claim_of_address(first);
    CHECK(claim != NULL);
    gn_memory_statistics before = statistics_now();
    void *second = block_make(size_new());
    CHECK(claim_of_address(second) == claim && claims_idle() > 0);
    block_free(second);
    block_free(first);
    gn_memory_statistics now = statistics_now();
    CHECK_U64(now.stream_hit_count, before.stream_hit_count + 1); /* without the lock */
    CHECK_U64(now.global_hit_count, before.global_hit_count);
    CHECK_U64(now.live_bytes, 0);
    CHECK_U64(now.largest_free_bytes, now.reserved_bytes);
    POOL_CHECK();
    pool_empty();
    CHECK(!gni_claims_exist(suite.pool));
}

/* Small and large blocks are nobody's. */
static void test_other_ranges(void)
{
    pool_empty();
    void *small = block_make(MIB), *large = block_make(9 * MIB);
    CHECK(claim_of_address(small) == NULL && claim_of_address(large) == NULL);
    block_free(small);
    block_free(large);
    pool_empty();
}

static void test_two_threads_are_apart(void)
{
    struct hand hand;
    pool_empty();
    hand_start_with(&hand, 5);
    void *mine = block_make(2 * MIB);
    CHECK(claim_of_address(hand.blocks[0]) != NULL);
    CHECK(claim_of_address(mine) != NULL);
    CHECK(claim_of_address(mine) != claim_of_address(hand.blocks[0]));
    POOL_CHECK();
    block_free(mine);
    hand_do(&hand, work_free);
    hand_end(&hand);
    pool_empty();
}

static void test_trim_takes_all(void)
{
    struct hand hand;
    pool_empty();
    hand_start_with(&hand, 8);
    hand_do(&hand, work_free);
    CHECK(claims_idle() > 8 * 3 * MIB);
    size_t released = 0;
    gn_memory_statistics before = statistics_now();
    CHECK_OK(gn_memory_trim(suite.manager, 0, &released));
    CHECK_U64(released, before.reserved_bytes);
    CHECK_U64(statistics_now().reserved_bytes, 0);
    CHECK(!gni_claims_exist(suite.pool));
    hand_do(&hand, work_alloc); /* it begins again */
    CHECK(claim_of_address(hand.blocks[0]) != NULL);
    hand_do(&hand, work_free);
    hand_end(&hand);
    pool_empty();
}

/* What lies idle in a claim meets another thread's request before the system is asked. */
static void test_idle_memory_is_found(void)
{
    struct hand hand;
    void *blocks[8];
    pool_empty();
    hand_start_with(&hand, COUNT_OF(blocks));
    void *kept = hand.blocks[--hand.count];
    hand_do(&hand, work_free);
    gn_memory_statistics before = statistics_now();
    for (size_t i = 0; i < COUNT_OF(blocks) - 2; i++)
        blocks[i] = block_make(3 * MIB);
    gn_memory_statistics now = statistics_now();
    CHECK_U64(now.driver_alloc_count, before.driver_alloc_count);
    CHECK_U64(now.reserved_bytes, before.reserved_bytes);
    POOL_CHECK();
    for (size_t i = 0; i < COUNT_OF(blocks) - 2; i++)
        block_free(blocks[i]);
    block_free(kept);
    hand_end(&hand);
    pool_empty();
}

/* The same where a limit allows no more, with blocks that a claim has in two regions. */
static void test_limit(void)
{
    struct hand hand;
    pool_empty();
    hand_start_with(&hand, 12);
    hand_do(&hand, work_free);
    gn_memory_statistics before = statistics_now();
    limit_set(before.reserved_bytes);
    void *large = block_make(20 * MIB), *medium = block_make(8 * MIB);
    CHECK(statistics_now().reserved_bytes <= before.reserved_bytes);
    POOL_CHECK();
    block_free(large);
    block_free(medium);
    limit_set(UINT64_MAX);
    hand_end(&hand);
    pool_empty();
}

static void test_returned(void)
{
    struct hand hand;
    pool_empty();
    hand_start_with(&hand, 16);
    gn_memory_statistics before = statistics_now();
    for (size_t i = 0; i < hand.count; i++) {
        gn_memory_statistics was = statistics_now();
        block_free(hand.blocks[i]);
        gn_memory_statistics now = statistics_now();
        size_t nbytes = hand.nbytes + i * hand.step; /* of a medium block, as many are taken */
        CHECK_U64(now.live_bytes, was.live_bytes - nbytes);
        CHECK_U64(now.requested_bytes, was.requested_bytes - nbytes);
        CHECK_U64(now.live_count, was.live_count - 1);
        POOL_CHECK();
    }
    CHECK_U64(statistics_now().live_bytes, 0);
    hand_do(&hand, work_alloc); /* the same sizes, from the same regions */
    gn_memory_statistics now = statistics_now();
    CHECK_U64(now.driver_alloc_count, before.driver_alloc_count);
    CHECK_U64(now.live_bytes, before.live_bytes);
    CHECK_U64(now.live_bytes_peak, before.live_bytes_peak);
    hand_do(&hand, work_free);
    hand_end(&hand);
    pool_empty();
}

/* Until the owner takes it in, a returned block is on a list; after that its descriptor may be another's. */
static void test_second_free(void)
{
    struct hand hand;
    pool_empty();
    hand_start_with(&hand, 3);
    uint64_t refused = statistics_now().refused_count;
    char *inside = (char *)hand.blocks[1] + 4096;
    block_free(hand.blocks[0]);
    CHECK_STATUS(gn_memory_free(suite.manager, hand.blocks[0]), GN_ERROR_DOUBLE_FREE);
    CHECK_STATUS(gn_memory_free(suite.manager, inside), GN_ERROR_INVALID_POINTER);
    CHECK(strstr(gn_error_detail(), "4096 bytes into the block") != NULL);
    (void)statistics_now(); /* takes it in */
    CHECK_STATUS(gn_memory_free(suite.manager, hand.blocks[0]), GN_ERROR_DOUBLE_FREE);
    block_free(hand.blocks[1]);
    block_free(hand.blocks[2]);
    (void)statistics_now();
    for (size_t i = 0; i < hand.count; i++)
        CHECK_STATUS(gn_memory_free(suite.manager, hand.blocks[i]), GN_ERROR_DOUBLE_FREE);
    CHECK_U64(statistics_now().refused_count, refused + 6);
    gn_memory_block *handle = NULL;
    CHECK_OK(gn_memory_block_alloc(suite.manager, 2 * MIB, NULL, &handle));
    CHECK_OK(gn_memory_block_free(handle));
    CHECK_STATUS(gn_memory_block_free(handle), GN_ERROR_DOUBLE_FREE);
    hand_end(&hand);
    pool_empty();
}

/* Its blocks live on, and its memory is everybody's. */
static void test_thread_ends(void)
{
    struct hand hand;
    pool_empty();
    hand_start_with(&hand, 8);
    memset(hand.blocks[5], 7, hand.nbytes);
    hand_end(&hand);
    POOL_CHECK();
    CHECK(claim_of_address(hand.blocks[5]) == NULL && !gni_claims_exist(suite.pool));
    CHECK(block_holds(hand.blocks[5], 7, hand.nbytes));
    uint64_t count = statistics_now().driver_alloc_count;
    for (size_t i = 0; i < hand.count; i++)
        block_free(hand.blocks[i]);
    void *mine = block_make(4 * MIB);
    CHECK_U64(statistics_now().driver_alloc_count, count);
    block_free(mine);
    pool_empty();
}

/* A wholly free region goes back to the heap when much is idle. */
static void test_much_is_idle(void)
{
    struct hand hand;
    pool_empty();
    hand_start_with(&hand, HELD);
    hand_do(&hand, work_free);
    CHECK(claims_idle() > 0 && claims_idle() <= GNI_CLAIM_IDLE_MOST);
    POOL_CHECK();
    hand_do(&hand, work_alloc);
    for (size_t i = 0; i < hand.count; i++) /* by another thread: when the owner takes them in */
        block_free(hand.blocks[i]);
    void *taken[16];
    size_t count = 0;
    hand.nbytes = 8 * MIB;
    hand.count = 1;
    while (claims_have_returned() && count < COUNT_OF(taken)) { /* when nothing else fits */
        hand_do(&hand, work_alloc);
        taken[count++] = hand.blocks[0];
    }
    CHECK(count > 0 && !claims_have_returned());
    CHECK(claims_idle() <= GNI_CLAIM_IDLE_MOST);
    for (size_t i = 0; i < count; i++)
        block_free(taken[i]);
    hand_end(&hand);
    pool_empty();
}

/* A large request recycles what claims have before more is reserved than was live. */
static void test_large_requests(void)
{
    struct hand hand;
    CHECK_OK(gn_memory_reset_peaks(suite.manager));
    pool_empty();
    hand_start_with(&hand, 16);
    hand_do(&hand, work_free);
    uint64_t reserved = statistics_now().reserved_bytes;
    CHECK(reserved >= 48 * MIB);
    void *large = block_make(40 * MIB);
    CHECK(statistics_now().reserved_bytes <= reserved + reserved / 8 + 14 * MIB);
    POOL_CHECK();
    block_free(large);
    hand_end(&hand);
    pool_empty();
}

/* Limits of idle memory, and other strategies, need the lock. */
static void test_settings(void)
{
    struct hand hand;
    gn_memory_config standard = config_now();
    pool_empty();
    hand_start_with(&hand, 2);
    for (int i = 0; i < 3; i++) {
        gn_memory_config config = standard;
        if (i == 0)
            config.cache_bytes = 256 * MIB;
        else if (i == 1)
            config.strategy = GN_MEMORY_FIRST_FIT;
        else
            config.stream_cache_blocks = 0;
        CHECK_OK(gn_memory_configure(suite.manager, &config));
        CHECK(claim_of_address(hand.blocks[0]) == NULL);
        void *mine = block_make(2 * MIB);
        CHECK(claim_of_address(mine) == NULL);
        block_free(mine);
        POOL_CHECK();
        CHECK_OK(gn_memory_configure(suite.manager, &standard));
    }
    hand_do(&hand, work_free);
    hand_end(&hand);
    pool_empty();
}

/* A region with blocks of two streams is nobody's: what is freed on the one is not the other's at once. */
static void test_streams(void)
{
    gn_stream *other = stream_make(0);
    pool_empty();
    void *one = block_make_on(2 * MIB, suite.stream);
    const struct gni_claim *claim = claim_of_address(one);
    void *two = block_make_on(2 * MIB, other); /* of what the first claim has left */
    CHECK(claim != NULL && claim_of_address(one) != claim);
    POOL_CHECK();
    CHECK_OK(gn_memory_record_stream(suite.manager, one, other));
    CHECK_OK(gn_memory_record_stream(suite.manager, two, suite.stream));
    block_free(one);
    block_free(two);
    CHECK_OK(gn_memory_collect(suite.manager));
    POOL_CHECK();
    gn_stream_release(other);
    pool_empty();
}

/* A block of a claimed region that another stream uses goes back to the claim when that is done. */
static void test_recorded(void)
{
    struct hand hand;
    gn_stream *other = stream_make(0);
    pool_empty();
    hand_start_with(&hand, 2);
    CHECK_OK(gn_fill(hand.blocks[0], 1, 1, hand.nbytes, other));
    CHECK_OK(gn_memory_record_stream(suite.manager, hand.blocks[0], other));
    hand_do(&hand, work_free);
    CHECK_OK(gn_stream_synchronize(other));
    CHECK_OK(gn_memory_collect(suite.manager));
    CHECK_U64(statistics_now().pending_bytes, 0);
    POOL_CHECK();
    hand_do(&hand, work_alloc);
    hand_do(&hand, work_free);
    hand_end(&hand);
    gn_stream_release(other);
    pool_empty();
}

static void test_batches(void)
{
    size_t sizes[] = {2 * MIB, 5 * MIB, 3 * MIB, 100};
    void *blocks[COUNT_OF(sizes)];
    pool_empty();
    CHECK_OK(gn_memory_alloc_batch(suite.manager, COUNT_OF(sizes), sizes, NULL, blocks));
    CHECK(claim_of_address(blocks[0]) != NULL);
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        block_free(blocks[i]);
    uint64_t reserved = statistics_now().reserved_bytes;
    limit_set(reserved);
    sizes[2] = 4 * GIB; /* does not fit: what was taken for the others goes back to the claim */
    CHECK_STATUS(gn_memory_alloc_batch(suite.manager, COUNT_OF(sizes), sizes, NULL, blocks),
                 GN_ERROR_OUT_OF_MEMORY);
    limit_set(UINT64_MAX);
    CHECK_U64(statistics_now().live_bytes, 0);
    pool_empty();
}

/* In a child the other threads are gone, and what they had is everybody's. */
static void test_fork(void)
{
    struct hand hand;
    pool_empty();
    hand_start_with(&hand, 6);
    void *mine = block_make(2 * MIB);
    int failed = check_failures;
    pid_t child = fork();
    if (child == 0) {
        CHECK(claim_of_address(hand.blocks[0]) == NULL && claim_of_address(mine) != NULL);
        POOL_CHECK();
        for (size_t i = 0; i < hand.count; i++)
            block_free(hand.blocks[i]);
        block_free(mine);
        pool_empty();
        check_exit(check_failures == failed ? 0 : 1);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    block_free(mine);
    hand_do(&hand, work_free);
    hand_end(&hand);
    pool_empty();
}

/* ---- batches ---------------------------------------------------------------------------------- */

static const struct gni_heap *heap_of(const void *address)
{
    return gni_address_find(address)->heap;
}

static void test_depot(void)
{
    struct hand hand;
    const size_t nbytes = 64 * KIB;
    const unsigned class = gni_size_bin(nbytes);
    gn_memory_class classes[GNI_SIZE_BINS];
    size_t count = 0;
    pool_empty();
    hand_start(&hand);
    hand.count = HELD;
    hand.nbytes = nbytes;
    hand_do(&hand, work_alloc);
    const struct gni_heap *heap = heap_of(hand.blocks[0]);
    CHECK_U64(gni_depot_count(heap, class), 0);
    for (size_t i = 0; i < HELD; i++) { /* 16 fill the bin */
        block_free(hand.blocks[i]);
        gn_memory_statistics now = statistics_now();
        CHECK_U64(now.live_count, HELD - 1 - i);
        CHECK_U64(now.live_bytes, (HELD - 1 - i) * nbytes);
        CHECK_U64(gni_depot_count(heap, class), i < 16 ? 0 : i < 24 ? 8 : 16);
        POOL_CHECK();
    }
    CHECK_STATUS(gn_memory_free(suite.manager, hand.blocks[3]), GN_ERROR_DOUBLE_FREE);
    CHECK_OK(gn_memory_get_classes(suite.manager, classes, COUNT_OF(classes), &count));
    CHECK(classes[class].cached_count >= 16 + 8);
    gn_memory_statistics before = statistics_now();
    hand.count = 20;
    hand_do(&hand, work_alloc);
    gn_memory_statistics now = statistics_now();
    CHECK_U64(now.driver_alloc_count, before.driver_alloc_count);
    CHECK(now.stream_hit_count >= before.stream_hit_count + 16);
    CHECK_U64(gni_depot_count(heap, class), 0);
    POOL_CHECK();
    for (size_t i = 0; i < hand.count; i++)
        block_free(hand.blocks[i]);
    CHECK(gni_depot_count(heap, class) > 0);
    pool_empty(); /* all of it goes back */
    CHECK_U64(gni_depot_count(heap, class), 0);
    hand_end(&hand);
}

/* Batches of the smallest and of the largest class go back when all does. */
static void test_depots_of_every_class(void)
{
    static const size_t sizes[] = {1, 512 * KIB, MIB};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct hand hand;
        pool_empty();
        hand_start(&hand);
        hand.count = i == 0 ? HELD_MOST : HELD; /* a bin holds more of what is small */
        hand.nbytes = sizes[i];
        hand_do(&hand, work_alloc);
        const unsigned class = gni_size_bin(sizes[i]);
        CHECK(i != 0 || class == 0);
        CHECK(i != 2 || class == GNI_SIZE_BINS - 1);
        const struct gni_heap *heap = heap_of(hand.blocks[0]);
        for (size_t k = 0; k < hand.count; k++)
            block_free(hand.blocks[k]);
        CHECK(gni_depot_count(heap, class) > 0);
        pool_empty();
        CHECK_U64(gni_depot_count(heap, class), 0);
        hand_end(&hand);
    }
}

/* A stream that ends leaves its batches to others, and those of other streams stay where they are. */
static void test_depot_of_a_stream_that_ends(void)
{
    struct hand hand;
    const size_t nbytes = 64 * KIB;
    const unsigned class = gni_size_bin(nbytes);
    gn_stream *other = stream_make(0);
    pool_empty();
    hand_start(&hand);
    hand.count = HELD;
    hand.nbytes = nbytes;
    hand_do(&hand, work_alloc);
    const struct gni_heap *heap = heap_of(hand.blocks[0]);
    for (size_t i = 0; i < HELD; i++)
        block_free(hand.blocks[i]);
    const size_t before = gni_depot_count(heap, class);
    hand.stream = other;
    hand_do(&hand, work_alloc);
    const struct gni_heap *others = heap_of(hand.blocks[0]);
    CHECK(others != heap);
    block_free(block_make_on(nbytes, other)); /* this thread has a cache for it, too */
    for (size_t i = 0; i < HELD; i++)
        block_free(hand.blocks[i]);
    CHECK(before > 0 && gni_depot_count(others, class) > 0);
    CHECK_OK(gn_stream_synchronize(other));
    gn_stream_release(other);
    CHECK_OK(gn_memory_collect(suite.manager));
    POOL_CHECK();
    CHECK_U64(gni_depot_count(heap, class), before);
    hand_end(&hand);
    pool_empty();
}

/* A batch is found by a request of another size before the system is asked for more than it may. */
static void test_depot_is_found(void)
{
    struct hand hand;
    pool_empty();
    hand_start(&hand);
    hand.count = HELD;
    hand.nbytes = 512 * KIB;
    hand_do(&hand, work_alloc);
    const struct gni_heap *heap = heap_of(hand.blocks[0]);
    for (size_t i = 0; i < HELD; i++)
        block_free(hand.blocks[i]);
    CHECK(gni_depot_count(heap, gni_size_bin(hand.nbytes)) > 0);
    uint64_t reserved = statistics_now().reserved_bytes;
    limit_set(reserved);
    void *all = block_make(reserved / 2);
    block_free(all);
    limit_set(UINT64_MAX);
    gn_memory_config config = config_now(), limited = config;
    hand_do(&hand, work_alloc);
    limited.cache_bytes = 128 * MIB; /* looked at when blocks are freed: nothing stays apart */
    CHECK_OK(gn_memory_configure(suite.manager, &limited));
    for (size_t i = 0; i < HELD; i++)
        block_free(hand.blocks[i]);
    CHECK_U64(gni_depot_count(heap, gni_size_bin(hand.nbytes)), 0);
    CHECK_OK(gn_memory_configure(suite.manager, &config));
    hand_end(&hand);
    pool_empty();
}

/* ---- failures --------------------------------------------------------------------------------- */

static void work_try(struct hand *hand)
{
    gni_host_fail_after((long)hand->count);
    gn_status status = gn_memory_alloc(suite.manager, hand->nbytes, NULL, &hand->blocks[0]);
    gni_host_fail_after(-1);
    CHECK(status == GN_OK || status == GN_ERROR_OUT_OF_HOST_MEMORY);
    hand->count = status == GN_OK;
}

/* Without host memory for a claim, or for its descriptors, everything goes on under the lock. The threads live as
 * long as the test, so that each makes a cache. */
static void test_host_memory_fails(void)
{
    static struct hand hands[12];
    size_t claimed = 0, unclaimed = 0;
    pool_empty();
    for (size_t i = 0; i < COUNT_OF(hands); i++) {
        hand_start(&hands[i]);
        hands[i].count = i + 1;
        hands[i].nbytes = 2 * MIB;
        hand_do(&hands[i], work_try);
        POOL_CHECK();
        claimed += hands[i].count > 0 && claim_of_address(hands[i].blocks[0]) != NULL;
        unclaimed += hands[i].count > 0 && claim_of_address(hands[i].blocks[0]) == NULL;
        hand_do(&hands[i], work_free);
        pool_empty();
    }
    CHECK(claimed > 0 && unclaimed > 0);
    for (size_t i = 0; i < COUNT_OF(hands); i++)
        hand_end(&hands[i]);
}

/* ---- all at once ------------------------------------------------------------------------------ */

enum {
    THREADS = 4,
    PLACES = 64,
    SAMPLE = 64 << 10, /* bytes between those that are written and compared */
};

struct item {
    unsigned char *pointer;
    gn_memory_block *handle; /* NULL: by address */
    size_t nbytes;
    unsigned char value;
};

static _Atomic(struct item *) places[PLACES];
static atomic_bool is_over;
static atomic_ullong alloc_count, death_count;

static struct item *item_make(uint64_t *seed)
{
    struct item *item = calloc(1, sizeof *item);
    item->nbytes = check_random(seed) % 2 == 0
                       ? MIB + 1 + check_random(seed) % (7 * MIB)
                       : 1 + (check_random(seed) % MIB >> check_random(seed) % 12);
    item->value = (unsigned char)check_random(seed);
    gn_status status;
    if (check_random(seed) % 2 == 0) {
        status = gn_memory_block_alloc(suite.manager, item->nbytes, NULL, &item->handle);
        if (status == GN_OK)
            item->pointer = gn_memory_block_get_address(item->handle);
    } else {
        void *pointer = NULL;
        status = gn_memory_alloc(suite.manager, item->nbytes, NULL, &pointer);
        item->pointer = pointer;
    }
    if (status != GN_OK) {
        CHECK_STATUS(status, GN_ERROR_OUT_OF_MEMORY);
        free(item);
        return NULL;
    }
    atomic_fetch_add(&alloc_count, 1);
    for (size_t at = 0; at < item->nbytes; at += SAMPLE)
        item->pointer[at] = item->value;
    item->pointer[item->nbytes - 1] = item->value;
    return item;
}

static void item_free(struct item *item)
{
    size_t wrong = item->pointer[item->nbytes - 1] != item->value;
    for (size_t at = 0; at < item->nbytes; at += SAMPLE)
        wrong += item->pointer[at] != item->value;
    CHECK_U64(wrong, 0);
    if (item->handle != NULL)
        CHECK_OK(gn_memory_block_free(item->handle));
    else
        CHECK_OK(gn_memory_free_sized(suite.manager, item->pointer, item->nbytes));
    free(item);
}

static void *worker_body(void *argument)
{
    uint64_t seed = *(uint64_t *)argument;
    for (size_t steps = 100 + check_random(&seed) % 4000; steps > 0 && !atomic_load(&is_over);
         steps--) {
        struct item *item = check_random(&seed) % 2 == 0 ? item_make(&seed) : NULL;
        item = atomic_exchange(&places[check_random(&seed) % PLACES], item);
        if (item != NULL)
            item_free(item);
    }
    atomic_fetch_add(&death_count, 1);
    return NULL;
}

static void *worker_slot(void *argument)
{
    uint64_t seed = *(uint64_t *)argument;
    while (!atomic_load(&is_over)) {
        pthread_t thread;
        (void)check_random(&seed);
        CHECK(pthread_create(&thread, NULL, worker_body, &seed) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    return NULL;
}

static void disturb(uint64_t *seed)
{
    gn_memory_statistics now;
    gn_memory_config config = config_now();
    switch (check_random(seed) % 8) {
    case 0:
        CHECK_OK(gn_memory_trim(suite.manager, check_random(seed) % (256 * MIB), NULL));
        break;
    case 1:
        config.memory_fraction =
            check_random(seed) % 2 == 0 ? 1 : (double)(200 * MIB) / (double)suite.pool->total_bytes;
        config.cache_bytes = check_random(seed) % 4 == 0 ? 64 * MIB : SIZE_MAX;
        CHECK_OK(gn_memory_configure(suite.manager, &config));
        break;
    case 2:
        CHECK_OK(gn_memory_coalesce(suite.manager, NULL));
        break;
    case 3:
        POOL_CHECK();
        break;
    case 4: /* a thread more that takes regions, and refusals that look at all of them */
        for (int i = 0; i < 8; i++) {
            struct item *item = item_make(seed);
            if (item != NULL)
                item_free(item);
        }
        CHECK_STATUS(gn_memory_free(suite.manager, &now), GN_ERROR_INVALID_POINTER);
        break;
    default:
        now = statistics_now();
        CHECK(now.alloc_count >= now.free_count && now.live_bytes <= now.live_bytes_peak);
        CHECK(now.live_bytes <= now.reserved_bytes && now.live_count <= PLACES + 2 * THREADS);
    }
}

static double stress_seconds = 1;
static uint64_t stress_seed;

static void test_stress(void)
{
    pthread_t threads[THREADS];
    uint64_t seeds[THREADS], seed = stress_seed;
    pool_empty();
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = check_random(&seed);
        CHECK(pthread_create(&threads[i], NULL, worker_slot, &seeds[i]) == 0);
    }
    double end = seconds_now() + stress_seconds;
    while (seconds_now() < end && __atomic_load_n(&check_failures, __ATOMIC_RELAXED) == 0) {
        (void)usleep(500);
        disturb(&seed);
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < PLACES; i++) {
        struct item *item = atomic_exchange(&places[i], NULL);
        if (item != NULL)
            item_free(item);
    }
    POOL_CHECK();
    pool_empty();
    printf("%llu allocations, %llu threads, seed %llu\n", atomic_load(&alloc_count),
           atomic_load(&death_count), (unsigned long long)stress_seed);
}

/* ---- priorities ------------------------------------------------------------------------------ */

static atomic_bool is_over;

static void *idle_body(void *unused)
{
    (void)pthread_setschedparam(pthread_self(), SCHED_OTHER, &(struct sched_param){0});
    while (!atomic_load(&is_over))
        block_free(block_make(1000));
    return unused;
}

/* A thread that others must not disturb wants what is in the cache of one that has no processor then: it lets it have
 * one, or would wait for ever. */
static void test_priorities(void)
{
    enum {
        ROUNDS = 400
    };
    pthread_t thread;
    cpu_set_t all, one;
    CPU_ZERO(&one);
    CHECK(pthread_getaffinity_np(pthread_self(), sizeof all, &all) == 0);
    CPU_SET((size_t)sched_getcpu(), &one);
    if (pthread_setschedparam(pthread_self(), SCHED_FIFO,
                              &(struct sched_param){.sched_priority = 1}) != 0) {
        printf("     the system allows no priorities\n");
        return;
    }
    CHECK(pthread_setaffinity_np(pthread_self(), sizeof one, &one) == 0);
    CHECK(pthread_create(&thread, NULL, idle_body, NULL) == 0);
    (void)alarm(20); /* instead of a test that hangs */
    for (int i = 0; i < ROUNDS; i++) {
        (void)usleep(200);
        CHECK_OK(gn_memory_trim(suite.manager, 0, NULL));
    }
    (void)alarm(0);
    atomic_store(&is_over, true);
    (void)pthread_setschedparam(pthread_self(), SCHED_OTHER, &(struct sched_param){0});
    (void)pthread_setaffinity_np(pthread_self(), sizeof all, &all);
    CHECK(pthread_join(thread, NULL) == 0);
}

int main(int argc, char **argv)
{
    (void)setenv("GENESIS_LOG", "error", 0);
    if (!suite_open("cpu"))
        return CHECK_SKIPPED;
    stress_seconds = argc > 2 ? strtod(argv[2], NULL) : 1;
    stress_seed = argc > 3 ? strtoull(argv[3], NULL, 10) : (uint64_t)(seconds_now() * 1e9);
    RUN(test_host_memory_fails); /* before any thread has a claim */
    RUN(test_claimed);
    RUN(test_other_ranges);
    RUN(test_two_threads_are_apart);
    RUN(test_trim_takes_all);
    RUN(test_idle_memory_is_found);
    RUN(test_limit);
    RUN(test_returned);
    RUN(test_second_free);
    RUN(test_thread_ends);
    RUN(test_much_is_idle);
    RUN(test_large_requests);
    RUN(test_settings);
    RUN(test_streams);
    RUN(test_recorded);
    RUN(test_batches);
    RUN(test_fork);
    RUN(test_depot);
    RUN(test_depot_is_found);
    RUN(test_depots_of_every_class);
    RUN(test_depot_of_a_stream_that_ends);
    RUN(test_priorities);
    RUN(test_stress);
    return check_result();
}
