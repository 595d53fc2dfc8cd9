/*
 * pool.h: the engine behind the policies `pool` and `virtual`.
 *
 *   pool      the memory of one manager
 *   space     regions and heaps that share memory among themselves: the pool's main space, and one for
 *             each captured graph
 *   region    a stretch of addresses, tiled by blocks (block.h). virtual: a reserved range, into which
 *             memory is mapped; pool: one allocation of the driver or the system
 *   mapping   memory behind addresses: a physical piece, seen at one place. A piece of several pages is
 *             indivisible: the driver maps and unmaps it whole
 *   heap      the free blocks that belong to one stream, and what is known about that stream's progress
 *   cache     the blocks that one thread keeps for one stream: cache.h
 *   claim     the regions that one thread has to itself, of the CPU's memory: claim.h
 *   depot     small blocks on their way from thread to thread, of the CPU's memory: depot.h
 *
 *          thread 1                thread 2
 *       cache   cache           cache   cache         no lock; one bin for each size class
 *         |  \    |               |       |
 *         |   \   |               |       |
 *       heap   heap ----------------------+           one lock for each manager;
 *         |      |                                    free blocks by size, merged with neighbours
 *       regions: pages, mapped and unmapped
 *         |
 *       the driver
 *
 * Invariants, under the pool's lock (PO3 and PO4 with the threads' caches emptied):
 *   PO1  the blocks of a region tile it, and BL1 to BL4 of block.h hold;
 *   PO2  a free block is in fit[range] of its heap, or of its region's claim; its bytes are mapped;
 *   PO3  reserved_bytes is the sum of the physical pieces;
 *   PO4  reserved_bytes >= requested + pending + free bytes: living blocks of folded pages share pieces,
 *       as far as their owners asked for the bytes, not as far as they were rounded up;
 *   PO5  a block is never given to a stream before every earlier access to it is ordered before: it is
 *       of that stream's heap, or its sequence is complete, or the stream was made to wait for it.
 *
 * Lock order: a thread's own use of its cache needs no lock. The pool's lock comes before those of the
 * device layer and of the address index. No function of a user is called under it.
 */
#ifndef GNI_MEMORY_POOL_H
#define GNI_MEMORY_POOL_H

#include "memory/address.h"
#include "memory/depot.h"
#include "memory/fit.h"
#include "memory/manager.h"

#include "base/biased_lock.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/option.h"

struct gni_cache;
struct gni_claim;

/* A piece of physical memory. */
struct gni_physical {
    struct gni_list
        link; /* in pool->orphans, once the driver has refused to take it back, or in scratch_pieces */
    uint64_t handle; /* virtual: the driver's */
    size_t nbytes;
    const void *home;         /* where it was mapped first: its address in the history */
    struct gni_list mappings; /* where it is seen; more than one: folded */
};

/* A physical piece at an address. */
struct gni_mapping {
    struct gni_list link; /* in its piece */
    char *start;
    struct gni_physical *physical;
    struct gni_region *region;
};

/* Is a piece seen at several addresses? */
static inline bool gni_physical_is_folded(const struct gni_physical *physical)
{
    return physical->mappings.next != physical->mappings.prev;
}

struct gni_region {
    struct gni_list link; /* in its space */
    struct gni_space *space;
    enum gni_range range;
    uint64_t id; /* never 0, never used twice */
    char *start;
    size_t nbytes;
    void *obtained; /* pool: what the driver gave: `start` is the first page in it */
    size_t obtained_bytes;
    gn_memory_block *first; /* at the lowest address */
    struct gni_claim
        *claim; /* of the thread that has it to itself, or NULL; its pages know it, too */
    struct gni_list claim_link; /* in that */
};

/* An event that was recorded in a heap's stream after everything up to `sequence` was freed. */
struct gni_mark {
    struct gni_list link;
    gn_event *event;
    uint64_t sequence;
};

