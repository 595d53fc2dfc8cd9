/*
 * test_cpu_fork.c: fork() on the CPU device: with work that is pending, and in the middle of other threads' calls.
 */
#include "cpu_suite.h"

#include <stdatomic.h>

#ifndef CHILD_IS_ALONE

enum {
    PENDING_STEPS = 300,
};

/* Work that both processes finish for themselves: the trace is in memory of their own. */
struct pending {
    gn_stream *blocking, *other;
    gn_event *event;
    uint32_t cell, trace[PENDING_STEPS];
    char last[GATE_BYTES];
};

static void pending_submit(struct pending *work)
{
    for (uint32_t step = 0; step < PENDING_STEPS; step++) {
        CHECK_OK(gn_fill(&work->cell, step, 4, 1, work->blocking));
        CHECK_OK(gn_copy(&work->trace[step], &work->cell, 4, work->blocking));
    }
    CHECK_OK(gn_event_record(work->event, work->blocking));
    CHECK_OK(gn_stream_wait_event(work->other, work->event));
    CHECK_OK(gn_copy(work->last, gate.target, sizeof work->last, work->other));
}

static void pending_check(void *argument)
{
    struct pending *work = argument;
    CHECK_OK(gn_stream_synchronize(work->other)); /* which needs the work of all the streams */
    CHECK_OK(gn_event_query(work->event));
    CHECK_OK(gn_stream_query(work->blocking));
    for (uint32_t step = 0; step < PENDING_STEPS; step++)
        CHECK(work->trace[step] == step);
    CHECK(bytes_are(work->last, GATE_BYTE, sizeof work->last));
    uint32_t more = 0; /* and the streams go on working */
    CHECK_OK(gn_fill(&more, 77, 4, 1, work->blocking));
    CHECK_OK(gn_event_record(work->event, work->blocking));
    CHECK_OK(gn_event_synchronize(work->event));
    CHECK(more == 77);
    CHECK_OK(gn_device_synchronize(device));
}

static void pending_release(struct pending *work)
{
    gn_stream_release(work->blocking);
    gn_stream_release(work->other);
    gn_event_destroy(work->event);
}

static void pending_child(void *work)
{
    pending_check(work);
    pending_release(work);
    gn_stream *stream = stream_make(0);
    char byte = 0;
    CHECK_OK(gn_fill(&byte, 3, 1, 1, stream));
    CHECK_OK(gn_stream_synchronize(stream));
    CHECK(byte == 3);
    gn_stream_release(stream);
}

/* fork() waits for what is running, which is at the gate; so another thread has to open it. */
static void *gate_opener(void *unused)
{
    (void)unused;
    (void)usleep(5000); /* only so that much is likely to be pending at the fork */
    gate_open();
    return NULL;
}

static void test_fork_with_pending_work(void)
{
    static struct child_result result;
    for (int round = 0; round < 5; round++) {
        struct pending work = {.blocking = stream_make(0),
                               .other = stream_make(GN_STREAM_NON_BLOCKING),
                               .event = event_make(0)};
        pthread_t opener;
        gate_hold();
        pending_submit(&work);
        CHECK(pthread_create(&opener, NULL, gate_opener, NULL) == 0);
        child_run(pending_child, &work, &result);
        CHECK(child_is_ok(&result));
        CHECK(pthread_join(opener, NULL) == 0);
        pending_check(&work);
        pending_release(&work);
    }
}

/* A stream that was destroyed before the fork: its work belongs to the child as well. */
static void orphan_check(void *bytes)
{
    CHECK_OK(gn_device_synchronize(device));
    CHECK(bytes_are(bytes, GATE_BYTE, GATE_BYTES));
}

