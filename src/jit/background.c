/*
 * background.c: see background.h.
 *
 *     buckets   all requests by hash, until they are gone
 *     queued    those that wait for a thread, oldest first
 *     settled   those that are stored or refused, oldest first
 *
 * A request that runs is in no list, and belongs to its thread; only its place in the buckets, `state` and
 * `is_forgotten` are others' to see.
 *
 * Threads: background_mutex guards everything. It is not held while a kernel is made, and a thread that holds it
 * takes no other lock.
 */
#include "jit/background.h"

#include "base/checked.h"
#include "base/fork.h"
#include "base/hash.h"
#include "base/host.h"
#include "base/list.h"
#include "base/log.h"
#include "base/option.h"
#include "base/thread.h"
#include "jit/archive.h"
#include "jit/compiler.h"
#include "jit/kernel.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    BUCKET_COUNT = 1024,
    QUEUED_MOST =
        512, /* then the cheapest is dropped: programs that never end make ever new kernels */
    SETTLED_MOST = 4096, /* then the oldest is forgotten, and may be asked for again */
    OPTIONS_MOST = 64,   /* of a source; NVRTC is given no more */
    THREADS_USUAL = 4,
    IDLE_MS = 2000,
    PRIORITY_LESS = 10,    /* so much nicer than the program */
    ASKS_UNTIL_AGAIN = 64, /* after which what failed for want of memory is tried again */
};

enum state {
    QUEUED,
    RUNNING,
    STORED,
    REFUSED,
};

struct request {
    struct gni_list link; /* in queued or settled */
    struct request *next; /* in its bucket */
    uint64_t hash;        /* of the device and the identity */
    gn_device *device;
    uint64_t cost; /* the sum of what callers said */
    enum state state;
    unsigned flags;
    int asks_left;      /* of a refused one, until it is forgotten; 0: it is refused for good */
    bool is_forgotten;  /* while it ran: it is gone when it is done */
    bool has_signature; /* the identity is one; else it is the pieces of a source */
    struct gni_builder text; /* untrimmed; with a signature, until it runs */
    const char *name;        /* behind the identity; NULL: the first piece */
    size_t identity_size;
    char identity[];
};

/* What a request is looked for by. */
struct key {
    uint64_t hash;
    gn_device *device;
    const void *identity;
    size_t size;
    bool is_signature;
};

static struct request *buckets[BUCKET_COUNT];
static struct gni_list queued = {&queued, &queued};
static struct gni_list settled = {&settled, &settled};
static int queued_count, settled_count, running_count;
static int thread_count, idle_count;
static int threads_most; /* constant after the start */
static bool is_stopping, is_exiting;
static unsigned idle_ms = IDLE_MS;
static struct gni_mutex background_mutex = GNI_MUTEX_INIT;
static pthread_cond_t work_came = PTHREAD_COND_INITIALIZER; /* or is_stopping */
static pthread_cond_t changed =
    PTHREAD_COND_INITIALIZER; /* a request is done or dropped, or a thread has ended */
static struct gni_once background_once = GNI_ONCE_INIT;
static _Thread_local bool is_thread; /* one of ours */

/* ---- the table: under the mutex ------------------------------------------------------------- */

static struct key key_make(gn_device *device, const void *identity, size_t size, bool is_signature)
{
    return (struct key){.hash = gni_hash_bytes(identity, size, (uint64_t)(uintptr_t)device),
                        .device = device,
                        .identity = identity,
                        .size = size,
                        .is_signature = is_signature};
}

static bool key_fits(const struct key *key, const struct request *request)
{
    return request->hash == key->hash && request->device == key->device &&
           request->has_signature == key->is_signature && request->identity_size == key->size &&
           memcmp(request->identity, key->identity, key->size) == 0;
}

static struct request *request_find(const struct key *key)
{
    struct request *request = buckets[key->hash % BUCKET_COUNT];
    while (request != NULL && !key_fits(key, request))
        request = request->next;
    return request;
}

