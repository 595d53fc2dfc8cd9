/*
 * manager.c: the managers of the process, and the checked entrances that are not allocate and free.
 *
 * Threads: managers_mutex guards the making of managers; a finished one is published by a release
 * store and never goes away.
 */
#include "memory/manager.h"

#include "base/checked.h"
#include "base/fork.h"
#include "base/host.h"
#include "base/log.h"
#include "base/option.h"
#include "base/thread.h"
#include "memory/history.h"
#include "memory/mark.h"
#include "memory/size.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LEAKS_PRINTED = 20,             /* of each manager */
    KIND_PINNED = GNI_DEVICE_TYPES, /* page-locked, by the index of the device; others: by type */
};

_Atomic(gn_memory_manager *) gni_managers[GNI_MANAGER_KINDS][GNI_DEVICE_MAX];
static struct gni_mutex managers_mutex = GNI_MUTEX_INIT;
static struct gni_once managers_once = GNI_ONCE_INIT;
static uint8_t manager_count; /* under the mutex */

gn_memory_manager *gn_memory_manager_next(const gn_memory_manager *manager)
{
    int place = 0;
    if (manager != NULL) {
        int kind = manager->is_pinned ? KIND_PINNED : (int)manager->device->type;
        place = kind * GNI_DEVICE_MAX + manager->device->index + 1;
    }
    for (; place < GNI_MANAGER_KINDS * GNI_DEVICE_MAX; place++) {
        gn_memory_manager *found = atomic_load_explicit(
            &gni_managers[place / GNI_DEVICE_MAX][place % GNI_DEVICE_MAX], memory_order_acquire);
        if (found != NULL)
            return found;
    }
    return NULL;
}

/* Calls `visit` for every manager that was made. */
static void managers_each(void (*visit)(gn_memory_manager *manager, void *context), void *context)
{
    for (gn_memory_manager *manager = NULL; (manager = gn_memory_manager_next(manager)) != NULL;)
        visit(manager, context);
}

/* ---- leaks and shutdown --------------------------------------------------------------------- */

static void manager_count_leaks(gn_memory_manager *manager, void *context)
{
#ifdef GNI_DEBUG
    size_t most = LEAKS_PRINTED;
#else
    size_t most = 0;
#endif
    size_t *count = context;
    *count += gni_pool_report_leaks(manager->pool, most);
    if (manager->direct != NULL)
        *count += gni_direct_report_leaks(manager->direct, most);
}

gn_status gni_manager_clear(gn_memory_manager *manager)
{
    gn_status first = gni_pool_clear(manager->pool);
    gn_status status = manager->direct != NULL ? gni_direct_clear(manager->direct) : GN_OK;
    return first != GN_OK ? first : status;
}

static void manager_clear(gn_memory_manager *manager, void *context)
{
    gn_status *first = context;
    gn_status status = gni_manager_clear(manager);
    if (*first == GN_OK)
        *first = status;
}

static _Atomic(uint64_t) shutdown_count;

uint64_t gni_shutdown_count(void)
{
    return atomic_load(&shutdown_count);
}

gn_status gn_shutdown(size_t *leaked)
{
    size_t count = 0;
    atomic_fetch_add(&shutdown_count, 1);
    gn_status status = GN_OK;
    managers_each(manager_count_leaks, &count);
    managers_each(manager_clear, &status);
    int objects = gni_devices_close();
#ifdef GNI_DEBUG
    if (objects > 0)
        gni_log(GNI_LOG_WARNING, "leak: streams, events and modules that were not destroyed: %d",
                objects);
#endif
    if (status == GN_OK && leaked != NULL)
        *leaked = count + (size_t)objects;
    return status;
}

#ifdef GNI_DEBUG
/* Only reports: at exit the driver is not called any more, and the system takes everything back. */
static void managers_at_exit(void)
{
    size_t count = 0;
    managers_each(manager_count_leaks, &count);
}
#endif

static void manager_report_at_exit(gn_memory_manager *manager, void *unused)
{
    (void)unused;
    (void)gni_manager_report_leaks(manager);
}

static pid_t trace_process; /* a forked child does not own what it inherited */

