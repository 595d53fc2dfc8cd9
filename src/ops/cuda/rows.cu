/*
 * rows.cu: what the kernels of row programs (row_kernel.h) are made of. Goes behind reductions.cu. Before it are defined
 *
 *   LANES                   threads that share a row: all of a block, or a power of two up to 32
 *   IS_EXACT                1: threads and chunks divide a row, so that every chunk is whole
 *
 * A thread has chunks of 8 neighbours of a row, LANES chunks apart:
 *
 *     column   0 .. 7     8 .. 15    ...   8 LANES .. 8 LANES + 7   ...
 *     thread   0          1                0
 *
 * The order of a reduction: element k of all chunks of a thread, in their order (slot k); then the 8 slots, as a tree of
 * neighbours; then the threads of a warp, and then the warps, in the same way. Floats are added as floats up to there, and
 * the threads' sums as doubles. After each SEGMENT chunks the slots are added up and begin again, so that no long sum is one
 * of floats. LANES follows from the length of the row alone, and a thread that has no element changes nothing: so the
 * order does, too, whatever else the kernel does.
 */
enum { CHUNK = 8, SEGMENT = 64 };

/* ---- chunks: bytes and halves stay in words, as they were loaded ---- */

template <class T> ELEMENT T from_bits(unsigned bits) { return (T)bits; }
template <> __device__ __forceinline__ float16 from_bits<float16>(unsigned bits) { return float16{(unsigned short)bits}; }
template <> __device__ __forceinline__ bfloat16 from_bits<bfloat16>(unsigned bits) { return bfloat16{(unsigned short)bits}; }
template <class T> ELEMENT unsigned to_bits(T x) { return sizeof(T) == 1 ? (uint8)x : (uint16)x; }
template <> __device__ __forceinline__ unsigned to_bits<float16>(float16 x) { return x.bits; }
template <> __device__ __forceinline__ unsigned to_bits<bfloat16>(bfloat16 x) { return x.bits; }

template <class T, bool IS_SMALL = (sizeof(T) < 4)> struct chunk {
    typedef unsigned word_type;
    static const int in_word = 4 / sizeof(T);
    unsigned word[CHUNK / in_word];
    __device__ __forceinline__ T item(int k) const
    {
        return from_bits<T>(word[k / in_word] >> 8 * sizeof(T) * (k % in_word) & (sizeof(T) == 1 ? 0xff : 0xffff));
    }
    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int k = 0; k < CHUNK / in_word; k++)
            word[k] = 0;
    }
    __device__ __forceinline__ void set(int k, T x)
    {
        word[k / in_word] |= to_bits(x) << 8 * sizeof(T) * (k % in_word);
    }
};
template <class T> struct chunk<T, false> {
    typedef T word_type;
    T word[CHUNK];
    static const int in_word = 1;
    __device__ __forceinline__ T item(int k) const { return word[k]; }
    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int k = 0; k < CHUNK; k++)
            word[k] = 0;
    }
    __device__ __forceinline__ void set(int k, T x) { word[k] = x; }
};

/* Elements of a row from a column on; VEC of them are aligned together. Where the row ends, 0. */
template <int VEC, class T> ELEMENT void chunk_load(chunk<T> &e, const T *from, index column, index columns)
{
    if (IS_EXACT || column + CHUNK <= columns) {
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
        return;
    }
    e.clear();
#pragma unroll
    for (int k = 0; k < CHUNK; k++)
        if (column + k < columns)
            e.set(k, from[column + k]);
}

template <int VEC, class T> ELEMENT void chunk_store(T *to, const chunk<T> &e, index column, index columns)
{
    if (IS_EXACT || column + CHUNK <= columns) {
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
        return;
    }
#pragma unroll
    for (int k = 0; k < CHUNK; k++)
        if (column + k < columns)
            to[column + k] = e.item(k);
}

/* ---- reductions ---- */

/* The slots of a thread, of type S, and what they have come to, of type T. */
template <class R, class S, class T> struct slots {
    S slot[CHUNK];
    T total;
    __device__ __forceinline__ void restart()
    {
#pragma unroll
        for (int k = 0; k < CHUNK; k++)
            slot[k] = R::template start<S>();
    }
    __device__ __forceinline__ void begin()
    {
        total = R::template start<T>();
        restart();
    }
    __device__ __forceinline__ void add(int k, S x) { slot[k] = R::join(slot[k], x); }
    __device__ __forceinline__ void fold()
    {
#pragma unroll
        for (int width = 1; width < CHUNK; width *= 2)
#pragma unroll
            for (int k = 0; k < CHUNK; k += 2 * width)
                slot[k] = R::join(slot[k], slot[k + width]);
        total = R::join(total, (T)slot[0]);
    }
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
    for (int width = 1; width < lanes; width *= 2) {
        const T other = exchanged(x, width);
        x = (threadIdx.x & width) != 0 ? R::join(other, x) : R::join(x, other);
    }
    return x;
}
