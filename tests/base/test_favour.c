/*
 * test_favour.c: a lock with a favourite: how a thread becomes it, when another one comes, and at a fork.
 */
#include "child.h"

#include "base/barrier.h"
#include "base/favour.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TRIES = 200,                         /* meetings of two threads, each with a lock of its own */
    TURNS = 2 * GNI_FAVOUR_STREAK + 100, /* of each thread: enough to become the favourite again */
};

static void turn_take(struct gni_favour *favour)
{
    gni_favour_take(favour);
    gni_favour_give(favour);
}

static bool is_favourite(struct gni_favour *favour)
{
    return gni_favour_seat(favour, gni_thread_self()) != NULL;
}

static void become_favourite(struct gni_favour *favour)
{
    for (int i = 0; i <= GNI_FAVOUR_STREAK; i++)
        turn_take(favour);
}

static void test_one_thread(void)
{
    struct gni_favour favour = {0};
    for (int i = 0; i < GNI_FAVOUR_STREAK; i++) {
        gni_favour_take(&favour);
        CHECK(favour.inside == NULL && !is_favourite(&favour));
        gni_favour_give(&favour);
    }
    gni_favour_take(&favour); /* becomes it, and is in with the lock for the last time */
    CHECK(favour.inside == NULL && atomic_load(&favour.lock.state) == 1);
    CHECK(is_favourite(&favour) == gni_barrier_register());
    gni_favour_give(&favour);
    for (int i = 0; i < 3; i++) {
        gni_favour_take(&favour);
        CHECK((favour.inside != NULL) == is_favourite(&favour));
        CHECK(atomic_load(&favour.seats[0].busy) == (favour.inside != NULL));
        gni_favour_give(&favour);
        CHECK(favour.inside == NULL && atomic_load(&favour.seats[0].busy) == 0);
        CHECK(atomic_load(&favour.lock.state) == 0 && atomic_load(&favour.owner) == NULL);
    }
}

/* Two threads that write what only the lock keeps apart. */
struct meeting {
    struct gni_favour favour;
    int in;            /* threads that are in */
    long long turns;   /* of both */
    atomic_bool is_on; /* the first one is at work */
};

static void turns_take(struct meeting *meeting, int pause_at)
{
    for (int i = 0; i < TURNS; i++) {
        gni_favour_take(&meeting->favour);
        bool is_alone = ++meeting->in == 1;
        if (i == pause_at)
            (void)sched_yield(); /* so that the other one meets somebody who is in */
        meeting->turns++;
        is_alone &= --meeting->in == 0;
        gni_favour_give(&meeting->favour);
        if (!is_alone)
            CHECK(is_alone);
        if (i == GNI_FAVOUR_STREAK)
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
        turns_take(&meeting, GNI_FAVOUR_STREAK + 1 + i);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK_U64((uint64_t)meeting.turns, 2 * TURNS);
        CHECK(meeting.favour.inside == NULL && atomic_load(&meeting.favour.seats[0].busy) == 0);
        CHECK(atomic_load(&meeting.favour.lock.state) == 0);
        become_favourite(&meeting.favour); /* whoever it was in the end */
        CHECK(is_favourite(&meeting.favour) == !meeting.favour.is_plain);
    }
}

static void *one_turn(void *argument)
{
    turn_take(argument);
    return NULL;
}

/* One turn of another thread is the end; those who take turns never have a favourite. */
static void test_turns_of_two(void)
{
    struct gni_favour favour = {0};
    become_favourite(&favour);
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, one_turn, &favour) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(atomic_load(&favour.favourite) == NULL);
        for (int j = 0; j < GNI_FAVOUR_STREAK; j++)
            turn_take(&favour);
        CHECK(atomic_load(&favour.favourite) == NULL);
    }
    turn_take(&favour);
    CHECK(is_favourite(&favour) == !favour.is_plain);
}

static void *become_thread(void *argument)
{
    become_favourite(argument);
    return NULL;
}

