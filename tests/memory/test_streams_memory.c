/*
 * test_streams_memory.c: programs in which streams, graphs and the memory manager meet.
 *
 * Runs on the simulated GPU, whose checker must find nothing, and on a real one. The policy is that of
 * GENESIS_CUDA_ALLOCATOR. Exits with 77 where there is no device.
 */
#include "check.h"

#include "control.h"
#include "device/cuda/cuda.h"
#include "genesis/genesis.h"
#include "memory/pool.h"

#include <pthread.h>

#define MIB ((size_t)1 << 20)

static gn_device *device;
static gn_memory_manager *manager;
static const struct gni_cuda_functions *cuda;
static struct sim_control control;
static bool is_simulated;
static uint64_t seed = 20261115;

/* ---- helpers -------------------------------------------------------------------------------- */

static gn_stream *stream_make(unsigned flags)
{
    gn_stream *stream = NULL;
    CHECK_OK(gn_stream_create(device, flags, 0, &stream));
    return stream;
}

static char *block_make(size_t nbytes, gn_stream *stream)
{
    void *pointer = NULL;
    CHECK_OK(gn_memory_alloc(manager, nbytes, stream, &pointer));
    return pointer;
}

static void block_free(void *pointer)
{
    CHECK_OK(gn_memory_free(manager, pointer));
}

static void fill(void *pointer, int value, size_t nbytes, gn_stream *stream)
{
    CHECK_OK(gn_fill(pointer, (uint32_t)value, 1, nbytes, stream));
}

/* Whether a block holds one value, seen from its stream. Waits for the stream. */
static bool holds(const void *pointer, int value, size_t nbytes, gn_stream *stream)
{
    unsigned char *bytes = malloc(nbytes);
    CHECK_OK(gn_copy(bytes, pointer, nbytes, stream));
    CHECK_OK(gn_stream_synchronize(stream));
    size_t wrong = 0;
    for (size_t i = 0; i < nbytes; i++)
        wrong += bytes[i] != (unsigned char)value;
    free(bytes);
    return wrong == 0;
}

/* `to` waits for what is in `from`. */
static void order(gn_stream *from, gn_stream *to)
{
    gn_event *event = NULL;
    CHECK_OK(gn_event_create(device, 0, &event));
    CHECK_OK(gn_event_record(event, from));
    CHECK_OK(gn_stream_wait_event(to, event));
    gn_event_destroy(event);
}

static gn_memory_statistics statistics(void)
{
    gn_memory_statistics now = {0};
    CHECK_OK(gn_memory_get_statistics(manager, &now));
    return now;
}

/* The manager may take so much; 0: everything. */
static void limit_set(size_t nbytes)
{
    gn_memory_config config;
    size_t free_bytes, total_bytes;
    CHECK_OK(gn_device_get_memory_info(device, &free_bytes, &total_bytes));
    CHECK_OK(gn_memory_get_config(manager, &config));
    config.memory_fraction = nbytes == 0 ? 1 : (double)nbytes / (double)total_bytes;
    CHECK_OK(gn_memory_configure(manager, &config));
}

/* Everything was freed, and goes back. */
static void all_goes_back(void)
{
    CHECK_OK(gn_memory_trim(manager, 0, NULL));
    gn_memory_statistics now = statistics();
    CHECK_U64(now.live_count, 0);
    CHECK_U64(now.pending_bytes, 0);
    CHECK_U64(now.reserved_bytes, 0);
}

static void findings_check(void)
{
    if (!is_simulated)
        return;
    CHECK_U64((uint64_t)control.finding_count(), 0);
    for (int i = 0; i < control.finding_count() && i < 5; i++)
        fprintf(stderr, "    %s\n", control.finding_text(i));
    control.reset_findings();
}

/* ---- streams -------------------------------------------------------------------------------- */

/* Blocks of one stream that another one reads, freed at once: many more than there is memory for. With is_foreign both
 * streams are another library's, as PyTorch's are. */
