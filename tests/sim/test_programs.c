/*
 * test_programs.c: random programs of several streams on the simulated GPU.
 *
 *     test_programs [COUNT] [FIRST_SEED]
 *
 * A program is a sequence of steps: allocate, free, fill, copy, add (a kernel), read back. Each block
 * belongs to a stream, and moves to another after an event, as in a caching allocator. A model on the
 * host knows what every block holds, and has clocks of its own to know which waits are needed. Every
 * program runs as it should, and must give the right bytes and no finding; those of even seeds run
 * again with one wait left out that was needed, which must be found (they have no stream-ordered frees:
 * these would lose the device). A failure prints the seed: the program, its schedule and its order
 * follow from it.
 */
#include "check.h"

#include "control.h"
#include "device/cuda/driver.h"
#include "device/cuda/library.h"

enum {
    STREAMS_MAX = 4,
    BLOCKS = 6,
    STEPS = 24,
    INTS = 128, /* in a block */
};

static const struct gni_cuda_functions *cuda;
static struct sim_control control;
static CUmodule module;
static CUfunction add;

/* For each stream, the last op of it that happened before. */
struct clock {
    int ticks[STREAMS_MAX];
};

/* A block, its present owner, and what it must hold. */
struct block {
    CUdeviceptr pointer; /* 0: none */
    int owner;
    int used;            /* the owner's tick when it last used the block */
    int writer, written; /* who wrote it last, and when */
    int values[INTS];
    bool is_ordered; /* of cuMemAllocAsync */
};

struct program {
    uint64_t state; /* of the generator */
    int stream_count;
    CUstream streams[STREAMS_MAX];
    CUevent event;
    struct clock host, clocks[STREAMS_MAX];
    struct block blocks[BLOCKS];
    bool has_ordered;
    int wait_count; /* waits that were needed so far */
    int dropped;    /* the one that is left out; -1: none */
    bool was_dropped;
    bool is_wrong;
};

