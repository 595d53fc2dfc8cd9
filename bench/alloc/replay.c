/*
 * replay.c: replays a recorded trace (trace.h) through the memory manager, on the CPU, a GPU or, with
 * GENESIS_CUDA_DRIVER=sim, the simulated one, and prints time, peaks and fragmentation.
 *
 *     replay [options] FILE
 *         --device cpu|cuda           the standard is cpu
 *         --policy virtual|pool|direct    of a GPU; the standard is the library's
 *         --strategy best|first|direct    how free blocks are chosen
 *         --limit SIZE                the most that may be reserved, such as 8GiB
 *         --by-handle                 instead of by pointer
 *         --rounds N                  the standard is 5; the first starts with nothing kept
 *         --trace-device N            whose trace, in PyTorch's snapshot
 *         --free-completed            blocks live until PyTorch's events were complete
 *         --expect ALLOCS,FREES,PEAK  fail unless the trace has these counts and peak in bytes
 *
 * All entries are replayed in the order of the file by one thread, each on its stream. What is live at
 * the end of a round is freed, outside of the times. Frees on a GPU are in stream order, and no work is
 * submitted: the times are those of the manager alone. After each round the manager's own statistics
 * must agree with the trace, or the exit status is 1.
 */
#include "genesis/genesis.h"

#include "timing.h"
#include "trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *file, *policy, *expect;
    gn_device_type device;
    int strategy; /* gn_memory_strategy, or -1 */
    size_t limit_bytes;
    size_t rounds;
    bool is_by_handle;
    struct trace_options trace;
};

struct replay {
    struct trace trace;
    gn_memory_manager *manager;
    gn_stream **streams;
    void **live;      /* by slot: an address or a handle; NULL: nothing, or it failed */
    double *entry_ns; /* of one round */
    size_t failed_count;
    bool is_by_handle;
};

static void check(gn_status status, const char *what)
{
    if (status == GN_OK)
        return;
    fprintf(stderr, "replay: %s: %s: %s\n", what, gn_status_name(status), gn_error_detail());
    exit(1);
}

static void *allocated(size_t count, size_t item_bytes)
{
    void *memory = calloc(count ? count : 1, item_bytes);
    if (!memory) {
        fprintf(stderr, "replay: out of memory\n");
        exit(1);
    }
    return memory;
}

/* ---- replaying ---- */

static void block_free(struct replay *replay, uint32_t slot)
{
    void *block = replay->live[slot];
    if (!block)
        return;
    replay->live[slot] = NULL;
    check(replay->is_by_handle ? gn_memory_block_free(block)
                               : gn_memory_free(replay->manager, block),
          "free");
}

static void block_alloc(struct replay *replay, const struct trace_entry *entry)
{
    gn_stream *stream = replay->streams[entry->stream];
    void *block = NULL;
    gn_status status;
    if (replay->is_by_handle) {
        gn_memory_block *handle = NULL;
        status = gn_memory_block_alloc(replay->manager, entry->nbytes, stream, &handle);
        block = handle;
    } else {
        status = gn_memory_alloc(replay->manager, entry->nbytes, stream, &block);
    }
    if (status == GN_ERROR_OUT_OF_MEMORY)
        replay->failed_count++;
    else
        check(status, "alloc");
    replay->live[entry->slot] = status == GN_OK ? block : NULL;
}

static inline void entry_run(struct replay *replay, const struct trace_entry *entry)
{
    if (entry->is_alloc)
        block_alloc(replay, entry);
    else
        block_free(replay, entry->slot);
}

static void round_end(struct replay *replay)
{
    for (size_t slot = 0; slot < replay->trace.slot_count; slot++)
        block_free(replay, (uint32_t)slot);
}

static double round_run(struct replay *replay)
{
    const struct trace *trace = &replay->trace;
    double start = now_ns();
    for (size_t i = 0; i < trace->entry_count; i++)
        entry_run(replay, &trace->entries[i]);
    double total = now_ns() - start;
    round_end(replay);
    return total;
}

/* One more round, with a look at the clock between any two operations. */
static void round_single(struct replay *replay)
{
    const struct trace *trace = &replay->trace;
    double before = now_ns();
    for (size_t i = 0; i < trace->entry_count; i++) {
        entry_run(replay, &trace->entries[i]);
        double now = now_ns();
        replay->entry_ns[i] = now - before;
        before = now;
    }
    round_end(replay);
    double middle = quantile(replay->entry_ns, trace->entry_count, 0.5);
    double tail = quantile(replay->entry_ns, trace->entry_count, 0.999);
    printf("\nSingle operations, with the clock's own time: median %.0f ns, 99.9 %% %.0f ns.\n",
           middle, tail);
}

