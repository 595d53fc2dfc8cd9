/*
 * test_tune.c: choices that are measured: which candidates are tried, what is chosen, kept, read back and forgotten, and
 * what is not measured at all; then every candidate of every operation, against the default. On the simulator or a real
 * GPU, with times that the test makes up. Exits with 77 where there is no device or no NVRTC.
 */
#include "check.h"

#include "base/host.h"
#include "base/thread.h"
#include "control.h"
#include "device/cuda/driver.h"
#include "device/cuda/library.h"
#include "genesis/genesis.h"
#include "jit/disk_cache.h"
#include "jit/tune.h"

#include <dirent.h>
#include <math.h>
#include <unistd.h>

enum {
    MODE_OFF,
    MODE_ON,
    MODE_MAX,
    LARGE = 64 << 20, /* bytes, of a problem that is worth it */
    LISTED_MOST = 64,
    ALL = 99, /* candidates */
};

static gn_device *device, *cpu;
static gn_stream *stream;
static char root[] = "/tmp/genesis-test-XXXXXX";

/* ---- problems that do nothing ---------------------------------------------------------------- */

/* A problem with candidates 0 to 3, of which the last sums in another order. */
struct problem {
    double times[4];                         /* that the clock tells */
    int failing;                             /* this candidate cannot be run; -1: all can */
    int runs[4], last;                       /* how often each was run, and which came last */
    unsigned sleep_us;                       /* that a run takes */
    void (*during)(struct problem *problem); /* (optional) in each run */
    int class_number;
    unsigned waiting; /* candidates that are not ready, as bits */
};

static const struct gni_tune_family family = {.name = "test",
                                              .extents = {"size", "number"},
                                              .plain = 1 << 1,
                                              .values = {"candidate", "other"}};

static gn_status problem_run(void *context, const struct gni_choice *choice)
{
    struct problem *problem = context;
    int at = choice->values[0];
    problem->runs[at]++;
    problem->last = at;
    if (problem->during != NULL)
        problem->during(problem);
    if (problem->sleep_us > 0)
        (void)usleep(problem->sleep_us);
    bool is_failing = at == problem->failing || problem->failing == ALL;
    return is_failing ? gni_error(GN_ERROR_COMPILATION, "it does not compile") : GN_OK;
}

static bool problem_is_ready(void *context, const struct gni_choice *choice)
{
    const struct problem *problem = context;
    return (problem->waiting >> choice->values[0] & 1) == 0;
}

static int problem_list(void *context, struct gni_choice *choices)
{
    (void)context;
    for (int i = 0; i < 3; i++)
        choices[i] = (struct gni_choice){.values = {i + 1, i % 2}, .is_reordering = i == 2};
    return 3;
}

static double problem_clock(const struct gni_tune *tune, const struct gni_choice *choice)
{
    const struct problem *problem = tune->context;
    return problem->times[choice->values[0]];
}

static struct gni_tune tune_of(struct problem *problem, uint64_t nbytes, gn_stream *where)
{
    return (struct gni_tune){.family = &family,
                             .stream = where,
                             .type = "float32",
                             .nbytes = nbytes,
                             .extents = {gni_tune_log(1000), problem->class_number},
                             .context = problem,
                             .run = problem_run,
                             .is_ready = problem_is_ready,
                             .list = problem_list};
}

static gn_status problem_solve(struct problem *problem)
{
    struct gni_tune tune = tune_of(problem, LARGE, stream);
    memset(problem->runs, 0, sizeof problem->runs);
    return gni_tune_run(&tune);
}

static int runs_of(const struct problem *problem)
{
    return problem->runs[0] + problem->runs[1] + problem->runs[2] + problem->runs[3];
}

/* Nothing is known, and classes that a test has not used. */
static void forget(int mode)
{
    CHECK_OK(gn_kernel_cache_clear(NULL));
    gni_tune_set_mode(mode);
}

/* ---- what is chosen -------------------------------------------------------------------------- */

static void test_logarithms(void)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 16, 10000, 12287, 12288};
    static const int logs[] = {0, 0, 2, 3, 4, 4, 5, 5, 6, 6, 7, 8, 26, 26, 27};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        CHECK_U64(gni_tune_log(sizes[i]), logs[i]);
    CHECK_U64(gni_tune_log(INT64_MAX), 125);
}

