/*
 * test_order.c: random programs of several streams and threads over the memory manager.
 *
 *     test_order [COUNT] [FIRST_SEED] [STEP]
 *     test_order here SEED           in this process, for a debugger
 *
 * A program allocates and frees blocks on streams of every kind (the default stream, blocking and
 * non-blocking ones, streams of another library, each thread's own default stream), works on them with
 * fills and copies, and keeps the rules of genesis/memory.h: work on a block stays in one stream, moves to
 * another one after an event, and is announced by gn_memory_record_stream() where it is not ordered back
 * before the free. The manager must keep PO5 of pool.h: on the simulated GPU its checker sees every access,
 * and one finding is a failure; on every device each block must hold what was written last.
 *
 * Everything follows from the seed: the policy, the schedule, the size of the device's memory, the
 * settings, and each step. Threads take turns that the seed draws, so that a program can be replayed; one
 * in eight, where the rest is 7, has threads that run freely. Each program has a process of its own: options are read once, and
 * what one program left in a cache must not matter to the next.
 *
 * With EXPECT_FINDINGS the program is linked with an engine that has a mistake built in, which the same
 * seeds must find.
 */
#include "test_order.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SECONDS = 120, /* then a program is stuck */
};

/* ---- threads -------------------------------------------------------------------------------- */

static void worker_begin(struct worker *worker)
{
    struct program *program = worker->program;
    OK(gn_event_create(program->device, 0, &worker->event));
    pthread_mutex_lock(&program->mutex);
    if (program->stream_count < STREAMS_MAX && draw(worker, 3) > 0) {
        worker->own = program->stream_count++;
        stream_open(program, worker->own, KIND_PER_THREAD, worker->index, false);
    }
    pthread_mutex_unlock(&program->mutex);
    worker->has_current = false;
    worker->favourite = 0;
    worker->favourite = stream_draw(worker);
}

/* The thread's own stream is out of reach afterwards. */
static void worker_finish(struct worker *worker)
{
    struct program *program = worker->program;
    if (worker->own >= 0) {
        blocks_each(worker, block_leave, worker->own);
        program->streams[worker->own].is_alive = false;
        gn_stream_release(program->streams[worker->own].stream);
    }
    worker->own = -1;
    gn_event_destroy(worker->event);
}

static void *worker_run(void *argument)
{
    struct worker *worker = argument;
    struct program *program = worker->program;
    worker_begin(worker);
    if (program->is_free) {
        for (int i = 0; i < program->step_count; i++)
            step(worker);
        worker_finish(worker);
        return NULL;
    }
    for (enum order order = ORDER_STEP; order != ORDER_END;) {
        pthread_mutex_lock(&program->mutex);
        worker->order = ORDER_NONE; /* the last one is done */
        pthread_cond_broadcast(&program->changed);
        while (worker->order == ORDER_NONE)
            pthread_cond_wait(&program->changed, &program->mutex);
        order = worker->order;
        pthread_mutex_unlock(&program->mutex);
        if (order == ORDER_STEP)
            step(worker);
    }
    worker_finish(worker);
    return NULL;
}

static void worker_wait(struct worker *worker)
{
    struct program *program = worker->program;
    pthread_mutex_lock(&program->mutex);
    while (worker->order != ORDER_NONE)
        pthread_cond_wait(&program->changed, &program->mutex);
    pthread_mutex_unlock(&program->mutex);
}

static void worker_start(struct worker *worker)
{
    worker->order = ORDER_STEP;
    CHECK(pthread_create(&worker->thread, NULL, worker_run, worker) == 0);
    if (!worker->program->is_free)
        worker_wait(worker);
}

static void worker_command(struct worker *worker, enum order order)
{
    struct program *program = worker->program;
    pthread_mutex_lock(&program->mutex);
    worker->order = order;
    pthread_cond_broadcast(&program->changed);
    pthread_mutex_unlock(&program->mutex);
    if (order == ORDER_STEP)
        worker_wait(worker);
    else
        CHECK(pthread_join(worker->thread, NULL) == 0);
}