#define OK(call)                                                                           \
    do {                                                                                   \
        CUresult ok_result = (call);                                                       \
        if (ok_result != CUDA_SUCCESS) {                                                   \
            program->is_wrong = true;                                                      \
            fprintf(stderr, "    line %d: %s gave %d\n", __LINE__, #call, (int)ok_result); \
        }                                                                                  \
    } while (0)

static int pick(struct program *program, int count)
{
    return (int)(check_random(&program->state) % (uint64_t)count);
}

static void clock_join(struct clock *to, const struct clock *from)
{
    for (int i = 0; i < STREAMS_MAX; i++)
        if (from->ticks[i] > to->ticks[i])
            to->ticks[i] = from->ticks[i];
}

/* The owner gets an op that uses the block. */
static void block_use(struct program *program, struct block *block, bool is_write)
{
    struct clock *clock = &program->clocks[block->owner];
    clock_join(clock, &program->host);
    block->used = ++clock->ticks[block->owner];
    if (is_write) {
        block->writer = block->owner;
        block->written = block->used;
    }
}

static void block_fill(struct program *program, struct block *block, int value)
{
    OK(cuda->cuMemsetD32Async(block->pointer, (unsigned)value, INTS,
                              program->streams[block->owner]));
    block_use(program, block, true);
    for (int i = 0; i < INTS; i++)
        block->values[i] = value;
}

/* Hands a block to a stream that will read or write it: what its owner has queued comes first. */
static void block_move(struct program *program, struct block *block, int to, bool is_write)
{
    if (block->owner == to)
        return;
    struct clock *clock = &program->clocks[to];
    clock_join(clock, &program->host);
    bool is_needed = clock->ticks[block->writer] < block->written ||
                     (is_write && clock->ticks[block->owner] < block->used);
    bool is_dropped = is_needed && program->wait_count++ == program->dropped;
    program->was_dropped = program->was_dropped || is_dropped;
    OK(cuda->cuEventRecord(program->event, program->streams[block->owner]));
    if (!is_dropped) {
        OK(cuda->cuStreamWaitEvent(program->streams[to], program->event, 0));
        clock_join(clock, &program->clocks[block->owner]);
    }
    block->owner = to;
    if (is_dropped)
        block_fill(program, block,
                   0); /* at once: the next wait of this step could make up for it */
}

static void step_alloc(struct program *program, struct block *block)
{
    block->owner = pick(program, program->stream_count);
    block->is_ordered = pick(program, 2) && program->has_ordered;
    if (block->is_ordered)
        OK(cuda->cuMemAllocAsync(&block->pointer, INTS * sizeof(int),
                                 program->streams[block->owner]));
    else
        OK(cuda->cuMemAlloc(&block->pointer, INTS * sizeof(int)));
    block_fill(program, block, pick(program, 1000));
}

static void step_free(struct program *program, struct block *block)
{
    if (block->is_ordered)
        OK(cuda->cuMemFreeAsync(block->pointer, program->streams[block->owner]));
    else
        OK(cuda->cuMemFree(block->pointer));
    if (!block->is_ordered) /* which waited for everything */
        for (int i = 0; i < program->stream_count; i++)
            clock_join(&program->host, &program->clocks[i]);
    block->pointer = 0;
}

static void step_add(struct program *program, struct block *block)
{
    int count = 1 + pick(program, INTS), value = pick(program, 100);
    void *arguments[] = {&block->pointer, &count, &value};
    OK(cuda->cuLaunchKernel(add, 2, 1, 1, INTS / 2, 1, 1, 0, program->streams[block->owner],
                            arguments, NULL));
    block_use(program, block, true);
    for (int i = 0; i < count; i++)
        block->values[i] += value;
}

static void step_copy(struct program *program, struct block *to, struct block *from)
{
    block_move(program, from, to->owner, false);
    OK(cuda->cuMemcpyAsync(to->pointer, from->pointer, sizeof to->values,
                           program->streams[to->owner]));
    block_use(program, from, false);
    block_use(program, to, true);
    memcpy(to->values, from->values, sizeof to->values);
}

static void step_read(struct program *program, struct block *block)
{
    int values[INTS];
    OK(cuda->cuMemcpyAsync((CUdeviceptr)(uintptr_t)values, block->pointer, sizeof values,
                           program->streams[block->owner]));
    block_use(program, block, false);
    clock_join(&program->host, &program->clocks[block->owner]);
    if (program->dropped < 0 && memcmp(values, block->values, sizeof values) != 0) {
        program->is_wrong = true;
        fprintf(stderr, "    a block holds %d where %d should be\n", values[0], block->values[0]);
    }
}

static void step(struct program *program)
{
    struct block *block = &program->blocks[pick(program, BLOCKS)];
    struct block *other = &program->blocks[pick(program, BLOCKS)];
    int to = pick(program, program->stream_count), kind = pick(program, 10);
    if (block->pointer == 0) {
        step_alloc(program, block);
        return;
    }
    if (kind >= 2)
        block_move(program, block, to, true);
    if (kind < 1)
        step_free(program, block);
    else if (kind < 2)
        step_read(program, block);
    else if (kind < 5)
        step_add(program, block);
    else if (kind < 7 || other == block || other->pointer == 0)
        block_fill(program, block, pick(program, 1000));
    else
        step_copy(program, block, other);
}

/* Runs the program of a seed under the seed's schedule; the wait number `dropped` is left out. */
static struct program program_run(uint64_t seed, int dropped)
{
    struct program made = {.state = seed, .dropped = dropped}, *program = &made;
    program->has_ordered = seed % 2;
    control.schedule((int)(seed % 3), seed);
    control.reset_findings();
    program->stream_count = 2 + pick(program, STREAMS_MAX - 1);
    for (int i = 0; i < program->stream_count; i++)
        OK(cuda->cuStreamCreateWithPriority(&program->streams[i], CU_STREAM_NON_BLOCKING, 0));
    OK(cuda->cuEventCreate(&program->event, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < STEPS; i++)
        step(program);
    for (int i = 0; i < BLOCKS; i++) {
        if (program->blocks[i].pointer == 0)
            continue;
        step_read(program, &program->blocks[i]);
        step_free(program, &program->blocks[i]);
    }
    OK(cuda->cuCtxSynchronize());
    OK(cuda->cuEventDestroy(program->event));
    for (int i = 0; i < program->stream_count; i++)
        OK(cuda->cuStreamDestroy(program->streams[i]));
    return made;
}

static void fail(uint64_t seed, const char *what)
{
    check_fail(__FILE__, __LINE__, what);
    fprintf(stderr, "    seed %llu: test_programs 1 %llu\n", (unsigned long long)seed,
            (unsigned long long)seed);
    for (int i = 0; i < control.finding_count() && i < 3; i++)
        fprintf(stderr, "    %s\n", control.finding_text(i));
}

static int dropped_count;

static void program_test(uint64_t seed)
{
    struct program program = program_run(seed, -1);
    uint64_t hash = control.order_hash();
    check_count++;
    if (program.is_wrong || control.finding_count() != 0)
        fail(seed, "a correct program is right and gives no finding");
    if (control.live_allocations() != 0)
        fail(seed, "a program leaves nothing behind");
    if (seed % 8 == 0) {
        (void)program_run(seed, -1);
        if (control.order_hash() != hash)
            fail(seed, "the same seed gives the same order");
    }
    if (seed % 2 || program.wait_count == 0)
        return;
    struct program broken = program_run(seed, (int)(seed / 2 % (uint64_t)program.wait_count));
    dropped_count++;
    if (!broken.was_dropped || control.finding_count() == 0)
        fail(seed, "a dropped wait is found");
}

static void start(void)
{
    static const char source[] = "extern \"C\" __global__ void add(int *p, int count, int value)\n"
                                 "{\n"
                                 "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                 "    if (i < count) p[i] += value;\n"
                                 "}\n";
    const char *options[] = {"--gpu-architecture=sm_90"};
    const struct gni_cuda_driver *driver;
    const struct gni_nvrtc *nvrtc;
    nvrtcProgram program;
    CUcontext context;
    size_t nbytes = 0;
    CHECK_OK(gni_cuda_driver_open(&driver));
    CHECK_OK(gni_nvrtc_open(&nvrtc));
    CHECK(sim_control_load(driver->path, &control));
    cuda = &driver->functions;
    CHECK(cuda->cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    CHECK(cuda->cuCtxPushCurrent(context) == CUDA_SUCCESS);
    CHECK(nvrtc->functions.nvrtcCreateProgram(&program, source, "add.cu", 0, NULL, NULL) == 0);
    CHECK(nvrtc->functions.nvrtcCompileProgram(program, 1, options) == 0);
    CHECK(nvrtc->functions.nvrtcGetCUBINSize(program, &nbytes) == 0);
    char *image = malloc(nbytes);
    CHECK(nvrtc->functions.nvrtcGetCUBIN(program, image) == 0);
    CHECK(nvrtc->functions.nvrtcDestroyProgram(&program) == 0);
    CHECK(cuda->cuModuleLoadData(&module, image) == CUDA_SUCCESS);
    CHECK(cuda->cuModuleGetFunction(&add, module, "add") == CUDA_SUCCESS);
    free(image);
}

int main(int argc, char **argv)
{
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 0) : 2000;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    if (getenv("SIM_GPU_FINDINGS") == NULL)
        (void)setenv("SIM_GPU_FINDINGS", "silent", 1);
    start();
    for (uint64_t seed = first; seed < first + count && check_failures < 10; seed++)
        program_test(seed);
    printf("%llu programs, %d with a dropped wait that was found\n", (unsigned long long)count,
           dropped_count);
    CHECK(count < 100 || (uint64_t)dropped_count > count / 3);
    return check_result();
}
