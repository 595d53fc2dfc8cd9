/*
 * index.cu: a plan of a key (tensor/index_plan.h), carried out: a thread for each unit of the result.
 *
 * Behind elements.cu. Defined before: NAME; INDEX, the type of a unit's number; DIMENSIONS and INDICES, how many there
 * are, or 0 where that is an argument; NUMBER, the type of the index tensors' numbers, or ANY_NUMBER likewise; UNIT,
 * bytes that are moved at once; EACH, the units of a thread; MODE:
 *
 *     GET     other[place] = source[what the plan means]
 *     SET     source[what the plan means] = other[place], if the place's entry is chosen
 *     ADD     source[what the plan means] += other[place], of type ELEMENT_TYPE: integers atomically; for a floating
 *             element there is one place at most
 *     CHECK   nothing
 *
 * and, for entries (ordered.h), of which strides make keys, and of which several may have one key:
 *
 *     KEYS      keys[entry] = its key, or `none` if a number of it is out of range
 *     MARK      latest[key] = the last of its entries, counted from 1
 *     CHOOSE    chosen[entry] = whether it is that one
 *     PUT       target[key] = other[entry], of those: where an entry is one unit
 *     FEW_SET   all of that for up to FEW entries, and units of each
 *     FEW_ADD   target[key] += what its entries have, in their order; ELEMENT_TYPE is floating
 *
 * A number that is out of range is reported in the word `fault`, in the host's memory, by one store; its unit is not
 * written, or, read, is 0. All strides are in bytes, but those that make keys.
 */
#define GET 0
#define SET 1
#define ADD 2
#define CHECK 3
#define KEYS 4
#define MARK 5
#define CHOOSE 6
#define PUT 7
#define FEW_SET 8
#define FEW_ADD 9

#define ANY_NUMBER 9 /* these two as in index_arguments.h */
#define FEW 4096

struct place_index {
    const char *data;
    int64 size, wrap, stride;
    int64 strides[16]; /* of `data`, for the dimensions of the result */
    /* 0: int64 that is trusted; 1: int64, 2: int32, 3: int16, 4: int8, 5: uint8, 6: uint16, 7: uint32; 8: uint64, read
     * as int64: what that sees as negative is out of range, as the wrap of unsigned types is 0 */
    int type;
    int dimension; /* for the message */
};

struct __align__(16) arguments {
    uint64 number[2]; /* in the first bytes, where a unit can be read */
    uint64 count;     /* units */
    int64 sizes[16], strides[16], other_strides[16];
    char *source, *other; /* no other: the number */
    volatile uint64 *fault;
    int dimensions, index_count;
    place_index indices[16];
    int64 base, none, step;   /* of entries: key 0, what no key is, and bytes of the target from key to key */
    void *keys;               /* KEYS: keys, words; MARK, CHOOSE, PUT: latest, words */
    uint8 *chosen;            /* entries; NULL: all are */
    int64 entry_strides[16];  /* of SET: from place to entry */
    int64 columns;            /* units, or elements, of an entry */
    int64 column_dimensions, column_sizes[16], column_strides[16], column_other_strides[16];
};

template <int BYTES> struct unit_of {
    typedef pack<unsigned, 4> type;
};
template <> struct unit_of<1> {
    typedef uint8 type;
};
template <> struct unit_of<2> {
    typedef unsigned short type;
};
template <> struct unit_of<4> {
    typedef unsigned type;
};
template <> struct unit_of<8> {
    typedef uint64 type;
};
typedef unit_of<UNIT>::type unit;

ELEMENT int64 number_load(const char *at, int type)
{
    switch (type) {
    case 2:
        return *(const int *)at;
    case 3:
        return *(const short *)at;
    case 4:
        return *(const int8 *)at;
    case 5:
        return *(const uint8 *)at;
    case 6:
        return *(const uint16 *)at;
    case 7:
        return *(const uint32 *)at;
    default:
        return *(const int64 *)at;
    }
}

/* One word, and so one store: a mark, the dimension, and the number in 55 bits. */
ELEMENT void fault_report(const arguments &a, const place_index &index, int64 number)
{
    const int64 most = (1ll << 54) - 1;
    const bool is_large = number > most || (number < 0 && index.type == 8);
    number = is_large ? most : number < -most ? -most : number;
    *a.fault = 1ull << 63 | (uint64)index.dimension << 55 | ((uint64)number & ((1ull << 55) - 1));
}

#if MODE == ADD
ELEMENT void add_to(float *to, float value) { *to += value; }
ELEMENT void add_to(double *to, double value) { *to += value; }
ELEMENT void add_to(float16 *to, float16 value) { *to = half_of(number(*to) + number(value)); }
ELEMENT void add_to(bfloat16 *to, bfloat16 value) { *to = bfloat_of(number(*to) + number(value)); }
ELEMENT void add_to(int *to, int value) { atomicAdd(to, value); }
ELEMENT void add_to(uint32 *to, uint32 value) { atomicAdd(to, value); }
ELEMENT void add_to(int64 *to, int64 value) { atomicAdd((uint64 *)to, (uint64)value); }
ELEMENT void add_to(uint64 *to, uint64 value) { atomicAdd(to, value); }

