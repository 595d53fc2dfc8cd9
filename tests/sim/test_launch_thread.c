/*
 * test_launch_thread.c: several threads and the one that submits kernels (device/cuda/cuda_queue.c), on the simulated
 * GPU: they launch on streams of their own and on one that they share, wait in every way, allocate, free, capture, fail
 * and shut down. What the blocks hold says that no launch was lost, doubled or moved; the thread sanitizer, that it was
 * no luck. tests/python/test_launch_thread.py has what one thread can see.
 *
 *     test_launch_thread [WAKES]
 */
#include "child.h"
#include "system_faults.h"

#include "base/host.h"
#include "base/thread.h"
#include "control.h"
#include "device/cuda/cuda.h"
#include "device/cuda/library.h"
#include "genesis/genesis.h"
#include "jit/kernel.h"
#include "jit/tune.h"
#include "ops/cuda/blas_plan.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <unistd.h>

enum {
    THREADS = 4,
    ROUNDS = 12,     /* of each thread */
    BURST = 40,      /* launches in a row, at most: more than the queue holds */
    RUN_LEAST = 6,   /* as in cuda_queue.c */
    INTS = 64,       /* in a block */
    TOO_MANY = 2048, /* threads */
};

struct arguments {
    int *x;
    int by;
};

static const struct gni_kernel_source source = {
    .name = "count",
    .text = "struct arguments { int *x; int by; };\n"
            "extern \"C\" __global__ void count(arguments a)\n"
            "{\n"
            "    a.x[threadIdx.x] += a.by;\n"
            "}\n",
};

static gn_device *device;
static gn_memory_manager *manager;
static gn_stream *common; /* the default stream */
static struct gni_kernel *kernel;
static struct sim_control control;
static int wake_count = 1000;
static bool is_together; /* as GENESIS_LAUNCH_TOGETHER has it */

/* ---- blocks that count ------------------------------------------------------------------------ */

/* By handles: with an address that others know, nothing would be left to the thread. */
static gn_memory_block *block_make(gn_stream *stream)
{
    gn_memory_block *block = NULL;
    size_t nbytes = INTS * sizeof(int);
    CHECK_OK(gn_memory_block_alloc(manager, nbytes, stream, &block));
    CHECK_OK(gn_fill(gn_memory_block_peek_address(block), 0, 1, nbytes, stream));
    return block;
}

static gn_status block_launch(const gn_memory_block *block, int by, unsigned threads,
                              gn_stream *stream)
{
    struct arguments own = {.x = gn_memory_block_peek_address(block), .by = by};
    void *arguments[] = {&own};
    struct gni_launch launch = {.grid = {1, 1, 1},
                                .block = {threads, 1, 1},
                                .arguments = arguments,
                                .argument_bytes = sizeof own};
    return gni_kernel_launch(kernel, stream, &launch);
}

static gn_status block_count(const gn_memory_block *block, int by, gn_stream *stream)
{
    return block_launch(block, by, INTS, stream);
}

/* All of its elements; -1 where they differ. */
static int block_read(const gn_memory_block *block, gn_stream *stream)
{
    int host[INTS] = {0};
    CHECK_OK(gn_copy(host, gn_memory_block_peek_address(block), sizeof host, stream));
    CHECK_OK(gn_stream_synchronize(stream));
    for (int i = 1; i < INTS; i++)
        if (host[i] != host[0])
            return -1;
    return host[0];
}

/* ---- one thread ------------------------------------------------------------------------------- */

/* Of a run of launches only the first ones are made by the caller. */
static void test_launches_are_left_to_it(void)
{
    struct gni_cuda_device *cuda = gni_cuda_device_of(device);
    gn_memory_block *block = block_make(common);
    for (int i = 0; i < BURST; i++)
        CHECK_OK(block_count(block, 1, common));
    CHECK_U64(atomic_load(&cuda->launch_run), RUN_LEAST);
    CHECK(atomic_load(&cuda->queue) != NULL);
    CHECK_U64(block_read(block, common), BURST);
    CHECK_OK(gn_memory_block_free(block));
}

