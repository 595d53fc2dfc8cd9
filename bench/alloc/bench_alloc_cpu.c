/*
 * bench_alloc_cpu.c: Genesis's memory manager of the CPU beside malloc, mimalloc and jemalloc, with
 * blocks of the sizes that tensors have.
 *
 * Every peer is called through function pointers and runs the same steps (scenarios.h) in turns,
 * `ROUNDS` times; the tables have the medians and the medians of the ratios within a round. "touched"
 * writes one byte into each page of each block: memory that was touched once should be used again
 * rather than be faulted in again, so the second table counts the page faults.
 *
 * mimalloc and jemalloc are loaded beside malloc, which stays the program's own; a library that is
 * not there is left out with a line on standard error.
 *
 *     bench_alloc_cpu [milliseconds]      of each peer in each round; the standard is 8
 */
#include "genesis/genesis.h"

#include "scenarios.h"
#include "timing.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    ROUNDS = 11,
    PAGE = 4096,
    THREADS_MOST = 2,
    QUEUE = 256, /* blocks on the way from the producer to the consumer; a power of two */
};

/* ---- the peers ---- */

enum peer {
    PEER_MALLOC,
    PEER_MIMALLOC,
    PEER_JEMALLOC,
    PEER_POINTER,
    PEER_HANDLE,
    PEERS,
};

static const char *const peer_names[PEERS] = {"malloc", "mimalloc", "jemalloc", "Genesis pointer",
                                              "Genesis handle"};
static bool peer_is_there[PEERS];

/* Pointers all, and not const: a call costs the same for each, and none is inlined. */
static struct {
    void *(*alloc)(size_t nbytes);
    void (*free)(void *pointer);
} classic[PEER_POINTER];
static struct {
    __typeof__(&gn_memory_alloc) alloc;
    __typeof__(&gn_memory_free) free;
    __typeof__(&gn_memory_block_alloc) block_alloc;
    __typeof__(&gn_memory_block_free) block_free;
    __typeof__(&gn_memory_block_get_address) block_get_address;
} genesis;
static gn_memory_manager *manager;

static void fail(const char *what)
{
    fprintf(stderr, "bench_alloc_cpu: %s: %s\n", what, gn_error_detail());
    exit(1);
}

static void *classic_alloc(enum peer peer, size_t nbytes)
{
    void *pointer = classic[peer].alloc(nbytes);
    if (!pointer)
        fail(peer_names[peer]);
    return pointer;
}

static void classic_free(enum peer peer, void *pointer)
{
    classic[peer].free(pointer);
}

static void *pointer_alloc(enum peer peer, size_t nbytes)
{
    void *pointer;
    (void)peer;
    if (genesis.alloc(manager, nbytes, NULL, &pointer) != GN_OK)
        fail("gn_memory_alloc");
    return pointer;
}

static void pointer_free(enum peer peer, void *pointer)
{
    (void)peer;
    if (genesis.free(manager, pointer) != GN_OK)
        fail("gn_memory_free");
}

static void *handle_alloc(enum peer peer, size_t nbytes)
{
    gn_memory_block *block;
    (void)peer;
    if (genesis.block_alloc(manager, nbytes, NULL, &block) != GN_OK)
        fail("gn_memory_block_alloc");
    return block;
}

static void handle_free(enum peer peer, void *block)
{
    (void)peer;
    if (genesis.block_free(block) != GN_OK)
        fail("gn_memory_block_free");
}

static void *identity(void *pointer)
{
    return pointer;
}

static void *handle_address(void *block)
{
    return genesis.block_get_address(block);
}

static void peer_load(enum peer peer, const char *library, const char *alloc, const char *release)
{
    void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!loaded) {
        fprintf(stderr, "left out: %s\n", dlerror());
        return;
    }
    *(void **)&classic[peer].alloc = dlsym(loaded, alloc);
    *(void **)&classic[peer].free = dlsym(loaded, release);
    peer_is_there[peer] = classic[peer].alloc && classic[peer].free;
}

