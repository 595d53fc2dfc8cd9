/*
 * test_cpu_streams.c: streams and events of the CPU: order, the default stream, lives, current streams.
 */
#include "cpu_suite.h"

/* ---- order ---------------------------------------------------------------------------------- */

/* Each step overwrites what the step before read: any other order leaves a wrong byte. */
static void order_check(gn_stream *stream)
{
    enum {
        STEPS = 2000
    };
    static uint32_t cell, trace[STEPS];
    memset(trace, 0xff, sizeof trace);
    for (uint32_t step = 0; step < STEPS; step++) {
        CHECK_OK(gn_fill(&cell, step, 4, 1, stream));
        CHECK_OK(gn_copy(&trace[step], &cell, 4, stream));
    }
    CHECK_OK(gn_stream_synchronize(stream));
    CHECK_OK(gn_stream_query(stream));
    for (uint32_t step = 0; step < STEPS; step++)
        CHECK(trace[step] == step);
}

static void test_stream_order(void)
{
    gn_stream *streams[] = {default_stream, stream_make(0), stream_make(GN_STREAM_NON_BLOCKING)};
    for (int i = 0; i < 3; i++)
        order_check(streams[i]);
    gn_stream_release(streams[1]);
    gn_stream_release(streams[2]);
}

/* Work that moves from stream to stream, each handing over to the next by an event. */
static void test_events_order_streams(void)
{
    enum {
        STREAMS = 4,
        STEPS = 500
    };
    gn_stream *streams[STREAMS];
    gn_event *events[STREAMS];
    uint32_t cell = 0, trace[STEPS];
    for (unsigned i = 0; i < STREAMS; i++) {
        streams[i] = stream_make(i % 2 == 0 ? 0 : GN_STREAM_NON_BLOCKING);
        events[i] = event_make(0);
    }
    for (uint32_t step = 0; step < STEPS; step++) {
        gn_stream *stream = streams[step % STREAMS];
        CHECK_OK(gn_stream_wait_event(stream, events[(step + STREAMS - 1) % STREAMS]));
        CHECK_OK(gn_fill(&cell, step, 4, 1, stream));
        CHECK_OK(gn_copy(&trace[step], &cell, 4, stream));
        CHECK_OK(gn_event_record(events[step % STREAMS], stream));
    }
    CHECK_OK(gn_event_synchronize(events[(STEPS - 1) % STREAMS]));
    for (uint32_t step = 0; step < STEPS; step++)
        CHECK(trace[step] == step);
    for (int i = 0; i < STREAMS; i++) {
        gn_stream_release(streams[i]);
        gn_event_destroy(events[i]);
    }
}

static void test_streams_are_concurrent(void)
{
    gn_stream *held = stream_make(GN_STREAM_NON_BLOCKING);
    gn_stream *free_stream = stream_make(GN_STREAM_NON_BLOCKING);
    char a[16] = "", b[16] = "";
    gate_hold();
    gn_event *event = gate_event();
    CHECK_OK(gn_stream_wait_event(held, event));
    CHECK_OK(gn_fill(a, 1, 1, sizeof a, held));
    CHECK_OK(gn_fill(b, 2, 1, sizeof b, free_stream));
    CHECK_OK(gn_stream_synchronize(free_stream)); /* although the other one was first */
    CHECK(bytes_are(b, 2, sizeof b) && bytes_are(a, 0, sizeof a));
    CHECK_STATUS(gn_stream_query(held), GN_ERROR_NOT_READY);
    CHECK_OK(gn_stream_query(free_stream));
    gate_open();
    CHECK_OK(gn_stream_synchronize(held));
    CHECK(bytes_are(a, 1, sizeof a));
    gn_event_destroy(event);
    gn_stream_release(held);
    gn_stream_release(free_stream);
}

/* ---- the default stream --------------------------------------------------------------------- */