/* A stream that is watched: it lives as long as others own it. It must not be let go under the lock: its end takes the lock. */
struct gni_hold {
    struct gni_hold *next;
    gn_stream *stream;
};

/* A use of a block on another stream, from record_stream to the end of that work. */
struct gni_use {
    struct gni_list
        link; /* in the other stream's heap: `held`, and once the block is freed `uses` */
    struct gni_use *next; /* of the same block */
    gn_memory_block *block;
    struct gni_heap *heap; /* of the other stream */
    struct gni_hold *hold; /* its stream; NULL once the block is freed, or the stream is gone */
    struct gni_mark *mark; /* its event is recorded then */
    bool is_recorded;      /* it was; else a later use's event, or the device, is waited for */
};

struct gni_heap {
    struct gni_list link; /* in its space */
    struct gni_space *space;
    uint64_t key;          /* the stream's id; 0: no stream's: any may take its blocks */
    gn_stream stream;      /* a copy, for calls of the device's table: the caller's may be gone */
    bool is_dead;          /* the stream was destroyed; nothing can be recorded in it */
    bool is_foreign;       /* another library's: it may be destroyed without our knowledge */
    bool is_unknown;       /* something could not be recorded: only waiting for the device helps */
    uint64_t open;         /* the sequence of blocks that are freed now; no mark has it yet */
    unsigned open_count;   /* blocks that were given this sequence */
    uint64_t complete;     /* blocks up to this sequence are free for all */
    struct gni_list marks; /* recorded and not known to be complete, oldest first */
    struct gni_list held;  /* uses of living blocks on this stream, which watch it */
    struct gni_list uses;  /* of freed blocks on this stream, oldest first */
    size_t block_count;    /* blocks that name this heap, in any state */
    size_t use_count;      /* uses that name this heap: of living and of freed blocks */
    struct gni_fit fit[GNI_RANGE_COUNT];
    struct gni_depot depot;
};

struct gni_space {
    struct gni_list link; /* in the pool's private spaces */
    struct gni_pool *pool;
    bool
        is_private; /* of a captured graph: no events, no sharing, nothing goes back before its end */
    struct gni_list regions;
    struct gni_list heaps;
    struct gni_map heaps_by_key; /* those whose stream is not known to be gone */
    struct gni_heap *clean;      /* key 0: any stream may take its blocks */
    struct gni_fit holes[GNI_RANGE_COUNT];
    size_t mapped_bytes[GNI_RANGE_COUNT];
    size_t live_count; /* blocks of a private space that are alive */
};

/* How a pool gets memory. */
enum gni_backing {
    GNI_BACKING_VIRTUAL, /* addresses and physical pieces apart */
    GNI_BACKING_DEVICE,  /* the device's memory_alloc */
    GNI_BACKING_PINNED,  /* the system's memory, page-locked for the device */
};

enum {
    GNI_GUARD = 512,        /* bytes on each side of a block, with GENESIS_DEBUG=guard: debug.c */
    GNI_POOL_FREED = 4096,  /* addresses of merged blocks that are remembered */
    GNI_BLOCKS_BY_PAGE = 2, /* descriptors that stand by for each folded page */
    GNI_REQUEST_SHIFT = 12, /* bits of `recent_requests` for each request */
    GNI_RECYCLINGS_SHIFT = 12, /* 1 << this: recyclings that are remembered */
};

/* Addresses that were forgotten, the oldest overwritten: for the message of a second free. */
struct gni_freed {
    size_t count; /* that were ever written */
    uintptr_t addresses[GNI_POOL_FREED];
};

/* That memory was recycled after these requests: bound.c, BD1. */
struct gni_recycling {
    uint64_t requests;    /* as `recent_requests` was */
    uint64_t alloc_bytes; /* that were allocated until then */
    uint32_t iteration;   /* in which it was last */
};

