/*
 * cuda_softmax.c: softmax on a GPU: how rows are spread over it, and which ways there are to choose from (jit/tune.h).
 *
 * The order in which a row is summed follows from its length, the bytes of a load and the number of threads that share
 * it. By default those follow from the shape, and other numbers of threads are candidates that sum in another order;
 * how many rows are in flight changes no bit.
 */
#include "jit/tune.h"
#include "ops/cuda/fixed.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/interpret.h"

enum {
    GRID_MOST = 1 << 30,
    SHORT_MOST = 1024,     /* elements of a row that threads of one warp share */
    SHORT_ITEMS = 16,      /* elements of it for each of them, where not all 32 are needed */
    SHORT_LANES = 4,       /* threads for it at the least, so that neighbours load neighbours */
    ITEMS_MOST = 40,       /* elements that a thread keeps in registers by default */
    ITEMS_LIMIT = 48,      /* and at all */
    STEPS_MOST = 5,        /* loads of a thread before there are more than 256 of them */
    REGISTERS_BESIDE = 20, /* that a thread needs beside its elements */
    REGISTERS_HALVES = 4,  /* fewer, since two halves lie in one while they are loaded */
    REGISTERS_RAGGED = 8,  /* more, for the ends of a row */
    REGISTERS = 65536,     /* of a multiprocessor */
    THREADS_MOST = 2048,   /* likewise */
    LONG_REGISTERS = 64,   /* of a thread whose row is read twice */
};

struct work {
    struct gni_specialization specialization;
    struct gni_reduce_arguments reduce;
    gn_stream *stream;
    int width; /* registers of an element */
};

/* The values of a choice. */
enum value {
    THREADS, /* of a block */
    LANES,   /* threads that share a row */
    BLOCKS,  /* that a multiprocessor should hold */
};

static const struct gni_tune_family softmax_family = {
    .name = "softmax",
    .extents = {"rows", "columns", "pack", "ragged", "lanes", "items"},
    .plain = 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5,
    .values = {"threads", "lanes", "blocks"},
};

/* Elements of a row for each thread that shares it. A ragged one begins within a pack. */
static int64_t items_of(const struct work *work, int64_t lanes)
{
    int64_t pack = work->specialization.pack;
    return gni_divided_up(work->reduce.reduced + (work->specialization.is_ragged ? pack - 1 : 0),
                          lanes * pack) *
           pack;
}

/* Whether a row is kept in registers. */
static bool is_held(const struct work *work, int lanes)
{
    return items_of(work, lanes) <= ITEMS_LIMIT;
}

static bool is_short(const struct work *work)
{
    return work->reduce.reduced <= SHORT_MOST;
}

/* With as many blocks as there are registers for. */
static struct gni_choice choice_of(const struct work *work, int threads, int lanes)
{
    int64_t registers = items_of(work, lanes) * work->width + REGISTERS_BESIDE -
                        (gni_dtype_is_half(work->specialization.result) ? REGISTERS_HALVES : 0) +
                        (work->specialization.is_ragged ? REGISTERS_RAGGED : 0);
    if (!is_held(work, lanes))
        registers = LONG_REGISTERS;
    int64_t blocks = REGISTERS / (threads * registers), most = THREADS_MOST / threads;
    blocks = blocks < 1 ? 1 : blocks > most ? most : blocks;
    return (struct gni_choice){
        .values = {[THREADS] = threads, [LANES] = lanes, [BLOCKS] = (int)blocks}};
}

/* Takes over a choice; gives the number of blocks. */
static gn_status work_prepare(struct work *work, const struct gni_choice *choice, unsigned *blocks)
{
    struct gni_specialization *specialization = &work->specialization;
    specialization->threads = choice->values[THREADS];
    specialization->lanes = choice->values[LANES];
    specialization->blocks = choice->values[BLOCKS];
    specialization->steps =
        is_held(work, specialization->lanes)
            ? (int)(items_of(work, specialization->lanes) / specialization->pack)
            : 0;
    int64_t count =
        gni_divided_up(work->reduce.kept, specialization->threads / specialization->lanes);
    if (count > GRID_MOST)
        return gni_error(GN_ERROR_OVERFLOW, "%lld rows are more than a kernel can have",
                         (long long)work->reduce.kept);
    *blocks = (unsigned)count;
    return GN_OK;
}

static gn_status work_run(void *context, const struct gni_choice *choice)
{
    struct work *work = context;
    unsigned blocks;
    GN_TRY(work_prepare(work, choice, &blocks));
    return gni_specialization_launch(&work->specialization, &work->reduce, blocks, 1, work->stream);
}

