/*
 * test_capture.c: captured graphs and their memory when something fails, and the pools of graphs when they are misused.
 *
 *     test_capture cpu | cuda
 *
 * The life of a graph (a capture with memory of its own, two replays, the end) is run again and again: for each driver
 * function its nth call fails, for n from 1 until the life does not get that far. After each failure the error names the
 * function, nothing is left, no capture is counted, and the same life succeeds.
 */
#include "pool_suite.h"

#include "device/cuda/cuda.h"

#include <pthread.h>

enum {
    BYTES = 3000,
    BYTE = 0x5a,
};

struct suite suite;

/* ---- the life of a graph ---------------------------------------------------------------------- */

static struct {
    gn_status status; /* of the first call that failed */
    char detail[1024];
    int fault_count;          /* how often the fault struck */
    unsigned char after[256]; /* what the graph has written */
} outcome;

static bool outcome_note(gn_status status)
{
    if (status != GN_OK && outcome.status == GN_OK) {
        outcome.status = status;
        (void)snprintf(outcome.detail, sizeof outcome.detail, "%s", gn_error_detail());
    }
    return outcome.status == GN_OK;
}

static void faults_clear(void)
{
    outcome.fault_count += suite.control.fault_count();
    suite.control.fail(NULL, 0, 0, 0);
}

static int captures_now(void)
{
    return atomic_load(&gni_cuda_device_of(suite.device)->capture_count);
}

/* A graph that fills a block of its own memory; before each replay the block is filled with something else. */
static void life_captured(gn_stream *stream, gn_graph *graph, void **block)
{
    if (outcome_note(gn_memory_alloc(suite.manager, BYTES, stream, block)))
        (void)outcome_note(gn_fill(*block, BYTE, 1, BYTES, stream));
    CHECK_U64(captures_now(), 1);
    (void)outcome_note(gn_graph_end(graph));
    CHECK_U64(captures_now(), 0);
    for (unsigned i = 0; i < 2 && outcome.status == GN_OK; i++)
        if (outcome_note(gn_fill(*block, i, 1, BYTES, stream)) &&
            outcome_note(gn_graph_replay(graph, stream)) &&
            outcome_note(gn_copy(outcome.after, *block, sizeof outcome.after, stream)))
            (void)outcome_note(gn_stream_synchronize(stream));
}

static void life(void)
{
    gn_stream *stream = NULL;
    gn_graph *graph = NULL;
    void *block = NULL;
    memset(&outcome, 0, sizeof outcome);
    if (outcome_note(gn_stream_create(suite.device, GN_STREAM_NON_BLOCKING, 0, &stream)) &&
        outcome_note(gn_graph_create(suite.device, &graph)) &&
        outcome_note(gn_graph_begin(graph, stream, NULL)))
        life_captured(stream, graph, &block);
    CHECK_U64(captures_now(), 0); /* also where the begin has failed */
    gn_status freed = block != NULL ? gn_memory_free(suite.manager, block) : GN_OK;
    if (freed != GN_OK) {
        (void)outcome_note(freed);
        faults_clear();
        CHECK_OK(gn_memory_free(suite.manager, block));
    }
    gn_graph_destroy(graph);
    gn_stream_release(stream);
    faults_clear();
}

static bool is_written(void)
{
    return outcome.after[0] == BYTE &&
           memcmp(outcome.after, outcome.after + 1, sizeof outcome.after - 1) == 0;
}

/* Nothing of a life that failed is left, but what the fault itself kept from going; then it succeeds. */
static void life_after(const char *function, int nth, int objects)
{
    bool is_named = outcome.status == GN_OK || strstr(outcome.detail, function) != NULL ||
                    outcome.status == GN_ERROR_OUT_OF_MEMORY;
    CHECK(is_named);
    if (!is_named)
        fprintf(stderr, "    %s, call %d: %s\n", function, nth, outcome.detail);
    CHECK(outcome.status != GN_OK || is_written());
    CHECK_U64(suite.control.context_depth(), 0);
    CHECK_OK(gn_memory_trim(suite.manager, 0, NULL));
    CHECK_U64(statistics_now().reserved_bytes, 0);
    /* Marks of the pool keep their events, and one thing whose end failed is left. */
    CHECK(suite.control.live_objects() <= objects + 4);
    POOL_CHECK();
    life();
    CHECK_STATUS(outcome.status, GN_OK);
    CHECK(is_written());
}

