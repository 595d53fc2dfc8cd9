/*
 * direct.c: the direct policy: each request is one allocation of the driver.
 *
 *   block      a host descriptor of one living allocation, found by its address in `blocks`
 *   history    the addresses of the last frees, so that a double free can be told from a foreign
 *              address; it forgets an address when the driver hands it out again
 *
 * Invariants, under the manager's mutex:
 *   DI1  a block is in `blocks` exactly while its memory belongs to us and to a caller;
 *   DI2  `blocks` has room for count + allocating + freeing entries: the threads that are in a driver
 *       call may each have to insert a block afterwards, and that must not fail;
 *   DI3  live_count is count + freeing, and live_bytes the sum of their sizes;
 *   DI4  a block leaves `blocks` before its memory goes to the driver: from then on the driver may hand
 *       the same address to another thread.
 *
 * The mutex is not held during a driver call, which may take milliseconds.
 */
#include "memory/manager.h"

#include "base/hash.h"
#include "base/host.h"
#include "base/log.h"
#include "base/option.h"
#include "base/text.h"
#include "base/thread.h"
#include "memory/history.h"

#include <stdio.h>

enum {
    HISTORY_SIZE = 4096, /* a power of two */
    POISON_BYTE = 0xD0,  /* what fresh memory holds with GENESIS_DEBUG=poison */
};

struct direct_block {
    gn_memory_block base; /* first: the handle. address, requested and number are used */
    struct gni_direct *direct;
};

struct history_entry {
    uint64_t address;
    uint64_t number; /* of the allocation that was freed there; 0: empty */
};

struct gni_direct {
    gn_memory_statistics statistics;
    gn_memory_manager *manager;
    struct gni_mutex mutex;
    struct gni_map blocks;     /* address -> struct direct_block *, owned; DI1 */
    size_t allocating;         /* threads in a driver call for a new block */
    size_t freeing;            /* threads in a driver call with a block taken out of `blocks` */
    uint64_t allocating_bytes; /* that the threads in `allocating` ask for */
    uint64_t freeing_bytes;    /* that the threads in `freeing` give back */
    uint64_t last_number;
    uint64_t limit; /* of live_bytes + allocating_bytes, by the memory fraction; or UINT64_MAX */
    struct gni_map freed; /* address -> allocation number, the history by address */
    struct history_entry history[HISTORY_SIZE];
    uint64_t history_next;
};

_Static_assert(offsetof(struct gni_direct, statistics) == GNI_DIRECT_STATISTICS, "for board.c");

/* What the driver is asked for: it gives no address for 0 bytes. */
static size_t block_driver_bytes(const struct direct_block *block)
{
    return block->base.requested > 0 ? block->base.requested : 1;
}

/* ---- the history of frees ------------------------------------------------------------------- */

static void *number_as_value(uint64_t number)
{
    return (void *)(uintptr_t)number;
}

static void history_forget(struct gni_direct *direct, uint64_t address)
{
    (void)gni_map_take(&direct->freed, address, NULL);
}

/* Remembers a free, as far as memory allows: it only makes a message better. */
static void history_remember(struct gni_direct *direct, uint64_t address, uint64_t number)
{
    struct history_entry *entry = &direct->history[direct->history_next++ & (HISTORY_SIZE - 1)];
    if (entry->number != 0 &&
        gni_map_find(&direct->freed, entry->address) == number_as_value(entry->number))
        history_forget(direct, entry->address);
    *entry = (struct history_entry){.address = address, .number = number};
    history_forget(direct, address);
    if (gni_map_insert(&direct->freed, address, number_as_value(number)) != GN_OK)
        entry->number = 0;
}

/* ---- errors --------------------------------------------------------------------------------- */

/* The living block that an address points into, if any. Looks at all: for error messages only. */
static const struct direct_block *block_find_around(const struct gni_direct *direct,
                                                    uint64_t address)
{
    gni_map_each (entry, &direct->blocks) {
        const struct direct_block *block = entry->value;
        if (address >= entry->key && address - entry->key < block->base.requested)
            return block;
    }
    return NULL;
}

