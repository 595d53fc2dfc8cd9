/*
 * fit.h: free blocks sorted by size: the smallest sufficient one in constant time.
 *
 * One list for each size class (size.h), and a bitmap of the lists that are not empty. A block is in
 * the largest class that it fills, so every block of a higher class is larger.
 *
 * Threads: the owner guards it.
 */
#ifndef GNI_MEMORY_FIT_H
#define GNI_MEMORY_FIT_H

#include "memory/block.h"
#include "memory/size.h"

struct gni_fit {
    gn_memory_block *lists[GNI_SIZE_CLASSES];
    uint64_t bitmap[GNI_SIZE_CLASSES / 64]; /* bit c: lists[c] is not empty */
    size_t count;                           /* blocks */
    size_t nbytes;                          /* in all blocks */
};

/* Puts a block into the list of its class. */
static inline void gni_fit_link(struct gni_fit *fit, gn_memory_block *block, unsigned class)
{
    gni_assert(class < GNI_SIZE_CLASSES);
    block->class = class;
    gn_memory_block *first = fit->lists[class];
    block->prev = NULL;
    block->next = first;
    if (first != NULL)
        first->prev = block;
    fit->lists[class] = block;
    gni_bitmap_set(fit->bitmap, class);
}

static inline void gni_fit_unlink(struct gni_fit *fit, gn_memory_block *block)
{
    unsigned class = block->class;
    if (block->prev != NULL)
        block->prev->next = block->next;
    else
        fit->lists[class] = block->next;
    if (block->next != NULL)
        block->next->prev = block->prev;
    if (fit->lists[class] == NULL)
        gni_bitmap_clear(fit->bitmap, class);
}

static inline void gni_fit_insert(struct gni_fit *fit, gn_memory_block *block)
{
    gni_fit_link(fit, block, gni_class_down(block->nbytes >> GNI_GRAIN_SHIFT));
    fit->count++;
    fit->nbytes += block->nbytes;
}

static inline void gni_fit_remove(struct gni_fit *fit, gn_memory_block *block)
{
    gni_fit_unlink(fit, block);
    block->next = block->prev = NULL;
    fit->count--;
    fit->nbytes -= block->nbytes;
}

/* A block of the index grows or shrinks, and is moved where its class changes. */
static inline void gni_fit_resize(struct gni_fit *fit, gn_memory_block *block, size_t nbytes)
{
    unsigned class = gni_class_down(nbytes >> GNI_GRAIN_SHIFT);
    fit->nbytes += nbytes - block->nbytes;
    block->nbytes = nbytes;
    if (class == block->class)
        return;
    gni_fit_unlink(fit, block);
    gni_fit_link(fit, block, class);
}

/* The block of at least `nbytes` at the lowest address. It stays in the index. NULL if there is none. */
gn_memory_block *gni_fit_lowest(const struct gni_fit *fit, size_t nbytes);

/* The largest block; NULL if there is none. */
gn_memory_block *gni_fit_largest(const struct gni_fit *fit);

/* The first block of the first class from `class` on that is not empty; NULL at the end. */
static inline gn_memory_block *gni_fit_from(const struct gni_fit *fit, unsigned class)
{
    size_t found = gni_bitmap_find_set(fit->bitmap, GNI_SIZE_CLASSES, class);
    return found < GNI_SIZE_CLASSES ? fit->lists[found] : NULL;
}

enum {
    GNI_FIT_SEARCH_MOST = 16, /* blocks of a class that are looked at once one is large enough */
};

/* The best block of a list for `nbytes`, as gni_fit_best() says. */
static inline gn_memory_block *gni_fit_search(gn_memory_block *first, size_t nbytes)
{
    gn_memory_block *best = NULL;
    int seen = 0;
    for (gn_memory_block *block = first;
         block != NULL && (seen < GNI_FIT_SEARCH_MOST || best == NULL); block = block->next, seen++)
        if (block->nbytes >= nbytes &&
            (best == NULL || block->nbytes < best->nbytes ||
             (block->nbytes == best->nbytes && block->start < best->start)))
            best = block;
    return best;
}

/* The best block of at least `nbytes`: of the smallest class that has one, the smallest among the first
 * few, the lower address among equals. It stays in the index. NULL if there is none. */
static inline gn_memory_block *gni_fit_best(const struct gni_fit *fit, size_t nbytes)
{
    if (fit->nbytes < nbytes) /* there may not even be a class for it */
        return NULL;
    /* In its own class a block may be too small; in every higher one all are large enough. */
    unsigned class = gni_class_down(nbytes >> GNI_GRAIN_SHIFT);
    gn_memory_block *found = gni_fit_search(fit->lists[class], nbytes);
    return found != NULL ? found : gni_fit_search(gni_fit_from(fit, class + 1), nbytes);
}

/*
 * Visits each block from the smallest class up: gni_fit_each (block, &fit) { ... }. The body may
 * remove the block that it visits, and insert none.
 */
#define gni_fit_each(block, fit)                                     \
    for (gn_memory_block *block = gni_fit_from((fit), 0),            \
                         *block##_next = gni_fit_next((fit), block); \
         block != NULL; block = block##_next, block##_next = gni_fit_next((fit), block))

static inline gn_memory_block *gni_fit_next(const struct gni_fit *fit, const gn_memory_block *block)
{
    if (block == NULL)
        return NULL;
    if (block->next != NULL)
        return block->next;
    return gni_fit_from(fit, block->class + 1);
}

#endif
