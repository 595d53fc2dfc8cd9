/*
 * fit.c: the index of free blocks by size.
 */
#include "memory/fit.h"

gn_memory_block *gni_fit_lowest(const struct gni_fit *fit, size_t nbytes)
{
    gn_memory_block *lowest = NULL;
    gni_fit_each (block, fit) {
        if (block->nbytes >= nbytes && (lowest == NULL || block->start < lowest->start))
            lowest = block;
    }
    return lowest;
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
