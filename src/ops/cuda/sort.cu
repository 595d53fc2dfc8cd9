/*
 * sort.cu: sorted rows, and the different elements. Behind keys.cu, with one of
 *
 *   SORT_SMALL     sorts rows of up to 2048 elements, or of as many that were selected
 *   SORT_SELECT    which elements of each part of a row come first, by their places
 *   SORT_COUNT     how many keys of each tile of a row have each digit
 *   SORT_LINES     from such counts to where they begin
 *   SORT_SPREAD    puts the keys of each tile where they belong
 *   UNIQUE_COUNT   how many keys of each tile of a sorted row are new
 *   UNIQUE_STORE   puts those together
 *   UNIQUE_DIFFER  from where they begin to how many there are
 *
 * and typedef place, an unsigned integer that counts the elements of a row.
 *
 * Small rows: a block has 2048 keys in shared memory, of one row or several, each filled up to a power of two, and
 * sorts them by a network; a key and its place together are different from all others, so that equal keys stay in
 * their order. Others: digits of 8 bits, the lowest first. A table has for each row, digit and tile how many keys
 * there are, in the order in which they go; summed up it says where each tile's keys of a digit begin. Inside a tile,
 * the warps have its keys in their order, and lanes with the same digit find each other: nothing depends on which
 * thread comes first. The first few of a row are selected digit by digit, the highest first: which digit the last of
 * them has. A part of a row is a block's; what the parts have selected is sorted as a small row is.
 *
 * Types of elements are arguments here, not kernels of their own: what reads them is a small part of the work.
 */
enum { TYPE_UINT8, TYPE_INT8, TYPE_INT16, TYPE_INT32, TYPE_INT64, TYPE_FLOAT16, TYPE_BFLOAT16, TYPE_FLOAT32, TYPE_FLOAT64 };

#define DIGITS 256
#define SMALL 2048
#define ITEMS (sizeof(key) + sizeof(place) == 8 ? 16 : 8) /* of a thread; sort.c has the same */
#define TILE (256 * ITEMS)

struct arguments {
    const void *in; /* [rows][columns] */
    int64 type, flip; /* the elements': TYPE_; what is exclusive-or keys: all bits for descending order */
    int64 rows, columns, kept;
    int64 count;  /* of a small row's elements: columns, or selected ones */
    int64 padded; /* the same, up to a power of two */
    int64 chunk;  /* elements of a part that is selected from */
    int64 tiles;  /* of a row, or such parts */
    int64 shift;  /* of the digit in a key; of the highest for a selection */
    int64 is_last;
    const key *keys; /* sorted by lower digits, with places; NULL: elements */
    const place *places;
    key *new_keys; /* results, but of the last digit */
    place *new_places;
    place *origins; /* [rows][count]: which elements were selected; NULL: all */
    place *table;  /* [rows][DIGITS][tiles] */
    place *totals; /* [rows][DIGITS] */
    void *values;  /* results: [rows][kept]; may be NULL */
    int64 *indices;
    int64 found; /* of different elements */
    int64 *inverse, *starts, *counts;
};

ELEMENT key key_at(const arguments &a, int64 i)
{
    key found = 0;
    switch (a.type) {
    case TYPE_UINT8: found = (key)key_of(((const uint8 *)a.in)[i]); break;
    case TYPE_INT8: found = (key)key_of(((const int8 *)a.in)[i]); break;
    case TYPE_INT16: found = (key)key_of(((const short *)a.in)[i]); break;
    case TYPE_INT32: found = (key)key_of(((const int *)a.in)[i]); break;
    case TYPE_INT64: found = (key)key_of(((const int64 *)a.in)[i]); break;
    case TYPE_FLOAT16: found = (key)key_of(((const float16 *)a.in)[i]); break;
    case TYPE_BFLOAT16: found = (key)key_of(((const bfloat16 *)a.in)[i]); break;
    case TYPE_FLOAT32: found = (key)key_of(((const float *)a.in)[i]); break;
    case TYPE_FLOAT64: found = (key)key_of(((const double *)a.in)[i]); break;
    }
    return found ^ (key)a.flip;
}

