/*
 * engine.c: runs the threads of a launch. engine.h says what it promises.
 *
 *   thread   a GPU thread of the block at hand: not begun, ready, running, waiting or ended
 *   sim_run  the one launch that goes on (E1)
 *
 * There is no scheduler that runs by itself. Whoever has to wait, or has ended, asks run_pick() for
 * the thread that goes on, and switches to it; run_pick() also lets barriers go and begins the next
 * block. When nothing is left, or something went wrong, control returns to the caller's own stack,
 * and the fibers are left as they are.
 *
 * Invariants of a block:
 *   R1  every thread is in exactly one of: order[begun..] (not begun), ready, the running one,
 *       waiting at the barrier (counted in barrier_count), waiting in its warp (a bit of
 *       `waiting`), ended (a bit of `ended`; lanes that the block does not have count as ended).
 *   R2  a thread that waits, or is ready after it waited, has a fiber; one that has not begun has
 *       none.
 *   R3  nothing is ready, nothing left to begin, and some threads live: they all wait, so either
 *       all are at the barrier, or a lane is missing somewhere.
 */
#include "engine_inside.h"
#include "global.h"
#include "race.h"
#include "trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    SPIN_ACCESSES = 1 << 16, /* after which a thread lets others run, as it may wait for them */
};

struct run sim_run;

/* ---- Small things ---- */

