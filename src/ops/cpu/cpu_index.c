/*
 * A plan becomes a walk: dimensions are joined where they lie one in another, and sorted into three groups:
 *
 *     outer    loops around everything
 *     block    the dimensions of the index tensors, walked as one sequence, a tile at a time: for each tile the
 *              offsets are computed once, into a buffer that stays in cache
 *     inner    at most one dimension, for each place of the block
 *
 * Which dimension that no index depends on is outer or inner makes no difference to the result: in any order each
 * element of the tensor sees the places of the block in theirs.
 */
#include "ops/cpu/cpu_index.h"

#include "base/parallel.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/index_kernels.h"

#include <string.h>

enum {
    TILE = GNI_MASK_WINDOW, /* places of a block at a time */
    GRAIN = 1 << 15,        /* elements that are worth a part */
    CACHE_LINE = 64,
    FEW = 16,              /* places of a block: an outer dimension had better be the inner one */
    SHARE_LEAST = 1 << 16, /* values, */
    SHARE_SIZE_LEAST = 1 << 12, /* and places, that are worth several threads; */
    SHARE_THREADS_LEAST =
        4, /* each looks at all numbers, which takes half as long as to add all; */
    SHARES_MOST = 8,
};

enum mode {
    MODE_GET,
    MODE_OFFSETS,
    MODE_SET,
    MODE_ADD,
    MODE_CHECK,
};

struct index;

/* What one index tensor adds, over a run of its elements; no offsets: whether all are in range. */
typedef bool (*index_run)(const struct index *index, const char *data, int64_t step, size_t count,
                          bool is_first, int64_t *offsets);

struct index {
    const char *data;
    gn_dtype dtype;
    index_run run;
    int64_t size, wrap, stride;
    int64_t strides[GN_DIMENSIONS_MAX]; /* bytes, for the dimensions of the walk */
};

/* All strides and offsets in bytes. */
struct walk {
    enum mode mode;
    gn_dtype dtype;
    size_t width;         /* of an element, or of several that always go together */
    char *source, *other; /* the tensor; the result or the values */
    int ndim;             /* outer, block, inner */
    int block_begin, block_end;
    int64_t sizes[GN_DIMENSIONS_MAX];
    int64_t strides[GN_DIMENSIONS_MAX]; /* of the source */
    int64_t
        other_strides[GN_DIMENSIONS_MAX]; /* of the other, for which the block is one dimension */
    int64_t count;                        /* of all places */
    int index_count;
    struct index indices[GN_DIMENSIONS_MAX];
    _Atomic(bool) *is_outside; /* set by whoever finds a place that is out of range */
};

/* ---- offsets of a block ------------------------------------------------------------------------ */

#define INDEX_AT(type, step) ((int64_t) * (const type *)(const void *)(data + (int64_t)i * (step)))

/* From -wrap to before size is one comparison of unsigned numbers; four of them for a branch. */
#define INDEX_IS_OUTSIDE(type, step, at)                                                          \
    ((uint64_t) * (const type *)(const void *)(data + (int64_t)(at) * (step)) + (uint64_t)wrap >= \
     most)

#define INDEX_CHECK(type, step)                                                            \
    {                                                                                      \
        const uint64_t most = size + (uint64_t)wrap;                                       \
        size_t i = 0;                                                                      \
        for (; i + 4 <= count; i += 4)                                                     \
            if (INDEX_IS_OUTSIDE(type, step, i) | INDEX_IS_OUTSIDE(type, step, i + 1) |    \
                INDEX_IS_OUTSIDE(type, step, i + 2) | INDEX_IS_OUTSIDE(type, step, i + 3)) \
                return false;                                                              \
        for (; i < count; i++)                                                             \
            if (INDEX_IS_OUTSIDE(type, step, i))                                           \
                return false;                                                              \
    }

#define INDEX_LOOP(type, step, store)      \
    for (size_t i = 0; i < count; i++) {   \
        int64_t at = INDEX_AT(type, step); \
        at += at < 0 ? wrap : 0;           \
        bool is_in = (uint64_t)at < size;  \
        is_outside |= !is_in;              \
        store;                             \
    }