static void trace_at_exit(void)
{
    if (getpid() == trace_process &&
        !gn_history_has_interpreter()) /* which would have reported, with its own lines */
        managers_each(manager_report_at_exit, NULL);
}

/* GENESIS_DEBUG=trace: who holds memory is known from the start, and told at the end. */
static void trace_start(void)
{
    static const gn_history_options options = {.python_frames = 16, .c_frames = 16};
    if (!gni_history_is_on() && gn_history_start(&options) != GN_OK)
        gni_log(GNI_LOG_WARNING, "nothing is traced: %s", gn_error_detail());
    trace_process = getpid();
    (void)atexit(trace_at_exit);
}

/* ---- fork and streams ----------------------------------------------------------------------- */

static void manager_fork_prepare(gn_memory_manager *manager, void *unused)
{
    (void)unused;
    gni_lock_take(&manager->watch.lock);
    gni_pool_fork_prepare(manager->pool);
    if (manager->direct != NULL)
        gni_direct_fork_prepare(manager->direct);
}

static void manager_fork_done(gn_memory_manager *manager, void *is_child)
{
    if (manager->direct != NULL)
        gni_direct_fork_done(manager->direct, *(bool *)is_child);
    gni_pool_fork_done(manager->pool, *(bool *)is_child);
    gni_lock_give(&manager->watch.lock);
}

/* Lock order: managers_mutex, then those of the managers. */
static void managers_fork_prepare(void)
{
    managers_each(manager_fork_prepare, NULL);
}

static void managers_fork_done(bool is_child)
{
    managers_each(manager_fork_done, &is_child);
}

static const struct gni_fork_handlers managers_fork = {
    .mutex = &managers_mutex, .prepare = managers_fork_prepare, .done = managers_fork_done};

/* Something that happens to a stream, and what a pool of its device does then. */
struct stream_change {
    gn_stream *stream;
    void (*change)(struct gni_pool *pool, gn_stream *stream);
};

static void manager_stream_change(gn_memory_manager *manager, void *context)
{
    const struct stream_change *change = context;
    if (manager->device == change->stream->device)
        change->change(manager->pool, change->stream);
}

static void managers_stream_leave(gn_stream *stream)
{
    managers_each(manager_stream_change, &(struct stream_change){stream, gni_pool_stream_leave});
}

static void managers_stream_end(gn_stream *stream)
{
    managers_each(manager_stream_change, &(struct stream_change){stream, gni_pool_stream_end});
}

static void managers_stream_share(gn_stream *stream)
{
    managers_each(manager_stream_change, &(struct stream_change){stream, gni_pool_stream_share});
}

static const struct gni_stream_hooks stream_hooks = {
    .on_unused = managers_stream_leave,
    .on_end = managers_stream_end,
    .on_share = managers_stream_share,
};

static void managers_start(void)
{
    gni_fork_register(GNI_FORK_MEMORY, &managers_fork);
    gni_stream_set_hooks(&stream_hooks);
    if (gni_option_set(GNI_OPTION_DEBUG) & GNI_DEBUG_TRACE)
        trace_start();
#ifdef GNI_DEBUG
    else
        (void)atexit(managers_at_exit);
#endif
}

/* ---- making --------------------------------------------------------------------------------- */

static gn_status direct_ensure(gn_memory_manager *manager)
{
    if (manager->direct != NULL)
        return GN_OK;
    struct gni_direct *direct;
    GN_TRY(gni_direct_create(manager, &direct));
    atomic_store(&manager->direct, direct);
    return GN_OK;
}

/* The settings are good, and the engine that they name is there. */
static void config_apply(gn_memory_manager *manager, const gn_memory_config *config)
{
    gni_pool_configure(manager->pool, config);
    gni_watch_refresh(manager);
    if (manager->direct != NULL)
        gni_direct_set_limit(manager->direct, gni_pool_limit(manager->pool));
    atomic_store(&manager->is_direct, config->strategy == GN_MEMORY_DIRECT);
}