/* Of one that is in no list. */
static void request_destroy(struct request *request)
{
    struct request **place = &buckets[request->hash % BUCKET_COUNT];
    while (*place != request)
        place = &(*place)->next;
    *place = request->next;
    gni_builder_deinit(&request->text);
    gni_host_free(request);
}

static void queue_drop(struct request *request)
{
    gni_list_remove(&request->link);
    queued_count--;
    request_destroy(request);
    (void)pthread_cond_broadcast(&changed);
}

static void queue_empty(void)
{
    gni_list_each (link, &queued)
        queue_drop(gni_container_of(link, struct request, link));
}

/* The queued one with the largest or the smallest cost; of equal ones the oldest. NULL: none is queued. */
static struct request *queue_choose(bool is_largest)
{
    struct request *best = NULL;
    gni_list_each (link, &queued) {
        struct request *request = gni_container_of(link, struct request, link);
        if (best == NULL || (is_largest ? request->cost > best->cost : request->cost < best->cost))
            best = request;
    }
    return best;
}

static void settled_forget(struct request *request)
{
    gni_list_remove(&request->link);
    settled_count--;
    request_destroy(request);
}

static void settled_add(struct request *request, enum state state)
{
    request->state = state;
    gni_list_push_back(&settled, &request->link);
    if (++settled_count > SETTLED_MOST)
        settled_forget(gni_container_of(settled.next, struct request, link));
}

static void cost_add(struct request *request, uint64_t cost)
{
    request->cost = cost > UINT64_MAX - request->cost ? UINT64_MAX : request->cost + cost;
}

/* ---- making a kernel ------------------------------------------------------------------------ */

/* A source from its pieces, one after the other. */
static gn_status source_make(const struct request *request)
{
    const char *options[OPTIONS_MOST + 1] = {NULL};
    const char *piece = request->identity, *end = piece + request->identity_size;
    struct gni_kernel_source source = {.options = options};
    struct gni_kernel *kernel;
    for (size_t i = 0; piece < end; i++, piece += strlen(piece) + 1) {
        if (i == 0)
            source.name = piece;
        else if (i == 1)
            source.text = piece;
        else if (i == 2)
            source.is_expression = strcmp(piece, "expression") == 0;
        else
            options[i - 3] = piece;
    }
    return gni_kernel_get(request->device, &source, &kernel);
}

/* Whether the compiler is another version than the archive's. */
static bool is_other_version(void)
{
    struct gni_compiler compiler;
    int version = gni_archive_nvrtc_version();
    return version != 0 &&
           (gni_compiler_guess(&compiler) || gni_compiler_load(&compiler) == GN_OK) &&
           compiler.version != version;
}

static gn_status request_make(struct request *request)
{
    struct gni_kernel *kernel;
    if (!request->has_signature)
        return source_make(request);
    if ((request->flags & GNI_REQUEST_DISK_ONLY) != 0)
        return gni_kernel_build_stored(request->device, request->name, &request->text,
                                       request->identity, request->identity_size);
    return gni_kernel_build(request->device, request->name, &request->text, request->identity,
                            request->identity_size, &kernel);
}

/* BG1. What is no news, or is said by every other call, is not a warning. */
static void failure_log(const struct request *request, gn_status status)
{
    static atomic_bool has_said_unavailable;
    bool is_known =
        status == GN_ERROR_DEVICE_LOST || status == GN_ERROR_SHUTDOWN || status == GN_ERROR_FORKED;
    if (status == GN_ERROR_UNAVAILABLE)
        is_known = atomic_exchange(&has_said_unavailable, true);
    gni_log(is_known ? GNI_LOG_INFO : GNI_LOG_WARNING,
            "kernel %s was not made in the background%s: %s",
            request->name != NULL ? request->name : request->identity,
            request->has_signature ? ", and its programs go on without it" : "", gn_error_detail());
}

/* Whether another try would end in the same way. Want of memory may pass. */
static bool is_for_good(gn_status status)
{
    return status == GN_OK || status == GN_ERROR_COMPILATION || status == GN_ERROR_UNSUPPORTED ||
           status == GN_ERROR_UNAVAILABLE;
}