struct gni_pool {
    gn_memory_manager *manager;
    gn_device *device;
    gn_device
        *holder; /* whose memory it is: the device's own, or for page-locked memory the CPU's */
    enum gni_backing backing;
    struct gni_biased_lock lock;
    struct gni_space main;
    struct gni_list private_spaces;
    struct gni_list begun;     /* streams that allocate from a private space */
    struct gni_space *capture; /* for streams that are captured without a pool, or NULL */
    struct gni_blocks blocks;
    struct gni_list events;             /* idle events, as marks */
    struct gni_list orphans;            /* physical pieces that are mapped nowhere */
    _Atomic(struct gni_cache *) caches; /* all that were ever made; never shrinks */
    struct gni_cache *spare;            /* counts what no thread's cache counts */
    gn_memory_config config;
    unsigned debug;       /* enum gni_debug_flag */
    bool is_limited;      /* a free has to look at the configured limits */
    bool has_claims;      /* threads may have regions to themselves, and pass each other batches */
    bool is_marked;       /* a sanitizer wants to know of each block */
    bool is_zeroed;       /* fresh memory is filled with zeros */
    bool is_tight;        /* memory ran out: it comes in small pieces until all of it went back */
    uint64_t limit;       /* of reserved_bytes */
    uint64_t total_bytes; /* of the device */
    uint64_t reserved_bytes, reserved_peak;
    _Atomic(uint64_t) pending_bytes; /* changes under the lock */
    char *scratch; /* addresses of divide.c's; NULL but where they could not go back */
    size_t scratch_bytes, scratch_mapped;
    struct gni_list scratch_pieces; /* that are seen there, and nowhere else */
    uint64_t warm_bytes; /* that a warm-up asked for: not to be recycled before they were used */
    _Atomic(uint64_t) pending_count;
    unsigned reclaim_count;  /* regions that threads lost to others since memory last grew */
    unsigned unpolled_count; /* requests that were met since pending blocks were last looked at */
    uint64_t last_region;
    size_t
        recycled_pieces[GNI_RANGE_COUNT];  /* given back to make room, since a bound was widened */
    unsigned bound_shift[GNI_RANGE_COUNT]; /* how much may be idle before growing: live >> this */
    uint64_t recent_requests; /* the last five large ones, the newest in the lowest bits */
    size_t reserve_blocks;    /* descriptors that are kept for freeing folded blocks */
    gn_memory_handler handler;
    void *handler_context;
    gn_memory_statistics counts; /* the parts that change under the lock only */
    _Atomic(uint64_t) live_peak, live_count_peak, requested_peak;
    _Atomic(uint64_t) active_peak, active_count_peak; /* of live and pending together */
    uint64_t live_past,
        requested_past; /* the peaks before a reset: bounds keep to them until a trim */
    atomic_bool
        is_shown; /* others know addresses of it: gni_pool_show(). Apart from what is read at once */
    struct gni_freed freed;
    bool is_between_iterations; /* what is live fell far below its peak: BD1 */
    uint32_t iteration;         /* of the program's main loop, as far as that can be seen: BD1 */
    struct gni_recycling recyclings[1 << GNI_RECYCLINGS_SHIFT]; /* by hash of the requests */
};

/* ---- slow_path.c: allocating ---------------------------------------------------------------- */

/* A request on its way. */
struct gni_need {
    size_t requested;
    size_t nbytes; /* rounded, with what `debug` wants around it */
    size_t offset; /* of the caller's address in the block */
    enum gni_range range;
    gn_stream *stream; /* the caller's */
    struct gni_heap *heap;
    bool is_tight;       /* free memory is in pieces: small ones, which can go back one by one */
    bool is_grown;       /* the driver had to be asked */
    bool is_noted;       /* SP1 */
    bool is_claim_empty; /* the thread's own regions have no block that fits */
    bool is_heap_empty;  /* nor has the stream's heap */
};

