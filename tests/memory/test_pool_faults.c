/*
 * test_pool_faults.c: what the pool does when the driver, or the host's memory, says no.
 *
 *     test_pool_faults [cuda [STRIDE]]     on the simulated GPU; skipped (77) elsewhere
 *
 * A scenario is a life of some blocks. Each driver call of it fails in turn: once, and from then on, for
 * want of memory and otherwise; and each of its requests for host memory. After each failure: every free
 * has succeeded, the pool is valid, and when it is cleared nothing is left in the driver or on the host.
 *
 * With a STRIDE above 1 only every such call is tried, from a different one on in each series, and large blocks
 * are filled in part only, which is most of the time: for every day.
 */
#include "pool_suite.h"

struct suite suite;

static int stride = 1;
static size_t filled_most = SIZE_MAX; /* bytes of a block */

static const char *const functions[] = {
#define FUNCTION(name, symbol, version, need, arguments, lost) #name,
    GNI_CUDA_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

/* ---- how a scenario goes on ----------------------------------------------------------------- */

static struct {
    gn_status status; /* of the first call that failed */
    char detail[1024];
} outcome;

static void outcome_note(gn_status status)
{
    if (status == GN_OK || outcome.status != GN_OK)
        return;
    outcome.status = status;
    (void)snprintf(outcome.detail, sizeof outcome.detail, "%s", gn_error_detail());
}

/* The next call, unless one has failed. */
#define STEP(call)                   \
    do {                             \
        if (outcome.status == GN_OK) \
            outcome_note(call);      \
    } while (0)

static bool is_well(void)
{
    return outcome.status == GN_OK;
}

/* In one call: each is one that can fail. */
static void *make_on(gn_memory_manager *manager, size_t nbytes, gn_stream *stream)
{
    void *pointer = NULL;
    STEP(gn_memory_alloc(manager, nbytes, stream, &pointer));
    if (pointer != NULL)
        STEP(gn_fill(pointer, 0x5A, 1, nbytes < filled_most ? nbytes : filled_most, stream));
    return pointer;
}

static void *make(size_t nbytes)
{
    return make_on(suite.manager, nbytes, suite.stream);
}

/* A free never fails, whatever the driver does. */
static void drop(void *pointer)
{
    if (pointer != NULL)
        CHECK_OK(gn_memory_free(suite.manager, pointer));
}

static gn_stream *stream_try(unsigned flags)
{
    gn_stream *stream = NULL;
    STEP(gn_stream_create(suite.device, flags, 0, &stream));
    return stream;
}

/* ---- scenarios ------------------------------------------------------------------------------ */

static void scenario_growth(void)
{
    static const size_t sizes[] = {1000, 600 * KIB, 3 * MIB, 9 * MIB, 1500 * KIB};
    void *pointers[COUNT_OF(sizes)] = {NULL};
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        pointers[i] = make(sizes[i]);
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        drop(pointers[i]);
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        drop(make(sizes[i]));
}

static void scenario_give_back(void)
{
    void *pointers[12] = {NULL};
    size_t released;
    for (size_t i = 0; i < 12; i++)
        pointers[i] = make(i == 0 ? 9 * MIB : i % 3 == 1 ? 3 * MIB : 700 * KIB);
    for (size_t i = 0; i < 12; i += 2)
        drop(pointers[i]);
    STEP(gn_memory_coalesce(suite.manager, NULL));
    STEP(gn_memory_collect(suite.manager));
    STEP(gn_memory_trim(suite.manager, 4 * MIB, &released));
    for (size_t i = 1; i < 12; i += 2)
        drop(pointers[i]);
    STEP(gn_memory_trim(suite.manager, 0, &released));
    STEP(gn_memory_reset_peaks(suite.manager));
}

/* Another stream takes over a block whose work is not done. */
static void scenario_handover(void)
{
    gn_stream *first = stream_try(GN_STREAM_NON_BLOCKING);
    gn_stream *second = stream_try(GN_STREAM_NON_BLOCKING);
    limit_set(12 * MIB);
    for (int round = 0; round < 2 && is_well(); round++) {
        drop(make_on(suite.manager, 9 * MIB, first));
        drop(make_on(suite.manager, 9 * MIB, second));
        drop(make_on(suite.manager, 3 * MIB, first));
        drop(make_on(suite.manager, 500, second));
    }
    limit_set(UINT64_MAX);
    gn_stream_release(first);
    gn_stream_release(second);
}

static void scenario_record_stream(void)
{
    gn_stream *first = stream_try(GN_STREAM_NON_BLOCKING), *second = stream_try(0);
    for (int round = 0; round < 2 && is_well(); round++) {
        void *block = make(2 * MIB), *small = make(5000);
        if (block != NULL && small != NULL) {
            STEP(gn_memory_record_stream(suite.manager, block, first));
            STEP(gn_memory_record_stream(suite.manager, block, second));
            STEP(gn_memory_record_stream(suite.manager, small, first));
            STEP(gn_stream_synchronize(suite.stream)); /* it has filled them */
            STEP(gn_fill(block, 1, 1, MIB, first));
        }
        drop(block);
        drop(small);
        STEP(gn_memory_collect(suite.manager));
    }
    gn_stream_release(first);
    gn_stream_release(second);
}

/* A stream ends before the blocks that belong to it. */
static void scenario_stream_end(void)
{
    gn_stream *stream = stream_try(GN_STREAM_NON_BLOCKING), *foreign = NULL;
    void *kept = NULL, *other = NULL;
    if (stream != NULL) {
        kept = make_on(suite.manager, 3 * MIB, stream);
        drop(make_on(suite.manager, 3 * MIB, stream));
        STEP(gn_stream_from_handle(suite.device, gn_stream_get_handle(stream), &foreign));
        if (foreign != NULL)
            other = make_on(suite.manager, 70000, foreign);
        drop(other);
    }
    gn_stream_release(foreign);
    gn_stream_release(stream);
    drop(make(3 * MIB));
    drop(kept);
    drop(make(3 * MIB));
}

/* Half-empty pages, of blocks by address and by handle. */
static void scenario_compact(void)
{
    enum {
        COUNT = 32
    };
    char *pointers[COUNT] = {NULL};
    gn_memory_compaction report;
    for (size_t i = 0; i < COUNT; i++)
        pointers[i] = make(500 * KIB);
    for (size_t i = 0; i < COUNT; i++) {
        if ((i / 4 + i) % 4 != 0) {
            drop(pointers[i]);
            pointers[i] = NULL;
        }
    }
    STEP(gn_memory_compact(suite.manager, &report));
    bool was_well = is_well();
    drop(make(500 * KIB));
    for (size_t i = 0; i < COUNT; i += 2)
        drop(pointers[i]);
    STEP(gn_memory_trim(suite.manager, 0, NULL));
    for (size_t i = 1; i < COUNT && was_well && is_well(); i += 2) {
        unsigned char last = 0;
        if (pointers[i] != NULL)
            STEP(gn_copy(&last, pointers[i] + 500 * KIB - 1, 1, suite.stream));
        STEP(gn_stream_synchronize(suite.stream));
        CHECK(pointers[i] == NULL || !is_well() || last == 0x5A);
    }
    for (size_t i = 1; i < COUNT; i += 2)
        drop(pointers[i]);
    STEP(gn_memory_compact(suite.manager, &report));
}

static void drop_handle(gn_memory_block *handle)
{
    if (handle != NULL)
        CHECK_OK(gn_memory_block_free(handle));
}

/* Pieces of several pages that are partly used: by address, then by handle where only dividing them helps. */
static void scenario_divide(void)
{
    gn_memory_compaction report;
    gn_memory_block *handles[3] = {NULL};
    unsigned char last = 0;
    drop(make(24 * MIB));
    char *first = make(9 * MIB), *second = make(9 * MIB);
    drop(first);
    STEP(gn_memory_compact(suite.manager, &report));
    if (is_well())
        STEP(gn_copy(&last, second + (9 * MIB < filled_most ? 9 * MIB : filled_most) - 1, 1,
                     suite.stream));
    STEP(gn_stream_synchronize(suite.stream));
    CHECK(!is_well() || last == 0x5A);
    drop(second);
    STEP(gn_memory_trim(suite.manager, 0, NULL));
    if (!suite.is_virtual)
        return;
    STEP(gn_memory_block_alloc(suite.manager, 24 * MIB, suite.stream, &handles[0]));
    drop_handle(handles[0]);
    handles[0] = NULL;
    limit_set(38 * MIB); /* after the piece: under a limit it would be several */
    for (int i = 0; i < 2; i++)
        STEP(gn_memory_block_alloc(suite.manager, 9 * MIB, suite.stream, &handles[i]));
    drop_handle(handles[0]);
    STEP(gn_memory_block_alloc(suite.manager, 16 * MIB, suite.stream, &handles[2]));
    drop_handle(handles[1]);
    drop_handle(handles[2]);
    limit_set(UINT64_MAX);
}

/* A request that only folding by itself can meet. */
static void scenario_fold(void)
{
    enum {
        COUNT = 24
    };
    gn_memory_block *handles[COUNT] = {NULL};
    limit_set(12 * MIB);
    for (size_t i = 0; i < COUNT; i++)
        STEP(gn_memory_block_alloc(suite.manager, 500 * KIB, suite.stream, &handles[i]));
    for (size_t i = 0; i < COUNT; i++) {
        if (handles[i] != NULL && (i / 4 + i) % 4 != 0) {
            CHECK_OK(gn_memory_block_free(handles[i]));
            handles[i] = NULL;
        }
    }
    void *block = NULL;
    if (is_well() && suite.is_virtual)
        block = make(6 * MIB);
    for (size_t i = 0; i < COUNT; i++)
        if (handles[i] != NULL)
            CHECK_OK(gn_memory_block_free(handles[i]));
    drop(block);
    limit_set(UINT64_MAX);
}

static void scenario_graph(void)
{
    gn_memory_pool *graph = NULL;
    gn_stream *stream = stream_try(GN_STREAM_NON_BLOCKING);
    bool is_begun = false;
    void *first = NULL, *second = NULL;
    STEP(gn_memory_pool_create(suite.manager, &graph));
    if (is_well()) {
        STEP(gn_memory_pool_begin(graph, stream));
        is_begun = is_well();
    }
    first = make_on(suite.manager, 70000, stream);
    drop(make_on(suite.manager, 3 * MIB, stream));
    second = make_on(suite.manager, 9 * MIB, stream);
    if (is_begun)
        CHECK_OK(gn_memory_pool_end(graph, stream));
    drop(first);
    drop(second);
    if (graph != NULL)
        outcome_note(gn_memory_pool_destroy(graph)); /* what is left goes with the clear */
    gn_stream_release(stream);
}

static void scenario_batch(void)
{
    static const size_t sizes[] = {1000, 3 * MIB, 9 * MIB, 64, 600 * KIB};
    void *pointers[COUNT_OF(sizes)] = {NULL};
    STEP(gn_memory_alloc_batch(suite.manager, COUNT_OF(sizes), sizes, suite.stream, pointers));
    if (!is_well())
        CHECK(pointers[0] == NULL && statistics_now().live_count == 0); /* all or nothing */
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        drop(pointers[i]);
}

static void scenario_warm_up(void)
{
    static const size_t sizes[] = {4096, 3 * MIB, 9 * MIB}, counts[] = {600, 2, 1};
    STEP(gn_memory_warm_up(suite.manager, COUNT_OF(sizes), sizes, counts));
    drop(make(9 * MIB));
    drop(make(4096));
}

static bool handler_once(gn_memory_manager *manager, size_t nbytes, void *context)
{
    (void)manager;
    (void)nbytes;
    void **held = context;
    drop(*held);
    bool is_first = *held != NULL;
    *held = NULL;
    return is_first;
}

/* Out of memory is expected here; everything goes on. */
static void scenario_out_of_memory(void)
{
    void *pointers[8] = {NULL}, *held = NULL, *large = NULL;
    limit_set(16 * MIB);
    for (size_t i = 0; i < 8 && is_well(); i++) {
        gn_status status = gn_memory_alloc(suite.manager, 3 * MIB, suite.stream, &pointers[i]);
        if (status != GN_ERROR_OUT_OF_MEMORY)
            outcome_note(status);
    }
    held = pointers[0];
    pointers[0] = NULL;
    STEP(gn_memory_set_out_of_memory_handler(suite.manager, handler_once, &held));
    if (is_well() && gn_memory_alloc(suite.manager, 4 * MIB, suite.stream, &large) == GN_OK)
        drop(large);
    CHECK_OK(gn_memory_set_out_of_memory_handler(suite.manager, NULL, NULL));
    drop(held);
    for (size_t i = 0; i < 8; i++)
        drop(pointers[i]);
    large = NULL;
    if (is_well() && gn_memory_alloc(suite.manager, 14 * MIB, suite.stream, &large) == GN_OK)
        drop(large);
    limit_set(UINT64_MAX);
}

/* Everything is given back with blocks alive, in use elsewhere, folded, and of a graph. */
static void scenario_clear(void)
{
    gn_stream *stream = stream_try(GN_STREAM_NON_BLOCKING);
    gn_memory_pool *graph = NULL;
    gn_memory_compaction report;
    static const size_t sizes[] = {1000, 3 * MIB, 9 * MIB};
    void *pointers[COUNT_OF(sizes)] = {NULL};
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        pointers[i] = make(sizes[i]);
    for (size_t i = 0; i < 16; i++) { /* four pages, which become one */
        void *part = make(500 * KIB);
        if (i % 4 != i / 4)
            drop(part);
    }
    if (is_well()) {
        STEP(gn_memory_record_stream(suite.manager, pointers[1], stream));
        STEP(gn_memory_record_stream(suite.manager, pointers[2], stream));
        drop(pointers[1]);
        STEP(gn_memory_compact(suite.manager, &report));
        STEP(gn_memory_pool_create(suite.manager, &graph));
    }
    STEP(gn_memory_pool_begin(graph, suite.stream));
    if (is_well()) {
        void *inner = make(MIB);
        if (inner != NULL)
            STEP(gn_memory_record_stream(suite.manager, inner, stream));
        (void)make(2 * MIB);
        CHECK_OK(gn_memory_pool_end(graph, suite.stream));
    }
    STEP(gni_manager_clear(suite.manager));
    CHECK(!is_well() || statistics_now().reserved_bytes == 0);
    POOL_CHECK();
    gn_stream_release(stream);
}

static void scenario_pinned(void)
{
    gn_memory_manager *pinned = NULL;
    void *pointers[3] = {NULL};
    static const size_t sizes[] = {1000, 3 * MIB, 9 * MIB};
    CHECK_OK(gn_memory_manager_get_pinned(suite.device, &pinned));
    for (size_t i = 0; i < 3; i++)
        pointers[i] = make_on(pinned, sizes[i], suite.stream);
    for (size_t i = 0; i < 3; i++)
        if (pointers[i] != NULL)
            CHECK_OK(gn_memory_free(pinned, pointers[i]));
    STEP(gn_memory_trim(pinned, 0, NULL));
    CHECK(gni_pool_is_valid(pinned->pool));
}

/* Blocks of both engines, side by side. */
static void scenario_direct(void)
{
    gn_memory_config config = config_now();
    void *pooled = make(5000), *direct = NULL;
    config.strategy = GN_MEMORY_DIRECT;
    STEP(gn_memory_configure(suite.manager, &config));
    if (is_well())
        direct = make(7000);
    drop(pooled);
    config.strategy = GN_MEMORY_BEST_FIT;
    CHECK_OK(gn_memory_configure(suite.manager, &config));
    if (direct != NULL && gn_memory_free(suite.manager, direct) != GN_OK) {
        outcome_note(GN_ERROR_DRIVER); /* a free that the driver refuses: the block lives on */
        suite.control.fail(NULL, 0, 0, 0);
        drop(direct);
    }
    drop(make(7000));
}

/* ---- the hooks for other libraries ----------------------------------------------------------- */

static gn_stream *foreign[2]; /* of another library, for ever, as its wrappers are */

static void adapter_failed(bool is_out_of_memory, const char *message)
{
    bool is_of_host = strstr(message, "no host memory") != NULL;
    outcome_note(is_out_of_memory ? GN_ERROR_OUT_OF_MEMORY
                 : is_of_host     ? GN_ERROR_OUT_OF_HOST_MEMORY
                                  : GN_ERROR_DRIVER);
}

/* What a framework does through its hooks, which only an allocation can refuse. */
static void scenario_adapter(void)
{
    static const size_t sizes[] = {0, 1000, 600 * KIB, 3 * MIB, 9 * MIB};
    void *pointers[2][COUNT_OF(sizes)] = {{NULL}}, *pinned = NULL;
    gn_adapter_set_failure(adapter_failed);
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < COUNT_OF(sizes) && is_well(); i++)
            pointers[k][i] = gn_adapter_alloc(sizes[i], suite.device->index,
                                              k == 0 ? NULL : gn_stream_get_handle(foreign[0]));
    if (is_well())
        pinned = gn_adapter_alloc_pinned(70000, suite.device->index);
    if (is_well())
        gn_adapter_record_stream(pointers[1][3], gn_stream_get_handle(foreign[1]));
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < COUNT_OF(sizes); i++)
            gn_adapter_free(pointers[k][i], sizes[i], suite.device->index, NULL);
        gn_adapter_reset();
    }
    if (pinned != NULL)
        gn_adapter_free_pinned(pinned, suite.device->index);
    CHECK_U64(statistics_now().live_count, 0);
    gn_adapter_set_failure(NULL);
}

