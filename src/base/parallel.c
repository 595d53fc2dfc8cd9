/*
 * parallel.c: see parallel.h.
 *
 * One loop at a time has the workers. It is opened with a number of seats, and closed when its parts are all
 * handed out; a worker that comes late finds no seat, and nobody waits for it.
 *
 *     gate    generation | seats            the futex on which idle workers sleep
 *     shares  each thread's own stretch of the parts, and the next one to hand out of it
 *     debt    who took a seat and is not done; while the loop is open minus those who are done
 *
 *   1. The fields of pool.loop are written by the caller that has the pool, while the gate has no seats and no
 *      worker is inside; they are read only by those who took a seat.
 *   2. A worker announces its sleep in `sleepers` before it looks at the gate for the last time, and a caller
 *      opens the gate before it looks at `sleepers`; so one of them sees the other. The same holds between the
 *      last worker, which changes `debt`, and the caller, which announces its sleep in `is_waiting`.
 *   3. Share 0 is the caller's, and every worker has the same one in each loop of as many seats: what a thread has written
 *      is in its processor's cache when the next loop reads it. Who is done with his share helps with the others.
 *   4. `started` and `refused` belong to the caller that has the pool, and change under the mutex, which is
 *      held over a fork.
 */
#include "base/parallel.h"

#include "base/fork.h"
#include "base/thread.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdalign.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    THREADS_MOST = 256,
    GATE_SEATS = THREADS_MOST - 1, /* the bits of the gate that count seats */
    GATE_GENERATION = THREADS_MOST,
    SPIN_NS = 20000, /* about what it costs to wake a thread */
    LOOKS = 16,      /* between looks at the clock */
    WAKES = 2,       /* by one thread */
    CACHE_LINE = 64,
};

struct loop {
    size_t count, grain, part_count, share_count;
    gni_part part;
    void *context;
};

struct share {
    alignas(CACHE_LINE) _Atomic(size_t) next; /* part */
};

static struct {
    alignas(CACHE_LINE) _Atomic(unsigned) gate;
    struct share shares[THREADS_MOST];
    alignas(CACHE_LINE) _Atomic(int) debt;
    _Atomic(bool) is_waiting; /* the caller sleeps until debt is 0 */
    alignas(CACHE_LINE) _Atomic(int) sleepers;
    alignas(CACHE_LINE) struct loop loop;
    _Atomic(int) processor; /* on which the caller was when it opened the gate */
    _Atomic(bool) is_taken; /* a caller has the pool */
    _Atomic(int) threads;   /* 0: nobody asked yet */
    _Atomic(int) wishes;    /* how often the number was set */
    struct gni_mutex mutex;
    int started; /* workers */
    int refused; /* `wishes` + 1 when the system started no more threads; it is asked again after the next */
} pool = {.mutex = GNI_MUTEX_INIT};

static struct gni_once pool_once = GNI_ONCE_INIT;

/* Does the calling thread run a part, or a loop alone? */
static _Thread_local bool is_inside;

/* ---- parts ----------------------------------------------------------------------------------- */

static void futex_wait(void *word, unsigned expected)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static void futex_wake(void *word, int count)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static void part_run(const struct loop *loop, size_t index)
{
    size_t begin = index * loop->grain, rest = loop->count - begin;
    loop->part(loop->context, begin, begin + (rest < loop->grain ? rest : loop->grain));
}

/* The first part of a share. */
static size_t share_begin(const struct loop *loop, size_t share)
{
    return loop->part_count / loop->share_count * share +
           loop->part_count % loop->share_count * share / loop->share_count;
}

static void share_run(const struct loop *loop, size_t share)
{
    _Atomic(size_t) *next = &pool.shares[share].next;
    size_t end = share_begin(loop, share + 1), index;
    while (atomic_load_explicit(next, memory_order_relaxed) < end &&
           (index = atomic_fetch_add_explicit(next, 1, memory_order_relaxed)) < end)
        part_run(loop, index);
}

static void shares_open(const struct loop *loop)
{
    for (size_t share = 0; share < loop->share_count; share++)
        atomic_store_explicit(&pool.shares[share].next, share_begin(loop, share),
                              memory_order_relaxed);
}

