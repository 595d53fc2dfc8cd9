/*
 * check.c: counts and reports for check.h.
 */
#include "check.h"

#include <unistd.h>

int check_failures = 0;
int check_count = 0;

void check_fail(const char *file, int line, const char *what)
{
    __atomic_fetch_add(&check_failures, 1, __ATOMIC_RELAXED);
    fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
}

int check_result(void)
{
    if (check_count == 0) {
        fprintf(stderr, "no check ran: a test that cannot fail is a defect\n");
        return 1;
    }
    printf("%d checks, %d failed\n", check_count, check_failures);
    return check_failures == 0 ? 0 : 1;
}

uint64_t check_random(uint64_t *state)
{
    /* splitmix64 */
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

#ifdef GENESIS_COVERAGE
void __gcov_dump(void);
#endif

void check_exit(int code)
{
#ifdef GENESIS_COVERAGE
    __gcov_dump();
#endif
    _exit(code);
}