static void test_blocking_waits_for_default(void)
{
    gn_stream *blocking = stream_make(0), *other = stream_make(GN_STREAM_NON_BLOCKING);
    char seen[GATE_BYTES] = "", early[GATE_BYTES] = "";
    CHECK_OK(gn_copy(early, "before", 7, blocking)); /* older than the gate: not held by it */
    CHECK_OK(gn_stream_synchronize(blocking));
    gate_hold();
    CHECK_STATUS(gn_stream_query(default_stream), GN_ERROR_NOT_READY);
    CHECK_OK(gn_stream_query(blocking)); /* nothing of its own is pending */
    CHECK_OK(gn_copy(seen, gate.target, sizeof seen, blocking));
    CHECK_STATUS(gn_stream_query(blocking), GN_ERROR_NOT_READY);
    CHECK_OK(gn_copy(early, "during", 7, other));
    CHECK_OK(gn_stream_synchronize(other)); /* not ordered with the default stream */
    CHECK_TEXT(early, "during");
    CHECK_STATUS(gn_stream_query(blocking), GN_ERROR_NOT_READY);
    CHECK(bytes_are(seen, 0, sizeof seen));
    gate_open();
    CHECK_OK(gn_stream_synchronize(blocking));
    CHECK(bytes_are(seen, GATE_BYTE, sizeof seen)); /* it read what the default stream wrote */
    gn_stream_release(blocking);
    gn_stream_release(other);
}

/* The default stream's second copy reads what the blocking stream writes after the gate. */
static void test_default_waits_for_blocking(void)
{
    gn_stream *blocking = stream_make(0);
    for (int round = 0; round < 50; round++) {
        char middle[GATE_BYTES] = "", last[GATE_BYTES] = "";
        gate_hold();
        CHECK_OK(gn_copy(middle, gate.target, sizeof middle, blocking));
        CHECK_OK(gn_copy(last, middle, sizeof last, default_stream));
        CHECK_OK(gn_fill(middle, 0, 1, sizeof middle, blocking)); /* newer: after the copy */
        CHECK(bytes_are(last, 0, sizeof last));
        gate_open();
        CHECK_OK(gn_stream_synchronize(default_stream));
        CHECK(bytes_are(last, GATE_BYTE, sizeof last));
        CHECK_OK(gn_stream_synchronize(blocking));
        CHECK(bytes_are(middle, 0, sizeof middle));
    }
    gn_stream_release(blocking);
}

/* On an idle device the default stream runs work at once, but not past a busy blocking stream. */
static void test_default_is_not_early(void)
{
    size_t nbytes = 16 * MIB;
    char *from = malloc(nbytes), *to = calloc(1, nbytes);
    gn_stream *blocking = stream_make(0);
    memset(from, 7, nbytes);
    for (int round = 0; round < 5; round++) {
        char last = 0;
        CHECK_OK(gn_fill(to, 0, 1, nbytes, blocking));
        CHECK_OK(gn_copy(to, from, nbytes, blocking));
        CHECK_OK(gn_copy(&last, to + nbytes - 1, 1, default_stream));
        CHECK_OK(gn_stream_synchronize(default_stream));
        CHECK(last == 7);
    }
    gn_stream_release(blocking);
    free(from);
    free(to);
}

/* Even an idle default stream must not run past a wait for an event that is not complete. */
static void test_default_waits_for_event(void)
{
    size_t nbytes = 32 * MIB;
    char *from = malloc(nbytes), *to = calloc(1, nbytes);
    gn_stream *other = stream_make(GN_STREAM_NON_BLOCKING);
    gn_event *event = event_make(0);
    memset(from, 7, nbytes);
    for (int round = 0; round < 5; round++) {
        char last = 0;
        CHECK_OK(gn_fill(to, 0, 1, nbytes, other));
        CHECK_OK(gn_copy(to, from, nbytes, other));
        CHECK_OK(gn_event_record(event, other));
        CHECK_OK(gn_stream_wait_event(default_stream, event));
        CHECK_OK(gn_copy(&last, to + nbytes - 1, 1, default_stream));
        CHECK_OK(gn_stream_synchronize(default_stream));
        CHECK(last == 7);
    }
    gn_event_destroy(event);
    gn_stream_release(other);
    free(from);
    free(to);
}

/* One round in which the other stream was still busy is proof, and all but certain. */
static void test_default_passes_non_blocking(void)
{
    size_t nbytes = 32 * MIB;
    char *from = calloc(1, nbytes), *to = calloc(1, nbytes);
    gn_stream *other = stream_make(GN_STREAM_NON_BLOCKING);
    bool has_passed = false;
    for (int round = 0; round < 20 && !has_passed; round++) {
        char byte = 0;
        for (int i = 0; i < 4; i++)
            CHECK_OK(gn_copy(to, from, nbytes, other));
        CHECK_OK(gn_fill(&byte, 1, 1, 1, default_stream));
        CHECK_OK(gn_stream_synchronize(default_stream));
        has_passed = byte == 1 && gn_stream_query(other) == GN_ERROR_NOT_READY;
        CHECK_OK(gn_stream_synchronize(other));
    }
    CHECK(has_passed);
    gn_stream_release(other);
    free(from);
    free(to);
}

