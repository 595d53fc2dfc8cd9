/*
 * test_lock.c: the lock of one word: threads that meet at it, and forks.
 */
#include "child.h"

#include "base/lock.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TRIES = 100, /* meetings of two threads, each with a lock of its own */
    TURNS = 2000,
};

static void test_one_thread(void)
{
    struct gni_lock lock = {0};
    for (int i = 0; i < 3; i++) {
        CHECK(!gni_lock_is_held(&lock) && atomic_load(&lock.state) == 0);
        gni_lock_take(&lock);
        CHECK(gni_lock_is_held(&lock) && atomic_load(&lock.state) == 1);
        gni_lock_give(&lock);
    }
    CHECK(!gni_lock_is_held(&lock) && atomic_load(&lock.owner) == NULL);
}

/* Two threads that write what only the lock keeps apart. */
struct meeting {
    struct gni_lock lock;
    int in;          /* threads that are in */
    long long turns; /* of both */
    atomic_bool is_on;
};

static void turns_take(struct meeting *meeting, int pause_at)
{
    for (int i = 0; i < TURNS; i++) {
        gni_lock_take(&meeting->lock);
        bool is_alone = ++meeting->in == 1;
        if (i % 100 == pause_at)
            (void)sched_yield(); /* so that the other one finds it held */
        meeting->turns++;
        is_alone &= --meeting->in == 0;
        gni_lock_give(&meeting->lock);
        if (!is_alone)
            CHECK(is_alone);
        atomic_store(&meeting->is_on, true);
    }
}

static void *second_thread(void *argument)
{
    struct meeting *meeting = argument;
    while (!atomic_load(&meeting->is_on))
        (void)sched_yield();
    turns_take(meeting, -1);
    return NULL;
}

static void test_second_thread(void)
{
    for (int i = 0; i < TRIES; i++) {
        struct meeting meeting = {0};
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, second_thread, &meeting) == 0);
        turns_take(&meeting, i);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK_U64((uint64_t)meeting.turns, 2 * TURNS);
        CHECK(atomic_load(&meeting.lock.state) == 0 && atomic_load(&meeting.lock.owner) == NULL);
    }
}

/* ---- forks ---------------------------------------------------------------------------------- */

static void fork_pass(struct gni_lock *lock, bool is_passed_over)
{
    gni_lock_fork_take(lock);
    CHECK(lock->is_passed_over == is_passed_over);
    gni_lock_fork_give(lock);
    CHECK(!lock->is_passed_over);
}

static void *fork_thread(void *argument)
{
    fork_pass(argument, false);
    return NULL;
}

static void test_fork_handlers(void)
{
    struct gni_lock lock = {0};
    pthread_t thread;
    fork_pass(&lock, false);
    gni_lock_take(&lock);
    fork_pass(&lock, true); /* its own thread forks, as a driver does that is called */
    gni_lock_give(&lock);
    CHECK(pthread_create(&thread, NULL, fork_thread, &lock) == 0); /* and another one */
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(atomic_load(&lock.state) == 0);
}

static void *one_turn(void *argument)
{
    gni_lock_take(argument);
    gni_lock_give(argument);
    return NULL;
}

/* The holder forks while another thread sleeps for the lock. The child has no such thread, and can use the lock. */
static void test_fork_of_the_holder(void)
{
    struct gni_lock lock = {0};
    pthread_t thread;
    gni_lock_take(&lock);
    CHECK(pthread_create(&thread, NULL, one_turn, &lock) == 0);
    while (atomic_load(&lock.state) != 2)
        (void)sched_yield();
    gni_lock_fork_take(&lock);
    pid_t child = fork();
    gni_lock_fork_give(&lock);
    gni_lock_give(&lock);
    if (child == 0) {
        (void)alarm(20); /* a lock that nobody gives back */
        (void)one_turn(&lock);
        check_exit(atomic_load(&lock.state) != 0);
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(atomic_load(&lock.state) == 0);
}

#ifdef GNI_DEBUG
static void *give_thread(void *lock)
{
    gni_lock_give(lock);
    return NULL;
}

/* 0: nobody has it; 1: another thread has it; 2: the thread itself takes it again. */
static void misuse_body(void *context)
{
    static struct gni_lock lock;
    int what = *(const int *)context;
    pthread_t thread;
    if (what > 0)
        gni_lock_take(&lock);
    if (what == 2)
        gni_lock_take(&lock);
    else if (pthread_create(&thread, NULL, give_thread, &lock) == 0)
        (void)pthread_join(thread, NULL);
}

/* LK1. Debug builds say so. */
static void test_misuse(void)
{
    static struct child_result result;
    for (int what = 0; what < 3; what++) {
        child_run(misuse_body, &what, &result);
        CHECK(result.exit_code != 0);
        CHECK(child_count(&result, "gni_lock_is_held(lock)") > 0);
    }
}
#endif

int main(void)
{
    RUN(test_one_thread);
    RUN(test_second_thread);
    RUN(test_fork_handlers);
    RUN(test_fork_of_the_holder);
#ifdef GNI_DEBUG
    RUN(test_misuse);
#endif
    return check_result();
}
