/*
 * address.c: making and changing the address index.
 *
 * The table that was made for the finest step of a page is kept (AD1): a page that comes back with a coarser
 * one uses part of it. Only a finer one needs another, so that a page has two at most in its life. Tables lie
 * close together, since those of large steps are short and often looked at.
 */
#include "memory/address.h"

#include "base/fork.h"
#include "base/host.h"
#include "base/thread.h"

#include <sys/mman.h>

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/lsan_interface.h>
#define ROOT_REGISTER(address, nbytes) __lsan_register_root_region(address, nbytes)
#else
#define ROOT_REGISTER(address, nbytes) ((void)0)
#endif

_Atomic(struct gni_leaf *) gni_leaves[GNI_LEAF_COUNT];

static struct gni_mutex leaves_mutex = GNI_MUTEX_INIT;
static struct gni_once leaves_once = GNI_ONCE_INIT;

static const struct gni_fork_handlers leaves_fork = {.mutex = &leaves_mutex};

static void leaves_start(void)
{
    gni_fork_register(GNI_FORK_ADDRESS, &leaves_fork);
}

_Static_assert(GNI_SIZE_SMALL_MOST == 1 << GNI_HALF_SHIFT, "medium blocks are larger than that");

/* A cache line lies before each table. Users touch the first bytes of pages of 4 KiB, which fall into one set of the
 * processor's cache, and would push out the entry of a page's first block before it is freed; and the entries of one
 * place in many pages would share a set. */
enum {
    TABLE_APART = GNI_HOST_LINE,
    TABLE_MOST = sizeof(void *) << (GNI_PAGE_SHIFT - GNI_GRAIN_SHIFT),
    CHUNK_BYTES = 8 * (TABLE_MOST + TABLE_APART), /* that the system is asked for at a time */
};

/* Where the next table comes from; under the mutex. */
static char *chunk_next;
static size_t chunk_left;

/* Zeros that the system gives when they are touched, and that are kept for ever. */
static void *kept_alloc(size_t nbytes)
{
    void *made = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED)
        return NULL;
    ROOT_REGISTER(made, nbytes); /* a leak checker does not look here by itself */
    return made;
}

static gn_status leaf_ensure(const char *address)
{
    _Atomic(struct gni_leaf *) *slot = &gni_leaves[(uintptr_t)address >> GNI_LEAF_SHIFT];
    if (atomic_load_explicit(slot, memory_order_acquire) != NULL)
        return GN_OK;
    gni_once_run(&leaves_once, leaves_start);
    gni_mutex_lock(&leaves_mutex);
    struct gni_leaf *leaf = atomic_load(slot);
    if (leaf == NULL && (leaf = kept_alloc(sizeof *leaf)) != NULL)
        atomic_store_explicit(slot, leaf, memory_order_release);
    gni_mutex_unlock(&leaves_mutex);
    return leaf != NULL ? GN_OK : gni_error_host_memory(sizeof *leaf);
}

/* An empty table of steps of 1 << shift bytes; 0 if the host has no memory. */
static gni_table table_make(unsigned shift)
{
    size_t nbytes = sizeof(_Atomic(gn_memory_block *)) << (GNI_PAGE_SHIFT - shift);
    size_t taken = TABLE_APART + nbytes;
    gni_assert(nbytes % GNI_TABLE_ALIGN == 0 && nbytes <= TABLE_MOST);
    gni_table made = 0;
    gni_mutex_lock(&leaves_mutex);
    if (chunk_left < taken) {
        char *chunk = kept_alloc(CHUNK_BYTES);
        chunk_next = chunk != NULL ? chunk : chunk_next;
        chunk_left = chunk != NULL ? CHUNK_BYTES : chunk_left;
    }
    if (chunk_left >= taken) {
        made = (uintptr_t)(chunk_next + TABLE_APART) | shift;
        chunk_next += taken;
        chunk_left -= taken;
    }
    gni_mutex_unlock(&leaves_mutex);
    return made;
}

static gn_status table_ensure(struct gni_page *page, unsigned shift)
{
    gni_table table = gni_table_of(page->halves, shift);
    if (shift < GNI_HALF_SHIFT) {
        if (page->kept == 0 || gni_table_shift(page->kept) > shift) {
            gni_table made = table_make(shift);
            if (made == 0)
                return gni_error_host_memory(sizeof(gn_memory_block *) << (GNI_PAGE_SHIFT - shift));
            page->kept = made;
        }
        table = gni_table_of(gni_table_entries(page->kept), shift);
    }
    atomic_store_explicit(&page->table, table, memory_order_release);
    return GN_OK;
}

gn_status gni_address_open(struct gni_region *region, char *start, size_t nbytes, unsigned shift)
{
    gni_assert((uintptr_t)start % GNI_PAGE == 0 && nbytes % GNI_PAGE == 0);
    if (((uintptr_t)start + nbytes - 1) >> GNI_ADDRESS_BITS != 0)
        return gni_error(GN_ERROR_UNSUPPORTED, "the address %p is beyond %d bits", (void *)start,
                         GNI_ADDRESS_BITS);
    for (char *at = start; at < start + nbytes; at += GNI_PAGE) {
        gn_status status = leaf_ensure(at);
        if (status == GN_OK)
            status = table_ensure(gni_page_find(at), shift);
        if (status != GN_OK) {
            gni_address_close(start, (size_t)(at - start));
            return status;
        }
        struct gni_page *page = gni_page_find(at);
        gni_assert(page->region == NULL || page->region == region);
        page->region = region;
    }
    return GN_OK;
}

void gni_address_close(char *start, size_t nbytes)
{
    for (char *at = start; at < start + nbytes; at += GNI_PAGE) {
        struct gni_page *page = gni_page_find(at);
        page->region = NULL;
        page->mapping = NULL;
    }
}
