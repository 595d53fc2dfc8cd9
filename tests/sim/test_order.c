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
 * before the free. The manager must keep P5 of pool.h: on the simulated GPU its checker sees every access,
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
#include "check.h"

#include "control.h"
#include "device/cuda/cuda.h"
#include "genesis/genesis.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

enum {
    THREADS_MAX = 4,
    SLOTS = 8,          /* blocks of one thread */
    SHARED_STREAMS = 5, /* of all threads; 0 is the default stream */
    STREAMS_MAX = 48,
    MAILBOX = 4,
    SIZES = 5,     /* that come often in a program */
    WINDOW = 8192, /* bytes that are worked on at the start, middle and end of a large block */
    SECONDS = 120, /* then a program is stuck */
    TEXTS = 3,
};

/* What a child tells its parent, in shared memory. */
struct report {
    int finding_count;
    int wrong_count;
    uint64_t order_hash;
    uint64_t handover_count, event_count, out_of_memory_count, retry_count, folded_pages;
    uint64_t stream_hit_count, pending_count, restart_count, destroyed_count;
    char texts[TEXTS][512]; /* of findings */
};

enum kind {
    KIND_DEFAULT,
    KIND_BLOCKING,
    KIND_NON_BLOCKING,
    KIND_FOREIGN, /* made and destroyed by the driver, behind the library's back */
    KIND_PER_THREAD,
};

struct stream {
    enum kind kind;
    gn_stream *stream;
    gn_stream *wrapper; /* the same stream by its handle, or NULL */
    CUstream raw;       /* FOREIGN */
    int thread;         /* whose; -1: everyone's */
    bool is_alive;      /* work may be submitted */
};

struct block {
    gn_memory_manager *manager;
    char *pointer;           /* NULL: the slot is empty */
    gn_memory_block *handle; /* or by its address only */
    size_t nbytes;
    int home;           /* the stream it was allocated for */
    int at;             /* where its last work is; work elsewhere must wait for it */
    bool is_stuck;      /* no more work can be ordered after the last */
    bool is_homeless;   /* its home may be gone */
    uint64_t announced; /* streams, as bits */
    unsigned char value;
};

struct program {
    uint64_t seed, state;
    gn_device *device;
    gn_memory_manager *manager, *pinned;
    const struct gni_cuda_functions *cuda;
    struct sim_control control;
    bool is_simulated, is_free; /* free: threads run as they like */
    int thread_count, step_count;
    size_t sizes[SIZES];
    struct stream streams[STREAMS_MAX];
    int stream_count; /* places that are taken; only grows */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct block mailbox[MAILBOX];
    struct worker {
        struct program *program;
        int index;
        uint64_t state; /* of its generator */
        pthread_t thread;
        gn_event *event;
        int own;          /* its per-thread stream; -1: none yet */
        int favourite;    /* the stream it uses most */
        bool has_current; /* it has set a current stream; until then that is the default stream */
        bool is_held;     /* a block was found that names a stream */
        struct block slots[SLOTS];
        enum order {
            ORDER_NONE,
            ORDER_STEP,
            ORDER_END,
        } order;
    } workers[THREADS_MAX];
    struct report *report;
};

static void wrong(struct program *program, int line, const char *what, gn_status status)
{
    __atomic_fetch_add(&program->report->wrong_count, 1, __ATOMIC_RELAXED);
#ifndef EXPECT_FINDINGS
    fprintf(stderr, "    seed %llu, line %d: %s: %s: %s\n", (unsigned long long)program->seed, line,
            what, gn_status_name(status), gn_error_detail());
#else
    (void)line, (void)what, (void)status;
#endif
}