/* Launches on a stream, with what they leave in a block; true if all were made by the caller. */
static bool are_direct(gn_stream *stream)
{
    struct gni_cuda_device *cuda = gni_cuda_device_of(device);
    gn_memory_block *block = block_make(stream);
    for (int i = 0; i < BURST; i++)
        CHECK_OK(block_count(block, 1, stream));
    int run = atomic_load(&cuda->launch_run);
    CHECK(run == BURST || run == RUN_LEAST);
    CHECK_U64(block_read(block, stream), BURST);
    CHECK_OK(gn_memory_block_free(block));
    return run == BURST;
}

/* Before there is a queue: where the host has no memory for it, launches are made directly. */
static void test_no_memory_for_a_queue(void)
{
    struct gni_cuda_device *cuda = gni_cuda_device_of(device);
    gn_memory_block *block = block_make(common);
    for (int i = 0; i < RUN_LEAST; i++)
        CHECK_OK(block_count(block, 1, common));
    CHECK(atomic_load(&cuda->queue) == NULL);
    gni_host_fail_after(1);
    CHECK_OK(block_count(block, 1, common));
    gni_host_fail_after(-1);
    CHECK(atomic_load(&cuda->queue) == NULL);
    CHECK_U64(atomic_load(&cuda->launch_run), RUN_LEAST + 1);
    CHECK_U64(block_read(block, common), RUN_LEAST + 1);
    CHECK_OK(gn_memory_block_free(block));
}

/* Q2: what others could see is not left to the thread. */
static void test_what_others_could_see(void)
{
    gn_stream *own = NULL, *same = NULL;
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &own));
    CHECK(!are_direct(own) && !are_direct(common));
    CHECK_OK(gn_device_synchronize(device));
    device->ops->pause(device); /* this thread may still submit */
    CHECK(are_direct(own) && are_direct(common));
    device->ops->resume(device);
    CHECK(!are_direct(own));
    CHECK(gn_stream_get_handle(own) != NULL);
    CHECK(are_direct(own) && !are_direct(common));
    CHECK_OK(gn_stream_from_handle(device, gn_stream_get_handle(own), &same));
    CHECK(are_direct(same));
    gn_stream_release(same);
    gn_stream_release(own);
}

/* The queue has no thread, after a shutdown: launches are made directly until one can be started. One that cannot leave
 * the captures of others alone submits one by one. */
static void test_no_thread(void)
{
    size_t leaked = 0;
    CHECK_OK(gn_shutdown(&leaked));
    CHECK_OK(gn_stream_get_default(device, &common));
    CHECK_OK(gni_kernel_get(device, &source, &kernel));
    system_fail("pthread_create", 1, EAGAIN, true);
    CHECK(are_direct(common));
    CHECK(system_fault_count() > 0);
    system_fail(NULL, 0, 0, false);
    control.fail("cuThreadExchangeStreamCaptureMode", 1, CUDA_ERROR_UNKNOWN, 1);
    long graphs = control.call_count("cuGraphLaunch");
    for (int i = 0; i < 3; i++)
        CHECK(!are_direct(common));
    CHECK_U64(control.call_count("cuGraphLaunch"), graphs);
    control.fail(NULL, 0, 0, 0);
    CHECK_OK(gn_shutdown(&leaked)); /* the next thread is as it should be */
    CHECK_OK(gn_stream_get_default(device, &common));
    CHECK_OK(gni_kernel_get(device, &source, &kernel));
    CHECK(!are_direct(common));
}

/* A device that is lost with launches behind it says so, and what goes does not wait for them. */
static void test_lost(void)
{
    gn_stream *own = NULL;
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &own));
    gn_memory_block *block = block_make(own);
    for (int i = 0; i < BURST; i++)
        CHECK_OK(block_count(block, 1, own));
    control.fail("cuStreamSynchronize", 1, CUDA_ERROR_ILLEGAL_ADDRESS, 0);
    CHECK_STATUS(gn_stream_synchronize(own), GN_ERROR_DEVICE_LOST);
    control.fail(NULL, 0, 0, 0);
    for (int i = 0; i < BURST; i++)
        CHECK_STATUS(block_count(block, 1, own), GN_ERROR_DEVICE_LOST);
    CHECK_STATUS(gn_device_synchronize(device), GN_ERROR_DEVICE_LOST);
    gni_device_submit(device);
    gn_stream_release(own);
}

