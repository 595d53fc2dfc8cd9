/*
 * address.h: from an address to its block, without a lock, a hash or a search.
 *
 * The addresses of all managers are one tree of two levels over pages of 2 MiB:
 *
 *     address  47 ...... 34 33 ...... 21 20 ........ 0
 *              root (16 K)  leaf (8 K)   place in the page
 *
 * A leaf covers 16 GiB and holds the page records themselves. A page in use has a table of the blocks
 * that start in it, one entry for each step of its region: 512 bytes, 8 KiB, or half a page. Blocks of more
 * than half a page have no two starts in one half: their table of two entries is in the record itself, so
 * that the blocks which come and go most often touch one cache line here.
 *
 * Invariants:
 *   AD1  leaves, and tables of pages, are never given back: a reader needs no lock;
 *   AD2  an entry is written with release order after the block it points to is complete;
 *   AD3  the fields of a page but the entries change under the lock of the pool that has the page;
 *   AD4  a table and its step are one word, so that no reader uses one with the step of another.
 *
 * Threads: finding is free for all; the rest is for the owner of the addresses, under its lock, or for the thread that
 * has their region to itself (claim.h).
 */
#ifndef GNI_MEMORY_ADDRESS_H
#define GNI_MEMORY_ADDRESS_H

#include "memory/block.h"
#include "memory/size.h"

enum {
    GNI_ADDRESS_BITS = 48,
    GNI_LEAF_SHIFT = 34,
    GNI_LEAF_PAGES = 1 << (GNI_LEAF_SHIFT - GNI_PAGE_SHIFT),
    GNI_LEAF_COUNT = 1 << (GNI_ADDRESS_BITS - GNI_LEAF_SHIFT),
    GNI_TABLE_ALIGN = 32, /* above every shift */
};

struct gni_mapping;
struct gni_claim;

/* A table of blocks and, in the low bits of its address, the shift of its step: AD4. 0: there is none. */
typedef uintptr_t gni_table;

struct gni_page {
    _Alignas(64) _Atomic(gni_table) table; /* of its blocks; 0: not in use yet */
    gni_table kept;            /* the finest table that was made for it, with its own step; or 0 */
    struct gni_region *region; /* that has the page now, or NULL */
    struct gni_mapping *mapping;          /* the memory behind it, or NULL */
    _Atomic(gn_memory_block *) halves[2]; /* the table of blocks that are larger than half a page */
    _Atomic(struct gni_claim *) claim;    /* of the region: claim.h */
};

_Static_assert(sizeof(struct gni_page) == 64, "a cache line");

struct gni_leaf {
    struct gni_page pages[GNI_LEAF_PAGES];
};

extern _Atomic(struct gni_leaf *) gni_leaves[GNI_LEAF_COUNT];

static inline char *gni_page_start(const char *address)
{
    return (char *)((uintptr_t)address & ~(uintptr_t)(GNI_PAGE - 1));
}

/* The record of an address's page; NULL if nobody ever had it. */
static inline struct gni_page *gni_page_find(const void *address)
{
    uintptr_t number = (uintptr_t)address;
    if (number >> GNI_ADDRESS_BITS != 0)
        return NULL;
    struct gni_leaf *leaf =
        atomic_load_explicit(&gni_leaves[number >> GNI_LEAF_SHIFT], memory_order_acquire);
    return leaf != NULL ? &leaf->pages[number >> GNI_PAGE_SHIFT & (GNI_LEAF_PAGES - 1)] : NULL;
}

static inline gni_table gni_table_of(const _Atomic(gn_memory_block *) *entries, unsigned shift)
{
    return (uintptr_t)entries | shift;
}

static inline unsigned gni_table_shift(gni_table table)
{
    return (unsigned)table & (GNI_TABLE_ALIGN - 1);
}

static inline _Atomic(gn_memory_block *) *gni_table_entries(gni_table table)
{
    return (_Atomic(gn_memory_block *) *)(table & ~(uintptr_t)(GNI_TABLE_ALIGN - 1));
}

/* The entry of an address; NULL if its page is not in use. */
static inline _Atomic(gn_memory_block *) *gni_address_entry(const void *address)
{
    struct gni_page *page = gni_page_find(address);
    if (page == NULL)
        return NULL;
    uintptr_t place = (uintptr_t)address & (GNI_PAGE - 1);
    gni_table table = atomic_load_explicit(&page->table, memory_order_acquire);
    if (table == gni_table_of(page->halves, GNI_HALF_SHIFT))
        return &page->halves[place >> GNI_HALF_SHIFT]; /* where it is need not be read first */
    return table != 0 ? gni_table_entries(table) + (place >> gni_table_shift(table)) : NULL;
}

/* The block at exactly this address that is live, cached or pending; NULL if there is none. */
static inline gn_memory_block *gni_address_find(const void *address)
{
    _Atomic(gn_memory_block *) *entry = gni_address_entry(address);
    if (entry == NULL)
        return NULL;
    gn_memory_block *block = atomic_load_explicit(entry, memory_order_acquire);
    return block != NULL && block->address == address ? block : NULL;
}

/*
 * Makes the records of the pages of [start, start + nbytes), whole pages, for a region of whose blocks no
 * two start in one step of 1 << shift bytes. On failure nothing is in use that was not before.
 */
gn_status gni_address_open(struct gni_region *region, char *start, size_t nbytes,
                           unsigned shift) GN_NODISCARD;

/* No region has the pages any more; no block starts in them. */
void gni_address_close(char *start, size_t nbytes);

/* Makes a block known, and forgets it. */
static inline void gni_address_add(gn_memory_block *block)
{
    _Atomic(gn_memory_block *) *entry = gni_address_entry(block->address);
    gni_assert(entry != NULL && atomic_load(entry) == NULL);
    atomic_store_explicit(entry, block, memory_order_release);
}

static inline void gni_address_remove(gn_memory_block *block)
{
    _Atomic(gn_memory_block *) *entry = gni_address_entry(block->address);
    gni_assert(entry != NULL && atomic_load(entry) == block);
    atomic_store_explicit(entry, NULL, memory_order_release);
}

#endif
