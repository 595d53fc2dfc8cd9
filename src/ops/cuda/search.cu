/*
 * search.cu: where values belong in ascending sequences, from where to where integers go, and how often each occurs.
 * Defined before: one of
 *
 *   SEARCH        a sequence for all values, or one for each row of them
 *   RANGE         the smallest and the largest of each block's integers, for the host
 *   COUNT_FEW     counts in shared memory first
 *   COUNT_MANY    counts where they belong
 */
struct arguments {
    const element *sequence, *values;
    int64 length, each, count; /* of a sequence; values of a row; of all */
    int64 is_right;
    int64 *out;
    const int64 *numbers;
    int64 *host; /* [blocks][2] */
    int64 bins;
};

#ifdef SEARCH
#define EACH 4 /* values of a thread, searched for at the same time */

/* NaN is the largest. */
template <class T> ELEMENT bool is_less(T x, T y)
{
    if constexpr (is_floating<T>::value)
        return x < y || (y != y && x == x);
    else
        return x < y;
}

extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    typedef decltype(number(element())) real;
    const int64 first = (int64)blockIdx.x * (256 * EACH) + threadIdx.x;
    const element *from[EACH];
    real wanted[EACH];
    int64 at[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const int64 i = first + k * 256 < a.count ? first + k * 256 : a.count - 1;
        from[k] = a.sequence + (a.each > 0 ? i / a.each * a.length : 0);
        wanted[k] = number(a.values[i]);
        at[k] = 0;
    }
    /* The same steps for all: half of what is left, until one is. */
    for (int64 left = a.length; left > 0; left -= left > 1 ? left / 2 : 1) {
        const int64 half = left > 1 ? left / 2 : 1;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const real x = number(from[k][at[k] + half - 1]);
            if (a.is_right ? !is_less(wanted[k], x) : is_less(x, wanted[k]))
                at[k] += half;
        }
    }
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (first + k * 256 < a.count)
            a.out[first + k * 256] = at[k];
}
#endif

#ifdef RANGE
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    __shared__ int64 shared[2][8];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    int64 least = a.numbers[0], most = least;
#pragma unroll 4
    for (int64 i = (int64)blockIdx.x * 256 + threadIdx.x; i < a.count; i += (int64)gridDim.x * 256) {
        const int64 x = a.numbers[i];
        least = x < least ? x : least;
        most = x > most ? x : most;
    }
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        const int64 low = __shfl_xor_sync(0xffffffffu, least, lanes), high = __shfl_xor_sync(0xffffffffu, most, lanes);
        least = low < least ? low : least;
        most = high > most ? high : most;
    }
    if (lane == 0) {
        shared[0][warp] = least;
        shared[1][warp] = most;
    }
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    for (int k = 1; k < 8; k++) {
        least = shared[0][k] < least ? shared[0][k] : least;
        most = shared[1][k] > most ? shared[1][k] : most;
    }
    a.host[2 * blockIdx.x] = least;
    a.host[2 * blockIdx.x + 1] = most;
}
#endif

#ifdef COUNT_FEW
#define BINS 8192 /* cuda_search.c has the same */
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    __shared__ unsigned counts[BINS];
    const int bins = (int)a.bins;
    for (int i = (int)threadIdx.x; i < bins; i += 256)
        counts[i] = 0;
    __syncthreads();
#pragma unroll 4
    for (int64 i = (int64)blockIdx.x * 256 + threadIdx.x; i < a.count; i += (int64)gridDim.x * 256) {
        const int64 x = a.numbers[i];
        if (x >= 0 && x < bins) /* whatever others write meanwhile */
            atomicAdd(&counts[x], 1u);
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < bins; i += 256)
        if (counts[i] != 0)
            atomicAdd((uint64 *)&a.out[i], (uint64)counts[i]);
}
#endif

#ifdef COUNT_MANY
extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
#pragma unroll 4
    for (int64 i = (int64)blockIdx.x * 256 + threadIdx.x; i < a.count; i += (int64)gridDim.x * 256) {
        const int64 x = a.numbers[i];
        if (x >= 0 && x < a.bins)
            atomicAdd((uint64 *)&a.out[x], 1ull);
    }
}
#endif