/* Executable graphs, and the graphs that they were made of, that were made and not destroyed. */
static long graphs_alive(void)
{
    return control.call_count("cuGraphCreate") - control.call_count("cuGraphDestroy") +
           control.call_count("cuGraphInstantiateWithFlags") -
           control.call_count("cuGraphExecDestroy");
}

/* Those that wait are submitted by one call, and what was made for a stream goes with it. */
static void test_together(void)
{
    for (int round = 0; round < 3; round++) {
        gn_stream *own = NULL;
        long graphs = control.call_count("cuGraphLaunch"), alive = graphs_alive();
        CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &own));
        gn_memory_block *block = block_make(own);
        int count = 0;
        do { /* again, where the thread had no processor: then the caller submits what waits */
            for (int i = 0; i < BURST; i++)
                CHECK_OK(block_count(block, 1, own));
            count += BURST;
            CHECK_U64(block_read(block, own), count);
        } while (is_together && control.call_count("cuGraphLaunch") == graphs && count < 10000);
        CHECK((control.call_count("cuGraphLaunch") > graphs) == is_together);
        CHECK((graphs_alive() > alive) == is_together);
        CHECK_OK(gn_memory_block_free(block));
        if (round == 0) /* the stream itself stays */
            control.fail("cuCtxPushCurrent", 1, CUDA_ERROR_OUT_OF_MEMORY, 1);
        gn_stream_release(own);
        control.fail(NULL, 0, 0, 0);
        CHECK_U64(graphs_alive(), alive);
    }
}

/* A launch that cannot be is reported, and those around it are made. */
static void test_impossible(void)
{
    for (int bad = 0; bad < BURST; bad++) {
        gn_memory_block *block = block_make(common);
        int failure_count = 0;
        CHECK_OK(gn_device_synchronize(device));
        for (int i = 0; i < BURST; i++) /* the next one of the caller's may learn of it */
            failure_count += block_launch(block, 1, i == bad ? TOO_MANY : INTS, common) != GN_OK;
        failure_count += gn_stream_synchronize(common) != GN_OK;
        CHECK_U64(failure_count, 1);
        int sum = block_read(block, common);
        CHECK(sum == BURST - 1 || (sum == BURST - 2 && bad >= RUN_LEAST));
        CHECK_OK(gn_memory_block_free(block));
    }
}

/* What goes behind a launch that has failed goes, and does not take the report along. */
static void test_failure_and_what_goes(void)
{
    gn_stream *own = NULL;
    gn_event *event = NULL;
    gn_memory_block *block = block_make(common);
    for (int round = 0; round < 2; round++) {
        CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &own));
        CHECK_OK(gn_event_create(device, 0, &event));
        long destroyed =
            control.call_count("cuStreamDestroy") + control.call_count("cuEventDestroy");
        for (int i = 0; i < BURST; i++)
            CHECK_OK(block_launch(block, 1, i == BURST - 1 ? TOO_MANY : INTS, common));
        if (round == 0) {
            gn_event_destroy(event);
            gn_stream_release(own);
        } else {
            gn_stream_release(own);
            gn_event_destroy(event);
        }
        CHECK_U64(control.call_count("cuStreamDestroy") + control.call_count("cuEventDestroy"),
                  destroyed + 2);
        CHECK(gn_stream_synchronize(common) != GN_OK);
        CHECK_OK(gn_stream_synchronize(common));
    }
    CHECK_OK(gn_memory_block_free(block));
}

/* An allocation that has to wait for the device gives a launch that has failed as the reason, in the launch's own words
 * and once; not "out of memory", be it that the launch itself had none. The next one is out of memory. */