/* A class is not decided before all candidates are ready, and a choice that is not is not run. */
static void test_candidates_that_are_not_ready(void)
{
    struct problem problem = {.times = {9, 7, 5, 1}, .failing = -1, .waiting = 1 << 2};
    forget(MODE_ON);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(problem_solve(&problem));
        CHECK_U64(runs_of(&problem), 1);
        CHECK_U64(problem.last, 0);
    }
    problem.waiting = 0;
    CHECK_OK(problem_solve(&problem));
    CHECK_U64(problem.last, 2);
    problem.waiting = 1 << 2; /* as in a process that finds the choice on disk */
    CHECK_OK(problem_solve(&problem));
    CHECK_U64(problem.runs[0], 1);
    CHECK_U64(runs_of(&problem), 1);
    problem.waiting = 0;
    CHECK_OK(problem_solve(&problem));
    CHECK_U64(problem.last, 2);
}

/* The sizes of each class, as people read them, follow each other without a gap. */
static void test_classes_in_words(void)
{
    static const char *const words[] = {"0..1", NULL, "2..2", "3..3", "4..5", "6..7", "8..11"};
    for (int log = 0; log < (int)(sizeof words / sizeof *words); log++) {
        struct problem problem = {.times = {9, 7, 5, 1}, .failing = -1};
        struct gni_tune tune = tune_of(&problem, LARGE, stream);
        char expected[64];
        gn_tuning found;
        size_t count = 0;
        if (words[log] == NULL)
            continue; /* no size has it */
        forget(MODE_ON);
        tune.extents[0] = log;
        CHECK_OK(gni_tune_run(&tune));
        CHECK_OK(gn_tuning_list(&found, 1, &count));
        (void)snprintf(expected, sizeof expected, "float32 size=%s number=0", words[log]);
        CHECK_U64(count, 1);
        CHECK_TEXT(found.problem, expected);
    }
}

static void test_off_and_small(void)
{
    struct problem problem = {.times = {9, 1, 1, 1}, .failing = -1};
    uint64_t before = gni_tune_measure_count();
    forget(MODE_OFF);
    CHECK_OK(problem_solve(&problem));
    CHECK(runs_of(&problem) == 1 && problem.last == 0);
    for (int mode = MODE_ON; mode <= MODE_MAX; mode++) {
        struct gni_tune tune = tune_of(&problem, 1000, stream);
        forget(mode);
        CHECK_OK(gni_tune_run(&tune));
        CHECK_U64(problem.last, 0);
    }
    CHECK_U64(gni_tune_measure_count(), before);
}

static void test_the_fastest(void)
{
    struct problem problem = {.times = {9, 7, 5, 1}, .failing = -1};
    uint64_t before = gni_tune_measure_count();
    forget(MODE_ON);
    CHECK_OK(problem_solve(&problem));
    CHECK(problem.runs[0] > 2 && problem.runs[1] > 2 && problem.runs[2] > 2);
    CHECK_U64(problem.runs[3], 0); /* sums in another order */
    CHECK_U64(problem.last, 2);    /* its result is what stays */
    CHECK_U64(gni_tune_measure_count(), before + 1);
    problem.times[0] = 1; /* too late */
    CHECK_OK(problem_solve(&problem));
    CHECK(runs_of(&problem) == 1 && problem.last == 2);
    problem.class_number = 1; /* another class */
    CHECK_OK(problem_solve(&problem));
    CHECK_U64(problem.last, 0);
    CHECK_U64(gni_tune_measure_count(), before + 2);

    forget(MODE_MAX);
    problem.times[0] = 9;
    CHECK_OK(problem_solve(&problem));
    CHECK_U64(problem.last, 3);
}

/* A fiftieth is noise. */
static void test_the_default_needs_a_reason(void)
{
    struct problem problem = {.times = {1, 0.985, 0.99, 1}, .failing = -1};
    forget(MODE_ON);
    CHECK_OK(problem_solve(&problem));
    CHECK_U64(problem.last, 0);
    problem = (struct problem){.times = {1, 0.97, 0.96, 1}, .failing = -1, .class_number = 1};
    CHECK_OK(problem_solve(&problem));
    CHECK_U64(problem.last, 2);
}

static void test_candidates_that_fail(void)
{
    struct problem problem = {.times = {9, 7, 1, 1}, .failing = 2};
    gn_tuning found;
    size_t count;
    forget(MODE_ON);
    CHECK_OK(problem_solve(&problem));
    CHECK(problem.last == 1 && problem.runs[2] == 1);
    CHECK_OK(gn_tuning_list(&found, 1, &count));
    CHECK_U64(count, 1);
    CHECK(found.candidates[2].milliseconds < 0 && found.candidates[1].milliseconds > 6);
    problem = (struct problem){.times = {1, 2, 3, 4}, .failing = 0, .class_number = 1};
    CHECK_OK(problem_solve(&problem)); /* something else works */
    CHECK_U64(problem.last, 1);
    gni_tune_set_mode(MODE_OFF);
    CHECK_STATUS(problem_solve(&problem), GN_ERROR_COMPILATION);
}