gn_status gni_manager_create(gn_device *device, bool is_pinned, const char *policy,
                             gn_memory_manager **out)
{
    gn_memory_manager *manager = gni_host_alloc(sizeof *manager);
    if (manager == NULL)
        return gni_error_host_memory(sizeof *manager);
    manager->device = device;
    manager->is_pinned = is_pinned;
    manager->number = UINT8_MAX;
    atomic_init(&manager->watch.threshold, UINT64_MAX);
    bool is_direct = strcmp(policy, "direct") == 0;
    atomic_init(&manager->is_direct, is_direct);
    /* The pool is there in any case: the policy can be changed. */
    gn_status status = gni_pool_create(manager, strcmp(policy, "virtual") == 0, &manager->pool);
    if (status == GN_OK && is_direct)
        status = direct_ensure(manager);
    if (status == GN_OK && is_direct) {
        gn_memory_config config;
        gni_pool_get_config(manager->pool, &config);
        config.strategy = GN_MEMORY_DIRECT;
        config_apply(manager, &config);
    }
    if (status != GN_OK) {
        gni_pool_destroy(manager->pool);
        gni_direct_destroy(manager->direct);
        gni_host_free(manager);
        return status;
    }
    *out = manager;
    return GN_OK;
}

/* The policy that the options and the device allow; `preferred` (may be NULL) goes before the default. */
static gn_status manager_create_default(gn_device *device, bool is_pinned, const char *preferred,
                                        gn_memory_manager **out)
{
    static const char *const policies[] = {"direct", "pool", "virtual"};
    if (!device->ops->has_options)
        return gni_manager_create(device, is_pinned, "pool", out);
    const char *policy = policies[gni_option_choice(GNI_OPTION_CUDA_ALLOCATOR)];
    if (preferred != NULL && !gni_option_is_given(GNI_OPTION_CUDA_ALLOCATOR))
        policy = preferred;
    /* The sanitizer takes marks of plain memory only: mark.h. */
    if ((is_pinned || gni_mark_is_on()) && strcmp(policy, "virtual") == 0)
        policy = "pool";
    gn_status status = gni_manager_create(device, is_pinned, policy, out);
    if (status != GN_ERROR_UNSUPPORTED)
        return status;
    gni_log(GNI_LOG_INFO, "%s: %s; the memory manager's policy is pool",
            gni_device_label(device).text, gn_error_detail());
    return gni_manager_create(device, is_pinned, "pool", out);
}

/* GENESIS_CUDA_WARMUP_ENABLED: some blocks of sizes that tensors often have. */
static void manager_warm_up(gn_memory_manager *manager)
{
    static const size_t sizes[] = {4096, 65536, 1 << 20, 4 << 20, 32 << 20};
    static const size_t counts[] = {64, 32, 16, 4, 1};
    if (manager->device->ops->has_options && !manager->is_pinned &&
        gni_option_flag(GNI_OPTION_CUDA_WARMUP_ENABLED) &&
        gn_memory_warm_up(manager, sizeof sizes / sizeof *sizes, sizes, counts) != GN_OK)
        gni_log(GNI_LOG_WARNING, "the warm-up failed: %s", gn_error_detail());
}

static gn_status manager_get(gn_device *device, int kind, const char *preferred,
                             gn_memory_manager **manager)
{
    _Atomic(gn_memory_manager *) *slot = &gni_managers[kind][device->index];
    gn_memory_manager *made = atomic_load_explicit(slot, memory_order_acquire);
    if (made == NULL) {
        bool is_new = false;
        gni_once_run(&managers_once, managers_start);
        gni_mutex_lock(&managers_mutex);
        gn_status status = GN_OK;
        made = atomic_load(slot);
        if (made == NULL) {
            status = manager_create_default(device, kind == KIND_PINNED, preferred, &made);
            is_new = status == GN_OK;
        }
        if (is_new) {
            made->number = manager_count++;
            atomic_store_explicit(slot, made, memory_order_release);
        }
        gni_mutex_unlock(&managers_mutex);
        GN_TRY(status);
        if (is_new)
            manager_warm_up(made);
    }
    *manager = made;
    return GN_OK;
}

gn_status gn_memory_manager_get(gn_device *device, gn_memory_manager **manager)
{
    GN_CHECK_ARGUMENT(device != NULL && manager != NULL, "device and manager must not be NULL");
    return gni_manager_get_as(device, NULL, manager);
}

