/*
 * history.c: the rings of events, and annotations.
 *
 * Each thread writes its own ring, under the ring's own lock, which only a reader ever contends for:
 *
 *     ring of thread 1   | 37 | 38 | 39 | 32 | 33 | 34 | 35 | 36 |    written = 40
 *                                        ^ oldest
 *
 * Rings outlive their threads, so that what a thread did can be read when it is gone; the next recording
 * frees those. A recording has a number; a ring that has another one is emptied by its thread's first event.
 *
 * Locks: `rings_mutex` guards the list of rings, then a ring's lock its contents. Under them nothing but the
 * host's memory is asked for.
 */
#include "memory/history.h"

#include "base/fork.h"
#include "base/hash.h"
#include "base/host.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/thread.h"
#include "memory/pool.h"

#include <string.h>

enum {
    EVENTS_MOST = 1 << 26, /* in a ring */
    NESTED_MOST = 64,
    NAME_MOST = 1024, /* bytes of a path of annotations */
};

struct ring {
    struct gni_list link;
    struct gni_lock lock;
    gn_history_event *events; /* capacity, owned; NULL: the host had no memory */
    size_t capacity;          /* a power of two, or 0 */
    uint64_t written;         /* in this recording */
    uint64_t recording;
    uint16_t thread;
    atomic_bool is_orphan; /* its thread is gone */
};

static struct gni_mutex rings_mutex = GNI_MUTEX_INIT;
static struct gni_list rings = {&rings, &rings};
static uint16_t last_thread;
static _Atomic(uint64_t) recording;  /* the number of the one that goes on, or was the last */
static _Atomic(size_t) ring_events;  /* the capacity of its rings */
static _Atomic(uint64_t) lost_count; /* for want of memory */

/* The names, each once. Never freed: events hold their numbers. */
static struct {
    struct gni_lock lock;
    char **names; /* [0] is not used */
    size_t count, capacity;
    struct gni_map by_hash; /* the hash of a name, moved on where another has it -> its number */
} words;

static struct gni_once once = GNI_ONCE_INIT;
static pthread_key_t thread_key;

/* What a thread is at. */
static _Thread_local struct {
    struct ring *ring;
    uint32_t site; /* gn_history_set_site() */
    unsigned depth;
    uint32_t annotations[NESTED_MOST]; /* the innermost is the last */
} thread;

/* What is recorded from now on. */
static void reasons_set(unsigned reasons)
{
    (void)atomic_fetch_or(&gni_slow_reasons, reasons);
    (void)atomic_fetch_and(&gni_slow_reasons, reasons | ~(unsigned)GNI_REASON_HISTORY);
}

/* ---- threads and forks ---------------------------------------------------------------------- */

/* The ring stays to be read, as large as what is in it. */
static void thread_end(void *argument)
{
    struct ring *ring = argument;
    gni_lock_take(&ring->lock);
    if (ring->written == 0) {
        gni_host_free(ring->events);
        ring->events = NULL;
        ring->capacity = 0;
    } else if (ring->written < ring->capacity) {
        void *smaller =
            gni_host_realloc(ring->events, (size_t)ring->written * sizeof *ring->events);
        ring->events = smaller != NULL ? smaller : ring->events;
    }
    gni_lock_give(&ring->lock);
    atomic_store(&ring->is_orphan, true);
    thread.ring = NULL;
}

/* The mutex of the rings is held over the fork, and here the other locks: none is held over a call of the
 * driver, which may fork by itself. */
static void fork_prepare(void)
{
    gni_list_each (link, &rings)
        gni_lock_take(&gni_container_of(link, struct ring, link)->lock);
    gni_lock_take(&words.lock);
    gni_site_fork_prepare();
}

/* A child starts with nothing: its other threads are gone. */
static void fork_done(bool is_child)
{
    gni_site_fork_done();
    gni_lock_give(&words.lock);
    gni_list_each (link, &rings) {
        struct ring *ring = gni_container_of(link, struct ring, link);
        gni_lock_give(&ring->lock);
        if (is_child && ring != thread.ring)
            atomic_store(&ring->is_orphan, true);
    }
    if (is_child) {
        reasons_set(0);
        atomic_fetch_add(&recording, 1);
    }
}

static const struct gni_fork_handlers fork_handlers = {
    .mutex = &rings_mutex, .prepare = fork_prepare, .done = fork_done};