/* Why an address did not free the block there. */
static gn_status refusal_owned(const struct gni_direct *direct, const struct direct_block *block)
{
    return gni_error(GN_ERROR_INVALID_POINTER, GNI_OWNED_TEXT,
                     gni_device_label(direct->manager->device).text, block->base.requested,
                     block->base.address, gni_block_owner(&block->base));
}

/* Why an address that is not a living block was refused. */
static gn_status refusal(const struct gni_direct *direct, uint64_t address)
{
    struct gni_device_label label = gni_device_label(direct->manager->device);
    /* First: what lives there now was handed out after anything that was freed there. */
    const struct direct_block *around = block_find_around(direct, address);
    if (around != NULL && gni_block_has(&around->base, GNI_BLOCK_OWNED))
        return refusal_owned(direct, around);
    if (around != NULL)
        return gni_error(GN_ERROR_INVALID_POINTER,
                         "%s: 0x%llx is %llu bytes into the block of %zu bytes at %p; free the "
                         "address that the allocation returned",
                         label.text, (unsigned long long)address,
                         (unsigned long long)(address - (uintptr_t)around->base.address),
                         around->base.requested, around->base.address);
    void *number = gni_map_find(&direct->freed, address);
    if (number != NULL)
        return gni_error(GN_ERROR_DOUBLE_FREE,
                         "%s: 0x%llx was freed already (allocation %llu); nothing was changed",
                         label.text, (unsigned long long)address,
                         (unsigned long long)(uintptr_t)number);
    return gni_error(GN_ERROR_INVALID_POINTER,
                     "%s: 0x%llx was not allocated by this memory manager; nothing was changed",
                     label.text, (unsigned long long)address);
}

static gn_status out_of_memory_error(struct gni_direct *direct, size_t nbytes, const char *reason)
{
    gn_device *device = direct->manager->device;
    char cause[256];
    (void)snprintf(cause, sizeof cause, "%s", reason);
    gn_memory_statistics now;
    gni_mutex_lock(&direct->mutex);
    direct->statistics.out_of_memory_count++;
    now = direct->statistics;
    gni_mutex_unlock(&direct->mutex);
    size_t free_bytes = 0, total_bytes = 0;
    (void)device->ops->memory_info(device, &free_bytes, &total_bytes);
    char holders[2048];
    gni_manager_holders(direct->manager, holders, sizeof holders);
    return gni_error(GN_ERROR_OUT_OF_MEMORY,
                     "%s: out of memory: %s were asked for; %s are live in %llu block%s of this "
                     "process, and the device has %s free of %s (%s).%s",
                     gni_device_label(device).text, gni_size_text(nbytes).text,
                     gni_size_text(now.live_bytes).text, (unsigned long long)now.live_count,
                     gni_plural(now.live_count), gni_size_text(free_bytes).text,
                     gni_size_text(total_bytes).text, cause, holders);
}

/* ---- counting ------------------------------------------------------------------------------- */

/* Nothing is ever pending, and each block is a piece of the driver's. */
static void actives_set(gn_memory_statistics *statistics)
{
    statistics->active_bytes_peak = statistics->live_bytes_peak;
    statistics->active_count_peak = statistics->driver_count_peak = statistics->live_count_peak;
}

static void peaks_raise(gn_memory_statistics *statistics)
{
    if (statistics->live_bytes > statistics->live_bytes_peak)
        statistics->live_bytes_peak = statistics->live_bytes;
    if (statistics->live_count > statistics->live_count_peak)
        statistics->live_count_peak = statistics->live_count;
    if (statistics->reserved_bytes > statistics->reserved_bytes_peak)
        statistics->reserved_bytes_peak = statistics->reserved_bytes;
    actives_set(statistics);
}

