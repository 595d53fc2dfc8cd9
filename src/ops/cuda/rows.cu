/*
 * rows.cu: what the kernels of row programs (row_kernel.h) are made of. Goes behind reductions.cu. Before it are defined
 *
 *   LANES                   threads that share a row: all of a block, or a power of two up to 32
 *   THREADS, ROWS           of a block; rows that it has at a time
 *   STEPS                   chunks that a thread has, or loads together
 *   IS_EXACT                1: threads and chunks divide a row, so that every chunk is whole
 *   SUMS                    sums of columns
 *   HAS_WORDS               1: some elements that are loaded or stored have 4 bytes or more
 *   IS_LONG                 1: a row has several segments
 *
 * A thread has chunks of 8 neighbours of a row, LANES chunks apart:
 *
 *     column   0 .. 7     8 .. 15    ...   8 LANES .. 8 LANES + 7   ...
 *     thread   0          1                0
 *
 * The order of a reduction: element k of all chunks of a thread, in their order (slot k); then the 8 slots, as a tree of
 * neighbours; then the threads of a warp, and then the warps, in the same way. After each SEGMENT chunks the slots are added
 * up and begin again. A row of one segment is added as floats throughout; of a longer one, what the segments come to is
 * added as doubles, so that no long sum is one of floats. LANES follows from the length of the row alone, and a thread that
 * has no element changes nothing: so the order does, too, whatever else the kernel does.
 *
 * Programs of halves are computed two neighbours at a time. A pair is a word, as it lies in memory. Where an operation on
 * halves is rounded at once, float32 and a half give the same bits as one instruction on pairs: rounding twice changes
 * nothing for + - *, since 24 bits are at least twice those of a half, and two more.
 */
enum { CHUNK = 8, SEGMENT = 64 };

/* ---- chunks: bytes and halves stay in words, as they were loaded ---- */

template <class T> ELEMENT T from_bits(unsigned bits) { return (T)bits; }
template <> INSIDE float16 from_bits<float16>(unsigned bits) { return float16{(unsigned short)bits}; }
template <> INSIDE bfloat16 from_bits<bfloat16>(unsigned bits) { return bfloat16{(unsigned short)bits}; }
template <class T> ELEMENT unsigned to_bits(T x) { return sizeof(T) == 1 ? (unsigned char)x : (unsigned short)x; }
template <> INSIDE unsigned to_bits<float16>(float16 x) { return x.bits; }
template <> INSIDE unsigned to_bits<bfloat16>(bfloat16 x) { return x.bits; }

template <class T, bool IS_SMALL = (sizeof(T) < 4)> struct chunk {
    typedef unsigned word_type;
    static const int in_word = 4 / sizeof(T);
    unsigned word[CHUNK / in_word];
    INSIDE T item(int k) const
    {
        return from_bits<T>(word[k / in_word] >> 8 * sizeof(T) * (k % in_word) & (sizeof(T) == 1 ? 0xff : 0xffff));
    }
    INSIDE void clear()
    {
#pragma unroll
        for (int k = 0; k < CHUNK / in_word; k++)
            word[k] = 0;
    }
    INSIDE void set(int k, T x)
    {
        word[k / in_word] |= to_bits(x) << 8 * sizeof(T) * (k % in_word);
    }
};
#if HAS_WORDS
template <class T> struct chunk<T, false> {
    typedef T word_type;
    T word[CHUNK];
    static const int in_word = 1;
    INSIDE T item(int k) const { return word[k]; }
    INSIDE void clear()
    {
#pragma unroll
        for (int k = 0; k < CHUNK; k++)
            word[k] = 0;
    }
    INSIDE void set(int k, T x) { word[k] = x; }
};
#endif

/* Elements of a row from a column on; VEC of them are aligned together. Where the row ends, 0. */
template <int VEC, class T> ELEMENT void chunk_load(chunk<T> &e, const T *from, index column, index columns)
{
#if !IS_EXACT
    if (column + CHUNK > columns) {
        e.clear();
#pragma unroll
        for (int k = 0; k < CHUNK; k++)
            if (column + k < columns)
                e.set(k, from[column + k]);
        return;
    }
#endif
    if constexpr (VEC >= chunk<T>::in_word) {
        const int words = VEC / chunk<T>::in_word;
#pragma unroll
        for (int k = 0; k < CHUNK / VEC; k++) {
            typedef pack<typename chunk<T>::word_type, words> part;
            const part p = *(const part *)(from + column + k * VEC);
#pragma unroll
            for (int w = 0; w < words; w++)
                e.word[k * words + w] = p.item[w];
        }
    } else {
        e.clear();
#pragma unroll
        for (int k = 0; k < CHUNK; k++)
            e.set(k, from[column + k]);
    }
}

