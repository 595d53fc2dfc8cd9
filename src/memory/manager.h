/*
 * manager.h: the managers of the process, and what stands behind them.
 *
 *   gn_memory_manager   the memory of one device, or page-locked memory for it. It has up to two engines:
 *   pool                segments, blocks and caches: pool.h (the policies `pool` and `virtual`)
 *   direct              one allocation of the driver for each block: direct.c
 *
 * A manager hands out blocks of the engine that its policy names. The policy can be changed while blocks
 * of the other engine are alive: a block knows its engine, and goes back to it.
 *
 * manager.c keeps the managers and has the entrances that are not worth a nanosecond; memory_api.c has
 * allocate and free.
 */
#ifndef GNI_MEMORY_MANAGER_H
#define GNI_MEMORY_MANAGER_H

#include "genesis/memory.h"

#include "base/error.h"
#include "base/lock.h"
#include "device/device.h"
#include "memory/block.h"

struct gni_pool;
struct gni_direct;

/* Who wants to know of the manager's memory: watch.c. */
struct gni_watch {
    struct gni_lock lock; /* of the three */
    gn_memory_callback callback;
    void *context;
    double fraction;
    _Atomic(uint64_t) reserved;  /* of both engines */
    _Atomic(uint64_t) threshold; /* in bytes; UINT64_MAX: nobody's */
    atomic_bool is_above, is_due;
};

struct gn_memory_manager {
    gn_device *device;
    bool is_pinned;
    uint8_t number; /* among those that gn_memory_manager_get() gives, from 0; others have 255 */
    struct gni_pool *pool;
    _Atomic(struct gni_direct *) direct; /* NULL until it is needed */
    struct gni_watch watch;
    atomic_bool is_direct; /* the policy in force; else pool or virtual */
};

enum {
    GNI_MANAGER_KINDS = 3,     /* CPU, CUDA, and page-locked memory for CUDA */
    GNI_DIRECT_STATISTICS = 0, /* where in struct gni_direct: board.c tells others */
};

/* Those that gn_memory_manager_get() gives; each stays for ever. */
extern _Atomic(gn_memory_manager *) gni_managers[GNI_MANAGER_KINDS][GNI_DEVICE_MAX];

/* A manager of its own, unknown to gn_memory_manager_get(): for that function and for tests. The policy is
 * "direct", "pool" or "virtual"; GN_ERROR_UNSUPPORTED where the device cannot have it. */
gn_status gni_manager_create(gn_device *device, bool is_pinned, const char *policy,
                             gn_memory_manager **manager) GN_NODISCARD;

/* The manager of a device, made with this policy (NULL: the usual one) if it is not there yet and
 * GENESIS_CUDA_ALLOCATOR does not say another. */
gn_status gni_manager_get_as(gn_device *device, const char *policy,
                             gn_memory_manager **manager) GN_NODISCARD;

/* Refuses a stream that is not of the device that has the memory. */
gn_status gni_stream_check(const gn_stream *stream, const gn_device *device) GN_NODISCARD;

/* A NULL stream is the calling thread's current one; another device's is refused. */
gn_status gni_manager_stream(const gn_memory_manager *manager, gn_stream **stream) GN_NODISCARD;

/* How often gn_shutdown() was called. */
uint64_t gni_shutdown_count(void);

/* Frees everything that lives in a manager, and gives all its memory back. */
gn_status gni_manager_clear(gn_memory_manager *manager) GN_NODISCARD;

/* The address of a block, for others: the manager does not move it any more. */
void *gni_block_pin(gn_memory_block *block);

/* ---- memory_api.c --------------------------------------------------------------------------- */

/* Reasons to leave the fast path, in one word so that the check is one branch. */
enum gni_slow_reason {
    GNI_REASON_EVENTS = 1, /* the history wants events */
    GNI_REASON_SITES = 2,  /* and stacks: history.h */
    GNI_REASON_EXCHANGE =
        4, /* the system has no membarrier: cache.h. Set before the first cache is made */
    GNI_REASON_HISTORY = GNI_REASON_EVENTS | GNI_REASON_SITES,
};

extern _Atomic(unsigned) gni_slow_reasons; /* of enum gni_slow_reason */

/* gn_memory_block_alloc() for the storage of a tensor, which messages call so. */
gn_status gni_memory_alloc_tensor(gn_memory_manager *manager, size_t nbytes, gn_stream *stream,
                                  gn_memory_block **block) GN_NODISCARD;

/* ---- watch.c -------------------------------------------------------------------------------- */

/* What is reserved has changed by this much. Under any lock. */
void gni_watch_note(gn_memory_manager *manager, int64_t change);

/* Calls back if that is due, or if the status is that of a request that failed for want of memory; outside
 * of all locks. The detail of the failure stays. */
void gni_watch_tell(gn_memory_manager *manager, gn_status status);

/* What the manager may take has changed. */
void gni_watch_refresh(gn_memory_manager *manager);

static inline bool gni_watch_is_due(const gn_memory_manager *manager)
{
    return __builtin_expect(atomic_load_explicit(&manager->watch.is_due, memory_order_relaxed), 0);
}