static void statistics_add(struct gni_direct *direct, const struct direct_block *block)
{
    gn_memory_statistics *statistics = &direct->statistics;
    atomic_fetch_add(&direct->manager->device->object_count,
                     1); /* it may not be closed under a block */
    statistics->alloc_count++;
    statistics->driver_alloc_count++;
    statistics->driver_bytes_total += block->base.requested;
    statistics->alloc_bytes_total += block->base.requested;
    statistics->live_bytes += block->base.requested;
    statistics->live_count++;
    statistics->reserved_bytes = statistics->live_bytes;
    gni_watch_note(direct->manager, (int64_t)block->base.requested);
    peaks_raise(statistics);
    gni_assert(statistics->live_count ==
               gni_map_count(&direct->blocks) + direct->freeing); /* DI3 */
}

static void statistics_remove(struct gni_direct *direct, const struct direct_block *block)
{
    gn_memory_statistics *statistics = &direct->statistics;
    gni_assert(statistics->live_bytes >= block->base.requested && statistics->live_count > 0);
    atomic_fetch_sub(&direct->manager->device->object_count, 1);
    statistics->free_count++;
    statistics->driver_free_count++;
    statistics->free_bytes_total += block->base.requested;
    statistics->live_bytes -= block->base.requested;
    statistics->live_count--;
    statistics->reserved_bytes = statistics->live_bytes;
    gni_watch_note(direct->manager, -(int64_t)block->base.requested);
}

/* ---- allocating ----------------------------------------------------------------------------- */

/* Makes room for one more block and counts this thread in; see DI2. */
static gn_status allocating_begin(struct gni_direct *direct, size_t nbytes)
{
    gni_mutex_lock(&direct->mutex);
    uint64_t used = direct->statistics.live_bytes + direct->allocating_bytes;
    bool is_over = used > direct->limit || nbytes > direct->limit - used;
    size_t most = gni_map_count(&direct->blocks) + direct->allocating + direct->freeing + 1;
    gn_status status = is_over ? GN_ERROR_OUT_OF_MEMORY : gni_map_reserve(&direct->blocks, most);
    if (status == GN_OK) {
        direct->allocating++;
        direct->allocating_bytes += nbytes;
    }
    gni_mutex_unlock(&direct->mutex);
    if (is_over)
        return out_of_memory_error(direct, nbytes, "GENESIS_CUDA_MEMORY_FRACTION allows no more");
    return status;
}

/* Counts this thread out; the block is a living one from now on, unless the driver failed. */
static void allocating_end(struct gni_direct *direct, struct direct_block *block, bool is_obtained)
{
    gni_mutex_lock(&direct->mutex);
    direct->allocating--;
    direct->allocating_bytes -= block->base.requested;
    if (is_obtained) {
        gn_status status = gni_map_insert(&direct->blocks, (uintptr_t)block->base.address, block);
        gni_assert(status == GN_OK); /* DI2 */
        (void)status;
        block->base.number = ++direct->last_number;
        statistics_add(direct, block);
        history_forget(direct, (uintptr_t)block->base.address);
    }
    gni_mutex_unlock(&direct->mutex);
}

/* What the options want fresh memory to hold. Waits, so that every stream sees it. */
static gn_status memory_prepare(gn_stream *stream, void *pointer, size_t nbytes)
{
    bool is_poisoned = (gni_option_set(GNI_OPTION_DEBUG) & GNI_DEBUG_POISON) != 0;
    bool is_zeroed = stream->device->ops->has_options && gni_option_flag(GNI_OPTION_CUDA_ZERO);
    if (nbytes == 0 || (!is_poisoned && !is_zeroed))
        return GN_OK;
    GN_TRY(gn_fill(pointer, is_zeroed ? 0 : POISON_BYTE, 1, nbytes, stream));
    return gn_stream_synchronize(stream);
}