#define INDEX_RUN(name, type)                                                                 \
    static bool name(const struct index *index, const char *data, int64_t step, size_t count, \
                     bool is_first, int64_t *offsets)                                         \
    {                                                                                         \
        const uint64_t size = (uint64_t)index->size;                                          \
        const int64_t wrap = index->wrap, stride = index->stride;                             \
        const int64_t dense = (int64_t)sizeof(type);                                          \
        bool is_outside = false;                                                              \
        if (offsets == NULL && step == dense)                                                 \
            INDEX_CHECK(type, dense)                                                          \
        else if (offsets == NULL)                                                             \
            INDEX_CHECK(type, step)                                                           \
        else if (is_first && step == dense)                                                   \
            INDEX_LOOP(type, dense, offsets[i] = (is_in ? at : 0) * stride)                   \
        else if (is_first)                                                                    \
            INDEX_LOOP(type, step, offsets[i] = (is_in ? at : 0) * stride)                    \
        else                                                                                  \
            INDEX_LOOP(type, step, offsets[i] += (is_in ? at : 0) * stride)                   \
        return !is_outside;                                                                   \
    }

/* uint64 is read as int64: what that sees as negative is out of range, as the wrap of unsigned types is 0. */
#define run_uint64 run_int64
INDEX_RUN(run_uint8, uint8_t)
INDEX_RUN(run_int8, int8_t)
INDEX_RUN(run_uint16, uint16_t)
INDEX_RUN(run_int16, int16_t)
INDEX_RUN(run_uint32, uint32_t)
INDEX_RUN(run_int32, int32_t)
INDEX_RUN(run_int64, int64_t)

static const index_run index_runs[GN_DTYPE_COUNT] = {
#define ROW(NAME, name, type, SIGNED) [GN_##NAME] = run_##name,
    GNI_INTEGER_LIST(ROW)
#undef ROW
};

/* Offsets of a mask. */
static bool run_trusted(const struct index *index, const char *data, int64_t step, size_t count,
                        bool is_first, int64_t *offsets)
{
    for (size_t i = 0; offsets != NULL && i < count; i++) {
        int64_t at;
        memcpy(&at, data + (int64_t)i * step, sizeof at);
        offsets[i] = (is_first ? 0 : offsets[i]) + at * index->stride;
    }
    return true;
}

/* A run within the last dimension of the block. */
static bool run_offsets(const struct walk *walk, const int64_t *at, size_t count, int64_t *offsets)
{
    int last = walk->block_end - 1;
    int64_t base = 0, step = walk->strides[last];
    bool is_inside = true;
    for (int i = walk->block_begin; i <= last; i++)
        base += at[i] * walk->strides[i];
    for (int k = 0; k < walk->index_count; k++) {
        const struct index *index = &walk->indices[k];
        const char *data = index->data;
        for (int i = walk->block_begin; i <= last; i++)
            data += at[i] * index->strides[i];
        is_inside &= index->run(index, data, index->strides[last], count, k == 0, offsets);
    }
    if (offsets == NULL)
        return is_inside;
    if (walk->index_count == 0)
        memset(offsets, 0, count * sizeof *offsets);
    if (base != 0 || step != 0)
        for (size_t i = 0; i < count; i++)
            offsets[i] += base + (int64_t)i * step;
    return is_inside;
}

