/*
 * child.h: a part of a test in a process of its own, with its standard error captured.
 *
 * For what a process does only once (reading its options), for what it prints, and for what ends
 * it. The body uses CHECK as usual; what fails there is printed by the parent. Standard error is a
 * socket that keeps the borders between writes, so that a test can also say how many there were.
 */
#ifndef GNI_TESTS_CHILD_H
#define GNI_TESTS_CHILD_H

#include "check.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Defined where a process with several threads cannot be forked by a test: the address sanitizer's
 * allocator may be locked in the child for ever, and the thread sanitizer allows no threads there.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CHILD_IS_ALONE
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CHILD_IS_ALONE
#endif
#endif

enum {
    CHILD_SECONDS = 100, /* then it is stuck, and SIGALRM ends it */
};

struct child_result {
    int exit_code; /* -1 where a signal ended it */
    int write_count;
    bool are_lines; /* each write was one line: one newline, at its end */
    size_t length;
    char text[1 << 16]; /* all that was written, as far as there is room; ends with a zero */
};

static inline void child_begin(void (*body)(void *context), void *context, int standard_error)
{
    alarm(CHILD_SECONDS);
    (void)dup2(standard_error, STDERR_FILENO);
    int before = check_failures;
    body(context);
    check_exit(check_failures == before ? 0 : 1);
}

static inline void child_read(int from, struct child_result *result)
{
    char packet[1 << 13];
    ssize_t length;
    while ((length = recv(from, packet, sizeof packet, 0)) > 0) {
        result->write_count++;
        if (memchr(packet, '\n', (size_t)length) != packet + length - 1)
            result->are_lines = false;
        size_t room = sizeof result->text - 1 - result->length;
        size_t part = (size_t)length < room ? (size_t)length : room;
        memcpy(result->text + result->length, packet, part);
        result->length += part;
    }
    result->text[result->length] = '\0';
}

/* Runs `body` in a child and waits for its end. */
static inline void child_run(void (*body)(void *context), void *context,
                             struct child_result *result)
{
    int ends[2], status = 0;
    *result = (struct child_result){.exit_code = -1, .are_lines = true};
    fflush(stdout);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        check_fail(__FILE__, __LINE__, "a socket pair for the child");
        return;
    }
    pid_t child = fork();
    if (child == 0)
        child_begin(body, context, ends[1]);
    (void)close(ends[1]);
    child_read(ends[0], result);
    (void)close(ends[0]);
    if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status))
        result->exit_code = WEXITSTATUS(status);
}

/* The child ended well, or its words say why not. */
static inline bool child_is_ok(const struct child_result *result)
{
    CHECK(result->exit_code == 0);
    if (result->exit_code != 0)
        fprintf(stderr, "    the child wrote:\n%s", result->text);
    return result->exit_code == 0;
}

/* How often a text occurs in what the child wrote. */
static inline int child_count(const struct child_result *result, const char *text)
{
    int count = 0;
    for (const char *at = result->text; (at = strstr(at, text)) != NULL; at += strlen(text))
        count++;
    return count;
}

#endif
