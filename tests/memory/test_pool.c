/*
 * test_pool.c: what the pool does beyond allocate and free: handles, batches, warm-up, giving back,
 * looking, out of memory, page-locked memory, and the order between streams.
 *
 *     test_pool [cpu | cuda]
 */
#include "pool_suite.h"

#include "genesis/history.h"

#include <pthread.h>
#include <unistd.h>

struct suite suite;

/* ---- blocks --------------------------------------------------------------------------------- */

static void test_zero_bytes(void)
{
    enum {
        COUNT = 300
    };
    void *pointers[COUNT];
    for (int i = 0; i < COUNT; i++) {
        size_t nbytes = 1;
        pointers[i] = block_make(0);
        CHECK((uintptr_t)pointers[i] % 512 == 0);
        CHECK(i == 0 || pointers[i] != pointers[i - 1]);
        CHECK_OK(gn_memory_get_size(suite.manager, pointers[i], &nbytes));
        CHECK_U64(nbytes, 0);
    }
    CHECK_U64(statistics_now().requested_bytes, 0);
    CHECK_U64(statistics_now().live_bytes, COUNT * 512);
    POOL_CHECK();
    for (int i = 0; i < COUNT; i++)
        CHECK_OK(gn_memory_free_sized(suite.manager, pointers[i], 0));
    pool_empty();
}

static void test_handles(void)
{
    gn_memory_block *blocks[4] = {NULL};
    static const size_t sizes[] = {0, 5000, 3 * MIB, 20 * MIB};
    gn_memory_statistics before = statistics_now();
    for (size_t i = 0; i < 4; i++) {
        CHECK_OK(gn_memory_block_alloc(suite.manager, sizes[i], NULL, &blocks[i]));
        CHECK_U64(gn_memory_block_get_size(blocks[i]), sizes[i]);
        CHECK(!gni_block_has(blocks[i], GNI_BLOCK_EXPORTED));
    }
    size_t nbytes = 0;
    void *address = gn_memory_block_get_address(blocks[1]);
    CHECK(gni_block_has(blocks[1], GNI_BLOCK_EXPORTED) ==
          (blocks[1]->pool->backing == GNI_BACKING_VIRTUAL)); /* others never fold */
    CHECK_OK(gn_memory_get_size(suite.manager, address, &nbytes));
    CHECK_U64(nbytes, 5000);
    block_fill(address, 7, 5000, suite.stream);
    CHECK(block_holds(address, 7, 5000));
    POOL_CHECK();
    for (size_t i = 0; i < 4; i++)
        CHECK_OK(gn_memory_block_free(blocks[i]));
    CHECK_U64(statistics_now().alloc_count, before.alloc_count + 4);
    CHECK_U64(statistics_now().live_bytes, before.live_bytes);
    CHECK_STATUS(gn_memory_block_free(NULL), GN_ERROR_INVALID_VALUE);
    POOL_CHECK();
    pool_empty();
}

/* A handle that was freed is refused, also when its memory was merged with others meanwhile. */
static void test_handles_freed_twice(void)
{
    gn_memory_block *blocks[3] = {NULL}, *kept = NULL;
    CHECK_OK(gn_memory_block_alloc(suite.manager, 100, NULL, &kept)); /* BL4: a region stays */
    for (size_t i = 0; i < 3; i++)
        CHECK_OK(gn_memory_block_alloc(suite.manager, (size_t)5000 << (8 * i), NULL, &blocks[i]));
    for (size_t i = 0; i < 3; i++)
        CHECK_OK(gn_memory_block_free(blocks[i]));
    uint64_t refused = statistics_now().refused_count;
    for (size_t i = 0; i < 3; i++)
        CHECK_STATUS(gn_memory_block_free(blocks[i]), GN_ERROR_DOUBLE_FREE);
    CHECK_OK(gn_memory_coalesce(suite.manager, NULL));
    for (size_t i = 0; i < 3; i++)
        CHECK_STATUS(gn_memory_block_free(blocks[i]), GN_ERROR_DOUBLE_FREE);
    CHECK_OK(gn_memory_trim(suite.manager, 0, NULL));
    for (size_t i = 0; i < 3; i++)
        CHECK_STATUS(gn_memory_block_free(blocks[i]), GN_ERROR_DOUBLE_FREE);
    CHECK(statistics_now().refused_count >= refused + 3);
    CHECK_U64(statistics_now().live_count, 1);
    CHECK_OK(gn_memory_block_free(kept));
    pool_empty();
}

/* To ask for the size of what is no block is no refused free. */
static void test_asking_is_no_refusal(void)
{
    size_t nbytes = 1;
    void *block = block_make(100);
    uint64_t refused = statistics_now().refused_count;
    CHECK_STATUS(gn_memory_get_size(suite.manager, (char *)block + 1, &nbytes),
                 GN_ERROR_INVALID_POINTER);
    CHECK_STATUS(gn_memory_record_stream(suite.manager, &nbytes, suite.stream),
                 GN_ERROR_INVALID_POINTER);
    block_free(block);
    CHECK_STATUS(gn_memory_get_size(suite.manager, block, &nbytes), GN_ERROR_DOUBLE_FREE);
    CHECK_U64(statistics_now().refused_count, refused);
    CHECK_U64(nbytes, 1);
    CHECK_STATUS(gn_memory_free(suite.manager, NULL), GN_ERROR_INVALID_POINTER); /* never a block */
    CHECK_U64(statistics_now().refused_count, refused + 1);
}

/* ---- many, and ahead of time ---------------------------------------------------------------- */

static void test_batch(void)
{
    enum {
        COUNT = 100
    };
    void *pointers[COUNT];
    size_t sizes[COUNT];
    pool_empty();
    for (size_t i = 0; i < COUNT; i++)
        sizes[i] = i % 25 == 24 ? 2 * MIB + i : 300 * i;
    gn_memory_statistics before = statistics_now();
    CHECK_OK(gn_memory_alloc_batch(suite.manager, COUNT, sizes, NULL, pointers));
    CHECK_U64(statistics_now().alloc_count, before.alloc_count + COUNT);
    POOL_CHECK();
    for (size_t i = 0; i < COUNT; i++) {
        size_t nbytes = 0;
        CHECK_OK(gn_memory_get_size(suite.manager, pointers[i], &nbytes));
        CHECK_U64(nbytes, sizes[i]);
        block_fill(pointers[i], (unsigned char)i, sizes[i], suite.stream);
    }
    for (size_t i = 0; i < COUNT; i++)
        CHECK(block_holds(pointers[i], (unsigned char)i, sizes[i]));
    for (size_t i = 0; i < COUNT; i++)
        CHECK_OK(gn_memory_free_sized(suite.manager, pointers[i], sizes[i]));
    pool_empty();
}

/* From an empty pool they come side by side, in their order. */
static void test_batch_is_near(void)
{
    void *pointers[64];
    size_t sizes[64];
    pool_empty();
    for (size_t i = 0; i < 64; i++)
        sizes[i] = 4096;
    CHECK_OK(gn_memory_alloc_batch(suite.manager, 64, sizes, NULL, pointers));
    char *lowest = pointers[0], *highest = pointers[0];
    for (size_t i = 0; i < 64; i++) {
        char *pointer = pointers[i];
        lowest = pointer < lowest ? pointer : lowest;
        highest = pointer > highest ? pointer : highest;
    }
    CHECK((size_t)(highest - lowest) < MIB);
    for (size_t i = 0; i < 64; i++)
        block_free(pointers[i]);
    pool_empty();
}