/* The offsets of `count` places of the block from `begin` on. */
static bool tile_offsets(const struct walk *walk, int64_t begin, size_t count, int64_t *offsets)
{
    int64_t at[GN_DIMENSIONS_MAX], rest = begin;
    int last = walk->block_end - 1;
    bool is_inside = true;
    if (last < walk->block_begin) { /* no dimensions: one place, at 0 */
        if (offsets != NULL)
            offsets[0] = 0;
        for (int k = 0; k < walk->index_count; k++)
            is_inside &= walk->indices[k].run(&walk->indices[k], walk->indices[k].data, 0, 1,
                                              k == 0, offsets);
        return is_inside;
    }
    for (int i = last; i >= walk->block_begin; i--) {
        at[i] = rest % walk->sizes[i];
        rest /= walk->sizes[i];
    }
    for (size_t done = 0; done < count;) {
        size_t run = (size_t)(walk->sizes[last] - at[last]);
        run = run < count - done ? run : count - done;
        is_inside &= run_offsets(walk, at, run, offsets != NULL ? offsets + done : NULL);
        done += run;
        at[last] += (int64_t)run;
        for (int i = last; i > walk->block_begin && at[i] == walk->sizes[i]; i--) {
            at[i] = 0;
            at[i - 1]++;
        }
    }
    return is_inside;
}

/* ---- elements at offsets ----------------------------------------------------------------------- */

static gni_index_kernel kernel_find(const struct walk *walk)
{
    switch (walk->mode) {
    case MODE_GET:
        return gni_index_kernel_get(walk->width);
    case MODE_SET:
        return gni_index_kernel_set(walk->width);
    case MODE_ADD:
        return gni_index_kernel_add(walk->dtype);
    case MODE_OFFSETS:
        return gni_index_kernel_offsets();
    case MODE_CHECK:
        break;
    }
    return NULL;
}

/* A tile, in each round of the outer loops. `at` is the first place's number in the block. */
static void tile_work(const struct walk *walk, gni_index_kernel kernel, const int64_t *offsets,
                      size_t count, int64_t at)
{
    int inner = walk->block_end, last = walk->block_end - 1;
    bool has_inner = inner < walk->ndim, has_block = last >= walk->block_begin;
    struct gni_index_tile tile = {
        .offsets = offsets,
        .count = count,
        .step = has_block ? walk->other_strides[last] : 0,
        .inner = has_inner ? (size_t)walk->sizes[inner] : 1,
        .inner_stride = has_inner ? walk->strides[inner] : 0,
        .inner_step = has_inner ? walk->other_strides[inner] : 0,
        .width = walk->width,
    };
    int64_t place[GN_DIMENSIONS_MAX] = {0};
    int64_t source = 0, other = at * tile.step;
    for (;;) {
        tile.source = (char *)((uintptr_t)walk->source + (uintptr_t)source);
        tile.other = walk->other + other;
        (void)kernel(&tile); /* offsets are always right */
        int i = walk->block_begin - 1;
        for (; i >= 0; i--) {
            source += walk->strides[i];
            other += walk->other_strides[i];
            if (++place[i] < walk->sizes[i])
                break;
            source -= walk->sizes[i] * walk->strides[i];
            other -= walk->sizes[i] * walk->other_strides[i];
            place[i] = 0;
        }
        if (i < 0)
            return;
    }
}

/* Whether the places are just the elements of an index tensor, one after the other. */
static bool is_plain(const struct walk *walk)
{
    const struct index *index = &walk->indices[0];
    return walk->ndim == 1 && walk->block_end == 1 && walk->index_count == 1 &&
           walk->mode != MODE_CHECK && walk->mode != MODE_OFFSETS && walk->strides[0] == 0 &&
           index->run == run_int64 && index->strides[0] == (int64_t)sizeof(int64_t);
}

static bool plain_work(const struct walk *walk)
{
    const struct index *index = &walk->indices[0];
    struct gni_index_tile tile = {
        .source = walk->source,
        .other = walk->other,
        .count = (size_t)walk->sizes[0],
        .numbers = (const int64_t *)(const void *)index->data,
        .size = index->size,
        .wrap = index->wrap,
        .stride = index->stride,
        .step = walk->other_strides[0],
        .inner = 1,
        .width = walk->width,
    };
    return kernel_find(walk)(&tile);
}

