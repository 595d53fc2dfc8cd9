/*
 * profile.c: launches between two events, and what the events say when they are over.
 *
 *     start() --> record --> [the launch] --> stop() --> record --> pending --> known --> taken
 *        ^                                                             |
 *        +----------------- stopwatches, to be used again <------------+
 *
 * A device's clock is tied to the host's without waiting for anything. The start of one kernel is the device's
 * reference; every later start is known relative to it. Nothing starts before it is submitted, so each run gives a
 * lower bound for the host's time of the reference, and the highest so far is what is used: it is right as soon as one
 * kernel has met an idle device.
 *
 * Invariants:
 *   1  a pending run has a stopwatch whose two events are recorded; a known one has none;
 *   2  profile_mutex is not held while anything is waited for, and nothing is called with it but the driver;
 *   3  a run is in one list, or belongs to the thread that launches or waits for it;
 *   4  what goes wrong here loses a run, and nothing else: lost_count.
 */
#include "jit/profile.h"

#include "base/fork.h"
#include "base/host.h"
#include "base/list.h"
#include "base/thread.h"

#include <math.h>
#include <stdio.h>

enum {
    KNOWN_MOST = 1 << 16,    /* runs that are kept for who takes them */
    REFERENCE_MS_MOST = 100, /* then it is moved on: the driver gives floats, whose steps grow */
};

/* Two events of one device. */
struct stopwatch {
    struct gni_list link; /* in idle_stopwatches */
    gn_event *start, *end;
};

struct gni_profile_run {
    struct gni_list link;
    gn_device *device;
    struct stopwatch *stopwatch;
    struct gni_profile_total *total; /* NULL: none */
    gn_kernel_run record;
};

/* What a device's times are relative to. */
struct reference {
    gn_event *event;  /* NULL: none yet */
    uint64_t host_ns; /* not before this */
};

atomic_bool gni_profile_is_wanted;

static atomic_bool is_measuring; /* gn_profile_enable() */
static _Atomic(void (*)(const char *)) launch_observer;

static struct gni_mutex profile_mutex = GNI_MUTEX_INIT;
static struct gni_once profile_once = GNI_ONCE_INIT;
static struct gni_list pending = {&pending, &pending};
static struct gni_list known = {&known, &known};
static struct gni_list idle_stopwatches = {&idle_stopwatches, &idle_stopwatches};
static struct reference references[GNI_DEVICE_MAX];
static size_t known_count;
static atomic_uint_fast64_t lost_count;
static _Atomic(void (*)(void)) known_hook;

/* ---- stopwatches ---------------------------------------------------------------------------- */

static void stopwatch_destroy(struct stopwatch *stopwatch)
{
    gn_event_destroy(stopwatch->start);
    gn_event_destroy(stopwatch->end);
    gni_host_free(stopwatch);
}

/* NULL: there is no memory, or no event. */
static struct stopwatch *stopwatch_create(gn_device *device)
{
    struct stopwatch *stopwatch = gni_host_alloc(sizeof *stopwatch);
    if (stopwatch == NULL)
        return NULL;
    if (gn_event_create(device, GN_EVENT_TIMING, &stopwatch->start) == GN_OK &&
        gn_event_create(device, GN_EVENT_TIMING, &stopwatch->end) == GN_OK)
        return stopwatch;
    stopwatch_destroy(stopwatch);
    return NULL;
}

/* One of the device's that nobody uses, or a new one. */
static struct stopwatch *stopwatch_take(gn_device *device)
{
    struct stopwatch *found = NULL;
    gni_mutex_lock(&profile_mutex);
    gni_list_each (link, &idle_stopwatches) {
        struct stopwatch *stopwatch = gni_container_of(link, struct stopwatch, link);
        if (gn_event_get_device(stopwatch->end) != device)
            continue;
        gni_list_remove(link);
        found = stopwatch;
        break;
    }
    gni_mutex_unlock(&profile_mutex);
    return found != NULL ? found : stopwatch_create(device);
}

/* Under the mutex. A stopwatch whose start has become a reference is of no more use. */
static void stopwatch_give(struct stopwatch *stopwatch)
{
    if (stopwatch->start != NULL)
        gni_list_push_front(&idle_stopwatches, &stopwatch->link);
    else
        stopwatch_destroy(stopwatch);
}

/* ---- runs ----------------------------------------------------------------------------------- */

static void count_lost(void)
{
    atomic_fetch_add_explicit(&lost_count, 1, memory_order_relaxed);
}

/* Under the mutex. Of a run that is not known. */
static void run_drop(struct gni_profile_run *run)
{
    stopwatch_give(run->stopwatch);
    gni_host_free(run);
}

