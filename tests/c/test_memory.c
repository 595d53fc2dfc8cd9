/*
 * test_memory.c: one suite over a device and its memory manager, whatever the policy.
 *
 *     test_memory [cpu | cuda [direct | pool | virtual]]
 *
 * skipped (77) where there is no such device. Without a policy, the device's own is tested. The manager
 * is the process's: on a GPU GENESIS_CUDA_ALLOCATOR chooses the policy, on the CPU gn_memory_configure().
 *
 * What is the same for all policies is checked for all; what differs is asked of `suite.policy`, see
 * "what the policies differ in".
 *
 * The same program serves as its own child: what happens once in a process, and what is printed at
 * its end, is tried with other arguments in a fresh one (see child_modes), since a process that has
 * started CUDA cannot be forked.
 */
#include "books.h"
#include "child.h"

#include "base/host.h"
#include "genesis/genesis.h"
#include "memory/manager.h"
#include "memory/size.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

enum {
    THEIRS = 64,
};

struct policy {
    const char *name;
    size_t alignment; /* of every address */
    bool is_pooled;   /* sizes are rounded, and what is freed stays reserved until it is trimmed */
};

static const struct policy policies[] = {
    {"direct", 256, false},
    {"pool", 512, true},
    {"virtual", 512, true},
};

static struct {
    gn_device *device;
    gn_memory_manager *manager;
    gn_memory_manager *other; /* of the same device and policy, known to this test only */
    void *theirs[THEIRS];     /* blocks of the other one */
    const char *type_name;
    const struct policy *policy;
    bool is_cpu;
    size_t books;                              /* host blocks after a shutdown */
    uint64_t second_frees, second_frees_known; /* see second_free_check() */
} suite;

/* ---- helpers -------------------------------------------------------------------------------- */

static void *block_make(size_t nbytes)
{
    void *pointer = NULL;
    CHECK_OK(gn_memory_alloc(suite.manager, nbytes, NULL, &pointer));
    CHECK(pointer != NULL);
    return pointer;
}

static void block_free(void *pointer)
{
    CHECK_OK(gn_memory_free(suite.manager, pointer));
}

static gn_memory_statistics statistics_now(void)
{
    gn_memory_statistics now = {0};
    CHECK_OK(gn_memory_get_statistics(suite.manager, &now));
    return now;
}

/* Are they the same? All fields are of one width. Says which is not, by its place in the structure. */
static bool statistics_same(const gn_memory_statistics *now, const gn_memory_statistics *expected)
{
    const uint64_t *a = (const void *)now, *b = (const void *)expected;
    for (size_t i = 0; i < sizeof *now / sizeof *a; i++) {
        if (a[i] == b[i])
            continue;
        fprintf(stderr, "    field %zu is %" PRIu64 ", not %" PRIu64 "\n", i, a[i], b[i]);
        return false;
    }
    return true;
}

static bool statistics_are(const gn_memory_statistics *expected)
{
    gn_memory_statistics now = statistics_now();
    return statistics_same(&now, expected);
}

/* ---- what the policies differ in -------------------------------------------------------------- */

/* What a block of so many bytes counts as live, at least; up to 64 KiB exactly. */
static size_t policy_live_bytes(size_t nbytes)
{
    return suite.policy->is_pooled ? gni_size_round(nbytes) : nbytes;
}

/* How much more than was asked for a block may take: size.h, and a cached block may be a little larger. */
static size_t policy_waste_most(size_t nbytes)
{
    if (!suite.policy->is_pooled)
        return 0;
    if (nbytes > 8 * MIB)
        return 2 * MIB - 1;
    if (nbytes > MIB)
        return 4 * KIB - 1;
    if (nbytes > 64 * KIB)
        return nbytes / 2;
    return nbytes / 8 > 512 ? nbytes / 8 : 512;
}

/* What a living block counts as live. */
static size_t block_live_bytes(const void *pointer, size_t nbytes)
{
    if (!suite.policy->is_pooled)
        return nbytes;
    const gn_memory_block *block = gni_address_find(pointer);
    CHECK(block != NULL);
    size_t live = block != NULL ? block->nbytes : 0;
    CHECK(live >= policy_live_bytes(nbytes) && live - nbytes <= policy_waste_most(nbytes));
    return live;
}

/* Numbers that fit each other whatever the policy, while no other thread works. */
static void statistics_check(const gn_memory_statistics *now)
{
    CHECK_U64(now->reserved_bytes, now->live_bytes + now->pending_bytes + now->cached_bytes);
    CHECK(now->reserved_bytes <= now->reserved_bytes_peak);
    CHECK(now->requested_bytes <= now->live_bytes);
    CHECK(now->largest_free_bytes <= now->cached_bytes);
    CHECK_U64(now->alloc_count, now->stream_hit_count + now->global_hit_count + now->miss_count);
    if (suite.policy->is_pooled)
        CHECK((now->driver_alloc_count == now->driver_free_count) == (now->reserved_bytes == 0));
}

/* As statistics_are(), but what is a pool's own affair is taken from what it says. */
static bool statistics_fit(gn_memory_statistics *expected)
{
    gn_memory_statistics now = statistics_now();
    statistics_check(&now);
    if (suite.policy->is_pooled) {
        /* An idle block may serve that is up to three classes too large. */
        CHECK(now.live_bytes >= expected->live_bytes &&
              now.live_bytes <= expected->live_bytes + expected->live_bytes / 2);
        CHECK(now.live_bytes_peak >= expected->live_bytes_peak &&
              now.live_bytes_peak <= expected->live_bytes_peak + expected->live_bytes_peak / 2);
        expected->live_bytes_peak = now.live_bytes_peak;
        now.live_bytes = expected->live_bytes;
        expected->reserved_bytes = now.reserved_bytes;
        expected->reserved_bytes_peak = now.reserved_bytes_peak;
        expected->cached_bytes = now.cached_bytes;
        expected->largest_free_bytes = now.largest_free_bytes;
        expected->stream_hit_count = now.stream_hit_count;
        expected->global_hit_count = now.global_hit_count;
        expected->miss_count = now.miss_count;
        expected->retry_count = now.retry_count;
        expected->driver_alloc_count = now.driver_alloc_count;
        expected->driver_free_count = now.driver_free_count;
        expected->event_count = now.event_count;
    }
    return statistics_same(&now, expected);
}

