/*
 * bench_watch.c: what it costs to watch memory: counters, events and stacks.
 *
 *     bench_watch LIBGENESIS LIBGENESIS_BARE
 *
 * Two libraries: the one that everybody uses, and one that was built without counters. (The branch for the history
 * is in both: it is the one for systems without membarrier.) Each is loaded by a process of its own, since the second
 * library of a process finds its thread-local variables more slowly than the first. The same loop runs in both, in
 * turns and on one processor; a figure is the median over the rounds, and a difference the median of the rounds'
 * differences.
 */
#include "genesis/genesis.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    ROUNDS = 41,
    PAIRS = 100000,
    LIVE = 8, /* blocks at a time */
};

struct library {
    gn_status (*device_get)(gn_device_type, int, gn_device **);
    gn_status (*manager_get)(gn_device *, gn_memory_manager **);
    gn_status (*alloc)(gn_memory_manager *, size_t, gn_stream *, void **);
    gn_status (*free)(gn_memory_manager *, void *);
    gn_status (*start)(const gn_history_options *);
    void (*stop)(void);
    gn_memory_manager *manager;
};

static void fail(const char *what)
{
    fprintf(stderr, "bench_watch: %s\n", what);
    exit(1);
}

static void *symbol(void *handle, const char *name)
{
    void *found = dlsym(handle, name);
    if (found == NULL)
        fail(dlerror());
    return found;
}

static struct library library_load(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        fail(dlerror());
    struct library library;
    *(void **)&library.device_get = symbol(handle, "gn_device_get");
    *(void **)&library.manager_get = symbol(handle, "gn_memory_manager_get");
    *(void **)&library.alloc = symbol(handle, "gn_memory_alloc");
    *(void **)&library.free = symbol(handle, "gn_memory_free");
    *(void **)&library.start = symbol(handle, "gn_history_start");
    *(void **)&library.stop = symbol(handle, "gn_history_stop");
    gn_device *device;
    if (library.device_get(GN_DEVICE_CPU, 0, &device) != GN_OK ||
        library.manager_get(device, &library.manager) != GN_OK)
        fail("no memory manager");
    return library;
}

/* Nanoseconds for an allocation and its free. */
static double pair_ns(const struct library *library)
{
    void *blocks[LIVE];
    struct timespec begin, end;
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < PAIRS / LIVE; i++) {
        for (int k = 0; k < LIVE; k++)
            if (library->alloc(library->manager, 4096, NULL, &blocks[k]) != GN_OK)
                fail("out of memory");
        for (int k = 0; k < LIVE; k++)
            if (library->free(library->manager, blocks[k]) != GN_OK)
                fail("a free failed");
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) /
           PAIRS;
}

static int compare(const void *one, const void *two)
{
    double a = *(const double *)one, b = *(const double *)two;
    return (a > b) - (a < b);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

enum mode {
    BARE,
    OFF,
    EVENTS,
    STACKS,
    MODES,
};

/* A process that has one of the libraries. */
struct worker {
    pid_t pid;
    int ask, answer; /* pipes: a mode, and its time */
};

static double mode_run(enum mode mode, const struct library *library)
{
    static const gn_history_options options[MODES] = {
        [EVENTS] = {.events_most = 1 << 16},
        [STACKS] = {.events_most = 1 << 16, .c_frames = 10},
    };
    if (mode >= EVENTS && library->start(&options[mode]) != GN_OK)
        fail("recording does not start");
    (void)pair_ns(library); /* warms up */
    double first = pair_ns(library), second = pair_ns(library);
    library->stop();
    return first < second ? first : second;
}

static void worker_work(const char *path, int ask, int answer)
{
    struct library library = library_load(path);
    enum mode mode;
    while (read(ask, &mode, sizeof mode) == (ssize_t)sizeof mode) {
        double ns = mode_run(mode, &library);
        if (write(answer, &ns, sizeof ns) != (ssize_t)sizeof ns)
            fail("nobody listens");
    }
}

static struct worker worker_start(const char *path)
{
    int ask[2], answer[2];
    if (pipe(ask) != 0 || pipe(answer) != 0)
        fail("no pipe");
    pid_t pid = fork();
    if (pid < 0)
        fail("no process");
    if (pid == 0) {
        (void)close(ask[1]);
        worker_work(path, ask[0], answer[1]);
        exit(0);
    }
    (void)close(ask[0]);
    (void)close(answer[1]);
    return (struct worker){.pid = pid, .ask = ask[1], .answer = answer[0]};
}

static double worker_ask(const struct worker *worker, enum mode mode)
{
    double ns = 0;
    if (write(worker->ask, &mode, sizeof mode) != (ssize_t)sizeof mode ||
        read(worker->answer, &ns, sizeof ns) != (ssize_t)sizeof ns)
        fail("a process ended early");
    return ns;
}

static void worker_end(const struct worker *worker)
{
    int status;
    (void)close(worker->ask);
    if (waitpid(worker->pid, &status, 0) != worker->pid || status != 0)
        fail("a process failed");
}

/* All processes on the processor that this one is on. */
static void stay(void)
{
    cpu_set_t here;
    int processor = sched_getcpu();
    CPU_ZERO(&here);
    if (processor >= 0) {
        CPU_SET((size_t)processor, &here);
        (void)sched_setaffinity(0, sizeof here, &here);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        fail("usage: bench_watch LIBGENESIS LIBGENESIS_BARE");
    stay();
    struct worker bare = worker_start(argv[2]), full = worker_start(argv[1]);
    static double times[MODES][ROUNDS], more[MODES][ROUNDS];
    for (int round = 0; round < ROUNDS; round++)
        for (int mode = 0; mode < MODES; mode++)
            times[mode][round] = worker_ask(mode == BARE ? &bare : &full, (enum mode)mode);
    worker_end(&full); /* last started: the other would wait for its end of the pipe */
    worker_end(&bare);
    for (int mode = OFF; mode < MODES; mode++)
        for (int round = 0; round < ROUNDS; round++)
            more[mode][round] = times[mode][round] - times[mode == OFF ? BARE : OFF][round];
    printf("An allocation and its free of 4 KiB on the CPU, %d live; medians of %d rounds.\n\n",
           LIVE, ROUNDS);
    printf("| what is watched | ns a pair | more, ns |\n|---|---|---|\n");
    printf("| nothing: no counters | %.1f | |\n", median(times[BARE]));
    printf("| counters (always on), history off | %.1f | %.1f a pair |\n", median(times[OFF]),
           median(more[OFF]));
    printf("| events | %.1f | %.1f an event |\n", median(times[EVENTS]), median(more[EVENTS]) / 2);
    printf("| events, 10 frames of C for each allocation | %.1f | %.1f an allocation |\n",
           median(times[STACKS]), median(more[STACKS]) - median(more[EVENTS]));
    return 0;
}