static bool tiles_work(const struct walk *walk)
{
    int64_t offsets[TILE], count = 1;
    gni_index_kernel kernel = kernel_find(walk);
    bool is_inside = true;
    for (int i = walk->block_begin; i < walk->block_end; i++)
        count *= walk->sizes[i];
    for (int64_t at = 0; at < count; at += TILE) {
        size_t own = (size_t)(count - at < TILE ? count - at : TILE);
        is_inside &= tile_offsets(walk, at, own, kernel != NULL ? offsets : NULL);
        if (kernel != NULL)
            tile_work(walk, kernel, offsets, own, at);
    }
    return is_inside;
}

static void walk_run(const struct walk *walk)
{
    if (!(is_plain(walk) ? plain_work(walk) : tiles_work(walk)))
        atomic_store_explicit(walk->is_outside, true, memory_order_relaxed);
}

/* ---- from a plan to a walk --------------------------------------------------------------------- */

/* Adds a dimension of the plan, joined with the one before where all strides allow it. */
static void dimension_add(struct walk *walk, const struct gni_index_plan *plan, int from, int begin,
                          const int64_t *other_strides, int64_t unit, int64_t other_unit)
{
    int64_t size = plan->sizes[from], stride = plan->strides[from] * unit;
    int64_t other = other_strides[from] * other_unit;
    int64_t own[GN_DIMENSIONS_MAX];
    int last = walk->ndim - 1;
    if (size == 1)
        return;
    bool is_joined = last >= begin && walk->strides[last] == stride * size &&
                     walk->other_strides[last] == other * size;
    for (int k = 0; k < walk->index_count; k++) {
        own[k] = plan->indices[k].strides[from] * (int64_t)gni_dtype_size(walk->indices[k].dtype);
        is_joined = is_joined && walk->indices[k].strides[last] == own[k] * size;
    }
    int at = is_joined ? last : walk->ndim++;
    walk->sizes[at] = is_joined ? walk->sizes[at] * size : size;
    walk->strides[at] = stride;
    walk->other_strides[at] = other;
    for (int k = 0; k < walk->index_count; k++)
        walk->indices[k].strides[at] = own[k];
}

static void numbers_swap(int64_t *numbers, int at)
{
    int64_t number = numbers[at];
    numbers[at] = numbers[at + 1];
    numbers[at + 1] = number;
}

/* The last outer dimension becomes the inner one. */
static void dimension_move_inside(struct walk *walk)
{
    for (int i = walk->block_begin - 1; i + 1 < walk->ndim; i++) {
        numbers_swap(walk->sizes, i);
        numbers_swap(walk->strides, i);
        numbers_swap(walk->other_strides, i);
        for (int k = 0; k < walk->index_count; k++)
            numbers_swap(walk->indices[k].strides, i);
    }
    walk->block_begin--;
    walk->block_end--;
}

/* Elements that lie together on both sides are moved as one. */
static void inner_widen(struct walk *walk)
{
    int inner = walk->block_end;
    if (walk->mode == MODE_ADD || walk->mode == MODE_OFFSETS || inner >= walk->ndim ||
        walk->strides[inner] != (int64_t)walk->width ||
        walk->other_strides[inner] != (int64_t)walk->width)
        return;
    walk->width *= (size_t)walk->sizes[inner];
    walk->ndim--;
}