/* Whether a choice need not be waited for. */
static bool work_is_ready(void *context, const struct gni_choice *choice)
{
    struct work *work = context;
    unsigned blocks;
    return work_prepare(work, choice, &blocks) == GN_OK &&
           gni_specialization_is_ready(&work->specialization, work->stream);
}

/* The same without compiling, where the kernel is not there yet. */
static gn_status work_interpret(struct work *work, const struct gni_choice *choice, bool *is_done)
{
    unsigned blocks;
    gn_status status;
    *is_done = false;
    GN_TRY(work_prepare(work, choice, &blocks));
    if (!gni_specialization_is_interpreted(&work->specialization, work->stream, &status))
        return status;
    return gni_interpret_softmax(&work->specialization, &work->reduce, blocks, work->stream,
                                 is_done);
}

static struct gni_choice standard_choose(const struct work *work)
{
    int lanes = 256;
    if (!is_short(work)) {
        if (items_of(work, lanes) > STEPS_MOST * work->specialization.pack)
            lanes = 512;
        if (items_of(work, lanes) > ITEMS_MOST)
            lanes = 1024;
        return choice_of(work, lanes, lanes);
    }
    for (lanes = 32; lanes > SHORT_LANES && items_of(work, lanes / 2) <= SHORT_ITEMS;)
        lanes /= 2;
    return choice_of(work, GNI_CUDA_BLOCK, lanes);
}

static int work_list(void *context, struct gni_choice *choices)
{
    static const int sizes[] = {128, 256, 512, 1024};
    const struct work *work = context;
    const struct gni_choice standard = standard_choose(work);
    const int threads = standard.values[THREADS], lanes = standard.values[LANES];
    int count = 0;
    for (int more = -1; more <= 1; more += 2) {
        choices[count] = standard;
        int blocks = choices[count].values[BLOCKS] += more;
        count += blocks > 0 && blocks * threads <= THREADS_MOST;
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bool is_usual = sizes[i] == threads;
        int shared = is_short(work) ? lanes : sizes[i];
        if (is_usual || (!is_short(work) && sizes[i] < 512 && !is_held(work, sizes[i])))
            continue;
        choices[count] = choice_of(work, sizes[i], shared);
        choices[count++].is_reordering = shared != lanes;
    }
    for (int shared = 2; is_short(work) && shared <= 32; shared *= 2) {
        if (shared == lanes || !is_held(work, shared))
            continue;
        choices[count] = choice_of(work, threads, shared);
        choices[count++].is_reordering = true;
    }
    return count;
}

gn_status gni_cuda_softmax(struct gni_program *program, short value, int64_t rows, bool is_log,
                           gn_tensor *result, gn_stream *stream)
{
    struct work work; /* large, and all of it is set below */
    if (program->count == 0)
        return GN_OK;
    GN_TRY(gni_storage_order(gni_tensor_storage(result), stream, true));
    work.stream = stream;
    work.reduce = (struct gni_reduce_arguments){
        .kept = rows, .reduced = program->count / rows, .result = gni_tensor_data(result)};
    gni_specialization_make(&work.specialization, program);
    work.specialization.value = value;
    work.specialization.result = result->dtype;
    work.specialization.is_log = is_log;
    work.specialization.kind = GNI_REDUCE_SOFTMAX;
    gni_specialization_pack(&work.specialization,
                            0); /* as if there were one row: they may be ragged */
    work.specialization.is_ragged = work.reduce.reduced % work.specialization.pack != 0;
    work.width = result->dtype == GN_FLOAT64 ? 2 : 1;
    struct gni_choice standard = standard_choose(&work);
    int lanes = standard.values[LANES];
    bool is_done;
    GN_TRY(work_interpret(&work, &standard, &is_done));
    if (is_done)
        return GN_OK;
    struct gni_tune tune = {.family = &softmax_family,
                            .stream = stream,
                            .type = gni_dtypes[result->dtype].name,
                            .nbytes = 2 * (uint64_t)program->count * gni_dtype_size(result->dtype),
                            .extents = {gni_tune_log(rows), gni_tune_log(work.reduce.reduced),
                                        work.specialization.pack, work.specialization.is_ragged,
                                        lanes,
                                        is_held(&work, lanes) ? (int)items_of(&work, lanes) : 0},
                            .standard = standard,
                            .context = &work,
                            .run = work_run,
                            .is_ready = work_is_ready,
                            .list = work_list};
    return gni_tune_run(&tune);
}