/* Page-locked memory is host memory of the device's; everything else is its own. */
static gn_status memory_obtain(struct gni_direct *direct, size_t nbytes, void **pointer)
{
    gn_device *device = direct->manager->device;
    return direct->manager->is_pinned ? device->ops->host_alloc(device, nbytes, pointer)
                                      : device->ops->memory_alloc(device, nbytes, pointer);
}

static gn_status memory_return(struct gni_direct *direct, void *pointer, size_t nbytes)
{
    gn_device *device = direct->manager->device;
    return direct->manager->is_pinned ? device->ops->host_free(device, pointer, nbytes)
                                      : device->ops->memory_free(device, pointer, nbytes);
}

/* The driver's part: memory for a block, prepared. */
static gn_status block_obtain(struct gni_direct *direct, struct direct_block *block,
                              gn_stream *stream)
{
    size_t driver_bytes = block_driver_bytes(block);
    void *address;
    gn_status status = memory_obtain(direct, driver_bytes, &address);
    if (status == GN_ERROR_OUT_OF_MEMORY)
        return out_of_memory_error(direct, block->base.requested, gn_error_detail());
    GN_TRY(status);
    block->base.address = address;
    status = memory_prepare(stream, block->base.address, block->base.requested);
    if (status != GN_OK)
        (void)memory_return(direct, block->base.address, driver_bytes);
    return status;
}

gn_status gni_direct_alloc(struct gni_direct *direct, size_t nbytes, gn_stream *stream,
                           unsigned flags, gn_memory_block **out)
{
    struct direct_block *block = gni_host_alloc(sizeof *block);
    if (block == NULL)
        return gni_error_host_memory(sizeof *block);
    block->direct = direct;
    block->base.requested = nbytes;
    block->base.nbytes = nbytes;
    gni_block_set_state(&block->base, GNI_BLOCK_LIVE);
    gni_block_add_flags(&block->base, flags);
    gn_status status = allocating_begin(direct, nbytes);
    if (status != GN_OK)
        goto free_descriptor;
    status = block_obtain(direct, block, stream);
    allocating_end(direct, block, status == GN_OK);
    if (status != GN_OK)
        goto free_descriptor;
    if (gni_history_is_on())
        gni_history_segment(direct->manager, block->base.address, nbytes, true, gni_time_ns());
    *out = &block->base;
    return GN_OK;

free_descriptor:
    gni_host_free(block);
    return status;
}

/* ---- freeing -------------------------------------------------------------------------------- */

/* Takes a block out of the map, keeping its room there (DI2, DI4), or says why it cannot be freed. */
static gn_status freeing_begin(struct gni_direct *direct, uint64_t address, const size_t *nbytes,
                               bool is_by_address, struct direct_block **taken)
{
    gn_status status = GN_OK;
    gni_mutex_lock(&direct->mutex);
    struct direct_block *block = gni_map_find(&direct->blocks, address);
    if (block == NULL)
        status = refusal(direct, address);
    else if (is_by_address && gni_block_has(&block->base, GNI_BLOCK_OWNED))
        status = refusal_owned(direct, block);
    else if (nbytes != NULL && *nbytes != block->base.requested)
        status = gni_error(GN_ERROR_WRONG_SIZE,
                           "%s: the block at 0x%llx has %zu bytes, not %zu; nothing was changed",
                           gni_device_label(direct->manager->device).text,
                           (unsigned long long)address, block->base.requested, *nbytes);
    if (status == GN_OK) {
        (void)gni_map_take(&direct->blocks, address, NULL);
        direct->freeing++;
        direct->freeing_bytes += block->base.requested;
        /* Now, or a free by the address's next owner could look like a second free of ours. */
        history_remember(direct, address, block->base.number);
        *taken = block;
    } else {
        direct->statistics.refused_count++;
    }
    gni_mutex_unlock(&direct->mutex);
    return status;
}