/* What fails altogether is not remembered. */
static void test_all_fail(void)
{
    struct problem problem = {.times = {9, 7, 1, 1}, .failing = ALL};
    size_t count;
    forget(MODE_ON);
    CHECK_STATUS(problem_solve(&problem), GN_ERROR_COMPILATION);
    CHECK_OK(gn_tuning_list(NULL, 0, &count));
    CHECK_U64(count, 0);
    problem.failing = -1;
    CHECK_OK(problem_solve(&problem));
    CHECK_U64(problem.last, 2);
}

static void test_the_list(void)
{
    struct problem problem = {.times = {9, 7, 5, 1}, .failing = -1};
    gn_tuning found[2];
    size_t count = 99;
    forget(MODE_ON);
    CHECK_OK(gn_tuning_list(NULL, 0, &count));
    CHECK_U64(count, 0);
    CHECK_OK(problem_solve(&problem));
    for (int i = 0; i < 2; i++) { /* from the process, and from the disk */
        CHECK_OK(gn_tuning_list(found, 2, &count));
        CHECK_U64(count, 1);
        CHECK_TEXT(found[0].kernel, "test");
        CHECK_TEXT(found[0].problem, "float32 size=768..1023 number=0");
        CHECK(strstr(found[0].device, "genesis ") != NULL);
        CHECK(strstr(found[0].device, "driver ") != NULL);
        CHECK(found[0].count == 3 && found[0].chosen == 2);
        CHECK_TEXT(found[0].candidates[2].values, "candidate=2 other=1");
        CHECK(found[0].candidates[0].milliseconds == 9);
        gni_tune_clear();
    }
    CHECK_OK(gn_kernel_cache_clear(&count));
    CHECK(count >= 1);
    CHECK_OK(gn_tuning_list(found, 2, &count));
    CHECK_U64(count, 0);
    CHECK_STATUS(gn_tuning_list(NULL, 1, &count), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_tuning_list(found, 1, NULL), GN_ERROR_INVALID_VALUE);
}

/* ---- what is kept ---------------------------------------------------------------------------- */

static char entry_path[512], aside_path[520];

/* The one entry there is. */
static void entry_find(void)
{
    DIR *found = opendir(root);
    entry_path[0] = '\0';
    for (struct dirent *item; found != NULL && (item = readdir(found)) != NULL;)
        if (strstr(item->d_name, ".gk") != NULL)
            (void)snprintf(entry_path, sizeof entry_path, "%s/%s", root, item->d_name);
    (void)closedir(found);
    (void)snprintf(aside_path, sizeof aside_path, "%s.aside", entry_path);
    CHECK(entry_path[0] != '\0');
}

static void test_the_next_process(void)
{
    struct problem problem = {.times = {9, 1, 5, 1}, .failing = -1};
    forget(MODE_ON);
    CHECK_OK(problem_solve(&problem));
    uint64_t before = gni_tune_measure_count();
    gni_tune_clear();
    problem.times[2] = 0.1; /* nobody measures it */
    CHECK_OK(problem_solve(&problem));
    CHECK(runs_of(&problem) == 1 && problem.last == 1);
    CHECK_U64(gni_tune_measure_count(), before);
    gni_tune_clear();
    gni_tune_set_mode(MODE_MAX); /* has more candidates, so it is another entry */
    problem.times[3] = 0.01;
    CHECK_OK(problem_solve(&problem));
    CHECK_U64(problem.last, 3);
    gni_tune_clear();
    gni_tune_set_mode(MODE_ON); /* and this one is as it was: T1 */
    CHECK_OK(problem_solve(&problem));
    CHECK_U64(problem.last, 1);
}

static void entry_damage(long at)
{
    FILE *file = fopen(entry_path, "r+b");
    CHECK(file != NULL && fseek(file, at, at < 0 ? SEEK_END : SEEK_SET) == 0);
    int byte = fgetc(file);
    (void)fseek(file, -1, SEEK_CUR);
    (void)fputc(byte ^ 0x40, file);
    (void)fclose(file);
}

