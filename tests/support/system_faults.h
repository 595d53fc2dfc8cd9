/*
 * system_faults.h: calls of the C library and the system that fail when a test orders it.
 *
 * The linker puts functions of ours between the library's objects and these calls (--wrap); a program that links
 * `system_faults` has them. Other libraries, such as the simulated GPU, call the system as ever.
 *
 *     system_fail("read", 2, EINTR, false);    the second read() from now gives EINTR
 */
#ifndef GNI_TESTS_SYSTEM_FAULTS_H
#define GNI_TESTS_SYSTEM_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

/* The nth call from now of a function fails with this errno, and every later one if it is persistent. Replaces the fault
 * that was ordered before; nth 0 orders none. close() fails as the system's does: the file is closed. */
void system_fail(const char *function, int nth, int error, bool is_persistent);

/* How often the present fault struck. */
int system_fault_count(void);

/* From now on read() and write() move at most so many bytes; 0: as many as they like. */
void system_shorten(size_t most);

/* fopen() of a path opens another file; NULL: none is replaced. */
void system_replace(const char *path, const char *by);

/* From now on openat() gives descriptor 0, as in a process without standard input: it is closed before. */
void system_open_as_0(bool is_on);

#endif
