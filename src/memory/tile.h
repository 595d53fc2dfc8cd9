/*
 * tile.h: cutting blocks off free memory, and joining them with it again: the work of every request that
 * the threads' caches cannot meet, and therefore inline.
 *
 * The blocks of a region are its tiles (block.h). Where a free block is cut, or joined with a neighbour, the
 * free part keeps its descriptor, and its place in the index unless its class changes.
 *
 * Threads: everything here is under the pool's lock, with the pool's descriptors, and in regions that no thread has
 * to itself; or, for what is given an index and descriptors, by who may change the claim they are of (claim.h).
 */
#ifndef GNI_MEMORY_TILE_H
#define GNI_MEMORY_TILE_H

#include "memory/claim.h"

/* A tile of a region, between two neighbours (NULL: at the region's border). It has its stock's heap, and no
 * state yet. */
static inline gn_memory_block *gni_tile_add(struct gni_blocks *blocks, struct gni_region *region,
                                            gn_memory_block *before, gn_memory_block *after,
                                            char *start, size_t nbytes)
{
    gn_memory_block *made = gni_blocks_take(blocks);
    gni_assert(nbytes > 0 && nbytes % GNI_GRAIN == 0);
    gni_assert(start >= region->start && start + nbytes <= region->start + region->nbytes);
    gni_block_set_pool(made, region->space->pool);
    made->region = region;
    made->range = (unsigned char)region->range;
    made->bin = GNI_BLOCK_NO_BIN;
    made->start = start;
    made->nbytes = nbytes;
    made->sequence = 0;
    made->next = made->prev = NULL;
    made->before = before;
    made->after = after;
    if (before != NULL)
        before->after = made;
    else
        region->first = made;
    if (after != NULL)
        after->before = made;
    return made;
}

/* A tile goes away: a neighbour has its bytes. */
static inline void gni_tile_remove(struct gni_blocks *blocks, gn_memory_block *block)
{
    gn_memory_block *before = block->before, *after = block->after;
    gni_assert(block->before != NULL || block->region->first == block);
    if (before != NULL)
        before->after = after;
    else
        block->region->first = after;
    if (after != NULL)
        after->before = before;
    gni_block_set_heap(block, blocks->heap);
    gni_blocks_give(blocks, block);
}

static inline struct gni_fit *gni_fit_of(gn_memory_block *block)
{
    return &block->heap->fit[block->range];
}

/* A part of a free block becomes a block of `heap`, CACHED, and known by its address: the first `nbytes`; or
 * the last, where it is large and leaves less than a page. Fresh memory for a large block is whole pages, and
 * what it leaves of them must not become the beginning of another block, which would keep all of a piece that
 * goes back only as a whole. Needs one descriptor. */
static inline gn_memory_block *gni_tile_cut(struct gni_fit *fit, struct gni_blocks *blocks,
                                            gn_memory_block *block, struct gni_heap *heap,
                                            enum gni_range range, size_t nbytes, size_t offset)
{
    gni_assert(gni_block_state(block) == GNI_BLOCK_FREE && block->nbytes >= nbytes);
    gni_assert(nbytes % GNI_GRAIN == 0 && offset < nbytes);
    if (block->nbytes > nbytes) {
        gn_memory_block *rest = block;
        size_t left = rest->nbytes - nbytes;
        if (range == GNI_RANGE_LARGE && left < GNI_PAGE) {
            block =
                gni_tile_add(blocks, rest->region, rest, rest->after, rest->start + left, nbytes);
        } else {
            block = gni_tile_add(blocks, rest->region, rest->before, rest, rest->start, nbytes);
            rest->start += nbytes;
        }
        gni_fit_resize(fit, rest, left);
    } else {
        gni_fit_remove(fit, block);
        block->sequence = 0;
    }
    gni_block_set_heap(block, heap);
    gni_block_set_address(block, block->start + offset);
    block->bin = range <= GNI_RANGE_SMALL ? (unsigned char)gni_class_up(nbytes >> GNI_GRAIN_SHIFT)
                                          : GNI_BLOCK_NO_BIN;
    gni_block_set_state(block, GNI_BLOCK_CACHED);
    gni_address_add(block);
    return block;
}

