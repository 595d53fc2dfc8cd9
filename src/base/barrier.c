/*
 * barrier.c: see barrier.h.
 */
#include "base/barrier.h"

#include "base/error.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

static int barrier_call(int command)
{
    return (int)syscall(SYS_membarrier, command, 0, 0);
}

bool gni_barrier_register(void)
{
    return barrier_call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

void gni_barrier_all(void)
{
    if (barrier_call(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0)
        return;
    /* A forked child registers for itself. */
    bool failed = !gni_barrier_register() || barrier_call(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0;
    gni_assert(!failed);
    (void)failed;
}