static void history_init(void)
{
    gni_fork_register(GNI_FORK_HISTORY, &fork_handlers);
    int failed = pthread_key_create(&thread_key, thread_end);
    gni_assert(!failed);
    (void)failed;
}

/* ---- rings ---------------------------------------------------------------------------------- */

static void ring_destroy(struct ring *ring)
{
    gni_list_remove(&ring->link);
    gni_host_free(ring->events);
    gni_host_free(ring);
}

static struct ring *ring_create(void)
{
    gni_once_run(&once, history_init);
    struct ring *ring = gni_host_alloc(sizeof *ring);
    if (ring == NULL)
        return NULL;
    gni_mutex_lock(&rings_mutex);
    ring->thread = ++last_thread;
    gni_list_push_back(&rings, &ring->link);
    gni_mutex_unlock(&rings_mutex);
    (void)pthread_setspecific(thread_key, ring);
    thread.ring = ring;
    return ring;
}

/* With the ring's lock: it belongs to an earlier recording. */
static void ring_renew(struct ring *ring, uint64_t number)
{
    size_t capacity = atomic_load(&ring_events);
    if (ring->capacity != capacity) {
        gni_host_free(ring->events);
        ring->events = gni_host_alloc(capacity * sizeof *ring->events);
        ring->capacity = ring->events != NULL ? capacity : 0;
    }
    ring->written = 0;
    ring->recording = number;
}

static void event_write(gn_history_event *event)
{
    struct ring *ring = thread.ring != NULL ? thread.ring : ring_create();
    if (ring == NULL) {
        atomic_fetch_add(&lost_count, 1);
        return;
    }
    gni_lock_take(&ring->lock);
    uint64_t number = atomic_load_explicit(&recording, memory_order_acquire); /* and its capacity */
    if (ring->recording != number)
        ring_renew(ring, number);
    event->thread = ring->thread;
    event->number = (uint32_t)ring->written + 1;
    if (ring->capacity > 0)
        ring->events[ring->written & (ring->capacity - 1)] = *event;
    ring->written++;
    gni_lock_give(&ring->lock);
}

static bool has_events(void)
{
    return (atomic_load_explicit(&gni_slow_reasons, memory_order_relaxed) & GNI_REASON_EVENTS) != 0;
}

static uint32_t annotation_now(void)
{
    return thread.depth > 0 ? thread.annotations[thread.depth - 1] : 0;
}

static gn_history_event event_make(gn_history_kind kind, const gn_memory_manager *manager,
                                   uint64_t time_ns)
{
    return (gn_history_event){.time_ns = time_ns,
                              .kind = (uint8_t)kind,
                              .manager = manager != NULL ? manager->number : 0,
                              .annotation = annotation_now()};
}

/* ---- what the managers tell ----------------------------------------------------------------- */

/* 0 is the default stream, or none. */
static uint64_t block_stream(const gn_memory_block *block)
{
    const struct gni_heap *heap = block->heap;
    return heap != NULL && heap->stream.kind != GNI_STREAM_DEFAULT ? heap->key : 0;
}

uint32_t gn_history_set_site(uint32_t site)
{
    uint32_t before = thread.site;
    thread.site = site;
    return before;
}

uint32_t gn_history_capture(void)
{
    if (!(atomic_load_explicit(&gni_slow_reasons, memory_order_relaxed) & GNI_REASON_SITES))
        return 0;
    return thread.site != 0 ? thread.site : gni_site_capture();
}

/* Writes an event of a block, with what all of them tell. */
static void block_note(gn_history_event *event, const gn_memory_block *block)
{
    event->address = (uintptr_t)block->address;
    event->nbytes = block->nbytes;
    event->requested = block->requested;
    event->stream_id = block_stream(block);
    event_write(event);
}

void gni_history_alloc(const gn_memory_manager *manager, gn_memory_block *block)
{
    gn_history_event event = event_make(GN_HISTORY_ALLOC, manager, gni_time_ns());
    event.site = gn_history_capture();
    atomic_store_explicit(&block->site, block->number << 32 | event.site, memory_order_relaxed);
    atomic_store_explicit(&block->born_ms, (uint32_t)(event.time_ns / 1000000),
                          memory_order_relaxed);
    if (has_events())
        block_note(&event, block);
}