static void test_device_synchronize(void)
{
    enum {
        STREAMS = 6
    };
    gn_stream *streams[STREAMS];
    static char bytes[STREAMS][4096];
    for (unsigned i = 0; i < STREAMS; i++)
        streams[i] = stream_make(i % 2);
    for (int round = 1; round < 50; round++) {
        for (int i = 0; i < STREAMS; i++)
            CHECK_OK(gn_fill(bytes[i], (uint32_t)round, 1, sizeof bytes[i], streams[i]));
        CHECK_OK(gn_device_synchronize(device));
        for (int i = 0; i < STREAMS; i++) {
            CHECK_OK(gn_stream_query(streams[i]));
            CHECK(bytes_are(bytes[i], round, sizeof bytes[i]));
        }
    }
    for (int i = 0; i < STREAMS; i++)
        gn_stream_release(streams[i]);
}

/* ---- events --------------------------------------------------------------------------------- */

static void test_event_never_recorded(void)
{
    gn_event *event = event_make(GN_EVENT_BLOCKING_SYNC);
    gn_stream *stream = stream_make(0);
    CHECK_OK(gn_event_query(event));
    CHECK_OK(gn_event_synchronize(event));
    CHECK_OK(gn_stream_wait_event(stream, event));
    CHECK_OK(gn_stream_query(stream));
    CHECK(gn_event_get_device(event) == device && gn_event_get_handle(event) == NULL);
    gn_event_destroy(event);
    gn_stream_release(stream);
}

/* A wait means the record that was the latest when it was submitted, not a later one. */
static void test_event_is_a_snapshot(void)
{
    gn_stream *idle = stream_make(GN_STREAM_NON_BLOCKING);
    gn_stream *first = stream_make(GN_STREAM_NON_BLOCKING);
    gn_stream *second = stream_make(GN_STREAM_NON_BLOCKING);
    char a = 0, b = 0;
    gate_hold();
    gn_event *event = gate_event();
    CHECK_STATUS(gn_event_query(event), GN_ERROR_NOT_READY);
    CHECK_OK(gn_stream_wait_event(first, event));
    CHECK_OK(gn_fill(&a, 1, 1, 1, first));
    CHECK_OK(gn_event_record(event, idle)); /* the mark moves to where nothing is pending */
    CHECK_OK(gn_event_synchronize(event));
    CHECK_OK(gn_event_query(event));
    CHECK_OK(gn_stream_wait_event(second, event));
    CHECK_OK(gn_fill(&b, 1, 1, 1, second));
    CHECK_OK(gn_stream_synchronize(second));
    CHECK(b == 1);
    CHECK_STATUS(gn_stream_query(first), GN_ERROR_NOT_READY);
    CHECK_OK(gn_event_record(event, first)); /* and to where something is */
    CHECK_STATUS(gn_event_query(event), GN_ERROR_NOT_READY);
    gate_open();
    CHECK_OK(gn_event_synchronize(event));
    CHECK(a == 1);
    CHECK_OK(gn_stream_query(first));
    gn_event_destroy(event);
    gn_stream_release(idle);
    gn_stream_release(first);
    gn_stream_release(second);
}

static void test_event_destroyed_while_pending(void)
{
    gn_stream *stream = stream_make(GN_STREAM_NON_BLOCKING);
    char a = 0;
    gate_hold();
    gn_event *event = gate_event();
    CHECK_OK(gn_stream_wait_event(stream, event));
    CHECK_OK(gn_fill(&a, 1, 1, 1, stream));
    gn_event *unfinished = event_make(0);
    CHECK_OK(gn_event_record(unfinished, stream));
    gn_event_destroy(unfinished); /* its mark is still in the queue */
    gn_event_destroy(event);      /* the wait keeps its meaning */
    CHECK_STATUS(gn_stream_query(stream), GN_ERROR_NOT_READY);
    CHECK(a == 0);
    gate_open();
    CHECK_OK(gn_stream_synchronize(stream));
    CHECK_OK(gn_device_synchronize(device));
    CHECK(a == 1);
    gn_stream_release(stream);
    CHECK(live_count_settles());
}