/* The threads take turns; now and then one ends, and another one begins in its place. */
static void turns_run(struct program *program)
{
    for (int i = 0; i < program->step_count * program->thread_count; i++) {
        uint64_t number = check_random(&program->state);
        struct worker *worker = &program->workers[number % (uint64_t)program->thread_count];
        worker_command(worker, ORDER_STEP);
        if ((number >> 32) % 40 == 0) {
            worker_command(worker, ORDER_END);
            count_up(&program->report->restart_count);
            worker_start(worker);
        }
    }
    for (int i = 0; i < program->thread_count; i++)
        worker_command(&program->workers[i], ORDER_END);
}

/* ---- programs ------------------------------------------------------------------------------- */

/* What follows from a seed before its process starts CUDA. */
struct outline {
    const char *policy, *debug, *schedule;
    size_t memory_bytes;
    bool has_limit; /* the manager's own limit instead of the device's */
    bool is_tight;  /* little memory, and blocks that fill it: they change streams all the time */
};

static struct outline outline_of(uint64_t seed)
{
    static const char *const schedules[] = {"random", "lazy", "eager"};
    uint64_t state = seed * 2 + 1;
    bool is_tight = seed / 2 % 4 == 0;
    return (struct outline){.policy = seed % 2 ? "pool" : "virtual",
                            .schedule = schedules[seed / 2 % 3],
                            .debug = check_random(&state) % 10 ? "" : "poison",
                            .memory_bytes = is_tight ? (8 + check_random(&state) % 16) * MIB
                                                     : (24 + check_random(&state) % 48) * MIB,
                            .has_limit = check_random(&state) % 3 == 0,
                            .is_tight = is_tight};
}

static void outline_set(const struct outline *outline, uint64_t seed)
{
    char number[32];
    (void)setenv("GENESIS_CUDA_ALLOCATOR", outline->policy, 1);
    (void)setenv("GENESIS_DEBUG", outline->debug, 1);
    (void)setenv("SIM_GPU_SCHEDULE", outline->schedule, 1);
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)seed);
    (void)setenv("SIM_GPU_SEED", number, 1);
    (void)snprintf(number, sizeof number, "%zu",
                   outline->has_limit ? 256 * MIB : outline->memory_bytes);
    (void)setenv("SIM_GPU_MEMORY", number, 1);
}

static void settings_draw(struct program *program, const struct outline *outline)
{
    static const size_t kept[] = {SIZE_MAX, SIZE_MAX, SIZE_MAX, 4096, 8, 0};
    gn_memory_config config;
    size_t free_bytes, total_bytes;
    OK(gn_device_get_memory_info(program->device, &free_bytes, &total_bytes));
    gn_memory_manager *managers[] = {program->manager, program->pinned};
    for (int i = 0; i < 2; i++) {
        OK(gn_memory_get_config(managers[i], &config));
        config.strategy =
            check_random(&program->state) % 4 ? GN_MEMORY_BEST_FIT : GN_MEMORY_FIRST_FIT;
        config.stream_cache_blocks = kept[check_random(&program->state) % 6];
        config.segment_bytes = (2 + 2 * (check_random(&program->state) % 8)) * MIB;
        if (check_random(&program->state) % 8 == 0)
            config.cache_bytes = (check_random(&program->state) % 24) * MIB;
        if (check_random(&program->state) % 8 == 0)
            config.coalescing_threshold = (double)(check_random(&program->state) % 8) / 8;
        if (check_random(&program->state) % 8 == 0)
            config.cleanup_threshold = (double)(check_random(&program->state) % 8) / 8;
        if (outline->has_limit || !program->is_simulated || i == 1)
            config.memory_fraction = (double)outline->memory_bytes / (double)total_bytes;
        if (config.memory_fraction > 1)
            config.memory_fraction = 1;
        OK(gn_memory_configure(managers[i], &config));
    }
}

