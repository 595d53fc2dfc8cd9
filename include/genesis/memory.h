/*
 * genesis/memory.h: memory managers: who holds memory on a device, and how much.
 *
 *   manager   the memory of one device. It lives for ever and is borrowed.
 *   policy    how a manager meets requests:
 *               virtual   segments of the driver's virtual memory (the default where a GPU has it)
 *               pool      segments that the driver or the system allocates (the CPU; older GPUs)
 *               direct    each request is an allocation of the driver, each free gives it back
 *   block     a piece of memory that was handed out, known by its address or by a handle
 *   live      handed out. requested: live, before rounding. reserved: obtained from the driver or the
 *             system. cached: reserved, idle, ours to reuse. pending: freed, but other streams may
 *             still be using it.
 *
 * Stream order: a block belongs to the stream it was allocated for. It may be used there at once, and
 * may be freed while submitted work still uses it: it is not handed out again before that work is
 * done, or only to the same stream, where later work waits anyway. Work on any other stream must be
 * ordered by the caller, or announced by gn_memory_record_stream() before the free.
 *
 * A stream of another library must live until the blocks that were allocated for it are freed.
 *
 * Every block is tracked. Freeing something twice, something that was never allocated, an address
 * inside a block, or a block with a wrong size is refused with an error that says what the address
 * is, and changes nothing; only two threads that free one block at the same instant are not told.
 *
 * Threads: every function may be called from any thread, also for blocks of other threads.
 */
#ifndef GENESIS_MEMORY_H
#define GENESIS_MEMORY_H

#include "genesis/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gn_memory_manager gn_memory_manager;

/* Borrows the manager of a device. */
GN_API gn_status gn_memory_manager_get(gn_device *device, gn_memory_manager **manager) GN_NODISCARD;

/*
 * Borrows the manager of host memory that the device reads and writes directly (page-locked); on the
 * CPU it is the CPU's own manager. Its blocks follow the device's streams.
 */
GN_API gn_status gn_memory_manager_get_pinned(gn_device *device,
                                              gn_memory_manager **manager) GN_NODISCARD;

/*
 * Walks the managers that were used so far, by whomever: the first for NULL, NULL after the last. Makes none,
 * and starts no device.
 */
GN_API gn_memory_manager *gn_memory_manager_next(const gn_memory_manager *manager);

GN_API gn_device *gn_memory_manager_get_device(const gn_memory_manager *manager);

/* Whether its memory is page-locked memory of the host, for the device. */
GN_API bool gn_memory_manager_is_pinned(const gn_memory_manager *manager);

/* A small number that no other manager of gn_memory_manager_get() has: genesis/history.h. */
GN_API unsigned gn_memory_manager_get_number(const gn_memory_manager *manager);

/* The policy in force: "virtual", "pool" or "direct". Static memory. */
GN_API const char *gn_memory_manager_get_policy(const gn_memory_manager *manager);

/* ---- blocks by address ---------------------------------------------------------------------- */

/*
 * Allocates `nbytes` for use on a stream (NULL: the calling thread's current one). The block
 * belongs to the caller until it is freed, and may be used on the stream at once. 0 bytes give an
 * address of its own, too, which must be freed. The address is a multiple of 512 (direct: of 256).
 * The content is undefined. GN_ERROR_OUT_OF_MEMORY is an ordinary result, after which everything
 * goes on; GN_ERROR_OVERFLOW says that no device can have that much.
 */
GN_API gn_status gn_memory_alloc(gn_memory_manager *manager, size_t nbytes, gn_stream *stream,
                                 void **pointer) GN_NODISCARD;

/*
 * Frees a block. Work that was submitted before may still use it. The second form also checks the
 * size. NULL is refused: it is not a block. So is the address of a block that a handle or a tensor
 * owns: only its owner frees it. GN_ERROR_INVALID_POINTER, GN_ERROR_DOUBLE_FREE, GN_ERROR_WRONG_SIZE.
 */
GN_API gn_status gn_memory_free(gn_memory_manager *manager, void *pointer) GN_NODISCARD;
GN_API gn_status gn_memory_free_sized(gn_memory_manager *manager, void *pointer,
                                      size_t nbytes) GN_NODISCARD;

/* The size that a living block was allocated with. */
GN_API gn_status gn_memory_get_size(gn_memory_manager *manager, const void *pointer,
                                    size_t *nbytes) GN_NODISCARD;

/*
 * Says that work on another stream uses a living block, up to the work that is submitted there when
 * the block is freed: the free then waits for that work, without blocking anyone. The stream is
 * retained until then.
 */
GN_API gn_status gn_memory_record_stream(gn_memory_manager *manager, void *pointer,
                                         gn_stream *stream) GN_NODISCARD;