static void peers_open(void)
{
    gn_device *device;
    classic[PEER_MALLOC].alloc = malloc;
    classic[PEER_MALLOC].free = free;
    peer_load(PEER_MIMALLOC, "libmimalloc.so.2", "mi_malloc", "mi_free");
    peer_load(PEER_JEMALLOC, "libjemalloc.so.2", "malloc", "free");
    genesis.alloc = gn_memory_alloc;
    genesis.free = gn_memory_free;
    genesis.block_alloc = gn_memory_block_alloc;
    genesis.block_free = gn_memory_block_free;
    genesis.block_get_address = gn_memory_block_get_address;
    if (gn_device_get(GN_DEVICE_CPU, 0, &device) != GN_OK ||
        gn_memory_manager_get(device, &manager) != GN_OK)
        fail("the CPU's manager");
    peer_is_there[PEER_MALLOC] = peer_is_there[PEER_POINTER] = peer_is_there[PEER_HANDLE] = true;
}

/* ---- the loops: one text, compiled for each kind of peer ---- */

struct work {
    const struct bench_step *steps;
    size_t step_count;
    size_t slot_count;
    size_t repeats; /* of all steps */
    bool is_touched;
};

static inline __attribute__((always_inline)) void touch(char *address, size_t nbytes)
{
    for (size_t at = 0; at < nbytes; at += PAGE)
        *(volatile char *)(address + at) = 1;
}

static inline __attribute__((always_inline)) void
loop(enum peer peer, const struct work *work, void **live, void *(*alloc)(enum peer, size_t),
     void (*release)(enum peer, void *), void *(*address)(void *), bool is_touched)
{
    for (size_t repeat = 0; repeat < work->repeats; repeat++) {
        for (size_t i = 0; i < work->step_count; i++) {
            struct bench_step step = work->steps[i];
            if (live[step.slot])
                release(peer, live[step.slot]);
            void *block = step.nbytes ? alloc(peer, step.nbytes) : NULL;
            if (is_touched && block)
                touch(address(block), step.nbytes);
            live[step.slot] = block;
        }
        for (size_t slot = 0; slot < work->slot_count; slot++) {
            if (live[slot])
                release(peer, live[slot]);
            live[slot] = NULL;
        }
    }
}

static void run(enum peer peer, const struct work *work, void **live)
{
    if (peer == PEER_POINTER && work->is_touched)
        loop(peer, work, live, pointer_alloc, pointer_free, identity, true);
    else if (peer == PEER_POINTER)
        loop(peer, work, live, pointer_alloc, pointer_free, identity, false);
    else if (peer == PEER_HANDLE && work->is_touched)
        loop(peer, work, live, handle_alloc, handle_free, handle_address, true);
    else if (peer == PEER_HANDLE)
        loop(peer, work, live, handle_alloc, handle_free, handle_address, false);
    else if (work->is_touched)
        loop(peer, work, live, classic_alloc, classic_free, identity, true);
    else
        loop(peer, work, live, classic_alloc, classic_free, identity, false);
}

/* One allocates, another frees: a queue for one writer and one reader. */
struct queue {
    _Alignas(64) atomic_size_t head; /* blocks that were put in */
    _Alignas(64) atomic_size_t tail; /* blocks that were taken out */
    void *blocks[QUEUE];
};

static void *block_alloc(enum peer peer, size_t nbytes)
{
    if (peer == PEER_POINTER)
        return pointer_alloc(peer, nbytes);
    return peer == PEER_HANDLE ? handle_alloc(peer, nbytes) : classic_alloc(peer, nbytes);
}

static void block_free(enum peer peer, void *block)
{
    if (peer == PEER_POINTER)
        pointer_free(peer, block);
    else if (peer == PEER_HANDLE)
        handle_free(peer, block);
    else
        classic_free(peer, block);
}

static void run_producer(enum peer peer, const struct work *work, struct queue *queue)
{
    size_t head = 0;
    for (size_t i = 0; i < work->step_count * work->repeats; i++) {
        const struct bench_step *step = &work->steps[i % work->step_count];
        void *block = block_alloc(peer, step->nbytes);
        while (head - atomic_load_explicit(&queue->tail, memory_order_acquire) == QUEUE)
            (void)sched_yield();
        queue->blocks[head++ % QUEUE] = block;
        atomic_store_explicit(&queue->head, head, memory_order_release);
    }
}

