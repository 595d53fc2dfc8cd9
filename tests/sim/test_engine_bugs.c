/*
 * test_engine_bugs.c: each planted bug of kernels/bugs.cu is found by name and line, and what looks
 * like one but is right is not.
 */
#include "test_engine.h"

/* The line of "mark: <name>" in bugs.cu. */
static int line_of(const char *mark)
{
    char path[512], text[512], wanted[64];
    snprintf(path, sizeof path, "%s/bugs.cu", KERNEL_DIRECTORY);
    snprintf(wanted, sizeof wanted, "mark: %s\n", mark);
    FILE *file = fopen(path, "r");
    int line = 0, found = 0;
    while (file != NULL && found == 0 && fgets(text, sizeof text, file) != NULL) {
        line++;
        if (strstr(text, wanted) != NULL)
            found = line;
    }
    if (file != NULL)
        fclose(file);
    CHECK(found > 0);
    return found;
}

static void text_check(const struct sim_report *report, const char *word)
{
    CHECK(strstr(report->text, word) != NULL);
    if (strstr(report->text, word) == NULL)
        fprintf(stderr, "    \"%s\" lacks \"%s\"\n", report->text, word);
}

/* Runs a kernel of bugs.cu on one block and expects this fault at its own mark. */
static struct sim_report bug_run(const char *name, unsigned threads, void *const *arguments,
                                 int order, enum sim_fault fault, CUresult result)
{
    struct sim_report report;
    struct run_options options = {
        .grid = {1, 1, 1}, .block = {threads, 1, 1}, .order = order, .accesses_max = 1 << 20};
    CHECK_U64(kernel_run(module_of("bugs.cu"), name, &options, arguments, &report), result);
    CHECK_U64(report.fault, fault);
    CHECK_TEXT(report.kernel, name);
    text_check(&report, name);
    CHECK_TEXT(report.place.file, "bugs.cu");
    CHECK_U64(report.place.line, line_of(name));
    return report;
}

/* The two accesses are found in the order in which they were made; either may come first. */
static void race_find(const char *name, unsigned threads, const char *one, const char *word)
{
    float *to = buffer_make(512);
    for (int order = 0; order < ORDER_COUNT; order++) {
        struct sim_report report;
        struct run_options options = {.grid = {1, 1, 1}, .block = {threads, 1, 1}, .order = order};
        CHECK_U64(kernel_run(module_of("bugs.cu"), name, &options, ARGUMENTS(&to), &report),
                  CUDA_ERROR_LAUNCH_FAILED);
        CHECK_U64(report.fault, SIM_FAULT_SHARED_RACE);
        text_check(&report, "race in shared memory: missing ");
        text_check(&report, word);
        int first = line_of(one), second = line_of(name);
        CHECK(report.place.line == first || report.place.line == second);
        CHECK(report.place.line + report.other.line == first + second);
        CHECK(memcmp(report.place.thread, report.other.thread, sizeof report.place.thread) != 0);
    }
    buffers_free();
}

static void race_in_shared_memory(void)
{
    race_find("missing_barrier", 128, "first", "__syncthreads");
}

static void race_within_a_warp(void)
{
    race_find("missing_warp_barrier", 32, "first_of_warp", "__syncwarp or __syncthreads");
    float *to = buffer_make(256);
    for (int order = 0; order < ORDER_COUNT; order++) {
        struct run_options options = {.grid = {2, 1, 1}, .block = {32, 1, 1}, .order = order};
        kernel_run_well(module_of("bugs.cu"), "ordered_by_shuffle", &options, ARGUMENTS(&to));
    }
    buffers_free();
}