static void record_stream_try(size_t nbytes, size_t limit, bool is_foreign)
{
    enum {
        ROUNDS = 100,
        PART = 4096
    };
    gn_stream *own[2], *streams[2];
    for (int i = 0; i < 2; i++) {
        own[i] = stream_make(GN_STREAM_NON_BLOCKING);
        streams[i] = gn_stream_retain(own[i]);
        if (!is_foreign)
            continue;
        gn_stream_release(streams[i]);
        CHECK_OK(gn_stream_from_handle(device, gn_stream_get_handle(own[i]), &streams[i]));
    }
    gn_stream *maker = streams[0], *reader = streams[1];
    limit_set(limit);
    char *results = block_make(2 * ROUNDS * PART, reader);
    for (int i = 0; i < ROUNDS; i++) {
        char *block = block_make(nbytes, maker);
        fill(block, i, nbytes, maker);
        order(maker, reader);
        for (int j = 0; j < 2; j++)
            CHECK_OK(gn_copy(results + (2 * i + j) * PART, block + (j == 0 ? 0 : nbytes - PART),
                             PART, reader));
        CHECK_OK(gn_memory_record_stream(manager, block, reader));
        block_free(block);
    }
    for (int i = 0; i < ROUNDS; i++)
        CHECK(holds(results + 2 * i * PART, i, 2 * PART, reader));
    block_free(results);
    for (int i = 0; i < 2; i++) {
        gn_stream_release(streams[i]);
        gn_stream_release(own[i]);
    }
    limit_set(0);
    all_goes_back();
    findings_check();
}

static void test_record_stream(void)
{
    for (int is_foreign = 0; is_foreign < 2; is_foreign++) {
        record_stream_try(8 * MIB, 64 * MIB, is_foreign != 0);
        record_stream_try(12 * MIB, 100 * MIB, is_foreign != 0); /* of large blocks */
    }
}

/* Streams end while blocks of them live or are cached; the driver uses their handles again. */
static void test_streams_come_and_go(void)
{
    enum {
        ROUNDS = 60,
        KEPT = 7
    };
    static const size_t sizes[] = {100, 5000, 70000, 3 << 20, 9 << 20};
    struct {
        char *pointer;
        int value;
    } kept[KEPT] = {{NULL, 0}};
    limit_set(96 * MIB);
    for (int i = 0; i < ROUNDS; i++) {
        gn_stream *stream = stream_make(i % 2 ? GN_STREAM_NON_BLOCKING : 0);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            char *block = block_make(sizes[s], stream);
            fill(block, 99, sizes[s], stream);
            block_free(block);
        }
        if (kept[i % KEPT].pointer != NULL) { /* of a stream that is gone */
            CHECK_OK(gn_device_synchronize(device));
            CHECK(holds(kept[i % KEPT].pointer, kept[i % KEPT].value, MIB + 1, stream));
            block_free(kept[i % KEPT].pointer);
        }
        kept[i % KEPT].pointer = block_make(MIB + 1, stream);
        kept[i % KEPT].value = i;
        fill(kept[i % KEPT].pointer, i, MIB + 1, stream);
        gn_stream_release(stream);
    }
    for (int i = 0; i < KEPT; i++)
        block_free(kept[i].pointer);
    CHECK(statistics().reserved_bytes <= 96 * MIB);
    limit_set(0);
    all_goes_back();
    findings_check();
}

static int heaps_count(void)
{
    int count = 0;
    gni_list_each (link, &manager->pool->main.heaps)
        count++;
    return count;
}