uint32_t gni_history_site(const gn_memory_block *block, uint64_t *age_ns)
{
    uint64_t site = atomic_load_explicit(&block->site, memory_order_relaxed);
    uint32_t born_ms = atomic_load_explicit(&block->born_ms, memory_order_relaxed);
    bool is_known = site != 0 && (uint32_t)(site >> 32) == (uint32_t)block->number; /* HI3 */
    bool has_age = is_known && gni_block_state(block) == GNI_BLOCK_LIVE;
    uint32_t age_ms = (uint32_t)(gni_time_ns() / 1000000) - born_ms;
    *age_ns = has_age ? (uint64_t)age_ms * 1000000 : UINT64_MAX;
    return is_known ? (uint32_t)site : 0;
}

void gni_history_free(const gn_memory_manager *manager, const gn_memory_block *block,
                      uint64_t time_ns)
{
    if (!has_events())
        return;
    gn_history_kind kind = block->uses != NULL ? GN_HISTORY_FREE_REQUESTED : GN_HISTORY_FREE;
    gn_history_event event = event_make(kind, manager, time_ns);
    block_note(&event, block);
}

void gni_history_free_completed(const gn_memory_manager *manager, const gn_memory_block *block)
{
    if (!has_events())
        return;
    gn_history_event event = event_make(GN_HISTORY_FREE_COMPLETED, manager, gni_time_ns());
    block_note(&event, block);
}

void gni_history_segment(const gn_memory_manager *manager, const void *address, size_t nbytes,
                         bool is_mapped, uint64_t time_ns)
{
    if (!has_events())
        return;
    gn_history_event event =
        event_make(is_mapped ? GN_HISTORY_SEGMENT_MAP : GN_HISTORY_SEGMENT_UNMAP, manager, time_ns);
    event.address = (uintptr_t)address;
    event.nbytes = nbytes;
    event_write(&event);
}

void gni_history_out_of_memory(const gn_memory_manager *manager, size_t nbytes)
{
    if (!has_events())
        return;
    gn_device *holder = manager->pool->holder;
    size_t free_bytes = 0, total_bytes = 0;
    (void)holder->ops->memory_info(holder, &free_bytes, &total_bytes);
    gn_history_event event = event_make(GN_HISTORY_OUT_OF_MEMORY, manager, gni_time_ns());
    event.requested = nbytes;
    event.nbytes = free_bytes;
    event.site = gn_history_capture();
    event_write(&event);
}

/* ---- starting, stopping, reading ------------------------------------------------------------ */

gn_status gn_history_start(const gn_history_options *options)
{
    GN_CHECK_ARGUMENT(options != NULL, "options is NULL");
    GN_CHECK_ARGUMENT(options->python_frames <= GN_HISTORY_FRAMES_MOST &&
                          options->c_frames <= GN_HISTORY_FRAMES_MOST &&
                          options->python_frames + options->c_frames <= GN_HISTORY_FRAMES_MOST,
                      "at most 64 frames are kept of a stack");
    GN_CHECK_ARGUMENT(options->events_most <= EVENTS_MOST, "at most 2^26 events fit into a ring");
    size_t capacity = options->events_most > 0 ? 1 : 0;
    while (capacity < options->events_most)
        capacity *= 2;
    gni_once_run(&once, history_init);
    gni_mutex_lock(&rings_mutex);
    gni_site_set_depth(options->python_frames, options->c_frames);
    atomic_store(&ring_events, capacity);
    atomic_fetch_add(&recording, 1);
    atomic_store(&lost_count, 0);
    gni_list_each (link, &rings) {
        struct ring *ring = gni_container_of(link, struct ring, link);
        if (atomic_load(&ring->is_orphan))
            ring_destroy(ring);
    }
    unsigned reasons = capacity > 0 ? GNI_REASON_EVENTS : 0;
    if (options->python_frames + options->c_frames > 0 || capacity == 0)
        reasons |= GNI_REASON_SITES;
    reasons_set(reasons);
    gni_mutex_unlock(&rings_mutex);
    return GN_OK;
}

void gn_history_stop(void)
{
    reasons_set(0);
}

bool gn_history_is_on(void)
{
    return gni_history_is_on();
}

static size_t ring_kept(const struct ring *ring, uint64_t number)
{
    if (ring->recording != number)
        return 0;
    return ring->written < ring->capacity ? (size_t)ring->written : ring->capacity;
}

