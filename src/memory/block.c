/*
 * block.c: the stock of block descriptors, in slabs that start on a cache line.
 */
#include "memory/block.h"

#include "base/host.h"

enum {
    SLAB_BLOCKS = 255,
};

struct gni_slab {
    struct gni_slab *next;
    _Alignas(GNI_HOST_LINE) gn_memory_block blocks[SLAB_BLOCKS];
};

static gn_status slab_add(struct gni_blocks *blocks)
{
    struct gni_slab *slab = gni_host_alloc_lines(sizeof *slab);
    if (slab == NULL)
        return gni_error_host_memory(sizeof *slab);
    slab->next = blocks->slabs;
    blocks->slabs = slab;
    for (size_t i = SLAB_BLOCKS; i-- > 0;)
        gni_blocks_give(blocks, &slab->blocks[i]);
    return GN_OK;
}

gn_status gni_blocks_reserve(struct gni_blocks *blocks, size_t count)
{
    while (blocks->count < count)
        GN_TRY(slab_add(blocks));
    return GN_OK;
}

void gni_blocks_deinit(struct gni_blocks *blocks)
{
    for (struct gni_slab *slab = blocks->slabs, *next; slab != NULL; slab = next) {
        next = slab->next;
        gni_host_free(slab);
    }
    *blocks = (struct gni_blocks){0};
}
