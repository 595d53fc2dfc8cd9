/*
 * direct.c: the direct policy: each request is one allocation of the driver.
 *
 *   block      a host descriptor of one living allocation, found by its address in `blocks`
 *   history    the addresses of the last frees, so that a double free can be told from a foreign
 *              address; it forgets an address when the driver hands it out again
 *
 * Invariants, under the manager's mutex:
 *   D1  a block is in `blocks` exactly while its memory belongs to us and to a caller;
 *   D2  `blocks` has room for count + allocating + freeing entries: the threads that are in a driver
 *       call may each have to insert a block afterwards, and that must not fail;
 *   D3  live_count is count + freeing, and live_bytes the sum of their sizes;
 *   D4  a block leaves `blocks` before its memory goes to the driver: from then on the driver may hand
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

#include <stdio.h>

enum {
    HISTORY_SIZE = 4096, /* a power of two */
    POISON_BYTE = 0xD0,  /* what fresh memory holds with GENESIS_DEBUG=poison */
};

struct direct_block {
    void *pointer;
    size_t nbytes;   /* as asked for; the driver was asked for at least 1 */
    uint64_t number; /* of the allocation, counted from 1 */
};

struct history_entry {
    uint64_t address;
    uint64_t number; /* of the allocation that was freed there; 0: empty */
};

struct direct_manager {
    gn_memory_manager base; /* first: a gn_memory_manager pointer is a pointer to this */
    struct gni_mutex mutex;
    struct gni_map blocks;     /* address -> struct direct_block *, owned; D1 */
    size_t allocating;         /* threads in a driver call for a new block */
    size_t freeing;            /* threads in a driver call with a block taken out of `blocks` */
    uint64_t allocating_bytes; /* that the threads in `allocating` ask for */
    uint64_t freeing_bytes;    /* that the threads in `freeing` give back */
    uint64_t last_number;
    uint64_t limit; /* of live_bytes + allocating_bytes, by the memory fraction; or UINT64_MAX */
    gn_memory_statistics statistics;
    struct gni_map freed; /* address -> allocation number, the history by address */
    struct history_entry history[HISTORY_SIZE];
    uint64_t history_next;
};

static struct direct_manager *direct_of(gn_memory_manager *manager)
{
    gni_assert(manager->policy == &gni_memory_policy_direct);
    return (struct direct_manager *)(void *)manager;
}

/* What the driver is asked for: it gives no address for 0 bytes. */
static size_t block_driver_bytes(const struct direct_block *block)
{
    return block->nbytes > 0 ? block->nbytes : 1;
}

/* ---- the history of frees ------------------------------------------------------------------- */

static void *number_as_value(uint64_t number)
{
    return (void *)(uintptr_t)number;
}

static void history_forget(struct direct_manager *manager, uint64_t address)
{
    (void)gni_map_take(&manager->freed, address, NULL);
}

/* Remembers a free, as far as memory allows: it only makes a message better. */
static void history_remember(struct direct_manager *manager, uint64_t address, uint64_t number)
{
    struct history_entry *entry = &manager->history[manager->history_next++ & (HISTORY_SIZE - 1)];
    if (entry->number != 0 &&
        gni_map_find(&manager->freed, entry->address) == number_as_value(entry->number))
        history_forget(manager, entry->address);
    *entry = (struct history_entry){.address = address, .number = number};
    history_forget(manager, address);
    if (gni_map_insert(&manager->freed, address, number_as_value(number)) != GN_OK)
        entry->number = 0;
}

/* ---- errors --------------------------------------------------------------------------------- */

/* The living block that an address points into, if any. Looks at all: for error messages only. */
static const struct direct_block *block_find_around(const struct direct_manager *manager,
                                                    uint64_t address)
{
    gni_map_each (entry, &manager->blocks) {
        const struct direct_block *block = entry->value;
        if (address >= entry->key && address - entry->key < block->nbytes)
            return block;
    }
    return NULL;
}