static uint64_t random_next(void)
{
    /* splitmix64: a counter through a mixer. */
    uint64_t z = sim_run.random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static unsigned random_below(unsigned limit)
{
    return (unsigned)((random_next() >> 32) * limit >> 32);
}

__attribute__((noreturn)) static void run_leave(void)
{
    sim_fiber_switch(sim_run.current->fiber, sim_fiber_main(), true);
    __builtin_unreachable();
}

/* ---- Blocks ---- */

static void order_make(void)
{
    unsigned count = sim_run.thread_count;
    for (unsigned i = 0; i < count; i++)
        sim_run.order[i] =
            (uint16_t)(sim_run.launch->lane_order == SIM_ORDER_DESCENDING ? count - 1 - i : i);
    for (unsigned i = count; i > 1 && sim_run.launch->lane_order == SIM_ORDER_RANDOM; i--) {
        unsigned j = random_below(i);
        uint16_t swap = sim_run.order[i - 1];
        sim_run.order[i - 1] = sim_run.order[j];
        sim_run.order[j] = swap;
    }
}

/* Shared memory that nobody wrote is a NaN in every format of 16, 32 and 64 bits. */
static void shared_poison(char *memory, size_t nbytes)
{
    static const unsigned char pattern[2] = {0xf5, 0xff};
    for (size_t i = 0; i < nbytes; i++)
        memory[i] = (char)pattern[i & 1];
}

void sim_block_locate(uint64_t number, unsigned *index)
{
    uint64_t count = sim_run.block_count;
    uint64_t block =
        (uint64_t)((sim_run.block_first + (unsigned __int128)number * sim_run.block_step) % count);
    const unsigned *grid = sim_run.launch->grid;
    index[0] = (unsigned)(block % grid[0]);
    index[1] = (unsigned)(block / grid[0] % grid[1]);
    index[2] = (unsigned)(block / grid[0] / grid[1]);
}

static void block_locate(void)
{
    sim_block_locate(sim_run.block_number, sim_run.block_index);
    sim_bridge.block_index = (struct gn_sim_index){sim_run.block_index[0], sim_run.block_index[1],
                                                   sim_run.block_index[2]};
}

/* False: that was the last one. */
static bool block_begin(void)
{
    if (sim_run.block_number == sim_run.block_count)
        return false;
    block_locate();
    sim_run.block_number++;
    unsigned count = sim_run.thread_count;
    for (unsigned i = 0; i < count; i++) {
        sim_run.threads[i].state = THREAD_UNBEGUN;
        sim_run.threads[i].fiber = NULL;
        sim_run.accesses[i] = 0;
        sim_run.has_waited[i] = false;
    }
    for (unsigned i = 0; i * SIM_WARP_LANES < count; i++) {
        unsigned lanes = count - i * SIM_WARP_LANES;
        sim_run.warps[i].waiting = 0;
        sim_run.warps[i].ended = lanes >= SIM_WARP_LANES ? 0 : ~0u << lanes;
    }
    sim_run.live_count = count;
    sim_run.barrier_count = sim_run.begun = sim_run.ready_count = 0;
    if (sim_run.launch->lane_order == SIM_ORDER_RANDOM)
        order_make();
    shared_poison(sim_run.shared, sim_run.shared_nbytes);
    shared_poison(sim_run.dynamic, sim_run.dynamic_nbytes);
    if (sim_run.has_checks) {
        sim_race_barrier();
        sim_global_block();
    }
    return true;
}

/* ---- Who goes on ---- */

void sim_ready_push(struct gpu_thread *thread)
{
    thread->state = THREAD_READY;
    unsigned place = (sim_run.ready_first + sim_run.ready_count++) % SIM_BLOCK_MAX_THREADS;
    sim_run.ready[place] = (uint16_t)sim_thread_number(thread);
}

static struct gpu_thread *ready_take(void)
{
    if (sim_run.launch->lane_order == SIM_ORDER_RANDOM) {
        unsigned any =
            (sim_run.ready_first + random_below(sim_run.ready_count)) % SIM_BLOCK_MAX_THREADS;
        uint16_t swap = sim_run.ready[any];
        sim_run.ready[any] = sim_run.ready[sim_run.ready_first];
        sim_run.ready[sim_run.ready_first] = swap;
    }
    struct gpu_thread *thread = &sim_run.threads[sim_run.ready[sim_run.ready_first]];
    sim_run.ready_first = (sim_run.ready_first + 1) % SIM_BLOCK_MAX_THREADS;
    sim_run.ready_count--;
    return thread;
}

/* All live threads stand at the barrier: they must stand at the same one. */
static bool barrier_is_one(void)
{
    const struct gpu_thread *first = NULL;
    for (unsigned i = 0; i < sim_run.thread_count; i++) {
        const struct gpu_thread *thread = &sim_run.threads[i];
        if (thread->state != THREAD_AT_BARRIER)
            continue;
        if (first == NULL)
            first = thread;
        if (thread->kind == first->kind && thread->line == first->line &&
            (thread->file == first->file || strcmp(thread->file, first->file) == 0))
            continue;
        sim_fault_set(SIM_FAULT_DIVERGENT_BARRIER, CUDA_ERROR_LAUNCH_FAILED, sim_place_of(first),
                      sim_place_of(thread),
                      "divergent barrier: threads of one block wait at two barriers");
        return false;
    }
    return true;
}

static void barrier_finish(void)
{
    if (!barrier_is_one())
        return;
    unsigned count = 0, waiting = 0;
    for (unsigned i = 0; i < sim_run.thread_count; i++)
        if (sim_run.threads[i].state == THREAD_AT_BARRIER) {
            waiting++;
            count += sim_run.threads[i].value != 0;
        }
    for (unsigned i = 0; i < sim_run.thread_count; i++) {
        struct gpu_thread *thread = &sim_run.threads[sim_run.order[i]];
        if (thread->state != THREAD_AT_BARRIER)
            continue;
        thread->result = thread->kind == GN_SIM_BARRIER_AND  ? count == waiting
                         : thread->kind == GN_SIM_BARRIER_OR ? count != 0
                                                             : count;
        sim_ready_push(thread);
    }
    sim_run.barrier_count = 0;
    if (sim_run.has_checks) {
        sim_race_barrier();
        sim_global_barrier();
    }
}

/*
 * The thread that goes on; NULL: the launch has ended, well or not. Threads that have begun go
 * first, which leaves fewer stacks half used, unless the caller waits for somebody who may not have
 * begun.
 */
static struct gpu_thread *run_pick(bool prefers_new)
{
    while (sim_run.fault == SIM_FAULT_NONE) {
        bool can_begin = sim_run.begun < sim_run.thread_count;
        if (sim_run.launch->lane_order == SIM_ORDER_RANDOM)
            prefers_new = (random_next() & 1) != 0;
        if (sim_run.ready_count > 0 && !(prefers_new && can_begin))
            return ready_take();
        if (can_begin)
            return &sim_run.threads[sim_run.order[sim_run.begun++]];
        if (sim_run.live_count == 0) {
            if (!block_begin())
                return NULL;
        } else if (sim_run.barrier_count == sim_run.live_count) {
            barrier_finish();
        } else {
            sim_warp_deadlock();
        }
    }
    return NULL;
}

static void current_set(struct gpu_thread *thread)
{
    unsigned number = sim_thread_number(thread);
    sim_run.current = thread;
    sim_run.spin = 0;
    thread->state = THREAD_RUNNING;
    sim_bridge.thread_index = sim_run.indices[number];
    sim_bridge.lane = number % SIM_WARP_LANES;
}

static void thread_run(void);

/* Gives a thread that has not begun a fiber to begin on. There is one for each thread. */
static bool fiber_take(struct gpu_thread *thread)
{
    struct sim_fiber *fiber = sim_run.free_fibers[--sim_run.free_count];
    if (!sim_fiber_prepare(fiber, thread_run)) {
        sim_fault_set(SIM_FAULT_NO_MEMORY, CUDA_ERROR_OUT_OF_MEMORY, sim_nowhere, sim_nowhere,
                      "no memory for the stack of a thread");
        return false;
    }
    thread->fiber = fiber;
    return true;
}

/* The running thread has been put somewhere to wait. Returns when it goes on. */
static void thread_wait(struct gpu_thread *self, bool prefers_new)
{
    struct gpu_thread *next = run_pick(prefers_new);
    if (next == NULL || (next->fiber == NULL && !fiber_take(next)))
        run_leave();
    current_set(next);
    if (next != self)
        sim_fiber_switch(self->fiber, next->fiber, false);
}

/* ---- What a kernel calls ---- */

static int bridge_barrier(int kind, int predicate, const char *file, int line)
{
    struct gpu_thread *self = sim_run.current;
    self->kind = kind;
    self->value = predicate != 0;
    self->file = file;
    self->line = line;
    self->state = THREAD_AT_BARRIER;
    sim_run.barrier_count++;
    thread_wait(self, false);
    return (int)self->result;
}

static unsigned long long bridge_warp(int kind, unsigned mask, unsigned long long value,
                                      unsigned source, const char *file, int line)
{
    struct gpu_thread *self = sim_run.current;
    unsigned number = sim_thread_number(self), lane = number % SIM_WARP_LANES;
    self->kind = kind;
    self->mask = mask;
    self->value = value;
    self->source = source % SIM_WARP_LANES;
    self->file = file;
    self->line = line;
    if ((mask & 1u << lane) == 0) {
        sim_fault_set(SIM_FAULT_BAD_MASK, CUDA_ERROR_LAUNCH_FAILED, sim_place_of(self), sim_nowhere,
                      "%s by lane %u, which is not in the mask 0x%08x", sim_warp_word(kind), lane,
                      mask);
        run_leave();
    }
    self->state = THREAD_IN_WARP;
    sim_run.warps[number / SIM_WARP_LANES].waiting |= 1u << lane;
    sim_warp_finish(number / SIM_WARP_LANES, mask, kind);
    thread_wait(self, false);
    return self->result;
}

/* Only the lane itself is sure to be active: others need not be at the same place. */
static unsigned bridge_active_mask(void)
{
    return 1u << sim_bridge.lane;
}

static void bridge_yield(void)
{
    struct gpu_thread *self = sim_run.current;
    sim_ready_push(self);
    thread_wait(self, true);
}

static void bridge_stop(int reason, const char *text, const char *file, int line)
{
    struct raw_place place = {
        .file = file, .line = line, .thread = sim_thread_number(sim_run.current)};
    if (reason == GN_SIM_ASSERT)
        sim_fault_set(SIM_FAULT_ASSERT, CUDA_ERROR_ASSERT, place, sim_nowhere,
                      "assertion failed: %s", text);
    else
        sim_fault_set(SIM_FAULT_TRAP, CUDA_ERROR_LAUNCH_FAILED, place, sim_nowhere, "%s", text);
    run_leave();
}

static unsigned long long bridge_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec;
}

