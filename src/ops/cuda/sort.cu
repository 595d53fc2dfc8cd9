/*
 * sort.cu: sorted rows, and the different elements. In front: one of
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
 * Small rows: a block has 2048 keys, of one row or several, each filled up to a power of two, and sorts them by a
 * network; a key and its place together are different from all others, so that equal keys stay in their order. A thread
 * has 8 neighbours, which it compares by itself; lanes of a warp show theirs to each other, and only what is further
 * apart goes through shared memory. Others: digits of 8 bits, the lowest first. A table has for each row, digit and tile how many keys
 * there are, in the order in which they go; summed up it says where each tile's keys of a digit begin. Inside a tile,
 * the warps have its keys in their order, and lanes with the same digit find each other: nothing depends on which
 * thread comes first. The first few of a row are selected digit by digit, the highest first: which digit the last of
 * them has. A part of a row is a block's; what the parts have selected is sorted as a small row is.
 *
 * Kernels know elements by their size, and by how bits become keys, the order of which is that of the elements
 * (src/ops/cpu/keys.h): types are arguments here, since what reads elements is a small part of the work.
 */
#define DIGITS 256
#define SMALL 2048
#define ITEMS (sizeof(key) + sizeof(place) == 8 ? 16 : 8) /* of a thread; cuda_sort.c has the same */
#define TILE (256 * ITEMS)

struct arguments {
    const void *in;  /* [rows][columns] */
    int64 size;      /* bytes of an element */
    uint64 sign;     /* its sign bit; 0 for unsigned ones */
    uint64 infinite; /* the bits of infinity; 0 for integers */
    uint64 flip;     /* all bits for descending order: exclusive-or keys */
    int64 rows, columns, kept;
    int64 count;  /* of a small row's elements: columns, or selected ones */
    int64 padded; /* the same, up to a power of two */
    int64 chunk;  /* elements of a part that is selected from */
    int64 tiles;  /* of a row, or such parts */
    int64 shift;  /* of the digit in a key; of the highest for a selection */
    int64 is_last;
    int64 is_summed; /* the table: by SORT_LINES; else it has counts, and is not there for one tile */
    const key *keys; /* sorted by lower digits, with places; NULL: elements */
    const place *places;
    key *new_keys; /* of this digit too */
    place *new_places;
    place *origins; /* [rows][count]: which elements were selected; NULL: all */
    place *table;   /* [rows][DIGITS][tiles] */
    place *totals;  /* [rows][DIGITS] */
    void *values;   /* results: [rows][kept]; may be NULL */
    int64 *indices;
    int64 found; /* of different elements */
    int64 *inverse, *starts, *counts;
};

/* -0 and 0 have one key, and NaN the largest: gni_key_float32() and its kin. */
ELEMENT key key_of_bits(const arguments &a, key bits)
{
    const key sign = (key)a.sign, infinite = (key)a.infinite;
    key found = bits ^ sign;
    if (infinite != 0) {
        const key all = sign | (sign - 1), magnitude = bits & (sign - 1);
        if (bits & sign)
            found = bits ^ all;
        if (magnitude == 0)
            found = sign;
        if (magnitude > infinite)
            found = all;
    }
    return found ^ (key)a.flip;
}

ELEMENT key bits_at(const arguments &a, int64 i)
{
    switch (a.size) {
    case 1: return ((const uint8 *)a.in)[i];
    case 2: return ((const unsigned short *)a.in)[i];
    case 4: return ((const unsigned *)a.in)[i];
    }
    return (key)((const uint64 *)a.in)[i];
}

