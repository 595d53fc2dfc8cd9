/*
 * test_bias.c: a mutex that is biased to a thread: who is in, when a second thread comes, and at a fork.
 */
#include "check.h"

#include "base/bias.h"

#include <pthread.h>
#include <sched.h>

enum {
    TRIES = 300,  /* meetings of two threads, each with a lock of its own */
    TURNS = 2000, /* of each thread, of which the other may see any */
};

static void bias_take(struct gni_bias *bias)
{
    if (!gni_bias_enter(bias))
        gni_bias_lock(bias);
}

static void test_one_thread(void)
{
    struct gni_bias bias = GNI_BIAS_INIT;
    CHECK(!gni_bias_enter(&bias)); /* nobody's yet */
    gni_bias_lock(&bias);
    CHECK(!bias.is_biased);
    gni_bias_unlock(&bias);
    bool has_barrier = bias.phase == GNI_BIAS_BIASED;
    for (int i = 0; i < 3; i++) {
        bias_take(&bias);
        CHECK(bias.is_biased == has_barrier);
        gni_bias_unlock(&bias);
        CHECK(!bias.is_biased && atomic_load(&bias.busy) == 0);
    }
}

/* Two threads that write what only the lock keeps apart. */
struct meeting {
    struct gni_bias bias;
    int in;            /* threads that are in */
    long long turns;   /* of both */
    atomic_bool is_on; /* the first one is at work */
};

static void turns_take(struct meeting *meeting, int pause_at)
{
    for (int i = 0; i < TURNS; i++) {
        bias_take(&meeting->bias);
        bool is_alone = ++meeting->in == 1;
        if (i == pause_at)
            (void)sched_yield(); /* so that the other one meets somebody who is in */
        meeting->turns++;
        is_alone &= --meeting->in == 0;
        gni_bias_unlock(&meeting->bias);
        if (!is_alone)
            CHECK(is_alone);
        if (i == TURNS / 4)
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
        struct meeting meeting = {.bias = GNI_BIAS_INIT};
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, second_thread, &meeting) == 0);
        turns_take(&meeting, TURNS / 4 + i);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK_U64((uint64_t)meeting.turns, 2 * TURNS);
        CHECK(meeting.bias.phase == GNI_BIAS_SHARED && !meeting.bias.is_biased);
        CHECK(!gni_bias_enter(&meeting.bias)); /* for ever */
    }
}

/* ---- before a fork -------------------------------------------------------------------------- */

static void *fork_thread(void *argument)
{
    struct gni_bias *bias = argument;
    gni_mutex_lock(&bias->mutex);
    gni_bias_fork_prepare(bias);
    CHECK(bias->phase == GNI_BIAS_SHARED);
    gni_mutex_unlock(&bias->mutex);
    return NULL;
}

static void test_fork(void)
{
    struct gni_bias bias = GNI_BIAS_INIT;
    pthread_t thread;
    bias_take(&bias);
    gni_bias_unlock(&bias);
    enum gni_bias_phase before = bias.phase;
    bias_take(&bias); /* its own thread forks, as a driver does that is called */
    if (bias.is_biased) {
        gni_mutex_lock(&bias.mutex);
        gni_bias_fork_prepare(&bias);
        gni_mutex_unlock(&bias.mutex);
    }
    CHECK(bias.phase == before);
    gni_bias_unlock(&bias);
    CHECK(pthread_create(&thread, NULL, fork_thread, &bias) == 0); /* and another one */
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(!gni_bias_enter(&bias));
}

int main(void)
{
    RUN(test_one_thread);
    RUN(test_second_thread);
    RUN(test_fork);
    return check_result();
}