/* With the mutex, which is given up meanwhile. */
static void request_run(struct request *request)
{
    if ((request->flags & GNI_REQUEST_SAME_VERSION) != 0) {
        gni_mutex_unlock(&background_mutex);
        bool is_other = is_other_version();
        gni_mutex_lock(&background_mutex);
        if (is_other)
            request->flags |= GNI_REQUEST_DISK_ONLY;
    }
    bool is_stored = (request->flags & GNI_REQUEST_DISK_ONLY) != 0;
    gni_mutex_unlock(&background_mutex);
    gn_status status = request_make(request);
    if (status != GN_OK)
        failure_log(request, status);
    gni_mutex_lock(&background_mutex);
    running_count--;
    request->asks_left = is_for_good(status) ? 0 : ASKS_UNTIL_AGAIN;
    if (request->is_forgotten || !request->has_signature || (status == GN_OK && !is_stored))
        request_destroy(request);
    else
        settled_add(request, status == GN_OK ? STORED : REFUSED);
    (void)pthread_cond_broadcast(&changed);
}

/* ---- threads -------------------------------------------------------------------------------- */

/* The program's threads go first. */
static void priority_lower(void)
{
    id_t thread = (id_t)syscall(SYS_gettid);
    int priority = getpriority(PRIO_PROCESS, thread);
    (void)setpriority(PRIO_PROCESS, thread, priority + PRIORITY_LESS);
}

static struct timespec time_after(uint64_t ms)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_sec += (time_t)(ms / 1000);
    time.tv_nsec += (long)(ms % 1000) * 1000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_sec++;
        time.tv_nsec -= 1000000000;
    }
    return time;
}

/* With the mutex, which is given up meanwhile. NULL: the thread is to end. */
static struct request *request_take(void)
{
    struct timespec end = time_after(idle_ms);
    int failed = 0;
    while (gni_list_is_empty(&queued) && !is_stopping && failed == 0) {
        idle_count++;
        failed = pthread_cond_timedwait(&work_came, &background_mutex.native, &end);
        idle_count--;
    }
    struct request *request = is_stopping ? NULL : queue_choose(true);
    if (request == NULL)
        return NULL;
    gni_list_remove(&request->link);
    queued_count--;
    request->state = RUNNING;
    running_count++;
    return request;
}

static void *thread_run(void *unused)
{
    struct request *request;
    is_thread = true;
    priority_lower();
    gni_mutex_lock(&background_mutex);
    while ((request = request_take()) != NULL)
        request_run(request);
    thread_count--;
    (void)pthread_cond_broadcast(&changed);
    gni_mutex_unlock(&background_mutex);
    return unused;
}

/* As many as the option says. */
static int threads_limit(void)
{
    int given = (int)gni_option_number(GNI_OPTION_COMPILE_THREADS);
    int half = gni_processor_count() / 2;
    if (given > 0)
        return given;
    return half < 1 ? 1 : half < THREADS_USUAL ? half : THREADS_USUAL;
}

/* With the mutex: sees to it that there is a thread for what was just queued (BG3). False: the system gives none. */
static bool thread_provide(void)
{
    pthread_t thread;
    (void)pthread_cond_signal(&work_came);
    if (idle_count >= queued_count || thread_count >= threads_most)
        return true;
    if (gni_thread_start(&thread, thread_run, NULL) == 0) {
        (void)pthread_detach(thread);
        thread_count++;
    }
    return thread_count > 0;
}

/* With the mutex: BG3 without a thread. */
static void queue_refuse(void)
{
    gni_list_each (link, &queued) {
        struct request *request = gni_container_of(link, struct request, link);
        gni_list_remove(link);
        queued_count--;
        gni_builder_deinit(&request->text);
        if (request->has_signature)
            settled_add(request, REFUSED);
        else
            request_destroy(request);
    }
    (void)pthread_cond_broadcast(&changed);
}

