/*
 * block.h: the host's descriptor of a piece of a device's memory.
 *
 * The blocks of a region tile it, linked in the order of their addresses:
 *
 *     +------+--------+------+--------------+------+-----------------+
 *     | live | cached | free |     live     | free |      hole       |
 *     +------+--------+------+--------------+------+-----------------+
 *
 *   live      handed out
 *   cached    idle, in a thread's cache of its stream, or on its way back to one (claim.h)
 *   pending   freed, but other streams may still use it
 *   free      idle, in the index of its stream's heap
 *   blocked   idle, but its bytes are used through another address: part of a folded page
 *   hole      addresses without memory behind them
 *
 * Invariants:
 *   BL1  two neighbours are never both free with one heap, both holes, or both blocked;
 *   BL2  a block is known to the address index exactly while it is live, cached or pending;
 *   BL3  `state` changes live <-> cached in the thread that has the block, everything else under the
 *       pool's lock, or by the thread that has the region to itself (claim.h);
 *   BL4  descriptors are never given back to the host while the pool has regions, so that a stale
 *       pointer to one reads a descriptor, whatever it describes now;
 *   BL5  who frees a block twice looks at it while others use it: `address`, `pool` and `state` are atomic,
 *       and the address is compared again under the lock.
 */
#ifndef GNI_MEMORY_BLOCK_H
#define GNI_MEMORY_BLOCK_H

#include "genesis/memory.h"

#include "base/error.h"

#include <stdatomic.h>

enum gni_block_state {
    GNI_BLOCK_UNUSED, /* the descriptor describes nothing */
    GNI_BLOCK_LIVE,
    GNI_BLOCK_CACHED,
    GNI_BLOCK_PENDING,
    GNI_BLOCK_FREE,
    GNI_BLOCK_BLOCKED,
    GNI_BLOCK_HOLE,
};

enum gni_block_flag {
    GNI_BLOCK_EXPORTED = 1, /* somebody knows its address; where pages are folded */
    GNI_BLOCK_SLOW = 2,     /* its free is not a push on a bin: used on other streams, of a private
                               space, with guard zones, or on a folded page */
    GNI_BLOCK_OWNED = 4,    /* handed out by handle: its address does not free it */
    GNI_BLOCK_TENSOR = 8,   /* OWNED, and the handle is a tensor's storage */
};

/* What makes a free more than a push on a bin, by handle and by address. */
enum {
    GNI_BLOCK_SLOW_BY_HANDLE = GNI_BLOCK_SLOW,
    GNI_BLOCK_SLOW_BY_ADDRESS = GNI_BLOCK_SLOW | GNI_BLOCK_OWNED,
};

enum {
    GNI_BLOCK_NO_BIN = 255,
};

struct gni_pool;
struct gni_heap;
struct gni_region;
struct gni_use;

struct gn_memory_block {
    /* what allocate and free touch */
    _Atomic(void *) address; /* that the caller gets; in the range. BL5 */
    size_t requested;        /* as asked for, while live or pending */
    gn_memory_block *next;   /* in a bin, in a heap's index or among unused descriptors */
    struct gni_heap *heap;   /* of the stream it belongs to; NULL for holes and blocked ones */
    _Atomic(struct gni_pool *) pool; /* NULL: a block of the direct policy. BL5 */
    size_t nbytes;                   /* of the range: a multiple of 512 */
    uint64_t number;                 /* of the allocation, counted by its thread */
    _Atomic(unsigned char) state;    /* enum gni_block_state */
    unsigned char bin;               /* of a small block's class, or GNI_BLOCK_NO_BIN */
    _Atomic(unsigned char) flags;    /* enum gni_block_flag */
    unsigned char range;             /* enum gni_range, of the region */
    union {
        unsigned wait_count;       /* pending: events that it waits for */
        unsigned class;            /* in an index: its list */
        unsigned batch_count;      /* first of a batch: its blocks (depot.h) */
        _Atomic(uint32_t) born_ms; /* live, where the site is known: when */
    };
    /* the rest */
    char *start;             /* of the range */
    gn_memory_block *before; /* the neighbour at lower addresses, or NULL */
    gn_memory_block *after;  /* the neighbour at higher addresses, or NULL */
    gn_memory_block *prev;   /* in a heap's index */
    uint64_t sequence;       /* free: reuse elsewhere waits for this mark of its heap's stream */
    struct gni_use *uses;    /* on other streams, owned */
    struct gni_region *region;
    _Atomic(uint64_t)
        site; /* where it was allocated, below the number of that allocation: history.h */
};