static void run_consumer(enum peer peer, const struct work *work, struct queue *queue)
{
    size_t tail = 0;
    for (size_t i = 0; i < work->step_count * work->repeats; i++) {
        while (tail == atomic_load_explicit(&queue->head, memory_order_acquire))
            (void)sched_yield();
        block_free(peer, queue->blocks[tail++ % QUEUE]);
        atomic_store_explicit(&queue->tail, tail, memory_order_release);
    }
}

/* ---- measuring one row ---- */

/*
 * The threads of a row live through all of its rounds, so that what a peer keeps for a thread is
 * kept. Between the two waits of a turn all of them do one peer's work.
 */
struct row {
    char title[80];
    struct work work;
    size_t thread_count;
    bool is_handoff;           /* thread 0 allocates and thread 1 frees */
    size_t repeats[PEERS];     /* so that every peer works about equally long */
    double ns[PEERS][ROUNDS];  /* per pair */
    double faults[PEERS];      /* per pair, over the rounds that count */
    pthread_barrier_t barrier; /* of thread_count */
    struct queue queue;
};

struct worker {
    struct row *row;
    size_t number;
    pthread_t thread;
};

static double fault_count(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_minflt;
}

static double target_ns = 8e6;

static size_t row_pairs(const struct row *row, enum peer peer)
{
    size_t pairs = 0;
    for (size_t i = 0; i < row->work.step_count; i++)
        pairs += row->work.steps[i].nbytes != 0;
    pairs *= row->repeats[peer];
    return row->is_handoff ? pairs : pairs * row->thread_count;
}

static void turn(struct worker *worker, enum peer peer, int round, void **live)
{
    struct row *row = worker->row;
    if (worker->number == 0) {
        atomic_store(&row->queue.head, 0);
        atomic_store(&row->queue.tail, 0);
    }
    (void)pthread_barrier_wait(&row->barrier);
    double faults = fault_count(), start = now_ns();
    struct work work = row->work;
    work.repeats = row->repeats[peer];
    if (!row->is_handoff)
        run(peer, &work, live);
    else if (worker->number == 0)
        run_producer(peer, &work, &row->queue);
    else
        run_consumer(peer, &work, &row->queue);
    (void)pthread_barrier_wait(&row->barrier);
    if (worker->number != 0)
        return;
    double ns = now_ns() - start, pairs = (double)row_pairs(row, peer);
    if (round < 0) { /* warms up; the last one says how much work takes the time wanted */
        double repeats = target_ns / ns * (double)row->repeats[peer];
        row->repeats[peer] = repeats < 1 ? 1 : repeats > 1e6 ? 1000000 : (size_t)repeats;
        return;
    }
    row->ns[peer][round] = ns / pairs;
    row->faults[peer] += (fault_count() - faults) / pairs / ROUNDS;
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    void **live = calloc(worker->row->work.slot_count, sizeof *live);
    if (!live)
        fail("memory for the benchmark");
    for (int round = -2; round < ROUNDS; round++) { /* the first faults memory in */
        for (enum peer peer = 0; peer < PEERS; peer++) {
            if (peer_is_there[peer])
                turn(worker, peer, round, live);
        }
    }
    free(live);
    return NULL;
}

static void row_measure(struct row *row)
{
    struct worker workers[THREADS_MOST];
    for (enum peer peer = 0; peer < PEERS; peer++)
        row->repeats[peer] = 1;
    if (pthread_barrier_init(&row->barrier, NULL, (unsigned)row->thread_count) != 0)
        fail("pthread_barrier_init");
    for (size_t i = 0; i < row->thread_count; i++) {
        workers[i] = (struct worker){.row = row, .number = i};
        if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) != 0)
            fail("pthread_create");
    }
    for (size_t i = 0; i < row->thread_count; i++)
        (void)pthread_join(workers[i].thread, NULL);
    (void)pthread_barrier_destroy(&row->barrier);
    if (gn_memory_trim(manager, 0, NULL) != GN_OK)
        fail("gn_memory_trim");
}

/* ---- the tables ---- */