void gni_background_stop(void)
{
    gni_mutex_lock(&background_mutex);
    is_stopping = true;
    queue_empty();
    (void)pthread_cond_broadcast(&work_came);
    while (thread_count > 0)
        (void)pthread_cond_wait(&changed, &background_mutex.native);
    is_stopping = false;
    gni_mutex_unlock(&background_mutex);
}

static void conditions_init(void)
{
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&work_came, &attributes);
    (void)pthread_cond_init(&changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

/* BG5. Those that ran are the parent's; nobody waits for these conditions here, though the copies say so. */
static void background_forked(bool is_child)
{
    if (!is_child)
        return;
    conditions_init();
    queue_empty();
    while (!gni_list_is_empty(&settled))
        settled_forget(gni_container_of(settled.next, struct request, link));
    memset(buckets, 0, sizeof buckets); /* a thread that ran may have been freeing its request */
    running_count = thread_count = idle_count = 0;
    is_stopping = false;
}

static const struct gni_fork_handlers background_fork = {.mutex = &background_mutex,
                                                         .done = background_forked};

static void background_at_exit(void)
{
    gni_mutex_lock(&background_mutex);
    is_exiting = true;
    gni_mutex_unlock(&background_mutex);
    gni_background_stop();
}

/* The driver is loaded: its own handlers run later. */
static void background_start(void)
{
    conditions_init();
    threads_most = threads_limit();
    gni_fork_register(GNI_FORK_BACKGROUND, &background_fork);
    gni_kernel_start();
    (void)atexit(background_at_exit);
}

void gni_background_guard_exit(void)
{
    (void)atexit(background_at_exit);
}

bool gni_background_is_thread(void)
{
    return is_thread;
}

/* ---- asking --------------------------------------------------------------------------------- */

/* NULL: there is no memory. The identity is the caller's to write. */
static struct request *request_create(gn_device *device, size_t identity_size, const char *name)
{
    size_t name_bytes = name != NULL ? strlen(name) + 1 : 0, nbytes;
    if (!gni_size_add(sizeof(struct request), identity_size, &nbytes) ||
        !gni_size_add(nbytes, name_bytes, &nbytes))
        return NULL;
    struct request *request = gni_host_alloc(nbytes);
    if (request == NULL)
        return NULL;
    request->device = device;
    request->identity_size = identity_size;
    request->has_signature = name != NULL;
    if (name != NULL)
        request->name = memcpy(request->identity + identity_size, name, name_bytes);
    return request;
}

/* What is known of it already: asked for again, it may be wanted more than before. True: there is nothing to queue. */
static bool request_renew(struct request *known, uint64_t cost, unsigned flags)
{
    cost_add(known, cost);
    if (known->state == QUEUED)
        known->flags &= flags;
    if (known->state != STORED || (flags & GNI_REQUEST_DISK_ONLY) != 0)
        return true;
    settled_forget(known);
    return false;
}

/* Takes the request, which is in no list or table. */
static void request_queue(struct request *request)
{
    struct key key = key_make(request->device, request->identity, request->identity_size,
                              request->has_signature);
    gni_mutex_lock(&background_mutex);
    struct request *known = request_find(&key);
    if (is_exiting || is_stopping ||
        (known != NULL && request_renew(known, request->cost, request->flags))) {
        gni_mutex_unlock(&background_mutex);
        gni_builder_deinit(&request->text);
        gni_host_free(request);
        return;
    }
    if (queued_count >= QUEUED_MOST)
        queue_drop(queue_choose(false));
    request->hash = key.hash;
    request->next = buckets[key.hash % BUCKET_COUNT];
    buckets[key.hash % BUCKET_COUNT] = request;
    gni_list_push_back(&queued, &request->link);
    queued_count++;
    bool has_thread = thread_provide();
    if (!has_thread)
        queue_refuse();
    gni_mutex_unlock(&background_mutex);
    if (!has_thread)
        gni_log(GNI_LOG_WARNING,
                "the system gives no thread that compiles kernels; programs go on without theirs");
}

static bool can_request(gn_device *device)
{
    if (device->ops->module_load == NULL || device->ops->check(device) != GN_OK)
        return false;
    gni_once_run(&background_once, background_start);
    return true;
}

void gni_kernel_request(gn_device *device, const char *name, struct gni_builder *text,
                        const void *signature, size_t signature_size, uint64_t cost, unsigned flags)
{
    struct request *request = NULL;
    if (!text->has_failed && can_request(device) &&
        gni_kernel_find(device, signature, signature_size) == NULL)
        request = request_create(device, signature_size, name);
    if (request == NULL) {
        gni_builder_deinit(text);
        return;
    }
    memcpy(request->identity, signature, signature_size);
    request->cost = cost;
    request->flags = flags;
    request->text = *text;
    *text = (struct gni_builder){.text = NULL};
    request_queue(request);
}

bool gni_kernel_is_requested(gn_device *device, const void *signature, size_t size, uint64_t cost)
{
    struct key key = key_make(device, signature, size, true);
    gni_mutex_lock(&background_mutex);
    struct request *request = request_find(&key);
    if (request != NULL)
        cost_add(request, cost);
    if (request != NULL && request->state == REFUSED && request->asks_left > 0 &&
        --request->asks_left == 0) {
        settled_forget(request);
        request = NULL;
    }
    gni_mutex_unlock(&background_mutex);
    return request != NULL;
}

void gni_kernel_request_source(gn_device *device, const struct gni_kernel_source *source)
{
    size_t count = 0, size = 0;
    const char *piece;
    for (; (piece = gni_kernel_source_piece(source, count)) != NULL; count++)
        if (!gni_size_add(size, strlen(piece) + 1, &size))
            return;
    struct request *request = count <= 3 + OPTIONS_MOST && can_request(device)
                                  ? request_create(device, size, NULL)
                                  : NULL;
    if (request == NULL)
        return;
    char *to = request->identity;
    for (size_t i = 0; i < count; i++) {
        piece = gni_kernel_source_piece(source, i);
        to = (char *)memcpy(to, piece, strlen(piece) + 1) + strlen(piece) + 1;
    }
    request_queue(request);
}

/* ---- waiting, leaving ----------------------------------------------------------------------- */

bool gni_background_wait(uint64_t timeout_ms)
{
    int failed = 0;
    bool is_bounded = timeout_ms < INT_MAX;
    struct timespec end = time_after(is_bounded ? timeout_ms : 0);
    gni_mutex_lock(&background_mutex);
    while (queued_count + running_count > 0 && failed == 0)
        failed = is_bounded ? pthread_cond_timedwait(&changed, &background_mutex.native, &end)
                            : pthread_cond_wait(&changed, &background_mutex.native);
    bool is_done = queued_count + running_count == 0;
    gni_mutex_unlock(&background_mutex);
    return is_done;
}

void gni_background_leave(gn_device *device, const void *signature, size_t size)
{
    struct key key = key_make(device, signature, size, true);
    struct request *request;
    gni_mutex_lock(&background_mutex);
    while ((request = request_find(&key)) != NULL && request->state == RUNNING &&
           (request->flags & GNI_REQUEST_DISK_ONLY) != 0)
        (void)pthread_cond_wait(&changed, &background_mutex.native);
    if (request != NULL && request->state == QUEUED)
        queue_drop(request);
    gni_mutex_unlock(&background_mutex);
}

void gni_background_clear(void)
{
    gni_mutex_lock(&background_mutex);
    queue_empty();
    while (!gni_list_is_empty(&settled))
        settled_forget(gni_container_of(settled.next, struct request, link));
    for (size_t i = 0; i < BUCKET_COUNT; i++)
        for (struct request *request = buckets[i]; request != NULL; request = request->next)
            request->is_forgotten = true;
    gni_mutex_unlock(&background_mutex);
}

int gni_background_thread_count(void)
{
    gni_mutex_lock(&background_mutex);
    int count = thread_count;
    gni_mutex_unlock(&background_mutex);
    return count;
}

void gni_background_set_idle_ms(unsigned ms)
{
    gni_mutex_lock(&background_mutex);
    idle_ms = ms > 0 ? ms : IDLE_MS;
    gni_mutex_unlock(&background_mutex);
}