_Static_assert(sizeof(struct gn_memory_block) == 128, "two cache lines");

static inline enum gni_block_state gni_block_state(const gn_memory_block *block)
{
    return (enum gni_block_state)atomic_load_explicit(&block->state, memory_order_relaxed);
}

static inline void gni_block_set_state(gn_memory_block *block, enum gni_block_state state)
{
    atomic_store_explicit(&block->state, (unsigned char)state, memory_order_relaxed);
}

/* The address index publishes a block (AD2); here no order is needed. */
static inline void gni_block_set_address(gn_memory_block *block, void *address)
{
    atomic_store_explicit(&block->address, address, memory_order_relaxed);
}

static inline void gni_block_set_pool(gn_memory_block *block, struct gni_pool *pool)
{
    atomic_store_explicit(&block->pool, pool, memory_order_relaxed);
}

static inline bool gni_block_has(const gn_memory_block *block, unsigned flags)
{
    return (atomic_load_explicit(&block->flags, memory_order_relaxed) & flags) != 0;
}

static inline void gni_block_add_flags(gn_memory_block *block, unsigned flags)
{
    unsigned char now = atomic_load_explicit(&block->flags, memory_order_relaxed);
    atomic_store_explicit(&block->flags, (unsigned char)(now | flags), memory_order_relaxed);
}

/* Whether a free by this address, NULL for one by handle, would take the memory away from its owner. */
static inline bool gni_block_is_owned(const gn_memory_block *block, const void *pointer)
{
    return pointer != NULL && gni_block_has(block, GNI_BLOCK_OWNED) &&
           gni_block_state(block) == GNI_BLOCK_LIVE;
}

/* Why an address does not free: the device, the block's bytes and address, gni_block_owner(). */
#define GNI_OWNED_TEXT \
    "%s: the block of %zu bytes at %p belongs to %s, which frees it; nothing was changed"

/* Who frees an OWNED block, for messages. */
static inline const char *gni_block_owner(const gn_memory_block *block)
{
    return gni_block_has(block, GNI_BLOCK_TENSOR) ? "a tensor" : "a block handle";
}

static inline char *gni_block_end(const gn_memory_block *block)
{
    return block->start + block->nbytes;
}

/* ---- unused descriptors: block.c ---- */

/* A stock of descriptors. `count` of them can be taken without failing. */
struct gni_blocks {
    gn_memory_block *unused;
    size_t count;
    struct gni_slab *slabs; /* owned */
    struct gni_heap *heap;  /* that its descriptors name already: a claim's (claim.h); or NULL */
};

/* Sees to it that `count` descriptors can be taken. */
gn_status gni_blocks_reserve(struct gni_blocks *blocks, size_t count) GN_NODISCARD;

/* One of those that were reserved. It has no address, uses and flags; the caller sets the rest. */
static inline gn_memory_block *gni_blocks_take(struct gni_blocks *blocks)
{
    gn_memory_block *block = blocks->unused;
    gni_assert(block != NULL && block->heap == blocks->heap && block->address == NULL);
    blocks->unused = block->next;
    blocks->count--;
    return block;
}

/* A descriptor whose block was forgotten, and is of the stock's heap, describes nothing from now on. */
static inline void gni_blocks_give(struct gni_blocks *blocks, gn_memory_block *block)
{
    gni_assert(block->heap == blocks->heap && block->address == NULL && block->uses == NULL);
    gni_block_set_state(block, GNI_BLOCK_UNUSED);
    block->next = blocks->unused;
    blocks->unused = block;
    blocks->count++;
}

/* Gives the slabs back to the host; no descriptor is in use (BL4). */
void gni_blocks_deinit(struct gni_blocks *blocks);

#endif
