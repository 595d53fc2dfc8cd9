/*
 * books.h: the host memory of the library's own bookkeeping, as far as it must come back.
 *
 * The threads' caches of a pool and their claims are kept for ever (cache.h, CA2), so they do not count. What is compared
 * is the state after gn_shutdown(), or where nothing was ever cached.
 */
#ifndef GNI_TESTS_BOOKS_H
#define GNI_TESTS_BOOKS_H

#include "check.h"

#include "base/host.h"
#include "memory/cache.h"

#include <unistd.h>

static inline size_t books_cache_count(const gn_memory_manager *manager)
{
    size_t count = 0;
    for (const struct gni_cache *cache = atomic_load(&manager->pool->caches); cache != NULL;
         cache = cache->next)
        count += cache->claim != NULL ? 2 : 1;
    return count;
}

/* Host blocks that are alive, without the caches of a manager. */
static inline size_t books_count(const gn_memory_manager *manager)
{
    return gni_host_live_count() - books_cache_count(manager);
}

/* Whether the count becomes what it was: a stream's thread frees its queue soon, not at once. */
static inline bool books_settle(const gn_memory_manager *manager, size_t expected)
{
    for (int i = 0; i < 20000 && books_count(manager) != expected; i++)
        (void)usleep(500);
    CHECK_U64(books_count(manager), expected);
    return books_count(manager) == expected;
}

#endif
