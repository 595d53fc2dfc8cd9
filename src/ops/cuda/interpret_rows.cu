/*
 * interpret_rows.cu: the reductions of row programs, of values that lie in memory: tier 0. Goes behind rows.cu, whose order of
 * a reduction it keeps. Before it are defined
 *
 *   NAME         the kernel's
 *   REDUCTION    one of the structs of reductions.cu
 *   slot_type    of the values, and of what a thread adds up
 *   accumulator  of what the segments of a long row come to
 */
struct arguments {
    const void *values; /* dense rows */
    int64 kept, columns, shift;
    double factor, divisor;
    void *result;
    int64 result_type; /* enumerator of interpret_result.cu; results of halves are floats, rounded */
    int64 is_mean;
};

CALLED void finish(const arguments &a, int64 at, joined_type x)
{
    const bool is_half = a.result_type == FLOAT16 || a.result_type == BFLOAT16;
    const int type = is_half ? (int)FLOAT32 : (int)a.result_type;
    if (!a.is_mean) {
        if (!is_half)
            store_as(type, a.result, at, x);
        else if (a.result_type == FLOAT16)
            ((float *)a.result)[at] = number(convert<float16>(x));
        else
            ((float *)a.result)[at] = number(convert<bfloat16>(x));
        return;
    }
    const double mean = type == FLOAT64 ? (double)x / a.divisor : (double)x * a.factor;
    if (!is_half)
        store_as(type, a.result, at, mean);
    else if (a.result_type == FLOAT16)
        ((float *)a.result)[at] = number(convert<float16>(mean));
    else
        ((float *)a.result)[at] = number(convert<bfloat16>(mean));
}

/* Some threads for each row: LANES of THREADS. */
extern "C" __global__ void __launch_bounds__(1024) NAME(const __grid_constant__ arguments a)
{
    kernel_begin();
    const int lanes = 1 << (int)a.shift, lane = threadIdx.x & (lanes - 1);
    const index number = (index)blockIdx.x * (blockDim.x >> (int)a.shift) + (threadIdx.x >> (int)a.shift);
    const bool is_there = number < (index)a.kept;
    const index columns = is_there ? (index)a.columns : 0;
    typedef memory<slot_type>::type memory_type;
    const memory_type *row = (const memory_type *)a.values + (is_there ? number : 0) * (index)a.columns;
    slots<REDUCTION, slot_type, accumulator> r;
    r.begin();
#if IS_LONG
    int loads = 0;
#endif
    for (index first = (index)lane * CHUNK; first < columns; first += (index)lanes * CHUNK) {
#pragma unroll
        for (int k = 0; k < CHUNK; k++)
            if (first + k < columns)
                r.add(k, loaded<slot_type>(row[first + k]));
#if IS_LONG
        if (++loads == SEGMENT) {
            loads = 0;
            r.fold();
        }
#endif
    }
#if IS_LONG
    r.fold();
    joined_type x = lanes_join<REDUCTION>(r.total, lanes < 32 ? lanes : 32);
#else
    joined_type x = lanes_join<REDUCTION>(r.sum(), lanes < 32 ? lanes : 32);
#endif
    if (lanes > 32) {
        __shared__ joined_type warps[32];
        if (threadIdx.x % 32 == 0)
            warps[threadIdx.x / 32] = x;
        __syncthreads();
        x = lanes_join<REDUCTION>(warps[threadIdx.x & (lanes / 32 - 1)], lanes / 32);
    }
    if (lane == 0 && is_there)
        finish(a, (int64)number, x);
}
