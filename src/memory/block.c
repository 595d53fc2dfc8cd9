/*
 * block.c: the stock of block descriptors, in slabs that start on a cache line.
 */
#include "memory/block.h"

#include "base/host.h"

#include <string.h>

enum {
    SLAB_BLOCKS = 255,
    CACHE_LINE = 64,
};

struct gni_slab {
    struct gni_slab *next;
    void *memory; /* that the host gave: the slab lies in it, aligned */
    char unused[CACHE_LINE - 2 * sizeof(void *)];
    gn_memory_block blocks[SLAB_BLOCKS];
};

static gn_status slab_add(struct gni_blocks *blocks)
{
    size_t size = sizeof(struct gni_slab) + CACHE_LINE;
    char *memory = gni_host_alloc(size);
    if (memory == NULL)
        return gni_error_host_memory(size);
    uintptr_t past = (uintptr_t)memory % CACHE_LINE;
    struct gni_slab *slab = (struct gni_slab *)(void *)(memory + (past ? CACHE_LINE - past : 0));
    slab->memory = memory;
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
        gni_host_free(slab->memory);
    }
    *blocks = (struct gni_blocks){0};
}