/* ---- Memory ---- */

__attribute__((noreturn, format(printf, 6, 7))) static void
access_fault(enum sim_fault fault, CUresult result, uintptr_t address, size_t nbytes,
             struct raw_place place, const char *format, ...)
{
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    sim_run.address = address;
    sim_run.nbytes = nbytes;
    sim_fault_set(fault, result, place, sim_nowhere, "%s", text);
    run_leave();
}

static void shared_access(size_t offset, uintptr_t address, size_t nbytes, unsigned flags,
                          struct raw_place place)
{
    struct sim_race_access other;
    if (!sim_race_access(offset, nbytes, place.thread, flags, place.site, &other))
        return;
    sim_run.address = address;
    sim_run.nbytes = nbytes;
    struct raw_place earlier = {
        .site = other.site, .thread = other.thread, .is_write = (other.flags & GN_SIM_WRITE) != 0};
    sim_fault_set(SIM_FAULT_SHARED_RACE, CUDA_ERROR_LAUNCH_FAILED, place, earlier,
                  "race in shared memory: missing %s between two threads",
                  other.thread / SIM_WARP_LANES == place.thread / SIM_WARP_LANES
                      ? "__syncwarp or __syncthreads"
                      : "__syncthreads");
    run_leave();
}

static void global_access(uintptr_t address, size_t nbytes, unsigned flags, struct raw_place place)
{
    struct sim_global_access other;
    struct raw_place earlier = {.is_elsewhere = true};
    if (!sim_global_access(address, nbytes, place.thread, flags, place.site, &other,
                           &earlier.block_number))
        return;
    sim_run.address = address;
    sim_run.nbytes = nbytes;
    earlier.site = other.site;
    earlier.thread = other.thread;
    earlier.is_write = (other.flags & GN_SIM_WRITE) != 0;
    sim_fault_set(SIM_FAULT_GLOBAL_RACE, CUDA_ERROR_LAUNCH_FAILED, place, earlier,
                  "race in global memory: two blocks, and no fence with an atomic operation or "
                  "volatile access of each orders them");
    run_leave();
}