static void test_failure_in_an_allocation(void)
{
    size_t free_bytes = 0, total_bytes = 0;
    gn_memory_block *large = NULL, *more = NULL;
    CHECK_OK(gn_device_synchronize(device));
    CHECK_OK(gn_device_get_memory_info(device, &free_bytes, &total_bytes));
    CHECK_OK(gn_memory_block_alloc(manager, total_bytes / 4 * 3, common, &large));
    for (int is_full = 0; is_full <= !is_together; is_full++) { /* else it may be in a graph */
        gn_memory_block *block = block_make(common);
        for (int i = 0; i < BURST; i++)
            CHECK_OK(block_launch(block, 1, INTS, common));
        gni_device_submit(device);
        if (is_full)
            control.fail("cuLaunchKernel", 1, CUDA_ERROR_OUT_OF_MEMORY, 0);
        CHECK_OK(block_launch(block, 1, is_full ? INTS : TOO_MANY, common));
        gn_status status = gn_memory_block_alloc(manager, total_bytes / 2, common, &more);
        CHECK(status == (is_full ? GN_ERROR_DRIVER : GN_ERROR_INVALID_VALUE) && more == NULL);
        CHECK_DETAIL("submitted before");
        CHECK_DETAIL("cuLaunchKernel");
        control.fail(NULL, 0, 0, 0);
        CHECK_STATUS(gn_memory_block_alloc(manager, total_bytes / 2, common, &more),
                     GN_ERROR_OUT_OF_MEMORY);
        CHECK_DETAIL("were asked for");
        CHECK_U64(block_read(block, common), BURST);
        CHECK_OK(gn_memory_block_free(block));
    }
    CHECK_OK(gn_memory_block_free(large));
}

/* The threads of this process. */
static int threads_count(void)
{
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    int count = 0;
    for (struct dirent *task; tasks != NULL && (task = readdir(tasks)) != NULL;)
        count += task->d_name[0] != '.';
    (void)closedir(tasks);
    return count;
}

/* A thread that wakes when the caller has done its work is there for the next. One in ten thousand wakes is as late as
 * that, on an idle machine. */
static void test_late(void)
{
    gn_memory_block *block = block_make(common);
    for (int i = 0; i < BURST; i++) /* it is started */
        CHECK_OK(block_count(block, 1, common));
    int before = threads_count();
    for (int wake = 0; wake < wake_count; wake++) {
        CHECK_OK(gn_stream_synchronize(common));
        (void)usleep(100); /* it falls asleep */
        for (int i = 0; i < RUN_LEAST + 1; i++)
            CHECK_OK(block_count(block, 1, common));
    }
    CHECK_U64(block_read(block, common), BURST + wake_count * (RUN_LEAST + 1));
    CHECK_U64(threads_count(), before);
    CHECK_OK(gn_memory_block_free(block));
}

/* ---- several ---------------------------------------------------------------------------------- */

struct worker {
    uint64_t seed;
    gn_memory_block *common_block;
    int common_count;  /* what it has added there */
    int failure_count; /* launches that were reported */
    void (*work)(struct worker *worker);
};

static int pick(struct worker *worker, int count)
{
    return (int)(check_random(&worker->seed) % (uint64_t)count);
}

static void *worker_run(void *context)
{
    struct worker *worker = context;
    worker->work(worker);
    return NULL;
}

/* Runs the work in all threads, and looks at the block that they share. */
static void workers_run(void (*work)(struct worker *worker), int *failure_count)
{
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    gn_memory_block *block = block_make(common);
    int sum = 0;
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.seed = (uint64_t)i + 1, .common_block = block, .work = work};
        CHECK(pthread_create(&threads[i], NULL, worker_run, &workers[i]) == 0);
    }
    *failure_count = 0;
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        sum += workers[i].common_count;
        *failure_count += workers[i].failure_count;
    }
    if (*failure_count == 0)
        CHECK_U64(block_read(block, common), sum);
    else /* by one of them, of which nobody knows whose it was */
        CHECK_OK(gn_stream_synchronize(common));
    CHECK_OK(gn_memory_block_free(block));
}

/* Launches on both streams, by turns; what is added on the own one. */
static int worker_launch(struct worker *worker, const gn_memory_block *block, gn_stream *stream)
{
    int added = 0, count = 1 + pick(worker, BURST);
    for (int i = 0; i < count; i++) {
        int by = 1 + pick(worker, 3);
        CHECK_OK(block_count(block, by, stream));
        added += by;
        if (pick(worker, 4) == 0) {
            CHECK_OK(block_count(worker->common_block, by, common));
            worker->common_count += by;
        }
        if (pick(worker, 100) == 0)
            (void)usleep(200); /* the thread falls asleep */
    }
    return added;
}