/* The bits of a sum, from those of one summand. */
ELEMENT unsigned summed(unsigned bits, bool value) { return bits != 0 || value; }
ELEMENT unsigned summed(unsigned bits, uint8 value) { return (bits + value) & 0xff; }
ELEMENT unsigned summed(unsigned bits, int8 value) { return (bits + (unsigned)value) & 0xff; }
ELEMENT unsigned summed(unsigned bits, uint16 value) { return (bits + value) & 0xffff; }
ELEMENT unsigned summed(unsigned bits, short value) { return (bits + (unsigned)value) & 0xffff; }

/* Smaller than a word: the word around it is exchanged, until nobody has come between. */
template <class T> ELEMENT void add_to(T *to, T value)
{
    unsigned *word = (unsigned *)((uint64)to & ~(uint64)3);
    const int shift = (int)((uint64)to & 3) * 8;
    const unsigned mask = (sizeof(T) == 1 ? 0xffu : 0xffffu) << shift;
    unsigned seen, old = atomicAdd(word, 0u);
    do {
        seen = old;
        old = atomicCAS(word, seen, (seen & ~mask) | summed((seen & mask) >> shift, value) << shift);
    } while (old != seen);
}
#endif

/* Where a unit is: in the source, or as a key; in the other; which entry it is of. */
struct spot {
    int64 source, other, entry;
    int64 numbers[INDICES > 0 ? INDICES : 16];
    bool is_inside;
};

ELEMENT int type_of(const place_index &index) { return NUMBER != ANY_NUMBER ? NUMBER : index.type; }

/* In two steps, so that a thread with several units waits once: numbers are loaded, and then used. */
ELEMENT spot spot_load(const arguments &a, INDEX i)
{
    const int dimensions = DIMENSIONS > 0 ? DIMENSIONS : a.dimensions;
    const int index_count = INDICES > 0 ? INDICES : a.index_count;
    spot found = {0, 0, 0, {0}, i < a.count};
    INDEX rest = i;
    if (!found.is_inside)
        return found;
#pragma unroll
    for (int d = dimensions - 1; d >= 0; d--) {
        const INDEX above = d > 0 ? rest / (INDEX)a.sizes[d] : 0;
        const int64 place = (int64)(rest - above * (INDEX)a.sizes[d]);
        rest = above;
        found.source += place * a.strides[d];
        found.other += place * a.other_strides[d];
        if (MODE == SET)
            found.entry += place * a.entry_strides[d];
#pragma unroll
        for (int k = 0; k < index_count; k++)
            found.numbers[k] += place * a.indices[k].strides[d];
    }
#pragma unroll
    for (int k = 0; k < index_count; k++)
        found.numbers[k] = number_load(a.indices[k].data + found.numbers[k], type_of(a.indices[k]));
    return found;
}

ELEMENT void spot_resolve(const arguments &a, spot &found)
{
    const int index_count = INDICES > 0 ? INDICES : a.index_count;
#pragma unroll
    for (int k = 0; k < index_count && found.is_inside; k++) {
        const place_index &index = a.indices[k];
        const int64 number = found.numbers[k];
        const int64 wrapped = type_of(index) != 0 && number < 0 ? number + index.wrap : number;
        if (type_of(index) != 0 && (uint64)wrapped >= (uint64)index.size) {
            fault_report(a, index, number);
            found.is_inside = false;
        }
        found.source += wrapped * index.stride;
    }
}

#if MODE < FEW_SET
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    const INDEX first = (INDEX)blockIdx.x * (256 * EACH) + threadIdx.x;
    spot spots[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++)
        spots[k] = spot_load(a, first + k * 256);
#pragma unroll
    for (int k = 0; k < EACH; k++)
        spot_resolve(a, spots[k]);
#if MODE == GET
    unit values[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        values[k] = unit();
        if (spots[k].is_inside)
            values[k] = *(const unit *)(a.source + spots[k].source);
    }
#endif
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const INDEX i = first + k * 256;
        const spot &at = spots[k];
        if (i >= a.count)
            return;
#if MODE == GET
        *(unit *)(a.other + at.other) = values[k];
#elif MODE == SET
        if (at.is_inside && (a.chosen == 0 || a.chosen[at.entry] != 0))
            *(unit *)(a.source + at.source) = *(const unit *)(a.other != 0 ? a.other + at.other : (const char *)a.number);
#elif MODE == ADD
        const ELEMENT_TYPE value = loaded<ELEMENT_TYPE>(
            *(const memory<ELEMENT_TYPE>::type *)(a.other != 0 ? a.other + at.other : (const char *)a.number));
        if (at.is_inside)
            add_to((ELEMENT_TYPE *)(a.source + at.source), value);