/* With the ring's lock: its events go behind those that are in the copy. */
static void ring_copy(const struct ring *ring, size_t kept, gn_history_event *events)
{
    uint64_t oldest = ring->written - kept;
    for (size_t i = 0; i < kept; i++)
        events[i] = ring->events[(oldest + i) & (ring->capacity - 1)];
}

/* Of events at the same time frees come first: HI1. */
static bool is_before(const gn_history_event *event, const gn_history_event *other)
{
    if (event->time_ns != other->time_ns)
        return event->time_ns < other->time_ns;
    return other->kind == GN_HISTORY_ALLOC && event->kind != GN_HISTORY_ALLOC;
}

/* Two neighbouring runs become one. */
static void runs_merge(const gn_history_event *first, size_t first_count,
                       const gn_history_event *second, size_t second_count, gn_history_event *to)
{
    size_t i = 0, k = 0;
    while (i < first_count || k < second_count) {
        bool is_second = i == first_count || (k < second_count && is_before(&second[k], &first[i]));
        *to++ = is_second ? second[k++] : first[i++];
    }
}

/*
 * Events in several runs, each sorted, where `ends` says how far: merges neighbours until one is left. Both
 * arrays are used; the sorted one is returned.
 */
static gn_history_event *runs_sort(gn_history_event *events, gn_history_event *other, size_t *ends,
                                   size_t count)
{
    while (count > 1) {
        size_t merged = 0, begin = 0;
        for (size_t i = 0; i < count; i += 2) {
            size_t middle = ends[i], end = i + 1 < count ? ends[i + 1] : middle;
            runs_merge(events + begin, middle - begin, events + middle, end - middle,
                       other + begin);
            ends[merged++] = begin = end;
        }
        count = merged;
        gn_history_event *swap = events;
        events = other;
        other = swap;
    }
    return events;
}

/* With all locks: the events of all rings, ring after ring, and where each ends. */
static void rings_copy(uint64_t number, gn_history_event *events, size_t *ends)
{
    size_t end = 0, i = 0;
    gni_list_each (link, &rings) {
        const struct ring *ring = gni_container_of(link, struct ring, link);
        size_t kept = ring_kept(ring, number);
        if (kept == 0)
            continue;
        ring_copy(ring, kept, events + end);
        end += kept;
        ends[i++] = end;
    }
}

/* What is to be read, as it is at one moment. */
struct cut {
    gn_history_event *events, *other; /* owned */
    size_t *ends;                     /* of the rings' events, owned */
    size_t ring_count, event_count;
    uint64_t lost;
};

static void cut_count(uint64_t number, struct cut *cut)
{
    cut->lost = atomic_load(&lost_count);
    gni_list_each (link, &rings) {
        const struct ring *ring = gni_container_of(link, struct ring, link);
        size_t kept = ring_kept(ring, number);
        cut->ring_count += kept > 0;
        cut->event_count += kept;
        cut->lost += ring->recording == number ? ring->written - kept : 0;
    }
}

static gn_status cut_copy(uint64_t number, struct cut *cut)
{
    size_t nbytes = cut->event_count * sizeof *cut->events;
    cut->events = gni_host_alloc(nbytes);
    cut->other = cut->ring_count > 1 ? gni_host_alloc(nbytes) : NULL;
    cut->ends = gni_host_alloc(cut->ring_count * sizeof *cut->ends);
    if (cut->events == NULL || cut->ends == NULL || (cut->ring_count > 1 && cut->other == NULL))
        return gni_error_host_memory(nbytes);
    rings_copy(number, cut->events, cut->ends);
    return GN_OK;
}

gn_status gn_history_read(gn_history_event *events, size_t capacity, size_t *count, uint64_t *lost)
{
    GN_CHECK_ARGUMENT(count != NULL && (events != NULL || capacity == 0), "NULL argument");
    struct cut cut = {0};
    gn_status status = GN_OK;
    gni_mutex_lock(&rings_mutex);
    gni_list_each (link, &rings)
        gni_lock_take(&gni_container_of(link, struct ring, link)->lock);
    uint64_t number = atomic_load(&recording);
    cut_count(number, &cut);
    if (capacity > 0 && cut.event_count > 0)
        status = cut_copy(number, &cut);
    gni_list_each (link, &rings)
        gni_lock_give(&gni_container_of(link, struct ring, link)->lock);
    gni_mutex_unlock(&rings_mutex);
    if (status == GN_OK && cut.events != NULL) {
        const gn_history_event *sorted = runs_sort(cut.events, cut.other, cut.ends, cut.ring_count);
        size_t copied = cut.event_count < capacity ? cut.event_count : capacity;
        memcpy(events, sorted, copied * sizeof *events);
    }
    gni_host_free(cut.events);
    gni_host_free(cut.other);
    gni_host_free(cut.ends);
    GN_TRY(status);
    *count = cut.event_count;
    if (lost != NULL)
        *lost = cut.lost;
    return GN_OK;
}

