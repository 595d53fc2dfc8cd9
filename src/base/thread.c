#include "base/thread.h"

#include <sched.h>
#include <signal.h>
#include <sys/sysinfo.h>

enum {
    YIELDS = 100, /* before the first nap */
    NAP_NS = 50000,
};

int gni_thread_start(pthread_t *thread, void *(*run)(void *context), void *context)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)sigdelset(&all, SIGSEGV);
    (void)sigdelset(&all, SIGBUS);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(thread, NULL, run, context);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

void gni_thread_wait(int looks)
{
    if (looks < YIELDS)
        (void)sched_yield();
    else
        (void)nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

int gni_processor_count(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : get_nprocs();
}