/* A thread that loops may wait for another one of its block, or for ever. */
static void spin_check(struct raw_place place)
{
    unsigned number = place.thread;
    sim_run.accesses[number] += SPIN_ACCESSES;
    sim_run.spin = 0;
    if (sim_run.launch->accesses_max != 0 &&
        sim_run.accesses[number] >= sim_run.launch->accesses_max) {
        sim_fault_set(SIM_FAULT_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT, place, sim_nowhere,
                      "a thread made %llu accesses to memory and did not end",
                      (unsigned long long)sim_run.accesses[number]);
        run_leave();
    }
    bridge_yield();
}

static void bridge_access(const void *pointer, unsigned long nbytes, unsigned flags,
                          const void *site)
{
    uintptr_t address = (uintptr_t)pointer;
    if (address >= sim_run.stacks && address < sim_run.stacks_end)
        return;
    struct raw_place place = {.site = site,
                              .thread = sim_thread_number(sim_run.current),
                              .is_write = (flags & GN_SIM_WRITE) != 0};
    if ((flags & GN_SIM_ALIGNED) != 0 && address % nbytes != 0)
        access_fault(SIM_FAULT_MISALIGNED, CUDA_ERROR_MISALIGNED_ADDRESS, address, nbytes, place,
                     "misaligned access of %lu bytes", nbytes);
    size_t shared = address - (uintptr_t)sim_run.shared,
           dynamic = address - (uintptr_t)sim_run.dynamic;
    if (shared < sim_run.shared_nbytes) {
        if (nbytes > sim_run.shared_nbytes - shared)
            access_fault(SIM_FAULT_OUT_OF_BOUNDS, CUDA_ERROR_ILLEGAL_ADDRESS, address, nbytes,
                         place, "access beyond the %zu bytes of static shared memory",
                         sim_run.shared_nbytes);
        shared_access(shared, address, nbytes, flags, place);
    } else if (dynamic < GN_SIM_DYNAMIC_SHARED_BYTES) {
        if (dynamic >= sim_run.dynamic_nbytes || nbytes > sim_run.dynamic_nbytes - dynamic)
            access_fault(SIM_FAULT_OUT_OF_BOUNDS, CUDA_ERROR_ILLEGAL_ADDRESS, address, nbytes,
                         place, "access beyond the %zu bytes of dynamic shared memory",
                         sim_run.dynamic_nbytes);
        shared_access(sim_run.shared_nbytes + dynamic, address, nbytes, flags, place);
    } else if (address < sim_run.image || address >= sim_run.image_end) {
        if (sim_run.launch->is_early && !sim_run.has_waited[place.thread])
            access_fault(SIM_FAULT_EARLY, CUDA_ERROR_ILLEGAL_ADDRESS, address, nbytes, place,
                         "access before cudaGridDependencySynchronize() in a kernel that may begin "
                         "before the one before it has ended");
        if (!sim_trace_access(address, nbytes, flags, site))
            access_fault(SIM_FAULT_OUT_OF_BOUNDS, CUDA_ERROR_ILLEGAL_ADDRESS, address, nbytes,
                         place, "out of bounds: no memory of this kernel is there");
        global_access(address, nbytes, flags, place);
    } else {
        global_access(address, nbytes, flags, place);
    }
    if (++sim_run.spin >= SPIN_ACCESSES)
        spin_check(place);
}