/* Why an address that is not a living block was refused. */
static gn_status refusal(const struct direct_manager *manager, uint64_t address)
{
    struct gni_device_label label = gni_device_label(manager->base.device);
    /* First: what lives there now was handed out after anything that was freed there. */
    const struct direct_block *around = block_find_around(manager, address);
    if (around != NULL)
        return gni_error(GN_ERROR_INVALID_POINTER,
                         "%s: 0x%llx is %llu bytes into the block of %zu bytes at %p; free the "
                         "address that the allocation returned",
                         label.text, (unsigned long long)address,
                         (unsigned long long)(address - (uintptr_t)around->pointer), around->nbytes,
                         around->pointer);
    void *number = gni_map_find(&manager->freed, address);
    if (number != NULL)
        return gni_error(GN_ERROR_DOUBLE_FREE,
                         "%s: 0x%llx was freed already (allocation %llu); nothing was changed",
                         label.text, (unsigned long long)address,
                         (unsigned long long)(uintptr_t)number);
    return gni_error(GN_ERROR_INVALID_POINTER,
                     "%s: 0x%llx was not allocated by this memory manager; nothing was changed",
                     label.text, (unsigned long long)address);
}

static gn_status out_of_memory_error(struct direct_manager *manager, size_t nbytes,
                                     const char *reason)
{
    gn_device *device = manager->base.device;
    char cause[256];
    (void)snprintf(cause, sizeof cause, "%s", reason);
    gn_memory_statistics now;
    gni_mutex_lock(&manager->mutex);
    manager->statistics.out_of_memory_count++;
    now = manager->statistics;
    gni_mutex_unlock(&manager->mutex);
    size_t free_bytes = 0, total_bytes = 0;
    (void)device->ops->memory_info(device, &free_bytes, &total_bytes);
    return gni_error(GN_ERROR_OUT_OF_MEMORY,
                     "%s: out of memory: %s were asked for; %s are live in %llu blocks of this "
                     "process, and the device has %s free of %s (%s)",
                     gni_device_label(device).text, gni_size_text(nbytes).text,
                     gni_size_text(now.live_bytes).text, (unsigned long long)now.live_count,
                     gni_size_text(free_bytes).text, gni_size_text(total_bytes).text, cause);
}

/* ---- counting ------------------------------------------------------------------------------- */

static void peaks_raise(gn_memory_statistics *statistics)
{
    if (statistics->live_bytes > statistics->live_bytes_peak)
        statistics->live_bytes_peak = statistics->live_bytes;
    if (statistics->live_count > statistics->live_count_peak)
        statistics->live_count_peak = statistics->live_count;
    if (statistics->reserved_bytes > statistics->reserved_bytes_peak)
        statistics->reserved_bytes_peak = statistics->reserved_bytes;
}

static void statistics_add(struct direct_manager *manager, const struct direct_block *block)
{
    gn_memory_statistics *statistics = &manager->statistics;
    atomic_fetch_add(&manager->base.device->object_count,
                     1); /* it may not be closed under a block */
    statistics->alloc_count++;
    statistics->driver_alloc_count++;
    statistics->alloc_bytes_total += block->nbytes;
    statistics->live_bytes += block->nbytes;
    statistics->live_count++;
    statistics->reserved_bytes = statistics->live_bytes;
    peaks_raise(statistics);
    gni_assert(statistics->live_count ==
               gni_map_count(&manager->blocks) + manager->freeing); /* D3 */
}

static void statistics_remove(struct direct_manager *manager, const struct direct_block *block)
{
    gn_memory_statistics *statistics = &manager->statistics;
    gni_assert(statistics->live_bytes >= block->nbytes && statistics->live_count > 0);
    atomic_fetch_sub(&manager->base.device->object_count, 1);
    statistics->free_count++;
    statistics->driver_free_count++;
    statistics->free_bytes_total += block->nbytes;
    statistics->live_bytes -= block->nbytes;
    statistics->live_count--;
    statistics->reserved_bytes = statistics->live_bytes;
}

/* ---- allocating ----------------------------------------------------------------------------- */

