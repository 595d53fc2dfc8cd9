/*
 * cuda_sort.c: sorted rows and different elements on a GPU: which kernels of sort.cu are launched, and their memory.
 *
 *     rows of up to 2048         SMALL
 *     the first few of longer    SELECT, SMALL: while what the parts of a row select is at most 2048
 *     others                     for each digit: COUNT, LINES, SPREAD; the first reads elements, the last writes results.
 *                                Of a few tiles, SPREAD needs no LINES, and of one no COUNT
 *     different elements         the same, but keys stay; UNIQUE_COUNT, LINES, UNIQUE_STORE, UNIQUE_DIFFER
 *
 * Only the number of different elements is waited for.
 */
#include "ops/cuda/cuda_sort.h"

#include "ops/cuda/fixed.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/kernel_list.h"
#include "ops/cuda/kernel_texts.h"
#include "tensor/graph_capture.h"

enum {
    DIGITS = 256, /* these five as in sort.cu */
    SMALL = 2048,
    OWN = 8,
    UNIQUE_TILE = 8 * GNI_FIXED_THREADS,
    LINES_BLOCK = GNI_FIXED_THREADS / 32,

    TILES_FEW = 32,       /* whose counts each block adds up by itself */
    ENOUGH_BLOCKS = 264,  /* that a selection keeps busy: 2 for each of 132 multiprocessors */
    CHUNK_LEAST = 4096,   /* elements that a block selects from, */
    CHUNK_MOST = 1 << 16, /* where there are few: sorting is spread better */
};

enum stage {
    STAGE_SMALL,
    STAGE_SELECT,
    STAGE_COUNT,
    STAGE_LINES,
    STAGE_SPREAD,
    STAGE_UNIQUE_COUNT,
    STAGE_UNIQUE_STORE,
    STAGE_UNIQUE_DIFFER,
};

#define STAGE(word, name)                                                             \
    {                                                                                 \
        {word, {gni_text_sort}, "#define " name "\ntypedef unsigned place;\n"},       \
        {                                                                             \
            word "_far", {gni_text_sort}, "#define " name "\ntypedef uint64 place;\n" \
        }                                                                             \
    }

/* By [stage][whether places need 64 bits]. */
static const struct gni_fixed stages[][2] = {
    [STAGE_SMALL] = STAGE("sort_small", "SORT_SMALL"),
    [STAGE_SELECT] = STAGE("sort_select", "SORT_SELECT"),
    [STAGE_COUNT] = STAGE("sort_count", "SORT_COUNT"),
    [STAGE_LINES] = STAGE("sort_lines", "SORT_LINES"),
    [STAGE_SPREAD] = STAGE("sort_spread", "SORT_SPREAD"),
    [STAGE_UNIQUE_COUNT] = STAGE("unique_count", "UNIQUE_COUNT"),
    [STAGE_UNIQUE_STORE] = STAGE("unique_store", "UNIQUE_STORE"),
    [STAGE_UNIQUE_DIFFER] = STAGE("unique_differ", "UNIQUE_DIFFER"),
};

struct arguments {
    const void *in;
    int64_t size;
    uint64_t sign, infinite, flip;
    int64_t rows, columns, kept, count, padded, chunk, tiles, shift, is_last, is_summed;
    void *keys, *places, *new_keys, *new_places, *origins, *table, *totals;
    void *values;
    int64_t *indices;
    int64_t found, *inverse, *starts, *counts;
};

/* A sort that goes on: its memory, and what its kernels are told. */
struct sort {
    struct arguments arguments;
    gn_stream *stream;
    size_t element_bytes, key_bytes, place_bytes;
    int digits;  /* that are sorted by */
    bool is_far; /* places have 8 bytes */
    struct gni_storage *storage;
    char *keys[2], *places[2]; /* by turns; NULL where there are fewer turns */
    char *extra;
};

/* The bits of infinity; 0 for integers. */
static uint64_t infinite_of(gn_dtype dtype)
{
    switch (dtype) {
    case GN_FLOAT16:
        return 0x7c00;
    case GN_BFLOAT16:
        return 0x7f80;
    case GN_FLOAT32:
        return 0x7f800000;
    case GN_FLOAT64:
        return (uint64_t)0x7ff << 52;
    default:
        return 0;
    }
}

