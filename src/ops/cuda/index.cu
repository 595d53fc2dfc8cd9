/*
 * index.cu: a plan of a key (tensor/index_plan.h), carried out: a thread for each unit of the result.
 *
 * Behind elements.cu. Defined before: NAME; INDEX, the type of a unit's number; DIMENSIONS and INDICES, how many there
 * are, or 0 where that is an argument; UNIT, bytes that are moved at once; ITEMS, units of a thread; MODE:
 *
 *     GET     other[place] = source[what the plan means]
 *     SET     source[what the plan means] = other[place]
 *     ADD     source[what the plan means] += other[place], of type ELEMENT_TYPE, atomically
 *     CHECK   nothing
 *
 * A number that is out of range is reported in the word `fault`, in the host's memory, by one store; its unit is not
 * written, or, read, is 0. All strides are in bytes.
 */
#define GET 0
#define SET 1
#define ADD 2
#define CHECK 3

struct place_index {
    const char *data;
    int64 size, wrap, stride;
    int64 strides[16]; /* of `data`, for the dimensions of the result */
    int type;          /* 0: int64 that is trusted; 1: int64, 2: int32, 3: int16, 4: int8, 5: uint8 */
    int dimension;     /* for the message */
};

struct __align__(16) arguments {
    uint64 number[2]; /* in the first bytes, where a unit can be read */
    uint64 count;     /* units */
    int64 sizes[16], strides[16], other_strides[16];
    char *source, *other; /* no other: the number */
    volatile uint64 *fault;
    int dimensions, index_count;
    place_index indices[16];
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
    default:
        return *(const int64 *)at;
    }
}

/* One word, and so one store: a mark, the dimension, and the number in 55 bits. */
ELEMENT void fault_report(const arguments &a, const place_index &index, int64 number)
{
    const int64 most = (1ll << 54) - 1;
    number = number > most ? most : number < -most ? -most : number;
    *a.fault = 1ull << 63 | (uint64)index.dimension << 55 | ((uint64)number & ((1ull << 55) - 1));
}

#if MODE == ADD
ELEMENT void add_atomic(float *to, float value) { atomicAdd(to, value); }
ELEMENT void add_atomic(double *to, double value) { atomicAdd(to, value); }
ELEMENT void add_atomic(int *to, int value) { atomicAdd(to, value); }
ELEMENT void add_atomic(int64 *to, int64 value) { atomicAdd((uint64 *)to, (uint64)value); }

/* The bits of a sum, from those of one summand. */
ELEMENT unsigned summed(unsigned bits, bool value) { return bits != 0 || value; }
ELEMENT unsigned summed(unsigned bits, uint8 value) { return (bits + value) & 0xff; }
ELEMENT unsigned summed(unsigned bits, int8 value) { return (bits + (unsigned)value) & 0xff; }
ELEMENT unsigned summed(unsigned bits, short value) { return (bits + (unsigned)value) & 0xffff; }
ELEMENT unsigned summed(unsigned bits, float16 value)
{
    return half_of(number(float16{(unsigned short)bits}) + number(value)).bits;
}
ELEMENT unsigned summed(unsigned bits, bfloat16 value)
{
    return bfloat_of(number(bfloat16{(unsigned short)bits}) + number(value)).bits;
}

/* Smaller than a word: the word around it is exchanged, until nobody has come between. */
template <class T> ELEMENT void add_atomic(T *to, T value)
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

/* Where unit i is, on both sides; false: a number is out of range. */
ELEMENT bool unit_find(const arguments &a, INDEX i, int64 &source, int64 &other)
{
    const int dimensions = DIMENSIONS > 0 ? DIMENSIONS : a.dimensions;
    const int index_count = INDICES > 0 ? INDICES : a.index_count;
    int64 at[INDICES > 0 ? INDICES : 16] = {0};
    source = other = 0;
    INDEX rest = i;
#pragma unroll
    for (int d = dimensions - 1; d >= 0; d--) {
        const INDEX above = d > 0 ? rest / (INDEX)a.sizes[d] : 0;
        const int64 place = (int64)(rest - above * (INDEX)a.sizes[d]);
        rest = above;
        source += place * a.strides[d];
        other += place * a.other_strides[d];
#pragma unroll
        for (int k = 0; k < index_count; k++)
            at[k] += place * a.indices[k].strides[d];
    }
    bool is_inside = true;
#pragma unroll
    for (int k = 0; k < index_count; k++) {
        const place_index &index = a.indices[k];
        const int64 number = number_load(index.data + at[k], index.type);
        const int64 wrapped = index.type != 0 && number < 0 ? number + index.wrap : number;
        if (index.type != 0 && (uint64)wrapped >= (uint64)index.size) {
            fault_report(a, index, number);
            is_inside = false;
        }
        source += wrapped * index.stride;
    }
    return is_inside;
}

/* A thread has ITEMS units, a block apart from each other. */
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    const INDEX first = (INDEX)blockIdx.x * (256 * ITEMS) + threadIdx.x;
    int64 source[ITEMS], other[ITEMS];
    bool is_inside[ITEMS];
#pragma unroll
    for (int u = 0; u < ITEMS; u++)
        is_inside[u] = first + u * 256 < a.count && unit_find(a, first + u * 256, source[u], other[u]);
#if MODE == GET
    unit value[ITEMS];
#pragma unroll
    for (int u = 0; u < ITEMS; u++) {
        value[u] = unit();
        if (is_inside[u])
            value[u] = *(const unit *)(a.source + source[u]);
    }
#pragma unroll
    for (int u = 0; u < ITEMS; u++)
        if (first + u * 256 < a.count)
            *(unit *)(a.other + other[u]) = value[u];
#else
#pragma unroll
    for (int u = 0; u < ITEMS; u++) {
        if (!is_inside[u])
            continue;
        const char *from = a.other != 0 ? a.other + other[u] : (const char *)a.number;
#if MODE == SET
        *(unit *)(a.source + source[u]) = *(const unit *)from;
#elif MODE == ADD
        add_atomic((ELEMENT_TYPE *)(a.source + source[u]),
                   loaded<ELEMENT_TYPE>(*(const memory<ELEMENT_TYPE>::type *)from));
#endif
    }
#endif
}