template <int VEC, class T> ELEMENT void chunk_store(T *to, const chunk<T> &e, index column, index columns)
{
#if !IS_EXACT
    if (column + CHUNK > columns) {
#pragma unroll
        for (int k = 0; k < CHUNK; k++)
            if (column + k < columns)
                to[column + k] = e.item(k);
        return;
    }
#endif
    if constexpr (VEC >= chunk<T>::in_word) {
        const int words = VEC / chunk<T>::in_word;
#pragma unroll
        for (int k = 0; k < CHUNK / VEC; k++) {
            typedef pack<typename chunk<T>::word_type, words> part;
            part p;
#pragma unroll
            for (int w = 0; w < words; w++)
                p.item[w] = e.word[k * words + w];
            *(part *)(to + column + k * VEC) = p;
        }
    } else {
#pragma unroll
        for (int k = 0; k < CHUNK; k++)
            to[column + k] = e.item(k);
    }
}

/* The same as rotate<1>() for arrays of a chunk each. */
template <class T, int N> ELEMENT void chunks_rotate(T (&x)[N][CHUNK])
{
#pragma unroll
    for (int k = 0; k < CHUNK; k++) {
        const T first = x[0][k];
#pragma unroll
        for (int u = 0; u < N - 1; u++)
            x[u][k] = x[u + 1][k];
        x[N - 1][k] = first;
    }
}

/* ---- pairs of halves ---- */

template <class H> ELEMENT float pair_low(unsigned x) { return number(from_bits<H>(x & 0xffff)); }
template <class H> ELEMENT float pair_high(unsigned x) { return number(from_bits<H>(x >> 16)); }
template <> INSIDE float pair_high<bfloat16>(unsigned x) { return __uint_as_float(x & 0xffff0000); }

/* Declares the elements of pair n. */
#define ITEMS_OF(H, n) const float v##n##a = pair_low<H>(p##n), v##n##b = pair_high<H>(p##n)

#if defined(GN_NO_PTX) || __CUDA_ARCH__ < 900
template <class H> ELEMENT unsigned pair_of(float low, float high)
{
    return to_bits(make<H>::from(low)) | to_bits(make<H>::from(high)) << 16;
}
#define PAIR_RETURN(operation, instruction) \
    return pair_of<H>(operation(pair_low<H>(x), pair_low<H>(y)), operation(pair_high<H>(x), pair_high<H>(y)))