static void test_batch_is_all_or_nothing(void)
{
    void *pointers[3] = {&suite, &suite, &suite};
    const size_t absurd[] = {1000, 3 * MIB, SIZE_MAX};
    const size_t too_many[] = {1000, 3 * MIB, (size_t)1 << 46};
    const size_t overflow[] = {PTRDIFF_MAX / 2, PTRDIFF_MAX / 2, PTRDIFF_MAX / 2};
    gn_memory_statistics before = statistics_now();
    CHECK_STATUS(gn_memory_alloc_batch(suite.manager, 3, absurd, NULL, pointers),
                 GN_ERROR_OVERFLOW);
    CHECK_STATUS(gn_memory_alloc_batch(suite.manager, 3, overflow, NULL, pointers),
                 GN_ERROR_OVERFLOW);
    CHECK_STATUS(gn_memory_alloc_batch(suite.manager, 3, too_many, NULL, pointers),
                 GN_ERROR_OUT_OF_MEMORY);
    CHECK_STATUS(gn_memory_alloc_batch(suite.manager, 3, NULL, NULL, pointers),
                 GN_ERROR_INVALID_VALUE);
    CHECK_OK(gn_memory_alloc_batch(suite.manager, 0, NULL, NULL, NULL));
    for (int i = 0; i < 3; i++)
        CHECK(pointers[i] == &suite);
    gn_memory_statistics after = statistics_now();
    CHECK_U64(after.live_count, before.live_count);
    CHECK_U64(after.live_bytes, before.live_bytes);
    CHECK_U64(after.out_of_memory_count, before.out_of_memory_count + 1);
    POOL_CHECK();
    pool_empty();
}

struct warm {
    size_t sizes[6], counts[6];
};

static const struct warm warm = {
    .sizes = {100, 4096, 70000, MIB, 3 * MIB, 20 * MIB},
    .counts = {100, 50, 20, 10, 4, 2},
};

/* Takes all that was warmed up, on a stream, and gives it back. */
static void *warm_take(void *stream)
{
    void *pointers[200];
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(warm.sizes); i++)
        for (size_t j = 0; j < warm.counts[i]; j++)
            pointers[count++] = block_make_on(warm.sizes[i], stream);
    while (count > 0)
        block_free(pointers[--count]);
    return NULL;
}

static void test_warm_up(void)
{
    pool_empty();
    CHECK_OK(gn_memory_warm_up(suite.manager, COUNT_OF(warm.sizes), warm.sizes, warm.counts));
    POOL_CHECK();
    gn_memory_statistics before = statistics_now();
    long calls = driver_calls();
    CHECK_U64(before.live_count, 0);
    CHECK(before.cached_bytes >= 56 * MIB);
    gn_stream *stream = stream_make(GN_STREAM_NON_BLOCKING);
    (void)warm_take(stream);
    CHECK_OK(gn_memory_coalesce(suite.manager, NULL));
    CHECK_OK(gn_memory_collect(suite.manager)); /* records events, */
    CHECK_OK(gn_stream_synchronize(stream));
    CHECK_OK(gn_memory_collect(suite.manager)); /* and takes in that they are done */
    pthread_t thread;                           /* for every thread, and every stream */
    CHECK(pthread_create(&thread, NULL, warm_take, suite.stream) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    gn_memory_statistics after = statistics_now();
    CHECK_U64(after.miss_count, before.miss_count);
    CHECK_U64(after.driver_alloc_count, before.driver_alloc_count);
    CHECK_U64(after.reserved_bytes, before.reserved_bytes);
    CHECK_U64(driver_calls(), calls);
    gn_stream_release(stream);
    const size_t too_large[] = {(size_t)1 << 46}, once[] = {1}, many[] = {SIZE_MAX};
    CHECK_STATUS(gn_memory_warm_up(suite.manager, 1, too_large, once), GN_ERROR_OUT_OF_MEMORY);
    CHECK_STATUS(gn_memory_warm_up(suite.manager, 1, too_large, many), GN_ERROR_OVERFLOW);
    CHECK_OK(gn_memory_warm_up(suite.manager, 0, NULL, NULL));
    POOL_CHECK();
    pool_empty();
}

/* ---- a training loop ------------------------------------------------------------------------ */

enum {
    LAYERS = 12,
    STEPS_FIRST = 10,
    STEPS = 1000,
};

/* A step: activations forward, gradients backward, work buffers between, a copy on another stream. */
static void training_step(gn_stream *side, const size_t *sizes)
{
    void *activations[LAYERS], *gradients[LAYERS];
    for (int i = 0; i < LAYERS; i++) {
        activations[i] = block_make(sizes[i]);
        void *work = block_make(sizes[i] / 3);
        block_free(work);
    }
    for (int i = LAYERS - 1; i >= 0; i--) {
        gradients[i] = block_make(sizes[i]);
        block_free(activations[i]);
    }
    for (int i = 0; i < LAYERS; i++) {
        if (i % 4 == 0)
            CHECK_OK(gn_memory_record_stream(suite.manager, gradients[i], side));
        block_free(gradients[i]);
    }
    CHECK_OK(gn_stream_synchronize(side)); /* the loss is read */
}

/* Idle memory of a large block serves medium ones, each of a size that is asked for the first time. */
static void test_idle_memory_serves_others(void)
{
    enum {
        COUNT = 12
    };
    void *large = block_make(64 * MIB), *blocks[COUNT];
    block_free(large);
    long calls = driver_calls();
    uint64_t reserved = statistics_now().reserved_bytes;
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = block_make(MIB + 512 + i * 300 * KIB);
        block_fill(blocks[i], (unsigned char)i, MIB, suite.stream);
        POOL_CHECK();
    }
    if (suite.is_virtual) {
        CHECK_U64(driver_calls(), calls);
        CHECK_U64(statistics_now().reserved_bytes, reserved);
    }
    for (size_t i = 0; i < COUNT; i++)
        CHECK(block_holds(blocks[i], (unsigned char)i, MIB));
    for (size_t i = 0; i < COUNT; i += 2)
        block_free(blocks[i]);
    large = block_make(30 * MIB); /* what is left serves large ones, too */
    for (size_t i = 1; i < COUNT; i += 2)
        CHECK(block_holds(blocks[i], (unsigned char)i, MIB));
    block_free(large);
    for (size_t i = 1; i < COUNT; i += 2)
        block_free(blocks[i]);
    pool_empty();
    findings_check();
}

/* As a last resort also where memory is scarce: pieces of a large block, each with one that lives. */
static void test_last_idle_memory_serves_others(void)
{
    enum {
        COUNT = 6
    };
    void *blocks[COUNT], *medium = NULL;
    pool_empty();
    limit_set(62 * MIB);
    block_free(block_make(60 * MIB));
    for (size_t i = 0; i < COUNT; i++)
        blocks[i] = block_make(9 * MIB + 512 * KIB);
    for (size_t i = 0; i < COUNT; i += 2)
        block_free(blocks[i]);
    gn_status status = gn_memory_alloc(suite.manager, 3 * MIB, NULL, &medium);
    if (suite.is_virtual) {
        CHECK_OK(status);
        POOL_CHECK();
    }
    if (status == GN_OK)
        block_free(medium);
    for (size_t i = 1; i < COUNT; i += 2)
        block_free(blocks[i]);
    limit_set(UINT64_MAX);
    pool_empty();
}