static uint64_t u64_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void expected_alloc(gn_memory_statistics *expected, size_t nbytes, size_t live)
{
    expected->live_bytes += live;
    expected->live_count++;
    expected->requested_bytes += nbytes;
    expected->alloc_count++;
    expected->alloc_bytes_total += nbytes;
    expected->live_bytes_peak = u64_max(expected->live_bytes_peak, expected->live_bytes);
    expected->live_count_peak = u64_max(expected->live_count_peak, expected->live_count);
    expected->requested_bytes_peak =
        u64_max(expected->requested_bytes_peak, expected->requested_bytes);
    if (suite.policy->is_pooled)
        return;
    expected->miss_count++;
    expected->driver_alloc_count++;
    expected->reserved_bytes = expected->live_bytes;
    expected->reserved_bytes_peak =
        u64_max(expected->reserved_bytes_peak, expected->reserved_bytes);
}

static void expected_free(gn_memory_statistics *expected, size_t nbytes, size_t live)
{
    expected->live_bytes -= live;
    expected->live_count--;
    expected->requested_bytes -= nbytes;
    expected->free_count++;
    expected->free_bytes_total += nbytes;
    if (suite.policy->is_pooled)
        return;
    expected->driver_free_count++;
    expected->reserved_bytes = expected->live_bytes;
}

/*
 * A second free, some time after the first: it is refused, and direct knows why for thousands of frees.
 * A pool's history may have lost an address to another one; that nearly all are known is checked at the
 * end.
 */
static void second_free_check(void *pointer)
{
    gn_status status = gn_memory_free(suite.manager, pointer);
    CHECK(status == GN_ERROR_DOUBLE_FREE ||
          (suite.policy->is_pooled && status == GN_ERROR_INVALID_POINTER));
    suite.second_frees++;
    suite.second_frees_known += status == GN_ERROR_DOUBLE_FREE;
}

static void test_second_frees_were_known(void)
{
    CHECK(suite.second_frees > 100);
    CHECK(suite.second_frees_known > suite.second_frees / 10 * 9);
}

/* Everything idle goes back; there must be nothing else. */
static void memory_give_back(void)
{
    CHECK_OK(gn_memory_trim(suite.manager, 0, NULL));
    CHECK_U64(statistics_now().live_count, 0);
    CHECK_U64(statistics_now().reserved_bytes, 0);
    CHECK_U64(statistics_now().driver_alloc_count, statistics_now().driver_free_count);
}

/* After a shutdown the library's own books are as they were after the first one. */
static void books_check(void)
{
    size_t leaked = 4711;
    CHECK_OK(gn_shutdown(&leaked));
    CHECK_U64(leaked, 0);
    CHECK(books_settle(suite.manager, suite.books + books_cache_count(suite.other)));
}

/* ---- contents ------------------------------------------------------------------------------- */

/* Bytes to and from a block, wherever it is. The device is idle afterwards. */
static void bytes_move(void *to, const void *from, size_t nbytes)
{
    gn_stream *stream = NULL;
    if (suite.is_cpu) {
        memcpy(to, from, nbytes);
        return;
    }
    CHECK_OK(gn_stream_get_current(suite.device, &stream));
    CHECK_OK(gn_copy(to, from, nbytes, stream));
    CHECK_OK(gn_stream_synchronize(stream));
}

enum {
    COOKIE_BYTES = 64, /* at both ends of a block */
};

/* Writes bytes at both ends of a block by which it is known again. */
static void cookie_write(void *pointer, size_t nbytes, uint64_t cookie)
{
    uint64_t words[COOKIE_BYTES / 8];
    for (size_t i = 0; i < COOKIE_BYTES / 8; i++)
        words[i] = check_random(&cookie);
    size_t part = nbytes < COOKIE_BYTES ? nbytes : COOKIE_BYTES;
    if (part == 0)
        return;
    bytes_move((char *)pointer + nbytes - part, words, part);
    bytes_move(pointer, words, part);
}

static bool cookie_is(const void *pointer, size_t nbytes, uint64_t cookie)
{
    uint64_t words[COOKIE_BYTES / 8], found[COOKIE_BYTES / 8];
    for (size_t i = 0; i < COOKIE_BYTES / 8; i++)
        words[i] = check_random(&cookie);
    size_t part = nbytes < COOKIE_BYTES ? nbytes : COOKIE_BYTES;
    if (part == 0)
        return true;
    bytes_move(found, pointer, part);
    if (memcmp(found, words, part) != 0)
        return false;
    if (nbytes < 2 * COOKIE_BYTES) /* the ends overlap, and the start was written last */
        return true;
    bytes_move(found, (const char *)pointer + nbytes - part, part);
    return memcmp(found, words, part) == 0;
}

/* ---- the manager ---------------------------------------------------------------------------- */

static void test_manager(void)
{
    gn_memory_manager *again = NULL;
    CHECK_OK(gn_memory_manager_get(suite.device, &again));
    CHECK(again == suite.manager);
    CHECK(gn_memory_manager_get_device(suite.manager) == suite.device);
    CHECK_TEXT(gn_memory_manager_get_policy(suite.manager), suite.policy->name);
    if (suite.is_cpu)
        CHECK_STATUS(gni_manager_create(suite.device, false, "virtual", &again),
                     GN_ERROR_UNSUPPORTED);
    CHECK(again == suite.manager);
}

static void policy_check(void *block, size_t nbytes, const char *policy)
{
    size_t found = 0;
    CHECK_TEXT(gn_memory_manager_get_policy(suite.manager), policy);
    CHECK_OK(gn_memory_get_size(suite.manager, block, &found));
    CHECK_U64(found, nbytes);
}

