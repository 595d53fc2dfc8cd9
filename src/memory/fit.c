/*
 * fit.c: the index of free blocks by size.
 */
#include "memory/fit.h"

enum {
    SEARCH_MOST = 16, /* blocks of a class that are looked at once one is large enough */
};

/* The better of two blocks that are large enough. */
static gn_memory_block *better(gn_memory_block *best, gn_memory_block *other)
{
    if (best == NULL || other->nbytes < best->nbytes ||
        (other->nbytes == best->nbytes && other->start < best->start))
        return other;
    return best;
}

static gn_memory_block *list_search(gn_memory_block *first, size_t nbytes)
{
    gn_memory_block *best = NULL;
    int seen = 0;
    for (gn_memory_block *block = first; block != NULL && (seen < SEARCH_MOST || best == NULL);
         block = block->next, seen++) {
        if (block->nbytes >= nbytes)
            best = better(best, block);
    }
    return best;
}

static gn_memory_block *lowest_find(const struct gni_fit *fit, size_t nbytes)
{
    gn_memory_block *lowest = NULL;
    gni_fit_each (block, fit) {
        if (block->nbytes >= nbytes && (lowest == NULL || block->start < lowest->start))
            lowest = block;
    }
    return lowest;
}

gn_memory_block *gni_fit_find(const struct gni_fit *fit, size_t nbytes, bool is_first)
{
    if (fit->nbytes < nbytes)
        return NULL;
    if (is_first)
        return lowest_find(fit, nbytes);
    /* In its own class a block may be too small; in every higher one all are large enough. */
    unsigned class = gni_class_down(nbytes >> GNI_GRAIN_SHIFT);
    gn_memory_block *found = list_search(fit->lists[class], nbytes);
    return found != NULL ? found : list_search(gni_fit_from(fit, class + 1), nbytes);
}

gn_memory_block *gni_fit_largest(const struct gni_fit *fit)
{
    gn_memory_block *largest = NULL;
    unsigned last = GNI_SIZE_CLASSES;
    for (size_t class = 0;
         (class = gni_bitmap_find_set(fit->bitmap, GNI_SIZE_CLASSES, class)) < GNI_SIZE_CLASSES;
         class ++)
        last = (unsigned)class;
    if (last == GNI_SIZE_CLASSES)
        return NULL;
    for (gn_memory_block *block = fit->lists[last]; block != NULL; block = block->next)
        if (largest == NULL || block->nbytes > largest->nbytes)
            largest = block;
    return largest;
}