static void walk_make(struct walk *walk, const struct gni_index_plan *plan, enum mode mode,
                      gn_dtype dtype, char *source, char *other, const int64_t *other_strides)
{
    size_t width = gni_dtype_size(dtype);
    int64_t unit = mode == MODE_OFFSETS ? 1 : (int64_t)width, other_unit = (int64_t)width;
    walk->mode = mode;
    walk->dtype = dtype;
    walk->width = width;
    walk->source = (char *)((uintptr_t)source + (uintptr_t)(plan->offset * unit));
    walk->other = other;
    walk->count = plan->count;
    walk->ndim = 0;
    walk->index_count = plan->has_mask && plan->indices[0].is_mask ? 0 : plan->index_count;
    for (int k = 0; k < walk->index_count; k++) {
        const struct gni_index *index = &plan->indices[k];
        struct index *own = &walk->indices[k];
        own->data = gni_tensor_data(index->tensor);
        own->dtype = index->tensor->dtype;
        own->size = index->size;
        own->run = index->is_trusted ? run_trusted : index_runs[own->dtype];
        own->wrap = index->wrap;
        own->stride = index->stride * unit;
    }
    for (int i = 0; i < plan->block_begin; i++)
        dimension_add(walk, plan, i, 0, other_strides, unit, other_unit);
    /* Of the dimensions behind the block the last is the inner one; the others are outer ones. */
    int behind = walk->ndim;
    for (int i = plan->block_end; i < plan->ndim; i++)
        dimension_add(walk, plan, i, behind, other_strides, unit, other_unit);
    bool has_inner = walk->ndim > behind;
    int64_t places = 1;
    walk->block_begin = walk->ndim;
    for (int i = plan->block_begin; i < plan->block_end; i++) {
        dimension_add(walk, plan, i, walk->block_begin, other_strides, unit, other_unit);
        places *= plan->sizes[i];
    }
    walk->block_end = walk->ndim;
    if (has_inner || (walk->block_begin > 0 && places < FEW))
        dimension_move_inside(walk);
}

/* ---- parts ------------------------------------------------------------------------------------- */

struct split {
    const struct walk *walk;
    int dimension;
};

static void split_run(void *context, size_t begin, size_t end)
{
    const struct split *split = context;
    struct walk part = *split->walk;
    int i = split->dimension;
    int64_t from = (int64_t)begin;
    part.source = (char *)((uintptr_t)part.source + (uintptr_t)(from * part.strides[i]));
    part.other += from * part.other_strides[i];
    part.sizes[i] = (int64_t)(end - begin);
    for (int k = 0; k < part.index_count; k++)
        part.indices[k].data += from * part.indices[k].strides[i];
    inner_widen(&part);
    walk_run(&part);
}

/* The first dimension along which the work may be cut and that is long enough, else the longest; -1: there is none. */
static int split_find(const struct walk *walk)
{
    bool is_writing = walk->mode == MODE_SET || walk->mode == MODE_ADD;
    int best = -1;
    for (int i = 0; i < walk->ndim && (best < 0 || walk->sizes[best] < FEW); i++) {
        bool is_block = i >= walk->block_begin && i < walk->block_end;
        if (is_writing && walk->strides[i] == 0)
            continue;
        if (is_block &&
            i > walk->block_begin) /* the strides of the other are those of the last one */
            continue;
        if (best < 0 || walk->sizes[i] > walk->sizes[best])
            best = i;
    }
    return best;
}

/* ---- sums by shares of the target -------------------------------------------------------------- */

/*
 * Threads that add to one target have a share of it each: all look at all numbers, and keep those that are theirs. Each
 * element sees its values in their order, so that sums do not depend on how many threads there are.
 */
struct shares {
    const struct walk *walk;
    size_t count;
};

/* Numbers of a tile from `low` to before `high` become offsets, and their values neighbours: how many. */
#define SHARE_TAKE(bytes)                                                  \
    for (size_t i = 0; i < count; i++) {                                   \
        int64_t at = numbers[i] + (numbers[i] < 0 ? index->wrap : 0);      \
        offsets[kept] = (int64_t)((uint64_t)at * (uint64_t)index->stride); \
        memcpy(values + kept * (bytes), other + (int64_t)i * step, bytes); \
        kept += (uint64_t)at - low < high - low;                           \
    }

static size_t share_take(const struct walk *walk, const int64_t *numbers, const char *other,
                         size_t count, uint64_t low, uint64_t high, int64_t *offsets, char *values)
{
    const struct index *index = &walk->indices[0];
    int64_t step = walk->other_strides[0];
    size_t kept = 0;
    switch (walk->width) {
    case 1:
        SHARE_TAKE(1)
        break;
    case 2:
        SHARE_TAKE(2)
        break;
    case 4:
        SHARE_TAKE(4)
        break;
    default:
        SHARE_TAKE(8)
    }
    return kept;
}