static inline void gni_need_init(const struct gni_pool *pool, size_t nbytes, gn_stream *stream,
                                 struct gni_need *need)
{
    size_t around = pool->debug & GNI_DEBUG_GUARD ? GNI_GUARD : 0;
    size_t whole = nbytes + 2 * around;
    need->requested = nbytes;
    need->nbytes = gni_size_round(whole);
    need->offset = around;
    need->range = gni_size_range(whole);
    need->stream = stream;
    need->heap = NULL;
    need->is_tight = need->is_grown = need->is_noted = false;
    need->is_claim_empty = need->is_heap_empty = false;
}

/* With the lock: steps 2 to 11 of slow_path.c. *cache is the thread's cache for the stream if that is known, or NULL, and
 * afterwards the one that counts the block. The block is CACHED and in no list. */
gn_status gni_need_satisfy(struct gni_pool *pool, struct gni_need *need, struct gni_cache **cache,
                           gn_memory_block **block) GN_NODISCARD;

/* With the lock: the same from the need's heap on, without a thread's cache. */
gn_status gni_need_climb(struct gni_pool *pool, struct gni_need *need,
                         gn_memory_block **block) GN_NODISCARD;

/* With the lock: the block becomes the caller's. */
void gni_need_hand_out(struct gni_pool *pool, gn_memory_block *block, const struct gni_need *need,
                       struct gni_cache *cache, unsigned flags);

/* Step 1, where the pool has claims: a block that is handed out, or NULL. *is_claim_empty is set to true if the thread's
 * own regions have none that fits. */
gn_memory_block *gni_pool_alloc_unlocked(struct gni_cache *cache, size_t nbytes, unsigned flags,
                                         bool *is_claim_empty);

/* Steps 2 to 12; takes the lock. `known` is the thread's cache for `asked`, if the fast path found it. */
gn_status gni_pool_alloc(struct gni_pool *pool, struct gni_cache *known, bool is_claim_empty,
                         size_t nbytes, gn_stream *asked, unsigned flags,
                         gn_memory_block **block) GN_NODISCARD;

/* The error of a request that could not be satisfied; without the lock: out_of_memory.c. */
gn_status gni_pool_out_of_memory(struct gni_pool *pool, size_t nbytes) GN_NODISCARD;

/* ---- pool.c --------------------------------------------------------------------------------- */

/* Frees a block without a look at the patterns of debug.c. The arguments are those of gni_pool_free(). */
gn_status gni_pool_take_back(gn_memory_block *block, const void *pointer, uint64_t time_ns);

/* What reserved_bytes can reach. */
static inline uint64_t gni_pool_allowed(const struct gni_pool *pool)
{
    return pool->limit < pool->total_bytes ? pool->limit : pool->total_bytes;
}

static inline bool gni_pool_is_shown(const struct gni_pool *pool)
{
    return atomic_load_explicit(&pool->is_shown, memory_order_relaxed);
}

/* An address of the pool's memory is about to be told to others, who may submit work of their own with it. */
static inline void gni_pool_show(struct gni_pool *pool)
{
    if (!__builtin_expect(gni_pool_is_shown(pool), 1)) {
        gni_device_direct_begin(pool->device); /* for good */
        atomic_store(&pool->is_shown, true);
    }
}

/* The lock, around every use of what pool.h describes. */
static inline void gni_pool_lock(struct gni_pool *pool)
{
    gni_biased_lock_take(&pool->lock);
}

/* Whether the calling thread has the lock; for asserts. */
static inline bool gni_pool_is_locked(const struct gni_pool *pool)
{
    return gni_biased_lock_is_held(&pool->lock);
}

static inline void gni_pool_unlock(struct gni_pool *pool)
{
    gni_biased_lock_give(&pool->lock);
}

/* What may lie idle before it is recycled, bound.c: live >> this, unless it was widened. Where memory only
 * goes back in segments, large ones are not tried so hard. */
static inline unsigned gni_pool_bound_shift(const struct gni_pool *pool, enum gni_range range)
{
    return range != GNI_RANGE_LARGE ? 4 : pool->backing == GNI_BACKING_VIRTUAL ? 6 : 3;
}