static void work_waits(struct worker *worker)
{
    gn_stream *own = NULL, *other = NULL;
    gn_event *event = NULL;
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &own));
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &other));
    CHECK_OK(gn_event_create(device, 0, &event));
    gn_memory_block *block = block_make(own);
    int added = 0;
    for (int round = 0; round < ROUNDS; round++) {
        added += worker_launch(worker, block, own);
        switch (pick(worker, 6)) {
        case 0:
            CHECK_OK(gn_stream_synchronize(own));
            break;
        case 1: /* on to the other stream, and back */
            CHECK_OK(gn_event_record(event, own));
            CHECK_OK(gn_stream_wait_event(other, event));
            CHECK_OK(block_count(block, 1, other));
            CHECK_OK(gn_event_record(event, other));
            CHECK_OK(gn_stream_wait_event(own, event));
            added++;
            break;
        case 2: /* what is pending may still use it: the next block does not */
            CHECK_OK(gn_memory_block_free(block));
            block = block_make(own);
            added = 0;
            break;
        case 3:
            CHECK_OK(gn_device_synchronize(device));
            break;
        case 4:
            gni_device_submit(device);
            break;
        default:
            CHECK_U64(block_read(block, own), added);
        }
    }
    CHECK_U64(block_read(block, own), added);
    CHECK_OK(gn_memory_block_free(block));
    gn_event_destroy(event);
    gn_stream_release(own);
    gn_stream_release(other);
}

static void test_threads(void)
{
    int failure_count;
    workers_run(work_waits, &failure_count);
    CHECK_U64(failure_count, 0);
}

/* The first thread captures while the others launch. */
static void work_captures(struct worker *worker)
{
    bool is_capturing = worker->seed == 1;
    gn_stream *own = NULL;
    gn_graph *graph = NULL;
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &own));
    gn_memory_block *block = block_make(own);
    int added = 0;
    for (int round = 0; round < ROUNDS / 3; round++) {
        if (!is_capturing) {
            added += worker_launch(worker, block, own);
            CHECK_OK(gn_stream_synchronize(own));
            continue;
        }
        CHECK_OK(gn_graph_create(device, &graph));
        CHECK_OK(gn_graph_begin(graph, own, NULL));
        for (int i = 0; i < BURST; i++)
            CHECK_OK(block_count(block, 1, own));
        CHECK_OK(gn_graph_end(graph));
        CHECK_OK(gn_graph_replay(graph, own));
        CHECK_OK(gn_graph_replay(graph, own));
        added += 2 * BURST;
        CHECK_U64(block_read(block, own), added);
        gn_graph_destroy(graph);
    }
    CHECK_U64(block_read(block, own), added);
    CHECK_OK(gn_memory_block_free(block));
    gn_stream_release(own);
}

static void test_captures(void)
{
    int failure_count;
    workers_run(work_captures, &failure_count);
    CHECK_U64(failure_count, 0);
}

/* A launch that fails is reported to one of them, once. */
static void work_fails(struct worker *worker)
{
    for (int i = 0; i < 3 * BURST; i++)
        worker->failure_count += block_count(worker->common_block, 1, common) != GN_OK;
    worker->failure_count += gn_stream_synchronize(common) != GN_OK;
}

static void test_failures(void)
{
    int most = is_together ? 2 : 3 * BURST; /* others may be in graphs */
    for (int nth = 1; nth < most; nth += 47) {
        int failure_count;
        CHECK_OK(gn_device_synchronize(device));
        control.fail("cuLaunchKernel", nth, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 0);
        workers_run(work_fails, &failure_count);
        CHECK_U64(failure_count, 1);
        CHECK_U64(control.fault_count(), 1);
    }
}

/* The device goes with launches behind it, and comes again; whatever else gives something back before. */
static void test_shutdown(void)
{
    gni_tune_clear();
    (void)gni_cublas_is_ready(device);
    for (int round = 0; round < 3; round++) {
        size_t leaked = 0;
        test_launches_are_left_to_it();
        gn_memory_block *block = block_make(common);
        for (int i = 0; i < BURST; i++)
            CHECK_OK(block_count(block, 1, common));
        CHECK_OK(gn_profile_enable(true)); /* with events, which would be left */
        CHECK_OK(block_count(block, 1, common));
        CHECK_OK(gn_profile_enable(false));
        CHECK_OK(gn_memory_block_free(block));
        CHECK_OK(gn_shutdown(&leaked));
        CHECK_U64(leaked, 0);
        CHECK_OK(gn_stream_get_default(device, &common));
        CHECK_OK(gni_kernel_get(device, &source, &kernel));
    }
}

