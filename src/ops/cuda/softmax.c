/*
 * softmax.c: softmax on a GPU: how rows are spread over it, and which ways there are to choose from (jit/tune.h).
 *
 * The order in which a row is summed follows from its length, the bytes of a load and the number of threads that share
 * it. By default those follow from the shape, and other numbers of threads are candidates that sum in another order;
 * how many rows are in flight changes no bit.
 */
#include "device/cuda/cuda.h"
#include "jit/tune.h"
#include "ops/cuda/fixed.h"
#include "ops/cuda/run.h"

enum {
    GRID_MOST = 1 << 30,
    FEW_ROWS = 264,        /* larger blocks use more of the GPU */
    ITEMS_MOST = 32,       /* elements that a thread keeps in registers by default */
    ITEMS_LIMIT = 48,      /* and at all */
    SHORT_MOST = 1024,     /* elements of a row that a warp has */
    SHORT_ITEMS = 32,      /* elements of several rows that a lane has at once */
    REGISTERS_BESIDE = 16, /* that a thread needs beside its elements */
    REGISTERS = 65536,     /* of a multiprocessor */
    THREADS_MOST = 2048,   /* likewise */
};

struct work {
    struct gni_form form;
    struct gni_fold_arguments fold;
    gn_stream *stream;
    int width;     /* registers of an element */
    bool is_short; /* a warp has a row, not a block */
};

/* The values of a choice. Rows at once: 0 means one, with the next loaded ahead. */
enum value {
    THREADS,
    AT_ONCE,
    BLOCKS, /* that a multiprocessor should hold */
};

static const struct gni_tune_family softmax_family = {
    .name = "softmax",
    .extents = {"rows", "columns", "pack", "threads", "items"},
    .plain = 1 << 2 | 1 << 3 | 1 << 4,
    .values = {"threads", "rows_at_once", "blocks"},
};

/* Elements of a row for each thread that shares it. */
static int64_t items_of(const struct work *work, int threads)
{
    int64_t lanes = work->is_short ? 32 : threads;
    return gni_divided_up(work->fold.folded, lanes * work->form.pack) * work->form.pack;
}

/* Whether a row is kept in registers. */
static bool is_held(const struct work *work, int threads)
{
    return items_of(work, threads) <= ITEMS_LIMIT;
}

/* As many blocks as have room for their registers. */
static int blocks_of(const struct work *work, int threads, int at_once)
{
    int64_t items = items_of(work, threads) * (at_once == 0 ? 2 : at_once) * work->width;
    int64_t blocks = REGISTERS / (threads * (items + REGISTERS_BESIDE));
    int most = THREADS_MOST / threads;
    return blocks < 1 ? 1 : blocks > most ? most : (int)blocks;
}

static gn_status work_run(void *context, const struct gni_choice *choice)
{
    struct work *work = context;
    struct gni_form *form = &work->form;
    form->threads = choice->values[THREADS];
    form->at_once = choice->values[AT_ONCE];
    form->blocks = choice->values[BLOCKS];
    int64_t items = items_of(work, form->threads);
    form->steps = is_held(work, form->threads) ? (int)(items / form->pack) : 0;
    if (form->steps == 0)
        form->at_once = 1;
    int64_t in_block = work->is_short ? form->threads / 32 : 1;
    int64_t blocks =
        gni_divided_up(work->fold.kept, in_block * (form->at_once > 0 ? form->at_once : 1));
    if (form->at_once == 0) {
        const struct gni_cuda_device *device = gni_cuda_device_of(work->stream->device);
        int64_t resident = (int64_t)device->properties.multi_processor_count * form->blocks;
        blocks = blocks < resident ? blocks : resident;
    }
    if (blocks > GRID_MOST)
        return gni_error(GN_ERROR_OVERFLOW, "%lld rows are more than a kernel can have",
                         (long long)work->fold.kept);
    return gni_form_launch(form, &work->fold, (unsigned)blocks, 1, work->stream);
}