static void test_damaged_entries(void)
{
    static const long places[] = {0, 20, 60, 100, 800, -1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct problem problem = {.times = {9, 1, 5, 1}, .failing = -1};
        forget(MODE_ON);
        CHECK_OK(problem_solve(&problem));
        entry_find();
        entry_damage(places[i]);
        gni_tune_clear();
        uint64_t before = gni_tune_measure_count();
        problem.times[2] = 0.1;
        CHECK_OK(problem_solve(&problem));
        CHECK_U64(problem.last, 2);
        CHECK_U64(gni_tune_measure_count(), before + 1);
    }
    /* What is whole, and of another meaning. */
    struct problem problem = {.times = {9, 1, 5, 1}, .failing = -1};
    gn_tuning record;
    size_t count;
    forget(MODE_ON);
    CHECK_OK(problem_solve(&problem));
    CHECK_OK(gn_tuning_list(&record, 1, &count));
    entry_find();
    struct gni_disk_key key;
    const char *name = strrchr(entry_path, '/') + 1;
    for (size_t i = 0; i < sizeof key.digest; i++) {
        char two[3] = {name[2 * i], name[2 * i + 1], '\0'};
        key.digest[i] = (uint8_t)strtoul(two, NULL, 16);
    }
    for (int i = 0; i < 11; i++) {
        gn_tuning wrong = record;
        wrong.chosen = i == 0 ? 3 : i == 1 ? -1 : wrong.chosen;
        wrong.count = i == 2 ? 1000 : i == 3 ? 0 : i == 4 ? 2 : wrong.count;
        wrong.chosen = i == 4 ? 0 : wrong.chosen;
        char *text = i == 5   ? wrong.kernel
                     : i == 6 ? wrong.problem
                     : i == 7 ? wrong.device
                     : i == 8 ? wrong.candidates[2].values
                              : NULL;
        size_t size = i == 5   ? sizeof wrong.kernel
                      : i == 6 ? sizeof wrong.problem
                      : i == 7 ? sizeof wrong.device
                               : sizeof wrong.candidates[2].values;
        if (text != NULL)
            memset(text, 'x', size);
        gni_disk_cache_store(&key, i == 9 ? "another" : "tuning", &wrong,
                             i == 10 ? sizeof wrong - 1 : sizeof wrong);
        gni_tune_clear();
        if (i != 4) { /* which is right, but of another list of candidates */
            CHECK_OK(gn_tuning_list(NULL, 0, &count));
            CHECK_U64(count, 0);
        }
        uint64_t before = gni_tune_measure_count();
        CHECK_OK(problem_solve(&problem));
        CHECK_U64(problem.last, 1);
        CHECK_U64(gni_tune_measure_count(), before + 1);
    }
}

static void other_process_stores(struct problem *problem)
{
    (void)problem;
    (void)rename(aside_path, entry_path);
}

/* Another process stores its choice while this one measures: that holds for both. */
static void test_two_processes(void)
{
    struct problem problem = {.times = {9, 1, 5, 1}, .failing = -1};
    forget(MODE_MAX);
    CHECK_OK(problem_solve(&problem));
    entry_find();
    CHECK(rename(entry_path, aside_path) == 0);
    gni_tune_clear();
    problem.times[2] = 0.1;
    problem.during = other_process_stores;
    CHECK_OK(problem_solve(&problem));
    CHECK(runs_of(&problem) > 4 && problem.last == 1);
}

/* ---- what is not measured -------------------------------------------------------------------- */

static void solve_another(struct problem *problem)
{
    struct problem other = {.times = {9, 1, 1, 1}, .failing = -1, .class_number = 77};
    problem->during = NULL; /* once */
    CHECK_OK(problem_solve(&other));
    CHECK(runs_of(&other) == 1 && other.last == 0);
}

static void test_one_at_a_time(void)
{
    struct problem problem = {.times = {9, 1, 5, 1}, .failing = -1, .during = solve_another};
    forget(MODE_ON);
    CHECK_OK(problem_solve(&problem));
    CHECK_U64(problem.last, 1);
    CHECK(problem.during == NULL);
}

/* Captured work does not run. With `on` it is measured later; with `max` bits must not change any more. */
static void test_captures(void)
{
    for (int mode = MODE_ON; mode <= MODE_MAX; mode++) {
        struct problem problem = {.times = {9, 1, 5, 7}, .failing = -1};
        gn_stream *own;
        struct gni_graph graph;
        forget(mode);
        CHECK_OK(gn_stream_create(device, 0, 0, &own));
        struct gni_tune tune = tune_of(&problem, LARGE, own);
        CHECK_OK(device->ops->graph_begin(own));
        CHECK_OK(gni_tune_run(&tune));
        CHECK(runs_of(&problem) == 1 && problem.last == 0);
        CHECK_OK(device->ops->graph_end(own, &graph));
        device->ops->graph_close(&graph);
        CHECK_OK(problem_solve(&problem));
        CHECK_U64(problem.last, mode == MODE_ON ? 1 : 0);
        gn_stream_release(own);
    }
}