/* Makes room for one more block and counts this thread in; see D2. */
static gn_status allocating_begin(struct direct_manager *manager, size_t nbytes)
{
    gni_mutex_lock(&manager->mutex);
    uint64_t used = manager->statistics.live_bytes + manager->allocating_bytes;
    bool is_over = used > manager->limit || nbytes > manager->limit - used;
    size_t most = gni_map_count(&manager->blocks) + manager->allocating + manager->freeing + 1;
    gn_status status = is_over ? GN_ERROR_OUT_OF_MEMORY : gni_map_reserve(&manager->blocks, most);
    if (status == GN_OK) {
        manager->allocating++;
        manager->allocating_bytes += nbytes;
    }
    gni_mutex_unlock(&manager->mutex);
    if (is_over)
        return out_of_memory_error(manager, nbytes, "GENESIS_CUDA_MEMORY_FRACTION allows no more");
    return status;
}

/* Counts this thread out; the block is a living one from now on, unless the driver failed. */
static void allocating_end(struct direct_manager *manager, struct direct_block *block,
                           bool is_obtained)
{
    gni_mutex_lock(&manager->mutex);
    manager->allocating--;
    manager->allocating_bytes -= block->nbytes;
    if (is_obtained) {
        gn_status status = gni_map_insert(&manager->blocks, (uintptr_t)block->pointer, block);
        gni_assert(status == GN_OK); /* D2 */
        (void)status;
        block->number = ++manager->last_number;
        statistics_add(manager, block);
        history_forget(manager, (uintptr_t)block->pointer);
    }
    gni_mutex_unlock(&manager->mutex);
}

/* What the options want fresh memory to hold. Waits, so that every stream sees it. */
static gn_status memory_prepare(gn_stream *stream, void *pointer, size_t nbytes)
{
    bool is_poisoned = (gni_option_set(GNI_OPTION_DEBUG) & GNI_DEBUG_POISON) != 0;
    bool is_zeroed =
        stream->device->type == GN_DEVICE_CUDA && gni_option_flag(GNI_OPTION_CUDA_ZERO);
    if (nbytes == 0 || (!is_poisoned && !is_zeroed))
        return GN_OK;
    GN_TRY(gn_fill(pointer, is_zeroed ? 0 : POISON_BYTE, 1, nbytes, stream));
    return gn_stream_synchronize(stream);
}

/* The driver's part: memory for a block, prepared. */
static gn_status block_obtain(struct direct_manager *manager, struct direct_block *block,
                              gn_stream *stream)
{
    gn_device *device = manager->base.device;
    size_t driver_bytes = block_driver_bytes(block);
    gn_status status = device->ops->memory_alloc(device, driver_bytes, &block->pointer);
    if (status == GN_ERROR_OUT_OF_MEMORY)
        return out_of_memory_error(manager, block->nbytes, gn_error_detail());
    GN_TRY(status);
    status = memory_prepare(stream, block->pointer, block->nbytes);
    if (status != GN_OK)
        (void)device->ops->memory_free(device, block->pointer, driver_bytes);
    return status;
}

static gn_status direct_alloc(gn_memory_manager *base, size_t nbytes, gn_stream *stream,
                              void **pointer)
{
    struct direct_manager *manager = direct_of(base);
    struct direct_block *block = gni_host_alloc(sizeof *block);
    if (block == NULL)
        return gni_error_host_memory(sizeof *block);
    block->nbytes = nbytes;
    gn_status status = allocating_begin(manager, nbytes);
    if (status != GN_OK)
        goto free_descriptor;
    status = block_obtain(manager, block, stream);
    allocating_end(manager, block, status == GN_OK);
    if (status != GN_OK)
        goto free_descriptor;
    *pointer = block->pointer;
    return GN_OK;

free_descriptor:
    gni_host_free(block);
    return status;
}

/* ---- freeing -------------------------------------------------------------------------------- */