static void foreign_start(void)
{
    for (size_t k = 0; k < 2; k++) {
        void *pointer;
        CHECK_OK(gn_stream_create(suite.device, GN_STREAM_NON_BLOCKING, 0, &foreign[k]));
        pointer = gn_adapter_alloc(1, suite.device->index, gn_stream_get_handle(foreign[k]));
        gn_adapter_free(pointer, 1, suite.device->index, NULL);
    }
    gn_adapter_free_pinned(gn_adapter_alloc_pinned(1, suite.device->index), suite.device->index);
}

static const struct scenario {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"growth", scenario_growth},         {"give back", scenario_give_back},
    {"hand-over", scenario_handover},    {"record_stream", scenario_record_stream},
    {"stream end", scenario_stream_end}, {"compact", scenario_compact},
    {"divide", scenario_divide},         {"fold", scenario_fold},
    {"graph", scenario_graph},           {"batch", scenario_batch},
    {"warm-up", scenario_warm_up},       {"out of memory", scenario_out_of_memory},
    {"clear", scenario_clear},           {"pinned", scenario_pinned},
    {"direct", scenario_direct},         {"adapter", scenario_adapter},
};

/* ---- faults --------------------------------------------------------------------------------- */

struct fault {
    const char *function; /* NULL: any */
    int nth;
    int code;
    bool is_persistent;
};