/* By the caller, whose number is 0, and by every worker that has a seat. */
static void parts_run(size_t thread)
{
    const struct loop loop = pool.loop;
    size_t own = thread == 0 ? 0 : 1 + (thread - 1) % (loop.share_count - 1);
    is_inside = true;
    for (size_t i = 0; i < loop.share_count; i++)
        share_run(&loop, (own + i) % loop.share_count);
    is_inside = false;
}

static void parts_run_alone(const struct loop *loop)
{
    bool was_inside = is_inside;
    is_inside = true;
    for (size_t index = 0; index < loop->part_count; index++)
        part_run(loop, index);
    is_inside = was_inside;
}

/* ---- workers --------------------------------------------------------------------------------- */

/* A worker may be woken on its caller's processor where all others are busy, and would stay there for milliseconds:
 * the two would take turns, while somebody who only waits busily (as OpenBLAS's threads do after a product) has a
 * processor to himself. It moves to another one, and is then free to go anywhere again. This may take long, so it
 * comes before a seat is taken. */
static void processor_leave(void)
{
    cpu_set_t all, others;
    int processor = atomic_load_explicit(&pool.processor, memory_order_relaxed);
    if (processor < 0 || processor >= CPU_SETSIZE || sched_getcpu() != processor ||
        sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < gni_parallel_get_threads())
        return;
    others = all;
    CPU_CLR((size_t)processor, &others);
    if (sched_setaffinity(0, sizeof others, &others) == 0)
        (void)sched_setaffinity(0, sizeof all, &all);
}