/* Each favourite has a seat of its own: one that comes in late writes to no other's. */
static void test_seats(void)
{
    struct gni_favour favour = {0};
    become_favourite(&favour);
    struct gni_favour_seat *mine = gni_favour_seat(&favour, gni_thread_self());
    CHECK((mine == NULL) == favour.is_plain);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, become_thread, &favour) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(favour.is_plain || atomic_load(&favour.favourite) != NULL);
    CHECK(favour.is_plain || atomic_load(&favour.favourite) != mine);
    CHECK(!gni_favour_enter(&favour, gni_thread_self()));
    turn_take(&favour);
    CHECK(atomic_load(&favour.favourite) == NULL);
    become_favourite(&favour);
    CHECK(atomic_load(&favour.favourite) == mine);
}

/* When every seat is another thread's, the lock is shared. */
static void test_no_seat(void)
{
    struct gni_favour favour = {0};
    for (int i = 0; i < GNI_FAVOUR_SEATS; i++)
        atomic_store(&favour.seats[i].thread, &favour);
    for (int i = 0; i < 3; i++)
        become_favourite(&favour);
    CHECK(atomic_load(&favour.favourite) == NULL && atomic_load(&favour.lock.state) == 0);
}

/* ---- before a fork -------------------------------------------------------------------------- */

static void fork_pass(struct gni_favour *favour, bool is_passed_over)
{
    gni_favour_fork_take(favour);
    CHECK(favour->is_passed_over == is_passed_over);
    gni_favour_fork_give(favour, false);
    CHECK(!favour->is_passed_over);
}

static void *fork_thread(void *argument)
{
    fork_pass(argument, false);
    return NULL;
}

static void test_fork(void)
{
    struct gni_favour favour = {0};
    fork_pass(&favour, false);
    for (int i = 0; i <= GNI_FAVOUR_STREAK + 1; i++) { /* with the lock, in between, and without */
        gni_favour_take(&favour);
        fork_pass(&favour, true); /* its own thread forks, as a driver does that is called */
        gni_favour_give(&favour);
    }
    fork_pass(&favour, false);
    CHECK(is_favourite(&favour) == !favour.is_plain);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, fork_thread, &favour) == 0); /* and another one */
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(atomic_load(&favour.favourite) == NULL);
}

/* A favourite forks while another thread has the lock and waits for it to come out. The child has no such thread. */
static void test_fork_of_a_favourite(void)
{
    struct gni_favour favour = {0};
    become_favourite(&favour);
    if (favour.is_plain)
        return;
    pthread_t thread;
    gni_favour_take(&favour);
    CHECK(pthread_create(&thread, NULL, one_turn, &favour) == 0);
    while (atomic_load(&favour.favourite) != NULL)
        (void)sched_yield();
    gni_favour_fork_take(&favour);
    CHECK(favour.is_passed_over);
    pid_t child = fork();
    gni_favour_fork_give(&favour, child == 0);
    gni_favour_give(&favour);
    if (child == 0) {
        (void)alarm(20); /* a lock that nobody gives back */
        turn_take(&favour);
        check_exit(atomic_load(&favour.lock.state) != 0);
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(atomic_load(&favour.lock.state) == 0 && favour.inside == NULL);
}

#ifdef GNI_DEBUG
static void *give_thread(void *favour)
{
    gni_favour_give(favour);
    return NULL;
}

/* 0: nobody has it; 1: another thread has the lock; 2: another thread is the favourite, and in. */
static void give_body(void *context)
{
    static struct gni_favour favour;
    int who = *(const int *)context;
    pthread_t thread;
    if (who == 2)
        become_favourite(&favour);
    if (who > 0)
        gni_favour_take(&favour);
    CHECK((favour.inside != NULL) == (who == 2));
    if (who == 0)
        gni_favour_give(&favour);
    else if (pthread_create(&thread, NULL, give_thread, &favour) == 0)
        (void)pthread_join(thread, NULL);
}

/* 1: who is not in must not give it up. Debug builds say so. */
static void test_give_by_another(void)
{
    static struct child_result result;
    for (int who = 0; who < 3; who++) {
        child_run(give_body, &who, &result);
        CHECK(result.exit_code != 0);
        CHECK(child_count(&result, "gni_thread_self() ==") > 0);
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
    RUN(test_fork_of_a_favourite);
#ifdef GNI_DEBUG
    RUN(test_give_by_another);
#endif
    return check_result();
}
