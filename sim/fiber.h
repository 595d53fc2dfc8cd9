/*
 * fiber.h: stacks that take turns on one thread; each GPU thread of a block runs on one.
 *
 *   arena   guard | stack 0 | guard | stack 1 | ... : addresses are reserved once, memory comes
 *           with use, so that "is this address on a GPU thread's stack" is one comparison
 *
 * Rules:
 *   B1  one OS thread at a time uses the fibers, and a started fiber never moves to another one: a
 *       compiler may keep the address of a thread-local variable across a switch.
 *   B2  a fiber's function never returns; it leaves for the last time with `is_last`. A fiber can
 *       also just be abandoned. Both can be prepared again.
 *   B3  on x86-64 a switch saves the six registers that the ABI asks for and nothing else (the
 *       signal mask and the floating-point modes are shared by all fibers); elsewhere it is
 *       swapcontext().
 *
 * AddressSanitizer and ThreadSanitizer are told about each switch where the library is built with
 * them.
 */
#ifndef GNI_SIM_FIBER_H
#define GNI_SIM_FIBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SIM_FIBER_COUNT = 1024, /* the threads of the largest block */
    SIM_FIBER_STACK_BYTES = 128 * 1024,
};

struct sim_fiber;

/* Reserves the arena, once for the process. False: no address space. */
bool sim_fibers_open(void);

/* The bounds of all stacks, for telling a kernel's local variables from memory. */
void sim_fibers_range(uintptr_t *begin, uintptr_t *end);

/* The fiber that stands for the caller's own stack, and the one with this number. */
struct sim_fiber *sim_fiber_main(void);
struct sim_fiber *sim_fiber_get(unsigned number);

/* Makes the next switch to `fiber` call function() on a fresh stack. False: no memory for it. */
bool sim_fiber_prepare(struct sim_fiber *fiber, void (*function)(void));

/* Continues `to`; returns when somebody switches back to `from`, the running fiber. */
void sim_fiber_switch(struct sim_fiber *from, struct sim_fiber *to, bool is_last);

#endif