/* The policy is changed under living blocks: each goes back to where it came from. */
static void test_policy_changes(void)
{
    gn_memory_config before, other;
    CHECK_OK(gn_memory_get_config(suite.manager, &before));
    other = before;
    other.strategy = suite.policy->is_pooled ? GN_MEMORY_DIRECT : GN_MEMORY_BEST_FIT;
    void *ours = block_make(1000);
    CHECK_OK(gn_memory_configure(suite.manager, &other));
    const char *name = gn_memory_manager_get_policy(suite.manager);
    CHECK((strcmp(name, "direct") == 0) == suite.policy->is_pooled);
    void *theirs = block_make(2000), *both[] = {ours, theirs};
    policy_check(ours, 1000, name);
    policy_check(theirs, 2000, name);
    CHECK_U64(statistics_now().live_count, 2);
    CHECK_U64(statistics_now().requested_bytes, 3000);
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(gn_memory_free_sized(suite.manager, both[i], 999), GN_ERROR_WRONG_SIZE);
        CHECK_STATUS(gn_memory_free(suite.manager, (char *)both[i] + 1), GN_ERROR_INVALID_POINTER);
        CHECK_DETAIL("1 bytes into the block");
    }
    CHECK_OK(gn_memory_free(suite.manager, ours));
    CHECK_STATUS(gn_memory_free(suite.manager, ours), GN_ERROR_DOUBLE_FREE);
    CHECK_OK(gn_memory_configure(suite.manager, &before));
    policy_check(theirs, 2000, suite.policy->name);
    CHECK_OK(gn_memory_free_sized(suite.manager, theirs, 2000));
    CHECK_STATUS(gn_memory_free(suite.manager, theirs), GN_ERROR_DOUBLE_FREE);
    CHECK_STATUS(gn_memory_free(suite.manager, NULL), GN_ERROR_INVALID_POINTER);
    memory_give_back();
}