static void test_fork_with_a_destroyed_stream(void)
{
    static struct child_result result;
    char bytes[GATE_BYTES] = "";
    pthread_t opener;
    gn_stream *stream = stream_make(0);
    gate_hold();
    CHECK_OK(gn_copy(bytes, gate.target, sizeof bytes, stream));
    gn_stream_release(stream);
    CHECK(pthread_create(&opener, NULL, gate_opener, NULL) == 0);
    child_run(orphan_check, bytes, &result);
    CHECK(child_is_ok(&result));
    CHECK(pthread_join(opener, NULL) == 0);
    orphan_check(bytes);
}

enum {
    SUBMITTERS = 4,
    FORKS = 50,
};

static atomic_bool submitters_stop;

/* Copies and allocates without a pause, checking each result. */
static void *submitter(void *argument)
{
    unsigned flags = *(unsigned *)argument % 2;
    gn_stream *stream = stream_make(flags);
    gn_memory_manager *manager = NULL;
    CHECK_OK(gn_memory_manager_get(device, &manager));
    static _Thread_local unsigned char from[8192], to[8192];
    for (int round = 0; !atomic_load(&submitters_stop); round++) {
        void *block = NULL;
        CHECK_OK(gn_memory_alloc(manager, sizeof from, stream, &block));
        CHECK_OK(gn_fill(from, (uint32_t)round, 1, sizeof from, stream));
        CHECK_OK(gn_copy(block, from, sizeof from, stream));
        CHECK_OK(gn_copy(to, block, sizeof to, stream));
        CHECK_OK(gn_stream_synchronize(stream));
        CHECK(bytes_are(to, round, sizeof to));
        CHECK_OK(gn_memory_free(manager, block));
    }
    gn_stream_release(stream);
    return NULL;
}

/* Uses everything in a process that was forked in the middle of other threads' calls. */
static void fork_child(void *unused)
{
    (void)unused;
    gn_memory_manager *manager = NULL;
    gn_stream *stream = stream_make(0);
    gn_event *event = event_make(GN_EVENT_TIMING);
    unsigned char *block = NULL, *other = NULL;
    void *pinned = NULL;
    CHECK_OK(gn_memory_manager_get(device, &manager));
    CHECK_OK(gn_memory_alloc(manager, 10000, stream, (void **)&block));
    CHECK_OK(gn_memory_alloc(manager, 10000, NULL, (void **)&other));
    CHECK_OK(gn_fill(block, 1, 1, 10000, stream));
    CHECK_OK(gn_copy(other, block, 10000, default_stream)); /* waits for the blocking streams */
    CHECK_OK(gn_event_record(event, default_stream));
    CHECK_OK(gn_event_synchronize(event));
    CHECK(bytes_are(other, 1, 10000));
    CHECK_OK(gn_device_synchronize(device));
    CHECK_OK(gn_memory_free(manager, block));
    CHECK_OK(gn_memory_free(manager, other));
    CHECK_STATUS(gn_memory_free(manager, other), GN_ERROR_DOUBLE_FREE);
    CHECK_OK(gn_host_alloc(device, 100, &pinned));
    CHECK_OK(gn_host_free(device, pinned));
    gn_event_destroy(event);
    gn_stream_release(stream);
}

static void test_fork_while_threads_submit(void)
{
    static struct child_result result;
    pthread_t threads[SUBMITTERS];
    unsigned numbers[SUBMITTERS];
    atomic_store(&submitters_stop, false);
    for (unsigned i = 0; i < SUBMITTERS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, submitter, &numbers[i]) == 0);
    }
    for (int i = 0; i < FORKS; i++) {
        child_run(fork_child, NULL, &result);
        if (!child_is_ok(&result))
            break;
    }
    atomic_store(&submitters_stop, true);
    for (int i = 0; i < SUBMITTERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(void)
{
    gate_init();
    device_start();
    RUN(test_fork_with_pending_work);
    RUN(test_fork_with_a_destroyed_stream);
    RUN(test_fork_while_threads_submit);
    CHECK(live_count_settles());
    return check_result();
}

#else

int main(void)
{
    printf("skipped: a process with threads cannot be forked here\n");
    return CHECK_SKIPPED;
}

#endif
