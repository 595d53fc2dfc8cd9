#include "base/thread.h"

#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
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

/* Up to two numbers that a file begins with; how many there are. */
static int numbers_read(const char *root, const char *name, long long numbers[2])
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    int count = fscanf(file, "%lld %lld", &numbers[0], &numbers[1]);
    (void)fclose(file);
    return count > 0 ? count : 0; /* "max", or -1: no limit */
}

int gni_processor_share(const char *root)
{
    long long numbers[2] = {0}, period[2] = {0};
    if (numbers_read(root, "cpu.max", numbers) != 2) {
        (void)numbers_read(root, "cpu/cpu.cfs_quota_us", numbers);
        (void)numbers_read(root, "cpu/cpu.cfs_period_us", period);
        numbers[1] = period[0];
    }
    if (numbers[0] <= 0 || numbers[1] <= 0 || numbers[0] / numbers[1] >= INT_MAX)
        return INT_MAX;
    return (int)(numbers[0] / numbers[1]) + (numbers[0] % numbers[1] != 0);
}

int gni_processor_count(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : get_nprocs();
    int share = gni_processor_share("/sys/fs/cgroup");
    return share < count ? share : count;
}