/* ---- annotations ---------------------------------------------------------------------------- */

/* With the lock: the number of a name, or 0 with a status. */
static gn_status name_intern(const char *name, uint32_t *number)
{
    uint64_t hash = gni_hash_bytes(name, strlen(name), 0);
    for (void *found; (found = gni_map_find(&words.by_hash, hash)) != NULL; hash++) {
        if (strcmp(words.names[(uintptr_t)found], name) == 0) {
            *number = (uint32_t)(uintptr_t)found;
            return GN_OK;
        }
    }
    if (words.count == 0)
        words.count = 1;
    if (words.count >= words.capacity) {
        size_t capacity = words.capacity > 0 ? 2 * words.capacity : 64;
        char **names = gni_host_realloc(words.names, capacity * sizeof *names);
        if (names == NULL)
            return gni_error_host_memory(capacity * sizeof *names);
        words.names = names;
        words.capacity = capacity;
    }
    char *copy = gni_host_alloc(strlen(name) + 1);
    if (copy == NULL)
        return gni_error_host_memory(strlen(name) + 1);
    gn_status status = gni_map_insert(&words.by_hash, hash, (void *)(uintptr_t)words.count);
    if (status != GN_OK) {
        gni_host_free(copy);
        return status;
    }
    words.names[words.count] = strcpy(copy, name);
    *number = (uint32_t)words.count++;
    return GN_OK;
}

static gn_status name_get(const char *name, uint32_t *number)
{
    gni_once_run(&once, history_init); /* a fork must find the lock */
    gni_lock_take(&words.lock);
    gn_status status = name_intern(name, number);
    gni_lock_give(&words.lock);
    return status;
}

const char *gn_history_get_name(uint32_t annotation)
{
    const char *name = NULL;
    if (annotation == 0)
        return "";
    gni_lock_take(&words.lock);
    if (annotation < words.count)
        name = words.names[annotation];
    gni_lock_give(&words.lock);
    return name;
}

static void annotation_note(gn_history_kind kind, uint32_t annotation)
{
    if (!has_events())
        return;
    gn_history_event event = event_make(kind, NULL, gni_time_ns());
    event.annotation = annotation;
    event_write(&event);
}

gn_status gn_history_mark(const char *name)
{
    uint32_t number;
    GN_CHECK_ARGUMENT(name != NULL && strlen(name) < NAME_MOST, "the name is NULL or too long");
    GN_TRY(name_get(name, &number));
    annotation_note(GN_HISTORY_MARK, number);
    return GN_OK;
}

void gn_history_snapshot(void)
{
    annotation_note(GN_HISTORY_SNAPSHOT, annotation_now());
}

gn_status gn_history_begin(const char *name)
{
    GN_CHECK_ARGUMENT(name != NULL, "the name is NULL");
    if (thread.depth == NESTED_MOST)
        return gni_error(GN_ERROR_OVERFLOW, "annotations are nested deeper than %d", NESTED_MOST);
    char path[NAME_MOST];
    const char *outer = gn_history_get_name(annotation_now());
    size_t length = strlen(outer), added = strlen(name);
    GN_CHECK_ARGUMENT(length + added + 2 <= sizeof path, "the name is too long");
    memcpy(path, outer, length);
    if (length > 0)
        path[length++] = '/';
    memcpy(path + length, name, added + 1);
    uint32_t number;
    GN_TRY(name_get(path, &number));
    thread.annotations[thread.depth++] = number;
    annotation_note(GN_HISTORY_BEGIN, number);
    return GN_OK;
}

gn_status gn_history_end(void)
{
    GN_CHECK_ARGUMENT(thread.depth > 0, "no annotation has begun in this thread");
    uint32_t number = thread.annotations[--thread.depth];
    annotation_note(GN_HISTORY_END, number);
    return GN_OK;
}