/* The very bits: -0 and NaNs have no key of their own. */
ELEMENT void element_copy(const arguments &a, int64 from, int64 to)
{
    const key bits = bits_at(a, from);
    switch (a.size) {
    case 1: ((uint8 *)a.values)[to] = (uint8)bits; break;
    case 2: ((unsigned short *)a.values)[to] = (unsigned short)bits; break;
    case 4: ((unsigned *)a.values)[to] = (unsigned)bits; break;
    default: ((uint64 *)a.values)[to] = bits;
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
#define OWN 8 /* neighbours of a thread: SMALL / 256 */

/* A key and its place, of which the latter is less than SMALL: one number where that has room. */
struct short_item {
    uint64 both;
};
struct long_item {
    uint64 x;
    unsigned at;
};
ELEMENT short_item item_make(unsigned x, unsigned at) { return short_item{(uint64)x << 16 | at}; }
ELEMENT long_item item_make(uint64 x, unsigned at) { return long_item{x, at}; }
ELEMENT unsigned item_place(short_item a) { return (unsigned)a.both & 0xffff; }
ELEMENT unsigned item_place(long_item a) { return a.at; }
ELEMENT bool is_less(short_item a, short_item b) { return a.both < b.both; }
ELEMENT bool is_less(long_item a, long_item b) { return (a.x < b.x) | ((a.x == b.x) & (a.at < b.at)); }
ELEMENT short_item item_choose(bool is_first, short_item a, short_item b)
{
    return short_item{is_first ? a.both : b.both};
}
ELEMENT long_item item_choose(bool is_first, long_item a, long_item b)
{
    return long_item{is_first ? a.x : b.x, is_first ? a.at : b.at};
}
ELEMENT short_item item_across(short_item a, int lanes)
{
    return short_item{__shfl_xor_sync(0xffffffffu, a.both, lanes)};
}
ELEMENT long_item item_across(long_item a, int lanes)
{
    return long_item{__shfl_xor_sync(0xffffffffu, a.x, lanes), __shfl_xor_sync(0xffffffffu, a.at, lanes)};
}
typedef decltype(item_make(key(), 0)) item;

/* Puts those of a thread in order whose numbers differ by these bits. */
template <int BITS> ELEMENT void own_order(item *own)
{
#pragma unroll
    for (int k = 0; k < OWN; k++) {
        const int other = k ^ BITS;
        if (k > other)
            continue;
        const item x = own[k], y = own[other];
        const bool is_swapped = is_less(y, x);
        own[k] = item_choose(is_swapped, y, x);
        own[other] = item_choose(is_swapped, x, y);
    }
}

/* The same with those of another thread, whose number differs by `bits`, the highest of which is `top`. TURNED: where
 * runs meet at their ends, each thread's first is compared with the other's last. */
template <bool TURNED> ELEMENT void threads_order(item *own, int bits, int top, item *shared)
{
    const bool is_lower = (threadIdx.x & top) == 0;
    item others[OWN];
    if (bits < 32) {
#pragma unroll
        for (int k = 0; k < OWN; k++)
            others[k] = item_across(own[TURNED ? OWN - 1 - k : k], bits);
    } else {
        __syncthreads();
#pragma unroll
        for (int k = 0; k < OWN; k++)
            shared[k * 256 + threadIdx.x] = own[k];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < OWN; k++)
            others[k] = shared[(TURNED ? OWN - 1 - k : k) * 256 + (threadIdx.x ^ bits)];
    }
#pragma unroll
    for (int k = 0; k < OWN; k++)
        own[k] = item_choose(is_less(others[k], own[k]) == is_lower, others[k], own[k]);
}

/* The elements of a row at these places, those behind its end like the first: all loads are on their way at once. */
template <class T, class K> ELEMENT void own_load(const T *row, const place *from, K *own)
{
#pragma unroll
    for (int k = 0; k < OWN; k++)
        own[k] = (K)row[from[k]];
}

/* Some of a row's elements, whose threads read side by side: where one begins in the network does not matter. */
ELEMENT void items_load(const arguments &a, int64 row, int first, int step, item *own)
{
    const int count = (int)a.count;
    const int64 base = row * a.columns;
    place from[OWN];
    key bits[OWN];
#pragma unroll
    for (int k = 0; k < OWN; k++)
        from[k] = (place)(first + k * step < count ? first + k * step : 0);
    if (a.origins != 0)
        own_load(a.origins + row * count, from, from);
    switch (a.size) {
    case 1: own_load((const uint8 *)a.in + base, from, bits); break;
    case 2: own_load((const unsigned short *)a.in + base, from, bits); break;
    case 4: own_load((const unsigned *)a.in + base, from, bits); break;
    default: own_load((const key *)a.in + base, from, bits);
    }
#pragma unroll
    for (int k = 0; k < OWN; k++) {
        const int at = first + k * step;
        own[k] = item_make(at < count ? key_of_bits(a, bits[k]) : ~(key)0, (unsigned)at);
    }
}

extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    __shared__ item shared[SMALL];
    __shared__ pack<unsigned short, OWN> places[256];
    const int padded = (int)a.padded, digits = __popc(padded - 1), thread = threadIdx.x;
    const int64 first = (int64)blockIdx.x << (11 - digits), left = a.rows - first; /* 2^11: SMALL */
    const int slots = left < SMALL >> digits ? (int)left : SMALL >> digits;
    const int step = padded / OWN, slot = thread >> (digits - 3), at = thread & (step - 1); /* 2^3: OWN */
    item own[OWN] = {};
    if (slot < slots)
        items_load(a, first + slot, at, step, own);
    /* Each row in ascending runs of twice the length, from two that meet at their ends. */
    own_order<1>(own);
    own_order<3>(own);
    own_order<1>(own);
    own_order<7>(own);
    own_order<2>(own);
    own_order<1>(own);
    for (int run = 2; run <= step; run *= 2) { /* of threads */
        threads_order<true>(own, run - 1, run / 2, shared);
        for (int apart = run / 4; apart > 0; apart /= 2)
            threads_order<false>(own, apart, apart, shared);
        own_order<4>(own);
        own_order<2>(own);
        own_order<1>(own);
    }
#pragma unroll
    for (int k = 0; k < OWN; k++)
        places[thread].item[k] = (unsigned short)item_place(own[k]);
    __syncthreads();
    for (int i = thread; i < slots << digits; i += 256) {
        const int64 row = first + (i >> digits);
        const int at = i & (padded - 1), from = places[i / OWN].item[i % OWN];
        if (at < a.kept)
            result_store(a, row, at, a.origins != 0 ? (int64)a.origins[row * a.count + from] : from);
    }
}
#endif