struct living {
    int allocations, objects;
    size_t host;
};

static gn_memory_manager *pinned_manager;

static struct living living_count(void)
{
    return (struct living){.allocations = suite.control.live_allocations(),
                           .objects = suite.control.live_objects(),
                           .host = gni_host_live_count()};
}

/* Everything goes back, without faults. */
static void managers_clear(void)
{
    CHECK_OK(gni_manager_clear(suite.manager));
    CHECK_OK(gni_manager_clear(pinned_manager));
    POOL_CHECK();
    gn_memory_statistics now = statistics_now();
    CHECK(now.live_count == 0 && now.live_bytes == 0 && now.requested_bytes == 0);
    CHECK(now.reserved_bytes == 0 && now.pending_bytes == 0);
}

static void scenario_run(const struct scenario *scenario)
{
    outcome.status = GN_OK;
    outcome.detail[0] = '\0';
    scenario->run();
}

static void scenario_run_well(const struct scenario *scenario)
{
    scenario_run(scenario);
    CHECK(outcome.status == GN_OK);
    if (outcome.status != GN_OK)
        fprintf(stderr, "    %s: %s\n", scenario->name, outcome.detail);
    POOL_CHECK();
    managers_clear();
}

/* A driver that does not destroy streams, events and contexts keeps them: nobody can be told. */
static bool is_silent(const struct fault *fault)
{
    return fault->function == NULL || strstr(fault->function, "Destroy") != NULL ||
           strncmp(fault->function, "cuCtx", 5) == 0;
}