static void race_with_the_next_round(void)
{
    float *to = buffer_make(512);
    int rounds = 1;
    struct run_options options = {.grid = {1, 1, 1}, .block = {128, 1, 1}};
    kernel_run_well(module_of("bugs.cu"), "missing_second_barrier", &options,
                    ARGUMENTS(&to, &rounds));
    rounds = 2;
    struct sim_report report = bug_run("missing_second_barrier", 128, ARGUMENTS(&to, &rounds), 0,
                                       SIM_FAULT_SHARED_RACE, CUDA_ERROR_LAUNCH_FAILED);
    CHECK(report.place.is_write && !report.other.is_write);
    CHECK_U64(report.place.thread[0], 64);
    buffers_free();
}

/* Runs a kernel on some blocks, and expects a race between two of them. */
static struct sim_report blocks_race(const char *name, unsigned threads, void *const *arguments,
                                     int order)
{
    struct sim_report report;
    struct run_options options = {.grid = {3, 1, 1}, .block = {threads, 1, 1}, .order = order};
    CHECK_U64(kernel_run(module_of("bugs.cu"), name, &options, arguments, &report),
              CUDA_ERROR_LAUNCH_FAILED);
    CHECK_U64(report.fault, SIM_FAULT_GLOBAL_RACE);
    text_check(&report, "race in global memory: two blocks");
    CHECK(memcmp(report.place.block, report.other.block, sizeof report.place.block) != 0);
    return report;
}

static void race_between_blocks(void)
{
    float *to = buffer_make(512);
    for (int order = 0; order < ORDER_COUNT; order++) {
        struct sim_report report = blocks_race("blocks_meet", 32, ARGUMENTS(&to), order);
        CHECK_U64(report.place.line, line_of("blocks_meet"));
        CHECK_U64(report.other.line, line_of("blocks_meet"));
        CHECK(report.place.is_write && report.other.is_write);
        report = blocks_race("blocks_shift", 32, ARGUMENTS(&to), order);
        int read = line_of("shift_read"), write = line_of("blocks_shift");
        CHECK_U64(report.place.line, (report.place.is_write ? write : read));
        CHECK_U64(report.other.line, (report.other.is_write ? write : read));
        CHECK(report.place.is_write != report.other.is_write);
    }
    buffers_free();
}

/* What blocks leave for the last one needs both fences, and the barriers, unless one thread does it all. */
static void race_without_fences(void)
{
    enum {
        BARRIER = 1,
        FENCE = 2,
        FENCE_AFTER = 4,
        BARRIER_AFTER = 8,
        ALL = 15
    };
    float *left = buffer_make(16), *to = buffer_make(4);
    unsigned *count = buffer_make(4);
    *count = 0;
    for (int order = 0; order < ORDER_COUNT; order++) {
        struct run_options options = {.grid = {3, 1, 1}, .block = {64, 1, 1}, .order = order};
        int steps = ALL;
        for (int again = 0; again < 2; again++) {
            kernel_run_well(module_of("bugs.cu"), "last_adds", &options,
                            ARGUMENTS(&left, &count, &to, &steps));
            CHECK(*to == 3.0f);
        }
        for (int missing = BARRIER; missing <= FENCE_AFTER; missing *= 2) {
            steps = ALL & ~missing;
            struct sim_report report =
                blocks_race("last_adds", 64, ARGUMENTS(&left, &count, &to, &steps), order);
            CHECK_U64(report.place.line, line_of("last_adds"));
            CHECK_U64(report.other.line, line_of("last_left"));
            CHECK(!report.place.is_write && report.other.is_write);
            *count = 0;
        }
        steps = ALL & ~BARRIER_AFTER;
        kernel_run_well(module_of("bugs.cu"), "last_adds", &options,
                        ARGUMENTS(&left, &count, &to, &steps));
        *count = 0;
    }
    buffers_free();
}