/* Neither the thread nor who takes its part submits without the context: launches that wait fail with the reason,
 * those that come later are made. A context that cannot be made current at all is an error, not a wait without an end. */
static void test_no_context(void)
{
    for (int is_persistent = 0; is_persistent < 2; is_persistent++) {
        size_t leaked = 0;
        CHECK_OK(gn_shutdown(&leaked)); /* the next launches start a thread */
        CHECK_OK(gn_stream_get_default(device, &common));
        CHECK_OK(gni_kernel_get(device, &source, &kernel));
        gn_memory_block *block = block_make(common);
        for (int i = 0; i < RUN_LEAST; i++)
            CHECK_OK(block_count(block, 1, common));
        control.fail("cuCtxPushCurrent", 1, CUDA_ERROR_OUT_OF_MEMORY, is_persistent);
        int failure_count = 0, made = RUN_LEAST;
        for (int i = 0; i < 3; i++)
            failure_count += block_count(block, 1, common) != GN_OK;
        if (failure_count == 0) {
            CHECK_STATUS(gn_stream_synchronize(common), GN_ERROR_OUT_OF_MEMORY);
            CHECK(strstr(gn_error_detail(), "cuCtxPushCurrent") != NULL);
            failure_count++;
        }
        CHECK(failure_count == 1 || is_persistent);
        control.fail(NULL, 0, 0, 0);
        CHECK_OK(gn_stream_synchronize(common)); /* it was reported once */
        int sum = block_read(block, common);
        CHECK(sum >= made && sum < made + 3);
        for (int i = 0; i < BURST; i++)
            CHECK_OK(block_count(block, 1, common));
        CHECK_U64(block_read(block, common), sum + BURST);
        CHECK_OK(gn_memory_block_free(block));
    }
}

static const struct gni_device_ops *own_ops;
static gn_graph *other_graph;

/* Somebody captures the stream in the moment before it is replayed to. */
static gn_status capturing_id(gn_stream *stream, uint64_t *id)
{
    stream->device->ops = own_ops;
    CHECK_OK(gn_graph_begin(other_graph, stream, NULL));
    *id = 1;
    return GN_OK;
}

/* With a tensor: who notes that a captured stream uses it has the lock that a replay has. */
static void test_replay_while_captured(void)
{
    gn_stream *own = NULL;
    gn_tensor *x = NULL;
    gn_graph *graph = NULL;
    struct gni_device_ops ops = *device->ops;
    CHECK_OK(gn_tensor_create(GN_FLOAT32, 1, (const int64_t[]){INTS}, device, &x));
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &own));
    CHECK_OK(gn_graph_create(device, &graph));
    CHECK_OK(gn_graph_create(device, &other_graph));
    CHECK_OK(gn_graph_begin(graph, own, NULL));
    CHECK_OK(gn_stream_set_current(own));
    CHECK_OK(gn_assign(x, (gn_operand){.scalar = {.kind = GN_FLOAT64, .floating = 1}}));
    CHECK_OK(gn_stream_set_current(common));
    CHECK_OK(gn_graph_end(graph));
    own_ops = device->ops;
    ops.stream_id = capturing_id;
    device->ops = &ops;
    CHECK_STATUS(gn_graph_replay(graph, own), GN_ERROR_CAPTURE);
    CHECK_OK(gn_graph_end(other_graph));
    CHECK_OK(gn_graph_replay(graph, own));
    gn_graph_destroy(graph);
    gn_graph_destroy(other_graph);
    gn_tensor_release(x);
    gn_stream_release(own);
}

#ifndef CHILD_IS_ALONE
static void fork_body(void *context)
{
    for (int i = 0; i < BURST; i++)
        CHECK(block_count(context, 1, common) != GN_OK);
}