/* The sums of all threads' counters. */
struct gni_totals {
    int64_t live_bytes, live_count;
    uint64_t alloc_count, alloc_bytes, free_bytes, slow_count;
};

struct gni_totals gni_pool_totals(struct gni_pool *pool);

/* With the lock: gives memory back until the configured limits hold. */
void gni_pool_limits_keep(struct gni_pool *pool);

/* Bytes that are live now, by the counters of all threads. */
uint64_t gni_pool_live_bytes(struct gni_pool *pool);

/* The space that a stream allocates from: the main one, or that of a graph. capture_pool.c */
gn_status gni_space_of_stream(struct gni_pool *pool, gn_stream *stream,
                              struct gni_space **space) GN_NODISCARD;
void gni_pool_clear_captures(struct gni_pool *pool, gn_status *first);

/* Ends the abandoned spaces that have no block left; not while a graph is captured. */
void gni_pool_sweep_captures(struct gni_pool *pool);

/* Whether a stream that allocates from a private space is being captured now. */
bool gni_pool_is_capturing(struct gni_pool *pool);

/* How far what is live lies below its peaks. */
struct gni_peaks {
    int64_t live_bytes, live_count, requested_bytes;
};

/* Raises the peaks if what is live now is above. */
struct gni_peaks gni_pool_peaks_raise(struct gni_pool *pool);

/* ---- space.c: regions, splitting, merging, growing, giving back ------------------------------ */

void gni_space_init(struct gni_space *space, struct gni_pool *pool, bool is_private);

void gni_space_deinit(struct gni_space *space);

/* Takes a fitting block out of a heap, carved. NULL if there is none. Needs one descriptor. */
gn_memory_block *gni_space_take(struct gni_heap *heap, const struct gni_need *need);

/* Splits what is not needed off a free block, and takes it out of its heap's index. The block then
 * names `need->heap`. Needs one descriptor. */
gn_memory_block *gni_block_carve(gn_memory_block *block, const struct gni_need *need);

/* More memory for a range, as a free block of the heap that is large enough for the need.
 * GN_ERROR_OUT_OF_MEMORY: the limit or the driver. */
gn_status gni_space_grow(struct gni_space *space, const struct gni_need *need) GN_NODISCARD;

/* How many bytes gni_space_grow() would take from the driver. */
size_t gni_space_growth(const struct gni_space *space, const struct gni_need *need);

/* Gives back memory that lies wholly in free and complete blocks, at most `most` bytes rounded up to
 * a piece; returns how much. */
size_t gni_space_release(struct gni_space *space, size_t most);

/* Gives everything back, whatever the state of its blocks. What the driver does not take back stays,
 * and the first failure is returned. */
gn_status gni_space_clear(struct gni_space *space) GN_NODISCARD;

/* Cuts the bytes from `start` on off a block that is in no index. They keep its heap and sequence. */
gn_memory_block *gni_block_split(gn_memory_block *block, char *start);

/* A block takes over the bytes of the one behind it, which is in no index, and is gone. */
void gni_block_absorb(gn_memory_block *block, gn_memory_block *other);

/* A block that is in no index becomes a hole, joined with its neighbours. */
void gni_block_make_hole(gn_memory_block *block);

/* Sets what is known of a part of a region: splits at both ends, and returns the block that is exactly
 * [start, end). Needs two descriptors. The block is in no index. */
gn_memory_block *gni_block_cut(gn_memory_block *block, char *start, char *end);

/* Whether PO1, PO2 and BL1, BL2 hold; for asserts and tests. */
bool gni_pool_is_valid(struct gni_pool *pool);

/* ---- mapping.c: pieces of memory, and where they are mapped ---------------------------------- */

/* Memory for addresses of a virtual region, all of it or none, in pieces that suit the need, which has its block end
 * `covered` bytes behind the start. */
gn_status gni_mappings_open(struct gni_region *region, char *start, size_t nbytes, size_t covered,
                            const struct gni_need *need) GN_NODISCARD;