static void test_profiles(void)
{
    struct problem problem = {.times = {9, 1, 5, 1}, .failing = -1};
    forget(MODE_ON);
    CHECK_OK(gn_profile_enable(true));
    CHECK_OK(problem_solve(&problem));
    CHECK_U64(runs_of(&problem), 1);
    CHECK_OK(gn_profile_enable(false));
    CHECK_OK(problem_solve(&problem));
    CHECK_U64(problem.last, 1);
}

/* A class takes some rounds and no more, and the process two seconds for all. */
static void test_the_bounds(void)
{
    uint64_t before = gni_tune_measure_count(), begin_ns = gni_time_ns();
    forget(MODE_ON);
    for (int i = 0; i < 12; i++) {
        struct problem problem = {
            .times = {9, 1, 5, 1}, .failing = -1, .sleep_us = 40000, .class_number = i};
        CHECK_OK(problem_solve(&problem));
        CHECK(runs_of(&problem) < 12); /* six to warm up, two or three in 50 ms, and the last */
        problem.sleep_us = 0;
        int last = problem.last;
        CHECK_OK(problem_solve(&problem)); /* decided, one way or the other */
        CHECK(problem.last == last && runs_of(&problem) == 1);
    }
    uint64_t measured = gni_tune_measure_count() - before;
    CHECK(measured > 1 && measured < 12);
    CHECK(gni_time_ns() - begin_ns < 20000000000u);
}

/* Each allocation fails once: the problem is solved all the same. */
static void test_host_memory_faults(void)
{
    for (long nth = 1; nth < 40; nth++) {
        struct problem problem = {.times = {9, 1, 5, 1}, .failing = -1};
        forget(MODE_ON);
        gni_host_fail_after(nth);
        CHECK_OK(problem_solve(&problem));
        gni_host_fail_after(-1);
        CHECK(problem.last == 0 || problem.last == 1);
        CHECK_OK(problem_solve(&problem));
    }
}

/* ---- timing that fails ----------------------------------------------------------------------- */

static struct sim_control control;

/* Each call that times a run fails once: that candidate is passed over, and the problem is solved. */
static void test_timing_that_fails(void)
{
    static const char *const functions[] = {"cuEventCreate", "cuEventRecord", "cuEventSynchronize",
                                            "cuEventElapsedTime", "cuStreamIsCapturing"};
    const struct gni_cuda_driver *driver;
    size_t count;
    CHECK_OK(gni_cuda_driver_open(&driver));
    if (!sim_control_load(driver->path, &control))
        return; /* a real one does not fail on order */
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        int struck = 1;
        for (int nth = 1; struck > 0; nth++) {
            struct problem problem = {.times = {9, 1, 5, 1}, .failing = -1};
            forget(MODE_ON);
            control.fail(functions[i], nth, CUDA_ERROR_UNKNOWN, 0);
            CHECK_OK(problem_solve(&problem));
            struck = control.fault_count();
            control.fail(NULL, 0, 0, 0);
            if (struck == 0)
                CHECK_U64(problem.last, 1);
            CHECK(problem.last >= 0 && problem.last < 3);
            CHECK(nth < 100);
        }
        /* Nothing can be timed: the default, which is not kept, and another try later. */
        struct problem problem = {.times = {9, 1, 5, 1}, .failing = -1};
        forget(MODE_ON);
        control.fail(functions[i], 1, CUDA_ERROR_UNKNOWN, 1);
        CHECK_OK(problem_solve(&problem));
        CHECK_U64(problem.last, 0);
        CHECK(control.fault_count() > 0);
        control.fail(NULL, 0, 0, 0);
        CHECK_OK(gn_tuning_list(NULL, 0, &count));
        CHECK_U64(count, 0);
        CHECK_OK(problem_solve(&problem));
        CHECK_U64(problem.last, 1);
    }
}

static void becomes_faster(struct problem *problem)
{
    problem->times[2] *= 0.999;
}

/* The best of all rounds counts; a clock that shows nothing is no division by zero. */
static void test_clocks(void)
{
    struct problem problem = {.times = {9, 5, 4, 1}, .failing = -1, .during = becomes_faster};
    gn_tuning found;
    size_t count;
    forget(MODE_ON);
    CHECK_OK(problem_solve(&problem));
    CHECK_U64(problem.last, 2);
    CHECK_OK(gn_tuning_list(&found, 1, &count));
    CHECK(count == 1 && found.candidates[2].milliseconds < 4 * 0.99);
    problem = (struct problem){.times = {0, 0, 0, 0}, .failing = -1, .class_number = 1};
    CHECK_OK(problem_solve(&problem));
    CHECK_U64(problem.last, 0);
    CHECK(problem.runs[0] > 3 && problem.runs[1] > 3);
}

static int no_others(void *context, struct gni_choice *choices)
{
    (void)context, (void)choices;
    return 0;
}