static void test_training_needs_no_driver(void)
{
    size_t sizes[LAYERS];
    uint64_t seed = 5;
    for (int i = 0; i < LAYERS; i++)
        sizes[i] = (size_t)(check_random(&seed) % (16 * MIB)) >> (check_random(&seed) % 12);
    gn_stream *side = stream_make(0);
    void *weights = block_make(30 * MIB);
    for (int step = 0; step < STEPS_FIRST; step++)
        training_step(side, sizes);
    gn_memory_statistics before = statistics_now();
    long calls = driver_calls();
    for (int step = 0; step < STEPS; step++)
        training_step(side, sizes);
    gn_memory_statistics after = statistics_now();
    CHECK_U64(driver_calls(), calls);
    CHECK_U64(after.driver_alloc_count, before.driver_alloc_count);
    CHECK_U64(after.driver_free_count, before.driver_free_count);
    CHECK_U64(after.miss_count, before.miss_count);
    CHECK(after.stream_hit_count - before.stream_hit_count > (uint64_t)STEPS * LAYERS * 2);
    block_free(weights);
    gn_stream_release(side);
    POOL_CHECK();
    pool_empty();
}

/* A request that no slot of the thread's cache meets empties the slots that got no block since the one before it; not the
 * one that was used just now. */
static void test_growth_keeps_cached_blocks(void)
{
    void *weights =
        block_make(192 * MIB); /* the growth is within the bound, and recycles nothing */
    for (int i = 0; i < 3; i++)
        block_free(block_make(16 * MIB)); /* the size earns a slot, which keeps the block */
    gn_memory_statistics before = statistics_now();
    void *grown = block_make(20 * MIB);
    void *block = block_make(16 * MIB);
    gn_memory_statistics after = statistics_now();
    CHECK_U64(after.miss_count, before.miss_count + 1);
    CHECK_U64(after.stream_hit_count, before.stream_hit_count + 1);
    CHECK_U64(after.global_hit_count, before.global_hit_count);
    block_free(block);
    block_free(grown);
    block_free(weights);
    POOL_CHECK();
    pool_empty();
}

/* ---- giving back ---------------------------------------------------------------------------- */

/* Sequences of another length at each step. The part of what was live that was reserved beyond it. */
static double changing_lengths_run(uint64_t seed)
{
    enum {
        BLOCKS = 8,
        STEPS_CHANGING = 200
    };
    CHECK_OK(gn_memory_reset_peaks(suite.manager));
    pool_empty();
    for (int step = 0; step < STEPS_CHANGING; step++) {
        size_t length = 350 + (size_t)(check_random(&seed) % 512);
        void *kept[BLOCKS][3];
        for (int i = 0; i < BLOCKS; i++) {
            for (int k = 0; k < 3; k++)
                kept[i][k] = block_make(length * 24 * KIB + (size_t)k * length * 12 * KIB);
            block_free(block_make(length * 30 * KIB));
        }
        for (int i = BLOCKS - 1; i >= 0; i--) {
            void *gradient = block_make(length * 24 * KIB);
            for (int k = 0; k < 3; k++)
                block_free(kept[i][k]);
            block_free(gradient);
        }
    }
    gn_memory_statistics now = statistics_now();
    return (double)now.reserved_bytes_peak / (double)now.live_bytes_peak - 1;
}

/* Sizes that do not come again must not keep memory apart. How well blocks fit depends on the lengths: on average, at most
 * 1/32 more is reserved than is live. */
static void test_changing_lengths(void)
{
    enum {
        SEEDS = 8
    };
    double sum = 0, most = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        double part = changing_lengths_run(seed);
        sum += part;
        most = part > most ? part : most;
    }
    printf("     changing lengths: %.3f of what was live is reserved, %.3f at most\n",
           1 + sum / SEEDS, 1 + most);
    if (suite.is_virtual)
        CHECK(sum <= SEEDS / 32.0 && most <= 1 / 24.0);
    POOL_CHECK();
    pool_empty();
}

/* A model of equal layers, and sequences of changing length. Memory that is recycled in each layer of a step for the same
 * requests is no reason to keep more. */
static void test_layers(void)
{
    enum {
        DEPTH = 8,
        KINDS = 5
    };
    static const size_t lengths[] = {620, 1491, 700, 1100, 1491, 800, 1491, 300, 1400};
    static const size_t sizes[KINDS] = {8, 8, 11, 22, 8};
    void *kept[DEPTH][KINDS], *gradients[DEPTH] = {NULL};
    CHECK_OK(gn_memory_reset_peaks(suite.manager));
    pool_empty();
    for (size_t step = 0; step < sizeof lengths / sizeof *lengths; step++) {
        size_t unit = lengths[step] * KIB;
        for (int i = 0; i < DEPTH; i++)
            for (int k = 0; k < KINDS; k++) {
                kept[i][k] = block_make(sizes[k] * unit);
                block_free(block_make((sizes[k] + 3) * unit));
            }
        for (int i = 0; i < DEPTH && gradients[i] != NULL; i++)
            block_free(gradients[i]);
        for (int i = DEPTH - 1; i >= 0; i--) {
            void *from_above = block_make(22 * unit);
            for (int k = KINDS - 1; k >= 0; k--) {
                void *below = block_make(sizes[k] * unit);
                block_free(kept[i][k]);
                block_free(below);
            }
            gradients[i] = block_make(8 * MIB);
            block_free(from_above);
        }
    }
    gn_memory_statistics now = statistics_now();
    printf("     layers: %.3f of what was live is reserved, %llu driver allocations\n",
           (double)now.reserved_bytes_peak / (double)now.live_bytes_peak,
           (unsigned long long)now.driver_alloc_count);
    if (suite.is_virtual)
        CHECK(now.reserved_bytes_peak <= now.live_bytes_peak + now.live_bytes_peak / 8);
    for (int i = 0; i < DEPTH; i++)
        block_free(gradients[i]);
    POOL_CHECK();
    pool_empty();
}

static void *large_take_and_give(void *pointer)
{
    (void)pointer;
    block_free(block_make(700 * MIB));
    return NULL;
}

/* What one thread has freed and keeps serves another one before more is reserved. */
static void test_idle_memory_of_another_thread(void)
{
    enum {
        COUNT = 20
    };
    void *blocks[COUNT];
    CHECK_OK(gn_memory_reset_peaks(suite.manager));
    pool_empty();
    for (int i = 0; i < COUNT; i++)
        blocks[i] = block_make(12 * MIB);
    block_free(block_make(500 * MIB));
    for (int i = 0; i < COUNT; i++)
        block_free(blocks[i]);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, large_take_and_give, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    gn_memory_statistics now = statistics_now();
    if (suite.is_virtual)
        CHECK(now.reserved_bytes_peak <= now.live_bytes_peak + now.live_bytes_peak / 44 + 16 * MIB);
    POOL_CHECK();
    pool_empty();
}