/* Does the manager's account agree with the trace? */
static bool round_agrees(const struct replay *replay, const gn_memory_statistics *before,
                         const gn_memory_statistics *after, size_t failed_before)
{
    size_t failed = replay->failed_count - failed_before;
    uint64_t allocs = after->alloc_count - before->alloc_count;
    uint64_t frees = after->free_count - before->free_count;
    bool agrees = allocs == replay->trace.alloc_count - failed && frees == allocs &&
                  after->live_count == before->live_count &&
                  after->requested_bytes == before->requested_bytes;
    if (failed == 0 && after->requested_bytes_peak != replay->trace.peak_bytes)
        agrees = false;
    if (!agrees)
        fprintf(stderr,
                "replay: the manager disagrees with the trace: allocations %" PRIu64 " of %zu (%zu "
                "failed), frees %" PRIu64 ", live %" PRIu64 ", requested %" PRIu64
                ", its peak %" PRIu64 " of %" PRIu64 "\n",
                allocs, replay->trace.alloc_count, failed, frees, after->live_count,
                after->requested_bytes, after->requested_bytes_peak, replay->trace.peak_bytes);
    return agrees;
}

static void print_round(const struct replay *replay, size_t number, double total_ns,
                        const gn_memory_statistics *before, const gn_memory_statistics *after)
{
    double count = (double)(replay->trace.entry_count ? replay->trace.entry_count : 1);
    double reserved = (double)after->reserved_bytes_peak;
    double requested = (double)after->requested_bytes_peak;
    printf("| %zu | %.1f | %.1f | %.1f | %.1f %% | %" PRIu64 " | %" PRIu64 " |\n", number + 1,
           total_ns / count, requested / 0x1p20, reserved / 0x1p20,
           reserved > 0 ? 100 * (1 - requested / reserved) : 0.0,
           after->miss_count - before->miss_count,
           after->driver_alloc_count - before->driver_alloc_count);
}

static bool replay_rounds(struct replay *replay, size_t rounds)
{
    bool agrees = true;
    check(gn_memory_trim(replay->manager, 0, NULL), "trim");
    printf(
        "\n| round | ns per operation | peak requested, MiB | peak reserved, MiB | 1 - requested / "
        "reserved | misses | driver allocations |\n|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < rounds; i++) {
        gn_memory_statistics before, after;
        size_t failed_before = replay->failed_count;
        check(gn_memory_reset_peaks(replay->manager), "reset peaks");
        check(gn_memory_get_statistics(replay->manager, &before), "statistics");
        double total_ns = round_run(replay);
        check(gn_memory_get_statistics(replay->manager, &after), "statistics");
        agrees &= round_agrees(replay, &before, &after, failed_before);
        print_round(replay, i, total_ns, &before, &after);
    }
    round_single(replay);
    if (replay->failed_count)
        printf("\n%zu allocations failed for want of memory.\n", replay->failed_count);
    return agrees;
}

/* ---- opening ---- */

static void replay_open(struct replay *replay, const struct options *options)
{
    gn_device *device;
    gn_memory_config config;
    size_t free_bytes, total_bytes;
    if (options->policy && setenv("GENESIS_CUDA_ALLOCATOR", options->policy, 1) != 0)
        exit(1);
    check(gn_device_get(options->device, 0, &device), "device");
    check(gn_memory_manager_get(device, &replay->manager), "manager");
    check(gn_memory_get_config(replay->manager, &config), "configuration");
    check(gn_device_get_memory_info(device, &free_bytes, &total_bytes), "memory");
    if (options->strategy >= 0)
        config.strategy = (gn_memory_strategy)options->strategy;
    if (options->limit_bytes && options->limit_bytes < total_bytes)
        config.memory_fraction = (double)options->limit_bytes / (double)total_bytes;
    config.has_detailed_statistics = true;
    check(gn_memory_configure(replay->manager, &config), "configure");
    const struct trace *trace = &replay->trace;
    replay->streams = allocated(trace->stream_count, sizeof *replay->streams);
    replay->live = allocated(trace->slot_count, sizeof *replay->live);
    replay->entry_ns = allocated(trace->entry_count, sizeof *replay->entry_ns);
    replay->is_by_handle = options->is_by_handle;
    for (size_t i = 0; i < trace->stream_count; i++) {
        if (i == 0) {
            check(gn_stream_get_default(device, &replay->streams[0]), "stream");
            (void)gn_stream_retain(replay->streams[0]);
        } else {
            check(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &replay->streams[i]),
                  "stream");
        }
    }
}