#elif MODE == KEYS
        ((INDEX *)a.keys)[i] = (INDEX)(at.is_inside ? a.base + at.source : a.none);
#elif MODE == MARK
        if (at.is_inside)
            atomicMax((INDEX *)a.keys + a.base + at.source, i + 1);
#elif MODE == CHOOSE
        a.chosen[i] = at.is_inside && ((const INDEX *)a.keys)[a.base + at.source] == i + 1;
#elif MODE == PUT
        if (at.is_inside && ((const INDEX *)a.keys)[a.base + at.source] == i + 1)
            *(unit *)(a.source + (a.base + at.source) * a.step) = *(const unit *)(a.other + at.other);
#endif
    }
}

#else
/*
 * A warp for each entry; each block finds all keys by itself. Of the entries with a key the last one puts what it has,
 * or the first one adds up what they have.
 */
/* Where an entry's values are. */
ELEMENT int64 entry_other(const arguments &a, int entry)
{
    const int dimensions = DIMENSIONS > 0 ? DIMENSIONS : a.dimensions;
    int64 offset = 0;
#pragma unroll
    for (int d = dimensions - 1; d >= 0; d--) {
        const int above = d > 0 ? entry / (int)a.sizes[d] : 0;
        offset += (entry - above * (int)a.sizes[d]) * a.other_strides[d];
        entry = above;
    }
    return offset;
}

#if MODE == FEW_ADD
typedef ELEMENT_TYPE element;
typedef decltype(number(element())) real;
ELEMENT real value_of(const arguments &a, int64 other)
{
    return number(*(const element *)(a.other != 0 ? a.other + other : (const char *)a.number));
}

/* The sum of what the lanes of a warp have: by all of them, in pairs, always the same. */
ELEMENT real lanes_sum(real own)
{
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2)
        own += __shfl_xor_sync(0xffffffffu, own, lanes);
    return own;
}
#endif

extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    __shared__ INDEX keys[FEW];
    __shared__ unsigned equal[8][FEW / 32]; /* by warps: which entries have the key of theirs */
    const int count = (int)a.count, lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int words = (count + 31) / 32, own = (int)blockIdx.x * 8 + warp;
    for (int i = (int)threadIdx.x; i < words * 32; i += 256) {
        spot at = spot_load(a, (INDEX)i);
        spot_resolve(a, at);
        keys[i] = (INDEX)(at.is_inside ? a.base + at.source : a.none);
    }
    __syncthreads();
    if (own >= count || keys[own] == (INDEX)a.none)
        return;
    const INDEX key = keys[own];
    bool is_other = false; /* another entry is the one */
    for (int word = 0; word < words; word++) {
        const unsigned found = __ballot_sync(0xffffffffu, keys[word * 32 + lane] == key);
        const unsigned sooner = word < own / 32 ? found : word == own / 32 ? found & ((1u << own % 32) - 1) : 0;
        const unsigned here = word == own / 32 ? 1u << own % 32 : 0;
        is_other |= MODE == FEW_ADD ? sooner != 0 : (found & ~sooner & ~here) != 0;
        if (lane == 0)
            equal[warp][word] = found;
    }
    if (is_other)
        return;
    __syncwarp();
    char *const target = a.source + (int64)key * a.step;
#if MODE == FEW_ADD
    if (a.columns == 1) {
        real sum = number(*(const element *)target);
        for (int word = 0; word < words; word++) {
            const unsigned found = equal[warp][word];
            if (found != 0)
                sum += lanes_sum(found >> lane & 1 ? value_of(a, entry_other(a, word * 32 + lane)) : (real)-0.0);
        }
        if (lane == 0)
            *(element *)target = convert<element>(sum);
        return;
    }
#endif
    for (int64 column = (int64)blockIdx.y * 32 + lane; column < a.columns; column += (int64)gridDim.y * 32) {
        int64 rest = column, offset = 0, other = 0;
        for (int d = (int)a.column_dimensions - 1; d >= 0; d--) {
            const int64 above = d > 0 ? rest / a.column_sizes[d] : 0, place = rest - above * a.column_sizes[d];
            rest = above;
            offset += place * a.column_strides[d];
            other += place * a.column_other_strides[d];
        }
#if MODE == FEW_ADD
        real sum = number(*(const element *)(target + offset));
        for (int word = own / 32; word < words; word++)
            for (unsigned left = equal[warp][word]; left != 0; left &= left - 1)
                sum += value_of(a, entry_other(a, word * 32 + __ffs((int)left) - 1) + other);
        *(element *)(target + offset) = convert<element>(sum);
#else
        *(unit *)(target + offset) = *(const unit *)(a.other + entry_other(a, own) + other);
#endif
    }
}
#endif
