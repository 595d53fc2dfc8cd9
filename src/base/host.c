/*
 * host.c: the C library's allocator behind a size check, a failure injector and a counter.
 *
 * Both atomics are relaxed: they order nothing, and the tests that read them join their threads
 * first. Bookkeeping allocates rarely enough that sharing the counter's cache line costs nothing.
 */
#include "base/host.h"

#include "base/checked.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    HOST_SMALL = 1024, /* bytes */
};

static atomic_size_t host_live_count;

/* Allocations until the one that fails, counting it; never when it is not positive. */
static atomic_long host_fail_countdown = -1;

/*
 * The load keeps the usual path free of writes. Two threads may both pass it with 1 left; only one
 * of them then takes the 1 away, so the failure happens once.
 */
static bool host_must_fail(void)
{
    if (atomic_load_explicit(&host_fail_countdown, memory_order_relaxed) <= 0)
        return false;
    return atomic_fetch_sub_explicit(&host_fail_countdown, 1, memory_order_relaxed) == 1;
}

static bool host_can_try(size_t size)
{
    return gni_size_is_possible(size) && !host_must_fail();
}

/* malloc(0) may give NULL, which means failure here, and realloc(block, 0) may free the block. */
static size_t host_size_at_least_one(size_t size)
{
    return size == 0 ? 1 : size;
}

void *gni_host_alloc(size_t size)
{
    if (!host_can_try(size))
        return NULL;
    /* calloc() of glibc does not look into the thread's own stock of small blocks; malloc() does. */
    bool is_small = size <= HOST_SMALL;
    void *block = is_small ? malloc(host_size_at_least_one(size)) : calloc(1, size);
    if (is_small && block != NULL)
        memset(block, 0, size);
    if (block != NULL)
        atomic_fetch_add_explicit(&host_live_count, 1, memory_order_relaxed);
    return block;
}

void *gni_host_realloc(void *block, size_t size)
{
    if (!host_can_try(size))
        return NULL;
    void *moved = realloc(block, host_size_at_least_one(size));
    if (moved != NULL && block == NULL)
        atomic_fetch_add_explicit(&host_live_count, 1, memory_order_relaxed);
    return moved;
}

void gni_host_free(void *block)
{
    if (block == NULL)
        return;
    atomic_fetch_sub_explicit(&host_live_count, 1, memory_order_relaxed);
    free(block);
}

void gni_host_fail_after(long count)
{
    atomic_store_explicit(&host_fail_countdown, count, memory_order_relaxed);
}

size_t gni_host_live_count(void)
{
    return atomic_load_explicit(&host_live_count, memory_order_relaxed);
}