/* Counts this thread out; a block that the driver did not take back lives on. */
static void freeing_end(struct gni_direct *direct, struct direct_block *block, bool is_freed)
{
    gni_mutex_lock(&direct->mutex);
    direct->freeing--;
    direct->freeing_bytes -= block->base.requested;
    if (is_freed) {
        statistics_remove(direct, block);
    } else {
        gn_status status = gni_map_insert(&direct->blocks, (uintptr_t)block->base.address, block);
        gni_assert(status == GN_OK); /* DI2 */
        (void)status;
        history_forget(direct, (uintptr_t)block->base.address);
    }
    gni_mutex_unlock(&direct->mutex);
}

static gn_status direct_free(struct gni_direct *direct, void *pointer, const size_t *nbytes,
                             bool is_by_address)
{
    struct direct_block *block;
    uint64_t now = gni_history_is_on() ? gni_time_ns() : 0; /* before the address is free */
    GN_TRY(freeing_begin(direct, (uintptr_t)pointer, nbytes, is_by_address, &block));
    gn_status status = memory_return(direct, pointer, block_driver_bytes(block));
    freeing_end(direct, block, status == GN_OK);
    if (status != GN_OK)
        return status;
    if (now != 0) {
        gni_history_free(direct->manager, &block->base, now);
        gni_history_segment(direct->manager, pointer, block->base.nbytes, false, now);
    }
    gni_host_free(block);
    return GN_OK;
}

gn_status gni_direct_free(struct gni_direct *direct, void *pointer, const size_t *nbytes)
{
    return direct_free(direct, pointer, nbytes, true);
}

gn_status gni_direct_free_block(gn_memory_block *block)
{
    return direct_free(((struct direct_block *)(void *)block)->direct, block->address, NULL, false);
}

/* ---- the rest ------------------------------------------------------------------------------- */

gn_status gni_direct_size(struct gni_direct *direct, const void *pointer, size_t *nbytes)
{
    gni_mutex_lock(&direct->mutex);
    const struct direct_block *block = gni_map_find(&direct->blocks, (uintptr_t)pointer);
    gn_status status = GN_OK;
    if (block != NULL)
        *nbytes = block->base.requested;
    else
        status = refusal(direct, (uintptr_t)pointer);
    gni_mutex_unlock(&direct->mutex);
    return status;
}

void gni_direct_statistics(struct gni_direct *direct, gn_memory_statistics *statistics)
{
    gni_mutex_lock(&direct->mutex);
    *statistics = direct->statistics;
    statistics->limit_bytes = direct->limit;
    gni_mutex_unlock(&direct->mutex);
    statistics->requested_bytes = statistics->live_bytes;
    statistics->requested_bytes_peak = statistics->live_bytes_peak;
    statistics->miss_count = statistics->alloc_count;
}

void gni_direct_reset_peaks(struct gni_direct *direct)
{
    gni_mutex_lock(&direct->mutex);
    gn_memory_statistics *statistics = &direct->statistics;
    statistics->live_bytes_peak = statistics->live_bytes;
    statistics->live_count_peak = statistics->live_count;
    statistics->reserved_bytes_peak = statistics->reserved_bytes;
    actives_set(statistics);
    gni_mutex_unlock(&direct->mutex);
}

void gni_direct_set_limit(struct gni_direct *direct, uint64_t limit)
{
    gni_mutex_lock(&direct->mutex);
    direct->limit = limit;
    gni_mutex_unlock(&direct->mutex);
}

size_t gni_direct_list(struct gni_direct *direct, gn_memory_info *infos, size_t capacity)
{
    gni_mutex_lock(&direct->mutex);
    size_t count = 0;
    gni_map_each (entry, &direct->blocks) {
        const struct direct_block *block = entry->value;
        uint64_t age;
        uint32_t site = gni_history_site(&block->base, &age);
        if (count < capacity)
            infos[count] = (gn_memory_info){.segment_id = block->base.number,
                                            .segment_address = block->base.address,
                                            .segment_bytes = block->base.requested,
                                            .address = block->base.address,
                                            .nbytes = block->base.requested,
                                            .requested = block->base.requested,
                                            .state = GN_MEMORY_LIVE,
                                            .number = block->base.number,
                                            .site = site,
                                            .age_ns = age};
        count++;
    }
    gni_mutex_unlock(&direct->mutex);
    return count;
}

