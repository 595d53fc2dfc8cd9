/*
 * test_parallel.c: loops on several threads: every element once, whatever the number of threads, callers,
 * nested loops and forks.
 *
 *     test_parallel [time]    also says what a short loop costs
 */
#include "base/parallel.h"
#include "base/thread.h"
#include "child.h"
#include "genesis/device.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static const int thread_counts[] = {1, 2, 3, 8};

/* ---- every element once ---------------------------------------------------------------------- */

struct visits {
    size_t count, grain;
    unsigned char *seen; /* plain: the end of the loop makes them visible */
    _Atomic(size_t) parts;
    _Atomic(int) bad;
};

static void visit(void *context, size_t begin, size_t end)
{
    struct visits *visits = context;
    size_t grain = visits->grain > 0 ? visits->grain : 1;
    size_t expected = visits->count - begin < grain ? visits->count : begin + grain;
    if (begin % grain != 0 || end != expected)
        atomic_fetch_add(&visits->bad, 1);
    atomic_fetch_add(&visits->parts, 1);
    for (size_t i = begin; i < end; i++)
        visits->seen[i]++;
}

static void visits_check(size_t count, size_t grain)
{
    struct visits visits = {.count = count, .grain = grain, .seen = calloc(count + 1, 1)};
    gni_parallel_for(count, grain, visit, &visits);
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++)
        wrong += visits.seen[i] != 1;
    CHECK_U64(wrong, 0);
    CHECK_U64(visits.seen[count], 0);
    CHECK_U64(atomic_load(&visits.bad), 0);
    size_t step = grain > 0 ? grain : 1;
    CHECK_U64(atomic_load(&visits.parts), count / step + (count % step != 0));
    free(visits.seen);
}

static void test_visits(void)
{
    static const size_t counts[] = {0, 1, 2, 3, 7, 8, 9, 100, 255, 256, 257, 1000, 4096, 65537};
    static const size_t grains[] = {0, 1, 2, 3, 8, 64, 1000, 65536, SIZE_MAX};
    for (size_t t = 0; t < COUNT_OF(thread_counts); t++) {
        CHECK_OK(gni_parallel_set_threads(thread_counts[t]));
        CHECK(gni_parallel_get_threads() == thread_counts[t]);
        for (size_t c = 0; c < COUNT_OF(counts); c++)
            for (size_t g = 0; g < COUNT_OF(grains); g++)
                visits_check(counts[c], grains[g]);
    }
}