gn_status gni_manager_get_as(gn_device *device, const char *policy, gn_memory_manager **manager)
{
    return manager_get(device, (int)device->type, policy, manager);
}

gn_status gn_memory_manager_get_pinned(gn_device *device, gn_memory_manager **manager)
{
    GN_CHECK_ARGUMENT(device != NULL && manager != NULL, "device and manager must not be NULL");
    int kind = device->ops->has_pinned_memory ? KIND_PINNED : (int)device->type;
    return manager_get(device, kind, NULL, manager);
}

gn_device *gn_memory_manager_get_device(const gn_memory_manager *manager)
{
    return manager->device;
}

bool gn_memory_manager_is_pinned(const gn_memory_manager *manager)
{
    return manager->is_pinned;
}

unsigned gn_memory_manager_get_number(const gn_memory_manager *manager)
{
    return manager->number;
}

const char *gn_memory_manager_get_policy(const gn_memory_manager *manager)
{
    if (atomic_load_explicit(&manager->is_direct, memory_order_relaxed))
        return "direct";
    return gni_pool_policy(manager->pool);
}

gn_status gni_stream_check(const gn_stream *stream, const gn_device *device)
{
    if (stream->device == device)
        return GN_OK;
    return gni_error(GN_ERROR_INVALID_VALUE, "the stream is of %s, and the memory of %s",
                     gni_device_label(stream->device).text, gni_device_label(device).text);
}

gn_status gni_manager_stream(const gn_memory_manager *manager, gn_stream **stream)
{
    if (*stream == NULL)
        return gn_stream_get_current(manager->device, stream);
    return gni_stream_check(*stream, manager->device);
}

/* ---- many at once, and ahead of time -------------------------------------------------------- */

static gn_status direct_batch(gn_memory_manager *manager, size_t count, const size_t *sizes,
                              gn_stream *stream, void **pointers)
{
    for (size_t i = 0; i < count; i++)
        if (!gni_size_is_possible(sizes[i]))
            return gni_error(GN_ERROR_OVERFLOW, "%zu bytes cannot be allocated on any device",
                             sizes[i]);
    struct gni_direct *direct = manager->direct;
    for (size_t i = 0; i < count; i++) {
        gn_memory_block *block;
        gn_status status = gni_direct_alloc(direct, sizes[i], stream, GNI_BLOCK_EXPORTED, &block);
        if (status != GN_OK) {
            while (i-- > 0)
                (void)gni_direct_free(direct, pointers[i], NULL);
            return status;
        }
        if (gni_history_is_on())
            gni_history_alloc(manager, block);
        pointers[i] = block->address;
    }
    return GN_OK;
}

/* The sum of the sizes; the largest number where it has no room for them. */
static size_t batch_total(size_t count, const size_t *sizes)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total = sizes[i] < SIZE_MAX - total ? total + sizes[i] : SIZE_MAX;
    return total;
}

/* Tells whoever wants to know. */
static gn_status batch_after(gn_memory_manager *manager, size_t count, const size_t *sizes,
                             gn_status status)
{
    if (status == GN_ERROR_OUT_OF_MEMORY && gni_history_is_on())
        gni_history_out_of_memory(manager, batch_total(count, sizes));
    gni_watch_after(manager, status);
    return status;
}

gn_status gn_memory_alloc_batch(gn_memory_manager *manager, size_t count, const size_t *sizes,
                                gn_stream *stream, void **pointers)
{
    GN_CHECK_ARGUMENT(manager != NULL, "manager is NULL");
    GN_CHECK_ARGUMENT(count == 0 || (sizes != NULL && pointers != NULL),
                      "sizes and pointers must not be NULL");
    GN_CHECK_ARGUMENT(count <= GNI_SIZE_MAX_BYTES / sizeof(void *), "the batch is too large");
    GN_TRY(gni_manager_stream(manager, &stream));
    if (count == 0)
        return GN_OK;
    if (!atomic_load(&manager->is_direct)) {
        gn_status status = gni_pool_alloc_batch(manager->pool, count, sizes, stream, pointers);
        return batch_after(manager, count, sizes, status);
    }
    void **made = gni_host_alloc(count * sizeof *made);
    if (made == NULL)
        return gni_error_host_memory(count * sizeof *made);
    gn_status status;
    int calls = 0;
    do
        status = direct_batch(manager, count, sizes, stream, made);
    while (status == GN_ERROR_OUT_OF_MEMORY &&
           gni_pool_handle(manager->pool, batch_total(count, sizes), &calls));
    if (status == GN_OK)
        memcpy(pointers, made, count * sizeof *made);
    gni_host_free(made);
    return batch_after(manager, count, sizes, status);
}

