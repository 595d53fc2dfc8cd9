/*
 * address.c: making and changing the address index.
 *
 * A table is made for the finest grain that its page was ever used with and is kept (A1): a page that
 * comes back with a coarser grain uses part of the same table.
 */
#include "memory/address.h"

#include "base/fork.h"
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

static gn_status table_ensure(struct gni_page *page, unsigned shift)
{
    _Atomic(gn_memory_block *) *table = atomic_load_explicit(&page->table, memory_order_relaxed);
    if (shift == GNI_PAGE_SHIFT) {
        if (table == NULL) {
            atomic_store_explicit(&page->shift, shift, memory_order_relaxed);
            atomic_store_explicit(&page->table, &page->single, memory_order_release);
        } else if (table != &page->single) {
            atomic_store_explicit(&page->shift, shift, memory_order_relaxed);
        }
        return GN_OK;
    }
    /* A shorter table than one of grains would have to be replaced one day, so all are of grains. */
    if (table == NULL || table == &page->single) {
        size_t size = sizeof *table << (GNI_PAGE_SHIFT - GNI_GRAIN_SHIFT);
        table = kept_alloc(size);
        if (table == NULL)
            return gni_error_host_memory(size);
    }
    atomic_store_explicit(&page->shift, shift, memory_order_relaxed);
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