/* A block that outlives the streams that read it keeps none of them, and is not given to others before they are done. */
static void test_readers_come_and_go(void)
{
    enum {
        ROUNDS = 40,
        NBYTES = 1 << 20,
    };
    gn_stream *writer = stream_make(GN_STREAM_NON_BLOCKING);
    char *weights = block_make(NBYTES, writer), *result = block_make(NBYTES, writer);
    fill(weights, 7, NBYTES, writer);
    int objects = atomic_load(&device->object_count);
    for (int i = 0; i < ROUNDS; i++) {
        gn_stream *reader = stream_make(GN_STREAM_NON_BLOCKING);
        order(writer, reader);
        CHECK_OK(gn_memory_record_stream(manager, weights, reader));
        CHECK_OK(gn_memory_record_stream(manager, result, reader));
        CHECK_OK(gn_copy(result, weights, NBYTES, reader));
        block_free(block_make(100, reader));
        order(reader, writer);
        gn_stream_release(reader);
        if (i % 4 == 3)
            CHECK_OK(gn_stream_synchronize(writer));
    }
    CHECK(gni_pool_is_valid(manager->pool));
    CHECK(heaps_count() < 12);
    CHECK(atomic_load(&device->object_count) < objects + 24); /* events, which are used again */
    CHECK(holds(result, 7, NBYTES, writer));
    if (is_simulated)
        control.schedule(1, seed); /* nothing runs before it is waited for */
    for (int i = 0; i < 2; i++) {  /* they go before the block, and have work yet */
        gn_stream *reader = stream_make(GN_STREAM_NON_BLOCKING);
        CHECK_OK(gn_memory_record_stream(manager, weights, reader));
        CHECK_OK(gn_copy(result + i * (NBYTES / 2), weights, NBYTES / 2, reader));
        gn_stream_release(reader);
    }
    block_free(weights);
    CHECK_OK(gn_memory_collect(manager));
    char *others[3];
    for (int i = 0; i < 3; i++)
        fill(others[i] = block_make(NBYTES, writer), 9, NBYTES, writer);
    CHECK_OK(gn_device_synchronize(device));
    CHECK(holds(result, 7, NBYTES, writer));
    for (int i = 0; i < 3; i++)
        block_free(others[i]);
    if (is_simulated)
        control.schedule(0, seed);
    block_free(result);
    gn_stream_release(writer);
    all_goes_back();
    findings_check();
}

/* ---- graphs --------------------------------------------------------------------------------- */

static const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                            CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                            CU_STREAM_CAPTURE_MODE_RELAXED};

/* Calls of the driver that the library does not make: as a framework on top of it would. */
static void context_enter(void)
{
    CUcontext context = atomic_load(&gni_cuda_device_of(device)->context);
    CHECK(cuda->cuCtxPushCurrent(context) == CUDA_SUCCESS);
}

static void context_leave(void)
{
    CUcontext context;
    CHECK(cuda->cuCtxPopCurrent(&context) == CUDA_SUCCESS);
}

