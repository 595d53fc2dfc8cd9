/*
 * check.h: the smallest test harness that says where and with which values a check failed.
 *
 * A test program is a main() that calls RUN(test_function) for each test and returns
 * check_result(). A failed CHECK prints the place and goes on, so that one run shows everything.
 * Exit status 77 tells ctest that the program was skipped.
 */
#ifndef GNI_TESTS_CHECK_H
#define GNI_TESTS_CHECK_H

#include "genesis/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_SKIPPED 77

extern int check_failures;
extern int check_count;

/* As _exit(), but what ran counts in a build for coverage. For the children of a fork. */
_Noreturn void check_exit(int code);

#define RUN(test)                                                             \
    do {                                                                      \
        int before = check_failures;                                          \
        test();                                                               \
        printf("%s %s\n", check_failures == before ? "ok  " : "FAIL", #test); \
        fflush(stdout);                                                       \
    } while (0)

#define CHECK(condition)                                       \
    do {                                                       \
        __atomic_fetch_add(&check_count, 1, __ATOMIC_RELAXED); \
        if (!(condition))                                      \
            check_fail(__FILE__, __LINE__, #condition);        \
    } while (0)

#define CHECK_U64(actual, expected)                                                    \
    do {                                                                               \
        uint64_t check_a = (uint64_t)(actual), check_e = (uint64_t)(expected);         \
        __atomic_fetch_add(&check_count, 1, __ATOMIC_RELAXED);                         \
        if (check_a != check_e) {                                                      \
            check_fail(__FILE__, __LINE__, #actual " == " #expected);                  \
            fprintf(stderr, "    %" PRIu64 " is not %" PRIu64 "\n", check_a, check_e); \
        }                                                                              \
    } while (0)

#define CHECK_TEXT(actual, expected)                                                   \
    do {                                                                               \
        const char *check_a = (actual), *check_e = (expected);                         \
        __atomic_fetch_add(&check_count, 1, __ATOMIC_RELAXED);                         \
        if (strcmp(check_a, check_e) != 0) {                                           \
            check_fail(__FILE__, __LINE__, #actual " is " #expected);                  \
            fprintf(stderr, "    \"%s\"\n    is not\n    \"%s\"\n", check_a, check_e); \
        }                                                                              \
    } while (0)

/* The call must give this status; a surprise prints the status that came and its detail. */
#define CHECK_STATUS(call, expected)                                                             \
    do {                                                                                         \
        gn_status check_s = (call);                                                              \
        __atomic_fetch_add(&check_count, 1, __ATOMIC_RELAXED);                                   \
        if (check_s != (expected)) {                                                             \
            check_fail(__FILE__, __LINE__, #call " gives " #expected);                           \
            fprintf(stderr, "    it gave %s: %s\n", gn_status_name(check_s), gn_error_detail()); \
        }                                                                                        \
    } while (0)

#define CHECK_OK(call) CHECK_STATUS(call, GN_OK)

/* The last error's text must contain a word, so that messages stay useful. */
#define CHECK_DETAIL(word)                                                \
    do {                                                                  \
        __atomic_fetch_add(&check_count, 1, __ATOMIC_RELAXED);            \
        if (strstr(gn_error_detail(), word) == NULL) {                    \
            check_fail(__FILE__, __LINE__, "the detail mentions " #word); \
            fprintf(stderr, "    \"%s\"\n", gn_error_detail());           \
        }                                                                 \
    } while (0)

void check_fail(const char *file, int line, const char *what);
int check_result(void);

/* A small, seeded generator: the same numbers on every machine. */
uint64_t check_random(uint64_t *state);

#endif
