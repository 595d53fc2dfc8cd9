/*
 * fold.cu: reductions. Goes behind the generated text, which has defined
 *
 *   NAME                    the kernel's
 *   FOLD_ROWS, FOLD_SHORT or FOLD_COLUMNS
 *   accumulator, element_type, result_type
 *   REDUCTION               one of the structs below
 *   FINISH(x)               an accumulator as a result
 *   value_at(a, i)          the value of element i, in the order of the program's dimensions
 *
 * Every result is folded in an order that follows from its shape alone. A thread folds every 256th element of its
 * part, with four accumulators in turn, so that four loads are on their way; then the threads of a block join in a
 * tree.
 */
struct fold_sum {
    static __device__ __forceinline__ accumulator start() { return (accumulator)0; }
    static __device__ __forceinline__ accumulator join(accumulator x, accumulator y) { return op_add<accumulator>(x, y); }
};
typedef fold_sum fold_mean;
struct fold_prod {
    static __device__ __forceinline__ accumulator start() { return (accumulator)1; }
    static __device__ __forceinline__ accumulator join(accumulator x, accumulator y) { return op_multiply<accumulator>(x, y); }
};
struct fold_any {
    static __device__ __forceinline__ accumulator start() { return (accumulator)0; }
    static __device__ __forceinline__ accumulator join(accumulator x, accumulator y) { return (accumulator)(x || y); }
};
struct fold_all {
    static __device__ __forceinline__ accumulator start() { return (accumulator)1; }
    static __device__ __forceinline__ accumulator join(accumulator x, accumulator y) { return (accumulator)(x && y); }
};

/* The smallest and the largest number of a type. */
template <class T> struct limits {
    static const bool is_signed = (T)-1 < (T)0;
    static __device__ __forceinline__ T low()
    {
        if constexpr (is_floating<T>::value)
            return sizeof(T) == 4 ? (T)__uint_as_float(0xff800000u) : (T)__longlong_as_double((int64)0xfff0000000000000ull);
        else
            return is_signed ? (T)((uint64)1 << (8 * sizeof(T) - 1)) : (T)0;
    }
    static __device__ __forceinline__ T high()
    {
        if constexpr (is_floating<T>::value)
            return -low();
        else
            return (T)~low();
    }
};
template <> struct limits<bool> {
    static __device__ __forceinline__ bool low() { return false; }
    static __device__ __forceinline__ bool high() { return true; }
};
struct fold_amax {
    static __device__ __forceinline__ accumulator start() { return limits<accumulator>::low(); }
    static __device__ __forceinline__ accumulator join(accumulator x, accumulator y) { return op_maximum<accumulator>(x, y); }
};
struct fold_amin {
    static __device__ __forceinline__ accumulator start() { return limits<accumulator>::high(); }
    static __device__ __forceinline__ accumulator join(accumulator x, accumulator y) { return op_minimum<accumulator>(x, y); }
};

ELEMENT accumulator warp_fold(accumulator x)
{
#pragma unroll
    for (int width = 16; width > 0; width /= 2)
        x = REDUCTION::join(x, __shfl_down_sync(0xffffffffu, x, width));
    return x;
}

/* What a thread folds of the elements from `begin` to before `end`, each `step`-th. */
ELEMENT accumulator thread_fold(const arguments &a, uint64 begin, uint64 end, uint64 step)
{
    accumulator x[4];
#pragma unroll
    for (int k = 0; k < 4; k++)
        x[k] = REDUCTION::start();
    uint64 i = begin;
    for (; i + 3 * step < end; i += 4 * step) {
        element_type e[4];
#pragma unroll
        for (int k = 0; k < 4; k++)
            e[k] = value_at(a, (index)(i + k * step));
#pragma unroll
        for (int k = 0; k < 4; k++)
            x[k] = REDUCTION::join(x[k], convert<accumulator>(e[k]));
    }
    for (; i < end; i += step)
        x[0] = REDUCTION::join(x[0], convert<accumulator>(value_at(a, (index)i)));
    return REDUCTION::join(REDUCTION::join(x[0], x[1]), REDUCTION::join(x[2], x[3]));
}

#ifdef FOLD_ROWS
/* Block x: a row; block y: a part of it. */
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    __shared__ accumulator warps[8];
    for (int64 row = blockIdx.x; row < a.kept; row += gridDim.x) {
        const int64 first = (int64)blockIdx.y * a.chunk;
        const int64 last = first + a.chunk < a.folded ? first + a.chunk : a.folded;
        accumulator x = thread_fold(a, row * a.folded + first + threadIdx.x, row * a.folded + last, 256);
        x = warp_fold(x);
        if (threadIdx.x % 32 == 0)
            warps[threadIdx.x / 32] = x;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int k = 1; k < 8; k++)
                x = REDUCTION::join(x, warps[k]);
            ((result_type *)a.result)[row * a.parts + blockIdx.y] = FINISH(x);
        }
        __syncthreads();
    }
}
#endif

#ifdef FOLD_SHORT
/* A warp for each row. */
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    const int64 row = (int64)blockIdx.x * 8 + threadIdx.x / 32;
    if (row >= a.kept)
        return;
    accumulator x = thread_fold(a, row * a.folded + threadIdx.x % 32, (row + 1) * a.folded, 32);
    x = warp_fold(x);
    if (threadIdx.x % 32 == 0)
        ((result_type *)a.result)[row] = FINISH(x);
}
#endif

#ifdef FOLD_COLUMNS
/* Block x: 32 columns; block y: a part of the rows; thread y: every eighth of those. */
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    __shared__ accumulator rows[8][32];
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    for (int64 base = (int64)blockIdx.x * 32; base < a.kept; base += (int64)gridDim.x * 32) {
        const int64 column = base + x;
        const int64 first = (int64)blockIdx.y * a.chunk;
        const int64 last = first + a.chunk < a.folded ? first + a.chunk : a.folded;
        accumulator sum = REDUCTION::start();
        if (column < a.kept)
            sum = thread_fold(a, (first + y) * a.kept + column, last * a.kept, 8 * a.kept);
        rows[y][x] = sum;
        __syncthreads();
        if (y == 0 && column < a.kept) {
            for (int k = 1; k < 8; k++)
                sum = REDUCTION::join(sum, rows[k][x]);
            ((result_type *)a.result)[(int64)blockIdx.y * a.kept + column] = FINISH(sum);
        }
        __syncthreads();
    }
}
#endif