/* The same, of one that ran. */
static void run_lose(struct gni_profile_run *run)
{
    run_drop(run);
    count_lost();
}

/* Under the mutex. When the run began, by the host's clock. */
static gn_status run_place(struct gni_profile_run *run)
{
    struct reference *reference = &references[run->device->index];
    struct stopwatch *stopwatch = run->stopwatch;
    float ms = 0;
    if (reference->event != NULL)
        GN_TRY(gn_event_elapsed(reference->event, stopwatch->start, &ms));
    uint64_t since_ns = (uint64_t)llround((double)ms * 1e6); /* of a run before it: modulo 2^64 */
    uint64_t least = run->record.submitted_ns - since_ns;
    if (reference->event == NULL || (int64_t)(least - reference->host_ns) > 0)
        reference->host_ns = least;
    run->record.start_ns = reference->host_ns + since_ns;
    if (reference->event == NULL || ms > REFERENCE_MS_MOST) {
        gn_event *before = reference->event;
        *reference = (struct reference){.event = stopwatch->start, .host_ns = run->record.start_ns};
        stopwatch->start = before;
    }
    return GN_OK;
}

/* Under the mutex. Both events are over. */
static void run_know(struct gni_profile_run *run)
{
    float ms;
    if (gn_event_elapsed(run->stopwatch->start, run->stopwatch->end, &ms) != GN_OK ||
        run_place(run) != GN_OK || known_count == KNOWN_MOST) {
        run_lose(run);
        return;
    }
    run->record.duration_ms = round((double)ms * 1e6) / 1e6; /* whole nanoseconds */
    if (run->total != NULL) {
        atomic_fetch_add_explicit(&run->total->count, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&run->total->ns, (uint64_t)llround((double)ms * 1e6),
                                  memory_order_relaxed);
    }
    stopwatch_give(run->stopwatch);
    run->stopwatch = NULL;
    gni_list_push_back(&known, &run->link);
    known_count++;
}

/* Runs of which it is known now; before the first that is not over, or all that are. */
static void runs_poll(bool is_all)
{
    gni_mutex_lock(&profile_mutex);
    size_t before = known_count;
    gni_list_each (link, &pending) {
        struct gni_profile_run *run = gni_container_of(link, struct gni_profile_run, link);
        gn_status status = gn_event_query(run->stopwatch->end);
        if (status == GN_ERROR_NOT_READY && !is_all)
            break;
        if (status == GN_ERROR_NOT_READY)
            continue;
        gni_list_remove(link);
        if (status == GN_OK)
            run_know(run);
        else
            run_lose(run);
    }
    bool is_news = known_count > before;
    gni_mutex_unlock(&profile_mutex);
    void (*hook)(void) = atomic_load(&known_hook);
    if (is_news && hook != NULL)
        hook();
}

static void after_wait(void)
{
    runs_poll(true);
}

static void runs_free(struct gni_list *list)
{
    struct gni_list *link;
    while ((link = gni_list_pop_front(list)) != NULL) {
        struct gni_profile_run *run = gni_container_of(link, struct gni_profile_run, link);
        if (run->stopwatch != NULL)
            stopwatch_destroy(run->stopwatch);
        gni_host_free(run);
    }
}

/* The devices are about to be closed, and nobody else is here. */
static void profile_close(void)
{
    gni_mutex_lock(&profile_mutex);
    runs_free(&pending);
    runs_free(&known);
    known_count = 0;
    struct gni_list *link;
    while ((link = gni_list_pop_front(&idle_stopwatches)) != NULL)
        stopwatch_destroy(gni_container_of(link, struct stopwatch, link));
    for (int i = 0; i < GNI_DEVICE_MAX; i++) {
        gn_event_destroy(references[i].event);
        references[i].event = NULL;
    }
    gni_mutex_unlock(&profile_mutex);
}

static void want_update(void)
{
    atomic_store(&gni_profile_is_wanted,
                 atomic_load(&is_measuring) || atomic_load(&launch_observer) != NULL);
}

/* A child has no device, and the parent's runs are the parent's. */
static void profile_forked(bool is_child)
{
    if (!is_child)
        return;
    atomic_store(&is_measuring, false);
    want_update();
    runs_free(&pending);
    runs_free(&known);
    known_count = 0;
}

static const struct gni_fork_handlers profile_fork = {.mutex = &profile_mutex,
                                                      .done = profile_forked};

static struct gni_close_hook close_hook = {.run = profile_close};

static void profile_init(void)
{
    gni_fork_register(GNI_FORK_PROFILE, &profile_fork);
    gni_devices_add_close_hook(&close_hook);
    gni_devices_set_wait_hook(after_wait);
}

