/*
 * test_stress.c: a random mix of everything on the CPU device, by several threads at once.
 *
 *     test_stress [seconds [seed]]     1 second by default; `make soak` gives it much longer
 *
 * Each thread owns buffers and streams, and a model of what every buffer holds once its work is
 * done. Work moves between streams with events, buffers move between threads, streams and events
 * are destroyed with work pending, wrong calls are made and must be refused, and the process forks.
 * At the end nothing is left over.
 */
#include "books.h"
#include "child.h"

#include "base/host.h"
#include "genesis/genesis.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum {
    THREADS = 4,
    BUFFERS = 12, /* of a thread */
    STREAMS = 3,  /* of a thread; the default stream is one more */
    EXCHANGE_PLACES = 8,
    BUFFER_BYTES_MAX = 20000,
};

static gn_device *device;
static gn_stream *default_stream;
static gn_memory_manager *manager;
static atomic_bool is_over;

/* A block and what it holds when the work on `stream` is done; NULL: none. */
struct buffer {
    unsigned char *block;
    size_t nbytes;
    unsigned char value; /* in every byte */
    int stream;          /* the last one it was used on; STREAMS is the default stream */
};

struct worker {
    uint64_t seed;
    uint64_t step_count;
    gn_stream *streams[STREAMS + 1];
    struct buffer buffers[BUFFERS];
};

static struct buffer exchange[EXCHANGE_PLACES];
static pthread_mutex_t exchange_mutex = PTHREAD_MUTEX_INITIALIZER;

static uint64_t worker_random(struct worker *worker, uint64_t below)
{
    return check_random(&worker->seed) % below;
}

static gn_stream *worker_stream_make(struct worker *worker)
{
    gn_stream *stream = NULL;
    CHECK_OK(gn_stream_create(device, (unsigned)worker_random(worker, 2), 0, &stream));
    return stream;
}

/* ---- buffers -------------------------------------------------------------------------------- */

/* Makes a stream wait for what was submitted for a buffer elsewhere. */
static void buffer_move(struct worker *worker, struct buffer *buffer, int to)
{
    gn_event *event = NULL;
    if (buffer->stream == to)
        return;
    CHECK_OK(gn_event_create(device, 0, &event));
    CHECK_OK(gn_event_record(event, worker->streams[buffer->stream]));
    CHECK_OK(gn_stream_wait_event(worker->streams[to], event));
    gn_event_destroy(event); /* the wait keeps its meaning */
    buffer->stream = to;
}

static void buffer_fill(struct worker *worker, struct buffer *buffer)
{
    buffer->value = (unsigned char)worker_random(worker, 256);
    size_t element_size = (size_t)1 << worker_random(worker, 3);
    uint32_t value = buffer->value * 0x01010101u;
    size_t rest = buffer->nbytes % element_size;
    gn_stream *stream = worker->streams[buffer->stream];
    CHECK_OK(gn_fill(buffer->block, value, element_size, buffer->nbytes / element_size, stream));
    CHECK_OK(gn_fill(buffer->block + buffer->nbytes - rest, value, 1, rest, stream));
}

static void buffer_copy(struct worker *worker, struct buffer *to, struct buffer *from)
{
    if (from->block == NULL || from->nbytes < to->nbytes)
        return;
    buffer_move(worker, from, to->stream);
    CHECK_OK(gn_copy(to->block, from->block, to->nbytes, worker->streams[to->stream]));
    to->value = from->value;
}

static void buffer_check(struct worker *worker, struct buffer *buffer)
{
    gn_stream *stream = worker->streams[buffer->stream];
    if (worker_random(worker, 2) == 0) {
        CHECK_OK(gn_stream_synchronize(stream));
    } else {
        gn_event *event = NULL;
        CHECK_OK(gn_event_create(device, GN_EVENT_TIMING, &event));
        CHECK_OK(gn_event_record(event, stream));
        CHECK_OK(gn_event_synchronize(event));
        gn_event_destroy(event);
    }
    size_t wrong = 0, nbytes = 0;
    for (size_t i = 0; i < buffer->nbytes; i++)
        wrong += buffer->block[i] != buffer->value;
    CHECK_U64(wrong, 0);
    CHECK_OK(gn_memory_get_size(manager, buffer->block, &nbytes));
    CHECK_U64(nbytes, buffer->nbytes);
}

static void buffer_alloc(struct worker *worker, struct buffer *buffer)
{
    buffer->stream = (int)worker_random(worker, STREAMS + 1);
    buffer->nbytes = (size_t)worker_random(worker, BUFFER_BYTES_MAX);
    void *block = NULL;
    CHECK_OK(gn_memory_alloc(manager, buffer->nbytes, worker->streams[buffer->stream], &block));
    buffer->block = block;
    buffer_fill(worker, buffer);
}

