/*
 * cpu_suite.h: what the tests of the CPU device share; each program includes it once.
 *
 * Nothing in them depends on time. Where work has to be pending while a test looks at it, a gate holds
 * it:
 *
 *   the gate is a page that cannot be read. A thread of the test copies from it on the idle default
 *   stream, where the copy runs in the thread that submits it, and stops in the fault handler until
 *   the gate is opened. So the default stream is held, with it every blocking stream, and any other
 *   stream that waits for an event of the default stream.
 */
#ifndef GNI_TESTS_CPU_SUITE_H
#define GNI_TESTS_CPU_SUITE_H

#include "books.h"
#include "child.h"

#include "device/device.h"
#include "genesis/genesis.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static gn_device *device;
static gn_stream *default_stream;
static gn_memory_manager *cpu_manager;
static size_t idle_live_count; /* of host blocks, while no block, stream and event is alive */

/* ---- helpers -------------------------------------------------------------------------------- */

static inline gn_stream *stream_make(unsigned flags)
{
    gn_stream *stream = NULL;
    CHECK_OK(gn_stream_create(device, flags, 0, &stream));
    return stream;
}

static inline gn_event *event_make(unsigned flags)
{
    gn_event *event = NULL;
    CHECK_OK(gn_event_create(device, flags, &event));
    return event;
}

static inline bool bytes_are(const void *bytes, int value, size_t count)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++) {
        if (at[i] != (unsigned char)value)
            return false;
    }
    return true;
}

/* Nothing is left, once the memory manager gives up what it keeps. */
static inline bool live_count_settles(void)
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

static inline void gate_fault(int number, siginfo_t *information, void *unused)
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

static inline void gate_init(void)
{
    struct sigaction action = {.sa_sigaction = gate_fault, .sa_flags = SA_SIGINFO};
    gate.page_size = (size_t)sysconf(_SC_PAGESIZE);
    gate.page =
        mmap(NULL, gate.page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(gate.page != MAP_FAILED && pipe(gate.arrived) == 0 && pipe(gate.opened) == 0);
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    memset(gate.page, GATE_BYTE, gate.page_size);
}

static inline void *gate_thread(void *unused)
{
    (void)unused;
    gate.status = gn_copy(gate.target, gate.page, GATE_BYTES, default_stream);
    return NULL;
}

/* Holds the default stream. The device must be idle. */
static inline void gate_hold(void)
{
    char byte;
    CHECK_OK(gn_device_synchronize(device));
    memset(gate.target, 0, sizeof gate.target);
    CHECK(mprotect(gate.page, gate.page_size, PROT_NONE) == 0);
    CHECK(pthread_create(&gate.thread, NULL, gate_thread, NULL) == 0);
    CHECK(read(gate.arrived[0], &byte, 1) == 1);
}

static inline void gate_open(void)
{
    char byte = 0;
    CHECK(mprotect(gate.page, gate.page_size, PROT_READ | PROT_WRITE) == 0);
    CHECK(write(gate.opened[1], &byte, 1) == 1);
    CHECK(pthread_join(gate.thread, NULL) == 0);
    CHECK_OK(gate.status);
}

/* An event that is complete when the gate is open. Recorded while the gate is held. */
static inline gn_event *gate_event(void)
{
    gn_event *event = event_make(0);
    CHECK_OK(gn_event_record(event, default_stream));
    return event;
}

/* ---- beginning ------------------------------------------------------------------------------ */

/* Opens the device, and makes what lives for ever from its first use on, to count it. */
static inline void device_start(void)
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

#endif