static void share_run(void *context, size_t begin, size_t end)
{
    const struct shares *shares = context;
    const struct walk *walk = shares->walk;
    const struct index *index = &walk->indices[0];
    const int64_t *numbers = (const int64_t *)(const void *)index->data;
    uint64_t each = (uint64_t)index->size / shares->count + 1;
    uint64_t low = (uint64_t)begin * each, high = (uint64_t)end * each;
    int64_t offsets[TILE];
    _Alignas(8) char values[TILE * 8];
    high = high < (uint64_t)index->size ? high : (uint64_t)index->size;
    low = low < high ? low : high;
    gni_index_kernel kernel = kernel_find(walk);
    for (int64_t at = 0; at < walk->sizes[0]; at += TILE) {
        size_t count = (size_t)(walk->sizes[0] - at < TILE ? walk->sizes[0] - at : TILE);
        struct gni_index_tile tile = {.source = walk->source,
                                      .other = values,
                                      .offsets = offsets,
                                      .step = (int64_t)walk->width,
                                      .inner = 1,
                                      .width = walk->width};
        tile.count = share_take(walk, numbers + at, walk->other + at * walk->other_strides[0],
                                count, low, high, offsets, values);
        if (tile.count > 0)
            (void)kernel(&tile);
    }
}

/* Whether it is worth while that several threads add. */
static bool is_shared(const struct walk *walk)
{
    return walk->mode == MODE_ADD && is_plain(walk) && walk->count >= SHARE_LEAST &&
           walk->indices[0].size >= SHARE_SIZE_LEAST &&
           gni_parallel_get_threads() >= SHARE_THREADS_LEAST;
}

static void shares_run(const struct walk *walk)
{
    size_t threads = (size_t)gni_parallel_get_threads();
    struct shares shares = {walk, threads < SHARES_MOST ? threads : SHARES_MOST};
    gni_parallel_for(shares.count, 1, share_run, &shares);
}

/*
 * The least of a dimension that is worth a part. Sums into rows are cut into stretches of each row: all threads look at all
 * numbers then, so there are as few stretches as threads, and none is shorter than a cache line.
 */
static size_t split_grain(const struct walk *walk, int dimension)
{
    int64_t size = walk->sizes[dimension], each = walk->count / size;
    int64_t grain = each < GRAIN ? GRAIN / (each > 0 ? each : 1) : 1;
    if (walk->mode == MODE_ADD && dimension >= walk->block_end &&
        walk->strides[dimension] == (int64_t)walk->width) {
        int64_t line = CACHE_LINE / (int64_t)walk->width, threads = gni_parallel_get_threads();
        int64_t stretch = ((size + threads - 1) / threads + line - 1) / line * line;
        grain = grain > stretch ? grain : stretch;
    }
    return (size_t)grain;
}

static bool walk_all(struct walk *walk)
{
    _Atomic(bool) is_outside = false;
    walk->is_outside = &is_outside;
    int dimension = walk->count * (int64_t)walk->width >= GRAIN * 2 ? split_find(walk) : -1;
    if (dimension < 0 && is_shared(walk)) {
        shares_run(walk);
    } else if (dimension < 0) {
        inner_widen(walk);
        walk_run(walk);
    } else {
        struct split split = {walk, dimension};
        gni_parallel_for((size_t)walk->sizes[dimension], split_grain(walk, dimension), split_run,
                         &split);
    }
    return !atomic_load_explicit(&is_outside, memory_order_relaxed);
}

/* ---- masks that are streamed ------------------------------------------------------------------- */

struct stream {
    const struct walk *walk;
    const struct gni_mask *mask;
    int64_t unit;
};