static void test_bad_arguments(void)
{
    gn_memory_manager *manager = NULL;
    gn_memory_statistics statistics;
    void *pointer = NULL;
    size_t nbytes = 0;
    CHECK_STATUS(gn_memory_manager_get(NULL, &manager), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_manager_get(suite.device, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_alloc(NULL, 1, NULL, &pointer), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_alloc(suite.manager, 1, NULL, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_free(NULL, &nbytes), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_free_sized(NULL, &nbytes, 1), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_get_size(NULL, &nbytes, &nbytes), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_get_size(suite.manager, &nbytes, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_get_statistics(NULL, &statistics), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_get_statistics(suite.manager, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_reset_peaks(NULL), GN_ERROR_INVALID_VALUE);
    CHECK(manager == NULL && pointer == NULL);
}

/* ---- sizes ---------------------------------------------------------------------------------- */

static void test_sizes(void)
{
    const size_t sizes[] = {0,       1,           2,       511,         512,      513,
                            4095,    4096,        4097,    9217,        MIB - 1,  MIB,
                            MIB + 1, 3 * MIB + 1, 8 * MIB, 8 * MIB + 1, 100 * MIB};
    enum {
        COUNT = sizeof sizes / sizeof *sizes
    };
    void *pointers[COUNT];
    gn_memory_statistics before = statistics_now();
    uint64_t live = before.live_bytes;
    for (size_t i = 0; i < COUNT; i++) {
        pointers[i] = block_make(sizes[i]);
        CHECK((uintptr_t)pointers[i] % suite.policy->alignment == 0);
        cookie_write(pointers[i], sizes[i], i);
        gn_memory_statistics now = statistics_now();
        CHECK_U64(now.live_bytes - live, block_live_bytes(pointers[i], sizes[i]));
        live = now.live_bytes;
    }
    for (size_t i = 0; i < COUNT; i++) {
        size_t nbytes = SIZE_MAX;
        CHECK_OK(gn_memory_get_size(suite.manager, pointers[i], &nbytes));
        CHECK_U64(nbytes, sizes[i]);
        CHECK(cookie_is(pointers[i], sizes[i], i));
        CHECK_OK(gn_memory_free_sized(suite.manager, pointers[i], sizes[i]));
        CHECK_STATUS(gn_memory_get_size(suite.manager, pointers[i], &nbytes), GN_ERROR_DOUBLE_FREE);
        CHECK_U64(nbytes, sizes[i]);
    }
    gn_memory_statistics after = statistics_now();
    CHECK_U64(after.live_bytes, before.live_bytes);
    CHECK_U64(after.requested_bytes, before.requested_bytes);
    CHECK_U64(after.alloc_count - before.alloc_count, COUNT);
}

static void test_no_bytes_have_an_address(void)
{
    enum {
        COUNT = 100
    };
    void *pointers[COUNT];
    for (int i = 0; i < COUNT; i++) {
        pointers[i] = block_make(0);
        for (int j = 0; j < i; j++)
            CHECK(pointers[i] != pointers[j]);
    }
    CHECK_U64(statistics_now().live_count, COUNT);
    CHECK_U64(statistics_now().requested_bytes, 0);
    CHECK_U64(statistics_now().live_bytes, COUNT * policy_live_bytes(0));
    for (int i = 0; i < COUNT; i++)
        CHECK_OK(gn_memory_free_sized(suite.manager, pointers[i], 0));
    CHECK_U64(statistics_now().live_count, 0);
}

static void test_absurd_sizes(void)
{
    static const struct {
        size_t nbytes;
        gn_status status;
    } cases[] = {
        {SIZE_MAX, GN_ERROR_OVERFLOW},
        {SIZE_MAX - 4095, GN_ERROR_OVERFLOW},
        {(size_t)PTRDIFF_MAX + 1, GN_ERROR_OVERFLOW},
        {PTRDIFF_MAX, GN_ERROR_OUT_OF_MEMORY},
        {(size_t)1 << 62, GN_ERROR_OUT_OF_MEMORY},
        {(size_t)1 << 47, GN_ERROR_OUT_OF_MEMORY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gn_memory_statistics expected = statistics_now();
        void *pointer = &expected;
        size_t live = gni_host_live_count();
        CHECK_STATUS(gn_memory_alloc(suite.manager, cases[i].nbytes, NULL, &pointer),
                     cases[i].status);
        CHECK(pointer == &expected && gni_host_live_count() <= live);
        expected.out_of_memory_count += cases[i].status == GN_ERROR_OUT_OF_MEMORY;
        CHECK(statistics_fit(&expected));
        block_free(block_make(1000)); /* everything goes on */
    }
}

/* ---- frees that are refused ----------------------------------------------------------------- */

/* The free fails with this status, and only the count of refusals moves. */
static void refused_check(void *pointer, gn_status status, const char *word)
{
    gn_memory_statistics expected = statistics_now();
    CHECK_STATUS(gn_memory_free(suite.manager, pointer), status);
    CHECK_DETAIL(word);
    CHECK_STATUS(gn_memory_free_sized(suite.manager, pointer, 1), status);
    expected.refused_count += 2;
    CHECK(statistics_are(&expected));
    size_t nbytes = 4711;
    CHECK_STATUS(gn_memory_get_size(suite.manager, pointer, &nbytes), status);
    CHECK(nbytes == 4711 && statistics_are(&expected)); /* asking is no refused free */
}

static void test_foreign_pointers(void)
{
    int on_stack;
    static int in_data;
    void *in_heap = malloc(100);
    void *block = block_make(100); /* so that there is something to mistake them for */
    void *foreign[] = {NULL, &on_stack, &in_data, in_heap, (void *)1, (void *)UINTPTR_MAX};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        refused_check(foreign[i], GN_ERROR_INVALID_POINTER, "not allocated by this memory manager");
    block_free(block);
    free(in_heap);
}

static void test_double_free(void)
{
    void *first = block_make(5000), *second = block_make(5000);
    block_free(first);
    refused_check(first, GN_ERROR_DOUBLE_FREE, "freed already");
    block_free(second);
    refused_check(second, GN_ERROR_DOUBLE_FREE, "freed already");
    refused_check(first, GN_ERROR_DOUBLE_FREE, "freed already");
}

static void test_interior_pointers(void)
{
    const size_t nbytes = 10000, offsets[] = {1, 8, 4096, 9999};
    block_free(block_make(3 * nbytes)); /* of which some addresses may come again */
    char *block = block_make(nbytes);
    cookie_write(block, nbytes, 1);
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        char word[64];
        (void)snprintf(word, sizeof word, "%zu bytes into the block of %zu bytes", offsets[i],
                       nbytes);
        refused_check(block + offsets[i], GN_ERROR_INVALID_POINTER, word);
    }
    refused_check(block - 1, GN_ERROR_INVALID_POINTER, "not allocated");
    CHECK(cookie_is(block, nbytes, 1));
    block_free(block);
}

static void test_wrong_size(void)
{
    const size_t wrong[] = {0, 99, 101, SIZE_MAX};
    void *block = block_make(100);
    cookie_write(block, 100, 2);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        gn_memory_statistics expected = statistics_now();
        CHECK_STATUS(gn_memory_free_sized(suite.manager, block, wrong[i]), GN_ERROR_WRONG_SIZE);
        CHECK_DETAIL("100 bytes");
        expected.refused_count++;
        CHECK(statistics_are(&expected));
        CHECK(cookie_is(block, 100, 2));
    }
    CHECK_OK(gn_memory_free_sized(suite.manager, block, 100));
    refused_check(block, GN_ERROR_DOUBLE_FREE, "freed already");
}

static void test_other_managers_pointer(void)
{
    void *ours = block_make(100);
    /* The last: the first ones may be where we had a block before that was given back. */
    refused_check(suite.theirs[THEIRS - 1], GN_ERROR_INVALID_POINTER,
                  "not allocated by this memory manager");
    CHECK_STATUS(gn_memory_free(suite.other, ours), GN_ERROR_INVALID_POINTER);
    for (int i = 0; i < THEIRS; i++)
        CHECK_OK(gn_memory_free(suite.other, suite.theirs[i]));
    CHECK_OK(gni_manager_clear(suite.other));
    block_free(ours);
}

/* Both ends of a block hold a byte. */
static bool ends_are(const char *block, size_t nbytes, char value)
{
    char first, last;
    bytes_move(&first, block, 1);
    bytes_move(&last, block + nbytes - 1, 1);
    return first == value && last == value;
}

/* Work that was submitted before a free may still use the block; whoever has the memory next does not see
 * that work. The block is the stream's own, or another's that was told of it. */
static void test_free_with_pending_work(void)
{
    size_t nbytes = 8 * MIB; /* four copies take longer than the calls that follow */
    char *from = calloc(1, nbytes);
    gn_stream *stream = NULL, *current = NULL;
    CHECK_OK(gn_stream_create(suite.device, GN_STREAM_NON_BLOCKING, 0, &stream));
    CHECK_OK(gn_stream_get_current(suite.device, &current));
    for (int round = 0; round < 6; round++) {
        void *block = NULL;
        CHECK_OK(gn_memory_alloc(suite.manager, nbytes, round % 2 == 0 ? stream : NULL, &block));
        if (round % 2 != 0)
            CHECK_OK(gn_memory_record_stream(suite.manager, block, stream));
        for (int i = 0; i < 4; i++)
            CHECK_OK(gn_copy(block, from, nbytes, stream));
        block_free(block);
        CHECK_STATUS(gn_memory_free(suite.manager, block), GN_ERROR_DOUBLE_FREE);
        void *next = block_make(nbytes);
        CHECK_OK(gn_fill(next, 7, 1, nbytes, current));
        CHECK_OK(gn_device_synchronize(suite.device));
        CHECK(ends_are(next, nbytes, 7));
        block_free(next);
        CHECK_OK(gn_memory_collect(suite.manager));
        CHECK_U64(statistics_now().pending_bytes, 0);
    }
    gn_stream_release(stream);
    free(from);
}

/* ---- the history of frees ------------------------------------------------------------------- */

/* An address that the driver hands out again is a block like any other. */
static void test_address_reuse(void)
{
    void *last = NULL;
    int reused = 0;
    for (int round = 0; round < 6000; round++) { /* more than the history holds */
        void *block = block_make(4096);
        reused += block == last;
        size_t nbytes = 0;
        CHECK_OK(gn_memory_get_size(suite.manager, block, &nbytes));
        CHECK_OK(gn_memory_free(suite.manager, block));
        CHECK_STATUS(gn_memory_free(suite.manager, block), GN_ERROR_DOUBLE_FREE);
        last = block;
    }
    CHECK(reused > 0); /* or this test tests nothing */
}

static void test_history_is_bounded(void)
{
    enum {
        COUNT = 6000,
        REMEMBERED = 4096
    };
    static void *pointers[COUNT];
    for (int i = 0; i < COUNT; i++)
        pointers[i] = block_make(1);
    size_t live = gni_host_live_count();
    for (int i = 0; i < COUNT; i++)
        block_free(pointers[i]);
    if (suite.policy->is_pooled) {
        CHECK(gni_host_live_count() < live + COUNT / 4); /* an event for some of them, no more */
        for (int i = 0; i < COUNT; i++) {
            gn_status status = gn_memory_free(suite.manager, pointers[i]);
            CHECK(status == GN_ERROR_DOUBLE_FREE || status == GN_ERROR_INVALID_POINTER);
        }
        CHECK_STATUS(gn_memory_free(suite.manager, pointers[COUNT - 1]), GN_ERROR_DOUBLE_FREE);
        return;
    }
    CHECK(gni_host_live_count() <= live - COUNT + 1); /* no descriptor stays; a map may be new */
    int known = 0;
    for (int i = 0; i < COUNT - REMEMBERED; i++) {
        gn_status status = gn_memory_free(suite.manager, pointers[i]);
        CHECK(status == GN_ERROR_INVALID_POINTER || status == GN_ERROR_DOUBLE_FREE);
        known += status == GN_ERROR_DOUBLE_FREE;
    }
    CHECK(known < 100); /* as blocks of the pool, that test_policy_changes() used */
    for (int i = COUNT - REMEMBERED; i < COUNT; i++)
        CHECK_STATUS(gn_memory_free(suite.manager, pointers[i]), GN_ERROR_DOUBLE_FREE);
}

/* ---- statistics ----------------------------------------------------------------------------- */

static void test_peaks(void)
{
    uint64_t a_bytes = policy_live_bytes(3000), b_bytes = policy_live_bytes(5000);
    block_free(block_make(3 * MIB)); /* a peak that must not hide those after the reset */
    CHECK_OK(gn_memory_reset_peaks(suite.manager));
    gn_memory_statistics expected = statistics_now();
    CHECK_U64(expected.live_bytes_peak, expected.live_bytes);
    CHECK_U64(expected.requested_bytes_peak, expected.requested_bytes);
    void *a = block_make(3000), *b = block_make(5000);
    block_free(b);
    CHECK_U64(statistics_now().live_bytes, expected.live_bytes + a_bytes);
    CHECK_U64(statistics_now().live_bytes_peak, expected.live_bytes + a_bytes + b_bytes);
    CHECK_U64(statistics_now().live_count_peak, expected.live_count + 2);
    CHECK_U64(statistics_now().requested_bytes, expected.requested_bytes + 3000);
    CHECK_U64(statistics_now().requested_bytes_peak, expected.requested_bytes + 8000);
    CHECK_OK(gn_memory_reset_peaks(suite.manager));
    CHECK_U64(statistics_now().live_bytes_peak, expected.live_bytes + a_bytes);
    CHECK_U64(statistics_now().live_count_peak, expected.live_count + 1);
    CHECK_U64(statistics_now().requested_bytes_peak, expected.requested_bytes + 3000);
    CHECK_U64(statistics_now().reserved_bytes_peak, statistics_now().reserved_bytes);
    block_free(a);
    CHECK_U64(statistics_now().live_bytes_peak, expected.live_bytes + a_bytes);
    CHECK_U64(statistics_now().alloc_count, expected.alloc_count + 2);
}

/* A random program, against a model that knows all blocks and every number. */

enum {
    MODEL_BLOCKS = 200,
    MODEL_FREED = 64, /* frees that the model remembers; far fewer than the manager does */
};

static struct model {
    struct {
        void *pointer;
        size_t nbytes;
        size_t live; /* that it counts as */
        uint64_t cookie;
    } blocks[MODEL_BLOCKS];
    size_t count;
    void *freed[MODEL_FREED]; /* the last addresses that were freed */
    uint64_t freed_count;
    gn_memory_statistics expected;
    uint64_t seed;
} model;

static uint64_t model_random(uint64_t below)
{
    return check_random(&model.seed) % below;
}

static void model_alloc(void)
{
    if (model.count == MODEL_BLOCKS)
        return;
    size_t limit = model_random(50) == 0 ? 4 * MIB : (size_t)16 << model_random(13);
    size_t nbytes = (size_t)model_random(limit);
    void *pointer = block_make(nbytes);
    for (size_t i = 0; i < model.count; i++)
        CHECK(model.blocks[i].pointer != pointer);
    uint64_t cookie = check_random(&model.seed);
    cookie_write(pointer, nbytes, cookie);
    model.blocks[model.count].pointer = pointer;
    model.blocks[model.count].nbytes = nbytes;
    model.blocks[model.count].live = block_live_bytes(pointer, nbytes);
    expected_alloc(&model.expected, nbytes, model.blocks[model.count].live);
    model.blocks[model.count++].cookie = cookie;
}

static void model_free(size_t index, bool is_sized)
{
    void *pointer = model.blocks[index].pointer;
    size_t nbytes = model.blocks[index].nbytes, live = model.blocks[index].live;
    CHECK(cookie_is(pointer, nbytes, model.blocks[index].cookie));
    if (is_sized)
        CHECK_OK(gn_memory_free_sized(suite.manager, pointer, nbytes));
    else
        CHECK_OK(gn_memory_free(suite.manager, pointer));
    model.blocks[index] = model.blocks[--model.count];
    model.freed[model.freed_count++ % MODEL_FREED] = pointer;
    expected_free(&model.expected, nbytes, live);
}

static void model_refuse(size_t index, uint64_t how)
{
    char *pointer = model.blocks[index].pointer;
    size_t nbytes = model.blocks[index].nbytes, asked = 0;
    if (how == 0) {
        CHECK_STATUS(gn_memory_free_sized(suite.manager, pointer, nbytes + 1), GN_ERROR_WRONG_SIZE);
    } else { /* no address inside the first 256 bytes was ever a block's own */
        CHECK_STATUS(gn_memory_free(suite.manager, pointer + 1 + model_random(255)),
                     GN_ERROR_INVALID_POINTER);
    }
    model.expected.refused_count++;
    CHECK_OK(gn_memory_get_size(suite.manager, pointer, &asked));
    CHECK(asked == nbytes);
}

static void model_free_again(void)
{
    if (model.freed_count < MODEL_FREED)
        return;
    void *pointer = model.freed[model_random(MODEL_FREED)];
    for (size_t i = 0; i < model.count; i++) {
        uintptr_t start = (uintptr_t)model.blocks[i].pointer;
        if ((uintptr_t)pointer - start <= model.blocks[i].live)
            return; /* it was handed out again, and lives */
    }
    second_free_check(pointer);
    model.expected.refused_count++;
}

static void model_alloc_too_much(void)
{
    void *pointer = NULL;
    CHECK_STATUS(gn_memory_alloc(suite.manager, (size_t)1 << 50, NULL, &pointer),
                 GN_ERROR_OUT_OF_MEMORY);
    model.expected.out_of_memory_count++;
}

static void model_reset_peaks(void)
{
    CHECK_OK(gn_memory_reset_peaks(suite.manager));
    model.expected.live_bytes_peak = model.expected.live_bytes;
    model.expected.live_count_peak = model.expected.live_count;
    model.expected.requested_bytes_peak = model.expected.requested_bytes;
    model.expected.reserved_bytes_peak = model.expected.reserved_bytes;
}

static void model_step(void)
{
    uint64_t choice = model_random(100);
    size_t index = model.count > 0 ? (size_t)model_random(model.count) : 0;
    if (choice < 48 || model.count == 0)
        model_alloc();
    else if (choice < 92)
        model_free(index, choice % 2 == 0);
    else if (choice < 95)
        model_refuse(index, choice % 2);
    else if (choice < 98)
        model_free_again();
    else if (choice < 99)
        model_alloc_too_much();
    else
        model_reset_peaks();
}

static void model_run(uint64_t seed)
{
    memset(&model, 0, sizeof model);
    model.seed = seed;
    model.expected = statistics_now();
    for (int step = 0; step < 20000; step++) {
        model_step();
        bool is_right = statistics_fit(&model.expected);
        CHECK(is_right);
        if (!is_right) {
            fprintf(stderr, "    seed %" PRIu64 ", step %d\n", seed, step);
            break;
        }
    }
    while (model.count > 0)
        model_free(model.count - 1, false);
    CHECK(statistics_fit(&model.expected));
    memory_give_back();
}

static void test_random_programs(void)
{
    for (uint64_t seed = 1; seed <= 3; seed++)
        model_run(seed);
}

/* ---- out of memory -------------------------------------------------------------------------- */

/* Takes blocks until there are no more, gives them back, and finds everything as before. */
static void memory_fill_up(size_t block_size)
{
    enum {
        BLOCKS_MAX = 4096
    };
    static void *blocks[BLOCKS_MAX];
    gn_memory_statistics before = statistics_now();
    size_t count = 0;
    gn_status status = GN_OK;
    while (count < BLOCKS_MAX && status == GN_OK) {
        status = gn_memory_alloc(suite.manager, block_size, NULL, &blocks[count]);
        count += status == GN_OK;
    }
    CHECK(status == GN_ERROR_OUT_OF_MEMORY && count > 0);
    CHECK_DETAIL("out of memory");
    CHECK_U64(statistics_now().live_bytes,
              before.live_bytes + count * policy_live_bytes(block_size));
    CHECK_U64(statistics_now().requested_bytes, before.requested_bytes + count * block_size);
    CHECK_U64(statistics_now().out_of_memory_count, before.out_of_memory_count + 1);
    for (size_t i = 0; i < count; i++)
        block_free(blocks[i]);
    CHECK_U64(statistics_now().live_count, before.live_count);
    block_free(block_make(block_size));
    memory_give_back();
}

/* The system would promise more than it has, so the address space is made small. */
static void cpu_fill_up(void *unused)
{
    (void)unused;
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%llu", &pages) == 1);
    if (file != NULL)
        (void)fclose(file);
    rlim_t limit = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + 512 * MIB;
    struct rlimit small = {limit, limit};
    CHECK(setrlimit(RLIMIT_AS, &small) == 0);
    memory_fill_up(64 * MIB);
}

static void test_out_of_memory(void)
{
    static struct child_result result;
    if (!suite.is_cpu) {
        size_t free_bytes = 0, total_bytes = 0;
        CHECK_OK(gn_device_get_memory_info(suite.device, &free_bytes, &total_bytes));
        memory_fill_up(free_bytes / 10);
        return;
    }
    child_run(cpu_fill_up, NULL, &result);
    CHECK(child_is_ok(&result));
}

/* Sizes that take every way to memory; mostly small ones. */
static size_t failing_size(int i)
{
    return i % 100 == 1 ? 3 * MIB : i % 100 == 2 ? 9 * MIB : 100;
}

/* On failure nothing changed. What a pool has made for itself by then comes back with the shutdown. */
static void test_host_memory_fails(void)
{
    enum {
        COUNT = 1000
    };
    static void *blocks[COUNT];
    int failures = 0;
    CHECK_OK(gni_manager_clear(suite.manager)); /* so that everything has to be made again */
    for (int i = 0; i < COUNT; i++) {
        gn_status status = GN_ERROR_OUT_OF_HOST_MEMORY;
        for (long nth = 1; status != GN_OK; nth++) {
            gn_memory_statistics before = statistics_now();
            size_t live = gni_host_live_count();
            gni_host_fail_after(nth);
            status = gn_memory_alloc(suite.manager, failing_size(i), NULL, &blocks[i]);
            gni_host_fail_after(-1);
            CHECK(status == GN_OK || status == GN_ERROR_OUT_OF_HOST_MEMORY);
            CHECK(status == GN_OK || statistics_fit(&before));
            CHECK(status == GN_OK || suite.policy->is_pooled || gni_host_live_count() == live);
            CHECK(nth < 30);
            failures += status != GN_OK;
        }
    }
    CHECK(failures > 5);
    for (int i = 0; i < COUNT; i++) { /* a free needs no memory, whatever it would like */
        gni_host_fail_after(1 + i % 3);
        CHECK_OK(gn_memory_free(suite.manager, blocks[i]));
        gni_host_fail_after(-1);
    }
    memory_give_back();
    books_check();
}

/* ---- threads -------------------------------------------------------------------------------- */

enum {
    THREADS = 8,
    THREAD_STEPS = 1500,
    THREAD_BLOCKS = 20,
    EXCHANGE_PLACES = 16,
};

struct owned_block {
    void *pointer; /* NULL: none */
    size_t nbytes;
    uint64_t cookie;
};

/* Where threads leave blocks for one another. */
static struct owned_block exchange[EXCHANGE_PLACES];
static pthread_mutex_t exchange_mutex = PTHREAD_MUTEX_INITIALIZER;

static void owned_replace(struct owned_block *own, uint64_t *seed)
{
    if (own->pointer != NULL) {
        CHECK(cookie_is(own->pointer, own->nbytes, own->cookie));
        CHECK_OK(gn_memory_free_sized(suite.manager, own->pointer, own->nbytes));
        own->pointer = NULL;
        return;
    }
    own->nbytes = (size_t)(check_random(seed) % (32 * KIB));
    own->cookie = check_random(seed);
    own->pointer = block_make(own->nbytes);
    cookie_write(own->pointer, own->nbytes, own->cookie);
}

static void owned_exchange(struct owned_block *own, uint64_t *seed)
{
    struct owned_block *place = &exchange[check_random(seed) % EXCHANGE_PLACES];
    struct owned_block mine = *own;
    (void)pthread_mutex_lock(&exchange_mutex);
    *own = *place;
    *place = mine;
    (void)pthread_mutex_unlock(&exchange_mutex);
}

static void *thread_body(void *argument)
{
    uint64_t seed = *(uint64_t *)argument;
    struct owned_block own[THREAD_BLOCKS] = {{NULL, 0, 0}};
    for (int step = 0; step < THREAD_STEPS; step++) {
        struct owned_block *one = &own[check_random(&seed) % THREAD_BLOCKS];
        uint64_t choice = check_random(&seed) % 8;
        if (choice == 0)
            owned_exchange(one, &seed);
        else if (choice == 1)
            CHECK_STATUS(gn_memory_free(suite.manager, &seed), GN_ERROR_INVALID_POINTER);
        else
            owned_replace(one, &seed);
        gn_memory_statistics now = statistics_now();
        CHECK(now.live_count == now.alloc_count - now.free_count);
        CHECK(now.requested_bytes == now.alloc_bytes_total - now.free_bytes_total);
        CHECK(now.free_count <= now.alloc_count && now.free_bytes_total <= now.alloc_bytes_total);
    }
    for (int i = 0; i < THREAD_BLOCKS; i++) {
        if (own[i].pointer != NULL)
            owned_replace(&own[i], &seed);
    }
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];
    uint64_t seeds[THREADS];
    gn_memory_statistics before = statistics_now();
    memset(exchange, 0, sizeof exchange);
    for (uint64_t i = 0; i < THREADS; i++) {
        seeds[i] = 100 + i;
        CHECK(pthread_create(&threads[i], NULL, thread_body, &seeds[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < EXCHANGE_PLACES; i++) {
        if (exchange[i].pointer != NULL)
            owned_replace(&exchange[i], &seeds[0]);
    }
    gn_memory_statistics after = statistics_now();
    CHECK_U64(after.live_count, before.live_count);
    CHECK_U64(after.live_bytes, before.live_bytes);
    CHECK(after.alloc_count > before.alloc_count + 1000);
    statistics_check(&after);
    memory_give_back();
    books_check();
}

static atomic_int race_freed;

static void *race_body(void *pointer)
{
    gn_status status = gn_memory_free(suite.manager, pointer);
    CHECK(status == GN_OK || status == GN_ERROR_DOUBLE_FREE);
    atomic_fetch_add(&race_freed, status == GN_OK);
    return NULL;
}

/* Of threads that free one block at once, exactly one succeeds. */
static void test_frees_race(void)
{
    for (int round = 0; round < 100; round++) {
        pthread_t threads[3];
        void *block = block_make(1);
        atomic_store(&race_freed, 0);
        for (int i = 0; i < 3; i++)
            CHECK(pthread_create(&threads[i], NULL, race_body, block) == 0);
        for (int i = 0; i < 3; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(atomic_load(&race_freed) == 1);
    }
}

/* ---- shutdown and leaks --------------------------------------------------------------------- */

static void test_shutdown(void)
{
    size_t leaked = 4711;
    void *blocks[3];
    CHECK_OK(gn_shutdown(&leaked));
    CHECK_U64(leaked, 0); /* every test before this one has cleaned up */
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 3; i++)
            blocks[i] = block_make(1000 * i);
        CHECK_OK(gn_shutdown(&leaked));
        CHECK_U64(leaked, 3);
        gn_memory_statistics now = statistics_now();
        CHECK(now.live_count == 0 && now.live_bytes == 0 && now.reserved_bytes == 0);
        for (size_t i = 0; i < 3; i++)
            second_free_check(blocks[i]);
        CHECK(books_settle(suite.manager, suite.books + books_cache_count(suite.other)));
    }
    gn_stream *stream = NULL;
    gn_event *event = NULL;
    CHECK_OK(gn_stream_create(suite.device, 0, 0, &stream));
    CHECK_OK(gn_event_create(suite.device, 0, &event));
    CHECK_OK(gn_shutdown(&leaked));
    CHECK_U64(leaked, 2);
    gn_event_destroy(event); /* they are still whole */
    gn_stream_release(stream);
    CHECK_OK(gn_shutdown(NULL));
    void *block = block_make(10000); /* and the library starts again */
    cookie_write(block, 10000, 5);
    CHECK(cookie_is(block, 10000, 5));
    block_free(block);
    books_check();
}

/* What a fresh process does, by its third argument. Kept in static memory: lost on purpose. */
static gn_stream *lost_stream;
static void *lost_block;

static void child_leak(void)
{
    for (size_t i = 0; i < 25; i++)
        lost_block = block_make(1000 + i);
    block_free(block_make(77));
}

static void child_shutdown(void)
{
    size_t leaked = 0;
    child_leak();
    CHECK_OK(gn_stream_create(suite.device, 0, 0, &lost_stream));
    CHECK_OK(gn_shutdown(&leaked));
    CHECK_U64(leaked, 26);
}

static void child_clean(void)
{
    block_free(block_make(1000));
}

static void child_poison(void)
{
    unsigned char bytes[5000];
    void *block = block_make(sizeof bytes);
    bytes_move(bytes, block, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        CHECK(bytes[i] == 0xD0);
    block_free(block);
    block_free(block_make(0));
}

static const struct child_mode {
    const char *name;
    void (*body)(void);
    const char *debug; /* its GENESIS_DEBUG */
} child_modes[] = {
    {"leak", child_leak, ""},
    {"shutdown", child_shutdown, ""},
    {"clean", child_clean, ""},
    {"poison", child_poison, "poison"},
};

static void child_start(void *context)
{
    const struct child_mode *mode = context;
    (void)setenv("GENESIS_LOG", "warning", 1);
    (void)setenv("GENESIS_DEBUG", mode->debug, 1);
    (void)execl("/proc/self/exe", "test_memory", suite.type_name, suite.policy->name, mode->name,
                (char *)NULL);
    check_fail(__FILE__, __LINE__, "the program can start itself");
}

static void child_mode_run(const char *name, struct child_result *result)
{
    for (size_t i = 0; i < sizeof child_modes / sizeof *child_modes; i++) {
        if (strcmp(child_modes[i].name, name) == 0)
            child_run(child_start, (void *)(uintptr_t)&child_modes[i], result);
    }
    CHECK(child_is_ok(result));
}

/* Twenty blocks by name and the others as a number, in debug builds; nothing in others. */
static void leaks_check(const struct child_result *result, int objects)
{
#ifdef GNI_DEBUG
    const int lines = 21 + objects;
    CHECK(child_count(result, "and 5 more blocks") == 1);
    CHECK(child_count(result, "(allocation ") == 20);
    CHECK(child_count(result, " 1 streams, events and modules") == objects);
#else
    const int lines = 0;
    (void)objects;
#endif
    CHECK(child_count(result, "genesis: warning: leak: ") == lines);
    CHECK(child_count(result, "genesis: ") == lines);
}

static void test_leak_reports(void)
{
    static struct child_result result;
    child_mode_run("leak", &result);
    leaks_check(&result, 0);
    child_mode_run("shutdown", &result);
    leaks_check(&result, 1); /* said once, and not again at the end */
    child_mode_run("clean", &result);
    CHECK_TEXT(result.text, "");
}

static void test_poison(void)
{
    static struct child_result result;
    child_mode_run("poison", &result);
    CHECK_TEXT(result.text, "");
}

/* ---- the programs --------------------------------------------------------------------------- */

/* Another manager of the same device, made by hand; making it survives failing host memory. */
static void other_manager_make(void)
{
    gn_status status = GN_ERROR_OUT_OF_HOST_MEMORY;
    for (long nth = 1; status != GN_OK && nth < 10; nth++) {
        size_t live = gni_host_live_count();
        gni_host_fail_after(nth);
        status = gni_manager_create(suite.device, false, suite.policy->name, &suite.other);
        gni_host_fail_after(-1);
        CHECK(status == GN_OK || status == GN_ERROR_OUT_OF_HOST_MEMORY);
        CHECK(status == GN_OK || (suite.other == NULL && gni_host_live_count() == live));
        CHECK(status != GN_OK || nth > 1);
    }
}

static void other_blocks_make(void)
{
    for (int i = 0; i < THEIRS; i++)
        CHECK_OK(gn_memory_alloc(suite.other, 100, NULL, &suite.theirs[i]));
}

/* What lives for ever once it was used is made, and counted after a shutdown. */
static void books_open(void)
{
    gn_memory_manager *const both[] = {suite.manager, suite.other};
    for (int i = 0; i < 2; i++) {
        void *block = NULL;
        CHECK_OK(gn_memory_alloc(both[i], 1, NULL, &block));
        CHECK_OK(gn_memory_free(both[i], block));
        CHECK_OK(gni_manager_clear(both[i]));
    }
    CHECK_OK(gn_shutdown(NULL));
    suite.books = books_count(suite.manager) - books_cache_count(suite.other);
}

static void suite_run(void)
{
    other_manager_make();
    RUN(test_manager);
    RUN(test_policy_changes); /* which makes the other engine, for ever */
    books_open();
    other_blocks_make();
    RUN(test_bad_arguments);
    RUN(test_sizes);
    RUN(test_no_bytes_have_an_address);
    RUN(test_absurd_sizes);
    RUN(test_foreign_pointers);
    RUN(test_double_free);
    RUN(test_interior_pointers);
    RUN(test_wrong_size);
    RUN(test_other_managers_pointer);
    RUN(test_free_with_pending_work);
    RUN(test_address_reuse);
    RUN(test_history_is_bounded);
    RUN(test_peaks);
    RUN(test_random_programs);
    RUN(test_out_of_memory);
    RUN(test_host_memory_fails);
    RUN(test_threads);
    RUN(test_frees_race);
    RUN(test_shutdown);
    RUN(test_leak_reports);
    RUN(test_poison);
    RUN(test_second_frees_were_known);
}

static const struct policy *policy_find(const char *name)
{
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        if (strcmp(policies[i].name, name) == 0)
            return &policies[i];
    }
    return NULL;
}

/* A GPU's manager takes its policy from the environment, which is read once; `virtual` is its own. */
static void policy_choose(void)
{
    if (suite.is_cpu)
        return;
    if (strcmp(suite.policy->name, "virtual") == 0)
        (void)unsetenv("GENESIS_CUDA_ALLOCATOR");
    else
        (void)setenv("GENESIS_CUDA_ALLOCATOR", suite.policy->name, 1);
}

static bool suite_init(void)
{
    int count = 0;
    gn_device_type type = suite.is_cpu ? GN_DEVICE_CPU : GN_DEVICE_CUDA;
    gn_memory_config config;
    policy_choose();
    if (gn_device_count(type, &count) != GN_OK || count == 0)
        return false;
    CHECK_OK(gn_device_get(type, 0, &suite.device));
    CHECK_OK(gn_memory_manager_get(suite.device, &suite.manager));
    if (suite.is_cpu && !suite.policy->is_pooled) {
        CHECK_OK(gn_memory_get_config(suite.manager, &config));
        config.strategy = GN_MEMORY_DIRECT;
        CHECK_OK(gn_memory_configure(suite.manager, &config));
    }
    return suite.manager != NULL;
}

static int child_main(const char *name)
{
    for (size_t i = 0; i < sizeof child_modes / sizeof *child_modes; i++) {
        if (strcmp(child_modes[i].name, name) == 0)
            child_modes[i].body();
    }
    return check_count > 0 && check_failures == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    suite.type_name = argc > 1 ? argv[1] : "cpu";
    suite.is_cpu = strcmp(suite.type_name, "cpu") == 0;
    suite.policy = policy_find(argc > 2 ? argv[2] : suite.is_cpu ? "pool" : "virtual");
    if (suite.policy == NULL) {
        fprintf(stderr, "test_memory [cpu | cuda [direct | pool | virtual]]\n");
        return 2;
    }
    bool is_child = argc > 3;
    if (!is_child)
        (void)setenv("GENESIS_LOG", "error", 1); /* debug builds would report planned leaks */
    if (!suite_init()) {
        printf("skipped: %s\n", gn_error_detail());
        return CHECK_SKIPPED;
    }
    if (is_child)
        return child_main(argv[3]);
    suite_run();
    return check_result();
}