static void test_each_call_fails(void)
{
    static const char *const functions[] = {
#define FUNCTION(name, symbol, version, need, arguments, lost) #name,
        GNI_CUDA_FUNCTIONS(FUNCTION)
#undef FUNCTION
    };
    int struck = 0;
    life();
    CHECK_STATUS(outcome.status, GN_OK);
    CHECK(is_written());
    for (size_t i = 0; i < COUNT_OF(functions); i++) {
        if (strcmp(functions[i], "cuCtxPopCurrent") == 0) /* then the context stays where it is */
            continue;
        for (int nth = 1;; nth++) {
            int objects = suite.control.live_objects();
            suite.control.fail(functions[i], nth, CUDA_ERROR_UNKNOWN, 0);
            life();
            if (outcome.fault_count == 0)
                break;
            struck++;
            life_after(functions[i], nth, objects);
        }
    }
    CHECK(struck > 30);
    findings_check();
}

/* A capture counts while the driver begins it and while the driver ends it: nobody must wait for the device then. */
static struct gni_cuda_functions *table;
static struct gni_cuda_functions own;
static int count_at_begin, count_at_end;

static CUresult begin_seen(CUstream stream, CUstreamCaptureMode mode)
{
    count_at_begin = captures_now();
    return own.cuStreamBeginCapture(stream, mode);
}

static CUresult end_seen(CUstream stream, CUgraph *graph)
{
    count_at_end = captures_now();
    return own.cuStreamEndCapture(stream, graph);
}

static void test_counts_around_the_calls(void)
{
    table = (struct gni_cuda_functions *)(uintptr_t)&gni_cuda_device_of(suite.device)
                ->driver->functions;
    own = *table;
    table->cuStreamBeginCapture = begin_seen;
    table->cuStreamEndCapture = end_seen;
    life();
    CHECK_STATUS(outcome.status, GN_OK);
    CHECK_U64(count_at_begin, 1);
    CHECK_U64(count_at_end, 1);
    table->cuStreamBeginCapture = NULL; /* as of an older driver */
    life();
    CHECK_STATUS(outcome.status, GN_ERROR_UNSUPPORTED);
    CHECK(strstr(outcome.detail, "cuStreamBeginCapture") != NULL);
    CHECK(strstr(outcome.detail, "graphs") != NULL);
    *table = own;
}

/* ---- pools ------------------------------------------------------------------------------------ */

static gn_memory_pool *pool_make(void)
{
    gn_memory_pool *pool = NULL;
    CHECK_OK(gn_memory_pool_create(suite.manager, &pool));
    return pool;
}