size_t gni_direct_report_leaks(struct gni_direct *direct, size_t most)
{
    gni_mutex_lock(&direct->mutex);
    size_t count = gni_map_count(&direct->blocks), printed = 0;
    struct gni_device_label label = gni_device_label(direct->manager->device);
    gni_map_each (entry, &direct->blocks) {
        const struct direct_block *block = entry->value;
        if (printed++ >= most)
            break;
        gni_log(GNI_LOG_WARNING, "leak: %s: %zu bytes at %p (allocation %llu)", label.text,
                block->base.requested, block->base.address, (unsigned long long)block->base.number);
    }
    if (most > 0 && count > most)
        gni_log(GNI_LOG_WARNING, "leak: %s: and %zu more block%s", label.text, count - most,
                gni_plural(count - most));
    gni_mutex_unlock(&direct->mutex);
    return count;
}

enum {
    CLEAR_BATCH = 512,
};

/* Addresses of living blocks, as many as fit; their number. */
static size_t blocks_list(struct gni_direct *direct, void **pointers, size_t capacity)
{
    size_t count = 0;
    gni_mutex_lock(&direct->mutex);
    gni_map_each (entry, &direct->blocks) {
        if (count == capacity)
            break;
        pointers[count++] = ((struct direct_block *)entry->value)->base.address;
    }
    gni_mutex_unlock(&direct->mutex);
    return count;
}

gn_status gni_direct_clear(struct gni_direct *direct)
{
    gn_status first = GN_OK;
    void *pointers[CLEAR_BATCH];
    size_t freed;
    do { /* until a whole batch is refused, or nothing is left */
        freed = 0;
        size_t count = blocks_list(direct, pointers, CLEAR_BATCH);
        for (size_t i = 0; i < count; i++) {
            gn_status status = direct_free(direct, pointers[i], NULL, false);
            freed += status == GN_OK;
            if (first == GN_OK)
                first = status;
        }
    } while (freed > 0);
    return first;
}

/* ---- making --------------------------------------------------------------------------------- */

void gni_direct_fork_prepare(struct gni_direct *direct)
{
    gni_mutex_fork_lock(&direct->mutex);
}

void gni_direct_fork_done(struct gni_direct *direct, bool is_child)
{
    if (is_child) {
        /* The threads that were in a driver call are not in this process; nor will they be back. */
        direct->statistics.live_count -= direct->freeing;
        direct->statistics.live_bytes -= direct->freeing_bytes;
        direct->statistics.reserved_bytes = direct->statistics.live_bytes;
        direct->statistics.free_count += direct->freeing;
        direct->statistics.free_bytes_total += direct->freeing_bytes;
        direct->statistics.driver_free_count += direct->freeing;
        direct->allocating = direct->freeing = 0;
        direct->allocating_bytes = direct->freeing_bytes = 0;
    }
    gni_mutex_fork_unlock(&direct->mutex);
}

gn_status gni_direct_create(gn_memory_manager *manager, struct gni_direct **out)
{
    struct gni_direct *direct = gni_host_alloc(sizeof *direct);
    if (direct == NULL)
        return gni_error_host_memory(sizeof *direct);
    direct->manager = manager;
    gni_mutex_init(&direct->mutex);
    gni_map_init(&direct->blocks);
    gni_map_init(&direct->freed);
    direct->limit = UINT64_MAX;
    *out = direct;
    return GN_OK;
}

void gni_direct_destroy(struct gni_direct *direct)
{
    if (direct == NULL)
        return;
    gni_mutex_deinit(&direct->mutex);
    gni_host_free(direct);
}