/* ---- blocks by handle ----------------------------------------------------------------------- */

/*
 * The same, by a handle, whose free needs no look-up, and which alone frees the block. As long as nobody has asked for its address
 * the manager may move the block's physical memory (see gn_memory_compact); asking for the address
 * ends that for good.
 */
typedef struct gn_memory_block gn_memory_block;

GN_API gn_status gn_memory_block_alloc(gn_memory_manager *manager, size_t nbytes, gn_stream *stream,
                                       gn_memory_block **block) GN_NODISCARD;
GN_API gn_status gn_memory_block_free(gn_memory_block *block) GN_NODISCARD;
GN_API void *gn_memory_block_get_address(gn_memory_block *block);

/* The same for whoever only compares addresses: the block may still be moved together with others. */
GN_API void *gn_memory_block_peek_address(const gn_memory_block *block);
GN_API size_t gn_memory_block_get_size(const gn_memory_block *block); /* as it was asked for */

/* ---- many, and ahead of time ---------------------------------------------------------------- */

/*
 * Allocates `count` blocks in one step, near each other where that can be had. All or nothing: on
 * failure none is allocated. pointers[i] has sizes[i] bytes; each is freed by itself.
 */
GN_API gn_status gn_memory_alloc_batch(gn_memory_manager *manager, size_t count,
                                       const size_t *sizes, gn_stream *stream,
                                       void **pointers) GN_NODISCARD;

/* Fills the device's cache, for every thread and stream: counts[i] blocks of sizes[i] bytes. */
GN_API gn_status gn_memory_warm_up(gn_memory_manager *manager, size_t count, const size_t *sizes,
                                   const size_t *counts) GN_NODISCARD;

/*
 * An allocation that another thread prepares. `wait` gives the result of the allocation; a block that
 * was got that way belongs to the caller. `query` is GN_ERROR_NOT_READY until wait would not wait.
 * `release` ends the request, and frees a block that nobody took.
 */
typedef struct gn_memory_request gn_memory_request;

GN_API gn_status gn_memory_request_start(gn_memory_manager *manager, size_t nbytes,
                                         gn_stream *stream,
                                         gn_memory_request **request) GN_NODISCARD;
GN_API gn_status gn_memory_request_query(gn_memory_request *request) GN_NODISCARD;
GN_API gn_status gn_memory_request_wait(gn_memory_request *request, void **pointer) GN_NODISCARD;
GN_API void gn_memory_request_release(gn_memory_request *request);

/* ---- being told --------------------------------------------------------------------------- */

/*
 * Called when what a manager has reserved rises above the threshold, once for each crossing, and after each
 * request that failed; in the thread that did it, outside of all locks. It may use the manager; what it does
 * there does not call it again. One that is replaced or removed may still be running in another thread.
 */
typedef void (*gn_memory_callback)(gn_memory_manager *manager, bool is_out_of_memory,
                                   void *context);

/* The threshold is a fraction of what the manager may take. A NULL callback removes the one before. */
GN_API gn_status gn_memory_set_callback(gn_memory_manager *manager, double threshold,
                                        gn_memory_callback callback, void *context) GN_NODISCARD;

/* ---- configuration -------------------------------------------------------------------------- */

typedef enum gn_memory_strategy {
    GN_MEMORY_BEST_FIT,  /* the smallest free block that is large enough */
    GN_MEMORY_FIRST_FIT, /* the one with the lowest address */
    GN_MEMORY_DIRECT,    /* none: each new block is an allocation of the driver */
} gn_memory_strategy;

/* What can be changed while a manager works. SIZE_MAX: no limit. */
typedef struct gn_memory_config {
    gn_memory_strategy strategy;
    size_t segment_bytes; /* the most that is taken from the driver at a time for small blocks */
    size_t cache_bytes;   /* of idle memory that is kept, both levels together */
    size_t stream_cache_blocks; /* that one thread keeps for one stream */
    size_t global_cache_blocks; /* that the device's cache keeps */
    double memory_fraction;     /* of the device's memory that this process may take, 0 to 1 */
    double cleanup_threshold;   /* pressure (0 to 1) above which idle memory goes back at once */
    double
        coalescing_threshold; /* idle part of the reserved memory, 0 to 1, above which freed blocks
                                    are merged at once instead of staying with their thread */
    bool has_detailed_statistics; /* the time of driver calls */
} gn_memory_config;

GN_API gn_status gn_memory_get_config(gn_memory_manager *manager,
                                      gn_memory_config *config) GN_NODISCARD;

/* Takes effect at once; a smaller limit gives memory back. A bad value changes nothing. */
GN_API gn_status gn_memory_configure(gn_memory_manager *manager,
                                     const gn_memory_config *config) GN_NODISCARD;