/* The very bits: -0 and NaNs have no key of their own. */
ELEMENT void element_copy(const arguments &a, int64 from, int64 to)
{
    switch (a.type) {
    case TYPE_UINT8:
    case TYPE_INT8: ((uint8 *)a.values)[to] = ((const uint8 *)a.in)[from]; break;
    case TYPE_INT16:
    case TYPE_FLOAT16:
    case TYPE_BFLOAT16: ((short *)a.values)[to] = ((const short *)a.in)[from]; break;
    case TYPE_INT32:
    case TYPE_FLOAT32: ((int *)a.values)[to] = ((const int *)a.in)[from]; break;
    default: ((int64 *)a.values)[to] = ((const int64 *)a.in)[from]; break;
    }
}

ELEMENT void result_store(const arguments &a, int64 row, int64 at, int64 place_in_row)
{
    if (a.indices != 0)
        a.indices[row * a.kept + at] = place_in_row;
    if (a.values != 0)
        element_copy(a, row * a.columns + place_in_row, row * a.kept + at);
}

/* What the threads before this one hold, of 256, and what all do; `warps` has room for 8. */
template <class T> ELEMENT T threads_before(T own, T *warps, T &all)
{
    T sum = own;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int lanes = 1; lanes < 32; lanes *= 2) {
        const T lower = __shfl_up_sync(0xffffffffu, sum, lanes);
        if (lane >= lanes)
            sum += lower;
    }
    if (lane == 31)
        warps[warp] = sum;
    __syncthreads();
    T before = sum - own;
    all = 0;
    for (int k = 0; k < 8; k++) {
        before += k < warp ? warps[k] : 0;
        all += warps[k];
    }
    __syncthreads();
    return before;
}

#ifdef SORT_SMALL
ELEMENT void pair_order(key *keys, unsigned short *places, int i, int j)
{
    const key x = keys[i], y = keys[j];
    const unsigned short p = places[i], q = places[j];
    if (y < x || (y == x && q < p)) {
        keys[i] = y;
        keys[j] = x;
        places[i] = q;
        places[j] = p;
    }
}

extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    __shared__ key keys[SMALL];
    __shared__ unsigned short places[SMALL];
    const int padded = (int)a.padded;
    const int64 first = (int64)blockIdx.x * (SMALL / padded), left = a.rows - first;
    const int slots = left < SMALL / padded ? (int)left : SMALL / padded, count = slots * padded;
    for (int i = threadIdx.x; i < count; i += 256) {
        const int64 row = first + i / padded;
        const int at = i % padded;
        keys[i] = ~(key)0;
        if (at < a.count)
            keys[i] = key_at(a, row * a.columns + (a.origins != 0 ? a.origins[row * a.count + at] : at));
        places[i] = (unsigned short)at;
    }
    /* Each row in ascending runs of twice the length, from two that meet at their ends. */
    for (int run = 2; run <= padded; run *= 2) {
        __syncthreads();
        for (int t = threadIdx.x; t < count / 2; t += 256) {
            const int base = t / (run / 2) * run, at = t % (run / 2);
            pair_order(keys, places, base + at, base + run - 1 - at);
        }
        for (int step = run / 4; step > 0; step /= 2) {
            __syncthreads();
            for (int t = threadIdx.x; t < count / 2; t += 256) {
                const int i = t / step * 2 * step + t % step;
                pair_order(keys, places, i, i + step);
            }
        }
    }
    __syncthreads();
    const int kept = (int)a.kept;
    for (int i = threadIdx.x; i < slots * kept; i += 256) {
        const int64 row = first + i / kept;
        const int at = i % kept, from = places[i / kept * padded + at];
        result_store(a, row, at, a.origins != 0 ? (int64)a.origins[row * a.count + from] : from);
    }
}
#endif