/* Everything was freed: a block that is still alive is a mistake. */
static bool replay_close(struct replay *replay)
{
    size_t leaked;
    for (size_t i = 0; i < replay->trace.stream_count; i++)
        gn_stream_release(replay->streams[i]);
    free(replay->streams);
    free(replay->live);
    free(replay->entry_ns);
    trace_free(&replay->trace);
    check(gn_shutdown(&leaked), "shutdown");
    if (leaked)
        fprintf(stderr, "replay: %zu blocks or objects were still alive\n", leaked);
    return leaked == 0;
}

static bool trace_is_expected(const struct trace *trace, const char *expect)
{
    char text[96];
    (void)snprintf(text, sizeof text, "%zu,%zu,%" PRIu64, trace->alloc_count, trace->free_count,
                   trace->peak_bytes);
    if (!expect || strcmp(text, expect) == 0)
        return true;
    fprintf(stderr, "replay: expected %s, but the trace has %s\n", expect, text);
    return false;
}

/* ---- the command line ---- */

static void usage(const char *problem)
{
    fprintf(stderr, "replay: %s; the head of replay.c lists the options\n", problem);
    exit(2);
}

/* The place of a word in a list that ends with NULL. */
static int choice(const char *word, const char *const words[])
{
    for (int i = 0; word && words[i]; i++) {
        if (strcmp(word, words[i]) == 0)
            return i;
    }
    usage("a word that is not known");
    return 0;
}

static size_t number(const char *text)
{
    char *end = NULL;
    unsigned long value = text ? strtoul(text, &end, 10) : 0;
    if (!text || end == text || *end)
        usage("not a number");
    return value;
}

/* Takes an option and its value, if it has one; returns how many words were taken. */
static int option_read(struct options *options, const char *name, const char *value)
{
    static const char *const devices[] = {"cpu", "cuda", NULL};
    static const char *const policies[] = {"virtual", "pool", "direct", NULL};
    static const char *const strategies[] = {"best", "first", "direct", NULL};
    if (strcmp(name, "--by-handle") == 0) {
        options->is_by_handle = true;
        return 1;
    }
    if (strcmp(name, "--free-completed") == 0) {
        options->trace.is_free_completed = true;
        return 1;
    }
    if (strcmp(name, "--device") == 0)
        options->device = (gn_device_type)choice(value, devices);
    else if (strcmp(name, "--policy") == 0)
        options->policy = policies[choice(value, policies)];
    else if (strcmp(name, "--strategy") == 0)
        options->strategy = choice(value, strategies);
    else if (strcmp(name, "--limit") == 0)
        check(gn_size_parse(value ? value : "", &options->limit_bytes), "--limit");
    else if (strcmp(name, "--rounds") == 0)
        options->rounds = number(value);
    else if (strcmp(name, "--trace-device") == 0)
        options->trace.device = number(value);
    else if (strcmp(name, "--expect") == 0)
        options->expect = value;
    else
        usage("an option that is not known");
    return value ? 2 : 1;
}

int main(int argc, char **argv)
{
    struct options options = {.device = GN_DEVICE_CPU, .strategy = -1, .rounds = 5};
    struct replay replay = {0};
    for (int i = 1; i < argc;) {
        if (argv[i][0] == '-')
            i += option_read(&options, argv[i], argv[i + 1]);
        else
            options.file = argv[i++];
    }
    if (!options.file)
        usage("no file");
    if (!trace_read(options.file, &options.trace, &replay.trace))
        return 1;
    const struct trace *trace = &replay.trace;
    bool is_good = trace_is_expected(trace, options.expect);
    replay_open(&replay, &options);
    printf("%s: %zu allocations, %zu frees, %zu streams, %zu frees of older blocks and %zu other "
           "entries skipped; policy %s, by %s\n",
           options.file, trace->alloc_count, trace->free_count, trace->stream_count,
           trace->unknown_count, trace->skipped_count, gn_memory_manager_get_policy(replay.manager),
           options.is_by_handle ? "handle" : "pointer");
    is_good &= replay_rounds(&replay, options.rounds);
    is_good &= replay_close(&replay);
    return is_good ? 0 : 1;
}