/* ---- giving back ---------------------------------------------------------------------------- */

/* Takes in what freed blocks waited for, as far as it is done. Never waits. */
GN_API gn_status gn_memory_collect(gn_memory_manager *manager) GN_NODISCARD;

/* Empties the threads' caches and merges neighbours; `merged` (may be NULL) gets how many. */
GN_API gn_status gn_memory_coalesce(gn_memory_manager *manager, size_t *merged) GN_NODISCARD;

/*
 * Gives idle memory back to the driver until at most `keep_bytes` are cached. Waits for work that may
 * still use it. `released` (may be NULL) gets the bytes.
 */
GN_API gn_status gn_memory_trim(gn_memory_manager *manager, size_t keep_bytes,
                                size_t *released) GN_NODISCARD;

/* What gn_memory_compact() did. */
typedef struct gn_memory_compaction {
    uint64_t released_bytes; /* that went back to the driver in all */
    uint64_t folded_pages;   /* physical pages that were folded into others */
    uint64_t moved_bytes;    /* that were copied for it */
    uint64_t skipped_bytes;  /* that are free on pages and pieces which had to be left alone */
    bool can_fold;           /* false where the policy or the device cannot fold pages */
} gn_memory_compaction;

/*
 * Gives back every byte that is not needed: idle memory first; then pieces that are partly free are divided
 * into pages, of which the free ones go back; then half-empty pages are folded: two physical pages whose
 * living blocks do not overlap become one, mapped at both addresses. Contents and addresses stay as they
 * are. Operations on tensors, copies and replays of graphs that other threads submit to this device are held
 * back meanwhile, and work that was submitted before is waited for. The caller makes sure that nobody else uses
 * addresses of the manager's blocks. Memory that a captured graph knows is left alone.
 */
GN_API gn_status gn_memory_compact(gn_memory_manager *manager,
                                   gn_memory_compaction *report) GN_NODISCARD;

/* ---- out of memory -------------------------------------------------------------------------- */

/*
 * Called outside of all locks when a request cannot be met although everything idle was given back,
 * in the thread that asks. Returns true to have it tried again, which is done at most 3 times for a
 * request. It may free blocks and call any function here; a request of its own to the same manager that cannot be met
 * fails, without another call. NULL removes it.
 */
typedef bool (*gn_memory_handler)(gn_memory_manager *manager, size_t nbytes, void *context);

GN_API gn_status gn_memory_set_out_of_memory_handler(gn_memory_manager *manager,
                                                     gn_memory_handler handler,
                                                     void *context) GN_NODISCARD;

/* ---- captured graphs ------------------------------------------------------------------------ */

/*
 * A pool of its own for the blocks that a captured graph uses: nothing in it is handed to anyone else
 * or given back to the driver before the pool is destroyed, which the caller does after the graph.
 * Between begin and end, allocations for the stream come from the pool; blocks that are freed
 * meanwhile are used again by the same stream only. An allocation for a stream that is being captured
 * without a pool comes from one that lives until gn_shutdown().
 */
typedef struct gn_memory_pool gn_memory_pool;

GN_API gn_status gn_memory_pool_create(gn_memory_manager *manager,
                                       gn_memory_pool **pool) GN_NODISCARD;
GN_API gn_status gn_memory_pool_begin(gn_memory_pool *pool, gn_stream *stream) GN_NODISCARD;
GN_API gn_status gn_memory_pool_end(gn_memory_pool *pool, gn_stream *stream) GN_NODISCARD;

/* Fails with GN_ERROR_INVALID_VALUE while blocks of the pool are alive or a stream is begun. */
GN_API gn_status gn_memory_pool_destroy(gn_memory_pool *pool) GN_NODISCARD;

/*
 * For who is done with the graph, but not sure of its blocks: the pool is destroyed now, or, once its last block is
 * free, at a later trim or creation of a pool. NULL is allowed.
 */
GN_API void gn_memory_pool_abandon(gn_memory_pool *pool);

/* ---- looking -------------------------------------------------------------------------------- */