/* The pool after a fault that struck: valid, and when it is cleared nothing is left. */
static void fault_check(const struct fault *fault, struct living before)
{
    POOL_CHECK();
    managers_clear();
    findings_check();
    struct living after = living_count();
    CHECK_U64(after.allocations, before.allocations);
    CHECK_U64(after.host, before.host);
    if (!is_silent(fault)) {
        CHECK_U64(after.objects, before.objects);
    } else if (after.objects != before.objects) {
        CHECK_OK(gn_shutdown(NULL)); /* the context's end takes them */
        CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 0, &suite.device));
    }
}

/* Runs a scenario with a fault; false if the fault did not strike. */
static bool fault_try(const struct scenario *scenario, const struct fault *fault)
{
    struct living before = living_count();
    suite.control.fail(fault->function, fault->nth, fault->code, fault->is_persistent);
    scenario_run(scenario);
    bool has_struck = suite.control.fault_count() > 0;
    suite.control.fail(NULL, 0, 0, 0);
    if (has_struck)
        fault_check(fault, before);
    else
        managers_clear();
    return has_struck;
}

/* Every call of ours begins by looking at contexts: a part of these, and one code, is enough. */
static bool is_context(const char *function)
{
    return strncmp(function, "cuCtx", 5) == 0 && strcmp(function, "cuCtxSynchronize") != 0;
}