/* Takes a block out of the map, keeping its room there (D2, D4), or says why it cannot be freed. */
static gn_status freeing_begin(struct direct_manager *manager, uint64_t address,
                               const size_t *nbytes, struct direct_block **taken)
{
    gn_status status = GN_OK;
    gni_mutex_lock(&manager->mutex);
    struct direct_block *block = gni_map_find(&manager->blocks, address);
    if (block == NULL)
        status = refusal(manager, address);
    else if (nbytes != NULL && *nbytes != block->nbytes)
        status = gni_error(GN_ERROR_WRONG_SIZE,
                           "%s: the block at 0x%llx has %zu bytes, not %zu; nothing was changed",
                           gni_device_label(manager->base.device).text, (unsigned long long)address,
                           block->nbytes, *nbytes);
    if (status == GN_OK) {
        (void)gni_map_take(&manager->blocks, address, NULL);
        manager->freeing++;
        manager->freeing_bytes += block->nbytes;
        /* Now, or a free by the address's next owner could look like a second free of ours. */
        history_remember(manager, address, block->number);
        *taken = block;
    } else {
        manager->statistics.refused_count++;
    }
    gni_mutex_unlock(&manager->mutex);
    return status;
}

/* Counts this thread out; a block that the driver did not take back lives on. */
static void freeing_end(struct direct_manager *manager, struct direct_block *block, bool is_freed)
{
    gni_mutex_lock(&manager->mutex);
    manager->freeing--;
    manager->freeing_bytes -= block->nbytes;
    if (is_freed) {
        statistics_remove(manager, block);
    } else {
        gn_status status = gni_map_insert(&manager->blocks, (uintptr_t)block->pointer, block);
        gni_assert(status == GN_OK); /* D2 */
        (void)status;
        history_forget(manager, (uintptr_t)block->pointer);
    }
    gni_mutex_unlock(&manager->mutex);
}

static gn_status direct_free(gn_memory_manager *base, void *pointer, const size_t *nbytes)
{
    struct direct_manager *manager = direct_of(base);
    struct direct_block *block;
    GN_TRY(freeing_begin(manager, (uintptr_t)pointer, nbytes, &block));
    gn_status status =
        base->device->ops->memory_free(base->device, pointer, block_driver_bytes(block));
    freeing_end(manager, block, status == GN_OK);
    if (status == GN_OK)
        gni_host_free(block);
    return status;
}

/* ---- the rest ------------------------------------------------------------------------------- */

static gn_status direct_size(gn_memory_manager *base, const void *pointer, size_t *nbytes)
{
    struct direct_manager *manager = direct_of(base);
    gni_mutex_lock(&manager->mutex);
    const struct direct_block *block = gni_map_find(&manager->blocks, (uintptr_t)pointer);
    gn_status status = GN_OK;
    if (block != NULL)
        *nbytes = block->nbytes;
    else
        status = refusal(manager, (uintptr_t)pointer);
    gni_mutex_unlock(&manager->mutex);
    return status;
}

static gn_status direct_statistics(gn_memory_manager *base, gn_memory_statistics *statistics)
{
    struct direct_manager *manager = direct_of(base);
    gni_mutex_lock(&manager->mutex);
    *statistics = manager->statistics;
    gni_mutex_unlock(&manager->mutex);
    return GN_OK;
}

static void direct_reset_peaks(gn_memory_manager *base)
{
    struct direct_manager *manager = direct_of(base);
    gni_mutex_lock(&manager->mutex);
    gn_memory_statistics *statistics = &manager->statistics;
    statistics->live_bytes_peak = statistics->live_bytes;
    statistics->live_count_peak = statistics->live_count;
    statistics->reserved_bytes_peak = statistics->reserved_bytes;
    gni_mutex_unlock(&manager->mutex);
}