static void stream_run(void *context, size_t begin, size_t end)
{
    const struct stream *stream = context;
    const struct gni_mask *mask = stream->mask;
    const struct walk *walk = stream->walk;
    int64_t offsets[GNI_MASK_WINDOW], at = (int64_t)begin * GNI_MASK_PART;
    int64_t stop = (int64_t)end * GNI_MASK_PART;
    size_t done = (size_t)gni_mask_before(mask, (int64_t)begin);
    size_t most = (size_t)gni_mask_before(mask, (int64_t)end);
    gni_index_kernel kernel = kernel_find(walk);
    stop = stop < mask->length ? stop : mask->length;
    while (at < stop) {
        size_t found = gni_mask_next(mask, &at, stop, offsets);
        found = found < most - done ? found : most - done; /* whatever others write meanwhile */
        for (size_t i = 0; i < found; i++)
            offsets[i] *= stream->unit;
        if (found > 0)
            tile_work(walk, kernel, offsets, found, (int64_t)done);
        done += found;
    }
}

static void stream_all(const struct walk *walk, const struct gni_mask *mask)
{
    struct stream stream = {walk, mask,
                            walk->mode == MODE_OFFSETS ? 1 : (int64_t)gni_dtype_size(walk->dtype)};
    gni_parallel_for((size_t)gni_mask_parts(mask), 1, stream_run, &stream);
}

/* ---- what others call -------------------------------------------------------------------------- */

static bool plan_run(const struct gni_index_plan *plan, enum mode mode, gn_dtype dtype,
                     char *source, char *other, const int64_t *other_strides)
{
    struct walk walk;
    bool has_elements = plan->count > 0;
    for (int k = 0; k < plan->index_count; k++) /* there may be no element 0 to be meant instead */
        has_elements &= plan->indices[k].is_trusted || plan->indices[k].size > 0;
    if (!has_elements)
        return gni_index_plan_is_in_range(plan);
    walk_make(&walk, plan, mode, dtype, source, other, other_strides);
    if (plan->has_mask && plan->indices[0].is_mask) {
        inner_widen(&walk);
        stream_all(&walk, &plan->mask);
        return true;
    }
    return walk_all(&walk);
}

bool gni_index_plan_is_in_range(const struct gni_index_plan *plan)
{
    static const int64_t none[GN_DIMENSIONS_MAX];
    struct walk walk;
    bool is_needed = false;
    for (int k = 0; k < plan->index_count; k++)
        is_needed |= !plan->indices[k].is_trusted;
    for (int i = plan->block_begin; i < plan->block_end; i++)
        is_needed &= plan->sizes[i] > 0;
    if (!is_needed)
        return true;
    walk_make(&walk, plan, MODE_CHECK, GN_INT8, NULL, NULL, none);
    /* By this thread alone, if they are not many: what follows mostly is one thread's work, and finds the numbers in
     * its cache. */
    return plan->ndim == 1 && plan->count >= SHARE_LEAST ? walk_all(&walk) : tiles_work(&walk);
}

bool gni_index_plan_gather(const struct gni_index_plan *plan, const void *source, gn_dtype dtype,
                           void *out)
{
    int64_t strides[GN_DIMENSIONS_MAX];
    gni_strides_contiguous(plan->ndim, plan->sizes, strides);
    return plan_run(plan, MODE_GET, dtype, (char *)(uintptr_t)source, out, strides);
}

bool gni_index_plan_offsets(const struct gni_index_plan *plan, int64_t *out)
{
    int64_t strides[GN_DIMENSIONS_MAX];
    gni_strides_contiguous(plan->ndim, plan->sizes, strides);
    return plan_run(plan, MODE_OFFSETS, GN_INT64, NULL, (char *)out, strides);
}

void gni_index_plan_scatter(const struct gni_index_plan *plan, void *target, gn_dtype dtype,
                            const void *values, const int64_t *strides, bool is_accumulated)
{
    (void)plan_run(plan, is_accumulated ? MODE_ADD : MODE_SET, dtype, target,
                   (char *)(uintptr_t)values, strides);
}

/* ---- the table's functions ---------------------------------------------------------------------- */

gn_status gni_cpu_index_get(const struct gni_index_plan *plan, gn_tensor *source, gn_tensor *result)
{
    return gni_index_plan_gather(plan, gni_tensor_data(source), source->dtype,
                                 gni_tensor_data(result))
               ? GN_OK
               : gni_index_refuse(plan);
}