static int many_others(void *context, struct gni_choice *choices)
{
    (void)context;
    for (int i = 0; i < GNI_TUNE_OTHERS_MOST; i++)
        choices[i] = (struct gni_choice){.values = {1 + i % 2, i}};
    return GNI_TUNE_OTHERS_MOST;
}

/* A problem without a choice is not measured; of very many candidates `on` takes the first five, as
 * docs/cuda.md says. */
static void test_how_many_candidates(void)
{
    struct problem problem = {.times = {9, 1, 1, 1}, .failing = -1};
    struct gni_tune tune = tune_of(&problem, LARGE, stream);
    uint64_t before = gni_tune_measure_count();
    gn_tuning found;
    size_t count;
    forget(MODE_ON);
    tune.list = no_others;
    for (int i = 0; i < 2; i++)
        CHECK_OK(gni_tune_run(&tune));
    CHECK(runs_of(&problem) == 2 && problem.last == 0);
    CHECK_U64(gni_tune_measure_count(), before);
    forget(MODE_ON);
    tune.list = many_others;
    CHECK_OK(gni_tune_run(&tune));
    CHECK_OK(gn_tuning_list(&found, 1, &count));
    CHECK_U64(count, 1);
    CHECK_U64(found.count, 5);
    gni_tune_force(1000); /* there is none: the last one */
    memset(problem.runs, 0, sizeof problem.runs);
    CHECK_OK(gni_tune_run(&tune));
    CHECK_U64(runs_of(&problem), 1);
    CHECK_U64(problem.last, 1 + (GNI_TUNE_OTHERS_MOST - 1) % 2);
    gni_tune_force(-1);
}

/* Texts that do not fit are cut. */
static void test_long_names(void)
{
    static char name[400];
    memset(name, 'n', sizeof name - 1);
    const struct gni_tune_family long_family = {.name = name,
                                                .extents = {name, name, name, name, name, name},
                                                .values = {name, name, name, name}};
    static const struct gni_tune_family full = {
        .name = "full", .extents = {"a", "b", "c", "d", "e", "f"}, .values = {"v", "w", "x", "y"}};
    struct problem problem = {.times = {9, 1, 5, 1}, .failing = -1};
    gn_tuning found;
    size_t count;
    forget(MODE_ON);
    struct gni_tune tune = tune_of(&problem, LARGE, stream);
    tune.family = &long_family;
    CHECK_OK(gni_tune_run(&tune));
    CHECK_OK(gn_tuning_list(&found, 1, &count));
    CHECK_U64(strlen(found.kernel), sizeof found.kernel - 1);
    CHECK_U64(strlen(found.problem), sizeof found.problem - 1);
    CHECK_U64(strlen(found.candidates[0].values), sizeof found.candidates[0].values - 1);
    forget(MODE_ON);
    tune.family = &full;
    CHECK_OK(gni_tune_run(&tune));
    CHECK_OK(gn_tuning_list(&found, 1, &count));
    CHECK_TEXT(found.problem, "float32 a=768..1023 b=0..1 c=0..1 d=0..1 e=0..1 f=0..1");
    CHECK_TEXT(found.candidates[1].values, "v=1 w=0 x=0 y=0");
    gni_tune_clear(); /* the name of the first is not there for ever */
}

/* ---- every candidate of every operation ------------------------------------------------------ */

struct operation {
    const char *name;
    gn_dtype dtype;
    int64_t rows, columns;
    gn_status (*run)(const struct operation *operation, gn_tensor *tensor, gn_tensor **result);
    gn_reduction reduction;
    int dimension; /* -1: all */
    bool is_log;
    int candidates; /* with `max` */
};

static gn_status softmax_of(const struct operation *operation, gn_tensor *tensor,
                            gn_tensor **result)
{
    return gn_softmax(tensor, operation->dimension, operation->is_log, result);
}

static gn_status reduce_of(const struct operation *operation, gn_tensor *tensor, gn_tensor **result)
{
    uint32_t dimensions = operation->dimension < 0 ? 0 : 1u << operation->dimension;
    return gn_reduce(operation->reduction, tensor, dimensions, false, result);
}

static gn_status extreme_of(const struct operation *operation, gn_tensor *tensor,
                            gn_tensor **result)
{
    return gn_extreme(tensor, operation->dimension, true, NULL, result);
}