static size_t direct_report_leaks(gn_memory_manager *base, size_t most)
{
    struct direct_manager *manager = direct_of(base);
    gni_mutex_lock(&manager->mutex);
    size_t count = gni_map_count(&manager->blocks), printed = 0;
    gni_map_each (entry, &manager->blocks) {
        const struct direct_block *block = entry->value;
        if (printed++ >= most)
            break;
        gni_log(GNI_LOG_WARNING, "leak: %s: %zu bytes at %p (allocation %llu)",
                gni_device_label(base->device).text, block->nbytes, block->pointer,
                (unsigned long long)block->number);
    }
    if (most > 0 && count > most)
        gni_log(GNI_LOG_WARNING, "leak: %s: and %zu more blocks",
                gni_device_label(base->device).text, count - most);
    gni_mutex_unlock(&manager->mutex);
    return count;
}

enum {
    CLEAR_BATCH = 512,
};

/* Addresses of living blocks, as many as fit; their number. */
static size_t blocks_list(struct direct_manager *manager, void **pointers, size_t capacity)
{
    size_t count = 0;
    gni_mutex_lock(&manager->mutex);
    gni_map_each (entry, &manager->blocks) {
        if (count == capacity)
            break;
        pointers[count++] = ((struct direct_block *)entry->value)->pointer;
    }
    gni_mutex_unlock(&manager->mutex);
    return count;
}

static gn_status direct_clear(gn_memory_manager *base)
{
    gn_status first = GN_OK;
    void *pointers[CLEAR_BATCH];
    size_t freed;
    do { /* until a whole batch is refused, or nothing is left */
        freed = 0;
        size_t count = blocks_list(direct_of(base), pointers, CLEAR_BATCH);
        for (size_t i = 0; i < count; i++) {
            gn_status status = direct_free(base, pointers[i], NULL);
            freed += status == GN_OK;
            if (first == GN_OK)
                first = status;
        }
    } while (freed > 0);
    return first;
}

/* ---- making --------------------------------------------------------------------------------- */

static void direct_fork_prepare(gn_memory_manager *base)
{
    gni_mutex_lock(&direct_of(base)->mutex);
}

static void direct_fork_done(gn_memory_manager *base, bool is_child)
{
    struct direct_manager *manager = direct_of(base);
    if (is_child) {
        /* The threads that were in a driver call are not in this process; nor will they be back. */
        manager->statistics.live_count -= manager->freeing;
        manager->statistics.live_bytes -= manager->freeing_bytes;
        manager->statistics.reserved_bytes = manager->statistics.live_bytes;
        manager->statistics.free_count += manager->freeing;
        manager->statistics.free_bytes_total += manager->freeing_bytes;
        manager->statistics.driver_free_count += manager->freeing;
        manager->allocating = manager->freeing = 0;
        manager->allocating_bytes = manager->freeing_bytes = 0;
    }
    gni_mutex_unlock(&manager->mutex);
}

static gn_status direct_create(gn_device *device, gn_memory_manager **out)
{
    size_t free_bytes, total_bytes;
    GN_TRY(device->ops->memory_info(device, &free_bytes, &total_bytes));
    struct direct_manager *manager = gni_host_alloc(sizeof *manager);
    if (manager == NULL)
        return gni_error_host_memory(sizeof *manager);
    manager->base = (gn_memory_manager){.policy = &gni_memory_policy_direct, .device = device};
    gni_mutex_init(&manager->mutex);
    gni_map_init(&manager->blocks);
    gni_map_init(&manager->freed);
    manager->limit = UINT64_MAX;
    if (device->type == GN_DEVICE_CUDA) {
        double fraction = gni_option_fraction(GNI_OPTION_CUDA_MEMORY_FRACTION);
        if (fraction < 1)
            manager->limit = (uint64_t)(fraction * (double)total_bytes);
    }
    *out = &manager->base;
    return GN_OK;
}

const struct gni_memory_policy gni_memory_policy_direct = {
    .name = "direct",
    .create = direct_create,
    .alloc = direct_alloc,
    .free = direct_free,
    .size = direct_size,
    .statistics = direct_statistics,
    .reset_peaks = direct_reset_peaks,
    .report_leaks = direct_report_leaks,
    .clear = direct_clear,
    .fork_prepare = direct_fork_prepare,
    .fork_done = direct_fork_done,
};