#else
template <class H> ELEMENT unsigned pair_of(float low, float high);
template <> INSIDE unsigned pair_of<float16>(float low, float high)
{
    unsigned pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
template <> INSIDE unsigned pair_of<bfloat16>(float low, float high)
{
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
#define PAIR_RETURN(operation, instruction)                                            \
    unsigned pair;                                                                     \
    if constexpr (H::is_float16)                                                       \
        asm(instruction ".f16x2 %0, %1, %2;" : "=r"(pair) : "r"(x), "r"(y));           \
    else                                                                               \
        asm(instruction ".bf16x2 %0, %1, %2;" : "=r"(pair) : "r"(x), "r"(y));          \
    return pair
#endif
template <class H> ELEMENT unsigned pair_add(unsigned x, unsigned y) { PAIR_RETURN(op_add, "add.rn"); }
template <class H> ELEMENT unsigned pair_subtract(unsigned x, unsigned y) { PAIR_RETURN(op_subtract, "sub.rn"); }
template <class H> ELEMENT unsigned pair_multiply(unsigned x, unsigned y) { PAIR_RETURN(op_multiply, "mul.rn"); }
template <class H> ELEMENT unsigned pair_maximum(unsigned x, unsigned y) { PAIR_RETURN(op_maximum, "max.NaN"); }
template <class H> ELEMENT unsigned pair_minimum(unsigned x, unsigned y) { PAIR_RETURN(op_minimum, "min.NaN"); }
template <class H> ELEMENT unsigned pair_square(unsigned x) { return pair_multiply<H>(x, x); }
template <class H> ELEMENT unsigned pair_negative(unsigned x) { return x ^ 0x80008000; }
template <class H> ELEMENT unsigned pair_absolute(unsigned x) { return x & 0x7fff7fff; }

/* ---- reductions ---- */

/* The slots of a thread, of type S, and what longer rows have come to, of type T. */
template <class R, class S, class T> struct slots {
    S slot[CHUNK];
    T total;
    INSIDE void restart()
    {
#pragma unroll
        for (int k = 0; k < CHUNK; k++)
            slot[k] = R::template start<S>();
    }
    INSIDE void begin()
    {
        total = R::template start<T>();
        restart();
    }
    INSIDE void add(int k, S x) { slot[k] = R::join(slot[k], x); }
    INSIDE S sum()
    {
#pragma unroll
        for (int width = 1; width < CHUNK; width *= 2)
#pragma unroll
            for (int k = 0; k < CHUNK; k += 2 * width)
                slot[k] = R::join(slot[k], slot[k + width]);
        return slot[0];
    }
#if IS_LONG
    /* A segment ends. */
    INSIDE void fold()
    {
        total = R::join(total, (T)sum());
        restart();
    }
#endif
};

/* The same for the largest or smallest of pairs, which are exact in any order. */
template <class R, class H, class T> struct pair_slots {
    unsigned slot[CHUNK / 2];
    T total;
    ELEMENT unsigned both(unsigned x, unsigned y)
    {
        if constexpr (R::is_largest)
            return pair_maximum<H>(x, y);
        else
            return pair_minimum<H>(x, y);
    }
    INSIDE void restart()
    {
#pragma unroll
        for (int k = 0; k < CHUNK / 2; k++)
            slot[k] = pair_of<H>(R::template start<float>(), R::template start<float>());
    }
    INSIDE void begin()
    {
        total = R::template start<T>();
        restart();
    }
    /* The second one may be behind the row. */
    INSIDE void add(int k, unsigned pair, bool has_both)
    {
        slot[k / 2] = both(slot[k / 2], has_both ? pair : (pair & 0xffff) * 0x10001);
    }
    INSIDE T sum()
    {
#pragma unroll
        for (int k = 1; k < CHUNK / 2; k++)
            slot[0] = both(slot[0], slot[k]);
        return R::join((T)pair_low<H>(slot[0]), (T)pair_high<H>(slot[0]));
    }
#if IS_LONG
    INSIDE void fold()
    {
        total = R::join(total, sum());
        restart();
    }
#endif
};

template <class T> ELEMENT T exchanged(T x, int width)
{
    if constexpr (sizeof(T) < 4)
        return (T)__shfl_xor_sync(0xffffffffu, (int)x, width);
    else
        return __shfl_xor_sync(0xffffffffu, x, width);
}

/* All of `lanes` neighbours get what they come to. */
template <class R, class T> ELEMENT T lanes_join(T x, int lanes)
{
#pragma unroll
    for (int width = 1; width < lanes; width *= 2)
        x = R::join(x, exchanged(x, width));
    return x;
}

/* ---- sums of columns ---- */

#if SUMS > 0
/* What a thread has added up is that of its group of LANES: the groups of a block are added in their order, and the sums of
 * its part stored. */
ELEMENT void part_store(const float (&sums)[STEPS][CHUNK], float *to, index lane, index columns)
{
    if (ROWS == 1) {
        for (int u = 0; u < STEPS; u++)
            for (int k = 0; k < CHUNK; k++) {
                const index column = (u * LANES + lane) * CHUNK + k;
                if (column < columns)
                    to[column] = sums[u][k];
            }
        return;
    }
    __shared__ float groups[ROWS][STEPS * LANES * CHUNK];
    __syncthreads();
#pragma unroll
    for (int u = 0; u < STEPS; u++)
#pragma unroll
        for (int k = 0; k < CHUNK; k++)
            groups[threadIdx.x >> SHIFT][(u * LANES + lane) * CHUNK + k] = sums[u][k];
    __syncthreads();
    for (index column = threadIdx.x; column < columns; column += THREADS) {
        float sum = groups[0][column];
        for (int g = 1; g < ROWS; g++)
            sum += groups[g][column];
        to[column] = sum;
    }
}
#endif