static bool seat_take(void)
{
    if ((atomic_load_explicit(&pool.gate, memory_order_relaxed) & GATE_SEATS) == 0)
        return false;
    processor_leave();
    unsigned gate = atomic_load_explicit(&pool.gate, memory_order_relaxed);
    while ((gate & GATE_SEATS) != 0) {
        if (atomic_compare_exchange_weak_explicit(&pool.gate, &gate, gate - 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    }
    return false;
}

static void seat_give(void)
{
    if (atomic_fetch_sub(&pool.debt, 1) == 1 && atomic_load(&pool.is_waiting))
        futex_wake(&pool.debt, 1);
}

/* Looks for a seat for a short time. */
static bool seat_watch(void)
{
    uint64_t end = gni_time_ns() + SPIN_NS;
    do {
        for (int i = 0; i < LOOKS; i++) {
            if (seat_take())
                return true;
            gni_thread_pause();
        }
    } while (gni_time_ns() < end);
    return false;
}

static void seat_sleep(void)
{
    atomic_fetch_add(&pool.sleepers, 1);
    unsigned gate = atomic_load(&pool.gate);
    if ((gate & GATE_SEATS) == 0)
        futex_wait(&pool.gate, gate);
    atomic_fetch_sub(&pool.sleepers, 1);
}

/* Waking costs microseconds for each: a caller wakes a few, and those wake more while there are seats. */
static void sleepers_wake(int count)
{
    if (count > 0 && atomic_load(&pool.sleepers) > 0)
        futex_wake(&pool.gate, count < WAKES ? count : WAKES);
}

static void *worker_run(void *number)
{
    for (;;) {
        bool has_slept = false;
        for (; !seat_watch(); has_slept = true)
            seat_sleep();
        if (has_slept)
            sleepers_wake((int)(atomic_load(&pool.gate) & GATE_SEATS));
        parts_run((size_t)(uintptr_t)number);
        seat_give();
    }
    return NULL;
}

/* A child has no workers; a loop that another thread was in is not the child's. */
static void pool_fork_done(bool is_child)
{
    if (!is_child)
        return;
    atomic_store(&pool.gate, 0);
    atomic_store(&pool.debt, 0);
    atomic_store(&pool.is_waiting, false);
    atomic_store(&pool.sleepers, 0);
    atomic_store(&pool.is_taken, false);
    pool.started = 0;
    pool.refused = 0;
}

static const struct gni_fork_handlers pool_fork = {.mutex = &pool.mutex, .done = pool_fork_done};

static void pool_register(void)
{
    gni_fork_register(GNI_FORK_PARALLEL, &pool_fork);
}

static bool worker_start(int number)
{
    pthread_t thread;
    int failed = gni_thread_start(&thread, worker_run, (void *)(uintptr_t)number);
    if (!failed)
        (void)pthread_detach(thread);
    return !failed;
}

/* Starts workers until there are as many, or the system refuses. */
static void workers_ensure(int count)
{
    int wish = atomic_load_explicit(&pool.wishes, memory_order_relaxed) + 1;
    if (pool.started >= count || pool.refused == wish)
        return;
    gni_once_run(&pool_once, pool_register);
    gni_mutex_lock(&pool.mutex);
    while (pool.started < count && pool.refused != wish) {
        if (worker_start(pool.started + 1))
            pool.started++;
        else
            pool.refused = wish;
    }
    gni_mutex_unlock(&pool.mutex);
}

/* ---- loops ----------------------------------------------------------------------------------- */

static void gate_open(int seats)
{
    unsigned gate = atomic_load_explicit(&pool.gate, memory_order_relaxed);
    atomic_store(&pool.gate, ((gate | GATE_SEATS) + 1) | (unsigned)seats);
    int awake = pool.started - atomic_load(&pool.sleepers);
    sleepers_wake(seats - (awake > 0 ? awake : 0));
}

/* Returns how many seats were taken. */
static int gate_close(int seats)
{
    unsigned gate =
        atomic_fetch_and_explicit(&pool.gate, ~(unsigned)GATE_SEATS, memory_order_relaxed);
    return seats - (int)(gate & GATE_SEATS);
}

/* Until those who took a seat are done. */
static void debt_wait(int taken)
{
    if (atomic_fetch_add_explicit(&pool.debt, taken, memory_order_acquire) + taken == 0)
        return;
    uint64_t end = gni_time_ns() + SPIN_NS;
    do {
        for (int i = 0; i < LOOKS; i++) {
            if (atomic_load_explicit(&pool.debt, memory_order_acquire) == 0)
                return;
            gni_thread_pause();
        }
    } while (gni_time_ns() < end);
    atomic_store(&pool.is_waiting, true);
    int debt;
    while ((debt = atomic_load(&pool.debt)) != 0)
        futex_wait(&pool.debt, (unsigned)debt);
    atomic_store_explicit(&pool.is_waiting, false, memory_order_relaxed);
}

static bool pool_take(void)
{
    return !atomic_load_explicit(&pool.is_taken, memory_order_relaxed) &&
           !atomic_exchange_explicit(&pool.is_taken, true, memory_order_acquire);
}

void gni_parallel_for(size_t count, size_t grain, gni_part part, void *context)
{
    if (count == 0)
        return;
    if (count <= grain) {
        part(context, 0, count);
        return;
    }
    if (grain == 0)
        grain = 1;
    struct loop loop = {count, grain, (count - 1) / grain + 1, 1, part, context};
    int threads = is_inside ? 1 : gni_parallel_get_threads();
    if (threads == 1 || !pool_take()) {
        parts_run_alone(&loop);
        return;
    }
    int seats = loop.part_count < (size_t)threads ? (int)loop.part_count - 1 : threads - 1;
    workers_ensure(seats);
    if (seats > pool.started)
        seats = pool.started;
    loop.share_count = (size_t)seats + 1;
    pool.loop = loop;
    atomic_store_explicit(&pool.processor, sched_getcpu(), memory_order_relaxed);
    shares_open(&loop);
    gate_open(seats);
    parts_run(0);
    debt_wait(gate_close(seats));
    atomic_store_explicit(&pool.is_taken, false, memory_order_release);
}

/* ---- the number of threads ------------------------------------------------------------------- */

static int processor_count(void)
{
    int count = gni_processor_count();
    return count < 1 ? 1 : count < THREADS_MOST ? count : THREADS_MOST;
}

int gni_parallel_get_threads(void)
{
    int threads = atomic_load_explicit(&pool.threads, memory_order_relaxed);
    if (threads != 0)
        return threads;
    int count = processor_count();
    return atomic_compare_exchange_strong(&pool.threads, &threads, count) ? count : threads;
}

gn_status gni_parallel_set_threads(int count)
{
    if (count < 1)
        return gni_error(GN_ERROR_INVALID_VALUE, "a loop needs at least 1 thread, not %d", count);
    atomic_store(&pool.threads, count < THREADS_MOST ? count : THREADS_MOST);
    atomic_fetch_add(&pool.wishes, 1);
    return GN_OK;
}
