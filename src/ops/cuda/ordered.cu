/*
 * ordered.cu: what sorted entries (ordered.h) have, added up in their order. Defined before: word, an unsigned integer
 * that keys and numbers of entries fit into; and one of
 *
 *   ORDERED_SUM    adds up the elements of entries that have one each
 *   ORDERED_ROWS   those of entries that have columns
 *   ORDERED_JOIN   adds up what several tiles have of one key
 *   ORDERED_LAST   which entries are the last ones of their keys
 *
 * Keys are sorted, and a run of equal ones is one element, or row, of the target. A run is cut where tiles, of a fixed
 * size, are: what lies in one tile is summed there, beginning with what the target has. Of a run that goes on behind
 * its tile, the tile's part is `last`; of one that comes from before it is `first`, and JOIN adds these to the
 * former. Nothing depends on which thread comes first. Sums of halves are float's, rounded at the end.
 */
struct arguments {
    const word *keys, *entries; /* sorted: each key, and whose it is */
    int64 count, none;          /* `none` is no key: its entries are passed by */
    int64 tile, tiles;          /* entries of a tile */
    char *target;
    const char *other; /* NULL: the number */
    uint64 number;
    int64 step; /* of the target: bytes from key to key */
    int64 dimensions, sizes[16], other_strides[16];
    int64 columns, column_dimensions, column_sizes[16], column_strides[16], column_other_strides[16];
    void *first, *last; /* [tiles][columns] of real */
    uint8 *chosen;
};

/* ---- places and values ---- */

#ifndef ORDERED_LAST
typedef decltype(number(element())) real;

ELEMENT real value_at(const arguments &a, int64 offset)
{
    return number(*(const element *)(a.other != 0 ? a.other + offset : (const char *)&a.number));
}

ELEMENT int64 entry_offset(const arguments &a, int64 entry)
{
    int64 offset = 0;
    for (int d = (int)a.dimensions - 1; d >= 0; d--) {
        const int64 above = d > 0 ? entry / a.sizes[d] : 0;
        offset += (entry - above * a.sizes[d]) * a.other_strides[d];
        entry = above;
    }
    return offset;
}

/* Of a column: in the target, and in the other. */
ELEMENT void column_offsets(const arguments &a, int64 column, int64 &offset, int64 &other)
{
    offset = other = 0;
    for (int d = (int)a.column_dimensions - 1; d >= 0; d--) {
        const int64 above = d > 0 ? column / a.column_sizes[d] : 0, place = column - above * a.column_sizes[d];
        offset += place * a.column_strides[d];
        other += place * a.column_other_strides[d];
        column = above;
    }
}

ELEMENT element *target_at(const arguments &a, word key, int64 offset)
{
    return (element *)(a.target + (int64)key * a.step + offset);
}

ELEMENT bool is_first(const arguments &a, int64 i) { return i == 0 || a.keys[i - 1] != a.keys[i]; }
ELEMENT bool is_last(const arguments &a, int64 i) { return i + 1 == a.count || a.keys[i + 1] != a.keys[i]; }
#endif

#ifdef ORDERED_SUM
#define ITEMS 8 /* neighbours that a thread has; ordered.c has the same */
#define TILE (256 * ITEMS)

/* Of threads one after the other: what they have of the last run, and whether it began among them. */
struct running {
    real sum;
    bool has_begun;
};
ELEMENT running running_join(running a, running b)
{
    return running{b.has_begun ? b.sum : a.sum + b.sum, a.has_begun || b.has_begun};
}
ELEMENT running running_none() { return running{(real)-0.0, false}; }

/* What the threads of a block before this one have. */
ELEMENT running threads_before(running own, running *warps)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
#pragma unroll
    for (int lanes = 1; lanes < 32; lanes *= 2) {
        const running lower = {__shfl_up_sync(0xffffffffu, own.sum, lanes),
                               __shfl_up_sync(0xffffffffu, (int)own.has_begun, lanes) != 0};
        if (lane >= lanes)
            own = running_join(lower, own);
    }
    if (lane == 31)
        warps[warp] = own;
    running before = {__shfl_up_sync(0xffffffffu, own.sum, 1),
                      __shfl_up_sync(0xffffffffu, (int)own.has_begun, 1) != 0};
    if (lane == 0)
        before = running_none();
    __syncthreads();
    running all = running_none();
    for (int k = 0; k < warp; k++)
        all = running_join(all, warps[k]);
    return running_join(all, before);
}