/* Streams of other libraries end without a word; what we know of them goes when their blocks are clean. */
static void test_foreign_streams_come_and_go(void)
{
    for (int i = 0; i < 100; i++) {
        CUstream raw = NULL;
        gn_stream *stream = NULL;
        context_enter();
        CHECK(cuda->cuStreamCreateWithPriority(&raw, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
        context_leave();
        CHECK_OK(gn_stream_from_handle(device, raw, &stream));
        char *block = block_make(100000, stream);
        fill(block, i, 100000, stream);
        CHECK(holds(block, i, 100000, stream));
        block_free(block);
        gn_stream_release(stream);
        context_enter();
        CHECK(cuda->cuStreamDestroy(raw) == CUDA_SUCCESS);
        context_leave();
        CHECK_OK(gn_memory_collect(manager));
    }
    CHECK_OK(gn_device_synchronize(device));
    CHECK_OK(gn_memory_collect(manager));
    CHECK(heaps_count() < 10);
    all_goes_back();
    findings_check();
}

static void capture_begin(gn_stream *stream, CUstreamCaptureMode mode)
{
    context_enter();
    CHECK(cuda->cuStreamBeginCapture(gn_stream_get_handle(stream), mode) == CUDA_SUCCESS);
    context_leave();
}

static CUgraphExec capture_end(gn_stream *stream)
{
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    context_enter();
    CUresult result = cuda->cuStreamEndCapture(gn_stream_get_handle(stream), &graph);
    CHECK_U64(result, CUDA_SUCCESS);
    if (result == CUDA_SUCCESS) {
        CHECK(cuda->cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
        CHECK(cuda->cuGraphDestroy(graph) == CUDA_SUCCESS);
    }
    context_leave();
    return exec;
}

static void graph_launch(CUgraphExec exec, gn_stream *stream)
{
    context_enter();
    CHECK(cuda->cuGraphLaunch(exec, gn_stream_get_handle(stream)) == CUDA_SUCCESS);
    context_leave();
}

static void graph_destroy(CUgraphExec exec)
{
    context_enter();
    CHECK(cuda->cuGraphExecDestroy(exec) == CUDA_SUCCESS);
    context_leave();
}

/* Allocations of the rest of the program while a graph is captured and replayed. */
struct others {
    gn_stream *streams[3];
    char *blocks[8];
    size_t sizes[8];
};

static void others_step(struct others *others)
{
    size_t i = check_random(&seed) % 8;
    if (others->blocks[i] != NULL) {
        block_free(others->blocks[i]);
        others->blocks[i] = NULL;
        return;
    }
    gn_stream *stream = others->streams[check_random(&seed) % 3];
    others->sizes[i] = 1 + check_random(&seed) % (1u << (10 + check_random(&seed) % 13));
    others->blocks[i] = block_make(others->sizes[i], stream);
    fill(others->blocks[i], 0xEE, others->sizes[i], stream);
}

static void others_begin(struct others *others)
{
    *others = (struct others){.blocks = {NULL}};
    for (int i = 0; i < 3; i++)
        others->streams[i] = stream_make(i < 2 ? GN_STREAM_NON_BLOCKING : 0);
    for (int i = 0; i < 20; i++)
        others_step(others);
}

static void others_end(struct others *others)
{
    for (int i = 0; i < 8; i++)
        if (others->blocks[i] != NULL)
            block_free(others->blocks[i]);
    for (int i = 0; i < 3; i++)
        gn_stream_release(others->streams[i]);
}

enum {
    GRAPH_BYTES = 300000,
};

/*
 * What is captured: input -> a -> b, a freed, c allocated, b -> c -> output. The caller frees b and c
 * after the capture: the graph goes on using them.
 */
static void graph_body(gn_stream *stream, gn_stream *asked, const char *input, char *output,
                       char *left[2], struct others *others)
{
    char *a = block_make(GRAPH_BYTES, asked);
    CHECK_OK(gn_copy(a, input, GRAPH_BYTES, stream));
    others_step(others);
    char *b = block_make(GRAPH_BYTES, asked);
    CHECK_OK(gn_copy(b, a, GRAPH_BYTES, stream));
    block_free(a);
    for (int i = 0; i < 20; i++)
        others_step(others);
    char *c = block_make(GRAPH_BYTES, asked);
    fill(c, 0, GRAPH_BYTES, stream);
    CHECK_OK(gn_copy(c, b, GRAPH_BYTES, stream));
    CHECK_OK(gn_copy(output, c, GRAPH_BYTES, stream));
    left[0] = b;
    left[1] = c;
}

static void graph_replay(CUgraphExec exec, gn_stream *stream, char *input, const char *output,
                         struct others *others, int count)
{
    for (int i = 0; i < count; i++) {
        fill(input, i, GRAPH_BYTES, stream);
        graph_launch(exec, stream);
        others_step(others);
        if (i % 50 == 49)
            CHECK(holds(output, i, GRAPH_BYTES, stream));
        if (i % 200 == 99)
            CHECK_OK(gn_memory_trim(manager, MIB, NULL));
    }
}

/* A graph with a pool of its own, in every mode of capture, on a stream of either kind. */
static void graph_with_pool(CUstreamCaptureMode mode, unsigned flags, int count)
{
    struct others others;
    gn_stream *stream = stream_make(flags);
    gn_memory_pool *pool = NULL;
    char *left[2];
    others_begin(&others);
    if (flags == 0 && mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
        gn_stream_release(others.streams[2]); /* its work could not be waited for by ours */
        others.streams[2] = stream_make(GN_STREAM_NON_BLOCKING);
    }
    char *input = block_make(GRAPH_BYTES, stream), *output = block_make(GRAPH_BYTES, stream);
    CHECK_OK(gn_memory_pool_create(manager, &pool));
    CHECK_OK(gn_memory_pool_begin(pool, stream));
    capture_begin(stream, mode);
    graph_body(stream, stream, input, output, left, &others);
    CUgraphExec exec = capture_end(stream);
    CHECK_OK(gn_memory_pool_end(pool, stream));
    CHECK_STATUS(gn_memory_pool_destroy(pool), GN_ERROR_INVALID_VALUE); /* b and c live */
    block_free(left[0]);
    block_free(left[1]);
    if (exec != NULL) {
        graph_replay(exec, stream, input, output, &others, count);
        graph_destroy(exec);
    }
    block_free(input);
    block_free(output);
    others_end(&others);
    CHECK_OK(gn_memory_trim(manager, 0, NULL));
    CHECK(statistics().reserved_bytes > 0); /* the pool's */
    CHECK_OK(gn_memory_pool_destroy(pool));
    gn_stream_release(stream);
    all_goes_back();
    findings_check();
}

static void test_graph_with_pool(void)
{
    graph_with_pool(CU_STREAM_CAPTURE_MODE_GLOBAL, GN_STREAM_NON_BLOCKING, 1000);
    for (int i = 0; i < 3; i++) {
        graph_with_pool(modes[i], GN_STREAM_NON_BLOCKING, 100);
        graph_with_pool(modes[i], 0, 100);
    }
}

/* A capture that nobody told us of, on a stream whose handle was taken. */
static void graph_without_pool(CUstreamCaptureMode mode, bool is_current, bool was_begun)
{
    struct others others;
    gn_stream *stream = stream_make(GN_STREAM_NON_BLOCKING), *none = NULL;
    if (was_begun) { /* and the handle was taken meanwhile */
        gn_memory_pool *pool = NULL;
        CHECK_OK(gn_memory_pool_create(manager, &pool));
        CHECK_OK(gn_memory_pool_begin(pool, stream));
        CHECK(gn_stream_get_handle(stream) != NULL);
        CHECK_OK(gn_memory_pool_end(pool, stream));
        CHECK_OK(gn_memory_pool_destroy(pool));
    }
    gn_stream *asked = is_current ? NULL : stream;
    char *left[2];
    CHECK_OK(gn_stream_get_default(device, &none));
    if (is_current)
        CHECK_OK(gn_stream_set_current(stream));
    others_begin(&others);
    char *input = block_make(GRAPH_BYTES, asked), *output = block_make(GRAPH_BYTES, asked);
    for (int i = 0; i < 3; i++) /* what the thread has in its cache must not end up in the graph */
        block_free(block_make(GRAPH_BYTES, asked));
    capture_begin(stream, mode);
    graph_body(stream, asked, input, output, left, &others);
    CUgraphExec exec = capture_end(stream);
    block_free(left[0]);
    block_free(left[1]);
    char *blocks[20];
    for (int i = 0; i < 20; i++) { /* what the graph uses is nobody else's */
        blocks[i] = block_make(GRAPH_BYTES, asked);
        fill(blocks[i], 0xAA, GRAPH_BYTES, stream);
        CHECK(blocks[i] != left[0] && blocks[i] != left[1]);
    }
    if (exec != NULL) {
        graph_replay(exec, stream, input, output, &others, 1000);
        graph_destroy(exec);
    }
    for (int i = 0; i < 20; i++) {
        CHECK(holds(blocks[i], 0xAA, GRAPH_BYTES, stream));
        block_free(blocks[i]);
    }
    block_free(input);
    block_free(output);
    others_end(&others);
    CHECK_OK(gn_stream_set_current(none));
    gn_stream_release(stream);
    findings_check();
}

static void test_graph_without_pool(void)
{
    graph_without_pool(CU_STREAM_CAPTURE_MODE_GLOBAL, false, false);
    graph_without_pool(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, false, false);
    graph_without_pool(CU_STREAM_CAPTURE_MODE_RELAXED, false, true);
    graph_without_pool(CU_STREAM_CAPTURE_MODE_GLOBAL, true, false);
    graph_without_pool(CU_STREAM_CAPTURE_MODE_GLOBAL, true, true);
    size_t leaked = 0;
    CHECK_OK(gn_shutdown(&leaked)); /* where the memory of such graphs goes back */
    CHECK_U64(leaked, 0);
    CHECK_U64(statistics().reserved_bytes, 0);
}

/* A side stream in a capture, and a block that both use. */
static void test_graph_with_side_stream(void)
{
    gn_stream *stream = stream_make(GN_STREAM_NON_BLOCKING);
    gn_stream *side = stream_make(GN_STREAM_NON_BLOCKING);
    gn_memory_pool *pool = NULL;
    char *input = block_make(GRAPH_BYTES, stream), *output = block_make(GRAPH_BYTES, stream);
    CHECK_OK(gn_memory_pool_create(manager, &pool));
    CHECK_OK(gn_memory_pool_begin(pool, stream));
    capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    char *a = block_make(GRAPH_BYTES, stream);
    CHECK_OK(gn_copy(a, input, GRAPH_BYTES, stream));
    order(stream, side);
    CHECK_OK(gn_copy(output, a, GRAPH_BYTES, side));
    CHECK_OK(gn_memory_record_stream(manager, a, side));
    block_free(a);
    char *b = block_make(GRAPH_BYTES, stream); /* must not be where the side stream still reads */
    CHECK(b != a);
    fill(b, 0x55, GRAPH_BYTES, stream);
    order(side, stream);
    CUgraphExec exec = capture_end(stream);
    CHECK_OK(gn_memory_pool_end(pool, stream));
    block_free(b);
    for (int i = 0; i < 100 && exec != NULL; i++) {
        fill(input, i, GRAPH_BYTES, stream);
        graph_launch(exec, stream);
        if (i % 10 == 0)
            CHECK(holds(output, i, GRAPH_BYTES, stream));
    }
    if (exec != NULL)
        graph_destroy(exec);
    block_free(input);
    block_free(output);
    CHECK_OK(gn_memory_pool_destroy(pool));
    gn_stream_release(side);
    gn_stream_release(stream);
    all_goes_back();
    findings_check();
}

/* Freeing and collecting for the default stream does not spoil the capture of a stream joined with it. */
static void *capture_bystander(void *blocks)
{
    for (int i = 0; i < 100; i++)
        block_free(((char **)blocks)[i]);
    CHECK_OK(gn_memory_collect(manager));
    CHECK_OK(gn_memory_coalesce(manager, NULL));
    return NULL;
}

static void test_capture_and_default_stream(void)
{
    gn_stream *stream = stream_make(0), *other = stream_make(GN_STREAM_NON_BLOCKING), *none = NULL;
    char *blocks[2][100];
    CHECK_OK(gn_stream_get_default(device, &none));
    for (int i = 0; i < 200; i++) {
        blocks[i / 100][i % 100] = block_make(5000, i % 2 ? none : other);
        fill(blocks[i / 100][i % 100], 1, 5000, i % 2 ? none : other);
    }
    char *target = block_make(5000, stream);
    capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    fill(target, 7, 5000, stream);
    (void)capture_bystander(blocks[0]);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, capture_bystander, blocks[1]) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CUgraphExec exec = capture_end(stream);
    if (exec != NULL) {
        graph_launch(exec, stream);
        CHECK(holds(target, 7, 5000, stream));
        graph_destroy(exec);
    }
    block_free(target);
    gn_stream_release(other);
    gn_stream_release(stream);
    all_goes_back();
    findings_check();
}

/* Memory runs out during a capture, and what other streams left is waited for. */
static void test_capture_out_of_memory(void)
{
    gn_stream *stream = stream_make(GN_STREAM_NON_BLOCKING);
    gn_stream *other = stream_make(GN_STREAM_NON_BLOCKING);
    gn_memory_pool *pool = NULL;
    limit_set(32 * MIB);
    char *first = block_make(24 * MIB, other);
    fill(first, 1, 24 * MIB, other);
    CHECK_OK(gn_memory_pool_create(manager, &pool));
    CHECK_OK(gn_memory_pool_begin(pool, stream));
    capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    void *pointer = NULL;
    CHECK_STATUS(gn_memory_alloc(manager, 24 * MIB, stream, &pointer), GN_ERROR_OUT_OF_MEMORY);
    block_free(first);
    CHECK_STATUS(gn_memory_trim(manager, 0, NULL), GN_ERROR_CAPTURE); /* not for a capture's life */
    char *block = block_make(24 * MIB, stream);
    fill(block, 5, 24 * MIB, stream);
    CUgraphExec exec = capture_end(stream);
    CHECK_OK(gn_memory_pool_end(pool, stream));
    if (exec != NULL) {
        graph_launch(exec, stream);
        CHECK(holds(block, 5, 24 * MIB, stream));
        graph_destroy(exec);
    }
    block_free(block);
    CHECK_OK(gn_memory_pool_destroy(pool));
    gn_stream_release(other);
    gn_stream_release(stream);
    limit_set(0);
    all_goes_back();
    findings_check();
}

/* ---- out of memory -------------------------------------------------------------------------- */

enum {
    FULL_MOST = 200,
};

struct full {
    char *blocks[FULL_MOST];
    size_t sizes[FULL_MOST];
    int count;
    int handler_calls;
};

/* Takes blocks of 1 to 12 MiB until there is no more, on two streams. */
static void memory_fill(struct full *full, gn_stream *streams[2])
{
    gn_status status = GN_OK;
    while (full->count < FULL_MOST && status == GN_OK) {
        int i = full->count;
        void *pointer = NULL;
        full->sizes[i] = MIB + check_random(&seed) % (11 * MIB);
        status = gn_memory_alloc(manager, full->sizes[i], streams[i % 2], &pointer);
        if (status != GN_OK)
            continue;
        fill(pointer, i, full->sizes[i], streams[i % 2]);
        full->blocks[full->count++] = pointer;
    }
    CHECK(status == GN_ERROR_OUT_OF_MEMORY);
    CHECK_DETAIL("out of memory");
}

static bool handler(gn_memory_manager *which, size_t nbytes, void *context)
{
    struct full *full = context;
    CHECK(which == manager && nbytes > 0);
    full->handler_calls++;
    if (full->count == 0)
        return false;
    for (int goal = full->count / 2 - 1; full->count > 0 && full->count > goal;)
        block_free(full->blocks[--full->count]);
    return true;
}

/* The program catches it, frees something, and goes on; what lives is unharmed. */
static void test_out_of_memory(void)
{
    gn_stream *streams[2] = {stream_make(GN_STREAM_NON_BLOCKING), stream_make(0)};
    static struct full full;
    limit_set(128 * MIB);
    for (int round = 0; round < 4; round++) {
        memory_fill(&full, streams);
        CHECK(full.count > 8 && full.count < FULL_MOST);
        for (int i = 0; i < full.count; i++)
            CHECK(holds(full.blocks[i], i, 4096, streams[i % 2]));
        while (full.count > 8 - 2 * round)
            block_free(full.blocks[--full.count]);
    }
    memory_fill(&full, streams);
    CHECK_OK(gn_memory_set_out_of_memory_handler(manager, handler, &full));
    char *block = block_make(40 * MIB, streams[1]);
    CHECK(full.handler_calls >= 1 && full.handler_calls <= 3);
    fill(block, 3, 40 * MIB, streams[1]);
    CHECK_OK(gn_memory_set_out_of_memory_handler(manager, NULL, NULL));
    for (int i = 0; i < full.count; i++)
        CHECK(holds(full.blocks[i], i, 4096, streams[i % 2]));
    CHECK(holds(block, 3, 40 * MIB, streams[1]));
    block_free(block);
    while (full.count > 0)
        block_free(full.blocks[--full.count]);
    CHECK(statistics().out_of_memory_count >= 5);
    limit_set(0);
    gn_stream_release(streams[0]);
    gn_stream_release(streams[1]);
    all_goes_back();
    findings_check();
}

int main(void)
{
    if (gn_device_get(GN_DEVICE_CUDA, 0, &device) != GN_OK) {
        printf("skipped: %s\n", gn_error_detail());
        return CHECK_SKIPPED;
    }
    const struct gni_cuda_driver *driver = gni_cuda_device_of(device)->driver;
    cuda = &driver->functions;
    is_simulated = sim_control_load(driver->path, &control);
    CHECK_OK(gn_memory_manager_get(device, &manager));
    printf("policy %s\n", gn_memory_manager_get_policy(manager));
    RUN(test_record_stream);
    RUN(test_streams_come_and_go);
    RUN(test_readers_come_and_go);
    RUN(test_foreign_streams_come_and_go);
    RUN(test_out_of_memory);
    RUN(test_graph_with_pool);
    RUN(test_graph_with_side_stream);
    RUN(test_capture_and_default_stream);
    RUN(test_capture_out_of_memory);
    RUN(test_graph_without_pool);
    return check_result();
}
