/*
 * fake_malloc.c: makes the memory of one library fail at the nth request, and counts what it holds.
 *
 * Loaded by LD_PRELOAD, so that the library is tested as it is shipped, under Python. Only requests that come from
 * the watched addresses, the library's code, are counted and fail: malloc, calloc and realloc for bookkeeping, mmap for
 * tensors. Everybody else, Python and NumPy above all, gets what they ask for.
 *
 * A counted block has a header of 16 bytes, whose second half is a mark. With other blocks that word is the size of
 * the C library's chunk, which is never that large: so a free knows whose block it is.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/* The C library's own, under the names that it has for whoever takes over the others. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void __libc_free(void *block);

#define EXPORTED __attribute__((visibility("default")))

EXPORTED void fake_malloc_watch(uintptr_t begin, uintptr_t end);
EXPORTED long fake_malloc_fail(long nth);
EXPORTED long fake_malloc_live(void);

#define MARK UINT64_C(0x67656e6573697321)

enum {
    HEADER = 16,
};

static uintptr_t watched_begin, watched_end;
static atomic_long countdown = -1, live;

/* From now on calls from these addresses count. */
void fake_malloc_watch(uintptr_t begin, uintptr_t end)
{
    watched_begin = begin;
    watched_end = end;
}

/* The nth following request fails, once; -1: none. What was left of the last count: 0 if it was reached. */
long fake_malloc_fail(long nth)
{
    return atomic_exchange(&countdown, nth);
}

/* Blocks that the library has and did not free. */
long fake_malloc_live(void)
{
    return atomic_load(&live);
}

static int is_watched(const void *caller)
{
    return (uintptr_t)caller >= watched_begin && (uintptr_t)caller < watched_end;
}

static int must_fail(void)
{
    return atomic_load(&countdown) > 0 && atomic_fetch_sub(&countdown, 1) == 1;
}

static uint64_t *header_of(void *block)
{
    return (uint64_t *)block - 2;
}

static int is_counted(void *block)
{
    return block != NULL && header_of(block)[1] == MARK;
}

static void *counted(void *raw)
{
    if (raw == NULL)
        return NULL;
    ((uint64_t *)raw)[1] = MARK;
    return (uint64_t *)raw + 2;
}

EXPORTED void *calloc(size_t count, size_t size)
{
    if (!is_watched(__builtin_return_address(0)))
        return __libc_calloc(count, size);
    if (must_fail())
        return NULL;
    void *block = counted(__libc_calloc(1, count * size + HEADER));
    if (block != NULL)
        atomic_fetch_add(&live, 1);
    return block;
}

EXPORTED void *malloc(size_t size)
{
    if (!is_watched(__builtin_return_address(0)))
        return __libc_malloc(size);
    if (must_fail())
        return NULL;
    void *block = counted(__libc_malloc(size + HEADER));
    if (block != NULL)
        atomic_fetch_add(&live, 1);
    return block;
}

EXPORTED void *realloc(void *block, size_t size)
{
    if (!is_watched(__builtin_return_address(0)) && !is_counted(block))
        return __libc_realloc(block, size);
    if (must_fail())
        return NULL;
    void *moved = __libc_realloc(block != NULL ? header_of(block) : NULL, size + HEADER);
    if (moved != NULL && block == NULL)
        atomic_fetch_add(&live, 1);
    return counted(moved);
}

EXPORTED void free(void *block)
{
    if (!is_counted(block)) {
        __libc_free(block);
        return;
    }
    header_of(block)[1] = 0;
    __libc_free(header_of(block));
    atomic_fetch_sub(&live, 1);
}

EXPORTED void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset)
{
    static void *(*next)(void *, size_t, int, int, int, off_t);
    if (next == NULL)
        *(void **)&next = dlsym(RTLD_NEXT, "mmap");
    if (is_watched(__builtin_return_address(0)) && must_fail()) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return next(address, length, protection, flags, file, offset);
}
