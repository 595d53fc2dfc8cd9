#include "device/cuda/cuda_queue.h"
#include "device/cuda/cuda_bundle.h"

#include "base/fork.h"
#include "base/host.h"
#include "base/option.h"
#include "base/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    QUEUE_LENGTH = 16,  /* launches; a power of two */
    ENTRY_BYTES = 4096, /* of arguments; what has more is launched directly */
    RUN_LEAST =
        6, /* launches in a row before the thread is used: one that is read at once is not slower */
    LOOKS_MOST = 2000, /* for work, before the thread sleeps: some 50 us */
    LOOKS_AHEAD = 300, /* for more of it, while the GPU has enough to do: some 8 us */
    PROCESSORS_LEAST = 4,
    CACHE_LINE = 64,
};

struct entry {
    struct gni_cuda_launch launch;
    uint64_t arguments[ENTRY_BYTES / sizeof(uint64_t)];
};

/*
 * Invariants:
 *   LT1  done <= pushed <= done + QUEUE_LENGTH; entries from done to pushed are to be submitted. Only a thread with the
 *       mutex pushes, and one with `submitting` submits: the queue's own, or one that waits;
 *   LT2  the thread sleeps only if there was nothing to do under the mutex; who pushes then wakes it, and may have done
 *       its work when it looks: it ends only when it is told to;
 *   LT3  who waits for launches counts as a waiter, and the thread does not wait for more of them then;
 *   LT4  a queue is never destroyed: a device has it for ever, with a thread or without.
 */
struct gni_cuda_queue {
    struct gni_cuda_device *device;
    struct gni_mutex mutex;
    struct gni_mutex submitting;     /* LT1 */
    struct gni_cuda_bundles bundles; /* who submits */
    pthread_cond_t wanted;           /* something was pushed while is_asleep, or is_stopping */
    bool is_running, is_asleep;
    atomic_bool is_stopping;
    pthread_t thread;
    gn_status failure; /* under the mutex: of a launch, with its text; GN_OK: none */
    char text[256];
    atomic_bool has_failed;
    atomic_int waiters;            /* LT3 */
    char apart_before[CACHE_LINE]; /* the two are written by different threads */
    _Atomic(uint64_t) pushed;
    char apart_between[CACHE_LINE];
    _Atomic(uint64_t) done;
    char apart_behind[CACHE_LINE];
    struct entry entries[QUEUE_LENGTH];
};

static struct gni_mutex queues_mutex = GNI_MUTEX_INIT;
static struct gni_cuda_queue *queues[GNI_DEVICE_MAX]; /* under the mutex */
static atomic_bool is_exiting;                        /* the process: no thread is started again */

/* The thread is the parent's, and so is the driver. */
static void queues_forked(bool is_child)
{
    for (int i = 0; i < GNI_DEVICE_MAX && is_child; i++)
        if (queues[i] != NULL) {
            atomic_store(&queues[i]->device->queue, NULL);
            queues[i] = NULL;
        }
}

static const struct gni_fork_handlers queues_fork = {.mutex = &queues_mutex, .done = queues_forked};

/* ---- the thread ------------------------------------------------------------------------------ */

static bool has_work(struct gni_cuda_queue *queue)
{
    return atomic_load_explicit(&queue->pushed, memory_order_acquire) !=
           atomic_load_explicit(&queue->done, memory_order_acquire);
}

/* Waits until there is something to submit; false: the thread is to end. */
static bool work_wait(struct gni_cuda_queue *queue)
{
    for (int i = 0; i < LOOKS_MOST; i++) {
        if (has_work(queue))
            return true;
        if (atomic_load_explicit(&queue->is_stopping, memory_order_relaxed))
            break;
        gni_thread_pause();
    }
    gni_mutex_lock(&queue->mutex);
    while (!has_work(queue) && !atomic_load(&queue->is_stopping)) {
        queue->is_asleep = true; /* LT2 */
        pthread_cond_wait(&queue->wanted, &queue->mutex.native);
    }
    queue->is_asleep = false;
    gni_mutex_unlock(&queue->mutex);
    return has_work(queue) || !atomic_load(&queue->is_stopping);
}

static void failure_note(struct gni_cuda_queue *queue, const char *function, CUresult result)
{
    struct gni_cuda_scope scope = {.device = queue->device};
    gn_status status = gni_cuda_leave(&scope, function, result);
    gni_mutex_lock(&queue->mutex);
    if (queue->failure == GN_OK) {
        queue->failure = status;
        (void)snprintf(queue->text, sizeof queue->text, "%s", gn_error_detail());
        atomic_store(&queue->has_failed, true);
    }
    gni_mutex_unlock(&queue->mutex);
}