/* A program that resets the peaks in each step, to print them, keeps the idle memory that the next step needs. */
static void test_peaks_are_reset(void)
{
    enum {
        PAIRS = 10
    };
    void *kept[PAIRS], *gone[PAIRS];
    CHECK_OK(gn_memory_reset_peaks(suite.manager));
    pool_empty();
    for (int i = 0; i < PAIRS; i++) {
        gone[i] = block_make(24 * MIB);
        kept[i] = block_make(36 * MIB);
    }
    for (int i = 0; i < PAIRS; i++)
        block_free(gone[i]);
    CHECK_OK(gn_memory_reset_peaks(suite.manager));
    gn_memory_statistics before = statistics_now();
    CHECK_U64(before.live_bytes_peak, before.live_bytes);
    gone[0] = block_make(26 * MIB); /* fits nowhere, and is within the bound above 600 MiB */
    CHECK_U64(statistics_now().driver_free_count, before.driver_free_count);
    block_free(gone[0]);
    for (int i = 0; i < PAIRS; i++)
        block_free(kept[i]);
    pool_empty();
}

/* Blocks of random sizes come and go, as many bytes as a limit allows; each turn is the same. */
static void random_turn(void)
{
    enum {
        ALLOCATIONS = 1500,
        LIVE_MOST = 256
    };
    static struct {
        void *pointer;
        size_t nbytes;
    } live[LIVE_MOST];
    size_t count = 0, live_bytes = 0;
    uint64_t seed = 11;
    for (int done = 0; done < ALLOCATIONS;) {
        size_t nbytes = 1 + (size_t)(check_random(&seed) % (40 * MIB));
        bool has_room = count < LIVE_MOST && live_bytes + nbytes <= 1000 * MIB;
        if (has_room && check_random(&seed) % 100 < 73) {
            live[count].pointer = block_make(nbytes);
            live[count++].nbytes = nbytes;
            live_bytes += nbytes;
            done++;
        } else if (count > 0) {
            size_t which = (size_t)(check_random(&seed) % count);
            live_bytes -= live[which].nbytes;
            block_free(live[which].pointer);
            live[which] = live[--count];
        }
    }
    while (count > 0)
        block_free(live[--count].pointer);
    POOL_CHECK();
}

/* Little is reserved beyond what was asked for, although hardly a block fits where another was; but where the same
 * sizes come again and again the driver is called less and less, and in the end not at all. */
static void test_random_sizes(void)
{
    enum {
        TURNS = 14
    };
    pool_empty();
    CHECK_OK(gn_memory_reset_peaks(suite.manager));
    random_turn();
    gn_memory_statistics now = statistics_now(), first = now, last = now;
    double lost =
        1 - (double)now.requested_bytes_peak / (double)(now.reserved_bytes_peak - 14 * MIB);
    for (int turn = 1; turn < TURNS; turn++) {
        last = statistics_now();
        random_turn();
    }
    now = statistics_now();
    uint64_t calls = now.driver_alloc_count - last.driver_alloc_count;
    uint64_t later = now.driver_alloc_count - first.driver_alloc_count;
    printf("     random sizes: %.1f %% lost, %llu driver allocations, %llu later, %llu at last\n",
           100 * lost, (unsigned long long)first.driver_alloc_count, (unsigned long long)later,
           (unsigned long long)calls);
    if (suite.is_virtual) {
        CHECK(lost <= 0.10); /* 8 %, were the memory large beside pages */
        CHECK(later <= 512);
        CHECK_U64(calls, 0);
    }
    pool_empty();
}

static void test_trim(void)
{
    void *pointers[40];
    pool_empty();
    for (size_t i = 0; i < 40; i++)
        pointers[i] = block_make(3 * MIB);
    for (size_t i = 1; i < 40; i++)
        block_free(pointers[i]);
    size_t released = 1;
    CHECK_OK(gn_memory_trim(suite.manager, SIZE_MAX, &released));
    CHECK_U64(released, 0);
    gn_memory_statistics before = statistics_now();
    CHECK(before.cached_bytes >= 39 * 3 * MIB);
    CHECK_OK(gn_memory_trim(suite.manager, 60 * MIB, &released));
    gn_memory_statistics after = statistics_now();
    CHECK_U64(released, before.reserved_bytes - after.reserved_bytes);
    if (suite.is_virtual) { /* page by page */
        CHECK(after.cached_bytes <= 60 * MIB && after.cached_bytes > 54 * MIB);
    } else { /* whole segments, of which one has a living block */
        CHECK(after.cached_bytes <= before.cached_bytes);
    }
    POOL_CHECK();
    CHECK_OK(gn_memory_trim(suite.manager, 0, NULL));
    after = statistics_now();
    CHECK(after.cached_bytes <= (suite.is_virtual ? 4 * MIB : 32 * MIB));
    CHECK_U64(after.live_count, 1);
    block_free(pointers[0]);
    pool_empty();
}

/* Work that may still use the memory is waited for. */
static void test_trim_waits(void)
{
    gn_stream *stream = stream_make(GN_STREAM_NON_BLOCKING);
    for (int round = 0; round < 3; round++) {
        void *pointer = block_make_on(30 * MIB, stream);
        for (int i = 0; i < 5; i++)
            block_fill(pointer, 1, 30 * MIB, stream);
        block_free(pointer);
        CHECK_OK(gn_memory_trim(suite.manager, 0, NULL));
        CHECK_U64(statistics_now().reserved_bytes, 0);
    }
    gn_stream_release(stream);
    findings_check();
    pool_empty();
}

static void test_coalesce(void)
{
    void *pointers[60];
    pool_empty();
    for (size_t i = 0; i < 60; i++)
        pointers[i] = block_make(1024);
    for (size_t i = 0; i < 60; i++)
        block_free(pointers[i]);
    size_t merged = 0;
    CHECK_OK(gn_memory_coalesce(suite.manager, &merged));
    CHECK(merged >= 59);
    gn_memory_statistics now = statistics_now();
    CHECK(now.largest_free_bytes >= 60 * 1024);
    POOL_CHECK();
    CHECK_OK(gn_memory_coalesce(suite.manager, &merged));
    CHECK(merged <= 1); /* the clean heap may take in one more */
    uint64_t misses = now.miss_count;
    block_free(block_make(60 * 1024)); /* as one block */
    CHECK_U64(statistics_now().miss_count, misses);
    pool_empty();
}

/* A block that another stream uses is pending until that stream has passed the free. */
static void test_collect(void)
{
    gn_stream *side = stream_make(GN_STREAM_NON_BLOCKING);
    void *block = block_make(5 * MIB);
    CHECK_OK(gn_memory_record_stream(suite.manager, block, side));
    CHECK_OK(gn_memory_record_stream(suite.manager, block, side)); /* twice is once */
    CHECK_OK(gn_memory_record_stream(suite.manager, block, suite.stream));
    block_fill(block, 3, 5 * MIB, side);
    block_free(block);
    gn_memory_statistics now = statistics_now();
    CHECK(now.pending_bytes == 5 * MIB && now.pending_count == 1 && now.event_count > 0);
    CHECK_U64(now.cached_bytes, now.reserved_bytes - now.live_bytes - now.pending_bytes);
    POOL_CHECK();
    CHECK_OK(gn_stream_synchronize(side));
    CHECK_OK(gn_memory_collect(suite.manager));
    CHECK_U64(statistics_now().pending_bytes, 0);
    POOL_CHECK();
    CHECK_STATUS(gn_memory_record_stream(suite.manager, block, side), GN_ERROR_DOUBLE_FREE);
    gn_stream_release(side);
    pool_empty();
}