static void test_misuse(void)
{
    gn_stream *stream = stream_make(0), *other = stream_make(0);
    gn_memory_pool *pool = pool_make(), *second = pool_make();
    CHECK_STATUS(gn_memory_pool_begin(pool, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_pool_end(pool, NULL), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_pool_destroy(NULL), GN_ERROR_INVALID_VALUE);
    gn_memory_pool_abandon(NULL);
    CHECK_STATUS(gn_memory_pool_end(pool, stream), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("does not allocate from this pool");
    CHECK_OK(gn_memory_pool_begin(pool, stream));
    CHECK_STATUS(gn_memory_pool_begin(pool, stream), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("already");
    CHECK_STATUS(gn_memory_pool_begin(second, stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_pool_end(second, stream), GN_ERROR_INVALID_VALUE);
    CHECK_STATUS(gn_memory_pool_end(pool, other), GN_ERROR_INVALID_VALUE);
    void *block = block_make_on(BYTES, stream), *ordinary = block_make_on(BYTES, other);
    CHECK_STATUS(gn_memory_pool_destroy(pool), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("1 living block, and 1 stream allocates from it");
    CHECK_OK(gn_memory_pool_end(pool, stream));
    CHECK_STATUS(gn_memory_pool_destroy(pool), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("1 living block, and 0 streams allocate from it");
    block_free(block);
    block_free(ordinary);
    CHECK_OK(gn_memory_pool_destroy(pool));
    CHECK_OK(gn_memory_pool_destroy(second));
    gn_stream_release(stream);
    gn_stream_release(other);
    pool_empty();
}

/* A stream of another device is not taken. */
static void test_another_device(void)
{
    gn_device *device = NULL;
    gn_stream *stream = NULL;
    gn_memory_pool *pool = pool_make();
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &device));
    CHECK_OK(gn_stream_get_default(device, &stream));
    CHECK_STATUS(gn_memory_pool_begin(pool, stream), GN_ERROR_INVALID_VALUE);
    CHECK_OK(gn_memory_pool_destroy(pool));
}

/* The policy direct has no pools. */
static void body_direct(void)
{
    gn_memory_pool *pool = NULL;
    CHECK_STATUS(gn_memory_pool_create(suite.manager, &pool), GN_ERROR_UNSUPPORTED);
    CHECK_DETAIL("direct");
    CHECK(pool == NULL);
}

static const struct child_mode modes[] = {
    {"direct", body_direct, {"GENESIS_CUDA_ALLOCATOR=direct"}},
};

/* The nth allocation of host memory fails: nothing is begun, and the same call succeeds after that. */
static void test_no_host_memory(void)
{
    gn_memory_pool *pool = NULL, *made = pool_make();
    gn_stream *stream = stream_make(0);
    gni_host_fail_after(1);
    CHECK_STATUS(gn_memory_pool_create(suite.manager, &pool), GN_ERROR_OUT_OF_HOST_MEMORY);
    CHECK(pool == NULL);
    gni_host_fail_after(1);
    CHECK_STATUS(gn_memory_pool_begin(made, stream), GN_ERROR_OUT_OF_HOST_MEMORY);
    gni_host_fail_after(0);
    CHECK_STATUS(gn_memory_pool_end(made, stream), GN_ERROR_INVALID_VALUE); /* it was not begun */
    CHECK_OK(gn_memory_pool_begin(made, stream));
    CHECK_OK(gn_memory_pool_end(made, stream));
    CHECK_OK(gn_memory_pool_destroy(made));
    gn_stream_release(stream);
}

/* An abandoned pool ends with its last block and its last stream, at the next trim; where the driver refuses, later. */
static void test_abandoned(void)
{
    gn_stream *stream = stream_make(0);
    gn_memory_pool *pool = pool_make();
    CHECK_OK(gn_memory_pool_begin(pool, stream));
    void *block = block_make_on(BYTES, stream);
    gn_memory_pool_abandon(pool);
    CHECK(statistics_now().reserved_bytes > 0);
    block_free(block);
    CHECK_OK(gn_memory_trim(suite.manager, 0, NULL));
    CHECK(statistics_now().reserved_bytes > 0); /* the stream may take it again */
    block = block_make_on(BYTES, stream);
    CHECK_OK(gn_memory_pool_end(pool, stream));
    CHECK_OK(gn_memory_trim(suite.manager, 0, NULL));
    CHECK(statistics_now().reserved_bytes > 0); /* the block */
    block_free(block);
    if (suite.is_sim) {
        suite.control.fail(suite.is_virtual ? "cuMemUnmap" : "cuMemFree", 1, CUDA_ERROR_UNKNOWN, 0);
        CHECK_OK(gn_memory_trim(suite.manager, 0, NULL));
        CHECK(statistics_now().reserved_bytes > 0);
        CHECK_U64(suite.control.fault_count(), 1);
        suite.control.fail("cuCtxSynchronize", 1, CUDA_ERROR_UNKNOWN, 0);
        CHECK_STATUS(gn_memory_trim(suite.manager, 0, NULL), GN_OK);
        CHECK(statistics_now().reserved_bytes > 0); /* the graph may be running */
        suite.control.fail(NULL, 0, 0, 0);
    }
    pool_empty();
    gn_stream_release(stream);
}

/* ---- which streams are begun ------------------------------------------------------------------ */

static void *thread_begun; /* what another thread gets on its own per-thread stream */

static void *thread_run(void *stream)
{
    thread_begun = block_make_on(BYTES, stream);
    return NULL;
}

/* A begun stream is known by its handle, too; a per-thread stream only to the thread that began it: to others the same
 * object is another stream. */
static void test_handles_and_threads(void)
{
    if (suite.is_cpu)
        return;
    gn_stream *stream = stream_make(0), *same = NULL, *own_stream = NULL;
    gn_memory_pool *pool = pool_make();
    CHECK_OK(gn_stream_from_handle(suite.device, gn_stream_get_handle(stream), &same));
    CHECK_OK(gn_stream_from_handle(suite.device, (void *)2, &own_stream));
    CHECK_OK(gn_memory_pool_begin(pool, stream));
    CHECK_STATUS(gn_memory_pool_begin(pool, same), GN_ERROR_INVALID_VALUE);
    CHECK_OK(gn_memory_pool_begin(pool, own_stream));
    void *a = block_make_on(BYTES, same), *b = block_make_on(BYTES, own_stream);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, thread_run, own_stream) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_STATUS(gn_memory_pool_destroy(pool), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("2 living blocks, and 2 streams"); /* the other thread's is not in it */
    CHECK_OK(gn_memory_pool_end(pool, same));
    CHECK_OK(gn_memory_pool_end(pool, own_stream));
    block_free(a);
    block_free(b);
    block_free(thread_begun);
    CHECK_OK(gn_memory_pool_destroy(pool));
    gn_stream_release(own_stream);
    gn_stream_release(same);
    gn_stream_release(stream);
    pool_empty();
}

/* A stream of which the driver does not tell whether it is captured is taken to be. */
static void test_unknown_state(void)
{
    if (!suite.is_sim)
        return;
    gn_stream *stream = stream_make(0);
    gn_memory_pool *pool = pool_make();
    CHECK_OK(gn_memory_pool_begin(pool, stream));
    suite.control.fail("cuStreamIsCapturing", 1, CUDA_ERROR_UNKNOWN, 1);
    void *block = block_make_on(BYTES, stream);
    block_free(block_make(BYTES));
    CHECK_STATUS(gn_memory_trim(suite.manager, 0, NULL), GN_ERROR_CAPTURE);
    suite.control.fail(NULL, 0, 0, 0);
    CHECK_OK(gn_memory_trim(suite.manager, 0, NULL));
    CHECK_OK(gn_memory_pool_end(pool, stream));
    block_free(block);
    CHECK_OK(gn_memory_pool_destroy(pool));
    gn_stream_release(stream);
    pool_empty();
}

/* While a graph is captured the device cannot be waited for: a request that finds no memory waits for the events of
 * blocks that other streams use, one by one; and gets theirs. Where an event does not tell that it is done, the block stays. */
static void test_no_memory_during_a_capture(void)
{
    for (int is_failing = 0; is_failing < 2; is_failing++) {
        gn_stream *stream = stream_make(GN_STREAM_NON_BLOCKING);
        gn_stream *side = stream_make(GN_STREAM_NON_BLOCKING);
        gn_graph *graph = NULL;
        void *more = NULL;
        suite.control.schedule(1, 0); /* nothing is done before somebody waits for it */
        limit_set(64 * MIB);
        CHECK_OK(gn_graph_create(suite.device, &graph));
        CHECK_OK(gn_graph_begin(graph, stream, NULL));
        void *block = block_make(40 * MIB);
        CHECK_OK(gn_memory_record_stream(suite.manager, block, side));
        block_fill(block, 1, 40 * MIB, side);
        block_free(block);
        CHECK_U64(statistics_now().pending_bytes, 40 * MIB);
        if (is_failing)
            suite.control.fail("cuEventQuery", 1, CUDA_ERROR_UNKNOWN, 1);
        gn_status status = gn_memory_alloc(suite.manager, 40 * MIB, NULL, &more);
        CHECK_STATUS(status, is_failing ? GN_ERROR_OUT_OF_MEMORY : GN_OK);
        if (is_failing)
            CHECK_DETAIL("Blocks wait for work on other streams");
        CHECK_U64(statistics_now().pending_bytes, is_failing ? 40 * MIB : 0);
        suite.control.fail(NULL, 0, 0, 0);
        CHECK_OK(gn_fill(&outcome, 0, 1, 0, stream)); /* the capture goes on */
        CHECK_OK(gn_graph_end(graph));
        suite.control.schedule(0, 0);
        CHECK_OK(gn_device_synchronize(suite.device));
        if (more != NULL)
            block_free(more);
        gn_graph_destroy(graph);
        gn_stream_release(side);
        gn_stream_release(stream);
        limit_set(UINT64_MAX);
        CHECK_OK(gn_memory_collect(suite.manager));
        pool_empty();
    }
    findings_check();
}

/* Streams that are wrapped while they are captured have no id yet: blocks of the capture are theirs all the same, and one
 * that is announced on such a stream waits until the device is known to have passed. */
static void test_streams_without_an_id(void)
{
    gn_stream *stream = stream_make(GN_STREAM_NON_BLOCKING), *same = NULL;
    struct gni_graph graph = {NULL, NULL};
    uint64_t id = 0;
    void *ordinary = block_make(BYTES), *handle = gn_stream_get_handle(stream);
    CHECK_OK(suite.device->ops->graph_begin(stream));
    CHECK_OK(gn_stream_from_handle(suite.device, handle, &same));
    CHECK_STATUS(gn_stream_get_id(same, &id), GN_ERROR_CAPTURE);
    void *block = block_make_on(BYTES, same), *again = NULL;
    CHECK_OK(gn_memory_record_stream(suite.manager, ordinary, same));
    block_fill(block, BYTE, BYTES, same);
    block_free(block);
    CHECK_OK(gn_memory_alloc(suite.manager, BYTES, same, &again));
    CHECK(again == block); /* of the capture, in its order */
    block_free(ordinary);
    CHECK(statistics_now().pending_bytes >= BYTES);
    void *other = block_make(BYTES);
    CHECK(other != ordinary && other != block);
    CHECK_OK(suite.device->ops->graph_end(stream, &graph));
    CHECK_OK(suite.device->ops->graph_launch(&graph, stream));
    CHECK_OK(gn_stream_synchronize(stream));
    CHECK(block_holds(block, BYTE, BYTES));
    suite.device->ops->graph_close(&graph);
    CHECK_OK(gn_stream_get_id(same, &id));
    CHECK(id != 0);
    block_free(again);
    block_free(other);
    gn_stream_release(same);
    gn_stream_release(stream);
    CHECK_OK(gn_memory_trim(suite.manager, 0, NULL)); /* waits for the device */
    CHECK_U64(statistics_now().pending_bytes, 0);
    POOL_CHECK();
    findings_check();
}

/* A stream that is begun when everything ends: the pool and its memory are gone, the stream is nobody's. */
static void test_shutdown(void)
{
    gn_stream *stream = stream_make(0);
    gn_memory_pool *pool = pool_make();
    CHECK_OK(gn_memory_pool_begin(pool, stream));
    (void)block_make_on(BYTES, stream);
    size_t leaked = 0;
    CHECK_OK(gn_shutdown(&leaked));
    CHECK_U64(leaked, 2); /* the block, and the stream */
    CHECK_U64(statistics_now().reserved_bytes, 0);
    CHECK(gni_list_is_empty(&suite.pool->begun) && gni_list_is_empty(&suite.pool->private_spaces));
    void *block = block_make_on(BYTES, stream); /* from the main space */
    CHECK(gni_list_is_empty(&suite.pool->private_spaces));
    block_free(block);
    gn_stream_release(stream);
    gn_stream_release(stream); /* what the pool held */
    pool_empty();
}

static void run(void)
{
    RUN(test_misuse);
    RUN(test_no_host_memory);
    RUN(test_abandoned);
    RUN(test_handles_and_threads);
    RUN(test_unknown_state);
    if (!suite.is_cpu) {
        RUN(test_another_device);
        children_run(modes, COUNT_OF(modes));
    }
    if (suite.is_sim) {
        RUN(test_no_memory_during_a_capture);
        RUN(test_counts_around_the_calls);
        RUN(test_each_call_fails);
        RUN(test_streams_without_an_id); /* its memory goes with the shutdown */
    }
    RUN(test_shutdown);
}

int main(int argc, char **argv)
{
    return suite_main(argc, argv, run, modes, COUNT_OF(modes));
}