/* Rows, and elements, by numbers of the tensor itself. */
static gn_status select_of(const struct operation *operation, gn_tensor *tensor, gn_tensor **result)
{
    int64_t count = operation->rows + 5, *numbers;
    gn_tensor *index, *own;
    void *data;
    GN_TRY(gn_tensor_create(GN_INT64, 1, &count, cpu, &index));
    GN_TRY(gn_tensor_get_data(index, &data));
    numbers = data;
    for (int64_t i = 0; i < count; i++)
        numbers[i] = i * 7 % operation->rows;
    GN_TRY(gn_tensor_to(index, gn_tensor_get_device(tensor), &own));
    gn_status status = gn_index_select(tensor, 0, own, result);
    gn_tensor_release(own);
    gn_tensor_release(index);
    return status;
}

static const struct operation operations[] = {
    {"softmax, short, halves", GN_BFLOAT16, 5, 1000, softmax_of, 0, 1, false, 6},
    {"softmax, short, ragged", GN_FLOAT32, 9, 33, softmax_of, 0, 1, true, 10},
    {"softmax, ragged", GN_FLOAT32, 5, 2051, softmax_of, 0, 1, false, 6},
    {"softmax, long, ragged", GN_BFLOAT16, 2, 50003, softmax_of, 0, 1, true, 3},
    {"softmax", GN_FLOAT32, 7, 2052, softmax_of, 0, 1, false, 5},
    {"sum, rows", GN_FLOAT32, 3, 9000, reduce_of, GN_REDUCE_SUM, 1, false, 12},
    {"sum, columns", GN_FLOAT32, 301, 36, reduce_of, GN_REDUCE_SUM, 0, false, 12},
    {"sum, all", GN_FLOAT32, 5, 8004, reduce_of, GN_REDUCE_SUM, -1, false, 12},
    {"maximum, all", GN_FLOAT32, 5, 8004, reduce_of, GN_REDUCE_MAXIMUM, -1, false, 12},
    {"argmax, rows", GN_FLOAT32, 3, 5000, extreme_of, 0, 1, false, 5},
    {"argmax, columns", GN_FLOAT32, 400, 35, extreme_of, 0, 0, false, 5},
    {"rows", GN_FLOAT32, 41, 36, select_of, 0, 0, false, 7},
};

/* A tensor on the CPU whose numbers are all different in sign and size. */
static gn_tensor *input_make(const struct operation *operation)
{
    const int64_t shape[] = {operation->rows, operation->columns};
    uint64_t state = 11;
    gn_tensor *made, *cast = NULL;
    void *data;
    CHECK_OK(gn_tensor_create(GN_FLOAT64, 2, shape, cpu, &made));
    CHECK_OK(gn_tensor_get_data(made, &data));
    for (int64_t i = 0; i < shape[0] * shape[1]; i++)
        ((double *)data)[i] = (double)(check_random(&state) % 20011) / 1000 - 10;
    CHECK_OK(gn_cast(made, operation->dtype, &cast));
    gn_tensor_release(made);
    return cast;
}

/* The result, on the CPU: its bytes, and as double. */
static void result_take(gn_tensor *result, gn_tensor **bytes, gn_tensor **numbers)
{
    CHECK_OK(gn_tensor_to(result, cpu, bytes));
    CHECK_OK(gn_cast(*bytes, GN_FLOAT64, numbers));
    gn_tensor_release(result);
}

static bool is_near(gn_tensor *a, gn_tensor *b, double tolerance)
{
    void *x, *y;
    CHECK_OK(gn_tensor_get_data(a, &x));
    CHECK_OK(gn_tensor_get_data(b, &y));
    for (int64_t i = 0; i < gn_tensor_get_count(a); i++) {
        double left = ((double *)x)[i], right = ((double *)y)[i];
        if (!(fabs(left - right) <= tolerance * (1 + fabs(right))))
            return false;
    }
    return gn_tensor_get_count(a) == gn_tensor_get_count(b);
}

static bool is_same(gn_tensor *a, gn_tensor *b)
{
    void *x, *y;
    CHECK_OK(gn_tensor_get_data(a, &x));
    CHECK_OK(gn_tensor_get_data(b, &y));
    size_t nbytes = (size_t)gn_tensor_get_count(a) * gn_dtype_size(gn_tensor_get_dtype(a));
    return memcmp(x, y, nbytes) == 0;
}