gn_status gn_memory_warm_up(gn_memory_manager *manager, size_t count, const size_t *sizes,
                            const size_t *counts)
{
    GN_CHECK_ARGUMENT(manager != NULL, "manager is NULL");
    GN_CHECK_ARGUMENT(count == 0 || (sizes != NULL && counts != NULL),
                      "sizes and counts must not be NULL");
    size_t total = 0, product;
    for (size_t i = 0; i < count; i++)
        if (!gni_size_is_possible(sizes[i]) ||
            !gni_size_multiply(gni_size_round(sizes[i]), counts[i], &product) ||
            !gni_size_add(total, product, &total) || !gni_size_is_possible(total))
            return gni_error(GN_ERROR_OVERFLOW, "no device has room for %zu blocks of %zu bytes",
                             counts[i], sizes[i]);
    if (atomic_load(&manager->is_direct))
        return GN_OK; /* there is no cache to fill */
    gn_status status = gni_pool_warm_up(manager->pool, count, sizes, counts);
    gni_watch_after(manager, status);
    return status;
}

/* ---- configuration -------------------------------------------------------------------------- */

gn_status gn_memory_get_config(gn_memory_manager *manager, gn_memory_config *config)
{
    GN_CHECK_ARGUMENT(manager != NULL && config != NULL, "manager and config must not be NULL");
    gni_pool_get_config(manager->pool, config);
    return GN_OK;
}

static bool is_fraction(double value)
{
    return value >= 0 && value <= 1;
}

gn_status gn_memory_configure(gn_memory_manager *manager, const gn_memory_config *config)
{
    GN_CHECK_ARGUMENT(manager != NULL && config != NULL, "manager and config must not be NULL");
    GN_CHECK_ARGUMENT((unsigned)config->strategy <= GN_MEMORY_DIRECT, "unknown strategy");
    GN_CHECK_ARGUMENT(config->segment_bytes >= (2 << 20) && config->segment_bytes <= (size_t)64
                                                                                         << 30,
                      "segment_bytes must be from 2 MiB to 64 GiB");
    GN_CHECK_ARGUMENT(config->memory_fraction > 0 && config->memory_fraction <= 1,
                      "memory_fraction must be above 0 and at most 1");
    GN_CHECK_ARGUMENT(is_fraction(config->cleanup_threshold) &&
                          is_fraction(config->coalescing_threshold),
                      "thresholds must be from 0 to 1");
    if (config->strategy == GN_MEMORY_DIRECT) {
        gni_mutex_lock(&managers_mutex);
        gn_status status = direct_ensure(manager);
        gni_mutex_unlock(&managers_mutex);
        GN_TRY(status);
    }
    config_apply(manager, config);
    return GN_OK;
}

/* ---- giving back ---------------------------------------------------------------------------- */

gn_status gn_memory_collect(gn_memory_manager *manager)
{
    GN_CHECK_ARGUMENT(manager != NULL, "manager is NULL");
    GN_TRY(manager->device->ops->check(manager->device));
    gni_pool_collect(manager->pool);
    return GN_OK;
}

gn_status gn_memory_coalesce(gn_memory_manager *manager, size_t *merged)
{
    GN_CHECK_ARGUMENT(manager != NULL, "manager is NULL");
    GN_TRY(manager->device->ops->check(manager->device));
    size_t count = gni_pool_coalesce(manager->pool);
    if (merged != NULL)
        *merged = count;
    return GN_OK;
}

gn_status gn_memory_trim(gn_memory_manager *manager, size_t keep_bytes, size_t *released)
{
    GN_CHECK_ARGUMENT(manager != NULL, "manager is NULL");
    GN_TRY(manager->device->ops->check(manager->device));
    size_t given;
    GN_TRY(gni_pool_trim(manager->pool, keep_bytes, &given));
    if (released != NULL)
        *released = given;
    return GN_OK;
}