#ifdef SORT_SELECT
/* A block for each part of a row. */
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    __shared__ unsigned counts[DIGITS], warps[8], chosen[2];
    const int64 row = blockIdx.x / a.tiles, part = blockIdx.x % a.tiles;
    const int64 first = part * a.chunk, base = row * a.columns;
    const int64 last = first + a.chunk < a.columns ? first + a.chunk : a.columns;
    unsigned need = a.kept < last - first ? (unsigned)a.kept : (unsigned)(last - first), all;
    key found = 0, mask = 0; /* of the last that is needed: the digits that are known */
    for (int shift = (int)a.shift; shift >= 0; shift -= 8) {
        counts[threadIdx.x] = 0;
        __syncthreads();
        for (int64 i = first + threadIdx.x; i < last; i += 256) {
            const key x = key_at(a, base + i);
            if ((x & mask) == found)
                atomicAdd(&counts[(unsigned)(x >> shift) & (DIGITS - 1)], 1u);
        }
        __syncthreads();
        const unsigned own = counts[threadIdx.x], before = threads_before(own, warps, all);
        if (before < need && need <= before + own) {
            chosen[0] = threadIdx.x;
            chosen[1] = need - before;
        }
        __syncthreads();
        found |= (key)chosen[0] << shift;
        mask |= (key)(DIGITS - 1) << shift;
        need = chosen[1];
    }
    /* All that come before it, and the first of those that are equal. */
    place *origins = a.origins + row * a.count + part * a.kept;
    unsigned less = 0, equal = 0;
    for (int64 start = first; start < last; start += 256) {
        const int64 i = start + threadIdx.x;
        const key x = i < last ? key_at(a, base + i) & mask : ~(key)0;
        const bool is_less = i < last && x < found, is_equal = i < last && x == found;
        const unsigned before = threads_before((unsigned)is_less << 16 | (unsigned)is_equal, warps, all);
        const unsigned equal_before = equal + (before & 0xffff);
        if (is_less || (is_equal && equal_before < need))
            origins[less + (before >> 16) + (equal_before < need ? equal_before : need)] = (place)i;
        less += all >> 16;
        equal += all & 0xffff;
    }
}
#endif

#if defined(SORT_COUNT) || defined(SORT_SPREAD)
ELEMENT unsigned digit_of(const arguments &a, key x) { return (unsigned)(x >> a.shift) & (DIGITS - 1); }
ELEMENT key sorted_key(const arguments &a, int64 i) { return a.keys != 0 ? a.keys[i] : key_at(a, i); }
#endif

#ifdef SORT_COUNT
/* A block for each tile. */
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    __shared__ unsigned counts[DIGITS];
    const int64 row = blockIdx.x / a.tiles, tile = blockIdx.x % a.tiles;
    counts[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int64 i = tile * TILE + k * 256 + threadIdx.x;
        if (i < a.columns)
            atomicAdd(&counts[digit_of(a, sorted_key(a, row * a.columns + i))], 1u);
    }
    __syncthreads();
    a.table[(row * DIGITS + threadIdx.x) * a.tiles + tile] = counts[threadIdx.x];
}
#endif

#ifdef SORT_LINES
/* A warp for each line of the table: a row's digit. */
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    const int64 line = (int64)blockIdx.x * 8 + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    if (line >= a.rows)
        return;
    place *entries = a.table + line * a.tiles, before = 0;
    for (int64 base = 0; base < a.tiles; base += 128) {
        place own[4], sum = 0;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const int64 i = base + lane * 4 + k;
            own[k] = i < a.tiles ? entries[i] : 0;
            sum += own[k];
        }
        place all = sum;
#pragma unroll
        for (int lanes = 1; lanes < 32; lanes *= 2) {
            const place lower = __shfl_up_sync(0xffffffffu, all, lanes);
            if (lane >= lanes)
                all += lower;
        }
        place at = before + all - sum;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const int64 i = base + lane * 4 + k;
            if (i < a.tiles)
                entries[i] = at;
            at += own[k];
        }
        before += __shfl_sync(0xffffffffu, all, 31);
    }
    if (lane == 0)
        a.totals[line] = before;
}
#endif