static void buffer_free(struct worker *worker, struct buffer *buffer)
{
    buffer_check(worker, buffer);
    if (buffer->nbytes > 1)
        CHECK_STATUS(gn_memory_free(manager, buffer->block + 1), GN_ERROR_INVALID_POINTER);
    CHECK_STATUS(gn_memory_free_sized(manager, buffer->block, buffer->nbytes + 1),
                 GN_ERROR_WRONG_SIZE);
    CHECK_OK(gn_memory_free(manager, buffer->block));
    buffer->block = NULL;
}

/* ---- workers -------------------------------------------------------------------------------- */

/* Leaves a finished buffer for other threads and takes what lies in its place. */
static void worker_exchange(struct worker *worker, struct buffer *buffer)
{
    if (buffer->block != NULL)
        buffer_check(worker, buffer);
    struct buffer mine = *buffer;
    mine.stream = STREAMS; /* the only stream that all threads know */
    struct buffer *place = &exchange[worker_random(worker, EXCHANGE_PLACES)];
    (void)pthread_mutex_lock(&exchange_mutex);
    *buffer = *place;
    *place = mine;
    (void)pthread_mutex_unlock(&exchange_mutex);
}

/* A stream gives way to another one; its work goes on without it. */
static void worker_stream_replace(struct worker *worker)
{
    int index = (int)worker_random(worker, STREAMS);
    for (int i = 0; i < BUFFERS; i++) {
        if (worker->buffers[i].block != NULL && worker->buffers[i].stream == index)
            buffer_move(worker, &worker->buffers[i], STREAMS);
    }
    gn_stream_release(worker->streams[index]);
    worker->streams[index] = worker_stream_make(worker);
}

