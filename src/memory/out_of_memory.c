/*
 * out_of_memory.c: the message of a request that could not be satisfied: what was asked for, who holds the memory, and
 * what would help.
 */
#include "memory/pool.h"

#include "base/text.h"
#include "memory/history.h"

#include <stdio.h>
#include <sys/resource.h>

/* The system has the bytes, and its pages need not be neighbours: some limit is why the process has none. */
static const char *advice_host(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        return "The system has that much, but this process may not take it: ulimit -v";
    if (getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        return "The system has that much, but this process may not take it: ulimit -d";
    return "The system has that much, but refused it: vm.overcommit_memory, or a container's limit";
}

/* What would have helped, from the most likely on. */
static const char *advice(struct gni_pool *pool, const gn_memory_statistics *now, size_t nbytes,
                          size_t device_free)
{
    bool is_host = pool->holder->ops->is_host_memory;
    if (nbytes > pool->total_bytes)
        return is_host ? "The system never has that much" : "The device never has that much";
    if (now->limit_bytes != UINT64_MAX && now->live_bytes + nbytes > now->limit_bytes &&
        now->live_bytes + nbytes <= pool->total_bytes)
        return pool->device->ops->has_options
                   ? "A larger memory fraction (GENESIS_CUDA_MEMORY_FRACTION, set_memory_fraction) "
                     "would allow it"
                   : "A larger memory fraction (set_memory_fraction) would allow it";
    if (now->pending_bytes >= nbytes)
        return "Blocks wait for work on other streams: free them earlier, or synchronize";
    if (is_host && now->cached_bytes < nbytes && device_free >= nbytes)
        return advice_host();
    if (now->cached_bytes + device_free >= nbytes)
        return pool->backing == GNI_BACKING_VIRTUAL
                   ? "Enough is free, but in pieces: compact() can put them together"
               : pool->device->ops->has_options
                   ? "Enough is free, but in pieces: the policy virtual "
                     "(GENESIS_CUDA_ALLOCATOR=virtual) can use them"
                   : "Enough is free, but in pieces: smaller blocks would fit";
    return "Free blocks, or use smaller ones; other processes may hold the rest";
}

gn_status gni_pool_out_of_memory(struct gni_pool *pool, size_t nbytes)
{
    gn_device *device = pool->device;
    gn_memory_statistics now;
    size_t device_free = 0, device_total = 0;
    gni_assert(!gni_pool_is_locked(pool));
    gni_pool_lock(pool);
    pool->counts.out_of_memory_count++;
    gni_pool_unlock(pool);
    gni_pool_statistics(pool, &now);
    (void)pool->holder->ops->memory_info(pool->holder, &device_free, &device_total);
    bool is_host = pool->holder->ops->is_host_memory;
    uint64_t ours = now.reserved_bytes;
    uint64_t others = device_total > device_free + ours ? device_total - device_free - ours : 0;
    char limit[64] = "", holders[2048];
    gni_manager_holders(pool->manager, holders, sizeof holders);
    if (now.limit_bytes != UINT64_MAX)
        (void)snprintf(limit, sizeof limit, ", of %s that it may take",
                       gni_size_text(now.limit_bytes).text);
    return gni_error(
        GN_ERROR_OUT_OF_MEMORY,
        "%s: out of memory: %s were asked for. This process has %s%s: %s live in %llu block%s, %s "
        "cached (the largest piece %s), %s pending. The %s has %s free of %s; other processes "
        "%shold %s. %s.%s",
        gni_device_label(device).text, gni_size_text(nbytes).text, gni_size_text(ours).text, limit,
        gni_size_text(now.live_bytes).text, (unsigned long long)now.live_count,
        gni_plural(now.live_count), gni_size_text(now.cached_bytes).text,
        gni_size_text(now.largest_free_bytes).text, gni_size_text(now.pending_bytes).text,
        is_host ? "system" : "device", gni_size_text(device_free).text,
        gni_size_text(device_total).text, is_host ? "" : "and the driver ",
        gni_size_text(others).text, advice(pool, &now, nbytes, device_free), holders);
}