/* The same with the pool's own. */
static inline gn_memory_block *gni_tile_carve(gn_memory_block *block, struct gni_heap *heap,
                                              enum gni_range range, size_t nbytes, size_t offset)
{
    gni_assert(gni_pool_is_locked(block->pool));
    gni_assert(block->region->claim == NULL);
    return gni_tile_cut(gni_fit_of(block), &block->pool->blocks, block, heap, range, nbytes,
                        offset);
}

/* A block that was handed out has no address any more. */
static inline void gni_tile_forget(struct gni_freed *freed, gn_memory_block *block)
{
    gni_assert(block->address != NULL && block->uses == NULL);
    gni_address_remove(block);
    freed->addresses[freed->count++ % GNI_POOL_FREED] = (uintptr_t)block->address;
    gni_block_set_address(block, NULL);
    atomic_store_explicit(&block->flags, 0, memory_order_relaxed);
    atomic_store_explicit(&block->site, 0, memory_order_relaxed);
    block->bin = GNI_BLOCK_NO_BIN;
    block->requested = 0;
    block->number = 0;
}

static inline bool gni_tile_is_free_of(const gn_memory_block *block, const struct gni_heap *heap)
{
    return block != NULL && gni_block_state(block) == GNI_BLOCK_FREE && block->heap == heap;
}

/* A block that nobody uses, in no index and with its sequence set, goes into an index, merged with its
 * neighbours: the free block that has its bytes now. Its address is forgotten.
 * A free neighbour takes the bytes over, and must wait for what either waits for. */
static inline gn_memory_block *gni_tile_join(struct gni_fit *fit, struct gni_blocks *blocks,
                                             struct gni_freed *freed, gn_memory_block *block)
{
    struct gni_heap *heap = block->heap;
    gni_assert(heap != NULL && block->uses == NULL);
    if (block->address != NULL)
        gni_tile_forget(freed, block);
    gn_memory_block *before = block->before, *after = block->after;
    bool has_before = gni_tile_is_free_of(before, heap);
    bool has_after = gni_tile_is_free_of(after, heap);
    if (!has_before && !has_after) {
        gni_block_set_state(block, GNI_BLOCK_FREE);
        gni_fit_insert(fit, block);
        return block;
    }
    gn_memory_block *merged = has_before ? before : after;
    size_t nbytes = merged->nbytes + block->nbytes;
    uint64_t sequence = merged->sequence;
    if (sequence < block->sequence)
        sequence = block->sequence;
    if (!has_before)
        merged->start = block->start;
    gni_tile_remove(blocks, block);
    if (has_before && has_after) {
        nbytes += after->nbytes;
        if (sequence < after->sequence)
            sequence = after->sequence;
        gni_fit_remove(fit, after);
        gni_tile_remove(blocks, after);
    }
    merged->sequence = sequence;
    gni_fit_resize(fit, merged, nbytes);
    return merged;
}

/* The same with the pool's own: it goes into its heap's index. */
static inline gn_memory_block *gni_tile_merge(gn_memory_block *block)
{
    struct gni_pool *pool = block->pool;
    gni_assert(gni_pool_is_locked(pool));
    gni_assert(block->region->claim == NULL);
    return gni_tile_join(gni_fit_of(block), &pool->blocks, &pool->freed, block);
}

/* With the lock: a block that nobody uses goes to its heap, or to the thread that has its region. */
static inline void gni_block_settle(gn_memory_block *block)
{
    struct gni_claim *claim = gni_claim_of(block);
    gni_assert(gni_pool_is_locked(block->pool));
    gni_assert(gni_block_state(block) != GNI_BLOCK_PENDING);
    if (__builtin_expect(claim != NULL, 0)) {
        gni_claim_return(claim, block);
        return;
    }
    gni_heap_stamp(block->heap, block);
    (void)gni_tile_merge(block);
}

#endif