static void entry_submit(struct gni_cuda_queue *queue, struct entry *entry)
{
    void *arguments[] = {entry->arguments};
    const char *name;
    CUresult result =
        gni_cuda_launch_submit(queue->device->driver, &entry->launch, arguments, &name);
    if (result != CUDA_SUCCESS)
        failure_note(queue, name, result);
}

/* Whether the thread may wait for more launches: nobody waits for those that there are, and they are few. LT3. */
static bool is_waiting_allowed(struct gni_cuda_queue *queue, uint64_t done)
{
    return atomic_load_explicit(&queue->pushed, memory_order_acquire) - done < GNI_BUNDLE_MOST &&
           atomic_load(&queue->waiters) == 0 && !atomic_load(&queue->is_stopping);
}

/* With `submitting`: the oldest launches, if there are any: those that go together, if there is a pace. */
static void entries_submit(struct gni_cuda_queue *queue, struct gni_cuda_pace *pace)
{
    const struct gni_cuda_driver *driver = queue->device->driver;
    uint64_t done = atomic_load_explicit(&queue->done, memory_order_relaxed);
    if (!has_work(queue))
        return;
    CUstream stream = queue->entries[done % QUEUE_LENGTH].launch.stream;
    if (pace != NULL && gni_cuda_pace_is_ahead(pace, driver, stream))
        for (int i = 0; i < LOOKS_AHEAD && is_waiting_allowed(queue, done); i++)
            gni_thread_pause();
    uint64_t pushed = atomic_load_explicit(&queue->pushed, memory_order_acquire);
    struct entry *entries[GNI_BUNDLE_MOST];
    const struct gni_cuda_launch *launches[GNI_BUNDLE_MOST];
    void *arguments[GNI_BUNDLE_MOST];
    int count = 0, most = pace != NULL ? GNI_BUNDLE_MOST : 1;
    for (; count < most && done + (unsigned)count < pushed; count++) {
        struct entry *entry = &queue->entries[(done + (unsigned)count) % QUEUE_LENGTH];
        if (count > 0 && !gni_cuda_bundle_fits(&entry->launch, launches[0]))
            break;
        entries[count] = entry;
        launches[count] = &entry->launch;
        arguments[count] = entry->arguments;
    }
    if (count < GNI_BUNDLE_LEAST ||
        !gni_cuda_bundle_submit(&queue->bundles, driver, launches, arguments, count))
        for (int i = 0; i < count; i++)
            entry_submit(queue, entries[i]);
    if (pace != NULL)
        gni_cuda_pace_note(pace, driver, stream); /* which may be gone once they are done */
    atomic_store_explicit(&queue->done, done + (unsigned)count, memory_order_release);
}

/* With `submitting`: makes the context current in this thread. Without it nothing can be submitted: the launches that
 * wait fail with the reason, and those that come after it try again. */
static bool context_push(struct gni_cuda_queue *queue)
{
    CUresult result =
        queue->device->driver->functions.cuCtxPushCurrent(atomic_load(&queue->device->context));
    if (result == CUDA_SUCCESS)
        return true;
    uint64_t pushed = atomic_load_explicit(&queue->pushed, memory_order_acquire);
    failure_note(queue, "cuCtxPushCurrent", result);
    atomic_store_explicit(&queue->done, pushed, memory_order_release);
    return false;
}

/* For the thread of the context: it ends before that does. Captures are others', and do not mind it. */
static void *queue_run(void *context)
{
    struct gni_cuda_queue *queue = context;
    const struct gni_cuda_driver *driver = queue->device->driver;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    struct gni_cuda_pace pace = {.event = NULL};
    bool has_context = false, is_together = false;
    while (work_wait(queue)) {
        gni_mutex_lock(&queue->submitting);
        if (!has_context && has_work(queue) && (has_context = context_push(queue))) {
            is_together =
                queue->device->launches_together &&
                driver->functions.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
            if (is_together)
                gni_cuda_pace_init(&pace, driver);
        }
        if (has_context)
            entries_submit(queue, is_together ? &pace : NULL);
        gni_mutex_unlock(&queue->submitting);
    }
    gni_cuda_pace_deinit(&pace, driver);
    return NULL;
}

/* Submits what there is by the caller itself, if nobody does. */
static void entry_help(struct gni_cuda_queue *queue)
{
    const struct gni_cuda_functions *functions = &queue->device->driver->functions;
    CUcontext before;
    if (pthread_mutex_trylock(&queue->submitting.native) != 0)
        return;
    if (has_work(queue) && context_push(queue)) {
        while (has_work(queue))
            entries_submit(queue, NULL);
        (void)functions->cuCtxPopCurrent(&before);
    }
    (void)pthread_mutex_unlock(&queue->submitting.native);
}