/* For calls that must succeed. */
#define OK(call)                                        \
    do {                                                \
        gn_status ok_status = (call);                   \
        if (ok_status != GN_OK)                         \
            wrong(program, __LINE__, #call, ok_status); \
    } while (0)

#define EXPECT(condition)                                \
    do {                                                 \
        if (!(condition))                                \
            wrong(program, __LINE__, #condition, GN_OK); \
    } while (0)

static uint64_t draw(struct worker *worker, uint64_t count)
{
    return check_random(&worker->state) % count;
}

static void count_up(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* ---- streams -------------------------------------------------------------------------------- */

/* Calls the driver itself, as another library would, with the device's context. */
static void context_enter(struct program *program)
{
    CUcontext context = atomic_load(&gni_cuda_device_of(program->device)->context);
    EXPECT(program->cuda->cuCtxPushCurrent(context) == CUDA_SUCCESS);
}

static void context_leave(struct program *program)
{
    CUcontext context;
    EXPECT(program->cuda->cuCtxPopCurrent(&context) == CUDA_SUCCESS);
}

static void stream_open(struct program *program, int place, enum kind kind, int thread,
                        bool has_wrapper)
{
    struct stream *stream = &program->streams[place];
    *stream = (struct stream){.kind = kind, .thread = thread};
    gn_device *device = program->device;
    switch (kind) {
    case KIND_DEFAULT:
        OK(gn_stream_get_default(device, &stream->stream));
        break;
    case KIND_BLOCKING:
    case KIND_NON_BLOCKING:
        OK(gn_stream_create(device, kind == KIND_BLOCKING ? 0 : GN_STREAM_NON_BLOCKING, 0,
                            &stream->stream));
        if (has_wrapper)
            OK(gn_stream_from_handle(device, gn_stream_get_handle(stream->stream),
                                     &stream->wrapper));
        break;
    case KIND_FOREIGN:
        context_enter(program);
        EXPECT(program->cuda->cuStreamCreateWithPriority(&stream->raw, CU_STREAM_NON_BLOCKING, 0) ==
               CUDA_SUCCESS);
        context_leave(program);
        OK(gn_stream_from_handle(device, stream->raw, &stream->stream));
        if (has_wrapper)
            OK(gn_stream_from_handle(device, stream->raw, &stream->wrapper));
        break;
    case KIND_PER_THREAD:
        OK(gn_stream_from_handle(device, (void *)2, &stream->stream));
        break;
    }
    stream->is_alive = true;
}

/* Nothing is submitted to it any more; what was submitted still runs. */
static void stream_close(struct program *program, struct stream *stream)
{
    if (!stream->is_alive || stream->kind == KIND_DEFAULT)
        return;
    stream->is_alive = false;
    if (stream->kind == KIND_FOREIGN) {
        context_enter(program);
        EXPECT(program->cuda->cuStreamDestroy(stream->raw) == CUDA_SUCCESS);
        context_leave(program);
    }
    gn_stream_release(stream->stream);
    gn_stream_release(stream->wrapper);
}

/* One of the names of a stream. */
static gn_stream *stream_name(struct worker *worker, int place)
{
    struct stream *stream = &worker->program->streams[place];
    return stream->wrapper != NULL && draw(worker, 2) ? stream->wrapper : stream->stream;
}

/* Whose it is comes first: another thread that runs freely may be ending its own. */
static bool stream_is_usable(const struct worker *worker, int place)
{
    const struct stream *stream = &worker->program->streams[place];
    bool is_ours = stream->thread < 0 || stream->thread == worker->index;
    if (stream->kind == KIND_PER_THREAD)
        is_ours = place == worker->own;
    else if (!worker->program->is_free)
        is_ours = true;
    return is_ours && stream->is_alive;
}

/* A stream that the thread may use. The default stream always is. */
static int stream_draw(struct worker *worker)
{
    struct program *program = worker->program;
    if (draw(worker, 2) && stream_is_usable(worker, worker->favourite))
        return worker->favourite;
    if (worker->own >= 0 && draw(worker, 4) == 0)
        return worker->own;
    for (int i = 0; i < 8; i++) {
        int place = (int)draw(worker, SHARED_STREAMS + (uint64_t)program->thread_count);
        if (stream_is_usable(worker, place))
            return place;
    }
    return 0;
}

/* ---- work ----------------------------------------------------------------------------------- */

/* Everything that is submitted to `to` from now on comes after what is in `from`. */
static void streams_order(struct worker *worker, int from, int to)
{
    struct program *program = worker->program;
    if (from == to)
        return;
    OK(gn_event_record(worker->event, stream_name(worker, from)));
    OK(gn_stream_wait_event(stream_name(worker, to), worker->event));
}

static void block_announce(struct worker *worker, struct block *block, int place)
{
    struct program *program = worker->program;
    if (place == block->home || block->announced >> place & 1)
        return;
    OK(gn_memory_record_stream(block->manager, block->pointer, stream_name(worker, place)));
    block->announced |= UINT64_C(1) << place;
}

static bool block_is_usable(const struct worker *worker, const struct block *block)
{
    return block->pointer != NULL && !block->is_stuck && stream_is_usable(worker, block->at);
}

/* Moves a block to a stream, in which it is going to be used. */
static void block_move(struct worker *worker, struct block *block, int to)
{
    if (block->at == to)
        return;
    streams_order(worker, block->at, to);
    block->at = to;
    /* A thread's own stream is announced by that thread; the others here, or before the free. */
    if (worker->program->streams[to].kind == KIND_PER_THREAD || draw(worker, 2))
        block_announce(worker, block, to);
}

/* The parts of a block that are worked on. Returns how many. */
static int windows(size_t nbytes, size_t starts[3], size_t *length)
{
    *length = nbytes;
    starts[0] = 0;
    if (nbytes <= 4 * WINDOW)
        return 1;
    *length = WINDOW;
    starts[1] = nbytes / 2;
    starts[2] = nbytes - WINDOW;
    return 3;
}

static void block_fill(struct worker *worker, struct block *block)
{
    struct program *program = worker->program;
    gn_stream *stream = stream_name(worker, block->at);
    block->value = (unsigned char)draw(worker, 256);
    size_t starts[3], length;
    if (draw(worker, 8) == 0) {
        OK(gn_fill(block->pointer, block->value, 1, block->nbytes, stream));
        return;
    }
    for (int i = 0, count = windows(block->nbytes, starts, &length); i < count; i++)
        OK(gn_fill(block->pointer + starts[i], block->value, 1, length, stream));
}

/* The end of one block is written with the start of another: both hold one value there. */
static void block_copy(struct worker *worker, struct block *to, struct block *from)
{
    struct program *program = worker->program;
    gn_stream *stream = stream_name(worker, to->at);
    size_t starts[3], length, ours = from->nbytes < WINDOW ? from->nbytes : WINDOW;
    int count = windows(to->nbytes, starts, &length);
    for (int i = 0; i < count; i++)
        for (size_t done = 0; done < length; done += ours) {
            size_t part = length - done < ours ? length - done : ours;
            OK(gn_copy(to->pointer + starts[i] + done, from->pointer, part, stream));
        }
    to->value = from->value;
}

/* Reads a block by a stream that is ordered after its work. */
static void block_check(struct program *program, const struct block *block, gn_stream *stream)
{
    unsigned char bytes[4 * WINDOW];
    size_t starts[3], length;
    for (int i = 0, count = windows(block->nbytes, starts, &length); i < count; i++) {
        OK(gn_copy(bytes, block->pointer + starts[i], length, stream));
        OK(gn_stream_synchronize(stream));
        size_t bad = 0;
        for (size_t at = 0; at < length; at++)
            bad += bytes[at] != block->value;
        if (bad > 0)
            wrong(program, __LINE__, "a block holds what was written last", GN_OK);
    }
}

/* ---- allocating and freeing ----------------------------------------------------------------- */

static size_t size_draw_fresh(struct worker *worker)
{
    uint64_t kind = draw(worker, 16);
    if (kind < 8) /* as many of each magnitude, up to 64 KiB */
        return 1 + (size_t)(check_random(&worker->state) & ((1ull << draw(worker, 17)) - 1));
    if (kind < 12)
        return 1 + (size_t)draw(worker, MIB);
    if (kind < 15)
        return MIB + 1 + draw(worker, 7 * MIB);
    return 8 * MIB + 1 + draw(worker, 4 * MIB);
}

/* Half of all sizes come again and again. */
static size_t size_draw(struct worker *worker)
{
    if (draw(worker, 2))
        return worker->program->sizes[draw(worker, SIZES)];
    return size_draw_fresh(worker);
}

/* A fresh block is written at once. */
static void block_begin(struct worker *worker, struct block *block, gn_memory_manager *manager,
                        void *pointer, size_t nbytes, int home)
{
    *block = (struct block){
        .manager = manager, .pointer = pointer, .nbytes = nbytes, .home = home, .at = home};
    block_fill(worker, block);
}

/* Out of memory is an ordinary result. */
static bool is_obtained(struct program *program, gn_status status)
{
    if (status != GN_OK && status != GN_ERROR_OUT_OF_MEMORY)
        wrong(program, __LINE__, "an allocation", status);
    return status == GN_OK;
}

static void step_alloc(struct worker *worker, struct block *block)
{
    struct program *program = worker->program;
    int home = stream_draw(worker);
    size_t nbytes = size_draw(worker);
    gn_memory_manager *manager = draw(worker, 10) ? program->manager : program->pinned;
    gn_stream *stream = stream_name(worker, home);
    gn_memory_block *handle = NULL;
    void *pointer = NULL;
    gn_status status;
    switch (draw(worker, 8)) {
    case 0:
        status = gn_memory_block_alloc(manager, nbytes, stream, &handle);
        if (status == GN_OK)
            pointer = gn_memory_block_get_address(handle);
        break;
    case 1:
        if (home != 0 || worker->has_current)
            OK(gn_stream_set_current(stream));
        worker->has_current |= home != 0;
        status = gn_memory_alloc(manager, nbytes, NULL, &pointer);
        break;
    default:
        status = gn_memory_alloc(manager, nbytes, stream, &pointer);
        break;
    }
    if (!is_obtained(program, status))
        return;
    block_begin(worker, block, manager, pointer, nbytes, home);
    block->handle = handle;
}

static void step_alloc_batch(struct worker *worker)
{
    struct program *program = worker->program;
    struct block *empty[SLOTS];
    size_t sizes[SLOTS], count = 0;
    void *pointers[SLOTS];
    for (int i = 0; i < SLOTS; i++)
        if (worker->slots[i].pointer == NULL)
            empty[count++] = &worker->slots[i];
    for (size_t i = 0; i < count; i++)
        sizes[i] = size_draw(worker);
    int home = stream_draw(worker);
    if (!is_obtained(program, gn_memory_alloc_batch(program->manager, count, sizes,
                                                    stream_name(worker, home), pointers)))
        return;
    for (size_t i = 0; i < count; i++)
        block_begin(worker, empty[i], program->manager, pointers[i], sizes[i], home);
}

/* An allocation by the worker of request.c: yet another thread. */
static void step_request(struct worker *worker, struct block *block)
{
    struct program *program = worker->program;
    gn_memory_request *request;
    int home = stream_draw(worker);
    size_t nbytes = size_draw(worker);
    if (program->streams[home].kind == KIND_PER_THREAD)
        home = 0; /* the other thread's own stream is another one */
    OK(gn_memory_request_start(program->manager, nbytes, stream_name(worker, home), &request));
    if (draw(worker, 4) == 0) { /* nobody takes it */
        while (gn_memory_request_query(request) == GN_ERROR_NOT_READY)
            (void)sched_yield();
        gn_memory_request_release(request);
        return;
    }
    void *pointer = NULL;
    gn_status status = gn_memory_request_wait(request, &pointer);
    gn_memory_request_release(request);
    if (is_obtained(program, status))
        block_begin(worker, block, program->manager, pointer, nbytes, home);
}

/* Whether the rules allow the free: the last work is at home, or announced, or can be made so. */
static bool free_prepare(struct worker *worker, struct block *block)
{
    if (block->at == block->home || block->announced >> block->at & 1)
        return true;
    if (!block_is_usable(worker, block))
        return false;
    bool can_return = !block->is_homeless && stream_is_usable(worker, block->home);
    if (can_return && draw(worker, 2)) {
        streams_order(worker, block->at, block->home);
        block->at = block->home;
    } else {
        block_announce(worker, block, block->at);
    }
    return true;
}

static void step_free(struct worker *worker, struct block *block)
{
    struct program *program = worker->program;
    if (block->pointer == NULL || !free_prepare(worker, block))
        return;
    if (block->announced != 0)
        count_up(&program->report->pending_count);
    if (block->handle != NULL && draw(worker, 2))
        OK(gn_memory_block_free(block->handle));
    else if (draw(worker, 4) == 0)
        OK(gn_memory_free_sized(block->manager, block->pointer, block->nbytes));
    else
        OK(gn_memory_free(block->manager, block->pointer));
    block->pointer = NULL;
}

/* ---- streams that end ----------------------------------------------------------------------- */

/* Calls `visit` for every block that the calling thread may touch. */
static void blocks_each(struct worker *worker, void (*visit)(struct worker *, struct block *, int),
                        int place)
{
    struct program *program = worker->program;
    for (int i = 0; i < program->thread_count; i++)
        for (int slot = 0; slot < SLOTS; slot++)
            if ((!program->is_free || i == worker->index) &&
                program->workers[i].slots[slot].pointer != NULL)
                visit(worker, &program->workers[i].slots[slot], place);
    for (int i = 0; i < MAILBOX && !program->is_free; i++)
        if (program->mailbox[i].pointer != NULL)
            visit(worker, &program->mailbox[i], place);
}

/* The stream of a block ends: its work moves elsewhere, or nothing comes after it. */
static void block_leave(struct worker *worker, struct block *block, int place)
{
    if (block->home == place)
        block->is_homeless = true;
    if (block->at != place || block->is_stuck)
        return;
    if (block_is_usable(worker, block) && draw(worker, 2)) {
        int to = stream_draw(worker);
        if (to != place) {
            block_move(worker, block, to);
            return;
        }
    }
    if (place != block->home && block_is_usable(worker, block))
        block_announce(worker, block, place);
    block->is_stuck = true;
}

/* Blocks of another library's stream are freed before it ends. */
static void block_leave_foreign(struct worker *worker, struct block *block, int place)
{
    if (block->home == place || block->at == place || block->announced >> place & 1)
        step_free(worker, block);
}

static void block_ask(struct worker *worker, struct block *block, int place)
{
    worker->is_held |= block->home == place || block->at == place || block->announced >> place & 1;
}

/* Whether a block still names the stream. With turns only. */
static bool stream_is_held(struct worker *worker, int place)
{
    worker->is_held = false;
    blocks_each(worker, block_ask, place);
    return worker->is_held;
}

static void step_stream_end(struct worker *worker)
{
    struct program *program = worker->program;
    /* Running freely, a thread ends only the stream that is its own affair. */
    int place = program->is_free
                    ? SHARED_STREAMS + worker->index
                    : 1 + (int)draw(worker, SHARED_STREAMS - 1 + (uint64_t)program->thread_count);
    struct stream *stream = &program->streams[place];
    if (stream->kind == KIND_FOREIGN && stream->is_alive) {
        if (program->is_free)
            return;
        blocks_each(worker, block_leave_foreign, place);
        if (stream_is_held(worker, place))
            return;
    }
    if (stream->is_alive) {
        blocks_each(worker, block_leave, place);
        if (worker->has_current)
            OK(gn_stream_set_current(program->streams[0].stream));
        count_up(&program->report->destroyed_count);
        stream_close(program, stream);
    }
    if (stream->is_alive)
        return;
    /* Its place stays as it is for the blocks that name it; the new stream takes over the number only
     * where none does. */
    if (program->is_free || stream_is_held(worker, place))
        return;
    int thread = stream->thread;
    stream_open(program, place, (enum kind)(1 + draw(worker, 3)), thread, draw(worker, 3) == 0);
}

/* ---- the other steps ------------------------------------------------------------------------ */

static void step_work(struct worker *worker, struct block *block)
{
    struct block *other = &worker->slots[draw(worker, SLOTS)];
    if (!block_is_usable(worker, block))
        return;
    if (draw(worker, 3) == 0)
        block_move(worker, block, stream_draw(worker));
    if (other == block || !block_is_usable(worker, other) || other->nbytes < WINDOW / 8 ||
        draw(worker, 2)) {
        block_fill(worker, block);
        return;
    }
    block_move(worker, other, block->at);
    block_copy(worker, block, other);
}

static void step_read(struct worker *worker, struct block *block)
{
    if (block_is_usable(worker, block))
        block_check(worker->program, block, stream_name(worker, block->at));
}

/* Blocks change hands. Running freely, they leave the streams that only one thread uses. */
static void step_exchange(struct worker *worker, struct block *block)
{
    struct program *program = worker->program;
    if (program->is_free && block->pointer != NULL) {
        if (!block_is_usable(worker, block))
            return;
        block_move(worker, block, (int)draw(worker, SHARED_STREAMS));
        block->is_homeless |= program->streams[block->home].thread >= 0;
    }
    struct block *box = &program->mailbox[draw(worker, MAILBOX)];
    pthread_mutex_lock(&program->mutex);
    struct block kept = *box;
    *box = *block;
    *block = kept;
    pthread_mutex_unlock(&program->mutex);
}

static void step_manage(struct worker *worker)
{
    struct program *program = worker->program;
    gn_memory_manager *manager = draw(worker, 8) ? program->manager : program->pinned;
    gn_memory_compaction report = {0};
    gn_memory_statistics statistics;
    size_t nbytes = size_draw(worker), count = 1 + draw(worker, 3);
    switch (draw(worker, 8)) {
    case 0:
        OK(gn_memory_trim(manager, draw(worker, 2) ? 0 : draw(worker, 16 * MIB), NULL));
        break;
    case 1:
    case 2:
        OK(gn_memory_collect(manager));
        break;
    case 3:
    case 4:
        OK(gn_memory_coalesce(manager, NULL));
        break;
    case 5: /* which wants nobody else to submit work */
        if (program->is_free)
            break;
        OK(gn_memory_compact(manager, &report));
        program->report->folded_pages += report.folded_pages;
        break;
    case 6:
        (void)is_obtained(program, gn_memory_warm_up(manager, 1, &nbytes, &count));
        break;
    default:
        OK(gn_memory_get_statistics(manager, &statistics));
        break;
    }
}

static void step(struct worker *worker)
{
    struct block *block = &worker->slots[draw(worker, SLOTS)];
    uint64_t kind = draw(worker, 100);
    if (kind < 3)
        step_stream_end(worker);
    else if (kind < 8)
        step_manage(worker);
    else if (kind < 14)
        step_exchange(worker, block);
    else if (kind < 16)
        step_alloc_batch(worker);
    else if (block->pointer == NULL)
        (kind < 19 ? step_request : step_alloc)(worker, block);
    else if (kind < 20)
        step_read(worker, block);
    else if (kind < 62)
        step_free(worker, block);
    else
        step_work(worker, block);
}

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
        _exit(report->wrong_count == 0 && check_failures == before ? 0 : 1);
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
        _exit(is_there ? 0 : 1);
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