static void row_print(struct row *row)
{
    double ratio[ROUNDS];
    printf("| %s |", row->title);
    for (enum peer other = 0; other < PEER_POINTER; other++) { /* before medians sort the rounds */
        for (int round = 0; round < ROUNDS; round++)
            ratio[round] = row->ns[other][round] / row->ns[PEER_POINTER][round];
        if (!peer_is_there[other])
            printf(" - |");
        else
            printf(" %.2f |", quantile(ratio, ROUNDS, 0.5));
    }
    for (enum peer peer = 0; peer < PEERS; peer++) {
        if (!peer_is_there[peer])
            printf(" - |");
        else
            printf(" %.1f |", quantile(row->ns[peer], ROUNDS, 0.5));
    }
    for (enum peer peer = 0; peer < PEERS; peer++) {
        if (!peer_is_there[peer])
            printf(" - |");
        else
            printf(" %.3g |", row->faults[peer]);
    }
    printf("\n");
    fflush(stdout);
}

static void table_head(const char *title)
{
    printf("\n%s\n\n| requests |", title);
    for (enum peer other = 0; other < PEER_POINTER; other++)
        printf(" %s / Genesis |", peer_names[other]);
    for (enum peer peer = 0; peer < PEERS; peer++)
        printf(" %s, ns |", peer_names[peer]);
    for (enum peer peer = 0; peer < PEERS; peer++)
        printf(" %s, faults |", peer_names[peer]);
    printf("\n|---|");
    for (int i = 0; i < PEER_POINTER + 2 * PEERS; i++)
        printf("---|");
    printf("\n");
}

static void row_run(const char *title, const struct bench_step *steps, size_t step_count,
                    size_t slot_count, size_t thread_count, bool is_touched, bool is_handoff)
{
    struct row *row = aligned_alloc(64, (sizeof *row + 63) / 64 * 64);
    if (!row)
        fail("memory for the benchmark");
    memset(row, 0, sizeof *row);
    (void)snprintf(row->title, sizeof row->title, "%s", title);
    row->work = (struct work){steps, step_count, slot_count, 1, is_touched};
    row->thread_count = thread_count;
    row->is_handoff = is_handoff;
    row_measure(row);
    row_print(row);
    free(row);
}

static void table(size_t thread_count, bool is_touched)
{
    static const struct {
        const char *title;
        size_t nbytes;
    } sizes[] = {
        {"4 KiB", 4096},
        {"64 KiB", (size_t)64 << 10},
        {"1 MiB", (size_t)1 << 20},
        {"16 MiB", (size_t)16 << 20},
        {"64 MiB", (size_t)64 << 20},
    };
    char title[80];
    (void)snprintf(title, sizeof title, "%zu thread%s, blocks %s:", thread_count,
                   thread_count == 1 ? "" : "s", is_touched ? "touched" : "not touched");
    table_head(title);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct bench_step steps[16];
        size_t count = sizes[i].nbytes < (size_t)16 << 20 ? 16 : 2; /* touching takes its time */
        for (size_t k = 0; k < count; k++)
            steps[k] = (struct bench_step){0, sizes[i].nbytes};
        row_run(sizes[i].title, steps, count, 1, thread_count, is_touched, false);
    }
    const struct bench_scenario *variable = bench_scenario_find("variable_32");
    row_run(variable->title, variable->steps, is_touched ? 500 : 5000, variable->slot_count,
            thread_count, is_touched, false);
    if (thread_count == 2 && !is_touched)
        row_run("1 KiB..8 MiB, one thread allocates, the other frees", variable->steps, 5000,
                variable->slot_count, thread_count, false, true);
}

/* jemalloc's thread-local variables need room that glibc sets aside only when it is told at the start. */
static void restart_with_room(char **argv)
{
    if (getenv("GLIBC_TUNABLES"))
        return;
    if (setenv("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=32768", 1) == 0)
        (void)execv("/proc/self/exe", argv); /* if it fails, jemalloc is left out */
}

int main(int argc, char **argv)
{
    restart_with_room(argv);
    if (argc > 1)
        target_ns = strtod(argv[1], NULL) * 1e6;
    if (!(target_ns > 0)) {
        fprintf(stderr, "usage: bench_alloc_cpu [milliseconds]\n");
        return 2;
    }
    peers_open();
    printf(
        "Nanoseconds per allocation and free, page faults per allocation; policy %s. Medians of %d "
        "interleaved rounds; a ratio above 1 says that Genesis (by pointer) is faster.\n",
        gn_memory_manager_get_policy(manager), ROUNDS);
    for (size_t threads = 1; threads <= THREADS_MOST; threads++) {
        table(threads, false);
        table(threads, true);
    }
    return 0;
}