static void program_open(struct program *program, const struct outline *outline)
{
    OK(gn_device_get(GN_DEVICE_CUDA, 0, &program->device));
    const struct gni_cuda_driver *driver = gni_cuda_device_of(program->device)->driver;
    program->cuda = &driver->functions;
    program->is_simulated = sim_control_load(driver->path, &program->control);
    OK(gn_memory_manager_get(program->device, &program->manager));
    OK(gn_memory_manager_get_pinned(program->device, &program->pinned));
    EXPECT(strcmp(gn_memory_manager_get_policy(program->manager), outline->policy) == 0);
    settings_draw(program, outline);
    program->is_free = program->seed % 8 == 7;
    program->thread_count = program->is_free ? 2 + (int)(check_random(&program->state) % 3)
                                             : 1 + (int)(check_random(&program->state) % 4);
    program->step_count = 100 / program->thread_count + (int)(check_random(&program->state) % 30);
    for (int i = 0; i < SHARED_STREAMS + program->thread_count; i++) {
        enum kind kind = i == 0 ? KIND_DEFAULT : (enum kind)(1 + check_random(&program->state) % 3);
        stream_open(program, i, kind, i < SHARED_STREAMS ? -1 : i - SHARED_STREAMS,
                    check_random(&program->state) % 3 == 0);
    }
    program->stream_count = SHARED_STREAMS + program->thread_count;
    pthread_mutex_init(&program->mutex, NULL);
    pthread_cond_init(&program->changed, NULL);
    for (int i = 0; i < program->thread_count; i++)
        program->workers[i] = (struct worker){
            .program = program, .index = i, .own = -1, .state = check_random(&program->state)};
    for (int i = 0; i < SIZES; i++)
        program->sizes[i] = outline->is_tight && i > 0
                                ? MIB + 1 + check_random(&program->state) % (3 * MIB)
                                : size_draw_fresh(&program->workers[0]);
}

/* The host has waited for everything: each block holds what it should, and can be freed. */
static void block_end(struct worker *worker, struct block *block, int unused)
{
    struct program *program = worker->program;
    (void)unused;
    block_check(program, block, program->streams[0].stream);
    if (block->handle != NULL)
        handle_free(program, block);
    else
        OK(gn_memory_free(block->manager, block->pointer));
    block->pointer = NULL;
}

static void statistics_take(struct program *program, gn_memory_manager *manager)
{
    struct report *report = program->report;
    gn_memory_statistics now;
    OK(gn_memory_trim(manager, 0, NULL));
    OK(gn_memory_get_statistics(manager, &now));
    EXPECT(now.live_count == 0 && now.live_bytes == 0 && now.pending_bytes == 0);
    EXPECT(now.alloc_count == now.free_count && now.requested_bytes == 0);
    EXPECT(now.reserved_bytes == 0); /* all of it went back */
    report->handover_count += now.handover_count;
    report->event_count += now.event_count;
    report->out_of_memory_count += now.out_of_memory_count;
    report->retry_count += now.retry_count;
    report->stream_hit_count += now.stream_hit_count;
}

static void program_close(struct program *program)
{
    OK(gn_device_synchronize(program->device));
    program->is_free = false;
    blocks_each(&program->workers[0], block_end, 0);
    for (int i = 0; i < program->stream_count; i++)
        stream_close(program, &program->streams[i]);
    statistics_take(program, program->manager);
    statistics_take(program, program->pinned);
    size_t leaked = 0;
    OK(gn_shutdown(&leaked));
    EXPECT(leaked == 0);
    if (!program->is_simulated)
        return;
    EXPECT(program->control.live_allocations() == 0);
    program->report->order_hash = program->control.order_hash();
    program->report->finding_count = program->control.finding_count();
    for (int i = 0; i < TEXTS; i++)
        (void)snprintf(program->report->texts[i], sizeof program->report->texts[i], "%s",
                       program->control.finding_text(i));
}

static void program_run(uint64_t seed, struct report *report)
{
    static struct program made;
    struct program *program = &made;
    *program = (struct program){.seed = seed, .state = seed, .report = report};
    struct outline outline = outline_of(seed);
    outline_set(&outline, seed);
    program_open(program, &outline);
    for (int i = 0; i < program->thread_count; i++)
        worker_start(&program->workers[i]);
    if (!program->is_free)
        turns_run(program);
    for (int i = 0; i < program->thread_count && program->is_free; i++)
        CHECK(pthread_join(program->workers[i].thread, NULL) == 0);
    program_close(program);
}

/* ---- processes ------------------------------------------------------------------------------ */

static struct report *report; /* shared with the child */

