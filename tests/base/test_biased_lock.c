/*
 * test_biased_lock.c: a biased lock: how a thread earns the bias, when another one comes, and at a fork.
 */
#include "child.h"

#include "base/barrier.h"
#include "base/biased_lock.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TRIES = 200,                       /* meetings of two threads, each with a lock of its own */
    TURNS = 2 * GNI_BIAS_STREAK + 100, /* of each thread: enough to earn the bias again */
};

static void turn_take(struct gni_biased_lock *lock)
{
    gni_biased_lock_take(lock);
    gni_biased_lock_give(lock);
}

static bool is_biased(struct gni_biased_lock *lock)
{
    return gni_biased_lock_flag(lock, gni_thread_self()) != NULL;
}

static void become_biased(struct gni_biased_lock *lock)
{
    for (int i = 0; i <= GNI_BIAS_STREAK; i++)
        turn_take(lock);
}

static void test_one_thread(void)
{
    struct gni_biased_lock lock = {0};
    for (int i = 0; i < GNI_BIAS_STREAK; i++) {
        gni_biased_lock_take(&lock);
        CHECK(lock.inside == NULL && !is_biased(&lock));
        gni_biased_lock_give(&lock);
    }
    gni_biased_lock_take(&lock); /* earns the bias, and is in with the lock for the last time */
    CHECK(lock.inside == NULL && atomic_load(&lock.shared.state) == 1);
    CHECK(is_biased(&lock) == gni_barrier_register());
    gni_biased_lock_give(&lock);
    for (int i = 0; i < 3; i++) {
        gni_biased_lock_take(&lock);
        CHECK((lock.inside != NULL) == is_biased(&lock));
        CHECK(atomic_load(&lock.flags[0].busy) == (lock.inside != NULL));
        gni_biased_lock_give(&lock);
        CHECK(lock.inside == NULL && atomic_load(&lock.flags[0].busy) == 0);
        CHECK(atomic_load(&lock.shared.state) == 0 && atomic_load(&lock.shared.owner) == NULL);
    }
}

/* Two threads that write what only the lock keeps apart. */
struct meeting {
    struct gni_biased_lock lock;
    int in;            /* threads that are in */
    long long turns;   /* of both */
    atomic_bool is_on; /* the first one is at work */
};

static void turns_take(struct meeting *meeting, int pause_at)
{
    for (int i = 0; i < TURNS; i++) {
        gni_biased_lock_take(&meeting->lock);
        bool is_alone = ++meeting->in == 1;
        if (i == pause_at)
            (void)sched_yield(); /* so that the other one meets somebody who is in */
        meeting->turns++;
        is_alone &= --meeting->in == 0;
        gni_biased_lock_give(&meeting->lock);
        if (!is_alone)
            CHECK(is_alone);
        if (i == GNI_BIAS_STREAK)
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
        turns_take(&meeting, GNI_BIAS_STREAK + 1 + i);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK_U64((uint64_t)meeting.turns, 2 * TURNS);
        CHECK(meeting.lock.inside == NULL && atomic_load(&meeting.lock.flags[0].busy) == 0);
        CHECK(atomic_load(&meeting.lock.shared.state) == 0);
        become_biased(&meeting.lock); /* whoever it was in the end */
        CHECK(is_biased(&meeting.lock) == !meeting.lock.is_plain);
    }
}

static void *one_turn(void *argument)
{
    turn_take(argument);
    return NULL;
}

/* One turn of another thread ends the bias; threads that take turns never have one. */
static void test_turns_of_two(void)
{
    struct gni_biased_lock lock = {0};
    become_biased(&lock);
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, one_turn, &lock) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(atomic_load(&lock.biased) == NULL);
        for (int j = 0; j < GNI_BIAS_STREAK; j++)
            turn_take(&lock);
        CHECK(atomic_load(&lock.biased) == NULL);
    }
    turn_take(&lock);
    CHECK(is_biased(&lock) == !lock.is_plain);
}

static void *become_thread(void *argument)
{
    become_biased(argument);
    return NULL;
}

/* Each biased thread has a flag of its own: one that comes in late writes to no other's. */
static void test_seats(void)
{
    struct gni_biased_lock lock = {0};
    become_biased(&lock);
    struct gni_bias_flag *mine = gni_biased_lock_flag(&lock, gni_thread_self());
    CHECK((mine == NULL) == lock.is_plain);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, become_thread, &lock) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(lock.is_plain || atomic_load(&lock.biased) != NULL);
    CHECK(lock.is_plain || atomic_load(&lock.biased) != mine);
    CHECK(!gni_biased_lock_enter(&lock, gni_thread_self()));
    turn_take(&lock);
    CHECK(atomic_load(&lock.biased) == NULL);
    become_biased(&lock);
    CHECK(atomic_load(&lock.biased) == mine);
}