static void test_number(void)
{
    int before = gn_get_num_threads();
    CHECK(before >= 1 && before <= 256);
    CHECK_STATUS(gni_parallel_set_threads(0), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_set_num_threads(-3), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("-3");
    CHECK(gn_get_num_threads() == before);
    CHECK_OK(gn_set_num_threads(100000));
    CHECK(gn_get_num_threads() == 256);
    CHECK_OK(gn_set_num_threads(before));
}

/* ---- sums ------------------------------------------------------------------------------------ */

enum {
    SUM_COUNT = 100000,
    SUM_GRAIN = 300,
};

static float sum_in[SUM_COUNT], sum_parts[SUM_COUNT / SUM_GRAIN + 1];

static void sum_part(void *context, size_t begin, size_t end)
{
    (void)context;
    float sum = 0;
    for (size_t i = begin; i < end; i++)
        sum += sum_in[i];
    sum_parts[begin / SUM_GRAIN] = sum;
}

static float sum_all(void)
{
    float sum = 0;
    gni_parallel_for(SUM_COUNT, SUM_GRAIN, sum_part, NULL);
    for (size_t i = 0; i < COUNT_OF(sum_parts); i++)
        sum += sum_parts[i];
    return sum;
}

/* The order of additions depends on the parts alone, so even the rounding is the same. */
static void test_sum(void)
{
    uint64_t random = 1;
    for (size_t i = 0; i < SUM_COUNT; i++)
        sum_in[i] = (float)(check_random(&random) >> 40) / 1000.0f;
    CHECK_OK(gni_parallel_set_threads(1));
    float expected = sum_all();
    for (size_t t = 0; t < COUNT_OF(thread_counts); t++) {
        CHECK_OK(gni_parallel_set_threads(thread_counts[t]));
        for (int i = 0; i < 20; i++)
            CHECK(sum_all() == expected);
    }
}

/* ---- nested loops ---------------------------------------------------------------------------- */

struct nest {
    _Atomic(size_t) *visits;
    size_t row;
    const void *thread; /* in which the outer part runs */
    _Atomic(int) *strangers;
};

enum {
    ROWS = 50,
    COLUMNS = 70,
};

static void nest_inner(void *context, size_t begin, size_t end)
{
    struct nest *nest = context;
    if (gni_thread_self() != nest->thread)
        atomic_fetch_add(nest->strangers, 1);
    for (size_t i = begin; i < end; i++)
        atomic_fetch_add(&nest->visits[nest->row * COLUMNS + i], 1);
}

static void nest_outer(void *context, size_t begin, size_t end)
{
    struct nest nest = *(struct nest *)context;
    nest.thread = gni_thread_self();
    for (nest.row = begin; nest.row < end; nest.row++) {
        gni_parallel_for(COLUMNS, 5, nest_inner, &nest);
        gni_parallel_for(COLUMNS, COLUMNS, nest_inner, &nest);
    }
}

static void test_nested(void)
{
    static _Atomic(size_t) visits[ROWS * COLUMNS];
    _Atomic(int) strangers = 0;
    struct nest nest = {.visits = visits, .strangers = &strangers};
    for (size_t t = 0; t < COUNT_OF(thread_counts); t++) {
        CHECK_OK(gni_parallel_set_threads(thread_counts[t]));
        memset(visits, 0, sizeof visits);
        gni_parallel_for(ROWS, 3, nest_outer, &nest);
        for (size_t i = 0; i < ROWS * COLUMNS; i++)
            CHECK_U64(atomic_load(&visits[i]), 2);
        CHECK(atomic_load(&strangers) == 0);
    }
}

/* ---- which threads work ---------------------------------------------------------------------- */

struct meeting {
    _Atomic(int) arrived;
    int expected;
    _Atomic(int) open_signals; /* workers that would take signals */
    const void *caller;
};

/* Nobody leaves before all are there: so many threads must be at work. */
static void meet(void *context, size_t begin, size_t end)
{
    struct meeting *meeting = context;
    sigset_t now;
    (void)begin;
    (void)end;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &now);
    if (gni_thread_self() != meeting->caller &&
        (!sigismember(&now, SIGINT) || !sigismember(&now, SIGALRM)))
        atomic_fetch_add(&meeting->open_signals, 1);
    atomic_fetch_add(&meeting->arrived, 1);
    while (atomic_load(&meeting->arrived) < meeting->expected)
        (void)usleep(10);
}

static void meeting_check(int threads)
{
    struct meeting meeting = {.expected = threads, .caller = gni_thread_self()};
    gni_parallel_for((size_t)threads, 1, meet, &meeting);
    CHECK(atomic_load(&meeting.arrived) == threads);
    CHECK(atomic_load(&meeting.open_signals) == 0);
}

static void test_all_threads_work(void)
{
    for (int round = 0; round < 20; round++) {
        for (size_t t = 0; t < COUNT_OF(thread_counts); t++) {
            CHECK_OK(gni_parallel_set_threads(thread_counts[t]));
            meeting_check(thread_counts[t]);
            if (round % 4 == 0)
                (void)usleep(1000); /* they sleep by now */
        }
    }
}

struct crowd {
    _Atomic(int) inside, most;
};

static void crowd_part(void *context, size_t begin, size_t end)
{
    struct crowd *crowd = context;
    (void)begin;
    (void)end;
    int now = atomic_fetch_add(&crowd->inside, 1) + 1, most = atomic_load(&crowd->most);
    while (now > most && !atomic_compare_exchange_weak(&crowd->most, &most, now))
        continue;
    (void)usleep(20);
    atomic_fetch_sub(&crowd->inside, 1);
}

struct place {
    const void *caller;
    int processor; /* of the caller */
    cpu_set_t all;
    _Atomic(int) arrived, together, bound;
};

/* A worker goes to its caller's processor, after it has told where it was. */
static void follow(void *context, size_t begin, size_t end)
{
    struct place *place = context;
    cpu_set_t own, one;
    (void)begin;
    (void)end;
    if (gni_thread_self() != place->caller) {
        CPU_ZERO(&one);
        CPU_SET((size_t)place->processor, &one);
        (void)sched_getaffinity(0, sizeof own, &own);
        atomic_fetch_add(&place->bound, !CPU_EQUAL(&own, &place->all));
        atomic_fetch_add(&place->together, sched_getcpu() == place->processor);
        (void)sched_setaffinity(0, sizeof one, &one);
        (void)sched_setaffinity(0, sizeof own, &own);
    }
    atomic_fetch_add(&place->arrived, 1);
    while (atomic_load(&place->arrived) < 2)
        gni_thread_pause();
}