/* After a call that may have obtained memory, or failed to. */
static inline void gni_watch_after(gn_memory_manager *manager, gn_status status)
{
    if (gni_watch_is_due(manager) || status == GN_ERROR_OUT_OF_MEMORY)
        gni_watch_tell(manager, status);
}

/* ---- direct.c ------------------------------------------------------------------------------- */

gn_status gni_direct_create(gn_memory_manager *manager, struct gni_direct **direct) GN_NODISCARD;
void gni_direct_destroy(struct gni_direct *direct); /* one that was never used; NULL is allowed */
/* `flags`: of enum gni_block_flag, that the block begins with; so for the pool. */
gn_status gni_direct_alloc(struct gni_direct *direct, size_t nbytes, gn_stream *stream,
                           unsigned flags, gn_memory_block **block) GN_NODISCARD;

/* By address. `nbytes` is NULL where the caller does not say the size. On failure nothing changed. */
gn_status gni_direct_free(struct gni_direct *direct, void *pointer, const size_t *nbytes);
gn_status gni_direct_free_block(gn_memory_block *block) GN_NODISCARD;
gn_status gni_direct_size(struct gni_direct *direct, const void *pointer,
                          size_t *nbytes) GN_NODISCARD;
void gni_direct_statistics(struct gni_direct *direct, gn_memory_statistics *statistics);
void gni_direct_reset_peaks(struct gni_direct *direct);
void gni_direct_set_limit(struct gni_direct *direct, uint64_t limit);

/* Copies what is alive into `infos`, as many as fit; returns how many there are. */
size_t gni_direct_list(struct gni_direct *direct, gn_memory_info *infos, size_t capacity);
size_t gni_direct_report_leaks(struct gni_direct *direct, size_t most);
gn_status gni_direct_clear(struct gni_direct *direct) GN_NODISCARD;
void gni_direct_fork_prepare(struct gni_direct *direct);
void gni_direct_fork_done(struct gni_direct *direct, bool is_child);

/* ---- the pool's side, as manager.c needs it: pool.c ------------------------------------------ */

gn_status gni_pool_create(gn_memory_manager *manager, bool is_virtual,
                          struct gni_pool **pool) GN_NODISCARD;
void gni_pool_destroy(struct gni_pool *pool); /* one that was never used; NULL is allowed */
const char *gni_pool_policy(const struct gni_pool *pool);
uint64_t gni_pool_limit(const struct gni_pool *pool);
gn_status gni_pool_alloc_batch(struct gni_pool *pool, size_t count, const size_t *sizes,
                               gn_stream *stream, void **pointers) GN_NODISCARD;

/* `pointer` is the address that the caller named, or NULL for a handle; the time is for the history, 0 where
 * nothing is recorded. */
gn_status gni_pool_free(gn_memory_block *block, const void *pointer, uint64_t time_ns);
gn_status gni_pool_record_stream(gn_memory_block *block, gn_stream *stream) GN_NODISCARD;

/* Why an address is not a living block. A free that is refused is counted. */
gn_status gni_pool_refuse(struct gni_pool *pool, const void *pointer, bool is_free) GN_NODISCARD;

/* Whether an address lies in the pool's memory, or was freed there not long ago. */
bool gni_pool_knows(struct gni_pool *pool, const void *pointer);
gn_status gni_pool_warm_up(struct gni_pool *pool, size_t count, const size_t *sizes,
                           const size_t *counts) GN_NODISCARD;
void gni_pool_statistics(struct gni_pool *pool, gn_memory_statistics *statistics);
void gni_pool_reset_peaks(struct gni_pool *pool);
size_t gni_pool_classes(struct gni_pool *pool, gn_memory_class *classes, size_t capacity);
size_t gni_pool_list(struct gni_pool *pool, gn_memory_info *infos, size_t capacity);
void gni_pool_get_config(struct gni_pool *pool, gn_memory_config *config);
void gni_pool_configure(struct gni_pool *pool, const gn_memory_config *config);
/* Asks the user's handler whether to try again, outside of all locks; at most three times a request, and never from
 * inside the handler. */
bool gni_pool_handle(struct gni_pool *pool, size_t nbytes, int *calls);
void gni_pool_set_handler(struct gni_pool *pool, gn_memory_handler handler, void *context);
void gni_pool_collect(struct gni_pool *pool);
size_t gni_pool_coalesce(struct gni_pool *pool);
gn_status gni_pool_trim(struct gni_pool *pool, size_t keep_bytes, size_t *released) GN_NODISCARD;
gn_status gni_pool_compact(struct gni_pool *pool, gn_memory_compaction *report) GN_NODISCARD;
void gni_pool_stream_leave(struct gni_pool *pool, gn_stream *stream);
void gni_pool_stream_end(struct gni_pool *pool, gn_stream *stream);
void gni_pool_stream_share(struct gni_pool *pool, gn_stream *stream);
size_t gni_pool_report_leaks(struct gni_pool *pool, size_t most);
gn_status gni_pool_clear(struct gni_pool *pool) GN_NODISCARD;
void gni_pool_fork_prepare(struct gni_pool *pool);
void gni_pool_fork_done(struct gni_pool *pool, bool is_child);

#endif