/* Runs the program of a seed in a process of its own; its exit status, or -1. */
static int seed_run(uint64_t seed)
{
    *report = (struct report){0};
    pid_t child = fork();
    if (child == 0) {
        int before = check_failures;
        alarm(SECONDS);
        program_run(seed, report);
        check_exit(report->wrong_count == 0 && check_failures == before ? 0 : 1);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

static void seed_fail(uint64_t seed, const char *what)
{
    struct outline outline = outline_of(seed);
    check_fail(__FILE__, __LINE__, what);
    fprintf(stderr, "    seed %llu (policy %s, schedule %s): test_order 1 %llu\n",
            (unsigned long long)seed, outline.policy, outline.schedule, (unsigned long long)seed);
    for (int i = 0; i < TEXTS && report->texts[i][0] != '\0'; i++)
        fprintf(stderr, "    %s\n", report->texts[i]);
}

static struct report total;
static uint64_t found_count; /* programs with findings */

static void total_add(void)
{
    total.handover_count += report->handover_count;
    total.event_count += report->event_count;
    total.out_of_memory_count += report->out_of_memory_count;
    total.retry_count += report->retry_count;
    total.folded_pages += report->folded_pages;
    total.stream_hit_count += report->stream_hit_count;
    total.pending_count += report->pending_count;
    total.restart_count += report->restart_count;
    total.destroyed_count += report->destroyed_count;
    found_count += report->finding_count > 0;
}

static void seed_test(uint64_t seed)
{
    int code = seed_run(seed);
    total_add();
    check_count++;
#ifndef EXPECT_FINDINGS
    if (report->finding_count != 0)
        seed_fail(seed, "no access is out of order");
    if (code != 0)
        seed_fail(seed,
                  code < 0 ? "the program ends by itself" : "every call gives what it should");
    uint64_t hash = report->order_hash;
    if (seed % 16 != 0)
        return;
    (void)seed_run(seed);
    if (report->order_hash != hash)
        seed_fail(seed, "the same seed gives the same order");
#else
    (void)code, (void)seed_fail;
#endif
}

/* A mistake that is to be found was found. */
static bool is_enough(void)
{
#ifdef EXPECT_FINDINGS
    return found_count > 0;
#else
    return false;
#endif
}

static bool device_is_there(void)
{
    pid_t child = fork(); /* this process must not start CUDA */
    if (child == 0) {
        gn_device *device;
        bool is_there = gn_device_get(GN_DEVICE_CUDA, 0, &device) == GN_OK;
        if (!is_there)
            printf("skipped: %s\n", gn_error_detail());
        fflush(stdout);
        check_exit(is_there ? 0 : 1);
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(int argc, char **argv)
{
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 0) : 500;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    uint64_t step = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
    if (getenv("SIM_GPU_FINDINGS") == NULL)
        (void)setenv("SIM_GPU_FINDINGS", "silent", 1);
    report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(report != MAP_FAILED);
    if (argc > 2 && strcmp(argv[1], "here") == 0) {
        program_run(first, report);
        return check_result();
    }
    if (!device_is_there())
        return CHECK_SKIPPED;
    for (uint64_t i = 0; i < count && check_failures < 10 && !is_enough(); i++)
        seed_test(first + i * step);
    printf("%llu programs: %llu hand-overs, %llu events, %llu pending frees, %llu times out of "
           "memory, %llu recoveries, %llu folded pages, %llu hits, %llu streams and %llu threads "
           "ended; findings in %llu\n",
           (unsigned long long)count, (unsigned long long)total.handover_count,
           (unsigned long long)total.event_count, (unsigned long long)total.pending_count,
           (unsigned long long)total.out_of_memory_count, (unsigned long long)total.retry_count,
           (unsigned long long)total.folded_pages, (unsigned long long)total.stream_hit_count,
           (unsigned long long)total.destroyed_count, (unsigned long long)total.restart_count,
           (unsigned long long)found_count);
#ifdef EXPECT_FINDINGS
    CHECK(found_count > 0);
#else
    if (count >= 100) /* every path was taken */
        CHECK(total.handover_count > 0 && total.out_of_memory_count > 0 && total.retry_count > 0 &&
              total.pending_count > 0 && total.restart_count > 0 && total.destroyed_count > 0 &&
              total.stream_hit_count > 0);
#endif
    return check_result();
}
