/*
 * fiber.c: the switch, the stacks and what the sanitizers need to know. See fiber.h.
 */
#include "fiber.h"

#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__) && !defined(GENESIS_SIM_UCONTEXT)
#define FIBER_ASSEMBLY 1
#else
#define FIBER_ASSEMBLY 0
#include <ucontext.h>
#endif

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define FIBER_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define FIBER_TSAN 1
#include <sanitizer/tsan_interface.h>
#else
#define FIBER_TSAN 0
#endif

enum {
    GUARD_BYTES = 4096,
    SLOT_BYTES = GUARD_BYTES + SIM_FIBER_STACK_BYTES,
};

struct sim_fiber {
    char *stack; /* the lowest byte; NULL for the main fiber and before the first use */
    void (*function)(void);
#if FIBER_ASSEMBLY
    void *stack_pointer; /* while it does not run */
#else
    ucontext_t context;
#endif
#if FIBER_ASAN
    const void *bottom; /* of the main fiber, learnt when it is left */
    size_t nbytes;
    void *fake_stack;
#endif
#if FIBER_TSAN
    void *tsan;
    unsigned tsan_uses;
#endif
};

static char *arena;
static struct sim_fiber main_fiber;
static struct sim_fiber fibers[SIM_FIBER_COUNT];
static struct sim_fiber *running; /* since the first switch of a launch */

bool sim_fibers_open(void)
{
    if (arena != NULL)
        return true;
    void *memory = mmap(NULL, (size_t)SLOT_BYTES * SIM_FIBER_COUNT + GUARD_BYTES, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    arena = memory;
    return true;
}

void sim_fibers_range(uintptr_t *begin, uintptr_t *end)
{
    *begin = (uintptr_t)arena;
    *end = (uintptr_t)arena + (size_t)SLOT_BYTES * SIM_FIBER_COUNT + GUARD_BYTES;
}

struct sim_fiber *sim_fiber_main(void)
{
    return &main_fiber;
}

struct sim_fiber *sim_fiber_get(unsigned number)
{
    return &fibers[number];
}

/* ---- What the sanitizers need to know ---- */

static void switch_begin(struct sim_fiber *from, struct sim_fiber *to, bool is_last)
{
#if FIBER_ASAN
    const void *bottom = to->stack != NULL ? to->stack : to->bottom;
    size_t nbytes = to->stack != NULL ? (size_t)SIM_FIBER_STACK_BYTES : to->nbytes;
    __sanitizer_start_switch_fiber(is_last ? NULL : &from->fake_stack, bottom, nbytes);
#endif
#if FIBER_TSAN
    if (from == &main_fiber)
        from->tsan = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to->tsan, 0);
#endif
    (void)from;
    (void)is_last;
    running = to;
}

/* In the fiber that runs now; `left` is the one that ran before, or NULL if nobody knows. */
static void switch_end(struct sim_fiber *self, struct sim_fiber *left)
{
#if FIBER_ASAN
    const void *bottom;
    size_t nbytes;
    __sanitizer_finish_switch_fiber(self->fake_stack, &bottom, &nbytes);
    if (left == &main_fiber) {
        left->bottom = bottom;
        left->nbytes = nbytes;
    }
#endif
    (void)self;
    (void)left;
}

/* The fiber that a fresh one was entered from; it has to be told to ASan. */
static struct sim_fiber *entered_from;

static void fiber_begin(void)
{
    switch_end(running, entered_from);
    running->function();
    __builtin_trap(); /* B2 */
}

/* ---- The switch ---- */

#if FIBER_ASSEMBLY

/*
 * Pushes the registers that a function must keep, stores the stack pointer, takes the other one and
 * pops. The frame of a fresh fiber holds zeros and the address of sim_fiber_enter; the call there
 * leaves the stack aligned as the ABI asks.
 */
void sim_fiber_swap(void **from, void *to) __attribute__((visibility("hidden")));
void sim_fiber_enter(void) __attribute__((visibility("hidden")));
void sim_fiber_start(void) __attribute__((visibility("hidden"), noreturn));

__asm__(".text\n"
        ".p2align 4\n"
        ".globl sim_fiber_swap\n"
        ".hidden sim_fiber_swap\n"
        ".type sim_fiber_swap, @function\n"
        "sim_fiber_swap:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size sim_fiber_swap, .-sim_fiber_swap\n"
        ".globl sim_fiber_enter\n"
        ".hidden sim_fiber_enter\n"
        ".type sim_fiber_enter, @function\n"
        "sim_fiber_enter:\n"
        "    call sim_fiber_start\n"
        "    ud2\n"
        ".size sim_fiber_enter, .-sim_fiber_enter\n");

void sim_fiber_start(void)
{
    fiber_begin();
    __builtin_unreachable();
}

static bool context_prepare(struct sim_fiber *fiber)
{
    enum {
        REGISTERS = 6,
    };
    void **top = (void **)(void *)(fiber->stack + SIM_FIBER_STACK_BYTES);
    top -= 2; /* keeps the stack aligned to 16 bytes at the call, and ends back traces */
    top[0] = top[1] = NULL;
    *--top = (void *)(uintptr_t)sim_fiber_enter;
    for (int i = 0; i < REGISTERS; i++)
        *--top = NULL;
    fiber->stack_pointer = top;
    return true;
}

static void context_swap(struct sim_fiber *from, struct sim_fiber *to)
{
    sim_fiber_swap(&from->stack_pointer, to->stack_pointer);
}

#else

static bool context_prepare(struct sim_fiber *fiber)
{
    if (getcontext(&fiber->context) != 0)
        return false;
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = SIM_FIBER_STACK_BYTES;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, fiber_begin, 0);
    return true;
}

static void context_swap(struct sim_fiber *from, struct sim_fiber *to)
{
    swapcontext(&from->context, &to->context);
}

#endif

bool sim_fiber_prepare(struct sim_fiber *fiber, void (*function)(void))
{
    if (fiber->stack == NULL) {
        char *stack = arena + (size_t)SLOT_BYTES * (size_t)(fiber - fibers) + GUARD_BYTES;
        if (mprotect(stack, SIM_FIBER_STACK_BYTES, PROT_READ | PROT_WRITE) != 0)
            return false;
        fiber->stack = stack;
    }
#if FIBER_ASAN
    /* An abandoned stack still has its frames marked. */
    __asan_unpoison_memory_region(fiber->stack, SIM_FIBER_STACK_BYTES);
    fiber->fake_stack = NULL;
#endif
#if FIBER_TSAN
    /* Each use leaves some frames on its shadow stack of 65536; a new one takes milliseconds. */
    if (fiber->tsan_uses++ % 1024 == 0) {
        if (fiber->tsan != NULL)
            __tsan_destroy_fiber(fiber->tsan);
        fiber->tsan = __tsan_create_fiber(0);
    }
#endif
    fiber->function = function;
    return context_prepare(fiber);
}

void sim_fiber_switch(struct sim_fiber *from, struct sim_fiber *to, bool is_last)
{
    entered_from = from;
    switch_begin(from, to, is_last);
    context_swap(from, to);
    switch_end(from, NULL);
}