/* Elements of `size` bytes; what else the arguments need is the caller's to say. */
static void sort_init(struct sort *sort, const void *in, size_t size, int64_t rows, int64_t columns,
                      bool is_far, gn_stream *stream)
{
    *sort = (struct sort){
        .stream = stream, .element_bytes = size, .digits = (int)size, .is_far = is_far};
    sort->key_bytes = size <= 4 ? 4 : 8;
    sort->place_bytes = is_far ? 8 : 4;
    sort->arguments.in = in;
    sort->arguments.size = (int64_t)size;
    sort->arguments.rows = rows;
    sort->arguments.columns = columns;
    sort->arguments.kept = columns;
    int64_t items = sort->key_bytes + sort->place_bytes == 8 ? 16 : 8;
    sort->arguments.tiles = gni_divided_up(columns, items * GNI_FIXED_THREADS);
}

static void sort_init_tensor(struct sort *sort, gn_tensor *in, int64_t rows, int64_t columns,
                             gn_stream *stream)
{
    size_t size = gni_dtype_size(in->dtype);
    sort_init(sort, gni_tensor_data(in), size, rows, columns, columns > UINT32_MAX, stream);
    sort->arguments.sign = gni_dtypes[in->dtype].is_signed ? (uint64_t)1 << (8 * size - 1) : 0;
    sort->arguments.infinite = infinite_of(in->dtype);
}

static gn_status stage_launch(struct sort *sort, enum stage stage, int64_t blocks)
{
    return gni_fixed_launch(&stages[stage][sort->is_far],
                            sort->key_bytes == 4 ? GN_INT32 : GN_INT64, blocks, 1, &sort->arguments,
                            sort->stream);
}

static size_t rounded_up(size_t nbytes)
{
    return (nbytes + 7) / 8 * 8;
}

/* Memory for the table, for keys and places between digits, `buffers` of them, and `extra` bytes. The rows are in
 * memory: a few times their bytes cannot overflow. */
static gn_status sort_alloc(struct sort *sort, int buffers, size_t extra)
{
    struct arguments *arguments = &sort->arguments;
    size_t count = (size_t)arguments->rows * (size_t)arguments->columns;
    size_t lines = (size_t)arguments->rows * DIGITS * sort->place_bytes;
    size_t keys = rounded_up(count * sort->key_bytes);
    size_t places = rounded_up(count * sort->place_bytes);
    size_t table = lines * (size_t)arguments->tiles;
    size_t nbytes = (size_t)buffers * (keys + places) + table + lines + extra;
    GN_TRY(gni_storage_create(sort->stream->device, nbytes, sort->stream, &sort->storage));
    char *at = sort->storage->data;
    for (int i = 0; i < buffers; i++) {
        sort->keys[i] = at;
        sort->places[i] = at + keys;
        at += keys + places;
    }
    arguments->table = at;
    arguments->totals = at + table;
    sort->extra = at + table + lines;
    return GN_OK;
}

/* The lines of a table: one for each row and digit. */
static gn_status lines_launch(struct sort *sort, int64_t lines, int64_t tiles)
{
    struct sort own = *sort;
    own.arguments.rows = lines;
    own.arguments.tiles = tiles;
    return stage_launch(&own, STAGE_LINES, gni_divided_up(lines, LINES_BLOCK));
}

/* Digit by digit. With `is_kept` the sorted keys and places stay, in the arguments' keys and places; else the last
 * digit goes to the results. */
static gn_status sort_run(struct sort *sort, bool is_kept)
{
    struct arguments *arguments = &sort->arguments;
    int64_t blocks = arguments->rows * arguments->tiles;
    arguments->is_summed = arguments->tiles > TILES_FEW;
    for (int digit = 0; digit < sort->digits; digit++) {
        arguments->shift = 8 * (int64_t)digit;
        arguments->is_last = !is_kept && digit + 1 == sort->digits;
        arguments->new_keys = sort->keys[digit % 2];
        arguments->new_places = sort->places[digit % 2];
        if (arguments->tiles > 1)
            GN_TRY(stage_launch(sort, STAGE_COUNT, blocks));
        if (arguments->is_summed)
            GN_TRY(lines_launch(sort, arguments->rows * DIGITS, arguments->tiles));
        GN_TRY(stage_launch(sort, STAGE_SPREAD, blocks));
        arguments->keys = arguments->new_keys;
        arguments->places = arguments->new_places;
    }
    return GN_OK;
}