static void bridge_wait(void)
{
    sim_run.has_waited[sim_thread_number(sim_run.current)] = true;
}

static void bridge_fence(void)
{
    if (sim_run.has_checks)
        sim_global_fence(sim_thread_number(sim_run.current));
}

struct gn_sim_bridge sim_bridge = {
    .barrier = bridge_barrier,
    .warp = bridge_warp,
    .active_mask = bridge_active_mask,
    .access = bridge_access,
    .stop = bridge_stop,
    .yield = bridge_yield,
    .clock = bridge_clock,
    .wait = bridge_wait,
    .fence = bridge_fence,
};

/* ---- A fiber's life ---- */

/* Runs the current thread, and then others that have not begun, while that is their turn. */
static void thread_run(void)
{
    struct sim_fiber *fiber = sim_run.current->fiber;
    for (;;) {
        sim_run.entry->call(sim_run.entry->function, sim_run.arguments);
        struct gpu_thread *self = sim_run.current;
        unsigned number = sim_thread_number(self);
        self->state = THREAD_ENDED;
        sim_run.live_count--;
        sim_warp_leave(number / SIM_WARP_LANES, number % SIM_WARP_LANES);
        struct gpu_thread *next = run_pick(false);
        if (next == NULL)
            run_leave();
        if (next->fiber != NULL) {
            sim_run.free_fibers[sim_run.free_count++] = fiber;
            current_set(next);
            sim_fiber_switch(fiber, next->fiber, true);
        }
        next->fiber = fiber;
        current_set(next);
    }
}

/* ---- A launch ---- */

static bool launch_is_possible(const struct sim_launch *launch)
{
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        if (launch->grid[i] == 0 || launch->block[i] == 0 ||
            launch->block[i] > SIM_BLOCK_MAX_THREADS)
            return false;
        threads *= launch->block[i];
    }
    return threads <= launch->kernel->max_threads_per_block && launch->grid[0] <= INT32_MAX &&
           launch->grid[1] <= UINT16_MAX && launch->grid[2] <= UINT16_MAX &&
           launch->dynamic_shared_bytes <= GN_SIM_DYNAMIC_SHARED_BYTES;
}

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The blocks in their order, or from the last one down, or in steps of a number that meets all. */
static void grid_prepare(const struct sim_launch *launch)
{
    uint64_t count = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    sim_run.block_count = count;
    sim_run.block_number = 0;
    sim_run.block_first = 0;
    sim_run.block_step = 1;
    if (launch->block_order == SIM_ORDER_DESCENDING) {
        sim_run.block_first = count - 1;
        sim_run.block_step = count > 1 ? count - 1 : 1;
    } else if (launch->block_order == SIM_ORDER_RANDOM) {
        sim_run.block_first = random_next() % count;
        do
            sim_run.block_step = 1 + random_next() % count;
        while (greatest_common_divisor(sim_run.block_step, count) != 1);
    }
}