/* Popping is how contexts are restored: it is not tried. */
static int codes_count(const char *function)
{
    return strcmp(function, "cuCtxPopCurrent") == 0 ? 0 : is_context(function) ? 1 : 2;
}

static int faults_try(const struct scenario *scenario, struct fault fault)
{
    static int series;
    int failures = check_failures, count = 0, step = stride * (is_context(fault.function) ? 5 : 1);
    for (fault.nth = 1 + series++ % step; fault_try(scenario, &fault); fault.nth += step) {
        count++;
        if (check_failures != failures) {
            fprintf(stderr, "    scenario %s, call %d of %s gives %d%s: %s\n", scenario->name,
                    fault.nth, fault.function != NULL ? fault.function : "any", fault.code,
                    fault.is_persistent ? " for good" : "", outcome.detail);
            break;
        }
    }
    return count;
}

static void test_driver_faults(void)
{
    static const int codes[] = {CUDA_ERROR_UNKNOWN, CUDA_ERROR_OUT_OF_MEMORY};
    int points = 0;
    for (size_t s = 0; s < COUNT_OF(scenarios); s++) {
        const struct scenario *scenario = &scenarios[s];
        long calls[COUNT_OF(functions)];
        int before = points;
        for (size_t f = 0; f < COUNT_OF(functions); f++)
            calls[f] = suite.control.call_count(functions[f]);
        scenario_run_well(scenario);
        for (size_t f = 0; f < COUNT_OF(functions); f++)
            calls[f] = suite.control.call_count(functions[f]) - calls[f];
        for (size_t f = 0; f < COUNT_OF(functions); f++)
            for (int i = 0; calls[f] > 0 && i < codes_count(functions[f]); i++)
                for (int j = 0; j < 2; j++)
                    points += faults_try(scenario, (struct fault){.function = functions[f],
                                                                  .code = codes[i],
                                                                  .is_persistent = j == 1});
        printf("     %-14s %d faults\n", scenario->name, points - before);
        fflush(stdout);
        scenario_run_well(scenario);
    }
    printf("     %d faults of the driver\n", points);
    CHECK(points > (suite.is_virtual ? 3000 : 1000) / stride); /* it may only grow */
}