static gn_status results_order(gn_tensor *in, int count, gn_tensor *const *results,
                               gn_stream *stream)
{
    GN_TRY(gni_storage_order(gni_tensor_storage(in), stream, false));
    for (int i = 0; i < count; i++)
        if (results[i] != NULL)
            GN_TRY(gni_storage_order(gni_tensor_storage(results[i]), stream, true));
    return GN_OK;
}

static void *data_or_null(const gn_tensor *tensor)
{
    return tensor != NULL ? gni_tensor_data(tensor) : NULL;
}

/* Sorts `count` elements of each row: all, or those that were selected. */
static gn_status small_run(struct sort *sort, int64_t count)
{
    sort->arguments.count = count;
    sort->arguments.padded = OWN;
    while (sort->arguments.padded < count)
        sort->arguments.padded *= 2;
    return stage_launch(sort, STAGE_SMALL,
                        gni_divided_up(sort->arguments.rows, SMALL / sort->arguments.padded));
}

/* Into how many parts a row is cut to select its first elements; 0: sorting all of it is better. */
static int64_t parts_of(const struct gni_selection *selection)
{
    int64_t most = SMALL / selection->kept;
    int64_t parts = gni_divided_up(ENOUGH_BLOCKS, selection->rows);
    int64_t cuts = gni_divided_up(selection->columns, CHUNK_LEAST);
    parts = parts < cuts ? parts : cuts;
    parts = parts < most ? parts : most;
    if (parts == 0 || selection->kept > selection->columns / 4 || selection->columns > UINT32_MAX)
        return 0;
    bool is_busy = parts * selection->rows >= ENOUGH_BLOCKS / 2;
    return is_busy || selection->columns / parts <= CHUNK_MOST ? parts : 0;
}

static gn_status parts_select(struct sort *sort, int64_t parts)
{
    struct arguments *arguments = &sort->arguments;
    struct gni_storage *origins;
    arguments->chunk = gni_divided_up(arguments->columns, parts);
    arguments->tiles = gni_divided_up(arguments->columns, arguments->chunk);
    arguments->shift = 8 * ((int64_t)sort->element_bytes - 1);
    int64_t rest = arguments->columns - (arguments->tiles - 1) * arguments->chunk;
    arguments->count = (arguments->tiles - 1) * arguments->kept +
                       (rest < arguments->kept ? rest : arguments->kept);
    size_t nbytes = (size_t)arguments->rows * (size_t)arguments->count * sort->place_bytes;
    GN_TRY(gni_storage_create(sort->stream->device, nbytes, sort->stream, &origins));
    arguments->origins = origins->data;
    gn_status status = stage_launch(sort, STAGE_SELECT, arguments->rows * arguments->tiles);
    if (status == GN_OK)
        status = small_run(sort, arguments->count);
    gni_storage_release(origins);
    return status;
}

gn_status gni_cuda_select(gn_tensor *rows, const struct gni_selection *selection, gn_tensor *values,
                          gn_tensor *indices, gn_stream *stream)
{
    struct sort sort;
    gn_tensor *results[] = {values, indices};
    sort_init_tensor(&sort, rows, selection->rows, selection->columns, stream);
    sort.arguments.flip = selection->is_descending ? UINT64_MAX : 0;
    sort.arguments.kept = selection->kept;
    sort.arguments.values = data_or_null(values);
    sort.arguments.indices = data_or_null(indices);
    GN_TRY(results_order(rows, 2, results, stream));
    if (selection->columns <= SMALL)
        return small_run(&sort, selection->columns);
    int64_t parts = parts_of(selection);
    if (parts > 0)
        return parts_select(&sort, parts);
    int between = (int)sort.element_bytes - 1;
    GN_TRY(sort_alloc(&sort, between < 2 ? between : 2, 0));
    gn_status status = sort_run(&sort, false);
    gni_storage_release(sort.storage);
    return status;
}

