/*
 * test_cpu.c: the CPU device: properties, bytes, streams, events, current streams, fork().
 *
 * Nothing here depends on time. Where work has to be pending while a test looks at it, a gate holds
 * it:
 *
 *   the gate is a page that cannot be read. A thread of the test copies from it on the idle default
 *   stream, where the copy runs in the thread that submits it, and stops in the fault handler until
 *   the gate is opened. So the default stream is held, with it every blocking stream, and any other
 *   stream that waits for an event of the default stream.
 */
#include "books.h"
#include "child.h"

#include "base/host.h"
#include "device/device.h"
#include "genesis/genesis.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static gn_device *device;
static gn_stream *default_stream;
static gn_memory_manager *cpu_manager;
static size_t idle_live_count; /* of host blocks, while no block, stream and event is alive */

/* ---- helpers -------------------------------------------------------------------------------- */

static gn_stream *stream_make(unsigned flags)
{
    gn_stream *stream = NULL;
    CHECK_OK(gn_stream_create(device, flags, 0, &stream));
    return stream;
}

static gn_event *event_make(unsigned flags)
{
    gn_event *event = NULL;
    CHECK_OK(gn_event_create(device, flags, &event));
    return event;
}

static bool bytes_are(const void *bytes, int value, size_t count)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++) {
        if (at[i] != (unsigned char)value)
            return false;
    }
    return true;
}

/* Nothing is left, once the memory manager gives up what it keeps. */
static bool live_count_settles(void)
{
    CHECK_OK(gni_manager_clear(cpu_manager));
    return books_settle(cpu_manager, idle_live_count);
}

/* ---- the gate ------------------------------------------------------------------------------- */

enum {
    GATE_BYTE = 0x5a, /* what lies behind it */
    GATE_BYTES = 64,
};

static struct {
    char *page;
    size_t page_size;
    int arrived[2]; /* a pipe: the copy is at the gate */
    int opened[2];  /* a pipe: it may go on */
    pthread_t thread;
    gn_status status;
    char target[GATE_BYTES]; /* where the copy goes */
} gate;

static void gate_fault(int number, siginfo_t *information, void *unused)
{
    (void)unused;
    char *address = information->si_addr;
    char byte = 0;
    if (address < gate.page || address >= gate.page + gate.page_size) {
        (void)signal(number, SIG_DFL); /* a real fault: it comes again and ends the program */
        return;
    }
    if (write(gate.arrived[1], &byte, 1) != 1 || read(gate.opened[0], &byte, 1) != 1)
        abort();
}

static void gate_init(void)
{
    struct sigaction action = {.sa_sigaction = gate_fault, .sa_flags = SA_SIGINFO};
    gate.page_size = (size_t)sysconf(_SC_PAGESIZE);
    gate.page =
        mmap(NULL, gate.page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(gate.page != MAP_FAILED && pipe(gate.arrived) == 0 && pipe(gate.opened) == 0);
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    memset(gate.page, GATE_BYTE, gate.page_size);
}

static void *gate_thread(void *unused)
{
    (void)unused;
    gate.status = gn_copy(gate.target, gate.page, GATE_BYTES, default_stream);
    return NULL;
}

/* Holds the default stream. The device must be idle. */
static void gate_hold(void)
{
    char byte;
    CHECK_OK(gn_device_synchronize(device));
    memset(gate.target, 0, sizeof gate.target);
    CHECK(mprotect(gate.page, gate.page_size, PROT_NONE) == 0);
    CHECK(pthread_create(&gate.thread, NULL, gate_thread, NULL) == 0);
    CHECK(read(gate.arrived[0], &byte, 1) == 1);
}

static void gate_open(void)
{
    char byte = 0;
    CHECK(mprotect(gate.page, gate.page_size, PROT_READ | PROT_WRITE) == 0);
    CHECK(write(gate.opened[1], &byte, 1) == 1);
    CHECK(pthread_join(gate.thread, NULL) == 0);
    CHECK_OK(gate.status);
}

/* An event that is complete when the gate is open. Recorded while the gate is held. */
static gn_event *gate_event(void)
{
    gn_event *event = event_make(0);
    CHECK_OK(gn_event_record(event, default_stream));
    return event;
}

/* ---- the device ----------------------------------------------------------------------------- */

static void test_device(void)
{
    int count = 0;
    gn_device *again = NULL;
    CHECK_OK(gn_device_count(GN_DEVICE_CPU, &count));
    CHECK(count == 1);
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &again));
    CHECK(again == device);
    CHECK(gn_device_get_type(device) == GN_DEVICE_CPU && gn_device_get_index(device) == 0);
    CHECK(gn_device_get_current(GN_DEVICE_CPU) == 0);
    CHECK_OK(gn_device_set_current(GN_DEVICE_CPU, 0));
    CHECK_STATUS(gn_device_set_current(GN_DEVICE_CPU, 1), GN_ERROR_INVALID_DEVICE);
    CHECK_TEXT(gni_device_label(device).text, "cpu");
}