#ifdef SORT_SPREAD
/* A block for each tile. Positions behind the end of a row have the largest key, and come last. */
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    __shared__ unsigned counts[8][DIGITS];
    __shared__ unsigned starts[DIGITS];
    __shared__ place bases[DIGITS]; /* where a digit's keys go, less where they are in the tile */
    __shared__ key keys[TILE];
    __shared__ place places[TILE];
    __shared__ unsigned warps[8];
    __shared__ place warp_places[8];
    const int64 row = blockIdx.x / a.tiles, tile = blockIdx.x % a.tiles;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64 first = tile * TILE;
    const int count = a.columns - first < TILE ? (int)(a.columns - first) : TILE;
    key own[ITEMS];
    place own_places[ITEMS];
    unsigned ranks[ITEMS];
    for (int k = 0; k < 8; k++)
        counts[k][threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int at = (warp * ITEMS + k) * 32 + lane;
        const int64 i = row * a.columns + first + at;
        own[k] = at < count ? sorted_key(a, i) : ~(key)0;
        own_places[k] = a.keys == 0 ? (place)(first + at) : at < count ? a.places[i] : 0;
    }
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const unsigned digit = digit_of(a, own[k]);
        const unsigned peers = __match_any_sync(0xffffffffu, digit);
        const unsigned lower = __popc(peers & ((1u << lane) - 1));
        const unsigned before = counts[warp][digit];
        __syncwarp();
        if (lower == 0)
            counts[warp][digit] = before + __popc(peers);
        __syncwarp();
        ranks[k] = before + lower;
    }
    __syncthreads();
    /* A thread for each digit. */
    const int64 line = row * DIGITS + threadIdx.x;
    unsigned sum = 0;
    for (int k = 0; k < 8; k++) {
        const unsigned here = counts[k][threadIdx.x];
        counts[k][threadIdx.x] = sum;
        sum += here;
    }
    unsigned all;
    place all_places;
    starts[threadIdx.x] = threads_before(sum, warps, all);
    bases[threadIdx.x] = threads_before(a.totals[line], warp_places, all_places) + a.table[line * a.tiles + tile] -
                         (place)starts[threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const unsigned digit = digit_of(a, own[k]);
        const unsigned at = starts[digit] + counts[warp][digit] + ranks[k];
        keys[at] = own[k];
        places[at] = own_places[k];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int at = k * 256 + threadIdx.x;
        if (at >= count)
            continue;
        const place to = bases[digit_of(a, keys[at])] + (place)at;
        if (!a.is_last) {
            a.new_keys[row * a.columns + to] = keys[at];
            a.new_places[row * a.columns + to] = places[at];
        } else if (to < a.kept) {
            result_store(a, row, to, places[at]);
        }
    }
}
#endif

#if defined(UNIQUE_COUNT) || defined(UNIQUE_STORE)
#define EACH 8 /* elements of a thread; sort.c has the same */
/* Whether an element is none of those before it, with keys in their order. Each NaN is. */
ELEMENT bool is_new(const arguments &a, int64 i)
{
    if (i == 0 || a.keys[i] != a.keys[i - 1])
        return true;
    switch (a.type) {
    case TYPE_FLOAT16:
    case TYPE_BFLOAT16: return a.keys[i] == 0xffff;
    case TYPE_FLOAT32: return a.keys[i] == 0xffffffffu;
    case TYPE_FLOAT64: return a.keys[i] == (key)~(uint64)0;
    }
    return false;
}
#endif

#ifdef UNIQUE_COUNT
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    __shared__ unsigned warps[8];
    const int64 first = ((int64)blockIdx.x * 256 + threadIdx.x) * EACH;
    unsigned own = 0, all;
    for (int k = 0; k < EACH; k++)
        own += first + k < a.columns && is_new(a, first + k);
    threads_before(own, warps, all);
    if (threadIdx.x == 0)
        a.table[blockIdx.x] = all;
}
#endif

#ifdef UNIQUE_STORE
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    __shared__ unsigned warps[8];
    const int64 first = ((int64)blockIdx.x * 256 + threadIdx.x) * EACH;
    unsigned own = 0, all;
    for (int k = 0; k < EACH; k++)
        own += first + k < a.columns && is_new(a, first + k);
    /* Up to and with each: 1 more than where it goes. */
    int64 up_to = (int64)a.table[blockIdx.x] + threads_before(own, warps, all);
    for (int k = 0; k < EACH && first + k < a.columns; k++) {
        const int64 from = (int64)a.places[first + k];
        if (is_new(a, first + k)) {
            element_copy(a, from, up_to);
            if (a.starts != 0)
                a.starts[up_to] = first + k;
            up_to++;
        }
        if (a.inverse != 0)
            a.inverse[from] = up_to - 1;
    }
}
#endif

#ifdef UNIQUE_DIFFER
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    const int64 i = (int64)blockIdx.x * 256 + threadIdx.x;
    if (i < a.found)
        a.counts[i] = (i + 1 < a.found ? a.starts[i + 1] : a.columns) - a.starts[i];
}
#endif