/* True if the dimensions of the index tensors are one dimension of the values. */
static bool is_linear(const struct gni_index_plan *plan, const int64_t *strides)
{
    for (int i = plan->block_begin; i + 1 < plan->block_end; i++)
        if (strides[i] != strides[i + 1] * plan->sizes[i + 1])
            return false;
    return true;
}

/* A contiguous copy of values in the shape of the plan. */
static gn_status value_spread(const struct gni_index_plan *plan, const int64_t *strides,
                              const gn_tensor *value, gn_tensor **spread)
{
    gn_tensor *view, *whole;
    GN_TRY(gni_tensor_alias_as((gn_tensor *)value, 0, plan->ndim, plan->sizes, strides, &view));
    gn_status status = gn_cast(view, view->dtype, &whole);
    gn_tensor_release(view);
    GN_TRY(status);
    status = gni_tensor_flush(whole);
    if (status == GN_OK)
        *spread = whole;
    else
        gn_tensor_release(whole);
    return status;
}

gn_status gni_cpu_index_set(const struct gni_index_plan *plan, gn_tensor *target,
                            const gn_tensor *value, const int64_t *strides, uint64_t number,
                            bool is_accumulated)
{
    int64_t contiguous[GN_DIMENSIONS_MAX];
    gn_tensor *spread = NULL;
    gn_status status = GN_OK;
    if (value != NULL && !is_linear(plan, strides)) {
        GN_TRY(value_spread(plan, strides, value, &spread));
        gni_strides_contiguous(plan->ndim, plan->sizes, contiguous);
        strides = contiguous;
        value = spread;
    }
    if (gni_index_plan_is_in_range(plan))
        gni_index_plan_scatter(plan, gni_tensor_data(target), target->dtype,
                               value != NULL ? (const void *)gni_tensor_data(value) : &number,
                               strides, is_accumulated);
    else
        status = gni_index_refuse(plan);
    gn_tensor_release(spread);
    return status;
}

/* The plan of a key that is one mask, ready to be carried out. */
static gn_status mask_plan(const gn_tensor *tensor, gn_tensor *mask, struct gni_index_plan *plan)
{
    struct gni_index_source source = gni_index_source_of(tensor);
    gn_key key = {.kind = GN_KEY_TENSOR, .tensor = mask};
    GN_TRY(gni_index_plan_init(plan, &source, 1, &key));
    if (gni_index_plan_is_streamed(plan))
        return GN_OK;
    gn_status status = gni_index_plan_compact(plan);
    if (status != GN_OK)
        gni_index_plan_deinit(plan);
    return status;
}

gn_status gni_cpu_mask_get(gn_tensor *source, gn_tensor *mask, gn_tensor **result)
{
    struct gni_index_plan plan;
    gn_tensor *made;
    GN_TRY(mask_plan(source, mask, &plan));
    gn_status status =
        gn_tensor_create(source->dtype, plan.ndim, plan.sizes, source->device, &made);
    if (status == GN_OK) {
        status = gni_cpu_index_get(&plan, source, made);
        if (status == GN_OK)
            *result = made;
        else
            gn_tensor_release(made);
    }
    gni_index_plan_deinit(&plan);
    return status;
}

gn_status gni_cpu_mask_set(gn_tensor *target, gn_tensor *mask, gn_tensor *values)
{
    static const int64_t one[] = {1};
    struct gni_index_plan plan;
    GN_TRY(mask_plan(target, mask, &plan));
    gn_status status =
        values->count == plan.count
            ? gni_cpu_index_set(&plan, target, values, one, 0, false)
            : gni_error(GN_ERROR_SHAPE,
                        "a value of shape %s cannot be broadcast to the %s that are written",
                        gni_shape_text(values->ndim, values->sizes).text,
                        gni_shape_text(1, &plan.count).text);
    gni_index_plan_deinit(&plan);
    return status;
}

gn_status gni_cpu_index_check(gn_device *device)
{
    (void)device; /* what is out of range was reported at once */
    return GN_OK;
}