/* A block for each tile. */
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    __shared__ real values[TILE];
    __shared__ word keys[TILE + 2]; /* with a neighbour on either side; behind the end and before the beginning: */
    __shared__ running warps[8];
    const word nothing = ~(word)0; /* no key, nor `none` */
    const int64 begin = (int64)blockIdx.x * TILE;
    for (int at = (int)threadIdx.x; at < TILE + 2; at += 256) {
        const int64 i = begin + at - 1;
        keys[at] = i >= 0 && i < a.count ? a.keys[i] : nothing;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int at = k * 256 + (int)threadIdx.x;
        real value = (real)-0.0;
        if (begin + at < a.count && keys[at + 1] != (word)a.none) {
            value = value_at(a, entry_offset(a, (int64)a.entries[begin + at]));
            if (keys[at] != keys[at + 1])
                value = number(*target_at(a, keys[at + 1], 0)) + value;
        }
        values[at] = value;
    }
    __syncthreads();
    const int first = (int)threadIdx.x * ITEMS;
    running own = running_none();
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        own = running_join(own, running{values[first + k], keys[first + k] != keys[first + k + 1]});
    own = threads_before(own, warps);
    for (int k = 0; k < ITEMS && begin + first + k < a.count; k++) {
        const word key = keys[first + k + 1];
        own = running_join(own, running{values[first + k], keys[first + k] != key});
        const bool is_end = keys[first + k + 2] != key;
        if (key == (word)a.none || (!is_end && first + k + 1 < TILE))
            continue;
        if (!own.has_begun)
            ((real *)a.first)[blockIdx.x] = own.sum;
        else if (is_end)
            *target_at(a, key, 0) = convert<element>(own.sum);
        else
            ((real *)a.last)[blockIdx.x] = own.sum;
    }
}
#endif

#ifdef ORDERED_ROWS
#define GROUP 4 /* entries that are loaded before the first is used; tiles are multiples */

/* A thread for each tile and column. */
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    const int64 t = (int64)blockIdx.x * 256 + threadIdx.x, tile = t / a.columns, column = t - tile * a.columns;
    if (tile >= a.tiles)
        return;
    const int64 begin = tile * a.tile, end = begin + a.tile < a.count ? begin + a.tile : a.count;
    int64 offset, other;
    column_offsets(a, column, offset, other);
    real sum = (real)-0.0;
    bool has_begun = false;
    for (int64 i = begin; i < end; i += GROUP) {
        word keys[GROUP];
        real values[GROUP];
#pragma unroll
        for (int k = 0; k < GROUP; k++) {
            keys[k] = i + k < end ? a.keys[i + k] : (word)a.none;
            values[k] = keys[k] != (word)a.none
                            ? value_at(a, entry_offset(a, (int64)a.entries[i + k]) + other)
                            : (real)-0.0;
        }
#pragma unroll
        for (int k = 0; k < GROUP; k++) {
            if (keys[k] == (word)a.none)
                break; /* none is the largest: nothing follows */
            element *const to = target_at(a, keys[k], offset);
            if (is_first(a, i + k)) {
                sum = number(*to) + values[k];
                has_begun = true;
            } else {
                sum += values[k];
            }
            const bool is_end = is_last(a, i + k);
            if (!is_end && i + k + 1 < end)
                continue;
            if (!has_begun)
                ((real *)a.first)[t] = sum;
            else if (is_end)
                *to = convert<element>(sum);
            else
                ((real *)a.last)[t] = sum;
            sum = (real)-0.0;
        }
    }
}
#endif

#ifdef ORDERED_JOIN
#define SHORT 32 /* parts that a thread adds up by itself */

/* The last tile that begins with a key, at or behind one that does: in steps that grow, and then shrink. */
ELEMENT int64 tile_find(const arguments &a, word key, int64 tile)
{
    int64 step = 1;
    while (tile + step < a.tiles && a.keys[(tile + step) * a.tile] == key) {
        tile += step;
        step *= 2;
    }
    for (; step > 0; step /= 2)
        if (tile + step < a.tiles && a.keys[(tile + step) * a.tile] == key)
            tile += step;
    return tile;
}

/* A thread for each tile and column; of those whose run is long, a warp for each. */
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    const int64 t = (int64)blockIdx.x * 256 + threadIdx.x, tile = t / a.columns, column = t - tile * a.columns;
    const int64 end = (tile + 1) * a.tile;
    const int lane = (int)threadIdx.x % 32;
    const real *const firsts = (const real *)a.first;
    word key = (word)a.none;
    if (end < a.count) {
        const int64 begin = tile * a.tile;
        key = a.keys[end - 1];
        if (a.keys[end] != key || (a.keys[begin] == key && !is_first(a, begin)))
            key = (word)a.none; /* no run begins here and goes on */
    }
    int64 parts = 0;
    real sum = 0;
    if (key != (word)a.none) {
        parts = tile_find(a, key, tile + 1) - tile;
        sum = ((const real *)a.last)[t];
        for (int64 k = 1; parts <= SHORT && k <= parts; k++)
            sum += firsts[t + k * a.columns];
    }
    for (unsigned left = __ballot_sync(0xffffffffu, parts > SHORT); left != 0; left &= left - 1) {
        const int whose = __ffs((int)left) - 1;
        const int64 its = __shfl_sync(0xffffffffu, t, whose), all = __shfl_sync(0xffffffffu, parts, whose);
        real own = (real)-0.0;
        for (int64 k = 1 + lane; k <= all; k += 32)
            own += firsts[its + k * a.columns];
#pragma unroll
        for (int lanes = 16; lanes > 0; lanes /= 2)
            own += __shfl_xor_sync(0xffffffffu, own, lanes);
        if (lane == whose)
            sum += own;
    }
    if (key != (word)a.none) {
        int64 offset, other;
        column_offsets(a, column, offset, other);
        *target_at(a, key, offset) = convert<element>(sum);
    }
}
#endif

#ifdef ORDERED_LAST
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    const int64 i = (int64)blockIdx.x * 256 + threadIdx.x;
    if (i < a.count)
        a.chosen[a.entries[i]] = i + 1 == a.count || a.keys[i + 1] != a.keys[i];
}
#endif