static void *event_synchronize_thread(void *event)
{
    CHECK_OK(gn_event_synchronize(event));
    return NULL;
}

/* Threads that wait for a record are let go when it completes, though the mark moved meanwhile. */
static void test_event_synchronize_in_threads(void)
{
    enum {
        THREADS = 4
    };
    pthread_t threads[THREADS];
    gate_hold();
    gn_event *event = gate_event();
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, event_synchronize_thread, event) == 0);
        CHECK_OK(gn_event_record(event, default_stream));
    }
    gate_open();
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    gn_event_destroy(event);
}

static void test_event_elapsed(void)
{
    gn_event *start = event_make(GN_EVENT_TIMING), *end = event_make(GN_EVENT_TIMING);
    gn_event *untimed = event_make(0);
    gn_stream *stream = stream_make(0);
    float milliseconds = -1;
    CHECK_STATUS(gn_event_elapsed(start, end, &milliseconds), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("never recorded");
    CHECK_OK(gn_event_record(start, stream));
    CHECK_OK(gn_event_synchronize(start));
    CHECK_STATUS(gn_event_elapsed(start, end, &milliseconds), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_event_elapsed(end, start, &milliseconds), GN_ERROR_INVALID_VALUE);
    CHECK_OK(gn_event_record(untimed, stream));
    CHECK_OK(gn_event_synchronize(untimed));
    CHECK_STATUS(gn_event_elapsed(start, untimed, &milliseconds), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("GN_EVENT_TIMING");
    CHECK_STATUS(gn_event_elapsed(untimed, start, &milliseconds), GN_ERROR_INVALID_VALUE);
    gate_hold();
    CHECK_OK(gn_event_record(end, stream)); /* held, as the stream is blocking */
    CHECK_STATUS(gn_event_elapsed(start, end, &milliseconds), GN_ERROR_NOT_READY);
    CHECK_STATUS(gn_event_elapsed(end, start, &milliseconds), GN_ERROR_NOT_READY);
    CHECK(milliseconds == -1);
    gate_open();
    CHECK_OK(gn_event_synchronize(end));
    CHECK_OK(gn_event_elapsed(start, end, &milliseconds));
    CHECK(milliseconds >= 0 && milliseconds < 1e6f);
    CHECK_OK(gn_event_elapsed(start, start, &milliseconds));
    CHECK(milliseconds == 0);
    CHECK_OK(gn_event_elapsed(end, start, &milliseconds));
    CHECK(milliseconds <= 0);
    gn_event_destroy(start);
    gn_event_destroy(end);
    gn_event_destroy(untimed);
    gn_stream_release(stream);
}

/* ---- lives of streams ----------------------------------------------------------------------- */

static void test_stream_destroyed_while_pending(void)
{
    enum {
        STREAMS = 8
    };
    static char bytes[STREAMS][1000];
    memset(bytes, 0, sizeof bytes);
    gate_hold();
    gn_event *event = gate_event();
    for (unsigned i = 0; i < STREAMS; i++) {
        gn_stream *stream = stream_make(i % 2);
        CHECK_OK(gn_stream_wait_event(stream, event));
        CHECK_OK(gn_fill(bytes[i], i + 1, 1, sizeof bytes[i], stream));
        gn_stream_release(stream);
    }
    gn_event_destroy(event);
    CHECK(bytes_are(bytes, 0, sizeof bytes));
    gate_open();
    CHECK_OK(gn_device_synchronize(device));
    for (int i = 0; i < STREAMS; i++)
        CHECK(bytes_are(bytes[i], i + 1, sizeof bytes[i]));
    CHECK(live_count_settles());
}

static int id_compare(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
    return first < second ? -1 : first > second;
}

static void test_ids_are_unique(void)
{
    enum {
        COUNT = 10000
    };
    static uint64_t ids[COUNT + 1];
    CHECK_OK(gn_stream_get_id(default_stream, &ids[COUNT]));
    for (unsigned i = 0; i < COUNT; i++) {
        gn_stream *stream = stream_make(i % 2);
        CHECK_OK(gn_stream_get_id(stream, &ids[i]));
        gn_stream_release(stream);
    }
    qsort(ids, COUNT + 1, sizeof *ids, id_compare);
    for (int i = 0; i < COUNT; i++)
        CHECK(ids[i] != ids[i + 1]);
    CHECK(live_count_settles());
}

static void test_stream_references(void)
{
    gn_stream *stream = stream_make(0), *same = NULL;
    bool is_capturing = true;
    uint64_t id = 0;
    CHECK(gn_stream_retain(stream) == stream);
    gn_stream_release(stream);
    CHECK_OK(gn_stream_get_id(stream, &id)); /* one owner is left */
    CHECK(gn_stream_get_device(stream) == device && gn_stream_get_handle(stream) == NULL);
    CHECK_OK(gn_stream_is_capturing(stream, &is_capturing));
    CHECK(!is_capturing);
    gn_stream_release(stream);
    for (uintptr_t handle = 0; handle < 2; handle++) { /* both names of the default stream */
        CHECK_OK(gn_stream_from_handle(device, (void *)handle, &same));
        CHECK(same == default_stream);
        gn_stream_release(same);
    }
    CHECK_STATUS(gn_stream_from_handle(device, (void *)2, &same), GN_ERROR_UNSUPPORTED);
    CHECK_STATUS(gn_stream_from_handle(device, &id, &same), GN_ERROR_UNSUPPORTED);
    CHECK(live_count_settles());
}

static void test_priorities(void)
{
    const int priorities[] = {0, -1, 1, INT32_MIN, INT32_MAX};
    for (int i = 0; i < 5; i++) {
        gn_stream *stream = NULL;
        CHECK_OK(gn_stream_create(device, 0, priorities[i], &stream));
        CHECK(gn_stream_get_priority(stream) == 0); /* the CPU's range is 0 to 0 */
        gn_stream_release(stream);
    }
}

/* ---- the current stream --------------------------------------------------------------------- */

static void *current_thread(void *argument)
{
    gn_stream *current = NULL, *own = stream_make(0);
    (void)argument;
    CHECK_OK(gn_stream_get_current(device, &current));
    CHECK(current == default_stream); /* whatever other threads have set */
    CHECK_OK(gn_stream_set_current(own));
    gn_stream_release(own); /* the thread keeps it alive from here on */
    for (int round = 0; round < 100; round++) {
        CHECK_OK(gn_stream_get_current(device, &current));
        CHECK(current == own);
        uint32_t cell = 0;
        CHECK_OK(gn_fill(&cell, 9, 4, 1, current));
        CHECK_OK(gn_stream_synchronize(current));
        CHECK(cell == 9);
    }
    CHECK_OK(gn_stream_set_current(own)); /* again the same one: it must survive that */
    CHECK_OK(gn_stream_get_current(device, &current));
    CHECK(current == own);
    return NULL; /* the end of the thread lets it go */
}

static void test_current_stream(void)
{
    enum {
        THREADS = 4
    };
    gn_stream *current = NULL, *own = stream_make(0);
    pthread_t threads[THREADS];
    CHECK_OK(gn_stream_set_current(own));
    int objects = atomic_load(&device->object_count);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, current_thread, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(atomic_load(&device->object_count) == objects);
    CHECK_OK(gn_stream_get_current(device, &current));
    CHECK(current == own);
    CHECK_OK(gn_stream_set_current(default_stream));
    CHECK_OK(gn_stream_get_current(device, &current));
    CHECK(current == default_stream);
    gn_stream_release(own);
    CHECK(atomic_load(&device->object_count) == objects - 1);
    CHECK(live_count_settles());
}

int main(void)
{
    gate_init();
    device_start();
    RUN(test_stream_order);
    RUN(test_events_order_streams);
    RUN(test_streams_are_concurrent);
    RUN(test_blocking_waits_for_default);
    RUN(test_default_waits_for_blocking);
    RUN(test_default_is_not_early);
    RUN(test_default_waits_for_event);
    RUN(test_default_passes_non_blocking);
    RUN(test_device_synchronize);
    RUN(test_event_never_recorded);
    RUN(test_event_is_a_snapshot);
    RUN(test_event_destroyed_while_pending);
    RUN(test_event_synchronize_in_threads);
    RUN(test_event_elapsed);
    RUN(test_stream_destroyed_while_pending);
    RUN(test_ids_are_unique);
    RUN(test_stream_references);
    RUN(test_priorities);
    RUN(test_current_stream);
    CHECK(live_count_settles());
    return check_result();
}