/* Until so many are submitted. Where that takes long, the thread has no processor, and the caller takes its part. */
static void entries_wait(struct gni_cuda_queue *queue, uint64_t count)
{
    if (atomic_load_explicit(&queue->done, memory_order_acquire) >= count)
        return;
    atomic_fetch_add(&queue->waiters, 1);
    for (int looks = 0; atomic_load_explicit(&queue->done, memory_order_acquire) < count; looks++) {
        gni_thread_pause();
        if (looks >= LOOKS_MOST)
            entry_help(queue);
    }
    atomic_fetch_sub(&queue->waiters, 1);
}

/* Under queues_mutex. */
static void queue_stop(struct gni_cuda_queue *queue)
{
    gni_mutex_lock(&queue->mutex);
    bool is_running = queue->is_running;
    atomic_store(&queue->is_stopping, is_running);
    pthread_cond_signal(&queue->wanted);
    gni_mutex_unlock(&queue->mutex);
    if (!is_running)
        return;
    (void)pthread_join(queue->thread, NULL);
    gni_mutex_lock(&queue->mutex);
    atomic_store(&queue->is_stopping, false);
    queue->is_running = false;
    gni_mutex_unlock(&queue->mutex);
}

/* Before the devices are closed. */
static void queues_stop(void)
{
    gni_mutex_lock(&queues_mutex);
    for (int i = 0; i < GNI_DEVICE_MAX; i++)
        if (queues[i] != NULL)
            queue_stop(queues[i]);
    gni_mutex_unlock(&queues_mutex);
}

/* Before the driver goes, which is loaded: its own handlers run later. */
static void queues_at_exit(void)
{
    atomic_store(&is_exiting, true);
    queues_stop();
}

/* ---- whether there is one --------------------------------------------------------------------- */

static bool is_wanted; /* asked once: a launch does not pay for it */

static struct gni_close_hook close_hook = {.run = queues_stop};

static void queues_open(void)
{
    enum {
        AUTO,
        ON
    };
    unsigned choice = gni_option_choice(GNI_OPTION_LAUNCH_THREAD);
    is_wanted = choice == ON || (choice == AUTO && gni_processor_count() >= PROCESSORS_LEAST);
    if (!is_wanted)
        return;
    gni_fork_register(GNI_FORK_CUDA_QUEUE, &queues_fork);
    gni_devices_add_close_hook(&close_hook);
    (void)atexit(queues_at_exit);
}

/* The queue of a device, made at its first use; NULL: there is none. */
static struct gni_cuda_queue *queue_get(struct gni_cuda_device *device)
{
    static struct gni_once once = GNI_ONCE_INIT;
    struct gni_cuda_queue *queue = atomic_load_explicit(&device->queue, memory_order_acquire);
    if (queue != NULL)
        return queue;
    gni_once_run(&once, queues_open);
    if (!is_wanted || gni_cuda_driver_is_gone())
        return NULL;
    gni_mutex_lock(&queues_mutex);
    queue = atomic_load(&device->queue);
    if (queue == NULL && (queue = gni_host_alloc(sizeof *queue)) != NULL) {
        queue->device = device;
        gni_mutex_init(&queue->mutex);
        gni_mutex_init(&queue->submitting);
        pthread_cond_init(&queue->wanted, NULL);
        queues[device->base.index] = queue;
        atomic_store_explicit(&device->queue, queue, memory_order_release);
    }
    gni_mutex_unlock(&queues_mutex);
    return queue;
}

/* With the mutex. */
static bool queue_start(struct gni_cuda_queue *queue)
{
    if (!queue->is_running)
        queue->is_running = gni_thread_start(&queue->thread, queue_run, queue) == 0;
    return queue->is_running;
}

/* ---- pushing, draining ------------------------------------------------------------------------ */

/* With the mutex. */
static bool is_full(struct gni_cuda_queue *queue)
{
    return atomic_load_explicit(&queue->pushed, memory_order_relaxed) -
               atomic_load_explicit(&queue->done, memory_order_acquire) ==
           QUEUE_LENGTH;
}

/* With the mutex: LO2. */
static bool is_open(struct gni_cuda_queue *queue, gn_stream *stream)
{
    struct gni_cuda_device *device = queue->device;
    return atomic_load(&device->base.direct_count) == 0 &&
           atomic_load(&device->capture_count) == 0 && atomic_load(&device->lost) == 0 &&
           !atomic_load(&stream->is_shared) && !gni_cuda_gate_is_closed(&device->gate) &&
           !atomic_load(&queue->is_stopping) && !atomic_load(&is_exiting);
}