/* ---- the host ------------------------------------------------------------------------------- */

/* Has the nth allocation failed? If not, one of the next n does. */
static bool host_has_failed(long nth)
{
    bool has_failed = true;
    for (long i = 0; i < nth && has_failed; i++) {
        void *block = gni_host_alloc(1);
        has_failed = block != NULL;
        gni_host_free(block);
    }
    gni_host_fail_after(-1);
    return has_failed;
}

static void test_host_faults(void)
{
    int points = 0;
    for (size_t s = 0; s < COUNT_OF(scenarios); s++) {
        int failures = check_failures;
        bool has_failed = true;
        scenario_run_well(&scenarios[s]);
        for (long nth = 1; has_failed && check_failures == failures; nth += stride) {
            struct living before = living_count();
            gni_host_fail_after(nth);
            scenario_run(&scenarios[s]);
            has_failed = host_has_failed(nth);
            points += has_failed;
            CHECK(outcome.status == GN_OK || outcome.status == GN_ERROR_OUT_OF_HOST_MEMORY ||
                  outcome.status == GN_ERROR_OUT_OF_MEMORY); /* folding needs some of the host's */
            fault_check(&(struct fault){.function = "host"}, before);
            if (check_failures != failures)
                fprintf(stderr, "    scenario %s, host allocation %ld: %s\n", scenarios[s].name,
                        nth, outcome.detail);
        }
    }
    printf("     %d faults of the host\n", points);
    CHECK(points > (suite.is_virtual ? 300 : 150) / stride); /* it may only grow */
}

int main(int argc, char **argv)
{
    (void)setenv("GENESIS_LOG", "error", 0);
    if (!suite_open(argc > 1 ? argv[1] : "cuda") || !suite.is_sim) {
        printf("skipped: the simulated GPU is needed\n");
        return CHECK_SKIPPED;
    }
    if (argc > 2)
        stride = atoi(argv[2]);
    if (stride > 1)
        filled_most = 512 * KIB;
    CHECK_OK(gn_memory_manager_get_pinned(suite.device, &pinned_manager));
    foreign_start();
    for (size_t s = 0; s < COUNT_OF(scenarios); s++)
        scenario_run_well(&scenarios[s]); /* what is made once is made now */
    RUN(test_driver_faults);
    RUN(test_host_faults);
    return check_result();
}