/* By each candidate: near to what the CPU says, and, of those that `on` takes, the bits of the default. */
static void operation_check(const struct operation *operation, int mode)
{
    gn_tensor *near = input_make(operation), *far, *result, *expected, *expected_numbers;
    gn_tensor *first = NULL;
    bool is_right = true;
    CHECK_OK(gn_tensor_to(near, device, &far));
    CHECK_OK(operation->run(operation, near, &result));
    result_take(result, &expected, &expected_numbers);
    gni_tune_set_mode(mode);
    int count = 1;
    for (int k = 0; k < count; k++) {
        gn_tensor *bytes, *numbers;
        gni_tune_force(k);
        CHECK_OK(operation->run(operation, far, &result));
        CHECK_OK(gn_flush());
        count = gni_tune_forced_count();
        gni_tune_force(-1);
        result_take(result, &bytes, &numbers);
        is_right = is_right && is_near(numbers, expected_numbers,
                                       operation->dtype == GN_BFLOAT16  ? 1e-2
                                       : operation->dtype == GN_FLOAT16 ? 2e-3
                                                                        : 1e-5);
        if (mode == MODE_ON)
            is_right = is_right && (first == NULL || is_same(first, bytes));
        gn_tensor_release(numbers);
        if (first == NULL)
            first = bytes;
        else
            gn_tensor_release(bytes);
        if (!is_right) {
            fprintf(stderr, "    %s, candidate %d\n", operation->name, k);
            break;
        }
    }
    CHECK(is_right);
    if (mode == MODE_MAX)
        CHECK_U64(count, operation->candidates);
    gn_tensor *rest[] = {near, far, expected, expected_numbers, first};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        gn_tensor_release(rest[i]);
}

static void test_operations(void)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        for (int mode = MODE_ON; mode <= MODE_MAX; mode++)
            operation_check(&operations[i], mode);
    gni_tune_set_mode(MODE_OFF);
}

/* An operation that really is measured, on the device's own inputs. */
static void test_a_real_measurement(void)
{
    const struct operation operation = {"", GN_FLOAT32, 700, 64, select_of, 0, 0, false, 0};
    gn_tensor *near = input_make(&operation), *far, *result, *one, *two, *numbers;
    gn_tuning found[LISTED_MOST];
    size_t count;
    gni_tune_set_clock(NULL);
    forget(MODE_MAX);
    CHECK_OK(gn_tensor_to(near, device, &far));
    CHECK_OK(operation.run(&operation, far, &result));
    result_take(result, &one, &numbers);
    gn_tensor_release(numbers);
    CHECK_OK(operation.run(&operation, near, &result));
    result_take(result, &two, &numbers);
    gn_tensor_release(numbers);
    CHECK(is_same(one, two));
    CHECK_OK(gn_tuning_list(found, LISTED_MOST, &count));
    CHECK_U64(count, 1);
    CHECK_TEXT(found[0].kernel, "index_get");
    CHECK(found[0].count > 3);
    for (int i = 0; i < found[0].count; i++)
        CHECK(found[0].candidates[i].milliseconds > 0);
    gn_tensor *rest[] = {near, far, one, two};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        gn_tensor_release(rest[i]);
    gni_tune_set_clock(problem_clock);
}

static void test_shutdown(void)
{
    struct problem problem = {.times = {9, 1, 5, 1}, .failing = -1};
    size_t leaked;
    forget(MODE_ON);
    size_t host = gni_host_live_count();
    CHECK_OK(problem_solve(&problem));
    CHECK(gni_host_live_count() > host);
    CHECK_OK(gn_shutdown(&leaked));
    CHECK_U64(leaked, 0);
    CHECK(gni_host_live_count() <= host);
}

int main(void)
{
    const struct gni_nvrtc *nvrtc;
    if (mkdtemp(root) == NULL || setenv("GENESIS_KERNEL_CACHE_DIR", root, 1) != 0)
        return 1;
    if (gn_device_get(GN_DEVICE_CUDA, 0, &device) != GN_OK || gni_nvrtc_open(&nvrtc) != GN_OK) {
        printf("skipped: %s\n", gn_error_detail());
        (void)rmdir(root);
        return CHECK_SKIPPED;
    }
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &cpu));
    CHECK_OK(gn_stream_get_default(device, &stream));
    gni_tune_set_clock(problem_clock);
    RUN(test_logarithms);
    RUN(test_candidates_that_are_not_ready);
    RUN(test_classes_in_words);
    RUN(test_off_and_small);
    RUN(test_the_fastest);
    RUN(test_the_default_needs_a_reason);
    RUN(test_candidates_that_fail);
    RUN(test_all_fail);
    RUN(test_the_list);
    RUN(test_the_next_process);
    RUN(test_damaged_entries);
    RUN(test_two_processes);
    RUN(test_one_at_a_time);
    RUN(test_captures);
    RUN(test_profiles);
    RUN(test_timing_that_fails);
    RUN(test_clocks);
    RUN(test_how_many_candidates);
    RUN(test_long_names);
    RUN(test_the_bounds);
    RUN(test_host_memory_faults);
    RUN(test_operations);
    RUN(test_a_real_measurement);
    RUN(test_shutdown);
    CHECK_OK(gn_kernel_cache_clear(NULL));
    (void)rmdir(root);
    return check_result();
}