/* A worker does not stay where its caller is, and may go everywhere after that. */
static void test_processors(void)
{
    enum {
        LOOPS = 40
    };
    struct place place = {.caller = gni_thread_self()};
    if (sched_getaffinity(0, sizeof place.all, &place.all) != 0 || CPU_COUNT(&place.all) < 2)
        return;
    CHECK_OK(gni_parallel_set_threads(2));
    for (int i = 0; i < LOOPS; i++) {
        atomic_store(&place.arrived, 0);
        place.processor = sched_getcpu();
        gni_parallel_for(2, 1, follow, &place);
    }
    CHECK(atomic_load(&place.bound) == 0);
    CHECK(atomic_load(&place.together) < LOOPS / 2);
}

/* ---- a container's share ---------------------------------------------------------------------- */

static void file_write(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void test_share(void)
{
    static const struct {
        const char *text;
        int count;
    } shares[] = {{"max 100000\n", INT_MAX},   {"100000 100000\n", 1}, {"150000 100000\n", 2},
                  {"1000 100000\n", 1},        {"", INT_MAX},          {"-1 100000\n", INT_MAX},
                  {"800000 100000\n", 8},      {"1 0\n", INT_MAX},     {"many\n", INT_MAX},
                  {"99999999999 1\n", INT_MAX}};
    char root[] = "/tmp/genesis-share-XXXXXX";
    char file[64], folder[64], quota[64], period[64];
    CHECK(mkdtemp(root) != NULL);
    (void)snprintf(file, sizeof file, "%s/cpu.max", root);
    (void)snprintf(folder, sizeof folder, "%s/cpu", root);
    (void)snprintf(quota, sizeof quota, "%s/cpu.cfs_quota_us", folder);
    (void)snprintf(period, sizeof period, "%s/cpu.cfs_period_us", folder);
    CHECK(gni_processor_share(root) == INT_MAX);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        file_write(file, shares[i].text);
        CHECK_U64(gni_processor_share(root), shares[i].count);
    }
    CHECK(unlink(file) == 0 && mkdir(folder, 0700) == 0);
    file_write(quota, "250000\n");
    CHECK(gni_processor_share(root) == INT_MAX);
    file_write(period, "100000\n");
    CHECK(gni_processor_share(root) == 3);
    file_write(quota, "-1\n");
    CHECK(gni_processor_share(root) == INT_MAX);
    CHECK(unlink(quota) == 0 && unlink(period) == 0 && rmdir(folder) == 0 && rmdir(root) == 0);
}

/* The number changes between loops: never more threads than the last one says. */
static void test_number_changes(void)
{
    uint64_t random = 7;
    for (int i = 0; i < 200; i++) {
        int threads = 1 + (int)(check_random(&random) % 9);
        CHECK_OK(gni_parallel_set_threads(threads));
        struct crowd crowd = {.most = 0};
        gni_parallel_for(12, 1, crowd_part, &crowd);
        CHECK(atomic_load(&crowd.most) >= 1 && atomic_load(&crowd.most) <= threads);
        CHECK(atomic_load(&crowd.inside) == 0);
    }
}

/* ---- many loops, many callers ---------------------------------------------------------------- */

static void add_part(void *context, size_t begin, size_t end)
{
    size_t *cells = context;
    for (size_t i = begin; i < end; i++)
        cells[8 * i]++;
}

static void test_many_short(void)
{
    enum {
        LOOPS = 100000
    };
    CHECK_OK(gni_parallel_set_threads(2));
    static size_t cells[16];
    for (int i = 0; i < LOOPS; i++)
        gni_parallel_for(2, 1, add_part, cells);
    CHECK_U64(cells[0], LOOPS);
    CHECK_U64(cells[8], LOOPS);
    CHECK_OK(gni_parallel_set_threads(5));
    for (int i = 0; i < 2000; i++)
        gni_parallel_for(2, 1, add_part, cells);
    CHECK_U64(cells[8], LOOPS + 2000);
}

static void *caller_run(void *context)
{
    const _Atomic(bool) *is_over = context;
    for (int i = 0; i < 300 || (is_over != NULL && !atomic_load(is_over)); i++)
        visits_check((size_t)(i * 13 % 5000), 1 + (size_t)(i % 50));
    return NULL;
}

static void test_callers(void)
{
    CHECK_OK(gni_parallel_set_threads(3));
    pthread_t threads[3];
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        CHECK(pthread_create(&threads[i], NULL, caller_run, NULL) == 0);
    (void)caller_run(NULL);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        (void)pthread_join(threads[i], NULL);
}