bool gni_cuda_queue_push(struct gni_cuda_device *device, const struct gni_function *function,
                         gn_stream *stream, const struct gni_launch *launch)
{
    if (atomic_load_explicit(&device->launch_run, memory_order_relaxed) < RUN_LEAST ||
        launch->argument_bytes == 0 || launch->argument_bytes > ENTRY_BYTES ||
        atomic_load_explicit(&device->base.direct_count, memory_order_relaxed) != 0 ||
        (stream->kind != GNI_STREAM_DEFAULT && stream->kind != GNI_STREAM_OWNED))
        return false;
    struct gni_cuda_queue *queue = queue_get(device);
    if (queue == NULL || atomic_load_explicit(&queue->has_failed, memory_order_relaxed))
        return false;
    gni_mutex_lock(&queue->mutex);
    while (is_full(queue)) { /* waits without the mutex, which a failure wants */
        uint64_t least =
            atomic_load_explicit(&queue->pushed, memory_order_relaxed) - QUEUE_LENGTH + 1;
        gni_mutex_unlock(&queue->mutex);
        entries_wait(queue, least);
        gni_mutex_lock(&queue->mutex);
    }
    if (!is_open(queue, stream) || !queue_start(queue)) {
        gni_mutex_unlock(&queue->mutex);
        return false;
    }
    uint64_t pushed = atomic_load_explicit(&queue->pushed, memory_order_relaxed);
    struct entry *entry = &queue->entries[pushed % QUEUE_LENGTH];
    entry->launch = gni_cuda_launch_of(function, stream, launch);
    memcpy(entry->arguments, launch->arguments[0], launch->argument_bytes);
    atomic_store_explicit(&queue->pushed, pushed + 1, memory_order_release);
    if (queue->is_asleep)
        pthread_cond_signal(&queue->wanted);
    gni_mutex_unlock(&queue->mutex);
    return true;
}

/* Who pushes at this moment is seen, or has seen what the caller has changed. */
void gni_cuda_submit(gn_device *device)
{
    struct gni_cuda_queue *queue =
        atomic_load_explicit(&gni_cuda_device_of(device)->queue, memory_order_acquire);
    if (queue == NULL || gni_cuda_driver_is_gone())
        return;
    gni_mutex_lock(&queue->mutex);
    uint64_t pushed = atomic_load(&queue->pushed);
    gni_mutex_unlock(&queue->mutex);
    entries_wait(queue, pushed);
}

void gni_cuda_queue_wait(struct gni_cuda_queue *queue)
{
    entries_wait(queue, atomic_load_explicit(&queue->pushed, memory_order_acquire));
}

gn_status gni_cuda_queue_report(struct gni_cuda_device *device)
{
    struct gni_cuda_queue *queue = atomic_load_explicit(&device->queue, memory_order_acquire);
    if (queue == NULL || gni_cuda_driver_is_gone() || atomic_load(&device->lost) != 0)
        return GN_OK; /* which is reported otherwise */
    gni_cuda_queue_wait(queue);
    if (!atomic_load_explicit(&queue->has_failed, memory_order_relaxed))
        return GN_OK;
    gni_mutex_lock(&queue->mutex);
    gn_status status = queue->failure;
    if (status != GN_OK)
        status = gni_error(status, "an operation that was submitted before: %s", queue->text);
    queue->failure = GN_OK;
    atomic_store(&queue->has_failed, false);
    gni_mutex_unlock(&queue->mutex);
    return status;
}

/* By itself, not by gni_cuda_enter(), which would open a device again. Without the context, too: the driver may have
 * the stream's handle for another one, or another context, next time. */
void gni_cuda_queue_forget(struct gni_cuda_device *device, const CUstream *stream)
{
    struct gni_cuda_queue *queue = atomic_load_explicit(&device->queue, memory_order_acquire);
    CUcontext context = atomic_load(&device->context);
    struct gni_cuda_scope scope = {.device = device};
    if (queue == NULL || context == NULL || gni_cuda_driver_is_gone() ||
        atomic_load(&device->lost) != 0)
        return;
    gni_cuda_submit(&device->base);
    gni_mutex_lock(&queue->submitting);
    scope.is_pushed = device->driver->functions.cuCtxPushCurrent(context) == CUDA_SUCCESS;
    gni_cuda_relax(&scope);
    gni_cuda_bundles_drop(&queue->bundles, device->driver, stream);
    (void)gni_cuda_leave(&scope, "cuGraphExecDestroy", CUDA_SUCCESS);
    gni_mutex_unlock(&queue->submitting);
}