#ifdef SORT_SELECT
#define GROUP 4 /* elements that a thread reads at once */

/* Counts the digits of those keys of a part whose higher digits are known. */
template <class T>
ELEMENT void digits_count(const arguments &a, const T *in, int64 count, int shift, key mask, key known, unsigned *counts)
{
    for (int64 base = threadIdx.x; base < count; base += GROUP * 256) {
        T bits[GROUP];
#pragma unroll
        for (int k = 0; k < GROUP; k++)
            bits[k] = base + k * 256 < count ? in[base + k * 256] : 0;
#pragma unroll
        for (int k = 0; k < GROUP; k++) {
            const key x = key_of_bits(a, bits[k]);
            if (base + k * 256 < count && (x & mask) == known)
                atomicAdd(&counts[(unsigned)(x >> shift) & (DIGITS - 1)], 1u);
        }
    }
}

/* A block for each part of a row. */
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    __shared__ unsigned counts[DIGITS], warps[8], chosen[2];
    const int64 row = blockIdx.x / a.tiles, part = blockIdx.x % a.tiles;
    const int64 first = part * a.chunk, base = row * a.columns + first;
    const int64 count = first + a.chunk < a.columns ? a.chunk : a.columns - first;
    unsigned need = a.kept < count ? (unsigned)a.kept : (unsigned)count, all;
    key known = 0, mask = 0; /* of the last that is needed: its higher digits */
    for (int shift = (int)a.shift; shift >= 0; shift -= 8) {
        counts[threadIdx.x] = 0;
        __syncthreads();
        switch (a.size) {
        case 1: digits_count(a, (const uint8 *)a.in + base, count, shift, mask, known, counts); break;
        case 2: digits_count(a, (const unsigned short *)a.in + base, count, shift, mask, known, counts); break;
        case 4: digits_count(a, (const unsigned *)a.in + base, count, shift, mask, known, counts); break;
        default: digits_count(a, (const key *)a.in + base, count, shift, mask, known, counts);
        }
        __syncthreads();
        const unsigned own = counts[threadIdx.x], before = threads_before(own, warps, all);
        if (before < need && need <= before + own) {
            chosen[0] = threadIdx.x;
            chosen[1] = need - before;
        }
        __syncthreads();
        known |= (key)chosen[0] << shift;
        mask |= (key)(DIGITS - 1) << shift;
        need = chosen[1];
    }
    /* All that come before it, and the first of those that are equal. */
    place *origins = a.origins + row * a.count + part * a.kept;
    unsigned less = 0, equal = 0;
    for (int64 start = 0; start < count; start += GROUP * 256) {
        const int64 mine = start + threadIdx.x * GROUP;
        key x[GROUP];
        unsigned own = 0; /* less ones in the upper half, equal ones in the lower */
#pragma unroll
        for (int k = 0; k < GROUP; k++)
            x[k] = mine + k < count ? key_of_bits(a, bits_at(a, base + mine + k)) & mask : 0;
#pragma unroll
        for (int k = 0; k < GROUP; k++)
            if (mine + k < count)
                own += (unsigned)(x[k] < known) << 16 | (unsigned)(x[k] == known);
        const unsigned before = threads_before(own, warps, all);
        unsigned less_before = less + (before >> 16), equal_before = equal + (before & 0xffff);
#pragma unroll
        for (int k = 0; k < GROUP; k++) {
            if (mine + k >= count || x[k] > known)
                continue;
            if (x[k] < known || equal_before < need)
                origins[less_before + (equal_before < need ? equal_before : need)] = (place)(first + mine + k);
            less_before += x[k] < known;
            equal_before += x[k] == known;
        }
        less += all >> 16;
        equal += all & 0xffff;
    }
}
#endif