/* ---- fork, refusals, exit -------------------------------------------------------------------- */

#ifndef CHILD_IS_ALONE

static void fork_body(void *unused)
{
    (void)unused;
    CHECK_OK(gni_parallel_set_threads(3));
    for (int i = 0; i < 50; i++)
        visits_check(1000, 7);
    meeting_check(3); /* with workers of its own */
}

/* Other threads are in loops when the child begins. */
static void test_fork(void)
{
    static struct child_result result;
    CHECK_OK(gni_parallel_set_threads(3));
    _Atomic(bool) is_over = false;
    pthread_t threads[2];
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        CHECK(pthread_create(&threads[i], NULL, caller_run, &is_over) == 0);
    for (int i = 0; i < 30; i++) {
        child_run(fork_body, NULL, &result);
        if (!child_is_ok(&result))
            break;
        visits_check(1000, 7);
    }
    atomic_store(&is_over, true);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        (void)pthread_join(threads[i], NULL);
    meeting_check(3);
}

/* Without room for stacks there are no more threads; the loops run all the same. */
static void refuse_body(void *unused)
{
    (void)unused;
    struct rlimit before, none = {1, 1};
    CHECK(getrlimit(RLIMIT_AS, &before) == 0);
    none.rlim_max = before.rlim_max;
    CHECK(setrlimit(RLIMIT_AS, &none) == 0);
    CHECK_OK(gni_parallel_set_threads(4));
    struct crowd crowd = {.most = 0};
    for (int i = 0; i < 50; i++)
        gni_parallel_for(20, 1, crowd_part, &crowd);
    CHECK(atomic_load(&crowd.most) == 1);
    CHECK(setrlimit(RLIMIT_AS, &before) == 0);
    CHECK_OK(gni_parallel_set_threads(4)); /* asks again */
    meeting_check(4);
}

static void test_refused(void)
{
    static struct child_result result;
    child_run(refuse_body, NULL, &result);
    CHECK(child_is_ok(&result));
}

static void *exit_run(void *unused)
{
    struct crowd crowd = {.most = 0};
    (void)unused;
    for (;;)
        gni_parallel_for(100, 1, crowd_part, &crowd);
    return NULL;
}

/* The process ends while workers sleep, look or work. */
static void exit_body(void *context)
{
    pthread_t thread;
    CHECK_OK(gni_parallel_set_threads(4));
    meeting_check(4);
    if (*(int *)context > 0)
        CHECK(pthread_create(&thread, NULL, exit_run, NULL) == 0);
    (void)usleep((unsigned)*(int *)context * 100);
    if (check_failures == 0)
        exit(0);
}

static void test_exit(void)
{
    static struct child_result result;
    for (int i = 0; i < 10; i++) {
        child_run(exit_body, &i, &result);
        CHECK(child_is_ok(&result));
    }
}

#endif

/* ---- time ------------------------------------------------------------------------------------ */

static void time_loops(int threads, unsigned gap_us)
{
    static size_t cells[64 * 8];
    enum {
        LOOPS = 20000
    };
    int loops = gap_us > 0 ? LOOPS / 20 : LOOPS;
    CHECK_OK(gni_parallel_set_threads(threads));
    gni_parallel_for((size_t)threads, 1, add_part, cells);
    uint64_t total = 0;
    for (int i = 0; i < loops; i++) {
        if (gap_us > 0)
            (void)usleep(gap_us);
        uint64_t start = gni_time_ns();
        gni_parallel_for((size_t)threads, 1, add_part, cells);
        total += gni_time_ns() - start;
    }
    printf("     %d threads, %u us apart: %.2f us for a loop\n", threads, gap_us,
           (double)total / loops / 1000);
}

static void test_time(void)
{
    for (size_t t = 0; t < COUNT_OF(thread_counts); t++) {
        time_loops(thread_counts[t], 0);
        time_loops(thread_counts[t], 200);
    }
}

int main(int count, char **words)
{
    RUN(test_number);
#ifndef CHILD_IS_ALONE
    RUN(test_refused); /* while there are no workers */
#endif
    RUN(test_visits);
    RUN(test_sum);
    RUN(test_nested);
    RUN(test_all_threads_work);
    RUN(test_processors);
    RUN(test_share);
    RUN(test_number_changes);
    RUN(test_many_short);
    RUN(test_callers);
#ifndef CHILD_IS_ALONE
    RUN(test_fork);
    RUN(test_exit);
#endif
    if (count > 1 && strcmp(words[1], "time") == 0)
        RUN(test_time);
    return check_result();
}