/* Undoes mappings as far as the driver allows. */
void gni_mappings_close(char *start, char *end);

/* Unmaps memory, and lets its piece go when this was its last mapping. On failure it is as before. */
gn_status gni_mapping_close(struct gni_mapping *mapping);

/* A new piece, mapped nowhere, and the record of the mapping that it shall have; and the end of both, as long as it has
 * none. */
gn_status gni_piece_create(struct gni_region *region, char *start, size_t nbytes,
                           struct gni_mapping **mapping) GN_NODISCARD;
void gni_piece_destroy(struct gni_mapping *mapping);

/* The books of a mapping that the driver has made, or undone. */
void gni_mapping_enter(struct gni_mapping *mapping);
void gni_mapping_leave(struct gni_mapping *mapping);

/* Maps a piece again that was unmapped while its books stayed as they were. Returns `why` that was needed, or that its
 * blocks are lost. */
gn_status gni_mapping_restore(const struct gni_mapping *mapping, gn_status why) GN_NODISCARD;

/* A piece is not where it was: in the history it moves to where its first mapping is. */
void gni_physical_move_home(struct gni_pool *pool, struct gni_physical *physical);

/* A piece that is mapped nowhere goes back; if the driver refuses, it is tried again later. */
void gni_physical_let_go(struct gni_pool *pool, struct gni_physical *physical);

/* Tries again to give back what the driver refused before; the first failure, if there is one. */
gn_status gni_orphans_release(struct gni_pool *pool);

/* Around calls of the driver: their time is counted where that is asked for. */
uint64_t gni_driver_begin(const struct gni_pool *pool);
void gni_driver_end(struct gni_pool *pool, uint64_t begin);

/* Memory came from the driver, or goes back. */
void gni_reserved_add(struct gni_pool *pool, const void *address, size_t nbytes);
void gni_reserved_remove(struct gni_pool *pool, const void *address, size_t nbytes);

/* ---- stream_order.c: heaps, events and streams ----------------------------------------------------- */

/* The heap of a stream, made if there is none. */
gn_status gni_heap_get(struct gni_space *space, gn_stream *stream,
                       struct gni_heap **heap) GN_NODISCARD;
gn_status gni_heap_create(struct gni_space *space, uint64_t key, const gn_stream *stream,
                          struct gni_heap **heap) GN_NODISCARD;

/* Frees a heap that no block and no use names, if its stream is gone or may be. */
void gni_heap_settle(struct gni_heap *heap);
void gni_heap_destroy(struct gni_heap *heap);

/* A block names another heap from now on. The heap that it leaves is settled by whoever walks the heaps:
 * not in the middle of this. */
static inline void gni_block_set_heap(gn_memory_block *block, struct gni_heap *heap)
{
    if (block->heap == heap)
        return;
    if (block->heap != NULL)
        block->heap->block_count--;
    if (heap != NULL)
        heap->block_count++;
    block->heap = heap;
}

/* Gives a block the sequence of what is freed now. */
void gni_heap_stamp(struct gni_heap *heap, gn_memory_block *block);

/* Whether the calling thread can put something into the heap's stream. */
bool gni_heap_can_record(struct gni_heap *heap);

/* Records an event after everything that was freed, if something was. */
void gni_heap_close(struct gni_heap *heap);

/* Takes in which events are complete. */
void gni_heap_poll(struct gni_heap *heap);
void gni_space_poll(struct gni_space *space);

/* Waits until the oldest work of some stream that uses idle large blocks is done, for 10 ms a stream at most: that work
 * may need a thread that waits for the pool's lock. True if some was done. */
bool gni_space_wait(struct gni_space *space);

enum {
    GNI_RANGES_ALL = (1 << GNI_RANGE_COUNT) - 1,
};

/* Moves blocks that are complete, of all heaps but one and of some ranges (bits), to the clean heap; true if
 * there were any. */