static size_t heaps_count(void)
{
    size_t count = 0;
    gni_list_each (link, &suite.pool->main.heaps)
        count++;
    return count;
}

/* What lives long does not keep a heap for every stream that ever used it: with the next use, those of streams that are
 * gone and have done their work go. */
static void test_uses_of_streams_that_end(void)
{
    void *block = block_make(5 * MIB), *other = block_make(1000);
    size_t before = heaps_count();
    for (int i = 0; i < 40; i++) {
        gn_stream *side = stream_make(i % 4 < 2 ? GN_STREAM_NON_BLOCKING : 0);
        CHECK_OK(gn_memory_record_stream(suite.manager, block, side));
        CHECK_OK(gn_memory_record_stream(suite.manager, other, side));
        CHECK(heaps_count() <= before + 1); /* this stream's: the last one's is gone by now */
        if (i % 2 == 0)
            block_fill(block, 3, MIB, side);
        CHECK_OK(gn_stream_synchronize(side));
        gn_stream_release(side);
        if (!suite
                 .is_cpu) /* a GPU may do the marks of an idle stream when it likes; the CPU does them at once */
            CHECK_OK(gn_device_synchronize(suite.device));
        CHECK(heaps_count() <= before + 1);
    }
    block_free(block);
    block_free(other);
    pool_empty();
    CHECK(heaps_count() <= before);
}

/* What is pending counts as active: with what is allocated meanwhile it is above the peak of what is live. */
static void test_active_peak(void)
{
    gn_stream *side = stream_make(GN_STREAM_NON_BLOCKING);
    pool_empty();
    CHECK_OK(gn_memory_reset_peaks(suite.manager));
    void *block = block_make(5 * MIB);
    CHECK_OK(gn_memory_record_stream(suite.manager, block, side));
    block_fill(block, 3, 5 * MIB, side);
    block_free(block);
    void *others[3];
    for (int i = 0; i < 3; i++)
        others[i] = block_make(MIB);
    for (int i = 0; i < 3; i++)
        block_free(others[i]);
    gn_memory_statistics now = statistics_now();
    CHECK_U64(now.live_bytes_peak, 5 * MIB);
    CHECK_U64(now.live_count_peak, 3);
    if (now.pending_count ==
        1) { /* it was all the time; a device that works at once is done earlier */
        CHECK_U64(now.active_bytes_peak, 8 * MIB);
        CHECK_U64(now.active_count_peak, 4);
    }
    CHECK_OK(gn_stream_synchronize(side));
    CHECK_OK(gn_memory_collect(suite.manager));
    CHECK_U64(statistics_now().pending_count, 0);
    CHECK_OK(gn_memory_reset_peaks(suite.manager));
    CHECK_U64(statistics_now().active_bytes_peak, 0);
    gn_stream_release(side);
    pool_empty();
}

/* ---- out of memory -------------------------------------------------------------------------- */

struct handler {
    int calls;
    int helps_at; /* the call in which memory is freed; 0: never */
    bool answer;
    size_t asked;
    void *held;
};

static bool handler_call(gn_memory_manager *manager, size_t nbytes, void *context)
{
    struct handler *handler = context;
    handler->calls++;
    handler->asked = nbytes;
    CHECK(manager == suite.manager);
    POOL_CHECK(); /* no lock is held: everything here takes it */
    CHECK(statistics_now().live_count > 0);
    CHECK_OK(gn_memory_trim(manager, 0, NULL));
    if (handler->calls == handler->helps_at)
        block_free(handler->held);
    return handler->answer;
}

static gn_status handler_try(struct handler handler, int calls, size_t batch)
{
    void *pointers[2] = {&suite, &suite};
    const size_t sizes[] = {30 * MIB, 20 * MIB};
    handler.held = block_make(40 * MIB);
    uint64_t before = statistics_now().out_of_memory_count;
    CHECK_OK(gn_memory_set_out_of_memory_handler(suite.manager, handler_call, &handler));
    gn_status status = batch == 0
                           ? gn_memory_alloc(suite.manager, 50 * MIB, NULL, pointers)
                           : gn_memory_alloc_batch(suite.manager, batch, sizes, NULL, pointers);
    CHECK_OK(gn_memory_set_out_of_memory_handler(suite.manager, NULL, NULL));
    CHECK_U64(handler.calls, calls);
    CHECK(calls == 0 || handler.asked >= 50 * MIB);
    CHECK_U64(statistics_now().out_of_memory_count, before + (status != GN_OK));
    if (status == GN_OK) {
        for (size_t i = 0; i < 2 && pointers[i] != &suite; i++)
            block_free(pointers[i]);
    } else {
        CHECK(pointers[0] == &suite && pointers[1] == &suite);
    }
    if (handler.helps_at == 0 || handler.calls < handler.helps_at)
        block_free(handler.held);
    POOL_CHECK();
    pool_empty();
    return status;
}

static void test_handler(void)
{
    pool_empty();
    limit_set(64 * MIB);
    for (size_t batch = 0; batch <= 2; batch += 2) {
        CHECK_STATUS(handler_try((struct handler){.answer = false}, 1, batch),
                     GN_ERROR_OUT_OF_MEMORY);
        CHECK_STATUS(handler_try((struct handler){.answer = true}, 3, batch),
                     GN_ERROR_OUT_OF_MEMORY);
        CHECK_STATUS(handler_try((struct handler){.answer = true, .helps_at = 1}, 1, batch), GN_OK);
        CHECK_STATUS(handler_try((struct handler){.answer = true, .helps_at = 3}, 3, batch), GN_OK);
        CHECK_STATUS(handler_try((struct handler){.answer = false, .helps_at = 1}, 1, batch),
                     GN_ERROR_OUT_OF_MEMORY);
    }
    limit_set(UINT64_MAX);
}

/* The error says what was asked, what there is and what would help; everything goes on. */
static void test_out_of_memory(void)
{
    void *pointers[64], *extra = &suite;
    size_t count = 0;
    pool_empty();
    limit_set(64 * MIB);
    while (gn_memory_alloc(suite.manager, 5 * MIB, NULL, &pointers[count]) == GN_OK)
        count++;
    CHECK(count == 12);
    CHECK_DETAIL("out of memory");
    CHECK_DETAIL("5.00 MiB were asked for");
    CHECK_DETAIL("memory fraction");
    CHECK(statistics_now().retry_count > 0);
    CHECK_STATUS(gn_memory_alloc(suite.manager, 20 * MIB, NULL, &extra), GN_ERROR_OUT_OF_MEMORY);
    CHECK(extra == &suite);
    CHECK_STATUS(gn_memory_alloc(suite.manager, (size_t)1 << 46, NULL, &extra),
                 GN_ERROR_OUT_OF_MEMORY);
    gni_list_each (link, &suite.pool->main.regions) { /* no addresses are reserved for nothing */
        const struct gni_region *region = gni_container_of(link, struct gni_region, link);
        CHECK(region->nbytes <= suite.pool->total_bytes + GNI_PAGE);
    }
    POOL_CHECK();
    for (size_t i = 0; i < count; i += 2) /* every other one: pieces that are too small */
        block_free(pointers[i]);
    CHECK_OK(gn_memory_alloc(suite.manager, 4 * MIB, NULL, &extra));
    block_free(extra);
    for (size_t i = 1; i < count; i += 2)
        block_free(pointers[i]);
    CHECK_OK(gn_memory_alloc(suite.manager, 60 * MIB, NULL, &extra)); /* in one piece again */
    block_free(extra);
    limit_set(UINT64_MAX);
    pool_empty();
}