/* ---- launches ------------------------------------------------------------------------------- */

/* What is recorded in a stream that is being captured never runs, and asking for its id ends the capture. */
static bool is_measurable(gn_stream *stream, uint64_t *id)
{
    bool is_capturing;
    return gn_stream_is_capturing(stream, &is_capturing) == GN_OK && !is_capturing &&
           gn_stream_get_id(stream, id) == GN_OK;
}

struct gni_profile_run *gni_profile_start(const char *name, gn_stream *stream,
                                          const struct gni_launch *launch,
                                          struct gni_profile_total *total)
{
    uint64_t id;
    void (*observer)(const char *) = atomic_load(&launch_observer);
    if (observer != NULL)
        observer(name);
    if (!atomic_load(&is_measuring) || !is_measurable(stream, &id))
        return NULL;
    runs_poll(false);
    struct gni_profile_run *run = gni_host_alloc(sizeof *run);
    struct stopwatch *stopwatch = run != NULL ? stopwatch_take(stream->device) : NULL;
    if (stopwatch == NULL || gn_event_record(stopwatch->start, stream) != GN_OK) {
        if (stopwatch != NULL)
            stopwatch_destroy(stopwatch);
        gni_host_free(run);
        count_lost();
        return NULL;
    }
    run->device = stream->device;
    run->stopwatch = stopwatch;
    run->total = total;
    gn_kernel_run *record = &run->record;
    (void)snprintf(record->name, sizeof record->name, "%s", name);
    record->device = stream->device->index;
    record->stream_id = id;
    for (int i = 0; i < 3 && launch != NULL; i++) {
        record->grid[i] = launch->grid[i];
        record->block[i] = launch->block[i];
    }
    record->shared_bytes = launch != NULL ? launch->shared_bytes : 0;
    record->submitted_ns = gni_time_ns();
    return run;
}

void gni_profile_stop(struct gni_profile_run *run, gn_stream *stream, bool is_launched)
{
    bool is_measured = is_launched && gn_event_record(run->stopwatch->end, stream) == GN_OK;
    gni_mutex_lock(&profile_mutex);
    if (is_measured)
        gni_list_push_back(&pending, &run->link);
    else
        run_drop(run);
    gni_mutex_unlock(&profile_mutex);
    if (is_launched && !is_measured)
        count_lost();
}

/* ---- the public functions ------------------------------------------------------------------- */

gn_status gn_profile_enable(bool is_on)
{
    gni_once_run(&profile_once, profile_init);
    atomic_store(&is_measuring, is_on);
    want_update();
    return GN_OK;
}

bool gn_profile_is_on(void)
{
    return atomic_load(&is_measuring);
}

void gni_profile_set_observer(void (*observer)(const char *name))
{
    atomic_store(&launch_observer, observer);
    want_update();
}

gn_status gn_profile_wait(void)
{
    gn_status first = GN_OK;
    for (;;) {
        gni_mutex_lock(&profile_mutex);
        struct gni_list *link = gni_list_pop_front(&pending);
        gni_mutex_unlock(&profile_mutex);
        if (link == NULL)
            break;
        struct gni_profile_run *run = gni_container_of(link, struct gni_profile_run, link);
        gn_status status = run->device->ops->event_synchronize(run->stopwatch->end);
        gni_mutex_lock(&profile_mutex);
        if (status == GN_OK)
            run_know(run);
        else
            run_lose(run);
        gni_mutex_unlock(&profile_mutex);
        if (first == GN_OK)
            first = status;
    }
    return first;
}

gn_status gn_profile_take(gn_kernel_run *runs, size_t capacity, size_t *count)
{
    GN_CHECK_ARGUMENT((runs != NULL || capacity == 0) && count != NULL,
                      "runs and count must not be NULL");
    runs_poll(true);
    struct gni_list taken;
    gni_list_init(&taken);
    size_t found = 0;
    gni_mutex_lock(&profile_mutex);
    for (; found < capacity && known_count > 0; found++) {
        struct gni_list *link = gni_list_pop_front(&known);
        runs[found] = gni_container_of(link, struct gni_profile_run, link)->record;
        gni_list_push_back(&taken, link);
        known_count--;
    }
    gni_mutex_unlock(&profile_mutex);
    runs_free(&taken);
    *count = found;
    return GN_OK;
}

uint64_t gn_profile_get_lost_count(void)
{
    return atomic_load_explicit(&lost_count, memory_order_relaxed);
}

void gn_profile_set_hook(void (*hook)(void))
{
    atomic_store(&known_hook, hook);
}