bool gni_space_retire(struct gni_space *space, const struct gni_heap *except, unsigned ranges);

/* The same of heaps whose streams are gone, the oldest first, as far as these have done their work. */
void gni_space_tidy(struct gni_space *space);

/* Moves free blocks of the clean heap to another one: those that touch its own, or all; true if there were
 * any. */
bool gni_heap_adopt(struct gni_heap *heap, enum gni_range range, bool is_all);

/* A block of another heap, for which the need's stream is made to wait. NULL if there is none. */
gn_memory_block *gni_space_steal(struct gni_space *space, struct gni_need *need);

/* Waits for the device: everything that was freed is complete. Not while a graph is captured: that would
 * spoil it. */
gn_status gni_pool_synchronize(struct gni_pool *pool) GN_NODISCARD;

/* Waits for what was freed, stream by stream, as far as that can be known: no capture minds. */
void gni_pool_drain(struct gni_pool *pool);

/* Notes that a block is used on another stream. */
gn_status gni_block_use(gn_memory_block *block, gn_stream *stream) GN_NODISCARD;

/* A freed block that other streams use starts to wait for them. The streams that were held for it come
 * back as a list, which the caller lets go after the lock. */
struct gni_hold *gni_block_wait(gn_memory_block *block);
void gni_holds_let_go(struct gni_hold *holds);

/* Drops all uses of all blocks: the device runs nothing any more. */
struct gni_hold *gni_pool_drop_uses(struct gni_pool *pool);

/* Nobody can submit work to the stream of a heap any more: the uses of living blocks on it get their events now, and the
 * list of those who watched it is for the caller to let go. */
struct gni_hold *gni_heap_leave(struct gni_heap *heap);

/* The stream of a heap is about to be destroyed. */
void gni_heap_bury(struct gni_heap *heap);

/* Pending blocks whose uses are complete go to their heaps. */
void gni_pool_pending_poll(struct gni_pool *pool);

gn_status gni_event_take(struct gni_pool *pool, struct gni_mark **mark) GN_NODISCARD;
void gni_event_give(struct gni_pool *pool, struct gni_mark *mark);

/* ---- compact.c ------------------------------------------------------------------------------ */

/* Where the bytes end that a living block's owner may use; a grain at least. */
char *gni_block_used_end(const gn_memory_block *block);

/* Gives back what is free on pieces and pages that are partly used, until no more than `goal` bytes are reserved:
 * divides pieces of several pages, then folds half-empty pages; only those without an exported block if `is_automatic`.
 * With the lock, after the device was waited for and all that is wholly free went back. */
gn_status gni_pool_squeeze(struct gni_pool *pool, bool is_automatic, uint64_t goal,
                           gn_memory_compaction *report) GN_NODISCARD;

/* A block that nobody uses any more, and whose sequence is set, goes to its heap; the parts of it that
 * lie on folded pages are blocked until gni_pool_unfold(). */
void gni_block_release(gn_memory_block *block);

/* Gives back folded pages without living blocks, and makes pages whole again that are folded with no
 * other any more. After the device was waited for. */
void gni_pool_unfold(struct gni_pool *pool);

/* ---- divide.c ------------------------------------------------------------------------------- */

/* The first half of gni_pool_squeeze(), with the threads' caches. */
gn_status gni_pool_divide(struct gni_pool *pool, bool is_automatic, uint64_t goal,
                          gn_memory_compaction *report) GN_NODISCARD;

/* Gives back what a division could not, where nothing runs. */
gn_status gni_scratch_close(struct gni_pool *pool);

/* ---- debug.c -------------------------------------------------------------------------------- */

/* What the options want a fresh or freed block to hold. */
gn_status gni_debug_alloc(struct gni_pool *pool, gn_memory_block *block,
                          gn_stream *stream) GN_NODISCARD;
gn_status gni_debug_free(struct gni_pool *pool, gn_memory_block *block) GN_NODISCARD;

#endif
