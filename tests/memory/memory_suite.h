/*
 * memory_suite.h: what the files of test_memory share: the device and its manager, what the policies differ in,
 * and blocks that are known again by what they hold.
 */
#ifndef GNI_TESTS_MEMORY_SUITE_H
#define GNI_TESTS_MEMORY_SUITE_H

#include "books.h"
#include "child.h"

#include "base/host.h"
#include "genesis/genesis.h"
#include "memory/manager.h"
#include "memory/size.h"

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

struct suite {
    gn_device *device;
    gn_memory_manager *manager;
    gn_memory_manager *other; /* of the same device and policy, known to this test only */
    void *theirs[THEIRS];     /* blocks of the other one */
    const char *type_name;
    const struct policy *policy;
    bool is_cpu;
    size_t books;                              /* host blocks after a shutdown */
    uint64_t second_frees, second_frees_known; /* see second_free_check() */
};

extern struct suite suite; /* test_memory.c has it */

/* ---- helpers -------------------------------------------------------------------------------- */

static inline void *block_make(size_t nbytes)
{
    void *pointer = NULL;
    CHECK_OK(gn_memory_alloc(suite.manager, nbytes, NULL, &pointer));
    CHECK(pointer != NULL);
    return pointer;
}

static inline void block_free(void *pointer)
{
    CHECK_OK(gn_memory_free(suite.manager, pointer));
}

static inline gn_memory_statistics statistics_now(void)
{
    gn_memory_statistics now = {0};
    CHECK_OK(gn_memory_get_statistics(suite.manager, &now));
    return now;
}

/* Are they the same? All fields are of one width. Says which is not, by its place in the structure. */
static inline bool statistics_same(const gn_memory_statistics *now,
                                   const gn_memory_statistics *expected)
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

/* ---- what the policies differ in -------------------------------------------------------------- */

/* What a block of so many bytes counts as live, at least; up to 64 KiB exactly. */
static inline size_t policy_live_bytes(size_t nbytes)
{
    return suite.policy->is_pooled ? gni_size_round(nbytes) : nbytes;
}

/* How much more than was asked for a block may take: size.h, and a cached block may be a little larger. */
static inline size_t policy_waste_most(size_t nbytes)
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
static inline size_t block_live_bytes(const void *pointer, size_t nbytes)
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
static inline void statistics_check(const gn_memory_statistics *now)
{
    CHECK_U64(now->reserved_bytes, now->live_bytes + now->pending_bytes + now->cached_bytes);
    CHECK(now->reserved_bytes <= now->reserved_bytes_peak);
    CHECK(now->requested_bytes <= now->live_bytes);
    CHECK(now->largest_free_bytes <= now->cached_bytes);
    CHECK(now->live_bytes + now->pending_bytes <= now->active_bytes_peak);
    CHECK(now->live_count + now->pending_count <= now->active_count_peak);
    CHECK(now->live_bytes_peak <= now->active_bytes_peak);
    CHECK(now->live_count_peak <= now->active_count_peak);
    CHECK((now->pending_count == 0) == (now->pending_bytes == 0));
    CHECK(now->driver_alloc_count - now->driver_free_count <= now->driver_count_peak);
    CHECK(now->reserved_bytes <= now->driver_bytes_total);
    CHECK_U64(now->alloc_count, now->stream_hit_count + now->global_hit_count + now->miss_count);
    if (suite.policy->is_pooled)
        CHECK((now->driver_alloc_count == now->driver_free_count) == (now->reserved_bytes == 0));
}

/* As statistics_are(), but what is a pool's own affair is taken from what it says. */
static inline bool statistics_fit(gn_memory_statistics *expected)
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
        expected->driver_bytes_total = now.driver_bytes_total;
        expected->driver_count_peak = now.driver_count_peak;
        expected->wait_count = now.wait_count;
    }
    expected->active_bytes_peak = expected->live_bytes_peak; /* nothing is ever pending here */
    expected->active_count_peak = expected->live_count_peak;
    if (!suite.policy->is_pooled)
        expected->driver_count_peak = expected->live_count_peak;
    return statistics_same(&now, expected);
}

/*
 * A second free, some time after the first: it is refused, and direct knows why for thousands of frees.
 * A pool's history may have lost an address to another one; that nearly all are known is checked at the
 * end.
 */
static inline void second_free_check(void *pointer)
{
    gn_status status = gn_memory_free(suite.manager, pointer);
    CHECK(status == GN_ERROR_DOUBLE_FREE ||
          (suite.policy->is_pooled && status == GN_ERROR_INVALID_POINTER));
    suite.second_frees++;
    suite.second_frees_known += status == GN_ERROR_DOUBLE_FREE;
}

/* Everything idle goes back; there must be nothing else. */
static inline void memory_give_back(void)
{
    CHECK_OK(gn_memory_trim(suite.manager, 0, NULL));
    CHECK_U64(statistics_now().live_count, 0);
    CHECK_U64(statistics_now().reserved_bytes, 0);
    CHECK_U64(statistics_now().driver_alloc_count, statistics_now().driver_free_count);
}

/* After a shutdown the library's own books are as they were after the first one. */
static inline void books_check(void)
{
    size_t leaked = 4711;
    CHECK_OK(gn_shutdown(&leaked));
    CHECK_U64(leaked, 0);
    CHECK(books_settle(suite.manager, suite.books + books_cache_count(suite.other)));
}

/* ---- contents ------------------------------------------------------------------------------- */

/* Bytes to and from a block, wherever it is. The device is idle afterwards. */
static inline void bytes_move(void *to, const void *from, size_t nbytes)
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
static inline void cookie_write(void *pointer, size_t nbytes, uint64_t cookie)
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

static inline bool cookie_is(const void *pointer, size_t nbytes, uint64_t cookie)
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

/* ---- the other files ------------------------------------------------------------------------ */

void test_memory_blocks(void);
void test_memory_load(void);

#endif