/* When every flag is another thread's, the lock stays shared. */
static void test_no_seat(void)
{
    struct gni_biased_lock lock = {0};
    for (int i = 0; i < GNI_BIAS_THREADS; i++)
        atomic_store(&lock.flags[i].thread, &lock);
    for (int i = 0; i < 3; i++)
        become_biased(&lock);
    CHECK(atomic_load(&lock.biased) == NULL && atomic_load(&lock.shared.state) == 0);
}

/* ---- before a fork -------------------------------------------------------------------------- */

static void fork_pass(struct gni_biased_lock *lock, bool is_passed_over)
{
    gni_biased_lock_fork_take(lock);
    CHECK(lock->is_passed_over == is_passed_over);
    gni_biased_lock_fork_give(lock, false);
    CHECK(!lock->is_passed_over);
}

static void *fork_thread(void *argument)
{
    fork_pass(argument, false);
    return NULL;
}

static void test_fork(void)
{
    struct gni_biased_lock lock = {0};
    fork_pass(&lock, false);
    for (int i = 0; i <= GNI_BIAS_STREAK + 1; i++) { /* with the lock, in between, and without */
        gni_biased_lock_take(&lock);
        fork_pass(&lock, true); /* its own thread forks, as a driver does that is called */
        gni_biased_lock_give(&lock);
    }
    fork_pass(&lock, false);
    CHECK(is_biased(&lock) == !lock.is_plain);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, fork_thread, &lock) == 0); /* and another one */
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(atomic_load(&lock.biased) == NULL);
}

/* The biased thread forks while another thread has the lock and waits for it to come out. The child has no such thread. */
static void test_fork_of_the_biased_thread(void)
{
    struct gni_biased_lock lock = {0};
    become_biased(&lock);
    if (lock.is_plain)
        return;
    pthread_t thread;
    gni_biased_lock_take(&lock);
    CHECK(pthread_create(&thread, NULL, one_turn, &lock) == 0);
    while (atomic_load(&lock.biased) != NULL)
        (void)sched_yield();
    gni_biased_lock_fork_take(&lock);
    CHECK(lock.is_passed_over);
    pid_t child = fork();
    gni_biased_lock_fork_give(&lock, child == 0);
    gni_biased_lock_give(&lock);
    if (child == 0) {
        (void)alarm(20); /* a lock that nobody gives back */
        turn_take(&lock);
        check_exit(atomic_load(&lock.shared.state) != 0);
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(atomic_load(&lock.shared.state) == 0 && lock.inside == NULL);
}

#ifdef GNI_DEBUG
static void *give_thread(void *lock)
{
    gni_biased_lock_give(lock);
    return NULL;
}

/* 0: nobody has it; 1: another thread has the lock; 2: the lock is biased to another thread, which is in. */
static void give_body(void *context)
{
    static struct gni_biased_lock lock;
    int who = *(const int *)context;
    pthread_t thread;
    if (who == 2)
        become_biased(&lock);
    if (who > 0)
        gni_biased_lock_take(&lock);
    CHECK((lock.inside != NULL) == (who == 2));
    if (who == 0)
        gni_biased_lock_give(&lock);
    else if (pthread_create(&thread, NULL, give_thread, &lock) == 0)
        (void)pthread_join(thread, NULL);
}

/* BI1: who is not in must not give it up. Debug builds say so. */
static void test_give_by_another(void)
{
    static struct child_result result;
    for (int who = 0; who < 3; who++) {
        child_run(give_body, &who, &result);
        CHECK(result.exit_code != 0);
        CHECK(child_count(&result, who == 2 ? "gni_thread_self() ==" : "gni_lock_is_held") > 0);
    }
}
#endif

int main(void)
{
    RUN(test_one_thread);
    RUN(test_second_thread);
    RUN(test_turns_of_two);
    RUN(test_seats);
    RUN(test_no_seat);
    RUN(test_fork);
    RUN(test_fork_of_the_biased_thread);
#ifdef GNI_DEBUG
    RUN(test_give_by_another);
#endif
    return check_result();
}