static void block_prepare(const struct sim_launch *launch)
{
    const unsigned *size = launch->block;
    sim_run.thread_count = size[0] * size[1] * size[2];
    for (unsigned i = 0; i < sim_run.thread_count; i++)
        sim_run.indices[i] =
            (struct gn_sim_index){i % size[0], i / size[0] % size[1], i / size[0] / size[1]};
    order_make();
    sim_run.live_count = sim_run.ready_count = sim_run.ready_first = 0;
    sim_run.begun = sim_run.thread_count; /* nothing is left of a block before the first */
    sim_bridge.block_size = (struct gn_sim_index){size[0], size[1], size[2]};
    sim_bridge.grid_size = (struct gn_sim_index){launch->grid[0], launch->grid[1], launch->grid[2]};
    sim_run.free_count = SIM_FIBER_COUNT;
    for (unsigned i = 0; i < SIM_FIBER_COUNT; i++)
        sim_run.free_fibers[i] = sim_fiber_get(SIM_FIBER_COUNT - 1 - i);
}

static void memory_prepare(const struct sim_launch *launch)
{
    const struct sim_module *module = launch->kernel->module;
    sim_fibers_range(&sim_run.stacks, &sim_run.stacks_end);
    sim_run.image = module->begin;
    sim_run.image_end = module->end;
    sim_run.shared = sim_module_shared(module);
    sim_run.shared_nbytes = module->thread_nbytes;
    sim_run.dynamic = module->table->dynamic_shared;
    sim_run.dynamic_nbytes = launch->dynamic_shared_bytes;
}

/* False: the host has no memory for it. */
static bool run_prepare(const struct sim_launch *launch)
{
    sim_run.launch = launch;
    sim_run.entry = launch->kernel->entry;
    sim_run.has_checks = launch->kernel->module->table->has_checks != 0;
    sim_run.random = launch->seed;
    sim_run.fault = SIM_FAULT_NONE;
    sim_run.result = CUDA_SUCCESS;
    sim_run.address = sim_run.nbytes = 0;
    if (!sim_fibers_open())
        return false;
    sim_kernel_parameters_locate(launch->kernel, launch->parameters, sim_run.arguments);
    memory_prepare(launch);
    grid_prepare(launch);
    block_prepare(launch);
    sim_trace_begin(launch);
    if (sim_run.has_checks)
        sim_global_begin(sim_run.thread_count);
    return !sim_run.has_checks || sim_race_begin(sim_run.shared_nbytes + sim_run.dynamic_nbytes);
}

static void run_all(void)
{
    struct gpu_thread *first = run_pick(false);
    if (first == NULL || !fiber_take(first))
        return;
    current_set(first);
    sim_fiber_switch(sim_fiber_main(), first->fiber, false);
}

CUresult sim_launch_run(const struct sim_launch *launch, struct sim_report *report)
{
    if (!launch_is_possible(launch)) {
        memset(report, 0, sizeof *report);
        report->result = CUDA_ERROR_INVALID_VALUE;
        report->fault = SIM_FAULT_BAD_LAUNCH;
        snprintf(report->kernel, sizeof report->kernel, "%s", launch->kernel->expression);
        snprintf(report->text, sizeof report->text,
                 "kernel %s cannot be launched with grid (%u, %u, %u), block (%u, %u, %u) and %zu "
                 "bytes of dynamic shared memory",
                 report->kernel, launch->grid[0], launch->grid[1], launch->grid[2],
                 launch->block[0], launch->block[1], launch->block[2],
                 launch->dynamic_shared_bytes);
        return report->result;
    }
    if (run_prepare(launch))
        run_all();
    else
        sim_fault_set(SIM_FAULT_NO_MEMORY, CUDA_ERROR_OUT_OF_MEMORY, sim_nowhere, sim_nowhere,
                      "no memory for the stacks of its threads");
    const void *site;
    if (!sim_trace_end(&site)) {
        struct raw_place place = {.site = site};
        sim_fault_set(SIM_FAULT_OUT_OF_BOUNDS, CUDA_ERROR_ILLEGAL_ADDRESS, place, sim_nowhere,
                      "out of bounds: an access was refused");
    }
    sim_report_fill(report);
    return report->result;
}