/* Free memory of one segment or page that belongs to two streams holds nothing up. */
static void test_recovery_joins_streams(void)
{
    gn_stream *first = stream_make(GN_STREAM_NON_BLOCKING), *second = stream_make(0);
    pool_empty();
    limit_set(12 * MIB);
    for (int round = 0; round < 3; round++) {
        block_free(block_make_on(3 * MIB, first));
        CHECK_OK(gn_memory_coalesce(suite.manager, NULL));
        CHECK_OK(gn_memory_collect(suite.manager));
        CHECK_OK(gn_device_synchronize(suite.device));
        block_free(block_make_on(3 * MIB, second));
        block_free(block_make_on(9 * MIB, second));
        POOL_CHECK();
        block_free(block_make_on(3 * MIB, second));
    }
    gn_stream_release(first);
    gn_stream_release(second);
    limit_set(UINT64_MAX);
    pool_empty();
}

/* ---- streams -------------------------------------------------------------------------------- */

static uint64_t heap_key_of(const void *pointer)
{
    return gni_address_find(pointer)->heap->key;
}

/* A thread whose first call is the free of another stream's block: what it then asks for is its own. */
static void *free_and_alloc(void *pointer)
{
    uint64_t id = 0;
    CHECK_OK(gn_stream_get_id(suite.stream, &id));
    block_free(pointer);
    void *own = block_make(1000);
    CHECK_U64(heap_key_of(own), id);
    block_free(own);
    return NULL;
}