static void worker_misuse(struct worker *worker)
{
    void *pointer = worker;
    CHECK_STATUS(gn_memory_free(manager, worker), GN_ERROR_INVALID_POINTER);
    CHECK_STATUS(gn_memory_alloc(manager, SIZE_MAX, NULL, &pointer), GN_ERROR_OVERFLOW);
    CHECK_STATUS(gn_memory_alloc(manager, (size_t)1 << 50, NULL, &pointer), GN_ERROR_OUT_OF_MEMORY);
    CHECK(pointer == worker);
    CHECK_STATUS(gn_fill(pointer, 0, 3, 1, default_stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_host_free(device, worker), GN_ERROR_INVALID_POINTER);
    CHECK_DETAIL("gn_host_alloc"); /* this thread's failure, not another one's */
}

static void worker_current(struct worker *worker)
{
    gn_stream *current = NULL;
    gn_stream *chosen = worker->streams[worker_random(worker, STREAMS + 1)];
    CHECK_OK(gn_stream_set_current(chosen));
    CHECK_OK(gn_stream_get_current(device, &current));
    CHECK(current == chosen);
    gn_status status = gn_stream_query(current);
    CHECK(status == GN_OK || status == GN_ERROR_NOT_READY);
}

static void worker_statistics(void)
{
    gn_memory_statistics now;
    CHECK_OK(gn_memory_get_statistics(manager, &now));
    CHECK(now.live_count == now.alloc_count - now.free_count);
    CHECK(now.requested_bytes == now.alloc_bytes_total - now.free_bytes_total);
    CHECK(now.free_count <= now.alloc_count && now.free_bytes_total <= now.alloc_bytes_total);
    CHECK(now.live_bytes <= now.live_bytes_peak && now.live_count <= now.live_count_peak);
}

static void worker_host_block(struct worker *worker)
{
    void *pointer = NULL;
    size_t nbytes = (size_t)worker_random(worker, BUFFER_BYTES_MAX);
    CHECK_OK(gn_host_alloc(device, nbytes, &pointer));
    memset(pointer, 1, nbytes);
    CHECK_OK(gn_host_free(device, pointer));
}

static void worker_step(struct worker *worker)
{
    struct buffer *buffer = &worker->buffers[worker_random(worker, BUFFERS)];
    uint64_t choice = worker_random(worker, 100);
    if (choice < 3)
        worker_stream_replace(worker);
    else if (choice < 6)
        worker_misuse(worker);
    else if (choice < 9)
        worker_current(worker);
    else if (choice < 12)
        worker_statistics();
    else if (choice < 15)
        worker_host_block(worker);
    else if (choice < 16)
        CHECK_OK(gn_device_synchronize(device));
    else if (choice < 24)
        worker_exchange(worker, buffer);
    else if (buffer->block == NULL)
        buffer_alloc(worker, buffer);
    else if (choice < 35)
        buffer_free(worker, buffer);
    else if (choice < 45)
        buffer_check(worker, buffer);
    else if (choice < 60)
        buffer_move(worker, buffer, (int)worker_random(worker, STREAMS + 1));
    else if (choice < 80)
        buffer_copy(worker, buffer, &worker->buffers[worker_random(worker, BUFFERS)]);
    else
        buffer_fill(worker, buffer);
}

static void *worker_body(void *argument)
{
    struct worker *worker = argument;
    for (int i = 0; i < STREAMS; i++)
        worker->streams[i] = worker_stream_make(worker);
    worker->streams[STREAMS] = default_stream;
    while (!atomic_load(&is_over)) {
        worker_step(worker);
        worker->step_count++;
    }
    for (int i = 0; i < BUFFERS; i++) {
        if (worker->buffers[i].block != NULL)
            buffer_free(worker, &worker->buffers[i]);
    }
    for (int i = 0; i < STREAMS; i++)
        gn_stream_release(worker->streams[i]);
    return NULL; /* its current stream is let go with it */
}

/* ---- the whole ------------------------------------------------------------------------------ */

#ifndef CHILD_IS_ALONE
/* In the child the other threads' work is finished, and new work is done. */
static void fork_body(void *unused)
{
    (void)unused;
    static struct worker worker = {.seed = 1};
    CHECK_OK(gn_device_synchronize(device));
    for (int i = 0; i < STREAMS; i++)
        worker.streams[i] = worker_stream_make(&worker);
    worker.streams[STREAMS] = default_stream;
    for (int i = 0; i < BUFFERS; i++)
        buffer_alloc(&worker, &worker.buffers[i]);
    for (int i = 0; i < BUFFERS; i++)
        buffer_free(&worker, &worker.buffers[i]);
}
#endif

static double seconds_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Lets the time pass; forks meanwhile, where that is possible. */
static void time_pass(double seconds)
{
    double end = seconds_now() + seconds;
    while (seconds_now() < end && __atomic_load_n(&check_failures, __ATOMIC_RELAXED) == 0) {
        (void)usleep(50000);
#ifndef CHILD_IS_ALONE
        static struct child_result result;
        child_run(fork_body, NULL, &result);
        CHECK(child_is_ok(&result));
#endif
    }
}

static void exchange_clear(void)
{
    struct worker sweeper = {.streams[STREAMS] = default_stream};
    for (int i = 0; i < EXCHANGE_PLACES; i++) {
        if (exchange[i].block != NULL)
            buffer_free(&sweeper, &exchange[i]);
    }
}

/* Nothing is alive, once the memory manager gives up what it keeps. */
static void end_check(size_t live_before)
{
    gn_memory_statistics now;
    size_t leaked = 1;
    CHECK_OK(gn_memory_get_statistics(manager, &now));
    CHECK(now.live_count == 0 && now.live_bytes == 0);
    CHECK_U64(now.alloc_bytes_total, now.free_bytes_total);
    CHECK_U64(now.requested_bytes, 0);
    CHECK_OK(gni_manager_clear(manager));
    CHECK(books_settle(manager, live_before));
    CHECK_OK(gn_shutdown(&leaked));
    CHECK_U64(leaked, 0);
}

/* What lives for ever once it was used is made now, to be counted. */
static size_t device_start(void)
{
    void *pointer = NULL;
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &device));
    CHECK_OK(gn_stream_get_default(device, &default_stream));
    CHECK_OK(gn_memory_manager_get(device, &manager));
    CHECK_OK(gn_memory_alloc(manager, 1, NULL, &pointer));
    CHECK_OK(gn_memory_free(manager, pointer));
    CHECK_OK(gn_host_alloc(device, 1, &pointer));
    CHECK_OK(gn_host_free(device, pointer));
    CHECK_OK(gni_manager_clear(manager));
    return books_count(manager);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)(seconds_now() * 1e9);
    printf("test_stress: %g seconds, seed %" PRIu64 "\n", seconds, seed);
    fflush(stdout);
    static struct worker workers[THREADS];
    pthread_t threads[THREADS];
    uint64_t steps = 0;
    size_t live = device_start();
    for (int i = 0; i < THREADS; i++) {
        workers[i].seed = check_random(&seed);
        CHECK(pthread_create(&threads[i], NULL, worker_body, &workers[i]) == 0);
    }
    time_pass(seconds);
    atomic_store(&is_over, true);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        steps += workers[i].step_count;
    }
    exchange_clear();
    end_check(live);
    printf("%" PRIu64 " steps\n", steps);
    return check_result();
}
