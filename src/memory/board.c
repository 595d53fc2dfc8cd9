/*
 * board.c: where another process finds this one's figures.
 *
 * `python -m genesis memory watch PID` reads the counters of a running process out of its memory, so that the
 * process itself does nothing for it: no file, no thread, no lock. What the reader has to know of our structures
 * is in one exported table of constants, gn_memory_board, which it finds by name in the library's file:
 *
 *     board.managers -> manager -> device, pool, direct
 *                                  pool -> counts, peaks, caches -> cache -> counters, next
 *
 * A reader takes the offsets from here and none from anywhere else; python/genesis/_watch.py is the only one.
 *
 * Invariants:
 *   BO1  whoever changes what a field of the table means, or their order, changes BOARD_VERSION; what comes later
 *       is added at the end;
 *   BO2  everything that the table leads to is there for ever once it is there, or is a number: a reader that is
 *       not stopped by any lock sees counters of slightly different moments, and never a dangling pointer. The
 *       managers, their pools and the threads' caches are never freed.
 */
#include "memory/cache.h"

#include <stddef.h>

enum {
    BOARD_VERSION = 2,
};

struct board {
    char magic[16];
    uint32_t version, nbytes;  /* of this table */
    const void *managers;      /* pointers, many of them NULL */
    uint32_t manager_count;    /* places in `managers` */
    uint32_t statistics_bytes; /* a gn_memory_statistics */
    struct {
        uint32_t device, is_pinned, pool, direct, is_direct;
    } manager;
    struct {
        uint32_t type, index;
    } device;
    struct {
        uint32_t backing; /* enum gni_backing: 0 is virtual */
        uint32_t counts, caches, live_peak, live_count_peak, requested_peak, reserved,
            reserved_peak, pending, limit;
    } pool;
    struct {
        uint32_t live, alloc_count, stock, alloc_bytes, free_bytes, slow_count, next;
    } cache;
    uint32_t direct_statistics;
    struct {
        uint32_t pending_count, active_peak, active_count_peak;
    } pool_active;
};

#define PLACE(type, field) ((uint32_t)offsetof(struct type, field))

extern GN_API const struct board gn_memory_board;

const struct board gn_memory_board = {
    .magic = "genesis memory",
    .version = BOARD_VERSION,
    .nbytes = sizeof(struct board),
    .managers = gni_managers,
    .manager_count = sizeof gni_managers / sizeof(gn_memory_manager *),
    .statistics_bytes = sizeof(gn_memory_statistics),
    .manager = {.device = PLACE(gn_memory_manager, device),
                .is_pinned = PLACE(gn_memory_manager, is_pinned),
                .pool = PLACE(gn_memory_manager, pool),
                .direct = PLACE(gn_memory_manager, direct),
                .is_direct = PLACE(gn_memory_manager, is_direct)},
    .device = {.type = PLACE(gn_device, type), .index = PLACE(gn_device, index)},
    .pool = {.backing = PLACE(gni_pool, backing),
             .counts = PLACE(gni_pool, counts),
             .caches = PLACE(gni_pool, caches),
             .live_peak = PLACE(gni_pool, live_peak),
             .live_count_peak = PLACE(gni_pool, live_count_peak),
             .requested_peak = PLACE(gni_pool, requested_peak),
             .reserved = PLACE(gni_pool, reserved_bytes),
             .reserved_peak = PLACE(gni_pool, reserved_peak),
             .pending = PLACE(gni_pool, pending_bytes),
             .limit = PLACE(gni_pool, limit)},
    .cache = {.live = PLACE(gni_cache, live),
              .alloc_count = PLACE(gni_cache, alloc_count),
              .stock = PLACE(gni_cache, stock),
              .alloc_bytes = PLACE(gni_cache, alloc_bytes),
              .free_bytes = PLACE(gni_cache, free_bytes),
              .slow_count = PLACE(gni_cache, slow_count),
              .next = PLACE(gni_cache, next)},
    .direct_statistics = GNI_DIRECT_STATISTICS,
    .pool_active = {.pending_count = PLACE(gni_pool, pending_count),
                    .active_peak = PLACE(gni_pool, active_peak),
                    .active_count_peak = PLACE(gni_pool, active_count_peak)},
};

_Static_assert(GNI_BACKING_VIRTUAL == 0, "so says the table");
_Static_assert(GNI_LIVE_BUSY == 1, "the reader takes the lowest bit away");
_Static_assert(GNI_STOCK_LIVE == 1 << 16, "the reader shifts by it");
_Static_assert(GN_DEVICE_CPU == 0 && GN_DEVICE_CUDA == 1,
               "the reader names the devices"); /* by number */