static void bounds(void)
{
    int n = 100;
    float *to = buffer_make((size_t)n * sizeof *to);
    for (int is_every_access = 0; is_every_access < 2; is_every_access++) {
        struct sim_report report;
        struct run_options options = {
            .grid = {2, 1, 1}, .block = {64, 1, 1}, .is_every_access = is_every_access != 0};
        CHECK_U64(kernel_run(module_of("bugs.cu"), "store_out_of_bounds", &options,
                             ARGUMENTS(&to, &n), &report),
                  CUDA_ERROR_ILLEGAL_ADDRESS);
        CHECK_U64(report.fault, SIM_FAULT_OUT_OF_BOUNDS);
        CHECK_U64(report.place.line, line_of("store_out_of_bounds"));
        CHECK_U64(report.address, (uintptr_t)(to + n));
        CHECK(report.place.block[0] == 1 && report.place.thread[0] == 36 && report.place.is_write);
        text_check(&report, "block (1, 0, 0), thread (36, 0, 0)");
    }
    float *null = NULL;
    struct sim_report report = bug_run("read_null", 4, ARGUMENTS(&null, &to), 0,
                                       SIM_FAULT_OUT_OF_BOUNDS, CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(!report.place.is_write && report.address == 0);
    buffers_free();
}

/* A kernel that may begin before the one before it has ended must wait for that. */
static void early(void)
{
    float *to = buffer_make(sizeof *to);
    struct sim_report report;
    struct run_options options = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    kernel_run_well(module_of("bugs.cu"), "without_wait", &options, ARGUMENTS(&to));
    options.is_early = true;
    CHECK_U64(kernel_run(module_of("bugs.cu"), "without_wait", &options, ARGUMENTS(&to), &report),
              CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_U64(report.fault, SIM_FAULT_EARLY);
    CHECK_U64(report.place.line, line_of("without_wait"));
    text_check(&report, "access before cudaGridDependencySynchronize()");
    buffers_free();
}

static void alignment(void)
{
    float *from = buffer_make(64), *to = buffer_make(64);
    bug_run("misaligned", 1, ARGUMENTS(&from, &to), 0, SIM_FAULT_MISALIGNED,
            CUDA_ERROR_MISALIGNED_ADDRESS);
    buffers_free();
}

static void bounds_of_shared_memory(void)
{
    float *to = buffer_make(256);
    struct sim_report report;
    struct run_options options = {
        .grid = {1, 1, 1}, .block = {64, 1, 1}, .shared_nbytes = 63 * sizeof(float)};
    CHECK_U64(
        kernel_run(module_of("bugs.cu"), "shared_out_of_bounds", &options, ARGUMENTS(&to), &report),
        CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_U64(report.place.line, line_of("shared_out_of_bounds"));
    CHECK_U64(report.place.thread[0], 63);
    text_check(&report, "252 bytes of dynamic shared memory");
    options.shared_nbytes += sizeof(float);
    kernel_run_well(module_of("bugs.cu"), "shared_out_of_bounds", &options, ARGUMENTS(&to));
    buffers_free();
}

static void absent_lanes(void)
{
    int *to = buffer_make(128);
    for (int order = 0; order < ORDER_COUNT; order++) {
        struct sim_report report = bug_run("shuffle_absent", 32, ARGUMENTS(&to), order,
                                           SIM_FAULT_ABSENT_LANE, CUDA_ERROR_LAUNCH_FAILED);
        text_check(&report, "shuffle with an absent lane");
        CHECK_U64(report.other.line, line_of("elsewhere"));
        report = bug_run("shuffle_ended", 32, ARGUMENTS(&to), order, SIM_FAULT_ABSENT_LANE,
                         CUDA_ERROR_LAUNCH_FAILED);
        text_check(&report, "shuffle with an absent lane");
    }
    bug_run("shuffle_outside", 32, ARGUMENTS(&to), 0, SIM_FAULT_BAD_MASK, CUDA_ERROR_LAUNCH_FAILED);
    bug_run("not_in_mask", 32, ARGUMENTS(&to), 1, SIM_FAULT_BAD_MASK, CUDA_ERROR_LAUNCH_FAILED);
    buffers_free();
}

static void divergent_barriers(void)
{
    int *to = buffer_make(1024);
    for (int order = 0; order < ORDER_COUNT; order++) {
        struct sim_report report = bug_run("divergent_barrier", 96, ARGUMENTS(&to), order,
                                           SIM_FAULT_DIVERGENT_BARRIER, CUDA_ERROR_LAUNCH_FAILED);
        text_check(&report, "divergent barrier");
        CHECK_U64(report.other.line, line_of("divergent_other"));
        struct run_options options = {.grid = {1, 1, 1}, .block = {100, 1, 1}, .order = order};
        kernel_run_well(module_of("bugs.cu"), "ended_before_barrier", &options, ARGUMENTS(&to));
    }
    buffers_free();
}

static void assertions_and_traps(void)
{
    int *to = buffer_make(64);
    struct sim_report report =
        bug_run("fails_assertion", 16, ARGUMENTS(&to), 0, SIM_FAULT_ASSERT, CUDA_ERROR_ASSERT);
    text_check(&report, ".x < 5");
    CHECK_U64(report.place.thread[0], 5);
    bug_run("traps", 16, ARGUMENTS(&to), 1, SIM_FAULT_TRAP, CUDA_ERROR_LAUNCH_FAILED);
    buffers_free();
}

static void endless_loops(void)
{
    int *flag = buffer_make(sizeof *flag), *to = buffer_make(256);
    *flag = 0;
    bug_run("waits_for_ever", 1, ARGUMENTS(&flag), 0, SIM_FAULT_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT);
    for (int order = 0; order < ORDER_COUNT; order++) {
        *flag = 0;
        struct run_options options = {.grid = {1, 1, 1}, .block = {64, 1, 1}, .order = order};
        kernel_run_well(module_of("bugs.cu"), "waits_for_neighbour", &options,
                        ARGUMENTS(&flag, &to));
        CHECK(to[0] == 1);
    }
    buffers_free();
}

static void launches_that_cannot_be(void)
{
    int *to = buffer_make(4);
    struct sim_report report;
    struct sim_module *module = module_of("reduce.cu");
    struct run_options options = {.grid = {1, 1, 1}, .block = {257, 1, 1}};
    /* __launch_bounds__(256) */
    CHECK_U64(kernel_run(module, "block_sum", &options, ARGUMENTS(&to, &to, &to), &report),
              CUDA_ERROR_INVALID_VALUE);
    CHECK_U64(report.fault, SIM_FAULT_BAD_LAUNCH);
    CHECK_U64(sim_module_find(module, "block_sum")->max_threads_per_block, 256);
    CHECK_U64(sim_module_find(module, "block_scan")->max_threads_per_block, 1024);
    options.block[0] = 0;
    CHECK_U64(kernel_run(module, "barrier_votes", &options, ARGUMENTS(&to), &report),
              CUDA_ERROR_INVALID_VALUE);
    options.block[0] = 1025;
    CHECK_U64(kernel_run(module, "barrier_votes", &options, ARGUMENTS(&to), &report),
              CUDA_ERROR_INVALID_VALUE);
    options.block[0] = 1;
    options.grid[2] = 65536;
    CHECK_U64(kernel_run(module, "barrier_votes", &options, ARGUMENTS(&to), &report),
              CUDA_ERROR_INVALID_VALUE);
    buffers_free();
}

void test_engine_bugs(void)
{
    RUN(absent_lanes);
    RUN(divergent_barriers);
    RUN(assertions_and_traps);
    RUN(launches_that_cannot_be);
    if (!has_checks())
        return;
    RUN(race_in_shared_memory);
    RUN(race_within_a_warp);
    RUN(race_with_the_next_round);
    RUN(race_between_blocks);
    RUN(race_without_fences);
    RUN(bounds);
    RUN(early);
    RUN(alignment);
    RUN(bounds_of_shared_memory);
    RUN(endless_loops);
}