static gn_status unique_run(struct sort *sort, int64_t *found)
{
    struct arguments *arguments = &sort->arguments;
    int64_t tiles = gni_divided_up(arguments->columns, UNIQUE_TILE);
    GN_TRY(sort_run(sort, true));
    if (arguments->counts != NULL)
        arguments->starts = (int64_t *)(void *)sort->extra;
    GN_TRY(stage_launch(sort, STAGE_UNIQUE_COUNT, tiles));
    GN_TRY(lines_launch(sort, 1, tiles));
    GN_TRY(stage_launch(sort, STAGE_UNIQUE_STORE, tiles));
    uint64_t total = 0;
    GN_TRY(gn_copy(&total, arguments->totals, sort->place_bytes, sort->stream));
    GN_TRY(gn_stream_synchronize(sort->stream));
    arguments->found = (int64_t)total;
    if (arguments->counts != NULL)
        GN_TRY(stage_launch(sort, STAGE_UNIQUE_DIFFER,
                            gni_divided_up(arguments->found, GNI_FIXED_THREADS)));
    *found = arguments->found;
    return GN_OK;
}

gn_status gni_cuda_unique(gn_tensor *tensor, gn_tensor *values, gn_tensor *inverse,
                          gn_tensor *counts, int64_t *found, gn_stream *stream)
{
    struct sort sort;
    gn_tensor *results[] = {values, inverse, counts};
    size_t starts = counts != NULL ? (size_t)tensor->count * sizeof(int64_t) : 0;
    sort_init_tensor(&sort, tensor, 1, tensor->count, stream);
    sort.arguments.values = gni_tensor_data(values);
    sort.arguments.inverse = data_or_null(inverse);
    sort.arguments.counts = data_or_null(counts);
    GN_TRY(gni_capture_refuse(stream, "how many values are unique cannot be found out"));
    GN_TRY(results_order(tensor, 3, results, stream));
    GN_TRY(sort_alloc(&sort, sort.element_bytes > 1 ? 2 : 1, starts));
    gn_status status = unique_run(&sort, found);
    gni_storage_release(sort.storage);
    return status;
}

/* ---- for other files --------------------------------------------------------------------------- */

static void order_sort(const struct gni_order *order, struct sort *sort)
{
    sort_init(sort, order->in, order->is_far ? 8 : 4, 1, order->count, order->is_far,
              order->stream);
}

gn_status gni_order_init(struct gni_order *order, int64_t count, bool is_far, size_t extra,
                         gn_stream *stream)
{
    struct sort sort;
    *order = (struct gni_order){.count = count, .is_far = is_far, .stream = stream};
    order_sort(order, &sort);
    GN_TRY(sort_alloc(&sort, 2, extra));
    order->storage = sort.storage;
    for (int i = 0; i < 2; i++) {
        order->buffers[i].keys = sort.keys[i];
        order->buffers[i].places = sort.places[i];
    }
    order->in = sort.keys[1]; /* the first digit has read it before the second is written there */
    order->table = sort.arguments.table;
    order->totals = sort.arguments.totals;
    order->extra = sort.extra;
    return GN_OK;
}

gn_status gni_order_run(struct gni_order *order, int digits)
{
    struct sort sort;
    order_sort(order, &sort);
    sort.digits = digits;
    for (int i = 0; i < 2; i++) {
        sort.keys[i] = order->buffers[i].keys;
        sort.places[i] = order->buffers[i].places;
    }
    sort.arguments.table = order->table;
    sort.arguments.totals = order->totals;
    GN_TRY(sort_run(&sort, true));
    order->keys = sort.arguments.keys;
    order->places = sort.arguments.places;
    return GN_OK;
}

void gni_order_deinit(struct gni_order *order)
{
    gni_storage_release(order->storage);
}

/* ---- for the archive --------------------------------------------------------------------------- */

void gni_cuda_sort_list(struct gni_kernel_list *list)
{
    for (int stage = STAGE_SMALL; stage <= STAGE_UNIQUE_DIFFER; stage++)
        for (int is_far = 0; is_far < 2; is_far++)
            gni_kernel_list_add_fixed(list, &stages[stage][is_far],
                                      GNI_TYPE(GN_INT32) | GNI_TYPE(GN_INT64));
}