gn_status gn_memory_compact(gn_memory_manager *manager, gn_memory_compaction *report)
{
    GN_CHECK_ARGUMENT(manager != NULL && report != NULL, "manager and report must not be NULL");
    GN_TRY(manager->device->ops->check(manager->device));
    return gni_pool_compact(manager->pool, report);
}

gn_status gn_memory_set_out_of_memory_handler(gn_memory_manager *manager, gn_memory_handler handler,
                                              void *context)
{
    GN_CHECK_ARGUMENT(manager != NULL, "manager is NULL");
    gni_pool_set_handler(manager->pool, handler, context);
    return GN_OK;
}

/* ---- looking -------------------------------------------------------------------------------- */

/* Adds what the other engine has. All fields are of one width, and counts, but for two. */
static void statistics_add(gn_memory_statistics *sum, const gn_memory_statistics *other)
{
    uint64_t limit = sum->limit_bytes, largest = sum->largest_free_bytes;
    uint64_t *to = (uint64_t *)(void *)sum;
    const uint64_t *from = (const uint64_t *)(const void *)other;
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
        to[i] += from[i];
    sum->limit_bytes = limit;
    sum->largest_free_bytes = largest;
}

gn_status gn_memory_get_statistics(gn_memory_manager *manager, gn_memory_statistics *statistics)
{
    GN_CHECK_ARGUMENT(manager != NULL && statistics != NULL,
                      "manager and statistics must not be NULL");
    gn_memory_statistics now, other;
    gni_pool_statistics(manager->pool, &now);
    if (manager->direct != NULL) {
        gni_direct_statistics(manager->direct, &other);
        statistics_add(&now, &other);
    }
    *statistics = now;
    return GN_OK;
}

gn_status gn_memory_reset_peaks(gn_memory_manager *manager)
{
    GN_CHECK_ARGUMENT(manager != NULL, "manager is NULL");
    gni_pool_reset_peaks(manager->pool);
    if (manager->direct != NULL)
        gni_direct_reset_peaks(manager->direct);
    return GN_OK;
}

gn_status gn_memory_get_classes(gn_memory_manager *manager, gn_memory_class *classes,
                                size_t capacity, size_t *count)
{
    GN_CHECK_ARGUMENT(manager != NULL && count != NULL, "manager and count must not be NULL");
    GN_CHECK_ARGUMENT(classes != NULL || capacity == 0, "classes is NULL");
    *count = gni_pool_classes(manager->pool, classes, capacity);
    return GN_OK;
}

static int info_compare(const void *a, const void *b)
{
    uintptr_t first = (uintptr_t)((const gn_memory_info *)a)->address;
    uintptr_t second = (uintptr_t)((const gn_memory_info *)b)->address;
    return first < second ? -1 : first > second;
}

static size_t infos_list(gn_memory_manager *manager, gn_memory_info *infos, size_t capacity)
{
    size_t count = gni_pool_list(manager->pool, infos, capacity);
    if (manager->direct != NULL) {
        size_t room = count < capacity ? capacity - count : 0;
        count += gni_direct_list(manager->direct, room > 0 ? infos + count : NULL, room);
    }
    return count;
}

gn_status gn_memory_visit(gn_memory_manager *manager, gn_memory_visitor visitor, void *context)
{
    GN_CHECK_ARGUMENT(manager != NULL && visitor != NULL, "manager and visitor must not be NULL");
    gn_memory_info *infos = NULL;
    size_t capacity = 0, count;
    /* Other threads may add blocks between the two steps, so some room is left. */
    while ((count = infos_list(manager, infos, capacity)) > capacity) {
        gni_host_free(infos);
        capacity = count + count / 8 + 64;
        infos = gni_host_alloc(capacity * sizeof *infos);
        if (infos == NULL)
            return gni_error_host_memory(capacity * sizeof *infos);
    }
    if (count > 0)
        qsort(infos, count, sizeof *infos, info_compare);
    for (size_t i = 0; i < count && visitor(&infos[i], context); i++)
        ;
    gni_host_free(infos);
    return GN_OK;
}
