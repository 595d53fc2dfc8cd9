/*
 * test_order_steps.c: what a thread of a random program does: it allocates, works on blocks, hands them over,
 * frees them, ends streams, and manages memory, always by the rules that test_order.c names.
 */
#include "test_order.h"

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

void stream_open(struct program *program, int place, enum kind kind, int thread, bool has_wrapper)
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

void stream_close(struct program *program, struct stream *stream)
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

int stream_draw(struct worker *worker)
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

void block_check(struct program *program, const struct block *block, gn_stream *stream)
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
            wrong(program, __FILE__, __LINE__, "a block holds what was written last", GN_OK);
    }
}

/* ---- allocating and freeing ----------------------------------------------------------------- */

size_t size_draw_fresh(struct worker *worker)
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
        wrong(program, __FILE__, __LINE__, "an allocation", status);
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

/* A block that a handle owns is not freed by its address. */
void handle_free(struct program *program, struct block *block)
{
    gn_status status = gn_memory_free(block->manager, block->pointer);
    if (status != GN_ERROR_INVALID_POINTER)
        wrong(program, __FILE__, __LINE__, "the address of a handle's block", status);
    OK(gn_memory_block_free(block->handle));
}

static void step_free(struct worker *worker, struct block *block)
{
    struct program *program = worker->program;
    if (block->pointer == NULL || !free_prepare(worker, block))
        return;
    if (block->announced != 0)
        count_up(&program->report->pending_count);
    if (block->handle != NULL)
        handle_free(program, block);
    else if (draw(worker, 4) == 0)
        OK(gn_memory_free_sized(block->manager, block->pointer, block->nbytes));
    else
        OK(gn_memory_free(block->manager, block->pointer));
    block->pointer = NULL;
}

/* ---- streams that end ----------------------------------------------------------------------- */

void blocks_each(struct worker *worker, void (*visit)(struct worker *, struct block *, int),
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

void block_leave(struct worker *worker, struct block *block, int place)
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

void step(struct worker *worker)
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