static void test_properties(void)
{
    gn_device_properties properties;
    memset(&properties, 0xff, sizeof properties);
    CHECK_OK(gn_device_get_properties(device, &properties));
    CHECK(properties.name[0] != '\0' && memchr(properties.name, '\0', sizeof properties.name));
    CHECK(strchr(properties.name, '\n') == NULL);
    CHECK_TEXT(properties.uuid, "");
    CHECK_TEXT(properties.pci_bus_id, "");
    CHECK_U64(properties.total_memory,
              (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
    CHECK(properties.major == 0 && properties.minor == 0);
    CHECK(properties.multi_processor_count >= 1);
    CHECK(properties.warp_size == 1 && properties.max_threads_per_block >= 1);
    CHECK(properties.is_integrated);
    CHECK(!properties.has_virtual_memory && !properties.has_stream_ordered_memory);
}

static void test_memory_info(void)
{
    size_t free_bytes = 0, total_bytes = 0;
    CHECK_OK(gn_device_get_memory_info(device, &free_bytes, &total_bytes));
    CHECK(free_bytes > 0 && free_bytes <= total_bytes);
}

/* ---- bytes ---------------------------------------------------------------------------------- */

static const size_t byte_counts[] = {1, 2, 3, 7, 64, 255, 4095, 4096, 4097, 100001};
#define BYTE_COUNT_COUNT (sizeof byte_counts / sizeof *byte_counts)
#define BYTES_MAX (128 * KIB)

static unsigned char bytes_a[BYTES_MAX], bytes_b[BYTES_MAX], bytes_model[BYTES_MAX];

static void bytes_randomize(unsigned char *bytes, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)check_random(&seed);
}

static void copies_check(gn_stream *stream)
{
    for (size_t i = 0; i < BYTE_COUNT_COUNT; i++) {
        size_t count = byte_counts[i];
        bytes_randomize(bytes_a, BYTES_MAX, i);
        memset(bytes_b, 0xee, BYTES_MAX);
        CHECK_OK(gn_copy(bytes_b + 1, bytes_a + i, count, stream));
        CHECK_OK(gn_stream_synchronize(stream));
        CHECK(memcmp(bytes_b + 1, bytes_a + i, count) == 0);
        CHECK(bytes_b[0] == 0xee && bytes_b[count + 1] == 0xee);
    }
}

static void overlapping_copies_check(gn_stream *stream)
{
    for (size_t shift = 1; shift < 5000; shift = shift * 3 + 1) {
        size_t count = BYTES_MAX - shift;
        bytes_randomize(bytes_a, BYTES_MAX, shift);
        memcpy(bytes_model, bytes_a, BYTES_MAX);
        memmove(bytes_model + shift, bytes_model, count);
        CHECK_OK(gn_copy(bytes_a + shift, bytes_a, count, stream));
        CHECK_OK(gn_stream_synchronize(stream));
        CHECK(memcmp(bytes_a, bytes_model, BYTES_MAX) == 0);
        memmove(bytes_model, bytes_model + shift, count);
        CHECK_OK(gn_copy(bytes_a, bytes_a + shift, count, stream));
        CHECK_OK(gn_stream_synchronize(stream));
        CHECK(memcmp(bytes_a, bytes_model, BYTES_MAX) == 0);
    }
    CHECK_OK(gn_copy(bytes_a, bytes_a, BYTES_MAX, stream)); /* onto itself */
    CHECK_OK(gn_stream_synchronize(stream));
    CHECK(memcmp(bytes_a, bytes_model, BYTES_MAX) == 0);
}

static void fills_check(gn_stream *stream)
{
    const uint32_t value = 0x89abcdefu;
    for (size_t element_size = 1; element_size <= 4; element_size *= 2) {
        for (size_t i = 0; i < BYTE_COUNT_COUNT; i++) {
            size_t count = byte_counts[i] / element_size + 1, nbytes = count * element_size;
            memset(bytes_b, 0xee, BYTES_MAX);
            CHECK_OK(gn_fill(bytes_b + 4, value, element_size, count, stream));
            CHECK_OK(gn_stream_synchronize(stream));
            bool is_filled = true;
            for (size_t at = 0; at < nbytes; at += element_size)
                is_filled = is_filled && memcmp(bytes_b + 4 + at, &value, element_size) == 0;
            CHECK(is_filled && bytes_are(bytes_b, 0xee, 4));
            CHECK(bytes_are(bytes_b + 4 + nbytes, 0xee, BYTES_MAX - 4 - nbytes));
        }
    }
}

static void test_bytes(void)
{
    gn_stream *streams[] = {default_stream, stream_make(0), stream_make(GN_STREAM_NON_BLOCKING)};
    for (int i = 0; i < 3; i++) {
        copies_check(streams[i]);
        overlapping_copies_check(streams[i]);
        fills_check(streams[i]);
    }
    gn_stream_release(streams[1]);
    gn_stream_release(streams[2]);
}

static void test_no_bytes(void)
{
    CHECK_OK(gn_copy(NULL, NULL, 0, default_stream));
    CHECK_OK(gn_fill(NULL, 1, 4, 0, default_stream));
    CHECK_OK(gn_fill(bytes_a + 1, 1, 4, 0, default_stream)); /* no element lies there */
    CHECK_OK(gn_stream_query(default_stream));
}

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

/* ---- misuse --------------------------------------------------------------------------------- */

/* A device of another kind, which is never called: the checks come first. */
static void test_two_devices(void)
{
    static const struct gni_device_ops other_ops;
    gn_device other = {.ops = &other_ops, .type = GN_DEVICE_CUDA, .index = 3};
    gn_event other_event = {.device = &other, .flags = GN_EVENT_TIMING};
    gn_stream other_stream;
    gni_stream_init(&other_stream, &other, GNI_STREAM_OWNED);
    gn_stream *stream = stream_make(0);
    gn_event *event = event_make(GN_EVENT_TIMING);
    float milliseconds = 0;
    CHECK_STATUS(gn_event_record(&other_event, stream), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("cuda:3");
    CHECK_STATUS(gn_event_record(event, &other_stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_wait_event(stream, &other_event), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_wait_event(&other_stream, event), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_event_elapsed(event, &other_event, &milliseconds), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("two devices");
    gn_memory_manager *manager = NULL;
    void *pointer = NULL;
    CHECK_OK(gn_memory_manager_get(device, &manager));
    CHECK_STATUS(gn_memory_alloc(manager, 1, &other_stream, &pointer), GN_ERROR_INVALID_VALUE);
    CHECK(pointer == NULL);
    gn_event_destroy(event);
    gn_stream_release(stream);
}

static void test_bad_device_arguments(void)
{
    int count = 4711;
    gn_device *got = NULL;
    size_t nbytes = 0;
    gn_device_properties properties;
    CHECK_STATUS(gn_device_count(GN_DEVICE_CPU, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_device_count((gn_device_type)7, &count), GN_ERROR_INVALID_DEVICE);
    CHECK_STATUS(gn_device_count((gn_device_type)-1, &count), GN_ERROR_INVALID_DEVICE);
    CHECK(count == 4711);
    CHECK_STATUS(gn_device_get(GN_DEVICE_CPU, 0, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_device_get(GN_DEVICE_CPU, 1, &got), GN_ERROR_INVALID_DEVICE);
    CHECK_DETAIL("cpu:1");
    CHECK_STATUS(gn_device_get(GN_DEVICE_CPU, -1, &got), GN_ERROR_INVALID_DEVICE);
    CHECK_STATUS(gn_device_get(GN_DEVICE_CPU, INT32_MAX, &got), GN_ERROR_INVALID_DEVICE);
    CHECK_STATUS(gn_device_get(GN_DEVICE_CPU, INT32_MIN, &got), GN_ERROR_INVALID_DEVICE);
    CHECK_STATUS(gn_device_get((gn_device_type)2, 0, &got), GN_ERROR_INVALID_DEVICE);
    CHECK(got == NULL);
    CHECK(gn_device_get_current((gn_device_type)99) == 0);
    CHECK(gn_device_get_current((gn_device_type)-1) == 0);
    CHECK_STATUS(gn_device_set_current((gn_device_type)99, 0), GN_ERROR_INVALID_DEVICE);
    CHECK_STATUS(gn_device_set_current(GN_DEVICE_CPU, -1), GN_ERROR_INVALID_DEVICE);
    CHECK_STATUS(gn_device_get_properties(NULL, &properties), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_device_get_properties(device, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_device_get_memory_info(NULL, &nbytes, &nbytes), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_device_get_memory_info(device, NULL, &nbytes), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_device_get_memory_info(device, &nbytes, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_device_synchronize(NULL), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("gn_device_synchronize");
}

static void test_bad_stream_arguments(void)
{
    gn_stream *stream = NULL;
    gn_event *event = event_make(0);
    uint64_t id = 0;
    bool is_capturing;
    CHECK_STATUS(gn_stream_create(NULL, 0, 0, &stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_create(device, 0, 0, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_create(device, 2, 0, &stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_create(device, UINT32_MAX, 0, &stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_from_handle(NULL, NULL, &stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_from_handle(device, NULL, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_get_default(NULL, &stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_get_default(device, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_get_current(NULL, &stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_get_current(device, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_set_current(NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_get_id(NULL, &id), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_get_id(default_stream, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_query(NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_synchronize(NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_wait_event(NULL, event), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_wait_event(default_stream, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_is_capturing(NULL, &is_capturing), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_stream_is_capturing(default_stream, NULL), GN_ERROR_INVALID_VALUE);
    CHECK(stream == NULL);
    gn_stream_release(NULL);
    gn_event_destroy(event);
}

static void test_bad_event_arguments(void)
{
    gn_event *event = NULL;
    gn_event *good = event_make(GN_EVENT_TIMING);
    float milliseconds = 0;
    CHECK_STATUS(gn_event_create(NULL, 0, &event), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_event_create(device, 0, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_event_create(device, 4, &event), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_event_create(device, UINT32_MAX, &event), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_event_record(NULL, default_stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_event_record(good, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_event_query(NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_event_synchronize(NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_event_elapsed(NULL, good, &milliseconds), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_event_elapsed(good, NULL, &milliseconds), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_event_elapsed(good, good, NULL), GN_ERROR_INVALID_VALUE);
    CHECK(event == NULL);
    gn_event_destroy(NULL);
    gn_event_destroy(good);
}

static void test_bad_byte_arguments(void)
{
    char bytes[16] = "untouched";
    gn_stream *stream = default_stream;
    CHECK_STATUS(gn_copy(bytes, bytes, 1, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_copy(NULL, bytes, 1, stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_copy(bytes, NULL, 1, stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_copy(bytes, bytes, SIZE_MAX, stream), GN_ERROR_OVERFLOW);
    CHECK_STATUS(gn_copy(bytes, bytes, (size_t)PTRDIFF_MAX + 1, stream), GN_ERROR_OVERFLOW);
    CHECK_STATUS(gn_fill(bytes, 0, 1, 1, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_fill(NULL, 0, 1, 1, stream), GN_ERROR_INVALID_VALUE);
    const size_t element_sizes[] = {0, 3, 5, 8, SIZE_MAX};
    for (int i = 0; i < 5; i++)
        CHECK_STATUS(gn_fill(bytes, 0, element_sizes[i], 1, stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_fill(bytes, 0, 4, SIZE_MAX / 4 + 1, stream), GN_ERROR_OVERFLOW);
    CHECK_STATUS(gn_fill(bytes, 0, 2, SIZE_MAX / 2, stream), GN_ERROR_OVERFLOW);
    CHECK_STATUS(gn_fill(bytes, 0, 1, SIZE_MAX, stream), GN_ERROR_OVERFLOW);
    uintptr_t aligned = ((uintptr_t)bytes + 3) & ~(uintptr_t)3;
    CHECK_STATUS(gn_fill((void *)(aligned + 1), 0, 2, 1, stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_fill((void *)(aligned + 2), 0, 4, 1, stream), GN_ERROR_INVALID_VALUE);
    CHECK_OK(gn_stream_synchronize(stream));
    CHECK_TEXT(bytes, "untouched");
}

static void test_bad_library_arguments(void)
{
    static char long_path[5000];
    memset(long_path, 'a', sizeof long_path - 1);
    long_path[0] = '/';
    gn_library_description description;
    CHECK(!gn_library_describe(-1, &description));
    CHECK(!gn_library_describe(INT32_MAX, &description));
    CHECK(!gn_library_describe(0, NULL));
    CHECK_STATUS(gn_library_add_directory(NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_library_add_directory(""), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_library_add_directory("relative"), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_library_add_directory(long_path), GN_ERROR_INVALID_VALUE);
}

/* ---- host memory ---------------------------------------------------------------------------- */

static void test_host_memory(void)
{
    const size_t sizes[] = {0, 1, 4095, 4096, 4097, 10 * MIB};
    char stack[16];
    void *pointers[6] = {NULL}, *none = NULL;
    for (int i = 0; i < 6; i++) {
        CHECK_OK(gn_host_alloc(device, sizes[i], &pointers[i]));
        memset(pointers[i], i, sizes[i]);
        for (int j = 0; j < i; j++)
            CHECK(pointers[i] != pointers[j]);
    }
    for (int i = 0; i < 6; i++) {
        CHECK(bytes_are(pointers[i], i, sizes[i]));
        CHECK_OK(gn_host_free(device, pointers[i]));
    }
    CHECK_STATUS(gn_host_free(device, pointers[0]), GN_ERROR_INVALID_POINTER);
    CHECK_STATUS(gn_host_free(device, stack), GN_ERROR_INVALID_POINTER);
    CHECK_OK(gn_host_free(device, NULL));
    CHECK_STATUS(gn_host_free(NULL, stack), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_host_alloc(NULL, 1, &none), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_host_alloc(device, 1, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_host_alloc(device, SIZE_MAX, &none), GN_ERROR_OVERFLOW);
    CHECK_STATUS(gn_host_alloc(device, PTRDIFF_MAX, &none), GN_ERROR_OUT_OF_MEMORY);
    CHECK_STATUS(gn_host_alloc(device, (size_t)1 << 47, &none), GN_ERROR_OUT_OF_MEMORY);
    CHECK(none == NULL);
    CHECK_OK(gn_host_register(device, stack, sizeof stack));
    CHECK_OK(gn_host_unregister(device, stack));
    CHECK_STATUS(gn_host_register(NULL, stack, 1), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_host_register(device, NULL, 1), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_host_register(device, stack, 0), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_host_register(device, stack, SIZE_MAX), GN_ERROR_OVERFLOW);
    CHECK_STATUS(gn_host_unregister(NULL, stack), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_host_unregister(device, NULL), GN_ERROR_INVALID_VALUE);
}

/* ---- failing host memory -------------------------------------------------------------------- */

/* Everything that allocates, once; whatever was made is gone again, however far it came. */
static gn_status fault_task(void)
{
    static char bytes[64];
    gn_stream *stream = NULL;
    gn_event *event = NULL;
    void *pinned = NULL;
    gn_status status = gn_stream_create(device, 0, 0, &stream);
    if (status == GN_OK)
        status = gn_event_create(device, 0, &event);
    if (status == GN_OK)
        status = gn_fill(bytes, 1, 1, sizeof bytes, stream);
    if (status == GN_OK)
        status = gn_copy(bytes, bytes + 1, 8, stream);
    if (status == GN_OK)
        status = gn_event_record(event, stream);
    if (status == GN_OK)
        status = gn_stream_wait_event(stream, event);
    if (status == GN_OK)
        status = gn_event_record(event, default_stream);
    if (status == GN_OK)
        status = gn_host_alloc(device, 100, &pinned);
    if (status == GN_OK)
        status = gn_host_free(device, pinned);
    gn_event_destroy(event);
    gn_stream_release(stream);
    return status;
}

static void test_host_memory_fails(void)
{
    int objects = atomic_load(&device->object_count);
    gn_status status = GN_ERROR_OUT_OF_HOST_MEMORY;
    for (long nth = 1; status != GN_OK; nth++) {
        gni_host_fail_after(nth);
        status = fault_task();
        gni_host_fail_after(-1);
        CHECK(status == GN_OK || status == GN_ERROR_OUT_OF_HOST_MEMORY);
        CHECK(atomic_load(&device->object_count) == objects);
        if (status != GN_OK)
            CHECK_DETAIL("no host memory");
        CHECK(nth < 100);
        CHECK_OK(gn_device_synchronize(device));
        CHECK(live_count_settles());
    }
}

/* With the default stream held, waits are really queued, and marks of its own as well. */
static void test_host_memory_fails_when_held(void)
{
    gn_stream *stream = stream_make(GN_STREAM_NON_BLOCKING);
    gn_event *moved = event_make(0);
    char byte = 0;
    gate_hold();
    gn_event *event = gate_event();
    gni_host_fail_after(1);
    CHECK_STATUS(gn_stream_wait_event(stream, event), GN_ERROR_OUT_OF_HOST_MEMORY);
    gni_host_fail_after(1);
    CHECK_STATUS(gn_copy(&byte, gate.target, 1, default_stream), GN_ERROR_OUT_OF_HOST_MEMORY);
    for (long nth = 1; nth <= 2; nth++) { /* the record, and its item */
        gni_host_fail_after(nth);
        CHECK_STATUS(gn_event_record(event, default_stream), GN_ERROR_OUT_OF_HOST_MEMORY);
        gni_host_fail_after(nth);
        CHECK_STATUS(gn_event_record(moved, default_stream), GN_ERROR_OUT_OF_HOST_MEMORY);
    }
    gni_host_fail_after(-1);
    CHECK_STATUS(gn_event_query(event), GN_ERROR_NOT_READY); /* still the first record */
    CHECK_OK(gn_event_query(moved));                         /* still none */
    CHECK_OK(gn_stream_query(stream));                       /* nothing was queued */
    gate_open();
    CHECK_OK(gn_event_synchronize(event));
    CHECK_OK(gn_device_synchronize(device));
    CHECK(byte == 0);
    gn_event_destroy(event);
    gn_event_destroy(moved);
    gn_stream_release(stream);
}

static void open_check(void *unused)
{
    (void)unused;
    gn_device *opened = NULL;
    gni_host_fail_after(1);
    gn_status status = gn_device_get(GN_DEVICE_CPU, 0, &opened);
    gni_host_fail_after(-1);
    CHECK(status == GN_OK || status == GN_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &opened)); /* no failure is for ever */
}

/* Runs before the device is opened here. */
static void test_host_memory_fails_at_the_start(void)
{
    static struct child_result result;
    child_run(open_check, NULL, &result);
    CHECK(child_is_ok(&result));
}

/* ---- fork ----------------------------------------------------------------------------------- */

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

#endif

/* Opens the device, and makes what lives for ever from its first use on, to count it. */
static void device_start(void)
{
    void *pointer = NULL;
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &device));
    CHECK_OK(gn_stream_get_default(device, &default_stream));
    CHECK_OK(gn_memory_manager_get(device, &cpu_manager));
    CHECK_OK(gn_memory_alloc(cpu_manager, 1, NULL, &pointer));
    CHECK_OK(gn_memory_free(cpu_manager, pointer));
    CHECK_OK(gni_manager_clear(cpu_manager));
    CHECK_OK(gn_host_alloc(device, 1, &pointer));
    CHECK_OK(gn_host_free(device, pointer));
    idle_live_count = books_count(cpu_manager);
}

int main(void)
{
    gate_init();
    RUN(test_host_memory_fails_at_the_start);
    device_start();
    RUN(test_device);
    RUN(test_properties);
    RUN(test_memory_info);
    RUN(test_bytes);
    RUN(test_no_bytes);
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
    RUN(test_two_devices);
    RUN(test_bad_device_arguments);
    RUN(test_bad_stream_arguments);
    RUN(test_bad_event_arguments);
    RUN(test_bad_byte_arguments);
    RUN(test_bad_library_arguments);
    RUN(test_host_memory);
    RUN(test_host_memory_fails);
    RUN(test_host_memory_fails_when_held);
#ifndef CHILD_IS_ALONE
    RUN(test_fork_with_pending_work);
    RUN(test_fork_with_a_destroyed_stream);
    RUN(test_fork_while_threads_submit);
#endif
    CHECK(live_count_settles());
    return check_result();
}