/* While the others push. */
static void work_forks(struct worker *worker)
{
    static struct child_result result;
    for (int round = 0; round < ROUNDS; round++) {
        if (worker->seed == 1 && round % 4 == 0) {
            child_run(fork_body, worker->common_block, &result);
            child_is_ok(&result);
        }
        for (int i = 0; i < BURST; i++)
            CHECK_OK(block_count(worker->common_block, 1, common));
        worker->common_count += BURST;
    }
}

static void test_forks(void)
{
    int failure_count;
    workers_run(work_forks, &failure_count);
}

static gn_graph *replayed;

static void replay_body(void *stream)
{
    CHECK_STATUS(gn_graph_replay(replayed, stream), GN_ERROR_FORKED);
    CHECK_STATUS(gn_graph_reset(replayed), GN_ERROR_FORKED);
    gn_graph_destroy(replayed);
}

static gn_status forking_launch(const struct gni_graph *graph, gn_stream *stream)
{
    static struct child_result result;
    child_run(replay_body, stream, &result);
    CHECK(child_is_ok(&result));
    return own_ops->graph_launch(graph, stream);
}

/* A child does not wait for a thread that was replaying. */
static void test_fork_in_replay(void)
{
    gn_stream *own = NULL;
    CHECK_OK(gn_stream_create(device, GN_STREAM_NON_BLOCKING, 0, &own));
    gn_memory_block *block = block_make(own);
    CHECK_OK(gn_graph_create(device, &replayed));
    CHECK_OK(gn_graph_begin(replayed, own, NULL));
    CHECK_OK(block_count(block, 1, own));
    CHECK_OK(gn_graph_end(replayed));
    own_ops = device->ops;
    struct gni_device_ops ops = *own_ops;
    ops.graph_launch = forking_launch;
    device->ops = &ops;
    CHECK_OK(gn_graph_replay(replayed, own));
    device->ops = own_ops;
    CHECK_U64(block_read(block, own), 1);
    gn_graph_destroy(replayed);
    CHECK_OK(gn_memory_block_free(block));
    gn_stream_release(own);
}
#endif

static gn_memory_block *last_block; /* on which launches were left to the thread */

/* After the library's own handlers: nothing is left to the thread any more. */
static void launch_at_exit(void)
{
    int before = check_failures;
    for (int i = 0; i < RUN_LEAST && last_block != NULL; i++)
        CHECK_STATUS(block_count(last_block, 1, common), GN_ERROR_SHUTDOWN);
    if (check_failures != before)
        _exit(1);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        wake_count = atoi(argv[1]);
    (void)atexit(launch_at_exit);
    (void)setenv("GENESIS_LAUNCH_THREAD", "on", 1); /* wherever the test runs */
    (void)setenv("SIM_GPU_DELAY_US", "3", 1);       /* as a driver */
    gn_library_description driver;
    if (gn_device_get(GN_DEVICE_CUDA, 0, &device) != GN_OK || !gn_library_describe(0, &driver) ||
        !sim_control_load(driver.path, &control)) {
        printf("skipped: the simulated GPU is needed\n");
        return CHECK_SKIPPED;
    }
    CHECK_OK(gn_memory_manager_get(device, &manager));
    CHECK_OK(gn_stream_get_default(device, &common));
    CHECK_OK(gni_kernel_get(device, &source, &kernel));
    if (kernel == NULL)
        return check_result();
    is_together = gni_cuda_device_of(device)->launches_together;
    RUN(test_no_memory_for_a_queue);
    RUN(test_launches_are_left_to_it);
    RUN(test_what_others_could_see);
    RUN(test_together);
    RUN(test_impossible);
    RUN(test_together); /* they are as before */
    RUN(test_failure_and_what_goes);
    RUN(test_failure_in_an_allocation);
    RUN(test_late);
    RUN(test_threads);
    RUN(test_captures);
    RUN(test_replay_while_captured);
    RUN(test_failures);
    RUN(test_shutdown);
    RUN(test_no_context);
    RUN(test_no_thread);
    RUN(test_threads); /* with the thread that was started after a shutdown */
#ifndef CHILD_IS_ALONE
    RUN(test_forks);
    RUN(test_fork_in_replay);
#endif
    CHECK_U64(control.finding_count(), 0);
    last_block = block_make(common);
    for (int i = 0; i < BURST; i++)
        CHECK_OK(block_count(last_block, 1, common));
    RUN(test_lost);
    return check_result();
}