static struct gni_choice choice_of(const struct work *work, int threads, int at_once)
{
    return (struct gni_choice){.values = {[THREADS] = threads,
                                          [AT_ONCE] = at_once,
                                          [BLOCKS] = blocks_of(work, threads, at_once)}};
}

static struct gni_choice standard_choose(const struct work *work)
{
    int threads = work->fold.kept < FEW_ROWS ? 1024 : 512;
    if (work->is_short)
        threads = GNI_CUDA_BLOCK;
    else if (items_of(work, threads) > ITEMS_MOST && items_of(work, 1024) <= ITEMS_MOST)
        threads = 1024;
    struct gni_choice standard = choice_of(work, threads, 1);
    if (!is_held(work, threads))
        standard.values[BLOCKS] = 1; /* the row is read twice, and needs few registers */
    return standard;
}

/* All of them sum in the same order. */
static int short_list(const struct work *work, struct gni_choice *choices)
{
    static const int ways[][2] = {{256, 2}, {256, 4}, {128, 1}, {256, 0}, {512, 1},
                                  {128, 2}, {128, 4}, {128, 0}, {64, 1}};
    int count = 0;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (items_of(work, 32) * (ways[i][1] == 0 ? 2 : ways[i][1]) <= SHORT_ITEMS)
            choices[count++] = choice_of(work, ways[i][0], ways[i][1]);
    return count;
}

static int work_list(void *context, struct gni_choice *choices)
{
    static const int sizes[] = {256, 512, 1024};
    const struct work *work = context;
    const int usual = standard_choose(work).values[THREADS];
    int count = 0;
    if (work->is_short)
        return short_list(work, choices);
    if (is_held(work, usual)) {
        choices[count++] = choice_of(work, usual, 0);
        for (int more = -1; more <= 1; more += 2) {
            choices[count] = choice_of(work, usual, 1);
            int blocks = choices[count].values[BLOCKS] += more;
            count += blocks > 0 && blocks * usual <= THREADS_MOST;
        }
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bool can_hold = is_held(work, sizes[i]);
        if (sizes[i] == usual || (!can_hold && sizes[i] < 512))
            continue;
        for (int at_once = 1; at_once >= (can_hold ? 0 : 1); at_once--) {
            choices[count] = choice_of(work, sizes[i], at_once);
            choices[count++].is_reordering = true;
        }
    }
    return count;
}

gn_status gni_cuda_softmax(struct gni_program *program, short value, int64_t rows, bool is_log,
                           gn_tensor *result, gn_stream *stream)
{
    struct work work = {.stream = stream};
    struct gni_tune tune = {.family = &softmax_family,
                            .stream = stream,
                            .type = gni_dtypes[result->dtype].name,
                            .context = &work,
                            .run = work_run,
                            .list = work_list};
    if (program->count == 0)
        return GN_OK;
    GN_TRY(gni_storage_order(gni_tensor_storage(result), stream, true));
    work.fold = (struct gni_fold_arguments){
        .kept = rows, .folded = program->count / rows, .result = gni_tensor_data(result)};
    gni_form_make(&work.form, program);
    work.form.value = value;
    work.form.result = result->dtype;
    work.form.is_log = is_log;
    work.is_short = work.fold.folded <= SHORT_MOST;
    work.form.fold = work.is_short ? GNI_SOFTMAX_SHORT : GNI_SOFTMAX_ROWS;
    gni_form_pack(&work.form, work.fold.folded);
    work.width = result->dtype == GN_FLOAT64 ? 2 : 1;
    tune.standard = standard_choose(&work);
    tune.nbytes = 2 * (uint64_t)program->count * gni_dtype_size(result->dtype);
    tune.extents[0] = gni_tune_log(rows);
    tune.extents[1] = gni_tune_log(work.fold.folded);
    tune.extents[2] = work.form.pack;
    tune.extents[3] = tune.standard.values[THREADS];
    if (is_held(&work, tune.standard.values[THREADS]))
        tune.extents[4] = (int)items_of(&work, tune.standard.values[THREADS]);
    return gni_tune_run(&tune);
}