typedef struct gn_memory_statistics {
    uint64_t live_bytes;      /* handed out and not freed */
    uint64_t live_bytes_peak; /* the most since the start or the last reset */
    uint64_t live_count;      /* blocks handed out and not freed */
    uint64_t live_count_peak;
    uint64_t requested_bytes; /* live, before rounding */
    uint64_t requested_bytes_peak;
    uint64_t reserved_bytes; /* obtained from the driver or system and not given back */
    uint64_t reserved_bytes_peak;
    uint64_t cached_bytes;      /* reserved and idle: reserved - live - pending */
    uint64_t pending_bytes;     /* freed, waiting for other streams */
    uint64_t alloc_count;       /* allocations that succeeded, since the start */
    uint64_t free_count;        /* frees that succeeded */
    uint64_t alloc_bytes_total; /* of all allocations that succeeded, as asked for */
    uint64_t free_bytes_total;
    uint64_t stream_hit_count;    /* allocations that the thread's own cache met */
    uint64_t global_hit_count;    /* that the device's cache met */
    uint64_t miss_count;          /* that needed the driver or the system */
    uint64_t out_of_memory_count; /* allocations that failed for want of memory */
    uint64_t retry_count;         /* times that memory was given back to meet a request */
    uint64_t refused_count;       /* frees that were refused: wrong address or size, or twice */
    uint64_t driver_alloc_count;  /* pieces that the driver or system gave */
    uint64_t driver_free_count;
    uint64_t driver_time_ns;     /* in those calls, with has_detailed_statistics */
    uint64_t event_count;        /* events recorded for hand-over between streams */
    uint64_t handover_count;     /* blocks that another stream took over, waiting on the device */
    uint64_t limit_bytes;        /* what reserved_bytes may reach */
    uint64_t largest_free_bytes; /* the largest block that could be had without the driver */
    uint64_t pending_count;      /* blocks freed, waiting for other streams */
    uint64_t active_bytes_peak;  /* the most that was live or pending at once */
    uint64_t active_count_peak;
    uint64_t driver_count_peak;  /* the most pieces at one time */
    uint64_t driver_bytes_total; /* of all pieces that the driver or system gave */
    uint64_t wait_count;         /* times that all work of the device was waited for */
} gn_memory_statistics;

/* A reading in which live, requested, reserved and pending fit each other if no other thread works. */
GN_API gn_status gn_memory_get_statistics(gn_memory_manager *manager,
                                          gn_memory_statistics *statistics) GN_NODISCARD;

/* Sets the peaks of the statistics to what is live now. How much idle memory is kept does not change. */
GN_API gn_status gn_memory_reset_peaks(gn_memory_manager *manager) GN_NODISCARD;

/* What one size class has met since the start. */
typedef struct gn_memory_class {
    size_t nbytes;         /* the class's size */
    uint64_t alloc_count;  /* allocations of it */
    uint64_t hit_count;    /* that the threads' caches met */
    uint64_t cached_count; /* blocks that the threads' caches hold now */
} gn_memory_class;

/* Fills in up to `capacity` classes, smallest first; `count` gets how many there are. */
GN_API gn_status gn_memory_get_classes(gn_memory_manager *manager, gn_memory_class *classes,
                                       size_t capacity, size_t *count) GN_NODISCARD;

typedef enum gn_memory_state {
    GN_MEMORY_LIVE,
    GN_MEMORY_PENDING,
    GN_MEMORY_STREAM_CACHED, /* idle, in a thread's cache of its stream */
    GN_MEMORY_GLOBAL_CACHED, /* idle, in the device's cache */
} gn_memory_state;

/* One block. The blocks of a segment tile it. */
typedef struct gn_memory_info {
    uint64_t segment_id;   /* the same for all blocks of a segment; never 0 */
    void *segment_address; /* where the segment begins */
    size_t segment_bytes;
    void *address;
    size_t nbytes;    /* rounded */
    size_t requested; /* as asked for; 0 unless live or pending */
    gn_memory_state state;
    uint64_t stream_id; /* of the stream it belongs to; 0 where none */
    uint64_t number;    /* of the allocation, counted from 1; 0 for idle blocks */
    uint32_t site;      /* where it was allocated: genesis/history.h; 0: not known */
    uint64_t age_ns;    /* since then, to the millisecond; UINT64_MAX: not known */
} gn_memory_info;

/*
 * Visits every block in the order of addresses, segment by segment, until the function returns false.
 * It is called on a copy, outside of all locks.
 */
typedef bool (*gn_memory_visitor)(const gn_memory_info *info, void *context);

GN_API gn_status gn_memory_visit(gn_memory_manager *manager, gn_memory_visitor visitor,
                                 void *context) GN_NODISCARD;

/*
 * Frees every block of every manager and gives the devices back that have no streams, events or
 * modules left. Every address that a manager handed out, and every gn_memory_pool, is invalid after this; the library can be
 * used again, with the same devices and managers. A stream that is a thread's current one counts as
 * alive. In debug builds blocks and objects that were still alive are reported as leaks on standard
 * error. `leaked` (may be NULL) gets their number. The caller makes sure that no other thread uses the
 * library meanwhile.
 */
GN_API gn_status gn_shutdown(size_t *leaked) GN_NODISCARD;

#ifdef __cplusplus
}
#endif

#endif