static void test_free_in_a_fresh_thread(void)
{
    gn_stream *stream = stream_make(GN_STREAM_NON_BLOCKING);
    for (int round = 0; round < 3; round++) {
        pthread_t thread;
        void *pointer = block_make_on(1000, stream);
        CHECK(pthread_create(&thread, NULL, free_and_alloc, pointer) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    gn_stream_release(stream);
    POOL_CHECK();
    pool_empty();
}

/* The current stream decides for NULL, and a change of it is noticed. */
static void test_current_stream(void)
{
    gn_stream *streams[2] = {stream_make(0), stream_make(GN_STREAM_NON_BLOCKING)};
    uint64_t ids[2];
    for (int i = 0; i < 2; i++)
        CHECK_OK(gn_stream_get_id(streams[i], &ids[i]));
    for (int round = 0; round < 20; round++) {
        CHECK_OK(gn_stream_set_current(streams[round % 2]));
        void *pointer = block_make(2000);
        CHECK_U64(heap_key_of(pointer), ids[round % 2]);
        void *other = block_make_on(2000, streams[1 - round % 2]);
        CHECK_U64(heap_key_of(other), ids[1 - round % 2]);
        block_free(other);
        block_free(pointer);
    }
    CHECK_OK(gn_stream_set_current(suite.stream));
    gn_stream_release(streams[0]);
    gn_stream_release(streams[1]);
    POOL_CHECK();
    pool_empty();
}

/* Blocks wander between streams with work queued on them; the simulator finds what is not ordered. */
static void test_streams_share(void)
{
    enum {
        STREAMS = 4,
        HELD = 24,
        STREAM_STEPS = 2000
    };
    gn_stream *streams[STREAMS];
    struct {
        void *pointer;
        size_t nbytes;
        gn_stream *stream;
    } held[HELD] = {{NULL, 0, NULL}};
    uint64_t seed = 11;
    pool_empty();
    limit_set(48 * MIB);
    for (int i = 0; i < STREAMS; i++)
        streams[i] = stream_make(i % 2 ? GN_STREAM_NON_BLOCKING : 0);
    for (int step = 0; step < STREAM_STEPS; step++) {
        size_t i = check_random(&seed) % HELD;
        if (held[i].pointer != NULL) {
            if (check_random(&seed) % 4 == 0) {
                gn_stream *other = streams[check_random(&seed) % STREAMS];
                CHECK_OK(gn_memory_record_stream(suite.manager, held[i].pointer, other));
            }
            block_free(held[i].pointer);
            held[i].pointer = NULL;
        }
        if (step % 97 == 0) { /* a stream ends, with work on blocks that it leaves */
            size_t gone = check_random(&seed) % STREAMS;
            gn_stream *before = streams[gone];
            streams[gone] = stream_make(GN_STREAM_NON_BLOCKING);
            for (size_t j = 0; j < HELD; j++)
                if (held[j].pointer != NULL && held[j].stream == before)
                    held[j].stream = NULL;
            gn_stream_release(before);
        }
        held[i].stream = streams[check_random(&seed) % STREAMS];
        held[i].nbytes = (size_t)(check_random(&seed) % (6 * MIB)) >> (check_random(&seed) % 10);
        gn_status status =
            gn_memory_alloc(suite.manager, held[i].nbytes, held[i].stream, &held[i].pointer);
        CHECK(status == GN_OK || status == GN_ERROR_OUT_OF_MEMORY);
        if (status == GN_OK)
            block_fill(held[i].pointer, (unsigned char)i, held[i].nbytes, held[i].stream);
        if (step % 50 == 0)
            POOL_CHECK();
    }
    for (size_t i = 0; i < HELD; i++)
        if (held[i].pointer != NULL)
            block_free(held[i].pointer);
    for (int i = 0; i < STREAMS; i++)
        gn_stream_release(streams[i]);
    findings_check();
    limit_set(UINT64_MAX);
    pool_empty();
}

/* ---- page-locked memory --------------------------------------------------------------------- */

static void test_pinned(void)
{
    gn_memory_manager *pinned = NULL;
    CHECK_OK(gn_memory_manager_get_pinned(suite.device, &pinned));
    if (suite.is_cpu) {
        CHECK(pinned == suite.manager);
        return;
    }
    CHECK(pinned != suite.manager && gn_memory_manager_get_device(pinned) == suite.device);
    CHECK_TEXT(gn_memory_manager_get_policy(pinned), "pool");
    static const size_t sizes[] = {1, 5000, 2 * MIB + 1, 33 * MIB};
    unsigned char *pointers[4];
    void *device = block_make(33 * MIB);
    for (size_t i = 0; i < 4; i++) {
        void *pointer = NULL;
        CHECK_OK(gn_memory_alloc(pinned, sizes[i], NULL, &pointer));
        pointers[i] = pointer;
        memset(pointer, (int)i + 1, sizes[i]); /* the host's, too */
        CHECK_OK(gn_copy(device, pointer, sizes[i], suite.stream));
        CHECK_OK(gn_stream_synchronize(suite.stream));
        CHECK(block_holds(device, (unsigned char)(i + 1), sizes[i]));
    }
    gn_memory_statistics now;
    CHECK_OK(gn_memory_get_statistics(pinned, &now));
    CHECK(now.requested_bytes == sizes[0] + sizes[1] + sizes[2] + sizes[3]);
    /* No doubling: a page more for what is large, a segment for what is small and medium. */
    CHECK(now.live_bytes <= now.requested_bytes + 3 * MIB);
    CHECK(now.reserved_bytes <= 36 * MIB + 18 * MIB + 4 * MIB);
    CHECK(gni_pool_is_valid(pinned->pool));
    for (size_t i = 0; i < 4; i++)
        CHECK_OK(gn_memory_free(pinned, pointers[i]));
    CHECK_STATUS(gn_memory_free(pinned, device), GN_ERROR_INVALID_POINTER);
    block_free(device);
    CHECK_OK(gn_memory_trim(pinned, 0, NULL));
    CHECK_OK(gn_memory_get_statistics(pinned, &now));
    CHECK_U64(now.reserved_bytes, 0);
    pool_empty();
}

/* Everything alive is gone, and the pool begins again. */
/* Every manager that was used is met once, each behind the one before. */
static void test_walk_of_managers(void)
{
    gn_memory_manager *pinned, *at = NULL;
    int met = 0, met_pinned = 0, count = 0;
    CHECK_OK(gn_memory_manager_get_pinned(suite.device, &pinned));
    while ((at = gn_memory_manager_next(at)) != NULL && count++ < 1000) {
        met += at == suite.manager;
        met_pinned += at == pinned;
        CHECK(gn_memory_manager_is_pinned(at) == (at == pinned && !suite.is_cpu));
    }
    CHECK(met == 1 && met_pinned == 1 && count < 10);
}

static void test_clear(void)
{
    for (int round = 0; round < 3; round++) {
        void *pointers[30];
        size_t leaked = 0;
        for (size_t i = 0; i < 30; i++)
            pointers[i] = block_make(i % 3 == 0 ? 9 * MIB : (size_t)70000 << (i % 3));
        block_free(pointers[7]);
        CHECK_OK(gn_shutdown(&leaked));
        CHECK_U64(leaked, 29);
        POOL_CHECK();
        gn_memory_statistics now = statistics_now();
        CHECK(now.live_count == 0 && now.live_bytes == 0 && now.requested_bytes == 0);
        CHECK_U64(now.reserved_bytes, 0);
        int remembered = 0; /* but for those whose place another one has taken */
        for (size_t i = 0; i < 30; i++)
            remembered += gn_memory_free(suite.manager, pointers[i]) == GN_ERROR_DOUBLE_FREE;
        CHECK(remembered >= 25);
    }
}

/* ---- every way in --------------------------------------------------------------------------- */

/* By address, by address and size, by handle, as a tensor: each has fast and slow paths of its own, and others of
 * those where something is recorded or the system has no barrier. */
enum {
    WAY_POINTER,
    WAY_SIZED,
    WAY_BLOCK,
    WAY_TENSOR,
    WAY_COUNT,
};

static gn_status way_alloc(int way, size_t nbytes, gn_stream *stream, void **out)
{
    if (way == WAY_POINTER || way == WAY_SIZED)
        return gn_memory_alloc(suite.manager, nbytes, stream, out);
    gn_memory_block *block = NULL;
    gn_status status = way == WAY_BLOCK
                           ? gn_memory_block_alloc(suite.manager, nbytes, stream, &block)
                           : gni_memory_alloc_tensor(suite.manager, nbytes, stream, &block);
    if (status == GN_OK)
        *out = block;
    return status;
}

static gn_status way_free(int way, void *what, size_t nbytes)
{
    if (way == WAY_POINTER)
        return gn_memory_free(suite.manager, what);
    if (way == WAY_SIZED)
        return gn_memory_free_sized(suite.manager, what, nbytes);
    return gn_memory_block_free(what);
}

static unsigned char *way_bytes(int way, void *what)
{
    return way < WAY_BLOCK ? what : gn_memory_block_peek_address(what);
}

struct held {
    void *what;
    size_t nbytes;
    unsigned char value;
};

static void held_drop(int way, struct held *held)
{
    const unsigned char *bytes = way_bytes(way, held->what);
    if (suite.is_cpu && held->nbytes > 0)
        CHECK(bytes[0] == held->value && bytes[held->nbytes - 1] == held->value);
    CHECK_OK(way_free(way, held->what, held->nbytes));
    held->what = NULL;
}

/* A random program over a few sizes again and again; what is live is what the program has. */
static void way_walk(int way, gn_stream *stream)
{
    enum {
        HELD = 24,
        WALKED = 600
    };
    static const size_t sizes[] = {0,       1,         512,     513,       3000,
                                   4096,    100 * KIB, MIB,     MIB + 1,   3 * MIB,
                                   3 * MIB, 3 * MIB,   5 * MIB, 600 * KIB, 20 * MIB};
    struct held held[HELD] = {{NULL, 0, 0}};
    uint64_t seed = (uint64_t)way + 1, live = 0, before = statistics_now().requested_bytes;
    for (int step = 0; step < WALKED; step++) {
        struct held *one = &held[check_random(&seed) % HELD];
        if (one->what != NULL) {
            live -= one->nbytes;
            held_drop(way, one);
            continue;
        }
        one->nbytes = sizes[check_random(&seed) % COUNT_OF(sizes)];
        one->value = (unsigned char)step;
        CHECK_OK(way_alloc(way, one->nbytes, stream, &one->what));
        live += one->nbytes;
        if (suite.is_cpu && one->nbytes > 0) {
            way_bytes(way, one->what)[0] = one->value;
            way_bytes(way, one->what)[one->nbytes - 1] = one->value;
        }
        if (step % 50 == 0)
            CHECK_U64(statistics_now().requested_bytes, before + live);
        if (step % 100 == 99)
            CHECK_OK(gn_memory_reset_peaks(suite.manager)); /* the next one is above the level */
    }
    for (int i = 0; i < HELD; i++)
        if (held[i].what != NULL)
            held_drop(way, &held[i]);
    CHECK_U64(statistics_now().requested_bytes, before);
}

/* What can never be is refused, and no result is written. */
static void way_misuse(int way)
{
    void *none = NULL, *what = NULL;
    CHECK(way_alloc(way, SIZE_MAX, NULL, &none) != GN_OK && none == NULL);
    gn_status status = way < WAY_BLOCK    ? gn_memory_alloc(suite.manager, 100, NULL, NULL)
                       : way == WAY_BLOCK ? gn_memory_block_alloc(suite.manager, 100, NULL, NULL)
                                          : gni_memory_alloc_tensor(suite.manager, 100, NULL, NULL);
    CHECK(status == GN_ERROR_INVALID_VALUE);
    CHECK_OK(way_alloc(way, 100, NULL, &what));
    if (way == WAY_SIZED)
        CHECK_STATUS(way_free(way, what, 99), GN_ERROR_WRONG_SIZE);
    CHECK_OK(way_free(way, what, 100));
    CHECK_STATUS(way_free(way, what, 100), GN_ERROR_DOUBLE_FREE);
}

/* A thread whose cache is taken away between two of its calls: 0 begins, 1 has a cache, 2 it is revoked. */
static atomic_int revoke_step;

static void *revoked_thread(void *context)
{
    int way = *(const int *)context;
    void *what[3] = {NULL};
    for (int i = 0; i < 3; i++)
        CHECK_OK(way_alloc(way, 1000, NULL, &what[i]));
    CHECK_OK(way_free(way, what[2], 1000));
    atomic_store(&revoke_step, 1);
    while (atomic_load(&revoke_step) != 2)
        (void)sched_yield();
    CHECK_OK(way_free(way, what[1], 1000)); /* these wait for the lock */
    CHECK_OK(way_alloc(way, 1000, NULL, &what[1]));
    for (int i = 0; i < 2; i++)
        CHECK_OK(way_free(way, what[i], 1000));
    return NULL;
}

static void way_revoked(int way)
{
    pthread_t thread;
    atomic_store(&revoke_step, 0);
    CHECK(pthread_create(&thread, NULL, revoked_thread, &way) == 0);
    while (atomic_load(&revoke_step) != 1)
        (void)sched_yield();
    gni_pool_lock(suite.pool);
    gni_caches_revoke(suite.pool, NULL);
    atomic_store(&revoke_step, 2);
    (void)usleep(2000); /* only so that it is likely to have come to the lock */
    gni_caches_restore(suite.pool);
    gni_pool_unlock(suite.pool);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void test_every_way(void)
{
    gn_stream *side = stream_make(GN_STREAM_NON_BLOCKING);
    for (int mode = 0; mode < 4; mode++) {
        if (mode & 1)
            CHECK_OK(gn_history_start(&(gn_history_options){.events_most = 256}));
        if (mode & 2)
            (void)atomic_fetch_or(&gni_slow_reasons, GNI_REASON_EXCHANGE);
        for (int way = 0; way < WAY_COUNT; way++) {
            way_walk(way, NULL);
            way_walk(way, side);
            way_misuse(way);
            way_revoked(way);
            POOL_CHECK();
        }
        gn_history_stop();
        (void)atomic_fetch_and(&gni_slow_reasons, ~(unsigned)GNI_REASON_EXCHANGE);
    }
    gn_stream_release(side);
    pool_empty();
}

/* ---- the walker ------------------------------------------------------------------------------ */

/* With another value in one place a pool is not valid; then the place is as before. */
#define DAMAGE(place, value)                   \
    do {                                       \
        __typeof__(place) kept = (place);      \
        (place) = (value);                     \
        CHECK(!gni_pool_is_valid(suite.pool)); \
        (place) = kept;                        \
    } while (0)

static void damage_blocks(void)
{
    void *small = block_make(1000), *large = block_make(20 * MIB);
    void *const pointers[] = {small, large};
    for (int i = 0; i < 2; i++) {
        gn_memory_block *block = gni_address_find(pointers[i]);
        DAMAGE(block->nbytes, block->nbytes + GNI_GRAIN);
        DAMAGE(block->nbytes, block->nbytes + 1);
        DAMAGE(block->start, block->start + GNI_GRAIN);
        DAMAGE(block->address, block->start + block->nbytes);
        DAMAGE(block->requested, block->nbytes + 1);
        DAMAGE(block->heap, NULL);
        DAMAGE(block->pool, NULL);
        DAMAGE(block->range, (unsigned char)(block->range ^ 1));
        DAMAGE(block->bin, (unsigned char)(block->bin ^ 1));
        DAMAGE(block->state, GNI_BLOCK_UNUSED);
        DAMAGE(block->state, GNI_BLOCK_FREE);
        DAMAGE(block->region, NULL);
        DAMAGE(block->region->first, block->region->first->after);
        DAMAGE(block->region->nbytes, block->region->nbytes - GNI_PAGE);
    }
    block_free(small);
    block_free(large);
    gn_memory_block *cached = gni_address_find(small);
    CHECK(cached != NULL && gni_block_state(cached) == GNI_BLOCK_CACHED);
    DAMAGE(cached->state, GNI_BLOCK_LIVE);
    DAMAGE(cached->flags, GNI_BLOCK_SLOW);
}

static void damage_books(void)
{
    struct gni_pool *pool = suite.pool;
    struct gni_blocks *stock = &pool->blocks;
    DAMAGE(stock->count, stock->count + 1);
    DAMAGE(stock->unused->heap, pool->main.clean);
    DAMAGE(stock->unused->state, GNI_BLOCK_FREE);
    DAMAGE(pool->reserved_bytes, pool->reserved_bytes + 1);
    DAMAGE(pool->pending_bytes, pool->pending_bytes + 1);
    DAMAGE(pool->pending_count, pool->pending_count + 1);
    DAMAGE(pool->reserve_blocks, pool->reserve_blocks + 1);
    gni_list_each (link, &pool->main.heaps) {
        struct gni_heap *heap = gni_container_of(link, struct gni_heap, link);
        DAMAGE(heap->key, heap->key == 0);
        DAMAGE(heap->block_count, heap->block_count + 1);
        DAMAGE(heap->complete, heap->open);
        DAMAGE(heap->space, NULL);
        for (int range = 0; range < GNI_RANGE_COUNT; range++) {
            DAMAGE(heap->fit[range].count, heap->fit[range].count + 1);
            DAMAGE(heap->fit[range].nbytes, heap->fit[range].nbytes + 1);
            DAMAGE(heap->fit[range].bitmap[0], heap->fit[range].bitmap[0] ^ 1);
        }
    }
    for (int range = 0; range < GNI_RANGE_COUNT; range++) {
        DAMAGE(pool->main.mapped_bytes[range], pool->main.mapped_bytes[range] + 1);
        DAMAGE(pool->main.holes[range].count, pool->main.holes[range].count + 1);
    }
}

/* What all other tests rely on finds each thing that is wrong. */
static void child_walker(void)
{
    void *kept[] = {block_make(500), block_make(3 * MIB), block_make(30 * MIB)};
    POOL_CHECK();
    damage_blocks();
    POOL_CHECK();
    damage_books();
    POOL_CHECK();
    for (size_t i = 0; i < COUNT_OF(kept); i++)
        block_free(kept[i]);
    pool_empty();
}

static const struct child_mode modes[] = {
    {"walker", child_walker, {"GENESIS_LOG=off"}}, /* it prints what it finds */
};

static void test_the_walker(void)
{
    children_run(modes, COUNT_OF(modes));
}

/* ---- the program ---------------------------------------------------------------------------- */

static void run(void)
{
    RUN(test_zero_bytes);
    RUN(test_handles);
    RUN(test_handles_freed_twice);
    RUN(test_asking_is_no_refusal);
    RUN(test_batch);
    RUN(test_batch_is_near);
    RUN(test_batch_is_all_or_nothing);
    RUN(test_warm_up);
    RUN(test_idle_memory_serves_others);
    RUN(test_last_idle_memory_serves_others);
    RUN(test_training_needs_no_driver);
    RUN(test_changing_lengths);
    RUN(test_layers);
    RUN(test_idle_memory_of_another_thread);
    RUN(test_peaks_are_reset);
    RUN(test_random_sizes);
    RUN(test_trim);
    RUN(test_trim_waits);
    RUN(test_coalesce);
    RUN(test_collect);
    RUN(test_uses_of_streams_that_end);
    RUN(test_active_peak);
    RUN(test_handler);
    RUN(test_out_of_memory);
    RUN(test_recovery_joins_streams);
    RUN(test_free_in_a_fresh_thread);
    RUN(test_current_stream);
    RUN(test_streams_share);
    RUN(test_pinned);
    RUN(test_walk_of_managers);
    RUN(test_every_way);
    RUN(test_growth_keeps_cached_blocks);
    RUN(test_the_walker);
    RUN(test_clear);
}

int main(int argc, char **argv)
{
    return suite_main(argc, argv, run, modes, COUNT_OF(modes));
}