#if defined(SORT_COUNT) || defined(SORT_SPREAD)
ELEMENT unsigned digit_of(const arguments &a, key x) { return (unsigned)(x >> a.shift) & (DIGITS - 1); }

/* Where item k of a thread is in a tile: a warp has a run of it. */
ELEMENT int item_at(int k) { return ((int)threadIdx.x / 32 * ITEMS + k) * 32 + (int)threadIdx.x % 32; }

template <class T> ELEMENT void items_load(const T *in, int count, key *own)
{
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        own[k] = item_at(k) < count ? (key)in[item_at(k)] : 0;
}

/* The keys of a tile, of which `count` are there: all loads are on their way before the first is used. */
ELEMENT void tile_load(const arguments &a, int64 first, int count, key *own)
{
    if (a.keys != 0) {
        items_load(a.keys + first, count, own);
        return;
    }
    switch (a.size) {
    case 1: items_load((const uint8 *)a.in + first, count, own); break;
    case 2: items_load((const unsigned short *)a.in + first, count, own); break;
    case 4: items_load((const unsigned *)a.in + first, count, own); break;
    default: items_load((const uint64 *)a.in + first, count, own);
    }
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        own[k] = key_of_bits(a, own[k]);
}
#endif

#ifdef SORT_COUNT
/* A block for each tile. */
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    __shared__ unsigned counts[DIGITS];
    const int64 row = blockIdx.x / a.tiles, tile = blockIdx.x % a.tiles;
    const int count = a.columns - tile * TILE < TILE ? (int)(a.columns - tile * TILE) : TILE;
    key own[ITEMS];
    counts[threadIdx.x] = 0;
    tile_load(a, row * a.columns + tile * TILE, count, own);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        if (item_at(k) < count)
            atomicAdd(&counts[digit_of(a, own[k])], 1u);
    __syncthreads();
    a.table[(row * DIGITS + threadIdx.x) * a.tiles + tile] = counts[threadIdx.x];
}
#endif

#ifdef SORT_LINES
/* A warp for each line of the table: a row's digit. */
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
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
    kernel_begin();
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
    tile_load(a, row * a.columns + first, count, own);
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int at = item_at(k);
        own_places[k] = a.keys == 0 ? (place)(first + at) : at < count ? a.places[row * a.columns + first + at] : 0;
        if (at >= count)
            own[k] = ~(key)0;
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
    place before = 0, total = 0; /* keys of this digit: in tiles before this one, and in all */
    if (a.tiles == 1) {
        total = sum;
    } else if (a.is_summed) {
        before = a.table[line * a.tiles + tile];
        total = a.totals[line];
    } else {
        for (int64 k = 0; k < a.tiles; k++) {
            const place its = a.table[line * a.tiles + k];
            before += k < tile ? its : 0;
            total += its;
        }
    }
    bases[threadIdx.x] = threads_before(total, warp_places, all_places) + before - (place)starts[threadIdx.x];
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
#define EACH 8 /* elements of a thread; cuda_sort.c has the same */
/* Whether an element is none of those before it, with keys in their order. Each NaN is. */
ELEMENT bool is_new(const arguments &a, int64 i)
{
    return i == 0 || a.keys[i] != a.keys[i - 1] ||
           (a.infinite != 0 && a.keys[i] == (key)(a.sign | (a.sign - 1)));
}
#endif

#ifdef UNIQUE_COUNT
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
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
    kernel_begin();
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
    kernel_begin();
    const int64 i = (int64)blockIdx.x * 256 + threadIdx.x;
    if (i < a.found)
        a.counts[i] = (i + 1 < a.found ? a.starts[i + 1] : a.columns) - a.starts[i];
}
#endif
