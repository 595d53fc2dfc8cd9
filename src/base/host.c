/*
 * host.c: the C library's allocator behind a size check, a failure injector and a counter.
 *
 * The atomics are relaxed: they order nothing, and the tests that read them join their threads first. Who wants the
 * counter starts it: a count that is kept for nobody would cost more than the allocation.
 */
#include "base/host.h"

#include "base/checked.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* 0: nobody counts. It starts high, since what was allocated before may be freed. */
static atomic_size_t host_live_count;

static const size_t HOST_COUNT_START = (size_t)1 << 32;

enum {
    HOST_SMALL_MOST = 1024, /* bytes */
#ifdef GNI_DEBUG
    HOST_KEEPS = false, /* so that sanitizers see who uses a block that is free */
#else
    HOST_KEEPS = true,
#endif
};

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
    return (size <= HOST_SMALL_MOST || gni_size_is_possible(size)) && !host_must_fail();
}

/* malloc(0) may give NULL, which means failure here, and realloc(block, 0) may free the block. */
static size_t host_size_at_least_one(size_t size)
{
    return size == 0 ? 1 : size;
}

static void host_count(size_t change)
{
    if (atomic_load_explicit(&host_live_count, memory_order_relaxed) != 0)
        atomic_fetch_add_explicit(&host_live_count, change, memory_order_relaxed);
}

static void *host_counted(void *block)
{
    if (block != NULL)
        host_count(1);
    return block;
}

void *gni_host_alloc(size_t size)
{
    if (!host_can_try(size))
        return NULL;
    size = host_size_at_least_one(size);
    if (size > HOST_SMALL_MOST)
        return host_counted(calloc(1, size));
    /* glibc keeps small blocks at hand for malloc, not for calloc, into which the compiler would turn this. */
    void *block = malloc(size);
    __asm__("" : "+r"(block));
    if (block != NULL)
        memset(block, 0, size);
    return host_counted(block);
}

void *gni_host_alloc_lines(size_t size)
{
    if (!gni_size_align_up(host_size_at_least_one(size), GNI_HOST_LINE, &size) ||
        !host_can_try(size))
        return NULL;
    void *block = aligned_alloc(GNI_HOST_LINE, size);
    if (block != NULL)
        memset(block, 0, size);
    return host_counted(block);
}

void *gni_host_realloc(void *block, size_t size)
{
    if (!host_can_try(size))
        return NULL;
    void *moved = realloc(block, host_size_at_least_one(size));
    return block == NULL ? host_counted(moved) : moved;
}

void gni_host_free(void *block)
{
    if (block == NULL)
        return;
    host_count((size_t)-1);
    free(block);
}

/* ---- a block at hand ---------------------------------------------------------------------------- */

/* For the counter, and for whoever asked, a block that is kept is free. */
struct kept {
    void *block;
    bool is_watched; /* the end of the thread frees the block */
};

static _Thread_local struct kept thread_kept;

/* What finds a thread's variable is a call, which the compiler would repeat at each use. */
static inline struct kept *kept_get(void)
{
    struct kept *kept = &thread_kept;
    __asm__("" : "+r"(kept));
    return kept;
}

static pthread_key_t thread_key;
static struct gni_once thread_key_once = GNI_ONCE_INIT;

static void kept_free(void *unused)
{
    (void)unused;
    free(thread_kept.block);
    thread_kept = (struct kept){NULL, false};
}

static void thread_key_create(void)
{
    int failed = pthread_key_create(&thread_key, kept_free);
    gni_assert(!failed);
    (void)failed;
}

/* Once in a thread. */
static __attribute__((noinline)) bool kept_watch(struct kept *kept)
{
    if (!HOST_KEEPS)
        return false;
    gni_once_run(&thread_key_once, thread_key_create);
    return kept->is_watched = pthread_setspecific(thread_key, kept) == 0;
}

void *gni_host_alloc_kept(void)
{
    if (host_must_fail())
        return NULL;
    struct kept *kept = kept_get();
    void *block = kept->block;
    kept->block = NULL;
    return host_counted(block != NULL ? block : malloc(GNI_HOST_KEPT));
}

void gni_host_free_kept(void *block)
{
    struct kept *kept = kept_get();
    bool can_keep = kept->block == NULL && (kept->is_watched || kept_watch(kept));
    if (!can_keep) {
        gni_host_free(block);
        return;
    }
    host_count((size_t)-1);
    kept->block = block;
}

void gni_host_fail_after(long count)
{
    atomic_store_explicit(&host_fail_countdown, count, memory_order_relaxed);
}

size_t gni_host_live_count(void)
{
    size_t none = 0;
    atomic_compare_exchange_strong(&host_live_count, &none, HOST_COUNT_START);
    return atomic_load_explicit(&host_live_count, memory_order_relaxed);
}
